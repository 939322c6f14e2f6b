"""WorseOff: how many people may get less than the baseline's decision gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from felicific._problem.criteria import CRITERIA, Choices
from felicific._problem.happiness import (
    ARGUMENTS,
    LOSES,
    SAME,
    Happiness,
    Loses,
    Measure,
    arguments_of,
    criterion,
    positions,
    written,
)
from felicific._problem.linear import Goal, Rows, mean_rows
from felicific._problem.requirement import GroupSums, Requirement, Share
from felicific._problem.requirements import Gap, constraint_name, ends_at
from felicific._problem.unions import Shares
from felicific._typing import Floats, Truths
from felicific.exceptions import ConstraintError

if TYPE_CHECKING:
    from felicific._problem.problem import Problem


def can_be_lost(part: Happiness) -> bool:
    """Whether people want more of it, and have it: who is not counted by a fraction has none that could be compared."""
    return part.measure.wanted and not part.over


@dataclass(frozen=True)
class WorseOff(Requirement):
    """At most a share of the people get less than from the baseline's decision.

    Parameters
    ----------
    at_most : number
        The share, from 0 to 1; with 0 nobody is worse off: groups are brought together by giving alone. Beside
        ``confidence=``, 0 is accepted where a policy of score bins or labels makes sure of it by construction.
    happiness : str, function or Happiness, optional
        What somebody loses by getting less of it: a measure or a criterion by name, or a happiness of its own. By
        default any measure of the happiness that people want more of.
    groups : sequence, optional
        At most that share of each of these groups; by default of all people together.

    Notes
    -----
    It adds a measure to what is measured: ``loses``, or ``loses <name>`` where the happiness is named. Its mean is
    the share of people of a group who get less, expected over the lottery.

    Examples
    --------
    >>> from felicific import WorseOff, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap=0.0, constraints=[WorseOff(0)], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}
    {'f': 0.75, 'm': 0.75}
    >>> policy.means["loses"]
    {'f': 0.0, 'm': 0.0}
    """

    at_most: float = 0.0
    happiness: Any = None
    groups: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        try:
            share = float(self.at_most)
        except (TypeError, ValueError):
            share = math.nan
        if isinstance(self.at_most, str | bool) or not 0.0 <= share < 1.0:
            raise ConstraintError(
                f"At most {self.at_most!r} of the people are to lose.",
                "Give a share from 0 to less than 1; two per cent are 0.02.",
            )
        object.__setattr__(self, "at_most", share)
        if self.groups is not None:
            listed = isinstance(self.groups, Iterable) and not isinstance(self.groups, str)
            if not listed or not tuple(self.groups):
                raise ConstraintError(
                    f"The groups of WorseOff are {self.groups!r}.", "Pass a list of groups."
                )
            object.__setattr__(self, "groups", tuple(self.groups))

    limit: ClassVar[Literal["at most"]] = "at most"

    def at(self, value: float) -> WorseOff:
        """With another share."""
        return replace(self, at_most=value)

    def ends(self, sums: GroupSums, reached: float) -> tuple[float, float]:
        """From nobody."""
        return 0.0, min(reached, 1.0 - 1e-9)

    @property
    def name(self) -> str:
        """What the measure is called that counts who loses."""
        return LOSES if self.happiness is None else f"{LOSES} {constraint_name(self.happiness)}"

    def speaks_of(self, own: tuple[Happiness, ...], choices: Choices) -> Happiness:
        """Who gets less, of what people want among these measures, or of the happiness that is named."""
        parts = own if self.happiness is None else self._named(own, choices)
        wanted = tuple(part for part in parts if can_be_lost(part))
        if not wanted:
            raise ConstraintError(
                f"Nobody can lose by {', '.join(repr(part.name) for part in parts)}: nobody wants more of it, or "
                "who is not counted has none that could be compared.",
                "Name a happiness that people want more of.",
            )
        return Happiness(Loses(wanted), name=self.name, unit="share")

    def _named(self, own: tuple[Happiness, ...], choices: Choices) -> tuple[Happiness, ...]:
        if not isinstance(self.happiness, str):
            one = self.happiness if isinstance(self.happiness, Happiness) else Happiness(self.happiness)
            return (one,)
        named = tuple(own[j] for j in positions(self.happiness, own))
        if named:
            return named
        if self.happiness in CRITERIA:
            return criterion(self.happiness, choices)
        raise ConstraintError(
            f"WorseOff speaks of {self.happiness!r}, which is no measure.",
            f"The measures are {', '.join(repr(part.name) for part in own)}.",
        )

    def parts(self, measures: Sequence[Measure]) -> list[int]:
        """Positions of what is lost among the measures of sums."""
        wanted = [j for j, one in enumerate(measures) if one.wanted and not one.over and not one.aside]
        if self.happiness is None:
            return wanted
        name = constraint_name(self.happiness)
        return [j for j in wanted if name in (measures[j].name, measures[j].family)]

    def rows(self, sums: GroupSums) -> list[Rows]:
        """One row for all people together, or for each group that is named."""
        rows: list[Rows] = []
        for one in self.shares(sums.measures, sums.groups):
            whose, counted = ("all people together",), sums.counted[:, one.j]
            weights: Floats | Shares = (counted / counted.sum())[None, :]
            if one.z is not None and counted[one.z] <= 0:
                continue  # nobody is of unknown group; any other group has somebody
            if one.z is not None:
                whose, weights = (sums.groups[one.z],), Shares.alone([one.z], len(sums.groups))
            j = ends_at(sums, one.j)[1] if sums.measures[one.j].ends else one.j  # even at its most
            goal = Goal(one.words, j, "mean", weights, whose, upper=one.at_most)
            rows.append(mean_rows(goal, -math.inf, one.at_most - float(sums.origin[j])))
        return rows

    def shares(self, measures: Sequence[Measure], groups: Sequence[Any]) -> list[Share]:
        """The share of all people, or of each group that is named."""
        names = [measure.name for measure in measures]
        if self.name not in names:
            raise ConstraintError(
                "These sums do not say who gets less than from the baseline's decision.",
                "Sum up with a baseline, and with what somebody may lose as happiness=.",
            )
        j = names.index(self.name)
        if self.groups is None:
            return [Share(j, None, self.at_most, self._words("the people"))]
        unknown = [group for group in self.groups if group not in groups]
        if unknown:
            raise ConstraintError(
                f"WorseOff speaks of the group {unknown[0]!r}, which does not occur.",
                f"The groups are {', '.join(map(repr, groups))}.",
            )
        return [
            Share(j, list(groups).index(group), self.at_most, self._words(f"group {group!r}"))
            for group in self.groups
        ]

    @property
    def provable(self) -> bool:
        """Never that nobody loses: those who do may be missing among people held out."""
        return self.at_most > 0.0

    def lessens(self, problem: Problem) -> Truths | None:
        """Which decision, by column, gives anybody less than which other, by row.

        None where it allows that somebody loses, and where what a decision is worth depends on the person.
        """
        parts = next((one.compared for one in problem.happiness if one.name == self.name), ())
        if self.provable or any(arguments_of(one.function, "It", ARGUMENTS) != {"decision"} for one in parts):
            return None
        worth = np.array(
            [[float(one.function(decision=d)) for d in problem.decisions.tolist()] for one in parts]
        )
        less = worth[:, :, None] - worth[:, None, :] > SAME * np.abs(worth[:, :, None])
        return np.asarray(less.any(axis=0))

    def cautious(self, margin: Callable[[float, Sequence[Any] | None], float], fitted: float) -> WorseOff:
        """Fewer, so that people held out can show it."""
        return replace(self, at_most=max(0.0, self.at_most - margin(self.at_most, self.groups)))

    @property
    def nobody(self) -> str:
        """That nobody loses, in words."""
        whom = "" if self.groups is None else f" of group {', '.join(map(repr, self.groups))}"
        return f"nobody{whom} gets {self._less}"

    @property
    def _less(self) -> str:
        named = "" if self.happiness is None else f" {constraint_name(self.happiness)!r}"
        return f"less{named} than from the baseline"

    def _words(self, whom: str) -> str:
        return f"at most {written(100.0 * self.at_most, 6)} % of {whom} get {self._less}"

    def __str__(self) -> str:
        whom = "the people" if self.groups is None else f"group {', '.join(map(repr, self.groups))}"
        return self._words(whom)


def measuring(measures: Sequence[Measure], own: Sequence[Happiness]) -> tuple[Requirement, ...]:
    """Requirements that have what the requirements of a policy speak of measured, as far as its name says what it is.

    ``measures`` are those of the policy, ``own`` what is measured anyway: nobody loses by another happiness.
    """
    names = {str(part.name) for part in own}
    if not names >= {one.name for one in measures if not one.aside}:
        return ()
    usable = {*names, *(part.family for part in own), *CRITERIA}
    needed: dict[str, Requirement] = {}
    for one in measures:
        of = one.name.removeprefix(f"{LOSES} ")
        if one.tells_who and (one.name == LOSES or of in usable):
            needed[one.name] = WorseOff(happiness=None if one.name == LOSES else of)
        elif one.aside and one.family in CRITERIA:
            needed[one.family] = Gap(one.family, math.inf)
    return tuple(needed.values())
