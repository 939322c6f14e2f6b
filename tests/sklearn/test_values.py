"""FairClassifier around models without probabilities: all as with scores, in the words of a decision function."""

import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from helpers import fair_classifier
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, cross_val_predict
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from felicific import Exploration, FairClassifier, MissingLabels, Policy, Score, aggregate, audit, load
from felicific._people.people import People
from felicific.cli import run
from felicific.exceptions import ConstraintError, DataError, PolicyFileError

FEATURES = ["age", "income"]


def make_people(n=900, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    table = pd.DataFrame(
        {"age": rng.normal(size=n), "income": rng.normal(size=n) + 0.6 * (sex == "m"), "sex": sex}
    )
    table["id"] = np.arange(n)
    latent = table.age + table.income + rng.logistic(size=n)
    return table, np.asarray(np.digitize(latent, np.linspace(0.3, 2.0, classes - 1)))


X, Y = make_people()
TRAIN, FIT, TEST = (slice(i, i + 300) for i in (0, 300, 600))


class Said(ClassifierMixin, BaseEstimator):
    """A model whose decision function is a function of a column of probabilities; or that gives these themselves."""

    def __init__(self, map_=None, boundary=0.5):
        self.map_, self.boundary = map_, boundary

    def fit(self, X, y=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (np.asarray(X["p"]) > self.boundary).astype(int)

    def __getattr__(self, name):
        if name == "decision_function" and vars(self).get("map_") is not None:
            return lambda X: self.map_(np.asarray(X["p"]))
        if name == "predict_proba" and vars(self).get("map_") is None:
            return lambda X: np.column_stack([1 - X["p"], X["p"]])
        raise AttributeError(name)


def fitted(model, table=X, y=Y, part=FIT, **settings):
    settings = {"happiness": "statistical_parity", "gap": 0.0, "sensitive_features": "sex"} | settings
    settings |= {"random_state": 0, "key": "id"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few people cannot hold such a gap on others
        return fair_classifier(model, **settings).fit(table[part], y[part])


def svc():
    return FrozenEstimator(LinearSVC(random_state=0).fit(X[FEATURES][TRAIN], Y[TRAIN]))


@pytest.fixture(scope="module")
def fair():
    return fitted(svc(), gap=0.05)


# ---------------------------------------------------------------------------------------------------------
# The right policy


def with_scores(n, distinct, seed=1):
    """People with a column of probabilities of which so many are different, none of them one half."""
    rng = np.random.default_rng(seed)
    table, y = make_people(n, seed)
    places = (2 * np.arange(distinct) + 1) / (2 * distinct + 1)
    table["p"] = places[rng.integers(0, distinct, n)] * 0.98 + 0.013
    y = (rng.random(n) < np.clip(table.p + 0.1 * (table.sex == "m"), 0, 1)).astype(int)
    return table, y


MAPS = [lambda p: p - 0.5, lambda p: np.log(p / (1 - p)), lambda p: (p - 0.5) ** 3, lambda p: 1e5 * (p - 0.5)]


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("happiness", ["statistical_parity", "equalized_odds"])
def test_the_same_cells_give_the_same_policy_as_probabilities(map_, happiness):
    """Where every score has a cell of its own, what the model calls it does not matter.

    Probabilities, loss, gaps, decisions drawn.
    """
    table, y = with_scores(800, 100)
    own, other = (
        fitted(FrozenEstimator(Said(one).fit(None)), table, y, slice(None), gap=0.02, happiness=happiness)
        for one in (map_, None)
    )
    assert own.policy_.of_values
    assert not other.policy_.of_values
    assert own.loss_ == pytest.approx(other.loss_, abs=1e-12)
    assert own.gaps_ == pytest.approx(other.gaps_, abs=1e-9)
    assert own.policy_.change_cost == other.policy_.change_cost
    assert np.allclose(own.predict_proba(table), other.predict_proba(table), atol=1e-9)
    assert own.impact_["baseline"].loss == other.impact_["baseline"].loss


def test_a_rising_function_changes_nothing():
    """Of more different values than cells too: cells go by their order alone."""
    table, y = with_scores(3000, 2900)
    one, *others = (
        fitted(FrozenEstimator(Said(map_).fit(None)), table, y, slice(None), gap=0.02) for map_ in MAPS
    )
    assert one.policy_.q.shape[1] == 256
    for other in others:
        assert np.array_equal(one.policy_.q, other.policy_.q)
        assert np.array_equal(one.predict_proba(table), other.predict_proba(table))
        assert (one.loss_, one.gaps_) == (other.loss_, other.gaps_)


def naive_parity(values, group, y):
    """Least error of lotteries over thresholds, one for each group, with equal shares of people above them."""
    cost, share, owner = [], [], []
    for g in np.unique(group):
        for cut in [-np.inf, *np.unique(values)]:
            decided = (values > cut)[group == g]
            cost.append((decided != y[group == g]).sum() / len(y))
            share.append(decided.mean())
            owner.append(g)
    owner, share = np.array(owner), np.array(share)
    first, second = np.unique(group)
    equal = np.where(owner == first, share, -share)
    rows = np.array([equal, owner == first, owner == second], dtype=float)
    return linprog(cost, A_eq=rows, b_eq=[0.0, 1.0, 1.0]).fun


@pytest.mark.parametrize("model", [LinearSVC(random_state=0), RidgeClassifier(), Perceptron(random_state=0)])
def test_the_loss_is_that_of_the_best_thresholds(model):
    """At no gap, with a cell for every value, it is what a naive program over all thresholds finds."""
    model.fit(X[FEATURES][TRAIN], Y[TRAIN])
    part = slice(300, 540)
    own = fitted(FrozenEstimator(model), part=part, change_cost=0)
    values = model.decision_function(X[FEATURES][part])
    assert len(np.unique(values)) == 240  # each has a cell of its own
    assert own.loss_ == pytest.approx(naive_parity(values, X.sex[part].to_numpy(), Y[part]), abs=1e-9)
    assert max(own.gaps_.values()) < 1e-9
    label = fitted(FrozenEstimator(model), part=part, change_cost=0, policy="label")
    assert own.loss_ <= label.loss_ + 1e-9


def test_stated_numbers_are_those_of_the_decisions(fair):
    """Loss and gap on the fitted people are what the probabilities do to them."""
    probabilities, group, y = fair.predict_proba(X[FIT])[:, 1], X.sex[FIT], Y[FIT]
    assert fair.loss_ == pytest.approx(np.where(y == 1, 1 - probabilities, probabilities).mean(), abs=1e-9)
    means = [probabilities[group == g].mean() for g in ("f", "m")]
    assert max(fair.gaps_.values()) == pytest.approx(abs(means[0] - means[1]), abs=1e-9)
    assert max(fair.gaps_.values()) <= 0.05 + 1e-9
    baseline = fair.impact_["baseline"].loss
    assert baseline == pytest.approx((fair.estimator_.predict(X[FEATURES][FIT]) != y).mean())


# ---------------------------------------------------------------------------------------------------------
# Which models

PIPELINE = make_pipeline(make_column_transformer((StandardScaler(), FEATURES)), LinearSVC(random_state=0))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(random_state=0),
        SGDClassifier(loss="hinge", random_state=0),
        SVC(),
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 10.0]}, cv=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_default_takes_the_decision_function(model):
    """Of any model that has one and no probabilities, fitted or not; the printed object says so."""
    numbers = X.assign(sex=(X.sex == "m") * 1).drop(columns="id")
    before = clone(model)
    for one in (FrozenEstimator(clone(model).fit(numbers[TRAIN], Y[TRAIN])), model):
        own = FairClassifier(
            one, happiness="statistical_parity", gap=0.1, sensitive_features="sex", random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own.fit(numbers[FIT], Y[FIT])
        assert own.policy_.kind == "score"
        assert own.policy_.of_values
        assert "chosen because the model has a decision function and no predict_proba" in repr(own)
        assert any("with a decision function for 1 above" in text for text in own.policy_.sentences())
        assert "score for" not in str(own.policy_)
        assert max(own.gaps_.values()) <= 0.1 + 1e-9
        assert own.predict_proba(numbers[TEST]).sum(axis=1) == pytest.approx(1.0)
        again = clone(own)
        assert not hasattr(again, "policy_")
    assert repr(model) == repr(before)


def test_a_cross_fit_asks_models_that_have_not_seen_the_rows():
    """The values are those of cross_val_predict."""
    own = fitted(PIPELINE, policy="score", change_cost=0)
    values = cross_val_predict(PIPELINE, X[FIT], Y[FIT], cv=5, method="decision_function")
    probabilities = own.policy_.probabilities(values, group=X.sex[FIT])[:, 1]
    assert own.loss_ == pytest.approx(
        np.where(Y[FIT] == 1, 1 - probabilities, probabilities).mean(), abs=1e-9
    )
    assert own.policy_.basis.out_of_fold


def test_values_given_as_probabilities_name_the_way():
    """Sums need the same cells everywhere, so they take no values; the error says who does."""
    table = {"v": [-1.0, 2.0] * 4, "y": [0, 1] * 4, "sex": ["f", "f", "m", "m"] * 2}
    with pytest.raises(
        DataError, match="Of a decision function, FairClassifier around the model makes a policy"
    ):
        aggregate(table, score="v", y="y", sensitive_features="sex", happiness="decision")


def test_more_classes_take_the_label():
    """Cells of one decision function decide between two; who asks for them anyway is told what to do."""
    table, y = make_people(classes=3)
    model = FrozenEstimator(LinearSVC(random_state=0).fit(table[FEATURES][TRAIN], y[TRAIN]))
    own = fitted(model, table, y)
    assert own.policy_.kind == "label"
    assert "because the model has no predict_proba and there are 3 classes" in repr(own)
    with pytest.raises(
        DataError, match=r"LinearSVC has no predict_proba, and there are 3 classes.*Calibrated"
    ):
        fitted(model, table, y, policy="score")


class Plain(ClassifierMixin, BaseEstimator):
    """Neither probabilities nor a decision function."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


def test_a_model_with_neither_takes_the_label():
    """As before; a score is refused."""
    model = FrozenEstimator(Plain().fit(X[FEATURES].to_numpy(), Y))
    own = fitted(model)
    assert own.policy_.kind == "label"
    assert "because the model has no predict_proba." in repr(own)
    with pytest.raises(DataError, match="Plain has no predict_proba") as caught:
        fitted(model, policy="score")
    assert "decision function" not in str(caught.value)


@pytest.mark.parametrize("policy", ["individual", "soft-label"])
def test_what_needs_probabilities_refuses(policy):
    """Values are never taken for probabilities; calibrated they are some."""
    with pytest.raises(DataError, match=r"LinearSVC has no predict_proba.*CalibratedClassifierCV.*'score'"):
        fitted(svc(), policy=policy)
    calibrated = CalibratedClassifierCV(LinearSVC(random_state=0)).fit(X[FEATURES][TRAIN], Y[TRAIN])
    assert fitted(FrozenEstimator(calibrated), policy=policy).policy_.kind == policy


def test_missing_labels_are_not_supposed_by_values():
    """Where labels may be missing the default stays the label, and cells of a decision function are refused."""
    y = Y.astype(float)
    y[310:340] = np.nan
    said = {"y": y, "missing_labels": MissingLabels(label_proba=LogisticRegression())}
    assert fitted(svc(), **said).policy_.kind == "label"
    with pytest.raises(DataError, match=r"labels may be missing.*CalibratedClassifierCV"):
        fitted(svc(), policy="score", **said)


def test_explore_speaks_of_scores_and_these_are_none():
    """A range of scores means nothing on a decision function; without one everybody keeps the chance."""
    with pytest.raises(ConstraintError, match="sees a decision function, whose values are no scores"):
        fitted(svc(), gap=0.2, constraints=[Exploration(0.05, scores=(0.2, 0.4))])
    own = fitted(svc(), gap=0.2, constraints=[Exploration(0.05)])
    assert own.predict_proba(X[TEST])[:, 1].min() >= 0.05 - 1e-9


def test_the_models_own_threshold_is_the_boundary():
    """The baseline of a model that turns elsewhere than at zero turns there too."""
    fixed = FixedThresholdClassifier(
        LinearSVC(random_state=0), threshold=0.4, response_method="decision_function"
    )
    fixed.fit(X[FEATURES][TRAIN], Y[TRAIN])
    own = fitted(FrozenEstimator(fixed), gap=1.0)
    assert own.policy_.signal.boundary == pytest.approx(0.4, abs=0.02)
    assert own.impact_["baseline"].loss == pytest.approx((fixed.predict(X[FEATURES][FIT]) != Y[FIT]).mean())
    values = fixed.decision_function(X[FEATURES][TEST])
    people = People.of(X[TEST], own._fitted.problem, group=X.sex[TEST].to_numpy(), score=values)
    assert np.array_equal(own.policy_.reading(people).predictions(), fixed.predict(X[FEATURES][TEST]))


def test_a_decision_function_of_two_columns_is_refused():
    """Which of them would be compared with a cut nobody said."""

    class Two(Plain):
        def decision_function(self, X):
            return np.zeros((len(X), 2))

    with pytest.raises(DataError, match=r"decision_function has shape \(300, 2\).*policy='label'"):
        fitted(FrozenEstimator(Two().fit(X[FEATURES].to_numpy(), Y)))


def test_nearest_centroid_in_this_version():
    """Whatever a model offers here, the fit works."""
    own = fitted(FrozenEstimator(NearestCentroid().fit(X[FEATURES][TRAIN], Y[TRAIN])), gap=0.2)
    assert own.policy_.kind in ("score", "label")


# ---------------------------------------------------------------------------------------------------------
# Values of all kinds


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_refused_by_row(bad):
    """At the fit, when deciding and in a report, with the number of the row in the table that was passed."""
    table, y = with_scores(60, 20)
    model = FrozenEstimator(Said(lambda p: np.where(p > 2, bad, p - 0.5)).fit(None))
    own = fitted(model, table, y, slice(None))
    wrong = table.assign(p=table.p.where(np.arange(60) != 17, 3.0))
    for call in (
        lambda: fitted(model, wrong, y, slice(None)),
        lambda: own.predict(wrong),
        lambda: own.report(wrong, y),
        lambda: own.recalibrate(wrong),
        lambda: own.policy_.probabilities(np.where(np.arange(60) == 17, bad, 0.1), group=table.sex),
    ):
        with pytest.raises(DataError, match=r"decision function of row 17 is (nan|-?inf)"):
            call()


def test_constants_and_few_values_work():
    """One value for all, and two: the policy is one of labels, and says so."""
    table, y = with_scores(200, 30)
    for map_ in (lambda p: 0 * p + 1.0, lambda p: 0 * p - 1.0, lambda p: 0 * p, lambda p: np.sign(p - 0.5)):
        one = map_(np.array([0.1, 0.9]))
        model = Said(map_, boundary=0.5 if one[0] != one[1] else -one[0])  # above which all, or none, are
        own = fitted(FrozenEstimator(model.fit(None)), table, y, slice(None))
        assert max(own.gaps_.values()) < 1e-9
        assert any("is the label policy" in text for text in own.policy_.sentences())
        assert set(own.predict(table)) <= {0, 1}


def test_new_values_beyond_the_fitted_ones_are_decided_as_the_nearest(fair):
    """However far out, a person is treated as those at that end."""
    values = fair.estimator_.decision_function(X[FEATURES][FIT])
    ends = np.array([values.min(), -1e9, -1.7e308, values.max(), 1e9, 1.7e308])
    probabilities = fair.policy_.probabilities(ends, group=["f"] * 6)
    assert (probabilities[:3] == probabilities[0]).all()
    assert (probabilities[3:] == probabilities[3]).all()


def test_the_number_of_cells_is_kept_and_rules_may_fall():
    """Score(bins=...) and monotone=False mean what they mean for scores."""
    few = fitted(svc(), policy=Score(bins=4))
    assert few.policy_.q.shape[1] == 4
    free = fitted(svc(), policy=Score(bins=40, monotone=False), change_cost=0)
    bound = fitted(svc(), policy=Score(bins=40), change_cost=0)
    assert free.loss_ <= bound.loss_ + 1e-9
    assert (np.diff(bound.policy_.q[:, :, 1], axis=1) >= -1e-9).all()
    assert (np.diff(free.policy_.q[:, :, 1], axis=1) < -1e-3).any()


def test_weights_are_repeats():
    """Weight 2 is the row twice, weight 0 the row absent."""
    weight = np.random.default_rng(5).integers(0, 3, 300).astype(float)
    rows = np.repeat(np.arange(300, 600), weight.astype(int))
    settings = {
        "happiness": "statistical_parity",
        "gap": 0.05,
        "sensitive_features": "sex",
        "random_state": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighed = FairClassifier(svc(), change_cost=0, **settings).fit(X[FIT], Y[FIT], sample_weight=weight)
        repeated = FairClassifier(svc(), change_cost=0, **settings).fit(X.iloc[rows], Y[rows])
    assert weighed.policy_.signal == repeated.policy_.signal
    assert weighed.loss_ == pytest.approx(repeated.loss_, abs=1e-12)
    assert np.allclose(weighed.predict_proba(X[TEST]), repeated.predict_proba(X[TEST]), atol=1e-9)


# ---------------------------------------------------------------------------------------------------------
# Everything else of a classifier


def test_frontier_recalibration_certificate_verdict_and_report(fair):
    """Nothing else changes for whoever uses them."""
    assert fair.frontier_.at(gap=0.05).loss == pytest.approx(fair.frontier_.at(gap=0.05).loss)
    moved = fair.at(gap=0.2)
    assert moved.loss_ <= fair.frontier_.policies[0].loss + 1e-9
    assert moved.policy_.signal == fair.policy_.signal
    same = fair.recalibrate(X[FIT])
    assert np.allclose(same.predict_proba(X[TEST]), fair.predict_proba(X[TEST]), atol=1e-6)
    fresh = fair.recalibrate(X[TEST])
    probabilities = fresh.predict_proba(X[TEST])[:, 1]
    means = [probabilities[X.sex[TEST] == g].mean() for g in ("f", "m")]
    assert abs(means[0] - means[1]) <= 0.05 + 1e-9
    assert fair.certificate_.sentence
    report = fair.report(X[TEST], Y[TEST])
    assert report.verdict.headline
    page = report.to_html()
    assert "the model&#39;s decision function" in page
    assert "which decision function" in page
    for word in ("which score", "with a score", "score for", "Score for"):
        assert word not in page
    policy = report.to_dict()["policy"]
    assert policy["boundary"] == 0.5
    assert [value for _, value in policy["values"]][1] == 0.0
    found = fair.frontier_on(X[TEST], Y[TEST], confidence=0.95)
    values = fair.estimator_.decision_function(X[FEATURES][TEST])
    same = fair.frontier_.band(
        values, X[TEST], Y[TEST], happiness="statistical_parity", sensitive_features="sex"
    )
    assert np.array_equal(found.means, same.means)
    with pytest.raises(DataError, match="FairClassifier alone cuts"):
        aggregate(X[TEST], policy=fair.policy_.signal, score=values, y=Y[TEST], sensitive_features="sex",
                happiness="decision")  # fmt: skip
    assert fair.frontier_on(X[TEST], Y[TEST]) is not None


def test_the_person_of_the_report_has_a_value_that_such_people_have():
    """The worked person lies between two cuts, and everybody there is decided as it says."""
    table, y = make_people(3000, 7)
    model = LinearSVC(random_state=0).fit(X[FEATURES], Y)
    own = fitted(FrozenEstimator(model), table, y, slice(0, 1500))
    held, values = table[1500:], model.decision_function(table[FEATURES][1500:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = own.report(held, y[1500:]).to_dict()
    place = next(place for place in content["positions"] if place["proposed"])
    person = place["person"]
    groups = [group["name"] for group in content["groups"]]
    low = -np.inf if person["low"] is None else person["low"]
    high = np.inf if person["high"] is None else person["high"]
    there = (values > low) & (values <= high) & (held.sex == groups[person["group"]]).to_numpy()
    assert there.sum() == person["people"]
    baseline = model.predict(held[FEATURES])[there]
    assert (baseline == person["baseline"]).mean() > 0.5
    assert own.predict_proba(held)[there, 1].mean() == pytest.approx(person["chance"], abs=1e-9)


def test_a_safe_fit_cuts_on_its_own_part():
    """With confidence= the cells are of the people fitted on, and the promise of those held out."""
    table, y = make_people(4000, 3)
    model = FrozenEstimator(LinearSVC(random_state=0).fit(X[FEATURES], Y))
    own = FairClassifier(
        model,
        happiness="statistical_parity",
        gap=0.15,
        sensitive_features="sex",
        random_state=0,
        confidence=0.9,
    ).fit(table, y)
    assert own.policy_.of_values
    assert own.certificate_.basis == "held-out test"
    assert own.certificate_.gaps
    assert own.verdict_.kind


def test_deciding_without_the_group():
    """One table for all; what it costs is said."""
    own = fitted(svc(), gap=0.1, sees_group=False)
    assert own.policy_.kind == "score"
    assert own.policy_.of_values
    assert own.cost_of_blindness_ >= -1e-9
    probabilities = own.predict_proba(X[FIT].drop(columns="sex"))[:, 1]
    means = [probabilities[X.sex[FIT] == g].mean() for g in ("f", "m")]
    assert abs(means[0] - means[1]) <= 0.1 + 1e-9


def test_rounded_decisions_state_what_they_do():
    """randomize=False rounds, and loss and gaps are those of the rounded decisions."""
    own = fitted(svc(), randomize=False)
    decided = own.predict(X[FIT])
    assert own.loss_ == pytest.approx((decided != Y[FIT]).mean())
    assert own.share_randomized_ == 0.0


# ---------------------------------------------------------------------------------------------------------
# Kept and deployed


def read_skops(own):
    data = skops.io.dumps(own)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


@pytest.mark.parametrize("again", [lambda own: pickle.loads(pickle.dumps(own)), read_skops])
def test_a_stored_classifier_decides_the_same(fair, again):
    """Pickle and skops."""
    stored = again(fair)
    assert np.array_equal(stored.predict(X[TEST]), fair.predict(X[TEST]))
    assert stored.policy_.sentences() == fair.policy_.sentences()


def test_an_explanation_speaks_of_values(fair, table):
    """It decides as predict does, in the values' own unit, and beyond each cut the chances are those that it says."""
    policy, rows = fair.policy_, X[TEST][:60]
    decided, values = fair.predict(rows, key="id"), fair.estimator_.decision_function(rows[FEATURES])
    met = set()
    for i, value in enumerate(values):
        found = fair.explain(rows.iloc[i], key=rows["id"].iloc[i])
        assert found.decision == decided[i]
        assert found.score == pytest.approx(value, rel=1e-12)  # a model adds up one row otherwise than many
        for cut in found.cuts:
            assert cut.distance == abs(found.score - cut.at)
            beyond = cut.at if cut.side == "below" else np.nextafter(cut.at, np.inf)
            probabilities = policy.probabilities(np.array([beyond]), rows["sex"].iloc[i : i + 1])[0]
            assert list(cut.probabilities.values()) == probabilities.tolist()
            assert probabilities.tolist() != list(found.probabilities.values())
            met.add(cut.side)
        assert f"the decision function for 1, which is {value:.6g}" in str(found)
    assert met == {"below", "above"}


@pytest.fixture(scope="module")
def table(fair):
    """People with the values of the decision function in a column."""
    found = X[TEST].assign(y=Y[TEST], value=fair.estimator_.decision_function(X[FEATURES][TEST]))
    return found.reset_index(drop=True)


def test_a_loaded_policy_decides_the_same(fair, table, tmp_path):
    """The file keeps the cuts; arrays, tables, DuckDB and lazy tables give one set of decisions."""
    path = tmp_path / "policy.json"
    fair.policy_.resalted().save(path)
    policy = load(path)
    assert policy.to_json() == path.read_text()
    probabilities = policy.probabilities(table.value, group=table.sex)
    assert np.array_equal(probabilities, fair.predict_proba(X[TEST]))
    assert np.array_equal(probabilities, policy.probabilities(table[["value"]].to_numpy(), group=table.sex))
    named = {"score": "value", "sensitive_features": "sex", "key": "id"}
    decided = policy.apply(table, with_proba=True, **named)
    assert np.array_equal(decided["proba"], probabilities[:, 1])
    assert np.array_equal(decided["decision"], policy.decide(table.value, table.sex, key=table.id))
    sql = policy.to_sql(**named)
    found = _with(table).sql(f"SELECT *, {sql} AS decision FROM people")
    assert np.array_equal(found.df()["decision"], decided["decision"])
    lazy = policy.apply(pl.from_pandas(table).lazy(), with_proba=True, **named).collect()
    assert np.array_equal(lazy["decision"].to_numpy(), decided["decision"])
    assert np.array_equal(lazy["proba"].to_numpy(), decided["proba"])
    for cut in policy.signal.values[::20]:  # at a cut, and just above it
        near = np.array([cut, np.nextafter(cut, np.inf)])
        frame = pd.DataFrame({"value": near, "sex": "f", "id": [1, 2]})
        wanted = policy.apply(frame, **named)["decision"]
        assert np.array_equal(duckdb.sql(f"SELECT {sql} AS d FROM frame").df()["d"], wanted)


def _with(frame):
    connection = duckdb.connect()
    connection.register("people", frame)
    return connection


@pytest.mark.parametrize("bad", ["NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE"])
def test_a_database_refuses_what_is_no_value(fair, bad):
    """Nobody without a value falls into a cell."""
    sql = fair.policy_.to_sql(score="value", sensitive_features="sex", key="id")
    with pytest.raises(duckdb.Error, match=r"decision function is (missing, infinite|of another type)"):
        duckdb.sql(f"SELECT {sql} FROM (SELECT {bad} AS value, 'f' AS sex, 7 AS id)").fetchall()


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])
def test_a_policy_is_audited_by_its_values(fair, table, engine):
    """audit(policy, ..., score=column of the decision function) gives what the chances do, in memory and elsewhere."""
    place = {
        "memory": lambda: table,
        "polars": lambda: pl.from_pandas(table).lazy(),
        "duckdb": lambda: _with(table).table("people"),
    }[engine]()
    found = audit(
        fair.policy_, place, y="y", score="value", sensitive_features="sex", happiness="statistical_parity"
    )
    probabilities = fair.predict_proba(X[TEST])[:, 1]
    for group in ("f", "m"):
        wanted = probabilities[(X.sex[TEST] == group).to_numpy()].mean()
        assert found.measures[0].means[group].estimate == pytest.approx(wanted)
    with pytest.raises(DataError, match="decision function, which is one number"):
        audit(
            fair.policy_,
            place,
            y="y",
            score={0: "age", 1: "value"},
            sensitive_features="sex",
            happiness="decision",
        )


def test_probabilities_of_both_classes_are_refused(fair, table):
    """Where one number is compared with cuts, two are a mistake."""
    with pytest.raises(DataError, match="decision_function returns for two classes"):
        fair.policy_.probabilities(np.full((3, 2), 0.5), group=["f"] * 3)
    for call in (fair.policy_.apply, lambda table, **named: fair.policy_.to_sql(**named)):
        with pytest.raises(DataError, match="decision function, which is one number"):
            call(table, score={0: "age", 1: "value"}, sensitive_features="sex", key="id")
        with pytest.raises(DataError, match="sees the decision function"):
            call(table, predicted="y", sensitive_features="sex", key="id")


def test_a_file_that_was_tampered_with_is_refused(fair):
    """Cuts that do not increase, or do not fit the table of probabilities."""
    text = fair.policy_.to_json()
    first = fair.policy_.signal.values[0]
    assert repr(first) in text
    with pytest.raises(PolicyFileError):
        Policy.from_json(text.replace(repr(first), "99999.0"))


def test_the_command_line_applies_and_audits_it(fair, table, tmp_path, capsys):
    """--score names the column of the decision function."""
    path, people = tmp_path / "policy.json", tmp_path / "people.csv"
    fair.policy_.resalted().save(path)
    table.to_csv(people, index=False)
    named = ["--score", "value", "--group", "sex"]
    out = tmp_path / "decided.csv"
    assert run(["apply", str(path), str(people), *named, "--key", "id", "--out", str(out)]) == 0, (
        capsys.readouterr()
    )
    wanted = load(path).apply(table, score="value", sensitive_features="sex", key="id")["decision"]
    assert np.array_equal(pd.read_csv(out)["decision"], wanted)
    said = ["--label", "y", "--happiness", "demographic_parity", "--policy-file", str(path)]
    assert run(["audit", str(people), *named, *said]) == 0, capsys.readouterr()
    assert "selection rate" in capsys.readouterr().out


def test_a_chart_speaks_of_the_values(fair):
    """Its axis is the decision function, its steps are at the cuts."""
    from felicific import plots

    content = plots.policy_steps(fair.policy_)
    values = set(fair.policy_.signal.values)
    assert content["boundary"] == 0.0
    inner = {row["low"] for row in content["rows"]} | {row["high"] for row in content["rows"]}
    assert inner <= values | set(content["ends"])
    assert "decision function for 1" in plots.policy(fair.policy_).to_json()
