"""Progress: one line on the terminal for work that takes long, and Ctrl-C that stops it at once.

The line is shown on a terminal or in a notebook only, after two seconds, and is gone at the end; scripts whose messages
go to a file never see it. Whoever waits draws it, so it costs nothing while nobody waits.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any, TextIO, TypeVar

T = TypeVar("T")

#: Seconds after which the line appears, and between two looks at the work.
DELAY, INTERVAL = 2.0, 0.2


class ProgressLine:
    """One line on a terminal, rewritten in place.

    Parameters
    ----------
    stream : text stream or None
        Where it is written; None for nowhere.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream
        self._start = time.monotonic()
        self._looked = self._start
        self._width = 0

    def say(self, tell: Callable[[], str]) -> None:
        """Write what ``tell`` returns, unless it is empty, if it is time to; otherwise it is not even called."""
        now = time.monotonic()
        if self.stream is None or now - self._start < DELAY or now - self._looked < INTERVAL:
            return
        self._looked = now
        # An engine that cannot say how far it is (its connection was closed, ...) has an error of its own to raise.
        with contextlib.suppress(Exception):
            text = tell()
            if text:
                self._write(f"felicific: {text}, {now - self._start:.0f} s")

    def clear(self) -> None:
        """Remove it."""
        if self._width:
            with contextlib.suppress(Exception):
                self._write("")

    def _write(self, text: str) -> None:
        if self.stream is None:
            return
        # A line that is longer than the terminal could not be rewritten in place.
        text = text[: shutil.get_terminal_size().columns - 1]
        # Blanks, not an escape sequence: they erase everywhere.
        self.stream.write(f"\r{text:<{self._width}}" + ("" if text else "\r"))
        self.stream.flush()
        self._width = len(text)


_current: ContextVar[ProgressLine | None] = ContextVar("felicific_progress", default=None)

#: Held while a line is on the terminal: calls in other threads are silent meanwhile.
_taken = threading.Lock()


@contextlib.contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """The line of the work inside. Inner work shares the line of the outer one."""
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    stream = _terminal()
    if stream is not None and not _taken.acquire(blocking=False):
        stream = None
    line = ProgressLine(stream)
    token = _current.set(line)
    try:
        yield line
    finally:
        _current.reset(token)
        line.clear()
        if stream is not None:
            _taken.release()


def _terminal() -> TextIO | None:
    """Where somebody reads along: standard error, if that is a terminal or a notebook."""
    stream: Any = sys.stderr
    try:
        reads = type(stream).__module__.startswith("ipykernel") or stream.isatty()
    except (AttributeError, OSError, ValueError):  # none, closed, or not quite a stream
        return None
    return stream if reads else None


def attend(work: Callable[[], T], tell: Callable[[], str], cancel: Callable[[], Any]) -> T:
    """Do work that does not listen, such as a query, in a thread of its own, and wait for it.

    Ctrl-C ends the waiting at once: ``cancel`` is called, the work ends, and KeyboardInterrupt is raised here.

    Parameters
    ----------
    work : callable without arguments
        What is done; what it returns is returned, what it raises is raised.
    tell : callable that returns a text
        How far it is.
    cancel : callable
        Stops the work, which does not outlive this call.
    """
    done, outcome = threading.Event(), dict[str, Any]()

    def run() -> None:
        try:
            outcome["value"] = work()
        except BaseException as error:
            outcome["error"] = error
        finally:
            done.set()

    with progress_line() as line:
        thread = threading.Thread(target=copy_context().run, args=(run,), name="felicific")
        try:
            thread.start()
            while not done.wait(INTERVAL):
                line.say(tell)
        except BaseException:
            # Not thread.join: interrupted once, it takes a running thread for an ended one (Python 3.11).
            while thread.is_alive() and not done.is_set():
                cancel()  # again and again: the work may not have reached the engine yet
                done.wait(1.0)
            raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]  # type: ignore[no-any-return]  # what work() returned
