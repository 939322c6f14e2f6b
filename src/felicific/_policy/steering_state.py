r"""The state of a steering, and how it moves: controls that the sums so far set decide on one person after another.

The control of group z, before each person, is

.. math:: u_z = u^{\mathrm{fit}}_z \mp \frac{e_z}{\mathrm{slope} \cdot \mathrm{pace} \cdot \mathrm{share}_z}

with the excess :math:`e_z` of :mod:`felicific._policy.aims`. Of two groups :math:`e_a = -e_b` changes by
:math:`(\eta - L) N_b / (N_a + N_b + 1)` when somebody of a with happiness :math:`\eta` joins, L being the mean of all
before. Once it is beyond

.. math:: K = \mathrm{pace} \cdot \mathrm{slope} \cdot \max_z \mathrm{share}_z \, \mathrm{far}_z

the controls are beyond their range: people of the group above get the least happiness there is for them, those of the
group below the most, and it cannot grow while the least is at most L and the most at least that. So it stays within
K + H, where H is the largest :math:`|\eta - L|`, whoever comes. Where somebody could not be given so little, or so
much, what that added is added to the bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from felicific._files import check_shape, read_number, read_numbers, read_whole, refused
from felicific._policy.aims import Aim
from felicific._policy.controls import Controls, Seen


@dataclass(frozen=True, eq=False)
class Rule:
    """How controls follow sums.

    Attributes
    ----------
    controls : Controls
    aim : Aim
    pace : float
        People until an error that stays shrinks to a third (1/e).
    reach : float
        How far controls may go.
    """

    controls: Controls
    aim: Aim
    pace: float
    reach: float

    @cached_property
    def weights(self) -> list[float]:
        """The share of the people who pay an excess back, by group."""
        return self.aim.weights(self.controls.shares)

    @cached_property
    def limits(self) -> list[tuple[float, float]]:
        """Between which numbers the controls stay."""
        return self.controls.limits(self.reach)

    @cached_property
    def known(self) -> list[int]:
        """Positions of the groups that are steered and compared."""
        return [z for z, share in enumerate(self.controls.shares) if share > 0]

    @property
    def bounded(self) -> bool:
        """Whether there is a bound that holds whoever comes: of the gap of two groups."""
        return self.aim.gap is not None and len(self.known) == 2

    def slope(self, sums: Sums, change: float = 0.0, more: int = 0) -> float:
        """Happiness per unit of control: that of the policy, or the mean of the people, who has just come included."""
        if self.controls.slope is not None:
            return self.controls.slope
        people = sum(sums.people) + more
        return (sums.sizes + abs(change)) / people if people else 0.0

    def control(self, z: int, excess: float, slope: float, change: float) -> float:
        """The control of a group of this excess; ``change`` is how much more the second class is worth to the group."""
        scale = slope * self.pace * self.weights[z]
        step = excess / scale if scale > 0 else 0.0
        return self.controls.fitted[z] + (step if change < 0 else -step)

    def now(self, z: int, sums: Sums) -> float:
        """The control of a group as it stands, within its limits."""
        excess = self.aim.excess(z, sums.people, sums.happiness) if z in self.known else 0.0
        low, high = self.limits[z]
        return min(max(self.control(z, excess, self.slope(sums), sums.changes[z]), low), high)

    def range(self, steepest: float, regret: float) -> float:
        """The excess from which on controls are beyond their range."""
        far = max(self.weights[z] * self.controls.farthest(z, regret) for z in self.known)
        return self.pace * steepest * far

    def bound(self, state: State) -> float | None:
        """The largest gap that there could be now; None where nothing is proven."""
        gap, people = self.aim.gap, [state.own.people[z] for z in self.known]
        if gap is None or len(people) != 2 or state.limited or state.heard or not min(people):
            return None
        size = self.range(state.steepest, state.regret) + state.farthest + state.added
        found = gap + size * (1.0 / people[0] + 1.0 / people[1])
        return found if math.isfinite(found) else None  # no decision moves one of the groups

    def point(self, state: State, sums: Sums) -> Point:
        """The moment, for the history."""
        gap = gap_between(sums, self.known)
        controls = tuple(self.now(z, sums) for z in range(len(self.weights)))
        return Point(state.decided, None if math.isnan(gap) else gap, self.bound(state), controls)


class Moving:
    """A state that moves while people are decided on; it is the caller's to keep."""

    def __init__(self, rule: Rule, state: State) -> None:
        self.rule, self.state = rule, state
        self._others, self._sums = state.others, state.sums
        self._range = rule.range(state.steepest, state.regret) if rule.bounded else math.inf

    def decide(self, seen: Seen, group: Sequence[int], drawn: Sequence[int]) -> tuple[list[int], list[float]]:
        """Decisions about people, one after another, and the controls by which each was taken.

        Those whose group is not known are decided on by what is ``drawn``, and by no control.
        """
        decisions, controls, known = [], [], set(self.rule.known)
        history = self.state.history
        for i, z in enumerate(group):
            if z in known:
                decision, control = self._steer(seen, i, z)
            else:
                decision, control = drawn[i], math.nan
                if self.rule.aim.of_everybody and seen.counted[i]:
                    change = 0.0 if seen.changes is None else seen.changes[i]
                    self._count(z, seen.values[decision][i], change)
            decisions.append(decision)
            controls.append(control)
            self.state.decided += 1
            if history.due(self.state.decided):
                history.add(self.rule.point(self.state, self._sums))
        return decisions, controls

    def _steer(self, seen: Seen, i: int, z: int) -> tuple[int, float]:
        """Decide on one person, and count what that brings."""
        rule, state, sums = self.rule, self.state, self._sums
        counted = seen.counted[i]
        change = seen.changes[i] if seen.changes is not None and counted else 0.0
        excess = rule.aim.excess(z, sums.people, sums.happiness)
        slope = rule.slope(sums, change, int(counted))
        control = rule.control(z, excess, slope, sums.changes[z] + change)
        low, high = rule.limits[z]
        if not low <= control <= high:
            control = min(max(control, low), high)
            state.limited += 1
        decision = seen.decide(i, control)
        if not counted:
            return decision, control
        happiness = seen.values[decision][i]
        if rule.bounded:
            self._look_out(slope, 0.0 if seen.regrets is None else seen.regrets[i], happiness)
        self._count(z, happiness, change)
        if abs(excess) > self._range:
            after = abs(rule.aim.excess(z, sums.people, sums.happiness))
            state.added += max(0.0, after - abs(excess))
        return decision, control

    def _look_out(self, slope: float, regret: float, happiness: float) -> None:
        """Take note of what the bound is made of."""
        state, people = self.state, sum(self._sums.people)
        if slope > state.steepest or regret > state.regret:
            state.steepest, state.regret = max(state.steepest, slope), max(state.regret, regret)
            self._range = self.rule.range(state.steepest, state.regret)
        if people:
            state.farthest = max(state.farthest, abs(happiness - sum(self._sums.happiness) / people))

    def _count(self, z: int, happiness: float, change: float) -> None:
        """Add somebody. Sums of others are added to what is counted here, whatever was decided together."""
        own, others, sums = self.state.own, self._others, self._sums
        own.people[z] += 1
        own.happiness[z] += happiness
        own.changes[z] += change
        own.sizes += abs(change)
        sums.people[z] = own.people[z] + others.people[z]
        sums.happiness[z] = own.happiness[z] + others.happiness[z]
        sums.changes[z] = own.changes[z] + others.changes[z]
        sums.sizes = own.sizes + others.sizes


# ---------------------------------------------------------------------------------------------------------
# The state of a steering: sums that add, what was seen on the way, and how it got here.


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
