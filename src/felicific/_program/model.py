r"""The one linear program: scaled sums, the rows of a model, and the way back from an answer.

.. math::
    \min_q \frac{1}{W} \sum_{zsd} \mathrm{loss}_{zsd} q_{zsd}
    \quad \text{s.t.} \quad q \ge 0, \; \sum_d q_{zsd} = 1, \;
    \mathrm{lo}_j \le \mathrm{mean}_{zj}(q) \le \mathrm{lo}_j + \varepsilon_j

with :math:`\mathrm{mean}_{zj}(q) = \sum_{sd} \mathrm{value}_{zsdj} q_{zsd} / \sum_s \mathrm{among}_{zsj}` and a free
level :math:`\mathrm{lo}_j` per measure, so that rows grow with the groups and not with their pairs. These are a
gap's rows; every requirement writes its own (:mod:`felicific._problem.requirements`).

Scaling decides whether the answer is right. Per (z, s) the value at a reference decision moves to the
right-hand side; a measure's rows are divided by its largest coefficient; costs are regrets scaled to one.
What comes back is evaluated again from q in the user's units, and an answer that fails that check raises.

Further rows keep a decision's probability from falling as the score rises, and a policy that may not see the
group has one set of columns for all groups. :mod:`felicific._program.highs` solves the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from felicific._capacity import check_room
from felicific._problem.exploration import chances_in, refuse_chances
from felicific._problem.rows import Chance, ModelRow, Row
from felicific._program.aggregates import Aggregates
from felicific._program.chances import cells_of, floors_in, lifted
from felicific._program.change_cost import ChangeCost, changed_by, charged_losses
from felicific._program.corners import Corners
from felicific._typing import Codes, Floats, Truths

if TYPE_CHECKING:
    from felicific._program.highs import Answer

#: Primal and dual tolerance of the solver, and of the check of its answer, relative to the scaled rows.
TOLERANCE = 1e-9

#: A dual above this says that something binds; regrets are scaled to 1.
TIE = 1e-9

#: A coefficient below this is nothing but rounding.
SMALL = 1e-12

#: Numbers in memory for each that the program is made of, while it is written and solved; measured.
SOLVED = 8.0

#: Rounding error of a sum, relative to the sum of its terms' sizes.
ROUNDING = 1e-13


@dataclass(frozen=True)
class Program:
    """The scaled program, together with what undoes the scaling.

    Columns are ``q`` of the occupied cells (cell by cell, decision by decision), then the free levels that the
    requirements need, then the excess that the elastic program minimises. There is a table of cells for every group,
    or one for all when the policy does not see the group: ``occupied`` says where somebody is, and ``regret`` is what
    is minimised, of shape (tables, signals, decisions). ``loss`` sums the loss and what changed decisions cost. Where
    signals of few people are treated ``alike``, the aggregates hold their sums at the one that stands for them.
    ``changes`` is how far each column is from the baseline's decisions, where the signals do not tell.
    """

    aggregates: Aggregates
    rows: list[Row]
    loss: Floats
    occupied: Truths
    regret: Floats
    cost_scale: float
    least_loss: float
    coefficients: Floats
    constants: Floats
    scales: Floats
    sees_group: bool
    alike: Codes | None = None
    changes: Floats | None = None

    def value(self, q: Floats) -> float:
        """What is minimised: the loss, with what changed decisions cost."""
        return float(np.einsum("zsd,zsd->", self.loss, q)) / self.aggregates.total

    @cached_property
    def cell(self) -> Codes:
        """The position of a group's cell among the occupied ones, or -1, of shape (groups, signals)."""
        places = np.where(self.occupied, self.occupied.cumsum().reshape(self.occupied.shape) - 1, -1)
        return np.broadcast_to(places, self.aggregates.mass.shape)

    @cached_property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return int(np.count_nonzero(self.occupied))

    def columns(self, tables: Floats) -> Floats:
        """Numbers for the columns of occupied cells, from tables of them."""
        return np.asarray(tables[self.occupied].ravel())

    @cached_property
    def cost(self) -> Floats:
        """What every column costs."""
        return self.columns(self.regret)

    def charged(self, columns: Floats) -> float:
        """What the policy of some columns costs."""
        # Not by a product of vectors, which would wake threads that take longer than it.
        return float(np.einsum("i,i->", columns[: len(self.cost)], self.cost))

    @cached_property
    def corners(self) -> Corners | None:
        """What policies are mixtures of, if that can be listed.

        It cannot where several decisions each have a run along which they may not fall, nor where decisions get better
        step by step.
        """
        if (self.chains and not self.rises) or self.stairs:
            return None
        return Corners(self.occupied, self.regret.shape[2], bool(self.chains))

    @cached_property
    def corner_costs(self) -> Floats:
        """What each corner costs."""
        assert self.corners is not None, "they can be listed"
        return self.corners.each(self.regret)

    @cached_property
    def corner_changes(self) -> Floats:
        """How far each corner is from the baseline's decisions."""
        assert self.corners is not None, "they can be listed"
        if self.changes is not None:
            return self.corners.of_columns(self.changes)
        return self.corners.each(_changed_tables(self))

    def asking(self, rows: Sequence[Row]) -> Program:
        """The same with other rows, which nothing that was worked out already depends on."""
        found = replace(self, rows=list(rows))
        found.__dict__.update({name: part for name, part in vars(self).items() if name != "rows"})
        return found

    @cached_property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, measures)."""
        return self.aggregates.counted

    @cached_property
    def rounding(self) -> Floats:
        """Differences between group means that may be nothing but rounding, by measure."""
        return rounding_of(self.aggregates)

    @cached_property
    def swing(self) -> Floats:
        """The most by which decisions can move the mean of a group, by measure, not scaled."""
        return np.asarray(_largest(self.coefficients).sum(axis=1).max(axis=0) * self.scales)

    @cached_property
    def largest_loss(self) -> float:
        """The largest size of a cell's loss, with what changed decisions cost."""
        return max(float(self.loss.max()), -float(self.loss.min())) / self.aggregates.total

    @cached_property
    def empty(self) -> list[tuple[Codes, Codes, Codes]]:
        """Of every chain its empty cells, and their occupied neighbours below and above, or -1; by position."""
        found, n_signals = [], self.occupied.shape[1]
        for chain, _ in self.chains:
            held = np.zeros_like(self.occupied)
            held[:, chain.start : chain.stop] = self.occupied[:, chain.start : chain.stop]
            lacking, signal = self.lacking
            if len(chain) < n_signals:
                inside = (signal >= chain.start) & (signal < chain.stop)
                lacking, signal = lacking[inside], signal[inside]
            start, places = lacking - signal, np.append(np.flatnonzero(held), -1)
            after = held.ravel().cumsum().take(lacking)
            below, above = places[after - 1], places[after]
            below[below < start] = -1
            above[above >= start + n_signals] = -1
            found.append((lacking, below, above))
        return found

    @cached_property
    def held(self) -> Codes:
        """Positions of the occupied cells."""
        return np.flatnonzero(self.occupied)

    @cached_property
    def lacking(self) -> tuple[Codes, Codes]:
        """Positions and signals of the empty cells."""
        place = np.flatnonzero(~self.occupied)
        return place, place % self.occupied.shape[1]

    @cached_property
    def baseline(self) -> Floats:
        """The baseline's decision at every signal, as probabilities of shape (signals, D)."""
        n_decisions = self.aggregates.loss.shape[2]
        baseline = self.aggregates.signal.baseline(len(self.aggregates.classes))
        return np.asarray(np.arange(n_decisions) == baseline[:, None], dtype=np.float64)

    @cached_property
    def _climbs(self) -> bool:
        """Whether decisions that are listed may only get better along all signals, or along all the other way."""
        return self.aggregates.listed and self.aggregates.signal.climbs(len(self.aggregates.classes))

    @cached_property
    def chains(self) -> list[tuple[range, int]]:
        """Runs of signals along which the probability of a decision may not fall."""
        if not self.aggregates.listed:
            return self.aggregates.signal.chains(len(self.aggregates.classes))
        _, n_signals, n_decisions = self.aggregates.loss.shape
        return [(range(n_signals), 1)] if self._climbs and self.aggregates.rising and n_decisions == 2 else []

    @property
    def rises(self) -> bool:
        """Whether the second of two decisions may not fall along all signals: a policy then mixes thresholds."""
        _, n_signals, n_decisions = self.aggregates.loss.shape
        return n_decisions == 2 and self.chains == [(range(n_signals), 1)]

    @cached_property
    def stairs(self) -> bool:
        """Whether policies mix staircases, table by table.

        Of listed decisions, unless these are two whose thresholds can be listed. Where the signal asks for no order, a
        staircase may go up and down.
        """
        few = self.aggregates.loss.shape[2] == 2 and (self.rises or not self._climbs)
        return self.aggregates.listed and not few

    @property
    def steps(self) -> int:
        """Of staircases: 1 where decisions may only get better along the signals, -1 only worse, 0 anything."""
        return (1 if self.aggregates.rising else -1) if self._climbs else 0

    def mean(self, j: int, shares: Floats) -> tuple[Codes, Floats]:
        """Columns and scaled coefficients of a weighted mean, over groups, of measure ``j``."""
        groups = np.flatnonzero(shares)
        if len(groups) == 1:  # it has its own cells, one after the other, or all groups share them
            one = int(groups[0])
            own = shares[one] * self.coefficients[one, :, :, j]  # nothing where nobody is
            signal, which = np.nonzero(own)
            return self.cell[one][signal] * own.shape[1] + which, own[signal, which]
        per_cell = np.zeros((self.n_cells, self.aggregates.loss.shape[2]))
        for z in groups:
            occupied = self.cell[z] >= 0
            per_cell[self.cell[z][occupied]] += shares[z] * self.coefficients[z, occupied, :, j]
        numbers = per_cell.ravel()
        columns = np.flatnonzero(numbers)
        return columns, numbers[columns]

    def keeping(self, chance: Chance) -> Codes:
        """Columns of the probabilities that a chance speaks of, where somebody is.

        Of the second of two decisions that may not fall along all signals, the first cell of every table will do: no
        other probability is smaller; of the first decision, the last one.
        """
        held = self._held(chance) & (self.cell >= 0)
        if self.rises:
            place = np.arange(held.shape[1])
            ends = (
                np.where(held, place, len(place)).min(axis=1)
                if chance.decision
                else np.where(held, place, -1).max(axis=1)
            )
            held = held & (place == ends[:, None])
        cells = np.unique(self.cell[held])
        return np.asarray(cells * self.aggregates.loss.shape[2] + chance.decision)

    def _held(self, chance: Chance) -> Truths:
        return cells_of(
            chance, self.aggregates.signal, len(self.aggregates.loss), len(self.aggregates.classes)
        )

    def chances(self, chance: Chance, q: Floats) -> Floats:
        """The chances of people that a row speaks of."""
        return np.asarray(q[:, :, chance.decision][self._held(chance)])


def build(
    aggregates: Aggregates,
    rows: list[Row],
    *,
    sees_group: bool = True,
    scales: Floats | None = None,
    change_cost: ChangeCost = 0.0,
) -> Program:
    """Scale the aggregates into the coefficients of the program, with what changed decisions cost."""
    alike = aggregates.alike(sees_group)
    aggregates = aggregates if alike is None else aggregates.moved(alike)
    n_classes = aggregates.loss.shape[2]
    check_asked(aggregates, rows, sees_group=sees_group)
    mass, loss = aggregates.mass, charged_losses(aggregates, change_cost)
    charged = loss
    if not sees_group:
        mass, loss = mass.sum(axis=0, keepdims=True), loss.sum(axis=0, keepdims=True)
    # Of few decisions, one after the other is faster than along the last axis.
    each = np.moveaxis(loss, 2, 0)
    least = reduce(np.minimum, each)
    regret = np.empty(loss.shape)
    for d in range(n_classes):
        np.subtract(each[d], least, out=regret[:, :, d])
    cost_scale = float(regret.max())
    regret /= cost_scale if cost_scale > 0 else 1.0
    base = aggregates.value[:, :, -1]
    for d in range(n_classes - 2, -1, -1):  # the value at the first of the best decisions
        base = np.where((each[d] == least)[:, :, None], aggregates.value[:, :, d], base)
    counted = aggregates.divisor
    coefficients = np.empty(aggregates.value.shape)
    for d in range(n_classes):
        np.subtract(aggregates.value[:, :, d], base, out=coefficients[:, :, d])
    coefficients /= counted[:, None, None, :]
    level = base.sum(axis=1) / counted
    if scales is None:
        # Negative ones apart, so that nothing is copied.
        high, low = (found(axis=(0, 1, 2), initial=0.0) for found in (coefficients.max, coefficients.min))
        scales = np.maximum(high, -low)
    if not (scales > 0).all():
        # Where no decision matters, what is between the groups is all there is to measure by, or failing that its size.
        apart, noise = level.max(axis=0) - level.min(axis=0), rounding_of(aggregates)
        scales = np.where(scales > 0, scales, np.where(apart > noise, apart, noise / ROUNDING))
        scales[scales == 0.0] = 1.0
    coefficients /= scales
    return Program(
        aggregates=aggregates,
        rows=rows,
        loss=charged,
        occupied=mass > 0,
        regret=regret,
        cost_scale=cost_scale / aggregates.total,
        least_loss=float(least.sum()) / aggregates.total,
        coefficients=coefficients,
        constants=level / scales,
        scales=scales,
        sees_group=sees_group,
        alike=alike,
    )


def check_asked(aggregates: Aggregates, rows: Sequence[Row], *, sees_group: bool) -> None:
    """Refuse what no program can be written of."""
    n_groups, n_signals, n_classes = aggregates.loss.shape
    if any(row.chance is not None for row in rows):
        refuse_chances(chances_in(rows), n_groups, sees_group=sees_group)
    check_room(
        SOLVED * aggregates.value.size,
        "The linear program",
        f"{n_groups} groups x {n_signals:,} signals x {n_classes} decisions x {aggregates.value.shape[3]:,} measures",
        "Use fewer score bins, or policy='label', merge classes or groups, or ask for a criterion of "
        "fewer parts, such as 'statistical_parity' instead of 'equalized_odds'.",
    )


def rounding_of(aggregates: Aggregates) -> Floats:
    """Differences between group means that may be nothing but rounding, by measure."""
    size = _largest(aggregates.value).sum(axis=1) / aggregates.divisor
    return np.asarray(ROUNDING * size.max(axis=0))


def _largest(tables: Floats) -> Floats:
    """The size of the largest number of every cell, over all decisions, one after the other."""
    return reduce(np.maximum, (np.abs(tables[:, :, d]) for d in range(tables.shape[2])))


def changes_of(program: Program) -> Floats:
    """How far every column is from the baseline's decisions; at most 1.

    A change counts for as many people as it concerns, and the more, the further they are from where the baseline's
    decision turns into another: by the share of the group that lies between, where signals have an order.
    """
    return program.columns(_changed_tables(program)) if program.changes is None else program.changes


def _changed_tables(program: Program) -> Floats:
    aggregates = program.aggregates
    mass = aggregates.mass if program.sees_group else aggregates.mass.sum(axis=0, keepdims=True)
    n_classes = aggregates.loss.shape[2]
    if aggregates.listed:  # the signals do not tell, so by how many people each decision changes
        if aggregates.baseline_mass is None:
            return np.zeros((*mass.shape, n_classes))
        changed = changed_by(aggregates)
        changed = changed if program.sees_group else changed.sum(axis=0, keepdims=True)
        return np.asarray(changed / (changed.max(initial=0.0) or 1.0))
    baseline = aggregates.signal.baseline(n_classes)
    far = np.ones(mass.shape)
    for run in aggregates.signal.runs(n_classes):
        if len(run) < 2:
            continue
        here, part = baseline[run.start : run.stop], mass[:, run.start : run.stop]
        middle = part.cumsum(axis=1) - part / 2
        turns = np.flatnonzero(np.diff(here)) + 1
        edges = [part[:, :turn].sum(axis=1) for turn in turns] or [np.zeros(len(mass))]
        away = reduce(np.minimum, (np.abs(middle - edge[:, None]) for edge in edges))
        far[:, run.start : run.stop] = away / part.sum(axis=1, keepdims=True).clip(min=1e-300)
    far *= mass
    largest = float(far.max(initial=0.0)) if n_classes > 1 else 0.0
    far /= largest if largest > 0 else 1.0
    tables = np.zeros((*mass.shape, n_classes))
    for d in range(n_classes):
        np.multiply(far, baseline != d, out=tables[:, :, d])
    return tables


def policy_of(program: Program, columns: Floats) -> Floats:
    """The policy that columns of a program say; see :func:`policy_in`."""
    n_classes, tables = program.regret.shape[2], np.zeros_like(program.regret)
    solved = columns[: program.n_cells * n_classes].reshape(-1, n_classes).clip(min=0.0)
    solved[solved < 1e-12] = 0.0
    tables.reshape(-1, n_classes)[program.held] = solved / reduce(np.add, solved.T)[:, None]
    return policy_in(program, tables)


def policy_in(program: Program, q: Floats) -> Floats:
    """The policy of tables that are known where somebody is, and are filled here.

    An empty cell gets the baseline's decision, never an arbitrary vertex. Where people keep a chance, so does whoever
    will be in an empty cell.
    """
    n_groups, n_classes, labels = len(program.aggregates.loss), q.shape[2], len(program.aggregates.classes)
    if program.aggregates.listed:
        return _filled(program, q, labels)
    floors, (place, signal) = None, program.lacking
    baseline, flat = program.baseline, q.reshape(-1)
    if any(row.chance is not None for row in program.rows):
        floors = floors_in(program.rows, program.aggregates.signal, n_groups, labels, n_classes)
        baseline = (floors + (1.0 - floors.sum(axis=2, keepdims=True)) * baseline).reshape(-1, n_classes)
        signal = place
    for d in range(n_classes):
        flat[place * n_classes + d] = baseline[:, d].take(signal)
    for (_, decision), around in zip(program.chains, program.empty, strict=True):
        _keep_monotone(q, decision, *around)
    q = np.repeat(q, n_groups, axis=0) if len(q) < n_groups else q
    q = q if program.alike is None else np.take_along_axis(q, program.alike[:, :, None], axis=1)
    return np.asarray(q if floors is None else lifted(q, floors))


def _filled(program: Program, q: Floats, n_labels: int) -> Floats:
    """The policy of listed decisions: an empty cell gets what the baseline decides there, if signals tell that.

    Where that would break the order of the decisions, or signals do not tell, it gets what the nearest cell gets in
    which somebody is: of the group, or of all groups where the group has nobody.
    """
    aggregates, n_groups = program.aggregates, len(program.aggregates.loss)
    q = q if len(q) == n_groups else np.repeat(q, n_groups, axis=0)
    held = np.broadcast_to(program.occupied, aggregates.mass.shape)
    told = _told_by_signals(aggregates)
    if any(row.chance is not None for row in program.rows):
        told[:] = -1  # the baseline's decisions leave nobody a chance
    everybody = np.asarray(held.any(axis=0))
    for run in aggregates.signal.runs(n_labels):
        for z in range(n_groups):
            _fill_run(q, z, run, held, everybody, told, program.steps)
    q = q if program.alike is None else np.take_along_axis(q, program.alike[:, :, None], axis=1)
    if not any(row.chance is not None for row in program.rows):
        return np.asarray(q)
    return lifted(q, floors_in(program.rows, aggregates.signal, n_groups, n_labels, q.shape[2]))


def _told_by_signals(aggregates: Aggregates) -> Codes:
    """The baseline at every signal, -1 where nobody is; nowhere, if people of some signal are told apart."""
    none = np.full(aggregates.mass.shape[1], -1)
    if aggregates.baseline_mass is None:
        return none
    everybody = aggregates.baseline_mass.sum(axis=0)
    if ((everybody > 0).sum(axis=1) > 1).any():
        return none
    return np.where(everybody.any(axis=1), everybody.argmax(axis=1), none)


def _fill_run(
    q: Floats, z: int, run: range, held: Truths, everybody: Truths, told: Codes, steps: int
) -> None:
    """Fill the empty cells of one group along one run of signals."""
    own = np.flatnonzero(held[z, run.start : run.stop]) + run.start
    if len(own) == len(run):
        return
    places, whose = own, np.full(len(own), z)
    if not len(own):  # of every signal where somebody is, the first group that is there
        places = np.flatnonzero(everybody[run.start : run.stop]) + run.start
        whose = held[:, places].argmax(axis=0)
    for s in run:
        if held[z, s]:
            continue
        if len(places):
            at = int(np.abs(places - s).argmin())
            nearest = q[whose[at], places[at]]
        else:  # nobody is anywhere along the run: what most people get
            nearest = q[held].mean(axis=0)
            nearest = np.eye(len(nearest))[int(nearest.argmax())]
        after = int(np.searchsorted(own, s))
        before, then = q[z, s - 1 : s] if s > run.start else (), q[z, own[after : after + 1]]
        rows = [nearest] if told[s] < 0 else [np.eye(q.shape[2])[told[s]], nearest]
        fitting = [row for row in rows if _fits(row, before, then, steps)]
        q[z, s] = [*fitting, *before, nearest][0]


def _fits(row: Floats, before: Floats | tuple[()], then: Floats, steps: int) -> bool:
    """Whether a row keeps the order of the decisions beside its neighbours."""
    pairs = [*((one, row) for one in before), *((row, one) for one in then)]
    return all(_better(one, other, steps) for one, other in pairs)


def _better(one: Floats, other: Floats, steps: int) -> bool:
    """Whether what comes after is at least as good, or as bad, as what comes before; anything where steps are free."""
    above = steps * (np.cumsum(one) - np.cumsum(other))  # chances of at most each decision
    return steps == 0 or bool((above >= -TOLERANCE).all())


def _keep_monotone(q: Floats, decision: int, empty: Codes, below: Codes, above: Codes) -> None:
    """Where the baseline's decision of an empty cell would break the rule, take over the occupied neighbour's."""
    flat = q.reshape(-1, q.shape[2])
    own = flat[:, decision]
    here, less, more = (own[place] for place in (empty, below, above))
    for broken, near in (((below >= 0) & (here < less), below), ((above >= 0) & (here > more), above)):
        flat[empty[broken]] = flat[near[broken]]


def multipliers(program: Program, answer: Answer, unit: float) -> Floats:
    """Worth of one more unit of every group's mean, in ``unit`` times the objective of the model."""
    worth = np.zeros(program.constants.shape)
    model = answer.model
    for row, owner, dual in zip(model.written, model.owners, answer.duals.tolist(), strict=True):
        j = program.rows[owner].j if row.j is None else row.j
        worth[:, j] += dual * row.shares * unit / row.scale
    return worth


def prices_of(program: Program, answer: Answer) -> dict[str, float]:
    """Loss per unit of each requirement, from the duals of its rows."""
    prices: dict[str, float] = {}
    for position, asked in enumerate(program.rows):
        # Requirements that read alike share a price.
        prices[asked.name] = prices.get(asked.name, 0.0) + asked.price(*priced(program, answer, position))
    return prices


def priced(
    program: Program, answer: Answer, position: int
) -> tuple[list[ModelRow], list[float], Floats, float]:
    """What the price of a requirement is made of: its rows, their duals, its free columns, and the loss that is 1."""
    model, first = answer.model, answer.model.levels[position]
    own = [i for i, owner in enumerate(model.owners) if owner == position]
    levels = answer.columns[first : first + len(program.rows[position].levels)]
    return [model.written[i] for i in own], answer.duals[own].tolist(), levels, program.cost_scale
