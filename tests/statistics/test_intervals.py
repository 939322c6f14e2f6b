"""Intervals: against SciPy, against each other, and a coverage simulation that notices narrower ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from felicific._statistics.betting import betting_limits, hashed_orders
from felicific._statistics.gaps import (
    chance_gap,
    limits_p_values,
    pair_limits,
    range_interval,
    range_p_values,
    range_quantile,
    range_tail,
    spread_of,
)
from felicific._statistics.intervals import (
    Sample,
    bernstein_limits,
    exact_limits,
    hall_limits,
    hoeffding_width,
    mean_limits,
    summarise,
    t_limits,
    with_added,
)


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
    """Means and gaps are covered in 95 % of data sets; an interval 20 % narrower is found out."""
    for limits, truth in (
        (t_limits(normal, 0.025), np.array([0.0, 1.0])),
        (range_interval(normal, 0.05), 1.0),
    ):
        covered = check_coverage(limits, truth, 0.05)
        assert covered <= 0.96
        with pytest.raises(AssertionError):
            check_coverage(narrower(limits), truth, 0.05)


def test_six_equal_groups_are_covered():
    """At a true gap of 0 with six groups the studentised range covers, where comparing the extremes does not."""
    found = samples_of(np.random.default_rng(1).normal(size=(3000, 6, 30)))
    check_coverage(range_interval(found, 0.05), 0.0, 0.05)
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
        check_coverage(mean_limits("added", found, 0.025), p, 0.06)
        check_coverage(range_interval(with_added(found, 1.0), 0.05), 0.0, 0.06)
        check_coverage(spread_of(exact_limits(found.n, found.mean, 0.0125)), 0.0, 0.05)


@pytest.mark.parametrize("kind", ["rate", "beta", "two points"])
def test_distribution_free_intervals_cover(kind):
    """Betting and empirical Bernstein cover whatever the values are; a narrower betting interval is found out."""
    rng = np.random.default_rng(3)
    draw = {
        "rate": lambda: (rng.random(60) < 0.1).astype(float),
        "beta": lambda: rng.beta(0.3, 0.6, 60),
        "two points": lambda: rng.choice([0.0, 0.9], 60, p=[0.2, 0.8]),
    }[kind]
    truth = {"rate": 0.1, "beta": 1 / 3, "two points": 0.72}[kind]
    alpha, runs = 0.2, 600
    betting, bernstein = [], []
    for _ in range(runs):
        x = draw()
        betting.append(betting_limits(x, alpha / 2, 0.0, 1.0))
        low, high = bernstein_limits(summarise(x[:, None], np.zeros(60, int), 1).take(0), alpha / 2, 0.0, 1.0)
        bernstein.append((low[0], high[0]))
    check_coverage(np.array(betting).T, truth, alpha)
    check_coverage(np.array(bernstein).T, truth, alpha)
    if kind == "rate":
        return  # counts are coarse, so that no interval of them is tight
    low, high = np.array(betting).T
    middle, half = (low + high) / 2, (high - low) / 2
    with pytest.raises(AssertionError):
        check_coverage((middle - 0.45 * half, middle + 0.45 * half), truth, alpha)


def test_skewness_is_corrected():
    """Of lognormal values the corrected intervals, of means and of gaps, miss far less often than t."""
    rng = np.random.default_rng(4)
    values = rng.lognormal(0.0, 1.2, (4000, 2, 100))
    values[:, 1] = rng.lognormal(0.0, 0.2, (4000, 100))
    found = samples_of(values)
    truth = np.array([math.exp(0.72), math.exp(0.02)])
    for t, corrected, level in (
        (t_limits(found, 0.025), hall_limits(found, 0.025), truth),
        (range_interval(found, 0.05), range_interval(found, 0.05, corrected=True), truth[0] - truth[1]),
    ):
        missed, still = (1 - float(((x[0] <= level) & (level <= x[1])).mean()) for x in (t, corrected))
        assert missed > 0.07
        assert still < 0.75 * missed


def test_the_test_of_a_small_gap_keeps_its_level():
    """That a gap is at most eps is wrongly shown in at most 5 % of data sets, skewed and unbalanced ones too."""
    rng = np.random.default_rng(5)
    shown = 0
    for _ in range(1500):
        values = np.concatenate([rng.lognormal(0.0, 0.5, 150), rng.exponential(1.0, 1000)])
        found = summarise(values[:, None], np.repeat([0, 1], [150, 1000]), 2).take(0)
        shown += range_p_values(found, abs(math.exp(0.125) - 1.0))[1] <= 0.05
    assert shown / 1500 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1500)
    assert shown / 1500 >= 0.03


@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("sizes", [(30, 1500), (100, 1500), (30, 30), (30, 200, 1000)])
def test_both_verdicts_keep_their_level_for_skewed_values(sigma, sizes):
    """Of lognormal groups with equal means, "more" is shown in at most 5 %; so is "at most" of others."""
    rng = np.random.default_rng(8)
    runs, wrong, codes = 300, np.zeros(3), np.repeat(np.arange(len(sizes)), sizes)
    mean = math.exp(sigma**2 / 2)
    for _ in range(runs):
        values = rng.lognormal(0.0, sigma, len(codes))
        wrong[0] += range_p_values(summarise(values[:, None], codes, len(sizes)).take(0), 0.0)[0] <= 0.05
        for k, z in enumerate((0, len(sizes) - 1)):
            apart = values + mean * (codes == z)
            found = summarise(apart[:, None], codes, len(sizes)).take(0)
            wrong[1 + k] += range_p_values(found, mean)[1] <= 0.05
    assert (wrong / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)).all()


def test_a_gap_that_is_plain_is_shown_in_skewed_groups_too():
    """Chebyshev's inequality is careful and not mute: far apart is far apart."""
    rng = np.random.default_rng(9)
    codes = np.repeat([0, 1], 400)
    values = rng.lognormal(0.0, 1.2, 800) + 2.0 * codes
    found = summarise(values[:, None], codes, 2).take(0)
    assert found.skewed.any()
    assert range_p_values(found, 0.5)[0] <= 0.05
    assert range_p_values(found, 4.0)[1] <= 0.05


# ---------------------------------------------------------------------------------------------------------
# Against other implementations


@pytest.mark.parametrize("groups", [2, 3, 6, 12])
@pytest.mark.parametrize("df", [1.0, 2.0, 7.0, 50.0, 1000.0])
def test_the_studentised_range_is_scipys(groups, df):
    """Tail and quantile agree with SciPy's."""
    for q in (0.5, 2.0, 3.5, 6.0):
        assert range_tail(q, groups, df) == pytest.approx(stats.studentized_range.sf(q, groups, df), abs=2e-6)
    q = range_quantile(0.05, groups, df)
    assert range_tail(q, groups, df) == pytest.approx(0.05, abs=1e-8)
    assert range_tail(0.0, groups, df) == 1.0


def test_six_groups_agree_with_tukey():
    """Of equal groups with equal spread the limits are Tukey's, but for degrees of freedom pooled or not."""
    rng = np.random.default_rng(6)
    parts = [rng.normal(size=400) for _ in range(4)]
    result = stats.tukey_hsd(*parts).confidence_interval(0.95)
    codes = np.repeat(np.arange(4), 400)
    found = summarise(np.concatenate(parts)[:, None], codes, 4).take(0)
    low, high = range_interval(found, 0.05)
    assert high == pytest.approx(result.high.max(), rel=0.03)
    assert low == pytest.approx(max(0.0, result.low[~np.eye(4, dtype=bool)].max()), abs=0.02)


def test_p_values_and_intervals_agree():
    """The gap is refuted at level alpha exactly when its corrected interval lies above, by either way of testing."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        values = rng.random(90) + np.repeat([0.0, 0.1, 0.3 * rng.random()], 30)
        found = summarise(values[:, None], np.repeat(np.arange(3), 30), 3).take(0)
        low = range_interval(found, 0.1, corrected=True)[0]
        for at_most in (0.5 * low, 0.99 * low, 1.01 * low + 1e-9):
            assert (range_p_values(found, at_most)[0] < 0.1) == (low > at_most)

        def limits(tail, found=found):
            return bernstein_limits(found, tail, 0.0, 1.5)

        for at_most in (0.0, 0.2, 1.0, 1.4):
            more, within = limits_p_values(limits, 3, at_most, 0.1)
            assert (more <= 0.1) == (spread_of(limits(0.1 / 6))[0] > at_most)
            assert (within <= 0.1) == (spread_of(limits(0.05))[1] <= at_most)


def test_pairs_are_mirror_images():
    """The limits of one group minus another are those of the other minus the one, turned around."""
    found = samples_of(np.random.default_rng(11).lognormal(size=(1, 3, 20)))
    found = Sample(found.n[0], found.mean[0], found.sd[0], found.skewness[0])
    one, other = np.nonzero(~np.eye(3, dtype=bool))
    for corrected in (False, True):
        low, high = pair_limits(found, 0.05, corrected=corrected)
        for p in range(6):
            q = int(np.flatnonzero((one == other[p]) & (other == one[p]))[0])
            assert low[p] == pytest.approx(-high[q])


def test_many_data_sets_at_once():
    """Data sets before the axis of groups give what each gives alone."""
    found = samples_of(np.random.default_rng(8).exponential(size=(20, 5, 12)))
    for corrected in (False, True):
        low, high = range_interval(found, 0.05, corrected=corrected)
        for run in range(20):
            alone = Sample(found.n[run], found.mean[run], found.sd[run], found.skewness[run])
            one = range_interval(alone, 0.05, corrected=corrected)
            assert (low[run], high[run]) == pytest.approx(tuple(map(float, one)))


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


def test_betting_depends_on_the_values_alone():
    """Shuffled rows, another unit or an offset give the same interval, and the order is as good as drawn at random."""
    rng = np.random.default_rng(9)
    x = np.round(rng.beta(2, 3, 300), 2)
    low, high = betting_limits(x, 0.025, 0.0, 1.0)
    assert betting_limits(rng.permutation(x), 0.025, 0.0, 1.0) == (low, high)
    scaled = betting_limits(1e6 + 50.0 * x, 0.025, 1e6, 1e6 + 50.0)
    np.testing.assert_allclose((np.array(scaled) - 1e6) / 50.0, (low, high), atol=1e-6)
    assert low < x.mean() < high
    # Equal values are spread over the whole order.
    orders = hashed_orders(np.repeat([0.0, 1.0], 500))
    for places in np.argsort(orders, axis=1):
        assert abs(places[:500].mean() - 499.5) < 40
        assert stats.kstest(places[:500] / 1000, "uniform").pvalue > 1e-3
    assert len({tuple(order) for order in orders.tolist()}) == len(orders)


@pytest.mark.parametrize("n", [5, 20, 80])
def test_betting_covers_every_rate(n):
    """Samples of two values meet the same order again and again: no rate may be covered less often than stated.

    The coverage is computed, not simulated. Limits from fortunes on the way, in one order, cover 89 % at n = 80.
    """
    found = [
        betting_limits(np.repeat([1.0, 0.0], [hits, n - hits]), 0.025, 0.0, 1.0) for hits in range(n + 1)
    ]
    low, high = np.array(found).T[:, :, None]
    rate = np.linspace(0.005, 0.995, 199)
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rate)
    assert (chance * ((low <= rate) & (rate <= high))).sum(axis=0).min() >= 0.95


def test_betting_is_narrow():
    """At a standard deviation of .1 and 1,000 people betting takes at most a third of Hoeffding's width."""
    x = np.clip(np.random.default_rng(10).normal(0.5, 0.1, 1000), 0.0, 1.0)
    low, high = betting_limits(x, 0.025, 0.0, 1.0)
    assert high - low <= hoeffding_width(1000, 0.95) / 3


def test_small_samples_give_the_whole_range():
    """Nobody or one person leaves everything open; values at the end of the range leave a one-sided interval."""
    assert betting_limits(np.empty(0), 0.025, -1.0, 3.0) == (-1.0, 3.0)
    low, high = betting_limits(np.array([1.0]), 0.025, 0.0, 1.0)
    assert low == 0.0
    assert high == 1.0
    low, high = betting_limits(np.zeros(1000), 0.025, 0.0, 1.0)
    assert low == 0.0
    assert 0.0 < high < 0.02
    one = summarise(np.array([[5.0]]), np.array([0]), 1).take(0)
    assert [float(side[0]) for side in t_limits(one, 0.025)] == [-math.inf, math.inf]
    assert [float(side[0]) for side in bernstein_limits(one, 0.025, 0.0, 9.0)] == [0.0, 9.0]
