r"""Audits of people in a table that is not in memory: the sums that intervals are made of.

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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from felicific._audit.persons import (
    EachPerson,
    SummedPersons,
    check_persons,
    persons_of,
    rates_of,
    regrouped_bins,
)
from felicific._people.checks import are_sampling, distinct_clusters
from felicific._people.lazy import LazyPeople, no_rows
from felicific._people.people import People
from felicific._people.roles import Columns
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._statistics.bets import Keyed, added_up
from felicific._statistics.distributions import Distributions, effective
from felicific._statistics.intervals import Powers, Sample, Spread, clustered, linearised, side_by_side
from felicific._tables.groups import find_groups, refuse_identifiers
from felicific._tables.memory import object_array
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import DataError

#: Different amounts whose people are counted one by one at most.
MOST_AMOUNTS = 5_000_000

#: Numbers whose squares and cubes overflow are refused by name once everybody is summed up.
_quiet = np.errstate(all="ignore")


@dataclass(frozen=True)
class _Entries:
    """What some people add to what they are counted by: an entry where a cluster, or an amount, meets a group.

    Sums are of shape (entries, columns): of amounts the weight and that of its square. One may have several entries
    until they are :meth:`added`; after which there were ``least``.
    """

    names: Array
    group: Codes
    size: Floats
    total: Floats
    least: int = 0

    def moved(self, place: Codes, shift: Floats) -> _Entries:
        """The same with other numbers for the groups, relative to another origin."""
        return replace(self, group=place[self.group], total=self.total + shift * self.size)

    def __add__(self, other: _Entries) -> _Entries:
        names = [self.names, other.names]
        if self.names.dtype != other.names.dtype:
            names = [object_array(part.tolist()) for part in names]
        both = _Entries(
            np.concatenate(names),
            np.concatenate([self.group, other.group]),
            np.concatenate([self.size, other.size]),
            np.concatenate([self.total, other.total]),
            max(self.least, other.least),
        )
        # Now and then, so that every entry is sorted a few times and not once for every batch.
        return both.added() if len(both.group) > 2 * both.least + 100_000 else both

    def not_too_many(self) -> _Entries:
        """The same, unless these are amounts that are too many to count each."""
        if self.least > MOST_AMOUNTS and len(np.unique(self.names)) > MOST_AMOUNTS:
            raise DataError(
                f"There are more than {MOST_AMOUNTS:,} different amounts, and distributional parity counts each.",
                "Round the amounts, to a thousandth of their range, say: no more can be told apart.",
            )
        return self

    def of_group(self, z: int) -> _Entries:
        """The entries of one group, alone."""
        rows = self.group == z
        alone = np.zeros(int(rows.sum()), dtype=np.intp)
        return _Entries(self.names[rows], alone, self.size[rows], self.total[rows])

    def added(self) -> _Entries:
        """With one entry for every cluster and group that meet."""
        names, place = distinct_clusters(self.names)
        n_groups = int(self.group.max(initial=0)) + 1
        pairs, entry = np.unique(place * n_groups + self.group, return_inverse=True)

        def add(array: Floats) -> Floats:
            sums = [np.bincount(entry, column, minlength=len(pairs)) for column in array.T]
            return np.stack(sums, axis=1)

        return _Entries(
            names[pairs // n_groups], pairs % n_groups, add(self.size), add(self.total), len(pairs)
        )


#: Fields of sums that hold an entry for every group.
BY_GROUP = ("rows", "total", "weight", "squares", "mean", "second", "third")


@dataclass(frozen=True)
class _Part:
    """Some people: arrays of shape (groups, columns); means relative to the origin.

    The columns are the measures and the loss; with sampling weights three times, for their powers 1, 2 and 3.
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
    clusters: _Entries | None = None
    amounts: _Entries | None = None
    bins: Mapping[int, Keyed] = field(default_factory=dict)

    @_quiet
    def __add__(self, other: _Part) -> _Part:
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

    def _aligned(self, groups: tuple[Any, ...], origin: Floats) -> _Part:
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


def sum_persons(people: LazyPeople, policy: Policy | None = None) -> tuple[SummedPersons, Floats | None]:
    """What is decided on the people of a table that is not in memory does to them.

    By the column ``columns.decided``; or by a policy, a lottery counting by its probabilities. Where it is known, also
    the group means of the baseline, or without the policy.
    """
    problem = people.problem
    x = problem.looks_at_x or (policy is not None and policy.sees_x) or callable(people.columns.group)
    drawn = policy is not None and policy.is_randomized
    betting = _betting(problem, people.columns, drawn=drawn)
    parts: list[_Part] = people.fold(partial(_parts_of, problem, policy, betting, alike=not x), _added)
    sums = parts[0]
    if not sums.rows.sum():
        raise no_rows(people.columns.weight)
    j, columns = len(problem.happiness), people.columns
    rows, total = int(sums.rows.sum()), float(sums.total.sum())
    refuse_identifiers(sums.groups, rows, total)
    sampling = columns.weight is not None and are_sampling(columns.weight_kind, sums.whole, total, rows)
    knows_loss = columns.y is not None or not problem.loss.looks_at_y
    weighed = tuple(drawn and bool(measure.over) for measure in problem.measures)
    join, loss = partial(_sample_of_unions, sums, sampling, weighed), None
    if knows_loss:
        everyone = np.zeros(len(sums.groups), dtype=np.intp)
        loss = _sample(_joined(sums, everyone, 1), sampling, j + 1).take(j)
        loss = replace(loss, mean=loss.mean + sums.origin[j])
    persons = SummedPersons(
        groups=sums.groups,
        measures=problem.measures,
        origin=sums.origin[:j],
        rates=rates_of(problem, drawn=drawn),
        loss_rate=problem.loss.is_rate and not drawn,
        loss_bounds=problem.loss.bounds,
        sampling=sampling,
        sample=_sample_of(sums, sampling, weighed),
        loss_sample=loss,
        rows=rows,
        sizes=sums.total,
        seen=sums.rows if sampling else sums.total,
        weighted=columns.weight is not None,
        clusters=None if sums.clusters is None else len(distinct_clusters(sums.clusters.names)[0]),
        counted=sums.weight[:, :j],
        largest=(sums.largest[:j], float(sums.largest[j]) if knows_loss else 0.0),
        join=join,
        bins=sums.bins,
        idle=tuple(str(one.name) for one in problem.happiness if str(one.name) in sums.idle),
        attributes=tuple(columns.group_names),
        least=sums.least,
        randomized=drawn,
        distributions=_distributions(sums, sampling, j),
    )
    check_persons(persons)
    without = [
        np.where(part.weight[:, :j] > 0, part.mean[:, :j] + part.origin[:j], np.nan) for part in parts[1:]
    ]
    return persons, without[0] if without else None


def _betting(problem: Problem, columns: Columns, *, drawn: bool) -> tuple[int, ...]:
    """Measures of which people are counted by bins, for bets, and -1 for the loss."""
    if columns.cluster is not None or (columns.weight is not None and columns.weight_kind == "sampling"):
        return ()
    exact = rates_of(problem, drawn=drawn)
    some = [
        c
        for c, one in enumerate(problem.measures)
        if one.bounds is not None and not exact[c] and not (drawn and one.over)
    ]
    bounds, loss = problem.loss.bounds, columns.y is not None or not problem.loss.looks_at_y
    bets_on_loss = loss and bounds is not None and np.ptp(bounds) > 0 and (drawn or not problem.loss.is_rate)
    return (*some, *([-1] if bets_on_loss else []))


def _distributions(sums: _Part, sampling: bool, j: int) -> Distributions | None:
    """The amounts of every group, where they are counted; column ``j``, the loss, counts everybody."""
    if sums.amounts is None:
        return None
    counted, g, squares = sums.amounts.added().not_too_many(), len(sums.groups), None
    if sums.clusters is not None:
        clusters = sums.clusters.added()
        squares = np.bincount(clusters.group, clusters.size[:, j] ** 2, minlength=g).astype(np.float64)
    elif sampling:
        squares = np.bincount(counted.group, counted.total[:, 0], minlength=g).astype(np.float64)
    amounts, place = np.unique(counted.names, return_inverse=True)
    held = np.bincount(counted.group * len(amounts) + place, counted.size[:, 0], minlength=g * len(amounts))
    mass = held.reshape(g, len(amounts)).astype(np.float64)
    return Distributions(amounts, mass, effective(mass.sum(axis=1), squares))


@_quiet
def _sample(part: _Part, sampling: bool, n_values: int) -> Sample:
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


def _linearised(part: _Part, n_values: int) -> Sample:
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


def _joined(part: _Part, place: Codes, count: int) -> _Part:
    """So many unions of groups; ``place`` is the one that every group belongs to."""
    found: dict[int, _Part] = {}
    for z, union in enumerate(place.tolist()):
        one: dict[str, Any] = {name: getattr(part, name)[z : z + 1] for name in BY_GROUP}
        clusters = None if part.clusters is None else part.clusters.of_group(z)
        here = replace(part, groups=(union,), clusters=clusters, amounts=None, bins={}, **one)
        found[union] = found[union] + here if union in found else here
    return reduce(add, (found[union] for union in range(count)))


def _sample_of(part: _Part, sampling: bool, weighed: tuple[bool, ...]) -> Sample:
    """The sample of all measures, without the loss; ``weighed`` are those that count people by a lottery."""
    j = len(weighed)
    sample = _sample(part, sampling, j + 1)
    if not any(weighed):
        return sample.take(np.arange(j))
    shared = _sample(part, True, j + 1)
    return side_by_side([(shared if drawn else sample).take(i) for i, drawn in enumerate(weighed)])


def _sample_of_unions(
    part: _Part, sampling: bool, weighed: tuple[bool, ...], place: Codes, count: int
) -> Sample:
    """The sample of unions of groups."""
    return _sample_of(_joined(part, place, count), sampling, weighed)


# ---------------------------------------------------------------------------------------------------------
# Some rows


def _parts_of(
    problem: Problem,
    policy: Policy | None,
    betting: tuple[int, ...],
    people: People,
    *,
    alike: bool = False,
) -> list[_Part]:
    """Sum up some people: what is decided, and what the baseline does where it is known.

    Where nobody looks at x, many are ``alike``, and one of them stands for all.
    """
    people = people if policy is None else policy.reading(people)
    # Fractions of which a lottery decides who is counted are means of people who count unequally.
    unequal = policy is not None and policy.is_randomized and any(h.over for h in problem.happiness)
    powers = (1, 2, 3) if (unequal or people.weight_kind == "sampling") and people.cluster is None else (1,)
    rows = np.bincount(people.codes, minlength=len(people.groups)).astype(np.float64)
    if alike and policy is not None and policy.sums_suffice and people.weight is None and not unequal:
        people = _one_of_each(policy, people)
    ways = [people if policy is None else replace(people, probabilities=policy.probabilities_of(people))]
    if people.amounts_baseline is not None:
        ways.append(people.as_baseline)
    elif people.knows_baseline and (policy is not None or people.baseline is not None):
        certain = np.eye(len(problem.decisions))[people.decisions_baseline()]
        ways.append(replace(people, probabilities=np.asarray(certain)))
    found = [persons_of(way, problem, part=True) for way in ways]
    sums = [_summed(way, one, powers, rows) for way, one in zip(ways, found, strict=True)]
    sums[0] = replace(sums[0], bins={j: found[0].in_bins(j) for j in betting})
    if getattr(problem, "parity", ""):
        assert people.amounts is not None, "amounts are decided"
        weight = people.weights[:, None]
        counted = _Entries(people.amounts, people.codes, weight, weight**2).added()
        sums[0] = replace(sums[0], amounts=counted)
    return sums


def _one_of_each(policy: Policy, people: People) -> People:
    """One person of each group, signal, label and baseline, with their number as weight; all where that is more."""
    if people.cluster is not None or people.missing is not None:
        return people
    known, share = policy.places(people), None
    if known is None:
        people = people.with_scores
        _, [(cell, share)] = policy.look_at(people)
        own = people.predictions()
    else:
        cell, own = known
        own = own if people.predicted is None else people.predicted
    parts = [cell, own, *([] if people.labels is None else [people.labels])]
    parts += [] if people.baseline is None else [people.baseline]
    key, size = people.codes, len(people.groups)
    for part in parts:
        width = int(part.max(initial=0)) + 1
        key, size = key * width + part, size * width
    if share is not None or size > len(people):
        return people
    first = np.zeros(size, dtype=np.intp)
    first[key[::-1]] = np.arange(len(people))[::-1]
    counts = np.bincount(key, minlength=size)
    held = np.flatnonzero(counts)
    return replace(people.take(first[held]), weight=counts[held].astype(np.float64))


def _added(some: list[_Part], others: list[_Part]) -> list[_Part]:
    return [one + other for one, other in zip(some, others, strict=True)]


@_quiet
def _summed(people: People, persons: EachPerson, powers: tuple[int, ...], rows: Floats) -> _Part:
    """Sums of some people around the mean of each group: of every measure, then the loss, for every power."""
    g, n, weight = len(people.groups), len(people), people.weights
    values = [*persons.values.T, np.zeros(n) if persons.losses is None else persons.losses]
    counted: list[Floats | Truths | None] = [None] * len(values)
    for name in ("inside", "share"):
        part = getattr(persons, name)
        if part is not None:
            counted = [
                part[:, j] if one is None else one * part[:, j] for j, one in enumerate(counted[:-1])
            ] + [None]
    columns = [(power, *pair) for power in powers for pair in zip(values, counted, strict=True)]
    names = ("weight", "squares", "mean", "second", "third")
    sums: dict[str, Any] = {name: np.zeros((g, len(columns))) for name in names}
    size, total = np.zeros((2, n if people.cluster is not None else 0, len(columns)))

    def add(numbers: Floats) -> Floats:
        return np.bincount(people.codes, numbers, minlength=g).astype(np.float64)

    everyone = add(weight)
    for j, (power, value, who) in enumerate(columns):
        w: Any = 1.0  # where all count alike, as they mostly do
        if people.weight is not None or who is not None:
            w = (weight if who is None else weight * who) ** power
        alike = np.ndim(w) == 0
        mass, weighed = everyone if alike else add(w), value if alike else w * value
        if people.cluster is not None:
            size[:, j], total[:, j] = w, weighed
        mean = add(weighed) / np.where(mass > 0, mass, 1.0)
        away = value - mean[people.codes]
        square = away * away if alike else w * away * away
        moments = {"weight": mass, "squares": everyone if alike else add(w * w), "mean": mean}
        moments |= {"second": add(square), "third": add(square * away)}
        for name, moment in moments.items():
            sums[name][:, j] = moment
    clusters = None if people.cluster is None else _Entries(people.cluster, people.codes, size, total).added()
    largest, lost = persons.largest
    return _Part(
        groups=people.groups,
        origin=np.tile(np.append(persons.origin, 0.0), len(powers)),
        rows=rows,
        total=everyone,
        largest=np.tile(np.append(largest, lost), len(powers)),
        least=persons.least,
        whole=bool((weight == np.rint(weight)).all()),
        idle=frozenset(persons.idle),
        clusters=clusters,
        **sums,
    )
