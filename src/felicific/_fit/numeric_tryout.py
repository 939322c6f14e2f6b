"""Tryout: people that policies of amounts are tried on, best not those that they were fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from felicific._audit.measured import judged
from felicific._audit.requirements import Stated
from felicific._audit.result import Audit
from felicific._fit.certificate import Certificate
from felicific._fit.numeric_assessment import AmountAssessment, audit_amounts, measured_problem
from felicific._people.checks import WeightKind
from felicific._people.people import People
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import FittedAmounts
from felicific._policy.numeric_outcome import AmountOutcome, outcome_of_amounts
from felicific._problem.numeric import NumericProblem
from felicific._typing import Array, Floats


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
