"""Paired: what changes for the same people from one way of deciding to another.

People differ among each other more than between two ways of deciding, so what is known of changes is far narrower than
the difference of two audits' intervals would be.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from felicific._audit.methods import BETTING_ROWS, DEBIASED, Sampled, measure_loss, sample_of
from felicific._audit.persons import EachPerson, revalued
from felicific._audit.result import NOBODY, Interval
from felicific._problem.happiness import SAME, Measure
from felicific._statistics.gaps import change_interval, spread_of
from felicific._statistics.intervals import with_changed
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError

#: Methods of mean changes, and of the change of a gap, in words.
ADDED = "t with two changed people added, widened for skewness (large sample)"
KNOWN_ZERO = "known: no decision changes anything for these people"
#: The square of a change that nobody would notice, and that is not known to be none.
LEAST = 1e-100

PAIRS = "all pairs of groups together, widened for skewness (large sample)"


def paired_persons(one: EachPerson, other: EachPerson, kept: Truths | None = None) -> EachPerson:
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
    # Changes may leave the bounds of what changes; those of debiased values would be cut at them.
    measures = tuple(
        replace(part, bounds=None) if debiased else part
        for part, debiased in zip(other.measures, other.debiased_at.tolist()[:-1], strict=True)
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


def change_of_means(
    paired: EachPerson, measure: Measure, j: int, alpha: float, *, bets: bool = True
) -> list[Interval]:
    """Intervals of every group's mean change; without ``bets``, which take their time, by large samples."""
    found, reach = sample_of(paired, j, large=True), paired.reach[:-1, j]
    span = None if measure.over or not bets else _width(measure.bounds)
    return _intervals(found, reach, span, paired.countable, alpha)


def change_of_gap(
    one: EachPerson, other: EachPerson, paired: EachPerson, j: int, known: Codes, alpha: float
) -> Interval:
    """The gap afterwards minus the gap before; ``known`` are the groups that are compared."""
    found, measure = sample_of(paired, j, large=True), other.measures[j]
    was, is_ = (sample_of(persons, j, large=True).only(known) for persons in (one, other))
    changed = with_changed(found.sample, paired.reach[:-1, j]).only(known)
    widest = measure.widest
    low, high = -widest, widest
    if len(known) > 1 and found.ends is None:
        low, high = map(float, change_interval(was.pairs, is_.pairs, changed, alpha))
    elif len(known) > 1:  # what hidden reasons leave open of each of the gaps
        tail = alpha / (4.0 * len(known))
        (least, most), (lower, upper) = (spread_of(part.by("hall").limits(tail)) for part in (was, is_))
        low, high = float(lower - most), float(upper - least)
    return Interval(
        float(np.ptp(is_.sample.mean) - np.ptp(was.sample.mean)),
        max(low, -widest),
        min(high, widest),
        float(found.sample.n[known].min()),
        "none" if len(known) < 2 else PAIRS,
    )


def change_of_loss(one: EachPerson, other: EachPerson, alpha: float, *, bets: bool = True) -> Interval | None:
    """The mean loss afterwards minus that before; None where it is not known."""
    if one.losses is None or other.losses is None:
        return None
    paired = replace(other, losses=other.losses - one.losses, loss_rate=False, loss_bounds=None, ends=None)
    change = measure_loss(_bounded(paired, one, other, other.origin - one.origin))
    assert change is not None, "the losses are known"
    span = _width(other.loss_bounds) if bets else None
    reach = one.reach[-1:, -1]
    if one.amounts is not None:
        square = float(np.average((other.losses - one.losses) ** 2, weights=one.weight))
        reach = np.maximum(np.maximum(reach, other.reach[-1:, -1]), max(square, LEAST))
    return _intervals(change, reach, span, one.countable, alpha)[0]


def _reach(one: EachPerson, other: EachPerson, change: Floats) -> Floats:
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


def _bounded(paired: EachPerson, one: EachPerson, other: EachPerson, shift: Floats) -> EachPerson:
    """With both ends of what hidden reasons leave open of every change, which are not those of before and after."""
    if other.debiased is None or one.debiased is None or other.ends is None:
        return paired
    changed = revalued(replace(paired, debiased=other.debiased.changed(one.debiased, shift)))
    return replace(paired, ends=changed.ends)


def _fraction_change(one: EachPerson, other: EachPerson, j: int) -> tuple[Floats, Floats]:
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


def _intervals(
    found: Sampled, reach: Floats, span: float | None, countable: bool, alpha: float
) -> list[Interval]:
    """Intervals of mean changes, which lie between minus and plus the span of what changes, if that is known."""
    if found.words_after == DEBIASED:
        span = None
    if span and countable:
        method = "betting" if found.sample.n.max() <= BETTING_ROWS else "bernstein"
        made = replace(found, method=method, bounds=(-span, span)).intervals(alpha)
    else:
        added = _with_added(found, reach)
        columns = (
            added.intervals(alpha),
            added.by("t").notes(),
            found.sample.mean.tolist(),
            found.sample.n.tolist(),
            [None] * len(reach) if found.ends is None else [one.bounds for one in found.intervals(alpha)],
        )
        made = [
            replace(interval, estimate=estimate, n=n, method=ADDED, note=note, bounds=bounds)
            for interval, note, estimate, n, bounds in zip(*columns, strict=True)
        ]
    sure = [
        Interval(0.0, 0.0, 0.0, interval.n, KNOWN_ZERO) if far == 0.0 else interval
        for interval, far in zip(made, reach.tolist(), strict=True)
    ]
    return [NOBODY if n == 0 else one for one, n in zip(sure, found.sample.n.tolist(), strict=True)]


def _with_added(found: Sampled, reach: Floats) -> Sampled:
    """With two changed people added, at both ends too."""
    ends = found.ends and (_with_added(found.ends[0], reach), _with_added(found.ends[1], reach))
    sample = with_changed(found.sample, reach)
    return replace(found, sample=sample, method="hall", bounds=None, ends=ends)


def _width(bounds: tuple[float, float] | None) -> float | None:
    return None if bounds is None else bounds[1] - bounds[0]
