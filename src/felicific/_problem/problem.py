"""The problem: what is asked, read and checked once, and passed whole from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any, Self

from felicific._problem.constraints import (
    allowed_gaps,
    check_constraints,
    check_gaps,
    check_one_unit,
    happiness_of,
    requirements_of,
    resolve_gap,
)
from felicific._problem.criteria import CRITERIA, Choices
from felicific._problem.decisions import as_decisions, label_positions
from felicific._problem.exploration import Chance, refuse_chances
from felicific._problem.expressions import Expression
from felicific._problem.happiness import (
    LOSES,
    Happiness,
    Measure,
    criterion,
    positions,
    resolve_happiness,
    with_counted,
)
from felicific._problem.loss import Loss
from felicific._problem.requirement import ComparedMeans, Requirement, chances_of
from felicific._problem.requirements import Gap, constraint_name
from felicific._problem.worse_off import WorseOff, can_be_lost
from felicific._typing import Array, Codes
from felicific.exceptions import HappinessError


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked of the decisions about people.

    Attributes
    ----------
    decisions : array of shape (D,)
        What may be decided on a person; none where it is an amount, see :mod:`felicific._problem.numeric`.
    labels : array of shape (L,)
        What may be true of a person: the classes of the model. The same as the decisions unless said; none where
        truths are numbers.
    happiness : tuple of Happiness
        The measures, those that only requirements speak of included.
    loss : Loss
        What a decision costs the decision maker.
    requirements : tuple of Requirement
        What a policy has to meet: a Gap for every measure that has one, then the others.
    sees_group : bool
        Whether deciding may look at the group.
    closed : tuple of str
        Measures that are closed along a frontier when no gap is asked for.
    order : tuple
        The decisions from the worst to the best for the person, where they stand in another order.
    rising : bool, or None
        Where decisions are others than the labels: whether better ones go with higher scores of the last label, or with
        lower ones.
    """

    decisions: Array
    labels: Array
    happiness: tuple[Happiness, ...]
    loss: Loss
    requirements: tuple[Requirement, ...] = ()
    sees_group: bool = True
    closed: tuple[str, ...] = ()
    order: tuple[Any, ...] = ()
    rising: bool | None = None

    @classmethod
    def of(
        cls,
        decisions: Array,
        happiness: Any,
        *,
        labels: Array | None = None,
        loss: Any = "error",
        gap: Any = None,
        constraints: Any = (),
        order: Sequence[Any] = (),
        sees_group: bool = True,
    ) -> Problem:
        """Read what the user wrote; what is wrong with it is said here, before any row is looked at.

        Where ``labels`` are given, the decisions are others, listed from the worst to the best. A gap that is one
        number is asked of the measures of ``happiness``, not of those that only constraints speak of.
        """
        truths = decisions if labels is None else labels
        about = decisions.tolist(), None if labels is None else labels.tolist(), order
        listed = check_constraints(constraints)
        own, choices = resolve_happiness(happiness_of(happiness, listed), *about), Choices.of(*about)
        gaps = gap
        if gap is not None and not isinstance(gap, Mapping):
            gaps = {str(measure.name): gap for measure in own}
        checked = tuple(one.named(choices) for one in listed)
        every = with_counted(own + _constrained(checked, own, choices))
        names = tuple(str(measure.name) for measure in own)
        costs = Loss.of(loss, decisions, truths)
        rising = None if labels is None else costs.rising
        made = cls(decisions, truths, every, costs, (), sees_group, names, tuple(order), rising)
        measures = made.measures
        made._refuse_unknown("decision", decisions.tolist(), "decision", "classes")
        if len(truths):
            made._refuse_unknown("y", truths.tolist(), "label", "classes")
        made._refuse_unknown("baseline", decisions.tolist(), "decision", "classes")
        check_gaps(gaps, checked, measures)
        if gaps is not gap:
            check_one_unit(gap, "gap", measures[: len(own)])
        return replace(made, requirements=requirements_of(gaps, checked, measures))

    @property
    def choices(self) -> Choices:
        """What may be decided and be true, with the best of each."""
        return Choices.of(self.decisions.tolist(), self.labels.tolist() if self.listed else None, self.order)

    @property
    def listed(self) -> bool:
        """Whether the decisions are others than the labels, listed from the worst to the best for the person."""
        return self.rising is not None

    @property
    def best(self) -> Any:
        """The best decision."""
        return self.choices.best

    @cached_property
    def decided_as(self) -> Codes | None:
        """Position of every label among listed decisions, -1 where it is none; None where labels are the decisions."""
        return label_positions(self.labels, self.decisions) if self.listed else None

    @property
    def takes_labels(self) -> bool:
        """Whether every label may be decided."""
        positions = self.decided_as
        return positions is None or (len(positions) > 0 and bool((positions >= 0).all()))

    def as_decided(self, labels: Codes) -> Codes:
        """Positions of labels as those of the decisions that they are."""
        return labels if self.decided_as is None else self.decided_as[labels]

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """What aggregates, policies and files remember of the happiness."""
        aside = [str(happiness.name) not in self.closed for happiness in self.happiness]
        return tuple(
            replace(part.measure, aside=one) for part, one in zip(self.happiness, aside, strict=True)
        )

    @cached_property
    def compared(self) -> tuple[Happiness, ...]:
        """What is compared with the baseline's decisions, so asked for more than once."""
        return tuple(part for happiness in self.happiness for part in happiness.compared)

    @property
    def of_amounts(self) -> bool:
        """Whether any number may be decided: everybody has an amount of their own, and labels are numbers."""
        return not len(self.decisions)

    @property
    def amount_limits(self) -> tuple[float, float] | None:
        """Between which amounts lie, where they are decided and it was said."""
        return getattr(self, "amount_bounds", None)

    @property
    def names(self) -> list[str]:
        """What the measures are called."""
        return [str(happiness.name) for happiness in self.happiness]

    @property
    def widths(self) -> list[float]:
        """Allowed gap of every measure; infinite where nothing was asked."""
        return resolve_gap(None, self.measures, self.requirements)

    @property
    def gaps(self) -> dict[str, float] | None:
        """Allowed gaps by measure; None where nothing was asked."""
        return allowed_gaps(self.requirements, self.measures) or None

    @property
    def kept(self) -> tuple[Requirement, ...]:
        """Requirements that hold everywhere on a frontier."""
        return tuple(requirement for requirement in self.requirements if not requirement.is_plain_gap)

    def cautious(self, margin: Callable[[float, Sequence[Any] | None], float], fitted: float) -> Problem:
        """The same with requirements as tight as people held out have to show them."""
        return replace(self, requirements=tuple(one.cautious(margin, fitted) for one in self.requirements))

    def chances(self, groups: Sequence[Any]) -> tuple[Chance, ...]:
        """The chances that people keep, whose groups are these."""
        chances = chances_of(self.requirements, self.decisions.tolist(), groups)
        refuse_chances(chances, len(groups), sees_group=self.sees_group)
        return chances

    @property
    def comparisons(self) -> tuple[ComparedMeans, ...]:
        """All means that are compared."""
        return tuple(part for one in self.requirements for part in one.comparisons(self.measures))

    def tightened(self, by: Callable[[ComparedMeans], float]) -> Problem:
        """The same with what compares others than all groups tightened by so much."""

        def tighter(one: Requirement) -> Requirement:
            margins = [by(part) for part in one.comparisons(self.measures) if not part.plain]
            return one.tightened(max(margins)) if margins else one

        return replace(self, requirements=tuple(map(tighter, self.requirements)))

    def with_gaps(self, gaps: dict[str, float]) -> Self:
        """The same with other gaps, between the same people."""
        return replace(self, requirements=(*self.own_gaps(gaps), *self.kept))

    def own_gaps(self, gaps: dict[str, float]) -> tuple[Requirement, ...]:
        """Such gaps between the people that each measure compares."""
        own = {
            one.happiness.name: one for one in self.requirements if isinstance(one, Gap) and one.is_plain_gap
        }
        made = (one for one in requirements_of(gaps, (), self.measures) if isinstance(one, Gap))
        return tuple(own.get(one.happiness.name, one).at(one.at_most) for one in made)

    @property
    def looks_at_x(self) -> bool:
        """Whether a function looks at the people themselves."""
        return "x" in self.loss.asks or any("x" in happiness.asks for happiness in self.happiness)

    @property
    def looks_at_y(self) -> bool:
        """Whether something looks at labels."""
        return bool(self.looking_at_y)

    @property
    def looking_at_y(self) -> str:
        """What looks at labels, in words; empty for nothing."""
        names = [f"the happiness {part.name!r}" for part in self.happiness if part.looks_at_y]
        return (["the loss"] if self.loss.looks_at_y else names)[0] if self.loss.looks_at_y or names else ""

    @property
    def looks_at_baseline(self) -> bool:
        """Whether a function looks at the baseline."""
        return "baseline" in self.loss.asks or any(
            happiness.looks_at_baseline for happiness in self.happiness
        )

    @property
    def with_worse_off(self) -> Problem:
        """The same with who gets less than from the baseline's decision, measured and not asked for; if anybody can."""
        own = tuple(happiness for happiness in self.happiness if happiness.name in self.closed)
        if LOSES in (happiness.name for happiness in self.happiness) or not any(map(can_be_lost, own)):
            return self
        return replace(self, happiness=(*self.happiness, WorseOff().speaks_of(own, self.choices)))

    @property
    def lossless(self) -> Problem:
        """The same for people without labels: only what does not look at them."""
        kept = tuple(happiness for happiness in self.happiness if not happiness.looks_at_y)
        return replace(self, happiness=kept)

    @property
    def unlabelled(self) -> Problem:
        """The same for people without labels: what only requirements speak of is left out if it looks at them."""
        out = {str(part.name) for part in self.happiness if part.looks_at_y} - {*self.closed}
        if not out:
            return self
        kept = tuple(part for part in self.happiness if part.name not in out)
        gaps = {name: width for name, width in (self.gaps or {}).items() if name not in out}
        fresh = replace(self, happiness=kept, requirements=())
        return fresh.with_gaps(gaps)

    @property
    def seeing(self) -> Problem:
        """The same for a policy that sees the group."""
        return replace(self, sees_group=True)

    def check_groups(self, groups: Sequence[Any]) -> None:
        """Refuse expressions that compare the group with what is none of the groups there are."""
        self._refuse_unknown("group", list(groups), "group", "groups")

    def _refuse_unknown(self, name: str, values: list[Any], what: str, others: str) -> None:
        functions = [part for happiness in self.happiness for part in happiness.functions]
        for function in (*functions, self.loss.function):
            if isinstance(function, Expression):
                function.refuse_unknown(name, values, what, others)

    def refuse_x(self) -> None:
        """Raise if something looks at x, and there is none."""
        for happiness in self.happiness:
            if "x" in happiness.asks:
                raise HappinessError(
                    f"The happiness {happiness.name!r} looks at x, and there is none.", "Pass X."
                )
        if "x" in self.loss.asks:
            raise HappinessError("The loss looks at x, and there is none.", "Pass X.")


def problem_of(
    classes: Array, *, decisions: Iterable[Any] | None = None, happiness: Any = None, **options: Any
) -> Problem:
    """What is asked of the decisions about people of these classes; these are decided unless others are listed."""
    if decisions is None:
        return Problem.of(classes, happiness, **options)
    listed, known = as_decisions(decisions), classes.tolist()
    places = label_positions(listed, classes)
    if len(listed) == len(known) and (places >= 0).all():
        order = [known[place] for place in places]
        return Problem.of(classes, happiness, order=[] if order == known else order, **options)
    return Problem.of(listed, happiness, labels=classes, **options)


def _constrained(
    constraints: tuple[Requirement, ...], own: tuple[Happiness, ...], choices: Choices
) -> tuple[Happiness, ...]:
    """Measures that only constraints speak of."""
    by_name = {measure.name: measure for measure in own}
    extra: dict[str, Happiness] = {}
    for constraint in constraints:
        happiness = constraint.speaks_of(own, choices)
        if happiness is None:
            continue
        if isinstance(happiness, str):
            if happiness in CRITERIA and not positions(happiness, own):
                parts = {str(part.name): part for part in criterion(happiness, choices)}
                extra |= {name: part for name, part in parts.items() if name not in by_name}
            continue
        named = happiness if isinstance(happiness, Happiness) else Happiness(happiness)
        name = constraint_name(happiness)
        same = by_name.get(name) or extra.get(name)
        for one, other in ((same, named), *((by_name.get(part.name), part) for part in named.compared)):
            if one and not (_alike(one.function, other.function) and _alike(one.among, other.among)):
                raise HappinessError(
                    f"A constraint and a measure are both called {other.name!r} and differ.",
                    "Give one another name.",
                )
        extra |= {} if same else {name: named.with_classes(choices.decisions)}
    return tuple(extra.values())


def _alike(one: Any, other: Any) -> bool:
    """Whether two functions are the same; cloning an estimator copies callable objects, so those by content."""
    if isinstance(one, FunctionType) or not hasattr(one, "__dict__"):
        return bool(one == other)
    return bool(one == other) or (type(one) is type(other) and bool(vars(one)) and vars(one) == vars(other))
