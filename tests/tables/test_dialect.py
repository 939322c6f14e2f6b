"""Dialects: every text is SQL of its dialect, and what cannot be run here is computed by what is documented of it."""

import re
from decimal import Decimal
from typing import get_args

import numpy as np
import pytest
import sqlglot
from functions import SALTS, VECTORS
from naive_sql import Query, SqlError
from warehouses import CASES, HOSTILE, case, find

from felicific._tables.dialect import DIALECTS, SqlDialect, dialect_of, kinds_alike
from felicific.exceptions import DataError

#: Warehouses that no test runs.
DOCUMENTED = ["snowflake", "bigquery", "databricks"]

#: How many people are decided on where an expression is long: the parse tree is walked for everybody.
FEW = 100


def rows_of(found):
    """People as dicts of Python values, and the types of their columns."""
    used = {name: np.asarray(column).tolist() for name, column in found.used().items()}
    types = {name: type(next(v for v in values if v is not None)) for name, values in used.items()}
    return [dict(zip(used, row, strict=True)) for row in zip(*used.values(), strict=True)], types


def some(found, text):
    """More people where the expression is short, and all where their scores are on edges."""
    return slice(None) if found is find("edges") else slice(0, FEW if len(text) > 5000 else 5 * FEW)


# ---------------------------------------------------------------------------------------------------------
# The same decisions


@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_the_lottery_draws_the_vectors(dialect):
    """The hash as it is written, computed as documented, is Python's number to the last bit."""
    for vector in VECTORS["uniforms"]:
        spoken, u = DIALECTS[dialect], float.fromhex(vector["u"])
        query = Query(spoken.uniform(vector["salt"], spoken.quote_name("k")), dialect, {"k": str})
        assert query.row({"k": vector["key"]}) == [u]
        if vector["key"].lstrip("-").isdigit():
            assert query.row({"k": int(vector["key"])}) == [u]
        assert query.row({"k": None}) == [None]
        assert query.row({"k": vector["key"] + " "}) != [u]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_people_are_decided_on_as_in_python(dialect, name):
    """Scores on edges, ties, lotteries, groups and classes of every type, hostile ones too."""
    found = find(name)
    text = found.policy.to_sql(dialect, **found.roles)
    people, types = rows_of(found)
    chosen = some(found, text)
    query = Query(text, dialect, types)
    decided = [query.row(person)[0] for person in people[chosen]]
    assert decided == found.expected[chosen]
    assert [type(d) for d in decided] == [type(d) for d in found.expected[chosen]] or name == "fractions"


@pytest.mark.parametrize("name", ["score of two", "predicted", "truth"])
@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_probabilities_are_those_of_python(dialect, name):
    """To the last bit, each in a column of its name."""
    found = find(name)
    text = found.policy.to_sql(dialect, **found.roles, with_proba=True)
    people, types = rows_of(found)
    query = Query(text, dialect, types)
    computed = [query.row(person) for person in people[:FEW]]
    assert [column for column, _ in query.columns] == ["decision", *found.probabilities]
    for place, values in enumerate(found.probabilities.values(), start=1):
        assert [row[place] for row in computed] == values[:FEW].tolist()


BAD = {
    "unknown group": ({"z": "q"}, "none of those that were fitted: q (key 10003). Fit on data"),
    "other case": ({"z": "A"}, "none of those that were fitted: A (key"),
    "missing group": ({"z": None}, "none of those that were fitted: NULL (key"),
    "missing probability": ({"p1": None}, "probabilities are missing, or do not sum to one: NULL (key"),
    "NaN": ({"p1": float("nan")}, "probabilities are missing, or do not sum to one: nan"),
    "infinite": ({"p1": float("inf")}, "do not sum to one: inf"),
    "too large": ({"p1": 3.0}, "do not sum to one: 3.0"),
    "negative": ({"p0": 1.5, "p1": -0.5}, "do not sum to one: -0.5"),
    "missing key": ({"id": None}, "key is missing: NULL. Give every person an identifier"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["two columns", "text", "truth", "fractions"])
@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_bad_rows_raise(dialect, name, bad):
    """With the message, the value, the key and a remedy, for decisions of every type and probabilities.

    Never an ELSE.
    """
    changes, words = BAD[bad]
    found = find(name)
    people, types = rows_of(found)
    for probabilities in (False, True):
        query = Query(found.policy.to_sql(dialect, **found.roles, with_proba=probabilities), dialect, types)
        for _, compute in query.columns:
            with pytest.raises(SqlError) as caught:
                compute(people[3] | changes)
            assert "felicific: The " in str(caught.value)
            assert words in str(caught.value)


#: Types that hold something else than the policy saw: of the group, the probability and the key.
TYPES = {"z": [int, float, bool], "p1": [str, bool], "id": [float, bool, Decimal]}
OF = {int: 1, float: 1.5, bool: True, str: "0.5", Decimal: Decimal("1.5")}


@pytest.mark.parametrize("column", TYPES)
@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_columns_of_another_type_raise(dialect, column):
    """Before they are compared, because a warehouse would cast them."""
    found = find("two columns")
    people, types = rows_of(found)
    for kind in TYPES[column]:
        query = Query(found.policy.to_sql(dialect, **found.roles), dialect, types | {column: kind})
        with pytest.raises(SqlError, match="is of another type than it was fitted with: "):
            query.row(people[3] | {column: OF[kind]})
    query = Query(found.policy.to_sql(dialect, **found.roles), dialect, types | {"id": str, "p1": Decimal})
    assert query.row(people[3] | {"id": "10003", "p1": people[3]["p1"]}) == [found.expected[3]]


#: Names of types as they are documented: what they hold, for each way of showing them.
DOCUMENTED_TYPES = {
    "snowflake": {
        "NUMBER(1,0)[SB1]": "whole",
        "NUMBER(38,0)[SB16]": "whole",
        "NUMBER(38,10)[SB16]": "real",
        "NUMBER(12,2)[SB8]": "real",
        "FLOAT[DOUBLE]": "real",
        "VARCHAR(9)[LOB]": "text",
        "BOOLEAN[SB1]": "bool",
        "BINARY(8)[LOB]": None,
        "DATE[SB4]": None,
        "VARIANT[LOB]": None,
        "TIMESTAMP_NTZ(9)[SB8]": None,
    },
    "databricks": {
        "tinyint": "whole",
        "smallint": "whole",
        "int": "whole",
        "bigint": "whole",
        "float": "real",
        "double": "real",
        "decimal(10,2)": "real",
        "string": "text",
        "string collate UTF8_LCASE": None,
        "boolean": "bool",
        "binary": None,
        "date": None,
        "timestamp": None,
    },
    "bigquery": {
        "123": "whole",
        "-9223372036854775808": "whole",
        "123.0": "real",
        "-1.5e-07": "real",
        "123e+10": "real",
        'CAST("nan" AS FLOAT64)': "real",
        'NUMERIC "123.0"': "real",
        'BIGNUMERIC "123.0"': "real",
        '"abc"': "text",
        '"12"': "text",
        "'a\"b'": "text",
        '"two\\nlines"': "text",
        "true": "bool",
        'b"abc"': None,
        'DATE "2011-02-03"': None,
        'TIMESTAMP "2011-02-03 04:05:06+00"': None,
        "JSON '{\"a\":1}'": None,
        "[1, 2]": None,
        "(1, 2)": None,
    },
}


@pytest.mark.parametrize("dialect", DOCUMENTED_TYPES)
def test_types_are_told_apart_by_how_they_are_shown(dialect):
    """Each documented type holds one kind, or none; whole numbers are numbers too."""
    spoken = DIALECTS[dialect]
    matches = re.fullmatch if dialect == "snowflake" else re.search
    for shown, holds in DOCUMENTED_TYPES[dialect].items():
        for kinds in (("bool",), ("text",), ("whole",), ("whole", "real"), ("whole", "text")):
            condition = spoken.holds_other("c", kinds)
            [pattern] = re.findall(r"(\^\(.*\)\$)", condition)
            assert (matches(pattern, shown) is not None) == (holds in kinds), (shown, kinds)


# ---------------------------------------------------------------------------------------------------------
# Every dialect


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_text_is_sql_of_its_dialect(dialect):
    """Of policies of several kinds, the decision and the probabilities.

    The columns are read back as they were named.
    """
    for name in ("two columns", "predicted text", "hostile groups", "text", "groups of truth values"):
        found = find(name)
        for probabilities in {False, name == "text"}:
            text = found.policy.to_sql(dialect, **found.roles, with_proba=probabilities)
            tree = sqlglot.parse_one(f"SELECT {text} FROM people", dialect=dialect)
            assert isinstance(tree, sqlglot.exp.Select)
            named = {column.name for column in tree.find_all(sqlglot.exp.Column)}
            assert named == set(found.used()) - {"row"}


def unquoted(text, mark, escapes, doubles):
    """What a quoted text means: backslashes escape, or a mark stands twice; by the documentation, letter by letter."""
    assert text[0] == text[-1] == mark
    letters, rest = [], iter(text[1:-1])
    for letter in rest:
        if letter == "\\" and escapes:
            following = next(rest)
            if following == "x":
                letters.append(chr(int(next(rest) + next(rest), 16)))
            else:
                assert following in "\\'`nr", following  # such as mean the same to all that escape
                letters.append({"n": "\n", "r": "\r"}.get(following, following))
            continue
        if letter == mark:
            assert doubles
            assert next(rest) == mark
        assert letter not in "\n\r" or doubles, "GoogleSQL ends such a text at the end of the line"
        letters.append(letter)
    return "".join(letters)


TEXTS = [*HOSTILE, "", "a\r\nb", "\\\\", "''", "\\x41", "e\u0301", "\t", "a" * 9]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_and_names_are_quoted(text):
    """By the rules that each documents; a zero byte too, where there can be one."""
    backslash = {"snowflake": (True, True), "bigquery": (True, False), "duckdb": (False, True)}
    for dialect, (escapes, doubles) in backslash.items():
        spoken = DIALECTS[dialect]
        assert unquoted(spoken.quote_value(text), "'", escapes, doubles) == text
        if dialect == "bigquery":
            assert unquoted(spoken.quote_name(text), "`", True, False) == text
            assert unquoted(spoken.quote_value(f"{text}\0"), "'", True, False) == f"{text}\0"
        else:
            assert unquoted(spoken.quote_name(text), '"', False, True) == text
    written = DIALECTS["postgres"].quote_value(text)
    assert unquoted(written.removeprefix("E"), "'", written.startswith("E"), True) == text
    assert ("\\" in text) == written.startswith("E")
    assert unquoted(DIALECTS["postgres"].quote_name(text), '"', False, True) == text
    for dialect in ("spark", "databricks"):
        written = DIALECTS[dialect].quote_value(text)
        in_bytes = re.fullmatch(r"decode\(unhex\('([0-9a-f]*)'\), 'UTF-8'\)", written)
        assert (
            bytes.fromhex(in_bytes[1]).decode() if in_bytes else unquoted(written, "'", False, True)
        ) == text
        assert in_bytes or not set(text) & set("\\'$")
        if "${" not in text:
            assert unquoted(DIALECTS[dialect].quote_name(text), "`", False, True) == text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_numbers_are_64_bit_floats(dialect):
    """Every literal reads back as the very number, and is of the type of the columns."""
    for value in (0.1, 1 / 3, 2.0**52, 1e-300, 5e-324, 1.7976931348623157e308, 0.466552734375):
        text = DIALECTS[dialect].write_number(value)
        [number] = re.findall(r"[0-9.]+e-?[+0-9]+", text)
        assert float(number) == value
        assert ("::" in text) == (dialect in ("postgres", "snowflake"))


def test_large_whole_numbers_are_literals():
    """Beyond 63 bits BigQuery's are decimals; all others take them as they are."""
    for dialect, spoken in DIALECTS.items():
        large = spoken.quote_value(2**63)
        assert large == ("NUMERIC '9223372036854775808'" if dialect == "bigquery" else "9223372036854775808")
        assert spoken.quote_value(2**63 - 1) == "9223372036854775807"
        assert spoken.quote_value(-7) == "-7"


def test_the_tables_of_dialects_agree():
    """The type that editors see and the table name the same ones, in the same order."""
    assert list(get_args(SqlDialect)) == list(DIALECTS)
    assert all(DIALECTS[dialect].name == dialect for dialect in DIALECTS)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("oracle", "Choose one of 'duckdb', 'spark', 'databricks', 'postgres', 'snowflake', 'bigquery'."),
        ("postgresql", "Did you mean 'postgres'? There are 'duckdb', "),
        ("Snowflake", "Did you mean 'snowflake'?"),
        ("big query", "Did you mean 'bigquery'?"),
        ("", "Choose one of"),
        (None, "Choose one of"),
        (3, "Choose one of"),
        (["duckdb"], "Choose one of"),
    ],
)
def test_an_unknown_dialect_is_refused(name, remedy, refuses):
    """Also by to_sql; with all names, and the one that may be meant."""
    with refuses(DataError, f"There is no dialect {name!r}.", remedy=remedy):
        dialect_of(name)
    with refuses(DataError, f"There is no dialect {name!r}.", remedy=remedy):
        find("two columns").policy.to_sql(name, **find("two columns").roles)


def test_a_zero_byte_has_no_place_in_postgres(refuses):
    """Neither in a name nor in a text."""
    spoken = DIALECTS["postgres"]
    for quote in (spoken.quote_name, spoken.quote_value):
        with refuses(DataError, "zero byte", remedy="otherwise"):
            quote("a\0b")


# ---------------------------------------------------------------------------------------------------------
# The test itself


@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_the_computation_sees_what_is_wrong(dialect):
    """Other digits, another salt, a literal that is no float, a function or a comparison that is not known."""
    spoken = DIALECTS[dialect]
    right = spoken.uniform(SALTS[0], spoken.quote_name("k"))
    u = Query(right, dialect, {"k": str}).row({"k": "person 7"})
    changes = {"13": "12", SALTS[0]: SALTS[1], "4503599627370496.0": "2251799813685248.0"}
    for part, other in changes.items():
        wrong = right.replace(part, other)
        assert wrong != right
        assert Query(wrong, dialect, {"k": str}).row({"k": "person 7"}) != u
    with pytest.raises(NotImplementedError):
        Query(right.replace("LEFT(", "RIGHT(").replace("substring(", "lpad("), dialect, {"k": str})
    with pytest.raises(TypeError, match="compared"):
        Query(f"{spoken.quote_name('k')} = 'a'", dialect, {"k": int}).row({"k": 1})
    if dialect == "snowflake":
        with pytest.raises(AssertionError):
            Query('CAST("k" AS DOUBLE) / 1.5e0', dialect, {"k": float}).row({"k": 1.0})


def test_kinds_of_groups():
    """What SQL compares as Python does; mixed ones have none."""
    assert kinds_alike([True, False]) == ("bool",)
    assert kinds_alike(["a"]) == ("text",)
    assert kinds_alike([1, 2.5]) == ("whole", "real")
    assert kinds_alike([2**60]) == ("whole",)
    assert kinds_alike([1, "a"]) == kinds_alike([1.0, float("inf")]) == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_error_is_a_constant(dialect):
    """A database that computes constants before it reads a row would raise a message that names no column."""
    found = case(sees_group=False, gap=1.0, roles={"key": None})
    text = found.policy.to_sql(dialect, **found.roles)
    raised = [line for line in text.splitlines() if "felicific: " in line]
    assert raised
    assert all(DIALECTS[dialect].quote_name("p0") in line for line in raised)
