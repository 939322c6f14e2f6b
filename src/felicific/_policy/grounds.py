"""Grounds: what a kind of policy knows of why it decides on a person, before it is put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from felicific._people.checks import PROBABILITY_TOLERANCE
from felicific._policy.explanation import Weighed
from felicific._policy.lottery import NEARLY, check_keys, keys_as_text
from felicific._tables.engine import find_engine
from felicific._tables.memory import as_objects, refuse_several
from felicific._typing import Array, Floats, Table
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

#: Probabilities that differ by less are the same probabilities.
ALIKE = 1e-9


class Person(NamedTuple):
    """One person, as a policy takes people: arrays and a table of one row, checked by the policy itself."""

    scores: Array
    group: int | None
    x: Table
    group_proba: Array | None


def one_of(value: object, what: str, n_classes: int = 0) -> Array:
    """The one value of a person, as a vector; of ``n_classes`` probabilities in a row, as a table of one row."""
    if isinstance(value, str):
        return as_objects([value])
    if find_engine(value) is not None:
        raise DataError(
            "The table is not in memory, and an explanation is of one person.",
            "Pass this person's values; collect a lazy one first.",
        )
    array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    if array.ndim == 0:
        return as_objects([value])
    if n_classes and array.shape == (n_classes,) and array.dtype.kind in "biuf":
        # Of two numbers, those that do not sum to one are the scores of two people.
        one = n_classes > 2 or abs(float(array.sum()) - 1.0) <= PROBABILITY_TOLERANCE
        array = array[None, :] if one else array
    refuse_several(len(array), what)
    return array


def one_key(key: object) -> str:
    """The text that the lottery hashes for one person."""
    return keys_as_text(check_keys(one_of(key, "keys")))[0]


class Counterfactual(NamedTuple):
    """What a policy would do without requirements: the probabilities, and the cuts that those move.

    If that is all they do.
    """

    probabilities: Floats
    cuts: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """What a kind of policy knows of why it decides on a person: positions and probabilities, not yet in words.

    Attributes
    ----------
    likely : int
        Position of the decision that the model by itself takes.
    label : int, or None
        Position of the model's label, where the policy goes by it.
    score : float, or None
        The score that the policy goes by.
    cuts : list of (side, score, probabilities)
        Where the probabilities change.
    own_cuts : tuple of float
        All cuts of the person's group along the score.
    weighed : list of Weighed
        How rules weigh the decisions.
    words : list of str
        What decides, in sentences.
    unconstrained : Counterfactual, or None
        Without any requirement; None where it is not kept.
    without : dict of str to probabilities
        Without one requirement, by its name in prices, as far as that is known.
    """

    likely: int
    label: int | None = None
    score: float | None = None
    cuts: list[tuple[str, float, Floats]] = field(default_factory=list)
    own_cuts: tuple[float, ...] = ()
    weighed: list[Weighed] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    unconstrained: Counterfactual | None = None
    without: dict[str, Floats] = field(default_factory=dict)


def required(policy: Policy) -> dict[str, tuple[str, set[int]]]:
    """What was required of a policy: by its words, what it is called in prices and which measures it speaks of."""
    found: dict[str, tuple[str, set[int]]] = {}
    names = [measure.name for measure in policy.measures]
    for name, width in policy.basis.allowed.items():
        if name in names and math.isfinite(width):
            j = names.index(name)
            found[f"gap of {name!r} at most {policy.measures[j].quantity(width)}"] = (name, {j})
    for asked in policy.basis.requirements:
        known = {asked.j} if asked.over is None else {asked.j, asked.over}
        found.setdefault(asked.words, (asked.words, known))
    for one in policy.explore:
        found.setdefault(one.chance.words, (one.chance.words, set()))
    return found


def idle(policy: Policy) -> set[str]:
    """Requirements, by their words, without which the policy is the best too: no price, and room up to the limit.

    At the limit one without a price may still be what chooses among policies that are equally good.
    """
    gaps, reached = policy.gaps, {one.words: one for one in policy.basis.requirements}
    found = set()
    for words, (name, _) in required(policy).items():
        room = policy.sees_x  # no price there is no weight in what is compared
        if words in reached:
            asked = reached[words]
            number, sides = asked.reached(policy.outcome.means), (asked.lower, asked.upper)
            room |= any(map(math.isfinite, sides)) and all(_apart(number, side) for side in sides)
        elif name in gaps:
            room |= _apart(gaps[name], policy.basis.allowed[name])
        if policy.prices.get(name) == 0 and room:
            found.add(words)
    return found


def _apart(number: float, side: float) -> bool:
    return abs(number - side) > 1e-6 * max(1.0, abs(side))


def differ(one: Floats, other: Floats) -> bool:
    """Whether probabilities are not the same."""
    return bool((np.abs(one - other) > ALIKE).any())


def percent(chance: float) -> str:
    """A chance, never rounded to none or all that it is not."""
    text = f"{chance:.2%}"
    return text if chance in (0.0, 1.0) else NEARLY.get(text, text)


def probability_words(probabilities: Mapping[Any, float]) -> str:
    """Probabilities as a sentence has them, the likeliest first.

    "1 with probability 70.00% and 0 with probability 30.00%".
    """
    held = sorted(((d, p) for d, p in probabilities.items() if p > 0), key=lambda one: -one[1])
    if len(held) == 1:
        return repr(held[0][0])
    return " and ".join(f"{d!r} with probability {percent(p)}" for d, p in held)
