"""What a fitted classifier takes: columns by name, keys, and the groups that were named when it was fitted."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import make_people
from helpers import fair_classifier, traced
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from felicific import FairClassifier, aggregate, audit, compare
from felicific.exceptions import (
    AggregatesError,
    DataError,
    ExpressionError,
    GroupError,
    HappinessError,
    LotteryWarning,
)
from felicific.sklearn import make_scorer

pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

PEOPLE = make_people(300, 3)
NAMES = ["score", "wealth", "loan", "group", "id"]
MODELS = {
    "names": FrozenEstimator(LogisticRegression().fit(PEOPLE.table("pandas", ["score", "wealth"]), PEOPLE.y)),
    "unfitted": make_pipeline(StandardScaler(), LogisticRegression()),
    "pipeline": make_pipeline(
        make_column_transformer(("passthrough", ["wealth", "score"])), LogisticRegression()
    ),
}


def fitted(model="names", library="pandas", **settings):
    """A classifier that randomizes, and the people it was fitted on."""
    settings = {
        "happiness": "decision * loan",
        "gap": 1.0,
        "key": "id",
        "sensitive_features": "group",
    } | settings
    rows = PEOPLE.table(library, NAMES)
    return fair_classifier(MODELS[model], random_state=0, cv=2, **settings).fit(rows, PEOPLE.y), rows


@pytest.mark.parametrize("key", ["id", None], ids=["key", "content"])
@pytest.mark.parametrize("policy", ["score", "label", "individual"])
@pytest.mark.parametrize("model", MODELS)
def test_columns_are_found_by_name(model, policy, key):
    """Further columns and another order change nothing, draws included, in the same library and in another."""
    fair, rows = fitted(model, policy=policy, key=key)
    probabilities, decided = fair.predict_proba(rows), fair.predict(rows)
    assert ((probabilities > 0) & (probabilities < 1)).any()
    more = rows[NAMES[::-1]].assign(note="x", region=PEOPLE["region"])
    for table in (more, pl.from_pandas(more)):
        assert (fair.predict_proba(table) == probabilities).all()
        assert (fair.predict(table) == decided).all()
        assert fair.score(table, PEOPLE.y) == fair.score(rows, PEOPLE.y)
    assert fair.frontier_on(more, PEOPLE.y).loss == pytest.approx(
        fair.frontier_on(rows, PEOPLE.y).loss, abs=1e-12
    )
    assert fair.recalibrate(more).gaps_ == fair.recalibrate(rows).gaps_


def test_a_model_without_names_gets_the_columns_of_the_fit():
    """A model that was trained on an array is given the same columns, in the same order."""
    rows = PEOPLE.table("pandas", ["score", "wealth"])
    model = FrozenEstimator(LogisticRegression().fit(rows.to_numpy(), PEOPLE.y))
    fair = FairClassifier(model, gap=0.0, happiness="statistical_parity", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about the names
        fair.fit(rows, PEOPLE.y, sensitive_features=PEOPLE["group"])
        there = {"sensitive_features": PEOPLE["group"]}
        probabilities = fair.predict_proba(rows, **there)
        more = rows[["wealth", "score"]].assign(loan=1.0)
        assert (fair.predict_proba(more, **there) == probabilities).all()
        with pytest.raises(DataError, match="no column 'score', needed for the model"):
            fair.predict_proba(rows[["wealth"]], **there)


def test_a_missing_column_is_named(refuses):
    """With what it is needed for; one that nobody looks at may be missing."""
    fair, rows = fitted()
    for name, what in (("score", "the model"), ("group", "the groups"), ("id", "key")):
        with refuses(DataError, f"no column {name!r}, needed for {what}"):
            fair.predict(rows.drop(columns=name))
    assert (fair.predict(rows.drop(columns="loan")) == fair.predict(rows)).all()
    individual, _ = fitted(policy="individual")
    with refuses(ExpressionError, "no column 'loan'"):
        individual.predict(rows.drop(columns="loan"))
    assert (fair.predict_proba(rows.drop(columns="id")) == fair.predict_proba(rows)).all()
    keyless, _ = fitted(key=None)
    with refuses(DataError, "no column 'loan', by which the lottery tells people apart", remedy="key="):
        keyless.predict(rows.drop(columns="loan"))
    assert (keyless.predict_proba(rows.drop(columns="loan")) == keyless.predict_proba(rows)).all()


# ---------------------------------------------------------------------------------------------------------
# Keys


def test_keys_are_passed_to_predict(refuses):
    """By name or as an array, they are those of the constructor, and win over them; the content does not matter."""
    fair, rows = fitted(key=None, change_cost=0)
    named, _ = fitted(change_cost=0)
    ids = rows["id"].to_numpy()
    decided = fair.predict(rows, key="id")
    assert (decided == named.predict(rows)).all()
    for keys in (ids, ids.tolist(), rows["id"], pl.Series(ids), ids.astype(str)):
        assert (fair.predict(rows, key=keys) == decided).all()
    changed = rows.assign(loan=rows["loan"] + 1)
    assert (fair.predict(changed, key="id") == decided).all()
    assert (fair.predict(changed, key=ids) == decided).all()
    assert (fair.predict(rows) != decided).any()
    extra = rows.assign(person=[f"p{i}" for i in ids])
    assert (fair.predict(extra, key="person") == named.predict(rows, key=[f"p{i}" for i in ids])).all()
    assert (fair.predict(extra, key="person") != decided).any()
    scores = fair.estimator_.predict_proba(rows[["score", "wealth"]])
    assert (fair.policy_.decide(scores, rows["group"], ids) == decided).all()
    with refuses(DataError, "299 keys for 300 rows"):
        fair.predict(rows, key=ids[1:])
    with refuses(DataError, "no column 'nobody', needed for key"):
        fair.predict(rows, key="nobody")
    with refuses(DataError, "The keys are float64"):
        fair.predict(rows, key=ids + 0.5)


def test_keys_of_arrays():
    """A column by its position, or values."""
    array = np.column_stack([PEOPLE["score"], PEOPLE["wealth"], PEOPLE["loan"], PEOPLE["group"]])
    fair = FairClassifier(
        LogisticRegression(), gap=0.0, happiness="statistical_parity", sensitive_features=3, random_state=0
    )
    fair.fit(array, PEOPLE.y)
    rows = np.column_stack([array, PEOPLE["id"]]).astype(object)
    rows[:, 4] = PEOPLE["id"]
    assert len(fair.predict(array, key=PEOPLE["id"])) == 300
    whole = FairClassifier(
        fair.estimator, gap=0.0, happiness="statistical_parity", sensitive_features=3, key=4, random_state=0
    )
    assert (whole.fit(rows, PEOPLE.y).predict(rows) == whole.predict(rows, key=PEOPLE["id"])).all()


@pytest.mark.filterwarnings("error:No key says who:felicific.exceptions.LotteryWarning")
def test_a_notice_once_without_a_key():
    """Of each fitted classifier, where somebody faces a lottery and nothing says who a person is."""
    fair, rows = fitted(key=None)
    fair.predict_proba(rows)
    audit(fair, rows, PEOPLE.y)
    fair.predict(rows, key="id")
    with pytest.warns(LotteryWarning, match=r"No key says who a person is.*key=") as caught:
        fair.predict(rows)
    assert caught[0].filename == __file__
    fair.predict(rows)
    fair.fit(rows, PEOPLE.y)
    with pytest.warns(LotteryWarning, match="another person"):
        fair.predict(rows)
    fitted()[0].predict(rows)
    fitted(key=None, randomize=False)[0].predict(rows)


# ---------------------------------------------------------------------------------------------------------
# Groups that fit was told


@pytest.mark.slow
@pytest.mark.parametrize("named", ["group", ["group", "region"]], ids=str)
def test_groups_named_at_fit_are_remembered(named):
    """By everything that a fitted classifier is asked later; values are not, and are asked for."""
    rows = PEOPLE.table("pandas")
    model = MODELS["names"]
    said = {"happiness": "decision * loan", "gap": 1.0, "key": "id", "random_state": 0}
    told = FairClassifier(model, sensitive_features=named, **said).fit(rows, PEOPLE.y)
    fair = FairClassifier(model, **said).fit(rows, PEOPLE.y, sensitive_features=named)
    assert fair.sensitive_features_ == told.sensitive_features_ == named
    assert fair.sensitive_features is None
    for one in (fair, pickle.loads(pickle.dumps(fair))):
        assert (one.predict(rows) == told.predict(rows)).all()
        assert str(audit(one, rows, PEOPLE.y)) == str(audit(told, rows, PEOPLE.y))
        assert make_scorer()(one, rows, PEOPLE.y) == make_scorer()(told, rows, PEOPLE.y)
        bands = [each.frontier_on(rows, PEOPLE.y, confidence=0.95).gaps(1.0) for each in (one, told)]
        assert bands[0] == bands[1]
        assert one.recalibrate(rows).gaps_ == told.recalibrate(rows).gaps_
    reports = [one.report(rows, PEOPLE.y).to_dict() for one in (fair, told)]
    assert reports[0]["baseline"] == reports[1]["baseline"]
    assert fair.at(gap=2.0).predict_proba(rows).shape == (300, 2)
    values = FairClassifier(model, **said).fit(rows, PEOPLE.y, sensitive_features=PEOPLE["group"])
    assert values.sensitive_features_ is None
    for ask in (values.predict, lambda X: audit(values, X, PEOPLE.y)):
        with pytest.raises(GroupError, match="Nobody said which group"):
            ask(rows)
    again = values.fit(rows, PEOPLE.y, sensitive_features="region")
    assert again.groups_ == (0, 1, 2)


def test_a_group_named_at_fit_is_hidden_from_who_may_not_see_it():
    """Where the group is known at fit only, the model does not see the column either, wherever it was named."""
    rows = PEOPLE.table("pandas", NAMES)
    said = {
        "happiness": "statistical_parity",
        "gap": 0.0,
        "sees_group": False,
        "key": "id",
        "random_state": 0,
    }
    said["policy"] = "score"
    fair = FairClassifier(LogisticRegression(), **said).fit(rows, PEOPLE.y, sensitive_features="group")
    told = FairClassifier(LogisticRegression(), sensitive_features="group", **said).fit(rows, PEOPLE.y)
    assert "group" not in fair.feature_names_in_
    assert (fair.predict(rows.drop(columns="group")) == told.predict(rows)).all()


# ---------------------------------------------------------------------------------------------------------
# Identifiers, and what is no table


def test_identifiers_are_no_groups(refuses):
    """At every door, in memory and on an engine, with weights or without; many groups of many people are groups."""
    columns = {name: PEOPLE[name] for name in NAMES} | {
        "y": PEOPLE.y,
        "s": 1 / (1 + np.exp(-PEOPLE["score"])),
    }
    rows = pd.DataFrame(columns)
    asked = {"happiness": "decision", "sensitive_features": "id"}
    for table in (rows, columns, pl.from_pandas(rows).lazy()):
        for door in (
            lambda t=table: aggregate(t, score="s", y="y", **asked),
            lambda t=table: traced(t, score="s", y="y", **asked),
            lambda t=table: audit("y", t, **asked),
        ):
            with refuses(
                GroupError, "300 groups", "300 people", "that is no group", remedy="many people share"
            ):
                door()
    for settings in ({}, {"confidence": 0.9}, {"policy": "individual", "sees_group": False}):
        with refuses(GroupError, "300 groups", "that is no group"):
            fitted(sensitive_features="id", key=None, **settings)
    many = rows.assign(id=rows["id"] % 60)
    assert len(aggregate(many, score="s", y="y", **asked).groups) == 60
    counts = rows[:100].assign(n=5)
    assert len(aggregate(counts, score="s", y="y", sample_weight="n", **asked).groups) == 100


def test_what_is_no_table_no_audit_and_no_aggregates(refuses):
    """Is named, instead of an error of Python's from within."""
    fair, rows = fitted()
    line, lazy = fair.frontier_, pl.from_pandas(rows.assign(y=PEOPLE.y)).lazy()
    for wrong in (rows, 3, "s"):
        with refuses(AggregatesError, f"a {type(wrong).__name__}, not aggregates", remedy="aggregate(table"):
            line.on(wrong)
    found = audit(fair, rows, PEOPLE.y)
    for before, after in ((1, 2), (found, 2), (1, found), (found, fair)):
        with refuses(DataError, "not an audit", remedy="audit(...)"):
            compare(before, after)
    with pytest.raises(TypeError, match="predicted"):
        fair.report(rows, PEOPLE.y, predicted=PEOPLE.y)
    for method in (fair.report, fair.frontier_on, fair.score):
        with refuses(DataError, "LazyFrame", "not a table in memory", remedy="collect"):
            method(lazy, "y")
    with refuses(DataError, "3 is no decision"):
        audit(3, rows, happiness="decision", sensitive_features="group")
    with refuses(DataError, "confidence"):
        fair.report(rows, PEOPLE.y, confidence="much")


def test_a_column_may_be_named_for_labels_and_scores(refuses):
    """Of the table that is passed."""
    fair, rows = fitted()
    scored = rows.assign(y=PEOPLE.y, s=fair.estimator_.predict_proba(rows[["score", "wealth"]])[:, 1])
    assert fair.score(scored, "y") == fair.score(rows, PEOPLE.y)
    assert fair.frontier_on(scored, "y").loss.tolist() == fair.frontier_on(rows, PEOPLE.y).loss.tolist()
    asked = {"happiness": "decision * loan", "sensitive_features": "group"}
    band = fair.frontier_.band("s", scored, "y", **asked)
    assert band.gaps(1.0) == fair.frontier_.band(scored["s"], rows, PEOPLE.y, **asked).gaps(1.0)
    with refuses(HappinessError, "No happiness was given"):
        fair.frontier_.band("s", scored)
    with refuses(DataError, "The scores are 's'"):
        fair.frontier_.band("s", **asked)
    with refuses(DataError, "no column 'z', needed for the scores"):
        fair.frontier_.band("z", scored, "y", **asked)


@pytest.mark.parametrize("policy", ["score", "label", "individual"])
def test_frontiers_are_stored(policy):
    """A frontier comes back from a file solved, without the people, and says the same."""
    fair, rows = fitted(policy=policy)
    data = pickle.dumps(fair.frontier_)
    back = pickle.loads(data)
    assert back.loss == pytest.approx(fair.frontier_.loss, rel=1e-12)
    one, other = back.at(gap=2.0), fair.frontier_.at(gap=2.0)
    assert one.sentences(6) == other.sentences(6)
    assert one.outcome.means == pytest.approx(other.outcome.means, rel=1e-12)
    assert one.prices == pytest.approx(other.prices, rel=1e-9)
    assert pickle.loads(pickle.dumps(back)).tau.tolist() == back.tau.tolist()
    assert rows["loan"].to_numpy().tobytes() not in data


def test_probabilities_are_audited_with_a_word():
    """Probabilities are taken for a lottery, and the audit says so.

    Decisions, classifiers and policies need no word.
    """
    fair, rows = fitted()
    asked = {"happiness": "decision", "sensitive_features": "group", "decisions": [0, 1]}
    model = fair.estimator_
    scores = model.predict_proba(rows[["score", "wealth"]])
    found = audit(scores, rows, PEOPLE.y, **asked)
    assert "everybody is taken to face a lottery" in found.notes[0]
    assert "model.predict(X)" in str(found)
    for fine in (np.eye(2)[scores.argmax(axis=1)], scores.argmax(axis=1), fair):
        assert not any("face a lottery" in note for note in audit(fine, rows, PEOPLE.y, **asked).notes)
