r"""Persons: what decisions do to people, as intervals need it.

.. math:: v_{ij} = \sum_d q_i(d) \, \eta_j(d; i), \qquad l_i = \sum_d q_i(d) \, c(d; i)

with the probabilities :math:`q_i` of the decisions about person i: a lottery counts by its probabilities, not by one
draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from felicific._audit.debiased import Debiased, Supposed
from felicific._people.evaluate import Worth, typical, worth_of
from felicific._people.labels import stands_for
from felicific._people.people import People
from felicific._problem.happiness import ARGUMENTS, Happiness, Measure, arguments_of, fractions_of
from felicific._problem.problem import Problem
from felicific._problem.unions import Attribute, LeftOut, LeftOutBy, Union, Whom, compared, compared_groups
from felicific._program.aggregates import NOBODY
from felicific._statistics.bets import BINS, Keyed, added_up, count_bins
from felicific._statistics.distributions import Distributions
from felicific._statistics.intervals import Sample, of_few, sample_of, side_by_side
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import HappinessError


def bounds_of(persons: Persons, j: int) -> tuple[float, float] | None:
    """Known range of a measure, relative to its origin."""
    known = persons.measures[j].bounds
    return None if known is None else (known[0] - persons.origin[j], known[1] - persons.origin[j])


def groups_compared(persons: Persons, j: int) -> Codes:
    """Positions of the groups that a measure compares."""
    return compared_groups(persons.left_out, persons.measures[j].name, persons.groups)


def only_comparing(people: Persons, whom: Whom, parity: str = "") -> Persons:
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


def check_persons(persons: Persons) -> None:
    """Refuse people among whom no gap can be measured, or whose values a computer cannot hold."""
    for j, measure in enumerate(persons.measures):
        own = groups_compared(persons, j)
        empty = own[persons.counted[own, j] == 0]  # of a group that is not compared, nobody has to be counted
        if len(empty) and persons.debiased_at[j]:
            raise HappinessError(
                f"The labels of the group {persons.groups[empty[0]]!r} do not tell how many are counted by "
                f"{measure.name!r}: a few people stand for so many others that the share is not above 0.",
                "Get more labels of people who rarely have one, by Exploration, or say missing_labels='unknown'.",
            )
    values, loss = persons.largest
    names = [f"happiness {measure.name!r}" for measure in persons.measures] + ["loss"]
    for name, size in zip(names, [*values.tolist(), loss], strict=True):
        if size and not 1e-70 < size < 1e70:  # their squares and cubes would be lost
            raise HappinessError(
                f"The {name} is of the size {size:.3g}, which is too {'large' if size > 1 else 'small'} to audit.",
                "Use another unit (thousands or thousandths of it, say).",
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Audited:
    """What is known of people whether each of them is, or sums over them are.

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
    ends : (EachPerson, EachPerson), or None
        The same people at the least and the most that hidden reasons leave open; None where nothing is hidden.
    randomized : bool
        Whether it is drawn who is counted, or what is decided on people who are summed.
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
    ends: tuple[EachPerson, EachPerson] | None = None

    @property
    def debiased_at(self) -> Truths:
        """Of which measures, and last whether of the loss, values are debiased for missing labels."""
        found = np.zeros(len(self.measures) + 1, dtype=bool)
        found[list(self.debiased.parts) if self.debiased is not None else []] = True
        return found

    @property
    def fingerprint(self) -> str | None:
        """A checksum of people who are known one by one."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class EachPerson(_Audited):
    """Each person's own values.

    Attributes
    ----------
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
    """

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

    @cached_property
    def distributions(self) -> Distributions | None:
        """The amounts of every group, where decisions are such."""
        if self.amounts is None:
            return None
        return Distributions.of(self.amounts, self.codes, len(self.groups), self.weight, **self._independence)

    @property
    def _independence(self) -> dict[str, Any]:
        """What tells how much people vary by chance."""
        return {"sampling": self.sampling, "cluster": self.cluster}

    @property
    def rows(self) -> int:
        """How many people are in memory."""
        return len(self.codes)

    @property
    def sizes(self) -> Floats:
        """Weight of every group."""
        counts = np.bincount(self.codes, weights=self.weight, minlength=len(self.groups))
        return np.asarray(counts, dtype=np.float64)

    @property
    def seen(self) -> Floats:
        """How many people of every group were seen: with sampling weights, one in every row."""
        return replace(self, weight=None).sizes if self.sampling else self.sizes

    @property
    def weighted(self) -> bool:
        """Whether there are weights."""
        return self.weight is not None

    @property
    def countable(self) -> bool:
        """Whether these are so many independent people of equal weight."""
        return self.cluster is None and not (self.sampling and self.weighted)

    @cached_property
    def clusters(self) -> int | None:
        """How many clusters there are."""
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

    def merged(self, place: Codes, names: tuple[Any, ...]) -> EachPerson:
        """The same people by unions of groups; ``place`` is the one that every group belongs to."""
        return revalued(replace(self, groups=names, codes=place[self.codes], attributes=(), left_out={}))

    @cached_property
    def loss_sample(self) -> Sample | None:
        """The loss of all people together."""
        if self.losses is None:
            return None
        everyone = np.zeros(len(self.losses), dtype=np.intp)
        return self.summed(self.losses[:, None], everyone, 1, uneven=self.debiased_at[-1:]).take(0)

    @property
    def fingerprint(self) -> str | None:
        """A checksum."""
        return f"{self.checksum:08x}"

    def values_of(self, z: int, j: int) -> Floats:
        """Values of one group."""
        rows = self.codes == z
        if self.inside is not None:
            rows &= self.inside[:, j]
        values = self.values[rows, j] + self.origin[j]
        return values if self.weight is None else np.repeat(values, self.weight[rows].astype(np.intp))

    def in_bins(self, j: int) -> Keyed:
        """How many people there are by group and bin of a measure's bounds; of -1, the loss, of everybody."""
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
        losses = np.zeros(1) if self.losses is None else self.losses
        sizes = np.abs(self.values).max(axis=0, initial=0.0)
        return np.asarray(sizes), float(np.abs(losses).max(initial=0.0))

    @property
    def counted(self) -> Floats:
        """How many rows each measure counts."""
        return self._count(np.ones(len(self.codes)))

    def _count(self, weight: Floats) -> Floats:
        """How much of these weights each measure counts, of shape (groups, measures)."""
        inside = np.ones((1, len(self.measures))) if self.inside is None else self.inside
        counts = [np.bincount(self.codes, one, len(self.groups)) for one in (weight[:, None] * inside).T]
        return np.stack(counts, axis=1)

    @property
    def numbers(self) -> Floats:
        """How many people of every group each measure counts, of shape (groups, measures)."""
        return self.counted if self.sampling else self.weighed

    @property
    def weighed(self) -> Floats:
        """How much those weigh."""
        return self.counted if self.weight is None else self._count(self.weight)


@dataclass(frozen=True, eq=False, kw_only=True)
class SummedPersons(_Audited):
    """Sums over people in a table that is not in memory; nobody's own values are known.

    Attributes
    ----------
    sample, loss_sample : Sample
        Of shape (groups, measures), relative to the origin; of all people together, of shape (1,).
    rows : int
    sizes : array of shape (groups,)
        Weight of every group.
    seen : array of shape (groups,)
        How many people of every group were seen.
    weighted : bool
        Whether there are weights.
    clusters : int, or None
        How many clusters there are; None where everybody is independent.
    counted : array of shape (groups, measures)
        Weight that each measure counts.
    largest : array of shape (measures,) and float
        Sizes of the largest values and loss.
    join : callable
        From the union that every group belongs to, and their number, to the sample of unions.
    bins : dict of int to arrays
        Of measures within known bounds, and of the loss, -1: how many people there are by group and bin.
    distributions : Distributions, or None
        The amounts of every group, where their distributions are compared.
    """

    sample: Sample
    loss_sample: Sample | None
    rows: int
    sizes: Floats
    seen: Floats
    weighted: bool
    clusters: int | None
    counted: Floats
    largest: tuple[Floats, float]
    join: Callable[[Codes, int], Sample]
    bins: Mapping[int, Keyed]
    distributions: Distributions | None = None

    def in_bins(self, j: int) -> Keyed:
        """How many people there are by group and bin of a measure's bounds; of -1, the loss, of everybody."""
        return self.bins[j]

    @property
    def numbers(self) -> Floats:
        """How many people of every group each measure counts: of sampling weights as many rows as of the weight."""
        return np.asarray(self.counted * (self.seen / np.where(self.sizes > 0, self.sizes, 1.0))[:, None])

    @property
    def weighed(self) -> Floats:
        """How much those weigh."""
        return self.counted

    @property
    def countable(self) -> bool:
        """Whether these are so many independent people of equal weight."""
        return self.clusters is None and not (self.sampling and self.weighted)

    def merged(self, place: Codes, names: tuple[Any, ...]) -> SummedPersons:
        """The same people by unions of groups; ``place`` is the one that every group belongs to."""
        inside = np.eye(len(names))[:, place]
        return replace(
            self,
            groups=names,
            attributes=(),
            left_out={},
            sample=self.join(place, len(names)),
            sizes=inside @ self.sizes,
            seen=inside @ self.seen,
            counted=inside @ self.counted,
            bins={j: keyed if j < 0 else regrouped_bins(keyed, place) for j, keyed in self.bins.items()},
        )

    @property
    def means(self) -> Floats:
        """Group means, of shape (groups, measures); not a number where nobody is counted."""
        return np.where(self.sample.n > 0, self.sample.mean + self.origin, np.nan)


#: People of positive weight with what decisions do to them: each of them, or sums over them.
Persons: TypeAlias = EachPerson | SummedPersons


def regrouped_bins(keyed: Keyed, place: Codes) -> Keyed:
    """The same people by other groups; ``place`` is the one that every group becomes."""
    keys, people = keyed
    return added_up(place[keys // BINS] * BINS + keys % BINS, people)


def regrouped(persons: Persons, unions: Sequence[Union]) -> EachPerson:
    """Unions of groups in the place of groups, of people who are known one by one; the others are left out."""
    assert isinstance(persons, EachPerson), "who is held out is in memory"
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


def revalued(persons: EachPerson) -> EachPerson:
    """With the values that missing labels leave in these groups, and both ends of them where something is hidden."""
    if persons.debiased is None:
        return persons
    ends = None if persons.debiased.max_odds_ratio == 1.0 else (_at_end(persons, -1.0), _at_end(persons, 1.0))
    return replace(_at_end(persons, 0.0), ends=ends)


def _at_end(persons: EachPerson, end: float) -> EachPerson:
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


def persons_of(people: People, problem: Problem, *, part: bool = False) -> EachPerson:
    """What the probabilities of the decisions about some people do to each of them, batch by batch.

    Where labels are missing, people say how likely each label is. Of a ``part`` of a table nothing is said, or refused,
    that can be told of all of it only.
    """
    probabilities, sampling = people.probabilities, not part and people.sampling
    assert probabilities is not None, "something was decided on these people"
    n, j = len(people), len(problem.happiness)
    unlabelled = lacks_labels(people)
    looking = [c for c, h in enumerate(problem.happiness) if unlabelled and h.looks_at_y]
    # Measure by measure in memory: that is how they are summed up later.
    values = np.zeros((j, n)).T
    some = any(h.among is not None and not h.over for h in problem.happiness)
    inside = np.ones((j, n), dtype=bool).T if some else None
    losses = np.zeros(n) if people.knows_labels or not problem.loss.looks_at_y else None
    memory = _Memory(len(problem.happiness), len(people.groups), part)
    for rows, batch in people.batches(4):  # nothing is summed by cell here, so more fit into the cache
        worth, q, who = (
            worth_of(problem, batch),
            probabilities[rows],
            (people.codes[rows], people.weights[rows]),
        )
        for c in range(j):
            if c in looking:
                continue
            values[rows, c], counted = memory.happiness_of(c, worth, q, *who)
            if counted is not None and inside is not None:
                inside[rows, c] = counted
        if losses is not None and not (unlabelled and problem.loss.looks_at_y):
            losses[rows] = np.einsum("id,di->i", q, worth.cost)
            memory.reach_of(j, worth.cost, *who)
    debiased = _debiased(people, problem, looking, inside, memory) if unlabelled else None
    checksum = memory.checksum
    truths = people.labels if people.amounts is None else people.y
    for array in () if part else (people.codes, truths, people.weight, people.cluster_codes):
        checksum = checksum if array is None else _checksum(array, checksum)
    origin = np.array([known or 0.0 for known in memory.origin])
    values, inside, share = fractions_among(values, inside, origin, problem.measures)
    persons = EachPerson(
        groups=people.groups,
        measures=problem.measures,
        origin=origin,
        rates=rates_of(problem, drawn=people.drawn, debiased=debiased),
        loss_rate=is_loss_rate(problem, drawn=people.drawn, debiased=debiased),
        loss_bounds=problem.loss.bounds,
        sampling=sampling,
        cluster=None if part else people.cluster_codes,
        codes=people.codes,
        values=values,
        inside=inside,
        losses=losses,
        weight=people.weight,
        reach=memory.reach
        if part or people.amounts is None
        else reach_of_amounts(people, values, inside, losses),
        checksum=checksum,
        idle=idle_among(problem, memory.moved),
        attributes=people.attributes,
        left_out=people.left_out,
        least=memory.least,
        share=share,
        randomized=share is not None,
        debiased=debiased,
        amounts=people.amounts,
    )
    persons = revalued(persons)
    if not part:
        check_persons(persons)
    return persons


def reach_of_amounts(people: People, values: Floats, inside: Truths | None, losses: Floats | None) -> Floats:
    """Mean square of how far apart two people are, by group and measure; of everybody, last, by loss."""
    g, j = len(people.groups), values.shape[1]
    found, everyone = np.zeros((g + 1, j + 1)), np.zeros(len(people), dtype=np.intp)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # numbers as large as that are refused by name in the end
        for c in range(j):
            weight = people.weights if inside is None else people.weights * inside[:, c]
            found[:-1, c] = _apart(values[:, c], people.codes, g, weight)
        if losses is not None:
            found[-1, j] = _apart(losses, everyone, 1, people.weights)[0]
    return found


def _apart(values: Floats, codes: Codes, n_groups: int, weight: Floats) -> Floats:
    """Twice the variance of every group."""
    mass = np.bincount(codes, weight, minlength=n_groups)
    held = np.where(mass > 0, mass, 1.0)
    mean = np.bincount(codes, weight * values, minlength=n_groups) / held
    return np.asarray(
        2.0 * np.bincount(codes, weight * (values - mean[codes]) ** 2, minlength=n_groups) / held
    )


def lacks_labels(people: People) -> bool:
    """Whether somebody's label is missing, and it is known how likely each is."""
    return people.missing is not None and people.labels is not None and not people.labelled.all()


def debiased_people(people: People, parts: dict[int, Supposed]) -> Debiased:
    """People of whom some have no label, with what they would be worth."""
    assert people.labels is not None, "some have a label"
    assert people.chances is not None, "it is known how likely each label is"
    assert people.label_proba is not None, "it is known how likely a label was"
    assert people.missing is not None, "labels may be missing"
    standing, said = stands_for(people, people.label_proba), people.missing
    return Debiased(people.labels, people.chances, standing, said.max_odds_ratio, parts, bool(said.columns))


def supposed_worth(
    people: People, problem: Problem, looking: Sequence[int]
) -> Iterator[tuple[int, slice, Worth]]:
    """What decisions are worth to people as if each label were everybody's; refuse what cannot be said of them.

    By the position of the label, the rows, and their worth.
    """
    max_odds_ratio = 1.0 if people.missing is None else people.missing.max_odds_ratio
    for c in looking:
        refuse_unbounded(problem.happiness[c], len(problem.labels), max_odds_ratio)
    stated = [c for c in looking if problem.happiness[c].bounds is not None]
    for _, batch in people.with_labels.batches(4) if stated else ():  # bounds speak of real labels
        for c in stated:
            worth_of(problem, batch).values(c)
    for k in range(len(problem.labels)):
        for part, batch in people.supposing(k, problem.labels).batches(4):
            yield k, part, worth_of(problem, batch)


def refuse_unbounded(happiness: Happiness, n_labels: int, max_odds_ratio: float) -> None:
    """Refuse what cannot be measured, or bounded, where labels are missing."""
    if happiness.over:
        raise HappinessError(
            f"Who is counted by {happiness.name!r} depends on the decision, it looks at labels, and some are missing.",
            "Measure it on people who all have a label, or measure something that is a mean of everybody.",
        )
    asks = arguments_of(happiness.function, f"The happiness {happiness.name!r}", ARGUMENTS)
    if max_odds_ratio > 1.0 and happiness.by_label and "y" in asks and n_labels > 2:
        raise HappinessError(
            f"The happiness {happiness.name!r} looks at the label, and so does its `among`: of more than two labels "
            f"its worst case at max_odds_ratio={max_odds_ratio:g} is not known.",
            "Let it look at the label by `among` alone, or use max_odds_ratio=1.",
        )


def _debiased(
    people: People, problem: Problem, looking: Sequence[int], inside: Truths | None, memory: _Memory
) -> Debiased:
    """What everybody would be worth with each label, of what looks at labels."""
    n, k, probabilities, j = len(people), len(problem.labels), people.probabilities, len(problem.happiness)
    assert probabilities is not None, "something was decided on these people"
    value = {c: np.zeros((n, k)) for c in looking} | (
        {j: np.zeros((n, k))} if problem.loss.looks_at_y else {}
    )
    among = {c: np.zeros((n, k)) for c in looking if problem.happiness[c].by_label}
    held = people.weights[:, None] * believed(people)
    for label, part, worth in supposed_worth(people, problem, looking):
        q, who = probabilities[part], (people.codes[part], held[part, label])
        for c in looking:
            value[c][part, label], counted = memory.happiness_of(c, worth, q, *who)
            if c in among:
                among[c][part, label] = 1.0 if counted is None else counted
            elif counted is not None and inside is not None:
                inside[part, c] = counted
        if problem.loss.looks_at_y:
            value[j][part, label] = np.einsum("id,di->i", q, worth.cost)
            memory.reach_of(j, worth.cost, *who)
    sizes = np.bincount(people.codes, people.weights, minlength=len(people.groups)).astype(np.float64)
    for c in among:
        memory.widen(c, sizes)
    return debiased_people(people, {c: Supposed(part, among.get(c)) for c, part in value.items()})


def believed(people: People) -> Floats:
    """How likely each label is of everybody: certain where it is known; of shape (n, labels)."""
    assert people.labels is not None, "some have a label"
    assert people.chances is not None, "it is known how likely each label is"
    return np.where(people.labelled[:, None], np.eye(people.chances.shape[1])[people.labels], people.chances)


def fractions_among(
    values: Floats, inside: Truths | None, origin: Floats, measures: tuple[Measure, ...]
) -> tuple[Floats, Truths | None, Floats | None]:
    """Of every fraction what is expected of those who are counted, who they are, and with which probability.

    From values of shape (n, measures), numerators and denominators; the probability is None where it is 0 or 1.
    """
    found = fractions_of(measures)
    if not found:
        return values, inside, None
    values = values.copy(order="K")
    inside = np.ones_like(values, dtype=bool) if inside is None else inside.copy(order="K")
    share = np.ones_like(values)
    for j, k in found:
        counted = values[:, k] + origin[k]
        inside[:, j] = counted > NOBODY
        share[:, j] = np.where(inside[:, j], counted, 0.0)
        held = np.where(inside[:, j], counted, 1.0)
        values[:, j] = np.where(inside[:, j], (values[:, j] + origin[j]) / held - origin[j], 0.0)
    drawn = bool(((share > NOBODY) & (share < 1.0 - NOBODY)).any())
    return values, inside, share if drawn else None


def rates_of(problem: Problem, *, drawn: bool, debiased: Debiased | None = None) -> Truths:
    """Measures of which everybody gets 0 or 1, by declaration; what a lottery lets expect may be anything between."""
    known = {} if debiased is None else debiased.parts
    return np.array([bool(h.rate) and not drawn and c not in known for c, h in enumerate(problem.happiness)])


def is_loss_rate(problem: Problem, *, drawn: bool, debiased: Debiased | None = None) -> bool:
    """Likewise of the loss."""
    missing = debiased is not None and len(problem.happiness) in debiased.parts
    return problem.loss.is_rate and not drawn and not missing


def _checksum(array: Array, before: int) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data, before)


class _Memory:
    """The part of :func:`persons_of` that remembers: origins, a checksum, how much decisions can change."""

    def __init__(self, n_measures: int, n_groups: int, part: bool = False) -> None:
        self.part = part
        self.origin: list[float | None] = [None] * n_measures
        self.moved = np.zeros(n_measures, dtype=bool)
        self.least = np.full(n_measures, np.inf)
        self.checksum = 0
        self._squares, self._mass = (np.zeros((n_measures + 1, n_groups)) for _ in range(2))

    def reach_of(self, j: int, values: Floats, codes: Codes, weight: Floats) -> None:
        """Add how far apart values of shape (D, n) leave every person, by group; not of a part of a table."""
        if self.part:
            return
        far, g = np.ptp(values, axis=0), self._mass.shape[1]
        with np.errstate(over="ignore"):  # numbers as large as that are refused by name in the end
            self._squares[j] += np.bincount(codes, weight * far**2, minlength=g)
        self._mass[j] += np.bincount(codes, weight, minlength=g)

    def widen(self, j: int, people: Floats) -> None:
        """What a measure that counts some people changes, as part of everybody: the fewer count, the more does each.

        ``people`` are those of every group.
        """
        share = np.where(self._mass[j] > 0, people / np.where(self._mass[j] > 0, self._mass[j], 1.0), 1.0)
        self._squares[j] *= share**2

    @property
    def reach(self) -> Floats:
        """Means of what was added: of every group, then of everybody."""
        squares, mass = (np.column_stack([part, part.sum(axis=1)]).T for part in (self._squares, self._mass))
        return np.asarray(squares / np.where(mass > 0, mass, 1.0))

    def happiness_of(
        self, j: int, worth: Worth, q: Floats, codes: Codes, weight: Floats
    ) -> tuple[Floats, Truths | None]:
        """Value of every person relative to the measure's origin, and who is counted (None: everybody)."""
        values, counted = worth.values(j)
        self.reach_of(j, values, codes, weight if counted is None else weight * counted)
        amounts = worth.batch.amounts is not None
        if not self.part:
            self.checksum = _checksum(worth.of_one_amount(j) if amounts else values, self.checksum)
        self.moved[j] = self.moved[j] or worth.moves(j, values)
        self.least[j] = min(self.least[j], least_of(values, counted))
        if self.origin[j] is None:
            self.origin[j] = typical(values, counted)
        origin = self.origin[j] or 0.0
        expected = expected_value(values, q, origin)
        if counted is not None:
            expected[~counted] = 0.0
        return expected, counted


def least_of(values: Floats, counted: Truths | None) -> float:
    """The least of values of shape (D, n) of those who are counted; infinite where nobody is."""
    return float((values if counted is None else values[:, counted]).min(initial=np.inf))


def idle_among(problem: Problem, moved: Truths) -> tuple[str, ...]:
    """Names of the measures that no decision changes."""
    idle = np.flatnonzero(~moved).tolist()
    return tuple(str(problem.happiness[j].name) for j in idle if not problem.happiness[j].may_be_idle)


def expected_value(values: Floats, probabilities: Floats, origin: float) -> Floats:
    """What every person may expect of the probabilities of shape (n, D), of values of shape (D, n).

    Relative to the origin.
    """
    expected = np.zeros(len(probabilities))
    for d, value in enumerate(values):
        expected += probabilities[:, d] * (value - origin)
    return expected
