"""What was asked of a policy, and whether it is met by what it does to the people of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from felicific._audit.measured import Measured, groups_compared
from felicific._audit.methods import audit_measure, sample_of
from felicific._audit.result import Audit, Interval, MeasureAudit, RequirementAudit
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure
from felicific._problem.linear import STATISTICS, Goal
from felicific._problem.unions import LeftOutBy, compared_groups
from felicific._statistics.gaps import DELTA, SCORE, smallest_limits
from felicific._typing import Codes, Floats

UNMEASURED = "it was not measured: name it as happiness, as it was when the policy was fitted"
ENDS = "it speaks of the worst case, and audits say between which ends a mean lies"
UNSAID = "the policy does not say how much was asked for"
OPEN = "hidden reasons leave it open, and there are no bounds for ratios"
NOBODY = "none of these people are of the groups that it speaks of"


@dataclass(frozen=True, eq=False)
class Stated:
    """What was asked of a policy, as it remembers it.

    Attributes
    ----------
    groups, measures : tuple
        Of the people that it was fitted on.
    asked : dict
        Gaps of all groups.
    requirements : tuple of Goal
        What else was asked.
    left_out : dict of measure name to LeftOut
        Whom these gaps do not compare.
    """

    groups: tuple[Any, ...]
    measures: tuple[Measure, ...]
    asked: dict[str, float]
    requirements: tuple[Goal, ...]
    left_out: LeftOutBy = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> Stated:
        """Of a policy of decisions."""
        return cls(
            policy.groups, policy.measures, policy.basis.allowed, policy.basis.requirements, policy.left_out
        )


@dataclass(frozen=True)
class Judge:
    """Looks at every requirement of a policy on the people of an audit.

    Attributes
    ----------
    found : Audit
    policy : Stated
        What was asked for.
    baseline : array of shape (groups, measures), or None
        Group means of the baseline's decisions about these people.
    of_baseline : bool
        Whether the decisions that are audited are the baseline's own, by which nobody gets less than from the baseline.
    """

    found: Audit
    policy: Stated
    baseline: Floats | None
    of_baseline: bool = False

    def rows(self) -> tuple[RequirementAudit, ...]:
        """One for each requirement, the gaps of all groups first."""
        said = self.policy.requirements
        words, rows = {asked.words for asked in said}, []
        for name, width in self.policy.asked.items():
            row = self._gap(name, width)
            rows += [] if row.words in words else [row]
        return (*rows, *(self._judged(asked) for asked in said))

    def _gap(self, name: str, width: float) -> RequirementAudit:
        """A gap of all groups, which is audited anyway."""
        measure = next(one for one in self.policy.measures if one.name == name)
        words = f"gap of {name!r} at most {measure.quantity(width)}"
        persons, names = self.found.persons, [part.measure.name for part in self.found.measures]
        part = None
        if name in names:  # of what is set aside, an audit that asks for other gaps has none
            j = names.index(name)
            own = compared_groups(self.policy.left_out, name, persons.groups)
            audited = np.array_equal(own, groups_compared(persons, j))
            part = self.found.measures[j]
            part = part if audited and part.gap is not None else self._compare(persons, j, own)
        gap = None if part is None else part.gap
        if part is None or gap is None:
            return RequirementAudit(words, measure, "gap", _unknown(UNMEASURED), None)
        asked = Goal(words, 0, "gap", np.zeros((0, 0)), (), upper=width)
        means = [self.found[name].means[persons.groups[z]] for z in own]
        size = max((abs(mean.estimate) for mean in means if mean.n), default=0.0)
        met = asked.met(gap.estimate, size) if all(mean.n for mean in means) else None
        shown, refuted = part.proof and width > 0.0 and gap.high <= width, gap.low > width and not met
        return RequirementAudit(words, measure, "gap", gap, met, shown, refuted)

    def _judged(self, asked: Goal) -> RequirementAudit:
        """A requirement that the policy remembers: the same people together, in the mix that they are in here."""
        persons, measure = self.found.persons, self.policy.measures[asked.j]
        names = [one.name for one in persons.measures]
        if measure.name not in names:
            end = any(measure.name in (one.ends or ()) for one in self.policy.measures)
            return RequirementAudit(
                asked.words, measure, asked.statistic, _unknown(ENDS if end else UNMEASURED), None
            )
        j, (place, held) = names.index(measure.name), self._unions(asked)
        if len(held) < (1 if asked.statistic == "mean" else 2):
            return RequirementAudit(asked.words, measure, asked.statistic, _unknown(NOBODY), None)
        merged = persons.merged(place, tuple(range(int(place.max()) + 1)))
        means = merged.means[held, j]
        known = means[~np.isnan(means)]
        number = STATISTICS[asked.statistic](known) if len(known) == len(held) else math.nan
        reached, proof = self._interval(asked, merged, j, held)
        reached = replace(reached, estimate=number)
        if asked.baseline and self.baseline is not None:
            level = float(self.baseline[place == held[0], j][0])
            asked = replace(asked, lower=level)
            reached = replace(reached, note=f"the baseline mean of these people is {measure.quantity(level)}")
            # What it was of the fitted people is another number.
            asked = replace(asked, words=f"{asked.words.rpartition(' at least ')[0]} at least the baseline's")
        # Of means that are nothing but rounding, their range says what that is.
        widest = measure.widest if math.isfinite(measure.widest) else 0.0
        met = asked.met(number, float(np.abs(known).max(initial=widest)))
        if met is None and not reached.note:
            reached = replace(reached, note=UNSAID if not math.isnan(number) else "nobody is counted")
        kept = self.of_baseline and (asked.baseline or measure.tells_who)
        shown, refuted = _shown(asked, reached)
        return RequirementAudit(
            asked.words,
            measure,
            asked.statistic,
            reached,
            met,
            kept or (shown and proof),
            refuted and not (kept or met),
        )

    def _unions(self, asked: Goal) -> tuple[Codes, Codes]:
        """Of every group of these people which of the unions it belongs to, and those that somebody belongs to.

        Who belongs to none, or was not compared, stands behind all others.
        """
        here = {group: z for z, group in enumerate(self.found.persons.groups)}
        union = np.full(len(here), len(asked.shares))
        for number, shares in enumerate(asked.shares):
            for z in np.flatnonzero(shares > 0).tolist():
                if self.policy.groups[z] in here:
                    union[here[self.policy.groups[z]]] = number
        present, place = np.unique(union, return_inverse=True)
        return place, np.flatnonzero(present < len(asked.shares))

    def _compare(self, persons: Measured, j: int, places: Codes) -> MeasureAudit:
        """One measure of some people, of whom those at some places are compared."""
        alpha = 1.0 - self.found.confidence
        return audit_measure(persons, j, places, alpha, alpha, math.inf)

    def _interval(self, asked: Goal, merged: Measured, j: int, held: Codes) -> tuple[Interval, bool]:
        """What was reached, and whether that is proof."""
        alpha = 1.0 - self.found.confidence
        if asked.statistic == "gap":
            part = self._compare(merged, j, held)
            assert part.gap is not None, "a gap is what was asked for"
            return part.gap, part.proof
        found = sample_of(merged, j).only(held)
        if asked.statistic == "mean":
            return found.intervals(alpha)[0], found.proof
        if found.ends is not None:
            return replace(_unknown(OPEN), low=0.0, high=1.0), False
        rate, sample = bool(merged.rates[j]), merged.sample.take(j).only(held)
        sample = replace(sample, mean=sample.mean + merged.origin[j])
        ends = (0.0, 1.0)
        if sample.mean.max() > 0.0 and sample.mean.min() >= 0.0:
            low, high = smallest_limits(sample, alpha, rate=rate)
            ends = float(low), float(high)
        return Interval(math.nan, *ends, float(sample.n.min()), SCORE if rate else DELTA), rate


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
    stated = policy if isinstance(policy, Stated) else Stated.of(policy)
    return Judge(found, stated, baseline, of_baseline).rows()


def _shown(asked: Goal, reached: Interval) -> tuple[bool, bool]:
    """Whether an interval lies within what was asked for, or outside of it; a gap of 0 can never be shown."""
    if not (math.isfinite(asked.lower) or math.isfinite(asked.upper)) or math.isnan(reached.estimate):
        return False, False
    provable = asked.statistic != "gap" or asked.upper > 0.0
    inside = provable and asked.lower <= reached.low and reached.high <= asked.upper
    return inside, reached.high < asked.lower or reached.low > asked.upper


def _unknown(note: str) -> Interval:
    """Nothing is known."""
    return Interval(math.nan, -math.inf, math.inf, 0.0, "none", note)
