r"""Cells: people of nearly the same prediction, where happiness differs between people who get the same amount.

A policy that sees the prediction gives all people of a cell the same move, so a cell is one person to the program: its
mean calibrated prediction, and the mean of what one more unit is worth to its people. Amounts may not fall along the
cells of a group, unless they are free to; of all such amounts, those of a deterministic policy are the isotonic
regression of

.. math:: m_s + \sum_{zj} w_{zj} \bar\beta_{zj}(s)

on the cells, cut at the bounds, which column generation mixes (:mod:`felicific._program.generation`). Where the group
is not seen, all groups share their cells, and a cell is of each group by the share of its people who are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from felicific._amounts.ground import AmountGround
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._amounts.scale import BINS, Scale
from felicific._amounts.shapes import Ranks
from felicific._amounts.solve import SolvedLines
from felicific._policy.lines import AmountOutcome, AmountWorth, Calibration, Line, simplified, worth_of_people
from felicific._program.crowd import Crowd
from felicific._program.generation import Generator
from felicific._program.hulls import vertices
from felicific._typing import Codes, Floats
from felicific.exceptions import ConstraintError, DataError, InfeasibleError

#: Cells of a group; and of all groups together, where they share them.
CELLS = 256
SHARED = 64

#: How often lines are found anew, because amounts between the cells make other means than amounts in cells do.
ROUNDS = 6

#: Means that differ by less than this share of what amounts can do are the same.
SAME = 1e-10


def check_cells(problem: LinesProblem, *, rows: bool) -> None:
    """Refuse what cells of the prediction cannot be asked for; ``rows``: people are there, not their sums alone."""
    if problem.parity:
        why = "does not see the group" if not problem.sees_group else f"also looks at {problem.of_people!r}"
        raise ConstraintError(
            f"{problem.parity!r} compares ranks within groups, which a policy that {why} does not hold.",
            "Ask for it alone, and let the policy see the group; or for means, 'decision' or 'decision >= 40'.",
        )
    if problem.of_people and not rows:
        raise DataError(
            f"The happiness {problem.of_people!r} looks at the people, and files never hold them.",
            "Fit again; or take policies along the frontier before it is stored.",
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the prediction, of about equal weight, made of fine bins.

    Attributes
    ----------
    place : array of shape (n,)
        Everybody's cell. Where the group is seen, cells of a group stand side by side.
    runs : list of slice
        Cells along which amounts may not fall: of every group, or of all.
    mass : array of shape (groups, cells)
        Weight of the people of every group in every cell.
    prediction : array of shape (cells,)
        Mean prediction.
    least, most : arrays of shape (cells,)
        The least and the largest prediction in every cell.
    """

    place: Codes
    runs: list[slice]
    mass: Floats
    prediction: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, people: AmountPeople, scale: Scale, *, sees_group: bool) -> Cells:
        """Join fine bins into cells: of every group, or of all people where the group is not seen."""
        n_groups, bins = len(people.groups), scale.bins(people.prediction)
        blocks = people.codes if sees_group else np.zeros(len(people), dtype=np.intp)
        number = CELLS if sees_group else SHARED
        place, runs, first = np.empty(len(people), dtype=np.intp), [], 0
        for block in range(n_groups if sees_group else 1):
            rows = np.flatnonzero(blocks == block)
            held = np.bincount(bins[rows], people.weights[rows], BINS)
            cell = ((held.cumsum() - held / 2) / held.sum() * number).clip(0, number - 1).astype(np.intp)
            used, of_held = np.unique(cell[held > 0], return_inverse=True)
            of_bin = np.zeros(BINS, dtype=np.intp)
            of_bin[held > 0] = of_held
            place[rows] = first + of_bin[bins[rows]]
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
        """The cells of a group."""
        return self.runs[z if len(self.runs) > 1 else 0]


#: Neighbouring cells whose amounts differ by no more than this share of the range get the same.
HELD = 1e-9


@dataclass(frozen=True, eq=False)
class CellGround(AmountGround):
    """Cells as people; ``cells`` say along which of them amounts may not fall, ``mass`` how many of each group."""

    cells: Cells = field(kw_only=True)
    baseline_means: Floats = field(kw_only=True)
    rows: Floats = field(kw_only=True)
    monotone: bool = field(kw_only=True)

    def amounts(self, weights: Floats) -> Floats:
        """What people of every cell get by such weights."""
        aim = self.calibrated + self.expected.pushed(weights, self.crowd.group)
        mass = self.crowd.weight
        if self.monotone:
            aim = np.concatenate([_rising(aim[run], mass[run]) for run in self.cells.runs])
        return np.clip(aim, *self.bounds)

    def _per_group(self, numbers: Floats) -> Floats:
        return np.asarray(self.cells.mass @ numbers)

    def totals(self) -> dict[str, Floats]:
        """As of people, with those who are there, and the baseline's amounts row by row."""
        counted = self.expected.counted(self.crowd.group, self.crowd.weight, len(self.crowd.groups))
        baseline = np.nan_to_num(self.baseline_means - self.crowd.origin) * counted
        return super().totals() | {"rows": self.rows, "expected baseline value": baseline}

    def offset(self, off: Floats) -> CellGround:
        """The same where every mean is so much higher, of shape (groups, measures)."""
        worth, crowd = self.expected, self.crowd
        slots = off[crowd.group][:, None] if worth.start.shape[1] == 1 else off[None]
        moved = replace(worth, start=worth.start + slots * worth.among)
        return replace(self, expected=moved, real=moved)


def _rising(aim: Floats, mass: Floats) -> Floats:
    """The nearest numbers that do not fall: the slopes of the lower hull of running sums."""
    x, y = np.append(0.0, mass.cumsum()), np.append(0.0, (mass * aim).cumsum())
    corner = vertices(x[None], y[None])[1]
    return np.repeat(np.diff(y[corner]) / np.diff(x[corner]), np.diff(corner))


def cell_ground(
    problem: LinesProblem,
    people: AmountPeople,
    cells: Cells,
    calibrated: Floats,
    bounds: tuple[float, float],
    baseline: Floats,
) -> CellGround:
    """Add people up in their cells; ``baseline`` are the group means of the baseline's amounts."""
    batch = people.batch(slice(0, len(people)))
    worth = worth_of_people(problem.happiness, batch, bounds, people.groups, None)
    n_groups, n_cells, n_measures = len(people.groups), len(cells.prediction), len(problem.happiness)
    slots = 1 if problem.sees_group or n_groups == 1 else n_groups
    total = cells.mass.sum(axis=0)
    index = cells.place if slots == 1 else cells.place * n_groups + people.codes

    def joined(numbers: Floats) -> Floats:
        summed = np.empty((n_cells, slots, n_measures))
        for j in range(n_measures):
            sums = np.bincount(index, people.weights * numbers[:, 0, j], n_cells * slots)
            summed[:, :, j] = sums.reshape(n_cells, slots) / total[:, None]
        return summed

    means = AmountWorth(joined(worth.start), joined(worth.slope), joined(worth.among))
    m = np.bincount(cells.place, people.weights * calibrated, n_cells) / total
    group = cells.mass.argmax(axis=0) if problem.sees_group else np.zeros(n_cells, dtype=np.intp)
    counted = means.counted(group, total, n_groups)
    value = means.total(group, total, n_groups, np.clip(m, *bounds))
    crowd = Crowd(
        decisions=np.empty(0),
        groups=people.groups,
        measures=problem.measures,
        origin=value.sum(axis=0) / np.maximum(counted.sum(axis=0), 1e-300),
        weight=total,
        group=group,
        own=group,
        sees_group=problem.sees_group,
        attributes=people.attributes,
        weight_kind=people.weight_kind,
        whole=bool((people.weights % 1 == 0).all()),
    )
    rows = np.bincount(people.codes, minlength=n_groups).astype(np.float64)
    return CellGround(
        crowd, m, bounds, means, means, m,
        cells=cells, baseline_means=baseline, rows=rows, monotone=problem.monotone,
    )  # fmt: skip


def solve_cells(
    problem: LinesProblem,
    ground: CellGround,
    calibration: Calibration,
    ranks: Sequence[Ranks],
    stated: Callable[[Sequence[Line]], AmountOutcome],
) -> SolvedLines:
    """The lines of least squared error that meet every requirement, as means of people are and not of cells."""
    off, swing = np.zeros((len(ground.crowd.groups), len(ground.crowd.measures))), ground.swing
    for step in range(ROUNDS):
        search = Generator(ground.offset(off), problem.requirements)
        try:
            search.descend(search.expected, search.reach(search.expected))
        except InfeasibleError:
            if step == 0:
                raise
            break  # just met in cells, and out of reach by what is between them: what is reached is measured
        mixed = search.solved(search.expected)
        mixture = search.policies.followed(mixed.q)
        amounts = np.zeros(len(ground.calibrated))
        for k, (alpha, kappa, _) in enumerate(mixture.choices):
            given = ground.amounts(ground.weights(alpha, kappa))
            amounts += mixture.share[ground.crowd.group, k] * given
        lines = cell_lines(ground, calibration, amounts, ranks)
        means = ground.means(amounts) + ground.crowd.origin
        apart = np.nan_to_num(stated(lines).means - means)
        done = bool((np.abs(apart - off) <= SAME * swing).all())
        off = apart
        if done:
            break
    return SolvedLines(lines, mixed.prices, any(price > 0 for price in mixed.prices.values()))


def cell_lines(
    ground: CellGround, calibration: Calibration, amounts: Floats, ranks: Sequence[Ranks]
) -> tuple[Line, ...]:
    """Lines through the amounts of cells: between two cells, and beyond the last, people are moved as those there are.

    It is the move from the calibrated prediction that is carried on, not the amount, unless that is held at the end.
    """
    cells, lines, (low, high) = ground.cells, [], ground.bounds
    for z, own in enumerate(ranks):
        run = cells.run(z)
        x, given = cells.prediction[run], amounts[run]
        moved = given - calibration.at(z, x)
        corners = np.unique(np.concatenate([x, calibration.lines[z][0]]))
        # As far beyond the last corners as it takes to meet the bounds.
        ends = corners[[0, -1]] + np.array([-1.0, 1.0]) * max(float(np.ptp(corners)), 1.0)
        rises = np.abs(calibration.at(z, ends) - calibration.at(z, corners[[0, -1]])) / np.abs(
            ends - corners[[0, -1]]
        )
        far = np.where(rises > 0, (high - low) / np.where(rises > 0, rises, 1.0), 1.0)
        corners = np.concatenate([[corners[0] - far[0]], corners, [corners[-1] + far[1]]])
        y = calibration.at(z, corners) + np.interp(corners, x, moved)
        for end, beside, beyond in ((0, 1, corners < x[0]), (-1, -2, corners > x[-1])):
            if len(given) > 1 and abs(given[end] - given[beside]) <= HELD * (high - low):
                y[beyond] = given[end]
        x, y = _cut(corners, np.maximum.accumulate(y) if ground.monotone else y, ground.bounds)
        lines.append(Line(*simplified(x, y, np.full(len(x), 1e-12 * (high - low))), middle=own.middle))
    return tuple(lines)


def _cut(x: Floats, y: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """A broken line, cut at the bounds where it crosses them."""
    crossed = [x]
    for bound in bounds:
        i = np.flatnonzero((y[:-1] - bound) * (y[1:] - bound) < 0)
        crossed.append(x[i] + (bound - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))
    corners = np.unique(np.concatenate(crossed))
    return corners, np.clip(np.interp(corners, x, y), *bounds)
