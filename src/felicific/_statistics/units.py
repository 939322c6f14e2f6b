r"""Units: means of people who count unequally, or who come in clusters, with the error that follows from it.

A weighted mean :math:`m = \sum_c S_c / W` over units c (rows of weight :math:`W_c`, or clusters of rows; W is the sum
of all weights) is off by about :math:`\sum_c u_c` with :math:`u_c = (S_c - m W_c) / W`; its linearised (Taylor)
variance is :math:`\sum_c u_c^2`. That follows heavy units that vary more, which Kish's effective number does not. Two
corrections for few units, which are :math:`C / (C - 1)` and :math:`C - 1` for C units of one size:

.. math::
    V = \frac{\sum_c u_c^2}{1 - 2 \sum W_c^3 / (W \sum W_c^2) + \sum W_c^2 / W^2}, \qquad
    \mathrm{df} = \frac{(\sum W_c^2)^2}{\sum W_c^4} - 1.

The number of people that is stated is the one of independent people of equal weight whose mean would be as uncertain,
at most Kish's :math:`(\sum w)^2 / \sum w^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from felicific._statistics.intervals import Sample, Ties, summarise
from felicific._typing import Codes, Floats, Truths


@dataclass(frozen=True)
class Spread:
    """Sums over the rows of some groups, of shape (groups,) or (groups, measures).

    Attributes
    ----------
    mass, squares : array
        Sums of weights, and of their squares.
    mean, variance : array
        Weighted mean, and the mean square around it.
    """

    mass: Floats
    squares: Floats
    mean: Floats
    variance: Floats

    def take(self, j: int) -> Spread:
        """One measure alone."""
        return Spread(self.mass[:, j], self.squares[:, j], self.mean[:, j], self.variance[:, j])


@dataclass(frozen=True)
class Powers:
    """Sums over units, of the shape of a :class:`Spread`: powers 2, 3, 4 of sizes; 2 and 3 of what they add.

    What a unit adds is the weighted sum of its values' distances to the group's mean.
    """

    size2: Floats
    size3: Floats
    size4: Floats
    added2: Floats
    added3: Floats


def sample_of(
    values: Floats,
    codes: Codes,
    n_groups: int,
    inside: Truths | None = None,
    weight: Floats | None = None,
    *,
    sampling: bool = False,
    cluster: Codes | None = None,
) -> Sample:
    """Sum up values of shape (n, measures) by group.

    Rows are people, as often as their frequency says; with ``sampling`` weights each is one person who stands for so
    many; with a ``cluster`` for every row, only clusters are independent of each other.
    """
    if cluster is None and not (sampling and weight is not None):
        return summarise(values, codes, n_groups, inside, weight)
    parts, w = [], np.ones(len(codes)) if weight is None else weight
    for j in range(values.shape[1]):
        rows = slice(None) if inside is None or inside[:, j].all() else np.flatnonzero(inside[:, j])
        c = None if cluster is None else cluster[rows]
        parts.append(_measure(values[rows, j], codes[rows], n_groups, w[rows], c))
    return side_by_side(parts)


def of_few(
    sample: Sample,
    values: Floats,
    codes: Codes,
    inside: Truths | None,
    weight: Floats | None,
    uneven: Truths,
    *,
    sampling: bool = False,
    cluster: Codes | None = None,
) -> Sample:
    r"""The same where the error of some measures rests on few people who weigh much.

    Of those that are ``uneven`` the degrees of freedom are those of :math:`(\sum_c u_c^2)^2 / \sum_c u_c^4` over what
    units add to the error of the mean, and never more than without that.
    """
    n_groups, w = len(sample.n), np.ones(len(codes)) if weight is None else weight
    df = np.full(sample.n.shape, np.nan) if sample.df is None else sample.df.copy()
    for j in np.flatnonzero(uneven).tolist():
        rows = slice(None) if inside is None else np.flatnonzero(inside[:, j])
        z, u, times = codes[rows], values[rows, j] - sample.mean[codes[rows], j], w[rows]
        if cluster is not None:
            pairs, place = np.unique(cluster[rows] * n_groups + z, return_inverse=True)
            z, u, times = pairs % n_groups, np.bincount(place, times * u), np.ones(len(pairs))
        elif sampling:
            u, times = times * u, np.ones(len(u))
        square = u * u / max(float((u * u).max(initial=0.0)), 1e-300)
        two, four = (np.bincount(z, times * part, minlength=n_groups) for part in (square, square**2))
        known = sample.freedom[:, j]
        df[:, j] = np.where(four > 0, np.minimum(known, two**2 / np.where(four > 0, four, 1.0)), known)
    return replace(sample, df=df)


def _measure(v: Floats, z: Codes, n_groups: int, w: Floats, cluster: Codes | None) -> Sample:
    """One measure, of shape (groups,)."""

    def total(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(z, numbers, minlength=n_groups), dtype=np.float64)

    mass = total(w)
    mean = total(w * v) / np.where(mass > 0, mass, 1.0)
    away = v - mean[z]
    variance = total(w * away * away) / np.where(mass > 0, mass, 1.0)
    spread = Spread(mass, total(w * w), mean, variance)
    if cluster is None:
        return linearised(spread, powers_of(z, n_groups, w, w * away))
    pairs, place = np.unique(cluster * n_groups + z, return_inverse=True)
    size, added = (np.asarray(np.bincount(place, part), dtype=np.float64) for part in (w, w * away))
    return clustered(spread, pairs // n_groups, pairs % n_groups, size, added)


def powers_of(z: Codes, n_groups: int, size: Floats, added: Floats) -> Powers:
    """Sums over units, by group."""
    products = (size**2, size**3, size**4, added**2, added**3)
    return Powers(*(np.bincount(z, part, minlength=n_groups).astype(np.float64) for part in products))


def clustered(spread: Spread, cluster: Codes, z: Codes, size: Floats, added: Floats) -> Sample:
    """One measure, of shape (groups,), from the sums of every cluster and group that meet."""
    n_groups, held = len(spread.mass), size > 0  # others are not counted by this measure
    cluster, z, size, added = cluster[held], z[held], size[held], added[held]
    powers = powers_of(z, n_groups, size, added)
    return linearised(spread, powers, _ties(cluster, z, n_groups, added, np.sqrt(powers.added2)))


def linearised(spread: Spread, powers: Powers, ties: Ties | None = None) -> Sample:
    """The sample that has the linearised error of the mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        kish, units = spread.mass**2 / spread.squares, spread.mass**2 / powers.size2
        few = 1.0 - 2.0 * powers.size3 / (spread.mass * powers.size2) + 1.0 / units
        scale, root = np.sqrt(spread.variance), np.sqrt(powers.added2) / spread.mass
        # Equal values, and equal clusters, differ from their mean by its rounding alone.
        alike = (scale <= 1e-13 * np.abs(spread.mean)) | (root <= 1e-13 * (np.abs(spread.mean) + scale))
        df = powers.size2**2 / powers.size4 - 1.0
        known = ~alike & (df > 0.0)
        error = np.where(known, root, 0.0) / np.sqrt(np.where(known, few, 1.0))
        worth = np.minimum(kish, 1.0 + spread.variance / error**2)
        n = np.where(known, worth, units)
        skewness = np.where(known, powers.added3 / spread.mass**3 / root**3 * np.sqrt(n), 0.0)
    empty = spread.mass <= 0
    n, df = np.where(empty, 0.0, n), np.where(empty, 0.0, df)
    return Sample(n, spread.mean, error * np.sqrt(n), np.where(empty, 0.0, skewness), df, ties)


def _ties(cluster: Codes, z: Codes, n_groups: int, added: Floats, size: Floats) -> Ties | None:
    """How the errors of group means go together; None when every cluster is of one group."""
    from scipy.sparse import csr_array

    if len(np.unique(cluster)) == len(cluster):
        return None
    unit = added / np.where(size > 0, size, 1.0)[z]
    shape = (int(cluster.max()) + 1, n_groups)
    u = csr_array((unit, (cluster, z)), shape=shape)
    square = csr_array((unit**2, (cluster, z)), shape=shape)
    correlation = (u.T @ u).toarray()
    np.fill_diagonal(correlation, 1.0)
    return Ties(correlation, (square.T @ u).toarray())


def side_by_side(parts: list[Sample]) -> Sample:
    """Samples of several measures as one of shape (groups, measures)."""
    n, mean, sd, skewness, df = (
        np.stack([getattr(part, name) for part in parts], axis=1)
        for name in ("n", "mean", "sd", "skewness", "freedom")
    )
    if all(part.ties is None for part in parts):
        return Sample(n, mean, sd, skewness, df)
    none = Ties(np.eye(len(n)), np.zeros((len(n), len(n))))
    ties = [none if part.ties is None else part.ties for part in parts]
    return Sample(
        n, mean, sd, skewness, df, Ties(*(np.stack(both, axis=2) for both in zip(*ties, strict=True)))
    )
