"""Solve: from sums to the lines of least loss that meet every requirement, where only amounts and groups matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._amounts.separable import Solved, minimise
from felicific._amounts.shapes import Ranks, Shifts, Thresholds, shifted
from felicific._amounts.sums import AmountSums
from felicific._policy.lines import Calibration, Line
from felicific._problem.happiness import Measure
from felicific._problem.linear import Linear
from felicific._problem.requirement import rows_of
from felicific._problem.unions import Attribute, compared_groups
from felicific._typing import Array, Floats
from felicific.exceptions import InfeasibleError


@dataclass(frozen=True, eq=False)
class MeansOfAmounts:
    """What requirements see of people who get amounts (see :class:`felicific._problem.rows.GroupSums`)."""

    measures: tuple[Measure, ...]
    groups: tuple[Any, ...]
    people: Floats
    seen: Floats
    values: Floats
    baseline: Floats
    grid: Floats
    attributes: tuple[Attribute, ...]
    numbers: Floats

    @property
    def decisions(self) -> Array:
        """The levels."""
        return self.grid

    @property
    def listed(self) -> bool:
        """They are not the classes of a model."""
        return True

    @property
    def origin(self) -> Floats:
        """Means are as they are."""
        return np.zeros(len(self.measures))

    @property
    def one_person(self) -> Floats:
        """The weight of one person of every group."""
        return np.asarray(self.people / np.maximum(self.seen, 1))

    @property
    def counted(self) -> Floats:
        """Everybody is counted."""
        return np.repeat(self.people[:, None], len(self.measures), axis=1)

    @property
    def baseline_value(self) -> Floats:
        """Happiness of the baseline's amounts, of shape (groups, 1, measures)."""
        return np.asarray((self.baseline * self.people[:, None])[:, None, :])

    @property
    def least(self) -> Floats:
        """The least mean that amounts can give every group."""
        return np.asarray(self.values.min(axis=2))

    @property
    def most(self) -> Floats:
        """The largest."""
        return np.asarray(self.values.max(axis=2))


@dataclass(frozen=True, eq=False)
class SolvedLines:
    """Lines with the prices of requirements; ``bound`` says whether any requirement keeps the loss from its least."""

    lines: tuple[Line, ...]
    prices: dict[str, float]
    bound: bool


def ranks_of(sums: AmountSums, people: AmountPeople | None) -> tuple[Ranks, ...]:
    """The order of predictions in every group: of people row by row, else by their bins."""
    groups = range(len(sums.groups))
    if people is None:
        return tuple(Ranks.of_bins(sums, z) for z in groups)
    rows = [np.flatnonzero(people.codes == z) for z in groups]
    return tuple(Ranks.of_rows(people.prediction[own], people.weights[own], sums.scale) for own in rows)


def free_lines(
    calibration: Calibration, allowed: Allowed, ranks: tuple[Ranks, ...]
) -> tuple[Line, ...] | None:
    """The lines of least squared error without requirements: calibrated predictions, cut at the bounds."""
    if allowed.listed is not None:
        return None
    return tuple(shifted(calibration, z, 0.0, allowed.ends, own) for z, own in enumerate(ranks))


def means_of_amounts(
    problem: LinesProblem, sums: AmountSums, allowed: Allowed, baseline: Floats
) -> MeansOfAmounts:
    """What requirements see of people: happiness at every level, and the baseline's group means."""
    grid, shape = allowed.grid, (len(sums.groups), len(problem.measures))
    # Of a happiness that looks at people, amounts alone do not tell what it can be.
    values = (
        np.broadcast_to([-np.inf, np.inf], (*shape, 2))
        if problem.of_people
        else problem.values(grid, sums.groups)
    )
    counted = np.repeat(sums.people[:, None], shape[1], axis=1) if sums.counted is None else sums.counted
    return MeansOfAmounts(
        problem.measures, sums.groups, sums.people, sums.rows.astype(np.float64), values, baseline, grid,
        sums.attributes, counted,
    )  # fmt: skip


def solve_lines(
    problem: LinesProblem,
    sums: AmountSums,
    calibration: Calibration,
    allowed: Allowed,
    ranks: tuple[Ranks, ...],
    baseline: Floats,
    *,
    distance: float | None,
) -> SolvedLines:
    """The lines of least loss that meet every requirement, as far as sums tell.

    ``baseline`` are the group means of the baseline's amounts, by measure; ``distance`` how far distributions may be
    apart.
    """
    grid = allowed.grid
    means = means_of_amounts(problem, sums, allowed, baseline)
    values, rows = means.values, rows_of(problem.requirements, means)
    straight = allowed.listed is None and problem.straight(grid, sums.groups)
    shape: Shifts | Thresholds
    if straight and distance is None and problem.squared:
        low, high = allowed.ends
        slopes = (values[:, :, -1] - values[:, :, 0]) / (high - low)
        shape = Shifts(sums, calibration, allowed.ends, values[:, :, 0] - slopes * low, slopes, ranks)
    else:
        mean_will_do = straight and problem.convex and not problem.parity
        shape = Thresholds(
            sums,
            calibration,
            grid,
            values,
            straight,
            draws=not mean_will_do,
            ordered=not (straight and problem.convex),
            ranks=ranks,
            parted=distance is not None,
        )
    compared = compared_groups(sums.left_out, problem.parity, sums.groups)
    answer = minimise(shape, rows, distance=distance, compared=compared)
    if not answer.feasible:
        raise _conflict(shape, rows, distance, compared)
    prices = answer.prices | ({} if distance is None else {problem.parity: answer.distance_price})
    return SolvedLines(shape.lines(answer.u), prices, any(price > 0 for price in prices.values()))


def _conflict(
    shape: Shifts | Thresholds, rows: Sequence[Linear], distance: float | None, compared: Any
) -> InfeasibleError:
    """The error of requirements that nothing meets: those of which none can be left out."""
    kept = list(rows)
    for row in rows:
        others = [one for one in kept if one is not row]
        answer: Solved = minimise(shape, others, distance=distance, compared=compared)
        if not answer.feasible:
            kept = others
    words = [row.words for row in kept]
    if distance is not None and minimise(shape, kept, compared=compared).feasible:
        words.append(f"distributions at most {distance:g} apart")
    return InfeasibleError(
        "No amounts meet all of these together: " + "; ".join(words) + ".",
        "Loosen one of them, or widen the bounds, decisions=(low, high).",
        tuple(words),
    )
