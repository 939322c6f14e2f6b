"""Run the studies: tables and charts of each in a folder, and every statement of the paper beside what was measured."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from felicific.datasets import Dataset
from felicific.exceptions import FelicificError
from felicific.plots import save
from studies import adult, charts, delayed, experiment, loans, results, synthetic

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
STUDIES = {"synthetic": synthetic, "adult": adult, "loans": loans, "delayed": delayed}
FEWEST = 400  # people; fewer leave some group without anybody to measure a rate among


def load(name: str, seed: int, asked: argparse.Namespace) -> Dataset:
    """The people of a study; with ``--rows``, so many of them at random."""
    if name == "synthetic":
        return synthetic.load(seed, asked.rows)
    data = adult.load() if name == "adult" else loans.load(asked.loans)
    if asked.rows is None or asked.rows >= len(data.y):
        return data
    some = np.random.default_rng(seed).permutation(len(data.y))[: asked.rows]
    return replace(data, X=data.X.iloc[some].reset_index(drop=True), y=data.y[some])


def write_paper(name: str, folder: Path, asked: argparse.Namespace, say: Callable[[str], None]) -> str:
    """One of the paper's studies: its files, and its text."""
    runs = []
    for seed in range(asked.seeds):
        say(f"seed {seed}: reading the people")
        data = load(name, seed, asked)
        runs.append(experiment.run(data, seed, say))
    happiness, first = data.happiness, runs[0]
    say("drawing")
    for policy, suffix in (("soft-label", ""), ("score", "_score")):
        for part, short in (("test", "test"), ("validation", "val")):
            file = results.paper_file([first.tracks[policy, part, method] for method in experiment.METHODS])
            target = folder / f"acc_vs_happiness_delta_{short}{suffix}.csv"
            file.to_csv(target, index=False, float_format="%.12g", na_rep="nan", lineterminator="\n")
        chart = charts.trade_off(first, policy, happiness.name, happiness.unit)
        save(chart, folder / f"{name}{suffix}.svg")
    numbers = results.Numbers(runs)
    statements = synthetic.statements(numbers) if name == "synthetic" else []
    statements += results.common_statements(numbers)
    for statement in statements:
        print(f"  {statement.line}")
    content = {"statements": [vars(one) for one in statements]}
    content["numbers"] = json.loads(numbers.frame.to_json(orient="records", double_precision=15))
    (folder / "results.json").write_text(
        json.dumps(content, indent=1, default=lambda number: number.item()) + "\n", "utf-8"
    )
    return results.study_text(numbers, statements, happiness.unit)


def write_delayed(folder: Path, say: Callable[[str], None]) -> str:
    """The study on delayed impact: its files, and its text."""
    lenders = {}
    for ratio in delayed.RATIOS:
        say(f"a lender to whom a default costs {ratio} repaid loans")
        lender = lenders[ratio] = delayed.lend(ratio)
        lender.to_csv(
            folder / f"frontiers_{ratio}.csv", index=False, float_format="%.12g", lineterminator="\n"
        )
        save(charts.score_changes(lender, ratio), folder / f"delayed_{ratio}.svg")
        save(charts.lender_profit(lender), folder / f"delayed_profit_{ratio}.svg")
        for sentence in delayed.harm_sentences(lender):
            print(f"  a default costs {ratio}: {sentence}")
    return delayed.delayed_text(lenders)


def write_study(name: str, out: Path, asked: argparse.Namespace) -> str:
    """Write the folder ``out/name``, whole or not at all; files of a folder that is replaced stay beside the new."""

    def say(what: str) -> None:
        print(f"{name}: {what} ...", file=sys.stderr, flush=True)

    start, folder = time.perf_counter(), out / name
    print(f"{STUDIES[name].TITLE} ({folder})", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".") as room:
        new = Path(room, name)
        shutil.copytree(folder, new) if folder.exists() else new.mkdir()
        text = write_delayed(new, say) if name == "delayed" else write_paper(name, new, asked, say)
        text += f"\n\n{time.perf_counter() - start:.1f} s. {results.software()}"
        command = f"python -m studies {name} --seeds {asked.seeds}" + (
            f" --rows {asked.rows}" if asked.rows else ""
        )
        (new / "results.md").write_text(f"# {STUDIES[name].TITLE}\n\n`{command}`\n\n{text}\n", "utf-8")
        if folder.exists():
            folder.rename(Path(room, "old"))
        new.rename(folder)
    return text


def write_docs(asked: argparse.Namespace) -> None:
    """Write docs/studies.md and its figures: ``page.md`` with the tables of every study at its mark."""
    loans.load(asked.loans)  # whether it is there is said before any work
    page = (HERE / "page.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as room:
        for name in STUDIES:
            page = page.replace(f"<!-- {name} -->", write_study(name, Path(room), asked))
        for picture in re.findall(r"\(studies/(.*?\.svg)\)", page):
            shutil.copyfile(next(Path(room).rglob(picture)), DOCS / "studies" / picture)
    (DOCS / "studies.md").write_text(page, "utf-8")


def number(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
        return int(text)

    return read


def main(arguments: list[str] | None = None) -> int:
    """Read the options and run; 1 when a study could not be run."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("study", nargs="?", default="all", choices=[*STUDIES, "all"])
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the studies' folders: results"
    )
    parser.add_argument(
        "--seeds", type=number(1), default=1, help="seeds to average over; charts show the first"
    )
    parser.add_argument("--rows", type=number(FEWEST), help="use this many people only, for a quick look")
    parser.add_argument(
        "--loans", type=Path, help="the file Loan.csv; else FELICIFIC_LOANS, else ../shared/data/loan"
    )
    parser.add_argument("--force", action="store_true", help="replace results that are there")
    parser.add_argument(
        "--docs", action="store_true", help="write docs/studies.md and its charts, of five seeds"
    )
    asked = parser.parse_args(arguments)
    if asked.docs:
        asked.seeds, asked.rows = 5, None
    failed = False
    for name in ["docs"] if asked.docs else STUDIES if asked.study == "all" else [asked.study]:
        try:
            if name == "docs":
                write_docs(asked)
            elif (asked.out / name).exists() and not asked.force:
                print(f"{asked.out / name} is there already and is kept; --force replaces it.")
            else:
                write_study(name, asked.out, asked)
        except (FelicificError, OSError) as error:
            print(f"studies: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
