"""Blocks of people: how values are read, and what each block adds to the sums of ``_statistics/sequences.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from felicific._statistics.sequences import BETS, Terms
from felicific._typing import Codes, Floats

#: The largest bet, and how many times smaller the smallest is; without bounds the largest is at most so much divided by
#: the skewness.
LARGEST, SPAN, TAMED = 0.7, 350.0, 0.5

#: Of every group without known bounds: rows that have to be seen, and those among them that differ from its commonest
#: value; or so many rows, after which a group is taken to hardly vary.
SEEN, DIFFERENT, ENOUGH = 100, 30, 15_000


def bets_of(skew: float = 0.0) -> Floats:
    """The bets, from the largest to the smallest."""
    largest = LARGEST if skew * LARGEST <= TAMED else TAMED / skew
    return np.geomspace(largest, largest / SPAN, BETS)


@dataclass(frozen=True, eq=False)
class Scale:
    """How the values of a measure are read, and what is bet on them.

    Attributes
    ----------
    origin, width : float
        A value v is read as (v - origin) / width.
    bets : array of shape (K,)
    bounded : bool
        Whether values are known to lie between 0 and 1; else what is said holds in large samples.
    """

    origin: float
    width: float
    bets: Floats
    bounded: bool

    @classmethod
    def between(cls, low: float, high: float) -> Scale:
        """Of values with known bounds."""
        return cls(low, (high - low) or 1.0, bets_of(), True)

    def read(self, values: Floats) -> Floats:
        """Values as they are bet on; rounding does not take them out of their bounds."""
        scaled = (values - self.origin) / self.width
        return scaled.clip(0.0, 1.0) if self.bounded else scaled


@dataclass(frozen=True, eq=False)
class BurnIn:
    """What was seen of a measure without known bounds before anything is bet on it.

    Attributes
    ----------
    origin : float
        The first value, to which the sums are relative.
    powers : array of shape (groups, 4)
        By group the number of values, and the sums of their first three powers.
    common : tuple of dict
        By group how often each value was seen, as long as few differ.
    """

    origin: float
    powers: Floats
    common: tuple[dict[float, int], ...]

    @classmethod
    def begun(cls, groups: int) -> BurnIn:
        """Nobody was seen yet."""
        return cls(math.nan, np.zeros((groups, 4)), ({},) * groups)

    def add(self, codes: Codes, values: Floats) -> BurnIn:
        """With the rows of one block."""
        if not len(values):
            return self
        origin, g = self.origin if math.isfinite(self.origin) else float(values[0]), len(self.powers)
        away = values - origin
        powers = [np.bincount(codes, away**k, minlength=g) for k in range(4)]
        common = list(self.common)
        for z in np.flatnonzero(powers[0]).tolist():
            if self.different(z) < DIFFERENT:
                seen, counts = np.unique(values[codes == z], return_counts=True)
                held = dict(common[z])
                for value, count in zip(seen.tolist(), counts.tolist(), strict=True):
                    held[value] = held.get(value, 0) + count
                common[z] = held
        return BurnIn(origin, self.powers + np.stack(powers, axis=1), tuple(common))

    def plus(self, other: BurnIn) -> BurnIn:
        """Of people of both."""
        if not self.powers.any() or not other.powers.any():
            return other if other.powers.any() else self
        step, n = other.origin - self.origin, other.powers
        moved = np.stack(
            [
                n[:, 0],
                n[:, 1] + step * n[:, 0],
                n[:, 2] + 2 * step * n[:, 1] + step**2 * n[:, 0],
                n[:, 3] + 3 * step * n[:, 2] + 3 * step**2 * n[:, 1] + step**3 * n[:, 0],
            ],
            axis=1,
        )
        common = tuple(
            {value: one.get(value, 0) + two.get(value, 0) for value in one | two}
            for one, two in zip(self.common, other.common, strict=True)
        )
        return BurnIn(self.origin, self.powers + moved, common)

    def different(self, z: int) -> int:
        """How many rows of a group differ from its commonest value; counted up to the block in which they suffice."""
        held = self.common[z].values()
        return sum(held) - max(held, default=0)

    @property
    def missing(self) -> list[int]:
        """Groups of which more has to be seen; all of them while hardly anything varies."""
        seen = self.powers[:, 0]
        different = [self.different(z) for z in range(len(seen))]
        if sum(different) < DIFFERENT:
            return list(range(len(seen)))
        return [
            z
            for z, varied in enumerate(different)
            if seen[z] < SEEN or (varied < DIFFERENT and seen[z] < ENOUGH)
        ]

    def scale(self) -> Scale:
        """By the standard deviation inside groups, with bets as small as the largest skewness asks for."""
        n, first, second, third = self.powers.T
        mean = first / n
        square = (second / n - mean**2).clip(min=0.0)
        cube = third / n - 3 * mean * second / n + 2 * mean**3
        varies = square > 1e-12 * (second / n).max(initial=0.0)
        skew = np.abs(cube[varies]) / square[varies] ** 1.5
        deviation = math.sqrt(float((n * square).sum() / n.sum()))
        return Scale(
            self.origin + float(first.sum() / n.sum()),
            deviation or 1.0,
            bets_of(float(skew.max(initial=0.0))),
            False,
        )


# ---------------------------------------------------------------------------------------------------------
# From rows to terms


def pairs_of(groups: int) -> tuple[Codes, Codes]:
    """The first and the second of every pair of groups."""
    return np.triu_indices(groups, 1)


class Tally(NamedTuple):
    """Sums by block and group of one measure, of shape (blocks, groups)."""

    n: Floats
    total: Floats
    square: Floats


def tally(place: Codes, values: Floats, blocks: int, groups: int) -> Tally:
    """Sums over rows; ``place`` is the number of a row's block times the groups, plus that of its group."""
    size = blocks * groups
    sums = (
        np.bincount(place, weights, minlength=size).reshape(blocks, groups)
        for weights in (None, values, values**2)
    )
    return Tally(*(np.asarray(part, dtype=np.float64) for part in sums))


def centres(sums: Tally, before: Floats, *, bounded: bool) -> tuple[Floats, Floats]:
    """Means of every group over all earlier blocks, of shape (blocks, groups); and their sums after these.

    ``before`` is the number and the sum of values, by group, of shape (2, groups). One row after the other is added, so
    that it does not matter how many come at a time.
    """
    n, total = (np.cumsum(np.vstack([was, now]), axis=0) for was, now in zip(before, sums, strict=False))
    after = np.stack([n[-1], total[-1]])
    if bounded:
        return (0.5 + total[:-1]) / (1.0 + n[:-1]), after
    return total[:-1] / n[:-1].clip(min=1.0), after


def block_terms(place: Codes, values: Floats, sums: Tally, centre: Floats, scale: Scale) -> Terms:
    """What one measure of some blocks adds: of shape (blocks, P), and (blocks, P, 2, K)."""
    first, second = pairs_of(sums.n.shape[1])
    n_a, n_b = sums.n[:, first], sums.n[:, second]
    both = (n_a > 0) & (n_b > 0)
    held = np.where(both, n_a + n_b, 1.0)
    c = np.where(both, n_a * n_b / held, 0.0)
    mean = sums.total / sums.n.clip(min=1.0)
    x = c * (mean[:, first] - mean[:, second])
    share_a, share_b = np.where(both, n_a / held, 0.0), np.where(both, n_b / held, 0.0)
    of = _bounded_logs if scale.bounded else _large_sample_logs
    above, below = of(place, values, sums, centre, scale.bets, (first, share_b))
    up, down = of(place, values, sums, centre, scale.bets, (second, share_a))
    level = (c * (centre[:, first] - centre[:, second]))[:, :, None] * scale.bets
    log = np.stack([above + down + level, below + up - level], axis=2)
    return Terms(c, x, np.where(both[:, :, None, None], log, 0.0))


#: Position of a group in every pair, and the share of the other one: of shape (P,) and (blocks, P).
_Side = tuple[Codes, Floats]


def _large_sample_logs(
    place: Codes, values: Floats, sums: Tally, centre: Floats, bets: Floats, side: _Side
) -> tuple[Floats, Floats]:
    """Sums of x - x^2/2 over the people of a group, for bets on more and on less; each of shape (blocks, P, K)."""
    group, share = side
    n, total, square = (part[:, group] for part in sums)
    middle = centre[:, group]
    away = (total - n * middle) * share
    spread = (square - 2.0 * middle * total + n * middle**2) * share**2
    straight, bent = away[:, :, None] * bets, 0.5 * spread[:, :, None] * bets**2
    return straight - bent, -straight - bent


def _bounded_logs(
    place: Codes, values: Floats, sums: Tally, centre: Floats, bets: Floats, side: _Side
) -> tuple[Floats, Floats]:
    """Sums of log(1 + x) over the people of a group, for bets on more and on less; each of shape (blocks, P, K).

    Of blocks that hold nothing but 0 and 1 their numbers are enough; in others each row counts by itself.
    """
    group, share = side
    blocks, groups = sums.n.shape
    plain = np.flatnonzero((sums.total == sums.square).all(axis=1))
    more, less = np.zeros((2, blocks, len(group), BETS))
    if len(plain):
        step = share[plain][:, :, None] * bets
        middle = centre[plain][:, group, None]
        ones = sums.total[plain][:, group, None]
        zeros = sums.n[plain][:, group, None] - ones
        more[plain] = ones * np.log1p(step * (1.0 - middle)) + zeros * np.log1p(-step * middle)
        less[plain] = ones * np.log1p(-step * (1.0 - middle)) + zeros * np.log1p(step * middle)
    if len(plain) == blocks:
        return more, less
    block, code = np.divmod(place, groups)
    rest = np.ones(blocks, dtype=bool)
    rest[plain] = False
    for z in np.unique(group).tolist():
        rows = np.flatnonzero((code == z) & rest[block])
        if not len(rows):
            continue
        starts = np.flatnonzero(np.diff(block[rows], prepend=-1))
        away = values[rows] - centre[block[rows], z]
        for p in np.flatnonzero(group == z).tolist():
            step = (share[block[rows], p] * away)[:, None] * bets
            for found, sign in ((more, 1.0), (less, -1.0)):
                found[block[rows][starts], p] = np.add.reduceat(np.log1p(sign * step), starts, axis=0)
    return more, less
