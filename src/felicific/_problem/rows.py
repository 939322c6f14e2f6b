"""What a requirement and the program say to each other: sums, scaled means, and rows with two sides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from felicific._problem.happiness import Component
from felicific._typing import Codes, Floats


class Sums(Protocol):
    """What a requirement sees of the people: sums over them, as moments have them."""

    @property
    def components(self) -> tuple[Component, ...]:
        """What is measured."""

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups."""

    @property
    def origin(self) -> Floats:
        """A typical value of every component; sums are relative to it."""

    @property
    def one_person(self) -> Floats:
        """The weight of one person of every group."""

    @property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, components)."""

    @property
    def today_value(self) -> Floats:
        """Happiness of today's decisions, of shape (groups, signals, components)."""


class ScaledMeans(Protocol):
    """What a bound requirement sees of the scaled program: group means as linear functions of its columns."""

    @property
    def constants(self) -> Floats:
        """The part of every group's mean that no column changes, scaled, of shape (groups, components)."""

    @property
    def scales(self) -> Floats:
        """What the means of each component were divided by."""

    @property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, components)."""

    @property
    def rounding(self) -> Floats:
        """Differences between means that may be nothing but rounding, by component, not scaled."""

    def mean(self, j: int, shares: Floats) -> tuple[Codes, Floats]:
        """Columns and scaled coefficients of a weighted mean, over groups, of component ``j``."""


@dataclass(frozen=True)
class ModelRow:
    """One row of the linear program: columns and numbers between two sides.

    ``shares`` is how much of each group's mean it holds (None: it is no requirement's), ``scale`` what it was
    divided by, ``j`` the component whose means these are, if it is not the one that the requirement speaks of.
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


class Row(Protocol):
    """A requirement that is bound to sums: it speaks of one component, relative to that component's origin."""

    @property
    def j(self) -> int:
        """Position of the component."""

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

    def moved(self, width: float) -> Row:
        """With another width, 0 being the tightest."""

    def written(self, means: ScaledMeans, level: int, excess: Excess | None) -> list[ModelRow]:
        """Its rows in the model; ``level`` is the first of its own free columns."""

    def met(self, means: Floats, counted: Floats, slack: float) -> bool:
        """Whether group means of the component, relative to its origin, meet it but for ``slack`` and rounding.

        Of a fraction, the means of its numerator and of its denominator side by side.
        """

    def relaxed(self, extra: float) -> Row:
        """With sides that are further apart by ``extra`` each."""

    def price(
        self, written: Sequence[ModelRow], duals: Sequence[float], levels: Floats, unit: float
    ) -> float:
        """Loss per unit by which it is tightened.

        From its rows in the model, their duals, its free columns, and the loss that is 1 in the model's objective.
        """


class Requirement(ABC):
    """Something that a policy has to meet, in the user's words.

    Attributes
    ----------
    happiness : str, function or Happiness
        What it speaks of.
    moves : bool
        Whether a frontier closes it step by step; else it holds everywhere on the frontier.
    """

    happiness: Any
    moves: ClassVar[bool] = False

    @abstractmethod
    def rows(self, sums: Sums) -> list[Row]:
        """The requirement as rows over group means, with the words that describe each."""

    def opened(self) -> Requirement:
        """What is left of it where a place on a frontier says how far it goes: all of one that does not move."""
        return self


def rows_of(requirements: Sequence[Requirement], sums: Sums) -> list[Row]:
    """Every requirement as it reads on these sums."""
    return [row for requirement in requirements for row in requirement.rows(sums)]
