"""The card of a report about amounts: the gap, what it costs, and who gets more or less than today."""

from __future__ import annotations

from typing import Any

from felicific._audit.quantity import Quantity, count
from felicific.report.charts import Scale
from felicific.report.effects import LARGEST, MANY
from felicific.report.words import Content, Names, share_texts


def card(content: Content, names: Names) -> dict[str, Any]:
    """The three columns: the gap, what it costs, who is touched."""
    parts = content["components"]
    own = [j for j in names.alone if parts[j]["closed"]] or names.alone[:1]
    return {
        "gaps": [_gap(content, names, j) for j in own[:3]],
        "cost": _cost(content, names),
        "touched": _touched(content, names),
    }


def _gap(content: Content, names: Names, j: int) -> dict[str, Any]:
    """One gap today and then, on one axis, with its change."""
    quantity, points = names.quantities[j], content["points"]
    today, then = (points[name]["components"][j]["gap"] for name in ("today", "proposed"))
    change = content["changes"]["components"][j]["gap"]
    ends = [one[end] for one in (today, then) for end in ("low", "high")]
    scale = Scale.around([today["estimate"], then["estimate"]], ends, zero=True)
    bars = []
    for words, one in (("today", today), ("then", then)):
        low, high = scale.span(one)
        span = quantity.span(one["low"], one["high"])
        bars.append((words, f"{words}, {span}", scale.across(one["estimate"]), low, high))
    paired = "" if content["components"][j]["parity"] else ", the same people compared"
    return {
        "name": names.components[j],
        "today": quantity(today["estimate"]),
        "then": quantity(then["estimate"]),
        "bars": bars,
        "change": f"{_change(quantity, change)}{paired}.",
    }


def _change(quantity: Quantity, change: Content) -> str:
    span = quantity.change_span(change["low"], change["high"])
    return f"Change {quantity.change(change['estimate'])} ({span})"


def _cost(content: Content, names: Names) -> dict[str, Any]:
    """What is lost, in the label's unit where that has a meaning, and against what."""
    loss, points, changes = content["loss"], content["points"], content["changes"]
    mean = Quantity("", loss["step"])
    rows = []
    if loss["root"]:
        quantity, key, title = root_quantity(content), "root", "root mean squared error"
        change, best = changes["root_cost"], changes["root_cost_free"]
        was, then = (mean(points[name]["loss"]["estimate"]) for name in ("today", "proposed"))
        rows.append((loss["title"], then, f"today {was}"))
    else:
        quantity, key, title = mean, "loss", loss["title"]
        change, best = changes["cost"], changes["cost_free"]
    prices = [
        (f"price of a gap smaller by {unit} in {names.components[j].said}, where it was fitted", text)
        for j, unit, text in _prices(content, names)
    ]
    known = change is not None and points["today"][key] is not None
    return {
        "title": title,
        "today": quantity(points["today"][key]["estimate"]) if known else "",
        "then": quantity(points["proposed"][key]["estimate"]) if known else "not known",
        "change": f"{_change(quantity, change)}, the same people compared." if known else "",
        "best": quantity.change(best["estimate"]) if best else "not known",
        "best_span": quantity.change_span(best["low"], best["high"]) if best else "",
        "rows": rows,
        "prices": prices,
    }


def root_quantity(content: Content) -> Quantity:
    """How roots of squared errors are written."""
    return Quantity(content["loss"]["root_unit"], content["loss"]["root_step"])


def _prices(content: Content, names: Names) -> list[tuple[int, str, str]]:
    """What a gap that is smaller by a little costs, where that is known and not nothing."""
    places = {part["name"]: j for j, part in enumerate(content["components"])}
    found = []
    for name, price in content["policy"]["prices"]:
        if name not in places or price is None:
            continue
        j = places[name]
        share = names.quantities[j].unit == "share"
        size = price * (0.01 if share else 1.0)
        text = "nothing" if size == 0 else Quantity.of("", (), [size]).change(size)
        found.append(
            (
                j,
                "a point" if share else names.quantities[j].given(1.0),
                f"{text} of {content['loss']['title']}",
            )
        )
    return found


def _touched(content: Content, names: Names) -> dict[str, Any]:
    """Who gets more than today, and who gets less."""
    groups = content["groups"]
    order = sorted(range(len(groups)), key=lambda z: -groups[z]["people"])
    shown = sorted(order[:LARGEST]) if len(order) >= MANY else range(len(order))
    people = sum(group["people"] for group in groups)
    more, less = (sum(group[way] for group in groups) for way in ("more", "less"))
    rows = []
    for z in shown:
        group = groups[z]
        shares = share_texts([group["more"], group["less"]], group["people"])
        rows.append((names.groups[z], count(group["people"]), *shares))
    return {
        "more": count(more),
        "less": count(less),
        "people": count(people),
        "rows": rows,
        "hidden": len(groups) - len(rows),
        "lots": count(content["lots"]),
        "lots_share": share_texts([content["lots"]], people)[0] if content["lots"] else "",
    }
