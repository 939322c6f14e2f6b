"""What the SQL of every policy has in common: who may be decided on, which group somebody is of, and errors."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from felicific._tables.dialect import Dialect, kinds_alike
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.amounts import AmountPolicy
    from felicific._policy.cells import CellPolicy

#: What each of several columns of groups must hold to be written in SQL as Python writes it.
SEVERAL = ("whole", "text")

#: What messages call what a column holds.
WORDS = {"bool": "truth values", "whole": "whole numbers", "real": "numbers", "text": "text"}

#: Columns, what they must hold, and what messages call it.
Used = tuple[tuple[str, ...], tuple[str, ...], str]

#: A condition, and what follows on it.
Branch = tuple[str, str]


class SqlExpression(ABC):
    """A policy as one expression of a database.

    Unknown groups, impossible numbers and missing keys raise inside the database; they never fall into an ``ELSE``.
    """

    def __init__(
        self, policy: CellPolicy | AmountPolicy, dialect: Dialect, group: tuple[str, ...], key: str | None
    ) -> None:
        self.sight, self.dialect, self.group, self.key = policy, dialect, group, key
        if policy.sees_group and not group:
            raise DataError("This policy sees the group.", "Name its column in sensitive_features=.")

    @abstractmethod
    def _kind(self) -> str:
        """What the expression returns."""

    def whole(
        self, guards: list[Branch], shown: str, rules: Callable[[int, str, str], Sequence[Branch]]
    ) -> str:
        """Guards, then for every group its ``rules``; these get its position, what is for nobody, and an indent."""
        group = self._group()
        # A column, also where no row can come here: some databases compute constants before they read a row.
        never = self._raise(
            "The group or the prediction is none of those that were fitted: ",
            group or shown,
            "Fit on data that holds every group, or decide on those people in another way.",
        )
        if not self.sight.sees_group:
            return case_of([*guards, *rules(0, never, "  ")], never)
        branches = list(guards)
        for z, name in enumerate(self.sight.groups):
            branches.append((self._is(group, name), case_of(rules(z, never, "    "), never, "    ")))
        return case_of(branches, never)

    # -----------------------------------------------------------------------------------------------------
    # Rows about which nothing may be decided

    def type_guards(self, used: Sequence[Used]) -> list[Branch]:
        """Columns of other types than Python takes: a database would cast them, and 1 be the group '01'."""
        wanted = list(used)
        if self.sight.sees_group:
            kinds = self._kinds(self.sight.groups, "group") if len(self.group) == 1 else SEVERAL
            wanted.append((self.group, kinds, "group"))
        if self.key is not None and self.sight.randomize:
            wanted.append(((self.key,), ("whole", "text"), "key"))
        return [
            (
                " OR ".join(self.dialect.holds_other(name, kinds) for name in columns),
                self._raise(
                    f"The {what} is of another type than it was fitted with: ",
                    columns[0],
                    f"Cast the column; it must hold {' or '.join(WORDS[kind] for kind in kinds)}.",
                ),
            )
            for columns, kinds, what in wanted
        ]

    def group_guards(self) -> list[Branch]:
        """People one of whose several groups is missing."""
        if not self.sight.sees_group or len(self.group) < 2:
            return []
        # One alone that is missing equals no group; text that is joined with it may.
        remedy = "Fill it in, give those people a group of their own, or leave the rows out."
        return [
            (f"{name} IS NULL", self._raise("The group is missing: ", name, remedy)) for name in self.group
        ]

    def finite_guard(self, value: str, what: str, shown: str, remedy: str) -> Branch:
        """People whose number is none."""
        # Missing values are nothing, and what is no number, or infinite, is larger than any number.
        finite = f"abs({value}) <= {self.number(sys.float_info.max)}"
        words = f"{what} is missing, infinite or no number: "
        return f"NOT coalesce({finite}, FALSE)", self._raise(words, shown, remedy)

    def key_guard(self) -> Branch:
        """People without a key, where the lottery draws."""
        if self.key is None:
            raise DataError(
                "The policy decides some people by lottery, and there is no key.",
                "Name the column that identifies a person in key=.",
            )
        remedy = "Give every person an identifier, or leave those rows out."
        return f"{self.key} IS NULL", self._raise("The key is missing: ", self.key, remedy)

    def _kinds(self, values: Sequence[object], what: str) -> tuple[str, ...]:
        kinds = kinds_alike(values)
        if not kinds:
            raise DataError(
                f"Some {what} of {list(values)[:5]} has no SQL literal here, or they are of different types.",
                "Use strings, integers, finite floats or booleans as classes and groups.",
            )
        return kinds

    def _raise(self, words: str, shown: str, remedy: str) -> str:
        """An error that shows a value, and the key of the person it is the value of."""

        def as_shown(column: str) -> str:
            return f"coalesce({self.dialect.as_text(column)}, 'NULL')"

        parts = [self._value(f"felicific: {words}"), as_shown(shown)]
        if self.key not in (None, shown):
            parts += [self._value(" (key "), as_shown(str(self.key)), self._value(")")]
        return self.dialect.raise_error([*parts, self._value(f". {remedy}")], self._kind())

    # -----------------------------------------------------------------------------------------------------
    # Values and groups

    def _value(self, value: object) -> str:
        return self.dialect.quote_value(value)

    def _is(self, column: str, value: object) -> str:
        """Condition that a column holds a value, as Python compares them."""
        return f"{self.dialect.as_exact(column) if isinstance(value, str) else column} = {self._value(value)}"

    def number(self, value: float) -> str:
        """A 64-bit float."""
        return self.dialect.write_number(value)

    def _group(self) -> str:
        """The group; of several columns the name of their intersection, escaped as Python escapes it."""
        if not self.sight.sees_group or len(self.group) == 1:
            return self.group[0] if self.group else ""
        back, text = "chr(92)", self.dialect.as_text
        parts = [
            f"replace(replace({text(name)}, {back}, concat({back}, {back})), '&', concat({back}, '&'))"
            for name in self.group
        ]
        joined = ", ' & ', ".join(parts)
        return f"concat({joined})"


def case_of(branches: Sequence[Branch], otherwise: str, indent: str = "") -> str:
    """An expression of conditions and what follows on each; the first without a condition is for all others."""
    lines = []
    for condition, decision in branches:
        if not condition:
            otherwise = decision
            break
        lines.append(f"WHEN {condition} THEN {decision}")
    if not lines:
        return otherwise
    between, end = " " if indent and len(lines) == 1 else f"\n{indent}  ", " " if indent else "\n"
    return between.join(["CASE", *lines, f"ELSE {otherwise}"]) + f"{end}END"
