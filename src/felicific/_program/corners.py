"""Corners: the deterministic policies that those of a program are mixtures of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._program.hulls import Mixed
from felicific._program.model import Program
from felicific._typing import Codes, Floats


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of a program's policies, part by part.

    Where the probability of the second of two decisions may not fall, every group is a part and its corners are
    ``thresholds``: from the first signal on, from the second on, ..., from none on. Else every occupied cell is a
    part, and its corners are the decisions.

    Attributes
    ----------
    cell : array of shape (tables, signals)
        Positions of the occupied cells, or -1: one table for each group, or for all where the group is not seen.
    n_classes : int
        How many decisions there are.
    thresholds : bool
        Of which kind the corners are.
    """

    cell: Codes
    n_classes: int
    thresholds: bool

    @classmethod
    def of(cls, program: Program) -> Corners:
        """Of a program whose corners can be listed."""
        return cls(
            program.cell if program.see_group else program.cell[:1],
            program.moments.loss.shape[2],
            bool(program.chains),
        )

    @staticmethod
    def listed(program: Program) -> bool:
        """Whether they can be: not where several decisions each have a run along which they may not fall."""
        return not program.chains or program.rises

    @property
    def owner(self) -> Codes:
        """The table of every part."""
        return np.arange(len(self.cell)) if self.thresholds else np.nonzero(self.cell >= 0)[0]

    def each(self, columns: Floats) -> Floats:
        """What every corner adds up to, of shape (parts, corners), from numbers for the program's columns."""
        tables = np.zeros((*self.cell.shape, self.n_classes))
        tables[self.cell >= 0] = columns.reshape(-1, self.n_classes)
        return self.of_tables(tables)

    def of_tables(self, tables: Floats) -> Floats:
        """The same from tables of shape (tables, signals, decisions)."""
        if not self.thresholds:
            return np.asarray(tables[self.cell >= 0])
        none, steps = tables[:, :, 0].sum(axis=1), tables[:, ::-1, 1] - tables[:, ::-1, 0]
        found = np.empty((len(tables), steps.shape[1] + 1))
        found[:, -1], found[:, :-1] = 0.0, steps.cumsum(axis=1)[:, ::-1]
        return np.asarray(found + none[:, None])

    def columns(self, mixed: Mixed) -> Floats:
        """The program's columns where every part mixes two of its corners."""
        first, second, share = (part[:, None] for part in mixed)
        if not self.thresholds:
            decision = np.arange(self.n_classes)
            found = (1.0 - share) * (first == decision) + share * (second == decision)
            return np.asarray(found.ravel())
        signal = np.arange(self.cell.shape[1])
        rising = (1.0 - share) * (signal >= first) + share * (signal >= second)
        chosen = rising[self.cell >= 0]
        return np.column_stack([1.0 - chosen, chosen]).ravel()

    # All thresholds as columns of a linear program

    @property
    def n_thresholds(self) -> int:
        """How many there are of every table."""
        return int(self.cell.shape[1]) + 1

    @cached_property
    def _places(self) -> tuple[Codes, Codes]:
        """The table and the signal of every cell."""
        table, signal = np.nonzero(self.cell >= 0)
        return table, signal

    def row(self, columns: Codes, numbers: Floats, n_policy: int) -> tuple[Codes, Floats]:
        """A row over the program's columns, ``n_policy`` of them cells', as one over all thresholds of all tables."""
        own = columns < n_policy
        cell, decision = np.divmod(columns[own], 2)
        tables, place = np.unique(self._places[0][cell], return_inverse=True)
        dense = np.zeros((len(tables), self.cell.shape[1], 2))
        dense[place, self._places[1][cell], decision] = numbers[own]
        each = self.of_tables(dense).ravel()
        listed = (tables[:, None] * self.n_thresholds + np.arange(self.n_thresholds)).ravel()
        held, shift = np.flatnonzero(each), len(self.cell) * self.n_thresholds - n_policy
        return np.append(listed[held], columns[~own] + shift), np.append(each[held], numbers[~own])

    def followed(self, values: Floats) -> Floats:
        """The program's columns where all thresholds are mixed."""
        chosen = values.reshape(len(self.cell), -1)[:, :-1].cumsum(axis=1)[self.cell >= 0]
        return np.column_stack([1.0 - chosen, chosen]).ravel()
