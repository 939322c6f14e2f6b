"""Fitted policies that see a signal: everything is known from sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np

from felicific._fit.fitted import Fitted, kept_people, share_drawn, stated
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._people.people import People
from felicific._policy.basis import UNCHANGED
from felicific._policy.cells import CellPolicy, solve_cells
from felicific._policy.fit_individual import ground_of
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._program.changes import ChangeCost
from felicific._program.generation import mixed_outcome
from felicific._program.moments import Moments, reweighted
from felicific._program.signals import Signal
from felicific._program.summing import sum_people, sum_whole


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedCells(Fitted):
    """A fitted policy that sees a signal.

    Attributes
    ----------
    policy : CellPolicy
    moments : Moments
        The sums that it was fitted on.
    labelled : Moments
        Those of the people with labels, which stay the same when the policy is recalibrated.
    """

    policy: CellPolicy
    moments: Moments
    labelled: Moments

    @classmethod
    def fit(
        cls,
        problem: Problem,
        people: People,
        kind: Signal,
        *,
        salt: str,
        randomize: bool,
        change_cost: ChangeCost = 0.0,
    ) -> Self:
        """Fit a policy that sees this signal to people with labels."""
        people = people.with_scores if kind.needs_proba else people
        signal = kind.matched(people.scores() if kind.needs_proba else None, people.predictions())
        moments = sum_whole(people, problem, signal).joined()
        moments.check_complete()
        solved = _solved(problem, moments, salt, change_cost)
        # The cost is found: what is kept, and stored, needs no parts of the people.
        moments = replace(moments, fold_mass=None, fold_loss=None, fold_today=None)
        policy = stated(problem, people, replace(solved, randomize=randomize))
        return cls(
            problem=problem,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            moments=moments,
            labelled=moments,
        )

    @property
    def sums(self) -> Moments:
        """The sums that the policy was fitted on."""
        return self.moments

    @cached_property
    def frontier(self) -> Frontier:
        """Every breakpoint, from the sums."""
        return cell_frontier(
            self.moments,
            self.closing,
            see_group=self.problem.see_group,
            salt=self.policy.salt,
            expected=self.policy.expected,
            out_of_fold=self.policy.basis.out_of_fold,
            change_cost=self.policy.change_cost,
        )

    def restated(self, policy: Policy) -> Policy:
        """By the sums where they suffice, else by the people."""
        policy = cast(CellPolicy, policy)  # a frontier's policies are of one kind
        if policy.randomize or policy.sums_suffice or policy.expected:
            return _rounded(self.problem, self.people, policy, self.moments)
        return stated(self.problem, kept_people(self.people), policy)

    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Solved again for people without labels: what looks at labels keeps its mean per cell."""
        fresh = sum_people(people, self.problem.lossless, self.labelled.signal)
        moments = reweighted(
            self.labelled,
            fresh,
            see_group=self.problem.see_group,
            exact_loss=not self.problem.loss.looks_at_y,
        )
        solved = _solved(self.problem, moments, self.policy.salt, self.policy.change_cost)
        policy = _rounded(
            self.problem, people, replace(solved, randomize=self.policy.randomize, expected=True), moments
        )
        pooled = float(moments.mass[self.labelled.mass <= 0].sum() / moments.total)
        kept = f"reweighted from the labelled people, {UNCHANGED}"
        kept += f", pooled over neighbours for the {pooled:.2%} in cells without any" if pooled else ""
        fitted = replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            moments=moments,
            certificate=None,
        )
        return fitted, self.recalibration(kept)


def _solved(problem: Problem, moments: Moments, salt: str, change_cost: ChangeCost) -> CellPolicy:
    return solve_cells(
        moments, problem.requirements, see_group=problem.see_group, salt=salt, change_cost=change_cost
    )


def _rounded(problem: Problem, people: People | None, policy: CellPolicy, moments: Moments) -> CellPolicy:
    """With what its rounded decisions do by the sums, or are expected to do to people without labels."""
    if policy.randomize:
        return policy
    if policy.sums_suffice:
        return replace(policy, outcome=moments.evaluate(np.eye(len(policy.classes))[policy.q.argmax(axis=2)]))
    people = kept_people(people)
    ground = ground_of(problem, replace(people, y=None, labels=None), None)
    return replace(policy, outcome=mixed_outcome(ground.crowd, ground.real, policy.odds_of(people)))
