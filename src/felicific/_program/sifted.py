"""A solver that holds few of a model's columns: those that were found to matter, and whatever improves on them."""

from __future__ import annotations

import numpy as np

from felicific._program.model import TIE, TOLERANCE
from felicific._program.solver import new_solver, settle, solved
from felicific._program.written import Model
from felicific._typing import Codes, Floats

#: Thresholds of every table to begin with, evenly spread.
SPREAD = 17


class Sifted:
    """HiGHS with the free columns of a model first, then those of its corners that are needed.

    At the duals of an answer, the corners that would improve on it are a matrix product away; the best one of every
    table is taken in, until there is none. Models without corners are taken whole.
    """

    def __init__(self, model: Model) -> None:
        import highspy

        self.model, n = model, model.n_mixed
        self.first = len(model.cost) - n
        self.starts, self.rows, self.numbers = model.by_column
        self.cost = model.cost.copy()
        self.held = np.zeros(len(model.cost), dtype=bool)
        self.order = np.empty(0, dtype=np.intp)
        self.solver = new_solver("simplex", "off")
        lp = highspy.HighsLp()
        lp.num_row_, lp.row_lower_, lp.row_upper_ = len(model.row_lower), model.row_lower, model.row_upper
        self.solver.passModel(lp)
        self._take(np.arange(n, len(model.cost)))
        self._take(self._beginning())

    def _beginning(self) -> Codes:
        corners, n = self.model.corners, self.model.n_mixed
        if corners is None:
            return np.arange(n)
        size = corners.n_thresholds
        spread = np.unique(np.linspace(0, size - 1, SPREAD).round().astype(np.intp))
        cheapest = self.model.cost[:n].reshape(-1, size).argmin(axis=1)
        tables = np.arange(n // size) * size
        return np.union1d((tables[:, None] + spread).ravel(), tables + cheapest)

    @property
    def whole(self) -> bool:
        """Whether all columns are there."""
        return bool(self.held.all())

    def take_all(self) -> None:
        """Take in every column."""
        self._take(np.flatnonzero(~self.held))

    def _take(self, new: Codes) -> None:
        sizes = self.starts[new + 1] - self.starts[new]
        inside = np.repeat(self.starts[new] - np.append(0, sizes.cumsum()[:-1]), sizes) + np.arange(
            sizes.sum()
        )
        self.solver.addCols(
            len(new),
            self.cost[new],
            self.model.lower[new],
            self.model.upper[new],
            len(inside),
            np.append(0, sizes.cumsum()[:-1]).astype(np.int32),
            self.rows[inside].astype(np.int32),
            self.numbers[inside],
        )
        self.held[new] = True
        self.order = np.append(self.order, new)

    def charge(self, cost: Floats) -> None:
        """Let the columns that say what is decided cost so much."""
        self.cost[: self.model.n_mixed] = cost
        own = self.order[self.first :]
        places = np.arange(self.first, len(self.order), dtype=np.int32)
        self.solver.changeColsCost(len(places), places, self.cost[own])

    def reduced(self) -> Floats:
        """What every column costs more than what it is worth, at the duals of the last answer."""
        worth = self.numbers * np.array(self.solver.getSolution().row_dual)[self.rows]
        n = self.model.n_mixed
        return np.asarray(self.cost[:n] - np.add.reduceat(worth, self.starts[:n]))

    def run(self) -> bool:
        """Solve; False where the rows cannot be met."""
        import highspy

        while True:
            self._run()
            if self.solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
                if self.whole:
                    return False
                self.take_all()
                continue
            if self.whole or self.model.corners is None:
                return True
            reduced = np.where(self.held[: self.model.n_mixed], 0.0, self.reduced())
            tables = reduced.reshape(-1, self.model.corners.n_thresholds)
            best = tables.argmin(axis=1)
            better = np.flatnonzero(tables[np.arange(len(tables)), best] < -TOLERANCE)
            if not len(better):
                return True
            self._take(better * tables.shape[1] + best[better])

    def take_ties(self) -> None:
        """Take in all that costs no more than what the last answer is made of."""
        ties = np.flatnonzero(~self.held[: self.model.n_mixed] & (self.reduced() <= TIE))
        if len(ties):
            self._take(ties)
            self._run()

    def _run(self) -> None:
        solved(self.solver)

    def settled(self, changes: Floats) -> Floats:
        """The program's columns, of all optimal answers those that change the baseline's decisions least."""
        if not changes.any():
            return self.columns(np.array(self.solver.getSolution().col_value))
        self.take_ties()
        return self.columns(settle(self.solver, self.aligned(changes)))

    def columns(self, values: Floats) -> Floats:
        """The program's columns, from the values of those that are here."""
        found = np.zeros(len(self.held))
        found[self.order] = values
        return self.model.solved(found)

    def aligned(self, numbers: Floats) -> Floats:
        """Numbers for the program's columns, as numbers for those that are here."""
        return np.append(self.model.mixed(numbers), np.zeros(self.first))[self.order]
