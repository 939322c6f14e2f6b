"""Audits: estimates agree with naive sums, intervals with textbook formulas, and what is bad is refused."""

import json
import math
from contextlib import nullcontext

import numpy as np
import pytest
from conftest import make_people, refused
from helpers import by, halls
from scipy import stats

from felicific import Happiness, audit, compare
from felicific._problem.happiness import written
from felicific.exceptions import DataError, HappinessError

HOSTILE = "</td><script>alert(1)</script>\n\x1b[31m\"'&" + "x" * 10_000


def funding(decision, x):
    return decision * x["loan"]


@pytest.fixture(scope="module")
def decided(people):
    rng = np.random.default_rng(1)
    return rng.integers(0, 2, len(people))


def test_means_and_intervals_are_the_textbook_ones(people, decided):
    """Group means, and the gap of two groups, have Hall's intervals, with Welch's degrees of freedom."""
    found = audit(decided, people.table("pandas"), people.y, happiness=funding, sensitive_features="group")
    values = decided * people["loan"]
    parts = [values[people["group"] == z] for z in (0, 1)]
    cubes = [stats.skew(part) * part.std(ddof=1) ** 3 / len(part) ** 2 for part in parts]
    for z, part in enumerate(parts):
        mean = found["funding"].means[z]
        low, high = halls(part.mean(), stats.sem(part), cubes[z], len(part) - 1, 0.025)
        assert (mean.estimate, mean.low, mean.high) == pytest.approx((part.mean(), low, high), rel=1e-9)
        assert mean.n == len(part)
        assert mean.method == "Hall's t (large sample)"
    top, bottom = (1, 0) if parts[1].mean() > parts[0].mean() else (0, 1)
    squares = [stats.sem(part) ** 2 for part in parts]
    df = sum(squares) ** 2 / sum(s**2 / (len(part) - 1) for s, part in zip(squares, parts, strict=True))
    about = (sum(squares) ** 0.5, cubes[top] - cubes[bottom], df)
    size = parts[top].mean() - parts[bottom].mean()
    gap = found["funding"].gap
    assert gap.estimate == pytest.approx(size, rel=1e-12)
    assert gap.low == pytest.approx(max(0.0, halls(size, *about, 0.025)[0]), abs=1e-9)
    assert gap.high == pytest.approx(halls(size, *about, 0.025)[1], rel=1e-9)


def test_rates_are_exact(people, decided):
    """Of 0/1 values the interval is Clopper and Pearson's, and the loss is one of them."""
    found = audit(decided, None, people.y, happiness="equal_opportunity", sensitive_features=people["group"])
    for z in (0, 1):
        counted = decided[(people["group"] == z) & (people.y == 1)]
        exact = stats.binomtest(int(counted.sum()), len(counted)).proportion_ci(0.95, "exact")
        mean = found["equal_opportunity"].means[z]
        assert (mean.low, mean.high) == pytest.approx((exact.low, exact.high), rel=1e-9)
        assert mean.method == "Clopper-Pearson (exact)"
    wrong = int((decided != people.y).sum())
    exact = stats.binomtest(wrong, len(people)).proportion_ci(0.95, "exact")
    assert (found.loss.low, found.loss.high) == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_outputs(people, decided):
    """Every output holds every number, escapes hostile names, and JSON holds no NaN."""
    group = np.where(people["group"] == 0, HOSTILE, "plain")
    found = audit(
        decided, people.table("pandas"), people.y, gap={HOSTILE: 3.0}, sensitive_features=group,
        happiness=Happiness(funding, name=HOSTILE, unit="$"),
    )  # fmt: skip
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["measures"][0]["gap"]["estimate"] == found.gaps[HOSTILE]
    assert again["groups"] == [HOSTILE, "plain"]
    page, text = found._repr_html_(), str(found)
    assert "<script>" not in page
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 500
    assert found.plot(found).to_dict()["$schema"]
    frame = found.to_frame()
    assert len(frame) == 4  # two means, the gap, the loss
    assert frame["estimate"].tolist()[2] == found.gaps[HOSTILE]
    assert found.gap == found.gaps[HOSTILE]
    assert "large sample" in text
    assert "not shown to be more" in text
    assert f"accuracy {1 - found.loss.estimate:.2%}, from {1 - found.loss.high:.2%} to" in text


def test_a_group_too_small_says_so():
    """One person gives an interval without ends, within the bounds if there are some; never a NaN."""
    y, group = np.array([0, 1, 0, 1, 1]), np.array(["a", "a", "a", "a", "b"])
    x = {"v": np.array([1.0, 2.0, 3.0, 5.0, 4.0])}
    happiness = lambda decision, x: x["v"] + decision  # noqa: E731
    found = audit(y, x, y, happiness={"h": happiness}, sensitive_features=group, gap=1.0)["h"]
    assert (found.means["b"].low, found.means["b"].high) == (-math.inf, math.inf)
    assert "one person" in found.means["b"].note
    assert found.gap.high == math.inf
    assert found.test.verdict == "undecided"
    bounded = {"h": Happiness(happiness, bounds=(0.0, 10.0))}
    for method in ("large", "bets"):
        with by(method):
            found = audit(y, x, y, happiness=bounded, sensitive_features=group, gap=1.0)["h"]
        assert 0.0 <= found.means["b"].low <= 2.0
        assert 6.0 <= found.means["b"].high <= 10.0
        assert found.gap.high <= 10.0
        assert found.test.verdict == "undecided"


def test_equal_values_give_no_false_certainty():
    """Values that are all alike say nothing of their spread."""
    y = np.tile([0, 1], 50)
    happiness = {"h": lambda decision: 3.0 + (decision == 2)}  # which nobody is decided
    found = audit(
        y,
        None,
        y,
        happiness=happiness,
        sensitive_features=np.repeat([0, 1], 50),
        gap=1.0,
        decisions=[0, 1, 2],
    )["h"]
    assert found.gap.estimate == 0.0
    assert found.gap.high == math.inf
    assert found.test.verdict == "undecided"


def test_without_bounds_nothing_is_shown_to_be_at_most():
    """By large samples a gap can be shown to be more; that it is at most so much takes declared bounds."""
    rng = np.random.default_rng(0)
    group, loan = np.repeat(["a", "b"], 5000), rng.random(10_000)
    asked = {"sensitive_features": group, "decisions": [0, 1], "gap": 0.1}
    decided = np.ones(10_000, dtype=int)
    for bounds, verdict, kind in ((None, "undecided", "unclear"), ((0.0, 1.0), "at most", "within")):
        found = audit(decided, {"loan": loan}, happiness=Happiness(funding, bounds=bounds, name="h"), **asked)
        assert (found["h"].test.verdict, found.verdict.kind) == (verdict, kind)
        assert found["h"].gap.high < 0.1
        assert ("not shown to be more; declare bounds to show at most" in str(found)) == (bounds is None)
    far = audit(decided, {"loan": loan + (group == "a")}, happiness={"h": funding}, **asked)
    assert far["h"].test.verdict == "more"


def test_hidden_tails_within_bounds_are_reckoned_with():
    """Few of whom win much, whom a sample mostly lacks: with bounds a gap of .4 is not shown to be within .2."""
    rng, group = np.random.default_rng(3), np.repeat(["a", "b"], [250, 2500])
    happiness, wrong = Happiness(funding, bounds=(0, 100), name="h"), 0
    for _ in range(20):
        won = np.where((rng.random(2750) < 0.004) & (group == "a"), 100.0, 0.0) + rng.random(2750)
        found = audit(
            np.ones(2750, dtype=int), {"loan": won * 0.99}, happiness=happiness, sensitive_features=group,
            decisions=[0, 1], gap=0.2,
        )["h"]  # fmt: skip
        wrong += found.test.verdict == "at most"
        assert found.gap.low <= 0.4 <= found.gap.high
    assert wrong == 0


def test_large_numbers_are_written_out(people, decided):
    """A table has thousands apart and no exponents, whatever the unit."""
    asked = {"sensitive_features": people["group"], "gap": 1_234_567.0}
    found = audit(decided, None, people.y, happiness=Happiness("decision * 1234567.0", name="won"), **asked)
    for text in (str(found), str(compare(found, found)), found._repr_html_()):
        assert "e+" not in text
    assert "Gap at most 1,234,567" in str(found)
    assert f"{found['won'].means[0].estimate:,.0f}" in str(found)
    assert [written(v) for v in (260512.3, 99999.6, 8013.24, -0.0123456, 1e30, math.inf)] == [
        "260,512", "100,000", "8,013.2", "-0.012346", "1e+30", "inf",
    ]  # fmt: skip


def test_weights():
    """Frequencies are repeated rows; sampling weights add no evidence."""
    people = make_people(200, 3)
    rng = np.random.default_rng(0)
    weight, decided = rng.integers(0, 4, 200), rng.integers(0, 2, 200)
    asked = {"happiness": [Happiness(funding, bounds=(0, 50)), "equalized_odds"], "gap": {"funding": 3.0}}
    rows = np.repeat(np.arange(200), weight)
    table = people.table("pandas")
    for method in (nullcontext(), by("large")):
        with method:
            once = audit(
                decided, table, people.y, sensitive_features="group", sample_weight=weight, **asked
            ).to_dict()
            repeated = audit(
                decided[rows], table.iloc[rows], people.y[rows], sensitive_features="group", **asked
            ).to_dict()
        for one, other in zip(once["measures"], repeated["measures"], strict=True):
            for z in (0, 1):
                for name in ("estimate", "low", "high", "n"):
                    assert one["means"][z][name] == pytest.approx(other["means"][z][name], rel=1e-9)
            assert one["gap"]["high"] == pytest.approx(other["gap"]["high"], rel=1e-9)
        assert once["loss"]["high"] == pytest.approx(repeated["loss"]["high"], rel=1e-9)
    doubled = [
        audit(
            decided, table, people.y, happiness=funding, sensitive_features="group", weight_kind="sampling",
            sample_weight=weight * factor,
        )
        for factor in (1, 1000)
    ]  # fmt: skip
    assert doubled[0]["funding"].gap.high == pytest.approx(doubled[1]["funding"].gap.high, rel=1e-12)
    part = weight[people["group"] == 0].astype(float)
    assert doubled[0]["funding"].means[0].n == pytest.approx(part.sum() ** 2 / (part**2).sum())


def test_offsets_and_units_change_nothing():
    """A constant of a million times the effect, or another unit, leaves the intervals of the gap as they were."""
    people = make_people(300, 5)
    decided = np.random.default_rng(0).integers(0, 2, 300)

    def gap(offset, factor):
        found = audit(
            decided, people.table("pandas"), people.y, sensitive_features="group",
            happiness={"h": lambda decision, x: factor * (decision * x["loan"] + offset)},
        )["h"]  # fmt: skip
        return np.array([found.gap.estimate, found.gap.low, found.gap.high, found.bias]) / factor

    np.testing.assert_allclose(gap(1e8, 1.0), gap(0.0, 1.0), rtol=1e-6)
    np.testing.assert_allclose(gap(0.0, 1e-9), gap(0.0, 1.0), rtol=1e-9)


def test_bad_input(people, decided):
    """What cannot be audited is refused with a remedy."""
    table = people.table("pandas")
    asked = {"happiness": funding, "sensitive_features": "group"}
    for confidence in (0, 1, 1.5, -0.1, math.nan, "0.95", None, True):
        with refused(DataError, "confidence"):
            audit(decided, table, people.y, confidence=confidence, **asked)
    with refused(DataError, "weight_kind"):
        audit(decided, table, people.y, weight_kind="survey", **asked)
    with refused(DataError, "7", "not among the classes", remedy="class"):
        audit(np.where(decided == 1, 7, 0), table, people.y, decisions=[0, 1], **asked)
    with refused(DataError, "missing"):
        audit(np.where(decided == 1, np.nan, 0), table, people.y, **asked)
    with refused(DataError, "fractions"):
        audit(decided * 0.3, table, people.y, **asked)
    with refused(DataError, "399 decisions for 400 rows"):
        audit(decided[:-1], table, people.y, **asked)
    with refused(DataError, "labels y for 400 rows"):
        audit(decided, table, people.y[:-1], **asked)
    with refused(DataError, "probabilities of 3 classes", remedy="decisions="):
        audit(np.full((400, 3), 1 / 3), table, people.y, **asked)
    with refused(HappinessError, "looks at x", remedy="X"):
        audit(decided, None, people.y, happiness=funding, sensitive_features=people["group"])
    with refused(HappinessError, "looks at the label"):
        audit(decided, table, None, happiness="equal_opportunity", sensitive_features="group")
    with refused(HappinessError, "outside its bounds 0 to 40", "row", remedy="bounds"):
        audit(
            decided, table, people.y, sensitive_features="group", happiness=Happiness(funding, bounds=(0, 40))
        )
    for nothing in (None, decided[:0]):
        with refused(DataError, "no decisions"):
            audit(nothing, None, None, **asked)
    with refused(DataError, "decisions are", "labels int"):
        audit(np.where(decided == 1, "yes", "no"), table, people.y, **asked)
    for size, word in ((1e200, "large"), (1e-200, "small")):
        with refused(HappinessError, f"too {word} to audit", remedy="unit"):
            audit(
                decided, table, people.y, sensitive_features="group",
                happiness={"h": lambda decision, x, size=size: size * decision * x["loan"]},
            )  # fmt: skip
    without = audit(decided, table, None, **asked)
    assert without.loss is None
    assert "needs labels" in without.notes[0]


def test_pairs_of_groups():
    """All pairs, the higher first, with intervals that hold together; the gap names its two groups and their people."""
    group, d = np.repeat(["a", "b", "c"], [40, 60, 100]), np.tile([1, 0, 1, 1, 0, 0, 1, 0], 25)
    d[:30] = 0
    found = audit(d, happiness=["statistical_parity", "error rate"], y=1 - d, sensitive_features=group)
    part, pairs = found.measures[0], found.pairs()
    assert pairs["measure"].tolist()[:3] == [part.measure.name] * 3
    means = found.means[part.measure.name]
    for one, other, size, low, high in zip(
        *(pairs[name].tolist()[:3] for name in ("higher", "lower", "difference", "low", "high")), strict=True
    ):
        assert size == pytest.approx(means[one] - means[other])
        assert low < size < high
    top, bottom = max(means, key=means.get), min(means, key=means.get)
    assert part.between == (top, bottom)
    assert f"The gap is between {top} ({means[top]:.5g} of" in str(found)
    assert f"{bottom} ({means[bottom]:.5g} of 40 people)" in str(found)
    assert "Selection rate: higher is better." in str(found)


def test_which_direction_is_good_is_said():
    """Of a criterion's measures: fewer false positives and errors are better, more of the best decision is."""
    y, d, group = np.tile([0, 0, 1, 1], 30), np.tile([0, 1, 0, 1, 1], 24), np.repeat(["a", "b"], 60)
    text = str(audit(d, None, y, happiness=["equalized_odds", "accuracy"], sensitive_features=group))
    for words in ("True positive rate: higher", "False positive rate: lower", "ccuracy: higher"):
        assert f"{words} is better." in text


def test_an_audit_does_not_fail_because_of_who_was_sampled():
    """Where nobody has a positive value, or nobody of a group is counted, it says so; bounds still give intervals."""
    group, d, y = np.repeat(["a", "b"], 50), np.tile([0, 1], 50), np.tile([0, 1, 1, 0], 25)
    zero = {"win": np.zeros(100)}
    asked = {"sensitive_features": group, "gap": 0.5}
    found = audit(d, zero, y, happiness=Happiness("decision * win", bounds=(0, 1), name="h"), **asked)
    assert found["h"].test.verdict == "at most"
    assert 0.0 < found["h"].means["a"].high < 0.3
    assert any("changes 'h' of anybody in these rows" in note for note in found.notes)
    alone = audit(d, zero, np.where(group == "a", 1, y), happiness="fpr", **asked).measures[0]
    assert math.isnan(alone.means["a"].estimate)
    assert alone.gap.note == "fewer than two groups have somebody counted"
    assert alone.test.verdict == "undecided"
