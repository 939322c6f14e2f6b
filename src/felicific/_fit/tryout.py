"""Tryout: people on whom many policies are tried, with what does not depend on the policy evaluated once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from felicific._audit.debiased import Debiased, Supposed
from felicific._audit.persons import (
    EachPerson,
    believed,
    check_persons,
    debiased_people,
    fractions_among,
    lacks_labels,
    rates_of,
    revalued,
)
from felicific._fit.effect import Effect
from felicific._fit.fitted import achieved, outcome_of
from felicific._people.people import People
from felicific._policy.ledger import find_origin, real_ledger
from felicific._policy.lottery import faces_lottery
from felicific._policy.policy import Policy
from felicific._problem.baseline import TODAY, UNCONSTRAINED, Baseline
from felicific._problem.happiness import fractions_of
from felicific._problem.problem import Problem
from felicific._problem.unions import Grouping, known_groups
from felicific._program.aggregates import Outcome, divided, gaps_of
from felicific._program.crowd import Ledger
from felicific._tables.memory import row_argmax
from felicific._typing import Codes, Floats
from felicific.exceptions import DataError

#: Most numbers that the decision probabilities of several policies take up at a time.
TOGETHER = 1 << 22


@dataclass(frozen=True, eq=False)
class Tryout:
    """People with labels on whom many policies of one frontier are tried.

    Happiness and loss are evaluated once: what they are expected to be, by which individual policies decide, and what
    they really are. The ``baseline`` is what policies are compared with: today's decisions, or what stands in their
    place.
    """

    problem: Problem
    people: People
    baseline: Baseline = TODAY

    def beside_least_loss(self, policy: Policy) -> Tryout:
        """Where nobody said what is decided today: beside the best such policy of which nothing is required."""
        probabilities = self.probabilities(policy.unrequired)
        if faces_lottery(probabilities).any():
            raise DataError(
                "Nobody said what is decided today, and the least loss without requirements draws lots here, which is "
                "nothing to compare people's decisions with.",
                "Pass today=, the column of what was really decided.",
            )
        return Tryout(self.problem, replace(self.people, today=row_argmax(probabilities)), UNCONSTRAINED)

    def probabilities(self, policy: Policy) -> Floats:
        """Decision probabilities of a policy; what those of the same sight see of people is looked at once."""
        return np.asarray(next(self._probabilities_along([policy]))[0])

    def outcome(self, probabilities: Floats) -> Outcome:
        """Loss, group means and gaps of decision probabilities."""
        return Outcome(*self._result(probabilities))

    def effect(self, policy: Policy | None = None) -> Effect:
        """What a policy does to people beside today's decisions; without one, what these do themselves."""
        probabilities = self.probabilities_today if policy is None else self.probabilities(policy)
        return self.effect_of(probabilities, policy)

    def effects(self, policies: Sequence[Policy]) -> Iterator[Effect]:
        """The effect of each of some policies of one sight."""
        left = list(policies)[::-1]
        for part in self._probabilities_along(policies):
            for probabilities in part:
                yield self.effect_of(np.asarray(probabilities), left.pop())

    def effect_of(self, probabilities: Floats, policy: Policy | None) -> Effect:
        """What decision probabilities do to people beside today's decisions."""
        drawn = policy is not None and policy.draws_lots
        kept = np.zeros(len(self.people.groups), dtype=bool)
        moves = self._moves(probabilities)
        if policy is None:
            kept[:] = True
        elif self.people.today is None and policy.groups == self.people.groups:
            # Whoever else belongs to such a group is decided about as today, too.
            still = np.array([np.count_nonzero(table - np.diag(np.diag(table))) == 0 for table in moves])
            kept = policy.keeps_today & still
        return Effect(
            policy,
            self.measured(probabilities, drawn=drawn),
            moves,
            *self._flows(probabilities),
            self._per_group(faces_lottery(probabilities)[:, None].astype(np.float64))[:, 0],
            kept,
            probabilities,
        )

    def _flows(self, probabilities: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """How many people of each group gain and lose, by component; and are better off, and worse off, at all.

        Not a number of fractions, of which nobody has a part of their own.
        """
        gain, lose = (
            self._per_group(np.einsum("id,idj->ij", probabilities, side)) for side in self._ranked[:2]
        )
        up, down = (
            self._per_group((probabilities * side).sum(axis=1)[:, None])[:, 0] for side in self._ranked[2:]
        )
        for j, component in enumerate(self.problem.components):
            if component.over:
                gain[:, j] = lose[:, j] = np.nan
        if not self._wanted:
            up, down = np.full_like(up, np.nan), np.full_like(down, np.nan)
        return gain, lose, up, down

    @property
    def _wanted(self) -> list[int]:
        """Components that people want more of, and each has a part of."""
        parts = enumerate(self.problem.components)
        return [j for j, component in parts if component.wanted and not component.over]

    @cached_property
    def _ranked(self) -> tuple[Floats, Floats, Floats, Floats]:
        """How likely each decision is worth more, and less, to each person than today's.

        By component, of shape (n, D, components); and of what people want, less of nothing and more of something, and
        less of something, of shape (n, D). It is known where labels are, and else expected over what they may be.
        """
        if not self._unlabelled:
            return self._ranks(self._ledger[0].value[:, :, 0])
        chances, found = believed(self.people), None
        for k, part in enumerate(self._supposed):
            ranks = self._ranks(part.value[:, :, 0])
            sides = [side * chances[:, k].reshape(-1, *(1,) * (side.ndim - 1)) for side in ranks]
            found = sides if found is None else [one + other for one, other in zip(found, sides, strict=True)]
        assert found is not None, "there are labels"
        return found[0], found[1], found[2], found[3]

    def _ranks(self, value: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The same, given what each decision is worth to each person."""
        now = value[np.arange(len(value)), self._today][:, None]
        better, worse = value > now, value < now
        harmed = worse[:, :, self._wanted].any(axis=2)
        helped = better[:, :, self._wanted].any(axis=2) & ~harmed
        return tuple(side.astype(np.float64) for side in (better, worse, helped, harmed))  # type: ignore[return-value]

    def persons(self, policy: Policy) -> EachPerson:
        """What a policy does to each person."""
        return self.measured(self.probabilities(policy), drawn=policy.draws_lots)

    def measured(self, probabilities: Floats, *, drawn: bool) -> EachPerson:
        """What decision probabilities, which may be ``drawn`` by lot, do to each person."""
        values, debiased = self._values(probabilities), self._debiased(probabilities)
        losses = np.asarray(np.einsum("id,id->i", probabilities, self._ledger[0].cost))
        rates = rates_of(self.problem, drawn=drawn, debiased=debiased)
        loss_rate = self._losses_are_rates and not drawn
        everyone = self._everyone
        inside, share, of = everyone.inside, None, self.problem.components
        if self._fractions:
            values, inside, share = fractions_among(values, inside, everyone.origin, of)
        persons = replace(
            everyone,
            rates=rates,
            loss_rate=loss_rate,
            values=values,
            losses=losses,
            inside=inside,
            share=share,
            lots=share is not None,
            debiased=debiased,
        )
        persons = persons if debiased is None else revalued(persons)
        check_persons(persons)
        return persons

    def _debiased(self, probabilities: Floats) -> Debiased | None:
        """Where labels are missing: what everybody would be worth with each, of what looks at labels."""
        if not self._unlabelled:
            return None
        ledgers, n = self._supposed, len(self.problem.happiness)
        parts: dict[int, Supposed] = {}
        for j in self._looking:
            value = np.stack(
                [np.einsum("id,id->i", probabilities, one.value[:, :, 0, j]) for one in ledgers], axis=1
            )
            by_label = self.problem.happiness[j].by_label
            among = np.stack([one.among[:, 0, j] for one in ledgers], axis=1) if by_label else None
            parts[j] = Supposed(value, among)
        if self.problem.loss.looks_at_y:
            cost = np.stack([np.einsum("id,id->i", probabilities, one.cost) for one in ledgers], axis=1)
            parts[n] = Supposed(cost)
        return debiased_people(self.people, parts)

    @cached_property
    def _losses_are_rates(self) -> bool:
        """Whether everybody's loss is 0 or 1, but for lotteries; what missing labels leave of it may be anything."""
        loss = self.problem.loss
        return loss.is_rate and not (self._unlabelled and loss.looks_at_y)

    @cached_property
    def _unlabelled(self) -> bool:
        return self.people.missing is not None and lacks_labels(self.people)

    @property
    def _looking(self) -> list[int]:
        """Components that look at labels."""
        return [j for j, happiness in enumerate(self.problem.happiness) if happiness.looks_at_y]

    # -----------------------------------------------------------------------------------------------------
    # Many policies of one frontier

    def _probabilities_along(self, policies: Sequence[Policy]) -> Iterator[Floats]:
        """Decision probabilities, of shape (policies, n, D), of so many policies at a time as fit in memory."""
        if not policies:
            return
        one, seen_by = policies[0], vars(self).setdefault("_seen_by", {})
        sight = one.sight
        if id(sight) not in seen_by:
            seen_by[id(sight)] = sight, one.look_at(self.people)
        _, seen = seen_by[id(sight)]
        size = max(1, TOGETHER // (len(self.people.codes) * len(self.problem.decisions)))
        for start in range(0, len(policies), size):
            yield one.rounded(one.follow(policies[start : start + size], seen))

    def _result(self, probabilities: Floats) -> tuple[float, Floats, Floats]:
        """Loss, group means and gaps."""
        if self._unlabelled:
            found = outcome_of(self.measured(probabilities, drawn=True))
            return found.loss, found.means, found.gaps
        (ledger, origin), weight = self._ledger, self._weights
        relative = self._per_group(self._values(probabilities)) / np.where(
            self._counted > 0, self._counted, np.nan
        )
        if self._fractions:
            relative = divided(relative, origin, self._fractions)
        loss = float(weight @ np.einsum("id,id->i", probabilities, ledger.cost) / weight.sum())
        known = relative[self._known]
        gaps = gaps_of(known) if self._fractions else known.max(axis=0) - known.min(axis=0)
        return loss, relative + origin, gaps

    @cached_property
    def _known(self) -> list[int]:
        """Positions of the groups that gaps are between."""
        return known_groups(self.people.groups, self.people.attributes, self.people.unknown)

    @cached_property
    def _fractions(self) -> list[tuple[int, int]]:
        return fractions_of(self.problem.components)

    def _per_group(self, numbers: Floats) -> Floats:
        """Sums over every group of numbers of shape (n, components)."""
        codes, weight, g = self.people.codes, self._weights, len(self.people.groups)
        return np.stack([np.bincount(codes, weight * column, minlength=g) for column in numbers.T], axis=1)

    @cached_property
    def _counted(self) -> Floats:
        """Weight of the people of every group whom each component counts."""
        return self._per_group(self._ledger[0].among[:, 0])

    def _moves(self, probabilities: Floats) -> Floats:
        """How many people of each group move from which decision today to which, expected over the lottery."""
        g, k = len(self.people.groups), len(self.problem.decisions)
        counts = [
            np.bincount(self._places, self._weights * then, minlength=g * k) for then in probabilities.T
        ]
        return np.stack(counts, axis=-1, dtype=np.float64).reshape(g, k, -1)

    @cached_property
    def today(self) -> Outcome:
        """What today's decisions do."""
        return achieved(self.problem, self.people, self.probabilities_today)

    @property
    def today_if_known(self) -> Outcome | None:
        """The same; None where nobody said what is decided today."""
        return self.today if self.people.knows_today else None

    @cached_property
    def probabilities_today(self) -> Floats:
        """Today's decisions, each with probability one."""
        return np.asarray(np.eye(len(self.problem.decisions))[self._today])

    @cached_property
    def _today(self) -> Codes:
        """What is decided about each person today."""
        return self.people.decisions_today()

    @cached_property
    def _places(self) -> Codes:
        """Group and decision of today of each person, as one number."""
        return np.asarray(self.people.codes * len(self.problem.decisions) + self._today)

    @cached_property
    def _weights(self) -> Floats:
        return self.people.weights

    @cached_property
    def _everyone(self) -> EachPerson:
        """The people, with what does not depend on any decision; their values are yet to be filled in."""
        (ledger, origin), people, problem = self._ledger, self.people, self.problem
        inside = ledger.among[:, 0] == 1.0
        return EachPerson(
            groups=people.groups,
            components=problem.components,
            origin=origin,
            rates=np.zeros(len(origin), dtype=bool),
            loss_rate=False,
            loss_bounds=problem.loss.bounds,
            sampling=people.sampling,
            cluster=people.cluster_codes,
            codes=people.codes,
            values=np.zeros(inside.shape),
            inside=None if inside.all() else inside,
            losses=None,
            weight=people.weight,
            reach=self._reach,
            checksum=0,
            grouping=Grouping(people.attributes, people.unknown),
        )

    @property
    def _reach(self) -> Floats:
        """Mean square of how far apart decisions leave a person: by group and component; of everybody by loss."""
        ledger, weight = self._ledger[0], self._weights
        reach = np.zeros((self._counted.shape[0] + 1, self._counted.shape[1] + 1))
        far = np.ptp(ledger.value[:, :, 0], axis=1) * ledger.among[:, 0]
        reach[:-1, :-1] = self._per_group(far**2) / np.where(self._counted > 0, self._counted, 1.0)
        reach[-1, -1] = np.average(np.ptp(ledger.cost, axis=1) ** 2, weights=weight)
        if not self._unlabelled:
            return reach
        sizes = self._per_group(np.ones((len(weight), 1)))[:, 0]
        for j in self._looking:
            far = self._expected(
                [np.ptp(part.value[:, :, 0, j], axis=1) ** 2 * part.among[:, 0, j] for part in self._supposed]
            )
            mass = self._counted[:, j]
            held = np.where(mass > 0, mass, 1.0)
            part = sizes / held if self.problem.happiness[j].by_label else 1.0
            reach[:-1, j] = self._per_group(far[:, None])[:, 0] / held * part**2
        far = self._expected([np.ptp(part.cost, axis=1) ** 2 for part in self._supposed])
        reach[-1, -1] = np.average(far, weights=weight)
        return reach

    def _values(self, probabilities: Floats) -> Floats:
        """What every person may expect, relative to the origin."""
        ledger: Ledger = self._ledger[0]
        values = np.zeros((len(probabilities), ledger.value.shape[3]))
        for d in range(probabilities.shape[1]):
            values += probabilities[:, d : d + 1] * ledger.value[:, d, 0]
        return values

    @cached_property
    def _ledger(self) -> tuple[Ledger, Floats]:
        """Under the real labels; where some are missing, as it is believed of those who have none."""
        if self.people.knows_today:
            self.today  # noqa: B018  # says what is wrong with these people
        seeing = self.problem.seeing
        if not self._unlabelled:
            origin = find_origin(seeing, self.people)
            return real_ledger(seeing, self.people, origin), origin
        first = self._supposed[0]
        cost, value, among = first.cost, first.value.copy(), first.among.copy()
        if self.problem.loss.looks_at_y:
            cost = self._expected([part.cost for part in self._supposed])
        for j in self._looking:
            value[:, :, 0, j] = self._expected([part.value[:, :, 0, j] for part in self._supposed])
            if self.problem.happiness[j].by_label:
                among[:, 0, j] = self._expected([part.among[:, 0, j] for part in self._supposed])
        return Ledger(cost, value, among), self._origin

    def _expected(self, numbers: Sequence[Floats]) -> Floats:
        """What is believed of numbers that are known for each label; people come first."""
        chances = believed(self.people)
        wide = [chances[:, k].reshape(-1, *(1,) * (one.ndim - 1)) for k, one in enumerate(numbers)]
        return np.asarray(sum(each * one for each, one in zip(wide, numbers, strict=True)))

    @cached_property
    def _origin(self) -> Floats:
        """A typical value of every component, of people who all have a label."""
        seeing, labels = self.problem.seeing, self.problem.labels
        found = find_origin(seeing, self.people.with_labels)
        return (
            found if len(self.people.with_labels) else find_origin(seeing, self.people.supposing(0, labels))
        )

    @cached_property
    def _supposed(self) -> list[Ledger]:
        """As if each label were everybody's."""
        seeing, labels = self.problem.seeing, self.problem.labels
        return [
            real_ledger(seeing, self.people.supposing(k, labels), self._origin) for k in range(len(labels))
        ]
