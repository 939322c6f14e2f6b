"""What gap to expect of people who were not seen, when means were brought together on some who were."""

from __future__ import annotations

import math
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
    """Variances of shape (groups, components), each drawn a little towards that of all groups together.

    A small group may show no variance at all, and has some.
    """
    common = (n * variance).sum(axis=0) / n.sum(axis=0)
    return np.asarray((n * variance + BORROWED * common) / (n + BORROWED))


def expected_range(means: Floats, error: Floats) -> Floats:
    """Mean range, over groups, of means that are each off by a normal error.

    Parameters
    ----------
    means : array of shape (groups, components), or (ways, groups, components)
        Several ways of what the means may be count alike. A group of which nobody is counted, so that it is not a
        number, is compared with none.
    error : array of shape (groups, components)
        Standard deviations.
    """
    ways = means.reshape(-1, *means.shape[-2:])
    if len(error) == 2:
        apart = _expected_distance(ways[:, 0] - ways[:, 1], np.hypot(*error))
        return np.asarray(np.nan_to_num(apart).mean(axis=0))
    draws = _draws(error.shape[0])
    found = np.zeros(error.shape[1])
    for j in range(error.shape[1]):
        noise = draws * error[:, j]
        found[j] = np.mean([_mean_range(way[:, j], noise) for way in ways])
    return found


def _mean_range(means: Floats, noise: Floats) -> float:
    known = ~np.isnan(means)
    return float(np.ptp(means[known] + noise[:, known], axis=1).mean()) if known.any() else 0.0


def _expected_distance(apart: Floats, error: Floats) -> Floats:
    """Mean size of a difference that is off by a normal error: two groups need no draws."""
    from scipy.special import erf

    scale = np.where(error > 0, error, 1.0) * math.sqrt(2.0)
    size = error * math.sqrt(2.0 / math.pi) * np.exp(-((apart / scale) ** 2)) + apart * erf(apart / scale)
    return np.asarray(np.where(error > 0, size, np.abs(apart)))
