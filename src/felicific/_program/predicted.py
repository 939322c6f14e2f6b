"""Predicted: sums over people by group and fine bin of what is predicted of them, which add."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.roles import Roles
from felicific._typing import Codes, Floats
from felicific.exceptions import AggregatesError, DataError

if TYPE_CHECKING:
    from felicific._people.people import People

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


#: People who are added up together.
BATCH = 131_072


@dataclass(frozen=True, eq=False)
class Predicted:
    """Sums over people, by group and by the fine bin of their prediction.

    Attributes
    ----------
    groups : tuple
        The groups.
    scale : Scale
        The bins.
    mass, predicted, labels : arrays of shape (groups, bins)
        Weight, weighted predictions and weighted labels; labels are None where there are none.
    squares : array of shape (groups, 3)
        Weighted squares of predictions, products of prediction and label, squares of labels; all of what they are
        above the lower end of the scale, so that a far-away zero costs no digits.
    least, most : arrays of shape (groups, bins)
        The least and the largest prediction in every bin; infinite where nobody is.
    rows : array of shape (groups,)
        How many rows there are.
    attributes, roles : as in a policy
    """

    groups: tuple[Any, ...]
    scale: Scale
    mass: Floats
    predicted: Floats
    labels: Floats | None
    squares: Floats
    least: Floats
    most: Floats
    rows: Codes
    attributes: tuple[Any, ...] = ()
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it

    @cached_property
    def people(self) -> Floats:
        """Weight of every group."""
        return np.asarray(self.mass.sum(axis=1))

    @cached_property
    def ends(self) -> Floats:
        """The least and the largest prediction of every group, of shape (groups, 2)."""
        return np.column_stack([self.least.min(axis=1), self.most.max(axis=1)])

    @property
    def total(self) -> float:
        """Weight of everybody."""
        return float(self.people.sum())

    def __add__(self, other: Predicted) -> Predicted:
        if not isinstance(other, Predicted):
            return NotImplemented
        for what, one, two in (
            ("groups", self.groups, other.groups),
            ("scales", self.scale, other.scale),
            ("attributes", self.attributes, other.attributes),
        ):
            if one != two:
                raise AggregatesError(
                    f"Sums of other {what} do not add: {one!r} and {two!r}.",
                    "Make them of the same groups and the same bounds: decisions=(low, high).",
                )
        if (self.labels is None) != (other.labels is None):
            raise AggregatesError(
                "One of the sums knows labels that the other does not.", "Sum up the same of all people."
            )
        return replace(
            self,
            mass=self.mass + other.mass,
            predicted=self.predicted + other.predicted,
            squares=self.squares + other.squares,
            least=np.minimum(self.least, other.least),
            most=np.maximum(self.most, other.most),
            rows=self.rows + other.rows,
            roles=self.roles.shared(other.roles),
            labels=None if self.labels is None or other.labels is None else self.labels + other.labels,
        )


def sum_predicted(people: People, scale: Scale) -> Predicted:
    """Add people up."""
    n_groups = len(people.groups)
    size = n_groups * BINS
    mass, predicted, labels = np.zeros(size), np.zeros(size), np.zeros(size)
    squares, y = np.zeros((3, n_groups)), people.y
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    for start in range(0, len(people), BATCH):
        part = slice(start, min(start + BATCH, len(people)))
        f, group, weight = people.prediction[part], people.codes[part], people.weights[part]
        place = group * BINS + scale.bins(f)
        mass += np.bincount(place, weight, size)
        predicted += np.bincount(place, weight * f, size)
        np.minimum.at(least, place, f)
        np.maximum.at(most, place, f)
        truth = np.zeros(len(f)) if y is None else y[part]
        labels += np.bincount(place, weight * truth, size)
        up, above = f - scale.low, truth - scale.low
        for row, numbers in enumerate((up * up, up * above, above * above)):
            squares[row] += np.bincount(group, weight * numbers, n_groups)
    shape = (n_groups, BINS)
    return Predicted(
        groups=people.groups,
        scale=scale,
        mass=mass.reshape(shape),
        predicted=predicted.reshape(shape),
        labels=None if y is None else labels.reshape(shape),
        squares=np.ascontiguousarray(squares.T),
        least=least.reshape(shape),
        most=most.reshape(shape),
        rows=np.bincount(people.codes, minlength=n_groups),
        roles=people.roles,
        attributes=people.attributes,
    )
