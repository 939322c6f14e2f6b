"""Clusters: waiting for Dask and Spark; Ctrl-C cancels what they do there, and the terminal shows how far they are."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from felicific._tables.progress import attend, shown

T = TypeVar("T")


class _Count:
    """How many partitions are done."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total

    def told(self) -> str:
        return f"{self.done:,} of {self.total:,} partitions summed"


def compute(result: Any, parts: Sequence[Any]) -> Any:
    """A delayed value of Dask, by the scheduler that Dask would use; ``parts`` are what its partitions give."""
    client = _client()
    return _here(result, parts) if client is None else _there(client, result, parts)


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


def _here(result: Any, parts: Sequence[Any]) -> Any:
    """By Dask's own schedulers, which hear of Ctrl-C themselves."""
    import dask
    from dask.callbacks import Callback

    keys, count = {part.key for part in parts}, _Count(len(parts))
    with shown() as line:

        def counted(key: Any, *rest: Any) -> None:
            if key in keys:
                count.done += 1
                line.say(count.told)

        with Callback(posttask=counted):
            return dask.compute(result)[0]


def _there(client: Any, result: Any, parts: Sequence[Any]) -> Any:
    """By a cluster. What the partitions give stays there; a done one is let go, so that no worker keeps it for us."""
    count = _Count(len(parts))
    with shown() as line:
        # Nobody counts where nobody reads.
        root, *leaves = client.compute([result, *(parts if line.stream is not None else ())])

        def counted(leaf: Any) -> None:
            count.done += 1
            leaf.release()

        for leaf in leaves:
            leaf.add_done_callback(counted)

        def cancel() -> None:
            client.cancel([future for future in (root, *leaves) if not future.done()])

        return attend(root.result, count.told, cancel)


def run_spark(session: Any, work: Callable[[], T]) -> T:
    """Do something with Spark.

    PySpark's own answer to Ctrl-C asks Spark to cancel its jobs, but over the connection on which the thread is
    waiting, where it goes wrong and the jobs run on. So the work has a thread, and a connection, of its own.
    """
    from pyspark import inheritable_thread_target

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
    return attend(inheriting, _Tasks(session).told, cancel)


class _Tasks:
    """How many tasks of Spark are done. Threads of their own ask for it, as they wait for Spark's answer."""

    def __init__(self, session: Any) -> None:
        self.session, self.text = session, "Spark is summing"
        self.thread: threading.Thread | None = None

    def told(self) -> str:
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
            known = [stage for stage in stages if stage is not None]
            done, total = (
                sum(stage.numCompletedTasks for stage in known),
                sum(stage.numTasks for stage in known),
            )
            if total:
                self.text = f"Spark is summing, {done:,} of {total:,} tasks"
