"""Order: along which signals decisions may only get better, and the cheapest deterministic policy that keeps to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from felicific._typing import Codes, Floats, Truths

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates

#: What a policy may miss of the order, which is rounding.
SLIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Order:
    """Inside a chain of signals the rank of the decision may not fall. All that tells kinds of policies apart.

    Two classes, listed decisions and amounts have one chain, and ranks 0, 1, 2, ... (reversed where better decisions go
    with lower scores). Of several classes every predicted class has a chain, with rank 1 for it and 0 for all others.
    Where there is no order all ranks are 0.

    Attributes
    ----------
    chains : tuple of range
        Runs of signals; together they are all signals.
    ranks : array of shape (chains, decisions)
        The rank of every decision in every chain.
    """

    chains: tuple[range, ...]
    ranks: Codes

    @classmethod
    def of(cls, aggregates: Aggregates) -> Order:
        """The order that policies of some aggregates keep."""
        labels, n_decisions = len(aggregates.classes), aggregates.loss.shape[2]
        place, signal = np.arange(n_decisions), aggregates.signal
        if aggregates.listed and signal.climbs(labels):
            everybody = (range(signal.size(labels)),)
            return cls(everybody, (place if aggregates.rising else place[::-1])[None])
        chains = () if aggregates.listed else signal.chains(labels)
        if chains:
            ranks = [place == decision for _, decision in chains]
            return cls(tuple(chain for chain, _ in chains), np.array(ranks, dtype=np.intp))
        runs = tuple(run for run in signal.runs(labels) if run)
        return cls(runs, np.zeros((len(runs), n_decisions), dtype=np.intp))

    @property
    def is_free(self) -> bool:
        """Whether every signal decides by itself."""
        return not self.ranks.any()

    @property
    def is_threshold(self) -> bool:
        """Whether the second of two decisions begins somewhere along all signals."""
        return len(self.chains) == 1 and self.ranks.tolist() == [[0, 1]]

    def cheapest(self, price: Floats) -> tuple[Codes, Floats]:
        """The decision of every signal on the cheapest deterministic policy, and what it costs.

        ``price`` has the shape (tables, signals, decisions), infinite where a decision is not allowed; the decisions
        have the shape (tables, signals), what they cost (tables,).
        """
        n_tables, n_signals, _ = price.shape
        chosen, cost = np.zeros((n_tables, n_signals), dtype=np.intp), np.zeros(n_tables)
        for chain, rank in zip(self.chains, self.ranks, strict=True):
            part = price[:, chain.start : chain.stop]
            own = [np.flatnonzero(rank == r) for r in range(int(rank.max()) + 1)]
            best = np.stack([part[:, :, d].min(axis=2) for d in own])
            which = np.stack([d[part[:, :, d].argmin(axis=2)] for d in own])
            path, least = _rising(best)
            cost += least
            chosen[:, chain.start : chain.stop] = np.take_along_axis(which, path[None], axis=0)[0]
        return chosen, cost

    def filled(self, q: Floats, occupied: Truths, baseline: Codes) -> Floats:
        """A policy of shape (tables, signals, decisions) that is known where somebody is, for all signals.

        Where nobody is, people get what the ``baseline`` decides there (-1: nobody knows that), or where that would
        break the order, what the neighbour gets who stands against it.
        """
        found = q.copy()
        for chain, rank in zip(self.chains, self.ranks, strict=True):
            own = slice(chain.start, chain.stop)
            lacks = np.flatnonzero(~occupied[:, own].all(axis=1))
            if len(lacks):
                part = q[lacks, own], occupied[lacks, own], occupied[:, own], q[:, own]
                found[lacks, own] = _fill(*part, baseline[own], rank)
        return found


def _rising(best: Floats) -> tuple[Codes, Floats]:
    """Ranks that do not fall along the signals and cost least, from costs of shape (ranks, tables, signals)."""
    n_ranks, n_tables, n_signals = best.shape
    if n_ranks == 1:
        return np.zeros((n_tables, n_signals), dtype=np.intp), best[0].sum(axis=1)
    if n_ranks == 2 and np.isfinite(best).all():  # a threshold: sums instead of steps
        at = np.zeros((n_tables, n_signals + 1))
        np.cumsum(best[0] - best[1], axis=1, out=at[:, 1:])
        first = at.argmin(axis=1)
        path = (np.arange(n_signals) >= first[:, None]).astype(np.intp)
        return path, at[np.arange(n_tables), first] + best[1].sum(axis=1)
    # The least cost of the first signals that end with each rank: own cost and the least of all ranks up to it.
    upto = np.empty((n_signals, n_tables, n_ranks))
    upto[0] = best[:, :, 0].T
    for s in range(1, n_signals):
        upto[s] = best[:, :, s].T + np.minimum.accumulate(upto[s - 1], axis=1)
    path, below = np.empty((n_tables, n_signals), dtype=np.intp), np.arange(n_ranks)
    last = np.full(n_tables, n_ranks - 1)
    for s in range(n_signals - 1, -1, -1):
        last = np.where(below <= last[:, None], upto[s], np.inf).argmin(axis=1)
        path[:, s] = last
    return path, upto[-1].min(axis=1)


def _fill(
    q: Floats, held: Truths, anybody: Truths, everybody: Floats, baseline: Codes, rank: Codes
) -> Floats:
    """The signals of one chain, of tables in which nobody is at some of them."""
    _, n, n_decisions = q.shape
    place = np.arange(n)
    below = np.maximum.accumulate(np.where(held, place, -1), axis=1)
    above = np.minimum.accumulate(np.where(held, place, n)[:, ::-1], axis=1)[:, ::-1]
    near = np.where((above >= n) | ((below >= 0) & (place - below <= above - place)), below, above)
    rows = np.take_along_axis(q, np.clip(near, 0, n - 1)[:, :, None], axis=1)
    for t in np.flatnonzero(~held.any(axis=1)).tolist():
        rows[t] = _of_others(everybody, anybody)
    decided = np.eye(n_decisions)[np.maximum(baseline, 0)]
    wanted = np.where((baseline >= 0)[:, None], decided, rows)
    for beside, against, sign in ((below, below >= 0, 1.0), (above, above < n, -1.0)):
        row = np.take_along_axis(q, np.clip(beside, 0, n - 1)[:, :, None], axis=1)
        broken = against & (sign * (_above(row, rank) - _above(wanted, rank)) > SLIGHT).any(axis=2)
        wanted = np.where(broken[:, :, None], row, wanted)
    return np.where(held[:, :, None], q, wanted)


def _above(q: Floats, rank: Codes) -> Floats:
    """The chance of every rank or a higher one; none where there is no order."""
    each: Sequence[Floats] = [q[..., rank >= r].sum(axis=-1) for r in range(1, int(rank.max()) + 1)]
    return np.stack(each, axis=-1) if each else np.zeros((*q.shape[:-1], 0))


def _of_others(q: Floats, held: Truths) -> Floats:
    """What people of other tables get at every signal of a chain, or near it; if there are none, the first decision."""
    _, n, n_decisions = q.shape
    places = np.flatnonzero(held.any(axis=0))
    if not len(places):
        return np.tile(np.eye(n_decisions)[0], (n, 1))
    nearest = places[np.abs(np.arange(n)[:, None] - places).argmin(axis=1)]
    return np.asarray(q[held.argmax(axis=0)[nearest], nearest])
