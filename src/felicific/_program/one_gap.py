r"""One gap without a linear program: what lifting and lowering groups costs, sorted.

With :math:`H_z(m)` the least cost of group z at the mean m (:mod:`felicific._program.hulls`), :math:`[a_z, b_z]` where
it is least, and no mean below its floor,

.. math::
    \min \{ U(t) + V(u) : u - t \le \varepsilon \}, \quad
    U(t) = \sum_z H_z(\max(t, b_z)) - H_z(b_z), \quad V(u) = \sum_z H_z(\min(u, a_z)) - H_z(a_z)

is the rise of the loss: U is what it costs to lift everybody to at least t, V what it costs to bring everybody down to
at most u. Both are convex and piecewise linear, so the whole frontier is the merge of their pieces by slope, and the
slope is the price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from felicific._problem.linear import Linear, Rows
from felicific._problem.unions import single_groups
from felicific._program.highs import SMALL
from felicific._program.hulls import Corners, Hulls, Mixed, rising
from felicific._program.master import TIE
from felicific._program.program import Program
from felicific._typing import Floats, Truths


class Place(NamedTuple):
    """Between which levels means lie at some gap, and what a little less of it costs."""

    t: float
    u: float
    price: float


class Held(NamedTuple):
    """What a unit of every group's mean is worth, by what holds it: the lower level, the upper one, its floor."""

    lifted: Floats
    lowered: Floats
    floored: Floats

    @property
    def worth(self) -> Floats:
        """All together."""
        return np.asarray(self.lifted - self.lowered + self.floored)


@dataclass(frozen=True, eq=False)
class Course:
    """Pieces of U and V by slope: where each leads, from the least loss to the least gap.

    ``gap``, ``rise``, ``lower`` and ``upper`` are those before the first piece, then after each.
    """

    slope: Floats
    gap: Floats
    rise: Floats
    lower: Floats
    upper: Floats

    def at(self, gap: float) -> Place:
        """The levels at a gap; at a breakpoint the price is that of tightening."""
        if gap >= self.gap[0]:
            t, u = float(self.lower[0]), float(self.upper[0])
            return Place(t, max(t + gap, u), 0.0)
        i = int(np.searchsorted(-self.gap, -gap, side="right")) - 1
        if i >= len(self.slope):
            price = float(self.slope[-1]) if len(self.slope) else 0.0
            return Place(float(self.lower[-1]), float(self.upper[-1]), price)
        part = (self.gap[i] - gap) / (self.gap[i] - self.gap[i + 1])
        t, u = (
            float(side[i] + part * (side[i + 1] - side[i])) if side[i] != side[i + 1] else float(side[i])
            for side in (self.lower, self.upper)
        )
        return Place(t, u, float(self.slope[i]))


def one_gap(program: Program, rows: Sequence[Rows]) -> OneGap | None:
    """What solves these rows without a linear program; None where they, or the signal, are of another kind."""
    plain = [row for row in rows if isinstance(row, Linear) and row.goal.over is None]
    gaps = [row for row in plain if row.goal.statistic == "gap" and row.over_level is not None]
    floors = [row for row in plain if row.goal.statistic == "mean" and row.upper[0] == math.inf]
    if len(gaps) + len(floors) < len(rows) or program.corners is None:
        return None
    several = any(single_groups(row.goal.shares) is None for row in (*gaps, *floors))
    if several or (rows and not program.sees_group):
        return None
    if len(gaps) > 1 or len({row.goal.j for row in plain}) > 1:
        return None
    return OneGap(program, gaps, floors, program.corners)


def unasked(program: Program) -> tuple[Floats, float] | None:
    """Where nothing is asked: of the policies of least cost the one nearest to the baseline's decisions, and its cost.

    None where corners cannot be listed.
    """
    corners = program.corners
    if corners is None:
        return None
    cost, n, chosen = program.corner_costs, corners.n_corners, []
    for part in corners.blocks:
        here = cost[part]
        ties = np.flatnonzero(here <= here.min(axis=1, keepdims=True) + TIE)
        order = np.lexsort((program.corner_changes[part].take(ties), ties // n))
        chosen.append(ties[order[np.flatnonzero(np.diff(ties // n, prepend=-1))]] % n)
    best = np.concatenate(chosen)
    mixed = Mixed(best, best, np.zeros(len(best)))
    return program.policy(corners.tables(mixed)), float(cost[np.arange(len(best)), best].sum())


class OneGap:
    """The policies of a program whose rows are at most one gap between groups, and floors under the same means.

    Means are scaled as in the program, and relative to the middle of what no decision changes.
    """

    def __init__(
        self, program: Program, gaps: Sequence[Linear], floors: Sequence[Linear], corners: Corners
    ) -> None:
        self.program, self.corners, self.floors = program, corners, floors
        self.gap, rows = gaps[0] if gaps else None, [*gaps, *floors]
        self.j = rows[0].goal.j if rows else 0
        n_groups = len(corners.occupied)
        self.compared = np.zeros(n_groups, dtype=bool)
        if self.gap is not None:
            self.compared[single_groups(self.gap.goal.shares)] = True
        constants = program.constants[:n_groups, self.j] if rows else np.zeros(n_groups)
        self.centre = float(constants[self.compared].mean()) if self.gap is not None else 0.0
        self.scale = float(program.scales[self.j]) if rows else 1.0
        self.owner, self.cost = corners.owner, program.corner_costs
        self.m, self.unit = np.zeros_like(self.cost), np.ones(n_groups)
        begins = np.where(np.diff(self.owner, prepend=-1) > 0, (constants - self.centre)[self.owner], 0.0)
        for part in corners.blocks if rows else ():
            moves = program.choice_means[part, ..., self.j]
            size = np.abs(moves)
            # Groups that are compared have one unit; else a floor binds at the stakes of its own group.
            if self.gap is None:
                self.unit[part] = size.max(axis=(1, 2))
            small = SMALL * self.unit
            moves = np.where(size > small[part, None, None], moves, 0.0)
            self.m[part] = _told_apart(corners.each(moves), small[self.owner[part], None])
            self.m[part] += begins[part, None]
        self.hulls = Hulls.of(self.m, self.cost, self.owner, n_groups)
        self.floor = np.full(n_groups, -math.inf)
        for row in self.floors:
            z = _group_of(row)
            self.floor[z] = max(self.floor[z], float(row.lower[0]) / self.scale - self.centre)

    @property
    def width(self) -> float:
        """The gap that is allowed, scaled."""
        return math.inf if self.gap is None else float(self.gap.upper[0]) / self.scale

    @property
    def feasible(self) -> bool:
        """Whether some policy meets the rows."""
        if self.floors:
            noise = float(self.program.rounding[self.j]) / self.scale
            if (self.floor > self.hulls.high + np.maximum(self.program.slack * self.unit, noise)).any():
                return False
        return self.gap is None or self.width >= self.least - self.program.slack

    @property
    def least(self) -> float:
        """The least gap, scaled."""
        return float(self.course.gap[-1])

    @cached_property
    def course(self) -> Course:
        """The whole frontier."""
        hulls, z = self.hulls, np.flatnonzero(self.compared)
        floor = np.minimum(self.floor, hulls.high)
        low, high = hulls.flat()
        low, high = np.maximum(low, floor)[z], np.maximum(high, floor)[z]
        tos, slopes, ups = [], [], []
        ends = float(hulls.high[z].min()), float(np.maximum(hulls.low, floor)[z].max())
        starts = float(high.min()), float(low.max())
        for sign, end in zip((1.0, -1.0), ends, strict=True):
            at, steeper = self._kinks(sign, floor)
            before = sign * at < sign * end
            at, steeper = at[before], steeper[before]
            order = np.argsort(sign * at, kind="stable")
            slopes.append(steeper[order].cumsum())
            tos.append(np.append(at[order][1:], end)[: len(order)])
            ups.append(np.full(len(order), sign > 0))
        # A gap that is nothing but rounding is none: closing it has no price.
        noise = float(self.program.rounding[self.j]) / self.scale
        return _merged(*starts, *(np.concatenate(part) for part in (tos, slopes, ups)), noise=noise)

    def _kinks(self, sign: float, floor: Floats) -> tuple[Floats, Floats]:
        """Where U (``sign`` 1) or V (-1) becomes steeper, and by how much."""
        hulls, group = self.hulls, self.hulls.group
        edge = np.flatnonzero(np.isfinite(hulls.slope) & self.compared[group])
        slope, start, end = hulls.slope[edge], hulls.m[edge], hulls.m[edge + 1]
        held = (sign * slope > 0.0) & (end > floor[group[edge]])
        edge, slope, start, end = edge[held], np.abs(slope[held]), start[held], end[held]
        # The edge that is passed before, if there is one: the one to the left for U, to the right for V.
        same = (group[edge][1:] == group[edge][:-1]) & (np.diff(edge) == 1)
        before = np.zeros(len(edge))
        if sign > 0:
            before[1:][same] = slope[:-1][same]
            return np.maximum(start, floor[group[edge]]), slope - before
        before[:-1][same] = slope[1:][same]
        return end, slope - before

    def frontier(self) -> tuple[list[float], list[float]]:
        """Gaps of all breakpoints as parts of the one that is asked for, the least first, and what is minimised."""
        program, course = self.program, self.course
        rise = self.objective(self.place(course.gap[0])) + course.rise
        values = program.least_loss + program.cost_scale * rise
        return (course.gap / self.width)[::-1].tolist(), values[::-1].tolist()

    def price(self, place: Place) -> dict[str, float]:
        """Loss per unit of each requirement."""
        unit, prices = self.program.cost_scale / self.scale, dict[str, float]()
        if self.gap is not None:
            prices[self.gap.name] = place.price * unit
        left = self.held(place).floored.copy()
        for row in sorted(self.floors, key=lambda row: -float(row.lower[0])):
            z = _group_of(row)
            prices[row.name] = prices.get(row.name, 0.0) + float(left[z]) * unit
            left[z] = 0.0  # of two floors of a group the higher one holds
        return prices

    def held(self, place: Place) -> Held:
        """Worth of means that goes with a place."""
        hulls, floor = self.hulls, np.minimum(self.floor, self.hulls.high)
        t, u = (np.full(len(floor), level) for level in (place.t, place.u))
        left, right = hulls.slopes(np.clip(t, hulls.low, hulls.high))
        least = np.where(t > floor, np.maximum(left, 0.0), 0.0)
        most = np.where(t >= floor, np.maximum(right, 0.0), 0.0)
        inside = self.compared & (t >= hulls.low)
        lifted = _filled(np.where(inside, least, 0.0), np.where(inside, most, 0.0), place.price)
        left, right = hulls.slopes(np.clip(u, hulls.low, hulls.high))
        inside = self.compared & (u <= hulls.high)
        least, most = np.maximum(-right, 0.0), np.where(u > floor, np.maximum(-left, 0.0), math.inf)
        lowered = _filled(np.where(inside, least, 0.0), np.where(inside, most, 0.0), place.price)
        # A floor holds whom nothing else does.
        at_floor = (self.means(place) <= floor) & (floor > hulls.low)
        left, right = hulls.slopes(np.where(at_floor, floor, hulls.low))
        alone = np.where(np.isfinite(right) & ~(self.compared & (t == floor)), right, left)
        floored = np.where(at_floor, np.maximum(alone - lifted + lowered, 0.0), 0.0)
        return Held(lifted, lowered, floored)

    def place(self, width: float) -> Place:
        """The levels at a gap, scaled, or at the least one if rounding keeps it out of reach."""
        if self.gap is None:
            return Place(-math.inf, math.inf, 0.0)
        return self.course.at(max(width, self.least))

    def means(self, place: Place) -> Floats:
        """Means of the groups there, one of those that cost least."""
        hulls = self.hulls
        low, high = self._sides(place)
        return np.clip(np.clip(hulls.flat()[0], low, high), hulls.low, hulls.high)

    def _sides(self, place: Place) -> tuple[Floats, Floats]:
        low = np.maximum(np.where(self.compared, place.t, -math.inf), self.floor)
        return low, np.where(self.compared, np.maximum(place.u, low), math.inf)

    def objective(self, place: Place) -> float:
        """What the program minimises, at these levels."""
        first, second, share = self.hulls.mixed(self.means(place))
        rows = np.arange(len(first))
        return float(((1.0 - share) * self.cost[rows, first] + share * self.cost[rows, second]).sum())

    def policy(self, place: Place) -> Floats:
        """Of the policies that cost least there, the one nearest to the baseline's decisions."""
        mixed = self.hulls.mixed(self.means(place))
        if self.program.corner_changes.any():
            mixed = self._settled(place, mixed)
        return self.program.policy(self.corners.tables(mixed))

    def _settled(self, place: Place, best: Mixed) -> Mixed:
        """A second stage like the first, with changes for costs, among the corners that cost no more."""
        held = self.held(place)
        lifted, lowered, floored = (part > TIE for part in held)
        # Relative to a corner that costs least: a steep price times a mean far away would leave no digit.
        at_best, worth = (np.arange(len(self.m)), best.first), held.worth[self.owner]
        base, middle = self.cost[at_best], self.m[at_best]
        allowed = np.empty(self.m.shape, dtype=bool)
        for part in self.corners.blocks:
            reduced = self.cost[part] - base[part, None]
            reduced -= worth[part, None] * (self.m[part] - middle[part, None])
            allowed[part] = reduced <= reduced.min(axis=1, keepdims=True) + TIE
        # Who is held stays on its edge, whatever rounding says of a steep one.
        stays = (lifted | lowered | floored)[self.owner]
        for corner, share in ((best.first, 1.0 - best.share), (best.second, best.share)):
            edge = np.flatnonzero(stays & (share > SMALL))
            allowed[edge, corner[edge]] = True
        hulls = Hulls.of(self.m, self.program.corner_changes, self.owner, len(self.floor), allowed)
        pins = _Pins(self.compared, lifted, lowered, floored, self.floor, place.u - place.t)
        return hulls.mixed(pins.means(hulls, place))


@dataclass(frozen=True, eq=False)
class _Pins:
    """Who has to stay at the lower level, at the upper one, or at a floor; the others between, ``width`` apart."""

    compared: Truths
    lifted: Truths
    lowered: Truths
    floored: Truths
    floor: Floats
    width: float

    def means(self, hulls: Hulls, place: Place) -> Floats:
        """Means of least cost; the levels are those of the place, or wherever else they cost less."""
        first, last = hulls.flat()
        own = np.maximum(first, self.floor)
        near = not self.compared.any() or np.ptp(own[self.compared]) <= self.width
        if near and not (self.lifted | self.lowered).any():
            # Nobody is in anybody's way, however wide the gap: all are at a corner, and nothing is drawn.
            return np.clip(np.where(self.floored, self.floor, own), hulls.low, hulls.high)
        t = self._level(hulls, place.t) if self.compared.any() else place.t
        u = place.u if t == place.t else t + self.width
        low = np.maximum(np.where(self.compared, t, -math.inf), self.floor)
        high = np.where(self.compared, np.maximum(u, low), math.inf)
        free = np.where((first >= low) | (last < low) | (last > high), first, last)
        means = np.clip(free, low, high)
        means = np.where(self.lifted, t, np.where(self.lowered, u, means))
        return np.clip(np.where(self.floored, self.floor, means), hulls.low, hulls.high)

    def _level(self, hulls: Hulls, t: float) -> float:
        """Where the lower level costs least: the sum of all groups is convex in it."""
        low, high = np.maximum(hulls.low, self.floor), hulls.high
        low, high = np.where(self.floored, self.floor, low), np.where(self.floored, self.floor, high)
        start = np.where(self.lifted, low, low - self.width)[self.compared].max()
        end = np.where(self.lowered, high - self.width, high)[self.compared].min()
        if not end - start > 1e-12 * max(1.0, abs(t)):
            return t
        kinks = np.concatenate([hulls.m, hulls.m - self.width])
        kinks = np.unique(np.concatenate([[start], kinks[(kinks > start) & (kinks < end)], [end]]))
        before, after = -1, len(kinks) - 1
        while after - before > 1:
            middle = (before + after) // 2
            if self._slope(hulls, float(kinks[middle])) >= 0.0:
                after = middle
            else:
                before = middle
        return float(kinks[after])

    def _slope(self, hulls: Hulls, t: float) -> float:
        """By how much the sum of all groups rises with the lower level, just beyond it."""
        beyond = t + SMALL * max(1.0, abs(t))
        lower, upper = (
            hulls.slopes(np.full(len(hulls.low), level))[1] for level in (beyond, beyond + self.width)
        )
        low = np.maximum(hulls.low, self.floor)
        free = np.where(t >= low, np.maximum(lower, 0.0), 0.0) + np.minimum(upper, 0.0)
        found = np.where(self.lifted, lower, np.where(self.lowered, upper, free))
        return float(np.where(self.compared & ~self.floored, found, 0.0).sum())


def _group_of(row: Linear) -> int:
    """The one that a floor is under."""
    (z,) = single_groups(row.goal.shares)  # type: ignore[misc]  # it is one
    return int(z)


def _told_apart(m: Floats, small: Floats) -> Floats:
    """Means that differ by rounding alone are the same."""
    step = np.diff(m, axis=1)
    near = (np.abs(step) <= small) & (step != 0.0)
    some = np.flatnonzero(near.any(axis=1) | ~(rising(m) | rising(m[:, ::-1])))
    if not len(some):
        return m
    part, small = m[some], np.broadcast_to(small, (len(m), 1))[some]
    order = part.argsort(axis=1)
    found = np.take_along_axis(part, order, axis=1)
    apart = np.diff(found, axis=1, prepend=-math.inf) > small
    head = np.maximum.accumulate(np.where(apart, np.arange(m.shape[1]), 0), axis=1)
    np.put_along_axis(part, order, np.take_along_axis(found, head, axis=1), axis=1)
    m[some] = part
    return m


def _filled(least: Floats, most: Floats, total: float) -> Floats:
    """Numbers between these two that sum to a total, the first ones as large as can be."""
    if total <= 0.0:
        return np.zeros(len(least))
    room = np.minimum(most - least, total)
    left = total - least.sum()
    return np.asarray(least + np.clip(left - (room.cumsum() - room), 0.0, room))


def _merged(t: float, u: float, to: Floats, slope: Floats, up: Truths, *, noise: float) -> Course:
    """All pieces by slope, until no gap is left; ``to`` is the level that each leads to."""
    if u <= t + noise:
        return Course(np.empty(0), np.zeros(1), np.zeros(1), np.array([t]), np.array([t]))
    order = np.lexsort((~up, slope))
    to, slope, up = to[order], slope[order], up[order]
    lower = np.maximum.accumulate(np.append(t, np.where(up, to, -math.inf)))
    upper = np.minimum.accumulate(np.append(u, np.where(up, math.inf, to)))
    beyond = np.flatnonzero(upper <= lower)
    if len(beyond):  # cut the last piece where no gap is left
        i = int(beyond[0])
        slope, lower, upper = slope[:i], lower[: i + 1], upper[: i + 1]
        upper[i] = lower[i] = upper[i] if up[i - 1] else lower[i]
    gap = upper - lower
    passed = np.append(True, gap[1:] < gap[:-1])
    gap, lower, upper, slope = gap[passed], lower[passed], upper[passed], slope[passed[1:]]
    return Course(slope, gap, np.append(0.0, (-np.diff(gap) * slope).cumsum()), lower, upper)
