"""Flags: what a signer should know besides the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from felicific._audit import words_of_verdicts as words
from felicific._audit.facts import Facts

#: Groups of fewer people are called tiny, and very tiny.
FEW, FEWEST = 100, 30

#: A gap that grows by less than this share of the baseline's is not worth a flag, nor are draws of fewer people a
#: warning.
GROWN, MANY_RANDOMIZED = 0.02, 0.05


@dataclass(frozen=True)
class Flag:
    """Something that a signer should know besides the verdict.

    Attributes
    ----------
    kind : str
        A short name that does not change, such as "asked-missed".
    level : {1, 2, 3}
        3 for what speaks against signing, 2 for what to look at, 1 for what to know.
    name, sentence : str
        For reading.
    """

    kind: str
    level: int
    name: str
    sentence: str


def find_flags(facts: Facts, kind: str) -> list[Flag]:
    """One flag of each kind that there is reason for."""
    found = [
        _in_sample(facts),
        _levels_down(facts, kind),
        _gap_grows(facts),
        _asked_missed(facts),
        _order_flips(facts),
        _tiny_group(facts),
        _below_majority(facts),
        _others_grow(facts),
        _randomized(facts),
        _labels(facts),
        _sees_group(facts),
    ]
    return [flag for flag in found if flag is not None]


def _in_sample(facts: Facts) -> Flag | None:
    if not facts.in_sample:
        return None
    return Flag("in-sample", 3, "Fitted to these people", facts.in_sample)


def _levels_down(facts: Facts, kind: str) -> Flag | None:
    taking = [shift for shift in facts.shifts if shift.levels_down]
    if not taking or kind == "levels-down":
        return None
    return Flag("levels-down", 3, "Levels down", words.taken(facts, taking))


def _gap_grows(facts: Facts) -> Flag | None:
    growing = [
        shift
        for shift in facts.closed
        if shift.change is not None and shift.change.estimate > GROWN * shift.before.estimate
    ]
    if not growing:
        return None
    shown = any(shift.grows for shift in growing)
    chance = "" if shown else " That may be chance."
    return Flag("gap-grows", 3 if shown else 2, "A gap grows", words.grown(growing) + chance)


def _asked_missed(facts: Facts) -> Flag | None:
    shown = [shift for shift in facts.shifts if shift.exceeds]
    seen = [shift for shift in facts.shifts if shift.misses]
    others = [row for row in facts.requirements if row.met is False]
    if not (shown or seen or others):
        return None
    level = 3 if shown or any(row.refuted for row in others) else 2
    return Flag("asked-missed", level, "Misses what was asked", words.missed(facts, shown or seen, others))


def _order_flips(facts: Facts) -> Flag | None:
    for shift in facts.shifts:
        if not shift.was:  # distributions have no means to be in order
            continue
        top, bottom = (pick(range(len(shift.was)), key=shift.was.__getitem__) for pick in (max, min))
        flips = shift.then[top] < shift.then[bottom] and shift.before.estimate > 0.0
        if flips and (shift.after.low > 0.0 or shift.after.estimate > shift.before.estimate / 2.0):
            places = shift.compared[top], shift.compared[bottom]
            told = words.flipped(facts, shift, (top, bottom), places)
            return Flag("order-flips", 2, "The order turns around", told)
    return None


def _tiny_group(facts: Facts) -> Flag | None:
    tiny = [z for z in facts.compared if facts.sizes[z] < FEW]
    if not tiny:
        return None
    level = 3 if any(facts.sizes[z] < FEWEST for z in tiny) else 2
    return Flag("tiny-group", level, "Few people", words.tiny(facts, tiny, FEW))


def _below_majority(facts: Facts) -> Flag | None:
    if facts.accuracy is None or facts.majority is None or facts.accuracy >= facts.majority:
        return None
    return Flag("below-majority", 3, "Worse than deciding all alike", words.below_majority(facts))


def _others_grow(facts: Facts) -> Flag | None:
    grown = [shift.title for shift in facts.shifts if not shift.closed and shift.grows] + list(facts.others)
    if not grown:
        return None
    return Flag("others-grow", 2, "Other gaps grow", words.others(grown))


def _randomized(facts: Facts) -> Flag | None:
    if facts.randomized <= 0.0:
        return None
    many = facts.randomized > MANY_RANDOMIZED * facts.people
    return Flag("randomized", 2 if many else 1, "People are randomized", words.randomized(facts))


def _labels(facts: Facts) -> Flag | None:
    if facts.labels == "selected":
        return Flag("selective-labels", 3, "Labels of some people only", words.SELECTED)
    if facts.labels is None:
        return Flag("labels-unstated", 1, "Whose labels these are", words.UNSTATED)
    return None


def _sees_group(facts: Facts) -> Flag | None:
    if facts.infers_group:
        return Flag("infers-group", 1, "Infers the group", words.INFERS)
    return Flag("sees-group", 1, "Decides by group", words.UNLAWFUL) if facts.sees_group else None
