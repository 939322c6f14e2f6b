"""Folds: a part of the people for each, to try a choice on people it was not made for.

A person's fold is a function of the key, or of the row's own content, never of its position or its label: it is the
same in any order, batch and library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from felicific._tables.memory import column_names, is_frame
from felicific._tables.seen import row_hashes
from felicific._typing import Codes, Table
from felicific.exceptions import DataError

#: Parts that people are divided into by default.
FOLDS = 5


def folds_by_key(keys: Any, folds: int) -> Codes:
    """The fold of everybody by key, which is read as text: 1 and "1" are one person."""
    texts = np.array([*map(str, np.asarray(keys).tolist()), None], dtype=object)[:-1]
    return _parts(row_hashes({"key": texts}, ["key"]), folds)


def folds_by_content(table: Table, folds: int, without: frozenset[str] = frozenset()) -> Codes:
    """The fold of everybody by what a row holds, ``without`` some columns, such as the label."""
    if not is_frame(table):
        if hasattr(table, "toarray"):
            table = table.toarray()
        rows = np.asarray(table)
        table = {str(i): column for i, column in enumerate(rows.reshape(len(rows), -1).T)}
    return _parts(row_hashes(table, [name for name in column_names(table) if name not in without]), folds)


def check_folds(folds: Any) -> int:
    """Insist on a number of parts; 0 for none."""
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 0 or folds == 1:
        raise DataError(f"folds is {folds!r}.", "Give the number of parts, 2 or more; 5 are usual.")
    return int(folds)


def _parts(hashes: Any, folds: int) -> Codes:
    return np.asarray(hashes % np.uint64(folds), dtype=np.intp)
