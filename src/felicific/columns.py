"""Helpers for writing happiness functions that run on any table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific.exceptions import HappinessError
from felicific.frames import as_vector


def lookup(
    column: Any, numbers: Mapping[Hashable, float], default: float | None = None
) -> NDArray[np.float64]:
    """Replace every value of a column by its number.

    Parameters
    ----------
    column : array or series
        A column of the table, such as ``x["education"]``.
    numbers : mapping of value to number
        What each value counts.
    default : number, optional
        What a value that is not in ``numbers`` counts. Without it such a value is an error.

    Examples
    --------
    >>> lookup(["Master", "High School"], {"Master": 0.01, "Doctorate": 0.02}, 0.0)
    array([0.01, 0.  ])
    """
    values = as_vector(column, "column of lookup")
    found = [numbers.get(value, default) for value in values.tolist()]
    if default is None and None in found:
        row = found.index(None)
        raise HappinessError(
            f"lookup has no number for {values[row]!r} (row {row}).",
            "Add it to the mapping, or give lookup a default as third argument.",
        )
    return np.array(found, dtype=np.float64)
