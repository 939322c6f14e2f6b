"""A naive second implementation of missing labels: the expanded table, debiased label weights, bounds by brute force.

A missing label is a distribution over labels. Labels are codes 0 .. K-1, and :data:`MISSING` where there is none; ``m``
are the probabilities of every label, an array (n, K); ``omega`` is how many unlabelled people a labelled one is for.
Nothing here is additive, clever or shared with the library, and the bounds try every vertex there is.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import t as student

MISSING = -1

#: Probabilities are taken from a model as they are, but for those whose logarithm is no number to fit with.
SMALLEST = 1e-9


def omega_of(label, probabilities):
    """(1 - e) / e of the labelled, 0 of everybody else."""
    return np.where(label == MISSING, 0.0, (1.0 - probabilities) / probabilities)


def one_hot(label, classes):
    """1 at the label; rows of zeros where it is missing."""
    return (label[:, None] == np.arange(classes)).astype(float)


# ---------------------------------------------------------------------------------------------------------
# The distribution of a missing label


@dataclass(frozen=True)
class Curves:
    """softmax(a + b log p), one (a, b) a group: ``a`` has an entry for each class, the first 0; ``b`` is a number."""

    of: dict[Any, tuple[np.ndarray, float]]

    def __call__(self, score, group):
        """The probability of every label, of people of these probabilities and groups."""
        logs, found = np.log(np.clip(score, SMALLEST, None)), np.full(score.shape, np.nan)
        for name, (a, b) in self.of.items():
            rows = group == name
            found[rows] = softmax(a + b * logs[rows])
        return found


def softmax(logits):
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def curves(score, label, group, weight, *, penalty=0.0, slope=True):
    """Fit m group by group, on labelled rows of this weight (w times omega), by maximal likelihood.

    Intercepts are free, so that the weighted labels and m agree in sum. ``penalty`` is that of (b - 1)^2 / 2, in
    labels: weights are first scaled to sum to the effective number of labels. ``slope=False`` leaves b at 1.
    """
    found = {}
    for name in np.unique(group):
        rows = (group == name) & (label != MISSING) & (weight > 0)
        if not rows.any():  # nobody to learn from: the model's own
            found[name] = np.zeros(score.shape[1]), 1.0
            continue
        found[name] = _newton(
            np.log(np.clip(score[rows], SMALLEST, None)),
            one_hot(label[rows], score.shape[1]),
            effective(weight[rows]) * weight[rows] / weight[rows].sum(),
            penalty,
            slope,
        )
    return Curves(found)


@dataclass(frozen=True)
class Shares:
    """For a policy that sees the predicted label alone: the labels' shares, by group and predicted label."""

    of: dict[Any, np.ndarray]

    def __call__(self, score, group):
        """The probability of every label, of people of these probabilities and groups."""
        return np.array([self.of[one, k] for one, k in zip(group, score.argmax(axis=1), strict=True)])


def shares(score, label, group, weight):
    """Sum up labels by these weights (w times omega); where nobody is seen, the group's own."""
    found, truth = {}, one_hot(label, score.shape[1]) * weight[:, None]
    for name in np.unique(group):
        mine = group == name
        for k in range(score.shape[1]):
            sums = truth[mine & (score.argmax(axis=1) == k)].sum(axis=0)
            sums = sums if sums.sum() > 0 else truth[mine].sum(axis=0)
            found[name, k] = sums / sums.sum()
    return Shares(found)


def effective(weight):
    """How many equally weighted rows tell as much."""
    return weight.sum() ** 2 / (weight**2).sum()


def _newton(logs, truth, weight, penalty, slope):
    n, classes = logs.shape
    features = np.zeros(
        (n, classes, classes)
    )  # of row i and class k: an indicator of each class but the first, log p
    for k in range(1, classes):
        features[:, k, k - 1] = 1.0
    features[:, :, -1] = logs
    free = classes if slope else classes - 1
    theta = np.append(np.zeros(classes - 1), 1.0)

    def gained(at):
        chances = softmax(features @ at)
        likely = np.log(np.clip(np.where(truth > 0, chances, 1.0), 1e-300, None)).sum(axis=1)
        return (weight * likely).sum() - penalty * (at[-1] - 1.0) ** 2 / 2.0, chances

    value, m = gained(theta)
    for _ in range(100):
        gradient = np.einsum("i,ik,ikj->j", weight, truth - m, features)
        gradient[-1] -= penalty * (theta[-1] - 1.0)
        mean = np.einsum("ik,ikj->ij", m, features)
        hessian = np.einsum("i,ik,ikj,ikl->jl", weight, m, features, features)
        hessian -= np.einsum("i,ij,il->jl", weight, mean, mean)
        hessian[-1, -1] += penalty
        if np.abs(gradient[:free]).max() < 1e-10 * n:
            break
        step = np.zeros(classes)
        # The ridge lets labels that are parted perfectly move on instead of dividing by nothing.
        step[:free] = np.linalg.solve(hessian[:free, :free] + 1e-9 * np.eye(free), gradient[:free])
        step *= min(1.0, 5.0 / max(np.abs(step).max(), 1e-300))
        while True:
            new, chances = gained(theta + step)
            if new >= value - 1e-12 or np.abs(step).max() < 1e-12:
                break
            step /= 2.0
        theta, value, m = theta + step, new, chances
    return np.append(0.0, theta[:-1]), float(theta[-1])


# ---------------------------------------------------------------------------------------------------------
# The expanded table


def expanded(columns, label, weight, m):
    """Every unlabelled row K times, with each label, at weight w m_k; a labelled one once.

    Returns the columns, the labels, the weights, and which row each one is of.
    """
    rows, labels, weights = [], [], []
    for i, (k, w) in enumerate(zip(label.tolist(), weight.tolist(), strict=True)):
        for one in range(m.shape[1]) if k == MISSING else (k,):
            rows.append(i)
            labels.append(one)
            weights.append(w * m[i, one] if k == MISSING else w)
    at = np.array(rows)
    return {name: column[at] for name, column in columns.items()}, np.array(labels), np.array(weights), at


# ---------------------------------------------------------------------------------------------------------
# What is measured: debiased label weights, intervals


def psi(label, m, omega, tilt=None):
    """What each label of each person counts for: o 1{y=k} + (1-o) u_k + omega (t_k r_k - u_k sum t r) / sum(m t).

    ``tilt`` is t, the factors by which the odds of labels of the unlabelled are raised; without it, 1.
    """
    t = np.ones_like(m) if tilt is None else tilt
    total = (m * t).sum(axis=1, keepdims=True)
    u = m * t / total
    seen = label != MISSING
    r = np.where(seen[:, None], one_hot(label, m.shape[1]) - m, 0.0)
    debias = omega[:, None] * (t * r - u * (t * r).sum(axis=1, keepdims=True)) / total
    return np.where(seen[:, None], one_hot(label, m.shape[1]), u) + debias


def t_interval(values, level=0.95):
    """Mean and both ends, by t with as many degrees of freedom as squares of centred values carry."""
    mean = values.mean()
    squares = (values - mean) ** 2
    df = squares.sum() ** 2 / (squares**2).sum()
    half = student.ppf(0.5 + level / 2.0, df) * np.sqrt(squares.sum() / (len(values) - 1) / len(values))
    return mean, mean - half, mean + half


# ---------------------------------------------------------------------------------------------------------
# Reasons outside the table: every vertex


def tilts(classes, max_odds_ratio):
    """All vertices of [1, G]^K."""
    return [np.array(one) for one in product((1.0, max_odds_ratio), repeat=classes)]


def tilted(m, tilt):
    """The distribution of one person's label when odds are raised by these factors."""
    return m * tilt / (m * tilt).sum()


def distributions(m, max_odds_ratio):
    """All vertices of how the label of one unlabelled person can be distributed; any label if nothing is assumed."""
    if np.isinf(max_odds_ratio):
        return list(np.eye(len(m)))
    return [tilted(m, tilt) for tilt in tilts(len(m), max_odds_ratio)]


def worst(m, values, max_odds_ratio):
    """The largest mean of values (one a label) of one unlabelled person."""
    return max(float(u @ values) for u in distributions(m, max_odds_ratio))


def worst_tilt(m, values, max_odds_ratio):
    """The tilt of every person that makes the mean of their values (n, K) largest; of several the first."""
    found = np.empty_like(m)
    for i in range(len(m)):
        found[i] = max(tilts(m.shape[1], max_odds_ratio), key=lambda t: float(tilted(m[i], t) @ values[i]))
    return found


def rate_bounds(label, m, weight, value, among, max_odds_ratio):
    """Least and largest sum w value / sum w among, over every vertex of every unlabelled person: for few people only.

    ``value`` and ``among`` are arrays (n, K), of each person at each label.
    """
    ends = [
        [np.eye(m.shape[1])[k]] if k != MISSING else distributions(m[i], max_odds_ratio)
        for i, k in enumerate(label.tolist())
    ]
    rates = []
    for chosen in product(*ends):
        u = np.array(chosen) * weight[:, None]
        if (u * among).sum() > 0:
            rates.append((u * value).sum() / (u * among).sum())
    return min(rates), max(rates)


def rate_end(label, m, weight, value, among, max_odds_ratio, omega, *, highest=True, rounds=100):
    """One end of a conditional rate of many people by Dinkelbach: the rate, and the values of its linearised error.

    The tilt raises value - H among where it is large, H is the rate under that tilt, until both agree.
    """
    sign = 1.0 if highest else -1.0
    rate = None
    for _ in range(rounds):
        values = value - (0.0 if rate is None else rate) * among
        tilt = np.ones_like(m) if rate is None else sorted_tilt(m, sign * values, max_odds_ratio)
        p = psi(label, m, omega, tilt) * weight[:, None]
        new = (p * value).sum() / (p * among).sum()
        if rate is not None and abs(new - rate) < 1e-12:
            break
        rate = new
    error = (p * (value - rate * among)).sum(axis=1) / (p * among).sum() * len(m)
    return rate, error


def sorted_tilt(m, values, max_odds_ratio):
    """As :func:`worst_tilt`, all people at once: raise the k largest values, for the best k."""
    order = np.argsort(-values, axis=1, kind="stable")
    best, found = np.full(len(m), -np.inf), np.ones_like(m)
    for k in range(m.shape[1]):
        tilt = np.ones_like(m)
        np.put_along_axis(tilt, order[:, :k], max_odds_ratio, axis=1)
        mean = (m * tilt * values).sum(axis=1) / (m * tilt).sum(axis=1)
        better = mean > best + 1e-15
        best, found = np.where(better, mean, best), np.where(better[:, None], tilt, found)
    return found
