"""Comparisons: paired intervals agree with the textbook, and only the same people are compared."""

import json
import math

import numpy as np
import pytest
from conftest import make_people, refused
from scipy import stats

from felicific import Happiness, audit, compare
from felicific._statistics.gaps import LargeSamples, change_interval
from felicific._statistics.intervals import summarise
from felicific.exceptions import DataError


def funding(decision, x):
    return decision * x["loan"]


@pytest.fixture(scope="module")
def two():
    people = make_people(600, 2)
    rng = np.random.default_rng(0)
    before = rng.integers(0, 2, 600)
    after = np.where(rng.random(600) < 0.1, 1 - before, before)
    return people, before, after


def audits(people, *decisions, happiness=funding, **more):
    table = people.table("pandas")
    return [
        audit(d, table, people.y, happiness=happiness, sensitive_features="group", **more) for d in decisions
    ]


def naive_limits(changes, reach):
    """The wider of t and Hall's limits of changes, with one person added who gains as much as another loses."""
    values = np.append(changes, [reach, -reach])
    n, mean, sd = len(values), values.mean(), values.std(ddof=1)
    t, g = stats.t.ppf(0.975, n - 1), stats.skew(values) / math.sqrt(n)

    def inverse(x):
        return 3.0 / g * (np.cbrt(1.0 + g * (x - g / 6.0)) - 1.0) if g else x

    low, high = max(t, inverse(t)), max(t, -inverse(-t))
    return mean - low * sd / math.sqrt(n), mean + high * sd / math.sqrt(n)


def test_means_are_paired_intervals(two):
    """Changes of group means are paired, nearly SciPy's paired test, and far narrower than unpaired ones."""
    people, before, after = two
    one, other = audits(people, before, after)
    found = compare(one, other)
    for z in (0, 1):
        rows = people["group"] == z
        values = [(d * people["loan"])[rows] for d in (before, after)]
        test = stats.ttest_rel(values[1], values[0])
        interval = test.confidence_interval(0.95)
        change = found["funding"].means[z]
        reach = math.sqrt((people["loan"][rows] ** 2).mean())
        assert change.estimate == pytest.approx(values[1].mean() - values[0].mean(), rel=1e-9)
        limits = naive_limits(values[1] - values[0], reach)
        assert (change.low, change.high) == pytest.approx(limits, rel=1e-9)
        assert change.high - change.low < 1.1 * (interval.high - interval.low)
        mean = other["funding"].means[z]
        assert change.high - change.low < 0.7 * (mean.high - mean.low)
    assert found["funding"].gap.estimate == pytest.approx(other.gaps["funding"] - one.gaps["funding"])
    assert found["funding"].gap.low <= found["funding"].gap.estimate <= found["funding"].gap.high
    wrong = (after != people.y).mean() - (before != people.y).mean()
    assert found.loss.estimate == pytest.approx(wrong)
    assert found.loss.low < wrong < found.loss.high


def test_nothing_changed(two):
    """Without a change the interval is narrow around zero and not zero itself: others may be changed."""
    people, before, _ = two
    (one,) = audits(people, before)
    change = compare(one, one)["funding"].means[0]
    rows = people["group"] == 0
    limits = naive_limits(np.zeros(rows.sum()), math.sqrt((people["loan"][rows] ** 2).mean()) + 1e-12)
    assert (change.low, change.high) == pytest.approx(limits, rel=1e-6)
    assert -3.0 < change.low < 0.0 < change.high < 3.0
    bounded = Happiness(funding, bounds=(0, 50))
    (one,) = audits(people, before, happiness=bounded)
    change = compare(one, one)["funding"].means[0]
    assert change.estimate == 0.0
    assert -3.0 < change.low < 0.0 < change.high < 3.0


def test_a_group_that_no_decision_changes_is_known():
    """Where the happiness is the same whatever is decided, the change is 0, and the gap's follows the other group's."""
    rng = np.random.default_rng(4)
    group, loan = np.repeat(["f", "m"], 500), rng.lognormal(size=1000)
    before, after = (rng.random(1000) < 0.5).astype(int), (rng.random(1000) < 0.6).astype(int)
    asked = {"happiness": '(decision if group == "f" else 1) * loan', "sensitive_features": group}
    found = compare(*(audit(d, {"loan": loan}, **asked) for d in (before, after))).measures[0]
    mean = found.means["m"]
    assert (mean.low, mean.estimate, mean.high) == (0.0, 0.0, 0.0)
    assert "no decision changes" in mean.method
    women = found.means["f"]
    assert women.low < women.estimate < women.high
    assert found.gap.high - found.gap.low < 1.5 * (women.high - women.low)


def test_one_group_unchanged_is_as_narrow_as_a_paired_bootstrap():
    """Where only women's decisions change, the gap's change is as open as theirs, and not as the gap itself."""
    rng = np.random.default_rng(3)
    group = np.repeat(["f", "m"], 1000)
    before = np.where(group == "f", rng.random(2000) < 0.3, rng.random(2000) < 0.6).astype(int)
    after = np.where((group == "f") & (rng.random(2000) < 0.1), 1, before)
    asked = {"happiness": "decision == 1", "sensitive_features": group, "decisions": [0, 1]}
    found = compare(*(audit(d, **asked) for d in (before, after))).measures[0]
    change = (after - before)[group == "f"]
    drawn = [change[rng.integers(0, 1000, 1000)].mean() for _ in range(2000)]
    width = np.ptp(np.quantile(drawn, [0.025, 0.975]))
    assert found.gap.low < -change.mean() < found.gap.high
    assert found.gap.high - found.gap.low < 1.6 * width
    assert np.ptp([found.means["m"].low, found.means["m"].high]) < 0.03


def test_rare_changes_are_covered():
    """One person in a hundred changes, and a group may show none of them: limits hold all the same."""
    rng = np.random.default_rng(5)
    missed, runs = np.zeros(2), 300
    group = np.repeat(["f", "m"], 40)
    for _ in range(runs):
        before = rng.integers(0, 2, 80)
        after = np.where((group == "m") & (rng.random(80) < 0.03), 1, before)
        loan = rng.lognormal(0.0, 0.5, 80)
        asked = {"sensitive_features": group, "decisions": [0, 1]}
        for k, happiness in enumerate(("decision == 1", "decision * loan")):
            found = compare(
                *(audit(d, {"loan": loan}, happiness=happiness, **asked) for d in (before, after))
            )
            mean = found.measures[0].means["m"]
            missed[k] += not mean.low <= 0.015 * (1.0 if k == 0 else math.exp(0.125)) <= mean.high
    assert (missed / runs <= 0.07).all()


def test_outputs(two):
    """Text, page, dataframe and JSON hold the numbers."""
    people, before, after = two
    found = compare(*audits(people, before, after))
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["measures"][0]["gap"]["estimate"] == found["funding"].gap.estimate
    assert len(found.to_frame()) == 8  # two means, the gap, the loss; who gets less, and more, of both groups
    assert "Change for the same 600 rows" in str(found)
    assert "<table" in found._repr_html_()


def large(values, codes, groups):
    """Some groups by large samples."""
    sample = summarise(values[:, None], codes, groups).take(0)
    return LargeSamples(sample.mean, sample)


@pytest.mark.parametrize("truth", [(0.0, 0.0, 0.0), (0.0, 0.0, 0.6), (0.0, 0.3, 0.6)])
def test_the_change_of_a_gap_is_covered(truth):
    """The interval of a gap's change covers it, whether the gap closes, opens or stays, with ties or without."""
    rng = np.random.default_rng(0)
    covered = 0
    n, runs = 60, 400
    start, end = np.array(truth), np.array(truth)[::-1] * 0.5
    expected = np.ptp(end) - np.ptp(start)
    codes = np.repeat(np.arange(3), n)
    for _ in range(runs):
        common = rng.normal(size=3 * n)
        before = start[codes] + common + 0.3 * rng.normal(size=3 * n)
        after = end[codes] + common + 0.3 * rng.normal(size=3 * n)
        low, high = change_interval(*(large(v, codes, 3) for v in (before, after, after - before)), 0.05)
        covered += low <= expected <= high
    assert covered / runs >= 0.95 - 0.02


def test_the_change_of_two_groups_gap_is_as_narrow_as_the_limits_allow():
    """No difference before, after and of the change within their limits moves the gap further, and some nearly does."""
    rng = np.random.default_rng(1)
    values = {
        "sure": (0.0, 1.0, 0.0, 0.3),
        "may cross": (0.0, 0.4, 0.0, -0.2),
        "crosses": (0.0, 0.5, 0.0, -0.5),
        "may be equal": (0.0, 0.1, 0.0, 0.1),
    }
    codes = np.repeat([0, 1], 80)
    for start in values.values():
        common = 0.7 * rng.normal(size=160)
        before, after = (
            np.array(means)[codes] + common + 0.2 * rng.normal(size=160) for means in (start[:2], start[2:])
        )
        samples = [large(v, codes, 2) for v in (before, after, after - before)]
        b, a, d = (np.array(s.pair_limits(0.05 / 3))[:, 1] for s in samples)
        x, y = np.meshgrid(np.linspace(*b, 801), np.linspace(*a, 801))
        open_ = (np.abs(y) - np.abs(x))[(y - x >= d[0]) & (y - x <= d[1])]
        low, high = change_interval(*samples, 0.05)
        assert low <= open_.min() + 1e-12
        assert open_.max() - 1e-12 <= high
        assert (low, high) == pytest.approx((open_.min(), open_.max()), abs=0.01)


def test_rare_and_skewed_changes_of_a_gap_are_covered():
    """One person in twenty gains a skewed amount: the interval of the change is widened for it."""
    rng = np.random.default_rng(2)
    codes, runs, covered = np.repeat([0, 1], 150), 400, 0
    truth = 0.05 * math.exp(0.5)
    for _ in range(runs):
        before = 1.0 * codes + 0.1 * rng.normal(size=300)
        gain = (rng.random(300) < 0.05) * rng.lognormal(size=300) * codes + 1e-3 * rng.normal(size=300)
        samples = (large(v, codes, 2) for v in (before, before + gain, gain))
        low, high = change_interval(*samples, 0.05)
        covered += low <= truth <= high
    assert covered / runs >= 0.95 - 0.02


def test_only_the_same_people_are_compared(two):
    """Other people, another order, other groups or another happiness are refused."""
    people, before, after = two
    one, other = audits(people, before, after)
    order = np.random.default_rng(0).permutation(600)
    shuffled = audit(
        after[order], people.table("pandas").iloc[order], people.y[order],
        happiness=funding, sensitive_features="group",
    )  # fmt: skip
    with refused(DataError, "not of the same people", remedy="same rows"):
        compare(one, shuffled)
    with refused(DataError, "rows of the groups"):
        compare(one, *audits(make_people(500, 2), after[:500]))
    with refused(DataError, "One audit measures"):
        compare(one, *audits(people, after, happiness="statistical_parity"))
    with refused(DataError, "not of the same people"):
        compare(one, *audits(people, after, sample_weight=np.arange(1, 601), weight_kind="frequency"))
    with refused(DataError, "confidence"):
        compare(one, other, confidence=95)


def test_skewed_changes_are_noted():
    """Where even the corrected interval of a change holds less often than stated, its note says so."""
    rng = np.random.default_rng(6)
    group, loan = np.repeat(["f", "m"], 100), rng.lognormal(0.0, 2.0, 200)
    before = rng.integers(0, 2, 200)
    after = np.where(rng.random(200) < 0.2, 1 - before, before)
    asked = {"happiness": "decision * loan", "sensitive_features": group}
    found = compare(*(audit(d, {"loan": loan}, **asked) for d in (before, after))).measures[0]
    assert "less often than stated" in found.means["f"].note


def test_who_gains_and_who_loses_is_said(two):
    """Of every group the share that gets more, and less, than before, by hand, with exact intervals; and in words."""
    people, before, after = two
    found = compare(*audits(people, before, after))["funding"]
    change = (after - before) * people["loan"]
    for shares, hits in ((found.gains, change > 0), (found.loses, change < 0)):
        for z in (0, 1):
            own = hits[people["group"] == z]
            exact = stats.binomtest(int(own.sum()), len(own)).proportion_ci(0.95, "exact")
            assert shares[z].estimate == pytest.approx(own.mean())
            assert (shares[z].low, shares[z].high) == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert "Share that gets more than before: 0 " in "\n".join(found.remarks)
