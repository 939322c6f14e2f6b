"""Groups: from what the user names to one value per row, and from values to positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific.exceptions import GroupError
from felicific.frames import (
    Array,
    Table,
    as_vector,
    column_names,
    count_rows,
    distinct,
    encode,
    is_frame,
    null_rows,
    take_column,
)


def resolve_groups(table: Table, sensitive_features: Any) -> Array:
    """One group per row of ``table``.

    ``sensitive_features`` is a column of the table, a list of columns (their intersections are the groups),
    a callable of the table, or the values themselves: an array, a series, or a table of several columns.
    """
    if sensitive_features is None:
        raise GroupError(
            "Nobody said which group a person belongs to.",
            "Name the column(s), sensitive_features='sex', or pass the values as sensitive_features=.",
        )
    if isinstance(sensitive_features, Callable):  # type: ignore[arg-type]  # collections.abc's is a class
        sensitive_features = sensitive_features(table)
    names = _column_list(table, sensitive_features)
    if names is not None:
        columns = [take_column(table, name, "the groups") for name in names]
    elif is_frame(sensitive_features):
        columns = [
            take_column(sensitive_features, name, "the groups") for name in column_names(sensitive_features)
        ]
    else:
        values = np.asarray(sensitive_features)
        two = values.ndim == 2
        columns = list(values.T) if two else [as_vector(sensitive_features, "sensitive_features")]
    rows = count_rows(table)
    for column in columns:
        if len(column) != rows:
            raise GroupError(
                f"There are {len(column)} groups for {rows} rows.", "Pass one group for every row of X."
            )
        _refuse_null(column)
    return columns[0] if len(columns) == 1 else _intersections(columns)


def _column_list(table: Table, named: Any) -> list[Any] | None:
    """Return the columns that are named, or None when ``named`` holds the values themselves."""
    if isinstance(named, str) or (isinstance(named, int) and not isinstance(named, bool)):
        return [named]
    if isinstance(named, list | tuple) and 0 < len(named) != count_rows(table):
        known = column_names(table)
        if all(isinstance(name, str) or name in known for name in named):
            return list(named)
    return None


def _refuse_null(column: Array) -> None:
    missing = null_rows(column)
    if len(missing):
        raise GroupError(
            f"The group is missing in {len(missing)} of {len(column)} rows, first in row {missing[0]}.",
            "Fill it in, give those people a group of their own, or leave the rows out.",
        )


def _intersections(columns: list[Array]) -> Array:
    """Name every combination: "Black & Female", with "&" and backslash escaped so that no two collide."""
    parts = [
        [str(value).replace("\\", "\\\\").replace("&", "\\&") for value in column.tolist()]
        for column in columns
    ]
    return np.array([" & ".join(row) for row in zip(*parts, strict=True)], dtype=object)


def find_groups(group: Array) -> tuple[Any, ...]:
    """List the distinct groups, sorted, as Python scalars."""
    return tuple(distinct(group))


def encode_groups(group: Array, known: Sequence[Any]) -> NDArray[np.intp]:
    """Position of every row's group in ``known``; a group that is not known is an error."""
    codes = encode(group, known)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        names = distinct(group[unknown])
        shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        plural = "groups" if len(names) > 1 else "group"
        raise GroupError(
            f"The {plural} {shown} ({len(unknown)} rows, first row {unknown[0]}) was never fitted; "
            f"known are {', '.join(repr(name) for name in known[:20])}.",
            "Fit on data that holds every group, or decide those people otherwise.",
        )
    return codes
