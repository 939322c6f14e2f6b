"""Calibration: probabilities that mean what they say, group by group."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from felicific._program.hulls import vertices
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError

#: A group with fewer rows keeps the model's own probabilities.
FEWEST_ROWS = 30

#: Rates that differ by less are one, but for rounding.
ALIKE = 1e-12


@dataclass(frozen=True)
class Calibration:
    """For every group and class, a curve from the model's probability to the calibrated one.

    ``knots[z][k]`` holds the corners of a piecewise linear curve; with two classes only that of the second is
    used. Group ``z`` is 0 for everybody when the policy does not see the group.
    """

    knots: tuple[tuple[tuple[Floats, Floats], ...], ...] = field(repr=False)

    def apply(self, score: Floats, group: Codes) -> Floats:
        """Calibrated probabilities of every class, of the shape of ``score``."""
        if len(group) and int(group.max()) >= len(self.knots):
            raise DataError("A group has no calibration.", "Fit the policy on people of every group.")
        calibrated = np.empty_like(score)
        for z, curves in enumerate(self.knots):
            rows = np.flatnonzero(group == z)
            part = score[rows]
            if score.shape[1] == 2:
                second = np.interp(part[:, 1], *curves[1])
                calibrated[rows] = np.column_stack([1.0 - second, second])
                continue
            found = np.column_stack([np.interp(part[:, k], *curve) for k, curve in enumerate(curves)])
            total = found.sum(axis=1, keepdims=True)
            calibrated[rows] = np.where(total > 0, found / np.where(total > 0, total, 1.0), part)
        return calibrated


def fit_calibration(
    method: str, score: Floats, labels: Codes, group: Codes, n_groups: int, weight: Floats
) -> Calibration:
    """Fit one curve per group and class; of two classes, what is not the second one is the first."""
    knots, classes = [], range(score.shape[1])
    for z in range(n_groups):
        rows = np.flatnonzero(group == z)
        curves = []
        for k in classes if len(classes) > 2 else classes[1:]:
            hit = (labels[rows] == k).astype(np.float64)
            curves.append(fit_curve(method, score[rows, k], hit, weight[rows]))
        if len(classes) == 2:
            curves.insert(0, (1.0 - curves[0][0][::-1], 1.0 - curves[0][1][::-1]))
        knots.append(tuple(curves))
    return Calibration(tuple(knots))


def fit_curve(method: str, score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """One curve from scores to how often they are right; too few people keep their scores."""
    if method == "none" or weight.sum() < FEWEST_ROWS:
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    return (_isotonic if method == "isotonic" else _sigmoid)(score, hit, weight)


def _isotonic(score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Centred isotonic regression: each pooled block is one knot, at its mean score.

    Between the knots the curve is linear. Unlike the usual staircase it has no flat steps, so two people with
    different scores are not tied and fewer of them face a lottery. Blocks are the edges of the lower convex hull of
    hits against weights, both summed along the score.
    """
    order = np.argsort(score)
    score, weight = score[order], weight[order]
    hits = weight * hit[order]
    levels = np.flatnonzero(np.diff(score, prepend=-np.inf))
    levels = levels[_rises(weight, hits, levels)]  # no block begins at the others
    sums = [np.append(0.0, np.add.reduceat(part, levels).cumsum()) for part in (weight, hits)]
    _, ends = vertices(sums[0][None], sums[1][None])
    blocks = levels[ends[:-1]]
    blocks = blocks[_rises(weight, hits, blocks)]
    mass, right, total = (np.add.reduceat(part, blocks) for part in (weight, hits, weight * score))
    return total / mass, np.minimum(right / mass, 1.0)


def _rises(weight: Floats, hits: Floats, blocks: Codes) -> Truths:
    """Where more are right than in the block before; the first one counts."""
    rate = np.add.reduceat(hits, blocks) / np.add.reduceat(weight, blocks)
    return np.asarray(np.diff(rate, prepend=-np.inf) > ALIKE)


def _sigmoid(score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Platt's logistic curve of the log-odds, as a fine piecewise linear one."""
    from sklearn.linear_model import LogisticRegression

    grid = np.linspace(0.0, 1.0, 2049)
    if hit.min() == hit.max():
        return grid, np.full(len(grid), hit[0])
    model = LogisticRegression(C=1e6).fit(_log_odds(score), hit, sample_weight=weight)
    return grid, model.predict_proba(_log_odds(grid))[:, 1]


def _log_odds(score: Floats) -> Floats:
    inside = score.clip(1e-6, 1 - 1e-6)
    return np.log(inside / (1.0 - inside))[:, None]
