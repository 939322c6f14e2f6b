"""From a table whose columns are named to people, in memory or where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from felicific._people.columns import Columns
from felicific._people.lazy import LazyPeople, classes_on, no_rows
from felicific._people.missing import missing_first
from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._tables.engine import find_engine
from felicific._tables.memory import count_rows
from felicific._typing import Array, Table
from felicific.exceptions import DataError


@contextmanager
def labelled_people(
    table: Table,
    columns: Columns,
    asked: Callable[[Array], Problem],
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
) -> Iterator[tuple[People | LazyPeople, Problem]]:
    """People with labels and what is asked of them, for work that ends before the context does.

    Parameters
    ----------
    table : table, in memory or not
    columns : Columns
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


def _refuse_unlabelled(columns: Columns, problem: Problem) -> None:
    """Raise if something looks at labels, and there are none."""
    if columns.y is None and problem.looks_at_y:
        raise DataError(
            f"There are no labels y, and {problem.looking_at_y} looks at them.",
            "Name their column in y=, or pass them; loss='changes' and happiness that does not look at y need none.",
        )
