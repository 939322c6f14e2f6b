"""Columns: what a happiness function gets on a table that is not in memory; and ``lookup``, which works on any table.

A :class:`Column` is a thin wrapper of a narwhals expression that speaks NumPy, so that a function written for arrays
(``np.where(x["age"] < 40, 1.0, 0.5) * decision``) becomes one query of the engine. Operands of arithmetic are
64-bit floats; comparisons are left as they are. Whatever would not mean the same on every engine raises
:class:`NotAColumn`: the function then runs on batches of rows instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from felicific._tables.memory import as_vector, refuse_missing_columns
from felicific.exceptions import HappinessError

#: Kinds of column: truth values, whole numbers, real numbers, text, and whatever can only be compared.
NUMERIC = ("bool", "whole", "real")

#: The largest whole number that every engine holds.
LARGEST_WHOLE = 2**63 - 1


#: Most values of a lookup that becomes an expression: each nests one level deeper.
LONGEST_LOOKUP = 200


class NotAColumn(TypeError):  # noqa: N818  # it is no fault of the user's: the function runs batch by batch
    """An operation that has no expression with the same meaning on every engine."""


class Column(NDArrayOperatorsMixin):
    """A column of a table that is not in memory, or what arithmetic makes of some.

    Parameters
    ----------
    expr : narwhals expression
        What the engine computes.
    kind : {"bool", "whole", "real", "text", "other"}
        What it holds.
    name : str
        How messages call it.
    floating : bool
        Whether it already is a 64-bit float.
    nan : bool
        Whether arithmetic may have made it NaN: engines take NaN for the largest number, NumPy for none.
    """

    __slots__ = ("expr", "floating", "kind", "name", "nan")
    __hash__ = None  # type: ignore[assignment]  # == builds an expression

    def __init__(self, expr: Any, kind: str, name: str, floating: bool = False, nan: bool = False) -> None:
        self.expr, self.kind, self.name, self.floating, self.nan = expr, kind, name, floating, nan

    # -----------------------------------------------------------------------------------------------------
    # What it is not

    def __bool__(self) -> bool:
        raise NotAColumn("a column has no single truth value: use np.where, & and | instead of if, and, or")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotAColumn("a column of a table that is not in memory cannot become an array")

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.kind})"

    # -----------------------------------------------------------------------------------------------------
    # NumPy

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc.__name__ in UFUNCS:
            return UFUNCS[ufunc.__name__](*inputs)
        raise NotAColumn(f"np.{ufunc.__name__} is not available on columns")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ in FUNCTIONS:
            return FUNCTIONS[function.__name__](*args, **kwargs)
        raise NotAColumn(f"np.{function.__name__} is not available on columns")

    # -----------------------------------------------------------------------------------------------------
    # The few methods that arrays and series share

    def astype(self, dtype: Any) -> Column:
        """Convert to float; to int or bool where that loses nothing."""
        wanted = np.dtype(dtype).kind
        if wanted == "f" and np.dtype(dtype).itemsize == 8:
            return Column(_number(self), "real", self.name, floating=True, nan=self.nan)
        if wanted == "b" and self.kind in NUMERIC:
            return self if self.kind == "bool" else self != 0
        if wanted == "i" and self.kind in ("bool", "whole"):
            return Column(_number(self), "whole", self.name, floating=True, nan=self.nan)
        raise NotAColumn(f"astype({dtype!r})")

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        """Limit to a range, as NumPy (min, max) and pandas (lower, upper) spell it."""
        limits = dict(zip(("min", "max"), args, strict=False))
        limits |= {{"lower": "min", "upper": "max"}.get(name, name): value for name, value in kwargs.items()}
        if set(limits) - {"min", "max"}:
            raise NotAColumn("clip takes a least and a largest value")
        return _clip(self, limits.get("min"), limits.get("max"))

    def isin(self, values: Iterable[Any]) -> Column:
        """Whether each value is one of these."""
        return _isin(self, values)

    def abs(self) -> Any:
        """Absolute value."""
        return _abs(self)

    def between(self, left: Any, right: Any) -> Any:
        """Whether each value lies in a range, ends included."""
        return (self >= left) & (self <= right)


# ---------------------------------------------------------------------------------------------------------
# Operands


def literal(value: Any, what: str) -> Column:
    """One value as a column."""
    import narwhals as nw

    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return Column(nw.lit(value), "bool", repr(value))
    if isinstance(value, int) and abs(value) <= LARGEST_WHOLE:
        return Column(nw.lit(value, dtype=nw.Int64), "whole", repr(value))
    if isinstance(value, int | float):
        number = float(value)
        return Column(nw.lit(number, dtype=nw.Float64), "real", repr(value), True, nan=math.isnan(number))
    if isinstance(value, str):
        return Column(nw.lit(value), "text", repr(value))
    if isinstance(value, np.ndarray | list | tuple | Mapping) or value is None:
        raise NotAColumn(f"{what} of a column and a {type(value).__name__}")
    return Column(nw.lit(value), "other", repr(value))


def as_column(value: Any, what: str) -> Column:
    """A column as it is, or one value as a column."""
    return value if isinstance(value, Column) else literal(value, what)


def _number(column: Column) -> Any:
    """The expression as a 64-bit float; text is refused."""
    import narwhals as nw

    if column.kind not in NUMERIC:
        what = "text" if column.kind == "text" else "no number"
        raise HappinessError(
            f"Arithmetic on {column.name}, which is {what}.",
            "Use numbers; felicific.lookup turns the values of a column into numbers.",
        )
    return column.expr if column.floating else column.expr.cast(nw.Float64)


def _name(symbol: str, *columns: Column) -> str:
    text = f"({columns[0].name} {symbol} {columns[-1].name})"
    return text if len(text) < 200 else f"{text[:200]}..."


# ---------------------------------------------------------------------------------------------------------
# Arithmetic


def _binary(symbol: str, combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Column]:
    def apply(left: Any, right: Any) -> Column:
        a, b = as_column(left, symbol), as_column(right, symbol)
        if a.kind == b.kind == "bool":
            if symbol == "*":
                return _logical("&", operator.and_)(a, b)
            raise NotAColumn(f"{symbol} of two truth values, which some libraries count and others do not")
        if symbol == "+" and a.kind == b.kind == "text":
            raise NotAColumn("text after text")
        kind = "real" if "real" in (a.kind, b.kind) else "whole"
        nan = kind == "real" or a.nan or b.nan
        return Column(combine(_number(a), _number(b)), kind, _name(symbol, a, b), floating=True, nan=nan)

    return apply


def _divide(left: Any, right: Any) -> Column:
    """Divide as NumPy does: by zero gives an infinity or NaN, where engines give null or an error."""
    import narwhals as nw

    a, b = as_column(left, "/"), as_column(right, "/")
    top, bottom = _number(a), _number(b)
    if isinstance(right, Column):
        safe = nw.when(bottom != 0.0).then(bottom).otherwise(nw.lit(1.0))
        expr = nw.when(bottom != 0.0).then(top / safe).otherwise(top * nw.lit(math.inf))
    else:
        expr = top / bottom if float(right) != 0.0 else top * nw.lit(math.inf)
    return Column(expr, "real", _name("/", a, b), floating=True, nan=True)


def _whole_quotient(symbol: str) -> Callable[[Any, Any], Column]:
    """Floor division and remainder of whole numbers, where all engines agree to the last bit."""

    def apply(left: Any, right: Any) -> Column:
        import narwhals as nw

        a, b = as_column(left, symbol), as_column(right, symbol)
        top, bottom = _number(a), _number(b)
        if "real" in (a.kind, b.kind):
            raise NotAColumn(f"{symbol} of numbers that are not whole")
        safe = nw.when(bottom != 0.0).then(bottom).otherwise(nw.lit(1.0))
        floor = (top / safe).floor()
        if symbol == "//":
            expr = nw.when(bottom != 0.0).then(floor).otherwise(top * nw.lit(math.inf))
        else:
            expr = nw.when(bottom != 0.0).then(top - safe * floor).otherwise(nw.lit(math.nan))
        return Column(expr, "whole", _name(symbol, a, b), floating=True, nan=True)

    return apply


def _power(left: Any, right: Any) -> Column:
    """Powers by a fixed exponent; of negative numbers only whole ones."""
    import narwhals as nw

    exponent = as_column(right, "**")
    if isinstance(right, Column) or exponent.kind not in NUMERIC or not math.isfinite(float(right)):
        raise NotAColumn("** with an exponent that is not one number")
    base, power = as_column(left, "**"), float(right)
    number, whole = _number(base), power.is_integer()
    if power < 0:
        return _divide(1.0, _power(left, -power))
    if not whole:
        safe = nw.when(number >= 0.0).then(number).otherwise(nw.lit(1.0))
        expr = nw.when(number >= 0.0).then(safe**power).otherwise(nw.lit(math.nan))
    else:
        expr = number * number if power == 2 else number**power
    kind = "whole" if whole and base.kind != "real" else "real"
    return Column(expr, kind, _name("**", base, exponent), floating=True, nan=kind == "real" or base.nan)


def _guarded(name: str, inside: Callable[[Any], Any], compute: Callable[[Any], Any], edge: float) -> Any:
    """A function of positive numbers: at zero ``edge``, below NaN, where some engines raise and others give null."""

    def apply(value: Any) -> Column:
        import narwhals as nw

        column = as_column(value, name)
        number = _number(column)
        safe = nw.when(inside(number)).then(number).otherwise(nw.lit(1.0))
        outside = nw.when(number == 0.0).then(nw.lit(edge)).otherwise(nw.lit(math.nan))
        expr = nw.when(inside(number)).then(compute(safe)).otherwise(outside)
        return Column(expr, "real", f"{name}({column.name})", floating=True, nan=True)

    return apply


def _exp(value: Any) -> Column:
    import narwhals as nw

    column = as_column(value, "exp")
    number = _number(column)
    # Beyond 709.78 the result is infinite, which some engines call an error; NaN stays NaN.
    safe = nw.when(number < 709.78).then(number).otherwise(nw.lit(0.0))
    more = nw.when(number < 709.78).then(nw.lit(0.0)).otherwise(number * nw.lit(math.inf))
    return Column(safe.exp() + more, "real", f"exp({column.name})", floating=True, nan=column.nan)


def _unary(name: str, compute: Callable[[Any], Any], keeps: bool = True) -> Callable[[Any], Column]:
    """A function of one number; ``keeps`` says whether whole numbers stay whole (if not, all become whole)."""

    def apply(value: Any) -> Column:
        column = as_column(value, name)
        if name == "-" and column.kind == "bool":
            raise NotAColumn("- of truth values")
        kind = "real" if keeps and column.kind == "real" else "whole"
        return Column(compute(_number(column)), kind, f"{name}({column.name})", floating=True, nan=column.nan)

    return apply


def _sign(number: Any) -> Any:
    import narwhals as nw

    negative = nw.when(number < 0.0).then(nw.lit(-1.0)).otherwise(nw.lit(0.0))
    sign = nw.when(number > 0.0).then(nw.lit(1.0)).otherwise(negative)
    return nw.when(number.is_nan()).then(number).otherwise(sign)


def _extreme(name: str, first: Callable[[Any, Any], Any], keeps: bool = True) -> Callable[[Any, Any], Column]:
    """The lesser or larger of two; of a number and NaN it is NaN, or the number unless NaN ``keeps``."""

    def apply(left: Any, right: Any) -> Column:
        import narwhals as nw

        a, b = as_column(left, name), as_column(right, name)
        if a.kind == b.kind == "bool":
            return (_logical("&", operator.and_) if name == "min" else _logical("|", operator.or_))(a, b)
        x, y = _number(a), _number(b)
        expr = nw.when(first(x, y)).then(x).otherwise(y)
        for column, one, other in ((a, x, y), (b, y, x)):
            if column.nan:
                expr = nw.when(one.is_nan()).then(one if keeps else other).otherwise(expr)
        kind = "real" if "real" in (a.kind, b.kind) else "whole"
        return Column(expr, kind, _name(name, a, b), floating=True, nan=a.nan or b.nan)

    return apply


# ---------------------------------------------------------------------------------------------------------
# Comparisons and truth values


def _compare(symbol: str, compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Column]:
    def apply(left: Any, right: Any) -> Column:
        import narwhals as nw

        a, b = as_column(left, symbol), as_column(right, symbol)
        name = _name(symbol, a, b)
        numbers = (a.kind in NUMERIC, b.kind in NUMERIC)
        if a.kind == b.kind == "bool" or not any(numbers):
            if symbol not in ("==", "!=") and "bool" in (a.kind, b.kind):
                return Column(compare(_number(a), _number(b)), "bool", name)
            if a.kind == b.kind:
                return Column(compare(a.expr, b.expr), "bool", name)
        elif all(numbers):
            both_whole = a.kind == b.kind == "whole" and not (a.floating or b.floating)
            expr = compare(*((a.expr, b.expr) if both_whole else (_number(a), _number(b))))
            for column in (a, b):
                if column.nan:
                    unknown = _number(column).is_nan()
                    expr = expr | unknown if symbol == "!=" else expr & ~unknown
            return Column(expr, "bool", name)
        if "other" in (a.kind, b.kind):
            raise NotAColumn(f"{name} compares values of different types")
        if symbol in ("==", "!="):
            # As in Python, values of different types are different.
            return Column(nw.lit(symbol == "!="), "bool", name)
        raise HappinessError(f"{name} compares text with numbers.", "Compare values of the same type.")

    return apply


def _logical(symbol: str, combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Column]:
    def apply(left: Any, right: Any) -> Column:
        a, b = as_column(left, symbol), as_column(right, symbol)
        if a.kind != "bool" or b.kind != "bool":
            raise NotAColumn(f"{symbol} of columns that are not True or False")
        return Column(combine(a.expr, b.expr), "bool", _name(symbol, a, b))

    return apply


def _not(value: Any) -> Column:
    column = as_column(value, "~")
    if column.kind != "bool":
        raise NotAColumn("~ of a column that is not True or False")
    return Column(~column.expr, "bool", f"~{column.name}")


def _isin(column: Any, values: Iterable[Any], **options: Any) -> Column:
    if options or isinstance(values, Column | str) or not isinstance(column, Column):
        raise NotAColumn("isin takes a column and a list of values")
    test = literal(False, "isin")
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        kinds = {"number" if kind in NUMERIC else kind for kind in (column.kind, literal(value, "isin").kind)}
        if len(kinds) > 1:
            raise NotAColumn("isin with values of different types")
        test = test | (column == value)
    return Column(test.expr, "bool", f"isin({column.name})")


def _numpy_isin(column: Any, values: Any, **options: Any) -> Column:
    if isinstance(values, set | frozenset | Mapping):
        raise NotAColumn(f"np.isin takes a {type(values).__name__} for one value: pass a list")
    return _isin(column, values, **options)


# ---------------------------------------------------------------------------------------------------------
# Choices


def _where(condition: Any, then: Any = None, otherwise: Any = None) -> Column:
    import narwhals as nw

    test, a, b = as_column(condition, "where"), as_column(then, "where"), as_column(otherwise, "where")
    if test.kind != "bool":
        test = test != 0
    name = f"where({test.name}, {a.name}, {b.name})"[:200]
    if a.kind in NUMERIC and b.kind in NUMERIC:
        if a.kind == b.kind == "bool":
            return Column(nw.when(test.expr).then(a.expr).otherwise(b.expr), "bool", name)
        kind = "real" if "real" in (a.kind, b.kind) else "whole"
        expr = nw.when(test.expr).then(_number(a)).otherwise(_number(b))
        return Column(expr, kind, name, floating=True, nan=a.nan or b.nan)
    if a.kind != b.kind:
        raise NotAColumn("where with values of different types")
    return Column(nw.when(test.expr).then(a.expr).otherwise(b.expr), a.kind, name)


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Any:
    chosen = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        chosen = _where(condition, choice, chosen)
    return chosen


def _clip(column: Any, least: Any = None, largest: Any = None, **named: Any) -> Any:
    limits = {"min": least, "max": largest} | {
        {"a_min": "min", "a_max": "max"}.get(name, name): value for name, value in named.items()
    }
    if set(limits) - {"min", "max"}:
        raise NotAColumn("clip takes a least and a largest value")
    clipped = column if limits["min"] is None else UFUNCS["maximum"](column, limits["min"])
    return clipped if limits["max"] is None else UFUNCS["minimum"](clipped, limits["max"])


def _like(number: float) -> Callable[..., Column]:
    def apply(column: Any, dtype: Any = None, **options: Any) -> Column:
        if options:
            raise NotAColumn("a constant column takes a dtype only")
        return literal(number, "like")

    return apply


_abs = _unary("abs", lambda number: number.abs())

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _binary("+", operator.add),
    "subtract": _binary("-", operator.sub),
    "multiply": _binary("*", operator.mul),
    "divide": _divide,
    "floor_divide": _whole_quotient("//"),
    "remainder": _whole_quotient("%"),
    "power": _power,
    "float_power": _power,
    "square": lambda value: _power(value, 2),
    "reciprocal": lambda value: _divide(1.0, value),
    "negative": _unary("-", lambda number: number * -1.0),
    "positive": _unary("+", lambda number: number),
    "absolute": _abs,
    "fabs": _abs,
    "sign": _unary("sign", _sign),
    "floor": _unary("floor", lambda number: number.floor(), keeps=False),
    "ceil": _unary("ceil", lambda number: number.ceil(), keeps=False),
    "exp": _exp,
    "log": _guarded("log", lambda n: n > 0.0, lambda n: n.log(), -math.inf),
    "log10": _guarded("log10", lambda n: n > 0.0, lambda n: n.log(10), -math.inf),
    "log2": _guarded("log2", lambda n: n > 0.0, lambda n: n.log(2), -math.inf),
    "sqrt": _guarded("sqrt", lambda n: n > 0.0, lambda n: n.sqrt(), 0.0),
    "minimum": _extreme("min", operator.le),
    "maximum": _extreme("max", operator.ge),
    "fmin": _extreme("min", operator.le, keeps=False),
    "fmax": _extreme("max", operator.ge, keeps=False),
    "equal": _compare("==", operator.eq),
    "not_equal": _compare("!=", operator.ne),
    "less": _compare("<", operator.lt),
    "less_equal": _compare("<=", operator.le),
    "greater": _compare(">", operator.gt),
    "greater_equal": _compare(">=", operator.ge),
    "logical_and": _logical("&", operator.and_),
    "bitwise_and": _logical("&", operator.and_),
    "logical_or": _logical("|", operator.or_),
    "bitwise_or": _logical("|", operator.or_),
    "logical_xor": _logical("^", lambda a, b: a != b),
    "bitwise_xor": _logical("^", lambda a, b: a != b),
    "logical_not": _not,
    "invert": _not,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "select": _select,
    "clip": _clip,
    "isin": _numpy_isin,
    "zeros_like": _like(0.0),
    "ones_like": _like(1.0),
}


# ---------------------------------------------------------------------------------------------------------
# Tables of columns


class ColumnTable:
    """What a happiness function gets as ``x`` on an engine: ``x["name"]`` is a :class:`Column`.

    Parameters
    ----------
    columns : mapping of name to Column
        All there are.
    purpose : str
        Who asks, for messages.
    """

    def __init__(self, columns: Mapping[Any, Column], purpose: str) -> None:
        self._columns, self._purpose = columns, purpose
        self.used: list[Any] = []

    @property
    def column_names(self) -> list[Any]:
        """Names of the columns."""
        return list(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: Any) -> Column:
        if not isinstance(name, Hashable) or isinstance(name, slice | tuple | Column):
            raise NotAColumn("only single columns can be taken from a table that is not in memory")
        purpose = self._purpose[:1].lower() + self._purpose[1:]
        refuse_missing_columns(self.column_names, [name], purpose)
        if name not in self.used:
            self.used.append(name)
        return self._columns[name]


def lookup(column: Any, numbers: Mapping[Any, float], default: float | None = None) -> Any:
    """Replace every value of a column by its number.

    Parameters
    ----------
    column : array, series or Column
        A column of the table, such as ``x["education"]``.
    numbers : mapping of value to number
        What each value counts.
    default : number, optional
        What a value that is not in ``numbers`` counts. Without it such a value is an error.

    Examples
    --------
    >>> from felicific import lookup
    >>> lookup(["Master", "High School"], {"Master": 0.01, "Doctorate": 0.02}, 0.0)
    array([0.01, 0.  ])
    """
    if isinstance(column, Column):
        if len(numbers) > LONGEST_LOOKUP:
            raise NotAColumn(f"lookup with {len(numbers)} values")
        # A value without a number becomes NaN, which the sums refuse; the rows are then gone through one by one.
        result: Any = literal(math.nan if default is None else float(default), "lookup")
        for value, number in reversed(list(numbers.items())):
            result = _where(column == value, float(number), result)
        return result
    values = as_vector(column, "column of lookup")
    result = [numbers.get(value, default) for value in values.tolist()]
    if default is None and None in result:
        row = result.index(None)
        raise HappinessError(
            f"lookup has no number for {values.tolist()[row]!r} (row {row} of the column it was given).",
            "Add it to the mapping, or give lookup a default as third argument.",
        )
    return np.array(result, dtype=np.float64)
