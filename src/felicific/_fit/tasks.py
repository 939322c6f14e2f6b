"""Tasks: what is asked, spelled out from settings for the classes of a model."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from felicific._fit.fit import Task
from felicific._fit.safety import check_certifiable
from felicific._problem.happiness import CRITERIA, Happiness, resolve_happiness
from felicific._problem.requirements import check_constraints, constraint_name, gaps_together, resolve_gap
from felicific._problem.rows import Requirement
from felicific._program.summing import resolve_loss
from felicific._statistics.intervals import check_confidence
from felicific._tables.memory import Array
from felicific.exceptions import HappinessError


def make_task(
    classes: Array,
    happiness: Any,
    gap: Any,
    loss: Any,
    constraints: Any,
    *,
    favourable: Any,
    confidence: float | None,
    see_group: bool,
    salt: str,
) -> Task:
    """What is asked. What is wrong with it is said here, before any model is fitted.

    A gap that is one number is asked of the components of ``happiness``, not of those that only constraints speak of.
    """
    own = resolve_happiness(happiness, classes.tolist(), favourable)
    asked = gap
    if gap is not None and not isinstance(gap, Mapping):
        asked = {component.name: gap for component in own}
    checked = check_constraints(constraints)
    every = own + _constrained(checked, own, classes.tolist(), favourable)
    widths = resolve_gap(asked, tuple(happiness.component for happiness in every), checked)
    kept = tuple(constraint for constraint in checked if not constraint.moves)
    if len(kept) < len(checked):
        # Gaps among the constraints join the others, so that frontiers, certificates and reports know of them.
        asked = gaps_together(asked, checked)
    if confidence is not None:
        check_confidence(confidence)
        check_certifiable(gap, widths)
    resolve_loss(loss, classes)
    return Task(
        classes, every, loss, asked, kept, see_group, salt, tuple(str(component.name) for component in own)
    )


def _constrained(
    constraints: tuple[Requirement, ...], own: tuple[Happiness, ...], classes: list[Any], favourable: Any
) -> tuple[Happiness, ...]:
    """Components that only constraints speak of."""
    known = {component.name: component for component in own}
    families = {component.family for component in own}
    extra: dict[str, Happiness] = {}
    for constraint in constraints:
        happiness = constraint.happiness
        if isinstance(happiness, str):
            if happiness in known or happiness in families or happiness not in CRITERIA:
                continue
            extra |= {str(found.name): found for found in resolve_happiness(happiness, classes, favourable)}
            continue
        named = happiness if isinstance(happiness, Happiness) else Happiness(happiness)
        name = constraint_name(happiness)
        same = known.get(name) or extra.get(name)
        if same is None:
            extra[name] = named
        elif not (_alike(same.function, named.function) and _alike(same.among, named.among)):
            raise HappinessError(
                f"A constraint and a component are both called {name!r} and differ.", "Give one another name."
            )
    return tuple(extra.values())


def _alike(one: Any, other: Any) -> bool:
    """Whether two functions are the same; cloning an estimator copies callable objects, so those by content."""
    if isinstance(one, FunctionType) or not hasattr(one, "__dict__"):
        return bool(one == other)
    return bool(one == other) or (type(one) is type(other) and bool(vars(one)) and vars(one) == vars(other))
