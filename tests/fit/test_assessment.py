"""Assessments: what policies do beside the baseline, against naive loops, audits and comparisons made apart."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import fair_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Floor, Happiness, Ratio, WorseOff, audit, compare
from felicific._fit.assessment import Assessment

FUNDING = Happiness("decision * loan", name="funding", unit="$")
SETTINGS = {
    "score": {"gap": 1_000.0},
    "several": {
        "happiness": {"funding": FUNDING, "days": Happiness("3 - decision", unit="days")},
        "gap": {"funding": 20_000.0, "days": 0.2},
    },
    "blind": {"gap": 20_000.0, "sees_group": False, "policy": "score"},
    "individual": {"gap": 1_000.0, "policy": "individual"},
    "label": {"gap": 20_000.0, "policy": "label"},
    "soft-label": {"gap": 1_000.0, "policy": "soft-label"},
    "rounded": {"gap": 1_000.0, "randomize": False},
    "costs": {"gap": 1_000.0, "loss": [[0, 5], [1, 0]]},
    "among": {"happiness": "equalized_odds", "gap": 0.05},
}


def world(n, seed=0, shift=0.6):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    x = rng.normal(size=n) - shift * z
    table = pd.DataFrame({"x": x, "loan": rng.lognormal(0, 0.5, n) * 1e5, "g": np.array(["men", "women"])[z]})
    return table, (x + 0.7 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    table, y = world(500, 5)
    return FrozenEstimator(LogisticRegression().fit(table[["x"]], y))


@pytest.fixture(scope="module", params=SETTINGS)
def fair(request, model):
    settings = {"happiness": FUNDING, "sensitive_features": "g", "random_state": 0} | SETTINGS[request.param]
    return fair_classifier(model, **settings).fit(*world(1_500, 1))


def assess(fair, X, y, **told):
    tried = fair._tryout(X, y, None, told.pop("sample_weight", None))
    return Assessment.of(tried, fair.frontier_, fair.policy_, **told)


def happiness_of(fair, name, decision, X, y):
    """A second way to the values of a measure, decision by decision; not a number where somebody is not counted."""
    loan = X["loan"].to_numpy()
    if name == "funding":
        return decision * loan
    if name == "days":
        return np.full(len(X), 3.0 - decision)
    counted = y == {"true positive rate": 1, "false positive rate": 0}[name]
    return np.where(counted, float(decision == 1), np.nan)


def test_flows_are_those_of_a_loop(fair):
    """Who gains, loses, moves and faces a lottery, group by group, is what a loop over people and decisions finds."""
    X, y = world(600, 2)
    found = assess(fair, X, y)
    effect, probabilities = found.proposed, fair.predict_proba(X)
    baseline, group = fair.estimator_.predict(X[["x"]]), X["g"].to_numpy()
    names = [measure.name for measure in fair.policy_.measures]
    values = np.array([[happiness_of(fair, name, d, X, y) for d in (0, 1)] for name in names])
    for z, who in enumerate(fair.groups_):
        rows = np.flatnonzero(group == who)
        gain, lose = np.zeros(len(names)), np.zeros(len(names))
        better = worse = 0.0
        moves = np.zeros((2, 2))
        for i in rows:
            for d in (0, 1):
                moves[baseline[i], d] += probabilities[i, d]
                apart = values[:, d, i] - values[:, baseline[i], i]
                gain += probabilities[i, d] * (apart > 0)
                lose += probabilities[i, d] * (apart < 0)
                wanted = apart[[measure.wanted for measure in fair.policy_.measures]]
                better += probabilities[i, d] * (bool((wanted > 0).any()) and not (wanted < 0).any())
                worse += probabilities[i, d] * bool((wanted < 0).any())
        np.testing.assert_allclose(effect.gain[z], gain, atol=1e-9)
        np.testing.assert_allclose(effect.lose[z], lose, atol=1e-9)
        np.testing.assert_allclose([effect.better[z], effect.worse[z]], [better, worse], atol=1e-9)
        np.testing.assert_allclose(effect.moves[z], moves, atol=1e-9)
        assert effect.changed[z] == pytest.approx(moves[0, 1] + moves[1, 0], abs=1e-9)
        assert effect.randomized[z] == ((probabilities[rows] > 0).sum(axis=1) > 1).sum()


def test_what_is_proposed_is_what_audits_and_comparisons_find(fair):
    """Gap, means, changes and cost of the policy that is proposed equal audit and compare made apart."""
    X, y = world(900, 3)
    found = assess(fair, X, y)
    asked = {"happiness": fair.happiness, "sensitive_features": "g", "loss": fair.loss}
    before, after = audit(fair.estimator_.predict(X[["x"]]), X, y, **asked), audit(fair, X, y)
    groups, together = len(fair.groups_), found.together
    changes = compare(before, after, confidence=1 - 0.05 / (together * groups))
    gaps = compare(before, after, confidence=1 - 0.05 / together)
    loss = compare(before, after).loss
    for j, part in enumerate(after.measures):
        assert found.known.gaps[j].estimate == pytest.approx(part.gap.estimate, rel=1e-9, abs=1e-9)
        for mean, other in zip(found.known.means[j], part.means.values(), strict=True):
            assert [mean.estimate, mean.low, mean.high] == pytest.approx(
                [other.estimate, other.low, other.high], rel=1e-9
            )
        for change, other in zip(
            found.known.mean_changes[j], changes.measures[j].means.values(), strict=True
        ):
            assert change.estimate == pytest.approx(other.estimate, rel=1e-9, abs=1e-9)
            if not found.proposed.kept.any():
                assert [change.low, change.high] == pytest.approx([other.low, other.high], rel=1e-6)
        change = found.known.gap_changes[j]
        if not found.proposed.kept.any():
            other = gaps.measures[j].gap
            assert [change.low, change.high] == pytest.approx([other.low, other.high], rel=1e-6)
    cost = found.known.cost
    assert [cost.estimate, cost.low, cost.high] == pytest.approx(
        [loss.estimate, loss.low, loss.high], rel=1e-9
    )
    assert [part.gap.estimate for part in found.before.measures] == pytest.approx(
        [part.gap.estimate for part in before.measures]
    )


def test_groups_about_whom_nothing_changes_are_known(model):
    """Where every cell of a group is decided as by the baseline, its change is exactly 0, and not merely unseen."""
    found = FairClassifier(
        model, happiness=FUNDING, gap=20_000.0, policy="label", sensitive_features="g", random_state=0
    ).fit(*world(1_500, 1))
    X, y = world(600, 2)
    assessment = assess(found, X, y)
    kept = assessment.proposed.kept
    assert kept.tolist() == [(found.policy_.q[z] == np.eye(2)).all() for z in range(2)]
    assert kept.any()
    mean = assessment.known.mean_changes[0][int(np.flatnonzero(kept)[0])]
    assert (mean.estimate, mean.low, mean.high) == (0.0, 0.0, 0.0)
    # What another system decides is no function of the cell, so nobody knows of people who were not seen.
    others = replace(assessment.tried.people, baseline=assessment.tried.people.decisions_baseline())
    effect = replace(assessment.tried, people=others).effect(found.policy_)
    assert not effect.kept.any()


def test_the_baseline_against_itself_is_nothing(fair):
    """The baseline's decisions change nothing: every limit is 0, and the verdict says so."""
    X, y = world(600, 2)
    found = assess(fair, X, y)
    known = found.known_of(found.baseline)
    for change in [*known.gap_changes, *(mean for means in known.mean_changes for mean in means)]:
        assert (change.estimate, abs(change.low) < 1e-9, abs(change.high) < 1e-9) == (0.0, True, True)
    assert known.cost.estimate == 0.0
    assert found.verdict_on(found.baseline, known).reason == "same"


def test_other_positions_are_less_sure(fair):
    """Limits that hold at all positions together hold those that hold at one."""
    X, y = world(900, 3)
    found = assess(fair, X, y, places=30)
    one = found.known.gap_changes
    for part, every in zip(one, found.known.every.gaps, strict=True):
        assert part.low <= part.estimate <= part.high
        if part.method == every.method:  # the one that is proposed goes by bets where bounds are known
            assert every.low <= part.low <= part.high <= every.high
    alone = assess(fair, X, y, places=1)
    for wide, narrow in zip(found.known.every.bounds, alone.known.every.bounds, strict=True):
        assert wide >= narrow


def test_weights_are_repetitions(model):
    """Weight 2 is the person twice, in flows, limits and verdicts."""
    fair = FairClassifier(model, happiness=FUNDING, gap=1_000.0, sensitive_features="g", random_state=0).fit(
        *world(1_500, 1)
    )
    X, y = world(500, 2)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    again = X.loc[X.index.repeat(weight)].reset_index(drop=True), np.repeat(y, weight)
    one, other = assess(fair, X, y, sample_weight=weight), assess(fair, *again)
    for name in ("gain", "lose", "moves", "randomized", "better", "worse"):
        np.testing.assert_allclose(getattr(one.proposed, name), getattr(other.proposed, name))
    assert str(one.verdict) == str(other.verdict)
    assert one.known.gap_changes[0].low == pytest.approx(other.known.gap_changes[0].low)


@pytest.mark.parametrize(
    ("settings", "held"),
    [
        ({"gap": 0.6}, True),
        ({"gap": 0.0}, False),
        ({"gap": 0.05}, False),
        ({"gap": None, "constraints": [Ratio("approved", 0.2)]}, True),
        ({"gap": None, "constraints": [Ratio("approved", 0.99)]}, False),
        ({"gap": 0.6, "constraints": [WorseOff(0.5, happiness="approved")]}, True),
        ({"gap": 0.6, "constraints": [Floor("approved", at_least="baseline")]}, True),
        ({"gap": 0.6, "constraints": [Floor("approved", at_least=0.9)]}, False),
    ],
)
def test_what_the_baseline_is_shown_to_meet(model, settings, held):
    """All that was asked is shown of the baseline's decisions, or it is not: a gap of 0 never is."""
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    told = {"happiness": rate, "sensitive_features": "g", "random_state": 0} | settings
    fair = FairClassifier(model, **told).fit(*world(1_500, 1))
    assert assess(fair, *world(3_000, 2)).held_baseline is held


def test_a_safe_fit_has_a_verdict_and_others_have_none(model):
    """With confidence= the rows held out give a verdict; a move along the frontier, or another fit, forgets it."""
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    told = {"happiness": rate, "sensitive_features": "g", "random_state": 0}
    fair = FairClassifier(model, gap=0.15, confidence=0.9, **told).fit(*world(6_000, 1))
    assert fair.verdict_.kind == "certified"
    assert fair.verdict_.headline in repr(fair)
    assert fair.verdict_.headline in fair._repr_mimebundle_()["text/html"].split("sk-global")[0]
    assert fair.at(gap=0.1).verdict_.reason == "in-sample"
    assert fair.recalibrate(world(500, 3)[0]).verdict_.reason == "in-sample"
    plain = FairClassifier(model, gap=0.15, **told).fit(*world(2_000, 1))
    assert plain.verdict_.sentence == "Only the people it was fitted to have been looked at."
    assert "We cannot tell." in str(plain)


def test_the_verdict_of_rows_held_out_is_more_careful(model):
    """One of several policies was chosen by looking at them, so limits are wider than those of one look."""
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    fair = FairClassifier(model, happiness=rate, gap=0.15, sensitive_features="g", random_state=0).fit(
        *world(2_000, 1)
    )
    X, y = world(2_000, 2)
    one, many = assess(fair, X, y), assess(fair, X, y, chosen=22)
    assert many.known.gap_changes[0].low < one.known.gap_changes[0].low
    assert many.known.gaps[0].high > one.known.gaps[0].high


def test_flows_are_expected_over_labels_that_are_missing(model):
    """Somebody without a label gains with the chance of the label that lets them gain, and not as a whole person."""
    X, y = world(3_000, 1)
    rng = np.random.default_rng(0)
    fair = FairClassifier(
        model, happiness="equal_opportunity", gap=0.0, sensitive_features="g", random_state=0,
        missing_labels="at_random",
    ).fit(X, np.where(rng.random(len(y)) < 0.5, np.nan, y))  # fmt: skip
    others, truth = world(2_000, 2)
    found = assess(fair, others, np.where(rng.random(len(truth)) < 0.5, np.nan, truth))
    probabilities, baseline = fair.predict_proba(others), fair.estimator_.predict(others[["x"]])
    people = found.tried.people
    chance = np.where(people.labelled, people.labels == 1, people.chances[:, 1])
    for z, who in enumerate(fair.groups_):
        up = (others["g"] == who) & (baseline == 0)
        assert found.proposed.gain[z, 0] == pytest.approx((probabilities[up, 1] * chance[up]).sum())
        assert found.proposed.better[z] == pytest.approx(found.proposed.gain[z, 0])
        known = ((probabilities[:, 1] * truth)[up]).sum()
        assert found.proposed.gain[z, 0] == pytest.approx(known, rel=0.35, abs=5)


def test_nobody_has_a_part_of_a_ratio(model):
    """Of precision who is better off is not known, and not nobody."""
    fair = FairClassifier(
        model, happiness="precision_parity", gap=0.02, sensitive_features="g", random_state=0
    ).fit(*world(1_500, 1))
    found = assess(fair, *world(900, 2))
    assert np.isnan(found.proposed.better).all()
    assert found.proposed.changed.sum() > 0
    assert "is not known" in str(found.verdict)


def test_majority_and_accuracy(model):
    """A policy that is right less often than deciding all alike is flagged so."""
    fair = FairClassifier(model, happiness=FUNDING, gap=1_000.0, sensitive_features="g", random_state=0).fit(
        *world(1_500, 1)
    )
    X, y = world(800, 2)
    found = assess(fair, X, y)
    assert found.majority == pytest.approx(max(y.mean(), 1 - y.mean()))
    assert "below-majority" not in [flag.kind for flag in found.verdict.flags]
    upside_down = assess(fair, X, 1 - y)
    assert "below-majority" in [flag.kind for flag in upside_down.verdict.flags]
