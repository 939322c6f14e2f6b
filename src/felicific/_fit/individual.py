"""Fitted policies that see all of x: moving them needs the people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, cast

from felicific._fit.fitted import Fitted, carried, kept_people, share_drawn, stated
from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier
from felicific._frontier.individual import individual_frontier
from felicific._people.people import People, changes, refuse_idle
from felicific._policy.basis import UNCHANGED
from felicific._policy.fit_individual import fit_individual, ground_of, recalibrate_individual
from felicific._policy.individual import IndividualPolicy
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._program.change_cost import ChangeCost
from felicific._program.crowd import Ledgers
from felicific._program.generation import mixed_outcome
from felicific._program.signals import Individual


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedIndividual(Fitted):
    """A fitted policy that sees all of x.

    Attributes
    ----------
    policy : IndividualPolicy
    fingerprint : str
        Of the people that it was fitted on.
    """

    policy: IndividualPolicy
    fingerprint: str

    @classmethod
    def fit(
        cls,
        problem: Problem,
        people: People,
        kind: Individual,
        *,
        salt: str,
        randomize: bool,
        change_cost: ChangeCost = 0.0,
    ) -> Self:
        """Fit a policy that sees all of x to people with labels."""
        people = people.with_scores
        problem.check_groups(people.groups)
        refuse_idle(problem, changes(problem, people))
        policy, fingerprint = fit_individual(problem, people, kind, salt, change_cost)
        policy = stated(problem, people, replace(policy, randomize=randomize))
        return cls(
            problem=problem,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=people,
            fingerprint=fingerprint,
        )

    def traced(self, closing: Closing) -> Frontier:
        """The frontier of mixtures of a pool of deterministic policies."""

        def ground() -> Ledgers:
            people, policy = kept_people(self.people), self.policy
            return ground_of(
                self.problem, people, policy.calibration, policy.origin, change_cost=policy.change_cost
            )

        return individual_frontier(self.problem, ground, self.policy, closing)

    def restated(self, policy: Policy) -> Policy:
        """By the people, if its decisions are rounded."""
        policy = cast(IndividualPolicy, policy)  # a frontier's policies are of one kind
        if policy.randomize:
            return policy
        people = kept_people(self.people)
        return (_expected if policy.expected else stated)(self.problem, people, policy)

    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Searched again on people without labels, of whom calibrated probabilities say what to expect."""
        people = people.with_scores
        policy, fingerprint = recalibrate_individual(self.problem, people, self.policy, self.fingerprint)
        if policy is self.policy:
            return self, dict.fromkeys(policy.gaps, "unchanged: it was fitted on these very people")
        policy = replace(policy, randomize=self.policy.randomize, expected=True)
        policy = carried(_expected(self.problem, people, policy), self.policy)
        fitted = replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=people,
            fingerprint=fingerprint,
            certificate=None,
        )
        how = (
            "calibrated probabilities"
            if self.problem.sees_group
            else "the model's probabilities in every group"
        )
        return fitted, self.recalibration(f"expected by {how}, {UNCHANGED}")


def _expected(problem: Problem, people: People, policy: IndividualPolicy) -> IndividualPolicy:
    """With what is expected of its rounded decisions about people without labels, if it is rounded."""
    if policy.randomize:
        return policy
    ground = ground_of(problem, replace(people, y=None, labels=None), policy.calibration)
    probabilities = policy.probabilities_of(people)
    return replace(policy, outcome=mixed_outcome(ground.crowd, ground.real, probabilities, policy.left_out))
