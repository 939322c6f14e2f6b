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
from collections.abc import Callable
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


def betting_limits(values: Floats, tail: float, lower: float, upper: float) -> tuple[float, float]:
    """Limits of a mean, each of them wrong with a probability of at most ``tail``."""
    x = (values - lower) / (upper - lower)
    if len(x) == 0:
        return lower, upper
    below, above = (_by_blocks if len(x) >= MANY else _one_by_one)(x, tail)
    return lower + (upper - lower) * below, lower + (upper - lower) * above


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
    largest = float(fortune.max())
    return largest + math.log(float(np.exp(fortune - largest).mean())) >= math.log(1.0 / tail)


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
    order: equal values are told apart, and so each order is as good as drawn by lot.
    """
    sorted_rows = np.argsort(x, kind="stable")
    return np.array([sorted_rows[np.argsort(keys, kind="stable")] for keys in _keys(x[sorted_rows])])


def _keys(x: Floats) -> list[NDArray[np.uint64]]:
    """For every order, the key of each of some sorted numbers."""
    bits = np.rint(x * 2.0**30).astype(np.int64).astype(np.uint64)
    starts = np.flatnonzero(np.concatenate([[True], bits[1:] != bits[:-1]]))
    runs = np.diff(np.append(starts, len(bits)))
    place = np.arange(len(bits)) - np.repeat(starts, runs)
    keys, every = _mixed(bits) ^ place.astype(np.uint64), []
    for _ in range(ORDERS):
        keys = _mixed(keys)
        every.append(keys)
    return every


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Steele, Lea and Flood's (2014) SplitMix64, a bijection of 64 bits."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


# ---------------------------------------------------------------------------------------------------------
# Blocks


def _by_blocks(x: Floats, tail: float) -> tuple[float, float]:
    """Limits by bets that change from block to block."""
    x = np.sort(x)
    keys = _keys(x)
    x = np.clip(x, 0.0, 1.0)
    blocks = Blocks.of(x, [block_of(one) for one in keys], tail)
    mean = float(x.mean())
    return (
        _break_even(lambda m: _enough(blocks.fortune(m), tail), mean),
        1.0 - _break_even(lambda m: _enough(blocks.fortune(m, mirrored=True), tail), 1.0 - mean),
    )


#: The block of every two leading bytes of a key: with 256 blocks they end at whole numbers of these.
_ROOTS = np.array([math.isqrt(number) for number in range(BLOCKS**2)], dtype=np.intp)


def block_of(keys: NDArray[np.uint64]) -> Codes:
    """The block of every key: b of B ends at ((b + 1) / B) ** 2 of them, so that the first ones are small."""
    return np.asarray(_ROOTS[(keys >> np.uint64(48)).astype(np.intp)])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Values in blocks, in several orders.

    Attributes
    ----------
    x : array of shape (n,)
        Numbers from 0 to 1, sorted.
    block : list of arrays of shape (n,)
        In every order, the block of each.
    centre : float
        Powers are of distances from it.
    sums : array of shape (orders, blocks, powers + 1)
        Of the powers, beginning with the number of values.
    bet : array of shape (orders, blocks)
        What is bet, by what earlier blocks show.
    """

    x: Floats
    block: list[Codes]
    centre: float
    sums: Floats
    bet: Floats

    @classmethod
    def of(cls, x: Floats, block: list[Codes], tail: float) -> Blocks:
        """Sum up the blocks and find the bets."""
        centre, n = float(x.mean()), len(x)
        away = x - centre
        sums = _power_sums(away, block, range(FEW_POWERS + 1))
        bet = cls._bets(sums, centre, n, tail)
        if (
            float(_rest(sums[:, :, FEW_POWERS], np.minimum(bet, LARGEST), FEW_POWERS).sum(axis=1).max())
            > LEFT
        ):
            more = _power_sums(away, block, range(FEW_POWERS + 1, POWERS + 1))
            sums = np.concatenate([sums, more], axis=2)
        return cls(x, block, centre, sums, bet)

    @staticmethod
    def _bets(sums: Floats, centre: float, n: int, tail: float) -> Floats:
        """What is bet on every block, by the sums over those before it."""
        before = np.concatenate([np.zeros((len(sums), 1, 3)), sums[:, :-1, :3].cumsum(axis=1)], axis=1)
        count, first, second = np.moveaxis(before, 2, 0)
        mean = (0.5 - centre + first) / (count + 1.0)  # from the centre
        spread = (0.25 + np.maximum(second - 2.0 * mean * first + count * mean**2, 0.0)) / (count + 1.0)
        return np.asarray(np.sqrt(2.0 * math.log(1.0 / tail) / (n * spread)))

    def fortune(self, m: float, *, mirrored: bool = False) -> Floats:
        """At least what gamblers on larger values win, as logarithms, one of each order; or ``mirrored``, 1 - x."""
        bet = np.minimum(self.bet, 0.5 / m)
        away = (1.0 - self.centre if mirrored else self.centre) - m
        last = self.sums.shape[2] - 1
        signs = (-1.0) ** np.arange(last + 1) if mirrored else np.ones(last + 1)
        series = np.minimum(bet, LARGEST)
        moved = (self.sums * signs) @ _binomials(away, last)
        terms = [moved[:, :, p] * series**p * ((-1.0) ** (p + 1) / p) for p in range(1, last + 1)]
        won = (
            sum(terms[1:], start=terms[0])
            - _rest(moved[:, :, last], series, last)
            - ROUNDING * moved[:, :, 0]
        )
        for o in np.flatnonzero((bet > LARGEST).any(axis=1)).tolist():
            won[o] = np.where(bet[o] > LARGEST, self._exactly(o, bet[o], m, mirrored), won[o])
        return np.asarray(won.sum(axis=1))

    def _exactly(self, order: int, bet: Floats, m: float, mirrored: bool) -> Floats:
        """What is won in every block with a large bet, value by value."""
        block, values, counts = self._values[order]
        large = bet[block] > LARGEST
        if not large.all():
            block, values, counts = block[large], values[large], counts[large]
        x = 1.0 - values if mirrored else values
        won = np.bincount(block, counts * np.log1p(bet[block] * (x - m)), minlength=BLOCKS)
        return won.astype(np.float64)

    @cached_property
    def _values(self) -> list[tuple[Codes, Floats, Floats]]:
        """In every order, blocks, their different values, and how often there is each."""
        new = np.concatenate([[True], self.x[1:] != self.x[:-1]])
        held, number = self.x[new], np.cumsum(new) - 1
        if BLOCKS * len(held) > len(self.x):
            return [(places, self.x, np.ones(len(self.x))) for places in self.block]
        # Of few different values it is enough to know how often there is each.
        blocks, values = np.repeat(np.arange(BLOCKS), len(held)), np.tile(held, BLOCKS)
        counts = [np.bincount(places * len(held) + number, minlength=len(blocks)) for places in self.block]
        return [(blocks, values, often.astype(np.float64)) for often in counts]


def _power_sums(away: Floats, block: list[Codes], powers: range) -> Floats:
    """Sums of powers over every block, in every order; of shape (orders, blocks, powers)."""
    sums, power = np.empty((len(block), BLOCKS, len(powers))), away**powers.start
    for p in range(len(powers)):
        for o, places in enumerate(block):
            sums[o, :, p] = np.bincount(places, power, minlength=BLOCKS)
        power = power * away
    return sums


def _rest(last: Floats, bet: Floats, power: int) -> Floats:
    """At most what a series lacks that ends with this even power: no distance is more than 1."""
    return np.asarray(last * bet ** (power + 1) / ((power + 1) * (1.0 - bet)))


def _binomials(away: float, last: int) -> Floats:
    """What makes of sums of powers of d those of powers of d + away, as a matrix to multiply by from the right."""
    found = np.zeros((last + 1, last + 1))
    for p in range(last + 1):
        for k in range(p + 1):
            found[k, p] = math.comb(p, k) * away ** (p - k)
    return found
