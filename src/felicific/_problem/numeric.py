"""Numeric decisions: what is asked where the decision is an amount, such as hours of care, a limit or a rate.

There is no list of decisions then: everybody has an amount of their own, and what is measured is a function of it.
Criteria count decisions, so none of them can be asked for but distributional parity, which compares the distributions
of the amounts as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from felicific._problem.constraints import (
    allowed_gaps,
    check_constraints,
    check_gaps,
    check_one_unit,
    happiness_of,
    requirements_of,
)
from felicific._problem.criteria import CRITERIA
from felicific._problem.expressions import Expression
from felicific._problem.happiness import SHARE, Happiness, Measure, with_counted
from felicific._problem.loss import Loss
from felicific._problem.problem import Problem
from felicific._problem.requirement import Requirement
from felicific._problem.requirements import Gap, check_width, constraint_name
from felicific._problem.unions import Whom
from felicific._problem.worse_off import WorseOff
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError, HappinessError

#: The criterion that compares the distributions of amounts.
PARITY = "distributional_parity"

#: What the mean amount is called that every reader wants to know.
MEAN_AMOUNT = "mean amount"

#: Losses of amounts that have a name, as expressions; a quantile is told by its number.
_LOSSES = {"squared": "(decision - y)**2", "absolute": "abs(decision - y)", "changes": "decision != baseline"}
_QUANTILE = "quantile:"

#: Levels between which distributions are compared, where any amount will do.
LEVELS = 65

#: The most amounts that may be listed.
MOST = 4096

_REMEDY = "decisions= is None (any amount), a pair of bounds (low, high), or a list of the amounts."


@dataclass(frozen=True)
class Allowed:
    """What amounts there may be.

    Attributes
    ----------
    bounds : pair of float, or None
        The least and the largest; None for those of the calibrated predictions.
    listed : tuple of float, or None
        The only amounts there are.
    """

    bounds: tuple[float, float] | None = None
    listed: tuple[float, ...] | None = None

    @classmethod
    def of(cls, decisions: Any) -> Allowed:
        """Read what the user wrote."""
        if isinstance(decisions, Allowed):
            return decisions
        if decisions is None:
            return cls()
        try:
            values = None if isinstance(decisions, str | bytes) else list(decisions)
        except TypeError:
            values = None
        if values is None:
            raise DataError(f"decisions is {decisions!r}.", _REMEDY)
        numbers = [_number(value) for value in values]
        if isinstance(decisions, tuple) and len(numbers) == 2:
            if not numbers[0] < numbers[1]:
                raise DataError(f"The bounds are {decisions!r}.", "Give the smaller one first, (low, high).")
            return cls((numbers[0], numbers[1]))
        if len(numbers) <= 2:
            raise DataError(
                f"decisions={decisions!r} lists {len(numbers)} amounts, and a list needs more than two.",
                "Write a range as a tuple: decisions=(0, 40). " + _REMEDY,
            )
        ordered = sorted(numbers)
        repeated = [one for one, after in pairwise(ordered) if one == after]
        if repeated:
            raise DataError(f"decisions lists {repeated[0]:g} twice.", "List every amount once.")
        if len(ordered) > MOST:
            raise DataError(
                f"decisions lists {len(ordered):,} amounts.",
                f"List at most {MOST:,}, or give their bounds, ({ordered[0]:g}, {ordered[-1]:g}), and round.",
            )
        return cls((ordered[0], ordered[-1]), tuple(ordered))

    def within(self, calibrated: tuple[float, float]) -> Allowed:
        """With bounds, where none were given those of the calibrated predictions."""
        if self.bounds is not None:
            return self
        low, high = calibrated
        if not low < high:
            spread = max(abs(low), 1.0) * 0.5
            low, high = low - spread, high + spread
        return Allowed((low, high), self.listed)

    @property
    def grid(self) -> Floats:
        """Even levels from the least to the largest, or those that are listed."""
        return np.linspace(*self.ends, LEVELS) if self.listed is None else np.array(self.listed)

    @property
    def said(self) -> Any:
        """As a user writes it: decisions=."""
        return self.bounds if self.listed is None else list(self.listed)

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds, once they are known."""
        assert self.bounds is not None, "the bounds are known"
        return self.bounds


def _number(value: Any) -> float:
    """A finite number among decisions=."""
    wrong = isinstance(value, bool | np.bool_ | str | bytes | Sequence)
    try:
        number = math.nan if wrong else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"decisions holds {value!r}, which is no finite number.", _REMEDY)
    return number


@dataclass(frozen=True, eq=False)
class NumericProblem(Problem):
    """What is asked of amounts: a problem without a list of decisions or of labels.

    Attributes
    ----------
    parity : str
        What distributional parity is called, where it is asked for; else nothing.
    parity_gap : float
        The distance that is allowed between the distributions; infinite where none was said.
    parity_whom : Whom
        Whose distributions are compared, where a gap of them was asked for.
    allowed : Allowed
        What amounts there may be.
    monotone : bool
        Whether amounts by bins of the prediction may not fall as it rises.
    """

    parity: str = ""
    parity_gap: float = math.inf
    parity_whom: Whom = field(default_factory=Whom)
    allowed: Allowed = field(default_factory=Allowed)
    monotone: bool = True

    @classmethod
    def measuring(
        cls,
        happiness: Any,
        *,
        loss: Any = None,
        gap: Any = None,
        extra: Sequence[Happiness] = (),
        bounds: tuple[float, float] | None = None,
    ) -> NumericProblem:
        """Read what the user wrote of amounts that are decided already.

        Parameters
        ----------
        happiness, gap :
            As for an audit; criteria but distributional parity are refused.
        loss : optional
            See :func:`amount_loss`; by default squared, which is measured where there are labels.
        extra : sequence of Happiness
            What is measured and not asked for.
        bounds : (low, high), optional
            Between which all amounts are known to lie; so does the mean amount.
        """
        parts, parity = amount_parts(happiness)
        # A reader of a distance between distributions wants to know who gets more.
        added = () if parts or extra else (Happiness("decision", name=MEAN_AMOUNT),)
        own = tuple(_within(part, bounds) for part in parts)
        every = with_counted((*own, *(_within(part, bounds) for part in (*extra, *added))))
        made = cls._of(every, amount_loss(loss), own, parity, allowed=Allowed(bounds))
        asked = _asked(gap, made.measures[: len(own)], parity)
        check_gaps(asked if asked else gap, (), (*made.measures[: len(own)], *made.parities))
        return made._with(asked, ())

    @classmethod
    def finding(
        cls,
        happiness: Any,
        *,
        loss: Any = "squared",
        gap: Any = None,
        constraints: Any = (),
        decisions: Any = None,
        sees_group: bool = True,
    ) -> NumericProblem:
        """Read what the user wrote of amounts that people are to get."""
        listed = check_constraints(constraints)
        allowed, (own, parity) = Allowed.of(decisions), amount_parts(happiness_of(happiness, listed))
        _refuse_fractions(own)
        others = [_checked(one) for one in listed if one.happiness != PARITY]
        widths = [_parity_of(one) for one in listed if one.happiness == PARITY]
        whoms = {one.whom for one in listed if isinstance(one, Gap) and one.happiness == PARITY}
        parity = parity or (PARITY if widths or (isinstance(gap, Mapping) and PARITY in gap) else "")
        every = own + _spoken_of(others, own)
        costs = amount_loss(loss)
        if costs.name == "changes":
            raise DataError(
                "The loss 'changes' counts amounts that differ, and nearly all do.",
                "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression such as "
                "'abs(decision - baseline)'.",
            )
        made = cls._of(every, costs, own, parity, sees_group=sees_group, allowed=allowed)
        asked = _asked(gap, made.measures[: len(own)], parity)
        whoms |= {Gap(PARITY, 0.0).whom} if parity in asked else set()
        if len(whoms) > 1:
            raise ConstraintError(
                f"Several gaps of {PARITY!r} compare different people.", "Say one of them, with its groups."
            )
        if parity in asked:
            widths.append(check_width(asked[parity], f"gap of {parity!r}"))
        check_gaps({name: width for name, width in asked.items() if name != parity}, others, made.measures)
        if widths:
            asked |= {parity: min(widths)}
            check_gaps({parity: min(widths)}, (), made.parities)
        return replace(made._with(asked, others), parity_whom=next(iter(whoms), Whom()))

    @classmethod
    def _of(
        cls, every: Sequence[Happiness], loss: Loss, own: Sequence[Happiness], parity: str, **more: Any
    ) -> NumericProblem:
        """Of these measures, of which the ``own`` are closed along a frontier."""
        none, names = np.empty(0, dtype=object), tuple(str(part.name) for part in own)
        return cls(none, none, tuple(every), loss, closed=names, parity=parity, **more)

    def _with(self, asked: Mapping[str, float], others: Sequence[Requirement]) -> NumericProblem:
        """With gaps that were asked for, and other requirements."""
        gaps = {name: width for name, width in asked.items() if name != self.parity}
        needs = requirements_of(gaps or None, others, self.measures)
        width = asked.get(self.parity, math.inf) if self.parity else math.inf
        return replace(self, requirements=needs, parity_gap=float(width))

    @property
    def parities(self) -> tuple[Measure, ...]:
        """Distributional parity as a measure, where it is asked for."""
        return (parity_measure(self.parity),) if self.parity else ()

    @property
    def amount_limits(self) -> tuple[float, float] | None:
        """Between which amounts lie, where it was said."""
        return self.allowed.bounds

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

    def with_widths(self, gap: Any) -> NumericProblem:
        """The same with other gaps: one number, or by measure, as the user writes it."""
        own: tuple[str, ...] = (*self.closed, *([self.parity] if self.parity else []))
        asked = dict(gap) if isinstance(gap, Mapping) else dict.fromkeys(own, check_width(gap, "gap"))
        width = asked.pop(self.parity, math.inf) if self.parity else math.inf
        check_gaps(asked, (), self.measures)
        check_gaps({self.parity: width}, (), (parity_measure(self.parity),)) if self.parity else None
        return replace(self.with_gaps(asked), parity_gap=float(width))


def _asked(gap: Any, own: Sequence[Measure], parity: str) -> dict[str, float]:
    """Gaps by name: one number is that of every measure, and of parity."""
    if gap is None or isinstance(gap, Mapping):
        return dict(gap or {})
    check_one_unit(gap, "gap", (*own, *((parity_measure(parity),) if parity else ())))
    return dict.fromkeys([*(measure.name for measure in own), *([parity] if parity else [])], gap)


def _refuse_fractions(own: tuple[Happiness, ...]) -> None:
    """Refuse a happiness whose ``among`` looks at the amount."""
    for part in own:
        if part.over:
            raise HappinessError(
                f"The happiness {part.name!r} is a fraction: its `among` looks at the decision.",
                "Count people whatever their amount, or use FairClassifier(decisions=...).",
            )


def _parity_of(one: Requirement) -> float:
    """How far distributions may be apart by a constraint."""
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


def parity_measure(name: str = PARITY) -> Measure:
    """Distributional parity as an entry of an audit: means are shares above one amount, the gap is the distance."""
    return Measure(name, "share", name, looks_at_y=False, bounds=SHARE)


def amount_loss(loss: Any = None) -> Loss:
    r"""What an amount costs: "squared" (by default), "absolute", "quantile:0.9", "changes", or what the user wrote.

    That of a quantile q, :math:`\max(q (y - a), (1 - q)(a - y))`, is least in expectation where a share q of the
    labels is below the amount.
    """
    loss = "squared" if loss is None else loss
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _LOSSES:
        return Loss(loss, loss, function=Expression(_LOSSES[loss]))
    if isinstance(loss, str) and loss.partition(":")[0] == "quantile":
        q = _quantile(loss)
        text = f"max({q!r} * (y - decision), {1.0 - q!r} * (decision - y))"
        return Loss(loss, loss, function=Expression(text))
    if (isinstance(loss, str) and loss == "error") or not (
        isinstance(loss, str | Expression) or callable(loss)
    ):
        raise DataError(
            f"The loss {loss!r} compares classes, and the decisions are amounts.",
            "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression of decision and y.",
        )
    # Names, expressions and functions are read as they are for classes.
    return Loss.of(loss, np.empty(0, dtype=object))


def _quantile(loss: str) -> float:
    """The quantile that a loss names."""
    try:
        q = float(loss.removeprefix(_QUANTILE))
    except ValueError:
        q = math.nan
    if not 0.0 < q < 1.0:
        raise DataError(
            f"The loss {loss!r} is of no quantile.", "Give a number between 0 and 1: 'quantile:0.9'."
        )
    return q


def is_loss_of_amounts(loss: Any) -> bool:
    """Whether a loss is one that only numbers can have, by its name."""
    return isinstance(loss, str) and (loss in ("squared", "absolute") or loss.startswith(_QUANTILE))


def asks_for_parity(happiness: Any) -> bool:
    """Whether distributional parity is among what is asked for."""
    return any(isinstance(item, str) and item == PARITY for _, item in _listed(happiness))


def _listed(happiness: Any) -> list[tuple[str | None, Any]]:
    """Every item, with its name where it has one."""
    if isinstance(happiness, Mapping):
        return [(str(name), item) for name, item in happiness.items()]
    return [(None, item) for item in (happiness if isinstance(happiness, list | tuple) else [happiness])]


def amount_parts(happiness: Any) -> tuple[tuple[Happiness, ...], str]:
    """The measures that are means, and what distributional parity is called, if it is asked for."""
    if happiness is None:
        raise HappinessError(
            "No happiness was given.",
            "Pass happiness=: 'decision' for the mean amount, 'distributional_parity' for the whole distribution, or "
            "a function such as `lambda decision, x: decision * x['months']`.",
        )
    parts: list[Happiness] = []
    names: list[str] = []
    for name, item in _listed(happiness):
        if isinstance(item, str) and item == PARITY:
            names.append(name or PARITY)
        elif isinstance(item, str) and item in CRITERIA:
            raise HappinessError(
                f"The criterion {item!r} counts decisions that are classes, and the decisions are amounts.",
                f"Ask for {PARITY!r}, or for a share: 'decision >= 40', say.",
            )
        elif isinstance(item, Happiness):
            parts.append(item if name is None else replace(item, name=name, family=name))
        else:
            parts.append(Happiness(item, name=name))
    called = [*(str(part.name) for part in parts), *names]
    repeated = next((name for name in called if called.count(name) > 1), None)
    if not called or repeated is not None:
        raise HappinessError(
            "The list of happiness measures is empty."
            if repeated is None
            else f"Two happiness measures are both called {repeated!r}.",
            "Pass at least one function." if repeated is None else "Name them: {'name': function, ...}.",
        )
    return tuple(parts), names[0] if names else ""


def _within(part: Happiness, bounds: tuple[float, float] | None) -> Happiness:
    """The amount itself lies where all amounts do."""
    applies = bounds is not None and part.bounds is None
    return replace(part, bounds=bounds) if applies and is_plain_amount(part) else part


def is_plain_amount(part: Happiness) -> bool:
    """Whether a happiness is the amount itself."""
    return isinstance(part.function, Expression) and part.function.text.strip() == "decision"


def check_individual(problem: NumericProblem) -> None:
    """Refuse what an individual policy of amounts cannot be asked for."""
    if problem.parity:
        raise ConstraintError(
            f"{problem.parity!r} compares the ranks of people within their groups, and an individual policy does not "
            "rank them.",
            "Use policy='score', or ask for a mean: 'decision'.",
        )
    if not problem.squared:
        raise DataError(
            f"The loss {problem.loss.name!r} needs every amount to be tried for everybody, which an individual policy "
            "of amounts does not.",
            "Use loss='squared', policy='score', or FairClassifier(decisions=[...]) with few amounts.",
        )
    if problem.allowed.listed is not None:
        raise DataError(
            "An individual policy gives any amount, and decisions= lists the only ones there are.",
            "Pass bounds, decisions=(low, high), or use policy='score'.",
        )
    for part in problem.happiness:
        if "y" in part.asks:
            raise HappinessError(
                f"The happiness {part.name!r} looks at the label y, which is not known when amounts are given.",
                "Use policy='score', whose score bins are summed with their labels.",
            )
