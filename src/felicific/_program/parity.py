r"""Parity: the amounts of least loss whose distributions differ by no more than so much between groups.

What is looked for is :math:`P_{zt}`, the share of group z whose amount is above the threshold :math:`\tau_t`, in the
middle between the levels :math:`a_t` and :math:`a_{t+1}`. People get more in the order of their predictions, so that
with calibrated predictions m and squared loss the program is

.. math::
    \min_P \sum_{zt} \Phi_{zt}(P_{zt}), \quad
    \Phi_{zt}(P) = p_z (a_{t+1} - a_t) \, 2 \Big[ \tau_t P - \int_{\text{top } P} m_z \Big], \quad
    |P_{zt} - P_{yt}| \le \epsilon,

and any other loss has the rises of its own sums in the bracket. Group means are straight in P: there may be rows over
them too. Every cost is written as 16 chords, the linear program is solved, and the window of every share shrinks
to three chords around its answer; after some rounds the chords are finer than anything that can be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._problem.linear import Linear
from felicific._program.highs import new_solver
from felicific._program.hulls import vertices
from felicific._typing import Codes, Floats
from felicific.exceptions import SolverError

#: Chords of a cost, rounds, and how much of a window is left after each, in chords to either side of the answer.
PIECES, ROUNDS, KEPT = 16, 5, 1.5

#: Steps of a solver, besides a hundred for every column and row, after which it is given up.
STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Thresholds:
    """People in order, and levels of amounts.

    Attributes
    ----------
    people : array of shape (groups,)
        Weight of every group.
    mass, predicted : arrays of shape (groups, bins)
        Weight, and weighted calibrated predictions, in bins from the least to the largest prediction.
    levels : array of shape (levels,)
        The amounts that are looked at.
    values : array of shape (groups, measures, levels)
        What they are worth.
    straight : bool
        Whether amounts lie anywhere between thresholds, not at levels only, so that means are those of broken lines;
        happiness is then a straight line of the amount.
    ordered : bool
        Whether a larger share may seem to be above a larger amount, unless that is forbidden.
    costs : array of shape (groups, bins, levels), or None
        Weighted loss of every level, where it is not the squared error.
    """

    people: Floats
    mass: Floats
    predicted: Floats
    levels: Floats
    values: Floats
    straight: bool
    ordered: bool
    costs: Floats | None = None

    @property
    def taus(self) -> Floats:
        """The thresholds."""
        return (self.levels[1:] + self.levels[:-1]) / 2

    @property
    def _slopes(self) -> Floats:
        """What one more unit of the amount is worth, where that is a straight line."""
        return np.asarray((self.values[:, :, -1] - self.values[:, :, 0]) / (self.levels[-1] - self.levels[0]))

    @cached_property
    def constants(self) -> Floats:
        """Means of happiness where nobody is above any threshold, of shape (groups, measures)."""
        first = self.values[:, :, 0]
        return first + self._slopes * (self.taus[0] - self.levels[0]) / 2 if self.straight else first

    @cached_property
    def coefficients(self) -> Floats:
        """What one more person above a threshold adds to the mean, of shape (groups, measures, thresholds)."""
        if not self.straight:
            return np.diff(self.values, axis=2)
        around = np.concatenate([self.levels[:1], self.taus, self.levels[-1:]])
        return np.asarray(self._slopes[:, :, None] * (around[2:] - around[:-2]) / 2)

    @cached_property
    def _hulls(self) -> list[list[tuple[Floats, Floats]]]:
        """Of every group and threshold: shares of people, and what it costs that so many are above it."""
        hulls = []
        for z in range(len(self.people)):
            held = np.flatnonzero(self.mass[z])[::-1]
            shares = np.append(0.0, self.mass[z, held].cumsum()) / self.people[z]
            shares[-1] = 1.0
            if self.costs is None:
                tops = np.append(0.0, self.predicted[z, held].cumsum()) / self.people[z]
                hulls.append([(shares, tops)])
                continue
            rises = np.diff(self.costs[z, held], axis=1).cumsum(axis=0).T / self.people[z]
            totals = np.hstack([np.zeros((len(rises), 1)), rises])
            part, corner = vertices(np.tile(shares, (len(totals), 1)), np.ascontiguousarray(totals))
            at = [corner[part == t] for t in range(len(totals))]
            hulls.append([(shares[some], totals[t, some]) for t, some in enumerate(at)])
        return hulls

    def cost(self, u: Floats) -> Floats:
        """What shares above thresholds cost, of shape (groups, thresholds, any)."""
        costs, shares = np.empty(u.shape), self.people / self.people.sum()
        widths = np.diff(self.levels)[:, None]
        for z, share in enumerate(shares.tolist()):
            if self.costs is not None:
                for t, line in enumerate(self._hulls[z]):
                    costs[z, t] = share * np.interp(u[z, t], *line)
                continue
            top = np.interp(u[z], *self._hulls[z][0])
            costs[z] = share * 2.0 * widths * (self.taus[:, None] * u[z] - top)
        return costs


@dataclass(frozen=True)
class Parted:
    """An answer: the shares above thresholds, and the prices of every requirement and of the distance."""

    above: Floats
    prices: list[float]
    distance_price: float


def solve_parity(
    thresholds: Thresholds, rows: Sequence[Linear], distance: float | None, compared: Codes
) -> Parted | None:
    """Shares of least loss that meet all rows, at each threshold at most so far apart between those ``compared``.

    None where nothing meets them; without a ``distance`` shares may be as far apart as they like.
    """
    shape = len(thresholds.people), len(thresholds.taus)
    start, length, answer = np.zeros(shape), np.ones(shape), None
    for _ in range(ROUNDS):
        answer = _solved(_Window(thresholds, start, length / PIECES), rows, distance, compared)
        if answer is None:
            return None
        kept = np.minimum(length, 2 * KEPT * length / PIECES)
        start = np.clip(answer.above - kept / 2, 0.0, np.maximum(1.0 - kept, 0.0))
        length = np.minimum(kept, 1.0 - start)
    return answer


@dataclass(frozen=True, eq=False)
class _Window:
    """Where shares are looked for in a round: from ``start`` on, in pieces of these ``widths``."""

    thresholds: Thresholds
    start: Floats
    widths: Floats

    def entries(self, row: Codes, place: Codes, numbers: Floats) -> tuple[Codes, Codes, Floats]:
        """Rows, columns and coefficients of numbers times shares, which stand at these places."""
        column = (place[:, None] * PIECES + np.arange(PIECES)).ravel()
        return row.repeat(PIECES), column, (numbers * self.widths.ravel()[place]).repeat(PIECES)

    def of_means(self, linear: Linear, size: Floats) -> tuple[tuple[Codes, Codes, Floats], Floats]:
        """What stands in the rows of a requirement, scaled, and what all shares at their starts make of them."""
        coefficients, n_taus = self.thresholds.coefficients, self.start.shape[1]
        groups = len(self.start)
        keys, place = np.unique(linear.row * groups + linear.group, return_inverse=True)
        numbers = np.zeros((len(keys), n_taus))
        np.add.at(numbers, place, linear.number[:, None] * coefficients[linear.group, linear.measure])
        row, group = keys // groups, keys % groups
        numbers /= size[row, None]
        means = self.thresholds.constants + np.einsum("zjt,zt->zj", coefficients, self.start)
        places = (group[:, None] * n_taus + np.arange(n_taus)).ravel()
        kept = np.flatnonzero(numbers.ravel())
        entries = self.entries(row.repeat(n_taus)[kept], places[kept], numbers.ravel()[kept])
        return entries, linear.at(means) / size


def _solved(
    window: _Window, rows: Sequence[Linear], distance: float | None, compared: Codes
) -> Parted | None:
    """One round: chords within the window."""
    thresholds, (n_groups, n_taus) = window.thresholds, window.start.shape
    points = window.start[:, :, None] + window.widths[:, :, None] * np.arange(PIECES + 1)
    rises = np.diff(thresholds.cost(points), axis=2)
    unit, n_pieces = float(np.abs(rises).max(initial=0.0)) or 1.0, rises.size
    swing = np.abs(thresholds.coefficients).sum(axis=2).max(axis=0, initial=0.0)
    swing = np.where(swing > 0, swing, 1.0)
    entries: list[tuple[Codes, Codes, Floats]] = []
    lower, upper, sizes, first = [], [], [], 0
    levels: list[tuple[float, float]] = []
    at: list[int] = []
    for linear in rows:
        size = linear.sizes(swing)
        (row, column, number), constant = window.of_means(linear, size)
        entries.append((row + first, column, number))
        at.append(len(levels))
        if linear.over_level is not None:
            each = np.arange(len(size))
            entries.append(
                (each + first, np.full(len(each), n_pieces + len(levels)), linear.over_level / size)
            )
            levels.append((linear.least_level, np.inf))
        lower.append(linear.lower / size - constant)
        upper.append(linear.upper / size - constant)
        sizes.append(size)
        first += len(size)
    n_rows = first
    if distance is not None:  # at every threshold, groups are between a free level and so much above it
        n_levels = n_pieces + len(levels)
        place = (compared[:, None] * n_taus + np.arange(n_taus)).ravel()
        row = first + np.arange(len(place))
        entries.append(window.entries(row, place, np.ones(len(place))))
        entries.append((row, n_levels + place % n_taus, np.full(len(place), -1.0)))
        levels += [(-1.0, 2.0)] * n_taus
        lower.append(-window.start.ravel()[place])
        upper.append(distance - window.start.ravel()[place])
        first += len(place)
    if thresholds.ordered:  # no share is larger than the one before it
        place = (np.arange(n_groups)[:, None] * n_taus + np.arange(n_taus - 1)).ravel()
        row, flat = first + np.arange(len(place)), window.start.ravel()
        entries.append(window.entries(row, place, np.ones(len(place))))
        entries.append(window.entries(row, place + 1, np.full(len(place), -1.0)))
        lower.append(flat[place + 1] - flat[place])
        upper.append(np.full(len(place), np.inf))
        first += len(place)
    cost = np.append(rises.ravel() / unit, np.zeros(len(levels)))
    ends = [
        np.append(np.full(n_pieces, piece), [pair[k] for pair in levels])
        for k, piece in enumerate((0.0, 1.0))
    ]
    sides = [np.concatenate([np.zeros(0), *part]) for part in (lower, upper)]
    found = _run(cost, ends, entries, sides)
    if found is None:
        return None
    values, duals = found
    pieces = np.clip(values[:n_pieces], 0.0, 1.0).reshape(n_groups, n_taus, PIECES)
    above = window.start + window.widths * pieces.sum(axis=2)
    means = thresholds.constants + np.einsum("zjt,zt->zj", thresholds.coefficients, above)
    prices, place = [], 0
    for linear, size, k in zip(rows, sizes, at, strict=True):
        own: Floats = duals[place : place + len(size)] * unit / size
        prices.append(linear.price(own, 0.0 if linear.over_level is None else values[n_pieces + k], means))
        place += len(size)
    close = duals[n_rows : n_rows + (0 if distance is None else len(compared) * n_taus)]
    return Parted(above, prices, float(np.maximum(-close, 0.0).sum() * unit))


def _run(
    cost: Floats, ends: list[Floats], entries: list[tuple[Codes, Codes, Floats]], sides: list[Floats]
) -> tuple[Floats, Floats] | None:
    """HiGHS's columns and duals of rows; None where nothing is feasible."""
    import highspy

    lp, none = highspy.HighsLp(), np.zeros(0)
    rows, columns, numbers = (np.concatenate([none, *(part[k] for part in entries)]) for k in range(3))
    order = np.argsort(rows, kind="stable")
    lp.num_col_, lp.num_row_ = len(cost), len(sides[0])
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, *ends
    lp.row_lower_, lp.row_upper_ = sides
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(rows[order], np.arange(len(sides[0]) + 1)).astype(np.int32)
    lp.a_matrix_.index_ = columns[order].astype(np.int32)
    lp.a_matrix_.value_ = numbers[order]
    for method, presolve in (("simplex", "choose"), ("simplex", "off"), ("ipm", "off")):
        solver = new_solver()
        solver.setOptionValue("solver", method)
        solver.setOptionValue("presolve", presolve)
        # Where chords are so short that their slopes are rounding, a solver may go round in circles.
        solver.setOptionValue("simplex_iteration_limit", STEPS + 100 * (len(cost) + len(sides[0])))
        solver.passModel(lp)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            solution = solver.getSolution()
            return np.array(solution.col_value), np.array(solution.row_dual)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the sums if you can share them.",
    )
