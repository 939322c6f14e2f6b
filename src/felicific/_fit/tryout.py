"""Tryout: people on whom many policies are tried, with what does not depend on the policy evaluated once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from felicific._audit.debiased import Debiased, Supposed
from felicific._audit.measure_people import (
    believed,
    check_persons,
    debiased_people,
    fractions_among,
    lacks_labels,
    rates_of,
)
from felicific._audit.measured import Measured, revalued
from felicific._fit.fitted import achieved, outcome_of
from felicific._people.people import People
from felicific._policy.ledger import find_origin, real_ledger
from felicific._policy.lottery import faces_lottery
from felicific._policy.policy import Policy
from felicific._problem.change import MODEL, UNCONSTRAINED, Reference
from felicific._problem.happiness import fractions_of
from felicific._problem.problem import Problem
from felicific._problem.unions import compared_by
from felicific._program.aggregates import Outcome, divided, gaps_of
from felicific._program.crowd import Ledger
from felicific._tables.memory import row_argmax
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError

#: Most numbers that the decision probabilities of several policies take up at a time.
TOGETHER = 1 << 22


@dataclass(frozen=True, eq=False)
class Tryout:
    """People with labels on whom many policies of one frontier are tried.

    Happiness and loss are evaluated once: what they are expected to be, by which individual policies decide, and what
    they really are. The ``reference`` is what policies are compared with: the baseline's decisions, or what stands in
    their place.
    """

    problem: Problem
    people: People
    reference: Reference = MODEL

    def beside_least_loss(self, policy: Policy) -> Tryout:
        """Where there is no baseline: beside the best such policy of which nothing is required."""
        probabilities = self.probabilities(policy.unrequired)
        if faces_lottery(probabilities).any():
            raise DataError(
                "There is no baseline, and the least loss without requirements randomizes here, which is "
                "nothing to compare people's decisions with.",
                "Pass baseline=, the column of what was really decided.",
            )
        return Tryout(self.problem, replace(self.people, baseline=row_argmax(probabilities)), UNCONSTRAINED)

    def probabilities(self, policy: Policy) -> Floats:
        """Decision probabilities of a policy; what those of the same sight see of people is looked at once."""
        return np.asarray(next(self._probabilities_along([policy]))[0])

    def outcome(self, probabilities: Floats) -> Outcome:
        """Loss, group means and gaps of decision probabilities."""
        return Outcome(*self._result(probabilities))

    def effect(self, policy: Policy | None = None) -> Effect:
        """What a policy does to people beside the baseline's decisions; without one, what these do themselves."""
        probabilities = self.probabilities_baseline if policy is None else self.probabilities(policy)
        return self.effect_of(probabilities, policy)

    def effects(self, policies: Sequence[Policy]) -> Iterator[Effect]:
        """The effect of each of some policies of one sight."""
        left = list(policies)[::-1]
        for part in self._probabilities_along(policies):
            for probabilities in part:
                yield self.effect_of(np.asarray(probabilities), left.pop())

    def effect_of(self, probabilities: Floats, policy: Policy | None) -> Effect:
        """What decision probabilities do to people beside the baseline's decisions."""
        drawn = policy is not None and policy.is_randomized
        kept = np.zeros(len(self.people.groups), dtype=bool)
        moves = self._moves(probabilities)
        if policy is None:
            kept[:] = True
        elif self.people.baseline is None and policy.groups == self.people.groups:
            # Whoever else belongs to such a group is decided on as the baseline does, too.
            still = np.array([np.count_nonzero(table - np.diag(np.diag(table))) == 0 for table in moves])
            kept = policy.keeps_baseline & still
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
        """How many people of each group gain and lose, by measure; and are better off, and worse off, at all.

        Not a number of fractions, of which nobody has a part of their own.
        """
        gain, lose = (
            self._per_group(np.einsum("id,idj->ij", probabilities, side)) for side in self._ranked[:2]
        )
        up, down = (
            self._per_group((probabilities * side).sum(axis=1)[:, None])[:, 0] for side in self._ranked[2:]
        )
        for j, measure in enumerate(self.problem.measures):
            if measure.over:
                gain[:, j] = lose[:, j] = np.nan
        if not self._wanted:
            up, down = np.full_like(up, np.nan), np.full_like(down, np.nan)
        return gain, lose, up, down

    @property
    def _wanted(self) -> list[int]:
        """Measures that people want more of, and each has a part of."""
        parts = enumerate(self.problem.measures)
        return [j for j, measure in parts if measure.wanted and not measure.over]

    @cached_property
    def _ranked(self) -> tuple[Floats, Floats, Floats, Floats]:
        """How likely each decision is worth more, and less, to each person than the baseline's.

        By measure, of shape (n, D, measures); and of what people want, less of nothing and more of something, and
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
        now = value[np.arange(len(value)), self._baseline][:, None]
        better, worse = value > now, value < now
        harmed = worse[:, :, self._wanted].any(axis=2)
        helped = better[:, :, self._wanted].any(axis=2) & ~harmed
        return tuple(side.astype(np.float64) for side in (better, worse, helped, harmed))  # type: ignore[return-value]

    def persons(self, policy: Policy) -> Measured:
        """What a policy does to each person."""
        return self.measured(self.probabilities(policy), drawn=policy.is_randomized)

    def measured(self, probabilities: Floats, *, drawn: bool) -> Measured:
        """What decision probabilities, which may be ``drawn`` at random, do to each person."""
        values, debiased = self._values(probabilities), self._debiased(probabilities)
        losses = np.asarray(np.einsum("id,id->i", probabilities, self._ledger[0].cost))
        rates = rates_of(self.problem, drawn=drawn, debiased=debiased)
        loss_rate = self._losses_are_rates and not drawn
        everyone = self._everyone
        inside, share, of = everyone.inside, None, self.problem.measures
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
            randomized=share is not None,
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
        """Measures that look at labels."""
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
        gaps = gaps_of(relative, self._compared)
        return loss, relative + origin, gaps

    @cached_property
    def _compared(self) -> Truths:
        """Which groups the gap of every measure is between, of shape (groups, measures)."""
        return compared_by(self.people.left_out, self.problem.names, self.people.groups)

    @cached_property
    def _fractions(self) -> list[tuple[int, int]]:
        return fractions_of(self.problem.measures)

    def _per_group(self, numbers: Floats) -> Floats:
        """Sums over every group of numbers of shape (n, measures)."""
        codes, weight, g = self.people.codes, self._weights, len(self.people.groups)
        return np.stack([np.bincount(codes, weight * column, minlength=g) for column in numbers.T], axis=1)

    @cached_property
    def _counted(self) -> Floats:
        """Weight of the people of every group whom each measure counts."""
        return self._per_group(self._ledger[0].among[:, 0])

    def _moves(self, probabilities: Floats) -> Floats:
        """How many people of each group move from which baseline decision to which, expected over the lottery."""
        g, k = len(self.people.groups), len(self.problem.decisions)
        counts = [
            np.bincount(self._places, self._weights * then, minlength=g * k) for then in probabilities.T
        ]
        return np.stack(counts, axis=-1, dtype=np.float64).reshape(g, k, -1)

    @cached_property
    def baseline(self) -> Outcome:
        """What the baseline's decisions do."""
        return achieved(self.problem, self.people, self.probabilities_baseline)

    @property
    def baseline_or_none(self) -> Outcome | None:
        """The same; None where nobody named the baseline."""
        return self.baseline if self.people.knows_baseline else None

    @cached_property
    def probabilities_baseline(self) -> Floats:
        """The baseline's decisions, each with probability one."""
        return np.asarray(np.eye(len(self.problem.decisions))[self._baseline])

    @cached_property
    def _baseline(self) -> Codes:
        """What the baseline decides on each person."""
        return self.people.decisions_baseline()

    @cached_property
    def _places(self) -> Codes:
        """Group and decision of the baseline of each person, as one number."""
        return np.asarray(self.people.codes * len(self.problem.decisions) + self._baseline)

    @cached_property
    def _weights(self) -> Floats:
        return self.people.weights

    @cached_property
    def _everyone(self) -> Measured:
        """The people, with what does not depend on any decision; their values are yet to be filled in."""
        (ledger, origin), people, problem = self._ledger, self.people, self.problem
        inside = ledger.among[:, 0] == 1.0
        return Measured(
            groups=people.groups,
            measures=problem.measures,
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
            attributes=people.attributes,
            left_out=people.left_out,
        )

    @property
    def _reach(self) -> Floats:
        """Mean square of how far apart decisions leave a person: by group and measure; of everybody by loss."""
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
        if self.people.knows_baseline:
            self.baseline  # noqa: B018  # says what is wrong with these people
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
        """A typical value of every measure, of people who all have a label."""
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


# ---------------------------------------------------------------------------------------------------------
# Effect: what a policy does to people beside the baseline's decisions.


@dataclass(frozen=True, eq=False)
class Effect:
    """What a policy does to people, beside the baseline's decisions.

    Attributes
    ----------
    policy : Policy or None
        None for the baseline's decisions themselves.
    persons : Measured
        What it does to each of them.
    moves : array of shape (groups, D, D)
        How many people of each group move from which decision by the baseline to which, expected over the lottery.
    gain, lose : array of shape (groups, measures)
        How many get more, and less, of each measure than from the baseline's decision; not a number of fractions.
    better, worse : array of shape (groups,)
        How many get less of nothing that people want and more of something; and less of something.
    draws : array of shape (groups,)
        How many are decided on at random.
    kept : bool array of shape (groups,)
        Groups about whom it decides as the baseline does, whoever belongs to them.
    probabilities : array of shape (n, D)
        The probability of every decision about everybody.
    """

    policy: Policy | None
    persons: Measured
    moves: Floats
    gain: Floats
    lose: Floats
    better: Floats
    worse: Floats
    randomized: Floats
    kept: Truths
    probabilities: Floats

    @property
    def changed(self) -> Floats:
        """How many people of every group get another decision than from the baseline."""
        return np.asarray(self.moves.sum(axis=(1, 2)) - np.trace(self.moves, axis1=1, axis2=2)).clip(min=0.0)
