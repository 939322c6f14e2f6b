"""Column: a NumPy-speaking expression means on every engine what NumPy means by it, or is refused."""

import warnings

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from felicific import lookup
from felicific._tables.column import Column, ColumnTable, NotAColumn
from felicific._tables.duckdb import DuckEngine
from felicific._tables.engine import as_floats
from felicific._tables.polars import PolarsEngine
from felicific.exceptions import DataError, HappinessError

TABLE = {
    "a": np.array([-3.5, -1.0, 0.0, 0.5, 2.0, 1e6, 7.0, -0.25]),
    "b": np.array([2.0, 0.0, -1.0, 0.5, 4.0, 3.0, 0.0, 1e-3]),
    "i": np.array([-7, -1, 0, 3, 10, 100, 127, -128], dtype=np.int8),
    "u": np.array([1, 2, 3, 0, 5, 200, 255, 7], dtype=np.uint8),
    "f": np.array([0.1, 0.2, 1e10, -5.5, 3.3, 0.0, 1.0, 2.5], dtype=np.float32),
    "t": np.array(["x", "y", "x", "z", "ü", "", "x y", "'; drop"], dtype=object),
    "m": np.array([True, False, True, True, False, False, True, False]),
}


def duck(table):
    return DuckEngine(duckdb.connect().from_arrow(pa.table(table)))


def lazy(table):
    return PolarsEngine(pl.from_arrow(pa.table(table)).lazy())


ENGINES = {"polars": lazy, "duckdb": duck}


def wide(name):
    """The column as NumPy sees it once narrow numbers are wide."""
    values = TABLE[name]
    return values.astype({"i": np.int64, "u": np.int64, "f": np.float64}.get(values.dtype.kind, values.dtype))


EXPRESSIONS = {
    "sum": lambda x: x["a"] + x["b"],
    "reflected": lambda x: 2 - x["a"],
    "narrow times": lambda x: 3 * x["i"] * x["u"],
    "unsigned difference": lambda x: x["u"] - x["i"],
    "single": lambda x: x["f"] * 3,
    "divide": lambda x: x["a"] / x["b"],
    "divide by zero at most": lambda x: np.minimum(x["a"] / x["b"], 5.0),
    "divide one": lambda x: 1 / x["a"],
    "divide by a number": lambda x: x["i"] / 4,
    "divide by zero": lambda x: x["a"] / 0,
    "floor divide": lambda x: x["i"] // 4,
    "floor divide by negative": lambda x: x["i"] // -3,
    "remainder": lambda x: x["i"] % 5,
    "remainder of negative": lambda x: x["i"] % -5,
    "square": lambda x: x["a"] ** 2,
    "cube": lambda x: x["a"] ** 3,
    "np square": lambda x: np.square(x["i"]),
    "inverse square": lambda x: x["a"] ** -2.0,
    "root of negatives": lambda x: np.sqrt(x["a"]),
    "fractional power": lambda x: x["a"] ** 1.5,
    "log": lambda x: np.log(x["a"]),
    "log10": lambda x: np.log10(x["a"]),
    "log2": lambda x: np.log2(x["b"]),
    "exp": lambda x: np.exp(x["a"]),
    "negative": lambda x: -x["i"],
    "positive": lambda x: +x["a"],
    "abs": lambda x: abs(x["a"]) + np.abs(x["i"]) + np.fabs(x["b"]),
    "sign": lambda x: np.sign(x["a"]),
    "floor": lambda x: np.floor(x["a"]),
    "ceil": lambda x: np.ceil(x["b"]),
    "reciprocal": lambda x: np.reciprocal(x["a"]),
    "minimum": lambda x: np.minimum(x["a"], x["b"]),
    "maximum": lambda x: np.maximum(x["i"], 3),
    "fmin": lambda x: np.fmin(x["a"], 1) + np.fmax(x["b"], 1),
    "clip": lambda x: np.clip(x["a"], -1, 3),
    "clip method": lambda x: x["a"].clip(0, 5),
    "less": lambda x: x["a"] < x["b"],
    "chained": lambda x: (x["i"] >= 0) & (x["i"] <= 100) | ~x["m"] ^ (x["a"] > 0),
    "logical": lambda x: np.logical_and(x["a"] > 0, np.logical_or(x["m"], np.logical_not(x["b"] == 0))),
    "xor": lambda x: np.logical_xor(x["m"], x["a"] > 0),
    "narrow against wide": lambda x: x["i"] < 300,
    "whole against real": lambda x: x["i"] > 2.5,
    "text equals": lambda x: x["t"] == "x",
    "text differs": lambda x: x["t"] != "'; drop",
    "text against number": lambda x: x["t"] == 1,
    "text from number": lambda x: x["t"] != 1,
    "text order": lambda x: x["t"] < "y",
    "truth equals one": lambda x: x["m"] == 1,
    "truth equals truth": lambda x: (x["a"] > 0) == x["m"],
    "truth order": lambda x: x["m"] < (x["a"] > 0),
    "truth times": lambda x: x["m"] * x["a"] + True,
    "where": lambda x: np.where(x["a"] > 0, x["a"], -1),
    "where truth": lambda x: np.where(x["m"], x["a"] > 0, False),
    "where text": lambda x: np.where(x["a"] > 0, "rich", "poor") == "rich",
    "where number": lambda x: np.where(x["i"], 1.0, 2.0),
    "guarded": lambda x: np.where(x["b"] != 0, x["a"] / x["b"], 0),
    "select": lambda x: np.select([x["a"] < 0, x["a"] < 1], [x["b"], 10], 20),
    "isin": lambda x: np.isin(x["i"], [3, 10]),
    "isin text": lambda x: np.isin(x["t"], ["x", "ü", "q"]),
    "isin array": lambda x: np.isin(x["i"], np.array([3, 127])),
    "astype": lambda x: x["i"].astype(float) / 3 + x["m"].astype(int) + x["i"].astype(bool),
    "zeros": lambda x: np.zeros_like(x["a"]) + np.ones_like(x["b"]),
    "numpy scalar": lambda x: np.float64(2.0) * x["a"] + x["a"] * np.int64(3),
    "lookup": lambda x: lookup(x["t"], {"x": 1.0, "'; drop": 2.0}, -1.0),
    "lookup numbers": lambda x: lookup(x["i"], {3: 1, -128: 2}, 0),
    "lookup truths": lambda x: lookup(x["m"], {True: 5, False: 6}),
    "large number": lambda x: x["i"] < 2**70,
    "NaN is not larger": lambda x: x["a"] * 0 / x["b"] > -1,
    "NaN is not smaller": lambda x: np.log(x["a"]) <= x["a"],
    "NaN is not itself": lambda x: np.sqrt(x["a"]) == np.sqrt(x["a"]),
    "NaN differs": lambda x: x["a"] ** 0.5 != 2,
    "NaN is not listed": lambda x: np.isin(np.sqrt(x["a"]), [np.nan, 2.0]),
    "NaN counts as true": lambda x: np.where(np.sqrt(x["a"]), 1, 2),
    "least with NaN": lambda x: np.minimum(np.sqrt(x["a"]), 1.0),
    "least with NaN second": lambda x: np.minimum(1.0, np.sqrt(x["a"])),
    "largest with NaN": lambda x: np.maximum(np.sqrt(x["a"]), 1.0),
    "least without NaN": lambda x: np.fmin(np.sqrt(x["a"]), 1.0) + np.fmax(1.0, np.log(x["b"])),
    "clip of NaN": lambda x: np.clip(np.log(x["b"]), -1, 1),
    "sign of NaN": lambda x: np.sign(np.sqrt(x["a"])),
    "sign of a ratio": lambda x: np.sign(x["a"] / x["b"]),
    "exp of NaN": lambda x: 1 / (1 + np.exp(np.sqrt(x["a"]))),
    "NaN that is not chosen": lambda x: np.where(x["a"] > 0, np.log(x["a"]), 0) > 0,
    "almost infinite": lambda x: np.exp(x["i"] * 0 + 709.7),
    "product of truths": lambda x: x["m"] * (x["a"] > 0) | x["m"],
    "extremes of truths": lambda x: np.minimum(x["m"], x["a"] > 0) | np.maximum(x["b"] > 0, x["m"]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_mean_what_numpy_means(engine, name):
    """Every operator and function gives NumPy's numbers, infinities and NaN included."""
    function = EXPRESSIONS[name]
    with np.errstate(all="ignore"):
        expected = np.asarray(function({column: wide(column) for column in TABLE}), dtype=float)
    source = ENGINES[engine](TABLE)
    table = ColumnTable({column: source.column(column, "x") for column in TABLE}, "a test")
    result = function(table)
    assert isinstance(result, Column)
    found = source.collect(source.frame().select(result.astype(float).expr.alias("r")))
    assert np.allclose(
        as_floats(found, "r"), np.broadcast_to(expected, 8), rtol=1e-14, atol=0, equal_nan=True
    )


REFUSED = {
    "truth": lambda x: 1 if x["a"] > 0 else 0,
    "and": lambda x: (x["a"] > 0) and (x["b"] > 0),
    "chained comparison": lambda x: 0 < x["a"] < 1,
    "array": lambda x: np.asarray(x["a"]),
    "sum": lambda x: np.sum(x["a"]),
    "mean": lambda x: x["a"].mean(),
    "iteration": lambda x: list(x["a"]),
    "length": lambda x: len(x["a"]),
    "real remainder": lambda x: x["a"] % 2,
    "real floor division": lambda x: x["a"] // 2,
    "round": lambda x: np.round(x["a"]),
    "log1p": lambda x: np.log1p(x["a"]),
    "bits": lambda x: x["i"] & 3,
    "not of numbers": lambda x: ~x["i"],
    "power of a column": lambda x: 2 ** x["a"],
    "with an array": lambda x: x["a"] * np.arange(8),
    "several columns": lambda x: x[["a", "b"]],
    "out": lambda x: np.add(x["a"], 1, out=np.zeros(8)),
    "reduce": lambda x: np.add.reduce(x["a"]),
    "astype int": lambda x: x["a"].astype(int),
    "map": lambda x: x["t"].map({"x": 1}),
    "attribute": lambda x: x.a,
    "sum of truths": lambda x: x["m"] + (x["a"] > 0),
    "difference of truths": lambda x: x["m"] - (x["a"] > 0),
    "negative truth": lambda x: -x["m"],
    "text after text": lambda x: x["t"] + "a",
    "isin a set": lambda x: np.isin(x["i"], {3, 10}),
    "isin of several types": lambda x: np.isin(x["t"], ["x", 1]),
    "isin of another type": lambda x: x["i"].isin(["3"]),
    "date against text": lambda x: x["d"] > "2020-01-03",
    "date is text": lambda x: x["d"] == "2020-01-03",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_differ_is_not_a_column(name):
    """What has no meaning shared by all engines raises a TypeError or AttributeError, so the caller can fall back."""
    days = {"d": np.arange("2020-01-01", "2020-01-09", dtype="datetime64[D]")}
    source = lazy(TABLE | days)
    table = ColumnTable({column: source.column(column, "x") for column in source.names}, "a test")
    with pytest.raises((TypeError, AttributeError)), warnings.catch_warnings():
        REFUSED[name](table)


@pytest.mark.parametrize(
    "operation", [lambda c: c * 2, lambda c: c + 1, np.log, lambda c: -c, lambda c: 1 / c]
)
def test_arithmetic_on_text_is_refused(operation, refuses):
    """Arithmetic on a column of text is an error that names it, and not a repetition of strings."""
    with refuses(HappinessError, "'t'", "text", remedy="lookup"):
        operation(lazy(TABLE).column("t", "x"))


def test_text_is_not_ordered_with_numbers(refuses):
    """Comparing text with numbers by size is an error; by equality it is just false."""
    with refuses(HappinessError, "'t'", remedy="same type"):
        lazy(TABLE).column("t", "x") < 3  # noqa: B015


def test_a_missing_column_is_named(refuses):
    """A misspelt column is an error that proposes the nearest one."""
    table = ColumnTable({"loan": lazy(TABLE).column("a", "x")}, "the happiness 'funding'")
    with refuses(DataError, "'laon'", "the happiness 'funding'", remedy="'loan'"):
        table["laon"]


def test_columns_that_were_used_are_known():
    """The table remembers which columns a function asked for."""
    table = ColumnTable({name: lazy(TABLE).column(name, "x") for name in TABLE}, "a test")
    assert table["a"] is table["a"]
    table["t"]
    assert table.used == ["a", "t"]
    assert "a" in table
    assert "q" not in table
    assert table.column_names == list(TABLE)


def test_a_long_lookup_is_not_a_column():
    """A lookup of very many values would nest too deep, and runs on batches."""
    with pytest.raises(NotAColumn):
        lookup(lazy(TABLE).column("i", "x"), dict.fromkeys(range(1000), 1.0), 0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_column_names(engine):
    """No name can break a query, be a pattern, or stand for another column."""
    names = [
        'a"b',
        "a.b",
        "^.*$",
        "*",
        "x; drop table t",
        "o'k",
        "a`b",
        " ",
        "a\nb",
        "#1",
        "c1",
        "c0",
        "é",
        "%s",
        "{}",
    ]
    source = ENGINES[engine]({name: np.array([float(i), 1.0]) for i, name in enumerate(names)})
    assert source.names == names
    for i, name in enumerate(names):
        found = source.collect(source.frame().select(source.column(name, "x").expr.alias("r")))
        assert sorted(as_floats(found, "r").tolist()) == sorted([float(i), 1.0])
    batch = next(iter(source.batches(["*", 'a"b'])))
    assert [str(name) for name in batch.columns] == ["*", 'a"b']
    assert batch["*"].to_list() == [3.0, 1.0]
