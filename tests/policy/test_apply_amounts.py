"""Amounts as a column of any table, and as SQL: the very amounts of Python, draws included."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest
import sqlglot
from amount_policies import CASES, amount_case, find_amounts, naive_amounts, random_line
from functions import as_duckdb, as_pandas
from hypothesis import given
from hypothesis import strategies as st
from naive_sql import Query, SqlError
from policy.test_apply import TABLES
from warehouses import HOSTILE

from felicific._policy.lines import Line, along
from felicific._tables.dialect import DIALECTS
from felicific.exceptions import DataError, GroupError


def amounts_in(table):
    """The column of amounts in the order of the rows, as floats."""
    for method in ("collect", "to_arrow_table", "compute", "to_table"):
        if hasattr(table, method):
            table = getattr(table, method)()
    column = table["decision"]
    listed = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    key = table["id"].to_pylist() if hasattr(table["id"], "to_pylist") else list(table["id"])
    return np.array(listed, dtype=float)[np.argsort(np.array(key, dtype=np.int64))]


def run_in_duckdb(columns, text):
    """What an expression gives to every row of a table."""
    asked = as_duckdb(columns).query("people", f"SELECT {text} FROM people ORDER BY row")
    return [amount for (amount,) in asked.fetchall()]


# ---------------------------------------------------------------------------------------------------------
# The same amounts


@pytest.mark.parametrize("place", TABLES)
@pytest.mark.parametrize("name", CASES)
def test_the_column_is_what_a_loop_over_knots_gives(name, place, tmp_path):
    """Every table and engine gets the amounts of the naive loop to the last bit: at knots, beside them, by lottery."""
    found = find_amounts(name)
    table = TABLES[place](found.table, tmp_path)
    assert np.array_equal(amounts_in(found.policy.apply(table, **found.roles)), naive_amounts(found))


@pytest.mark.parametrize("name", CASES)
def test_dask_gives_the_same_in_every_partition(name):
    """Partition by partition, as floats also where nobody was computed yet."""
    dask = pytest.importorskip("dask.dataframe")
    found = find_amounts(name)
    table = dask.from_pandas(as_pandas(found.table), npartitions=3)
    given_to = found.policy.apply(table, **found.roles)
    assert given_to.dtypes["decision"] == np.float64
    assert np.array_equal(amounts_in(given_to), naive_amounts(found))


@pytest.mark.parametrize("name", CASES)
def test_arrays_get_what_the_column_gets(name):
    """``amounts`` of arrays is the same policy."""
    found = find_amounts(name)
    if isinstance(found.roles.get("sensitive_features"), list):
        return
    group = found.table.get(found.roles.get("sensitive_features"))
    key = found.table.get(found.roles.get("key"))
    assert np.array_equal(found.policy.amounts(found.table["f"], group, key), naive_amounts(found))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_gives_the_same(name, dialect):
    """The text parses in its dialect; DuckDB runs it, and warehouses compute it as documented, to the last bit."""
    found = find_amounts(name)
    text = found.policy.to_sql(dialect, **found.roles)
    expected = naive_amounts(found)
    if dialect == "duckdb":
        assert run_in_duckdb(found.used(), text) == expected
        return
    read = {"databricks": "databricks", "spark": "spark"}.get(dialect, dialect)
    assert sqlglot.parse_one(f"SELECT {text} FROM people", dialect=read)
    if dialect not in ("snowflake", "bigquery", "databricks"):
        return
    used = {name: np.asarray(column).tolist() for name, column in found.used().items()}
    types = {name: type(next(v for v in values if v is not None)) for name, values in used.items()}
    people = [dict(zip(used, row, strict=True)) for row in zip(*used.values(), strict=True)]
    query = Query(text, dialect, types)
    some = slice(0, None, max(1, len(people) // 150))
    assert [query.row(person)[0] for person in people[some]] == expected[some]


@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_a_line_is_interpolated_as_numpy_does(seed, n_knots, steps):
    """Within 1e-12 of what NumPy makes of the same knots, of any scale, and exactly at them."""
    rng = np.random.default_rng(seed)
    line = random_line(rng, n_knots, steps=steps)
    scale = 10.0 ** rng.integers(-6, 7)
    x, y = line.prediction * scale, line.amount
    at = np.concatenate([x, rng.normal(0, 3, 50) * scale])
    found = along(x, y, at)
    assert np.allclose(found, np.interp(at, x, y), rtol=1e-12, atol=1e-12 * np.ptp([*y, 0.0]))


def test_a_step_between_neighbouring_floats_is_a_step():
    """Where a slope would be infinite nobody gets what is no number."""
    x = np.array([0.0, 5e-324, 1.0])
    y = np.array([0.0, 1e300, 2e300])
    assert along(x, y, np.array([-1.0, 0.0, 5e-324, 1.0, 2.0])).tolist() == [0.0, 0.0, 1e300, 2e300, 2e300]


def test_a_long_line_halves_its_conditions():
    """1,500 knots are a dozen conditions deep, so that no database refuses the depth."""
    rng = np.random.default_rng(0)
    text = amount_case(["a"], [random_line(rng, 1500)]).policy.to_sql(
        "duckdb", predicted="f", sensitive_features="z"
    )
    depth = deepest = 0
    for word in text.split():
        depth += (word.strip("(") == "CASE") - (word.strip(")") == "END")
        deepest = max(deepest, depth)
    assert depth == 0
    assert deepest <= 14


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_columns(name):
    """Names full of quotes, escapes and comments are names."""
    found = find_amounts("randomized")
    columns = {f"f{name}": found.table["f"], f"z{name}": found.table["z"], f"id{name}": found.table["id"]}
    roles = {"predicted": f"f{name}", "sensitive_features": f"z{name}", "key": f"id{name}"}
    expected = naive_amounts(found)
    assert found.policy.apply(as_pandas(columns), **roles)["decision"].tolist() == expected
    text = found.policy.to_sql("duckdb", **roles)
    assert run_in_duckdb(columns | {"row": np.arange(len(expected))}, text) == expected


# ---------------------------------------------------------------------------------------------------------
# What is refused

BAD = {
    "unknown group": ({"z": "q"}, "q"),
    "missing group": ({"z": None}, "group .*(missing|NULL)"),
    "missing prediction": ({"f": None}, "prediction"),
    "NaN": ({"f": float("nan")}, "prediction"),
    "infinite": ({"f": float("inf")}, "prediction"),
    "less than infinite": ({"f": -float("inf")}, "prediction"),
    "missing key": ({"id": None}, "key"),
}


def _failing(table):
    """Everything that reads a lazy table."""
    for method in ("collect", "to_arrow_table", "compute", "to_table"):
        if hasattr(table, method):
            getattr(table, method)()


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", ["pandas", "polars", "arrow", "dict", "polars lazy", "duckdb"])
def test_bad_rows_raise_everywhere(bad, place, tmp_path):
    """A row that may get no amount is an error that names what is wrong; never an amount."""
    changes, words = BAD[bad]
    found = find_amounts("randomized").changed(7, **changes)
    import polars
    import pyarrow

    with pytest.raises((DataError, GroupError, duckdb.Error, polars.exceptions.PolarsError, pyarrow.ArrowInvalid,
                        ValueError), match=words):  # fmt: skip
        _failing(found.policy.apply(TABLES[place](found.table, tmp_path), **found.roles))


@pytest.mark.parametrize("bad", [name for name in BAD if "NaN" not in name])
@pytest.mark.parametrize("dialect", ["snowflake", "bigquery", "databricks"])
def test_bad_rows_raise_in_warehouses(bad, dialect):
    """With the words, the value, the key and a remedy; never an ELSE."""
    changes, _ = BAD[bad]
    found = find_amounts("randomized")
    query = Query(found.policy.to_sql(dialect, **found.roles), dialect, {"f": float, "z": str, "id": int})
    with pytest.raises(SqlError, match="felicific: The "):
        query.row({"f": 0.5, "z": "a", "id": 3} | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"predicted": 3}, "names no column"),
        ({"predicted": "g"}, "no column 'g'"),
        ({"column": "f"}, "has a column 'f' already"),
    ],
)
@pytest.mark.parametrize("place", ["pandas", "duckdb"])
def test_bad_names_raise_before_a_row_is_read(changes, words, place, tmp_path):
    """With what is wrong and what to do."""
    found = find_amounts("randomized")
    with pytest.raises((DataError, GroupError), match=words):
        found.policy.apply(TABLES[place](found.table, tmp_path), **found.roles | changes)


@pytest.mark.parametrize("place", ["pandas", "duckdb", "polars lazy"])
def test_predictions_that_are_no_numbers_raise(place, tmp_path):
    """Text is no prediction, also where it reads like one."""
    found = find_amounts("lines")
    table = found.table | {"f": np.array([str(f) for f in found.table["f"]], dtype=object)}
    with pytest.raises(DataError, match=r"no (finite )?number"):
        found.policy.apply(TABLES[place](table, tmp_path), **found.roles)


def test_columns_of_another_type_raise_in_sql():
    """A database would cast them: 1 is not the group '1'."""
    found = amount_case(["0", "1"], [Line(np.zeros(1), np.zeros(1))] * 2)
    columns = {"f": np.zeros(2), "z": np.array([0, 1]), "id": np.arange(2), "row": np.arange(2)}
    with pytest.raises(duckdb.Error, match="group is of another type"):
        run_in_duckdb(columns, found.policy.to_sql("duckdb", **found.roles))


def test_a_policy_without_a_lottery_needs_no_key():
    """Nor writes its salt into the text."""
    found = find_amounts("randomized")
    policy = replace(found.policy, randomize=False)
    text = policy.to_sql("duckdb", predicted="f", sensitive_features="z")
    assert policy.salt not in text
    assert found.policy.salt in found.policy.to_sql("duckdb", **found.roles)
