"""The linear program against a naive one with all pairs of groups: optimum, prices, floors, budgets, conflicts."""

import re
from dataclasses import dataclass, replace

import numpy as np
import oracles
import pytest
from helpers import as_if_changed
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import (
    BaselineAtLeast,
    Exact,
    GapAtMost,
    MeanAtLeast,
    Rows,
    TotalBetween,
    UncertifiedError,
    assert_irreducible,
    assert_optimal,
    assert_reported,
    best_regret,
    conflict_depth,
    excess,
    least_gap,
)
from strategies import (
    FRACTIONS,
    OFFSETS,
    UNITS,
    aggregates_of,
    examples,
    feasible_by_oracle,
    least_gap_by_oracle,
    populations,
    small_ints,
)

from felicific import Budget, Floor, aggregate, solve
from felicific._problem.constraints import requirements_of
from felicific._problem.requirement import rows_of
from felicific._program.aggregates import Aggregates
from felicific.exceptions import InfeasibleError


def some_rows(seed, n=40, K=2, G=2, J=1, soft=False):
    """Generic people: every group, label and prediction occurs, and deciding 0 everywhere closes every gap."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, K, n)
    score = rng.dirichlet(np.ones(K), n) + np.eye(K)[label]
    score /= score.sum(axis=1, keepdims=True)
    return Rows(
        n_classes=K,
        n_groups=G,
        group=np.arange(n) % G,
        label=label,
        predicted=score.argmax(axis=1),
        score=score,
        weight=np.ones(n),
        eta=(1 + rng.random((n, K, J)) + (np.arange(n) % G)[:, None, None]) * np.arange(K)[:, None],
        among=np.ones((n, J), bool),
        cost=(np.arange(K) != label[:, None]).astype(float),
        soft=soft,
    )


# ---------------------------------------------------------------------------------------------------------
# The comparisons themselves


@dataclass
class Claim:
    """What a policy says of itself, to be falsified piece by piece."""

    q: np.ndarray
    loss: float
    gaps: dict
    outcome: object


def claim_of(policy, **changes):
    return Claim(**({name: getattr(policy, name) for name in ("q", "loss", "gaps", "outcome")} | changes))


def test_the_comparison_fails_on_wrong_answers():
    """An answer that is suboptimal, infeasible, no distribution, or misreported does not pass as optimal."""
    rows = some_rows(1)
    exact = Exact(rows)
    wanted = [GapAtMost(0, 0.2)]
    policy = solve(aggregates_of(rows), gap=0.2)
    assert_optimal(exact, wanted, claim_of(policy))

    constant = np.zeros_like(policy.q)
    constant[:, :, 0] = 1.0
    other = {
        "broken": exact.cheapest(),
        "regret": np.array(solve(aggregates_of(rows), gap=0.1).q),
        "negative": policy.q + np.array([1e-3, -1e-3]) * (policy.q[:, :, 1:] == 0),
        "sum to one": policy.q * (1 + 1e-11),
    }
    for words, q in other.items():
        with pytest.raises(AssertionError, match=words):
            assert_optimal(exact, wanted, claim_of(policy, q=q))
    with pytest.raises(AssertionError, match="no policy"):
        assert_optimal(exact, [MeanAtLeast(0, 0, 1e3)], claim_of(policy), tolerance=1e9)
    for changes, words in (
        ({"loss": policy.loss + 1e-11}, "loss"),
        ({"gaps": {"eta0": policy.gap + 1e-10}}, "gap"),
        ({"outcome": replace(policy.outcome, means=policy.outcome.means + 1e-10)}, "mean"),
    ):
        with pytest.raises(AssertionError, match=words):
            assert_optimal(exact, wanted, claim_of(policy, **changes))


def test_the_conflict_check_fails_on_wrong_conflicts():
    """A set that is feasible, empty, or larger than needed does not pass as an irreducible conflict."""
    exact = Exact(some_rows(2))
    low, high = TotalBetween(0, upper=-50.0), MeanAtLeast(0, 0, 50.0)
    assert_irreducible(exact, [high])
    for wrong in ([], [GapAtMost(0, 10.0)], [low, high]):
        with pytest.raises(AssertionError):
            assert_irreducible(exact, wrong)


def test_the_oracle_refuses_to_judge_what_it_cannot_certify(monkeypatch):
    """An optimum that its exact lower bound does not confirm is not used: a wrong linprog cannot go unnoticed."""
    right = oracles.linprog

    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        result.fun += 1e-6
        return result

    wanted = [GapAtMost(0, 0.2)]
    best_regret(Exact(some_rows(1)), wanted)
    monkeypatch.setattr(oracles, "linprog", wrong)
    with pytest.raises(UncertifiedError):
        best_regret(Exact(some_rows(1)), wanted)
    with pytest.raises(UncertifiedError):
        conflict_depth(Exact(some_rows(1)), wanted)


def test_the_oracle_on_a_program_solved_by_hand():
    """Two groups of one person each, and one happiness: every number below follows with pencil and paper.

    Group 0 has a person labelled and predicted 1, group 1 one labelled and predicted 0; happiness is the
    decision. Least loss 0 has gap 1. A gap of e costs (1 - e) / 2 per person, by moving either person. With the
    mean of group 1 at least f, the loss is max(f, 1 - e) / 2; with the total at most b, gap free, (1 - 2 b) / 2.
    """
    rows = Rows(
        n_classes=2,
        n_groups=2,
        group=np.array([0, 1]),
        label=np.array([1, 0]),
        predicted=np.array([1, 0]),
        score=np.array([[0.0, 1.0], [1.0, 0.0]]),
        weight=np.ones(2),
        eta=np.array([[[0.0], [1.0]]] * 2),
        among=np.ones((2, 1), bool),
        cost=np.array([[1.0, 0.0], [0.0, 1.0]]),
        soft=False,
    )
    exact = Exact(rows)
    assert exact.loss_swing == 1
    assert exact.least_loss == 0
    assert [float(gap) for gap in exact.gaps_of(exact.cheapest())] == [1.0]
    assert exact.baseline == [[1], [0]]
    for wanted, loss in (
        ([GapAtMost(0, 0.25)], 0.375),
        ([GapAtMost(0, 0.5), MeanAtLeast(0, 1, 0.75)], 0.375),
        ([TotalBetween(0, upper=0.25)], 0.25),
        ([TotalBetween(0, lower=750.0, people=1000)], 0.25),
        ([BaselineAtLeast(0, 0)], 0.0),
        ([MeanAtLeast(0, 0, 1.5)], None),
    ):
        assert best_regret(exact, wanted) == (None if loss is None else pytest.approx(loss, abs=1e-12))
    assert least_gap(exact, 0) == pytest.approx(0, abs=1e-12)
    assert excess(exact, [GapAtMost(0, 0.25)], exact.cheapest()) == 0.75
    assert conflict_depth(exact, [MeanAtLeast(0, 0, 1.5)]) == pytest.approx(0.5, abs=1e-12)


# ---------------------------------------------------------------------------------------------------------
# Optimality


@st.composite
def gap_problems(draw, **kinds):
    """A population, and a gap for each measure as a fraction of the cheapest policy's."""
    rows, loss = draw(populations(**kinds))
    exact = Exact(rows)
    reached = exact.gaps_of(exact.cheapest())
    widths = [draw(FRACTIONS) * float(gap) for gap in reached]
    return rows, loss, exact, widths


def by_name(widths):
    return {f"eta{j}": width for j, width in enumerate(widths)}


def check_gap_problem(rows, loss, exact, widths):
    wanted = [GapAtMost(j, width) for j, width in enumerate(widths)]
    if feasible_by_oracle(exact, wanted):
        assert_optimal(exact, wanted, solve(aggregates_of(rows, loss), gap=by_name(widths)))
    else:
        with pytest.raises(InfeasibleError):
            solve(aggregates_of(rows, loss), gap=by_name(widths))


@examples
@given(gap_problems(unit=UNITS, offset=OFFSETS))
def test_optimum_in_any_unit_and_with_any_offset(problem):
    """Units from 1e-9 to 1e9 and offsets of a billion effects cost neither optimality nor feasibility."""
    check_gap_problem(*problem)


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e3, -1e6, 1e9])
def test_a_gap_that_binds_is_closed_at_the_least_loss_in_any_unit(unit, offset):
    """Generic people, where the gap always costs something: the optimum in every unit, with every offset."""
    for seed, soft in ((20, False), (21, True), (22, False)):
        rows = some_rows(seed, K=3, G=3, soft=soft)
        rows = replace(rows, eta=unit * (offset + rows.eta))
        exact = Exact(rows)
        width = 0.3 * float(exact.gaps_of(exact.cheapest())[0])
        policy = solve(aggregates_of(rows), gap=width)
        assert policy.loss > float(exact.least_loss) + 1e-4
        assert_optimal(exact, [GapAtMost(0, width)], policy)


@examples
@given(gap_problems(unit=UNITS, offset=OFFSETS), st.data())
def test_optimum_with_a_gap_of_almost_or_exactly_the_least(problem, data):
    """The least gap that exists is reachable; a millionth of the swing below it is not."""
    rows, loss, exact, _ = problem
    least = least_gap_by_oracle(exact, 0)
    swing = float(exact.swing[0])
    assume(swing > 0)
    computed = aggregates_of(rows, loss)
    policy = solve(computed, gap={"eta0": least})
    assert policy.gaps["eta0"] <= least + 1e-9 * swing
    assert_reported(exact, policy)
    if least > 1e-6 * swing:
        with pytest.raises(InfeasibleError):
            solve(computed, gap={"eta0": least - 1e-6 * swing})


@examples
@given(gap_problems(), st.data())
def test_groups_of_very_different_means(problem, data):
    """A part of happiness that no decision changes, different in each group, is met to the last digits."""
    rows, loss, _, _ = problem
    shift = data.draw(small_ints(rows.n_groups, -1000, 1000))
    rows = replace(rows, eta=rows.eta + shift[rows.group][:, None, None])
    exact = Exact(rows)
    lowest = [least_gap_by_oracle(exact, j) for j in range(rows.n_measures)]
    widths = [low + data.draw(FRACTIONS) * float(exact.swing[j]) for j, low in enumerate(lowest)]
    check_gap_problem(rows, loss, exact, widths)


@examples
@given(gap_problems(n_measures=st.just(1)), st.data())
def test_groups_of_very_different_stakes(problem, data):
    """Stakes a thousand times larger in one group than in another cost no optimality."""
    rows, loss, _, _ = problem
    stakes = 10.0 ** data.draw(small_ints(rows.n_groups, -3, 0))
    rows = replace(rows, eta=rows.eta * stakes[rows.group][:, None, None])
    exact = Exact(rows)
    reached = exact.gaps_of(exact.cheapest())
    check_gap_problem(rows, loss, exact, [data.draw(FRACTIONS) * float(gap) for gap in reached])


@examples
@given(gap_problems(), st.sampled_from([-1e9, -3.0, 1e6, 1e9]), st.sampled_from([2.0**-30, 0.5, 2.0**30]))
def test_constant_and_unit_change_nothing(problem, offset, unit):
    """Happiness times a constant, or plus one, leaves the loss and (in its unit) every gap as they were."""
    rows, loss, exact, widths = problem
    # Effects are multiples of 1/4 and offsets whole, so that adding them is exact.
    changed = replace(rows, eta=unit * (offset + rows.eta))
    assume(feasible_by_oracle(exact, [GapAtMost(j, width) for j, width in enumerate(widths)]))
    before = solve(aggregates_of(rows, loss), gap=by_name(widths))
    after = solve(aggregates_of(changed, loss), gap=by_name([unit * width for width in widths]))
    assert after.loss == pytest.approx(before.loss, rel=0, abs=1e-12 * float(exact.loss_swing) + 1e-15)
    reached = aggregates_of(changed, loss).evaluate(before.q)
    for j in range(rows.n_measures):
        slack = 1e-12 * float(exact.swing[j] + 1)
        assert reached.gaps[j] / unit == pytest.approx(before.outcome.gaps[j], rel=0, abs=slack)


@examples
@given(gap_problems(), st.sampled_from([1e-12, 1e-6, 1e6, 1e12]))
def test_weights_times_a_constant_change_nothing(problem, factor):
    """Frequencies in millions, or as shares of a tiny whole, give the same loss."""
    rows, loss, exact, widths = problem
    assume(feasible_by_oracle(exact, [GapAtMost(j, width) for j, width in enumerate(widths)]))
    before = solve(aggregates_of(rows, loss), gap=by_name(widths))
    after = solve(aggregates_of(replace(rows, weight=rows.weight * factor), loss), gap=by_name(widths))
    assert after.loss == pytest.approx(before.loss, rel=0, abs=1e-12 * float(exact.loss_swing) + 1e-15)


@pytest.mark.parametrize("factor", [1e-12, 1e-9, 1e9])
def test_tiny_weights_and_a_perfect_model(factor):
    """A model without errors has least loss 0, and small weights must not turn rounding into a failed check."""
    for seed in range(20):
        rows = some_rows(seed)
        rng = np.random.default_rng(seed)
        weight = rng.random(40)
        rows = replace(rows, predicted=rows.label, score=np.eye(2)[rows.label], weight=weight)
        one = solve(aggregates_of(rows), gap=0.01)
        other = solve(aggregates_of(replace(rows, weight=weight * factor)), gap=0.01)
        assert other.loss == pytest.approx(one.loss, rel=1e-12)


@examples
@given(gap_problems(), st.sampled_from([1e-9, 1e-3, 1e9]))
def test_unit_of_the_loss_changes_nothing(problem, unit):
    """A loss counted in another unit leads to the same loss in that unit, and prices follow."""
    rows, _, exact, widths = problem
    assume(feasible_by_oracle(exact, [GapAtMost(j, width) for j, width in enumerate(widths)]))
    before = solve(aggregates_of(rows), gap=by_name(widths))
    after = solve(aggregates_of(replace(rows, cost=rows.cost * unit)), gap=by_name(widths))
    slack = 1e-12 * float(exact.loss_swing) + 1e-15
    assert after.loss / unit == pytest.approx(before.loss, rel=0, abs=slack)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_constant_in_the_loss_changes_no_decision(offset):
    """A cost that everybody pays whatever is decided does not move the optimum, beyond its own rounding."""
    for seed in range(10):
        rows = some_rows(seed, K=3, G=3)
        exact = Exact(rows)
        plain = solve(aggregates_of(rows), gap=0.2)
        paid = solve(aggregates_of(replace(rows, cost=rows.cost + offset)), gap=0.2)
        assert float(exact.loss_of(paid.q)) == pytest.approx(plain.loss, rel=0, abs=1e-9)


@examples
@given(gap_problems())
def test_few_people_face_a_lottery(problem):
    """The optimum is a vertex: at most one extra decision for each group but one, and each measure."""
    rows, loss, exact, widths = problem
    assume(feasible_by_oracle(exact, [GapAtMost(j, width) for j, width in enumerate(widths)]))
    q = solve(aggregates_of(rows, loss), gap=by_name(widths)).q
    assert ((q > 0).sum(axis=2) - 1).sum() <= rows.n_measures * (rows.n_groups - 1)


def test_the_same_aggregates_give_the_same_policy_to_the_last_bit():
    """Solving twice is solving once."""
    computed = aggregates_of(some_rows(4, K=4, G=5, J=3, n=200))
    one, two = (solve(computed, gap=0.3).q for _ in range(2))
    assert one.tobytes() == two.tobytes()


def test_no_requirement_gives_the_least_loss():
    """With gaps of nothing, or infinite ones, every cell is decided as cheaply as can be and nothing has a price."""
    rows = some_rows(5, K=3, G=4, J=2, soft=True)
    exact = Exact(rows)
    computed = aggregates_of(rows)
    for gap in (np.inf, {}, {"eta1": np.inf}):
        policy = solve(computed, gap=gap)
        assert policy.loss == pytest.approx(float(exact.least_loss), abs=1e-12)
        assert not any(policy.prices.values())


# ---------------------------------------------------------------------------------------------------------
# Prices


def slopes(loss_at, at, step):
    """Slope of a convex function to the left and to the right; infinite where nothing is feasible."""
    here = loss_at(at)
    sides = []
    for sign in (-1, 1):
        try:
            sides.append(sign * (loss_at(at + sign * step) - here) / step)
        except InfeasibleError:
            sides.append(sign * np.inf)
    return sides


@pytest.mark.parametrize("seed", range(10))
def test_price_at_gap_zero_is_what_the_first_unit_of_gap_is_worth(seed):
    """At eps 0 only the slope to the right exists; for a generic population the price is that slope."""
    rows = some_rows(seed, n=60)
    exact = Exact(rows)
    computed = aggregates_of(rows)
    policy = solve(computed, gap=0.0)
    step = 1e-5 * float(exact.swing[0])
    gained = (policy.loss - solve(computed, gap=step).loss) / step
    assert policy.prices["eta0"] == pytest.approx(gained, rel=1e-6)
    assert gained > 0


@pytest.mark.parametrize(
    ("make", "sign"),
    [
        (lambda level: Floor("eta0", at_least=level, groups=[0]), 1),
        (lambda level: Budget("eta0", at_least=level), 1),
        (lambda level: Budget("eta0", at_most=level), -1),
        (lambda level: Budget("eta0", exactly=level), 0),
        (lambda level: Budget("eta0", at_least=level * 1000, per=1000), 1),
        (lambda level: Budget("eta0", at_most=level * 0.25, per=0.25), -1),
        (lambda level: Budget("eta0", exactly=level * 1000, per=1000), 0),
    ],
    ids=["floor", "at least", "at most", "exactly", "total at least", "total at most", "total exactly"],
)
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_prices_of_floors_and_budgets_are_slopes(make, sign, unit):
    """The price of a floor or budget is the loss per unit *of the number that was asked* by which it tightens."""
    seen = 0
    for seed in range(12):
        rows = some_rows(seed, n=60)
        rows = replace(rows, eta=unit * rows.eta)
        exact = Exact(rows)
        computed = aggregates_of(rows)
        free = solve(computed, gap={})
        mean = free.outcome.means[0, 0] if sign == 1 and make(1.0).__class__ is Floor else None
        mean = (
            float(computed.counted[:, 0] @ free.outcome.means[:, 0] / computed.total)
            if mean is None
            else mean
        )
        swing = float(exact.swing[0])
        level = mean + (-0.05 if sign == -1 else 0.05) * swing
        people = float(getattr(make(1.0), "per", "person") == "person") or float(make(1.0).per)
        step = 1e-5 * swing

        def loss_at(level, computed=computed):
            return solve(computed, gap={}, constraints=[make(level)]).loss

        left, right = (slope / people for slope in slopes(loss_at, level, step))
        (price,) = solve(computed, gap={}, constraints=[make(level)]).prices.values()
        assert price >= 0
        if left == pytest.approx(right, rel=1e-6, abs=1e-12):
            seen += abs(right) > 0
            assert price == pytest.approx(abs(right), rel=1e-6, abs=1e-12 / unit)
    assert seen >= 5


def test_prices_of_requirements_that_read_alike_are_not_lost():
    """Two floors that print as the same words both count: dropping the price of the binding one hides it."""
    rows = some_rows(0, n=60)
    computed = aggregates_of(rows)
    level = solve(computed, gap={}).outcome.means[0, 0] + 0.1
    alone = solve(computed, gap={}, constraints=[Floor("eta0", level, groups=[0])])
    twins = [Floor("eta0", level, groups=[0]), Floor("eta0", level - 1e-7, groups=[0])]
    assert len({row.words for row in rows_of(requirements_of(None, twins, computed.measures), computed)}) == 1
    both = solve(computed, gap={}, constraints=twins)
    assert sum(both.prices.values()) == pytest.approx(sum(alone.prices.values()), rel=1e-9)


# ---------------------------------------------------------------------------------------------------------
# Floors and budgets


def reach(exact, j, z):
    """Least and largest mean of group z in measure j over all policies."""
    cells = exact.coefficient[j][z]
    return exact.base[z][j] + sum(map(min, cells)), exact.base[z][j] + sum(map(max, cells))


@st.composite
def requirements(draw, rows, exact, beyond=False):
    """Some floors and budgets, as felicific's constraints and, one by one, in the oracle's words.

    Levels lie within what each group can reach alone; with ``beyond`` also outside.
    """
    places = st.sampled_from([-0.25, 0.0, 0.2, 0.5, 0.8, 1.0, 1.25] if beyond else [0.0, 0.2, 0.5, 0.8])
    constraints, oracle = [], []
    for _ in range(draw(st.integers(1, 3))):
        j = draw(st.integers(0, rows.n_measures - 1))
        kind = draw(st.sampled_from(["floor", "baseline", "at_most", "at_least", "exactly", "between"]))
        chosen = sorted(draw(st.sets(st.integers(0, rows.n_groups - 1), min_size=1)))
        groups = None if len(chosen) == rows.n_groups else chosen
        if kind == "baseline":
            constraints.append(Floor(f"eta{j}", "baseline", groups))
            oracle += [BaselineAtLeast(j, z) for z in chosen]
            continue
        sides = [reach(exact, j, z) for z in range(rows.n_groups)]
        if kind == "floor":
            low, high = sides[draw(st.sampled_from(chosen))]
        else:
            low, high = (
                sum(s * side[k] for s, side in zip(exact.share(j), sides, strict=True)) for k in (0, 1)
            )
        level = float(low + (high - low) * draw(places.map(lambda place: int(100 * place))) / 100)
        if kind == "floor":
            constraints.append(Floor(f"eta{j}", level, groups))
            oracle += [MeanAtLeast(j, z, level) for z in chosen]
            continue
        people = draw(st.sampled_from([None, 1.0, 8.0, 1024.0]))  # powers of two: dividing by them is exact
        count = 1.0 if people is None else people
        names = {"exactly": ["exactly"], "between": ["at_least", "at_most"]}.get(kind, [kind])
        limits = dict.fromkeys(names, count * level)
        if kind == "between":
            limits["at_most"] = count * (level + 0.1 * float(high - low))
        constraints.append(Budget(f"eta{j}", **limits, per="person" if people is None else people))
        oracle.append(
            TotalBetween(
                j,
                lower=limits.get("at_least", limits.get("exactly")),
                upper=limits.get("at_most", limits.get("exactly")),
                people=count,
            )
        )
    return constraints, oracle


@examples
@given(gap_problems(unit=UNITS, offset=OFFSETS), st.data())
def test_floors_and_budgets_against_the_naive_program(problem, data):
    """Floors and budgets, next to gaps, are met at the least loss; what the oracle cannot meet is refused."""
    rows, loss, exact, widths = problem
    constraints, wanted = data.draw(requirements(rows, exact))
    gap = by_name(widths) if data.draw(st.booleans()) else {}
    if gap:
        wanted = [GapAtMost(j, width) for j, width in enumerate(widths)] + wanted
    computed = aggregates_of(rows, loss)
    if feasible_by_oracle(exact, wanted):
        assert_optimal(exact, wanted, solve(computed, gap=gap, constraints=constraints))
    else:
        with pytest.raises(InfeasibleError):
            solve(computed, gap=gap, constraints=constraints)


def test_a_floor_binds_at_the_stakes_of_its_own_group():
    """A floor for a group with small stakes is met to their precision, whatever the stakes of other groups."""
    rows = some_rows(6)
    # Deciding 0 is free, so the floor is met at exactly its level.
    rows = replace(rows, cost=np.tile([0.0, 1.0], (40, 1)))
    for stakes in (1e3, 1e6, 1e9, 1e12, 1e15):
        size = np.where(rows.group == 0, stakes, 1.0)
        eta = np.stack([np.zeros(40), size], axis=1)[:, :, None]
        policy = solve(
            aggregates_of(replace(rows, eta=eta)), gap={}, constraints=[Floor("eta0", 0.5, groups=[1])]
        )
        assert policy.means["eta0"][1] == pytest.approx(0.5, abs=1e-9), stakes


# ---------------------------------------------------------------------------------------------------------
# What cannot be met


def number_in(message):
    """Read the least gap back out of the words of an error."""
    return float(
        re.search(r"least reachable gap is ([-+.,e\d]+?)\.? ", message + " ").group(1).replace(",", "")
    )


@examples
@given(gap_problems(unit=UNITS, offset=OFFSETS, soft=st.just(False)), st.data())
def test_least_gap_is_the_oracles_and_asking_for_it_succeeds(problem, data):
    """Asked for less than can be reached, the error names the least gap, and that number can then be asked for."""
    rows, loss, _, _ = problem
    j = data.draw(st.integers(0, rows.n_measures - 1))
    # Push one group away, by more than its decisions can make up for.
    away = rows.eta + np.where(rows.group == 0, 1, 0)[:, None, None] * 7 * np.ptp(rows.eta, axis=(0, 1))
    rows = replace(rows, eta=away)
    exact = Exact(rows)
    least, swing, name = least_gap_by_oracle(exact, j), float(exact.swing[j]), f"eta{j}"
    assume(swing > 0 and least > 1e-6 * swing)
    computed = aggregates_of(rows, loss)
    with pytest.raises(InfeasibleError) as caught:
        solve(computed, gap={name: data.draw(st.sampled_from([0.0, 0.5, 0.99])) * least})
    assert caught.value.least_gap == pytest.approx(least, rel=0, abs=1e-9 * swing)
    named = number_in(str(caught.value))
    assert least - 1e-9 * swing <= named <= least * (1 + 1.1e-5) + 1e-9 * swing
    for asked in (named, caught.value.least_gap):
        assert solve(computed, gap={name: asked}).gaps[name] <= asked + 1e-9 * swing


@pytest.mark.parametrize(
    "least", [1 / 3, 0.1, 0.1234565, 999999.5, 1234567.0, 12345678.9, 1e-7 / 3, 1e15 / 7, 1e-12 / 3, 3e22 / 7]
)
def test_the_least_gap_in_the_message_is_rounded_up(least):
    """Whatever its size, the number that is printed is reachable: never below the least gap."""
    table = {"bonus": np.array([least, 0.0, least, 0.0])}
    computed = aggregate(
        table,
        y=[0, 1, 1, 0],
        predicted=[0, 1, 1, 0],
        policy="label",
        sensitive_features=[0, 1, 0, 1],
        happiness={"bonus": lambda decision, x: decision * least * 1e-3 + x["bonus"]},
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(computed, gap=0.0)
    truth = caught.value.least_gap
    assert truth == pytest.approx(0.999 * least, rel=1e-12)
    named = number_in(str(caught.value))
    assert truth * (1 - 1e-12) <= named <= truth * (1 + 1.1e-5)
    assert solve(computed, gap=named).gap <= named * (1 + 1e-12)


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_where_no_decision_matters_requirements_are_met_or_refused(unit, offset):
    """Happiness that no decision changes has one gap and one mean per group, in any unit: take it or leave it."""
    happiness = {"f": lambda decision, group: unit * (offset + 1.0 * group)}
    computed = as_if_changed(aggregates_of(some_rows(10), happiness=happiness, groups=[0, 1]))
    with pytest.raises(InfeasibleError) as caught:
        solve(computed, gap=0.5 * unit)
    assert caught.value.least_gap == pytest.approx(unit, rel=1e-9)
    assert solve(computed, gap=caught.value.least_gap).gap == pytest.approx(unit, rel=1e-9)
    low, high = unit * (offset + 0.5), unit * (offset - 0.5)
    assert solve(computed, gap={}, constraints=[Floor("f", high)]).means["f"][0] >= high
    with pytest.raises(InfeasibleError, match="group 0 at least"):
        solve(computed, gap={}, constraints=[Floor("f", low)])
    with pytest.raises(InfeasibleError, match="all people together"):
        solve(computed, gap={}, constraints=[Budget("f", at_most=unit * (offset + 0.25))])


@pytest.mark.parametrize("seed", [4309, 12438, 15289, *range(40)])
def test_the_least_gap_can_be_asked_for_when_groups_are_far_apart(seed):
    """When groups are thousands of swings apart, the numbers of the error can still be asked for.

    The first three seeds once ended in "Unknown" or in the same error again.
    """
    rng = np.random.default_rng(seed)
    G = int(rng.integers(2, 5))
    n = G * int(rng.integers(1, 4))
    label, predicted, group = rng.integers(0, 2, n), rng.integers(0, 2, n), np.arange(n) % G
    away = rng.choice([28.0, 7.0, 0.028, 0.7, 280.0])
    eta = rng.integers(-8, 9, (n, 2)) / rng.choice([4, 8, 10, 100]) * rng.choice([1e-3, 1.0, 1e-2])
    eta = eta + away * (group == 0)[:, None] + rng.choice([0, -1000.0, 1e6])
    computed = aggregate(
        {"eta": eta},
        y=label,
        predicted=predicted,
        policy="label",
        sensitive_features=group,
        sample_weight=np.full(n, 2),  # a group of one person is refused
        classes=[0, 1],
        happiness={"eta": lambda decision, x: x["eta"][:, decision]},
    )
    try:
        solve(computed, gap=0.0)
    except InfeasibleError as error:
        for asked in (number_in(str(error)), error.least_gap):
            assert solve(computed, gap=asked).gap <= asked * (1 + 1e-9)


@examples
@given(gap_problems(n_groups=st.integers(2, 4)), st.data())
def test_conflicts_are_irreducible(problem, data):
    """What the error lists conflicts, and does not once any one of it is dropped, by the naive program."""
    rows, loss, exact, widths = problem
    constraints, wanted = data.draw(requirements(rows, exact, beyond=True))
    constraints2, wanted2 = data.draw(requirements(rows, exact, beyond=True))
    constraints, wanted = constraints + constraints2, wanted + wanted2
    wanted = [GapAtMost(j, width) for j, width in enumerate(widths)] + wanted
    computed = aggregates_of(rows, loss)
    asked = requirements_of(by_name(widths), constraints, computed.measures)
    words = [row.words for row in rows_of(asked, computed)]
    assert len(words) == len(wanted)
    assume(len(set(words)) == len(words))
    if feasible_by_oracle(exact, wanted):
        assert_optimal(exact, wanted, solve(computed, gap=by_name(widths), constraints=constraints))
        return
    with pytest.raises(InfeasibleError) as caught:
        solve(computed, gap=by_name(widths), constraints=constraints)
    conflict = caught.value.conflict
    assert len(set(conflict)) == len(conflict)
    assert all(part in str(caught.value) for part in conflict)
    assert_irreducible(exact, [wanted[words.index(part)] for part in conflict])
    if len(conflict) == 1 and isinstance(wanted[words.index(conflict[0])], GapAtMost):
        j = wanted[words.index(conflict[0])].j
        assert caught.value.least_gap == pytest.approx(
            least_gap_by_oracle(exact, j), rel=0, abs=1e-9 * (float(exact.swing[j]) or 1)
        )
    else:
        assert caught.value.least_gap is None


def test_a_conflict_is_told_in_words_and_units():
    """A floor above what a budget pays for is named with groups, numbers and units, and nothing else is blamed."""
    from felicific import Happiness

    funding = Happiness(lambda decision, x: decision * x["loan"], name="funding", unit="$")
    computed = aggregate(
        {"loan": np.full(8, 1000.0)},
        y=[0, 1] * 4,
        predicted=[0, 1] * 4,
        policy="label",
        sensitive_features=["men", "women"] * 2 + ["men", "men", "women", "women"],
        happiness=funding,
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(
            computed,
            gap=5000.0,
            constraints=[Floor("funding", 600.0), Budget("funding", at_most=500_000, per=1000)],
        )
    assert set(caught.value.conflict) == {
        "mean 'funding' of group 'men' at least $600",
        "mean 'funding' of group 'women' at least $600",
        "'funding' of all people together at most $500,000 for 1,000 people",
    }
    assert "gap" not in caught.value.problem


# ---------------------------------------------------------------------------------------------------------
# Empty cells


@examples
@given(gap_problems(), st.data())
def test_an_empty_cell_gets_the_baselines_decision(problem, data):
    """A (group, label) that nobody shows is decided as the label says, exactly, whatever the rest needs."""
    rows, loss, _, _ = problem
    z, s = data.draw(st.integers(0, rows.n_groups - 1)), data.draw(st.integers(0, rows.n_classes - 1))
    score = rows.score.copy()
    score[np.ix_(rows.group == z, [s])] = 0.0
    score[score.sum(axis=1) == 0, s - 1] = 1.0
    score /= score.sum(axis=1, keepdims=True)
    rows = replace(rows, score=score, predicted=score.argmax(axis=1))
    exact = Exact(rows)
    widths = [0.5 * float(gap) for gap in exact.gaps_of(exact.cheapest())]
    wanted = [GapAtMost(j, width) for j, width in enumerate(widths)]
    assume(feasible_by_oracle(exact, wanted))
    policy = solve(aggregates_of(rows, loss), gap=by_name(widths))
    empty = [(a, b) for a in range(rows.n_groups) for b in range(rows.n_classes) if exact.mass[a][b] == 0]
    assert (z, s) in empty
    for a, b in empty:
        assert policy.q[a, b].tolist() == np.eye(rows.n_classes)[b].tolist()
    assert_optimal(exact, wanted, policy)


# ---------------------------------------------------------------------------------------------------------
# Losses


def test_losses_written_in_three_ways_agree():
    """The error rate, its cost matrix and its function are one loss; a matrix is (label, decision)."""
    rows = some_rows(8, K=3, G=3, n=90)
    by_matrix = 1.0 - np.eye(3)
    losses = ("error", by_matrix, by_matrix.tolist(), lambda y, decision: y != decision)
    found = [solve(aggregates_of(rows, loss), gap=0.2).loss for loss in losses]
    assert found == pytest.approx([found[0]] * 4, rel=0, abs=1e-14)

    lopsided = np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [9.0, 3.0, -1.0]])
    rows = replace(rows, cost=lopsided[rows.label])
    exact = Exact(rows)
    for loss in (lopsided, lambda decision, y: lopsided[y, decision], None):
        computed = aggregates_of(rows, loss)
        assert computed.baseline.loss == pytest.approx(float(exact.baseline_loss), abs=1e-13)
        assert_optimal(exact, [GapAtMost(0, 0.2)], solve(computed, gap=0.2))


def test_a_loss_may_look_at_everything():
    """A loss function gets decision, x, y and group by name, as a happiness does."""
    rows = some_rows(9)
    table = {"loan": np.arange(40.0)}

    def loss(group, y, x, decision):
        return (y != decision) * (1 + group) * x["loan"]

    computed = aggregate(
        table,
        y=rows.label,
        predicted=rows.predicted,
        policy="label",
        sensitive_features=rows.group,
        happiness="statistical_parity",
        loss=loss,
    )
    naive = [(rows.label[i] != rows.predicted[i]) * (1 + rows.group[i]) * table["loan"][i] for i in range(40)]
    assert isinstance(computed, Aggregates)
    assert computed.baseline.loss == pytest.approx(sum(naive) / 40, rel=1e-14)
