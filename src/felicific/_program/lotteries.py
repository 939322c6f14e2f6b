r"""Lotteries that keep everybody's chances, for signals to choose from in place of decisions.

Where people keep chances :math:`L_d`, :math:`q = L + (1 - \sum L) q'` for a policy q' of the rest: so a decision stands
for the lottery that keeps the chances and else decides it. Where chances are those of a range of scores, the chance of
the second of two decisions lies between bounds that differ along the score. What such a policy mixes are then
deterministic maps of scores to the bounds' values, which may not fall, and keep within the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from felicific._problem.exploration import Chance
from felicific._program.order import Empty, Order
from felicific._program.signals import Signal
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import ConstraintError

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates
    from felicific._program.master import Answer
    from felicific._program.program import Program


@dataclass(frozen=True, eq=False)
class Lotteries:
    """What signals choose from.

    Attributes
    ----------
    chances : tuple of Chance
        What people keep.
    each : array of shape (tables or 1, choices, decisions)
        How likely every choice makes every decision.
    order, decided_order : Order
        The order of choices, and of decisions.
    floors : array of shape (tables, signals, decisions)
        The chances that are kept.
    allowed : array of shape (tables, signals, choices), or None
        Which choices are within the bounds, where these differ along the score.
    """

    chances: tuple[Chance, ...]
    each: Floats
    order: Order
    decided_order: Order
    floors: Floats
    allowed: Truths | None

    def of(self, table: Floats) -> Floats:
        """What every choice is, from what every decision is: arrays of shape (tables, signals, decisions, ...)."""
        if table.ndim == 3:
            return np.asarray(table @ self.each.transpose(0, 2, 1))
        return np.moveaxis(np.moveaxis(table, 2, -1) @ self.each.transpose(0, 2, 1)[:, None], -1, 2)

    def allowing(self, costs: Floats) -> Floats:
        """With infinite costs for what is not allowed."""
        return costs if self.allowed is None else np.where(self.allowed, costs, np.inf)

    def decided(self, mixed: Floats, empty: Sequence[Empty], baseline: Codes) -> Floats:
        """The policy of choices of shape (tables, signals, choices), which are known where somebody is."""
        if self.allowed is None:
            return np.asarray(self.order.filled(mixed, empty, baseline) @ self.each)
        q = self.decided_order.filled(mixed @ self.each, empty, baseline)
        second = np.clip(q[:, :, 1], self.floors[:, :, 1], 1.0 - self.floors[:, :, 0])
        return np.stack([1.0 - second, second], axis=2)

    def missed(self, q: Floats, slack: float) -> list[Chance]:
        """The chances that somebody does not keep by a policy of shape (groups, signals, decisions)."""
        short = q < self.floors - slack
        return [chance for chance in self.chances if short[:, :, chance.decision].any()]

    def prices(self, program: Program, answer: Answer) -> dict[str, float]:
        """Loss per unit of every chance.

        A little more of it changes what choices decide and, to first order, nothing else: its price is what that costs,
        less what it is worth to the requirements.
        """
        worth = np.einsum("zsdj,zj->zsd", program.coefficients, answer.worth * program.scales)
        worth = worth if program.sees_group else worth.sum(axis=0, keepdims=True)
        price, prices = program.regret * program.cost_scale - worth, dict[str, float]()
        for chance in self.chances:
            groups = slice(None) if chance.groups is None else list(chance.groups)
            mixed, own = answer.mixed[groups], price[groups]
            if self.allowed is None:
                holds = self.floors[groups][:, :, chance.decision] <= chance.at_least
                rise = own[:, :, [chance.decision]] - own
            else:
                least = chance.at_least if chance.decision else 1.0 - chance.at_least
                holds = np.ones(mixed.shape[:2], dtype=bool)
                sign = 1.0 if chance.decision else -1.0
                rise = sign * (own[:, :, 1] - own[:, :, 0])[:, :, None] * (self.each[0, :, 1] == least)
            slope = float(((mixed * rise).sum(axis=2) * holds).sum())
            prices[chance.words] = prices.get(chance.words, 0.0) + max(slope, 0.0)
        return prices


def lotteries_of(
    chances: Sequence[Chance], aggregates: Aggregates, order: Order, *, sees_group: bool
) -> Lotteries:
    """What signals choose from where people keep these chances."""
    n_groups, n_labels = len(aggregates.groups), len(aggregates.classes)
    n_decisions = len(aggregates.decisions)
    floors = np.zeros((n_groups, aggregates.signal.size(n_labels), n_decisions))
    for chance in chances:
        own = floors[:, :, chance.decision]
        inside = cells_of(chance, aggregates.signal, n_groups, n_labels, aggregates.rising)
        own[...] = np.where(inside, np.maximum(own, chance.at_least), own)
    floors = floors if sees_group else floors[:1]
    if all(chance.scores is None for chance in chances):
        kept = floors[:, 0][:, None]
        each = kept + (1.0 - kept.sum(axis=2, keepdims=True)) * np.eye(n_decisions)
        return Lotteries(tuple(chances), each, order, order, floors, None)
    low, high = floors[:, :, 1], 1.0 - floors[:, :, 0]
    values = np.unique([low, high])
    each = np.stack([1.0 - values, values], axis=1)[None]
    steps = np.diff(
        order.ranks[:, :2]
    )  # whether the second decision stands above the first, below, or nowhere
    own_order = Order(order.chains, steps * np.arange(len(values)) - np.minimum(steps, 0) * (len(values) - 1))
    allowed = (values >= low[:, :, None]) & (values <= high[:, :, None])
    return Lotteries(tuple(chances), each, own_order, order, floors, allowed)


def cells_of(
    chance: Chance, signal: Signal, n_groups: int, n_classes: int, rising: bool | None = None
) -> Truths:
    """Which signals keep a chance, of shape (groups, signals).

    Of scores, every bin that reaches into their range; and where the second of two decisions may not become less likely
    as the score rises (or falls, where listed decisions are not ``rising``), what follows from that for the bins
    beyond, somebody there or nobody.
    """
    kept = np.zeros((n_groups, signal.size(n_classes)), dtype=bool)
    kept[slice(None) if chance.groups is None else list(chance.groups)] = True
    if chance.scores is None:
        return kept
    if signal.line(n_classes) is None or signal.of_values:
        seen = "a decision function, whose values are no scores" if signal.of_values else "no score"
        raise ConstraintError(
            f"Exploration speaks of scores ({chance.words}), and this policy sees {seen}.",
            "Leave scores= out, or use policy='score' or policy='individual'.",
        )
    low, high = chance.scores
    inside = np.array([top >= low and above < high for _, above, top in signal.ranges(n_classes)])
    if signal.chains(n_classes) if rising is None else signal.climbs(n_classes):
        upwards = (chance.decision == 1) is (rising is not False)
        inside = np.logical_or.accumulate(inside) if upwards else np.logical_or.accumulate(inside[::-1])[::-1]
    return np.asarray(kept & inside)
