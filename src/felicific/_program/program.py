r"""The one linear program: what decisions cost and do, and the best mixture of deterministic policies.

.. math::
    \min_q \frac{1}{W} \sum_{zsd} \mathrm{loss}_{zsd} q_{zsd}
    \quad \text{s.t.} \quad q \ge 0, \; \sum_d q_{zsd} = 1, \;
    \text{an order along the signals}, \; \text{rows over the means } m_{zj}(q)

with :math:`m_{zj}(q) = \sum_{sd} \mathrm{value}_{zsdj} q_{zsd} / \sum_s \mathrm{among}_{zsj}`. A policy that keeps the
order is a mixture of deterministic ones, table by table (a table for each group, or one for all where the group is not
seen). A column of the master program is one of these: what it costs and what it adds to each mean, and nothing else, so
that columns serve whatever rows. At the duals y of the master's answer every signal and decision has the price

.. math:: \mathrm{cost}_{zsd} - \sum_i y_i \, \mathrm{number}_{izj} \, \mathrm{value}_{zsdj} / \mathrm{counted}_{zj}

and the cheapest policy at these prices (:class:`felicific._program.order.Order`) joins the master, until none improves
on it.

Scaling decides whether the answer is right. Per group and signal the value at a reference decision moves to the
right-hand side; rows are divided by the most by which decisions move their means; costs are regrets scaled to one. What
comes back is evaluated again from q in the user's units, and an answer that fails that check raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from felicific._capacity import check_room
from felicific._problem.exploration import Chance, refuse_chances
from felicific._problem.linear import Linear
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, changed_by, charged_losses
from felicific._program.highs import TOLERANCE, new_solver, run
from felicific._program.hulls import Corners
from felicific._program.lotteries import Lotteries, lotteries_of
from felicific._program.order import Empty, Order
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import SolverError

#: What a change of the baseline's decision costs at most where policies are equally good, in units of the program.
TIE = 1e-7

#: Numbers in memory for each that the program is made of, while it is written and solved; measured.
SOLVED = 8.0

#: Rounding error of a sum, relative to the sum of its terms' sizes.
ROUNDING = 1e-13

#: A share of a policy that is none.
NONE = 1e-12

#: How often the cheapest policy is looked for.
ROUNDS = 5_000

#: How many policies are summed together.
BLOCK = 256


@dataclass(eq=False)
class Pool:
    """Deterministic policies of single tables that were found: their decisions, cost, changes and scaled means."""

    table: list[int] = field(default_factory=list)
    chosen: list[Codes] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)
    means: list[Floats] = field(default_factory=list)
    keys: set[tuple[int, bytes | int]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.table)

    def copy(self) -> Pool:
        """The same policies, to which others can be added."""
        return Pool(*(copy(getattr(self, part.name)) for part in fields(self)))


@dataclass(frozen=True, eq=False)
class Program:
    """The scaled program, together with what undoes the scaling.

    Attributes
    ----------
    aggregates : Aggregates
        Where signals of few people are treated ``alike``, with their sums at the one that stands for them.
    loss : array of shape (groups, signals, decisions)
        Sums of the loss and what changed decisions cost.
    occupied : array of shape (tables, signals)
        Where somebody is.
    regret : array of shape (tables, signals, decisions)
        What is minimised, scaled by ``cost_scale``.
    coefficients, constants : arrays of shape (groups, signals, decisions, measures) and (groups, measures)
        Group means, divided by ``scales``: what decisions add to them, and the rest.
    lotteries : Lotteries, or None
        What a signal chooses from where people keep chances.
    given_changes : array of shape (tables, signals, decisions), or None
        How far decisions are from the baseline's, where the signals do not tell.
    """

    aggregates: Aggregates
    loss: Floats
    occupied: Truths
    regret: Floats
    cost_scale: float
    least_loss: float
    coefficients: Floats
    constants: Floats
    scales: Floats
    sees_group: bool
    order: Order
    alike: Codes | None = None
    lotteries: Lotteries | None = None
    given_changes: Floats | None = None
    pool: Pool = field(default_factory=Pool)

    @classmethod
    def of(
        cls,
        aggregates: Aggregates,
        *,
        sees_group: bool = True,
        change_cost: ChangeCost = 0.0,
        chances: Sequence[Chance] = (),
        scales: Floats | None = None,
        changes: Floats | None = None,
    ) -> Program:
        """Scale aggregates into the coefficients of the program, with what changed decisions cost."""
        alike = aggregates.alike(sees_group)
        aggregates = aggregates if alike is None else aggregates.moved(alike)
        n_decisions = aggregates.loss.shape[2]
        check_size(aggregates)
        refuse_chances(chances, len(aggregates.groups), sees_group=sees_group)
        mass, loss = aggregates.mass, charged_losses(aggregates, change_cost)
        charged = loss
        if not sees_group:
            mass, loss = mass.sum(axis=0, keepdims=True), loss.sum(axis=0, keepdims=True)
        # Of few decisions, one after the other is faster than along the last axis.
        each = np.moveaxis(loss, 2, 0)
        least = reduce(np.minimum, each)
        regret = np.empty(loss.shape)
        for d in range(n_decisions):
            np.subtract(each[d], least, out=regret[:, :, d])
        cost_scale = float(regret.max())
        regret /= cost_scale if cost_scale > 0 else 1.0
        base = aggregates.value[:, :, -1]
        for d in range(n_decisions - 2, -1, -1):  # the value at the first of the best decisions
            base = np.where((each[d] == least)[:, :, None], aggregates.value[:, :, d], base)
        counted = aggregates.divisor
        coefficients = np.empty(aggregates.value.shape)
        for d in range(n_decisions):
            np.subtract(aggregates.value[:, :, d], base, out=coefficients[:, :, d])
        coefficients /= counted[:, None, None, :]
        level = base.sum(axis=1) / counted
        if scales is None:
            # Negative ones apart, so that nothing is copied.
            high, low = (most(axis=(0, 1, 2), initial=0.0) for most in (coefficients.max, coefficients.min))
            scales = np.maximum(high, -low)
        if not (scales > 0).all():
            # Where no decision matters, what is between the groups is all there is to measure by, or its size.
            apart, noise = level.max(axis=0) - level.min(axis=0), rounding_of(aggregates)
            scales = np.where(scales > 0, scales, np.where(apart > noise, apart, noise / ROUNDING))
            scales[scales == 0.0] = 1.0
        coefficients /= scales
        order = Order.of(aggregates)
        return cls(
            aggregates=aggregates,
            loss=charged,
            occupied=mass > 0,
            regret=regret,
            cost_scale=cost_scale / aggregates.total,
            least_loss=float(least.sum()) / aggregates.total,
            coefficients=coefficients,
            constants=level / scales,
            scales=scales,
            sees_group=sees_group,
            order=order,
            alike=alike,
            lotteries=lotteries_of(chances, aggregates, order, sees_group=sees_group),
            given_changes=changes,
        )

    def branch(self) -> Program:
        """The same with a pool of its own, which begins as this one is."""
        branch = object.__new__(Program)
        vars(branch).update(vars(self), pool=self.pool.copy())
        return branch

    def __getstate__(self) -> dict[str, Any]:
        return {
            part.name: getattr(self, part.name) for part in fields(self)
        }  # not what was worked out on the way

    def value(self, q: Floats) -> float:
        """What is minimised: the loss, with what changed decisions cost."""
        return float(np.einsum("zsd,zsd->", self.loss, q)) / self.aggregates.total

    @cached_property
    def rounding(self) -> Floats:
        """Differences between group means that may be nothing but rounding, by measure."""
        return rounding_of(self.aggregates)

    @cached_property
    def swing(self) -> Floats:
        """The most by which decisions can move the mean of a group, by measure, not scaled.

        Of a measure that no decision changes, what means are divided by.
        """
        swing = _largest(self.coefficients).sum(axis=1).max(axis=0)
        return np.asarray(np.where(swing > 0, swing, 1.0) * self.scales)

    @property
    def spread(self) -> float:
        """How far apart decisions can leave the loss."""
        return float(self.regret.max(axis=2)[self.occupied].sum()) * self.cost_scale

    @cached_property
    def largest_loss(self) -> float:
        """The largest size of a signal's loss, with what changed decisions cost."""
        return max(float(self.loss.max()), -float(self.loss.min())) / self.aggregates.total

    @cached_property
    def slack(self) -> float:
        """By how much something may seem to be out of reach by rounding alone, scaled."""
        apart = np.abs(self.constants - self.constants.mean(axis=0)).max(initial=0.0)
        return max(TOLERANCE, 1e-14 * max(1.0, float(apart)))

    @cached_property
    def changes(self) -> Floats:
        """How far every decision is from the baseline's, of shape (tables, signals, decisions); at most 1.

        A change counts for as many people as it concerns, and the more, the further they are from where the baseline's
        decision turns into another: by the share of the group that lies between, where signals have an order.
        """
        if self.given_changes is not None:
            return self.given_changes
        aggregates = self.aggregates
        mass = aggregates.mass if self.sees_group else aggregates.mass.sum(axis=0, keepdims=True)
        n_decisions = aggregates.loss.shape[2]
        if aggregates.listed:  # the signals do not tell, so by how many people each decision changes
            if aggregates.baseline_mass is None:
                return np.zeros((*mass.shape, n_decisions))
            changed = changed_by(aggregates)
            changed = changed if self.sees_group else changed.sum(axis=0, keepdims=True)
            return np.asarray(changed / (changed.max(initial=0.0) or 1.0))
        baseline = aggregates.signal.baseline(n_decisions)
        far = np.ones(mass.shape)
        for chain in aggregates.signal.runs(n_decisions):
            if len(chain) < 2:
                continue
            here, part = baseline[chain.start : chain.stop], mass[:, chain.start : chain.stop]
            middle = part.cumsum(axis=1) - part / 2
            turns = np.flatnonzero(np.diff(here)) + 1
            edges = [part[:, :turn].sum(axis=1) for turn in turns] or [np.zeros(len(mass))]
            away = reduce(np.minimum, (np.abs(middle - edge[:, None]) for edge in edges))
            far[:, chain.start : chain.stop] = away / part.sum(axis=1, keepdims=True).clip(min=1e-300)
        far *= mass
        largest = float(far.max(initial=0.0)) if n_decisions > 1 else 0.0
        far /= largest if largest > 0 else 1.0
        return np.asarray(far[:, :, None] * (baseline[:, None] != np.arange(n_decisions)))

    @cached_property
    def empty(self) -> list[Empty]:
        """The signals at which nobody is."""
        return self.order.empty(self.occupied)

    @cached_property
    def baseline(self) -> Codes:
        """The baseline's decision at every signal; -1 where signals do not tell it."""
        aggregates = self.aggregates
        if not aggregates.listed:
            return aggregates.signal.baseline(aggregates.loss.shape[2])
        if aggregates.baseline_mass is None:
            return np.full(aggregates.mass.shape[1], -1)
        everybody = aggregates.baseline_mass.sum(axis=0)
        if ((everybody > 0).sum(axis=1) > 1).any():
            return np.full(len(everybody), -1)
        return np.where(everybody.any(axis=1), everybody.argmax(axis=1), -1)

    # -----------------------------------------------------------------------------------------------------
    # What signals choose from: decisions, or the lotteries that keep everybody's chances

    @cached_property
    def choice_order(self) -> Order:
        """The order of what signals choose from."""
        return self.order if self.lotteries is None else self.lotteries.order

    @cached_property
    def choice_costs(self) -> Floats:
        """What each choice costs, of shape (tables, signals, choices)."""
        return self.regret if self.lotteries is None else self.lotteries.of(self.regret)

    @cached_property
    def choice_changes(self) -> Floats:
        """How far each choice is from the baseline's decisions."""
        return self.changes if self.lotteries is None else self.lotteries.of(self.changes)

    @cached_property
    def choice_means(self) -> Floats:
        """What each choice adds to the scaled means, of shape (groups, signals, choices, measures)."""
        return self.coefficients if self.lotteries is None else self.lotteries.of(self.coefficients)

    def cheapest(self, price: Floats) -> tuple[Codes, Floats]:
        """The cheapest choices of every table that are allowed, and what they cost."""
        return self.choice_order.cheapest(price if self.lotteries is None else self.lotteries.allowing(price))

    @cached_property
    def corners(self) -> Corners | None:
        """What policies are mixtures of, where that can be listed: thresholds, or single signals that choose freely."""
        order, n_choices = self.choice_order, self.choice_costs.shape[2]
        if not (order.is_threshold or order.is_free) or (
            self.lotteries and self.lotteries.allowed is not None
        ):
            return None
        return Corners(self.occupied, n_choices, order.is_threshold)

    @cached_property
    def corner_costs(self) -> Floats:
        """What each corner costs."""
        assert self.corners is not None, "they can be listed"
        return self.corners.each(self.choice_costs)

    @cached_property
    def corner_changes(self) -> Floats:
        """How far each corner is from the baseline's decisions."""
        assert self.corners is not None, "they can be listed"
        return self.corners.each(self.choice_changes)

    @cached_property
    def corner_means(self) -> Floats:
        """What each threshold adds to the scaled means, of shape (groups, thresholds, measures)."""
        assert self.corners is not None, "they can be listed"
        return np.stack([self.corners.each(part) for part in np.moveaxis(self.choice_means, 3, 0)], axis=2)

    def keeping(self, chances: Sequence[Chance]) -> Program:
        """The same where people keep these chances."""
        lotteries = lotteries_of(chances, self.aggregates, self.order, sees_group=self.sees_group)
        return replace(self, lotteries=lotteries, pool=Pool())

    def take(self, chosen: Codes, tables: Iterable[int]) -> list[int]:
        """Take deterministic policies of some tables into the pool; the positions of those that are new.

        ``chosen`` has the shape (tables, signals), or (policies, tables, signals) for several of them.
        """
        pool, corners = self.pool, self.corners if self.choice_order.is_threshold else None
        every = chosen.reshape(-1, *chosen.shape[-2:]).astype(np.int16)
        where = None if corners is None else (every == 0).sum(axis=2)
        fresh = []
        for t in tables:
            for k in range(len(every)):
                key = (t, every[k, t].tobytes() if where is None else int(where[k, t]))
                if key not in pool.keys:
                    pool.keys.add(key)
                    fresh.append((k, t))
        if not fresh:
            return []
        which, table = np.array(fresh).T
        policies, first = every[which, table], len(pool)
        if where is None:
            parts = [
                self._sums(policies[i : i + BLOCK], table[i : i + BLOCK]) for i in range(0, len(fresh), BLOCK)
            ]
            cost, change, means = (np.concatenate(part) for part in zip(*parts, strict=True))
        else:
            corner = where[which, table]
            cost, change = self.corner_costs[table, corner], self.corner_changes[table, corner]
            means = (
                self.corner_means[table, corner]
                if self.sees_group
                else self.corner_means[:, corner].swapaxes(0, 1)
            )
        pool.cost += cost.tolist()
        pool.change += change.tolist()
        pool.means += list(means.reshape(len(fresh), -1))
        pool.table += table.tolist()
        pool.chosen += list(policies)
        return list(range(first, len(pool)))

    def _sums(self, policies: Codes, table: Codes) -> tuple[Floats, Floats, Floats]:
        """What some policies of tables cost, change, and add to the scaled means."""
        at = table[:, None], np.arange(policies.shape[1]), policies.astype(np.intp)
        if self.sees_group:
            means = self.choice_means[at].sum(axis=1)
        else:
            means = self.choice_means[:, at[1], at[2]].sum(axis=2)
            means = np.moveaxis(means, 1, 0)
        return self.choice_costs[at].sum(axis=1), self.choice_changes[at].sum(axis=1), means

    def start(self) -> None:
        """Take in the constant choices, the cheapest policy, and some thresholds, which spare many rounds."""
        if len(self.pool):
            return
        n_tables, n_signals, n_choices = shape = self.choice_costs.shape
        if self.lotteries is None or self.lotteries.allowed is None:
            begin = [np.full((n_tables, n_signals), choice) for choice in range(n_choices)]
        else:  # as far as each is allowed
            apart = [np.broadcast_to(np.arange(n_choices) != choice, shape) for choice in range(n_choices)]
            begin = [self.cheapest(1.0 * one)[0] for one in apart]
        if self.choice_order.is_threshold and self.lotteries is None:
            even = np.linspace(0, n_signals, 17).astype(np.intp)[1:-1]
            begin += [np.tile(np.arange(n_signals) >= k, (n_tables, 1)).astype(np.intp) for k in even]
        self.take(np.stack([*begin, self.cheapest(self.choice_costs)[0]]), range(n_tables))

    def shares(self, places: Sequence[int], values: Floats) -> list[tuple[int, float]]:
        """How much of each policy in the pool is followed; of every table they sum to 1."""
        table = np.array(self.pool.table)[places]
        values = np.where(values > NONE, values, 0.0)
        values = values / np.bincount(table, values)[table]
        return [(places[i], float(values[i])) for i in np.flatnonzero(values).tolist()]

    def mixed(self, shares: Sequence[tuple[int, float]]) -> Floats:
        """What signals choose by so much of each policy in the pool, of shape (tables, signals, choices)."""
        mixed: Floats = np.zeros(self.choice_costs.shape)
        signal = np.arange(self.choice_costs.shape[1])
        for i, share in shares:
            mixed[self.pool.table[i], signal, self.pool.chosen[i]] += share
        return np.asarray(mixed / mixed.sum(axis=2, keepdims=True))

    def policy(self, mixed: Floats) -> Floats:
        """The policy for all groups and signals, from what signals choose where somebody is."""
        n_groups = len(self.aggregates.groups)
        if self.lotteries is None:
            q = self.order.filled(mixed, self.empty, self.baseline)
        else:
            q = self.lotteries.decided(mixed, self.empty, self.baseline)
        q = np.repeat(q, n_groups, axis=0) if len(q) < n_groups else q
        return np.asarray(q if self.alike is None else np.take_along_axis(q, self.alike[:, :, None], axis=1))

    # -----------------------------------------------------------------------------------------------------
    # Answers

    def solve(self, rows: Sequence[Linear], *, nearest: bool = True) -> Answer | None:
        """The policy of least loss that meets all rows, or None if there is none.

        Of equally good ones the ``nearest`` to the baseline's decisions.
        """
        master = Master(self, rows)
        return master.answer(nearest=nearest) if master.run() else None

    def meets(self, rows: Sequence[Linear]) -> bool:
        """Whether some policy meets all rows."""
        return Master(self, rows).run(0.0)

    def missed(self, rows: Sequence[Linear]) -> tuple[float, Floats]:
        """How much every policy misses the rows by, scaled and added up, and what group means are worth for it."""
        master = Master(self, rows)
        return (0.0, np.zeros_like(self.constants)) if master.run(0.0) else (master.missed, master.worth(1.0))


def check_size(aggregates: Aggregates) -> None:
    """Refuse a program that has no room."""
    n_groups, n_signals, n_decisions = aggregates.loss.shape
    check_room(
        SOLVED * aggregates.value.size,
        "The linear program",
        f"{n_groups} groups x {n_signals:,} signals x {n_decisions} decisions x {aggregates.value.shape[3]:,} measures",
        "Use fewer score bins, or policy='label', merge classes or groups, or ask for a criterion of "
        "fewer parts, such as 'statistical_parity' instead of 'equalized_odds'.",
    )


def rounding_of(aggregates: Aggregates) -> Floats:
    """Differences between group means that may be nothing but rounding, by measure."""
    size = _largest(aggregates.value).sum(axis=1) / aggregates.divisor
    return np.asarray(ROUNDING * size.max(axis=0))


def _largest(tables: Floats) -> Floats:
    """The size of the largest number of every signal, over all decisions, one after the other."""
    return reduce(np.maximum, (np.abs(tables[:, :, d]) for d in range(tables.shape[2])))


@dataclass(frozen=True)
class Answer:
    """What a master program answers.

    Attributes
    ----------
    program : Program
        Whose policies are mixed.
    shares : list of (int, float)
        How much of each policy in its pool is followed.
    duals : list of arrays
        Of the rows of each requirement: the loss for one more unit of its side.
    levels : list of float
        The free level of each requirement, 0 without one.
    worth : array of shape (groups, measures)
        What one more unit of every group's mean is worth.
    width : float
        How far along its ray the policy is.
    """

    program: Program = field(repr=False)
    shares: list[tuple[int, float]] = field(repr=False)
    duals: list[Floats]
    levels: list[float]
    worth: Floats
    width: float = 0.0

    @property
    def objective(self) -> float:
        """What the policy costs, in units of the program."""
        return sum(share * self.program.pool.cost[i] for i, share in self.shares)

    @property
    def value(self) -> float:
        """What is minimised: the loss, with what changed decisions cost."""
        return self.program.least_loss + self.objective * self.program.cost_scale

    @cached_property
    def means(self) -> Floats:
        """Group means, relative to their origins."""
        program = self.program
        moved = np.zeros_like(program.constants)
        for i, share in self.shares:
            whose = program.pool.table[i] if program.sees_group else slice(None)
            moved[whose] += share * program.pool.means[i].reshape(moved[whose].shape)
        return np.asarray((program.constants + moved) * program.scales)

    @cached_property
    def mixed(self) -> Floats:
        """What signals choose, of shape (tables, signals, choices)."""
        return self.program.mixed(self.shares)

    @cached_property
    def q(self) -> Floats:
        """Probability of every decision, of shape (groups, signals, decisions)."""
        return self.program.policy(self.mixed)


class Master:
    """Mixtures of the deterministic policies in a program's pool, under the rows of some requirements.

    ``on_ray``: a column multiplies the widths of the rows that move, all together.
    """

    def __init__(self, program: Program, rows: Sequence[Linear], *, on_ray: bool = False) -> None:
        program.start()
        self.program, self.on_ray, self.missed = program, on_ray, 0.0
        self.n_tables = len(program.occupied)
        moving = [on_ray and row.width is not None for row in rows]
        self.rows = [_one_sided(row) if moves else row for row, moves in zip(rows, moving, strict=True)]
        lengths = [len(row.lower) for row in self.rows]
        first = np.cumsum([0, *lengths])
        self.n_rows, self.owner = int(first[-1]), np.repeat(np.arange(len(rows)), lengths)
        self._scale(first)
        self.ray: int | None = None
        self.unit = 1.0
        self._write(moving)
        self.columns: list[int] = []  # of policies in the pool, and their places in it
        self.places: list[int] = []
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
            program.constants.shape,
            program.sees_group,
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
        """Hand rows, levels and the ray to the solver: tables' shares sum to 1, then the rows of requirements."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_row_ = self.n_tables + self.n_rows
        lp.row_lower_ = np.append(np.ones(self.n_tables), self.lower)
        lp.row_upper_ = np.append(np.ones(self.n_tables), self.upper)
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
                0.0, least, math.inf, len(own), (self.n_tables + own).astype(np.int32), numbers
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
                0.0, 0.0, math.inf, len(own), (self.n_tables + own).astype(np.int32), numbers[own] * self.unit
            )

    def _add(self, positions: Sequence[int]) -> None:
        """Add policies of the pool as columns, those of a table together."""
        pool, before = self.program.pool, self.solver.getNumCol()
        if not len(positions):
            return
        sizes, rows, numbers = self.entries.columns(
            np.array([pool.table[i] for i in positions]), np.array([pool.means[i] for i in positions])
        )
        n, starts = len(positions), np.append(0, sizes[:-1].cumsum())
        entries = len(rows), starts.astype(np.int32), rows.astype(np.int32), numbers
        self.solver.addCols(n, np.zeros(n), np.zeros(n), np.full(n, math.inf), *entries)
        self.columns += range(before, before + n)
        self.places += positions

    def _charge(self, loss: float, change: float) -> None:
        """Charge policies so much for their loss, and for their changes."""
        pool, places = self.program.pool, self.places
        cost = loss * np.array(pool.cost)[places] + change * np.array(pool.change)[places]
        self.solver.changeColsCost(len(cost), np.array(self.columns, dtype=np.int32), cost)

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
            where = self.n_tables + np.tile(np.arange(self.n_rows), 2)
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
        """Add the cheapest policy of every table at the prices of the answer until none improves on it."""
        program = self.program
        for _ in range(ROUNDS):
            duals = np.array(self.solver.getSolution().row_dual)
            chosen, cost = program.cheapest(self._prices(duals, loss, change))
            better = np.flatnonzero(cost - duals[: self.n_tables] < -TOLERANCE)
            fresh = program.take(chosen, better.tolist())
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
        worth = np.einsum("zscj,zj->zsc", program.choice_means, self.entries.weighed(duals[self.n_tables :]))
        charged = loss * program.choice_costs
        charged = charged + change * program.choice_changes if change else charged
        return np.asarray(charged - (worth if program.sees_group else worth.sum(axis=0, keepdims=True)))

    def worth(self, unit: float) -> Floats:
        """What one more unit of every group's mean is worth, in ``unit`` times the objective."""
        duals = np.array(self.solver.getSolution().row_dual)[self.n_tables :]
        return np.asarray(self.entries.weighed(duals) * unit / self.program.scales)

    def answer(self, *, nearest: bool = True) -> Answer:
        """What was found; of equally good policies the ``nearest`` to the baseline's decisions."""
        program, solution = self.program, self.solver.getSolution()
        duals = np.array(solution.row_dual)
        values, unit = np.array(solution.col_value), program.cost_scale
        of_rows = duals[self.n_tables :] * unit / self.size
        worth = self.worth(unit)
        levels = [
            values[self.levels[k][0]] * self.levels[k][1] + self.centre[k] if k in self.levels else 0.0
            for k in range(len(self.rows))
        ]
        width = 0.0 if self.ray is None else float(values[self.ray]) * self.unit
        if nearest and program.choice_changes.any():
            self.run(1.0, TIE)
            values = np.array(self.solver.getSolution().col_value)
        return Answer(
            program=program,
            shares=program.shares(self.places, values[self.columns]),
            duals=[of_rows[self.owner == k] for k in range(len(self.rows))],
            levels=levels,
            worth=worth,
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
    """What stands in the rows, table by table: the rows of requirements stand below those in which shares sum to 1."""

    def __init__(
        self,
        row: Codes,
        group: Codes,
        measure: Codes,
        number: Floats,
        shape: tuple[int, ...],
        sees_group: bool,
    ) -> None:
        self.shape, self.where, self.number = shape, (row, group, measure), number
        n_tables, width = (shape[0], shape[1]) if sees_group else (1, shape[0] * shape[1])
        each = np.arange(n_tables)
        table = np.append(each, group if sees_group else np.zeros(len(row), dtype=np.intp))
        rows = np.append(each, row + n_tables)
        order = np.lexsort((rows, table))
        self.rows, table = rows[order], table[order]
        # Of the means of a table with a 1 behind them, which one is multiplied, and by what.
        column = measure if sees_group else group * shape[1] + measure
        self.column = np.append(np.full(n_tables, width), column)[order]
        self.factor = np.append(np.ones(n_tables), number)[order]
        self.begins = np.searchsorted(table, np.arange(n_tables + 1))
        self.first = np.append(True, (np.diff(self.rows) != 0) | (np.diff(table) != 0))

    def columns(self, table: Codes, means: Floats) -> tuple[Codes, Codes, Floats]:
        """Columns of policies of some tables, which add ``means``: how many numbers each has, their rows and these."""
        begin, counts = self.begins[table], np.diff(self.begins)[table]
        policy = np.repeat(np.arange(len(table)), counts)
        entry = np.arange(len(policy)) + np.repeat(begin - counts.cumsum() + counts, counts)
        means = np.column_stack([means, np.ones(len(means))])
        starts = np.flatnonzero(self.first[entry])
        numbers = np.add.reduceat(self.factor[entry] * means[policy, self.column[entry]], starts)
        return np.bincount(policy[starts], minlength=len(table)), self.rows[entry[starts]], numbers

    def weighed(self, duals: Floats) -> Floats:
        """What the duals of the rows make of every group's scaled mean."""
        row, group, measure = self.where
        size = self.shape[0] * self.shape[1]
        weighed = np.bincount(group * self.shape[1] + measure, duals[row] * self.number, size)
        return np.asarray(weighed.reshape(self.shape))
