r"""The one linear program: build it, solve it with HiGHS, map the answer back.

.. math::
    \min_q \frac{1}{W} \sum_{zsd} \mathrm{loss}_{zsd} q_{zsd}
    \quad \text{s.t.} \quad q \ge 0, \; \sum_d q_{zsd} = 1, \;
    \mathrm{lo}_j \le \mathrm{mean}_{zj}(q) \le \mathrm{lo}_j + \varepsilon_j

with :math:`\mathrm{mean}_{zj}(q) = \sum_{sd} \mathrm{value}_{zsdj} q_{zsd} / \sum_s \mathrm{among}_{zsj}` and a free
level :math:`\mathrm{lo}_j` per component, so that rows grow with the groups and not with their pairs.

Scaling decides whether the answer is right. Per (z, s) the value at a reference decision moves to the
right-hand side; a component's rows are divided by its largest coefficient; costs are regrets scaled to one.
What comes back is evaluated again from q in the user's units, and an answer that fails that check raises.

Further rows keep a decision's probability from falling as the score rises, and a policy that may not see the
group has one set of columns for all groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.requirements import GapRow, MeanRow, Row
from felicific._program.moments import Moments
from felicific.exceptions import SolverError

Floats = NDArray[np.float64]

#: Primal and dual tolerance of the solver, and of the check of its answer, relative to the scaled rows.
TOLERANCE = 1e-9

#: Rounding error of a sum, relative to the sum of its terms' sizes.
ROUNDING = 1e-13

#: A dual above this says that something binds; regrets are scaled to 1.
TIE = 1e-9


@dataclass(frozen=True)
class Program:
    """The scaled program, together with what undoes the scaling.

    Columns are ``q`` of the occupied cells (cell by cell, decision by decision), then one level per gap, then
    the excess that the elastic program minimises. ``cell[z, s]`` is the position of a group's cell among the
    occupied ones, or -1; groups share cells when the policy does not see the group.
    """

    moments: Moments
    rows: list[Row]
    cell: NDArray[np.intp]
    cost: Floats
    cost_scale: float
    least_loss: float
    coefficients: Floats
    constants: Floats
    scales: Floats
    see_group: bool

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return int(self.cell.max()) + 1


def build(
    moments: Moments, rows: list[Row], *, see_group: bool = True, scales: Floats | None = None
) -> Program:
    """Scale the moments into the coefficients of the program."""
    n_groups, n_signals, n_classes = moments.loss.shape
    block = np.arange(n_groups) if see_group else np.zeros(n_groups, dtype=np.intp)
    n_blocks = int(block.max()) + 1
    mass, loss = np.zeros((n_blocks, n_signals)), np.zeros((n_blocks, n_signals, n_classes))
    np.add.at(mass, block, moments.mass)
    np.add.at(loss, block, moments.loss)
    occupied = mass > 0
    cell = np.where(occupied, occupied.cumsum().reshape(occupied.shape) - 1, -1)[block]
    regret = loss - loss.min(axis=2, keepdims=True)
    cost_scale = float(regret.max())
    reference = loss.argmin(axis=2)[block]
    base = np.take_along_axis(moments.value, reference[:, :, None, None], axis=2)
    counted = moments.counted
    coefficients = (moments.value - base) / counted[:, None, None, :]
    if scales is None:
        scales = np.abs(coefficients).max(axis=(0, 1, 2), initial=0.0)
        # Where no decision matters, what is between the groups is all there is to measure by, or failing that its size.
        level, noise = base.sum(axis=(1, 2)) / counted, rounding_of(moments)
        apart = level.max(axis=0) - level.min(axis=0)
        scales = np.where(scales > 0, scales, np.where(apart > noise, apart, noise / ROUNDING))
        scales[scales == 0.0] = 1.0
    return Program(
        moments=moments,
        rows=rows,
        cell=cell,
        cost=(regret / (cost_scale if cost_scale > 0 else 1.0))[occupied].ravel(),
        cost_scale=cost_scale / moments.total,
        least_loss=float(loss.min(axis=2).sum()) / moments.total,
        coefficients=coefficients / scales,
        constants=base.sum(axis=(1, 2)) / counted / scales,
        scales=scales,
        see_group=see_group,
    )


def rounding_of(moments: Moments) -> Floats:
    """Differences between group means that may be nothing but rounding, by component."""
    size = np.abs(moments.value).max(axis=2).sum(axis=1) / moments.counted
    return np.asarray(ROUNDING * size.max(axis=0))


@dataclass(frozen=True)
class Answer:
    """What HiGHS found; ``duals`` are those of the requirements' rows, in the order of ``origins``."""

    feasible: bool
    columns: Floats
    duals: Floats
    origins: list[_ModelRow]


@dataclass(frozen=True)
class _ModelRow:
    """One row of the model: columns and numbers between two sides.

    ``requirement`` is the position of the requirement it belongs to, ``shares`` how much of each group's mean
    it holds, ``scale`` what it was divided by.
    """

    columns: NDArray[Any]
    numbers: Floats
    lower: float
    upper: float
    requirement: int = -1
    shares: Floats | None = None
    scale: float = 1.0


def run_model(
    program: Program, rows: Sequence[Row], *, elastic: bool = False, changes: Floats | None = None
) -> Answer:
    """Hand the program with these rows to HiGHS; if ``elastic``, minimise the excess over their sides instead.

    With ``changes``, what each column changes today's decisions, of all optimal policies the one that changes least.
    """
    import highspy

    model, written = _model(program, rows, elastic)
    # A vertex by the simplex method, so that few people face a lottery; when it ends without an answer, again
    # without presolve, and then by an interior point with crossover.
    for method, presolve in (("simplex", "choose"), ("simplex", "off"), ("ipm", "off")):
        solver = _solver(model, method, presolve)
        solver.run()
        status = solver.getModelStatus()
        solution = solver.getSolution()
        if status == highspy.HighsModelStatus.kOptimal:
            duals = np.array(solution.row_dual)[model.num_row_ - len(written) :]
            columns = np.array(solution.col_value) if changes is None else _settled(solver, changes)
            return Answer(True, columns, duals, written)
        if status == highspy.HighsModelStatus.kInfeasible:
            return Answer(False, np.empty(0), np.empty(0), written)
    if not elastic and status == highspy.HighsModelStatus.kUnknown:
        # At the very edge of what can be met; the elastic program, which always has an answer, decides.
        return Answer(False, np.empty(0), np.empty(0), written)
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the moments if you can share them.",
    )


def _solver(model: Any, method: str, presolve: str) -> Any:
    """A HiGHS solver that holds the model."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy is typed in part
    options: dict[str, Any] = {
        "output_flag": False,
        "solver": method,
        "presolve": presolve,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": 1e-12,
    }
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(model)
    return solver


def _settled(solver: Any, cost: Floats) -> Floats:
    """Of all optimal answers, the one that changes today's decisions least; the solver has just found one of them.

    Whatever has a dual stays at its bound: that is the face of all optimal answers, and its vertices are vertices of
    the whole program, so nobody faces a lottery on account of this choice.
    """
    import highspy

    model, solution = solver.getLp(), solver.getSolution()
    found = np.array(solution.col_value)
    if not cost.any():
        return found
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
    solver.changeColsCost(len(columns), columns, np.concatenate([cost, np.zeros(len(columns) - len(cost))]))
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        found = np.array(solver.getSolution().col_value)
    solver.changeColsBounds(len(columns), columns, held[0], held[1])
    solver.changeRowsBounds(len(rows), rows, held[2], held[3])
    solver.changeColsCost(len(columns), columns, charged)
    return found


def changes_of(program: Program) -> Floats:
    """How far every decision is from today's, cell by cell, decision by decision; at most 1.

    A change counts for as many people as it concerns, and the more, the further they are from where today's decision
    turns into another: by the share of the group that lies between, where signals have an order.
    """
    moments = program.moments
    n_groups, n_signals, n_classes = moments.loss.shape
    today = moments.signal.today(n_classes)
    mass = (
        moments.mass if program.see_group else np.broadcast_to(moments.mass.sum(axis=0), moments.mass.shape)
    )
    far = np.ones((n_groups, n_signals))
    for run in moments.signal.runs(n_classes):
        if len(run) < 2:
            continue
        here, part = today[run.start : run.stop], mass[:, run.start : run.stop]
        middle = part.cumsum(axis=1) - part / 2
        turns = np.flatnonzero(np.diff(here)) + 1
        edges = [part[:, :turn].sum(axis=1) for turn in turns] or [np.zeros(n_groups)]
        away = np.min([np.abs(middle - edge[:, None]) for edge in edges], axis=0)
        far[:, run.start : run.stop] = away / part.sum(axis=1, keepdims=True).clip(min=1e-300)
    cost = (mass * far)[:, :, None] * (np.arange(n_classes) != today[:, None])
    per_cell = np.zeros((program.n_cells, n_classes))
    held = program.cell >= 0
    if program.see_group:
        per_cell[program.cell[held]] = cost[held]
    else:
        per_cell[program.cell[0][held[0]]] = cost[0][held[0]]
    largest = per_cell.max(initial=0.0)
    return np.asarray(per_cell.ravel() / (largest if largest > 0 else 1.0))


class Ray:
    """The program in which every gap may grow together: gap j at most ``t`` times its row's width.

    One model, solved again and again with another weight of ``t``: each solve starts from the last one's vertex. Its
    last column is t in units of its own, so that it is as large as the others whatever happiness is counted in.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        steepest = max(
            (row.width / float(program.scales[row.j]) for row in program.rows if isinstance(row, GapRow)),
            default=0.0,
        )
        self.unit = 1.0 / steepest if steepest > 0 else 1.0
        rows = [
            replace(row, width=row.width * self.unit) if isinstance(row, GapRow) else row
            for row in program.rows
        ]
        self.model, self.written = _model(program, rows, elastic=True, ray=True)
        self.width = len(self.model.col_cost_) - 1
        self.solver = _solver(self.model, "simplex", "off")

    def _run(self) -> Answer:
        import highspy

        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            # A warm start can end without an answer: start cold, by an interior point with crossover.
            self.solver.clearSolver()
            self.solver.setOptionValue("solver", "ipm")
            self.solver.run()
            self.solver.setOptionValue("solver", "simplex")
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(
                f"HiGHS ended with the status {self.solver.modelStatusToString(self.solver.getModelStatus())!r}.",
                "Please report it, with the moments if you can share them.",
            )
        solution = self.solver.getSolution()
        duals = np.array(solution.row_dual)[self.model.num_row_ - len(self.written) :]
        return Answer(True, np.array(solution.col_value), duals, self.written)

    def least_width(self) -> Answer:
        """Columns of least t, whatever the loss."""
        n = len(self.program.cost)
        columns = np.arange(n, dtype=np.int32)
        self.solver.changeColsCost(n, columns, np.zeros(n))
        self.solver.changeColCost(self.width, 1.0)
        found = self._run()
        self.solver.changeColsCost(n, columns, self.program.cost)
        self.solver.changeColCost(self.width, 0.0)
        return found

    def within(self, width: float, changes: Floats | None = None) -> Answer:
        """Columns of least loss with t at most ``width``; given what each changes, those that change least."""
        return self._within(width / self.unit, changes)

    def _within(self, width: float, changes: Floats | None = None) -> Answer:
        self.solver.changeColCost(self.width, 0.0)
        self.solver.changeColBounds(self.width, 0.0, 0.0 if width < 1e-12 else width * (1 + 1e-12))
        found = self._run()
        if changes is not None:
            found = replace(found, columns=_settled(self.solver, changes))
        self.solver.changeColBounds(self.width, 0.0, math.inf)
        return found

    def least(self) -> Answer:
        """Columns of least t, and of least loss among those."""
        return self._within(float(self.least_width().columns[self.width]))

    def weighted(self, weight: float) -> Answer:
        """Columns that minimise the (scaled) loss plus ``weight`` times t."""
        self.solver.changeColCost(self.width, weight * self.unit)
        return self._run()


def _model(
    program: Program, rows: Sequence[Row], elastic: bool, ray: bool = False
) -> tuple[Any, list[_ModelRow]]:
    """Write the program as a HiGHS model; its last rows are those of the requirements, returned beside it.

    With ``elastic`` a last column relaxes the requirements. With ``ray`` too, it multiplies the widths of the gaps,
    other requirements are kept, and the loss stays in the objective.
    """
    import highspy

    n_classes = program.moments.loss.shape[2]
    n_cells = program.n_cells
    n_policy = n_cells * n_classes
    n_levels = sum(isinstance(row, GapRow) for row in rows)
    excess = n_policy + n_levels if elastic else None
    written: list[_ModelRow] = []
    level = n_policy
    for position, row in enumerate(rows):
        if isinstance(row, GapRow):
            written += _gap_rows(program, row, position, level, excess, ray)
            level += 1
        else:
            written += _mean_rows(program, row, position, None if ray else excess)
    monotone = _monotone_rows(program)
    every = monotone + written

    # Before them, one row per cell: its probabilities sum to one.
    lengths = np.concatenate([np.full(n_cells, n_classes), [len(row.columns) for row in every]])
    last, free = int(elastic), np.full(n_levels, math.inf)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n_policy + n_levels + last, len(lengths)
    cost = np.zeros(n_policy) if elastic and not ray else program.cost
    model.col_cost_ = np.concatenate([cost, np.zeros(n_levels), np.full(last, 0.0 if ray else 1.0)])
    model.col_lower_ = np.concatenate([np.zeros(n_policy), -free, np.zeros(last)])
    model.col_upper_ = np.concatenate([np.ones(n_policy), free, np.full(last, math.inf)])
    model.row_lower_ = np.concatenate([np.ones(n_cells), [row.lower for row in every]])
    model.row_upper_ = np.concatenate([np.ones(n_cells), [row.upper for row in every]])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([np.arange(n_policy), *(row.columns for row in every)]).astype(
        np.int32
    )
    model.a_matrix_.value_ = np.concatenate([np.ones(n_policy), *(row.numbers for row in every)])
    return model, written


def _monotone_rows(program: Program) -> list[_ModelRow]:
    """Along each chain of occupied cells, the decision's probability does not fall."""
    n_classes = program.moments.loss.shape[2]
    difference = np.array([1.0, -1.0])
    found = []
    for line in np.unique(program.cell, axis=0):
        for chain, decision in program.moments.signal.chains(n_classes):
            cells = line[chain.start : chain.stop]
            columns = cells[cells >= 0] * n_classes + decision
            found += [
                _ModelRow(np.array([after, before]), difference, 0.0, math.inf)
                for before, after in pairwise(columns)
            ]
    return found


def _gap_rows(
    program: Program, row: GapRow, position: int, level: int, excess: int | None, ray: bool
) -> list[_ModelRow]:
    """Write one gap: every group's mean between the level and the level plus the width.

    The last column adds to the width; on a ray it multiplies it.
    """
    # Centred on the middle of the groups, the right-hand sides are no larger than the gap itself.
    constants = program.constants[:, row.j] - program.constants[:, row.j].mean()
    scale = float(program.scales[row.j])
    width = row.width / scale
    written = []
    for constant, shares in zip(constants.tolist(), np.eye(len(constants)), strict=True):
        columns, numbers = _mean(program, row.j, shares)
        columns, numbers = np.append(columns, level), np.append(numbers, -1.0)
        lower, upper = -constant, (0.0 if ray else width) - constant
        if excess is None:
            written.append(_ModelRow(columns, numbers, lower, upper, position, shares, scale))
        else:
            more, minus = np.append(columns, excess), np.append(numbers, -width if ray else -1.0)
            written.append(_ModelRow(columns, numbers, lower, math.inf, position, shares, scale))
            written.append(_ModelRow(more, minus, -math.inf, upper, position, shares, scale))
    return written


def _mean_rows(program: Program, row: MeanRow, position: int, excess: int | None) -> list[_ModelRow]:
    """Write one mean, a group's or that of all people together, between its sides (plus the excess)."""
    counted = program.moments.counted[:, row.j]
    shares = counted / counted.sum() if row.z is None else np.eye(len(counted))[row.z]
    columns, numbers = _mean(program, row.j, shares)
    constant, scale = float(shares @ program.constants[:, row.j]), float(program.scales[row.j])
    lower, upper = row.lower / scale - constant, row.upper / scale - constant
    # A row of its own stakes: those of other groups may be larger by orders of magnitude.
    noise = float(rounding_of(program.moments)[row.j]) / scale
    sides_seen = [abs(side) for side in (lower, upper) if math.isfinite(side) and abs(side) > noise]
    own = float(np.abs(numbers).max()) if len(numbers) else max(sides_seen, default=1.0)
    numbers, lower, upper, scale = numbers / own, lower / own, upper / own, scale * own
    if excess is None:
        return [_ModelRow(columns, numbers, lower, upper, position, shares, scale)]
    more = np.append(columns, excess)
    sides = [(1.0, lower, math.inf), (-1.0, -math.inf, upper)]
    return [
        _ModelRow(more, np.append(numbers, sign), low, high, position, shares, scale)
        for sign, low, high in sides
        if math.isfinite(low) or math.isfinite(high)
    ]


def _mean(program: Program, j: int, shares: Floats) -> tuple[NDArray[Any], Floats]:
    """Columns and scaled coefficients of a weighted mean, over groups, of component ``j``."""
    n_classes = program.moments.loss.shape[2]
    per_cell = np.zeros((program.n_cells, n_classes))
    for z in np.flatnonzero(shares):
        here = program.cell[z] >= 0
        per_cell[program.cell[z][here]] += shares[z] * program.coefficients[z, here, :, j]
    numbers = per_cell.ravel()
    columns = np.flatnonzero(numbers)
    return columns, numbers[columns]


def policy_of(program: Program, columns: Floats) -> Floats:
    """Map the columns back to q; an empty cell gets today's decision, never an arbitrary vertex."""
    moments = program.moments
    n_classes = moments.loss.shape[2]
    solved = columns[: program.n_cells * n_classes].reshape(-1, n_classes).clip(min=0.0)
    solved[solved < 1e-12] = 0.0
    solved /= solved.sum(axis=1, keepdims=True)
    today = (np.arange(n_classes) == moments.signal.today(n_classes)[:, None]).astype(np.float64)
    q = np.where((program.cell >= 0)[:, :, None], solved[program.cell], today)
    for z, line in enumerate(program.cell):
        for chain, decision in moments.signal.chains(n_classes):
            _keep_monotone(q[z, chain.start : chain.stop], line[chain.start : chain.stop] >= 0, decision)
    return np.asarray(q)


def _keep_monotone(q: Floats, occupied: NDArray[np.bool_], decision: int) -> None:
    """Where today's decision of an empty cell would break the rule, take over the occupied neighbour's, in place."""
    held = np.flatnonzero(occupied)
    for s in np.flatnonzero(~occupied) if len(held) else ():
        place = int(np.searchsorted(held, s))
        if place < len(held) and q[s, decision] > q[held[place], decision]:
            q[s] = q[held[place]]
        elif place > 0 and q[s, decision] < q[held[place - 1], decision]:
            q[s] = q[held[place - 1]]


def multipliers(program: Program, answer: Answer, unit: float) -> Floats:
    """Worth of one more unit of every group's mean, in ``unit`` times the objective of the model."""
    worth = np.zeros(program.constants.shape)
    for row, dual in zip(answer.origins, answer.duals.tolist(), strict=True):
        j = program.rows[row.requirement].j
        worth[:, j] += dual * row.shares * unit / row.scale
    return worth


def prices_of(program: Program, answer: Answer) -> dict[str, float]:
    """Loss per unit of each requirement, from the duals of its rows."""
    weights = [0.0] * len(program.rows)
    for row, dual in zip(answer.origins, answer.duals.tolist(), strict=True):
        # A gap's rows share a free level, so their duals sum to zero: the upper sides carry the price.
        is_gap = isinstance(program.rows[row.requirement], GapRow)
        weights[row.requirement] += (max(-dual, 0.0) if is_gap else abs(dual)) / row.scale
    prices: dict[str, float] = {}
    for asked, weight in zip(program.rows, weights, strict=True):
        name = program.moments.components[asked.j].name if isinstance(asked, GapRow) else asked.words
        people = 1.0 if isinstance(asked, GapRow) else asked.people
        # Requirements that read alike share a price.
        prices[name] = prices.get(name, 0.0) + weight * program.cost_scale / people
    return prices
