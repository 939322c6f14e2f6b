"""The choice in words: everything on the page that changes with the slider, and the picture above it."""

from __future__ import annotations

from typing import Any

from felicific.report.content import round_step
from felicific.report.words import Content, Names, counts_of, flows, listed, proportions

#: Rows of the table of positions, besides those with a name.
TABLE_ROWS = 9


def choice_view(content: Content, names: Names) -> dict[str, Any]:
    """Everything the template shows of the choice, as text."""
    line = content["frontier"]
    places = line["positions"]
    columns = _columns(content, names)
    cells = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    texts = list(dict.fromkeys(text for place in places for text in place["sentences"]))
    where = {text: i for i, text in enumerate(texts)}
    start = next(i for i, place in enumerate(places) if "proposed policy" in place["names"])
    marked = [(name, i) for i, place in enumerate(places) for name in place["names"]]
    return {
        "start": start,
        "last": len(places) - 1,
        "now": cells[start],
        "rules": places[start]["sentences"],
        "marked": marked,
        "bounded": _bounded(places),
        "whole": _whole(content, names),
        "fitted_today": _fitted_today(content, names),
        "rows": _table_rows(places, cells),
        "now_today": {
            "good": names.goods([line["today"]["loss"]])[0],
            "gaps": names.cells(line["today"]["gaps"]),
        },
        "picture": _picture(content, names),
        "embedded": {
            "keys": list(columns),
            "cells": [list(cell.values()) for cell in cells],
            "texts": texts,
            "rules": [[where[text] for text in place["sentences"]] for place in places],
            "places": [],
        },
    }


def moved_people(place: dict[str, Any]) -> list[float]:
    """How many people of every group get another decision than today at a position."""
    return [
        sum(number for a, row in enumerate(table) for d, number in enumerate(row) if a != d)
        for table in place["moves"]
    ]


def _axis(content: Content) -> int | None:
    """The component in whose unit the slider moves, if there is only one gap to close."""
    on = [j for j, width in enumerate(content["frontier"]["ray"]) if width]
    return on[0] if len(on) == 1 else None


def _whole(content: Content, names: Names) -> str:
    """With several gaps to close: what all of it, 100 per cent, stands for."""
    if _axis(content) is not None:
        return ""
    ray = content["frontier"]["ray"]
    parts = [f"{names.quantities[j](width)} in {names.components[j]}" for j, width in enumerate(ray) if width]
    return (
        f"Several gaps are closed together, in proportion: 100 % stands for {listed(parts)}." if parts else ""
    )


def _fitted_today(content: Content, names: Names) -> str:
    """Today's gap on the two sorts of people: positions are named after the first, the header says the second."""
    axis, today = _axis(content), content["frontier"]["today"]
    if axis is None:
        return ""
    fitted, these = names.quantities[axis].texts([today["fitted"]["gaps"][axis], today["gaps"][axis]])
    if fitted == these:
        return ""
    return (
        f"Today's gap is {fitted} among those the policies were fitted on, and {these} among these people; "
        "positions are named after the first."
    )


def _columns(content: Content, names: Names) -> dict[str, list[str]]:
    """Every text that changes with the slider, by the name the page gives it: one for each position."""
    line, axis = content["frontier"], _axis(content)
    places, before = line["positions"], line["today"]["loss"]
    moved = [sum(moved_people(place)) for place in places]
    columns = {
        "allowed": proportions([place["tau"] for place in places])
        if axis is None
        else names.quantities[axis].texts([place["allowed"][axis] for place in places]),
        "good": names.goods([place["loss"] for place in places]),
        "change": names.changes([place["loss"] - before for place in places]),
        "price": _prices(content, names),
        "moved": counts_of(moved, sum(group["people"] for group in content["groups"])),
    }
    numbers = [_numbers(content, names, j) for j in range(len(names.quantities))]
    for gaps, _ in numbers:
        columns |= gaps
    flow = flows([table for place in places for table in place["moves"]], names.decisions)
    for z in range(len(names.groups)):
        for j, (_, means) in enumerate(numbers):
            columns[f"mean-{z}-{j}"] = means[z]
        columns[f"flow-{z}"] = flow[z :: len(names.groups)]
    gaps_of = [[place["gaps"][j] for j in names.own] for place in places]
    said = zip(columns["allowed"], columns["good"], names.gaps(gaps_of), strict=True)
    aim = names.aim
    columns["say"] = [f"Allowed gap {allowed}: {aim} {good}, gap {gaps}." for allowed, good, gaps in said]
    return columns


def _numbers(content: Content, names: Names, j: int) -> tuple[dict[str, list[str]], list[list[str]]]:
    """The numbers of one component at every position: allowed, reached and bounded gaps, and each group's mean."""
    line = content["frontier"]
    places = line["positions"]
    numbers = {f"allowed-{j}": [place["allowed"][j] for place in places]}
    numbers[f"gap-{j}"] = [place["gaps"][j] for place in places]
    if _bounded(places):
        bounds = [place["bound"] for place in places]
        numbers[f"bound-{j}"] = [None if bound is None else bound["gaps"][j][1] for bound in bounds]
    means = [[place["means"][z][j] for place in places] for z in range(len(names.groups))]
    every = [*numbers.values(), *means]
    texts = names.quantities[j].cells([number for column in every for number in column])
    written = [texts[i : i + len(places)] for i in range(0, len(texts), len(places))]
    gaps = dict(zip(numbers, written, strict=False))
    if line["ray"][j] is None:
        gaps[f"allowed-{j}"] = ["any"] * len(places)
    return gaps, written[len(numbers) :]


def _prices(content: Content, names: Names) -> list[str]:
    """What closing a little more of the gap costs at every position."""
    axis, places = _axis(content), content["frontier"]["positions"]
    if axis is None:
        size, what = 0.1, "tenth of the gaps"
    else:
        width = content["frontier"]["ray"][axis]
        size = round_step(places[-1]["tau"] / 20) if places[-1]["tau"] else 0.0
        what = f"{names.quantities[axis](size * width)} of gap"
    prices = (place["price"] for place in places)
    return names.prices([None if price is None else price * size for price in prices], what)


def _table_rows(places: list[dict[str, Any]], cells: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Some positions for those who cannot move a slider: those with a name, and some between."""
    n = len(places)
    even = (
        {round(i * (n - 1) / (TABLE_ROWS - 1)) for i in range(TABLE_ROWS)}
        if n > TABLE_ROWS
        else set(range(n))
    )
    kept = sorted(even | {i for i, place in enumerate(places) if place["names"]})
    return [{"names": places[i]["names"], "cells": cells[i]} for i in kept]


def _bounded(places: list[dict[str, Any]]) -> bool:
    return any(place["bound"] is not None for place in places)


def _limits(
    bound: dict[str, Any] | None, ray: list[float | None]
) -> tuple[list[float], list[float], list[float]] | None:
    """Least and largest gaps, and the ends of the loss, when all that the chart shows are known."""
    if bound is None or None in bound["loss"]:
        return None
    if any(None in limits for limits, width in zip(bound["gaps"], ray, strict=True) if width):
        return None
    low, high = ([limits[end] or 0.0 for limits in bound["gaps"]] for end in (0, 1))
    return low, high, bound["loss"]


def _good(loss: float, names: Names) -> float:
    return 1.0 - loss if names.accuracy else loss


def _picture(content: Content, names: Names) -> dict[str, Any]:
    """What the chart of the choice shows."""
    line, axis = content["frontier"], _axis(content)
    ray = line["ray"]

    def reached(gaps: list[float]) -> float:
        if axis is not None:
            return gaps[axis]
        return max(gap / float(width) for gap, width in zip(gaps, ray, strict=True) if width)

    def row(tau: float, found: dict[str, Any]) -> dict[str, float]:
        allowed = tau if axis is None else tau * ray[axis]
        shown = {"allowed": allowed, "good": _good(found["loss"], names)}
        shown["gap"] = reached(found["gaps"])
        shown["good_fitted"] = _good(found["fitted"]["loss"], names)
        shown["gap_fitted"] = reached(found["fitted"]["gaps"])
        limits = _limits(found.get("bound"), ray)
        if limits is not None:
            shown["gap_low"], shown["gap_high"] = (reached(gaps) for gaps in limits[:2])
            shown["good_low"], shown["good_high"] = sorted(_good(loss, names) for loss in limits[2])
        return shown

    if axis is None:
        titles = {"allowed": "gaps allowed, all in proportion", "gap": "gaps on these people"}
    else:
        unit = names.quantities[axis].unit
        unit = "" if not unit else f" ({'%' if unit == 'share' else unit})"
        name = names.components[axis]
        titles = {"allowed": f"gap allowed in {name}{unit}", "gap": f"gap on these people{unit}"}
    shares = axis is None or names.quantities[axis].unit == "share"
    rows = [row(place["tau"], place) for place in line["positions"]]
    if not all("gap_high" in shown for shown in rows):
        known = ("allowed", "good", "gap", "good_fitted", "gap_fitted")
        rows = [{name: shown[name] for name in known} for shown in rows]
    return {
        "rows": rows,
        "today": row(line["today"]["tau"], line["today"]),
        "titles": titles | {"good": names.aim},
        "mixes": line["mixes"],
        "percent": (["good"] if names.accuracy else []) + (["allowed", "gap"] if shares else []),
    }
