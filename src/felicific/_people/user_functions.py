"""The user's functions: calling them, with what they ask for, and insisting on one real number per row.

*Amounts*: a happiness is written for one decision at a time, ``100 if decision > 3 else 0``; amounts are as many as
people. It is called once, with the amounts as an array; some rows of what it returns are then compared with what it
returns for that one person. Where that fails or differs, it is called once for every different amount.

*Whole numbers* of 64 bits wrap around where they grow too large: ``x["a"] * x["b"]``, or ``-x["u"]`` of unsigned ones.
No library of tables says so. What a function gives of whole numbers is therefore compared with what it gives of
floats, which do not wrap; where the two differ, with what it gives of Python's whole numbers, which are exact.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from felicific._problem.expressions import Expression
from felicific._problem.happiness import ARGUMENTS, arguments_of
from felicific._tables.memory import (
    ArrayRows,
    ColumnArrays,
    Entries,
    UnreadColumn,
    Values,
    column_names,
    eager_frame,
    is_frame,
    is_mapping,
    is_null,
    library_of,
    misses_values,
    null_rows,
    on_columns,
    slice_rows,
    take_column,
    take_rows,
)
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import FelicificError, HappinessError

#: Below it, no product of four whole numbers wraps around; and what unsigned ones count as: -3 wraps around already.
SMALL, UNSIGNED = 2**15, 2**63

#: Numbers that differ by less, relative to the largest, are the same but for rounding.
ALIKE = 1e-9

#: Rows that are compared with what a function returns for that one person.
COMPARED = 32

#: Rows that a function is tried on, to see which columns it looks at.
TRIED = 100

#: Different amounts that a function is called for one by one at most.
DISTINCT = 4096

#: The arguments of a function of the user's, by name.
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Looks:
    """Which columns of a table functions look at; found out where a value of it is missing, and nowhere else.

    Attributes
    ----------
    table : table
        All rows.
    columns : dict
        The columns by function and decision, once they were asked for.
    """

    table: Table
    columns: dict[Any, list[Any]] = field(default_factory=dict)

    @cached_property
    def incomplete(self) -> bool:
        """Whether some value is missing."""
        return is_frame(self.table) and misses_values(self.table)


@dataclass(frozen=True)
class Batch:
    """Some people, as a happiness function sees them.

    Attributes
    ----------
    x : table
        Their rows, in the user's own library.
    y : array of shape (n,), or None
        Labels.
    labels : array of shape (n,), or None
        Their positions among the classes.
    group : entries of shape (n,)
        Groups, of text by their codes.
    rows : array of shape (n,)
        Numbers in the user's table, for messages.
    baseline : array of shape (n,), or None
        The baseline, where somebody asks for it.
    supposed : set of str
        Which of ``y`` and ``group`` are supposed, and not known: bounds speak of real people.
    amounts : array of shape (n,), or None
        What is decided on each, where it is an amount: then there is one decision, everybody's own.
    looks : Looks, or None
        What functions look at in the table that these rows are of; None where these are all.
    """

    x: Table
    y: Array | None
    labels: Codes | None
    group: Entries
    rows: Codes
    baseline: Array | None = None
    supposed: frozenset[str] = frozenset()
    amounts: Floats | None = None
    looks: Looks | None = None

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def wrapping(self) -> frozenset[str]:
        """Which of ``x``, ``y``, ``group`` and ``baseline`` hold whole numbers that could wrap around."""
        given = {"x": self.x, "y": self.y, "group": self.group, "baseline": self.baseline}
        sizes = {name: _whole_sizes(table) for name, table in given.items() if table is not None}
        return frozenset(name for name, found in sizes.items() if max(found, default=0) >= SMALL)

    def row(self, position: int) -> str:
        """Name one row and its group in a message."""
        return f"row {self.rows[position]} (group {self.group[position : position + 1].tolist()[0]!r})"

    def take(self, some: slice | Codes) -> Batch:
        """Some of these people."""
        names = ("y", "labels", "group", "rows", "baseline", "amounts")
        parts: dict[str, Any] = {name: getattr(self, name) for name in names}
        kept: dict[str, Any] = {name: None if one is None else one[some] for name, one in parts.items()}
        if isinstance(some, slice):
            kept["x"] = None if self.x is None else slice_rows(self.x, some.start, some.stop)
        else:
            kept["x"] = None if self.x is None else take_rows(self.x, some)
        return replace(self, **kept)


def no_baseline(what: str) -> HappinessError:
    """The error of what is compared with the baseline's decisions, where there are none."""
    return HappinessError(
        f"{what} looks at the baseline, and there is none.",
        "Pass baseline=, or what the model says about these people.",
    )


def alike(left: Floats, right: Floats, everybody: Floats) -> bool:
    """Whether numbers are the same but for rounding, as large as those of everybody are."""
    if left.shape != right.shape:
        return False
    scale = float(np.abs(everybody[np.isfinite(everybody)]).max(initial=0.0))
    return bool(np.allclose(left, right, rtol=0.0, atol=ALIKE * scale, equal_nan=True))


def members(numbers: Floats, what: str) -> Truths:
    """Who is counted, of what `among` returned."""
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise HappinessError(
            f"{what} returned numbers other than 0 and 1.", "Return True for the people who are counted."
        )
    return np.asarray(numbers == 1.0)


def evaluate(
    function: Callable[..., Any],
    what: str,
    batch: Batch,
    decision: Any = None,
    counted: Truths | None = None,
    *,
    sees_missing: bool = False,
) -> Floats:
    """Call a function of the user's on a batch and insist on one finite real number per row, whatever the other rows.

    Of rows that are not ``counted`` anything is taken, and zero is returned. Of the others no value that the function
    looks at may be missing, as a missing one is neither more nor less than another; unless it ``sees_missing`` ones.
    """
    asked = _asked(function, what, batch, ARGUMENTS if decision is not None else ARGUMENTS[1:])
    case = what if decision is None else f"{what}, for the decision {decision!r},"

    def call(rows: Batch, counted: Truths | None) -> Floats:
        return _finite(_raw_numbers(function, case, asked, rows, decision), case, rows, counted)

    numbers = call(batch, counted)
    if not sees_missing:
        _refuse_missing(function, what, asked, batch, decision, counted)
    n = len(numbers)
    # Once in a table: its first batch begins before as many rows as it has.
    if n > 1 and batch.rows[0] < n and not isinstance(function, Expression):
        some = slice(n // 2, n // 2 + max(1, n // 8))
        try:
            alone = call(batch.take(some), None if counted is None else counted[some])
        except HappinessError:
            return numbers  # what fails on fewer rows is told when there are fewer
        _refuse_others(case, batch, numbers, alone, some)
    return numbers


def evaluate_amounts(
    function: Callable[..., Any],
    what: str,
    batch: Batch,
    amounts: Floats,
    counted: Truths | None = None,
    *,
    sees_missing: bool = False,
) -> Floats:
    """Call a function of the user's with everybody's own amount; see :func:`evaluate`."""
    asked = _asked(function, what, batch, ARGUMENTS)

    def call(rows: Codes | None, amount: Any) -> Floats:
        return _raw_numbers(function, what, asked, batch if rows is None else batch.take(rows), amount)

    trusted = isinstance(function, Expression) or not len(amounts)  # an expression works row by row
    numbers = call(None, amounts) if trusted else _called_with(call, amounts, what)
    numbers = _finite(numbers, what, batch, counted)
    if not sees_missing:
        _refuse_missing(function, what, asked, batch, amounts, counted)
    return numbers


def _asked(function: Callable[..., Any], what: str, batch: Batch, allowed: tuple[str, ...]) -> frozenset[str]:
    """Arguments that a function asks for; an error where there is none of them."""
    asked = arguments_of(function, what, allowed)
    if "y" in asked and batch.y is None:
        raise HappinessError(f"{what} looks at the label y, and there is none.", "Pass y.")
    if "baseline" in asked and batch.baseline is None:
        raise no_baseline(what)
    return asked


def _refuse_missing(
    function: Callable[..., Any],
    what: str,
    asked: frozenset[str],
    batch: Batch,
    decision: Any,
    counted: Truths | None,
) -> None:
    """Raise if a column that a function looks at is missing of somebody who is counted.

    Of a function that works on arrays; one that uses what its library has may fill them in itself.
    """
    if "x" not in asked or isinstance(function, Expression):
        return
    for name in dict.fromkeys(_columns_seen(function, asked, batch, decision)):
        rows = null_rows(take_column(batch.x, name, what))
        rows = rows if counted is None else rows[counted[rows]]
        if len(rows):
            raise HappinessError(
                f"{what} looks at the column {name!r}, which is missing (null or NaN) in {batch.row(int(rows[0]))}.",
                "Fill it in, or leave such people out with `among`.",
            )


def _columns_seen(
    function: Callable[..., Any], asked: frozenset[str], batch: Batch, decision: Any
) -> list[Any]:
    """Columns that a function looks at; none where it does not work on arrays."""
    if isinstance(batch.x, ColumnArrays):
        return batch.x.used
    looks = batch.looks or Looks(batch.x)
    if not looks.incomplete:
        return []
    several = isinstance(decision, np.ndarray)
    key = (id(function), None if several else decision)
    if key not in looks.columns:
        some = batch.take(slice(0, TRIED))
        x = ArrayRows(some.x)
        given = _given(asked, some, decision[:TRIED] if several else decision) | {"x": x}
        looks.columns[key] = []
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            function(**given)
            looks.columns[key] = x.used
    return looks.columns[key]


def _given(asked: frozenset[str], batch: Batch, decision: Any) -> dict[str, Any]:
    """What a function asks for."""
    given = {name: decision if name == "decision" else getattr(batch, name) for name in asked}
    if "group" in given:
        given["group"] = np.asarray(batch.group)
    return given


def _refuse_others(case: str, batch: Batch, numbers: Floats, alone: Floats, some: slice) -> None:
    """Raise if some rows, ``alone``, get other numbers than among all rows of the batch."""
    apart = np.abs(alone - numbers[some])
    if apart.max() <= ALIKE * np.abs(numbers).max():
        return
    i = int(apart.argmax())
    raise _depends_on_others(
        f"{case} is {numbers[some.start + i]:.6g} in {batch.row(some.start + i)} among {len(numbers)} rows, and "
        f"{alone[i]:.6g} among {len(alone)} of them"
    )


def _depends_on_others(seen: str) -> HappinessError:
    return HappinessError(
        f"{seen}: it depends on other people's rows, or on chance.",
        "It sees some rows at a time: compute means, ranks and the like beforehand, as a column or a number.",
    )


def _raw_numbers(
    function: Callable[..., Any], case: str, asked: frozenset[str], batch: Batch, decision: Any
) -> Floats:
    """One real number per row, which need not be finite."""
    given = _given(asked, batch, decision)
    with np.errstate(all="ignore"):  # what is not finite is refused by name
        numbers = _returned(function, case, given)
        large = isinstance(decision, int) and abs(decision) >= SMALL and asked - {"decision"}
        if not isinstance(function, Expression) and (large or asked & batch.wrapping):
            numbers = unwrapped(partial(_returned, function, case), given, numbers, case)
    n = len(batch.group)
    if numbers.shape not in {(), (n,)}:
        raise HappinessError(
            f"{case} returned shape {numbers.shape} for {n} rows.",
            "Return one number per row, or one number; several measures are a list of functions.",
        )
    return np.broadcast_to(numbers, (n,))


def _finite(numbers: Floats, case: str, batch: Batch, counted: Truths | None) -> Floats:
    """The numbers, 0 for those who are not counted; what is not finite is refused by its row."""
    if counted is not None:
        numbers = np.where(counted, numbers, 0.0)
    finite = np.isfinite(numbers)
    if not finite.all():
        position = int(np.argmin(finite))
        raise HappinessError(
            f"{case} is {numbers[position]} in {batch.row(position)}.",
            "Repair that row of the table, or leave such people out with `among`.",
        )
    return numbers


def _returned(function: Callable[..., Any], case: str, given: dict[str, Any]) -> Floats:
    """What a function of the user's returns, as numbers."""
    result = _call(function, case, given)
    if result is None:
        raise HappinessError(f"{case} returned None.", "Return one number per row; is a `return` missing?")
    if "Int128" in str(getattr(result, "dtype", "")):  # which NumPy has not
        result = np.array(result.to_list(), dtype=object)
    array = result.to_numpy() if hasattr(result, "to_numpy") else np.asarray(result)
    return _as_numbers(array, case)


def _call(function: Callable[..., Any], case: str, arguments: dict[str, Any]) -> Any:
    """Call a function of the user's; what it raises becomes an error of ours."""
    library = library_of(arguments.get("x"))
    if library == "pyarrow":
        # Arrow's own columns know no arithmetic: most functions want arrays, and the others want Arrow.
        with contextlib.suppress(Exception):
            return function(**arguments | {"x": ArrayRows(arguments["x"])})
    try:
        return function(**arguments)
    except UnreadColumn:
        raise  # the table is read again, with that column
    except FelicificError as error:
        if isinstance(function, Expression):
            raise  # its errors point at the part that is wrong
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error.problem}", error.remedy
        ) from error
    except Exception as error:
        if library in ("pandas", "polars"):
            # Polars, and PyArrow in pandas, know no product of truth values and numbers; arrays do.
            with contextlib.suppress(Exception):
                return function(**arguments | {"x": ArrayRows(arguments["x"])})
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error}.",
            "Try the function on a few rows of your own table; a column may be missing, or a decision no number.",
        ) from error


def _as_numbers(array: Array, case: str) -> Floats:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    text = array.dtype.kind == "U"
    if array.dtype.kind == "O":
        try:
            # A missing value of a nullable column becomes NaN, and is then reported with its row.
            plain = [
                np.nan if type(value).__name__ == "NAType" else value for value in array.ravel().tolist()
            ]
            text = any(isinstance(value, str) for value in plain)
            if not text and not any(isinstance(value, complex) for value in plain):
                return np.array(plain, dtype=np.float64).reshape(array.shape)
        except (TypeError, ValueError):
            pass
    raise HappinessError(
        f"{case} returned {'text' if text else f'{array.dtype} values'}, not real numbers.",
        "Return one finite real number per row.",
    )


# ---------------------------------------------------------------------------------------------------------
# Amounts

#: Calls a function for some rows (None: all), with one amount or one for each of them.
Call = Callable[[Codes | None, Any], Floats]


def _called_with(call: Call, amounts: Floats, case: str) -> Floats:
    """What a function, which messages call by its ``case``, returns for everybody's own amount.

    It raises a HappinessError where it cannot; its numbers need not be finite.
    """
    some = _some_rows(amounts)
    try:
        numbers = call(None, amounts)
        problem = (
            ""
            if alike(numbers[some], _alone(call, some, amounts), numbers)
            else "it gives one person another number"
        )
    except HappinessError as error:
        problem = error.problem
    if not problem:
        return numbers
    numbers = _one_by_one(call, amounts, case, problem)
    alone = _alone(call, some, amounts)
    if not alike(numbers[some], alone, numbers):
        i = int(np.argmax(np.abs(numbers[some] - alone)))
        raise _depends_on_others(
            f"{case} is {numbers[some[i]]:.6g} for the amount {amounts[some[i]]:.6g} among people of that amount, and "
            f"{alone[i]:.6g} for one of them alone"
        )
    return numbers


def _some_rows(amounts: Floats) -> Codes:
    """The rows of the least and the largest amount, and others in between, in the order of amounts and of rows."""
    n = len(amounts)
    if n <= COMPARED:
        return np.arange(n)
    half = COMPARED // 2
    order = np.argsort(amounts, kind="stable")[np.linspace(0, n - 1, half).astype(np.intp)]
    return np.unique(np.concatenate([order, np.linspace(0, n - 1, half).astype(np.intp)]))


def _alone(call: Call, some: Codes, amounts: Floats) -> Floats:
    """What some people get, each alone, by a single number; or where a function wants an array, by an array of one."""
    found = np.empty(len(some))
    for k, i in enumerate(some.tolist()):
        row = np.array([i])
        try:
            found[k] = call(row, float(amounts[i]))[0]
        except HappinessError:
            found[k] = call(row, amounts[row])[0]
    return found


def _one_by_one(call: Call, amounts: Floats, case: str, problem: str) -> Floats:
    """What a function returns that is called for every different amount, with those who get it."""
    distinct, place = np.unique(amounts, return_inverse=True)
    if len(distinct) > DISTINCT:
        call(np.array([0]), float(amounts[0]))  # what fails of one person alone is said as it is
        raise HappinessError(
            f"{case} cannot be called with the amounts as an array ({problem.rstrip('.')}), and there are "
            f"{len(distinct):,} different amounts, more than {DISTINCT:,}.",
            "Write it for an array: np.where(decision > 3, 100, 0) in place of `100 if decision > 3 else 0`, and "
            "np.maximum in place of max; or round the amounts.",
        )
    order = np.argsort(place, kind="stable")
    numbers = np.empty(len(amounts))
    for amount, rows in zip(
        distinct.tolist(), np.split(order, np.cumsum(np.bincount(place))[:-1]), strict=True
    ):
        numbers[rows] = call(rows, amount)
    return numbers


# ---------------------------------------------------------------------------------------------------------
# Whole numbers that wrap around


def unwrapped(call: Callable[[Arguments], Floats], given: Arguments, numbers: Floats, case: str) -> Floats:
    """What a function gives, ``numbers``; where whole numbers wrapped around, what it gives without that."""
    floats = _attempt(call, {name: as_floats(value) for name, value in given.items()})
    if floats is not None and alike(floats, numbers, numbers):
        return numbers
    exact = _attempt(call, {name: _exact(value) for name, value in given.items()})
    if exact is None:
        exact = _attempt(call, {name: _as_objects(value) for name, value in given.items()})
    if (exact is None and floats is None) or (exact is not None and alike(exact, numbers, numbers)):
        return numbers
    if floats is not None and exact is not None and alike(floats, exact, exact):
        return floats
    again = _attempt(call, given)
    if again is None or not alike(again, numbers, numbers):
        return numbers  # it draws numbers, which is refused elsewhere
    raise HappinessError(
        f"{case} gives other numbers when it gets floats: whole numbers of more than 64 bits wrap around.",
        'Calculate with floats: x["a"].astype(float) * x["b"], say.',
    )


def _attempt(call: Callable[[Arguments], Floats], given: Arguments) -> Floats | None:
    """What a function gives; None where it cannot take such columns."""
    with contextlib.suppress(Exception):
        return call(given)
    return None


def _whole_sizes(table: Table) -> list[int]:
    """The largest size of a whole number in every column that holds such; an array is one column."""
    if is_frame(table) and not is_mapping(table):
        frame = eager_frame(table)
        found = [frame.get_column(name) for name in _whole_names(frame)]
        ends = [(one.dtype.is_unsigned_integer(), one.min(), one.max()) for one in found if one.count()]
    else:
        arrays = [one for one in (table.values() if is_mapping(table) else [table]) if _is_whole(one)]
        ends = [(one.dtype.kind == "u", one.min(), one.max()) for one in arrays if one.size]
    return [UNSIGNED if unsigned else max(-int(low), int(high)) for unsigned, low, high in ends]


def _is_whole(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def _whole_names(frame: Any) -> list[str]:
    import narwhals as nw

    return [name for name, dtype in frame.schema.items() if dtype in (nw.Int64, nw.UInt64)]


def as_floats(value: Any) -> Any:
    """The same rows, or the same array, with floats for 64-bit whole numbers."""
    if not is_frame(value):
        return value.astype(np.float64) if _is_whole(value) else value
    if is_mapping(value):
        return on_columns(value, as_floats)
    if library_of(value) == "pyarrow":  # which refuses to round
        return {name: as_floats(take_column(value, name, "x")) for name in column_names(value)}
    frame = eager_frame(value)
    if hasattr(value, "iloc"):  # so do pandas' columns of Arrow
        changed = value.copy(deep=False)
        for name in _whole_names(frame):
            plain = [math.nan if is_null(one) else one for one in take_column(value, name, "x").tolist()]
            changed[name] = np.array(plain, dtype=np.float64)
        return changed
    import narwhals as nw

    whole = [frame.get_column(name).cast(nw.Float64) for name in _whole_names(frame)]
    return frame.with_columns(whole).to_native()


def _exact(value: Any) -> Any:
    """Whole numbers as those of Python; of a table a dict of arrays."""
    if is_frame(value):
        if isinstance(value, ColumnArrays):
            return on_columns(value, _exact)
        return {name: _exact(take_column(value, name, "x").view(Values)) for name in column_names(value)}
    if _is_whole(value):
        return value.astype(object).view(Exact)
    return value


def _as_objects(value: Any) -> Any:
    """The same in columns of pandas, for functions that want their methods; nothing else has such."""
    if not hasattr(value, "iloc"):
        return value.astype(object) if _is_whole(value) else value
    whole = [name for name in value.columns if value[name].dtype.kind in "iu"]
    return value.astype(dict.fromkeys(whole, object))


class Exact(Values):
    """An array of Python's whole numbers, which functions that know none (``np.log``) get as floats."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """As NumPy does it, with floats if it cannot otherwise."""
        plain = [value.view(np.ndarray) if isinstance(value, Exact) else value for value in inputs]
        try:
            found: Array = getattr(ufunc, method)(*plain, **options)
        except TypeError:
            floats = [_as_floats(value) for value in plain]
            found = getattr(ufunc, method)(*floats, **options)
        whole = isinstance(found, np.ndarray) and found.dtype == object
        return found.view(Exact) if whole else found


def _as_floats(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == object else value
