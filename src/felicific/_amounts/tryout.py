"""Tryout: people that policies of amounts are tried on, best not those that they were fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from felicific._amounts.assessment import AmountAssessment, audit_amounts, measured_problem
from felicific._amounts.fit import FittedAmounts
from felicific._amounts.outcome import amounts_given, codes_seen, outcome_of_amounts
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._audit.requirements import judged
from felicific._audit.result import Audit
from felicific._fit.certificate import Certificate
from felicific._people.checks import WeightKind
from felicific._people.people import People
from felicific._policy.amounts import AmountPolicy
from felicific._policy.lines import AmountOutcome
from felicific._typing import Array, Floats


@dataclass(frozen=True, eq=False)
class AmountTryout:
    """People with labels, what the model predicts of them, and what is measured.

    Attributes
    ----------
    problem : LinesProblem
        What was asked, with the mean amount beside it.
    people : AmountPeople
    keys : array of shape (n,)
        By which the lottery draws.
    weight_kind, cluster :
        As for an audit.
    """

    problem: LinesProblem
    people: AmountPeople
    keys: Array
    weight_kind: WeightKind = None
    cluster: Array | None = None

    @classmethod
    def of(cls, problem: LinesProblem, people: AmountPeople, unit: str = "", **known: Any) -> AmountTryout:
        """To try policies of a problem on people; ``unit`` is what amounts are counted in."""
        return cls(measured_problem(problem, unit), people, **known)

    def amounts(self, policy: AmountPolicy) -> Floats:
        """What a policy gives them."""
        return amounts_given(policy, self.people, self.keys)

    def outcome(self, policy: AmountPolicy) -> AmountOutcome:
        """What that does to them, without any interval."""
        return outcome_of_amounts(self.problem, self.people, self.amounts(policy))

    def decided(self, amounts: Floats) -> People:
        """The people as an audit sees them, with what was decided on each."""
        people = self.people
        found = People.of(
            people.x,
            self.problem,
            group=people.group,
            y=people.y,
            baseline=people.decided_baseline,
            decided=amounts,
            weight=people.weight,
            weight_kind=self.weight_kind,
            cluster=self.cluster,
            rows=people.rows,
            attributes=people.attributes,
        )
        return replace(found, left_out=people.left_out)

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
        lucky = policy.drawing(self.people.prediction, codes_seen(policy, self.people))
        return AmountAssessment(
            self.problem,
            policy,
            before,
            self.audit(self.amounts(fitted.free), confidence),
            after,
            confidence,
            float(self.people.weights[lucky].sum()),
            in_sample,
            judged(after, fitted.stated, before.persons.means),
            certificate,
        )
