"""Assessment: what policies do to the same people beside the baseline, how sure that is, and the verdict on each.

A policy that was proposed before looking is known to limits that hold with the confidence, all gaps that are closed
together. Others are chosen after looking: their limits hold at all of them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from felicific._audit.comparison import (
    change_of_gap,
    change_of_loss,
    change_of_means,
    paired_persons,
)
from felicific._audit.facts import Facts, Shift
from felicific._audit.flags import FEW
from felicific._audit.measured import Measured
from felicific._audit.methods import audit_of, sample_of
from felicific._audit.names import isolated, labels
from felicific._audit.quantity import PER_THOUSAND, Quantity
from felicific._audit.requirements import judged
from felicific._audit.result import Audit, Interval, make_intervals
from felicific._audit.verdict import Verdict, verdict_of
from felicific._fit.certificate import TESTED, Certificate
from felicific._fit.tryout import Effect, Tryout
from felicific._frontier.frontier import Frontier
from felicific._policy.policy import Policy
from felicific._problem.loss import is_accuracy
from felicific._problem.unions import compared_by
from felicific._typing import Codes, Floats, Truths

#: How the interval of a gap is made that was chosen after looking.
CHOSEN = "t, widened for skewness, at all positions together (large sample)"


class Every(NamedTuple):
    """What holds at all positions together: changes of the gaps and of the loss, and what the gaps are at most."""

    gaps: list[Interval | None]
    cost: Interval | None
    bounds: list[float | None]


class Known(NamedTuple):
    """What is known of a policy beside the baseline's decisions; by measure, and then by group."""

    gaps: list[Interval | None]
    means: list[list[Interval]]
    gap_changes: list[Interval | None]
    mean_changes: list[list[Interval]]
    cost: Interval | None
    cost_best: Interval | None
    every: Every


@dataclass(frozen=True, eq=False)
class Assessment:
    """Policies on the same people, beside the baseline's decisions.

    Attributes
    ----------
    tried : Tryout
        The people, and what is asked.
    policy : Policy
        The one that is proposed.
    closed : tuple of int
        Measures whose gap was to be closed.
    confidence : float
    places : int
        How many other policies may be looked at.
    chosen : int
        Out of how many the one that is proposed was chosen by looking at these very people.
    best : Policy or None
        That of least loss with gaps ignored, of the same kind.
    certificate : Certificate or None
        What is promised of the one that is proposed.
    in_sample : str
        How these are known to be people that it was fitted to.
    labels : {"all", "selected"} or None
        Whose labels these are, if somebody said it.
    others : tuple of str
        Other measures whose gap is shown to grow under the one that is proposed.
    """

    tried: Tryout
    policy: Policy
    closed: tuple[int, ...]
    confidence: float = 0.95
    places: int = 1
    chosen: int = 1
    best: Policy | None = None
    certificate: Certificate | None = None
    in_sample: str = ""
    labels: str | None = None
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, tried: Tryout, line: Frontier, policy: Policy, **told: Any) -> Assessment:
        """Of a policy and the frontier that it lies on."""
        closed = tuple(np.flatnonzero(np.isfinite(line.ray)).tolist())
        return cls(tried, policy, closed, best=line.policies_at(line.tau[-1:])[0], **told)

    # -----------------------------------------------------------------------------------------------------
    # The baseline, and what is proposed

    @cached_property
    def baseline(self) -> Effect:
        """What the baseline's decisions do."""
        return self.tried.effect()

    @cached_property
    def proposed(self) -> Effect:
        """What the policy that is proposed does."""
        return self.tried.effect(self.policy)

    @cached_property
    def at_best(self) -> Measured | None:
        """What the policy of least loss does."""
        return None if self.best is None else self.tried.persons(self.best)

    @cached_property
    def before(self) -> Audit:
        """An audit of the baseline's decisions."""
        return self._audit(self.baseline.persons)

    @cached_property
    def after(self) -> Audit:
        """An audit of the policy that is proposed, with what these people make of what was asked."""
        found = self._audit(self.proposed.persons, self.together)
        return replace(found, requirements=judged(found, self.policy, self.before.persons.means))

    def _audit(self, persons: Measured, together: int = 1) -> Audit:
        problem = self.tried.problem
        about = {"confidence": self.confidence, "loss_name": problem.loss.name}
        return audit_of(persons, problem.widths, gaps_together=together, **about)  # type: ignore[arg-type]

    @cached_property
    def held_baseline(self) -> bool:
        """Whether something was asked, and all of it is shown to hold by the baseline."""
        rows = judged(self.before, self.policy, self.before.persons.means, of_baseline=True)
        return bool(rows) and all(row.shown for row in rows) and not self.policy.explore

    # -----------------------------------------------------------------------------------------------------
    # How sure that is

    @cached_property
    def told(self) -> list[int]:
        """Measures that have a gap."""
        return [j for j, part in enumerate(self.before.measures) if part.gap is not None]

    @cached_property
    def together(self) -> int:
        """How many gaps are closed."""
        return max(1, len(set(self.told) & set(self.closed)))

    @cached_property
    def compared(self) -> Truths:
        """Groups that the gap of every measure is between, of shape (groups, measures)."""
        persons = self.baseline.persons
        return compared_by(persons.left_out, [one.name for one in persons.measures], persons.groups)

    def _compared(self, j: int) -> Codes:
        """Positions of those of one measure."""
        return np.flatnonzero(self.compared[:, j])

    @cached_property
    def known(self) -> Known:
        """What is known of the policy that is proposed."""
        one, other = self.baseline.persons, self.proposed.persons
        alpha = (1.0 - self.confidence) / self.chosen
        paired = paired_persons(one, other, self.proposed.kept)
        groups = len(one.groups)
        after = self.after if self.chosen == 1 else self._chosen(other, alpha / self.together)
        return Known(
            [part.gap for part in after.measures],
            [[*part.means.values()] for part in after.measures],
            self._gap_changes(other, paired, alpha / self.together),
            [change_of_means(paired, j, alpha / (self.together * groups)) for j in range(len(one.measures))],
            change_of_loss(one, other, alpha),
            None if self.at_best is None else change_of_loss(self.at_best, other, alpha),
            self._every(other, paired),
        )

    def _chosen(self, persons: Measured, alpha: float) -> Audit:
        """An audit whose gaps are those of a policy that was chosen by looking at these people."""
        gaps = [self._gap(persons, j, alpha) for j in range(len(persons.measures))]
        parts = zip(self.after.measures, gaps, strict=True)
        return replace(
            self.after,
            measures=tuple(part if part.gap is None else replace(part, gap=gap) for part, gap in parts),
        )

    def known_of(self, effect: Effect) -> Known:
        """What is known of another policy, of which any may be chosen after looking; by large samples."""
        one, other = self.baseline.persons, effect.persons
        alpha = (1.0 - self.confidence) / self.places
        together, groups = alpha / self.together, len(one.groups)
        paired = paired_persons(one, other, effect.kept)
        every = self._every(other, paired)
        measures = range(len(one.measures))
        return Known(
            [
                None if self.before.measures[j].gap is None else self._gap(other, j, together)
                for j in measures
            ],
            [self._means(other, j, together / groups) for j in measures],
            every.gaps,
            [change_of_means(paired, j, together / groups, large=True) for j in measures],
            every.cost,
            None if self.at_best is None else change_of_loss(self.at_best, other, alpha, large=True),
            every,
        )

    def _every(self, other: Measured, paired: Measured) -> Every:
        """What holds at all positions together."""
        alpha = (1.0 - self.confidence) / self.places
        together, parts = alpha / self.together, self.before.measures
        bounds = [
            None if part.gap is None else self._gap(other, j, together).high for j, part in enumerate(parts)
        ]
        return Every(
            self._gap_changes(other, paired, together, large=True),
            change_of_loss(self.baseline.persons, other, alpha, large=True),
            [None if bound is None or math.isinf(bound) else bound for bound in bounds],
        )

    def _gap_changes(
        self, other: Measured, paired: Measured, alpha: float, *, large: bool = False
    ) -> list[Interval | None]:
        one = self.baseline.persons
        return [
            None
            if part.gap is None
            else change_of_gap(one, other, paired, j, self._compared(j), alpha, large=large)
            for j, part in enumerate(self.before.measures)
        ]

    def _gap(self, persons: Measured, j: int, alpha: float) -> Interval:
        """The gap, by large samples."""
        found = sample_of(persons, j, large=True).only(self._compared(j))
        (low, high), widest = found.means.gap(alpha), persons.measures[j].widest
        size, n = float(np.ptp(found.sample.mean)), float(found.sample.n.min())
        return Interval(size, min(low, widest), min(high, widest), n, CHOSEN)

    @staticmethod
    def _means(persons: Measured, j: int, alpha: float) -> list[Interval]:
        """Means of every group, by large samples."""
        found = sample_of(persons, j, large=True)
        low, high = found.limits(alpha / 2.0)
        sample, origin = found.sample, found.origin
        estimates = np.where(sample.n > 0, sample.mean + origin, np.nan)
        return make_intervals(estimates, low + origin, high + origin, sample.n, CHOSEN, [""] * len(low))

    # -----------------------------------------------------------------------------------------------------
    # Words

    @cached_property
    def quantities(self) -> list[Quantity]:
        """How numbers are written: by what is known of the baseline's gap, of the gap then, and of its change."""
        found = []
        for j, measure in enumerate(self.tried.problem.measures):
            before, known = self.before.measures[j], self.known
            gaps = [before.gap, known.gaps[j], known.gap_changes[j]]
            told = [gap for gap in gaps if gap is not None] or [*before.means.values(), *known.means[j]]
            halves = [(one.high - one.low) / 2.0 for one in told if one.n]
            found.append(Quantity.of(measure.unit, halves, [one.estimate for one in told]))
        return found

    @cached_property
    def cost_quantity(self) -> Quantity:
        """How costs are written."""
        costs = [cost for cost in (self.known.cost, self.known.cost_best) if cost is not None]
        unit = PER_THOUSAND if is_accuracy(self.tried.problem.loss.name) else ""
        halves = [(cost.high - cost.low) / 2.0 for cost in costs]
        return Quantity.of(unit, halves, [cost.estimate for cost in costs])

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """The groups as text."""
        return tuple(map(isolated, labels(self.baseline.persons.groups)))

    @cached_property
    def titles(self) -> list[str]:
        """The measures as text."""
        return [*map(isolated, labels(measure.title for measure in self.tried.problem.measures))]

    # -----------------------------------------------------------------------------------------------------
    # Verdicts

    @cached_property
    def verdict(self) -> Verdict:
        """That on the policy which is proposed."""
        return self.verdict_on(self.proposed, self.known)

    def verdict_on(self, effect: Effect, known: Known) -> Verdict:
        """That on any of the policies."""
        return verdict_of(self.facts(effect, known))

    def facts(self, effect: Effect, known: Known) -> Facts:
        """What a verdict goes by."""
        proposed = effect is self.proposed
        people, accuracy = self.baseline.persons.sizes, is_accuracy(self.tried.problem.loss.name)
        loss = effect.persons.loss_sample
        certified = self.certificate is not None and self.certificate.basis == TESTED
        promised = proposed and self.certificate is not None and self.certificate.basis != "none"
        requirements = [] if not proposed else self.after.requirements
        baseline, compared = effect is self.baseline, np.flatnonzero(self.compared.any(axis=1)).tolist()
        counted = np.minimum(
            self.baseline.persons.seen, self.baseline.persons.counted[:, self.told].min(axis=1)
        )
        return Facts(
            groups=self.group_names,
            sizes=tuple(counted.tolist()),
            compared=tuple(compared),
            shifts=tuple(self._shift(j, effect, known, promised) for j in self.told),
            confidence=self.confidence,
            people=float(people.sum()),
            changed=float(effect.changed.sum()),
            randomized=float(effect.randomized.sum()),
            better=float(effect.better.sum()),
            worse=float(effect.worse.sum()),
            cost=known.cost,
            cost_best=known.cost_best,
            cost_quantity=self.cost_quantity,
            in_sample=self.in_sample,
            held_baseline=self.held_baseline,
            requirements=tuple(
                row for row in requirements if row.statistic != "gap" or not self._plain(row.words)
            ),
            promise=self.certificate.basis if promised and self.certificate is not None else "",
            promised_with=self.confidence if self.certificate is None else self.certificate.confidence,
            promised_elsewhere=certified and not proposed,
            kept=bool(effect.kept.all()),
            best_is_free=not self.policy.basis.requirements and not self.policy.explore,
            sees_group=self.policy.sees_group and not baseline,
            infers_group=self.policy.infers_group and not baseline,
            accuracy=None if not accuracy or loss is None else 1.0 - float(loss.mean[0]),
            majority=self.majority if accuracy else None,
            others=self.others if proposed else (),
            labels=self._label_source,
            reference=self.tried.reference,
        )

    def _plain(self, words: str) -> bool:
        """Whether a requirement is a gap of all groups, which is looked at anyway."""
        return words not in {asked.words for asked in self.policy.basis.requirements}

    def _shift(self, j: int, effect: Effect, known: Known, promised: bool) -> Shift:
        measure, before, after = (
            self.tried.problem.measures[j],
            self.before.measures[j].gap,
            known.gaps[j],
        )
        assert before is not None, "it has a gap"
        assert after is not None, "it has a gap"
        compared = self._compared(j)
        was, then = (persons.means[compared, j] for persons in (self.baseline.persons, effect.persons))
        bounds = self.certificate.gaps if promised and self.certificate is not None else {}
        otherwise = not self.policy.basis.allowed and bool(self.policy.basis.requirements)
        return Shift(
            measure=measure,
            title=self.titles[j],
            quantity=self.quantities[j],
            before=before,
            after=after,
            change=known.gap_changes[j],
            means=tuple(known.mean_changes[j]),
            was=tuple(was.tolist()),
            then=tuple(then.tolist()),
            closed=j in self.closed and not (otherwise and effect is self.proposed),
            asked=self.policy.basis.allowed.get(measure.name, math.inf),
            bound=bounds.get(measure.name),
            asked_otherwise=otherwise,
            without=self._without_few(was, then, compared),
            compared=tuple(compared.tolist()),
            proof=self.after.measures[j].proof,
        )

    def _without_few(self, was: Floats, then: Floats, compared: Codes) -> tuple[float, float] | None:
        """Gaps without tiny groups, where there are some and enough others."""
        large = self.baseline.persons.seen[compared] >= FEW
        if large.all() or large.sum() < 2:
            return None
        return float(np.ptp(was[large])), float(np.ptp(then[large]))

    @cached_property
    def majority(self) -> float | None:
        """Share of the largest class among people whose label is known; None where nobody's is."""
        people = self.tried.people
        if people.labels is None:
            return None
        known = people.labels >= 0
        counts = np.bincount(people.labels[known], people.weights[known])
        return float(counts.max() / counts.sum()) if counts.sum() > 0 else None

    @property
    def _label_source(self) -> str | None:
        """Whose labels these are; empty where nothing looks at them, or what is missing was modelled."""
        looks = self.tried.problem.looks_at_y
        if not looks or self.baseline.persons.debiased is not None:
            return ""
        return self.labels
