"""What is asked of amounts: happiness, loss, requirements and how far distributions may differ; read and checked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._amounts.losses import loss_of_amounts
from felicific._people.worth import Batch, evaluate
from felicific._problem.asked import check_constraints, check_gaps, check_one_unit, default_gap, requirements_of
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Component, Happiness, resolve_happiness
from felicific._problem.loss import Loss
from felicific._problem.requirements import Gap, check_width, constraint_name
from felicific._problem.rows import Requirement
from felicific._tables.memory import as_objects
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, HappinessError

#: The criterion that compares whole distributions of amounts.
PARITY = "distributional_parity"

#: A happiness is straight in the amount if it is off the line by no more than this share of its range.
STRAIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class AmountProblem:
    """What is asked of the amounts that people get.

    Attributes
    ----------
    happiness : tuple of Happiness
        The components that have means, those that only requirements speak of included.
    loss : Loss
        What an amount costs.
    requirements : tuple of Requirement
        What is required of means.
    parity : float, or None
        How far the distributions of groups may be apart at most, as the largest difference of the shares above any
        amount (the Kolmogorov-Smirnov distance); infinite where it is only measured, None where it is not.
    allowed : Allowed
        What amounts there may be.
    closed : tuple of str
        The components whose gaps a number in ``gap=`` speaks of.
    see_group : bool
        Whether deciding may look at the group.
    """

    happiness: tuple[Happiness, ...]
    loss: Loss
    requirements: tuple[Requirement, ...]
    parity: float | None
    allowed: Allowed
    closed: tuple[str, ...]
    see_group: bool = True

    @classmethod
    def of(
        cls,
        happiness: Any,
        *,
        loss: Any = "squared",
        gap: Any = None,
        constraints: Any = (),
        decisions: Any = None,
        see_group: bool = True,
    ) -> AmountProblem:
        """Read what the user wrote."""
        allowed, own, measured = Allowed.of(decisions), *_components(happiness)
        listed = check_constraints(constraints)
        gap = default_gap(gap, listed)
        parity = math.inf if measured else None
        others = []
        for one in listed:
            if one.happiness == PARITY if isinstance(one.happiness, str) else False:
                parity = min(math.inf if parity is None else parity, _parity_of(one))
            else:
                others.append(_checked(one))
        asked: Any = gap
        if isinstance(gap, Mapping):
            asked = {name: width for name, width in gap.items() if name != PARITY}
            if PARITY in gap:
                parity = min(math.inf if parity is None else parity, check_width(gap[PARITY], f"gap of {PARITY!r}"))
        elif gap is not None:
            if measured:
                assert parity is not None, "it is measured"
                parity = min(parity, check_width(gap, "gap"))
            asked = {str(component.name): gap for component in own}
        extra = _spoken_of(others, own)
        names = tuple(str(component.name) for component in own)
        made = cls(own + extra, loss_of_amounts(loss), (), parity, allowed, names, see_group)
        components = made.components
        if parity is not None and math.isfinite(parity) and parity > 1:
            raise ConstraintError(
                f"The gap of {PARITY!r} is to be at most {parity:g}, and it is a difference of shares, at most 1.",
                "Give a number from 0 to 1 (five percentage points are 0.05).",
            )
        check_gaps(asked, others, components)
        if asked is not gap and own and not isinstance(gap, Mapping):
            shares = (Component(PARITY, "share", PARITY, False, (0.0, 1.0)),) if measured else ()
            check_one_unit(gap, "gap", (*components[: len(own)], *shares))
        return replace(made, requirements=requirements_of(asked, others, components))

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What policies and files remember of the happiness."""
        return tuple(
            replace(part.component, aside=str(part.name) not in self.closed) for part in self.happiness
        )

    @property
    def distance(self) -> float | None:
        """How far distributions may be apart; None where nothing was asked."""
        return None if self.parity is None or math.isinf(self.parity) else self.parity

    @property
    def of_people(self) -> str:
        """Which component differs between people who get the same, so that amounts alone do not tell; else nothing."""
        for part in self.happiness:
            if part.asks & {"x", "y", "today"}:
                return str(part.name)
        return ""

    @property
    def looks_at_x(self) -> bool:
        """Whether something looks at the people themselves."""
        return "x" in self.loss.asks or any("x" in part.asks for part in self.happiness)

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared error."""
        return self.loss.name == "squared"

    @property
    def convex(self) -> bool:
        """Whether the loss is known to be convex in the amount, so that a mean costs no more than a lottery."""
        return self.loss.name in ("squared", "absolute") or self.loss.name.startswith("quantile:")

    def with_gaps(self, gap: Any) -> AmountProblem:
        """The same with other gaps; ``gap`` is one number or a dict, as the user writes it."""
        kept = tuple(one for one in self.requirements if not one.is_plain_gap)
        parity = self.parity
        if isinstance(gap, Mapping):
            named = {name: width for name, width in gap.items() if name != PARITY}
            if parity is not None:
                parity = check_width(gap[PARITY], "gap") if PARITY in gap else math.inf
        else:
            width = check_width(gap, "gap")
            named = dict.fromkeys(self.closed, width)
            parity = None if parity is None else width
        check_gaps(named, (), self.components)
        return replace(self, requirements=requirements_of(named, kept, self.components), parity=parity)

    def values(self, amounts: Floats, groups: tuple[Any, ...]) -> Floats:
        """Happiness of every amount in every group, where only these matter: (groups, components, amounts)."""
        names = as_objects(groups)
        batch = Batch(None, None, None, names, np.arange(len(groups)))
        values = np.empty((len(groups), len(self.happiness), len(amounts)))
        for j, part in enumerate(self.happiness):
            for k, amount in enumerate(amounts.tolist()):
                values[:, j, k] = evaluate(part.function, f"The happiness {part.name!r}", batch, amount)
        return values

    def straight(self, grid: Floats, groups: tuple[Any, ...]) -> bool:
        """Whether all happiness is a straight line of the amount, at levels and between them."""
        if not self.happiness:
            return True
        between = np.sort(np.concatenate([grid, (grid[1:] + 2 * grid[:-1]) / 3]))
        values = self.values(between, groups)
        slope = (values[:, :, -1:] - values[:, :, :1]) / (between[-1] - between[0])
        line = values[:, :, :1] + slope * (between - between[0])
        reach = np.ptp(values, axis=2, keepdims=True)
        return bool((np.abs(values - line) <= STRAIGHT * np.maximum(reach, 1e-300)).all())


def _components(happiness: Any) -> tuple[tuple[Happiness, ...], bool]:
    """The components that have means, and whether distributions are compared."""
    if happiness is None:
        raise HappinessError(
            "No happiness was given.",
            f"Pass happiness=: {PARITY!r}, 'decision' for the mean amount, or a function of decision, x, y and group.",
        )
    if isinstance(happiness, Mapping):
        items: Iterable[tuple[str | None, Any]] = [(str(name), item) for name, item in happiness.items()]
    else:
        listed = happiness if isinstance(happiness, list | tuple) else [happiness]
        items = [(None, item) for item in listed]
    kept: dict[str, Any] | list[Any] = {} if isinstance(happiness, Mapping) else []
    measured = False
    for name, item in items:
        if isinstance(item, str) and item.strip() == PARITY:
            measured = True
            continue
        if isinstance(item, str) and item in CRITERIA:
            raise HappinessError(
                f"{item!r} counts people who get one decision, and hardly two people get the same amount.",
                f"Use {PARITY!r}, which compares whole distributions, 'decision' for the mean amount, or a share such "
                "as 'decision >= 40'.",
            )
        if isinstance(kept, dict):
            kept[str(name)] = item
        else:
            kept.append(item)
    own = resolve_happiness(kept, [0.0, 0.5]) if kept or not measured else ()
    for part in own:
        if part.over:
            raise HappinessError(
                f"The happiness {part.name!r} is a fraction: its `among` looks at the decision.",
                "Amounts have no fractions: ask for people whatever their amount, or use FairClassifier(decisions=...).",
            )
    return own, measured


def _parity_of(one: Requirement) -> float:
    if isinstance(one, Gap) and one.is_plain_gap:
        return float(one.at_most)
    raise ConstraintError(
        f"{one!r} speaks of distributions, which have no means to compare in parts.",
        f"Use Gap({PARITY!r}, at_most=...) of all groups.",
    )


def _checked(one: Requirement) -> Requirement:
    """Refuse what speaks of decisions, not of amounts."""
    if one.of_persons or one.happiness is None or type(one).__name__ == "Losers":
        raise ConstraintError(
            f"{type(one).__name__} speaks of decisions that are drawn or compared one by one, not of amounts.",
            "Use Gap, Ratio, Floor or Budget; Floor('decision', 'today') keeps every group's mean amount.",
        )
    if isinstance(one.happiness, str) and one.happiness in CRITERIA:
        _components(one.happiness)
    return one


def _spoken_of(constraints: list[Requirement], own: tuple[Happiness, ...]) -> tuple[Happiness, ...]:
    """Components that only constraints speak of."""
    known = {str(part.name) for part in own}
    extra: dict[str, Happiness] = {}
    for one in constraints:
        name = constraint_name(one.happiness)
        if name in known or name in extra or isinstance(one.happiness, Component):
            continue
        part = one.happiness if isinstance(one.happiness, Happiness) else Happiness(one.happiness)
        extra[name] = part
    return tuple(extra.values())
