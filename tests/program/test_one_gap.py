"""One gap without a linear program, against the naive program."""

import math
import pickle
import tracemalloc

import numpy as np
import pytest
from naive_program import Naive
from strategies import world

from felicific import Floor, Gap, Score, aggregate, frontier, solve
from felicific._problem.constraints import requirements_of
from felicific._problem.requirement import rows_of
from felicific._program.change_cost import resolved
from felicific._program.master import TIE
from felicific._program.one_gap import one_gap
from felicific._program.program import Program
from felicific._program.solution import solve_program
from felicific.exceptions import InfeasibleError

SEEDS = [
    pytest.param(range(first, first + 20), id=f"from {first}", marks=[pytest.mark.slow] * (first >= 200))
    for first in range(0, 500, 20)
]


def far(sums):
    """Whether values are so far from 0 that levels are known to rounding alone."""
    return np.abs(sums.origin).max() > 1e5 * np.abs(sums.value).max()


def floors_of(sums, rng, means):
    """No floor, the baseline's means, or a level under some groups."""
    name, kind = sums.measures[0].name, rng.random()
    if kind < 0.6 or far(sums):
        return ()
    if kind < 0.8:
        return (Floor(name, "baseline"),)
    some = [group for group in sums.groups if rng.random() < 0.5] or [sums.groups[0]]
    return (Floor(name, float(np.quantile(means, rng.random())), groups=some),)


def answer(sums, requirements, **options):
    """The solution, or None where there is none."""
    try:
        return solve_program(sums, requirements, **options)
    except InfeasibleError:
        return None


def distances(sums, found, **options):
    """What was minimised, and how far the policy is from the baseline's decisions."""
    program = Program.of(sums, **options)
    return program.value(found.q), float((found.q * program.changes)[program.occupied].sum())


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_policy_is_that_of_the_naive_program(seeds):
    """Loss, nearness to the baseline's decisions and what cannot be met agree; prices lie between the two slopes."""
    for seed in seeds:
        sums, rng = world(seed), np.random.default_rng([seed, 1])
        asked_cost = [0.0, "auto", 0.05][rng.integers(3)]
        cost = {"change_cost": resolved(sums, asked_cost)}
        name, free = sums.measures[0].name, solve_program(sums, (), **cost)
        floors, naive = floors_of(sums, rng, free.outcome.means), Naive(sums, change_cost=asked_cost)
        program = Program.of(sums, **cost)
        changes = program.changes * program.occupied[:, :, None]
        for share in (0.0, rng.random(), 1.0, 1.5):
            gap = share * float(free.outcome.gaps[0])
            asked = requirements_of({name: gap}, floors, sums.measures)
            found, least = answer(sums, asked, **cost), naive.least(asked)
            assert (found is None) == (least is None), seed
            if found is None:
                continue
            value, far_off = distances(sums, found, **cost)
            assert value == pytest.approx(least, abs=1e-9 * naive.unit), seed
            assert naive.missed(asked, found.q) <= 1e-8
            assert far_off <= naive.changes(asked, changes, TIE) + 1e-6, seed
            if not floors and not far(sums) and share in (0.0, 1.0):
                _between_slopes(naive, name, gap, 1e-4 * free.outcome.gaps[0], found)


def _between_slopes(naive, name, gap, step, found):
    """The price of the gap is no less than what a little more of it saves, and no more than a little less costs."""
    if not step > 1e-9 * np.abs(naive.sums.value).max() / naive.sums.total:
        return  # nothing but rounding is between the groups

    def value(at):
        there = naive.least([Gap(name, at, min_people=0)])
        return math.inf if there is None else there

    here, price, noise = value(gap), found.prices[name], 1e-9 * naive.unit / step
    assert price >= (here - value(gap + step)) / step - noise
    if gap > step:
        assert price <= (value(gap - step) - here) / step + noise


@pytest.mark.parametrize("seeds", SEEDS[:6])
def test_the_frontier_is_that_of_the_naive_program(seeds):
    """At breakpoints and between them losses agree, and so do those of policies; prices are the slopes."""
    for seed in seeds:
        sums = world(seed)
        line, naive, name = frontier(sums), Naive(sums), sums.measures[0].name
        rise = line.value[0] - line.value[-1]
        if rise <= 1e-9 * max(abs(line.value[0]), 1e-3):
            continue
        taus = np.linspace(line.tau[0], line.tau[-1], 7)
        for tau in [*line.tau[1:5], *taus[1:-1]]:
            least = naive.least([Gap(name, float(tau), min_people=0)])
            assert np.interp(tau, line.tau, line.value) == pytest.approx(least, abs=1e-9 * rise), seed
        for tau in taus[1:-1]:
            there = np.interp(tau, line.tau, line.value)
            assert line.at(tau=tau).loss == pytest.approx(there, abs=1e-9 * rise), seed
        assert line.prices[:-1, 0] == pytest.approx(-np.diff(line.value) / np.diff(line.tau), rel=1e-9)


def test_the_price_is_that_of_tightening():
    """At a breakpoint there are two slopes; a policy that is asked for states the steeper one."""
    sums = world(3, monotone=True)
    line = frontier(sums)
    name = sums.measures[0].name
    for i in range(1, len(line)):
        gap = float(line.tau[i]) * (1 - 1e-6) + float(line.tau[i - 1]) * 1e-6
        assert solve(sums, gap=gap).prices[name] == pytest.approx(line.prices[i, 1], rel=1e-6)


@pytest.mark.parametrize("n", [5, 9, 12])
def test_a_gap_of_rounding_alone_has_no_price(n):
    """Where everybody can be decided on as they like, nothing is to be closed: one point, and it costs nothing."""
    people = {
        "score": (np.arange(n) + 0.5) / n,
        "y": np.arange(n) % 3 % 2,
        "g": (np.arange(n) * 7 % 5 > 1) * 1,
    }

    def right(decision, y):
        return 1.0 * (decision == y)

    sums = aggregate(
        people, score="score", y="y", sensitive_features="g", happiness=right, policy=Score(monotone=False)
    )
    line = frontier(sums)
    assert len(line) == 1
    assert line.loss.tolist() == pytest.approx([0.0])
    assert solve(sums, gap=0.0).prices == {"right": 0.0}


def test_a_group_that_is_not_compared_decides_as_if_alone():
    """A gap of large groups leaves a small one at its own least loss, nearest to the baseline's decisions."""
    sums = world(6, monotone=True)
    name, people = sums.measures[0].name, sums.people
    least = float(people.min()) + 0.5
    asked = (Gap(name, 0.0, min_people=least),)
    found, free = solve_program(sums, asked), solve_program(sums, ())
    assert found.outcome.loss == pytest.approx(Naive(sums).least(asked), abs=1e-10)
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


def test_who_is_approved_is_who_is_not_refused():
    """Of two decisions the gaps of both are one: no linear program, and the price is that of one of them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        group, score = rng.integers(0, 4, 300), np.round(rng.random(300), 2)
        y = (rng.random(300) < score).astype(int)
        sums = aggregate(
            score[:, None], score=score, y=y, sensitive_features=group, happiness="statistical_parity"
        ).joined()
        free = solve_program(sums, ())
        for share in (0.0, 0.4):
            gaps = dict.fromkeys((part.name for part in sums.measures), share * free.outcome.gaps[0])
            asked = requirements_of(gaps, (), sums.measures)
            assert one_gap(Program.of(sums), rows_of(asked, sums)) is not None
            found = solve_program(sums, asked)
            assert found.outcome.loss == pytest.approx(Naive(sums).least(asked), abs=1e-9)
            assert list(found.prices) == list(gaps)


def test_gaps_of_other_groups_are_not_one():
    """A gap of large groups and one of all groups are two, and so are gaps of different happiness."""
    sums = world(6, 2, monotone=True)
    least = float(np.sort(sums.people)[1])
    first, second = (part.name for part in sums.measures)
    for asked in ((Gap(first, 0.1), Gap(first, 0.2, min_people=least)), (Gap(first, 0.1), Gap(second, 0.1))):
        rows = rows_of(asked, sums)
        assert one_gap(Program.of(sums), rows) is None


def test_a_thousand_groups_take_little_memory():
    """A frontier of thousands of breakpoints holds no policy, and no table of groups by groups."""
    rng, n_groups, n = np.random.default_rng(0), 1_000, 60_000
    group = np.concatenate([np.tile(np.arange(n_groups), 2), rng.integers(0, n_groups, n - 2 * n_groups)])
    score = np.clip(rng.beta(2.2, 2.8, n) * (1 - 0.1 * np.sin(group)), 0, 1)
    sums = aggregate(
        {"amount": rng.lognormal(0, 0.5, n) * (1 + 0.3 * np.cos(group))},
        score=score,
        y=(rng.random(n) < score).astype(int),
        sensitive_features=group,
        happiness="decision * amount",
        policy=Score(32),
    ).joined()
    held = sum(part.nbytes for part in (sums.mass, sums.loss, sums.value, sums.among))
    tracemalloc.start()
    line = frontier(sums)
    assert len(line) > n_groups
    line.at(gap=float(line.tau[-1]) / 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * held  # 1,000 x 1,000 shares alone would be 5 times that, and all policies 1,000 times
    assert held < 8 * n_groups**2 / 2


@pytest.mark.parametrize("seeds", SEEDS[:3])
def test_a_gap_that_is_wide_enough_changes_nothing(seeds):
    """However large a number is asked for, it costs nothing, moves nobody, and nobody faces a lottery for it."""
    for seed in seeds:
        sums = world(seed)
        free = solve_program(sums, ())
        for wide in (1.0, 1e3, 1e9, 1e15):
            gap = wide * float(2.0 * np.abs(free.outcome.means).max() + 1.0)
            found = solve_program(sums, requirements_of({sums.measures[0].name: gap}, (), sums.measures))
            assert not ((found.q > 0.0) & (found.q < 1.0)).any(), (seed, wide)
            assert distances(sums, found) == pytest.approx(distances(sums, free), rel=1e-12), (seed, wide)
            assert found.prices[sums.measures[0].name] == 0.0
