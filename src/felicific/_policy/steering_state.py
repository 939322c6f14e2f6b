"""The state of a steering: sums that add, what was seen on the way, and how it got here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from felicific._files import check_shape, read_number, read_numbers, read_whole, refused

#: Aggregates of the past that are remembered; of more, every second one is forgotten.
POINTS = 256

#: Files that were decided on and are remembered, so that nobody gives one twice.
FILES = 4_096


@dataclass
class Sums:
    """People and happiness so far, by group; sums of several streams add.

    Attributes
    ----------
    people : list of int
    happiness : list of float
    changes : list of float
        How much more the second class is worth than the first, summed up.
    sizes : float
        The same without its sign, of all groups together.
    """

    people: list[int]
    happiness: list[float]
    changes: list[float]
    sizes: float = 0.0

    @classmethod
    def none(cls, groups: int) -> Sums:
        """Nobody yet."""
        return cls([0] * groups, [0.0] * groups, [0.0] * groups)

    def copy(self) -> Sums:
        """Another one that holds the same."""
        return Sums(list(self.people), list(self.happiness), list(self.changes), self.sizes)

    def plus(self, others: Iterable[Sums]) -> Sums:
        """All of them together."""
        found = self.copy()
        for other in others:
            for z in range(len(found.people)):
                found.people[z] += other.people[z]
                found.happiness[z] += other.happiness[z]
                found.changes[z] += other.changes[z]
            found.sizes += other.sizes
        return found

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "people": self.people,
            "happiness": self.happiness,
            "changes": self.changes,
            "sizes": self.sizes,
        }

    @classmethod
    def from_json(cls, content: object, groups: int) -> Sums:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(content, dict) or set(content) != {"people", "happiness", "changes", "sizes"}:
            raise refused("its sums lack a part, or have one too many")
        check_shape("people", read_numbers(content["people"], "people"), (groups,))
        happiness, changes = (
            check_shape(name, read_numbers(content[name], name), (groups,)).tolist()
            for name in ("happiness", "changes")
        )
        people = [int(number) for number in read_whole(content["people"], "people")]
        return cls(people, happiness, changes, read_number(content["sizes"], "sizes"))


@dataclass(frozen=True)
class Point:
    """A moment: after so many people, the gap, the bound (None: there is none) and the controls of the groups."""

    people: int
    gap: float | None
    bound: float | None
    controls: tuple[float, ...]


@dataclass
class History:
    """Aggregates of the past, one after every so many people."""

    every: int = 1
    points: list[Point] = field(default_factory=list)

    def copy(self) -> History:
        """Another one that holds the same."""
        return History(self.every, list(self.points))

    def due(self, people: int) -> bool:
        """Whether a moment is remembered."""
        return people % self.every == 0

    def add(self, point: Point) -> None:
        """Remember a moment; of too many, every second one is forgotten."""
        self.points.append(point)
        if len(self.points) > POINTS:
            self.every *= 2
            self.points = [one for one in self.points if one.people % self.every == 0]

    def to_json(self) -> dict[str, Any]:
        """As data."""
        points = [[one.people, one.gap, one.bound, list(one.controls)] for one in self.points]
        return {"every": self.every, "points": points}

    @classmethod
    def from_json(cls, content: object, groups: int) -> History:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(content, dict) or set(content) != {"every", "points"}:
            raise refused("its history lacks a part, or has one too many")
        every = int(read_whole(content["every"], "every", 1))
        if not isinstance(content["points"], list) or len(content["points"]) > POINTS:
            raise refused("its history is no list, or too long")
        points = []
        for people, gap, bound, controls in content["points"]:
            numbers = check_shape("controls", read_numbers(controls, "controls"), (groups,)).tolist()
            gap, bound = (None if one is None else read_number(one, "history") for one in (gap, bound))
            points.append(Point(int(read_whole(people, "people", 1)), gap, bound, tuple(numbers)))
        if [one.people for one in points] != sorted({one.people for one in points}):
            raise refused("its history is out of order")
        return cls(every, points)


#: What is remembered of the way, each a number of 0 or more.
NUMBERS = ("steepest", "farthest", "added", "regret")


@dataclass
class State:
    """All that a steering remembers.

    Attributes
    ----------
    name : str
        Tells this stream from others that it may hear of.
    own : Sums
        Of the people whom it decided on.
    heard : dict of name to Sums
        Of others.
    decided, limited : int
        How many people were decided on, those who are not counted included; and for how many a control would have
        gone further than it may.
    steepest : float
        The largest slope that was reckoned with.
    farthest : float
        The largest distance of somebody's happiness from the overall mean before.
    added : float
        By how much the excess grew while the controls were beyond their range, where people could not be given less, or
        more, than the overall mean.
    regret : float
        The largest difference of expected loss between decisions.
    history : History
    files : list of str
        Digests of the keys of files that were decided on.
    """

    name: str
    own: Sums
    heard: dict[str, Sums] = field(default_factory=dict)
    decided: int = 0
    limited: int = 0
    steepest: float = 0.0
    farthest: float = 0.0
    added: float = 0.0
    regret: float = 0.0
    history: History = field(default_factory=History)
    files: list[str] = field(default_factory=list)

    def copy(self) -> State:
        """Another one that holds the same."""
        heard = {name: sums.copy() for name, sums in self.heard.items()}
        history, files = self.history.copy(), list(self.files)
        return replace(self, own=self.own.copy(), heard=heard, history=history, files=files)

    @property
    def others(self) -> Sums:
        """Of those whom others decided on."""
        return Sums.none(len(self.own.people)).plus(self.heard.values())

    @property
    def sums(self) -> Sums:
        """Of all people that are known of."""
        return self.own.plus([self.others])

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "name": self.name,
            "own": self.own.to_json(),
            "heard": [[name, sums.to_json()] for name, sums in self.heard.items()],
            "decided": self.decided,
            "limited": self.limited,
            **{name: getattr(self, name) for name in NUMBERS},
            "history": self.history.to_json(),
            "files": self.files,
        }

    @classmethod
    def from_json(cls, content: object, groups: int) -> State:
        """Read what :meth:`to_json` wrote."""
        names = {"name", "own", "heard", "decided", "limited", *NUMBERS, "history", "files"}
        if not isinstance(content, dict) or set(content) != names:
            raise refused("its state lacks a part, or has one too many")
        name, files = content["name"], content["files"]
        _check_hexadecimal([name, *(other for other, _ in content["heard"])], 16, "name")
        _check_hexadecimal(files, 64, "file")
        numbers = {one: read_number(content[one], one) for one in NUMBERS}
        if min(numbers.values()) < 0 or len(files) > FILES:
            raise refused("a number is negative that cannot be, or there are too many files")
        return cls(
            name,
            Sums.from_json(content["own"], groups),
            {other: Sums.from_json(sums, groups) for other, sums in content["heard"]},
            decided=int(read_whole(content["decided"], "decided")),
            limited=int(read_whole(content["limited"], "limited")),
            **numbers,
            history=History.from_json(content["history"], groups),
            files=list(files),
        )


def _check_hexadecimal(values: Sequence[Any], digits: int, what: str) -> None:
    if not isinstance(values, list):
        raise refused(f"its list of {what}s is no list")
    for value in values:
        if type(value) is not str or not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
            raise refused(f"a {what} is {str(value)[:80]!r}")


def gap_between(sums: Sums, groups: Iterable[int]) -> float:
    """The largest mean less the smallest, of these groups; not a number where fewer than two have people."""
    means = [sums.happiness[z] / sums.people[z] for z in groups if sums.people[z]]
    return max(means) - min(means) if len(means) > 1 else math.nan
