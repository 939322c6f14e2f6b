"""What another way of deciding does, in words: tuning and fairness apart, who gains and loses, what goes wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from felicific._problem.happiness import Component, written
from felicific._problem.loss import loss_text, loss_words
from felicific._typing import Floats

#: Most groups whose means are spelled out.
GROUPS = 4

#: A fall of this relative size is not worth a word, and an excess of a gap may be nothing but rounding.
NEGLIGIBLE, ROUNDING = 1e-5, 1e-9


def losing(component: Component, before: Floats, after: Floats) -> bool:
    """Whether the mean falls in every group, of something that people want more of."""
    fall = before - after
    return component.wanted and bool((fall > NEGLIGIBLE * np.abs([before, after]).max()).all())


def every_group_loses(
    components: Sequence[Component], groups: Sequence[str], before: Floats, after: Floats, where: str
) -> list[str]:
    """A sentence for every component of which each group gets less; means are of shape (groups, components).

    ``groups`` are as they are to be written, ``where`` says of whom and compared with what.
    """
    found = []
    for j, component in enumerate(components):
        was, is_ = before[:, j], after[:, j]
        if not losing(component, was, is_):
            continue
        falls = sorted((was - is_).tolist())
        how = f"by {component.quantity(falls[0])} to {component.quantity(falls[-1])} in the {len(groups)} groups"
        if len(groups) <= GROUPS:
            each = zip(groups, was.tolist(), is_.tolist(), strict=True)
            how = ", ".join(
                f"from {component.quantity(a)} to {component.quantity(b)} in group {group}"
                for group, a, b in each
            )
        found.append(f"Every group loses: {where}, mean {component.name!r} falls {how}.")
    return found


def nothing_to_repair(
    components: Sequence[Component], gaps: Floats, asked: Iterable[float], where: str
) -> list[str]:
    """One sentence if every gap that may be so large only (infinite: any) is no larger before anything is changed."""
    limited = [
        (c, gap, width) for c, gap, width in zip(components, gaps, asked, strict=True) if math.isfinite(width)
    ]
    if not limited or any(gap > width * (1 + ROUNDING) for _, gap, width in limited):
        return []
    each = ", ".join(
        f"the gap of {c.name!r} is {c.quantity(gap)}, at most the {c.quantity(width)} asked for"
        for c, gap, width in limited
    )
    return [f"Nothing to repair: {where}, {each}."]


class Reached(Protocol):
    """What some way of deciding does to people."""

    @property
    def loss(self) -> float:
        """Per person."""

    @property
    def gaps(self) -> Floats:
        """By component."""

    @property
    def changed(self) -> Floats | None:
        """Share of every group about whom something else is decided than today."""

    @property
    def gains(self) -> Floats | None:
        """Share of every group who get more than from today's decision, by component."""

    @property
    def loses(self) -> Floats | None:
        """And who get less."""


def cost_of_changes(cost: float) -> list[str]:
    """One sentence, if changes cost anything beside the loss."""
    return [f"A decision that is not today's counts {written(cost, 6)} beside the loss."] if cost else []


def three_points(
    components: Sequence[Component], groups: Sequence[str], loss_name: str, points: Mapping[str, Reached]
) -> list[str]:
    """Tuning (today to unconstrained) and fairness (from there to what is proposed) apart; then who gains and loses."""
    today, free, proposed = (points.get(name) for name in ("today", "unconstrained", "proposed"))
    if today is None or free is None or proposed is None:
        return []

    def step(before: Reached, after: Reached) -> str:
        loss = f"{loss_words(loss_name)} {loss_text(loss_name, before.loss)} -> {loss_text(loss_name, after.loss)}"
        gaps = [
            f"gap of {c.name!r} {c.quantity(float(a))} -> {c.quantity(float(b))}"
            for c, a, b in zip(components, before.gaps, after.gaps, strict=True)
        ]
        return ", ".join([loss, *gaps])

    return [
        f"Tuning, from today to the best without requirements: {step(today, free)}{_changed(free, groups)}.",
        f"Fairness, from there to this policy: {step(free, proposed)}{_changed(proposed, groups)}.",
        *who_gains(components, groups, proposed),
    ]


def _changed(point: Reached, groups: Sequence[str]) -> str:
    """How many decisions are not today's, group by group."""
    if point.changed is None:
        return ""
    shares = point.changed.tolist()
    where = f"{min(shares):.2%} to {max(shares):.2%} of the {len(groups)} groups"
    if len(groups) <= GROUPS:
        where = ", ".join(
            f"{share:.2%} of group {group}" for group, share in zip(groups, shares, strict=True)
        )
    return f"; decided otherwise than today: {where}"


def who_gains(components: Sequence[Component], groups: Sequence[str], point: Reached) -> list[str]:
    """A sentence for every component that people want more of: who gets more and who gets less than today."""
    found = []
    for j, component in enumerate(components):
        if not component.wanted:
            continue
        if point.gains is None or point.loses is None or np.isnan(point.gains[:, j]).any():
            found.append(f"Who gains and who loses {component.name!r} is not known.")
            continue
        each = list(zip(groups, point.gains[:, j].tolist(), point.loses[:, j].tolist(), strict=True))
        if len(each) > GROUPS:  # those of whom most lose
            each = sorted(each, key=lambda one: -one[2])[:GROUPS]
        told = "; ".join(f"in group {group} {up:.2%} gain and {down:.2%} lose" for group, up, down in each)
        found.append(f"Compared with today, {component.name!r}: {told}.")
    return found
