r"""Squares: the amounts of least squared error that meet rows over group means, where happiness is a straight line.

.. math::
    \min_a \; \frac{1}{W} \sum_i w_i (a_i - m_i)^2 \quad \text{s.t.} \quad \text{rows over group means of }
    \alpha_j(i) + \beta_j(i) a_i, \quad low \le a_i \le high, \quad \text{an order along bins}

for people, or for bins of them. The amounts of some duals v of the rows are known: calibrated predictions m, moved by
:math:`\sum_{zj} \lambda_{zj} \beta_j(i, z)` for :math:`\lambda` that are straight in v, made to rise by an isotonic
regression, and cut at the bounds. What is left to find is v, as few numbers as there are rows: the dual is concave and
has a slope everywhere once the rows' own sides and levels are weighed a little against those of the last round, so
that Newton's method climbs it, round after round, until amounts and rows agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.evaluate import BATCH, Straight, straight_worth
from felicific._people.user_functions import Batch
from felicific._problem.happiness import Happiness
from felicific._problem.linear import Linear
from felicific._program.hulls import vertices
from felicific._tables.groups import names_at
from felicific._typing import Codes, Floats, Truths

#: How much the sides and levels of the last round weigh, and how much its duals do, against scaled loss and rows.
SIDES, DUALS = 0.1, 1e-3

#: The least that duals weigh, where rows are hard to meet; and how far a level may be from where it is, in swings.
SLOWEST, FAR = 1e-9, 10.0

#: Rounds, steps in each, and how often a step is halved.
ROUNDS, STEPS, HALVES = 60, 200, 40

#: What the dual differs by near its top is rounding.
ROUNDING = 1e-14

#: By which shares of what they are missed by rows are eased at first, because who is stopped by a bound is told by one
#: answer for the next; and how much these people count.
EASED, STOPPED = (0.75, 0.5, 0.25, 0.1, 0.0, 0.0, 0.0), 1e-9

#: How many of the last rounds tell of what really comes of amounts.
LATELY = 6

#: Rows are met that are missed by no more, scaled; and those never will be that still are missed by more.
MET, MISSED = 1e-11, 1e-7


@dataclass(frozen=True, eq=False)
class AmountWorth:
    """Worth of the amount 0, of one more unit, and who is counted; each of shape (n, slots, measures).

    There is one slot, everybody's own group, or one for each group: all three are then times how likely it is.
    """

    start: Floats
    slope: Floats
    among: Floats

    def pushed(self, weights: Floats, codes: Codes) -> Floats:
        """How far weights of shape (groups, measures) move everybody's amount."""
        moved = np.zeros(len(self.slope))
        if self.slope.shape[1] == 1:
            for j in np.flatnonzero(weights.any(axis=0)).tolist():
                moved += weights[codes, j] * self.slope[:, 0, j]
            return moved
        for z, j in np.argwhere(weights).tolist():
            moved += weights[z, j] * self.slope[:, z, j]
        return moved

    def total(self, codes: Codes, weight: Floats, n_groups: int, amounts: Floats) -> Floats:
        """Sums of what amounts are worth, of shape (groups, measures)."""
        return self._summed(codes, weight, n_groups, self.start + self.slope * amounts[:, None, None])

    def counted(self, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """Weight of who is counted."""
        return self._summed(codes, weight, n_groups, self.among)

    def ends(self, codes: Codes, weight: Floats, n_groups: int, bounds: tuple[float, float]) -> list[Floats]:
        """The least and the largest sums that amounts within bounds give."""
        low, high = (self.slope * bound for bound in bounds)
        most = (np.minimum(low, high), np.maximum(low, high))
        return [self._summed(codes, weight, n_groups, self.start + part) for part in most]

    def products(self, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """Sums of products of slopes, of shape (groups, measures, groups, measures)."""
        n_measures = self.slope.shape[2]
        sums = np.zeros((n_groups, n_measures, n_groups, n_measures))
        if self.slope.shape[1] > 1:
            flat = self.slope.reshape(len(self.slope), -1)
            return np.asarray((flat * weight[:, None]).T @ flat).reshape(sums.shape)
        own = np.arange(n_groups)
        for j in range(n_measures):
            for k in range(n_measures):
                product = weight * self.slope[:, 0, j] * self.slope[:, 0, k]
                sums[own, j, own, k] = np.bincount(codes, product, n_groups)
        return sums

    def _summed(self, codes: Codes, weight: Floats, n_groups: int, numbers: Floats) -> Floats:
        """Sums of some numbers, of shape (groups, measures)."""
        if numbers.shape[1] > 1:
            return np.asarray(np.einsum("i,izj->zj", weight, numbers))
        sums = np.zeros((n_groups, numbers.shape[2]))
        for j in range(numbers.shape[2]):
            sums[:, j] = np.bincount(codes, weight * numbers[:, 0, j], minlength=n_groups)
        return sums


def worth_of_people(
    happiness: Sequence[Happiness],
    batch: Batch,
    bounds: tuple[float, float],
    groups: Sequence[Any],
    chances: Floats | None,
) -> AmountWorth:
    """Evaluate happiness for everybody; by how likely they are of each group, where ``chances`` say that."""
    n, slots = len(batch), 1 if chances is None or len(groups) == 1 else len(groups)
    shape = (n, slots, len(happiness))
    worth = AmountWorth(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for first in range(0, n, BATCH):
        part = slice(first, min(first + BATCH, n))
        some = batch.take(part)
        for j, one in enumerate(happiness):
            line: Straight | None = None
            for slot in range(slots):
                likely = np.ones(len(some)) if chances is None else chances[part, slot]
                if line is None or "group" in one.asks:
                    line = straight_worth(one, _supposed(some, groups, slot, chances), bounds)
                inside = likely if line.counted is None else likely * line.counted
                worth.start[part, slot, j] = inside * line.start
                worth.slope[part, slot, j] = inside * line.slope
                worth.among[part, slot, j] = inside
    return worth


def _supposed(batch: Batch, groups: Sequence[Any], slot: int, chances: Floats | None) -> Batch:
    """The same people, all of one group where theirs is not seen."""
    if chances is None:
        return batch
    names = names_at(tuple(groups), np.full(len(batch), slot, dtype=np.intp))
    return replace(batch, group=names, supposed=frozenset({"group"}))


@dataclass(frozen=True, eq=False)
class Squares:
    """People, or bins of them, and what amounts are worth to them.

    Attributes
    ----------
    target, weight : arrays of shape (n,)
        Calibrated predictions, and how many people they are of.
    code : array of shape (n,)
        Groups, where everybody is of one.
    n_groups : int
        How many there are.
    worth : AmountWorth
        What amounts are worth.
    origin : array of shape (measures,)
        What means are relative to.
    bounds : pair of float
        The least and the largest amount.
    runs : tuple of slice
        Bins along which amounts may not fall.
    """

    target: Floats
    weight: Floats
    code: Codes
    n_groups: int
    worth: AmountWorth
    origin: Floats
    bounds: tuple[float, float]
    runs: tuple[slice, ...] = ()

    @cached_property
    def counted(self) -> Floats:
        """Weight of who is counted, of shape (groups, measures); 1 where nobody is."""
        counted = self.worth.counted(self.code, self.weight, self.n_groups)
        return np.where(counted > 0, counted, 1.0)

    @cached_property
    def total(self) -> float:
        """Weight of everybody."""
        return float(self.weight.sum())

    @cached_property
    def swing(self) -> Floats:
        """How far amounts can move the mean of a group, by measure."""
        least, most = self.worth.ends(self.code, self.weight, self.n_groups, self.bounds)
        swing = ((most - least) / self.counted).max(axis=0, initial=0.0)
        return np.where(swing > 0, swing, 1.0)

    def means(self, amounts: Floats) -> Floats:
        """Group means of some amounts, relative to the origin."""
        total = self.worth.total(self.code, self.weight, self.n_groups, amounts)
        return np.asarray(total / self.counted - self.origin)

    def aims(self, weights: Floats) -> tuple[Floats, Codes]:
        """What weights make of calibrated predictions, and the blocks of neighbours who get the same."""
        aim, block = self.target + self.worth.pushed(weights, self.code), np.arange(len(self.target))
        for run in self.runs:
            if (np.diff(aim[run]) < 0).any():
                aim[run], block[run] = _rising(aim[run], self.weight[run], run.start)
        return aim, block

    def products(self, block: Codes, free: Truths) -> Floats:
        """Sums of products of slopes, of whoever is free to move, blocks as one."""
        worth, weight = self.worth, self.weight
        if (block != np.arange(len(block))).any():
            mass = np.bincount(block, weight, len(block))
            flat = worth.slope.reshape(len(block), -1)
            means = [np.bincount(block, weight * column, len(block)) for column in flat.T]
            shared = np.stack(means, axis=1)[block] / mass[block, None]
            worth = replace(worth, slope=shared.reshape(worth.slope.shape))
        return worth.products(self.code, weight * free, self.n_groups)

    def meets(self, rows: Sequence[Any]) -> bool:
        """Whether some amounts meet all rows."""
        return self.solve(rows) is not None

    def solve(self, rows: Sequence[Linear], near: Squared | None = None) -> Squared | None:
        """The amounts of least squared error that meet all rows; None where none do.

        The search begins where an answer for rows that are nearly the same was found, if there is one ``near``.
        """
        return _Climb(self, rows).answer(near)


def _rising(aim: Floats, mass: Floats, first: int) -> tuple[Floats, Codes]:
    """The nearest numbers that do not fall, slopes of the lower hull of running sums; and where each block begins."""
    x, y = np.append(0.0, mass.cumsum()), np.append(0.0, (mass * aim).cumsum())
    corner = vertices(x[None], y[None])[1]
    each = np.diff(corner)
    return np.repeat(np.diff(y[corner]) / np.diff(x[corner]), each), first + np.repeat(corner[:-1], each)


@dataclass(frozen=True, eq=False)
class Squared:
    """An answer.

    Attributes
    ----------
    aims : array of shape (n,)
        What people, or bins, get but for the bounds.
    weights : array of shape (groups, measures)
        How far one unit of worth moves a calibrated prediction.
    means : array of shape (groups, measures)
        Group means, relative to the origin.
    duals : list of array
        Of the rows of each requirement: the loss for one more unit of its side.
    levels : list of float
        The free level of each requirement, 0 without one.
    top : pair of arrays
        Where it was found: duals and levels, scaled.
    """

    aims: Floats
    weights: Floats
    means: Floats
    duals: list[Floats]
    levels: list[float]
    top: tuple[Floats, Floats] = field(repr=False)

    def prices(self, rows: Sequence[Linear]) -> dict[str, float]:
        """Loss per unit by which each requirement is tightened, by its name."""
        prices: dict[str, float] = {}
        for row, duals, level in zip(rows, self.duals, self.levels, strict=True):
            prices[row.name] = prices.get(row.name, 0.0) + row.price(duals, level, self.means)
        return prices


def solve_unseen(expected: AmountWorth, real: Squares, rows: Sequence[Linear]) -> Squared | None:
    """The answer for people whose group nobody sees, whose real means meet all rows; None where none was found.

    They are moved along what is expected of them. What is real of it is how far real slopes lie in these directions:
    their projection, among people whom no bound stops; each answer tells who these are for the next.
    """
    best, least = None, np.inf
    free = real.means(np.clip(real.target, *real.bounds))
    inside: Floats = np.ones(len(real.target))
    for share in EASED:
        eased = [row.relaxed(share * row.excess(free)) for row in rows]
        squares, turn = _projected(expected, real, inside)
        answer = solve_really(squares, real, eased)
        if answer is None and not share and best is None:  # what is expected may lead there all the same
            squares, turn = replace(real, worth=expected), np.eye(len(turn))
            answer = solve_really(squares, real, rows)
        if answer is None:
            continue
        amounts = np.clip(answer.aims, *real.bounds)
        lost = float(real.weight @ (amounts - real.target) ** 2)
        if not share and lost < least:
            turned = (turn @ answer.weights.ravel()).reshape(answer.weights.shape)
            best, least = replace(answer, weights=turned), lost
        inside = np.where((amounts > real.bounds[0]) & (amounts < real.bounds[1]), 1.0, STOPPED)
    return best


def _projected(expected: AmountWorth, real: Squares, inside: Floats) -> tuple[Squares, Floats]:
    """People to whom real slopes are worth what lies in expected directions; and how directions make them."""
    n, n_groups, n_measures = len(real.target), real.n_groups, real.worth.slope.shape[2]
    own = np.zeros((3, n, n_groups, n_measures))
    for k, part in enumerate((real.worth.start, real.worth.slope, real.worth.among)):
        own[k, np.arange(n), real.code] = part[:, 0]
    ways = expected.slope.reshape(n, -1)
    weighed = ways * (real.weight * inside)[:, None]
    turn = np.linalg.pinv(weighed.T @ ways, rcond=1e-12, hermitian=True) @ (weighed.T @ own[1].reshape(n, -1))
    slope = (ways @ turn).reshape(own[1].shape)
    # Where nobody is moved, means are the real ones.
    start = own[0] + (own[1] - slope) * np.clip(real.target, *real.bounds)[:, None, None]
    return replace(real, worth=AmountWorth(start, slope, own[2])), turn


def solve_really(expected: Squares, real: Squares, rows: Sequence[Linear]) -> Squared | None:
    """The answer whose real means meet all rows; None where nothing meets them.

    People are moved by what is expected of them; rows move by what really comes of it, until they are met: along what
    the last rounds tell of how the one follows the other (Anderson's way to a fixed point).
    """
    shape = real.counted.shape
    off, best, least = np.zeros(shape), None, (np.inf, np.inf)
    places: list[Floats] = []
    apart: list[Floats] = []
    last: Squared | None = None
    for _ in range(ROUNDS):
        answer = expected.solve([row.shifted(off) for row in rows], last)
        last = last if answer is None else answer
        if answer is None:  # too far: half of the way
            if not places:
                break
            off = (off + places[-1].reshape(shape)) / 2.0
            continue
        amounts = np.clip(answer.aims, *real.bounds)
        means = real.means(amounts)
        missed = max((row.excess(means, real.swing) for row in rows), default=0.0)
        # Of all that meet them, the one of least loss.
        worth = (max(missed, MET), float(real.weight @ (amounts - real.target) ** 2))
        if best is None or worth < least:
            best, least = answer, worth
        off_by = means - answer.means - off
        if expected.worth is real.worth or np.abs(off_by / real.swing).max(initial=0.0) <= MET:
            break
        places.append(off.ravel())
        apart.append(off_by.ravel())
        off = _fixed(places[-LATELY:], apart[-LATELY:]).reshape(shape)
    return None if least[0] > MISSED else best


def _fixed(places: list[Floats], apart: list[Floats]) -> Floats:
    """Where places would be no further apart from what they lead to, if that followed straight lines."""
    if len(places) < 2:
        return np.asarray(places[-1] + apart[-1])
    rises, steps = (np.diff(np.stack(part), axis=0).T for part in (apart, places))
    back = np.linalg.lstsq(rises, apart[-1], rcond=1e-10)[0]
    return np.asarray(places[-1] + apart[-1] - (steps + rises) @ back)


@dataclass(eq=False)
class _Climb:
    """The search for the duals of the rows, scaled: amounts to a range of 1, rows to a swing of 1."""

    squares: Squares
    rows: Sequence[Linear]
    v: Floats = field(init=False)
    sides: Floats = field(init=False)
    levels: Floats = field(init=False)
    slow: float = field(init=False)

    def __post_init__(self) -> None:
        rows, squares = self.rows, self.squares
        lengths = [len(row.lower) for row in rows]
        self.owner = np.repeat(np.arange(len(rows)), lengths)
        self.unit = (squares.bounds[1] - squares.bounds[0]) ** 2  # of the loss
        n, shape = len(self.owner), squares.counted.shape
        self.size = np.concatenate([np.zeros(0), *(row.sizes(squares.swing) for row in rows)])
        # The matrices of all rows over means, and over levels.
        self.over_means, self.over_levels = np.zeros((n, shape[0] * shape[1])), np.zeros((n, len(rows)))
        for k, row in enumerate(rows):
            own = np.flatnonzero(self.owner == k)
            np.add.at(self.over_means, (own[row.row], row.group * shape[1] + row.measure), row.number)
            if row.over_level is not None:
                self.over_levels[own, k] = row.over_level * self.size[own[0]]  # one unit of the first row
        self.over_means /= self.size[:, None]
        self.over_levels /= self.size[:, None]
        self.level_unit = np.array([self.size[self.owner == k][0] for k in range(len(rows))])
        self.least = np.array([row.least_level for row in rows]) / self.level_unit
        self.low, self.high = (
            np.concatenate([np.zeros(0), *(getattr(row, side) for row in rows)]) / self.size
            for side in ("lower", "upper")
        )

    def weights(self, v: Floats) -> Floats:
        """How duals move calibrated predictions."""
        squares = self.squares
        pull = (v @ self.over_means).reshape(squares.counted.shape) / squares.counted
        return np.asarray(-0.5 * self.unit * squares.total * pull)

    def look(self, v: Floats) -> tuple[float, Floats, Any]:
        """The dual at some place, its slope, and what its bend is made of."""
        squares = self.squares
        low, high = squares.bounds
        aims, block = squares.aims(self.weights(v))
        amounts, free = np.clip(aims, low, high), (aims > low) & (aims < high)
        at = self.over_means @ squares.means(amounts).ravel()
        aimed = self.sides + v / SIDES
        sides = np.clip(aimed, self.low, self.high)
        pulled = self.levels - (v @ self.over_levels) / SIDES
        levels = np.maximum(pulled, self.least)
        miss = at + self.over_levels @ levels - sides
        cost = float(squares.weight @ (amounts - squares.target) ** 2) / squares.total / self.unit
        near = ((sides - self.sides) ** 2).sum() + ((levels - self.levels) ** 2).sum()
        far = ((v - self.v) ** 2).sum()
        value = cost + float(v @ miss) + 0.5 * SIDES * near - 0.5 * self.slow * far
        slope = miss - self.slow * (v - self.v)
        inside = (aimed > self.low) & (aimed < self.high)
        return value, slope, (aims, block, free, sides, levels, inside, pulled > self.least, miss)

    def bend(self, block: Codes, free: Truths, inside: Truths, loose: Truths) -> Floats:
        """Minus the second slopes of the dual."""
        squares, n = self.squares, len(self.v)
        weigh = 1.0 / squares.counted.ravel()
        products = squares.products(block, free).reshape(len(weigh), len(weigh))
        scaled = self.over_means * weigh
        bent = 0.5 * self.unit * squares.total * (scaled @ products @ scaled.T)
        own = self.over_levels * loose
        return np.asarray(bent + own @ own.T / SIDES + np.diag(inside / SIDES) + self.slow * np.eye(n))

    def climb(self) -> Any:
        """The top of the dual around the last round."""
        v = self.v
        value, slope, state = self.look(v)
        for _ in range(STEPS):
            size = np.abs(slope).max(initial=0.0)
            if size <= 0.1 * MET:
                break
            _, block, free, _, _, inside, loose, _ = state
            way = np.linalg.solve(self.bend(block, free, inside, loose), slope)
            gain, step = float(slope @ way), 1.0
            for _ in range(HALVES):
                there = self.look(v + step * way)
                risen = there[0] - value
                # Near the top all that differs is rounding: the slope says then whether it is nearer.
                if risen > 1e-4 * step * gain or (
                    abs(risen) < ROUNDING and np.abs(there[1]).max() < 0.9 * size
                ):
                    break
                step /= 2
            else:
                break
            v = v + step * way
            value, slope, state = there
        self.v = v
        return state

    def never(self) -> bool:
        """Whether the duals prove that nothing meets the rows: no amounts lose as much as they say at least."""
        squares, v = self.squares, self.v
        aims, _ = squares.aims(self.weights(v))
        amounts = np.clip(aims, *squares.bounds)
        at = self.over_means @ squares.means(amounts).ravel()
        far = np.maximum(*((bound - squares.target) ** 2 for bound in squares.bounds))
        saved = float(squares.weight @ (far - (amounts - squares.target) ** 2)) / squares.total / self.unit
        sides = np.where(v > 0, self.high, np.where(v < 0, self.low, 0.0))
        # Levels need not be further away than means can be.
        pull = np.abs(v @ self.over_levels) * (np.abs(self.levels) + FAR)
        return bool(v @ (at - sides) - pull.sum() > saved + MISSED)

    def answer(self, near: Squared | None = None) -> Squared | None:
        """The amounts that meet all rows; None where none do."""
        squares = self.squares
        n = len(self.owner)
        self.v, self.levels, self.slow = np.zeros(n), np.zeros(len(self.rows)), DUALS
        at = self.over_means @ squares.means(np.clip(squares.target, *squares.bounds)).ravel()
        for k in range(len(self.rows)):  # the level that goes with them best
            own = (self.owner == k) & (self.over_levels[:, k] != 0)
            if own.any():
                self.levels[k] = max(float(np.mean(-at[own] / self.over_levels[own, k])), self.least[k])
        if near is not None:
            self.v, self.levels = near.top
            at = self.over_means @ near.means.ravel()
        self.sides = np.clip(at + self.over_levels @ self.levels, self.low, self.high)
        before = np.inf
        for _ in range(ROUNDS):
            aims, _, _, sides, levels, _, _, miss = self.climb()
            moved = max(
                np.abs(sides - self.sides).max(initial=0.0), np.abs(levels - self.levels).max(initial=0.0)
            )
            self.sides, self.levels = sides, levels
            missed = float(np.abs(miss).max(initial=0.0))
            if missed <= MET and moved <= 1e-9:
                break
            if missed > max(MISSED, 0.5 * before):
                if self.never():
                    return None
                self.slow = max(0.1 * self.slow, SLOWEST)
            before = missed
        if missed > MISSED:
            return None
        duals = -self.v * self.unit / self.size
        return Squared(
            aims,
            self.weights(self.v),
            squares.means(np.clip(aims, *squares.bounds)),
            [duals[self.owner == k] for k in range(len(self.rows))],
            (self.levels * self.level_unit).tolist(),
            (self.v, self.levels),
        )
