"""Codes of text columns of every library, against looking at the values one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import felicific
from felicific._tables import memory
from felicific._tables.groups import name_groups, resolve_groups
from felicific._tables.memory import Coded, as_vector, code_text, distinct, encode, is_null, null_rows
from felicific.exceptions import FelicificError

WORDS = st.sampled_from(["a", "b", "", "B & C", "\\", "ü", "a\x00", "zz", "10", "9"])
UNUSED = ["never", "said"]


def chunks(values, kind):
    """An Arrow column in two chunks, each with a dictionary of its own."""
    half = len(values) // 2
    parts = [pa.array(part, type=pa.string()) for part in (values[:half], values[half:])]
    if kind == "dictionary":
        parts = [part.dictionary_encode() for part in parts]
    return pa.chunked_array(parts)


def narrow(values):
    """A dictionary of unsigned numbers, longer than it has to be, and with a text that is there twice."""
    names = [*UNUSED, *sorted({value for value in values if value is not None}), *UNUSED]
    place = [None if value is None else names.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(place, type=pa.uint8()), pa.array(names, type=pa.string()))


def known(values):
    """Every text, and some more."""
    return [*UNUSED, *sorted({value for value in values if value is not None})]


LIBRARIES = {
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas Arrow string": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": lambda values: pd.Series(pd.Categorical(values, categories=known(values))),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "numpy object": lambda values: np.array([*values, None], dtype=object)[:-1],
    "Polars String": lambda values: pl.Series(values, dtype=pl.String),
    "Polars Categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "Polars Enum": lambda values: pl.Series(values, dtype=pl.Enum(known(values))),
    "Arrow string": lambda values: chunks(values, "string"),
    "Arrow dictionary": lambda values: chunks(values, "dictionary"),
    "Arrow narrow dictionary": narrow,
}
if isinstance(pd.Series([], dtype="str").dtype, np.dtype):
    # Before pandas 3 it makes objects of other values: "None", and texts without their last NULs.
    del LIBRARIES["pandas str"]


def cut_short(values):
    """Whether this pandas takes one of the texts for what stands before its NUL, so that it may not look at them."""
    old = len(pd.factorize(np.array(["a", "a\0"], dtype=object))[1]) == 1
    return old and any("\0" in value for value in values if isinstance(value, str))


@pytest.mark.parametrize("library", LIBRARIES)
@given(values=st.lists(WORDS | st.none(), min_size=1, max_size=12), some=st.integers(0, 12))
def test_codes_say_what_the_values_say(library, values, some):
    """Of text of any library codes give the same values, missing rows, distinct values and positions as objects do."""
    column = LIBRARIES[library](values)
    coded = code_text(column, least=0)
    if coded is None:  # of objects only those that are all text
        assert library.endswith("object") or cut_short(values)
        assert None in values or cut_short(values)
        return
    plain = [None if is_null(value) else value for value in coded.tolist()]
    assert plain == values
    assert [None if is_null(value) else value for value in np.asarray(coded)] == values
    assert null_rows(coded).tolist() == [i for i, value in enumerate(values) if value is None]
    there = coded[np.array([value is not None for value in values])]
    assert distinct(there) == sorted({value for value in values if value is not None})
    asked = known(values)[:-1]
    naive = {value: i for i, value in enumerate(asked)}
    assert encode(coded, asked).tolist() == [naive.get(value, -1) for value in values]
    assert coded[some:].tolist() == coded.tolist()[some:]
    assert (coded == "b").tolist() == [value == "b" for value in values]


@given(
    values=st.lists(
        st.one_of(
            st.sampled_from([1, 1.0, True, 0, False, 0.0, "1", "True", float("nan"), None, 2**70]), WORDS
        ),
        min_size=1,
        max_size=8,
    )
)
def test_mixed_objects_are_left_alone(values):
    """1, 1.0, True and "1" are coded only where all are text, so none becomes another."""
    column = np.array([*values, None], dtype=object)[:-1]
    coded = code_text(column, least=0)
    assert (coded is None) == (any(not isinstance(value, str) for value in values) or cut_short(values))
    for made in (column, pd.Series(column, dtype=object)):
        vector = as_vector(made, "group")
        codes, index = encode(vector, known := distinct(vector)), {}
        for i, value in enumerate(known):
            index.setdefault(value, i)
        assert [known[c] for c in codes] == [
            known[index[value]] for value in vector.tolist()
        ] or None in values


@pytest.mark.parametrize("column", [[[1], [2]], [{1: 2}, "a"], ["a", ["b"]]])
def test_what_cannot_be_told_apart_is_not_coded(column):
    """Lists among objects are no text."""
    assert code_text(np.array([*column, None], dtype=object)[:-1], least=0) is None


def test_numbers_of_a_category_stay_numbers():
    """Categories that are no text keep their values."""
    column = pd.Series(pd.Categorical([2, 1, 2], categories=[3, 2, 1]))
    assert code_text(column, least=0) is None
    assert memory.take_column({"a": column}, "a", "a").tolist() == [2, 1, 2]


@given(rows=st.lists(st.tuples(WORDS, st.integers(-2, 2), st.booleans()), min_size=1, max_size=12))
def test_combinations_by_codes_are_those_of_values(rows):
    """Groups of several columns have the same names whether they are made of codes or of objects."""
    texts, numbers, truths = (list(part) for part in zip(*rows, strict=True))
    coded = code_text(pl.Series(texts, dtype=pl.String), least=0)
    fast = name_groups([coded, np.array(numbers), np.array(truths)])
    slow = name_groups([np.array([*column, None], dtype=object)[:-1] for column in (texts, numbers, truths)])
    assert isinstance(fast, Coded)
    assert not isinstance(slow, Coded)
    assert fast.tolist() == slow.tolist()
    assert distinct(fast) == distinct(slow)


def people(n=3000):
    """Enough people for codes to be used."""
    rng = np.random.default_rng(3)
    group = np.array(["f", "m", "x"], dtype=object)[rng.integers(0, 3, n)]
    return {
        "sex": group,
        "score": rng.random(n),
        "repaid": np.where(rng.random(n) < 0.5, "no", "yes").astype(object),
        "loan": rng.random(n),
    }


TABLES = {
    "pandas": lambda table, kind: pd.DataFrame(table).astype(dict.fromkeys(("sex", "repaid"), kind)),
    "polars": lambda table, kind: pl.DataFrame(
        {name: values.tolist() for name, values in table.items()}
    ).with_columns(pl.col("sex", "repaid").cast(pl.Categorical if kind == "category" else pl.String)),
    "arrow": lambda table, kind: pa.table(
        {
            name: pa.array(values).dictionary_encode()
            if kind == "category" and name in ("sex", "repaid")
            else pa.array(values)
            for name, values in table.items()
        }
    ),
}


@pytest.mark.parametrize("kind", ["str", "category"])
@pytest.mark.parametrize("library", TABLES)
def test_sums_are_the_same_from_every_library(library, kind):
    """Text columns of every library, as groups and as labels, give the sums of object arrays, number by number."""
    table = people()

    def sums(rows):
        return felicific.aggregate(
            rows,
            score="score",
            y="repaid",
            sensitive_features="sex",
            happiness={
                "funding": lambda decision, x, group: (decision == "yes") * x["loan"] * (group != "m")
            },
        )

    assert sums(TABLES[library](table, kind)).to_json() == sums(table).to_json()


@pytest.mark.parametrize("library", TABLES)
def test_a_category_without_a_value_names_the_row(library):
    """A missing group of a category is refused in the same words as that of objects."""
    table = people()
    table["sex"][7] = None

    def refused(rows):
        with pytest.raises(FelicificError) as caught:
            felicific.aggregate(
                rows,
                score="score",
                y="repaid",
                sensitive_features="sex",
                happiness=lambda decision: 1.0 * (decision == "yes"),
            )
        return str(caught.value)

    assert "row 7" in refused(TABLES[library](table, "category"))
    assert refused(TABLES[library](table, "category")) == refused(table)


LETTERS = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00aé😀"), max_size=9)


@given(
    texts=st.lists(LETTERS, min_size=1, max_size=12),
    places=st.lists(st.integers(0, 11), min_size=1, max_size=80),
    width=st.integers(1, 12),
    layout=st.sampled_from(["as it is", "backwards", "every other", "big-endian"]),
    chunk=st.sampled_from([1, 7, 1000]),
)
def test_fixed_letters_by_codes_say_what_numpy_says(texts, places, width, layout, chunk):
    """Text of NumPy's own type: padded or cut, of any width, order of bytes and stride, zero letters within."""
    column = np.array([texts[i % len(texts)] for i in places], dtype=f"U{width}")
    if layout == "big-endian":
        column = column.astype(f">U{width}")
    column = {"backwards": column[::-1], "every other": np.repeat(column, 2)[::2]}.get(layout, column)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "LETTERS_CHUNK", chunk)
        patched.setattr(memory, "LETTERS_FIRST", chunk)
        coded = code_text(column, 1)
    assert coded is not None
    assert coded.tolist() == column.tolist()
    assert distinct(coded) == distinct(column)
    assert encode(coded, distinct(column)).tolist() == encode(column, distinct(column)).tolist()


@pytest.mark.parametrize("limit", ["BITS", "TEXTS", "LETTERS"])
def test_letters_that_codes_do_not_tell_apart_stay_letters(limit, monkeypatch):
    """Two texts of one hash, too many texts, and too long ones: nothing is coded, and nothing mistaken."""
    column = np.array([f"branch {i % 40}" for i in range(2000)])
    assert code_text(column) is not None
    monkeypatch.setattr(memory, limit, 4)
    assert code_text(column) is None


def test_sums_by_letters_are_those_by_objects():
    """Groups, labels and the baseline's decisions as text of NumPy's own type give the sums of objects."""
    rng = np.random.default_rng(3)
    n = 3000
    group, score = np.array(["north", "south", "é"])[rng.integers(0, 3, n)], rng.random(n)
    y = np.where(rng.random(n) < score, "yes", "no")
    baseline = np.where(score > 0.4, "yes", "no")
    ask = {"happiness": "statistical_parity", "score": score}
    found = [
        felicific.aggregate(
            score[:, None], y=kind(y), sensitive_features=kind(group), baseline=kind(baseline), **ask
        )
        for kind in (np.asarray, lambda column: column.astype(object))
    ]
    assert found[0].to_json() == found[1].to_json()


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_that_say_nothing_are_found_without_reading(library):
    """Missing texts of every library, as looking at each value finds them; and what is missing of numbers."""
    values = ["a", None, "b", "a", None]
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    column = LIBRARIES[library](values)
    made = table.get(type(column).__module__.split(".")[0], dict)({"z": column})
    assert null_rows(memory.take_entries(made, "z", "the groups")).tolist() == [1, 4]
    numbers = pl.DataFrame({"whole": [1, None, 3], "real": [0.5, None, float("nan")], "all": [1, 2, 3]})
    rows = [null_rows(memory.take_entries(numbers, name, "x")).tolist() for name in numbers.columns]
    assert rows == [[1], [1, 2], []]


def test_polars_text_of_which_the_first_rows_do_not_say_all():
    """A text that comes late, one that is missing, and more texts than are compared, are coded all the same."""
    late = ["a", "b"] * 1000 + ["c"]
    many = [f"branch {i % 40}" for i in range(2000)]
    for values in (["a", "b"] * 1000, late, [*late, None], many):
        assert code_text(pl.Series(values)).tolist() == values


@pytest.mark.parametrize("values", [["a", None, "b", "b"], [1, None, 2, 2], [True, None, False, True]])
def test_nobody_whose_value_is_missing_gets_that_of_another(values):
    """Few rows of an Arrow dictionary in chunks miss what they miss, whatever the dictionary is of."""
    half = [pa.array(part).dictionary_encode() for part in (values[:2], values[2:])]
    for column in (pa.chunked_array(half), pa.chunked_array([pa.array(values).dictionary_encode()])):
        assert null_rows(as_vector(column, "group")).tolist() == [1]
        with pytest.raises(FelicificError, match="missing in 1 of 4 rows, first in row 1"):
            resolve_groups(np.zeros((4, 1)), column)


def test_objects_of_one_text_are_one():
    """Objects are told apart by where they are; two that say the same are one text, of few or of many objects."""
    for n in (12, 3_000):
        values = ["".join(("ab", "c"[: i % 2])) for i in range(n)]
        assert len(set(map(id, values))) > 6
        column = np.array(values, dtype=object)
        for some in (column, column[::2], column[::-1]):
            coded = code_text(some, least=0)
            assert coded.tolist() == some.tolist()
            assert len(coded.names) == len(set(some.tolist()))
