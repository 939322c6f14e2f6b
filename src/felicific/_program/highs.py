"""HiGHS as it is used here: how exact it is, and what is done where a warm start ends without an answer."""

from __future__ import annotations

from typing import Any

from felicific.exceptions import SolverError

#: Primal and dual tolerance of the solver, and of the check of its answer, relative to rows and costs scaled to 1.
TOLERANCE = 1e-9

#: A coefficient below this is nothing but rounding.
SMALL = 1e-12


#: From the last vertex, from none, by an interior point; then no more exactly than the check of the answer asks for.
WAYS = [*((method, TOLERANCE / 10.0) for method in ("simplex", "simplex", "ipm")), ("simplex", TOLERANCE)]


def new_solver() -> Any:
    """A HiGHS solver that is as exact as programs here are scaled for."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy is typed in part
    options: dict[str, Any] = {
        "output_flag": False,
        "solver": "simplex",
        "presolve": "off",  # every solve but the first starts from the last one's vertex
        "dual_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": SMALL,
    }
    for option, value in options.items():
        solver.setOptionValue(option, value)
    return solver


def run(solver: Any, *, sure: bool = True) -> bool:
    """Solve what a solver holds; False where the rows cannot be met, or unless ``sure`` where that stays open."""
    import highspy

    done = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    for method, tolerance in WAYS:
        solver.setOptionValue("solver", method)
        solver.setOptionValue("primal_feasibility_tolerance", tolerance)
        solver.run()
        status = solver.getModelStatus()
        solver.setOptionValue("solver", "simplex")
        if status in done:
            return bool(status == highspy.HighsModelStatus.kOptimal)
        solver.clearSolver()
    if not sure and status == highspy.HighsModelStatus.kUnknown:
        return False
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the aggregates if you can share them.",
    )
