"""Happiness: what a decision is worth to a person, as the user writes it down."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from types import FunctionType
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from felicific._files import check_shape, plain, read_numbers, refused
from felicific._problem.criteria import CRITERIA, ROWS, Choices, Correct, Decided, Labelled, criterion_parts
from felicific._problem.expressions import GRAMMAR, Expression, is_name
from felicific._tables.memory import nearest
from felicific.exceptions import HappinessError, PolicyFileError

ARGUMENTS = ("decision", "x", "y", "group", "baseline")


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
    wanted = set()
    for parameter in parameters:
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if by_name and parameter.name in allowed:
            wanted.add(parameter.name)
        elif parameter.default is parameter.empty:
            raise HappinessError(
                f"{what} asks for the argument {parameter}, which felicific cannot pass.",
                f"Name its arguments out of {', '.join(allowed)}; they are passed by name.",
            )
    return frozenset(wanted)


#: Signatures of functions that are still in use: they are asked for once per batch and decision.
_SIGNATURES: WeakKeyDictionary[Callable[..., Any], tuple[inspect.Parameter, ...]] = WeakKeyDictionary()


def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    if not isinstance(function, FunctionType):  # others may be equal without having the same arguments
        call = getattr(type(function), "__call__", None)  # noqa: B004  # what the class says, if it says it all
        explicit = any(hasattr(function, name) for name in ("__signature__", "__wrapped__"))
        if isinstance(call, FunctionType) and not explicit and not isinstance(function, type):
            own, *others = _parameters(call) or (None,)
            if own is not None and own.kind is own.POSITIONAL_OR_KEYWORD:
                return tuple(others)
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


#: The range of a rate.
SHARE = (0.0, 1.0)


def is_rate(function: Any) -> bool:
    """Whether a function can return nothing but 0 and 1, by what it is."""
    test = isinstance(function, Expression) and function.is_test
    return test or isinstance(function, Decided | Correct | Labelled | Loses)


#: What the measure is called that counts who gets less than from the baseline's decision, of anything; or, followed
#: by its name, of something.
LOSES = "loses"

#: Units that stand before the number.
CURRENCIES = "$€£¥₹"


@dataclass(frozen=True)
class Measure:
    """What aggregates, policies and files remember of a happiness: everything but the function.

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
    wanted : bool
        Whether people want more of it: not where a criterion counts a decision that is not the best one.
    aside : bool
        Whether only requirements speak of it: a gap that is one number, and a frontier, leave it alone.
    over : str
        Of a fraction, whose ``among`` looks at the decision: the measure that it is divided by, who is counted. Sums
        hold the two apart, and a group's mean is the quotient of theirs.
    by_label : bool
        Whether it is the label that says who is counted.
    ends : tuple of two names, or None
        Where hidden reasons leave it open what people without a label have: the measures of the least and of the
        most that it can be.
    fall_harms : bool
        Whether less of what is wanted harms a group: not fewer false positives, nor less accuracy.
    """

    name: str
    unit: str
    family: str
    looks_at_y: bool
    bounds: tuple[float, float] | None
    wanted: bool = True
    aside: bool = field(default=False, compare=False)
    over: str = ""
    by_label: bool = field(default=False, compare=False)
    ends: tuple[str, str] | None = field(default=None, compare=False)
    fall_harms: bool = field(default=True, compare=False)

    @property
    def more_is_better(self) -> bool:
        """Whether a group is worse off when its mean falls."""
        return self.wanted and self.fall_harms

    @property
    def summed(self) -> tuple[float, float] | None:
        """The known range of what is added up of a person: of a fraction, nothing where somebody is not counted."""
        if self.bounds is None or not self.over:
            return self.bounds
        return min(self.bounds[0], 0.0), max(self.bounds[1], 0.0)

    @property
    def widest(self) -> float:
        """The largest gap that its bounds allow."""
        return math.inf if self.bounds is None else self.bounds[1] - self.bounds[0]

    @property
    def title(self) -> str:
        """The name as a reader says it."""
        if self.tells_who:
            what = self.name.removeprefix(LOSES).strip()
            return f"people who get less{what and f' {what!r}'} than from the baseline"
        named = self.name.removeprefix("counted by ").strip("'")
        return self.name.replace("_", " ").replace("'", "") if named in CRITERIA else self.name

    @property
    def tells_who(self) -> bool:
        """Whether it counts who gets less than from the baseline's decision."""
        return self.aside and not self.wanted and self.name.partition(" ")[0] == LOSES

    def quantity(self, number: float) -> str:
        """Write a number of this measure with its unit; of a share, which says so itself, the number alone."""
        if self.in_currency or self.unit == "share":
            return self.cell(number, 6)
        return f"{written(number, 6)} {self.unit}".rstrip()

    def short(self, number: float, way: int = 0) -> str:
        """Write a number of three digits: the nearest, one that is no larger (``way`` -1), or no smaller (1)."""
        if number <= 0 or not math.isfinite(number):
            return self.quantity(number)
        unit = 10.0 ** (math.floor(math.log10(number)) - 2)
        steps = number / unit
        rounded = math.floor(steps) if way < 0 else math.ceil(steps) if way else round(steps)
        return self.quantity(float(f"{rounded * unit:.3g}"))

    def cell(self, number: float, digits: int = 5) -> str:
        """Write a number without its unit, unless that is a currency: $16,000."""
        if not self.in_currency or not math.isfinite(number):
            return written(number, digits)
        return f"{'-' if number < 0 else ''}{self.unit}{written(abs(number), digits)}"

    @property
    def in_currency(self) -> bool:
        """Whether its unit stands before the number."""
        return bool(self.unit) and self.unit in CURRENCIES


def read_measure(content: Any) -> Measure:
    """One measure, each part of the type it must have."""
    kinds = dict.fromkeys(("looks_at_y", "wanted", "aside", "by_label", "fall_harms"), bool)
    names = dict.fromkeys(("name", "unit", "family", "over"), str) | kinds
    if not isinstance(content, dict) or set(content) != {*names, "bounds", "ends"}:
        raise refused("a measure lacks a part, or has one too many")
    for name, kind in names.items():
        if type(content[name]) is not kind:
            raise refused(f"a measure's {name} is {content[name]!r}")
    bounds = None
    if content["bounds"] is not None:
        low, high = check_shape("bounds", read_numbers(content["bounds"], "bounds"), (2,)).tolist()
        if low > high:
            raise refused(f"the bounds of a measure are {low:g} and {high:g}")
        bounds = (low, high)
    ends = content["ends"]
    if ends is not None and (
        type(ends) is not list or len(ends) != 2 or not all(type(end) is str for end in ends)
    ):
        raise refused(f"the ends of a measure are {ends!r}")
    return Measure(
        bounds=bounds, ends=None if ends is None else tuple(ends), **{name: content[name] for name in names}
    )


@dataclass(frozen=True)
class Happiness:
    r"""One measure of happiness: what a decision is worth to a person, with its name and unit.

    In formulas :math:`\eta(d, x, y, z)`.

    Parameters
    ----------
    function : callable or expression
        Names the arguments it needs, out of ``decision`` (one class, a Python scalar), ``x`` (rows of the
        user's own table), ``y`` (labels), ``group`` and ``baseline`` (the baseline); returns one number per
        row, or one number. Or text such as ``"decision * loan_requested"``; see
        :mod:`felicific._problem.expressions`.
    among : callable or expression, optional
        A function of ``x``, ``y``, ``group``, ``baseline`` and ``decision`` that says who is counted; by default
        everybody is. One that asks for the decision (``"decision == 1"``: dollars per approved person) makes the mean
        a fraction, whose numerator and denominator are both linear in the policy; the denominator, the share of people
        who are counted, is measured beside it as "counted by ...".
    name, unit : str, optional
        For messages and reports. The name defaults to the function's.
    bounds : (low, high), optional
        The range that the values are known to lie in.
    rate : bool, optional
        Whether every value is 0 or 1, now and of anybody: other values are then refused, and intervals are exact. By
        default it is so for criteria and for expressions that can be nothing else: comparisons (joined by and, or,
        not), the decision where the classes are 0 and 1, and products of such; never because the rows at hand happen to
        hold nothing else.
    family : str, optional
        The name under which a gap may be set for several measures at once.

    Examples
    --------
    >>> from felicific import Happiness
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
    rate: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.function, str):
            _check_expression(self.function)
            object.__setattr__(self, "function", Expression(self.function.strip()))
        if isinstance(self.among, str):
            object.__setattr__(self, "among", Expression(self.among.strip()))
        name = self.name if self.name is not None else _name_of(self.function)
        wanted = arguments_of(self.function, f"The happiness {name!r}", ARGUMENTS)
        if self.among is not None:
            wanted |= arguments_of(self.among, f"`among` of the happiness {name!r}", ARGUMENTS)
        if self.rate not in (None, True, False):
            raise HappinessError(f"rate is {self.rate!r} of the happiness {name!r}.", "Say True or False.")
        rate = (is_rate(self.function) or None) if self.rate is None else bool(self.rate)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _range(self.bounds, name))
        if rate:
            if self.rate and self.bounds not in (None, SHARE):
                raise HappinessError(
                    f"The happiness {name!r} is a rate and has the bounds {self.bounds}.",
                    "A rate is 0 or 1: leave bounds= or rate= out.",
                )
            object.__setattr__(self, "bounds", SHARE)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "unit", self.unit if self.unit is not None else "")
        object.__setattr__(self, "family", self.family if self.family is not None else name)

    def with_classes(self, decisions: Sequence[Any]) -> Happiness:
        """With what the classes tell: where these are 0 and 1, an expression of them may be a rate."""
        function = self.function
        if self.rate is not None or not isinstance(function, Expression) or set(decisions) != {0, 1}:
            return self
        return replace(self, rate=True, bounds=SHARE) if function.is_binary("decision", "baseline") else self

    @property
    def asks(self) -> frozenset[str]:
        """Arguments that the function or its ``among`` asks for."""
        wanted = arguments_of(self.function, "The happiness", ARGUMENTS)
        return wanted if self.among is None else wanted | arguments_of(self.among, "`among`", ARGUMENTS)

    @property
    def over(self) -> str:
        """Name of who is counted, if that depends on the decision; else nothing."""
        wanted = () if self.among is None else arguments_of(self.among, "`among`", ARGUMENTS)
        return f"counted by {self.name!r}" if "decision" in wanted else ""

    @property
    def looks_at_y(self) -> bool:
        """Whether the function or its ``among`` asks for the label."""
        return "y" in self.asks

    @property
    def looks_at_baseline(self) -> bool:
        """Whether the function or its ``among`` asks for the baseline."""
        return "baseline" in self.asks

    @property
    def functions(self) -> tuple[Any, ...]:
        """Every function that is called for it, ``among`` included."""
        parts = tuple(function for part in self.compared for function in part.functions)
        return parts or (self.function, self.among)

    @property
    def compared(self) -> tuple[Happiness, ...]:
        """What it compares with the baseline's decisions; nothing unless it counts who loses."""
        return self.function.parts if isinstance(self.function, Loses) else ()

    @property
    def may_be_idle(self) -> bool:
        """Whether it is right that no decision changes it for anybody."""
        return getattr(self.function, "may_be_idle", False) is True

    @property
    def measure(self) -> Measure:
        """The part of it that is data."""
        return Measure(
            str(self.name),
            str(self.unit),
            str(self.family),
            looks_at_y=self.looks_at_y,
            bounds=self.bounds,
            wanted=getattr(self.function, "wanted", True) is not False,
            over=self.over,
            by_label=self.by_label,
            fall_harms=getattr(self.function, "fall_harms", True) is not False,
        )

    @property
    def by_label(self) -> bool:
        """Whether it is the label that says who is counted."""
        if self.among is None:
            return False
        return "y" in arguments_of(self.among, f"`among` of the happiness {self.name!r}", ARGUMENTS)

    @property
    def label_with_x(self) -> bool:
        """Whether it looks at the label together with what differs between people of one signal."""
        return "y" in self.asks and bool(self.asks & {"x", "baseline"})


#: What somebody gets less by, relative to what it is by the baseline, is nothing but rounding.
SAME = 1e-12


@dataclass(frozen=True)
class Loses:
    """1 where a decision gives somebody less, of one of some measures, than the baseline's decision does.

    Made of what every decision is worth, so it is no function to be called: see :mod:`felicific._people.evaluate`.
    """

    parts: tuple[Happiness, ...]
    wanted: ClassVar[bool] = False
    may_be_idle: ClassVar[bool] = True
    text: ClassVar[str] = "gets less than from the baseline's decision"

    @property
    def __signature__(self) -> inspect.Signature:
        wanted = frozenset({"decision", "baseline"}).union(*(part.asks for part in self.parts))
        by_name = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature([inspect.Parameter(name, by_name) for name in ARGUMENTS if name in wanted])

    def __call__(self, **given: Any) -> Any:
        """Nothing, of one decision alone."""
        raise AssertionError("who loses is told by the worth of every decision")

    def lost(self, values: Sequence[Any], inside: Sequence[Any], now: Sequence[Any]) -> list[Any]:
        """Who gets less by each decision, as 1 and 0.

        ``values[j][d]`` is what decision d is worth, ``inside[j]`` who is counted (None: everybody), ``now[d]`` on
        whom the baseline decides d. What is no number stays none.
        """
        lost: list[Any] = [False] * len(now)
        for worth, counted in zip(values, inside, strict=True):
            for t, d in permutations(range(len(now)), 2):
                less = now[t] & (worth[t] - worth[d] > SAME * np.abs(worth[t]))
                lost[d] = lost[d] | (less if counted is None else less & counted)
        marks = [np.where(one, 1.0, 0.0) for one in lost]
        for worth, counted in zip(values, inside, strict=True):
            none = 0.0 * sum(worth[1:], start=worth[0])
            marks[0] = marks[0] + (none if counted is None else np.where(counted, none, 0.0))
        return marks


@dataclass(frozen=True)
class Counted(Happiness):
    """Who is counted by a fraction: its denominator, a share of all people that nobody wants for itself."""

    @property
    def measure(self) -> Measure:
        """The part of it that is data."""
        return replace(super().measure, wanted=False)


def with_counted(happiness: Sequence[Happiness]) -> tuple[Happiness, ...]:
    """The measures, and after them the denominators of those that are fractions."""
    names = {str(part.name) for part in happiness}
    counted = [
        Counted(part.among, name=part.over, unit="share", rate=True)
        for part in happiness
        if part.over and part.over not in names
    ]
    return (*happiness, *counted)


def measured(measures: Sequence[Measure]) -> list[int]:
    """Positions of the measures that were asked for: not those that only requirements or fractions speak of."""
    counted = {measure.over for measure in measures if measure.over}
    return [j for j, one in enumerate(measures) if not one.aside and one.name not in counted]


def ends_of(measures: Sequence[Measure]) -> list[tuple[int, int, int]]:
    """Positions of every measure that hidden reasons leave open, and of the least and the most that it can be."""
    names = [measure.name for measure in measures]
    return [
        (j, names.index(one.ends[0]), names.index(one.ends[1])) for j, one in enumerate(measures) if one.ends
    ]


def fractions_of(measures: Sequence[Measure]) -> list[tuple[int, int]]:
    """Positions of every fraction and of its denominator."""
    names = [measure.name for measure in measures]
    return [(j, names.index(measure.over)) for j, measure in enumerate(measures) if measure.over]


#: What ``happiness=`` takes: functions, criteria and expressions, one or several.
HappinessLike: TypeAlias = (
    str
    | Callable[..., Any]
    | Happiness
    | Sequence[str | Callable[..., Any] | Happiness]
    | Mapping[str, str | Callable[..., Any] | Happiness]
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


def resolve_happiness(
    happiness: Any, decisions: Sequence[Any], labels: Sequence[Any] | None = None, order: Sequence[Any] = ()
) -> tuple[Happiness, ...]:
    """Turn what the user wrote (function, Happiness, criterion, expression, list or dict) into measures."""
    if happiness is None:
        raise HappinessError(
            "No happiness was given.",
            "Pass happiness=: a function such as `lambda decision, x: decision * x['loan']`, or the name of a "
            f"criterion ({', '.join(row.name for row in ROWS)}).",
        )
    choices = Choices.of(decisions, labels, order)
    if isinstance(happiness, Mapping):
        items: Iterable[tuple[str | None, Any]] = [(str(name), item) for name, item in happiness.items()]
    elif isinstance(happiness, list | tuple):
        items = [(None, item) for item in happiness]
    else:
        items = [(None, happiness)]
    measures: list[Happiness] = []
    for name, item in items:
        if isinstance(item, str) and item in CRITERIA:
            new = criterion(item, choices, name)  # two criteria may share a measure
            measures += [
                one for one in new if all(replace(two, family=one.family) != one for two in measures)
            ]
        elif isinstance(item, Happiness):
            measures.append(item if name is None else replace(item, name=name, family=name))
        else:
            measures.append(Happiness(item, name=name))
    names = [str(measure.name) for measure in measures]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if not names or repeated is not None:
        raise HappinessError(
            "The list of happiness measures is empty."
            if repeated is None
            else f"Two happiness measures are both called {repeated!r}.",
            "Pass at least one function." if repeated is None else "Name them: {'name': function, ...}.",
        )
    return tuple(measure.with_classes(decisions) for measure in measures)


def criterion(name: str, choices: Choices, called: str | None = None) -> tuple[Happiness, ...]:
    """The measures of a criterion; a single one is called as somebody calls the criterion."""
    parts = criterion_parts(name, choices)
    family = CRITERIA[name].name if called is None else called
    names = [called] if called is not None and len(parts) == 1 else [part.name for part in parts]
    return tuple(
        Happiness(part.function, part.among, named, "share", family=family)
        for named, part in zip(names, parts, strict=True)
    )


def positions(name: str, measures: Sequence[Measure | Happiness]) -> list[int]:
    """Positions of what a name stands for: one measure, or all of a criterion by whichever of its names."""
    names, row = [one.name for one in measures], CRITERIA.get(name)
    if name in names:
        return [names.index(name)]
    if row is not None and {*row.measures} <= {*names}:
        return [names.index(measure) for measure in row.measures]
    families = {name} if row is None else {name, row.name}
    return [j for j, one in enumerate(measures) if one.family in families]


def position(name: str, measures: Sequence[Measure]) -> int:
    """Position of the one measure that a name stands for."""
    places = positions(name, measures)
    if len(places) != 1:
        raise KeyError(name)
    return places[0]


def _check_expression(text: str) -> None:
    """Refuse the name of a criterion, right or wrong, where an expression is expected."""
    if text in CRITERIA:
        raise HappinessError(
            f"{text!r} is a criterion, which may have several measures.",
            f"Pass it as it is: happiness={text!r}.",
        )
    if is_name(text):
        near = nearest(text, CRITERIA, 0.6)
        raise HappinessError(
            f"There is no criterion called {text!r}.",
            f"Did you mean {near[0]!r}?"
            if near
            else f"The criteria are {', '.join(row.name for row in ROWS)}. {GRAMMAR}",
        )


# ---------------------------------------------------------------------------------------------------------
# Files


def function_to_json(happiness: Happiness) -> dict[str, Any] | None:
    """A criterion or an expression as data; None where there is a Python function of the user's."""
    content: dict[str, Any] = {}
    match happiness.function:
        case Decided(decisions=decisions):
            content["decided"] = plain(list(decisions), "decision")
        case Expression(text):
            content["expression"] = text
        case Labelled(label, same):
            content["truth"] = [*plain([label], "class"), same]
        case Correct():
            pass
        case Loses(parts):
            content["loses"] = [[asdict(part.measure), function_to_json(part)] for part in parts]
        case _:
            return None
    if isinstance(happiness, Counted):
        content["counted"] = True
    if happiness.rate and not is_rate(happiness.function):
        content["rate"] = True
    match happiness.among:
        case Labelled(label, same):
            content["label"] = [*plain([label], "class"), same]
        case Expression(text):
            content["among"] = text
        case Decided(decisions=decisions):
            content["among_decided"] = plain(list(decisions), "decision")
        case None:
            pass
        case _:
            return None
    return content


def function_from_json(
    measure: Measure, content: dict[str, Any] | None, given: Mapping[str, Happiness]
) -> Happiness:
    """The measure with what :func:`function_to_json` wrote of it; a Python function is ``given`` by name."""
    if content is None:
        if measure.name not in given:
            raise PolicyFileError(
                f"The happiness {measure.name!r} is a Python function, which a file cannot hold.",
                f"Pass happiness= with functions for {measure.name!r} and all others that are.",
            )
        return given[measure.name]
    function: Any = Correct(measure.wanted)
    if "loses" in content:
        parts = content["loses"]
        function = Loses(tuple(function_from_json(read_measure(one), own, given) for one, own in parts))
    elif "decided" in content:
        function = Decided(tuple(content["decided"]), measure.wanted, measure.fall_harms)
    elif "expression" in content:
        function = Expression(content["expression"])
    elif "truth" in content:
        function = Labelled(*content["truth"])
    among: Any = Labelled(*content["label"]) if "label" in content else None
    if "among_decided" in content:
        among = Decided(tuple(content["among_decided"]))
    if "among" in content:
        among = Expression(content["among"])
    rest = {name: getattr(measure, name) for name in ("name", "unit", "bounds", "family")}
    kind = Counted if content.get("counted") is True else Happiness
    return kind(function, among, rate=content.get("rate"), **rest)


def check_classes(happiness: Happiness, decisions: Sequence[Any], labels: Sequence[Any]) -> None:
    """Refuse a file whose criterion speaks of a class that is none."""
    for one in happiness.compared:
        check_classes(one, decisions, labels)
    for part in (happiness.function, happiness.among):
        spoken = {*part.decisions} - {*decisions} if isinstance(part, Decided) else set()
        if spoken or (isinstance(part, Labelled) and part.label not in labels):
            raise refused(f"the happiness {happiness.name!r} speaks of a class that is none")
