r"""Fractions: requirements on means whose ``among`` looks at the decision, such as precision.

Of a union u of groups the numerator :math:`N_u` and the denominator :math:`D_u` (who is counted, as a share of all
people of u) are linear in the policy, and the mean is :math:`N_u / D_u`. A bound c of it is the row
:math:`N_u - c D_u \ge 0`. Each :math:`D_u` is a column of its own, at least one person: nothing is known of a mean of
nobody, and it would meet every requirement.

What compares fractions with each other has a free level t: t D_u <= N_u <= (t + width) D_u is linear for a t that is
known. :mod:`felicific._program.fractions` searches for t; here it lies between ``low`` and ``high``, and the rows hold
for every t there is between them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from felicific._problem.bound import Bound
from felicific._problem.rows import STATISTICS, Excess, Goal, GroupSums, ModelRow, ScaledMeans
from felicific._typing import Floats
from felicific.exceptions import ConstraintError


def baseline_mean(sums: GroupSums, z: int, j: int) -> float:
    """Mean of a measure under the baseline's decisions about a group, relative to its origin."""
    if sums.baseline_value is None:
        raise ConstraintError(
            f"What {sums.measures[j].name!r} is under the baseline is asked for, and there is no baseline: not every "
            "class is a decision.",
            "Pass baseline=, the column of what was really decided; or give a number instead of 'baseline'.",
        )
    mean = float(sums.baseline_value[z, :, j].sum() / sums.counted[z, j])
    over = sums.measures[j].over
    if not over:
        return mean
    k = [measure.name for measure in sums.measures].index(over)
    counted = float(sums.baseline_value[z, :, k].sum() / sums.counted[z, k] + sums.origin[k])
    origin = float(sums.origin[j])
    if counted <= 0:
        raise ConstraintError(
            f"Nobody of the group {sums.groups[z]!r} is {over} under the baseline, so it has no mean to keep.",
            "Give a number instead of 'baseline', or leave that group out.",
        )
    return (mean + origin) / counted - origin


@dataclass(frozen=True, eq=False)
class Fraction:
    """A measure that is a fraction, of some unions of groups.

    Attributes
    ----------
    j, over : int
        Positions of the numerator and of the denominator.
    origin : (float, float)
        What their sums are relative to.
    shares : array of shape (unions, groups)
        How much of each group's people is in each.
    least : array of shape (unions,)
        One person, as a share of each.
    """

    j: int
    over: int
    origin: tuple[float, float]
    shares: Floats
    least: Floats

    @classmethod
    def of(cls, sums: GroupSums, goal: Goal) -> Fraction:
        """What is said of a fraction, as it reads on these sums."""
        assert goal.over is not None, "a fraction has a denominator"
        shares = np.asarray(goal.shares)
        people, members = sums.counted[:, goal.over], shares > 0
        least = [sums.one_person[inside].max() / people[inside].sum() for inside in members]
        origin = float(sums.origin[goal.j]), float(sums.origin[goal.over])
        return cls(goal.j, goal.over, origin, shares, np.array(least))

    def parts(self, means: Floats) -> tuple[Floats, Floats]:
        """Numerator and denominator of every union, from group means side by side, relative to their origins."""
        both = self.shares @ means + np.array(self.origin)
        return both[:, 0], both[:, 1]


@dataclass(frozen=True, eq=False)
class _FractionRow(Bound, ABC):
    """What all rows of fractions have in common.

    ``slack`` is how far their sides have given way, in the unit of the numerator.
    """

    fraction: Fraction
    slack: float = field(default=0.0, kw_only=True)
    width: ClassVar[None] = None

    def reached(self, means: Floats) -> float:
        """What the fractions make of it, from means of the numerator and the denominator side by side."""
        top, bottom = self.fraction.parts(means)
        used = bottom > 0
        return STATISTICS[self.goal.statistic](top[used] / bottom[used]) if used.any() else math.nan

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", [self.fraction.j, self.fraction.over])

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """A column for every denominator: at least one person."""
        return tuple((least, math.inf) for least in self.fraction.least.tolist())

    @property
    @abstractmethod
    def sides(self) -> tuple[float, float]:
        """Between which levels every mean has to lie."""

    @abstractmethod
    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit by which it is tightened."""

    def relaxed(self, extra: float) -> Self:
        """Both sides give way."""
        return replace(self, slack=self.slack + extra)

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """For every union who is counted, then a row for each side that is finite."""
        gives = excess if excess is not None and not excess.on_ray else None
        return [
            row
            for u, shares in enumerate(self.fraction.shares)
            for row in self._of_union(means, shares, level + u, gives)
        ]

    def _of_union(
        self, means: ScaledMeans, shares: Floats, column: int, excess: Excess | None
    ) -> list[ModelRow]:
        fraction = self.fraction
        unit, scale = (float(means.scales[position]) for position in (fraction.over, fraction.j))
        slack = self.slack / scale
        columns, numbers = means.mean(fraction.over, shares)
        right = -float(shares @ means.constants[:, fraction.over]) - fraction.origin[1] / unit
        counted = ModelRow(
            np.append(columns, column),
            np.append(numbers, -1.0 / unit),
            right - slack,
            right + slack,
            shares,
            unit,
            fraction.over,
        )
        rows = [counted] if excess is None else [*_giving(counted, excess)]
        columns, numbers = means.mean(fraction.j, shares)
        right = -float(shares @ means.constants[:, fraction.j]) - fraction.origin[0] / scale
        for side, lower, upper in zip(
            self.sides, (right - slack, -math.inf), (math.inf, right + slack), strict=True
        ):
            if math.isfinite(side):
                factor = np.append(numbers, -side / scale)
                row = ModelRow(np.append(columns, column), factor, lower, upper, shares, scale)
                rows += [row] if excess is None else _giving(row, excess)
        return rows

    def met(self, means: Floats, slack: float) -> bool:
        """Whether every mean lies between the sides, and somebody is counted."""
        top, bottom = self.fraction.parts(means)
        low, high = self._reached(top / np.where(bottom > 0, bottom, np.nan))
        # The numerator and the denominator are each known to the slack, here and where the level was taken.
        allowed = 4.0 * (slack + self.slack) + 1e-12 * np.abs(top).max()
        few = self.fraction.least * (1.0 - 1e-6) - 1e-9 - slack
        inside = (top - low * bottom >= -allowed) if math.isfinite(low) else np.ones(len(top), dtype=bool)
        if math.isfinite(high):
            inside &= top - high * bottom <= allowed
        return bool(inside.all() and (bottom >= few).all())

    def _reached(self, ratios: Floats) -> tuple[float, float]:
        """The sides that these means have to lie between."""
        return self.sides

    def _weights(self, written: Sequence[ModelRow], duals: Sequence[float]) -> list[tuple[float, float]]:
        """Of every union the duals of its lower and its upper side, in the loss per unit of the numerator."""
        finite = [math.isfinite(side) for side in self.sides]
        size = 1 + sum(finite)
        weights = []
        for first in range(0, len(written), size):
            own = [abs(duals[i]) / written[i].scale for i in range(first + 1, first + size)]
            weights.append((own[0] if finite[0] else 0.0, own[-1] if finite[1] else 0.0))
        return weights


def _giving(row: ModelRow, excess: Excess) -> list[ModelRow]:
    """The sides of a row, each with the column by which it gives way."""
    columns = np.append(row.columns, excess.column)
    sides = ((1.0, row.lower, math.inf), (-1.0, -math.inf, row.upper))
    return [
        replace(row, columns=columns, numbers=np.append(row.numbers, sign), lower=low, upper=high)
        for sign, low, high in sides
        if math.isfinite(low) or math.isfinite(high)
    ]


@dataclass(frozen=True, eq=False)
class FractionMean(_FractionRow):
    """A fraction between two levels that are known: of one group, or of all people together."""

    lower: float
    upper: float
    people: float = 1.0

    @property
    def sides(self) -> tuple[float, float]:
        """The levels."""
        return self.lower, self.upper

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the level, as it was counted when it was asked for."""
        weights = sum(
            sum(pair) * float(d) for pair, d in zip(self._weights(written, duals), levels, strict=True)
        )
        return weights * unit / self.people


@dataclass(frozen=True, eq=False)
class FreeLevel(_FractionRow):
    """Fractions that are compared with each other: a level t is searched for, between ``low`` and ``high``."""

    low: float = field(default=-math.inf, kw_only=True)
    high: float = field(default=math.inf, kw_only=True)

    def between(self, low: float, high: float) -> Self:
        """With a level between these."""
        return replace(self, low=low, high=high)

    @abstractmethod
    def span(self, ratios: Floats) -> tuple[float, float]:
        """The least and the largest level with which these means go; none if the first is larger."""

    @abstractmethod
    def eased(self, by: float) -> Self:
        """Not tighter than so much: where both sides are one, nothing is known of how they give way."""

    @property
    @abstractmethod
    def rates(self) -> tuple[float, float]:
        """By how much each side rises with the level."""

    def slope(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit by which the level is raised: the lower sides tighten, the upper ones give way."""
        (low, high), pairs = self.rates, zip(self._weights(written, duals), levels, strict=True)
        return sum(((low * lower - high * upper) * float(d) for (lower, upper), d in pairs), 0.0) * unit

    def _reached(self, ratios: Floats) -> tuple[float, float]:
        if np.isnan(ratios).any():
            return math.inf, math.inf
        level = sum(self.span(ratios)) / 2.0
        return self.between(level, level).sides


@dataclass(frozen=True, eq=False)
class FractionGap(FreeLevel):
    """Fractions at most ``at_most`` from each other: all between t and t + at_most."""

    at_most: float
    measure: str | None = None
    rates: ClassVar[tuple[float, float]] = (1.0, 1.0)

    @property
    def name(self) -> str:
        """That of its measure, if it is the gap of all groups."""
        return self.words if self.measure is None else self.measure

    @property
    def record(self) -> Goal | None:
        """Every policy states its own gap anyway."""
        return self.goal if self.measure is None else None

    @property
    def sides(self) -> tuple[float, float]:
        """What all levels between low and high have in common."""
        return self.low, self.high + self.at_most

    def span(self, ratios: Floats) -> tuple[float, float]:
        """From the largest less the gap to the smallest."""
        return float(ratios.max()) - self.at_most, float(ratios.min())

    def eased(self, by: float) -> FractionGap:
        """No gap below that, relative to the level."""
        return self.within(max(self.at_most, by * (abs(self.low) or 1.0)))

    def within(self, width: float) -> FractionGap:
        """With another gap."""
        return replace(self, at_most=width)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the gap: it stands in every upper side, times who is counted."""
        pairs = zip(self._weights(written, duals), levels, strict=True)
        return sum((upper * float(d) for (_, upper), d in pairs), 0.0) * unit


@dataclass(frozen=True, eq=False)
class FractionRatio(FreeLevel):
    """Every fraction at least ``ratio`` times the largest, t: all between ratio times t and t."""

    ratio: float
    low: float = field(default=0.0, kw_only=True)

    def eased(self, by: float) -> FractionRatio:
        """No ratio above 1 less that."""
        return replace(self, ratio=min(self.ratio, 1.0 - by))

    @property
    def rates(self) -> tuple[float, float]:
        """The ratio, and 1."""
        return self.ratio, 1.0

    @property
    def sides(self) -> tuple[float, float]:
        """What all levels between low and high have in common."""
        return self.ratio * self.low, self.high

    def span(self, ratios: Floats) -> tuple[float, float]:
        """From the largest to the smallest by the ratio."""
        return float(ratios.max()), float(ratios.min()) / self.ratio

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the ratio: it multiplies the level in every lower side, times who is counted."""
        pairs = zip(self._weights(written, duals), levels, strict=True)
        return self.low * sum((lower * float(d) for (lower, _), d in pairs), 0.0) * unit
