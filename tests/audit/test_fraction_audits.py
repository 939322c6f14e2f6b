"""Audits of fractions: exact among those who are counted, by the delta method where a lottery counts them."""

import numpy as np
import polars as pl
import pytest
from helpers import by, solved
from scipy import stats

from felicific import FairClassifier, Happiness, Score, aggregate, audit, compare, frontier
from felicific.exceptions import ConstraintError, DataError

PRECISION = "precision"
COUNTED = "counted by 'precision'"


def people(n=1200, seed=0):
    """People with scores, labels, loans, and two ways of deciding."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    score = rng.beta(np.where(group == "a", 2, 3), 2.5)
    return {
        "group": group,
        "score": score,
        "y": (rng.random(n) < score**1.2).astype(int),
        "loan": rng.integers(1, 9, n) * 1000.0,
        "now": (score > 0.5).astype(int),
        "then": (score > np.where(group == "a", 0.55, 0.45)).astype(int),
    }


def measured(decided, table, **more):
    """An audit of precision."""
    asked = {"happiness": PRECISION, "sensitive_features": "group", "decisions": None} | more
    return audit(decided, table, "y", **{k: v for k, v in asked.items() if v is not None})


def test_decisions_that_were_taken_are_audited_among_those_who_are_counted():
    """Precision of definite decisions is a rate of the people decided 1: the same interval, exact."""
    table = people()
    found = measured("now", table, gap=0.1)[PRECISION]
    yes = {name: column[table["now"] == 1] for name, column in table.items()}
    alone = audit("y", yes, happiness={PRECISION: "decision == 1"}, sensitive_features="group", gap=0.1)
    assert found.means == alone[PRECISION].means
    assert found.gap == alone[PRECISION].gap
    assert found.test == alone[PRECISION].test
    whole = audit("now", table, happiness={COUNTED: "decision == 1"}, sensitive_features="group")
    assert measured("now", table)[COUNTED].means == whole[COUNTED].means


@pytest.mark.parametrize("weighted", [False, True])
def test_lotteries_are_audited_by_the_delta_method(weighted):
    """The mean is a ratio of sums over people, its error that of what each adds to it: N - R D."""
    table = people()
    rng = np.random.default_rng(1)
    probabilities = rng.random(len(table["y"]))
    weight = rng.random(len(probabilities)) + 0.5 if weighted else np.ones(len(probabilities))
    more = {"sample_weight": weight, "weight_kind": "sampling"} if weighted else {}
    found = audit(
        np.column_stack([1 - probabilities, probabilities]),
        table,
        "y",
        happiness={"dollars": Happiness("decision * loan", among="decision == 1")},
        sensitive_features="group",
        decisions=[0, 1],
        **more,
    )["dollars"]
    for z in "ab":
        mine = table["group"] == z
        w, d, n = weight[mine], probabilities[mine], probabilities[mine] * table["loan"][mine]
        ratio = (w * n).sum() / (w * d).sum()
        error = np.sqrt(((w * (n - ratio * d)) ** 2).sum()) / (w * d).sum()
        interval = found.means[z]
        assert interval.estimate == pytest.approx(ratio, rel=1e-12)
        half = stats.norm.ppf(0.975) * error
        assert interval.high - ratio == pytest.approx(half, rel=0.02)  # few people make it a little wider
        assert "delta method" in interval.method


def test_engines_agree_with_memory():
    """Of decisions that were taken, and of a policy that randomizes, with and without sampling weights."""
    table = people(600)
    table["weight"] = np.random.default_rng(2).integers(1, 4, 600) * 0.5
    lazy = pl.DataFrame(table).lazy()
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": PRECISION}
    policy = solved(people(600, 1), gap=0.01, random_state=0, **roles)
    for more in ({}, {"sample_weight": "weight", "weight_kind": "sampling"}):
        for decides, scores in (("now", {}), (policy, {"score": "score"})):
            with by("large"):
                here, there = (measured(decides, one, **scores, **more) for one in (table, lazy))
            for one, other in zip(here.measures, there.measures, strict=True):
                for z in "ab":
                    mine, theirs = one.means[z], other.means[z]
                    for part in ("estimate", "low", "high", "n"):
                        assert getattr(theirs, part) == pytest.approx(getattr(mine, part), rel=1e-9)
                assert (other.gap is None) == (one.gap is None) == (one.measure.name == COUNTED)
                if one.gap is not None:
                    assert other.gap.high == pytest.approx(one.gap.high, rel=1e-9)


def test_a_group_in_which_nobody_is_counted_has_no_number():
    """It is said, the others are measured, and no gap is shown to be small."""
    table = people()
    table["none"] = np.where(table["group"] == "a", 0, table["now"])
    found = measured("none", table, gap=0.5, decisions=[0, 1])
    part = found[PRECISION]
    assert np.isnan(part.means["a"].estimate)
    assert "nobody is counted" in part.means["a"].note
    assert part.means["b"].n == table["none"].sum()
    assert part.test.verdict == "undecided"
    assert found.to_dict()["measures"][0]["means"][0]["estimate"] is None
    assert "Nothing to repair" not in str(found)
    lazy = measured("none", pl.DataFrame(table).lazy(), gap=0.5, decisions=[0, 1])
    assert np.isnan(lazy.means[PRECISION]["a"])
    assert lazy.means[PRECISION]["b"] == pytest.approx(found.means[PRECISION]["b"])
    with pytest.raises(DataError, match="nobody of the group 'a' is counted"):
        compare(found, measured("now", table))


def test_changes_of_fractions_are_paired():
    """The change of a ratio, with the error of the difference of what each person adds to the two."""
    table = people()
    change = compare(measured("now", table), measured("then", table))[PRECISION]
    for z in "ab":
        mine = table["group"] == z
        parts = []
        for way in ("now", "then"):
            d = table[way][mine].astype(float)
            n = d * table["y"][mine]
            ratio = n.sum() / d.sum()
            parts.append((ratio, (n - ratio * d) / d.mean()))
        estimate = parts[1][0] - parts[0][0]
        error = (parts[1][1] - parts[0][1]).std(ddof=1) / np.sqrt(mine.sum())
        found = change.means[z]
        assert found.estimate == pytest.approx(estimate, abs=1e-12)
        assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.1)


def test_what_cannot_be_promised_of_a_ratio():
    """No distribution-free bound: a safe fit, bets on lotteries and bands are refused; a certificate is silent."""
    from sklearn.linear_model import LogisticRegression

    table = people(400)
    X = pl.DataFrame({name: table[name] for name in ("score", "group")})
    settings = {"happiness": PRECISION, "sensitive_features": "group", "gap": 0.1, "random_state": 0}
    model = LogisticRegression().fit(X.select("score"), table["y"])
    from sklearn.frozen import FrozenEstimator

    with pytest.raises(ConstraintError, match="no distribution-free bound for a ratio yet"):
        FairClassifier(FrozenEstimator(model), confidence=0.9, **settings).fit(X, table["y"])
    cells = Score(bins=8)
    sums = aggregate(
        table, score="score", y="y", sensitive_features="group", happiness=PRECISION, policy=cells
    )
    line = frontier(sums)
    with pytest.raises(ConstraintError, match="no limits along a frontier of 'precision'"):
        line.band(table["score"], table, "y", happiness=PRECISION, sensitive_features="group")


def test_a_comparison_says_that_few_are_left():
    """Where a fraction counts less than half as many of a group as before, with their shares."""
    rng = np.random.default_rng(0)
    group, y = np.repeat(["a", "b"], 100), rng.integers(0, 2, 200)
    before = np.ones(200, dtype=int)
    after = np.where((group == "a") & (np.arange(200) % 10 > 1), 0, 1)
    both = [
        audit(decided, None, y, happiness="precision_parity", sensitive_features=group)
        for decided in (before, after)
    ]
    found = [text for text in compare(*both).remarks if text.startswith("Few are left")]
    assert len(found) == 1
    assert "20 % instead of 100 % of group 'a'" in found[0]
    assert "'b'" not in found[0]
