"""Explanations: what a policy decides on one person, and what makes it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from felicific._files import plain
from felicific._shown.parts import Displayed, Lines, Part

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
        return {
            "decision": _plain(self.decision),
            "probabilities": _pairs(self.probabilities),
            "baseline": _plain(self.baseline),
            "kind": self.kind,
            "group": _plain(self.group),
            "label": _plain(self.label),
            "score": self.score,
            "distance": self.distance,
            "margin": self.margin,
            "cuts": [
                {
                    "side": cut.side,
                    "at": cut.at,
                    "distance": cut.distance,
                    "probabilities": _pairs(cut.probabilities),
                    "decision": _plain(cut.decision),
                }
                for cut in self.cuts
            ],
            "weighed": [
                {
                    "share": one.share,
                    "decision": _plain(one.decision),
                    "margin": one.margin,
                    "loss": _pairs(one.loss),
                    "terms": {name: _pairs(term) for name, term in one.terms.items()},
                    "total": _pairs(one.total),
                }
                for one in self.weighed
            ],
            "draw": None
            if self.draw is None
            else {
                "number": self.draw.number,
                "limits": [
                    [_plain(decision), low, high] for decision, (low, high) in self.draw.limits.items()
                ],
                "key": self.draw.key,
            },
            "otherwise": [
                [_plain(group), _pairs(probabilities)] for group, probabilities in self.otherwise.items()
            ],
            "unconstrained": None if self.unconstrained is None else _pairs(self.unconstrained),
            "requirements": [
                {"words": one.words, "price": one.price, "changes": one.changes} for one in self.requirements
            ],
            "sentences": list(self.sentences),
            "caution": self.caution,
        }


def _plain(value: object) -> Any:
    """A decision or a group as JSON holds it."""
    return None if value is None else plain([value], "value")[0]


def _pairs(numbers: Mapping[Any, float]) -> list[list[Any]]:
    return [[_plain(name), number] for name, number in numbers.items()]
