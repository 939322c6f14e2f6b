"""Bets on means, and on differences of means, against a gambler who goes from value to value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from felicific._statistics import bets
from felicific._statistics.bets import BINS, Game, bin_of, by_group, count_bins, mean_limits, shuffled

KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.3, 5.0, n),
    "rate": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "rare": lambda rng, n: (rng.random(n) < 0.002).astype(float),
    "all alike": lambda rng, n: np.full(n, 0.25),
    "nobody": lambda rng, n: np.zeros(n),
    "close": lambda rng, n: 0.5 + 0.001 * rng.random(n),
    "few values": lambda rng, n: rng.choice([0.0, 0.1, 1.0], n, p=[0.98, 0.01, 0.01]),
}


def ordered(*groups):
    """Values of groups in the orders that are drawn for them."""
    codes = np.repeat(np.arange(len(groups)), [len(values) for values in groups])
    return shuffled(by_group(count_bins(np.concatenate(groups), codes, (0.0, 1.0), None), len(groups)))


def limits(values, tail=0.025):
    return mean_limits(ordered(values)[0], tail)


def naive_capital(x, m, tail, steps=64, most=math.inf):
    """The capital of every gambler in the end, by loops."""
    found = []
    for order in x:
        length, seen = math.ceil(len(order) / steps), []
        log = 0.0
        for start in range(0, len(order), length):
            spread = (4 * m * (1 - m) + sum((value - m) ** 2 for value in seen)) / (4 + len(seen))
            ahead = (len(order) - len(seen)) * spread
            stake = min(math.sqrt(2 * max(math.log(1 / tail) - log, 0) / ahead), 0.95 / m, most)
            part = order[start : start + length].tolist()
            log += sum(math.log1p(stake * (value - m)) for value in part)
            seen += part
        found.append(math.exp(log))
    return np.mean(found)


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**31), n=st.integers(1, 300), m=st.floats(1e-3, 0.999), tail=st.sampled_from([0.2, 0.025])
)  # fmt: skip
def test_a_game_is_that_of_betting_on_one_value_after_the_other(kind, seed, n, m, tail):
    """A mean is refuted where the gamblers have, on average, as much as was aimed at."""
    x = ordered(KINDS[kind](np.random.default_rng(seed), n))[0]
    capital = naive_capital(x, m, tail) * tail
    if abs(capital - 1.0) > 1e-6:  # else rounding decides
        assert bool(Game(x).refutes(np.array([m]), tail)[0]) == (capital > 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_values_capital_is_never_overstated(kind, monkeypatch):
    """Sums of powers refute nothing that the values themselves do not, by stakes of at most a half, and nearly all."""
    x = ordered(KINDS[kind](np.random.default_rng(7), 400))[0]
    monkeypatch.setattr(bets, "MANY", 10)
    game, tail = Game(x), 0.025
    low = bets.lower(x, tail)
    for m in (
        *(low * np.array([0.5, 0.9, 0.999])),
        *(low + (x[0].mean() - low) * np.array([0.01, 0.2, 0.6])),
    ):
        if m <= 0.0:
            continue
        refuted = bool(game.refutes(np.array([m]), tail)[0])
        capital = naive_capital(x, m, tail, most=0.5) * tail
        assert not refuted or capital >= 1.0 - 1e-6
        assert refuted or capital <= 1.3
        assert refuted or m >= low


@pytest.mark.parametrize("n", [5, 20, 80])
def test_every_rate_is_covered(n):
    """Samples of two values meet the same order again and again: no rate may be covered less often than stated.

    The coverage is computed, not simulated.
    """
    low, high = np.array([limits(np.repeat([1.0, 0.0], [hits, n - hits])) for hits in range(n + 1)]).T[
        :, :, None
    ]
    rate = np.linspace(0.005, 0.995, 199)
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rate)
    assert (chance * ((low <= rate) & (rate <= high))).sum(axis=0).min() >= 0.95


@pytest.mark.parametrize("kind", ["beta", "two points", "hidden"])
def test_means_are_covered(kind):
    """Whatever the values are, also where what matters is mostly not in a sample; narrower limits are found out."""
    rng, tail, runs = np.random.default_rng(3), 0.1, 300
    draw, truth = {
        "beta": (lambda: rng.beta(0.3, 0.6, 60), 1 / 3),
        "two points": (lambda: rng.choice([0.0, 0.9], 60, p=[0.2, 0.8]), 0.72),
        "hidden": (lambda: rng.choice([0.0, 1.0], 60, p=[0.99, 0.01]), 0.01),
    }[kind]
    low, high = np.array([limits(draw(), tail) for _ in range(runs)]).T
    room = 3 * math.sqrt(tail * (1 - tail) / runs)
    assert (low > truth).mean() <= tail + room
    assert (high < truth).mean() <= tail + room
    if kind == "beta":
        middle, half = (low + high) / 2, (high - low) / 2
        assert (np.abs(middle - truth) > 0.45 * half).mean() > 2 * tail + room


def test_differences_at_the_boundary_are_rarely_shown():
    """That one mean is at most .05 above another, which it is, is shown in at most one sample of ten."""
    rng, tail, runs, shown, closed, agree = np.random.default_rng(5), 0.1, 300, 0, 0, 0
    for _ in range(runs):
        x, y = ordered(0.05 + 0.95 * rng.beta(2, 2, 60), 0.95 * rng.beta(2, 2, 150))
        shown += bets.shows(x, y, 0.05, tail)
        closed += bets.most_apart(x, y, tail) < 0.05
        agree += bets.shows(x, y, bets.most_apart(x, y, tail) + 1e-3, tail)
    assert max(closed, shown) <= tail * runs
    assert agree >= 0.9 * runs  # capital is not quite monotone, and limits leave no hole out


def test_the_order_is_one_of_the_counts_and_of_nothing_else():
    """Rows in another order, and another unit, give the same limits; another value, or another group, other orders."""
    rng = np.random.default_rng(9)
    x, y = np.round(rng.beta(2, 3, 300), 2), np.round(rng.beta(2, 3, 300), 2)
    assert limits(rng.permutation(x)) == limits(x)
    one, other = ordered(x, y), ordered(x, np.append(y[1:], 0.5))
    assert not np.array_equal(one[0], other[0])
    same = ordered(x, x)  # of equal counts: else they would be paired with themselves
    assert not np.array_equal(same[0], same[1])
    np.testing.assert_array_equal(np.sort(same[0], axis=1), np.sort(same[1], axis=1))
    places = np.array([np.flatnonzero(order > 0.5) for order in ordered(np.repeat([0.0, 1.0], 500))[0]])
    for part in places:  # equal values are spread over the whole order
        assert stats.kstest(part / 1000, "uniform").pvalue > 1e-3


def test_bins_err_outward():
    """Limits take the lower edges of bins below and the upper ones above, and the ends of the range are in it."""
    x = np.array([0.0, 0.3, 1.0 - 1e-9, 1.0])
    assert bin_of(x, 0.0, 1.0).tolist() == [0, int(0.3 * BINS), BINS - 1, BINS - 1]
    assert bin_of(np.array([-5.0, 15.0]), -5.0, 15.0).tolist() == [0, BINS - 1]
    low, high = limits(np.full(5000, 0.3))
    assert low <= 0.3 <= high


def test_many_people_are_drawn_from(monkeypatch):
    """Of more people than are bet on so many are drawn, and limits are hardly those of all."""
    x = np.random.default_rng(1).random(4000)
    before = limits(x)
    monkeypatch.setattr(bets, "MOST", 1000)
    after = limits(x)
    assert ordered(x)[0].shape == (4, 1000)
    assert 1.5 < (after[1] - after[0]) / (before[1] - before[0]) < 2.5
    assert after[0] <= 0.5 <= after[1]


def test_limits_are_narrow():
    """At a standard deviation of .1 and 1,000 people they take at most a third of Hoeffding's width."""
    x = np.clip(np.random.default_rng(10).normal(0.5, 0.1, 1000), 0.0, 1.0)
    low, high = limits(x)
    assert high - low <= 2.0 * math.sqrt(math.log(2.0 / 0.05) / 2000.0) / 3
    assert high - low <= 1.35 * 2 * 1.96 * x.std() / math.sqrt(1000)


def test_small_samples_give_the_whole_range():
    """Nobody or one person leaves everything open; values at the end of the range leave a one-sided interval."""
    assert limits(np.empty(0)) == (0.0, 1.0)
    low, high = limits(np.array([1.0]))
    assert low < 0.025
    assert high == pytest.approx(1.0)
    low, high = limits(np.zeros(1000))
    assert low == 0.0
    assert 0.0 < high < 0.02
