"""The choice between positions: what a smaller gap costs, and what is promised of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from felicific._audit.names import clean
from felicific._audit.quantity import SHARE, Quantity, count, percent
from felicific._problem.happiness import CURRENCIES
from felicific._report.charts import Scale, band_path, label_width, line_path
from felicific._report.effects import gaps_then
from felicific._report.slider import Moving, strip, track
from felicific._report.words import Content, Names, Places, confidence_text, ends, spans, texts


def choice(content: Content, names: Names, places: Places, moving: Moving) -> dict[str, Any]:
    """Panels of the cost and of every gap that is shown, against the baseline, with a mark where the slider stands."""
    positions = content["positions"]
    # A mark at either end is not cut.
    at = [3 + 94 * x for x in track(positions)]
    moving.add("cursor", [f"{x:.2f}%" for x in at])
    factor = names.cost_factor
    cost = _panel(
        content,
        moving,
        "cost",
        names.cost_unit[:1].upper() + names.cost_unit[1:] + f", against {names.reference.whole}",
        names.costs,
        [_scaled(place["cost_baseline"]["estimate"], factor) for place in positions],
        [_limits(place["every"] and place["every"]["cost"], factor) for place in positions],
        at,
    )
    kinds = dict.fromkeys(place["verdict"]["kind"] for place in positions)
    return {
        "panels": [cost, *(_gap_panel(content, names, moving, j, at) for j in names.shown)],
        "strip": strip(positions, track(positions)),
        "kinds": [(kind, names.two_words[kind]) for kind in kinds],
        "ends": [places.short[0], places.last],
        "banded": any(place["every"] is not None for place in positions),
        "notes": _notes(content, names, places),
    }


def _scaled(number: float | None, factor: float) -> float | None:
    return None if number is None else number * factor


def _limits(pair: Sequence[float | None] | None, factor: float) -> list[float] | None:
    if pair is None or pair[0] is None or pair[1] is None:
        return None
    return [pair[0] * factor, pair[1] * factor]


def _gap_panel(content: Content, names: Names, moving: Moving, j: int, at: Sequence[float]) -> dict[str, Any]:
    """The gap of one measure against the baseline; a unit that follows numbers stands in the title instead."""
    quantity, positions = names.quantities[j], content["positions"]
    factor = 100.0 if quantity.unit == SHARE else 1.0
    unit = quantity.unit if quantity.unit in CURRENCIES else ""
    what = "" if len(names.shown) == 1 else f" in {names.measures[j].said}"
    named = "points" if quantity.unit == SHARE else "" if unit else quantity.unit
    return _panel(
        content,
        moving,
        f"gap-{j}",
        f"Gap{what} on these people, against {names.reference.whole}" + (f", in {named}" if named else ""),
        Quantity(unit, quantity.step * factor),
        [_scaled(place["measures"][j]["gap"]["change"]["estimate"], factor) for place in positions],
        [_limits(place["every"] and place["every"]["gaps"][j], factor) for place in positions],
        at,
    )


def _panel(
    content: Content,
    moving: Moving,
    key: str,
    title: str,
    quantity: Quantity,
    values: Sequence[float | None],
    limits: Sequence[list[float] | None],
    at: Sequence[float],
) -> dict[str, Any]:
    """One panel: a band and a line through all policies, a ring for the baseline, and a mark that moves."""
    scale = Scale.around([*values, 0.0], [end for pair in limits for end in pair or ()], room=0.07)
    ys = _down(scale, [value or 0.0 for value in values])
    # The baseline's decisions are no policy of the line: they are the ring.
    on = [
        i for i, place in enumerate(content["positions"]) if not place["baseline"] and values[i] is not None
    ]
    steps = not content.get("mixes", True)
    sides = [_down(scale, [(limits[i] or (0.0, 0.0))[side] for i in on]) for side in (0, 1)]
    drawn = [
        None if limits[i] is None else pair for i, pair in zip(on, zip(*sides, strict=True), strict=True)
    ]
    ticks = [
        (round(100.0 - tick.place, 2), tick.text, tick.zero) for tick in scale.ticks(quantity, change=True)
    ]
    moving.add(f"mark-{key}", [f"{y:.2f}%" for y in ys])
    zero = _down(scale, [0.0])[0]
    return {
        "key": f"mark-{key}",
        "title": title,
        "ticks": ticks,
        "width": label_width(text for _, text, _ in ticks),
        "band": band_path([at[i] for i in on], drawn, steps=steps),
        "line": line_path([at[i] for i in on], [ys[i] for i in on], steps=steps),
        "baseline": (round(at[-1], 2), round(zero, 2), -12 if zero > 80 else 21),
    }


def _down(scale: Scale, numbers: Sequence[float]) -> list[float]:
    """Where numbers lie from the top of a panel."""
    return [100.0 - place for place in scale.places(numbers)]


def _notes(content: Content, names: Names, places: Places) -> list[str]:
    """What a reader of the panels has to know."""
    found = [places.whole] if places.whole else []
    if not any(place["every"] for place in content["positions"]):
        found.append("There is no band: it is not known what holds at all positions at once.")
        if not content["policy"]["randomize"]:
            found[-1] = (
                "There is no band: rounded decisions are no mixtures, so nothing holds at all positions at once."
            )
    fitted = [
        f"{quantity(there)}; among these it is {quantity(here)}"
        for j in names.shown
        if (quantity := names.quantities[j])(there := content["fitted_baseline"][j])
        != quantity(here := content["baseline"]["measures"][j]["gap"]["estimate"])
    ]
    if fitted and len(names.shown) == 1:
        found.append(
            f"Among the people that the policies were fitted to, {names.reference.of('gap')} is {fitted[0]}. "
            "So a gap aimed at is not the gap found."
        )
    return found


# ---------------------------------------------------------------------------------------------------------
# What is promised


def promise(content: Content, names: Names, moving: Moving) -> dict[str, Any]:
    """Four statements about the gaps at a position, from the weakest to the strongest."""
    positions, sure = content["positions"], confidence_text(content)
    people = count(sum(group["people"] for group in content["groups"]))
    for j in [*names.shown, *names.folded]:
        _stated(content, names, moving, j)
    moving.add(
        "interval-for",
        [
            f"people like these, decided as {names.reference.name}"
            if place["baseline"]
            else "people like these, at a position chosen before looking"
            if place["proposed"]
            else "people like these, all positions at once"
            for place in positions
        ],
    )
    band = "people like these, at any position, also one chosen after looking"
    banded = any(place["every"] or place["measures"][0]["bound"] is not None for place in positions)
    return {
        "columns": names.shown,
        "folded": names.folded,
        "names": names.measures,
        "sure": sure,
        "found": f"these {people} people",
        "band": band if banded else "no band is known; the chart above says why",
        "certificate": _certificate(content, names, moving),
    }


def _stated(content: Content, names: Names, moving: Moving, j: int) -> None:
    """What is found, with its interval and its band."""
    quantity = names.quantities[j]
    gaps = gaps_then(content, j)
    bounds = [place["measures"][j]["bound"] for place in content["positions"]]
    none = f"none {names.reference.name}"
    moving.add(f"found-{j}", texts(quantity, [gap["estimate"] for gap in gaps]))
    moving.add(f"interval-{j}", spans(quantity, ends(gaps)))
    moving.add(
        f"band-{j}",
        [
            f"at most {text}" if bound is not None else none if place["baseline"] else "none"
            for place, bound, text in zip(content["positions"], bounds, texts(quantity, bounds), strict=True)
        ],
    )


def _bound(quantity: Quantity, number: float) -> str:
    """A bound as somebody gave it; one that was computed is rounded up, since it is to hold."""
    if float(f"{number:.4g}") == number:
        return quantity.given(number)
    return quantity(math.ceil(number / quantity.step) * quantity.step)


def _certificate(content: Content, names: Names, moving: Moving) -> dict[str, Any] | None:
    """The certificate holds at its own position, and is struck through at every other one."""
    found = content["certificate"]
    if found is None or found["basis"] == "none":
        return None
    own, n = content["certified"], len(content["positions"])
    held = "the policy as fitted, tested on people that were held out"
    if found["basis"] == "a priori":
        held = "the policy as fitted, whichever of its kind had been chosen"
    if found.get("smallest"):
        held += f", {count(found['smallest'])} or more of every group"
    another = "another position: the certificate is of the proposed policy only"
    # One that promises no less than the baseline's gap is none, also where it belongs.
    idle = f"the policy as fitted, but it promises no less than {names.reference.of('gap')}"
    said = [("on", held) if i == own else ("off", another) for i in range(n)]
    if own is None:
        said[content["proposed"]] = ("none", idle)
    moving.add("certificate", [how for how, _ in said])
    moving.add("certificate-for", [whom for _, whom in said])
    parts = content["measures"]
    return {
        "gaps": {
            j: f"at most {_bound(names.quantities[j], gap)}"
            if (gap := found["gaps"].get(parts[j]["name"])) is not None
            else "nothing"
            for j in names.own
        },
        "sure": percent(found["confidence"], 0 if found["confidence"] * 100 % 1 < 1e-9 else 2),
        "sentence": clean(found["sentence"], 900),
    }
