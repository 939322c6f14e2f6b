"""Aggregates of tables that are not in memory: the same as in memory, one query, and errors that name the rows."""

import sys
import warnings
from datetime import UTC
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow.dataset
import pytest
from functions import (
    BATCHWISE,
    EVERYDAY,
    METHODS,
    as_arrow,
    as_duckdb,
    as_lazy,
    as_pandas,
    asked,
    assert_same,
    measures,
    people,
    write_parquet,
)
from helpers import name_of

from felicific import Happiness, Score, aggregate, audit, lookup, solve
from felicific._program.signals import Label, ScoreCells, SoftLabel
from felicific._tables.engine import find_engine
from felicific.exceptions import BatchWarning, DataError, EngineError, GroupError, HappinessError


def as_polars(table):
    return as_lazy(table).collect()


def as_path(table, folder):
    return str(write_parquet(table, folder / "people.parquet"))


def as_pattern(table, folder):
    """Three files and a pattern for them; the second is empty."""
    n = len(next(iter(table.values())))
    for i, part in enumerate((slice(0, n // 3), slice(0, 0), slice(n // 3, n))):
        write_parquet({name: column[part] for name, column in table.items()}, folder / f"part{i}.parquet")
    return folder / "part*.parquet"


def as_dataset(table, folder):
    return pyarrow.dataset.dataset(write_parquet(table, folder / "people.parquet"))


ENGINES = {
    "polars": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": as_path,
    "pattern": as_pattern,
    "dataset": as_dataset,
}


@pytest.fixture(params=ENGINES)
def lay(request, tmp_path):
    """Lay a table out for one of the engines."""
    return lambda table: ENGINES[request.param](table, tmp_path)


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def in_memory(table):
    return aggregate(as_pandas(table), **asked())


def test_everyday_functions_agree_with_pandas(lay, table, in_memory):
    """All everyday functions give the aggregates of the same rows in pandas, counts exactly, without a notice."""
    assert_same(aggregate(lay(table), **asked()), in_memory)


@pytest.mark.parametrize("lay_in_memory", [as_arrow, as_polars, dict])
def test_everyday_functions_agree_in_memory(lay_in_memory, table):
    """PyArrow, Polars and dicts of arrays give the same too; narrow numbers do not overflow on any."""
    assert_same(aggregate(lay_in_memory(table), **asked()), aggregate(as_pandas(table), **asked()))


@pytest.mark.parametrize("policy", ["label", "soft-label", Score(bins=8), ScoreCells((3, 700, 1366, 2732))])
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_signal_with_and_without_weights(lay, table, policy, weight):
    """Every signal gives the same sums, and weights are frequencies: 0 is the row absent."""
    ask = asked(policy=policy, sample_weight=weight, happiness=measures({"times": EVERYDAY["times"]}))
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("boundary", [0.5, 0.25, 0.3])
def test_two_classes_fall_into_the_same_fine_bins(lay, boundary):
    """With two classes the 4096 fine bins and the boundary hold exactly the same people."""
    table = people(classes=2)
    table["p1"][:200] = np.linspace(0, 1, 200)
    table["p1"][200:203] = [0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0)]
    table["p0"] = 1 - table["p1"]
    ask = asked(2, policy=Score(boundary=boundary), happiness="equal_opportunity")
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


def test_probabilities_that_nearly_sum_to_one_are_divided_alike(lay):
    """Single precision probabilities are normalised by the same operations everywhere, eight classes or more too."""
    rng = np.random.default_rng(3)
    table = people(1000, classes=9)
    for k in range(9):
        table[f"p{k}"] = (table[f"p{k}"] * rng.uniform(1 - 5e-7, 1 + 5e-7, 1000)).astype(np.float32)
    ask = asked(9, happiness="statistical_parity")
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


def test_methods_of_pandas_columns(lay, table):
    """The methods that columns share with pandas mean the same, in a query and on rows that are arrays (an audit's)."""
    ask = asked(happiness=[Happiness(function, name=name) for name, function in METHODS.items()])
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))
    measured = {"sensitive_features": "z", "happiness": ask["happiness"]}
    found = audit("y", lay(table), "y", **measured)
    assert found.gaps == pytest.approx(audit("y", as_pandas(table), "y", **measured).gaps, rel=1e-9)


def test_whole_numbers_that_are_no_floats_keep_their_digits(lay, table):
    """Identifiers of 19 digits have the remainders that they have in pandas, though engines calculate with floats."""
    rng = np.random.default_rng(4)
    long = table | {"person": rng.integers(2**60, 2**62, len(table["y"]))}
    ask = asked(happiness=Happiness(lambda decision, x: decision * (x["person"] % 7), name="remainder"))
    assert_same(aggregate(lay(long), **ask), aggregate(as_pandas(long), **ask))


def test_ratios_that_are_no_numbers_compare_as_in_pandas(lay, table):
    """0 / 0 is larger than nothing, and no number is its least."""
    table = table | {"debt": np.arange(len(table["y"])) % 3, "earned": np.arange(len(table["y"])) % 2}
    ask = asked(
        happiness=Happiness(
            lambda decision, x: np.where(x["debt"] / x["earned"] > 0.4, 0.0, decision), name="f"
        )
    )
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))
    limited = Happiness(
        lambda decision, x: decision * np.minimum(x["debt"] / x["earned"], 2.0), name="limited"
    )
    with pytest.raises(HappinessError, match="nan in row 0"):
        aggregate(lay(table), **asked(happiness=limited))


def loss_of_x(decision, x, y):
    return (y != decision) * (1 + x["loan"] / 1e4)


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": [[0, 1, 2], [3, 0, 1], [1, 5, 0]]},
        {"loss": loss_of_x},
        {"loss": lambda decision, y: abs(decision - y)},
        {"predicted": "region", "happiness": "overall_accuracy"},
        {"predicted": "region", "score": None, "policy": "label", "happiness": "decision * loan"},
        {"sensitive_features": ["z", "sex"]},
        {"sensitive_features": "region", "happiness": lambda decision, group: decision * group},
        {"sensitive_features": "member"},
        {
            "sensitive_features": lambda x: np.where(x["hours"] < 40, "short", "long"),
            "happiness": "equalized_odds",
        },
        {"groups": ["c", "a", "b", "nobody"]},
        {"decisions": [2, 1, 0], "happiness": ["equal_opportunity", "demographic_parity"]},
        {
            "happiness": 'decision * max(loan - 2 * x["hours"], 0) + (3 if sex == "F" and member else -hours ** 2)'
        },
        {"happiness": {"text": "log(loan) * (decision == y)"}, "loss": "(decision != y) * sqrt(income)"},
        {
            "happiness": Happiness(
                lambda decision, x: decision * x["loan"] / (x["hours"] - 5), among=lambda x: x["hours"] != 5
            )
        },
    ],
    ids=lambda changes: "+".join(changes),
)
def test_whatever_is_asked_is_the_same(lay, changes):
    """Losses, own decisions, intersections, functions for groups, absent groups, people who are not counted."""
    table = people(1500, seed=1)
    table["region"] = table["region"] % 3
    ask = asked(happiness=measures({"times": EVERYDAY["times"]})) | changes
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("y", ["text", "truth"])
def test_labels_of_any_type_are_found(lay, y):
    """Classes are found where they are not given, of text or truth values too."""
    table = people(600, classes=2)
    table["y"] = np.where(table["y"] == 1, "yes", "no").astype(object) if y == "text" else table["y"] == 1
    ask = asked(score=["p0", "p1"], happiness="equalized_odds")
    found = aggregate(lay(table), **ask)
    assert_same(found, aggregate(as_pandas(table), **ask))
    assert solve(found, gap=0.1).loss >= 0


def test_narrow_labels_do_not_wrap(lay, table):
    """Labels and groups of eight bits are subtracted as whole numbers, on engines and in memory."""
    narrow = table | {"y": table["y"].astype(np.uint8), "region": table["region"].astype(np.int8)}
    ask = asked(
        happiness=lambda decision, x, y, group: (decision - y) * 100 + 50 * group, sensitive_features="region"
    )
    assert_same(aggregate(lay(narrow), **ask), aggregate(as_pandas(table), **ask))
    assert_same(aggregate(as_pandas(narrow), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("name", BATCHWISE)
def test_other_functions_run_on_batches_with_a_notice(lay, name, table):
    """A function that is no expression of columns runs batch by batch, says so, and gives the same."""
    ask = asked(happiness=[Happiness(BATCHWISE[name], name=name), "overall_accuracy"])
    expected = aggregate(as_pandas(table), **ask)
    with pytest.warns(BatchWarning, match=f"The happiness '{name}' cannot be written as an expression"):
        found = aggregate(lay(table), **ask)
    assert_same(found, expected)


def test_an_expression_beside_another_function_runs_on_batches_too(lay, table):
    """What Polars itself cannot calculate works there all the same."""
    ask = asked(
        happiness=[Happiness(BATCHWISE["array"], name="array"), Happiness(EVERYDAY["both"], name="both")]
    )
    with pytest.warns(BatchWarning, match="'array'"):
        found = aggregate(lay(table), **ask)
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_aggregates_of_parts_add_across_engines(table, in_memory):
    """A third on DuckDB, a third on Polars and a third in memory add up to the whole."""
    n = len(table["y"])
    parts = [{name: column[i::3] for name, column in table.items()} for i in range(3)]
    whole = sum(
        aggregate(lay(part), **asked())
        for lay, part in zip((as_duckdb, as_lazy, as_pandas), parts, strict=True)
    )
    assert whole.rows.sum() == n
    assert_same(whole, in_memory)


def test_a_large_offset_costs_no_digits(lay, table):
    """A happiness plus a constant of a billion has the same gaps, to nine digits of the effect."""
    plain = aggregate(lay(table), **asked(happiness=lambda decision, x: decision * x["hours"]))
    lifted = aggregate(lay(table), **asked(happiness=lambda decision, x: 1e9 + decision * x["hours"]))
    assert abs(plain.baseline.gaps - lifted.baseline.gaps).max() < 1e-6


def test_only_the_columns_that_are_used_are_read(table, tmp_path):
    """A column that nobody asks for may hold anything, and is not read."""
    table = table | {"broken": np.full(len(table["y"]), np.nan)}
    ask = asked(happiness=EVERYDAY["times"])
    assert_same(aggregate(as_lazy(table), **ask), aggregate(as_pandas(table), **ask))


# ---------------------------------------------------------------------------------------------------------
# Bad input


def changed(table, name, rows, value, dtype=None):
    """A copy of the table with some values replaced."""
    column = table[name].astype(dtype if dtype is not None else table[name].dtype)
    column[rows] = value
    return table | {name: column}


@pytest.mark.parametrize(
    ("name", "value", "dtype"),
    [
        ("loan", np.nan, None),
        ("hours", None, object),
        ("z", None, object),
        ("sex", None, object),
        ("y", None, object),
        ("p1", np.nan, None),
        ("w", np.nan, None),
    ],
)
def test_missing_values_are_counted_and_named(lay, table, name, value, dtype, refuses):
    """Null or NaN in any used column is an error that names the column, the count and the first rows."""
    broken = changed(table, name, [4, 17, 1999, 2500], value, dtype)
    ask = asked(
        classes=3,
        happiness=lambda decision, x: decision * x["loan"] * x["hours"],
        sensitive_features=["z", "sex"],
        sample_weight="w",
    )
    weighed = broken | {"w": broken["w"] + 1}
    words, remedy = [repr(name), "4 of 3000 rows", "rows 4, 17, 1999"], "Fill it in"
    if name in ask["sensitive_features"]:
        remedy = "Fill it with a name, and leave that name out of groups="
    if name == "y":  # how many of which group have none
        group = np.char.add(np.char.add(table["z"].astype(str), " & "), table["sex"].astype(str))
        gone = group[[4, 17, 1999, 2500]]
        words = ["The label is missing in 4 of 3,000 rows", "rows 4, 17, 1999"]
        words += [f" % of {str(one)!r}" for one in set(gone)]
        remedy = "only if labels were lost by chance"
    with refuses(DataError, *words, remedy=remedy):
        aggregate(lay(weighed), **ask)


def test_missing_values_in_rows_of_weight_zero_are_absent(lay, table):
    """Weight 0 is the row absent: what is missing in it does not matter."""
    rows = np.flatnonzero(table["w"] == 0)[:5]
    broken = changed(changed(table, "loan", rows, np.nan), "z", rows, None)
    ask = asked(happiness=EVERYDAY["times"], sample_weight="w")
    assert_same(aggregate(lay(broken), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("p1", 0.9, ["probabilities of row 5"]),
        ("p1", -0.1, ["probabilities of row 5"]),
        ("p1", np.inf, ["probabilities of row 5"]),
        ("w", -1.0, ["weight of row 5", "-1"]),
        ("w", np.inf, ["weight of row 5", "inf"]),
        ("y", 7, ["label 7", "row 5", "[0, 1, 2]"]),
    ],
)
def test_impossible_values_are_named(lay, table, name, value, words, refuses):
    """A probability, weight or label that cannot be is an error that names the row."""
    with refuses(DataError, *words):
        aggregate(
            lay(changed(table, name, 5, value)), **asked(sample_weight="w", happiness=EVERYDAY["times"])
        )


def test_a_happiness_that_is_not_finite_names_the_row(lay, table, refuses):
    """Division by zero is an error that names measure, decision, row and group."""
    broken = changed(table, "income", [1200, 1300], 0.0)
    ask = asked(happiness={"share": lambda decision, x: decision * x["loan"] / x["income"]})
    with refuses(HappinessError, "'share'", "decision 0", "row 1200", f"group {table['z'][1200]!r}"):
        aggregate(lay(broken), **ask)


def test_values_outside_their_bounds_name_the_row(lay, table, refuses):
    """Bounds that a value leaves are an error that names it; bounds that hold for those who are counted are none."""
    low = table["loan"] > np.sort(table["loan"])[-2]
    within = float(np.sort(table["loan"])[-2])
    bounded = {"bounds": (0.0, 2 * within), "name": "loan"}
    with refuses(HappinessError, "'loan'", f"row {int(np.argmax(low))}", "bounds"):
        aggregate(lay(table), **asked(happiness=Happiness(EVERYDAY["times"], **bounded)))
    happiness = Happiness(EVERYDAY["times"], among=lambda x: x["loan"] <= within, **bounded)
    assert_same(
        aggregate(lay(table), **asked(happiness=happiness)),
        aggregate(as_pandas(table), **asked(happiness=happiness)),
    )
    with refuses(HappinessError, "'d'", "bounds"):
        aggregate(
            lay(table),
            **asked(happiness=Happiness(lambda decision, y: decision + y, bounds=(0, 3), name="d")),
        )


def test_a_sum_that_overflows_is_refused(lay, table, refuses):
    """Numbers whose sum is infinite are an error, not an infinite sum."""
    with refuses(HappinessError, "'huge'", "overflows", remedy="larger unit"):
        aggregate(
            lay(table), **asked(happiness={"huge": lambda decision, x: 1e298 * x["hours"]}, policy="label")
        )


def test_lookup_without_a_number_names_the_value(lay, table, refuses):
    """A value that lookup does not know is named, with its row."""
    broken = changed(table, "school", 1200, "Kindergarten")
    known = {"Master": 1.0, "Doctorate": 2.0, "High School": 0.0}
    with refuses(HappinessError, "Kindergarten", remedy="default"):
        aggregate(lay(broken), **asked(happiness=lambda decision, x: decision * lookup(x["school"], known)))


def test_an_unseen_group_is_named(lay, table, refuses, monkeypatch):
    """A group outside of groups= is an error that names it, its row of the whole table and the known ones."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 500)
    with refuses(GroupError, "'q'", "first row 2100", "'a', 'b'"):
        aggregate(
            lay(changed(table, "z", 2100, "q")),
            **asked(groups=["a", "b", "c"], happiness=EVERYDAY["times"]),
        )


def test_membership_must_be_zero_or_one(lay, table, refuses):
    """An `among` of numbers counts 0 and 1 as in memory, and refuses any other."""

    def ask(among):
        return asked(happiness=Happiness(EVERYDAY["times"], among=among, name="some"))

    zero_or_one = ask(lambda x: x["hours"] % 2)
    assert_same(aggregate(lay(table), **zero_or_one), aggregate(as_pandas(table), **zero_or_one))
    with refuses(HappinessError, "`among`", "'some'", "other than 0 and 1"):
        aggregate(lay(table), **ask(lambda x: x["hours"] % 3))


OTHER_NUMBERS = {
    "unsigned": np.arange(3000, dtype=np.uint64),
    "decimal": [Decimal(i) / 8 for i in range(3000)],
    "half": (np.arange(3000) % 100).astype(np.float16),
    "large": 2**40 + np.arange(3000),
}


@pytest.mark.parametrize("numbers", OTHER_NUMBERS)
def test_numbers_of_every_type_neither_wrap_nor_round(lay, table, numbers):
    """Unsigned, decimal, half precision and large whole numbers are calculated with as 64-bit floats."""
    column = OTHER_NUMBERS[numbers]
    happiness = {"h": lambda decision, x: decision * (x["loan"] - 1000) * x["loan"]}
    expected = aggregate(
        as_pandas(table | {"loan": np.array([float(v) for v in column])}), **asked(happiness=happiness)
    )
    if numbers != "half":  # DuckDB has none
        assert_same(aggregate(lay(table | {"loan": column}), **asked(happiness=happiness)), expected)
    for lay_in_memory in (as_arrow, as_polars):
        found = aggregate(lay_in_memory(table | {"loan": column}), **asked(happiness=happiness))
        assert_same(found, expected)


@pytest.mark.parametrize(
    "column",
    [
        np.uint64(2**63) + np.arange(3, dtype=np.uint64),
        np.array([2**63 - 1, 2**63, 2**63 + 1], dtype=np.uint64),
        2**53 + np.arange(3),
        np.array([Decimal(1), Decimal(2), Decimal(3)]),
        np.array([Decimal(2**53), Decimal(2**53 + 1), Decimal(2**64 + 1)]),
    ],
    ids=["unsigned", "on both sides of 2**63", "beyond 2**53", "decimal", "large decimal"],
)
def test_groups_of_large_and_decimal_numbers(lay, table, column):
    """Groups that are large unsigned numbers do not become one, and decimals are the same everywhere."""
    column = column[np.arange(3000) % 3]
    ask = asked(happiness=EVERYDAY["times"])
    found = aggregate(lay(table | {"z": column}), **ask)
    assert len(found.groups) == 3
    assert_same(found, aggregate(as_pandas(table | {"z": column}), **ask))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"y": "yy"}, DataError, ["'yy'", "y"]),
        ({"sensitive_features": "zz"}, DataError, ["'zz'", "the groups"]),
        ({"score": {0: "p0", 1: "p1", 2: "q2"}}, DataError, ["'q2'", "score"]),
        ({"score": {0: "p0", 1: "p1", 2: "sex"}}, DataError, ["'sex'", "text"]),
        ({"sample_weight": "sex"}, DataError, ["'sex'", "text"]),
        ({"score": ["p0", "p1"]}, DataError, ["2 columns", "3 classes"]),
        ({"score": {0: "p0", 1: "p1"}, "classes": [0, 1, 2]}, DataError, ["[0, 1]", "[0, 1, 2]"]),
        ({"score": np.ones((3000, 3)) / 3}, DataError, ["score is a ndarray"]),
        ({"y": np.zeros(3000)}, DataError, ["y is a ndarray"]),
        ({"sensitive_features": np.zeros(3000)}, GroupError, ["not named"]),
        ({"happiness": lambda decision, x: decision * x["laon"]}, DataError, ["'laon'", "'loan'"]),
        ({"happiness": lambda decision, x: decision * x["sex"]}, HappinessError, ["'sex'", "text"]),
        ({"happiness": lambda decision, x: x["sex"]}, HappinessError, ["text", "real numbers"]),
        ({"happiness": lambda decision, x: None}, HappinessError, ["None"]),
        ({"score": None}, DataError, ["neither probabilities nor predictions"]),
        (
            {"score": None, "policy": "score", "predicted": "y"},
            DataError,
            ["score policy sees probabilities"],
        ),
        ({"policy": "individual"}, DataError, ["individual"]),
        ({"classes": [0]}, DataError, ["[0]"]),
        ({"loss": "wrong"}, DataError, ["'wrong'"]),
    ],
    ids=lambda value: name_of(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_asked(lay, table, changes, error, words, refuses):
    """Names that do not exist, columns of another type and functions that cannot be are clear errors."""
    with refuses(error, *words):
        aggregate(lay(table), **(asked(happiness=EVERYDAY["times"]) | changes))


@pytest.mark.parametrize("weights", ["no rows", "zero"])
def test_an_empty_table_is_refused(lay, table, weights, refuses):
    """No rows, or none of positive weight, are no aggregates; but for groups that are given they are zero."""
    empty = {name: column[:0] for name, column in table.items()}
    empty = empty if weights == "no rows" else table | {"w": 0 * table["w"]}
    ask = asked(happiness=EVERYDAY["times"], sample_weight="w")
    with refuses(DataError, "no rows", "'w' are zero"):
        aggregate(lay(empty), **ask)
    with refuses(DataError, "'y' and a positive weight in 'w'"):
        aggregate(lay(empty), **ask | {"score": ["p0", "p1", "p2"]})
    ask |= {"groups": ["a", "b", "c"]}
    nothing, whole = aggregate(lay(empty), **ask), aggregate(as_pandas(table), **ask)
    assert nothing.rows.sum() == 0
    assert_same(nothing + whole, whole)


def test_an_empty_table_in_memory_is_refused(table, refuses):
    """As in memory."""
    with refuses(DataError, "no rows"):
        aggregate(as_pandas({name: column[:0] for name, column in table.items()}), **asked())


@pytest.mark.parametrize("lay_in_memory", [as_pandas, as_arrow, dict])
@pytest.mark.parametrize(("name", "value"), [("z", None), ("y", None), ("p1", np.nan), ("w", np.nan)])
def test_missing_values_in_memory_are_counted_and_named(lay_in_memory, table, name, value, refuses):
    """In memory too the column, the count and the first rows are named; what has weight 0 is absent."""
    weighed = changed(table, "w", [4, 17, 1999, 2500], 1.0)
    broken = changed(weighed, name, [4, 17, 1999, 2500], value, object if value is None else None)
    people = int((broken["w"] != 0).sum())
    words = [repr(name), f"4 of {people} rows", "rows 4, 17, 1999"]
    if name == "y":
        words = [f"The label is missing in 4 of {people:,} rows", "first in row 4"]
    with refuses(DataError, *words):
        aggregate(lay_in_memory(broken), **asked(happiness=EVERYDAY["times"], sample_weight="w"))


def test_labels_of_different_types_are_refused(lay, table, refuses):
    """Text and numbers are not one set of classes."""
    mixed = table | {"other": np.array(["0", "1", "2"], dtype=object)[table["y"]]}
    with refuses(DataError, "decisions", "labels", remedy="decisions=["):
        audit("other", lay(mixed), "y", happiness=EVERYDAY["times"], sensitive_features="z")


def test_a_weight_of_text_is_refused_before_classes_are_looked_for(lay, table, refuses):
    """Also where the classes are not given."""
    with refuses(DataError, "'sex'", "text"):
        aggregate(lay(table), **asked(score=["p0", "p1", "p2"], sample_weight="sex"))


def test_a_function_with_a_bug_raises_its_own_error(lay, table, refuses):
    """What fails as an expression and on batches too is told as it is on batches."""

    def broken(decision, x):
        raise RuntimeError("of my own")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BatchWarning)
        with refuses(HappinessError, "'broken'", "RuntimeError: of my own"):
            aggregate(lay(table), **asked(happiness=broken))


@pytest.mark.parametrize("open_file", [str, pl.scan_parquet, pyarrow.dataset.dataset])
@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_truncated_file_is_refused(table, tmp_path, open_file, keep, refuses):
    """A Parquet file that is cut gives an error and no aggregates."""
    path = write_parquet(table, tmp_path / "people.parquet")
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    try:
        opened = open_file(path)
    except Exception:
        return  # the library itself refuses to open it
    with refuses(EngineError, "arquet", remedy="cut"):
        aggregate(opened, **asked(happiness=EVERYDAY["times"]))


def test_a_file_damaged_inside_is_refused(table, tmp_path, refuses):
    """A Parquet file whose pages are overwritten gives an error and no aggregates."""
    path = write_parquet(table, tmp_path / "people.parquet")
    content = bytearray(path.read_bytes())
    content[2000 : len(content) // 2] = b"\xff" * (len(content) // 2 - 2000)
    path.write_bytes(bytes(content))
    for opened in (str(path), pl.scan_parquet(path), pyarrow.dataset.dataset(path)):
        with refuses(EngineError, remedy="cut"):
            aggregate(opened, **asked(happiness=EVERYDAY["times"]))


def test_a_column_missing_in_one_file_is_refused(table, tmp_path, refuses):
    """A folder in which one file lacks a column gives an error that names the column, and no aggregates."""
    write_parquet(table, tmp_path / "a.parquet")
    for column in ("loan", "w"):
        write_parquet(
            {name: values for name, values in table.items() if name != column}, tmp_path / "b.parquet"
        )
        ask = asked(happiness=EVERYDAY["times"], sample_weight="w", score=["p0", "p1", "p2"])
        with refuses(EngineError, column):
            aggregate(tmp_path, **ask)


def test_a_column_that_comes_twice_is_refused(table, refuses):
    """A name that two columns have is told, and nothing of what they hold."""
    twice = as_arrow(table).append_column("loan", as_arrow(table).column("loan"))
    with refuses(DataError, "column 'loan' more than once", remedy="Rename"):
        aggregate(twice, **asked())


def test_no_file_is_an_error(tmp_path, refuses):
    """A path or a pattern that no file has is named."""
    for path in (tmp_path / "none.parquet", tmp_path / "*.parquet", tmp_path):
        with refuses(DataError, str(path), remedy="path"):
            aggregate(path, **asked())


def test_hostile_names_in_every_role(lay):
    """Columns whose names are quotes, patterns or SQL are columns like any other."""
    names = {
        "p0": 'p"0',
        "p1": "p.1",
        "p2": "*",
        "y": "^.*$",
        "z": "x'; DROP TABLE people; --",
        "loan": "a`b\n",
        "w": "#1",
        "hours": "c0",
    }
    plain = people(500)
    hostile = {names.get(name, name): column for name, column in plain.items()}
    found = aggregate(
        lay(hostile),
        score={0: 'p"0', 1: "p.1", 2: "*"},
        y="^.*$",
        sensitive_features="x'; DROP TABLE people; --",
        sample_weight="#1",
        happiness={"h": lambda decision, x: decision * x["a`b\n"] * x["c0"]},
    )
    ask = asked(sample_weight="w", happiness={"h": lambda decision, x: decision * x["loan"] * x["hours"]})
    assert_same(found, aggregate(as_pandas(plain), **ask))


def test_tables_in_memory_have_no_engine(table):
    """Tables in memory stay in memory."""
    for here in (as_pandas(table), pl.from_arrow(as_arrow(table)), as_arrow(table), table, np.ones((3, 2))):
        assert find_engine(here) is None


@pytest.mark.parametrize("missing", [("duckdb",), ("duckdb", "polars"), ("duckdb", "polars", "pandas")])
def test_parquet_is_read_by_whatever_is_installed(monkeypatch, table, tmp_path, in_memory, missing):
    """Without DuckDB, Polars reads Parquet; without both, PyArrow does; none needs pandas."""
    path = write_parquet(table, tmp_path / "people.parquet")
    for module in missing:
        monkeypatch.setitem(sys.modules, module, None)
    numbers = {name: EVERYDAY[name] for name in ("times", "narrow", "limits", "lookup", "both")}
    ask = asked(happiness=measures(numbers))
    found = aggregate(path, **ask)
    monkeypatch.undo()
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_labels_of_signals():
    """The signals used above are those that exist."""
    assert {SoftLabel.kind, Label.kind, Score.kind} == {"soft-label", "label", "score"}


def test_batches_that_end_early_are_an_error(monkeypatch, refuses, table):
    """Ctrl-C ends Polars' batches in another thread as if there were no more rows: no sum of the rest is returned."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 700)
    ask = asked(happiness=Happiness(BATCHWISE["array"], name="array"))
    whole = pl.LazyFrame.collect_batches
    with pytest.warns(BatchWarning):
        assert_same(aggregate(as_lazy(table), **ask), aggregate(as_pandas(table), **ask))
    monkeypatch.setattr(
        pl.LazyFrame, "collect_batches", lambda frame, **options: list(whole(frame, **options))[:-1]
    )
    with refuses(EngineError, "Polars", "before the last row"), pytest.warns(BatchWarning):
        aggregate(as_lazy(table), **ask)


LARGE = {"a": np.arange(60) + 3_000_000_000, "b": np.arange(60) + 4_000_000_001}
LARGE |= {"u": np.arange(60, dtype=np.uint64) + np.uint64(2**63), "three": np.arange(60) % 3}
WRAPPING = {
    "expression": ("decision * a * b", lambda row: row["a"] * row["b"]),
    "product": (lambda decision, x: decision * x["a"] * x["b"], lambda row: row["a"] * row["b"]),
    "negative": (lambda decision, x: -x["u"] * decision, lambda row: -row["u"]),
    "cube": (lambda decision, x: decision * x["a"] ** 3, lambda row: row["a"] ** 3),
    "inside": (
        lambda decision, x: decision * np.sqrt(x["a"] * x["b"]),
        lambda row: (row["a"] * row["b"]) ** 0.5,
    ),
    "remainder": (lambda decision, x: decision * (x["u"] % 7), lambda row: row["u"] % 7),
}


@pytest.mark.parametrize("name", WRAPPING)
@pytest.mark.parametrize("place", [*ENGINES, "pandas", "polars eager", "arrow", "dict"])
def test_whole_numbers_do_not_wrap_around(name, place, tmp_path):
    """Products of large whole numbers and the negative of unsigned ones are those of Python's own numbers."""
    function, exactly = WRAPPING[name]
    plain = people(60, classes=2) | LARGE
    here = {"pandas": as_pandas, "polars eager": as_polars, "arrow": as_arrow, "dict": dict}
    table = here[place](plain) if place in here else ENGINES[place](plain, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BatchWarning)
        found = aggregate(table, **asked(2, happiness={"h": function}, policy="label"))
    rows = [{key: int(plain[key][i]) for key in ("a", "b", "u")} for i in range(60)]
    totals = [
        float(sum(exactly(row) for row, z in zip(rows, plain["z"], strict=True) if z == g)) for g in "abc"
    ]
    sums = (found.value + found.origin * found.among[:, :, None, :])[:, :, 1, 0].sum(axis=1)
    assert sums == pytest.approx(totals, rel=1e-9)


def test_whole_numbers_that_are_text_stay_whole():
    """A function that writes whole numbers as text, or looks at their bits, gets them as they are."""
    plain = people(60, classes=2) | LARGE
    for function in (
        lambda decision, x: decision * (x["a"].astype(str).str.len() == 10) * 1.0,
        lambda decision, x: decision * (x["a"] & 1),
    ):
        found = aggregate(as_pandas(plain), **asked(2, happiness={"h": function}, policy="label"))
        assert np.isfinite(found.value).all()
    wrapping = lambda decision, x: decision * (x["a"] * x["b"] > 0) * x["a"].astype(str).str.len()  # noqa: E731
    with pytest.raises(HappinessError, match="wrap around"):
        aggregate(as_pandas(plain), **asked(2, happiness={"h": wrapping}, policy="label"))


def test_labels_beyond_floats_are_told_apart(lay):
    """Two labels that are one float are two labels."""
    table = people(400, classes=2)
    table["y"] = np.array([2**63, 2**63 + 1], dtype=np.uint64)[table["y"]]
    ask = asked(score=["p0", "p1"], happiness="equal_opportunity")
    found = aggregate(lay(table), **ask)
    assert found.classes.tolist() == [2**63, 2**63 + 1]
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_a_gap_in_large_numbers_costs_no_digits(lay, table):
    """Where one person of weight 0 has no group, the large numbers of the others are still told apart."""
    groups = pyarrow.array([None, *(2**53 + np.arange(2999) % 2).tolist()], type=pyarrow.int64())
    table = as_arrow(table | {"w": np.minimum(np.arange(3000.0), 1.0)})
    table = table.set_column(table.column_names.index("z"), "z", groups)
    ask = asked(happiness="statistical_parity", sample_weight="w")
    for found in (aggregate(table, **ask), aggregate(pl.from_arrow(table).lazy(), **ask)):
        assert found.groups == (2**53, 2**53 + 1)


def test_a_missing_category_is_missing(table, refuses):
    """A gap in a dictionary of Arrow is a gap, and not some category."""
    column = pyarrow.array([None, *table["z"][1:].tolist()]).dictionary_encode()
    arrow = as_arrow(table)
    with refuses(DataError, "'z'", "1 of 3000"):
        aggregate(
            arrow.set_column(arrow.column_names.index("z"), "z", column),
            **asked(happiness="statistical_parity"),
        )


TIME = pyarrow.array(
    [1_500_000_000_000_000, 1_600_000_000_000_000], type=pyarrow.timestamp("us", tz="Asia/Tokyo")
)


@pytest.mark.parametrize("unit", ["zone", "nanoseconds"])
def test_times_are_the_same_groups_everywhere(unit, table):
    """Times of a zone, and those kept to the nanosecond, are Python's times, as of UTC."""
    from datetime import datetime

    times = TIME if unit == "zone" else TIME.cast(pyarrow.timestamp("ns"))
    arrow = as_arrow(table)
    arrow = arrow.set_column(
        arrow.column_names.index("z"), "z", times.take(pyarrow.array(np.arange(3000) % 2))
    )
    expected = tuple(datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None) for seconds in (1.5e9, 1.6e9))
    duck = __import__("duckdb").connect().from_arrow(arrow)
    for place in (arrow, arrow.to_pandas(), pl.from_arrow(arrow), pl.from_arrow(arrow).lazy(), duck):
        assert aggregate(place, **asked(happiness="statistical_parity")).groups == expected


# ---------------------------------------------------------------------------------------------------------
# Files of different types


READERS = {"duckdb": (), "polars": ("duckdb",), "pyarrow": ("duckdb", "polars")}


def write_parts(folder, first, second):
    """Two files whose column v is of these types; the second has its columns in another order."""
    n = len(first)
    rest = {"y": [0, 1] * (n // 2), "g": ["a", "a", "b", "b"] * (n // 4), "p": [0.3, 0.7] * (n // 2)}
    write_parquet({"v": first, **rest}, folder / "a.parquet")
    write_parquet({**rest, "v": second}, folder / "b.parquet")


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    """Only one of the libraries that read Parquet is installed."""
    for module in READERS[request.param]:
        monkeypatch.setitem(sys.modules, module, None)


V = {
    "whole": pyarrow.array([1, 0, 3, 4]),
    "narrow": pyarrow.array([1, -1, 3, 4], type=pyarrow.int8()),
    "unsigned": pyarrow.array([1, 200, 3, 4], type=pyarrow.uint8()),
    "real": pyarrow.array([0.7, 0.2, 1.5, 1e9]),
    "single": pyarrow.array([0.5, 0.25, 1.5, 2.0], type=pyarrow.float32()),
    "missing": pyarrow.nulls(4),
    "decimal": pyarrow.array([Decimal("0.75"), Decimal("1.25"), Decimal("2.50"), Decimal("3.00")]),
    "fine": pyarrow.array([Decimal("0.755"), Decimal("1.250"), Decimal("2.500"), Decimal("3.000")]),
    "text": pyarrow.array(["01", "1", "2", "3"]),
    "truth": pyarrow.array([True, False, True, True]),
    "large": pyarrow.array([2**53 + 1, 1, 2, 3]),
    "long": pyarrow.array([2**63, 1, 2, 3], type=pyarrow.uint64()),
}


@pytest.mark.parametrize(
    "kinds",
    [
        "whole real",
        "real whole",
        "narrow unsigned",
        "whole single",
        "narrow whole",
        "single real",
        "decimal fine",
    ],
)
def test_files_of_different_types_are_widened(reader, kinds, tmp_path):
    """What a later file holds is not cast to the type of the first: 0.7 stays 0.7, whoever reads it."""
    first, second = (V[kind] for kind in kinds.split())
    write_parts(tmp_path, first, second)
    found = aggregate(
        tmp_path, y="y", score="p", sensitive_features="g", happiness="decision * v", policy="label"
    )
    numbers = [float(value) for value in (*first.to_pylist(), *second.to_pylist())]
    sums = (found.value + found.origin * found.among[:, :, None, :])[:, :, 1, 0].sum(axis=1)
    assert sums == pytest.approx([sum(numbers[0:2] + numbers[4:6]), sum(numbers[2:4] + numbers[6:8])])


@pytest.mark.parametrize(
    "kinds",
    [
        "whole text",
        "text whole",
        "truth whole",
        "text truth",
        "large real",
        "real large",
        "long whole",
        "decimal real",
    ],
)
def test_files_of_types_that_nothing_holds_are_refused(reader, kinds, tmp_path, refuses):
    """Types that no type holds without loss are named, with their files, before a row is read."""
    first, second = (V[kind] for kind in kinds.split())
    write_parts(tmp_path, first, second)
    with refuses(DataError, "'v'", "a.parquet", "b.parquet", remedy="same types"):
        aggregate(tmp_path, y="y", score="p", sensitive_features="g", happiness="decision * v")


def test_a_file_without_a_value_has_any_type(reader, tmp_path, refuses):
    """Where a file holds nothing, the others say what the column holds."""
    write_parts(tmp_path, V["text"], V["missing"])
    ask = {"y": "y", "score": "p", "sensitive_features": "g", "happiness": "decision * (v == '01')"}
    with refuses(DataError, "'v'", "4 of 8"):
        aggregate(tmp_path, **ask)


def test_a_dataset_that_reads_text_as_numbers_is_refused(tmp_path, refuses):
    """PyArrow would read the text 01 of a second file as the number 1 of the first."""
    write_parts(tmp_path, V["whole"], V["text"])
    with refuses(DataError, "'v'", "b.parquet"):
        aggregate(
            pyarrow.dataset.dataset(tmp_path),
            y="y",
            score="p",
            sensitive_features="g",
            happiness="decision * v",
        )


def test_small_unsigned_numbers_beside_large_ones_do_not_wrap(tmp_path):
    """In a batch that happens to hold small ones only, the negative of an unsigned number is negative all the same."""
    n = 40
    u = np.arange(1, n + 1, dtype=np.uint64)
    u[0] = 2**63
    table = {"g": np.tile(["a", "b"], n // 2), "d": np.tile([0, 1, 1, 0], n // 4), "u": u}
    happiness = Happiness(lambda decision, x: -x["u"] * decision, name="less")
    asked = {"happiness": happiness, "sensitive_features": "g", "decisions": [0, 1]}
    expected = {z: -float((u.astype(float) * table["d"])[table["g"] == z].mean()) for z in "ab"}
    halves = tmp_path / "halves"
    halves.mkdir()
    for name, some in (("a", slice(0, 20)), ("b", slice(20, n))):
        write_parquet({column: values[some] for column, values in table.items()}, halves / f"{name}.parquet")
    for rows in (as_pandas(table), as_lazy(table), str(halves)):
        assert audit("d", rows, **asked).means["less"] == pytest.approx(expected, rel=1e-9)
