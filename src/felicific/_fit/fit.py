"""Fitting: from people and a problem to a policy, with what it takes to move it later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, cast

import numpy as np

from felicific._fit.certificate import WorseOffRow, price_of_worse_off
from felicific._fit.fitted import Fitted, carried, kept_people, share_drawn, stated
from felicific._fit.tryout import Tryout
from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._frontier.individual import individual_frontier
from felicific._people.checks import are_counts
from felicific._people.people import People, changes, refuse_idle
from felicific._policy.basis import UNCHANGED
from felicific._policy.cells import CellPolicy, solve_cells
from felicific._policy.explanation import idle, required
from felicific._policy.fit_individual import fit_individual, ground_of, recalibrate_individual
from felicific._policy.individual import IndividualPolicy
from felicific._policy.lottery import moves_between
from felicific._policy.policy import Policy
from felicific._policy.solve import with_limited_losses
from felicific._problem.happiness import LOSES
from felicific._problem.problem import Problem
from felicific._problem.worse_off import WorseOff
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.crowd import Ledgers
from felicific._program.evidence import Evidence
from felicific._program.generation import mixed_outcome
from felicific._program.reweighted import reweighted
from felicific._program.signals import Individual, Signal
from felicific._program.solution import solve_program
from felicific._program.summing import sum_people, sum_whole
from felicific._typing import Floats
from felicific.exceptions import AggregatesError, DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedCells(Fitted):
    """A fitted policy that sees a signal.

    Attributes
    ----------
    policy : CellPolicy
    aggregates : Aggregates
        The sums that it was fitted on.
    joined : Aggregates
        The same, and ends of measures that missing labels leave open.
    labelled : Aggregates
        Those of the people with labels, which stay the same when the policy is recalibrated.
    raw : Aggregates, or None
        Where labels are missing, the sums before anything is supposed of them.
    """

    policy: CellPolicy
    joined: Aggregates
    labelled: Aggregates
    raw: Aggregates | None = None

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
        raw = sum_whole(seen, _with_worse_off(problem, people), signal)
        joined = raw.completed().joined().comparing(problem.requirements)
        aggregates = joined.of(with_ends(problem, joined))
        solved = _solved(problem, aggregates, salt, change_cost)
        policy = replace(solved, randomize=randomize)
        if raw.unlabelled is None:
            policy = stated(problem, people, policy)
        else:
            refuse_drawn(policy)
            policy = _rounded(problem, people, policy, aggregates)
        return cls(
            problem=problem,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            joined=joined,
            labelled=joined,
            raw=None if raw.unlabelled is None else raw,
        )

    def hiding(self, max_odds_ratio: float) -> Self:
        """As if reasons outside the table had changed the odds of having a label at most so many fold."""
        raw = super().hiding(max_odds_ratio).raw
        assert raw is not None, "labels are missing"
        joined = raw.completed(max_odds_ratio).joined().comparing(self.problem.requirements)
        aggregates = joined.of(with_ends(self.problem, joined))
        cost = self.policy.change_cost
        solved = _solved(self.problem, aggregates, self.policy.salt, cost)
        old = self.policy.basis
        basis = replace(solved.basis, out_of_fold=old.out_of_fold)
        solved = replace(solved, randomize=self.policy.randomize, basis=basis)
        policy = _rounded(self.problem, self.people, solved, aggregates)
        return replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, self.people),
            joined=joined,
            labelled=joined,
            certificate=None,
        )

    @cached_property
    def aggregates(self) -> Aggregates:
        """The sums of what was asked."""
        return self.joined.of(with_ends(self.problem, self.joined))

    @cached_property
    def compared(self) -> Aggregates:
        """The sums with who gets less than from the baseline's decision."""
        return self.joined.with_losses(WorseOff()).comparing(self.problem.requirements)

    @property
    def sums(self) -> Aggregates:
        """The sums that the policy was fitted on."""
        return self.aggregates

    def traced(self, closing: Closing) -> Frontier:
        """Every breakpoint, from the sums."""
        return cell_frontier(
            self.aggregates,
            closing,
            sees_group=self.problem.sees_group,
            salt=self.policy.salt,
            expected=self.policy.expected,
            out_of_fold=self.policy.basis.out_of_fold,
            change_cost=self.policy.change_cost,
        )

    @cached_property
    def without_each(self) -> dict[str, Floats]:
        """Solved again without each, where several may matter; not where a safe fit aims at more than is asked."""
        asked, aggregates, unmoved = self.problem.requirements, self.aggregates, idle(self.policy)
        decisions, groups = aggregates.decisions.tolist(), aggregates.groups
        names = [
            [row.name for row in one.rows(aggregates)]
            + [kept.words for kept in one.chances(decisions, groups)]
            for one in asked
        ]
        unpaid = {name for words, (name, _) in required(self.policy).items() if words in unmoved}
        paid = [any(name not in unpaid for name in some) for some in names]
        if self.said or sum(paid) < 2:
            return {}
        found: dict[str, Floats] = {}
        for left_out, own in enumerate(names):
            if paid[left_out]:
                others = [one for i, one in enumerate(asked) if i != left_out]
                cost, sees_group = self.policy.change_cost, self.problem.sees_group
                solution = solve_program(aggregates, others, sees_group=sees_group, change_cost=cost)
                found |= dict.fromkeys(own, solution.q)
        return found

    @property
    def worse_off_unknown(self) -> str:
        """That nobody can lose what some people do not have."""
        known = any(measure.name == LOSES for measure in self.compared.measures)
        return "" if known else "of what is measured, who gets less than from the baseline cannot be known"

    @cached_property
    def price_of_worse_off(self) -> list[WorseOffRow]:
        """From the sums."""
        asked, sees_group = self.problem.requirements, self.problem.sees_group
        cost = self.policy.change_cost
        return price_of_worse_off(
            self.compared, self.policy.q, asked, sees_group=sees_group, change_cost=cost
        )

    def restated(self, policy: Policy) -> Policy:
        """By the sums where they suffice, else by the people."""
        policy = cast(CellPolicy, policy)  # a frontier's policies are of one kind
        if policy.randomize or policy.sums_suffice or policy.expected:
            return _rounded(self.problem, self.people, policy, self.aggregates)
        return stated(self.problem, kept_people(self.people), policy)

    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Solved again for people without labels: what looks at labels keeps its mean per cell."""
        asked = _with_worse_off(self.problem, people)
        fresh = sum_people(people, asked.lossless, self.labelled.signal).with_losses(WorseOff())
        joined = reweighted(
            self.labelled.with_losses(WorseOff()),
            fresh,
            sees_group=self.problem.sees_group,
            exact_loss=not self.problem.loss.looks_at_y,
        ).comparing(self.problem.requirements)
        aggregates = joined.of(with_ends(self.problem, joined))
        solved = _solved(self.problem, aggregates, self.policy.salt, self.policy.change_cost)
        solved = replace(solved, randomize=self.policy.randomize, expected=True)
        policy = carried(_rounded(self.problem, people, solved, aggregates), self.policy)
        pooled = float(aggregates.mass[self.labelled.mass <= 0].sum() / aggregates.total)
        kept = f"reweighted from the labelled people, {UNCHANGED}"
        kept += f", pooled over neighbours for the {pooled:.2%} in score bins without any" if pooled else ""
        fitted = replace(
            self,
            policy=policy,
            share_randomized=share_drawn(policy, people),
            people=None if policy.sums_suffice else people,
            joined=joined,
            certificate=None,
        )
        return fitted, self.recalibration(kept)


def _with_worse_off(problem: Problem, people: People) -> Problem:
    """With who gets less than from the baseline's decision, where labels are missing: at its most, too."""
    return problem if people.missing is None or not people.knows_baseline else problem.with_worse_off


def with_ends(problem: Problem, sums: Aggregates) -> list[str]:
    """Names of the measures of a problem, and of their ends where hidden reasons leave them open."""
    names = problem.names
    own = [measure.ends or () for measure in sums.measures if measure.name in names]
    return [*names, *(end for ends in own for end in ends)]


def refuse_drawn(policy: CellPolicy) -> None:
    """Refuse rounded decisions of a signal that is drawn at random, where labels are missing: no sums tell of them."""
    if not policy.randomize and policy.signal.drawn:
        raise DataError(
            "Labels are missing, and what a rounded soft label does is not known from sums.",
            "Use policy='score' or 'label', or leave randomize=True.",
        )


def _solved(problem: Problem, aggregates: Aggregates, salt: str, change_cost: ChangeCost) -> CellPolicy:
    return solve_cells(
        aggregates,
        problem.requirements,
        sees_group=problem.sees_group,
        salt=salt,
        change_cost=change_cost,
    )


def _rounded(
    problem: Problem, people: People | None, policy: CellPolicy, aggregates: Aggregates
) -> CellPolicy:
    """With what its rounded decisions do by the sums, or are expected to do to people without labels."""
    if policy.randomize:
        return policy
    if policy.sums_suffice:
        q = policy.rounded(policy.q)
        basis = replace(policy.basis, evidence=Evidence.of(aggregates, q))
        return replace(policy, outcome=aggregates.evaluate(q), basis=basis)
    people = kept_people(people)
    ground = ground_of(problem, replace(people, y=None, labels=None), None)
    probabilities = policy.probabilities_of(people)
    return replace(policy, outcome=mixed_outcome(ground.crowd, ground.real, probabilities, policy.left_out))


# ---------------------------------------------------------------------------------------------------------
# Fitted policies that see all of x: moving them needs the people.


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


# ---------------------------------------------------------------------------------------------------------
# From people to a policy.


def fit_policy(
    problem: Problem,
    people: People,
    kind: Signal | Individual,
    *,
    salt: str,
    randomize: bool = True,
    out_of_fold: bool = False,
    change_cost: ChangeCost = 0.0,
) -> Fitted:
    """Fit a policy of this kind to people with labels, whose probabilities may be ``out_of_fold``."""
    fit: Callable[..., Fitted] = FittedIndividual.fit if kind.sees_x else FittedCells.fit
    fitted = fit(problem, people, kind, salt=salt, randomize=randomize, change_cost=change_cost)
    evidence = _evidence(problem, people, fitted.policy)
    old = fitted.policy.basis
    basis = replace(old, out_of_fold=out_of_fold, evidence=evidence)
    return replace(fitted, policy=replace(fitted.policy, basis=basis))


def _evidence(problem: Problem, people: People, policy: Policy) -> Evidence | None:
    """What its means rest on: of unequal weights, and of clusters, as many people as would tell as much."""
    evidence, weight = policy.basis.evidence, people.weight
    counts = True
    if weight is not None:
        whole = bool((weight == weight.round()).all())
        counts = are_counts(people.weight_kind, whole, float(weight.sum()), len(people))
    if evidence is None or (counts and people.cluster is None):
        return evidence
    told = people if counts else replace(people, weight_kind="sampling")
    persons = Tryout(problem, told.with_scores).persons(policy)
    shares = evidence.people / evidence.size[:, None]
    return replace(
        evidence, number=persons.sample.n, people=shares * persons.seen[:, None], size=persons.seen
    )


# ---------------------------------------------------------------------------------------------------------
# A policy that was stored, fitted anew to people without labels.


class Recalibrated(NamedTuple):
    """A policy for other people, and what that changes.

    Attributes
    ----------
    policy : Policy
        The new one.
    how : dict of str to str
        How each measure was brought to these people.
    before : Outcome, or None
        What the policy that was stored is expected to do to them; None where its cells are others.
    moved : array of shape (groups,)
        Share of each group who get another decision from the new one than from the old one, by the same draw.
    """

    policy: Policy
    how: dict[str, str]
    before: Outcome | None
    moved: Floats


def recalibrate_stored(
    policy: Policy, problem: Problem, people: People, labelled: Aggregates | None = None
) -> Recalibrated:
    """Fit a stored policy anew to people without labels, as :meth:`FairClassifier.recalibrate` does.

    A policy of cells needs the sums of the ``labelled`` people; an individual one brings what it knows of labels.
    """
    after: Fitted
    if policy.sees_x:
        own = cast(IndividualPolicy, policy)
        alone = FittedIndividual(
            problem=problem, policy=own, share_randomized=0.0, people=None, fingerprint=""
        )
        after, how = alone.recalibrated(people)
        before: Outcome | None = _expected_of_stored(problem, people, own)
    else:
        assert labelled is not None, "score bins keep nothing of labels"
        stored = cast(CellPolicy, policy)
        labelled = with_limited_losses(labelled, problem.requirements)
        _check_same(stored, labelled)
        cells = FittedCells(
            problem=problem,
            policy=stored,
            share_randomized=0.0,
            people=None,
            joined=labelled,
            labelled=labelled,
        )
        moved_cells, how = cells.recalibrated(people)
        after = moved_cells
        same = labelled.signal == cells.policy.signal
        before = moved_cells.aggregates.evaluate(policy.rounded(cells.policy.q)) if same else None
    moves = moves_between(
        policy.probabilities_of(people), after.policy.probabilities_of(people), same_draws=True
    )
    apart = (1.0 - np.trace(moves, axis1=1, axis2=2)).clip(min=0.0)
    weight = people.weights
    groups = len(people.groups)
    totals = np.bincount(people.codes, weight, minlength=groups)
    moved = np.bincount(people.codes, weight * apart, minlength=groups) / np.where(totals > 0, totals, 1.0)
    return Recalibrated(replace(after.policy, roles=policy.roles), how, before, moved)


def _expected_of_stored(problem: Problem, people: People, policy: IndividualPolicy) -> Outcome:
    """What an individual policy is expected to do to people without labels."""
    known = replace(people.with_scores, y=None, labels=None)
    ground = ground_of(problem, known, policy.calibration, policy.origin)
    probabilities = policy.probabilities_of(known)
    return mixed_outcome(ground.crowd, ground.real, probabilities, policy.left_out)


def _check_same(policy: CellPolicy, labelled: Aggregates) -> None:
    """Refuse sums that are not of what the policy sees and decides, for whom, and by what it is measured."""
    names = [[one.name for one in side if not one.aside] for side in (policy.measures, labelled.measures)]
    pairs = (
        ("what a policy sees", policy.signal.kind, labelled.signal.kind),
        ("the classes", policy.classes.tolist(), labelled.classes.tolist()),
        ("the decisions", policy.decisions.tolist(), labelled.decisions.tolist()),
        ("the groups", list(policy.groups), list(labelled.groups)),
        ("the happiness", *names),
        ("the loss", policy.basis.loss_name, labelled.loss_name),
    )
    for what, mine, theirs in pairs:
        if mine != theirs:
            raise AggregatesError(
                f"The policy and the people with labels differ in {what}: {mine} and {theirs}.",
                "Use the people it was fitted on, and the same words as there.",
            )
