"""Ratios of means: the score test inverted on a fine grid, the delta method in loops, and what must not matter."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtrit
from scipy.stats import binom
from strategies import examples

from felicific._statistics.gaps import limits_to_highest, ratio_limits, smallest_limits
from felicific._statistics.intervals import Sample, Ties

ONE, OTHER = np.array([0]), np.array([1])


def rates(hits, n, **more):
    """A sample of rates."""
    n, mean = np.array(n, dtype=float), np.array(hits, dtype=float) / np.array(n)
    return Sample(n, mean, np.sqrt(mean * (1 - mean)), np.zeros_like(mean), **more)


def likeliest(r, x, n):
    """The rate below the line at which what was seen is likeliest, if the other is r times it: on finer grids."""
    top = min(1.0, 1.0 / r)
    low, high = 0.0, top
    for _ in range(12):
        p = np.linspace(low, high, 41)
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = [
                k * np.log(q) if k else np.zeros_like(q)
                for k, q in ((x[0], r * p), (x[1], p), (n[0] - x[0], 1 - r * p), (n[1] - x[1], 1 - p))
            ]
        best = int(np.argmax(np.nan_to_num(sum(seen), nan=-np.inf)))
        low, high = p[max(best - 1, 0)], p[min(best + 1, 40)]
    return (low + high) / 2


def accepted(r, x, n, alpha):
    """Whether the score test with six tenths of the continuity correction does not reject the ratio r."""
    p = likeliest(r, x, n)
    total = sum(n)
    variance = (r * p * (1 - r * p) / n[0] + r * r * p * (1 - p) / n[1]) * total / (total - 1)
    away = abs(x[0] / n[0] - r * x[1] / n[1]) - 0.3 * (1 / n[0] + r / n[1])
    return away <= ndtri(1 - alpha / 2) * math.sqrt(max(variance, 0.0))


@given(st.data(), st.integers(3, 60), st.integers(3, 60), st.sampled_from([0.05, 0.01]))
@examples
def test_score_limits_against_a_grid(data, n, m, alpha):
    """The limits are the ends of the ratios that the test does not reject, tried one after another."""
    x = (data.draw(st.integers(0, n)), data.draw(st.integers(1, m)))
    low, high = (float(part[0]) for part in ratio_limits(rates(x, (n, m)), ONE, OTHER, alpha, rate=True))
    grid = np.exp(np.linspace(math.log(1e-3), math.log(1e3), 400))
    inside = [r for r in grid.tolist() if accepted(r, x, (n, m), alpha)]
    step = grid[1] / grid[0] * (1 + 1e-6)
    assert min(inside) / step <= max(low, 1e-3) <= min(inside) * (1 + 1e-6)
    assert max(inside) * (1 - 1e-6) <= min(high, 1e3) <= max(inside) * step
    assert (low == 0) == (x[0] == 0)


@given(st.integers(0, 40), st.integers(0, 25), st.sampled_from([0.1, 0.05, 1e-4]))
@examples
def test_who_stands_above_the_line_does_not_matter(x, y, alpha):
    """The limits of the ratio turned round are one divided by the limits."""
    sample = rates((x, y), (40, 25))
    low, high = (float(part[0]) for part in ratio_limits(sample, ONE, OTHER, alpha, rate=True))
    least, most = (float(part[0]) for part in ratio_limits(sample, OTHER, ONE, alpha, rate=True))
    assert low * most == pytest.approx(1.0, rel=1e-9) if low else math.isinf(most)
    assert high * least == pytest.approx(1.0, rel=1e-9) if least else math.isinf(high)
    assert low <= (x / 40) / (y / 25) <= high if x and y else True


def test_what_is_never_seen_is_left_open():
    """Nobody below the line: no upper limit. Nobody in either: nothing is known."""
    for hits, ends in (((3, 0), (True, True)), ((0, 0), (False, True)), ((0, 3), (False, False))):
        low, high = ratio_limits(rates(hits, (20, 30)), ONE, OTHER, 0.05, rate=True)
        assert (bool(low[0] > 0), bool(np.isinf(high[0]))) == ends


def test_delta_limits_against_loops():
    """The logarithm of the ratio plus and minus Welch's t times the error that follows from the two means."""
    rng = np.random.default_rng(0)
    values = [rng.lognormal(size=n) * scale for n, scale in ((40, 1.0), (90, 1.4), (25, 0.7))]
    n, mean, sd = (np.array([f(v) for v in values]) for f in (len, np.mean, lambda v: np.std(v, ddof=1)))
    sample = Sample(n.astype(float), mean, sd, np.zeros(3))
    for a, b in combinations(range(3), 2):
        low, high = ratio_limits(sample, np.array([a]), np.array([b]), 0.1, rate=False)
        parts = [(sd[z] / mean[z]) ** 2 / n[z] for z in (a, b)]
        df = sum(parts) ** 2 / sum(part**2 / (n[z] - 1) for part, z in zip(parts, (a, b), strict=True))
        wide = stdtrit(df, 0.95) * math.sqrt(sum(parts))
        ends = [mean[a] / mean[b] * math.exp(side * wide) for side in (-1, 1)]
        assert [low[0], high[0]] == pytest.approx(ends, rel=1e-12)


def test_no_interval_where_a_mean_may_be_zero():
    """A t interval of a mean that reaches 0 leaves every ratio open; in another unit just the same."""
    for unit in (1.0, 1e-30, 1e30):
        sample = Sample(
            np.array([9.0, 50.0]), np.array([1.0, 2.0]) * unit, np.array([2.0, 1.0]) * unit, np.zeros(2)
        )
        low, high = ratio_limits(sample, ONE, OTHER, 0.05, rate=False)
        assert (low[0], high[0]) == (0.0, math.inf)
        clear = ratio_limits(sample, ONE, OTHER, 0.3, rate=False)
        assert 0.0 < clear[0][0] < 0.5 < clear[1][0] < math.inf
        assert smallest_limits(sample, 0.05, rate=False) == (0.0, 1.0)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=6).filter(any), st.sampled_from([True, False]))
@examples
def test_the_smallest_ratio_is_of_all_pairs(hits, rate):
    """Its ends are the least of the ends of every pair, either way round; rows pay for who may be the largest."""
    n = [30 + 7 * z for z in range(len(hits))]
    sample, count = rates(hits, n), len(hits)
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    alpha = 0.05 / (len(pairs) / 2)
    ends = [ratio_limits(sample, np.array([a]), np.array([b]), alpha, rate=rate) for a, b in pairs]
    low, high = smallest_limits(sample, 0.05, rate=rate)
    assert low == pytest.approx(min(end[0][0] for end in ends), rel=1e-9)
    assert high == pytest.approx(min(1.0, *(end[1][0] for end in ends)), rel=1e-9)
    top = int(sample.mean.argmax())
    rows = limits_to_highest(sample, 0.05, rate=rate)
    for z in range(count):
        pair = ratio_limits(sample, np.array([z]), np.array([top]), 0.05 / (count - 1), rate=rate)
        expected = (1.0, 1.0) if z == top else (pair[0][0], pair[1][0])
        assert (rows[0][z], rows[1][z]) == pytest.approx(expected, rel=1e-12)


def test_many_data_sets_at_once_are_each_of_them():
    """Samples of shape (data sets, groups) give the limits of every data set alone."""
    hits, n = np.array([[3, 9, 0], [20, 1, 12], [5, 5, 30]]), np.array([30.0, 25.0, 31.0])
    mean = hits / n
    every = Sample(np.broadcast_to(n, mean.shape), mean, np.sqrt(mean * (1 - mean)), np.zeros((3, 3)))
    for limits in (limits_to_highest, smallest_limits):
        together = limits(every, 0.05, rate=True)
        for i in range(3):
            alone = limits(rates(hits[i], n), 0.05, rate=True)
            assert np.array_equal(np.array([side[i] for side in together]), np.array(alone))


@pytest.mark.parametrize("rate", [True, False])
def test_groups_that_move_together_are_told_apart_better(rate):
    """What clusters have in common narrows the ratio, what they have against each other widens it; none, nothing."""
    df = np.array([40.0, 30.0])

    def width(tie):
        ties = None if tie is None else Ties(np.array([[1.0, tie], [tie, 1.0]]), np.zeros((2, 2)))
        low, high = ratio_limits(rates((12, 20), (60, 55), df=df, ties=ties), ONE, OTHER, 0.05, rate=rate)
        return math.log(high[0] / low[0])

    if rate:
        assert width(None) == width(0.0)
    assert width(0.6) < width(0.0) < width(-0.6)
    assert width(1.0) == width(0.0), "groups that always move together say nothing"


def test_few_units_have_no_interval():
    """Without a degree of freedom nothing is known; with few the interval is wider than with many."""
    wide = [
        ratio_limits(rates((12, 20), (60, 55), df=np.array([df, 50.0])), ONE, OTHER, 0.05, rate=True)
        for df in (0.5, 3.0, 500.0)
    ]
    assert (wide[0][0][0], wide[0][1][0]) == (0.0, math.inf)
    assert wide[1][0][0] < wide[2][0][0]
    assert wide[1][1][0] > wide[2][1][0]


@pytest.mark.parametrize("n", [10, 14, 20, 40])
def test_no_rate_is_covered_badly(n):
    """Against a group so large that its rate is known, every rate from .02 on is covered at least .93 of the time."""
    x, most = np.arange(n + 1), 10**9
    mean = np.stack([x / n, np.full(n + 1, 0.5)], axis=1)
    sample = Sample(
        np.array([[n, most]] * (n + 1), dtype=float), mean, np.zeros_like(mean), np.zeros_like(mean)
    )
    low, high = (part[:, 0] / 2 for part in ratio_limits(sample, ONE, OTHER, 0.05, rate=True))
    rates_tried = np.linspace(0.02, 0.95, 400)
    chance = binom.pmf(x, n, rates_tried[:, None])
    held = (low <= rates_tried[:, None]) & (rates_tried[:, None] <= high)
    assert (chance * held).sum(axis=1).min() >= 0.93


@pytest.mark.parametrize(("groups", "n", "p"), [(2, 10, 0.05), (5, 50, 0.3), (8, 100, 0.1), (5, 10_000, 0.9)])
def test_ratios_hold_as_often_as_stated(groups, n, p):
    """Of equal groups .91 of the rows hold, and .93 of the smallest ratios; naive ones of five or more do not."""
    draws = 2_000
    mean = np.random.default_rng(7).binomial(n, p, (draws, groups)) / n
    mean = mean[mean.max(axis=1) > 0]
    sample = Sample(np.full(mean.shape, float(n)), mean, np.sqrt(mean * (1 - mean)), np.zeros_like(mean))
    low, high = limits_to_highest(sample, 0.05, rate=True)
    row = np.arange(groups) != mean.argmax(axis=1)[:, None]
    assert ((low <= 1) & (high >= 1))[row].mean() >= 0.91
    low, high = smallest_limits(sample, 0.05, rate=True)
    assert ((low <= 1) & (high >= 1)).mean() >= 0.93
    if groups > 2:
        ends = mean.argmin(axis=1)[:, None], mean.argmax(axis=1)[:, None]
        low, high = ratio_limits(sample, *ends, 0.05, rate=True)
        assert ((low <= 1) & (high >= 1)).mean() < 0.9
