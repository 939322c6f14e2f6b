r"""Rows that were seen before: a small sketch of a table by which other rows are told from the same ones.

Kept are hashes of the rows that occur once, at most some thousands: those with the smallest hashes, so that the rows
of another table below the same limit are a fair sample of it. Of new people some look like people who were seen. With
:math:`f_r` rows' contents that occur r times among n, a new row is expected to equal one of the
:math:`f_1` with probability :math:`2 f_2 / n` (Good 1953), and a row that was seen does with probability
:math:`f_1 / n`; in between lies a mixture of both.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import column_names, count_rows, take_columns
from felicific._typing import Array, Table

Hashes = NDArray[np.uint64]

#: Hashes that are kept, and columns that are looked at: enough to tell rows apart at any size.
KEPT, COLUMNS = 4096, 32

#: Rows that tell how many occur once or twice; of more, about so many with the smallest hashes.
ENOUGH = 65_536

#: Letters of a text that are hashed one by one.
WIDEST = 64

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
        names = looked_at(column_names(table))
        return cls.of_hashes(names, row_hashes(table, names))

    @classmethod
    def of_hashes(cls, names: list[Any], hashes: Hashes) -> SeenRows:
        """Remember rows by the hashes of these columns, and of whatever else is known of them.

        Of many rows those with small hashes are enough: rows that are alike are all among them, or none is.
        """
        limit = 2**64 - 1
        if len(hashes) > ENOUGH:
            limit = limit * ENOUGH // len(hashes)
        some = hashes if len(hashes) <= ENOUGH else hashes[hashes <= np.uint64(limit)]
        values, counts = np.unique(some, return_counts=True)
        single = values[counts == 1]
        limit = int(single[KEPT - 1]) if len(single) > KEPT else limit
        n, twice = max(len(some), 1), int((counts == 2).sum())
        return cls(
            names,
            len(hashes),
            _ordered(hashes) if len(hashes) and hashes.min() < hashes.max() else -1,
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
        return self.share_of(row_hashes(table, self.names))

    def share_of(self, hashes: Hashes) -> float:
        """About which share of the rows of these hashes were seen, see :meth:`share`."""
        if len(hashes) == self.rows and _ordered(hashes) == self.ordered:
            return 1.0
        looked_at = hashes[hashes <= np.uint64(self.limit)]
        same = int(np.isin(looked_at, self.kept, kind="sort").sum())
        if same < FEWEST or self.once < max(UNIQUE, self.again):
            return 0.0
        found = same / len(looked_at)
        error = math.sqrt(self.again * (1.0 - min(self.again, 1.0)) / len(looked_at))
        return min(found / self.once, 1.0) if found > self.again + 4.0 * error else 0.0


def looked_at(names: Sequence[Any]) -> list[Any]:
    """The columns that rows are told apart by: evenly chosen, where there are many."""
    known = list(dict.fromkeys(names))
    return known[:: math.ceil(len(known) / COLUMNS) or 1]


def row_hashes(table: Table, names: list[Hashable]) -> Hashes:
    """A hash of every row."""
    return np.asarray(_mixed(_row_sums(table, names)))


def hashes_beside(table: Table, names: list[Hashable], beside: Mapping[str, Array]) -> tuple[Hashes, Hashes]:
    """Hashes of the rows by these columns alone, and with what is known of them besides."""
    sums = _row_sums(table, names)
    # No column has a name that begins like this.
    more = sum((_column_sums(f"\0{name}", values) for name, values in beside.items()), start=sums)
    return np.asarray(_mixed(sums)), np.asarray(_mixed(more))


def _row_sums(table: Table, names: list[Hashable]) -> Hashes:
    """What columns add to the hash of every row; they are added up, so that their order does not matter."""
    sums = np.zeros(count_rows(table), dtype=np.uint64)
    for name, values in zip(names, take_columns(table, names, "the rows that were fitted on"), strict=True):
        sums += _column_sums(name, values)
    return sums


def _column_sums(name: Hashable, values: Array) -> Hashes:
    """What one column adds to the hash of every row."""
    start = np.uint64(zlib.crc32(str(name).encode("utf-8", "backslashreplace")))
    return np.asarray(_mixed(_bits(values) ^ _mixed(start)))


def text_hashes(values: Array) -> Hashes:
    """A hash of every string or whole number, by its text: 1 and "1" have the same one."""
    texts = values.tolist() if values.dtype.kind not in "iu" else []
    long = any(len(str(text)) > WIDEST for text in texts)
    wide = np.array([_shortened(str(text)) for text in texts]) if long else values.astype(np.str_)
    letters = np.ascontiguousarray(wide).view(np.uint32).reshape(len(values), -1)
    hashes = np.zeros(len(values), dtype=np.uint64)
    for place, column in enumerate(letters.T):
        # Beyond the end of a text there is nothing, however long others are.
        hashes += np.where(column > 0, _mixed(column + np.uint64((place + 1) << 32)), np.uint64(0))
    return np.asarray(_mixed(hashes))


def _shortened(text: str) -> str:
    """A text that is short, or what stands for it."""
    written = text.encode("utf-8", "surrogatepass")
    return text if len(text) <= WIDEST else hashlib.sha256(written).hexdigest()


def _bits(column: Array) -> Hashes:
    """Every value as 64 bits, whatever type of number it is."""
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64) + 0.0  # there is one zero
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if column.dtype.kind in "mM":
        return column.astype(f"{column.dtype.kind}8[us]").astype(np.int64).view(np.uint64)
    values = column.tolist()
    texts = values if set(map(type, values)) == {str} else list(map(str, values))
    numbered = {text: zlib.crc32(text.encode("utf-8", "backslashreplace")) for text in set(texts)}
    return np.fromiter(map(numbered.__getitem__, texts), np.uint64, len(texts))


def _mixed(bits: Any) -> Any:
    """Bits that look random (the end of splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _ordered(hashes: Hashes) -> int:
    return int((hashes * np.arange(1, 2 * len(hashes), 2, dtype=np.uint64)).sum(dtype=np.uint64))
