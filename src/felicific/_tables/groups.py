"""Groups: from what the user names to one value per row, and from values to positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import (
    Coded,
    Entries,
    as_entries,
    column_names,
    count_rows,
    distinct,
    encode,
    is_frame,
    null_rows,
    take_entries,
)
from felicific._typing import Array, Table
from felicific.exceptions import GroupError

#: What to do about missing groups: of people who are fitted or audited, and of those about whom a policy decides.
UNNAMED = (
    'Fill it with a name, as table["sex"].fillna("not known") does in pandas, and leave that name out of groups= where '
    "they are not to be compared: Gap(..., groups=[...])."
)
UNDECIDED = (
    "Fill it with a group that the policy was fitted with, or fit one again: with a name for such people among those "
    "it is fitted on, or without the group, so that nobody's is needed."
)


def resolve_groups(
    table: Table,
    sensitive_features: Any,
    *,
    rows: NDArray[np.intp] | None = None,
    columns_only: bool = False,
    remedy: str = UNNAMED,
) -> Entries:
    """One group per row of ``table``, or per each of some ``rows`` of it.

    ``sensitive_features`` is a column of the table, a list of columns (their intersections are the groups),
    a callable of the table, or the values themselves: an array, a series, or a table of several columns. With
    ``columns_only`` a list names columns, whatever its length. What is missing is refused with a ``remedy``.
    """
    columns = [read() for _, read in _readers(table, sensitive_features, columns_only)]
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
    return name_groups([without_null(column, remedy) for column in columns])


def attributes_of(table: Table, sensitive_features: Any, columns_only: bool = False) -> tuple[Any, ...]:
    """What the groups are made of: names of columns, or positions where the values have none."""
    if isinstance(sensitive_features, str):
        return (sensitive_features,)
    return tuple(name for name, _ in _readers(table, sensitive_features, columns_only))


def _readers(
    table: Table, sensitive_features: Any, columns_only: bool
) -> list[tuple[Any, Callable[[], Entries]]]:
    """How the columns that the groups are made of are read, each with its name, or position where it has none."""
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
        return [(name, partial(take_entries, table, name, "the groups")) for name in names]
    if is_frame(sensitive_features):
        named = column_names(sensitive_features)
        return [(name, partial(take_entries, sensitive_features, name, "the groups")) for name in named]
    values = sensitive_features
    nested = isinstance(values, list | tuple) and len(values) > 0 and isinstance(values[0], list | tuple)
    values = np.asarray(values, dtype=object) if nested else values
    columns = values.T if _dimensions(values) == 2 else [values]
    return [(i, partial(as_entries, column, "sensitive_features")) for i, column in enumerate(columns)]


def _dimensions(values: Any) -> int:
    """How many dimensions values have, without making an array of a column of some library."""
    ndim = getattr(values, "ndim", None)
    return ndim if isinstance(ndim, int) else 1 if hasattr(values, "to_numpy") else int(np.ndim(values))


def groups_of_present(
    table: Table,
    sensitive_features: Any,
    weight: NDArray[np.float64] | None,
    columns_only: bool = False,
    *,
    fresh: bool = False,
) -> Entries:
    """One group per row; a row of weight 0 is absent, so its group may even be missing.

    With ``fresh`` groups that nobody named before, such people can still be given one.
    """
    resolve = partial(
        resolve_groups,
        table,
        sensitive_features,
        columns_only=columns_only,
        remedy=UNNAMED if fresh else UNDECIDED,
    )
    if weight is None or weight.all():
        return resolve()
    present = np.flatnonzero(weight)
    groups = resolve(rows=present)
    if not len(groups):
        return np.empty(len(weight), dtype=groups.dtype)
    places = np.zeros(len(weight), dtype=np.intp)  # those who are absent may have any group
    places[present] = np.arange(len(present))
    return groups[places]


def named_columns(table: Table, named: Any) -> list[Any] | None:
    """Return the columns that are named, or None when ``named`` holds the values themselves."""
    if isinstance(named, str) or (isinstance(named, int) and not isinstance(named, bool)):
        return [named]
    if not isinstance(named, list | tuple) or not len(named):
        return None
    names, as_many_as_rows = column_names(table), len(named) == count_rows(table)
    if all(isinstance(name, str) for name in named):
        # Columns, some perhaps misspelt; as many as rows, or more than columns, they are groups.
        columns = all(name in names for name in named) or (not as_many_as_rows and len(named) <= len(names))
    else:
        columns = not as_many_as_rows and all(isinstance(name, Hashable) and name in names for name in named)
    return list(named) if columns else None


def without_null(column: Entries, remedy: str = UNNAMED) -> Entries:
    """The column, unless a value is missing."""
    missing = null_rows(column)
    if len(missing):
        raise GroupError(
            f"The group is missing in {len(missing)} of {len(column)} rows, first in row {missing[0]}.",
            remedy,
        )
    return column


def name_groups(columns: Sequence[Entries]) -> Entries:
    """One column as it is; of several every combination, "Black & Female", with "&" and backslash escaped."""
    if len(columns) == 1:
        return columns[0]
    coded = [_coded_texts(column) for column in columns]
    texts = [column for column in coded if column is not None]
    if len(texts) == len(columns) and math.prod(len(column.names) for column in texts) <= COMBINED:
        return reduce(_combined, texts)
    parts = [[_text(value) for value in column.tolist()] for column in columns]
    return np.array([" & ".join(row) for row in zip(*parts, strict=True)], dtype=object)


#: So many combinations of groups are listed, whether anybody is in them or not.
COMBINED = 10_000


def _coded_texts(column: Entries) -> Coded | None:
    """The texts of a column that has few values, each of them once; None of objects, where 1 and True are alike."""
    if not isinstance(column, Coded) and column.dtype.kind not in "biuU":
        return None
    values = distinct(column)
    if len(values) > COMBINED:
        return None
    return Coded(encode(column, values), tuple(_text(value) for value in values))


def _combined(left: Coded, right: Coded) -> Coded:
    """Every combination of two columns."""
    names = tuple(f"{one} & {other}" for one in left.names for other in right.names)
    return Coded(left.codes * len(right.names) + right.codes, names)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of whole numbers is stored as floats elsewhere
    return str(value).replace("\\", "\\\\").replace("&", "\\&")


def find_groups(group: Entries) -> tuple[Any, ...]:
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
        examples = ", ".join(repr(group) for group in groups[:3])
        raise GroupError(
            f"There are {len(groups):,} groups ({examples}, ...) of {people:,.0f} people: that is no group, but who "
            "somebody is.",
            "Name a column whose values many people share; ages and amounts are cut into a few classes first.",
        )


def encode_groups(
    group: Entries, groups: Sequence[Any], rows: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Position of every row's group in ``groups``; a group that is not known is an error.

    ``rows`` are the numbers of the rows in the user's table, for messages.
    """
    codes = encode(group, groups)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        names = distinct(group[unknown])
        listed = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        subject, verb = ("groups", "were") if len(names) > 1 else ("group", "was")
        first = unknown[0] if rows is None else rows[unknown[0]]
        raise GroupError(
            f"The {subject} {listed} ({len(unknown)} rows, first row {first}) {verb} never fitted; "
            f"known are {', '.join(repr(name) for name in groups[:20])}.",
            "Fit on data that holds every group, or decide on those people in another way.",
        )
    return codes


def names_at(groups: Sequence[Any], codes: NDArray[np.intp]) -> Array:
    """The group of every row, by its position among those that are known."""
    alike = len({type(group) for group in groups}) == 1
    return np.asarray((np.asarray(groups) if alike else np.array(groups, dtype=object))[codes])
