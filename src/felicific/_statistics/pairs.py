r"""Bets on pairs of people: that no two groups differ by more than so much, for any distribution within bounds.

Of two groups the smaller is paired, person by person, with as many blocks of the larger. If their means differ by
:math:`\epsilon` or more, :math:`\epsilon` minus the difference :math:`d_i` of a pair is at most 0 on average, and a
gambler who stakes :math:`\lambda_i` on it has

.. math:: K = \prod_i (1 + \lambda_i (\epsilon - d_i)), \qquad E[K] \le 1

as long as no stake depends on its own pair or on later ones, and none can ruin him. So
:math:`P(K \ge 1/\gamma) \le \gamma`, whatever the values are. Nothing is assumed of what the two means are, and nothing
is split between two limits. The stakes aim at :math:`1/\gamma` and are recalculated on the way by what is still
missing and how many pairs are left (Voracek and Orabona 2025): the power comes close to Welch's t. That one mean is at
least r times another is bet on in the same way, with the gain :math:`y_i - r x_i` of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from felicific._typing import Codes, Floats

PAIRS = "betting on pairs of people (distribution-free)"

#: How often stakes are recalculated.
STEPS = 256

#: Share of what he has that a gambler may lose on one pair.
BOLDNESS = 0.95

#: How many pairs the guess of their spread counts for.
GUESSED = 20.0

#: Most differences that are bet on at a time.
TOGETHER = 1 << 22


def shown_by_pairs(
    groups: Sequence[Floats],
    spread: Floats,
    bounds: tuple[float, float],
    width: float,
    level: float,
    ratio: float = 1.0,
) -> bool:
    """Whether the means of all groups are shown, at this level, to be at most so far apart.

    With a ``ratio``, to be at least so large a part of each other, less the width.

    All pairs have to be shown, each at this level: no correction is needed for their number.

    Parameters
    ----------
    groups : sequence of arrays
        Values of the people of every group, in an order that has nothing to do with them.
    spread : array of shape (groups,)
        A guess of their standard deviations, from other people; a bad one costs power and not the level.
    bounds : (low, high)
        The range that all values are known to lie in.
    """
    most = ratio * bounds[1] - bounds[0] - width
    if most <= 0:
        return True
    sizes = np.array([len(values) for values in groups])
    if not sizes.all():
        return False
    return all(
        bool(_wins(groups, spread, one, other, most, width, level, ratio).all())
        for one, other in _batches(sizes)
    )


def _batches(sizes: Codes) -> Iterator[tuple[Codes, Codes]]:
    """All ordered pairs of groups, those with as many pairs of people together."""
    ordered = sorted(permutations(range(len(sizes)), 2), key=lambda pair: int(sizes[list(pair)].min()))
    while ordered:
        most = int(sizes[list(ordered[-1])].min())
        count = max(1, TOGETHER // most)
        one, other = np.array(ordered[-count:]).T
        yield one, other
        del ordered[-count:]


def _wins(
    groups: Sequence[Floats],
    spread: Floats,
    one: Codes,
    other: Codes,
    loss: float,
    width: float,
    level: float,
    ratio: float = 1.0,
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For some ordered pairs of groups, whether the gambler wins 1 / level; ``loss`` is what a pair loses at most."""
    sizes = np.array([len(values) for values in groups])
    n = np.minimum(sizes[one], sizes[other])
    length = -(-n // STEPS)
    steps = int((-(-n // length)).max())
    gains = np.zeros((len(n), steps * int(length.max())))
    shaped = gains.reshape(len(n), steps, -1)
    for p, (a, b) in enumerate(zip(one, other, strict=True)):
        gain = width - (ratio * _blocks(groups[a], n[p]) - _blocks(groups[b], n[p]))
        rows = np.arange(n[p])
        shaped[p, rows // length[p], rows % length[p]] = gain
    guess = (ratio * spread[one]) ** 2 * n / sizes[one] + spread[other] ** 2 * n / sizes[other] + width**2
    # Before every step: pairs seen, and the squares that those left are expected to add up to.
    seen = np.minimum(np.arange(steps)[:, None] * length, n)
    squares = np.cumsum(np.concatenate([[GUESSED * guess], (shaped**2).sum(axis=2).T[:-1]]), axis=0)
    ahead = np.maximum(n - seen, 1.0) * squares / (GUESSED + seen)
    goal, fortune = math.log(1.0 / level), np.zeros(len(n))
    for step in range(steps):
        missing = np.maximum(goal - fortune, 0.0)
        if not missing.any():
            break
        stake = np.minimum(np.sqrt(2.0 * missing / ahead[step]), BOLDNESS / loss)
        fortune += np.log1p(stake[:, None] * shaped[:, step]).sum(axis=1)
    return np.asarray(fortune >= goal)


def _blocks(values: Floats, count: int) -> Floats:
    """Means of so many blocks of values, which are as equal in size as can be."""
    if len(values) == count:
        return values
    starts = np.arange(count) * len(values) // count
    return np.asarray(np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values))))
