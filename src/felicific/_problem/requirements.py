"""Requirements on group means, as a user writes them and bound to sums: gaps, floors and budgets.

A requirement of a new kind is a class here and nothing elsewhere: what the program, its check, the frontier and the
messages need to know of one is asked through :class:`Requirement` and :class:`Row`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from felicific._problem.fractions import Fraction, FractionGap, FractionMean, today_mean
from felicific._problem.happiness import Component, Happiness, measured
from felicific._problem.rows import Excess, ModelRow, Requirement, Row, ScaledMeans, Sums
from felicific._problem.unions import Union, unions_of
from felicific._typing import Floats
from felicific.exceptions import ConstraintError


@dataclass(frozen=True)
class Gap(Requirement):
    """Group means within a width of each other.

    Parameters
    ----------
    happiness : str, function or Happiness
        A component by name, a criterion (each of its components then), or a happiness of its own.
    at_most : number
        The largest mean minus the smallest, in the component's unit. Infinite asks for nothing.

    Notes
    -----
    ``gap=x`` is short for such a gap of every component. Among the ``constraints``, a gap counts beside what ``gap=``
    says, and the smallest wins: with ``gap=None`` it stands alone.

    Examples
    --------
    >>> from felicific import Gap, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> policy = solve(people, proba="score", y="repaid", sensitive_features="sex", happiness="decision",
    ...                gap=None, constraints=[Gap("decision", at_most=0.1)], random_state=0)
    >>> round(policy.gap, 9), round(policy.loss, 9)
    (0.1, 0.075)
    """

    happiness: Any
    at_most: float
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", _width(self.at_most, f"gap of {_gap_name(self.happiness)!r}"))

    def rows(self, sums: Sums) -> list[Row]:
        """One row for each component that it speaks of."""
        if math.isinf(self.at_most):
            return []
        return [
            _gap_row(
                sums,
                j,
                self.at_most,
                f"gap of {sums.components[j].name!r} at most {sums.components[j].quantity(self.at_most)}",
            )
            for j in self.components(sums.components)
        ]

    def opened(self) -> Gap:
        """A gap that asks for nothing, and still names its happiness."""
        return replace(self, at_most=math.inf)

    def components(self, components: tuple[Component, ...]) -> list[int]:
        """Positions of the components that it speaks of."""
        if isinstance(self.happiness, Component):
            return [components.index(self.happiness)]
        name = _gap_name(self.happiness)
        positions = [
            j for j, component in enumerate(components) if name in (component.name, component.family)
        ]
        if not positions:
            raise ConstraintError(
                f"A gap is set for {name!r}, which is no component.",
                f"The components are {', '.join(repr(component.name) for component in components)}.",
            )
        return positions


def _gap_row(sums: Sums, j: int, width: float, words: str) -> Row:
    name = sums.components[j].name
    if not sums.components[j].over:
        return GapRow(j, width, words, name)
    return FractionGap(Fraction.of(sums, j, unions_of(sums.groups, ())), words, name, width)


@dataclass(frozen=True)
class Floor(Requirement):
    """No group's mean happiness below a level.

    Parameters
    ----------
    happiness : str, function or Happiness
        A component by name, or a happiness of its own.
    at_least : number or "today"
        The level, in the component's unit; ``"today"`` is each group's mean under the model's own decisions.
    groups : sequence, optional
        The groups that are protected; by default all.

    Examples
    --------
    Nobody approved less often than today:

    >>> from felicific import Floor, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> policy = solve(people, proba="score", y="repaid", sensitive_features="sex", happiness="decision",
    ...                gap=0.0, constraints=[Floor("decision", at_least="today")], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}
    {'f': 0.75, 'm': 0.75}
    """

    happiness: Any
    at_least: float | Literal["today"]
    groups: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.at_least, str) or self.at_least != "today":
            _number(self.at_least, "A floor's at_least", "Give a finite number, or 'today'.")
        if self.groups is not None:
            listed = isinstance(self.groups, Iterable) and not isinstance(self.groups, str)
            if not listed or not tuple(self.groups):
                raise ConstraintError(f"A floor's groups are {self.groups!r}.", "Pass a list of groups.")
            object.__setattr__(self, "groups", tuple(self.groups))

    def rows(self, sums: Sums) -> list[Row]:
        """One row for each group that is protected."""
        j = component_of(sums, self.happiness)
        component, origin = sums.components[j], float(sums.origin[j])
        rows: list[Row] = []
        for group in sums.groups if self.groups is None else self.groups:
            if group not in sums.groups:
                raise ConstraintError(
                    f"A floor protects the group {group!r}, which does not occur.",
                    f"The groups are {', '.join(map(repr, sums.groups))}.",
                )
            z = sums.groups.index(group)
            if self.at_least == "today":
                level, note = today_mean(sums, z, j), " (today's)"
            else:
                _refuse_loose(self.at_least, None, component, "A floor")
                level, note = float(self.at_least) - origin, ""
            least = component.quantity(level + origin)
            words = f"mean {component.name!r} of group {group!r} at least {least}{note}"
            rows.append(_mean_row(sums, j, z, level, math.inf, words))
        return rows


@dataclass(frozen=True)
class Budget(Requirement):
    """The happiness of all people together within limits.

    Parameters
    ----------
    happiness : str, function or Happiness
        A component by name, or a happiness of its own.
    at_most, at_least, exactly : number, optional
        The limits, in the component's unit.
    per : "person" or number of people
        What the limits are counted for: the mean per person, or the total for that many people. With an
        ``among``, people are those who are counted.

    Examples
    --------
    Four approvals for every eight people:

    >>> from felicific import Budget, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> policy = solve(people, proba="score", y="repaid", sensitive_features="sex", happiness="decision",
    ...                gap=0.0, constraints=[Budget("decision", at_most=4, per=8)], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}
    {'f': 0.5, 'm': 0.5}
    """

    happiness: Any
    at_most: float | None = None
    at_least: float | None = None
    exactly: float | None = None
    per: float | Literal["person"] = "person"

    def __post_init__(self) -> None:
        sides = {"at_most": self.at_most, "at_least": self.at_least, "exactly": self.exactly}
        given = {name: side for name, side in sides.items() if side is not None}
        for name, side in given.items():
            _number(side, f"A budget's {name}", "Give a finite number.")
        if not given or ("exactly" in given and len(given) > 1):
            raise ConstraintError(
                "A budget needs limits." if not given else "A budget says exactly and another limit.",
                "Give at_most, at_least or both; or exactly alone.",
            )
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ConstraintError(
                f"A budget asks for at least {self.at_least} and at most {self.at_most}.", "Swap the two."
            )
        if self.per != "person":
            people = _number(self.per, "A budget's per", "Say 'person', or a number of people.")
            if people <= 0:
                raise ConstraintError(
                    f"A budget is per {people:g} people.", "Give a positive number of people."
                )

    def rows(self, sums: Sums) -> list[Row]:
        """One row, over all people together."""
        j = component_of(sums, self.happiness)
        component, origin = sums.components[j], float(sums.origin[j])
        people = 1.0 if self.per == "person" else float(self.per)
        per = "per person" if self.per == "person" else f"for {people:,.6g} people"
        lower, upper = self.at_least, self.at_most
        _refuse_loose(lower and lower / people, upper and upper / people, component, "A budget")
        words = []
        if self.exactly is not None:
            lower = upper = self.exactly
            words = [f"exactly {component.quantity(self.exactly)}"]
        else:
            words += [f"at least {component.quantity(lower)}"] if lower is not None else []
            words += [f"at most {component.quantity(upper)}"] if upper is not None else []
        return [
            _mean_row(
                sums,
                j,
                None,
                -math.inf if lower is None else lower / people - origin,
                math.inf if upper is None else upper / people - origin,
                f"{component.name!r} of all people together {' and '.join(words)} {per}",
                people,
            )
        ]


def _mean_row(
    sums: Sums, j: int, z: int | None, lower: float, upper: float, words: str, people: float = 1.0
) -> Row:
    if not sums.components[j].over:
        return MeanRow(j, z, lower, upper, words, people)
    everybody = Union("all people", tuple(range(len(sums.groups))))
    who = everybody if z is None else Union(sums.groups[z], (z,))
    origin = float(sums.origin[j])
    return FractionMean(
        Fraction.of(sums, j, [who]), words, words, lower + origin, upper + origin, people=people
    )


def _refuse_loose(lower: float | None, upper: float | None, component: Component, what: str) -> None:
    """Refuse limits beyond what values can be, which every policy keeps."""
    low, high = component.bounds or (-math.inf, math.inf)
    slack = 1e-9 * component.widest
    if (lower is not None and lower < low - slack) or (upper is not None and upper > high + slack):
        raise ConstraintError(
            f"{what} of {component.name!r} asks for nothing: its values lie between {low:g} and {high:g} anyway.",
            "Give a limit between the two, or leave it out.",
        )


def _number(value: Any, what: str, remedy: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise ConstraintError(f"{what} is {value!r}, not a finite number.", remedy)
    return number


def _width(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or number < 0 or isinstance(value, str | bool):
        raise ConstraintError(
            f"The {what} is {value!r}.", "Give a number of 0 or more, in the unit of happiness."
        )
    return number


# ---------------------------------------------------------------------------------------------------------
# Bound to sums


@dataclass(frozen=True)
class GapRow:
    r"""Group means of component ``j`` within ``width`` of each other.

    Written with a free level :math:`\mathrm{lo}`, so that rows grow with the groups and not with their pairs:
    every group's mean lies between :math:`\mathrm{lo}` and :math:`\mathrm{lo} + \mathrm{width}`.
    """

    j: int
    width: float
    words: str
    name: str
    levels: ClassVar[tuple[tuple[float, float], ...]] = ((-math.inf, math.inf),)

    def moved(self, width: float) -> GapRow:
        """With another width."""
        return replace(self, width=width)

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """One row for each group; two where one of its sides gives way."""
        # Centred on the middle of the groups, the right-hand sides are no larger than the gap itself.
        constants = means.constants[:, self.j] - means.constants[:, self.j].mean()
        scale = float(means.scales[self.j])
        width = self.width / scale
        on_ray = excess is not None and excess.on_ray
        written = []
        for constant, shares in zip(constants.tolist(), np.eye(len(constants)), strict=True):
            columns, numbers = means.mean(self.j, shares)
            columns, numbers = np.append(columns, level), np.append(numbers, -1.0)
            lower, upper = -constant, (0.0 if on_ray else width) - constant
            if excess is None:
                written.append(ModelRow(columns, numbers, lower, upper, shares, scale))
            else:
                more = np.append(columns, excess.column)
                minus = np.append(numbers, -width if on_ray else -1.0)
                written.append(ModelRow(columns, numbers, lower, math.inf, shares, scale))
                written.append(ModelRow(more, minus, -math.inf, upper, shares, scale))
        return written

    def met(self, means: Floats, counted: Floats, slack: float) -> bool:
        """Whether the largest and the smallest mean are close enough."""
        # Groups far apart carry that distance's rounding error.
        return bool(means.max() - means.min() <= self.width + slack + 1e-12 * self.width)

    def relaxed(self, extra: float) -> GapRow:
        """A wider gap."""
        return replace(self, width=self.width + extra)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the gap."""
        # The rows share a free level, so their duals sum to zero: the upper sides carry the price.
        weights = (max(-dual, 0.0) / row.scale for row, dual in zip(written, duals, strict=True))
        return sum(weights, 0.0) * unit


@dataclass(frozen=True)
class MeanRow:
    """Mean of component ``j`` in group ``z`` (None: all people together) between two sides.

    The sides are relative to the component's origin, as the moments are, and per person; ``people`` is how many the
    numbers that were asked for were counted for.
    """

    j: int
    z: int | None
    lower: float
    upper: float
    words: str
    people: float = 1.0
    levels: ClassVar[tuple[tuple[float, float], ...]] = ()
    width: ClassVar[None] = None

    @property
    def name(self) -> str:
        """Its words: requirements that read alike share a price."""
        return self.words

    def moved(self, width: float) -> MeanRow:
        """It stays where it is."""
        return self

    def _shares(self, counted: Floats) -> Floats:
        """How much of each group's mean it holds."""
        return np.asarray(counted / counted.sum() if self.z is None else np.eye(len(counted))[self.z])

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """One row; one for each side where they give way."""
        shares = self._shares(means.counted[:, self.j])
        columns, numbers = means.mean(self.j, shares)
        constant, scale = float(shares @ means.constants[:, self.j]), float(means.scales[self.j])
        lower, upper = self.lower / scale - constant, self.upper / scale - constant
        # A row of its own stakes: those of other groups may be larger by orders of magnitude.
        noise = float(means.rounding[self.j]) / scale
        sides_seen = [abs(side) for side in (lower, upper) if math.isfinite(side) and abs(side) > noise]
        own = float(np.abs(numbers).max()) if len(numbers) else max(sides_seen, default=1.0)
        numbers, lower, upper, scale = numbers / own, lower / own, upper / own, scale * own
        if excess is None or excess.on_ray:
            return [ModelRow(columns, numbers, lower, upper, shares, scale)]
        more = np.append(columns, excess.column)
        sides = [(1.0, lower, math.inf), (-1.0, -math.inf, upper)]
        return [
            ModelRow(more, np.append(numbers, sign), low, high, shares, scale)
            for sign, low, high in sides
            if math.isfinite(low) or math.isfinite(high)
        ]

    def met(self, means: Floats, counted: Floats, slack: float) -> bool:
        """Whether the mean lies between the sides."""
        mean = float(means @ counted / counted.sum()) if self.z is None else float(means[self.z])
        # A level far away from the happiness it limits carries that distance's rounding error.
        slack += 1e-14 * max(
            (abs(side) for side in (self.lower, self.upper, mean) if math.isfinite(side)), default=0.0
        )
        return self.lower - slack <= mean <= self.upper + slack

    def relaxed(self, extra: float) -> MeanRow:
        """A lower floor and a higher ceiling."""
        return replace(self, lower=self.lower - extra, upper=self.upper + extra)

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit of the level, as it was counted when it was asked for."""
        weights = (abs(dual) / row.scale for row, dual in zip(written, duals, strict=True))
        return sum(weights, 0.0) * unit / self.people


# ---------------------------------------------------------------------------------------------------------
# From what a user writes


def requirements_of(gap: Any, constraints: Any, components: tuple[Component, ...]) -> tuple[Requirement, ...]:
    """Every requirement as an object: one gap for each component that has one, then the constraints as they stand.

    Parameters
    ----------
    gap : number, dict of component or criterion to number, or None
        A number is the gap of every component; None asks for nothing.
    constraints : sequence of Requirement, or None
        Further requirements. Of several gaps of a component the smallest counts.
    components : tuple of Component
        What is measured.
    """
    widths = resolve_gap(gap, components)
    listed = check_constraints(constraints)
    widths = _smallest(widths, _gaps_among(listed), components)
    gaps = (
        Gap(component, width)
        for component, width in zip(components, widths, strict=True)
        if math.isfinite(width)
    )
    return (*gaps, *(other for other in listed if not isinstance(other, Gap)))


def resolve_gap(
    gap: Any, components: tuple[Component, ...], constraints: Sequence[Requirement] = ()
) -> list[float]:
    """Allowed gap of every component; infinite where nothing was asked. Gaps among the constraints count too."""
    widths = _smallest([math.inf] * len(components), _gaps_written(gap, components), components)
    return _smallest(widths, _gaps_among(constraints), components)


def gaps_asked(requirements: Sequence[Requirement], components: tuple[Component, ...]) -> dict[str, float]:
    """Allowed gaps by component, of those that have one."""
    pairs = zip(components, resolve_gap(None, components, requirements), strict=True)
    return {component.name: width for component, width in pairs if math.isfinite(width)}


def check_one_unit(number: float, what: str, components: Sequence[Component]) -> None:
    """Refuse one number, but for 0, of components in different units; what has no unit is not known to differ.

    What lies between 0 and 1 is a share, whatever it is called.
    """
    counted = {
        component.unit or ("share" if component.bounds == (0.0, 1.0) else "") for component in components
    }
    units = sorted(counted - {""})
    if len(units) > 1 and 0 < number < math.inf:
        named = ", ".join(f"{component.name!r}: ..." for component in components)
        raise ConstraintError(
            f"The {what} is {number!r}, one number for components that are counted in {' and in '.join(units)}.",
            f"Give each its own: {what}={{{named}}}.",
        )


def check_gaps(gap: Any, constraints: Iterable[Requirement], components: tuple[Component, ...]) -> None:
    """Refuse gaps that cannot mean anything: one number in several units, or more than values can be apart."""
    if gap is not None and not isinstance(gap, Mapping):
        check_one_unit(_width(gap, "gap"), "gap", [components[j] for j in measured(components)])
    for asked in (*_gaps_written(gap, components), *_gaps_among(constraints)):
        for component in (components[j] for j in asked.components(components)):
            if component.widest * (1 + 1e-9) < asked.at_most < math.inf:
                widest, points = component.quantity(component.widest), " (five percentage points are 0.05)"
                raise ConstraintError(
                    f"The gap of {component.name!r} is to be at most {component.quantity(asked.at_most)}, and no gap "
                    f"of it is larger than {widest}, by its bounds.",
                    f"Give a number from 0 to {widest}{points if component.bounds == (0.0, 1.0) else ''}.",
                )


def _gaps_written(gap: Any, components: tuple[Component, ...]) -> Iterator[Gap]:
    """The gaps that the shorthand stands for."""
    if isinstance(gap, Mapping):
        for name, width in gap.items():
            yield Gap(name, width)
    elif gap is not None:
        width = _width(gap, "gap")
        for j in measured(components):
            yield Gap(components[j], width)


def _gaps_among(constraints: Iterable[Requirement]) -> Iterator[Gap]:
    return (constraint for constraint in constraints if isinstance(constraint, Gap))


def _smallest(widths: list[float], gaps: Iterable[Gap], components: tuple[Component, ...]) -> list[float]:
    """Widths of all components, no larger than any of these gaps allows."""
    widths = list(widths)
    for gap in gaps:
        for j in gap.components(components):
            widths[j] = min(widths[j], gap.at_most)
    return widths


def check_constraints(constraints: Any) -> tuple[Requirement, ...]:
    """Insist on a list of requirements."""
    if constraints is None:
        return ()
    if not isinstance(constraints, Iterable) or isinstance(constraints, str):
        raise ConstraintError(
            f"The constraints are {constraints!r}.", "Pass a list of Gap(...), Floor(...) or Budget(...)."
        )
    listed = tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, Requirement):
            raise ConstraintError(
                f"{constraint!r} is not a constraint.", "Use Gap(...), Floor(...) or Budget(...)."
            )
    return listed


def component_of(sums: Sums, happiness: Any) -> int:
    """Position of the component that a constraint speaks of."""
    name = constraint_name(happiness)
    names = [component.name for component in sums.components]
    if name not in names:
        raise ConstraintError(
            f"A constraint speaks of {name!r}, which is no component of these moments.",
            f"The components are {', '.join(map(repr, names))}.",
        )
    return names.index(name)


def constraint_name(happiness: Any) -> str:
    """Name of the component that a constraint speaks of."""
    if isinstance(happiness, str):
        return happiness
    return str((happiness if isinstance(happiness, Happiness) else Happiness(happiness)).name)


def _gap_name(happiness: Any) -> Any:
    """Name that a gap goes by; what is no happiness stays as it is, to be named in an error."""
    if isinstance(happiness, Component):
        return happiness.name
    named = isinstance(happiness, Happiness) or callable(happiness)
    return constraint_name(happiness) if named else happiness
