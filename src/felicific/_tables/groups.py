"""Groups: from what the user names to one value per row, and from values to positions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import (
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
from felicific.exceptions import GroupError

#: What to do about missing groups: of people who are fitted or audited, and of those about whom a policy decides.
UNNAMED = (
    "Fill it in, leave the rows out, or give those people a group of their own: missing_group='unknown', said already "
    "where a policy is fitted that sees the group."
)
UNDECIDED = (
    "Fill it in, or fit again: with missing_group='unknown' on people some of whom have no group, or with "
    "group_at_predict=False, so that nobody's group is needed."
)


def resolve_groups(
    table: Table,
    sensitive_features: Any,
    *,
    rows: NDArray[np.intp] | None = None,
    columns_only: bool = False,
    missing_group: str | None = None,
    remedy: str = UNNAMED,
) -> Array:
    """One group per row of ``table``, or per each of some ``rows`` of it.

    ``sensitive_features`` is a column of the table, a list of columns (their intersections are the groups),
    a callable of the table, or the values themselves: an array, a series, or a table of several columns. With
    ``columns_only`` a list names columns, whatever its length. What is missing is called ``missing_group``, or
    refused with a ``remedy``.
    """
    columns = [column for _, column in _group_columns(table, sensitive_features, columns_only)]
    if not columns:
        raise GroupError("There are 0 groups columns.", "Pass at least one column.")
    n = count_rows(table)
    for column in columns:
        if len(column) != n:
            raise GroupError(
                f"There are {len(column)} groups for {n} rows.", "Pass one group for every row of X."
            )
    if rows is not None:
        columns = [column[rows] for column in columns]
    return name_groups([without_null(column, missing_group, remedy) for column in columns])


def attributes_of(table: Table, sensitive_features: Any, columns_only: bool = False) -> tuple[Any, ...]:
    """What the groups are made of: names of columns, or positions where the values have none."""
    if isinstance(sensitive_features, str):
        return (sensitive_features,)
    return tuple(name for name, _ in _group_columns(table, sensitive_features, columns_only))


def _group_columns(table: Table, sensitive_features: Any, columns_only: bool) -> list[tuple[Any, Array]]:
    """The columns that the groups are made of, each with its name, or its position where it has none."""
    if sensitive_features is None:
        raise GroupError(
            "Nobody said which group a person belongs to.",
            "Name the column(s), sensitive_features='sex', or pass the values as sensitive_features=.",
        )
    if isinstance(sensitive_features, Callable):  # type: ignore[arg-type]  # collections.abc's is a class
        sensitive_features = sensitive_features(table)
        if sensitive_features is None:
            raise GroupError("The callable sensitive_features returned None.", "Return one group per row.")
    if columns_only and isinstance(sensitive_features, list | tuple):
        names: list[Any] | None = list(sensitive_features)
    else:
        names = named_columns(table, sensitive_features)
    if names is not None:
        return [(name, take_column(table, name, "the groups")) for name in names]
    if is_frame(sensitive_features):
        named = column_names(sensitive_features)
        return [(name, take_column(sensitive_features, name, "the groups")) for name in named]
    values = sensitive_features
    nested = isinstance(values, list | tuple) and len(values) > 0 and isinstance(values[0], list | tuple)
    values = np.asarray(values, dtype=object) if nested else values
    return list(enumerate(values.T if np.ndim(values) == 2 else [as_vector(values, "sensitive_features")]))


def groups_of_present(
    table: Table,
    sensitive_features: Any,
    weight: NDArray[np.float64] | None,
    columns_only: bool = False,
    missing_group: str | None = None,
    *,
    fresh: bool = False,
) -> Array:
    """One group per row; a row of weight 0 is absent, so its group may even be missing.

    With ``fresh`` groups that nobody named before, no group may be called as those are whose group is missing.
    """
    if fresh and missing_group is not None:
        parts = _group_columns(table, sensitive_features, columns_only)
        refuse_taken((column for _, column in parts), missing_group)
    resolve = partial(
        resolve_groups,
        table,
        sensitive_features,
        columns_only=columns_only,
        missing_group=missing_group,
        remedy=UNNAMED if fresh else UNDECIDED,
    )
    if weight is None or weight.all():
        return resolve()
    present = np.flatnonzero(weight)
    found = resolve(rows=present)
    group = np.empty(len(weight), dtype=found.dtype)
    if len(found):
        group[:] = found[0]
    group[present] = found
    return group


def named_columns(table: Table, named: Any) -> list[Any] | None:
    """Return the columns that are named, or None when ``named`` holds the values themselves."""
    if isinstance(named, str) or (isinstance(named, int) and not isinstance(named, bool)):
        return [named]
    if not isinstance(named, list | tuple) or not len(named):
        return None
    known, as_many_as_rows = column_names(table), len(named) == count_rows(table)
    if all(isinstance(name, str) for name in named):
        # Columns, some perhaps misspelt; as many as rows, or more than columns, they are groups.
        columns = all(name in known for name in named) or (not as_many_as_rows and len(named) <= len(known))
    else:
        columns = not as_many_as_rows and all(isinstance(name, Hashable) and name in known for name in named)
    return list(named) if columns else None


def check_missing_group(missing_group: Any) -> None:
    """Insist on a name, or nothing."""
    if missing_group is not None and (not isinstance(missing_group, str) or not missing_group.strip()):
        raise GroupError(
            f"missing_group is {missing_group!r}.",
            "Name the group of the people whose group is missing, 'unknown' for instance.",
        )


def refuse_taken(columns: Iterable[Array], missing_group: str | None) -> None:
    """Refuse a name of those whose group is missing that others have: nobody would be compared with these."""
    for column in columns if missing_group is not None else ():
        taken = sum(1 for value in column.tolist() if isinstance(value, str) and value == missing_group)
        if taken:
            raise GroupError(
                f"missing_group is {missing_group!r}, and that is the group of {taken:,} people who have one.",
                "Give those whose group is missing a name that no group has.",
            )


def without_null(column: Array, missing_group: str | None, remedy: str = UNNAMED) -> Array:
    """A column whose missing values have a name."""
    missing = null_rows(column)
    if not len(missing):
        return column
    if missing_group is None:
        raise GroupError(
            f"The group is missing in {len(missing)} of {len(column)} rows, first in row {missing[0]}.",
            remedy,
        )
    filled = column.astype(object)
    filled[missing] = missing_group
    return filled


def name_groups(columns: list[Array]) -> Array:
    """One column as it is; of several every combination, "Black & Female", with "&" and backslash escaped."""
    if len(columns) == 1:
        return columns[0]
    parts = [[_text(value) for value in column.tolist()] for column in columns]
    return np.array([" & ".join(row) for row in zip(*parts, strict=True)], dtype=object)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of whole numbers is stored as floats elsewhere
    return str(value).replace("\\", "\\\\").replace("&", "\\&")


def find_groups(group: Array) -> tuple[Any, ...]:
    """List the distinct groups, sorted, as Python scalars."""
    try:
        return tuple(distinct(group))
    except TypeError as error:
        raise GroupError(
            f"The group of row 0 is {group[0]!r}, a {type(group[0]).__name__}.",
            "Use strings, numbers or booleans as groups.",
        ) from error


#: From so many groups on, fewer than so many people in each on average mean that a column says who somebody is.
MANY, FEW = 50, 5


def refuse_identifiers(groups: Sequence[Any], rows: int, weight: float | None = None) -> None:
    """Refuse groups of so many rows (of this total weight) that are people, not groups of them."""
    people = rows if weight is None else max(float(rows), weight)
    if len(groups) >= MANY and people < FEW * len(groups):
        shown = ", ".join(repr(group) for group in groups[:3])
        raise GroupError(
            f"There are {len(groups):,} groups ({shown}, ...) of {people:,.0f} people: that is no group, but who "
            "somebody is.",
            "Name a column whose values many people share; ages and amounts are cut into a few classes first.",
        )


def encode_groups(
    group: Array, known: Sequence[Any], rows: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Position of every row's group in ``known``; a group that is not known is an error.

    ``rows`` are the numbers of the rows in the user's table, for messages.
    """
    codes = encode(group, known)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        names = distinct(group[unknown])
        shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        subject, verb = ("groups", "were") if len(names) > 1 else ("group", "was")
        first = unknown[0] if rows is None else rows[unknown[0]]
        raise GroupError(
            f"The {subject} {shown} ({len(unknown)} rows, first row {first}) {verb} never fitted; "
            f"known are {', '.join(repr(name) for name in known[:20])}.",
            "Fit on data that holds every group, or decide those people otherwise.",
        )
    return codes


def names_at(groups: Sequence[Any], codes: NDArray[np.intp]) -> Array:
    """The group of every row, by its position among those that are known."""
    alike = len({type(group) for group in groups}) == 1
    return np.asarray((np.asarray(groups) if alike else np.array(groups, dtype=object))[codes])
