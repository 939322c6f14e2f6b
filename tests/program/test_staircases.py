"""Policies of listed decisions against the whole program, written plainly: one row for every pair and every step."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from felicific._program.model import build
from felicific._program.staircases import Staircases
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from felicific import Budget, Floor, Ratio, Score, aggregate, frontier, solve
from felicific._problem.requirement import rows_of
from felicific._program.aggregates import Aggregates
from felicific._program.highs import run_model
from felicific._program.solution import solve_program
from felicific.exceptions import InfeasibleError

CELLS, GROUPS = 12, 2


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


def summed(seed, n, n_decisions, *, monotone=True, unit=1.0):
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
        policy=Score(bins=CELLS, monotone=monotone),
    ).joined()


def least_loss(sums, gap):
    """The least loss at a gap, by the whole program: q, one free level, and u(s, t) that may not fall; None if none is.

    With u(s, t) the chance of the t-th decision or a better one. Cells without anybody are left out.
    """
    g, s, d = sums.loss.shape
    rows, columns, numbers, upper, equal = [], [], [], [], []

    def add(pairs, bound, kind):
        number = len(upper) + len(equal)
        for column, value in pairs:
            rows.append(number)
            columns.append(column)
            numbers.append(value)
        (equal if kind == "=" else upper).append((number, bound))

    place = np.arange(g * s * d).reshape(g, s, d)
    level = place.size
    sign = 1.0 if sums.rising else -1.0
    for z in range(g):
        held = np.flatnonzero(sums.mass[z] > 0)
        for cell in range(s):
            add([(place[z, cell, k], 1.0) for k in range(d)], 1.0, "=")
        if sums.signal.monotone:
            for before, after in pairwise(held):
                for t in range(1, d):
                    worse = [(place[z, before, k], sign) for k in range(t, d)]
                    add(worse + [(place[z, after, k], -sign) for k in range(t, d)], 0.0, "<")
        mean = [
            (place[z, cell, k], sums.value[z, cell, k, 0] / sums.counted[z, 0])
            for cell in held
            for k in range(d)
        ]
        add([(column, -value) for column, value in mean] + [(level, 1.0)], 0.0, "<")
        add([*mean, (level, -1.0)], gap, "<")
    matrix = coo_array((numbers, (rows, columns)), shape=(len(upper) + len(equal), level + 1)).tocsr()
    found = linprog(
        np.append(sums.loss.ravel() / sums.total, 0.0),
        matrix[[number for number, _ in upper]],
        [bound for _, bound in upper],
        matrix[[number for number, _ in equal]],
        [bound for _, bound in equal],
        bounds=[(0.0, 1.0)] * level + [(None, None)],
        method="highs",
    )
    return found.fun if found.status == 0 else None


def falls(q, rising):
    """By how much the chance of a decision or a better one falls, at most, where it may not."""
    above = 1.0 - q.cumsum(axis=2)
    steps = np.diff(above if rising else above[:, ::-1], axis=1)
    return float(-steps.min(initial=0.0))


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(8, 120),
    n_decisions=st.integers(2, 6),
    monotone=st.booleans(),
    part=st.floats(0.0, 1.0),
)
def test_the_least_loss_is_that_of_the_whole_program(seed, n, n_decisions, monotone, part):
    """At every gap the loss is the least of all policies whose better decisions do not become rarer with the score."""
    sums = summed(seed, n, n_decisions, monotone=monotone)
    free = solve(sums, gap=1e9, random_state=0)
    gap = part * free.gap
    expected = least_loss(sums, gap)
    if expected is None:
        with pytest.raises(InfeasibleError):
            solve(sums, gap=gap, random_state=0)
        return
    found = solve(sums, gap=gap, random_state=0)
    size = max(1.0, float(np.abs(sums.loss).sum() / sums.total))
    assert abs(found.loss - expected) <= 1e-6 * size
    assert found.gap <= gap + 1e-7 * max(1.0, float(np.abs(sums.value).max()))
    assert not monotone or falls(found.q, sums.rising) <= 1e-8
    assert np.abs(found.q.sum(axis=2) - 1.0).max() <= 1e-9


@given(
    seed=st.integers(0, 10**6),
    cells=st.integers(1, 7),
    decisions=st.integers(2, 4),
    steps=st.sampled_from([-1, 0, 1]),
)
def test_the_cheapest_staircase_is_the_cheapest_of_all(seed, cells, decisions, steps):
    """No staircase that is written down costs less than the one that is found, signal by signal."""
    rng = np.random.default_rng(seed)
    prices = rng.integers(-3, 4, (cells, decisions)).astype(float)
    every = np.stack(np.meshgrid(*[np.arange(decisions)] * cells, indexing="ij")).reshape(cells, -1).T
    if steps:
        every = every[(np.diff(every, axis=1) * steps >= 0).all(axis=1)]
    costs = prices[np.arange(cells), every].sum(axis=1)
    stairs = Staircases(np.ones((1, cells), dtype=bool), decisions, steps)
    chosen, cost = stairs.cheapest(prices)
    assert cost[0] == costs.min() == prices[np.arange(cells), chosen].sum()
    assert (every == chosen).all(axis=1).any()
    changes = rng.integers(0, 5, (cells, decisions)).astype(float)
    nearest = stairs.nearest(prices, changes, 1e-9)
    least = changes[np.arange(cells), every[costs == costs.min()]].sum(axis=1).min()
    assert changes[np.arange(cells), nearest].sum() == least
    assert prices[np.arange(cells), nearest].sum() == costs.min()


def test_a_wrong_staircase_is_seen():
    """The helper that measures how far chances fall sees policies that get worse where the score rises."""
    q = np.array([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    assert falls(q, True) == 1.0
    assert falls(q, False) == 0.0


@pytest.mark.parametrize(
    "constraint", [Floor("worth", 0.2), Budget("worth", at_most=0.6), Ratio("worth", 0.9)]
)
@pytest.mark.parametrize("sees_group", [True, False])
def test_other_requirements_are_those_of_the_plain_program(constraint, sees_group):
    """Floors, budgets and ratios, with the group seen or not: staircases find what the plain program finds."""
    sums = summed(3, 400, 5)
    found = solve_program(sums, [constraint], sees_group=sees_group)
    program = build(sums, rows_of([constraint], sums), sees_group=sees_group)
    plain = run_model(program, program.rows, plain=True)
    assert program.stairs
    assert found.outcome.loss == pytest.approx(
        program.least_loss + program.charged(plain.columns) * program.cost_scale, abs=1e-9
    )


def test_the_frontier_is_convex_and_solved_at_every_place():
    """Between its ends every gap costs what solving there costs, and never more than a mixture of its neighbours."""
    sums = summed(5, 500, 4)
    line = frontier(sums, random_state=0)
    for gap in np.linspace(line.gaps[0, 0], line.gaps[-1, 0], 7):
        at = line.at(gap=float(gap))
        assert at.loss == pytest.approx(solve(sums, gap=float(gap), random_state=0).loss, abs=1e-9)
        assert falls(at.q, sums.rising) <= 1e-8


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
