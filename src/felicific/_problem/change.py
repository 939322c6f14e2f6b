"""What another way of deciding does, in words: that every group loses by it, or that there was nothing to repair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from felicific._problem.happiness import Component, fractions_of
from felicific._typing import Floats

#: Most groups whose means are spelled out.
GROUPS = 4

#: Fewer people than this share of before are few.
FEW = 0.5

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
    if not limited or any(not gap <= width * (1 + ROUNDING) for _, gap, width in limited):
        return []
    each = ", ".join(
        f"the gap of {c.name!r} is {c.quantity(gap)}, at most the {c.quantity(width)} asked for"
        for c, gap, width in limited
    )
    return [f"Nothing to repair: {where}, {each}."]


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
            f"{share.quantity(is_[z])} instead of {share.quantity(was[z])} in group {groups[z]}"
            for z in fewer[:GROUPS]
        )
        found.append(
            f"Few are left to be compared: {where}, people {share.name} are {each}. Where that is not meant, add "
            f'Floor("{share.name}", at_least="today") beside what is asked of {component.name!r}.'
        )
    return found
