"""frontier(table, ...): the same trade-off as by aggregates and by FairClassifier, from a table in one call."""

import numpy as np
import pytest

from felicific import aggregate, frontier, solve
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


@pytest.mark.parametrize("policy", ["score", "label", "soft-label"])
def test_a_table_and_its_aggregates_have_the_same_frontier(table, policy):
    """Loss, gaps and positions of all breakpoints agree."""
    line, same = frontier(table, policy=policy, **ASKED), frontier(aggregate(table, policy=policy, **ASKED))
    assert line.tau == pytest.approx(same.tau)
    assert line.loss == pytest.approx(same.loss)
    assert line.gaps == pytest.approx(same.gaps)


@pytest.mark.parametrize("gap", [None, {"fund": 1.0, "rate": 0.1}])
def test_individual_policies_begin_where_solve_ends(table, gap):
    """The end of least gap loses no more than the policy that solve finds there, up to the frontier's tolerance."""
    line = frontier(table, policy="individual", gap=gap, **ASKED)
    least = dict(zip(("fund", "rate"), line.ray * line.tau[0], strict=True))
    best = solve(
        table, policy="individual", gap={name: width + 1e-9 for name, width in least.items()}, **ASKED
    )
    rise = float(line.loss[0] - line.loss[-1])
    assert line.loss[0] <= best.loss + max(1e-9, line.tolerance * rise)


def test_what_does_not_go_together_is_refused(table, refuses):
    """Aggregates with what belongs to a table; an individual frontier of people who are not in memory."""
    with refuses(AggregatesError, "happiness=", remedy="aggregate(...)"):
        frontier(aggregate(table, **ASKED), happiness="decision")
    pl = pytest.importorskip("polars")
    with refuses(DataError, "needs the people in memory", remedy="Collect"):
        frontier(pl.DataFrame(table).lazy(), policy="individual", **ASKED)
