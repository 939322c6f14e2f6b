r"""Ground: people to whom every amount is worth a straight line, as column generation sums over them.

A deterministic policy weighs the squared distance from the calibrated prediction m against happiness,

.. math:: a_i = \arg\min_{low \le a \le high} \; \alpha (a - m_i)^2 - \sum_{zj} \kappa_{zj} \pi_{iz} \beta_j(i, z) a
        = \mathrm{clip}\Big(m_i + \sum_{zj} w_{zj} \pi_{iz} \beta_j(i, z)\Big), \qquad w = \kappa / 2 \alpha,

with :math:`\beta` the worth of one more unit and :math:`\pi` how likely the person is of each group: sure, where the
group is seen. No levels are needed. See :mod:`felicific._program.generation` for what is made of such policies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._policy.lines import AmountWorth, worth_of_people
from felicific._problem.exploration import Chance
from felicific._program.crowd import CHOOSES, Choice, Crowd, Mixture, Sums
from felicific._typing import Floats

#: Where happiness alone decides, it weighs so many times what moves somebody across the whole range.
ALONE = 1e9


@dataclass(frozen=True, eq=False)
class AmountGround:
    """People in memory, with what is expected of amounts; where the group is not seen also what is real.

    Attributes
    ----------
    crowd : Crowd
        Groups, measures and weights; there are no decisions to choose from.
    calibrated : array of shape (n,)
        Calibrated predictions.
    bounds : pair of float
        The least and the largest amount.
    expected, real : AmountWorth
        What amounts are worth: by how likely everybody is of each group, and by their own group.
    """

    crowd: Crowd
    calibrated: Floats
    bounds: tuple[float, float]
    expected: AmountWorth
    real: AmountWorth
    baseline: Floats
    chances: tuple[Chance, ...] = field(default=())

    @classmethod
    def of(
        cls, problem: LinesProblem, people: AmountPeople, calibrated: Floats, bounds: tuple[float, float]
    ) -> AmountGround:
        """Evaluate happiness for everybody."""

        def worth(chances: Floats | None) -> AmountWorth:
            return worth_of_people(
                problem.happiness, people.batch(slice(0, len(people))), bounds, people.groups, chances
            )

        real = worth(None)
        expected = real if problem.sees_group else worth(people.group_proba)
        counted = real.counted(people.codes, people.weights, len(people.groups))
        value = real.total(people.codes, people.weights, len(people.groups), np.clip(calibrated, *bounds))
        origin = value.sum(axis=0) / np.maximum(counted.sum(axis=0), 1e-300)
        crowd = Crowd(
            decisions=np.empty(0),
            groups=people.groups,
            measures=problem.measures,
            origin=origin,
            weight=people.weights,
            group=people.codes,
            own=people.codes,
            sees_group=problem.sees_group,
            attributes=people.attributes,
            weight_kind=people.weight_kind,
            whole=bool((people.weights % 1 == 0).all()),
        )
        return cls(crowd, calibrated, bounds, expected, real, people.decided_baseline)

    @property
    def has_real(self) -> bool:
        """Whether what is known of people differs from what is expected of them."""
        return self.real is not self.expected

    @cached_property
    def _reach(self) -> Floats:
        """The largest worth of one more unit, by measure."""
        return np.asarray(np.abs(self.expected.slope).max(axis=(0, 1), initial=0.0))

    @cached_property
    def counted(self) -> Floats:
        """Weight of who is really counted, of shape (groups, measures); 1 where nobody is."""
        counted = self.real.counted(self.crowd.group, self.crowd.weight, len(self.crowd.groups))
        return np.where(counted > 0, counted, 1.0)

    @cached_property
    def swing(self) -> Floats:
        """How far amounts can move the mean of a group, by measure."""
        span = self.real.span(self.crowd.group, self.crowd.weight, len(self.crowd.groups)) / self.counted
        return np.asarray(span.max(axis=0, initial=0.0) * (self.bounds[1] - self.bounds[0]))

    def means(self, amounts: Floats) -> Floats:
        """Real means of amounts, relative to the origin, of shape (groups, measures)."""
        return self._value(self.real, amounts) / self.counted

    def weights(self, alpha: float, kappa: Floats) -> Floats:
        """How far one unit of slope moves an amount, by group and measure, in a deterministic policy."""
        if alpha:
            return np.asarray(kappa / (2.0 * alpha))
        largest = float((np.abs(kappa) * self._reach).max(initial=0.0))
        return np.asarray(kappa * (ALONE * (self.bounds[1] - self.bounds[0]) / largest) if largest else kappa)

    def amounts(self, weights: Floats) -> Floats:
        """What everybody gets by such weights."""
        return np.clip(self.calibrated + self.expected.pushed(weights, self.crowd.group), *self.bounds)

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do."""
        return [self._done(self.amounts(self.weights(alpha, kappa))) for alpha, kappa, _ in choices]

    def _per_group(self, numbers: Floats) -> Floats:
        crowd = self.crowd
        return np.bincount(crowd.group, crowd.weight * numbers, len(crowd.groups)).astype(np.float64)

    def _value(self, worth: AmountWorth, amounts: Floats) -> Floats:
        """Sums of happiness, relative to the origin, of shape (groups, measures)."""
        crowd = self.crowd
        given = crowd.group, crowd.weight, len(crowd.groups)
        return worth.total(*given, amounts) - self.crowd.origin * worth.counted(*given)

    def _done(self, amounts: Floats) -> Sums:
        """Sums of some amounts."""
        shape = (len(self.crowd.groups), len(self.crowd.measures))
        cost = self._per_group((amounts - self.calibrated) ** 2)
        sums = {
            "change": self._per_group((amounts - self.baseline) ** 2),
            "changed": self._per_group((amounts != self.baseline).astype(np.float64)),
            "gains": np.zeros(shape),
            "loses": np.zeros(shape),
        }
        for name, worth in self._both:
            sums[f"{name} loss"], sums[f"{name} value"] = cost, self._value(worth, amounts)
        return sums

    @property
    def _both(self) -> list[tuple[str, AmountWorth]]:
        return [("expected", self.expected), *([("real", self.real)] if self.has_real else [])]

    def totals(self) -> Sums:
        """Mass, people, who is counted, the baseline's amounts, and how far amounts can move every measure."""
        crowd, (low, high) = self.crowd, self.bounds
        given = crowd.group, crowd.weight, len(crowd.groups)
        sums: Sums = {
            "mass": self._per_group(np.ones(len(self.calibrated))),
            "rows": np.bincount(crowd.group, minlength=len(crowd.groups)).astype(np.float64),
            "spread": self.expected.span(*given) * (high - low),
            "size": np.abs(self._value(self.expected, np.full(len(self.calibrated), low))),
        }
        for name, worth in self._both:
            sums[f"{name} counted"] = worth.counted(*given)
            sums[f"{name} least"] = worth.least(*given, self.bounds) - crowd.origin * worth.counted(*given)
            sums[f"{name} baseline loss"] = self._per_group((self.baseline - self.calibrated) ** 2)
            sums[f"{name} baseline value"] = self._value(worth, self.baseline)
        return sums

    def keeping(self, chances: tuple[Chance, ...]) -> AmountGround:
        """Nobody keeps a chance of an amount."""
        return self

    def explored(self, mixture: Mixture) -> Sums:
        """No chances are kept."""
        return {}


def followed(ground: AmountGround, mixture: Mixture) -> Floats:
    """The weights of every deterministic policy that is mixed, of shape (policies, groups, measures)."""
    assert (mixture.fixed == CHOOSES).all(), "no policy of amounts decides alike about everybody"
    return np.array([ground.weights(alpha, kappa) for alpha, kappa, _ in mixture.choices])
