r"""What a requirement says: rows over group means, which may move with one number and share one free level.

.. math:: \mathrm{lower}_i \le \sum_k \mathrm{number}_k \, m_{\mathrm{group}_k, \mathrm{measure}_k}
    + \mathrm{over}_i \, t \le \mathrm{upper}_i

with the sum over the entries k of row i, group means m relative to the origin of their measure, and a level t that is
free where there is one. A gap of width e is :math:`0 \le m_u - t \le e` for every union u of groups that is compared; a
ratio r is :math:`m_u - t \le 0` and :math:`m_u - r t \ge 0`; floors and budgets bound a mean. Whether means meet it,
what it costs, how it moves and gives way are said here, once for all of them.

Fractions, such as precision: of a union the numerator N and the denominator D (who is counted, as a share of all its
people) are linear, and a bound c of N / D is the row :math:`N - c D \ge 0`. D is at least one person: nothing is known
of a mean of nobody. Fractions that are compared are linear for a level that is known: :class:`FractionLevel` is
searched by :mod:`felicific._program.fractions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._problem.unions import Shares
from felicific._typing import Codes, Floats

#: By what a requirement that is just met may seem not to be, relative to the means and to what was required.
ROUNDING = 1e-9

#: Rounding of a mean, relative to its size.
NOISE = 1e-12

#: What is made of the means that a requirement speaks of, and compared with the number that was required.
STATISTICS: dict[str, Callable[[Floats], float]] = {
    "gap": lambda means: float(means.max() - means.min()),
    "ratio": lambda means: float(means.min() / means.max()) if means.max() > 0 else 1.0,
    "mean": lambda means: float(means.min()),
}


def largest_between(low: Floats, high: Floats) -> float:
    """The largest gap between two groups, of means that are somewhere from low to high: a group's own doubt is none."""
    apart = high[:, None] - low[None, :]
    np.fill_diagonal(apart, 0.0)
    return float(np.maximum(np.nan_to_num(apart, nan=0.0), 0.0).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Goal:
    """What a policy remembers of a requirement: enough to say later what some group means make of it.

    Attributes
    ----------
    words : str
        How it reads.
    j : int
        Position of the measure.
    statistic : {"gap", "ratio", "mean"}
        What is made of the means.
    shares : array of shape (means, groups)
        How much of each group's mean stands in each of them.
    names : tuple
        Whose means they are.
    left_out : dict
        Who is not compared, and how many people they are.
    over : int, or None
        Of a fraction the position of its denominator; shares are then of all people, counted or not.
    lower, upper : float
        Between which numbers it has to be; infinite both where that is not known.
    baseline : bool
        Whether the lower one is what the baseline's decisions reach, so another number of other people.
    """

    words: str
    j: int
    statistic: str
    shares: Floats | Shares = field(repr=False)
    names: tuple[Any, ...]
    left_out: dict[Any, float] = field(default_factory=dict)
    over: int | None = None
    lower: float = -math.inf
    upper: float = math.inf
    baseline: bool = False

    @property
    def number(self) -> float | None:
        """The largest gap or the smallest ratio that was required, where people are compared."""
        side = {"gap": self.upper, "ratio": self.lower}.get(self.statistic, math.inf)
        return side if math.isfinite(side) else None

    def opened(self) -> Goal:
        """Without its number, where a place on a frontier says what that is."""
        return replace(self, words=self.words.rpartition(" at ")[0], lower=-math.inf, upper=math.inf)

    def met(self, number: float, size: float) -> bool | None:
        """Whether a number meets it, but for the rounding of means of this size; None where that is not known."""
        sides = [side for side in (self.lower, self.upper) if math.isfinite(side)]
        if not sides or math.isnan(number):
            return None
        slack = ROUNDING * max(size, *map(abs, sides))
        return self.lower - slack <= number <= self.upper + slack

    def weights(self, means: Floats) -> Floats:
        """How much of each group's mean really stands in each: of a fraction, by who is counted; 0 if nobody is."""
        if self.over is None:
            return np.asarray(self.shares)
        counted = np.asarray(self.shares) * np.nan_to_num(means[:, self.over])
        totals = counted.sum(axis=1, keepdims=True)
        return np.asarray(np.where(totals > 0, counted / np.where(totals > 0, totals, 1.0), 0.0))

    def means(self, means: Floats) -> Floats:
        """The means that it speaks of, from those of shape (groups, measures); no number where nobody is counted."""
        if self.over is None:
            if isinstance(self.shares, Shares):
                return self.shares @ means[:, self.j]
            used = self.shares.any(axis=0)  # of others there may be nobody, and no mean
            return np.asarray(self.shares[:, used] @ means[used, self.j])
        weights = self.weights(means)
        return np.where(weights.any(axis=1), weights @ np.nan_to_num(means[:, self.j]), np.nan)

    def reached(self, means: Floats) -> float:
        """What some group means, of shape (groups, measures), make of it."""
        values = self.means(means)
        numbers = values[~np.isnan(values)] if self.over is not None else values
        return STATISTICS[self.statistic](numbers) if len(numbers) else float("nan")


@dataclass(frozen=True, eq=False)
class Linear:
    """Rows over group means that belong to one requirement.

    Attributes
    ----------
    goal : Goal
        What is said of whom.
    row, group, measure, number : arrays of shape (entries,)
        What stands in which row.
    lower, upper : arrays of shape (rows,)
        The sides.
    over_level : array of shape (rows,), or None
        What the free level is multiplied by, if there is one.
    least_level : float
        The least that the level can be.
    d_lower, d_upper, d_level, d_number : numbers, or arrays of rows and of entries
        What one more unit of the requirement's own number does to the sides, to ``over_level`` and to ``number``.
    measure_name : str
        Of the gap of a measure between the groups as they are, that measure: the gap goes by its name, and every policy
        states it anyway.
    width : float, or None
        What a frontier multiplies; None for what stays where it is.
    """

    goal: Goal
    row: Codes = field(repr=False)
    group: Codes = field(repr=False)
    measure: Codes = field(repr=False)
    number: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    over_level: Floats | None = field(default=None, repr=False)
    least_level: float = -math.inf
    d_lower: Floats | float = field(default=0.0, repr=False)
    d_upper: Floats | float = field(default=0.0, repr=False)
    d_level: Floats | float = field(default=0.0, repr=False)
    d_number: Floats | float = field(default=0.0, repr=False)
    measure_name: str = ""
    width: float | None = None

    @property
    def words(self) -> str:
        """How it reads in messages."""
        return self.goal.words

    @property
    def name(self) -> str:
        """What it is called in prices: requirements that read alike share one."""
        return self.measure_name or self.goal.words

    @property
    def record(self) -> Goal | None:
        """What a policy is to remember of it; None for what every policy states anyway."""
        return None if self.measure_name else self.goal

    def at(self, means: Floats) -> Floats:
        """What means of shape (groups, measures), relative to their origins, make of every row."""
        number = self.number * means[self.group, self.measure]
        return np.asarray(np.bincount(self.row, number, len(self.lower)), dtype=np.float64)

    def excess(self, means: Floats, unit: Floats | None = None) -> float:
        """By how much means miss it at the best level, in the ``unit`` of their measures; 0 where they meet it."""
        at, size = self.at(means), np.ones(len(self.lower)) if unit is None else self.sizes(unit)
        low, high = (self.lower - at) / size, (self.upper - at) / size
        if self.over_level is None:
            return float(max(low.max(initial=0.0), (-high).max(initial=0.0)))
        over = self.over_level / size
        ends = np.stack([low, high]) / over
        apart = max(float(ends.min(axis=0).max()), self.least_level) - float(ends.max(axis=0).min())
        return max(apart * float(np.abs(over).min()), 0.0)

    def met(self, means: Floats, unit: Floats, slack: float) -> bool:
        """Whether means meet it but for ``slack`` in the unit of their measures, and for their own rounding."""
        noise = NOISE * float(np.abs(means[self.group, self.measure] / unit[self.measure]).max(initial=0.0))
        return self.excess(means, unit) <= slack + noise

    def reached(self, means: Floats) -> float:
        """The least number of its own at which means meet a gap."""
        return self.moved(-float(self.width or 0.0)).excess(means)

    def sizes(self, swing: Floats) -> Floats:
        """How large every row is where means of each measure move by as much as ``swing``."""
        size = np.zeros(len(self.lower))
        np.maximum.at(size, self.row, np.abs(self.number) * swing[self.measure])
        return np.where(size > 0, size, 1.0)

    def relaxed(self, extra: Floats | float) -> Linear:
        """With sides that are further apart by so much each."""
        return replace(self, lower=self.lower - extra, upper=self.upper + extra)

    def shifted(self, means: Floats) -> Linear:
        """For means that lack these."""
        at = self.at(means)
        return replace(self, lower=self.lower - at, upper=self.upper - at)

    def moved(self, by: float) -> Linear:
        """With a number of its own that is larger by so much."""
        return replace(
            self,
            number=self.number + by * self.d_number,
            lower=self.lower + by * self.d_lower,
            upper=self.upper + by * self.d_upper,
            over_level=None if self.over_level is None else self.over_level + by * self.d_level,
            width=None if self.width is None else self.width + by,
        )

    def at_width(self, width: float) -> Linear:
        """With another width, 0 being the tightest."""
        return self.moved(width - float(self.width or 0.0))

    def fixed(self) -> Linear:
        """With a width that no frontier multiplies."""
        return replace(self, width=None)

    def slope(self, duals: Floats, level: float, means: Floats) -> float:
        """The change of the loss for one more unit of its number, from what one more unit of each side is worth."""
        sides = np.maximum(duals, 0.0) * self.d_lower + np.minimum(duals, 0.0) * self.d_upper
        moves = np.bincount(self.row, self.d_number * means[self.group, self.measure], len(self.lower))
        return float((sides - duals * (self.d_level * level + moves)).sum())

    def price(self, duals: Floats, level: float, means: Floats) -> float:
        """Loss per unit by which it is tightened."""
        return abs(self.slope(duals, level, means))


#: Rows, groups, measures and numbers.
Entries = tuple[Codes, Codes, Codes, Floats]


def _entries(j: int, shares: Floats | Shares) -> Entries:
    """A row for every mean of a measure: rows, groups, measures and numbers."""
    if not isinstance(shares, Shares):
        row, group = np.nonzero(shares)
        shares = Shares(row, group, np.asarray(shares)[row, group], shares.shape)
    return shares.row, shares.group, np.full(len(shares.row), j), shares.number


def _joined(parts: Sequence[Entries]) -> Entries:
    """Entries after entries."""
    row, group, measure, number = zip(*parts, strict=True)
    return np.concatenate(row), np.concatenate(group), np.concatenate(measure), np.concatenate(number)


def gap_rows(goal: Goal, width: float, measure_name: str = "") -> Linear:
    """Means at most ``width`` from each other: all between a free level and that much above it."""
    n = len(goal.names)
    return Linear(
        goal, *_entries(goal.j, goal.shares), np.zeros(n), np.full(n, width), -np.ones(n),
        d_upper=1.0, measure_name=measure_name, width=width,
    )  # fmt: skip


def open_gap_rows(goal: Goal, width: float, ends: tuple[int, int], measure_name: str = "") -> Linear:
    """The same of means that lie anywhere between two measures, their ``ends``: a row for every ordered pair.

    The most of one and the least of another are at most so far apart: a group's own doubt is no gap, so no level is
    shared by all means.
    """
    row, group, _, number = _entries(goal.j, goal.shares)
    n = len(goal.names)
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    parts: list[Entries] = [
        (np.full(own.sum(), i), group[own], np.full(own.sum(), j), sign * number[own])
        for i, pair in enumerate(pairs)
        for u, j, sign in zip(pair, ends[::-1], (1.0, -1.0), strict=True)
        for own in [row == u]
    ]
    sides = np.full(len(pairs), -math.inf), np.full(len(pairs), width)
    return Linear(goal, *_joined(parts), *sides, d_upper=1.0, measure_name=measure_name, width=width)


def ratio_rows(goal: Goal, ratio: float, origin: float) -> Linear:
    """Every mean at least ``ratio`` times the largest: upper sides with a free level, lower ones with its share.

    A ratio depends on where means are counted from, so the ``origin`` of the sums is added back.
    """
    n, (row, group, measure, number) = len(goal.names), _entries(goal.j, goal.shares)
    endless, sides = np.full(n, math.inf), np.full(n, -origin)
    return Linear(
        goal,
        *_joined([(row, group, measure, number), (row + n, group, measure, number)]),
        np.append(-endless, sides),
        np.append(sides, endless),
        np.repeat([-1.0, -ratio], n),
        0.0,
        d_level=np.repeat([0.0, -1.0], n),
    )


def mean_rows(goal: Goal, lower: float, upper: float, people: float = 1.0) -> Linear:
    """A mean between two sides, relative to the origin; numbers were required for so many ``people``."""
    sides = np.array([lower]), np.array([upper])
    more = [float(math.isfinite(side)) / people for side in (lower, upper)]
    return Linear(goal, *_entries(goal.j, goal.shares), *sides, d_lower=more[0], d_upper=more[1])


@dataclass(frozen=True, eq=False)
class Fraction:
    """The numerator and the denominator of the means that a goal speaks of.

    Attributes
    ----------
    goal : Goal
        What is said of whom.
    origin : (float, float)
        What the sums of the two are relative to.
    least : array of shape (unions,)
        One person, as a share of everybody in each.
    """

    goal: Goal
    origin: tuple[float, float]
    least: Floats

    @cached_property
    def shares(self) -> Floats:
        """How much of each group's people is in each union."""
        return np.asarray(self.goal.shares)

    def parts(self, means: Floats) -> tuple[Floats, Floats]:
        """Numerator and denominator of every union, from all group means, relative to their origins."""
        both = self.shares @ means[:, [self.goal.j, self.over]] + np.array(self.origin)
        return both[:, 0], both[:, 1]

    @property
    def over(self) -> int:
        """Position of the denominator."""
        assert self.goal.over is not None, "a fraction has a denominator"
        return self.goal.over

    def between(
        self,
        sides: tuple[float, float],
        slopes: tuple[float, float],
        measure_name: str = "",
        people: float = 1.0,
    ) -> Linear:
        """Fractions between two sides, which rise by these ``slopes`` with the requirement's own number.

        For every union who is counted, the lower side and the upper one; sides that are infinite say nothing.
        """
        n, (top, bottom) = len(self.least), self.origin
        row, group, top_measure, number = _entries(self.goal.j, self.shares)
        bottom_measure = np.full(len(row), self.over)
        parts: list[Entries] = [(row, group, bottom_measure, number)]
        moves, none, endless = [0.0 * number], np.zeros(n), np.full(n, math.inf)
        lower, upper, d_lower, d_upper = [self.least - bottom], [endless], [none], [none]
        for k, (side, slope) in enumerate(zip(sides, slopes, strict=True)):
            limit, own = side if math.isfinite(side) else 0.0, row + (k + 1) * n
            parts += [(own, group, top_measure, number), (own, group, bottom_measure, -limit * number)]
            moves += [0.0 * number, -slope / people * number]
            value = np.full(n, limit * bottom - top if math.isfinite(side) else side)
            move = np.full(n, slope / people * bottom)
            lower.append(-endless if k else value)
            upper.append(value if k else endless)
            d_lower.append(none if k else move)
            d_upper.append(move if k else none)
        ends = np.concatenate(lower), np.concatenate(upper)
        return Linear(
            self.goal, *_joined(parts), *ends, measure_name=measure_name, d_number=np.concatenate(moves),
            d_lower=np.concatenate(d_lower), d_upper=np.concatenate(d_upper),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FractionLevel:
    """Fractions that are compared: all between ``ratio`` times a level and ``width`` above it, a level to search for.

    For all levels from ``low`` to ``high`` together its rows are what these have in common.
    """

    fraction: Fraction
    ratio: float = 1.0
    width: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    measure_name: str = ""

    @property
    def goal(self) -> Goal:
        """What is said of whom."""
        return self.fraction.goal

    @property
    def words(self) -> str:
        """How it reads in messages."""
        return self.goal.words

    @property
    def name(self) -> str:
        """What it is called in prices."""
        return self.measure_name or self.words

    @property
    def record(self) -> Goal | None:
        """What a policy is to remember of it; None for what every policy states anyway."""
        return None if self.measure_name else self.goal

    @property
    def is_gap(self) -> bool:
        """Whether it says how far fractions may be apart."""
        return self.goal.statistic == "gap"

    @property
    def rows(self) -> Linear:
        """For the levels there are; prices are those of its own number."""
        moves = (0.0, 1.0) if self.is_gap else (self.low, 0.0)
        return self._between(moves)

    @property
    def rows_by_level(self) -> Linear:
        """The same rows, moving with the level."""
        return self._between((self.ratio, 1.0))

    def _between(self, slopes: tuple[float, float]) -> Linear:
        sides = self.ratio * self.low, self.high + self.width
        return self.fraction.between(sides, slopes, self.measure_name)

    def between(self, low: float, high: float) -> FractionLevel:
        """With a level between these."""
        return replace(self, low=low, high=high)

    def at_width(self, width: float) -> FractionLevel:
        """With another gap."""
        return replace(self, width=width)

    def eased(self, by: float) -> FractionLevel:
        """Not tighter than so much: where both sides are one, nothing is known of how they give way."""
        if self.is_gap:
            return self.at_width(max(self.width, by * (abs(self.low) or 1.0)))
        return replace(self, ratio=min(self.ratio, 1.0 - by))

    def fractions(self, means: Floats) -> Floats:
        """The fractions of every union, from all group means, relative to their origins."""
        top, bottom = self.fraction.parts(means)
        return np.asarray(top / np.maximum(bottom, 1e-300))

    def span(self, ratios: Floats) -> tuple[float, float]:
        """The least and the largest level with which these fractions go; none if the first is larger."""
        return float(ratios.max()) - self.width, float(ratios.min()) / self.ratio

    def reached(self, means: Floats) -> float:
        """How far apart fractions are of which somebody is counted."""
        top, bottom = self.fraction.parts(means)
        used = bottom > 0
        return float(np.ptp(top[used] / bottom[used])) if used.any() else math.nan


#: What a requirement says of group means.
Rows = Linear | FractionLevel


def goals_of(rows: Sequence[Rows]) -> tuple[Goal, ...]:
    """What a policy is to remember of requirements."""
    return tuple(row.record for row in rows if row.record is not None)


def open_goals(rows: Sequence[Linear]) -> tuple[Goal, ...]:
    """What the policies of a frontier are: not the numbers of those that move."""
    return tuple(
        row.record if row.width is None else row.record.opened() for row in rows if row.record is not None
    )
