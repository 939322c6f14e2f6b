"""What another way of deciding does, in words.

Tuning and fairness apart, who gains and who loses, that every group loses by it, or that there was nothing to repair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from felicific._problem.happiness import Component, fractions_of, written
from felicific._problem.loss import loss_text, loss_words
from felicific._typing import Floats

#: How the worst of it begins.
EVERY_GROUP_LOSES = "Every group loses"
FEW_LEFT = "Few are left to be compared"

#: Most groups whose means are spelled out.
GROUPS = 4

#: Fewer people than this share of before are few.
FEW = 0.5

#: A fall of this relative size is not worth a word, and an excess of a gap may be nothing but rounding.
NEGLIGIBLE, ROUNDING = 1e-5, 1e-9


def losing(component: Component, before: Floats, after: Floats) -> bool:
    """Whether the mean falls in every group, of something that people want more of."""
    fall, least = _change(after, before)
    return component.wanted and bool((fall > least).all())


def _change(before: Floats, after: Floats) -> tuple[Floats, float]:
    """How much more every group gets of which there is somebody, and what of that is not worth a word."""
    held = ~np.isnan(before + after)
    return after[held] - before[held], NEGLIGIBLE * float(
        np.abs([before[held], after[held]]).max(initial=0.0)
    )


def remedy_of(component: Component) -> str:
    """What to do when a policy takes from every group."""
    return f"Add a floor of {component.name!r} at today's level, or let the policy see more."


def only_takes(component: Component, before: Floats, after: Floats) -> bool:
    """Whether no group's mean rises and that of some falls, of something that people want more of."""
    change, least = _change(before, after)
    return component.wanted and bool((change <= least).all() and (change < -least).any())


def every_group_loses(
    components: Sequence[Component],
    groups: Sequence[str],
    before: Floats,
    after: Floats,
    where: str,
    *,
    by_policy: bool = False,
) -> list[str]:
    """A sentence for every component of which each group gets less, or some get less and none gets more.

    Means are of shape (groups, components). ``groups`` are as they are to be written, ``where`` says of whom and
    compared with what. If it is ``by_policy``, there is something to do about it.
    """
    found = []
    every = groups
    for j, component in enumerate(components):
        held = np.flatnonzero(~np.isnan(before[:, j] + after[:, j]))  # of nobody there is no mean
        groups, was, is_ = [every[z] for z in held.tolist()], before[held, j], after[held, j]
        if only_takes(component, was, is_) and not losing(component, was, is_):
            found.append(_taking(component, groups, was, is_, where) + f" {remedy_of(component)}" * by_policy)
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
        said = f"{EVERY_GROUP_LOSES}: {where}, mean {component.name!r} falls {how}."
        found.append(f"{said} {remedy_of(component)}" if by_policy else said)
    return found


def _taking(component: Component, groups: Sequence[str], was: Floats, is_: Floats, where: str) -> str:
    """What is said where some groups get less and none gets more."""
    fewer = np.flatnonzero(was - is_ > NEGLIGIBLE * np.abs([was, is_]).max()).tolist()
    each = ", ".join(
        f"from {component.quantity(float(was[z]))} to {component.quantity(float(is_[z]))} in group {groups[z]}"
        for z in fewer[:GROUPS]
    )
    return f"It only takes: {where}, mean {component.name!r} rises in no group, and falls {each}."


def nothing_to_repair(
    components: Sequence[Component], gaps: Floats, asked: Iterable[float], where: str
) -> list[str]:
    """One sentence if every gap that may be so large only (infinite: any) is no larger before anything is changed."""
    limited = [
        (c, gap, width) for c, gap, width in zip(components, gaps, asked, strict=True) if math.isfinite(width)
    ]
    if not limited or any(not gap <= width * (1 + ROUNDING) for _, gap, width in limited):
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
    if free is None or proposed is None:
        return []

    def gap(component: Component, point: Reached, j: int) -> str:
        most = max(float(one.gaps[j]) for one in (today or free, free, proposed))
        number = float(point.gaps[j])
        return component.quantity(0.0 if number <= ROUNDING * most else number)

    def step(before: Reached, after: Reached) -> str:
        loss = f"{loss_words(loss_name)} {loss_text(loss_name, before.loss)} -> {loss_text(loss_name, after.loss)}"
        gaps = [
            f"gap of {c.name!r} {gap(c, before, j)} -> {gap(c, after, j)}"
            for j, c in enumerate(components)
            if not c.aside
        ]
        return ", ".join([loss, *gaps])

    if today is None:
        return [
            f"Nobody said what is decided today. From the least loss without requirements to this policy: "
            f"{step(free, proposed)}."
        ]
    return [
        f"Tuning, from today to the best without requirements: {step(today, free)}{_changed(free, groups)}.",
        f"Fairness, from there to this policy: {step(free, proposed)}{_changed(proposed, groups)}.",
        *who_gains(components, groups, proposed),
    ]


def _changed(point: Reached, groups: Sequence[str]) -> str:
    """How many decisions are not today's, group by group."""
    if point.changed is None:
        return ""
    held = np.flatnonzero(~np.isnan(point.changed))
    groups, shares = [groups[z] for z in held.tolist()], point.changed[held].tolist()
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
        if point.gains is None or point.loses is None or np.isnan(point.gains[:, j]).all():
            found.append(f"Who gains and who loses {component.name!r} is not known.")
            continue
        shares = zip(groups, point.gains[:, j].tolist(), point.loses[:, j].tolist(), strict=True)
        each = [one for one in shares if not math.isnan(one[1])]
        which = ""
        if len(each) > GROUPS:
            which = f", of {len(each)} groups those {GROUPS} of whom most lose"
            each = sorted(each, key=lambda one: -one[2])[:GROUPS]
        told = "; ".join(f"in group {group} {up:.2%} gain and {down:.2%} lose" for group, up, down in each)
        found.append(f"Compared with today, {component.name!r}{which}: {told}.")
    return found


def few_counted(
    components: Sequence[Component], groups: Sequence[str], before: Floats, after: Floats, where: str
) -> list[str]:
    """A sentence for every fraction that counts less than half as many people of some group as before."""
    found = []
    for j, k in fractions_of(components):
        was, is_ = before[:, k], after[:, k]
        fewer = np.flatnonzero(is_ < FEW * was * (1 - ROUNDING)).tolist()
        if not fewer:
            continue
        component, share = components[j], components[k]
        each = ", ".join(
            f"{100 * is_[z]:.3g} % instead of {100 * was[z]:.3g} % of group {groups[z]}"
            for z in fewer[:GROUPS]
        )
        found.append(
            f"{FEW_LEFT}: {where}, people {share.name} are {each}. Where that is not meant, add "
            f"a floor of '{share.name}' at today's level beside what is asked of {component.name!r}."
        )
    return found
