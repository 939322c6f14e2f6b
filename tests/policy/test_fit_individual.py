"""Individual policies of tables that are not in memory: the passes find what the search in memory finds."""

import numpy as np
import pytest
from functions import ENGINES, as_pandas, assert_individual, people

from felicific import Floor, Happiness, Individual, solve
from felicific.exceptions import BatchWarning, DataError, HappinessError, InfeasibleError

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
    return solve(table, policy=Individual(calibration), **ask)


def asked(**changes):
    return {
        "score": {k: f"p{k}" for k in range(3)},
        "y": "y",
        "sensitive_features": "z",
        "happiness": HAPPINESS[:1],
        "gap": 0.05,
        "random_state": 0,
    } | changes


@pytest.mark.parametrize("weight", [None, "w"])
def test_without_calibration_the_policies_are_the_same(table, lay, weight):
    """With the model's own probabilities the mixture, its loss and its gap are those in memory, weights included."""
    ask = asked(
        calibration="none", sample_weight=weight, happiness=HAPPINESS, gap={"loan": 0.05, "hours": 1.0}
    )
    found = individually(lay(table), **ask)
    expected = individually(as_pandas(table), **ask)
    assert found.loss == pytest.approx(expected.loss, rel=1e-7)
    assert found.gaps == pytest.approx(expected.gaps, abs=1e-7)
    assert found.search.plug_in_optimum == pytest.approx(expected.search.plug_in_optimum, rel=1e-7)
    assert found.search.stopped == expected.search.stopped == "duality gap closed"
    assert found.salt == expected.salt


@pytest.mark.parametrize("calibration", ["isotonic", "sigmoid"])
def test_calibration_in_bins_is_close_to_that_of_rows(table, lay, calibration):
    """Curves fitted to 4096 bins are within a bin of those fitted to rows; the gap holds on the rows themselves."""
    ask = asked(calibration=calibration)
    found, expected = individually(lay(table), **ask), individually(as_pandas(table), **ask)
    grid = np.linspace(0.05, 0.95, 50)
    for mine, theirs in zip(found.calibration.knots, expected.calibration.knots, strict=True):
        for (x, y), (u, v) in zip(mine, theirs, strict=True):
            assert np.abs(np.interp(grid, x, y) - np.interp(grid, u, v)).max() < 0.02
    assert found.gap <= 0.05 + 1e-9
    assert found.loss == pytest.approx(expected.loss, abs=0.01)


def test_what_is_stated_is_what_the_policy_does(table, lay):
    """Loss and group means of the policy's decisions about the same rows are the stated ones."""
    policy = individually(lay(table), **asked())
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    decisions = policy.probabilities(score, table["z"], as_pandas(table))
    wrong = (decisions * (np.arange(3) != table["y"][:, None])).sum(axis=1)
    assert wrong.mean() == pytest.approx(policy.loss, rel=1e-9)
    funding = (decisions * np.arange(3)).sum(axis=1) * table["loan"] / 1e4
    for group, mean in policy.means["loan"].items():
        assert funding[table["z"] == group].mean() == pytest.approx(mean, rel=1e-9)


def test_from_scores_to_an_audit(table, lay):
    """Fitted, applied and audited on one engine, the policy is the one in memory, bit for bit in its decisions."""
    assert_individual(lay, table)


def test_constraints_and_conflicts(table, lay):
    """Floors are met, and what cannot be met is explained, as in memory."""
    policy = individually(lay(table), **asked(constraints=[Floor("loan", at_least="baseline")], gap=1.0))
    assert min(policy.means["loan"].values()) > 0
    with pytest.raises(InfeasibleError):
        individually(lay(table), **asked(constraints=[Floor("loan", at_least=1e6)]))


def test_passes_are_few(table, lay, monkeypatch):
    """Columns that are known together are asked for in one pass over the table."""
    from felicific._tables.engine import BatchEngine

    passes = []
    original = BatchEngine.fold
    monkeypatch.setattr(BatchEngine, "fold", lambda self, *args: passes.append(1) or original(self, *args))
    policy = individually(lay(table), **asked())
    assert 3 < len(passes) < policy.search.passes


def test_other_functions_and_bad_rows(table, lay, refuses):
    """Functions that are no expressions work with a notice; bad rows are named before any search."""
    odd = Happiness(lambda decision, x: [decision * v / 1e4 for v in x["loan"]], name="odd")
    with pytest.warns(BatchWarning, match="'odd'"):
        found = individually(lay(table), **asked(happiness=odd))
    assert found.loss == pytest.approx(individually(lay(table), **asked()).loss, rel=1e-7)
    loan = table["loan"].copy()
    loan[700] = np.nan
    with refuses(DataError, "'loan'", "1 of 900 rows", "row 700"):
        individually(lay(table | {"loan": loan}), **asked())
    with refuses(DataError, "calibration='perfect'"):
        individually(lay(table), **asked(calibration="perfect"))


def test_bad_rows_in_memory_are_named_too(table, refuses):
    """In memory, as on an engine, nothing is searched before every row was looked at."""

    def broken(name, value, dtype=None):
        column = table[name].astype(dtype or table[name].dtype)
        column[700] = value
        return as_pandas(table | {name: column})

    with refuses(DataError, "The label is missing in 1 of 900 rows", "row 700"):
        individually(broken("y", None, object), **asked())
    with refuses(DataError, "label 7", "row 700"):
        individually(broken("y", 7), **asked())
    with refuses(DataError, "'p1'", "1 of 900 rows"):
        individually(broken("p1", np.nan), **asked())
    bounded = Happiness(HAPPINESS[0].function, name="loan", bounds=(0, 2))
    with refuses(HappinessError, "'loan'", "bounds 0 to 2", "row"):
        individually(as_pandas(table), **asked(happiness=bounded))
