"""Bad input: every mistake raises its own error, which names the offender and proposes a remedy."""

import decimal
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import at
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit

from felicific import Budget, FairClassifier, Floor, Happiness, aggregate, solve
from felicific.exceptions import (
    AggregatesError,
    ConstraintError,
    DataError,
    FelicificError,
    GroupError,
    HappinessError,
    InfeasibleError,
)


@pytest.fixture
def fit(people):
    """Fit on the people in pandas, with some columns, labels or settings changed."""
    return partial(people.fit, "pandas")


def test_the_helper_of_these_tests(refuses):
    """The helper fails when nothing is raised, another class is, a word is missing, or there is no remedy."""
    with pytest.raises(pytest.fail.Exception), refuses(DataError):
        pass
    with pytest.raises(AssertionError, match="GroupError"), refuses(DataError):
        raise GroupError("a", "b.")
    with pytest.raises(AssertionError, match="'c'"), refuses(DataError, "c"):
        raise DataError("a", "b.")
    with pytest.raises(AssertionError), refuses(DataError, "a"):
        raise DataError("a", "")
    with pytest.raises(AssertionError, match="remedy"), refuses(DataError, "a", remedy="remedy"):
        raise DataError("a", "b.")


def test_nothing_is_wrong_with_the_fixture(fit):
    """Without a mistake, the fit that all tests here spoil works."""
    assert max(fit().gaps_.values()) < 1e-9


# ---------------------------------------------------------------------------------------------------------
# Groups


def test_missing_group_in_a_list(fit, people, refuses):
    """A NaN in a list of names is a missing group, not the group "nan"."""
    groups = ["a" if group else "b" for group in people["group"]]
    groups[5] = float("nan")
    with refuses(GroupError, "missing", "row 5"):
        fit(groups=groups)


@pytest.mark.parametrize("value", [7, "x", 2.5, "0"], ids=repr)
def test_unseen_group(fit, people, refuses, value):
    """A group that was never fitted is named, with its first row and the known ones."""
    fair = fit()
    group = at(len(people), 3, value, people["group"].tolist(), object)
    with refuses(GroupError, repr(value), "row 3", "never fitted", "known are 0, 1", remedy="every group"):
        fair.predict_proba(people.table("pandas"), sensitive_features=group)


def test_single_group(fit, people, refuses):
    """One group has no gap."""
    with refuses(GroupError, "one group only: 0", remedy="at least two"):
        fit(rows=np.flatnonzero(people["group"] == 0))


def test_empty_group(people, refuses):
    """A group that is declared and has nobody, or nobody of positive weight, is named."""
    table = {"g": people["group"]}
    common = {
        "y": people.y,
        "policy": "label",
        "predicted": people.y,
        "sensitive_features": "g",
        "happiness": "statistical_parity",
    }
    with refuses(GroupError, "group 2 is empty", remedy="Leave it out"):
        solve(aggregate(table, groups=[0, 1, 2], **common), gap=0.0)
    with refuses(GroupError, "group 0 is empty"):
        solve(aggregate(table, groups=[0, 1], sample_weight=people["group"], **common), gap=0.0)


def test_group_without_anybody_in_among(fit, people, refuses):
    """A group with nobody inside a measure's ``among`` is named with the measure."""
    y = np.where(people["group"] == 0, 0, people.y)
    with refuses(HappinessError, "group 0", "'true positive rate'", remedy="merge"):
        fit(y=y, happiness="equal_opportunity")


def test_no_groups_anywhere(people, refuses):
    """Without groups, fit and predict say how to give them."""
    X = people.table("pandas")
    fair = FairClassifier(people.frozen("pandas"), gap=0.0, happiness="statistical_parity", key="id")
    with refuses(GroupError, "which group", remedy="sensitive_features="):
        fair.fit(X, people.y)
    fair.fit(X, people.y, sensitive_features=people["group"])
    for method in (fair.predict, fair.predict_proba):
        with refuses(GroupError, "which group", remedy="sensitive_features="):
            method(X)


@pytest.mark.parametrize(
    "wrap", [np.asarray, pd.Series, pl.Series, list], ids=["numpy", "pandas", "polars", "list"]
)
def test_wrong_number_of_groups(fit, people, refuses, wrap):
    """Groups that do not match the rows are counted, whatever holds them."""
    groups = np.where(people["group"], "a", "b")
    with refuses(GroupError, "399 groups", "400 rows"):
        fit(groups=wrap(groups[:-1].tolist()))


@pytest.mark.parametrize("shape", [(), (400, 2, 2), (400, 0)], ids=str)
def test_groups_of_a_wrong_shape(fit, shape):
    """Groups must be one or several columns."""
    with pytest.raises((GroupError, DataError), match=r"shape|0 groups"):
        fit(groups=np.zeros(shape))


def test_groups_that_cannot_be_compared(fit, people, refuses):
    """Lists as groups are refused by felicific, not by a TypeError from within."""
    groups = np.empty(len(people), dtype=object)
    groups[:] = [[group] for group in people["group"].tolist()]
    with refuses(GroupError, "row 0 is [", "a list"):
        fit(groups=groups)


def test_callable_that_returns_nothing(fit, refuses):
    """A callable that forgot to return is told so."""
    with refuses(GroupError, "None"):
        fit(sensitive_features=lambda X: None)


# ---------------------------------------------------------------------------------------------------------
# Columns


# ---------------------------------------------------------------------------------------------------------
# Tables


def test_lazy_table(people, refuses):
    """A lazy table is refused with the advice to collect it, at fit and at predict."""
    X = people.table("polars")
    fair = FairClassifier(
        people.frozen("polars"), gap=0.0, happiness="statistical_parity", sensitive_features="group", key="id"
    )
    with refuses(DataError, "LazyFrame", remedy="collect"):
        fair.fit(X.lazy(), people.y)
    fair.fit(X, people.y)
    with refuses(DataError, "LazyFrame", remedy="collect"):
        fair.predict(X.lazy())


def test_dict_as_table(people, refuses):
    """A dict of arrays is no table to scikit-learn, at fit and at predict."""
    columns = dict(people.columns)
    fair = FairClassifier(
        people.frozen("pandas"), gap=0.0, happiness="statistical_parity", sensitive_features="group", key="id"
    )
    with refuses(DataError, "mapping", remedy="dataframe"):
        fair.fit(columns, people.y)
    fair.fit(people.table("pandas"), people.y)
    with refuses(DataError, "mapping", remedy="dataframe"):
        fair.predict(columns)


@pytest.mark.parametrize("X", [None, 5, "table.csv", np.zeros(3), [{"a": 1}]], ids=str)
def test_no_table(people, X):
    """What is no table at all is a ValueError that says what was expected."""
    fair = FairClassifier(
        people.frozen("numpy"), gap=0.0, happiness="statistical_parity", sensitive_features=0
    )
    with pytest.raises(ValueError, match=r"(?i)expected 2D array|table"):
        fair.fit(X, people.y[:3])


def test_repeated_columns(people, refuses):
    """A table in which a column occurs twice is refused by felicific, naming the column."""
    X = people.table("pandas")
    X = pd.concat([X, X[["group"]]], axis=1)
    with refuses(DataError, "'group'"):
        FairClassifier(
            people.frozen("pandas"), gap=0.0, happiness="statistical_parity", sensitive_features="group"
        ).fit(X, people.y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_features(people, value):
    """NaN and infinity in an array are refused for a model that does not take them."""
    X = people.table("numpy", ["score", "wealth", "group"]).astype(float)
    X[3, 0] = value
    fair = FairClassifier(LogisticRegression(), gap=0.0, happiness="statistical_parity", sensitive_features=2)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        fair.fit(X, people.y)


# ---------------------------------------------------------------------------------------------------------
# Labels


def test_one_class(fit, people, refuses):
    """Labels of one class leave nothing to decide."""
    with refuses(DataError, "one class only: [1]", remedy="two classes"):
        fit(y=np.ones(len(people), int))


@pytest.mark.parametrize("value", [np.nan, None])
def test_missing_label(fit, people, refuses, value):
    """A missing label is refused with its row and group; it is not said that those rows may be left out."""
    own = people["group"][4].item()
    others = (people["group"] == own).sum()
    words = (
        "The label is missing in 1 of",
        f"{100 / others:.2g} % of {own!r}; first in row 4",
        "Leaving them out",
    )
    for labels in (people.y, np.where(people.y, "yes", "no")):
        with refuses(DataError, *words, remedy="only if labels were lost by chance"):
            fit(y=at(len(people), 4, value, labels.tolist(), object))


def test_missing_label_in_a_list(fit, people, refuses):
    """A NaN in a list of names is a missing label, not the class "nan"."""
    y = ["yes" if label else "no" for label in people.y]
    y[4] = float("nan")
    with refuses(DataError, "label", "row 4"):
        fit(y=y, model=LogisticRegression())


def test_infinite_label(fit, people, refuses):
    """An infinite label is refused without a stray warning of NumPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"(?i)inf"):
            fit(y=at(len(people), 4, np.inf, people.y.astype(float)))


def test_no_labels(people, refuses):
    """y=None is called by its name."""
    fair = FairClassifier(
        people.frozen("pandas"), gap=0.0, happiness="statistical_parity", sensitive_features=0
    )
    with refuses(DataError, "y is None"):
        fair.fit(people.table("pandas"), None)


def test_wrong_number_of_labels(people, refuses):
    """Labels that do not match the rows are counted."""
    fair = FairClassifier(
        people.frozen("pandas"), gap=0.0, happiness="statistical_parity", sensitive_features=0
    )
    with refuses(DataError, "399 labels", "400 rows"):
        fair.fit(people.table("pandas"), people.y[:-1])


def test_labels_of_a_wrong_shape(fit, people, refuses):
    """Labels in two columns are refused with their shape."""
    with refuses(DataError, "y has shape (400, 2)"):
        fit(y=np.column_stack([people.y, people.y]))


def test_continuous_labels(fit, people):
    """Real numbers as labels are refused as scikit-learn does."""
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        fit(y=people["score"])


def test_labels_of_mixed_types(fit, people):
    """Labels that cannot be sorted are refused as scikit-learn does, not by a TypeError from within."""
    y = np.array([1 if label else "no" for label in people.y], dtype=object)
    with pytest.raises(ValueError, match="label"):
        fit(y=y, model=LogisticRegression())


def test_label_unknown_to_the_model(fit, people, refuses):
    """A label that the frozen model never saw is named with its row; the remedy is one that a user has."""
    with refuses(DataError, "label 2", "row 6", "[0, 1]") as caught:
        fit(y=at(len(people), 6, 2, people.y))
    assert "classes=" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------------
# Models


class Broken(ClassifierMixin, BaseEstimator):
    """Fitted with two classes; returns whatever it was given."""

    def __init__(self, probabilities=None, predicted=None):
        self.probabilities = probabilities
        self.predicted = predicted
        self.classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.predicted if self.predicted is not None else np.zeros(len(X), int)

    def predict_proba(self, X):
        return np.asarray(self.probabilities)


HALF = np.full((400, 2), 0.5)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, 0.6], ["row 9", "0.6", "sum to one"]),
        ([np.nan, 0.5], ["row 9", "nan"]),
        ([np.inf, 0.0], ["row 9", "inf"]),
        ([-0.5, 1.5], ["row 9", "-0.5"]),
    ],
    ids=str,
)
def test_bad_probabilities(fit, refuses, row, words):
    """Probabilities that are none are refused with their row, at fit."""
    probabilities = HALF.copy()
    probabilities[9] = row
    with refuses(DataError, *words, remedy="predict_proba"):
        fit(model=FrozenEstimator(Broken(probabilities)), policy="soft-label")


@pytest.mark.parametrize(
    ("probabilities", "word"),
    [
        (np.column_stack([HALF, HALF]) / 2, "shape (400, 4)"),
        (HALF[:-1], "399 probabilities for 400 rows"),
        (HALF[:, :, None], "shape (400, 2, 1)"),
        (HALF.astype(str), "<U32"),
    ],
    ids=["four columns", "short", "cube", "text"],
)
def test_probabilities_of_a_wrong_shape(fit, refuses, probabilities, word):
    """Probabilities of the wrong shape or type are refused with what they are."""
    with refuses(DataError, word):
        fit(model=FrozenEstimator(Broken(probabilities)), policy="soft-label")


def test_single_precision_probabilities_are_fine(fit):
    """float32 probabilities sum to one only roughly, and are accepted."""
    probabilities = np.random.default_rng(0).dirichlet([1, 1], 400).astype(np.float32)
    fair = fit(model=FrozenEstimator(Broken(probabilities)), policy="soft-label")
    decided = fair.policy_.probabilities(probabilities, [0, 1] * 200)
    assert np.abs(decided.sum(axis=1) - 1).max() < 1e-12


def test_bad_predictions(fit, refuses):
    """A model that predicts what is no class of its own is caught."""
    with refuses(DataError, "prediction 5", "row 1", "[0, 1]"):
        fit(model=FrozenEstimator(Broken(predicted=at(400, 1, 5, 0))), policy="label")
    with refuses(DataError, "399 predictions for 400 rows"):
        fit(model=FrozenEstimator(Broken(predicted=np.zeros(399, int))), policy="label")


def test_frozen_but_never_fitted(fit):
    """A frozen model that was never fitted is NotFittedError, not an attribute that is missing."""
    with pytest.raises(NotFittedError):
        fit(model=FrozenEstimator(LogisticRegression()))


def test_predict_before_fit(people):
    """Predicting before fitting is NotFittedError."""
    fair = FairClassifier(
        people.frozen("pandas"), gap=0.0, happiness="statistical_parity", sensitive_features=0
    )
    for method in (fair.predict, fair.predict_proba):
        with pytest.raises(NotFittedError):
            method(people.table("pandas"))


@pytest.mark.parametrize("policy", ["scores", "lable", None, 5], ids=str)
def test_unknown_policy(fit, refuses, policy):
    """A policy that does not exist is refused with the ones that do."""
    with refuses(DataError, repr(policy), remedy="'soft-label', 'label'"):
        fit(policy=policy)


@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(3, random_state=0),
        [(np.arange(200), np.arange(200, 400))],
        [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(1, 201))],
        [],
    ],
    ids=["shuffle", "half", "overlap", "none"],
)
def test_cv_that_is_no_partition(fit, refuses, cv):
    """Folds that do not test every row exactly once are refused."""
    with refuses(DataError, "cv", "exactly once", remedy="KFold"):
        fit(model=LogisticRegression(), cv=cv)


# ---------------------------------------------------------------------------------------------------------
# Weights


WEIGHTS = {
    "short": (np.ones(399), ["399 weights", "400 rows"]),
    "negative": (at(400, 8, -1.0, 1.0), ["row 8", "-1.0"]),
    "NaN": (at(400, 8, np.nan, 1.0), ["row 8", "nan"]),
    "infinite": (at(400, 8, np.inf, 1.0), ["row 8", "inf"]),
    "zero": (np.zeros(400), ["All weights are zero"]),
    "text": (np.array(["a"] * 400), ["not numbers"]),
    "scalar": (2.0, ["shape ()"]),
    "square": (np.ones((400, 2)), ["shape (400, 2)"]),
    "None": (at(400, 8, None, 1.0, object), ["weight"]),
}


@pytest.mark.parametrize("prefit", [True, False], ids=["frozen", "unfitted"])
@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights(fit, refuses, case, prefit):
    """Weights that are none are refused by felicific with their row, before any model is fitted on them."""
    weight, words = WEIGHTS[case]
    with refuses(DataError, *words):
        fit(weight=weight, model=None if prefit else LogisticRegression())


# ---------------------------------------------------------------------------------------------------------
# Happiness


def returns(value):
    return lambda decision: value


@pytest.mark.parametrize(
    ("happiness", "words"),
    [
        (None, ["No happiness", "lambda decision, x", "statistical_parity"]),
        (5, ["5", "cannot be called"]),
        ([], ["empty"]),
        ({}, ["empty"]),
        ([lambda decision: 1, lambda decision: 2], ["both called 'happiness'", "Name them"]),
        (["tpr", Happiness("decision", name="true positive rate")], ["both called 'true positive rate'"]),
        ("statistical_party", ["'statistical_party'", "Did you mean 'statistical_parity'"]),
        ("demographic", ["'demographic'", "Did you mean 'demographic_parity'?"]),
        ("wealth", ["'wealth'", "overall_accuracy"]),
        (lambda decision, age: age, ["'happiness'", "the argument age", "decision, x, y, group"]),
        (lambda decision, *rest: 1, ["*rest"]),
        (lambda d: 1, ["the argument d"]),
        (returns(None), ["'happiness'", "decision 0", "returned None", "return"]),
        (returns("rich"), ["'happiness'", "not real numbers"]),
        (returns(1j), ["complex", "not real numbers"]),
        (returns([1, 2]), ["shape (2,)", "400 rows"]),
        (returns(np.ones((400, 2))), ["shape (400, 2)", "list of functions"]),
        (returns(np.ones((400, 1))), ["shape (400, 1)"]),
        (returns(np.ones(399)), ["shape (399,)", "400 rows"]),
        (returns(np.nan), ["is nan in row 0", "group"]),
        (returns(at(400, 11, np.inf, 1.0)), ["is inf in row 11", "group", "`among`"]),
        (returns(at(400, 11, None, 1.0, object)), ["row 11"]),
        (returns(["a"] * 400), ["not real numbers"]),
        (returns({"a": 1}), ["not real numbers"]),
        (lambda decision: decision * 1e308, ["so large that its sum overflows", "larger unit"]),
    ],
)
def test_bad_happiness(fit, refuses, happiness, words):
    """A happiness that is none is refused with its name, the decision, and the row where there is one."""
    with refuses(HappinessError, *words):
        fit(happiness=happiness)


def test_happiness_of_decimals_and_flags(fit):
    """Numbers of other kinds are numbers: booleans, integers, decimals."""
    for value in (True, 3, np.int8(3), decimal.Decimal("0.5"), np.array([decimal.Decimal("0.5")] * 400)):
        fair = fit(happiness=Happiness(lambda decision, v=value: v if decision else 0 * v, name="happiness"))
        assert fair.gaps_ == pytest.approx({"happiness": 0.0}, abs=1e-9)


@pytest.mark.parametrize(
    ("among", "words"),
    [
        (lambda decision: True, ["No decision changes", "counted by 'one'"]),
        (lambda x: None, ["`among`", "None"]),
        (lambda x: 0.5, ["other than 0 and 1"]),
        (lambda x: [True, False], ["shape (2,)"]),
        (7, ["is 7", "cannot be called"]),
        (lambda group: group == 1, ["Nobody of the group 0", "'one'"]),
    ],
)
def test_bad_among(fit, refuses, among, words):
    """Who is counted must be True or False per person; if that depends on the decision, then on each of them."""
    with refuses(HappinessError, *words):
        fit(happiness=Happiness(lambda decision: decision, among=among, name="one"))


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1)], ids=str)
def test_bad_bounds(refuses, bounds):
    """Bounds must be a finite range."""
    with refuses(HappinessError, "bounds", "'happiness'", remedy="least and the largest"):
        Happiness(lambda decision: 1, bounds=bounds)


@pytest.mark.parametrize("bounds", [(1,), (0, 1, 2), "01", ("a", "b"), 5], ids=str)
def test_bounds_that_are_no_pair(refuses, bounds):
    """Bounds that are no two numbers are refused by felicific too."""
    with refuses(HappinessError, "bounds", "'happiness'"):
        Happiness(lambda decision: 1, bounds=bounds)


def test_unknown_decisions(fit, refuses):
    """A list that holds some classes, and something else, is no list of classes: the error rate has no use there."""
    with refuses(DataError, "not every decision is one", remedy="cost matrix"):
        fit(decisions=[0, "yes"], happiness="equal_opportunity")


# ---------------------------------------------------------------------------------------------------------
# Loss


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("accuracy", ["'accuracy'", "'error'"]),
        (None, ["cost matrix", "2 x 2"]),
        ([[0, 1]], ["shape (1, 2)", "2 x 2"]),
        (np.zeros((3, 3)), ["shape (3, 3)", "2 x 2"]),
        ([[0, np.nan], [1, 0]], ["not finite", "2 x 2"]),
        ([[0, np.inf], [1, 0]], ["not finite"]),
        ([["a", "b"], ["c", "d"]], ["cost matrix", "2 x 2"]),
        ([[0, 1], [1]], ["cost matrix", "2 x 2"]),
        ([[0, 1j], [1, 0]], ["cost matrix", "2 x 2"]),
    ],
    ids=str,
)
def test_bad_loss(fit, refuses, loss, words):
    """A loss that is none is refused with the shape that is needed."""
    with refuses(DataError, *words):
        fit(loss=loss)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda decision, cost: 1, ["The loss", "the argument cost"]),
        (returns(None), ["The loss", "None"]),
        (returns(np.nan), ["The loss", "nan", "row 0"]),
        (returns([1, 2, 3]), ["The loss", "shape (3,)"]),
    ],
)
def test_bad_loss_function(fit, refuses, loss, words):
    """A loss function is held to what a happiness function is."""
    with refuses(HappinessError, *words):
        fit(loss=loss)


def test_overflowing_loss(fit):
    """A loss so large that its sum is infinite is an error of felicific."""
    with pytest.raises(FelicificError, match=r"loss.* overflows"):
        fit(loss=lambda decision: decision * 1e308)


# ---------------------------------------------------------------------------------------------------------
# Requirements


@pytest.mark.parametrize(
    "gap", [-0.1, np.nan, "wide", [0.1], {"statistical_parity": -1}, {"statistical_parity": None}], ids=str
)
def test_bad_gap(fit, refuses, gap):
    """A gap that is negative, NaN or no number is refused, naming it and its unit."""
    with refuses(ConstraintError, "gap", remedy="0 or more"):
        fit(gap=gap)


def test_gap_of_an_unknown_measure(fit, refuses):
    """A gap for what is no measure is refused with the measures."""
    with refuses(ConstraintError, "'equal_odds'", remedy="'selection rate'"):
        fit(gap={"equal_odds": 0.1})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Floor("x", None), ["at_least", "None"]),
        (lambda: Floor("x", np.nan), ["at_least", "nan"]),
        (lambda: Floor("x", np.inf), ["at_least", "inf"]),
        (lambda: Floor("x", "tody"), ["at_least", "'tody'", "'baseline'"]),
        (lambda: Floor("x", [1, 2]), ["at_least"]),
        (lambda: Floor("x", np.array([1, 2])), ["at_least"]),
        (lambda: Floor("x", 1, groups="FM"), ["'FM'", "list of groups"]),
        (lambda: Floor("x", 1, groups=5), ["5", "list of groups"]),
        (lambda: Floor("x", 1, groups=[]), ["groups"]),
        (lambda: Budget("x"), ["needs limits", "at_most"]),
        (lambda: Budget("x", at_most="a"), ["at_most", "'a'"]),
        (lambda: Budget("x", at_least=np.nan), ["at_least", "nan"]),
        (lambda: Budget("x", exactly=np.inf), ["exactly", "inf"]),
        (lambda: Budget("x", at_most=1, at_least=2), ["at least 2", "at most 1", "Swap"]),
        (lambda: Budget("x", exactly=1, at_most=2), ["exactly", "alone"]),
        (lambda: Budget("x", at_most=1, per=0), ["0 people", "positive"]),
        (lambda: Budget("x", at_most=1, per=-5), ["-5 people", "positive"]),
        (lambda: Budget("x", at_most=1, per="people"), ["'people'", "'person'"]),
        (lambda: Budget("x", at_most=1, per=np.nan), ["nan", "'person'"]),
        (lambda: Budget("x", at_most=1, per=None), ["None", "'person'"]),
    ],
)
def test_bad_constraint(refuses, make, words):
    """A floor or budget that makes no sense is refused when it is written."""
    with refuses(ConstraintError, *words):
        make()


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([3], ["3", "WorseOff(...) or Exploration(...)"]),
        (["floor"], ["'floor'", "Floor(...)"]),
        (Floor("selection rate", 0.1), ["Floor", "list"]),
        (5, ["5", "list"]),
        ([Floor("income", 1)], ["'income'", "'selection rate'"]),
        ([Budget("income", at_most=1)], ["'income'", "'selection rate'"]),
        ([Floor("selection rate", 0.1, groups=["Z"])], ["'Z'", "does not occur", "0, 1"]),
    ],
    ids=["number", "text", "alone", "number alone", "floor", "budget", "group"],
)
def test_bad_constraints(fit, refuses, constraints, words):
    """Constraints that speak of nothing known are refused with what is known."""
    with refuses(ConstraintError, *words):
        fit(constraints=constraints)


def test_constraint_on_a_whole_criterion(fit, refuses):
    """A floor on a criterion of several measures lists each of them once."""
    with refuses(ConstraintError, "'equalized_odds', which is 2 measures") as caught:
        fit(constraints=[Floor("equalized_odds", 0.1)])
    assert str(caught.value).count("'true positive rate'") == 1


def test_constraint_with_a_taken_name(fit, refuses):
    """Two functions of one name are refused, with the name and the remedy."""
    with refuses(HappinessError, "'happiness'", "differ", remedy="name"):
        fit(happiness=lambda decision: decision, constraints=[Floor(lambda decision: 1 - decision, 0.0)])


def test_impossible_floor(fit, refuses):
    """A floor that nobody can reach is infeasible, in words and units."""
    with refuses(InfeasibleError, "selection rate", "at least 1.5") as caught:
        fit(constraints=[Floor("selection rate", 1.5)])
    assert len(caught.value.conflict) == 1


@pytest.mark.parametrize("random_state", [-1, "x", 2**32], ids=str)
def test_bad_random_state(fit, refuses, random_state):
    """A random_state that is no seed is refused by name."""
    with refuses(DataError, "random_state", repr(random_state)):
        fit(random_state=random_state)


# ---------------------------------------------------------------------------------------------------------
# Aggregates of a table


def test_aggregates_of_bad_tables(people, refuses):
    """The function twin refuses what the classifier refuses, with the same words."""
    table = dict(people.columns)
    good = {
        "y": people.y,
        "policy": "label",
        "predicted": people.y,
        "sensitive_features": "group",
        "happiness": "statistical_parity",
    }
    aggregate(table, **good)
    with refuses(DataError, "differ in length", "'score': 3"):
        aggregate(table | {"score": np.zeros(3)}, **good)
    with refuses(DataError, "'grp'", remedy="'group'"):
        aggregate(table, **good | {"sensitive_features": "grp"})
    with refuses(DataError, "neither probabilities nor predictions"):
        aggregate(table, **good | {"predicted": None})
    with refuses(DataError, "[0]", "two different classes"):
        aggregate(table, **good | {"classes": [0]})
    with refuses(DataError, "label 1", "[0, 5]"):
        aggregate(table, **good | {"classes": [0, 5]})
    with refuses(DataError, "['a']", "[0, 1]"):
        aggregate(table, **good | {"score": {"a": "score"}, "classes": [0, 1]})
    with refuses(DataError, "399 labels y", "400 rows"):
        aggregate(table, **good | {"y": people.y[:-1]})
    with refuses(DataError, "y is a ndarray", "not in memory", remedy="collect"):
        aggregate(people.table("polars").lazy(), **good)
    with refuses(AggregatesError, "disagree on groups"):
        aggregate(table, **good) + aggregate(table, **good | {"sensitive_features": "region"})


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(3), ("3 weights", "400 rows")),
        (np.full(400, "a"), ("not numbers",)),
        (np.array([None] + [1] * 399, dtype=object), ("not numbers",)),
        (-np.ones(400), ("row 0", "-1.0")),
        (np.zeros(400), ("All weights are zero",)),
    ],
)
def test_wrong_weights_are_named_before_the_classes(people, refuses, weight, words):
    """Weights are checked before they say whose labels are the classes."""
    table = people.table("pandas")
    asked = {
        "policy": "label",
        "predicted": people.y,
        "y": people.y,
        "sensitive_features": "group",
        "happiness": "statistical_parity",
    }
    with refuses(DataError, *words):
        aggregate(table, **asked, sample_weight=weight)
    with refuses(DataError, "399 labels y", "400 rows"):
        aggregate(table, **asked | {"y": people.y[:-1]}, sample_weight=np.ones(400))


# ---------------------------------------------------------------------------------------------------------
# After a failure


SPOILED = [
    {"gap": -1.0},
    {"happiness": None},
    {"happiness": lambda decision: np.nan},
    {"loss": "nonsense"},
    {"constraints": [Floor("selection rate", 2.0)]},
    {"random_state": -1},
    {"policy": "nonsense"},
]


@pytest.mark.parametrize("mistake", SPOILED, ids=lambda mistake: next(iter(mistake)))
@pytest.mark.parametrize("prefit", [True, False], ids=["frozen", "unfitted"])
def test_failed_first_fit_leaves_it_unfitted(people, mistake, prefit):
    """After a first fit that failed, predict says that it is not fitted, not that an attribute is missing."""
    X = people.table("pandas")
    fair = FairClassifier(
        people.frozen("pandas") if prefit else LogisticRegression(),
        **{"happiness": "statistical_parity", "sensitive_features": "group", "key": "id", "cv": 2} | mistake,
    )
    with pytest.raises(FelicificError):
        fair.fit(X, people.y)
    with pytest.raises(NotFittedError):
        fair.predict(X)


@pytest.mark.parametrize("mistake", SPOILED, ids=lambda mistake: next(iter(mistake)))
@pytest.mark.parametrize("renamed", [False, True], ids=["same columns", "other columns"])
def test_failed_refit_leaves_nothing_half_fitted(people, mistake, renamed):
    """After a refit that failed, the old policy works with the old model and classes, or it is not fitted."""
    X = people.table("pandas", ["score", "wealth", "group"])
    fair = FairClassifier(
        LogisticRegression(),
        gap=0.0,
        happiness="statistical_parity",
        sensitive_features="group",
        random_state=0,
        cv=2,
    ).fit(X, people.y)
    before = fair.predict_proba(X)
    # Another relation, three labels and perhaps other columns: nothing of it may remain.
    other = X.assign(score=-X["score"]).rename(columns={"wealth": "riches"} if renamed else {})
    with pytest.raises(FelicificError):
        fair.set_params(**mistake).fit(other, np.where(np.arange(len(X)) % 3 == 0, 2, people.y))
    try:
        after = fair.predict_proba(X)
    except NotFittedError:
        return
    assert (after == before).all()
    assert fair.classes_.tolist() == [0, 1]
    assert fair.feature_names_in_.tolist() == ["score", "wealth", "group"]


class Expensive(LogisticRegression):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Expensive.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "mistake",
    [
        {"gap": -1.0},
        {"happiness": None},
        {"happiness": lambda decision, age: 1},
        {"loss": "nonsense"},
        {"decisions": [7]},
        {"constraints": [3]},
        {"random_state": -1},
        {"policy": "nonsense"},
        {"cv": ShuffleSplit(2)},
    ],
    ids=lambda mistake: next(iter(mistake)),
)
def test_mistakes_in_the_settings_are_found_before_the_model_is_fitted(people, mistake):
    """What is wrong with the settings alone is said at once, not after minutes of cross-fitting."""
    fair = FairClassifier(
        Expensive(),
        **{"happiness": "statistical_parity", "sensitive_features": "group", "key": "id"} | mistake,
    )
    Expensive.fits = 0
    with pytest.raises(FelicificError):
        fair.fit(people.table("pandas"), people.y)
    assert Expensive.fits == 0


def test_settings_are_not_changed_by_fit(people):
    """Fitting, failed or not, leaves every parameter as the user wrote it."""
    fair = FairClassifier(
        LogisticRegression(),
        happiness={"a": "statistical_parity"},
        gap={"a": 0.1},
        constraints=[Floor("a", 0.0)],
        sensitive_features=["group"],
        key="id",
        cv=KFold(2),
        random_state=np.random.RandomState(0),
    )
    given = {name: value for name, value in fair.get_params(deep=False).items() if name != "random_state"}
    copied = clone(fair).get_params(deep=False)
    fair.fit(people.table("pandas"), people.y)
    for name, value in given.items():
        assert getattr(fair, name) is value
    assert fair.gap == copied["gap"]
    assert fair.happiness == copied["happiness"]


@pytest.mark.parametrize("kind", FelicificError.__subclasses__(), ids=lambda kind: kind.__name__)
def test_errors_survive_another_process(kind):
    """Every error can be pickled, as a parallel worker does with it, and keeps its words and its remedy."""
    error = kind("The problem.", "The remedy.")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert isinstance(back, ValueError)
    assert str(back) == str(error) == "The problem. The remedy."
    assert back.remedy == "The remedy."


def test_infeasible_survives_another_process():
    """The conflict and the least gap of an infeasible program are kept too."""
    back = pickle.loads(pickle.dumps(InfeasibleError("No.", "Relax it.", ("a", "b"), 0.25)))
    assert (back.conflict, back.least_gap, str(back)) == (("a", "b"), 0.25, "No. Relax it.")
