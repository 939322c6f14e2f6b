"""Progress: one line for those who monitor a terminal, nothing for others; Ctrl-C stops any engine."""

import contextvars
import io
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Terminal
from functions import BATCHWISE, as_duckdb, as_lazy, as_pandas, asked, assert_same, people, write_parquet

from felicific import Happiness, aggregate
from felicific._tables import progress
from felicific._tables.engine import find_engine
from felicific._tables.progress import attend, progress_line
from felicific.exceptions import BatchWarning


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture(scope="module")
def table():
    return people(1200)


# ---------------------------------------------------------------------------------------------------------
# The line


def test_the_line_waits_and_leaves(monkeypatch, terminal, clock):
    """It appears after two seconds, is rewritten in place a few times a second, and leaves nothing behind."""
    monkeypatch.setattr(progress, "DELAY", 2.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.5)
    with progress_line() as line:
        for clock[0], text in [(101, "a"), (102.5, "many rows"), (102.6, "b"), (103.5, "c")]:
            line.say(lambda text=text: text)
        assert terminal.lines == ["felicific: many rows, 2 s", "felicific: c, 4 s"]
        assert terminal.screen == "felicific: c, 4 s"
    assert terminal.screen == ""
    assert "\n" not in terminal.getvalue()


def test_short_work_shows_nothing(monkeypatch, terminal, clock):
    """What takes less than two seconds writes nothing, and is not even asked."""
    monkeypatch.setattr(progress, "DELAY", 2.0)
    with progress_line() as line:
        clock[0] += 1.9
        line.say(lambda: pytest.fail("asked"))
    assert terminal.getvalue() == ""


def test_inner_work_shares_the_line(terminal):
    """And the time, of the outer."""
    with progress_line() as outer, progress_line() as line:
        assert line is outer
        line.say(lambda: "31 of 80 partitions")
    assert terminal.lines == ["felicific: 31 of 80 partitions, 0 s"]


def test_a_long_line_is_cut(terminal):
    """A line never wraps: it could not be rewritten."""
    with progress_line() as line:
        line.say(lambda: "x" * 500)
        assert len(terminal.screen) == 59
    assert terminal.screen == ""


@pytest.mark.parametrize("stream", [None, io.StringIO(), object(), "closed"])
def test_without_a_terminal_nothing_happens(monkeypatch, stream):
    """A file, no stream at all or a closed one: nothing is written, asked or raised."""
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    with progress_line() as line:
        line.say(lambda: pytest.fail("asked"))
    if isinstance(stream, io.StringIO) and not stream.closed:
        assert stream.getvalue() == ""


def test_a_notebook_is_read_along(monkeypatch, terminal):
    """The stream of a Jupyter kernel is no terminal, and yet somebody reads it."""
    outstream = type(
        "OutStream", (Terminal,), {"__module__": "ipykernel.iostream", "isatty": lambda self: False}
    )()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=outstream))
    with progress_line() as line:
        line.say(lambda: "x")
    assert outstream.lines == ["felicific: x, 0 s"]


def test_a_broken_terminal_or_teller_stops_nothing(terminal, monkeypatch):
    """Neither an engine that cannot say how far it is nor a terminal that is gone ends the work."""
    with progress_line() as line:
        line.say(lambda: 1 / 0)
        line.say(lambda: "x")
        monkeypatch.setattr(Terminal, "write", lambda self, text: 1 / 0)
        line.say(lambda: "y")
    with progress_line() as line:
        pass
    assert progress._taken.acquire(blocking=False)
    progress._taken.release()


def test_two_threads_do_not_share_the_terminal(terminal):
    """Only the first of two calls at the same time has the line."""
    with progress_line() as line:

        def other():
            with progress_line() as second:
                second.say(lambda: "second")

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        line.say(lambda: "first")
    assert terminal.lines == ["felicific: first, 0 s"]


def test_attended_work_is_the_work():
    """What it returns is returned and what it raises is raised; it sees the caller's context; nothing runs after."""
    variable = contextvars.ContextVar("variable")
    variable.set(5)
    assert attend(variable.get, str, str) == 5
    with pytest.raises(ZeroDivisionError):
        attend(lambda: 1 / 0, str, str)
    assert not running()


def running():
    return [thread for thread in threading.enumerate() if thread.name == "felicific"]


# ---------------------------------------------------------------------------------------------------------
# Engines

ENGINES = {
    "polars": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": lambda table, folder: write_parquet(table, folder / "people.parquet"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_tell_the_rows_so_far(terminal, monkeypatch, table, tmp_path, engine):
    """Batch by batch the line counts rows; it changes nothing about the result."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 500)
    ask = asked(happiness=Happiness(BATCHWISE["own"], name="own"))
    with pytest.warns(BatchWarning):
        found = aggregate(ENGINES[engine](table, tmp_path), **ask)
    assert any("1,200 rows summed" in line for line in terminal.lines)
    assert terminal.screen == ""
    monkeypatch.undo()
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_queries_name_their_engine(terminal, table, tmp_path):
    """While a query runs the line says whose it is, and DuckDB's share where the connection is ours."""
    import duckdb

    for source, words in [
        (as_lazy(table), "Polars is summing"),
        (duckdb.connect().sql("from range(3)"), "DuckDB is summing"),
        (write_parquet(table, tmp_path / "people.parquet"), "DuckDB is summing, "),
    ]:
        engine, asked_again = find_engine(source), threading.Event()

        def work(enough=asked_again, engine=engine):
            if hasattr(engine, "connection"):
                engine.connection.sql("select sum(sqrt(range)) from range(10_000_000)").fetchall()
            assert enough.wait(20)

        def progress(engine=engine, enough=asked_again, words=words):
            text = type(engine).progress(engine)
            if text.startswith(words):
                enough.set()
            return text

        engine.progress = progress
        engine.wait_for(work)
        assert any(line.startswith(f"felicific: {words}") for line in terminal.lines)


# ---------------------------------------------------------------------------------------------------------
# Ctrl-C

SCRIPT = """
import os, signal, sys, threading, time, warnings
import numpy as np
sys.path[:0] = {paths!r}
from functions import as_duckdb, as_lazy, as_pandas, asked, assert_same, people, write_parquet
from felicific import audit, aggregate

warnings.simplefilter("ignore")
table = people(900)

def interrupt():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

def slow(decision, x):
    if isinstance(x["loan"], np.ndarray) or not hasattr(x["loan"], "expr"):  # rows, not an expression
        for _ in range(6000):
            time.sleep(0.01)
    return decision * x["loan"]

def idle():
    before = time.process_time()
    time.sleep(0.2)
    return time.process_time() - before < 0.02

def survive(work, again):
    "Ctrl-C during work is one KeyboardInterrupt; then nothing runs, and the same table can be summed."
    interrupt()
    try:
        work()
    except KeyboardInterrupt:
        time.sleep(0.2)  # a second one would come here
    else:
        sys.exit("not interrupted")
    assert not [thread for thread in threading.enumerate() if thread.name == "felicific"]
    assert any(idle() for _ in range(10)), "something still runs"
    assert_same(again(), aggregate(as_pandas(table), **asked(happiness="statistical_parity")))
    print("survived")

plain = asked(happiness="statistical_parity")
aggregate(as_duckdb(table), **plain), aggregate(as_lazy(table), **plain)  # load everything first
{case}
"""

CASES = {
    "polars": """
import polars as pl
lazy = as_lazy(table)
many = lazy.join(pl.LazyFrame({"n": range(1_000_000)}), how="cross")
many = many.with_columns(loan=pl.col("loan").sqrt() + pl.col("n"))
ask = asked(happiness=lambda decision, x: decision * x["loan"] ** 0.5)
survive(lambda: aggregate(many, **ask), lambda: aggregate(lazy, **plain))

survive(lambda: audit("y", lazy, "y", sensitive_features="z", happiness=slow), lambda: aggregate(lazy, **plain))
""",
    "duckdb": """
import duckdb
connection = duckdb.connect()
connection.register("people", as_duckdb(table).to_arrow_table())
few = connection.table("people")
many = connection.sql("select * replace (loan + sqrt(range) as loan) from people, range(100000000)")
ask = asked(happiness=lambda decision, x: decision * x["loan"] ** 0.5)
survive(lambda: aggregate(many, **ask), lambda: aggregate(few, **plain))

many = connection.sql("select * from people where id in (select sum(sqrt(range)) from range(100000000000))")
ask = {"sensitive_features": "z", "happiness": lambda decision, x: decision * x["loan"]}
survive(lambda: audit("y", many, "y", **ask), lambda: aggregate(few, **plain))

import tempfile
with tempfile.TemporaryDirectory() as folder:
    path = write_parquet(table, folder + "/people.parquet")
    ask = {"sensitive_features": "z", "happiness": slow}
    survive(lambda: audit("y", path, "y", **ask), lambda: aggregate(path, **plain))
    assert os.listdir(folder) == ["people.parquet"]
""",
}


def start(case):
    """Run the script of a case; what does not stop fails by the limit of time."""
    import felicific

    shared = Path(__file__).parents[1]  # functions that several files share
    paths = [str(shared), str(Path(felicific.__file__).parent.parent)]
    # Not str.format: the cases have braces.
    script = SCRIPT.replace("{paths!r}", repr(paths)).replace("{case}", case)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=40, check=False
    )


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_stops_the_engine(case):
    """Ctrl-C is one KeyboardInterrupt, leaves nothing running, and the same table can be summed again."""
    done = start(CASES[case])
    assert done.stdout == "survived\n" * CASES[case].count("survive("), done.stderr[-2000:]


@pytest.mark.slow
def test_the_test_of_ctrl_c_sees_what_goes_on():
    """The script behind the test above fails on work that ends by itself and on work that goes on."""
    busy = "(threading.Thread(target=lambda: [i for i in range(10**8)], daemon=True).start(), time.sleep(9))"
    case = f"try: survive(lambda: {busy}, None)\nexcept AssertionError as error: print(error)\nsurvive(time.time, None)"
    done = start(case)
    assert done.stdout == "something still runs\n"
    assert done.stderr.startswith("not interrupted\n")
