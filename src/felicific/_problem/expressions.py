"""Expressions: ``"decision * loan_requested"`` as a happiness function, read by a whitelist and never executed.

The text is parsed to a tree, every node of which must be on the list; the tree is then walked over whole columns. The
names ``decision``, ``y``, ``group`` and ``baseline`` mean what they mean in a happiness function; any other name is a
column of ``x``, and ``x["Odd name"]`` is one whose name is no identifier.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from felicific._tables.memory import as_vector, is_frame, is_null, take_column
from felicific.exceptions import DataError, ExpressionError

#: What an expression may consist of at most: an expression is read by people too.
LONGEST, MOST_PARTS, DEEPEST = 4000, 1000, 100

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: By name: the function, and how many arguments it takes at least and at most.
FUNCTIONS: dict[str, tuple[Any, int, float]] = {
    "min": (np.minimum, 2, math.inf),
    "max": (np.maximum, 2, math.inf),
    "abs": (np.abs, 1, 1),
    "log": (np.log, 1, 1),
    "exp": (np.exp, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
}
OWN_NAMES = ("decision", "y", "group", "baseline")
_NUMBERS = (bool, int, float, np.number, np.bool_)

TEXT = 'Write decision == "yes", column != "no", or column in ("a", "b").'
GRAMMAR = (
    "An expression is made of numbers, column names, decision, y, group, baseline, + - * / **, comparisons, in, and, "
    f'or, not, `a if test else b`, {", ".join(FUNCTIONS)}; x["Odd name"] names any column.'
)


@dataclass(frozen=True)
class Expression:
    """A function of those of ``decision``, ``x``, ``y``, ``group`` and ``baseline`` that its text names.

    Comparisons and ``and``, ``or``, ``not`` are 1 or 0; where a value that they look at is missing, so are they.

    Attributes
    ----------
    text : str
        What was written. Two expressions of the same text are equal.
    """

    text: str

    def __post_init__(self) -> None:
        _read(self.text)

    @property
    def columns(self) -> frozenset[str | int]:
        """Columns of ``x`` that it looks at."""
        tree = _read(self.text)
        quoted = {
            node.slice.value  # type: ignore[attr-defined]  # checked to be a constant
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript)
        }
        return frozenset(_names(tree) - {*OWN_NAMES, "x"} | quoted)

    def refuse_unknown(self, name: str, values: Sequence[Any], what: str, others: str) -> None:
        """Refuse text or a number that ``decision``, ``y``, ``group`` or ``baseline`` can never be.

        Parameters
        ----------
        name : {"decision", "y", "group", "baseline"}
        values : sequence
            All values there are.
        what, others : str
            What messages call one value, and all of them.
        """
        for node in _equated(_read(self.text), name):
            value = _constant(node)
            alike = [one for one in values if isinstance(one, str) == isinstance(value, str)]
            if value is None or not values or value in alike:
                continue
            near = difflib.get_close_matches(str(value), [one for one in alike if isinstance(one, str)], n=1)
            listed = f"{str(list(values[:20]))[:-1]}, ...]" if len(values) > 20 else str(list(values))
            remedy = f"Did you mean {near[0]!r}?" if near else "Compare with one of them"
            remedy += (
                f" Where these rows lack {what}s, name all of them." if near else ", or name all there are."
            )
            raise _wrong(self.text, node, f"{value!r} is no {what}; the {others} are {listed}:", remedy)

    @property
    def is_test(self) -> bool:
        """Whether it is made of comparisons, joined by and, or, not: whatever the columns hold, it is 0 or 1."""
        return self.is_binary()

    def is_binary(self, *names: str) -> bool:
        """Whether it can be nothing but 0 or 1, where some of its arguments are nothing else."""
        return _is_binary(_read(self.text).body, names)

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature(self.text)

    def __call__(self, **given: Any) -> Any:
        """One number per row, or one number when no column is named."""
        with np.errstate(all="ignore"):  # what is not finite is refused with its row by whoever asked
            value = _Walk(self.text, given).value(_read(self.text).body)
        return float(value) if isinstance(value, _NUMBERS) else value


def _is_binary(node: ast.expr, names: Sequence[str]) -> bool:
    match node:
        case ast.IfExp():
            return _is_binary(node.body, names) and _is_binary(node.orelse, names)
        case ast.Constant():
            return node.value in (0, 1)
        case ast.Name():
            return node.id in names
        case ast.BinOp(op=ast.Mult()):
            return _is_binary(node.left, names) and _is_binary(node.right, names)
        case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1)):
            return _is_binary(node.right, names)
        case ast.UnaryOp(op=ast.Not()) | ast.Compare() | ast.BoolOp():
            return True
    return False


def is_name(text: str) -> bool:
    """Whether the text is a lone name, as criteria have, and not that of an argument."""
    return text.strip().isidentifier() and text.strip() not in OWN_NAMES


# ---------------------------------------------------------------------------------------------------------
# Reading: everything that is wrong with the text itself is said here, before any data is seen


@lru_cache(maxsize=256)
def _read(text: str) -> ast.Expression:
    """The checked tree of an expression."""
    if len(text) > LONGEST:
        raise ExpressionError(
            f"The expression has {len(text)} characters, more than {LONGEST}.",
            "Write a Python function instead.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python comments on style here; it is not Python's text
            tree = ast.parse(_line(text), mode="eval")
    except SyntaxError as error:
        raise _unreadable(text, error) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"The expression {text[:80]!r} cannot be read: {error}.", GRAMMAR) from None
    _name_as_written(tree, _line(text))
    _check_size(tree.body)
    _check(tree.body, text)
    return tree


def _name_as_written(tree: ast.Expression, line: str) -> None:
    """Undo that Python reads other letters for those of a name (NFKC): ``ａｇｅ`` and ``age`` are two columns."""
    encoded = line.encode()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = encoded[node.col_offset : node.end_col_offset].decode()


@lru_cache(maxsize=256)
def _signature(text: str) -> inspect.Signature:
    by_name = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, by_name) for name in _arguments(text)])


@lru_cache(maxsize=256)
def _arguments(text: str) -> tuple[str, ...]:
    names = _names(_read(text))
    wanted = names & set(OWN_NAMES) | ({"x"} if names - set(OWN_NAMES) else set())
    return tuple(name for name in ("decision", "x", "y", "group", "baseline") if name in wanted)


def _names(tree: ast.AST) -> set[str]:
    """Names that stand for values, not for functions."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions}


def _equated(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a name is said to equal, to differ from or to be among."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        for (left, right), sign in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            if isinstance(sign, ast.In | ast.NotIn):
                others = right.elts if _is_named(left, name) else []  # type: ignore[attr-defined]  # a list
            elif isinstance(sign, ast.Eq | ast.NotEq):
                others = [b for a, b in ((left, right), (right, left)) if _is_named(a, name)]
            else:
                others = []
            yield from others


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _constant(node: ast.expr) -> str | float | None:
    """The text or the number that a node is; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return None if value is None or isinstance(value, str) else -value
    return node.value if isinstance(node, ast.Constant) else None  # type: ignore[return-value]  # checked


def _line(text: str) -> str:
    """The text as one line, so that an error can point into it."""
    return text.replace("\r", " ").replace("\n", " ").strip()


def _unreadable(text: str, error: SyntaxError) -> ExpressionError:
    line = _line(text)
    if not line:
        return ExpressionError("The expression is empty.", GRAMMAR)
    # Python counts from 1, and says 0 when the text ends too early.
    start = min(error.offset - 1, len(line)) if error.offset else len(line)
    stop = error.end_offset - 1 if error.offset and error.end_offset else start + 1
    rest = line[start:]
    remedy = GRAMMAR
    if rest.startswith("=") and line[start - 1 : start] != "=":
        remedy = "Equality is written ==."
    elif rest.startswith(("&", "|", "!", "<>")) or rest[:4].upper().rstrip() in ("AND", "OR", "NOT"):
        remedy = "Write `and`, `or`, `not` and `!=`."
    reason = f" ({error.msg})" if error.msg and not error.msg.startswith("invalid syntax") else ""
    return ExpressionError(
        f"The expression cannot be read here{reason}:", remedy, _picture(line, start, stop)
    )


def _picture(line: str, start: int, stop: int) -> str:
    """The line with carets under a part of it, shortened to what fits a terminal."""
    line = "".join(letter if letter.isprintable() else " " for letter in line)
    stop = max(stop, start + 1)
    if len(line) > 100:
        first = max(0, min(start - 40, len(line) - 96))
        before, after = "... " if first else "", " ..." if first + 96 < len(line) else ""
        line = before + line[first : first + 96] + after
        start, stop = start - first + len(before), min(stop - first, 96) + len(before)
    return f"    {line}\n    {' ' * start}{'^' * (stop - start)}"


def _wrong(text: str, node: Any, problem: str, remedy: str = GRAMMAR) -> ExpressionError:
    """The error that points at a node (anything with the positions of one)."""
    encoded = _line(text).encode()  # a node's place is counted in bytes
    start, stop = (len(encoded[:place].decode()) for place in (node.col_offset, node.end_col_offset))
    return ExpressionError(problem, remedy, _picture(_line(text), start, stop))


def _between(text: str, left: ast.expr, right: ast.expr) -> Any:
    """Where the operator between two nodes stands."""
    part = _line(text).encode()[left.end_col_offset : right.col_offset]
    place = ast.Constant(None)
    place.col_offset = (left.end_col_offset or 0) + len(part) - len(part.lstrip(b" )"))
    place.end_col_offset = right.col_offset - len(part) + len(part.rstrip(b" ("))
    return place


def _check_size(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    parts = depth = 0
    while level:
        parts, depth = parts + len(level), depth + 1
        if parts > MOST_PARTS or depth > DEEPEST:
            raise ExpressionError(
                f"The expression has more than {MOST_PARTS} parts, or is nested deeper than {DEEPEST}.",
                "Write a Python function instead.",
            )
        level = [child for node in level for child in ast.iter_child_nodes(node)]


def _check(node: ast.expr, text: str) -> None:
    """Refuse a node that is not on the list, then look at its parts."""
    if isinstance(node, ast.Constant):
        _check_number(node, text)
    elif isinstance(node, ast.Name):
        if node.id == "x":
            raise _wrong(text, node, "x is the whole table:", 'Name a column: loan, or x["Odd name"].')
    elif isinstance(node, ast.Subscript):
        _check_column(node, text)
    elif isinstance(node, ast.BinOp):
        if type(node.op) not in ARITHMETIC:
            place = _between(text, node.left, node.right)
            raise _wrong(text, place, "This operator is not allowed:", "Use + - * / ** (and, or, not).")
        _check_all([node.left, node.right], text)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            raise _wrong(text, node, "This operator is not allowed:", "Negation is written not.")
        _check(node.operand, text)
    elif isinstance(node, ast.BoolOp):
        _check_all(node.values, text)
    elif isinstance(node, ast.IfExp):
        _check_all([node.body, node.test, node.orelse], text)
    elif isinstance(node, ast.Compare):
        _check_compare(node, text)
    elif isinstance(node, ast.Call):
        _check_call(node, text)
    else:
        raise _wrong(text, node, "This is not allowed in an expression:")
    if not _names(node):
        _check_constant(node, text)


def _check_all(nodes: Iterable[ast.expr], text: str) -> None:
    for node in nodes:
        _check(node, text)


def _check_number(node: ast.Constant, text: str) -> None:
    if isinstance(node.value, str):
        raise _wrong(text, node, "Text can only be compared:", TEXT)
    if not isinstance(node.value, bool | int | float):
        raise _wrong(text, node, "This is no real number:")
    if isinstance(node.value, int) and abs(node.value) < 2**1023 and int(float(node.value)) != node.value:
        raise _wrong(
            text, node, "No 64-bit number has all of these digits:", "Write it rounded, as 1e18 say."
        )


def _check_constant(node: ast.expr, text: str) -> None:
    """A part without names is one number; insist that it is finite."""
    try:
        with np.errstate(all="ignore"):
            number = float(_Walk(text, {}).value(node))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(text, node, f"This number is {number}:", "Numbers must be finite.")


def _check_column(node: ast.Subscript, text: str) -> None:
    named = isinstance(node.slice, ast.Constant) and type(node.slice.value) in (str, int)
    if not (isinstance(node.value, ast.Name) and node.value.id == "x" and named):
        raise _wrong(text, node, "This names no column:", 'A column is x["its name"], or its name alone.')


def _check_compare(node: ast.Compare, text: str) -> None:
    places = [node.left, *node.comparators]
    for (left, right), sign in zip(pairwise(places), node.ops, strict=True):
        if isinstance(sign, ast.In | ast.NotIn):
            if len(node.ops) > 1:
                raise _wrong(text, node, "`in` cannot be chained:", "Join comparisons with and.")
            _check_members(right, text)
            places.remove(right)
        elif type(sign) not in COMPARISONS:
            raise _wrong(
                text,
                _between(text, left, right),
                "This comparison is not allowed:",
                "Use == != < <= > >= in.",
            )
        elif not isinstance(sign, ast.Eq | ast.NotEq) and (_is_text(left) or _is_text(right)):
            raise _wrong(text, _between(text, left, right), "Text has no order:", TEXT)
        elif _is_list(right):
            raise _wrong(text, right, "A list is for `in`:", TEXT)
    _check_all([place for place in places if not _is_text(place)], text)


def _check_members(node: ast.expr, text: str) -> None:
    if not _is_list(node) or not node.elts:  # type: ignore[attr-defined]  # a list has elements
        raise _wrong(text, node, "This is no list of values:", TEXT)
    for element in node.elts:  # type: ignore[attr-defined]  # as above
        if isinstance(element, ast.UnaryOp | ast.Constant):
            if not _is_text(element):
                _check(element, text)
        else:
            raise _wrong(text, element, "A list holds numbers and text only:", "Join comparisons with or.")


def _check_call(node: ast.Call, text: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    functions = f"The functions are {', '.join(FUNCTIONS)}."
    if name not in FUNCTIONS:
        raise _wrong(text, node.func, "There is no such function:", functions)
    if node.keywords:
        raise _wrong(text, node.keywords[0], "Arguments have no names here:", functions)
    _, least, most = FUNCTIONS[name]
    if not least <= len(node.args) <= most:
        wanted = "at least two arguments" if most > 1 else "one argument"
        raise _wrong(text, node, f"{name} takes {wanted}:", "It works row by row, not over a column.")
    _check_all(node.args, text)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List | ast.Set)


# ---------------------------------------------------------------------------------------------------------
# Walking: values are Python scalars, or NumPy vectors (float64 with NaN, or object with text)


@dataclass(frozen=True)
class _Walk:
    """The value of a tree for the arguments that were given."""

    text: str
    given: dict[str, Any]

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return float(node.value)  # type: ignore[arg-type]  # checked to be a number
            case ast.Name(id=name):
                return _tidy(self.given[name]) if name in OWN_NAMES else self.column(node, name)
            case ast.Subscript(slice=ast.Constant(value=name)):
                return self.column(node, name)
            case ast.UnaryOp(op=ast.Not()):
                return _negation(self.truth(node.operand))
            case ast.UnaryOp():
                operand = self.number(node.operand)
                return -operand if isinstance(node.op, ast.USub) else operand
            case ast.BinOp():
                return _scalar(ARITHMETIC[type(node.op)], self.number(node.left), self.number(node.right))
            case ast.BoolOp():
                join = _both if isinstance(node.op, ast.And) else _either
                return reduce(join, [self.truth(part) for part in node.values])
            case ast.IfExp():
                return _choice(self.truth(node.test), self.number(node.body), self.number(node.orelse))
            case ast.Compare():
                return self.comparison(node)
            case ast.Call(func=ast.Name(id=name)):
                function = FUNCTIONS[name][0]
                arguments = [self.number(argument) for argument in node.args]
                return function(arguments[0]) if len(arguments) == 1 else reduce(function, arguments)
        raise AssertionError(f"{ast.dump(node)} passed the check")

    def column(self, node: ast.expr, name: Any) -> Any:
        x = self.given["x"]
        if is_frame(x) or isinstance(x, np.ndarray) or hasattr(x, "tocsr"):
            try:
                return _tidy(take_column(x, name, "this expression"))
            except DataError as error:
                raise _wrong(self.text, node, error.problem, error.remedy) from error
        return _tidy(x[name])

    def number(self, node: ast.expr) -> Any:
        """A value that arithmetic can be done with."""
        value = self.value(node)
        if _holds_text(value):
            raise _wrong(
                self.text, node, "This is text, not a number:", 'Compare it: (decision == "yes") * loan, say.'
            )
        return float(value) if isinstance(value, _NUMBERS) else value

    def truth(self, node: ast.expr) -> Any:
        """1, 0 or NaN per row."""
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if negated or isinstance(node, ast.Compare | ast.BoolOp):
            return self.value(node)
        return _compared(operator.ne, self.number(node), 0.0)

    def comparison(self, node: ast.Compare) -> Any:
        tests = []
        for (left, right), sign in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            if isinstance(sign, ast.In | ast.NotIn):
                members = right.elts  # type: ignore[attr-defined]  # checked to be a list
                one = reduce(_either, [self.compared(left, operator.eq, member) for member in members])
                tests.append(one if isinstance(sign, ast.In) else _negation(one))
            else:
                tests.append(self.compared(left, COMPARISONS[type(sign)], right))
        return reduce(_both, tests)

    def compared(self, left: ast.expr, sign: Callable[[Any, Any], Any], right: ast.expr) -> Any:
        a, b = (node.value if _is_text(node) else self.value(node) for node in (left, right))  # type: ignore[attr-defined]
        if _holds_text(a) != _holds_text(b):
            text, number = (left, right) if _holds_text(a) else (right, left)
            raise _wrong(
                self.text,
                number,
                f"This is a number, and {ast.unparse(text)} is text:",
                "Compare text with text: write the value in quotes, or leave them out.",
            )
        ordered = sign not in (operator.eq, operator.ne)
        if ordered and _holds_text(a) and _holds_text(b):
            raise _wrong(self.text, _between(self.text, left, right), "Text has no order:", TEXT)
        return _compared(sign, a, b)


def _tidy(values: Any) -> Any:
    """A scalar as it is; a vector as float64 with NaN, or as objects with text."""
    if np.ndim(values) == 0:
        return values
    vector = as_vector(values, "column")
    if vector.dtype.kind in "biuf":
        return vector.astype(np.float64, copy=False)
    if vector.dtype.kind in "mM":
        raise ExpressionError(
            "The expression looks at a date or a duration.",
            "Make it a number first, or write a Python function.",
        )
    plain = vector.tolist()
    if {*map(type, plain)} == {str}:
        return vector if vector.dtype == object else vector.astype(object)
    plain = [None if is_null(value) else value for value in plain]
    if any(isinstance(value, str) for value in plain):
        return np.array(plain, dtype=object)
    try:
        return np.array([math.nan if value is None else float(value) for value in plain])
    except (TypeError, ValueError) as error:
        raise ExpressionError(
            f"The expression looks at values such as {plain[0]!r}.", "It can look at numbers and text only."
        ) from error


def _holds_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)


def _scalar(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """An operation by NumPy's rules when both sides are single numbers: 1 / 0 is infinite, and no exception."""
    if isinstance(left, float) and isinstance(right, float):
        return float(operation(np.float64(left), np.float64(right)))
    return operation(left, right)


def _compared(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    truth = sign(left, right)
    if isinstance(truth, bool | np.bool_):
        return float(truth)
    missing = _missing(left) | _missing(right)
    return np.where(missing, math.nan, np.asarray(truth, dtype=np.float64))


def _missing(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value == np.array(None) if value.dtype == object else np.isnan(value)
    return np.False_


def _negation(truth: Any) -> Any:
    return 1.0 - truth


def _both(left: Any, right: Any) -> Any:
    """And: what is false on one side is false, whatever the other side is."""
    return _joined(left, right, 0.0)


def _either(left: Any, right: Any) -> Any:
    """Or: what is true on one side is true, whatever the other side is."""
    return _joined(left, right, 1.0)


def _joined(left: Any, right: Any, decisive: float) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, float):
            return one if one == decisive else other
    unclear = np.where(np.isnan(left) | np.isnan(right), math.nan, 1.0 - decisive)
    return np.where((left == decisive) | (right == decisive), decisive, unclear)


def _choice(test: Any, yes: Any, no: Any) -> Any:
    if isinstance(test, float):
        return yes if test else no
    return np.where(np.isnan(test), math.nan, np.where(test == 1.0, yes, no))
