r"""Calibration: what a prediction means for the label, group by group.

Labels are not averaged cell by cell, whose means would be noise: :math:`m = a_z + b_z f` with :math:`b_z \ge 0` is the
line of least squares of every group, from sums that add. A group of few rows takes the slope of all people together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from felicific._files import read_numbers, refused
from felicific._program.hulls import vertices
from felicific._program.predicted import Predicted
from felicific._typing import Codes, Floats
from felicific.exceptions import DataError

Method = Literal["affine", "isotonic", "none"]

METHODS: tuple[Method, ...] = ("affine", "isotonic", "none")

#: A group of fewer people takes the slope of all people together.
FEWEST_PEOPLE = 30


@dataclass(frozen=True)
class Calibration:
    """For every group a broken line from the prediction to the mean label; beyond its ends it goes on straight.

    ``lines[z]`` holds the predictions and the means at its corners; ``falling`` are the groups in which larger
    predictions went with smaller labels, so that everybody is taken for the mean.
    """

    lines: tuple[tuple[Floats, Floats], ...] = field(repr=False)
    falling: tuple[int, ...] = ()

    def at(self, z: int, prediction: Floats) -> Floats:
        """Calibrated predictions of people of a group."""
        x, y = self.lines[z]
        inside = np.interp(prediction, x, y)
        if len(x) == 1:
            return np.asarray(inside)
        first, last = (y[1] - y[0]) / (x[1] - x[0]), (y[-1] - y[-2]) / (x[-1] - x[-2])
        below, above = np.minimum(prediction - x[0], 0.0), np.maximum(prediction - x[-1], 0.0)
        return np.asarray(inside + first * below + last * above)

    def of(self, prediction: Floats, codes: Codes) -> Floats:
        """Calibrated predictions of people of all groups."""
        calibrated = np.empty(len(prediction))
        for z in range(len(self.lines)):
            rows = np.flatnonzero(codes == z)
            calibrated[rows] = self.at(z, prediction[rows])
        return calibrated

    def to_json(self) -> list[Any]:
        """What a file holds of it: the corners of every line."""
        return [np.column_stack(line).tolist() for line in self.lines]

    @classmethod
    def from_json(cls, content: Any) -> Calibration:
        """Read it."""
        lines = []
        for line in content:
            pairs = read_numbers(line, "calibration")
            if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (np.diff(pairs, axis=0) < 0).any():
                raise refused("its calibration is no line that rises")
            if (np.diff(pairs[:, 0]) == 0).any():
                raise refused("its calibration says two things of one prediction")
            lines.append((pairs[:, 0], pairs[:, 1]))
        return cls(tuple(lines))


def check_method(method: str) -> Method:
    """Insist on a method there is."""
    for known in METHODS:
        if method == known:
            return known
    raise DataError(f"calibration={method!r}.", f"Choose one of {', '.join(map(repr, METHODS))}.")


def calibrate(sums: Predicted, method: Method, *, sees_group: bool = True) -> Calibration:
    """Fit the lines; where the group may not be seen, one for all people together."""
    n_groups = len(sums.groups)
    ends = np.column_stack([sums.ends[:, 0], np.maximum(sums.ends[:, 1], sums.ends[:, 0])])
    if method == "none" or sums.labels is None:
        identity = np.array([sums.scale.low, sums.scale.low + max(sums.scale.width, 1.0)])
        return Calibration(((identity, identity),) * n_groups)
    low = sums.scale.low  # what squares are relative to
    lifted = [part.sum(axis=1) - low * sums.people for part in (sums.predicted, sums.labels)]
    aggregates = np.column_stack([sums.people, *lifted, sums.squares])
    pooled = aggregates.sum(axis=0)
    if not sees_group:
        if method == "isotonic":
            line = _isotonic(sums.mass.sum(axis=0), sums.predicted.sum(axis=0), sums.labels.sum(axis=0))
        else:
            line = _line(pooled, low, float(ends[:, 0].min()), float(ends[:, 1].max()))
        falling = tuple(range(n_groups)) if _slope(pooled) <= 0 else ()
        return Calibration((line,) * n_groups, falling)
    lines, falling_groups = [], []
    for z in range(n_groups):
        few = max(sums.rows[z], sums.people[z]) < FEWEST_PEOPLE  # weights may be in any unit
        slope = _slope(pooled) if few else _slope(aggregates[z])
        if slope <= 0 and sums.ends[z, 0] < sums.ends[z, 1]:
            falling_groups.append(z)
        if method == "isotonic" and not few:
            lines.append(_isotonic(sums.mass[z], sums.predicted[z], sums.labels[z]))
            continue
        lines.append(_line(aggregates[z], low, float(ends[z, 0]), float(ends[z, 1]), slope))
    return Calibration(tuple(lines), tuple(falling_groups))


def _slope(aggregates: Floats) -> float:
    """The slope of least squares, from sums of 1, f, y, f f, f y, y y; 0 where all predictions are alike."""
    weight, f, y, ff, fy, _ = aggregates.tolist()
    spread = ff - f * f / weight
    return (fy - f * y / weight) / spread if spread > 1e-12 * ff else 0.0


def _line(
    aggregates: Floats, origin: float, low: float, high: float, slope: float | None = None
) -> tuple[Floats, Floats]:
    """The corners of the line of least squares, as far apart as the predictions are; it never falls.

    Sums are relative to the ``origin``; a ``slope`` may be that of others.
    """
    weight, f, y = aggregates[:3].tolist()
    b = max(_slope(aggregates) if slope is None else slope, 0.0)
    x = np.array([low, high if high > low else low + 1.0])
    return x, origin + y / weight + b * (x - origin - f / weight)


def _isotonic(mass: Floats, predicted: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Centred isotonic regression over the bins: a corner at the mean of every block of equal means."""
    held = np.flatnonzero(mass)
    sums = [np.append(0.0, part[held].cumsum()) for part in (mass, labels)]
    _, ends = vertices(sums[0][None], sums[1][None])
    blocks = held[ends[:-1]]
    weight, f, y = (np.add.reduceat(part, blocks) for part in (mass, predicted, labels))
    x, means = f / weight, y / weight
    kept = np.append(True, np.diff(x) > 0)
    return x[kept], np.maximum.accumulate(means[kept])
