r"""Levels: bins of the prediction, where amounts have to be tried one by one.

Where happiness is no straight line of the amount, the loss is not the squared error or the amounts are listed, the
program is that of listed decisions (:mod:`felicific._program.staircases`), with levels for decisions:

.. math:: \min_q \sum_{zsd} c_{zsd} q_{zsd} \quad \text{s.t.} \quad \text{every requirement}, \quad
    \text{the share above every level does not fall along the cells of a group}

A cell that mixes levels becomes their mean, where a mean costs no more and is worth as much; else its people draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._amounts.cells import Cells
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._amounts.shapes import Ranks
from felicific._amounts.solve import SolvedLines
from felicific._capacity import check_room
from felicific._people.evaluate import loss_of_amounts, worth_of_amounts
from felicific._people.user_functions import Batch
from felicific._policy.lines import Atom, Line
from felicific._program.aggregates import Aggregates
from felicific._program.cell_sums import CellSums
from felicific._program.signals import Signal
from felicific._program.solution import solve_program
from felicific._typing import Codes, Floats

#: Levels that are tried where groups share their cells.
SHARED_LEVELS = 33

#: A chance of a level that is none.
NEVER = 1e-9


@dataclass(frozen=True)
class CellSignal(Signal):
    """Cells of the prediction, along which amounts may only rise, unless they are free."""

    kind: ClassVar[str] = "bins of the prediction"
    count: int = 1
    monotone: bool = True

    def size(self, n_classes: int) -> int:
        """How many there are."""
        return self.count

    def baseline(self, n_classes: int) -> Codes:
        """Cells do not tell the baseline."""
        return np.zeros(self.count, dtype=np.intp)

    def spread(self, score: Any, predicted: Any) -> Any:
        """People are in their cells already."""
        return []

    def runs(self, n_classes: int) -> list[range]:
        """All of them, in order."""
        return [range(self.count)]

    def log_policies(self, n_classes: int) -> float:
        """There is no certificate of amounts before the fact."""
        return math.inf

    def climbs(self, n_classes: int) -> bool:
        """Whether amounts rise along them."""
        return self.monotone


def shared_grid(allowed: Allowed) -> Floats:
    """The levels that are tried where groups share their cells."""
    low, high = allowed.ends
    return np.linspace(low, high, min(allowed.levels, SHARED_LEVELS))


@dataclass(frozen=True, eq=False)
class _LevelSums:
    """Running sums by group and cell: of every level its cost and worth, who is counted, and the baseline's worth."""

    loss: Floats
    value: Floats
    among: Floats
    baseline: Floats

    @classmethod
    def empty(cls, shape: tuple[int, int], n_levels: int, n_measures: int) -> _LevelSums:
        """Sums of nobody."""
        loss, value = np.zeros((*shape, n_levels)), np.zeros((*shape, n_levels, n_measures))
        return cls(loss, value, np.zeros((*shape, n_measures)), np.zeros((*shape, n_measures)))

    def add(
        self,
        problem: LinesProblem,
        batch: Batch,
        index: Codes,
        weight: Floats,
        baseline: Floats,
        calibrated: Floats,
        grid: Floats,
    ) -> None:
        """Add some people, by their group and cell."""
        shape = self.loss.shape[:2]

        def per_cell(numbers: Floats) -> Floats:
            sums = np.bincount(index, weight * numbers, shape[0] * shape[1])
            return np.asarray(sums, dtype=np.float64).reshape(shape)

        for j, happiness in enumerate(problem.happiness):
            now, inside = worth_of_amounts(happiness, batch, baseline)
            counted = np.ones(len(weight)) if inside is None else inside.astype(np.float64)
            self.among[:, :, j] += per_cell(counted)
            self.baseline[:, :, j] += per_cell(counted * now)
        for k, level in enumerate(grid.tolist()):
            everybody = np.full(len(weight), level)
            cost = (
                (level - calibrated) ** 2
                if problem.squared
                else loss_of_amounts(problem.loss, batch, everybody)
            )
            self.loss[:, :, k] += per_cell(cost)
            for j, happiness in enumerate(problem.happiness):
                worth, inside = worth_of_amounts(happiness, batch, everybody)
                self.value[:, :, k, j] += per_cell(worth if inside is None else worth * inside)


def level_aggregates(
    problem: LinesProblem, people: AmountPeople, cells: Cells, calibrated: Floats, grid: Floats
) -> Aggregates:
    """Add up what every level costs and is worth, by group and cell."""
    n_groups, n_measures = len(people.groups), len(problem.happiness)
    size = max(run.stop - run.start for run in cells.runs)
    check_room(
        2.0 * n_groups * size * len(grid) * (n_measures + 1),
        "The sums of amounts",
        f"{n_groups} groups x {size} bins x {len(grid)} levels x {n_measures} measures",
        "Use fewer levels, decisions=...",
    )
    starts = np.array([cells.run(z).start for z in range(n_groups)])
    index = people.codes * size + cells.place - starts[people.codes]
    sums = _LevelSums.empty((n_groups, size), len(grid), n_measures)
    for part, batch in people.batches():
        now = people.decided_baseline[part]
        sums.add(problem, batch, index[part], people.weights[part], now, calibrated[part], grid)
    loss, value, among, baseline = sums.loss, sums.value, sums.among, sums.baseline
    shape = (n_groups, size)
    mass = np.bincount(index, people.weights, n_groups * size).reshape(shape)
    # Relative to what the middle level is worth on average, sums are no larger than what amounts change.
    origin = value[:, :, len(grid) // 2].sum(axis=(0, 1)) / np.maximum(among.sum(axis=(0, 1)), 1e-300)
    held = {
        "mass": mass,
        "loss": loss,
        "value": value - origin * among[:, :, None, :],
        "among": among,
        "baseline_value": baseline - origin * among,
    }
    return Aggregates(
        classes=np.empty(0),
        decisions=grid,
        rising=True,
        groups=people.groups,
        attributes=people.attributes,
        measures=problem.measures,
        signal=CellSignal(size, problem.monotone),
        loss_name=problem.loss.name,
        origin=origin,
        sums=CellSums.of_dense(held),
        rows=np.bincount(people.codes, minlength=n_groups).astype(np.int64),
    )


def solve_levels(
    problem: LinesProblem, aggregates: Aggregates, cells: Cells, ranks: tuple[Ranks, ...], *, mean: bool
) -> SolvedLines:
    """The lines of least loss that meet every requirement; ``mean`` where the mean of levels will do for a lottery."""
    solution = solve_program(aggregates, problem.requirements, sees_group=problem.sees_group)
    lines = tuple(
        _steps(cells, z, solution.q[z], np.asarray(aggregates.decisions), aggregates.mass, own, mean=mean)
        for z, own in enumerate(ranks)
    )
    return SolvedLines(lines, solution.prices, any(price > 0 for price in solution.prices.values()))


def _steps(
    cells: Cells, z: int, probabilities: Floats, grid: Floats, mass: Floats, ranks: Ranks, *, mean: bool
) -> Line:
    """One amount for every cell of a group, or a lottery over levels."""
    run = cells.run(z)
    least, most, count = cells.least[run], cells.most[run], run.stop - run.start
    reach = max(float(most[-1] - least[0]), 1.0)
    between = (most[:-1] + least[1:]) / 2
    edges = np.concatenate([[least[0] - reach], between, [most[-1] + reach]])
    amounts, atoms = np.empty(count), []
    for s in range(count):
        chances = np.where(probabilities[s] > NEVER, probabilities[s], 0.0)
        chances /= chances.sum()
        drawn = np.flatnonzero(chances)
        if mean or len(drawn) == 1:
            amounts[s] = chances @ grid
            continue
        ends = chances[drawn].cumsum()
        ends[-1] = 1.0
        draws = np.concatenate([[0.0], ends[:-1].repeat(2), [1.0]])
        amounts[s] = grid[drawn[np.searchsorted(ends, 0.5)]]
        share = float(mass[z, s] / mass[z].sum())
        atoms.append(Atom(float(edges[s]), float(edges[s + 1]), share, draws, grid[drawn].repeat(2)))
    x = np.concatenate([edges[:1], between.repeat(2), edges[-1:]])
    y = amounts.repeat(2)
    kept = np.ones(len(x), dtype=bool)
    kept[1:-1] = np.repeat(np.diff(amounts) != 0, 2)
    return Line(x[kept], y[kept], tuple(atoms), ranks.middle)
