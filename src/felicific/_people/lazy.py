"""People in a table that is not in memory: by names of columns, and some rows at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import check_weights
from felicific._people.columns import Columns, no_classes, without_missing
from felicific._people.missing import Missing, missing_values
from felicific._people.people import People
from felicific._people.used_columns import used_columns
from felicific._problem.problem import Problem, as_classes
from felicific._tables.engine import NUMERIC, BatchPlace, Combine, Engine, own_rows
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import (
    UnreadColumn,
    as_objects,
    column_arrays,
    count_rows,
    distinct,
    take_column,
    take_entries,
)
from felicific._typing import Array, Table
from felicific.exceptions import DataError, EngineError, FelicificError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

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
    used : tuple of str, or None
        Columns that functions look at, as arrays; None where one wants the library's own rows.
    """

    engine: Engine
    columns: Columns
    problem: Problem
    groups: tuple[Any, ...] | None
    used: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        engine: Engine,
        columns: Columns,
        problem: Problem,
        groups: Sequence[Any] | None = None,
        policy: Policy | None = None,
    ) -> LazyPeople:
        """Check the names, and find out what functions look at, those of a policy too that decides on the people."""
        columns = columns.names_only().for_classes(problem.labels.tolist())
        columns = columns if policy is None else columns.for_groups(policy.groups)
        for name, purpose in columns.named.items():
            check_kind(engine, name, purpose)
        known = None if groups is None else tuple(np.array([*groups, None], dtype=object)[:-1].tolist())
        used = used_columns(engine, columns, problem, warn=True)
        if policy is not None and policy.sees_x and used is not None:
            seen = policy.columns_seen(engine, columns.group)
            used = None if seen is None else tuple(dict.fromkeys([*used, *seen]))
        return cls(engine, columns, problem, known, used)

    def fold(self, step: Step, combine: Combine[Any]) -> Any:
        """Apply ``step`` to some people at a time and combine; what is missing is told for the whole table."""
        engine = self.engine
        reader = Reader(self.columns, self.problem, self.groups, self.used, tuple(engine.names))
        try:
            result = engine.fold(partial(_on_rows, reader, step), combine, self._read)
        except UnreadColumn as error:
            assert self.used is not None, "of the library's own rows all columns are read"
            return replace(self, used=(*self.used, error.name)).fold(step, combine)
        except FelicificError as error:
            if not isinstance(error, EngineError):
                self._refuse_missing()
            raise
        if result is None and self.groups is None:
            raise no_rows(self.columns.weight)
        return step(reader.read(engine.head(0), BatchPlace())) if result is None else result

    @property
    def _read(self) -> list[str]:
        """The columns that are read."""
        return self.engine.names if self.used is None else _distinct(self.columns.named, self.used)

    def _refuse_missing(self) -> None:
        """Raise, with the count over the whole table, if a used column is missing somewhere."""
        named, weight = self.columns.named, self.columns.weight
        used = _distinct(named, self.used or ())
        needed = self.columns.complete(used, labels=self.problem.looks_at_y)
        work = partial(missing_values, named, weight, needed, by_group=True)
        missing = self.engine.fold(work, Missing.__add__, used)
        if missing is not None:
            missing.refuse()


def _distinct(*names: Iterable[str]) -> list[str]:
    """Names, each of them once."""
    return list(dict.fromkeys(chain(*names)))


@dataclass(frozen=True)
class Reader:
    """From rows of an engine to people; what it takes to do that travels to the workers."""

    columns: Columns
    problem: Problem
    groups: tuple[Any, ...] | None
    used: tuple[str, ...] | None
    names: tuple[str, ...]

    def read(self, table: Table, place: BatchPlace) -> People:
        """Some rows as people."""
        columns, named = self.columns, self.columns.named
        if self.used is None:
            x = grouped = table = own_rows(table)
        else:
            read = _distinct(named, self.used)
            # Once, whoever looks at them: text by its codes.
            table = {name: take_entries(table, name, named.get(name, "the happiness")) for name in read}
            grouped = table
            x = column_arrays(table, self.used, self.names, whole=named)
            if callable(columns.group):
                grouped = column_arrays(table, self.used, self.names, "the groups", whole=self.used)
        needed = columns.complete(_distinct(named, self.used or ()), labels=self.problem.looks_at_y)
        missing_values(named, columns.weight, needed, table, place).refuse()
        weight = check_weights(columns.column(table, "weight"), count_rows(table), place.start)
        score, y = None, columns.entries(table, "y")
        if columns.score is not None:
            shares = [take_column(table, name, "score") for name in columns.score]
            score = shares[0] if len(shares) == 1 else np.column_stack(shares)
        return People.of(
            x,
            self.problem,
            group=groups_of_present(grouped, columns.group, weight, True, fresh=True),
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
    held: set[Any] = engine.fold(partial(_labels, y, weight), operator.or_, names) or set()
    if not held:
        present = "" if weight is None else f" and a positive weight in {weight!r}"
        raise DataError(
            f"No row of the table has a value in {y!r}{present}.", "Pass at least one row of every group."
        )
    return distinct(as_objects([*held]))


def _labels(y: str, weight: str | None, table: Table, place: BatchPlace) -> set[Any]:
    """The labels of some rows."""
    weights = None if weight is None else take_column(table, weight, "sample_weight")
    labels = without_missing(take_entries(table, y, "y"), weights)
    assert labels is not None, "there are labels"
    return set(distinct(labels))
