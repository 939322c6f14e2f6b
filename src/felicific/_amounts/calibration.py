r"""Calibration: what a prediction means for the label, group by group.

Labels are not averaged cell by cell, whose means would be noise: :math:`m = a_z + b_z f` with :math:`b_z \ge 0` is the
line of least squares of every group, from sums that add. A group of few rows takes the slope of all people together.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from felicific._amounts.sums import AmountSums
from felicific._policy.amount_calibration import Calibration
from felicific._program.hulls import vertices
from felicific._typing import Floats
from felicific.exceptions import DataError

Method = Literal["affine", "isotonic", "none"]

METHODS: tuple[Method, ...] = ("affine", "isotonic", "none")

#: A group of fewer people takes the slope of all people together.
FEWEST_PEOPLE = 30


def check_method(method: str) -> Method:
    """Insist on a method there is."""
    for known in METHODS:
        if method == known:
            return known
    raise DataError(f"calibration={method!r}.", f"Choose one of {', '.join(map(repr, METHODS))}.")


def calibrate(sums: AmountSums, method: Method, *, see_group: bool = True) -> Calibration:
    """Fit the lines; where the group may not be seen, one for all people together."""
    n_groups = len(sums.groups)
    ends = np.column_stack([sums.ends[:, 0], np.maximum(sums.ends[:, 1], sums.ends[:, 0])])
    if method == "none" or sums.labels is None:
        identity = np.array([sums.scale.low, sums.scale.low + max(sums.scale.width, 1.0)])
        return Calibration(((identity, identity),) * n_groups)
    moments = np.column_stack(
        [sums.people, sums.predicted.sum(axis=1), sums.labels.sum(axis=1), sums.squares]
    )
    pooled = moments.sum(axis=0)
    if not see_group:
        if method == "isotonic":
            line = _isotonic(sums.mass.sum(axis=0), sums.predicted.sum(axis=0), sums.labels.sum(axis=0))
        else:
            line = _line(*_fit(pooled), float(ends[:, 0].min()), float(ends[:, 1].max()))
        falling = tuple(range(n_groups)) if _slope(pooled) <= 0 else ()
        return Calibration((line,) * n_groups, falling)
    lines, falling_groups = [], []
    for z in range(n_groups):
        few = sums.people[z] < FEWEST_PEOPLE
        slope = _slope(pooled) if few else _slope(moments[z])
        if slope <= 0 and sums.ends[z, 0] < sums.ends[z, 1]:
            falling_groups.append(z)
        if method == "isotonic" and not few:
            lines.append(_isotonic(sums.mass[z], sums.predicted[z], sums.labels[z]))
            continue
        weight, f, y = moments[z, :3]
        b = max(slope, 0.0)
        lines.append(_line(y / weight - b * f / weight, b, *ends[z].tolist()))
    return Calibration(tuple(lines), tuple(falling_groups))


def _slope(moments: Floats) -> float:
    """The slope of least squares, from sums of 1, f, y, f f, f y, y y; 0 where all predictions are alike."""
    weight, f, y, ff, fy, _ = moments.tolist()
    spread = ff - f * f / weight
    return (fy - f * y / weight) / spread if spread > 1e-12 * ff else 0.0


def _fit(moments: Floats) -> tuple[float, float]:
    slope = max(_slope(moments), 0.0)
    weight, f, y = moments[:3].tolist()
    return y / weight - slope * f / weight, slope


def _line(a: float, b: float, low: float, high: float) -> tuple[Floats, Floats]:
    """The corners of a straight line, as far apart as the predictions are."""
    x = np.array([low, high if high > low else low + 1.0])
    return x, a + b * x


def _isotonic(mass: Floats, predicted: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Centred isotonic regression over the bins: a corner at the mean of every block of equal means."""
    held = np.flatnonzero(mass)
    sums = [np.append(0.0, part[held].cumsum()) for part in (mass, labels)]
    _, ends = vertices(sums[0][None], sums[1][None])
    blocks = held[ends[:-1]]
    edges = np.append(blocks, len(mass))
    weight, f, y = (
        np.array([part[low:high].sum() for low, high in zip(edges[:-1], edges[1:], strict=True)])
        for part in (mass, predicted, labels)
    )
    x, means = f / weight, y / weight
    kept = np.append(True, np.diff(x) > 0)
    return x[kept], np.maximum.accumulate(means[kept])
