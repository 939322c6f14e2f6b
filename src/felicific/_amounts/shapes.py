r"""Shapes: what the numbers of a program of amounts are, and how they become a line for every group.

*Thresholds*: :math:`P_{zt}`, the share of group z whose amount is above the threshold :math:`\tau_t`, in the middle
between the levels :math:`a_t` and :math:`a_{t+1}`. People get more in the order of their predictions, so with
calibrated predictions m and squared loss

.. math:: \Phi_{zt}(P) = p_z (a_{t+1} - a_t) \, 2 \Big[ \tau_t P - \int_{\text{top } P} m_z \Big],

and any other loss has the rises of its own sums in the bracket. Group means are linear in P. *Shifts*: where only
means of amounts matter, the number is the group's mean amount, and the amounts are :math:`m + s_z` cut at the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._amounts.scale import FINE, Scale
from felicific._amounts.sums import AmountSums
from felicific._policy.lines import Atom, Calibration, Line, simplified
from felicific._program.hulls import vertices
from felicific._typing import Floats

#: Lines are simplified: by no more than this share of the range of amounts, ...
SLACK = 1e-3

#: ... nor than moves this share of a group across an amount.
MOVED = 1.5e-4

#: Predictions that differ by less, as a share of their range, are taken for the same.
SAME = 1e-9

#: Knots of a line from predictions to ranks, at the most.
KNOTS = 4096

#: People of the same prediction randomize where they are a larger share of their group.
LARGE = 0.01

#: Cells into which the sums of a loss that is not the squared error are joined.
CELLS = 256


@dataclass(frozen=True, eq=False)
class Ranks:
    """The predictions of a group in order: knots of a line from prediction to rank, and who is predicted the same.

    ``atoms`` are bins of many people of one prediction: the bin, and the ranks where it begins and ends.
    """

    prediction: Floats
    rank: Floats
    atoms: list[tuple[int, float, float]]

    @property
    def middle(self) -> tuple[float, float]:
        """Predictions between which 98 % of the group lie."""
        low, high = np.interp([0.01, 0.99], self.rank, self.prediction).tolist()
        return low, high

    @classmethod
    def of_bins(cls, sums: AmountSums, z: int) -> Ranks:
        """Of the people of a group: a bin of one prediction at its middle rank, any other from end to end."""
        held = np.flatnonzero(sums.mass[z])
        mass = sums.mass[z, held] / sums.people[z]
        after = mass.cumsum()
        after[-1] = 1.0
        before = np.append(0.0, after[:-1])
        least, most = sums.least[z, held], sums.most[z, held]
        apart = (most - least) > 1e-3 * sums.scale.width / FINE
        x = np.column_stack([np.where(apart, least, sums.predicted[z, held] / sums.mass[z, held]), most])
        r = np.column_stack([np.where(apart, before, (before + after) / 2), after])
        kept = np.column_stack([np.ones(len(held), dtype=bool), apart])
        atoms = [
            (int(held[k]), float(before[k]), float(after[k]))
            for k in np.flatnonzero(~apart & (mass > np.maximum(LARGE, 1.5 / sums.rows[z]))).tolist()
        ]
        return cls(np.maximum.accumulate(x[kept]), r[kept], atoms)

    @classmethod
    def of_rows(cls, prediction: Floats, weight: Floats, scale: Scale) -> Ranks:
        """Of the people of a group, row by row: every prediction at its middle rank, or enough of them."""
        # Predictions that differ by rounding alone are one: two machines may differ in that.
        steps = np.rint((prediction - scale.low) / (scale.width or 1.0) / SAME)
        _, first, place = np.unique(steps, return_index=True, return_inverse=True)
        x = prediction[first]
        mass = np.bincount(place, weight, len(x)) / weight.sum()
        after = mass.cumsum()
        after[-1] = 1.0
        before = np.append(0.0, after[:-1])
        middle = (before + after) / 2
        # One person alone draws no draw, however small the group is; weight 2 is the row twice.
        several = (np.bincount(place, minlength=len(x)) > 1) | (np.bincount(place, weight, len(x)) >= 2.0)
        large = (mass > LARGE) & several
        bins = scale.bins(x[large])
        atoms = [
            (int(number), float(start), float(end))
            for number, start, end in zip(bins, before[large], after[large], strict=True)
        ]
        kept = np.diff((middle * KNOTS).astype(np.intp), prepend=-1) > 0
        kept[[0, -1]] = True
        kept |= large
        return cls(x[kept], middle[kept], atoms)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Shares above thresholds (see the module).

    ``values`` are the happiness of every level, of shape (groups, measures, levels).
    ``straight``: amounts lie anywhere between thresholds, not at levels only, so that means are those of broken lines;
    happiness is then a straight line of the amount. ``parted``: how far groups are apart matters at every threshold.
    """

    sums: AmountSums
    calibration: Calibration
    levels: Floats
    values: Floats
    straight: bool
    draws: bool
    ordered: bool
    ranks: tuple[Ranks, ...]
    parted: bool = False
    rounds: int = 5

    @property
    def taus(self) -> Floats:
        """The thresholds."""
        return (self.levels[1:] + self.levels[:-1]) / 2

    @property
    def low(self) -> Floats:
        """No share is less than 0."""
        return np.zeros((len(self.sums.groups), len(self.levels) - 1))

    @property
    def high(self) -> Floats:
        """Nor more than 1."""
        return np.ones((len(self.sums.groups), len(self.levels) - 1))

    @property
    def counted(self) -> Floats:
        """Everybody is counted."""
        return np.repeat(self.sums.people[:, None], self.values.shape[1], axis=1)

    @cached_property
    def constants(self) -> Floats:
        """Means of happiness where nobody is above any threshold."""
        first = self.values[:, :, 0]
        if not self.straight:
            return np.asarray(first)
        return np.asarray(first + self._slopes * (self.taus[0] - self.levels[0]) / 2)

    @cached_property
    def coefficients(self) -> Floats:
        """What one more person above a threshold adds to the mean."""
        if not self.straight:
            return np.diff(self.values, axis=2)
        around = np.concatenate([self.levels[:1], self.taus, self.levels[-1:]])
        return np.asarray(self._slopes[:, :, None] * (around[2:] - around[:-2]) / 2)

    @property
    def _slopes(self) -> Floats:
        return np.asarray((self.values[:, :, -1] - self.values[:, :, 0]) / (self.levels[-1] - self.levels[0]))

    @cached_property
    def _tops(self) -> list[tuple[Floats, Floats]]:
        """Of every group: shares of people from the top down, and the sum of calibrated predictions of those."""
        tops = []
        for z in range(len(self.sums.groups)):
            held = np.flatnonzero(self.sums.mass[z])[::-1]
            mass = self.sums.mass[z, held]
            m = self.calibration.at(z, self.sums.predicted[z, held] / mass) * mass
            shares = np.append(0.0, mass.cumsum()) / self.sums.people[z]
            shares[-1] = 1.0
            tops.append((shares, np.append(0.0, m.cumsum()) / self.sums.people[z]))
        return tops

    @cached_property
    def _hulls(self) -> list[list[tuple[Floats, Floats]]]:
        """Of every group and threshold: the hull of what it costs that a share of people is above it."""
        costs = self.sums.costs
        assert costs is not None, "another loss than the squared error has sums of its own"
        hulls = []
        for z in range(len(self.sums.groups)):
            held = np.flatnonzero(self.sums.mass[z])
            mass = self.sums.mass[z, held]
            cell = ((mass.cumsum() - mass / 2) / self.sums.people[z] * CELLS).astype(np.intp)
            first = np.flatnonzero(np.diff(cell, prepend=-1))
            weight = np.add.reduceat(mass, first)[::-1]
            rises = np.diff(np.add.reduceat(costs[z, held], first, axis=0), axis=1)[::-1]
            shares = np.append(0.0, weight.cumsum()) / self.sums.people[z]
            shares[-1] = 1.0
            totals = np.vstack([np.zeros(rises.shape[1]), rises.cumsum(axis=0)]) / self.sums.people[z]
            part, corner = vertices(np.tile(shares, (rises.shape[1], 1)), np.ascontiguousarray(totals.T))
            own = []
            for t in range(rises.shape[1]):
                at = corner[part == t]
                own.append((shares[at], totals[at, t]))
            hulls.append(own)
        return hulls

    def cost(self, u: Floats) -> Floats:
        """What shares above thresholds cost, of shape (groups, thresholds, any)."""
        costs, shares = np.empty(u.shape), self.sums.people / self.sums.total
        widths = np.diff(self.levels)[:, None]
        for z, share in enumerate(shares.tolist()):
            if self.sums.costs is not None:
                for t, (x, y) in enumerate(self._hulls[z]):
                    costs[z, t] = share * np.interp(u[z, t], x, y)
                continue
            top = np.interp(u[z], *self._tops[z])
            costs[z] = share * 2.0 * widths * (self.taus[:, None] * u[z] - top)
        return costs

    def lines(self, u: Floats) -> tuple[Line, ...]:
        """The line of every group, from its shares above thresholds."""
        lines = []
        for z, ranks in enumerate(self.ranks):
            below = 1.0 - np.minimum.accumulate(np.clip(u[z], 0.0, 1.0))
            draws, amounts = self._quantiles(self._settled(z, below))
            lines.append(self._line(ranks, draws, amounts))
        return tuple(lines)

    def _settled(self, z: int, below: Floats) -> Floats:
        """Shares that nothing is asked of, at the end of an atom where they nearly are.

        People of one prediction are then not told apart by how finely the program looks.
        """
        ends = np.unique([end for _, *both in self.ranks[z].atoms for end in both])
        asked = self.parted or (self.coefficients[z] != 0).any(axis=0)
        if self.straight or not len(ends) or np.all(asked):
            return below
        after = np.searchsorted(ends, below).clip(1, max(len(ends) - 1, 1))
        near = np.where(below - ends[after - 1] <= ends[after] - below, ends[after - 1], ends[after])
        moved = np.where(asked | (np.abs(near - below) > MOVED), below, near)
        least = np.maximum.accumulate(np.where(asked, below, 0.0))
        most = np.minimum.accumulate(np.where(asked, below, 1.0)[::-1])[::-1]
        return np.asarray(np.clip(moved, least, most))

    def _quantiles(self, below: Floats) -> tuple[Floats, Floats]:
        """The amount at every rank."""
        if self.straight:
            ranks = np.concatenate([[0.0], below, [1.0]])
            return ranks, np.concatenate([self.levels[:1], self.taus, self.levels[-1:]])
        return np.concatenate([[0.0], below.repeat(2), [1.0]]), self.levels.repeat(2)

    def _line(self, ranks: Ranks, draws: Floats, amounts: Floats) -> Line:
        reach = float(self.levels[-1] - self.levels[0])
        own = np.interp(ranks.rank, draws, amounts)
        atoms = []
        for number, start, end in ranks.atoms:
            inside = (draws > start) & (draws < end)
            ends = np.interp([start, end], draws, amounts)
            # At a step, a share that begins there has what comes after it, and one that ends there what came before.
            ends[1] = amounts[np.searchsorted(draws, end, side="left")] if end in draws else ends[1]
            at = np.concatenate([[0.0], (draws[inside] - start) / (end - start), [1.0]])
            drawn = np.concatenate([ends[:1], amounts[inside], ends[1:]])
            if drawn[-1] - drawn[0] <= 1e-4 * reach:
                continue
            low, high = self.sums.scale.edge(number - 1), self.sums.scale.edge(number)
            if self.draws:
                atoms.append(Atom(float(low), float(high), end - start, at, drawn))
            else:  # the mean of what they would draw costs no more, and is worth as much to them
                mean = float(np.trapezoid(drawn, at))
                own[np.flatnonzero(ranks.rank == (start + end) / 2)] = mean
        corners = (draws > ranks.rank[0]) & (draws < ranks.rank[-1])
        if self.straight:
            # Where nobody is between two thresholds, the line goes straight from person to person, without a step.
            alone = np.diff(draws, prepend=-1.0) > 0
            corners &= alone & np.append(alone[1:], True)
        x = np.concatenate([ranks.prediction, np.interp(draws[corners], ranks.rank, ranks.prediction)])
        y = np.concatenate([own, amounts[corners]])
        order = np.lexsort([y, x])
        x, y = x[order], np.maximum.accumulate(y[order])
        if not self.straight:
            return Line(*simplified(x, y, np.zeros(len(x))), tuple(atoms), ranks.middle)
        last = np.append(np.diff(x) > 0, True)
        x, y = x[last], y[last]
        around = np.interp(x, ranks.prediction, ranks.rank)
        above, below = (np.interp(around + side * MOVED, draws, amounts) for side in (1, -1))
        slack = np.minimum(np.minimum(above - y, y - below).clip(min=1e-9 * reach), SLACK * reach)
        return Line(*simplified(x, y, slack), tuple(atoms), ranks.middle)


@dataclass(frozen=True, eq=False)
class Shifts:
    """Mean amounts of groups (see the module); happiness is ``offsets`` plus ``slopes`` times the amount."""

    sums: AmountSums
    calibration: Calibration
    bounds: tuple[float, float]
    offsets: Floats
    slopes: Floats
    ranks: tuple[Ranks, ...]
    rounds: int = 9  # narrower windows are nothing but rounding to a solver
    ordered: bool = False

    @cached_property
    def _bins(self) -> list[tuple[Floats, Floats]]:
        """Of every group, shares of people and their calibrated predictions."""
        bins = []
        for z in range(len(self.sums.groups)):
            held = np.flatnonzero(self.sums.mass[z])
            mass = self.sums.mass[z, held]
            bins.append(
                (mass / self.sums.people[z], self.calibration.at(z, self.sums.predicted[z, held] / mass))
            )
        return bins

    @property
    def low(self) -> Floats:
        """No mean is less than the least amount."""
        return np.full((len(self.sums.groups), 1), self.bounds[0])

    @property
    def high(self) -> Floats:
        """Nor more than the largest."""
        return np.full((len(self.sums.groups), 1), self.bounds[1])

    @property
    def counted(self) -> Floats:
        """Everybody is counted."""
        return np.repeat(self.sums.people[:, None], self.offsets.shape[1], axis=1)

    @property
    def constants(self) -> Floats:
        """Means of happiness where the amount is 0."""
        return self.offsets

    @property
    def coefficients(self) -> Floats:
        """What one more unit of the mean amount adds."""
        return self.slopes[:, :, None]

    @cached_property
    def _curves(self) -> list[tuple[Floats, Floats]]:
        """Of every group, mean amounts and the shifts that lead to them: straight in between."""
        low, high = self.bounds
        curves = []
        for mass, m in self._bins:
            shifts = np.unique(np.concatenate([low - m, high - m]))
            # How much of the group moves with the shift, between one shift and the next.
            enter, leave = np.sort(low - m), np.sort(high - m)
            by_enter, by_leave = (
                np.append(0.0, mass[np.argsort(end)].cumsum()) for end in (low - m, high - m)
            )
            moving = by_enter[np.searchsorted(enter, shifts[:-1], side="right")]
            moving = moving - by_leave[np.searchsorted(leave, shifts[:-1], side="right")]
            means = low + np.append(0.0, (np.maximum(moving, 0.0) * np.diff(shifts)).cumsum())
            curves.append((means, shifts))
        return curves

    def shift(self, z: int, mean: Floats) -> Floats:
        """How far everybody of a group is moved so that the mean amount is this."""
        return np.interp(mean, *self._curves[z])

    def cost(self, u: Floats) -> Floats:
        """The squared distance from calibrated predictions, of shape (groups, 1, any)."""
        costs, shares = np.empty(u.shape), self.sums.people / self.sums.total
        low, high = self.bounds
        for z, (mass, m) in enumerate(self._bins):
            for k, shift in enumerate(self.shift(z, u[z, 0]).tolist()):
                costs[z, 0, k] = shares[z] * float(mass @ (np.clip(m + shift, low, high) - m) ** 2)
        return costs

    def lines(self, u: Floats) -> tuple[Line, ...]:
        """The calibrated line of every group, moved and cut at the bounds."""
        return tuple(
            shifted(self.calibration, z, float(self.shift(z, u[z])[0]), self.bounds, self.ranks[z])
            for z in range(len(self.sums.groups))
        )


def shifted(
    calibration: Calibration, z: int, shift: float, bounds: tuple[float, float], ranks: Ranks
) -> Line:
    """The calibrated line of a group, moved and cut at the bounds; it goes on straight until it meets them."""
    low, high = bounds
    x, m = calibration.lines[z]
    y = m + shift
    if len(x) > 1:
        first, last = (y[1] - y[0]) / (x[1] - x[0]), (y[-1] - y[-2]) / (x[-1] - x[-2])
        if first > 0 and y[0] > low:
            x, y = np.append(x[0] - (y[0] - low) / first, x), np.append(low, y)
        if last > 0 and y[-1] < high:
            x, y = np.append(x, x[-1] + (high - y[-1]) / last), np.append(y, high)
    rising = np.flatnonzero(np.diff(y, prepend=-np.inf) > 0)
    cuts = [np.interp(bound, y[rising], x[rising]) for bound in bounds if y[0] < bound < y[-1]]
    corners = np.unique(np.append(x, cuts))
    slack = np.full(len(corners), 1e-12 * (high - low))
    cut = np.clip(np.interp(corners, x, y), low, high)
    return Line(*simplified(corners, cut, slack), middle=ranks.middle)
