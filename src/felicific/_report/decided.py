"""What is then decided: over the scores, or from which decision to which, one person, and in sentences."""

from __future__ import annotations

from typing import Any

from felicific._audit.names import listed
from felicific._audit.quantity import count, percent
from felicific._problem.happiness import written
from felicific._report.charts import bars_path, bars_paths, stairs_paths
from felicific._report.effects import by_baseline
from felicific._report.slider import Moving
from felicific._report.words import Content, Names, changes, counts, flows

#: Decisions up to which the moves of a group are shown as a table.
TABLE = 6

#: What stands before people who move, besides their colour.
ARROWS = {"same": "", "moves": "", "gains": "▲ ", "loses": "▼ "}

#: Height of a lane, and of one where there are more than so many groups.
HIGH, LOW, MANY = 92, 58, 4


def decided(content: Content, names: Names, moving: Moving) -> dict[str, Any]:
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
