r"""The one linear program: what decisions cost and do, and the best mixture of deterministic policies.

.. math::
    \min_q \frac{1}{W} \sum_{zsd} \mathrm{loss}_{zsd} q_{zsd}
    \quad \text{s.t.} \quad q \ge 0, \; \sum_d q_{zsd} = 1, \;
    \text{an order along the signals}, \; \text{rows over the means } m_{zj}(q)

with :math:`m_{zj}(q) = \sum_{sd} \mathrm{value}_{zsdj} q_{zsd} / \sum_s \mathrm{among}_{zsj}`. A policy that keeps the
order is a mixture of deterministic ones, table by table (a table for each group, or one for all where the group is not
seen). :mod:`felicific._program.master` mixes them.

Scaling decides whether the answer is right. Per group and signal the value at a reference decision moves to the
right-hand side; rows are divided by the most by which decisions move their means; costs are regrets scaled to one. What
comes back is evaluated again from q in the user's units, and an answer that fails that check raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from felicific._capacity import check_room
from felicific._problem.exploration import Chance, refuse_chances
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, changed_by, charged_losses
from felicific._program.highs import TOLERANCE
from felicific._program.hulls import Corners
from felicific._program.lotteries import Lotteries, lotteries_of
from felicific._program.order import Empty, Order
from felicific._program.pool import Blocks, Pool
from felicific._typing import Codes, Floats, Truths

#: Numbers in memory for each that the program is made of, while it is written and solved; measured.
SOLVED = 8.0

#: Rounding error of a sum, relative to the sum of its terms' sizes.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Program:
    """The scaled program, together with what undoes the scaling.

    Attributes
    ----------
    aggregates : Aggregates
        Where signals of few people are treated ``alike``, with their sums at the one that stands for them.
    loss : array of shape (groups, signals, decisions)
        Sums of the loss and what changed decisions cost.
    occupied : array of shape (tables, signals)
        Where somebody is.
    regret : array of shape (tables, signals, decisions)
        What is minimised, scaled by ``cost_scale``.
    coefficients, constants : arrays of shape (groups, signals, decisions, measures) and (groups, measures)
        Group means, divided by ``scales``: what decisions add to them, and the rest.
    lotteries : Lotteries, or None
        What a signal chooses from where people keep chances.
    given_changes : array of shape (tables, signals, decisions), or None
        How far decisions are from the baseline's, where the signals do not tell.
    """

    aggregates: Aggregates
    loss: Floats
    occupied: Truths
    regret: Floats
    cost_scale: float
    least_loss: float
    coefficients: Floats
    constants: Floats
    scales: Floats
    sees_group: bool
    order: Order
    alike: Codes | None = None
    lotteries: Lotteries | None = None
    given_changes: Floats | None = None
    pool: Pool = field(default_factory=Pool)

    @classmethod
    def of(
        cls,
        aggregates: Aggregates,
        *,
        sees_group: bool = True,
        change_cost: ChangeCost = 0.0,
        chances: Sequence[Chance] = (),
        scales: Floats | None = None,
        changes: Floats | None = None,
    ) -> Program:
        """Scale aggregates into the coefficients of the program, with what changed decisions cost."""
        alike = aggregates.alike(sees_group)
        aggregates = aggregates if alike is None else aggregates.moved(alike)
        n_decisions = aggregates.loss.shape[2]
        check_size(aggregates)
        if chances:
            refuse_chances(chances, len(aggregates.groups), sees_group=sees_group)
        mass, loss = aggregates.mass, charged_losses(aggregates, change_cost)
        charged = loss
        if not sees_group:
            mass, loss = mass.sum(axis=0, keepdims=True), loss.sum(axis=0, keepdims=True)
        # Of few decisions, one after the other is faster than along the last axis.
        each = np.moveaxis(loss, 2, 0)
        least = reduce(np.minimum, each)
        regret = np.empty(loss.shape)
        for d in range(n_decisions):
            np.subtract(each[d], least, out=regret[:, :, d])
        cost_scale = float(regret.max())
        regret /= cost_scale if cost_scale > 0 else 1.0
        base = aggregates.value[:, :, -1]
        for d in range(n_decisions - 2, -1, -1):  # the value at the first of the best decisions
            base = np.where((each[d] == least)[:, :, None], aggregates.value[:, :, d], base)
        counted = aggregates.divisor
        coefficients = np.empty(aggregates.value.shape)
        for d in range(n_decisions):
            np.subtract(aggregates.value[:, :, d], base, out=coefficients[:, :, d])
        coefficients /= counted[:, None, None, :]
        level = base.sum(axis=1) / counted
        if scales is None:
            # Negative ones apart, so that nothing is copied.
            high, low = (most(axis=(0, 1, 2), initial=0.0) for most in (coefficients.max, coefficients.min))
            scales = np.maximum(high, -low)
        if not (scales > 0).all():
            # Where no decision matters, what is between the groups is all there is to measure by, or its size.
            apart, noise = level.max(axis=0) - level.min(axis=0), rounding_of(aggregates)
            scales = np.where(scales > 0, scales, np.where(apart > noise, apart, noise / ROUNDING))
            scales[scales == 0.0] = 1.0
        coefficients /= scales
        order = Order.of(aggregates)
        return cls(
            aggregates=aggregates,
            loss=charged,
            occupied=mass > 0,
            regret=regret,
            cost_scale=cost_scale / aggregates.total,
            least_loss=float(least.sum()) / aggregates.total,
            coefficients=coefficients,
            constants=level / scales,
            scales=scales,
            sees_group=sees_group,
            order=order,
            alike=alike,
            lotteries=lotteries_of(chances, aggregates, order, sees_group=sees_group) if chances else None,
            given_changes=changes,
        )

    def branch(self) -> Program:
        """The same with a pool of its own, which begins as this one is."""
        branch = object.__new__(Program)
        vars(branch).update(vars(self), pool=self.pool.copy())
        return branch

    def __getstate__(self) -> dict[str, Any]:
        return {
            part.name: getattr(self, part.name) for part in fields(self)
        }  # not what was worked out on the way

    def value(self, q: Floats) -> float:
        """What is minimised: the loss, with what changed decisions cost."""
        return float(np.einsum("zsd,zsd->", self.loss, q)) / self.aggregates.total

    @cached_property
    def rounding(self) -> Floats:
        """Differences between group means that may be nothing but rounding, by measure."""
        return rounding_of(self.aggregates)

    @cached_property
    def swing(self) -> Floats:
        """The most by which decisions can move the mean of a group, by measure, not scaled.

        Of a measure that no decision changes, what means are divided by.
        """
        swing = _largest(self.coefficients).sum(axis=1).max(axis=0)
        return np.asarray(np.where(swing > 0, swing, 1.0) * self.scales)

    @property
    def spread(self) -> float:
        """How far apart decisions can leave the loss."""
        return float(self.regret.max(axis=2)[self.occupied].sum()) * self.cost_scale

    @cached_property
    def largest_loss(self) -> float:
        """The largest size of a signal's loss, with what changed decisions cost."""
        return max(float(self.loss.max()), -float(self.loss.min())) / self.aggregates.total

    @cached_property
    def slack(self) -> float:
        """By how much something may seem to be out of reach by rounding alone, scaled."""
        apart = np.abs(self.constants - self.constants.mean(axis=0)).max(initial=0.0)
        return max(TOLERANCE, 1e-14 * max(1.0, float(apart)))

    @cached_property
    def changes(self) -> Floats:
        """How far every decision is from the baseline's, of shape (tables, signals, decisions); at most 1.

        A change counts for as many people as it concerns, and the more, the further they are from where the baseline's
        decision turns into another: by the share of the group that lies between, where signals have an order.
        """
        if self.given_changes is not None:
            return self.given_changes
        aggregates = self.aggregates
        mass = aggregates.mass if self.sees_group else aggregates.mass.sum(axis=0, keepdims=True)
        n_decisions = aggregates.loss.shape[2]
        if aggregates.listed:  # the signals do not tell, so by how many people each decision changes
            if aggregates.baseline_mass is None:
                return np.zeros((*mass.shape, n_decisions))
            changed = changed_by(aggregates)
            changed = changed if self.sees_group else changed.sum(axis=0, keepdims=True)
            return np.asarray(changed / (changed.max(initial=0.0) or 1.0))
        baseline = aggregates.signal.baseline(n_decisions)
        far = np.ones(mass.shape)
        for chain in aggregates.signal.runs(n_decisions):
            if len(chain) < 2:
                continue
            here, part = baseline[chain.start : chain.stop], mass[:, chain.start : chain.stop]
            middle = part.cumsum(axis=1) - part / 2
            turns = np.flatnonzero(np.diff(here)) + 1
            edges = [part[:, :turn].sum(axis=1) for turn in turns] or [np.zeros(len(mass))]
            away = reduce(np.minimum, (np.abs(middle - edge[:, None]) for edge in edges))
            far[:, chain.start : chain.stop] = away / part.sum(axis=1, keepdims=True).clip(min=1e-300)
        far *= mass
        largest = float(far.max(initial=0.0)) if n_decisions > 1 else 0.0
        far /= largest if largest > 0 else 1.0
        return np.asarray(far[:, :, None] * (baseline[:, None] != np.arange(n_decisions)))

    @cached_property
    def empty(self) -> list[Empty]:
        """The signals at which nobody is."""
        return self.order.empty(self.occupied)

    @cached_property
    def baseline(self) -> Codes:
        """The baseline's decision at every signal; -1 where signals do not tell it."""
        aggregates = self.aggregates
        if not aggregates.listed:
            return aggregates.signal.baseline(aggregates.loss.shape[2])
        if aggregates.baseline_mass is None:
            return np.full(aggregates.mass.shape[1], -1)
        everybody = aggregates.baseline_mass.sum(axis=0)
        if ((everybody > 0).sum(axis=1) > 1).any():
            return np.full(len(everybody), -1)
        return np.where(everybody.any(axis=1), everybody.argmax(axis=1), -1)

    # -----------------------------------------------------------------------------------------------------
    # What signals choose from: decisions, or the lotteries that keep everybody's chances

    @cached_property
    def choice_order(self) -> Order:
        """The order of what signals choose from."""
        return self.order if self.lotteries is None else self.lotteries.order

    @cached_property
    def choice_costs(self) -> Floats:
        """What each choice costs, of shape (tables, signals, choices)."""
        return self.regret if self.lotteries is None else self.lotteries.of(self.regret)

    @cached_property
    def choice_changes(self) -> Floats:
        """How far each choice is from the baseline's decisions."""
        return self.changes if self.lotteries is None else self.lotteries.of(self.changes)

    @cached_property
    def choice_means(self) -> Floats:
        """What each choice adds to the scaled means, of shape (groups, signals, choices, measures)."""
        return self.coefficients if self.lotteries is None else self.lotteries.of(self.coefficients)

    @cached_property
    def blocks(self) -> Blocks:
        """What chooses for itself."""
        return Blocks.of(self.choice_order, self.occupied)

    def cheapest(self, price: Floats) -> tuple[Codes, Floats]:
        """The cheapest choices of every table that are allowed, and what those of every block cost."""
        allowed = price if self.lotteries is None else self.lotteries.allowing(price)
        chosen, cost = self.choice_order.cheapest(allowed)
        blocks = self.blocks
        if cost.shape[1] > len(blocks.runs):  # a table is one block
            cost = cost.sum(axis=1, keepdims=True)
        return chosen, cost[blocks.table, blocks.run]

    @cached_property
    def corners(self) -> Corners | None:
        """What policies are mixtures of, where that can be listed: thresholds, or single signals that choose freely."""
        order, n_choices = self.choice_order, self.choice_costs.shape[2]
        if not (order.is_threshold or order.is_free) or (
            self.lotteries and self.lotteries.allowed is not None
        ):
            return None
        return Corners(self.occupied, n_choices, order.is_threshold)

    @cached_property
    def corner_costs(self) -> Floats:
        """What each corner costs."""
        assert self.corners is not None, "they can be listed"
        return self.corners.each(self.choice_costs)

    @cached_property
    def corner_changes(self) -> Floats:
        """How far each corner is from the baseline's decisions."""
        assert self.corners is not None, "they can be listed"
        return self.corners.each(self.choice_changes)

    @cached_property
    def corner_means(self) -> Floats:
        """What each threshold adds to the scaled means, of shape (groups, thresholds, measures)."""
        assert self.corners is not None, "they can be listed"
        return np.stack([self.corners.each(part) for part in np.moveaxis(self.choice_means, 3, 0)], axis=2)

    def keeping(self, chances: Sequence[Chance]) -> Program:
        """The same where people keep these chances."""
        sight = self.aggregates, self.order
        lotteries = lotteries_of(chances, *sight, sees_group=self.sees_group) if chances else None
        return replace(self, lotteries=lotteries, pool=Pool())

    def policy(self, mixed: Floats) -> Floats:
        """The policy for all groups and signals, from what signals choose where somebody is."""
        n_groups = len(self.aggregates.groups)
        if self.lotteries is None:
            q = self.order.filled(mixed, self.empty, self.baseline)
        else:
            q = self.lotteries.decided(mixed, self.empty, self.baseline)
        q = np.repeat(q, n_groups, axis=0) if len(q) < n_groups else q
        return np.asarray(q if self.alike is None else np.take_along_axis(q, self.alike[:, :, None], axis=1))


def check_size(aggregates: Aggregates) -> None:
    """Refuse a program that has no room."""
    n_groups, n_signals, n_decisions = aggregates.loss.shape
    check_room(
        SOLVED * aggregates.value.size,
        "The linear program",
        f"{n_groups} groups x {n_signals:,} signals x {n_decisions} decisions x {aggregates.value.shape[3]:,} measures",
        "Use fewer score bins, or policy='label', merge classes or groups, or ask for a criterion of "
        "fewer parts, such as 'statistical_parity' instead of 'equalized_odds'.",
    )


def rounding_of(aggregates: Aggregates) -> Floats:
    """Differences between group means that may be nothing but rounding, by measure."""
    size = _largest(aggregates.value).sum(axis=1) / aggregates.divisor
    return np.asarray(ROUNDING * size.max(axis=0))


def _largest(tables: Floats) -> Floats:
    """The size of the largest number of every signal, over all decisions, one after the other."""
    return reduce(np.maximum, (np.abs(tables[:, :, d]) for d in range(tables.shape[2])))
