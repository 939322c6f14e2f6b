"""The words of a report: from numbers to what stands on the page."""

from __future__ import annotations

from typing import Any

from felicific._audit.names import clean, labels
from felicific._problem.change import EVERY_GROUP_LOSES, FEW_LEFT
from felicific._problem.criteria import CRITERIA
from felicific.report.slider import choice_view, moved_people
from felicific.report.words import Content, Names, Quantity, count, counts, flows, listed, percent, points

KINDS = {
    "score": "the model's score",
    "label": "the label that the model predicts",
    "soft-label": "a label drawn from the model's probabilities",
    "individual": "everything that is known about a person",
}

#: How ratios are written, and of how many groups at most besides the highest.
RATIO, FURTHEST = Quantity("", 3), 12
#: How shares of people are written.
SHARE = Quantity("share", 1)


def make_view(content: Content) -> dict[str, Any]:
    """Everything the template shows, as text."""
    names = Names.of(content)
    chosen = content["kind"] == "choice"
    first = "today" if chosen else "as decided"
    ways = [(first, content["today"])] + ([("under the policy", content["after"])] if chosen else [])
    view: dict[str, Any] = {
        "title": _title(content, names),
        "names": names,
        "chosen": chosen,
        "ways": ways,
        "answers": _answers(content, names),
        "about": _about(content, names),
        "measures": _measures(content, names),
        "people": list(zip(names.groups, counts([g["people"] for g in content["groups"]]), strict=True)),
        "tables": [_means_table(content, ways, names, j) for j in names.own],
        "asides": [
            _means_table(content, ways, names, j) for j in range(len(names.components)) if j not in names.own
        ],
        "required": _required(content, names),
        "ratios": _ratios(content, names),
        "sure": _sure(ways, names),
        "caveats": _caveats(content, ways, names),
        "certificate": _certificate(content),
        "remarks": _remarks(content),
        "points": _points(content, names) if chosen else [],
        "gainers": [clean(_said(content, text), 600) for text in content.get("story", ())[2:]],
        "losers": _losers(content, names),
        "labels": _unlabelled(content),
        "open_ends": any(
            "bounds" in mean for _, way in ways for part in way["components"] for mean in part["means"]
        ),
        "premises": content["policy"]["premises"] if chosen else [],
        "outlook": _outlook(content) if chosen else "",
        "versions": list(content["reproduce"]["versions"].items()),
        "fingerprint": content["reproduce"]["fingerprint"],
        "command": content["reproduce"]["command"],
        "confidence": percent(content["confidence"], 0 if content["confidence"] * 100 % 1 < 1e-9 else 2),
    }
    return view | (choice_view(content, names) if chosen else {})


# ---------------------------------------------------------------------------------------------------------
# What is decided, about whom


def _title(content: Content, names: Names) -> str:
    if content["title"] is not None:
        return clean(content["title"], 120)
    found = [names.components[j] for j in names.own]
    what = found[0] if len(found) == 1 else listed(found) if len(found) < 4 else f"{len(found)} measures"
    stems = {content["components"][j]["name"].split("(")[0] for j in names.own}
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
    sees += f", because {policy['chosen']}" if policy.get("chosen") else ""
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
        texts = (clean(_said(content, text), 200) for text in policy["constraints"])
        found.append(f"It must also meet: {'; '.join(texts)}.")
    aim = "accuracy, the share of decisions that equal the true label" if names.accuracy else "a small loss"
    found.append(f"What the decision maker wants is {aim}.")
    return found


def _unlabelled(content: Content) -> dict[str, Any] | None:
    """Who has no label, as rows of a table and sentences; None where everybody has one."""
    known = content.get("labels")
    if known is None:
        return None
    rows = [
        (
            name,
            percent(1.0 - share, 1) if share is not None else "nobody",
            percent(seen, 1) if seen is not None else "",
            percent(supposed, 1) if supposed is not None else "",
            percent(standing, 0),
            count(effective),
        )
        for name, share, seen, supposed, standing, effective in zip(
            labels(known["groups"]),
            *(known[part] for part in ("share", "seen", "imputed", "standing", "effective")),
            strict=True,
        )
    ]
    worst = (
        f"Numbers that look at the label are the worst case {known['condition']}."
        if known["condition"]
        else ""
    )
    return {
        "label": clean(str(known["label"])),
        "rows": rows,
        "lines": [
            f"{known['source']}.",
            *([worst] if worst else []),
            *(clean(text, 400) for text in known["cautions"]),
        ],
    }


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
        if not component["tells_who"]
    ]


# ---------------------------------------------------------------------------------------------------------
# The four questions


def _answers(content: Content, names: Names) -> list[dict[str, Any]]:
    today, chosen = content["today"], content["kind"] == "choice"
    several = len(names.own) > 1

    def each(numbers: list[str]) -> list[str]:
        found = [f"{names.components[j]}: {text}" for j, text in zip(names.own, numbers, strict=True)]
        return found if several else numbers

    found = [
        {
            "question": "What is the gap today?" if chosen else "What is the gap?",
            "answer": each(
                [names.quantities[j](today["components"][j]["gap"]["estimate"]) for j in names.own]
            ),
            "detail": _between_whom(content, names) if not several else "",
        }
    ]
    if chosen:
        found += [_halving(content, names), _who(content, names)]
    last = [
        (names.quantities[j], content["after" if chosen else "today"]["components"][j]["gap"])
        for j in names.own
    ]
    shown = f", here {last[0][0](last[0][1]['estimate'])}" if chosen and not several else ""
    which, sure = " under the proposed policy" if chosen else "", percent(content["confidence"], 0)
    found.append(
        {
            "question": "How sure are we?",
            "answer": each([quantity.span(gap["low"], gap["high"]) for quantity, gap in last]),
            "detail": f"The gap{which}{shown}, with {sure} confidence, on people like these.",
        }
    )
    return found


def _between_whom(content: Content, names: Names) -> str:
    own = names.own[0]
    means = content["today"]["components"][own]["means"]
    compared = [z for z in range(len(means)) if means[z]["group"] not in content["today"].get("unknown", ())]
    order = sorted(compared, key=lambda z: means[z]["estimate"])
    far = (order[-1], order[0])
    texts = names.quantities[own].texts([means[z]["estimate"] for z in far])
    ends = [f"{names.groups[z]} {text}" for z, text in zip(far, texts, strict=True)]
    return f"Mean {names.components[own]}: {listed(ends)}."


def _halving(content: Content, names: Names) -> dict[str, Any]:
    line = content["frontier"]
    half = next(place for place in line["positions"] if "half of today's gap" in place["names"])
    before, after = line["today"]["loss"], half["loss"]
    cost, now = after - before, [line["today"]["gaps"][j] for j in names.own]
    size = points(cost) + " of accuracy" if names.accuracy else f"{cost:,.4g} per person"
    then = [half["gaps"][j] for j in names.own]
    gaps = [names.quantities[j](gap) for j, gap in zip(names.own, then, strict=True)]
    what = "Right decisions" if names.accuracy else "Loss per person"
    good_before, good_after = names.goods([before, after])
    sizes = f"{what}: {good_before} today, {good_after}"
    detail, answer = f"{sizes} with half the gap.", size if cost > 0 else "Nothing"
    if len(gaps) == 1 and then[0] <= now[0] / 2 * 1.005:
        detail += f" The gap on these people is then {gaps[0]}."
    elif len(gaps) == 1:
        less = then[0] < now[0]
        detail = f"{sizes} under the policy that halves the gap of the people it was fitted on. "
        detail += f"On these people, who are others, the gap is then {gaps[0]}, {'not half' if less else 'no smaller'}."
        answer = answer if less else "Here the gap does not shrink"
    if not any(now):
        answer, detail = "There is none", "On these people there is no gap today."
    return {"question": "What does halving it cost?", "answer": [answer], "detail": detail}


def _who(content: Content, names: Names) -> dict[str, Any]:
    place = next(place for place in content["frontier"]["positions"] if "proposed policy" in place["names"])
    moved = moved_people(place)
    total = sum(group["people"] for group in content["groups"])
    most = sorted(range(len(moved)), key=lambda z: -moved[z])[:3]
    who = [z for z in most if moved[z] > 0]
    moves = flows([place["moves"][z] for z in who], names.decisions, 2)
    return {
        "question": "Who changes?",
        "answer": [f"{count(sum(moved))} of {count(total)} people"],
        "detail": "Under the proposed policy. "
        + " ".join(f"{names.groups[z]}: {text}." for z, text in zip(who, moves, strict=True)),
    }


# ---------------------------------------------------------------------------------------------------------
# Groups


def _means_table(content: Content, ways: list[Any], names: Names, j: int) -> dict[str, Any]:
    """Means and intervals of one component: a row per group, and one for the gap, if it has one."""
    quantity, change = names.quantities[j], content.get("change")
    if content["components"][j]["tells_who"] and change is not None:
        ways, change = ways[1:], None  # by today's decisions nobody loses

    def parts(found: dict[str, Any]) -> list[dict[str, Any]]:
        gap = found["components"][j]["gap"]
        return [*found["components"][j]["means"], *([] if gap is None else [gap])]

    columns = [quantity.numbers(parts(audit)) for _, audit in ways]
    if change is not None:
        columns.append(quantity.difference.numbers(parts(change), signed=True))
    rows = [
        {"name": name, "cells": list(cells)}
        for name, cells in zip([*names.groups, "gap"], zip(*columns, strict=True), strict=False)
    ]
    heads = [way for way, _ in ways] + ([] if change is None else ["change"])
    n = len(names.groups)
    return {"name": names.components[j], "j": j, "ways": heads, "rows": rows[:n], "gap": rows[n:]}


def _required(content: Content, names: Names) -> list[list[str]]:
    """What was asked for, what was found on these people, from where to where, and whether that meets it."""
    found, places = [], {component["name"]: j for j, component in enumerate(content["components"])}
    for row in content["after" if "after" in content else "today"].get("requirements", ()):
        j = places.get(row["component"])
        quantity = RATIO if row["measure"] == "ratio" or j is None else names.quantities[j]
        numbers = [quantity(row["estimate"]), quantity.span(row["low"], row["high"])]
        said = [clean(_said(content, text), 300) for text in (row["words"], row["note"])]
        found.append([said[0], row["what"], *numbers, row["verdict"], said[1] if row["note"] else ""])
    return found


def _ratios(content: Content, names: Names) -> list[dict[str, Any]]:
    """Of what people want, the groups furthest below the highest mean, and what is said of the smallest ratio."""
    found, places = [], {component["name"]: j for j, component in enumerate(content["components"])}
    for ratios in content.get("ratios", ()):
        between = ratios["between"]
        by = (
            ""
            if between is None
            else f" by {clean(listed(between if isinstance(between, list) else [between]))}"
        )
        for part in ratios["components"]:
            if not part["wanted"]:
                continue
            rows, mean = (
                sorted(part["rows"], key=lambda row: row["ratio"]),
                names.quantities[places[part["name"]]],
            )
            left = len(rows) - FURTHEST - 1
            shown = rows if left <= 0 else [*rows[:FURTHEST], rows[-1]]
            remarks = [f"{left} groups in between are not shown."] if left > 0 else []
            found.append(
                {
                    "name": names.components[places[part["name"]]] + by,
                    "rows": [
                        {
                            "name": name,
                            "people": count(row["people"]),
                            "mean": mean(row["mean"]),
                            **_ratio(row),
                        }
                        for name, row in zip(labels([row["group"] for row in shown]), shown, strict=True)
                    ],
                    "remarks": remarks + [clean(_said(content, text), 600) for text in part["remarks"]],
                }
            )
    return found


def _ratio(row: dict[str, Any]) -> dict[str, str]:
    """A ratio and what it leaves open; the highest is itself."""
    known = row["high"] is not None or row["low"]
    span = RATIO.span(row["low"], row["high"]) if known else RATIO.span(None, None)
    return {"ratio": RATIO(row["ratio"]), "span": "" if row["low"] == row["high"] == 1.0 else span}


#: How the three points are called on the page.
POINTS = {"today": "today", "unconstrained": "tuned, nothing asked for", "proposed": "the proposed policy"}


def _points(content: Content, names: Names) -> list[list[str]]:
    """Today, the best without requirements, and what is proposed: what is aimed at, the gaps, and who is changed."""
    points = [content.get("points", {}).get(name) for name in POINTS]
    if None in points:
        return []
    changed = [point["changed"] for point in points]
    ends = iter(SHARE.texts([end(one) for one in changed if one is not None for end in (min, max)]))
    moved = ["not known" if one is None else f"{next(ends)} to {next(ends)}" for one in changed]
    gaps = [names.quantities[j].texts([point["gaps"][j] for point in points]) for j in names.own]
    columns = [[*POINTS.values()], names.goods([point["loss"] for point in points]), *gaps, moved]
    return [list(row) for row in zip(*columns, strict=True)]


def _losers(content: Content, names: Names) -> list[list[str]]:
    """Who would lose less, and what it costs: at most so many of each group, the loss, and the share of each."""
    rows = content.get("losers", ())
    if not rows:
        return []
    known = [row for row in rows if row["loss"] is not None]
    goods = iter(names.goods([row["loss"] for row in known]))
    shares = iter(SHARE.texts([share for row in known for share in row["loses"]]))
    limits = SHARE.texts([row["at_most"] for row in rows])
    found = []
    for i, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        who = "as proposed" if i == 0 else f"at most {limit} of each group" if row["at_most"] else "nobody"
        reached = row["loss"] is not None
        cells = [next(shares) if reached else "" for _ in names.groups]
        found.append([who, next(goods) if reached else "out of reach", *cells])
    return found


def _certificate(content: Content) -> str:
    """What was certified, if something was; cut where a name in it is endless."""
    found = content.get("certificate")
    return "" if found is None or found["basis"] == "none" else clean(_said(content, found["sentence"]), 900)


def _outlook(content: Content) -> str:
    """What the proposed policy lets expect of new people, beside the gap that it was fitted to."""
    text = content["policy"].get("outlook", "")
    return text and clean(f"The proposed policy: {_said(content, text[0].lower() + text[1:])}", 600)


def _remarks(content: Content) -> list[str]:
    """That every group loses, or that there was nothing to repair: of a choice as compared, of an audit as noted."""
    found = content["change"]["remarks"] if content["kind"] == "choice" else content["today"]["notes"]
    said = (EVERY_GROUP_LOSES, FEW_LEFT, "It only takes", "Nothing to repair")
    return [clean(_said(content, text), 600) for text in found if text.startswith(said)]


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
        gaps = sorted({part["gap"]["method"] for part in parts if part["gap"] is not None})
        text = f"{name}: group means by {listed(methods)}"
        text += f", the gap by {listed(gaps)}." if gaps else "."
        bias = max((part["gap"] or {}).get("bias") or 0.0 for part in parts)
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
    for j in names.own:
        name, quantity = names.components[j], names.quantities[j]
        was, is_ = (audit["components"][j]["gap"]["estimate"] for audit in (before, after))
        if is_ <= was:
            continue
        text_before, text_after = quantity.texts([was, is_])
        if text_before != text_after:
            found.append(
                f"On these people the gap in {name} is larger under the proposed policy than today: "
                f"{text_after}, not {text_before}."
            )
    return found


def _caveats(content: Content, ways: list[Any], names: Names) -> list[str]:
    notes = [clean(_said(content, note), 600) for _, found in ways for note in found["notes"]]
    notes = [note for note in [*content.get("notes", ()), *notes] if note not in _remarks(content)]
    found = [
        "Intervals speak of people like these, and not of those on whom the model or the policy was fitted; rows, or "
        "clusters of them where some are named, are taken to be independent of each other.",
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
    if certificate is not None and certificate.get("large_samples"):
        notes.append(
            "The certificate holds by large samples: where rare people have much larger values than any in the "
            "sample, it may not."
        )
    return list(dict.fromkeys([*found, *notes]))
