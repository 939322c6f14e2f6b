"""Controls: the one number of every group that a steering moves, and what it makes of the group's people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from felicific._typing import Array, Codes, Table

if TYPE_CHECKING:
    from felicific._policy.policy import Policy


@dataclass(frozen=True)
class Control:
    """What decides on a group at a moment.

    Attributes
    ----------
    now, fitted : float
        The control, and where it began. Of cells it is the share of the fitted people of the group who would be decided
        the second class; of an individual policy the weight of happiness beside the loss.
    low, high : float
        How far it may go.
    threshold : float, or None
        Of a score, the one above which the second class is decided; None where there is no score.
    words : str
        The same in words.
    """

    now: float
    fitted: float
    low: float
    high: float
    threshold: float | None
    words: str


class Seen(ABC):
    """What is known of some people before they are decided on, each in the order of the rows.

    Attributes
    ----------
    values : sequence of lists
        What every decision is worth to each.
    counted : list of bool
        Whether they are counted.
    changes : list of float, or None
        How much more the second class is worth than the first; None where the control is a weight of happiness, which
        always brings more.
    regrets : list of float, or None
        How much more loss the worst decision is than the best, where that is weighed.
    """

    values: Sequence[list[float]]
    counted: list[bool]
    changes: list[float] | None = None
    regrets: list[float] | None = None

    @abstractmethod
    def decide(self, i: int, control: float) -> int:
        """The decision about one of them."""


class Controls(ABC):
    """How the controls of a policy act.

    Attributes
    ----------
    j : int
        Position of the measure that is steered.
    fitted : list of float
        Where the controls begin, by group.
    shares : list of float
        Shares of the groups among people whose group is known; 0 of the others, who are not steered.
    slope : float, or None
        Happiness per unit of control; None where the people tell it while they come.
    needs_keys : bool
        Whether the lottery draws.
    """

    j: int
    fitted: list[float]
    shares: list[float]
    slope: float | None = None
    needs_keys: bool = False

    @abstractmethod
    def limits(self, reach: float) -> list[tuple[float, float]]:
        """Between which numbers each control stays; infinite where it has gone all the way before."""

    @abstractmethod
    def farthest(self, z: int, regret: float) -> float:
        """How far a control has to go for everybody to get the least happiness, or the most; see the bound."""

    @abstractmethod
    def look(self, scores: Array, group: Codes, keys: Sequence[str] | None, x: Table) -> Seen:
        """Look at some people, of whom this is known to be right."""

    @abstractmethod
    def described(self, z: int, now: float, reach: float) -> Control:
        """What a control means."""

    @abstractmethod
    def policy(self, now: Sequence[float], known: tuple[str, ...]) -> Policy:
        """The policy of these controls, of which nothing is known but what is said."""
