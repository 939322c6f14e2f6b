"""Exploration: everybody keeps a chance of a decision, so that what becomes of people is seen of all kinds of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from felicific._files import read_number, refused
from felicific._problem.criteria import Choices
from felicific._problem.happiness import Happiness, written
from felicific._problem.requirement import Requirement
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import ConstraintError, InfeasibleError

#: By how much a chance may seem to be larger than one that is just kept.
JUST = 1e-9


@dataclass(frozen=True)
class Chance:
    """A chance of a decision that people keep, each of them.

    Attributes
    ----------
    words : str
        How it reads.
    decision : int
        Position of the decision.
    at_least : float
        The chance.
    groups : tuple of int, or None
        Positions of the groups that keep it; None for all.
    scores : pair of float, or None
        From which score to which people keep it; None for all.
    """

    words: str
    decision: int
    at_least: float
    groups: tuple[int, ...] | None = None
    scores: tuple[float, float] | None = None


@dataclass(frozen=True)
class Exploration(Requirement):
    """Everybody keeps at least this chance of a decision.

    Who is never approved never shows whether they would have repaid. A small chance, drawn by the policy's lottery and
    written down (``policy.apply(..., with_proba=True)``), is what the next round can learn from.

    Parameters
    ----------
    at_least : number
        The chance, between 0 and 1.
    decision : class, optional
        Of which decision; by default the best one.
    groups : sequence, optional
        Who keeps it; by default everybody. Only for a policy that sees the group.
    scores : (low, high), optional
        Only people whose score of the second of two classes lies in this range, both ends included. In a policy of
        cells, every cell that reaches into the range counts whole; and where the chance may not fall as the score
        rises, so does what lies beyond.

    Notes
    -----
    Of several for the same decision, a person keeps the largest. Its price is that of one more unit of the chance.
    It needs the lottery, so ``randomize=False`` is refused; and people need a ``key``, or equal rows draw equal
    numbers.

    Examples
    --------
    >>> from felicific import Exploration, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap={}, constraints=[Exploration(at_least=0.1)], change_cost=0, random_state=0)
    >>> policy.probabilities([0.1, 0.9], group=["f", "m"])[:, 1].round(9).tolist()
    [0.1, 1.0]
    >>> round(policy.loss, 9), policy.prices
    (0.0375, {'chance of 1 at least 0.1': 0.375})
    """

    at_least: float = 0.02
    decision: Any = None
    groups: tuple[Any, ...] | None = None
    scores: tuple[float, float] | None = None
    course: ClassVar[None] = None
    of_persons: ClassVar[bool] = True
    stays: ClassVar[str] = "each chance is a policy of its own, and its price says what a little more costs"

    def __post_init__(self) -> None:
        chance = _number(self.at_least)
        if not 0.0 < chance < 1.0:
            raise ConstraintError(
                f"Everybody is to keep a chance of at least {self.at_least!r}.",
                "Give a number between 0 and 1; two per cent are 0.02.",
            )
        object.__setattr__(self, "at_least", chance)
        if self.groups is not None:
            listed = isinstance(self.groups, Iterable) and not isinstance(self.groups, str)
            groups = tuple(self.groups) if listed else ()
            if not groups:
                raise ConstraintError(
                    f"The groups of Exploration are {self.groups!r}.", "Pass a list of groups."
                )
            object.__setattr__(self, "groups", groups)
        if self.scores is not None:
            listed = isinstance(self.scores, Iterable) and not isinstance(self.scores, str)
            ends = [_number(end) for end in self.scores] if listed else []
            if len(ends) != 2 or not 0.0 <= ends[0] < ends[1] <= 1.0:
                raise ConstraintError(
                    f"The scores of Exploration are {self.scores!r}.",
                    "Give the least and the largest score, such as (0.2, 0.5).",
                )
            object.__setattr__(self, "scores", (ends[0], ends[1]))

    def named(self, choices: Choices) -> Exploration:
        """Of the best decision, unless another is named."""
        best = choices.best if self.decision is None else self.decision
        return replace(self, decision=choices.decisions[self._position(best, choices.decisions)])

    def speaks_of(self, own: tuple[Happiness, ...], choices: Choices) -> None:
        """Of no happiness."""

    @staticmethod
    def _position(decision: Any, decisions: list[Any]) -> int:
        if decision not in decisions:
            raise ConstraintError(
                f"Exploration speaks of the decision {decision!r}, which is none.",
                f"The decisions are {', '.join(map(repr, decisions))}.",
            )
        return decisions.index(decision)

    def chances(self, decisions: list[Any], groups: Sequence[Any]) -> list[Chance]:
        """The one that it asks for."""
        d = len(decisions) - 1 if self.decision is None else self._position(self.decision, decisions)
        for group in self.groups or ():
            if group not in groups:
                raise ConstraintError(
                    f"Exploration speaks of the group {group!r}, which does not occur.",
                    f"The groups are {', '.join(map(repr, groups))}.",
                )
        if self.scores is not None and len(decisions) != 2:
            raise ConstraintError(
                f"Exploration speaks of scores from {self.scores[0]:g} to {self.scores[1]:g}, and there are "
                f"{len(decisions)} classes, of which nobody has a single score.",
                "Leave scores= out, or say groups=.",
            )
        who = None if self.groups is None else tuple(list(groups).index(group) for group in self.groups)
        return [Chance(self._words(decisions[d]), d, self.at_least, who, self.scores)]

    def _words(self, decision: Any) -> str:
        words = f"chance of {decision!r} at least {written(self.at_least, 6)}"
        if self.groups is not None:
            words += f" in {', '.join(map(repr, self.groups))}"
        return (
            words
            if self.scores is None
            else f"{words} for scores from {self.scores[0]:g} to {self.scores[1]:g}"
        )


@dataclass(frozen=True)
class Explored:
    """What a policy remembers of a chance that people keep.

    Attributes
    ----------
    chance : Chance
        Who keeps which.
    share : float, or None
        Share of the fitted people who have just that chance: whose decision it is that is explored.
    loss : float, or None
        What the loss of the fitted people is more than without it.
    """

    chance: Chance
    share: float | None = None
    loss: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As data."""
        chance = self.chance
        return {
            "words": chance.words,
            "decision": chance.decision,
            "at_least": chance.at_least,
            "groups": None if chance.groups is None else list(chance.groups),
            "scores": None if chance.scores is None else list(chance.scores),
            "share": self.share,
            "loss": self.loss,
        }

    @classmethod
    def from_json(cls, content: Any, n_classes: int, n_groups: int) -> Explored:
        """Read what :meth:`to_json` wrote, of a policy with so many decisions and groups."""
        names = {"words", "decision", "at_least", "groups", "scores", "share", "loss"}
        if not isinstance(content, dict) or set(content) != names or type(content["words"]) is not str:
            raise refused("a chance that people keep lacks a part, or has one too many")
        least, d, who = read_number(content["at_least"], "chance"), content["decision"], content["groups"]
        ends, share = content["scores"], content["share"]
        if type(d) is not int or not 0 <= d < n_classes or not 0.0 < least < 1.0:
            raise refused("a chance that people keep is none, or of no decision")
        if who is not None and not (who and all(type(z) is int and 0 <= z < n_groups for z in who)):
            raise refused("a chance is kept by no group")
        if ends is not None:
            ends = [read_number(end, "score") for end in ends]
            if len(ends) != 2 or not 0.0 <= ends[0] < ends[1] <= 1.0 or n_classes != 2:
                raise refused("a chance is kept by people of impossible scores")
        share = None if share is None else read_number(share, "share")
        if share is not None and not 0.0 <= share <= 1.0 + JUST:
            raise refused("a chance is just kept by what is no share of people")
        loss = None if content["loss"] is None else read_number(content["loss"], "loss")
        kept = None if who is None else tuple(who)
        scores = None if ends is None else (ends[0], ends[1])
        return cls(Chance(content["words"], d, least, kept, scores), share, loss)


def explored_in(
    chances: Sequence[Chance], losses: Sequence[float | None] | None = None
) -> tuple[Explored, ...]:
    """What a policy of score bins remembers of chances, with what each adds to the loss where that is known."""
    each = [None] * len(chances) if losses is None else losses
    return tuple(Explored(chance, loss=loss) for chance, loss in zip(chances, each, strict=True))


def floors_of(chances: Sequence[Chance], score: Floats | None, group: Codes, n_classes: int) -> Floats:
    """The chance of every decision that every person keeps, of shape (n, decisions)."""
    floors = np.zeros((len(group), n_classes))
    for chance in chances:
        kept = keeps(chance, score, group)
        floors[kept, chance.decision] = np.maximum(floors[kept, chance.decision], chance.at_least)
    return floors


def keeps(chance: Chance, score: Floats | None, group: Codes) -> Truths:
    """Whether a chance speaks of each person."""
    kept = np.ones(len(group), dtype=bool) if chance.groups is None else np.isin(group, chance.groups)
    if chance.scores is None:
        return kept
    assert score is not None, "two classes have a score"
    return np.asarray(kept & (score >= chance.scores[0]) & (score <= chance.scores[1]))


def refuse_chances(chances: Sequence[Chance], n_groups: int, *, sees_group: bool) -> None:
    """Refuse chances that nobody can keep: by a group that is not seen, or together more than 1."""
    for chance in chances:
        if chance.groups is not None and not sees_group:
            raise ConstraintError(
                f"Exploration speaks of some groups ({chance.words}), and the policy does not see the group.",
                "Leave groups= out, or let the policy see the group.",
            )
    # Ranges that overlap do so where one of them begins.
    for score in {0.0, *(chance.scores[0] for chance in chances if chance.scores is not None)}:
        for z in range(n_groups):
            largest: dict[int, Chance] = {}
            for chance in chances:
                kept = keeps(chance, np.array([score]), np.array([z]))[0]
                if kept and chance.at_least > getattr(largest.get(chance.decision), "at_least", 0.0):
                    largest[chance.decision] = chance
            _refuse_more_than_one(list(largest.values()))


def _refuse_more_than_one(chances: list[Chance]) -> None:
    conflict = sorted(chances, key=lambda chance: chance.at_least)
    if sum(chance.at_least for chance in conflict) <= 1.0 + JUST:
        return
    while sum(chance.at_least for chance in conflict[1:]) > 1.0 + JUST:
        conflict = conflict[1:]
    words = tuple(chance.words for chance in conflict)
    raise InfeasibleError(
        f"No policy meets: {'; '.join(words)}, all at once: these chances are together more than 1.",
        "Lower any one of them.",
        words,
    )


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError):
        return math.nan
