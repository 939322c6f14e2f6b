r"""Gaps: limits and tests of the largest group mean minus the smallest, by comparing groups two by two.

The largest of some estimates is biased upwards, so an interval has to hold whichever groups turned out to be furthest
apart. That a gap is at most so much says so of every pair: each has to be shown, and no correction is needed for their
number. That it is more is shown of one pair that the data chose, so its error is divided by the number of pairs.

Two groups are compared in one of three ways: rates exactly, values within known bounds by bets, and the rest by large
samples, with Hall's correction for skewness.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations
from typing import ClassVar, NamedTuple

import numpy as np

from felicific._statistics import bets, rates
from felicific._statistics.intervals import Limits, Sample, hall_inverse, hall_limits, with_added
from felicific._typing import Codes, Floats, Truths

#: So many pairs, and what is spent on finding them.
NEAR, SPENT = 64, 0.1

#: By how much larger samples are trusted less than they say, where they show a gap to be more.
CAUTION = 5.0


@dataclass(frozen=True, eq=False)
class Means(ABC):
    """Means of some groups, with what is needed to compare any two of them.

    Attributes
    ----------
    mean : array of shape (groups,)
    """

    mean: Floats

    #: How two groups are compared, in words; whether it is proof; of how many groups changes go by pairs.
    words: ClassVar[str]
    proof: ClassVar[bool] = True
    by_pairs: ClassVar[int] = 6
    #: Of more groups than this, those pairs are compared that may be furthest apart.
    all_pairs: ClassVar[int] = 12

    @abstractmethod
    def limits(self, tail: float) -> Limits:
        """Limits of every group's mean, each wrong with a probability of at most ``tail``."""

    @abstractmethod
    def most_apart(self, one: int, other: int, tail: float) -> float:
        """Upper limit of one mean minus another."""

    @abstractmethod
    def shows(self, one: int, other: int, apart: float, tail: float) -> bool:
        """Whether one mean is shown to be at most so much above another."""

    def all_show(self, pairs: Pairs, apart: float, tail: float) -> bool:
        """Whether all of some pairs are shown to be at most so far apart."""
        return all(self.shows(a, b, apart, tail) for a, b in zip(*map(np.ndarray.tolist, pairs), strict=True))

    def furthest(self, pairs: Pairs, tail: float) -> float:
        """The largest upper limit of some pairs; those that come first are likely to have it."""
        most = -math.inf
        for a, b in zip(*map(np.ndarray.tolist, pairs), strict=True):
            if math.isinf(most) or not self.shows(a, b, most, tail):
                most = max(most, self.most_apart(a, b, tail))
        return most

    # -----------------------------------------------------------------------------------------------------
    # Gaps

    def gap(self, alpha: float) -> tuple[float, float]:
        """Limits of the gap.

        The lower one may err by any ordered pair but the reverse of the one that is furthest apart in truth: where that
        does, the upper one errs anyway.
        """
        g = len(self.mean)
        pairs = g * (g - 1)
        return max(self.least(alpha / 2.0 * pairs / (pairs - 1)), 0.0), self.most(alpha / 2.0)

    def least(self, tail: float) -> float:
        """Lower limit of the gap: of the two groups that are furthest apart here, whichever these are."""
        g = len(self.mean)
        return -self.most_apart(int(self.mean.argmin()), int(self.mean.argmax()), tail / (g * (g - 1)))

    def most(self, tail: float) -> float:
        """Upper limit of the gap."""
        if len(self.mean) <= self.all_pairs:
            return max(self.furthest(self._ordered, tail), 0.0)
        low, high = self.limits(SPENT * tail / 2.0)
        top, bottom = np.argsort(-high)[:33], np.argsort(low)[:33]
        apart = high[top[:-1], None] - low[bottom[:-1]]
        apart[top[:-1, None] == bottom[:-1]] = -math.inf
        order = np.argsort(-apart, axis=None, kind="stable")
        one, other = np.divmod(order[:NEAR], len(bottom) - 1)
        left = float(apart.flat[order[NEAR]]) if len(order) > NEAR else -math.inf
        rest = max(left, high[top[-1]] - low[bottom[0]], high[top[0]] - low[bottom[-1]])
        return max(self.furthest((top[one], bottom[other]), (1.0 - SPENT) * tail), float(rest), 0.0)

    @cached_property
    def _ordered(self) -> Pairs:
        """All ordered pairs, those first that are furthest apart here."""
        one, other = ordered_pairs(len(self.mean))
        order = np.argsort(self.mean[other] - self.mean[one], kind="stable")
        return one[order], other[order]

    def p_values(self, at_most: float, alpha: float) -> tuple[float, float]:
        """p-values of "the gap is at most this" (small: it is more) and of "it is more" (small: it is at most this).

        Found by halving on a logarithmic scale down to 1e-6, and rounded up.
        """
        return self._more(at_most, alpha), self._within(at_most, alpha)

    def _more(self, at_most: float, alpha: float) -> float:
        g, low, high = len(self.mean), int(self.mean.argmin()), int(self.mean.argmax())
        if self.mean[high] - self.mean[low] <= at_most:
            return 1.0
        return least_level(lambda level: self.shows(low, high, -at_most, level / (g * (g - 1))), alpha)

    def _within(self, at_most: float, alpha: float) -> float:
        if np.ptp(self.mean) > at_most:
            return 1.0
        if len(self.mean) > self.all_pairs:
            return least_level(lambda level: self.most(level) <= at_most, alpha, 3)
        hardest = tuple(part[:1] for part in self._ordered)
        p = least_level(lambda level: self.all_show((hardest[0], hardest[1]), at_most, level), alpha)
        while p < 1.0 and not self.all_show(self._ordered, at_most, p):
            p = min(1.5 * p, 1.0)
        return p

    def pair_limits(self, alpha: float) -> Limits:
        """Limits of the differences of all ordered pairs that hold for all of them together."""
        g, (one, other) = len(self.mean), ordered_pairs(len(self.mean))
        if g > self.by_pairs:
            low, high = self.limits(alpha / (2.0 * g))
            return low[one] - high[other], high[one] - low[other]
        above = self._above(one, other, alpha / (g * (g - 1)))
        place = np.empty((g, g), dtype=np.intp)
        place[one, other] = np.arange(len(one))
        return -above[place[other, one]], above

    def _above(self, one: Codes, other: Codes, tail: float) -> Floats:
        return np.array(
            [self.most_apart(a, b, tail) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
        )


#: Positions of the groups that are compared: the one, and the other.
Pairs = tuple[Codes, Codes]


def ordered_pairs(n_groups: int) -> Pairs:
    """All ordered pairs of groups."""
    one, other = np.nonzero(~np.eye(n_groups, dtype=bool))
    return one, other


def least_level(rejects: Callable[[float], bool], alpha: float, halvings: int = 10) -> float:
    """Least level at which a test rejects; the first look is at the level that decides."""
    low, high = (1e-6, alpha) if rejects(alpha) else (alpha, 1.0)
    if low == alpha and not rejects(1.0 - 1e-9):
        return 1.0
    if low < alpha and rejects(low):
        return low
    for _ in range(halvings):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Rates(Means):
    """Rates of people who count one by one; ``n`` are how many."""

    n: Floats
    words: ClassVar[str] = "score test of two rates (exact)"

    def limits(self, tail: float) -> Limits:
        """By Clopper and Pearson."""
        return rates.exact_limits(self.n, self.mean, tail)

    def most_apart(self, one: int, other: int, tail: float) -> float:
        """By the score test."""
        return rates.most_apart(*self._counts(one), *self._counts(other), tail)

    def shows(self, one: int, other: int, apart: float, tail: float) -> bool:
        """By the score test."""
        return rates.shows(*self._counts(one), *self._counts(other), apart, tail)

    def _counts(self, z: int) -> tuple[float, float]:
        return round(float(self.n[z] * self.mean[z])), float(self.n[z])


@dataclass(frozen=True, eq=False)
class Bets(Means):
    """Values within known bounds, of people who count one by one: how many lie in each bin of the bounds."""

    counted: bets.Counted
    bounds: tuple[float, float]
    words: ClassVar[str] = "betting on pairs of people (distribution-free)"

    @cached_property
    def _orders(self) -> list[Floats]:
        return bets.shuffled(self.counted)

    @property
    def _span(self) -> float:
        return self.bounds[1] - self.bounds[0]

    def limits(self, tail: float) -> Limits:
        """By bets on every mean."""
        alone = [bets.shuffled([one])[0] for one in self.counted]  # a mean says nothing of other groups
        low, high = np.array([bets.mean_limits(x, tail) for x in alone]).reshape(-1, 2).T
        return self.bounds[0] + self._span * low, self.bounds[0] + self._span * high

    def most_apart(self, one: int, other: int, tail: float) -> float:
        """By bets on pairs of people."""
        return self._span * bets.most_apart(self._orders[one], self._orders[other], tail)

    def shows(self, one: int, other: int, apart: float, tail: float) -> bool:
        """By bets on pairs of people."""
        return bets.shows(self._orders[one], self._orders[other], apart / self._span, tail)


@dataclass(frozen=True, eq=False)
class LargeSamples(Means):
    """Independent units, each of which adds a little to the error of a mean; with Hall's correction for skewness.

    Of a ``rate`` of people who do not count alike, a success and a failure are added to compare two groups, and two of
    each for a mean (Agresti and Coull 1998, Agresti and Caffo 2000): rare ones may not have been seen.
    """

    sample: Sample
    bounds: tuple[float, float] | None = None
    rate: bool = False
    words: ClassVar[str] = "Hall's t (large sample)"
    proof: ClassVar[bool] = False
    by_pairs: ClassVar[int] = 200
    all_pairs: ClassVar[int] = 200

    @cached_property
    def pairs(self) -> Sample:
        """The sample to compare groups by."""
        return with_added(self.sample, 1.0) if self.rate else self.sample

    def limits(self, tail: float) -> Limits:
        """Student's, widened where the correction asks for it."""
        low, high = hall_limits(with_added(self.sample, 2.0) if self.rate else self.sample, tail)
        lower, upper = self.bounds or (-math.inf, math.inf)
        return np.clip(low, lower, upper), np.clip(high, lower, upper)

    def most_apart(self, one: int, other: int, tail: float) -> float:
        """Welch's, widened likewise."""
        return float(self._above(np.array([one]), np.array([other]), tail)[0])

    def shows(self, one: int, other: int, apart: float, tail: float) -> bool:
        """Likewise."""
        return self.most_apart(one, other, tail) <= apart

    def all_show(self, pairs: Pairs, apart: float, tail: float) -> bool:
        """All at once."""
        return self.furthest(pairs, tail) <= apart

    def furthest(self, pairs: Pairs, tail: float) -> float:
        """All at once."""
        return float(self._above(*pairs, tail).max(initial=-math.inf))

    def _more(self, at_most: float, alpha: float) -> float:
        # Few people of a skewed group mostly show neither its mean nor its spread.
        return min(CAUTION * super()._more(at_most, alpha / CAUTION), 1.0)

    def _above(self, one: Codes, other: Codes, tail: float) -> Floats:
        from scipy.special import stdtrit

        difference, error, df, skewness = _differences(self.pairs, one, other)
        t = stdtrit(np.maximum(df, 1.0), 1.0 - tail)
        known = np.isfinite(error)
        reach = np.where(known, error, 0.0) * np.maximum(t, -hall_inverse(-t, skewness))
        return np.where(known, difference + reach, math.inf)


def _differences(sample: Sample, one: Codes, other: Codes) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Of some pairs the difference of the means, its standard error, Welch's degrees of freedom and its skewness.

    The skewness is :math:`(\mu_{3a}/n_a^2 - \mu_{3b}/n_b^2) / \mathrm{se}^3`.
    """
    variance, freedom = sample.error**2, sample.freedom
    sums = variance[one] + variance[other]
    third = sample.skewness * sample.sd**3 / np.maximum(sample.n, 1.0) ** 2
    apart = third[one] - third[other]
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [(variance[z] / sums) ** 2 / np.maximum(freedom[z], 1e-300) for z in (one, other)]
        df = np.where(np.isfinite(sums), 1.0 / (parts[0] + parts[1]), 1.0)
        if sample.ties is not None:
            tie = sample.ties.correlation[one, other]
            tied = sums - 2.0 * tie * np.sqrt(variance[one] * variance[other])
            # Groups that always move together say nothing of how far apart they may move.
            sums = np.where(tied > 1e-12 * sums, tied, math.inf)
            df = np.where(tie == 0.0, df, np.minimum(freedom[one], freedom[other]))
            # The cube of a difference: a^3 - 3 a^2 b + 3 a b^2 - b^3.
            size, cube = sample.sd / np.sqrt(np.maximum(sample.n, 1.0)), sample.ties.skewness
            a, b = size[one], size[other]
            apart = apart - 3.0 * a * b * (cube[one, other] * a - cube[other, one] * b)
        error = np.sqrt(sums)
        return sample.mean[one] - sample.mean[other], error, df, apart / error**3


@dataclass(frozen=True, eq=False)
class Ends(Means):
    """Means of which hidden reasons leave open the least and the most."""

    at_least: LargeSamples
    at_most: LargeSamples
    words: ClassVar[str] = "limits of two means, widened for skewness (large sample)"
    proof: ClassVar[bool] = False

    def limits(self, tail: float) -> Limits:
        """The lower limits of the least, and the upper ones of the most."""
        return self.at_least.limits(tail)[0], self.at_most.limits(tail)[1]

    def most_apart(self, one: int, other: int, tail: float) -> float:
        """From limits of both means."""
        low, high = self.limits(tail / 2.0)
        return float(high[one] - low[other])

    def shows(self, one: int, other: int, apart: float, tail: float) -> bool:
        """Likewise."""
        return self.most_apart(one, other, tail) <= apart


@lru_cache(maxsize=64)
def _nodes(count: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(count)
    return x, w


def chance_gap(sample: Sample) -> float:
    r"""The gap that chance alone shows on average between groups that are in truth equal: the largest bias.

    .. math::
        E[\max_z \epsilon_z - \min_z \epsilon_z]
        = \int 1 - \prod_z \Phi(x / \sigma_z) - \prod_z \Phi(-x / \sigma_z) \, dx
    """
    from scipy.special import ndtr

    error = sample.error
    if not np.isfinite(error).all():
        return math.inf
    if sample.ties is not None:
        return _tied_gap(error, sample.ties.correlation)
    x, w = _nodes(400)
    reach = 9.0 * float(error.max())
    scaled = reach * x[:, None] / error[None, :]
    return float(reach * w @ (1.0 - ndtr(scaled).prod(axis=1) - ndtr(-scaled).prod(axis=1)))


def _tied_gap(error: Floats, correlation: Floats) -> float:
    """The same where the errors of the means go together, from draws that are always the same ones."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(0).normal(size=(len(error), 100_000))
    return float(np.ptp(error[:, None] * (root @ draws), axis=0).mean())


def change_interval(before: Means, after: Means, change: Means, alpha: float) -> tuple[float, float]:
    r"""Interval for the gap afterwards minus the gap before, of the same people.

    With :math:`b_p, a_p` the differences of ordered pair p before and after, let :math:`a_p`, :math:`b_p` and
    :math:`d_p = a_p - b_p` be known to limits that hold together. The pair that makes the gap afterwards is among those
    whose :math:`a_p` may be largest, and the gap before is at least :math:`|b_p|` of it and at least the lower limit of
    any pair. So the gap grows by at most the largest :math:`a_p - \max(|b_p|, L)` that the limits of these pairs leave
    open; with before and after exchanged, it falls by at most so much.

    """
    b, a, d = (means.pair_limits(alpha / 3.0) for means in (before, after, change))
    return -float(_most_growth(a, b, (-d[1], -d[0]))), float(_most_growth(b, a, d))


def _most_growth(before: Limits, after: Limits, change: Limits) -> Floats:
    r"""Largest growth of the gap that limits of all pairs leave open.

    Of a pair that is before at :math:`x`, it is :math:`\min(a^+, x + d^+) - \max(|x|, L)`. That rises up to x = L and
    does not rise after, so the x nearest to L that all three limits allow is the worst.
    """
    least = np.maximum(before[0].max(axis=-1, keepdims=True), 0.0)
    top = after[1] >= after[0].max(axis=-1, keepdims=True)
    start, end = np.maximum(before[0], after[0] - change[1]), np.minimum(before[1], after[1] - change[0])
    x = np.minimum(np.maximum(least, start), np.maximum(start, end))
    growth = np.minimum(after[1], x + change[1]) - np.maximum(np.abs(x), least)
    return np.asarray(np.where(top, growth, -math.inf).max(axis=-1))


def spread_of(limits: Limits) -> Limits:
    """Least and largest gap that limits of the group means leave open."""
    low, high = limits
    one, other = ordered_pairs(low.shape[-1])
    least, most = low[..., one] - high[..., other], high[..., one] - low[..., other]
    return np.maximum(least.max(axis=-1), 0.0), most.max(axis=-1)


def ratio_shown(sample: Sample, origin: float, ratio: float, level: float) -> bool:
    """Whether every mean is shown, at this level, to be at least ``ratio`` times every other, by large samples.

    Each pair by its own t test: all of them have to reject, so no correction is needed for their number. With fewer
    degrees of freedom of the two, and what ties their errors.
    """
    from scipy.special import stdtrit

    one, other = ordered_pairs(len(sample.n))
    mean, error, freedom = sample.mean + origin, sample.error, sample.freedom
    variance = error[one] ** 2 + (ratio * error[other]) ** 2
    if sample.ties is not None:
        variance -= 2.0 * ratio * sample.ties.correlation[one, other] * error[one] * error[other]
    needed = stdtrit(np.minimum(freedom[one], freedom[other]), 1.0 - level) * np.sqrt(variance)
    return bool((mean[one] - ratio * mean[other] >= needed).all())


# ---------------------------------------------------------------------------------------------------------
# Bets on pairs of people: that no two groups differ by more than so much, for any distribution within bounds.
#
# Of two groups the smaller is paired, person by person, with as many blocks of the larger. If their means
# differ by :math:`\epsilon` or more, :math:`\epsilon` minus the difference :math:`d_i` of a pair is at most
# 0 on average, and a gambler who stakes :math:`\lambda_i` on it has
#
# .. math:: K = \prod_i (1 + \lambda_i (\epsilon - d_i)), \qquad E[K] \le 1
#
# as long as no stake depends on its own pair or on later ones, and none can ruin him. So
# :math:`P(K \ge 1/\gamma) \le \gamma`, whatever the values are. Nothing is assumed of what the two means
# are, and nothing is split between two limits. The stakes aim at :math:`1/\gamma` and are recalculated on
# the way by what is still missing and how many pairs are left (Voracek and Orabona 2025): the power comes
# close to Welch's t. That one mean is at least r times another is bet on in the same way, with the gain
# :math:`y_i - r x_i` of a pair.


PAIRS = "betting on pairs of people (distribution-free)"

#: How often stakes are recalculated.
STEPS = 256

#: Share of what he has that a gambler may lose on one pair.
BOLDNESS = 0.95

#: How many pairs the guess of their spread counts for.
GUESSED = 20.0

#: Most differences that are bet on at a time.
TOGETHER = 1 << 22


def shown_by_pairs(
    groups: Sequence[Floats],
    spread: Floats,
    bounds: tuple[float, float],
    width: float,
    level: float,
    ratio: float = 1.0,
) -> bool:
    """Whether the means of all groups are shown, at this level, to be at most so far apart.

    With a ``ratio``, to be at least so large a part of each other, less the width.

    All pairs have to be shown, each at this level: no correction is needed for their number.

    Parameters
    ----------
    groups : sequence of arrays
        Values of the people of every group, in an order that has nothing to do with them.
    spread : array of shape (groups,)
        A guess of their standard deviations, from other people; a bad one costs power and not the level.
    bounds : (low, high)
        The range that all values are known to lie in.
    """
    most = ratio * bounds[1] - bounds[0] - width
    if most <= 0:
        return True
    sizes = np.array([len(values) for values in groups])
    if not sizes.all():
        return False
    return all(
        bool(_wins(groups, spread, one, other, most, width, level, ratio).all())
        for one, other in _batches(sizes)
    )


def _batches(sizes: Codes) -> Iterator[tuple[Codes, Codes]]:
    """All ordered pairs of groups, those with as many pairs of people together."""
    ordered = sorted(permutations(range(len(sizes)), 2), key=lambda pair: int(sizes[list(pair)].min()))
    while ordered:
        most = int(sizes[list(ordered[-1])].min())
        count = max(1, TOGETHER // most)
        one, other = np.array(ordered[-count:]).T
        yield one, other
        del ordered[-count:]


def _wins(
    groups: Sequence[Floats],
    spread: Floats,
    one: Codes,
    other: Codes,
    loss: float,
    width: float,
    level: float,
    ratio: float = 1.0,
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For some ordered pairs of groups, whether the gambler wins 1 / level; ``loss`` is what a pair loses at most."""
    sizes = np.array([len(values) for values in groups])
    n = np.minimum(sizes[one], sizes[other])
    length = -(-n // STEPS)
    steps = int((-(-n // length)).max())
    gains = np.zeros((len(n), steps * int(length.max())))
    shaped = gains.reshape(len(n), steps, -1)
    for p, (a, b) in enumerate(zip(one, other, strict=True)):
        gain = width - (ratio * _blocks(groups[a], n[p]) - _blocks(groups[b], n[p]))
        rows = np.arange(n[p])
        shaped[p, rows // length[p], rows % length[p]] = gain
    guess = (ratio * spread[one]) ** 2 * n / sizes[one] + spread[other] ** 2 * n / sizes[other] + width**2
    # Before every step: pairs seen, and the squares that those left are expected to add up to.
    seen = np.minimum(np.arange(steps)[:, None] * length, n)
    squares = np.cumsum(np.concatenate([[GUESSED * guess], (shaped**2).sum(axis=2).T[:-1]]), axis=0)
    ahead = np.maximum(n - seen, 1.0) * squares / (GUESSED + seen)
    goal, fortune = math.log(1.0 / level), np.zeros(len(n))
    for step in range(steps):
        missing = np.maximum(goal - fortune, 0.0)
        if not missing.any():
            break
        stake = np.minimum(np.sqrt(2.0 * missing / ahead[step]), BOLDNESS / loss)
        fortune += np.log1p(stake[:, None] * shaped[:, step]).sum(axis=1)
    return np.asarray(fortune >= goal)


def _blocks(values: Floats, count: int) -> Floats:
    """Means of so many blocks of values, which are as equal in size as can be."""
    if len(values) == count:
        return values
    starts = np.arange(count) * len(values) // count
    return np.asarray(np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values))))


# ---------------------------------------------------------------------------------------------------------
# Ratios: how many times one group's mean is another's, and the smallest such ratio of all pairs of groups.
#
# For rates the score interval of Miettinen and Nurminen (1985): all r with
#
# .. math::
#     |\hat p_1 - r \hat p_2| - \tfrac{c}{2} (1/n_1 + r/n_2) \le z \sqrt{\tilde V(r)}, \qquad
#     \tilde V(r) = \frac{N}{N - 1} \Big( \frac{\tilde p_1 (1 - \tilde p_1)}{n_1}
#                   + r^2 \frac{\tilde p_2 (1 - \tilde p_2)}{n_2} \Big)
#
# with the likeliest rates :math:`\tilde p_1 = r \tilde p_2` and :math:`N = n_1 + n_2`. The second term on
# the left is a part, c = .6, of the usual correction for counts being whole numbers: without it a group of
# ten is covered .895 of the time at the worst rate above .02. For anything else the logarithm of the ratio
# with the error that follows from those of the two means (delta method).
#
# The largest mean is chosen after looking, so a ratio to it holds for every group that could have been the
# largest, and the smallest ratio for every pair (Bonferroni).


SCORE = "score (Miettinen and Nurminen)"
DELTA = "log ratio, delta method (large sample)"

#: Share of the correction for counts being whole numbers: the least at which every rate from .02 on, also those of ten
#: people that are worst, is covered at least .93 of the time by an interval at .95.
CONTINUITY = 0.6

#: Logarithms of ratios are sought within plus and minus this, and halved so often.
_REACH, _STEPS = 30.0, 46


class _Side(NamedTuple):
    """The groups above, or below, the fraction line; arrays of one shape."""

    n: Floats
    mean: Floats
    error: Floats
    df: Floats


def _side(sample: Sample, at: Codes) -> _Side:
    """Groups, the last axis of a sample, by their positions; of many data sets at once, one axis before."""
    several = at.ndim > 1

    def pick(numbers: Floats) -> Floats:
        wide = np.broadcast_to(numbers, sample.mean.shape)
        return np.take_along_axis(wide, at, -1) if several else wide[..., at]

    return _Side(*map(pick, (sample.n, sample.mean, sample.error, sample.freedom)))


def ratio_limits(sample: Sample, one: Codes, other: Codes, alpha: float, *, rate: bool) -> Limits:
    """Limits of the means of some groups divided by those of others, each with confidence 1 - alpha.

    The means of the sample are not relative to anything. Where nothing can be said, from 0 to infinity.
    """
    a, b = _side(sample, one), _side(sample, other)
    tie = 0.0 if sample.ties is None else sample.ties.correlation[one, other]
    # Groups that always move together say nothing of how far apart they may move.
    tie = np.where(np.asarray(tie) > 1.0 - 1e-9, 0.0, tie)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = _score(a, b, tie, alpha, sample.df is None) if rate else _delta(a, b, tie, alpha)
    known = np.isfinite(low) & ~np.isnan(high)
    return np.where(known, low, 0.0), np.where(known, high, math.inf)


def _quantile(alpha: float, df: Floats) -> Floats:
    """Of t; NaN where there is no degree of freedom."""
    from scipy.special import stdtrit

    return np.asarray(np.where(df < 1.0, math.nan, stdtrit(np.maximum(df, 1.0), 1.0 - alpha / 2.0)))


def _score(a: _Side, b: _Side, tie: Floats, alpha: float, countable: bool) -> Limits:
    """Where the test that the ratio is r does not reject, found by halving."""
    from scipy.special import ndtri

    # Independent people of equal weight leave no error of their number open; others have few degrees of freedom.
    z = (
        np.full(a.mean.shape, ndtri(1.0 - alpha / 2.0))
        if countable
        else _quantile(alpha, np.minimum(a.df, b.df))
    )
    sign = np.array([1.0, -1.0]).reshape(2, *np.ones(z.ndim, dtype=int))
    low, high = (np.full((2, *z.shape), end) for end in (-_REACH, _REACH))
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        above = _above(a, b, np.exp(middle), sign * z, tie)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    least, most = np.exp(low[0]), np.exp(high[1])
    least, most = np.where(a.mean > 0.0, least, 0.0), np.where(b.mean > 0.0, most, math.inf)
    return np.where(np.isnan(z), math.nan, least), most


def _above(a: _Side, b: _Side, r: Floats, z: Floats, tie: Floats | float = 0.0) -> Truths:
    """Whether the score of "the ratio is r" is above z: at the low end it is the quantile, at the high minus it."""
    slack = np.copysign(CONTINUITY / 2.0 * (1.0 / a.n + r / b.n), z)
    return np.asarray(a.mean - r * b.mean - slack > z * np.sqrt(_variance(a, b, r, tie)))


def _variance(a: _Side, b: _Side, r: Floats, tie: Floats | float) -> Floats:
    """Of the difference of one rate and r times the other, if that is the ratio."""
    total = a.n + b.n
    hits = a.n * a.mean + b.n * b.mean
    middle = a.n * r + a.n * a.mean + b.n + b.n * b.mean * r
    root = np.sqrt(np.maximum(middle**2 - 4.0 * total * r * hits, 0.0))
    below = np.minimum(2.0 * hits / (middle + root), 1.0)
    above = np.minimum(r * below, 1.0)
    one, other = above * (1.0 - above) / a.n, r**2 * below * (1.0 - below) / b.n
    return np.asarray((one + other - 2.0 * tie * np.sqrt(one * other)) * total / np.maximum(total - 1.0, 1.0))


def _delta(a: _Side, b: _Side, tie: Floats, alpha: float) -> Limits:
    """By the logarithm; NaN where the interval of a mean reaches 0."""
    one, other = (a.error / a.mean) ** 2, (b.error / b.mean) ** 2
    df = (one + other) ** 2 / (one**2 / np.maximum(a.df, 1e-300) + other**2 / np.maximum(b.df, 1e-300))
    df = np.where(tie == 0.0, df, np.minimum(a.df, b.df))
    wide = _quantile(alpha, df) * np.sqrt(one + other - 2.0 * tie * np.sqrt(one * other))
    wide = np.where(_clear(a, alpha) & _clear(b, alpha), wide, math.nan)
    log = np.log(a.mean / b.mean)
    return np.exp(log - wide), np.exp(log + wide)


def _clear(side: _Side, alpha: float) -> Truths:
    """Whether the t interval of a mean lies above 0."""
    return np.asarray(side.mean > _quantile(alpha, side.df) * side.error)


def limits_to_highest(sample: Sample, alpha: float, *, rate: bool) -> Limits:
    """Limits of every group's mean divided by the largest; the largest itself is 1.

    Each holds with confidence 1 - alpha, whichever of the others turned out to be the largest.
    """
    shape, groups = sample.mean.shape, sample.mean.shape[-1]
    at = np.broadcast_to(np.arange(groups), shape)
    highest = np.broadcast_to(sample.mean.argmax(axis=-1)[..., None], shape)
    low, high = ratio_limits(sample, at, highest, alpha / max(groups - 1, 1), rate=rate)
    return np.where(at == highest, 1.0, low), np.where(at == highest, 1.0, high)


def smallest_limits(sample: Sample, alpha: float, *, rate: bool) -> Limits:
    """Interval of the smallest mean divided by the largest, from limits of all pairs that hold together."""
    one, other = np.triu_indices(sample.mean.shape[-1], 1)
    low, high = ratio_limits(sample, one, other, alpha / len(one), rate=rate)
    with np.errstate(divide="ignore"):
        least, most = np.minimum(low, 1.0 / high), np.minimum(high, 1.0 / low)
    return least.min(axis=-1), np.minimum(most.min(axis=-1), 1.0)
