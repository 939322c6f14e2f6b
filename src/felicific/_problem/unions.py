"""Unions of groups: everybody of one sex, say, where the groups are the intersections of sex and race."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import ConstraintError, GroupError

#: An attribute of people that groups are made of: a column's name, or its position where there is none.
Attribute: TypeAlias = str | int

#: What ``between=`` takes: None for the groups as they are, an attribute, or several for their intersections.
Between: TypeAlias = Attribute | Sequence[Attribute] | None


#: Groups of fewer people are measured and not compared, unless somebody says another number.
MIN_PEOPLE = 30


@dataclass(frozen=True)
class Union:
    """People of some groups together.

    Attributes
    ----------
    name : group, or text
        What they have in common; a group of its own keeps its own name.
    members : tuple of int
        Positions of the groups.
    """

    name: Any
    members: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shares:
    """How much of each group's mean stands in each of some means: a matrix of shape (means, groups), zeros left out.

    ``number`` of ``group`` stands in the mean ``row``; of thousands of groups that each stand alone, the whole matrix
    would be millions of zeros.
    """

    row: Codes
    group: Codes
    number: Floats
    shape: tuple[int, int]

    @classmethod
    def alone(cls, groups: Sequence[int] | Codes, n_groups: int) -> Shares:
        """Means of one group each."""
        place = np.asarray(groups, dtype=np.intp)
        return cls(np.arange(len(place)), place, np.ones(len(place)), (len(place), n_groups))

    @cached_property
    def single(self) -> Codes | None:
        """The group of every mean; None where one is of several."""
        return self.group if np.array_equal(self.row, np.arange(self.shape[0])) else None

    def __matmul__(self, means: Floats) -> Floats:
        terms = means[self.group] * (self.number if means.ndim == 1 else self.number[:, None])
        if self.single is not None:
            return np.asarray(terms)
        sums = np.zeros((self.shape[0], *means.shape[1:]))
        np.add.at(sums, self.row, terms)
        return sums

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, mean: int) -> Floats:
        shares = np.zeros(self.shape[1])
        own = self.row == mean
        shares[self.group[own]] = self.number[own]
        return shares

    def __iter__(self) -> Iterator[Floats]:
        return (self[mean] for mean in range(len(self)))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Floats:
        matrix = np.zeros(self.shape)
        matrix[self.row, self.group] = self.number
        return matrix

    def tolist(self) -> list[list[float]]:
        """The whole matrix."""
        matrix: list[list[float]] = np.asarray(self).tolist()
        return matrix


def single_groups(shares: Shares | Floats) -> Codes | None:
    """The group of every mean that is made of these shares; None where one is of several, or of none."""
    if isinstance(shares, Shares):
        return shares.single
    used = shares != 0.0
    return used.argmax(axis=1) if (used.sum(axis=1) == 1).all() else None


def shares_of(unions: Sequence[Union], counted: Floats) -> Shares:
    """How much of each group's mean stands in the mean of every union, by weights of shape (groups,)."""
    group, starts = _members(unions)
    row = np.repeat(np.arange(len(unions)), np.diff(np.append(starts, len(group))))
    total = np.add.reduceat(counted[group], starts)
    return Shares(row, group, counted[group] / total[row], (len(unions), len(counted)))


def _members(unions: Sequence[Union]) -> tuple[Codes, Codes]:
    """The groups of all unions, one union after the other, and where each begins."""
    group = np.array([z for union in unions for z in union.members], dtype=np.intp)
    sizes = np.array([len(union.members) for union in unions], dtype=np.intp)
    return group, sizes.cumsum() - sizes


def unions_of(
    groups: Sequence[Any], attributes: Sequence[Attribute], between: Between = None
) -> tuple[Union, ...]:
    """Who is compared: the groups as they are, or what they have in common in some attributes.

    Groups of several attributes are called "Black & Female", as :func:`felicific._tables.groups.name_groups` writes
    them, in the order of the attributes.
    """
    places = places_of(attributes, between)
    if places is None or places == list(range(len(attributes))):
        return tuple(Union(group, (z,)) for z, group in enumerate(groups))
    members: dict[str, list[int]] = {}
    for z, group in enumerate(groups):
        parts = str(group).split(" & ")
        members.setdefault(" & ".join(parts[place] for place in places), []).append(z)
    return tuple(Union(_unescaped(name, len(places)), tuple(own)) for name, own in members.items())


def places_of(attributes: Sequence[Attribute], between: Between) -> list[int] | None:
    """Positions of the attributes that are named, in their own order; None for the groups as they are."""
    if between is None:
        return None
    named = list(between) if isinstance(between, list | tuple) else [between]
    for name in named:
        if name not in attributes or isinstance(name, bool):
            listed = ", ".join(map(repr, attributes)) if attributes else "not named"
            raise ConstraintError(
                f"between is {between!r}, and the attributes of the groups are {listed}.",
                "Name one of them, or several together; leave it out to compare all groups.",
            )
    if not named or len(set(named)) < len(named):
        raise ConstraintError(f"between is {between!r}.", "Name each attribute once.")
    return [place for place, attribute in enumerate(attributes) if attribute in named]


@dataclass(frozen=True)
class Whom:
    """Who is compared: the groups, or what they have in common ``between`` attributes.

    Of those listed in ``groups`` (None: of all) the ones that are ``min_people`` or more; below 1 that is a share of
    all people.
    """

    between: Between = None
    min_people: float = 0
    groups: tuple[Any, ...] | None = None

    @property
    def words(self) -> tuple[str, str]:
        """Who that is: each of them, and which ones where that is not as usual."""
        named = [] if self.between is None else [self.between]
        named = list(self.between) if isinstance(self.between, list | tuple) else named
        parts = [name if isinstance(name, str) else f"attribute {name}" for name in named]
        few = self.min_people
        least = f"{few:.6g} people" if few >= 1 else f"{100 * few:.6g} % of all people"
        size = f" of {least} or more" if few not in (0, MIN_PEOPLE) else ""
        listed = "" if self.groups is None else f" among {', '.join(map(repr, self.groups))}"
        return " and ".join(parts), size + listed


@dataclass(frozen=True)
class LeftOut:
    """Groups that the gap of a measure does not compare.

    Attributes
    ----------
    people : dict
        How many people of every such group the measure counts.
    least : float
        From how many people on a group is compared.
    """

    people: dict[Any, float]
    least: float = 0.0

    @property
    def reasons(self) -> list[str]:
        """Why each of them is not compared, in sentences."""
        return [
            f"Group {group!r} has {number:,.6g} {'person' if number == 1 else 'people'} and is not compared "
            + (
                f"(fewer than {self.least:,.6g})."
                if number < self.least * (1 - 1e-12)
                else "(not in groups=)."
            )
            for group, number in self.people.items()
        ]


#: By the name of a measure; of one that is not named nobody is left out.
LeftOutBy: TypeAlias = Mapping[str, LeftOut]


def whom_left_out(left_out: LeftOutBy) -> list[str]:
    """Who is not compared and why, in sentences, each of them once."""
    alike: dict[str, list[str]] = {}
    for measure, part in left_out.items():
        for reason in part.reasons:
            alike.setdefault(reason, []).append(measure)
    every = {measure for names in alike.values() for measure in names}
    return [
        reason if len(names) == len(every) else f"{', '.join(map(repr, names))}: {reason}"
        for reason, names in alike.items()
    ]


def compared_groups(left_out: LeftOutBy, measure: str, groups: Sequence[Any]) -> Codes:
    """Positions of the groups that the gap of a measure compares."""
    gone = left_out[measure].people if measure in left_out else {}
    return np.array([z for z, group in enumerate(groups) if group not in gone], dtype=np.intp)


def compared_by(left_out: LeftOutBy, measures: Sequence[str], groups: Sequence[Any]) -> Truths:
    """Which groups the gap of every measure compares, of shape (groups, measures)."""
    found = np.zeros((len(groups), len(measures)), dtype=bool)
    for j, measure in enumerate(measures):
        found[compared_groups(left_out, measure, groups), j] = True
    return found


def compared(
    groups: Sequence[Any],
    attributes: Sequence[Attribute],
    numbers: Floats,
    whom: Whom,
    measure: str,
    seen: Floats | None = None,
) -> tuple[list[Union], LeftOut]:
    """Whose means of a measure are compared, and who is left out.

    ``numbers`` are the people of every group that the measure counts, ``seen`` all of its people, where that is to be
    more than one person.

    Raises
    ------
    ConstraintError
        When fewer than two are left, or there is no such attribute or group.
    GroupError
        When one of them is a single person.
    """
    unions = unions_of(groups, attributes, whom.between)
    listed = _listed(unions, whom)
    group, starts = _members(unions)
    people = np.add.reduceat(numbers[group], starts)
    least = whom.min_people * float(people.sum()) if whom.min_people < 1 else float(whom.min_people)
    enough = listed & (people >= least * (1 - 1e-12))
    kept = [union for union, one in zip(unions, enough, strict=True) if one]
    if len(kept) < 2:
        raise _too_few(unions, people, listed, least, measure)
    if seen is not None:
        group, starts = _members(kept)
        alone = np.flatnonzero(np.add.reduceat(seen[group], starts) == 1)
        if len(alone):
            raise GroupError(
                f"The group {kept[alone[0]].name!r} is one person, whose decision would be the mean of a group.",
                "Pass more people of it, merge it with another group, or leave small groups out: min_people=2.",
            )
    rest = {union.name: float(n) for union, n, one in zip(unions, people, enough, strict=True) if not one}
    return kept, LeftOut(rest, least)


def _listed(unions: Sequence[Union], whom: Whom) -> Truths:
    """Which of them ``groups=`` lists."""
    if whom.groups is None:
        return np.ones(len(unions), dtype=bool)
    names = [union.name for union in unions]
    for group in whom.groups:
        if group not in names:
            near = get_close_matches(str(group), [str(name) for name in names], 1)
            raise ConstraintError(
                f"groups= names {group!r}, which does not occur.",
                f"Did you mean {near[0]!r}?" if near else f"The groups are {', '.join(map(repr, names))}.",
            )
    return np.array([name in whom.groups for name in names], dtype=bool)


def _too_few(
    unions: Sequence[Union], people: Floats, listed: Truths, least: float, measure: str
) -> ConstraintError:
    """The error where nobody is left to compare with."""
    if len(unions) == 1:
        return ConstraintError(
            f"Everybody is of {unions[0].name!r}, so there is nobody to compare.",
            "Pass people of other groups, or name other attributes in between=.",
        )
    each = ", ".join(
        f"{union.name!r} has {number:,.6g}"
        for union, number, one in zip(unions, people.tolist(), listed, strict=True)
        if one
    )
    second = np.sort(people[listed])[-2]
    return ConstraintError(
        f"Fewer than two groups have the {least:,.6g} people that it takes to compare {measure!r}: of the people "
        f"that it counts, {each}.",
        f"Pass more people, merge groups, or give a smaller min_people=, such as min_people={second:.6g}, of a Gap "
        "among the constraints."
        if second >= 2
        else "Pass more people, or merge groups.",
    )


def check_groups(groups: Any) -> tuple[Any, ...] | None:
    """Insist on a list of two groups or more, each once."""
    if groups is None:
        return None
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ConstraintError(f"groups is {groups!r}.", "List the groups that are compared.")
    listed = tuple(groups)
    if len(listed) < 2 or len(set(listed)) < len(listed):
        raise ConstraintError(
            f"groups is {list(listed)!r}.", "List two groups or more that are compared, each of them once."
        )
    return listed


def check_between(between: Any) -> Any:
    """Insist on an attribute, or several of them."""
    named = between if isinstance(between, list | tuple) else [between]
    if between is not None and not all(
        isinstance(name, str | int) and not isinstance(name, bool) for name in named
    ):
        raise ConstraintError(
            f"between is {between!r}.",
            "Name an attribute of the groups, such as 'sex', or several in a list.",
        )
    return tuple(between) if isinstance(between, list | tuple) else between


def check_min_people(min_people: Any) -> float:
    """Insist on a number of people, or a share of all of them."""
    try:
        number = float(min_people)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(min_people, str | bool) or not 0 <= number < math.inf:
        raise ConstraintError(
            f"min_people is {min_people!r}.", "Give a number of people, or a share of all of them below 1."
        )
    return number


def _unescaped(name: str, parts: int) -> str:
    """A value as it was written; of several, their combination as groups are called."""
    return name if parts > 1 else name.replace("\\&", "&").replace("\\\\", "\\")


def read_attributes(values: Any) -> tuple[Attribute, ...]:
    """Attributes out of a file."""
    if not isinstance(values, list) or not all(type(value) in (str, int) for value in values):
        raise TypeError(f"attributes {values!r}")
    return tuple(values)
