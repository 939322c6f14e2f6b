"""Unions of groups: everybody of one sex, say, where the groups are the intersections of sex and race."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import ConstraintError, GroupError

#: An attribute of people that groups are made of: a column's name, or its position where there is none.
Attribute: TypeAlias = str | int

#: What ``between=`` takes: None for the groups as they are, an attribute, or several for their intersections.
Between: TypeAlias = Attribute | Sequence[Attribute] | None


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


@dataclass(frozen=True)
class Grouping:
    """What groups are made of.

    Attributes
    ----------
    attributes : tuple
        Columns, or positions where there are no names; empty where that is not known.
    missing : str, or None
        What people are called whose value of an attribute is missing.
    """

    attributes: tuple[Attribute, ...] = ()
    missing: str | None = None

    def unions(self, groups: Sequence[Any], between: Between = None) -> tuple[Union, ...]:
        """Who is compared, those of unknown group included; see :func:`unions_of`."""
        return unions_of(groups, self.attributes, between)

    def unknown(self, unions: Sequence[Union], between: Between = None) -> Truths:
        """Which of them lack an attribute that is compared: these are counted and shown, and never compared."""
        places = places_of(self.attributes, between)
        several = len(self.attributes if places is None else places) > 1
        if self.missing is None or not several:
            alike = [self.missing is not None and union.name == self.missing for union in unions]
            return np.array(alike, dtype=bool)
        missing = self.missing.replace("\\", "\\\\").replace("&", "\\&")
        return np.array([missing in str(union.name).split(" & ") for union in unions], dtype=bool)


#: Of groups about which nothing else is known.
UNGROUPED = Grouping()


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


class Grouped(Protocol):
    """What has to be known of groups to say who is compared."""

    @property
    def groups(self) -> tuple[Any, ...]: ...
    @property
    def attributes(self) -> tuple[Attribute, ...]: ...
    @property
    def unknown(self) -> str | None: ...
    @property
    def people(self) -> Floats: ...
    @property
    def seen(self) -> Floats: ...


def compared(sums: Grouped, between: Between, min_people: float) -> tuple[list[Union], dict[Any, float]]:
    """Whose means are compared, and how many people are in each union that is not: too small a one, or an unknown.

    Raises
    ------
    ConstraintError
        When fewer than two are left, or there is no such attribute.
    GroupError
        When one of them is a single person.
    """
    grouping = Grouping(sums.attributes, sums.unknown)
    unions = grouping.unions(sums.groups, between)
    large = large_enough(unions, sums.people, min_people) & ~grouping.unknown(unions, between)
    kept = [union for union, enough in zip(unions, large, strict=True) if enough]
    if len(kept) < 2:
        only = f"only {kept[0].name!r} is left" if kept else "nobody is left"
        raise ConstraintError(
            f"Of {', '.join(repr(union.name) for union in unions)}, {only} to compare: those of fewer than "
            f"{min_people:g} {'of all people' if 0 < min_people < 1 else 'people'}, or whose group is missing, are not."
            if min_people or sums.unknown is not None
            else f"Everybody is of {unions[0].name!r}, so there is nobody to compare.",
            "Give a smaller min_people=, name other attributes in between=, or pass more people of the others.",
        )
    group, starts = _members(kept)
    alone = np.flatnonzero(np.add.reduceat(sums.seen[group], starts) == 1)
    if len(alone):
        raise GroupError(
            f"The group {kept[alone[0]].name!r} is one person, whose decision would be the mean of a group.",
            "Pass more people of it, merge it with another group, name them as of no known group "
            "(missing_group='unknown'), or leave small groups out: min_people=2.",
        )
    left_out = {
        union.name: float(sums.people[list(union.members)].sum())
        for union, enough in zip(unions, large, strict=True)
        if not enough
    }
    return kept, left_out


def named_groups(groups: Sequence[Any], attributes: Sequence[Attribute], missing: str | None) -> list[int]:
    """Positions of the groups of which nothing is missing; all where ``missing``, the name for that, is None."""
    grouping = Grouping(tuple(attributes), missing)
    return np.flatnonzero(~grouping.unknown(grouping.unions(groups))).tolist()


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


def words_of(between: Between, min_people: float) -> tuple[str, str]:
    """Who is compared, in words: each of them, and how small they may be."""
    named = [] if between is None else list(between) if isinstance(between, list | tuple) else [between]
    parts = [name if isinstance(name, str) else f"attribute {name}" for name in named]
    least = f"{min_people:.6g} people" if min_people >= 1 else f"{100 * min_people:.6g} % of all people"
    return " and ".join(parts), f" of {least} or more" if min_people else ""


def large_enough(unions: Sequence[Union], people: Floats, min_people: float) -> Truths:
    """Which of them are compared: those of at least so many people, or of such a share of all, below 1.

    ``people`` is the weight of every group, of shape (groups,).
    """
    least = min_people * float(people.sum()) if min_people < 1 else min_people
    group, starts = _members(unions)
    return np.asarray(np.add.reduceat(people[group], starts) >= least * (1 - 1e-12))


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
