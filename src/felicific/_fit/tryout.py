"""Tryout: people on whom many policies are tried, with what does not depend on the policy evaluated once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._audit.persons import Persons
from felicific._fit.fit import People, Task, achieved, decide, persons_of, scores_for
from felicific._policy.individual import IndividualPolicy, Seen
from felicific._policy.ledgers import Terms, find_origin, real_ledger
from felicific._policy.policy import Policy
from felicific._program.generation import Ledger
from felicific._program.moments import Outcome
from felicific._program.summing import resolve_loss
from felicific._tables.groups import encode_groups
from felicific._tables.memory import as_vector, encode

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Tryout:
    """People with labels on whom many policies of one frontier are tried.

    Happiness and loss are evaluated once: what they are expected to be, by which individual policies decide, and what
    they really are.
    """

    task: Task
    people: People
    groups: tuple[Any, ...]

    def decide(self, policy: Policy) -> Floats:
        """Decision probabilities of a policy."""
        if not isinstance(policy, IndividualPolicy):
            return decide(policy, self.people)
        return policy.rounded(policy.follow(self._seen(policy)))

    def outcome(self, decisions: Floats) -> Outcome:
        """Loss, group means and gaps of decision probabilities."""
        ledger, origin, codes = self._ledger
        weight, g = self.people.weights, len(self.groups)

        def per_group(numbers: Floats) -> Floats:
            return np.stack(
                [np.bincount(codes, weight * column, minlength=g) for column in numbers.T], axis=1
            )

        value = np.einsum("id,idj->ij", decisions, ledger.value[:, :, 0])
        relative = per_group(value) / per_group(ledger.among[:, 0])
        loss = float(weight @ np.einsum("id,id->i", decisions, ledger.cost) / weight.sum())
        return Outcome(loss, relative + origin, relative.max(axis=0) - relative.min(axis=0))

    def persons(self, policy: Policy) -> Persons:
        """What a policy does to each person."""
        return persons_of(self.task, self.people, self.decide(policy), self.groups)

    @cached_property
    def today(self) -> Outcome:
        """What the model's own decisions do."""
        codes = encode(as_vector(self.people.predicted, "predictions"), self.task.classes.tolist())
        return achieved(self.task, self.people, np.eye(len(self.task.classes))[codes], self.groups)

    @cached_property
    def _ledger(self) -> tuple[Ledger, Floats, Codes]:
        task, people = self.task, self.people
        self.today  # noqa: B018  # says what is wrong with these people
        terms = Terms(
            task.classes, self.groups, task.happiness, resolve_loss(task.loss, task.classes)[1], True
        )
        codes = encode_groups(people.group, self.groups)
        origin = find_origin(terms, people.x, people.y, people.group)
        return (
            real_ledger(terms, people.x, as_vector(people.y, "y"), people.group, codes, origin),
            origin,
            codes,
        )

    def _seen(self, policy: IndividualPolicy) -> Seen:
        """What policies of this frontier see, which differ in their mixture only."""
        kept = vars(self).get("_looked")
        if kept is None or kept[0] is not policy.calibration:
            codes = encode_groups(self.people.group, policy.groups) if policy.see_group else None
            kept = policy.calibration, policy.look(scores_for(policy, self.people), codes, self.people.x)
            vars(self)["_looked"] = kept
        return kept[1]
