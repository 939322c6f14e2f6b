"""From people to what decisions do to them: in memory, or batch by batch where a table is."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from felicific._audit.debiased import Debiased, Supposed
from felicific._audit.measured import Entries, Measured, Sums, groups_compared, quiet, revalued
from felicific._people.checks import are_sampling
from felicific._people.evaluate import Worth, typical, worth_of
from felicific._people.labels import stands_for
from felicific._people.lazy import LazyPeople, no_rows
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.policy import Policy
from felicific._problem.happiness import ARGUMENTS, Happiness, Measure, arguments_of, fractions_of
from felicific._problem.problem import Problem
from felicific._program.aggregates import NOBODY
from felicific._tables.groups import refuse_identifiers
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import HappinessError


def check_persons(persons: Measured) -> None:
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


def measured_of(people: People, problem: Problem, *, part: bool = False) -> Measured:
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
    persons = Measured(
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
    """The part of :func:`measured_of` that remembers: origins, a checksum, how much decisions can change."""

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


# ---------------------------------------------------------------------------------------------------------
# People in a table that is not in memory


def summed_of(people: LazyPeople, policy: Policy | None = None) -> tuple[Measured, Floats | None]:
    """What is decided on the people of a table that is not in memory does to them.

    By the column ``columns.decided``; or by a policy, a lottery counting by its probabilities. Where it is known, also
    the group means of the baseline, or without the policy.
    """
    problem = people.problem
    x = problem.looks_at_x or (policy is not None and policy.sees_x) or callable(people.columns.group)
    drawn = policy is not None and policy.is_randomized
    betting = _betting(problem, people.columns, drawn=drawn)
    parts: list[Sums] = people.fold(partial(_parts_of, problem, policy, betting, alike=not x), _added)
    sums = parts[0]
    if not sums.rows.sum():
        raise no_rows(people.columns.weight)
    j, columns = len(problem.happiness), people.columns
    rows, total = int(sums.rows.sum()), float(sums.total.sum())
    refuse_identifiers(sums.groups, rows, total)
    sampling = columns.weight is not None and are_sampling(columns.weight_kind, sums.whole, total, rows)
    knows_loss = columns.y is not None or not problem.loss.looks_at_y
    none = np.zeros((0, j))
    persons = Measured(
        groups=sums.groups,
        measures=problem.measures,
        origin=sums.origin[:j],
        rates=rates_of(problem, drawn=drawn),
        loss_rate=problem.loss.is_rate and not drawn,
        loss_bounds=problem.loss.bounds,
        sampling=sampling,
        idle=tuple(str(one.name) for one in problem.happiness if str(one.name) in sums.idle),
        attributes=tuple(columns.group_names),
        least=sums.least,
        randomized=drawn,
        codes=np.zeros(0, dtype=np.intp),
        values=none,
        inside=None,
        losses=np.zeros(0) if knows_loss else None,
        weight=None,
        reach=none,
        checksum=0,
        sums=replace(sums, weighted=columns.weight is not None),
    )
    check_persons(persons)
    without = [
        np.where(part.weight[:, :j] > 0, part.mean[:, :j] + part.origin[:j], np.nan) for part in parts[1:]
    ]
    return persons, without[0] if without else None


def _betting(problem: Problem, columns: Roles, *, drawn: bool) -> tuple[int, ...]:
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


# ---------------------------------------------------------------------------------------------------------
# Some rows


def _parts_of(
    problem: Problem,
    policy: Policy | None,
    betting: tuple[int, ...],
    people: People,
    *,
    alike: bool = False,
) -> list[Sums]:
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
    found = [measured_of(way, problem, part=True) for way in ways]
    sums = [_summed(way, one, powers, rows) for way, one in zip(ways, found, strict=True)]
    sums[0] = replace(sums[0], bins={j: found[0].in_bins(j) for j in betting})
    if getattr(problem, "parity", ""):
        assert people.amounts is not None, "amounts are decided"
        weight = people.weights[:, None]
        counted = Entries(people.amounts, people.codes, weight, weight**2).added()
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


def _added(some: list[Sums], others: list[Sums]) -> list[Sums]:
    return [one + other for one, other in zip(some, others, strict=True)]


@quiet
def _summed(people: People, persons: Measured, powers: tuple[int, ...], rows: Floats) -> Sums:
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
    clusters = None if people.cluster is None else Entries(people.cluster, people.codes, size, total).added()
    largest, lost = persons.largest
    return Sums(
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
