"""People who are given amounts: rows with a prediction, a label that is a number and a group, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.checks import WeightKind, as_amounts, check_weights
from felicific._people.evaluate import BATCH
from felicific._people.roles import Roles
from felicific._people.user_functions import Batch
from felicific._problem.unions import LeftOutBy
from felicific._tables.groups import encode_groups, find_groups, refuse_identifiers
from felicific._tables.memory import Entries, as_objects, as_vector, slice_rows, take_rows
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False)
class AmountPeople:
    """People about whom an amount is decided; those of weight 0 are absent.

    Attributes
    ----------
    x : table, or None
        The people themselves, as happiness sees them.
    prediction : array of shape (n,)
        What the model predicts.
    y : array of shape (n,), or None
        The labels, real numbers.
    codes, groups : array of shape (n,), tuple
        The position of everybody's group, and the groups.
    weight : array of shape (n,), or None
        None for ones.
    baseline : array of shape (n,), or None
        The amounts of the baseline, where these are not the predictions.
    rows : array of shape (n,)
        Numbers of the rows in the user's table.
    attributes, left_out :
        What the groups are made of, and which of them the gap of a measure does not compare.
    group_proba : array of shape (n, groups), or None
        How likely everybody is of each group, where deciding may not look at it.
    roles : Roles
        The columns that are named, which a policy for these people remembers.
    """

    x: Table
    prediction: Floats
    y: Floats | None
    codes: Codes
    groups: tuple[Any, ...]
    weight: Floats | None
    baseline: Floats | None
    rows: Codes
    attributes: tuple[Any, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    group_proba: Floats | None = None
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it
    weight_kind: WeightKind = None

    @classmethod
    def of(
        cls,
        x: Table,
        *,
        prediction: Any,
        y: Any,
        group: Entries,
        weight: Any = None,
        baseline: Any = None,
        rows: Codes | None = None,
        attributes: tuple[Any, ...] = (),
        groups: tuple[Any, ...] | None = None,
        group_proba: Floats | None = None,
        weight_kind: WeightKind = None,
    ) -> AmountPeople:
        """Check everything of some people; ``groups`` are those that are known already."""
        n = len(group)
        numbers = np.arange(n) if rows is None else rows
        weights = check_weights(weight, n)
        present = None if weights is None or weights.all() else np.flatnonzero(weights)
        if present is not None:
            assert weights is not None, "there are weights"
            kept = {"prediction": prediction, "y": y, "baseline": baseline}
            parts = {
                name: None if part is None else as_vector(part, name)[present] for name, part in kept.items()
            }
            return cls.of(
                None if x is None else take_rows(x, present),
                group=group[present],
                weight=weights[present],
                rows=numbers[present],
                attributes=attributes,
                groups=groups,
                weight_kind=weight_kind,
                group_proba=None if group_proba is None else group_proba[present],
                **parts,
            )
        if not n:
            raise DataError("There is nobody.", "Pass at least one row of positive weight.")
        known = find_groups(group) if groups is None else groups
        if groups is None:
            refuse_identifiers(known, n, None if weights is None else float(weights.sum()))
        return cls(
            x,
            as_amounts(prediction, "prediction", numbers, n),
            None if y is None else as_amounts(y, "label y", numbers, n),
            encode_groups(group, known, numbers),
            tuple(known),
            weights,
            None if baseline is None else as_amounts(baseline, "amount of the baseline", numbers, n),
            numbers,
            attributes,
            group_proba=group_proba,
            weight_kind=weight_kind,
        )

    def __len__(self) -> int:
        return len(self.prediction)

    @cached_property
    def weights(self) -> Floats:
        """Everybody's weight."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @cached_property
    def group(self) -> Array:
        """Everybody's group."""
        return np.asarray(as_objects(self.groups)[self.codes])

    @property
    def decided_baseline(self) -> Floats:
        """The baseline's amounts: what was said, else the predictions."""
        return self.prediction if self.baseline is None else self.baseline

    def batch(self, part: slice) -> Batch:
        """Some of them, as functions of the user's see them."""
        x = None if self.x is None else slice_rows(self.x, part.start, part.stop)
        y = None if self.y is None else self.y[part]
        return Batch(x, y, None, self.group[part], self.rows[part], self.decided_baseline[part])

    def batches(self) -> Iterator[tuple[slice, Batch]]:
        """All of them, some at a time."""
        for start in range(0, len(self), BATCH):
            part = slice(start, min(start + BATCH, len(self)))
            yield part, self.batch(part)

    def take(self, some: Codes) -> AmountPeople:
        """Some of them."""
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[some]
            for name in ("prediction", "y", "codes", "weight", "baseline", "rows", "group_proba")
        }
        return replace(self, x=None if self.x is None else take_rows(self.x, some), **parts)
