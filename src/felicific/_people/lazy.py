"""People in a table that is not in memory: by names of columns, and some rows at a time.

Of a function of the user's it is found out which columns it looks at: text names them; a Python function is called once
with the first rows as arrays, which note that. One that does not work on arrays gets the rows as the library has them,
with all columns. What is missing is counted for the whole table before it is refused.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import check_classes, check_weights, count_by_group, level_outside, no_label
from felicific._people.people import People
from felicific._people.roles import Roles, no_classes, without_missing
from felicific._problem.expressions import Expression
from felicific._problem.happiness import ARGUMENTS, Happiness, Loses, arguments_of
from felicific._problem.missing_labels import SAY
from felicific._problem.problem import Problem
from felicific._tables.engine import NUMERIC, BatchPlace, Combine, Engine, find_engine, own_rows
from felicific._tables.groups import name_groups
from felicific._tables.memory import (
    ColumnArrays,
    UnreadColumn,
    as_objects,
    as_vector,
    column_arrays,
    count_rows,
    distinct,
    null_rows,
    object_array,
    refuse_missing_columns,
    take_column,
    take_entries,
)
from felicific._typing import Array, Table
from felicific.exceptions import BatchWarning, DataError, EngineError, FelicificError

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
    columns : Roles
        Names of their columns.
    problem : Problem
        What is asked.
    groups : tuple, or None
        All groups there are; None for those that occur.
    used : tuple of str, or None
        Columns that functions look at, as arrays; None where one wants the library's own rows.
    """

    engine: Engine
    columns: Roles
    problem: Problem
    groups: tuple[Any, ...] | None
    used: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        engine: Engine,
        columns: Roles,
        problem: Problem,
        groups: Sequence[Any] | None = None,
        policy: Policy | None = None,
    ) -> LazyPeople:
        """Check the names, and find out what functions look at, those of a policy too that decides on the people."""
        columns = columns.names_only(problem.labels.tolist())
        columns = columns if policy is None else columns.for_groups(policy.groups)
        for name, purpose in columns.named.items():
            check_kind(engine, name, purpose)
        known = None if groups is None else tuple(object_array(groups).tolist())
        used = used_columns(engine, columns, problem, warn=True)
        if policy is not None and policy.sees_x and used is not None:
            seen = policy.columns_seen(engine, columns.group)
            used = None if seen is None else tuple(dict.fromkeys([*used, *seen]))
        return cls(engine, columns, problem, known, used)

    def fold(self, step: Step, combine: Combine[Any]) -> Any:
        """Apply ``step`` to some people at a time and combine; what is missing is told for the whole table."""
        engine = self.engine
        work = partial(
            _on_rows, self.columns, self.problem, self.groups, self.used, tuple(engine.names), step
        )
        try:
            result = engine.fold(work, combine, self._read)
        except UnreadColumn as error:
            assert self.used is not None, "of the library's own rows all columns are read"
            return replace(self, used=(*self.used, error.name)).fold(step, combine)
        except FelicificError as error:
            if not isinstance(error, EngineError):
                self._refuse_missing()
            raise
        if result is None and self.groups is None:
            raise no_rows(self.columns.weight)
        return work(engine.head(0), BatchPlace()) if result is None else result

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


def _on_rows(
    columns: Roles,
    problem: Problem,
    groups: tuple[Any, ...] | None,
    used: tuple[str, ...] | None,
    names: tuple[str, ...],
    step: Step,
    table: Table,
    place: BatchPlace,
) -> Any:
    """Ask some rows of an engine, as people; what it takes to do that travels to the workers."""
    named = columns.named
    read = _distinct(named, used or ())
    if used is None:
        x = grouped = table = own_rows(table)
    else:
        # Once, whoever looks at them: text by its codes.
        table = {name: take_entries(table, name, named.get(name, "the happiness")) for name in read}
        grouped = table
        x = column_arrays(table, used, names, whole=named)
        if callable(columns.group):
            grouped = column_arrays(table, used, names, "the groups", whole=used)
    needed = columns.complete(named, labels=problem.looks_at_y)
    missing_values(named, columns.weight, needed, table, place).refuse()
    weight = check_weights(columns.column(table, "weight"), count_rows(table), place.start)
    values = columns.read(table, problem.labels, weight, grouped=grouped)
    return step(People.of(x, problem, **values, groups=groups, first_row=place.start))


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


def classes_on(engine: Engine, columns: Roles, classes: Sequence[Any] | None) -> Array:
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
    return check_classes(classes)


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


# ---------------------------------------------------------------------------------------------------------
# Columns that functions look at

#: Rows that functions are tried on.
TRIED = 100


def used_columns(
    engine: Engine, columns: Roles, problem: Problem, *, warn: bool = False
) -> tuple[str, ...] | None:
    """Columns that the functions of a problem, and that of the groups, look at; None where one wants no arrays."""
    used, head, arrays = dict[Any, None](), None, dict[Any, Array]()
    grouping = [("The callable sensitive_features", columns.group)] if callable(columns.group) else []
    for what, function in [*grouping, *_functions(problem)]:
        inside = what[:1].lower() + what[1:]  # of a sentence
        if isinstance(function, Expression):
            refuse_missing_columns(engine.names, function.columns, inside)
            used |= dict.fromkeys(function.columns)
            continue
        asks = None if function is columns.group else arguments_of(function, what, ARGUMENTS)
        if asks is not None and "x" not in asks:
            continue
        if head is None:
            head = engine.head(TRIED)
            arrays = _head_arrays(engine, head)
        x = ColumnArrays(arrays, count_rows(head), engine.names, inside)
        try:
            with np.errstate(all="ignore"):
                _try_on(function, asks, x, head, columns, problem)
        except Exception as error:
            if isinstance(error, FelicificError) and not isinstance(error, UnreadColumn):
                raise
            if warn:
                reason = f"{what} does not work on arrays ({type(error).__name__}: {error})."
                text = f"{reason} It gets the rows as a dataframe, which is slower and reads every column."
                warnings.warn(text, BatchWarning, stacklevel=level_outside())
            return None
        used |= dict.fromkeys(x.used)
    return tuple(used)


def _functions(problem: Problem) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All functions of a problem, with what messages call them."""

    def of(happiness: Happiness) -> Iterator[tuple[str, Callable[..., Any]]]:
        if isinstance(happiness.function, Loses):
            for part in happiness.function.parts:
                yield from of(part)
            return
        yield f"The happiness {happiness.name!r}", happiness.function
        if happiness.among is not None:
            yield f"`among` of the happiness {happiness.name!r}", happiness.among

    for happiness in problem.happiness:
        yield from of(happiness)
    if problem.loss.function is not None:
        yield "The loss", problem.loss.function


def _head_arrays(engine: Engine, head: Table) -> dict[Any, Array]:
    """The columns of the first rows that are arrays; nobody may ever look at the others."""
    arrays: dict[Any, Array] = {}
    for name in engine.names:
        with contextlib.suppress(Exception):
            arrays[name] = column_arrays(head, [name], engine.names).arrays[name]
    return arrays


def _try_on(
    function: Callable[..., Any],
    asks: frozenset[str] | None,
    x: ColumnArrays,
    head: Table,
    columns: Roles,
    problem: Problem,
) -> None:
    """Call a function on the first rows, with something for all that it asks for; None: that of the groups."""
    n, given = x.rows, dict[str, Any](x=x)
    if asks is None:
        function(x)
        return

    def numbers(name: Any) -> Array:
        return np.ones(n) if name is None else take_column(head, name, "the decisions").astype(np.float64)

    if "y" in asks and columns.y is not None:
        given["y"] = take_column(head, columns.y, "y")
    elif "y" in asks:  # a policy may suppose it
        given["y"] = np.repeat(problem.labels[:1] if len(problem.labels) else np.ones(1), n)
    if "baseline" in asks:
        given["baseline"] = (
            numbers(columns.baseline) if problem.of_amounts else np.repeat(problem.decisions[:1], n)
        )
    if "group" in asks and callable(columns.group):
        given["group"] = np.asarray(columns.group(ColumnArrays(x.arrays, n, x.names, "the groups")))
    elif "group" in asks:
        parts = [take_column(head, name, "the groups") for name in columns.group_names]
        given["group"] = np.asarray(name_groups(parts))
    if "decision" not in asks:
        function(**given)
        return
    for decision in [numbers(columns.decided)] if problem.of_amounts else problem.decisions.tolist():
        function(decision=decision, **given)


# ---------------------------------------------------------------------------------------------------------
# Missing values of the columns that have a role

#: What to do about a missing value, and about a missing group.
FILL = "Fill it in: without those rows, those people would be left out."
UNKNOWN = (
    "Fill it with a name, and leave that name out of groups= where they are not to be compared: Gap(..., "
    "groups=[...]). Without those rows, those people would be left out."
)


@dataclass(frozen=True)
class Missing:
    """How often each column is missing, and where first; of the column of labels, ``label``, also in which groups.

    ``grouping`` are the columns of the groups.
    """

    rows: int
    counts: dict[str, int]
    first: dict[str, tuple[str, ...]]
    label: str | None = None
    by_group: dict[str, list[int]] = field(default_factory=dict)
    grouping: tuple[str, ...] = ()

    def __add__(self, other: Missing) -> Missing:
        names = {**self.counts, **other.counts}
        return Missing(
            self.rows + other.rows,
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            {name: (*self.first.get(name, ()), *other.first.get(name, ()))[:3] for name in names},
            self.label,
            {
                group: [a + b for a, b in zip(self.by_group.get(group, (0, 0)), n, strict=True)]
                for group, n in (dict.fromkeys(self.by_group, (0, 0)) | other.by_group).items()
            },
            self.grouping,
        )

    def refuse(self) -> None:
        """Raise if some value is missing."""
        if not self.counts:
            return
        name, count = next(iter(self.counts.items()))
        listed = [f"{other!r} in {self.counts[other]}" for other in list(self.counts)[1:6]]
        others = f"; also {', '.join(listed)}" if listed else ""
        subject = "row" if len(self.first[name]) == 1 else "rows"
        first = f"{subject} {', '.join(self.first[name])}{others}"
        if name == self.label and self.by_group:
            raise no_label("The label", self.by_group, self.rows, first)
        raise DataError(
            f"The column {name!r} is missing (null or NaN) in {count} of {self.rows} rows, first in {first}.",
            SAY if name == self.label else UNKNOWN if name in self.grouping else FILL,
        )


def missing_values(
    named: dict[str, str],
    weight: Any,
    used: Iterable[str],
    table: Table,
    place: BatchPlace,
    *,
    by_group: bool = False,
) -> Missing:
    """Missing values of the columns that are used, in rows that do not have weight 0 (a column, or an array).

    ``by_group`` counts the people of every group, and those without a label.
    """
    counts, first = {}, {}
    absent = None
    if weight is not None:
        what = "sample_weight"
        column = take_column(table, weight, what) if isinstance(weight, str) else as_vector(weight, what)
        absent = column == 0
    for name in used:
        rows = null_rows(take_entries(table, name, named.get(name, "the happiness")))
        if absent is not None:
            rows = rows[~absent[rows]]
        if len(rows):
            counts[name] = len(rows)
            first[name] = tuple(place.name(int(row)) for row in rows[:3])
    n = count_rows(table) if absent is None else int((~absent).sum())
    label = next((name for name, purpose in named.items() if purpose == "y"), None)
    grouping = tuple(name for name, purpose in named.items() if purpose == "the groups")
    people = {}
    if by_group and grouping and label is not None:
        group = name_groups([take_entries(table, name, "the groups") for name in grouping])
        labels = take_entries(table, label, "y")
        if absent is not None:
            group, labels = group[~absent], labels[~absent]
        people = count_by_group(group, null_rows(labels))
    return Missing(n, counts, first, label, people, grouping)


@contextlib.contextmanager
def missing_first(table: Table, columns: Roles) -> Iterator[None]:
    """When something is wrong with a table in memory, and some of its named columns are missing values, say that."""
    try:
        yield
    except FelicificError:
        named = columns.named_in(table)
        if named:
            needed = columns.complete(named)
            missing_values(named, columns.weight, needed, table, BatchPlace(), by_group=True).refuse()
        raise


# ---------------------------------------------------------------------------------------------------------
# From a table to people, in memory or where they are


@contextlib.contextmanager
def labelled_people(
    table: Table,
    columns: Roles,
    asked: Callable[[Array], Problem],
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
) -> Iterator[tuple[People | LazyPeople, Problem]]:
    """People with labels and what is asked of them, for work that ends before the context does.

    Parameters
    ----------
    table : table, in memory or not
    columns : Roles
        Which column plays which role.
    asked : callable
        What is asked of some classes.
    classes, groups : sequence, optional
        All classes and groups there are.

    Notes
    -----
    Whatever is wrong with a table in memory while the context lasts, if some of its named columns are missing values,
    that is said instead.
    """
    engine = find_engine(table)
    if engine is not None:
        problem = asked(classes_on(engine, columns, classes))
        _refuse_unlabelled(columns, problem)
        yield LazyPeople.of(engine, columns, problem, groups), problem
        return
    if groups is None and not count_rows(table):
        raise no_rows()
    with missing_first(table, columns):
        weight = columns.weights_in(table)
        labels = columns.entries(table, "y")
        known = columns.classes_in(table, classes, weight, labels)
        problem = asked(known)
        _refuse_unlabelled(columns, problem)
        yield People.of(table, problem, **columns.read(table, known, weight, labels), groups=groups), problem


def _refuse_unlabelled(columns: Roles, problem: Problem) -> None:
    """Raise if something looks at labels, and there are none."""
    if columns.y is None and problem.looks_at_y:
        raise DataError(
            f"There are no labels y, and {problem.looking_at_y} looks at them.",
            "Name their column in y=, or pass them; loss='changes' and happiness that does not look at y need none.",
        )
