r"""Bets: limits of means, and of differences of means, of values between 0 and 1, for any distribution.

A gambler bets on :math:`x > m`: :math:`K = \prod_i (1 + \lambda_i (x_i - m))`. If the mean is at most m,
:math:`E[K] \le 1`, so K reaches 1/tail with a probability of at most ``tail`` (Markov). Stakes depend on earlier values
alone, and aim at exactly 1/tail, so that little is lost (Voracek and Orabona 2025).

From many values on, sums of powers are kept of every step, and stakes are at most 1/2. Then
:math:`\log(1 + z) \ge z - z^2/2 + z^3/3 - z^4/2`, so that the capital is never overstated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from felicific._typing import Codes, Floats, Truths

#: Values are counted in so many bins of their range; limits take the edge of a bin that errs outward.
BINS = 1 << 16

#: People of a group who are bet on at most; of more, so many are drawn.
MOST = 1 << 20

#: From so many values on, sums of powers are kept of every step.
MANY = 1 << 13

#: How often stakes are set anew.
STEPS = 64

#: The share of the capital that may be lost on one value.
BOLDNESS = 0.95

#: How many values the first guess of the spread counts for.
GUESSED = 4.0

#: Orders whose capital is averaged, so that little depends on any of them.
ORDERS = 4


#: Of every group the bins in which there are people, and how many.
Counted: TypeAlias = Sequence[tuple[Codes, Floats]]


#: People by group and bin, as sorted keys, and how many.
Keyed: TypeAlias = tuple[Codes, Floats]


def count_bins(values: Floats, codes: Codes, bounds: tuple[float, float], weight: Floats | None) -> Keyed:
    """How many people of every group lie in which bins of a range."""
    return added_up(codes * BINS + bin_of(values, *bounds), weight)


def added_up(keys: Codes, people: Floats | None) -> Keyed:
    """With one entry for every key."""
    unique, where = np.unique(keys, return_inverse=True)
    return unique, np.bincount(where, people, minlength=len(unique)).astype(np.float64)


def by_group(keyed: Keyed, n_groups: int) -> Counted:
    """The same, group by group."""
    keys, people = keyed
    edges = np.searchsorted(keys, np.arange(n_groups + 1) * BINS)
    return [
        (keys[a:b] % BINS, people[a:b]) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def bin_of(values: Floats, low: float, high: float) -> Codes:
    """The bin of every value."""
    place = ((values - low) / (high - low) * BINS + 1e-6).astype(np.intp)  # whatever the sums are relative to
    return np.clip(place, 0, BINS - 1)


def shuffled(counted: Counted) -> list[Floats]:
    """Lower edges of the values of every group, in orders that nobody chooses; each of shape (ORDERS, people).

    The orders are drawn by a generator that is seeded with a digest of all groups together: the same people have the
    same orders, however they are sorted, and no value can know its place. Groups of equal counts get different orders:
    else their values would be paired with themselves.
    """
    digest = hashlib.sha256()
    for bins, people in counted:
        digest.update(np.array([len(bins), *bins], dtype="<i8").tobytes())
        digest.update(np.rint(people).astype("<i8").tobytes())
    rng, orders = np.random.default_rng(int.from_bytes(digest.digest())), []
    for bins, people in counted:
        often = np.rint(people).astype(np.int64)
        if often.sum() > MOST:
            often = rng.multivariate_hypergeometric(often, MOST, method="marginals")
        values = np.repeat(bins / BINS, often)
        orders.append(np.stack([rng.permutation(values) for _ in range(ORDERS)]))
    return orders


def mean_limits(x: Floats, tail: float) -> tuple[float, float]:
    """Limits of the mean of values whose lower edges are x, each wrong with a probability of at most ``tail``."""
    return lower(x, tail), 1.0 - lower(1.0 - np.minimum(x + 1.0 / BINS, 1.0), tail)


def most_apart(x: Floats, y: Floats, tail: float) -> float:
    """Upper limit of the mean of x minus that of y."""
    return 1.0 - 2.0 * lower(_paired(x, y), tail)


def shows(x: Floats, y: Floats, apart: float, tail: float) -> bool:
    """Whether the mean of x is shown to be at most so much above that of y; less than it, if that is negative."""
    if apart >= 1.0:
        return True
    if apart <= -1.0:
        return False
    return bool(Game(_paired(x, y)).refutes(np.array([(1.0 - apart) / 2.0]), tail)[0])


def _paired(x: Floats, y: Floats) -> Floats:
    """(1 - x + y) / 2 of pairs: the smaller group is paired with as many blocks of the larger."""
    n = min(x.shape[-1], y.shape[-1])
    return (1.0 - _blocks(np.minimum(x + 1.0 / BINS, 1.0), n) + _blocks(y, n)) / 2.0


def lower(x: Floats, tail: float) -> float:
    """The mean is shown to be above all smaller numbers; 0 if nothing is shown."""
    if not x.size:
        return 0.0
    game = Game(x)
    return _last(lambda m: game.refutes(m, tail), float(x[0].mean()))


def _last(shown: Callable[[Floats], Truths], top: float) -> float:
    """The last number before the first that is not shown, by ever finer grids: no hole is left below it."""
    low, high = 0.0, top
    while high - low > 1e-4 * top:
        grid = np.linspace(low, high, 26)[1:-1]
        failed = np.flatnonzero(~shown(grid))
        first = int(failed[0]) if len(failed) else len(grid)
        low, high = (grid[first - 1] if first else low), (grid[first] if first < len(grid) else high)
    return float(low)


class Game:
    """Bets on values between 0 and 1, in random orders, cut into steps."""

    def __init__(self, x: Floats) -> None:
        self.n, self.orders = x.shape[-1], len(x)
        self.length = max(-(-self.n // STEPS), 1)
        self.centre = float(x[0].mean()) if self.n > MANY else None
        parts = [x[:, start : start + self.length] for start in range(0, self.n, self.length)]
        self.steps = parts if self.centre is None else [_powers(part - self.centre) for part in parts]

    def refutes(self, m: Floats, tail: float) -> Truths:
        """Whether it is refuted that the mean is at most m, for each m."""
        goal, seen = math.log(1.0 / tail), 0
        capital = np.zeros((self.orders, len(m)))
        squares = GUESSED * m * (1.0 - m) * np.ones((self.orders, 1))  # no variance around m is larger
        most = np.minimum(BOLDNESS / np.maximum(m, 1e-300), np.inf if self.centre is None else 0.5)
        for step in self.steps:
            ahead = (self.n - seen) * squares / (GUESSED + seen)
            missing = np.maximum(goal - capital, 0.0)
            stake = np.minimum(np.sqrt(2.0 * missing / np.maximum(ahead, 1e-300)), most)
            won, squared = self._won(step, stake, m)
            capital, squares, seen = capital + won, squares + squared, min(seen + self.length, self.n)
        reached = np.exp(np.minimum(capital - goal, 50.0)).mean(axis=0)
        return np.asarray(reached >= 1.0 - 1e-9)

    def _won(self, step: Floats, stake: Floats, m: Floats) -> tuple[Floats, Floats]:
        """What a step adds to the logarithm of the capital, and the squares of x - m."""
        if self.centre is None:
            away = step[:, :, None] - m
            return np.log1p(stake[:, None] * away).sum(axis=1), (away * away).sum(axis=1)
        apart = self.centre - m
        sums = [
            sum(math.comb(k, i) * step[i][:, None] * apart ** (k - i) for i in range(k + 1)) for k in range(5)
        ]
        won = stake * sums[1] - stake**2 * sums[2] / 2 + stake**3 * sums[3] / 3 - stake**4 * sums[4] / 2
        return np.asarray(won), np.asarray(sums[2])


def _powers(away: Floats) -> Floats:
    """Sums of the powers 0 to 4 along the second axis; by products, since powers are slow."""
    square = away * away
    parts = (np.ones_like(away), away, square, square * away, square * square)
    return np.stack([part.sum(axis=1) for part in parts])


def _blocks(x: Floats, count: int) -> Floats:
    """Means of so many blocks of values, which are as equal in size as can be."""
    if x.shape[-1] == count or not count:
        return x[:, :count]
    starts = np.arange(count) * x.shape[-1] // count
    return np.asarray(np.add.reduceat(x, starts, axis=-1) / np.diff(np.append(starts, x.shape[-1])))
