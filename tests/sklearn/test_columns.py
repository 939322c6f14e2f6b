"""Columns of scores, or of predicted amounts, in place of an estimator: whoever has no model needs nothing else."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV

from felicific import FairClassifier, FairRegressor, Floor, audit
from felicific.exceptions import DataError
from felicific.skops import TRUSTED

FEATURES = ["s", "t"]
ASKED = {"sensitive_features": "sex", "key": "id", "random_state": 0}


def world(classes=2, n=600, seed=0):
    """People, their labels, and a model that was trained on others."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], 2 * n)
    s, t = rng.normal(0.5 * (sex == "m"), 1.0), rng.normal(size=2 * n)
    y = np.digitize(s + t + rng.normal(size=2 * n), [0.0] if classes == 2 else [-0.7, 0.7])
    rows = pd.DataFrame({"s": s, "t": t, "sex": sex, "loan": rng.uniform(1, 9, 2 * n), "id": range(2 * n)})
    labels = np.array(["no", "perhaps", "yes"])[y] if classes == 3 else y
    model = LogisticRegression().fit(rows[FEATURES][:n], labels[:n])
    return rows[n:].reset_index(drop=True), labels[n:], model


def scored(rows, model):
    """The people with what the model says of them."""
    proba = model.predict_proba(rows[FEATURES])
    return rows.assign(**{f"p_{k}": proba[:, i] for i, k in enumerate(model.classes_)})


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("kind", ["auto", "score", "label", "soft-label", "individual"])
@pytest.mark.parametrize(
    ("classes", "named"), [(2, "p_1"), (2, ["p_0", "p_1"]), (3, ["p_no", "p_perhaps", "p_yes"])]
)
def test_columns_are_the_model_that_filled_them(classes, named, kind, sees):
    """The same policy, decisions, report, frontier and recalibration as of the model itself."""
    rows, y, model = world(classes)
    table = scored(rows, model)
    settings = {"happiness": "decision == y", "gap": 0.1, "policy": kind, "sees_group": sees} | ASKED
    if classes == 2 and kind != "label":
        settings |= {"happiness": "decision * loan", "gap": 0.5}
    ours = FairClassifier(named, **settings).fit(table, y)
    theirs = FairClassifier(FrozenEstimator(model), **settings).fit(rows, y)
    assert ours.classes_.tolist() == theirs.classes_.tolist() == sorted(set(y))
    if ours.group_model_ is not None:  # which sees every column, and not only the model's
        assert {"s", "t", "loan"} < set(ours.group_model_.feature_names_in_)
    else:
        assert ours.loss_ == pytest.approx(theirs.loss_, abs=1e-6)
        np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(rows), atol=1e-6)
        assert ours.score(table, y) == pytest.approx(theirs.score(rows, y), abs=1e-3)
        found, expected = (fair.recalibrate(x[:300]) for fair, x in ((ours, table), (theirs, rows)))
        assert found.loss_ == pytest.approx(expected.loss_, abs=1e-6)
    assert ours.frontier_.loss[-1] <= ours.loss_ + 1e-9
    assert ours.report(table[:300], y[:300]).verdict
    assert audit(ours, table, y).rows == len(table)


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("kind", ["score", "individual"])
@pytest.mark.parametrize("asked", [{"gap": 0.5}, {"constraints": [Floor("decision", 0.1)]}])
def test_every_attribute_is_there_or_none(asked, kind, sees):
    """What either estimator lists among its attributes can be read after any fit."""
    rows, y, model = world(n=300)
    table = scored(rows, model)
    listed = set(
        re.findall(r"\w+_(?=[,\s])", FairClassifier.__doc__.split("Examples")[0].split("Attributes")[1])
    )
    settings = {"happiness": "decision", "policy": kind, "sees_group": sees} | ASKED | asked
    for fair in (
        FairClassifier("p_1", **settings).fit(table, y),
        FairRegressor("loan", **settings).fit(table, table["loan"]),
    ):
        assert not {name for name in {*listed, "classes_", "groups_"} if not hasattr(fair, name)}


def test_it_is_an_estimator_like_any_other(tmp_path):
    """Cloned, searched over, stored and read; of pandas and of Polars; explained; with weights and a cluster."""
    rows, y, model = world()
    table = scored(rows, model)
    fair = FairClassifier("p_1", happiness="decision", gap=0.02, **ASKED)
    fair.fit(table, y, sample_weight=np.ones(len(y)), cluster="id")
    decided = fair.predict(table)
    assert (fair.predict(pl.from_pandas(table)) == decided).all()
    assert (clone(fair).fit(table, y).predict(table) == decided).all()
    assert (pickle.loads(pickle.dumps(fair)).predict(table) == decided).all()
    skops = pytest.importorskip("skops.io")
    skops.dump(fair, tmp_path / "fair.skops")
    assert (skops.load(tmp_path / "fair.skops", trusted=[*TRUSTED]).predict(table) == decided).all()
    assert fair.explain(table[:1]).decision == decided[0]
    search = GridSearchCV(
        FairClassifier("p_1", happiness="decision", **ASKED),
        {"estimator": ["p_1", ["p_0", "p_1"]], "gap": [0.1, 0.05]},
    ).fit(table, y)
    assert search.best_params_["gap"] in (0.1, 0.05)
    assert "estimator='p_1'" in repr(fair)


def test_a_column_of_predicted_amounts():
    """A regressor's policy is that of the model that filled the column."""
    rows, _, _ = world()
    y = rows["s"] + rows["t"]
    model = LinearRegression().fit(rows[["s"]][:200], y[:200])
    rows, y = rows[200:].reset_index(drop=True), y[200:].reset_index(drop=True)
    table = rows.assign(predicted=model.predict(rows[["s"]]))
    for settings in (
        {"happiness": "distributional_parity", "gap": 0.1},
        {"happiness": "decision", "gap": 0.1, "loss": "absolute"},
        {"happiness": {"much": "decision >= 1"}, "gap": 0.05, "decisions": [-2, -1, 0, 1, 2]},
        {"happiness": "decision * loan", "gap": 0.5, "policy": "individual"},
    ):
        ours = FairRegressor("predicted", **settings, **ASKED).fit(table, y)
        theirs = FairRegressor(FrozenEstimator(model), **settings, **ASKED).fit(rows, y)
        assert ours.policy_.loss == pytest.approx(theirs.policy_.loss, rel=1e-9)
        np.testing.assert_allclose(ours.predict(table), theirs.predict(rows), atol=1e-9)
        assert (clone(ours).fit(table, y).predict(table) == ours.predict(table)).all()
        assert (pickle.loads(pickle.dumps(ours)).predict(table) == ours.predict(table)).all()


BAD = {
    "misspelt": ("p1", {}, "no column 'p1'", "Did you mean 'p_1'"),
    "text": ("sex", {}, "'sex', needed for the scores", "numbers"),
    "outside": ("loan", {}, "row 0", "predict_proba"),
    "missing": ("p_1", {"p_1": np.nan}, "row 0", "predict_proba"),
    "too many": (["p_0", "p_1", "p_1"], {}, "3 columns of scores", "a column for each class"),
    "numbers": ([0, 1], {}, "neither an estimator nor", "name of a column"),
    "none": ([], {}, "neither an estimator nor", "name of a column"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_columns_are_refused(case, refuses):
    """By name, with what to write; of a regressor too; later rows without the column as well."""
    named, changes, problem, remedy = BAD[case]
    rows, y, model = world()
    table = scored(rows, model).assign(**changes)
    with refuses(DataError, problem, remedy=remedy):
        FairClassifier(named, happiness="decision", gap=0.1, **ASKED).fit(table, y)


def test_rows_without_names_and_several_amounts_are_refused(refuses):
    """An array has no columns by name; amounts are predicted in one."""
    rows, y, model = world()
    table = scored(rows, model)
    fair = FairClassifier("p_1", happiness="decision", gap=0.1, random_state=0)
    with refuses(DataError, "X is a ndarray", remedy="dataframe"):
        fair.fit(table[["p_1"]].to_numpy(), y, sensitive_features=table["sex"])
    fair.fit(table, y, sensitive_features="sex")
    with refuses(DataError, "no column 'p_1'"):
        fair.predict(table.drop(columns="p_1"))
    for named, problem in ((["s", "t"], "2 columns"), ("sex", "'sex', needed for the predicted amounts")):
        with refuses(DataError, problem):
            FairRegressor(named, happiness="decision", gap=0.1, **ASKED).fit(table, table["s"])
