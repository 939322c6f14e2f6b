"""SQL of warehouses that cannot be run here, computed row by row from the parse tree of the very text.

sqlglot reads the text in its dialect; every function means what the warehouse's documentation says, no more:
what is not listed here is refused, and so is a comparison of different types, which each warehouse casts in a
way of its own.

Snowflake, https://docs.snowflake.com/en/sql-reference/
    functions/sha2 (SHA2_HEX: hexadecimal text of the digest), functions/to_decimal and sql-format-models
    (TO_NUMBER with 'X' for every hexadecimal digit), functions/concat (NULL if any is), functions/case
    (conditions in sequence, evaluation stops), functions/regexp_like (the whole text has to match),
    functions/system_typeof (the type and how it is stored), collation ('utf8' compares letter by letter),
    data-types-text (backslashes escape), data-types-numeric (NaN is larger than any number; constants with an
    exponent are fixed-point, see functions/system_typeof)
BigQuery, https://cloud.google.com/bigquery/docs/reference/standard-sql/
    hash_functions#sha256 (BYTES), string_functions#to_hex (lower case), conversion_functions#cast_as_integer
    ('0x...' is hexadecimal), string_functions#concat (NULL if any is), string_functions#format_string (%T is a
    literal), string_functions#regexp_contains (a part may match), string_functions#collate ('' removes a
    collation), conditional_expressions (evaluated up to the chosen output), debugging_functions#error, lexical
    (backslashes escape in texts and names), data-types#floating_point_types (comparisons with NaN are false)
Databricks, https://docs.databricks.com/en/sql/language-manual/
    functions/sha2 (hexadecimal text), functions/conv, functions/concat (NULL if any is), functions/raise_error,
    functions/typeof, functions/regexp_like (a part may match), functions/unhex, functions/decode_cs,
    data-types/double-type (constants with an exponent are doubles), sql-ref-nan-semantics (NaN is larger than
    any number)
"""

import hashlib
import math
import operator
import re
from decimal import Decimal
from itertools import pairwise

import sqlglot
from sqlglot import exp


class SqlError(Exception):
    """What a warehouse would raise."""


#: How each warehouse shows the type of a column that holds such values.
SHOWN = {
    "snowflake": {
        bool: "BOOLEAN[SB1]",
        int: "NUMBER(38,0)[SB8]",
        float: "FLOAT[DOUBLE]",
        Decimal: "NUMBER(12,7)[SB8]",
        str: "VARCHAR(16777216)[LOB]",
    },
    "databricks": {bool: "boolean", int: "bigint", float: "double", Decimal: "decimal(12,7)", str: "string"},
}

#: What a part of a regular expression has to do with the text.
MATCHES = {"snowflake": re.fullmatch, "bigquery": re.search, "databricks": re.search}

TESTS = {
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.EQ: operator.eq,
}
ARITHMETIC = {exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul, exp.Div: operator.truediv}


class Query:
    """The expressions of a select list, to be computed for one row after the other."""

    def __init__(self, text, dialect, types):
        tree = sqlglot.parse_one(f"SELECT {text} FROM people", dialect=dialect)
        assert isinstance(tree, exp.Select), tree
        self.dialect, self.types = dialect, types
        self.columns = [
            (item.alias, self.compiled(item.this if isinstance(item, exp.Alias) else item))
            for item in tree.expressions
        ]

    def row(self, person):
        """The value of every expression, for a dict of columns."""
        return [compute(person) for _, compute in self.columns]

    def compiled(self, node):
        """A function of a person."""
        for kind in type(node).__mro__:
            make = getattr(self, f"_{kind.__name__.lower()}", None)
            if make is not None:
                return make(node)
        if type(node) in TESTS:
            return self._tested(node)
        if type(node) in ARITHMETIC:
            return self._computed(node)
        raise NotImplementedError(f"{type(node).__name__} in {self.dialect}: {node.sql(self.dialect)[:80]}")

    def strict(self, function, *nodes):
        """A function that is NULL where one of its arguments is."""
        arguments = [self.compiled(node) for node in nodes]

        def compute(person):
            values = [argument(person) for argument in arguments]
            return None if any(value is None for value in values) else function(*values)

        return compute

    # Columns and literals

    def _column(self, node):
        assert node.this.quoted, node  # else a warehouse would fold the case of letters
        name = node.name
        return lambda person: person[name]

    def _literal(self, node):
        text = node.this
        if node.is_string:
            value = text
        elif text.isdigit():
            value = int(text)
        else:
            value = Decimal(text) if self.dialect == "snowflake" else float(text)
        return lambda person: value

    def _rawstring(self, node):
        return lambda person: node.this

    def _boolean(self, node):
        return lambda person: bool(node.this)

    def _null(self, node):
        return lambda person: None

    def _neg(self, node):
        return self.strict(operator.neg, node.this)

    def _paren(self, node):
        return self.compiled(node.this)

    # Conditions

    def _case(self, node):
        assert node.this is None
        branches = [(self.compiled(one.this), self.compiled(one.args["true"])) for one in node.args["ifs"]]
        default = self.compiled(node.args["default"])

        def compute(person):
            for condition, result in branches:
                if condition(person) is True:
                    return result(person)
            return default(person)

        return compute

    def _and(self, node):
        left, right = self.compiled(node.left), self.compiled(node.right)

        def compute(person):
            first = left(person)
            if first is False:
                return False
            second = right(person)
            return False if second is False else None if None in (first, second) else True

        return compute

    def _or(self, node):
        left, right = self.compiled(node.left), self.compiled(node.right)

        def compute(person):
            first = left(person)
            if first is True:
                return True
            second = right(person)
            return True if second is True else None if None in (first, second) else False

        return compute

    def _not(self, node):
        return self.strict(operator.not_, node.this)

    def _is(self, node):
        assert isinstance(node.expression, exp.Null)
        value = self.compiled(node.this)
        return lambda person: value(person) is None

    def _tested(self, node):
        test, largest = TESTS[type(node)], self.dialect != "bigquery"

        def compare(left, right):
            numbers = [type(value) in (int, float) for value in (left, right)]
            if not all(numbers) and type(left) is not type(right):
                raise TypeError(f"{left!r} is compared with {right!r}")
            if largest and all(numbers):  # NaN is the largest number, and equals itself
                left, right = ((value != value, 0.0 if value != value else value) for value in (left, right))
            return test(left, right)

        return self.strict(compare, node.left, node.right)

    def _coalesce(self, node):
        choices = [self.compiled(item) for item in (node.this, *node.expressions)]
        return lambda person: next((v for v in (choice(person) for choice in choices) if v is not None), None)

    # Numbers

    def _computed(self, node):
        compute = ARITHMETIC[type(node)]

        def numbers(left, right):
            assert {type(left), type(right)} <= {int, float}, (left, right)
            assert float in (type(left), type(right)), "whole numbers may be divided as such"
            if isinstance(node, exp.Div) and right == 0:
                raise SqlError("division by zero")
            return compute(left, right)

        return (
            self.strict(numbers, node.left, node.right)
            if not isinstance(node, exp.Add)
            else self._counted(node)
        )

    def _counted(self, node):
        """Whole numbers may be added."""

        def add(left, right):
            assert {type(left), type(right)} <= {int, float}, (left, right)
            return left + right

        return self.strict(add, node.left, node.right)

    def _abs(self, node):
        return self.strict(abs, node.this)

    def _greatest(self, node):
        def greatest(*values):
            assert not any(math.isnan(value) for value in values)
            return max(values)

        return self.strict(greatest, node.this, *node.expressions)

    def _cast(self, node):
        kind, dialect = node.args["to"].sql(dialect=self.dialect), self.dialect
        known = {
            "snowflake": {"VARCHAR": _text, "DOUBLE": float, "DECIMAL(38, 0)": _number, "BOOLEAN": bool},
            "bigquery": {"STRING": _text, "FLOAT64": float, "INT64": _hexadecimal},
            "databricks": {"STRING": _text, "DOUBLE": float},
        }
        return self.strict(known[dialect][kind], node.this)

    def _tonumber(self, node):
        form = node.args["format"].this
        assert self.dialect == "snowflake"
        assert set(form) == {"X"}

        def number(text):
            if len(text) > len(form) or not re.fullmatch("[0-9a-fA-F]+", text):
                raise SqlError(f"Can't parse {text!r} as number with format {form!r}")
            return int(text, 16)

        return self.strict(number, node.this)

    def _array(self, node):
        items = [self.compiled(item) for item in node.expressions]
        values = [item({}) for item in items]  # literals
        assert all(type(value) is float for value in values)
        return lambda person: values

    def _bracket(self, node):
        assert node.args.get("offset") == 1, "counted from 1"
        assert self.dialect == "bigquery"

        def element(values, place):
            if not 1 <= place <= len(values):
                raise SqlError("Array index is out of bounds")
            return values[place - 1]

        return self.strict(element, node.this, node.expressions[0])

    def _rangebucket(self, node):
        def bucket(at, edges):
            assert all(low < high for low, high in pairwise(edges))
            return sum(edge <= at for edge in edges)

        return self.strict(bucket, node.this, node.expression)

    # Texts

    def _concat(self, node):
        def join(*parts):
            assert all(type(part) is str for part in parts), parts
            return "".join(parts)

        return self.strict(join, *node.expressions)

    def _replace(self, node):
        return self.strict(str.replace, node.this, node.expression, node.args["replacement"])

    def _chr(self, node):
        return self.strict(chr, *node.expressions)

    def _left(self, node):
        return self.strict(lambda text, n: text[:n], node.this, node.expression)

    def _substring(self, node):
        return self.strict(
            lambda text, start, n: text[start - 1 : start - 1 + n],
            node.this,
            node.args["start"],
            node.args["length"],
        )

    def _sha2(self, node):
        assert node.args["length"].this == "256"
        assert self.dialect in ("snowflake", "databricks")
        return self.strict(lambda text: hashlib.sha256(text.encode()).hexdigest(), node.this)

    def _sha2digest(self, node):
        assert node.args["length"].this == "256"
        assert self.dialect == "bigquery"
        return self.strict(lambda text: hashlib.sha256(text.encode()).digest(), node.this)

    def _lowerhex(self, node):
        return self.strict(bytes.hex, node.this)

    def _unhex(self, node):
        return self.strict(bytes.fromhex, node.this)

    def _decode(self, node):
        assert node.args["charset"].this == "UTF-8"
        return self.strict(bytes.decode, node.this)

    def _collate(self, node):
        assert node.expression.this == {"snowflake": "utf8", "bigquery": ""}[self.dialect]

        def same(text):
            assert type(text) is str, text
            return text

        return self.strict(same, node.this)

    # Types and errors

    def _regexplike(self, node):
        matches = MATCHES[self.dialect]
        return self.strict(
            lambda text, pattern: matches(pattern, text) is not None, node.this, node.expression
        )

    def _typeof(self, node):
        assert self.dialect == "databricks"
        return self._shown(node.this)

    def _shown(self, column):
        kind = SHOWN[self.dialect][self.types[column.name]]
        return lambda person: kind

    def _format(self, node):
        assert self.dialect == "bigquery"
        assert node.this.this == "%T"
        value = self.compiled(node.expressions[0])
        return lambda person: _google_literal(value(person))

    def _anonymous(self, node):
        name, arguments = node.name, node.expressions
        if (self.dialect, name) == ("snowflake", "SYSTEM$TYPEOF"):
            return self._shown(arguments[0])
        if (self.dialect, name) == ("databricks", "conv"):
            assert [item.this for item in arguments[1:]] == ["16", "10"]
            return self.strict(lambda text: str(int(text, 16)), arguments[0])
        assert (self.dialect, name) in (("bigquery", "ERROR"), ("databricks", "raise_error")), name
        message = self.compiled(arguments[0])

        def fail(person):
            raise SqlError(message(person))

        return fail


def _text(value):
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _number(value):
    if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?\d+\s*", value):
        raise SqlError(f"Numeric value '{value}' is not recognized")
    return int(value)


def _hexadecimal(text):
    assert text.startswith("0x")
    return int(text, 16)


def _google_literal(value):
    """As %T writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f'NUMERIC "{value}"'
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'CAST("{value}" AS FLOAT64)'
    if isinstance(value, str):
        mark = "'" if '"' in value and "'" not in value else '"'
        return mark + value.replace("\\", "\\\\").replace("\n", "\\n").replace(mark, "\\" + mark) + mark
    assert isinstance(value, int), value
    return str(value)
