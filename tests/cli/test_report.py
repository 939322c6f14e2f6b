"""``felicific report`` and ``felicific fit --test``: the verdict, names, other measures, bad input."""

import json

import numpy as np
import pandas as pd
import pytest

from felicific.cli import run

COMMON = "--score score --label repaid --group sex --happiness 'decision * loan' --name funding --unit $"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """People to fit on, and others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n in (("scores", 2_000), ("others", 2_500)):
        z = rng.integers(0, 2, n)
        score = 1 / (1 + np.exp(-(1.5 * rng.normal(size=n) - 0.8 * z)))
        pd.DataFrame({
            "sex": np.array(["m", "f"])[z], "score": score.round(4), "loan": rng.lognormal(9, 0.4, n).round(),
            "repaid": (rng.random(n) < score).astype(int), "id": np.arange(n) + (name == "others") * n,
        }).to_csv(f"{name}.csv", index=False)  # fmt: skip
    return tmp_path


def call(line, capsys):
    import shlex

    code = run(shlex.split(line))
    found = capsys.readouterr()
    return code, found.out, found.err


def test_the_report_prints_its_verdict_and_takes_all_words(capsys):
    """Names, other measures, whose labels and the period stand in the data; what is printed is the verdict."""
    words = (
        "--decision-name 0=declined --decision-name 1=approved --also 'approved=decision == 1' --labels all"
    )
    code, out, _ = call(
        f"report scores.csv --test others.csv {COMMON} --gap 500 {words} --period 2025 --out page.json",
        capsys,
    )
    assert code == 0
    with open("page.json") as file:
        content = json.load(file)
    verdict = content["positions"][content["proposed"]]["verdict"]
    assert out.startswith(verdict["headline"])
    assert out.endswith("Written to page.json.\n")
    assert [one["name"] for one in content["decisions"]] == ["declined", "approved"]
    assert [one["name"] for one in content["also"]] == ["approved"]
    assert (content["label_source"], content["period"], content["model"]) == ("all", "2025", None)
    assert max(map(len, out.splitlines())) <= 80


def test_fit_prints_the_verdict_on_another_file(capsys):
    """The same verdict as the page, in words and as data; without a file nothing is said of other people."""
    asked = f"scores.csv {COMMON} --gap 500 --force"
    _, page, _ = call(f"report {asked} --test others.csv --out page.html", capsys)
    code, out, _ = call(f"fit {asked} --test others.csv", capsys)
    assert code == 0
    block = page[: page.index("Written to")]
    assert out.startswith(block.rstrip("\n"))
    _, out, _ = call(f"fit {asked} --test others.csv --json", capsys)
    assert json.loads(out)["verdict"]["headline"] == block.splitlines()[0]
    _, out, _ = call(f"fit {asked} --json", capsys)
    assert json.loads(out)["verdict"] is None


@pytest.mark.filterwarnings("ignore:The salt:felicific.exceptions.LotteryWarning")
def test_fit_with_confidence_prints_the_verdict_on_rows_held_out(capsys):
    """A certificate comes with a verdict."""
    code, out, _ = call(
        "fit scores.csv --score score --label repaid --group sex --happiness 'decision == 1' --gap 0.15 "
        "--confidence 0.8 --seed 1 --force",
        capsys,
    )
    assert code == 0
    assert out.splitlines()[0] == "It shrinks the gap, and that is certified."


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("--decision-name 0=declined", ["--decision-name", "decision 1", "Name every decision"]),
        ("--decision-name 0=a --decision-name 2=b", ["--decision-name", "'2'", "0 and 1"]),
        ("--decision-name 0=a --decision-name 1=a", ["'a'", "a name of its own"]),
        ("--decision-name declined", ["--decision-name", "NAME=VALUE"]),
        ("--also approved", ["--also", "NAME=VALUE"]),
        ("--also 'approved=decision == color'", ["color"]),
        ("--labels some", ["--labels"]),
        ("--name 0=declined", ["names the happiness", "--decision-name 0=declined"]),
    ],
)
def test_bad_words_are_named_and_nothing_is_written(line, texts, files, capsys):
    """One clear line with the option's name."""
    code, out, err = call(f"report scores.csv --test others.csv {COMMON} --gap 500 {line}", capsys)
    assert code in (1, 2)
    assert out == ""
    for text in texts:
        assert text in err.splitlines()[-1] or text in err
    assert sorted(path.name for path in files.iterdir()) == ["others.csv", "scores.csv"]


def test_a_verdict_needs_labels(capsys):
    """Without them there is none, and that is said before any work is done."""
    code, _, err = call(
        "fit scores.csv --score score --group sex --happiness 'decision * loan' --gap 500 --loss changes "
        "--test others.csv",
        capsys,
    )
    assert code == 1
    assert "--label" in err


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_fitted_people_are_recognised(capsys):
    """The same file again is no test."""
    code, out, _ = call(f"fit scores.csv {COMMON} --gap 500 --force --test scores.csv", capsys)
    assert code == 0
    assert out.startswith("We cannot tell.")
    assert "Fitted to these people" in out
