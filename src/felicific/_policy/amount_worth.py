"""What amounts are worth to people, as straight lines: by their own group, or by how likely they are of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._people.evaluate import BATCH, Straight, straight_worth
from felicific._people.user_functions import Batch
from felicific._problem.happiness import Happiness
from felicific._tables.groups import names_at
from felicific._typing import Codes, Floats


@dataclass(frozen=True, eq=False)
class AmountWorth:
    """Worth of the amount 0, of one more unit, and who is counted; each of shape (n, slots, measures).

    There is one slot, everybody's own group, or one for each group: all three are then times how likely it is.
    """

    start: Floats
    slope: Floats
    among: Floats

    def pushed(self, weights: Floats, codes: Codes) -> Floats:
        """How far weights of shape (groups, measures) move everybody's amount."""
        moved = np.zeros(len(self.slope))
        if self.slope.shape[1] == 1:
            for j in np.flatnonzero(weights.any(axis=0)).tolist():
                moved += weights[codes, j] * self.slope[:, 0, j]
            return moved
        for z, j in np.argwhere(weights).tolist():
            moved += weights[z, j] * self.slope[:, z, j]
        return moved

    def total(self, codes: Codes, weight: Floats, n_groups: int, amounts: Floats) -> Floats:
        """Sums of what amounts are worth, of shape (groups, measures)."""
        return self._summed(codes, weight, n_groups, self.start + self.slope * amounts[:, None, None])

    def counted(self, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """Weight of who is counted."""
        return self._summed(codes, weight, n_groups, self.among)

    def span(self, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """By how much one unit of everybody's amount could move the sums at the most."""
        return self._summed(codes, weight, n_groups, np.abs(self.slope))

    def least(self, codes: Codes, weight: Floats, n_groups: int, bounds: tuple[float, float]) -> Floats:
        """The least sums that amounts within bounds give."""
        worst = np.minimum(self.slope * bounds[0], self.slope * bounds[1])
        return self._summed(codes, weight, n_groups, self.start + worst)

    def products(self, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """Sums of products of slopes, by group; or of all slots together, (1, slots x measures, the same)."""
        if self.slope.shape[1] == 1:
            return self.products_with(self, codes, weight, n_groups)
        flat = self.slope.reshape(len(self.slope), -1)
        return np.asarray((flat * weight[:, None]).T @ flat)[None]

    def products_with(self, other: AmountWorth, codes: Codes, weight: Floats, n_groups: int) -> Floats:
        """Sums, by everybody's own group, of products of these slopes with others, (groups, measures, others)."""
        flat = other.slope.reshape(len(other.slope), -1)
        n_measures = self.slope.shape[2]
        sums = np.zeros((n_groups, n_measures, flat.shape[1]))
        for j in range(n_measures):
            for w in range(flat.shape[1]):
                sums[:, j, w] = np.bincount(codes, weight * self.slope[:, 0, j] * flat[:, w], n_groups)
        return sums

    def _summed(self, codes: Codes, weight: Floats, n_groups: int, numbers: Floats) -> Floats:
        if numbers.shape[1] > 1:
            return np.asarray(np.einsum("i,izj->zj", weight, numbers))
        sums = np.zeros((n_groups, numbers.shape[2]))
        for j in range(numbers.shape[2]):
            sums[:, j] = np.bincount(codes, weight * numbers[:, 0, j], minlength=n_groups)
        return sums


def worth_of_people(
    happiness: Sequence[Happiness],
    batch: Batch,
    bounds: tuple[float, float],
    groups: Sequence[Any],
    chances: Floats | None,
) -> AmountWorth:
    """Evaluate happiness for everybody; by how likely they are of each group, where ``chances`` say that."""
    n, slots = len(batch), 1 if chances is None or len(groups) == 1 else len(groups)
    shape = (n, slots, len(happiness))
    worth = AmountWorth(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for first in range(0, n, BATCH):
        part = slice(first, min(first + BATCH, n))
        some = batch.take(part)
        for j, one in enumerate(happiness):
            line: Straight | None = None
            for slot in range(slots):
                likely = np.ones(len(some)) if chances is None else chances[part, slot]
                if line is None or "group" in one.asks:
                    line = straight_worth(one, _supposed(some, groups, slot, chances), bounds)
                inside = likely if line.counted is None else likely * line.counted
                worth.start[part, slot, j] = inside * line.start
                worth.slope[part, slot, j] = inside * line.slope
                worth.among[part, slot, j] = inside
    return worth


def _supposed(batch: Batch, groups: Sequence[Any], slot: int, chances: Floats | None) -> Batch:
    """The same people, all of one group where theirs is not seen."""
    if chances is None:
        return batch
    names = names_at(tuple(groups), np.full(len(batch), slot, dtype=np.intp))
    return replace(batch, group=names, supposed=frozenset({"group"}))
