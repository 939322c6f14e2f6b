"""Bets on pairs: held to their level in every world within the bounds, and nearly as powerful as Welch's t."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from felicific._statistics import gaps
from felicific._statistics.gaps import shown_by_pairs, spread_of
from felicific._statistics.rates import exact_limits


def naive(one, other, spread, span, width, level, ratio=1.0):
    """One gambler against one ordered pair of groups, person by person; stakes change every few pairs."""
    n, fortune = min(len(one), len(other)), 1.0
    starts = [[k * len(values) // n for k in range(n)] + [len(values)] for values in (one, other)]
    gains = []
    for i in range(n):
        means = [values[at[i] : at[i + 1]].mean() for values, at in zip((one, other), starts, strict=True)]
        gains.append(width - (ratio * means[0] - means[1]))
    squares = 20 * ((ratio * spread[0]) ** 2 * n / len(one) + spread[1] ** 2 * n / len(other) + width**2)
    every = math.ceil(n / 256)
    for i in range(0, n, every):
        if fortune * level >= 1:
            return True
        bet = math.sqrt(2 * math.log(1 / (level * fortune)) / ((n - i) * squares / (20 + i)))
        bet = min(bet, 0.95 / (ratio * span - width))
        for gain in gains[i : i + every]:
            fortune *= 1 + bet * gain
            squares += gain**2
    return fortune * level >= 1


def test_it_is_what_one_gambler_after_the_other_does():
    """All pairs at once, in batches or not, against one gambler per pair; a pass needs all of them."""
    rng, passed = np.random.default_rng(0), []
    for run in range(60):
        sizes = rng.integers(1, 700, rng.integers(2, 5))
        groups = [rng.beta(2, 2, size) for size in sizes]
        spread, level = rng.random(len(sizes)) / 2, 0.1
        width, ratio = [(0.05, 1.0), (0.1, 1.0), (0.3, 1.0), (0.0, 0.8), (0.0, 0.5)][run % 5]
        by_hand = all(
            naive(groups[a], groups[b], spread[[a, b]], 1.0, width, level, ratio)
            for a, b in itertools.permutations(range(len(groups)), 2)
        )
        assert shown_by_pairs(groups, spread, (0.0, 1.0), width, level, ratio) == by_hand, run
        passed.append(by_hand)
    assert 10 < sum(passed) < 50


def test_batches_change_nothing(monkeypatch):
    """Pairs of groups are looked at in batches; what is shown does not depend on how many fit into one."""
    rng = np.random.default_rng(1)
    crowds = [[rng.beta(4, 4, size) for size in (90, 900, 300, 300)] for _ in range(20)]

    def shown():
        return [shown_by_pairs(groups, np.full(4, 0.3), (0.0, 1.0), 0.055, 0.1) for groups in crowds]

    together = shown()
    monkeypatch.setattr(gaps, "TOGETHER", 1)
    assert shown() == together
    assert 0 < sum(together) < 20


def test_units_and_origins_change_nothing():
    """Cents instead of dollars, or everybody a thousand richer: the same answer."""
    rng = np.random.default_rng(2)
    for width in (0.05, 0.12, 0.2):
        groups = [rng.random(200), rng.random(150)]
        spread = np.array([0.3, 0.3])
        moved = [1024.0 + 128.0 * values for values in groups]
        assert shown_by_pairs(groups, spread, (0.0, 1.0), width, 0.1) == shown_by_pairs(
            moved, 128 * spread, (1024.0, 1152.0), 128 * width, 0.1
        )


@pytest.mark.parametrize(("sizes", "share", "ratio"), [((900, 900), 0.5, 0.8), ((900, 80), 0.5, 0.8)])
def test_a_ratio_that_just_fails_is_seldom_shown(sizes, share, ratio):
    """Of many worlds at the limit itself, at most as many as the level says; but for chance, and not none."""
    rng, level, worlds, shown = np.random.default_rng(7), 0.2, 200, 0
    spread = np.full(2, 0.5)
    for _ in range(worlds):
        groups = [
            1.0 * (rng.random(n) < p) for n, p in zip(sizes, (share, ratio * share - 1e-9), strict=True)
        ]
        shown += shown_by_pairs(groups, spread, (0.0, 1.0), 0.0, level, ratio)
    assert 0 < shown <= worlds * level + 3 * math.sqrt(worlds * level * (1 - level))


def test_what_needs_no_bet():
    """A gap as wide as the range cannot be exceeded; of a group without people nothing is shown."""
    groups = [np.ones(5), np.zeros(5)]
    assert shown_by_pairs(groups, np.zeros(2), (0.0, 1.0), 1.0, 0.05)
    assert not shown_by_pairs(groups, np.zeros(2), (0.0, 1.0), 0.99, 0.05)
    assert not shown_by_pairs([np.ones(5), np.ones(0)], np.zeros(2), (0.0, 1.0), 0.9, 0.05)


def worst_case(sizes, width, level, order=np.array):
    """Largest probability of a win in two small groups of zeros and ones whose rates differ by the width."""
    samples = [np.array(list(itertools.product((0.0, 1.0), repeat=size))) for size in sizes]
    everything = [order(one) for one in samples[0]] + [order(-other) * -1 for other in samples[1]]
    one, other = np.divmod(np.arange(len(samples[0]) * len(samples[1])), len(samples[1]))
    found = gaps._wins(
        everything, np.full(len(everything), 0.4), one, len(samples[0]) + other, 1.0 - width, width, level
    ).reshape(len(samples[0]), -1)
    chances = []
    for rate in np.linspace(width, 1.0, 30):
        likely = [
            np.where(sample == 1.0, p, 1.0 - p).prod(axis=1)
            for sample, p in zip(samples, (rate, rate - width), strict=True)
        ]
        chances.append(float(likely[0] @ found @ likely[1]))
    return max(chances)


@pytest.mark.parametrize("sizes", [(5, 5), (4, 7), (8, 3)])
@pytest.mark.parametrize("width", [0.3, 0.4, 0.5])
def test_the_level_is_kept_exactly(sizes, width):
    """Every sample there is, with its probability; an order that looks at the values would break it."""
    levels = (0.1, 0.3, 0.6)
    for level in levels:
        assert worst_case(sizes, width, level) <= level + 1e-12
    assert worst_case(sizes, width, 0.6) > 0.1
    assert any(worst_case(sizes, width, level, np.sort) > level for level in levels)


HOSTILE = {
    "rate": lambda rng, shape: (rng.random(shape) < 0.3).astype(float),
    "rare": lambda rng, shape: (rng.random(shape) < 0.01).astype(float),
    "nearly all": lambda rng, shape: (rng.random(shape) < 0.99).astype(float),
    "rare and large": lambda rng, shape: 0.1 * rng.random(shape) + 0.9 * (rng.random(shape) < 0.004),
    "lottery": lambda rng, shape: rng.choice([0.0, 0.3, 1.0], shape, p=[0.5, 0.2, 0.3]),
}
MEANS = {"rate": 0.3, "rare": 0.01, "nearly all": 0.99, "rare and large": 0.05 + 0.0036, "lottery": 0.36}


def hostile_rate(name, sizes, level, rejects, runs=300):
    """How often a gap exactly as wide as allowed is taken for one that is less: group 0 lies above group 1."""
    rng, count, width = np.random.default_rng(3), 0, 0.05
    for _ in range(runs):
        above = HOSTILE[name](rng, sizes[0])
        below = (MEANS[name] - width) * np.ones(sizes[1])
        if name in ("rate", "lottery", "nearly all"):
            below = HOSTILE[name](rng, sizes[1]) * (MEANS[name] - width) / MEANS[name]
        elif name == "rare":
            width, below = MEANS[name], np.zeros(sizes[1])
        count += rejects([above, below], width, level)
    return count / runs


def bets(groups, width, level):
    return shown_by_pairs(groups, np.array([values.std() for values in groups]), (0.0, 1.0), width, level)


def by_large_samples(groups, width, level):
    one, other = groups
    error = math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return one.mean() - other.mean() + stats.norm.isf(level) * error <= width


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("sizes", [(60, 60), (150, 600), (600, 150)])
def test_the_level_is_kept_in_hostile_worlds(name, sizes):
    """At the edge of the null hypothesis; a test by large samples is wrong far too often in some of them."""
    level = 0.1
    assert hostile_rate(name, sizes, level, bets) <= level + 3 * math.sqrt(level * (1 - level) / 300)
    if name == "rare and large":
        assert hostile_rate(name, sizes, level, by_large_samples) > 1.5 * level


def test_the_power_is_close_to_that_of_large_samples():
    """Of rates that are equal, 500 people each: nearly as often as Welch's t, far more often than two limits."""
    rng, level, runs = np.random.default_rng(4), 0.05, 300
    width = 2.5 * math.sqrt(2 * 0.4 * 0.6 / 500)
    shown = np.zeros(3)
    for _ in range(runs):
        groups = [(rng.random(500) < 0.4).astype(float) for _ in range(2)]
        means = np.array([values.mean() for values in groups])
        limits = exact_limits(np.full(2, 500.0), means, level / 2)
        passed = by_large_samples(groups, width, level) and by_large_samples(groups[::-1], width, level)
        shown += [bets(groups, width, level), passed, spread_of(limits)[1] <= width]
    assert shown[0] > 0.9 * shown[1] > 1.8 * shown[2]
