"""The words of a report about amounts: from numbers to what stands on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from felicific._audit.names import clean, listed
from felicific._audit.quantity import Quantity, count, percent
from felicific._report import appendix
from felicific._report.charts import Scale, for_axis
from felicific._report.curves import DRAWN, distribution_panels, drawn_groups, frontier_panels, lines_panel
from felicific._report.effects import LARGEST, MANY, by_baseline, group_note, scale_of_means
from felicific._report.words import Content, Name, Names, confidence_text, kicker_of, share_texts, title_of

#: What is compared, as the page calls it.
HEADS = {
    "baseline": "baseline",
    "free": "least loss without requirements",
    "proposed": "proposed",
}

#: Words for what is asked of distributions.
DISTANCE = (
    "How far the distributions of the groups are apart: the largest difference between two groups of the share of "
    "people who get more than an amount, whatever that amount (Kolmogorov-Smirnov distance)."
)


def amounts_view(content: Content) -> dict[str, Any]:
    """Everything that the page of a policy of amounts shows, as text."""
    names = Names.of(content)
    amount = amount_at(content)
    closed = [j for j in names.own if content["measures"][j]["closed"]] or names.own
    quantity = Quantity("", 0.01) if amount is None else names.quantities[amount]
    drawn = drawn_groups(content, amount)
    return {
        "names": names,
        "title": title_of(content, replace(names, own=closed)),
        "kicker": kicker_of(content, "Fairness report on amounts"),
        "lead": _lead(content, names),
        "verdict": content["verdict"],
        "flag_rows": [
            [str(flag["level"]), flag["kind"], flag["name"], flag["sentence"]]
            for flag in content["verdict"]["flags"]
        ],
        "card": card(content, names),
        "who": [
            _lanes(content, names, j)
            for j, part in enumerate(content["measures"])
            if not part["parity"] and part["has_gap"]
        ],
        "points": _points(content, names),
        "promise": _promise(content, names),
        "policy": _policy(content, names, quantity, drawn),
        "spread": _spread(content, names, quantity, drawn),
        "choice": _choice(content, names),
        "sign": _sign(content),
        "more": _more(content, names),
        "confidence": confidence_text(content),
    }


def amount_at(content: Content) -> int | None:
    """The position of the measure that is the amount itself, by whose digits amounts are written."""
    plain = [j for j, part in enumerate(content["measures"]) if part["amount"] or part["words"] == "decision"]
    return plain[0] if plain else None


# ---------------------------------------------------------------------------------------------------------
# The header


def _lead(content: Content, names: Names) -> list[list[Any]]:
    """What is decided, about whom: sentences, each a list of words and names."""
    people = count(sum(group["people"] for group in content["groups"]))
    by = [" by ", Name(clean(content["grouped_by"]))] if content["grouped_by"] else []
    model, policy = Name(clean(content["model"])) if content["model"] else "A model", content["policy"]
    low, high = Quantity.of("", (), policy["bounds"]).texts(policy["bounds"])
    what = f"any amount from {low} to {high}"
    if policy["listed"]:
        what = f"one of {policy['listed']} amounts from {low} to {high}"
    first = [f"{people} people in {len(names.groups)} groups", *by, f" get {what}, predicted by ", model, "."]
    seen = "the prediction" if content["lines"] else "everything that is known about a person"
    sees = seen + (" and the group" if policy["sees_group"] else ", not the group")
    line = ": a line from the prediction to the amount" if content["lines"] else ""
    found: list[list[Any]] = [first, [f"The policy sees {sees}{line}."]]
    gaps = [
        f"{names.quantities[j].given(part['asked'])} in {names.measures[j].said}"
        for j, part in enumerate(content["measures"])
        if part["asked"] is not None
    ]
    found += [[f"Asked for: a gap of at most {listed(gaps)}."]] if gaps else []
    others = [appendix.said(content, text, 200) for text in policy["requirements"]]
    found += [[f"{'It must also meet' if gaps else 'Asked for'}: {'; '.join(others)}."]] if others else []
    return found


# ---------------------------------------------------------------------------------------------------------
# Means of the groups


def _lanes(content: Content, names: Names, j: int) -> dict[str, Any]:
    """Every group's mean by the baseline and by the policy."""
    quantity = names.quantities[j]
    baseline, then = (content["points"][name]["measures"][j] for name in ("baseline", "proposed"))
    scale = scale_of_means([baseline, then], zero=False)
    seen = {"baseline": content["points"]["baseline"], "groups": content["groups"]}
    rows = []
    for z in by_baseline(seen, j):
        was, is_, change = (
            baseline["means"][z],
            then["means"][z],
            content["changes"]["measures"][j]["means"][z],
        )
        low, high = scale.span(is_)
        grown = change["estimate"] or 0.0
        still = quantity.change(grown) == quantity.change(0.0)
        shares = share_texts(
            [content["groups"][z][way] for way in ("more", "less")], content["groups"][z]["people"]
        )
        rows.append(
            {
                "name": names.groups[z],
                "people": count(content["groups"][z]["people"]),
                "note": group_note(content, was, z),
                "x": scale.across(was["estimate"]),
                "to": scale.across(is_["estimate"]),
                "low": low,
                "high": high,
                "way": "same" if still else "up" if grown > 0 else "down",
                "baseline": quantity(was["estimate"]),
                "then": quantity(is_["estimate"]),
                "change": quantity.change(grown)
                + f" ({quantity.change_span(change['low'], change['high'])})",
                "more": shares[0],
                "less": shares[1],
            }
        )
    return {
        "name": names.measures[j],
        "ticks": scale.ticks(for_axis(quantity), 5),
        "rows": rows,
        "wanted": not content["measures"][j]["amount"],
    }


# ---------------------------------------------------------------------------------------------------------
# The table of three


def _points(content: Content, names: Names) -> dict[str, Any]:
    """The baseline, the least loss without requirements, and what is proposed, each with its interval."""
    points = [content["points"][name] for name in HEADS]
    mean, rows = Quantity("", content["loss"]["step"]), []
    if all(point["root"] for point in points) and content["loss"]["root"]:
        root = root_quantity(content)
        rows.append(("root mean squared error", "", [_cell(root, point["root"]) for point in points]))
    if all(point["loss"] for point in points):
        rows.append((content["loss"]["title"], "", [_cell(mean, point["loss"]) for point in points]))
    amount = amount_at(content)
    written = Quantity("", 0.01) if amount is None else names.quantities[amount]
    for j in names.alone:
        cells = []
        for point in points:
            part = point["measures"][j]
            at = f"; at {written(part['at'])}" if part["at"] is not None else ""
            number, span = _cell(names.quantities[j], part["gap"])
            cells.append((number, span + at))
        asked = content["measures"][j]["asked"]
        note = "" if asked is None else f"asked: at most {names.quantities[j].given(asked)}"
        rows.append((f"gap in {names.measures[j].said}", note, cells))
    if amount is not None:
        for z, name in enumerate(names.groups):
            parts = [point["measures"][amount]["means"][z] for point in points]
            rows.append(
                (f"mean amount, {name.said}", "", [_cell(names.quantities[amount], part) for part in parts])
            )
    return {"heads": [*HEADS.values()], "rows": rows}


def _cell(quantity: Quantity, interval: Content) -> tuple[str, str]:
    return quantity(interval["estimate"]), quantity.span(interval["low"], interval["high"])


# ---------------------------------------------------------------------------------------------------------
# What is promised


def _promise(content: Content, names: Names) -> dict[str, Any] | None:
    """What is found of the gaps that were to be small, what that says of people like these, and what is promised."""
    own = [j for j in names.alone if content["measures"][j]["closed"]]
    if not own:
        return None
    sure, people = confidence_text(content), count(sum(group["people"] for group in content["groups"]))
    gaps = {j: content["points"]["proposed"]["measures"][j]["gap"] for j in own}
    rows = [
        (
            "Found",
            [names.quantities[j](gaps[j]["estimate"]) for j in own],
            "none needed",
            f"these {people} people",
        ),
        (
            "Interval",
            [names.quantities[j].span(gaps[j]["low"], gaps[j]["high"]) for j in own],
            sure,
            "people like these, under the policy that was proposed before looking",
        ),
    ]
    given = content["certificate"]
    bounds = [(given or {"gaps": {}})["gaps"].get(content["measures"][j]["name"]) for j in own]
    if given is None or given["basis"] == "none":
        row = ("Certificate", ["none"] * len(own), "–", "fit with confidence=0.95 to get one")
    else:
        texts = [
            "nothing" if bound is None else f"at most {names.quantities[j].given(bound)}"
            for j, bound in zip(own, bounds, strict=True)
        ]
        held = "the policy as fitted, tested on people that were held out"
        row = ("Certificate", texts, confidence_text(given), held)
    told = "" if given is None or given["basis"] == "none" else appendix.said(content, given["sentence"], 900)
    return {"heads": [names.measures[j] for j in own], "rows": [*rows, row], "sentence": told}


# ---------------------------------------------------------------------------------------------------------
# The lines, the distributions and the frontier


def _key(content: Content, names: Names, drawn: list[int]) -> list[Name]:
    return [names.groups[z] for z in drawn]


def _left(content: Content, drawn: list[int]) -> str:
    """What is said of groups that are not drawn."""
    left = len(content["groups"]) - len(drawn)
    more = "One more group, whose mean is" if left == 1 else f"{left} more groups, whose means are"
    return f"{more} in between, {'is' if left == 1 else 'are'} not drawn." if left else ""


def _policy(content: Content, names: Names, quantity: Quantity, drawn: list[int]) -> dict[str, Any]:
    policy = content["policy"]
    atoms = any(line["atoms"] for line in content["lines"])
    rules = [appendix.said(content, text) for text in policy["rules"]]
    if policy["rules_left_out"]:
        rules.append(f"{policy['rules_left_out']} more sentences are in print(fair.policy_).")
    return {
        "panel": lines_panel(content, quantity, drawn),
        "key": _key(content, names, drawn) if policy["sees_group"] else [Name("any group")],
        "left": _left(content, drawn) if policy["sees_group"] else "",
        "atoms": atoms,
        "rules": rules,
    }


def _spread(content: Content, names: Names, quantity: Quantity, drawn: list[int]) -> dict[str, Any]:
    return {
        "panels": distribution_panels(content, names, quantity, drawn),
        "key": _key(content, names, drawn),
        "left": _left(content, drawn),
        "bars": any(part["parity"] for part in content["measures"]),
        "ends": percent(content["distributions"]["left_out"], 1),
    }


def _choice(content: Content, names: Names) -> dict[str, Any] | None:
    """What other gaps would cost, with a table for those who cannot see the chart."""
    line, loss = content["frontier"], content["loss"]
    if line is None or None in line["loss"]:
        return None
    root = loss["root"]
    quantity = root_quantity(content) if root else Quantity("", loss["step"])
    key = "root" if root else "loss"
    along = [number**0.5 if root else number for number in line["loss"]]
    losses = {
        "title": "Root mean squared error" if root else loss["title"].capitalize(),
        "along": along,
        "proposed": content["points"]["proposed"][key]["estimate"],
        "baseline": content["points"]["baseline"][key]["estimate"],
    }
    panels, axis = frontier_panels(content, names, quantity, losses)
    moving = [j for j, width in enumerate(line["widest"]) if width]
    rows = []
    for place, lost, gaps in zip(line["places"], along, line["gaps"], strict=True):
        aimed = [names.quantities[j](place * line["widest"][j]) for j in moving]
        rows.append((listed(aimed), quantity(lost), [names.quantities[j](gaps[j]) for j in moving]))
    return {
        "panels": panels,
        "axis": axis,
        "loss": losses["title"],
        "heads": [names.measures[j] for j in moving],
        "rows": rows,
    }


# ---------------------------------------------------------------------------------------------------------
# The block that is signed, and everything else


def _sign(content: Content) -> dict[str, Any]:
    asked = [part["asked"] for part in content["measures"] if part["asked"] is not None]
    return {
        "policy": content["policy"]["sha256"],
        "people": content["fingerprints"]["people"],
        "model": Name(clean(content["model"])) if content["model"] else "not said",
        "made": f"felicific {content['versions']['felicific']}",
        "period": clean(content["period"], 80) if content["period"] else "not said",
        "date": clean(content["date"], 80) if content["date"] else "",
        "python": f"fair.at(gap={asked[0]!r})" if len(asked) == 1 else "fair",
    }


def _more(content: Content, names: Names) -> dict[str, Any]:
    """Everything that is folded at the end."""
    measures = appendix.measures(content, names)
    for measure, part in zip(measures, content["measures"], strict=True):
        if part["parity"]:
            measure["words"] = DISTANCE
        elif part["amount"]:
            measure["words"] = "What people get on average."
    return {
        "required": appendix.required(content, names, content["requirements"]),
        "impact": [appendix.said(content, text) for text in content["impact"]],
        "measures": measures,
        "methods": [appendix.said(content, text) for text in content["methods"]],
        "notes": [appendix.said(content, text) for text in content["notes"]],
        "versions": list(content["versions"].items()),
        "command": content["command"],
        "many": len(names.groups) > DRAWN,
    }


def card(content: Content, names: Names) -> dict[str, Any]:
    """The three columns: the gap, what it costs, who is touched."""
    parts = content["measures"]
    own = [j for j in names.alone if parts[j]["closed"]] or names.alone[:1]
    return {
        "gaps": [_gap(content, names, j) for j in own[:3]],
        "cost": _cost(content, names),
        "touched": _touched(content, names),
    }


def _gap(content: Content, names: Names, j: int) -> dict[str, Any]:
    """One gap by the baseline and by the policy, on one axis, with its change."""
    quantity, points = names.quantities[j], content["points"]
    baseline, then = (points[name]["measures"][j]["gap"] for name in ("baseline", "proposed"))
    change = content["changes"]["measures"][j]["gap"]
    ends = [one[end] for one in (baseline, then) for end in ("low", "high")]
    scale = Scale.around([baseline["estimate"], then["estimate"]], ends, zero=True)
    bars = []
    for words, one in (("baseline", baseline), ("then", then)):
        low, high = scale.span(one)
        span = quantity.span(one["low"], one["high"])
        bars.append((words, f"{words}, {span}", scale.across(one["estimate"]), low, high))
    paired = "" if content["measures"][j]["parity"] else ", the same people compared"
    return {
        "name": names.measures[j],
        "baseline": quantity(baseline["estimate"]),
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
        was, then = (mean(points[name]["loss"]["estimate"]) for name in ("baseline", "proposed"))
        rows.append((loss["title"], then, f"baseline {was}"))
    else:
        quantity, key, title = mean, "loss", loss["title"]
        change, best = changes["cost"], changes["cost_free"]
    prices = [
        (f"price of a gap smaller by {unit} in {names.measures[j].said}, where it was fitted", text)
        for j, unit, text in _prices(content, names)
    ]
    known = change is not None and points["baseline"][key] is not None
    return {
        "title": title,
        "baseline": quantity(points["baseline"][key]["estimate"]) if known else "",
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
    places = {part["name"]: j for j, part in enumerate(content["measures"])}
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
    """Who gets more than from the baseline, and who gets less."""
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
        "randomized": count(content["randomized"]),
        "randomized_share": share_texts([content["randomized"]], people)[0] if content["randomized"] else "",
    }
