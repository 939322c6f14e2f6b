"""The frontier: the least loss for every gap, against programs solved one by one."""

import numpy as np
import pytest

from felicific import Budget, Floor, Score, frontier, moments, solve
from felicific.exceptions import ConstraintError, InfeasibleError


def people(seed, n=600, K=2, G=2, J=1, policy="score", offset=0.0, apart=0.3):
    """Moments of random people; ``apart`` is how much the groups differ."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, G, n)
    x = rng.normal(size=(n, J)) + apart * group[:, None]
    proba = rng.dirichlet(np.ones(K), n) if K > 2 else np.column_stack([1 - (s := rng.beta(2, 3, n)), s])
    y = (rng.random(n)[:, None] > proba.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
    happiness = {
        f"h{j}": lambda decision, x, j=j: offset + decision * np.exp(x[:, j]) + 3.0 * (decision == j)
        for j in range(J)
    }
    return moments(x, proba=proba, y=y, sensitive_features=group, happiness=happiness, policy=policy)


CASES = {
    "label": {"policy": "label"},
    "soft label": {"policy": "soft-label"},
    "monotone cells": {"policy": Score(40)},
    "free cells": {"policy": Score(40, monotone=False)},
    "two components": {"policy": Score(30), "J": 2, "G": 3},
    "four classes": {"policy": "soft-label", "K": 4, "G": 3, "J": 2},
    "large offset": {"policy": Score(40), "offset": 1e9},
}


@pytest.mark.parametrize("constraints", [(), (Floor("h0", "today"),), (Budget("h0", at_least=1.0),)], ids=len)
@pytest.mark.parametrize("case", CASES)
def test_frontier_equals_a_grid_of_programs(case, constraints):
    """At 300 gaps the loss equals that of a program solved for that gap alone, to 1e-9, and the gap is kept."""
    if CASES[case].get("offset") and constraints:
        pytest.skip("a floor in absolute numbers and an offset are two things")
    computed = people(1, **CASES[case]).joined()
    line = frontier(computed, constraints=constraints)
    names = [component.name for component in line.components]
    for tau in np.linspace(line.tau[0], 1.1 * line.tau[-1], 300 if case == "label" else 60):
        allowed = {
            name: float(tau * width) * (1 + 1e-12) for name, width in zip(names, line.ray, strict=True)
        }
        policy = line.at(gap=allowed)
        alone = solve(
            computed, gap={name: width + 1e-12 for name, width in allowed.items()}, constraints=constraints
        )
        assert policy.loss == pytest.approx(alone.loss, abs=1e-9)
        assert all(policy.gaps[name] <= allowed[name] * (1 + 1e-9) + 1e-9 for name in names)


@pytest.mark.parametrize("case", CASES)
def test_frontier_is_convex_and_falls(case):
    """Loss falls strictly and ever more slowly as the gap grows; repeated and collinear points are not listed."""
    line = frontier(people(2, **CASES[case]))
    assert (np.diff(line.tau) > 0).all()
    assert (np.diff(line.loss) < 0).all()
    slopes = np.diff(line.loss) / np.diff(line.tau)
    assert (np.diff(slopes) > 0).all()


@pytest.mark.parametrize("case", ["label", "monotone cells", "free cells"])
def test_prices_hold_the_duals(case):
    """The dual of a program solved at a breakpoint lies in its price interval; between two it is the slope."""
    computed = people(3, **CASES[case]).joined()
    line = frontier(computed)
    low, high = line.prices.T
    assert high[0] == np.inf
    assert low[-1] == 0.0
    for i, tau in enumerate(line.tau[1:], 1):
        price = solve(computed, gap=float(tau)).prices["h0"]
        assert low[i] * (1 - 1e-6) - 1e-9 <= price <= high[i] * (1 + 1e-6) + 1e-9
        middle = float((line.tau[i - 1] + tau) / 2)
        assert solve(computed, gap=middle).prices["h0"] == pytest.approx(high[i], rel=1e-6)
        assert line.at(gap=middle).prices["h0"] == pytest.approx(high[i], rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_policies_attain_what_is_stated(case):
    """Policies at and between breakpoints, evaluated on the moments, have the stated loss, means and gaps."""
    computed = people(4, **CASES[case]).joined()
    line = frontier(computed)
    for loss in np.linspace(line.loss[-1], line.loss[0], 7):
        policy = line.at(loss=float(loss))
        outcome = computed.evaluate(policy.q)
        assert policy.loss == pytest.approx(loss, abs=1e-12)
        assert outcome.loss == pytest.approx(policy.loss, abs=1e-13)
        assert np.abs(outcome.gaps - policy.outcome.gaps).max() <= 1e-12 * max(
            1.0, np.abs(outcome.means).max()
        )


def test_identical_groups_have_one_point():
    """Where the unconstrained optimum has gap 0 already, there is nothing to trade: one breakpoint, price 0."""
    rng = np.random.default_rng(0)
    half = rng.random((200, 1))
    x, y, group = np.vstack([half, half]), np.tile(half[:, 0] > 0.5, 2).astype(int), np.repeat([0, 1], 200)
    proba = np.column_stack([1 - x, x])
    line = frontier(
        moments(
            x, proba=proba, y=y, sensitive_features=group, happiness=lambda decision, x: decision * x[:, 0]
        )
    )
    assert len(line) == 1
    assert line.gaps[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert line.at(gap=0.0).loss == line.at(gap=5.0).loss


def test_constant_happiness_has_its_own_gap():
    """A happiness that no decision changes has one gap, which is the least and only one."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1], 100)
    table = moments(
        np.zeros((100, 1)),
        proba=proba,
        y=rng.integers(0, 2, 100),
        sensitive_features=np.arange(100) % 2,
        happiness=lambda decision, group: 2.0 * group,
    )
    line = frontier(table)
    assert len(line) == 1
    assert line.gaps[0, 0] == pytest.approx(2.0)
    with pytest.raises(InfeasibleError, match="the least is 2"):
        line.at(gap=1.0)


def test_least_gap_above_zero_is_the_first_point():
    """When gap 0 is out of reach, the frontier starts at the least gap that solve names."""
    computed = people(5, policy="label", offset=0.0, apart=0.3)
    rough = moments(
        np.array([[0.0], [1.0], [0.0], [1.0]]),
        y=[0, 1, 0, 1],
        predicted=[0, 1, 0, 1],
        sensitive_features=[0, 0, 1, 1],
        happiness=lambda decision, group: 5.0 * group + decision,
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(rough, gap=0.0)
    assert frontier(rough).tau[0] == pytest.approx(caught.value.least_gap, rel=1e-9)
    assert frontier(computed).tau[0] == pytest.approx(0.0, abs=1e-9)


def test_nothing_is_solved_before_it_is_looked_at():
    """A frontier is cheap until it is used, and then solved once."""
    line = frontier(people(6))
    assert "_line" not in vars(line)
    assert line.points is line.points


def test_table_of_breakpoints():
    """The dataframe has a row per breakpoint and names every group and component."""
    line = frontier(people(7, G=3, J=2, policy="label"))
    frame = line.to_frame()
    assert len(frame) == len(line)
    assert {"tau", "loss", "least price", "largest price", "gap of h1", "mean h0 of 2"} <= set(frame.columns)


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ({}, ConstraintError),
        ({"gap": 0.1, "loss": 0.1}, ConstraintError),
        ({"gap": -1.0}, ConstraintError),
        ({"gap": np.nan}, ConstraintError),
        ({"gap": {"nothing": 0.1}}, ConstraintError),
        ({"loss": -1.0}, InfeasibleError),
        ({"loss": np.nan}, InfeasibleError),
    ],
    ids=str,
)
def test_places_that_are_none(place, error):
    """A place off the frontier is refused with what is there."""
    with pytest.raises(error):
        frontier(people(8, policy="label")).at(**place)
