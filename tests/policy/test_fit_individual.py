"""Individual policies: what is stated is what they do, on any engine, and bad rows are named before any search."""

import numpy as np
import pytest
from functions import ENGINES, as_pandas, assert_individual, people
from helpers import solved

from felicific import Floor, Happiness, Individual
from felicific.exceptions import DataError, HappinessError, InfeasibleError

HAPPINESS = [
    Happiness(lambda decision, x: decision * x["loan"] / 1e4, name="loan"),
    Happiness(lambda decision, x, y: (y == decision) * x["hours"], name="hours"),
]


@pytest.fixture(params=ENGINES)
def lay(request, tmp_path):
    return lambda table: ENGINES[request.param](table, tmp_path)


@pytest.fixture(scope="module")
def table():
    return people(900)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Several batches, so that sums of parts are added."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 400)


def individually(table, calibration="isotonic", **ask):
    return solved(table, policy=Individual(calibration), **ask)


def asked(**changes):
    return {
        "score": {k: f"p{k}" for k in range(3)},
        "y": "y",
        "sensitive_features": "z",
        "happiness": HAPPINESS[:1],
        "gap": 0.05,
        "random_state": 0,
    } | changes


def test_what_is_stated_is_what_the_policy_does(table):
    """Loss and group means of the policy's decisions about the same rows are the stated ones."""
    policy = individually(as_pandas(table), **asked())
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    decisions = policy.probabilities(score, table["z"], as_pandas(table))
    wrong = (decisions * (np.arange(3) != table["y"][:, None])).sum(axis=1)
    assert wrong.mean() == pytest.approx(policy.loss, rel=1e-9)
    funding = (decisions * np.arange(3)).sum(axis=1) * table["loan"] / 1e4
    for group, mean in policy.means["loan"].items():
        assert funding[table["z"] == group].mean() == pytest.approx(mean, rel=1e-9)


def test_from_scores_to_an_audit(table, lay):
    """Applied and audited on an engine, it decides bit for bit as in memory."""
    assert_individual(lay, table)


def test_constraints_and_conflicts(table):
    """Floors are met, and what cannot be met is explained."""
    policy = individually(
        as_pandas(table), **asked(constraints=[Floor("loan", at_least="baseline")], gap=1.0)
    )
    assert min(policy.means["loan"].values()) > 0
    with pytest.raises(InfeasibleError):
        individually(as_pandas(table), **asked(constraints=[Floor("loan", at_least=1e6)]))


def test_bad_rows_are_named(table, refuses):
    """Nothing is searched before every row was looked at."""

    def broken(name, value, dtype=None):
        column = table[name].astype(dtype or table[name].dtype)
        column[700] = value
        return as_pandas(table | {name: column})

    with refuses(DataError, "calibration='perfect'"):
        individually(as_pandas(table), **asked(calibration="perfect"))
    with refuses(DataError, "The label is missing in 1 of 900 rows", "row 700"):
        individually(broken("y", None, object), **asked())
    with refuses(DataError, "label 7", "row 700"):
        individually(broken("y", 7), **asked())
    with refuses(DataError, "'p1'", "1 of 900 rows"):
        individually(broken("p1", np.nan), **asked())
    bounded = Happiness(HAPPINESS[0].function, name="loan", bounds=(0, 2))
    with refuses(HappinessError, "'loan'", "bounds 0 to 2", "row"):
        individually(as_pandas(table), **asked(happiness=bounded))
