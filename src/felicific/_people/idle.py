"""Idle happiness: one that no decision changes for anybody, so that whatever is measured of it means nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from felicific._people.lazy import LazyPeople
from felicific._people.people import People
from felicific._people.worth import worth_of
from felicific._problem.problem import Problem
from felicific._typing import Codes, Floats
from felicific.exceptions import HappinessError


def differs(values: Floats) -> bool:
    """Whether some decision is worth something else to somebody; of values of shape (D, n), not counted ones alike."""
    return bool((values != values[:1]).any())


def changed(people: People | LazyPeople, problem: Problem, *, whole: bool = True) -> tuple[bool, ...]:
    """Whether some decision changes each component for anybody of these people, who have labels.

    Of a ``whole`` table, one that is not changed is refused; of a part, others may be.
    """
    step = partial(_seen, problem)
    seen = people.fold(step, np.maximum) if isinstance(people, LazyPeople) else step(people)
    for happiness, found in zip(problem.happiness, seen.tolist(), strict=True):
        if whole and found == _IDLE:
            raise idle(str(happiness.name), problem.decisions.tolist())
    return tuple((seen == _MOVED).tolist())


def idle(name: str, decisions: Iterable[Any]) -> HappinessError:
    """The error of a happiness that no decision changes."""
    known = list(decisions)
    return HappinessError(
        f"No decision changes the happiness {name!r} of anybody; the classes are {known}.",
        f"Make it depend on the decision, as (decision == {known[-1]!r}) * loan does.",
    )


#: What is known of a component: nobody is counted, nobody is changed, somebody is.
_NOBODY, _IDLE, _MOVED = range(3)


def _seen(problem: Problem, people: People) -> Codes:
    """What some people say of every component; they are asked until one is changed."""
    found = np.full(len(problem.happiness), _NOBODY)
    for _, batch in people.batches():
        worth = worth_of(problem, batch)
        for j in np.flatnonzero(found < _MOVED).tolist():
            values, counted = worth.values(j)
            if counted is None or counted.any():
                found[j] = _MOVED if differs(values) else _IDLE
        if (found == _MOVED).all():
            break
    return found
