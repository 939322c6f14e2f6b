"""Types that the whole library shares: arrays by what they hold, tables, and what is computed when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Real numbers.
Floats: TypeAlias = NDArray[np.float64]

#: Positions: of a group among the groups, of a label among the classes, of rows.
Codes: TypeAlias = NDArray[np.intp]

#: True or False each.
Truths: TypeAlias = NDArray[np.bool_]

#: Values of any type: labels, groups, a column.
Array: TypeAlias = NDArray[Any]

#: A table in memory (a dataframe of any library, a dict of columns, an array); on the outside also a lazy one.
Table: TypeAlias = Any

#: Largest allowed gap: of every measure, or by measure or criterion; None asks for nothing.
GapLike: TypeAlias = float | Mapping[str, float] | None

#: What a decision costs: "error" or an expression, a cost matrix, a function.
LossLike: TypeAlias = str | ArrayLike | Callable[..., Any]

#: A number for all measures, or one for each.
NumberLike: TypeAlias = float | Sequence[float] | Mapping[str, float]

#: Columns of probabilities: one for every class, or that of the second of two.
ProbaColumns: TypeAlias = str | Sequence[str] | Mapping[Any, str]

#: Where a lottery's salt comes from.
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that is computed when it is first looked at; files and copies hold the value, not what computes it."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute

    @classmethod
    def of(cls, value: T) -> Self:
        """A value that is there already."""
        return cls(lambda: value)

    @cached_property
    def value(self) -> T:
        """The value."""
        assert self._compute is not None, "it was not looked at yet"
        value, self._compute = self._compute(), None
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {"value": self.value}
