"""What is known of many ways of deciding on the same people, at once: by large samples, beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from felicific._audit.persons import EachPerson
from felicific._statistics.gaps import change_interval, range_interval
from felicific._statistics.intervals import Limits, Sample, hall_limits, with_added, with_changed
from felicific._typing import Floats, Truths


class Many(NamedTuple):
    """Estimates, and limits, of many things."""

    estimate: Floats
    low: Floats
    high: Floats

    def at(self, place: int | tuple[int, ...]) -> Many:
        """Some of them."""
        return Many(self.estimate[place], self.low[place], self.high[place])


class Along(NamedTuple):
    """What is known of many ways of deciding; gaps are of shape (ways, measures), means (ways, measures, groups).

    ``people`` are how many of every group a measure counts.
    """

    gaps: Many
    means: Many
    gap_changes: Many
    mean_changes: Many
    people: Floats


def is_plain(persons: EachPerson) -> bool:
    """Whether ways of deciding on these people can be looked at together: nothing is missing, divided or tied."""
    fractions = any(measure.over for measure in persons.measures)
    return persons.debiased is None and persons.cluster is None and not fractions


def changes_along(
    one: EachPerson,
    others: Sequence[EachPerson],
    kept: Sequence[Truths],
    compared: Truths,
    alpha: float,
    apart: float,
) -> Along:
    """Gaps and group means of many ways of deciding, and their changes from one.

    Parameters
    ----------
    one, others : EachPerson
        The baseline's decisions, and each of the ways.
    kept : sequence of bool array of shape (groups,)
        Groups about whom each of them decides as the baseline does, whoever belongs to them.
    compared : bool array of shape (groups, measures)
        Groups that gaps are between.
    alpha, apart : float
        Error probability of every gap and its change, and of every mean and its change.
    """
    shift = [other.origin - one.origin for other in others]
    changes = [other.values - one.values + by for other, by in zip(others, shift, strict=True)]
    change = _stacked([one.summed(part, one.codes, len(one.groups), one.inside) for part in changes])
    reach = np.where(np.stack(kept)[:, None, :], 0.0, one.reach[:-1, :-1].T)
    changed = with_changed(change, reach)
    after, before = _stacked([other.sample for other in others]), _stacked([one.sample])
    origin = np.stack([other.origin for other in others])[:, :, None]
    bounds = _bounds(one)
    low, high = hall_limits(after, apart / 2.0)
    means = Many(
        after.mean + origin, np.maximum(low + origin, bounds[0]), np.minimum(high + origin, bounds[1])
    )
    rates = np.stack([other.rates for other in others])[:, :, None]
    pairs, was = _pairs(after, rates, origin), _pairs(before, one.rates[None, :, None], one.origin[:, None])
    widest = (bounds[1] - bounds[0])[:, 0]
    gaps = []
    for j, own in enumerate(compared.T):
        here, then, before_it, by = (_only(part, j, own) for part in (after, pairs, was, changed))
        gap = np.ptp(here.mean, axis=-1)
        grown = gap - np.ptp(_only(before, j, own).mean, axis=-1)
        sides = *range_interval(then, alpha, corrected=True), *change_interval(before_it, then, by, alpha)
        gaps.append([np.broadcast_to(part, gap.shape) for part in (gap, grown, *sides)])
    gap, grown, lower, upper, least, most = (np.concatenate(part, axis=1) for part in zip(*gaps, strict=True))
    low, high = hall_limits(changed, apart / 2.0)
    known = reach == 0.0
    return Along(
        Many(gap, np.minimum(lower, widest), np.minimum(upper, widest)),
        means,
        Many(grown, np.maximum(least, -widest), np.minimum(most, widest)),
        Many(*(np.where(known, 0.0, part) for part in (change.mean, low, high))),
        change.n,
    )


def costs_along(one: EachPerson, others: Sequence[EachPerson], alpha: float) -> Many | None:
    """Changes of the loss from one way of deciding to each of others, with limits; None where it is not known."""
    if one.losses is None or any(other.losses is None for other in others):
        return None
    everyone = np.zeros(len(one.codes), dtype=np.intp)
    apart = [np.asarray(other.losses) - one.losses for other in others]
    change = _stacked([one.summed(losses[:, None], everyone, 1) for losses in apart])
    reach = one.reach[-1:, -1]
    changed = with_changed(change, np.broadcast_to(reach, change.mean.shape))
    low, high = hall_limits(changed, alpha / 2.0)
    known = reach == 0.0
    return Many(*(np.where(known, 0.0, part)[:, 0, 0] for part in (change.mean, low, high)))


def _stacked(samples: Sequence[Sample]) -> Sample:
    """Samples of shape (groups, measures) as one of shape (ways, measures, groups)."""
    n, mean, sd, skewness = (
        np.stack([getattr(sample, name).T for sample in samples]) for name in ("n", "mean", "sd", "skewness")
    )
    known = [sample.df for sample in samples if sample.df is not None]
    return Sample(n, mean, sd, skewness, np.stack([df.T for df in known]) if known else None)


def _pairs(sample: Sample, rates: Truths, origin: Floats) -> Sample:
    """The sample to compare groups by: of rates, with a success and a failure added to each."""
    if not rates.any():
        return sample
    n, mean, sd, skewness = sample.n, sample.mean + origin, sample.sd, sample.skewness
    added = with_added(Sample(n, np.clip(mean, 0.0, 1.0), sd, skewness, sample.df), 1.0)
    return Sample(
        np.where(rates, added.n, n),
        np.where(rates, added.mean, mean),
        np.where(rates, added.sd, sd),
        np.where(rates, added.skewness, skewness),
        sample.df,
    )


def _only(sample: Sample, j: int, groups: Truths) -> Sample:
    """One measure, and some of the groups, which are the last axis."""
    n, mean, sd, skewness = (
        part[:, [j]][..., groups] for part in (sample.n, sample.mean, sample.sd, sample.skewness)
    )
    return Sample(n, mean, sd, skewness, None if sample.df is None else sample.df[:, [j]][..., groups])


def _bounds(persons: EachPerson) -> Limits:
    """Known ranges of the measures, of shape (measures, 1)."""
    ends = [measure.bounds or (-np.inf, np.inf) for measure in persons.measures]
    low, high = np.array(ends, dtype=np.float64).T
    return low[:, None], high[:, None]
