"""Amounts as a column: what a policy of amounts gives every row of a table; lazy where the table is lazy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import as_amounts
from felicific._people.roles import Named, Roles
from felicific._policy.apply import check_keys_on, refuse_taken
from felicific._policy.expression import SEVERAL
from felicific._policy.lottery import checked_keys
from felicific._policy.sql_amounts import AmountNames, amount_expression
from felicific._tables.dialect import Dialect, kinds_alike
from felicific._tables.engine import Decisions, Engine, find_engine
from felicific._tables.groups import UNDECIDED, encode_groups, resolve_groups
from felicific._tables.memory import add_column, column_names, count_rows, refuse_missing_columns, take_column
from felicific._typing import Array, Table
from felicific.exceptions import DataError, GroupError

if TYPE_CHECKING:
    from felicific._policy.amounts import AmountPolicy


@dataclass(frozen=True)
class AmountRoles:
    """What the columns of a table are to a policy of amounts."""

    prediction: str
    group: tuple[str, ...]
    key: str | None

    @classmethod
    def of(cls, policy: AmountPolicy, prediction: Any, sensitive_features: Any, key: Any) -> AmountRoles:
        """Check the names, with those that the policy remembers, against what it sees."""
        given = Roles(sensitive_features, predicted=prediction, key=key)
        named = with_remembered_amounts(policy, given)
        prediction, key, group = named.predicted, named.key, tuple(named.group_names)
        if prediction is None:
            raise DataError(
                "The column that holds the model's predictions is not named.",
                "Name it in predicted=.",
            )
        if policy.sees_group and not group:
            raise GroupError("This policy sees the group.", "Name its column in sensitive_features=.")
        roles = cls(prediction, group if policy.sees_group else (), key)
        wrong = [name for name in roles.names if not isinstance(name, str)]
        if wrong:
            raise DataError(
                f"{type(wrong[0]).__name__} {str(wrong[0])[:40]!r} names no column.",
                "Name columns of the table in predicted=, sensitive_features= and key=; for arrays there is "
                "policy.amounts(prediction, group, key).",
            )
        if policy.is_randomized and key is None:
            raise DataError(
                "The policy randomizes among people who are predicted the same, and there is no key.",
                "Name the column that identifies a person in key=.",
            )
        return roles

    @property
    def names(self) -> list[str]:
        """All columns that have a role."""
        return [self.prediction, *self.group, *([] if self.key is None else [self.key])]

    def kinds(self, policy: AmountPolicy) -> dict[str, tuple[str, ...]]:
        """What the columns must hold for SQL to mean the same as Python."""
        groups = kinds_alike(policy.groups) if len(self.group) == 1 else SEVERAL
        return {self.prediction: ("whole", "real")} | dict.fromkeys(self.group, groups)

    def placed(self, place: Callable[[str], str]) -> AmountNames:
        """The columns as SQL text."""
        return AmountNames(
            place(self.prediction),
            tuple(map(place, self.group)),
            None if self.key is None else place(self.key),
        )


def with_remembered_amounts(policy: AmountPolicy, named: Named) -> Named:
    """With the columns that the policy remembers, of what it needs and nobody names now."""
    needed = {"predicted": True, "group": policy.sees_group, "key": policy.is_randomized}
    roles = [role for role, one in needed.items() if one and getattr(named, role) is None]
    return replace(named, **{role: getattr(policy.roles, role) for role in roles})


@dataclass(frozen=True)
class _Amounts(Decisions):
    """The amounts that a policy gives to a table whose columns have these roles."""

    policy: AmountPolicy
    roles: AmountRoles

    @property
    def classes(self) -> Array:
        return np.array(self.policy.bounds)  # the column holds numbers

    @property
    def sees_x(self) -> bool:
        return False

    def decide(self, rows: Table) -> Array:
        policy, roles = self.policy, self.roles
        prediction = as_amounts(take_column(rows, roles.prediction, "prediction"), "prediction")
        group = np.zeros(count_rows(rows), dtype=np.intp)
        if policy.sees_group:
            named = resolve_groups(rows, list(roles.group), columns_only=True, remedy=UNDECIDED)
            group = encode_groups(named, policy.groups)
        keys = checked_keys(rows, str(roles.key)) if policy.is_randomized else None
        return policy.given(prediction, np.asarray(group, dtype=np.intp), keys)

    def sql(
        self, engine: Engine, dialect: Dialect, place: Callable[[str], str], ahead: tuple[str, ...] = ()
    ) -> str | None:
        wanted = self.roles.kinds(self.policy)
        if not all(engine.kind(name, "the policy") in wanted[name] for name in wanted):
            return None
        return amount_expression(self.policy, dialect, self.roles.placed(place))

    def columns(self, engine: Engine) -> tuple[str, ...]:
        return tuple(self.roles.names)


def give_table(table: Table, policy: AmountPolicy, roles: AmountRoles, column: str) -> Table:
    """The table with the amounts as one more column; a lazy table stays lazy."""
    engine = find_engine(table)
    names = column_names(table) if engine is None else engine.names
    refuse_missing_columns(names, roles.names, "the policy")
    ignores_case = engine is not None and engine.ignores_case
    refuse_taken(names, column, "Choose another name in column=.", ignores_case=ignores_case)
    amounts = _Amounts(policy, roles)
    if engine is None:
        return add_column(table, column, amounts.decide(table))
    if engine.kind(roles.prediction, "prediction") not in ("bool", "whole", "real"):
        raise DataError(
            f"The column {roles.prediction!r}, needed for prediction, holds no numbers.", "Name another."
        )
    check_keys_on(engine, roles.key)
    return engine.with_decisions(amounts, column)
