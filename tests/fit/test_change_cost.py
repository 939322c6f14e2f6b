"""FairClassifier's cost of changes: what it takes by default, for which policies, and who is changed by it."""

import numpy as np
import pandas as pd
import pytest
from helpers import drawn_or_not, fair_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Individual, Policy, aggregate, solve
from felicific._fit.fitted import achieved
from felicific._people.people import People
from felicific.exceptions import DataError


def applicants(n, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "id": np.arange(n) + 10_000 * seed})
    frame["sex"] = np.where(rng.random(n) < 0.4, "f", "m")
    frame["loan"] = rng.integers(1, 9, n).astype(float)
    level = x[:, 0] + 0.5 * x[:, 1] + 0.7 * (frame["sex"] == "m") + rng.logistic(size=n)
    return frame, np.digitize(level, [0.3] if classes == 2 else [-0.5, 1.0])


def fitted(policy="score", classes=2, n=400, **changes):
    X, y = applicants(1200, 1, classes)
    model = LogisticRegression().fit(X[["a", "b"]], y)
    settings = {"happiness": "decision * loan", "gap": 0.1, "sensitive_features": "sex", "random_state": 0}
    fair = fair_classifier(FrozenEstimator(model), policy=policy, **{"key": "id"} | settings | changes)
    X, y = applicants(n, 2, classes)
    return fair.fit(X, y), X, y


def test_by_default_the_score_of_two_classes_has_a_cost():
    """The classifier charges what the sums of the same people charge; every other policy charges nothing."""
    fair, X, y = fitted()
    told = {"score": fair.estimator_.predict_proba(X[["a", "b"]]), "y": y, "sensitive_features": "sex"}
    sums = aggregate(X, happiness="decision * loan", **told)
    again = solve(sums, gap=0.1, change_cost="auto", random_state=0)
    assert fair.policy_.change_cost == again.change_cost == "auto"
    assert np.array_equal(again.q, fair.policy_.q)
    for policy in ("label", "soft-label", "individual"):
        assert fitted(policy)[0].policy_.change_cost == 0.0
    assert fitted(classes=3)[0].policy_.change_cost == 0.0
    assert fitted(loss="changes")[0].policy_.change_cost == 0.0


@pytest.mark.parametrize(("policy", "randomize"), drawn_or_not(["score", "individual", "soft-label"]))
@pytest.mark.parametrize("sees_group", [True, False])
def test_what_is_stated_of_the_three_points_is_what_happens(policy, sees_group, randomize):
    """Loss, means and all shares of the proposed point are those of the probabilities of the fitted people."""
    if policy == "individual" and not sees_group:
        pytest.skip("its numbers are out of fold")
    fair, X, y = fitted(policy, sees_group=sees_group, randomize=randomize, change_cost=0.05)
    assert list(fair.impact_) == ["baseline", "unconstrained", "proposed"]
    assert fair.policy_.change_cost == 0.05
    probabilities, baseline = fair.predict_proba(X), fair.estimator_.predict(X[["a", "b"]])
    stated, now = fair.impact_["proposed"], fair.impact_["baseline"]
    assert fair.loss_ == stated.loss == pytest.approx(1.0 - probabilities[np.arange(len(y)), y].mean())
    for z, group in enumerate(fair.groups_):
        mine = (X["sex"] == group).to_numpy()
        assert stated.changed[z] == pytest.approx(
            1.0 - probabilities[np.arange(len(y)), baseline][mine].mean()
        )
        assert stated.gains[z, 0] == pytest.approx((probabilities[:, 1] * (baseline == 0))[mine].mean())
        assert stated.loses[z, 0] == pytest.approx((probabilities[:, 0] * (baseline == 1))[mine].mean())
    assert now.changed.tolist() == [0.0, 0.0]
    assert now.loss == pytest.approx((baseline != y).mean())
    assert fair.impact_ == fair.policy_.outcomes


def test_an_individual_policy_decides_as_the_cost_says():
    """Without requirements everybody gets the decision of least expected loss plus cost of a change."""
    fair, X, _ = fitted(Individual("none"), gap={}, change_cost=0.15)
    score = fair.estimator_.predict_proba(X[["a", "b"]])
    for i, row in enumerate(score):
        pay = [(1 - row[d]) + 0.15 * (d != row.argmax()) for d in (0, 1)]
        assert fair.predict_proba(X.iloc[[i]])[0, int(np.argmin(pay))] == 1.0
    sentences = fair.policy_.sentences()
    assert any("plus 0.15 if it is not the class that the model finds likeliest" in s for s in sentences)
    back = Policy.from_json(fair.policy_.to_json())
    scores = (score, X["sex"], X)
    assert np.array_equal(back.probabilities(scores[0], scores[1], scores[2]), fair.predict_proba(X))


def test_an_individual_policy_changes_fewer_at_a_cost():
    """The more a change costs, the fewer are changed; the gap is met all the same."""
    shares = []
    for cost in (0.0, 0.05, 0.5):
        fair, _, _ = fitted("individual", change_cost=cost)
        assert max(fair.gaps_.values()) <= 0.1 + 1e-9
        shares.append(fair.impact_["proposed"].changed.mean())
    assert shares[0] > shares[1] > shares[2]
    assert fair.frontier_.change_cost == 0.5
    line = fair.frontier_.value
    assert (np.diff(line) < 1e-12).all()
    assert fair.at(gap=0.3).policy_.change_cost == 0.5


def test_an_individual_policy_cannot_know_another_baseline():
    """A cost of changes from decisions that are not the model's likeliest classes is refused by name."""
    fair, X, y = fitted("individual", change_cost=0.0)
    fair.set_params(change_cost=0.1)
    with pytest.raises(DataError, match=r"would have to know them of everybody\. Use change_cost=0"):
        fair.fit(X, y, baseline=1 - fair.estimator_.predict(X[["a", "b"]]))


def test_a_recalibrated_classifier_keeps_its_cost():
    """New people without labels are decided on at the cost of the labelled ones: the same rule, or the same number."""
    fair, _, _ = fitted()
    new, _ = applicants(300, 3)
    fresh = fair.recalibrate(new)
    assert fresh.policy_.change_cost == fair.policy_.change_cost == "auto"
    probabilities, baseline = fresh.predict_proba(new), fair.estimator_.predict(new[["a", "b"]])
    for z, group in enumerate(fresh.groups_):
        mine = (new["sex"] == group).to_numpy()
        changed = 1.0 - probabilities[np.arange(len(new)), baseline][mine].mean()
        assert fresh.impact_["proposed"].changed[z] == pytest.approx(changed)
    individual = fitted("individual", change_cost=0.05, happiness="equal_opportunity")[0].recalibrate(new)
    assert individual.policy_.change_cost == 0.05
    assert np.isnan(individual.impact_["proposed"].gains).all()  # that looks at labels, and there are none
    assert "is not known" in individual.policy_.impact()[-1]
    assert Policy.from_json(individual.policy_.to_json()).impact() == individual.policy_.impact()


def test_a_safe_fit_goes_along_the_frontier_of_the_sum():
    """With confidence the policy lies on the frontier with the cost, which is found on the rows fitted on."""
    fair, _, _ = fitted(n=3000, happiness="statistical_parity", gap=0.15, confidence=0.9)
    assert fair.policy_.change_cost == fair.frontier_.change_cost == "auto"
    place = fair.frontier_.position(gap=max(fair.gaps_.values()))
    assert fair.frontier_.at(tau=place).loss == pytest.approx(fair.loss_, abs=1e-6)


def test_changes_alone_are_fitted_without_labels():
    """A frozen model, happiness that does not look at the label and loss="changes" need no y, for every policy."""
    X, _ = applicants(400, 2)
    for policy in ("score", "label", "soft-label", "individual"):
        fair, _, _ = fitted(policy, loss="changes")
        blank = FairClassifier(**fair.get_params(deep=False)).fit(X)
        assert blank.loss_ == pytest.approx(fair.loss_, abs=1e-9)
        assert blank.predict_proba(X) == pytest.approx(fair.predict_proba(X), abs=1e-9)
        if policy != "soft-label":  # which cannot decide as the baseline does
            assert blank.impact_["unconstrained"].loss == pytest.approx(0.0)
    kept = Policy.from_json(blank.policy_.to_json())
    assert kept.basis.loss_name == "changes"


@pytest.mark.parametrize("changed", [{"loss": "error"}, {"happiness": "equalized_odds"}])
def test_fit_needs_labels_where_something_looks_at_them(changed):
    """Without y the error of before is raised, and says what would need none."""
    fair, X, _ = fitted()
    fair.set_params(**{"loss": "changes"} | changed)
    with pytest.raises(DataError, match=r"requires y to be passed.*loss='changes' needs none"):
        fair.fit(X)
    fair.set_params(estimator=LogisticRegression(), loss="changes", happiness="decision")
    with pytest.raises(DataError, match="requires y to be passed"):
        fair.fit(X[["a", "b", "id", "sex"]])


def test_print_tells_tuning_and_fairness_apart():
    """print(fair) shows the parameters and, once it is fitted, the impact at the three points."""
    fair, _, _ = fitted()
    assert str(fair).splitlines()[-3:] == fair.policy_.impact()
    assert str(FairClassifier(LogisticRegression(), gap=0.0)).startswith("FairClassifier(")
    assert FairClassifier(LogisticRegression(), gap=0.0).change_cost == "auto"


def test_measured_outcomes_of_any_probabilities_know_who_is_changed():
    """Probabilities that are no cell policy are measured person by person."""
    fair, X, y = fitted()
    problem = fair._fitted.problem
    people = People.of(
        X, problem, group=X["sex"].to_numpy(), y=y, score=fair.estimator_.predict_proba(X[["a", "b"]])
    )
    probabilities = np.full((len(y), 2), 0.5)
    assert achieved(problem, people, probabilities).changed == pytest.approx([0.5, 0.5])


def test_changes_alone_by_a_policy_that_is_chosen():
    """Without labels and without the group, "auto" chooses before it asks whether labels are needed."""
    fair, X, _ = fitted("score")
    settings = {"happiness": "decision", "loss": "changes", "sensitive_features": "sex", "random_state": 0}
    blind = FairClassifier(fair.estimator, gap=0.05, sees_group=False, **settings)
    with pytest.raises(DataError, match="requires y"):
        blind.fit(X)  # what is chosen infers the group, and is fitted to labels
    chosen = FairClassifier(fair.estimator, gap=0.05, **settings).fit(X)
    assert chosen.policy_.kind == "score"
