"""From what every person gets to an audit: means, gaps and ratios of requirements with their intervals and tests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from felicific._audit.methods import Sampled, measure_loss, sample_of
from felicific._audit.persons import Persons, groups_compared
from felicific._audit.requirements import Judge, Stated
from felicific._audit.result import (
    NOBODY,
    Audit,
    GapTest,
    Interval,
    MeasureAudit,
    RequirementAudit,
    verdict_of,
)
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure, written
from felicific._problem.requirements import Gap
from felicific._problem.unions import whom_left_out
from felicific._statistics.gaps import chance_gap, ordered_pairs, spread_of
from felicific._statistics.intervals import Limits
from felicific._typing import Codes, Floats, Truths

#: What is said of groups that are not compared, and of those in which a measure counts few people.
LEFT_OUT, FEW = "not compared", "few people"

#: What n is where people do not count alike.
_EFFECTIVE = "n is as many independent people as would tell as much"


def fewest() -> float:
    """Of how many people a group is that gap= compares."""
    return Gap.min_people


def measure_people(
    persons: Persons,
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
        _audit_measure(persons, j, groups_compared(persons, j), alpha, alpha / gaps_together, allowed[j])
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


def judged(
    found: Audit,
    policy: Policy | Stated,
    baseline: Floats | None,
    *,
    of_baseline: bool = False,
) -> tuple[RequirementAudit, ...]:
    """What was asked of a policy, and what the people of its audit make of it; ``baseline`` are means without it.

    Or, ``of_baseline``, what they make of it as things are: the audit is that of the baseline's decisions.
    """
    alpha = 1.0 - found.confidence

    def compare(persons: Persons, j: int, places: Codes) -> MeasureAudit:
        return _audit_measure(persons, j, places, alpha, alpha, math.inf)

    stated = policy if isinstance(policy, Stated) else Stated.of(policy)
    return Judge(found, stated, baseline, compare, of_baseline).rows()


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


def _audit_measure(
    persons: Persons,
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
        return _measured(measure, persons.groups, everyone, known, *how)
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
        part = _measured(measure, some, found, compared, apart, together, allowed)
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


def _measured(
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
    persons, lines = found.persons, []
    for j, measure in enumerate(persons.measures):
        everyone = sample_of(persons, j)
        own = np.array([z for z in groups_compared(persons, j) if everyone.sample.n[z] > 0], dtype=np.intp)
        if len(own) < 2 or found.measures[j].gap is None:
            continue
        some = everyone.only(own)
        mean, (low, high) = some.sample.mean, some.means.pair_limits(1.0 - found.confidence)
        for p, (a, b) in enumerate(zip(*map(np.ndarray.tolist, ordered_pairs(len(own))), strict=True)):
            if (mean[a], -a) > (mean[b], -b):
                one = {"measure": measure.name, "higher": str(persons.groups[own[a]])}
                one |= {"lower": str(persons.groups[own[b]]), "difference": float(mean[a] - mean[b])}
                one |= {
                    "low": max(float(low[p]), -measure.widest),
                    "high": min(float(high[p]), measure.widest),
                }
                lines.append(one | {"n": float(some.sample.n[[a, b]].min()), "method": some.means.words})
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


def _notes(persons: Persons, measures: tuple[MeasureAudit, ...], unlabelled: int) -> list[str]:
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


def _look_like_rates(persons: Persons) -> Truths:
    """Measures of unknown range whose squares have the mean of the values, as those of 0 and 1 do."""
    sample, unknown = persons.sample, np.array([measure.bounds is None for measure in persons.measures])
    mean = sample.mean + persons.origin
    variance = sample.sd**2 * (sample.n - 1.0) / np.maximum(sample.n, 1.0)
    alike = (np.abs(variance - mean * (1.0 - mean)) <= 1e-9).all(axis=0)
    return np.asarray(alike & (variance > 0).any(axis=0) & unknown)
