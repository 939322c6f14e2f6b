r"""Distributions: how far apart those of several groups are, by the Kolmogorov-Smirnov distance, and how sure that is.

With :math:`S_z(t) = P(A > t)` in group z, the distance is

.. math:: \mathrm{KS} = \max_{z, z'} \sup_t \, S_z(t) - S_{z'}(t).

By the inequality of Dvoretzky, Kiefer and Wolfowitz (1956) with Massart's constant (1990), with probability of at least
:math:`1 - \gamma` every group's share of :math:`n_z` independent people is within

.. math:: \varepsilon_z = \sqrt{\log(2 G / \gamma) / (2 n_z)}

of the true one, for every t and all G groups at once, whatever the distributions, ties included. So with the distances
:math:`D_{zz'}` that are seen,

.. math:: \max_{z \ne z'} D_{zz'} - \varepsilon_z - \varepsilon_{z'} \;\le\; \mathrm{KS} \;\le\;
          \max_{z \ne z'} D_{zz'} + \varepsilon_z + \varepsilon_{z'}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from felicific._typing import Codes, Floats

#: Above so many differences, pairs of groups are not compared one by one; limits are then wider, and still right.
MOST_DIFFERENCES = 400_000_000

#: What two equal continuous distributions are apart on average, times the root of both sizes' inverses added: the mean
#: of Kolmogorov's distribution, sqrt(pi / 2) log 2.
EXPECTED = math.sqrt(math.pi / 2.0) * math.log(2.0)


class Furthest(NamedTuple):
    """Where distributions are furthest apart.

    Attributes
    ----------
    distance : float
        The Kolmogorov-Smirnov distance.
    at : float
        The least of the amounts at which it is reached: shares of people who get more than this differ most.
    more, less : int
        The groups of whom the largest and the smallest share get more.
    """

    distance: float
    at: float
    more: int
    less: int


@dataclass(frozen=True, eq=False)
class Distributions:
    """Amounts that occur, and how much weight each has in every group.

    Attributes
    ----------
    amounts : array of shape (T,)
        Rising.
    mass : array of shape (groups, T)
    n : array of shape (groups,)
        How many independent people tell as much: of sampling weights Kish's effective number, of clusters that of
        clusters, as if all people of one were alike.
    """

    amounts: Floats
    mass: Floats
    n: Floats

    @classmethod
    def of(
        cls,
        amounts: Floats,
        codes: Codes,
        n_groups: int,
        weight: Floats | None = None,
        *,
        sampling: bool = False,
        cluster: Codes | None = None,
    ) -> Distributions:
        """Count the amounts of people one by one."""
        held = np.ones(len(amounts)) if weight is None else weight
        distinct, place = np.unique(amounts, return_inverse=True)
        counts = np.bincount(codes * len(distinct) + place, held, minlength=n_groups * len(distinct))
        squares: Floats | None = None
        if cluster is not None:
            pairs, entry = np.unique(cluster * n_groups + codes, return_inverse=True)
            sizes = np.bincount(entry, held).astype(np.float64)
            squares = np.bincount(pairs % n_groups, sizes**2, minlength=n_groups).astype(np.float64)
        elif sampling and weight is not None:
            squares = np.bincount(codes, held**2, minlength=n_groups).astype(np.float64)
        mass = counts.reshape(n_groups, len(distinct)).astype(np.float64)
        return cls(distinct, mass, effective(mass.sum(axis=1), squares))

    def only(self, groups: Codes) -> Distributions:
        """Some of the groups."""
        return Distributions(self.amounts, self.mass[groups], self.n[groups])

    @cached_property
    def above(self) -> Floats:
        """Share of every group that gets more than each amount, of shape (groups, T)."""
        total = self.mass.sum(axis=1, keepdims=True)
        # From the top, so that nobody gets more than the largest: exactly 0.
        rising = np.cumsum(self.mass[:, ::-1], axis=1)[:, ::-1] - self.mass
        return np.clip(rising / np.where(total > 0, total, 1.0), 0.0, 1.0)

    @cached_property
    def furthest(self) -> Furthest:
        """Where the groups are furthest apart."""
        apart = self.above.max(axis=0) - self.above.min(axis=0)
        t = int(apart.argmax())
        column = self.above[:, t]
        return Furthest(float(apart[t]), float(self.amounts[t]), int(column.argmax()), int(column.argmin()))

    @cached_property
    def _pairs(self) -> Floats:
        """The largest difference of every pair, of shape (groups, groups); of very many, bounds of them."""
        g = len(self.n)
        if g * g * len(self.amounts) > MOST_DIFFERENCES:
            return np.full((g, g), self.furthest.distance)
        return np.stack([(above - self.above).max(axis=1) for above in self.above])

    def margins(self, alpha: float) -> Floats:
        """How far every group's shares may be from the true ones, of all groups and amounts together."""
        return np.asarray(np.sqrt(math.log(2.0 * len(self.n) / alpha)) * self._scale)

    @cached_property
    def _scale(self) -> Floats:
        return 1.0 / np.sqrt(2.0 * self.n)

    @cached_property
    def _both(self) -> Floats:
        """The scales of both groups of a pair, added; infinite for a group and itself."""
        both = self._scale[:, None] + self._scale
        np.fill_diagonal(both, math.inf)
        return both

    def interval(self, alpha: float) -> tuple[float, float]:
        """Limits of the distance, which lie between 0 and 1."""
        root = math.sqrt(math.log(2.0 * len(self.n) / alpha))
        low = float((self._least - root * self._both).max(initial=0.0))
        others = ~np.eye(len(self.n), dtype=bool)
        high = float((self._pairs + root * self._both)[others].max(initial=0.0))
        return max(low, 0.0), min(high, 1.0)

    @cached_property
    def _least(self) -> Floats:
        """Differences that are seen of every pair for sure."""
        if len(self.n) ** 2 * len(self.amounts) <= MOST_DIFFERENCES:
            return self._pairs
        seen = np.zeros_like(self._pairs)
        seen[self.furthest.more, self.furthest.less] = self.furthest.distance
        return seen

    def p_values(self, at_most: float) -> tuple[float, float]:
        """Of the hypotheses that the distance is at most this, and that it is more: where the limits meet it."""
        others = ~np.eye(len(self.n), dtype=bool)
        over = float(((self._least - at_most) / self._both).max(initial=0.0))
        room = (at_most - self._pairs)[others] / self._both[others]
        under = float(room.min(initial=math.inf))
        return self._p_of(over), 0.0 if at_most >= 1.0 else self._p_of(under)

    def _p_of(self, root: float) -> float:
        return min(1.0, 2.0 * len(self.n) * math.exp(-(root**2))) if root > 0 else 1.0

    @property
    def expected(self) -> float:
        """What chance alone would show between two equal groups, on average; not known of more than two.

        Of amounts that occur often it is less.
        """
        return EXPECTED * math.sqrt((1.0 / self.n).sum()) if len(self.n) == 2 else math.nan


def effective(total: Floats, squares: Floats | None) -> Floats:
    """How many independent people of equal weight tell as much as weights, or clusters, of these sums (Kish 1965)."""
    if squares is None:
        return np.asarray(total, dtype=np.float64)
    return np.asarray(total**2 / np.where(squares > 0, squares, 1.0))
