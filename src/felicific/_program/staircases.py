r"""Staircases: the deterministic policies of listed decisions that only get better along the signals.

Where the chance of each decision or a better one may not fall along the signals, a table's policies are mixtures of
staircases: a decision at every occupied signal, none worse than the one before. The cheapest at some prices is found
signal by signal,

.. math:: f_{sd} = \mathrm{price}_{sd} + \min_{d' \le d} f_{s-1,d'}

and then traced back. Where no order is asked for, it is the cheapest decision of every signal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._typing import Codes, Floats, Truths


@dataclass(frozen=True, eq=False)
class Staircases:
    """The staircases of a program's policies, table by table.

    Attributes
    ----------
    occupied : array of shape (tables, signals)
        Where somebody is: one table for each group, or for all where the group is not seen.
    n_decisions : int
        How many decisions there are, from the worst to the best.
    steps : {1, -1, 0}
        Whether decisions may only get better along the signals, only worse, or anything.
    """

    occupied: Truths
    n_decisions: int
    steps: int

    @cached_property
    def owner(self) -> Codes:
        """The table of every occupied cell, in their order."""
        return np.asarray(np.nonzero(self.occupied)[0])

    def cheapest(self, prices: Floats) -> tuple[Codes, Floats]:
        """The decision of every occupied cell on the cheapest staircase of its table, and what these cost, by table.

        ``prices`` are those of every occupied cell and decision, of shape (cells, decisions).
        """
        if not self.steps:
            chosen = prices.argmin(axis=1)
            own = prices[np.arange(len(prices)), chosen]
            return chosen, np.asarray(
                np.bincount(self.owner, own, minlength=len(self.occupied)), dtype=np.float64
            )
        chosen, cost = np.empty(len(prices), dtype=np.intp), np.zeros(len(self.occupied))
        for table in range(len(self.occupied)):
            cells = np.flatnonzero(self.owner == table)[:: self.steps]
            if len(cells):
                chosen[cells], cost[table] = _climb(prices[cells])
        return chosen, cost

    def nearest(self, prices: Floats, changes: Floats, tie: float) -> Codes:
        """Of the staircases that cost no more than the cheapest, but for ``tie``, the one of least changes."""
        chosen, _ = self.cheapest(prices)
        for table in range(len(self.occupied)):
            cells = np.flatnonzero(self.owner == table)[:: self.steps or 1]
            if len(cells):
                chosen[cells] = _climb_ties(prices[cells], changes[cells], tie, free=not self.steps)
        return chosen


def _climb(prices: Floats) -> tuple[Codes, float]:
    """The cheapest staircase along some cells, from first to last, and what it costs."""
    n, best = len(prices), np.zeros(prices.shape[1])
    steps = np.empty(prices.shape)
    for s in range(n):
        best = prices[s] + np.minimum.accumulate(best)
        steps[s] = best
    chosen = np.empty(n, dtype=np.intp)
    last = prices.shape[1]
    for s in range(n - 1, -1, -1):
        last = chosen[s] = int(steps[s, : last if s == n - 1 else last + 1].argmin())
    return chosen, float(best.min())


def _climb_ties(prices: Floats, changes: Floats, tie: float, *, free: bool) -> Codes:
    """Along some cells, of all staircases that cost next to the least the one of least changes.

    A step from one decision to the next is allowed where the cheapest staircase that takes it is next to the cheapest
    of all.
    """
    n, d = prices.shape
    may = np.ones((d, d), dtype=bool) if free else np.tri(d, dtype=bool).T  # from the row to the column
    before, after = np.empty((n, d)), np.zeros((n, d))
    before[0] = prices[0]
    for s in range(1, n):
        before[s] = prices[s] + np.where(may, before[s - 1][:, None], np.inf).min(axis=0)
    for s in range(n - 2, -1, -1):
        after[s] = np.where(may, (prices[s + 1] + after[s + 1])[None, :], np.inf).min(axis=1)
    limit = float(before[-1].min()) + tie
    moved = np.where(before[0] + after[0] <= limit, changes[0], np.inf)
    sources = np.zeros((n, d), dtype=np.intp)
    for s in range(1, n):
        tight = may & (before[s - 1][:, None] + prices[s] + after[s] <= limit)
        through = np.where(tight, moved[:, None], np.inf)
        sources[s] = through.argmin(axis=0)
        moved = changes[s] + through.min(axis=0)
    chosen = np.empty(n, dtype=np.intp)
    chosen[-1] = int(moved.argmin())
    for s in range(n - 1, 0, -1):
        chosen[s - 1] = sources[s, chosen[s]]
    return chosen
