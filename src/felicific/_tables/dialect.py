"""Dialects: what databases that speak SQL write differently. Each is one entry of one table, :data:`DIALECTS`.

An engine points to its entry; a warehouse that is no engine here, because rows are only decided on there, is an
entry and nothing else. Nothing heavy is imported here: the help of the command line reads the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from felicific.exceptions import DataError

#: The names of :data:`DIALECTS`, for editors and type checkers.
SqlDialect: TypeAlias = Literal["duckdb", "spark", "databricks", "postgres", "snowflake", "bigquery"]

#: Whole numbers below it are literals of every dialect.
LONGEST = 1e18


def kinds_alike(values: Sequence[object]) -> tuple[str, ...]:
    """What a column must hold for SQL to compare it with these values as Python does; () where it cannot."""
    from felicific._tables.memory import EXACT

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


def kind_of(values: Sequence[object]) -> str:
    """What a column of them holds: "bool", "whole", "unsigned" (whole numbers beyond 63 bits), "real" or "text"."""
    if all(isinstance(value, bool) for value in values):
        return "bool"
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) == len(values):
        return "unsigned" if max(whole) >= 2**63 else "whole"
    return "real" if all(isinstance(value, int | float) for value in values) else "text"


def write_number(value: float) -> str:
    """A number that reads back as the same 64-bit float; some dialects write more around it."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"  # without an exponent it would be a decimal


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one database writes names, values, the lottery's number, errors and types.

    Braces stand in templates for what is written there.

    Attributes
    ----------
    name, label : str
        How users call it, and how messages do.
    names, texts : callable
        How a column's name and a text are quoted, whatever they hold.
    text, real : str
        The types of text and of 64-bit floats.
    number : str
        A 64-bit float, from a literal with an exponent.
    beyond : str
        A whole number beyond 63 bits.
    exactly : str
        Text that is compared letter by letter, whatever the collation of its column.
    digits : str
        The first 13 hexadecimal digits of SHA-256 of ``{message}``, as a number.
    error : str
        An expression that raises ``{message}``; of the type ``{kind}`` where types are fixed beforehand.
    kinds : dict of str to str
        Names of types by what they hold, where ``error`` needs them.
    type_of, matching : str
        What shows the type of ``{column}``, and whether ``{type}`` matches ``{pattern}``.
    types : dict of str to str
        Patterns of types, by what they hold.
    other : dict of str to str
        A further condition that a column does not hold what Python does.
    numbers, bucket, element : str
        A list of 64-bit floats; how many of the ``{edges}``, which rise, are not beyond ``{at}``; and the number of a
        ``{list}`` at a ``{place}``, counted from 1. Empty where nothing finds a place in a list.
    """

    name: str
    label: str
    names: Callable[[str], str]
    texts: Callable[[str], str]
    text: str
    real: str
    number: str = "{}"
    beyond: str = "{}"
    exactly: str = "{}"
    digits: str
    error: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    type_of: str = "typeof({column})"
    matching: str
    types: Mapping[str, str]
    other: Mapping[str, str] = field(default_factory=dict)
    numbers: str = ""
    bucket: str = ""
    element: str = ""

    def quote_name(self, name: str) -> str:
        """A column's name as an identifier."""
        return self.names(name)

    def quote_value(self, value: object) -> str:
        """A class or a group as a literal."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return (self.beyond if abs(value) >= 2**63 else "{}").format(value)
        if isinstance(value, float) and math.isfinite(value):
            # A whole one as a whole number: next to a column of these, two of them could be one float.
            short = value.is_integer() and abs(value) < LONGEST
            return str(int(value)) if short else self.write_number(value)
        if isinstance(value, str):
            return self.texts(value)
        raise DataError(
            f"{value!r} is a {type(value).__name__}, which has no SQL literal here.",
            "Use strings, integers, floats or booleans as classes and groups.",
        )

    def write_number(self, value: float) -> str:
        """A 64-bit float."""
        return self.number.format(write_number(value))

    def write_numbers(self, values: Sequence[float]) -> str:
        """A list of 64-bit floats."""
        return self.numbers.format(", ".join(map(write_number, values)))

    def as_text(self, column: str) -> str:
        """A column as text."""
        return f"CAST({column} AS {self.text})"

    def as_real(self, column: str) -> str:
        """A column as 64-bit floats."""
        return f"CAST({column} AS {self.real})"

    def as_exact(self, column: str) -> str:
        """Text as it is compared with a literal."""
        return self.exactly.format(column)

    def holds_other(self, column: str, kinds: Sequence[str]) -> str:
        """The condition that a column holds none of these kinds ("bool", "whole", "real", "text") as Python does."""
        pattern = f"^({'|'.join(self.types[kind] for kind in kinds)})$"
        matches = self.matching.format(type=self.type_of.format(column=column), pattern=pattern)
        further = [self.other[kind].format(column=column) for kind in kinds if kind in self.other]
        return " OR ".join([f"NOT {matches}", *further])

    def raise_error(self, parts: Sequence[str], kind: str) -> str:
        """An expression of a kind that raises an error, whose message is some texts one after the other."""
        return self.error.format(message=f"concat({', '.join(parts)})", kind=self.kinds.get(kind))

    def uniform(self, salt: str, key: str) -> str:
        """The number in [0, 1) of the lottery: 13 hexadecimal digits of SHA-256 of the salt and the column ``key``."""
        digits = self.digits.format(message=f"concat('{salt}:', {self.as_text(key)})")
        return f"{digits} / {self.write_number(2.0**52)}"


# ---------------------------------------------------------------------------------------------------------
# How names and texts are quoted


def _doubled(mark: str) -> Callable[[str], str]:
    """Between marks, every mark within doubled."""
    return lambda text: mark + text.replace(mark, mark + mark) + mark


def _escaped(mark: str, escapes: Mapping[str, str]) -> Callable[[str], str]:
    """Between marks, some letters within escaped."""
    table = str.maketrans(dict(escapes))
    return lambda text: mark + text.translate(table) + mark


def _spark_names(text: str) -> str:
    """In backticks, where Spark still replaces variables."""
    if "${" in text:
        raise DataError(
            f"Spark replaces what looks like a variable in the name {text!r}, inside quotes too.",
            "Rename the column, or apply the policy where Python runs.",
        )
    return _doubled("`")(text)


def _spark_texts(text: str) -> str:
    """As bytes where a literal would depend on Spark's settings."""
    if any(mark in text for mark in "\\'$"):
        # How Spark reads a backslash depends on them, and it replaces ${variables}; bytes it takes as they are.
        return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"
    return f"'{text}'"


def _postgres(quote: Callable[[str], str]) -> Callable[[str], str]:
    """Without the one letter that PostgreSQL cannot hold."""

    def quoted(text: str) -> str:
        if "\0" in text:
            raise DataError(
                f"{text!r} holds a zero byte, and no text or name of PostgreSQL does.", "Name it otherwise."
            )
        return quote(text)

    return quoted


def _postgres_texts(text: str) -> str:
    """How a plain literal reads a backslash is a setting (standard_conforming_strings); with E it is none."""
    plain = _doubled("'")(text)
    return "E" + plain.replace("\\", "\\\\") if "\\" in text else plain


#: Letters that GoogleSQL does not take as they are, in texts and names alike.
_GOOGLE = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\x00"}


# ---------------------------------------------------------------------------------------------------------
# The table

_SPARK = Dialect(
    name="spark",
    label="Spark",
    names=_spark_names,
    texts=_spark_texts,
    text="STRING",
    real="DOUBLE",
    digits="CAST(conv(substring(sha2({message}, 256), 1, 13), 16, 10) AS DOUBLE)",
    error="raise_error({message})",
    matching="regexp_like({type}, '{pattern}')",
    types={
        "bool": "boolean",
        "whole": "tinyint|smallint|int|bigint",
        "real": "float|double|decimal.*",
        "text": "string|char.*|varchar.*",
    },
)

#: Every dialect that policies are written in: a new one is an entry here.
DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            name="duckdb",
            label="DuckDB",
            names=_doubled('"'),
            texts=_doubled("'"),
            text="VARCHAR",
            real="DOUBLE",
            digits="CAST('0x' || left(sha256({message}), 13) AS UBIGINT)",
            error="error({message})",
            matching="regexp_matches({type}, '{pattern}')",
            types={
                "bool": "BOOLEAN",
                "whole": "U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER",
                "real": "FLOAT|DOUBLE|DECIMAL.*",
                "text": "VARCHAR|ENUM.*",
            },
            # A collation, by which A is a, or accents do not count: the type does not show it, and what is made of
            # the column has it too. No row is looked at.
            other={
                "text": "(CASE WHEN FALSE THEN CAST({column} AS VARCHAR) ELSE chr(201) END) "
                "IN ('E', chr(233), concat('E', chr(769)))"
            },
        ),
        _SPARK,
        replace(_SPARK, name="databricks", label="Databricks"),
        Dialect(
            name="postgres",
            label="PostgreSQL",
            names=_postgres(_doubled('"')),
            texts=_postgres(_postgres_texts),
            text="text",
            real="float8",
            number="'{}'::float8",  # a literal with an exponent is a decimal
            exactly='{} COLLATE "C"',
            digits="CAST(CAST('x' || left(encode(sha256(convert_to({message}, 'UTF8')), 'hex'), 13) AS bit(52)) "
            "AS bigint)",
            # Nothing raises in plain SQL, but this text is no number. concat is not computed before there is a row.
            error="CAST(CAST({message} AS integer) AS {kind})",
            kinds={
                "bool": "boolean",
                "whole": "bigint",
                "unsigned": "numeric",
                "real": "float8",
                "text": "text",
            },
            type_of="pg_typeof({column})::text",
            matching="({type} ~ '{pattern}')",
            types={
                "bool": "boolean",
                "whole": "smallint|integer|bigint",
                "real": "real|double precision|numeric",
                "text": "text|character varying",  # not character(n), which takes 'a ' for 'a'
            },
            numbers="'{{{}}}'::float8[]",
            bucket="width_bucket({at}, {edges})",
            element="({list})[{place}]",
        ),
        Dialect(
            name="snowflake",
            label="Snowflake",
            names=_doubled('"'),
            texts=_escaped("'", {"\\": "\\\\", "'": "''"}),
            text="VARCHAR",
            real="DOUBLE",
            number="'{}'::DOUBLE",  # a literal with an exponent is a decimal
            exactly="COLLATE({}, 'utf8')",
            digits="CAST(TO_NUMBER(LEFT(SHA2_HEX({message}, 256), 13), 'XXXXXXXXXXXXX') AS DOUBLE)",
            # Nothing raises in plain SQL, but this text is no number.
            error="CAST(CAST({message} AS NUMBER(38, 0)) AS {kind})",
            kinds={
                "bool": "BOOLEAN",
                "whole": "NUMBER(38, 0)",
                "unsigned": "NUMBER(38, 0)",
                "real": "DOUBLE",
                "text": "VARCHAR",
            },
            type_of="SYSTEM$TYPEOF({column})",
            matching="REGEXP_LIKE({type}, '{pattern}')",
            types={
                "bool": "BOOLEAN.*",
                "whole": "NUMBER[(][0-9]+,0[)].*",
                "real": "FLOAT.*|NUMBER.*",
                "text": "VARCHAR.*",
            },
        ),
        Dialect(
            name="bigquery",
            label="BigQuery",
            names=_escaped("`", _GOOGLE | {"`": "\\`"}),
            texts=_escaped("'", _GOOGLE | {"'": "\\'"}),
            text="STRING",
            real="FLOAT64",
            beyond="NUMERIC '{}'",
            exactly="COLLATE({}, '')",
            digits="CAST(CONCAT('0x', LEFT(TO_HEX(SHA256({message})), 13)) AS INT64)",
            error="ERROR({message})",
            # There is no function that names a type; a value written as a literal shows it, and NULL has none.
            type_of="FORMAT('%T', {column})",
            matching="REGEXP_CONTAINS({type}, r'{pattern}')",
            types={
                "bool": "NULL|true|false",
                "whole": "NULL|-?[0-9]+",
                "real": "NULL|-?[0-9.]+(e[+-]?[0-9]+)?|CAST[(].*|(BIG)?NUMERIC .*",
                "text": r"NULL|[\x22\x27].*",
            },
            numbers="[{}]",
            bucket="RANGE_BUCKET({at}, {edges})",
            element="{list}[ORDINAL({place})]",
        ),
    )
}


def dialect_of(name: str) -> Dialect:
    """The dialect of SQL that has this name."""
    from felicific._tables.memory import nearest

    if isinstance(name, str) and name in DIALECTS:
        return DIALECTS[name]
    names = ", ".join(map(repr, DIALECTS))
    near = nearest(name.lower(), DIALECTS)[:1] if isinstance(name, str) else []
    meant = f"Did you mean {near[0]!r}? There are {names}." if near else f"Choose one of {names}."
    raise DataError(f"There is no dialect {name!r}.", meant)
