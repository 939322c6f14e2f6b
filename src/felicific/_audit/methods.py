"""Measures: the values of some people with the method by which their means are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from felicific._audit.measured import Measured, bounds_of, groups_compared
from felicific._audit.result import (
    NOBODY,
    PAIR_COLUMNS,
    Audit,
    GapTest,
    Interval,
    MeasureAudit,
    make_intervals,
    verdict_of,
)
from felicific._problem.happiness import Measure, written
from felicific._problem.requirements import Gap
from felicific._problem.unions import whom_left_out
from felicific._statistics.bets import Counted, by_group
from felicific._statistics.gaps import (
    Bets,
    Ends,
    LargeSamples,
    Means,
    Rates,
    chance_gap,
    ordered_pairs,
    spread_of,
)
from felicific._statistics.intervals import METHODS, Limits, Sample, with_added
from felicific._typing import Codes, Floats, Truths

#: What is said of a fraction of which a lottery decides who is counted.
DELTA = ", delta method of a ratio of means"

#: What is said of means that missing labels are part of.
DEBIASED = ", missing labels debiased"


#: With fewer successes or failures than this in some group, a rate is not treated as normal.
FEWEST = 5


@dataclass(frozen=True, eq=False)
class Sampled:
    """What is known of one measure, or of the loss, group by group.

    Attributes
    ----------
    sample : Sample
        Of shape (groups,), relative to the origin.
    origin : float
        What to add to means and limits.
    method : {"exact", "bets", "large"}
        Of rates, of values within known bounds, of anything else.
    bounds : (low, high) or None
        Known range, relative to the origin.
    counted : callable
        How many people of each group lie in which bin of the bounds.
    rate : bool
        Whether all values are 0 or 1, by declaration; the origin is then 0.
    words_after : str
        What is said after the words of the method.
    ends : (Sampled, Sampled), or None
        Of what hidden reasons leave open: its least and its most.
    added : Sample, or None
        Of changes by large samples: with people added who changed, since those who do may not have been seen.
    """

    sample: Sample
    origin: float
    method: str
    bounds: tuple[float, float] | None
    counted: Callable[[], Counted]
    rate: bool = False
    words_after: str = ""
    ends: tuple[Sampled, Sampled] | None = None
    added: Sample | None = None

    @cached_property
    def means(self) -> Means:
        """The groups, to be compared two by two."""
        if self.ends is not None:
            least, most = (end._large for end in self.ends)
            return Ends(self.sample.mean, least, most)
        if self.method == "exact":
            return Rates(self.sample.mean, self.sample.n)
        if self.method == "bets":
            assert self.bounds is not None, "bets need bounds"
            return Bets(self.sample.mean, self.counted(), self.bounds)
        return self._large

    @property
    def _large(self) -> LargeSamples:
        sample = self.added or self.sample
        return LargeSamples(sample.mean, sample, self.bounds, self.rate)

    @property
    def proof(self) -> bool:
        """Whether it can be proved that a gap is at most so much: of rates, and within declared bounds by bets."""
        return self.means.proof or self.rate

    @property
    def pairs(self) -> Sample:
        """The sample to compare groups by: of rates, with a success and a failure added to each."""
        return with_added(self.sample, 1.0) if self.rate else self.sample

    def limits(self, tail: float) -> Limits:
        """Limits of every group's mean, relative to the origin."""
        return self.means.limits(tail)

    @property
    def open(self) -> Limits | None:
        """The least and the most that hidden reasons leave open of every group's mean, relative to the origin."""
        if self.ends is None:
            return None
        least, most = (end.sample.mean for end in self.ends)
        return np.minimum(least, self.sample.mean), np.maximum(most, self.sample.mean)

    def only(self, groups: Codes) -> Sampled:
        """Some of the groups."""
        counted, places = self.counted, groups.tolist()
        ends = None if self.ends is None else (self.ends[0].only(groups), self.ends[1].only(groups))
        few = partial(_some_of, counted, places)
        added = self.added and self.added.only(groups)
        return replace(self, sample=self.sample.only(groups), counted=few, ends=ends, added=added)

    @property
    def words(self) -> str:
        """The method in words."""
        if self.added is not None:
            return METHODS["changed"]
        return METHODS["added" if self.rate and self.method == "large" else self.method] + self.words_after

    @property
    def hits(self) -> Floats:
        """Of a rate: successes or failures in each group, whichever are fewer."""
        return self.sample.n * np.minimum(self.sample.mean, 1.0 - self.sample.mean)

    @property
    def skewed(self) -> Truths:
        """Groups that are too skewed for a large sample, by Cochran's rule."""
        skewed = self.sample.skewed
        for end in self.ends or ():
            skewed = skewed | end.skewed
        return skewed

    @property
    def normal(self) -> bool:
        """Whether differences of the means may be treated as normal."""
        if self.rate:
            return bool((self.hits >= FEWEST).all())
        return not bool(self.sample.silent.any() or self.skewed.any())

    def intervals(self, alpha: float) -> list[Interval]:
        """The interval of every group's mean."""
        low, high = self.limits(alpha / 2.0)
        means = self.sample.mean + self.origin, low + self.origin, high + self.origin
        made = make_intervals(*means, self.sample.n, self.words, self.notes())
        if self.open is None:
            return made
        ends = zip(*((side + self.origin).tolist() for side in self.open), strict=True)
        return [replace(one, bounds=bounds) for one, bounds in zip(made, ends, strict=True)]

    def notes(self) -> list[str]:
        """What to beware of in every group's mean; empty if nothing."""
        sample, notes = self.added or self.sample, []
        for z in range(len(sample.n)):
            note = ""
            if self.method == "large" and not self.rate and sample.freedom[z] < 1:
                note = "one person says nothing of the others"
                note += "" if sample.df is None else ", nor do few of very unequal weight, or few clusters"
            elif self.method == "large" and not self.rate and sample.silent[z]:
                note = "all values are equal, so nothing is known of their spread"
                note += "; bounds would help" if self.bounds is None and sample.df is None else ""
            elif self.method == "large" and self.rate and sample.df is not None and self.hits[z] < FEWEST:
                note = "too few successes or failures, counted as independent people, to rely on it"
            elif self.method == "large" and not self.rate and sample.skewed[z]:
                note = f"skewness {sample.skewness[z]:.1f}: may hold the truth less often than stated"
            notes.append(note)
        return notes


def _in_bins(persons: Measured, j: int, n_groups: int) -> Counted:
    return by_group(persons.in_bins(j), n_groups)


def _some_of(counted: Callable[[], Counted], places: list[int]) -> Counted:
    every = counted()
    return [every[z] for z in places]


def sample_of(persons: Measured, j: int, *, large: bool = False) -> Sampled:
    """One measure by the best method there is, or as a ``large`` sample."""
    return _measured(persons, j, persons.sample.take(j), large=large)


def _measured(persons: Measured, j: int, sample: Sample, *, large: bool = False) -> Sampled:
    """One measure, of which the sample is given."""
    origin, rate, bounds = float(persons.origin[j]), bool(persons.rates[j]), bounds_of(persons, j)
    method, counted = (
        "large" if large else _choose(persons, j),
        partial(_in_bins, persons, j, len(persons.groups)),
    )
    if is_debiased(persons, j):
        found = Sampled(_within(sample, bounds), origin, method, bounds, counted, words_after=DEBIASED)
        ends = persons.ends
        return replace(
            found, ends=ends and (sample_of(ends[0], j, large=True), sample_of(ends[1], j, large=True))
        )
    if persons.randomized and persons.measures[j].over:
        return Sampled(sample, origin, method, bounds, counted, words_after=DELTA)
    if not rate:
        return Sampled(sample, origin, method, bounds, counted)
    # Of a rate the origin is 0, 1 or one half, so nothing is lost by adding it.
    sample = replace(sample, mean=sample.mean + origin)
    return Sampled(sample, 0.0, method, (0.0, 1.0), counted, rate)


def is_debiased(persons: Measured, j: int) -> bool:
    """Whether missing labels are part of the values of a measure; of -1, of the loss."""
    return bool(persons.debiased_at[j])


def _within(sample: Sample, bounds: tuple[float, float] | None) -> Sample:
    """Means within bounds that are known, which those of debiased values may leave."""
    return sample if bounds is None else replace(sample, mean=np.clip(sample.mean, *bounds))


def measure_loss(persons: Measured) -> Sampled | None:
    """The loss of all people together, by the best method there is; None when it is not known."""
    sample = persons.loss_sample
    return None if sample is None else _measured_loss(persons, sample)


def _measured_loss(persons: Measured, sample: Sample) -> Sampled:
    counted = partial(_in_bins, persons, -1, 1)
    bounds = persons.loss_bounds if persons.loss_bounds is None or np.ptp(persons.loss_bounds) else None
    if is_debiased(persons, -1):
        found = Sampled(_within(sample, bounds), 0.0, "large", bounds, counted, words_after=DEBIASED)
        ends = persons.ends
        return replace(found, ends=ends and (_loss_at(ends[0]), _loss_at(ends[1])))
    method = _best(persons, persons.loss_rate, bounds)
    rate = persons.loss_rate and not persons.countable
    return Sampled(sample, 0.0, method, bounds, counted, rate)


def _loss_at(end: Measured) -> Sampled:
    """One end of the loss."""
    assert end.loss_sample is not None, "the loss is known"
    return _measured_loss(end, end.loss_sample)


def _best(persons: Measured, rate: bool, bounds: tuple[float, float] | None) -> str:
    """The most that can be said: exactly of rates, of any distribution within bounds, else by large samples."""
    if not persons.countable:
        return "large"
    return "exact" if rate else "large" if bounds is None else "bets"


class Known(NamedTuple):
    """Means of shape (groups, measures) and their limits, and those of the loss."""

    means: Floats
    low: Floats
    high: Floats
    loss: float
    loss_low: float
    loss_high: float


def limits_of(persons: Measured, tail: float) -> Known:
    """Means of every measure and of the loss, with their limits."""
    parts = [sample_of(persons, j) for j in range(len(persons.measures))]
    limits = [part.limits(tail) for part in parts]
    means, low, high = (
        np.stack([side + part.origin for side, part in zip(sides, parts, strict=True)], axis=1)
        for sides in ([part.sample.mean for part in parts], *zip(*limits, strict=True))
    )
    loss = measure_loss(persons)
    if loss is None:
        return Known(means, low, high, math.nan, -math.inf, math.inf)
    least, most = loss.limits(tail)
    return Known(means, low, high, float(loss.sample.mean[0]), float(least[0]), float(most[0]))


def _choose(persons: Measured, j: int) -> str:
    """By large samples where labels are missing or who is counted is random; else the best there is."""
    measure = persons.measures[j]
    if is_debiased(persons, j) or (persons.randomized and measure.over):
        return "large"
    return _best(persons, bool(persons.rates[j]), measure.bounds)


# ---------------------------------------------------------------------------------------------------------
# Audits


#: What is said of groups that are not compared, and of those in which a measure counts few people.
LEFT_OUT, FEW = "not compared", "few people"

#: What n is where people do not count alike.
_EFFECTIVE = "n is as many independent people as would tell as much"


def fewest() -> float:
    """Of how many people a group is that gap= compares."""
    return Gap.min_people


def audit_of(
    persons: Measured,
    allowed: list[float],
    *,
    confidence: float = 0.95,
    loss_name: str = "",
    unlabelled: int = 0,
    gaps_together: int = 1,
) -> Audit:
    """Make intervals for what is known person by person; ``allowed`` are the gaps to test (infinite: none).

    ``unlabelled`` are the rows whose labels are missing, where the loss is left out for that. So many
    ``gaps_together`` hold with this confidence.
    """
    alpha = 1.0 - confidence
    found = (
        audit_measure(persons, j, groups_compared(persons, j), alpha, alpha / gaps_together, allowed[j])
        for j in range(len(persons.measures))
    )
    measures = tuple(_marked(_set_aside(part), persons.numbers[:, j]) for j, part in enumerate(found))
    loss = measure_loss(persons)
    return Audit(
        measures=measures,
        loss=None if loss is None else loss.intervals(alpha)[0],
        groups=persons.groups,
        rows=persons.rows,
        confidence=confidence,
        notes=tuple(_notes(persons, measures, unlabelled)),
        persons=persons,
        loss_name=loss_name,
    )


def _marked(part: MeasureAudit, numbers: Floats) -> MeasureAudit:
    """With a mark at the groups of which it counts few people."""
    few = {group for group, number in zip(part.means, numbers, strict=True) if 0 < number < fewest()}
    means = {
        group: replace(mean, note="; ".join([*([mean.note] if mean.note else []), FEW]))
        if group in few
        else mean
        for group, mean in part.means.items()
    }
    return replace(part, means=means)


def _set_aside(part: MeasureAudit) -> MeasureAudit:
    """Of what only requirements speak of, group means alone, unless they ask for its gap."""
    if not part.measure.aside or part.test is not None:
        return part
    return replace(part, gap=None, bias=math.nan, between=None)


def audit_measure(
    persons: Measured,
    j: int,
    known: Codes,
    apart: float,
    together: float,
    allowed: float,
) -> MeasureAudit:
    everyone, measure = sample_of(persons, j), persons.measures[j]
    how = (apart, together, allowed)
    held = np.flatnonzero(everyone.sample.n > 0)
    if len(held) == len(persons.groups) and len(known) > 1:
        return _audit_groups(measure, persons.groups, everyone, known, *how)
    return _without_some(measure, persons.groups, everyone.only(held), held, known, *how)


def _without_some(
    measure: Measure,
    groups: tuple[Any, ...],
    found: Sampled,
    held: Codes,
    known: Codes,
    apart: float,
    together: float,
    allowed: float,
) -> MeasureAudit:
    """One measure, a fraction, in some groups of which nobody is counted: of these there is no number."""
    low, high = measure.bounds or (-math.inf, math.inf)
    none = replace(NOBODY, low=low, high=high)
    some, compared = tuple(groups[z] for z in held), np.flatnonzero(np.isin(held, known))
    if len(compared) > 1:
        part = _audit_groups(measure, some, found, compared, apart, together, allowed)
    else:
        means = dict(zip(some, _with_others(found.intervals(apart), compared), strict=True))
        note = "one group only" if len(known) < 2 else "fewer than two groups have somebody counted"
        gap = replace(none, low=0.0, high=measure.widest, note=note)
        test = GapTest(allowed, 1.0, 1.0, "undecided") if math.isfinite(allowed) else None
        part = MeasureAudit(measure, means if some else {}, gap, math.nan, test)
    part = replace(part, means={group: part.means.get(group, none) for group in groups})
    if len(compared) == len(known):
        return part
    # Without some groups a gap can be shown to be more, and never to be at most so much.
    test = part.test
    if test is not None:
        test = replace(test, p_exceeds=1.0, verdict=verdict_of(test.p_value, 1.0, together, proof=part.proof))
    spread = part.gap
    note = "not of groups in which nobody is counted"
    return replace(part, gap=spread and replace(spread, note=spread.note or note), test=test)


def _audit_groups(
    measure: Measure,
    groups: tuple[Any, ...],
    everyone: Sampled,
    known: Codes,
    apart: float,
    together: float,
    allowed: float,
) -> MeasureAudit:
    found = everyone if len(known) == len(groups) else everyone.only(known)
    sample = found.sample
    low, high = found.means.gap(together)
    widest = math.inf if found.bounds is None else found.bounds[1] - found.bounds[0]
    gap = Interval(
        float(sample.mean.max() - sample.mean.min()),
        min(low, widest),
        min(high, widest),
        float(sample.n.min()),
        found.means.words,
        bounds=None if found.ends is None or found.open is None else _pair(spread_of(found.open), widest),
    )
    test = None
    if math.isfinite(allowed):
        p = found.means.p_values(allowed, together)
        test = GapTest(allowed, *p, verdict_of(*p, together, proof=found.proof))
    means = dict(zip(groups, _with_others(everyone.intervals(apart), known), strict=True))
    bias = chance_gap(found.pairs)
    bias = min(bias, widest) if math.isfinite(bias) else bias
    top, bottom = (groups[known[z]] for z in (sample.mean.argmax(), sample.mean.argmin()))
    between = (top, bottom) if gap.estimate > 0.0 else None
    return MeasureAudit(measure, means, gap, bias, test, proof=found.proof, between=between)


def pairs_of(found: Audit) -> list[dict[str, Any]]:
    """Differences of all pairs of groups that are compared, one line each."""
    persons = found.persons
    lines: list[dict[str, Any]] = []
    for j, measure in enumerate(persons.measures):
        everyone = sample_of(persons, j)
        own = np.array([z for z in groups_compared(persons, j) if everyone.sample.n[z] > 0], dtype=np.intp)
        if len(own) < 2 or found.measures[j].gap is None:
            continue
        some = everyone.only(own)
        mean, (low, high) = some.sample.mean, some.means.pair_limits(1.0 - found.confidence)
        for p, (a, b) in enumerate(zip(*map(np.ndarray.tolist, ordered_pairs(len(own))), strict=True)):
            if (mean[a], -a) > (mean[b], -b):
                ends = max(float(low[p]), -measure.widest), min(float(high[p]), measure.widest)
                names = (str(persons.groups[own[z]]) for z in (a, b))
                size, n = float(mean[a] - mean[b]), float(some.sample.n[[a, b]].min())
                line = (measure.name, *names, size, *ends, n, some.means.words)
                lines.append(dict(zip(PAIR_COLUMNS, line, strict=True)))
    return lines


def _pair(limits: Limits, widest: float) -> tuple[float, float]:
    low, high = limits
    return min(float(low), widest), min(float(high), widest)


def _with_others(means: list[Interval], known: Codes) -> list[Interval]:
    """Means of all groups; of some it is said that they are not compared."""
    return [
        mean if z in known else replace(mean, note="; ".join([LEFT_OUT, *([mean.note] if mean.note else [])]))
        for z, mean in enumerate(means)
    ]


def _notes(persons: Measured, measures: tuple[MeasureAudit, ...], unlabelled: int) -> list[str]:
    notes = []
    if persons.loss_sample is None:
        lost = f"they are missing in {unlabelled:,} rows: say what is known of them (missing_labels)."
        notes.append(f"The loss needs labels, and {lost if unlabelled else 'there are none.'}")
    if persons.weighted:
        kind = "sampling weights" if persons.sampling else "frequencies"
        total = persons.sizes.sum()
        notes.append(
            f"The weights are {kind}: {persons.rows:,} rows stand for {written(total, 6)} people"
            + (f", which adds no evidence; {_EFFECTIVE}." if persons.sampling else ", who all count.")
        )
    notes += whom_left_out(persons.left_out)
    if any(FEW in mean.note for found in measures for mean in found.means.values()):
        notes.append(
            f"Groups of fewer than {fewest()} people are marked: gaps that chance alone makes are large between them. "
            f"min_people={fewest()} measures them and compares the others."
        )
    if persons.clusters is not None:
        notes.append(
            f"The rows come in {persons.clusters:,} clusters, and intervals go by how much these vary; {_EFFECTIVE}."
        )
    likely = [c.name for c, looks in zip(persons.measures, _look_like_rates(persons), strict=True) if looks]
    if likely and persons.countable:
        notes.append(
            f"The values of {', '.join(map(repr, likely))} are all 0 or 1 here. If they can be nothing else, "
            "write a comparison, or declare a rate (rate=True): intervals are then exact."
        )
    if any(found.test is not None and found.test.at_most == 0.0 for found in measures):
        notes.append("A gap of exactly 0 can be refuted and never shown.")
    return notes


def _look_like_rates(persons: Measured) -> Truths:
    """Measures of unknown range whose squares have the mean of the values, as those of 0 and 1 do."""
    sample, unknown = persons.sample, np.array([measure.bounds is None for measure in persons.measures])
    mean = sample.mean + persons.origin
    variance = sample.sd**2 * (sample.n - 1.0) / np.maximum(sample.n, 1.0)
    alike = (np.abs(variance - mean * (1.0 - mean)) <= 1e-9).all(axis=0)
    return np.asarray(alike & (variance > 0).any(axis=0) & unknown)
