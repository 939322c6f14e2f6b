"""Betting by blocks, against fortunes that are multiplied value by value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicific._statistics import betting
from felicific._statistics.betting import BLOCKS, MANY, Betting, Blocks, Placed, Sums, betting_limits

KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.3, 5.0, n),
    "rate": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "rare": lambda rng, n: (rng.random(n) < 0.002).astype(float),
    "nearly all": lambda rng, n: (rng.random(n) < 0.999).astype(float),
    "all alike": lambda rng, n: np.full(n, 0.25),
    "nobody": lambda rng, n: np.zeros(n),
    "close": lambda rng, n: 0.5 + 0.001 * rng.random(n),
    "few values": lambda rng, n: rng.choice([0.0, 0.1, 1.0], n, p=[0.98, 0.01, 0.01]),
}


def naive_blocks(x, tail):
    """In every order the values of each block, and what is bet on it; all by loops."""
    x = np.sort(x)
    orders = []
    for keys in betting._keys(x):
        places = [min(int(BLOCKS * math.sqrt(int(key) * 2.0**-64)), BLOCKS - 1) for key in keys]
        held = [[] for _ in range(BLOCKS)]
        for value, place in zip(x.tolist(), places, strict=True):
            held[place].append(value)
        bets, seen = [], []
        for part in held:
            mean = (0.5 + sum(seen)) / (len(seen) + 1)
            spread = (0.25 + sum((value - mean) ** 2 for value in seen)) / (len(seen) + 1)
            bets.append(math.sqrt(2.0 * math.log(1.0 / tail) / (len(x) * spread)))
            seen += part
        orders.append((held, bets))
    return orders


def naive_fortune(orders, m, mirrored):
    """Logarithms of the fortunes."""
    return [
        sum(
            math.log1p(min(bet, 0.5 / m) * ((1.0 - value if mirrored else value) - m))
            for part, bet in zip(held, bets, strict=True)
            for value in part
        )
        for held, bets in orders
    ]


def blocks_of(placed, tail):
    return Blocks.of(Sums.of(placed), tail, lambda: placed)


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(30, 600),
    m=st.floats(1e-6, 1.0 - 1e-6),
    mirrored=st.booleans(),
    tail=st.sampled_from([0.2, 0.025, 1e-4]),
)
def test_fortunes_of_blocks_are_those_of_their_values(kind, seed, n, m, mirrored, tail):
    """A fortune is never more than that of betting on one value after the other, and less by next to nothing."""
    x = KINDS[kind](np.random.default_rng(seed), n)
    blocks = blocks_of(Placed.of(x), tail)
    orders = naive_blocks(x, tail)
    np.testing.assert_allclose(blocks.bet, [bets for _, bets in orders], rtol=1e-6)
    naive = np.array(naive_fortune(orders, m, mirrored))
    ours = blocks.fortune(m, mirrored=mirrored)
    # The bets agree but for rounding; the rest of a series of eight powers is below that.
    room = 1e-9 * (1.0 + np.abs(naive))
    assert (ours <= naive + room).all()
    np.testing.assert_allclose(ours, naive, rtol=1e-5, atol=1e-6 * n)


@pytest.mark.parametrize("kind", KINDS)
def test_limits_of_blocks_err_outward_and_hardly(kind):
    """Against the naive fortunes the limits are won, and a little further inside they are not."""
    x, tail = KINDS[kind](np.random.default_rng(5), 400), 0.025
    orders = naive_blocks(x, tail)
    low, high = blocks_of(Placed.of(x), tail).limits()

    def wins(m, mirrored):
        return np.mean(np.exp(naive_fortune(orders, m, mirrored))) >= 1.0 / tail

    assert low <= x.mean() <= high
    for limit, mean, mirrored in ((low, x.mean(), False), (1.0 - high, 1.0 - x.mean(), True)):
        if limit > 0:
            assert wins(limit * (1.0 - 1e-9), mirrored)
        further = limit + 1e-5 * (mean - limit) + 1e-7
        assert further >= mean or not wins(further, mirrored)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_about_as_wide_as_values_one_by_one(kind):
    """At the size where blocks begin, both ways give nearly the same limits."""
    x = KINDS[kind](np.random.default_rng(7), MANY)
    blocks, values = blocks_of(Placed.of(x), 0.025).limits(), betting._one_by_one(x, 0.025)
    width = values[1] - values[0]
    np.testing.assert_allclose(blocks, values, atol=0.02 * width, rtol=0.0)


def test_limits_do_not_depend_on_the_order_of_rows_or_on_units():
    """Rows in another order give the same limits, and others in another unit the limits in that unit."""
    rng = np.random.default_rng(9)
    x = rng.random(MANY)
    low, high = betting_limits(x, 0.025, 0.0, 1.0)
    assert betting_limits(rng.permutation(x), 0.025, 0.0, 1.0) == (low, high)
    scaled = betting_limits(10.0 + 8.0 * x, 0.025, 10.0, 18.0)
    np.testing.assert_allclose(scaled, (10.0 + 8.0 * low, 10.0 + 8.0 * high), rtol=1e-6)


def test_later_blocks_do_not_change_earlier_bets():
    """What is bet on a block depends on the blocks before it alone."""
    rng = np.random.default_rng(11)
    placed = Placed.of(rng.random(500))
    bet = blocks_of(placed, 0.025).bet
    changed = placed.x.copy()
    changed[placed.block[0] >= 200] = 0.5
    again = blocks_of(Placed(changed, placed.block), 0.025).bet
    np.testing.assert_allclose(again[0, :201], bet[0, :201], rtol=1e-9)
    assert not np.allclose(again[0, 201:], bet[0, 201:], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bets_that_are_asked_again_give_the_same_limits(kind):
    """Sums are kept from one limit to the next, whatever the tail before was."""
    x = KINDS[kind](np.random.default_rng(13), MANY)
    bets = Betting(3.0 * x, 0.0, 3.0)
    for tail in (0.025, 1e-6, 0.2, 0.025):
        assert bets.limits(tail) == betting_limits(3.0 * x, tail, 0.0, 3.0)


def test_blocks_end_at_squares():
    """Block b of B holds the keys from (b / B) ** 2 to ((b + 1) / B) ** 2, the very first and last ones included."""
    edges = np.arange(BLOCKS**2, dtype=np.uint64) << np.uint64(48)
    for keys in (edges, edges + np.uint64(2**48 - 1)):
        expected = [math.isqrt(number) for number in range(BLOCKS**2)]
        assert betting.block_of(keys).tolist() == expected
