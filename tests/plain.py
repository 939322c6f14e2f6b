"""The linear program as the reference for what finds its answers without one, and random sums for both."""

from unittest.mock import patch

import numpy as np

from felicific import Score, aggregate
from felicific._frontier import breakpoints
from felicific._program import solution
from felicific._program.program import Program


def plain(ask):
    """What the linear program answers, without hulls."""
    with (
        patch.object(solution, "one_gap", lambda *_: None),
        patch.object(solution, "unasked", lambda *_: None),
        patch.object(breakpoints, "one_gap", lambda *_: None),
    ):
        return ask()


def solve_plainly(sums, requirements, **options):
    return plain(lambda: solution.solve_program(sums, requirements, **options))


def distances(sums, found, **options):
    """What was minimised in units of the program, and how far the policy is from the baseline's decisions."""
    program = Program.of(sums, **options)
    tables = found.q if options.get("sees_group", True) else found.q[:1]
    held, unit = program.occupied, program.cost_scale or 1.0
    return program.value(found.q) / unit, float((tables * program.changes)[held].sum())


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
