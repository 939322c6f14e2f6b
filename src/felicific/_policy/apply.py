"""Decisions: what a policy decides about every row of a table, as one more column; lazy where the table is lazy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.columns import ordered_columns, ordered_groups, stacked
from felicific._policy.sql import SEVERAL, Names
from felicific._tables.dialect import Dialect, kinds_alike
from felicific._tables.engine import Decisions, Engine, find_engine
from felicific._tables.groups import UNDECIDED, resolve_groups
from felicific._tables.memory import add_column, column_names, refuse_missing_columns, take_column
from felicific._typing import Array, Table
from felicific.exceptions import DataError, GroupError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are to a policy."""

    proba: tuple[str, ...] | None
    predicted: str | None
    group: tuple[str, ...]
    key: str | None
    group_proba: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        policy: Policy,
        proba: Any,
        predicted: Any,
        sensitive_features: Any,
        key: Any,
        group_proba: Any = None,
    ) -> Roles:
        """Check the names against what the policy sees."""
        group = () if sensitive_features is None else sensitive_features
        group = tuple(group) if isinstance(group, list | tuple) else (group,)
        if policy.see_group and not group:
            raise GroupError("This policy sees the group.", "Name its column in sensitive_features=.")
        policy.check_group_proba(group_proba)
        roles = cls(
            _ordered(proba, policy.classes.tolist()),
            predicted,
            group if policy.see_group else (),
            key,
            None if group_proba is None else ordered_groups(group_proba, policy.groups),
        )
        wrong = [name for name in roles.names if not isinstance(name, str)]
        if wrong:
            raise DataError(
                f"{type(wrong[0]).__name__} {str(wrong[0])[:40]!r} names no column.",
                "Name columns of the table in proba=, predicted=, sensitive_features=, key= and group_proba=.",
            )
        if roles.proba is None and (policy.needs_proba or predicted is None):
            what = "probabilities" if policy.needs_proba else "probabilities or predictions"
            raise DataError(f"The policy sees {what}.", "Name their columns in proba= (or predicted=).")
        return roles

    @property
    def names(self) -> list[str]:
        """All columns that have a role."""
        single = [name for name in (self.predicted, self.key) if name is not None]
        return [*(self.proba or ()), *single, *self.group, *(self.group_proba or ())]

    def kinds(self, policy: Policy) -> dict[str, tuple[str, ...]]:
        """What the columns must hold for SQL to mean the same as Python."""
        groups = kinds_alike(policy.groups) if len(self.group) == 1 else SEVERAL
        if self.predicted is None or policy.needs_proba:
            seen: dict[str, tuple[str, ...]] = dict.fromkeys(self.proba or (), ("whole", "real"))
        else:
            seen = {self.predicted: kinds_alike(policy.classes.tolist())}
        return seen | dict.fromkeys(self.group, groups)

    def placed(self, place: Callable[[str], str]) -> Names:
        """The columns as SQL text."""
        return Names(
            proba=None if self.proba is None else tuple(map(place, self.proba)),
            predicted=None if self.predicted is None else place(self.predicted),
            group=tuple(map(place, self.group)),
            key=None if self.key is None else place(self.key),
        )


def _ordered(proba: Any, classes: list[Any]) -> tuple[str, ...] | None:
    if proba is None:
        return None
    proba = ordered_columns(proba, classes)
    if not isinstance(proba, list | tuple) or (
        len(proba) != len(classes) and (len(proba), len(classes)) != (1, 2)
    ):
        raise DataError(
            f"proba names {proba!r}, and the classes are {classes}.", "Name one column for every class."
        )
    return tuple(proba)


@dataclass(frozen=True)
class _PolicyDecisions(Decisions):
    """The decisions of a policy about a table whose columns have these roles."""

    policy: Policy
    roles: Roles

    @property
    def classes(self) -> Array:
        return self.policy.classes

    def decide(self, rows: Table) -> Array:
        policy, roles = self.policy, self.roles
        if policy.needs_proba or roles.predicted is None:
            scores = np.column_stack([take_column(rows, name, "proba") for name in roles.proba or ()])
        else:
            scores = take_column(rows, roles.predicted, "predicted")
        group = None
        if policy.see_group:
            named = list(roles.group)
            group = resolve_groups(
                rows, named, columns_only=True, missing_group=policy.unknown, remedy=UNDECIDED
            )
        chances = None if roles.group_proba is None else stacked(rows, roles.group_proba)
        if not policy.randomize:
            return np.asarray(policy.classes[policy.odds(scores, group, rows, chances).argmax(axis=1)])
        keys = take_column(rows, str(roles.key), "key")
        return np.asarray(policy.decide(scores, group, keys, rows, chances))

    def sql(self, engine: Engine, dialect: Dialect, place: Callable[[str], str]) -> str | None:
        write = self.policy.sql_writer()
        wanted = self.roles.kinds(self.policy)
        if write is None or not all(engine.kind(name, "the policy") in wanted[name] for name in wanted):
            return None
        return write(dialect, self.roles.placed(place))

    def columns(self, engine: Engine) -> tuple[str, ...] | None:
        seen = self.policy.columns_seen(engine, self.roles.group)
        return None if seen is None else (*self.roles.names, *seen)


def decide_table(table: Table, policy: Policy, roles: Roles, column: str) -> Table:
    """The table with one more column, the decisions; a lazy table stays lazy."""
    engine = find_engine(table)
    names = column_names(table) if engine is None else engine.names
    refuse_missing_columns(names, roles.names, "the policy")
    if policy.randomize and roles.key is None:
        raise DataError(
            "The policy decides by lottery, and there is no key.",
            "Name the column that identifies a person in key=.",
        )
    ignores_case = engine is not None and engine.ignores_case
    for name in names:
        if name == column or (ignores_case and str(name).lower() == column.lower()):
            raise DataError(f"The table has a column {name!r} already.", "Choose another name in column=.")
    decisions = _PolicyDecisions(policy, roles)
    if engine is None:
        return add_column(table, column, decisions.decide(table))
    _check_kinds(engine, roles)
    return engine.with_decisions(decisions, column)


def _check_kinds(engine: Engine, roles: Roles) -> None:
    for what, names in (("proba", roles.proba), ("group_proba", roles.group_proba)):
        for name in names or ():
            if engine.kind(name, what) not in ("bool", "whole", "real"):
                raise DataError(f"The column {name!r}, needed for {what}, holds no numbers.", "Name another.")
    if roles.key is not None and engine.kind(roles.key, "key") not in ("whole", "text"):
        raise DataError(
            f"The keys in {roles.key!r} are neither strings nor integers.",
            "Floats change their text from one system to the next: use the person's identifier.",
        )
