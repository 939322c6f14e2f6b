"""The files that a command reads, as tables: CSV, Parquet and DuckDB."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from felicific._tables.duckdb import connect, read_parquet
from felicific._tables.memory import check_columns
from felicific.cli.documents import what_is
from felicific.exceptions import DataError


@dataclass(frozen=True)
class Source:
    """A table in a file, of which nothing is read before it is asked for.

    Attributes
    ----------
    path : str
        Where it is.
    relation : DuckDB relation
        All of its rows.
    connection : DuckDB connection
        Kept alive as long as the relation is needed.
    """

    path: str
    relation: Any
    connection: Any

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.relation.columns)

    def check(self, **options: str | Iterable[str] | None) -> None:
        """Refuse a column that is not there, naming the option and the nearest names."""
        for option, named in options.items():
            names = [named] if isinstance(named, str) else list(named or ())
            check_columns(dict.fromkeys(self.columns, ()), names, f"--{option}")

    def check_number(self, column: str, option: str) -> None:
        """Refuse a column of text, showing one of its values."""
        chosen = self.select([column])
        first = chosen.check_rows()
        if str(chosen.relation.types[0]) == "VARCHAR":
            raise DataError(
                f"The column {column!r} of --{option} holds text, such as {first[0][0]!r}.",
                "Write numbers from 0 to 1, with a decimal point.",
            )

    def check_rows(self) -> list[Any]:
        """Refuse a file without rows; the first one."""
        first = self.relation.limit(1).fetchall()
        if not first:
            raise _no_rows(self.path)
        return list(first)

    def select(self, names: Iterable[str]) -> Source:
        """Only these columns, each once."""
        import duckdb

        wanted = [duckdb.ColumnExpression(name) for name in dict.fromkeys(names)]
        return replace(self, relation=self.relation.select(*wanted))

    def complement(self, column: str) -> tuple[Source, str]:
        """Add one minus a column; also the new column's name."""
        import duckdb

        name = f"1 - {column}"
        while name in self.columns:
            name += "'"
        more = (duckdb.ConstantExpression(1.0) - duckdb.ColumnExpression(column)).alias(name)
        return replace(self, relation=self.relation.select(duckdb.StarExpression(), more)), name

    def filled(self, columns: Sequence[str], name: str) -> Source:
        """With a name in the place of what is missing in some columns, which are text then."""
        import duckdb

        if not name.strip():
            raise DataError("--missing-group is empty.", "Say what to call people whose group is missing.")
        missing = duckdb.ConstantExpression(name)
        each = [
            duckdb.CoalesceOperator(duckdb.ColumnExpression(one).cast("VARCHAR"), missing).alias(one)
            if one in columns
            else duckdb.ColumnExpression(one)
            for one in self.columns
        ]
        return replace(self, relation=self.relation.select(*each))

    def joined(self, column: str, names: Mapping[str, str]) -> tuple[Source, str]:
        """Add a column in which some values are called otherwise, all as text; also its name."""
        import duckdb

        name = joined_name(column)
        if name in self.columns:
            raise DataError(f"The file has a column {name!r} already.", "Rename it, or leave --join out.")
        text = duckdb.ColumnExpression(column).cast("VARCHAR")
        called = text
        for value, new in names.items():
            called = duckdb.CaseExpression(
                text == duckdb.ConstantExpression(value), duckdb.ConstantExpression(new)
            ).otherwise(called)
        more = called.alias(name)
        return replace(self, relation=self.relation.select(duckdb.StarExpression(), more)), name

    def distinct(self, column: str) -> list[Any]:
        """The distinct values of a column that are not missing, sorted."""
        found = [row[0] for row in self.select([column]).relation.distinct().fetchall()]
        return sorted((value for value in found if value is not None), key=lambda v: (type(v).__name__, v))

    def read(self, *, pandas: bool) -> Any:
        """The rows as an Arrow table, or as a dataframe of pandas for functions of the user's."""
        table = self.relation.to_arrow_table()
        if table.num_rows == 0:
            raise _no_rows(self.path)
        return table.to_pandas() if pandas else table


def joined_name(column: str) -> str:
    """What a column of the group is called whose groups were joined."""
    return f"{column}, joined"


def _no_rows(path: str) -> DataError:
    return DataError(f"{path!r} has no rows.", "Pass a file with at least one.")


def open_source(path: str, table: str | None = None, text: Sequence[str] = ()) -> Source:
    """Open a CSV, Parquet or DuckDB file; the columns ``text`` of a CSV are taken as they are written."""
    kind = _kind(path)
    if kind != "duckdb" and table is not None:
        raise DataError(f"{path!r} is one table, so --table makes no sense.", "Leave --table out.")
    if kind == "duckdb":
        connection = connect(path, read_only=True)
        return Source(path, _find_table(connection, path, table), connection)
    connection = connect()
    if kind == "parquet":
        return Source(path, read_parquet(connection, _names(path)), connection)
    return Source(path, _read_csv(connection, path, text), connection)


#: What must hold of every value for DuckDB's guess of a column's type, made from the first rows, to be right. Without
#: it 2.5 in a late row would be rounded to an integer, 01 would be 1, and a group F or a label "no" would be False.
_GUESSES = {
    "BIGINT": "try_cast({0} as bigint) = try_cast({0} as double) and not regexp_matches({0}, '^[-+]?0[0-9]')",
    "DOUBLE": "try_cast({0} as double) is not null and not regexp_matches({0}, '^[-+]?0[0-9]')",
    "BOOLEAN": "lower({0}) in ('true', 'false')",
}


def _read_csv(connection: Any, path: str, text: Sequence[str]) -> Any:
    """A CSV whose types are those of all of its rows; the columns ``text`` as they are written."""
    import duckdb

    try:
        options = {"header": True, "union_by_name": _check_headers(connection, path)}
        guess = connection.read_csv(path, **options)
        _check_split(path, guess.columns)
        types = dict(zip(guess.columns, map(str, guess.types), strict=True))
        doubtful = [name for name, kind in types.items() if kind in _GUESSES and name not in text]
        changed = {name: "VARCHAR" for name in text if name in types}
        # Of numbers beyond 64 bits every digit counts: they are no amounts.
        changed |= {name: "VARCHAR" for name, kind in types.items() if kind in ("HUGEINT", "UHUGEINT")}
        if doubtful:
            written = connection.read_csv(path, **options, dtype=dict.fromkeys(types, "VARCHAR"))
            tests = [_exceptions(name, kind) for name in doubtful for kind in (types[name], "DOUBLE")]
            found = iter(written.aggregate(", ".join(tests)).fetchall()[0])
            for name, wrong, no_number in zip(doubtful, found, found, strict=True):
                if wrong:
                    changed[name] = "VARCHAR" if no_number else "DOUBLE"
        return connection.read_csv(path, **options, dtype=changed) if changed else guess
    except duckdb.InvalidInputException as error:
        if not re.search("not utf-8|invalid unicode", str(error), re.IGNORECASE):
            raise
        raise DataError(
            f"{path!r} is not written in UTF-8.",
            "Save it again as UTF-8; iconv -f latin1 -t utf-8 may do it.",
        ) from error


def _exceptions(name: str, kind: str) -> str:
    """SQL that counts the values of a column which are not written like a type."""
    quoted = '"' + name.replace('"', '""') + '"'
    return f"count(*) filter (where {quoted} is not null and not coalesce({_GUESSES[kind].format(quoted)}, false))"


def _check_split(path: str, columns: Sequence[str]) -> None:
    if len(columns) == 1 and any(sign in columns[0] for sign in ",;|\t"):
        raise DataError(
            f"{path!r} cannot be split into columns: not every row has as many values as its first, {columns[0]!r}.",
            "Repair the rows that have more or fewer.",
        )


def _check_headers(connection: Any, path: str) -> bool:
    """Refuse files of which one lacks a column of the first; whether columns stand in another order in some file."""
    headers = {file: _header(connection, file) for file in _names(path)}
    first, names = next(iter(headers.items()))
    for file, others in headers.items():
        missing = [name for name in names if name not in others] or [n for n in others if n not in names]
        if missing:
            raise DataError(
                f"Of {first!r} and {file!r}, one has no column {missing[0]!r}.",
                "Give all files the same columns.",
            )
    return any(others != names for others in headers.values())


def _header(connection: Any, path: str) -> list[str]:
    """Names of the columns of a file. One that two have is refused: DuckDB would call the second one otherwise."""
    header = connection.read_csv(glob.escape(path), header=False, all_varchar=True).limit(1).fetchall()
    names = [str(name) for name in (header[0] if header else ()) if name is not None]
    folded = [name.casefold() for name in names]
    twice = [name for name, same in zip(names, folded, strict=True) if folded.count(same) > 1]
    if twice:
        listed = " and ".join(map(repr, twice))
        raise DataError(
            f"Columns of {path!r} have the same name: {listed}.",
            "Give each a name of its own; upper and lower case are not told apart.",
        )
    return names


def _names(path: str) -> list[str]:
    """The files that a path or a pattern names."""
    return sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]


def _kind(path: str) -> str:
    """What a file holds, by its first bytes."""
    names = _names(path)
    if not names:
        raise DataError(f"No file is called {path!r}.", "Check the pattern.")
    if os.path.isdir(names[0]):
        raise DataError(f"{names[0]!r} is a folder.", "Name a file, or a pattern such as 'folder/*.parquet'.")
    with open(names[0], "rb") as stream:
        head = stream.read(4096)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if not head:
        raise DataError(f"{names[0]!r} is empty.", "Pass a CSV, Parquet or DuckDB file.")
    packed = head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))  # gzip, zstd: DuckDB unpacks them
    if not packed and (b"\0" in head or head.lstrip()[:1] in (b"{", b"[", b"<")):
        held = what_is(names[0])
        said = f"holds {held}, and is not a table of people" if held else "is not a table"
        raise DataError(f"{names[0]!r} {said}.", "Pass a CSV, Parquet or DuckDB file.")
    return "csv"


def _find_table(connection: Any, path: str, table: str | None) -> Any:
    names = [row[0] for row in connection.sql("select table_name from information_schema.tables").fetchall()]
    if table is None and len(names) == 1:
        table = names[0]
    if table is None or table not in names:
        listed = ", ".join(map(repr, sorted(names))) or "no tables"
        problem = "holds several tables" if table is None else f"has no table {table!r}"
        raise DataError(f"{path!r} {problem}.", f"It has {listed}; name one with --table.")
    quoted = table.replace('"', '""')
    return connection.table(f'"{quoted}"')
