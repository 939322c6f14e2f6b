"""How likely each group is: given by columns or a classifier, or learnt in folds; at every door, and refused."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import fair_classifier, solved, traced
from naive import as_duckdb
from oracles_policies import codes, make_people, outcome_of
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from felicific import Individual, Policy, audit
from felicific._people.roles import Roles
from felicific._sklearn.beliefs import LEAVES, RATE, TREES, Coding, fit_group_model, group_folds
from felicific.exceptions import DataError, FittedRowsWarning

FEATURES = ["p1", "wealth", "loan"]
ASKED = {"happiness": "decision * loan", "gap": 0.5, "random_state": 0}
BLIND = {"policy": "individual", "sees_group": False}
COLUMNS = {"a": "chance_a", "b": "chance_b"}


def make_believed(n=400, seed=1):
    """People of two groups, with the columns of a model of the group that was fitted on others, and of one of y."""
    (others, then), (table, y) = make_people(n, seed=seed + 50), make_people(n, seed=seed)
    for part in (others, table):
        part["wealth"] += 0.8 * codes(part["group"])
    of_group = LogisticRegression().fit(others[["wealth", "p1"]], others["group"])
    of_label = GaussianNB().fit(others[FEATURES], then)
    table["chance_a"], table["chance_b"] = of_group.predict_proba(table[["wealth", "p1"]]).T
    table["q0"], table["q1"] = of_label.predict_proba(table[FEATURES]).T
    table["y"] = y
    return table, y, of_group, of_label


def fitted(table, y, of_label, **settings):
    settings = ASKED | BLIND | {"sensitive_features": "group", "key": "id"} | settings
    return fair_classifier(FrozenEstimator(of_label), **settings).fit(table.drop(columns="y"), y)


def naive_outcome(probabilities, table, y):
    """Loss and gap of funding, person by person."""
    value = (np.arange(2) * table["loan"].to_numpy()[:, None])[:, :, None].astype(float)
    cost = (np.arange(2) != y[:, None]).astype(float)
    everyone = np.ones((len(y), 1), bool)
    loss, _, gaps = outcome_of(
        probabilities, cost, value, everyone, np.ones(len(y)), codes(table["group"]), 2
    )
    return loss, gaps[0]


NAMED = (
    {
        "score": {0: "q0", 1: "q1"},
        "y": "y",
        "sensitive_features": "group",
        "group_proba": COLUMNS,
    }
    | ASKED
    | BLIND
)


# ---------------------------------------------------------------------------------------------------------
# Given


@pytest.mark.parametrize("given", ["columns", "classifier", "frozen"])
@pytest.mark.parametrize("randomize", [True, False])
def test_what_is_stated_is_what_is_predicted(given, randomize):
    """By beliefs of a model that saw other people, loss_ and gaps_ are those of predict_proba."""
    table, y, of_group, of_label = make_believed()
    believed = {"columns": COLUMNS, "classifier": of_group, "frozen": FrozenEstimator(of_group)}[given]
    fair = fitted(table, y, of_label, group_proba=believed, randomize=randomize)
    loss, gap = naive_outcome(fair.predict_proba(table), table, y)
    assert fair.loss_ == pytest.approx(loss, rel=1e-12)
    assert fair.gaps_["decision * loan"] == pytest.approx(gap, abs=1e-9)
    if randomize:
        assert gap <= 0.5 + 1e-9
    assert not fair.policy_.basis.out_of_fold
    assert "out of fold" not in str(fair.policy_)
    assert "infers the group from x" in str(fair.policy_)
    assert (fair.group_model_ is not None) == (given != "columns")


def test_columns_and_their_classifier_say_the_same():
    """A classifier of the group and the columns of what it says lead to the same policy, which reads only these."""
    table, y, of_group, of_label = make_believed()
    by_columns, by_model = (fitted(table, y, of_label, group_proba=given) for given in (COLUMNS, of_group))
    assert replace(by_columns.policy_, roles=by_model.policy_.roles).to_json() == by_model.policy_.to_json()
    assert (by_columns.predict(table) == by_model.predict(table)).all()
    other = table.assign(chance_a=0.5, chance_b=0.5)
    assert (by_model.predict_proba(other) == by_model.predict_proba(table)).all()
    assert (by_columns.predict_proba(other) != by_columns.predict_proba(table)).any()


def test_whoever_knows_the_group_for_sure_sees_it():
    """With beliefs of 0 and 1 that are true, the least loss is that of the policy that sees the group."""
    table, _, _, _ = make_believed()
    table["chance_a"] = (table["group"] == "a") * 1.0
    table["chance_b"] = 1.0 - table["chance_a"]
    told = solved(table, **NAMED)
    seeing = {
        **NAMED,
        "policy": Individual(calibration="none"),
        "sees_group": True,
        "group_proba": None,
    }
    sees = solved(table, **seeing)
    assert told.search.plug_in_optimum == pytest.approx(sees.search.plug_in_optimum, abs=1e-7)
    assert told.gap <= 0.5 + 1e-9


def test_a_belief_is_no_feature():
    """Neither an estimator that is cross-fitted nor a frozen one without names is shown the columns of beliefs."""
    table, y, _, _ = make_believed()
    x = table[[*FEATURES, *COLUMNS.values()]]
    options = ASKED | BLIND
    fair = fair_classifier(GaussianNB(), group_proba=COLUMNS, cv=3, **options)
    fair.fit(x, y, sensitive_features=table["group"])
    assert list(fair.estimator_.feature_names_in_) == FEATURES
    array = x.to_numpy()
    model = FrozenEstimator(GaussianNB().fit(array[:, :3], y))
    again = fair_classifier(
        model, group_proba={"a": 3, "b": 4}, **options | {"happiness": "statistical_parity"}
    )
    again.fit(array, y, sensitive_features=table["group"].to_numpy())
    assert max(again.gaps_.values()) <= 0.5 + 1e-9
    assert again.predict_proba(array).shape == (len(y), 2)


def test_clones_and_parameters():
    """It is a parameter as any other; what is frozen, and columns, survive a clone and cross-validation."""
    table, y, of_group, of_label = make_believed()
    fair = fair_classifier(FrozenEstimator(of_label), group_proba=FrozenEstimator(of_group), **ASKED | BLIND)
    fair.set_params(sensitive_features="group", key="id")
    again = clone(fair)
    assert again.get_params()["policy"].group_proba.estimator.get_params() == of_group.get_params()
    assert clone(fair_classifier(GaussianNB(), group_proba=COLUMNS)).policy.group_proba == COLUMNS
    scores = cross_validate(again, table.drop(columns="y"), y, cv=2, error_score="raise")
    assert (scores["test_score"] > 0).all()
    stored = pickle.loads(pickle.dumps(again.fit(table.drop(columns="y"), y)))
    assert (stored.predict(table) == again.predict(table)).all()


# ---------------------------------------------------------------------------------------------------------
# Learnt in folds


def test_folds_are_learnt_naively_alike():
    """Everybody is believed about by trees that left them out, and new people by the average of all."""
    table, y, _, of_label = make_believed()
    fair = fitted(table, y, of_label)
    x, z = table[FEATURES].to_numpy(), codes(table["group"])
    models, believed = [], np.empty((len(z), 2))
    for train, test in group_folds(x, z, 5, None):
        model = HistGradientBoostingClassifier(
            max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, early_stopping=False, random_state=0
        ).fit(x[train], z[train])
        models.append(model)
        believed[test] = model.predict_proba(x[test])
    average = sum(model.predict_proba(x) for model in models) / 5
    assert np.abs(fair.group_model_.predict_proba(table[FEATURES]) - average).max() <= 1e-12
    score = of_label.predict_proba(table[FEATURES])
    loss, gap = naive_outcome(fair.policy_.probabilities(score, x=table, group_proba=believed), table, y)
    assert fair.loss_ == pytest.approx(loss, rel=1e-12)
    assert fair.gaps_["decision * loan"] == pytest.approx(gap, abs=1e-9)
    assert fair.policy_.basis.out_of_fold
    predicted = fair.policy_.probabilities(score, x=table, group_proba=average)
    assert (predicted == fair.predict_proba(table)).all()
    with pytest.warns(FittedRowsWarning, match="out of fold"):
        audit(fair, table, y)


@pytest.mark.parametrize("sizes", [(40, 3), (2, 1), (7, 5, 1)])
@pytest.mark.parametrize("cv", [2, 5, None])
def test_folds_part_the_people(sizes, cv):
    """Every person is left out once, and of a group that is large enough some are in every fold."""
    z = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = group_folds(None, z, cv, None)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(len(z)))
    for train, test in folds:
        assert len(train)
        assert sorted([*train, *test]) == list(range(len(z)))
        for group, size in enumerate(sizes):
            if size >= len(folds) == (cv or 5):
                assert (z[test] == group).any()


def test_no_cluster_is_in_two_folds():
    """Rows of a person, or of whatever is named as cluster, are left out together; a splitter gets them too."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 30, 300)
    z = (cluster % 3 == 0).astype(int)
    for cv in (5, GroupKFold(4)):
        folds = group_folds(np.zeros((300, 1)), z, cv, cluster)
        assert len(folds) == (5 if cv == 5 else 4)
        for train, test in folds:
            assert not set(cluster[train]) & set(cluster[test])


def test_any_columns_are_learnt_from():
    """Text, categories, times, booleans and missing values teach something; new and rare values are missing ones."""
    rng = np.random.default_rng(0)
    n, z = 400, np.arange(400) % 2
    table = pd.DataFrame(
        {
            "text": np.where(rng.random(n) < 0.9, np.where(z, "x", "y"), None),
            "kind": pd.Categorical(np.where(rng.random(n) < 0.7, z, 1 - z).astype(str)),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(z * 5 + rng.random(n) * 9, unit="D"),
            "many": [f"person {i}" for i in range(n)],
            "empty": np.nan,
            "flag": rng.random(n) < 0.5,
        }
    )
    asked = {"names": list(table), "cv": 5, "weight": None, "cluster": None}
    for rows in (table, pl.from_pandas(table)):
        model, believed = fit_group_model(rows, z, ("f", "m"), **asked)
        assert (believed.argmax(axis=1) == z).mean() > 0.85
        new = model.predict_proba(table.assign(text="never seen", many="nobody"))
        assert np.abs(new.sum(axis=1) - 1).max() <= 1e-12
    assert len(Coding.of(table).levels["many"]) == 254
    dense = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.5)
    ways = [fit_group_model(x, z, ("f", "m"), **asked)[1] for x in (dense, sparse.csr_array(dense))]
    assert (ways[0] == ways[1]).all()


def test_a_group_of_one_and_no_other_group():
    """A fold without some group believes in no such people; one group alone is sure of itself."""
    z = np.array([0] * 60 + [1])
    x = np.random.default_rng(0).normal(size=(61, 2))
    asked = {"names": None, "cv": 5, "weight": None, "cluster": None}
    model, believed = fit_group_model(x, z, ("f", "m"), **asked)
    assert (believed[-1] == [1.0, 0.0]).all()
    assert np.abs(model.predict_proba(x).sum(axis=1) - 1).max() <= 1e-12
    alone, _ = fit_group_model(x, 0 * z, ("f",), **asked)
    assert (alone.predict_proba(x) == 1.0).all()


# ---------------------------------------------------------------------------------------------------------
# Every door

PLACES = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "dict": lambda table: {name: table[name].to_numpy() for name in table},
    "polars lazy": lambda table: pl.from_pandas(table).lazy(),
    "duckdb": lambda table: as_duckdb({name: table[name].to_numpy() for name in table}),
}


def read(made):
    """A column of decisions, wherever it is."""
    if hasattr(made, "collect"):
        made = made.collect()
    if hasattr(made, "fetchnumpy"):
        return np.asarray(made.select("decision").fetchnumpy()["decision"])
    return np.asarray(made["decision"])


@pytest.mark.parametrize("place", PLACES)
def test_solve_apply_and_audit_are_the_same_everywhere(place):
    """In memory and on an engine, with or without scikit-learn: one policy, the same draws, the same audit."""
    table, y, _, of_label = make_believed()
    there = PLACES[place](table)
    fair = fitted(table, y, of_label, group_proba=COLUMNS)
    policy = solved(table, **NAMED)
    assert policy.loss == pytest.approx(fair.loss_, abs=1e-12)
    assert policy.gap == pytest.approx(fair.gaps_["decision * loan"], abs=1e-9)
    assert "infers the group from x" in policy.sentences()[0]
    back = Policy.from_json(fair.policy_.to_json())
    roles = {"score": NAMED["score"], "group_proba": COLUMNS}
    decided = back.apply(there, key="id", **roles)
    order = np.asarray(decided["id"]) if isinstance(decided, dict) else None
    assert order is None or (order == table["id"].to_numpy()).all()
    assert (read(decided) == fair.predict(table)).all()
    asked = {"happiness": "decision * loan", "sensitive_features": "group", "y": "y"}
    with pytest.warns(FittedRowsWarning, match="fitted on"):
        measured = audit(back, there, **asked, score=NAMED["score"]).measures[0]
    loss, gap = naive_outcome(fair.predict_proba(table), table, y)
    assert measured.gap.estimate == pytest.approx(gap, abs=1e-9)
    assert loss == pytest.approx(policy.loss, abs=1e-9)


def test_frontier_at_and_report():
    """The frontier, moving along it and the report work with columns, and say that the group is inferred."""
    table, y, _, of_label = make_believed()
    fair = fitted(table, y, of_label, group_proba=COLUMNS)
    line = traced(table, **{name: part for name, part in NAMED.items() if name != "gap"})
    assert line.at(gap=0.5).loss <= fair.loss_ + 1e-9
    new, truth, _, _ = make_believed(seed=2)
    new["id"] += " of others"
    told = {"happiness": "decision * loan", "sensitive_features": "group"}
    band = line.band(new[["q0", "q1"]].to_numpy(), new, "y", group_proba=COLUMNS, **told)
    _, there = naive_outcome(
        line.policies[0].probabilities(
            new[["q0", "q1"]], x=new, group_proba=new[list(COLUMNS.values())].to_numpy()
        ),
        new,
        truth,
    )
    assert np.ptp(band.means[0, :, 0]) == pytest.approx(there, abs=1e-9)
    refused(
        "infers the group", "group_proba=", lambda: line.band(new[["q0", "q1"]].to_numpy(), new, "y", **told)
    )
    moved = fair.at(gap=1.0)
    loss, gap = naive_outcome(moved.predict_proba(table), table, y)
    assert gap <= 1.0 + 1e-9
    assert moved.loss_ == pytest.approx(loss, abs=1e-9)
    report = fair.report(new.drop(columns="y"), truth)
    assert "infers the group from x" in report.to_html()


def test_recalibrated_for_new_people():
    """People without labels, with beliefs of their own, meet the gap exactly; the words claim no calibration."""
    table, y, _, of_label = make_believed()
    new, truth, _, _ = make_believed(seed=2)
    again = fitted(table, y, of_label, group_proba=COLUMNS).recalibrate(new.drop(columns="y"))
    _, gap = naive_outcome(again.predict_proba(new), new, truth)
    assert gap <= 0.5 + 1e-9
    assert again.gaps_["decision * loan"] == pytest.approx(gap, abs=1e-9)
    probabilities = fitted(table, y, of_label, group_proba=COLUMNS, happiness="equal_opportunity", gap=0.2)
    assert "the model's probabilities" in str(probabilities.recalibrate(new)._notes)


def test_a_safe_fit_infers_the_group_of_those_held_out():
    """With confidence=, people held out are believed about by columns or by the model that never saw them."""
    table, y, _, of_label = make_believed(1200)
    for given in (COLUMNS, None):
        fair = fitted(
            table, y, of_label, group_proba=given, happiness="statistical_parity", gap=0.3, confidence=0.9
        )
        assert fair.certificate_.basis == "held-out test"


def test_weights_and_absent_rows():
    """A row of weight 0 is absent, whatever its beliefs; weight 2 is the row twice."""
    table, y, _, of_label = make_believed()
    weight = np.arange(len(y)) % 3
    broken = table.assign(chance_a=np.where(weight == 0, np.nan, table["chance_a"]))
    kept = np.repeat(np.arange(len(y)), weight)
    one = solved(broken.assign(w=weight), **NAMED, sample_weight="w")
    other = solved(table.iloc[kept], **NAMED)
    assert one.loss == pytest.approx(other.loss, abs=1e-9)
    assert one.gap == pytest.approx(other.gap, abs=1e-9)
    fair = fair_classifier(FrozenEstimator(of_label), group_proba=COLUMNS, **ASKED | BLIND)
    fair.fit(broken.drop(columns="y"), y, sensitive_features="group", sample_weight=weight)
    assert fair.loss_ == pytest.approx(one.loss, abs=1e-9)


# ---------------------------------------------------------------------------------------------------------
# Bad input


def refused(match, remedy, call, error=DataError):
    with pytest.raises(error, match=match) as caught:
        call()
    assert remedy in caught.value.remedy


def test_beliefs_that_nobody_asks_for():
    """A policy that sees the group, or a signal alone, has no use for them; nor have sums, or audits of decisions."""
    table, y, of_group, of_label = make_believed()
    for given in (COLUMNS, of_group):
        refused(
            "no use",
            "policy='individual'",
            lambda g=given: fitted(table, y, of_label, group_proba=g, sees_group=True),
        )
    policy = solved(table, **NAMED | {"sees_group": True, "group_proba": None})
    refused("sees the group", "Leave", lambda: policy.apply(table, key="id", group_proba=COLUMNS))


def test_beliefs_that_are_missing():
    """Without them a policy from a file and an audit of it say what they need."""
    table, _, _, _ = make_believed()
    policy = replace(solved(table, **NAMED), roles=Roles(score=NAMED["score"], group="group"))
    refused("infers the group", "group_model_", lambda: policy.apply(table, key="id"))
    refused("infers the group", "group_proba=", lambda: audit(policy, table))
    refused("calibrates group by group", "Leave the calibration", lambda: solved(
        table, **NAMED | {"policy": Individual(calibration="none")}
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("given", "match", "remedy"),
    [
        ({"a": "chance_a"}, "no probabilities of group 'b'", "group_proba={group: column}"),
        (COLUMNS | {"c": "loan"}, "names group 'c'", "Leave that group out"),
        ({"a": "chance_a", "b": "chance_c"}, "no column 'chance_c'", "chance_"),
        ({"a": "chance_a", "b": "wealth"}, "group probabilities of row", "every group included"),
        ({"a": "chance_a", "b": "holes"}, "'holes' is missing|group probabilities of row 3", ""),
        ({"a": "chance_a", "b": "id"}, "sum to one|no numbers|type|holds text", ""),
        (["chance_a", "chance_b"], "a list", "{group: column}"),
        ("chance_a", "a str", "{group: column}"),
    ],
)  # fmt: skip
def test_columns_that_say_something_else(given, match, remedy):
    """A group without a column, a column too many or not there, and what are no probabilities, at every door."""
    table, y, _, of_label = make_believed()
    table["holes"] = np.where(np.arange(len(y)) == 3, np.nan, table["chance_b"])
    refused(match, remedy, lambda: fitted(table, y, of_label, group_proba=given))
    policy = solved(table, **NAMED)
    policy = replace(policy, roles=replace(policy.roles, group_proba=given))
    for there in (table, pl.from_pandas(table).lazy()):
        refused(match, remedy, lambda t=there: audit(policy, t, "y"))


def test_classifiers_that_are_no_model_of_the_group():
    """Not fitted, fitted to something else, without probabilities, that sees the group, or fitted on these rows."""
    table, y, of_group, of_label = make_believed()

    def fit(given, **settings):
        return lambda: fitted(table, y, of_label, group_proba=given, **settings)

    refused("not fitted", "FrozenEstimator", fit(GaussianNB()))
    refused("not fitted", "FrozenEstimator", fit(clone(of_group)))
    refused("tells 0, 1 apart, and the groups are 'a', 'b'", "same groups", fit(of_label))
    from sklearn.svm import LinearSVC

    refused("no predict_proba", "calibrate", fit(LinearSVC().fit(table[FEATURES], table["group"])))
    telling = table.assign(group=codes(table["group"]))
    seeing = GaussianNB().fit(telling[["group", "loan"]], telling["group"])
    refused(
        "trained with the group column",
        "without that column",
        lambda: fitted(telling, y, of_label, group_proba=seeing),
    )
    learnt = fitted(table, y, of_label).group_model_
    refused("fitted on these rows", "other people", fit(learnt))
    new, truth, _, _ = make_believed(seed=2)
    assert fitted(new, truth, of_label, group_proba=learnt).gaps_["decision * loan"] <= 0.5 + 1e-9
