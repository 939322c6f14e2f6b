"""PyArrow: datasets, which are read by batches only."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from felicific._tables.duckdb import DuckEngine, connect
from felicific._tables.engine import BatchEngine, Decisions, Engine, arrow_rows, gathered
from felicific._tables.parquet import (
    arrow_largest,
    arrow_schemas,
    common_types,
    digits_of,
    holder,
    refuse_casts,
)
from felicific._typing import Table
from felicific.exceptions import DataError


class ArrowEngine(BatchEngine):
    """An Arrow dataset; DuckDB decides on its rows, as it computes nothing itself."""

    label = "PyArrow"
    ignores_case = True

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        refuse_casts(table)

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        names = list(self.table.schema.names)
        if len(set(names)) < len(names):
            return names, []  # refused by name
        frame = nw.from_native(self.table.schema.empty_table(), eager_only=True)
        return list(frame.columns), list(frame.schema.values())

    def _head(self, count: int) -> Table:
        return arrow_rows(self.table.head(count, fragment_readahead=0), self.names)

    def batches(self, names: Sequence[Hashable]) -> Iterator[Table]:
        """As Arrow tables."""
        import pyarrow.dataset as ds

        rows = self.rows_at_once(names)
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}  # of who adds up
        if isinstance(getattr(self.table, "format", None), ds.ParquetFileFormat):  # which keeps what it read
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
        batches = self.table.to_batches(columns=list(names), batch_size=rows, **options)
        yield from gathered(batches, names, rows)

    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """As a relation of DuckDB."""
        try:
            duck = DuckEngine(connect().from_arrow(self.table))
        except Exception as error:
            raise self.failure(error) from error
        changed = [name for name, other in zip(self.names, duck.names, strict=True) if name != other]
        if changed:
            raise DataError(
                f"DuckDB decides on Arrow datasets, and cannot have a column {', '.join(map(repr, changed))} "
                "beside the others.",
                "Rename columns whose names are empty, or the same but for capital letters.",
            )
        return duck.with_decisions(decisions, column)


def open_parquet(files: list[str]) -> Engine:
    """Parquet files as one table, whose types hold what every file holds."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    schemas = arrow_schemas(files)
    schema = ds.dataset(files[:1], format="parquet").schema
    for name, kind in common_types(schemas, arrow_largest).items():
        digits = digits_of(kind)
        if digits is not None:
            dtype = pa.decimal128(*digits)
        elif kind == "text" or kind.startswith(("int", "uint", "float")):
            dtype = pa.type_for_alias("string" if kind == "text" else kind)
        else:
            dtype = ds.dataset(holder(schemas, name, kind), format="parquet").schema.field(name).type
        schema = schema.set(schema.get_field_index(name), pa.field(name, dtype))
    return ArrowEngine(ds.dataset(files, format="parquet", schema=schema))
