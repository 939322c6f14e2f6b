r"""Sequences: evidence of a gap between groups that may be read after every row, for years.

Rows come one after the other; a *block* is 100 of them, and people are compared only inside a block, so that a level
that moves for everybody, or a changing mix of groups, is no gap. Values are scaled to [0, 1] by known bounds. For a
pair of groups (a, b) with :math:`n_a` and :math:`n_b` people in the block, :math:`f_a = n_a / (n_a + n_b)`,
:math:`c = n_a n_b / (n_a + n_b)`, centres :math:`m` from earlier blocks alone, a direction :math:`s` and a bet
:math:`\kappa`

.. math::

    L \mathrel{+}= \sum_{i \in a} \log(1 + s \kappa f_b (v_i - m_a)) + \sum_{i \in b} \log(1 - s \kappa f_a (v_i - m_b))
        + s \kappa c (m_a - m_b), \qquad C \mathrel{+}= c, \qquad X \mathrel{+}= c (\bar v_a - \bar v_b)

and :math:`\exp(L - \kappa g C)` is a supermartingale as long as :math:`s (\mu_a - \mu_b) \le g`, for any centres, since
:math:`1 + x \le e^x` and the levels cancel. The gap :math:`g` is not in the sums: one state answers every gap. The sums
are kept from several starts, so that a gap that opens after a quiet year is seen; see :class:`Buckets`.

Without known bounds values are scaled by a standard deviation, and :math:`\log(1 + x)` becomes :math:`x - x^2 / 2`:
that holds in large samples alone. Rows become such sums in :mod:`felicific._statistics.stream`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from felicific._typing import Codes, Floats

#: Rows of a block, and blocks of a period, at whose beginning evidence is also begun anew.
BLOCK, BLOCKS = 100, 10

#: How many bets there are.
BETS = 16

#: How many buckets of about one size are kept before two of them become one.
PER_LEVEL = 5


class Terms(NamedTuple):
    """Sums by measure and pair of groups; anything may come before these axes, as blocks or starts.

    Attributes
    ----------
    c, x : arrays of shape (..., J, P)
        The weight of the comparisons, and with it the difference of means.
    log : array of shape (..., J, P, 2, K)
        Logarithms of what the bets made of it: the first of a pair above the second, and below.
    """

    c: Floats
    x: Floats
    log: Floats

    def plus(self, other: Terms) -> Terms:
        """Sums of both."""
        return Terms(*(one + more for one, more in zip(self, other, strict=True)))

    def at(self, place: int | slice | list[int]) -> Terms:
        """Some along the first axis."""
        return Terms(*(part[place] for part in self))

    def along(self) -> Terms:
        """Sums of the first, of the first two, and so on."""
        return Terms(*(part.cumsum(axis=0) for part in self))

    @property
    def whole(self) -> Terms:
        """Sums along the first axis."""
        return Terms(*(part.sum(axis=0) for part in self))

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Terms:
        """Nothing yet."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((*shape, 2, BETS)))


def stacked(parts: list[Terms]) -> Terms:
    """Terms one behind the other along their first axis."""
    return Terms(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# ---------------------------------------------------------------------------------------------------------
# Sums from several starts


@dataclass(frozen=True, eq=False)
class Buckets:
    """Sums over periods that are over, each bucket over some that follow each other, from the oldest to the newest.

    Where a bucket begins, evidence is begun anew: a start p periods after the first counts 1 / (2 p (p + 1)), the first
    one half. Old buckets become one with their neighbours, which drops a start and so loses power alone.

    Attributes
    ----------
    sizes, rows : arrays of shape (B,)
        Periods and rows of each.
    terms : Terms
        Of shape (B, J, P).
    """

    sizes: Codes
    rows: Codes
    terms: Terms

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Buckets:
        """No period is over."""
        empty = np.zeros(0, dtype=np.intp)
        return cls(empty, empty, Terms.none((0, *shape)))

    @property
    def periods(self) -> int:
        """How many periods are over."""
        return int(self.sizes.sum())

    @property
    def starts(self) -> Codes:
        """How many periods there were before each."""
        return np.asarray(self.sizes.cumsum() - self.sizes)

    def first(self, number: int) -> Buckets:
        """The oldest of them."""
        return Buckets(self.sizes[:number], self.rows[:number], self.terms.at(slice(0, number)))

    def with_period(self, rows: int, terms: Terms) -> Buckets:
        """With one more; where there are too many of about one size, the two oldest of these become one."""
        more = Buckets(
            np.append(self.sizes, 1),
            np.append(self.rows, rows),
            stacked([self.terms, Terms(*(part[None] for part in terms))]),
        )
        return more.thinned()

    def thinned(self) -> Buckets:
        """The same with at most so many buckets of about one size."""
        levels = np.frexp(self.sizes)[1]
        for level in np.unique(levels).tolist():
            of_level = np.flatnonzero(levels == level)
            if len(of_level) > PER_LEVEL:
                last = len(self.sizes)
                edges = [i for i in range(last) if i != of_level[0] + 1]
                return self.joined(edges).thinned()
        return self

    def joined(self, edges: list[int]) -> Buckets:
        """The same with buckets that begin at these positions alone."""
        return Buckets(
            np.add.reduceat(self.sizes, edges),
            np.add.reduceat(self.rows, edges),
            Terms(*(np.add.reduceat(part, edges, axis=0) for part in self.terms)),
        )

    def plus(self, other: Buckets) -> Buckets:
        """Periods of both by their numbers, from those starts on that both have kept."""
        shorter, longer = sorted((self, other), key=lambda one: one.periods)
        ends = shorter.periods
        if not ends:
            return longer
        kept = [i for i, start in enumerate(longer.starts.tolist()) if start >= ends]
        both = sorted({*shorter.starts.tolist()} & {*longer.starts.tolist()})
        # Of a bucket of the longer that reaches beyond the end of the shorter, the end is no start.
        parts = [
            one.joined([one.starts.tolist().index(start) for start in both if start < ends])
            for one in (shorter, longer.first(len(longer.sizes) - len(kept)))
        ]
        added = Buckets(
            np.maximum(parts[0].sizes, parts[1].sizes),
            parts[0].rows + parts[1].rows,
            parts[0].terms.plus(parts[1].terms),
        )
        if not kept:
            return added.thinned()
        rest = Buckets(longer.sizes[kept], longer.rows[kept], longer.terms.at(kept))
        return Buckets(
            np.append(added.sizes, rest.sizes),
            np.append(added.rows, rest.rows),
            stacked([added.terms, rest.terms]),
        ).thinned()


def start_weights(starts: Codes) -> Floats:
    """What every start counts."""
    p = starts.astype(np.float64)
    return np.where(p == 0, 0.5, 0.5 / (p * (p + 1.0)).clip(min=1.0))


# ---------------------------------------------------------------------------------------------------------
# What the sums show


@dataclass(frozen=True, eq=False)
class Shown:
    """Sums from every start up to now, and what they show of gaps.

    Attributes
    ----------
    starts, rows : arrays of shape (B,)
        Periods, and rows, before each start.
    terms : Terms
        From each start on; of shape (B, J, P).
    bets : array of shape (J, K)
        Of measures of which nothing was bet yet, any: their sums are 0.
    groups : int
    """

    starts: Codes
    rows: Codes
    terms: Terms
    bets: Floats
    groups: int

    @cached_property
    def log_weights(self) -> Floats:
        """Logarithm of what each start, ordered pair, measure and bet counts; of shape (B, 1, 1, 1, 1)."""
        ways = BETS * self.groups * (self.groups - 1) * len(self.bets)
        return (np.log(start_weights(self.starts)) - math.log(ways))[:, None, None, None, None]

    def exponents(self, gaps: Floats) -> Floats:
        """Logarithm of every part of the evidence of more than these gaps, of shape (J,); (B, J, P, 2, K)."""
        allowed = self.terms.c[..., None] * gaps[:, None, None]
        return self.log_weights + self.terms.log - allowed[..., None, :] * self.bets[:, None, None, :]

    def log_evidence(self, gaps: Floats) -> float:
        """Logarithm of the evidence that some gap is more than allowed."""
        return log_sum(self.exponents(gaps))

    def by_pair(self, gaps: Floats) -> Floats:
        """Logarithm of the parts of every measure, pair and direction; of shape (J, P, 2)."""
        return log_sums(self.exponents(gaps), (0, 4))

    def best_start(self, gaps: Floats, j: int, p: int, s: int) -> int:
        """Rows before the start from which most of a part's evidence comes."""
        return int(self.rows[log_sums(self.exponents(gaps)[:, j, p, s], (1,)).argmax()])

    def estimate(self) -> Floats:
        """The largest difference between two groups over all rows, by measure; not a number where there is none."""
        c, x = self.terms.c[0], self.terms.x[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.abs(x / c)
        return np.where((c > 0).any(axis=1), np.nanmax(np.where(c > 0, apart, -np.inf), axis=1), np.nan)

    def low(self, line: float) -> Floats:
        """The largest gap, by measure, of whose being exceeded the evidence reaches e to the ``line``; 0 for none."""
        found = np.zeros(len(self.bets))
        for j in range(len(found)):
            shows = partial(self._exceeds, j, line)
            if not shows(0.0):
                continue
            high = 1.0
            while shows(high):
                high *= 2.0
            found[j] = _bisected(shows, 0.0, high)
        return found

    def _exceeds(self, j: int, line: float, gap: float) -> bool:
        """Whether the evidence that the gap of one measure is more than this reaches the line."""
        logs, allowed = self.terms.log[:, j], gap * self.terms.c[:, j]
        return log_sum(self.log_weights[:, 0] + logs - allowed[..., None, None] * self.bets[j]) >= line

    def high(self, line: float) -> Floats:
        """The smallest gap, by measure, that all pairs are shown to be below; infinite if some were never compared.

        By bets from the first start alone that a difference is less. Which two groups are the furthest apart may change
        from time to time, so each bet has its share of the error.
        """
        line, found = line + math.log(self.groups * (self.groups - 1)), np.full(len(self.bets), np.inf)
        for j in np.flatnonzero((self.terms.c[0] > 0).all(axis=1)).tolist():
            # Each direction is bounded by bets on the other; of both, which is whose does not matter.
            logs, step = self.terms.log[0, j], self.terms.c[0, j][:, None, None] * self.bets[j]
            # The mean over bets is at least a part, and at most all, of the largest.
            least, most = (((line + more - logs) / step).min(axis=2) for more in (0.0, math.log(BETS)))
            for _ in range(60):
                middle = 0.5 * (least + most)
                shown = log_sums(logs + middle[..., None] * step, (2,)) - math.log(BETS) >= line
                least, most = np.where(shown, least, middle), np.where(shown, middle, most)
            found[j] = most.max()
        return found.clip(min=0.0)


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The end of the stretch from ``low`` on in which something holds that does not at ``high``."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def log_sum(logs: Floats) -> float:
    """Logarithm of a sum, from logarithms of its parts."""
    most = float(logs.max(initial=-np.inf))
    return most if not math.isfinite(most) else most + math.log(float(np.exp(logs - most).sum()))


def log_sums(logs: Floats, axes: tuple[int, ...]) -> Floats:
    """The same along some axes."""
    most = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - most).sum(axis=axes)) + most.squeeze(axis=axes))
