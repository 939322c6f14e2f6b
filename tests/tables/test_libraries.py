"""Tables of every library: columns by name or place, what is missing, and what functions and models get."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import at
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from felicific import FairClassifier, audit
from felicific.exceptions import DataError, FittedRowsWarning, GroupError, HappinessError


@pytest.fixture(params=["pandas", "polars", "numpy"])
def library(request):
    return request.param


@pytest.fixture
def fit(people, library):
    """Fit on the people in a library, with some columns, labels or settings changed."""
    return partial(people.fit, library)


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA, pd.NaT], ids=str)
def test_missing_group(fit, people, refuses, library, value):
    """A null group is refused at fit, with the row and how many there are."""
    if library == "polars" and value is not None:
        value = None
    groups = at(len(people), 5, value, people["group"].astype(str), object)
    with refuses(GroupError, "missing in 1 of 400 rows", "row 5", remedy="leave that name out of groups="):
        fit(groups=groups)
    with refuses(GroupError, "row 5"):
        fit(columns={"group": groups})


def test_missing_group_in_an_intersection(fit, people, refuses, library):
    """A null in any of several columns is a missing group."""
    region = at(len(people), 7, float("nan"), people["region"].astype(float))
    names = [people.name(library, name) for name in ("group", "region")]
    with refuses(GroupError, "missing", "row 7"):
        fit(columns={"region": region}, sensitive_features=names, model=LogisticRegression())


def test_missing_group_at_predict(fit, people, refuses, library):
    """A null group is refused at predict too."""
    fair = fit()
    group = at(len(people), 3, np.nan, people["group"].astype(float))
    with refuses(GroupError, "missing in 1 of 400 rows", "row 3"):
        fair.predict(people.table(library, group=group))


def test_unseen_groups_are_plural(fit, people, refuses, library):
    """Several unseen groups are listed, in English."""
    fair = fit()
    with refuses(GroupError, "The groups 2, 3", "were never fitted"):
        fair.predict(people.table(library, group=people["group"] + 2))


def test_missing_column(fit, people, refuses, library):
    """A column that does not exist is named, with the nearest ones that do."""
    wrong = 17 if library == "numpy" else "grop"
    near = "0, 1, 2" if library == "numpy" else "'group'"
    with refuses(DataError, repr(wrong), "the groups", remedy=near):
        fit(sensitive_features=wrong)
    with refuses(DataError, repr(wrong), "key", remedy=near):
        fit(key=wrong)
    with refuses(DataError, repr(wrong), "the groups"):
        fit(sensitive_features=[people.name(library, "region"), wrong] if library != "numpy" else wrong)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_column_of_the_model(people, refuses, library):
    """A column that the model was trained on and the table lacks is named."""
    X = people.table(library, ["score", "wealth", "group", "id"])
    with refuses(DataError, "'loan'", "the model"):
        FairClassifier(
            people.frozen(library),
            gap=0.0,
            happiness="statistical_parity",
            sensitive_features="group",
            key="id",
        ).fit(X, people.y)


@pytest.mark.parametrize(
    ("column", "offender"),
    [("score", "float"), ("loan", "float")],
)
def test_floats_as_keys(fit, people, refuses, library, column, offender):
    """A key column of floats is refused at fit, before anybody is decided by it."""
    with refuses(DataError, "key", "string or an integer", remedy="identifier"):
        fit(key=people.name(library, column), model=LogisticRegression())


@pytest.mark.parametrize("value", [None, 1.5, True], ids=str)
def test_bad_key_in_one_row(fit, people, refuses, library, value):
    """A null, a float or a boolean among the keys is refused, at fit and at predict."""
    keys = at(len(people), 2, value, [f"p{i}" for i in range(len(people))], object)
    if library == "polars" and value is not None:
        pytest.skip("a Polars column has one type")
    with refuses(DataError, "key of row 2"):
        fit(columns={"id": keys})
    fair = fit()
    with refuses(DataError, "key of row 2"):
        fair.predict(people.table(library, id=keys))


def test_empty_table(fit, refuses, library):
    """A table without rows is called empty."""
    if library == "numpy":
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            fit(rows=np.arange(0))
    else:
        with refuses(DataError, "no rows"):
            fit(rows=np.arange(0))


def test_nan_happiness_names_the_group(fit, people, refuses, library):
    """A NaN of the table reaches the message with its row and group."""
    name = people.name(library, "loan")
    loan = at(len(people), 21, np.nan, people["loan"])

    def funding(decision, x):
        return decision * (x[:, name].astype(float) if library == "numpy" else x[name])

    frozen = FrozenEstimator(DummyClassifier().fit(people.table(library), people.y))
    with refuses(
        HappinessError, "'funding'", "nan in row 21", f"group {people['group'][21]}", remedy="`among`"
    ):
        fit(columns={"loan": loan}, happiness=funding, model=frozen, policy="label")


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts the sign of the first column; keeps what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.given_ = [X]
        self.weights_ = sample_weight
        return self

    def predict(self, X):
        self.given_.append(X)
        first = X[:, 0] if isinstance(X, np.ndarray) else X.to_numpy()[:, 0]
        return self.classes_[(first.astype(float) > 0).astype(int)]


def test_key_is_kept_from_the_model(people, library):
    """The model sees every column but the key, in the user's own library."""
    key = people.name(library, "id")
    X = people.table(library)
    fair = FairClassifier(
        Recorder(),
        gap=0.0,
        happiness="statistical_parity",
        key=key,
        sensitive_features=people.name(library, "group"),
        policy="label",
        cv=2,
    ).fit(X, people.y)
    fair.predict(X)
    for seen in fair.estimator_.given_:
        assert type(seen) is type(X)
        assert seen.shape == (len(people), 5)
        if library != "numpy":
            assert list(seen.columns) == ["score", "wealth", "loan", "group", "region"]


def test_what_a_happiness_function_gets(people, library):
    """Decisions come as Python scalars, x as the user's own table, y and group as vectors."""
    seen = []

    def happy(decision, x, y, group):
        seen.append((decision, x, y, group))
        return decision * np.asarray(group, float)

    X = people.table(library)
    FairClassifier(
        people.frozen(library),
        happiness=happy,
        gap={},
        key=people.name(library, "id"),
        sensitive_features=people.name(library, "group"),
    ).fit(X, people.y)
    assert {type(decision) for decision, *_ in seen} == {int}
    for _, x, y, group in seen:
        assert type(x) is type(X)
        assert type(y) is type(group) is np.ndarray
        if x.shape == X.shape:  # now and then some rows are shown once more
            assert (y == people.y).all()
            assert (group == people["group"]).all()
        else:
            assert len(x) == len(y) == len(group) < len(X)
    assert {0, 1} == {decision for decision, x, *_ in seen if x.shape == X.shape}


def test_cross_validate_with_groups_by_column(people, library):
    """cross_validate works when the groups are a column, and scores by accuracy of the decisions."""
    names = ["score", "wealth", "group"]
    X, y = people.table(library, names), people.y
    column = 2 if library == "numpy" else "group"
    fair = FairClassifier(
        LogisticRegression(), gap=0.0, happiness="statistical_parity", sensitive_features=column
    )
    fair.set_params(random_state=0)
    result = cross_validate(fair, X, y, cv=3, return_estimator=True, return_indices=True, error_score="raise")
    for score, fitted, test in zip(
        result["test_score"], result["estimator"], result["indices"]["test"], strict=True
    ):
        part = X[test] if library != "pandas" else X.iloc[test]
        assert score == (fitted.predict(part) == y[test]).mean()


def test_a_classifier_is_audited_by_its_probabilities(people, library):
    """On the rows it was fitted on, a FairClassifier is found to do what it states: probabilities, not a draw."""
    name = people.name(library, "group")
    column = people.name(library, "loan")

    def wealth(decision, x):
        return decision * np.asarray(x[:, column] if library == "numpy" else x[column], dtype=float)

    fair = FairClassifier(
        people.frozen(library), happiness=wealth, gap=1.0, sensitive_features=name, random_state=0
    )
    X = people.table(library)
    if library == "numpy":
        X = X[:, :5]
    fair.fit(X, people.y)
    with pytest.warns(
        FittedRowsWarning, match="^These are rows that the policy was fitted on: the intervals do not"
    ):
        found = audit(fair, X, people.y)
    assert "rows that the policy was fitted on" in str(found)
    assert found.gaps["wealth"] == pytest.approx(fair.gaps_["wealth"], abs=1e-9)
    assert found.loss.estimate == pytest.approx(fair.loss_, abs=1e-12)
    assert found["wealth"].test.at_most == 1.0
    by_hand = audit(
        fair.predict_proba(X),
        X,
        people.y,
        happiness=wealth,
        sensitive_features=name,
        decisions=list(fair.classes_),
    )
    assert by_hand.gaps == found.gaps
    model = fair.estimator_
    baseline = audit(model, X, people.y, happiness=wealth, sensitive_features=name)
    assert baseline.loss.estimate == pytest.approx(
        np.mean(model.predict(fair._intake.features(X, model)) != people.y)
    )
