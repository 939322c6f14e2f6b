"""The words of a report: from numbers to what stands on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from felicific._problem.criteria import CRITERIA
from felicific.plots import clean, labels
from felicific.report.content import round_step
from felicific.report.words import Quantity, count, listed, percent, points, proportion

Content = dict[str, Any]

KINDS = {
    "score": "the model's score",
    "label": "the label that the model predicts",
    "soft-label": "a label drawn from the model's probabilities",
    "individual": "everything that is known about a person",
}

#: Most flows from one decision to another that are spelled out for a group.
FLOWS = 4

#: Rows of the table of positions, besides those with a name.
TABLE_ROWS = 9


@dataclass(frozen=True)
class Names:
    """How things are called and numbers are written in one report."""

    groups: list[str]
    decisions: list[str]
    components: list[str]
    quantities: list[Quantity]
    accuracy: bool

    @classmethod
    def of(cls, content: Content) -> Names:
        """Names without anything a page could trip over, and as many decimals as the gaps deserve."""
        scales: dict[str, float] = {}
        for j, component in enumerate(content["components"]):
            parts = [content[when]["components"][j] for when in ("today", "after") if when in content]
            sizes = [abs(mean["estimate"]) for part in parts for mean in part["means"]]
            scale = max(part["gap"]["estimate"] for part in parts) or max(sizes)
            scales[component["unit"]] = max(scale, scales.get(component["unit"], 0.0))
        quantities = [
            Quantity.of(clean(component["unit"], 28) if component["unit"] else "", scales[component["unit"]])
            for component in content["components"]
        ]
        return cls(
            labels(group["name"] for group in content["groups"]),
            labels(content.get("decisions", ())),
            labels(component["title"] for component in content["components"]),
            quantities,
            content.get("loss", "error") == "error",
        )

    def good(self, loss: float) -> str:
        """The loss, or the accuracy if that is what is lost."""
        return percent(1.0 - loss) if self.accuracy else f"{loss:,.4g}"

    @property
    def heads(self) -> list[str]:
        """Components as headings of tables, with the unit where the numbers do not say it."""
        return [name + q.heading for name, q in zip(self.components, self.quantities, strict=True)]

    @property
    def aim(self) -> str:
        """What the decision maker wants."""
        return "accuracy" if self.accuracy else "loss per person"


def make_view(content: Content) -> dict[str, Any]:
    """Everything the template shows, as text."""
    names = Names.of(content)
    chosen = content["kind"] == "choice"
    ways = [("today", content["today"])] + ([("under the policy", content["after"])] if chosen else [])
    view: dict[str, Any] = {
        "title": _title(content, names),
        "names": names,
        "chosen": chosen,
        "ways": ways,
        "answers": _answers(content, names),
        "about": _about(content, names),
        "measures": _measures(content, names),
        "people": [
            (name, count(g["people"])) for name, g in zip(names.groups, content["groups"], strict=True)
        ],
        "tables": [_means_table(content, ways, names, j) for j in range(len(names.components))],
        "sure": _sure(ways, names),
        "caveats": _caveats(content, ways, names),
        "certificate": _certificate(content),
        "versions": list(content["reproduce"]["versions"].items()),
        "fingerprint": content["reproduce"]["fingerprint"],
        "command": content["reproduce"]["command"],
        "confidence": percent(content["confidence"], 0 if content["confidence"] * 100 % 1 < 1e-9 else 2),
    }
    return view | (_choice(content, names) if chosen else {})


# ---------------------------------------------------------------------------------------------------------
# What is decided, about whom


def _title(content: Content, names: Names) -> str:
    if content["title"] is not None:
        return clean(content["title"], 120)
    found = names.components
    what = found[0] if len(found) == 1 else listed(found) if len(found) < 4 else f"{len(found)} measures"
    stems = {component["name"].split("(")[0] for component in content["components"]}
    if len(stems) == 1 and stems <= CRITERIA.keys():
        what = stems.pop().replace("_", " ")
    by = content.get("grouped_by")
    return what[0].upper() + what[1:] + (f" by {clean(by)}" if by else f" in {len(names.groups)} groups")


def _about(content: Content, names: Names) -> list[str]:
    total = sum(group["people"] for group in content["groups"])
    by = f" by {clean(content['grouped_by'])}" if content.get("grouped_by") else ""
    whom = f"{count(total)} people in {len(names.groups)} groups{by}"
    if content["kind"] == "audit":
        return [f"Decisions about {whom} were audited."]
    model = f"A model ({clean(content['model'])})" if content["model"] else "A model"
    policy, allowed = content["policy"], content["policy"]["gaps_allowed"]
    sees = KINDS[policy["kind"]]
    sees = f"the group and {sees}" if policy["see_group"] else f"{sees}, not the group"
    found = [
        f"{model} decides about every person: {listed(names.decisions, 'or')}. This report is about {whom}.",
        f"A policy changes those decisions as little as needed to bring the groups together. It sees {sees}. "
        + ("Some people's decision is then drawn by lottery, with odds that the policy states." if policy["randomize"]
           else "Nobody's decision is drawn by lottery."),
    ]  # fmt: skip
    if allowed is not None:
        wanted = [
            f"{names.quantities[j](float(allowed[c['name']]))} in {names.components[j]}"
            for j, c in enumerate(content["components"])
            if allowed.get(c["name"]) is not None
        ]
        if 0 < len(wanted) <= 6:
            found.append(f"The proposed policy was asked for a gap of at most {listed(wanted)}.")
    if policy["constraints"]:
        found.append(f"It must also meet: {'; '.join(clean(text, 200) for text in policy['constraints'])}.")
    aim = "accuracy, the share of decisions that equal the true label" if names.accuracy else "a small loss"
    found.append(f"What the decision maker wants is {aim}.")
    return found


def _measures(content: Content, names: Names) -> list[dict[str, str]]:
    """What happiness means here."""
    return [
        {
            "name": name,
            "unit": {"share": "a share, in per cent"}.get(component["unit"], clean(component["unit"], 28))
            if component["unit"]
            else "",
            "words": clean(component["words"], 400)
            if component["words"] not in ("", component["name"])
            else "",
            "among": clean(component["among"], 200) if component["among"] else "",
        }
        for name, component in zip(names.components, content["components"], strict=True)
    ]


# ---------------------------------------------------------------------------------------------------------
# The four questions


def _answers(content: Content, names: Names) -> list[dict[str, Any]]:
    today, chosen = content["today"], content["kind"] == "choice"
    gaps = [part["gap"] for part in today["components"]]
    several = len(gaps) > 1

    def each(numbers: list[str]) -> list[str]:
        found = [f"{name}: {text}" for name, text in zip(names.components, numbers, strict=True)]
        return found if several else numbers

    found = [
        {
            "question": "What is the gap today?",
            "answer": each([q(gap["estimate"]) for q, gap in zip(names.quantities, gaps, strict=True)]),
            "detail": _between_whom(content, names) if not several else "",
        }
    ]
    if chosen:
        found += [_halving(content, names), _who(content, names)]
    last = [part["gap"] for part in content["after" if chosen else "today"]["components"]]
    shown = f", here {names.quantities[0](last[0]['estimate'])}" if chosen and not several else ""
    which, sure = "under the proposed policy" if chosen else "today", percent(content["confidence"], 0)
    found.append(
        {
            "question": "How sure are we?",
            "answer": each(
                [q.span(g["low"], g["high"]) for q, g in zip(names.quantities, last, strict=True)]
            ),
            "detail": f"The gap {which}{shown}, with {sure} confidence, on people like these.",
        }
    )
    return found


def _between_whom(content: Content, names: Names) -> str:
    means = content["today"]["components"][0]["means"]
    order = sorted(range(len(means)), key=lambda z: means[z]["estimate"])
    quantity = names.quantities[0]
    ends = [f"{names.groups[z]} {quantity(means[z]['estimate'])}" for z in (order[-1], order[0])]
    return f"Mean {names.components[0]}: {listed(ends)}."


def _halving(content: Content, names: Names) -> dict[str, Any]:
    line = content["frontier"]
    half = next(place for place in line["positions"] if "half of today's gap" in place["names"])
    before, after = line["today"]["loss"], half["loss"]
    cost, now = after - before, line["today"]["gaps"]
    size = points(cost) + " of accuracy" if names.accuracy else f"{cost:,.4g} per person"
    gaps = [f"{q(gap)}" for q, gap in zip(names.quantities, half["gaps"], strict=True)]
    what = "Right decisions" if names.accuracy else "Loss per person"
    sizes = f"{what}: {names.good(before)} today, {names.good(after)}"
    detail, answer = f"{sizes} with half the gap.", size if cost > 0 else "Nothing"
    if len(gaps) == 1 and half["gaps"][0] <= now[0] / 2 * 1.005:
        detail += f" The gap on these people is then {gaps[0]}."
    elif len(gaps) == 1:
        less = half["gaps"][0] < now[0]
        detail = f"{sizes} under the policy that halves the gap of the people it was fitted on. "
        detail += f"On these people, who are others, the gap is then {gaps[0]}, {'not half' if less else 'no smaller'}."
        answer = answer if less else "Here the gap does not shrink"
    if not any(now):
        answer, detail = "There is none", "On these people there is no gap today."
    return {"question": "What does halving it cost?", "answer": [answer], "detail": detail}


def _who(content: Content, names: Names) -> dict[str, Any]:
    place = next(place for place in content["frontier"]["positions"] if "proposed policy" in place["names"])
    moved = [_moved(table) for table in place["moves"]]
    total = sum(group["people"] for group in content["groups"])
    most = sorted(range(len(moved)), key=lambda z: -moved[z])[:3]
    flows = [
        f"{names.groups[z]}: {_flows(place['moves'][z], names.decisions, 2)}" for z in most if moved[z] > 0
    ]
    return {
        "question": "Who changes?",
        "answer": [f"{count(sum(moved))} of {count(total)} people"],
        "detail": "Under the proposed policy. " + " ".join(f"{flow}." for flow in flows),
    }


def _moved(table: list[list[float]]) -> float:
    """How many people of a group get another decision."""
    return sum(number for a, row in enumerate(table) for d, number in enumerate(row) if a != d)


def _flows(table: list[list[float]], decisions: list[str], most: int = FLOWS) -> str:
    """From which decision to which, the largest first."""
    found = [
        (number, a, d)
        for a, row in enumerate(table)
        for d, number in enumerate(row)
        if a != d and number > 1e-6
    ]
    found.sort(key=lambda flow: (-flow[0], flow[1], flow[2]))
    texts = [f"{count(number)} from {decisions[a]} to {decisions[d]}" for number, a, d in found[:most]]
    rest = sum(number for number, _, _ in found[most:])
    return ", ".join(texts + ([f"{count(rest)} in other ways"] if rest else [])) or "nobody"


# ---------------------------------------------------------------------------------------------------------
# Groups


def _means_table(content: Content, ways: list[Any], names: Names, j: int) -> dict[str, Any]:
    """Means and intervals of one component: a row per group, and one for the gap."""
    quantity = names.quantities[j]
    change = content.get("change")

    def cells(pick: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, str]]:
        found = [pick(audit["components"][j]) for _, audit in ways]
        shown = [(quantity(part["estimate"]), quantity.span(part["low"], part["high"])) for part in found]
        if change is not None:
            part = pick(change["components"][j])
            moved = quantity.difference
            shown.append((moved.change(part["estimate"]), moved.span(part["low"], part["high"])))
        return [{"number": number, "span": span} for number, span in shown]

    rows = [
        {"name": group, "cells": cells(lambda part, z=z: part["means"][z])}  # type: ignore[misc]  # a default
        for z, group in enumerate(names.groups)
    ]
    columns = [way for way, _ in ways] + ([] if change is None else ["change"])
    gap = {"name": "gap", "cells": cells(lambda part: part["gap"])}
    return {"name": names.components[j], "ways": columns, "rows": rows, "gap": gap}


def _certificate(content: Content) -> str:
    """What was certified, if something was; cut where a name in it is endless."""
    found = content.get("certificate")
    return "" if found is None or found["basis"] == "none" else clean(_said(content, found["sentence"]), 900)


def _said(content: Content, text: str) -> str:
    """A sentence of the library with components called as on this page."""
    for component in content["components"]:
        text = text.replace(repr(component["name"]), repr(component["title"]))
    return text


def _sure(ways: list[Any], names: Names) -> list[str]:
    """How the intervals were made, and what chance alone would show."""
    found = []
    for j, name in enumerate(names.components):
        parts = [audit["components"][j] for _, audit in ways]
        methods = sorted({mean["method"] for part in parts for mean in part["means"]})
        gaps = sorted({part["gap"]["method"] for part in parts})
        text = f"{name}: group means by {listed(methods)}, the gap by {listed(gaps)}."
        bias = max((part["gap"]["bias"] or 0.0) for part in parts)
        if bias:
            shown = names.quantities[j](bias)
            text += (
                f" Between groups that are in truth equal, chance alone shows a gap of {shown} on average."
            )
        found.append(text)
    return found


def _grown(before: dict[str, Any], after: dict[str, Any], names: Names) -> list[str]:
    """Gaps that on these people are larger under the policy than today."""
    found = []
    for j, (name, quantity) in enumerate(zip(names.components, names.quantities, strict=True)):
        was, is_ = (audit["components"][j]["gap"]["estimate"] for audit in (before, after))
        if is_ > was and quantity(is_) != quantity(was):
            found.append(
                f"On these people the gap in {name} is larger under the proposed policy than today: "
                f"{quantity(is_)}, not {quantity(was)}."
            )
    return found


def _caveats(content: Content, ways: list[Any], names: Names) -> list[str]:
    notes = [clean(_said(content, note), 600) for _, found in ways for note in found["notes"]]
    found = [
        "Intervals speak of people like these: independent of each other, and not those on whom the model or the "
        "policy was fitted.",
        "Group means are compared, not lives: inside a group some people may be worse off.",
        "Whether this is the right measure of happiness, and who is missing from the data, no computation can say.",
    ]
    if content["kind"] == "choice" and content["policy"]["see_group"]:
        found.append(
            "The policy decides by group. For some purposes, in some places, that is unlawful: ask first."
        )
    if len(ways) == 2:
        found = [*_grown(ways[0][1], ways[1][1], names), *found]
    certificate = content.get("certificate")
    if certificate is not None and certificate["basis"] == "none":
        notes.append(
            "The policy carries no certificate. " + clean(_said(content, certificate["sentence"]), 600)
        )
    return list(dict.fromkeys([*found, *notes]))


# ---------------------------------------------------------------------------------------------------------
# The choice


def _choice(content: Content, names: Names) -> dict[str, Any]:
    line = content["frontier"]
    places = line["positions"]
    cells = [_cells(content, names, place) for place in places]
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
            "good": names.good(line["today"]["loss"]),
            "gaps": [q.cell(gap) for q, gap in zip(names.quantities, line["today"]["gaps"], strict=True)],
        },
        "picture": _picture(content, names),
        "embedded": {
            "keys": list(cells[0]),
            "cells": [list(cell.values()) for cell in cells],
            "texts": texts,
            "rules": [[where[text] for text in place["sentences"]] for place in places],
            "places": [],
        },
    }


def _axis(content: Content, names: Names) -> int | None:
    """The component in whose unit the slider moves, if there is only one gap to close."""
    on = [j for j, width in enumerate(content["frontier"]["ray"]) if width]
    return on[0] if len(on) == 1 else None


def _whole(content: Content, names: Names) -> str:
    """With several gaps to close: what all of it, 100 per cent, stands for."""
    if _axis(content, names) is not None:
        return ""
    ray = content["frontier"]["ray"]
    parts = [f"{names.quantities[j](width)} in {names.components[j]}" for j, width in enumerate(ray) if width]
    return (
        f"Several gaps are closed together, in proportion: 100 % stands for {listed(parts)}." if parts else ""
    )


def _fitted_today(content: Content, names: Names) -> str:
    """Today's gap on the two sorts of people: positions are named after the first, the header says the second."""
    axis, today = _axis(content, names), content["frontier"]["today"]
    if axis is None:
        return ""
    before, here = (names.quantities[axis](found["gaps"][axis]) for found in (today["fitted"], today))
    if before == here:
        return ""
    return (
        f"Today's gap is {before} among those the policies were fitted on, and {here} among these people; "
        "positions are named after the first."
    )


def _cells(content: Content, names: Names, place: dict[str, Any]) -> dict[str, str]:
    """Every text that changes with the slider, by the name the page gives it."""
    today, axis = content["frontier"]["today"], _axis(content, names)
    allowed = proportion(place["tau"]) if axis is None else names.quantities[axis](place["allowed"][axis])
    moved = [_moved(table) for table in place["moves"]]
    total = sum(group["people"] for group in content["groups"])
    cells = {
        "allowed": allowed,
        "good": names.good(place["loss"]),
        "change": _change(place["loss"] - today["loss"], names),
        "price": _price(content, names, place),
        "moved": f"{count(sum(moved))} ({percent(sum(moved) / total, 1)})",
    }
    for j, quantity in enumerate(names.quantities):
        if content["frontier"]["ray"][j] is None:
            cells[f"allowed-{j}"] = "any"
        else:
            cells[f"allowed-{j}"] = quantity.cell(place["allowed"][j])
        cells[f"gap-{j}"] = quantity.cell(place["gaps"][j])
        if _bounded(content["frontier"]["positions"]):
            cells[f"bound-{j}"] = quantity.cell(
                None if place["bound"] is None else place["bound"]["gaps"][j][1]
            )
    for z, row in enumerate(place["means"]):
        for j, quantity in enumerate(names.quantities):
            cells[f"mean-{z}-{j}"] = quantity.cell(row[j])
        cells[f"flow-{z}"] = _flows(place["moves"][z], names.decisions)
    gaps = listed(
        f"{quantity(place['gaps'][j])} in {names.components[j]}"
        for j, quantity in enumerate(names.quantities[:3])
    )
    cells["say"] = f"Allowed gap {allowed}: {names.aim} {cells['good']}, gap {gaps}."
    return cells


def _change(cost: float, names: Names) -> str:
    if names.accuracy and abs(cost) < 5e-7:
        return "as today"
    if names.accuracy:
        return f"{points(cost)} {'less' if cost > 0 else 'more'} than today"
    return f"{abs(cost):,.4g} {'more' if cost > 0 else 'less'} than today"


def _price(content: Content, names: Names, place: dict[str, Any]) -> str:
    """What closing a little more of the gap costs here."""
    axis = _axis(content, names)
    if place["price"] <= 0:
        return "nothing"
    if axis is None:
        size, words = 0.1, "tenth of the gaps"
    else:
        width = content["frontier"]["ray"][axis]
        size = round_step(content["frontier"]["positions"][-1]["tau"] / 20)
        words = f"{names.quantities[axis](size * width)} of gap"
    cost = place["price"] * size
    return f"{points(cost)} of accuracy per {words}" if names.accuracy else f"{cost:,.3g} of loss per {words}"


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
    line, axis = content["frontier"], _axis(content, names)
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
        "percent": (["good"] if names.accuracy else []) + (["allowed", "gap"] if shares else []),
    }
