"""Happiness: what a decision is worth to a person; and the criteria that are special cases of it."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from felicific._documents import check_shape, read_numbers, refused
from felicific._problem.expressions import GRAMMAR, Expression, is_name
from felicific._tables.memory import Array, ArrayRows, Table, is_arrow, is_polars, slice_rows, widener
from felicific.exceptions import FelicificError, HappinessError

ARGUMENTS = ("decision", "x", "y", "group")

#: Numbers of one person that differ by less, relative to the largest, are the same but for rounding.
ALIKE = 1e-9


def arguments_of(function: Callable[..., Any], what: str, allowed: Sequence[str]) -> frozenset[str]:
    """Names out of ``allowed`` that the function asks for; anything else it insists on is an error."""
    if not callable(function):
        raise HappinessError(f"{what} is {function!r}, which cannot be called.", "Pass a function.")
    try:
        parameters = _parameters(function)
    except (TypeError, ValueError) as error:
        raise HappinessError(
            f"{what} does not say which arguments it takes.",
            f"Wrap it in a function of {', '.join(allowed)}.",
        ) from error
    asked = set()
    for parameter in parameters:
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if by_name and parameter.name in allowed:
            asked.add(parameter.name)
        elif parameter.default is parameter.empty:
            raise HappinessError(
                f"{what} asks for the argument {parameter}, which felicific cannot pass.",
                f"Name its arguments out of {', '.join(allowed)}; they are passed by name.",
            )
    return frozenset(asked)


#: Signatures of functions that are still in use: they are asked for once per batch and decision.
_SIGNATURES: WeakKeyDictionary[Callable[..., Any], tuple[inspect.Parameter, ...]] = WeakKeyDictionary()


def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    if not isinstance(function, FunctionType):  # others may be equal without having the same arguments
        return tuple(inspect.signature(function).parameters.values())
    if function not in _SIGNATURES:
        _SIGNATURES[function] = tuple(inspect.signature(function).parameters.values())
    return _SIGNATURES[function]


def written(number: float, digits: int = 5) -> str:
    """A number for reading: so many digits that count, but all before the point, thousands apart.

    Examples
    --------
    >>> written(260512.3), written(8013.24), written(0.0123456)
    ('260,512', '8,013.2', '0.012346')
    """
    rounded = float(f"{number:.{digits}g}")
    return f"{number:,.0f}" if 10**digits <= abs(rounded) < 1e15 else f"{rounded:,.{digits}g}"


#: What a component of a criterion is called after the criterion's own name.
_PART = re.compile(r"\(decision=(.+?)(?:, label=(.+))?\)", re.DOTALL)


@dataclass(frozen=True)
class Component:
    """What moments, policies and files remember of a happiness: everything but the function.

    Attributes
    ----------
    name, unit : str
        How it is called, and what it is counted in.
    family : str
        The criterion it belongs to, or its own name.
    looks_at_y : bool
        Whether the true label is needed to compute it.
    bounds : tuple of two numbers, or None
        The known range of its values.
    """

    name: str
    unit: str
    family: str
    looks_at_y: bool
    bounds: tuple[float, float] | None

    @property
    def title(self) -> str:
        """The name as a reader says it: of a criterion, how people are decided about, and who they truly are."""
        part = _PART.fullmatch(self.name.removeprefix(self.family))
        if part is None:
            return self.name.replace("_", " ") if self.name in CRITERIA else self.name
        decision, label = (text and text.strip("'\"") for text in part.groups())
        return f"decided {decision}" + (f", truly {label}" if label else "")

    def quantity(self, number: float) -> str:
        """Write a number of this component with its unit."""
        return f"{written(number, 6)} {self.unit}".rstrip()


def read_component(content: Any) -> Component:
    """One component, each part of the type it must have."""
    names = {"name": str, "unit": str, "family": str, "looks_at_y": bool}
    if not isinstance(content, dict) or set(content) != {*names, "bounds"}:
        raise refused("a component lacks a part, or has one too many")
    for name, kind in names.items():
        if type(content[name]) is not kind:
            raise refused(f"a component's {name} is {content[name]!r}")
    bounds = None
    if content["bounds"] is not None:
        low, high = check_shape("bounds", read_numbers(content["bounds"], "bounds"), (2,)).tolist()
        bounds = (low, high)
    return Component(bounds=bounds, **{name: content[name] for name in names})


@dataclass(frozen=True)
class Happiness:
    r"""One component of happiness, :math:`\eta(d, x, y, z)`, with its name and unit.

    Parameters
    ----------
    function : callable or expression
        Names the arguments it needs, out of ``decision`` (one class, a Python scalar), ``x`` (rows of the
        user's own table), ``y`` (labels) and ``group``; returns one number per row, or one number. Or text such
        as ``"decision * loan_requested"``; see :mod:`felicific._problem.expressions`.
    among : callable or expression, optional
        A function of ``x``, ``y``, ``group`` that says who is counted; never of the decision, so the mean
        over those people stays linear in the policy. By default everybody is counted.
    name, unit : str, optional
        For messages and reports. The name defaults to the function's.
    bounds : (low, high), optional
        The range that the values are known to lie in.
    family : str, optional
        The name under which a gap may be set for several components at once.

    Examples
    --------
    >>> def funding(decision, x):
    ...     return decision * x["loan_requested"]
    >>> Happiness(funding, unit="$").name
    'funding'
    >>> Happiness("decision * loan_requested", among="loan_requested > 0", unit="$").name
    'decision * loan_requested'
    """

    function: Any
    among: Any = None
    name: str | None = None
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    family: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.function, str):
            _check_expression(self.function)
            object.__setattr__(self, "function", Expression(self.function.strip()))
        if isinstance(self.among, str):
            object.__setattr__(self, "among", Expression(self.among.strip()))
        name = self.name if self.name is not None else _name_of(self.function)
        asked = arguments_of(self.function, f"The happiness {name!r}", ARGUMENTS)
        if self.among is not None:
            asked |= arguments_of(self.among, f"`among` of the happiness {name!r}", ARGUMENTS[1:])
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _range(self.bounds, name))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "unit", self.unit if self.unit is not None else "")
        object.__setattr__(self, "family", self.family if self.family is not None else name)

    @property
    def looks_at_y(self) -> bool:
        """Whether the function or its ``among`` asks for the label."""
        asked = arguments_of(self.function, "The happiness", ARGUMENTS)
        return "y" in asked or (
            self.among is not None and "y" in arguments_of(self.among, "`among`", ARGUMENTS[1:])
        )

    @property
    def component(self) -> Component:
        """The part of it that is data."""
        return Component(
            str(self.name), str(self.unit), str(self.family), looks_at_y=self.looks_at_y, bounds=self.bounds
        )


def _range(bounds: Any, name: str) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if isinstance(bounds, str) or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise HappinessError(
            f"The bounds {bounds!r} of the happiness {name!r} are not a range.",
            "Give the least and the largest possible value, finite and in that order.",
        )
    return low, high


def _name_of(function: Any) -> str:
    if isinstance(function, Expression):
        return function.text
    name = getattr(function, "__name__", None) or type(function).__name__
    return "happiness" if name == "<lambda>" else str(name)


@dataclass(frozen=True)
class Batch:
    """Some rows, as a happiness function sees them; ``rows`` are their numbers in the user's table."""

    x: Table
    y: Array | None
    group: Array
    rows: NDArray[np.intp]

    def __post_init__(self) -> None:
        for name in ("y", "group"):
            values = getattr(self, name)
            wide = widener({name: values})({name: values})[name] if values is not None else None
            object.__setattr__(self, name, wide)

    def row(self, position: int) -> str:
        """Name one row and its group in a message."""
        return f"row {self.rows[position]} (group {self.group[position : position + 1].tolist()[0]!r})"

    def part(self, some: slice) -> Batch:
        """Some of these rows."""
        x = None if self.x is None else slice_rows(self.x, some.start, some.stop)
        return Batch(x, None if self.y is None else self.y[some], self.group[some], self.rows[some])


def evaluate(
    function: Callable[..., Any],
    what: str,
    batch: Batch,
    decision: Any = None,
    counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Call a function of the user's on a batch and insist on one finite real number per row, whatever the other rows.

    Of rows that are not ``counted`` anything is taken, and zero is returned.
    """
    allowed = ARGUMENTS if decision is not None else ARGUMENTS[1:]
    asked = arguments_of(function, what, allowed)
    if "y" in asked and batch.y is None:
        raise HappinessError(f"{what} looks at the label y, and there is none.", "Pass y.")
    case = what if decision is None else f"{what}, for the decision {decision!r},"
    numbers = _numbers(function, case, asked, batch, decision, counted)
    n = len(numbers)
    # Once in a table: its first batch begins before as many rows as it has.
    if n > 1 and batch.rows[0] < n and not isinstance(function, Expression):
        some = slice(n // 2, n // 2 + max(1, n // 8))
        seen = None if counted is None else counted[some]
        try:
            alone = _numbers(function, case, asked, batch.part(some), decision, seen)
        except HappinessError:
            return numbers  # what fails on fewer rows is told when there are fewer
        _refuse_others(case, batch, numbers, alone, some)
    return numbers


def _refuse_others(
    case: str, batch: Batch, numbers: NDArray[np.float64], alone: NDArray[np.float64], some: slice
) -> None:
    """Raise if some rows, ``alone``, get other numbers than among all rows of the batch."""
    apart = np.abs(alone - numbers[some])
    if apart.max() <= ALIKE * np.abs(numbers).max():
        return
    i = int(apart.argmax())
    raise HappinessError(
        f"{case} is {numbers[some.start + i]:.6g} in {batch.row(some.start + i)} among {len(numbers)} rows, and "
        f"{alone[i]:.6g} among {len(alone)} of them: it depends on other people's rows, or on chance.",
        "It sees some rows at a time: compute means, ranks and the like beforehand, as a column or a number.",
    )


def _numbers(
    function: Callable[..., Any],
    case: str,
    asked: frozenset[str],
    batch: Batch,
    decision: Any,
    counted: NDArray[np.bool_] | None,
) -> NDArray[np.float64]:
    """One finite real number per row."""
    offered = {"decision": decision, "x": batch.x, "y": batch.y, "group": batch.group}
    result = _call(function, case, {name: offered[name] for name in asked})
    if result is None:
        raise HappinessError(f"{case} returned None.", "Return one number per row; is a `return` missing?")
    array = result.to_numpy() if hasattr(result, "to_numpy") else np.asarray(result)
    numbers = _as_numbers(array, case)
    n = len(batch.group)
    if numbers.shape not in {(), (n,)}:
        raise HappinessError(
            f"{case} returned shape {numbers.shape} for {n} rows.",
            "Return one number per row, or one number; several components are a list of functions.",
        )
    numbers = np.broadcast_to(numbers, (n,))
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


def _call(function: Callable[..., Any], case: str, arguments: dict[str, Any]) -> Any:
    """Call a function of the user's; what it raises becomes an error of ours."""
    if is_arrow(arguments.get("x")):
        # Arrow's own columns know no arithmetic: most functions want arrays, and the others want Arrow.
        with contextlib.suppress(Exception):
            return function(**arguments | {"x": ArrayRows(arguments["x"])})
    try:
        return function(**arguments)
    except FelicificError as error:
        if isinstance(function, Expression):
            raise  # its errors point at the part that is wrong
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error.problem}", error.remedy
        ) from error
    except Exception as error:
        if is_polars(arguments.get("x")):
            # Polars knows no product of truth values and numbers; arrays do.
            with contextlib.suppress(Exception):
                return function(**arguments | {"x": ArrayRows(arguments["x"])})
        raise HappinessError(
            f"{case} raised {type(error).__name__}: {error}.",
            "Try the function on a few rows of your own table; a column may be missing, or a decision no number.",
        ) from error


def _as_numbers(array: Array, case: str) -> NDArray[np.float64]:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O":
        try:
            # A missing value of a nullable column becomes NaN, and is then reported with its row.
            plain = [
                np.nan if type(value).__name__ == "NAType" else value for value in array.ravel().tolist()
            ]
            if not any(isinstance(value, str | complex) for value in plain):
                return np.array(plain, dtype=np.float64).reshape(array.shape)
        except (TypeError, ValueError):
            pass
    raise HappinessError(
        f"{case} returned {array.dtype} values, not real numbers.", "Return one finite real number per row."
    )


def evaluate_among(happiness: Happiness, batch: Batch) -> NDArray[np.bool_] | None:
    """Who is counted by a component: True or False per row, or None for everybody."""
    if happiness.among is None:
        return None
    what = f"`among` of the happiness {happiness.name!r}"
    counted = evaluate(happiness.among, what, batch)
    if not np.isin(counted, (0.0, 1.0)).all():
        raise HappinessError(
            f"{what} returned numbers other than 0 and 1.", "Return True for the people who are counted."
        )
    return np.asarray(counted == 1.0)


def check_bounds(
    happiness: Happiness,
    values: NDArray[np.float64],
    counted: NDArray[np.bool_] | None,
    batch: Batch,
    decision: Any,
) -> None:
    """Refuse values outside the bounds that were stated, but for rounding."""
    if happiness.bounds is None or not len(values):
        return
    low, high = happiness.bounds
    slack = 1e-9 * (high - low)
    if values.min() >= low - slack and values.max() <= high + slack:
        return
    wrong = (values < low - slack) | (values > high + slack)
    if counted is not None:
        wrong &= counted
    if wrong.any():
        i = int(np.argmax(wrong))
        raise HappinessError(
            f"The happiness {happiness.name!r} of the decision {decision!r} is {values[i]:.6g} in {batch.row(i)}, "
            f"outside its bounds {low:.6g} to {high:.6g}.",
            "Widen bounds=, or leave it out: what relies on wrong bounds is wrong.",
        )


# ---------------------------------------------------------------------------------------------------------
# Criteria: each is a row of one table. The functions are small frozen objects so that they pickle.


@dataclass(frozen=True)
class Decided:
    """1 when the decision is ``choice``."""

    choice: Any

    def __call__(self, decision: Any) -> float:
        """One number for everybody."""
        return float(decision == self.choice)


@dataclass(frozen=True)
class Correct:
    """1 when the decision is the label."""

    def __call__(self, decision: Any, y: Any) -> Any:
        """True or False per person."""
        return y == decision


@dataclass(frozen=True)
class Labelled:
    """Counts the people whose label is ``label`` (``same``), or is not."""

    label: Any
    same: bool = True

    def __call__(self, y: Any) -> Any:
        """True or False per person."""
        return (y == self.label) == self.same


@dataclass(frozen=True)
class Criterion:
    """Which decisions are counted, among whom.

    ``decided``: "each" class, the "favourable" one, or the person's own "label".
    ``among``: "everyone", the people of "each label", of the "favourable" label, or of the "other" labels.
    """

    decided: str
    among: str


CRITERIA: Mapping[str, Criterion] = {
    "statistical_parity": Criterion(decided="each", among="everyone"),
    "overall_accuracy": Criterion(decided="label", among="everyone"),
    "equalized_odds": Criterion(decided="each", among="each label"),
    "equal_opportunity": Criterion(decided="favourable", among="favourable"),
    "predictive_equality": Criterion(decided="favourable", among="other"),
}


def _expand(name: str, classes: Sequence[Any], favourable: Any, label: str) -> list[Happiness]:
    criterion = CRITERIA[name]
    decided: dict[str, list[tuple[str, Callable[..., Any]]]] = {
        "each": [(f"decision={k!r}", Decided(k)) for k in classes],
        "favourable": [("", Decided(favourable))],
        "label": [("", Correct())],
    }
    among: dict[str, list[tuple[str, Callable[..., Any] | None]]] = {
        "everyone": [("", None)],
        "each label": [(f"label={k!r}", Labelled(k)) for k in classes],
        "favourable": [("", Labelled(favourable))],
        "other": [("", Labelled(favourable, same=False))],
    }
    found = []
    for who, counted in among[criterion.among]:
        for what, function in decided[criterion.decided]:
            inside = ", ".join(part for part in (what, who) if part)
            found.append(
                Happiness(
                    function,
                    among=counted,
                    name=f"{label}({inside})" if inside else label,
                    unit="share",
                    bounds=(0.0, 1.0),
                    family=label,
                )
            )
    return found


def resolve_favourable(favourable: Any, classes: Sequence[Any]) -> Any:
    """Return the favourable decision: the last class unless said."""
    if favourable is None:
        return classes[-1]
    if favourable not in classes:
        raise HappinessError(
            f"The favourable decision {favourable!r} is not among the classes {list(classes)}.",
            "Name one of them, or leave `favourable` out.",
        )
    return classes[list(classes).index(favourable)]


def resolve_happiness(
    happiness: Any, classes: Sequence[Any], favourable: Any = None
) -> tuple[Happiness, ...]:
    """Turn what the user wrote (function, Happiness, criterion, expression, list or dict) into components."""
    if happiness is None:
        raise HappinessError(
            "No happiness was given.",
            "Pass happiness=: a function such as `lambda decision, x: decision * x['loan']`, or the name of a "
            f"criterion ({', '.join(CRITERIA)}).",
        )
    best = resolve_favourable(favourable, classes)
    if isinstance(happiness, Mapping):
        items: Iterable[tuple[str | None, Any]] = [(str(name), item) for name, item in happiness.items()]
    elif isinstance(happiness, list | tuple):
        items = [(None, item) for item in happiness]
    else:
        items = [(None, happiness)]
    components: list[Happiness] = []
    for name, item in items:
        if isinstance(item, str) and item in CRITERIA:
            components += _expand(item, classes, best, name if name is not None else item)
        elif isinstance(item, Happiness):
            components.append(item if name is None else replace(item, name=name, family=name))
        else:
            components.append(Happiness(item, name=name))
    names = [str(component.name) for component in components]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if not names or repeated is not None:
        raise HappinessError(
            "The list of happiness components is empty."
            if repeated is None
            else f"Two happiness components are both called {repeated!r}.",
            "Pass at least one function." if repeated is None else "Name them: {'name': function, ...}.",
        )
    return tuple(components)


def _check_expression(text: str) -> None:
    """Refuse the name of a criterion, right or wrong, where an expression is expected."""
    if text in CRITERIA:
        raise HappinessError(
            f"{text!r} is a criterion, which may have several components.",
            f"Pass it as it is: happiness={text!r}, without Happiness(...).",
        )
    if is_name(text):
        near = difflib.get_close_matches(text, CRITERIA, n=1)
        raise HappinessError(
            f"There is no criterion called {text!r}.",
            f"Did you mean {near[0]!r}?" if near else f"The criteria are {', '.join(CRITERIA)}. {GRAMMAR}",
        )
