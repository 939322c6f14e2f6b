"""``felicific sample-size``: how many people it takes to be sure, or how sure so many people make one."""

from __future__ import annotations

from typing import Annotated

import typer

from felicific.cli import options


def sample_size(
    delta: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="How far a group's mean may be off, in the unit of happiness."),
    ] = 0.02,
    gamma: Annotated[
        float, typer.Option(metavar="NUMBER", help="Probability with which that may fail.")
    ] = 0.01,
    span: Annotated[
        float, typer.Option(metavar="NUMBER", help="Largest possible happiness minus smallest.")
    ] = 1.0,
    components: Annotated[int, typer.Option(metavar="NUMBER", help="Number of components of happiness.")] = 2,
    classes: Annotated[int, typer.Option(metavar="NUMBER", help="Number of decisions.")] = 2,
    groups: Annotated[int, typer.Option(metavar="NUMBER", help="Number of groups.")] = 2,
    cells: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Cells of the score that the policy sees; by default it sees labels."
        ),
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="The cells' probabilities may fall where the score rises.")
    ] = False,
    among: Annotated[float, typer.Option(metavar="NUMBER", help="Share of a group that is counted.")] = 1.0,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Ask the other way round: how close do so many rows per group get?"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say how many rows per group keep all group means close to the truth, for every policy at once.

    Example: felicific sample-size --delta 500 --span 50000 --components 1 --cells 256
    """
    from felicific._statistics.sample_size import precision
    from felicific._statistics.sample_size import sample_size as plan
    from felicific.cli.outputs import print_json

    if rows is not None:
        close = precision(
            rows,
            gamma=gamma,
            n_components=components,
            n_classes=classes,
            n_groups=groups,
            span=span,
            signals=cells,
            monotone=cells is not None and not free,
            among=among,
        )
        if as_json:
            print_json({"rows": rows, "delta": close})
        else:
            print(f"{rows:,} rows per group keep every policy's means within {close:,.6g} of the truth.")
        return
    found = plan(
        delta=delta,
        gamma=gamma,
        n_components=components,
        n_classes=classes,
        n_groups=groups,
        span=span,
        signals=cells,
        monotone=cells is not None and not free,
        among=among,
    )
    print_json(found.to_dict()) if as_json else print("\n".join(found.sentences()))
