"""Listed decisions: the order that they keep along the score, their frontiers, sums and files."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st
from naive_program import Naive

from felicific import Gap, Score, aggregate, frontier, solve
from felicific._program.aggregates import Aggregates
from felicific._program.order import Order


def people(rng, n, decisions, unit=1.0):
    """A table in which nothing is regular: scores that say little, amounts, and maybe present decisions."""
    score = rng.beta(1.0, 1.0, n).round(2)
    table = {
        "sex": np.where(np.arange(n) < 4, np.arange(n) % 2, rng.integers(0, 2, n)).astype(str),
        "score": score,
        "y": (rng.random(n) < score).astype(int),
        "amount": unit * rng.lognormal(0.0, 0.7, n),
    }
    if rng.random() < 0.5:
        table["baseline"] = np.array(decisions)[rng.integers(0, len(decisions), n)]
    return table


class Worth:
    """A share of the amount for every decision, the better the more; the first is worth nothing."""

    def __init__(self, decisions):
        self.shares = {decision: t / (len(decisions) - 1) for t, decision in enumerate(decisions)}

    def __call__(self, decision, x):
        return self.shares[decision] * np.asarray(x["amount"])


def summed(seed, n, n_decisions, unit=1.0):
    """Sums of some people, with a cost matrix that knows no order."""
    rng = np.random.default_rng(seed)
    decisions = [f"d{t}" for t in range(n_decisions)]
    table = people(rng, n, decisions, unit)
    return aggregate(
        table,
        score="score",
        y="y",
        sensitive_features="sex",
        decisions=decisions,
        loss=rng.normal(size=(2, n_decisions)).round(3),
        happiness={"worth": Worth(decisions)},
        baseline="baseline" if "baseline" in table else None,
        policy=Score(bins=12),
    ).joined()


@given(
    seed=st.integers(0, 10**6),
    cells=st.integers(1, 6),
    ranks=st.sampled_from([[0, 1], [0, 1, 2], [2, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0, 0], [0, 1, 2, 3]]),
    split=st.booleans(),
)
def test_the_cheapest_policy_is_the_cheapest_of_all(seed, cells, ranks, split):
    """No deterministic policy that keeps the order costs less than the one that is found, chain by chain."""
    prices = np.random.default_rng(seed).integers(-3, 4, (2, cells, len(ranks))).astype(float)
    ends = [0, cells // 2, cells] if split else [0, cells]
    chains = tuple(range(first, last) for first, last in pairwise(ends) if first < last)
    every = np.stack(np.meshgrid(*[np.arange(len(ranks))] * cells, indexing="ij")).reshape(cells, -1).T
    for chain in chains:
        every = every[(np.diff(np.array(ranks)[every[:, chain]], axis=1) >= 0).all(axis=1)]
    chosen, cost = Order(chains, np.tile(ranks, (len(chains), 1))).cheapest(prices)
    cost = cost.sum(axis=1)  # of all chains
    for table in range(2):
        costs = prices[table, np.arange(cells), every].sum(axis=1)
        assert cost[table] == costs.min() == prices[table, np.arange(cells), chosen[table]].sum()
        assert (every == chosen[table]).all(axis=1).any()


def test_the_frontier_is_convex_and_solved_at_every_place():
    """Between its ends every gap costs what solving there costs, the least there is, and the order is kept."""
    sums = summed(5, 500, 4)
    line, naive, name = frontier(sums, random_state=0), Naive(sums), sums.measures[0].name
    for gap in np.linspace(line.gaps[0, 0], line.gaps[-1, 0], 7):
        at = line.at(gap=float(gap))
        assert at.loss == pytest.approx(solve(sums, gap=float(gap), random_state=0).loss, abs=1e-9)
        closed = [Gap(name, float(gap), min_people=0)]
        assert at.loss == pytest.approx(naive.least(closed), abs=1e-9)
        assert naive.missed(closed, at.q) <= 1e-8


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_change_nothing(factor):
    """Happiness in another unit, with the gap in that unit, gives the same decisions."""
    one, other = summed(7, 300, 5), summed(7, 300, 5, unit=factor)
    gap = 0.3 * solve(one, gap=1e9, random_state=0).gap
    first, second = solve(one, gap=gap, random_state=0), solve(other, gap=gap * factor, random_state=0)
    assert second.loss == pytest.approx(first.loss, abs=1e-9)


def test_sums_that_disagree_on_decisions_do_not_add(refuses):
    """Sums of other decisions, or of others' order, refuse to add, and say on what they disagree."""
    from felicific.exceptions import AggregatesError

    one = summed(1, 50, 3)
    with refuses(AggregatesError, "disagree"):
        one + summed(1, 50, 4)
    with refuses(AggregatesError, "disagree"):
        one + replace(one, rising=not one.rising)


@pytest.mark.parametrize("seed", range(4))
def test_files_of_sums_hold_the_decisions(seed):
    """Sums come back from a file with their decisions, and whether the baseline is known."""
    sums = summed(seed, 60, 3)
    back = Aggregates.from_json(sums.to_json())
    assert back.decisions.tolist() == sums.decisions.tolist()
    assert (back.rising, back.knows_baseline) == (sums.rising, sums.knows_baseline)
    assert (back + back).total == 2 * sums.total
    again, first = (solve(one, gap=0.1, random_state=0) for one in (back, sums))
    assert again.loss == pytest.approx(first.loss, abs=1e-12)


def test_an_empty_cell_gets_what_its_neighbour_gets():
    """Where a group has nobody, decisions are those of its nearest cell that has somebody, and keep the order."""
    table = {
        "sex": ["f", "f", "f", "m", "m", "m", "m", "m"],
        "score": [0.1, 0.2, 0.9, 0.1, 0.2, 0.5, 0.6, 0.9],
        "y": [0, 0, 1, 0, 0, 1, 0, 1],
    }
    policy = solved(
        table,
        score="score",
        y="y",
        sensitive_features="sex",
        decisions=["no", "later", "yes"],
        loss=[[0, 0.2, 1], [1, 0.2, 0]],
        happiness="distributional_parity",
        gap=1.0,
        random_state=0,
    )
    probabilities = policy.probabilities([0.15, 0.5, 0.6, 0.95], group=["f"] * 4)
    assert probabilities.argmax(axis=1).tolist()[0] == 0
    assert probabilities.argmax(axis=1).tolist()[-1] == 2
    assert (np.diff(probabilities.argmax(axis=1)) >= 0).all()
