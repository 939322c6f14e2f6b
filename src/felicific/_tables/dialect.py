"""Dialects: what engines that speak SQL write differently. Each engine's own stands in that engine's file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from felicific._tables.memory import EXACT
from felicific.exceptions import DataError

#: Whole numbers below it are literals of every dialect.
LONGEST = 1e18


def kinds_alike(values: Sequence[object]) -> tuple[str, ...]:
    """What a column must hold for SQL to compare it with these values as Python does; () where it cannot."""
    if all(isinstance(value, bool) for value in values):
        return ("bool",)
    if all(isinstance(value, str) for value in values):
        return ("text",)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values) or not all(map(math.isfinite, numbers)):
        return ()
    # Next to a float, two of these could be one.
    large = any(isinstance(value, int) and abs(value) > EXACT for value in numbers)
    return ("whole",) if large else ("whole", "real")


class Dialect(ABC):
    """How one engine writes names, values, the lottery's number and errors."""

    #: How users call it.
    name: ClassVar[str]

    #: The type of text.
    text: ClassVar[str]

    #: What stands around a column's name.
    mark: ClassVar[str]

    #: The function that raises an error with the text it gets.
    raising: ClassVar[str]

    #: The function that says whether a text matches a pattern, and patterns of the names of types, by what they hold.
    matching: ClassVar[str]
    types: ClassVar[dict[str, str]]

    def quote_name(self, name: str) -> str:
        """A column's name as an identifier: quoted, with every quote in it doubled."""
        return self.mark + name.replace(self.mark, self.mark + self.mark) + self.mark

    def quote_value(self, value: object) -> str:
        """A class or a group as a literal."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float) and math.isfinite(value):
            # A whole one as a whole number: next to a column of these, two of them could be one float.
            return str(int(value)) if value.is_integer() and abs(value) < LONGEST else write_number(value)
        if isinstance(value, str):
            return self.quote_text(value)
        raise DataError(
            f"{value!r} is a {type(value).__name__}, which has no SQL literal here.",
            "Use strings, integers, floats or booleans as classes and groups.",
        )

    def quote_text(self, text: str) -> str:
        """Text as a literal: quoted, with every quote in it doubled."""
        return "'" + text.replace("'", "''") + "'"

    def as_text(self, column: str) -> str:
        """A column as text."""
        return f"CAST({column} AS {self.text})"

    def holds_other(self, column: str, kinds: Sequence[str]) -> str:
        """The condition that a column holds none of these kinds ("bool", "whole", "real", "text") as Python does."""
        pattern = "|".join(self.types[kind] for kind in kinds)
        return f"NOT {self.matching}(typeof({column}), '^({pattern})$')"

    def error(self, parts: Sequence[str]) -> str:
        """An expression that raises an error, whose message is some texts one after the other."""
        return f"{self.raising}(concat({', '.join(parts)}))"

    @abstractmethod
    def uniform(self, salt: str, key: str) -> str:
        """The number in [0, 1) of the lottery: 13 hexadecimal digits of SHA-256 of the salt and the column ``key``."""


def write_number(value: float) -> str:
    """A number that reads back as the same 64-bit float in every dialect."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"  # without an exponent it would be a decimal
