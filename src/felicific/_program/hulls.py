r"""Hulls: the least cost of every group at every mean, from the corner policies that it can mix.

A group is made of *parts*, each with some deterministic policies, its corners: a point (mean, cost) each. Where a
probability may not fall as the score rises, the group is one part, and its corners are thresholds; where every cell
decides for itself, a cell is a part. What mixtures of a part's corners reach at the least cost is the lower convex
hull of its points; for the group, these hulls are put end to end, the cheapest edges first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from felicific._typing import Codes, Floats, Truths

#: How many parts of 256 corners are looked at together.
BLOCK = 128


class Mixed(NamedTuple):
    """For every part two of its corners, and how much of the second."""

    first: Codes
    second: Codes
    share: Floats


#: A share of a corner that is none.
NONE = 1e-12


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of a program's policies, part by part.

    Where the second of two choices begins somewhere along all signals, every table is a part and its corners are
    ``thresholds``: from the first signal on, from the second on, ..., from none on. Else every signal at which somebody
    is, as ``occupied`` says, is a part, and its corners are the choices.
    """

    occupied: Truths
    n_choices: int
    thresholds: bool

    @cached_property
    def owner(self) -> Codes:
        """The table of every part."""
        return np.arange(len(self.occupied)) if self.thresholds else np.nonzero(self.occupied)[0]

    @property
    def n_corners(self) -> int:
        """How many every part has."""
        return self.occupied.shape[1] + 1 if self.thresholds else self.n_choices

    @property
    def blocks(self) -> list[slice]:
        """Parts that are looked at together: all, or so few tables that they stay in the processor's cache."""
        if not self.thresholds:
            return [slice(None)]
        return [slice(first, first + BLOCK) for first in range(0, len(self.occupied), BLOCK)]

    def each(self, tables: Floats) -> Floats:
        """What every corner adds up to, of shape (parts, corners), from tables of every choice."""
        if not self.thresholds:
            return np.asarray(tables[self.occupied])
        sums = np.zeros((len(tables), tables.shape[1] + 1))
        for block in (slice(first, first + BLOCK) for first in range(0, len(tables), BLOCK)):
            part, own = tables[block], sums[block]
            np.cumsum(part[:, ::-1, 1] - part[:, ::-1, 0], axis=1, out=own[:, -2::-1])
            own += part[:, :, 0].sum(axis=1)[:, None]
        return sums

    def tables(self, mixed: Mixed) -> Floats:
        """What every signal chooses where somebody is and every part mixes two of its corners."""
        first, second, share = (part[:, None] for part in mixed)
        share = np.where(share < NONE, 0.0, np.where(share > 1.0 - NONE, 1.0, share))
        tables = np.zeros((*self.occupied.shape, self.n_choices))
        if not self.thresholds:
            choice = np.arange(self.n_choices)
            tables[self.occupied] = (1.0 - share) * (first == choice) + share * (second == choice)
            return tables
        signal = np.arange(self.occupied.shape[1])
        for part in self.blocks:
            second_chosen = (1.0 - share[part]) * (signal >= first[part]) + share[part] * (
                signal >= second[part]
            )
            tables[part, :, 1] = second_chosen
            np.subtract(1.0, second_chosen, out=tables[part, :, 0])
        return tables


@dataclass(frozen=True, eq=False)
class Hulls:
    """The hulls of some groups, vertex after vertex, group after group.

    Attributes
    ----------
    first : array of shape (groups + 1,)
        Where the vertices of every group begin.
    m, slope : array of shape (vertices,)
        The mean, and what the next unit of it costs; infinite at a group's last vertex.
    part, right : array of shape (vertices,)
        Which part moves along the edge that begins here, and to which of its corners.
    start : array of shape (parts,)
        The corner of every part at the first vertex of its group.
    """

    first: Codes
    m: Floats
    slope: Floats
    part: Codes
    right: Codes
    start: Codes

    @classmethod
    def of(cls, m: Floats, cost: Floats, owner: Codes, n_groups: int, allowed: Truths | None = None) -> Hulls:
        """From points of shape (parts, corners), of which some are ``allowed``; parts in the order of their groups."""
        if allowed is None:  # few parts at a time, which stay in the processor's cache
            size = max(BLOCK * 256 // m.shape[1], 1)
            firsts = range(0, len(m), size)
            each = [vertices(m[one : one + size], cost[one : one + size], None) for one in firsts]
            part = np.concatenate([one + found[0] for one, found in zip(firsts, each, strict=True)])
            corner = np.concatenate([found[1] for found in each])
        else:
            part, corner = vertices(m, cost, allowed)
        x, y = m[part, corner], cost[part, corner]
        last = np.append(part[1:] != part[:-1], True)
        begins = np.append(0, np.flatnonzero(last)[:-1] + 1)
        edge = np.flatnonzero(~last)
        slope = (y[edge + 1] - y[edge]) / (x[edge + 1] - x[edge])
        if not np.array_equal(owner, np.arange(n_groups)):
            return cls._joined(part, corner, x, owner, n_groups, begins, edge, slope)
        slopes = np.full(len(x), np.inf)
        slopes[edge] = slope
        right = np.append(corner[1:], corner[-1:])
        return cls(np.append(begins, len(x)), x, slopes, part, right, corner[begins])

    @classmethod
    def _joined(
        cls,
        part: Codes,
        corner: Codes,
        x: Floats,
        owner: Codes,
        n_groups: int,
        begins: Codes,
        edge: Codes,
        slope: Floats,
    ) -> Hulls:
        """The hulls of several parts of a group, end to end."""
        order = np.lexsort((slope, owner[part[edge]]))
        edge, slope = edge[order], slope[order]
        counts = np.bincount(owner[part[edge]], minlength=n_groups)
        first = np.append(0, (counts + 1).cumsum())
        # Every group has one vertex more than edges: the last, from which nothing goes on.
        place = np.arange(len(edge)) + np.repeat(np.arange(n_groups), counts)
        n = int(first[-1])
        slopes, means = np.full(n, np.inf), np.zeros(n)
        means[first[:-1]] = np.bincount(owner, x[begins], n_groups)
        slopes[place] = slope
        means[place + 1] = x[edge + 1] - x[edge]
        for z in range(n_groups):  # one running sum over all groups would lose the digits of the small ones
            own = slice(first[z], first[z + 1])
            means[own].cumsum(out=means[own])
        moving, right = (np.zeros(n, dtype=np.intp) for _ in range(2))
        moving[place], right[place] = part[edge], corner[edge + 1]
        return cls(first, means, slopes, moving, right, corner[begins])

    @property
    def low(self) -> Floats:
        """The least mean of every group."""
        return np.asarray(self.m[self.first[:-1]])

    @property
    def high(self) -> Floats:
        """The largest mean of every group."""
        return np.asarray(self.m[self.first[1:] - 1])

    @property
    def group(self) -> Codes:
        """The group of every vertex."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def flat(self) -> tuple[Floats, Floats]:
        """From which mean to which every group costs least."""
        left, right = (
            np.add.reduceat(below, self.first[:-1]) for below in (self.slope < 0.0, self.slope <= 0.0)
        )
        return self.m[self.first[:-1] + left], self.m[self.first[:-1] + right]

    def at(self, means: Floats) -> Codes:
        """The last vertex of every group that is not beyond a mean."""
        passed = np.add.reduceat(self.m <= np.repeat(means, np.diff(self.first)), self.first[:-1])
        return self.first[:-1] + np.maximum(passed, 1) - 1

    def slopes(self, means: Floats) -> tuple[Floats, Floats]:
        """What a unit less and a unit more of every group's mean is worth there."""
        here = self.at(means)
        right = self.slope[here]
        before = np.where(here > self.first[:-1], self.slope[here - 1], -np.inf)
        return np.where(self.m[here] < means, right, before), right

    def mixed(self, means: Floats) -> Mixed:
        """The corners that every part mixes where its group has a mean."""
        here = self.at(means)
        used = np.arange(len(self.m)) < np.repeat(here, np.diff(self.first))
        first = self.start.copy()
        # Edges of a part follow each other, so the last one that is used says where it is.
        first[self.part[used]] = self.right[used]
        second, share = first.copy(), np.zeros(len(first))
        ends = here + 1 < self.first[1:]
        on, z = here[ends], np.flatnonzero(ends)
        length = self.m[on + 1] - self.m[on]
        second[self.part[on]] = self.right[on]
        share[self.part[on]] = np.clip((means[z] - self.m[on]) / np.where(length > 0, length, 1.0), 0.0, 1.0)
        return Mixed(first, second, share)


def rising(m: Floats) -> Truths:
    """Which rows never fall."""
    return np.asarray((m[:, 1:] >= m[:, :-1]).all(axis=1))


def _in_order(m: Floats, cost: Floats) -> Codes:
    """Positions of all points, part by part, by their means and where these are equal mostly by their costs."""
    n = m.shape[1]
    rises, falls = rising(m), rising(m[:, ::-1])
    if rises.all():
        return np.arange(m.size)
    place = np.arange(m.size).reshape(m.shape)
    if falls.all():
        return place[:, ::-1].ravel()
    place[falls & ~rises] = place[falls & ~rises, ::-1]
    mixed = np.flatnonzero(~(rises | falls))
    place[mixed] = mixed[:, None] * n + np.lexsort((cost[mixed], m[mixed]), axis=-1)
    return place.ravel()


def vertices(m: Floats, cost: Floats, allowed: Truths | None = None) -> tuple[Codes, Codes]:
    """Part and corner of the vertices of every part's lower hull, from left to right.

    All points that lie on or above the chord of their two neighbours go at once, until there is none: both neighbours
    are points that can be mixed, so whatever goes is no vertex.
    """
    n, xs, ys = m.shape[1], m.ravel(), cost.ravel()
    if allowed is None:
        place, part = _in_order(m, cost), np.repeat(np.arange(len(m)), n)
    else:
        place = np.flatnonzero(allowed)
        place = place[np.lexsort((ys[place], xs[place], place // n))]
        part = place // n
    x, y = xs[place], ys[place]
    while True:  # of equal means the least cost alone counts
        same = (x[1:] == x[:-1]) & (part[1:] == part[:-1])
        if not same.any():
            break
        after = y[1:] >= y[:-1]
        kept = np.append(~same | after, True)
        kept[1:] &= ~(same & after)
        held = np.flatnonzero(kept)  # by position is faster than by truth
        place, part, x, y = place.take(held), part.take(held), x.take(held), y.take(held)
    ends = np.append(part[1:] != part[:-1], True)
    while True:
        right, up = np.diff(x), np.diff(y)
        kept = ends.copy()
        kept[0] = True
        kept[1:] |= ends[:-1]
        kept[1:-1] |= up[:-1] * right[1:] < up[1:] * right[:-1]
        if kept.all():
            return place // n, place % n
        held = np.flatnonzero(kept)
        place, x, y, ends = place.take(held), x.take(held), y.take(held), ends.take(held)
