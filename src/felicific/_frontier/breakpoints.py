"""Breakpoints: what a frontier closes, and how its corners are found.

Where one gap moves they are sorted pieces (:mod:`felicific._program.one_gap`). Else, with tau a column of the program,
minimising loss plus a weight times tau gives a breakpoint for every weight. Starting from the two ends, the slope of
the chord between two known breakpoints either finds one below the chord or proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from felicific._problem.constraints import check_constraints, requirements_of
from felicific._problem.happiness import Measure
from felicific._problem.linear import Goal, Linear, Rows
from felicific._problem.requirement import Requirement, rows_of
from felicific._problem.requirements import Ratio
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.master import Answer, Master
from felicific._program.one_gap import OneGap, one_gap
from felicific._program.program import Program, rounding_of
from felicific._program.solution import linear_rows, solve_program
from felicific._typing import Floats
from felicific.exceptions import ConstraintError

#: Below this, relative to the whole rise of the loss, a breakpoint is not told from the chord beside it.
EXACT = 1e-11


@dataclass(frozen=True)
class Closing:
    """What a frontier moves, in which proportions, and what holds everywhere on it.

    Attributes
    ----------
    moved : tuple of Requirement
        Those whose widths grow together; or the one that is solved for some of its values.
    kept : tuple of Requirement
        The others.
    by_numbers : bool
        Whether widths shrink in the proportions of the numbers asked for; else of what they are when nothing is asked.
    """

    moved: tuple[Requirement, ...]
    kept: tuple[Requirement, ...]
    by_numbers: bool

    @classmethod
    def of(
        cls, gap: Any, constraints: Any, measures: tuple[Measure, ...], move: Requirement | None = None
    ) -> Closing:
        """From what a user writes: which gaps are closed, as a dict, a list or None for all; and constraints.

        With ``move`` that one of the constraints alone. By default every Gap; without any, the first of those that
        stand in its place.
        """
        listed = check_constraints(constraints)
        numbered = any(requirement.course == "ray" for requirement in listed)
        if move is None and gap is None and not numbered:
            move = next((one for one in listed if isinstance(one, Ratio)), None)
        if move is not None:
            return cls._moving(move, gap, listed, measures)
        if isinstance(gap, Mapping) or (gap is None and numbered):
            return cls._apart(requirements_of(gap, listed, measures), by_numbers=True)
        if gap is None:
            return cls._apart(requirements_of(0.0, listed, measures), by_numbers=False)
        if isinstance(gap, str) or not isinstance(gap, Iterable):
            raise ConstraintError(
                f"The gaps to close are {gap!r}.",
                "Pass a list of measures, or a dict of measure to number.",
            )
        if numbered:
            raise ConstraintError(
                "The gaps to close are listed, and there is a Gap(...) among the constraints.",
                "Name each of them in one place, with its number.",
            )
        return cls._apart(requirements_of(dict.fromkeys(gap, 0.0), listed, measures), by_numbers=False)

    @classmethod
    def first(cls, requirements: tuple[Requirement, ...]) -> Closing | None:
        """The first of some requirements that has a number moves; a Gap with all that are Gaps. None without any."""
        move = next((one for one in requirements if one.has_number), None)
        if move is None or move.course == "ray":
            return None if move is None else cls._apart(requirements, by_numbers=True)
        return cls((move,), tuple(one for one in requirements if one is not move), True)

    @classmethod
    def _apart(cls, requirements: tuple[Requirement, ...], *, by_numbers: bool) -> Closing:
        """All that can be closed is."""
        moved = tuple(one for one in requirements if one.course == "ray")
        return cls(moved, tuple(one for one in requirements if one.course != "ray"), by_numbers)

    @classmethod
    def _moving(
        cls,
        move: Requirement,
        gap: Any,
        listed: tuple[Requirement, ...],
        measures: tuple[Measure, ...],
    ) -> Closing:
        """One of the constraints alone."""
        if move not in listed:
            raise ConstraintError(
                f"{move!r} is to move, and is none of the constraints.", "Name one of them."
            )
        if move.course is None:
            raise ConstraintError(
                f"{move!r} does not move along a frontier: {move.stays}.",
                "Move one with a single limit, at_least or at_most.",
            )
        if gap is not None:
            raise ConstraintError("gap= and move= both say what moves.", "Say it once.")
        others = tuple(one for one in listed if one is not move and one != move)
        return cls(requirements_of(None, [move], measures), requirements_of(None, others, measures), True)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """All of them."""
        return (*self.moved, *self.kept)

    @property
    def of_all_groups(self) -> bool:
        """Whether what moves are gaps of all groups."""
        return all(one.is_plain_gap for one in self.moved)

    @property
    def by_points(self) -> Requirement | None:
        """The requirement that is solved for some of its values, if there is one."""
        return self.moved[0] if self.moved and self.moved[0].course == "points" else None

    def rows(
        self, aggregates: Aggregates, *, sees_group: bool, change_cost: ChangeCost = 0.0
    ) -> list[Linear]:
        """Every requirement on these sums, those that move with their width at tau 1."""
        kept = [row.fixed() for row in linear_rows(rows_of(self.kept, aggregates))]
        rows = linear_rows(rows_of(self.moved, aggregates))
        if len(rows) == 1 and not kept:
            return [rows[0].at_width(1.0)]
        free = solve_program(aggregates, self.kept, sees_group=sees_group, change_cost=change_cost)
        if len(rows) == 1:
            return [rows[0].at_width(1.0), *kept]
        if self.by_numbers and any(row.width for row in rows):
            return [*rows, *kept]
        # A gap that is nothing but rounding has no direction: it stays closed.
        means, noise = aggregates.linear_means(free.q), rounding_of(aggregates)
        widths = [row.reached(means) for row in rows]
        pairs = zip(rows, widths, strict=True)
        return [*(row.at_width(width if width > noise[row.goal.j] else 0.0) for row, width in pairs), *kept]


@dataclass(frozen=True)
class Breakpoint:
    """One breakpoint: how far along the ray, what is minimised there, and how the policy is found.

    What is minimised is the loss, with what changed decisions cost. ``find(tau)`` gives what the policy does and its
    probabilities: of thousands of breakpoints they are made when they are asked for. Where they are known from its own
    program, ``prices`` and ``goals`` are those of its requirements, and ``price`` is that of what moves, per
    unit of tau.
    """

    tau: float
    value: float
    find: Callable[[float], tuple[Outcome, Floats]] = field(repr=False)
    prices: dict[str, float] = field(default_factory=dict)
    goals: tuple[Goal, ...] = ()
    price: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """What the policy does."""
        return self.find(self.tau)[0]

    @property
    def q(self) -> Floats:
        """Its probabilities."""
        return self.find(self.tau)[1]


def finder(outcome: Outcome, q: Floats) -> Callable[[float], tuple[Outcome, Floats]]:
    """A policy that is known already, for a point."""
    return partial(_both, outcome, q)


def _both(outcome: Outcome, q: Floats, tau: float) -> tuple[Outcome, Floats]:
    return outcome, q


def trace(
    first: Breakpoint, last: Breakpoint, solve: Callable[[float], Breakpoint], tolerance: float = EXACT
) -> list[Breakpoint]:
    """All breakpoints between the least gap (``first``) and the least loss (``last``).

    ``solve(weight)`` returns a point that minimises loss plus weight times tau.
    """
    rise = first.value - last.value
    if rise <= 0 or last.tau <= first.tau:
        return [first]
    slack = tolerance * rise

    def between(left: Breakpoint, right: Breakpoint) -> list[Breakpoint]:
        fall, run = left.value - right.value, right.tau - left.tau
        if fall <= slack or run <= tolerance * last.tau:
            return []
        weight = fall / run
        point = solve(weight)
        chord = left.value + weight * left.tau
        if point.value + weight * point.tau >= chord - slack:
            return []
        return [*between(left, point), point, *between(point, right)]

    return _hull([first, *between(first, last), last], slack)


def _hull(points: list[Breakpoint], slack: float) -> list[Breakpoint]:
    """The points of the lower left hull: repeated, dominated and collinear ones are dropped."""
    kept: list[Breakpoint] = []
    for point in sorted(points, key=lambda point: (point.tau, point.value)):
        if kept and point.value >= kept[-1].value - slack:
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], point, slack):
            kept.pop()
        kept.append(point)
    return kept


def _above(left: Breakpoint, middle: Breakpoint, right: Breakpoint, slack: float) -> bool:
    share = (middle.tau - left.tau) / (right.tau - left.tau)
    chord = (1 - share) * left.value + share * right.value
    return middle.value >= chord - slack


#: How many numbers of policies along a frontier are kept once they were asked for.
KEPT = 10_000_000


@dataclass(eq=False)
class RayPolicies:
    """The policies along the ray of a program, each made when it is looked at, and kept while there is room.

    ``taus`` are the places of those that are looked at together.
    """

    program: Program
    rows: list[Linear]
    taus: list[float] = field(default_factory=list)
    kept: dict[float, tuple[Outcome, Floats]] = field(default_factory=dict)

    @cached_property
    def hulls(self) -> OneGap | None:
        """What solves them without a linear program, where that is possible."""
        hulls = one_gap(self.program, self.rows)
        # A gap that is nothing but rounding has no width to be a part of.
        return hulls if hulls is not None and hulls.gap is not None and hulls.width > 0.0 else None

    @cached_property
    def _tight(self) -> list[tuple[Linear, float]]:
        return [(row.at_width(0.0), row.width) for row in self.rows if row.width]

    def at_answer(self, answer: Answer) -> Breakpoint:
        """The point of a solution."""
        tau = max((row.excess(answer.means) / width for row, width in self._tight), default=0.0)
        return self.point(tau, answer.value)

    def ray(self) -> Master:
        """What solves them else: from what was found along the ray, and not from what was looked at before."""
        return Master(self.program.branch(), self.rows, on_ray=True)

    @cached_property
    def answers(self) -> dict[float, Answer]:
        """The solutions at all places."""
        ray = self.ray()
        return {tau: ray.within(tau) for tau in self.taus}

    def __getstate__(self) -> dict[str, Any]:
        return {"program": self.program, "rows": self.rows, "taus": self.taus, "kept": {}}

    def at(self, tau: float) -> tuple[Outcome, Floats]:
        """Of the policies that are equally good at a position, that which changes the baseline's decisions least."""
        if tau not in self.kept:
            if self.hulls is not None:
                q = self.hulls.policy(self.hulls.place(self.hulls.width * tau))
            else:
                q = (self.answers[tau] if tau in self.taus else self.ray().within(tau)).q
            if (len(self.kept) + 1) * q.size > KEPT:
                self.kept.clear()
            self.kept[tau] = (self.program.aggregates.evaluate(q), q)
        return self.kept[tau]

    def point(self, tau: float, value: float) -> Breakpoint:
        """A breakpoint, which the ray is at if at all."""
        return Breakpoint(tau, value, self.at)


def breakpoints(program: Program, rows: list[Linear]) -> list[Breakpoint]:
    """All breakpoints of a program whose rows that move give the ray's direction.

    Of the policies that are equally good at one, it is that which changes the baseline's decisions least.
    """
    places = RayPolicies(program, rows)
    if places.hulls is not None:
        taus, values = places.hulls.frontier()
        line = [places.point(*pair) for pair in zip(taus, values, strict=True)]
        return _hull(line, EXACT * (values[0] - values[-1]))
    ray = Master(program, rows, on_ray=True)
    line = trace(*_ray_ends(places, ray), partial(_weighted, places, ray))
    places.taus[:] = [point.tau for point in line]
    return line


def tightest_at(program: Program, rows: list[Linear], loss: float) -> Breakpoint | None:
    """The policy of least width whose loss is at most this; None where no policy has so little."""
    places = RayPolicies(program, rows)
    if places.hulls is not None:
        taus, values = places.hulls.frontier()
    else:
        ray = Master(program, rows, on_ray=True)
        left, right = _ray_ends(places, ray)
        while left.value > loss > right.value:
            chord = (left.value - right.value) / (right.tau - left.tau)
            point = _weighted(places, ray, chord)
            if point.value + chord * point.tau >= left.value + chord * left.tau - EXACT * program.cost_scale:
                break
            left, right = (left, point) if point.value <= loss else (point, right)
        taus, values = [left.tau, right.tau], [left.value, right.value]
    if values[-1] > loss + EXACT * program.cost_scale:
        return None
    tau = float(np.interp(-loss, -np.array(values), taus))
    return places.point(tau, loss)


def _ray_ends(places: RayPolicies, ray: Master) -> tuple[Breakpoint, Breakpoint]:
    """The points of least width and of least loss, by the linear program."""
    nearest = place_on(places.rows, ray.least().means)
    return places.at_answer(ray.within(nearest, nearest=False)), _weighted(places, ray, 0.0)


def _weighted(places: RayPolicies, ray: Master, weight: float) -> Breakpoint:
    """The point of least loss plus ``weight`` times the position."""
    return places.at_answer(ray.weighted(weight / places.program.cost_scale))


@dataclass(frozen=True)
class MovingRow:
    """What a frontier multiplies: how it is called in prices, its measure, and its width at tau 1."""

    name: str
    j: int
    width: float


def moving_of(rows: Sequence[Linear]) -> list[MovingRow]:
    """Everything that moves along the ray."""
    return [moving_as(row, row.width) for row in rows if row.width is not None]


def moving_as(row: Rows, width: float) -> MovingRow:
    """A row that moves, of this width at tau 1."""
    opened = row.record is not None and row.name == row.words
    return MovingRow(row.record.opened().words if row.record and opened else row.name, row.goal.j, width)


def ray_of(moving: list[MovingRow], measures: tuple[Measure, ...]) -> Floats:
    """Width of every measure's gap at tau 1; infinite where that of all groups is not constrained."""
    widths = {part.name: part.width for part in moving}
    return np.array([widths.get(measure.name, math.inf) for measure in measures])


def point_of(program: Program, rows: Sequence[Linear], q: Floats) -> Breakpoint:
    """What some probabilities do, and how far along the ray that is."""
    tau = place_on(rows, program.aggregates.linear_means(q))
    return Breakpoint(tau, program.value(q), finder(program.aggregates.evaluate(q), q))


def baseline_at(program: Program, rows: Sequence[Linear]) -> float:
    """How far along the ray the baseline's decisions are; not a number where nobody knows them."""
    now = program.aggregates.baseline_value
    return math.nan if now is None else place_on(rows, now.sum(axis=1) / program.aggregates.divisor)


def place_on(rows: Sequence[Linear], means: Floats) -> float:
    """How far along the ray group means are that are relative to the origin."""
    return max((row.reached(means) / row.width for row in rows if row.width), default=0.0)


def tau_of(outcome: Outcome, ray: Floats) -> float:
    """How far along a ray of gaps of all groups an outcome is."""
    on = (ray > 0) & np.isfinite(ray)
    return float((outcome.gaps[on] / ray[on]).max(initial=0.0))


def tau_rounding(program: Program, rows: Sequence[Linear]) -> float:
    """How far apart two positions on the ray may be by rounding alone."""
    noise = rounding_of(program.aggregates)
    return max((float(noise[row.goal.j]) / row.width for row in rows if row.width), default=0.0)
