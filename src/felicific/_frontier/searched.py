"""Frontiers along which fractions, such as precision, are compared: solved at some gaps, never mixed between them.

The least loss is not convex in the gap of a fraction, and mixing two policies mixes its numerator and its denominator,
not the fraction. So each gap is a search of its own for the level, which starts at that of its neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from felicific._frontier.breakpoints import Closing, Point
from felicific._problem.requirements import requirements_of
from felicific._problem.rows import Requirement, rows_of
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
    ray : array of shape (components,)
        Width of every component's gap at tau 1; infinite where it is not closed.
    """

    closing: Closing
    moments: Moments
    solve: Solve
    ray: Floats
    points: list[Point] = field(default_factory=list)
    levels: list[float | None] = field(default_factory=list)

    @classmethod
    def of(cls, closing: Closing, moments: Moments, solve: Solve) -> Steps:
        """Solve at every step, each from its neighbour's level, the loosest first."""
        free = solve(closing.kept)
        steps = cls(closing, moments, solve, _ray(closing, moments, free.outcome.gaps))
        last = steps._tau(free.outcome)
        steps._add(Point(last, free.outcome, free.q, free.prices), None)
        for tau in np.linspace(last, 0.0, STEPS)[1:].tolist():
            try:
                steps.at(tau, keep=True)
            except InfeasibleError as error:
                if error.least_gap is not None and error.least_gap > 0 and np.isfinite(steps.ray).sum() == 1:
                    steps.at(error.least_gap * (1.0 + 1e-6), keep=True)
                break
        # A looser gap never costs more: a search that ended within its tolerance may say otherwise.
        best: list[Point] = []
        for point in reversed(steps.points):
            if not best or point.outcome.loss < best[-1].outcome.loss:
                best.append(point)
        steps.points[:] = best
        return steps

    @property
    def rounding(self) -> float:
        """How far apart two positions may be by rounding alone."""
        on = self._on
        return float((rounding_of(self.moments)[on] / self.ray[on]).max(initial=0.0))

    @property
    def _on(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.asarray((self.ray > 0) & np.isfinite(self.ray))

    def _tau(self, outcome: Outcome) -> float:
        return float((outcome.gaps[self._on] / self.ray[self._on]).max(initial=0.0))

    def _add(self, point: Point, level: float | None) -> None:
        self.points.append(point)
        self.levels.append(level)

    def at(self, tau: float, *, keep: bool = False) -> Point:
        """The policy of least loss at a position, by a search of its own."""
        components = self.moments.components
        gaps = {
            component.name: min(tau * float(width), component.widest)
            for component, width in zip(components, self.ray, strict=True)
            if np.isfinite(width)
        }
        start = self.levels[-1] if self.levels else None
        found = self.solve(requirements_of(gaps, self.closing.kept, components), start=start)
        point = Point(self._tau(found.outcome), found.outcome, found.q, found.prices)
        if keep:
            self._add(point, None if found.level is None else found.level.level)
        return point


def _ray(closing: Closing, moments: Moments, gaps: Floats) -> Floats:
    """Width of every component's gap at tau 1, as the closing says."""
    ray = np.full(len(moments.components), np.inf)
    for requirement in closing.requirements:
        if requirement.moves:
            width = getattr(requirement, "at_most", 0.0)
            ray[_position(requirement, moments)] = width
    closed = np.isfinite(ray)
    if closed.sum() == 1:
        ray[closed] = 1.0
    elif not closing.by_numbers:
        ray[closed] = np.where(gaps > rounding_of(moments), gaps, 0.0)[closed]
    return ray


def _position(requirement: Requirement, moments: Moments) -> int:
    names = [component.name for component in moments.components]
    return names.index(requirement.happiness.name)
