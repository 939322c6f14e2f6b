"""People as they arrived: what was decided on each in turn, as a monitor counts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from felicific._audit.audit import Asked, by_decisions, by_policy, decided_classes
from felicific._audit.decided import checked_columns
from felicific._audit.measure_people import measured_of
from felicific._people.evaluate import idle
from felicific._people.lazy import LazyPeople, missing_first
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.policy import Policy, policy_of
from felicific._problem.missing_labels import SAY
from felicific._problem.problem import Problem
from felicific._statistics.stream import Rows
from felicific._tables.engine import Engine, find_engine
from felicific._tables.groups import find_groups
from felicific._tables.memory import as_objects, distinct, encode
from felicific._typing import Codes, Floats, Table, Truths
from felicific.exceptions import DataError, GroupError, HappinessError


@dataclass(frozen=True, eq=False)
class Arrived:
    """People in the order in which they came, with what was decided on each.

    Attributes
    ----------
    problem : Problem
        What is asked.
    groups : tuple
        Those that occur, or more.
    rows : Rows
        Codes are positions among the groups.
    attributes : tuple
        What the groups are made of.
    """

    problem: Problem
    groups: tuple[Any, ...]
    rows: Rows
    attributes: tuple[Any, ...]

    def coded(self, known: Sequence[Any], *, others: bool) -> Rows:
        """With codes that are positions among groups that are known; ``others`` have -1, or are refused."""
        places, codes = encode(as_objects(self.groups), list(known)), self.rows.codes
        strange = np.flatnonzero(places[codes] < 0)
        if len(strange) and not others:
            names = ", ".join(repr(self.groups[z]) for z in distinct(codes[strange])[:5])
            raise GroupError(
                f"There are people of {names} ({len(strange)} rows, first row {strange[0]}), and monitored are "
                f"{', '.join(map(repr, known[:20]))}.",
                "Begin a new monitor that says who is compared: groups=[...].",
            )
        return Rows(places[codes], self.rows.values, self.rows.inside)


def arrived(decisions: object, X: Table, columns: Roles, asked: Asked, *, fresh: bool) -> Arrived:
    """What was decided on people in turn; of ``fresh`` ones, the first, some decision has to change happiness."""
    policy = policy_of(decisions)
    if asked.amount_bounds is not None:
        raise DataError(
            "The decisions are amounts, which can be audited, and not monitored.",
            "List them: decisions=[...], from the worst to the best for the person.",
        )
    asked.takes_amounts = False
    columns = checked_columns(policy, columns, X, asked)
    engine = find_engine(X)
    if engine is not None:
        with _labels_known():
            return _on_engine(engine, policy, decisions, columns, asked, fresh)
    with _labels_known(), missing_first(X, columns):
        if policy is None:
            people, problem, _, _ = by_decisions(decisions, X, columns, asked)
        else:
            people, problem, _ = by_policy(policy, X, columns, asked)
        part = _part(problem, None, people)
    if fresh:
        _refuse_idle(problem, part.moved)
    return _joined([part], problem, people.attributes)


@contextmanager
def _labels_known() -> Iterator[None]:
    """Where labels are missing, say what helps here: a monitor knows no beliefs about them."""
    try:
        yield
    except DataError as error:
        if error.remedy != SAY:
            raise
        raise DataError(
            error.problem.partition(" Leaving them out")[0],
            "Give rows when the time has passed in which the outcome of all who came then becomes known.",
        ) from error


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of the people, one after the other."""

    groups: tuple[Any, ...]
    codes: Codes
    values: Floats
    inside: Truths
    moved: Truths


def _part(problem: Problem, policy: Policy | None, people: People) -> _Part:
    """What was decided on some people is worth to each, expected over a lottery."""
    people = people if policy is None else policy.decided(policy.reading(people))
    if people.weight is not None and not (people.weight == 1).all():
        raise DataError(
            "Some weights are not 1, and a monitor counts everybody once.",
            "Leave sample_weight= out, or give every row as often as it counts.",
        )
    persons = measured_of(people, problem, part=True)
    if persons.share is not None:
        raise HappinessError(
            "Who is counted is decided at random: `among` looks at the decision, and the decisions are probabilities.",
            "Monitor the decisions that were really taken.",
        )
    inside = np.ones(persons.values.shape, dtype=bool) if persons.inside is None else persons.inside
    moved = np.array([str(one.name) not in persons.idle for one in problem.happiness])
    return _Part(
        people.groups, people.codes, np.where(inside, persons.values + persons.origin, 0.0), inside, moved
    )


def _listed(problem: Problem, policy: Policy | None, people: People) -> list[_Part]:
    return [_part(problem, policy, people)]


def _refuse_idle(problem: Problem, moved: Truths) -> None:
    """Refuse a happiness that no decision changes: the class was mistyped, or it means nothing."""
    for happiness, changed in zip(problem.happiness, moved.tolist(), strict=True):
        if not changed and not happiness.may_be_idle:
            raise idle(str(happiness.name), problem.decisions.tolist())


def _joined(parts: list[_Part], problem: Problem, attributes: tuple[Any, ...]) -> Arrived:
    """Parts one behind the other, with the groups of all of them."""
    every = {group: None for part in parts for group in part.groups}
    groups = find_groups(as_objects([*every]))
    places = [encode(as_objects(part.groups), list(groups)) for part in parts]
    rows = Rows(
        np.concatenate([place[part.codes] for place, part in zip(places, parts, strict=True)]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.inside for part in parts]),
    )
    return Arrived(problem, groups, rows, attributes)


def _on_engine(
    engine: Engine, policy: Policy | None, decisions: object, columns: Roles, asked: Asked, fresh: bool
) -> Arrived:
    """People of a table that is not in memory, read in order, some at a time."""
    if not engine.ordered:
        raise DataError(
            f"A table of {engine.label} has no order, and people are monitored in the order in which they came.",
            "Collect it in the order in which people came, or write it to Parquet in that order; of DuckDB, SET "
            "preserve_insertion_order = true.",
        )
    if policy is None and not isinstance(decisions, str):
        raise DataError(
            f"The decisions are a {type(decisions).__name__}, and the table is not in memory.",
            "Name the column that holds them (policy.apply(table, ...) makes one), or pass a Policy (fair.policy_ is "
            "one) and score=.",
        )
    columns.names_only()
    classes = decided_classes(engine, policy, columns, asked)
    problem = asked.problem(classes, labelled=columns.y is not None, policy=policy)
    if not any(part.looks_at_y for part in problem.happiness):
        columns = replace(columns, y=None)  # nobody looks at it
    people = LazyPeople.of(engine, columns, problem, policy=policy)
    parts = people.fold(partial(_listed, problem, policy), list.__add__)
    if fresh:
        _refuse_idle(problem, np.any([part.moved for part in parts], axis=0))
    return _joined(parts, problem, columns.attributes)
