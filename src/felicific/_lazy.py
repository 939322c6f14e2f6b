"""A value that is computed when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

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
