"""Rates: Clopper and Pearson's limits, and the score test of two rates, exact over what is not known."""

from __future__ import annotations

import math

import numpy as np

from felicific._typing import Floats

#: From so many successes and failures on in both groups, the score test is exact enough by itself.
EXACT = 400.0

#: And beyond so many standard errors.
CLEAR = 6.0

#: The share of the level that is spent on where the second rate may lie (Berger and Boos 1994).
UNSURE = 0.02


def exact_limits(n: Floats, rate: Floats, tail: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits of a rate, of values that are 0 or 1."""
    from scipy.special import betaincinv

    hits = np.round(n * rate)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), n - hits + 1.0, tail), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1.0, np.maximum(n - hits, 1e-9), 1.0 - tail), 1.0)
    return low, high


def score(x: Floats | float, n: float, y: Floats | float, m: float, apart: float) -> Floats:
    """(x/n - y/m - apart) by its standard error if that is the difference (Farrington and Manning 1990)."""
    p, q = np.asarray(x) / n, np.asarray(y) / m
    ratio = m / n
    a, b = 1.0 + ratio, -(1.0 + ratio + p + ratio * q + apart * (ratio + 2.0))
    c, d = apart**2 + apart * (2.0 * p + ratio + 1.0) + p + ratio * q, -p * apart * (1.0 + apart)
    v = (b / (3 * a)) ** 3 - b * c / (6 * a * a) + d / (2 * a)
    u = np.where(v < 0, -1.0, 1.0) * np.sqrt(np.maximum((b / (3 * a)) ** 2 - c / (3 * a), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = (math.pi + np.arccos(np.clip(np.nan_to_num(v / u**3), -1.0, 1.0))) / 3.0
        one = np.clip(2.0 * u * np.cos(angle) - b / (3 * a), max(apart, 0.0), min(1.0, 1.0 + apart))
        error = np.sqrt(one * (1 - one) / n + (one - apart) * (1 - one + apart) / m)
        away = np.where(np.abs(p - q - apart) > 1e-12, p - q - apart, 0.0)
        return np.where(error > 0, away / error, np.where(away == 0.0, 0.0, np.sign(away) * math.inf))


def shows(x: float, n: float, y: float, m: float, apart: float, level: float) -> bool:
    """Whether x of n is shown to be a rate at most ``apart`` above that of y of m.

    The p-value of the score test is the largest over where the second rate may lie. Of every x the least y that is as
    extreme as what was seen bounds what is counted, so one p-value takes as many steps as there are people.
    """
    from scipy.special import bdtr, bdtrc, ndtri

    if not -1.0 < apart < 1.0:
        return apart > 0
    seen = float(score(x, n, y, m, apart))
    if min(x, n - x, y, m - y) >= EXACT or seen < -CLEAR:
        return bool(seen <= ndtri(level))
    if seen > ndtri(min(3.0 * level, 0.5)):
        return False
    low, high = (
        float(end[0]) for end in exact_limits(np.array([m]), np.array([y / m]), UNSURE * level / 2.0)
    )
    least, most = max(-apart, 0.0), min(1.0 - apart, 1.0)
    q = np.linspace(np.clip(low, least, most), np.clip(high, least, most), 32)
    p = np.clip(q + apart, 0.0, 1.0)
    reach = np.sqrt(p * (1 - p) / n) * 6 * n + 10
    xs = np.arange(max(int((n * p - reach).min()), 0), min(int((n * p + reach).max()), int(n)) + 1).astype(
        np.float64
    )
    first, last = np.zeros(len(xs), dtype=np.int64), np.full(len(xs), int(m) + 1, dtype=np.int64)
    while (first < last).any():
        middle = (first + last) // 2
        extreme = score(xs, n, np.minimum(middle, m), m, apart) <= seen + 1e-9
        first, last = (
            np.where(extreme | (first >= last), first, middle + 1),
            np.where(extreme, middle, last),
        )
    below = bdtr(xs[:, None], int(n), p)
    before = bdtr(xs[0] - 1.0, int(n), p) if xs[0] > 0 else np.zeros(len(p))
    chance = np.diff(below, axis=0, prepend=before[None])
    tail = np.where(last[:, None] > 0, bdtrc(np.maximum(last - 1.0, 0.0)[:, None], int(m), q), 1.0)
    return float((chance * tail).sum(axis=0).max()) + UNSURE * level <= level


def most_apart(x: float, n: float, y: float, m: float, level: float) -> float:
    """Upper limit of the first rate minus the second: that of the score test, moved outward until it is exact."""
    from scipy.special import ndtri

    low, apart, quantile = x / n - y / m, 1.0, ndtri(level)
    while apart - low > 1e-5:
        by = (low + apart) / 2.0
        extreme = float(score(x, n, y, m, by)) <= quantile
        low, apart = (low, by) if extreme else (by, apart)
    step = max(0.01 * (apart - x / n + y / m), 1e-5)
    while apart < 1.0 and not shows(x, n, y, m, apart, level):
        apart, step = apart + step, 1.5 * step
    return min(apart, 1.0)
