"""Order: along which signals decisions may only get better, and the cheapest deterministic policy that keeps to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
        have the shape (tables, signals), what they cost (tables, chains), or (tables, signals) where there is no order.
        """
        if self.is_free:
            return price.argmin(axis=2), price.min(axis=2)
        chosen, costs = np.zeros(price.shape[:2], dtype=np.intp), []
        for chain, rank in zip(self.chains, self.ranks, strict=True):
            part = price[:, chain.start : chain.stop]
            own = [np.flatnonzero(rank == r) for r in range(int(rank.max()) + 1)]
            best = np.stack([part[:, :, d].min(axis=2) for d in own])
            which = np.stack([d[part[:, :, d].argmin(axis=2)] for d in own])
            path, least = _rising(best)
            costs.append(least)
            chosen[:, chain.start : chain.stop] = np.take_along_axis(which, path[None], axis=0)[0]
        return chosen, np.stack(costs, axis=1)

    def empty(self, occupied: Truths) -> list[Empty]:
        """Where nobody is, chain by chain."""
        return [_empty(occupied[:, chain.start : chain.stop]) for chain in self.chains]

    def filled(self, q: Floats, empty: Sequence[Empty], baseline: Codes) -> Floats:
        """A policy of shape (tables, signals, decisions) that is known where somebody is, for all signals.

        Where nobody is, people get what the ``baseline`` decides there (-1: nobody knows that), or where that would
        break the order, what the neighbour gets who stands against it.
        """
        policy = q.copy()
        for chain, rank, places in zip(self.chains, self.ranks, empty, strict=True):
            own = slice(chain.start, chain.stop)
            if len(places.table):
                policy[places.table, chain.start + places.signal] = _fill(
                    q[:, own], places, baseline[own], rank
                )
        return policy


class Empty(NamedTuple):
    """The signals of a chain at which nobody of a table is, and those at which somebody is beside them.

    ``near`` is the nearest of these, of the table or of ``other`` ones if nobody of the table is along the chain (-1:
    nobody is); ``below`` and ``above`` are those of the table, or -1.
    """

    table: Codes
    signal: Codes
    near: Codes
    other: Codes
    below: Codes
    above: Codes


def _empty(occupied: Truths) -> Empty:
    table, signal = np.nonzero(~occupied)
    n, place = occupied.shape[1], np.arange(occupied.shape[1])
    below = np.maximum.accumulate(np.where(occupied, place, -1), axis=1)[table, signal]
    above = np.minimum.accumulate(np.where(occupied, place, n)[:, ::-1], axis=1)[:, ::-1][table, signal]
    near = np.where((above >= n) | ((below >= 0) & (signal - below <= above - signal)), below, above)
    other, alone = table.copy(), near < 0
    places = np.flatnonzero(occupied.any(axis=0))
    if len(places) and alone.any():
        nearest = places[np.abs(place[:, None] - places).argmin(axis=1)]
        near[alone], other[alone] = nearest[signal[alone]], occupied.argmax(axis=0)[nearest[signal[alone]]]
    return Empty(table, signal, near, other, below, np.where(above < n, above, -1))


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


def _fill(q: Floats, empty: Empty, baseline: Codes, rank: Codes) -> Floats:
    """What people get at the empty signals of a chain."""
    decided = np.eye(q.shape[2])
    nearest = np.where((empty.near >= 0)[:, None], q[empty.other, empty.near], decided[0])
    own = baseline[empty.signal]
    wanted = np.where((own >= 0)[:, None], decided[own], nearest)
    for neighbour, sign in ((empty.below, 1.0), (empty.above, -1.0)):
        row = q[empty.table, neighbour]
        broken = (neighbour >= 0) & (sign * (_above(row, rank) - _above(wanted, rank)) > SLIGHT).any(axis=1)
        wanted = np.where(broken[:, None], row, wanted)
    return wanted


def _above(q: Floats, rank: Codes) -> Floats:
    """The chance of every rank or a higher one; none where there is no order."""
    each: Sequence[Floats] = [q[..., rank >= r].sum(axis=-1) for r in range(1, int(rank.max()) + 1)]
    return np.stack(each, axis=-1) if each else np.zeros((*q.shape[:-1], 0))
