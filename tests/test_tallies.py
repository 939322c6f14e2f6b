"""Audits of tables that are not in memory: the intervals of the same people in memory."""

import numpy as np
import pytest
from functions import as_duckdb, as_lazy, as_pandas, people, write_parquet

from felicific import Happiness, audit, compare
from felicific.exceptions import BatchWarning, DataError, GroupError, HappinessError

HAPPINESS = [
    Happiness(lambda decision, x: decision * x["loan"], name="loan", unit="$"),
    Happiness(lambda decision, x: 1e9 + decision * x["hours"], name="offset"),
    Happiness(lambda decision, x: (decision > 0) * (x["hours"] > 40), among=lambda x, y: y > 0, name="rate"),
    Happiness(lambda decision, y: abs(decision - y), name="distance"),
    Happiness(lambda decision, x: decision * x["member"], bounds=(0, 2), name="bounded"),
]


@pytest.fixture(scope="module")
def table():
    table = people(4000)
    rng = np.random.default_rng(5)
    return table | {"decided": np.where(rng.random(4000) < 0.7, table["y"], rng.integers(0, 3, 4000))}


ENGINES = {
    "polars": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": lambda table, folder: write_parquet(table, folder / "people.parquet"),
}


@pytest.fixture(params=ENGINES)
def lay(request, tmp_path):
    return lambda table: ENGINES[request.param](table, tmp_path)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Several batches, so that parts are combined."""
    monkeypatch.setattr("felicific.engines.BATCH_ROWS", 700)
    monkeypatch.setattr("felicific.tallies.BATCH", 300)


def both(table, lay, method="t", weight=None, **changes):
    """The audit by names on an engine, and by arrays in memory."""
    options = {"happiness": HAPPINESS, "method": method, "gap": 1.0} | changes
    found = audit("decided", lay(table), "y", sensitive_features="z", sample_weight=weight and "w", **options)
    frame = as_pandas(table)
    weights = None if weight is None else table["w"]
    expected = audit(
        table["decided"], frame, table["y"], sensitive_features="z", sample_weight=weights, **options
    )
    return found, expected


def assert_alike(found, expected):
    """Means agree to twelve digits and limits to nine, gaps of large numbers too; words and counts exactly."""
    assert found.rows == expected.rows
    assert found.groups == expected.groups
    assert found.notes == expected.notes
    for one, other in zip(found.components, expected.components, strict=True):
        pairs = [(one.means[g], other.means[g]) for g in found.groups] + [(one.gap, other.gap)]
        for mine, theirs in pairs:
            assert mine.method == theirs.method
            assert mine.n == pytest.approx(theirs.n, rel=1e-12)
            assert mine.estimate == pytest.approx(theirs.estimate, rel=1e-12, abs=1e-12)
            assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)
        assert one.test.p_value == pytest.approx(other.test.p_value, rel=1e-9, abs=1e-9)
    assert found.loss.estimate == pytest.approx(expected.loss.estimate, rel=1e-12)
    assert found.loss.high == pytest.approx(expected.loss.high, rel=1e-9)
    assert found.loss.method == expected.loss.method


@pytest.mark.parametrize("weights", [None, "frequency", "sampling"])
def test_large_sample_intervals_are_those_in_memory(table, lay, weights):
    """Means, gaps, tests and the loss agree with the same people in memory, with weights of either kind."""
    found, expected = both(table, lay, weight=weights, weights=weights or "frequency")
    assert_alike(found, expected)


def test_rates_are_exact_and_skewness_is_corrected(table, lay):
    """Clopper-Pearson for what is 0 or 1, the corrected interval for what is skewed, chosen as in memory."""
    skewed = Happiness(lambda decision, x: decision * x["loan"] ** 6, name="skewed")
    rate = Happiness(lambda decision: float(decision == 1), name="approved")
    found, expected = both(table, lay, "auto", happiness=[skewed, rate, HAPPINESS[2]])
    assert_alike(found, expected)
    assert found.components[0].corrected.keys() == expected.components[0].corrected.keys() != set()


def test_known_bounds_give_bernstein_intervals(table, lay):
    """With bounds the interval is empirical Bernstein; betting goes person by person and is refused."""
    found, expected = both(table, lay, "bernstein", happiness=HAPPINESS[4])
    assert_alike(found, expected)
    automatic = audit("decided", lay(table), "y", sensitive_features="z", happiness=HAPPINESS[4])
    assert "Bernstein" in next(iter(automatic.components[0].means.values())).method
    with pytest.raises(DataError, match="person after the other"):
        audit("decided", lay(table), "y", sensitive_features="z", happiness=HAPPINESS[4], method="betting")


def test_without_labels(table, lay):
    """Decisions without labels are audited without a loss; a happiness that needs them says so."""
    found = audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[0])
    expected = audit(table["decided"], as_pandas(table), sensitive_features="z", happiness=HAPPINESS[0])
    assert found.loss is None
    assert found.gaps == pytest.approx(expected.gaps, rel=1e-9)
    with pytest.raises(HappinessError, match="label y"):
        audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[3])


def test_other_functions_run_on_batches(table, lay):
    """A function that is no expression is audited too, with a notice."""
    odd = Happiness(lambda decision, x: [decision * v for v in x["loan"]], name="odd")
    with pytest.warns(BatchWarning, match="'odd'"):
        found = audit("decided", lay(table), "y", sensitive_features="z", happiness=odd)
    expected = audit(table["decided"], as_pandas(table), table["y"], sensitive_features="z", happiness=odd)
    assert found.gaps == pytest.approx(expected.gaps, rel=1e-9)


def test_bad_input(table, lay, refuses):
    """Missing values, unknown decisions and names, single groups and comparisons are clear errors."""
    ask = {"sensitive_features": "z", "happiness": HAPPINESS[0]}
    loan = table["loan"].copy()
    loan[[5, 3000]] = np.nan
    with refuses(DataError, "'loan'", "2 of 4000 rows", "rows 5, 3000"):
        audit("decided", lay(table | {"loan": loan}), "y", **ask)
    with refuses(DataError, "decision 2", "row", "[0, 1]"):
        audit("decided", lay(table), "y", classes=[0, 1], **ask)
    with refuses(DataError, "'nope'"):
        audit("nope", lay(table), "y", **ask)
    with refuses(DataError, "ndarray", remedy="Name the column"):
        audit(table["decided"], lay(table), "y", **ask)
    with refuses(GroupError, "one group"):
        audit("decided", lay(table | {"z": np.full(4000, "a", dtype=object)}), "y", **ask)
    with refuses(HappinessError, "'bounded'", "bounds", "row"):
        narrow = Happiness(HAPPINESS[4].function, bounds=(0, 1), name="bounded")
        audit("decided", lay(table), "y", sensitive_features="z", happiness=narrow)
    found = audit("decided", lay(table), "y", **ask)
    with refuses(DataError, "person by person", remedy="Collect"):
        compare(found, found)
