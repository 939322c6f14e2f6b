"""The list of types that skops has to be told: with it every kind of fitted classifier can be read."""

import inspect
from functools import cache
from importlib import import_module

import numpy as np
import pytest
import skops.io
from conftest import make_people
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from skops.io.exceptions import UntrustedTypesFoundException

from felicific import (
    Budget,
    Exploration,
    FairClassifier,
    Floor,
    Gap,
    Happiness,
    Individual,
    MissingLabels,
    Ratio,
    Score,
    WorseOff,
)
from felicific._problem.criteria import CRITERIA
from felicific._program.signal_names import SIGNALS
from felicific.skops import TRUSTED

CASH = {"happiness": {"cash": "decision * loan"}, "gap": 5.0}
SAFE = {"happiness": "statistical_parity", "gap": 0.4, "confidence": 0.8}
TRUTH = {"happiness": "decision * loan * y", "gap": 20.0, "loss": "decision * (1 - y)"}

SETTINGS = {
    **{f"criterion {name}": {"happiness": name, "gap": 0.5} for name in CRITERIA},
    **{f"kind {name}": {**CASH, "policy": name} for name in (*SIGNALS, "individual")},
    "score of some cells": {**CASH, "policy": Score(20)},
    "not calibrated": {**CASH, "policy": Individual("none")},
    "blind individual": {**CASH, "policy": "individual", "sees_group": False, "gap": 20.0},
    "blind score": {**CASH, "policy": "score", "sees_group": False, "gap": 20.0},
    **{
        f"{type(one).__name__} {policy}": {**CASH, "constraints": [one], "policy": policy}
        for one in (
            Gap("cash", 3.0, min_people=10),  # of other people than gap=, and so beside it
            Ratio("cash", 0.5),
            Floor("cash", 1.0),
            Budget("cash", 40.0),
            WorseOff(0.5),
            Exploration(0.02),
        )
        for policy in ("score", "individual")
    },
    "named happiness": {
        **CASH,
        "happiness": Happiness("decision * loan", name="c", unit="$", bounds=(0, 50)),
    },
    "loss of changes": {**CASH, "loss": "changes"},
    "loss by a matrix": {**CASH, "loss": np.array([[0.0, 1.0], [2.0, 0.0]])},
    "loss by an expression": {**CASH, "policy": "individual", "loss": "decision * (1 - y)"},
    "safe": SAFE,
    "safe individual": {**SAFE, "policy": "individual"},
    "safe ratio": {**SAFE, "gap": None, "constraints": [Ratio("statistical_parity", 0.3)]},
    "missing, at random": {**TRUTH, "missing_labels": "at_random"},
    "missing, individual": {**TRUTH, "missing_labels": "at_random", "policy": "individual"},
    "missing, hidden reasons": {**TRUTH, "missing_labels": MissingLabels(max_odds_ratio=2.0)},
    "rounded": {**CASH, "policy": Score(randomize=False)},
    "columns": {**CASH, "model": "p"},
    "decision function": {**CASH, "model": LinearSVC(random_state=0)},
    "several groups": {**CASH, "sensitive_features": ["group", "region"], "gap": 20.0},
}


def fitted(people, **settings):
    """A classifier around a frozen model; where labels may be missing, a third of them are."""
    y = people.y
    if "missing_labels" in settings:
        y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, np.nan, y)
    settings = {"sensitive_features": "group", "key": "id", "random_state": 0, **settings}
    X = people.table("pandas")
    model, features = settings.pop("model", LogisticRegression()), X[["score", "wealth", "loan"]]
    if isinstance(model, str):
        X = X.assign(**{model: LogisticRegression().fit(features, people.y).predict_proba(features)[:, 1]})
        return FairClassifier(model, **settings).fit(X, y), X
    return FairClassifier(FrozenEstimator(model.fit(features, people.y)), **settings).fit(X, y), X


@cache
def file_of(name):
    """A classifier with these settings, its table, and its file."""
    fair, X = fitted(make_people(), **SETTINGS[name])
    return fair, X, skops.io.dumps(fair)


def read(fair):
    return skops.io.loads(skops.io.dumps(fair), trusted=TRUSTED)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_fitted_classifier_needs_another_type(name):
    """Whatever is asked for, the file has no type that is not in the list, and what is read decides alike."""
    fair, X, data = file_of(name)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(TRUSTED)
    again = skops.io.loads(data, trusted=TRUSTED)
    assert (again.predict(X) == fair.predict(X)).all()
    assert again.policy_.sha256 == fair.policy_.sha256


@pytest.mark.parametrize("policy", ["score", "individual"])
def test_what_was_recalibrated_or_moved_needs_none_either(people, policy):
    """Neither recalibration nor another place on the frontier brings in a type."""
    fair, X = fitted(people, **CASH, policy=policy)
    for other in (fair.recalibrate(X[:300]), fair.at(gap=3.0)):
        assert (read(other).predict(X) == other.predict(X)).all()


def test_every_type_of_the_list_is_needed():
    """Each is a class that exists and occurs in some file: nothing is trusted in advance."""
    needed = {name for setting in SETTINGS for name in skops.io.get_untrusted_types(data=file_of(setting)[2])}
    assert set(TRUSTED) == needed
    for name in TRUSTED:
        module, _, kind = name.rpartition(".")
        assert inspect.isclass(getattr(import_module(module), kind))


def worth(decision, x):
    return decision * x["loan"]


def test_a_function_of_ones_own_is_not_trusted(people):
    """A function is named by whoever reads it, or the file is refused."""
    fair, X = fitted(people, happiness=worth, gap=5.0)
    data = skops.io.dumps(fair)
    (own,) = set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED)
    assert own.endswith(".worth")
    with pytest.raises(UntrustedTypesFoundException, match="worth"):
        skops.io.loads(data, trusted=TRUSTED)
    assert (skops.io.loads(data, trusted=[*TRUSTED, own]).predict(X) == fair.predict(X)).all()
