"""Text by codes: a column that says few things often is a list of what it says, and a number for every row.

Libraries of tables know such columns (categories, dictionaries), and make them of text faster than Python can. Groups,
labels and predictions are read so; every value is then looked at once, and not once for every row. Other columns, and
objects that are not all text (1, 1.0 and True are one to most libraries), stay arrays. No library is imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Array, Codes, Truths

#: Rows that are looked at together: they stay in the processor's cache.
CHUNK = 131_072

#: Fewer rows than this are as quick one by one.
FEW_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of text; wherever an array is asked for it is one of objects.

    Attributes
    ----------
    codes : array of shape (n,)
        Where in ``names`` the text of each row is; -1 where it is missing.
    names : tuple of str
        The texts; some may be of no row, or there twice.
    null : object
        What stands for a missing one.
    """

    codes: Array
    names: tuple[str, ...]
    null: Any = None

    #: What it is as an array.
    dtype = np.dtype(object)
    ndim = 1

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int]:
        """How many rows there are."""
        return (len(self.codes),)

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return replace(self, codes=codes) if np.ndim(codes) else self._table[codes]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = self._table[self.codes]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __eq__(self, other: object) -> Truths:  # type: ignore[override]  # row by row, as arrays do it
        return np.asarray(self.places([other]) == 0 if isinstance(other, str) else np.asarray(self) == other)

    __hash__ = None  # type: ignore[assignment]  # no more than an array has

    def astype(self, dtype: Any) -> Array:
        """The values as an array of this type."""
        return np.asarray(self).astype(dtype, copy=False)

    def tolist(self) -> list[Any]:
        """The values."""
        return list(map(self._table.tolist().__getitem__, self.codes.tolist()))

    @property
    def null_rows(self) -> Codes:
        """Where it is missing."""
        return np.flatnonzero(self.codes < 0)

    def used(self) -> set[Any]:
        """The values that some row has."""
        present = np.zeros(len(self.names) + 1, dtype=bool)
        for start in range(0, len(self), CHUNK):
            present |= np.bincount(self.codes[start : start + CHUNK] + np.intp(1), minlength=len(present)) > 0
        values = [self.null, *self.names]
        return {values[i] for i in np.flatnonzero(present).tolist()}

    def places(self, levels: Sequence[Any]) -> Codes:
        """Position of every value in ``levels``; -1 where it is not known."""
        index = {value: position for position, value in enumerate(levels)}
        place = np.array([*(index.get(name, -1) for name in self.names), -1], dtype=np.intp)
        positions = np.empty(len(self), dtype=np.intp)
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            place.take(self.codes[part], out=positions[part], mode="wrap")
        return positions

    @property
    def _table(self) -> Array:
        """The values by their codes; the last is that of -1."""
        table = np.empty(len(self.names) + 1, dtype=object)
        table[:-1], table[-1] = self.names, self.null
        return table


#: What a column holds: its values, or of text its codes.
Entries: TypeAlias = Array | Coded


def code_text(column: Any, least: int = FEW_ROWS) -> Coded | None:
    """A column of text by its codes; None for any other, and of fewer than ``least`` rows."""
    library = type(column).__module__.split(".")[0]
    reader = READERS.get(library)
    if reader is None or getattr(column, "ndim", 1) != 1 or len(column) < least:
        return None
    return reader(column)


def _of_numpy(column: Any) -> Coded | None:
    """NumPy's own text, where it says few things; objects that are all text, if pandas is there anyway."""
    if not isinstance(column, np.ndarray) or not len(column):
        return None
    if column.dtype.kind == "U":
        return _of_letters(column)
    pandas = sys.modules.get("pandas")
    if pandas is None or column.dtype.kind != "O":
        return None
    if not isinstance(column[0], str):
        return None
    try:
        if _ends_at_nul(column):
            return None
        codes, names = pandas.factorize(column)
    except TypeError:  # what cannot be told apart is no text, and is refused where it is looked at
        return None
    # What equals a text is one. Several things stand for a missing one, and are left as they are.
    return _of_names(codes, names.tolist(), None) if codes.min() >= 0 else None


def _ends_at_nul(column: Any) -> bool:
    """Whether pandas would take a text for what stands before a NUL in it, as it did before version 3."""
    if int(sys.modules["pandas"].__version__.split(".")[0]) >= 3:
        return False
    return any("\0" in text for text in column.tolist() if isinstance(text, str))


#: Texts of more letters, or of more different values, are told apart as NumPy does it.
LETTERS, TEXTS = 64, 1_000

#: The bits of a hash that say where to look.
BITS = 16

#: Rows whose letters are looked at together.
LETTERS_CHUNK = 8_192


def _of_letters(column: Array) -> Coded | None:
    """Text of a fixed number of letters; None where there are too many, or two values have one hash.

    All letters of a row are numbers beside each other, and what is left of them is filled with zeros, so equal texts
    are equal numbers. A hash says which text it may be; that it is that one is looked up in all its numbers.
    """
    letters = column.dtype.itemsize // 4
    if not 0 < letters <= LETTERS:
        return None
    width = (letters + 1) // 2
    factors = _FACTORS[:width]
    by_hash = np.full(2**BITS, -1, dtype=np.int16)
    codes = np.empty(len(column), dtype=np.int16)
    rows: list[int] = []
    seen = np.empty((0, width), dtype=np.uint64)
    padded = np.zeros((LETTERS_CHUNK, 2 * width), dtype=np.uint32)
    for start in range(0, len(column), LETTERS_CHUNK):
        part = np.ascontiguousarray(column[start : start + LETTERS_CHUNK])
        if letters % 2:
            padded[: len(part), :letters] = part.view(np.uint32).reshape(len(part), letters)
            numbers = padded[: len(part)].view(np.uint64)
        else:
            numbers = part.view(np.uint64).reshape(len(part), width)
        place = _hashed(numbers, factors)
        code = by_hash.take(place)
        new = np.flatnonzero(code < 0)
        if len(new):
            places, firsts = np.unique(place[new], return_index=True)
            if len(rows) + len(places) > TEXTS:
                return None
            by_hash[places] = np.arange(len(rows), len(rows) + len(places))
            rows += (start + new[firsts]).tolist()
            seen = np.concatenate([seen, numbers[new[firsts]]])
            code = by_hash.take(place)
        if any((seen[:, j].take(code) != numbers[:, j]).any() for j in range(width)):
            return None
        codes[start : start + len(part)] = code
    return Coded(codes, tuple(column[rows].tolist()))


#: Odd numbers to multiply by, of many different bits.
_FACTORS = np.array(
    [(0x9E3779B97F4A7C15 * (2 * j + 1) ** 3 | 1) % 2**64 for j in range(LETTERS // 2)], dtype=np.uint64
)


def _hashed(numbers: NDArray[np.uint64], factors: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Some bits of a hash of every row of numbers."""
    mixed = numbers[:, 0] * factors[0]
    for j in range(1, numbers.shape[1]):
        mixed ^= mixed >> np.uint64(29)
        mixed += numbers[:, j] * factors[j]
    mixed ^= mixed >> np.uint64(32)
    mixed *= factors[0]
    return np.asarray((mixed >> np.uint64(64 - BITS)).astype(np.intp))


def _of_pandas(column: Any) -> Coded | None:
    dtype = getattr(column, "dtype", None)
    if hasattr(column, "cat"):
        names = column.cat.categories.tolist()
        return _of_names(column.cat.codes.to_numpy(), names, None)
    if not hasattr(column, "factorize") or dtype is None:
        return None
    if getattr(dtype, "kind", "") == "O" and isinstance(dtype, np.dtype):
        return _of_numpy(column.to_numpy())
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(column.array.__arrow_array__())
    if getattr(dtype, "name", "") not in ("str", "string"):
        return None
    if _ends_at_nul(column):
        return None
    codes, values = column.factorize()
    return _of_names(codes, values.tolist(), dtype.na_value)


def _of_polars(column: Any) -> Coded | None:
    import polars as pl

    if not isinstance(column, pl.Series) or column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return None
    distinct = column.unique().drop_nulls()
    if column.dtype == pl.String:
        distinct = distinct.sort()
        names, codes = distinct.to_list(), column.cast(pl.Enum(distinct)).to_physical()
    else:
        # The numbers of a category may be those of all columns of the process.
        numbers, codes = distinct.to_physical().to_list(), column.to_physical()
        names = [""] * (max(numbers, default=-1) + 1)
        for number, name in zip(numbers, distinct.cast(pl.String).to_list(), strict=True):
            names[number] = name
    codes = codes.cast(pl.Int64).fill_null(-1) if codes.null_count() else codes
    return Coded(codes.to_numpy(), tuple(names))


def _of_arrow(column: Any) -> Coded | None:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray | pa.Array):
        return None
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    coded = pa.types.is_dictionary(chunked.type)
    kind = chunked.type.value_type if coded else chunked.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    # Two chunks may have two dictionaries.
    chunks = (chunked if coded else chunked.dictionary_encode()).unify_dictionaries().chunks
    if not chunks or any(chunk.dictionary.null_count for chunk in chunks):
        return None
    indices = [chunk.indices for chunk in chunks]
    parts = [np.asarray(part.cast(pa.int64()).fill_null(-1) if part.null_count else part) for part in indices]
    names = tuple(chunks[0].dictionary.to_pylist())
    return Coded(parts[0] if len(parts) == 1 else np.concatenate(parts), names)


def _of_names(codes: Array, names: list[Any], null: Any) -> Coded | None:
    return Coded(codes, tuple(names), null) if all(type(name) is str for name in names) else None


#: How a column of each library becomes codes.
READERS: dict[str, Callable[[Any], Coded | None]] = {
    "numpy": _of_numpy,
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}
