"""Aggregates of Parquet on every engine against its own hand-written query, where there is one, in one run.

    pip install -e ".[duckdb,polars,dask,spark,pandas]"
    python benchmarks/engines.py [--rows 20000000] [--repeats 3] [--only engines | growth | policies]

Three classes, four groups, three measures. The file is made in a temporary folder. Every measurement is a process of
its own, measured with its children: seconds, processor seconds and peak memory. Hand-written queries and felicific take
turns, and the least of the repeats counts. Also measured: the floor (reading the columns once), the cost per row from
50,000 rows on, and what audits and written decisions cost beside sums and a bare write. Writes the tables between the
markers of ``docs/evidence/speed.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from shared import EVIDENCE, fill, machine, table

COMMON = """
import json, os, resource, sys, threading, time
file, rows = {file!r}, {rows}

def tree():
    "Memory of this process and its children, now."
    pids, total = [os.getpid()], 0
    while pids:
        pid = pids.pop()
        try:
            with open(f"/proc/{{pid}}/smaps_rollup") as lines:
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in os.listdir(f"/proc/{{pid}}/task"):
                with open(f"/proc/{{pid}}/task/{{task}}/children") as children:
                    pids += map(int, children.read().split())
        except OSError:
            continue
    return total / 1024

def spent():
    "Processor seconds of this process and of those children that have ended."
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

def monitored(work):
    peak, done = [tree()], threading.Event()
    def monitor():
        while not done.wait(0.05):
            peak[0] = max(peak[0], tree())
    threading.Thread(target=monitor, daemon=True).start()
    before, start = spent(), time.perf_counter()
    found = work()
    seconds, cpu = time.perf_counter() - start, spent() - before
    done.set()
    print(json.dumps({{"seconds": seconds, "cpu": cpu, "memory": peak[0], "check": found}}))
"""

FLOOR = {
    "DuckDB": """
import duckdb
columns = ", ".join(f"sum({c})" for c in ("p0", "p1", "p2", "y", "loan", "hours", "income"))
monitored(lambda: len(duckdb.sql(f'SELECT {columns}, max("group") FROM read_parquet(\\'{file}\\')').fetchall()))
""",
    "Polars": """
import polars as pl
numbers = pl.col("p0", "p1", "p2", "y", "loan", "hours", "income").sum()
monitored(lambda: len(pl.scan_parquet(file).select(numbers, pl.col("group").max()).collect(engine="streaming")))
""",
}

HAND = {
    "DuckDB": """
import duckdb
shares = ", ".join(f"p{k} / (p0 + p1 + p2) AS s{k}" for k in range(3))
top = "CASE WHEN s0 >= s1 AND s0 >= s2 THEN 0 WHEN s1 >= s2 THEN 1 ELSE 2 END"
wants = ("loan", "hours", "income")
sums = ["count(*)"] + [f"sum((y <> {d})::INT)" for d in range(3)] + ["sum((y <> top)::INT)"]
sums += [f"sum({d} * {c})" for d in range(3) for c in wants] + [f"sum(top * {c})" for c in wants]
text = f'''
WITH scored AS (SELECT y, "group" AS z, loan, hours::DOUBLE AS hours, income, {shares} FROM read_parquet('{file}')),
     decided AS (SELECT *, {top} AS top FROM scored)
SELECT z, top * 1366 + ceil(1365 * greatest(s0, s1, s2))::INT AS cell, {", ".join(sums)} FROM decided GROUP BY ALL
'''
monitored(lambda: sum(row[2] for row in duckdb.sql(text).fetchall()))
""",
    "Polars": """
import polars as pl
c = pl.col
wants = ("loan", "hours", "income")
scored = pl.scan_parquet(file).with_columns(
    *((c(f"p{k}") / (c.p0 + c.p1 + c.p2)).alias(f"s{k}") for k in range(3)), hours=c.hours.cast(pl.Float64)
)
decided = scored.with_columns(
    top=pl.when((c.s0 >= c.s1) & (c.s0 >= c.s2)).then(0).when(c.s1 >= c.s2).then(1).otherwise(2)
)
placed = decided.with_columns(
    cell=c.top * 1366 + (1365 * pl.max_horizontal("s0", "s1", "s2")).ceil().cast(pl.Int64)
)
sums = [pl.len().alias("n")] + [(c.y != d).sum().alias(f"l{d}") for d in range(3)]
sums += [(c.y != c.top).sum().alias("own")]
sums += [(d * c(w)).sum().alias(f"v{d}{w}") for d in range(3) for w in wants]
sums += [(c.top * c(w)).sum().alias(f"t{w}") for w in wants]
query = placed.group_by("group", "cell").agg(sums)
monitored(lambda: int(query.collect(engine="streaming")["n"].sum()))
""",
    "Dask": """
import dask, numpy as np, pyarrow.parquet as pq
from distributed import Client, LocalCluster
def part(i):
    t = pq.ParquetFile(file).read_row_group(i, columns=["p0", "p1", "p2", "y", "group", "loan", "hours", "income"])
    p = np.column_stack([t[f"p{k}"].to_numpy() for k in range(3)])
    p /= p.sum(axis=1, keepdims=True)
    top = p.argmax(axis=1)
    cell = top * 1366 + np.ceil(1365 * p.max(axis=1)).astype(int)
    codes = np.unique(t["group"].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    index, y = codes * 4098 + cell, t["y"].to_numpy()
    def add(numbers=None):
        return np.bincount(index, numbers, minlength=4 * 4098)
    found = [add()] + [add(y != d) for d in range(3)] + [add(y != top)]
    for name in ("loan", "hours", "income"):
        values = t[name].to_numpy().astype(float)
        found += [add(d * values) for d in range(3)] + [add(top * values)]
    return np.array(found)
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        def work():
            parts = [dask.delayed(part)(i) for i in range(pq.ParquetFile(file).num_row_groups)]
            return int(dask.delayed(sum)(parts).compute()[0].sum())
        monitored(work)
""",
}

ASK = """
from felicific import aggregate
def loan(decision, x): return decision * x["loan"]
def hours(decision, x): return decision * x["hours"]
def income(decision, x): return decision * x["income"]
ask = dict(score={0: "p0", 1: "p1", 2: "p2"}, y="y", sensitive_features="group", happiness=[loan, hours, income])
"""

SUM = "monitored(lambda: int(aggregate({rows}, **ask).rows.sum()))\n"

#: What every engine is imported by, its rows, and a few of them.
READ = {
    "DuckDB": ("import duckdb", "duckdb.read_parquet(file)", "duckdb.read_parquet(file).limit(1000)"),
    "Polars": ("import polars as pl", "pl.scan_parquet(file)", "pl.scan_parquet(file).head(1000)"),
    "Arrow": ("import pyarrow.dataset as ds", "ds.dataset(file)", ""),
}

DASK = """
import signal
import dask.dataframe as dd
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.read_parquet(file, split_row_groups=True)
        if {killed}:
            pid = next(iter(cluster.workers.values())).pid
            threading.Timer(1.0, os.kill, (pid, signal.SIGKILL)).start()
        monitored(lambda: int(aggregate(frame, **ask).rows.sum()))
"""

SPARK = """
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g").getOrCreate()
"""

OURS = {name: f"{ASK}{opening}\n{SUM.format(rows=rows)}" for name, (opening, rows, _) in READ.items()} | {
    "Dask": ASK + DASK.format(killed=False),
    "Dask, a worker killed": ASK + DASK.format(killed=True),
    "Spark": ASK + SPARK + SUM.format(rows="spark.read.parquet(file)"),
}

#: The same once a few rows have been summed, so that imports do not count.
WARM = {
    "in memory": ASK
    + """
import pyarrow.parquet as pq
table = {name: column.to_numpy() for name, column in zip(*(lambda t: (t.column_names, t.columns))(pq.read_table(file)))}
aggregate({name: column[:1000] for name, column in table.items()}, **ask)
"""
    + SUM.format(rows="table")
} | {
    name: f"{ASK}{opening}\naggregate({few}, **ask)\n{SUM.format(rows=rows)}"
    for name, (opening, rows, few) in READ.items()
    if few
}


def make(path: Path, rows: int) -> Path:
    """Write people to a Parquet file, a quarter of a million per row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        scores = np.exp(rng.normal(size=(n, 3)))
        scores /= scores.sum(axis=1, keepdims=True)
        part = pa.table(
            {
                **{f"p{k}": scores[:, k] for k in range(3)},
                "y": (rng.random(n)[:, None] > scores.cumsum(axis=1)).sum(axis=1).clip(max=2),
                "group": np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)],
                "loan": rng.lognormal(10, 0.5, n),
                "hours": rng.integers(1, 99, n).astype(np.int8),
                "income": rng.lognormal(10.5, 0.6, n),
            }
        )
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=250_000)
    if writer is not None:
        writer.close()
    return path


def run(code: str, file: Path, rows: int) -> dict[str, Any]:
    """One measurement in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(COMMON.format(file=str(file), rows=rows) + code)
        script.flush()
        done = subprocess.run([sys.executable, script.name], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(
        [line for line in done.stdout.splitlines() if line.startswith("{")][-1]
    )
    return found


#: Audit and decisions of a policy beside the sums and a bare write of the same rows, in turns; processor time.
POLICIES = """
import json, time, warnings
from felicific import audit, aggregate, solve
warnings.simplefilter("ignore")
{open}
ask = dict(score={{0: "p0", 1: "p1", 2: "p2"}}, sensitive_features="group")
asked = dict(y="y", happiness="decision > 0", **ask)
policy = solve(aggregate(rows(), **asked), gap=0.01)
out = file + ".out"
ways = {{
    "aggregates": lambda: aggregate(rows(), **asked), "audit": lambda: audit(policy, rows(), **asked),
    "bare write": lambda: write(rows()), "apply": lambda: write(policy.apply(rows(), key="id", **ask)),
}}
best = dict.fromkeys(ways, float("inf"))
for _ in range({repeats}):
    for name, work in ways.items():
        start = time.process_time()
        work()
        best[name] = min(best[name], time.process_time() - start)
print(json.dumps(best))
"""

OPEN = {
    "Polars": "import polars as pl\nrows = lambda: pl.scan_parquet(file).with_row_index('id')\n"
    "write = lambda table: table.sink_parquet(out)",
    "DuckDB": "import duckdb\nrows = lambda: duckdb.sql(f\"select *, row_number() over () as id from '{file}'\")\n"
    "write = lambda table: table.write_parquet(out)",
}


def policies(file: Path, repeats: int) -> str:
    """An audit as a multiple of the sums, and written decisions as one of a bare write."""
    lines = []
    for engine, code in OPEN.items():
        text = f"file = {str(file)!r}\n" + POLICIES.format(open=code, repeats=repeats)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        parts = [f"{found[name]:.2f} s" for name in ("aggregates", "audit", "bare write", "apply")]
        ratios = [f"{found[a] / found[b]:.2f}" for a, b in (("audit", "aggregates"), ("apply", "bare write"))]
        lines.append([engine, parts[0], parts[1], ratios[0], parts[2], parts[3], ratios[1]])
    head = ["", "aggregates", "audit", "of aggregates", "bare write", "apply", "of a bare write"]
    return table(head, lines)


def best(measured: list[dict[str, Any]]) -> dict[str, float]:
    """The least of every quantity; of memory the most."""
    found = {name: min(one[name] for one in measured) for name in ("seconds", "cpu")}
    return found | {"memory": max(one["memory"] for one in measured)}


def compare(file: Path, rows: int, repeats: int) -> str:
    """Every engine: floor, hand-written query, felicific, in turns."""
    lines = []
    for engine in OURS:
        ways = {"floor": FLOOR.get(engine), "by hand": HAND.get(engine), "felicific": OURS[engine]}
        measured: dict[str, list[dict[str, Any]]] = {
            way: [] for way, code in ways.items() if code is not None
        }
        for way in list(measured) * repeats:
            found = run(str(ways[way]), file, rows)
            if way != "floor" and found["check"] != rows:
                sys.exit(f"{engine} {way} counted {found['check']} rows")
            measured[way].append(found)
            print(f"  {engine:7} {way:10} {found}", flush=True)
        hand = best(measured["by hand"]) if "by hand" in measured else None
        for way, several in measured.items():
            one = best(several)
            line = [f"{engine}, {way}"]
            for name in ("seconds", "cpu"):
                # The processor time of workers is theirs.
                apart = name == "cpu" and engine.startswith(("Dask", "Spark"))
                line += ["" if apart else f"{one[name]:.2f} s"]
                line += ["" if apart or hand is None else f"{one[name] / hand[name]:.2f}"]
            lines.append([*line, f"{one['memory']:.0f} MB"])
    head = ["", "time", "of by hand", "processor time", "of by hand", "peak memory"]
    return table(head, lines)


def growth(sizes: list[int], folder: Path, repeats: int) -> str:
    """Time as the rows grow, and processor time of every further row."""
    ways = tuple(WARM)
    lines: list[list[str]] = []
    before: dict[str, tuple[int, float]] = dict.fromkeys(ways, (0, 0.0))
    further: dict[str, list[float]] = {way: [] for way in ways}
    for rows in sizes:
        file = make(folder / f"{rows}.parquet", rows)
        cells = [f"{rows:,}"]
        for way in ways:
            found = best([run(WARM[way], file, rows) for _ in range(repeats)])
            n, cpu = before[way]
            further[way].append(1e9 * (found["cpu"] - cpu) / (rows - n))
            before[way] = rows, found["cpu"]
            cells += [f"{found['seconds']:.3f} s", f"{further[way][-1]:,.0f} ns"]
        lines.append(cells)
        print(f"  {cells}", flush=True)
        file.unlink()
    head = ["rows"]
    for way in ways:
        head += [way, "per further row"]
    per_row = {way: 1e9 * before[way][1] / before[way][0] for way in ways}
    kept = ", ".join(f"{way} {further[way][0] / per_row[way]:.2f}" for way in ways)
    return (
        f"{table(head, lines)}\n\nProcessor time per row at {sizes[0]:,} rows, fixed part included, "
        f"as a multiple of that at {sizes[-1]:,} rows: {kept} (the aim is 1.2)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["engines", "growth", "policies"])
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked = parser.parse_args()
    page = asked.out / "speed.md"
    with tempfile.TemporaryDirectory() as folder:
        if asked.only in (None, "policies"):
            file = make(Path(folder) / "policies.parquet", min(asked.rows, 2_000_000))
            fill(page, "policies", f"{policies(file, asked.repeats)}\n\n{machine()}")
            file.unlink()
        if asked.only == "policies":
            return
        if asked.only != "growth":
            file = make(Path(folder) / "people.parquet", asked.rows)
            text = f"{asked.rows:,} rows, {file.stat().st_size / 2**20:,.0f} MB of Parquet.\n\n"
            text += compare(file, asked.rows, asked.repeats)
            file.unlink()
            fill(page, "engines", f"{text}\n\n{machine()}")
        if asked.only != "engines":
            sizes = [n for n in (50_000, 500_000, 2_000_000) if n < asked.rows] + [asked.rows]
            fill(page, "growth", f"{growth(sizes, Path(folder), asked.repeats)}\n\n{machine()}")


if __name__ == "__main__":
    main()
