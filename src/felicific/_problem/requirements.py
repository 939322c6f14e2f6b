"""Requirements on group means: gaps, floors and budgets are all rows with two sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import Component, Happiness
from felicific.exceptions import ConstraintError


class Sums(Protocol):
    """What a requirement sees of the people: sums over them, as moments have them."""

    @property
    def components(self) -> tuple[Component, ...]:
        """What is measured."""

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups."""

    @property
    def origin(self) -> NDArray[np.float64]:
        """A typical value of every component; sums are relative to it."""

    @property
    def counted(self) -> NDArray[np.float64]:
        """Weight inside ``among``, of shape (groups, components)."""

    @property
    def today_value(self) -> NDArray[np.float64]:
        """Happiness of today's decisions, of shape (groups, signals, components)."""


@dataclass(frozen=True)
class Floor:
    """No group's mean happiness below a level.

    Parameters
    ----------
    happiness : str, function or Happiness
        A component by name, or a happiness of its own.
    at_least : number or "today"
        The level, in the component's unit; ``"today"`` is each group's mean under the model's own decisions.
    groups : sequence, optional
        The groups that are protected; by default all.
    """

    happiness: Any
    at_least: float | str
    groups: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.at_least, str) or self.at_least != "today":
            _number(self.at_least, "A floor's at_least", "Give a finite number, or 'today'.")
        if self.groups is not None:
            listed = isinstance(self.groups, Iterable) and not isinstance(self.groups, str)
            if not listed or not tuple(self.groups):
                raise ConstraintError(f"A floor's groups are {self.groups!r}.", "Pass a list of groups.")
            object.__setattr__(self, "groups", tuple(self.groups))


@dataclass(frozen=True)
class Budget:
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
    """

    happiness: Any
    at_most: float | None = None
    at_least: float | None = None
    exactly: float | None = None
    per: str | float = "person"

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


def _number(value: Any, what: str, remedy: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise ConstraintError(f"{what} is {value!r}, not a finite number.", remedy)
    return number


@dataclass(frozen=True)
class GapRow:
    """Group means of component ``j`` within ``width`` of each other."""

    j: int
    width: float
    words: str


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


Row = GapRow | MeanRow


def resolve_gap(gap: Any, components: tuple[Component, ...]) -> list[float]:
    """Allowed gap of every component; infinite where nothing was asked."""
    if gap is None:
        return [math.inf] * len(components)
    if not isinstance(gap, Mapping):
        return [_width(gap, "gap")] * len(components)
    widths = [math.inf] * len(components)
    for name, width in gap.items():
        allowed = _width(width, f"gap of {name!r}")
        found = [j for j, component in enumerate(components) if name in (component.name, component.family)]
        if not found:
            raise ConstraintError(
                f"A gap is set for {name!r}, which is no component.",
                f"The components are {', '.join(repr(component.name) for component in components)}.",
            )
        for j in found:
            widths[j] = min(widths[j], allowed)
    return widths


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


def resolve_rows(moments: Sums, gap: Any, constraints: Iterable[Floor | Budget] | None) -> list[Row]:
    """Every requirement as a row over group means, with the words that describe it."""
    rows: list[Row] = []
    for j, width in enumerate(resolve_gap(gap, moments.components)):
        if math.isfinite(width):
            component = moments.components[j]
            words = f"gap of {component.name!r} at most {component.quantity(width)}"
            rows.append(GapRow(j, width, words))
    for constraint in check_constraints(constraints):
        if isinstance(constraint, Floor):
            rows += _floor_rows(moments, constraint)
        else:
            rows.append(_budget_row(moments, constraint))
    return rows


def check_constraints(constraints: Any) -> tuple[Floor | Budget, ...]:
    """Insist on a list of floors and budgets."""
    if constraints is None:
        return ()
    if not isinstance(constraints, Iterable) or isinstance(constraints, str):
        raise ConstraintError(
            f"The constraints are {constraints!r}.", "Pass a list of Floor(...) or Budget(...)."
        )
    listed = tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, Floor | Budget):
            raise ConstraintError(f"{constraint!r} is not a constraint.", "Use Floor(...) or Budget(...).")
    return listed


def component_of(moments: Sums, happiness: Any) -> int:
    """Position of the component that a constraint speaks of."""
    name = constraint_name(happiness)
    names = [component.name for component in moments.components]
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


def _floor_rows(moments: Sums, floor: Floor) -> list[Row]:
    j = component_of(moments, floor.happiness)
    component = moments.components[j]
    protected = moments.groups if floor.groups is None else floor.groups
    rows: list[Row] = []
    for group in protected:
        if group not in moments.groups:
            raise ConstraintError(
                f"A floor protects the group {group!r}, which does not occur.",
                f"The groups are {', '.join(map(repr, moments.groups))}.",
            )
        z = moments.groups.index(group)
        origin = float(moments.origin[j])
        if floor.at_least == "today":
            level, note = float(moments.today_value[z, :, j].sum() / moments.counted[z, j]), " (today's)"
        else:
            level, note = float(floor.at_least) - origin, ""
        words = (
            f"mean {component.name!r} of group {group!r} at least {component.quantity(level + origin)}{note}"
        )
        rows.append(MeanRow(j, z, level, math.inf, words))
    return rows


def _budget_row(moments: Sums, budget: Budget) -> Row:
    j = component_of(moments, budget.happiness)
    component = moments.components[j]
    people = 1.0 if budget.per == "person" else float(budget.per)
    per = "per person" if budget.per == "person" else f"for {people:,.6g} people"
    lower, upper = budget.at_least, budget.at_most
    words = []
    if budget.exactly is not None:
        lower = upper = budget.exactly
        words = [f"exactly {component.quantity(budget.exactly)}"]
    else:
        words += [f"at least {component.quantity(lower)}"] if lower is not None else []
        words += [f"at most {component.quantity(upper)}"] if upper is not None else []
    return MeanRow(
        j,
        None,
        -math.inf if lower is None else lower / people - float(moments.origin[j]),
        math.inf if upper is None else upper / people - float(moments.origin[j]),
        f"{component.name!r} of all people together {' and '.join(words)} {per}",
        people,
    )
