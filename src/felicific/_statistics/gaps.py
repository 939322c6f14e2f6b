r"""Gaps: intervals and tests for the largest group mean minus the smallest.

The largest of some estimates is biased upwards, and an interval around it that ignores how it was chosen covers 64 %
of the time at a true gap of 0 with six groups. Two valid ways: the studentised range, which holds for all pairs of
groups at once (large samples; for two groups it is Welch's t), and limits of every group's mean that hold together
(Bonferroni; as exact as those limits).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from felicific._statistics.intervals import Limits, Sample, hall_inverse
from felicific._typing import Codes, Floats, Truths

RANGE = "studentised range (large sample)"
WELCH = "Welch's t (large sample)"


# ---------------------------------------------------------------------------------------------------------
# The studentised range


@lru_cache(maxsize=64)
def _nodes(count: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(count)
    return x, w


def range_tail(q: float, n_groups: int, df: float) -> float:
    r"""Probability that the studentised range of that many normal means exceeds q.

    .. math:: P(Q \le q) = E_s \Big[ G \int \varphi(x) (\Phi(x) - \Phi(x - q s))^{G-1} dx \Big], \quad
              \nu s^2 \sim \chi^2_\nu
    """
    from scipy.special import gammaincinv, ndtr, stdtr

    if q <= 0:
        return 1.0
    if n_groups == 2:
        return float(2.0 * stdtr(df, -q / math.sqrt(2.0))) if math.isfinite(df) else _normal_tails(q)
    x, w = _nodes(160)
    x, w = 9.0 * x, 9.0 * w
    p, share = _nodes(120)
    if math.isfinite(df):
        # Nodes crowd at both ends, where the quantile is steep.
        angle = math.pi / 2.0 * (p + 1.0) / 2.0
        chance, share = np.sin(angle) ** 2, share * math.pi / 4.0 * 2.0 * np.sin(angle) * np.cos(angle)
        s = np.sqrt(2.0 * gammaincinv(df / 2.0, chance) / df)
    else:
        s, share = np.ones(1), np.ones(1)
    density = np.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi)
    # The largest of the group is at x: the others lie within the range below it.
    inner = ndtr(x)[None, :] - ndtr(x[None, :] - q * s[:, None])
    below = n_groups * (inner ** (n_groups - 1)) @ (w * density)
    return float(min(max(share @ (1.0 - below), 0.0), 1.0))


def _normal_tails(q: float) -> float:
    return math.erfc(q / 2.0)


@lru_cache(maxsize=4096)
def range_quantile(alpha: float, n_groups: int, df: float) -> float:
    """The q that the studentised range exceeds with probability alpha."""
    from scipy.special import stdtrit

    if n_groups == 2 and math.isfinite(df):
        return float(math.sqrt(2.0) * stdtrit(df, 1.0 - alpha / 2.0))
    low, high = 0.0, 4.0
    while range_tail(high, n_groups, df) > alpha and high < 1e8:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if range_tail(middle, n_groups, df) > alpha else (low, middle)
        if high - low < 1e-9 * high:
            break
    return high


def _pairs(sample: Sample) -> tuple[Floats, Floats, Floats, Floats]:
    """Differences of all ordered pairs, their standard errors, Welch's degrees of freedom, and the fewest of those.

    Groups are the last axis of a sample here; others, of many data sets at once, may come before it.
    """
    one, other = _ordered(sample.n.shape[-1])
    variance, freedom = sample.error**2, sample.freedom
    sums = variance[..., one] + variance[..., other]
    known = np.isfinite(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = variance**2 / np.maximum(freedom, 1e-300)
        df = np.where(known, sums**2 / (parts[..., one] + parts[..., other]), 1.0)
        if sample.ties is not None:
            tie = sample.ties.correlation[..., one, other]
            apart = sums - 2.0 * tie * np.sqrt(variance[..., one] * variance[..., other])
            # Groups that always move together say nothing of how far apart they may move.
            sums = np.where(apart > 1e-12 * sums, apart, math.inf)
            df = np.where(tie == 0.0, df, np.minimum(freedom[..., one], freedom[..., other]))
            known = np.isfinite(sums)
    fewest = np.where(known, df, math.inf).min(axis=-1)
    fewest = np.maximum(np.where(np.isfinite(fewest), fewest, 1.0), 1.0)
    if sample.n.shape[-1] > 2:
        # Rounded down to two digits: quantiles hardly change, and far fewer of them have to be found.
        digit = 10.0 ** (np.floor(np.log10(fewest)) - 1.0)
        fewest = np.maximum(np.floor(fewest / digit) * digit, np.floor(fewest / 1.0).clip(max=10.0))
    return sample.mean[..., one] - sample.mean[..., other], np.sqrt(sums), df, fewest


def _ordered(n_groups: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    one, other = np.nonzero(~np.eye(n_groups, dtype=bool))
    return one, other


def _quantiles(alpha: float, n_groups: int, df: Floats) -> Floats:
    from scipy.special import stdtrit

    if n_groups == 2:
        return np.asarray(math.sqrt(2.0) * stdtrit(df, 1.0 - alpha / 2.0))
    different, place = np.unique(df, return_inverse=True)
    return np.array([range_quantile(alpha, n_groups, float(one)) for one in different])[place].reshape(
        df.shape
    )


def pair_limits(sample: Sample, alpha: float, *, corrected: bool = False) -> Limits:
    """Limits of the differences of all ordered pairs of group means that hold for all of them together.

    By the studentised range, for groups of any sizes and spreads (Games and Howell 1976). If ``corrected``, widened
    where Hall's correction for skewness asks for it.
    """
    difference, error, _, df = _pairs(sample)
    q = (_quantiles(alpha, sample.n.shape[-1], df) / math.sqrt(2.0))[..., None] * np.ones_like(error)
    below = above = q
    if corrected:
        g = _pair_skewness(sample, error)
        below, above = np.maximum(q, hall_inverse(q, g)), np.maximum(q, -hall_inverse(-q, g))
    return difference - below * error, difference + above * error


def range_interval(sample: Sample, alpha: float, *, corrected: bool = False) -> Limits:
    """Interval for the gap by the studentised range."""
    low, high = pair_limits(sample, alpha, corrected=corrected)
    return np.maximum(low.max(axis=-1), 0.0), high.max(axis=-1)


def range_p_values(sample: Sample, at_most: float, *, trusted: bool = False) -> tuple[float, float]:
    """p-values of "the gap is at most this" (small: it is more) and of "it is more" (small: it is at most this).

    The second needs no correction for the number of pairs, since all of them have to pass. Both are the larger of
    Welch's and of the one after Hall's correction for skewness. Where groups are too skewed even for that, and the
    sample is not ``trusted`` (a rate with enough successes and failures is), they are Chebyshev's and Cantelli's
    inequality: few people of a skewed group mostly show neither its mean nor its spread.
    """
    from scipy.special import stdtr

    n_groups = len(sample.n)
    difference, error, df, fewest = _pairs(sample)
    known = np.isfinite(error)
    t = np.where(known, difference - at_most, 0.0) / np.where(known, error, 1.0)
    g = _pair_skewness(sample, np.where(known, error, math.inf))
    corrected = t + g / 3.0 * t**2 + g**2 / 27.0 * t**3 + g / 6.0
    skewed = np.zeros_like(sample.skewed) if trusted else sample.skewed
    least, most = np.minimum(t, corrected), np.maximum(t, corrected)
    excess = float(least[known].max(initial=-math.inf))
    more = range_tail(math.sqrt(2.0) * excess, n_groups, float(fewest)) if excess > 0 else 1.0
    if skewed.any() and excess > 0:
        more = max(more, min(1.0, n_groups * (n_groups - 1) / 2.0 / excess**2))
    within = np.where(known, stdtr(df, most), 1.0)
    one, other = _ordered(n_groups)
    cantelli = np.where(most < 0, 1.0 / (1.0 + most**2), 1.0)
    return more, float(np.where(skewed[one] | skewed[other], np.maximum(within, cantelli), within).max())


def ratio_shown(sample: Sample, origin: float, ratio: float, level: float) -> bool:
    """Whether every mean is shown, at this level, to be at least ``ratio`` times every other, by large samples.

    Each pair by its own t test: all of them have to reject, so no correction is needed for their number. With fewer
    degrees of freedom of the two, and what ties their errors.
    """
    from scipy.special import stdtrit

    one, other = _ordered(len(sample.n))
    mean, error, freedom = sample.mean + origin, sample.error, sample.freedom
    variance = error[one] ** 2 + (ratio * error[other]) ** 2
    if sample.ties is not None:
        variance -= 2.0 * ratio * sample.ties.correlation[one, other] * error[one] * error[other]
    needed = stdtrit(np.minimum(freedom[one], freedom[other]), 1.0 - level) * np.sqrt(variance)
    return bool((mean[one] - ratio * mean[other] >= needed).all())


def _pair_skewness(sample: Sample, error: Floats) -> Floats:
    r"""Skewness of the difference of two means, :math:`(\mu_{3a}/n_a^2 - \mu_{3b}/n_b^2) / \mathrm{se}^3`."""
    one, other = _ordered(sample.n.shape[-1])
    third = sample.skewness * sample.sd**3 / np.maximum(sample.n, 1.0) ** 2
    apart = third[..., one] - third[..., other]
    if sample.ties is not None:
        # The cube of a difference: a^3 - 3 a^2 b + 3 a b^2 - b^3.
        size, tie = sample.sd / np.sqrt(np.maximum(sample.n, 1.0)), sample.ties.skewness
        a, b = size[..., one], size[..., other]
        apart = apart - 3.0 * a * b * (tie[..., one, other] * a - tie[..., other, one] * b)
    return np.asarray(apart / error**3)


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


def change_interval(before: Sample, after: Sample, change: Sample, alpha: float) -> Limits:
    r"""Interval for the gap afterwards minus the gap before, of the same people.

    With :math:`b_p, a_p` the differences of ordered pair p before and after, let :math:`a_p`, :math:`b_p` and
    :math:`d_p = a_p - b_p` be known to limits that hold together. The pair that makes the gap afterwards is among those
    whose :math:`a_p` may be largest, and the gap before is at least :math:`|b_p|` of it and at least the lower limit of
    any pair. So the gap grows by at most the largest :math:`a_p - \max(|b_p|, L)` that the limits of these pairs leave
    open; with before and after exchanged, it falls by at most so much.

    Groups are the last axis of the samples; others, of many ways of deciding, may come before it.
    """
    b, a, d = (pair_limits(sample, alpha / 3.0, corrected=True) for sample in (before, after, change))
    return -_most_growth(a, b, (-d[1], -d[0])), _most_growth(b, a, d)


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


# ---------------------------------------------------------------------------------------------------------
# Limits of every group's mean


def spread_of(limits: Limits) -> Limits:
    """Least and largest gap that limits of the group means leave open."""
    low, high = limits
    one, other = _ordered(low.shape[-1])
    least, most = low[..., one] - high[..., other], high[..., one] - low[..., other]
    return np.maximum(least.max(axis=-1), 0.0), most.max(axis=-1)


def limits_p_values(
    limits: Callable[[float], Limits], n_groups: int, at_most: float, alpha: float
) -> tuple[float, float]:
    """The same two p-values as :func:`range_p_values`, from limits of the means as a function of the tail.

    Found by halving on a logarithmic scale down to 1e-6, and rounded up.
    """

    def more(level: float) -> bool:
        return bool(spread_of(limits(level / (2.0 * n_groups)))[0] > at_most)

    def within(level: float) -> bool:
        return bool(spread_of(limits(level / 2.0))[1] <= at_most)

    return _least_level(more, alpha), _least_level(within, alpha)


def _least_level(rejects: Callable[[float], bool], alpha: float) -> float:
    """Least level at which a test rejects; the first look is at the level that decides."""
    low, high = (1e-6, alpha) if rejects(alpha) else (alpha, 1.0)
    if low == alpha and not rejects(1.0 - 1e-9):
        return 1.0
    if low < alpha and rejects(low):
        return low
    for _ in range(10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


def range_name(n_groups: int, *, rate: bool) -> str:
    """The studentised range in words; for two groups it is Welch's t."""
    return (WELCH if n_groups == 2 else RANGE) + (", a success and a failure added" if rate else "")


def limits_name(words: str) -> str:
    """Limits of every group's mean in words."""
    return f"limits of all group means together, {words}"


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
