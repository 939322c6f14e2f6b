"""Tables of people who are to be given amounts: read whole where they are in memory, else summed up part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from felicific._people.lazy import check_kind, no_rows
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._problem.numeric import Allowed, NumericProblem
from felicific._program.calibration import Method, check_method
from felicific._program.numeric import AmountAggregates, AskedOfAmounts
from felicific._program.predicted import Predicted, Scale, sum_predicted
from felicific._program.signal_names import resolve_sight
from felicific._tables.engine import NUMERIC, BatchPlace, Engine, find_engine
from felicific._tables.groups import attributes_of, find_groups, groups_of_present, refuse_identifiers
from felicific._tables.memory import as_objects, column_names, count_rows
from felicific._typing import Table
from felicific.exceptions import DataError


def people_in(
    columns: Roles, table: Table, groups: tuple[Any, ...] | None = None, place: BatchPlace | None = None
) -> People | None:
    """Rows in memory as people, without their table; None where none of them has a weight."""
    weight, n, first = columns.weights_in(table), count_rows(table), 0 if place is None else place.start
    if not n or (weight is not None and not weight.any()):
        return None
    by_name = place is not None
    return People.predicted_amounts(
        None,
        prediction=columns.column(table, "predicted"),
        y=columns.column(table, "y"),
        group=groups_of_present(table, columns.group, weight, by_name, fresh=True),
        weight=weight,
        baseline=columns.column(table, "baseline"),
        rows=np.arange(first, first + n),
        attributes=columns.attributes if by_name else attributes_of(table, columns.group, columns_only=False),
        groups=groups,
    )


class _Seen(NamedTuple):
    """What a first look at some rows tells: the groups, the ends of the predictions, and how many there are."""

    groups: frozenset[Any]
    low: float
    high: float
    rows: int
    weight: float


def _summed(
    table: Table, engine: Engine | None, columns: Roles, allowed: Allowed, groups: Sequence[Any] | None
) -> Predicted:
    """The sums of a table: in one pass where groups and bounds are known before, else in two."""
    known = None if groups is None else find_groups(as_objects(list(groups)))
    if engine is not None:
        _check_columns(engine, columns.names_only())
    scale = None if allowed.bounds is None else Scale(*allowed.bounds)
    if known is None or scale is None:
        seen: _Seen | None = _folded(table, engine, columns, partial(_look, columns), _both)
        if seen is None:
            raise no_rows(columns.weight)
        if known is None:
            known = find_groups(as_objects(list(seen.groups)))
            refuse_identifiers(known, seen.rows, None if columns.weight is None else seen.weight)
        scale = Scale(seen.low, seen.high) if scale is None else scale
    step = partial(_sum, columns, known, scale)
    sums: Predicted | None = _folded(table, engine, columns, step, _plus)
    if sums is None:
        raise no_rows(columns.weight)
    return sums


def _check_columns(engine: Engine, columns: Roles) -> None:
    """Refuse columns that are not there, or hold no numbers where these are needed."""
    for name, purpose in columns.named.items():
        engine.index(name, "the amounts")
        check_kind(engine, name, purpose)
        if purpose in ("predicted", "y") and engine.kind(name, purpose) not in NUMERIC:
            raise DataError(f"The column {name!r}, needed for {purpose}, holds no numbers.", "Name another.")


def _folded(
    table: Table, engine: Engine | None, columns: Roles, step: Any, both: Callable[[Any, Any], Any]
) -> Any:
    """Apply a step to all rows, part by part where they are not in memory; a part may hold nobody."""
    if engine is None:
        return step(table, None)
    return engine.fold(step, partial(_added, both), list(columns.named))


def _added(both: Callable[[Any, Any], Any], *parts: Any) -> Any:
    """The sum of the parts that hold somebody."""
    held = [part for part in parts if part is not None]
    return reduce(both, held) if held else None


def _look(columns: Roles, table: Table, place: BatchPlace | None) -> _Seen | None:
    """Look at some rows for the first time."""
    people = people_in(columns, table, None, place)
    if people is None:
        return None
    f = people.prediction
    return _Seen(
        frozenset(people.groups), float(f.min()), float(f.max()), len(people), float(people.weights.sum())
    )


def _both(one: _Seen, other: _Seen) -> _Seen:
    """What both parts tell."""
    ends = min(one.low, other.low), max(one.high, other.high)
    return _Seen(one.groups | other.groups, *ends, one.rows + other.rows, one.weight + other.weight)


def _plus(one: Predicted, other: Predicted) -> Predicted:
    """The sum of two parts."""
    return one + other


def _sum(
    columns: Roles, groups: tuple[Any, ...], scale: Scale, table: Table, place: BatchPlace | None
) -> Predicted | None:
    """Add up some rows."""
    people = people_in(columns, table, groups, place)
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
    columns = Roles(sensitive_features, y, predicted=predicted, weight=sample_weight, key=key)
    engine = find_engine(table)
    sums = _summed(table, engine, columns, asked.allowed, groups)
    named = columns.remembered(column_names(table) if engine is None else engine.names)
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
