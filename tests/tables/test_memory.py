"""Frames: the fast ways to count, find and compare values against the obvious ones."""

import numpy as np
import pytest

from felicific._tables.memory import distinct, encode, row_argmax, take_column
from felicific.exceptions import DataError


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
@pytest.mark.parametrize("end", ["least", "most", "zero", "wide"])
def test_whole_numbers_are_found_wherever_they_lie(dtype, end):
    """Codes and distinct values of whole numbers are those of a dictionary, at both ends of every type."""
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    low, high = {
        "least": (least, min(least + 150, most)),
        "most": (max(most - 150, least), most),
        "zero": (0, 100),
        "wide": (least, most),
    }[end]
    values = np.random.default_rng(0).integers(low, high, 500, dtype=dtype, endpoint=True)
    assert distinct(values) == sorted(set(values.tolist()))
    known = sorted(set(values[:40].tolist()))[::-1]
    place = {value: position for position, value in enumerate(known)}
    assert encode(values, known).tolist() == [place.get(value, -1) for value in values.tolist()]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 12])
def test_of_equal_numbers_the_first_is_the_largest(k):
    """The largest of a row is NumPy's, ties included."""
    array = np.random.default_rng(k).integers(0, 4, (300, k)).astype(float)
    assert row_argmax(array).tolist() == array.argmax(axis=1).tolist()


@pytest.mark.parametrize("asked", ["race", "Race", "ethnicity"])
def test_a_name_that_holds_the_word_is_suggested_first(refuses, asked):
    """A column whose name holds what was asked for as a word comes before one that is spelled alike."""
    table = {"age": [1], "rate": [1], "Race/Ethnicity (self-reported)": [1], "embrace": [1]}
    with refuses(DataError, repr(asked), remedy="Did you mean 'Race/Ethnicity (self-reported)'"):
        take_column(table, asked, "the groups")
