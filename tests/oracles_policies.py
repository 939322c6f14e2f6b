"""Naive second implementations for the policy kinds, people to try them on, and what files are tampered with.

A *unit* is whoever is decided alike: a cell of a group, a cell of everybody, or one person. The program has one
variable per unit and decision, all pairs of groups instead of a free level, and goes to
``scipy.optimize.linprog``. Nothing here imports felicific.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


# ---------------------------------------------------------------------------------------------------------
# The program


@dataclass(frozen=True)
class Units:
    """The program's numbers, per person of the whole population.

    Attributes
    ----------
    loss : array of shape (U, K)
        What deciding unit u as d adds to the loss per person.
    mean : array of shape (G, J, U, K)
        What it adds to the mean of group z, measure j.
    counted : array of shape (G, J)
        Weight inside ``among``, for budgets.
    chains : list of (before, after, d)
        Unit ``after`` may not be decided d less often than unit ``before``.
    """

    loss: np.ndarray
    mean: np.ndarray
    counted: np.ndarray
    chains: list = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """Gaps {j: width}, floors [(j, z, level)] and budgets [(j, low, high)] with None for no limit."""

    gaps: dict = field(default_factory=dict)
    floors: tuple = ()
    budgets: tuple = ()

    def without(self, kind, position):
        """The same with one requirement fewer."""
        parts = {"gaps": dict(self.gaps), "floors": list(self.floors), "budgets": list(self.budgets)}
        del parts[kind][position]
        return Asked(parts["gaps"], tuple(parts["floors"]), tuple(parts["budgets"]))


def limits_of(units, asked):
    """Every requirement as rows ``a . q <= b``."""
    G, J = units.mean.shape[:2]
    flat = units.mean.reshape(G, J, -1)
    rows = []
    for j, width in asked.gaps.items():
        rows += [(flat[a, j] - flat[b, j], width) for a, b in permutations(range(G), 2)]
    rows += [(-flat[z, j], -level) for j, z, level in asked.floors]
    for j, low, high in asked.budgets:
        share = units.counted[:, j] / units.counted[:, j].sum()
        together = sum(share[z] * flat[z, j] for z in range(G))
        if high is not None:
            rows.append((together, high))
        if low is not None:
            rows.append((-together, -low))
    return rows


def _linear_program(units, asked, elastic):
    U, K = units.loss.shape
    limits = limits_of(units, asked)
    matrix = np.zeros((len(limits) + len(units.chains), U * K + elastic))
    side = np.zeros(len(matrix))
    for r, (row, bound) in enumerate(limits):
        matrix[r, : U * K], side[r] = row, bound
        if elastic:
            matrix[r, -1] = -1.0
    for r, (before, after, d) in enumerate(units.chains, start=len(limits)):
        matrix[r, before * K + d], matrix[r, after * K + d] = 1.0, -1.0
    one = np.zeros((U, U * K + elastic))
    for u in range(U):
        one[u, u * K : (u + 1) * K] = 1.0
    found = linprog(
        np.append(np.zeros(U * K), 1.0) if elastic else units.loss.ravel(),
        A_ub=csr_matrix(matrix) if len(matrix) else None,
        b_ub=side if len(matrix) else None,
        A_eq=csr_matrix(one),
        b_eq=np.ones(U),
        bounds=(0, None),
        method="highs",
        options=TIGHT,
    )
    assert found.status in (0, 2), found.message
    return None if found.status == 2 else float(found.fun)


def least_loss(units, asked):
    """The optimum, or None when nothing meets what is asked."""
    return _linear_program(units, asked, elastic=False)


def least_excess(units, asked):
    """The least t by which all requirements together have to be widened."""
    return _linear_program(units, asked, elastic=True)


def least_gap(units, j):
    """The least gap of measure j alone."""
    return least_excess(units, Asked(gaps={j: 0.0}))


def person_units(cost, value, among, weight, group, n_groups, blind=False):
    """One unit per person: cost (n, K), value (n, K, Z, J), among (n, Z, J), Z = 1 or, if blind, all groups."""
    n, K = cost.shape
    J = value.shape[3]
    counted = np.zeros((n_groups, J))
    mean = np.zeros((n_groups, J, n, K))
    for i in range(n):
        for z in range(n_groups):
            if blind or group[i] == z:
                counted[z] += weight[i] * among[i, z if blind else 0]
    for i in range(n):
        for z in range(n_groups):
            if blind or group[i] == z:
                for j in range(J):
                    mean[z, j, i] = weight[i] * value[i, :, z if blind else 0, j] / counted[z, j]
    return Units(cost * weight[:, None] / weight.sum(), mean, counted)


def cell_units(cost, value, among, weight, group, cell, n_groups, n_cells, chains=(), blind=False):
    """One unit per (group, cell), or per cell if blind; value (n, K, J), among (n, J), person by person.

    ``chains`` are lists of cells in order with the decision that may not fall along them; cells without
    people are left out, as they bind nobody.
    """
    n, K = cost.shape
    J = value.shape[2]
    size = n_cells if blind else n_groups * n_cells
    loss, mean = np.zeros((size, K)), np.zeros((n_groups, J, size, K))
    counted, mass = np.zeros((n_groups, J)), np.zeros(size)
    for i in range(n):
        u = cell[i] if blind else group[i] * n_cells + cell[i]
        mass[u] += weight[i]
        loss[u] += weight[i] * cost[i]
        counted[group[i]] += weight[i] * among[i]
        for j in range(J):
            mean[group[i], j, u] += weight[i] * among[i, j] * value[i, :, j]
    pairs = []
    for block in range(1 if blind else n_groups):
        for line, d in chains:
            held = [block * n_cells + s for s in line if mass[block * n_cells + s] > 0]
            pairs += [(before, after, d) for before, after in pairwise(held)]
    return Units(loss / weight.sum(), mean / counted[:, :, None, None], counted, pairs)


# ---------------------------------------------------------------------------------------------------------
# Scores and cells, one person at a time


def fine_bin(p, boundary):
    """Fine bin of a score, in exact arithmetic."""
    return math.ceil(4096 * Fraction(float(p))) + int(p > boundary)


def fine_bin_of_many(score):
    """Fine bin of one person's probabilities of three classes or more."""
    best = max(range(len(score)), key=lambda k: (score[k], -k))
    fine = max(32, 4096 // len(score))
    return best * (fine + 1) + min(math.ceil(fine * score[best]), fine)


def bins_of(score, boundary=0.5):
    """Fine bin of every person."""
    if score.shape[1] == 2:
        return np.array([fine_bin(p, boundary) for p in score[:, 1].tolist()], dtype=int)
    return np.array([fine_bin_of_many(line) for line in score.tolist()], dtype=int)


def cells_of(score, cuts, boundary=0.5):
    """Cell of every person: how many cuts are not above the bin."""
    return np.array([sum(cut <= b for cut in cuts) for b in bins_of(score, boundary)], dtype=int)


def chains_of(cuts, n_classes):
    """Cells in the order of the score with the decision that may not fall along them."""
    starts = [0, *cuts]
    if n_classes == 2:
        return [(list(range(len(starts))), 1)]
    fine = max(32, 4096 // n_classes)
    return [([s for s, b in enumerate(starts) if b // (fine + 1) == k], k) for k in range(n_classes)]


# ---------------------------------------------------------------------------------------------------------
# What decisions do


def outcome_of(decisions, cost, value, among, weight, group, n_groups):
    """Loss, means (G, J) and gaps (J,) of decision probabilities, summed exactly, person by person."""
    n, K = decisions.shape
    J = value.shape[2]
    loss = math.fsum(weight[i] * decisions[i, d] * cost[i, d] for i in range(n) for d in range(K))
    means = np.zeros((n_groups, J))
    for z in range(n_groups):
        for j in range(J):
            mine = [i for i in range(n) if group[i] == z and among[i, j]]
            total = math.fsum(weight[i] * decisions[i, d] * value[i, d, j] for i in mine for d in range(K))
            means[z, j] = total / math.fsum(weight[i] for i in mine)
    return loss / math.fsum(weight), means, means.max(axis=0) - means.min(axis=0)


# ---------------------------------------------------------------------------------------------------------
# People, and a model that says exactly what it is told to


class Told(ClassifierMixin, BaseEstimator):
    """Probabilities are the columns p0, p1, ... of the table; decides the likeliest class, or by a threshold.

    Unlike a fitted model its answer about a person does not depend, not even in the last digit, on who else is
    asked about.
    """

    def __init__(self, n_classes=2, threshold=None, dtype=float):
        self.n_classes = n_classes
        self.threshold = threshold
        self.dtype = dtype

    def fit(self, X, y):
        self.classes_ = np.arange(self.n_classes)
        self.feature_names_in_ = np.array([f"p{k}" for k in range(self.n_classes)], dtype=object)
        return self

    def predict_proba(self, X):
        return np.column_stack([X[f"p{k}"].to_numpy() for k in range(self.n_classes)]).astype(self.dtype)

    def predict(self, X):
        score = self.predict_proba(X)
        if self.threshold is None:
            return self.classes_[score.argmax(axis=1)]
        return (score[:, 1] >= self.threshold).astype(int)


def make_people(n=400, n_classes=2, n_groups=2, seed=0, coarse=0):
    """People of groups "a", "b", ...: probabilities that differ by group, labels, loans of whole dollars, ids.

    ``coarse`` rounds the probabilities to that many steps, so that many people are alike.
    """
    rng = np.random.default_rng(seed)
    code = np.concatenate([np.repeat(np.arange(n_groups), n_classes), rng.integers(0, n_groups, n)])[:n]
    tilt = rng.normal(size=(n, n_classes)) + 0.5 * np.arange(n_classes) * code[:, None]
    score = np.exp(tilt) / np.exp(tilt).sum(axis=1, keepdims=True)
    if coarse:
        edges = np.round(score.cumsum(axis=1) * coarse) / coarse
        edges[:, -1] = 1.0
        score = np.diff(edges, axis=1, prepend=0.0).clip(min=0.0)
    y = (rng.random((n, 1)) > score.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    y[: n_groups * n_classes] = np.tile(np.arange(n_classes), n_groups)[:n]
    table = pd.DataFrame({f"p{k}": score[:, k] for k in range(n_classes)})
    table["loan"] = rng.integers(1, 60, n).astype(float)
    table["wealth"] = rng.normal(size=n)
    table["group"] = np.array([chr(97 + z) for z in range(n_groups)])[code]
    table["id"] = [f"person {i}" for i in range(n)]
    return table, y


def codes(column):
    """Positions of the groups in their sorted order."""
    return np.unique(np.asarray(column), return_inverse=True)[1]


def proba_of(table, n_classes):
    """The probabilities that :class:`Told` reads."""
    return np.column_stack([table[f"p{k}"] for k in range(n_classes)])


# ---------------------------------------------------------------------------------------------------------
# Files


def tampered(text, change):
    """The file after ``change``, with the checksum that belongs to it; infinite numbers as JSON writes them."""
    content = json.loads(text)
    change(content)
    content.pop("sha256")
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
    return json.dumps(content).replace("Infinity", "1e999")


def put(*path):
    """A change that puts the last of these where the others point to."""
    *steps, last, value = path

    def change(content):
        for step in steps:
            content = content[step]
        content[last] = value

    return change
