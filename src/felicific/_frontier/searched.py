"""Frontiers along which fractions, such as precision, are compared: solved at some gaps, never mixed between them.

The least loss is not convex in the gap of a fraction, and mixing two policies mixes its numerator and its denominator,
not the fraction. So each gap is a search of its own for the level, which starts at that of its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from felicific._frontier.breakpoints import Closing, Moving, Point, moving_as
from felicific._frontier.curve import Line
from felicific._policy.policy import Policy
from felicific._problem.fractions import means_at
from felicific._problem.rows import Asked, Requirement, Row, asked_of, rows_of
from felicific._program.fractions import Level, free_row
from felicific._program.model import rounding_of
from felicific._program.moments import Moments, Outcome
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError

#: Gaps that are solved for, from the tightest to that of the least loss.
STEPS = 21


class Found(Protocol):
    """A policy of least loss: what it does, its probabilities and prices, and the level that was found."""

    @property
    def q(self) -> Floats: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def prices(self) -> dict[str, float]: ...
    @property
    def level(self) -> Level | None: ...


class Solve(Protocol):
    """How requirements are met, from a level to start with."""

    def __call__(self, requirements: Sequence[Requirement], *, start: float | None = None) -> Found: ...


def searched(closing: Closing, moments: Moments) -> bool:
    """Whether a level has to be searched for."""
    return free_row(rows_of(closing.requirements, moments)) is not None


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
        What is minimised: the loss of an outcome, with what changed decisions cost.
    """

    closing: Closing
    moments: Moments
    solve: Solve
    value: Callable[[Outcome], float]
    rows: list[list[Row]]
    widths: list[float]
    points: list[Point] = field(default_factory=list)
    levels: list[float | None] = field(default_factory=list)

    @classmethod
    def of(cls, closing: Closing, moments: Moments, solve: Solve, value: Callable[[Outcome], float]) -> Steps:
        """Solve at every step, each from its neighbour's level, the loosest first."""
        free = solve(closing.kept)
        rows = [one.rows(moments) for one in closing.moved]
        widths = _widths(closing, rows, moments, moments.linear_means(free.q))
        steps = cls(closing, moments, solve, value, rows, widths)
        last = steps._add(free)
        alone = sum(map(len, rows)) == 1
        for tau in np.linspace(last.tau, 0.0, STEPS)[1:].tolist():
            try:
                steps._add(steps._found(tau))
            except InfeasibleError as error:
                if error.least_gap is not None and error.least_gap > 0 and alone:
                    steps._add(steps._found(error.least_gap * (1.0 + 1e-6)))
                break
        # A looser gap never costs more: a search that ended within its tolerance may say otherwise.
        best: list[Point] = []
        for point in reversed(steps.points):
            if not best or point.value < best[-1].value:
                best.append(point)
        steps.points[:] = best
        return steps

    @property
    def moving(self) -> list[Moving]:
        """Everything that moves."""
        return [moving_as(row, width) for row, width in self._each]

    @property
    def asked(self) -> tuple[Asked, ...]:
        """What the policies are to remember of the requirements: not the numbers of those that move."""
        moved = (row.asked.opened() for row, _ in self._each if row.asked is not None)
        return (*moved, *asked_of(rows_of(self.closing.kept, self.moments)))

    @property
    def rounding(self) -> float:
        """How far apart two positions may be by rounding alone."""
        noise = rounding_of(self.moments)
        return max((float(noise[row.j]) / width for row, width in self._each if width), default=0.0)

    @property
    def tau_today(self) -> float:
        """Where today's decisions stand."""
        return self._place(self.moments.today_value.sum(axis=1) / self.moments.divisor)

    def line(self, policy: Callable[[Floats, Outcome], Policy]) -> Line:
        """What a frontier is to know of it."""
        sums = self.moments
        known = self.moving, self.points, sums.today, sums, policy, self.rounding, self.tau_today
        return Line(*known, self.at)

    def at(self, tau: float) -> Point:
        """The policy of least loss at a position, by a search of its own."""
        return self._point(self._found(tau))

    @property
    def _each(self) -> list[tuple[Row, float]]:
        return [(row, width) for rows, width in zip(self.rows, self.widths, strict=True) for row in rows]

    def _place(self, means: Floats) -> float:
        """How far along means of shape (groups, components) are, of fractions those of numerator and denominator."""
        return max(
            (row.reached(means[:, means_at(row)]) / width for row, width in self._each if width), default=0.0
        )

    def _found(self, tau: float) -> Found:
        moved = (one.at(tau * width) for one, width in zip(self.closing.moved, self.widths, strict=True))
        start = self.levels[-1] if self.levels else None
        return self.solve((*moved, *self.closing.kept), start=start)

    def _point(self, found: Found) -> Point:
        place = self._place(self.moments.linear_means(found.q))
        return Point(place, found.outcome, found.q, self.value(found.outcome), found.prices)

    def _add(self, found: Found) -> Point:
        self.points.append(self._point(found))
        self.levels.append(None if found.level is None else found.level.level)
        return self.points[-1]


def _widths(closing: Closing, rows: list[list[Row]], moments: Moments, means: Floats) -> list[float]:
    """What is allowed of every requirement that moves at tau 1; ``means`` are those when nothing is asked."""
    if sum(map(len, rows)) == 1:
        return [1.0]
    numbers = [float(getattr(one, "at_most", 0.0)) for one in closing.moved]
    if closing.by_numbers and any(numbers):
        return numbers
    noise = rounding_of(moments)
    found = [max((row.reached(means[:, means_at(row)]) for row in some), default=0.0) for some in rows]
    quiet = [max((float(noise[row.j]) for row in some), default=0.0) for some in rows]
    return [width if width > least else 0.0 for width, least in zip(found, quiet, strict=True)]
