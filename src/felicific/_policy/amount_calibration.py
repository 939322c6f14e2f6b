"""Calibrated predictions: for every group a broken line from what the model predicts to the mean label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._files import read_numbers, refused
from felicific._typing import Codes, Floats


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
