"""Fitted policies that see a signal: everything is known from sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

from felicific._fit.fitted import Fitted, carried, kept_people, share_drawn, stated
from felicific._fit.losers import LosersRow, price_of_losers
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._people.people import People
from felicific._policy.basis import UNCHANGED
from felicific._policy.cells import CellPolicy, solve_cells
from felicific._policy.fit_individual import ground_of
from felicific._policy.grounds import idle, required
from felicific._policy.policy import Policy
from felicific._problem.happiness import LOSES
from felicific._problem.problem import Problem
from felicific._problem.rows import rows_of
from felicific._program.change_cost import ChangeCost
from felicific._program.evidence import Evidence
from felicific._program.generation import mixed_outcome
from felicific._program.moments import Moments
from felicific._program.reweighted import reweighted
from felicific._program.signals import Signal
from felicific._program.solution import solve_program
from felicific._program.summing import sum_people, sum_whole
from felicific._typing import Floats
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedCells(Fitted):
    """A fitted policy that sees a signal.

    Attributes
    ----------
    policy : CellPolicy
    moments : Moments
        The sums that it was fitted on.
    compared : Moments
        The same with who gets less than from today's decision.
    labelled : Moments
        Those of the people with labels, which stay the same when the policy is recalibrated.
    raw : Moments, or None
        Where labels are missing, the sums before anything is supposed of them.
    """

    policy: CellPolicy
    compared: Moments
    labelled: Moments
    raw: Moments | None = None

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
        seen = replace(people, decisions=problem.decisions)
        raw = sum_whole(seen, problem.with_losers if people.knows_today else problem, signal)
        compared = raw.completed().joined()
        compared.check_complete()
        moments = compared.of(with_ends(problem, compared))
        solved = _solved(problem, moments, salt, change_cost)
        policy = replace(solved, randomize=randomize)
        if raw.unlabelled is None:
            policy = stated(problem, people, policy)
        else:
            refuse_drawn(policy)
            policy = _rounded(problem, people, policy, moments)
        return cls(
            problem=problem,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            compared=compared,
            labelled=compared,
            raw=None if raw.unlabelled is None else raw,
        )

    def hiding(self, hidden: float) -> Self:
        """As if reasons outside the table had changed the odds of having a label at most so many fold."""
        raw = super().hiding(hidden).raw
        assert raw is not None, "labels are missing"
        compared = raw.completed(hidden).joined()
        moments = compared.of(with_ends(self.problem, compared))
        cost = self.policy.change_cost
        solved = _solved(self.problem, moments, self.policy.salt, cost)
        old = self.policy.basis
        basis = replace(solved.basis, out_of_fold=old.out_of_fold)
        solved = replace(solved, randomize=self.policy.randomize, basis=basis)
        policy = _rounded(self.problem, self.people, solved, moments)
        return replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, self.people),
            compared=compared,
            labelled=compared,
            certificate=None,
        )

    @cached_property
    def moments(self) -> Moments:
        """The sums of what was asked."""
        return self.compared.of(with_ends(self.problem, self.compared))

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
            favourable=self.problem.favourable,
        )

    @cached_property
    def without_each(self) -> dict[str, Floats]:
        """Solved again without each, where several may matter; not where a safe fit aims at more than is asked."""
        asked, moments, unmoved = self.problem.requirements, self.moments, idle(self.policy)
        names = [[row.name for row in rows_of([one], moments)] for one in asked]
        unpaid = {name for words, (name, _) in required(self.policy).items() if words in unmoved}
        paid = [any(name not in unpaid for name in some) for some in names]
        if self.said or sum(paid) < 2:
            return {}
        found: dict[str, Floats] = {}
        for left_out, own in enumerate(names):
            if paid[left_out]:
                others = [one for i, one in enumerate(asked) if i != left_out]
                cost, see_group = self.policy.change_cost, self.problem.see_group
                solution = solve_program(moments, others, see_group=see_group, change_cost=cost)
                found |= dict.fromkeys(own, solution.q)
        return found

    @property
    def losers_unknown(self) -> str:
        """That nobody can lose what some people do not have."""
        known = any(component.name == LOSES for component in self.compared.components)
        return "" if known else "of what is measured, who gets less than today cannot be told"

    @cached_property
    def price_of_losers(self) -> list[LosersRow]:
        """From the sums."""
        asked, see_group = self.problem.requirements, self.problem.see_group
        cost = self.policy.change_cost
        return price_of_losers(self.compared, self.policy.q, asked, see_group=see_group, change_cost=cost)

    def restated(self, policy: Policy) -> Policy:
        """By the sums where they suffice, else by the people."""
        policy = cast(CellPolicy, policy)  # a frontier's policies are of one kind
        if policy.randomize or policy.sums_suffice or policy.expected:
            return _rounded(self.problem, self.people, policy, self.moments)
        return stated(self.problem, kept_people(self.people), policy)

    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Solved again for people without labels: what looks at labels keeps its mean per cell."""
        asked = self.problem.with_losers if people.knows_today else self.problem
        fresh = sum_people(people, asked.lossless, self.labelled.signal)
        compared = reweighted(
            self.labelled,
            fresh,
            see_group=self.problem.see_group,
            exact_loss=not self.problem.loss.looks_at_y,
        )
        moments = compared.of(with_ends(self.problem, compared))
        solved = _solved(self.problem, moments, self.policy.salt, self.policy.change_cost)
        solved = replace(solved, randomize=self.policy.randomize, expected=True)
        policy = carried(_rounded(self.problem, people, solved, moments), self.policy)
        pooled = float(moments.mass[self.labelled.mass <= 0].sum() / moments.total)
        kept = f"reweighted from the labelled people, {UNCHANGED}"
        kept += f", pooled over neighbours for the {pooled:.2%} in cells without any" if pooled else ""
        fitted = replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            compared=compared,
            certificate=None,
        )
        return fitted, self.recalibration(kept)


def with_ends(problem: Problem, sums: Moments) -> list[str]:
    """Names of the components of a problem, and of their ends where hidden reasons leave them open."""
    names = problem.names
    own = [component.ends or () for component in sums.components if component.name in names]
    return [*names, *(end for ends in own for end in ends)]


def refuse_drawn(policy: CellPolicy) -> None:
    """Refuse rounded decisions of a signal that is drawn by lot, where labels are missing: no sums tell of them."""
    if not policy.randomize and policy.signal.drawn:
        raise DataError(
            "Labels are missing, and what a rounded soft label does is not known from sums.",
            "Use policy='score' or 'label', or leave randomize=True.",
        )


def _solved(problem: Problem, moments: Moments, salt: str, change_cost: ChangeCost) -> CellPolicy:
    return solve_cells(
        moments,
        problem.requirements,
        see_group=problem.see_group,
        salt=salt,
        change_cost=change_cost,
        favourable=problem.favourable,
    )


def _rounded(problem: Problem, people: People | None, policy: CellPolicy, moments: Moments) -> CellPolicy:
    """With what its rounded decisions do by the sums, or are expected to do to people without labels."""
    if policy.randomize:
        return policy
    if policy.sums_suffice:
        q = policy.rounded(policy.q)
        basis = replace(policy.basis, evidence=Evidence.of(moments, q))
        return replace(policy, outcome=moments.evaluate(q), basis=basis)
    people = kept_people(people)
    ground = ground_of(problem, replace(people, y=None, labels=None), None)
    return replace(policy, outcome=mixed_outcome(ground.crowd, ground.real, policy.odds_of(people)))
