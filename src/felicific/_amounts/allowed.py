"""Allowed amounts: any between two bounds, a number of levels, or exactly those that are listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from felicific._program.predicted import FINE
from felicific._typing import Floats
from felicific.exceptions import DataError

#: Levels between which the program looks for the share of people, where any amount will do.
LEVELS = 65

_REMEDY = "decisions= is None (any amount), a number of levels, a pair of bounds (low, high), or a list of the amounts."


@dataclass(frozen=True)
class Allowed:
    """What amounts there may be.

    Attributes
    ----------
    bounds : pair of float, or None
        The least and the largest; None for those of the calibrated predictions.
    levels : int
        How many levels the program looks at.
    listed : tuple of float, or None
        The only amounts there are.
    """

    bounds: tuple[float, float] | None = None
    levels: int = LEVELS
    listed: tuple[float, ...] | None = None

    @classmethod
    def of(cls, decisions: Any) -> Allowed:
        """Read what the user wrote."""
        if isinstance(decisions, Allowed):
            return decisions
        if decisions is None:
            return cls()
        if isinstance(decisions, bool | np.bool_ | str | bytes | float | np.floating):
            raise DataError(f"decisions is {decisions!r}.", _REMEDY)
        if isinstance(decisions, int | np.integer):
            if decisions < 2:
                raise DataError(
                    f"decisions is {decisions!r}, a number of levels.", "Use at least 2. " + _REMEDY
                )
            if decisions > FINE:
                raise DataError(
                    f"decisions is {decisions!r}, a number of levels.",
                    f"Use at most {FINE:,}: predictions are told apart in as many steps. " + _REMEDY,
                )
            return cls(levels=int(decisions))
        try:
            values = list(decisions)
        except TypeError as error:
            raise DataError(f"decisions is {decisions!r}.", _REMEDY) from error
        numbers = [_number(value) for value in values]
        if isinstance(decisions, tuple) and len(numbers) == 2:
            if not numbers[0] < numbers[1]:
                raise DataError(f"The bounds are {decisions!r}.", "Give the smaller one first, (low, high).")
            return cls(bounds=(numbers[0], numbers[1]))
        if len(numbers) <= 2:
            raise DataError(
                f"decisions={decisions!r} lists {len(numbers)} amounts, and a list needs more than two.",
                "Write a range as a tuple: decisions=(0, 40). " + _REMEDY,
            )
        ordered = sorted(numbers)
        repeated = [one for one, after in pairwise(ordered) if one == after]
        if repeated:
            raise DataError(f"decisions lists {repeated[0]:g} twice.", "List every amount once.")
        if len(ordered) > FINE:
            raise DataError(
                f"decisions lists {len(ordered):,} amounts.",
                f"List at most {FINE:,}, or give their bounds, ({ordered[0]:g}, {ordered[-1]:g}), and round.",
            )
        return cls((ordered[0], ordered[-1]), len(ordered), tuple(ordered))

    def within(self, calibrated: tuple[float, float]) -> Allowed:
        """With bounds, where none were given those of the calibrated predictions."""
        if self.bounds is not None:
            return self
        low, high = calibrated
        if not low < high:
            spread = max(abs(low), 1.0) * 0.5
            low, high = low - spread, high + spread
        return Allowed((low, high), self.levels, self.listed)

    @property
    def grid(self) -> Floats:
        """The levels, from the least to the largest."""
        assert self.bounds is not None, "the bounds are known"
        return np.linspace(*self.bounds, self.levels) if self.listed is None else np.array(self.listed)

    @property
    def said(self) -> Any:
        """As a user writes it: decisions=."""
        if self.listed is not None:
            return list(self.listed)
        return self.bounds if self.bounds is not None else self.levels

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds, once they are known."""
        assert self.bounds is not None, "the bounds are known"
        return self.bounds


def _number(value: Any) -> float:
    wrong = isinstance(value, bool | np.bool_ | str | bytes | Sequence)
    try:
        number = math.nan if wrong else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"decisions holds {value!r}, which is no finite number.", _REMEDY)
    return number
