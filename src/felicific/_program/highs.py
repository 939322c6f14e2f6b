"""HiGHS: solve a model, settle among equally good answers, and follow a frontier's ray with warm starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._problem.fractions import FreeLevel
from felicific._problem.rows import Row
from felicific._program.climbing import Climbing
from felicific._program.fractions import exchanged
from felicific._program.model import TOLERANCE, Program
from felicific._program.sifted import Sifted
from felicific._program.solver import new_solver, settle
from felicific._program.written import Model, write_model
from felicific._typing import Floats
from felicific.exceptions import SolverError


@dataclass(frozen=True)
class Answer:
    """What the solver says of a model; ``duals`` are those of its ``written`` rows."""

    feasible: bool
    columns: Floats
    duals: Floats
    model: Model


def run_model(
    program: Program,
    rows: Sequence[Row],
    *,
    elastic: bool = False,
    changes: Floats | None = None,
    plain: bool = False,
) -> Answer:
    """Hand the program with these rows to HiGHS; if ``elastic``, minimise the excess over their sides instead.

    ``plain``: cell by cell, whatever policies are mixed of.
    With ``changes``, what each column changes the baseline's decisions, of all optimal policies the one that changes
    least.
    """
    import highspy

    model = write_model(program, rows, elastic=elastic, plain=plain)
    if model.stairs is not None:
        try:
            return _mixed(Climbing(model), changes)
        except SolverError:  # then the whole model, in other ways
            model = write_model(program, rows, elastic=elastic, plain=True)
    if model.corners is not None:
        with suppress(SolverError):  # then the whole model, in other ways
            return _mixed(Sifted(model), changes)
    # A vertex by the simplex method, so that few people face a lottery; when it ends without an answer, again
    # without presolve, and then by an interior point with crossover.
    for method, presolve in (("simplex", "choose"), ("simplex", "off"), ("ipm", "off")):
        solver = _solver(model, method, presolve)
        solver.run()
        status = solver.getModelStatus()
        solution = solver.getSolution()
        if status == highspy.HighsModelStatus.kOptimal:
            duals = _duals(solution, model)
            found = np.array(solution.col_value)
            if changes is not None:
                rest = np.zeros(len(found) - model.n_mixed)
                found = settle(solver, np.append(model.mixed(changes), rest))
            return Answer(True, model.solved(found), duals, model)
        if status == highspy.HighsModelStatus.kInfeasible:
            return Answer(False, np.empty(0), np.empty(0), model)
    if not elastic and status == highspy.HighsModelStatus.kUnknown:
        # At the very edge of what can be met; the elastic program, which always has an answer, decides.
        return Answer(False, np.empty(0), np.empty(0), model)
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the aggregates if you can share them.",
    )


def _mixed(found: Sifted | Climbing, changes: Floats | None) -> Answer:
    """The answer by few of the model's corners, or of its staircases."""
    model = found.model
    if not found.run():
        return Answer(False, np.empty(0), np.empty(0), model)
    solution = found.solver.getSolution()
    duals = _duals(solution, model)
    columns = found.columns(np.array(solution.col_value)) if changes is None else found.settled(changes)
    return Answer(True, columns, duals, model)


def _solver(model: Model, method: str, presolve: str) -> Any:
    """A HiGHS solver that holds the model."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.cost), len(model.row_lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.cost, model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = model.starts.astype(np.int32)
    lp.a_matrix_.index_ = model.columns.astype(np.int32)
    lp.a_matrix_.value_ = model.numbers
    solver = new_solver(method, presolve)
    solver.passModel(lp)
    return solver


def _duals(solution: Any, model: Model) -> Floats:
    """Duals of the requirements' rows, which are the last; a solver may hold further rows in front of the model's."""
    duals = np.array(solution.row_dual)
    return duals[len(duals) - len(model.written) :]


class Ray:
    """The program in which every gap may grow together: a row that moves has ``t`` times its width.

    One model, solved again and again with another weight of ``t``: each solve starts from the last one's vertex. Its
    last column is t in units of its own, so that it is as large as the others whatever happiness is counted in.
    """

    sifted: Sifted | Climbing

    def __init__(self, program: Program, *, plain: bool = False) -> None:
        self.program = program
        slopes = (row.width / float(program.scales[row.j]) for row in program.rows if row.width is not None)
        steepest = max(slopes, default=0.0)
        self.unit = 1.0 / steepest if steepest > 0 else 1.0
        rows = [row if row.width is None else row.moved(row.width * self.unit) for row in program.rows]
        self.model = write_model(program, rows, ray=True, plain=plain)
        self.begin()

    def begin(self) -> None:
        """Forget what was found: what is asked next is answered alike whatever was asked before."""
        self.sifted = Sifted(self.model) if self.model.stairs is None else Climbing(self.model)
        self.solver, self.width = self.sifted.solver, self.sifted.first - 1

    def _run(self) -> Answer:
        if not self.sifted.run():
            raise SolverError(
                "HiGHS ended with the status 'Infeasible'.",
                "Please report it, with the aggregates if you can share them.",
            )
        return self._answer(np.array(self.solver.getSolution().col_value))

    def _answer(self, values: Floats) -> Answer:
        return Answer(
            True, self.sifted.columns(values), _duals(self.solver.getSolution(), self.model), self.model
        )

    def least_width(self) -> Answer:
        """Columns of least t, whatever the loss."""
        n = self.model.n_mixed
        self.sifted.charge(np.zeros(n))
        self.solver.changeColCost(self.width, 1.0)
        answer = self._run()
        self.sifted.charge(self.model.cost[:n])
        self.solver.changeColCost(self.width, 0.0)
        return answer

    def within(self, width: float, changes: Floats | None = None) -> Answer:
        """Columns of least loss with t at most ``width``; given what each changes, those that change least."""
        return self._within(width / self.unit, changes)

    def _within(self, width: float, changes: Floats | None = None) -> Answer:
        self.solver.changeColCost(self.width, 0.0)
        self.solver.changeColBounds(self.width, 0.0, 0.0 if width < 1e-12 else width * (1 + 1e-12))
        answer = self._run()
        if changes is not None:
            answer = replace(answer, columns=self.sifted.settled(changes))
        self.solver.changeColBounds(self.width, 0.0, math.inf)
        return answer

    def least(self) -> Answer:
        """Columns of least t, and of least loss among those."""
        return self._within(float(self.least_width().columns[-1]))

    def weighted(self, weight: float) -> Answer:
        """Columns that minimise the (scaled) loss plus ``weight`` times t."""
        self.solver.changeColCost(self.width, weight * self.unit)
        return self._run()

    def least_at(self, loss: float, changes: Floats) -> Answer | None:
        """Columns of least t whose loss is at most this, in the user's unit; None where no policy has so little.

        Of these, columns of least loss, and among those that change the baseline's decisions least.
        """
        if self.model.stairs is not None:  # by the whole model, because what a column costs becomes a row
            return Ray(self.program, plain=True).least_at(loss, changes)
        program, solver = self.program, self.solver
        assert isinstance(self.sifted, Sifted), "the whole model is here"
        last = len(self.model.row_lower)
        self.sifted.take_all()
        least = program.charged(self.weighted(0.0).columns)
        most = (loss - program.least_loss) / (program.cost_scale or 1.0)
        if least > most + TOLERANCE:
            return None
        cost = self.sifted.aligned(program.cost)
        columns = np.flatnonzero(cost).astype(np.int32)
        solver.addRow(-math.inf, max(most, least), len(columns), columns, cost[columns])
        width = float(self.least_width().columns[-1])
        solver.deleteRows(1, np.array([last], dtype=np.int32))
        return self._within(width, changes)


class Levels:
    """The program in which fractions are compared at one level after another.

    Only the coefficients of the denominators change with the level, so each solve starts from the last one's vertex.
    """

    def __init__(self, program: Program, rows: Sequence[Row], free: FreeLevel) -> None:
        self.program, self.rows, self.free = program, rows, free
        rows_there = exchanged(rows, free, free.between(0.0, 0.0))
        self.model = write_model(program, rows_there, plain=program.stairs)
        self.solver = _solver(self.model, "simplex", "off")
        place = list(rows).index(free)
        before = len(self.model.row_lower) - len(self.model.written)
        own = [before + i for i, owner in enumerate(self.model.owners) if owner == place]
        # Of every union: who is counted, the lower side, the upper side.
        self.sides = list(zip(own[1::3], own[2::3], strict=True))
        self.first = self.model.levels[place] + self.model.n_mixed - self.model.n_policy
        self.before = before

    def at(self, row: FreeLevel) -> Answer:
        """The optimum for the levels of a row."""
        import highspy

        for u, pair in enumerate(self.sides):
            for i, side, lower in zip(pair, row.sides, (True, False), strict=True):
                known = math.isfinite(side)
                scale = self.model.written[i - self.before].scale
                self.solver.changeCoeff(i, self.first + u, -side / scale if known else 0.0)
                low, high = self.model.row_lower[i], self.model.row_upper[i]
                self.solver.changeRowBounds(
                    i, low if known and lower else -math.inf, high if known and not lower else math.inf
                )
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Answer(False, np.empty(0), np.empty(0), self.model)
        if status == highspy.HighsModelStatus.kOptimal:
            solution = self.solver.getSolution()
            columns = self.model.solved(np.array(solution.col_value))
            return Answer(True, columns, _duals(solution, self.model), self.model)
        self.solver.clearSolver()  # a warm start can end without an answer
        return run_model(self.program, exchanged(self.rows, self.free, row))
