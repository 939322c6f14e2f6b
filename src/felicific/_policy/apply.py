"""Decisions: what a policy decides about every row of a table, as one more column; lazy where the table is lazy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from felicific._people.columns import Columns, ordered_columns
from felicific._people.plan import columns_seen
from felicific._policy.sql import Names, case_expression
from felicific._tables.engine import (
    ArrowEngine,
    DaskEngine,
    DuckEngine,
    Engine,
    PolarsEngine,
    SparkEngine,
    find_engine,
    in_memory,
    in_partition,
    refuse_lacking,
)
from felicific._tables.groups import resolve_groups
from felicific._tables.memory import (
    Array,
    Table,
    Values,
    add_column,
    column_names,
    count_rows,
    refuse_missing_columns,
    take_column,
)
from felicific.exceptions import DataError, FelicificError, GroupError


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are to a policy."""

    proba: tuple[str, ...] | None
    predicted: str | None
    group: tuple[str, ...]
    key: str | None

    @classmethod
    def of(cls, policy: Any, proba: Any, predicted: Any, sensitive_features: Any, key: Any) -> Roles:
        """Check the names against what the policy sees."""
        group = () if sensitive_features is None else sensitive_features
        group = tuple(group) if isinstance(group, list | tuple) else (group,)
        if policy.see_group and not group:
            raise GroupError("This policy sees the group.", "Name its column in sensitive_features=.")
        roles = cls(
            _ordered(proba, policy.classes.tolist()), predicted, group if policy.see_group else (), key
        )
        wrong = [name for name in roles.names if not isinstance(name, str)]
        if wrong:
            raise DataError(
                f"{type(wrong[0]).__name__} {str(wrong[0])[:40]!r} names no column.",
                "Name columns of the table in proba=, predicted=, sensitive_features= and key=.",
            )
        if roles.proba is None and (policy.needs_proba or predicted is None):
            what = "probabilities" if policy.needs_proba else "probabilities or predictions"
            raise DataError(f"The policy sees {what}.", "Name their columns in proba= (or predicted=).")
        return roles

    @property
    def names(self) -> list[str]:
        """All columns that have a role."""
        single = [name for name in (self.predicted, self.key) if name is not None]
        return [*(self.proba or ()), *single, *self.group]

    def placed(self, place: Callable[[str], str]) -> Names:
        """The columns as SQL text."""
        return Names(
            proba=None if self.proba is None else tuple(map(place, self.proba)),
            predicted=None if self.predicted is None else place(self.predicted),
            group=tuple(map(place, self.group)),
            key=None if self.key is None else place(self.key),
        )


def _ordered(proba: Any, classes: list[Any]) -> tuple[str, ...] | None:
    if proba is None:
        return None
    proba = ordered_columns(proba, classes)
    if not isinstance(proba, list | tuple) or len(proba) != len(classes):
        raise DataError(
            f"proba names {proba!r}, and the classes are {classes}.", "Name one column for every class."
        )
    return tuple(proba)


def decide_rows(policy: Any, roles: Roles, table: Table) -> Array:
    """Decisions about rows in memory."""
    if policy.needs_proba or roles.predicted is None:
        scores = np.column_stack([take_column(table, name, "proba") for name in roles.proba or ()])
    else:
        scores = take_column(table, roles.predicted, "predicted")
    group = resolve_groups(table, list(roles.group), columns_only=True) if policy.see_group else None
    if not policy.randomize:
        return np.asarray(policy.classes[policy.apply(scores, group, table).argmax(axis=1)])
    return np.asarray(policy.decide(scores, group, take_column(table, str(roles.key), "key"), table))


def decide_table(table: Any, policy: Any, roles: Roles, column: str) -> Any:
    """The table with one more column, the decisions; a lazy table stays lazy."""
    engine = find_engine(table)
    names = column_names(table) if engine is None else engine.names
    refuse_missing_columns(names, roles.names, "the policy")
    if policy.randomize and roles.key is None:
        raise DataError(
            "The policy decides by lottery, and there is no key.",
            "Name the column that identifies a person in key=.",
        )
    alike = not isinstance(engine, PolarsEngine | DaskEngine | None)  # for SQL, A is a
    for name in names:
        if name == column or (alike and str(name).lower() == column.lower()):
            raise DataError(f"The table has a column {name!r} already.", "Choose another name in column=.")
    if engine is None:
        return add_column(table, column, decide_rows(policy, roles, table))
    _check_kinds(engine, roles)
    return _DECIDERS[type(engine)](engine, policy, roles, column)


def _check_kinds(engine: Engine, roles: Roles) -> None:
    for name in roles.proba or ():
        if engine.kind(name, "proba") not in ("bool", "whole", "real"):
            raise DataError(f"The column {name!r}, needed for proba, holds no numbers.", "Name another.")
    if roles.key is not None and engine.kind(roles.key, "key") not in ("whole", "text"):
        raise DataError(
            f"The keys in {roles.key!r} are neither strings nor integers.",
            "Floats change their text from one system to the next: use the person's identifier.",
        )
    for name in roles.group if len(roles.group) > 1 else ():
        if engine.kind(name, "the groups") not in ("whole", "text"):
            raise DataError(
                f"The group column {name!r} is neither text nor whole numbers.",
                "Of several group columns, each must be; write it as text first.",
            )


# ---------------------------------------------------------------------------------------------------------
# Engine by engine. A policy that sees a signal is an expression in SQL; any other decides batches of rows.


def _is_cells(policy: Any) -> bool:
    return hasattr(policy, "signal")


def _decide_batch(policy: Any, roles: Roles, table: Table) -> Array:
    """Decisions about some rows; engines make an exception of their own out of the text of what is raised."""
    try:
        return decide_rows(policy, roles, table)
    except FelicificError as error:
        counted = f" (rows are counted within a batch of {count_rows(table)})."
        raise ValueError(f"{error.problem.rstrip('.')}{counted} {error.remedy}") from error


def _type_of(policy: Any, names: dict[str, str]) -> str:
    """What an engine calls the type of the classes."""
    return names[{"b": "b", "i": "i", "u": "i", "f": "f"}.get(policy.classes.dtype.kind, "U")]


def _by_duckdb(engine: Engine, policy: Any, roles: Roles, column: str) -> Any:
    import duckdb

    kind = _type_of(policy, {"b": "BOOLEAN", "i": "BIGINT", "f": "DOUBLE", "U": "VARCHAR"})
    if _is_cells(policy):

        def place(name: str) -> str:
            return f"#{engine.names.index(name) + 1}"

        text = case_expression(policy, roles.placed(place), "duckdb")
        decided = duckdb.SQLExpression(f"CAST({text} AS {kind})").alias(column)
        return engine.table.select(duckdb.StarExpression(), decided)
    # Python code cannot be a part of somebody else's relation, so the rows flow through, as often as they are read.
    return duckdb.connect().from_arrow(_DecidedStream(engine, policy, roles, column))


@dataclass(frozen=True)
class _DecidedStream:
    """A DuckDB relation with one more column, as Arrow: every reader gets a stream of its own."""

    engine: Engine
    policy: Any
    roles: Roles
    column: str

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        before = self.engine.table.limit(0).to_arrow_table().schema
        schema = before.append(pa.field(self.column, pa.array(self.policy.classes.tolist()[:1]).type))
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(schema))
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self, schema: Any) -> Iterator[Any]:
        import pyarrow as pa

        with self.engine.table.to_arrow_reader() as reader:
            for batch in reader:
                table = in_memory(batch, self.engine.names)
                decided = _decide_batch(self.policy, self.roles, table)
                column = pa.array(decided.tolist(), type=schema.field(self.column).type)
                yield pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def _by_spark(engine: Engine, policy: Any, roles: Roles, column: str) -> Any:
    from pyspark.sql import functions

    renamed = engine.frame().to_native()
    kind = _type_of(policy, {"b": "boolean", "i": "bigint", "f": "double", "U": "string"})
    if _is_cells(policy):

        def place(name: str) -> str:
            return f"c{engine.names.index(name)}"

        text = case_expression(policy, roles.placed(place), "spark")
        decided = renamed.withColumn("decided", functions.expr(f"CAST({text} AS {kind})"))
    else:
        from pyspark.sql.types import StructField, StructType, _parse_datatype_string

        schema = StructType([*renamed.schema.fields, StructField("decided", _parse_datatype_string(kind))])
        work = _SparkDecisions(policy, roles, tuple(engine.names))
        decided = renamed.mapInArrow(work, schema)
    return decided.toDF(*engine.names, column)


@dataclass(frozen=True)
class _SparkDecisions:
    """What a Spark worker does with batches of people."""

    policy: Any
    roles: Roles
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, each with its decisions."""
        import pyarrow as pa

        for batch in batches:
            decided = _decide_batch(self.policy, self.roles, in_memory(batch, self.names))
            yield batch.append_column("decided", pa.array(decided.tolist()))


def _by_polars(engine: Engine, policy: Any, roles: Roles, column: str) -> Any:
    import polars as pl

    seen = () if _is_cells(policy) else columns_seen(engine, Columns(group=roles.group), policy.problem)
    # Functions that can be expressions of columns get arrays, as when the policy was fitted; others a dataframe.
    chosen = engine.names if seen is None else [*roles.names, *seen]
    names = [name for name in engine.names if name in chosen]
    fields = [pl.nth(engine.names.index(name)).alias(f"c{i}") for i, name in enumerate(names)]
    dtype = _type_of(policy, {"b": "Boolean", "i": "Int64", "f": "Float64", "U": "String"})
    decide = partial(_decide_struct, policy, roles, tuple(names), dtype, seen is not None)
    decided = pl.struct(fields).map_batches(decide, return_dtype=getattr(pl, dtype), is_elementwise=True)
    return engine.table.with_columns(decided.alias(column))


def _decide_struct(
    policy: Any, roles: Roles, names: tuple[str, ...], dtype: str, arrays: bool, rows: Any
) -> Any:
    import polars as pl

    table: Table = rows.struct.unnest().rename(lambda name: names[int(name[1:])])
    if arrays:
        table = {name: take_column(table, name, "the policy").view(Values) for name in names}
    decided = _decide_batch(policy, roles, table)
    return pl.Series(decided.tolist(), dtype=getattr(pl, dtype))


def _by_dask(engine: Engine, policy: Any, roles: Roles, column: str) -> Any:
    decide = partial(_decide_partition, policy, roles, column, tuple(engine.names))
    empty = engine.table._meta
    meta = add_column(empty, column, policy.classes[:0])
    return engine.table.map_partitions(decide, meta=meta)


def _decide_partition(
    policy: Any, roles: Roles, column: str, names: tuple[str, ...], part: Table, partition_info: Any = None
) -> Table:
    number = None if partition_info is None else partition_info["number"]
    refuse_lacking(number, list(part.columns), names)
    part = part[list(names)]
    try:
        decided = decide_rows(policy, roles, part) if len(part) else policy.classes[:0]
    except FelicificError as error:
        raise in_partition(error, number) from error
    return add_column(part, column, decided)


def _by_arrow(engine: Engine, policy: Any, roles: Roles, column: str) -> Any:
    import duckdb

    try:
        duck = DuckEngine(duckdb.connect().from_arrow(engine.table))
    except Exception as error:
        raise engine.failure(error) from error
    changed = [name for name, other in zip(engine.names, duck.names, strict=True) if name != other]
    if changed:
        raise DataError(
            f"DuckDB decides about Arrow datasets, and cannot have a column {', '.join(map(repr, changed))} "
            "beside the others.",
            "Rename columns whose names are empty, or the same but for capital letters.",
        )
    return _by_duckdb(duck, policy, roles, column)


_DECIDERS: dict[type[Engine], Any] = {
    DuckEngine: _by_duckdb,
    SparkEngine: _by_spark,
    PolarsEngine: _by_polars,
    DaskEngine: _by_dask,
    ArrowEngine: _by_arrow,
}
