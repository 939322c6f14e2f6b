"""A small picture of a policy, for notebooks: needs nothing but Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from felicific._problem.happiness import measured
from felicific._shown.drawing import lanes, stairs
from felicific._shown.parts import Picture, extremes, short

if TYPE_CHECKING:
    from felicific._policy.policy import Policy, Stretches

#: Groups that a picture shows.
LANES = 5

#: Letters of a name in a picture.
LETTERS = 36


def picture_of(policy: Policy) -> Picture | None:
    """What it decides along the score of two classes; else what it makes of groups' means. None if that is nothing."""
    shown, some = _shown_groups(policy) if policy.sees_group else ([0], "")
    stretches = policy.stretches(shown)
    if stretches is None or stretches.boundary is None:
        return _of_means(policy)
    return _of_scores(policy, stretches, shown, some)


def _of_scores(policy: Policy, stretches: Stretches, shown: list[int], some: str) -> Picture:
    names = [short(str(policy.groups[z]), LETTERS) for z in shown] if policy.sees_group else ["any group"]
    value, ends = stretches.scale()
    one = policy.best if policy.listed else 1
    steps = [
        [
            (
                value.get(low, max(low, 0.0)),
                value.get(high, min(high, 1.0)),
                float(policy.rounded(np.array(q))[one]),
            )
            for owner, _, low, high, q in stretches.rows
            if owner == z
        ]
        for z in shown
    ]
    decision = short(repr(policy.decisions.tolist()[one]), LETTERS)
    what = "decision function" if stretches.cuts else "score"
    caption = (
        f"Chance (0 to 100%) of being decided {decision}, by {what}{some}; dashed: the model's own boundary"
    )
    boundary = value.get(stretches.boundary, stretches.boundary)
    return Picture(caption, stairs(names, steps, boundary, ends), len(names) + 2)


def _of_means(policy: Policy) -> Picture | None:
    j, baseline = _measure(policy), policy.basis.baseline
    shown, some = _shown_groups(policy)
    if not shown:
        return None
    before: list[float | None] = [None] * len(shown)
    if baseline is not None:
        before = [None if np.isnan(mean) else float(mean) for mean in baseline.means[shown, j]]
    measure, after = policy.measures[j], policy.outcome.means[shown, j].tolist()
    unit = "" if measure.in_currency or not measure.unit else f" ({short(measure.unit, 16)})"
    marks = "dot: this policy" if baseline is None else "diamond: the baseline, dot: this policy"
    names = [short(str(policy.groups[z]), LETTERS) for z in shown]
    drawn = lanes(names, before, after, lambda number: measure.cell(number, 4))
    return Picture(f"Mean {short(measure.title)!r}{unit}{some}; {marks}", drawn, len(names) + 3)


def _measure(policy: Policy) -> int:
    """Position of what is shown: the first that was asked for and people want more of."""
    asked = measured(policy.measures) or range(len(policy.measures))
    return next((j for j in asked if policy.measures[j].wanted), asked[0])


def _shown_groups(policy: Policy) -> tuple[list[int], str]:
    """Positions of the groups that are shown, and what to say of the others."""
    means = policy.outcome.means[:, _measure(policy)].tolist()
    known = [z for z in extremes(means, LANES) if not np.isnan(means[z])]
    few = len(known) < len(means)
    return known, f", {len(known)} of {len(means):,} groups, least and largest means" if few else ""
