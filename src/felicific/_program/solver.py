"""HiGHS as it is used here: how exact it is, what it does when a warm start fails, and how ties are settled."""

from __future__ import annotations

from typing import Any

import numpy as np

from felicific._program.model import SMALL, TIE, TOLERANCE
from felicific._typing import Floats
from felicific.exceptions import SolverError


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
            "Please report it, with the aggregates if you can share them.",
        )
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kOptimal)


def settle(solver: Any, cost: Floats) -> Floats:
    """Of all optimal answers, the one that changes the baseline least; the solver has just found one of them.

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
