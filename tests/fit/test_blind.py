"""Policies that decide without knowing the group: what they may see, what they reach, what that costs."""

import pickle

import numpy as np
import pytest
from helpers import fair_classifier
from oracles_policies import (
    Asked,
    cell_units,
    cells_of,
    chains_of,
    codes,
    least_loss,
    make_people,
    outcome_of,
)
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from felicific import FairClassifier, Policy, Score
from felicific._fit import fit
from felicific._sklearn.beliefs import fit_group_model
from felicific.exceptions import DataError, GroupError, InfeasibleError

CELLS = {
    "score": "score",
    "free score": Score(bins=20, monotone=False),
    "label": "label",
    "soft-label": "soft-label",
}
EVERY = {**CELLS, "individual": "individual"}
FEATURES = ["p1", "wealth", "loan"]


def funding(decision, x):
    return decision * x["loan"]


def make_signs(n=600, n_groups=2, seed=1, n_classes=2):
    """People whose features tell something about the group."""
    table, y = make_people(n, n_classes, n_groups, seed=seed)
    table["wealth"] += 0.8 * codes(table["group"])
    return table, y


def frozen(table, y):
    return FrozenEstimator(GaussianNB().fit(table[FEATURES], y))


def fitted(table, y, policy, **options):
    options = {
        "happiness": "statistical_parity",
        "gap": 0.02,
        "sensitive_features": "group",
        "sees_group": False,
        "random_state": 0,
    } | options
    return fair_classifier(frozen(table, y), policy=EVERY.get(policy, policy), **options).fit(table, y)


def truth(decided, table, y, measures, weight=None):
    """Loss and gaps of decision probabilities; measures are (value(d), among) arrays."""
    K = decided.shape[1]
    value = np.stack([np.broadcast_to(v, (len(y), K)) for v, _ in measures], axis=2).astype(float)
    among = np.stack([np.ones(len(y), bool) if a is None else a for _, a in measures], axis=1)
    cost = (np.arange(K) != y[:, None]).astype(float)
    weight = np.ones(len(y)) if weight is None else weight
    group = codes(table["group"])
    loss, _, gaps = outcome_of(decided, cost, value, among, weight, group, group.max() + 1)
    return loss, gaps


def parity(K=2):
    return [(np.eye(K)[k], None) for k in (range(K) if K > 2 else (1,))]


def odds(y, K=2):
    if K == 2:
        return [(np.eye(2)[1], y == label) for label in (1, 0)]
    return [(np.eye(K)[k], y == label) for label in range(K) for k in range(K)]


# ---------------------------------------------------------------------------------------------------------
# Without the group


@pytest.mark.parametrize("policy", EVERY)
def test_nobody_needs_to_say_the_group(policy):
    """predict, predict_proba and score work on a table that has no column of the group, as on one that has."""
    table, y = make_signs()
    fair = fitted(table, y, policy, key="id")
    without = table.drop(columns="group")
    assert (fair.predict_proba(without) == fair.predict_proba(table)).all()
    assert (fair.predict(without) == fair.predict(table)).all()
    assert fair.score(without, y) == fair.score(table, y)


@pytest.mark.parametrize("policy", EVERY)
def test_groups_passed_to_fit_are_not_asked_for_again(policy):
    """When the groups came as a keyword, predict asks for none; a policy that sees them does."""
    table, y = make_signs()
    x, group = table[[*FEATURES, "id"]], table["group"]
    options = {"happiness": "statistical_parity", "gap": 0.02, "policy": EVERY[policy], "random_state": 0}
    blind = FairClassifier(frozen(table, y), sees_group=False, **options)
    blind.fit(x, y, sensitive_features=group)
    assert blind.predict(x).shape == y.shape
    assert (blind.predict_proba(x) == blind.predict_proba(x, sensitive_features=group)).all()
    seeing = FairClassifier(frozen(table, y), **options).fit(x, y, sensitive_features=group)
    with pytest.raises(GroupError):
        seeing.predict(x)


@pytest.mark.parametrize("policy", EVERY)
def test_the_group_decides_nothing(policy):
    """Two people alike in everything but the group, a group nobody knows included, are decided alike."""
    table, y = make_signs()
    fair = fitted(table, y, policy, happiness=funding, gap=1.0, key="id")
    decided, drawn = fair.predict_proba(table), fair.predict(table)
    for group in ("a", "b", "somebody else"):
        other = table.assign(group=group)
        assert (fair.predict_proba(other) == decided).all()
        assert (fair.predict(other) == drawn).all()
    assert len(np.unique(decided, axis=0)) > 1


@pytest.mark.parametrize("policy", ["label", "score", "individual"])
def test_the_group_decides_no_lottery_either(policy):
    """Without a key people draw by the row's content: not by its group, when the policy may not know it."""
    table, y = make_signs()
    fair = fitted(table, y, policy, happiness=funding, gap=0.5)
    assert fair.share_randomized_ > 0
    drawn = [fair.predict(table.assign(group=group)) for group in ("a", "b")]
    assert (drawn[0] == drawn[1]).all()


@pytest.mark.parametrize("policy", CELLS)
def test_every_group_has_the_same_cells(policy):
    """The policy of cells is the same line for every group, and reads so."""
    table, y = make_signs(n_groups=3)
    fair = fitted(table, y, policy, gap=0.1)
    q = fair.policy_.q
    assert (q == q[:1]).all()
    rules = fair.policy_.rules()
    assert rules
    assert all(rule.startswith("In any group, ") for rule in rules)
    assert fair.policy_.sees_group is False
    assert fair.groups_ == ("a", "b", "c")


def test_an_individual_policy_reads_as_blind():
    """A blind individual policy says that it infers the group, speaks of any, and weighs each group's happiness."""
    table, y = make_signs()
    policy = fitted(table, y, "individual").policy_
    said, *rules = policy.rules()
    assert "infers the group from x" in said
    assert said in str(policy)
    assert rules
    assert all(rule.startswith("In any group, ") for rule in rules)
    assert any("if the person is of group 'a'" in rule for rule in rules)


# ---------------------------------------------------------------------------------------------------------
# What is reached


CRITERIA = {
    "parity": ("statistical_parity", lambda table, y: parity()),
    "odds": ("equalized_odds", lambda table, y: odds(y)),
    "funding": (funding, lambda table, y: [(np.arange(2) * table["loan"].to_numpy()[:, None], None)]),
    "accuracy": ("overall_accuracy", lambda table, y: [((np.arange(2) == y[:, None]), None)]),
}
WIDTHS = {"parity": 0.02, "odds": 0.05, "funding": 1.0, "accuracy": 0.05}


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_are_as_asked_on_the_fitted_rows(policy, criterion, weighted):
    """gaps_ are at most what was asked; for cells, and only for them, predict_proba reaches exactly what is stated.

    An individual policy is fitted on what a cross-fitted model believes of each row, and decides new rows by the
    average of those models.
    """
    table, y = make_signs()
    weight = 1.0 + np.arange(len(y)) % 3 if weighted else np.ones(len(y))
    happiness, measures = CRITERIA[criterion]
    fair = FairClassifier(
        frozen(table, y),
        happiness=happiness,
        gap=WIDTHS[criterion],
        policy=EVERY[policy],
        sensitive_features="group",
        sees_group=False,
        random_state=0,
    ).fit(table, y, sample_weight=weight)
    for gap in fair.gaps_.values():
        assert gap <= WIDTHS[criterion] * (1 + 1e-9) + 1e-9
    if policy in CELLS:
        loss, gaps = truth(fair.predict_proba(table), table, y, measures(table, y), weight)
        assert fair.loss_ == pytest.approx(loss, rel=1e-12)
        assert list(fair.gaps_.values()) == pytest.approx(gaps.tolist(), abs=1e-9)
    assert 0 <= fair.share_randomized_ <= 1


def test_individual_outcome_is_that_of_the_cross_fitted_beliefs():
    """The stated loss and gap of a blind individual policy are those of its decisions by held-out beliefs."""
    table, y = make_signs()
    fair = fitted(table, y, "individual", happiness="equalized_odds", gap=0.05)
    features = table[FEATURES]
    score = fair.estimator_.predict_proba(features)
    group = table["group"].to_numpy()
    asked = {"names": FEATURES, "cv": 5, "weight": None, "cluster": None}
    _, belief = fit_group_model(features, codes(group), ("a", "b"), **asked)
    assert belief.shape == (len(y), 2)
    assert np.abs(belief.sum(axis=1) - 1).max() <= 1e-12
    decided = fair.policy_.probabilities(score, x=table, group_proba=belief)
    loss, gaps = truth(decided, table, y, odds(y))
    assert fair.loss_ == pytest.approx(loss, rel=1e-12)
    assert list(fair.gaps_.values()) == pytest.approx(gaps.tolist(), abs=1e-12)
    assert gaps.max() <= 0.05 + 1e-9


@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_the_blind_optimum_is_that_of_the_naive_program(criterion, gap):
    """Over the score bins, the least loss of all blind monotone policies is found."""
    table, y = make_signs(300, 3, seed=4)
    fair = fitted(table, y, Score(bins=30), happiness=CRITERIA[criterion][0], gap=gap, change_cost=0)
    score = fair.estimator_.predict_proba(table[FEATURES])
    signal = fair.policy_.signal
    measures = CRITERIA[criterion][1](table, y)
    units = cell_units(
        (np.arange(2) != y[:, None]).astype(float),
        np.stack([np.broadcast_to(value, (300, 2)) for value, _ in measures], axis=2).astype(float),
        np.stack([np.ones(300, bool) if among is None else among for _, among in measures], axis=1),
        np.ones(300),
        codes(table["group"]),
        cells_of(score, signal.cuts, signal.boundary),
        3,
        len(signal.cuts) + 1,
        chains_of(signal.cuts, 2),
        blind=True,
    )
    asked = Asked(dict.fromkeys(range(len(measures)), gap))
    assert fair.loss_ == pytest.approx(least_loss(units, asked), abs=1e-9)


def test_out_of_reach_without_the_group():
    """What cannot be had without knowing the group says so, with a gap that can."""
    table, y = make_signs()

    def gift(decision, x, group):
        return (group == "a") * 1.0 + 0.1 * decision * x["loan"] / 60

    with pytest.raises(InfeasibleError) as caught:
        fitted(table, y, "score", happiness=gift, gap=0.5)
    least = caught.value.least_gap
    assert least > 0.5
    fair = fitted(table, y, "score", happiness=gift, gap=least * (1 + 1e-6))
    assert fair.gaps_["gift"] == pytest.approx(least, rel=1e-5)


# ---------------------------------------------------------------------------------------------------------
# What it costs


@pytest.mark.parametrize("policy", CELLS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_blindness_costs_what_it_says(policy, criterion):
    """cost_of_blindness_ is the loss over that of the policy that sees the group, and not below zero."""
    table, y = make_signs()
    options = {"happiness": CRITERIA[criterion][0], "gap": WIDTHS[criterion], "change_cost": 0}
    blind = fitted(table, y, policy, **options)
    seeing = fitted(table, y, policy, sees_group=True, **options)
    assert blind.cost_of_blindness_ == pytest.approx(blind.loss_ - seeing.loss_, abs=1e-12)
    assert blind.cost_of_blindness_ >= -1e-9
    assert seeing.cost_of_blindness_ is None


@pytest.mark.parametrize("criterion", CRITERIA)
def test_blindness_costs_an_individual_policy_what_it_says(criterion):
    """For an individual policy it is the difference of the two fits."""
    table, y = make_signs()
    options = {"happiness": CRITERIA[criterion][0], "gap": WIDTHS[criterion]}
    blind = fitted(table, y, "individual", **options)
    seeing = fitted(table, y, "individual", sees_group=True, **options)
    assert blind.cost_of_blindness_ == pytest.approx(blind.loss_ - seeing.loss_, abs=1e-12)


@pytest.mark.parametrize("policy", ["score", "individual"])
def test_rounded_blindness_costs_what_rounded_policies_cost(policy):
    """With randomize=False the cost of blindness compares the decisions that are really taken."""
    table, y = make_signs()
    blind = fitted(table, y, policy, randomize=False)
    seeing = fitted(table, y, policy, randomize=False, sees_group=True)
    assert blind.share_randomized_ == 0.0
    assert blind.cost_of_blindness_ == pytest.approx(blind.loss_ - seeing.loss_, abs=1e-12)


def test_an_individual_policy_is_fitted_again_only_when_somebody_asks(monkeypatch):
    """The cost of blindness takes a fit of its own at the first look alone, and is in a file though nobody looked."""
    table, y = make_signs()
    calls, whole = [], fit.fit_policy

    def counted(*args, **options):
        calls.append(args[0].sees_group)
        return whole(*args, **options)

    monkeypatch.setattr(fit, "fit_policy", counted)
    blind = fitted(table, y, "individual")
    assert calls == [False]
    stored = pickle.loads(pickle.dumps(blind))
    assert calls == [False, True]
    assert stored.cost_of_blindness_ == blind.cost_of_blindness_ == blind.cost_of_blindness_
    assert calls == [False, True]


def test_refitting_with_sight_forgets_the_cost():
    """A refit that sees the group states no cost of blindness from an earlier fit."""
    table, y = make_signs()
    fair = fitted(table, y, "score")
    assert fair.cost_of_blindness_ > 0
    fair.set_params(sees_group=True).fit(table, y)
    assert fair.cost_of_blindness_ is None


def test_a_fit_that_fails_costs_nothing():
    """When only the blind policy can not reach the gap, the seeing one is no excuse: it raises."""
    table, y = make_signs()

    def gift(decision, x, group):
        return np.where(group == "a", 1.0, 0.0) * (1 - 2 * decision)

    assert fitted(table, y, "label", happiness=gift, gap=0.0, sees_group=True).gaps_["gift"] <= 1e-9
    blind = fitted(table, y, "label", happiness=gift, gap=0.0)
    assert blind.gaps_["gift"] <= 1e-9
    assert blind.cost_of_blindness_ >= -1e-9


# ---------------------------------------------------------------------------------------------------------
# Weights, other estimators, files


@pytest.mark.parametrize("policy", ["score", "label", "individual"])
def test_weight_zero_is_the_row_absent(policy):
    """Rows of weight 0 teach a blind policy nothing: not the labels' probabilities, not the groups'."""
    table, y = make_signs(300)
    weight = np.ones(300)
    weight[::3] = 0.0
    kept = weight > 0
    hostile = table.copy()
    hostile.loc[::3, "wealth"] = 50.0
    hostile.loc[::3, "group"] = np.where(table["group"][::3] == "a", "b", "a")
    options = {"happiness": "statistical_parity", "gap": 0.02, "policy": EVERY[policy]}
    options |= {"sensitive_features": "group", "sees_group": False, "random_state": 0}
    model = frozen(table, y)
    one = FairClassifier(model, **options).fit(hostile, y, sample_weight=weight)
    other = FairClassifier(model, **options).fit(table[kept], y[kept])
    assert one.loss_ == pytest.approx(other.loss_, abs=1e-9)
    assert one.gaps_ == pytest.approx(other.gaps_, abs=1e-9)
    assert np.abs(one.predict_proba(table) - other.predict_proba(table)).max() <= 1e-9


def test_a_group_of_weight_zero_is_no_group():
    """A group whose rows all have weight 0 is none that a blind individual policy learns."""
    table, y = make_signs(300, 3)
    weight = np.where(table["group"] == "c", 0.0, 1.0)
    fair = FairClassifier(
        frozen(table, y),
        happiness="statistical_parity",
        gap=0.02,
        policy="individual",
        sensitive_features="group",
        sees_group=False,
        random_state=0,
    ).fit(table, y, sample_weight=weight)
    assert fair.groups_ == ("a", "b")
    assert fair.predict(table).shape == y.shape


@pytest.mark.parametrize("policy", ["score", "label", "individual"])
def test_an_unfitted_model_is_cross_fitted_blind_too(policy):
    """An estimator that is not frozen is cross-fitted; gaps_ are as asked and nobody asks for the group."""
    table, y = make_signs()
    fair = FairClassifier(
        GaussianNB(),
        happiness="statistical_parity",
        gap=0.02,
        policy=EVERY[policy],
        sees_group=False,
        random_state=0,
        cv=3,
    ).fit(table[FEATURES], y, sensitive_features=table["group"])
    assert max(fair.gaps_.values()) <= 0.02 + 1e-9
    decided = fair.predict_proba(table[FEATURES])
    assert np.abs(decided.sum(axis=1) - 1).max() <= 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_many_classes_and_groups(n_classes, n_groups):
    """Three classes and three groups are decided blind, with gaps as asked."""
    table, y = make_signs(500, n_groups, seed=3, n_classes=n_classes)
    for policy in ("score", "individual"):
        fair = fitted(table, y, policy, gap=0.05)
        assert max(fair.gaps_.values()) <= 0.05 + 1e-9
        assert fair.predict_proba(table).shape == (500, n_classes)


def test_decisions_do_not_depend_on_the_batch():
    """Shuffled, in chunks or one by one, a blind individual policy decides alike."""
    table, y = make_signs(300)
    fair = fitted(table, y, "individual", happiness=funding, gap=0.5, key="id")
    decided, drawn = fair.predict_proba(table), fair.predict(table)
    order = np.random.default_rng(0).permutation(300)
    assert np.abs(fair.predict_proba(table.iloc[order]) - decided[order]).max() <= 1e-12
    assert (fair.predict(table.iloc[order]) == drawn[order]).all()
    chunks = [fair.predict(table.iloc[start : start + 50]) for start in range(0, 300, 50)]
    assert (np.concatenate(chunks) == drawn).all()
    single = [fair.predict(table.iloc[i : i + 1]) for i in range(15)]
    assert (np.concatenate(single) == drawn[:15]).all()


def test_a_blind_individual_policy_comes_back_from_a_file():
    """From JSON it decides the same from p(label | x) and p(group | x), without the group; other shapes are refused."""
    table, y = make_signs()
    fair = fitted(table, y, "individual", happiness=[funding, "equalized_odds"], gap={"funding": 1.0})
    policy = fair.policy_
    back = Policy.from_json(policy.to_json(), happiness=funding)
    assert back.to_json() == policy.to_json()
    assert back.sees_group is False
    features = table[FEATURES]
    score, belief = fair.estimator_.predict_proba(features), fair.group_model_.predict_proba(features)
    assert (back.probabilities(score, x=table, group_proba=belief) == fair.predict_proba(table)).all()
    by_group = {"b": belief[:, 1], "a": belief[:, 0]}
    assert (back.probabilities(score, x=table, group_proba=by_group) == fair.predict_proba(table)).all()
    with pytest.raises(DataError, match="shape"):
        back.probabilities(score, x=table, group_proba=belief[:, :1])
    with pytest.raises(DataError, match="infers the group"):
        back.probabilities(score, x=table)
    with pytest.raises(DataError, match="looks at the people"):
        back.probabilities(score, group_proba=belief)


@pytest.mark.parametrize("policy", CELLS)
def test_blind_cells_are_recalibrated(policy):
    """Recalibrated on new people, a blind policy of cells has no gap on them, and still needs no group."""
    table, y = make_signs()
    new, _ = make_signs(400, seed=9)
    again = fitted(table, y, policy, happiness=funding, gap=0.5).recalibrate(new)
    decided = again.predict_proba(new.assign(group="nobody"))
    _, gaps = truth(
        decided, new, np.zeros(400, int), [(np.arange(2) * new["loan"].to_numpy()[:, None], None)]
    )
    assert gaps[0] <= 0.5 + 1e-9
    assert again.gaps_["funding"] == pytest.approx(gaps[0], abs=1e-9)
