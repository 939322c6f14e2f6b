"""Plans: every function that is asked of a table that is not in memory, as expressions of its columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._people.columns import Columns
from felicific._people.weights import level_outside
from felicific._people.worth import no_baseline
from felicific._problem.happiness import ARGUMENTS, Happiness, Loses, arguments_of
from felicific._problem.problem import Problem
from felicific._tables.column import NUMERIC, Column, ColumnTable, NotAColumn, as_column, literal
from felicific._tables.engine import Engine
from felicific.exceptions import BatchWarning, DataError, FelicificError, HappinessError


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
    def build(cls, engine: Engine, wanted: Columns, problem: Problem, label: Column | None = None) -> Plan:
        """Call every function with columns; ``label`` stands for labels that are supposed, not known."""
        columns = {name: engine.column(name, "x") for name in engine.names}
        label = label if wanted.y is None else columns[wanted.y]
        decisions, used = problem.decisions.tolist(), list(wanted.named)
        if problem.of_amounts:
            decisions = [] if wanted.decided is None else [columns[wanted.decided].astype(float)]

        def call(function: Callable[..., Any], what: str, decision: Any) -> Column:
            x = ColumnTable(columns, what)
            named = wanted.group_names
            one = columns[named[0]] if len(named) == 1 else None if named or not group else group[0]
            offered = {"decision": decision, "x": x, "y": label, "group": one}
            asked = arguments_of(function, what, ARGUMENTS if decision is not None else ARGUMENTS[1:])
            if "y" in asked and label is None:
                raise HappinessError(
                    f"{what} looks at the label y, and there is none.", "Name its column in y=."
                )
            try:
                if "group" in asked and one is None:
                    raise NotAColumn("the group is no column, or several")
                if "baseline" in asked and problem.of_amounts:
                    if wanted.baseline is None:
                        raise no_baseline(what)
                    offered["baseline"] = columns[wanted.baseline].astype(float)
                elif "baseline" in asked:
                    offered["baseline"] = _baseline(decisions)
                return _returned(function(**{name: offered[name] for name in asked}), what)
            except FelicificError:
                raise
            except Exception as error:
                raise _Unwritable(what, error) from error
            finally:
                used.extend(name for name in x.used if name not in used)

        try:
            group = _group_columns(engine, columns, wanted, used)
            values, inside, counted = [], [], []
            for happiness in problem.happiness:
                worth, who = _measure(happiness, decisions, call)
                values.append(worth)
                if who is not None and who.kind != "bool":
                    counted.append(who)
                    who = who != 0
                inside.append(who)
            losses = _losses(problem, decisions, call)
        except _Unwritable as error:
            return cls(tuple(used), reason=str(error))
        return cls(tuple(used), None, group, tuple(values), tuple(inside), losses, tuple(counted))

    def notice(self) -> None:
        """Say when functions run batch by batch."""
        if self.reason is not None:
            warnings.warn(
                f"{self.reason} It runs batch by batch, which is slower and reads every column.",
                BatchWarning,
                stacklevel=level_outside(),
            )


def columns_seen(engine: Engine, columns: Columns, problem: Problem) -> tuple[str, ...] | None:
    """Columns that the functions of a problem look at; None when they must see the library's own rows."""
    plan = Plan.build(engine, columns, problem, as_column(problem.labels.tolist()[0], "the label"))
    return plan.used if plan.reason is None else None


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
    engine: Engine, columns: dict[Any, Column], wanted: Columns, used: list[str]
) -> tuple[Column, ...]:
    if not callable(wanted.group):
        return tuple(engine.key(name, "the groups") for name in wanted.group_names)
    what, x = "The callable sensitive_features", ColumnTable(columns, "the groups")
    try:
        made = wanted.group(x)
        if made is None:
            raise DataError(f"{what} returned None.", "Return one group per row.")
        return (as_column(made, "group"),)
    except FelicificError:
        raise
    except Exception as error:
        raise _Unwritable(what, error) from error
    finally:
        used.extend(name for name in x.used if name not in used)


def _measure(
    happiness: Happiness, decisions: list[Any], call: Callable[..., Column]
) -> tuple[tuple[Column, ...] | None, Column | None]:
    """Values for every decision and membership, if either looks at x."""
    what = f"The happiness {happiness.name!r}"
    asked = arguments_of(happiness.function, what, ARGUMENTS)
    if happiness.among is not None:
        asked |= arguments_of(happiness.among, what, ARGUMENTS)
    if "x" not in asked:
        return None, None
    return _called(happiness, decisions, call)


def _called(
    happiness: Happiness, decisions: list[Any], call: Callable[..., Column]
) -> tuple[tuple[Column, ...], Column | None]:
    """Values for every decision, and membership."""
    what = f"The happiness {happiness.name!r}"
    if isinstance(happiness.function, Loses):
        parts = [_called(part, decisions, call) for part in happiness.function.parts]
        inside = [None if who is None else who != 0 for _, who in parts]
        try:
            baseline = _baseline(decisions)
            now = [baseline == decision for decision in decisions]
            numbers = [[value.astype(float) for value in values] for values, _ in parts]
            lost = happiness.function.lost(numbers, inside, now)
            return tuple(as_column(column, "the result") for column in lost), None
        except NotAColumn as error:
            raise _Unwritable(what, error) from error
    if happiness.over:
        return tuple(_counted(happiness, decision, call) for decision in decisions), None
    values = tuple(call(happiness.function, what, decision) for decision in decisions)
    if happiness.among is None:
        return values, None
    return values, call(happiness.among, f"`among` of the happiness {happiness.name!r}", None)


def _baseline(decisions: list[Any]) -> Column:
    """The baseline, by the position among the decisions that a query has in its column ``baseline``."""
    import narwhals as nw

    *others, last = [literal(decision, "baseline") for decision in decisions]
    expr = last.expr
    for d, one in reversed(list(enumerate(others))):
        expr = nw.when(nw.col("baseline") == d).then(one.expr).otherwise(expr)
    return Column(expr, last.kind, "baseline")


def _counted(happiness: Happiness, decision: Any, call: Callable[..., Column]) -> Column:
    """What a decision adds to the numerator of a fraction."""
    who = call(happiness.among, f"`among` of the happiness {happiness.name!r}", decision)
    value = call(happiness.function, f"The happiness {happiness.name!r}", decision)
    return as_column(np.where(who, value, 0.0), "the result")


def _losses(problem: Problem, decisions: list[Any], call: Callable[..., Column]) -> tuple[Column, ...] | None:
    function = problem.loss.function
    if function is None or "x" not in problem.loss.asks:
        return None
    return tuple(call(function, "The loss", decision) for decision in decisions)
