"""The frontier: the least loss for every gap, against programs solved one by one."""

import numpy as np
import pytest
from helpers import as_if_changed, traced

from felicific import Budget, Floor, Score, aggregate, frontier, solve
from felicific.exceptions import ConstraintError, HappinessError, InfeasibleError


def people(seed, n=600, K=2, G=2, J=1, policy="score", offset=0.0, apart=0.3):
    """Aggregates of random people; ``apart`` is how much the groups differ."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, G, n)
    x = rng.normal(size=(n, J)) + apart * group[:, None]
    score = rng.dirichlet(np.ones(K), n) if K > 2 else np.column_stack([1 - (s := rng.beta(2, 3, n)), s])
    y = (rng.random(n)[:, None] > score.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
    happiness = {
        f"h{j}": lambda decision, x, j=j: offset + decision * np.exp(x[:, j]) + 3.0 * (decision == j)
        for j in range(J)
    }
    return aggregate(x, score=score, y=y, sensitive_features=group, happiness=happiness, policy=policy)


CASES = {
    "label": {"policy": "label"},
    "soft label": {"policy": "soft-label"},
    "monotone cells": {"policy": Score(40)},
    "free cells": {"policy": Score(40, monotone=False)},
    "two measures": {"policy": Score(30), "J": 2, "G": 3},
    "four classes": {"policy": "soft-label", "K": 4, "G": 3, "J": 2},
    "large offset": {"policy": Score(40), "offset": 1e9},
}


@pytest.mark.parametrize(
    "constraints", [(), (Floor("h0", "baseline"),), (Budget("h0", at_least=1.0),)], ids=len
)
@pytest.mark.parametrize("case", CASES)
def test_frontier_equals_a_grid_of_programs(case, constraints):
    """At 300 gaps the loss equals that of a program solved for that gap alone, to 1e-9, and the gap is kept."""
    if CASES[case].get("offset") and constraints:
        pytest.skip("a floor in absolute numbers and an offset are two things")
    computed = people(1, **CASES[case]).joined()
    line = frontier(computed, constraints=constraints)
    names = [measure.name for measure in line.measures]
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
    """Policies at and between breakpoints, evaluated on the aggregates, have the stated loss, means and gaps."""
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
    score = np.column_stack([1 - x, x])
    line = frontier(
        aggregate(
            x, score=score, y=y, sensitive_features=group, happiness=lambda decision, x: decision * x[:, 0]
        )
    )
    assert len(line) == 1
    assert line.gaps[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert line.at(gap=0.0).loss == line.at(gap=5.0).loss


def test_constant_happiness_has_its_own_gap():
    """A happiness that no decision changes has one gap, which is the least and only one."""
    rng = np.random.default_rng(0)
    score = rng.dirichlet([1, 1], 100)
    table = aggregate(
        np.zeros((100, 1)),
        score=score,
        y=rng.integers(0, 2, 100),
        sensitive_features=np.arange(100) % 2,
        happiness=lambda decision, group: 2.0 * group,
        groups=[0, 1],
    )
    with pytest.raises(HappinessError, match="No decision changes"):
        frontier(table)
    line = frontier(as_if_changed(table))  # as if somebody elsewhere were
    assert len(line) == 1
    assert line.gaps[0, 0] == pytest.approx(2.0)
    with pytest.raises(InfeasibleError, match="the least is 2"):
        line.at(gap=1.0)


def test_least_gap_above_zero_is_the_first_point():
    """When gap 0 is out of reach, the frontier starts at the least gap that solve names."""
    computed = people(5, policy="label", offset=0.0, apart=0.3)
    rough = aggregate(
        np.array([[0.0], [1.0], [0.0], [1.0]]),
        y=[0, 1, 0, 1],
        predicted=[0, 1, 0, 1],
        policy="label",
        sensitive_features=[0, 0, 1, 1],
        happiness=lambda decision, group: 5.0 * group + decision,
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(rough, gap=0.0)
    assert frontier(rough).tau[0] == pytest.approx(caught.value.least_gap, rel=1e-9)
    assert frontier(computed).tau[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("unit", [1e-15, 1e-12, 1e12, 1e15])
@pytest.mark.parametrize("case", ["label", "monotone cells", "two measures"])
def test_units_change_nothing(case, unit):
    """In any unit of happiness the frontier has the same losses, at gaps of that unit."""

    def line(unit):
        rng = np.random.default_rng(1)
        group, J = rng.integers(0, 2, 300), CASES[case].get("J", 1)
        x, score = rng.normal(size=(300, J)) + 0.3 * group[:, None], rng.beta(2, 3, 300)
        return frontier(
            aggregate(
                x,
                score=np.column_stack([1 - score, score]),
                y=(rng.random(300) < score).astype(int),
                sensitive_features=group,
                happiness={
                    f"h{j}": lambda decision, x, j=j: unit * decision * np.exp(x[:, j]) for j in range(J)
                },
                policy=CASES[case]["policy"],
            )
        )

    plain, found = line(1.0), line(unit)
    assert found.loss == pytest.approx(plain.loss, abs=1e-9)
    assert found.gaps / unit == pytest.approx(plain.gaps, abs=1e-9)


def alike(happiness, seed=0, **options):
    """Two groups with the same numbers in another order: sums over them differ by rounding alone.

    Happiness that no decision changes is refused, so the sums say that somebody elsewhere is changed.
    """
    rng = np.random.default_rng(seed)
    half, score = np.pi * rng.normal(size=100), np.tile(rng.beta(2, 3, 100), 2)
    x = np.column_stack([np.concatenate([half, rng.permutation(half)]), rng.normal(size=200)])
    sums = aggregate(
        x,
        score=np.column_stack([1 - score, score]),
        y=(rng.random(200) < score).astype(int),
        sensitive_features=np.repeat([0, 1], 100),
        happiness=happiness,
        groups=[0, 1],
        **options,
    )
    return as_if_changed(sums)


@pytest.mark.parametrize("policy", ["label", Score()], ids=str)
def test_a_gap_of_rounding_alone_bends_no_ray(policy):
    """A measure whose gap is 1e-17 whatever is decided leaves the frontier of the others as it is."""
    happiness = {
        "same": lambda decision, x: np.abs(x[:, 0]) / 3 + 1.7,
        "own": lambda decision, x: decision * np.exp(x[:, 1]),
    }
    both = alike(happiness, policy=policy)
    line, alone = frontier(both), frontier(both, gap=["own"])
    assert len(alone) > 1
    assert line.loss == pytest.approx(alone.loss, abs=1e-12)
    assert line.gaps[:, 1] == pytest.approx(alone.gaps[:, 1], abs=1e-12)
    assert line.at(gap=0.0).gaps["own"] == pytest.approx(0.0, abs=1e-9)
    assert solve(both, gap=0.0).loss == pytest.approx(line.loss[0], abs=1e-9)


def test_a_floor_at_the_baseline_is_kept_where_no_decision_matters():
    """The baseline's mean of a happiness that nothing changes is met by every policy, not missed by its rounding."""
    for seed in range(40):
        same = alike({"same": lambda decision, x: np.abs(x[:, 0]) / 3 + 1.7}, seed)
        assert solve(same, gap={}, constraints=[Floor("same", "baseline")]).loss == solve(same, gap={}).loss


def test_points_that_tie_are_one():
    """Costs that differ by nine orders of magnitude leave no point that is no better than the one before."""
    for seed in (78, 166, 270, 333):  # found by trying 400
        rng = np.random.default_rng(seed)
        cost = rng.random((3, 3)) * 10.0 ** rng.uniform(-9, 0, (3, 3))
        np.fill_diagonal(cost, 0.0)
        score = np.rint(5 * rng.dirichlet(np.ones(3), 150)) + 0.2
        line = frontier(
            aggregate(
                x := np.rint(rng.normal(size=(150, 2))),
                score=score / score.sum(axis=1, keepdims=True),
                y=rng.integers(0, 3, 150),
                sensitive_features=(x[:, 0] > 0).astype(int),
                happiness={f"h{j}": lambda decision, x, j=j: (decision == j) * x[:, 1] for j in range(3)},
                policy=Score(20),
                loss=cost,
            )
        )
        assert (np.diff(line.loss) < 0).all()
        assert (np.diff(line.tau) > 0).all()


@pytest.mark.parametrize("gap", [{"h0": 0.2}, ["h0"], {"h0": 0.0}], ids=str)
def test_of_one_gap_the_position_is_the_gap_and_the_price_its_own(gap):
    """However one gap among two is named, tau is that gap, and the price is loss per unit of it."""
    computed = people(3, J=2, policy="label")
    line = frontier(computed, gap=gap)
    assert line.tau == pytest.approx(line.gaps[:, 0], abs=1e-12)
    middle = float(line.tau[:2].mean())
    asked = solve(computed, gap={"h0": middle})
    assert line.at(gap=middle).prices == {"h0": pytest.approx(asked.prices["h0"], rel=1e-6)}


def test_a_gap_that_is_not_closed_cannot_be_asked_for():
    """A frontier of one gap does not pretend to close another."""
    line = frontier(people(3, J=2, policy="label"), gap=["h0"])
    with pytest.raises(ConstraintError, match="'h1' is measured and not closed"):
        line.at(gap={"h0": 0.5, "h1": 0.0})
    assert line.at(gap={"h0": 0.5, "h1": np.inf}).loss == line.at(gap=0.5).loss


def test_the_least_gap_is_told_of_the_measure_that_was_asked():
    """Out of reach is the gap that cannot be met, not whichever shrinks fastest."""
    line = frontier(
        aggregate(
            np.array([[0.0], [1.0], [0.0], [1.0]]),
            y=[0, 1, 0, 1],
            predicted=[0, 1, 0, 1],
            policy="label",
            sensitive_features=[0, 0, 1, 1],
            happiness={
                "small": lambda decision, group: 0.001 * (1 + decision) * group,
                "large": lambda decision, group: 5.0 * group + decision,
            },
        )
    )
    with pytest.raises(InfeasibleError, match="of 'large'") as caught:
        line.at(gap={"large": 1.0})
    assert line.at(gap={"large": caught.value.least_gap}).loss == pytest.approx(line.loss[0], abs=1e-11)


@pytest.mark.parametrize("gap", [np.float32(0.25), np.int64(1), {"h0": np.float32(0.25)}], ids=str)
def test_numbers_of_numpy_are_numbers(gap):
    """Whatever fit takes for a gap, at takes too."""
    line = frontier(people(8, policy="label"))
    assert line.at(gap=gap).loss == line.at(gap=float(gap["h0"] if isinstance(gap, dict) else gap)).loss


@pytest.mark.parametrize("gap", [0.1, "h0", {"nothing": 1.0}, ["nothing"], {"h0": -1.0}], ids=str)
def test_gaps_to_close_that_are_none(gap):
    """What is no list of measures is refused."""
    with pytest.raises(ConstraintError):
        frontier(people(8, policy="label"), gap=gap)


def test_nothing_is_solved_before_it_is_looked_at():
    """A frontier is cheap until it is used, and then solved once."""
    line = frontier(people(6))
    assert "_line" not in vars(line)
    assert line.points is line.points


def test_table_of_breakpoints():
    """The dataframe has a row per breakpoint and names every group and measure."""
    line = frontier(people(7, G=3, J=2, policy="label"))
    frame = line.to_frame()
    assert len(frame) == len(line)
    assert {"tau", "loss", "least price", "largest price", "gap of h1", "mean h0 of 2"} <= set(frame.columns)


def test_groups_that_read_alike_keep_their_columns():
    """The groups 1 and "1" are two, in the dataframe too."""
    group = np.array([1, "1"] * 20, dtype=object)
    line = frontier(
        aggregate(
            np.arange(40.0)[:, None],
            y=np.arange(40) // 20,
            predicted=np.arange(40) // 20,
            policy="label",
            sensitive_features=group,
            happiness={"h": lambda decision, x: decision * x[:, 0]},
        )
    )
    assert {"mean h of 1", "mean h of '1'"} <= set(line.to_dict())


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ({}, ConstraintError),
        ({"gap": 0.1, "loss": 0.1}, ConstraintError),
        ({"gap": -1.0}, ConstraintError),
        ({"gap": np.nan}, ConstraintError),
        ({"gap": True}, ConstraintError),
        ({"gap": "0.1"}, ConstraintError),
        ({"gap": {"nothing": 0.1}}, ConstraintError),
        ({"loss": "0.3"}, ConstraintError),
        ({"loss": True}, ConstraintError),
        ({"tau": "0"}, ConstraintError),
        ({"tau": -1.0}, ConstraintError),
        ({"tau": np.nan}, ConstraintError),
        ({"loss": -1.0}, InfeasibleError),
        ({"loss": np.nan}, InfeasibleError),
    ],
    ids=str,
)
def test_places_that_are_none(place, error):
    """A place off the frontier is refused with what is there."""
    with pytest.raises(error):
        frontier(people(8, policy="label")).at(**place)


def test_a_frontier_prints_in_a_line():
    """From where to where it goes; and nothing is solved to name it."""
    people = {
        "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
        "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
        "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    }
    line = traced(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    assert repr(line) == "Frontier(measures=['decision'], groups=['f', 'm'])"
    assert str(line) == "2 policies from the least gap to the least loss: 0 to 0.25, at a loss of 0.125 to 0."
