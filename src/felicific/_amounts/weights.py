r"""Weights: how far what one more unit is worth to people moves their amounts, at the least squared error.

.. math::
    \min_a \; \frac{1}{W} \sum_i w_i (a_i - m_i)^2 \quad \text{s.t.} \quad \text{every requirement over group means of }
    \alpha_j(i) + \beta_j(i) a_i, \quad low \le a_i \le high

Its answer is :math:`a_i = \mathrm{clip}(m_i + \sum_{zj} w_{zj} \pi_{iz} \beta_j(i, z))` for some weights, as many as
groups times measures. Column generation comes near to them, or shows that nothing meets the requirements;
among people whom no bound stops, the cost is then a square and means are straight in the weights, so that a few
programs of :mod:`felicific._amounts.separable` in the directions of that square end at them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from felicific._amounts.ground import AmountGround, followed
from felicific._amounts.separable import KEPT, PIECES, minimise
from felicific._problem.linear import Linear
from felicific._problem.requirement import Requirement
from felicific._program.generation import Generator
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError, SolverError

#: How often weights are bettered, and how the reach of a step shrinks each time.
STEPS = 8
SHRINKS = 0.25

#: How far the first step may go: so many times the range of amounts, for the typical person.
REACH = 4.0

#: How fine the places are in the end, as a share of the whole reach: finer ones would be rounding, not cost.
FINEST = 1e-9

#: What people whom a bound stops add to the square, as a share: those whom none stops tell the rest.
STOPPED = 1e-9

#: A direction in which nobody is moved, relative to the one that moves people most.
IDLE = 1e-12


@dataclass(frozen=True, eq=False)
class SolvedWeights:
    """Weights of shape (rules, groups, measures), how groups mix the rules, and the prices of requirements."""

    weights: Floats
    shares: Floats
    prices: dict[str, float]


@dataclass(frozen=True, eq=False)
class Square:
    """The program around some weights, in directions along which the cost is a sum of squares (see the module)."""

    constants: Floats
    coefficients: Floats
    counted: Floats
    curvature: Floats
    centre: Floats
    reach: Floats
    directions: Floats
    rounds: int
    ordered: bool = False

    @property
    def low(self) -> Floats:
        """The least along every direction."""
        return self.centre - self.reach

    @property
    def high(self) -> Floats:
        """The most."""
        return self.centre + self.reach

    def cost(self, u: Floats) -> Floats:
        """What a place costs."""
        return np.asarray(self.curvature[:, :, None] * u**2)

    def weights(self, u: Floats, shape: tuple[int, int]) -> Floats:
        """The weights at a place."""
        return np.asarray(np.einsum("bwt,bt->bw", self.directions, u)).reshape(shape)


def solve_weights(ground: AmountGround, requirements: Sequence[Requirement]) -> SolvedWeights:
    """The weights of least squared error that meet every requirement."""
    search = Generator(ground, requirements)
    try:
        rows = search.reach(search.expected)
        search.descend(search.expected, rows)
    except InfeasibleError:
        if not ground.has_real:
            raise
    if (
        ground.has_real
    ):  # what is out of reach by how likely groups are may still be met by the groups there are
        rows = search.reach(search.real)
        search.descend(search.real, rows)
    mixed = search.solved(search.real)
    mixture = search.policies.followed(mixed.q)
    weights = followed(ground, mixture)
    start = np.einsum("mzj,zm->zj", weights, mixture.share)
    exact, prices = _bettered(ground, search.rows(search.real), start)
    amounts = sum(mixture.share[ground.crowd.group, k] * ground.amounts(one) for k, one in enumerate(weights))
    if exact is not None and _is_better(ground, rows, ground.amounts(exact), np.asarray(amounts)):
        return SolvedWeights(exact[None], np.ones((len(start), 1)), prices)
    return SolvedWeights(weights, mixture.share, mixed.prices)


def _is_better(ground: AmountGround, rows: Sequence[Linear], amounts: Floats, others: Floats) -> bool:
    """Whether some amounts meet every requirement as others do, and cost no more."""
    cost, other = (
        float(np.average((some - ground.calibrated) ** 2, weights=ground.crowd.weight))
        for some in (amounts, others)
    )
    means = ground.means(amounts)
    slack = 1e-9 * ground.swing
    met = all(row.met(means, slack, 1.0) for row in rows)
    return met and cost <= other * (1 + 1e-9) + 1e-12 * (ground.bounds[1] - ground.bounds[0]) ** 2


def _bettered(
    ground: AmountGround, rows: Sequence[Linear], weights: Floats
) -> tuple[Floats | None, dict[str, float]]:
    """Steps to the exact weights; None where one of them finds nothing in its reach."""
    prices: dict[str, float] = {}
    for step in range(STEPS):
        square = _square(ground, weights, SHRINKS**step)
        try:
            answer = minimise(square, rows)
        except SolverError:  # hardly anybody is between the bounds: what column generation found stands
            return None, {}
        if not answer.feasible:
            return None, {}
        moved = square.weights(answer.u, (len(weights), weights.shape[1]))
        prices = answer.prices
        still = ground.amounts(moved) - ground.amounts(weights)
        weights = moved
        if np.abs(still).max() <= REACH * FINEST * (ground.bounds[1] - ground.bounds[0]):
            break
    return weights, prices


def _square(ground: AmountGround, weights: Floats, share: float) -> Square:
    """The program around some weights, within a share of the whole reach."""
    low, high = ground.bounds
    crowd, expected = ground.crowd, ground.expected
    n_groups, total = len(weights), float(crowd.weight.sum())
    at = ground.calibrated + expected.pushed(weights, crowd.group)
    free = crowd.weight * ((at > low) & (at < high))
    whole = expected.products(crowd.group, crowd.weight, n_groups)
    squares = expected.products(crowd.group, free, n_groups) + STOPPED * whole
    size = np.sqrt(np.einsum("bww->bw", whole))
    size = np.where(size > 0, size, 1.0)
    unit = size[:, :, None] * size[:, None, :]
    curvature, directions = np.linalg.eigh(squares / unit)
    spread = np.einsum("bwt,bwv,bvt->bt", directions, whole / unit, directions)
    kept = spread > IDLE * max(float(spread.max(initial=0.0)), 1e-300)
    # The place of weights is their part in every direction, which are at right angles before they are scaled.
    flat = weights.reshape(len(size), -1)
    centre = np.where(kept, np.einsum("bwt,bw->bt", directions, flat * size), 0.0)
    directions = np.where(kept[:, None, :], directions / size[:, :, None], 0.0)
    follow = ground.real.products_with(expected, crowd.group, free, n_groups) / ground.counted[:, :, None]
    if len(size) == n_groups and expected.slope.shape[1] == 1:
        coefficients = follow @ directions
        moved = np.einsum("zjw,zw->zj", follow, flat)
    else:
        coefficients = (follow @ directions[0])[:, :, None, :]
        moved = follow @ flat[0]
    reach = share * REACH * (high - low) * np.sqrt(total / np.where(kept, spread, np.inf))
    return Square(
        ground.means(ground.amounts(weights)) - moved,
        coefficients,
        ground.counted,
        np.maximum(curvature, 0.0) / total,
        centre,
        reach,
        directions,
        rounds=max(2, math.ceil(math.log(FINEST / share) / math.log(2 * KEPT / PIECES))),
    )
