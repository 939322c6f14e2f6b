"""The program as a solver takes it: the rows of its requirements, over cells or over corner policies.

Written cell by cell, every cell's probabilities sum to one, and pairs of neighbours keep a probability from falling
where it may not. Where policies are mixtures of thresholds, these are the columns instead: one row for each table, and
no pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from felicific._problem.rows import Excess, ModelRow, Row
from felicific._program.corners import Corners
from felicific._program.model import Program
from felicific._program.staircases import Staircases
from felicific._typing import Codes, Floats


@dataclass(frozen=True)
class Model:
    """The program as a solver takes it: a cost and bounds for every column, and rows with two sides.

    ``written`` are the rows of the requirements, the last of all rows, over the program's columns; ``owners`` says of
    each which requirement it belongs to, and ``levels`` where among these the free columns of each requirement begin.
    Where ``corners`` are mixed they are the first columns of the model instead of the ``n_policy`` of the program.
    Where staircases are mixed, ``stairs`` says how they are found: the rows are then those of the requirements alone.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    starts: Codes
    columns: Codes
    numbers: Floats
    written: list[ModelRow]
    owners: list[int]
    levels: list[int]
    corners: Corners | None
    n_policy: int
    stairs: Staircases | None = None

    @cached_property
    def by_column(self) -> tuple[Codes, Codes, Floats]:
        """Where the numbers of every column begin, and the row of each, and the numbers, column by column."""
        order = np.argsort(self.columns, kind="stable")
        rows = np.repeat(np.arange(len(self.row_lower)), np.diff(self.starts))
        starts = np.searchsorted(self.columns[order], np.arange(len(self.cost) + 1))
        return starts, rows[order], self.numbers[order]

    @property
    def n_mixed(self) -> int:
        """How many columns say what is decided."""
        return (
            self.n_policy if self.corners is None else len(self.corners.occupied) * self.corners.n_thresholds
        )

    def mixed(self, numbers: Floats) -> Floats:
        """Numbers for the program's columns as numbers for the columns here that say what is decided."""
        return numbers if self.corners is None else self.corners.of_columns(numbers).ravel()

    def solved(self, values: Floats) -> Floats:
        """The program's columns, from those of the solver."""
        if self.corners is None:
            return values
        return np.concatenate([self.corners.followed(values[: self.n_mixed]), values[self.n_mixed :]])


def write_model(
    program: Program, rows: Sequence[Row], *, elastic: bool = False, ray: bool = False, plain: bool = False
) -> Model:
    """Write the program with these rows.

    With ``elastic`` a last column relaxes the requirements, and is all that is minimised. With ``ray`` it multiplies
    the widths of those that move, the others are kept, and the loss stays in the objective. ``plain`` for columns of
    cells wherever they are.
    """
    n_classes, n_cells = program.aggregates.loss.shape[2], program.n_cells
    n_policy = n_cells * n_classes
    bounds = [pair for row in rows for pair in row.levels]
    last = int(elastic or ray)
    excess = Excess(n_policy + len(bounds), on_ray=ray) if last else None
    written: list[ModelRow] = []
    owners: list[int] = []
    levels: list[int] = []
    level = n_policy
    for position, row in enumerate(rows):
        its = row.written(program, level, excess)
        written += its
        owners += [position] * len(its)
        levels.append(level)
        level += len(row.levels)
    # Before them, one row per cell or table: its probabilities sum to one; then one per pair of neighbours that do not
    # fall. The corners that are mixed do not fall anyway.
    corners = program.corners if program.rises and not plain else None
    stairs = Staircases(program.occupied, n_classes, program.steps) if program.stairs and not plain else None
    mixing = bool(corners or stairs)
    pairs = [] if mixing else _monotone_pairs(program)
    size = corners.n_thresholds if corners else n_classes
    n_mixed = len(corners.occupied) * size if corners else n_policy
    pairs_of = [(row.columns, row.numbers) for row in written]
    own = [(np.array([len(columns)]), columns, numbers) for columns, numbers in pairs_of]
    if corners:
        own = list(corners.rows(pairs_of, n_policy))
    n_sums = 0 if stairs else n_mixed // size
    lengths = np.concatenate(
        [
            np.full(n_sums, size),
            [len(columns) for columns, _ in pairs],
            *(part[0] for part in own),
        ]
    ).astype(np.intp)
    sides = np.array([(row.lower, row.upper) for row in written]).reshape(-1, 2)
    free = np.array(bounds).reshape(-1, 2)
    cost = (
        np.zeros(n_mixed)
        if elastic and not ray
        else program.corner_costs.ravel()
        if corners
        else program.cost
    )
    return Model(
        cost=np.concatenate([cost, np.zeros(len(free)), np.full(last, 0.0 if ray else 1.0)]),
        lower=np.concatenate([np.zeros(n_mixed), free[:, 0], np.zeros(last)]),
        upper=np.concatenate([np.ones(n_mixed), free[:, 1], np.full(last, math.inf)]),
        row_lower=np.concatenate([np.ones(n_sums), np.zeros(len(pairs)), sides[:, 0]]),
        row_upper=np.concatenate([np.ones(n_sums), np.full(len(pairs), math.inf), sides[:, 1]]),
        starts=np.concatenate([[0], lengths.cumsum()]),
        columns=np.concatenate(
            [np.arange(n_sums * size), *(part[0] for part in pairs), *(part[1] for part in own)]
        ).astype(np.intp),
        numbers=np.concatenate(
            [np.ones(n_sums * size), *(part[1] for part in pairs), *(part[2] for part in own)]
        ),
        written=written,
        owners=owners,
        levels=levels,
        corners=corners,
        n_policy=n_policy,
        stairs=stairs,
    )


def _monotone_pairs(program: Program) -> list[tuple[Codes, Floats]]:
    """Rows that keep probabilities from falling between neighbours of every chain of occupied cells.

    Of a decision, or where decisions only get better, of each decision but the worst or a better one.
    """
    n_classes, n_signals = program.aggregates.loss.shape[2], program.aggregates.loss.shape[1]
    chains = [(chain, [decision]) for chain, decision in program.chains]
    if program.stairs and program.steps:
        chains = [(range(n_signals), list(range(t, n_classes))) for t in range(1, n_classes)]
    pairs = []
    for line in np.unique(program.cell, axis=0) if chains else ():
        for chain, decisions in chains:
            cells = line[chain.start : chain.stop]
            cells = cells[cells >= 0][:: program.steps if program.stairs else 1]
            columns = cells[:, None] * n_classes + np.array(decisions)
            signs = np.repeat([1.0, -1.0], len(decisions))
            pairs += [(np.append(after, before), signs) for before, after in pairwise(columns)]
    return pairs
