"""Dask: dataframes whose partitions are summed where they lie, on one machine or on a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from felicific._tables.engine import (
    BatchPlace,
    Combine,
    Decisions,
    Engine,
    Step,
    combine_all,
    in_partition,
    kind_of_type,
    on_worker,
    or_raise,
    rows_for,
)
from felicific._tables.memory import add_column
from felicific._tables.progress import attend, progress_line
from felicific._typing import Table
from felicific.exceptions import DataError, EngineError, FelicificError

T = TypeVar("T")

#: Results that one task combines.
_FAN_IN = 8

#: What messages call the kinds of a column.
NAMED = {"bool": "truth values", "whole": "whole numbers", "real": "numbers", "text": "text"}


class DaskEngine(Engine):
    """A Dask dataframe, whose partitions are those of pandas."""

    label = "Dask"

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        names = list(self.table.columns)
        if len(set(names)) < len(names):
            return names, []  # refused by name
        return names, list(nw.from_native(self.table._meta, eager_only=True).schema.values())

    def _head(self, count: int) -> Table:
        """Those of the first partition."""
        first = self.table.partitions[0].map_partitions(methodcaller("head", count), meta=self.table._meta)
        return first.compute() if count else self.table._meta

    def fold(self, step: Step[T], combine: Combine[T], names: Sequence[Hashable]) -> T | None:
        """Apply ``step`` on the workers and combine a few at a time, there too."""
        import dask

        parts = self.table[list(names)].to_delayed()
        work = dask.delayed(on_worker, pure=False)
        alike = partial(_of_one_kind, {name: self.kind(name, "its partitions") for name in names}, step)
        results = leaves = [work(alike, part, BatchPlace(0, i)) for i, part in enumerate(parts)]
        join = dask.delayed(combine_all, pure=False)
        while len(results) > 1:
            results = [join(combine, results[i : i + _FAN_IN]) for i in range(0, len(results), _FAN_IN)]
        try:
            total: T = or_raise(_compute(results[0], leaves))
            return total
        except FelicificError:
            raise
        except Exception as error:
            raise self._explained(error, names) from error

    def _explained(self, error: Exception, names: Sequence[Hashable]) -> FelicificError:
        """Why it failed: workers that died, a partition that lacks a column, or what Dask says."""
        if type(error).__name__ == "KilledWorker":
            return EngineError(
                f"Dask's workers died again and again while working on one partition ({error}).",
                "Give the workers more memory, or the table smaller partitions (repartition).",
            )
        if not isinstance(error, KeyError):
            return self.failure(error)
        import dask

        with suppress(KeyError):  # of a file that lacks a column it cannot even say which ones there are
            schemas = dask.compute(*[dask.delayed(list)(part) for part in self.table.to_delayed()])
            for i, columns in enumerate(schemas):
                _refuse_lacking(i, columns, names)
        return self.failure(error)

    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """Partition by partition, when they are computed."""
        seen = decisions.columns(self)
        decide = partial(_decide_partition, decisions, seen, column, tuple(self.names))
        meta = add_column(self.table._meta, column, decisions.classes[:0])
        return self.table.map_partitions(decide, meta=meta)


def _of_one_kind(kinds: dict[Hashable, str], step: Step[T], part: Table, place: BatchPlace) -> T:
    """Apply ``step`` to a partition whose columns hold what those of the table do: 1 and '1' are two groups."""
    import narwhals as nw

    for name, kind in kinds.items():
        column = nw.from_native(part[name], series_only=True)
        own = kind_of_type(column.dtype)
        alike = own == kind or "other" in (own, kind) or {own, kind} == {"whole", "real"}
        if not alike and column.null_count() < len(column):
            raise DataError(
                f"The column {name!r} is {NAMED[kind]} in the table and {NAMED[own]} here.",
                "Write every part of the table with the same types.",
            )
    return step(part, place)


def _refuse_lacking(partition: int | None, columns: Sequence[Hashable], names: Sequence[Hashable]) -> None:
    """Raise if a partition lacks some columns that the table has."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError(
            f"Partition {partition} has no column {', '.join(map(repr, missing))}, which others have.",
            "Write every part of the table with the same columns.",
        )


def _decide_partition(
    decisions: Decisions,
    seen: tuple[str, ...] | None,
    column: str,
    names: tuple[str, ...],
    part: Table,
    partition_info: Any = None,
) -> Table:
    """A partition with its decisions; Dask says its number, except where it only looks at the types."""
    number = None if partition_info is None else partition_info["number"]
    _refuse_lacking(number, list(part.columns), names)
    part = part[list(names)]
    try:
        decided = (
            decisions.decide(rows_for(decisions, seen, part, names)) if len(part) else decisions.classes[:0]
        )
    except FelicificError as error:
        raise in_partition(error, number) from error
    return add_column(part, column, decided)


# ---------------------------------------------------------------------------------------------------------
# Waiting: Ctrl-C cancels what the workers do, and the terminal shows how far they are


class _Count:
    """How many partitions are done."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total

    def progress(self) -> str:
        return f"{self.done:,} of {self.total:,} partitions summed"


def _compute(result: Any, parts: Sequence[Any]) -> Any:
    """A delayed value, by the scheduler that Dask would use; ``parts`` are what its partitions give."""
    client = _client()
    return _compute_locally(result, parts) if client is None else _compute_by(client, result, parts)


def _client() -> Any:
    """The client of the cluster that would compute; None for Dask's own schedulers."""
    import dask.base

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "cancel"):
        return None
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return client
    # Inside of a task Dask itself must know who waits: it lends the waiting thread to other tasks.
    return None


def _compute_locally(result: Any, parts: Sequence[Any]) -> Any:
    """By Dask's own schedulers, which hear of Ctrl-C themselves."""
    import dask
    from dask.callbacks import Callback

    keys, count = {part.key for part in parts}, _Count(len(parts))
    with progress_line() as line:

        def counted(key: Any, *rest: Any) -> None:
            if key in keys:
                count.done += 1
                line.say(count.progress)

        with Callback(posttask=counted):
            return dask.compute(result)[0]


def _compute_by(client: Any, result: Any, parts: Sequence[Any]) -> Any:
    """By a cluster. What the partitions give stays there; a done one is let go, so that no worker keeps it for us."""
    count = _Count(len(parts))
    with progress_line() as line:
        # Nobody counts where nobody reads.
        root, *leaves = client.compute([result, *(parts if line.stream is not None else ())])

        def counted(leaf: Any) -> None:
            count.done += 1
            leaf.release()

        for leaf in leaves:
            leaf.add_done_callback(counted)

        def cancel() -> None:
            client.cancel([future for future in (root, *leaves) if not future.done()])

        return attend(root.result, count.progress, cancel)
