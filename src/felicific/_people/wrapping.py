"""Whole numbers of 64 bits wrap around where they grow too large: ``x["a"] * x["b"]``, or ``-x["u"]`` of unsigned ones.

No library of tables says so. What a function of the user's gives of whole numbers is therefore compared with what it
gives of floats, which do not wrap; where the two differ, with what it gives of Python's whole numbers, which are exact.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from felicific._tables.memory import (
    Array,
    ColumnArrays,
    Table,
    Values,
    cast_whole,
    column_names,
    is_frame,
    largest_whole,
    on_columns,
    take_column,
)
from felicific._typing import Floats
from felicific.exceptions import HappinessError

#: Below it, no product of four whole numbers wraps around.
SMALL = 2**15

#: Results that differ by less, relative to the largest, are the same but for rounding.
ALIKE = 1e-9

#: The arguments of a function of the user's, by name.
Arguments = dict[str, Any]


def may_wrap(tables: dict[str, Table]) -> frozenset[str]:
    """Which arrays or tables hold whole numbers so large that arithmetic on them could wrap around."""
    given = {name: table for name, table in tables.items() if table is not None}
    return frozenset(name for name, largest in largest_whole(given).items() if largest >= SMALL)


def unwrapped(call: Callable[[Arguments], Floats], given: Arguments, numbers: Floats, case: str) -> Floats:
    """What a function gives, ``numbers``; where whole numbers wrapped around, what it gives without that."""
    floats = _attempt(call, {name: _floated(value) for name, value in given.items()})
    if floats is not None and _alike(floats, numbers):
        return numbers
    exact = _attempt(call, {name: _exact(value) for name, value in given.items()})
    if exact is None:
        exact = _attempt(call, {name: _as_objects(value) for name, value in given.items()})
    if (exact is None and floats is None) or (exact is not None and _alike(exact, numbers)):
        return numbers
    if floats is not None and exact is not None and _alike(floats, exact):
        return floats
    again = _attempt(call, given)
    if again is None or not _alike(again, numbers):
        return numbers  # it draws numbers, which is refused elsewhere
    raise HappinessError(
        f"{case} gives other numbers when it gets floats: whole numbers of more than 64 bits wrap around.",
        'Calculate with floats: x["a"].astype(float) * x["b"], say.',
    )


def _attempt(call: Callable[[Arguments], Floats], given: Arguments) -> Floats | None:
    """What a function gives; None where it cannot take such columns."""
    with contextlib.suppress(Exception):
        return call(given)
    return None


def _alike(left: Floats, right: Floats) -> bool:
    if left.shape != right.shape:
        return False
    scale = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
    return bool(np.allclose(left, right, rtol=0.0, atol=ALIKE * scale, equal_nan=True))


def _floated(value: Any) -> Any:
    """Whole numbers of 64 bits as floats."""
    return cast_whole(value) if is_frame(value) or isinstance(value, np.ndarray) else value


def _exact(value: Any) -> Any:
    """Whole numbers as those of Python; of a table a dict of arrays."""
    if is_frame(value):
        if isinstance(value, ColumnArrays):
            return on_columns(value, _exact)
        return {name: _exact(take_column(value, name, "x").view(Values)) for name in column_names(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value.astype(object).view(Exact)
    return value


def _as_objects(value: Any) -> Any:
    """The same in columns of pandas, for functions that want their methods; nothing else has such."""
    if not hasattr(value, "iloc"):
        return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in "iu" else value
    whole = [name for name in value.columns if value[name].dtype.kind in "iu"]
    return value.astype(dict.fromkeys(whole, object))


class Exact(Values):
    """An array of Python's whole numbers, which functions that know none (``np.log``) get as floats."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """As NumPy does it, with floats if it cannot otherwise."""
        plain = [value.view(np.ndarray) if isinstance(value, Exact) else value for value in inputs]
        try:
            found: Array = getattr(ufunc, method)(*plain, **options)
        except TypeError:
            floats = [_as_floats(value) for value in plain]
            found = getattr(ufunc, method)(*floats, **options)
        whole = isinstance(found, np.ndarray) and found.dtype == object
        return found.view(Exact) if whole else found


def _as_floats(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == object else value
