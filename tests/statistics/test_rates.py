"""Rates: the exact test of two of them, by enumeration of everything that could have been seen."""

import numpy as np
import pytest
from scipy import stats

from felicific._statistics import rates
from felicific._statistics.gaps import Rates


@pytest.mark.parametrize(("n", "m"), [(8, 8), (5, 20), (20, 5)])
@pytest.mark.parametrize("apart", [-0.2, 0.0, 0.3])
def test_the_level_holds_for_every_rate(n, m, apart):
    """Of all tables together those that show it are at most as likely as the level, whatever the second rate is."""
    level = 0.05
    shown = np.array([[rates.shows(x, n, y, m, apart, level) for y in range(m + 1)] for x in range(n + 1)])
    q = np.linspace(max(-apart, 0.0), min(1.0 - apart, 1.0), 101)
    one = stats.binom.pmf(np.arange(n + 1)[:, None], n, np.clip(q + apart, 0, 1))
    other = stats.binom.pmf(np.arange(m + 1)[:, None], m, q)
    chance = np.einsum("xq,xy,yq->q", one, shown, other)
    assert chance.max() <= level


def test_the_score_is_that_of_the_likeliest_rates():
    """Its standard error is that of the rates apart by so much under which the counts are likeliest."""
    for x, n, y, m, apart in ((12, 40, 9, 60, 0.05), (3, 40, 20, 60, -0.1), (39, 40, 20, 60, 0.4)):
        q = np.linspace(max(-apart, 0.0), min(1.0 - apart, 1.0), 200_001)[1:-1]
        likely = stats.binom.logpmf(x, n, q + apart) + stats.binom.logpmf(y, m, q)
        best = q[likely.argmax()]
        error = np.sqrt((best + apart) * (1 - best - apart) / n + best * (1 - best) / m)
        found = float(rates.score(x, n, y, m, apart))
        assert found == pytest.approx((x / n - y / m - apart) / error, rel=1e-4)


@pytest.mark.parametrize(
    ("x", "n", "y", "m"), [(0, 10, 0, 10), (10, 10, 0, 12), (3, 90, 40, 2000), (450, 1000, 900, 2000)]
)
def test_limits_are_where_the_test_begins_to_show(x, n, y, m):
    """At the upper limit it is shown, and well within it is not."""
    high = rates.most_apart(x, n, y, m, 0.025)
    assert x / n - y / m <= high <= 1.0
    assert rates.shows(x, n, y, m, high, 0.025)
    if high < 1.0:
        assert not rates.shows(x, n, y, m, high - 0.1 * (high - x / n + y / m), 0.025)


def test_gaps_of_rates_are_covered():
    """Also where all groups have the same rare rate, and of several groups."""
    rng = np.random.default_rng(1)
    for p in (np.array([0.02, 0.02]), np.array([0.1, 0.2, 0.15]), np.array([0.98, 0.6])):
        wrong, runs = 0, 200
        for _ in range(runs):
            n = np.array([60.0, 90.0, 200.0])[: len(p)]
            low, high = Rates(rng.binomial(n.astype(int), p) / n, n).gap(0.1)
            wrong += not low <= np.ptp(p) <= high
        assert wrong / runs <= 0.1
