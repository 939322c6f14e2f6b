"""Missing values of the columns that have a role: how many, in which rows, said for the whole table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from felicific._people.checks import count_by_group, no_label
from felicific._people.columns import Columns
from felicific._problem.missing_labels import SAY
from felicific._tables.engine import BatchPlace
from felicific._tables.groups import name_groups
from felicific._tables.memory import (
    as_vector,
    count_rows,
    missing_rows,
    null_rows,
    take_column,
    take_entries,
)
from felicific._typing import Array, Table
from felicific.exceptions import DataError, FelicificError

#: What to do about a missing value, and about a missing group.
FILL = "Fill it in: without those rows, those people would be left out."
UNKNOWN = (
    "Fill it with a name, and leave that name out of groups= where they are not to be compared: Gap(..., "
    "groups=[...]). Without those rows, those people would be left out."
)


@dataclass(frozen=True)
class Missing:
    """How often each column is missing, and where first; of the column of labels, ``label``, also in which groups.

    ``grouping`` are the columns of the groups.
    """

    rows: int
    counts: dict[str, int]
    first: dict[str, tuple[str, ...]]
    label: str | None = None
    by_group: dict[str, list[int]] = field(default_factory=dict)
    grouping: tuple[str, ...] = ()

    def __add__(self, other: Missing) -> Missing:
        names = {**self.counts, **other.counts}
        return Missing(
            self.rows + other.rows,
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            {name: (*self.first.get(name, ()), *other.first.get(name, ()))[:3] for name in names},
            self.label,
            {
                group: [a + b for a, b in zip(self.by_group.get(group, (0, 0)), n, strict=True)]
                for group, n in (dict.fromkeys(self.by_group, (0, 0)) | other.by_group).items()
            },
            self.grouping,
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
        first = f"{subject} {', '.join(self.first[name])}{others}"
        if name == self.label and self.by_group:
            raise no_label("The label", self.by_group, self.rows, first)
        raise DataError(
            f"The column {name!r} is missing (null or NaN) in {count} of {self.rows} rows, first in {first}.",
            SAY if name == self.label else UNKNOWN if name in self.grouping else FILL,
        )


def missing_values(
    named: dict[str, str],
    weight: Any,
    used: Iterable[str],
    table: Table,
    place: BatchPlace,
    *,
    by_group: bool = False,
) -> Missing:
    """Missing values of the columns that are used, in rows that do not have weight 0 (a column, or an array).

    ``by_group`` counts the people of every group, and those without a label.
    """
    counts, first = {}, {}
    absent = None
    if weight is not None:
        what = "sample_weight"
        column = take_column(table, weight, what) if isinstance(weight, str) else as_vector(weight, what)
        absent = column == 0
    for name in used:
        rows = missing_rows(table, name, named.get(name, "the happiness"))
        if absent is not None:
            rows = rows[~absent[rows]]
        if len(rows):
            counts[name] = len(rows)
            first[name] = tuple(place.name(int(row)) for row in rows[:3])
    n = count_rows(table) if absent is None else int((~absent).sum())
    label = next((name for name, purpose in named.items() if purpose == "y"), None)
    grouping = tuple(name for name, purpose in named.items() if purpose == "the groups")
    people = _by_group(named, label, absent, table) if by_group else {}
    return Missing(n, counts, first, label, people, grouping)


def _by_group(
    named: dict[str, str], label: str | None, absent: Array | None, table: Table
) -> dict[str, list[int]]:
    """How many of which group have no label, and of how many; empty where the groups are no columns."""
    columns = [name for name, purpose in named.items() if purpose == "the groups"]
    if label is None or not columns:
        return {}
    group = name_groups([take_entries(table, name, "the groups") for name in columns])
    labels = take_entries(table, label, "y")
    if absent is not None:
        group, labels = group[~absent], labels[~absent]
    return count_by_group(group, null_rows(labels))


@contextmanager
def missing_first(table: Table, columns: Columns) -> Iterator[None]:
    """When something is wrong with a table in memory, and some of its named columns are missing values, say that."""
    try:
        yield
    except FelicificError:
        named = columns.named_in(table)
        if named:
            needed = columns.complete(named)
            missing_values(named, columns.weight, needed, table, BatchPlace(), by_group=True).refuse()
        raise
