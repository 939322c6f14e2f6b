"""Fitted: a policy with what it takes to move it, along its frontier or to people without labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from felicific._audit.measure_people import lacks_labels, measured_of
from felicific._audit.measured import Measured
from felicific._fit.certificate import Certificate, WorseOffRow
from felicific._fit.safety import Trial, by_construction, certify
from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier
from felicific._people.people import People
from felicific._policy.lottery import faces_lottery
from felicific._policy.policy import Policy
from felicific._problem.constraints import allowed_gaps
from felicific._problem.linear import largest_between
from felicific._problem.problem import Problem
from felicific._problem.unions import compared_by
from felicific._program.aggregates import Aggregates, Outcome, gaps_of
from felicific._program.evidence import Evidence
from felicific._program.signals import SoftLabel
from felicific._program.summing import sum_people
from felicific._typing import Floats
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(ABC):
    """A fitted policy.

    Attributes
    ----------
    problem : Problem
        What was asked.
    policy : Policy
        With what it does to the people it was fitted on; of a rounded one, what its rounded decisions do.
    share_randomized : float
        Share of those people whose decision is drawn by lottery.
    people : People, or None
        Where the sums do not tell what another policy of this kind would do to each of them; never stored.
    certificate : Certificate, or None
        What was shown on people held out.
    said : dict of str to dict
        What was asked for, where a safe fit aims at more: the words and numbers that it has, by the words of the aim.
    """

    problem: Problem
    policy: Policy
    share_randomized: float
    people: People | None
    certificate: Certificate | None = None
    said: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        # People stay out of files, and a frontier is solved again from what is kept.
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"people": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it changes

    @property
    def sums(self) -> Aggregates | None:
        """The sums that the policy was fitted on, if it was fitted on sums."""
        return None

    def hiding(self, max_odds_ratio: float) -> Self:
        """As if reasons outside the table had changed the odds of having a label at most so many fold."""
        if self.policy.labels is None or self.policy.sees_x or self.policy.expected:
            raise DataError(
                "No label is missing, so nothing is hidden."
                if self.policy.labels is None
                else "max_odds_ratio= of an individual policy is said when it is fitted."
                if self.policy.sees_x
                else "What is hidden is about the people with labels, and this policy was recalibrated on others.",
                "Leave max_odds_ratio= out, or fit with MissingLabels(max_odds_ratio=...), and recalibrate then.",
            )
        return self

    @property
    def worse_off_unknown(self) -> str:
        """Why it is not known what it costs that fewer people lose; empty where it is."""
        return "an individual policy is no table of sums, from which that would be read"

    @property
    def price_of_worse_off(self) -> list[WorseOffRow]:
        """What it costs that fewer people lose; empty where nobody loses, or that is not known."""
        return []

    @property
    def without_each(self) -> dict[str, Floats]:
        """Tables of policies that lack one requirement each, by its name in prices; empty where that is not known."""
        return {}

    @cached_property
    def frontier(self) -> Frontier:
        """The frontier of policies of this kind; a cheap object, that is solved when it is first looked at."""
        return self.traced(self.closing)

    @cached_property
    def gap_frontier(self) -> Frontier:
        """The same along the gaps of all groups, with whatever else is asked for held everywhere: what pages show."""
        return self.frontier if self.closing.of_all_groups else self.traced(self._gaps_closing)

    @abstractmethod
    def traced(self, closing: Closing) -> Frontier:
        """The frontier along what closes."""

    @abstractmethod
    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Fitted anew to people without labels; also how each measure was brought to them."""

    @abstractmethod
    def restated(self, policy: Policy) -> Policy:
        """With what a policy of the frontier does to the people of this one, decided as this one decides."""

    @property
    def closing(self) -> Closing:
        """What moves along the frontier: gaps, or without any the first constraint that has a number."""
        first = None if self.problem.gaps else Closing.first(self.problem.kept)
        return first or self._gaps_closing

    @property
    def _gaps_closing(self) -> Closing:
        """Gaps of all groups, in which proportions, and what holds everywhere."""
        asked = self.problem.gaps or {}
        given = len(asked) > 1 and all(width > 0 for width in asked.values())
        closed = asked if given else dict.fromkeys(asked or self.problem.closed, 0.0)
        gaps = self.problem.own_gaps(closed)
        return Closing(gaps, self.problem.kept, by_numbers=given)

    def moved(self, tau: float, *, along_gaps: bool = False) -> Self:
        """With the policy at a place of the frontier, decided as this one is: by lottery or rounded."""
        line, closing = self.frontier, self.closing
        if along_gaps:
            line, closing = self.gap_frontier, self._gaps_closing
        if not closing.of_all_groups:
            numbers = line.numbers_at(tau, [len(one.comparisons(line.measures)) for one in closing.moved])
            moved = [one.at(number) for one, number in zip(closing.moved, numbers, strict=True)]
            problem = replace(self.problem, requirements=(*moved, *closing.kept))
            # A gap that moves along the frontier says no number there.
            parts = [part for one in moved for part in one.comparisons(line.measures)]
            here = {part.words.rpartition(" at ")[0]: {"words": part.words, **part.sides} for part in parts}
            there = replace(self, problem=problem, certificate=None, said=self.said | here)
            fresh = replace(there._with(line.at(tau=tau), line), said=self.said)
            vars(fresh)["frontier"] = line
            return fresh
        # What every gap that is closed may be here, so that no later recalibration forgets one.
        gap = {
            measure.name: min(tau * float(width), measure.widest) if width > 0 else 0.0
            for measure, width in zip(line.measures, line.ray, strict=True)
            if width < np.inf
        }
        problem = self.problem.with_gaps(gap)
        return replace(self, problem=problem, certificate=None)._with(line.at(tau=tau), line)

    def along(self, taus: Sequence[float]) -> list[Policy]:
        """The policies at some places of the frontier along gaps, decided as this one is."""
        line = self.gap_frontier
        # Where neighbours do not mix, a program of its own finds each.
        policies = line.policies_at(taus) if line.mixes else [line.at(tau=tau) for tau in taus]
        return [self._told(policy) for policy in policies]

    def _told(self, policy: Policy) -> Policy:
        """A policy of the frontier as this one is decided, with what it does to the people of this one."""
        policy = self._as_said(self.restated(self.finished(policy)))
        old, new = self.policy.basis.evidence, policy.basis.evidence
        if old is None or new is None:
            return policy
        # Of how many people means are known, no policy changes.
        known = replace(old, variance=new.variance)
        return replace(policy, basis=replace(policy.basis, evidence=known))

    def _with(self, policy: Policy, line: Frontier) -> Self:
        """With another policy of a frontier that stays the same."""
        policy = self._told(policy)
        fresh = replace(self, policy=policy, share_randomized=share_drawn(policy, self.people))
        vars(fresh)["frontier"] = line
        return fresh

    def _as_said(self, policy: Policy) -> Policy:
        """With what was asked for, where more than that is kept at every place of the frontier."""
        if not self.said:
            return policy
        kept = tuple(replace(one, **self.said.get(one.words, {})) for one in policy.basis.requirements)
        prices = {
            self.said.get(name, {"words": name})["words"]: price for name, price in policy.prices.items()
        }
        return replace(policy, basis=replace(policy.basis, requirements=kept), prices=prices)

    def finished(self, policy: Policy) -> Policy:
        """A policy of the frontier with the salt of this one, decided as this one is."""
        return replace(policy, salt=self.policy.salt, randomize=self.policy.randomize)

    def certified(
        self,
        asked: Problem,
        fitted: Measured,
        held_out: Callable[[Policy], Measured],
        confidence: float,
        seen: Sequence[People],
    ) -> Self:
        """The loosest policy of the frontier that is shown to meet what was ``asked``; this one aims at no more.

        ``fitted`` is what this one does to those it was fitted on, ``held_out`` what any policy does to others; of the
        people ``seen`` it is known what the model decides.
        """
        shares, aimed = (
            [
                share
                for one, told in zip(some.kept, asked.kept, strict=True)
                for share in (one.shares(some.measures, self.policy.groups) if told.provable else ())
            ]
            for some in (asked, self.problem)
        )
        trial = Trial(confidence, asked.comparisons, fitted, tuple(shares))
        policy, certificate = certify(self.policy, self.frontier, trial, held_out, self.finished)
        certificate = certificate.joined(by_construction(asked, policy, seen))
        said: dict[str, dict[str, Any]] = {
            aim.words: {"words": told.words, "upper": told.at_most}
            for aim, told in zip(aimed, shares, strict=True)
        }
        for aim, told in zip(self.problem.comparisons, asked.comparisons, strict=True):
            # A gap that moves along the frontier says no number there.
            for words in (aim.words, aim.words.rpartition(" at ")[0]) if aim.plain else (aim.words,):
                said[words] = {"words": told.words, **told.sides}
        shown = replace(self, problem=asked, certificate=certificate, said=said)
        found = shown._with(policy, self.frontier)
        # Of gaps, too, what was asked for is what was shown, not what is kept at this place of the frontier.
        basis = replace(found.policy.basis, allowed=allowed_gaps(asked.requirements, asked.measures))
        fresh = replace(found, policy=replace(found.policy, basis=basis))
        vars(fresh).update(frontier=self.frontier, gap_frontier=self.gap_frontier)
        return fresh

    def recalibration(self, kept: str) -> dict[str, str]:
        """How each measure was brought to people without labels; ``kept`` for those that look at them."""
        return {
            str(happiness.name): kept if happiness.looks_at_y else "computed on the new people"
            for happiness in self.problem.happiness
        }


def kept_people(people: People | None) -> People:
    """The people that a classifier was fitted on, when it still has them."""
    if people is None:
        raise DataError(
            "Moving along this frontier needs the people it was fitted on, and a stored classifier has none.",
            "Fit it again, or use policy='score'.",
        )
    return people


def achieved(problem: Problem, people: People, probabilities: Floats) -> Outcome:
    """Loss, group means and gaps of decision probabilities about people with labels.

    Or of people of whom it is known how likely each label is: then the worst that hidden reasons leave open.
    """
    if people.missing is not None and lacks_labels(people):
        return outcome_of(measured_of(replace(people, probabilities=probabilities, drawn=True), problem))
    aggregates, as_drawn = _drawn(problem, people, probabilities)
    return aggregates.evaluate(as_drawn)


def outcome_of(persons: Measured) -> Outcome:
    """Loss, group means and gaps of what is known person by person; the worst of what hidden reasons leave open."""
    compared = compared_by(persons.left_out, [one.name for one in persons.measures], persons.groups)
    low, high = persons.ends or (persons, persons)
    assert high.loss_sample is not None, "the loss is known"
    gaps = gaps_of(persons.means, compared)
    for j in np.flatnonzero(persons.debiased_at[:-1]) if persons.ends is not None else ():
        gaps[j] = largest_between(low.means[compared[:, j], j], high.means[compared[:, j], j])
    return Outcome(float(high.loss_sample.mean[0]), persons.means, gaps)


@dataclass(frozen=True)
class _DrawnDecision(SoftLabel):
    """A decision that is drawn, as a signal."""

    n_decisions: int

    def size(self, n_classes: int) -> int:
        """Return the number of decisions."""
        return self.n_decisions


def _drawn(problem: Problem, people: People, probabilities: Floats) -> tuple[Aggregates, Floats]:
    """Sums of what decision probabilities do to people with labels, and the policy that leaves it at that.

    Deciding with probabilities D is drawing a decision from D and keeping it: the aggregates of what is drawn, under
    the policy that changes nothing.
    """
    baseline = people.decisions_baseline() if people.knows_baseline else None
    decided = replace(people, score=probabilities, predicted=None, checked=True, baseline=baseline)
    aggregates = sum_people(decided, problem, _DrawnDecision(probabilities.shape[1]))
    aggregates = replace(aggregates, left_out=people.left_out)
    aggregates.check_complete()
    as_drawn = np.tile(np.eye(probabilities.shape[1]), (len(aggregates.groups), 1, 1))
    return aggregates, as_drawn


P = TypeVar("P", bound=Policy)


def carried(policy: P, labelled: Policy) -> P:
    """For people without labels: with what is known of the labelled ones alone."""
    evidence, old = policy.basis.evidence, labelled.basis.evidence
    if evidence is not None and old is not None:
        evidence = evidence.carried(old, policy.measures)
    basis = replace(policy.basis, evidence=evidence)
    return replace(policy, basis=basis)


def stated(problem: Problem, people: People, policy: P) -> P:
    """With what it does to people with labels; of a rounded one, what its rounded decisions do."""
    if policy.randomize:
        return policy
    people = replace(people, left_out=policy.left_out)
    aggregates, as_drawn = _drawn(problem, people, policy.probabilities_of(people))
    basis = replace(policy.basis, evidence=Evidence.of(aggregates, as_drawn))
    return replace(policy, outcome=aggregates.evaluate(as_drawn), basis=basis)


def share_drawn(policy: Policy, people: People | None) -> float:
    """Share of people whose decision is drawn by lottery."""
    known = policy.share_drawn
    if known is not None:
        return known
    people = kept_people(people)
    return float(np.average(faces_lottery(policy.probabilities_of(people)), weights=people.weight))
