"""What is asked of amounts: happiness, loss, requirements and how far distributions may differ; read once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._people.user_functions import Batch, evaluate
from felicific._problem.amounts import PARITY, AmountsProblem, amount_loss, amount_parts, parity_measure
from felicific._problem.constraints import (
    allowed_gaps,
    check_constraints,
    check_gaps,
    check_one_unit,
    happiness_of,
    requirements_of,
)
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Happiness, Measure
from felicific._problem.requirement import Requirement
from felicific._problem.requirements import Gap, check_width, constraint_name
from felicific._problem.unions import Whom
from felicific._problem.worse_off import WorseOff
from felicific._tables.memory import as_objects
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError, HappinessError

#: A happiness is straight in the amount if it is off the line by no more than this share of its range.
STRAIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class LinesProblem(AmountsProblem):
    """What is asked of the amounts that people are to get: a problem of amounts that also says which there may be.

    Attributes
    ----------
    allowed : Allowed
        What amounts there may be.
    monotone : bool
        Whether amounts by cells of the prediction may not fall as it rises.
    parity_whom : Whom
        Whose distributions are compared, where a gap of them was asked for.
    """

    allowed: Allowed = field(default_factory=Allowed)
    monotone: bool = True
    parity_whom: Whom = field(default_factory=Whom)

    @classmethod
    def of_lines(
        cls,
        happiness: Any,
        *,
        loss: Any = "squared",
        gap: Any = None,
        constraints: Any = (),
        decisions: Any = None,
        sees_group: bool = True,
    ) -> LinesProblem:
        """Read what the user wrote."""
        listed = check_constraints(constraints)
        allowed, (own, parity) = Allowed.of(decisions), amount_parts(happiness_of(happiness, listed))
        _refuse_fractions(own)
        others = [_checked(one) for one in listed if one.happiness != PARITY]
        widths = [_parity_of(one) for one in listed if one.happiness == PARITY]
        whoms = {one.whom for one in listed if isinstance(one, Gap) and one.happiness == PARITY}
        asked = dict(gap) if isinstance(gap, Mapping) else {}
        if gap is not None and not isinstance(gap, Mapping):
            asked = dict.fromkeys([*(str(part.name) for part in own), *([parity] if parity else [])], gap)
        parity = parity or (PARITY if widths or PARITY in asked else "")
        whoms |= {Gap(PARITY, 0.0).whom} if parity in asked else set()
        if len(whoms) > 1:
            raise ConstraintError(
                f"Several gaps of {PARITY!r} compare different people.", "Say one of them, with its groups."
            )
        widths += [check_width(asked[parity], f"gap of {parity!r}")] if parity in asked else []
        gaps = {name: width for name, width in asked.items() if name != parity}
        names = tuple(str(part.name) for part in own)
        nothing = np.empty(0, dtype=object)
        made = cls(
            nothing,
            nothing,
            own + _spoken_of(others, own),
            amount_loss(loss),
            sees_group=sees_group,
            closed=names,
            parity=parity,
            parity_gap=min(widths, default=math.inf),
            parity_whom=next(iter(whoms), Whom()),
            allowed=allowed,
        )
        if made.loss.name == "changes":
            raise DataError(
                "The loss 'changes' counts amounts that differ, and nearly all do.",
                "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression such as "
                "'abs(decision - baseline)'.",
            )
        measures = made.measures
        shares = (parity_measure(parity),) if parity else ()
        check_gaps(gaps, others, measures)
        check_gaps({parity: min(widths)} if widths else {}, (), shares)
        if gap is not None and not isinstance(gap, Mapping):
            check_one_unit(gap, "gap", (*measures[: len(own)], *shares))
        return replace(made, requirements=requirements_of(gaps, others, measures))

    @property
    def distance(self) -> float | None:
        """How far distributions may be apart; None where nothing was asked."""
        return self.parity_gap if self.parity and math.isfinite(self.parity_gap) else None

    @property
    def widths_asked(self) -> dict[str, float]:
        """The gaps that were asked for, that of distributions included."""
        far = {} if self.distance is None else {self.parity: self.distance}
        return far | allowed_gaps(self.requirements, self.measures)

    @property
    def of_people(self) -> str:
        """Which measure differs between people who get the same, so that amounts alone do not tell; else nothing."""
        for part in self.happiness:
            if part.asks & {"x", "y", "baseline"}:
                return str(part.name)
        return ""

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared error."""
        return self.loss.name == "squared"

    @property
    def convex(self) -> bool:
        """Whether the loss is known to be convex in the amount, so that a mean costs no more than a lottery."""
        return self.loss.name in ("squared", "absolute") or self.loss.name.startswith("quantile:")

    def with_widths(self, gap: Any) -> LinesProblem:
        """The same with other gaps: one number, or by measure, as the user writes it."""
        own: tuple[str, ...] = (*self.closed, *([self.parity] if self.parity else []))
        asked = dict(gap) if isinstance(gap, Mapping) else dict.fromkeys(own, check_width(gap, "gap"))
        width = asked.pop(self.parity, math.inf) if self.parity else math.inf
        check_gaps(asked, (), self.measures)
        check_gaps({self.parity: width}, (), (parity_measure(self.parity),)) if self.parity else None
        return replace(self.with_gaps(asked), parity_gap=float(width))

    def values(self, amounts: Floats, groups: tuple[Any, ...]) -> Floats:
        """Happiness of every amount in every group, where only these matter: (groups, measures, amounts)."""
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


def _refuse_fractions(own: tuple[Happiness, ...]) -> None:
    """Refuse a happiness whose ``among`` looks at the amount."""
    for part in own:
        if part.over:
            raise HappinessError(
                f"The happiness {part.name!r} is a fraction: its `among` looks at the decision.",
                "Count people whatever their amount, or use FairClassifier(decisions=...).",
            )


def _parity_of(one: Requirement) -> float:
    if isinstance(one, Gap) and one.is_plain_gap:
        return float(one.at_most)
    raise ConstraintError(
        f"{one!r} speaks of distributions, which have no means to compare in parts.",
        f"Use Gap({PARITY!r}, at_most=...) of all groups.",
    )


def _checked(one: Requirement) -> Requirement:
    """Refuse what speaks of decisions, not of amounts."""
    if one.of_persons or isinstance(one, WorseOff):
        raise ConstraintError(
            f"{type(one).__name__} speaks of decisions that are drawn or compared one by one, not of amounts.",
            "Use Gap, Ratio, Floor or Budget; Floor('decision', 'baseline') keeps every group's mean amount.",
        )
    if isinstance(one.happiness, str) and one.happiness in CRITERIA:
        amount_parts(one.happiness)
    return one


def _spoken_of(constraints: Sequence[Requirement], own: tuple[Happiness, ...]) -> tuple[Happiness, ...]:
    """Measures that only constraints speak of."""
    known = {str(part.name) for part in own}
    extra: dict[str, Happiness] = {}
    for one in constraints:
        name = constraint_name(one.happiness)
        if name in known or name in extra or isinstance(one.happiness, Measure):
            continue
        part = one.happiness if isinstance(one.happiness, Happiness) else Happiness(one.happiness)
        extra[name] = part
    return tuple(extra.values())
