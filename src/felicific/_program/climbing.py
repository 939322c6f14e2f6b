r"""A solver that mixes staircases: column generation, which asks for the cheapest one at the prices of its answer.

The master is the program over mixtures of the staircases that it holds, one row of shares for each table,

.. math::
    \min \sum_{zk} c_{zk} x_{zk} \quad \text{s.t.} \quad \sum_k x_{zk} = 1, \; A x + B v \in [\ell, u], \; x \ge 0

with the free columns v of the requirements. At its duals every cell and decision has a price, and
:mod:`felicific._program.staircases` finds the cheapest staircase of every table; if none is worth more than its table's
share, the answer is that of the whole program, whose vertices are staircases.
"""

from __future__ import annotations

import math

import numpy as np

from felicific._program.model import TIE, TOLERANCE
from felicific._program.solver import new_solver, settle, solved
from felicific._program.written import Model
from felicific._typing import Codes, Floats
from felicific.exceptions import SolverError

#: Rounds of asking for staircases; the whole program is written instead of more.
MOST = 2000


class Climbing:
    """HiGHS with the free columns of a model first, then the staircases that were asked for."""

    def __init__(self, model: Model) -> None:
        import highspy

        assert model.stairs is not None, "staircases are mixed"
        self.model, self.stairs = model, model.stairs
        self.n_tables, n = len(self.stairs.occupied), model.n_policy
        starts, self.rows, self.numbers = model.by_column
        self.starts = starts
        self.owners = np.repeat(np.arange(len(model.cost)), np.diff(starts))
        self.cost = model.cost.copy()
        self.charged = self.cost[:n].copy()
        self.first = len(model.cost) - n
        self.chosen: list[Codes] = []
        self.tables: list[int] = []
        self.held: set[tuple[int, bytes]] = set()
        self.solver = new_solver("simplex", "off")
        lp = highspy.HighsLp()
        ones = np.ones(self.n_tables)
        lp.num_row_ = self.n_tables + len(model.row_lower)
        lp.row_lower_ = np.append(ones, model.row_lower)
        lp.row_upper_ = np.append(ones, model.row_upper)
        self.solver.passModel(lp)
        self._take_free(np.arange(n, len(model.cost)))
        self._begin()

    def _begin(self) -> None:
        """Every decision for all, and the cheapest staircase."""
        cells, d = len(self.stairs.owner), self.stairs.n_decisions
        for choice in range(d):
            self._take(np.full(cells, choice))
        self._take(self.stairs.cheapest(self.charged.reshape(-1, d))[0])

    def _take_free(self, new: Codes) -> None:
        """Take in the columns of the model that are no staircases."""
        sizes = np.diff(self.starts)[new]
        inside = np.flatnonzero(np.isin(self.owners, new))
        self.solver.addCols(
            len(new),
            self.cost[new],
            self.model.lower[new],
            self.model.upper[new],
            len(inside),
            np.append(0, sizes.cumsum()[:-1]).astype(np.int32),
            (self.rows[inside] + self.n_tables).astype(np.int32),
            self.numbers[inside],
        )

    def _take(self, chosen: Codes, tables: Codes | None = None) -> int:
        """Take in the staircases of some tables, by the decision of every cell; how many were new."""
        columns = np.arange(len(chosen)) * self.stairs.n_decisions + chosen
        taken = np.zeros(self.model.n_policy, dtype=bool)
        taken[columns] = True
        held = np.flatnonzero(
            taken[np.minimum(self.owners, self.model.n_policy - 1)] & (self.owners < len(taken))
        )
        owner = self.stairs.owner
        new = 0
        for table in range(self.n_tables) if tables is None else tables.tolist():
            own = owner == table
            name = (table, chosen[own].tobytes())
            if name in self.held or not own.any():
                continue
            self.held.add(name)
            mine = held[owner[self.owners[held] // self.stairs.n_decisions] == table]
            sums = np.bincount(self.rows[mine], self.numbers[mine], minlength=len(self.model.row_lower))
            rows = np.flatnonzero(sums)
            self.solver.addCol(
                float(self.charged[columns[own]].sum()),
                0.0,
                math.inf,
                len(rows) + 1,
                np.append(table, rows + self.n_tables).astype(np.int32),
                np.append(1.0, sums[rows]),
            )
            self.chosen.append(columns[own])
            self.tables.append(table)
            new += 1
        return new

    def charge(self, cost: Floats) -> None:
        """Let the columns that say what is decided cost so much."""
        self.charged = np.asarray(cost, dtype=np.float64)
        self._charge(self.charged)

    def _charge(self, cost: Floats) -> None:
        own = np.array([cost[columns].sum() for columns in self.chosen])
        places = np.arange(self.first, self.first + len(own), dtype=np.int32)
        self.solver.changeColsCost(len(places), places, own)

    def _prices(self, cost: Floats) -> tuple[Floats, Floats]:
        """What every cell and decision costs more than its rows are worth, and what the tables' shares are worth."""
        duals = np.array(self.solver.getSolution().row_dual)
        worth = np.bincount(
            self.owners, self.numbers * duals[self.n_tables :][self.rows], minlength=len(self.cost)
        )
        prices = cost - worth[: self.model.n_policy]
        return prices.reshape(-1, self.stairs.n_decisions), duals[: self.n_tables]

    def _improve(self, cost: Floats) -> None:
        """Ask for staircases until none improves on the answer, which is there already."""
        for _ in range(MOST):
            prices, shares = self._prices(cost)
            chosen, costs = self.stairs.cheapest(prices)
            better = np.flatnonzero(costs - shares < -TOLERANCE)
            if not len(better) or not self._take(chosen, better):
                return
            solved(self.solver)
        raise SolverError(f"No end of staircases was found in {MOST} rounds.", "Use fewer score bins.")

    def run(self) -> bool:
        """Solve; False where the rows cannot be met."""
        if not solved(self.solver) and not self._reach():
            return False
        self._improve(self.charged)
        return True

    def _reach(self) -> bool:
        """Find staircases whose mixtures meet the rows, if there are any: those that miss them least.

        Further columns take up by how much rows are missed, and are all that is minimised.
        """
        n = len(self.model.row_lower)
        lacking = self.first + len(self.chosen)
        rows = np.tile(np.arange(n) + self.n_tables, 2).astype(np.int32)
        free = np.array(self.solver.getLp().col_cost_)[: self.first]
        places = np.arange(self.first, dtype=np.int32)
        self.solver.changeColsCost(len(places), places, np.zeros(len(places)))
        none = np.zeros(self.model.n_policy)
        self._charge(none)
        self.solver.addCols(
            2 * n,
            np.ones(2 * n),
            np.zeros(2 * n),
            np.full(2 * n, math.inf),
            2 * n,
            np.arange(2 * n, dtype=np.int32),
            rows,
            np.repeat([1.0, -1.0], n),
        )
        # Staircases that come now stand after these columns, until they are deleted.
        if not solved(self.solver):
            raise SolverError(
                "The rows cannot even be missed.", "Please report it, with the aggregates if you can."
            )
        charged, self.charged = self.charged, none
        self._improve(none)
        missed = float(self.solver.getInfo().objective_function_value)
        self.charged = charged
        self.solver.deleteCols(2 * n, np.arange(lacking, lacking + 2 * n, dtype=np.int32))
        self.solver.changeColsCost(len(places), places, free)
        self._charge(charged)
        return missed <= TOLERANCE and solved(self.solver)

    def settled(self, changes: Floats) -> Floats:
        """The program's columns, of optimal answers one that changes the baseline's decisions little.

        The least of all mixtures of the staircases that are here, and of the one in every table that changes least
        among those that cost no more. Where nobody knows the baseline's decisions, one that is near the cheapest
        staircases.
        """
        cheapest = self.stairs.cheapest(self.charged.reshape(-1, self.stairs.n_decisions))[0]
        if changes.any():
            prices, _ = self._prices(self.charged)
            per_cell = changes.reshape(-1, self.stairs.n_decisions)
            if self._take(self.stairs.nearest(prices, per_cell, TIE)):
                solved(self.solver)
        else:
            changes = np.ones(self.model.n_policy)
            changes[np.arange(len(cheapest)) * self.stairs.n_decisions + cheapest] = 0.0
        own = [changes[columns].sum() for columns in self.chosen]
        return self.columns(settle(self.solver, np.append(np.zeros(self.first), own)))

    def columns(self, values: Floats) -> Floats:
        """The program's columns, from the values of those that are here."""
        found = np.zeros(len(self.model.cost))
        n = self.model.n_policy
        found[n:] = values[: self.first]
        for columns, share in zip(self.chosen, values[self.first :].tolist(), strict=True):
            if share > 0.0:
                found[columns] += share
        return found
