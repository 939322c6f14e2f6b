r"""Rows that were seen before: a small sketch of a table by which other rows are told from the same ones.

Kept are hashes of the rows that occur once, at most some thousands: those with the smallest hashes, so that the rows
of another table below the same limit are a fair sample of it. Of new people some look like people who were seen. With
:math:`f_r` rows' contents that occur r times among n, a new row is expected to equal one of the
:math:`f_1` with probability :math:`2 f_2 / n` (Good 1953), and a row that was seen does with probability
:math:`f_1 / n`; in between lies a mixture of both.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import column_names, count_rows, take_column
from felicific._typing import Array, Table

Hashes = NDArray[np.uint64]

#: Hashes that are kept, and columns that are looked at: enough to tell rows apart at any size.
KEPT, COLUMNS = 4096, 32

#: Fewer rows than this that look the same prove nothing, nor do rows of which fewer than so many occur once.
FEWEST, UNIQUE = 5, 0.5


@dataclass(frozen=True, eq=False)
class SeenRows:
    """A sketch of the rows of a table.

    Attributes
    ----------
    names : list
        The columns that were looked at.
    rows, ordered : int
        How many rows, and a sum of their hashes in their order.
    kept : array
        The smallest hashes of rows that occur once, in order.
    limit : int
        The largest hash that would have been kept.
    once, again : float
        Share of rows that occur once, and of new rows that may well look like one of these.
    """

    names: list[Any]
    rows: int
    ordered: int
    kept: Hashes
    limit: int
    once: float
    again: float

    @classmethod
    def of(cls, table: Table) -> SeenRows:
        """Remember the rows of a table."""
        known = list(dict.fromkeys(column_names(table)))
        names = known[:: math.ceil(len(known) / COLUMNS) or 1]
        hashes = row_hashes(table, names)
        values, counts = np.unique(hashes, return_counts=True)
        single = values[counts == 1]
        limit = int(single[KEPT - 1]) if len(single) > KEPT else 2**64 - 1
        n, twice = max(len(hashes), 1), int((counts == 2).sum())
        return cls(
            names,
            len(hashes),
            _ordered(hashes) if len(values) > 1 else -1,
            single[:KEPT],
            limit,
            len(single) / n,
            (2.0 * (twice + 4.0 * math.sqrt(twice + 1.0))) / n,
        )

    def share(self, table: Table) -> float:
        """About which share of these rows were seen; 0 where they cannot be told from new ones."""
        known = column_names(table)
        if not all(name in known for name in self.names):
            return 0.0
        hashes = row_hashes(table, self.names)
        if len(hashes) == self.rows and _ordered(hashes) == self.ordered:
            return 1.0
        looked_at = hashes[hashes <= np.uint64(self.limit)]
        same = int(np.isin(looked_at, self.kept, kind="sort").sum())
        if same < FEWEST or self.once < max(UNIQUE, self.again):
            return 0.0
        found = same / len(looked_at)
        error = math.sqrt(self.again * (1.0 - min(self.again, 1.0)) / len(looked_at))
        return min(found / self.once, 1.0) if found > self.again + 4.0 * error else 0.0


def row_hashes(table: Table, names: list[Hashable]) -> Hashes:
    """A hash of every row; columns are added up, so that their order does not matter."""
    hashes = np.zeros(count_rows(table), dtype=np.uint64)
    for name in names:
        start = np.uint64(zlib.crc32(str(name).encode("utf-8", "backslashreplace")))
        hashes += _mixed(_bits(take_column(table, name, "the rows that were fitted on")) ^ _mixed(start))
    return np.asarray(_mixed(hashes))


def _bits(column: Array) -> Hashes:
    """Every value as 64 bits, whatever type of number it is."""
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64) + 0.0  # there is one zero
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if column.dtype.kind in "mM":
        return column.astype(f"{column.dtype.kind}8[us]").astype(np.int64).view(np.uint64)
    texts = list(map(str, column.tolist()))
    numbered = {text: zlib.crc32(text.encode("utf-8", "backslashreplace")) for text in set(texts)}
    return np.array([numbered[text] for text in texts], dtype=np.uint64)


def _mixed(bits: Any) -> Any:
    """Bits that look random (the end of splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _ordered(hashes: Hashes) -> int:
    return int((hashes * np.arange(1, 2 * len(hashes), 2, dtype=np.uint64)).sum(dtype=np.uint64))
