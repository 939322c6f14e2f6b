"""Distances between distributions: by a double loop over thresholds and pairs, and what their intervals promise."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import examples

from felicific._statistics import distributions as module
from felicific._statistics.distributions import EXPECTED, Distributions

AMOUNTS = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 1.0 + 1e-12, 7.0, 1e6])


@st.composite
def people(draw):
    """Few people of two to four groups with ties, weights, clusters; every group has somebody."""
    g = draw(st.integers(2, 4))
    codes = [*range(g), *draw(st.lists(st.integers(0, g - 1), max_size=12))]
    n = len(codes)
    amounts = draw(st.lists(AMOUNTS, min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=n, max_size=n))
    cluster = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return (
        np.array(amounts),
        np.array(codes),
        g,
        None if weight is None else np.array(weight),
        None if cluster is None else np.array(cluster),
    )


def share_above(amounts, codes, weight, z, threshold):
    """The weight of a group above a threshold, divided by all of it, by a loop."""
    total = above = 0.0
    for amount, code, w in zip(amounts, codes, weight, strict=True):
        if code == z:
            total += w
            above += w * (amount > threshold)
    return above / total


def naive_distances(amounts, codes, g, weight):
    """The largest difference of every pair of groups, over all thresholds."""
    weight = np.ones(len(codes)) if weight is None else weight
    return {
        (z, other): max(
            share_above(amounts, codes, weight, z, t) - share_above(amounts, codes, weight, other, t)
            for t in sorted(set(amounts))
        )
        for z, other in permutations(range(g), 2)
    }


@examples
@given(people())
def test_distance(case):
    """The distance, where it is reached and between whom, is what a double loop finds."""
    amounts, codes, g, weight, _ = case
    made = Distributions.of(amounts, codes, g, weight)
    naive = naive_distances(amounts, codes, g, weight)
    found, every = made.furthest, np.ones(len(codes)) if weight is None else weight
    assert found.distance == pytest.approx(max(naive.values()), abs=1e-12)
    shares = [share_above(amounts, codes, every, z, found.at) for z in range(g)]
    assert max(shares) - min(shares) == pytest.approx(found.distance, abs=1e-12)
    assert shares[found.more] - shares[found.less] == pytest.approx(found.distance, abs=1e-12)


@examples
@given(people(), st.sampled_from([0.01, 0.05, 0.3]))
def test_interval(case, alpha):
    """Limits are those of the worst pair, with margins of independent people, or of as many as tell as much."""
    amounts, codes, g, weight, cluster = case
    made = Distributions.of(amounts, codes, g, weight, sampling=True, cluster=cluster)
    every = np.ones(len(codes)) if weight is None else weight
    n = []
    for z in range(g):
        parts = {}
        for i in np.flatnonzero(codes == z):
            key = i if cluster is None else cluster[i]
            parts[key] = parts.get(key, 0.0) + every[i]
        n.append(sum(parts.values()) ** 2 / sum(part**2 for part in parts.values()))
    np.testing.assert_allclose(made.n, n, rtol=1e-12)
    margin = [math.sqrt(math.log(2 * g / alpha) / (2 * one)) for one in n]
    pairs = naive_distances(amounts, codes, g, weight)
    low = max([0.0, *(d - margin[z] - margin[o] for (z, o), d in pairs.items())])
    high = min(1.0, max(d + margin[z] + margin[o] for (z, o), d in pairs.items()))
    assert made.interval(alpha) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))
    # No wider than the distance and the two largest margins.
    assert high <= made.furthest.distance + sum(sorted(margin)[-2:]) + 1e-12


@examples
@given(people(), st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.sampled_from([0.01, 0.05, 0.3]))
def test_tests_and_limits_agree(case, at_most, alpha):
    """A p-value is below alpha just where the limits at alpha leave the allowed distance out."""
    made = Distributions.of(*case[:4])
    low, high = made.interval(alpha)
    more, less = made.p_values(at_most)
    assert (more < alpha) == (low > at_most) or abs(low - at_most) < 1e-9
    if high < 1.0:
        assert (less < alpha) == (high < at_most) or abs(high - at_most) < 1e-9


@examples
@given(people(), st.permutations(range(12)))
def test_invariant(case, order):
    """The order of rows, weights against repeats, names of groups, and units of the amount change nothing."""
    amounts, codes, g, weight, _ = case
    weight = None if weight is None else np.ceil(weight)
    made = Distributions.of(amounts, codes, g, weight)
    rows = np.array([i for i in order if i < len(codes)] + [*range(12, len(codes))])
    again = [
        Distributions.of(amounts[rows], codes[rows], g, None if weight is None else weight[rows]),
        Distributions.of(amounts, g - 1 - codes, g, weight),
    ]
    if weight is not None:
        times = weight.astype(int)
        again.append(Distributions.of(np.repeat(amounts, times), np.repeat(codes, times), g))
    for other in again:
        assert other.furthest.distance == pytest.approx(made.furthest.distance, abs=1e-12)
        assert other.interval(0.05) == pytest.approx(made.interval(0.05), abs=1e-12)
    scaled = Distributions.of(amounts * 1000.0, codes, g, weight).furthest
    assert scaled.distance == made.furthest.distance
    assert scaled.at == made.furthest.at * 1000.0


def test_as_scipy():
    """Of two groups it is the two-sample statistic, at a place where it is reached."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 300), rng.normal(0.3, 1.2, 170)
    made = Distributions.of(np.concatenate([a, b]), np.repeat([0, 1], [300, 170]), 2)
    known = stats.ks_2samp(a, b)
    assert made.furthest.distance == pytest.approx(known.statistic, abs=1e-12)
    assert made.furthest.at == known.statistic_location


def test_many_pairs(monkeypatch):
    """Where pairs are not compared one by one, limits are wider, and hold the others."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 3000)
    made = [Distributions.of(rng.normal(0, 1, 3000) + codes / 3, codes, 6) for _ in range(2)]
    exact = made[0].interval(0.05)
    monkeypatch.setattr(module, "MOST_DIFFERENCES", 10)
    wide = Distributions(made[0].amounts, made[0].mass, made[0].n)
    low, high = wide.interval(0.05)
    assert 0 < low <= exact[0]
    assert exact[1] <= high
    assert wide.p_values(0.1)[0] >= made[0].p_values(0.1)[0]
    assert wide.p_values(0.9)[1] >= made[0].p_values(0.9)[1]


def test_expected():
    """Between equal groups, chance shows on average what is expected: within 5 % at 400 rows each."""
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], 400)
    seen = [Distributions.of(rng.normal(size=800), codes, 2).furthest.distance for _ in range(400)]
    made = Distributions.of(rng.normal(size=800), codes, 2)
    assert made.expected == pytest.approx(EXPECTED * math.sqrt(2 / 400), rel=1e-12)
    assert np.mean(seen) == pytest.approx(made.expected, rel=0.05)
    assert math.isnan(Distributions.of(np.arange(6.0), np.arange(6) % 3, 3).expected)


#: Worlds in which intervals of means go wrong; each draws an amount, and the true distance is known.
WORLDS = {
    "atoms": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "nearly one value": lambda rng, n: np.where(rng.random(n) < 0.02, rng.lognormal(0, 3, n), 0.0),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("sizes", [(5, 5), (8, 400), (40, 40, 40)])
def test_coverage(world, sizes):
    """In hostile worlds the interval of a true distance of 0 holds it at least as often as it says."""
    rng = np.random.default_rng(7)
    codes, hits = np.repeat(np.arange(len(sizes)), sizes), 0
    for _ in range(300):
        made = Distributions.of(WORLDS[world](rng, len(codes)), codes, len(sizes))
        hits += made.interval(0.1)[0] == 0.0
    assert hits >= 0.9 * 300
