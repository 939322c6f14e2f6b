"""Individual amounts against the nearest amounts of a naive program, seeing the group and not."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles_amounts import nearest_amounts
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator

from felicific import Budget, FairRegressor, Floor, Individual, Policy, Ratio
from felicific._people.people import People
from felicific._policy.numeric_fit import fit_amounts
from felicific._policy.numeric_individual import IndividualAmountPolicy
from felicific._problem.numeric import NumericProblem
from felicific.exceptions import (
    ConstraintError,
    DataError,
    FelicificError,
    HappinessError,
    InfeasibleError,
    PolicyFileError,
)

SALT = "0" * 32


def world(n=400, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(n_groups).repeat(2), rng.integers(0, n_groups, n - 2 * n_groups)])
    prediction = rng.normal(10.0 + 1.5 * group, 2.0)
    x = {"loan": rng.lognormal(1.0, 0.6, n) * (1 + 0.3 * group), "months": rng.integers(1, 9, n)}
    return x, prediction, prediction + rng.normal(0.0, 1.0, n), group


def people_of(x, prediction, y, group, weight=None, baseline=None, group_proba=None):
    table = pd.DataFrame(x)
    return People.predicted_amounts(
        table,
        prediction=prediction,
        y=y,
        group=group,
        weight=weight,
        baseline=baseline,
        group_proba=group_proba,
    )


def fitted(people, happiness, gap=None, calibration="none", **asked):
    problem = NumericProblem.finding(happiness, gap=gap, **asked)
    return fit_amounts(problem, people, calibration=calibration, salt=SALT, individual=True)


def given_by(fit, people):
    return fit.policy.decided(
        people.prediction, people.codes, people.x, people.group_proba, people.decided_baseline
    )


def mean_row(slope, group, z, weight):
    """The row of a group's mean happiness, of slope times the amount."""
    own = (group == z) * weight
    return own * slope / own.sum()


def gap_rows(slopes, widths, group, weight):
    rows, limits = [], []
    for slope, width in zip(slopes, widths, strict=True):
        means = [mean_row(slope, group, z, weight) for z in range(group.max() + 1)]
        for one in range(len(means)):
            for other in range(len(means)):
                if one != other:
                    rows.append(means[one] - means[other])
                    limits.append(width)
    return rows, limits


def within(rows, limits, n, low, high):
    """With rows that keep every amount within the bounds."""
    return np.vstack([*rows, np.eye(n), -np.eye(n)]), np.concatenate(
        [limits, np.full(n, high), np.full(n, -low)]
    )


def added(amounts, prediction, weight=None):
    return float(np.average((amounts - prediction) ** 2, weights=weight))


# ---------------------------------------------------------------------------------------------------------
# The naive program


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(8, 40),
    n_groups=st.integers(2, 3),
    widths=st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=1, max_size=2),
    margin=st.sampled_from([0.2, 1.0, 10.0]),
    weighted=st.booleans(),
)
@example(seed=7824, n=18, n_groups=3, widths=[0.0], margin=0.2, weighted=False)
def test_gaps_as_the_naive_program(seed, n, n_groups, widths, margin, weighted):
    """Gaps of several measures, weights and bounds: the least squared error, and the same conflicts."""
    x, prediction, y, group = world(n, n_groups, seed)
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float) if weighted else np.ones(n)
    low, high = prediction.min() - margin, prediction.max() + margin
    slopes = [x["loan"], np.ones(n)][: len(widths)]
    happiness = dict(zip(["loan", "amount"], ["decision * loan", "decision"], strict=True))
    happiness = {name: happiness[name] for name in list(happiness)[: len(widths)]}
    rows, limits = within(*gap_rows(slopes, widths, group, weight), n, low, high)
    people = people_of(x, prediction, y, group, weight)
    asked = dict(zip(happiness, widths, strict=True))
    try:
        best = added(nearest_amounts(prediction, rows, limits, weight), prediction, weight)
    except ValueError:
        with pytest.raises(InfeasibleError):
            fitted(people, happiness, asked, decisions=(low, high))
        return
    fit = fitted(people, happiness, asked, decisions=(low, high))
    amounts = given_by(fit, people)
    assert (rows @ amounts <= limits + 1e-7 * (1 + np.abs(rows).sum(axis=1) * np.abs(amounts).max())).all()
    assert added(amounts, prediction, weight) == pytest.approx(best, rel=1e-5, abs=1e-8)


def test_floors_budgets_and_ratios_as_the_naive_program():
    """Requirements other than gaps are met at the least squared error too."""
    x, prediction, y, group = world(60, 3, 4)
    n, weight, low, high = 60, np.ones(60), 0.0, 30.0
    loan, everybody = x["loan"], np.full(60, 1 / 60)
    means = [mean_row(loan, group, z, weight) for z in range(3)]
    rows = [-means[0], everybody]
    limits = [-1.3 * float(means[0] @ prediction), 9.5]
    rows += [0.7 * means[a] - means[b] for a in range(3) for b in range(3) if a != b]
    limits += [0.0] * 6
    all_rows, all_limits = within(rows, limits, n, low, high)
    best = nearest_amounts(prediction, all_rows, all_limits)
    people = people_of(x, prediction, y, group)
    fit = fitted(
        people,
        "decision * loan",
        decisions=(low, high),
        constraints=[
            Floor("decision * loan", at_least=-limits[0], groups=[0]),
            Budget("decision", at_most=9.5),
            Ratio("decision * loan", at_least=0.7),
        ],
    )
    amounts = given_by(fit, people)
    assert added(amounts, prediction) == pytest.approx(added(best, prediction), rel=1e-6)
    assert amounts == pytest.approx(best, abs=1e-4)


# ---------------------------------------------------------------------------------------------------------
# Closed forms and invariances


def test_person_formula():
    """Nobody is moved but by their group's weight times what one more unit is worth to them, within the bounds."""
    x, prediction, y, group = world(500)
    people = people_of(x, prediction, y, group)
    fit = fitted(people, "decision * loan", 1.0, decisions=(5.0, 15.0))
    assert fit.policy.weights.shape == (2, 1)
    moved = prediction + fit.policy.weights[group, 0] * x["loan"]
    assert given_by(fit, people) == pytest.approx(np.clip(moved, 5.0, 15.0), abs=1e-12)
    assert fit.policy.gaps["decision * loan"] == pytest.approx(1.0, abs=1e-8)


def test_units():
    """Happiness in other units changes no amount."""
    x, prediction, y, group = world(300, 3)
    people = people_of(x, prediction, y, group)
    one = fitted(people, "decision * loan", 2.0)
    other = fitted(people, "decision * loan * 1000", 2_000.0)
    assert given_by(one, people) == pytest.approx(given_by(other, people), abs=1e-6)


def test_order_and_weights():
    """The order of rows changes nothing, and weight 2 is the row twice."""
    x, prediction, y, group = world(200)
    weight = np.random.default_rng(1).integers(1, 4, 200)
    order = np.random.default_rng(2).permutation(200)
    twice = np.repeat(np.arange(200), weight)
    fits = []
    for rows, own in ((np.arange(200), weight), (order, weight[order]), (twice, None)):
        people = people_of({k: v[rows] for k, v in x.items()}, prediction[rows], y[rows], group[rows], own)
        fits.append(fitted(people, "decision * loan", 1.0, calibration="affine"))
    for other in fits[1:]:
        assert other.policy.loss == pytest.approx(fits[0].policy.loss, rel=1e-9)
        assert other.policy.weights == pytest.approx(fits[0].policy.weights, rel=1e-5)


# ---------------------------------------------------------------------------------------------------------
# Not seeing the group


def test_sure_beliefs_are_seeing():
    """Who is sure of every group decides as if it were seen."""
    x, prediction, y, group = world(400)
    sure = np.eye(2)[group]
    blind = people_of(x, prediction, y, group, group_proba=sure)
    asked = {"gap": 0.5, "decisions": (0.0, 30.0)}
    one = fitted(blind, "decision * loan", sees_group=False, **asked)
    other = fitted(people_of(x, prediction, y, group), "decision * loan", **asked)
    assert given_by(one, blind) == pytest.approx(given_by(other, blind), abs=1e-5)


def test_blind_formula():
    """Of two groups and the mean amount, d = m + lambda (pi_1 / p_1 - pi_0 / p_0), where beliefs are right."""
    x, prediction, y, _ = world(2_000)
    chance = np.clip(0.5 + 0.1 * (prediction - 11.0), 0.05, 0.95)
    # In every cell of equal chances as many are of each group as these say: weights make it so.
    score = np.column_stack([1 - chance, chance])
    both = np.tile(np.arange(2), 2_000)
    rows = np.repeat(np.arange(2_000), 2)
    weight = score.ravel()
    people = people_of(
        {k: v[rows] for k, v in x.items()}, prediction[rows], y[rows], both, weight, group_proba=score[rows]
    )
    fit = fitted(people, "decision", 0.0, sees_group=False, decisions=(-100.0, 100.0))
    share = np.bincount(both, weight) / weight.sum()
    direction = chance / share[1] - (1 - chance) / share[0]
    moved = given_by(fit, people)[::2] - prediction
    along = float(moved @ direction / (direction @ direction))
    assert moved == pytest.approx(along * direction, abs=1e-5)
    assert fit.policy.gap == pytest.approx(0.0, abs=1e-7)


# ---------------------------------------------------------------------------------------------------------
# Through the estimator


class Column(RegressorMixin, BaseEstimator):
    """A model whose prediction is a column."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(X["f"], dtype=float)


def frame(n=600, n_groups=2, seed=0):
    x, prediction, y, group = world(n, n_groups, seed)
    table = pd.DataFrame(x).assign(f=prediction, sex=np.array(["f", "m", "d"])[group])
    return table, y


def regressor(happiness, **settings):
    model = Column().fit(None, None)
    given = {"sensitive_features": "sex", "random_state": 0} | settings
    return FairRegressor(FrozenEstimator(model), happiness=happiness, **given)


def test_predict_and_arrays_agree():
    """The estimator and its policy give the same amounts; gaps and loss are what the amounts do."""
    X, y = frame()
    fair = regressor("decision * loan", gap=0.5).fit(X, y)
    assert isinstance(fair.policy_, IndividualAmountPolicy)
    amounts = fair.predict(X)
    assert fair.policy_.amounts(X["f"], X["sex"], x=X) == pytest.approx(amounts, abs=1e-12)
    paid = (amounts * X["loan"]).groupby(X["sex"]).mean()
    assert paid.max() - paid.min() == pytest.approx(fair.gaps_["decision * loan"], abs=1e-9)
    assert fair.loss_ == pytest.approx(np.mean((amounts - y) ** 2), rel=1e-12)


def test_auto():
    """Happiness of x is for individual amounts; of the amount alone, of labels and of ranks it is for lines."""
    X, y = frame()
    for happiness, sees_x in (
        ("decision * loan", True),
        ("decision", False),
        ("distributional_parity", False),
        ("decision * y", False),
    ):
        assert regressor(happiness, gap=1.0).fit(X, y).policy_.sees_x is sees_x
    assert regressor("decision", gap=1.0, sees_group=False).fit(X, y).policy_.sees_x


def test_blind_estimator():
    """Models of the group are fitted in folds, or chances are columns; new people need no group."""
    X, y = frame()
    learnt = regressor("decision", gap=1.0, sees_group=False).fit(X, y)
    assert learnt.gaps_["decision"] <= 1.0 + 1e-7
    assert learnt.predict(X.drop(columns="sex")).shape == (600,)
    likely = learnt.group_model_.predict_proba(X[["loan", "months", "f"]])
    codes = {group: f"p_{group}" for group in learnt.groups_}
    named = X.assign(**{codes[group]: likely[:, k] for k, group in enumerate(learnt.group_model_.classes_)})
    told = regressor("decision", gap=1.0, sees_group=False, policy=Individual(group_proba=codes)).fit(
        named, y
    )
    assert told.gaps_["decision"] <= 1.0 + 1e-7
    amounts = told.policy_.amounts(named["f"], x=named, group_proba=named[list(codes.values())].to_numpy())
    assert amounts == pytest.approx(told.predict(named.drop(columns="sex")), abs=1e-12)


def test_frontier_at_and_recalibrate():
    """Tighter gaps cost more, another gap is solved anew, and the same people again give the same amounts."""
    X, y = frame()
    fair = regressor("decision * loan", gap=2.0).fit(X, y)
    assert (np.diff(fair.frontier_.loss) <= 1e-9).all()
    assert fair.at(gap=0.5).gaps_["decision * loan"] == pytest.approx(0.5, abs=1e-7)
    again = fair.recalibrate(X)
    assert again.predict(X) == pytest.approx(fair.predict(X), abs=1e-6)
    assert again.loss_ == pytest.approx(fair.loss_, rel=5e-2)
    assert again.at(gap=0.5).loss_ == pytest.approx(fair.at(gap=0.5).loss_, rel=5e-2)


def test_safe_fit():
    """Individual amounts can be shown on people held out."""
    X, y = frame(4_000)
    fair = regressor("decision * loan", gap=8.0, confidence=0.9).fit(X, y)
    assert fair.policy_.sees_x
    assert fair.gaps_["decision * loan"] <= 8.0


def test_baseline_of_new_people():
    """A happiness of the baseline's amounts reads their column of new people; an array at the fit is refused."""
    X, y = frame()
    X["now"] = X["f"] + 0.5
    fair = regressor("(decision - baseline) * loan", gap=0.0, baseline="now", policy="individual").fit(X, y)
    amounts = fair.predict(X)
    gained = ((amounts - X["now"]) * X["loan"]).groupby(X["sex"]).mean()
    assert np.ptp(gained) == pytest.approx(0.0, abs=1e-6)
    gains = regressor("(decision - baseline) * loan", gap=0.0, policy="individual")
    with pytest.raises(DataError, match="Name their column"):
        gains.fit(X, y, baseline=X["now"].to_numpy())


# ---------------------------------------------------------------------------------------------------------
# Files and words


def test_file():
    """A file gives the same amounts, and holds no person's data."""
    X, y = frame(100, 3)
    fair = regressor("decision * loan", gap=1.0).fit(X, y)
    text = fair.policy_.to_json()
    policy = IndividualAmountPolicy.from_json(text)
    assert policy.amounts(X["f"], X["sex"], x=X) == pytest.approx(fair.predict(X), abs=1e-12)
    assert policy.to_json() == text
    assert len(text) < 20_000
    assert policy.sentences() == fair.policy_.sentences()
    assert isinstance(Policy.from_json(text), IndividualAmountPolicy)


def test_file_of_a_function():
    """A Python function cannot be stored: loading takes it again, by name."""
    X, y = frame(100)

    def interest(decision, x):
        return decision * x["loan"]

    fair = regressor(interest, gap=1.0).fit(X, y)
    text = fair.policy_.to_json()
    with pytest.raises(PolicyFileError, match="happiness="):
        IndividualAmountPolicy.from_json(text)
    policy = IndividualAmountPolicy.from_json(text, happiness=interest)
    assert policy.amounts(X["f"], X["sex"], x=X) == pytest.approx(fair.predict(X), abs=1e-12)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("weights", [[1.0]]),
        ("calibration", []),
        ("policy", {"kind": "amounts"}),
        ("functions", []),
    ],
)
def test_broken_files(part, value):
    """A file whose parts do not fit is refused."""
    X, y = frame(100)
    content = json.loads(regressor("decision * loan", gap=1.0).fit(X, y).policy_.to_json())
    content[part] = value
    with pytest.raises(PolicyFileError):
        IndividualAmountPolicy.read(content)


def test_words():
    """Sentences say the weights, the bounds, and that the group is inferred where it is not seen."""
    X, y = frame()
    seen = regressor("decision * loan", gap=1.0).fit(X, y)
    assert any(
        "times what one more unit adds to their 'decision * loan'" in one for one in seen.policy_.rules()
    )
    blind = regressor("decision", gap=1.0, sees_group=False).fit(X, y)
    assert "infers the group from x" in blind.policy_.rules()[0]
    assert "how likely the person is of group 'm'" in str(blind.policy_)


# ---------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"happiness": "distributional_parity"}, ConstraintError, "policy='score'"),
        ({"happiness": "decision", "loss": "absolute"}, DataError, "loss='squared'"),
        ({"happiness": "decision", "decisions": [5, 10, 15]}, DataError, r"decisions=\(low, high\)"),
        ({"happiness": "decision * y"}, HappinessError, "looks at the label"),
        ({"happiness": "(decision >= 10) * loan"}, HappinessError, "no straight line"),
        (
            {"happiness": "decision", "policy": Individual(group_proba={"f": "loan", "m": "months"})},
            DataError,
            "no use",
        ),
        ({"happiness": "decision", "policy": Individual("sigmoid")}, DataError, "calibration"),
    ],
)
def test_refused(settings, error, words):
    """What an individual policy of amounts cannot do is refused by name, with a remedy."""
    X, y = frame(100)
    with pytest.raises(error, match=words):
        regressor(**({"policy": "individual", "gap": 1.0} | settings)).fit(X, y)


def test_wrong_use():
    """Amounts need x, groups or chances, and as many of each."""
    X, y = frame(100)
    policy = regressor("decision * loan", gap=1.0).fit(X, y).policy_
    for given_too in ({}, {"x": X.head(3)}, {"x": X, "baseline": [1.0]}):
        with pytest.raises(FelicificError):
            policy.amounts(X["f"], X["sex"], **given_too)
    with pytest.raises(FelicificError, match="x="):
        policy.given(X["f"].to_numpy(), np.zeros(100, dtype=int))
    with pytest.raises(DataError, match="x=table"):
        policy.apply(X, predicted="f", sensitive_features="sex")
    with pytest.raises(DataError, match="SQL"):
        policy.to_sql(predicted="f", sensitive_features="sex")
    blind = regressor("decision", gap=1.0, sees_group=False).fit(X, y).policy_
    with pytest.raises(FelicificError, match="group_proba"):
        blind.amounts(X["f"], x=X)


def test_without_people():
    """A stored fit cannot be moved: the people are not in it."""
    x, prediction, y, group = world(100)
    fit = fitted(people_of(x, prediction, y, group), "decision * loan", 1.0)
    with pytest.raises(DataError, match="Fit it again"):
        replace(fit, people=None).moved(0.5)
