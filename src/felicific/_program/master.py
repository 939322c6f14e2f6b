r"""The master program: the best mixture of deterministic policies, under the rows of some requirements.

Columns are policies of single blocks, whose shares sum to 1, and the free levels of requirements. At the duals y of the
answer every signal and decision has the price

.. math:: \mathrm{cost}_{zsd} - \sum_i y_i \, \mathrm{number}_{izj} \, \mathrm{value}_{zsdj} / \mathrm{counted}_{zj}

and the cheapest policy at these prices joins, until none improves on the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from felicific._problem.linear import Linear
from felicific._program.highs import TOLERANCE, new_solver, run
from felicific._program.program import Program
from felicific._typing import Codes, Floats
from felicific.exceptions import SolverError

#: What a change of the baseline's decision costs at most where policies are equally good, in units of the program.
TIE = 1e-7

#: What costs are multiplied by where ties are settled, so that differences of changes exceed the solver's tolerance.
SHARP = 1e3

#: A part of a policy that is none.
NONE = 1e-12

#: How often the cheapest policy is looked for.
ROUNDS = 5_000


@dataclass(frozen=True)
class Answer:
    """What a master program answers.

    Attributes
    ----------
    program : Program
        Whose policies are mixed.
    places, parts : arrays of shape (policies,)
        Which policies of its pool are followed, and how much of each.
    duals : list of arrays
        Of the rows of each requirement: the loss for one more unit of its side.
    levels : list of float
        The free level of each requirement, 0 without one.
    worth : array of shape (groups, measures)
        What one more unit of every group's mean is worth.
    objective : float
        What the policy costs, in units of the program.
    width : float
        How far along its ray the policy is.
    """

    program: Program = field(repr=False)
    places: Codes = field(repr=False)
    parts: Floats = field(repr=False)
    duals: list[Floats]
    levels: list[float]
    worth: Floats
    objective: float
    width: float = 0.0

    @property
    def value(self) -> float:
        """What is minimised: the loss, with what changed decisions cost."""
        return self.program.least_loss + self.objective * self.program.cost_scale

    @cached_property
    def means(self) -> Floats:
        """Group means, relative to their origins."""
        program = self.program
        moved = program.pool.moved(program, self.places, self.parts)
        return np.asarray((program.constants + moved) * program.scales)

    @cached_property
    def mixed(self) -> Floats:
        """What signals choose, of shape (tables, signals, choices)."""
        return self.program.pool.mixed(self.program, self.places, self.parts)

    @cached_property
    def q(self) -> Floats:
        """Probability of every decision, of shape (groups, signals, decisions)."""
        return self.program.policy(self.mixed)


def solve_rows(program: Program, rows: Sequence[Linear], *, nearest: bool = True) -> Answer | None:
    """The policy of least loss that meets all rows, or None if there is none.

    Of equally good ones the ``nearest`` to the baseline's decisions.
    """
    master = Master(program, rows)
    return master.answer(nearest=nearest) if master.run() else None


class Master:
    """Mixtures of the deterministic policies in a program's pool, under the rows of some requirements.

    ``on_ray``: a column multiplies the widths of the rows that move, all together.
    """

    def __init__(self, program: Program, rows: Sequence[Linear], *, on_ray: bool = False) -> None:
        program.pool.start(program)
        self.program, self.on_ray, self.missed = program, on_ray, 0.0
        self.n_blocks = len(program.blocks)
        moving = [on_ray and row.width is not None for row in rows]
        self.rows = [_one_sided(row) if moves else row for row, moves in zip(rows, moving, strict=True)]
        lengths = [len(row.lower) for row in self.rows]
        first = np.cumsum([0, *lengths])
        self.n_rows, self.owner = int(first[-1]), np.repeat(np.arange(len(rows)), lengths)
        self._scale(first)
        self.ray: int | None = None
        self.unit = 1.0
        self._write(moving)
        # Of policies in the pool the column, the place in it, the block, the cost and the changes.
        self.columns, self.places, self.block = (np.zeros(0, dtype=np.intp) for _ in range(3))
        self.cost, self.change = np.zeros(0), np.zeros(0)
        self._add(list(range(len(program.pool))))
        self.open: Codes | None = None

    def _scale(self, first: Codes) -> None:
        """All entries, in scaled means, and rows of a size near 1 whose constants are on the right-hand side."""
        program, rows = self.program, self.rows
        scales, swing = program.scales, program.swing
        parts = {
            name: np.concatenate([getattr(row, name) for row in rows] or [np.zeros(0, dtype=np.intp)])
            for name in ("group", "measure", "number")
        }
        row = np.concatenate(
            [row.row + f for row, f in zip(rows, first, strict=False)] or [np.zeros(0, np.intp)]
        )
        size = [row.sizes(swing) for row in rows]
        self.size = np.concatenate(size or [np.zeros(0)])
        self.entries = _Entries(
            row,
            parts["group"],
            parts["measure"],
            parts["number"] * scales[parts["measure"]] / self.size[row],
            program,
        )
        constants = program.constants * scales
        at = [one.at(constants) for one in rows]
        # Centred on the level that goes with the constants best, the right-hand sides are no larger than the gaps.
        self.centre = [
            0.0 if one.over_level is None else float(np.mean((_side(one) - here) / one.over_level))
            for one, here in zip(rows, at, strict=True)
        ]
        shift = [
            here if one.over_level is None else here + one.over_level * centre
            for one, here, centre in zip(rows, at, self.centre, strict=True)
        ]
        self.lower, self.upper = (
            np.concatenate(
                [(getattr(one, side) - by) / s for one, by, s in zip(rows, shift, size, strict=True)]
                or [np.zeros(0)]
            )
            for side in ("lower", "upper")
        )

    def _write(self, moving: list[bool]) -> None:
        """Hand rows, levels and the ray to the solver; in the first rows the shares of every block sum to 1."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_row_ = self.n_blocks + self.n_rows
        lp.row_lower_ = np.append(np.ones(self.n_blocks), self.lower)
        lp.row_upper_ = np.append(np.ones(self.n_blocks), self.upper)
        self.solver = new_solver()
        self.solver.passModel(lp)
        self.levels: dict[int, tuple[int, float]] = {}
        for k, row in enumerate(self.rows):
            if row.over_level is None:
                continue
            own = np.flatnonzero(self.owner == k)
            unit = float(self.size[own[0]])
            least = (row.least_level - self.centre[k]) / unit
            self.levels[k] = (self.solver.getNumCol(), unit)
            numbers = row.over_level * unit / self.size[own]
            self.solver.addCol(
                0.0, least, math.inf, len(own), (self.n_blocks + own).astype(np.int32), numbers
            )
        if self.on_ray:
            widths = np.concatenate(
                [
                    np.broadcast_to(row.d_upper, len(row.lower)) * (row.width if moves else 0.0)
                    for row, moves in zip(self.rows, moving, strict=True)
                ]
            )
            numbers = -widths / self.size
            own = np.flatnonzero(numbers)
            self.unit = 1.0 / float(np.abs(numbers).max(initial=0.0) or 1.0)
            self.ray = self.solver.getNumCol()
            self.solver.addCol(
                0.0, 0.0, math.inf, len(own), (self.n_blocks + own).astype(np.int32), numbers[own] * self.unit
            )

    def _add(self, positions: Sequence[int]) -> None:
        """Add policies of the pool, which follow each other, as columns."""
        pool, before = self.program.pool, self.solver.getNumCol()
        if not len(positions):
            return
        block, blocks = np.array([pool.block[i] for i in positions]), self.program.blocks
        means = np.array([pool.means[i] for i in positions])
        sizes, rows, numbers = self.entries.columns(block, blocks.table[block], means)
        n, starts = len(positions), np.append(0, sizes[:-1].cumsum())
        entries = len(rows), starts.astype(np.int32), rows.astype(np.int32), numbers
        self.solver.addCols(n, np.zeros(n), np.zeros(n), np.full(n, math.inf), *entries)
        new = slice(positions[0], positions[-1] + 1)
        self.columns = np.append(self.columns, np.arange(before, before + n))
        self.places, self.block = np.append(self.places, positions), np.append(self.block, block)
        self.cost, self.change = (
            np.append(self.cost, pool.cost[new]),
            np.append(self.change, pool.change[new]),
        )

    def _charge(self, loss: float, change: float) -> None:
        """Charge policies so much for their loss, and for their changes."""
        cost = loss * self.cost + change * self.change
        self.solver.changeColsCost(len(cost), self.columns.astype(np.int32), cost)

    def run(self, loss: float = 1.0, change: float = 0.0, ray: float = 0.0) -> bool:
        """Find the mixture that costs least; False where nothing meets the rows, ``missed`` then says by how much."""
        self._charge(loss, change)
        if self.ray is not None:
            self.solver.changeColCost(self.ray, ray)
        if not run(self.solver, sure=False) and not self._reach(loss, change, ray):
            return False
        self._improve(loss, change)
        return True

    def _reach(self, loss: float, change: float, ray: float) -> bool:
        """Find a mixture that meets the rows, whatever it costs: what they are missed by is all that is minimised."""
        solver, n = self.solver, 2 * self.n_rows
        if self.open is None:
            self.open = np.arange(solver.getNumCol(), solver.getNumCol() + n, dtype=np.int32)
            where = self.n_blocks + np.tile(np.arange(self.n_rows), 2)
            signs = np.repeat([1.0, -1.0], self.n_rows)
            starts, most = np.arange(n, dtype=np.int32), np.full(n, math.inf)
            solver.addCols(n, np.zeros(n), np.zeros(n), most, n, starts, where.astype(np.int32), signs)
        solver.changeColsBounds(n, self.open, np.zeros(n), np.full(n, math.inf))
        solver.changeColsCost(n, self.open, np.ones(n))
        self._charge(0.0, 0.0)
        if self.ray is not None:
            solver.changeColCost(self.ray, 0.0)
        run(solver)
        self._improve(0.0, 0.0)
        missed = np.array(solver.getSolution().col_value)[self.open]
        self.missed = float(missed.sum())
        if self.missed > self.program.slack:
            return False
        # Only rounding keeps it out of reach, such as the least gap itself: that much stays open, of every row.
        solver.changeColsBounds(n, self.open, np.zeros(n), missed + TOLERANCE / 10.0)
        solver.changeColsCost(n, self.open, np.zeros(n))
        self._charge(loss, change)
        if self.ray is not None:
            solver.changeColCost(self.ray, ray)
        return run(solver, sure=False)

    def _improve(self, loss: float, change: float) -> None:
        """Add the cheapest policy of every block at the prices of the answer until none improves on it."""
        program = self.program
        for _ in range(ROUNDS):
            duals = np.array(self.solver.getSolution().row_dual)
            chosen, cost = program.cheapest(self._prices(duals, loss, change))
            better = np.flatnonzero(cost - duals[: self.n_blocks] < -TOLERANCE)
            fresh = program.pool.take(program, chosen, better.tolist())
            if not fresh:
                return
            self._add(fresh)
            self._charge(loss, change)
            run(self.solver)
        raise SolverError(
            f"The search for policies did not end in {ROUNDS:,} rounds.",
            "Please report it, with the aggregates if you can share them.",
        )

    def _prices(self, duals: Floats, loss: float, change: float) -> Floats:
        program = self.program
        worth = np.einsum("zscj,zj->zsc", program.choice_means, self.entries.weighed(duals[self.n_blocks :]))
        charged = loss * program.choice_costs
        charged = charged + change * program.choice_changes if change else charged
        return np.asarray(charged - (worth if program.sees_group else worth.sum(axis=0, keepdims=True)))

    def worth(self, unit: float) -> Floats:
        """What one more unit of every group's mean is worth, in ``unit`` times the objective."""
        duals = np.array(self.solver.getSolution().row_dual)[self.n_blocks :]
        return np.asarray(self.entries.weighed(duals) * unit / self.program.scales)

    def answer(self, *, nearest: bool = True) -> Answer:
        """What was found; of equally good policies the ``nearest`` to the baseline's decisions."""
        program, solution = self.program, self.solver.getSolution()
        duals = np.array(solution.row_dual)
        values, unit = np.array(solution.col_value), program.cost_scale
        of_rows = duals[self.n_blocks :] * unit / self.size
        worth = self.worth(unit)
        levels = [
            values[self.levels[k][0]] * self.levels[k][1] + self.centre[k] if k in self.levels else 0.0
            for k in range(len(self.rows))
        ]
        width = 0.0 if self.ray is None else float(values[self.ray]) * self.unit
        if nearest and program.choice_changes.any():
            self.run(SHARP, SHARP * TIE)
            values = np.array(self.solver.getSolution().col_value)
        parts = values[self.columns]
        parts = np.where(parts > NONE, parts, 0.0)
        parts = parts / np.bincount(self.block, parts, self.n_blocks)[self.block]
        used = np.flatnonzero(parts)
        return Answer(
            program=program,
            places=self.places[used],
            parts=parts[used],
            duals=[of_rows[self.owner == k] for k in range(len(self.rows))],
            levels=levels,
            worth=worth,
            objective=float(parts[used] @ self.cost[used]),
            width=width,
        )

    # -----------------------------------------------------------------------------------------------------
    # Along a ray

    def within(self, width: float, *, nearest: bool = True) -> Answer:
        """Of least loss with widths at most so many times their own."""
        assert self.ray is not None, "widths move"
        most = 0.0 if width / self.unit < NONE else width / self.unit * (1 + NONE)
        self.solver.changeColBounds(self.ray, 0.0, most)
        self._sure(self.run())
        answer = self.answer(nearest=nearest)
        self.solver.changeColBounds(self.ray, 0.0, math.inf)
        return answer

    def weighted(self, weight: float) -> Answer:
        """Of least loss, in units of the program, and ``weight`` times the width."""
        self._sure(self.run(ray=weight * self.unit))
        return self.answer(nearest=False)

    def least(self) -> Answer:
        """Of least width, whatever the loss; ``worth`` is then in widths."""
        self._sure(self.run(0.0, ray=self.unit))
        worth = self.worth(1.0)
        return replace(self.answer(nearest=False), worth=worth)

    def _sure(self, solved: bool) -> None:
        if not solved:
            raise SolverError(
                "HiGHS ended with the status 'Infeasible'.",
                "Please report it, with the aggregates if you can share them.",
            )


def _side(row: Linear) -> Floats:
    """The lower side of every row, or else the upper one."""
    return np.where(np.isfinite(row.lower), row.lower, row.upper)


def _one_sided(row: Linear) -> Linear:
    """Rows with one side each, the upper ones after the lower ones; what moves are then only upper sides."""
    n = len(row.lower)
    low, high = np.flatnonzero(np.isfinite(row.lower)), np.flatnonzero(np.isfinite(row.upper))
    place = np.full((2, n), -1)
    place[0, low], place[1, high] = np.arange(len(low)), len(low) + np.arange(len(high))
    parts = [(part[row.row], part[row.row] >= 0) for part in place]
    taken = np.concatenate([kept for _, kept in parts])
    entries = [np.tile(part, 2)[taken] for part in (row.group, row.measure, row.number)]
    m, (endless, upper) = (
        len(low) + len(high),
        (np.full(n, math.inf), row.upper - float(row.width or 0.0) * row.d_upper),
    )
    return replace(
        row,
        row=np.concatenate([part[kept] for part, kept in parts]),
        group=entries[0],
        measure=entries[1],
        number=entries[2],
        lower=np.append(row.lower[low], -endless[high]),
        upper=np.append(endless[low], upper[high]),
        over_level=None if row.over_level is None else np.append(row.over_level[low], row.over_level[high]),
        d_upper=np.repeat([0.0, 1.0], [len(low), m - len(low)]) * row.d_upper,
    )


class _Entries:
    """What stands in the rows of requirements, table by table."""

    def __init__(self, row: Codes, group: Codes, measure: Codes, number: Floats, program: Program) -> None:
        shape, seen = program.constants.shape, program.sees_group
        self.shape, self.where, self.number, self.n_blocks = (
            shape,
            (row, group, measure),
            number,
            len(program.blocks),
        )
        n_tables, width = (shape[0], shape[1]) if seen else (1, shape[0] * shape[1])
        # In front of those of every table a 1 for the row in which the shares of a block sum to 1.
        each = np.arange(n_tables)
        table = np.append(each, group if seen else np.zeros(len(row), dtype=np.intp))
        rows = np.append(np.full(n_tables, -1), row)
        order = np.lexsort((rows, table))
        self.rows, table = rows[order], table[order]
        # Of the means of a policy with a 1 behind them, which one is multiplied, and by what.
        column = measure if seen else group * shape[1] + measure
        self.column = np.append(np.full(n_tables, width), column)[order]
        self.factor = np.append(np.ones(n_tables), number)[order]
        self.begins = np.searchsorted(table, np.arange(n_tables + 1))
        self.first = np.append(True, (np.diff(self.rows) != 0) | (np.diff(table) != 0))

    def columns(self, block: Codes, table: Codes, means: Floats) -> tuple[Codes, Codes, Floats]:
        """Columns of policies of some blocks, which add ``means``: how many numbers each has, their rows and these."""
        begin, counts = self.begins[table], np.diff(self.begins)[table]
        policy = np.repeat(np.arange(len(table)), counts)
        entry = np.arange(len(policy)) + np.repeat(begin - counts.cumsum() + counts, counts)
        means = np.column_stack([means, np.ones(len(means))])
        starts = np.flatnonzero(self.first[entry])
        numbers = np.add.reduceat(self.factor[entry] * means[policy, self.column[entry]], starts)
        rows, policy = self.rows[entry[starts]], policy[starts]
        rows = np.where(rows < 0, block[policy], self.n_blocks + rows)
        return np.bincount(policy, minlength=len(table)), rows, numbers

    def weighed(self, duals: Floats) -> Floats:
        """What the duals of the rows make of every group's scaled mean."""
        row, group, measure = self.where
        size = self.shape[0] * self.shape[1]
        weighed = np.bincount(group * self.shape[1] + measure, duals[row] * self.number, size)
        return np.asarray(weighed.reshape(self.shape))
