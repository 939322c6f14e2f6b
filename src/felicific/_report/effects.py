"""What a position does: the gap, the cost, and who gains and who loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from felicific._audit.flags import FEW
from felicific._audit.quantity import Quantity, count
from felicific._report.charts import Scale, for_axis
from felicific._report.slider import Moving
from felicific._report.words import (
    Content,
    Names,
    Places,
    change_spans,
    changes,
    counts,
    ends,
    estimates,
    share_texts,
    spans,
    texts,
    totals,
    without_unit,
)

#: From so many groups on the card shows the largest only, and how many of them.
MANY, LARGEST = 8, 4


def card(content: Content, names: Names, places: Places, moving: Moving) -> dict[str, Any]:
    """The three columns: the gap, what it costs, who is touched."""
    return {
        "gaps": [_gap(content, names, moving, j) for j in names.shown],
        "cost": _cost(content, names, places, moving),
        "touched": _touched(content, names, moving),
    }


def _compared(content: Content) -> list[str]:
    """What stands behind limits of a change: those of a position that was chosen after looking are wider."""
    return [
        "the same people compared"
        if place["proposed"] or place["baseline"]
        else "the same people compared, all positions at once"
        for place in content["positions"]
    ]


def _gap(content: Content, names: Names, moving: Moving, j: int) -> dict[str, Any]:
    """The gap of one measure by the baseline and by the policy, on one axis, and its paired change."""
    quantity = names.quantities[j]
    baseline, then = content["baseline"]["measures"][j]["gap"], gaps_then(content, j)
    scale = Scale.around(
        estimates([baseline, *then]), [end for pair in ends([baseline, *then]) for end in pair], zero=True
    )
    key = f"gap-{j}"
    moving.add(key, texts(quantity, estimates(then)))
    moving.add(
        f"{key}-span",
        [
            _interval(names.reference.then, text, place["proposed"] or place["baseline"])
            for place, text in zip(content["positions"], spans(quantity, ends(then)), strict=True)
        ],
    )
    moving.add(f"{key}-w", scale.lengths(estimates(then)))
    for end, places in zip("lh", scale.spans(then), strict=True):
        moving.add(f"{key}-{end}", places)
    change = [gap["change"] for gap in then]
    moving.add(f"{key}-change", _changes(content, quantity, change))
    low, high = scale.span(baseline)
    return {
        "name": names.measures[j],
        "key": key,
        "baseline": quantity(baseline["estimate"]),
        "span": _interval(names.reference.name, quantity.span(baseline["low"], baseline["high"])),
        "width": scale.across(baseline["estimate"]),
        "low": low,
        "high": high,
    }


def gaps_then(content: Content, j: int) -> list[Content]:
    """The gap of a measure at every position; that of the baseline, nobody chooses after looking."""
    return [
        place["measures"][j]["gap"]
        if not place["baseline"]
        else place["measures"][j]["gap"] | _limits(content["baseline"]["measures"][j]["gap"])
        for place in content["positions"]
    ]


def _limits(interval: Content) -> Content:
    return {end: interval[end] for end in ("low", "high")}


def _interval(when: str, span: str, alone: bool = True) -> str:
    """An interval above its bar; one of a position that was chosen after looking is wider, and says so."""
    if span == "nothing is known":
        return f"{when}, no interval is known"
    return f"{when}, {span}" if alone else f"{when}, {span}, all positions at once"


def _changes(content: Content, quantity: Any, found: Sequence[Content]) -> list[str]:
    """Paired changes in a sentence each."""
    sized = changes(quantity, estimates(found))
    limits = without_unit(quantity, change_spans(quantity, ends(found)))
    return [
        "No change."
        if place["baseline"] or one["estimate"] == one["low"] == one["high"] == 0
        else f"Change {size}; how sure that is, is not known."
        if one["low"] is None and one["high"] is None
        else f"Change {size} ({span}), {how}."
        for place, one, size, span, how in zip(
            content["positions"], found, sized, limits, _compared(content), strict=True
        )
    ]


def _cost(content: Content, names: Names, places: Places, moving: Moving) -> dict[str, Any]:
    """What a position costs against the baseline, against the best such policy, and what a smaller gap would."""
    positions = content["positions"]
    baseline, best = ([place[which] for place in positions] for which in ("cost_baseline", "cost_best"))
    moving.add("cost", names.cost_texts(estimates(baseline)))
    limits = names.cost_spans(ends(baseline))
    moving.add(
        "cost-span",
        [
            f"These are {names.reference.of('decisions')}."
            if place["baseline"]
            else f"Against {names.reference.whole}; how sure that is, is not known."
            if cost["low"] is None and cost["high"] is None
            else f"Against {names.reference.whole} ({span}), {how}."
            for place, cost, span, how in zip(positions, baseline, limits, _compared(content), strict=True)
        ],
    )
    moving.add("cost-best", names.cost_texts(estimates(best)))
    moving.add(
        "cost-best-span",
        [
            "" if cost["low"] is None and cost["high"] is None else span
            for cost, span in zip(best, names.cost_spans(ends(best)), strict=True)
        ],
    )
    moving.add("good", names.goods([place["loss"] for place in positions]))
    moving.add("price", _prices(content, names, places))
    loss = content["baseline"]["loss"]
    blindness = content["policy"]["blindness"]
    return {
        "unit": names.cost_unit,
        "aim": names.aim,
        "baseline": "" if loss is None else names.goods([loss["estimate"]])[0],
        "blindness": "" if blindness is None else names.cost_texts([blindness])[0],
    }


def _prices(content: Content, names: Names, places: Places) -> list[str]:
    """What closing a little more of the gap costs at every position, on the people that the policies were fitted to."""
    prices = [place["price"] for place in content["positions"]]
    factor = places.little * names.cost_factor
    sizes = [price * factor for price in prices if price is not None and price > 0]
    quantity = Quantity.of("", (), sizes)
    written = changes(quantity, [None if price is None else price * factor for price in prices])
    return [
        f"these are {names.reference.of('decisions')}"
        if place["baseline"]
        else "no policy has a smaller one"
        if price is None
        else "nothing"
        if price <= 0
        else f"{text} per {places.little_text}"
        for place, price, text in zip(content["positions"], prices, written, strict=True)
    ]


def _touched(content: Content, names: Names, moving: Moving) -> dict[str, Any]:
    """Who is better off and who worse, in all and in the largest groups; who gets another decision, and at random."""
    positions, people = content["positions"], [group["people"] for group in content["groups"]]
    order = sorted(range(len(people)), key=lambda z: -people[z])
    kept = order if len(order) < MANY else order[:LARGEST]
    found = [("touched", "", order), *((f"touched-{z}", names.groups[z], [z]) for z in kept)]
    if len(kept) < len(order):
        found.append(("touched-rest", f"{len(order) - len(kept)} more groups", order[len(kept) :]))
    for key, _, groups in found:
        for way, which in (("better", "gain"), ("worse", "lose")):
            numbers = totals([[place[way][z] for z in groups] for place in positions])
            moving.add(f"{key}-{which}", counts(numbers))
    for key in ("changed", "randomized"):
        touched = [sum(place[key]) for place in positions]
        moving.add(key, counts(touched))
        moving.add(f"{key}-share", share_texts(touched, sum(people)))
    return {
        "rows": [
            {"name": name, "of": count(sum(people[z] for z in groups)), "key": key}
            for key, name, groups in found[1:]
        ],
        "people": count(sum(people)),
    }


# ---------------------------------------------------------------------------------------------------------
# Who gains, who loses


def who(content: Content, names: Names, moving: Moving) -> dict[str, Any]:
    """Lanes of every group for the measures that are shown, tables for the others, bars for who loses."""
    parts = content["measures"]
    losing = [j for j, part in enumerate(parts) if part["tells_who"]]
    # What has no gap and tells nobody's loss is who is counted.
    folded = [*names.folded, *(j for j in range(len(parts)) if j not in {*names.own, *losing})]
    return {
        "lanes": [_lanes(content, names, moving, j) for j in names.shown],
        "folded": [_table(content, names, moving, j) for j in folded],
        "aside": [_bars(content, names, moving, j) for j in losing if j not in names.own],
        "bounds": any("bounds" in mean for part in content["baseline"]["measures"] for mean in part["means"]),
    }


def by_baseline(content: Content, j: int) -> list[int]:
    """Groups from the highest mean of the baseline to the lowest; those of whom nothing is known last."""
    means = estimates(content["baseline"]["measures"][j]["means"])
    return sorted(
        range(len(means)),
        key=lambda z: (means[z] is None, -(means[z] or 0.0) if means[z] is not None else 0, z),
    )


def scale_of_means(parts: Sequence[Content], *, zero: bool = False) -> Scale:
    """An axis for some groups' means with their intervals and what hidden reasons leave open."""
    means = [mean for part in parts for mean in part["means"]]
    left = [end for mean in means for end in mean.get("bounds", ())]
    return Scale.around(
        [*estimates(means), *left], [end for pair in ends(means) for end in pair], zero=zero, room=0.03
    )


def _lanes(content: Content, names: Names, moving: Moving, j: int) -> dict[str, Any]:
    """One measure: two bars for the gap, and a lane for every group."""
    quantity, positions = names.quantities[j], content["positions"]
    baseline, then = content["baseline"]["measures"][j], [place["measures"][j] for place in positions]
    scale = scale_of_means([baseline, *then])
    compared = [z for z, group in enumerate(content["groups"]) if group["compared"]]
    key = f"who-{j}"
    for end, places in zip("xw", gap_bars(scale, then, compared), strict=True):
        moving.add(f"{key}-{end}", places)
    moving.add(f"{key}-gap", texts(quantity, [part["gap"]["estimate"] for part in then]))
    return {
        "name": names.measures[j],
        "key": key,
        "baseline": quantity(baseline["gap"]["estimate"]),
        "bar": [places[0] for places in gap_bars(scale, [baseline], compared)],
        "ticks": scale.ticks(for_axis(quantity), 5),
        "rows": [_lane(content, names, moving, scale, j, z) for z in by_baseline(content, j)],
    }


def gap_bars(scale: Scale, parts: Sequence[Content], compared: Sequence[int]) -> tuple[list[str], list[str]]:
    """From the lowest mean to the highest: where every bar begins, and how wide it is."""
    rows = [
        [part["means"][z]["estimate"] for z in compared if part["means"][z]["estimate"] is not None]
        for part in parts
    ]
    return scale.reaches([(min(means), max(means)) if means else None for means in rows])


def _lane(content: Content, names: Names, moving: Moving, scale: Scale, j: int, z: int) -> dict[str, Any]:
    """One group: a ring for the baseline, an arrow to then, the interval below."""
    quantity = names.quantities[j]
    baseline = content["baseline"]["measures"][j]["means"][z]
    then = [place["measures"][j]["means"][z] for place in content["positions"]]
    key = f"who-{j}-{z}"
    start = scale.across(baseline["estimate"])
    # A group of whom nothing is known then stays where it is.
    means = [baseline["estimate"] if mean["estimate"] is None else mean["estimate"] for mean in then]
    moving.add(f"{key}-x", scale.lengths(means))
    moving.add(f"{key}-way", [_way(baseline, mean, quantity) for mean in then])
    for end, found in zip("lh", scale.spans(then), strict=True):
        moving.add(f"{key}-{end}", found)
    moving.add(f"{key}-mean", texts(quantity, estimates(then)))
    moving.add(f"{key}-change", _short_changes(quantity, then))
    moving.add(f"{key}-span", _intervals(quantity, then))
    for which in ("gain", "lose"):
        moving.add(f"{key}-{which}", counts([mean[which] for mean in then]))
    opened = [mean.get("bounds") for mean in then]
    if any(opened):
        for end, found in zip("bw", scale.reaches(opened), strict=True):
            moving.add(f"{key}-{end}", found)
        moving.add(f"{key}-open", spans(quantity, [bounds or (None, None) for bounds in opened]))
    return {
        "name": names.groups[z],
        "people": count(content["groups"][z]["people"]),
        "note": group_note(content, baseline, z),
        "key": key,
        "told": any(mean["gain"] is not None for mean in then),
        "baseline": quantity(baseline["estimate"]),
        "span": _intervals(quantity, [baseline])[0],
        "x": start,
        "open": any(opened),
    }


def group_note(content: Content, mean: Content, z: int) -> str:
    """Why a group's numbers say little, if they do."""
    if not content["groups"][z]["compared"]:
        return "not compared"
    counted = mean.get("n")
    return "too few" if (content["groups"][z]["people"] if counted is None else counted) < FEW else ""


def _way(baseline: Content, then: Content, quantity: Any) -> str:
    """Whether a group gains or loses; what is too little to be written is neither."""
    if None in (baseline["estimate"], then["estimate"]):
        return "same"
    change = then["estimate"] - baseline["estimate"]
    return "same" if abs(change) < quantity.step / 2 else "gains" if change > 0 else "loses"


def _short_changes(quantity: Any, means: Sequence[Content]) -> list[str]:
    """Paired changes with their limits, for a line beside a lane."""
    found = [mean["change"] for mean in means]
    return [
        "no change"
        if one["estimate"] == one["low"] == one["high"] == 0
        else size
        if one["low"] is None and one["high"] is None
        else f"{size} ({span})"
        for one, size, span in zip(
            found,
            changes(quantity, estimates(found)),
            without_unit(quantity, change_spans(quantity, ends(found))),
            strict=True,
        )
    ]


def _intervals(quantity: Any, means: Sequence[Content]) -> list[str]:
    return [
        "" if mean["low"] is None and mean["high"] is None else text
        for mean, text in zip(means, without_unit(quantity, spans(quantity, ends(means))), strict=True)
    ]


def _table(content: Content, names: Names, moving: Moving, j: int) -> dict[str, Any]:
    """A measure that is folded: the same numbers as a table."""
    quantity, positions = names.quantities[j], content["positions"]
    baseline, then = content["baseline"]["measures"][j], [place["measures"][j] for place in positions]
    rows = []
    for z in by_baseline(content, j):
        means, key = [part["means"][z] for part in then], f"fold-{j}-{z}"
        moving.add(f"{key}-mean", texts(quantity, estimates(means)))
        moving.add(f"{key}-change", _short_changes(quantity, means))
        rows.append(
            {
                "name": names.groups[z],
                "baseline": quantity(baseline["means"][z]["estimate"]),
                "key": key,
                "total": False,
            }
        )
    if baseline["gap"] is not None:
        key, gaps = f"fold-{j}-gap", [part["gap"] for part in then]
        moving.add(f"{key}-mean", texts(quantity, estimates(gaps)))
        moving.add(f"{key}-change", _short_changes(quantity, gaps))
        rows.append(
            {"name": "gap", "baseline": quantity(baseline["gap"]["estimate"]), "key": key, "total": True}
        )
    return {"name": names.measures[j], "rows": rows}


def _bars(content: Content, names: Names, moving: Moving, j: int) -> dict[str, Any]:
    """Who gets less than from the baseline: a share of every group, from nobody on."""
    quantity = names.quantities[j]
    then = [place["measures"][j] for place in content["positions"]]
    scale, rows = scale_of_means(then, zero=True), []
    for z, group in enumerate(names.groups):
        means, key = [part["means"][z] for part in then], f"aside-{j}-{z}"
        moving.add(f"{key}-w", scale.lengths(estimates(means)))
        for end, places in zip("lh", scale.spans(means), strict=True):
            moving.add(f"{key}-{end}", places)
        moving.add(f"{key}-mean", texts(quantity, estimates(means)))
        moving.add(f"{key}-span", _intervals(quantity, means))
        rows.append({"name": group, "people": count(content["groups"][z]["people"]), "key": key})
    return {"name": names.measures[j], "ticks": scale.ticks(for_axis(quantity), 5), "rows": rows}
