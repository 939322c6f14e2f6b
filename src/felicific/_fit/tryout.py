"""Tryout: people on whom many policies are tried, with what does not depend on the policy evaluated once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._audit.persons import EachPerson, check_persons
from felicific._fit.fitted import achieved
from felicific._people.people import People
from felicific._policy.ledger import find_origin, real_ledger
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._program.generation import Ledger
from felicific._program.moments import Outcome
from felicific._typing import Floats


@dataclass(frozen=True, eq=False)
class Tryout:
    """People with labels on whom many policies of one frontier are tried.

    Happiness and loss are evaluated once: what they are expected to be, by which individual policies decide, and what
    they really are.
    """

    problem: Problem
    people: People

    def odds(self, policy: Policy) -> Floats:
        """Decision probabilities of a policy; what those of the same sight see of people is looked at once."""
        kept = vars(self).get("_looked")
        if kept is None or kept[0] is not policy.sight:
            kept = policy.sight, policy.look_at(self.people)
            vars(self)["_looked"] = kept
        return policy.rounded(policy.follow(kept[1]))

    def outcome(self, odds: Floats) -> Outcome:
        """Loss, group means and gaps of decision probabilities."""
        ledger, origin = self._ledger
        codes, weight, g = self.people.codes, self.people.weights, len(self.people.groups)

        def per_group(numbers: Floats) -> Floats:
            return np.stack(
                [np.bincount(codes, weight * column, minlength=g) for column in numbers.T], axis=1
            )

        relative = per_group(self._values(odds)) / per_group(ledger.among[:, 0])
        loss = float(weight @ np.einsum("id,id->i", odds, ledger.cost) / weight.sum())
        return Outcome(loss, relative + origin, relative.max(axis=0) - relative.min(axis=0))

    def persons(self, policy: Policy) -> EachPerson:
        """What a policy does to each person."""
        return self.measured(self.odds(policy))

    def measured(self, odds: Floats) -> EachPerson:
        """What decision probabilities do to each person."""
        (ledger, origin), people, problem = self._ledger, self.people, self.problem
        values = self._values(odds)
        inside = ledger.among[:, 0] == 1.0
        raw = values + origin
        binary = (~inside | (raw == 0.0) | (raw == 1.0)).all(axis=0)
        persons = EachPerson(
            groups=people.groups,
            components=problem.components,
            origin=origin,
            binary=np.asarray(binary),
            loss_bounds=problem.loss.bounds,
            sampling=False,
            codes=people.codes,
            values=values,
            inside=None if inside.all() else inside,
            losses=np.asarray(np.einsum("id,id->i", odds, ledger.cost)),
            weight=people.weight,
            checksum=0,
        )
        check_persons(persons)
        return persons

    @cached_property
    def today(self) -> Outcome:
        """What today's decisions do."""
        return achieved(self.problem, self.people, self.odds_today)

    @cached_property
    def odds_today(self) -> Floats:
        """Today's decisions, each with probability one."""
        return np.asarray(np.eye(len(self.problem.decisions))[self.people.decisions_today()])

    def _values(self, odds: Floats) -> Floats:
        """What every person may expect, relative to the origin."""
        ledger: Ledger = self._ledger[0]
        values = np.zeros((len(odds), ledger.value.shape[3]))
        for d in range(odds.shape[1]):
            values += odds[:, d : d + 1] * ledger.value[:, d, 0]
        return values

    @cached_property
    def _ledger(self) -> tuple[Ledger, Floats]:
        self.today  # noqa: B018  # says what is wrong with these people
        seeing = self.problem.seeing
        origin = find_origin(seeing, self.people)
        return real_ledger(seeing, self.people, origin), origin
