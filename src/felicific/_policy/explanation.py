"""Explanations: what a policy decides on one person, and what makes it so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from felicific._files import plain
from felicific._people.checks import PROBABILITY_TOLERANCE
from felicific._policy.lottery import NEARLY, check_keys, keys_as_text
from felicific._shown.parts import Displayed, Lines, Part
from felicific._tables.engine import find_engine
from felicific._tables.memory import as_objects, refuse_several
from felicific._typing import Array, Floats, Table
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy


#: What an explanation is not.
NOT_LEGAL_REASONS = (
    "These are not the legal reasons for a refusal, and no notice to the person: they say how a score became this "
    "decision, not why the model gave that score. An adverse action notice (in the US, the Equal Credit Opportunity "
    "Act and Regulation B) states the specific principal reasons, and that a score was too low is not one. "
    "Explanations under the GDPR (Articles 15 and 22) or the EU AI Act (Article 86) need the part that the model "
    "played as well. For those, get the model's own reasons for this score from whoever built it, and ask a lawyer."
)


@dataclass(frozen=True)
class Cut:
    """A score at which a person's probabilities change, next to the person's own.

    Attributes
    ----------
    side : {"below", "above"}
        Where it lies, seen from the person.
    at : float
        The score. Probabilities change above it: somebody with exactly this score is still below.
    distance : float
        How far the person's own score is from it, in the score's own unit.
    probabilities : dict of decision to float
        The probabilities beyond it.
    decision : decision, or None
        What would be decided there, by the same draw; None where a draw decides and was not drawn.
    """

    side: str
    at: float
    distance: float
    probabilities: dict[Any, float]
    decision: Any = None


@dataclass(frozen=True)
class Draw:
    """What was drawn.

    Attributes
    ----------
    number : float
        Drawn for this person, from 0 to below 1: the same one every time.
    limits : dict of decision to pair of float
        From which number, to below which, each possible decision is taken.
    key : str, or None
        Who the person is to the lottery; None where that is the content of the row.
    """

    number: float
    limits: dict[Any, tuple[float, float]]
    key: str | None


@dataclass(frozen=True)
class Weighed:
    """How one of the rules that an individual policy mixes weighs the decisions about a person.

    Attributes
    ----------
    share : float
        With which probability the policy follows this rule.
    decision : decision
        What the rule decides.
    margin : float, or None
        By how much it is better than the next best, in the unit of the loss; None if the rule weighs nothing.
    loss : dict of decision to float
        The expected loss, what a change from the baseline costs included.
    terms : dict of str to dict of decision to float
        What is taken off, by the measure that pays for it: its price times the expected happiness.
    total : dict of decision to float
        The loss less these terms; the rule takes the least.
    """

    share: float
    decision: Any
    margin: float | None = None
    loss: dict[Any, float] = field(default_factory=dict)
    terms: dict[str, dict[Any, float]] = field(default_factory=dict)
    total: dict[Any, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Paid:
    """A requirement of the policy, and what it does to this decision.

    Attributes
    ----------
    words : str
        How it reads.
    price : float, or None
        Loss given up per unit by which it is tightened, of all people; 0 where it costs nothing, None where not kept.
    changes : bool, or None
        Whether the person would have other probabilities without it (by an individual policy: without its price, those
        of the others being as they are); None where that is not kept.
    """

    words: str
    price: float | None
    changes: bool | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Displayed):
    """Why a policy decides on one person as it does: print it for sentences.

    It says how a score became a decision, and nothing of why the model gave that score: these are not the legal reasons
    for a refusal, see ``caution``.

    Attributes
    ----------
    decision : decision, or None
        What the policy decides; None where a draw decides and no key says who the person is.
    probabilities : dict of decision to float
        Its probabilities.
    baseline : decision
        What the existing system decides.
    kind : str
        What the policy sees of a person, as ``policy=`` calls it.
    group : group, or None
        The person's; None where the policy does not see it.
    label : decision, or None
        What the model labels the person; None where a label is drawn from its probabilities.
    score : float, or None
        Of two classes the score of the second; of more, the probability of the model's label.
    cuts : tuple of Cut
        The nearest scores below and above at which the probabilities change, the nearest first.
    weighed : tuple of Weighed
        How an individual policy weighs the decisions.
    draw : Draw, or None
        What was drawn, if a draw decides and somebody said who the person is.
    otherwise : dict of group to probabilities
        Groups that have other probabilities, everything else being as it is; empty where the policy does not see the
        group.
    unconstrained : dict of decision to float, or None
        The probabilities by the best policy of this kind of which nothing is required; None where they are not kept.
    requirements : tuple of Paid
        What was required of the policy.
    sentences : tuple of str
        All of it in words.
    caution : str
        What it is not: the legal reasons for a refusal, and what those would need.
    """

    decision: Any
    probabilities: dict[Any, float]
    baseline: Any
    kind: str
    group: Any = None
    label: Any = None
    score: float | None = None
    cuts: tuple[Cut, ...] = ()
    weighed: tuple[Weighed, ...] = ()
    draw: Draw | None = None
    otherwise: dict[Any, dict[Any, float]] = field(default_factory=dict)
    unconstrained: dict[Any, float] | None = None
    requirements: tuple[Paid, ...] = ()
    sentences: tuple[str, ...] = ()
    caution: str = NOT_LEGAL_REASONS

    _whole: ClassVar[str] = "print it, or to_dict()."

    @property
    def distance(self) -> float | None:
        """How far the score is from the nearest cut, in its own unit; None where there is none."""
        return min((cut.distance for cut in self.cuts), default=None)

    @property
    def margin(self) -> float | None:
        """Of an individual policy, the smallest margin of a rule that weighs; None where there is none."""
        return min((one.margin for one in self.weighed if one.margin is not None), default=None)

    def __str__(self) -> str:
        return "\n".join([*self.sentences, self.caution])

    def _parts(self) -> list[Part]:
        first, *others = self.sentences
        return [
            Lines([first], strong=True),
            Lines(others, self._whole, listed=True),
            Lines([self.caution], longest=len(self.caution)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold: what belongs to decisions and groups is a list of pairs."""
        names = [one.name for one in fields(self)]
        place = names.index("cuts")
        names[place:place] = ["distance", "margin"]
        found = {name: _plain(getattr(self, name)) for name in names}
        draw = found["draw"]
        if draw is not None:
            draw["limits"] = [[decision, low, high] for decision, (low, high) in draw["limits"]]
        for one in found["weighed"]:
            one["terms"] = dict(one["terms"])
        return found


def _plain(value: object) -> Any:
    """Anything in an explanation as JSON holds it."""
    if isinstance(value, Mapping):
        return [[_plain(name), _plain(part)] for name, part in value.items()]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value if value is None or isinstance(value, float) else plain([value], "value")[0]


# ---------------------------------------------------------------------------------------------------------
# Grounds: what a kind of policy knows of why it decides on a person, before it is put into words.


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
