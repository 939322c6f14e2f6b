"""The words of a report: from numbers to what stands on the page."""

from __future__ import annotations

from typing import Any

from felicific._audit.names import clean, listed
from felicific._audit.quantity import Quantity, count, percent
from felicific._problem.happiness import written
from felicific._problem.numeric import MEAN_AMOUNT
from felicific._report import appendix
from felicific._report.charts import Scale, bars_path, bars_paths, for_axis, stairs_paths
from felicific._report.choice import choice, promise
from felicific._report.effects import by_baseline, card, gap_bars, group_note, scale_of_means, who
from felicific._report.slider import Moving, aims, decision, dock
from felicific._report.words import (
    KINDS,
    Content,
    Name,
    Names,
    Places,
    changes,
    confidence_text,
    counts,
    flows,
    kicker_of,
    named,
    title_of,
)

#: Most groups that have a column of their own.
FEW_GROUPS = 4

#: Most decisions and gaps that the first sentence spells out.
SPELLED = 6


#: Decisions up to which the moves of a group are shown as a table.
TABLE = 6

#: What stands before people who move, besides their colour.
ARROWS = {"same": "", "moves": "", "gains": "▲ ", "loses": "▼ "}

#: Height of a lane, and of one where there are more than so many groups.
HIGH, LOW, MANY = 92, 58, 4


def choice_view(content: Content) -> dict[str, Any]:
    """Everything that the page of a choice shows, as text, and what its script is to know."""
    names, start = Names.of(content), content["proposed"]
    moving, places = Moving(start), Places.of(content, names)
    view = {
        "moving": moving,
        "names": names,
        "now": names.reference.name,
        "then": names.reference.then,
        "title": title_of(content, names),
        "kicker": kicker_of(content, "Fairness report"),
        "lead": _lead(content, names),
        "verdict": _verdict(content, names, places, moving),
        "dock": dock(content, places, moving),
        "card": card(content, names, places, moving),
        "who": who(content, names, moving),
        "choice": choice(content, names, places, moving),
        "promise": promise(content, names, moving),
        "decided": _decisions(content, names, moving),
        "also": _also(content, names, moving),
        "sign": _sign(content, names, places, moving),
        "more": _more(content, names, places),
        "confidence": confidence_text(content),
        "start": start,
        "alone": len(content["positions"]) == 1,
        "nobody_worse": content["nobody_worse"],
        "best_is_free": content["best"].get("free", True),
    }
    view["data"] = moving.embedded() | {
        "at": view["dock"]["at"],
        "hashes": [place["hash"] for place in content["positions"]],
        "decision": decision(content, str(view["title"])),
        "reference": names.reference.data_key,
        **aims(content),
    }
    return view


# ---------------------------------------------------------------------------------------------------------
# The header


def _lead(content: Content, names: Names) -> list[list[Any]]:
    """What is decided, about whom: sentences, each a list of words and names."""
    people = count(sum(group["people"] for group in content["groups"]))
    by = [" by ", Name(clean(content["grouped_by"]))] if content["grouped_by"] else []
    model = Name(clean(content["model"])) if content["model"] else "A model"
    first = [model, f" decides on {people} people in {len(names.groups)} groups", *by]
    first += [": ", *_listed_names(names.decisions, "or"), "."]
    happiness = [
        "Happiness is ",
        *_listed_names([names.measures[j] for j in names.alone] or names.measures),
        ".",
    ]
    policy = content["policy"]
    valued = policy.get("values") is not None
    sees = ("the model's decision function" if valued else KINDS[policy["kind"]]) + (
        " and the group" if policy["sees_group"] else ", not the group"
    )
    sees += f", because {policy['chosen']}" if policy["chosen"] else ""
    if not names.reference.is_baseline:
        first.append(f" There is no baseline: policies are compared with {names.reference.whole}.")
    found = [first, happiness, [f"The policy sees {sees}."], *_asked(content, names)]
    if not policy["randomize"]:
        found.append(["Nobody is decided at random."])
    return found


def _listed_names(found: list[Name], last: str = "and") -> list[Any]:
    """Names as a sentence lists them; of many the first only."""
    parts: list[Any] = []
    shown = found if len(found) <= SPELLED else [*found[: SPELLED - 1], f"{len(found) - SPELLED + 1} more"]
    for i, name in enumerate(shown):
        parts += [] if i == 0 else [f" {last} " if i == len(shown) - 1 else ", "]
        parts.append(name)
    return parts


def _asked(content: Content, names: Names) -> list[list[Any]]:
    """What the policy was asked for."""
    several, parts = len(names.own) > 1, content["measures"]
    gaps = [
        names.quantities[j].given(parts[j]["asked"]) + (f" in {names.measures[j]}" if several else "")
        for j in names.alone
        if parts[j]["asked"] is not None
    ]
    if len(gaps) > SPELLED:
        gaps = [*gaps[: SPELLED - 1], f"{len(gaps) - SPELLED + 1} more"]
    found: list[list[Any]] = [[f"Asked for: a gap of at most {listed(gaps)}."]] if gaps else []
    others = [appendix.said(content, text, 200) for text in content["policy"]["requirements"]]
    if others:
        found.append([f"{'It must also meet' if gaps else 'Asked for'}: {'; '.join(others)}."])
    return found


# ---------------------------------------------------------------------------------------------------------
# The verdict, other measures, and the block that is signed


def _verdict(content: Content, names: Names, places: Places, moving: Moving) -> dict[str, Any]:
    """The verdict at every position, and its flags as a list."""
    found = [place["verdict"] for place in content["positions"]]
    moving.add("verdict", [one["kind"] for one in found])
    moving.add("verdict-at", [f"Verdict. {full}" for full in places.full])
    for name in ("headline", "sentence", "remedy", "reason"):
        moving.add(name, [one[name] for one in found])
    same = "Nothing changes" if names.reference.is_baseline else "Changes nothing"
    moving.add(
        "verdict-words",
        [same if one["reason"] == "same" else names.two_words[one["kind"]] for one in found],
    )
    moving.lists["flags"] = [
        [[str(flag["level"]), flag["kind"], flag["name"], flag["sentence"]] for flag in one["flags"]]
        for one in found
    ]
    return {"kind": found[moving.start]["kind"]}


def _also(content: Content, names: Names, moving: Moving) -> dict[str, Any] | None:
    """The proposed policy by other measures; they do not follow the slider, and say so where it has moved."""
    if not content["also"]:
        return None
    here = "Of the proposed policy. These numbers do not follow the slider."
    gone = "Not of this position: these numbers are of the proposed policy and do not follow the slider."
    proposed = [place["proposed"] for place in content["positions"]]
    moving.add("also-note", [here if own else gone for own in proposed])
    moving.add("also-class", ["stack" if own else "stack stale" for own in proposed])
    called = named(measure["name"] for measure in content["also"])
    rows = [_also_row(name, measure) for name, measure in zip(called, content["also"], strict=True)]
    few = len(names.groups) <= FEW_GROUPS
    if not few:
        for row in rows:
            row["groups"] = _ends_of(row["groups"], names)
    return {"heads": names.groups if few else ["loses most", "gains most"], "rows": rows}


def _ends_of(groups: list[tuple[str, str, Any, float]], names: Names) -> list[tuple[str, str, Any, float]]:
    """Of many groups, the one that loses most and the one that gains most."""
    order = sorted(range(len(groups)), key=lambda z: groups[z][3])
    return [(*groups[z][:2], names.groups[z], groups[z][3]) for z in (order[0], order[-1])]


def _also_row(name: Name, measure: Content) -> dict[str, Any]:
    quantity = Quantity(clean(measure["unit"], 28) if measure["unit"] else "", measure["step"])
    change = measure["change"]
    known = change["low"] is not None or change["high"] is not None
    return {
        "name": name,
        "baseline": quantity(measure["baseline"]["estimate"]),
        "then": quantity(measure["then"]["estimate"]),
        "grows": measure["grows"],
        "change": quantity.change(change["estimate"]),
        "span": quantity.change_span(change["low"], change["high"]) if known else "",
        "groups": [
            (
                quantity.change(one["estimate"]),
                _sign_of(one["estimate"], quantity.step),
                "",
                one["estimate"] or 0.0,
            )
            for one in measure["groups"]
        ],
    }


def _sign_of(change: float | None, step: float) -> str:
    return "same" if change is None or abs(change) < step / 2 else "gains" if change > 0 else "loses"


def _sign(content: Content, names: Names, places: Places, moving: Moving) -> dict[str, Any]:
    """Every fact that whoever signs puts a name to."""
    positions = content["positions"]
    none = "none: nothing changes" if names.reference.is_baseline else "none: only compared with"
    moving.add("signed-at", places.signed)
    moving.add("sha", [place["policy_sha256"] or "" for place in positions])
    moving.add(
        "sha-text",
        [place["policy_sha256"] or (none if place["baseline"] else "not known") for place in positions],
    )
    moving.add("python", [place["python"] or "no policy is applied" for place in positions])
    return {
        "people": content["fingerprints"]["people"],
        "model": Name(clean(content["model"])) if content["model"] else "not said",
        "made": f"felicific {content['versions']['felicific']}",
        "period": clean(content["period"], 80) if content["period"] else "not said",
        "date": clean(content["date"], 80) if content["date"] else "",
    }


def _more(content: Content, names: Names, places: Places) -> dict[str, Any]:
    """Everything that is folded at the end."""
    certificate = content["certificate"]
    return {
        "positions": appendix.position_tables(content, names, places),
        "aimed_of": places.after[0],
        "required": appendix.required(content, names, content["requirements"]),
        "points": appendix.points(content, names),
        "gainers": [appendix.said(content, text) for text in content["impact"][2:]],
        "worse_off": appendix.worse_off(content, names),
        "labels": appendix.unlabelled(content),
        "measures": appendix.measures(content, names),
        "methods": appendix.methods(content),
        "caveats": list(dict.fromkeys(appendix.said(content, text) for text in content["caveats"])),
        "certificate": ""
        if certificate is None or certificate["basis"] == "none"
        else appendix.said(content, certificate["sentence"], 900),
        "versions": list(content["versions"].items()),
        "command": content["command"],
    }


def _decisions(content: Content, names: Names, moving: Moving) -> dict[str, Any]:
    """Everything about the policy at the slider."""
    positions = content["positions"]
    for z in range(len(names.groups)):
        moving.add(f"flow-{z}", flows([place["moves"][z] for place in positions], names.decisions))
    moving.lists["rules"] = [[[rule] for rule in place["rules"]] for place in positions]
    scored = all(group["scores"] is not None for group in content["groups"]) and all(
        place["steps"] is not None for place in positions
    )
    person = any(place["person"] is not None for place in positions)
    if person:
        moving.add("person", _persons(content, names))
    return {
        "best": names.decisions[content["best_decision"]],
        "scored": names.decisions[-1],  # whose probability the line of scores is
        "lanes": _lanes(content, names, moving) if scored else [],
        "boundary": _boundary(content) if scored else None,
        "what": _what(content),
        "ticks": _ticks(content),
        "height": HIGH if len(names.groups) <= MANY else LOW,
        "tables": [] if scored else _tables(content, names, moving),
        "person": person,
        "ruled": any(place["rules"] for place in positions),
    }


def _order(content: Content, names: Names) -> list[int]:
    """Groups as they stand above, from the highest mean to the lowest."""
    return by_baseline(content, names.shown[0]) if names.shown else list(range(len(names.groups)))


def _what(content: Content) -> str:
    """What the line is made of."""
    return "score" if content["policy"].get("values") is None else "decision function"


def _ticks(content: Content) -> list[tuple[str, str, str]]:
    """What stands below the lanes: where, at which of its ends, and the number."""
    found = content["policy"].get("values")
    if found is not None:
        return [(f"{100 * place:.4g}%", "middle", written(value, 3)) for place, value in found]
    ends = {0.0: "start", 1.0: "end"}
    return [
        (f"{100 * place:g}%", ends.get(place, "middle"), f"{place:g}")
        for place in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]


def _boundary(content: Content) -> str | None:
    boundary = content["policy"]["boundary"]
    return None if boundary is None else f"{100 * min(max(boundary, 0.0), 1.0):.2f}%"


def _lanes(content: Content, names: Names, moving: Moving) -> list[dict[str, Any]]:
    """For every group how many have which score, who gets another decision, and the chance."""
    lanes, positions = [], content["positions"]
    for z in _order(content, names):
        group = content["groups"][z]
        most, key = max(group["scores"], default=0.0), f"policy-{z}"
        for name in ("up", "down"):
            moving.add(f"{key}-{name}", bars_paths([place[name][z] for place in positions], most))
        moving.add(f"{key}-chance", stairs_paths([place["steps"][z] for place in positions]))
        lanes.append(
            {
                "name": names.groups[z],
                "key": key,
                "flow": f"flow-{z}",
                "people": bars_path(group["scores"], most),
            }
        )
    return lanes


def _tables(content: Content, names: Names, moving: Moving) -> list[dict[str, Any]]:
    """Where there is no line of scores: people of every group by the baseline's decision and by that of then."""
    found, good, many = [], content["best_decision"], len(names.decisions)
    for z in _order(content, names):
        rows = []
        for a in range(many if many <= TABLE else 0):
            cells = []
            for d in range(many):
                key, numbers = (
                    f"move-{z}-{a}-{d}",
                    [place["moves"][z][a][d] for place in content["positions"]],
                )
                way = "same" if a == d else "gains" if d == good else "loses" if a == good else "moves"
                moving.add(
                    key,
                    [ARROWS[way] * (n > 0) + text for n, text in zip(numbers, counts(numbers), strict=True)],
                )
                moving.add(f"{key}-way", [f"n {way if n > 0 else 'same'}" for n in numbers])
                cells.append({"key": key, "then": names.decisions[d]})
            rows.append({"baseline": names.decisions[a], "cells": cells})
        people = count(content["groups"][z]["people"])
        found.append({"name": names.groups[z], "people": people, "flow": f"flow-{z}", "rows": rows})
    return found


def _persons(content: Content, names: Names) -> list[str]:
    """One person that there are many of, and what the same score does in another group; for every position."""
    found = [place["person"] for place in content["positions"]]
    people = counts([None if one is None else one["people"] for one in found])
    changed = {
        j: changes(names.quantities[j], [None if one is None else one["changes"][j] for one in found])
        for j in names.shown
    }
    texts = []
    for i, (place, one) in enumerate(zip(content["positions"], found, strict=True)):
        if place["baseline"]:
            texts.append(f"Nobody gets another decision than {names.reference.name}.")
        elif one is None:
            texts.append(f"At this position there is no {_what(content)} at which many get another decision.")
        else:
            each = [
                f"{names.measures[j].said} changes by {written[i]}"
                for j, written in changed.items()
                if one["changes"][j] is not None
            ]
            effect = f"; for each of them {listed(each)} on average" if each else ""
            texts.append(f"{_person(content, names, one)} There are {people[i]} such people here{effect}.")
    return texts


def _person(content: Content, names: Names, found: Content) -> str:
    """What is decided on a person, and about one of the same score in another group."""
    group = names.groups[found["group"]].said
    text = f"Somebody in group {group} with a {_between(content, found['low'], found['high'])}: "
    now, then = names.decisions[found["baseline"]].said, _then(names, found)
    text += f"{names.reference.name} {now}, {names.reference.then} {then}."
    other = found["other"]
    if other is None:
        return text
    there = names.groups[other["group"]].said
    return f"{text} The same {_what(content)} in group {there}: {names.reference.then} {_then(names, other)}."


def _between(content: Content, low: float | None, high: float | None) -> str:
    """A score, or a value of the decision function, between two."""
    what = _what(content)
    if what == "score":
        return f"score between {low:.2f} and {high:.2f}"
    if low is None or high is None:
        return (
            what
            if low is high
            else f"{what} of at most {high:.4g}"
            if low is None
            else f"{what} above {low:.4g}"
        )
    return f"{what} above {low:.4g} and at most {high:.4g}"


def _then(names: Names, found: Content) -> str:
    """What is decided, or with which probabilities."""
    if found["then"] is not None:
        return names.decisions[found["then"]].said
    drawn = names.decisions[found["drawn"]].said
    return f"{drawn} with a chance of {percent(found['chance'])}, at random"


# ---------------------------------------------------------------------------------------------------------
# The words of an audit's page: decisions as they are, and nothing to choose.


def audit_view(content: Content) -> dict[str, Any]:
    """Everything that the page of an audit shows, as text."""
    names, baseline, verdict = Names.of(content), content["baseline"], content["verdict"]
    aside = [j for j in range(len(names.measures)) if j not in names.own]
    parts = [part for j, part in enumerate(baseline["measures"]) if j in names.shown]
    return {
        "names": names,
        "title": title_of(content, names),
        "kicker": kicker_of(content, "Fairness audit"),
        "people": count(sum(group["people"] for group in content["groups"])),
        "verdict": verdict,
        "flag_rows": [
            [flag[part] for part in ("level", "kind", "name", "sentence")] for flag in verdict["flags"]
        ],
        "lanes_of": [_audit_lanes(content, names, j) for j in (*names.shown, *aside)],
        "folded": [_audit_lanes(content, names, j) for j in names.folded],
        "bounds": any("bounds" in mean for part in parts for mean in part["means"]),
        "measures": appendix.measures(content, names),
        "required": appendix.required(content, names, baseline.get("requirements", ())),
        "ratios": appendix.ratios(content, names),
        "labels": appendix.unlabelled(content),
        "notes": list(dict.fromkeys(appendix.said(content, text) for text in content["notes"])),
        "methods": [appendix.said(content, text) for text in content["methods"]],
        "loss": _loss(content, names),
        "fingerprint": content["fingerprints"]["people"],
        "versions": list(content["versions"].items()),
        "command": content["command"],
        "confidence": confidence_text(content),
    }


def _loss(content: Content, names: Names) -> str:
    """What the decisions lose, in a few words."""
    loss = content["baseline"]["loss"]
    if loss is None:
        return ""
    ends = [loss[end] for end in ("low", "high")]
    if "title" in content["loss"] and None not in ends:
        return _loss_of_amounts(content["loss"], loss)
    if None in ends:
        return f"{names.aim[:1].upper()}{names.aim[1:]}: {names.goods([loss['estimate']])[0]}."
    # Of right decisions, the larger loss is the smaller share.
    low, high = names.goods(ends[::-1] if names.accuracy else ends)
    return f"{names.aim[:1].upper()}{names.aim[1:]}: {names.goods([loss['estimate']])[0]}, {low} to {high}."


def _loss_of_amounts(described: Content, loss: Content) -> str:
    """The same of amounts; of squared errors the root too, which is in the label's unit."""
    quantity, title = Quantity("", described["step"]), described["title"]
    told = f"{title[:1].upper()}{title[1:]}: {quantity(loss['estimate'])}, {quantity.span(loss['low'], loss['high'])}."
    if "root_step" not in described:
        return told
    root = Quantity("", described["root_step"])
    number, low, high = (max(loss[end], 0.0) ** 0.5 for end in ("estimate", "low", "high"))
    return f"{told} Its root: {root(number)}, {root.span(low, high)}."


def _audit_lanes(content: Content, names: Names, j: int) -> dict[str, Any]:
    """One measure: a bar for the gap, a dot with its interval for every group."""
    quantity, part = names.quantities[j], content["baseline"]["measures"][j]
    # Shares of people who lose begin at nobody; amounts are far from 0, and differ by little.
    apart = j in names.own or content["measures"][j]["name"] == MEAN_AMOUNT
    scale, gap = scale_of_means([part], zero=not apart), part["gap"]
    compared = [z for z, group in enumerate(content["groups"]) if group["compared"]]
    asked = content["measures"][j]["asked"]
    return {
        "name": names.measures[j],
        "unit": clean(content["measures"][j]["unit"], 28) if content["measures"][j]["unit"] else "",
        "gap": None
        if gap is None
        else {
            "bar": [places[0] for places in gap_bars(scale, [part], compared)],
            "text": quantity(gap["estimate"]),
            "span": quantity.span(gap["low"], gap["high"]),
            "open": quantity.span(*gap["bounds"]) if gap.get("bounds") else "",
            "asked": "" if asked is None else f"allowed: at most {quantity.given(asked)}",
        },
        "remark": content["measures"][j].get("remark", ""),
        "ticks": scale.ticks(for_axis(quantity), 5),
        "rows": [_audit_row(content, names, scale, j, z) for z in by_baseline(content, j)],
    }


def _audit_row(content: Content, names: Names, scale: Scale, j: int, z: int) -> dict[str, Any]:
    """One group: its mean, the interval, and what hidden reasons leave open."""
    quantity, mean = names.quantities[j], content["baseline"]["measures"][j]["means"][z]
    low, high = scale.span(mean)
    left = mean.get("bounds")
    return {
        "name": names.groups[z],
        "people": count(content["groups"][z]["people"]),
        "note": group_note(content, mean, z),
        "known": mean["estimate"] is not None,
        "text": quantity(mean["estimate"]),
        "span": quantity.span(mean["low"], mean["high"]),
        "x": scale.across(mean["estimate"]),
        "low": low,
        "high": high,
        "bounds": scale.reach(*left) if left else None,
        "open": quantity.span(*left) if left else "",
    }
