"""What gap to expect of people who were not seen, when means were brought together on some who were."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from felicific._typing import Floats

#: Normal draws, each with its opposite, so that the expectation is never below the gap itself.
DRAWS = 2_000

#: People of an average group who are added to every group's own when it is said how much its values vary.
BORROWED = 2.0


@lru_cache(maxsize=8)
def _draws(n_groups: int) -> Floats:
    half = np.random.default_rng(15).standard_normal((DRAWS, n_groups))
    return np.concatenate([half, -half])


def pooled_variance(variance: Floats, n: Floats) -> Floats:
    """Variances of shape (groups, measures), each drawn a little towards that of all groups together.

    A small group may show no variance at all, and has some.
    """
    common = (n * variance).sum(axis=0) / n.sum(axis=0)
    return np.asarray((n * variance + BORROWED * common) / (n + BORROWED))


def expected_range(means: Floats, error: Floats) -> Floats:
    """Mean range, over groups, of means that are each off by a normal error.

    Parameters
    ----------
    means, error : array of shape (groups, measures)
        The means, and the standard deviations of their errors. A group of which nobody is counted, so that its mean is
        not a number, is compared with none.
    """
    if len(error) == 2:
        return np.asarray(np.nan_to_num(_expected_distance(means[0] - means[1], np.hypot(*error))))
    return _drawn(means, error, lambda drawn: np.ptp(drawn, axis=1), 0.0)


def expected_ratio(means: Floats, error: Floats) -> Floats:
    """Mean of the smallest by the largest of means that are each off by a normal error, and never negative.

    Arguments are those of :func:`expected_range`. Where all are 0, the ratio is 1.
    """

    def ratio(drawn: Floats) -> Floats:
        low, high = (side(np.maximum(drawn, 0.0), axis=1) for side in (np.min, np.max))
        return np.asarray(np.divide(low, high, out=np.ones_like(low), where=high > 0))

    return _drawn(means, error, ratio, 1.0)


#: What to expect of a requirement, by what it makes of means.
EXPECTED: dict[str, Callable[[Floats, Floats], Floats]] = {"gap": expected_range, "ratio": expected_ratio}


def _drawn(means: Floats, error: Floats, made: Callable[[Floats], Floats], nobody: float) -> Floats:
    """Mean of what is made of means that are off, for every measure; ``nobody`` where no group is counted."""
    draws, found = _draws(len(error)), np.full(error.shape[1], nobody)
    for j, (mean, off) in enumerate(zip(means.T, error.T, strict=True)):
        known = ~np.isnan(mean)
        if known.any():
            found[j] = made(mean[known] + (draws * off)[:, known]).mean()
    return found


def _expected_distance(apart: Floats, error: Floats) -> Floats:
    """Mean size of a difference that is off by a normal error: two groups need no draws."""
    from scipy.special import erf

    scale = np.where(error > 0, error, 1.0) * math.sqrt(2.0)
    size = error * math.sqrt(2.0 / math.pi) * np.exp(-((apart / scale) ** 2)) + apart * erf(apart / scale)
    return np.asarray(np.where(error > 0, size, np.abs(apart)))
