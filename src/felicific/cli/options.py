"""The options that several commands share: the same name means the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

DATA, MEANING, ANSWER = "The people", "What is measured", "Output"

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="CSV, Parquet or DuckDB file; a pattern such as 'scores-*.parquet' names many."
    ),
]
Table = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Table of a DuckDB file that holds several.", rich_help_panel=DATA),
]
Group = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN",
        help="Column of the group; given twice, the groups are the combinations.",
        rich_help_panel=DATA,
    ),
]
Label = Annotated[
    str,
    typer.Option(
        metavar="COLUMN", help="Column of the truth that the model tries to predict.", rich_help_panel=DATA
    ),
]
OptionalLabel = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column of the truth, if it is known.", rich_help_panel=DATA
    ),
]
Proba = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the model's probability of the favourable class; with more than two classes, once for "
        "each: CLASS=COLUMN.",
        rich_help_panel=DATA,
    ),
]
Decision = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of what is decided today.", rich_help_panel=DATA)
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="A decision that there is, once for each; by default those that the file holds.",
        rich_help_panel=DATA,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of weights: 2 is the row twice.", rich_help_panel=DATA),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that identifies a person: the same person always draws the same lot.",
        rich_help_panel=DATA,
    ),
]
HappinessText = Annotated[
    list[str],
    typer.Option(
        "--happiness",
        metavar="HAPPINESS",
        help="What a decision is worth to a person: an expression such as 'decision * loan', a function as "
        "module.py:function, or a criterion such as equalized_odds. May be given several times.",
        rich_help_panel=MEANING,
    ),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call the happiness.", rich_help_panel=MEANING)
]
Unit = Annotated[
    str | None, typer.Option(metavar="UNIT", help="What happiness is counted in.", rich_help_panel=MEANING)
]
Among = Annotated[
    str | None,
    typer.Option(
        metavar="EXPRESSION",
        help="Who is counted: an expression such as 'age < 40'.",
        rich_help_panel=MEANING,
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH",
        help="Range that happiness is known to lie in, for guarantees that assume nothing else.",
        rich_help_panel=MEANING,
    ),
]
SafeConfidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        metavar="NUMBER",
        help="Return only a policy whose gap is shown, with this confidence, to be at most --gap for people like "
        "these: half of every group is held out to test it on.",
        rich_help_panel=MEANING,
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        metavar="LOSS",
        help="What a decision costs the decision maker: error, an expression or module.py:function.",
        rich_help_panel=MEANING,
    ),
]
Favourable = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS",
        help="The decision that people hope for; the last class by default.",
        rich_help_panel=MEANING,
    ),
]
Gap = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GAP",
        help="Largest allowed gap, in the unit of happiness; of one of several, NAME=GAP.",
        rich_help_panel=MEANING,
    ),
]
FloorText = Annotated[
    list[str] | None,
    typer.Option(
        "--floor",
        metavar="LEVEL",
        help="No group's mean below this: a number or 'today'; of one of several, NAME=LEVEL.",
        rich_help_panel=MEANING,
    ),
]
BudgetText = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="LEVEL",
        help="The mean over all people at most this; of one of several, NAME=LEVEL.",
        rich_help_panel=MEANING,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="KIND",
        help="What the policy sees besides the group: score, individual, label or soft-label. Default: score, or "
        "label where there are no probabilities.",
        rich_help_panel=MEANING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Makes the lottery reproducible; by default its salt is fresh.",
        rich_help_panel=MEANING,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=ANSWER)]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.", rich_help_panel=ANSWER)]
