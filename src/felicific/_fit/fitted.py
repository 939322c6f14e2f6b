"""Fitted: a policy with what it takes to move it, along its frontier or to people without labels."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from felicific._fit.certificate import Certificate
from felicific._fit.fit import (
    People,
    Task,
    achieved,
    decide,
    expected_outcome,
    fit_cells,
    fit_individual,
    individual_frontier,
    kept_people,
    persons_of,
    recalibrate_cells,
    recalibrate_individual,
)
from felicific._fit.safety import certify, split
from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._policy.individual import IndividualPolicy
from felicific._policy.lottery import faces_lottery
from felicific._policy.policy import CellPolicy, Policy
from felicific._problem.requirements import resolve_gap
from felicific._program.moments import Moments, Outcome
from felicific._program.signals import Individual, Signal, SoftLabel
from felicific._tables.groups import encode_groups, find_groups

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted policy.

    Attributes
    ----------
    task : Task
        What was asked.
    policy : Policy
        With what it does to the people it was fitted on; of a rounded one, what its rounded decisions do.
    share_randomized : float
        Share of those people whose decision is drawn by lottery.
    people : People, or None
        Where the sums do not tell what another policy of this kind would do to each of them; never stored.
    moments : Moments, or None
        The sums that a policy which sees a signal was fitted on.
    labelled : Moments, or None
        Those of the people with labels, which stay the same when the policy is recalibrated.
    fingerprint : str
        Of the people that an individual policy was fitted on.
    certificate : Certificate, or None
        What was shown on people held out.
    """

    task: Task
    policy: Policy
    share_randomized: float
    people: People | None
    moments: Moments | None = None
    labelled: Moments | None = None
    fingerprint: str = ""
    certificate: Certificate | None = None

    def __getstate__(self) -> dict[str, Any]:
        # People stay out of files, and a frontier is solved again from what is kept.
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"people": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it changes

    @cached_property
    def frontier(self) -> Frontier:
        """The frontier of policies of this kind; a cheap object, that is solved when it is first looked at."""
        task = self.task
        asked = {name: width for name, width in (task.gap or {}).items() if width < np.inf}
        given = len(asked) > 1 and all(width > 0 for width in asked.values())
        direction = asked if given else list(asked or task.own)
        if isinstance(self.policy, IndividualPolicy):
            return individual_frontier(task, self.people, self.policy, direction)
        assert self.moments is not None, "a policy that sees a signal has moments"
        return cell_frontier(
            self.moments,
            Closing.of(direction, task.constraints, self.moments.components),
            see_group=task.see_group,
            salt=self.policy.salt,
            expected=self.policy.expected,
        )

    def moved(self, tau: float) -> Self:
        """With the policy at a place of the frontier, decided as this one is: by lottery or rounded."""
        line = self.frontier
        # What every gap that is closed may be here, so that no later recalibration forgets one.
        gap = {
            component.name: tau * float(width) if width > 0 else 0.0
            for component, width in zip(line.components, line.ray, strict=True)
            if width < np.inf
        }
        return replace(self, task=replace(self.task, gap=gap), certificate=None)._with(line.at(tau=tau), line)

    def _with(self, policy: Policy, line: Frontier) -> Self:
        """With another policy of a frontier that stays the same, and what it does to the people of this one."""
        policy = replace(policy, salt=self.task.salt, randomize=self.policy.randomize)
        if _sums_suffice(policy):
            if not policy.randomize:
                assert self.moments is not None, "a policy that sees a signal has moments"
                rounded = np.eye(len(policy.classes))[policy.q.argmax(axis=2)]
                policy = replace(policy, outcome=self.moments.evaluate(rounded))
        elif policy.expected:
            policy = _rounded_as_expected(self.task, kept_people(self.people), policy, self.moments)
        else:
            policy = replace(policy, outcome=_stated(self.task, kept_people(self.people), policy))
        fresh = replace(self, policy=policy, share_randomized=_drawn(policy, self.people))
        vars(fresh)["frontier"] = line
        return fresh

    def certified(self, people: People, others: People, confidence: float) -> Self:
        """The loosest policy of the frontier that is shown on ``others`` to meet the gap; ``people`` were fitted on."""
        task, groups = self.task, self.policy.groups
        policy, certificate = certify(
            self.frontier,
            resolve_gap(task.gap, self.policy.components),
            lambda policy: persons_of(task, others, decide(policy, others), groups),
            persons_of(task, people, decide(self.policy, people), groups),
            confidence,
            lambda policy: replace(policy, salt=task.salt, randomize=self.policy.randomize),
        )
        return replace(self, certificate=certificate)._with(policy, self.frontier)

    def recalibrated(self, people: People) -> tuple[Self, dict[str, str]]:
        """Fitted anew to people without labels; also how each component was brought to them."""
        policy: Policy
        task = self.task
        moments, fingerprint = self.moments, self.fingerprint
        if isinstance(self.policy, IndividualPolicy):
            policy, fingerprint = recalibrate_individual(task, people, self.policy, fingerprint)
            if policy is self.policy:
                same = "unchanged: it was fitted on these very people"
                return self, dict.fromkeys(self.policy.gaps, same)
            kept = "expected by calibrated probabilities"
        else:
            assert self.labelled is not None, "a policy that sees a signal has moments"
            policy, moments = recalibrate_cells(task, people, self.labelled)
            pooled = float(moments.mass[self.labelled.mass <= 0].sum() / moments.total)
            kept = "reweighted from the labelled people"
            kept += f", pooled over neighbours for the {pooled:.2%} in cells without any" if pooled else ""
        policy = replace(policy, randomize=self.policy.randomize, expected=True)
        policy = _rounded_as_expected(task, people, policy, moments)
        fresh = replace(
            self,
            policy=policy,
            share_randomized=_drawn(policy, people),
            people=None if _sums_suffice(policy) else people,
            moments=moments,
            fingerprint=fingerprint,
            certificate=None,
        )
        how = {
            str(happiness.name): kept if happiness.looks_at_y else "computed on the new people"
            for happiness in task.happiness
        }
        return fresh, how


def fit_policy(task: Task, people: People, kind: Signal | Individual, *, randomize: bool) -> Fitted:
    """Fit a policy of this kind to people with labels."""
    policy: Policy
    moments, fingerprint = None, ""
    if isinstance(kind, Individual):
        policy, fingerprint = fit_individual(task, people, kind)
    else:
        policy, moments = fit_cells(task, people, kind)
    policy = replace(policy, randomize=randomize)
    policy = replace(policy, outcome=_stated(task, people, policy))
    kept = None if _sums_suffice(policy) else people
    return Fitted(task, policy, _drawn(policy, people), kept, moments, moments, fingerprint)


def _stated(task: Task, people: People, policy: Policy) -> Outcome:
    """What a policy does to these people; of a rounded one, what its rounded decisions do."""
    if policy.randomize:
        return policy.outcome
    return achieved(task, people, decide(policy, people), policy.groups)


def _rounded_as_expected(task: Task, people: People, policy: Policy, moments: Moments | None) -> Policy:
    """With what is expected of its rounded decisions, if it is rounded."""
    if policy.randomize:
        return policy
    return replace(policy, outcome=expected_outcome(task, people, policy, moments, decide(policy, people)))


def _sums_suffice(policy: Policy) -> TypeGuard[CellPolicy]:
    """Whether the sums tell what another policy of this kind would do to each person."""
    return isinstance(policy, CellPolicy) and not isinstance(policy.signal, SoftLabel)


def _drawn(policy: Policy, people: People | None) -> float:
    """Share of people whose decision is drawn by lottery."""
    if _sums_suffice(policy):
        # Where people are is all there is to know of them.
        cells = faces_lottery(policy.q.reshape(-1, policy.q.shape[2]))
        return float(np.average(cells, weights=policy.mass.ravel())) if policy.randomize else 0.0
    people = kept_people(people)
    return float(np.average(faces_lottery(decide(policy, people)), weights=people.weight))


def halves(people: People, salt: str) -> tuple[tuple[Codes, People], ...]:
    """The people to fit on and those to hold out, each with the numbers of their rows; of a frequency some in both."""
    groups = find_groups(people.group)
    found = []
    for count in split(encode_groups(people.group, groups), groups, people.weight, salt):
        rows = np.flatnonzero(count)
        half = people.take(rows)
        found.append((rows, half if half.weight is None else replace(half, weight=count[rows])))
    return tuple(found)
