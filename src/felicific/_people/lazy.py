"""People in a table that is not in memory: by names of columns, and some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from felicific._people.checks import check_weights
from felicific._people.columns import Columns, no_classes
from felicific._people.missing import Missing, missing_values
from felicific._people.people import People
from felicific._people.plan import Plan
from felicific._problem.problem import Problem, as_classes
from felicific._tables.column import NUMERIC
from felicific._tables.engine import BatchPlace, Combine, Engine, QueryEngine, as_list
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import Values, count_rows, distinct, is_null, take_column
from felicific._typing import Array, Table
from felicific.exceptions import DataError, EngineError, FelicificError

#: What is asked of some people; answers of several parts are combined.
Step = Callable[[People], Any]


@dataclass(frozen=True)
class LazyPeople:
    """People in a table that is not in memory.

    Attributes
    ----------
    engine : Engine
        Where they are.
    columns : Columns
        Names of their columns.
    problem : Problem
        What is asked.
    groups : tuple, or None
        All groups there are; None for those that occur.
    plan : Plan
        Every function as expressions of columns, or the reason why one of them cannot be.
    """

    engine: Engine
    columns: Columns
    problem: Problem
    groups: tuple[Any, ...] | None
    plan: Plan = field(repr=False)

    @classmethod
    def of(
        cls, engine: Engine, columns: Columns, problem: Problem, groups: Sequence[Any] | None = None
    ) -> LazyPeople:
        """Check the names, and try to write every function as expressions; a notice says when one cannot be."""
        columns = columns.names_only().for_classes(problem.labels.tolist())
        for name, purpose in columns.named.items():
            check_kind(engine, name, purpose)
        known = None if groups is None else tuple(np.array([*groups, None], dtype=object)[:-1].tolist())
        plan = Plan.build(engine, columns, problem)
        plan.notice()
        return cls(engine, columns, problem, known, plan)

    def fold(self, step: Step, combine: Combine[Any], *, x: bool = True) -> Any:
        """Apply ``step`` to some people at a time and combine; what is missing is told for the whole table.

        Without ``x`` nobody looks at more of them than the roles say, and their rows have no columns.

        Functions that could be expressions get arrays, so that they mean the same as on every engine; the others get
        the library's own rows, with every column.
        """
        plan, engine = self.plan, self.engine
        reader = Reader(self.columns, self.problem, self.groups, plan.used, plan.reason is None, x)
        names = plan.used if plan.reason is None else engine.names
        try:
            result = engine.fold(partial(_on_rows, reader, step), combine, list(names))
        except FelicificError as error:
            if not isinstance(error, EngineError):
                self._refuse_missing()
            raise
        if result is None and self.groups is None:
            raise no_rows(self.columns.weight)
        return step(self._nobody()) if result is None else result

    def _refuse_missing(self) -> None:
        """Raise, with the count over the whole table, if a used column is missing somewhere."""
        named, weight = self.columns.named, self.columns.weight
        needed = self.columns.complete(self.plan.used, labels=self.problem.looks_at_y)
        work = partial(missing_values, named, weight, needed, by_group=True)
        missing = self.engine.fold(work, Missing.__add__, list(self.plan.used))
        if missing is not None:
            missing.refuse()

    def _nobody(self) -> People:
        """No rows at all."""
        none, columns = np.empty(0, dtype=object), self.columns
        n_labels = len(self.problem.labels)
        return People.of(
            dict.fromkeys(columns.named, none),
            self.problem,
            group=none,
            y=None if columns.y is None else none,
            score=None if columns.score is None else np.empty((0, n_labels)),
            predicted=None if columns.predicted is None else none,
            baseline=None if columns.baseline is None else none,
            decided=None if columns.decided is None else none,
            weight_kind=columns.weight_kind,
            attributes=columns.attributes,
            cluster=None if columns.cluster is None else none,
            group_proba=None if columns.group_proba is None else np.empty((0, len(columns.group_proba))),
            groups=self.groups,
            first_row=0,
            missing=columns.missing_labels,
            label_proba=np.empty(0) if columns.label_proba else None,
        )


@dataclass(frozen=True)
class Reader:
    """From rows of an engine to people; what it takes to do that travels to the workers."""

    columns: Columns
    problem: Problem
    groups: tuple[Any, ...] | None
    used: tuple[str, ...]
    arrays: bool
    x: bool = True

    def read(self, table: Table, place: BatchPlace) -> People:
        """Some rows as people."""
        columns, named = self.columns, self.columns.named
        if self.arrays and self.x:
            table = {name: take_column(table, name, named.get(name, "the happiness")) for name in self.used}
            table |= {name: _floats(table[name]) for name in self.used if name not in named}
            table = {name: column.view(Values) for name, column in table.items()}
        needed = columns.complete(self.used, labels=self.problem.looks_at_y)
        missing_values(named, columns.weight, needed, table, place).refuse()
        weight = check_weights(columns.column(table, "weight"), count_rows(table), place.start)
        group = groups_of_present(table, columns.group, weight, True, fresh=True)
        score, y = None, columns.entries(table, "y")
        if columns.score is not None:
            score = np.column_stack([take_column(table, name, "score") for name in columns.score])
        return People.of(
            table if self.x else np.empty((count_rows(table), 0)),
            self.problem,
            group=group,
            y=y,
            score=score,
            predicted=columns.entries(table, "predicted"),
            baseline=columns.entries(table, "baseline"),
            decided=columns.entries(table, "decided"),
            weight=weight,
            roles=columns.remembered(),
            weight_kind=columns.weight_kind,
            attributes=columns.attributes,
            cluster=columns.column(table, "cluster"),
            # Until the groups are known, nobody asks how likely they are.
            group_proba=columns.group_chances(table) if isinstance(columns.group_proba, tuple) else None,
            groups=self.groups,
            first_row=place.start,
            **columns.read_missing(table, y),
        )


def _on_rows(reader: Reader, step: Step, table: Table, place: BatchPlace) -> Any:
    return step(reader.read(table, place))


def _floats(column: Array) -> Array:
    """Whole numbers as floats where those are exact: arithmetic does not wrap then, as in queries."""
    exact = column.dtype.kind in "iu" and -(2**53) <= column.min(initial=0) <= column.max(initial=0) <= 2**53
    return column.astype(np.float64) if exact else column


def no_rows(weight: Any = None) -> DataError:
    """What is said of a table in which nobody is left, unless the groups are given: then the sums are zero."""
    if weight is None:
        return DataError("The table has no rows.", "Pass at least one row of every group.")
    return DataError(
        f"The table has no rows, or all weights in {weight!r} are zero.", "Give some row a positive weight."
    )


def check_kind(engine: Engine, name: str, purpose: str) -> None:
    """Refuse a column that is not there, or that holds no numbers where these are needed."""
    kind = engine.kind(name, purpose)
    if purpose in ("score", "sample_weight", "group_proba", "label_proba") and kind not in NUMERIC:
        raise DataError(
            f"The column {name!r}, needed for {purpose}, holds {'text' if kind == 'text' else 'no numbers'}.",
            "Name a column of numbers.",
        )


# ---------------------------------------------------------------------------------------------------------
# Classes


def classes_on(engine: Engine, columns: Columns, classes: Sequence[Any] | None) -> Array:
    """The classes there are: as they are given, else those with probabilities, else the labels."""
    columns = columns.names_only()
    classes = columns.classes_named if classes is None else classes
    if classes is None:
        baseline = None if columns.listed else columns.baseline
        known = next((name for name in (columns.y, columns.predicted, baseline) if name is not None), None)
        if known is None:
            raise no_classes()
        held = distinct_labels(engine, known, columns.weight, "y")
        try:
            classes = sorted(held)
        except TypeError as error:
            shown = ", ".join(sorted(map(repr, held))[:6])
            raise DataError(
                f"The classes {shown} are of different types.",
                "Use the same values for labels and decisions, or name all of them.",
            ) from error
    return as_classes(classes)


def distinct_labels(engine: Engine, y: str, weight: str | None, purpose: str) -> list[Any]:
    """The labels that occur in rows of positive weight."""
    engine.index(y, purpose)
    names = [y] if weight is None else [y, weight]
    if weight is not None:
        check_kind(engine, weight, "sample_weight")
    if isinstance(engine, QueryEngine):
        column = engine.key(y, "y").expr.alias("y")
        frame = engine.frame()
        if weight is not None:
            frame = frame.filter(engine.column(weight, "sample_weight").astype(float).expr != 0.0)
        try:
            held = set(as_list(engine.collect(frame.select(column).unique()), "y"))
        except Exception as error:
            raise engine.failure(error) from error
    else:
        held = engine.fold(partial(_labels, y, weight), set.union, names) or set()
    known = [value for value in held if not is_null(value)]
    if not known:
        present = "" if weight is None else f" and a positive weight in {weight!r}"
        raise DataError(
            f"No row of the table has a value in {y!r}{present}.", "Pass at least one row of every group."
        )
    return distinct(np.array([*known, None], dtype=object)[:-1])


def _labels(y: str, weight: str | None, table: Table, place: BatchPlace) -> set[Any]:
    labels = take_column(table, y, "y")
    if weight is not None:
        labels = labels[take_column(table, weight, "sample_weight") != 0]
    return set(np.unique(labels).tolist() if labels.dtype.kind != "O" else labels.tolist())
