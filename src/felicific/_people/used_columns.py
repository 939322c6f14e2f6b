"""Used columns: those that functions of the user's look at, of a table that is not in memory.

Text names its columns. A Python function is called once with the first rows as arrays, which notes what it looks at.
One that does not work on arrays gets the rows as the library has them, with all columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.columns import Columns
from felicific._people.weights import level_outside
from felicific._problem.expressions import Expression
from felicific._problem.happiness import ARGUMENTS, Happiness, Loses, arguments_of
from felicific._problem.problem import Problem
from felicific._tables.engine import Engine
from felicific._tables.groups import name_groups
from felicific._tables.memory import (
    Array,
    ColumnArrays,
    UnreadColumn,
    column_arrays,
    count_rows,
    refuse_missing_columns,
    take_column,
)
from felicific.exceptions import BatchWarning, FelicificError

#: Rows that functions are tried on.
TRIED = 100


def used_columns(
    engine: Engine, columns: Columns, problem: Problem, *, warn: bool = False
) -> tuple[str, ...] | None:
    """Columns that the functions of a problem, and that of the groups, look at; None where one wants no arrays."""
    trial, used = _Trial(engine, columns, problem), dict[Any, None]()
    grouping = [("The callable sensitive_features", columns.group)] if callable(columns.group) else []
    for what, function in [*grouping, *_functions(problem)]:
        if isinstance(function, Expression):
            refuse_missing_columns(engine.names, function.columns, _inside(what))
            used |= dict.fromkeys(function.columns)
            continue
        asks = (
            frozenset() if grouping and function is columns.group else arguments_of(function, what, ARGUMENTS)
        )
        if function is not columns.group and "x" not in asks:
            continue
        x = trial.rows(_inside(what))
        try:
            with np.errstate(all="ignore"):
                trial.call(function, asks, x)
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


def _inside(what: str) -> str:
    """What is asked, inside of a sentence."""
    return what[:1].lower() + what[1:]


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


class _Trial:
    """The first rows of a table, with something in the place of every argument that a function may ask for."""

    def __init__(self, engine: Engine, columns: Columns, problem: Problem) -> None:
        self.engine, self.columns, self.problem = engine, columns, problem

    def rows(self, purpose: str) -> ColumnArrays:
        """The rows, for one function."""
        return ColumnArrays(self._arrays, count_rows(self._head), self.engine.names, purpose)

    def call(self, function: Callable[..., Any], asks: frozenset[str], x: ColumnArrays) -> None:
        """Call a function, at every decision if it asks for one."""
        if function is self.columns.group:
            function(x)
            return
        given = {name: x if name == "x" else getattr(self, f"_{name}") for name in asks - {"decision"}}
        if "decision" not in asks:
            function(**given)
            return
        for decision in self._decisions:
            function(decision=decision, **given)

    @cached_property
    def _head(self) -> Any:
        return self.engine.head(TRIED)

    @cached_property
    def _arrays(self) -> dict[Any, Array]:
        arrays: dict[Any, Array] = {}
        for name in self.engine.names:
            try:
                column = column_arrays(self._head, [name], self.engine.names).arrays[name]
                numbers = column.dtype == object and set(map(type, column.tolist())) <= {
                    int,
                    float,
                    type(None),
                }
                # Where one is missing it is refused later, as by every function.
                arrays[name] = column.astype(np.float64) if numbers else column
            except Exception:  # of a type that is no array; nobody may ever look at it
                continue
        return arrays

    @property
    def _decisions(self) -> list[Any]:
        amounts = self.problem.of_amounts
        return [self._numbers(self.columns.decided)] if amounts else self.problem.decisions.tolist()

    @property
    def _baseline(self) -> Array:
        if self.problem.of_amounts:
            return self._numbers(self.columns.baseline)
        return np.asarray(self.problem.decisions[np.zeros(count_rows(self._head), dtype=np.intp)])

    @property
    def _y(self) -> Array:
        if self.columns.y is None:  # a policy may suppose it
            labels = self.problem.labels if len(self.problem.labels) else np.ones(1)
            return np.asarray(labels[np.zeros(count_rows(self._head), dtype=np.intp)])
        return take_column(self._head, self.columns.y, "y")

    @property
    def _group(self) -> Array:
        if callable(self.columns.group):
            return np.asarray(self.columns.group(self.rows("the groups")))
        names = self.columns.group_names
        return np.asarray(name_groups([take_column(self._head, name, "the groups") for name in names]))

    def _numbers(self, name: Any) -> Array:
        """Amounts, by their column."""
        if name is None:
            return np.ones(count_rows(self._head))
        return take_column(self._head, name, "the decisions").astype(np.float64)
