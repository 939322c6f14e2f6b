"""Scale: the fine bins of a prediction, which are the same for all people, so that counts in them add."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from felicific._typing import Codes, Floats
from felicific.exceptions import DataError

#: Into how many steps the range of predictions is divided.
FINE = 4096

#: What is above an edge by less than this share of a bin is at the edge: two machines may differ in that.
ROUNDING = 1e-6

#: How many bins there are: what is at the lower end, or below it, has one of its own.
BINS = FINE + 1


@dataclass(frozen=True)
class Scale:
    r"""Predictions from ``low`` to ``high``, in the bins :math:`\lceil 4096 (f - low) / (high - low) \rceil`.

    An edge belongs to the bin below it, and so does what is above it by rounding alone.
    Predictions beyond its ends are counted at the ends.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise DataError(
                f"Predictions are to lie between {self.low!r} and {self.high!r}.",
                "Give two finite numbers, the smaller one first.",
            )
        if not math.isfinite(self.high - self.low):
            raise DataError(
                f"Predictions lie between {self.low!r} and {self.high!r}, which are too far apart to be subtracted.",
                "Use a larger unit (thousands of dollars, say).",
            )

    @classmethod
    def of(cls, predictions: Floats) -> Scale:
        """From the least to the largest of some predictions."""
        return cls(float(predictions.min()), float(predictions.max()))

    @property
    def width(self) -> float:
        """How far its ends are apart."""
        return self.high - self.low

    def bins(self, predictions: Floats) -> Codes:
        """The bin of every prediction."""
        if self.width == 0.0:  # everybody is predicted the same, or lies beyond one of the ends
            return np.where(predictions > self.high, FINE, 0).astype(np.intp)
        steps = np.ceil((predictions - self.low) / self.width * FINE - ROUNDING)
        return np.clip(steps, 0, FINE).astype(np.intp)

    def edge(self, place: Floats | Codes | float) -> Floats:
        """The prediction at a place among the bins: the upper edge of a bin, or between two."""
        return np.asarray(self.low + self.width * (np.asarray(place, dtype=np.float64) / FINE))
