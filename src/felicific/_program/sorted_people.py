r"""People sorted by the price of their happiness: where one measure weighs, a policy is looked up and not summed.

A deterministic policy that weighs one happiness by :math:`\kappa_z` takes, for person i, the decision d with the least
:math:`c(d; i) - \kappa_z v(d; i)`. As :math:`\kappa_z` grows, a person moves along the lower convex hull of the own
points (v, c), from one *vertex* to the next where :math:`\kappa_z` passes the slope of the *edge* between them, the
price of that change. So the edges of a group are sorted by slope once and put into *blocks* of neighbours, and the sums
of every block are kept. What a policy does is known from the blocks that it has passed; the people of the block that it
is in the midst of, and whoever rounding leaves in doubt, decide as they do everywhere. So the policies, and but for
rounding their sums, are those of :class:`felicific._program.crowd.Ledgers`, in a small part of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np

from felicific._problem.exploration import Chance
from felicific._program.crowd import (
    AT_ONCE,
    CHOOSES,
    Choice,
    Crowd,
    Ground,
    Ledgers,
    Mixture,
    Sums,
    add_sums,
    choose,
)
from felicific._typing import Codes, Floats, Truths

#: Differences up to this, relative to the largest number that a person weighs, may count as ties: some more than do.
DOUBT = 3e-11

#: Which of two decisions that give a person the same is cheaper is in doubt up to this, relative to what they cost.
ALIKE = 1e-9

#: The largest slope that is told from others, and the largest doubt.
STEEP = 1e300

#: A block has so many edges at least.
SMALLEST = 32


def by_price(people: Ledgers) -> Ground:
    """The same people, sorted if they see one measure weigh alone in their own group; else as they are."""
    crowd = people.crowd
    weighing = [j for j, measure in enumerate(crowd.measures) if not measure.aside]
    can_sort = crowd.sees_group and len(weighing) == 1 and len(crowd.decisions) > 1
    return SortedPeople(people, weighing[0]) if can_sort else people


class SortedPeople:
    """People in memory, sorted by what a unit of measure ``j`` costs."""

    def __init__(self, people: Ledgers, j: int) -> None:
        self.people, self.j = people, j

    @property
    def crowd(self) -> Crowd:
        """Everybody."""
        return self.people.crowd

    @property
    def has_real(self) -> bool:
        """Whether what is known of people differs from what is expected of them."""
        return self.people.has_real

    @property
    def chances(self) -> tuple[Chance, ...]:
        """The chances that people keep."""
        return self.people.chances

    def totals(self) -> Sums:
        """Sums that no policy changes."""
        return self.people.totals()

    def keeping(self, chances: tuple[Chance, ...]) -> SortedPeople:
        """The same people where these chances are kept."""
        return SortedPeople(self.people.keeping(chances), self.j)

    def explored(self, mixture: Mixture) -> Sums:
        """By the words of every chance, the weight of those who have just that, group by group."""
        return self.people.explored(mixture)

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do: those that weigh no other measure are looked up."""
        known = [
            fixed == CHOOSES and not np.delete(kappa, self.j, axis=1).any() for _, kappa, fixed in choices
        ]
        others = [choice for choice, here in zip(choices, known, strict=True) if not here]
        summed = iter(self.people.columns(others))
        return [
            self._column(*choice) if here else next(summed)
            for choice, here in zip(choices, known, strict=True)
        ]

    def _column(self, alpha: float, kappa: Floats, fixed: int) -> Sums:
        found = self._path.sums(alpha, kappa)
        return cast(Sums, add_sums(found, self.people.kept)) if self.chances else found

    @cached_property
    def _path(self) -> _Path:
        return _Path.of(self.people, self.j)


class _Blocks(NamedTuple):
    """Neighbours among the sorted edges, of one group and one sign each.

    ``order`` holds the edges, and ``first`` where each block begins among them; every block has its ``group``, and its
    least and largest slope.
    """

    order: Codes
    first: Codes
    group: Codes
    low: Floats
    high: Floats

    @classmethod
    def of(cls, slope: Floats, group: Codes, n_groups: int) -> _Blocks:
        """From the slopes of edges, not a number where there is none, and their groups."""
        short = np.where(np.isnan(slope), n_groups, group).astype(np.int16 if n_groups < 1 << 15 else np.intp)
        edges = np.argsort(short, kind="stable")  # short numbers are sorted by their digits
        ends = np.searchsorted(short[edges], np.arange(n_groups + 1))
        size = max(SMALLEST, math.isqrt(int(ends[-1]) // n_groups))
        first = []
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            own = slope[edges[start:end]]
            order = np.argsort(own)
            edges[start:end] = edges[start:end][order]
            above = start + int((own < 0).sum())
            first += [*range(start, above, size), *range(above, end, size)]
        edges, begin = edges[: ends[-1]], np.array([*first, ends[-1]])
        low, high = slope[edges[begin[:-1]]], slope[edges[begin[1:] - 1]]
        return cls(edges, begin, group[edges[begin[:-1]]], low, high)


@dataclass(frozen=True, eq=False)
class _Path:
    """Where everybody goes as happiness weighs more, and what that adds to the sums.

    Attributes
    ----------
    vertex : array of shape (n, K)
        Decisions at the vertices of every person, from the least happiness on; the last one is repeated.
    block : array of shape (n, K - 1)
        The block of every edge; one beyond the last where there is no edge.
    start : array of shape (n,)
        Decisions where all edges of a slope below 0 are passed, and no other.
    doubt : array of shape (2, blocks)
        How far from a slope there may be ties: one number, and another times the weight of happiness.
    base, added : Sums
        Of everybody at the start, by group, and of passing the edges of every block, by block.
    """

    people: Ledgers
    j: int
    vertex: Codes
    block: Codes
    start: Codes
    blocks: _Blocks
    doubt: Floats
    base: Sums
    added: Sums

    @classmethod
    def of(cls, people: Ledgers, j: int) -> _Path:
        """Sort people by what measure ``j`` costs them."""
        n, k = people.cost.shape
        vertex, start = np.zeros((n, k), dtype=np.intp), np.zeros(n, dtype=np.intp)
        slope, doubt = np.empty((n, k - 1)), np.empty((2, n))
        for begin in range(0, n, AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            told = people.plug_in.value[some, :, 0, j], people.cost[some]
            vertex[some], slope[some] = _hulls(*told)
            doubt[:, some] = _doubts(*told)
            start[some] = _started(vertex[some], slope[some], *told)
        group = people.crowd.group
        blocks = _Blocks.of(
            slope.ravel(), np.repeat(group, k - 1) if k > 2 else group, len(people.crowd.groups)
        )
        sizes = np.diff(blocks.first)
        block = np.full(slope.size, len(sizes), dtype=np.intp)
        block[blocks.order] = np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)
        block = block.reshape(slope.shape)
        rows = blocks.order // (k - 1) if k > 2 else blocks.order
        first = blocks.first[:-1]
        worst = np.array([np.maximum.reduceat(one[rows], first) if len(first) else one[:0] for one in doubt])
        base = reduce(add_sums, (part.done(start[some]) for some, part in people.each(people.free)))
        added = _added(people, vertex, block, len(sizes))
        return cls(people, j, vertex, block, start, blocks, worst, base, added)

    def sums(self, alpha: float, kappa: Floats) -> Sums:
        """What the policy of these weights does."""
        passed, touched = self._place(alpha, kappa[:, self.j])
        found = {}
        for name, base in self.base.items():
            each = self.added[name].T * passed
            sums = [np.bincount(self.blocks.group, one, minlength=len(base)) for one in np.atleast_2d(each)]
            found[name] = base + np.array(sums).T.reshape(base.shape)
        if touched.any():
            found = cast(Sums, add_sums(found, self._midst(alpha, kappa, passed, touched)))
        return found

    def _place(self, alpha: float, weight: Floats) -> tuple[Floats, Truths]:
        """Which blocks a policy passes on from the start, 1 up and -1 down; and in which it stops, or may do."""
        blocks = self.blocks
        level = weight[blocks.group]
        if alpha > 0:
            level = level / alpha
            with np.errstate(over="ignore"):
                doubt = self.doubt[0] + np.abs(level) * self.doubt[1]
        else:  # happiness alone decides, and the loss only where it has no weight
            doubt = np.where(level == 0.0, self.doubt[0], np.where(self.doubt[1] >= 1.0, math.inf, 0.0))
            level = np.where(level == 0.0, 0.0, np.copysign(math.inf, level))
        touched = (blocks.low - doubt <= level) & (level <= blocks.high + doubt)
        up, down = (blocks.low >= 0) & (level > blocks.high), (blocks.high < 0) & (level < blocks.low)
        return np.where(touched, 0.0, 1.0 * up - 1.0 * down), touched

    def _midst(self, alpha: float, kappa: Floats, passed: Floats, touched: Truths) -> Sums:
        """What is still to be added: of everybody with an edge in some blocks, what they do less what was counted."""
        first, edges = self.blocks.first, self.blocks.order
        inside = [edges[first[b] : first[b + 1]] for b in np.flatnonzero(touched)]
        rows = np.unique(np.concatenate(inside) // self.block.shape[1])
        part = self.people.some(rows, self.people.free)
        found = _less(part.done(part.decided(alpha, kappa, CHOOSES)), part.done(self.start[rows]))
        passed = np.append(passed, 0.0)
        for r in range(self.block.shape[1]):
            way = passed[self.block[rows, r]]
            some = np.flatnonzero(way)
            if len(some):  # further edges of the same people
                moved = part.some(some, replace(part.crowd, weight=part.crowd.weight * way))
                then, before = (moved.done(self.vertex[rows[some], v]) for v in (r + 1, r))
                found = _less(found, _less(then, before))
        return found


def _less(left: Sums, right: Sums) -> Sums:
    return {name: left[name] - right[name] for name in left}


def _added(people: Ledgers, vertex: Codes, block: Codes, n_blocks: int) -> Sums:
    """What it adds to the sums to pass the edges of every block; who has no edge is put into one more, and left out."""
    names, found = tuple(range(n_blocks + 1)), []
    for r in range(block.shape[1]):
        crowd = replace(people.free, group=block[:, r], groups=names)
        found += [
            _less(part.done(vertex[some, r + 1]), part.done(vertex[some, r]))
            for some, part in people.each(crowd)
        ]
    return {name: sums[:n_blocks] for name, sums in reduce(add_sums, found).items()}


def _hulls(value: Floats, cost: Floats) -> tuple[Codes, Floats]:
    """Vertices of everybody's lower hull, from the least happiness on, and the slopes between them.

    Each vertex is followed by the decision with more happiness to which the slope is the least.
    """
    decisions = range(value.shape[1])
    here = reduce(np.minimum, [value[:, d] for d in decisions])
    costs = reduce(np.minimum, [np.where(value[:, d] == here, cost[:, d], np.inf) for d in decisions])
    vertex, slope = np.zeros(value.shape, dtype=np.intp), np.full((len(value), value.shape[1] - 1), math.nan)
    for d in reversed(decisions):
        vertex[(value[:, d] == here) & (cost[:, d] == costs), 0] = d
    before = np.full(len(value), -STEEP)
    for r in decisions[1:]:
        best, to = np.full(len(value), np.inf), vertex[:, r - 1].copy()
        for d in decisions:
            more = value[:, d] - here
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                steep = np.where(
                    more > 0, np.minimum(np.maximum((cost[:, d] - costs) / more, before), STEEP), np.inf
                )
            less = steep < best
            best, to = np.where(less, steep, best), np.where(less, d, to)
        vertex[:, r], slope[:, r - 1] = to, np.where(best < np.inf, best, math.nan)
        rows = np.arange(len(to))
        here, costs, before = value[rows, to], cost[rows, to], np.minimum(best, STEEP)
    return vertex, slope


def _doubts(value: Floats, cost: Floats) -> Floats:
    """How far from a slope everybody's decision is in doubt: a number, and another times the weight of happiness."""
    decisions = range(value.shape[1])
    apart, alike = np.full(len(value), np.inf), np.zeros(len(value), dtype=bool)
    largest = [reduce(np.maximum, [np.abs(table[:, d]) for d in decisions]) for table in (cost, value)]
    for d, e in combinations(decisions, 2):
        more = np.abs(value[:, d] - value[:, e])
        apart = np.where(more > 0, np.minimum(apart, more), apart)
        if len(decisions) > 2:
            alike |= (more == 0) & (np.abs(cost[:, d] - cost[:, e]) <= ALIKE * largest[0])
    with np.errstate(over="ignore"):
        return np.where(alike, STEEP, np.minimum([DOUBT * size / apart for size in largest], STEEP))


def _started(vertex: Codes, slope: Floats, value: Floats, cost: Floats) -> Codes:
    """Decisions of those who have passed all slopes below 0; who has none at all always decides alike."""
    rows = np.arange(len(vertex))
    start: Codes = vertex[rows, (slope < 0).sum(axis=1)]
    fixed = np.flatnonzero(np.isnan(slope[:, 0]))
    start[fixed] = choose(1.0, np.zeros((1, 1)), cost[fixed], value[fixed, :, None, None])
    return start
