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
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific.constraints import Budget, Floor, GapRow, MeanRow, Row, resolve_rows
from felicific.exceptions import InfeasibleError, SolverError
from felicific.moments import Moments, Outcome

Floats = NDArray[np.float64]

#: Primal and dual tolerance of the solver, and of the check of its answer, relative to the scaled rows.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Solution:
    """The optimum: the policy, what it does, and what each requirement costs.

    Attributes
    ----------
    q : array of shape (groups, signals, classes)
        Probability of every decision.
    outcome : Outcome
        Loss, group means and gaps, evaluated from ``q``.
    prices : dict of str to float
        For every gap (by component name) and every other requirement (by its words): loss given up per unit
        by which it is tightened.
    """

    q: Floats
    outcome: Outcome
    prices: dict[str, float]


@dataclass(frozen=True)
class Program:
    """The scaled program, together with what undoes the scaling.

    Columns are ``q`` of the occupied cells (cell by cell, decision by decision), then one level per gap, then
    the width that the least-gap program minimises.
    """

    moments: Moments
    rows: list[Row]
    cells: NDArray[np.intp]
    cost: Floats
    cost_scale: float
    coefficients: Floats
    constants: Floats
    scales: Floats


def build(moments: Moments, rows: list[Row]) -> Program:
    """Scale the moments into the coefficients of the program."""
    n_groups, n_signals, n_classes = moments.loss.shape
    occupied = np.flatnonzero(moments.mass.ravel() > 0)
    reference = moments.loss.argmin(axis=2)
    regret = moments.loss - moments.loss.min(axis=2, keepdims=True)
    cost_scale = float(regret.max())
    base = np.take_along_axis(moments.value, reference[:, :, None, None], axis=2)
    counted = moments.counted
    coefficients = (moments.value - base) / counted[:, None, None, :]
    constants = base.sum(axis=(1, 2)) / counted
    scales = np.abs(coefficients).max(axis=(0, 1, 2), initial=0.0)
    scales[scales == 0.0] = 1.0
    return Program(
        moments=moments,
        rows=rows,
        cells=occupied,
        cost=(regret / (cost_scale if cost_scale > 0 else 1.0)).reshape(-1, n_classes)[occupied].ravel(),
        cost_scale=cost_scale / moments.total,
        coefficients=(coefficients / scales).reshape(n_groups, n_signals, n_classes, -1),
        constants=constants / scales,
        scales=scales,
    )


@dataclass(frozen=True)
class _Answer:
    feasible: bool
    columns: Floats
    duals: Floats
    spans: list[tuple[int, int]]


def _run(program: Program, rows: Sequence[Row], *, least_gap: bool = False) -> _Answer:
    """Hand the program with these rows to HiGHS; with ``least_gap`` minimise one common width instead."""
    import highspy

    model, spans = _model(program, rows, least_gap)
    for presolve in ("choose", "off"):
        solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy is typed in part
        options: dict[str, Any] = {
            "output_flag": False,
            "solver": "simplex",  # a vertex: few people face a lottery
            "presolve": presolve,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "small_matrix_value": 1e-12,
        }
        for option, value in options.items():
            solver.setOptionValue(option, value)
        solver.passModel(model)
        solver.run()
        status = solver.getModelStatus()
        solution = solver.getSolution()
        if status == highspy.HighsModelStatus.kOptimal:
            return _Answer(True, np.array(solution.col_value), np.array(solution.row_dual), spans)
        if status == highspy.HighsModelStatus.kInfeasible:
            return _Answer(False, np.empty(0), np.empty(0), spans)
    raise SolverError(
        f"HiGHS ended with the status {solver.modelStatusToString(status)!r}.",
        "Please report it, with the moments if you can share them.",
    )


#: One row of the model: columns, numbers, lower side, upper side.
_ModelRow = tuple[NDArray[Any], Floats, float, float]


def _model(program: Program, rows: Sequence[Row], least_gap: bool) -> tuple[Any, list[tuple[int, int]]]:
    """Write the program as a HiGHS model, and say which of its rows belong to which requirement."""
    import highspy

    n_classes = program.moments.loss.shape[2]
    n_cells = len(program.cells)
    n_policy = n_cells * n_classes
    n_levels = sum(isinstance(row, GapRow) for row in rows)
    written: list[_ModelRow] = []
    spans: list[tuple[int, int]] = []
    for row in rows:
        first = len(written)
        if isinstance(row, GapRow):
            level = n_policy + sum(isinstance(other, GapRow) for other in rows[: len(spans)])
            written += _gap_rows(program, row, level, n_policy + n_levels if least_gap else None)
        else:
            written.append(_mean_row(program, row))
        spans.append((n_cells + first, n_cells + len(written)))

    # Before them, one row per cell: its probabilities sum to one.
    lengths = np.concatenate([np.full(n_cells, n_classes), [len(row[0]) for row in written]])
    slack = int(least_gap)
    free = np.full(n_levels, math.inf)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n_policy + n_levels + slack, len(lengths)
    cost = np.zeros(n_policy) if least_gap else program.cost
    model.col_cost_ = np.concatenate([cost, np.zeros(n_levels), np.ones(slack)])
    model.col_lower_ = np.concatenate([np.zeros(n_policy), -free, np.zeros(slack)])
    model.col_upper_ = np.concatenate([np.ones(n_policy), free, np.full(slack, math.inf)])
    model.row_lower_ = np.concatenate([np.ones(n_cells), [row[2] for row in written]])
    model.row_upper_ = np.concatenate([np.ones(n_cells), [row[3] for row in written]])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([np.arange(n_policy), *(row[0] for row in written)]).astype(
        np.int32
    )
    model.a_matrix_.value_ = np.concatenate([np.ones(n_policy), *(row[1] for row in written)])
    return model, spans


def _gap_rows(program: Program, row: GapRow, level: int, slack: int | None) -> list[_ModelRow]:
    """Write one gap: every group's mean between the level and the level plus the width (or the slack)."""
    # Centred on the middle of the groups, the right-hand sides are no larger than the gap itself.
    constants = program.constants[:, row.j] - program.constants[:, row.j].mean()
    width = row.width / float(program.scales[row.j])
    written = []
    for z, constant in enumerate(constants.tolist()):
        columns, numbers = _mean(program, row.j, z)
        columns, numbers = np.append(columns, level), np.append(numbers, -1.0)
        if slack is None:
            written.append((columns, numbers, -constant, width - constant))
        else:
            written.append((columns, numbers, -constant, math.inf))
            written.append((np.append(columns, slack), np.append(numbers, -1.0), -math.inf, -constant))
    return written


def _mean(program: Program, j: int, z: int) -> tuple[NDArray[Any], Floats]:
    """Columns and scaled coefficients of the mean of component ``j`` in group ``z``."""
    _, n_signals, n_classes = program.moments.loss.shape
    mine = np.flatnonzero(program.cells // n_signals == z)
    columns = (mine[:, None] * n_classes + np.arange(n_classes)).ravel()
    numbers = program.coefficients[..., j].reshape(-1, n_classes)[program.cells[mine]].ravel()
    keep = numbers != 0
    return columns[keep], numbers[keep]


def _mean_row(program: Program, row: MeanRow) -> _ModelRow:
    """Write one mean, a group's or that of all people together, between its sides."""
    counted = program.moments.counted[:, row.j]
    share = counted / counted.sum() if row.z is None else np.eye(len(counted))[row.z]
    parts = [(*_mean(program, row.j, z), weight) for z, weight in enumerate(share.tolist()) if weight > 0]
    constant = float(share @ program.constants[:, row.j])
    scale = float(program.scales[row.j])
    return (
        np.concatenate([columns for columns, _, _ in parts]),
        np.concatenate([numbers * weight for _, numbers, weight in parts]),
        row.lower / scale - constant,
        row.upper / scale - constant,
    )


def _policy(program: Program, columns: Floats) -> Floats:
    """Map the columns back to q; an empty cell gets today's decision, never an arbitrary vertex."""
    n_groups, n_signals, n_classes = program.moments.loss.shape
    today = np.eye(n_classes)[program.moments.signal.today(n_classes)]
    q = np.tile(today, (n_groups, 1, 1)).reshape(-1, n_classes)
    solved = columns[: len(program.cells) * n_classes].reshape(-1, n_classes).clip(min=0.0)
    solved[solved < 1e-12] = 0.0
    q[program.cells] = solved / solved.sum(axis=1, keepdims=True)
    return q.reshape(n_groups, n_signals, n_classes)


def solve_program(
    moments: Moments, gap: Any = 0.0, constraints: Iterable[Floor | Budget] | None = ()
) -> Solution:
    """Find the policy of least loss that meets every requirement.

    Raises
    ------
    InfeasibleError
        With the least reachable gap, or an irreducible set of conflicting requirements.
    SolverError
        When the answer fails its own check.
    """
    moments.check_complete()
    rows = resolve_rows(moments, gap, constraints)
    program = build(moments, rows)
    answer = _run(program, rows)
    if not answer.feasible:
        raise _explain(program)
    q = _policy(program, answer.columns)
    outcome = moments.evaluate(q)
    _check(program, outcome, q, float(answer.columns[: len(program.cost)] @ program.cost))
    return Solution(q, outcome, _prices(program, answer))


def _check(program: Program, outcome: Outcome, q: Floats, objective: float) -> None:
    """Compare what was asked with what q really does, in the user's units."""
    moments = program.moments
    best = float(moments.loss.min(axis=2).sum()) / moments.total
    claimed = best + objective * program.cost_scale
    faults = []
    if abs(outcome.loss - claimed) > TOLERANCE * max(program.cost_scale * moments.total, abs(best), 1e-300):
        faults.append(f"the loss is {outcome.loss!r}, not {claimed!r}")
    # The largest swing of a group's mean that decisions can cause is the natural unit of its errors.
    swing = np.abs(program.coefficients).max(axis=2).sum(axis=1).max(axis=0) * program.scales
    relative = np.einsum("zsdj,zsd->zj", moments.value, q) / moments.counted
    together = np.einsum("zj,zj->j", relative, moments.counted) / moments.counted.sum(axis=0)
    for row in program.rows:
        slack = TOLERANCE * max(float(swing[row.j]), float(program.scales[row.j]))
        if isinstance(row, GapRow):
            met = outcome.gaps[row.j] <= row.width + slack
        else:
            mean = together[row.j] if row.z is None else relative[row.z, row.j]
            # A level far away from the happiness it limits carries that distance's rounding error.
            slack += 1e-14 * max(abs(side) for side in (row.lower, row.upper, mean) if math.isfinite(side))
            met = row.lower - slack <= mean <= row.upper + slack
        if not met:
            faults.append(f"it does not meet: {row.words}")
    if faults:
        raise SolverError(
            "The solver's answer failed its check: " + "; ".join(faults) + ".",
            "Please report it, with the moments if you can share them.",
        )


def _prices(program: Program, answer: _Answer) -> dict[str, float]:
    """Loss per unit of each requirement, from the duals of its rows."""
    prices = {}
    for row, (first, last) in zip(program.rows, answer.spans, strict=True):
        duals = answer.duals[first:last]
        # A gap's rows share a free level, so their duals sum to zero: the upper sides carry the price.
        weight = (
            float(np.maximum(-duals, 0.0).sum()) if isinstance(row, GapRow) else float(np.abs(duals).sum())
        )
        name = program.moments.components[row.j].name if isinstance(row, GapRow) else row.words
        prices[name] = weight * program.cost_scale / float(program.scales[row.j])
    return prices


def _explain(program: Program) -> InfeasibleError:
    """Say why no policy meets the requirements: the least gap, or an irreducible conflict.

    A deletion filter over the requirements as the user wrote them: drop each in turn, and leave it out for
    good when the rest still conflicts. What remains conflicts, and does not once any one of it is dropped.
    """
    conflict = list(program.rows)
    for row in program.rows:
        rest = [other for other in conflict if other is not row]
        if not _run(program, rest).feasible:
            conflict = rest
    words = tuple(row.words for row in conflict)
    if len(conflict) == 1 and isinstance(conflict[0], GapRow):
        least = least_gap(program, conflict[0])
        component = program.moments.components[conflict[0].j]
        return InfeasibleError(
            f"No policy of this kind brings the {words[0]}: "
            f"the least reachable gap is {component.quantity(_rounded_up(least))}.",
            "Allow at least that gap, or let the policy see more (another policy=).",
            words,
            least,
        )
    return InfeasibleError(
        f"No policy of this kind meets: {'; '.join(words)}" + (", all at once." if len(words) > 1 else "."),
        "Relax or drop any one of them, or let the policy see more (another policy=)."
        if len(words) > 1
        else "Relax it, or let the policy see more (another policy=).",
        words,
    )


def least_gap(program: Program, row: GapRow) -> float:
    """Least gap of one component that any policy reaches."""
    answer = _run(program, [row], least_gap=True)
    if not answer.feasible:
        raise SolverError("The least gap has no answer.", "Please report it, with the moments if you can.")
    return float(program.moments.evaluate(_policy(program, answer.columns)).gaps[row.j])


def _rounded_up(number: float) -> float:
    """Six digits, rounded up: asking for the number that a message names must succeed."""
    if number == 0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(abs(number))) - 5)
    return math.ceil(number / digit) * digit
