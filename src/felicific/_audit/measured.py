r"""Measured: what decisions do to people, as one thing, of people in memory or of sums over batches.

.. math:: v_{ij} = \sum_d q_i(d) \, \eta_j(d; i), \qquad l_i = \sum_d q_i(d) \, c(d; i)

with the probabilities :math:`q_i` of the decisions about person i: a lottery counts by its probabilities, not by one
draw.

Of every group and measure the weight, the mean and the second and third central moments are kept. Those of two parts
combine without going back to the rows (Pébay 2008): with :math:`\delta = m_B - m_A` and :math:`W = W_A + W_B`,

.. math::
    m &= m_A + \delta W_B / W, \qquad
    M_2 = M_{2A} + M_{2B} + \delta^2 W_A W_B / W, \\
    M_3 &= M_{3A} + M_{3B} + \delta^3 W_A W_B (W_A - W_B) / W^2
          + 3 \delta (W_A M_{2B} - W_B M_{2A}) / W.

With sampling weights the same is kept for the weights' squares and cubes too: from these follows the linearised
variance, :math:`\sum w^2 (v - m)^2 = M_2^{(2)} + W^{(2)} (m^{(2)} - m)^2`, and likewise the cubes. With clusters the
weight and the weighted sum of every cluster and group are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from felicific._audit.debiased import Debiased
from felicific._people.checks import distinct_clusters
from felicific._problem.happiness import Measure
from felicific._problem.unions import Attribute, LeftOut, LeftOutBy, Union, Whom, compared, compared_groups
from felicific._statistics.bets import BINS, Keyed, added_up, count_bins
from felicific._statistics.distributions import Distributions, effective
from felicific._statistics.intervals import (
    Powers,
    Sample,
    Spread,
    clustered,
    linearised,
    of_few,
    sample_of,
    side_by_side,
)
from felicific._tables.groups import find_groups
from felicific._tables.memory import object_array
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import DataError

#: Different amounts whose people are counted one by one at most.
MOST_AMOUNTS = 5_000_000

#: Numbers whose squares and cubes overflow are refused by name once everybody is summed up.
quiet = np.errstate(all="ignore")


@dataclass(frozen=True)
class Entries:
    """What some people add to what they are counted by: an entry where a cluster, or an amount, meets a group.

    Sums are of shape (entries, columns): of amounts the weight and that of its square. One may have several entries
    until they are :meth:`added`; after which there were ``least``.
    """

    names: Array
    group: Codes
    size: Floats
    total: Floats
    least: int = 0

    def moved(self, place: Codes, shift: Floats) -> Entries:
        """The same with other numbers for the groups, relative to another origin."""
        return replace(self, group=place[self.group], total=self.total + shift * self.size)

    def __add__(self, other: Entries) -> Entries:
        names = [self.names, other.names]
        if self.names.dtype != other.names.dtype:
            names = [object_array(part.tolist()) for part in names]
        both = Entries(
            np.concatenate(names),
            np.concatenate([self.group, other.group]),
            np.concatenate([self.size, other.size]),
            np.concatenate([self.total, other.total]),
            max(self.least, other.least),
        )
        # Now and then, so that every entry is sorted a few times and not once for every batch.
        return both.added() if len(both.group) > 2 * both.least + 100_000 else both

    def not_too_many(self) -> Entries:
        """The same, unless these are amounts that are too many to count each."""
        if self.least > MOST_AMOUNTS and len(np.unique(self.names)) > MOST_AMOUNTS:
            raise DataError(
                f"There are more than {MOST_AMOUNTS:,} different amounts, and distributional parity counts each.",
                "Round the amounts, to a thousandth of their range, say: no more can be told apart.",
            )
        return self

    def of_group(self, z: int) -> Entries:
        """The entries of one group, alone."""
        rows = self.group == z
        alone = np.zeros(int(rows.sum()), dtype=np.intp)
        return Entries(self.names[rows], alone, self.size[rows], self.total[rows])

    def added(self) -> Entries:
        """With one entry for every cluster and group that meet."""
        names, place = distinct_clusters(self.names)
        n_groups = int(self.group.max(initial=0)) + 1
        pairs, entry = np.unique(place * n_groups + self.group, return_inverse=True)

        def add(array: Floats) -> Floats:
            sums = [np.bincount(entry, column, minlength=len(pairs)) for column in array.T]
            return np.stack(sums, axis=1)

        return Entries(
            names[pairs // n_groups], pairs % n_groups, add(self.size), add(self.total), len(pairs)
        )


#: Fields of sums that hold an entry for every group.
BY_GROUP = ("rows", "total", "weight", "squares", "mean", "second", "third")


@dataclass(frozen=True)
class Sums:
    """Sums over people in a table that is not in memory.

    Arrays are of shape (groups, columns); means relative to the origin. The columns are the measures and the loss; with
    sampling weights three times, for their powers 1, 2 and 3.
    """

    groups: tuple[Any, ...]
    origin: Floats
    rows: Floats
    total: Floats
    weight: Floats
    squares: Floats
    mean: Floats
    second: Floats
    third: Floats
    largest: Floats
    least: Floats | None
    whole: bool
    idle: frozenset[str]
    clusters: Entries | None = None
    amounts: Entries | None = None
    bins: Mapping[int, Keyed] = field(default_factory=dict)
    weighted: bool = False

    @quiet
    def __add__(self, other: Sums) -> Sums:
        groups = self.groups
        if groups != other.groups:
            groups = find_groups(object_array({*groups, *other.groups}))
        # The typical value of whoever is counted: zero is none, and subtracting it would cost digits.
        origin = np.where(self.weight.any(axis=0), self.origin, other.origin)
        a, b = self._aligned(groups, origin), other._aligned(groups, origin)
        weight = a.weight + b.weight
        held = np.where(weight > 0, weight, 1.0)
        # An empty part has no mean to speak of.
        apart = np.where((a.weight > 0) & (b.weight > 0), b.mean - a.mean, 0.0)
        product = a.weight * b.weight / held
        return replace(
            a,
            rows=a.rows + b.rows,
            total=a.total + b.total,
            weight=weight,
            squares=a.squares + b.squares,
            mean=np.where(a.weight > 0, a.mean + apart * b.weight / held, b.mean),
            second=a.second + b.second + apart**2 * product,
            third=a.third
            + b.third
            + apart**3 * product * (a.weight - b.weight) / held
            + 3.0 * apart * (a.weight * b.second - b.weight * a.second) / held,
            largest=np.maximum(a.largest, b.largest),
            least=None if a.least is None or b.least is None else np.minimum(a.least, b.least),
            whole=a.whole and b.whole,
            clusters=None if a.clusters is None or b.clusters is None else a.clusters + b.clusters,
            idle=a.idle & b.idle,
            amounts=None
            if a.amounts is None or b.amounts is None
            else (a.amounts + b.amounts).not_too_many(),
            bins={
                j: added_up(np.append(keys, b.bins[j][0]), np.append(people, b.bins[j][1]))
                for j, (keys, people) in a.bins.items()
            },
        )

    def _aligned(self, groups: tuple[Any, ...], origin: Floats) -> Sums:
        """The same people with a place for every group, relative to another origin."""
        place = np.array([groups.index(group) for group in self.groups], dtype=np.intp)

        def spread(array: Floats) -> Floats:
            wide = np.zeros((len(groups), *array.shape[1:]))
            wide[place] = array
            return wide

        shift = self.origin - origin
        largest = self.largest + np.where(self.weight.any(axis=0), np.abs(shift), 0.0)
        clusters = None if self.clusters is None else self.clusters.moved(place, shift)
        amounts = None if self.amounts is None else self.amounts.moved(place, np.zeros(1))
        wide: dict[str, Any] = {name: spread(getattr(self, name)) for name in BY_GROUP}
        wide |= {"mean": spread(self.mean + shift), "largest": largest}
        wide["bins"] = {j: keyed if j < 0 else regrouped_bins(keyed, place) for j, keyed in self.bins.items()}
        return replace(self, groups=groups, origin=origin, clusters=clusters, amounts=amounts, **wide)

    def joined(self, place: Codes, names: tuple[Any, ...]) -> Sums:
        """The same people by unions of groups; ``place`` is the one that every group belongs to."""
        found: dict[int, Sums] = {}
        for z, union in enumerate(place.tolist()):
            one: dict[str, Any] = {name: getattr(self, name)[z : z + 1] for name in BY_GROUP}
            clusters = None if self.clusters is None else self.clusters.of_group(z)
            here = replace(self, groups=(union,), clusters=clusters, amounts=None, bins={}, **one)
            found[union] = found[union] + here if union in found else here
        bins = {j: keyed if j < 0 else regrouped_bins(keyed, place) for j, keyed in self.bins.items()}
        return replace(reduce(add, (found[union] for union in range(len(names)))), groups=names, bins=bins)

    def sample_of(self, weighed: Sequence[bool], *, sampling: bool) -> Sample:
        """The sample of all measures, without the loss; ``weighed`` are those that count people by a lottery."""
        j = len(weighed)
        sample = _sample(self, sampling, j + 1)
        if not any(weighed):
            return sample.take(np.arange(j))
        shared = _sample(self, True, j + 1)
        return side_by_side([(shared if drawn else sample).take(i) for i, drawn in enumerate(weighed)])

    def loss_of(self, j: int, *, sampling: bool) -> Sample:
        """The sample of the loss, column ``j``, of all people together."""
        everyone = self.joined(np.zeros(len(self.groups), dtype=np.intp), ("everyone",))
        loss = _sample(everyone, sampling, j + 1).take(j)
        return replace(loss, mean=loss.mean + self.origin[j])

    def distributions(self, j: int, *, sampling: bool) -> Distributions | None:
        """The amounts of every group, where they are counted; column ``j``, the loss, counts everybody."""
        if self.amounts is None:
            return None
        counted, g, squares = self.amounts.added().not_too_many(), len(self.groups), None
        if self.clusters is not None:
            clusters = self.clusters.added()
            squares = np.bincount(clusters.group, clusters.size[:, j] ** 2, minlength=g).astype(np.float64)
        elif sampling:
            squares = np.bincount(counted.group, counted.total[:, 0], minlength=g).astype(np.float64)
        amounts, place = np.unique(counted.names, return_inverse=True)
        held = np.bincount(
            counted.group * len(amounts) + place, counted.size[:, 0], minlength=g * len(amounts)
        )
        mass = held.reshape(g, len(amounts)).astype(np.float64)
        return Distributions(amounts, mass, effective(mass.sum(axis=1), squares))


@quiet
def _sample(part: Sums, sampling: bool, n_values: int) -> Sample:
    """Central moments as the sizes, means, deviations and skewness of the groups."""
    if sampling or part.clusters is not None:
        return _linearised(part, n_values)
    held, n = np.where(part.weight > 0, part.weight, 1.0), part.weight
    scale = np.sqrt(np.maximum(part.second, 0.0) / held)
    # Equal values differ from their mean by its rounding alone.
    scale = np.where(scale <= 1e-13 * np.abs(part.mean), 0.0, scale)
    unit = np.where(scale > 0, scale, 1.0)
    sd = np.where(n < 2, 0.0, scale * np.sqrt(n / np.maximum(n - 1.0, 1e-300)))
    return Sample(n, part.mean, sd, np.where(scale > 0, part.third / held / unit / unit / unit, 0.0))


def _linearised(part: Sums, n_values: int) -> Sample:
    """The same where rows of unequal weight, or clusters, are what varies."""
    one = slice(0, n_values)
    mass, mean = part.weight[:, one], part.mean[:, one]
    variance = np.maximum(part.second[:, one], 0.0) / np.where(mass > 0, mass, 1.0)
    spread = Spread(mass, part.squares[:, one], mean, variance)
    if part.clusters is None:
        two, three = slice(n_values, 2 * n_values), slice(2 * n_values, None)
        off2, off3 = part.mean[:, two] - mean, part.mean[:, three] - mean
        size3 = part.weight[:, three]
        added3 = part.third[:, three] + 3.0 * off3 * part.second[:, three] + size3 * off3**3
        added2 = part.second[:, two] + part.weight[:, two] * off2**2
        return linearised(
            spread, Powers(part.weight[:, two], size3, part.squares[:, two], np.maximum(added2, 0.0), added3)
        )
    found = part.clusters.added()
    place = distinct_clusters(found.names)[1]
    added = found.total - mean[found.group] * found.size
    return side_by_side(
        [
            clustered(spread.take(j), place, found.group, found.size[:, j], added[:, j])
            for j in range(n_values)
        ]
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """What decisions do to people: to each of them, or in sums that add up batch by batch.

    Attributes
    ----------
    groups : tuple
    measures : tuple of Measure
    origin : array of shape (measures,)
        A typical value of every measure; values and samples are relative to it.
    rates : bool array of shape (measures,)
        Which measures can be nothing but 0 and 1 for anybody: declared rates of decisions that are not drawn.
    loss_rate : bool
        Likewise for the loss.
    loss_bounds : (low, high) or None
        The range of the loss, when it is known.
    sampling : bool
        Whether weights are sampling weights; else they are frequencies.
    idle : tuple of str
        Measures that no decision changes for anybody.
    attributes : tuple
        What the groups are made of.
    left_out : dict of measure name to LeftOut
        Which groups a measure does not compare.
    least : array of shape (measures,), or None
        The least that any decision is worth to anybody who is counted; None where nobody looked.
    debiased : Debiased, or None
        Where labels are missing: of measures, and the loss, that look at them, what everybody would be worth with
        each. Their values are made of it, and are neither rates nor within bounds person by person.
    ends : (Measured, Measured), or None
        The same people at the least and the most that hidden reasons leave open; None where nothing is hidden.
    randomized : bool
        Whether it is drawn who is counted, or what is decided on people who are summed.
    cluster : array of shape (n,), or None
        A number for every cluster, whose people are not independent; None where everybody is.
    codes : array of shape (n,)
        Position of each person's group.
    values : array of shape (n, measures)
        Happiness of each person, expected over the lottery; 0 for people who are not counted.
    inside : bool array of shape (n, measures), or None
        Who is counted; None for everybody.
    share : array of shape (n, measures), or None
        With which probability each person is counted, where a lottery decides on that; values are then what is
        expected of those who are.
    losses : array of shape (n,), or None
        Loss of each person; None when it cannot be known.
    weight : array of shape (n,), or None
    reach : array of shape (groups + 1, measures + 1)
        Mean square of how far apart the decisions leave a person: by group and measure; of everybody, last, by loss.
    checksum : int
        Of who these people are and what every decision would be worth to them, whatever was decided.
    amounts : array of shape (n,), or None
        What is decided on each, where it is an amount. ``reach`` is then the mean square of how far apart two people
        of a group are.
    sums : Sums, or None
        Of people in a table that is not in memory, of whom nobody's own values are known: the arrays above are empty.
    """

    groups: tuple[Any, ...]
    measures: tuple[Measure, ...]
    origin: Floats
    rates: Truths
    loss_rate: bool
    loss_bounds: tuple[float, float] | None
    sampling: bool
    idle: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    least: Floats | None = None
    randomized: bool = False
    debiased: Debiased | None = None
    ends: tuple[Measured, Measured] | None = None
    cluster: Codes | None = None
    codes: Codes
    values: Floats
    inside: Truths | None
    losses: Floats | None
    weight: Floats | None
    reach: Floats
    checksum: int
    share: Floats | None = None
    amounts: Floats | None = None
    sums: Sums | None = None

    @property
    def debiased_at(self) -> Truths:
        """Of which measures, and last whether of the loss, values are debiased for missing labels."""
        found = np.zeros(len(self.measures) + 1, dtype=bool)
        found[list(self.debiased.parts) if self.debiased is not None else []] = True
        return found

    @property
    def one_by_one(self) -> bool:
        """Whether everybody's own values are in memory."""
        return self.sums is None

    @cached_property
    def distributions(self) -> Distributions | None:
        """The amounts of every group, where decisions are such."""
        if self.sums is not None:
            return self.sums.distributions(len(self.measures), sampling=self.sampling)
        if self.amounts is None:
            return None
        return Distributions.of(self.amounts, self.codes, len(self.groups), self.weight, **self._independence)

    @property
    def _independence(self) -> dict[str, Any]:
        """What tells how much people vary by chance."""
        return {"sampling": self.sampling, "cluster": self.cluster}

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.codes) if self.sums is None else int(self.sums.rows.sum())

    @property
    def sizes(self) -> Floats:
        """Weight of every group."""
        if self.sums is not None:
            return self.sums.total
        counts = np.bincount(self.codes, weights=self.weight, minlength=len(self.groups))
        return np.asarray(counts, dtype=np.float64)

    @property
    def seen(self) -> Floats:
        """How many people of every group were seen: with sampling weights, one in every row."""
        if self.sums is not None:
            return self.sums.rows if self.sampling else self.sums.total
        return replace(self, weight=None).sizes if self.sampling else self.sizes

    @property
    def weighted(self) -> bool:
        """Whether there are weights."""
        return self.weight is not None if self.sums is None else self.sums.weighted

    @property
    def countable(self) -> bool:
        """Whether these are so many independent people of equal weight."""
        return self.clusters is None and not (self.sampling and self.weighted)

    @cached_property
    def clusters(self) -> int | None:
        """How many clusters there are."""
        if self.sums is not None:
            held = self.sums.clusters
            return None if held is None else len(distinct_clusters(held.names)[0])
        return None if self.cluster is None else len(np.unique(self.cluster))

    def summed(
        self,
        values: Floats,
        codes: Codes,
        n_groups: int,
        inside: Truths | None = None,
        uneven: Truths | None = None,
    ) -> Sample:
        """Values of these people, of shape (n, measures), summed up by group; some may be ``uneven``."""
        found = sample_of(values, codes, n_groups, inside, self.weight, **self._independence)
        if uneven is None or not uneven.any():
            return found
        return of_few(found, values, codes, inside, self.weight, uneven, **self._independence)

    @cached_property
    def sample(self) -> Sample:
        """The values of all measures, summed up by group."""
        if self.sums is not None:
            weighed = [self.randomized and bool(measure.over) for measure in self.measures]
            return self.sums.sample_of(weighed, sampling=self.sampling)
        uneven = self.debiased_at[:-1]
        if self.share is None:
            return self.summed(self.values, self.codes, len(self.groups), self.inside, uneven)
        found = side_by_side([self._sample(j) for j in range(len(self.measures))])
        if not uneven.any():
            return found
        return of_few(found, self.values, self.codes, self.inside, self.weight, uneven, **self._independence)

    def _sample(self, j: int) -> Sample:
        """One measure; of a fraction whose denominator is decided at random, a mean weighted by who is counted."""
        inside = None if self.inside is None else self.inside[:, [j]]
        values, g = self.values[:, [j]], len(self.groups)
        if self.share is None or not self.measures[j].over:
            return self.summed(values, self.codes, g, inside).take(0)
        weight = self.share[:, j] if self.weight is None else self.weight * self.share[:, j]
        return sample_of(values, self.codes, g, inside, weight, sampling=True, cluster=self.cluster).take(0)

    @property
    def means(self) -> Floats:
        """Group means, of shape (groups, measures); not a number where nobody is counted."""
        return np.where(self.sample.n > 0, self.sample.mean + self.origin, np.nan)

    def linear(self, j: int) -> tuple[Floats, Floats]:
        r"""Values of everybody whose mean, and its error, are those of a fraction; and the share of who is counted.

        .. math:: R + (N_i - R D_i) / \bar D
        """
        assert self.inside is not None, "a fraction counts some"
        counted = self.inside[:, j].astype(np.float64) if self.share is None else self.share[:, j]
        weight = np.ones(len(counted)) if self.weight is None else self.weight
        g = len(self.groups)
        mass = np.bincount(self.codes, weight, minlength=g)
        held = np.bincount(self.codes, weight * counted, minlength=g)
        total = np.bincount(self.codes, weight * counted * self.values[:, j], minlength=g)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, part = total / held, held / mass
            away = counted * (self.values[:, j] - mean[self.codes]) / part[self.codes]
        return mean[self.codes] + away, part

    def merged(self, place: Codes, names: tuple[Any, ...]) -> Measured:
        """The same people by unions of groups; ``place`` is the one that every group belongs to."""
        some = replace(self, groups=names, attributes=(), left_out={})
        if self.sums is not None:
            return replace(some, sums=self.sums.joined(place, names))
        return revalued(replace(some, codes=place[self.codes]))

    @cached_property
    def loss_sample(self) -> Sample | None:
        """The loss of all people together; None where it is not known."""
        if self.sums is not None and self.losses is not None:
            return self.sums.loss_of(len(self.measures), sampling=self.sampling)
        if self.losses is None:
            return None
        everyone = np.zeros(len(self.losses), dtype=np.intp)
        return self.summed(self.losses[:, None], everyone, 1, uneven=self.debiased_at[-1:]).take(0)

    @property
    def fingerprint(self) -> str | None:
        """A checksum of people who are known one by one."""
        return f"{self.checksum:08x}" if self.one_by_one else None

    def values_of(self, z: int, j: int) -> Floats:
        """Values of one group."""
        rows = self.codes == z
        if self.inside is not None:
            rows &= self.inside[:, j]
        values = self.values[rows, j] + self.origin[j]
        return values if self.weight is None else np.repeat(values, self.weight[rows].astype(np.intp))

    def in_bins(self, j: int) -> Keyed:
        """How many people there are by group and bin of a measure's bounds; of -1, the loss, of everybody."""
        if self.sums is not None:
            return self.sums.bins[j]
        if j < 0:
            assert self.losses is not None, "the loss is known"
            assert self.loss_bounds is not None, "its range is"
            everyone = np.zeros(len(self.losses), dtype=np.intp)
            return count_bins(self.losses, everyone, self.loss_bounds, self.weight)
        bounds, rows = bounds_of(self, j), slice(None) if self.inside is None else self.inside[:, j]
        assert bounds is not None, "the range is known"
        weight = None if self.weight is None else self.weight[rows]
        return count_bins(self.values[rows, j], self.codes[rows], bounds, weight)

    @property
    def largest(self) -> tuple[Floats, float]:
        """Sizes of the largest value and loss."""
        if self.sums is not None:
            j = len(self.measures)
            return self.sums.largest[:j], 0.0 if self.losses is None else float(self.sums.largest[j])
        losses = np.zeros(1) if self.losses is None else self.losses
        sizes = np.abs(self.values).max(axis=0, initial=0.0)
        return np.asarray(sizes), float(np.abs(losses).max(initial=0.0))

    @property
    def counted(self) -> Floats:
        """How many rows each measure counts; in sums, their weight."""
        if self.sums is not None:
            return self.sums.weight[:, : len(self.measures)]
        return self._count(np.ones(len(self.codes)))

    def _count(self, weight: Floats) -> Floats:
        """How much of these weights each measure counts, of shape (groups, measures)."""
        inside = np.ones((1, len(self.measures))) if self.inside is None else self.inside
        counts = [np.bincount(self.codes, one, len(self.groups)) for one in (weight[:, None] * inside).T]
        return np.stack(counts, axis=1)

    @property
    def numbers(self) -> Floats:
        """How many people of every group each measure counts, of shape (groups, measures).

        In sums, of sampling weights as many rows as of the weight.
        """
        if self.sums is not None:
            held = np.where(self.sizes > 0, self.sizes, 1.0)
            return np.asarray(self.counted * (self.seen / held)[:, None])
        return self.counted if self.sampling else self.weighed

    @property
    def weighed(self) -> Floats:
        """How much those weigh."""
        return self.counted if self.weight is None else self._count(self.weight)


def bounds_of(persons: Measured, j: int) -> tuple[float, float] | None:
    """Known range of a measure, relative to its origin."""
    known = persons.measures[j].bounds
    return None if known is None else (known[0] - persons.origin[j], known[1] - persons.origin[j])


def groups_compared(persons: Measured, j: int) -> Codes:
    """Positions of the groups that a measure compares."""
    return compared_groups(persons.left_out, persons.measures[j].name, persons.groups)


def only_comparing(people: Measured, whom: Whom, parity: str = "") -> Measured:
    """People of whose groups only some are compared; with ``parity`` so are the distributions of their amounts."""
    if len(people.groups) < 2 or whom == Whom():
        return people
    left_out: dict[str, LeftOut] = {}
    share = whom.min_people < 1
    counts, everybody = (people.weighed, people.sizes) if share else (people.numbers, people.seen)
    columns = {measure.name: counts[:, j] for j, measure in enumerate(people.measures)}
    for name, numbers in (columns | ({parity: everybody} if parity else {})).items():
        _, few = compared(people.groups, (), numbers, whom, name)
        left_out |= {name: few} if few.people else {}
    return replace(people, left_out=left_out)


def regrouped_bins(keyed: Keyed, place: Codes) -> Keyed:
    """The same people by other groups; ``place`` is the one that every group becomes."""
    keys, people = keyed
    return added_up(place[keys // BINS] * BINS + keys % BINS, people)


def regrouped(persons: Measured, unions: Sequence[Union]) -> Measured:
    """Unions of groups in the place of groups, of people who are known one by one; the others are left out."""
    assert persons.one_by_one, "who is held out is in memory"
    place = np.full(len(persons.groups), -1)
    for u, union in enumerate(unions):
        place[list(union.members)] = u
    codes = place[persons.codes]
    rows, names = codes >= 0, tuple(union.name for union in unions)
    parts = ("values", "inside", "losses", "weight", "cluster", "share", "amounts")
    kept: dict[str, Any] = {name: getattr(persons, name) for name in parts}
    if not rows.all():
        kept = {name: None if part is None else part[rows] for name, part in kept.items()}
        kept["debiased"] = None if persons.debiased is None else persons.debiased.take(rows)
    return revalued(replace(persons, groups=names, codes=codes[rows], attributes=(), left_out={}, **kept))


def revalued(persons: Measured) -> Measured:
    """With the values that missing labels leave in these groups, and both ends of them where something is hidden."""
    if persons.debiased is None:
        return persons
    ends = None if persons.debiased.max_odds_ratio == 1.0 else (_at_end(persons, -1.0), _at_end(persons, 1.0))
    return replace(_at_end(persons, 0.0), ends=ends)


def _at_end(persons: Measured, end: float) -> Measured:
    assert persons.debiased is not None, "labels are missing"
    values, inside, losses = persons.values.copy(order="K"), persons.inside, persons.losses
    weight = np.ones(len(persons.codes)) if persons.weight is None else persons.weight
    for j in persons.debiased.parts:
        if j == len(persons.measures):
            losses = persons.debiased.column(j, persons.codes, 1, weight, end)[0]
            continue
        values[:, j], counted = persons.debiased.column(j, persons.codes, len(persons.groups), weight, end)
        by_label = persons.debiased.parts[j].among is not None
        if by_label and (inside is not None or counted is not None):
            inside = np.ones_like(values, dtype=bool) if inside is None else inside.copy(order="K")
            inside[:, j] = True if counted is None else counted
        elif inside is not None:
            values[:, j] = np.where(inside[:, j], values[:, j], 0.0)
    return replace(persons, values=values, inside=inside, losses=losses, ends=None)
