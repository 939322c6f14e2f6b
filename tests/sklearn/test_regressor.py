"""FairRegressor among scikit-learn's own: checks, pipelines, searches, files, and what is refused."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from functions import ByContent
from sklearn.base import clone, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from felicific import FairClassifier, FairRegressor, Floor, Gap, Score, WorseOff, audit
from felicific.exceptions import (
    CertificateError,
    ConstraintError,
    DataError,
    GroupError,
    HappinessError,
    PolicyWarning,
)


def checked(**settings):
    # A model whose sparse fit is as exact as its dense one: weights and repetitions then are the same to 1e-7.
    return FairRegressor(
        Ridge(solver="sparse_cg", tol=1e-14), sensitive_features=ByContent(), random_state=0, cv=2, **settings
    )


@pytest.mark.filterwarnings("ignore::felicific.exceptions.LotteryWarning")  # some checks repeat a few rows
@pytest.mark.filterwarnings("ignore::scipy.sparse.linalg.MatrixRankWarning")
@parametrize_with_checks(
    [checked(happiness="distributional_parity", gap=0.0), checked(happiness="decision", gap=0.0)],
)
def test_estimator_checks(estimator, check):
    """Every check of scikit-learn for regressors passes at gap 0."""
    check(estimator)


@pytest.fixture(scope="module")
def hours():
    rng = np.random.default_rng(0)
    n = 3_000
    sex = rng.choice(["f", "m"], n)
    X = pd.DataFrame(
        {"skill": rng.normal(40 + 4 * (sex == "m"), 6, n), "luck": rng.normal(size=n), "sex": sex}
    )
    y = X["skill"].to_numpy() + rng.normal(0, 3, n)
    model = FrozenEstimator(LinearRegression().fit(X[["skill", "luck"]][:1_000], y[:1_000]))
    return X, y, model


def fair_of(model, **settings):
    defaults = {"happiness": "decision", "gap": 0.5, "sensitive_features": "sex", "random_state": 0}
    return FairRegressor(model, **(defaults | settings))


def test_what_it_states_is_what_it_does(hours):
    """Loss and gap of the fitted people are those of its predictions about them."""
    X, y, model = hours
    some = slice(1_000, 2_000)
    for settings in ({}, {"happiness": "distributional_parity", "gap": 0.1}, {"happiness": "decision >= 40"}):
        fair = fair_of(model, **settings).fit(X[some], y[some])
        amounts = fair.predict(X[some])
        assert fair.loss_ == pytest.approx(np.mean((amounts - y[some]) ** 2), rel=1e-12)
        assert fair.score(X[some], y[some]) == pytest.approx(1 - fair.loss_ / np.var(y[some]), rel=1e-9)
        means = fair.policy_.means
        women = (X[some]["sex"] == "f").to_numpy()
        if "decision" in means:
            assert means["decision"]["f"] == pytest.approx(amounts[women].mean(), rel=1e-12)


def test_is_a_regressor(hours):
    """It is a regressor, with amounts as floats, and neither classes nor probabilities."""
    X, y, model = hours
    fair = fair_of(model).fit(X[1_000:], y[1_000:])
    assert is_regressor(fair)
    assert fair.predict(X[:5]).dtype == np.float64
    assert fair.classes_ is None
    assert not hasattr(fair, "predict_proba")


def test_at_and_frontier(hours):
    """Another gap gives what a fit with that gap gives, and the frontier's ends are the baseline's room and nothing."""
    X, y, model = hours
    fair = fair_of(model).fit(X[1_000:], y[1_000:])
    other = fair_of(model, gap=2.0).fit(X[1_000:], y[1_000:])
    moved = fair.at(gap=2.0)
    assert moved.predict(X[:50]) == pytest.approx(other.predict(X[:50]), rel=1e-9)
    assert moved.gap == 2.0
    assert fair.frontier_.at(gap=2.0).loss == pytest.approx(other.loss_, rel=1e-12)
    assert fair.frontier_.loss[-1] <= fair.loss_ <= fair.frontier_.loss[0] + 1e-9


def test_recalibrate(hours):
    """Recalibrated on new people, the gap closes on them without their labels."""
    X, y, model = hours
    fair = fair_of(model, gap=0.0).fit(X[1_000:2_000], y[1_000:2_000])
    again = fair.recalibrate(X[2_000:])
    amounts, women = again.predict(X[2_000:]), (X[2_000:]["sex"] == "f").to_numpy()
    assert amounts[women].mean() == pytest.approx(amounts[~women].mean(), abs=1e-6)
    assert again.policy_.expected
    assert "recalibrated" in str(again.policy_)


def test_cross_fitted_in_searches(hours):
    """Unfitted models are cross-fitted, in pipelines, searches and cross-validation."""
    X, y, _ = hours
    X = X[:600]
    columns = make_column_transformer(("passthrough", ["skill", "luck"]))
    fair = fair_of(make_pipeline(columns, Ridge()), cv=3)
    assert fair.fit(X, y[:600]).policy_.out_of_fold
    scores = cross_validate(fair, X, y[:600], cv=2)
    assert (scores["test_score"] > 0.5).all()
    search = GridSearchCV(fair, {"gap": [0.0, 2.0]}, cv=2).fit(X, y[:600])
    assert search.best_params_["gap"] == 2.0


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_tables(hours, library):
    """Tables of other libraries give the same amounts."""
    X, y, _ = hours
    columns = make_column_transformer(("passthrough", ["skill", "luck"]))
    table = library(X[1_000:].to_dict(orient="list"))
    fair = fair_of(make_pipeline(columns, LinearRegression()), cv=3).fit(table, y[1_000:])
    same = fair_of(make_pipeline(columns, LinearRegression()), cv=3).fit(X[1_000:], y[1_000:])
    assert fair.predict(table) == pytest.approx(same.predict(X[1_000:]), rel=1e-9)


def test_copies(hours):
    """It is cloned, copied and pickled; a copy from a file predicts, and moves by its bins."""
    X, y, model = hours
    fair = fair_of(model, happiness="distributional_parity", gap=0.1).fit(X[1_000:], y[1_000:])
    assert clone(fair).get_params()["gap"] == 0.1
    for other in (copy.deepcopy(fair), pickle.loads(pickle.dumps(fair))):
        assert (other.predict(X[:20]) == fair.predict(X[:20])).all()
    stored = pickle.loads(pickle.dumps(fair))
    assert stored.at(gap=0.2).loss_ == pytest.approx(fair.at(gap=0.2).loss_, rel=1e-2)


def test_a_failed_fit_changes_nothing(hours):
    """A fit that fails leaves the object as it was."""
    X, y, model = hours
    fair = fair_of(model).fit(X[1_000:], y[1_000:])
    before = fair.predict(X[:5])
    with pytest.raises(DataError):
        fair.fit(X[1_000:], y[1_000:-1])
    assert (fair.predict(X[:5]) == before).all()


def test_the_baseline(hours):
    """The baseline is a column, an array or a function; who gets more or less is counted from it."""
    X, y, model = hours
    paid = X.assign(paid=35.0)
    by_name = fair_of(model, baseline="paid").fit(paid[1_000:], y[1_000:])
    by_array = fair_of(model).fit(X[1_000:], y[1_000:], baseline=np.full(2_000, 35.0))
    by_function = fair_of(model, baseline=lambda X: np.full(len(X), 35.0)).fit(X[1_000:], y[1_000:])
    for fair in (by_name, by_array, by_function):
        assert fair.policy_.baseline.amounts == pytest.approx([35.0, 35.0])
        assert fair.policy_.outcome.more.min() > 0.5
    floor = fair_of(model, baseline="paid", constraints=[Floor("decision", "baseline")]).fit(
        paid[1_000:], y[1_000:]
    )
    assert floor.policy_.outcome.amounts.min() >= 35.0 - 1e-6


def test_lotteries_follow_keys(hours):
    """Of few predictions, amounts are drawn by key: the same person always gets the same."""
    X, y, _ = hours
    tree = FrozenEstimator(DecisionTreeRegressor(max_leaf_nodes=6).fit(X[["skill"]][:1_000], y[:1_000]))
    people = X.assign(id=np.arange(len(X)))
    fair = fair_of(tree, happiness="distributional_parity", gap=0.0, key="id").fit(people[1_000:], y[1_000:])
    assert fair.share_randomized_ > 0.1
    order = np.random.default_rng(1).permutation(2_000)
    rows = people[1_000:].iloc[order]
    assert (fair.predict(rows) == fair.predict(people[1_000:])[order]).all()
    certain = fair_of(tree, happiness="distributional_parity", gap=0.0, policy=Score(randomize=False)).fit(
        X[1_000:], y[1_000:]
    )
    assert certain.share_randomized_ == 0.0
    assert certain.gaps_["distributional_parity"] > fair.gaps_["distributional_parity"]


def test_calibration(hours):
    """Calibration by group is a choice: a line, an isotonic curve, or none."""
    X, y, model = hours
    shifted = y + 5.0 * (X["sex"] == "f")  # the model knows nothing of it
    losses = {
        method: fair_of(model, gap=100.0, policy=Score(calibration=method))
        .fit(X[1_000:], shifted[1_000:])
        .loss_
        for method in ("affine", "isotonic", "none")
    }
    assert losses["affine"] < losses["none"] - 5
    assert losses["isotonic"] <= losses["affine"] * 1.02


def test_limits_without_the_group(hours):
    """A share above a limit is a matter of levels: without the group, cells of the prediction are taken."""
    X, y, model = hours
    fair = fair_of(model, happiness="decision >= 40", gap=0.2, sees_group=False, policy="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        fair.fit(X[1_000:], y[1_000:])
    assert not fair.policy_.sees_group
    assert fair.gaps_["decision >= 40"] <= 0.2 + 1e-6


def test_calibration_refused():
    """A calibration that there is not is refused."""
    with pytest.raises(DataError, match="calibration='lines'"):
        Score(calibration="lines")


def test_calibration_that_widens_the_gap_is_told(hours):
    """Where calibrated amounts are further apart than the baseline's, and that is allowed, it is said."""
    X, y, model = hours
    further = y + 5.0 * (X["sex"] == "m")
    with pytest.warns(PolicyWarning, match="uses the room up to"):
        fair_of(model, gap=8.0).fit(X[1_000:], further[1_000:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair = fair_of(model, gap=8.0, policy=Score(calibration="none")).fit(X[1_000:], further[1_000:])
    assert fair.predict(X[:20]) == pytest.approx(model.predict(X[["skill", "luck"]][:20]), rel=1e-9)


def test_falling_slope_is_told(hours):
    """Where larger predictions go with smaller labels, everybody is taken for the mean, and it is said."""
    X, y, model = hours
    upside_down = np.where(X["sex"] == "f", 80.0 - y, y)
    with pytest.warns(PolicyWarning, match="larger predictions go with smaller labels"):
        fair = fair_of(model, gap=100.0).fit(X[1_000:], upside_down[1_000:])
    women = X[1_000:][X[1_000:]["sex"] == "f"]
    assert np.ptp(fair.predict(women)) == pytest.approx(0.0, abs=1e-9)


def test_constant_predictions():
    """A model that predicts the same of everybody is no error."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.zeros(200), rng.integers(0, 2, 200)])
    y = rng.normal(X[:, 1], 1.0)
    model = FrozenEstimator(LinearRegression().fit(X[:, :1], np.ones(200)))
    fair = FairRegressor(
        model_of_first(model), happiness="decision", gap=0.1, sensitive_features=lambda X: X[:, 1]
    )
    fair.fit(X, y)
    assert fair.gaps_["decision"] <= 0.1 + 1e-9


def model_of_first(model):
    """A frozen model of the first column alone."""
    from sklearn.preprocessing import FunctionTransformer

    pipeline = make_pipeline(FunctionTransformer(_first), model)
    return FrozenEstimator(pipeline.fit(np.zeros((2, 2)), np.zeros(2)))


def _first(X):
    return np.asarray(X)[:, :1]


def test_audit(hours):
    """An audit of it on others measures its amounts, and knows the people it was fitted on."""
    X, y, model = hours
    fair = fair_of(model, happiness="distributional_parity", gap=0.1).fit(X[1_000:2_000], y[1_000:2_000])
    found = audit(fair, X[2_000:], y[2_000:])
    amounts, women = fair.predict(X[2_000:]), (X[2_000:]["sex"] == "f").to_numpy()
    assert found.means["mean amount"]["f"] == pytest.approx(amounts[women].mean(), rel=1e-12)
    with pytest.warns(UserWarning, match="fitted on"):
        audit(fair, X[1_000:2_000], y[1_000:2_000])


def test_confidence(hours):
    """A gap is shown on people held out, or it is said how many would do; 0 never can be."""
    X, y, model = hours
    for happiness, gap in (("decision", 3.0), ("distributional_parity", 0.25)):
        fair = fair_of(model, happiness=happiness, gap=gap, confidence=0.9).fit(X, y)
        assert f"is at most {gap:g}" in str(fair.certificate_)
        assert fair.gaps_[happiness] < gap
        assert "Nothing can be promised" in str(fair.at(gap=gap).certificate_)
    with pytest.raises(CertificateError, match="pass more rows"):
        fair_of(model, happiness="distributional_parity", gap=0.02, confidence=0.9).fit(X, y)
    with pytest.raises(ConstraintError, match="never be shown"):
        fair_of(model, gap=0.0, confidence=0.9).fit(X, y)


@pytest.mark.slow
def test_weights_in_safe_fits(hours):
    """Weights that may be no counts have to be named; sampling weights show no more than the rows there are."""
    X, y, model = hours
    weight = np.full(len(X), 1_000.0)
    fair = fair_of(model, happiness="distributional_parity", gap=0.15, confidence=0.9)
    with pytest.raises(DataError, match="weight_kind"):
        fair.fit(X, y, sample_weight=weight)
    tight = fair_of(model, happiness="distributional_parity", gap=0.02, confidence=0.9)
    with pytest.raises(CertificateError):
        tight.fit(X, y, sample_weight=weight, weight_kind="sampling")
    counted = fair_of(model, happiness="distributional_parity", gap=0.15, confidence=0.9)
    counted.fit(X, y, sample_weight=weight, weight_kind="frequency")
    plain = fair_of(model, happiness="distributional_parity", gap=0.25, confidence=0.9)
    sampled = clone(plain).fit(X, y, sample_weight=weight, weight_kind="sampling")
    assert sampled.gaps_["distributional_parity"] <= 0.25
    with pytest.raises(DataError):
        fair.fit(X, y, sample_weight=weight, weight_kind="guessed")


@pytest.mark.slow
def test_safe_fits_hold():
    """What is returned violates the gap no more often than it may, at a distance that binds."""
    rng = np.random.default_rng(0)
    n, gap, wrong, returned = 1_200, 0.25, 0, 0
    for _ in range(30):
        sex = rng.integers(0, 2, n)
        X = np.column_stack([rng.normal(sex, 1.0), sex])
        y = X[:, 0] + rng.normal(0, 0.5, n)
        model = FrozenEstimator(LinearRegression().fit(X[:100], y[:100]))
        fair = FairRegressor(
            model, happiness="distributional_parity", gap=gap, confidence=0.9, random_state=0,
            sensitive_features=lambda X: X[:, 1],
        )  # fmt: skip
        try:
            fair.fit(X, y)
        except CertificateError:
            continue
        returned += 1
        others = rng.integers(0, 2, 40_000)
        amounts = fair.predict(np.column_stack([rng.normal(others, 1.0), others]))
        grid = np.linspace(amounts.min(), amounts.max(), 500)
        shares = [np.searchsorted(np.sort(amounts[others == z]), grid) / (others == z).sum() for z in (0, 1)]
        wrong += np.abs(shares[0] - shares[1]).max() > gap + 0.01
    assert returned >= 10
    assert wrong <= 1  # of 18 that are returned; without its margin, most would be


# ---------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"happiness": "statistical_parity"}, HappinessError, "distributional_parity"),
        ({"happiness": "equalized_odds"}, HappinessError, "distributional_parity"),
        ({"happiness": None}, HappinessError, "No happiness"),
        ({"policy": "label"}, DataError, "predicts none"),
        ({"policy": "soft-label"}, DataError, "predicts none"),
        ({"loss": "error"}, DataError, "squared"),
        ({"loss": "changes"}, DataError, "nearly all"),
        ({"loss": "quantile:2"}, DataError, "between 0 and 1"),
        ({"loss": "quantile:x"}, DataError, "between 0 and 1"),
        ({"loss": [[0, 1], [1, 0]]}, DataError, "amounts"),
        ({"decisions": 1}, DataError, "pair of bounds"),
        ({"decisions": [5.0]}, DataError, "more than two"),
        ({"decisions": [5.0, 5, 6]}, DataError, "twice"),
        ({"decisions": [5.0, float("nan")]}, DataError, "no finite number"),
        ({"decisions": [5.0, float("inf")]}, DataError, "no finite number"),
        ({"decisions": ["a", "b"]}, DataError, "no finite number"),
        ({"decisions": [1, True]}, DataError, "no finite number"),
        ({"decisions": (5.0, 1.0)}, DataError, "smaller one first"),
        ({"decisions": 2.5}, DataError, "pair of bounds"),
        ({"decisions": 10**6}, DataError, "pair of bounds"),
        ({"decisions": list(range(5_000))}, DataError, "at most 4,096"),
        ({"gap": -1.0}, ConstraintError, "gap"),
        ({"happiness": "distributional_parity", "gap": 5.0}, ConstraintError, "no gap of it is larger"),
        ({"constraints": [WorseOff(0.0)]}, ConstraintError, "WorseOff"),
        (
            {"constraints": [Gap("distributional_parity", 0.1, between="sex")]},
            ConstraintError,
            "distributions",
        ),
        ({"sees_group": "no"}, DataError, "True or False"),
        ({"change_cost": 0.1}, DataError, "change_cost=0.1 is not available for amounts"),
    ],
)
def test_settings_refused(hours, settings, error, words):
    """What makes no sense of amounts is refused with a remedy, before anything is fitted."""
    X, y, model = hours
    with pytest.raises(error, match=words):
        fair_of(model, **settings).fit(X[1_000:], y[1_000:])


def test_lengths_are_called_by_their_name(hours):
    """Of a column of another length it is said which one it is."""
    X, y, model = hours
    with pytest.raises(DataError, match="There are 2 amounts of the baseline for 2000 rows"):
        fair_of(model).fit(X[1_000:], y[1_000:], baseline=[1.0, 2.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "ten"])
def test_labels_refused(hours, value):
    """A label that is no finite number is named with its row."""
    X, y, model = hours
    labels = y[1_000:].astype(object)
    labels[7] = value
    with pytest.raises(DataError, match="label y of row 7"):
        fair_of(model).fit(X[1_000:], labels)


def test_rows_of_weight_0_may_hold_anything(hours):
    """Weight 0 is the row absent, whatever its label."""
    X, y, model = hours
    labels, weight = y[1_000:].copy(), np.ones(2_000)
    labels[7], weight[7] = np.nan, 0.0
    fair = fair_of(model).fit(X[1_000:], labels, sample_weight=weight)
    without = np.delete(np.arange(1_000, 3_000), 7)
    same = fair_of(model).fit(X.iloc[without], y[without])
    assert fair.predict(X[:10]) == pytest.approx(same.predict(X[:10]), rel=1e-12)


def test_predictions_refused(hours):
    """A model that predicts what is no finite number is named with the row."""
    X, y, _ = hours

    class Broken(LinearRegression):
        def predict(self, X):
            found = super().predict(X)
            found[3] = np.nan
            return found

    model = FrozenEstimator(Broken().fit(X[["skill"]], y))
    with pytest.raises(DataError, match="prediction of row 3"):
        fair_of(model).fit(X, y)


def test_a_baseline_that_is_refused(hours):
    """Its amounts may be any finite number, and nothing else."""
    X, y, model = hours
    baseline = np.full(len(X), 35.0)
    baseline[4] = np.inf
    with pytest.raises(DataError, match="the baseline of row 4"):
        fair_of(model).fit(X, y, baseline=baseline)
    with pytest.raises(DataError, match="rows"):
        fair_of(model).fit(X, y, baseline=baseline[:-1])


def test_the_other_estimator_is_named(hours):
    """A classifier is for FairClassifier, and a regressor for FairRegressor; each says so."""
    X, y, model = hours
    classifier = LogisticRegression().fit(X[["skill"]], X["sex"])
    for wrapped in (FrozenEstimator(classifier), LogisticRegression()):
        with pytest.raises(DataError, match="FairClassifier"):
            fair_of(wrapped).fit(X, y)
    for wrapped in (model, RandomForestRegressor()):
        with pytest.raises(ValueError, match="FairRegressor"):
            FairClassifier(wrapped, gap=0.0, happiness="decision", sensitive_features="sex").fit(
                X, (y > 40).astype(int)
            )


def test_groups_refused(hours):
    """A group that was never fitted, or is missing, is an error that names it."""
    X, y, model = hours
    fair = fair_of(model).fit(X[1_000:], y[1_000:])
    strange = X[:3].assign(sex=["f", "x", "m"])
    with pytest.raises(GroupError, match="'x'"):
        fair.predict(strange)
    with pytest.raises(GroupError):
        fair_of(model).fit(X.assign(sex=[None, *X["sex"][1:]]), y)
    with pytest.raises(DataError, match="missing_labels"):
        fair_of(model, missing_labels="at_random").fit(X, y)


def test_one_row(hours):
    """One person shows nothing, and the error says so in scikit-learn's words."""
    X, y, model = hours
    with pytest.raises(DataError, match="n_samples=1"):
        fair_of(model).fit(X[:1], y[:1])
