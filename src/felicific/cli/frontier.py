"""``felicific frontier``: the least loss for every allowed gap."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from felicific.cli import options


def frontier(
    file: options.File,
    group: options.Group,
    label: options.Label,
    happiness: options.HappinessText,
    proba: options.Proba = None,
    decision: options.Decision = None,
    weight: options.Weight = None,
    table: options.Table = None,
    name: options.Name = None,
    unit: options.Unit = None,
    among: options.Among = None,
    loss: options.Loss = "error",
    favourable: options.Favourable = None,
    floor: options.FloorText = None,
    budget: options.BudgetText = None,
    kind: options.Kind = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write every breakpoint to this .csv or .json file.", rich_help_panel=options.ANSWER
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw it to this .svg or .png file.", rich_help_panel=options.ANSWER
        ),
    ] = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Compute the whole trade-off between loss and gap: every breakpoint, exactly.

    Example: felicific frontier scores.csv --proba score --label repaid --group sex --happiness "decision * loan"
    --out frontier.csv --chart frontier.svg
    """
    from felicific._files import write_whole
    from felicific.cli.inputs import read_happiness
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.cli.people import People

    check_target(out, [".csv", ".json"], force=force)
    check_target(chart, [".svg", ".png"], force=force)
    with working(f"Tracing the frontier of {file} ..."):
        people = People.find(
            file,
            table=table,
            group=group,
            label=label,
            proba=proba,
            decision=decision,
            weight=weight,
            happiness=read_happiness(happiness, name, unit, among),
            loss=loss,
            favourable=favourable,
        )
        found = _trace(people, kind, people.task(None, floor, budget)["constraints"])
        content = _content(found)
        if chart is not None:
            from felicific import plots

            picture = plots.frontier(found)
            plots.save(picture, chart)
    if out is not None:
        write_whole(out, _as_file(content, out.suffix.lower()))
    print_json(content) if as_json else print("\n".join(_lines(found)))
    for path in (out, chart):
        if path is not None and not as_json:
            print(f"Written to {path}.")


def _trace(people: Any, kind: str | None, constraints: list[Any]) -> Any:
    if kind == "individual":
        from felicific.cli.model import classifier

        rows = people.source.read(pandas=True)
        return classifier(people, rows, policy=kind, gap=None, constraints=constraints).frontier_
    from felicific._frontier.frontier import frontier as trace
    from felicific.cli.fit import sums

    return trace(sums(people, kind), constraints=constraints)


def _content(found: Any) -> dict[str, Any]:
    """Breakpoints and today as plain data; an infinite price is None."""
    columns = {
        name: [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
        for name, values in found.to_dict().items()
    }
    names = [component.name for component in found.components]
    today = {"loss": found.today.loss, "gaps": dict(zip(names, found.today.gaps.tolist(), strict=True))}
    return {"today": today, "breakpoints": columns}


def _as_file(content: dict[str, Any], kind: str) -> str:
    if kind == ".json":
        return json.dumps(content, indent=1, allow_nan=False) + "\n"
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(content["breakpoints"])
    writer.writerows(zip(*content["breakpoints"].values(), strict=True))
    return stream.getvalue()


def _lines(found: Any) -> list[str]:
    """A short table: at most ten places on the way from the least gap to the least loss."""
    import numpy as np

    from felicific._audit.result import table_lines
    from felicific._problem.happiness import written
    from felicific.plots import clean

    last = len(found) - 1
    shown = sorted({round(i) for i in np.linspace(0, last, min(last + 1, 10))})
    accuracy, tiny = found.loss_name == "error", 1e-12 * np.abs(found.means).max(axis=(0, 1))
    header = (
        "",
        "accuracy" if accuracy else "loss",
        *(f"gap of {clean(c.name)}" for c in found.components),
        "",
    )

    def row(name: str, loss: float, gaps: Any) -> tuple[str, ...]:
        first = f"{1 - loss:.2%}" if accuracy else written(loss)
        # What is left of an exact zero after rounding is zero to a reader.
        return (name, first, *(written(gap if gap > tiny[j] else 0.0) for j, gap in enumerate(gaps)), "")

    rows = [row("today", found.today.loss, found.today.gaps)]
    rows += [row(f"breakpoint {i + 1}", found.loss[i], found.gaps[i]) for i in shown]
    count = f"{last + 1} breakpoints" + (f", {len(shown)} of them shown" if len(shown) <= last else "")
    return [f"From the least gap to the least loss: {count}", *table_lines(header, rows)]
