"""Thresholds as the columns of the program, few of them at a time, against the plain program."""

import pickle

import numpy as np
import pytest
from plain import distances, plain, solve_plainly, world

from felicific import Budget, Exploration, Floor, Ratio, frontier
from felicific._fit.alternatives import least_gap_at
from felicific._problem.constraints import requirements_of
from felicific._program.solution import solve_program
from felicific.exceptions import ConstraintError, InfeasibleError

SEEDS = [range(first, first + 20) for first in range(0, 500, 20)]


def further(sums, rng, means, sees_group):
    """Nothing, a floor, a budget, chances or a ratio beside the gaps."""
    j, kind = (
        int(rng.integers(len(sums.measures))),
        rng.choice(["none", "floor", "budget", "chance", "ratio"]),
    )
    name = sums.measures[j].name
    if kind == "floor":
        return (Floor(name, "baseline"),)
    if kind == "budget":
        total = float(sums.counted[:, j] @ means[:, j] / sums.counted[:, j].sum())
        far = 0.2 * rng.random() * float(np.ptp([sums.least[:, j], sums.most[:, j]]))
        return (
            Budget(name, at_most=total - far) if rng.random() < 0.5 else Budget(name, at_least=total + far),
        )
    if kind == "chance":
        some = [sums.groups[0]] if sees_group and rng.random() < 0.5 else None
        return (Exploration(0.1, groups=some, decision=int(rng.integers(2))),)
    return (Ratio(name, 0.8),) if kind == "ratio" else ()


def answer(ask, sums, requirements, **options):
    """The solution, or that there is none."""
    try:
        return ask(sums, requirements, **options)
    except InfeasibleError as error:
        return error


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_policy_is_that_of_the_plain_program(seeds):
    """With several measures, floors, budgets, chances, ratios, seen groups or none: loss and nearness agree."""
    for seed in seeds:
        rng = np.random.default_rng([seed, 2])
        sums, sees_group = world(seed, int(rng.integers(1, 5)), monotone=True), bool(rng.random() < 0.7)
        options = {"change_cost": [0.0, "auto", 0.05][rng.integers(3)], "sees_group": sees_group}
        free = solve_program(sums, (), **options)
        more = further(sums, rng, free.outcome.means, sees_group)
        for share in (0.1, rng.random()):
            asked = zip(sums.measures, free.outcome.gaps.tolist(), strict=True)
            gaps = {measure.name: share * gap for measure, gap in asked if rng.random() < 0.8}
            requirements = requirements_of(gaps, more, sums.measures)
            try:
                known = answer(solve_plainly, sums, requirements, **options)
            except ConstraintError:
                continue  # a ratio of what may be negative
            found = answer(solve_program, sums, requirements, **options)
            if isinstance(known, InfeasibleError):
                assert isinstance(found, InfeasibleError), seed
                continue
            own, other = distances(sums, found, **options), distances(sums, known, **options)
            assert own[0] == pytest.approx(other[0], abs=1e-9), seed
            assert own[1] == pytest.approx(other[1], abs=1e-6), seed
            assert set(found.prices) == set(known.prices)


@pytest.mark.parametrize("seed", range(12))
def test_the_frontier_is_that_of_the_plain_program(seed):
    """With several measures, losses agree along the whole ray, and so do policies between breakpoints."""
    sums = world(seed, 2 + seed % 2, monotone=True)
    seen = {"sees_group": seed % 3 > 0}
    # Where several policies are best without a requirement, their gaps differ: both go the same way.
    names = [measure.name for measure in sums.measures]
    free = solve_program(sums, (), sees_group=seen["sees_group"]).outcome.gaps.tolist()
    asked = seen | {"gap": dict(zip(names, free, strict=True))}
    line, known = frontier(sums, **asked), plain(lambda: (found := frontier(sums, **asked), len(found))[0])
    rise = known.value[0] - known.value[-1]
    if rise <= 1e-9 * max(abs(known.value[0]), 1e-3):
        pytest.skip("the loss does not rise")
    for one, other in ((line, known), (known, line)):
        there = np.interp(one.tau, other.tau, other.value)
        assert one.value == pytest.approx(there, abs=1e-9 * rise)
    for tau in np.linspace(known.tau[0], known.tau[-1], 5)[1:-1]:
        assert line.at(tau=tau).loss == pytest.approx(np.interp(tau, known.tau, known.value), abs=1e-9 * rise)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_gap_at_a_loss_is_that_of_the_plain_program(seed):
    """The other way round too."""
    sums = world(seed, 2, monotone=True)
    free = solve_program(sums, ())
    loss = free.outcome.loss + 0.02
    widths = np.maximum(free.outcome.gaps, 1e-12)

    def ask():
        return least_gap_at(sums, widths, loss, sees_group=True, salt="0" * 32)

    found, known = ask(), plain(ask)
    assert found[0] == pytest.approx(known[0], rel=1e-7, abs=1e-9)


def test_a_policy_does_not_depend_on_which_others_were_looked_at():
    """Found first or last, alone or from a stored frontier, the policy of a breakpoint is the same to the last bit."""
    sums = world(7, 3, monotone=True)
    line, other = frontier(sums), frontier(sums)
    assert len(line) > 2
    there = [point.q for point in line.points]
    back = [point.q for point in reversed(other.points)][::-1]
    again = [point.q for point in pickle.loads(pickle.dumps(line)).points]
    for one, two, three in zip(there, back, again, strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)
