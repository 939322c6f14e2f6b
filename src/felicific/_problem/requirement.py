"""Requirement: what every kind of requirement can be asked, whatever it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from felicific._problem.criteria import Choices
from felicific._problem.happiness import Happiness, Measure
from felicific._problem.linear import STATISTICS, Rows
from felicific._problem.unions import Attribute, Whom
from felicific._typing import Array, Floats

if TYPE_CHECKING:
    from felicific._problem.exploration import Chance


class GroupSums(Protocol):
    """What a requirement sees of the people: sums over them, as aggregates have them."""

    @property
    def decisions(self) -> Array:
        """The decisions."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured."""

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups."""

    @property
    def origin(self) -> Floats:
        """A typical value of every measure; sums are relative to it."""

    @property
    def one_person(self) -> Floats:
        """The weight of one person of every group."""

    @property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, measures)."""

    @property
    def baseline_value(self) -> Floats | None:
        """Happiness of the baseline, of shape (groups, signals, measures); None where nobody knows them."""

    @property
    def listed(self) -> bool:
        """Whether decisions are listed, and not just the classes."""

    @property
    def people(self) -> Floats:
        """Weight of every group."""

    @property
    def seen(self) -> Floats:
        """How many people of every group were seen, whatever they weigh."""

    @property
    def least(self) -> Floats:
        """The least mean that decisions can give every group, of shape (groups, measures), as sums are."""

    @property
    def most(self) -> Floats:
        """The largest."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What the groups are made of."""

    @property
    def numbers(self) -> Floats:
        """How many people each measure counts, whatever they weigh, of shape (groups, measures)."""


@dataclass(frozen=True)
class Share:
    """A share of people that measure ``j`` counts: at most so many of group ``z`` (None: of all people together)."""

    j: int
    z: int | None
    at_most: float
    words: str


@dataclass(frozen=True)
class ComparedMeans:
    """Means of measure ``j`` that are compared: none below ``ratio`` times another, less ``at_most``.

    ``plain`` for a measure's own gap, whose words every policy and certificate has itself.
    """

    j: int
    at_most: float
    ratio: float
    whom: Whom
    words: str
    plain: bool = False

    @property
    def sides(self) -> dict[str, float]:
        """Between which numbers that has to be."""
        return {"upper": self.at_most} if self.ratio == 1.0 else {"lower": self.ratio}

    @property
    def reached(self) -> Callable[[Floats], float]:
        """What is made of the means."""
        return STATISTICS["gap" if self.ratio == 1.0 else "ratio"]


class Requirement:
    """Something that a policy has to meet, in the user's words.

    Attributes
    ----------
    happiness : str, function or Happiness
        What it speaks of.
    course : {"ray", "points"}, or None
        How it moves along a frontier: by multiplying its width, which is exact where no fraction is compared, or by
        solving for some values of its number; None for one that cannot.
    limit : {"at least", "at most"}
        What that number is.
    of_persons : bool
        Whether it speaks of the chances of every person, and of no mean.
    stays : str
        Why one that cannot move along a frontier does not.
    """

    happiness: Any
    course: ClassVar[Literal["ray", "points"] | None] = "points"
    of_persons: ClassVar[bool] = False
    stays: ClassVar[str] = "it is to be tightened in two directions"

    @property
    def is_plain_gap(self) -> bool:
        """Whether it is a gap of all groups, which ``gap=`` can say too."""
        return False

    @property
    def has_number(self) -> bool:
        """Whether it has one number, which a frontier can move."""
        return self.course is not None

    def at(self, value: float) -> Requirement:
        """With another number."""
        raise NotImplementedError(f"{type(self).__name__} does not move")

    @property
    def limit(self) -> Literal["at least", "at most"]:
        """What the number is that moves."""
        return "at least"

    def ends(self, sums: GroupSums, reached: float) -> tuple[float, float]:
        """The tightest number that could be met, and the one that is ``reached`` where nothing is asked."""
        raise NotImplementedError(f"{type(self).__name__} does not move")

    def rows(self, sums: GroupSums) -> list[Rows]:
        """The requirement as rows over group means, with the words that describe each; none of what is of persons."""
        return []

    def speaks_of(self, own: tuple[Happiness, ...], choices: Choices) -> Any:
        """What has to be measured for it, beside ``own``: a name, a function or a Happiness."""
        return self.happiness

    def named(self, choices: Choices) -> Requirement:
        """With the decision that it speaks of by its name, where it leaves that to the problem."""
        return self

    def chances(self, decisions: list[Any], groups: Sequence[Any]) -> list[Chance]:
        """The chances that people keep by it."""
        return []

    def shares(self, measures: Sequence[Measure], groups: Sequence[Any]) -> list[Share]:
        """What can be shown of it on people held out, beside gaps."""
        return []

    def comparisons(self, measures: tuple[Measure, ...]) -> list[ComparedMeans]:
        """Whose means it compares, where people held out are to show it."""
        return []

    def tightened(self, by: float) -> Requirement:
        """What compares means, by so much in its own unit."""
        return self

    @property
    def provable(self) -> bool:
        """Whether people held out can ever show that it holds, if they have to."""
        return True

    def cautious(self, margin: Callable[[float, Sequence[Any] | None], float], fitted: float) -> Requirement:
        """For the share of people ``fitted``, and tighter by what those held out may differ.

        ``margin`` is that of a share of some groups (None: of all).
        """
        return self

    def opened(self) -> Requirement:
        """What is left of it where a place on a frontier says how far it goes: all of one that does not move."""
        return self


def chances_of(
    requirements: Sequence[Requirement], decisions: list[Any], groups: Sequence[Any]
) -> tuple[Chance, ...]:
    """All chances that people keep, each of them once."""
    return tuple(dict.fromkeys(chance for one in requirements for chance in one.chances(decisions, groups)))


def of_means(requirements: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """Those that speak of means, and not of every person's chances."""
    return tuple(one for one in requirements if not one.of_persons)


def rows_of(requirements: Sequence[Requirement], sums: GroupSums) -> list[Rows]:
    """Every requirement as it reads on these sums."""
    return [row for requirement in requirements for row in requirement.rows(sums)]
