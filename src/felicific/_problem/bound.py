"""Requirements bound to sums: the rows that they are in the linear program, whether means meet them, their prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from felicific._problem.rows import STATISTICS, Chance, Excess, Goal, ModelRow, ScaledMeans, largest_between
from felicific._typing import Floats


@dataclass(frozen=True, eq=False)
class Bound:
    """What all rows have in common: the ``goal``, what is said of whom."""

    goal: Goal
    j: int = field(init=False)
    at: int | list[int] = field(init=False)
    words: str = field(init=False)
    chance: ClassVar[Chance | None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "j", self.goal.j)
        object.__setattr__(self, "at", self.goal.j)
        object.__setattr__(self, "words", self.goal.words)

    @property
    def name(self) -> str:
        """Its words: requirements that read alike share a price."""
        return self.words

    @property
    def record(self) -> Goal | None:
        """What a policy is to remember of it."""
        return self.goal

    def moved(self, width: float) -> Self:
        """It stays where it is."""
        return self

    def fixed(self) -> Self:
        """It stays where it is."""
        return self


@dataclass(frozen=True, eq=False)
class GapRow(Bound):
    r"""Means at most so far from each other; of all groups, they go by the name of their ``measure``.

    Written with a free level :math:`\mathrm{lo}`, so that rows grow with the groups and not with their pairs:
    every mean lies between :math:`\mathrm{lo}` and :math:`\mathrm{lo}` plus the width.
    """

    at_most: float
    measure: str | None
    moves: bool = True
    width: float | None = field(init=False)
    levels: ClassVar[tuple[tuple[float, float], ...]] = ((-math.inf, math.inf),)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", self.at_most if self.moves else None)

    @property
    def name(self) -> str:
        """That of its measure, if it is the gap of all groups."""
        return self.words if self.measure is None else self.measure

    @property
    def record(self) -> Goal | None:
        """Every policy states its own gap anyway."""
        return self.goal if self.measure is None else None

    def moved(self, width: float) -> GapRow:
        """With another width."""
        return replace(self, at_most=width)

    def fixed(self) -> GapRow:
        """With a width that no frontier multiplies."""
        return replace(self, moves=False)

    def reached(self, means: Floats) -> float:
        """Largest minus smallest mean."""
        values = self.goal.shares @ means
        return float(values.max() - values.min())

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """One row for each mean; two where one of its sides gives way."""
        # Centred on the middle of the means, the right-hand sides are no larger than the gap itself.
        constants = self.goal.shares @ means.constants[:, self.j]
        constants -= constants.mean()
        scale = float(means.scales[self.j])
        width = self.at_most / scale
        on_ray = excess is not None and excess.on_ray and self.moves
        gives = excess if excess is not None and (on_ray or not excess.on_ray) else None
        written = []
        for constant, shares in zip(constants.tolist(), self.goal.shares, strict=True):
            columns, numbers = means.mean(self.j, shares)
            columns, numbers = np.append(columns, level), np.append(numbers, -1.0)
            lower, upper = -constant, (0.0 if on_ray else width) - constant
            if gives is None:
                written.append(ModelRow(columns, numbers, lower, upper, shares, scale))
            else:
                more = np.append(columns, gives.column)
                minus = np.append(numbers, -width if on_ray else -1.0)
                written.append(ModelRow(columns, numbers, lower, math.inf, shares, scale))
                written.append(ModelRow(more, minus, -math.inf, upper, shares, scale))
        return written

    def met(self, means: Floats, slack: float) -> bool:
        """Whether the largest and the smallest mean are close enough."""
        # Groups far apart carry that distance's rounding error.
        return self.reached(means) <= self.at_most + slack + 1e-12 * self.at_most

    def relaxed(self, extra: float) -> GapRow:
        """A wider gap."""
        return replace(self, at_most=self.at_most + extra)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the gap."""
        # The rows share a free level, so their duals sum to zero: the upper sides carry the price.
        weights = (max(-dual, 0.0) / row.scale for row, dual in zip(written, duals, strict=True))
        return sum(weights, 0.0) * unit


@dataclass(frozen=True, eq=False)
class OpenGapRow(GapRow):
    """Means at most so far from each other, wherever each lies between its ends, two measures of their own.

    Of every two groups the most of one and the least of the other, at most so far apart: a group's own doubt is no gap,
    so that there is no level that all means share.
    """

    ends: tuple[int, int] = field(kw_only=True)
    levels: ClassVar[tuple[tuple[float, float], ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", list(self.ends))

    def reached(self, means: Floats) -> float:
        """The largest gap there can be, of means of both ends side by side."""
        values = self.goal.shares @ means
        return largest_between(values[:, 0], values[:, 1])

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """One row for every ordered pair of groups."""
        low, high = self.ends
        scale = max(float(means.scales[low]), float(means.scales[high]))
        on_ray = excess is not None and excess.on_ray and self.moves
        gives = excess if excess is not None and (on_ray or not excess.on_ray) else None
        width, shares, written = self.at_most / scale, self.goal.shares, []
        parts = [
            [(j, sign * float(means.scales[j]) / scale, means.mean(j, one)) for one in shares]
            for j, sign in ((high, 1.0), (low, -1.0))
        ]
        for u, (_, more, most) in enumerate(parts[0]):
            for v, (_, less, least) in enumerate(parts[1]):
                if u == v:
                    continue
                columns, place = np.unique(np.concatenate([most[0], least[0]]), return_inverse=True)
                numbers = np.zeros(len(columns))
                np.add.at(numbers, place, np.concatenate([more * most[1], less * least[1]]))
                used = np.flatnonzero(numbers)
                columns, numbers = columns[used], numbers[used]
                constant = more * float(shares[u] @ means.constants[:, high])
                constant += less * float(shares[v] @ means.constants[:, low])
                if gives is not None:
                    columns = np.append(columns, gives.column)
                    numbers = np.append(numbers, -width if on_ray else -1.0)
                upper = (0.0 if on_ray else width) - constant
                written.append(ModelRow(columns, numbers, -math.inf, upper, np.zeros_like(shares[u]), scale))
        return written


@dataclass(frozen=True, eq=False)
class RatioRow(Bound):
    r"""Every mean of measure ``j`` at least ``ratio`` times the largest, up to ``slack``.

    Written with the largest as a free level: every mean is at most :math:`\mathrm{hi}` and at least
    :math:`r \, \mathrm{hi}`. A ratio depends on where means are counted from, so the ``origin`` of the sums is
    added back.
    """

    ratio: float
    origin: float
    slack: float = 0.0
    levels: ClassVar[tuple[tuple[float, float], ...]] = ((0.0, math.inf),)
    width: ClassVar[None] = None

    def reached(self, means: Floats) -> float:
        """Smallest mean by the largest."""
        return STATISTICS["ratio"](self.goal.shares @ means + self.origin)

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """Two rows for each mean: the upper, then the lower."""
        scale = float(means.scales[self.j])
        slack, written = self.slack / scale, []
        constants = self.goal.shares @ means.constants[:, self.j] + self.origin / scale
        for constant, shares in zip(constants.tolist(), self.goal.shares, strict=True):
            columns, numbers = means.mean(self.j, shares)
            columns = np.append(columns, level)
            sides = ((1.0, -1.0, -math.inf, slack - constant), (self.ratio, 1.0, -slack - constant, math.inf))
            for factor, gives, lower, upper in sides:
                row = ModelRow(columns, np.append(numbers, -factor), lower, upper, shares, scale)
                if excess is not None and not excess.on_ray:
                    more = np.append(columns, excess.column)
                    row = replace(row, columns=more, numbers=np.append(row.numbers, gives))
                written.append(row)
        return written

    def met(self, means: Floats, slack: float) -> bool:
        """Whether the smallest mean is large enough."""
        values = self.goal.shares @ means + self.origin
        allowed = slack + 2.0 * self.slack + 1e-12 * abs(float(values.max()))
        return bool(values.min() >= self.ratio * values.max() - allowed)

    def relaxed(self, extra: float) -> RatioRow:
        """Both sides give way."""
        return replace(self, slack=self.slack + extra)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the ratio: it multiplies the largest mean in every lower row."""
        # The level is scaled as the rows are, so the scale is in neither.
        return float(levels[0]) * sum((max(dual, 0.0) for dual in duals[1::2]), 0.0) * unit


@dataclass(frozen=True, eq=False)
class MeanRow(Bound):
    """A mean of measure ``j``, of one group or of all people together, between two sides.

    The sides are relative to the measure's origin, as the aggregates are, and per person; ``people`` is how many the
    numbers that were asked for were counted for.
    """

    lower: float
    upper: float
    people: float = 1.0
    levels: ClassVar[tuple[tuple[float, float], ...]] = ()
    width: ClassVar[None] = None

    def reached(self, means: Floats) -> float:
        """The mean."""
        return float((self.goal.shares @ means)[0])

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """One row; one for each side where they give way."""
        shares = self.goal.shares[0]
        columns, numbers = means.mean(self.j, shares)
        constant, scale = float(shares @ means.constants[:, self.j]), float(means.scales[self.j])
        lower, upper = self.lower / scale - constant, self.upper / scale - constant
        # A row of its own stakes: those of other groups may be larger by orders of magnitude.
        noise = float(means.rounding[self.j]) / scale
        sides_seen = [abs(side) for side in (lower, upper) if math.isfinite(side) and abs(side) > noise]
        own = float(np.abs(numbers).max()) if len(numbers) else max(sides_seen, default=1.0)
        numbers, lower, upper, scale = numbers / own, lower / own, upper / own, scale * own
        if excess is None or excess.on_ray:
            return [ModelRow(columns, numbers, lower, upper, shares, scale)]
        more = np.append(columns, excess.column)
        sides = [(1.0, lower, math.inf), (-1.0, -math.inf, upper)]
        return [
            ModelRow(more, np.append(numbers, sign), low, high, shares, scale)
            for sign, low, high in sides
            if math.isfinite(low) or math.isfinite(high)
        ]

    def met(self, means: Floats, slack: float) -> bool:
        """Whether the mean lies between the sides."""
        mean = self.reached(means)
        # A level far away from the happiness it limits carries that distance's rounding error.
        slack += 1e-14 * max(
            (abs(side) for side in (self.lower, self.upper, mean) if math.isfinite(side)), default=0.0
        )
        return self.lower - slack <= mean <= self.upper + slack

    def relaxed(self, extra: float) -> MeanRow:
        """A lower floor and a higher ceiling."""
        return replace(self, lower=self.lower - extra, upper=self.upper + extra)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the level, as it was counted when it was asked for."""
        weights = (abs(dual) / row.scale for row, dual in zip(written, duals, strict=True))
        return sum(weights, 0.0) * unit / self.people
