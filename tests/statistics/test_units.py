"""Sampling weights and clusters: linearised errors against loops, jackknifes and repeated rows; how often they hold."""

import math

import numpy as np
import pytest

from felicific._statistics.gaps import LargeSamples, _differences, chance_gap, ordered_pairs
from felicific._statistics.intervals import hall_limits, sample_of, summarise


def draw(seed, n=240, clusters=30, groups=3):
    """Values, groups, weights and clusters, which hold people of several groups."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, n)
    values = rng.lognormal(size=n) + rng.normal(size=clusters)[cluster] + 40.0
    return values, rng.integers(0, groups, n), rng.lognormal(size=n), cluster


def naive(values, codes, weight, unit, groups=3):
    """What every unit adds to the error of each group's mean, corrected for few units; means; degrees of freedom."""
    units = sorted(set(unit.tolist()))
    added, means, df = np.zeros((len(units), groups)), [], []
    for z in range(groups):
        rows = [i for i in range(len(values)) if codes[i] == z]
        total = math.fsum(weight[i] for i in rows)
        mean = math.fsum(weight[i] * values[i] for i in rows) / total
        size = [math.fsum(weight[i] for i in rows if unit[i] == c) for c in units]
        second, third, fourth = (math.fsum(s**k for s in size) for k in (2, 3, 4))
        few = 1.0 - 2.0 * third / (total * second) + second / total**2
        for k, c in enumerate(units):
            away = math.fsum(weight[i] * (values[i] - mean) for i in rows if unit[i] == c)
            added[k, z] = away / total / math.sqrt(few)
        means.append(mean)
        df.append(second**2 / fourth - 1.0)
    return added, np.array(means), np.array(df)


def large(sample, **more):
    """Groups by large samples."""
    return LargeSamples(sample.mean, sample, **more)


@pytest.mark.parametrize("kind", ["sampling", "clusters", "both"])
def test_errors_are_those_of_a_loop_over_units(kind):
    """Mean, standard error, degrees of freedom and skewness; and of differences, whose clusters are the same ones."""
    values, codes, weight, cluster = draw(1)
    weight = np.ones(len(values)) if kind == "clusters" else weight
    unit = np.arange(len(values)) if kind == "sampling" else cluster
    found = sample_of(
        values[:, None],
        codes,
        3,
        weight=weight,
        sampling=kind != "clusters",
        cluster=None if kind == "sampling" else cluster,
    ).take(0)
    added, means, df = naive(values, codes, weight, unit)
    errors = np.sqrt((added**2).sum(axis=0))
    np.testing.assert_allclose(found.mean, means, rtol=1e-12)
    np.testing.assert_allclose(found.error, errors, rtol=1e-9)
    np.testing.assert_allclose(found.freedom, df, rtol=1e-9)
    skewness = (added**3).sum(axis=0) / errors**3
    np.testing.assert_allclose(found.skewness / np.sqrt(found.n), skewness, rtol=1e-8)
    assert (found.ties is None) == (kind == "sampling")
    between = [
        math.sqrt(((added[:, a] - added[:, b]) ** 2).sum()) for a in range(3) for b in range(3) if a != b
    ]
    np.testing.assert_allclose(_differences(found, *ordered_pairs(3))[1], between, rtol=1e-9)


def test_the_skewness_of_differences_is_that_of_units():
    """Corrected limits of two groups that share clusters are those of the differences by cluster, as one sample."""
    rng = np.random.default_rng(3)
    one, other = rng.lognormal(0, 1.2, 40), rng.lognormal(0, 0.8, 40)
    values, codes = np.concatenate([one, other]), np.repeat([0, 1], 40)
    found = sample_of(values[:, None], codes, 2, cluster=np.tile(np.arange(40), 2)).take(0)
    paired = summarise((one - other)[:, None], np.zeros(40, dtype=np.intp), 1).take(0)
    low, high = large(found).pair_limits(0.05)
    expected = hall_limits(paired, 0.025)
    assert (low[0], high[0]) == pytest.approx((expected[0][0], expected[1][0]), rel=1e-9)
    assert chance_gap(found) == pytest.approx(paired.error[0] * math.sqrt(2 / math.pi), rel=0.01)


def test_equal_weights_and_clusters_of_one_change_nothing():
    """Sampling weights that are all 3, and a cluster for every row, give the sample of rows without either."""
    values, codes, _, _ = draw(2)
    plain = summarise(values[:, None], codes, 3).take(0)
    for found in (
        sample_of(values[:, None], codes, 3, weight=np.full(240, 3.0), sampling=True).take(0),
        sample_of(values[:, None], codes, 3, cluster=np.arange(240)).take(0),
    ):
        for name in ("n", "mean", "sd", "skewness", "error"):
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-9)
        np.testing.assert_allclose(found.freedom, plain.n - 1.0, rtol=1e-9)
        assert large(found).gap(0.05) == pytest.approx(large(plain).gap(0.05), rel=1e-9)


def test_rows_of_one_person_count_once():
    """Every row seven times, in clusters, is every row once; weights of 7 would have been seven people."""
    values, codes, weight, _ = draw(4)
    once = sample_of(values[:, None], codes, 3, weight=weight, sampling=True).take(0)
    rows = np.repeat(np.arange(240), 7)
    again = sample_of(values[rows, None], codes[rows], 3, weight=weight[rows], sampling=True, cluster=rows)
    for name in ("mean", "error", "freedom"):
        np.testing.assert_allclose(getattr(again.take(0), name), getattr(once, name), rtol=1e-9)
    assert again.ties is None
    naive_error = sample_of(values[rows, None], codes[rows], 3, weight=weight[rows], sampling=True).error
    assert (naive_error[:, 0] < 0.5 * once.error).all()


def test_errors_are_close_to_the_jackknife():
    """Leaving out one unit after the other, which assumes nothing of this, comes to the same within some percent."""
    values, codes, weight, cluster = draw(5, n=3000, clusters=200, groups=2)
    for unit, found in (
        (np.arange(3000), sample_of(values[:, None], codes, 2, weight=weight, sampling=True).take(0)),
        (
            cluster,
            sample_of(values[:, None], codes, 2, weight=weight, sampling=True, cluster=cluster).take(0),
        ),
    ):
        for z in (0, 1):
            rows = codes == z
            w, v, u = weight[rows], values[rows], np.unique(unit[rows], return_inverse=True)[1]
            size, total = np.bincount(u, w), np.bincount(u, w * v)
            left = (total.sum() - total) / (size.sum() - size)
            jackknife = math.sqrt((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum())
            assert found.error[z] == pytest.approx(jackknife, rel=0.03)


def test_what_says_nothing_gets_no_interval():
    """One row of all the weight, one cluster, clusters that are all alike, nobody: no NaN, and no width of 0."""
    values, codes = np.array([[1.0], [2.0], [3.0], [5.0]]), np.array([0, 0, 1, 1])
    heavy = sample_of(values, codes, 3, weight=np.array([1.0, 1e9, 1.0, 1.0]), sampling=True).take(0)
    assert heavy.silent.tolist() == [True, False, True]
    alone = sample_of(values, codes, 2, cluster=np.array([0, 0, 1, 2])).take(0)
    assert alone.silent.tolist() == [True, False]
    alike = sample_of(
        np.array([[0.0], [1.0]] * 4), np.zeros(8, dtype=np.intp), 1, cluster=np.arange(8) // 2
    ).take(0)
    assert alike.silent.all()
    rate = large(alike, rate=True).limits(0.025)
    assert (rate[0][0] < 0.25, rate[1][0] > 0.75) == (True, True)  # as if four people had been seen
    together = np.tile(np.arange(20.0), 2)[:, None]
    tied = sample_of(together, np.repeat([0, 1], 20), 2, cluster=np.tile(np.arange(20), 2)).take(0)
    assert [float(limit) for limit in large(tied).gap(0.05)] == [0.0, math.inf]
    for found in (heavy, alone, alike, tied):
        assert all(
            not np.isnan(part).any() for part in (found.n, found.mean, found.sd, found.skewness, found.df)
        )


def share(low, high, truth):
    return float(((low <= truth) & (truth <= high)).mean())


def test_survey_weights_cover_and_frequencies_do_not():
    """150 people of weight 100 or 900, the heavy ones varying more: 95 % by rows; as frequencies fewer than 15 %."""
    rng = np.random.default_rng(0)
    covered = np.zeros((2, 1500), dtype=bool)
    zeros = np.zeros(150, dtype=np.intp)
    for run in range(1500):
        heavy = rng.random(150) < 0.4
        weight, values = np.where(heavy, 900.0, 100.0), rng.normal(size=150) * np.where(heavy, 3.0, 1.0)
        for k, sampling in enumerate((True, False)):
            low, high = hall_limits(
                sample_of(values[:, None], zeros, 1, weight=weight, sampling=sampling), 0.025
            )
            covered[k, run] = low[0, 0] <= 0.0 <= high[0, 0]
    assert 0.935 <= covered[0].mean() <= 0.975
    assert covered[1].mean() <= 0.15


def test_clusters_that_span_groups_cover():
    """25 branches that differ, with people of both groups: means and gap at 95 %; as independent rows far fewer."""
    rng = np.random.default_rng(1)
    branch = np.repeat(np.arange(25), 16)
    codes = np.tile([0, 1], 200)
    means, gaps, naive_means = [], [], []
    for _ in range(1500):
        values = (rng.normal(size=25)[branch] + rng.normal(size=400) + 0.3 * codes)[:, None]
        found = sample_of(values, codes, 2, cluster=branch).take(0)
        low, high = hall_limits(found, 0.025)
        means.append(low[0] <= 0.0 <= high[0])
        low, high = hall_limits(summarise(values, codes, 2).take(0), 0.025)
        naive_means.append(low[0] <= 0.0 <= high[0])
        least, most = large(found).gap(0.05)
        gaps.append((least <= 0.3 <= most, most - least))
    assert 0.935 <= np.mean(means) <= 0.965
    assert np.mean(naive_means) <= 0.7
    assert 0.935 <= np.mean([covered for covered, _ in gaps]) <= 0.985
    # What branches have in common moves no gap: 0.2 is the error of 200 against 200 independent people.
    assert np.mean([width for _, width in gaps]) < 2 * 2.2 * math.sqrt(2 / 200)
