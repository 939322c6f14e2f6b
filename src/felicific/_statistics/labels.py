r"""Labels that are missing: how likely each is, and the worst that can be of it.

With p the model's probabilities and C the weight of people by label, the chances of the labels are

.. math:: m_k = \frac{e^{a_k} p_k^b}{\sum_l e^{a_l} p_l^b}

with a and b of greatest likelihood, so that :math:`\sum_i C_i (1\{y_i = k\} - m_{ik}) = 0` for every label k.

Where reasons outside the table may change the odds of having a label at most G-fold, the chances of those who have none
are :math:`u_k = m_k t_k / \sum_l m_l t_l` with every t between 1 and G. What is linear in u is largest where t is G for
the labels of which there is most, and 1 for the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from felicific._typing import Codes, Floats, Truths

#: Probabilities are taken to be at least this far from 0 and 1.
EDGE = 1e-6

#: How much the slope is drawn to 1, and those of chances of a label to 0: as much as one person's worth of evidence.
PULL = 1.0

#: Steps of Newton's method, and when it has arrived.
STEPS, ARRIVED = 100, 1e-13


def log_shares(score: Floats) -> Floats:
    """Logarithms of probabilities, of shape (n, K)."""
    return np.log(np.clip(score, EDGE, 1.0 - EDGE))


@dataclass(frozen=True)
class LabelCurve:
    """From the model's probabilities to the chances of the labels; a shift of minus infinity is a label nobody has."""

    shift: tuple[float, ...]
    slope: float

    def chances(self, score: Floats) -> Floats:
        """Chances of every label, of the shape of ``score``."""
        return _softmax(np.array(self.shift) + self.slope * log_shares(score))


def fit_curve(score: Floats, counts: Floats, effective: float) -> LabelCurve:
    """The curve of greatest likelihood, from weights of shape (n, K) that tell as much as ``effective`` people."""
    total = counts.sum(axis=0)
    held = np.flatnonzero(total > 0)
    shift = np.full(score.shape[1], -math.inf)
    shift[held] = 0.0
    if len(held) < 2:
        return LabelCurve(tuple(shift.tolist()), 1.0)
    logs, weights = log_shares(score)[:, held], counts[:, held] * (effective / total.sum())
    n, k = logs.shape
    # The design: a shift for every label but the first, then the slope.
    design = np.zeros((n, k, k))
    for label in range(1, k):
        design[:, label, label - 1] = 1.0
    design[:, :, k - 1] = logs
    centre = np.zeros(k)
    centre[-1] = 1.0
    pull = np.zeros(k)
    pull[-1] = PULL
    found = _newton(design, weights, centre, pull)
    if found[-1] < 0.0:  # the model has it backwards: its probabilities tell nothing
        shift[held] = np.log(total[held] / total.sum())
        return LabelCurve(tuple(shift.tolist()), 0.0)
    shift[held[1:]] = found[:-1]
    return LabelCurve(tuple(shift.tolist()), float(found[-1]))


@dataclass(frozen=True)
class LabelProbaCurve:
    """From the model's probabilities to the chance of having a label."""

    shift: float
    slopes: tuple[float, ...]

    def label_proba(self, score: Floats) -> Floats:
        """The chance of each of some people."""
        if math.isinf(self.shift):
            return np.full(len(score), 1.0 if self.shift > 0 else 0.0)
        logs = log_shares(score)
        along = self.shift + (logs[:, 1:] - logs[:, :1]) @ np.array(self.slopes)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(along, -700.0, 700.0))))


def fit_label_curve(score: Floats, labelled: Floats, unlabelled: Floats) -> LabelProbaCurve:
    """The curve of greatest likelihood, from the weight of people with a label and without."""
    k = score.shape[1]
    if not labelled.sum() or not unlabelled.sum():
        return LabelProbaCurve(math.inf if labelled.sum() else -math.inf, (0.0,) * (k - 1))
    logs = log_shares(score)
    design = np.zeros((len(score), 2, k))
    design[:, 1, 0] = 1.0
    design[:, 1, 1:] = logs[:, 1:] - logs[:, :1]
    pull = np.full(k, PULL)
    pull[0] = 0.0
    found = _newton(design, np.column_stack([unlabelled, labelled]), np.zeros(k), pull)
    return LabelProbaCurve(float(found[0]), tuple(found[1:].tolist()))


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _newton(design: Floats, counts: Floats, centre: Floats, pull: Floats) -> Floats:
    """Parameters of greatest likelihood, drawn to a centre; of a design of shape (n, outcomes, parameters)."""
    held = counts.sum(axis=1) > 0
    design, counts = design[held], counts[held]
    mass, found = counts.sum(axis=1), centre.copy()

    def likelihood(place: Floats) -> float:
        scores = design @ place
        top = scores.max(axis=1)
        normal = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        fit = (counts * scores).sum() - mass @ normal
        return float(fit - (pull * (place - centre) ** 2).sum() / 2.0)

    best = likelihood(found)
    for _ in range(STEPS):
        chances = _softmax(design @ found)
        slope = np.einsum("nkp,nk->p", design, counts - mass[:, None] * chances) - pull * (found - centre)
        means = np.einsum("nkp,nk->np", design, chances)
        curvature = np.einsum("n,nk,nkp,nkq->pq", mass, chances, design, design, optimize=True)
        curvature = curvature - np.einsum("n,np,nq->pq", mass, means, means) + np.diag(pull)
        curvature += 1e-12 * max(float(np.trace(curvature)), 1e-300) * np.eye(len(found))
        step = np.linalg.solve(curvature, slope)
        for _ in range(40):  # never past the summit
            there = likelihood(found + step)
            if there >= best - 1e-12 * abs(best):
                break
            step = step / 2.0
        found, best = found + step, max(best, there)
        if np.abs(step).max() <= ARRIVED * (1.0 + np.abs(found).max()):
            break
    return found


# ---------------------------------------------------------------------------------------------------------
# What is hidden


def tilted(chances: Floats, worth: Floats, max_odds_ratio: float) -> tuple[Floats, Floats]:
    """The chances, and the t behind them, at which a sum of what labels are worth is largest; labels come last."""
    order = np.argsort(-worth, axis=-1, kind="stable")
    m, f = (np.take_along_axis(part, order, axis=-1) for part in np.broadcast_arrays(chances, worth))
    if math.isinf(max_odds_ratio):  # whatever the chances are
        found = np.zeros(m.shape)
        found[..., 0] = 1.0
        back = np.argsort(order, axis=-1)
        worst = np.take_along_axis(found, back, axis=-1)
        return worst, np.ones(worst.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        upper, mass = (m * f).cumsum(axis=-1), m.cumsum(axis=-1)
        sums = (max_odds_ratio - 1.0) * upper + upper[..., -1:]
        value = sums / ((max_odds_ratio - 1.0) * mass + mass[..., -1:])
    first = np.nan_to_num(value, nan=-math.inf).argmax(axis=-1)
    raised = np.arange(m.shape[-1]) <= first[..., None]
    t = np.take_along_axis(np.where(raised, max_odds_ratio, 1.0), np.argsort(order, axis=-1), axis=-1)
    return tilted_by(chances, t), t


def tilted_by(chances: Floats, t: Floats) -> Floats:
    """The chances that some t makes of others."""
    weighed = chances * t
    return np.asarray(weighed / weighed.sum(axis=-1, keepdims=True))


def label_weights(
    labels: Codes, chances: Floats, standing: Floats, t: Floats | None = None, worst: Floats | None = None
) -> Floats:
    r"""How much every label counts for everybody, of shape (n, K): the debiased weights of labels.

    .. math:: \psi_k = o 1\{y = k\} + (1 - o) u_k + \omega (t_k r_k - u_k \sum_l t_l r_l) / \sum_l m_l t_l

    with :math:`r_k = 1\{y = k\} - m_k`. ``labels`` are -1 where there is none (o = 0), ``chances`` are m, ``standing``
    is omega, which is 0 where there is no label. Without t and u (``worst``) nothing is hidden, and u is m; without t
    but with u nothing is assumed, and the labels of others correct nothing.
    """
    n, k = chances.shape
    known = labels >= 0
    u = chances if worst is None else worst
    truth = np.zeros((n, k))
    truth[np.flatnonzero(known), labels[known]] = 1.0
    found = np.where(known[:, None], truth, u)
    if worst is not None and t is None:
        return found
    t = np.ones((n, k)) if t is None else t
    off = t * (truth - chances)
    correction = (off - u * off.sum(axis=1, keepdims=True)) / (chances * t).sum(axis=1, keepdims=True)
    return np.asarray(found + np.where(known, standing, 0.0)[:, None] * correction)


def standing_of(label_proba: Floats, labelled: Truths) -> Floats:
    """How many people without a label each person with one stands for: (1 - e) / e, and 0 for the others."""
    held = np.where(labelled, label_proba, 1.0)
    return np.where(labelled, (1.0 - held) / held, 0.0)
