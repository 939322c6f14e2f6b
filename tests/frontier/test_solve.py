"""Frontiers of individual policies begin where their search ends; a table is no aggregates."""

import numpy as np
import pytest
from helpers import solved, traced

from felicific import Individual, aggregate, frontier, solve
from felicific.exceptions import AggregatesError, DataError


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    group, loan = rng.choice(["f", "m"], 300), rng.uniform(1, 5, 300)
    score = np.clip(rng.beta(2, 2, 300) + 0.1 * (group == "m"), 0.01, 0.99)
    return {"g": group, "loan": loan, "s": score, "y": (rng.random(300) < score).astype(int)}


ASKED = {
    "score": "s",
    "y": "y",
    "sensitive_features": "g",
    "happiness": {"fund": "decision * loan", "rate": "decision"},
}


@pytest.mark.parametrize("gap", [None, {"fund": 1.0, "rate": 0.1}])
def test_individual_policies_begin_where_solve_ends(table, gap):
    """The end of least gap loses no more than the policy that solve finds there, up to the frontier's tolerance."""
    line = traced(table, policy="individual", gap=gap, **ASKED)
    least = dict(zip(("fund", "rate"), line.ray * line.tau[0], strict=True))
    best = solved(
        table, policy="individual", gap={name: width + 1e-9 for name, width in least.items()}, **ASKED
    )
    rise = float(line.loss[0] - line.loss[-1])
    assert line.loss[0] <= best.loss + max(1e-9, line.tolerance * rise)


@pytest.mark.parametrize("door", [solve, frontier])
def test_a_table_is_no_aggregates(table, refuses, door):
    """The error says what to pass; of individual policies, who fits them."""
    with refuses(AggregatesError, "is a dict, not aggregates", remedy="aggregate(table"):
        door(table)
    for policy in ("individual", Individual("none")):
        with refuses(DataError, "looks at each of them", remedy="FairClassifier"):
            aggregate(table, policy=policy, **ASKED)
