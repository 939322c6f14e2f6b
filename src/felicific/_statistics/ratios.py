r"""Ratios: how many times one group's mean is another's, and the smallest such ratio of all pairs of groups.

For rates the score interval of Miettinen and Nurminen (1985): all r with

.. math::
    |\hat p_1 - r \hat p_2| - \tfrac{c}{2} (1/n_1 + r/n_2) \le z \sqrt{\tilde V(r)}, \qquad
    \tilde V(r) = \frac{N}{N - 1} \Big( \frac{\tilde p_1 (1 - \tilde p_1)}{n_1}
                  + r^2 \frac{\tilde p_2 (1 - \tilde p_2)}{n_2} \Big)

with the likeliest rates :math:`\tilde p_1 = r \tilde p_2` and :math:`N = n_1 + n_2`. The second term on the left is
a part, c = .6, of the usual correction for counts being whole numbers: without it a group of ten is covered .895 of the
time at the worst rate above .02. For anything else the logarithm of the ratio with the error that follows from those of
the two means (delta method).

The largest mean is chosen after looking, so a ratio to it holds for every group that could have been the largest, and
the smallest ratio for every pair (Bonferroni).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from felicific._statistics.intervals import Limits, Sample
from felicific._typing import Codes, Floats, Truths

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
