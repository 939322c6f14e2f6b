"""One gap without a linear program, against the plain program."""

import pickle

import numpy as np
import pytest
from plain import distances, plain, solve_plainly, world

from felicific import Floor, Gap, frontier, solve
from felicific._problem.asked import requirements_of
from felicific._program.solution import solve_program
from felicific.exceptions import InfeasibleError

SEEDS = [range(first, first + 20) for first in range(0, 500, 20)]


def floors_of(sums, rng, means):
    """No floor, today's means, or a level under some groups."""
    name, kind = sums.components[0].name, rng.random()
    far = np.abs(sums.origin).max() > 1e5 * np.abs(sums.value).max()  # levels are known to rounding alone
    if kind < 0.6 or far:
        return ()
    if kind < 0.8:
        return (Floor(name, "today"),)
    some = [group for group in sums.groups if rng.random() < 0.5] or [sums.groups[0]]
    return (Floor(name, float(np.quantile(means, rng.random())), groups=some),)


def answer(ask, *arguments, **options):
    """The solution, or whether there is none."""
    try:
        return ask(*arguments, **options)
    except InfeasibleError as error:
        return error


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_policy_is_that_of_the_plain_program(seeds):
    """Loss, nearness to today's decisions and what cannot be met agree; prices lie between the two slopes."""
    for seed in seeds:
        sums, rng = world(seed), np.random.default_rng([seed, 1])
        cost = {"change_cost": float(rng.choice([0.0, 0.0, 0.05]))}
        name, free = sums.components[0].name, solve_program(sums, (), **cost)
        floors = floors_of(sums, rng, free.outcome.means)
        for share in (0.0, rng.random(), 1.0, 1.5):
            gap = share * float(free.outcome.gaps[0])
            asked = requirements_of({name: gap}, floors, sums.components)
            found, known = (
                answer(solve_program, sums, asked, **cost),
                answer(solve_plainly, sums, asked, **cost),
            )
            if isinstance(known, InfeasibleError):
                assert isinstance(found, InfeasibleError), seed
                continue
            own, other = distances(sums, found, **cost), distances(sums, known, **cost)
            assert own[0] == pytest.approx(other[0], abs=2e-8 if gap else 1e-8), seed
            assert own[1] == pytest.approx(other[1], abs=1e-6), seed


@pytest.mark.parametrize("seeds", SEEDS[:6], ids=str)
def test_the_frontier_is_that_of_the_plain_program(seeds):
    """Wherever the loss rises by more than rounding, breakpoints, losses and policies agree."""
    for seed in seeds:
        sums = world(seed)
        line, known = frontier(sums), plain(lambda sums=sums: (found := frontier(sums), len(found))[0])
        rise = known.value[0] - known.value[-1]
        if rise <= 1e-9 * max(abs(known.value[0]), 1e-3):
            continue
        taus = np.linspace(known.tau[0], known.tau[-1], 7)
        for one, other in ((line, known), (known, line)):
            there = np.interp(one.tau, other.tau, other.value)
            assert one.value == pytest.approx(there, abs=1e-8 * rise), seed
        for tau in taus[1:-1]:
            assert line.at(tau=tau).loss == pytest.approx(known.at(tau=tau).loss, abs=1e-7 * rise), seed
        assert line.prices[:-1, 0] == pytest.approx(-np.diff(line.value) / np.diff(line.tau), rel=1e-9)


def test_the_price_is_that_of_tightening():
    """At a breakpoint there are two slopes; a policy that is asked for states the steeper one."""
    sums = world(3, monotone=True)
    line = frontier(sums)
    name = sums.components[0].name
    for i in range(1, len(line)):
        gap = float(line.tau[i]) * (1 - 1e-6) + float(line.tau[i - 1]) * 1e-6
        assert solve(sums, gap=gap).prices[name] == pytest.approx(line.prices[i, 1], rel=1e-6)


def test_a_group_that_is_not_compared_decides_as_if_alone():
    """A gap of large groups leaves a small one at its own least loss, nearest to today's decisions."""
    sums = world(6, monotone=True)
    name, people = sums.components[0].name, sums.people
    least = float(people.min()) + 0.5
    asked = (Gap(name, 0.0, min_people=least),)
    found, known, free = solve_program(sums, asked), solve_plainly(sums, asked), solve_program(sums, ())
    assert found.outcome.loss == pytest.approx(known.outcome.loss, abs=1e-10)
    small = np.flatnonzero(people < least)
    assert len(small)
    assert found.q[small] == pytest.approx(free.q[small])


def test_a_frontier_of_many_breakpoints_is_made_piece_by_piece():
    """Policies of breakpoints are found when they are asked for, and a stored frontier finds them too."""
    sums = world(11, monotone=True)
    line = frontier(sums)
    again = pickle.loads(pickle.dumps(line))
    assert again.tau.tolist() == line.tau.tolist()
    for one, other in zip(line.points, again.points, strict=True):
        assert one.q == pytest.approx(other.q)
        assert one.outcome.loss == pytest.approx(one.value, abs=1e-12)
        assert sums.evaluate(one.q).gaps[0] == pytest.approx(one.tau, abs=1e-9 * line.tau[-1])
