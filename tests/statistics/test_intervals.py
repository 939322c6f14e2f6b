"""Intervals: against SciPy, against each other, and a coverage simulation that notices narrower ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from felicific._statistics.bets import by_group, count_bins
from felicific._statistics.gaps import Bets, LargeSamples, chance_gap, ordered_pairs, spread_of
from felicific._statistics.intervals import Sample, hall_limits, summarise
from felicific._statistics.rates import exact_limits


def large(sample, **more):
    """Groups by large samples."""
    return LargeSamples(sample.mean, sample, **more)


def gaps_of(found, alpha, **more):
    """Limits of the gap of many data sets, each by itself."""
    parts = (
        Sample(*(getattr(found, a)[r] for a in ("n", "mean", "sd", "skewness"))) for r in range(len(found.n))
    )
    return np.array([large(part, **more).gap(alpha) for part in parts]).T


def samples_of(values):
    """Summaries of data sets of shape (runs, groups, people)."""
    mean, sd = values.mean(axis=2), values.std(axis=2, ddof=1)
    skewness = stats.skew(values, axis=2)
    return Sample(np.full(mean.shape, float(values.shape[2])), mean, sd, skewness)


# ---------------------------------------------------------------------------------------------------------
# Coverage


def check_coverage(limits, truth, alpha):
    """Insist that intervals cover as often as they say, but for chance; returns how often they do."""
    covered = float(((limits[0] <= truth) & (truth <= limits[1])).mean())
    error = 3 * math.sqrt(alpha * (1 - alpha) / np.size(limits[0]))
    assert covered >= 1 - alpha - error, covered
    return covered


def narrower(limits):
    middle, half = (limits[0] + limits[1]) / 2, (limits[1] - limits[0]) / 2
    return middle - 0.8 * half, middle + 0.8 * half


@pytest.fixture(scope="module")
def normal():
    """Many data sets of two groups, whose true gap is 1: the tight case, in which nothing is conservative."""
    values = np.random.default_rng(0).normal(size=(5000, 2, 40))
    values[:, 1] = 1.0 + 1.5 * values[:, 1]
    return samples_of(values)


def test_large_sample_intervals_cover(normal):
    """Means are covered in 95 % of data sets; an interval 20 % narrower is found out. Gaps in no fewer."""
    limits, truth = hall_limits(normal, 0.025), np.array([0.0, 1.0])
    covered = check_coverage(limits, truth, 0.05)
    assert covered <= 0.97
    with pytest.raises(AssertionError):
        check_coverage(narrower(limits), truth, 0.05)
    gaps = gaps_of(Sample(*(getattr(normal, a)[:2000] for a in ("n", "mean", "sd", "skewness"))), 0.05)
    assert check_coverage(gaps, 1.0, 0.05) <= 0.97
    assert check_coverage((gaps[0], np.inf), 1.0, 0.025) <= 0.985
    assert check_coverage((-np.inf, gaps[1]), 1.0, 0.025) <= 0.985


def test_six_equal_groups_are_covered():
    """At a true gap of 0 with six groups intervals cover, where comparing the extremes does not."""
    found = samples_of(np.random.default_rng(1).normal(size=(1000, 6, 30)))
    check_coverage(gaps_of(found, 0.05), 0.0, 0.05)
    naive = []
    for run in range(500):
        one, other = found.mean[run].argmax(), found.mean[run].argmin()
        half = 1.96 * math.hypot(found.error[run, one], found.error[run, other])
        naive.append(found.mean[run, one] - found.mean[run, other] <= half)
    assert np.mean(naive) < 0.75
    bias = np.mean(np.ptp(found.mean, axis=1))
    stated = np.mean(
        [
            chance_gap(Sample(*(getattr(found, a)[r] for a in ("n", "mean", "sd", "skewness"))))
            for r in range(50)
        ]
    )
    assert bias == pytest.approx(stated, rel=0.05)


def test_rates_cover():
    """Clopper-Pearson always covers; with successes and failures added so does the large sample from np = 5 on."""
    rng = np.random.default_rng(2)
    for p, n in ((0.005, 1000), (0.05, 100), (0.5, 50)):
        hits = rng.binomial(n, p, (5000, 2))
        found = Sample(np.full(hits.shape, float(n)), hits / n, np.zeros(hits.shape), np.zeros(hits.shape))
        exact = exact_limits(found.n, found.mean, 0.025)
        check_coverage(exact, p, 0.05)
        check_coverage(large(found, rate=True).limits(0.025), p, 0.06)
        few = Sample(*(getattr(found, a)[:500] for a in ("n", "mean", "sd", "skewness")))
        check_coverage(gaps_of(few, 0.05, rate=True), 0.0, 0.06)
        check_coverage(spread_of(exact_limits(found.n, found.mean, 0.0125)), 0.0, 0.05)


def test_skewness_is_corrected():
    """Of lognormal values the corrected intervals miss far less often than t."""
    rng = np.random.default_rng(4)
    found = samples_of(rng.lognormal(0.0, 1.2, (4000, 1, 100)))
    truth, half = math.exp(0.72), stats.t.ppf(0.975, 99) * found.sd / 10.0
    plain = found.mean - half, found.mean + half
    missed, still = (
        1 - float(((x[0] <= truth) & (truth <= x[1])).mean()) for x in (plain, hall_limits(found, 0.025))
    )
    assert missed > 0.07
    assert still < 0.75 * missed


def test_the_test_of_a_small_gap_keeps_its_level():
    """That a gap is at most eps is wrongly shown in at most 5 % of data sets, skewed and unbalanced ones too."""
    rng = np.random.default_rng(5)
    shown = 0
    for _ in range(1500):
        values = np.concatenate([rng.lognormal(0.0, 0.5, 150), rng.exponential(1.0, 1000)])
        found = summarise(values[:, None], np.repeat([0, 1], [150, 1000]), 2).take(0)
        shown += large(found).p_values(abs(math.exp(0.125) - 1.0), 0.05)[1] <= 0.05
    assert shown / 1500 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1500)
    assert shown / 1500 >= 0.03


@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("sizes", [(30, 1500), (100, 1500), (30, 30), (30, 200, 1000)])
def test_more_keeps_its_level_for_skewed_values(sigma, sizes):
    """Of lognormal groups with equal means, "more" is shown in at most 5 %; "at most" is never by large samples."""
    rng = np.random.default_rng(8)
    runs, wrong, codes = 300, 0, np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(runs):
        values = rng.lognormal(0.0, sigma, len(codes))
        wrong += large(summarise(values[:, None], codes, len(sizes)).take(0)).p_values(0.0, 0.05)[0] <= 0.05
    assert wrong / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_a_gap_that_is_plain_is_shown_in_skewed_groups_too():
    """A fifth of the error is careful and not mute: far apart is far apart."""
    rng = np.random.default_rng(9)
    codes = np.repeat([0, 1], 400)
    values = rng.lognormal(0.0, 1.2, 800) + 2.0 * codes
    found = summarise(values[:, None], codes, 2).take(0)
    assert found.skewed.any()
    assert large(found).p_values(0.5, 0.05)[0] <= 0.05
    assert large(found).p_values(4.0, 0.05)[1] <= 0.05


# ---------------------------------------------------------------------------------------------------------
# Against each other


def naive_gap(means, tail):
    """The largest upper limit of all ordered pairs."""
    return max(
        means.most_apart(a, b, tail)
        for a, b in zip(*map(np.ndarray.tolist, ordered_pairs(len(means.mean))), strict=True)
    )


def three_ways(values, codes, groups):
    """The same values by bets and by large samples."""
    sample = summarise(values[:, None], codes, groups).take(0)
    counted = by_group(count_bins(values, codes, (0.0, 2.0), None), groups)
    return Bets(sample.mean, counted, (0.0, 2.0)), large(sample)


def test_a_gap_is_at_most_what_every_pair_is():
    """The upper limit is that of all ordered pairs, and the p-values say what the limits say."""
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(3), 30)
    for _ in range(5):
        values = rng.random(90) + np.repeat([0.0, 0.1, 0.3 * rng.random()], 30)
        for means in three_ways(values, codes, 3):
            high = means.most(0.05)
            assert high == pytest.approx(naive_gap(means, 0.05))
            low = means.least(0.05)
            for at_most in (0.5 * low, 0.9 * low, 1.1 * low + 1e-3, 0.9 * high, 1.1 * high):
                more, within = means.p_values(at_most, 0.05)
                assert (within <= 0.05) == (high <= at_most)
                if means.proof and at_most >= 0.0:
                    assert (more <= 0.05) == (low > at_most)


@pytest.mark.parametrize("groups", [13, 60])
def test_of_many_groups_the_furthest_are_compared(groups):
    """Limits hold what those of all pairs hold, at a little more than the error that is spent on finding them."""
    rng = np.random.default_rng(groups)
    codes = np.repeat(np.arange(groups), 40)
    for means in three_ways(rng.random(40 * groups) + 0.4 * rng.random(groups)[codes], codes, groups):
        every, found = naive_gap(means, 0.025), means.most(0.025)
        assert found >= every - 1e-9
        assert found <= 1.25 * every


def test_pairs_are_mirror_images():
    """The limits of one group minus another are those of the other minus the one, turned around."""
    rng = np.random.default_rng(11)
    one, other = ordered_pairs(3)
    for means in three_ways(rng.random(60), np.repeat([0, 1, 2], 20), 3):
        low, high = means.pair_limits(0.05)
        for p in range(6):
            q = int(np.flatnonzero((one == other[p]) & (other == one[p]))[0])
            assert low[p] == pytest.approx(-high[q])
            assert low[p] < means.mean[one[p]] - means.mean[other[p]] < high[p]


# ---------------------------------------------------------------------------------------------------------
# Samples and betting


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(-1e3, 1e3), st.integers(1, 4)), min_size=1, max_size=30),
    st.floats(-1e9, 1e9),
)
def test_summaries_are_the_naive_ones(rows, offset):
    """Counts, means, deviations and skewness by group are NumPy's on repeated rows, whatever the offset."""
    codes, values, weight = (np.array(column) for column in zip(*rows, strict=True))
    found = summarise(values[:, None] + offset, codes, 3, weight=weight.astype(float)).take(0)
    for z in range(3):
        part = np.repeat(values[codes == z] + offset, weight[codes == z])
        assert found.n[z] == len(part)
        if not len(part):
            continue
        tolerance = 1e-9 + 1e-13 * abs(offset)
        assert found.mean[z] == pytest.approx(part.mean(), rel=1e-9, abs=tolerance)
        if len(part) > 1:
            assert found.sd[z] == pytest.approx(part.std(ddof=1), rel=1e-6, abs=10 * tolerance)
        if len(part) > 1 and part.std() > 1e-3 + 1e-6 * abs(offset):
            assert found.skewness[z] == pytest.approx(stats.skew(part), rel=1e-4, abs=1e-4)


def test_tiny_values_have_no_skewness_of_their_own():
    """Values whose cubes are too small for a computer are summed up without a warning."""
    found = summarise(np.array([[0.0], [7.9e-135]]), np.zeros(2, dtype=np.intp), 1)
    assert found.sd[0, 0] > 0.0
    assert found.skewness[0, 0] == 0.0


def test_one_person_gives_the_whole_range():
    """Whose spread nobody knows."""
    one = summarise(np.array([[5.0]]), np.array([0]), 1).take(0)
    assert [float(side[0]) for side in hall_limits(one, 0.025)] == [-math.inf, math.inf]
    assert [float(side[0]) for side in large(one, bounds=(0.0, 9.0)).limits(0.025)] == [0.0, 9.0]
