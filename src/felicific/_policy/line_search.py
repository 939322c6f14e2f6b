"""The search for lines: of least loss, meeting every requirement on the very people, not only in their bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._policy.lines import Line, Ranks, line_of_bins, line_of_levels, line_of_shares
from felicific._policy.numeric_outcome import AmountOutcome
from felicific._problem.linear import Linear
from felicific._problem.requirement import rows_of
from felicific._problem.unions import compared_groups
from felicific._program.aggregates import Aggregates
from felicific._program.calibration import Calibration
from felicific._program.levels import BINS, Bins, grid_of, level_aggregates, squares_of, straight
from felicific._program.master import solve_rows
from felicific._program.parity import Parted, Thresholds, solve_parity
from felicific._program.predicted import Predicted
from felicific._program.program import Program
from felicific._program.solution import can_meet, conflict_error, irreducible
from felicific._program.squares import Squared
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError, InfeasibleError

if TYPE_CHECKING:
    from felicific._people.people import People
    from felicific._problem.numeric import NumericProblem

#: How often lines are found anew, because they make other means of people than of bins, or of a distance.
TRIES = 8

#: Bins times levels that are looked at, where levels are few; and the most bins.
FINEST, MOST_BINS = 10_000, 1024

#: Means are met that are missed by no more than this share of what amounts can do; others are an error.
MET, MISSED = 1e-11, 1e-7


@dataclass(frozen=True, eq=False)
class SolvedLines:
    """Lines, what they do, and the prices of requirements."""

    lines: tuple[Line, ...]
    outcome: AmountOutcome
    prices: dict[str, float]


@dataclass(frozen=True, eq=False)
class LineSearch:
    """People, and what is known of their predictions, for problems that differ in their requirements alone.

    Attributes
    ----------
    problem : NumericProblem
        Happiness, loss, and which amounts there may be.
    people : People
        Of sums alone, a row for every bin.
    predicted, calibration :
        Sums of predictions, and what these mean.
    ranks : tuple of Ranks
        The order of predictions in every group.
    stated :
        What lines do to people.
    """

    problem: NumericProblem
    people: People
    predicted: Predicted
    calibration: Calibration
    ranks: tuple[Ranks, ...]
    stated: Callable[[Sequence[Line]], AmountOutcome]

    @cached_property
    def calibrated(self) -> Floats:
        """Everybody's calibrated prediction."""
        return self.calibration.of(self.people.prediction, self.people.codes)

    @cached_property
    def bins(self) -> Bins:
        """The bins of the prediction."""
        return Bins.of(self.people, self.predicted.scale, sees_group=self.problem.sees_group)

    @cached_property
    def straight(self) -> bool:
        """Whether happiness is a straight line of the amount, which may be any."""
        return self.problem.allowed.listed is None and straight(
            self.problem, self.people, self.problem.allowed.ends
        )

    @cached_property
    def grid(self) -> Floats:
        """The levels that are tried."""
        return grid_of(self.problem, self.people, self.calibrated)

    @cached_property
    def fine_bins(self) -> Bins:
        """Bins that are the finer, the fewer levels there are."""
        number = min(max(FINEST // len(self.grid), BINS), MOST_BINS)
        return Bins.of(self.people, self.predicted.scale, sees_group=self.problem.sees_group, number=number)

    def aggregates(self, grid: Floats, bins: Bins) -> Aggregates:
        """What levels cost and are worth."""
        return level_aggregates(self.problem, self.people, bins, self.calibrated, grid, self.predicted.rows)

    @cached_property
    def _ends(self) -> Aggregates:
        """What the least and the largest amount are worth, by bin."""
        return self.aggregates(np.array(self.problem.allowed.ends), self.bins)

    @cached_property
    def _levels(self) -> Aggregates:
        """What the levels that are tried cost and are worth."""
        return self.aggregates(self.grid, self.fine_bins)

    @cached_property
    def _program(self) -> Program:
        """The program of these levels."""
        return Program.of(self._levels, sees_group=self.problem.sees_group)

    @cached_property
    def _even(self) -> Aggregates:
        """What even levels cost and are worth, between which distributions are compared."""
        return self.aggregates(self.problem.allowed.grid, self.bins)

    def solve(self, problem: NumericProblem) -> SolvedLines:
        """The lines of least loss that meet the requirements of a problem."""
        if problem.distance is not None:
            return self._parted(problem)
        if self.straight and problem.squared:
            return self._moved(problem)
        return self._stepped(problem)

    def _lines(self, bins: Bins, amounts: Floats) -> tuple[Line, ...]:
        """Lines through the amounts of bins."""
        ends, monotone = self.problem.allowed.ends, self.problem.monotone
        return tuple(
            line_of_bins(bins, z, amounts, self.calibration, ends, ranks, monotone=monotone)
            for z, ranks in enumerate(self.ranks)
        )

    def _moved(self, problem: NumericProblem) -> SolvedLines:
        """Of squared error, where happiness is a straight line."""
        squares = squares_of(self._ends, self.people, self.bins, self.calibrated)
        rows, near = _linear(problem, self._ends), list[Squared]()

        def found(rows: Sequence[Linear]) -> tuple[tuple[Line, ...], Floats, list[float]] | None:
            answer = squares.solve(rows, near[-1] if near else None)
            if answer is None:
                return None
            near.append(answer)
            prices = _prices(rows, answer.duals, answer.levels, answer.means)
            return self._lines(self.bins, answer.aims), answer.means, prices

        return self._met(rows, self._ends.origin, squares.swing, found, squares.meets, exact=True)

    def _stepped(self, problem: NumericProblem) -> SolvedLines:
        """Level by level: of any loss and any happiness."""
        program, aggregates, rows = self._program, self._levels, _linear(problem, self._levels)
        grid, bins = self.grid, self.fine_bins
        mean = self.straight and problem.convex and not problem.parity
        cuts = problem.sees_group and not problem.of_people
        at = np.concatenate([np.arange(run.stop - run.start) for run in bins.runs])
        code = np.repeat(np.arange(len(bins.runs)), [run.stop - run.start for run in bins.runs])

        def found(rows: Sequence[Linear]) -> tuple[tuple[Line, ...], Floats, list[float]] | None:
            answer = solve_rows(program, rows)
            if answer is None:
                return None
            means = aggregates.linear_means(answer.q)
            if mean:
                lines = self._lines(bins, (answer.q @ grid)[code, at])
            else:
                lines = tuple(
                    line_of_levels(bins, z, answer.q[z], grid, ranks, cuts=cuts)
                    for z, ranks in enumerate(self.ranks)
                )
            return lines, means, _prices(rows, answer.duals, answer.levels, means)

        meets = partial(can_meet, program)
        return self._met(rows, aggregates.origin, program.swing, found, meets, exact=mean)

    def _met(
        self,
        rows: list[Linear],
        origin: Floats,
        swing: Floats,
        solve: Callable[[Sequence[Linear]], tuple[tuple[Line, ...], Floats, list[float]] | None],
        meets: Callable[[list[Any]], bool],
        *,
        exact: bool,
    ) -> SolvedLines:
        """Lines that meet rows as means of people are: these are moved by what they differ from those of bins."""
        off, best, least = np.zeros((len(self.ranks), len(origin))), None, math.inf
        tighter = np.zeros(len(rows))
        for _ in range(TRIES):
            answer = solve([_tightened(row.shifted(off), by) for row, by in zip(rows, tighter, strict=True)])
            if answer is None:
                if best is None:
                    raise conflict_error(irreducible([*rows], meets))
                break
            lines, means, prices = answer
            outcome = self.stated(lines)
            real = np.nan_to_num(outcome.means - origin)
            missed = max((row.excess(real, swing) for row in rows), default=0.0)
            if best is None or missed < least:
                best, least = SolvedLines(lines, outcome, _by_name(rows, prices)), missed
            apart = np.abs(real - means - off) / swing
            off = real - means
            if missed <= MET and (apart.max(initial=0.0) <= MET or not exact):
                break
            if not exact:  # people come one by one: half of one too many is one too many
                tighter += [1.1 * row.excess(real) for row in rows]
        assert best is not None, "at least one was tried"
        if exact and least > MISSED:
            raise InfeasibleError(
                "Lines of amounts come no nearer than "
                f"{least:.2g} of what amounts can do to: {'; '.join(row.words for row in rows)}.",
                "Loosen one of them, or widen the bounds, decisions=(low, high).",
                tuple(row.words for row in rows),
            )
        return best

    def _parted(self, problem: NumericProblem) -> SolvedLines:
        """By shares above thresholds: how far distributions are apart; aimed at more tightly where bins hide some."""
        aims = dict(problem.widths_asked)
        best, least = None, math.inf
        for _ in range(TRIES // 2):
            found = self._shares(problem.with_widths(aims))
            over = {
                name: gap_of(problem, found.outcome, name) - width
                for name, width in problem.widths_asked.items()
            }
            worst = max(over.values())
            if best is None or worst < least:
                best, least = found, worst
            wide = [
                name
                for name, more in over.items()
                if more > 1e-9 * problem.widths_asked[name] and aims[name] > 0
            ]
            if not wide:
                break
            aims |= {
                name: max(aims[name] - 1.1 * over[name] - 1e-4 * problem.widths_asked[name], 0.0)
                for name in wide
            }
        assert best is not None, "at least one was tried"
        return best

    def _shares(self, problem: NumericProblem) -> SolvedLines:
        """The lines of one distance, from shares above thresholds."""
        sums, aggregates = self.predicted, self._even
        mass, costs = sums.mass, None
        predicted = np.zeros_like(mass)
        for z in range(len(mass)):
            held = np.flatnonzero(mass[z])
            predicted[z, held] = mass[z, held] * self.calibration.at(
                z, sums.predicted[z, held] / mass[z, held]
            )
        if not problem.squared:
            mass, costs, predicted = aggregates.mass, aggregates.loss, aggregates.mass
        thresholds = Thresholds(
            people=sums.people,
            mass=mass,
            predicted=predicted,
            levels=problem.allowed.grid,
            values=(aggregates.value.sum(axis=1) / aggregates.divisor[:, None]).swapaxes(1, 2),
            straight=self.straight,
            ordered=not (self.straight and problem.convex),
            costs=costs,
        )
        rows, distance = _linear(problem, aggregates), problem.distance
        compared = compared_groups(self.people.left_out, problem.parity, self.people.groups)

        def solve(rows: Sequence[Linear], distance: float | None = distance) -> Parted | None:
            return solve_parity(thresholds, rows, distance, compared)

        answer = solve(rows)
        if answer is None:
            kept = irreducible([*rows], lambda some: solve(some) is not None)
            words = [row.words for row in kept]
            if solve(kept, None) is not None:
                words.append(f"distributions at most {distance:g} apart")
            raise InfeasibleError(
                f"No policy of this kind meets: {'; '.join(words)}"
                + (", all at once." if len(words) > 1 else "."),
                "Loosen one of them, or widen the bounds, decisions=(low, high).",
                tuple(words),
            )
        lines = tuple(
            line_of_shares(thresholds, answer.above[z], ranks) for z, ranks in enumerate(self.ranks)
        )
        prices = {problem.parity: answer.distance_price} | _by_name(rows, answer.prices)
        return SolvedLines(lines, self.stated(lines), prices)


def _linear(problem: NumericProblem, aggregates: Aggregates) -> list[Linear]:
    """The requirements of a problem as rows."""
    return [row for row in rows_of(problem.requirements, aggregates) if isinstance(row, Linear)]


def _tightened(row: Linear, by: float) -> Linear:
    """Rows whose sides are nearer by so much, as far as they can be."""
    return row.relaxed(-np.minimum(by, (row.upper - row.lower) / 2)) if by else row


def _prices(
    rows: Sequence[Linear], duals: Sequence[Floats], levels: Sequence[float], means: Floats
) -> list[float]:
    """The price of every requirement."""
    return [row.price(y, level, means) for row, y, level in zip(rows, duals, levels, strict=True)]


def _by_name(rows: Sequence[Linear], prices: Sequence[float]) -> dict[str, float]:
    """Prices by what requirements are called: those of one name together."""
    named: dict[str, float] = {}
    for row, price in zip(rows, prices, strict=True):
        named[row.name] = named.get(row.name, 0.0) + price
    return named


def gap_of(problem: NumericProblem, outcome: AmountOutcome, name: str) -> float:
    """A gap of an outcome by its name."""
    if name == problem.parity:
        assert outcome.distance is not None, "it is measured"
        return outcome.distance.value
    return float(outcome.gaps[[part.name for part in problem.measures].index(name)])


def ranks_of(predicted: Predicted, people: People | None) -> tuple[Ranks, ...]:
    """The order of predictions in every group: of people row by row, else by their bins."""
    groups = range(len(predicted.groups))
    if people is None:
        return tuple(Ranks.of_bins(predicted, z) for z in groups)
    rows = [np.flatnonzero(people.codes == z) for z in groups]
    return tuple(Ranks.of_rows(people.prediction[own], people.weights[own], predicted.scale) for own in rows)


def unbound(problem: NumericProblem) -> NumericProblem:
    """The same with nothing required."""
    return replace(problem, requirements=(), parity_gap=math.inf)


def check_bins(problem: NumericProblem, *, rows: bool) -> None:
    """Refuse what bins of the prediction cannot be asked for; ``rows``: people are there, not their sums alone."""
    if problem.sees_group and not problem.of_people:
        return
    if problem.parity:
        why = "does not see the group" if not problem.sees_group else f"also looks at {problem.of_people!r}"
        raise ConstraintError(
            f"{problem.parity!r} compares ranks within groups, which a policy that {why} does not hold.",
            "Ask for it alone, and let the policy see the group; or for means, 'decision' or 'decision >= 40'.",
        )
    if problem.of_people and not rows:
        raise DataError(
            f"The happiness {problem.of_people!r} looks at the people, and files never hold them.",
            "Fit again; or take policies along the frontier before it is stored.",
        )
