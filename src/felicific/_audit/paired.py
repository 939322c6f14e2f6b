"""Paired: what changes for the same people from one way of deciding to another.

People differ among each other more than between two ways of deciding, so what is known of changes is far narrower than
the difference of two audits' intervals would be.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from felicific._audit.measured import Measured, revalued
from felicific._audit.methods import Sampled, measure_loss, sample_of
from felicific._audit.result import NOBODY, Interval
from felicific._problem.happiness import SAME
from felicific._statistics.gaps import change_interval, spread_of
from felicific._statistics.intervals import with_changed
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError

#: Methods of mean changes, and of the change of a gap, in words.
KNOWN_ZERO = "known: no decision changes anything for these people"
#: The square of a change that nobody would notice, and that is not known to be none.
LEAST = 1e-100

PAIRS = "all pairs of groups together, widened for skewness (large sample)"
BETS = "all pairs of groups together, by bets (distribution-free)"


def paired_persons(one: Measured, other: Measured, kept: Truths | None = None) -> Measured:
    """Everybody's change from one way of deciding to another.

    ``kept`` are groups about whom both decide alike, whoever belongs to them: nothing is left open there.
    """
    shift = other.origin - one.origin
    change = other.values - one.values + shift
    if one.amounts is not None:  # who gets the same is not changed by the rounding of what is subtracted
        change[np.abs(change) <= SAME * np.abs(other.values + other.origin)] = 0.0
    inside, reach = one.inside, _reach(one, other, change)
    if inside is not None:
        inside, reach = inside.copy(), reach.copy()
        for j, measure in enumerate(one.measures):
            if measure.over:
                change[:, j], reach[:-1, j] = _fraction_change(one, other, j)
                inside[:, j] = True
        change = np.where(inside, change, 0.0)
    if kept is not None and kept.any():
        reach = reach.copy()
        reach[:-1][kept] = 0.0
    # Changes lie between minus and plus what is widest, except of values that are debiased or linearised.
    loose = other.debiased_at.tolist()
    measures = tuple(
        replace(part, bounds=None if part.over or loose[j] else _changes(part.bounds))
        for j, part in enumerate(other.measures)
    )
    paired = replace(
        other,
        measures=measures,
        values=change,
        inside=inside,
        share=None,
        reach=reach,
        origin=np.zeros(len(shift)),
        rates=np.zeros(len(shift), dtype=bool),
        ends=None,
    )
    return _bounded(paired, one, other, shift)


def change_of_means(paired: Measured, j: int, alpha: float, *, large: bool = False) -> list[Interval]:
    """Intervals of every group's mean change."""
    return _intervals(_change(paired, j, large=large), paired.reach[:-1, j], alpha)


def _change(paired: Measured, j: int, *, large: bool) -> Sampled:
    """One measure's changes: by bets within bounds, else with two changed people added, at both ends too."""
    found = sample_of(paired, j, large=large)
    return found if found.method == "bets" else _with_added(found, paired.reach[:-1, j])


def change_of_gap(
    one: Measured,
    other: Measured,
    paired: Measured,
    j: int,
    known: Codes,
    alpha: float,
    *,
    large: bool = False,
) -> Interval:
    """The gap afterwards minus the gap before; ``known`` are the groups that are compared."""
    counted = sample_of(paired, j, large=True).sample.n
    known = known[counted[known] > 0]
    changed = _change(paired, j, large=large).only(known)
    was, is_ = (sample_of(persons, j, large=large).only(known) for persons in (one, other))
    widest = other.measures[j].widest
    low, high = -widest, widest
    if len(known) > 1 and changed.ends is None:
        low, high = change_interval(was.means, is_.means, changed.means, alpha)
    elif len(known) > 1:  # what hidden reasons leave open of each of the gaps
        tail = alpha / (4.0 * len(known))
        (least, most), (lower, upper) = (spread_of(part.limits(tail)) for part in (was, is_))
        low, high = float(lower - most), float(upper - least)
    return Interval(
        float(np.ptp(is_.sample.mean) - np.ptp(was.sample.mean)) if len(known) else math.nan,
        max(low, -widest),
        min(high, widest),
        float(counted[known].min()) if len(known) else 0.0,
        "none" if len(known) < 2 else PAIRS if changed.method == "large" else BETS,
    )


def change_of_loss(one: Measured, other: Measured, alpha: float, *, large: bool = False) -> Interval | None:
    """The mean loss afterwards minus that before; None where it is not known."""
    if one.losses is None or other.losses is None:
        return None
    bounds = None if large or other.debiased_at[-1] else _changes(other.loss_bounds)
    paired = replace(other, losses=other.losses - one.losses, loss_rate=False, loss_bounds=bounds, ends=None)
    change = measure_loss(_bounded(paired, one, other, other.origin - one.origin))
    assert change is not None, "the losses are known"
    reach = one.reach[-1:, -1]
    if one.amounts is not None:
        square = float(np.average((other.losses - one.losses) ** 2, weights=one.weight))
        reach = np.maximum(np.maximum(reach, other.reach[-1:, -1]), max(square, LEAST))
    return _intervals(change if change.method == "bets" else _with_added(change, reach), reach, alpha)[0]


def _changes(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """Between which numbers changes lie of what lies within bounds."""
    if bounds is None or bounds[0] == bounds[1]:
        return None
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


def _reach(one: Measured, other: Measured, change: Floats) -> Floats:
    """How far decisions could change people, as a mean square, by group; of amounts, how far these did, or two differ.

    Nobody knows which amounts are possible, so of those that a happiness asks for nothing is known for sure.
    """
    if one.amounts is None or other.amounts is None:
        return one.reach
    reach, g = np.maximum(one.reach, other.reach), len(one.groups)
    weight = np.ones(len(one.codes)) if one.weight is None else one.weight
    for j, measure in enumerate(one.measures):
        counted = weight if one.inside is None else weight * one.inside[:, j]
        mass = np.bincount(one.codes, counted, minlength=g)
        squares = np.bincount(one.codes, counted * change[:, j] ** 2, minlength=g)
        reach[:-1, j] = np.maximum(reach[:-1, j], squares / np.where(mass > 0, mass, 1.0))
        if measure.name not in one.idle:
            reach[:-1, j] = np.maximum(reach[:-1, j], LEAST)
        else:
            reach[:-1, j] = 0.0
    return reach


def _bounded(paired: Measured, one: Measured, other: Measured, shift: Floats) -> Measured:
    """With both ends of what hidden reasons leave open of every change, which are not those of before and after."""
    if other.debiased is None or one.debiased is None or other.ends is None:
        return paired
    changed = revalued(replace(paired, debiased=other.debiased.changed(one.debiased, shift)))
    return replace(paired, ends=changed.ends)


def _fraction_change(one: Measured, other: Measured, j: int) -> tuple[Floats, Floats]:
    """What everybody adds to the change of a fraction, linearised; and how far decisions could change it."""
    (was, before), (is_, after) = one.linear(j), other.linear(j)
    for z in np.flatnonzero(np.minimum(before, after) <= 0.0)[:1]:
        raise DataError(
            f"In one of the audits nobody of the group {one.groups[z]!r} is counted by {one.measures[j].name!r}, so "
            "there is no change to speak of.",
            "Audit without that happiness, or without that group.",
        )
    shift = float(other.origin[j] - one.origin[j])
    return is_ - was + shift, one.reach[:-1, j] / np.minimum(before, after) ** 2


def _intervals(found: Sampled, reach: Floats, alpha: float) -> list[Interval]:
    """Intervals of mean changes; where no decision changes anything for anybody, that is known."""
    made = found.intervals(alpha)
    sure = [
        Interval(0.0, 0.0, 0.0, interval.n, KNOWN_ZERO) if far == 0.0 else interval
        for interval, far in zip(made, reach.tolist(), strict=True)
    ]
    return [NOBODY if interval.n == 0 else one for one, interval in zip(sure, made, strict=True)]


def _with_added(found: Sampled, reach: Floats) -> Sampled:
    """With two changed people added, at both ends too; estimates and numbers are those without them."""
    ends = found.ends and (_with_added(found.ends[0], reach), _with_added(found.ends[1], reach))
    return replace(found, added=with_changed(found.sample, reach), bounds=None, ends=ends)
