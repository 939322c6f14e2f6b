r"""Separable convex programs: few numbers, each with a convex cost of its own, under linear requirements.

.. math::
    \min_u \sum_{zt} \Phi_{zt}(u_{zt}) \quad \text{s.t.} \quad \text{every requirement, linear in } u,
    \quad u^{low}_{zt} \le u_{zt} \le u^{high}_{zt}

Every cost is written as 16 chords, the linear program is solved, and the window of every number shrinks to three
chords around its answer; after some rounds the chords are finer than anything that can be measured. What u is, the
share of a group above a threshold or a group's mean amount, and what means are made of it, a :class:`Shape` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from felicific._problem.linear import Linear
from felicific._program.highs import new_solver
from felicific._typing import Codes, Floats
from felicific.exceptions import SolverError

#: Chords of a cost.
PIECES = 16

#: Steps of a solver, besides a hundred for every column and row, after which it is given up.
STEPS = 10_000

#: How much of a window is left after a round, in chords to either side of the answer.
KEPT = 1.5


class Shape(Protocol):
    """What the numbers of a program are: their range, their costs, and the means that they make."""

    @property
    def low(self) -> Floats:
        """The least that each may be, of shape (groups, numbers)."""

    @property
    def high(self) -> Floats:
        """The most."""

    @property
    def constants(self) -> Floats:
        """The part of every group's mean that no number changes, of shape (groups, measures)."""

    @property
    def coefficients(self) -> Floats:
        """How means follow the numbers of their own group, of shape (groups, measures, numbers).

        Or, where all groups share the numbers, of shape (groups, measures, 1, numbers).
        """

    @property
    def counted(self) -> Floats:
        """Weight of who is counted, of shape (groups, measures)."""

    @property
    def rounds(self) -> int:
        """How often windows shrink."""

    @property
    def ordered(self) -> bool:
        """Whether the numbers of a group may not rise, one after the other."""

    def cost(self, u: Floats) -> Floats:
        """What numbers cost, of shape (groups, numbers, any)."""


@dataclass(frozen=True)
class Solved:
    """An answer: the numbers, what they cost, the prices of requirements by name, and that of distances.

    ``feasible`` is False where nothing meets all requirements.
    """

    feasible: bool
    u: Floats
    prices: dict[str, float]
    distance_price: float = 0.0


@dataclass(frozen=True)
class ModelRow:
    """One row of the linear program, which was divided by ``size``."""

    columns: Codes
    numbers: Floats
    lower: float
    upper: float
    size: float = 1.0


@dataclass(frozen=True)
class _Windows:
    """The program of one round."""

    shape: Shape
    start: Floats
    widths: Floats
    scales: Floats

    @property
    def constants(self) -> Floats:
        """Means at the lower ends of the windows, scaled."""
        follow = "zjt,zt->zj" if self.shape.coefficients.ndim == 3 else "zjbt,bt->zj"
        return np.asarray(
            (self.shape.constants + np.einsum(follow, self.shape.coefficients, self.start)) / self.scales
        )

    def mean(self, j: int, shares: Floats) -> tuple[Codes, Floats]:
        """Columns and scaled coefficients of a weighted mean."""
        if self.shape.coefficients.ndim == 4:
            shared = np.einsum("z,zt->t", shares, self.shape.coefficients[:, j, 0]) / self.scales[j]
            held = np.flatnonzero(shared)
            numbers = (shared[held] * self.widths[0, held])[:, None].repeat(PIECES, axis=1)
            return (held[:, None] * PIECES + np.arange(PIECES)).ravel(), numbers.ravel()
        n_numbers = self.shape.coefficients.shape[2]
        columns, parts = [], []
        for z in np.flatnonzero(shares).tolist():
            own = shares[z] * self.shape.coefficients[z, j] / self.scales[j]
            held = np.flatnonzero(own)
            first = (z * n_numbers + held) * PIECES
            columns.append((first[:, None] + np.arange(PIECES)).ravel())
            parts.append((own[held, None] * self.widths[z, held, None]).repeat(PIECES, axis=1).ravel())
        if not columns:
            return np.empty(0, dtype=np.intp), np.empty(0)
        return np.concatenate(columns), np.concatenate(parts)

    def rows(self, row: Linear, level: int) -> list[ModelRow]:
        """The rows of a requirement, whose free level is a column."""
        written, at = [], row.at(self.constants * self.scales)
        if row.over_level is not None:
            at = at + row.over_level * float(np.mean(-at / row.over_level))
        sizes = row.sizes(self.scales)
        for i, (shift, size) in enumerate(zip(at.tolist(), sizes.tolist(), strict=True)):
            own = np.flatnonzero(row.row == i)
            columns, numbers = [np.empty(0, dtype=np.intp)], [np.empty(0)]
            for j in np.unique(row.measure[own]).tolist():
                part = own[row.measure[own] == j]
                shares = np.bincount(row.group[part], row.number[part], len(self.shape.constants))
                found = self.mean(j, shares)
                columns.append(found[0])
                numbers.append(found[1] * self.scales[j] / size)
            if row.over_level is not None:
                columns.append(np.array([level]))
                numbers.append(row.over_level[[i]] / size)
            lower, upper = ((float(side[i]) - shift) / size for side in (row.lower, row.upper))
            written.append(ModelRow(np.concatenate(columns), np.concatenate(numbers), lower, upper, size))
        return written

    def number(self, z: int, t: int) -> tuple[Codes, Floats, float]:
        """Columns, coefficients and constant of one number."""
        first = (z * self.start.shape[1] + t) * PIECES
        return first + np.arange(PIECES), np.full(PIECES, self.widths[z, t]), float(self.start[z, t])


def minimise(
    shape: Shape,
    rows: Sequence[Linear],
    *,
    distance: float | None = None,
    compared: Codes | None = None,
) -> Solved:
    """Solve the program.

    Parameters
    ----------
    shape : Shape
        The numbers.
    rows : sequence of Linear
        Requirements over means.
    distance : float, optional
        At each number, the largest difference allowed between groups; the numbers are shares above thresholds.
    compared : array, optional
        The groups that are held to it; all by default.
    """
    low, high = shape.low, shape.high
    start, length = low.copy(), high - low
    swing = np.abs(shape.coefficients) * (high - low)[:, None, :]
    scales = swing.sum(axis=tuple(range(2, swing.ndim))).max(axis=0, initial=0.0)
    apart = np.ptp(shape.constants, axis=0) if len(shape.constants) else np.zeros(len(scales))
    scales = np.where(scales > 0, scales, np.where(apart > 0, apart, 1.0))
    answer = Solved(False, start, {})
    for _ in range(shape.rounds):
        windows = _Windows(shape, start, length / PIECES, scales)
        answer = _solve(windows, rows, distance, compared)
        if not answer.feasible:
            return answer
        kept = np.minimum(length, 2 * KEPT * length / PIECES)
        start = np.clip(answer.u - kept / 2, low, np.maximum(high - kept, low))
        length = np.minimum(kept, high - start)
    return answer


def _solve(
    windows: _Windows, rows: Sequence[Linear], distance: float | None, compared: Codes | None
) -> Solved:
    """One round: chords within the windows."""
    shape = windows.shape
    n_groups, n_numbers = windows.start.shape
    points = windows.start[:, :, None] + windows.widths[:, :, None] * np.arange(PIECES + 1)
    rises = np.diff(shape.cost(points), axis=2)
    n_pieces = rises.size
    free = [row for row in rows if row.over_level is not None]
    n_levels = len(free)
    n_distances = n_numbers if distance is not None else 0
    unit = float(np.abs(rises).max(initial=0.0)) or 1.0
    cost = np.concatenate([rises.ravel() / unit, np.zeros(n_levels + n_distances)])
    lower = np.concatenate(
        [np.zeros(n_pieces), [row.least_level for row in free], np.full(n_distances, -1.0)]
    )
    upper = np.concatenate([np.ones(n_pieces), np.full(n_levels, np.inf), np.full(n_distances, 2.0)])
    written: list[ModelRow] = []
    owners: list[int] = []
    firsts, level = [], n_pieces
    for place, row in enumerate(rows):
        firsts.append(level)
        own = windows.rows(row, level)
        written += own
        owners += [place] * len(own)
        level += row.over_level is not None
    n_required = len(written)
    groups = np.arange(n_groups) if compared is None else compared
    close = [] if distance is None else _close(windows, groups, distance, level)
    written += close + (_falling(windows) if shape.ordered else [])
    values, duals = _run(cost, lower, upper, written)
    if values is None:
        return Solved(False, windows.start, {})
    pieces = np.clip(values[:n_pieces], 0.0, 1.0).reshape(n_groups, n_numbers, PIECES)
    u = windows.start + windows.widths * pieces.sum(axis=2)
    prices: dict[str, float] = {}
    for place, row in enumerate(rows):
        mine = [i for i, owner in enumerate(owners) if owner == place]
        sizes = np.array([written[i].size for i in mine])
        own_level, constants = 0.0, windows.constants * windows.scales
        if row.over_level is not None:
            own_level = float(values[firsts[place]] + np.mean(-row.at(constants) / row.over_level))
        price = row.price(duals[mine] * unit / sizes, own_level, constants)
        prices[row.name] = prices.get(row.name, 0.0) + price
    parity = np.maximum(-duals[n_required : n_required + len(close)], 0.0).sum() * unit
    return Solved(True, u, prices, float(parity))


def _close(windows: _Windows, groups: Codes, distance: float, level: int) -> list[ModelRow]:
    """At every number, groups at most so far apart: each between a free level, from column ``level`` on, and beyond."""
    rows = []
    for t in range(windows.start.shape[1]):
        for z in groups.tolist():
            columns, numbers, constant = windows.number(z, t)
            columns, numbers = np.append(columns, level + t), np.append(numbers, -1.0)
            rows.append(ModelRow(columns, numbers, -constant, distance - constant))
    return rows


def _falling(windows: _Windows) -> list[ModelRow]:
    """No number of a group is larger than the one before it."""
    rows, (n_groups, n_numbers) = [], windows.start.shape
    for z in range(n_groups):
        for t in range(n_numbers - 1):
            (columns, numbers, constant), after = windows.number(z, t), windows.number(z, t + 1)
            both = np.concatenate([columns, after[0]]), np.concatenate([numbers, -after[1]])
            rows.append(ModelRow(*both, after[2] - constant, np.inf))
    return rows


def _run(
    cost: Floats, lower: Floats, upper: Floats, rows: Sequence[ModelRow]
) -> tuple[Floats | None, Floats]:
    """HiGHS's columns and duals of rows; no columns where nothing is feasible."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(rows)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
    lp.row_lower_ = np.array([row.lower for row in rows])
    lp.row_upper_ = np.array([row.upper for row in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.append(0, np.cumsum([len(row.columns) for row in rows])).astype(np.int32)
    empty = np.empty(0, dtype=np.intp)
    lp.a_matrix_.index_ = np.concatenate([empty, *(row.columns for row in rows)]).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([np.empty(0), *(row.numbers for row in rows)])
    for method, presolve in (("simplex", "choose"), ("simplex", "off"), ("ipm", "off")):
        solver = new_solver()
        solver.setOptionValue("solver", method)
        solver.setOptionValue("presolve", presolve)
        # Where chords are so short that their slopes are rounding, a solver may go round in circles.
        solver.setOptionValue("simplex_iteration_limit", STEPS + 100 * (len(cost) + len(rows)))
        solver.passModel(lp)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            solution = solver.getSolution()
            return np.array(solution.col_value), np.array(solution.row_dual)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None, np.empty(0)
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the sums if you can share them.",
    )
