r"""Levels: amounts as decisions, over bins of the prediction, along which they may not fall.

An amount is a decision on a grid. Bins hold as many people each, and what a level costs and is worth to the people of a
bin is summed as of any other decision; of a straight line of the amount its two ends say all there is, and of squared
errors three sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from felicific._capacity import check_room
from felicific._people.evaluate import is_straight, loss_of_amounts, worth_of_amounts
from felicific._people.user_functions import Batch
from felicific._problem.happiness import Happiness
from felicific._program.aggregates import Aggregates
from felicific._program.cell_sums import CellSums
from felicific._program.signals import Signal
from felicific._program.squares import AmountWorth, Squares
from felicific._tables.memory import as_objects
from felicific._typing import Codes, Floats

if TYPE_CHECKING:
    from felicific._people.people import People
    from felicific._problem.numeric import NumericProblem
    from felicific._program.predicted import Scale

#: Bins of every group, or of all people where they share them.
BINS = 256

#: Levels at quantiles of what is predicted, and even steps between the bounds; fewer where each has to be evaluated.
QUANTILES, STEPS, FEWER = 129, 32, 33

#: A jump is looked for so often in half of where it was, and by how many people.
HALVES, LOOKED_AT = 40, 512

#: A jump is what is still there of a rise, where nearly nothing is left of the way.
JUMP = 0.01


@dataclass(frozen=True)
class BinSignal(Signal):
    """Bins of the prediction, along which amounts may only rise, unless they are free."""

    kind: ClassVar[str] = "bins of the prediction"
    count: int = 1
    monotone: bool = True

    def size(self, n_classes: int) -> int:
        """How many there are."""
        return self.count

    def baseline(self, n_classes: int) -> Codes:
        """Bins do not tell the baseline."""
        return np.zeros(self.count, dtype=np.intp)

    def spread(self, score: Any, predicted: Any) -> Any:
        """People are in their bins already."""
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


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the prediction, of about equal weight, made of fine ones.

    Attributes
    ----------
    place : array of shape (n,)
        Everybody's bin. Where the group is seen, bins of a group stand side by side.
    runs : list of slice
        Bins along which amounts may not fall: of every group, or of all.
    mass : array of shape (groups, bins)
        Weight of the people of every group in every bin.
    prediction : array of shape (bins,)
        Mean prediction.
    least, most : arrays of shape (bins,)
        The least and the largest prediction in every bin.
    """

    place: Codes
    runs: list[slice]
    mass: Floats
    prediction: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, people: People, scale: Scale, *, sees_group: bool, number: int = BINS) -> Bins:
        """Join fine bins: of every group, or of all people where the group is not seen."""
        n_groups, fine = len(people.groups), scale.bins(people.prediction)
        place, runs, first = np.empty(len(people), dtype=np.intp), [], 0
        for z in range(n_groups if sees_group else 1):
            rows = np.flatnonzero(people.codes == z) if sees_group else np.arange(len(people))
            held = np.bincount(fine[rows], people.weights[rows])
            joined = ((held.cumsum() - held / 2) / held.sum() * number).clip(0, number - 1).astype(np.intp)
            used, of_held = np.unique(joined[held > 0], return_inverse=True)
            of_fine = np.zeros(len(held), dtype=np.intp)
            of_fine[held > 0] = of_held
            place[rows] = first + of_fine[fine[rows]]
            runs.append(slice(first, first + len(used)))
            first += len(used)
        mass = np.zeros((n_groups, first))
        np.add.at(mass, (people.codes, place), people.weights)
        mean = np.bincount(place, people.weights * people.prediction, first) / mass.sum(axis=0)
        least, most = np.full(first, np.inf), np.full(first, -np.inf)
        np.minimum.at(least, place, people.prediction)
        np.maximum.at(most, place, people.prediction)
        return cls(place, runs, mass, mean, least, most)

    def run(self, z: int) -> slice:
        """The bins of a group."""
        return self.runs[z if len(self.runs) > 1 else 0]

    @property
    def sees_group(self) -> bool:
        """Whether every group has bins of its own."""
        return len(self.runs) == len(self.mass)

    @property
    def size(self) -> int:
        """The most that a group has."""
        return max(int(run.stop - run.start) for run in self.runs)


def straight(problem: NumericProblem, people: People, bounds: tuple[float, float]) -> bool:
    """Whether all happiness is a straight line of the amount, to everybody."""
    batch = people.batch if problem.of_people else _groups_of(people)
    return is_straight(problem.happiness, batch, bounds)


def _groups_of(people: People) -> Batch:
    """Somebody of every group, of whom nothing else is known."""
    return Batch(None, None, None, as_objects(people.groups), np.arange(len(people.groups)))


def grid_of(problem: NumericProblem, people: People, calibrated: Floats) -> Floats:
    """The levels that are looked at: those that are listed, else many, and both sides of where happiness jumps."""
    allowed = problem.allowed
    if allowed.listed is not None:
        return np.array(allowed.listed)
    low, high = allowed.ends
    polynomial = problem.squared and not problem.of_people
    order = np.argsort(calibrated, kind="stable")
    rank = (people.weights[order].cumsum() - people.weights[order] / 2) / people.weights.sum()
    shares = np.linspace(0.0, 1.0, QUANTILES if polynomial else FEWER)
    quantiles = np.clip(np.interp(shares, rank, calibrated[order]), low, high)
    even = np.linspace(low, high, STEPS + 1)
    return np.unique(np.concatenate([even, quantiles, jumps(problem, people, even)]))


def jumps(problem: NumericProblem, people: People, even: Floats) -> Floats:
    """Both sides of amounts at which some happiness jumps."""
    some = people.take(np.unique(np.linspace(0, len(people) - 1, LOOKED_AT).astype(np.intp)))
    batch = some.batch if problem.of_people else _groups_of(people)
    found: list[float] = []
    for part in problem.happiness:

        def worth(amount: float, part: Happiness = part) -> Floats:
            return worth_of_amounts(part, batch, np.full(len(batch), amount))[0]

        at = [worth(level) for level in even.tolist()]
        for low, high, before, after in zip(even, even[1:], at, at[1:], strict=False):
            found += _jump(worth, float(low), float(high), before, after)
    return np.array(found)


def _jump(
    worth: Callable[[float], Floats], low: float, high: float, before: Floats, after: Floats
) -> list[float]:
    """Both sides of a jump between two amounts, if there is one."""
    rise = float(np.abs(after - before).max(initial=0.0))
    middle = worth((low + high) / 2)
    if np.abs(middle - (before + after) / 2).max(initial=0.0) <= 1e-9 * max(rise, 1e-300):
        return []
    for _ in range(HALVES):
        half = (low + high) / 2
        if not low < half < high:
            break
        middle = worth(half)
        if np.abs(middle - before).max() >= np.abs(after - middle).max():
            high, after = half, middle
        else:
            low, before = half, middle
    return [low, high] if float(np.abs(after - before).max()) > JUMP * rise else []


def level_aggregates(
    problem: NumericProblem, people: People, bins: Bins, calibrated: Floats, grid: Floats, rows: Codes
) -> Aggregates:
    """Add up what every level costs and is worth, by group and bin; ``rows`` says how many of every group were seen."""
    n_groups, n_measures, size, n_levels = len(people.groups), len(problem.happiness), bins.size, len(grid)
    check_room(
        2.0 * n_groups * size * n_levels * (n_measures + 1),
        "The sums of amounts",
        f"{n_groups} groups x {size} bins x {n_levels} levels x {n_measures} measures",
        "List fewer amounts, decisions=[...].",
    )
    starts = np.array([bins.run(z).start for z in range(n_groups)])
    index, shape = people.codes * size + bins.place - starts[people.codes], (n_groups, size)

    def per_bin(numbers: Floats, part: slice = slice(None)) -> Floats:
        sums = np.bincount(index[part], people.weights[part] * numbers, n_groups * size)
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    mass = per_bin(np.ones(len(people)))
    loss, value = np.zeros((*shape, n_levels)), np.zeros((*shape, n_levels, n_measures))
    among, baseline = np.zeros((*shape, n_measures)), np.zeros((*shape, n_measures))
    if problem.squared:
        first, second = per_bin(calibrated), per_bin(calibrated**2)
        for k, level in enumerate(grid.tolist()):
            loss[:, :, k] = mass * level**2 - 2.0 * level * first + second
    # Of a straight line its ends say all there is; of the amount alone, one person of every group does.
    ends = (float(grid[0]), float(grid[-1]))
    two = straight(problem, people, ends)
    looked_at = ends if two else tuple(grid.tolist())
    at = np.zeros((*shape, len(looked_at), n_measures))
    for part, batch in people.batches():
        now = people.decided_baseline[part]
        if not problem.squared:
            for k, level in enumerate(grid.tolist()):
                loss[:, :, k] += per_bin(loss_of_amounts(problem.loss, batch, np.full(len(now), level)), part)
        for j, happiness in enumerate(problem.happiness):
            worth, inside = worth_of_amounts(happiness, batch, now)
            counted = np.ones(len(now)) if inside is None else inside.astype(np.float64)
            among[:, :, j] += per_bin(counted, part)
            baseline[:, :, j] += per_bin(counted * worth, part)
            for k, level in enumerate(looked_at if problem.of_people else ()):
                at[:, :, k, j] += per_bin(
                    counted * worth_of_amounts(happiness, batch, np.full(len(now), level))[0], part
                )
    if not problem.of_people:
        everybody = _groups_of(people)
        for j, happiness in enumerate(problem.happiness):
            for k, level in enumerate(looked_at):
                worth = worth_of_amounts(happiness, everybody, np.full(n_groups, level))[0]
                at[:, :, k, j] = among[:, :, j] * worth[:, None]
    share = (grid - grid[0]) / (grid[-1] - grid[0])
    value[...] = at if not two else at[:, :, :1] + share[:, None] * (at[:, :, 1:] - at[:, :, :1])
    # Relative to what the middle level is worth on average, sums are no larger than what amounts change.
    origin = value[:, :, n_levels // 2].sum(axis=(0, 1)) / np.maximum(among.sum(axis=(0, 1)), 1e-300)
    sums = {
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
        signal=BinSignal(size, problem.monotone),
        loss_name=problem.loss.name,
        origin=origin,
        sums=CellSums.of_dense(sums),
        rows=np.asarray(rows, dtype=np.int64),
        weight_kind=people.weight_kind,
        whole=bool((people.weights % 1 == 0).all()),
        left_out=people.left_out,
    )


def squares_of(aggregates: Aggregates, people: People, bins: Bins, calibrated: Floats) -> Squares:
    """The bins of some aggregates, whose first and last level say what amounts are worth, as they stand in ``bins``."""
    n_groups, total = len(aggregates.groups), bins.mass.sum(axis=0)
    low, high = float(aggregates.decisions[0]), float(aggregates.decisions[-1])
    runs = tuple(bins.runs) if isinstance(aggregates.signal, BinSignal) and aggregates.signal.monotone else ()
    among = _spread(aggregates.among, bins)
    first, last = (_spread(aggregates.value[:, :, k], bins) for k in (0, -1))
    slope = (last - first) / (high - low)
    parts = [part / total[:, None, None] for part in (first - low * slope, slope, among)]
    return Squares(
        target=np.bincount(bins.place, people.weights * calibrated, len(total)) / total,
        weight=total,
        code=bins.mass.argmax(axis=0) if bins.sees_group else np.zeros(len(total), dtype=np.intp),
        n_groups=n_groups,
        worth=AmountWorth(*parts),
        origin=np.zeros(len(aggregates.measures)),  # the sums of aggregates are relative to theirs
        bounds=(low, high),
        runs=runs,
    )


def _spread(sums: Floats, bins: Bins) -> Floats:
    """Sums of shape (groups, signals, measures) by bin: of their own group, or of each, (bins, slots, measures)."""
    if not bins.sees_group or len(sums) == 1:
        return np.moveaxis(sums[:, : len(bins.prediction)], 0, 1)
    own = [sums[z, : run.stop - run.start] for z, run in enumerate(bins.runs)]
    return np.concatenate(own)[:, None, :]
