"""Curves: what the policies of a frontier do to people they were not fitted on, and tables of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from felicific._frontier.breakpoints import Breakpoint, Closing, MovingRow, finder, moving_as
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure, measured, written
from felicific._problem.linear import Goal, Rows, goals_of
from felicific._problem.loss import is_accuracy, loss_text, loss_words
from felicific._problem.requirement import Requirement, rows_of
from felicific._program.aggregates import Aggregates, Outcome, gaps_of
from felicific._program.fractions import Level, fraction_level
from felicific._program.program import rounding_of
from felicific._shown.drawing import plot
from felicific._shown.parts import LINES, Lines, Part, Picture, Table, clipped, short, spread
from felicific._tables.memory import table_maker
from felicific._typing import Floats, Truths
from felicific.exceptions import InfeasibleError

if TYPE_CHECKING:
    from felicific._frontier.frontier import Frontier


@dataclass(frozen=True)
class SolvedFrontier:
    """What is known of a frontier once it is solved.

    Attributes
    ----------
    moving : list of MovingRow
        What is allowed at tau is tau times each one's width.
    points : list of Breakpoint
        From the least gap to the least loss.
    baseline : Outcome
        What the model's own decisions do.
    sums : Aggregates
        Which say what tables of probabilities do.
    policy : callable
        The policy of some probabilities, given what they do.
    rounding : float
        How far apart two positions may be without being told from each other.
    tau_baseline : float
        Where the baseline's decisions stand.
    mixes : bool
        Whether policies of two positions mix to one between; not where fractions are compared, or a Ratio moves.
    solve : callable, or None
        Where they do not: the point at a position, by a program of its own; None once it is stored.
    limit : {"", "at least", "at most"}
        Where the number of one requirement moves, what it is; positions are that number, from the tightest on.
    """

    moving: list[MovingRow]
    points: list[Breakpoint]
    baseline: Outcome | None
    sums: Aggregates
    policy: Callable[[Floats, Outcome], Policy]
    rounding: float
    tau_baseline: float = 0.0
    mixes: bool = True
    solve: Callable[[float], Breakpoint] | None = None
    limit: str = ""

    @cached_property
    def sign(self) -> float:
        """1 where larger positions are looser, -1 where they are tighter."""
        return -1.0 if self.limit == "at least" else 1.0

    def tighter(self, tau: float) -> Breakpoint:
        """The loosest point that was found which keeps to a position."""
        kept = [point for point in self.points if self.sign * (point.tau - tau) <= self.rounding]
        return min(kept or self.points[:1], key=lambda point: point.value)


@dataclass(frozen=True, eq=False)
class Curve:
    """What the policies of a frontier do to people they were not fitted on.

    Attributes
    ----------
    measures, groups : tuple
        As on the frontier.
    tau : array of shape (points,)
        Where on the frontier each point lies: its breakpoints, and the kinks between them.
    loss : array of shape (points,)
    means : array of shape (points, groups, measures)
    gaps : array of shape (points, measures)
    kink : array of shape (points,)
        True for a point that is no breakpoint of the frontier: two groups change places there.
    baseline : Outcome or None
        What the model's own decisions do to these people.
    """

    measures: tuple[Measure, ...]
    groups: tuple[Any, ...]
    tau: Floats
    loss: Floats
    means: Floats
    gaps: Floats
    kink: Truths
    baseline: Outcome | None = None

    def __repr__(self) -> str:
        ends = [f"{one.name!r} {_ends(self.gaps[:, j])}" for j, one in enumerate(self.measures)]
        text = f"Curve of {len(self.tau):,} points: loss {_ends(self.loss)}; gap of {', of '.join(ends)}."
        return f"{clipped(text)} to_frame() has all of it."

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per point: tau, loss, whether it is a kink, gaps and group means, by name."""
        more = {"kink": self.kink.tolist()}
        return table_of(self.measures, self.groups, self.tau, self.loss, more, self.gaps, self.means)

    def to_frame(self) -> Any:
        """The points as a pandas or Polars dataframe."""
        return table_maker("auto")({name: np.array(column) for name, column in self.to_dict().items()})


def _ends(numbers: Floats) -> str:
    first, last = (round(float(number), 12) + 0.0 for number in (numbers[0], numbers[-1]))
    return f"{first:.6g} to {last:.6g}"


def curve(
    measures: tuple[Measure, ...],
    groups: tuple[Any, ...],
    tau: Floats,
    outcomes: list[Outcome],
    baseline: Outcome | None = None,
    compared: Truths | None = None,
    *,
    mixes: bool = True,
) -> Curve:
    """Join what the policies at some places of a frontier do to other people, with the kinks between them.

    Gaps are between the groups that each measure compares, by default all. Where policies of two places do not mix
    there are no kinks; nor of a fraction, which is no straight line.
    """
    losses = np.array([outcome.loss for outcome in outcomes])
    means = np.array([outcome.means for outcome in outcomes])
    places, kinks = [0.0], [False]
    for i in range(len(outcomes) - 1):
        plain = [j for j, measure in enumerate(measures) if mixes and not measure.over]
        crossings = sorted({t for j in plain for t in kinks_of(means[i, :, j], means[i + 1, :, j])})
        places += [*(i + t for t in crossings), i + 1.0]
        kinks += [*(True for _ in crossings), False]
    index = np.arange(len(outcomes), dtype=np.float64)

    def straight(numbers: Floats) -> Floats:
        flat = numbers.reshape(len(numbers), -1).T
        joined = np.array([np.interp(places, index, column) for column in flat]).T
        return joined.reshape(len(places), *numbers.shape[1:])

    lines = straight(means)
    bent = [j for j, measure in enumerate(measures) if measure.over]
    for j in bent:
        lines[np.array(kinks), :, j] = np.nan
    return Curve(
        measures=measures,
        groups=groups,
        tau=straight(tau),
        loss=straight(losses),
        means=lines,
        gaps=np.stack([gaps_of(there, compared) for there in lines]),
        kink=np.array(kinks),
        baseline=baseline,
    )


def kinks_of(left: Floats, right: Floats) -> list[float]:
    """Where, between 0 and 1, the largest or the smallest of some straight lines becomes another one."""
    kinks = set()
    for a in range(len(left)):
        for b in range(a):
            apart, after = left[a] - left[b], right[a] - right[b]
            if apart * after >= 0:
                continue
            t = float(apart / (apart - after))
            there = (1 - t) * left + t * right
            # Any value between those of the two lines will do: they meet here.
            if there[a] >= there.max() - 1e-12 * np.ptp(there) or there[a] <= there.min() + 1e-12 * np.ptp(
                there
            ):
                kinks.add(t)
    return sorted(kinks)


def table_of(
    measures: tuple[Measure, ...],
    groups: tuple[Any, ...],
    tau: Floats,
    loss: Floats,
    more: dict[str, list[Any]],
    gaps: Floats,
    means: Floats,
) -> dict[str, list[Any]]:
    """Columns by name, for frontiers and curves."""
    table: dict[str, list[Any]] = {"tau": tau.tolist(), "loss": loss.tolist()} | more
    names = [str(group) for group in groups]
    if len(set(names)) < len(names):
        names = [repr(group) for group in groups]  # 1 and "1"
    for j, measure in enumerate(measures):
        table[f"gap of {measure.name}"] = gaps[:, j].tolist()
        for z, group in enumerate(names):
            table[f"mean {measure.name} of {group}"] = means[:, z, j].tolist()
    return table


# ---------------------------------------------------------------------------------------------------------
# Frontiers that are solved point by point, and never mixed between two points.
#
# The least loss is not convex in the gap of a fraction, such as precision, nor in a ratio: mixing two
# policies mixes numerators and denominators, not what they make. So each point is a program of its own;
# where fractions are compared it is a search for the level, which starts at that of its neighbour. Floors,
# budgets and WorseOff move in the same way.


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
    return (
        closing.by_points is not None or fraction_level(rows_of(closing.requirements, aggregates)) is not None
    )


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
    rows : list of list of Linear or FractionLevel
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
    rows: list[list[Rows]]
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
        return max((float(noise[row.goal.j]) / width for row, width in self._each if width), default=0.0)

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
    def _each(self) -> list[tuple[Rows, float]]:
        return [(row, width) for rows, width in zip(self.rows, self.widths, strict=True) for row in rows]

    def _place(self, means: Floats) -> float:
        """How far along means of shape (groups, measures) are, of fractions those of numerator and denominator."""
        return max((row.reached(means) / width for row, width in self._each if width), default=0.0)

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


def _widths(closing: Closing, rows: list[list[Rows]], aggregates: Aggregates, means: Floats) -> list[float]:
    """What is allowed of every requirement that moves at tau 1; ``means`` are those when nothing is asked."""
    if sum(map(len, rows)) == 1:
        return [1.0]
    numbers = [float(getattr(one, "at_most", 0.0)) for one in closing.moved]
    if closing.by_numbers and any(numbers):
        return numbers
    noise = rounding_of(aggregates)
    widths = [max((row.reached(means) for row in some), default=0.0) for some in rows]
    quiet = [max((float(noise[row.goal.j]) for row in some), default=0.0) for some in rows]
    return [width if width > least else 0.0 for width, least in zip(widths, quiet, strict=True)]


# ---------------------------------------------------------------------------------------------------------
# A frontier as a picture with its table, for notebooks: needs nothing but Python.


#: Gaps that the table shows, of several.
COLUMNS = 3

MORE = "to_frame() has all of them."

#: Points of a drawing at most: more cannot be told apart.
MOST = 200


def drawn(line: Frontier) -> tuple[list[float], list[float]]:
    """Where the points of a drawing lie on the ray, and their losses: both ends, and the others evenly along the curve.

    No other policy has to be found.
    """
    tau, value = line.tau, line.value
    kept = np.arange(len(tau))
    if len(tau) > MOST:
        steps = [np.diff(part) / (np.ptp(part) or 1.0) for part in (tau, value)]
        length = np.append(0.0, np.hypot(*steps).cumsum())
        kept = np.unique(np.searchsorted(length, np.linspace(0.0, length[-1], MOST)))
    points = line.points
    return tau[kept].tolist(), [loss_of(line, points[i]) for i in kept]


def loss_of(line: Frontier, point: Breakpoint) -> float:
    """The loss at a point, without what changed decisions cost; where they cost nothing its policy is not needed."""
    return point.outcome.loss if line.change_cost else point.value


def parts_of(line: Frontier) -> list[Part]:
    """A line that says from where to where it goes, the picture and the table."""
    return [Lines([str(line)], strong=True), _picture(line), _table(line)]


def _picture(line: Frontier) -> Picture:
    name, (unit, axis) = line.loss_name, _axis(line)
    j, accuracy = line.closed_alone, is_accuracy(name)
    taus, losses = drawn(line)
    now = [] if line.baseline is None else [line.baseline.loss]
    heights = [1.0 - loss if accuracy else loss for loss in (*losses, *now)]
    drawing = plot(
        [unit * tau for tau in taus],
        heights[: len(losses)],
        (unit * line.tau_baseline, heights[-1]) if now else None,
        write_x=lambda number: written(number, 4) if j is None else line.measures[j].cell(number, 4),
        write_y=lambda number: f"{100 * number:.4g}%" if accuracy else written(number, 4),
        steps=not line.mixes,
    )
    what = loss_words(name)
    return Picture(f"{what[:1].upper()}{what[1:]} for every {axis}", drawing, 9)


def _axis(line: Frontier) -> tuple[float, str]:
    """What one tau is on the axis, and what the axis shows."""
    j = line.closed_alone
    if j is not None:
        measure = line.measures[j]
        unit = "" if measure.in_currency or not measure.unit else f" ({short(measure.unit, 16)})"
        return float(line.ray[j]), f"allowed gap of {short(measure.title)!r}{unit}"
    if line.limit:
        return 1.0, f"number that is asked for, {line.limit}"
    return 1.0, "allowed gap, all of them in proportion"


def _table(line: Frontier) -> Table:
    points = line.points
    kept = spread(len(line), MOST if len(line) <= MOST else LINES)  # no more rows than are ever shown
    outcomes = [points[i].outcome for i in kept]
    tiny = 1e-12 * np.nanmax(np.abs([outcome.means for outcome in outcomes]), axis=(0, 1))
    own = measured(line.measures)
    columns = own[:COLUMNS]
    names = tuple(f"gap of {short(line.measures[j].title, 28)}" for j in columns)
    header = ("place", loss_words(line.loss_name), *names)

    def row(name: str, loss: float, gaps: np.ndarray) -> tuple[str, ...]:
        # What is left of an exact zero after rounding is zero to a reader.
        numbers = [float(gaps[j]) if gaps[j] > tiny[j] else 0.0 for j in columns]
        cells = (line.measures[j].cell(number) for j, number in zip(columns, numbers, strict=True))
        return (name, loss_text(line.loss_name, loss), *cells)

    rows = [
        row(line.place(i), loss_of(line, points[i]), outcome.gaps)
        for i, outcome in zip(kept, outcomes, strict=True)
    ]
    others = [f"{len(own) - COLUMNS:,} more gaps: to_frame()."] if len(own) > COLUMNS else []
    baseline = [] if line.baseline is None else [row("baseline", line.baseline.loss, line.baseline.gaps)]
    left_out = len(line) - len(rows)
    return Table("", header, rows, MORE, foot=baseline, keep=spread, remarks=others, left_out=left_out)
