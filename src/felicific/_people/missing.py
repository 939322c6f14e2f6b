"""Missing values of the columns that have a role: how many, in which rows, said for the whole table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from felicific._people.columns import Columns
from felicific._tables.engine import Place
from felicific._tables.memory import as_vector, count_rows, null_rows, take_column
from felicific._typing import Table
from felicific.exceptions import DataError, FelicificError


@dataclass(frozen=True)
class Missing:
    """How often each column is missing, and where first."""

    rows: int
    counts: dict[str, int]
    first: dict[str, tuple[str, ...]]

    def __add__(self, other: Missing) -> Missing:
        names = {**self.counts, **other.counts}
        return Missing(
            self.rows + other.rows,
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            {name: (*self.first.get(name, ()), *other.first.get(name, ()))[:3] for name in names},
        )

    def refuse(self) -> None:
        """Raise if some value is missing."""
        if not self.counts:
            return
        name, count = next(iter(self.counts.items()))
        others = ""
        if len(self.counts) > 1:
            listed = [f"{other!r} in {self.counts[other]}" for other in list(self.counts)[1:6]]
            others = f"; also {', '.join(listed)}"
        subject = "row" if len(self.first[name]) == 1 else "rows"
        raise DataError(
            f"The column {name!r} is missing (null or NaN) in {count} of {self.rows} rows, "
            f"first in {subject} {', '.join(self.first[name])}{others}.",
            "Fill it in, or leave those rows out.",
        )


def missing_values(
    named: dict[str, str], weight: Any, used: Iterable[str], table: Table, place: Place
) -> Missing:
    """Missing values of the columns that are used, in rows that do not have weight 0 (a column, or an array)."""
    counts, first = {}, {}
    absent = None
    if weight is not None:
        what = "sample_weight"
        column = take_column(table, weight, what) if isinstance(weight, str) else as_vector(weight, what)
        absent = column == 0
    for name in used:
        rows = null_rows(take_column(table, name, named.get(name, "the happiness")))
        if absent is not None:
            rows = rows[~absent[rows]]
        if len(rows):
            counts[name] = len(rows)
            first[name] = tuple(place.name(int(row)) for row in rows[:3])
    n = count_rows(table) if absent is None else int((~absent).sum())
    return Missing(n, counts, first)


@contextmanager
def missing_first(table: Table, columns: Columns) -> Iterator[None]:
    """When something is wrong with a table in memory, and some of its named columns are missing values, say that."""
    try:
        yield
    except FelicificError:
        named = columns.named_in(table)
        if named:
            missing_values(named, columns.weight, named, table, Place()).refuse()
        raise
