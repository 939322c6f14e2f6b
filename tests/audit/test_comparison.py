"""Comparisons: paired intervals agree with the textbook, and only the same people are compared."""

import json
import math

import numpy as np
import pytest
from conftest import make_people, refused
from scipy import stats

from felicific import Happiness, audit, compare
from felicific._statistics.gaps import change_interval, pair_limits
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


def test_means_are_paired_t_intervals(two):
    """Changes of group means are those of SciPy's paired test, far narrower than unpaired ones."""
    people, before, after = two
    one, other = audits(people, before, after)
    found = compare(one, other)
    for z in (0, 1):
        rows = people["group"] == z
        values = [(d * people["loan"])[rows] for d in (before, after)]
        test = stats.ttest_rel(values[1], values[0])
        interval = test.confidence_interval(0.95)
        change = found["funding"].means[z]
        expected = (values[1].mean() - values[0].mean(), interval.low, interval.high)
        assert (change.estimate, change.low, change.high) == pytest.approx(expected, rel=1e-9)
        mean = other["funding"].means[z]
        assert change.high - change.low < 0.7 * (mean.high - mean.low)
    assert found["funding"].gap.estimate == pytest.approx(other.gaps["funding"] - one.gaps["funding"])
    assert found["funding"].gap.low <= found["funding"].gap.estimate <= found["funding"].gap.high
    wrong = (after != people.y).mean() - (before != people.y).mean()
    assert found.loss.estimate == pytest.approx(wrong)
    assert found.loss.low < wrong < found.loss.high


def test_nothing_changed(two):
    """Without a change nothing is claimed, and with bounds the interval is narrow around zero."""
    people, before, _ = two
    (one,) = audits(people, before)
    assert compare(one, one)["funding"].means[0].high == math.inf
    bounded = Happiness(funding, bounds=(0, 50))
    (one,) = audits(people, before, happiness=bounded)
    change = compare(one, one)["funding"].means[0]
    assert change.estimate == 0.0
    assert -3.0 < change.low < 0.0 < change.high < 3.0


def test_outputs(two):
    """Text, page, dataframe and JSON hold the numbers."""
    people, before, after = two
    found = compare(*audits(people, before, after))
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["components"][0]["gap"]["estimate"] == found["funding"].gap.estimate
    assert len(found.to_frame()) == 4
    assert "Change for the same 600 rows" in str(found)
    assert "<table>" in found._repr_html_()


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
        low, high = change_interval(
            *(summarise(v[:, None], codes, 3).take(0) for v in (before, after, after - before)), 0.05
        )
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
        samples = [summarise(v[:, None], codes, 2).take(0) for v in (before, after, after - before)]
        b, a, d = (np.array(pair_limits(s, 0.05 / 3, corrected=True))[:, 1] for s in samples)
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
        samples = (summarise(v[:, None], codes, 2).take(0) for v in (before, before + gain, gain))
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
