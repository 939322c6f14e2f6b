"""Polars: LazyFrames, by the streaming engine."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from felicific._tables.engine import BatchEngine, Decisions, Engine, rows_for
from felicific._tables.parquet import common_types, digits_of, holder, stretches
from felicific._typing import Table
from felicific.exceptions import EngineError

#: Names of types.
_TYPES = {"bool": "Boolean", "whole": "Int64", "unsigned": "UInt64", "real": "Float64", "text": "String"}


class PolarsEngine(BatchEngine):
    """A Polars LazyFrame, by its streaming engine."""

    label = "Polars"

    def _head(self, count: int) -> Table:
        # Polars hears of Ctrl-C itself; in this thread it would raise KeyboardInterrupt twice.
        return self.wait_for(partial(self.table.head(count).collect, engine="streaming"))

    def batches(self, names: Sequence[Hashable]) -> Iterator[Table]:
        """As Polars dataframes."""
        import polars as pl

        columns = [pl.nth(self.names.index(name)).alias(f"c{i}") for i, name in enumerate(names)]
        chosen = self.table.select(*columns, pl.lit(False).alias("end"))
        # Ctrl-C ends Polars' batches, in any thread, as if there were no more rows; a last row says that it did not.
        marked = pl.concat([chosen, pl.LazyFrame({"end": [True]})], how="diagonal")
        ended = False
        for batch in marked.collect_batches(
            chunk_size=self.rows_at_once(names), maintain_order=True, engine="streaming"
        ):
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

    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """By a function of batches, which Polars calls when the table is read."""
        import polars as pl

        seen = decisions.columns(self)
        # Functions that work on arrays get these, as when the policy was fitted; others a dataframe.
        chosen = self.names if seen is None else seen
        names = [name for name in self.names if name in chosen]
        fields = [pl.nth(self.names.index(name)).alias(f"c{i}") for i, name in enumerate(names)]
        dtype = _TYPES[decisions.kind]
        decide = partial(_decide_struct, decisions, tuple(names), seen, tuple(self.names), dtype)
        decided = pl.struct(fields).map_batches(decide, return_dtype=getattr(pl, dtype), is_elementwise=True)
        return self.table.with_columns(decided.alias(column))


def _decide_struct(
    decisions: Decisions,
    names: tuple[str, ...],
    seen: tuple[str, ...] | None,
    every: tuple[str, ...],
    dtype: str,
    rows: Any,
) -> Any:
    """A series of decisions about a series of rows."""
    import polars as pl

    table: Table = rows.struct.unnest()
    table.columns = list(names)
    decided = decisions.decide_batch(rows_for(decisions, seen, table, every))
    plain = decided.dtype.kind in "biuf"
    return pl.Series(decided if plain else decided.tolist(), dtype=getattr(pl, dtype))


def open_parquet(files: list[str]) -> Engine:
    """Parquet files as one table, whose types hold what every file holds."""
    import polars as pl

    types = {file: pl.read_parquet_schema(file) for file in files}
    schemas = {file: {name: str(dtype) for name, dtype in schema.items()} for file, schema in types.items()}
    changed = common_types(schemas, _largest)
    if not changed:
        return PolarsEngine(pl.scan_parquet(files, glob=False))
    casts = []
    for name, kind in changed.items():
        digits = digits_of(kind)
        if digits is not None:
            dtype: Any = pl.Decimal(*digits)
        elif kind == "text" or kind.startswith(("int", "uint", "float")):
            plain = kind.replace("u", "U").replace("int", "Int").replace("float", "Float")
            dtype = pl.String if kind == "text" else getattr(pl, plain)
        else:
            dtype = types[holder(schemas, name, kind)][name]
        casts.append(pl.col(name).cast(dtype))
    parts = [pl.scan_parquet(some, glob=False) for some in stretches(schemas, list(changed))]
    return PolarsEngine(
        pl.concat([part.with_columns(casts).select(types[files[0]].names()) for part in parts])
    )


def _largest(file: str, name: str) -> int | None:
    """The largest size of a column of whole numbers."""
    import polars as pl

    column = pl.col(name)
    ends = pl.scan_parquet(file, glob=False).select(low=column.min(), high=column.max()).collect().row(0)
    return max((abs(value) for value in ends if value is not None), default=0)
