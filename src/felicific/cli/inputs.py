"""What a command reads: files as tables, and texts as happiness, gaps and classes."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from felicific._problem.expressions import Expression, is_name
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Happiness
from felicific._problem.requirements import Budget, Floor
from felicific._tables.memory import check_columns
from felicific.exceptions import DataError, HappinessError

#: A function in a file: everything before the last colon is the file.
_IN_A_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")


# ---------------------------------------------------------------------------------------------------------
# Files


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


def _no_rows(path: str) -> DataError:
    return DataError(f"{path!r} has no rows.", "Pass a file with at least one.")


def open_source(path: str, table: str | None = None, text: Sequence[str] = ()) -> Source:
    """Open a CSV, Parquet or DuckDB file; the columns ``text`` of a CSV are taken as they are written."""
    import duckdb

    kind = _kind(path)
    if kind != "duckdb" and table is not None:
        raise DataError(f"{path!r} is one table, so --table makes no sense.", "Leave --table out.")
    if kind == "duckdb":
        connection = duckdb.connect(path, read_only=True)
        return Source(path, _find_table(connection, path, table), connection)
    connection = duckdb.connect()
    if kind == "parquet":
        return Source(path, connection.read_parquet(path), connection)
    return Source(path, _read_csv(connection, path, text), connection)


#: What must hold of every value for DuckDB's guess of a column's type, made from the first rows, to be right. Without
#: it 2.5 in a late row would be rounded to an integer, and a group F or a label "no" would be False.
_GUESSES = {
    "BIGINT": "try_cast({0} as bigint) = try_cast({0} as double)",
    "DOUBLE": "try_cast({0} as double) is not null",
    "BOOLEAN": "lower({0}) in ('true', 'false')",
}


def _read_csv(connection: Any, path: str, text: Sequence[str]) -> Any:
    """A CSV whose types are those of all of its rows; the columns ``text`` as they are written."""
    import duckdb

    try:
        guess = connection.read_csv(path, header=True)
        _check_split(path, guess.columns)
        _check_names(connection, path)
        types = dict(zip(guess.columns, map(str, guess.types), strict=True))
        doubtful = [name for name, kind in types.items() if kind in _GUESSES and name not in text]
        changed = {name: "VARCHAR" for name in text if name in types}
        if doubtful:
            written = connection.read_csv(path, header=True, dtype=dict.fromkeys(types, "VARCHAR"))
            tests = [_exceptions(name, kind) for name in doubtful for kind in (types[name], "DOUBLE")]
            found = iter(written.aggregate(", ".join(tests)).fetchall()[0])
            for name, wrong, no_number in zip(doubtful, found, found, strict=True):
                if wrong:
                    changed[name] = "VARCHAR" if no_number else "DOUBLE"
        return connection.read_csv(path, header=True, dtype=changed) if changed else guess
    except duckdb.InvalidInputException as error:
        if "utf-8" not in str(error):
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


def _check_names(connection: Any, path: str) -> None:
    """Refuse a name that two columns have: DuckDB would call the second one otherwise."""
    header = connection.read_csv(path, header=False, all_varchar=True).limit(1).fetchall()
    names = [str(name) for name in (header[0] if header else ()) if name is not None]
    folded = [name.casefold() for name in names]
    twice = [name for name, same in zip(names, folded, strict=True) if folded.count(same) > 1]
    if twice:
        listed = " and ".join(map(repr, twice))
        raise DataError(
            f"Columns of {path!r} have the same name: {listed}.",
            "Give each a name of its own; upper and lower case are not told apart.",
        )


def _kind(path: str) -> str:
    """What a file holds, by its first bytes."""
    names = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
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
        raise DataError(f"{names[0]!r} is not a table.", "Pass a CSV, Parquet or DuckDB file.")
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


# ---------------------------------------------------------------------------------------------------------
# Happiness, loss, gaps


def read_function(text: str, option: str) -> Any:
    """Return a criterion or an expression as its text; what ``module.py:name`` names, as the object itself."""
    if text in CRITERIA:
        return text
    found = _IN_A_FILE.fullmatch(text)
    return text if found is None else _load(found["path"], found["name"], option)


def _load(path: str, name: str, option: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    if not Path(path).is_file():
        raise DataError(f"--{option}: there is no file {path!r}.", "Name it as module.py:function.")
    spec = spec_from_file_location(Path(path).stem, path)
    assert spec is not None, "a file that ends in .py can be loaded"
    assert spec.loader is not None, "a file that ends in .py can be loaded"
    module = module_from_spec(spec)
    sys.path.insert(0, str(Path(path).parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise HappinessError(
            f"--{option}: {path!r} raised {type(error).__name__}: {error}.", "Repair it; does Python run it?"
        ) from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        raise HappinessError(f"--{option}: {path!r} has no {name!r}.", "Name a function that it defines.")
    return getattr(module, name)


def read_happiness(
    texts: Sequence[str],
    name: str | None = None,
    unit: str | None = None,
    among: str | None = None,
    bounds: str | None = None,
) -> Any:
    """Everything that ``--happiness``, ``--name``, ``--unit``, ``--among`` and ``--bounds`` say."""
    found = [read_function(text, "happiness") for text in texts]
    details: dict[str, Any] = {"name": name, "unit": unit, "among": among and read_function(among, "among")}
    details["bounds"] = bounds and tuple(_number(part, "bounds") for part in bounds.split(","))
    details = {what: value for what, value in details.items() if value is not None}
    if not details:
        return found if len(found) > 1 else found[0]
    if len(found) > 1 or found[0] in CRITERIA:
        raise HappinessError(
            f"--{next(iter(details))} belongs to one happiness, and there are several components.",
            "Write them as Happiness(...) in a file, and name it: --happiness module.py:components.",
        )
    if isinstance(found[0], Happiness):
        return replace(found[0], **details)
    return Happiness(found[0], **details)


def needed_columns(*objects: Any) -> set[str] | None:
    """Columns that expressions look at; None when a Python function is among them, which may look at any."""
    names: set[str] = set()
    for item in objects:
        if isinstance(item, dict | list | tuple):
            more = needed_columns(*(item.values() if isinstance(item, dict) else item))
        elif isinstance(item, Happiness):
            more = needed_columns(item.function, item.among)
        elif isinstance(item, str):
            more = set() if is_name(item) else needed_columns(Expression(item.strip()))
        elif isinstance(item, Expression):
            more = {str(name) for name in item.columns}
        else:
            more = (
                None if callable(item) and type(item).__module__ != "felicific._problem.happiness" else set()
            )
        if more is None:
            return None
        names |= more
    return names


def read_gap(texts: Sequence[str] | None) -> Any:
    """A number for all components, or one by name."""
    return _by_name(texts, "gap", _number)


def read_constraints(
    floors: Sequence[str] | None, budgets: Sequence[str] | None, happiness: Any
) -> list[Any]:
    """Floors and budgets; without a name they are of the only happiness."""

    def level(text: str, option: str) -> Any:
        return "today" if text == "today" and option == "floor" else _number(text, option)

    found: list[Any] = []
    for texts, option, make in (
        (floors, "floor", lambda what, limit: Floor(what, at_least=limit)),
        (budgets, "budget", lambda what, limit: Budget(what, at_most=limit)),
    ):
        limits = _by_name(texts, option, level)
        if limits is not None and not isinstance(limits, dict):
            limits = {_only_name(happiness, option): limits}
        found += [make(what, limit) for what, limit in (limits or {}).items()]
    return found


def _only_name(happiness: Any, option: str) -> str:
    single = happiness if isinstance(happiness, Happiness) else None
    if single is None and not isinstance(happiness, dict | list | tuple) and happiness not in CRITERIA:
        single = Happiness(happiness)
    if single is None:
        raise DataError(f"--{option} does not say of which happiness.", f"Write --{option} NAME=LEVEL.")
    return str(single.name)


def _by_name(texts: Sequence[str] | None, option: str, convert: Callable[[str, str], Any]) -> Any:
    if not texts:
        return None
    pairs = [text.rpartition("=") for text in texts]
    if len(pairs) == 1 and not pairs[0][1]:
        return convert(texts[0], option)
    if not all(sign for _, sign, _ in pairs):
        raise DataError(f"--{option} is given {len(texts)} times.", f"Write --{option} NAME=NUMBER.")
    return {name: convert(number, option) for name, _, number in pairs}


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--{option} is {text!r}, which is no number.", f"Write --{option} NUMBER.") from None


def read_class(text: str, classes: Sequence[Any], option: str) -> Any:
    """The class that is written like this."""
    found = [value for value in classes if str(value) == text]
    if not found:
        raise DataError(
            f"--{option}: there is no class {text!r}.", f"The classes are {', '.join(map(str, classes))}."
        )
    return found[0]


def read_classes(texts: Sequence[str], held: Sequence[Any]) -> list[Any]:
    """The classes that are written like this, of the type of those that the file holds."""
    missing = [value for value in held if str(value) not in texts]
    if missing:
        raise DataError(
            f"--class does not name {missing[0]!s}, which is there.", f"Add --class {missing[0]!s}."
        )
    found = {str(value): value for value in held}
    kind = type(held[0]) if held else str
    for text in dict.fromkeys(texts):
        if text in found:
            continue
        try:
            found[text] = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
        except (ArithmeticError, KeyError, TypeError, ValueError):
            raise DataError(
                f"--class {text} is not like {held[0]!s}, which is there.", "Write the classes alike."
            ) from None
    return list(found.values())


def read_proba(
    source: Source, texts: Sequence[str] | None, classes: Sequence[Any], favourable: Any
) -> tuple[Source, dict[Any, str] | None]:
    """Which column holds the probability of which class; a single column is that of the favourable one."""
    if not texts:
        return source, None
    if len(texts) == 1 and (texts[0] in source.columns or "=" not in texts[0]):
        source.check(proba=texts)
        source.check_number(texts[0], "proba")
        if len(classes) != 2:
            raise DataError(
                f"There are {len(classes)} classes ({', '.join(map(str, classes[:10]))}) and one column of "
                "probabilities.",
                "Name one for each: --proba CLASS=COLUMN.",
            )
        best = classes[-1] if favourable is None else favourable
        other = next(value for value in classes if value != best)
        source, complement = source.complement(texts[0])
        return source, {value: texts[0] if value == best else complement for value in (other, best)}
    found = {}
    for text in texts:
        name, sign, column = text.partition("=")
        if not sign:
            raise DataError(f"--proba {text} does not say of which class.", "Write --proba CLASS=COLUMN.")
        source.check(proba=column)
        source.check_number(column, "proba")
        found[read_class(name, classes, "proba")] = column
    missing = [value for value in classes if value not in found]
    if missing:
        raise DataError(
            f"There is no column for the class {missing[0]!s}.", f"Add --proba {missing[0]!s}=COLUMN."
        )
    return source, {value: found[value] for value in classes}
