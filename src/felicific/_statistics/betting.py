r"""Betting: limits of a mean that hold for any distribution within known bounds, at any size of the sample.

A gambler who bets against the mean being m ends with :math:`K(m) = \prod_i (1 \pm \lambda_i (x_i - m))`, which is 1 on
average if it is m, so 1/tail or more with probability at most ``tail`` (Markov). The same holds for the average of
several gamblers. (Waudby-Smith and Ramdas 2024, hedged capital with predictable plug-in bets.)

The bets depend on earlier values alone, so the values need an order that has nothing to do with them. Fortunes on the
way are not looked at: they would depend on the order so much that one order, the same for all samples of equal values,
covers 89 % instead of 95 for some rates.

Of many values the order is one of blocks, and a bet is the same for all values of a block. With sums of powers of the
values in every block, a fortune is then a series, whose rest is bounded and taken off: limits err outward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Codes, Floats

#: Orders in which values are looked at; the gamblers' fortunes are averaged.
ORDERS = 4

#: From so many values on they are looked at in so many blocks; fewer are faster one by one.
MANY, BLOCKS = 20_000, 256

#: Powers of which there are sums, even numbers: few where they leave less than this, else more of them.
FEW_POWERS, POWERS, LEFT = 4, 8, 1e-5

#: The largest bet for which a series of powers is used.
LARGEST = 0.25

#: Rounding of a sum of logarithms, of each value, which is taken off too.
ROUNDING = 1e-14

#: What a gambler wins: whether against a mean of m it is enough.
Wins = Callable[[float], bool]


class Betting:
    """Bets on the mean of some values, which are put into order once, however often limits are asked for."""

    def __init__(self, values: Floats, lower: float, upper: float) -> None:
        self._values, self._lower, self._upper = values, lower, upper
        self._sums: Sums | None = None

    def limits(self, tail: float) -> tuple[float, float]:
        """Limits of the mean, each of them wrong with a probability of at most ``tail``."""
        if len(self._values) == 0:
            return self._lower, self._upper
        span = self._upper - self._lower
        many = len(self._values) >= MANY
        below, above = self._by_blocks(tail) if many else _one_by_one(self._shares, tail)
        return self._lower + span * below, self._lower + span * above

    @property
    def _shares(self) -> Floats:
        """The values as numbers from 0 to 1."""
        return np.asarray((self._values - self._lower) / (self._upper - self._lower))

    def _by_blocks(self, tail: float) -> tuple[float, float]:
        """Limits by bets that change from block to block; of the blocks only their sums are kept."""
        placed: Placed | None = None
        if self._sums is None:
            placed = Placed.of(self._shares)
            self._sums = Sums.of(placed)
        return Blocks.of(
            self._sums, tail, lambda: Placed.of(self._shares) if placed is None else placed
        ).limits()


def betting_limits(values: Floats, tail: float, lower: float, upper: float) -> tuple[float, float]:
    """Limits of a mean, each of them wrong with a probability of at most ``tail``."""
    return Betting(values, lower, upper).limits(tail)


def _one_by_one(x: Floats, tail: float) -> tuple[float, float]:
    """Limits by bets that change with every value."""
    n = len(x)
    x = np.clip(x[hashed_orders(x)], 0.0, 1.0)
    count = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x, axis=1)) / (count + 1)
    spread = (0.25 + np.cumsum((x - mean) ** 2, axis=1)) / (count + 1)
    before = np.concatenate([np.full((ORDERS, 1), 0.25), spread[:, :-1]], axis=1)
    bet = np.sqrt(2.0 * math.log(1.0 / tail) / (n * before))

    def won(x: Floats) -> Wins:
        return lambda m: _enough(np.log1p(np.minimum(bet, 0.5 / m) * (x - m)).sum(axis=1), tail)

    return _break_even(won(x), float(x[0].mean())), 1.0 - _break_even(
        won(1.0 - x), float((1.0 - x[0]).mean())
    )


def _enough(fortune: Floats, tail: float) -> bool:
    """Whether gamblers of these logarithms win 1/tail on average."""
    logs = fortune.tolist()
    largest = max(logs)
    mean = sum(math.exp(one - largest) for one in logs) / len(logs)
    return bool(largest + math.log(mean) >= math.log(1.0 / tail))


def _break_even(wins: Wins, mean: float) -> float:
    """Largest m that gamblers on larger values win against, up to the mean of the values; 0 if there is none.

    The fortune falls as m rises, so the mean found by halving is on the safe side.
    """
    left, right = 0.0, mean
    if right <= 0 or not wins(1e-12):
        return 0.0
    for _ in range(40):
        middle = (left + right) / 2.0
        left, right = (middle, right) if wins(middle) else (left, middle)
        if right - left <= 1e-9 + 1e-6 * (mean - left):
            break
    return left


# ---------------------------------------------------------------------------------------------------------
# Orders


def hashed_orders(x: Floats) -> Codes:
    """Orders of numbers that depend on which there are and not on their places; of shape (orders, n).

    The key of a value is a mix of its leading 30 bits and of how many with the same bits come before it in sorted
    order: equal values are told apart, and so each order is as good as drawn at random.
    """
    sorted_rows = np.argsort(x, kind="stable")
    return np.array([sorted_rows[np.argsort(keys, kind="stable")] for keys in _keys(x[sorted_rows])])


def _keys(x: Floats) -> Iterator[NDArray[np.uint64]]:
    """For one order after the other, the key of each of some sorted numbers."""
    bits = np.rint(x * 2.0**30).astype(np.int64).view(np.uint64)
    new = np.concatenate([[True], bits[1:] != bits[:-1]])
    starts = np.flatnonzero(new)
    place = np.arange(len(bits)) - np.repeat(starts, np.diff(np.append(starts, len(bits))))
    keys = _mixed(bits) ^ place.view(np.uint64)
    for _ in range(ORDERS):
        keys = _mixed(keys)
        yield keys


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Steele, Lea and Flood's (2014) SplitMix64, a bijection of 64 bits."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    moved = bits >> np.uint64(30)
    bits ^= moved
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= np.right_shift(bits, np.uint64(27), out=moved)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= np.right_shift(bits, np.uint64(31), out=moved)
    return bits


# ---------------------------------------------------------------------------------------------------------
# Blocks


def block_of(keys: NDArray[np.uint64]) -> Codes:
    """The block of every key: b of B ends at ((b + 1) / B) ** 2 of them, so that the first ones are small."""
    # Of 256 blocks the edges are whole numbers of the two leading bytes; no root of these is rounded up to a block.
    leading = (keys >> np.uint64(48)).astype(np.float32)
    return np.asarray(np.sqrt(leading, out=leading).astype(np.intp))


@dataclass(frozen=True, eq=False)
class Placed:
    """Numbers from 0 to 1, sorted; and in every order, the block of each."""

    x: Floats
    block: list[Codes]

    @classmethod
    def of(cls, x: Floats) -> Placed:
        """Put numbers into order."""
        x = np.sort(x)
        block = [block_of(keys) for keys in _keys(x)]
        return cls(np.clip(x, 0.0, 1.0), block)

    def power_sums(self, centre: float, powers: range) -> Floats:
        """Sums of powers of distances over every block, in every order; of shape (orders, blocks, powers)."""
        sums, away = np.empty((len(self.block), BLOCKS, len(powers))), self.x - centre
        power = away**powers.start if powers.start else None
        for p in range(len(powers)):
            for o, places in enumerate(self.block):
                sums[o, :, p] = np.bincount(places, power, minlength=BLOCKS)
            power = away if power is None else power * away
        return sums

    def values(self) -> list[tuple[Codes, Floats, Floats]]:
        """In every order, blocks, their different values, and how often there is each."""
        new = np.concatenate([[True], self.x[1:] != self.x[:-1]])
        held, number = self.x[new], np.cumsum(new) - 1
        if BLOCKS * len(held) > len(self.x):
            return [(places, self.x, np.ones(len(self.x))) for places in self.block]
        # Of few different values it is enough to know how often there is each.
        blocks, values = np.repeat(np.arange(BLOCKS), len(held)), np.tile(held, BLOCKS)
        counts = [np.bincount(places * len(held) + number, minlength=len(blocks)) for places in self.block]
        return [(blocks, values, often.astype(np.float64)) for often in counts]


@dataclass(frozen=True, eq=False)
class Sums:
    """What is kept of numbers in blocks: how many there are, their mean, and sums of powers of distances from it."""

    n: int
    centre: float
    few: Floats

    @classmethod
    def of(cls, placed: Placed) -> Sums:
        """Sum up the blocks."""
        centre = float(placed.x.mean())
        return cls(len(placed.x), centre, placed.power_sums(centre, range(FEW_POWERS + 1)))

    def bets(self, tail: float) -> Floats:
        """What is bet on every block, by the sums over those before it."""
        before = np.concatenate(
            [np.zeros((len(self.few), 1, 3)), self.few[:, :-1, :3].cumsum(axis=1)], axis=1
        )
        count, first, second = np.moveaxis(before, 2, 0)
        mean = (0.5 - self.centre + first) / (count + 1.0)  # from the centre
        spread = (0.25 + np.maximum(second - 2.0 * mean * first + count * mean**2, 0.0)) / (count + 1.0)
        return np.asarray(np.sqrt(2.0 * math.log(1.0 / tail) / (self.n * spread)))


@dataclass(frozen=True, eq=False)
class Blocks:
    """Bets on values in blocks, in several orders.

    Attributes
    ----------
    tail : float
        How likely a limit may be wrong.
    centre : float
        Powers are of distances from it.
    sums : array of shape (orders, blocks, powers + 1)
        Of the powers, beginning with the number of values.
    bet : array of shape (orders, blocks)
        What is bet, by what earlier blocks show.
    placed : callable
        The values themselves; only large bets look at them.
    """

    tail: float
    centre: float
    sums: Floats
    bet: Floats
    placed: Callable[[], Placed]

    @classmethod
    def of(cls, sums: Sums, tail: float, placed: Callable[[], Placed]) -> Blocks:
        """Find the bets, and sum up more powers where few leave too much."""
        bet, powers = sums.bets(tail), sums.few
        rest = _rest(powers[:, :, FEW_POWERS], np.minimum(bet, LARGEST), FEW_POWERS)
        if float(rest.sum(axis=1).max()) > LEFT:
            more = placed().power_sums(sums.centre, range(FEW_POWERS + 1, POWERS + 1))
            powers = np.concatenate([powers, more], axis=2)
        return cls(tail, sums.centre, powers, bet, placed)

    def limits(self) -> tuple[float, float]:
        """Limits of the mean of numbers from 0 to 1."""
        return (
            _break_even(lambda m: _enough(self.fortune(m), self.tail), self.centre),
            1.0
            - _break_even(lambda m: _enough(self.fortune(m, mirrored=True), self.tail), 1.0 - self.centre),
        )

    def fortune(self, m: float, *, mirrored: bool = False) -> Floats:
        """At least what gamblers on larger values win, as logarithms, one of each order; or ``mirrored``, 1 - x."""
        away = (1.0 - self.centre if mirrored else self.centre) - m
        moved = _binomials(away, self.sums.shape[2] - 1)
        if mirrored:
            moved[1::2] *= -1.0
        won = (self._series * moved).sum(axis=(1, 2))
        for o in self._large:
            won[o] += self._exactly(o, np.minimum(self.bet[o], 0.5 / m), m, mirrored)
        return np.asarray(won)

    @cached_property
    def _series(self) -> Floats:
        """What sums of each power bring with each power of the series, all blocks with small bets together.

        A fortune is a sum over blocks of powers of distances from m times powers of the bet, less the rest of the
        series and rounding. Of shape (orders, powers + 1, powers + 1); no m is more than 1, so the bet does not depend
        on it.
        """
        last = self.sums.shape[2] - 1
        small = self.bet <= LARGEST
        bet = np.where(small, self.bet, 0.0)
        terms = [-ROUNDING * small, *(bet**p * ((-1.0) ** (p + 1) / p) for p in range(1, last + 1))]
        terms[last] = terms[last] - _rest(1.0, bet, last)
        return np.asarray(np.swapaxes(self.sums, 1, 2) @ np.stack(terms, axis=2))

    @cached_property
    def _large(self) -> list[int]:
        """Orders in which some bets are too large for a series."""
        return np.flatnonzero((self.bet > LARGEST).any(axis=1)).tolist()

    @cached_property
    def _values(self) -> list[tuple[Codes, Floats, Floats]]:
        """In every order, the values of blocks with large bets, and how often there is each."""
        found = []
        for o, (block, values, counts) in enumerate(self.placed().values()):
            large = (self.bet[o] > LARGEST)[block] & (counts > 0)
            found.append((block[large], values[large], counts[large]))
        return found

    def _exactly(self, order: int, bet: Floats, m: float, mirrored: bool) -> float:
        """What is won in all blocks with a large bet, value by value."""
        block, values, counts = self._values[order]
        x = 1.0 - values if mirrored else values
        return float((counts * np.log1p(bet[block] * (x - m))).sum())


def _rest(last: Floats | float, bet: Floats, power: int) -> Floats:
    """At most what a series lacks that ends with this even power: no distance is more than 1."""
    return np.asarray(last * bet ** (power + 1) / ((power + 1) * (1.0 - bet)))


def _binomials(away: float, last: int) -> Floats:
    """What makes of sums of powers of d (first axis) those of powers of d + away."""
    powers = away ** np.arange(last + 1)
    return np.asarray(_CHOICES[: last + 1, : last + 1] * powers[_APART[: last + 1, : last + 1]])


_APART = np.maximum(np.arange(POWERS + 1) - np.arange(POWERS + 1)[:, None], 0)
_CHOICES = np.array([[float(math.comb(p, k)) for p in range(POWERS + 1)] for k in range(POWERS + 1)])
