"""Tables of people who are to be given amounts: read whole where they are in memory, else summed up part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from felicific._people.checks import check_weights
from felicific._people.lazy import check_kind, no_rows
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._problem.numeric import Allowed, NumericProblem
from felicific._program.calibration import Method, check_method
from felicific._program.numeric import AmountAggregates, AskedOfAmounts
from felicific._program.predicted import Predicted, Scale, sum_predicted
from felicific._program.signal_names import resolve_sight
from felicific._tables.engine import BatchPlace, Engine, find_engine
from felicific._tables.groups import find_groups, groups_of_present, refuse_identifiers
from felicific._tables.memory import as_objects, as_vector, column_names, count_rows, take_column
from felicific._typing import Array, Table
from felicific.exceptions import DataError

#: What messages call each role.
ROLES = {"prediction": "predicted", "y": "y", "weight": "sample_weight", "baseline": "baseline"}


@dataclass(frozen=True)
class AmountColumns:
    """Which columns play which role; of a table in memory also the values themselves."""

    prediction: Any
    y: Any
    group: Any
    weight: Any = None
    baseline: Any = None

    def values(self, table: Table, role: str) -> Array | None:
        """The values of a role: a column by its name, or an array that was passed instead."""
        value = getattr(self, role)
        if value is None:
            return None
        return (
            take_column(table, value, ROLES[role])
            if isinstance(value, str)
            else as_vector(value, ROLES[role])
        )

    @property
    def attributes(self) -> tuple[Any, ...]:
        """What the groups are made of."""
        if isinstance(self.group, str):
            return (self.group,)
        named = isinstance(self.group, list | tuple) and all(isinstance(one, str) for one in self.group)
        return tuple(self.group) if named else (0,)

    def people(
        self,
        table: Table,
        groups: tuple[Any, ...] | None = None,
        first_row: int = 0,
        *,
        by_name: bool = False,
    ) -> People | None:
        """Rows in memory as people; None where none of them has a weight."""
        n = count_rows(table)
        weight = check_weights(self.values(table, "weight"), n, first_row)
        if not n or (weight is not None and not weight.any()):
            return None
        return People.predicted_amounts(
            None,
            prediction=self.values(table, "prediction"),
            y=self.values(table, "y"),
            group=groups_of_present(table, self.group, weight, by_name, fresh=True),
            weight=weight,
            baseline=self.values(table, "baseline"),
            rows=np.arange(first_row, first_row + n),
            attributes=self.attributes,
            groups=groups,
        )

    @property
    def names(self) -> list[str]:
        """The columns of a table that is not in memory; what is no name is refused."""
        group = list(self.group) if isinstance(self.group, list | tuple) else [self.group]
        named = [self.prediction, self.y, *group, self.weight, self.baseline]
        wrong = next((one for one in named if one is not None and not isinstance(one, str)), None)
        if wrong is not None:
            raise DataError(
                f"{type(wrong).__name__} {str(wrong)[:40]!r} names no column.",
                "Of a table that is not in memory, name columns in predicted=, y=, sensitive_features= and "
                "sample_weight=.",
            )
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class _Seen:
    """What a first look at some rows tells: the groups, the ends of the predictions, and how many there are."""

    groups: frozenset[Any]
    low: float
    high: float
    rows: int
    weight: float

    def __add__(self, other: _Seen) -> _Seen:
        return _Seen(
            self.groups | other.groups,
            min(self.low, other.low),
            max(self.high, other.high),
            self.rows + other.rows,
            self.weight + other.weight,
        )


_NOBODY = _Seen(frozenset(), np.inf, -np.inf, 0, 0.0)


def sum_table(
    table: Table,
    engine: Engine | None,
    columns: AmountColumns,
    allowed: Allowed,
    groups: Sequence[Any] | None,
) -> Predicted:
    """The sums of a table: in one pass where groups and bounds are known before, else in two."""
    known = None if groups is None else find_groups(as_objects(list(groups)))
    if engine is not None:
        _check_columns(engine, columns)
    scale = None if allowed.bounds is None else Scale(*allowed.bounds)
    if known is None or scale is None:
        seen = _folded(table, engine, columns, partial(_look, columns)) or _NOBODY
        if not seen.rows:
            raise no_rows(columns.weight)
        if known is None:
            known = find_groups(as_objects(list(seen.groups)))
            refuse_identifiers(known, seen.rows, None if columns.weight is None else seen.weight)
        scale = Scale(seen.low, seen.high) if scale is None else scale
    sums: Predicted | None = _folded(table, engine, columns, partial(_sum, columns, known, scale))
    if sums is None:
        raise no_rows(columns.weight)
    return sums


def _check_columns(engine: Engine, columns: AmountColumns) -> None:
    names = columns.names
    for name in names:
        engine.index(name, "the amounts")
    for role in ("prediction", "y", "weight"):
        name = getattr(columns, role)
        if name is not None and engine.kind(name, ROLES[role]) not in ("bool", "whole", "real"):
            raise DataError(
                f"The column {name!r}, needed for {ROLES[role]}, holds no numbers.", "Name another."
            )
        if role == "weight" and name is not None:
            check_kind(engine, name, "sample_weight")


def _folded(table: Table, engine: Engine | None, columns: AmountColumns, step: Any) -> Any:
    """Apply a step to all rows, part by part where they are not in memory."""
    if engine is None:
        return step(table, None)
    return engine.fold(step, _added, list(dict.fromkeys(columns.names)))


def _added(left: Any, right: Any) -> Any:
    """The sum of two parts, either of which may hold nobody."""
    return right if left is None else left if right is None else left + right


def _look(columns: AmountColumns, table: Table, place: BatchPlace | None) -> _Seen:
    people = columns.people(table, None, 0 if place is None else place.start, by_name=place is not None)
    if people is None:
        return _NOBODY
    f = people.prediction
    return _Seen(
        frozenset(people.groups), float(f.min()), float(f.max()), len(people), float(people.weights.sum())
    )


def _sum(
    columns: AmountColumns, groups: tuple[Any, ...], scale: Scale, table: Table, place: BatchPlace | None
) -> Predicted | None:
    people = columns.people(table, groups, 0 if place is None else place.start, by_name=place is not None)
    return None if people is None else sum_predicted(people, scale)


#: What speaks of classes, of which there are none.
_OF_CLASSES = ("score", "classes", "missing_labels", "weight_kind")


def aggregates_of_amounts(
    table: Table,
    *,
    predicted: Any,
    y: Any = None,
    sensitive_features: Any = None,
    happiness: Any = None,
    loss: Any = "squared",
    decisions: Any = None,
    groups: Sequence[Any] | None = None,
    policy: Any = None,
    baseline: Any = None,
    sample_weight: Any = None,
    key: str | None = None,
    **of_classes: Any,
) -> AmountAggregates:
    """Sum up people about whom an amount is predicted; see :func:`felicific.aggregate`."""
    for name in _OF_CLASSES:
        if of_classes.get(name) is not None:
            raise DataError(f"{name}= has no use where amounts are predicted.", f"Leave {name}= out.")
    if baseline is not None:
        raise DataError(
            "Sums of amounts do not keep the baseline of each person.",
            "Leave baseline= out (baseline is then the prediction), or use FairRegressor, in memory.",
        )
    loss = "squared" if isinstance(loss, str) and loss == "error" else loss  # "error" is that of classes
    asked = AskedOfAmounts.of(
        NumericProblem.finding(happiness, loss=loss, decisions=decisions), loss, _calibration(policy)
    )
    columns = AmountColumns(predicted, y, sensitive_features, sample_weight)
    engine = find_engine(table)
    sums = sum_table(table, engine, columns, asked.allowed, groups)
    roles = Roles(sensitive_features, y, predicted=predicted, key=key)
    named = roles.remembered(column_names(table) if engine is None else engine.names)
    return AmountAggregates(replace(sums, roles=named), asked)


def _calibration(policy: Any) -> Method:
    """What is made of predictions: as Score(calibration=...) says."""
    if policy is None or (isinstance(policy, str) and policy == "auto"):
        return "affine"
    sight = resolve_sight(policy)
    if sight.individual:
        raise DataError(
            "Sums over people are not enough for an individual policy, which looks at each of them.",
            "Use FairRegressor, which has them in memory; or policy='score' or Score(calibration=...).",
        )
    return check_method(sight.calibration)
