"""Engines: tables that are not in memory, and the two things that are asked of them.

*Queries*: a narwhals lazy frame whose columns are called c0, c1, ... in the order of the table, so that no name of the
user's ever reaches a query. *Folds*: a function of some rows as an ordinary table in memory, applied to batch after
batch (or partition by partition, where the workers are), its results combined.
"""

from __future__ import annotations

import glob
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from felicific._tables.clusters import compute, run_spark
from felicific._tables.column import Column
from felicific._tables.memory import Table, count_rows, refuse_missing_columns
from felicific._tables.progress import attend, shown
from felicific.exceptions import DataError, EngineError, FelicificError

#: Rows per batch that is brought into memory.
BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Place:
    """Where some rows come from: the number of the first of them, and the partition if they are numbered within one."""

    start: int = 0
    partition: int | None = None

    def name(self, row: int) -> str:
        """Name a row by its position among these."""
        return f"{self.start + row}" + ("" if self.partition is None else f" of partition {self.partition}")


T = TypeVar("T")
Step = Callable[[Table, Place], Any]
Combine = Callable[[Any, Any], Any]


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

    def __init__(self, table: Any) -> None:
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

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        schema = nw.from_native(self.table).collect_schema()
        return list(schema), list(schema.values())

    def index(self, name: Any, purpose: str) -> int:
        """Position of a column; one that is missing is an error that says what it is needed for."""
        refuse_missing_columns(self.names, [name], purpose)
        return self.names.index(name)

    def column(self, name: Any, purpose: str) -> Column:
        """One column as an expression of the frame."""
        i = self.index(name, purpose)
        return _base(f"c{i}", self.dtypes[i], repr(name))

    def kind(self, name: Any, purpose: str) -> str:
        """What the column holds."""
        return self.column(name, purpose).kind

    @property
    def has_queries(self) -> bool:
        """Whether :meth:`frame` exists."""
        return True

    @abstractmethod
    def frame(self) -> Any:
        """All columns as a narwhals lazy frame, called c0, c1, ..."""

    def collect(self, frame: Any) -> Any:
        """Run a query whose result is small; a narwhals dataframe."""
        raise NotImplementedError

    def attend(self, work: Callable[[], T]) -> T:
        """Wait for the engine; Ctrl-C stops it, and the terminal shows how far it is."""
        return attend(work, self.told, self.stop)

    def told(self) -> str:
        """How far the engine is, for the line on the terminal."""
        return f"{self.label} is summing"

    def stop(self) -> None:  # noqa: B027  # nothing to do where the engine hears of Ctrl-C itself or reads a batch
        """Stop what the engine is doing."""

    def batches(self, names: Sequence[Any]) -> Iterator[Table]:
        """Some columns, batch by batch and in order, as tables in memory."""
        raise NotImplementedError

    def fold(self, step: Step, combine: Combine, names: Sequence[Any]) -> Any:
        """Apply ``step`` to every batch of rows and combine what it returns; None when there are no batches."""
        found, start = None, 0
        with shown() as line, closing(self._readable(names)) as tables:
            for table in tables:
                here = step(table, Place(start))
                found = here if found is None else combine(found, here)
                start += count_rows(table)
                line.say(f"{start:,} rows summed".__str__)
        return found

    def _readable(self, names: Sequence[Any]) -> Generator[Table]:
        """The batches; an engine's own failure becomes one of ours."""
        batches = self.batches(names)
        # At the end, and after Ctrl-C, a reader is closed: it may be a query that has not ended.
        with closing(batches) if isinstance(batches, Generator) else nullcontext():
            while True:
                try:
                    table = self.attend(partial(next, batches, None))
                except FelicificError:
                    raise
                except Exception as error:
                    raise self.failure(error) from error
                if table is None:
                    return
                yield table

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


def _base(name: str, dtype: Any, called: str) -> Column:
    """A column of the frame in the type that expressions expect: narrow numbers would overflow."""
    import narwhals as nw

    expr = nw.col(name)
    if dtype == nw.Boolean:
        return Column(expr, "bool", called)
    if dtype.is_integer():
        if dtype in (nw.UInt64, nw.Int128, nw.UInt128):
            return Column(expr.cast(nw.Float64), "whole", called, floating=True)
        return Column(expr if dtype == nw.Int64 else expr.cast(nw.Int64), "whole", called)
    if dtype.is_numeric():
        return Column(expr if dtype == nw.Float64 else expr.cast(nw.Float64), "real", called, floating=True)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return Column(expr if dtype == nw.String else expr.cast(nw.String), "text", called)
    return Column(expr, "other", called)


class PolarsEngine(Engine):
    """A Polars LazyFrame, by its streaming engine."""

    label = "Polars"

    def frame(self) -> Any:
        """Rename by position: a name such as ``^.*$`` would be a pattern."""
        import narwhals as nw
        import polars as pl

        return nw.from_native(self.table.select(pl.nth(i).alias(f"c{i}") for i in range(len(self.names))))

    def collect(self, frame: Any) -> Any:
        """Collect in bounded memory."""
        import narwhals as nw

        # Polars hears of Ctrl-C itself; in this thread it would raise KeyboardInterrupt twice.
        found = self.attend(partial(frame.to_native().collect, engine="streaming"))
        return nw.from_native(found, eager_only=True)

    def batches(self, names: Sequence[Any]) -> Iterator[Table]:
        """As Polars dataframes."""
        import polars as pl

        columns = [pl.nth(self.names.index(name)).alias(f"c{i}") for i, name in enumerate(names)]
        chosen = self.table.select(*columns, pl.lit(False).alias("end"))
        # Ctrl-C ends Polars' batches, in any thread, as if there were no more rows; a last row says that it did not.
        marked = pl.concat([chosen, pl.LazyFrame({"end": [True]})], how="diagonal")
        ended = False
        for batch in marked.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"):
            ended = bool(batch["end"][-1])
            rows = batch.head(len(batch) - ended).drop("end")
            rows.columns = list(names)
            if len(rows):
                yield rows
        if not ended:
            raise EngineError(
                "Polars stopped before the last row of the table, as it does on Ctrl-C.",
                "Nothing was computed from the rows before it; ask again.",
            )


class DuckEngine(Engine):
    """A DuckDB relation, and its connection if it is known."""

    label = "DuckDB"

    def __init__(self, table: Any, connection: Any = None) -> None:
        super().__init__(table)
        # Relations of DuckDB 2 know their connection, those of DuckDB 1 do not.
        self.connection: Any = getattr(table, "_con", None) if connection is None else connection

    def attend(self, work: Callable[[], T]) -> T:
        """Wait for the query; without its connection Ctrl-C is heard, but DuckDB may finish what it has begun."""
        if self.connection is not None:
            return super().attend(work)
        try:
            return work()
        except Exception as error:
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise

    def told(self) -> str:
        """The share that is done, where the connection counts it."""
        share = self.connection.query_progress()
        return f"{super().told()}, {share:.0f} %" if share >= 0 else super().told()

    def stop(self) -> None:
        """Interrupt the query."""
        self.connection.interrupt()

    def _renamed(self, indices: Sequence[int]) -> Any:
        # Columns by position: no name of the user's is ever part of a query's text.
        return self.table.project(", ".join(f"#{i + 1} AS c{i}" for i in indices))

    def frame(self) -> Any:
        """Rename by position."""
        import narwhals as nw

        return nw.from_native(self._renamed(range(len(self.names))))

    def collect(self, frame: Any) -> Any:
        """Collect as an Arrow table."""
        import narwhals as nw

        return nw.from_native(self.attend(partial(_arrow_table, frame.to_native())), eager_only=True)

    def batches(self, names: Sequence[Any]) -> Iterator[Table]:
        """As pandas dataframes where pandas is installed, else as Arrow tables."""
        indices = [self.names.index(name) for name in names]
        with self._renamed(indices).to_arrow_reader(BATCH_ROWS) as reader:
            for batch in reader:
                yield in_memory(batch, names)


class ArrowEngine(Engine):
    """An Arrow dataset, by batches only."""

    label = "PyArrow"

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        return _arrow_schema(nw, self.table.schema)

    @property
    def has_queries(self) -> bool:
        """It has none."""
        return False

    def frame(self) -> Any:
        """It has no queries."""
        raise NotImplementedError

    def batches(self, names: Sequence[Any]) -> Iterator[Table]:
        """As pandas dataframes where pandas is installed, else as Arrow tables."""
        for batch in self.table.to_batches(columns=list(names), batch_size=BATCH_ROWS):
            if batch.num_rows:
                yield in_memory(batch, names)


def _arrow_schema(nw: Any, schema: Any) -> tuple[list[Any], list[Any]]:
    frame = nw.from_native(schema.empty_table(), eager_only=True)
    return list(frame.columns), list(frame.schema.values())


def in_memory(batch: Any, names: Sequence[Any]) -> Table:
    """An Arrow batch under the user's names: in pandas, which most people write for, or in Arrow."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch]).rename_columns([str(name) for name in names])
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):  # pandas would hold Python objects
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    return table.to_pandas() if _has_pandas() else table


def _has_pandas() -> bool:
    try:
        import pandas  # noqa: F401  # only whether it is there
    except ImportError:
        return False
    return True


def _arrow_table(relation: Any) -> Any:
    # PyArrow loads pandas when a column becomes an array, in a place where Ctrl-C would be lost; so it is loaded here.
    _has_pandas()
    return relation.to_arrow_table()


class DaskEngine(Engine):
    """A Dask dataframe: every partition is summed where it lies."""

    label = "Dask"

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        names = list(self.table.columns)
        if len(set(names)) < len(names):
            return names, []  # refused by name
        return names, list(nw.from_native(self.table._meta, eager_only=True).schema.values())

    @property
    def has_queries(self) -> bool:
        """A pandas partition is summed faster by arrays than by expressions."""
        return False

    def frame(self) -> Any:
        """It has no queries."""
        raise NotImplementedError

    def fold(self, step: Step, combine: Combine, names: Sequence[Any]) -> Any:
        """Apply ``step`` on the workers and combine pairwise, there too."""
        import dask

        parts = self.table[list(names)].to_delayed()
        work = dask.delayed(_located, pure=False)
        found = leaves = [work(step, part, Place(0, i)) for i, part in enumerate(parts)]
        join = dask.delayed(_joined, pure=False)
        while len(found) > 1:
            found = [join(combine, found[i : i + 8]) for i in range(0, len(found), 8)]
        try:
            return _raised(compute(found[0], leaves))
        except FelicificError:
            raise
        except Exception as error:
            raise self._explained(error, names) from error

    def _explained(self, error: Exception, names: Sequence[Any]) -> FelicificError:
        if type(error).__name__ == "KilledWorker":
            return EngineError(
                f"Dask's workers died again and again while working on one partition ({error}).",
                "Give the workers more memory, or the table smaller partitions (repartition).",
            )
        if not isinstance(error, KeyError):
            return self.failure(error)
        import dask

        known = dask.compute(*[dask.delayed(_names_of)(part) for part in self.table.to_delayed()])
        for i, columns in enumerate(known):
            refuse_lacking(i, columns, names)
        return self.failure(error)


def refuse_lacking(partition: int | None, columns: Sequence[Any], names: Sequence[Any]) -> None:
    """Raise if a partition lacks some columns that the table has."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError(
            f"Partition {partition} has no column {', '.join(map(repr, missing))}, which others have.",
            "Write every part of the table with the same columns.",
        )


def in_partition(error: FelicificError, partition: int | None) -> FelicificError:
    """The same error, saying which partition it arose in."""
    if "partition" in error.problem:
        return error
    return type(error)(f"{error.problem.rstrip('.')} (in partition {partition}).", error.remedy)


def _names_of(part: Any) -> list[Any]:
    return list(part.columns)


def _located(step: Step, part: Table, place: Place) -> Any:
    """Run a step on a worker; an error of ours travels back as a value, with the partition it arose in."""
    try:
        return step(part, place)
    except FelicificError as error:
        return in_partition(error, place.partition)


def _joined(combine: Combine, parts: list[Any]) -> Any:
    """Combine results; the first error among them instead, if there is one."""
    errors = [part for part in parts if isinstance(part, FelicificError)]
    return errors[0] if errors else reduce(combine, parts)


def _raised(result: Any) -> Any:
    if isinstance(result, FelicificError):
        raise result
    return result


class SparkEngine(Engine):
    """A PySpark dataframe."""

    label = "Spark"

    def _reason(self, error: Exception) -> str:
        """The first cause: a Java trace begins with the last."""
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        return causes[-1].removeprefix("Caused by: ") if causes else str(error)

    def _renamed(self) -> Any:
        return self.table.toDF(*(f"c{i}" for i in range(len(self.names))))

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        names = list(self.table.columns)
        renamed = self.table.toDF(*(f"c{i}" for i in range(len(names))))
        return names, list(nw.from_native(renamed).collect_schema().values())

    def frame(self) -> Any:
        """Rename by position: a dot or a backtick in a name would be part of a query."""
        import narwhals as nw

        return nw.from_native(self._renamed())

    def collect(self, frame: Any) -> Any:
        """Collect as an Arrow table."""
        import narwhals as nw

        return nw.from_native(run_spark(self.table.sparkSession, frame.to_native().toArrow), eager_only=True)

    def fold(self, step: Step, combine: Combine, names: Sequence[Any]) -> Any:
        """Apply ``step`` on the workers, to the batches of a partition in turn."""
        import pickle

        indices = [self.names.index(name) for name in names]
        chosen = self._renamed().select(*(f"c{i}" for i in indices))
        work = _SparkWork(step, combine, tuple(names))
        try:
            rows = run_spark(self.table.sparkSession, chosen.mapInArrow(work, "payload binary").collect)
        except Exception as error:
            raise self.failure(error) from error
        found = [pickle.loads(row["payload"]) for row in rows]
        return _raised(_joined(combine, found)) if found else None

    def failure(self, error: Exception) -> EngineError:
        """Workers that run another Python, or lack a module, are the usual reason, and Spark buries it."""
        reason = re.search(r"(ModuleNotFoundError: |\[PYTHON_VERSION_MISMATCH\] )[^\n]*", str(error))
        if reason is None:
            return super().failure(error)
        return EngineError(
            f"Spark's workers run another Python than this one, or lack a module ({reason[0].strip()[:300]}).",
            "Install felicific on them, and set os.environ['PYSPARK_PYTHON'] (on one machine to sys.executable) before "
            "the Spark session starts.",
        )


@dataclass(frozen=True)
class _SparkWork:
    """What a Spark worker does with the batches of one partition."""

    step: Step
    combine: Combine
    names: tuple[Any, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row for the partition: its combined result, as Spark itself ships Python objects."""
        import pyarrow as pa
        from pyspark import TaskContext, cloudpickle

        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        found, start = None, 0
        for batch in batches:
            table = in_memory(batch, self.names)
            here = _located(self.step, table, Place(start, partition))
            found = here if found is None else _joined(self.combine, [found, here])
            start += batch.num_rows
        if found is not None:
            yield pa.RecordBatch.from_pydict({"payload": [cloudpickle.dumps(found)]})


# ---------------------------------------------------------------------------------------------------------
# Which engine


def find_engine(table: Any) -> Engine | None:
    """The engine of a table that is not in memory; None for one that is."""
    if isinstance(table, str | os.PathLike):
        return _open_parquet(table)
    module = type(table).__module__.split(".")[0]
    kinds: dict[str, tuple[str, type[Engine]]] = {
        "polars": ("LazyFrame", PolarsEngine),
        "duckdb": ("DuckDBPyRelation", DuckEngine),
        "_duckdb": ("DuckDBPyRelation", DuckEngine),
        "dask": ("DataFrame", DaskEngine),
        "pyspark": ("DataFrame", SparkEngine),
        "pyarrow": ("Dataset", ArrowEngine),
    }
    if module in kinds:
        name, kind = kinds[module]
        if any(base.__name__ == name for base in type(table).__mro__):
            return kind(table)
    return None


def _open_parquet(path: str | os.PathLike[str]) -> Engine:
    """A Parquet file, a folder of them or a pattern, by DuckDB, Polars or PyArrow, whichever is installed."""
    text = os.fspath(path)
    found = (
        sorted(Path(text).rglob("*.parquet")) if os.path.isdir(text) else sorted(map(Path, glob.glob(text)))
    )
    if not found and os.path.isfile(text):
        found = [Path(text)]  # a name with brackets in it reads as a pattern
    if not found:
        raise DataError(
            f"There is no Parquet file {text!r}.", "Give the path of a file or folder, or a pattern."
        )
    files = [os.fspath(file) for file in found]
    for opener in (_by_duckdb, _by_polars, _by_arrow):
        try:
            return opener(files)
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
    raise EngineError(
        "Nothing that reads Parquet is installed.", 'Install it with "pip install felicific[duckdb]".'
    )


def _by_duckdb(files: list[str]) -> Engine:
    import duckdb
    import pyarrow  # noqa: F401  # results come as Arrow

    connection = duckdb.connect()
    # Count how much is done, and leave showing it to us.
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return DuckEngine(connection.from_parquet([glob.escape(file) for file in files]), connection)


def _by_polars(files: list[str]) -> Engine:
    import polars as pl

    return PolarsEngine(pl.scan_parquet(files, glob=False))


def _by_arrow(files: list[str]) -> Engine:
    import pyarrow.dataset as ds

    return ArrowEngine(ds.dataset(files, format="parquet"))


def as_list(frame: Any, name: str) -> list[Any]:
    """A column of a small result as Python values."""
    return list(frame.get_column(name).to_list())


def as_floats(frame: Any, name: str) -> Any:
    """A column of a small result as 64-bit floats; null is NaN."""
    import narwhals as nw

    return np.asarray(frame.get_column(name).cast(nw.Float64).to_numpy(), dtype=np.float64)
