"""Breakpoints: what a frontier closes, and how its corners are found.

With tau a column of the program, minimising loss plus a weight times tau gives a breakpoint for every weight. Starting
from the two ends, the slope of the chord between two known breakpoints either finds one below the chord or proves that
there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._problem.happiness import Component
from felicific._problem.requirements import check_constraints, requirements_of
from felicific._problem.rows import Requirement, Row, rows_of
from felicific._program.highs import Ray
from felicific._program.model import Program, policy_of, rounding_of
from felicific._program.moments import Moments, Outcome
from felicific._program.solution import solve_program
from felicific._typing import Floats
from felicific.exceptions import ConstraintError

#: Below this, relative to the whole rise of the loss, a breakpoint is not told from the chord beside it.
EXACT = 1e-11


@dataclass(frozen=True)
class Closing:
    """What a frontier closes, in which proportions, and what holds everywhere on it.

    Attributes
    ----------
    requirements : tuple of Requirement
        Those that move are closed, the others are kept.
    by_numbers : bool
        Whether widths shrink in the proportions of the numbers asked for; else of what they are when nothing is asked.
    """

    requirements: tuple[Requirement, ...]
    by_numbers: bool

    @classmethod
    def of(cls, gap: Any, constraints: Any, components: tuple[Component, ...]) -> Closing:
        """From what a user writes: which gaps are closed, as a dict, a list or None for all; and constraints."""
        listed = check_constraints(constraints)
        numbered = any(requirement.moves for requirement in listed)
        if isinstance(gap, Mapping) or (gap is None and numbered):
            return cls(requirements_of(gap, listed, components), by_numbers=True)
        if gap is None:
            return cls(requirements_of(0.0, listed, components), by_numbers=False)
        if isinstance(gap, str) or not isinstance(gap, Iterable):
            raise ConstraintError(
                f"The gaps to close are {gap!r}.",
                "Pass a list of components, or a dict of component to number.",
            )
        if numbered:
            raise ConstraintError(
                "The gaps to close are listed, and there is a Gap(...) among the constraints.",
                "Name each of them in one place, with its number.",
            )
        return cls(requirements_of(dict.fromkeys(gap, 0.0), listed, components), by_numbers=False)

    @property
    def kept(self) -> tuple[Requirement, ...]:
        """What holds everywhere on the frontier."""
        return tuple(requirement for requirement in self.requirements if not requirement.moves)

    def rows(self, moments: Moments, *, see_group: bool) -> list[Row]:
        """Every requirement on these sums, those that move with their width at tau 1."""
        free = solve_program(moments, self.kept, see_group=see_group)
        rows = rows_of(self.requirements, moments)
        if sum(row.width is not None for row in rows) == 1:
            widths = np.ones(len(moments.components))
        elif self.by_numbers:
            return rows
        else:
            # A gap that is nothing but rounding has no direction: it stays closed.
            widths = np.where(free.outcome.gaps > rounding_of(moments), free.outcome.gaps, 0.0)
        return [row if row.width is None else row.moved(float(widths[row.j])) for row in rows]


@dataclass(frozen=True)
class Point:
    """One breakpoint: how far along the ray, what it does, and the policy's probabilities.

    ``prices`` are those of its requirements, where they are known from its own program.
    """

    tau: float
    outcome: Outcome
    q: Floats
    prices: dict[str, float] = field(default_factory=dict)


def trace(
    first: Point, last: Point, solve: Callable[[float], Point], tolerance: float = EXACT
) -> list[Point]:
    """All breakpoints between the least gap (``first``) and the least loss (``last``).

    ``solve(weight)`` returns a point that minimises loss plus weight times tau.
    """
    rise = first.outcome.loss - last.outcome.loss
    if rise <= 0 or last.tau <= first.tau:
        return [first]
    slack = tolerance * rise

    def between(left: Point, right: Point) -> list[Point]:
        fall, run = left.outcome.loss - right.outcome.loss, right.tau - left.tau
        if fall <= slack or run <= tolerance * last.tau:
            return []
        weight = fall / run
        point = solve(weight)
        chord = left.outcome.loss + weight * left.tau
        if point.outcome.loss + weight * point.tau >= chord - slack:
            return []
        return [*between(left, point), point, *between(point, right)]

    return _hull([first, *between(first, last), last], slack)


def _hull(points: list[Point], slack: float) -> list[Point]:
    """The points of the lower left hull: repeated, dominated and collinear ones are dropped."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tau, point.outcome.loss)):
        if kept and point.outcome.loss >= kept[-1].outcome.loss - slack:
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], point, slack):
            kept.pop()
        kept.append(point)
    return kept


def _above(left: Point, middle: Point, right: Point, slack: float) -> bool:
    share = (middle.tau - left.tau) / (right.tau - left.tau)
    chord = (1 - share) * left.outcome.loss + share * right.outcome.loss
    return middle.outcome.loss >= chord - slack


def breakpoints(program: Program, changes: Floats) -> list[Point]:
    """All breakpoints of a program whose rows that move give the ray's direction.

    Of the policies that are equally good at one, it is that which changes today's decisions least.
    """
    model, ray = Ray(program), ray_of(program)

    def point(columns: Floats) -> Point:
        q = policy_of(program, columns)
        outcome = program.moments.evaluate(q)
        return Point(tau_of(outcome, ray), outcome, q)

    first, last = point(model.least().columns), point(model.weighted(0.0).columns)
    unit = program.cost_scale
    found = trace(first, last, lambda weight: point(model.weighted(weight / unit).columns))
    settled = [point(model.within(corner.tau, changes).columns) for corner in found]
    return _hull(settled, EXACT * (first.outcome.loss - last.outcome.loss))


def ray_of(program: Program) -> Floats:
    """Width of every component's gap at tau 1; infinite where it is not constrained."""
    ray = np.full(len(program.moments.components), math.inf)
    for row in program.rows:
        if row.width is not None:
            ray[row.j] = row.width
    return ray


def tau_of(outcome: Outcome, ray: Floats) -> float:
    """How far along the ray an outcome is."""
    on = (ray > 0) & np.isfinite(ray)
    return float((outcome.gaps[on] / ray[on]).max(initial=0.0))


def tau_rounding(program: Program) -> float:
    """How far apart two positions on the ray may be by rounding alone."""
    ray = ray_of(program)
    on = (ray > 0) & np.isfinite(ray)
    return float((rounding_of(program.moments)[on] / ray[on]).max(initial=0.0))
