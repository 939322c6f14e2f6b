"""``felicific frontier``: the least loss for every allowed gap."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from felicific.cli.options import (
    Answer,
    Chart,
    Group,
    HappinessText,
    Traced,
    decides_amounts,
    output_option,
)

if TYPE_CHECKING:
    from felicific._frontier.frontier import Frontier
    from felicific._frontier.numeric import AmountFrontier
    from felicific._program.aggregates import Aggregates


@dataclass(frozen=True, kw_only=True)
class FrontierOptions(Traced, Answer):
    """What ``felicific frontier`` is told."""

    group: Group = None  # which a file of sums knows
    happiness: HappinessText = None
    out: Annotated[
        Path | None, output_option("FILE", "Write every breakpoint to this .csv or .json file.")
    ] = None
    chart: Chart = None


def frontier(options: FrontierOptions) -> None:
    """Compute the whole trade-off between loss and gap: every breakpoint, exactly.

    FILE may also hold sums that `felicific aggregate` or `merge` wrote, which know groups and happiness.

    Example: felicific frontier scores.csv --score score --label repaid --group sex --happiness "decision * loan"
    --out frontier.csv --chart frontier.svg
    """
    from felicific._files import write_whole
    from felicific.cli.documents import given_sums
    from felicific.cli.outputs import check_chart, check_target, print_json, working

    out, chart = options.out, options.chart
    check_target(out, [".csv", ".json"], force=options.force)
    check_chart(chart, force=options.force)
    with working(f"Tracing the frontier of {options.file} ..."):
        sums = given_sums(options)
        amounts = _amounts(sums, options)
        if amounts is not None:
            _say_amounts(amounts, options)
            return
        line = _trace(sums, options)
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


def _amounts(sums: Any, options: FrontierOptions) -> AmountFrontier | None:
    """The frontier of amounts, where a number is predicted, or sums are of such people."""
    from felicific._policy.solve import is_of_amounts

    if not decides_amounts(options) and not is_of_amounts(sums):
        return None
    from felicific._frontier.numeric import AmountFrontier
    from felicific.cli.amounts import fitted, fitted_to

    found = fitted(options, None, None) if sums is None else fitted_to(sums, options, None, None)
    return AmountFrontier.of(found)


def _say_amounts(line: AmountFrontier, options: FrontierOptions) -> None:
    """Write and print the least loss for every gap."""
    from felicific._files import write_whole
    from felicific.cli.outputs import print_json

    gaps = {f"gap of {name}": reached.tolist() for name, reached in line.gaps.items()}
    units = {measure.name: measure.unit for measure in line.fitted.policy.measures}
    content = {
        "breakpoints": {"tau": line.places.tolist(), **gaps, "loss": line.loss.tolist()},
        "units": units,
    }
    if options.out is not None:
        write_whole(options.out, _as_file(content, options.out.suffix.lower()))
    print_json(content) if options.as_json else print(line)
    if options.out is not None and not options.as_json:
        print(f"Written to {options.out}.")


def _trace(summed: Aggregates | None, options: FrontierOptions) -> Frontier:
    """The frontier of some sums; of individual policies that of the people themselves."""
    from felicific._frontier.solve import frontier as trace
    from felicific.cli.documents import named_in
    from felicific.cli.fit import sums
    from felicific.cli.inputs import read_asked
    from felicific.cli.people import People

    if summed is not None:
        _, constraints = read_asked(
            options, named_in(summed), None, [str(name) for name in summed.attributes]
        )
    else:
        people = People.find(options)
        _, constraints = read_asked(options, people.happiness, None)
        (kind, _), seen = people.kind(options), people.seen(options)
        if kind == "individual":
            from felicific.cli.model import classifier

            rows = people.source.read(pandas=True)
            return classifier(people, rows, kind, gap={}, constraints=constraints, **seen).frontier_
        summed = sums(people, kind, constraints)
    return trace(summed, constraints=constraints, sees_group=not options.blind)


def _content(line: Frontier) -> dict[str, Any]:
    """Breakpoints and the baseline as plain data; an infinite price is None."""
    columns = line.to_dict()
    shares = [point.outcome.changed for point in line.points]
    if line.changed is not None:
        columns["changed"] = line.changed.tolist()
        for z, group in enumerate(_groups(line)):
            columns[f"changed of {group}"] = [float(share[z]) for share in shares if share is not None]
    columns = {
        name: [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
        for name, values in columns.items()
    }
    names = [measure.name for measure in line.measures]
    baseline = None
    if line.baseline is not None:
        means = {
            name: {group: plain(mean) for group, mean in zip(_groups(line), column, strict=True)}
            for name, column in zip(names, line.baseline.means.T.tolist(), strict=True)
        }
        gaps = dict(zip(names, line.baseline.gaps.tolist(), strict=True))
        baseline = {"loss": line.baseline.loss, "gaps": gaps, "means": means}
    return {
        "units": {measure.name: measure.unit for measure in line.measures},
        "loss": line.loss_name,
        "baseline": baseline,
        "breakpoints": columns,
    }


def plain(number: float) -> float | None:
    """A number that JSON can hold."""
    return number if math.isfinite(number) else None


def _groups(line: Frontier) -> list[str]:
    """Names of the groups that differ as text."""
    names = [str(group) for group in line.groups]
    return names if len(set(names)) == len(names) else [repr(group) for group in line.groups]


def _as_file(content: dict[str, Any], kind: str) -> str:
    if kind == ".json":
        return json.dumps(content, indent=1, allow_nan=False) + "\n"
    import csv
    import io

    # Every row says what its numbers are counted in.
    columns, rows = dict(content["breakpoints"]), len(content["breakpoints"]["tau"])
    columns |= {f"unit of {name}": [unit] * rows for name, unit in content["units"].items()}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue()


def _lines(line: Frontier) -> list[str]:
    """Short tables: at most ten places on the way from the least gap to the least loss."""
    import numpy as np

    from felicific._audit.result import titled
    from felicific._problem.loss import CHANGES, loss_text, loss_words
    from felicific._shown.parts import short
    from felicific.cli.outputs import columns_within

    last = len(line) - 1
    # Asked for once: each of them finds the policies of all places.
    losses, all_gaps, all_means, changed = line.loss, line.gaps, line.means, line.changed
    shown = sorted({round(i) for i in np.linspace(0, last, min(last + 1, 10))})
    tiny = 1e-12 * np.nanmax(np.abs(all_means), axis=(0, 1))
    count = f"{last + 1} {line.places}" + (f", {len(shown)} of them shown" if len(shown) <= last else "")
    lines = [f"From {line.course}: {count}"]
    prices = _prices(line)
    now = [] if line.baseline is None else [line.baseline]
    # What belongs to a place, and to no measure, stands in the first table.
    first: dict[str, list[str]] = {
        loss_words(line.loss_name): [
            loss_text(line.loss_name, loss) for loss in (*(one.loss for one in now), *losses[shown])
        ],
        "changed": ["0.00%", *(f"{share:.2%}" for share in changed[shown])]
        if changed is not None and line.loss_name != CHANGES
        else [],
        "price": [*("" for _ in now), *(prices[i] for i in shown)],
    }
    places = [*("baseline" for _ in now), *(line.place(i) for i in shown)]
    for j, measure in enumerate(line.measures):
        if measure.aside:
            continue
        # What is left of an exact zero after rounding is zero to a reader.
        gaps = [gap if gap > tiny[j] else 0.0 for gap in (*(one.gaps[j] for one in now), *all_gaps[shown, j])]
        columns = {name: values for name, values in first.items() if values}
        columns["gap"] = [measure.cell(gap) for gap in gaps]
        for z, group in enumerate(_groups(line)):
            means = (*(one.means[z, j] for one in now), *all_means[shown, z, j])
            columns[short(group, 24)] = [measure.cell(mean) for mean in means]
        rows = list(zip(places, *columns.values(), strict=True))
        lines += [
            "",
            f"{titled(measure)}: gap, and mean of every group",
            *columns_within(("", *columns), rows),
        ]
        first = {}
    return [*lines, "", *_legend(line)]


def _prices(line: Frontier) -> list[str]:
    """What a little less would cost at every place; nothing where nothing less is to be had."""
    return [f"{price:.3g}" if math.isfinite(price) else "none less" for price in line.prices[:, 1].tolist()]


def _legend(line: Frontier) -> list[str]:
    """What the columns mean that do not say it themselves."""
    from felicific._problem.loss import CHANGES, is_accuracy

    moving = list(line.widths)
    by_name = {measure.name: measure for measure in line.measures}
    if len(moving) == 1 and moving[0] in by_name:
        what = f"a gap smaller by {by_name[moving[0]].quantity(1.0)}"
    else:
        what = "asking for more, per 1 of the number that moves (in a file, tau),"
    errors = ", as a share of wrong decisions" if is_accuracy(line.loss_name) else ""
    cost = ", with what changed decisions cost" if line.change_cost else ""
    found = [f"price: what {what} would add to the loss{errors}{cost}."]
    if line.changed is not None and line.loss_name != CHANGES:
        found.append("changed: people whose decision is not the baseline's.")
    return [wrapped for text in found for wrapped in textwrap.wrap(text, 80)]
