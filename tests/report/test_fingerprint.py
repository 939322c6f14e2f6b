"""One SHA-256 of people: the same in every library, and another one when anything about them is another."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from felicific._people.people import People
from felicific._problem.missing_labels import MissingLabels
from felicific._problem.problem import Problem
from felicific._report.data import people_sha256

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12)

#: Columns of four rows that mean the same in every library: a changed value, and the column.
COLUMNS = {
    "whole": (7, [1, 2, 3, 4]),
    "fraction": (0.5, [0.25, -0.0, 1e300, 4.0]),
    "large": (2**53 + 3, [2**53, 2**53 + 1, -(2**62) - 1, 5]),
    "truth": (False, [True, False, True, True]),
    "text": ("x", ["", "a", "ä\x1f", "b,c"]),
    "surrogate": ("\ud801", ["\ud800", "a", "b", "c"]),
    "text with a gap": (None, ["a", None, "", "c"]),
    "gap": (1.0, [None, 2.5, 3.0, None]),
    "whole with a gap": (9, [1, None, 3, 4]),
    "large with a gap": (2**60 + 1, [2**60, None, 2**61 + 1, 4]),
    "truth with a gap": (True, [False, None, True, True]),
    "nothing": (0.0, [None, None, None, None]),
    "day": (DAY + dt.timedelta(1), [DAY, DAY, None, DAY]),
    "time": (NOON + dt.timedelta(microseconds=1), [NOON, None, NOON, NOON]),
    "while": (dt.timedelta(2), [dt.timedelta(1), None, dt.timedelta(hours=5), dt.timedelta(0)]),
}
IN_LIBRARIES = [name for name in COLUMNS if name != "surrogate"]


def people(x, *, group="ffmm", y=(0, 1, 0, 1), **known):
    problem = Problem.of(np.array([0, 1]), "decision")
    return People.of(x, problem, group=np.array(list(group)), y=None if y is None else np.array(y), **known)


def sha(x, **known):
    return people_sha256(people(x, **known))


# ---------------------------------------------------------------------------------------------------------
# The same people


@pytest.mark.parametrize("name", IN_LIBRARIES)
def test_every_library_keeps_the_same_people(name):
    """Polars, PyArrow and a dict of arrays have the fingerprint of pandas, column by column."""
    values = COLUMNS[name][1]
    arrow = pa.table({"c": values})
    polars = pl.DataFrame({"c": values})
    found = {
        sha(table)
        for table in (
            arrow,
            polars,
            {"c": np.array([*values, None], dtype=object)[:-1]},
            pd.DataFrame({"c": pd.Series(values, dtype=object)}),
        )
    }
    assert len(found) == 1
    if name != "large with a gap":  # of which pandas makes floats
        nullable = pd.DataFrame({"c": pd.Series(values, dtype=object).convert_dtypes()})
        assert found == {sha(table) for table in (pd.DataFrame({"c": values}), arrow.to_pandas(), nullable)}


def test_all_columns_at_once():
    """Also together, in another order of the columns; the row's own index is nothing of the person."""
    x = {name: COLUMNS[name][1] for name in IN_LIBRARIES}
    one = pd.DataFrame(x).assign(**{"large with a gap": pd.array(x["large with a gap"], dtype="Int64")})
    other = pl.DataFrame(x).select(IN_LIBRARIES[::-1])
    assert sha(one) == sha(other) == sha(pa.table(x)) == sha(one.set_axis([9, 8, 7, 6]))


def test_categories_are_their_values():
    """A category, of any library, is its value."""
    values = ["a", None, "b", "a"]
    assert (
        sha({"c": np.array(values, dtype=object)})
        == sha(pd.DataFrame({"c": pd.Categorical(values, categories=["b", "c", "a"])}))
        == sha(pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical)}))
        == sha(pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(["b", "a"]))}))
        == sha(pa.table({"c": pa.array(values).dictionary_encode()}))
    )


@pytest.mark.parametrize(
    "width", ["i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "O", "decimal"]
)
def test_widths_are_no_difference(width):
    """Equal numbers of any type are equal, and so are the group, the label, the weight and the cluster."""
    values = np.array([1, 2, 3, 4])
    exact = [Decimal(3), Decimal(3), Decimal(4), Decimal(4)]
    column = (
        np.array([Decimal(int(value)) for value in values]) if width == "decimal" else values.astype(width)
    )
    known = {"weight": [1.0, 2.0, 1.0, 3.0], "cluster": [3, 3, 4, 4]}
    told = known | {"cluster": np.array(exact) if width == "decimal" else np.array([3, 3, 4, 4], width)}
    assert sha({"c": column}, **told) == sha({"c": values}, **known)


def test_times_of_a_zone_are_those_of_utc():
    """As everywhere in the library; nanoseconds that are whole microseconds are those."""
    zone = pd.Series(pd.to_datetime(["2024-02-29 12:00"] * 4)).dt.tz_localize("Europe/Berlin")
    plain = pd.Series(pd.to_datetime(["2024-02-29 11:00"] * 4))
    assert sha(pd.DataFrame({"c": zone})) == sha(pd.DataFrame({"c": plain.astype("datetime64[ns]")}))
    fine = plain.astype("datetime64[ns]") + pd.Timedelta(1, "ns")
    assert sha(pd.DataFrame({"c": fine})) != sha(pd.DataFrame({"c": plain}))


def test_an_array_is_a_table_of_numbered_columns():
    """As pandas numbers them; and lists of rows, and rows of objects, are arrays."""
    x = np.arange(8.0).reshape(4, 2)
    same = [x, x.astype(int), np.asfortranarray(x), x.astype(object), pd.DataFrame(x)]
    assert len({sha(one) for one in same}) == 1
    assert len({sha(x), sha(x[:, ::-1]), sha({"0": x[:, 0], "1": x[:, 1]})}) == 3


def test_sparse_matrices_are_told_by_what_they_hold():
    """In any format and order, with zeros that are stored; another value or place is another matrix."""
    dense = np.array([[0, 1.0], [2, 0], [0, 0], [0, 4]])
    matrix = scipy.sparse.csr_matrix(dense)
    stored = scipy.sparse.coo_matrix(([1.0, 2, 2, 2, 0], ([0, 1, 3, 3, 2], [1, 0, 1, 1, 0])), (4, 2))
    assert sha(matrix) == sha(matrix.tocsc()) == sha(stored.tocsr()) == sha(matrix.astype("f4"))
    assert len({sha(scipy.sparse.csr_matrix(one)) for one in (dense, dense[:, ::-1], 2 * dense)}) == 3
    assert len({sha(scipy.sparse.csr_matrix(shape)) for shape in ((4, 2), (4, 3))}) == 2


def test_what_is_decided_is_no_part_of_it():
    """Neither is what a model says: those are not the people."""
    x, score = {"c": [1, 2, 3, 4]}, np.array([0.1, 0.9, 0.2, 0.8])
    decided = {"baseline": np.array([0, 1, 1, 1]), "score": score, "decided": np.array([1, 1, 1, 1])}
    assert sha(x) == sha(x, **decided) == sha(x, weight=np.ones(4))


def test_a_row_of_weight_zero_is_absent():
    """Such rows are no people."""
    x = {"c": np.array([1, 2, 3, 4, 5])}
    more = {"group": "ffmmm", "y": (0, 1, 0, 1, 1), "weight": [1.0, 2, 1, 1, 0]}
    assert sha(x, **more) == sha({"c": x["c"][:4]}, weight=[1.0, 2, 1, 1])


# ---------------------------------------------------------------------------------------------------------
# Others


@pytest.mark.parametrize("name", list(COLUMNS))
def test_every_change_tells(name):
    """A changed value, two rows that change places, and another name of the column give another fingerprint."""
    changed, values = COLUMNS[name]
    tables = [
        {"c": values},
        {"c": [changed, *values[1:]]},
        {"c": [*values[:2], values[3], values[2]]},
        {"c": [values[1], values[0], *values[2:]]},
        {"C": values},
        {"c": values, "d": values},
        {"c": values[:3], "group": "ffm", "y": (0, 1, 0)},
    ]
    if name in ("whole", "fraction", "text", "large"):
        assert len({sha(_objects(table)) for table in tables[:3]}) == 3
    found = {sha(_objects({k: v for k, v in t.items() if k in "cCd"}), **_known(t)) for t in tables}
    swapped = len({tuple(map(str, table["c"])) for table in tables[:4] if "c" in table})
    assert len(found) == swapped + 3


def _objects(table):
    return {name: np.array([*values, None], dtype=object)[:-1] for name, values in table.items()}


def _known(table):
    return {name: table[name] for name in ("group", "y") if name in table}


def test_every_role_tells():
    """Another group, label, weight or cluster of somebody, or none at all."""
    x = {"c": [1, 2, 3, 4]}
    told = [
        {},
        {"group": "fmmm"},
        {"y": (0, 1, 1, 1)},
        {"y": None},
        {"weight": [1.0, 1, 1, 2]},
        {"weight": [1.0, 1, 2, 1]},
        {"cluster": [1, 1, 2, 2]},
        {"cluster": [1, 2, 2, 2]},
        {"cluster": ["1", "2", "2", "2"]},
    ]
    assert len({sha(x, **known) for known in told}) == len(told)


def test_a_missing_label_is_none_of_the_others():
    """Where labels are missing, People hold any in their place, which is no label of theirs."""
    x, asked = {"c": [1, 2, 3, 4]}, {"missing": MissingLabels()}
    problem = Problem.of(np.array([0, 1]), "equal_opportunity")
    known = {"group": np.array(list("ffmm"))} | asked
    shas = [
        people_sha256(People.of(x, problem, y=np.array(y, dtype=object), **known))
        for y in ([0, 1, 0, 1], [0, 1, None, 1], [None, 1, 0, 1])
    ]
    assert len(set(shas)) == 3
    floats = People.of(x, problem, y=np.array([0, 1, np.nan, 1]), **known)
    assert people_sha256(floats) == shas[1]


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=3)
)


@given(st.lists(CELLS, min_size=4, max_size=4), st.lists(CELLS, min_size=4, max_size=4))
@examples
def test_different_values_are_told_apart(one, other):
    """Of any two columns of mixed values: the same fingerprint exactly if they are equal, as Python compares them."""
    same = all(
        a is b if a is None or b is None else isinstance(a, str) == isinstance(b, str) and a == b
        for a, b in zip(one, other, strict=True)
    )
    assert (sha(_objects({"c": one})) == sha(_objects({"c": other}))) == same
    assert sha(_objects({"c": one})) == sha(_objects({"c": list(one)}))


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=4)


@given(st.lists(TEXTS, min_size=4, max_size=4), st.lists(TEXTS, min_size=4, max_size=4))
@examples
def test_nothing_moves_from_one_text_to_the_next(one, other):
    """Text of any characters, lone surrogates too: equal exactly if every text is."""
    assert (sha(_objects({"c": one})) == sha(_objects({"c": other}))) == (one == other)
