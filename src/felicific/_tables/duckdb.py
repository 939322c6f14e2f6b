"""DuckDB: relations, and the SQL that DuckDB speaks."""

from __future__ import annotations

import glob
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial, reduce
from operator import attrgetter
from typing import Any, TypeVar

from felicific._tables.dialect import DIALECTS
from felicific._tables.engine import (
    BatchEngine,
    Decisions,
    Engine,
    arrow_rows,
    gathered,
    has_pandas,
    rows_for,
)
from felicific._tables.parquet import arrow_largest, arrow_schemas, common_types, digits_of, holder, stretches
from felicific._typing import Table

T = TypeVar("T")

#: Names of types.
_TYPES = {"bool": "BOOLEAN", "whole": "BIGINT", "unsigned": "UBIGINT", "real": "DOUBLE", "text": "VARCHAR"}


#: Names of types that several files may have in common.
_PARQUET = {"float16": "FLOAT", "float32": "FLOAT", "float64": "DOUBLE", "text": "VARCHAR"} | {
    f"{sign}int{bits}": f"{sign.upper()}{name}"
    for sign in ("", "u")
    for bits, name in ((8, "TINYINT"), (16, "SMALLINT"), (32, "INTEGER"), (64, "BIGINT"))
}


class DuckEngine(BatchEngine):
    """A DuckDB relation, and its connection if it is known."""

    label = "DuckDB"
    ignores_case = True
    dialect = DIALECTS["duckdb"]

    def __init__(self, table: Table, connection: Any = None) -> None:
        super().__init__(table)
        # Relations of DuckDB 2 know their connection, those of DuckDB 1 do not.
        self.connection: Any = getattr(table, "_con", None) if connection is None else connection

    @property
    def ordered(self) -> bool:
        """Whether rows keep their order, which DuckDB can be told not to care about."""
        setting = self.table.query("people", "SELECT current_setting('preserve_insertion_order')")
        return bool(setting.fetchall()[0][0])

    def wait_for(self, work: Callable[[], T]) -> T:
        """Wait for the query; without its connection Ctrl-C is heard, but DuckDB may finish what it has begun."""
        if self.connection is not None:
            return super().wait_for(work)
        try:
            return work()
        except Exception as error:
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise

    def progress(self) -> str:
        """The share that is done, where the connection counts it."""
        share = self.connection.query_progress()
        return f"{super().progress()}, {share:.0f} %" if share >= 0 else super().progress()

    def stop(self) -> None:
        """Interrupt the query."""
        self.connection.interrupt()

    def _renamed(self, indices: Sequence[int]) -> Any:
        # Columns by position: no name of the user's is ever part of a query's text.
        return self.table.project(", ".join(f"#{i + 1} AS c{i}" for i in indices))

    def _head(self, count: int) -> Table:
        # PyArrow loads pandas when a column becomes an array, in a place where Ctrl-C would be lost; so it is loaded
        # here.
        has_pandas()
        first = self._renamed(range(len(self.names))).limit(count)
        return arrow_rows(self.wait_for(first.to_arrow_table), self.names)

    def batches(self, names: Sequence[Hashable]) -> Iterator[Table]:
        """As Arrow tables."""
        has_pandas()  # see _head
        indices = [self.names.index(name) for name in names]
        with self._renamed(indices).to_arrow_reader(self.rows_at_once(names)) as reader:
            yield from gathered(reader, names, self.rows_at_once(names))

    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """By an expression where there is one; else the rows flow through Python, as often as they are read."""
        import duckdb

        # Columns beside those of the table, which DuckDB would compute again in every branch of the expression.
        ahead = decisions.ahead(self.dialect, self._place)
        first = len(self.names) + 1
        text = decisions.sql(
            self, self.dialect, self._place, tuple(f"#{first + i}" for i in range(len(ahead)))
        )
        if text is None:
            # Python code cannot be a part of somebody else's relation.
            return connect().from_arrow(_decided_stream(self, decisions, column))
        decided = duckdb.SQLExpression(f"CAST({text} AS {_TYPES[decisions.kind]})").alias(column)
        if not ahead:
            return self.table.select(duckdb.StarExpression(), decided)
        names = _further(self.names, len(ahead))
        shares = ", ".join(f'{part} AS "{name}"' for part, name in zip(ahead, names, strict=True))
        return self.table.project(f"*, {shares}").select(duckdb.StarExpression(exclude=names), decided)

    def _place(self, name: str) -> str:
        return f"#{self.names.index(name) + 1}"


def _further(names: Sequence[str], count: int) -> list[str]:
    """Names of further columns, none of them one of these."""
    taken, start = {name.lower() for name in names}, 0
    while any(f"share {start + i}" in taken for i in range(count)):
        start += count
    return [f"share {start + i}" for i in range(count)]


class _Stream:
    """What DuckDB reads Arrow from, a stream of its own for every reader.

    DuckDB does not let go of it when Python ends, and prints that whatever it refers to was leaked. So it then refers
    to nothing, and has no method, which would refer to all that its module does.
    """

    __arrow_c_stream__ = property(attrgetter("open"))


def _decided_stream(engine: DuckEngine, decisions: Decisions, column: str) -> _Stream:
    """A relation with one more column."""
    stream = _Stream()
    vars(stream)["open"] = partial(_opened, engine, decisions, column)
    weakref.finalize(stream, vars(stream).clear)
    return stream


def _opened(engine: DuckEngine, decisions: Decisions, column: str, requested_schema: Any = None) -> Any:
    import pyarrow as pa

    before = engine.table.limit(0).to_arrow_table().schema
    kinds = {"bool": pa.bool_(), "whole": pa.int64(), "unsigned": pa.uint64(), "real": pa.float64()}
    schema = before.append(pa.field(column, kinds.get(decisions.kind, pa.string())))
    reader = pa.RecordBatchReader.from_batches(schema, _decided(engine, decisions, schema))
    return reader.__arrow_c_stream__(requested_schema)


def _decided(engine: DuckEngine, decisions: Decisions, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    names, seen = engine.names, decisions.columns(engine)
    with engine.table.to_arrow_reader() as reader:
        for batch in reader:
            decided = decisions.decide_batch(rows_for(decisions, seen, arrow_rows(batch, names), names))
            column = pa.array(decided.tolist(), type=schema.field(len(schema) - 1).type)
            yield pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def connect(path: str = ":memory:", *, read_only: bool = False) -> Any:
    """A connection that counts how much is done, and leaves showing it to us: nothing else writes to our output."""
    import duckdb

    connection = duckdb.connect(path, read_only=read_only)
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return connection


def open_parquet(files: list[str]) -> Engine:
    """Parquet files as one table."""
    import pyarrow  # noqa: F401  # results come as Arrow

    connection = connect()
    return DuckEngine(read_parquet(connection, files), connection)


def read_parquet(connection: Any, files: Sequence[str]) -> Any:
    """Parquet files as one relation, whose types hold what every file holds."""
    schemas = arrow_schemas(files)
    changed = common_types(schemas, arrow_largest)

    def opened(some: Sequence[str]) -> Any:
        return connection.from_parquet([glob.escape(file) for file in some])

    if not changed:
        return opened(files)
    types = {}
    for name, kind in changed.items():
        digits = digits_of(kind)
        if digits is not None:
            types[name] = f"DECIMAL{digits}"
        elif kind in _PARQUET:
            types[name] = _PARQUET[kind]
        else:
            other = opened([holder(schemas, name, kind)])
            types[name] = str(other.types[other.columns.index(name)])
    names = opened(files[:1]).columns
    parts = [opened(some).project(_cast(names, types)) for some in stretches(schemas, list(changed))]
    # Side by side and not one in the other: there may be many.
    while len(parts) > 1:
        parts = [reduce(_union, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def _union(left: Any, right: Any) -> Any:
    return left.union(right)


def _cast(names: Sequence[str], types: dict[str, str]) -> str:
    """All columns, some of them as other types."""
    quote = DIALECTS["duckdb"].quote_name
    return ", ".join(
        f"CAST({quote(name)} AS {types[name]}) AS {quote(name)}" if name in types else quote(name)
        for name in names
    )
