"""``felicific frontier``: the least loss for every allowed gap."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import OUTPUT, Answer, Chart, Traced

if TYPE_CHECKING:
    from felicific import Frontier
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class FrontierOptions(Traced, Answer):
    """What ``felicific frontier`` is told."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write every breakpoint to this .csv or .json file.", rich_help_panel=OUTPUT
        ),
    ] = None
    chart: Chart = None


def frontier(options: FrontierOptions) -> None:
    """Compute the whole trade-off between loss and gap: every breakpoint, exactly.

    Example: felicific frontier scores.csv --proba score --label repaid --group sex --happiness "decision * loan"
    --out frontier.csv --chart frontier.svg
    """
    from felicific._files import write_whole
    from felicific.cli.outputs import check_chart, check_target, print_json, working
    from felicific.cli.people import People

    out, chart = options.out, options.chart
    check_target(out, [".csv", ".json"], force=options.force)
    check_chart(chart, force=options.force)
    with working(f"Tracing the frontier of {options.file} ..."):
        line = _trace(People.find(options), options)
        content = _content(line)
        if chart is not None:
            from felicific import plots

            picture = line.plot()
            plots.save(picture, chart)
    if out is not None:
        write_whole(out, _as_file(content, out.suffix.lower()))
    print_json(content) if options.as_json else print("\n".join(_lines(line)))
    for path in (out, chart):
        if path is not None and not options.as_json:
            print(f"Written to {path}.")


def _trace(people: People, options: FrontierOptions) -> Frontier:
    from felicific._frontier.solve import frontier as trace
    from felicific.cli.inputs import read_asked

    _, constraints = read_asked(options, people.happiness, None, people.favourable)
    seen = people.seen(options)
    kind, _ = people.kind(options)
    if kind == "individual":
        people.check_signal()
        asked = ("proba", "predicted", "sensitive_features", "happiness", "loss", "classes", "favourable")
        named = {name: getattr(people, name) for name in (*asked, "missing_group", "missing_labels")}
        named |= {"y": people.label, "today": people.today, "sample_weight": people.weight}
        return trace(people.rows(), policy=kind, constraints=constraints, **named, **seen)
    from felicific.cli.fit import sums

    summed = sums(people, kind, constraints)
    return trace(summed, constraints=constraints, group_at_predict=not options.blind)


def _content(line: Frontier) -> dict[str, Any]:
    """Breakpoints and today as plain data; an infinite price is None."""
    columns = {
        name: [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
        for name, values in line.to_dict().items()
    }
    names = [component.name for component in line.components]
    today = {"loss": line.today.loss, "gaps": dict(zip(names, line.today.gaps.tolist(), strict=True))}
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


def _lines(line: Frontier) -> list[str]:
    """A short table: at most ten places on the way from the least gap to the least loss."""
    import numpy as np

    from felicific._audit.result import titled
    from felicific._problem.loss import loss_text, loss_words
    from felicific._shown.parts import table_lines

    last = len(line) - 1
    shown = sorted({round(i) for i in np.linspace(0, last, min(last + 1, 10))})
    tiny = 1e-12 * np.nanmax(np.abs(line.means), axis=(0, 1))
    measured = [j for j, component in enumerate(line.components) if not component.aside]
    header = ("", loss_words(line.loss_name), *(f"gap of {titled(line.components[j])}" for j in measured), "")

    def row(name: str, loss: float, gaps: Any) -> tuple[str, ...]:
        first = loss_text(line.loss_name, loss)
        # What is left of an exact zero after rounding is zero to a reader.
        numbers = [gap if gap > tiny[j] else 0.0 for j, gap in enumerate(gaps)]
        return (name, first, *(line.components[j].cell(numbers[j]) for j in measured), "")

    rows = [row("today", line.today.loss, line.today.gaps)]
    rows += [row(line.place(i), line.loss[i], line.gaps[i]) for i in shown]
    count = f"{last + 1} {line.places}" + (f", {len(shown)} of them shown" if len(shown) <= last else "")
    return [f"From {line.course}: {count}", *table_lines(header, rows)]
