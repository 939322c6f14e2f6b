"""FairClassifier among scikit-learn's own: checks, pipelines, searches, routing, copies and files."""

import copy
import html
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
import skops.io
from functions import ByContent
from helpers import fair_classifier
from joblib import parallel_config
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from felicific import FairClassifier, Floor, Happiness, aggregate, solve
from felicific.exceptions import DataError, GroupError, HappinessError
from felicific.sklearn import make_scorer

# ---------------------------------------------------------------------------------------------------------
# scikit-learn's own checks


def checked(model=None, **settings):
    return fair_classifier(
        LogisticRegression() if model is None else model,
        happiness="statistical_parity",
        sensitive_features=ByContent(),
        random_state=0,
        cv=2,
        **settings,
    )


def expected_failures(estimator):
    """Columns are found by name. Whoever faces a lottery is decided by a draw; a soft label is one at any gap."""
    by_name = {"check_dataframe_column_names_consistency": "further columns, in any order, do no harm"}
    if getattr(estimator.policy, "randomize", True) and (
        estimator.gap == 0 or estimator.policy == "soft-label"
    ):
        by_name["check_classifiers_train"] = "predict draws, so it is not the argmax of predict_proba"
    return by_name


@pytest.mark.filterwarnings("ignore::felicific.exceptions.LotteryWarning")  # some checks repeat a few rows
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of the model, on tiny data
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")  # of the cross-fit, on tiny data
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater:UserWarning")
@parametrize_with_checks(
    [
        checked(gap=1.0),
        checked(LinearSVC(), gap=1.0),
        checked(gap=1.0, policy="soft-label"),
        checked(gap=0.0, randomize=False),
        checked(gap=0.0),
    ],
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_estimator_checks(estimator, check):
    """Every check of scikit-learn passes, but for the order of columns, and for one where a lottery is held."""
    check(estimator)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_sparse_tables(people, kind):
    """Every sparse format gives the dense table's policy and decisions."""
    X = people.table("numpy", ["score", "wealth", "group"]).astype(float)
    dense = checked().fit(X, people.y)
    sparse = getattr(scipy.sparse, f"{kind}_array")(X)
    fair = checked().fit(sparse, people.y)
    assert fair.policy_.q == pytest.approx(dense.policy_.q, abs=1e-9)
    assert (fair.predict(sparse) == dense.predict(X)).all()


# ---------------------------------------------------------------------------------------------------------
# Tables


def funding(decision, x):
    return decision * (x[:, 2].astype(float) if isinstance(x, np.ndarray) else x["loan"])


def fit_library(people, library, **settings):
    X = people.table(library)
    settings = {"gap": 0.0, "sensitive_features": people.name(library, "group"), "random_state": 0} | settings
    return FairClassifier(people.frozen(library), **settings).fit(X, people.y), X


@pytest.mark.parametrize("policy", ["label", "soft-label"])
@pytest.mark.parametrize("keyed", [True, False])
def test_libraries_agree(people, policy, keyed):
    """pandas, Polars, PyArrow and NumPy tables give identical policies and decisions, with and without a key."""
    found = {}
    for library in ("pandas", "polars", "arrow", "numpy"):
        if library == "arrow":
            X = people.table("arrow")
            fair = FairClassifier(
                people.frozen("pandas"), gap=0.0, sensitive_features="group", random_state=0
            )
            fair.set_params(happiness=funding_of_arrow, gap=1.0, policy=policy, key="id" if keyed else None)
            fair.fit(X, people.y)
        elif library == "numpy" and not keyed:
            # Without a key to hold back, the model would be given the identifier.
            continue
        else:
            key = people.name(library, "id") if keyed else None
            fair, X = fit_library(people, library, happiness=funding, gap=1.0, policy=policy, key=key)
        found[library] = (fair, fair.predict_proba(X), fair.predict(X))
    first, score, decided = found.pop("pandas")
    assert first.share_randomized_ > 0
    for fair, other_proba, other_decided in found.values():
        assert fair.groups_ == first.groups_
        assert fair.policy_.q == pytest.approx(first.policy_.q, abs=1e-12)
        assert other_proba == pytest.approx(score, abs=1e-12)
        assert (other_decided == decided).all()


def funding_of_arrow(decision, x):
    return decision * x["loan"].to_numpy()


def test_arrays_without_a_key_agree_with_tables(people):
    """A float array and a table of the same numbers draw the same out of their content."""
    names = ["score", "wealth", "loan", "group"]
    frame, array = people.table("pandas", names), people.table("numpy", names).astype(float)
    common = {"happiness": "statistical_parity", "gap": 0.0, "random_state": 0}
    one = FairClassifier(
        FrozenEstimator(LogisticRegression().fit(frame, people.y)), sensitive_features="group", **common
    ).fit(frame, people.y)
    two = FairClassifier(
        FrozenEstimator(LogisticRegression().fit(array, people.y)), sensitive_features=3, **common
    ).fit(array, people.y)
    assert 0 < one.share_randomized_ == two.share_randomized_
    assert (one.predict(frame) == two.predict(array)).all()
    listed = two.predict(array.tolist())
    assert (listed == two.predict(array)).all()


def test_fit_on_pandas_predict_on_polars(people):
    """A classifier fitted on one library decides the same about the other's table."""
    fair, X = fit_library(people, "pandas", happiness=funding, key="id")
    other = people.table("polars")
    assert (fair.predict(other) == fair.predict(X)).all()
    assert (fair.predict_proba(people.table("arrow")) == fair.predict_proba(X)).all()


def test_pandas_index_does_not_matter(people):
    """Rows are matched by position: a shuffled or repeated index changes nothing."""
    plain, X = fit_library(people, "pandas", happiness=funding)
    odd = X.set_index(np.zeros(len(X), int))
    weight = pd.Series(np.ones(len(X)), index=np.arange(len(X))[::-1])
    fair = clone(plain).fit(odd, pd.Series(people.y, index=range(5, len(X) + 5)), sample_weight=weight)
    assert (fair.policy_.q == plain.policy_.q).all()
    assert (fair.predict(odd) == plain.predict(X)).all()


def test_columns_with_integer_names(people):
    """A pandas table whose columns are numbers works, key and groups included."""
    X = people.table("pandas").set_axis(range(6), axis=1)
    model = FrozenEstimator(LogisticRegression().fit(X[[0, 1, 2, 3, 4]], people.y))
    fair = FairClassifier(
        model, gap=0.0, happiness="statistical_parity", sensitive_features=3, key=5, random_state=0
    )
    fair.fit(X, people.y)
    named, table = fit_library(people, "pandas", happiness="statistical_parity", key="id")
    assert (fair.predict(X) == named.predict(table)).all()


def test_missing_values_reach_a_model_that_takes_them(people):
    """NaN among the features is the model's affair, in an array as in a table."""
    names = ["score", "wealth", "group"]
    frame = people.table("pandas", names)
    frame.loc[:5, "score"] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression())
    fair = FairClassifier(
        model, gap=0.0, happiness="statistical_parity", sensitive_features="group", random_state=0
    )
    expected = fair.fit(frame, people.y).predict(frame)
    array = frame.to_numpy()
    assert (
        clone(fair).set_params(sensitive_features=2).fit(array, people.y).predict(array) == expected
    ).all()


# ---------------------------------------------------------------------------------------------------------
# Labels


LABELS = {
    "text": np.array(["no", "yes"]),
    "object": np.array(["no", "yes"], dtype=object),
    "bool": np.array([False, True]),
    "float": np.array([-1.0, 2.0]),
    "reversed": np.array([1, 0]),
    "int8": np.array([-128, 127], dtype=np.int8),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("prefit", [True, False])
def test_labels_of_every_type(people, kind, prefit):
    """Renaming the labels renames the decisions and changes nothing else."""
    names = ["score", "wealth", "group"]
    X, labels = people.table("pandas", names), LABELS[kind]
    y = labels[people.y]

    def fit(y, happiness):
        model = LogisticRegression()
        model = FrozenEstimator(model.fit(X, y)) if prefit else model
        return FairClassifier(
            model,
            gap=0.0,
            happiness=happiness,
            policy="label",
            sensitive_features="group",
            random_state=0,
            cv=KFold(3),
        ).fit(X, y)

    plain, fair = fit(people.y, "tpr"), fit(y, "tnr" if kind == "reversed" else "tpr")
    assert fair.classes_.tolist() == sorted(labels.tolist())
    assert fair.loss_ == pytest.approx(plain.loss_, rel=1e-9)
    assert max(fair.gaps_.values()) < 1e-9
    decided = fair.predict(X)
    assert decided.dtype == labels.dtype
    assert set(decided.tolist()) <= set(labels.tolist())
    assert fair.score(X, y) == (decided == y).mean()
    if kind != "reversed":
        assert fair.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-6)


@pytest.mark.parametrize(
    "wrap",
    [
        pd.Series,
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: pd.Series(y).astype("category"),
        pl.Series,
        list,
        lambda y: pa.chunked_array([y]),
    ],
    ids=["pandas", "nullable", "categorical", "polars", "list", "arrow"],
)
def test_labels_in_any_container(people, wrap):
    """Labels may come as a series of any library, or a list."""
    plain, X = fit_library(people, "pandas", happiness=funding)
    fair = clone(plain).fit(X, wrap(people.y))
    assert (fair.policy_.q == plain.policy_.q).all()
    assert fair.predict(X).dtype == plain.predict(X).dtype


# ---------------------------------------------------------------------------------------------------------
# The model inside


def test_models_without_probabilities(people):
    """A model that only predicts serves the label policy; a soft label asks for probabilities, by name."""
    names = ["score", "wealth", "group"]
    X, y = people.table("pandas", names), people.y
    for model in (FrozenEstimator(LinearSVC().fit(X, y)), LinearSVC(), RidgeClassifier()):
        fair = FairClassifier(
            model, gap=0.0, happiness="statistical_parity", policy="label", sensitive_features="group"
        ).fit(X, y)
        assert max(fair.gaps_.values()) < 1e-9
        assert set(fair.predict(X)) <= {0, 1}
        with pytest.raises(
            DataError, match=r"(LinearSVC|RidgeClassifier) has no predict_proba.*policy='label'"
        ):
            clone(fair).set_params(policy="soft-label").fit(X, y)
    calibrated = CalibratedClassifierCV(LinearSVC())
    FairClassifier(
        calibrated,
        gap=0.0,
        happiness="statistical_parity",
        policy="soft-label",
        sensitive_features="group",
        cv=2,
    ).fit(X, y)


@pytest.mark.parametrize("policy", ["label", "soft-label"])
def test_cross_fit_is_scikit_learns(people, policy):
    """An unfitted model's policy is fitted on what cross_val_predict says of rows it has not seen."""
    names, y = ["score", "wealth", "group"], people.y
    X = people.table("pandas", names)
    fair = FairClassifier(
        LogisticRegression(),
        gap=0.0,
        happiness="statistical_parity",
        policy=policy,
        sensitive_features="group",
        random_state=0,
    ).fit(X, y)
    score = cross_val_predict(LogisticRegression(), X, y, cv=5, method="predict_proba")
    expected = solve(
        aggregate(
            X, score=score, y=y, sensitive_features="group", happiness="statistical_parity", policy=policy
        ),
        gap=0.0,
        random_state=0,
    )
    assert fair.policy_.q == pytest.approx(expected.q, abs=1e-9)
    assert fair.loss_ == pytest.approx(expected.loss, rel=1e-9)
    # The model that decides is fitted on everybody.
    assert fair.estimator_.coef_ == pytest.approx(LogisticRegression().fit(X, y).coef_, rel=1e-6)
    assert not hasattr(fair.estimator, "coef_")


def test_frozen_uses_every_row(people):
    """A frozen model's policy is fitted on its predictions for every row."""
    fair, X = fit_library(people, "pandas", happiness="statistical_parity", key="id", policy="label")
    expected = solve(
        aggregate(
            X,
            predicted=people.frozen("pandas").predict(X.drop(columns="id")),
            policy="label",
            y=people.y,
            sensitive_features="group",
            happiness="statistical_parity",
        ),
        gap=0.0,
        random_state=0,
    )
    assert (fair.policy_.q == expected.q).all()
    assert fair.policy_.salt == expected.salt


def test_parallel_cross_fit(people):
    """Two processes give what one does."""
    X = people.table("polars")
    common = {"happiness": funding, "gap": 0.0, "sensitive_features": "group", "key": "id"}
    common |= {"random_state": 0, "cv": 3}
    one = FairClassifier(LogisticRegression(), **common).fit(X, people.y)
    with parallel_config(n_jobs=2):
        two = FairClassifier(LogisticRegression(), **common).fit(X, people.y)
    assert (one.policy_.q == two.policy_.q).all()
    assert one.policy_.salt == two.policy_.salt
    assert (one.predict(X) == two.predict(X)).all()


def test_cross_fit_with_a_rare_class(people):
    """A class that some fold's model never saw gets probability 0 there, in its own column."""
    X = people.table("pandas", ["score", "wealth", "group"])
    y = people.y.copy()
    y[:3] = -1
    folds = [(np.arange(3, len(y)), np.arange(3)), (np.arange(3), np.arange(3, len(y)))]
    y[1] = 0
    fair = FairClassifier(
        LogisticRegression(),
        gap=0.0,
        happiness="statistical_parity",
        policy="soft-label",
        sensitive_features="group",
        cv=folds,
        random_state=0,
    ).fit(X, y)
    assert fair.classes_.tolist() == [-1, 0, 1]
    assert fair.predict_proba(X).shape == (len(y), 3)


def test_sample_weight_reaches_the_model(people):
    """The estimator is fitted with the weights when it takes them."""
    X = people.table("pandas", ["score", "wealth", "group"])
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    fair = FairClassifier(
        LogisticRegression(), gap=0.0, happiness="statistical_parity", sensitive_features="group"
    )
    fair.fit(X, people.y, sample_weight=weight)
    expected = LogisticRegression().fit(X, people.y, sample_weight=weight)
    assert fair.estimator_.coef_ == pytest.approx(expected.coef_, rel=1e-6)
    FairClassifier(
        LinearSVCWithoutWeights(),
        gap=0.0,
        happiness="statistical_parity",
        policy="label",
        sensitive_features="group",
    ).fit(X, people.y, sample_weight=weight)


class LinearSVCWithoutWeights(LinearSVC):
    def fit(self, X, y):
        return super().fit(X, y)


# ---------------------------------------------------------------------------------------------------------
# Pipelines, searches, routing


def frame_with_text(people):
    return people.table("pandas", ["score", "wealth", "loan"], sex=np.where(people["group"], "M", "F"))


def test_pipeline_inside(people):
    """A pipeline that encodes a text column is a model like any other; groups and happiness see the raw table."""
    X = frame_with_text(people)
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough"),
        LogisticRegression(max_iter=500),
    )
    pipeline[0].set_params(remainder=StandardScaler())
    fair = FairClassifier(pipeline, gap=0.0, happiness=funding, sensitive_features="sex", random_state=0).fit(
        X, people.y
    )
    assert fair.groups_ == ("F", "M")
    assert fair.gaps_["funding"] < 1e-9 * X["loan"].max()
    fitted = FrozenEstimator(clone(pipeline).fit(X, people.y))
    FairClassifier(fitted, gap=0.0, happiness=funding, sensitive_features="sex").fit(
        X.assign(extra="x"), people.y
    )


def test_pipeline_outside(people):
    """As the last step of a pipeline, the classifier sees what the steps before it hand on."""
    X = people.table("numpy", ["score", "wealth", "group"]).astype(float)
    fair = FairClassifier(
        LogisticRegression(),
        gap=0.0,
        happiness="statistical_parity",
        sensitive_features=above_zero,
        random_state=0,
    )
    pipeline = make_pipeline(StandardScaler(), fair).fit(X, people.y)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(fair).fit(scaled, people.y)
    assert (pipeline.predict(X) == alone.predict(scaled)).all()
    assert (pipeline.predict_proba(X) == alone.predict_proba(scaled)).all()
    assert pipeline.score(X, people.y) == alone.score(scaled, people.y)
    assert (pipeline.classes_ == [0, 1]).all()
    # pandas output keeps the columns' names for those who want them.
    frame = people.table("pandas", ["score", "wealth", "group"])
    named = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(fair)).set_params(
        fairclassifier__sensitive_features=group_above_zero
    )
    named.fit(frame, people.y)
    assert named[-1].feature_names_in_.tolist() == ["score", "wealth", "group"]
    assert named.predict_proba(frame) == pytest.approx(pipeline.predict_proba(X), abs=1e-9)


def above_zero(X):
    return X[:, 2] > 0


def group_above_zero(X):
    return X["group"] > 0


def by_hand(fitted, X, y):
    """Loss and gap of the approval rate, from the decision probabilities."""
    score = fitted.predict_proba(X)
    group = X["group"].to_numpy()
    loss = np.mean(score[np.arange(len(y)), 1 - y])
    rates = [score[group == z, 1].mean() for z in np.unique(group)]
    return loss, max(rates) - min(rates)


def approved(decision):
    return float(decision)


@pytest.mark.parametrize("price", [None, 0.7])
def test_search_with_a_scorer(people, price):
    """GridSearchCV with a Scorer finds what a loop by hand finds, as two scores or as one at a price."""
    X, y = people.table("pandas", ["score", "wealth", "group"]), people.y
    fair = FairClassifier(
        LogisticRegression(), gap=0.0, happiness=approved, sensitive_features="group", random_state=0
    )
    grid = {"gap": [0.0, 0.3], "estimator__C": [0.01, 1.0], "policy": ["label", "soft-label"]}
    folds = StratifiedKFold(3)
    search = GridSearchCV(
        fair,
        grid,
        scoring=make_scorer(price=price),
        cv=folds,
        refit="neg_loss" if price is None else True,
        error_score="raise",
    ).fit(X, y)
    best = None
    for i, params in enumerate(search.cv_results_["params"]):
        scores = []
        for train, test in folds.split(X, y):
            fitted = clone(fair).set_params(**params).fit(X.iloc[train], y[train])
            scores.append(by_hand(fitted, X.iloc[test], y[test]))
        loss, gap = np.mean(scores, axis=0)
        if price is None:
            assert search.cv_results_["mean_test_neg_loss"][i] == pytest.approx(-loss, rel=1e-12)
            assert search.cv_results_["mean_test_neg_gap"][i] == pytest.approx(-gap, rel=1e-9, abs=1e-12)
            total = loss
        else:
            assert search.cv_results_["mean_test_score"][i] == pytest.approx(-loss - price * gap, rel=1e-9)
            total = loss + price * gap
        best = min((total, i), best) if best else (total, i)
    assert search.best_index_ == best[1]
    assert search.predict(X).shape == y.shape


def test_scorer_of_several_measures(people):
    """With several measures every gap has its name, and a dict prices some of them."""
    fair, X = fit_library(people, "pandas", happiness=["statistical_parity", funding], gap={})
    scores = make_scorer()(fair, X, people.y)
    assert set(scores) == {"neg_loss", *(f"neg_gap: {name}" for name in fair.gaps_)}
    assert scores["neg_loss"] == pytest.approx(-fair.loss_, rel=1e-12)
    for name, gap in fair.gaps_.items():
        assert scores[f"neg_gap: {name}"] == pytest.approx(-gap, rel=1e-12)
    priced = make_scorer(price={"funding": 0.01})(fair, X, people.y)
    assert priced == pytest.approx(-fair.loss_ - 0.01 * fair.gaps_["funding"], rel=1e-12)


def test_scorer_of_another_classifier(people):
    """Any classifier is scored by its predictions, when the scorer says of what and for whom."""
    names = ["score", "wealth", "group"]
    X, y = people.table("pandas", names), people.y
    model = LogisticRegression().fit(X, y)
    scorer = make_scorer(happiness="equal_opportunity", sensitive_features="group", loss=[[0, 1], [5, 0]])
    decided, group = model.predict(X), people["group"]
    rates = [decided[(group == z) & (y == 1)].mean() for z in (0, 1)]
    scores = scorer(model, X, y)
    assert scores["neg_gap"] == pytest.approx(-abs(rates[0] - rates[1]), rel=1e-12)
    wrong = np.where(decided == y, 0, np.where(y == 1, 5, 1))
    assert scores["neg_loss"] == pytest.approx(-wrong.mean(), rel=1e-12)
    weight = np.arange(len(y)) % 3
    weighted = scorer(model, X, y, sample_weight=weight)
    assert weighted["neg_loss"] == pytest.approx(-np.average(wrong, weights=weight), rel=1e-12)
    with pytest.raises(HappinessError, match="No happiness"):
        make_scorer(sensitive_features="group")(model, X, y)
    with pytest.raises(GroupError, match="which group"):
        make_scorer(happiness="equal_opportunity")(model, X, y)


def test_scorer_sees_what_the_last_step_sees(people):
    """In a pipeline, groups and happiness that the classifier names are those of its own, transformed, table."""
    X = people.table("numpy", ["score", "wealth", "group"]).astype(float) + 5.0
    fair = FairClassifier(
        LogisticRegression(), happiness=approved, gap={}, sensitive_features=above_zero, random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), fair).fit(X, people.y)
    score = pipeline.predict_proba(X)[:, 1]
    expected = abs(score[people["group"] == 1].mean() - score[people["group"] == 0].mean())
    assert expected > 0.1
    assert make_scorer()(pipeline, X, people.y)["neg_gap"] == pytest.approx(-expected, rel=1e-9)


def test_scorer_refuses_what_it_cannot_measure(people):
    """One group alone, a group without anybody inside ``among``, an unknown price: errors, not 0, NaN or KeyError."""
    fair, X = fit_library(people, "pandas", happiness="equal_opportunity", gap={})
    alone = people["group"] == 1
    with pytest.raises(GroupError, match="one group only: 1"):
        make_scorer()(fair, X[alone], people.y[alone])
    unlucky = np.where(alone, people.y, 0)
    with pytest.raises(HappinessError, match=r"group 0.*'true positive rate'"):
        make_scorer()(fair, X, unlucky)
    with pytest.raises(ValueError, match=r"'equal_opportunities'.*'true positive rate'"):
        make_scorer(price={"equal_opportunities": 1.0})(fair, X, people.y)


def test_metadata_routing(people):
    """Groups and weights travel through a pipeline by metadata routing, to fit, predict and score."""
    X = people.table("numpy", ["score", "wealth"]).astype(float)
    sex, weight = np.where(people["group"], "M", "F"), np.random.default_rng(0).uniform(0.1, 3, len(X))
    common = {"happiness": "statistical_parity", "gap": 0.0, "random_state": 0}
    scaled = StandardScaler().fit_transform(X)
    alone = FairClassifier(LogisticRegression(), **common)
    alone.fit(scaled, people.y, sensitive_features=sex, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        fair = (
            FairClassifier(LogisticRegression().set_fit_request(sample_weight=True), **common)
            .set_fit_request(sensitive_features=True, sample_weight=True)
            .set_predict_request(sensitive_features=True)
            .set_predict_proba_request(sensitive_features=True)
            .set_score_request(sensitive_features=True)
        )
        pipeline = Pipeline(
            [("scale", StandardScaler().set_fit_request(sample_weight=False)), ("fair", fair)]
        )
        pipeline.fit(X, people.y, sensitive_features=sex, sample_weight=weight)
        routed = pipeline[-1]
        assert routed.policy_.q == pytest.approx(alone.policy_.q, abs=1e-9)
        assert routed.estimator_.coef_ == pytest.approx(alone.estimator_.coef_, rel=1e-6)
        decided = pipeline.predict(X, sensitive_features=sex)
        assert (decided == alone.predict(scaled, sensitive_features=sex)).all()
        score = pipeline.predict_proba(X, sensitive_features=sex)
        assert score == pytest.approx(alone.predict_proba(scaled, sensitive_features=sex), abs=1e-9)
        assert pipeline.score(X, people.y, sensitive_features=sex) == (decided == people.y).mean()
        with pytest.raises(GroupError, match="Nobody said which group"):
            pipeline.predict(X)
        search = GridSearchCV(fair, {"gap": [0.0, 0.2]}, cv=2, error_score="raise")
        search.fit(X, people.y, sensitive_features=sex)
        assert search.best_params_["gap"] in (0.0, 0.2)


def test_routing_ignores_weights_that_the_model_did_not_ask_for(people):
    """With routing on, a model that declined the weights is fitted without them; the program still gets them."""
    X = people.table("numpy", ["score", "wealth"]).astype(float)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        fair = FairClassifier(
            LogisticRegression().set_fit_request(sample_weight=False), gap=0.0, happiness="statistical_parity"
        ).set_fit_request(sensitive_features=True, sample_weight=True)
        fair.fit(X, people.y, sensitive_features=people["group"], sample_weight=weight)
    assert fair.estimator_.coef_ == pytest.approx(LogisticRegression().fit(X, people.y).coef_, rel=1e-6)
    assert fair.policy_.mass.sum() == pytest.approx(weight.sum())


# ---------------------------------------------------------------------------------------------------------
# Copies and files


def read_skops(fair):
    data = skops.io.dumps(fair)
    unknown = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith(("felicific.", f"{__name__}.")) for name in unknown), unknown
    return skops.io.loads(data, trusted=unknown)


def read_joblib(fair):
    stream = io.BytesIO()
    joblib.dump(fair, stream)
    stream.seek(0)
    return joblib.load(stream)


@pytest.mark.parametrize(
    "again", [lambda fair: pickle.loads(pickle.dumps(fair)), read_joblib, read_skops, copy.deepcopy]
)
@pytest.mark.parametrize(
    "happiness",
    ["equalized_odds", funding, Happiness(funding, name="cash", unit="$", bounds=(0, 50))],
    ids=["criterion", "function", "Happiness"],
)
def test_copies_decide_alike(people, again, happiness):
    """pickle, joblib, skops and deepcopy give back a classifier that decides, explains and refits alike."""
    constraints = [Floor(happiness, 0.0)] if isinstance(happiness, Happiness) else []
    fair, X = fit_library(people, "pandas", happiness=happiness, key="id", gap=0.9, constraints=constraints)
    back = again(fair)
    assert (back.predict(X) == fair.predict(X)).all()
    assert (back.predict_proba(X) == fair.predict_proba(X)).all()
    assert back.policy_.to_json() == fair.policy_.to_json()
    assert back.gaps_ == fair.gaps_
    assert back.fit(X, people.y).loss_ == fair.loss_


def test_clone(people):
    """A clone has the parameters, is not fitted, and fits to the same policy."""
    fair, X = fit_library(people, "pandas", happiness=funding, gap=1.5, constraints=(Floor(funding, 1.0),))
    twin = clone(fair)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(twin)
    assert twin.get_params(deep=False).keys() == fair.get_params(deep=False).keys()
    assert twin.fit(X, people.y).policy_.to_json() == fair.policy_.to_json()
    assert is_classifier(fair)
    assert twin.set_params(gap=0.25, policy="soft-label").get_params()["gap"] == 0.25


def test_html(people):
    """The HTML repr shows the classifier, fitted or not, and escapes whatever names it shows."""
    evil = "<script>alert(1)</script>"
    X = people.table("pandas").rename(columns={"group": evil})
    features = X.drop(columns=[evil, "id"])
    fair = FairClassifier(
        FrozenEstimator(LogisticRegression().fit(features, people.y)),
        gap=0.0,
        happiness=Happiness(approved, name=evil),
        sensitive_features=evil,
        key="id",
    )
    for text in (
        fair._repr_html_(),
        fair.fit(X.assign(**{evil: np.where(X[evil], evil, "b")}), people.y)._repr_html_(),
    ):
        assert "FairClassifier" in text
        assert evil not in text
    assert html.escape(evil) in text
    assert "FairClassifier" in repr(fair)


def test_attributes_that_users_see(people):
    """Fitted attributes are few, and are the ones documented."""
    fair, _ = fit_library(people, "pandas", happiness=funding)
    assert {name for name in vars(fair) if name.endswith("_")} == {
        "classes_", "decisions_", "estimator_", "feature_names_in_", "gaps_", "groups_", "loss_",
        "aggregates_", "group_model_", "labels_", "means_", "n_features_in_", "policy_", "prices_",
        "sensitive_features_", "share_randomized_",
    }  # fmt: skip
