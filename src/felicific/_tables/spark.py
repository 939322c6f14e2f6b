"""Spark: dataframes of PySpark, and the SQL that Spark speaks."""

from __future__ import annotations

import contextlib
import pickle
import re
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from felicific._tables.dialect import DIALECTS
from felicific._tables.engine import (
    BatchPlace,
    Combine,
    Decisions,
    Engine,
    Step,
    arrow_rows,
    combine_all,
    on_worker,
    or_raise,
    rows_for,
)
from felicific._tables.progress import attend
from felicific._typing import Table
from felicific.exceptions import EngineError

T = TypeVar("T")

#: Names of types.
_TYPES = {
    "bool": "boolean",
    "whole": "bigint",
    "unsigned": "decimal(20, 0)",
    "real": "double",
    "text": "string",
}


class SparkEngine(Engine):
    """A PySpark dataframe."""

    label = "Spark"
    ignores_case = True
    dialect = DIALECTS["spark"]

    @property
    def ordered(self) -> bool:
        """Rows of Spark have no order."""
        return False

    def _reason(self, error: Exception) -> str:
        """The first cause: a Java trace begins with the last."""
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        return causes[-1].removeprefix("Caused by: ") if causes else str(error)

    def _renamed(self) -> Any:
        return self.table.toDF(*(f"c{i}" for i in range(len(self.names))))

    def _place(self, name: Hashable) -> str:
        return f"c{self.names.index(name)}"

    def _schema(self) -> tuple[list[Any], list[Any]]:
        import narwhals as nw

        names = list(self.table.columns)
        renamed = self.table.toDF(*(f"c{i}" for i in range(len(names))))
        return names, list(nw.from_native(renamed).collect_schema().values())

    def _head(self, count: int) -> Table:
        return arrow_rows(self.wait_for(self._renamed().limit(count).toArrow), self.names)

    def fold(self, step: Step[T], combine: Combine[T], names: Sequence[Hashable]) -> T | None:
        """Apply ``step`` on the workers, to the batches of a partition in turn."""
        chosen = self._renamed().select(*map(self._place, names))
        work = _Work(step, combine, tuple(names))
        try:
            rows = self.wait_for(chosen.mapInArrow(work, "payload binary").collect)
        except Exception as error:
            raise self.failure(error) from error
        results = [pickle.loads(row["payload"]) for row in rows]
        total: T | None = or_raise(combine_all(combine, results)) if results else None
        return total

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

    def with_decisions(self, decisions: Decisions, column: str) -> Table:
        """By an expression where there is one, else by Python on the workers."""
        from pyspark.sql import functions

        renamed, kind = self._renamed(), _TYPES[decisions.kind]
        text = decisions.sql(self, self.dialect, self._place)
        if text is not None:
            decided = renamed.withColumn("decided", functions.expr(f"CAST({text} AS {kind})"))
            return decided.toDF(*self.names, column)
        from pyspark.sql.types import StructField, StructType, _parse_datatype_string

        schema = StructType([*renamed.schema.fields, StructField("decided", _parse_datatype_string(kind))])
        decided = renamed.mapInArrow(_Deciding(decisions, decisions.columns(self), tuple(self.names)), schema)
        return decided.toDF(*self.names, column)

    def wait_for(self, work: Callable[[], T]) -> T:
        """Wait for Spark.

        PySpark's own answer to Ctrl-C asks Spark to cancel its jobs, but over the connection on which the thread is
        waiting, where it goes wrong and the jobs run on. So the work has a thread, and a connection, of its own.
        """
        from pyspark import inheritable_thread_target

        session = self.table.sparkSession
        tag = f"felicific-{uuid.uuid4().hex}"
        if "connect" in type(session).__module__:
            mark, stop = session.addTag, session.interruptTag
        else:  # tags of the session do not reach its jobs from another thread
            mark, stop = session.sparkContext.addJobTag, session.sparkContext.cancelJobsWithTag

        def tagged() -> T:
            mark(tag)
            return work()

        def cancel() -> None:
            # In a new thread: the connection of this one may be broken by the Ctrl-C.
            threading.Thread(target=stop, args=(tag,)).start()

        inheriting: Callable[[], T] = inheritable_thread_target(session)(tagged)
        return attend(inheriting, _Tasks(session, self.progress()).progress, cancel)


# ---------------------------------------------------------------------------------------------------------
# What runs on the workers


@dataclass(frozen=True)
class _Work(Generic[T]):
    """What a worker does with the batches of one partition."""

    step: Step[T]
    combine: Combine[T]
    names: tuple[Hashable, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row for the partition: its combined result, as Spark itself ships Python objects."""
        import pyarrow as pa
        from pyspark import TaskContext, cloudpickle

        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        total: Any = None  # a result, or an error of ours
        start = 0
        for batch in batches:
            result = on_worker(self.step, arrow_rows(batch, self.names), BatchPlace(start, partition))
            total = result if total is None else combine_all(self.combine, [total, result])
            start += batch.num_rows
        if total is not None:
            yield pa.RecordBatch.from_pydict({"payload": [cloudpickle.dumps(total)]})


@dataclass(frozen=True)
class _Deciding:
    """What a worker does with batches of people who are decided on."""

    decisions: Decisions
    seen: tuple[str, ...] | None
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, each with its decisions."""
        import pyarrow as pa

        for batch in batches:
            rows = rows_for(self.decisions, self.seen, arrow_rows(batch, self.names), self.names)
            decided = self.decisions.decide_batch(rows)
            yield batch.append_column("decided", pa.array(decided.tolist()))


# ---------------------------------------------------------------------------------------------------------
# How far it is


class _Tasks:
    """How many tasks are done. Threads of their own ask for it, as they wait for Spark's answer."""

    def __init__(self, session: Any, words: str) -> None:
        self.session, self.words, self.text = session, words, words
        self.thread: threading.Thread | None = None

    def progress(self) -> str:
        """What was heard last."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=self._ask, daemon=True)
            self.thread.start()
        return self.text

    def _ask(self) -> None:
        with contextlib.suppress(Exception):  # Spark Connect tells nothing
            if self.session.conf.get("spark.ui.showConsoleProgress", "false") == "true":
                self.text = ""  # Spark shows a line of its own
                return
            tracker = self.session.sparkContext.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
            stages = [
                tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds
            ]
            infos = [stage for stage in stages if stage is not None]
            done, total = (
                sum(stage.numCompletedTasks for stage in infos),
                sum(stage.numTasks for stage in infos),
            )
            if total:
                self.text = f"{self.words}, {done:,} of {total:,} tasks"
