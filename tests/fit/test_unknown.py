"""People whose group is missing: nobody has to be one, and a policy that knows them says what they are called."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Floor, Policy, WorseOff, aggregate, alternatives, audit, solve
from felicific._sklearn.model import ScoreColumns
from felicific.exceptions import GroupError

ROLES = {"y": "repaid", "sensitive_features": "sex", "happiness": "decision", "score": "score"}


def make(n=900, seed=0, *, missing=0.1):
    """Scores and labels of two sexes, some of them not known."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n).astype(object)
    score = np.round(np.clip(rng.beta(2, 2, n) + 0.15 * (sex == "m"), 0, 1), 2)
    repaid = (rng.random(n) < score).astype(int)
    frame = pd.DataFrame(
        {"sex": sex, "score": score, "rest": 1 - score, "repaid": repaid, "id": np.arange(n) + 10**6 * seed}
    )
    return frame.assign(sex=frame["sex"].where(rng.random(n) >= missing, None))


def fitted(people, **settings):
    """A classifier that knows people without a group."""
    model = FrozenEstimator(ScoreColumns(["rest", "score"], [0, 1]))
    settings = {"gap": 0.05, "missing_group": "unknown", "random_state": 0, "key": "id"} | settings
    fair = FairClassifier(model, happiness="decision", sensitive_features="sex", **settings)
    return fair.fit(people, people["repaid"])


KINDS = [{"policy": "score"}, {"policy": "individual"}, {"policy": "score", "sees_group": False}]


@pytest.mark.parametrize("settings", KINDS)
@pytest.mark.filterwarnings("ignore::felicific.exceptions.PolicyWarning")
def test_other_people_may_all_have_a_group(settings):
    """Fitted with people of unknown group, everything works on others who all have one: means as by hand, gaps too."""
    fair, others = fitted(make(), **settings), make(700, 1, missing=0.0)
    assert fair.policy_.groups == ("f", "m", "unknown")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        curve = fair.frontier_on(others, others["repaid"])
        band = fair.frontier_on(others, others["repaid"], confidence=0.95)
        content = json.loads(fair.report(others, others["repaid"]).to_json())
        found = audit(fair, others, others["repaid"])
        again = fair.recalibrate(others)
    for i, policy in enumerate(fair.frontier_.policies):
        probabilities = policy.probabilities(others[["rest", "score"]], others["sex"], others)
        by_hand = [probabilities[others["sex"] == sex, 1].mean() for sex in ("f", "m")]
        np.testing.assert_allclose(curve.means[i, :2, 0], by_hand, atol=1e-12)
        assert curve.gaps[i, 0] == pytest.approx(abs(by_hand[0] - by_hand[1]), abs=1e-12)
    assert np.isnan(curve.means[:, 2]).all()
    low, high = band.limits(band.tau[0])
    most = max(high[0, 0] - low[1, 0], high[1, 0] - low[0, 0])
    assert band.gaps(band.tau[0])["decision"][1] == pytest.approx(most)
    probabilities = fair.predict_proba(others)[:, 1]
    for sex in ("f", "m"):
        assert found["decision"].means[sex].estimate == pytest.approx(
            probabilities[others["sex"] == sex].mean()
        )
    unknown = content["groups"][2]
    assert (unknown["name"], unknown["people"], unknown["compared"]) == ("unknown", 0.0, False)
    place = content["positions"][content["proposed"]]
    assert place["measures"][0]["means"][2]["change"]["estimate"] is None
    assert again.policy_.gaps["decision"] <= 0.05 + 1e-9
    assert again.policy_.groups == fair.policy_.groups
    assert "of nobody in group 'unknown'" in str(again.policy_)
    assert "nan" not in str(again.policy_)
    stored = Policy.from_json(again.policy_.to_json())
    np.testing.assert_array_equal(stored.outcome.means, again.policy_.outcome.means)
    assert stored.expected_gaps() == again.policy_.expected_gaps()
    assert len(again.predict(make(50, 2, missing=0.5))) == 50


def test_nobody_of_unknown_group_changes_nothing():
    """Sums with an empty unknown group are solved as those without it, whatever is asked; nobody of it is protected."""
    table = make(missing=0.0)
    with_it = aggregate(table, groups=["f", "m", "unknown"], missing_group="unknown", **ROLES)
    without = aggregate(table, **ROLES)
    for asked in (
        {"gap": 0.02},
        {"gap": 0.1, "constraints": [Floor("decision", "baseline")]},
        {"gap": 0.1, "constraints": [Floor("decision", 0.2)]},
        {"gap": 0.02, "change_cost": 0.1},
    ):
        one, other = solved(with_it, **asked), solved(without, **asked)
        assert one.loss == pytest.approx(other.loss, abs=1e-12)
        assert one.gaps == pytest.approx(other.gaps, abs=1e-12)
        np.testing.assert_allclose(one.outcome.means[:2], other.outcome.means, atol=1e-12)
        assert one.expected_gaps() == pytest.approx(other.expected_gaps())
    worse_off = [WorseOff(0.01, groups=["f", "m", "unknown"])]
    both = aggregate(
        table, groups=["f", "m", "unknown"], missing_group="unknown", constraints=worse_off, **ROLES
    )
    assert solve(both, gap=0.1, constraints=worse_off).loss > 0
    with pytest.raises(GroupError, match="'m' is empty"):
        solve(aggregate(table[table["sex"] == "f"], groups=["f", "m"], **ROLES), gap=0.0)


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_a_policy_says_what_they_are_called():
    """An audit takes the name from the policy; another one is refused, and so are such people where it knows none."""
    some, full = make(), make(missing=0.0)
    knows, none = (
        solved(t, random_state=0, missing_group=name, **ROLES) for t, name in ((some, "who"), (full, None))
    )
    by_policy = {name: value for name, value in ROLES.items() if name != "y"}
    found = audit(knows, some, "repaid", **by_policy)
    assert found.unknown == ("who",)
    assert audit(knows, some, "repaid", missing_group="who", **by_policy).gaps == found.gaps
    with pytest.raises(GroupError, match="calls them 'who'"):
        audit(knows, some, "repaid", missing_group="unknown", **by_policy)
    with pytest.raises(GroupError, match=r"this policy knows none.*fit again"):
        audit(none, some, "repaid", missing_group="unknown", **by_policy)
    for decide in (
        lambda: none.probabilities(some[["rest", "score"]], some["sex"]),
        lambda: none.apply(some, score="score", sensitive_features="sex", key="id"),
        lambda: fitted(full, missing_group=None).predict(some),
    ):
        with pytest.raises(
            GroupError,
            match=r"group is missing in .* fit again: with a name for such people \(missing_group\)",
        ):
            decide()
    # The remedies work.
    fitted(some).predict(some)
    fitted(full, missing_group=None, policy="score", sees_group=False).predict(some)
    with pytest.raises(GroupError, match=r"'unknown' .* was never fitted"):
        fitted(full).predict(some)


def test_alternatives_compare_those_of_known_group():
    """The gap is between the others; of the unknown there may be a single one."""
    table = make(3000, 3)
    said = {"happiness": "decision", "sensitive_features": "sex", "missing_group": "unknown"}
    found = alternatives({"baseline": "score"}, table, "repaid", **said)
    known = {
        group: mean.estimate for group, mean in found.baseline["decision"].means.items() if group != "unknown"
    }
    assert found.baseline.gaps["decision"] == pytest.approx(abs(known["f"] - known["m"]))
    assert found.baseline.unknown == ("unknown",)
    one = make(1000, 4, missing=0.0)
    one.loc[0, "sex"] = None
    assert alternatives({"baseline": "score"}, one, "repaid", **said).rows
    with pytest.raises(GroupError, match="one group only: 'f'"):
        alternatives({"baseline": "score"}, table[table["sex"] != "m"], "repaid", **said)
