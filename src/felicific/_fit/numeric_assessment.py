"""Assessment of amounts: what a policy does to people beside the baseline, how sure that is, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._audit.amounts import change_of_parity, with_parity
from felicific._audit.comparison import change_of_gap, change_of_loss, change_of_means, paired_persons
from felicific._audit.facts import Facts, Shift
from felicific._audit.flags import FEW, Flag
from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured
from felicific._audit.methods import audit_of
from felicific._audit.names import isolated, labels, listed
from felicific._audit.quantity import Quantity, counts
from felicific._audit.requirements import Stated, judged
from felicific._audit.result import Audit, Interval, MeasureAudit, RequirementAudit
from felicific._audit.verdict import Verdict, verdict_of
from felicific._audit.words_of_verdicts import SPELLED, sureness
from felicific._fit.certificate import Certificate
from felicific._people.checks import WeightKind
from felicific._people.people import People
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import FittedAmounts
from felicific._policy.numeric_outcome import SAME, AmountOutcome, outcome_of_amounts
from felicific._policy.words import loss_title
from felicific._problem.happiness import Happiness, Measure
from felicific._problem.numeric import MEAN_AMOUNT, NumericProblem, is_plain_amount
from felicific._problem.unions import compared_groups
from felicific._typing import Array, Codes, Floats


def measured_problem(problem: NumericProblem, unit: str = "") -> NumericProblem:
    """What is measured of amounts: what was asked, and the mean amount, which every reader wants to know."""
    if any(is_plain_amount(part) for part in problem.happiness):
        return problem
    amount = Happiness("decision", name=MEAN_AMOUNT, unit=unit)
    closed = (*problem.closed, MEAN_AMOUNT)  # so that it has a gap; nobody asked for it to be small
    return replace(problem, happiness=(*problem.happiness, amount), closed=closed)


def audit_amounts(problem: NumericProblem, people: People, confidence: float, together: int = 1) -> Audit:
    """An audit of what is decided on people; so many gaps hold together with this confidence."""
    found = audit_of(
        measured_of(people, problem),
        problem.widths,
        confidence=confidence,
        loss_name=problem.loss.name,
        gaps_together=together,
    )
    # Of distributions too, what is closed holds together.
    narrow = replace(found, confidence=1.0 - (1.0 - confidence) / together)
    return replace(with_parity(narrow, problem), confidence=confidence)


@dataclass(frozen=True, eq=False)
class AmountAssessment:
    """A policy of amounts on some people, beside the baseline's amounts.

    Attributes
    ----------
    problem : NumericProblem
        What is measured; see :func:`measured_problem`.
    policy : AmountPolicy
        The one that is proposed.
    before, free, after : Audit
        Of the baseline's amounts, of those of least loss without requirements, and of those that are proposed.
    confidence : float
    draws : float
        How many of the people draw their amount.
    in_sample : str
        How these are known to be people that it was fitted to.
    requirements : tuple of RequirementAudit
        What else was asked of the policy, and what these people make of it.
    certificate : Certificate or None
        What is promised of it.
    """

    problem: NumericProblem
    policy: AmountPolicy
    before: Audit
    free: Audit
    after: Audit
    confidence: float = 0.95
    randomized: float = 0.0
    in_sample: str = ""
    requirements: tuple[RequirementAudit, ...] = ()
    certificate: Certificate | None = None

    # -----------------------------------------------------------------------------------------------------
    # About whom, and what

    @property
    def measures(self) -> list[Measure]:
        """What is measured; distributional parity is the last."""
        return [part.measure for part in self.before.measures]

    def compared(self, j: int) -> Codes:
        """Groups that the gap of a measure is between."""
        return compared_groups(self.before.persons.left_out, self.measures[j].name, self.before.groups)

    @cached_property
    def anywhere(self) -> list[int]:
        """Groups that some gap is between."""
        return sorted({z for j in range(len(self.measures)) for z in self.compared(j).tolist()})

    @cached_property
    def closed(self) -> list[int]:
        """Measures whose gap was to be small, distributional parity first."""
        names = [measure.name for measure in self.measures]
        return [names.index(name) for name in self.policy.asked]

    @property
    def together(self) -> int:
        """How many gaps are closed."""
        return max(1, len(self.closed))

    def is_parity(self, j: int) -> bool:
        """Whether a measure is the distance between distributions."""
        return bool(self.problem.parity) and self.measures[j].name == self.problem.parity

    def is_amount(self, j: int) -> bool:
        """Whether a measure is the amount itself, of which nobody said that people want more."""
        return self.measures[j].name == MEAN_AMOUNT and MEAN_AMOUNT not in self.policy.asked

    # -----------------------------------------------------------------------------------------------------
    # What changes for the same people

    @staticmethod
    def _persons(audit: Audit) -> Measured:
        """The people of an audit."""
        return audit.persons

    @cached_property
    def _paired(self) -> Measured:
        return paired_persons(self._persons(self.before), self._persons(self.after))

    @cached_property
    def gap_changes(self) -> list[Interval | None]:
        """Changes of all gaps, of those that are closed together."""
        one, other = self._persons(self.before), self._persons(self.after)
        alpha, found = (1.0 - self.confidence) / self.together, []
        for j, part in enumerate(self.before.measures):
            change = None
            if self.is_parity(j):
                change = change_of_parity(self.before, self.after, alpha)
            elif part.gap is not None:
                change = change_of_gap(one, other, self._paired, j, self.compared(j), alpha)
            found.append(change)
        return found

    @cached_property
    def mean_changes(self) -> list[list[Interval]]:
        """Changes of every group's mean, all groups together; none of distributional parity, which has no means."""
        alpha = (1.0 - self.confidence) / (self.together * len(self.before.groups))
        return [
            [] if self.is_parity(j) else change_of_means(self._paired, j, alpha)
            for j, measure in enumerate(self.measures)
        ]

    @cached_property
    def cost(self) -> Interval | None:
        """Mean loss against the baseline's."""
        return self._cost(self.before)

    @cached_property
    def cost_free(self) -> Interval | None:
        """Mean loss against the least without requirements."""
        return self._cost(self.free)

    def _cost(self, beside: Audit) -> Interval | None:
        """Mean loss against that of another audit."""
        return change_of_loss(self._persons(beside), self._persons(self.after), 1.0 - self.confidence)

    @cached_property
    def root_cost(self) -> Interval | None:
        """Root mean squared error against the baseline's; None of another loss."""
        return self._root_cost(self.before)

    @cached_property
    def root_cost_free(self) -> Interval | None:
        """Root mean squared error against the least without requirements."""
        return self._root_cost(self.free)

    def _root_cost(self, beside: Audit) -> Interval | None:
        r"""What changes of a root, linearised: :math:`\sqrt{m}` moves by :math:`1 / (2 \sqrt{m})` of that of m."""
        if not self.problem.squared or beside.loss is None or self.after.loss is None:
            return None
        roots, parts = [], []
        for audit in (beside, self.after):
            assert audit.loss is not None, "both are known"
            root, persons = math.sqrt(max(audit.loss.estimate, 0.0)), self._persons(audit)
            if root == 0.0:  # it has no slope there
                return None
            assert persons.losses is not None, "they have a mean"
            reach = persons.reach.copy()
            reach[-1:, -1] /= (2.0 * root) ** 2
            roots.append(root)
            parts.append(replace(persons, losses=persons.losses / (2.0 * root), reach=reach))
        half = change_of_loss(parts[0], parts[1], 1.0 - self.confidence)
        assert half is not None, "both are known"
        shift = roots[1] - roots[0] - half.estimate
        return replace(half, estimate=half.estimate + shift, low=half.low + shift, high=half.high + shift)

    # -----------------------------------------------------------------------------------------------------
    # Who gets more, and who less

    @cached_property
    def more(self) -> Floats:
        """How many people of every group get more than from the baseline."""
        return self._moved(1.0)

    @cached_property
    def less(self) -> Floats:
        """How many people of every group get less than from the baseline."""
        return self._moved(-1.0)

    def _moved(self, way: float) -> Floats:
        one, other = self._persons(self.before), self._persons(self.after)
        assert one.amounts is not None, "amounts were audited"
        assert other.amounts is not None, "amounts were audited"
        slack = SAME * max(float(np.ptp(one.amounts)), float(np.ptp(other.amounts)), 1e-300)
        moved = way * (other.amounts - one.amounts) > slack
        weight = np.ones(len(moved)) if one.weight is None else one.weight
        return np.asarray(np.bincount(one.codes, weight * moved, minlength=len(one.groups)))

    # -----------------------------------------------------------------------------------------------------
    # Words

    @cached_property
    def quantities(self) -> list[Quantity]:
        """How numbers are written: by what is known of the gaps and of their change, else of the means."""
        found = []
        for j, measure in enumerate(self.measures):
            before, after = self.before.measures[j], self.after.measures[j]
            told = [one for one in (before.gap, after.gap, self.gap_changes[j]) if one is not None]
            told = told or [*before.means.values(), *after.means.values()]
            halves = [(one.high - one.low) / 2.0 for one in told if one.n]
            found.append(Quantity.of(measure.unit, halves, [one.estimate for one in told]))
        return found

    @cached_property
    def cost_quantity(self) -> Quantity:
        """How losses are written."""
        return _quantity_of("", [self.cost, self.cost_free], [self.after.loss])

    @cached_property
    def root_quantity(self) -> Quantity:
        """How roots of squared errors are written: in the unit of the amount, where that was said."""
        unit = next((part.unit for part in map(_of_amount, self.problem.happiness) if part is not None), "")
        return _quantity_of(unit, [self.root_cost, self.root_cost_free], [])

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """The groups as text."""
        return tuple(map(isolated, labels(self.before.groups)))

    @cached_property
    def titles(self) -> list[str]:
        """The measures as text."""
        return [*map(isolated, labels(map(self._title, range(len(self.measures)))))]

    def _title(self, j: int) -> str:
        """What a reader calls a measure; the amount itself that nobody gave a name is the mean amount."""
        measure = self.measures[j]
        own = self.problem.happiness[j] if not self.is_parity(j) else None
        unnamed = own is not None and is_plain_amount(own) and measure.name == "decision"
        return MEAN_AMOUNT if unnamed else measure.title

    # -----------------------------------------------------------------------------------------------------
    # What a verdict goes by

    @cached_property
    def facts(self) -> Facts:
        """What the verdict goes by."""
        persons, policy = self._persons(self.before), self.policy
        more, less = self.more, self.less
        order = [*self.closed, *(j for j in range(len(self.measures)) if j not in self.closed)]
        return Facts(
            groups=self.group_names,
            sizes=tuple(persons.seen.tolist()),
            compared=tuple(self.anywhere),
            shifts=tuple(self._shift(j) for j in order if self.before.measures[j].gap is not None),
            confidence=self.confidence,
            people=float(persons.sizes.sum()),
            changed=float(more.sum() + less.sum()),
            randomized=self.randomized,
            better=float(more.sum()),
            worse=float(less.sum()),
            cost=self.cost,
            cost_best=self.cost_free,
            cost_quantity=self.cost_quantity,
            in_sample=self.in_sample,
            held_baseline=self._held_baseline,
            requirements=self.requirements,
            promise=self._promise.basis if self._promise else "",
            promised_with=self._promise.confidence if self._promise else self.confidence,
            kept=False,
            sees_group=policy.sees_group,
            infers_group=policy.infers_group,
            labels="",
        )

    @property
    def _promise(self) -> Certificate | None:
        """The certificate, if it promises anything."""
        return None if self.certificate is None or self.certificate.basis == "none" else self.certificate

    @property
    def _held_baseline(self) -> bool:
        """Whether gaps alone were asked for, and all of them are shown to hold by the baseline."""
        tests = [self.before.measures[j].test for j in self.closed]
        shown = [test is not None and test.verdict == "at most" for test in tests]
        return bool(tests) and not self.requirements and all(shown)

    def _shift(self, j: int) -> Shift:
        """What becomes of one measure."""
        measure, before, after = self.measures[j], self.before.measures[j], self.after.measures[j]
        assert before.gap is not None, "it has a gap"
        assert after.gap is not None, "it has a gap"
        was, then = (
            () if self.is_parity(j) else tuple(_means(part)[self.compared(j)].tolist())
            for part in (before, after)
        )
        return Shift(
            measure=replace(measure, wanted=False) if self.is_amount(j) else measure,
            title=self.titles[j],
            quantity=self.quantities[j],
            before=before.gap,
            after=after.gap,
            change=self.gap_changes[j],
            means=tuple(self.mean_changes[j]),
            was=was,
            then=then,
            closed=j in self.closed,
            asked=self.policy.asked.get(measure.name, math.inf),
            bound=None if self._promise is None else self._promise.gaps.get(measure.name),
            without=self._without_few(was, then, self.compared(j)),
            compared=tuple(self.compared(j).tolist()),
            proof=self.after.measures[j].proof,
        )

    def _without_few(
        self, was: Sequence[float], then: Sequence[float], compared: Codes
    ) -> tuple[float, float] | None:
        """Gaps without tiny groups, where there are some and enough others."""
        large = self._persons(self.before).seen[compared] >= FEW
        if not was or large.all() or large.sum() < 2:
            return None
        return float(np.ptp(np.array(was)[large])), float(np.ptp(np.array(then)[large]))


def _means(part: MeasureAudit) -> Floats:
    """The means of a measure."""
    return np.array([mean.estimate for mean in part.means.values()])


def _of_amount(part: Happiness) -> Measure | None:
    """The measure of a happiness that is the amount itself."""
    return part.measure if is_plain_amount(part) else None


def _quantity_of(
    unit: str, changes: Sequence[Interval | None], others: Sequence[Interval | None]
) -> Quantity:
    """How numbers are written that changes are known of."""
    known = [one for one in changes if one is not None] or [one for one in others if one is not None]
    halves = [(one.high - one.low) / 2.0 for one in known]
    return Quantity.of(unit, halves, [one.estimate for one in known])


@dataclass(frozen=True, eq=False)
class AmountTryout:
    """People with labels, what the model predicts of them, and what is measured.

    Attributes
    ----------
    problem : NumericProblem
        What was asked, with the mean amount beside it.
    people : People
    keys : array of shape (n,)
        By which the lottery draws.
    weight_kind, cluster :
        As for an audit.
    """

    problem: NumericProblem
    people: People
    keys: Array
    weight_kind: WeightKind = None
    cluster: Array | None = None

    @classmethod
    def of(cls, problem: NumericProblem, people: People, unit: str = "", **known: Any) -> AmountTryout:
        """To try policies of a problem on people; ``unit`` is what amounts are counted in."""
        return cls(measured_problem(problem, unit), people, **known)

    def amounts(self, policy: AmountPolicy) -> Floats:
        """What a policy gives them."""
        return policy.given_to(self.people, self.keys)

    def outcome(self, policy: AmountPolicy) -> AmountOutcome:
        """What that does to them, without any interval."""
        return outcome_of_amounts(self.problem, self.people, self.amounts(policy))

    def decided(self, amounts: Floats) -> People:
        """The people as an audit sees them, with what was decided on each."""
        return replace(self.people.given(amounts), weight_kind=self.weight_kind, cluster=self.cluster)

    def audit(self, amounts: Floats, confidence: float, together: int = 1) -> Audit:
        """What amounts do to them, with intervals; so many gaps hold together."""
        return audit_amounts(self.problem, self.decided(amounts), confidence, together)

    def assessed(
        self,
        fitted: FittedAmounts,
        *,
        confidence: float = 0.95,
        in_sample: str = "",
        certificate: Certificate | None = None,
    ) -> AmountAssessment:
        """What a policy that was fitted does to them beside the baseline's amounts."""
        policy = fitted.policy
        together = max(1, len(policy.asked))
        before = self.audit(self.people.decided_baseline, confidence)
        after = self.audit(self.amounts(policy), confidence, together)
        lucky = policy.drawing(self.people.prediction, policy.codes_of(self.people))
        return AmountAssessment(
            self.problem,
            policy,
            before,
            self.audit(self.amounts(fitted.free), confidence),
            after,
            confidence,
            float(self.people.weights[lucky].sum()),
            in_sample,
            judged(after, Stated(policy.groups, policy.measures, {}, fitted.goals), before.persons.means),
            certificate,
        )


def verdict_on_amounts(made: AmountAssessment) -> Verdict:
    """What a policy of amounts comes to, with who gets more and who less, and what it costs."""
    facts = made.facts
    found = verdict_of(facts)
    flags = sorted([*found.flags, *_all_one_way(made)], key=lambda flag: -flag.level)
    numbers = [line for line in found.numbers if line[0] not in ("cost", "people")]
    more, less, randomized, people = counts([facts.better, facts.worse, facts.randomized, facts.people])
    who = f"{more} get more than from the baseline, {less} less, {randomized} at random, of {people}"
    costs = [
        (title, f"{was} -> {then}   change {change} ({span})")
        for title, was, then, change, span in _costs(made)
    ]
    told = found.sentence
    if found.reason not in ("same", "in-sample"):
        told = " ".join([found.sentence, *_who_and_cost(made, found)])
    return replace(found, sentence=told, flags=tuple(flags), numbers=(*numbers, *costs, ("people", who)))


def _costs(made: AmountAssessment) -> list[tuple[str, str, str, str, str]]:
    """What it costs, of a squared error by its root: what that is called, before, then, its change and limits."""
    if made.cost is None or made.before.loss is None or made.after.loss is None:
        return []
    quantity, change, title = made.cost_quantity, made.cost, loss_title(made.policy.loss_name)
    ends = [made.before.loss.estimate, made.after.loss.estimate]
    if made.root_cost is not None:
        quantity, change, title = made.root_quantity, made.root_cost, "root mean squared error"
        ends = [math.sqrt(end) for end in ends]
    span = quantity.change_span(change.low, change.high)
    return [(title, *quantity.texts(ends), quantity.change(change.estimate), span)]  # type: ignore[list-item]  # two ends


def _who_and_cost(made: AmountAssessment, verdict: Verdict) -> list[str]:
    """How sure it is that gaps change, who gets more on average and who less, and what that costs; in sentences."""
    found, sure = [], f"with {sureness(made.confidence)} confidence"
    shown = [] if verdict.reason == "chance" else [j for j in made.closed if made.gap_changes[j] is not None]
    for j in shown[:1] if len(shown) == 1 else []:
        change = made.gap_changes[j]
        assert change is not None, "it is known"
        span = made.quantities[j].change_span(change.low, change.high)
        found.append(f"For people like these the change is {span} {sure}.")
    amount = next((j for j, part in enumerate(made.problem.happiness) if is_plain_amount(part)), None)
    # Who is taken from is said already.
    if amount is not None and not (verdict.kind == "levels-down" and amount in made.closed):
        means = made.mean_changes[amount]
        order = sorted(range(len(means)), key=lambda z: -abs(means[z].estimate) if means[z].n else 0.0)
        each = [
            f"{made.group_names[z]} {made.quantities[amount].change(means[z].estimate)}"
            for z in sorted(order[:SPELLED])
        ]
        left = len(means) - SPELLED
        rest = [f"{left} more groups" if left > 1 else "one more group"] if left > 0 else []
        found.append(f"On average beside the baseline: {listed([*each, *rest])}.")
    for title, was, then, _, span in _costs(made):
        found.append(f"The {title} goes from {was} to {then}, a change of {span}.")
    return found


def _all_one_way(made: AmountAssessment) -> list[Flag]:
    """That all groups get less, or more, where nobody said what people want."""
    amounts = [j for j in range(len(made.measures)) if made.is_amount(j)]
    for j in amounts:
        changes = [made.mean_changes[j][z] for z in range(len(made.group_names))]
        if len(changes) > 1 and all(change.high < 0.0 for change in changes):
            each = listed(
                f"{made.group_names[z]} {made.quantities[j].change(change.estimate)}"
                for z, change in enumerate(changes[:3])
            )
            told = f"Mean amounts: {each}. If people want more, this levels all of them down."
            return [Flag("every-group-less", 2, "Every group gets less", told)]
    return []
