"""Steering: a policy that closes its gap while it decides."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module  # for what stands above: charts
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from felicific._files import (
    STEERING,
    plain,
    read_document,
    read_number,
    read_sha256,
    refused,
    write_document,
    write_whole,
)
from felicific._policy.aims import Aim, find_aim, parts_of, read_aim, remembered
from felicific._policy.controls import Control
from felicific._policy.lottery import check_keys, draw, faces_lottery, keys_as_text
from felicific._policy.steering_state import FILES, Moving, Point, Rule, State, Sums, gap_between
from felicific._problem.happiness import HappinessLike, Measure
from felicific._shown.parts import Displayed, Part
from felicific._tables.engine import find_engine
from felicific._typing import Array, Codes, Floats, GapLike, Table
from felicific.exceptions import ConstraintError, DataError, PolicyFileError, SteeringWarning

if TYPE_CHECKING:
    from felicific._policy.policy import Policy


class Decided(NamedTuple):
    """Decisions, and the control by which each was taken; not a number where somebody's group is not known."""

    decisions: Array
    controls: Floats


class Steering(Displayed):
    """A policy that closes its gap while it decides: what some people got too much or too little, the next pay back.

    Made by :meth:`felicific.Policy.steer`. It holds the sums of people and happiness so far, by group, and sets from
    them, before every person, the one number of every group that decides: of a score the threshold, of an individual
    policy the weight of happiness. It moves: every call of :meth:`decide` counts. Save it after deciding, and continue
    with what was saved.

    Notes
    -----
    People are decided on one after another, so batches may be cut anywhere. Of two groups the gap cannot exceed
    :attr:`bound`, whoever comes and in whatever order, as long as no control was held back by ``reach``; see
    ``docs/statistics.md``. What is steered is the mean of all people since it began: a group that mostly came in good
    years is held back in bad ones. Begin a new one for every period that is reported: ``steering.policy().steer(...)``
    begins with the controls of now.

    Whoever knows the controls of the moment can choose when to come: keep them to yourself.

    Examples
    --------
    >>> import numpy as np
    >>> from felicific import aggregate, solve
    >>> rng = np.random.default_rng(0)
    >>> sex, score = rng.choice(["f", "m"], 4_000), rng.random(4_000).round(2)
    >>> repaid = (rng.random(4_000) < score).astype(int)
    >>> seen = {"sex": sex[:1_000], "score": score[:1_000], "repaid": repaid[:1_000]}
    >>> sums = aggregate(seen, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap=0.0, random_state=0)
    >>> sex, score = sex[1_000:], score[1_000:]
    >>> score = score * np.where(sex == "f", 0.8, 1.0)  # the scores of one group fall
    >>> fixed = policy.decide(score, sex, np.arange(3_000))
    >>> round(float(fixed[sex == "m"].mean() - fixed[sex == "f"].mean()), 2)
    0.11
    >>> steering = policy.steer(happiness="decision", pace=200)
    >>> decisions = steering.decide(score, sex, np.arange(3_000))
    >>> round(steering.gap, 2), steering.people
    (0.01, {'f': 1508, 'm': 1492})
    """

    _whole: ClassVar[str] = "controls, means, people and history have all of it."

    def __init__(self, policy: Policy, rule: Rule, state: State) -> None:
        self._policy, self._rule, self._state = policy, rule, state

    # -----------------------------------------------------------------------------------------------------
    # Deciding

    def decide(
        self, scores: ArrayLike, group: ArrayLike, key: ArrayLike | None = None, x: Table = None
    ) -> Array:
        """Decide on people, one after another, and count them: the next call goes on where this one ended.

        Whatever raises leaves everything as it was.

        Parameters
        ----------
        scores, group, x : as in :meth:`felicific.Policy.probabilities`
            ``x`` wherever the happiness looks at it.
        key : array of shape (n,)
            Strings or integers that identify the people, in the order in which they came. Not needed where no draws are
            drawn.
        """
        return self.decided(scores, group, key, x).decisions

    def decided(
        self, scores: ArrayLike, group: ArrayLike, key: ArrayLike | None = None, x: Table = None
    ) -> Decided:
        """The same, with the control by which everybody was decided on."""
        if find_engine(scores) is not None or find_engine(x) is not None:
            raise DataError(
                "A steering decides one person after another, in memory.",
                "Collect the table first, or name the file on the command line.",
            )
        array, codes, _ = self._policy.arrays(scores, group, None)
        assert codes is not None, "a policy that does not see the group is not steered"
        keys = self._keys(key, len(array))
        texts = None if keys is None else keys_as_text(keys)
        drawn = self._drawn(array, codes, keys, x)
        seen = self._rule.controls.look(array, codes, texts if self._rule.controls.needs_keys else None, x)
        state = self._state.copy()
        decisions, controls = Moving(self._rule, state).decide(seen, codes.tolist(), drawn)
        found = Decided(np.asarray(self._policy.decisions[decisions]), np.array(controls))
        self._warn(state)
        self._state = state
        return found

    def _keys(self, key: ArrayLike | None, people: int) -> Array | None:
        if key is None:
            if self._rule.controls.needs_keys:
                raise DataError("There are no keys.", "Pass key=, one string or integer per person.")
            return None
        keys = check_keys(key)
        if len(keys) != people:
            raise DataError(f"There are {len(keys)} keys for {people} people.", "Pass one key per person.")
        return keys

    def _drawn(self, scores: Array, group: Codes, keys: Array | None, x: Table) -> Sequence[int]:
        """What the policy itself decides on people whose group is not known; nothing that matters about others."""
        strangers = np.flatnonzero(~np.isin(group, self._rule.known))
        if not len(strangers):
            return [0] * len(group)
        policy = self._policy
        probabilities = policy.rounded(policy._mixed(scores, group, x, None))[strangers]
        if keys is None and faces_lottery(probabilities).any():
            raise DataError(
                "The policy decides by lottery about people whose group is missing, and there are no keys.",
                "Pass key=, one string or integer per person.",
            )
        found = np.zeros(len(group), dtype=np.intp)
        found[strangers] = draw(
            probabilities, lambda some: keys_as_text(np.asarray(keys)[strangers[some]]), policy.salt
        )
        return list(found.tolist())

    def _warn(self, state: State) -> None:
        if state.limited and not self._state.limited:
            warnings.warn(
                f"A control would have gone further than reach={self._rule.reach:g} allows: what is owed is paid back "
                "later, and no bound holds any more. People are not like those it was fitted on: fit the policy again, "
                "and begin a new steering.",
                SteeringWarning,
                stacklevel=4,
            )

    def hear(self, others: Iterable[Steering]) -> None:
        """Learn what other servers that decide by the same policy have counted so far.

        What was known of each before is replaced by its own sums, so hearing twice changes nothing. Streams that never
        hear of each other keep the bound each by itself, and nothing is proven of all their people together: where one
        server has mostly women in good times and another mostly men in bad ones, neither sees a gap.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {"sex": ["f", "m"] * 50, "score": [0.2, 0.7, 0.6, 0.4] * 25, "repaid": [0, 1, 1, 0] * 25}
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> here, there = (policy.steer(happiness="decision") for _ in range(2))
        >>> _ = there.decide([0.6, 0.6], ["f", "m"], ["a", "b"])
        >>> here.hear([there])
        >>> here.hear([there])
        >>> here.people
        {'f': 1, 'm': 1}
        """
        heard, names = dict(self._state.heard), set[str]()
        for other in others:
            if not isinstance(other, Steering):
                raise DataError(
                    f"{type(other).__name__} is no steering.",
                    "Load what another server saved: felicific.load(..., policy=...).",
                )
            name = other._state.name
            if name == self._state.name:
                raise DataError(
                    "A steering cannot hear of itself, or of a copy of itself: people would count twice.",
                    "Begin every server with policy.steer(...) of its own.",
                )
            if other._identity != self._identity:
                raise DataError(
                    "The other steering is of another policy, or holds something else.",
                    "Begin all servers with the same policy and the same arguments of steer.",
                )
            if name in names and heard[name] != other._state.own:
                raise DataError(
                    "Two of the others are copies of one that went on apart: people of one would not count.",
                    "Begin every server with policy.steer(...) of its own.",
                )
            names.add(name)
            heard[name] = other._state.own.copy()
        state = self._state.copy()
        state.heard = heard
        self._state = state

    # -----------------------------------------------------------------------------------------------------
    # What it knows

    @property
    def measure(self) -> Measure:
        """What is steered."""
        return self._policy.measures[self._rule.controls.j]

    @property
    def pace(self) -> float:
        """People until an error that stays shrinks to a third (1/e)."""
        return self._rule.pace

    @property
    def reach(self) -> float:
        """How far controls may go."""
        return self._rule.reach

    @property
    def aim(self) -> str:
        """What it holds the means to, in words."""
        return self._rule.aim.words(self.measure)

    @property
    def allowed_gap(self) -> float | None:
        """The gap that is allowed; None where it holds a floor or a budget."""
        return self._rule.aim.gap

    @property
    def controls(self) -> dict[Any, Control]:
        """Where the controls are now, by group.

        Of cells, the size of the next person's own happiness counts in the slope before that person is decided on:
        where sizes differ, it moves the control a little more, as :meth:`decided` tells.
        """
        sums = self._sums
        return {
            self._policy.groups[z]: self._rule.controls.described(
                z, self._rule.now(z, sums), self._rule.reach
            )
            for z in self._rule.known
        }

    @property
    def people(self) -> dict[Any, int]:
        """How many people were counted, by group; those that were heard of included."""
        return dict(zip(self._policy.groups, self._sums.people, strict=True))

    @property
    def means(self) -> dict[Any, float]:
        """Mean happiness so far, by group; not a number where nobody came."""
        sums = self._sums
        pairs = zip(self._policy.groups, sums.happiness, sums.people, strict=True)
        return {group: total / people if people else math.nan for group, total, people in pairs}

    @property
    def gap(self) -> float:
        """The gap between the groups so far, in its unit; not a number where fewer than two came."""
        return gap_between(self._sums, self._rule.known)

    @property
    def bound(self) -> float | None:
        """What the gap cannot exceed, whoever came; None where nothing is proven.

        That is of more than two groups, of floors and budgets, once a control was held back, where others are heard of,
        and where no decision moves the happiness of one of the groups.
        """
        return self._rule.bound(self._state)

    @property
    def heard(self) -> int:
        """How many of the people who were counted others decided on."""
        return sum(self._state.others.people)

    @property
    def added(self) -> float:
        """The part of :attr:`bound` for people who could not be given as little, or as much, as the overall mean.

        It is counted as they come: how much it will be, nobody can promise. Of rates it is 0.
        """
        people = [self._state.own.people[z] for z in self._rule.known]
        return self._state.added * sum(1.0 / held for held in people) if all(people) else 0.0

    @property
    def limited(self) -> int:
        """For how many people a control would have gone further than ``reach`` allows."""
        return self._state.limited

    @property
    def history(self) -> tuple[Point, ...]:
        """Aggregates of the past, at most 256: people decided on, the gap, the bound and the controls then."""
        return tuple(self._state.history.points)

    @property
    def _sums(self) -> Sums:
        return self._state.sums

    @cached_property
    def _identity(self) -> tuple[str, str, Aim]:
        return self._policy.sha256, self.measure.name, self._rule.aim

    def policy(self) -> Policy:
        """The controls of now as a policy of its own, which no longer moves; its salt, so its draws, stay the same.

        Nobody measured what it does: it states no loss, no means and no gap, and says so.

        Examples
        --------
        >>> from felicific import aggregate, solve
        >>> people = {"sex": ["f", "m"] * 50, "score": [0.2, 0.7, 0.6, 0.4] * 25, "repaid": [0, 1, 1, 0] * 25}
        >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
        >>> policy = solve(sums, gap=0.0, random_state=0)
        >>> steering = policy.steer(happiness="decision")
        >>> _ = steering.decide([0.6, 0.6], ["f", "m"], ["a", "b"])
        >>> now = steering.policy()
        >>> now.gap, now.sentences()[-2][:57]
        (nan, 'These are the controls of a steered policy after 2 people')
        """
        sums = self._sums
        now = [self._rule.now(z, sums) for z in range(len(self._policy.groups))]
        return self._rule.controls.policy(now, remembered(self))

    def plot(self, **options: Any) -> Any:
        """The controls and the gap so far as an Altair chart; see :func:`felicific.plots.steering`."""
        return import_module("felicific.plots").steering(self, **options)

    def _parts(self) -> list[Part]:
        return parts_of(self)

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups that are steered."""
        return tuple(self._policy.groups[z] for z in self._rule.known)

    @property
    def steered(self) -> Policy:
        """The policy that it began with."""
        return self._policy

    @property
    def total(self) -> int:
        """How many people it decided on itself, those who are not counted included."""
        return self._state.decided

    def thresholds(self, controls: Sequence[float]) -> list[float | None]:
        """What some controls of the past mean as thresholds of the score, by group that is steered."""
        described = self._rule.controls.described
        return [described(z, controls[z], self._rule.reach).threshold for z in self._rule.known]

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> str:
        """Write it as text that :meth:`load` reads from a file; it holds no person's data."""
        return write_document(
            {
                "policy": self._policy.sha256,
                "salt": salt_check(self._policy),
                "measure": self.measure.name,
                "groups": plain(list(self._policy.groups), "group"),
                "aim": self._rule.aim.to_json(),
                "pace": self._rule.pace,
                "reach": self._rule.reach,
                "state": self._state.to_json(),
            },
            STEERING,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, whole or not at all; the policy is in a file of its own, named here by its SHA-256."""
        write_whole(path, self.to_json())

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *, policy: Policy, happiness: HappinessLike | None = None
    ) -> Steering:
        """Go on with what was saved.

        Parameters
        ----------
        path : str or Path
        policy : Policy
            The one that was steered; any other is refused.
        happiness : as in :meth:`felicific.Policy.steer`
            A file cannot hold functions.
        """
        content, names = read_steering(path), [measure.name for measure in policy.measures]
        if content.policy != policy.sha256:
            other = "whose draws are others" if content.salt != salt_check(policy) else "than this one"
            raise PolicyFileError(
                f"{os.fspath(path)!r} is the steering of another policy ({content.policy[:12]}...) {other} "
                f"({policy.sha256[:12]}...).",
                "Load it with the policy that was steered, or begin a new one in another file.",
            )
        if content.measure not in names or len(content.groups) != len(policy.groups):
            raise refused_file(os.fspath(path), "its measure or its groups are not those of its policy")
        controls = policy.controls(names.index(content.measure), happiness)
        rule = Rule(controls, content.aim, content.pace, content.reach)
        return cls(policy, rule, content.state)

    def refuse_again(self, digest: str) -> None:
        """Refuse people whose keys, of this digest, were decided on."""
        if digest in self._state.files:
            raise DataError(
                "These very people were decided on already, and are counted.",
                "Give the next ones; for another period, begin another steering. What was decided then is in its file.",
            )

    def remember(self, digest: str) -> None:
        """Remember the digest of the keys of people who were decided on, the last of them."""
        self._state.files = [*self._state.files, digest][-FILES:]


def salt_check(policy: Policy) -> str:
    """Tells whether two policies draw the same draws, and not which."""
    return hashlib.sha256(f"felicific steering:{policy.salt}".encode()).hexdigest()[:16]


PARTS = {"policy", "salt", "measure", "groups", "aim", "pace", "reach", "state"}


class SteeringFile(NamedTuple):
    """What stands in the file of a steering.

    ``policy`` is the SHA-256 of the policy that is steered, ``salt`` a check of its salt; ``groups`` are its groups.
    """

    policy: str
    salt: str
    measure: str
    groups: tuple[Any, ...]
    aim: Aim
    pace: float
    reach: float
    state: State


def read_steering(path: str | os.PathLike[str]) -> SteeringFile:
    """Read the file of a steering, of whatever policy."""
    where = os.fspath(path)
    try:
        content = read_document(Path(path).read_text("utf-8"), STEERING)
        if set(content) != PARTS:
            raise refused("it lacks a part, or has one too many")
        return _read(content)
    except UnicodeDecodeError as error:
        raise refused_file(where, "it is not text") from error
    except PolicyFileError as error:
        raise refused_file(
            where, error.problem.removeprefix("This is no policy file: ").rstrip(".")
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise refused_file(where, f"a part is missing or of another type ({error!r})") from error


def refused_file(where: str, reason: str) -> PolicyFileError:
    """The error of a file that is none."""
    return PolicyFileError(
        f"{where!r} is no file of a steering: {reason}.", "Get it again from where it was saved."
    )


def _read(content: dict[str, Any]) -> SteeringFile:
    sha256, named = read_sha256(content["policy"], "policy"), content["groups"]
    if sha256 is None or type(content["salt"]) is not str or type(content["measure"]) is not str:
        raise refused("it does not say which policy is steered")
    if not isinstance(named, list) or len(named) < 2:
        raise refused("it is not of two groups or more")
    pace, reach = read_number(content["pace"], "pace"), read_number(content["reach"], "reach")
    if not pace > 0 or not 0 < reach <= 1:
        raise refused("its pace or its reach is none")
    aim, state = read_aim(content["aim"], len(named)), State.from_json(content["state"], len(named))
    return SteeringFile(sha256, content["salt"], content["measure"], tuple(named), aim, pace, reach, state)


# ---------------------------------------------------------------------------------------------------------
# The beginning of a steering: what is asked of it, checked.


#: People of the smallest group until an error that stays shrinks to a third, unless said; and fewer than are wise.
PACE, HASTE = 300, 50


def begin(
    policy: Policy, happiness: HappinessLike | None, gap: GapLike, pace: float | None, reach: float
) -> Steering:
    """Begin to steer a policy; see :meth:`felicific.Policy.steer`."""
    j, aim = find_aim(policy, gap)
    controls = policy.controls(j, happiness)
    smallest = min(share for share in controls.shares if share > 0)
    rule = Rule(controls, aim, _pace(pace, smallest), _reach(reach))
    if rule.pace * smallest < HASTE:
        warnings.warn(
            f"pace={rule.pace:g} lets {rule.pace * smallest:.3g} people of the smallest group come until an error is "
            f"paid back: decisions will jump about with chance. Use {math.ceil(HASTE / smallest)} or more.",
            SteeringWarning,
            stacklevel=3,
        )
    groups = len(policy.groups)
    return Steering(policy, rule, State(secrets.token_hex(8), Sums.none(groups)))


def _pace(pace: float | None, smallest: float) -> float:
    if pace is None:
        return PACE / smallest
    if isinstance(pace, bool) or not isinstance(pace, int | float | np.number) or not 0 < pace < math.inf:
        raise ConstraintError(f"pace is {pace!r}.", "Give a number of people above 0.")
    return float(pace)


def _reach(reach: float) -> float:
    if isinstance(reach, bool) or not isinstance(reach, int | float | np.number) or not 0 < reach <= 1:
        raise ConstraintError(f"reach is {reach!r}.", "Give a number above 0, at most 1 (no limit).")
    return float(reach)
