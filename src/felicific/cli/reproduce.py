"""``felicific reproduce``: the case studies, from data to figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from felicific.cli.options import OUTPUT, Forced

Study = Literal["synthetic", "adult", "loans", "delayed", "all"]


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Forced):
    """What ``felicific reproduce`` is told."""

    study: Annotated[
        Study,
        typer.Argument(metavar="STUDY", help="Which: synthetic, adult, loans, delayed, or all of them."),
    ]
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the results; every study gets a folder of its own in it.",
            rich_help_panel=OUTPUT,
        ),
    ]
    seeds: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=1, help="Seeds to average over; figures are those of the first."),
    ] = 1
    rows: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=400, help="Use this many people only, for a quick look."),
    ] = None
    loans: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The Kaggle file of the loans; else FELICIFIC_LOANS, else simulated."
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Another group column of the loans; age under 40 or over by default."
        ),
    ] = None


def reproduce(options: ReproduceOptions) -> None:
    """Reproduce the paper's case studies, and one on delayed impact, from data to figures.

    Example: felicific reproduce all --out studies
    """
    from rich.console import Console

    from felicific.studies import STUDIES, Settings, write_index
    from felicific.studies import reproduce as run

    console = Console(highlight=False)
    settings = Settings(options.seeds, options.rows, options.loans, options.group)
    index = None
    for name in STUDIES if options.study == "all" else (options.study,):
        with console.status(name) as status:
            folder = run(name, options.out, settings, force=options.force, say=status.update)
        console.print(
            f"{options.out / name} is there already and is kept; --force replaces it."
            if folder is None
            else f"{folder}: start with index.html",
            soft_wrap=True,
            markup=False,
        )
        index = write_index(options.out)  # after every study, so that it is true whenever one is interrupted
    if index is not None:
        console.print(f"{index}: all studies of this folder", soft_wrap=True, markup=False)
