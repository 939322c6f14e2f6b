"""Corners: the deterministic policies that those of a program are mixtures of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._program.hulls import BLOCK, Mixed
from felicific._typing import Codes, Floats, Truths

#: A share of a corner that is none.
NONE = 1e-12


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of a program's policies, part by part.

    Where the probability of the second of two decisions may not fall, every group is a part and its corners are
    ``thresholds``: from the first signal on, from the second on, ..., from none on. Else every occupied cell is a
    part, and its corners are the decisions.

    Attributes
    ----------
    occupied : array of shape (tables, signals)
        Where somebody is: one table for each group, or for all where the group is not seen.
    n_classes : int
        How many decisions there are.
    thresholds : bool
        Of which kind the corners are.
    """

    occupied: Truths
    n_classes: int
    thresholds: bool

    @cached_property
    def owner(self) -> Codes:
        """The table of every part."""
        return np.arange(len(self.occupied)) if self.thresholds else self._places[0]

    def each(self, tables: Floats) -> Floats:
        """What every corner adds up to, of shape (parts, corners), from tables of every decision."""
        if not self.thresholds:
            return np.asarray(tables[self.occupied])
        found = np.zeros((len(tables), tables.shape[1] + 1))
        for first in range(0, len(tables), BLOCK):
            part = tables[first : first + BLOCK]
            own = found[first : first + BLOCK]
            np.cumsum(part[:, ::-1, 1] - part[:, ::-1, 0], axis=1, out=own[:, -2::-1])
            own += part[:, :, 0].sum(axis=1)[:, None]
        return found

    @property
    def blocks(self) -> list[slice]:
        """Tables whose parts are looked at together, so few that they stay in the processor's cache.

        Where a table has many parts, all of them.
        """
        if not self.thresholds:
            return [slice(None)]
        return [slice(first, first + BLOCK) for first in range(0, len(self.occupied), BLOCK)]

    def of_columns(self, columns: Floats) -> Floats:
        """The same from numbers for the program's columns."""
        tables = np.zeros((*self.occupied.shape, self.n_classes))
        tables[self.occupied] = columns.reshape(-1, self.n_classes)
        return self.each(tables)

    def tables(self, mixed: Mixed) -> Floats:
        """The policy of occupied cells where every part mixes two of its corners; of next to none of one, the other."""
        first, second, share = (part[:, None] for part in mixed)
        share = np.where(share < NONE, 0.0, np.where(share > 1.0 - NONE, 1.0, share))
        found = np.zeros((*self.occupied.shape, self.n_classes))
        if not self.thresholds:
            decision = np.arange(self.n_classes)
            found[self.occupied] = (1.0 - share) * (first == decision) + share * (second == decision)
            return found
        signal = np.arange(self.occupied.shape[1])
        for part in self.blocks:
            rising = (1.0 - share[part]) * (signal >= first[part]) + share[part] * (signal >= second[part])
            found[part, :, 1] = rising
            np.subtract(1.0, rising, out=found[part, :, 0])
        return found

    @property
    def n_corners(self) -> int:
        """How many every part has."""
        return self.n_thresholds if self.thresholds else self.n_classes

    # All thresholds as columns of a linear program

    @property
    def n_thresholds(self) -> int:
        """How many there are of every table."""
        return int(self.occupied.shape[1]) + 1

    @cached_property
    def _places(self) -> tuple[Codes, Codes]:
        """The table and the signal of every cell."""
        table, signal = np.nonzero(self.occupied)
        return table, signal

    def rows(
        self, rows: Sequence[tuple[Codes, Floats]], n_policy: int
    ) -> Iterator[tuple[Codes, Codes, Floats]]:
        """Rows over the program's columns, ``n_policy`` of them cells', as rows over all thresholds of all tables.

        Some at a time: how many numbers each of them has, then the columns and the numbers of all.
        """
        n_tables, size = len(self.occupied), self.n_thresholds
        for first in range(0, len(rows), BLOCK):
            part = rows[first : first + BLOCK]
            row = np.repeat(np.arange(len(part)), [len(columns) for columns, _ in part])
            columns, numbers = (np.concatenate([pair[i] for pair in part]) for i in (0, 1))
            own, rest = np.flatnonzero(columns < n_policy), np.flatnonzero(columns >= n_policy)
            cell, decision = np.divmod(columns[own], 2)
            # Each table that a row speaks of is cumulated once.
            key, place = np.unique(row[own] * n_tables + self._places[0][cell], return_inverse=True)
            tables = np.zeros((len(key), size - 1, 2))
            tables[place, self._places[1][cell], decision] = numbers[own]
            each = self.each(tables)
            held, threshold = np.nonzero(each)
            found = np.append(
                key[held] % n_tables * size + threshold, columns[rest] + n_tables * size - n_policy
            )
            whose = np.append(key[held] // n_tables, row[rest])
            order = np.argsort(whose, kind="stable")
            values = np.append(each[held, threshold], numbers[rest])
            yield np.bincount(whose, minlength=len(part)), found[order], values[order]

    def followed(self, values: Floats) -> Floats:
        """The program's columns where all thresholds are mixed."""
        chosen = values.reshape(len(self.occupied), -1)[:, :-1].cumsum(axis=1)[self.occupied]
        return np.column_stack([1.0 - chosen, chosen]).ravel()
