"""Frontiers that are solved point by point, and never mixed between two points.

The least loss is not convex in the gap of a fraction, such as precision, nor in a ratio: mixing two policies mixes
numerators and denominators, not what they make. So each point is a program of its own; where fractions are compared it
is a search for the level, which starts at that of its neighbour. Floors, budgets and WorseOff move in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from felicific._frontier.breakpoints import Breakpoint, Closing, MovingRow, finder, moving_as
from felicific._frontier.curve import SolvedFrontier
from felicific._policy.policy import Policy
from felicific._problem.rows import Goal, Requirement, Row, goals_of, rows_of
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.fractions import Level, free_row
from felicific._program.model import rounding_of
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError

#: Points that are solved for, from the tightest to that of the least loss; and halvings to find the tightest.
STEPS, HALVINGS = 21, 20


class SolvedPoint(Protocol):
    """A policy of least loss: what it does, its probabilities and prices, and the level that was found."""

    @property
    def q(self) -> Floats: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def prices(self) -> dict[str, float]: ...
    @property
    def level(self) -> Level | None: ...
    @property
    def goals(self) -> tuple[Goal, ...]: ...


class Solve(Protocol):
    """How requirements are met, from a level to start with."""

    def __call__(self, requirements: Sequence[Requirement], *, start: float | None = None) -> SolvedPoint: ...


def searched(closing: Closing, aggregates: Aggregates) -> bool:
    """Whether points do not mix: a number moves, or a level has to be searched for."""
    return closing.by_points is not None or free_row(rows_of(closing.requirements, aggregates)) is not None


def values_of(moved: Requirement, aggregates: Aggregates, free: Outcome) -> list[float]:
    """Numbers to solve for, tightest first; ``free`` is what is done where nothing is asked of the requirement."""
    reached = [one.reached(free.means) for one in goals_of(moved.rows(aggregates))]
    least, most = moved.ends(aggregates, max(reached) if moved.limit == "at most" else min(reached))
    return list(dict.fromkeys(float(f"{number:.12g}") for number in np.linspace(least, most, STEPS)))


@dataclass(frozen=True)
class Steps:
    """Points at some gaps, from the tightest to the least loss, and the way to others.

    Attributes
    ----------
    rows : list of list of Row
        Those of every requirement that moves.
    widths : list of float
        What is allowed of each at tau 1.
    value : callable
        What is minimised: the loss of probabilities, with what changed decisions cost.
    """

    closing: Closing
    aggregates: Aggregates
    solve: Solve
    value: Callable[[Floats], float]
    rows: list[list[Row]]
    widths: list[float]
    points: list[Breakpoint] = field(default_factory=list)
    levels: list[float | None] = field(default_factory=list)

    @classmethod
    def of(
        cls, closing: Closing, aggregates: Aggregates, solve: Solve, value: Callable[[Floats], float]
    ) -> Steps:
        """Solve at every step; where gaps move each from its neighbour's level, the loosest first."""
        free = solve(closing.kept)
        rows = [one.rows(aggregates) for one in closing.moved]
        if closing.by_points is not None:
            steps = cls(closing, aggregates, solve, value, rows, [1.0])
            steps._at_values(values_of(closing.by_points, aggregates, free.outcome))
            return steps
        widths = _widths(closing, rows, aggregates, aggregates.linear_means(free.q))
        steps = cls(closing, aggregates, solve, value, rows, widths)
        steps._at_gaps(free, alone=sum(map(len, rows)) == 1)
        return steps

    def _at_gaps(self, free: SolvedPoint, *, alone: bool) -> None:
        last = self._add(free)
        for tau in np.linspace(last.tau, 0.0, STEPS)[1:].tolist():
            try:
                self._add(self._solution(tau))
            except InfeasibleError as error:
                if error.least_gap is not None and error.least_gap > 0 and alone:
                    self._add(self._solution(error.least_gap * (1.0 + 1e-6)))
                break
        # A looser gap never costs more: a search that ended within its tolerance may say otherwise.
        best: list[Breakpoint] = []
        for point in reversed(self.points):
            if not best or point.value < best[-1].value:
                best.append(point)
        self.points[:] = best

    def _at_values(self, values: list[float]) -> None:
        """At each of them that can be met, and at the tightest that can."""
        out, refusal = None, None
        for value in values:
            try:
                self._add(self._solution(value), value)
            except InfeasibleError as error:
                out, refusal = value, error
        if refusal is not None and not self.points:
            raise refusal
        tight, loose = out, self.points[0].tau
        for _ in range(HALVINGS if tight is not None else 0):
            assert tight is not None, "there is one that cannot be met"
            middle = (tight + loose) / 2.0
            try:
                solution = self._solution(middle)
            except InfeasibleError:
                tight = middle
            else:
                loose, self.points[:] = middle, [p for p in self.points if p.tau in values]
                self.points.insert(0, self._point(solution, middle))

    @property
    def moving(self) -> list[MovingRow]:
        """Everything that moves."""
        return [] if self._limit else [moving_as(row, width) for row, width in self._each]

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What the policies are to remember of the requirements: not the numbers of those that move."""
        moved = () if self._limit else self._each
        opened = (row.record.opened() for row, _ in moved if row.record is not None)
        return (*opened, *goals_of(rows_of(self.closing.kept, self.aggregates)))

    @property
    def rounding(self) -> float:
        """How far apart two positions may be by rounding alone."""
        noise = rounding_of(self.aggregates)
        return max((float(noise[row.j]) / width for row, width in self._each if width), default=0.0)

    @property
    def tau_baseline(self) -> float:
        """Where the baseline's decisions stand; not a number where nobody knows them."""
        now = self.aggregates.baseline_value
        if now is None:
            return math.nan
        if self._limit:
            reached = [one.reached(self.aggregates.baseline.means) for one in goals_of(self.rows[0])]
            return max(reached) if self._limit == "at most" else min(reached)
        return self._place(now.sum(axis=1) / self.aggregates.divisor)

    def line(self, policy: Callable[[Floats, Outcome], Policy]) -> SolvedFrontier:
        """What a frontier is to know of it."""
        sums = self.aggregates
        line = self.moving, self.points, sums.baseline_or_none, sums, policy
        return SolvedFrontier(
            *line, self.rounding, self.tau_baseline, mixes=False, solve=self.at, limit=self._limit
        )

    def at(self, tau: float) -> Breakpoint:
        """The policy of least loss at a position, by a program of its own."""
        return self._point(self._solution(tau), tau)

    @property
    def _limit(self) -> str:
        moved = self.closing.by_points
        return "" if moved is None else moved.limit

    @property
    def _each(self) -> list[tuple[Row, float]]:
        return [(row, width) for rows, width in zip(self.rows, self.widths, strict=True) for row in rows]

    def _place(self, means: Floats) -> float:
        """How far along means of shape (groups, measures) are, of fractions those of numerator and denominator."""
        return max((row.reached(means[:, row.at]) / width for row, width in self._each if width), default=0.0)

    def _solution(self, tau: float) -> SolvedPoint:
        one = self.closing.by_points
        if one is not None:
            return self.solve((one.at(tau), *self.closing.kept))
        moved = (one.at(tau * width) for one, width in zip(self.closing.moved, self.widths, strict=True))
        start = self.levels[-1] if self.levels else None
        return self.solve((*moved, *self.closing.kept), start=start)

    def _point(self, best: SolvedPoint, number: float | None = None) -> Breakpoint:
        done = self.value(best.q), finder(best.outcome, best.q), best.prices
        moved = self.closing.by_points
        if moved is not None and number is not None:
            named = {row.name for row in moved.at(number).rows(self.aggregates)}
            return Breakpoint(number, *done, best.goals, sum((best.prices[name] for name in named), 0.0))
        price = sum((best.prices.get(row.name, 0.0) * width for row, width in self._each), 0.0)
        return Breakpoint(self._place(self.aggregates.linear_means(best.q)), *done, price=price)

    def _add(self, best: SolvedPoint, number: float | None = None) -> Breakpoint:
        self.points.append(self._point(best, number))
        self.levels.append(None if best.level is None else best.level.level)
        return self.points[-1]


def _widths(closing: Closing, rows: list[list[Row]], aggregates: Aggregates, means: Floats) -> list[float]:
    """What is allowed of every requirement that moves at tau 1; ``means`` are those when nothing is asked."""
    if sum(map(len, rows)) == 1:
        return [1.0]
    numbers = [float(getattr(one, "at_most", 0.0)) for one in closing.moved]
    if closing.by_numbers and any(numbers):
        return numbers
    noise = rounding_of(aggregates)
    widths = [max((row.reached(means[:, row.at]) for row in some), default=0.0) for some in rows]
    quiet = [max((float(noise[row.j]) for row in some), default=0.0) for some in rows]
    return [width if width > least else 0.0 for width, least in zip(widths, quiet, strict=True)]
