"""``felicific reproduce``: the case studies, from data to figures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Study(StrEnum):
    """What ``felicific reproduce`` can run."""

    synthetic = "synthetic"
    adult = "adult"
    loans = "loans"
    delayed = "delayed"
    all = "all"


def reproduce(
    study: Annotated[Study, typer.Argument(help="Which study, or all of them.")],
    out: Annotated[
        Path, typer.Option(help="Folder for the results; every study gets a folder of its own in it.")
    ],
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds to average over; figures are those of the first.")
    ] = 1,
    rows: Annotated[
        int | None, typer.Option(min=400, help="Use this many people only, for a quick look.")
    ] = None,
    loans: Annotated[
        Path | None, typer.Option(help="The Kaggle file of the loans; else FELICIFIC_LOANS, else simulated.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Another group column of the loans; age under 40 or over by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
) -> None:
    """Reproduce the paper's case studies, and one on delayed impact, from data to figures.

    Example: felicific reproduce all --out studies
    """
    from rich.console import Console

    from felicific.studies import STUDIES, Settings
    from felicific.studies import reproduce as run

    console = Console(highlight=False)
    for name in STUDIES if study is Study.all else (study.value,):
        with console.status(name) as status:
            folder = run(name, out, Settings(seeds, rows, loans, group), force=force, say=status.update)
        console.print(
            f"{out / name} is there already and is kept; --force replaces it."
            if folder is None
            else f"{folder}: start with results.md",
            soft_wrap=True,
            markup=False,
        )
