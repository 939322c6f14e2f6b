"""``felicific sample-size``: how many people it takes to be sure, or how sure so many people make one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from felicific.cli.options import Json


@dataclass(frozen=True, kw_only=True)
class SampleSizeOptions:
    """What ``felicific sample-size`` is told."""

    delta: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="How far a group's mean may be off, in the unit of happiness."),
    ] = 0.02
    confidence: Annotated[
        float, typer.Option(metavar="NUMBER", help="With which all means are to be that close at once.")
    ] = 0.99
    span: Annotated[
        float, typer.Option(metavar="NUMBER", help="Largest possible happiness minus smallest.")
    ] = 1.0
    components: Annotated[int, typer.Option(metavar="NUMBER", help="Number of components of happiness.")] = 2
    classes: Annotated[int, typer.Option(metavar="NUMBER", help="Number of decisions.")] = 2
    groups: Annotated[int, typer.Option(metavar="NUMBER", help="Number of groups.")] = 2
    bins: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Cells of the score that the policy sees; by default it sees labels."
        ),
    ] = None
    free: Annotated[
        bool, typer.Option("--free", help="The cells' probabilities may fall where the score rises.")
    ] = False
    among: Annotated[float, typer.Option(metavar="NUMBER", help="Share of a group that is counted.")] = 1.0
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Ask the other way round: how close do so many rows per group get?"
        ),
    ] = None
    as_json: Json = False


def sample_size(options: SampleSizeOptions) -> None:
    """Say how many rows per group keep all group means close to the truth, for every policy at once.

    Example: felicific sample-size --delta 500 --span 50000 --components 1 --bins 256
    """
    from felicific._statistics.sample_size import margin_of_error
    from felicific._statistics.sample_size import sample_size as plan
    from felicific.cli.outputs import print_json

    asked: dict[str, Any] = {
        "confidence": options.confidence,
        "n_components": options.components,
        "n_classes": options.classes,
        "n_groups": options.groups,
        "span": options.span,
        "signals": options.bins,
        "monotone": options.bins is not None and not options.free,
        "among": options.among,
    }
    if options.rows is None:
        size = plan(delta=options.delta, **asked)
        print_json(size.to_dict()) if options.as_json else print("\n".join(size.sentences()))
        return
    close = margin_of_error(options.rows, **asked)
    if options.as_json:
        print_json({"rows": options.rows, "delta": close})
    else:
        print(f"{options.rows:,} rows per group keep every policy's means within {close:,.6g} of the truth.")
