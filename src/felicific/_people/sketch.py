"""A sketch of the rows that something was fitted on: enough to recognise them later, and no value of anybody.

A row's hash is that of its first four numeric columns. Kept are the 4,096 least of the distinct hashes. Of other rows
whose hash is not above the largest of these, the share that is kept estimates the share that was fitted on.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import as_numbers, column_names, count_rows, numeric_names, take_columns
from felicific._typing import Array, Table

Hashes = NDArray[np.uint64]

#: Hashes that are kept, and columns that a hash is made of.
KEPT, COLUMNS = 4096, 4

#: Rows that are hashed together: they stay in the processor's cache.
CHUNK = 8_192

#: Rows that tell how many are alike; of more, about so many with the least hashes.
ENOUGH = 16 * KEPT

#: Where a smaller share of the fitted rows have a hash of their own, new people look like them by chance.
DISTINCT = 0.9

#: Nobody is told of a smaller share of fitted rows than this, beyond those that look the same by chance.
FEW = 0.05


@dataclass(frozen=True, eq=False)
class RowSketch:
    """A sketch of some rows.

    Attributes
    ----------
    names : list
        The columns that hashes are made of.
    least : array
        The least of the distinct hashes, in order; none where rows cannot be told apart.
    repeats : float
        Share of the rows whose hash others have too: about so many new rows look like one of these.
    """

    names: list[Any]
    least: Hashes
    repeats: float = 0.0

    @classmethod
    def of(cls, table: Table, key: Hashable = None) -> RowSketch:
        """The sketch of a table; the column of the ``key`` says who somebody is, and may be another one elsewhere."""
        names = numeric_names(table, COLUMNS, without=key)
        if names:
            hashes = row_hashes(table, names)
            if len(hashes) > ENOUGH:
                hashes = hashes[hashes <= np.uint64((2**64 - 1) * ENOUGH // len(hashes))]
            values, counts = np.unique(hashes, return_counts=True)
            if len(values) >= DISTINCT * counts.sum():
                return cls(names, values[:KEPT], 1.0 - float((counts == 1).sum() / counts.sum()))
        return cls(names, np.empty(0, dtype=np.uint64))

    def share(self, table: Table) -> float:
        """About which share of these rows were fitted on; 0 where they cannot be told from others."""
        if not len(self.least) or not set(self.names) <= set(column_names(table)):
            return 0.0
        hashes = row_hashes(table, self.names)
        if len(self.least) == KEPT:
            hashes = hashes[hashes <= self.least[-1]]
        share = float(np.isin(hashes, self.least, kind="sort").mean()) if len(hashes) else 0.0
        return share if share > self.repeats + FEW else 0.0


def row_hashes(table: Table, names: Sequence[Hashable]) -> Hashes:
    """A hash of every row; what columns contribute is added up, so that their order does not matter."""
    hashes = np.zeros(count_rows(table), dtype=np.uint64)
    columns = take_columns(table, names, "the rows that were fitted on")
    starts = [zlib.crc32(str(name).encode("utf-8", "backslashreplace")) for name in names]
    factors = _mixed(np.array(starts, dtype=np.uint64)) | np.uint64(1)
    for start in range(0, len(hashes), CHUNK):
        part = slice(start, start + CHUNK)
        for factor, values in zip(factors, columns, strict=True):
            bits = _bits(values[part])
            # Of short numbers the first bits alone say something: those that follow say it too.
            hashes[part] += (bits ^ (bits >> np.uint64(32))) * factor
        hashes[part] = _mixed(hashes[part])
    return hashes


def _bits(column: Array) -> Hashes:
    """Every value as 64 bits, whatever type of number it is."""
    column = as_numbers(column)
    if column.dtype.kind in "biuf":
        numbers = np.add(column, 0.0, dtype=np.float64)  # there is one zero
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    if column.dtype.kind in "mM":
        return column.astype(f"{column.dtype.kind}8[us]").astype(np.int64).view(np.uint64)
    texts = list(map(str, column.tolist()))
    numbered = {text: zlib.crc32(text.encode("utf-8", "backslashreplace")) for text in set(texts)}
    return np.fromiter(map(numbered.__getitem__, texts), np.uint64, len(texts))


def _mixed(bits: Hashes) -> Hashes:
    """Bits that look random (the end of splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
