"""A solver that holds few of a model's columns: those that were found to matter, and whatever improves on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from felicific._program.model import SMALL, TIE, TOLERANCE
from felicific._program.written import Model
from felicific._typing import Codes, Floats
from felicific.exceptions import SolverError

#: Thresholds of every table to begin with, evenly spread.
SPREAD = 17


def new_solver(method: str, presolve: str) -> Any:
    """A HiGHS solver that is as exact as programs here are scaled for."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy is typed in part
    options: dict[str, Any] = {
        "output_flag": False,
        "solver": method,
        "presolve": presolve,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": SMALL,
    }
    for option, value in options.items():
        solver.setOptionValue(option, value)
    return solver


def solved(solver: Any) -> bool:
    """Run a solver; False where the rows cannot be met."""
    import highspy

    solver.run()
    done = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    if solver.getModelStatus() not in done:
        # A warm start can end without an answer: start cold, by an interior point with crossover.
        solver.clearSolver()
        solver.setOptionValue("solver", "ipm")
        solver.run()
        solver.setOptionValue("solver", "simplex")
    if solver.getModelStatus() not in done:
        raise SolverError(
            f"HiGHS ended with the status {solver.modelStatusToString(solver.getModelStatus())!r}.",
            "Please report it, with the moments if you can share them.",
        )
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kOptimal)


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
        """The program's columns, of all optimal answers those that change today's decisions least."""
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


def settle(solver: Any, cost: Floats) -> Floats:
    """Of all optimal answers, the one that changes today's decisions least; the solver has just found one of them.

    Whatever has a dual stays at its bound: that is the face of all optimal answers, and its vertices are vertices of
    the whole program, so nobody faces a lottery on account of this choice.
    """
    import highspy

    model, solution = solver.getLp(), solver.getSolution()
    best = np.array(solution.col_value)
    if not cost.any():
        return best
    column_dual, row_dual = np.array(solution.col_dual), np.array(solution.row_dual)
    held = [
        np.array(bounds)
        for bounds in (model.col_lower_, model.col_upper_, model.row_lower_, model.row_upper_)
    ]
    lower, upper, row_lower, row_upper = (bounds.copy() for bounds in held)
    at_bound, tight = np.abs(column_dual) > TIE, np.abs(row_dual) > TIE
    lower[at_bound] = upper[at_bound] = np.where(column_dual > 0, lower, upper)[at_bound]
    row_lower[tight] = row_upper[tight] = np.where(row_dual > 0, row_lower, row_upper)[tight]
    columns, rows = np.arange(len(lower), dtype=np.int32), np.arange(len(row_lower), dtype=np.int32)
    charged = np.array(model.col_cost_)
    solver.changeColsBounds(len(columns), columns, lower, upper)
    solver.changeRowsBounds(len(rows), rows, row_lower, row_upper)
    solver.changeColsCost(len(columns), columns, cost)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        best = np.array(solver.getSolution().col_value)
    solver.changeColsBounds(len(columns), columns, held[0], held[1])
    solver.changeRowsBounds(len(rows), rows, held[2], held[3])
    solver.changeColsCost(len(columns), columns, charged)
    return best
