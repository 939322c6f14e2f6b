"""Sums over people who are given amounts: all that calibration and the program need to know of them; they add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._amounts.people import AmountPeople
from felicific._amounts.scale import BINS, Scale
from felicific._capacity import check_room
from felicific._people.roles import Roles
from felicific._problem.unions import LeftOutBy
from felicific._typing import Codes, Floats
from felicific.exceptions import AggregatesError

#: People who are added up together.
BATCH = 131_072


@dataclass(frozen=True, eq=False)
class AmountSums:
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
    baseline : array of shape (groups, 4), or None
        Weighted amounts of the baseline, their squares, their products with the label, and weighted predictions times
        them; None where the baseline's amount is the prediction.
    baseline_mass : array of shape (groups, bins), or None
        Weight by the bin of the baseline's amount.
    costs : array of shape (groups, bins, levels), or None
        Weighted loss of every level, where it is not the squared error.
    attributes, left_out, roles : as in a policy
    counted : array of shape (groups, measures), or None
        How many people each measure counts, where people were compared.
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
    baseline: Floats | None = None
    baseline_mass: Floats | None = None
    costs: Floats | None = None
    attributes: tuple[Any, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    counted: Floats | None = None
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

    def __add__(self, other: AmountSums) -> AmountSums:
        if not isinstance(other, AmountSums):
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
        both: dict[str, Any] = {}
        for name in ("labels", "baseline", "baseline_mass", "costs"):
            one, two = getattr(self, name), getattr(other, name)
            if (one is None) != (two is None) or (one is not None and one.shape != two.shape):
                raise AggregatesError(
                    f"One of the sums knows {name.replace('_', ' ')} that the other does not.",
                    "Sum up the same of all people.",
                )
            both[name] = None if one is None else one + two
        return replace(
            self,
            mass=self.mass + other.mass,
            predicted=self.predicted + other.predicted,
            squares=self.squares + other.squares,
            least=np.minimum(self.least, other.least),
            most=np.maximum(self.most, other.most),
            rows=self.rows + other.rows,
            roles=self.roles.shared(other.roles),
            **both,
        )


def sum_amounts(
    people: AmountPeople,
    scale: Scale,
    cost: Callable[[slice], Floats] | None = None,
    n_levels: int = 0,
) -> AmountSums:
    """Add people up; ``cost`` gives the loss of every level to some of them, of shape (levels, n)."""
    n_groups = len(people.groups)
    size = n_groups * BINS
    if cost is not None:
        check_room(
            2.0 * size * n_levels,
            "The sums of the loss",
            f"{n_groups} groups x {BINS:,} bins x {n_levels} levels",
            "Use fewer levels, decisions=..., or loss='squared', which needs none of these sums.",
        )
    mass, predicted, labels = np.zeros(size), np.zeros(size), np.zeros(size)
    baseline_mass, costs = np.zeros(size), np.zeros((n_levels, size))
    squares, baseline = np.zeros((3, n_groups)), np.zeros((4, n_groups))
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    y, now = people.y, people.baseline
    for start in range(0, len(people), BATCH):
        part = slice(start, min(start + BATCH, len(people)))
        f, group, weight = people.prediction[part], people.codes[part], people.weights[part]
        place = group * BINS + scale.bins(f)
        mass += np.bincount(place, weight, size)
        predicted += np.bincount(place, weight * f, size)
        np.minimum.at(least, place, f)
        np.maximum.at(most, place, f)
        truth = np.zeros(len(f)) if y is None else y[part]
        if y is not None:
            labels += np.bincount(place, weight * truth, size)
        up, above = f - scale.low, truth - scale.low
        for row, numbers in enumerate((up * up, up * above, above * above)):
            squares[row] += np.bincount(group, weight * numbers, n_groups)
        if now is not None:
            amount = now[part]
            baseline_mass += np.bincount(group * BINS + scale.bins(amount), weight, size)
            for row, numbers in enumerate((amount, amount * amount, amount * truth, amount * f)):
                baseline[row] += np.bincount(group, weight * numbers, n_groups)
        if cost is not None:
            for level, numbers in enumerate(cost(part)):
                costs[level] += np.bincount(place, weight * numbers, size)
    shape = (n_groups, BINS)
    return AmountSums(
        groups=people.groups,
        scale=scale,
        mass=mass.reshape(shape),
        predicted=predicted.reshape(shape),
        labels=None if y is None else labels.reshape(shape),
        squares=np.ascontiguousarray(squares.T),
        least=least.reshape(shape),
        most=most.reshape(shape),
        rows=np.bincount(people.codes, minlength=n_groups),
        baseline=None if now is None else np.ascontiguousarray(baseline.T),
        baseline_mass=None if now is None else baseline_mass.reshape(shape),
        costs=None if cost is None else np.moveaxis(costs.reshape(n_levels, *shape), 0, 2),
        roles=people.roles,
        attributes=people.attributes,
    )
