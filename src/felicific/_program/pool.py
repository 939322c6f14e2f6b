"""The pool: deterministic policies of blocks, with what each costs, changes and adds to group means.

A block is a part of a table (of a group, or of all where the group is not seen) that chooses for itself: a chain along
which an order holds, or a single signal where there is none. A policy of a block is the same whatever rows it is mixed
under, so one pool serves many programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from felicific._program.order import Order
from felicific._typing import Codes, Floats, Truths

if TYPE_CHECKING:
    from felicific._program.program import Program

#: Up to so many signals that choose freely are blocks of their own; beyond, whole tables are.
SINGLE = 20_000

#: How many policies are summed together.
TOGETHER = 256


@dataclass(frozen=True, eq=False)
class Blocks:
    """What chooses for itself, in every table in which somebody is there.

    Attributes
    ----------
    runs : tuple of range
        The signals of the blocks of a table.
    place : array of shape (tables, runs)
        Which block it is; -1 where nobody is.
    table, run : arrays of shape (blocks,)
        Where each block is.
    """

    runs: tuple[range, ...]
    place: Codes
    table: Codes
    run: Codes

    @classmethod
    def of(cls, order: Order, occupied: Truths) -> Blocks:
        """The blocks of policies that keep an order."""
        runs, n_signals = order.chains, occupied.shape[1]
        if order.is_free:
            single = np.count_nonzero(occupied) <= SINGLE
            runs = tuple(range(s, s + 1) for s in range(n_signals)) if single else (range(n_signals),)
        held = np.stack([occupied[:, run.start : run.stop].any(axis=1) for run in runs], axis=1)
        table, run = np.nonzero(held)
        return cls(runs, np.where(held, held.cumsum().reshape(held.shape) - 1, -1), table, run)

    def __len__(self) -> int:
        return len(self.table)


@dataclass(eq=False)
class Pool:
    """Policies of blocks: the block, what its signals choose, the cost, the changes and the scaled means."""

    block: list[int] = field(default_factory=list)
    chosen: list[Codes] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)
    means: list[Floats] = field(default_factory=list)
    keys: set[tuple[int, bytes]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.block)

    def copy(self) -> Pool:
        """The same policies, to which others can be added."""
        return Pool(*(copy(getattr(self, part.name)) for part in fields(self)))

    def start(self, program: Program) -> None:
        """Take in the constant choices, the cheapest policy, and some thresholds, which spare many rounds."""
        if len(self):
            return
        costs, order = program.choice_costs, program.choice_order
        n_tables, n_signals, n_choices = costs.shape
        if program.lotteries is None or program.lotteries.allowed is None:
            begin = [np.full((n_tables, n_signals), choice) for choice in range(n_choices)]
        else:  # as far as each is allowed
            apart = np.arange(n_choices) != np.arange(n_choices)[:, None]
            begin = [program.cheapest(np.broadcast_to(1.0 * one, costs.shape))[0] for one in apart]
        if order.is_threshold and program.lotteries is None:
            even = np.linspace(0, n_signals, 17).astype(np.intp)[1:-1]
            begin += [np.tile(np.arange(n_signals) >= k, (n_tables, 1)).astype(np.intp) for k in even]
        self.take(program, np.stack([*begin, program.cheapest(costs)[0]]), range(len(program.blocks)))

    def take(self, program: Program, chosen: Codes, blocks: Iterable[int]) -> list[int]:
        """Take in policies of some blocks; the positions of those that are new.

        ``chosen`` has the shape (tables, signals), or (policies, tables, signals) for several of them.
        """
        every, where, first = (
            chosen.reshape(-1, *chosen.shape[-2:]).astype(np.int16),
            program.blocks,
            len(self),
        )
        fresh: dict[int, list[tuple[int, int]]] = {}
        for block in blocks:
            table, run = int(where.table[block]), int(where.run[block])
            signals = where.runs[run]
            for k in range(len(every)):
                key = block, every[k, table, signals.start : signals.stop].tobytes()
                if key not in self.keys:
                    self.keys.add(key)
                    fresh.setdefault(run, []).append((k, block))
        for run, new in fresh.items():
            for i in range(0, len(new), TOGETHER):
                which, own = np.array(new[i : i + TOGETHER]).T
                self._add(program, where.runs[run], own, every[which, where.table[own]])
        return list(range(first, len(self)))

    def _add(self, program: Program, signals: range, block: Codes, chosen: Codes) -> None:
        """Add policies of one run of signals, and what they come to."""
        table, policies = program.blocks.table[block], chosen[:, signals.start : signals.stop]
        if program.choice_order.is_threshold and program.corners is not None:
            corner = (policies == 0).sum(axis=1)
            cost, change = program.corner_costs[table, corner], program.corner_changes[table, corner]
            means = program.corner_means[table if program.sees_group else slice(None), corner]
        else:
            at = table[:, None], np.arange(signals.start, signals.stop), policies.astype(np.intp)
            cost, change = program.choice_costs[at].sum(axis=1), program.choice_changes[at].sum(axis=1)
            whose = at[0] if program.sees_group else slice(None)
            means = program.choice_means[whose, at[1], at[2]].sum(axis=-2)
        self.block += block.tolist()
        self.chosen += list(policies)
        self.cost += cost.tolist()
        self.change += change.tolist()
        means = means if program.sees_group else means.swapaxes(0, 1)
        self.means += list(means.reshape(len(block), -1))

    def mixed(self, program: Program, places: Codes, parts: Floats) -> Floats:
        """What signals choose by parts of some policies, of shape (tables, signals, choices); 0 where nobody is."""
        mixed: Floats = np.zeros(program.choice_costs.shape)
        blocks = program.blocks
        for i, part in zip(places.tolist(), parts.tolist(), strict=True):
            block = self.block[i]
            mixed[blocks.table[block], blocks.runs[blocks.run[block]], self.chosen[i]] += part
        total = mixed.sum(axis=2, keepdims=True)
        return np.asarray(mixed / np.where(total > 0, total, 1.0))

    def moved(self, program: Program, places: Codes, parts: Floats) -> Floats:
        """What such parts of some policies add to the scaled means, of shape (groups, measures)."""
        means = parts[:, None] * np.array([self.means[i] for i in places.tolist()])
        if not program.sees_group:
            return np.asarray(means.sum(axis=0).reshape(program.constants.shape))
        table = program.blocks.table[[self.block[i] for i in places.tolist()]]
        order = np.argsort(table, kind="stable")
        starts = np.flatnonzero(np.diff(table[order], prepend=-1))
        moved = np.zeros_like(program.constants)
        moved[table[order][starts]] = np.add.reduceat(means[order], starts)
        return moved
