"""Engines: tables that are not in memory, and the two things that are asked of them.

*Folds*: a function of some rows as an ordinary table in memory, applied to batch after batch (or partition by
partition, where the workers are), its results combined. *Decisions*: one more column.

What is particular to an engine stands in its own file, which nothing imports before there is such a table.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from felicific._tables.dialect import Dialect, kind_of
from felicific._tables.memory import (
    UnreadColumn,
    column_arrays,
    count_rows,
    refuse_missing_columns,
    take_column,
)
from felicific._tables.progress import attend, progress_line
from felicific._typing import Array, Table
from felicific.exceptions import DataError, EngineError, FelicificError

T = TypeVar("T")


@dataclass(frozen=True)
class BatchPlace:
    """Where some rows come from: the number of the first of them, and the partition if they are numbered within one."""

    start: int = 0
    partition: int | None = None

    def name(self, row: int) -> str:
        """Name a row by its position among these."""
        return f"{self.start + row}" + ("" if self.partition is None else f" of partition {self.partition}")


#: What is done with some rows in memory.
Step: TypeAlias = Callable[[Table, BatchPlace], T]

#: How two results of it become one.
Combine: TypeAlias = Callable[[T, T], T]


class Decisions(ABC):
    """What is decided on the rows of a table, as an engine must know it to add the decisions as a column."""

    #: What the columns are to them; its ``names`` are all that have a role.
    roles: Any

    @property
    @abstractmethod
    def classes(self) -> Array:
        """The decisions that there are; their type is that of the column."""

    @abstractmethod
    def decide(self, rows: Table) -> Array:
        """Decide on rows in memory."""

    @abstractmethod
    def sql(
        self, engine: Engine, dialect: Dialect, place: Callable[[str], str], ahead: tuple[str, ...] = ()
    ) -> str | None:
        """The decision as an expression, ``place`` saying how a column is written; None when there is none.

        What was computed :meth:`ahead` may be written in its place.
        There is none either where a column is of a type that SQL compares otherwise than Python.
        """

    def ahead(self, dialect: Dialect, place: Callable[[str], str]) -> tuple[str, ...]:
        """Expressions that the decision looks at more than once."""
        return ()

    @abstractmethod
    def columns(self, engine: Engine) -> tuple[str, ...] | None:
        """Columns that :meth:`decide` looks at, as arrays; None when it must see the library's own rows."""

    @property
    def sees_x(self) -> bool:
        """Whether functions of columns are a part of them, which want these as arrays."""
        return True

    @property
    def kind(self) -> str:
        """What the column holds: "bool", "whole", "unsigned" (whole numbers beyond 63 bits), "real" or "text"."""
        return kind_of(self.classes.tolist())

    def decide_batch(self, rows: Table) -> Array:
        """Decide on some rows; engines make an exception of their own out of the text of what is raised."""
        try:
            return self.decide(rows)
        except FelicificError as error:
            counted = f" (rows are counted within a batch of {count_rows(rows)})."
            raise ValueError(f"{error.problem.rstrip('.')}{counted} {error.remedy}") from error


class Engine(ABC):
    """A table that is not in memory.

    Attributes
    ----------
    names : list of str
        Names of the columns, in order.
    dtypes : list of narwhals dtypes
        Their types.
    """

    #: How messages call it.
    label: ClassVar[str]

    #: Whether names that differ by capital letters alone are one name to it.
    ignores_case: ClassVar[bool] = False

    #: How it writes SQL; None for an engine that speaks none.
    dialect: ClassVar[Dialect | None] = None

    def __init__(self, table: Table) -> None:
        self.table = table
        try:
            self.names, self.dtypes = self._schema()
        except Exception as error:
            raise self.failure(error) from error
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise DataError(
                f"The table has the column {', '.join(map(repr, repeated))} more than once.", "Rename one."
            )

    @property
    def ordered(self) -> bool:
        """Whether its rows stand in an order, that in which they came."""
        return True

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        schema = nw.from_native(self.table).collect_schema()
        return list(schema), list(schema.values())

    def index(self, name: Hashable, purpose: str) -> int:
        """Position of a column; one that is missing is an error that says what it is needed for."""
        refuse_missing_columns(self.names, [name], purpose)
        return self.names.index(name)

    def kind(self, name: Hashable, purpose: str) -> str:
        """What a column holds; see :func:`kind_of_type`."""
        return kind_of_type(self.dtypes[self.index(name, purpose)])

    def head(self, count: int) -> Table:
        """The first rows, with all columns, as a table in memory."""
        try:
            return self._head(count)
        except FelicificError:
            raise
        except Exception as error:
            raise self.failure(error) from error

    @abstractmethod
    def _head(self, count: int) -> Table:
        """The first rows, in the engine's own way."""

    @abstractmethod
    def fold(self, step: Step[T], combine: Combine[T], names: Sequence[Hashable]) -> T | None:
        """Apply ``step`` to all rows, some at a time, and combine what it returns; None when there are no rows."""

    @abstractmethod
    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """The table with the decisions as one more column; it stays lazy."""

    def wait_for(self, work: Callable[[], T]) -> T:
        """Wait for the engine; Ctrl-C stops it, and the terminal shows how far it is."""
        return attend(work, self.progress, self.stop)

    def progress(self) -> str:
        """How far the engine is, for the line on the terminal."""
        return f"{self.label} is summing"

    def stop(self) -> None:  # noqa: B027  # nothing to do where the engine hears of Ctrl-C itself or reads a batch
        """Stop what the engine is doing."""

    def failure(self, error: Exception) -> EngineError:
        """Say in our words that the engine failed."""
        text = " ".join(self._reason(error).split())
        return EngineError(
            f"{self.label} could not read the table ({type(error).__name__}: {text[:500]}).",
            "Is a file cut or of another format, or a column of another type than elsewhere? "
            "Nothing was computed from the rows before it.",
        )

    def _reason(self, error: Exception) -> str:
        """What the engine says, where it matters."""
        return str(error)


class BatchEngine(Engine):
    """An engine whose rows come into this process, batch after batch."""

    #: Rows per batch that is brought into memory, and its values at most: wide tables have fewer rows in one.
    batch_rows: ClassVar[int] = 2**19
    batch_values: ClassVar[int] = 2**24

    def rows_at_once(self, names: Sequence[Hashable]) -> int:
        """How many rows a batch of these columns has."""
        return max(1, min(self.batch_rows, self.batch_values // max(len(names), 1)))

    @abstractmethod
    def batches(self, names: Sequence[Hashable]) -> Iterator[Table]:
        """Some columns, batch by batch and in order, as tables in memory."""

    def fold(self, step: Step[T], combine: Combine[T], names: Sequence[Hashable]) -> T | None:
        """Apply ``step`` to every batch of rows and combine what it returns; None when there are no batches."""
        total, start = None, 0
        with progress_line() as line, closing(self._readable(names)) as tables:
            for table in tables:
                result = step(table, BatchPlace(start))
                total = result if total is None else combine(total, result)
                start += count_rows(table)
                line.say(f"{start:,} rows summed".__str__)
        return total

    def _readable(self, names: Sequence[Hashable]) -> Generator[Table]:
        """The batches; an engine's own failure becomes one of ours."""
        batches = self.batches(names)
        # At the end, and after Ctrl-C, a reader is closed: it may be a query that has not ended.
        with closing(batches) if isinstance(batches, Generator) else nullcontext():
            while True:
                try:
                    table = self.wait_for(partial(next, batches, None))
                except FelicificError:
                    raise
                except Exception as error:
                    raise self.failure(error) from error
                if table is None:
                    return
                yield table


#: Kinds of columns that hold numbers.
NUMERIC = ("bool", "whole", "real")


def kind_of_type(dtype: Any) -> str:
    """What a column of a type holds: "bool", "whole", "real", "text" or "other"."""
    import narwhals as nw

    if dtype == nw.Boolean:
        return "bool"
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "real"
    return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else "other"


# ---------------------------------------------------------------------------------------------------------
# What several engines share: rows that come as Arrow, and errors that travel back from workers


def arrow_rows(rows: Any, names: Sequence[Hashable]) -> Table:
    """Arrow rows as a table under the user's names."""
    import pyarrow as pa

    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    table = table.rename_columns([str(name) for name in names])
    for i, field in enumerate(table.schema):
        # As Python objects they would be slow; of whole ones, such as DuckDB's sums, every digit may count.
        if pa.types.is_decimal(field.type) and field.type.scale:
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    return table


def gathered(batches: Iterable[Any], names: Sequence[Hashable], least: int) -> Iterator[Table]:
    """Arrow batches as tables of so many rows or more; the last may have fewer."""
    import pyarrow as pa

    some: list[Any] = []
    for batch in batches:
        some.append(batch)
        if sum(part.num_rows for part in some) >= least:
            yield arrow_rows(pa.Table.from_batches(some), names)
            some = []
    if any(part.num_rows for part in some):
        yield arrow_rows(pa.Table.from_batches(some), names)


def own_rows(table: Table) -> Table:
    """Rows in the library that functions which do not work on arrays are written for: Arrow's become pandas'."""
    if type(table).__module__.split(".")[0] != "pyarrow" or not has_pandas():
        return table
    import pyarrow as pa

    frame = table.to_pandas()
    for field in table.schema:
        gaps = field.type in (pa.int64(), pa.uint64()) and table[field.name].null_count
        if gaps or pa.types.is_decimal(field.type):  # of gaps pandas would make floats
            frame[field.name] = take_column(table, field.name, "x")
    return frame


def rows_for(decisions: Decisions, seen: Sequence[str] | None, table: Table, names: Sequence[Any]) -> Table:
    """Rows as decisions want them that look at the columns ``seen``; see :meth:`Decisions.columns`."""
    if seen is None:
        return own_rows(table)
    return (
        column_arrays(table, seen, names, "the policy", decisions.roles.names) if decisions.sees_x else table
    )


def has_pandas() -> bool:
    """Whether pandas is installed; it is loaded then."""
    try:
        import pandas  # noqa: F401  # only whether it is there
    except ImportError:
        return False
    return True


def in_partition(error: FelicificError, partition: int | None) -> FelicificError:
    """The same error, saying which partition it arose in."""
    if "partition" in error.problem or isinstance(error, UnreadColumn):
        return error
    return type(error)(f"{error.problem.rstrip('.')} (in partition {partition}).", error.remedy)


def on_worker(step: Step[T], part: Table, place: BatchPlace) -> T | FelicificError:
    """Run a step on a worker; an error of ours travels back as a value, with the partition it arose in."""
    try:
        return step(part, place)
    except FelicificError as error:
        return in_partition(error, place.partition)


def combine_all(combine: Combine[Any], results: Sequence[Any]) -> Any:
    """Combine what :func:`on_worker` returned; the first error among it instead, if there is one."""
    errors = [result for result in results if isinstance(result, FelicificError)]
    return errors[0] if errors else reduce(combine, results)


def or_raise(result: Any) -> Any:
    """What a worker returned; raise it if it is an error."""
    if isinstance(result, FelicificError):
        raise result
    return result


# ---------------------------------------------------------------------------------------------------------
# Which engine


class _EngineEntry(NamedTuple):
    """A library's class of tables, and our file and class for it."""

    table: str
    module: str
    engine: str

    def load(self) -> type[Engine]:
        """Import the file."""
        kind: type[Engine] = getattr(_module(self.module), self.engine)
        return kind


#: Every engine, by the library of its tables: a new one is a file beside this one, and a line here.
_ENGINES = {
    "polars": _EngineEntry("LazyFrame", "polars", "PolarsEngine"),
    "duckdb": _EngineEntry("DuckDBPyRelation", "duckdb", "DuckEngine"),
    "_duckdb": _EngineEntry("DuckDBPyRelation", "duckdb", "DuckEngine"),
    "dask": _EngineEntry("DataFrame", "dask", "DaskEngine"),
    "pyspark": _EngineEntry("DataFrame", "spark", "SparkEngine"),
    "pyarrow": _EngineEntry("Dataset", "arrow", "ArrowEngine"),
}

#: Files whose ``open_parquet`` reads Parquet, the best first.
_READERS = ("duckdb", "polars", "arrow")


def _module(name: str) -> Any:
    return import_module(f"felicific._tables.{name}")


def find_engine(table: Table) -> Engine | None:
    """The engine of a table that is not in memory; None for one that is."""
    if isinstance(table, str | os.PathLike):
        return _open_parquet(table)
    entry = _ENGINES.get(type(table).__module__.split(".")[0])
    if entry is None or all(base.__name__ != entry.table for base in type(table).__mro__):
        return None
    return entry.load()(table)


def _open_parquet(path: str | os.PathLike[str]) -> Engine:
    """A Parquet file, a folder of them or a pattern, by DuckDB, Polars or PyArrow, whichever is installed."""
    files = _parquet_files(os.fspath(path))
    for name in _READERS:
        try:
            engine: Engine = _module(name).open_parquet(files)
        except ImportError:
            continue
        except FelicificError:
            raise
        except Exception as error:
            raise EngineError(
                f"{files[0]!r}{' and others' if len(files) > 1 else ''} cannot be read as Parquet "
                f"({type(error).__name__}: {' '.join(str(error).split())[:300]}).",
                "Is a file cut, of another format, or without some of the columns? Write it again.",
            ) from error
        return engine
    raise EngineError(
        "Nothing that reads Parquet is installed.", 'Install it with "pip install felicific[duckdb]".'
    )


def _parquet_files(text: str) -> list[str]:
    """The files of a folder, a pattern or one path; none is an error."""
    matching = Path(text).rglob("*.parquet") if os.path.isdir(text) else map(Path, glob.glob(text))
    paths = sorted(matching)
    if not paths and os.path.isfile(text):
        paths = [Path(text)]  # a name with brackets in it reads as a pattern
    if not paths:
        raise DataError(
            f"There is no Parquet file {text!r}.", "Give the path of a file or folder, or a pattern."
        )
    return [os.fspath(path) for path in paths]
