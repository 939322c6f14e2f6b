"""What a requirement and the program say to each other: sums, scaled means, and rows with two sides."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from felicific._problem.criteria import Choices
from felicific._problem.happiness import Happiness, Measure
from felicific._problem.unions import Attribute, Shares, Whom
from felicific._typing import Array, Codes, Floats


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


class ScaledMeans(Protocol):
    """What a bound requirement sees of the scaled program: group means as linear functions of its columns."""

    @property
    def constants(self) -> Floats:
        """The part of every group's mean that no column changes, scaled, of shape (groups, measures)."""

    @property
    def scales(self) -> Floats:
        """What the means of each measure were divided by."""

    @property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, measures)."""

    @property
    def rounding(self) -> Floats:
        """Differences between means that may be nothing but rounding, by measure, not scaled."""

    def mean(self, j: int, shares: Floats) -> tuple[Codes, Floats]:
        """Columns and scaled coefficients of a weighted mean, over groups, of measure ``j``."""

    def keeping(self, chance: Chance) -> Codes:
        """Columns of the probabilities that a chance speaks of."""


@dataclass(frozen=True)
class Chance:
    """A chance of a decision that people keep, each of them.

    Attributes
    ----------
    words : str
        How it reads.
    decision : int
        Position of the decision.
    at_least : float
        The chance.
    groups : tuple of int, or None
        Positions of the groups that keep it; None for all.
    scores : pair of float, or None
        From which score to which people keep it; None for all.
    """

    words: str
    decision: int
    at_least: float
    groups: tuple[int, ...] | None = None
    scores: tuple[float, float] | None = None


@dataclass(frozen=True)
class ModelRow:
    """One row of the linear program: columns and numbers between two sides.

    ``shares`` is how much of each group's mean it holds (None: it is no requirement's), ``scale`` what it was
    divided by, ``j`` the measure whose means these are, if it is not the one that the requirement speaks of.
    """

    columns: Codes
    numbers: Floats
    lower: float
    upper: float
    shares: Floats | None = None
    scale: float = 1.0
    j: int | None = None


@dataclass(frozen=True)
class Excess:
    """The program's last column, by which requirements give way.

    It adds to both sides of every row; or, ``on_ray``, it multiplies the widths of the rows that move, and the
    others are kept as they are.
    """

    column: int
    on_ray: bool = False


#: By what a requirement that is just met may seem not to be, relative to the means and to what was asked for.
ROUNDING = 1e-9

#: What is made of the means that a requirement speaks of, and compared with the number that was asked for.
STATISTICS: dict[str, Callable[[Floats], float]] = {
    "gap": lambda means: float(means.max() - means.min()),
    "ratio": lambda means: float(means.min() / means.max()) if means.max() > 0 else 1.0,
    "mean": lambda means: float(means.min()),
}


def largest_between(low: Floats, high: Floats) -> float:
    """The largest gap between two groups, of means that are somewhere from low to high: a group's own doubt is none."""
    apart = high[:, None] - low[None, :]
    np.fill_diagonal(apart, 0.0)
    return float(np.maximum(np.nan_to_num(apart, nan=0.0), 0.0).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Goal:
    """What a policy remembers of a requirement: enough to say later what some group means make of it.

    Attributes
    ----------
    words : str
        How it reads.
    j : int
        Position of the measure.
    statistic : {"gap", "ratio", "mean"}
        What is made of the means.
    shares : array of shape (means, groups)
        How much of each group's mean stands in each of them.
    names : tuple
        Whose means they are.
    left_out : dict
        Who is not compared, and how many people they are.
    over : int, or None
        Of a fraction the position of its denominator; shares are then of all people, counted or not.
    lower, upper : float
        Between which numbers it has to be; infinite both where that is not known.
    baseline : bool
        Whether the lower one is what the baseline's decisions reach, so another number of other people.
    """

    words: str
    j: int
    statistic: str
    shares: Floats | Shares = field(repr=False)
    names: tuple[Any, ...]
    left_out: dict[Any, float] = field(default_factory=dict)
    over: int | None = None
    lower: float = -math.inf
    upper: float = math.inf
    baseline: bool = False

    @property
    def number(self) -> float | None:
        """The largest gap or the smallest ratio that was asked for, where people are compared."""
        side = {"gap": self.upper, "ratio": self.lower}.get(self.statistic, math.inf)
        return side if math.isfinite(side) else None

    def opened(self) -> Goal:
        """Without its number, where a place on a frontier says what that is."""
        return replace(self, words=self.words.rpartition(" at ")[0], lower=-math.inf, upper=math.inf)

    def met(self, number: float, size: float) -> bool | None:
        """Whether a number meets it, but for the rounding of means of this size; None where that is not known."""
        sides = [side for side in (self.lower, self.upper) if math.isfinite(side)]
        if not sides or math.isnan(number):
            return None
        slack = ROUNDING * max(size, *map(abs, sides))
        return self.lower - slack <= number <= self.upper + slack

    def weights(self, means: Floats) -> Floats:
        """How much of each group's mean really stands in each: of a fraction, by who is counted; 0 if nobody is."""
        if self.over is None:
            return np.asarray(self.shares)
        counted = np.asarray(self.shares) * np.nan_to_num(means[:, self.over])
        totals = counted.sum(axis=1, keepdims=True)
        return np.asarray(np.where(totals > 0, counted / np.where(totals > 0, totals, 1.0), 0.0))

    def means(self, means: Floats) -> Floats:
        """The means that it speaks of, from those of shape (groups, measures); no number where nobody is counted."""
        if self.over is None:
            if isinstance(self.shares, Shares):
                return self.shares @ means[:, self.j]
            used = self.shares.any(axis=0)  # of others there may be nobody, and no mean
            return np.asarray(self.shares[:, used] @ means[used, self.j])
        weights = self.weights(means)
        return np.where(weights.any(axis=1), weights @ np.nan_to_num(means[:, self.j]), np.nan)

    def reached(self, means: Floats) -> float:
        """What some group means, of shape (groups, measures), make of it."""
        values = self.means(means)
        numbers = values[~np.isnan(values)] if self.over is not None else values
        return STATISTICS[self.statistic](numbers) if len(numbers) else float("nan")


class Row(Protocol):
    """A requirement that is bound to sums: it speaks of one measure, relative to that measure's origin."""

    @property
    def j(self) -> int:
        """Position of the measure."""

    @property
    def chance(self) -> Chance | None:
        """What it speaks of if that is no mean: a chance of people, each by itself."""

    @property
    def at(self) -> int | list[int]:
        """Position of the measure whose means it is asked about; or of several, side by side."""

    @property
    def words(self) -> str:
        """How it reads in messages."""

    @property
    def name(self) -> str:
        """What it is called in ``prices``."""

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """Bounds of the free columns that it needs besides the policy's, a pair for each."""

    @property
    def width(self) -> float | None:
        """What a frontier multiplies; None for a row that stays where it is."""

    @property
    def record(self) -> Goal | None:
        """What a policy is to remember of it; None for what every policy states anyway, a gap of all groups."""

    def moved(self, width: float) -> Row:
        """With another width, 0 being the tightest."""

    def fixed(self) -> Row:
        """As it is everywhere on a frontier that moves something else."""

    def reached(self, means: Floats) -> float:
        """What group means of the measure, relative to its origin, make of what a frontier multiplies."""

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """Its rows in the model; ``level`` is the first of its own free columns."""

    def met(self, means: Floats, slack: float) -> bool:
        """Whether group means of the measure, relative to its origin, meet it but for ``slack`` and rounding.

        Of a fraction, the means of its numerator and of its denominator side by side; of a chance, all those that it
        speaks of.
        """

    def relaxed(self, extra: float) -> Row:
        """With sides that are further apart by ``extra`` each."""

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit by which it is tightened.

        From its rows in the model, their duals, its free columns, and the loss that is 1 in the model's objective.
        """


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


class Requirement(ABC):
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

    @abstractmethod
    def rows(self, sums: GroupSums) -> list[Row]:
        """The requirement as rows over group means, with the words that describe each."""

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


def goals_of(rows: Sequence[Row]) -> tuple[Goal, ...]:
    """What a policy is to remember of requirements."""
    return tuple(row.record for row in rows if row.record is not None)


def open_goals(rows: Sequence[Row]) -> tuple[Goal, ...]:
    """What the policies of a frontier are: not the numbers of those that move."""
    return tuple(
        row.record if row.width is None else row.record.opened() for row in rows if row.record is not None
    )


def chances_of(
    requirements: Sequence[Requirement], decisions: list[Any], groups: Sequence[Any]
) -> tuple[Chance, ...]:
    """All chances that people keep, each of them once."""
    return tuple(dict.fromkeys(chance for one in requirements for chance in one.chances(decisions, groups)))


def of_means(requirements: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """Those that speak of means, and not of every person's chances."""
    return tuple(one for one in requirements if not one.of_persons)


def rows_of(requirements: Sequence[Requirement], sums: GroupSums) -> list[Row]:
    """Every requirement as it reads on these sums."""
    return [row for requirement in requirements for row in requirement.rows(sums)]
