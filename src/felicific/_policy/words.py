"""What policies say and show of themselves: sentences about amounts, and a small picture of any policy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from felicific._policy.lines import Line
from felicific._problem.happiness import measured, written
from felicific._shown.drawing import lanes, stairs
from felicific._shown.parts import Picture, extremes, listed, short

if TYPE_CHECKING:
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.numeric_outcome import AmountOutcome
    from felicific._policy.policy import Policy, Stretches


#: Corners of a line that sentences speak of, at the most.
CORNERS = 9

#: Sets of people who randomize that sentences speak of one by one, at the most.
ATOMS = 2

LOSSES = {"squared": "mean squared error", "absolute": "mean absolute error"}


def loss_title(name: str) -> str:
    """What a reader calls the mean of a loss."""
    return LOSSES.get(name, "mean loss" if not name.startswith("quantile:") else f"mean loss ({name})")


def loss_sentence(name: str, loss: float) -> str:
    """A mean loss for reading: of the squared error its root too, in the label's unit."""
    if math.isnan(loss):
        return f"{loss_title(name)} not known without labels"
    root = f" (a root mean squared error of {written(math.sqrt(loss), 6)})" if name == "squared" else ""
    return f"{loss_title(name)} {written(loss, 6)}{root}"


def headline(policy: AmountPolicy) -> str:
    """What it is, in one line."""
    seen = "sees" if policy.sees_group else "does not see"
    low, high = policy.bounds
    what = f"any amount from {written(low)} to {written(high)}"
    if policy.listed is not None:
        what = f"one of {len(policy.listed):,} amounts from {written(low)} to {written(high)}"
    share = policy.share_randomized if policy.randomize else 0.0
    randomized = f", by lottery to {share:.2%} of them" if share else ", by no lottery"
    whom = f"people of {len(policy.groups):,} groups{randomized}"
    return f"A policy of amounts that {seen} the group gives {what} to {whom}."


def rules(policy: AmountPolicy, digits: int, most: int | None) -> list[str]:
    """One sentence for every group, of at most nine corners; one more where the lottery draws."""
    sentences = []
    for z, line in enumerate(policy.lines[:most]):
        whom = f"In group {policy.groups[z]!r}, a" if policy.sees_group else "A"
        if policy.listed is not None or _is_stairs(line):
            sentences.append(f"{whom} {_steps(line, digits)}")
        else:
            sentences.append(f"{whom} {_corners(line, digits)}")
        if policy.randomize:
            where = f"In group {policy.groups[z]!r}, " if policy.sees_group else ""
            sentences += _randomized(line, where, digits)
    return sentences


def _randomized(line: Line, whose: str, digits: int) -> list[str]:
    """Who draws an amount: the largest sets of people one by one, the others together."""
    ordered = sorted(line.atoms, key=lambda atom: -atom.share)
    sentences = [
        f"{whose}{atom.share:.2%} of the people are predicted the same, {written(atom.high, digits)}: draws say what "
        f"each of them gets, from {written(float(atom.amounts[0]), digits)} to "
        f"{written(float(atom.amounts[-1]), digits)}."
        for atom in ordered[:ATOMS]
    ]
    others = ordered[ATOMS:]
    if others:
        share = sum(atom.share for atom in others)
        sentences.append(
            f"{whose}{share:.2%} of the people more, of {len(others)} predictions, draw what they get in the same way."
        )
    return sentences


def _is_stairs(line: Line) -> bool:
    """Whether amounts change in steps only."""
    flat = np.diff(line.amount) == 0
    return bool((flat | (np.diff(line.prediction) == 0)).all()) and len(line.amount) > 2


def _corners(line: Line, digits: int) -> str:
    x, y = fewer(*line.typical, CORNERS)
    pairs = [(written(f, digits), written(a, digits)) for f, a in zip(x.tolist(), y.tolist(), strict=True)]
    first, *others = pairs
    parts = [f"prediction of {first[0]} becomes {first[1]}", *(f"of {f} {a}" for f, a in others)]
    nearly = "" if len(x) == len(line.typical[0]) else "nearly "
    return f"{', '.join(parts)}; in between it {nearly}follows the straight line."


def _steps(line: Line, digits: int) -> str:
    jumps = np.flatnonzero((np.diff(line.prediction) == 0) & (np.diff(line.amount) != 0))
    if not len(jumps):
        return f"person gets {written(float(line.amount[0]), digits)}, whatever is predicted."
    parts = [f"prediction below {written(float(line.prediction[jumps[0]]), digits)} becomes "
             f"{written(float(line.amount[jumps[0]]), digits)}"]  # fmt: skip
    shown = jumps if len(jumps) <= CORNERS else jumps[np.linspace(0, len(jumps) - 1, CORNERS).astype(int)]
    parts += [
        f"from {written(float(line.prediction[k]), digits)} on {written(float(line.amount[k + 1]), digits)}"
        for k in shown.tolist()
    ]
    rest = f" ({len(jumps) - len(shown)} steps in between are not listed)" if len(shown) < len(jumps) else ""
    return ", ".join(parts) + rest + "."


def fewer(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many corners of a line, those that leave the rest nearest to it."""
    if len(x) <= most:
        return x, y
    kept = [0, len(x) - 1]
    while len(kept) < most:
        kept.sort()
        off = np.abs(y - np.interp(x, x[kept], y[kept]))
        worst = int(off.argmax())
        if off[worst] == 0 or worst in kept:
            break
        kept.append(worst)
    kept.sort()
    return x[kept], y[kept]


def achieved(policy: AmountPolicy, most: int | None = None) -> list[str]:
    """What it does to the people it was fitted on; of more groups than the ``most``, to the first."""
    whom = f"On the people it was {'recalibrated for' if policy.expected else 'fitted on'}"
    expected = "expected " if policy.expected else ""
    sentences = [f"{whom}, the {expected}{loss_sentence(policy.loss_name, policy.loss)}."]
    sentences[0] = sentences[0].replace("error ", "error is ", 1).replace("mean loss ", "mean loss is ", 1)
    means = [
        f"{written(mean, 6)} in group {group!r}"
        for group, mean in zip(policy.groups, policy.outcome.amounts.tolist(), strict=True)
    ]
    sentences.append(f"The mean amount is {listed(means, most)}.")
    far = policy.outcome.distance
    if far is not None:
        sentences.append(_far(policy, policy.outcome))
    for j, measure in enumerate(policy.measures):
        each = [
            f"{'of nobody' if math.isnan(mean) else measure.quantity(mean)} in group {group!r}"
            for group, mean in zip(policy.groups, policy.outcome.means[:, j].tolist(), strict=True)
        ]
        gap = float(policy.outcome.gaps[j])
        if gap <= 1e-12 * float(np.nanmax(np.abs(policy.outcome.means[:, j]), initial=0.0)):
            gap = 0.0
        ending = "" if measure.aside else f": a gap of {measure.quantity(gap)}"
        sentences.append(f"Mean {measure.name!r} is {listed(each, most)}{ending}.")
    if policy.out_of_fold:
        sentences.append(
            "Everybody was predicted by a model that was not fitted on them, as new people will be."
        )
    return sentences


def _far(policy: AmountPolicy, outcome: AmountOutcome) -> str:
    far = outcome.distance
    assert far is not None, "it is measured"
    if far.higher == far.lower:
        return "There is one group only, so distributions are not compared."
    return (
        f"The distributions of groups are {far.value:.4g} apart: the share of people above {written(far.amount)} "
        f"differs most, between group {policy.groups[far.higher]!r} (more) and {policy.groups[far.lower]!r}."
    )


def impact(policy: AmountPolicy, most: int | None = None) -> list[str]:
    """From the baseline to the least loss without requirements, and on to this policy; and who gets more or less."""
    points = policy.outcomes
    steps = (
        ("Calibration, from the baseline to the least loss", "baseline", "unconstrained"),
        ("Fairness, from there to this policy", "unconstrained", "proposed"),
    )
    sentences = []
    for words, before, after in steps:
        parts = []
        if not math.isnan(points[before].loss + points[after].loss):
            one, two = (written(points[name].loss, 6) for name in (before, after))
            parts.append(f"{loss_title(policy.loss_name)} {one} -> {two}")
        gaps = [policy.gaps_in(points[name]) for name in (before, after)]
        parts += [f"gap of {name!r} {written(gaps[0][name])} -> {written(gaps[1][name])}" for name in gaps[1]]
        sentences.append(f"{words}: {', '.join(parts)}.")
    more, less = policy.outcome.more, policy.outcome.less
    if more is not None and less is not None:
        sides = [
            f"in group {group!r} {up:.2%} get more and {down:.2%} less"
            for group, up, down in zip(policy.groups, more.tolist(), less.tolist(), strict=True)
        ]
        sentences.append(f"Compared with the baseline's amounts, {listed(sides, most, '; ')}.")
    for name, falls in (policy.outcome.harmed or {}).items():
        each = ", ".join(f"by {written(fall)} in group {group!r}" for group, fall in falls.items())
        sentences.append(f"Mean {name!r} falls {each}: more than in each group that these belong to.")
    for name, wider in (policy.outcome.widened or {}).items():
        sentences.append(f"The gap of {name!r} between intersections widens by {written(wider)}.")
    return sentences


# ---------------------------------------------------------------------------------------------------------
# A small picture of a policy, for notebooks: needs nothing but Python.


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
