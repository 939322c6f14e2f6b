r"""Large samples: limits of means by how much independent units vary, with Hall's correction for skewness.

.. math:: P(\mathrm{low} \le \mu \le \mathrm{high}) \approx 1 - 2 \, \mathrm{tail}

for many people and tails that are not too heavy. A sample that can say nothing gets the whole range, never a NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError

Limits = tuple[Floats, Floats]

#: Every way to make an interval of a mean, in the words of the output.
METHODS = {
    "exact": "Clopper-Pearson (exact)",
    "bets": "betting (distribution-free)",
    "large": "Hall's t (large sample)",
    "changed": "t with two changed people added, widened for skewness (large sample)",
    "added": "t with two successes and failures added (large sample)",
}

#: Fewer people than this are no large sample.
LARGE = 30


def method_words(words: str, n: float) -> str:
    """How an interval was made, in words that are true of so many people."""
    return (
        words
        if n >= LARGE
        else words.replace("large sample", "few people: right for nearly normal values only")
    )


def check_confidence(confidence: Any) -> float:
    """The confidence as a number strictly between 0 and 1."""
    try:
        number = float(confidence)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(confidence, str | bool) or not 0.0 < number < 1.0:
        raise DataError(
            f"The confidence is {confidence!r}.",
            "Give a number between 0 and 1, such as 0.95, ends excluded.",
        )
    return number


# ---------------------------------------------------------------------------------------------------------
# Samples


#: Cochran's (1977) rule: a t interval may be trusted from 25 times the squared skewness on.
COCHRAN = 25.0


@dataclass(frozen=True, eq=False)
class Sample:
    """What large-sample intervals need to know of some values: arrays of shape (groups, measures).

    Attributes
    ----------
    n : array
        How many people: the sum of frequencies, or as many as sampling weights and clusters leave (see
        :mod:`felicific._statistics.intervals`).
    mean, sd, skewness : array
        Mean, standard deviation (with n - 1) and standardised third moment.
    df : array, or None
        Degrees of freedom of the standard error; None, or not a number, for n - 1.
    ties : Ties, or None
        How the errors of the group means go together; None where people of different groups are independent.
    """

    n: Floats
    mean: Floats
    sd: Floats
    skewness: Floats
    df: Floats | None = None
    ties: Ties | None = None

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of the standard error."""
        return self.n - 1.0 if self.df is None else np.where(np.isnan(self.df), self.n - 1.0, self.df)

    @property
    def silent(self) -> NDArray[np.bool_]:
        """Where the values say nothing of their spread: fewer than two of them, or all alike."""
        return np.asarray((self.freedom < 1.0) | (self.sd == 0.0))

    @property
    def skewed(self) -> NDArray[np.bool_]:
        """Where large-sample limits hold less often than stated because of skewness, by Cochran's rule."""
        return np.asarray(~self.silent & (self.n < COCHRAN * self.skewness**2))

    @property
    def error(self) -> Floats:
        """Standard error of the mean; infinite where it cannot be estimated."""
        return np.where(self.silent, math.inf, self.sd / np.sqrt(np.maximum(self.n, 1e-300)))

    def only(self, groups: Codes) -> Sample:
        """Some of the groups."""
        n, mean, sd, skewness = (array[groups] for array in (self.n, self.mean, self.sd, self.skewness))
        df = None if self.df is None else self.df[groups]
        ties = None if self.ties is None else Ties(*(array[groups][:, groups] for array in self.ties))
        return Sample(n, mean, sd, skewness, df, ties)

    def take(self, j: int | Codes) -> Sample:
        """One measure alone, of shape (groups,); or some, of shape (groups, measures)."""
        numbers = (self.n, self.mean, self.sd, self.skewness)
        n, mean, sd, skewness = (array[:, j] for array in numbers)
        df = None if self.df is None or np.isnan(self.df[:, j]).all() else self.df[:, j]
        ties = None if self.ties is None else Ties(*(array[:, :, j] for array in self.ties))
        return Sample(n, mean, sd, skewness, df, ties)


class Ties(NamedTuple):
    r"""How the errors of group means go together, where clusters hold people of several groups.

    With :math:`u_{ca}` what cluster c adds to the error of the mean of group a, and all sums over clusters: arrays of
    shape (groups, groups), or (groups, groups, measures).

    Attributes
    ----------
    correlation : array
        :math:`\sum u_a u_b / \sqrt{\sum u_a^2 \sum u_b^2}`.
    skewness : array
        :math:`\sum u_a^2 u_b / (\sum u_a^2 \sqrt{\sum u_b^2})`.
    """

    correlation: Floats
    skewness: Floats


def summarise(
    values: Floats,
    codes: Codes,
    n_groups: int,
    inside: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
) -> Sample:
    r"""Sum up values of shape (n, measures) by group; weights are frequencies, and n is their sum.

    Second and third moments are taken around each group's own mean, so a large constant costs no digits.
    """
    found = np.zeros((4, n_groups, values.shape[1]))
    for j in range(values.shape[1]):
        v, z, w = values[:, j], codes, weight
        if inside is not None and not inside[:, j].all():
            rows = np.flatnonzero(inside[:, j])
            v, z, w = v[rows], z[rows], None if w is None else w[rows]
        found[:, :, j] = _central(v, z, n_groups, w)
    return Sample(*found)


def _central(v: Floats, z: Codes, n_groups: int, w: Floats | None) -> Floats:
    """n, mean, standard deviation and skewness of one measure, of shape (4, groups)."""

    def total(numbers: Floats | None) -> Floats:
        parts = w if numbers is None else numbers if w is None else numbers * w
        return np.asarray(np.bincount(z, parts, minlength=n_groups), dtype=np.float64)

    n = total(None)
    held = np.where(n > 0, n, 1.0)
    mean = total(v) / held
    away = v - mean[z]
    square = away * away
    scale, third = np.sqrt(total(square) / held), total(square * away) / held
    # Equal values differ from their mean by its rounding alone.
    scale = np.where(scale <= 1e-13 * np.abs(mean), 0.0, scale)
    sd = scale * np.sqrt(n / np.maximum(n - 1.0, 1e-300))
    safe = np.where(scale > 0, scale, 1.0)
    skewness = np.where(scale > 0, third / safe / safe / safe, 0.0)  # the cube of a tiny scale would be 0
    return np.array([n, mean, np.where(n < 2, 0.0, sd), skewness])


def with_added(sample: Sample, added: float) -> Sample:
    """Rates with so many successes and failures added to each group, so that rare ones may be treated as normal.

    Two of each for the interval of a rate (Agresti and Coull 1998), one of each for differences of rates (Agresti and
    Caffo 2000).
    """
    n = sample.n + 2.0 * added
    mean = (sample.n * sample.mean + added) / n
    variance = mean * (1.0 - mean)
    df = None if sample.df is None else np.minimum(sample.df, n - 1.0)
    skewness = (1.0 - 2.0 * mean) / np.sqrt(variance)
    return Sample(n, mean, np.sqrt(variance * n / (n - 1.0)), skewness, df, sample.ties)


def with_changed(sample: Sample, reach: Floats) -> Sample:
    """Changes with two people added to each group, one of whom gains and one loses, by the root of ``reach``.

    Those whom another way of deciding leaves as they are may be all that were seen, and are not all that there are. Of
    rates it is the interval of Bonett and Price (2012), and of anything else the same with what decisions can change:
    ``reach`` is its mean square. Where that is 0, no decision changes anything, and nothing is left open.
    """
    n, variance = sample.n + 2.0, sample.sd**2 * np.maximum(sample.n - 1.0, 0.0) / np.maximum(sample.n, 1.0)
    share, old = sample.n / n, sample.mean
    mean = share * old
    second = share * (variance + old**2) + 2.0 * reach / n
    third = share * (sample.skewness * variance**1.5 + 3.0 * old * variance + old**3)
    spread = np.maximum(second - mean**2, 0.0)
    sd = np.where(reach > 0, np.sqrt(spread * n / (n - 1.0)), KNOWN)
    safe = np.where(spread > 0, spread, 1.0)
    skewness = np.where(spread > 0, (third - 3.0 * mean * spread - mean**3) / safe**1.5, 0.0)
    df = None if sample.df is None else np.where(reach > 0, np.minimum(sample.df, n - 1.0), n - 1.0)
    return Sample(n, mean, sd, skewness, df, sample.ties)


#: The spread of what is known: too small to be seen, and not none at all, which would say nothing.
KNOWN = 1e-90


# ---------------------------------------------------------------------------------------------------------
# Large samples


def hall_limits(sample: Sample, tail: float) -> Limits:
    r"""Student's limits, widened where Hall's (1992) correction for skewness asks for it.

    With :math:`\gamma` the skewness and :math:`g = \gamma / \sqrt n`, the studentised mean T is replaced by
    :math:`T + g T^2 / 3 + g^2 T^3 / 27 + g / 6`, which is nearly symmetric and is inverted in closed form. The wider of
    the two limits is taken on each side: measured on lognormal values it covers better than either, and than bootstraps
    of the studentised mean.
    """
    from scipy.special import stdtrit

    low, high = np.full(sample.n.shape, -math.inf), np.full(sample.n.shape, math.inf)
    known = ~sample.silent
    g = sample.skewness[known] / np.sqrt(sample.n[known])
    t = stdtrit(sample.freedom[known], 1.0 - tail)
    low[known] = sample.mean[known] - sample.error[known] * np.maximum(t, hall_inverse(t, g))
    high[known] = sample.mean[known] + sample.error[known] * np.maximum(t, -hall_inverse(-t, g))
    return low, high


def hall_inverse(x: Floats, g: Floats) -> Floats:
    """The studentised value that Hall's transformation turns into x."""
    straight = np.abs(g) < 1e-6
    safe = np.where(straight, 1.0, g)
    return np.where(straight, x, 3.0 / safe * (np.cbrt(1.0 + safe * (x - safe / 6.0)) - 1.0))


# ---------------------------------------------------------------------------------------------------------
# Units: means of people who count unequally, or who come in clusters, with the error that follows from it.
#
# A weighted mean :math:`m = \sum_c S_c / W` over units c (rows of weight :math:`W_c`, or clusters of rows; W
# is the sum of all weights) is off by about :math:`\sum_c u_c` with :math:`u_c = (S_c - m W_c) / W`; its
# linearised (Taylor) variance is :math:`\sum_c u_c^2`. That follows heavy units that vary more, which Kish's
# effective number does not. Two corrections for few units, which are :math:`C / (C - 1)` and :math:`C - 1`
# for C units of one size:
#
# .. math::
#     V = \frac{\sum_c u_c^2}{1 - 2 \sum W_c^3 / (W \sum W_c^2) + \sum W_c^2 / W^2}, \qquad
#     \mathrm{df} = \frac{(\sum W_c^2)^2}{\sum W_c^4} - 1.
#
# The number of people that is stated is the one of independent people of equal weight whose mean would be as
# uncertain, at most Kish's :math:`(\sum w)^2 / \sum w^2`.


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
