"""What a steering says of itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from felicific._policy.aims import others_asked
from felicific._problem.happiness import written
from felicific._shown.parts import Lines, Part, Table, between, short

if TYPE_CHECKING:
    from felicific._policy.steering import Steering

#: Where the groups are that are not shown.
MORE = ".controls and .means have all; shown are those of the smallest and of the largest means."


def parts_of(steering: Steering) -> list[Part]:
    """What it holds, how far it is, and how every group is decided on now."""
    return [
        Lines([_headline(steering)], strong=True),
        Lines(_remarks(steering)),
        _table(steering),
    ]


def _headline(steering: Steering) -> str:
    kind, people = steering.steered.kind, steering.total
    told = f"{people:,} people decided on" if people else "nobody decided on yet"
    if steering.heard:
        told += f", {steering.heard:,} more heard of"
    return f"A steered policy of kind {kind!r} that holds {steering.aim}: {told}."


def _remarks(steering: Steering) -> list[str]:
    found, measure = [], steering.measure
    if not math.isnan(steering.gap):
        found.append(f"The gap so far is {measure.short(steering.gap)}{_most(steering)}.")
    if steering.limited:
        found.append(
            f"For {steering.limited:,} people a control would have gone further than a reach of {steering.reach:g} "
            "allows: fit the policy again, and begin a new steering."
        )
    others = _not_kept(steering)
    if others:
        found.append(f"Not kept while steering: {'; '.join(others)}.")
    return [
        *found,
        f"An error that stays shrinks to a third within about {written(steering.pace, 3)} people (pace), as far as "
        f"a reach of {steering.reach:g} lets controls go. What a safe fit showed is of the policy, not of "
        "a steered one.",
    ]


def _most(steering: Steering) -> str:
    """What the gap could not exceed, where that says something; and how much of it is for who could not be helped."""
    bound, measure = steering.bound, steering.measure
    if bound is None or bound >= measure.widest:
        return ""
    added = steering.added
    part = f", {measure.short(added)} of which for people who could not be paid back" if added else ""
    return f"; whoever came, it could not be more than {measure.short(bound, 1)}{part}"


def _not_kept(steering: Steering) -> list[str]:
    """Requirements of the policy that nothing is done for."""
    policy, name = steering.steered, steering.measure.name
    gaps = [f"a gap of {other!r}" for other in policy.basis.allowed if other != name]
    j = [measure.name for measure in policy.measures].index(name)
    own_gap = steering.aim.startswith("a gap")
    return gaps + [asked.words for asked in others_asked(policy) if own_gap or asked.j != j]


def _table(steering: Steering) -> Table:
    measure, means, people = steering.measure, steering.means, steering.people
    rows = [
        (
            short(str(group)),
            f"{people[group]:,}",
            "-" if math.isnan(means[group]) else measure.cell(means[group]),
            f"{control.now:.4g}",
            f"{control.fitted:.4g}",
            control.words,
        )
        for group, control in steering.controls.items()
    ]
    known = [means[group] for group in steering.controls]
    unit = "" if measure.in_currency or not measure.unit else f" ({short(measure.unit, 16)})"
    header = ("group", "people", f"mean{unit}", "control", "at first", "the next person is")
    return Table("", header, rows, MORE, keep=between(known), words=True)


def remembered(steering: Steering) -> tuple[str, ...]:
    """What is known of a policy that holds the controls of a moment."""
    measure, means, people = steering.measure, steering.means, steering.people
    told = sum(people.values())
    first = (
        f"These are the controls of a steered policy after {told:,} people. Nobody measured what they do, so no loss, "
        "no mean and no gap is stated: audit it."
    )
    held = [group for group in means if people[group]]
    if not held:
        return (first, "Nobody was decided on yet: they are where the policy was fitted.")
    each = ", ".join(
        f"{measure.quantity(means[group])} in group {group!r} ({people[group]:,} people)" for group in held
    )
    return first, f"While they moved, mean {measure.name!r} was {each}."
