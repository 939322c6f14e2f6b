"""A small picture of a policy of amounts, for notebooks: needs nothing but Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from felicific._policy.picture import LANES, LETTERS
from felicific._problem.happiness import written
from felicific._shown.drawing import curves
from felicific._shown.parts import Picture, extremes, short

if TYPE_CHECKING:
    from felicific._policy.amounts import AmountPolicy


def picture_of_lines(policy: AmountPolicy) -> Picture | None:
    """The amount for every prediction, a line for each group; None where no line has a stretch to draw."""
    if not policy.lines:  # who looks at people themselves has none
        return None
    means = policy.today.amounts.tolist()
    shown = sorted(extremes(means, LANES)) if policy.see_group else [0]
    lines = [tuple(part.tolist() for part in policy.lines[z].typical) for z in shown]
    kept = [(z, xs, ys) for z, (xs, ys) in zip(shown, lines, strict=True) if len(xs) > 1]
    if not kept:
        return None
    names = [short(str(policy.groups[z]), LETTERS) if policy.see_group else "any group" for z, _, _ in kept]
    some = ""
    if policy.see_group and len(kept) < len(means):
        some = f", {len(kept)} of {len(means):,} groups, least and largest means today"
    drawn = curves(
        names,
        [(xs, ys) for _, xs, ys in kept],
        lambda number: written(number, 4),
        "The amount for every prediction, of",
    )
    caption = f"Amount for every prediction{some}; dashed: as predicted"
    return Picture(caption, drawn, len(names) + 10)
