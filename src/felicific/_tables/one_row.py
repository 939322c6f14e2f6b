"""One row: a person as somebody has it at hand, as a table of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from felicific._tables.memory import as_objects, count_rows, is_frame, is_mapping, table_maker
from felicific._typing import Array, Table
from felicific.exceptions import DataError


def one_row(row: Table) -> Table:
    """A table of one row: of one already, of a row of pandas, of a dict of values, or of an array of features.

    A table keeps its types. Of a row by itself every value has the type that it has there: pandas makes floats of whole
    numbers that stand beside others.
    """
    if is_mapping(row) or isinstance(row, Mapping):
        if all(np.ndim(value) == 0 or isinstance(value, str) for value in row.values()):
            return _framed({name: as_objects([value]) for name, value in row.items()})
    elif getattr(row, "ndim", None) == 1 and hasattr(row, "index") and hasattr(row, "to_frame"):
        return row.to_frame().T.infer_objects()
    elif not is_frame(row) and not hasattr(row, "tocsr"):  # a sparse matrix has rows already
        row = np.asarray(row)
        row = row[None, :] if row.ndim == 1 else row
    refuse_several(count_rows(row) if getattr(row, "ndim", 2) else 0)
    return row


def unwidened(row: Table, keys: Array) -> Array:
    """Keys that were whole before pandas made floats of them, in a row of nothing but numbers: no key is a float."""
    exact = keys.dtype.kind == "f" and not is_frame(row) and bool((np.abs(keys) < 2.0**53).all())
    return keys.astype(np.int64) if exact and (keys == np.floor(keys)).all() else keys


def refuse_several(n: int, what: str = "rows") -> None:
    """Insist on one person."""
    if n != 1:
        raise DataError(
            f"An explanation is of one person, and there are {n:,} {what}.",
            "Pass one row, X.iloc[[17]] or X[17:18] for instance, and call it once for each person.",
        )


def _framed(columns: dict[Any, Any]) -> Table:
    return table_maker("auto")(columns)
