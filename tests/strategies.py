"""Hypothesis strategies: random people, their happiness, and what may be required of a policy.

Numbers are drawn from coarse grids, so that ties, empty cells and degenerate programs are common, and units and
offsets are applied afterwards: ``unit * (offset + effect)``, rounded as floats are. The oracle sees exactly the
rounded numbers.
"""

import numpy as np
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import Rows, UncertifiedError, best_regret, conflict_depth, least_gap

from felicific import Happiness, Score, aggregate

#: For tests whose people take long to make: how many are made is for the profile to say (``conftest.py``).
examples = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)

N_CLASSES, N_GROUPS, N_MEASURES = st.integers(2, 5), st.integers(2, 6), st.integers(1, 3)
SOFT, ONE, ZERO = st.booleans(), st.just(1.0), st.just(0.0)
UNITS = st.sampled_from([1.0, 1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9])
OFFSETS = st.sampled_from([0.0, 1.0, -7.0, 1e3, -1e6, 1e9, -1e9])
#: A requirement as a multiple of something that the instance itself reaches.
FRACTIONS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5])


def small_ints(shape, low, high):
    """Arrays of small integers, element by element."""
    return arrays(np.int64, shape, elements=st.integers(low, high), fill=st.nothing())


@st.composite
def probabilities(draw, n, n_classes):
    """Rows of multiples of 1/64 that sum to one exactly, zeros and ones included."""
    cuts = np.sort(draw(small_ints((n, n_classes - 1), 0, 64)), axis=1)
    edges = np.hstack([np.zeros((n, 1)), cuts, np.full((n, 1), 64)])
    return np.diff(edges, axis=1) / 64


@st.composite
def weights(draw, n):
    """Nothing said, whole numbers, or fractions that floats cannot hold exactly."""
    kind = draw(st.sampled_from(["none", "whole", "fraction"]))
    if kind == "none":
        return np.ones(n)
    counts = draw(small_ints(n, 1, 5)).astype(float)
    return counts if kind == "whole" else counts * 0.1


@st.composite
def costs(draw, label, n_classes):
    """The loss as felicific is given it ("error", a matrix, or None for a function), and per person."""
    kind = draw(st.sampled_from(["error", "matrix", "function"]))
    if kind == "error":
        return "error", (np.arange(n_classes) != label[:, None]).astype(float)
    if kind == "matrix":
        matrix = draw(small_ints((n_classes, n_classes), -2, 8)) / 4
        return matrix, matrix[label]
    return None, draw(small_ints((len(label), n_classes), -2, 8)) / 4


@st.composite
def populations(
    draw,
    n_classes=N_CLASSES,
    n_groups=N_GROUPS,
    n_measures=N_MEASURES,
    soft=SOFT,
    unit=ONE,
    offset=ZERO,
    every_label=False,
    extra=12,
):
    """Draw ``(rows, loss)``: people for the oracle, and the ``loss`` argument that means ``rows.cost``.

    With ``every_label`` each group has somebody of each label.
    """
    K, G, J = draw(n_classes), draw(n_groups), draw(n_measures)
    more = draw(st.integers(0, extra))
    if every_label:
        group = np.concatenate([np.repeat(np.arange(G), K), draw(small_ints(more, 0, G - 1))])
        label = np.concatenate([np.tile(np.arange(K), G), draw(small_ints(more, 0, K - 1))])
    else:
        group = np.concatenate([np.arange(G), np.arange(G), draw(small_ints(more, 0, G - 1))])
        label = draw(small_ints(len(group), 0, K - 1))
    n = len(group)
    score = draw(probabilities(n, K))
    effect = draw(small_ints((n, K, J), -8, 8)) / 4
    units = np.array([draw(unit) for _ in range(J)])
    offsets = np.array([draw(offset) for _ in range(J)])
    among = draw(arrays(np.bool_, (n, J))) if draw(st.booleans()) else np.ones((n, J), bool)
    among[:G] = True
    if every_label:
        among[: G * K : K] = True
    loss, cost = draw(costs(label, K))
    weight = draw(weights(n))
    for j in range(J):
        # What no decision changes for anybody is refused, and has tests of its own.
        counted = np.flatnonzero(among[:, j] & (weight > 0))
        if len(counted) and (effect[counted, :, j] == effect[counted, :1, j]).all():
            effect[counted[0], -1, j] += 0.25
    rows = Rows(
        n_classes=K,
        n_groups=G,
        group=group,
        label=label,
        predicted=score.argmax(axis=1),
        score=score,
        weight=weight,
        eta=units * (offsets + effect),
        among=among,
        cost=cost,
        soft=draw(soft),
    )
    return rows, loss


class Column:
    """Happiness or loss that was written down beforehand: column ``name``, decision, of the table."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, decision, x):
        return x[f"{self.__name__}_{decision}"]


class Among:
    """Membership that was written down beforehand."""

    def __init__(self, j):
        self.j = j

    def __call__(self, x):
        return x[f"among{self.j}"]


def table_of(rows):
    """Everything about the people as columns, by name."""
    columns = {"group": rows.group, "label": rows.label, "predicted": rows.predicted, "weight": rows.weight}
    for d in range(rows.n_classes):
        columns[f"proba{d}"] = rows.score[:, d]
        columns[f"loss_{d}"] = rows.cost[:, d]
        for j in range(rows.n_measures):
            columns[f"eta{j}_{d}"] = rows.eta[:, d, j]
    for j in range(rows.n_measures):
        columns[f"among{j}"] = rows.among[:, j]
    return columns


def measures_of(rows):
    """The measures eta0, eta1, ... that read :func:`table_of`."""
    return [
        Happiness(Column(f"eta{j}"), among=None if rows.among[:, j].all() else Among(j))
        for j in range(rows.n_measures)
    ]


def aggregates_of(rows, loss=None, **changes):
    """Aggregates of the people, as felicific computes them from a dict of arrays."""
    arguments = {
        "score": [f"proba{d}" for d in range(rows.n_classes)],
        "y": "label",
        "sensitive_features": "group",
        "happiness": measures_of(rows),
        "policy": "soft-label" if rows.soft else "label",
        "loss": Column("loss") if loss is None else loss,
        "classes": range(rows.n_classes),
        "sample_weight": "weight",
    }
    return aggregate(table_of(rows), **(arguments | changes))


# ---------------------------------------------------------------------------------------------------------
# The oracle's word, where it has one

#: A conflict shallower than this (relative to the swing) is within the rounding error of the numbers given.
FEASIBLE, INFEASIBLE = 1e-13, 1e-7


def feasible_by_oracle(exact, requirements):
    """Whether some policy meets the requirements; examples on the edge, or beyond the oracle, are set aside."""
    try:
        depth = conflict_depth(exact, requirements)
        assume(depth <= FEASIBLE or depth > INFEASIBLE)
        if depth <= FEASIBLE:
            best_regret(exact, requirements)
    except UncertifiedError:
        assume(False)
    return depth <= FEASIBLE


def least_gap_by_oracle(exact, j):
    """Least gap of measure j; an example beyond the oracle is set aside."""
    try:
        return least_gap(exact, j)
    except UncertifiedError:
        assume(False)


class Amount:
    """Happiness that a decision brings, a column of the table, away from an offset."""

    def __init__(self, name, offset):
        self.__name__, self.offset = name, offset

    def __call__(self, decision, x):
        return decision * x[self.__name__] + self.offset


def _amounts(rng, how, score, y, group, unit):
    n = len(score)
    found = {
        "amount": rng.lognormal(0, 0.5, n),
        "flat": np.ones(n),
        "negative": rng.normal(0, 1, n),
        "falling": -rng.lognormal(0, 0.5, n) * (1 + score),
        "of nobody in a group": np.where(group == 0, 0.0, rng.lognormal(0, 0.5, n)),
        "label": np.where(y == 1, 1.0, -0.5),
    }[how]
    if rng.random() < 0.3:
        found = np.round(found * 2) / 2  # ties
    return unit * found * (1 + 0.3 * np.cos(group))


def world(seed, n_measures=1, monotone=None):
    """Sums of random people: few or many cells and groups, ties, constants, units, offsets, identical groups."""
    rng = np.random.default_rng(seed)
    n_groups, n = int(rng.integers(2, 12)), int(rng.integers(20, 400))
    group = np.concatenate([np.tile(np.arange(n_groups), 2), rng.integers(0, n_groups, n)])
    n, levels = len(group), int(rng.integers(2, 61))
    score = np.round(rng.random(n) * levels) / levels
    y = (rng.random(n) < (0.5 if rng.random() < 0.2 else score)).astype(int)
    unit = 10.0 ** rng.choice([-9, -6, 0, 0, 0, 3, 9])
    offset = float(rng.choice([0.0, 0.0, 0.0, 1e8 * unit]))
    kinds = ["amount", "flat", "negative", "falling", "of nobody in a group", "label"]
    table = {f"a{j}": _amounts(rng, rng.choice(kinds), score, y, group, unit) for j in range(n_measures)}
    if rng.random() < 0.15:  # two groups that are the same
        half = n // 2
        for column in (*table.values(), score, y):
            column[half : 2 * half] = column[:half]
        group = (np.arange(n) >= half).astype(int)
    free = not monotone if monotone is not None else rng.random() < 0.25
    return aggregate(
        table,
        score=score,
        y=y,
        sensitive_features=group,
        happiness={name: Amount(name, offset) for name in table},
        sample_weight=rng.choice([1.0, 2.0, 3.0], n) if rng.random() < 0.3 else None,
        policy=Score(int(rng.choice([4, 16, 64])), monotone=not free),
    ).joined()
