"""Broken lines from a prediction to an amount, with a lottery where many people are predicted the very same.

A line is made of what a program finds: shares above thresholds, moved bins, or levels by bin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._files import read_numbers, refused
from felicific._program.calibration import Calibration
from felicific._program.levels import Bins
from felicific._program.parity import Thresholds
from felicific._program.predicted import FINE, Predicted, Scale
from felicific._typing import Codes, Floats

#: Lines are simplified: by no more than this share of the range of amounts, ...
SLACK = 1e-3

#: ... nor than moves this share of a group across an amount.
MOVED = 1.5e-4

#: Predictions that differ by less, as a share of their range, are taken for the same.
SAME = 1e-9

#: Knots of a line from predictions to ranks, at the most.
KNOTS = 4096

#: People of the same prediction randomize where they are a larger share of their group.
LARGE = 0.01

#: Neighbouring bins whose amounts differ by no more than this share of the range get the same.
FLAT = 1e-9

#: A chance of a level that is none.
NEVER = 1e-9


def slopes_of(x: Floats, y: Floats) -> Floats:
    """How steep a broken line is from every corner to the next; 0 after the last, and across a step."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    return np.where(np.isfinite(slopes), slopes, 0.0)


def along(x: Floats, y: Floats, at: Floats) -> Floats:
    """A broken line somewhere: slope * (at - x) + y of the last corner that is not beyond.

    Operation by operation what the SQL of a policy computes, so that a database gives the very same amounts.
    """
    inside = np.clip(at, x[0], x[-1])
    corner = np.maximum(np.searchsorted(x, inside, side="right") - 1, 0)
    straight = slopes_of(x, y)[corner] * (inside - x[corner]) + y[corner]
    return np.where(at < x[0], y[0], straight)  # below a step at the first corner, what comes before it


@dataclass(frozen=True, eq=False)
class Atom:
    """People who are predicted the same, and draw their amount: predictions above ``low`` and at most ``high``.

    A draw of 0 draws the first of the ``amounts``, and a draw at one of the ``draws`` the amount there; in between
    along the straight line. Draws rise from 0 to 1; a draw that stands twice is a step. ``share`` is their share of the
    group.
    """

    low: float
    high: float
    share: float
    draws: Floats = field(repr=False)
    amounts: Floats = field(repr=False)

    def drawn(self, draws: Floats) -> Floats:
        """The amounts that draws draw."""
        return along(self.draws, self.amounts, draws)

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it."""
        pairs = np.column_stack([self.draws, self.amounts]).tolist()
        return {"above": self.low, "at_most": self.high, "share": self.share, "draws": pairs}

    @classmethod
    def from_json(cls, content: Any) -> Atom:
        """Read it."""
        ends = read_numbers([content["above"], content["at_most"], content["share"]], "atom").tolist()
        pairs = _read_pairs(content["draws"], "draws")
        if pairs[0, 0] != 0.0 or pairs[-1, 0] != 1.0 or not ends[0] < ends[1] or not 0.0 <= ends[2] <= 1.0:
            raise refused("a lottery over amounts is none")
        return cls(ends[0], ends[1], ends[2], pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True, eq=False)
class Line:
    """The amounts of one group: ``amount`` at every ``prediction``, straight in between, the same beyond the ends.

    A prediction that stands twice is a step: from it on the second amount is given. Inside ``atoms`` amounts are
    drawn, where the lottery draws at all. Most of the fitted people, 98 %, are predicted something in the ``middle``.
    """

    prediction: Floats
    amount: Floats
    atoms: tuple[Atom, ...] = ()
    middle: tuple[float, float] = (-np.inf, np.inf)

    @property
    def typical(self) -> tuple[Floats, Floats]:
        """The corners of the middle, its ends included: predictions and amounts."""
        inside = (self.prediction > self.middle[0]) & (self.prediction < self.middle[1])
        x = np.concatenate([self.middle[:1], self.prediction[inside], self.middle[1:]])
        ends = self.at(np.array(self.middle))
        y = np.concatenate([ends[:1], self.amount[inside], ends[1:]])
        known = np.isfinite(x)
        return x[known], y[known]

    def at(self, prediction: Floats) -> Floats:
        """Amounts without a lottery."""
        return along(self.prediction, self.amount, prediction)

    def drawing(self, prediction: Floats) -> Codes:
        """The position of everybody's atom, or -1."""
        place = np.full(len(prediction), -1, dtype=np.intp)
        for number, atom in enumerate(self.atoms):
            place[(prediction > atom.low) & (prediction <= atom.high)] = number
        return place

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it."""
        return {
            "knots": np.column_stack([self.prediction, self.amount]).tolist(),
            "atoms": [atom.to_json() for atom in self.atoms],
            "middle": list(self.middle),
        }

    @classmethod
    def from_json(cls, content: Any) -> Line:
        """Read it."""
        if not isinstance(content, dict) or set(content) != {"knots", "atoms", "middle"}:
            raise refused("a line lacks a part, or has one too many")
        knots = _read_pairs(content["knots"], "knots")
        low, high = read_numbers(content["middle"], "middle").tolist()
        atoms = tuple(Atom.from_json(atom) for atom in content["atoms"])
        return cls(knots[:, 0], knots[:, 1], atoms, (low, high))


def _read_pairs(content: Any, what: str) -> Floats:
    pairs = read_numbers(content, what)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (np.diff(pairs[:, 0]) < 0).any():
        raise refused(f"its {what} are no pairs of numbers of which the first may not fall")
    return pairs


def simplified(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """Few corners that leave every point within its ``slack`` of the line; steps stay where they are."""
    steps = np.flatnonzero(np.diff(x) == 0)
    kept = np.zeros(len(x), dtype=bool)
    kept[[0, len(x) - 1]] = True
    kept[steps] = kept[steps + 1] = True
    corners = np.flatnonzero(kept)
    waiting = list(zip(corners[:-1].tolist(), corners[1:].tolist(), strict=True))
    while waiting:
        first, last = waiting.pop()
        if last - first < 2 or x[last] == x[first]:
            continue
        inside = slice(first + 1, last)
        straight = y[first] + (y[last] - y[first]) * (x[inside] - x[first]) / (x[last] - x[first])
        off = np.abs(y[inside] - straight) - slack[inside]
        worst = int(off.argmax())
        if off[worst] > 0:
            middle = first + 1 + worst
            kept[middle] = True
            waiting += [(first, middle), (middle, last)]
    # Of three or more at one prediction, only the first and the last are a step.
    doubled = np.zeros(len(x), dtype=bool)
    doubled[1:-1] = (x[1:-1] == x[:-2]) & (x[1:-1] == x[2:])
    kept &= ~doubled
    return x[kept], y[kept]


@dataclass(frozen=True, eq=False)
class Ranks:
    """The predictions of a group in order: knots of a line from prediction to rank, and who is predicted the same.

    ``atoms`` are fine bins of many people of one prediction: the bin, and the ranks where it begins and ends.
    """

    prediction: Floats
    rank: Floats
    atoms: list[tuple[int, float, float]]
    scale: Scale

    @property
    def middle(self) -> tuple[float, float]:
        """Predictions between which 98 % of the group lie."""
        low, high = np.interp([0.01, 0.99], self.rank, self.prediction).tolist()
        return low, high

    @classmethod
    def of_bins(cls, sums: Predicted, z: int) -> Ranks:
        """Of the people of a group: a bin of one prediction at its middle rank, any other from end to end."""
        held = np.flatnonzero(sums.mass[z])
        mass = sums.mass[z, held] / sums.people[z]
        after = mass.cumsum()
        after[-1] = 1.0
        before = np.append(0.0, after[:-1])
        least, most = sums.least[z, held], sums.most[z, held]
        apart = (most - least) > 1e-3 * sums.scale.width / FINE
        x = np.column_stack([np.where(apart, least, sums.predicted[z, held] / sums.mass[z, held]), most])
        r = np.column_stack([np.where(apart, before, (before + after) / 2), after])
        kept = np.column_stack([np.ones(len(held), dtype=bool), apart])
        atoms = [
            (int(held[k]), float(before[k]), float(after[k]))
            for k in np.flatnonzero(~apart & (mass > np.maximum(LARGE, 1.5 / sums.rows[z]))).tolist()
        ]
        return cls(np.maximum.accumulate(x[kept]), r[kept], atoms, sums.scale)

    @classmethod
    def of_rows(cls, prediction: Floats, weight: Floats, scale: Scale) -> Ranks:
        """Of the people of a group, row by row: every prediction at its middle rank, or enough of them."""
        # Predictions that differ by rounding alone are one: two machines may differ in that.
        steps = np.rint((prediction - scale.low) / (scale.width or 1.0) / SAME)
        _, first, place = np.unique(steps, return_index=True, return_inverse=True)
        x = prediction[first]
        mass = np.bincount(place, weight, len(x)) / weight.sum()
        after = mass.cumsum()
        after[-1] = 1.0
        before = np.append(0.0, after[:-1])
        middle = (before + after) / 2
        # One person alone draws no draw, however small the group is; weight 2 is the row twice.
        several = (np.bincount(place, minlength=len(x)) > 1) | (np.bincount(place, weight, len(x)) >= 2.0)
        large = (mass > LARGE) & several
        bins = scale.bins(x[large])
        atoms = [
            (int(number), float(start), float(end))
            for number, start, end in zip(bins, before[large], after[large], strict=True)
        ]
        kept = np.diff((middle * KNOTS).astype(np.intp), prepend=-1) > 0
        kept[[0, -1]] = True
        kept |= large
        return cls(x[kept], middle[kept], atoms, scale)


def line_of_shares(thresholds: Thresholds, above: Floats, ranks: Ranks) -> Line:
    """The line of a group of which these shares are above thresholds; many people of one prediction draw."""
    below = 1.0 - np.minimum.accumulate(np.clip(above, 0.0, 1.0))
    levels = thresholds.levels
    if thresholds.straight:
        at = np.concatenate([[0.0], below, [1.0]])
        return _by_rank(ranks, at, np.concatenate([levels[:1], thresholds.taus, levels[-1:]]))
    return _by_rank(ranks, np.concatenate([[0.0], below.repeat(2), [1.0]]), levels.repeat(2), steps=True)


def _by_rank(ranks: Ranks, draws: Floats, amounts: Floats, *, steps: bool = False) -> Line:
    """A line from the amount at every rank, straight in between but for ``steps``."""
    reach = float(amounts[-1] - amounts[0])
    own = np.interp(ranks.rank, draws, amounts)
    atoms = []
    for number, start, end in ranks.atoms:
        inside = (draws > start) & (draws < end)
        ends = np.interp([start, end], draws, amounts)
        # At a step, a share that begins there has what comes after it, and one that ends there what came before.
        ends[1] = amounts[np.searchsorted(draws, end, side="left")] if end in draws else ends[1]
        at = np.concatenate([[0.0], (draws[inside] - start) / (end - start), [1.0]])
        drawn = np.concatenate([ends[:1], amounts[inside], ends[1:]])
        if drawn[-1] - drawn[0] <= 1e-4 * reach:
            continue
        low, high = ranks.scale.edge(number - 1), ranks.scale.edge(number)
        atoms.append(Atom(float(low), float(high), end - start, at, drawn))
    corners = (draws > ranks.rank[0]) & (draws < ranks.rank[-1])
    if not steps:
        # Where nobody is between two thresholds, the line goes straight from person to person, without a step.
        alone = np.diff(draws, prepend=-1.0) > 0
        corners &= alone & np.append(alone[1:], True)
    x = np.concatenate([ranks.prediction, np.interp(draws[corners], ranks.rank, ranks.prediction)])
    y = np.concatenate([own, amounts[corners]])
    order = np.lexsort([y, x])
    x, y = x[order], np.maximum.accumulate(y[order])
    if steps:
        return Line(*simplified(x, y, np.zeros(len(x))), tuple(atoms), ranks.middle)
    last = np.append(np.diff(x) > 0, True)
    x, y = x[last], y[last]
    around = np.interp(x, ranks.prediction, ranks.rank)
    above, under = (np.interp(around + side * MOVED, draws, amounts) for side in (1, -1))
    slack = np.minimum(np.minimum(above - y, y - under).clip(min=1e-9 * reach), SLACK * reach)
    return Line(*simplified(x, y, slack), tuple(atoms), ranks.middle)


def line_of_bins(
    bins: Bins,
    z: int,
    amounts: Floats,
    calibration: Calibration,
    bounds: tuple[float, float],
    ranks: Ranks,
    *,
    monotone: bool = True,
) -> Line:
    """The line of a group through the amounts of its bins.

    Between two bins, and beyond the last, people are moved from the calibrated prediction as those there are, unless
    bins at the end get the same; amounts are cut at the bounds.
    """
    low, high = bounds
    run = bins.run(z)
    x, given = bins.prediction[run], amounts[run]
    moved = given - calibration.at(z, x)
    corners = np.unique(np.concatenate([x, calibration.lines[z][0]]))
    # As far beyond the last corners as it takes to meet the bounds.
    ends = corners[[0, -1]] + np.array([-1.0, 1.0]) * max(float(np.ptp(corners)), 1.0)
    rises = np.abs(calibration.at(z, ends) - calibration.at(z, corners[[0, -1]])) / np.abs(
        ends - corners[[0, -1]]
    )
    reach = high - low + float(np.abs(moved).max())
    far = np.where(rises > 0, reach / np.where(rises > 0, rises, 1.0), 1.0)
    corners = np.concatenate([[corners[0] - far[0]], corners, [corners[-1] + far[1]]])
    y = calibration.at(z, corners) + np.interp(corners, x, moved)
    for end, beside, beyond in ((0, 1, corners < x[0]), (-1, -2, corners > x[-1])):
        if len(given) > 1 and abs(given[end] - given[beside]) <= FLAT * (high - low):
            y[beyond] = given[end]
    x, y = _cut(corners, np.maximum.accumulate(y) if monotone else y, bounds)
    return Line(*simplified(x, y, np.full(len(x), 1e-12 * (high - low))), middle=ranks.middle)


def _cut(x: Floats, y: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """A broken line, cut at the bounds where it crosses them."""
    crossed = [x]
    for bound in bounds:
        i = np.flatnonzero((y[:-1] - bound) * (y[1:] - bound) < 0)
        crossed.append(x[i] + (bound - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))
    corners = np.unique(np.concatenate(crossed))
    return corners, np.clip(np.interp(corners, x, y), *bounds)


def line_of_levels(bins: Bins, z: int, chances: Floats, grid: Floats, ranks: Ranks, *, cuts: bool) -> Line:
    """One level for every bin of a group, or several: by a lottery, or, if ``cuts``, in the order of predictions."""
    run = bins.run(z)
    least, most, count = bins.least[run], bins.most[run], run.stop - run.start
    mass = bins.mass[z, run]
    reach = max(float(most[-1] - least[0]), 1.0)
    edges = np.concatenate([[least[0] - reach], (most[:-1] + least[1:]) / 2, [most[-1] + reach]])
    before = np.append(0.0, mass.cumsum()) / mass.sum()
    x, y, atoms = [], [], []
    for s in range(count):
        likely = np.where(chances[s] > NEVER, chances[s], 0.0)
        drawn = np.flatnonzero(likely)
        ends = (likely / likely.sum())[drawn].cumsum()
        ends[-1] = 1.0
        parted = [edges[s], edges[s + 1]]
        levels = grid[drawn]
        large = any(start < before[s + 1] and end > before[s] for _, start, end in ranks.atoms)
        if len(drawn) > 1 and cuts and most[s] > least[s] and not large:
            at = np.interp(before[s] + ends[:-1] * (before[s + 1] - before[s]), ranks.rank, ranks.prediction)
            parted[1:1] = np.clip(at, edges[s], edges[s + 1]).tolist()
        elif len(drawn) > 1:
            draws = np.concatenate([[0.0], ends[:-1].repeat(2), [1.0]])
            atoms.append(Atom(parted[0], parted[1], float(mass[s] / mass.sum()), draws, levels.repeat(2)))
            levels = grid[drawn[[np.searchsorted(ends, 0.5)]]]
        x.append(np.repeat(parted, 2)[1:-1])
        y.append(levels.repeat(2))
    knots, amounts = np.concatenate(x), np.concatenate(y)
    kept = np.ones(len(knots), dtype=bool)
    same = amounts[1:-1:2] == amounts[2::2]
    kept[1:-1] = ~same.repeat(2)
    return Line(knots[kept], amounts[kept], tuple(atoms), ranks.middle)
