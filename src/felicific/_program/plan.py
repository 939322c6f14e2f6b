"""Plans: what is asked of a table that is not in memory, as names of columns and, where possible, as expressions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import ARGUMENTS, Happiness, arguments_of
from felicific._program.signals import Label, Signal
from felicific._program.summing import check_weights, resolve_loss
from felicific._tables.column import NUMERIC, Column, ColumnTable, NotAColumn, as_column
from felicific._tables.engine import Combine, Engine, Place, QueryEngine, as_list
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import (
    Array,
    Table,
    Values,
    as_vector,
    count_rows,
    distinct,
    is_null,
    null_rows,
    slice_rows,
    take_column,
    take_rows,
)
from felicific.exceptions import BatchWarning, DataError, EngineError, FelicificError, HappinessError


@dataclass(frozen=True)
class Ask:
    """What is asked of a table that is not in memory: names of columns, functions, and what they are for."""

    classes: Array
    happiness: tuple[Happiness, ...]
    signal: Signal
    loss: Any
    y: str | None
    sensitive_features: Any
    proba: tuple[str, ...] | None = None
    predicted: str | None = None
    weight: str | None = None
    groups: tuple[Any, ...] | None = None

    @property
    def group_columns(self) -> list[str]:
        """Columns that the groups are made of; none when a function makes them."""
        named = self.sensitive_features
        if callable(named):
            return []
        return list(named) if isinstance(named, list | tuple) else [named]

    @property
    def named(self) -> dict[str, str]:
        """Columns that are named in the call, and what for."""
        found = dict.fromkeys(self.group_columns, "the groups")
        if self.y is not None:
            found[self.y] = "y"
        found |= dict.fromkeys(self.proba or (), "proba")
        if self.predicted is not None:
            found[self.predicted] = "predicted"
        if self.weight is not None:
            found[self.weight] = "sample_weight"
        return found


def make_plan(engine: Engine, ask: Ask) -> Plan:
    """Check the names, and try to write every function as expressions; a notice says when one cannot be."""
    _check_named(engine, ask)
    plan = Plan.build(engine, ask)
    if plan.reason is not None:
        warnings.warn(
            f"{plan.reason} It runs batch by batch, which is slower and reads every column.",
            BatchWarning,
            stacklevel=5,
        )
    return plan


def columns_seen(engine: Engine, policy: Any, sensitive_features: Any) -> tuple[str, ...] | None:
    """Columns that the functions of an individual policy look at; None when they must see the library's own rows."""
    ask = Ask(policy.classes, policy.happiness, Label(), policy.loss_function, None, sensitive_features)
    plan = Plan.build(engine, ask, as_column(policy.classes.tolist()[0], "the label"))
    return plan.used if plan.reason is None else None


@dataclass(frozen=True)
class Rows:
    """Some rows in memory: the table as functions see it, and the columns that have a role."""

    table: Table
    y: Array | None
    group: Array
    proba: Array | None
    predicted: Array | None
    weight: NDArray[np.float64] | None
    place: Place

    def present(self) -> tuple[Rows, NDArray[np.intp]]:
        """Without the rows of weight 0, which are absent; and the numbers of the others, for messages."""
        numbers = np.arange(len(self.group)) + self.place.start
        if self.weight is None or self.weight.all():
            return self, numbers
        held = np.flatnonzero(self.weight)
        return self._chosen(take_rows(self.table, held), held), numbers[held]

    def part(self, here: slice) -> Rows:
        """Some of the rows, one after the other."""
        return self._chosen(slice_rows(self.table, here.start, here.stop), here)

    def _chosen(self, table: Table, which: Any) -> Rows:
        arrays = {name: getattr(self, name) for name in ("y", "group", "proba", "predicted", "weight")}
        chosen: dict[str, Any] = {name: None if a is None else a[which] for name, a in arrays.items()}
        return replace(self, table=table, **chosen)


def fold_rows(
    engine: Engine, ask: Ask, plan: Plan, step: Callable[[Ask, Rows], Any], combine: Combine[Any]
) -> Any:
    """Apply ``step`` to batches of rows and combine; what is missing is told for the whole table.

    Functions that could be expressions get arrays, so that they mean the same as on every engine; the others get the
    library's own rows, with every column.
    """
    work = partial(_on_rows, ask, plan.used, plan.reason is None, step)
    names = plan.used if plan.reason is None else engine.names
    try:
        found = engine.fold(work, combine, list(names))
    except FelicificError as error:
        if not isinstance(error, EngineError):
            _refuse_missing(engine, ask, plan.used)
        raise
    if found is None and ask.groups is None:
        raise no_rows(ask.weight)
    return step(ask, _nobody(ask)) if found is None else found


def _nobody(ask: Ask) -> Rows:
    """No rows at all."""
    none = np.empty(0, dtype=object)
    proba = None if ask.proba is None else np.empty((0, len(ask.classes)))
    predicted = None if ask.predicted is None else none
    return Rows(dict.fromkeys(ask.named, none), none, none, proba, predicted, None, Place())


def _on_rows(
    ask: Ask,
    used: tuple[str, ...],
    arrays: bool,
    step: Callable[[Ask, Rows], Any],
    table: Table,
    place: Place,
) -> Any:
    def column(name: str | None) -> Any:
        return None if name is None else take_column(table, name, ask.named[name])

    if arrays:
        table = {name: take_column(table, name, ask.named.get(name, "the happiness")) for name in used}
        table |= {name: _floats(table[name]) for name in used if name not in ask.named}
        table = {name: column.view(Values) for name, column in table.items()}
    missing = _missing(ask.named, ask.weight, used, table, place)
    if missing.counts:
        missing.refuse()
    weight = check_weights(column(ask.weight), count_rows(table), place.start)
    group = groups_of_present(table, ask.sensitive_features, weight, columns_only=True)
    proba = None if ask.proba is None else np.column_stack([column(name) for name in ask.proba])
    return step(ask, Rows(table, column(ask.y), group, proba, column(ask.predicted), weight, place))


def _floats(column: Array) -> Array:
    """Whole numbers as floats where those are exact: arithmetic does not wrap then, as in queries."""
    exact = column.dtype.kind in "iu" and -(2**53) <= column.min(initial=0) <= column.max(initial=0) <= 2**53
    return column.astype(np.float64) if exact else column


def no_rows(weight: str | None) -> DataError:
    """What is said of a table in which nobody is left, unless the groups are given: then the sums are zero."""
    if weight is None:
        return DataError("The table has no rows.", "Pass at least one row of every group.")
    return DataError(
        f"The table has no rows, or all weights in {weight!r} are zero.", "Give some row a positive weight."
    )


def _check_named(engine: Engine, ask: Ask) -> None:
    for name, purpose in ask.named.items():
        _check_kind(engine, name, purpose)


def _check_kind(engine: Engine, name: str, purpose: str) -> None:
    kind = engine.kind(name, purpose)
    if purpose in ("proba", "sample_weight") and kind not in NUMERIC:
        raise DataError(
            f"The column {name!r}, needed for {purpose}, holds {'text' if kind == 'text' else 'no numbers'}.",
            "Name a column of numbers.",
        )


def distinct_labels(engine: Engine, y: str, weight: str | None, purpose: str) -> list[Any]:
    """The labels that occur in rows of positive weight."""
    engine.index(y, purpose)
    names = [y] if weight is None else [y, weight]
    if weight is not None:
        _check_kind(engine, weight, "sample_weight")
    if isinstance(engine, QueryEngine):
        column = engine.column(y, "y").expr.alias("y")
        frame = engine.frame()
        if weight is not None:
            frame = frame.filter(engine.column(weight, "sample_weight").astype(float).expr != 0.0)
        try:
            found = set(as_list(engine.collect(frame.select(column).unique()), "y"))
        except Exception as error:
            raise engine.failure(error) from error
    else:
        found = engine.fold(partial(_labels, y, weight), set.union, names) or set()
    held = [value for value in found if not is_null(value)]
    if not held:
        present = "" if weight is None else f" and a positive weight in {weight!r}"
        raise DataError(
            f"No row of the table has a value in {y!r}{present}.", "Pass at least one row of every group."
        )
    return distinct(np.array([*held, None], dtype=object)[:-1])


def _labels(y: str, weight: str | None, table: Table, place: Place) -> set[Any]:
    labels = take_column(table, y, "y")
    if weight is not None:
        labels = labels[take_column(table, weight, "sample_weight") != 0]
    return set(np.unique(labels).tolist() if labels.dtype.kind != "O" else labels.tolist())


# ---------------------------------------------------------------------------------------------------------
# Missing values


@dataclass(frozen=True)
class _Missing:
    """How often each column is missing, and where first."""

    rows: int
    counts: dict[str, int]
    first: dict[str, tuple[str, ...]]

    def __add__(self, other: _Missing) -> _Missing:
        names = {**self.counts, **other.counts}
        return _Missing(
            self.rows + other.rows,
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            {name: (*self.first.get(name, ()), *other.first.get(name, ()))[:3] for name in names},
        )

    def refuse(self) -> None:
        name, count = next(iter(self.counts.items()))
        others = ""
        if len(self.counts) > 1:
            listed = [f"{other!r} in {self.counts[other]}" for other in list(self.counts)[1:6]]
            others = f"; also {', '.join(listed)}"
        subject = "row" if len(self.first[name]) == 1 else "rows"
        raise DataError(
            f"The column {name!r} is missing (null or NaN) in {count} of {self.rows} rows, "
            f"first in {subject} {', '.join(self.first[name])}{others}.",
            "Fill it in, or leave those rows out.",
        )


def _missing(named: dict[str, str], weight: Any, used: Iterable[str], table: Table, place: Place) -> _Missing:
    """Missing values of the columns that are used, in rows that do not have weight 0 (a column, or an array)."""
    counts, first = {}, {}
    absent = None
    if weight is not None:
        what = "sample_weight"
        absent = (
            take_column(table, weight, what) if isinstance(weight, str) else as_vector(weight, what)
        ) == 0
    for name in used:
        rows = null_rows(take_column(table, name, named.get(name, "the happiness")))
        if absent is not None:
            rows = rows[~absent[rows]]
        if len(rows):
            counts[name] = len(rows)
            first[name] = tuple(place.name(int(row)) for row in rows[:3])
    n = count_rows(table) if absent is None else int((~absent).sum())
    return _Missing(n, counts, first)


def _refuse_missing(engine: Engine, ask: Ask, used: Sequence[str]) -> None:
    """Raise, with the count over the whole table, if a used column is missing somewhere."""
    work = partial(_missing, ask.named, ask.weight, tuple(used))
    found = engine.fold(work, _Missing.__add__, list(used))
    if found is not None and found.counts:
        found.refuse()


@contextmanager
def missing_first(table: Table, named: dict[str, str], weight: Any) -> Iterator[None]:
    """When something is wrong with a table in memory, and some of its named columns are missing values, say that."""
    try:
        yield
    except FelicificError:
        if not named:
            raise
        found = _missing(named, weight, named, table, Place())
        if found.counts:
            found.refuse()
        raise


# ---------------------------------------------------------------------------------------------------------
# Expressions


@dataclass(frozen=True)
class Plan:
    """Every function as expressions of columns, or the reason why one of them cannot be.

    ``values[j][d]``, ``inside[j]`` and ``losses[d]`` are None for what does not look at x; ``counted`` are those
    memberships that are numbers, which must be 0 or 1.
    """

    used: tuple[str, ...]
    reason: str | None = None
    group: tuple[Column, ...] = ()
    values: tuple[tuple[Column, ...] | None, ...] = ()
    inside: tuple[Column | None, ...] = ()
    losses: tuple[Column, ...] | None = None
    counted: tuple[Column, ...] = ()

    @classmethod
    def build(cls, engine: Engine, ask: Ask, label: Column | None = None) -> Plan:
        """Call every function with columns; ``label`` stands for labels that are supposed, not known."""
        columns = {name: engine.column(name, "x") for name in engine.names}
        label = label if ask.y is None else columns[ask.y]
        used = list(ask.named)

        def call(function: Callable[..., Any], what: str, decision: Any) -> Column:
            x = ColumnTable(columns, what)
            named = ask.group_columns
            one = columns[named[0]] if len(named) == 1 else None if named else group[0]
            offered = {"decision": decision, "x": x, "y": label, "group": one}
            asked = arguments_of(function, what, ARGUMENTS if decision is not None else ARGUMENTS[1:])
            if "y" in asked and label is None:
                raise HappinessError(
                    f"{what} looks at the label y, and there is none.", "Name its column in y=."
                )
            try:
                if "group" in asked and one is None:
                    raise NotAColumn("the group is made of several columns")
                return _returned(function(**{name: offered[name] for name in asked}), what)
            except FelicificError:
                raise
            except Exception as error:
                raise _Unwritable(what, error) from error
            finally:
                used.extend(name for name in x.used if name not in used)

        try:
            group = _group_columns(engine, columns, ask, used)
            values, inside, counted = [], [], []
            for happiness in ask.happiness:
                mine, who = _component(happiness, ask, call)
                values.append(mine)
                if who is not None and who.kind != "bool":
                    counted.append(who)
                    who = who != 0
                inside.append(who)
            losses = _losses(ask, call)
        except _Unwritable as error:
            return cls(tuple(used), reason=str(error))
        return cls(tuple(used), None, group, tuple(values), tuple(inside), losses, tuple(counted))


class _Unwritable(Exception):  # noqa: N818  # never seen by the user
    def __init__(self, what: str, error: Exception) -> None:
        super().__init__(
            f"{what} cannot be written as an expression of columns ({type(error).__name__}: {error})."
        )


def _returned(result: Any, what: str) -> Column:
    if result is None:
        raise HappinessError(f"{what} returned None.", "Return one number per row; is a `return` missing?")
    column = as_column(result, "the result")
    if column.kind not in NUMERIC:
        raise HappinessError(
            f"{what} returned {'text' if column.kind == 'text' else column.kind}, not real numbers.",
            "Return one finite real number per row.",
        )
    return column


def _group_columns(
    engine: Engine, columns: dict[Any, Column], ask: Ask, used: list[str]
) -> tuple[Column, ...]:
    if not callable(ask.sensitive_features):
        return tuple(_key(engine, columns, name) for name in ask.group_columns)
    what, x = "The callable sensitive_features", ColumnTable(columns, "the groups")
    try:
        found = ask.sensitive_features(x)
        if found is None:
            raise DataError(f"{what} returned None.", "Return one group per row.")
        return (as_column(found, "group"),)
    except FelicificError:
        raise
    except Exception as error:
        raise _Unwritable(what, error) from error
    finally:
        used.extend(name for name in x.used if name not in used)


def _key(engine: Engine, columns: dict[Any, Column], name: str) -> Column:
    """A column to group by. Unsigned numbers stay as they are: of large ones, two could be one float."""
    import narwhals as nw

    i = engine.names.index(name)
    return Column(nw.col(f"c{i}"), "whole", repr(name)) if engine.dtypes[i] == nw.UInt64 else columns[name]


def _component(
    happiness: Happiness, ask: Ask, call: Callable[..., Column]
) -> tuple[tuple[Column, ...] | None, Column | None]:
    """Values for every decision and membership, if either looks at x."""
    what = f"The happiness {happiness.name!r}"
    asked = arguments_of(happiness.function, what, ARGUMENTS)
    if happiness.among is not None:
        asked |= arguments_of(happiness.among, what, ARGUMENTS[1:])
    if "x" not in asked:
        return None, None
    values = tuple(call(happiness.function, what, decision) for decision in ask.classes.tolist())
    if happiness.among is None:
        return values, None
    return values, call(happiness.among, f"`among` of the happiness {happiness.name!r}", None)


def _losses(ask: Ask, call: Callable[..., Column]) -> tuple[Column, ...] | None:
    cost = resolve_loss(ask.loss, ask.classes)[1]
    if isinstance(cost, np.ndarray) or "x" not in arguments_of(cost, "The loss", ARGUMENTS):
        return None
    return tuple(call(cost, "The loss", decision) for decision in ask.classes.tolist())
