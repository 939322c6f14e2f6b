"""Amounts as a column: what a policy of amounts gives every row of a table; lazy where the table is lazy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import as_amounts
from felicific._people.roles import Roles
from felicific._policy.apply import check_keys_on, refuse_taken
from felicific._policy.lines import slopes_of
from felicific._policy.lottery import checked_keys
from felicific._policy.sql import SEVERAL, Branch, SqlExpression
from felicific._tables.dialect import Dialect, kinds_alike
from felicific._tables.engine import Decisions, Engine, find_engine
from felicific._tables.groups import UNDECIDED, encode_groups, resolve_groups
from felicific._tables.memory import (
    add_column,
    column_names,
    count_rows,
    refuse_missing_columns,
    take_column,
)
from felicific._typing import Array, Floats, Table
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


def with_remembered_amounts(policy: AmountPolicy, named: Roles) -> Roles:
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


# ---------------------------------------------------------------------------------------------------------
# SQL of amounts: a policy of broken lines as one ``CASE`` expression, with the numbers and the draws of
# Python.
#
# Between two knots the amount is :math:`slope (f - x) + y` of the lower one, operation by operation what
# :func:`felicific._policy.lines.along` computes. A line may have some thousand knots, so that conditions are
# not listed one after the other but nested, each halving what is left: no row is compared more than a dozen
# times. A database that finds a place in a list by itself (PostgreSQL, BigQuery) gets lists.


@dataclass(frozen=True)
class AmountNames:
    """Columns of a policy of amounts as SQL text: quoted names, or positions.

    Attributes
    ----------
    prediction : str
        What the model predicts.
    group : tuple of str
        Columns of the group; none for a policy that does not see it.
    key : str or None
        What identifies a person in the lottery.
    """

    prediction: str
    group: tuple[str, ...]
    key: str | None


def amount_expression(policy: AmountPolicy, dialect: Dialect, names: AmountNames) -> str:
    """What people get as one expression."""
    return _AmountExpression(policy, dialect, names).text()


#: Knots from which on a database that finds a place in a list does so: PostgreSQL compiles thousands of conditions for
#: longer than it computes them.
MANY = 32


class _AmountExpression(SqlExpression):
    def __init__(self, policy: AmountPolicy, dialect: Dialect, names: AmountNames) -> None:
        super().__init__(policy, dialect, names.group, names.key)
        self.policy, self.column = policy, names.prediction
        self.prediction = dialect.as_real(names.prediction)

    def text(self) -> str:
        guards = self.type_guards([((self.column,), ("whole", "real"), "prediction")]) + self.group_guards()
        remedy = "Correct it, or leave the row out: an amount is a number."
        guards.append(self.finite_guard(self.prediction, "The prediction", self.column, remedy))
        if self.policy.is_randomized:
            guards.append(self.key_guard())
        return self.whole(guards, self.column, self._rules)

    def _kind(self) -> str:
        return "real"

    def _rules(self, z: int, never: str, indent: str) -> list[Branch]:
        """Who draws, and the line of a group for all others; nobody is left over."""
        line, branches = self.policy.lines[z], []
        for atom in reversed(
            line.atoms if self.policy.randomize else ()
        ):  # of two the later counts, as in Python
            within = f"{self.prediction} > {self.number(atom.low)} AND {self.prediction} <= {self.number(atom.high)}"
            draw = f"({self.dialect.uniform(self.policy.salt, str(self.key))})"
            branches.append((within, self._line(draw, atom.draws, atom.amounts)))
        return [*branches, ("", self._line(self.prediction, line.prediction, line.amount))]

    def _line(self, at: str, x: Floats, y: Floats) -> str:
        """A broken line somewhere: of every knot that stands twice, what comes after it."""
        last = np.append(np.diff(x) > 0, True)
        slopes, knots, heights = (part[last].tolist() for part in (slopes_of(x, y), x, y))
        below = self.number(float(y[0]))
        if len(knots) >= MANY and self.dialect.bucket:
            found = self._found(at, slopes, knots, heights)
            return f"CASE WHEN {at} < {self.number(knots[0])} THEN {below} ELSE {found} END"
        pieces = [self._piece(at, *knot) for knot in zip(slopes, knots, heights, strict=True)]
        return self._nested(at, knots, [below, *pieces])

    def _found(self, at: str, slopes: list[float], knots: list[float], heights: list[float]) -> str:
        """The piece of a line whose place a function finds in the list of knots."""
        place = self.dialect.bucket.format(at=at, edges=self.dialect.write_numbers(knots))
        slope, knot, height = (
            self.dialect.element.format(list=self.dialect.write_numbers(numbers), place=place)
            for numbers in (slopes, knots, heights)
        )
        return f"{slope} * ({at} - {knot}) + {height}"

    def _piece(self, at: str, slope: float, knot: float, height: float) -> str:
        """A straight piece of a line."""
        if slope == 0.0:
            return self.number(height)
        return f"{self.number(slope)} * ({at} - {self.number(knot)}) + {self.number(height)}"

    def _nested(self, at: str, knots: list[float], pieces: list[str]) -> str:
        """Conditions that halve what is left; neighbours that say the same are one."""
        kept = [0, *(i for i in range(1, len(pieces)) if pieces[i] != pieces[i - 1])]
        return self._halved(at, [knots[i - 1] for i in kept[1:]], [pieces[i] for i in kept])

    def _halved(self, at: str, knots: list[float], pieces: list[str]) -> str:
        if not knots:
            return pieces[0]
        middle = len(knots) // 2
        below = self._halved(at, knots[:middle], pieces[: middle + 1])
        above = self._halved(at, knots[middle + 1 :], pieces[middle + 1 :])
        return f"CASE WHEN {at} < {self.number(knots[middle])} THEN {below}\nELSE {above} END"
