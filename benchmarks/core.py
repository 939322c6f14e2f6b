"""Many groups, columns of every library, single rows, wide tables, and what it takes to install, in one run.

    pip install -e . pandas polars pyarrow && python benchmarks/core.py [--rows 1000000]

Every measurement runs in a process of its own, the best of some is kept, and ratios are what counts: machines differ
and are noisy. Writes the tables between the markers of ``docs/evidence/speed.md``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from importlib.metadata import files, requires
from pathlib import Path

from shared import EVIDENCE, ROOT, fill, machine, table

#: Sums of so many groups, in turn, and the most memory that they took.
GROUPS = """
import json, time, tracemalloc
import numpy as np
import felicific
n, rng = {rows}, np.random.default_rng(0)
score = rng.beta(2, 2, n)
table = dict(score=score, y=(rng.random(n) < score).astype(int), loan=rng.integers(1, 40, n) * 1000.0)
asked = dict(score="score", y="y", sensitive_features="g")
ways = {{(g, h): (lambda z=rng.integers(0, g, n), h=h: felicific.aggregate(table | {{"g": z}}, happiness=h, **asked))
        for g in {groups} for h in {happiness}}}
best = dict.fromkeys(ways, float("inf"))
for _ in range(4):
    for name, work in ways.items():
        start = time.process_time()
        work()
        best[name] = min(best[name], time.process_time() - start)
found = []
for name, work in ways.items():
    tracemalloc.start()
    work()
    found.append([*name, best[name], tracemalloc.get_traced_memory()[1] / 2**20])
    tracemalloc.stop()
print(json.dumps(found))
"""

INDIVIDUAL = """
import time
import numpy as np
from felicific import Individual
from felicific._people.people import People
from felicific._policy.fit_individual import fit_individual
from felicific._problem.problem import Problem
rng = np.random.default_rng(0)
n, K, G, J = {size}
group = rng.integers(0, G, n)
x = rng.normal(size=(n, 3)) + 0.2 * group[:, None]
logits = rng.normal(size=(n, K)) + 0.3 * x[:, :1] * np.arange(K)
proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
y = (rng.random(n)[:, None] > proba.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
functions = {{
    f"h{{j}}": lambda decision, x, j=j: decision * np.abs(x[:, j]) + (j + 1) * (decision == j) for j in range(J)
}}
problem = Problem.of(np.arange(K), functions, gap=0.0)
start = time.process_time()
people = People.of(x, problem, group=group, y=y, score=proba).with_scores
policy, _ = fit_individual(problem, people, Individual(), "0" * 32)
print(f"{{time.process_time() - start:.1f}} s, {{policy.search.passes}} passes, {{policy.search.stopped}}")
"""

SOLVER = """
import time, sys
import numpy as np
import highspy, felicific
def world(groups, rows, measures):
    rng = np.random.default_rng(0)
    g = np.concatenate([np.arange(groups), np.arange(groups), rng.integers(0, groups, rows - 2 * groups)])
    score = np.clip(rng.beta(2.2, 2.8, rows) * (1 - 0.1 * np.sin(g)), 0, 1)
    y = (rng.random(rows) < score).astype(int)
    x = np.column_stack([rng.lognormal(0, 0.5, rows) * (1 + 0.3 * np.cos(g)), rng.lognormal(0, 0.5, rows)])
    functions = {{"amount": lambda decision, x: decision * x[:, 0], "rate": lambda decision: decision * 1.0,
                 "other": lambda decision, x: decision * x[:, 1]}}
    some = dict(list(functions.items())[:measures])
    roles = dict(score=score, y=y, sensitive_features=g, happiness=some)
    few = {{name: value[:20_000] for name, value in roles.items() if name != "happiness"}} | {{
        "happiness": some, "sensitive_features": g[:20_000] % 2}}
    cells = felicific.aggregate(x[:20_000], **few).joined().signal
    return x, roles, cells
def best(ask, times):
    found = []
    for _ in range(times):
        start = time.process_time()
        answer = ask()
        found.append(time.process_time() - start)
    return min(found), answer
groups, rows, measures, times = {size}
x, roles, cells = world(groups, rows, measures)
sums, aggregates = best(lambda: felicific.aggregate(x, **roles, policy=cells), times)
usual = best(lambda: felicific.aggregate(x, **roles), times)[0] if measures > 1 else float("nan")
free = felicific.solve(aggregates, gap={{}})
gaps = {{name: 0.3 * gap for name, gap in free.gaps.items()}}
solve, _ = best(lambda: felicific.solve(aggregates, gap=gaps), times)
curve, n = best(lambda: len(felicific.frontier(aggregates)), times) if {curve} else (float("nan"), 0)
print(f"{{sums:.4f}} {{solve:.4f}} {{curve:.4f}} {{n}} {{usual:.4f}}")
"""

FIT = """
import time
import numpy as np
from sklearn.linear_model import LogisticRegression
import highspy, felicific
rng = np.random.default_rng(0)
n = 5_000
group = rng.choice(["a", "b"], n, p=[0.35, 0.65])
x = np.column_stack([rng.normal(size=n), rng.normal(size=n) + (group == "a")])
y = (rng.random(n) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(int)
model = LogisticRegression().fit(x, y)
from sklearn.frozen import FrozenEstimator
fair = felicific.FairClassifier(FrozenEstimator(model), happiness="statistical_parity", gap=0.0)
ways = [lambda: fair.fit(x, y, sensitive_features=group), lambda: (model.predict_proba(x), model.predict(x))]
times = [[], []]
for _ in range(20):
    for way, some in zip(ways, times):
        start = time.process_time()
        way()
        some.append(time.process_time() - start)
print(min(times[0]), min(times[1]))
"""

COLUMNS = """
import json, time, tracemalloc
import numpy as np, pandas as pd, polars as pl, pyarrow as pa
import felicific
n = {rows}
rng = np.random.default_rng(0)
code = rng.integers(0, 5, n)
text = np.array(["alpha", "beta", "gamma", "delta", "epsilon"], dtype=object)[code]
score = rng.beta(2, 3, n)
y = (rng.random(n) < score).astype(int)
proba, X = np.column_stack([1 - score, score]), score[:, None]
series, half = pd.Series(text), n // 2
columns = {{
    "whole numbers": code,
    "pandas category": series.astype("category"), "Polars Categorical": pl.Series(text.tolist()).cast(pl.Categorical),
    "Polars Enum": pl.Series(text.tolist()).cast(pl.Enum(sorted(set(text)))),
    "Arrow dictionary": pa.chunked_array([pa.array(part).dictionary_encode() for part in (text[:half], text[half:])]),
    "pandas str": series.astype("str"), "Polars String": pl.Series(text.tolist()), "Arrow string": pa.array(text),
    "NumPy objects": text, "NumPy text": text.astype(str),
}}
place = np.ceil(4096 * score).astype(np.intp)
def counted():
    counts = np.zeros(5 * 4098 * 4)
    for start in range(0, n, 524288):
        part = slice(start, start + 524288)
        index = ((code[part] * 4098 + place[part]) * 2 + (score[part] > 0.5)) * 2 + y[part]
        counts += np.bincount(index, minlength=len(counts))
def summed(column):
    felicific.aggregate(X, score=proba, y=y, sensitive_features=column, happiness="decision", policy="score")
def spent(work):
    start = time.process_time()
    work()
    return time.process_time() - start
ways = {{"bare bincount": counted}} | {{name: (lambda c=c: summed(c)) for name, c in columns.items()}}
best = dict.fromkeys(ways, float("inf"))
for _ in range(5):  # in turns, so that other work on the machine troubles all alike
    for name, work in ways.items():
        best[name] = min(best[name], spent(work))
peaks = {{}}
for name, work in ways.items():
    tracemalloc.start()
    work()
    peaks[name] = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
print(json.dumps([best, peaks]))
"""

ONE_ROW = """
import json, time
import numpy as np, pandas as pd
from sklearn.linear_model import LogisticRegression
from felicific import FairClassifier, Policy
rng = np.random.default_rng(0)
n = 4000
X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde")).assign(sex=rng.integers(0, 2, n))
y = (rng.random(n) < 1 / (1 + np.exp(-X.a - 0.3 * X.sex))).astype(int)
told = dict(happiness="decision", gap=0.02, random_state=0)
frame = FairClassifier(LogisticRegression(), sensitive_features="sex", **told).fit(X, y)
array = FairClassifier(LogisticRegression(), **told).fit(X.to_numpy(), y, sensitive_features=X.sex.to_numpy())
loaded = Policy.from_json(frame.policy_.to_json())
row, numbers, group, scores = X.iloc[[3]], X.to_numpy()[3:4], X.sex.to_numpy()[3:4], np.array([[0.3, 0.7]])
ways = {
    "model, frame": lambda: frame.estimator_.predict_proba(row), "predict, frame": lambda: frame.predict(row),
    "model, array": lambda: array.estimator_.predict_proba(numbers),
    "predict, array": lambda: array.predict(numbers, sensitive_features=group),
    "decide of a loaded policy": lambda: loaded.decide(scores, group, key=["17"]),
}
best = dict.fromkeys(ways, float("inf"))
for _ in range(40):
    for name, work in ways.items():
        start = time.process_time()
        for _ in range(30):
            work()
        best[name] = min(best[name], (time.process_time() - start) / 30)
print(json.dumps(best))
"""

#: What is imported to see how long it takes; scikit-learn's base is most of the second one.
IMPORTS = ("felicific", "felicific._sklearn.classifier", "sklearn.base")

#: A fit of a wide table in turn with its sums and solution: what else a fit does must not grow with the table.
WIDE = """
import json, time
import numpy as np, pandas as pd
from felicific import FairClassifier, aggregate, solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
n, rng = {rows}, np.random.default_rng(0)
X = pd.DataFrame({{f"number {{i}}": rng.normal(size=n) for i in range(17)}})
for name, few in dict(sex=2, town=50, job=40, bank=30, school=20).items():
    X[name] = rng.choice([f"{{name}} {{i}}" for i in range(few)], n)
score = rng.beta(2, 2, n)
y, proba = (rng.random(n) < score).astype(int), np.column_stack([1 - score, score])
class Stored(ClassifierMixin, BaseEstimator):
    classes_, n_features_in_ = np.array([0, 1]), 22
    def fit(self, X, y): return self
    def predict_proba(self, X): return proba
    def predict(self, X): return (score > 0.5).astype(int)
    def __sklearn_is_fitted__(self): return True
table, roles = X.assign(score=score, y=y), dict(sensitive_features="sex", happiness="statistical_parity")
def fit(): FairClassifier(FrozenEstimator(Stored()), gap=0.0, random_state=0, **roles).fit(X, y)
def chain(): solve(aggregate(table, score="score", y="y", **roles), gap=0.0, random_state=0)
spent = {{"fit": [], "chain": []}}
for _ in range(6):
    for name, work in ("fit", fit), ("chain", chain):
        begun = time.process_time()
        work()
        spent[name].append(time.process_time() - begun)
print(json.dumps({{name: sorted(some[1:])[2] for name, some in spent.items()}}))
"""


def run(code: str, python: Path | str = sys.executable) -> str:
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def import_time(module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return min(float(run(code)) for _ in range(3))


def spent(size: tuple[int, int, int, int], *, curve: bool) -> tuple[float, ...]:
    """Seconds of sums into score bins, of a policy, of a frontier with how many breakpoints, and of usual sums."""
    return tuple(float(part) for part in run(SOLVER.format(size=size, curve=curve)).split())


def summed_groups(rows: int) -> str:
    """Sums of few and of many groups, of what looks at no column and of what does."""
    happiness = ("statistical_parity", "decision * loan")
    found: dict[int, list[str]] = {}
    numbers = (2, 13, 55, 60, 70, 85, 100, 1_000, 5_000)
    for groups, _, seconds, memory in json.loads(
        run(GROUPS.format(rows=rows, groups=numbers, happiness=happiness))
    ):
        found.setdefault(groups, [f"{groups:,}"]).extend([f"{seconds:.3f} s", f"{memory:.0f} MB"])
    return table(
        [f"groups, {rows:,} rows", "parity", "most memory", "dollars", "most memory"], list(found.values())
    )


def many_groups(rows: int) -> str:
    """Solve and the whole frontier, beside sums over rows of the same run."""
    few = spent((2, 2 * rows, 1, 3), curve=False)[0]
    lines = []
    for groups in (2, 10, 100, 1_000, 5_000):
        size = (groups, 500_000 if groups > 1_000 else 200_000, 1, 3 if groups < 5_000 else 1)
        _, solve, curve, n, _ = spent(size, curve=True)
        times = [f"{solve:.4f} s", f"{curve:.4f} s", f"{(solve + curve) / few:.3f}"]
        lines.append([f"{groups:,}", f"{n:,.0f}", *times])
    given, solve, _, _, sums = spent((60, 300_000, 3, 5), curve=False)
    _, _, curve, n, _ = spent((30, 200_000, 3, 1), curve=True)
    head = ["groups", "breakpoints", "a policy", "the frontier", f"both, of {2 * rows:,} rows' sums"]
    fit, model = map(float, run(FIT).split())
    return (
        f"{summed_groups(2 * rows)}\n\n{table(head, lines)}\n\nThose sums, of two groups: {few:.3f} s. Three measures: "
        f"a policy of 60 groups {solve:.3f} s, {solve / sums:.2f} of 300,000 rows' sums ({sums:.3f} s; aim: 0.5), "
        f"{solve / given:.2f} of those into score bins that are given ({given:.3f} s); the frontier of 30 groups "
        f"{curve:.2f} s, {n:,.0f} breakpoints (the aim is 2 s). `FairClassifier.fit` with 5,000 rows and two groups, "
        f"statistical parity: {1000 * fit:.1f} ms, {fit / model:.1f} times the model's own answers (the aim is 12)."
    )


def columns(rows: int) -> str:
    """Sums with groups in columns of every library, as multiples of whole numbers."""
    best, peaks = json.loads(run(COLUMNS.format(rows=rows)))
    whole = best["whole numbers"]
    lines = [
        [name, f"{seconds:.3f} s", f"{seconds / whole:.2f}", f"{peaks[name]:.0f} MB"]
        for name, seconds in best.items()
    ]
    head = [f"{rows:,} rows", "time", "of whole numbers", "most memory"]
    return (
        f"{table(head, lines)}\n\nWhole numbers take {whole / best['bare bincount']:.1f} times a bare, chunked "
        f"`bincount` of the same codes (the aim is 8)."
    )


def single_rows() -> str:
    """Deciding on one person beside the model itself."""
    best = json.loads(run(ONE_ROW))
    lines = [
        [kind, f"{1e6 * model:.0f} us", f"{1e6 * ours:.0f} us", f"{ours / model:.2f}"]
        for kind in ("frame", "array")
        for model, ours in [(best[f"model, {kind}"], best[f"predict, {kind}"])]
    ]
    alone = 1e6 * best["decide of a loaded policy"]
    head = ["one row", "the model's `predict_proba`", "`predict`", "of the model"]
    told = f"A policy that was loaded decides on one person in {alone:.0f} us (the aim is 60)."
    return f"{table(head, lines)}\n\n{told}"


def wide(rows: int) -> str:
    """A fit of a wide table beside its sums and solution."""
    found = json.loads(run(WIDE.format(rows=rows)))
    return (
        f"A fit of {rows:,} rows and 22 columns, 5 of them text: {found['fit']:.3f} s of processor time; its sums and "
        f"solution, `solve(aggregate(...))`, in turn: {found['chain']:.3f} s. "
        f"Ratio {found['fit'] / found['chain']:.1f} (the aim is at most 1.5; medians of five)."
    )


def fits(rows: int) -> str:
    """Individual policies, how long an import takes, and how large what is installed is."""
    single = []
    for size in ((rows, 2, 2, 1), (rows // 10, 4, 4, 3)):
        what = "{:,} people, {} decisions, {} groups, {} measures".format(*size)
        single.append(f"{what}: {run(INDIVIDUAL.format(size=size)).strip()}")
    imports = ", ".join(f"`{name}` {import_time(name):.2f} s" for name in IMPORTS)
    needed = [
        "felicific",
        *(re.split(r"[^\w-]", one)[0] for one in requires("felicific") or () if ";" not in one),
    ]
    sizes = ", ".join(f"{name} {size_of(ROOT / 'src' / name, name):.1f} MB" for name in needed)
    counted = []
    for name in ("_tables", "_people", "_program"):
        paths = (ROOT / "src" / "felicific" / name).rglob("*.py")
        counted.append(f"`{name}` {sum(len(path.read_text('utf-8').splitlines()) for path in paths):,}")
    return (
        f"Individual policies: {'; '.join(single)}.\n\nImports: {imports}. Installed, without what these "
        f"need in turn: {sizes}. Lines: {', '.join(counted)}."
    )


def size_of(folder: Path, name: str) -> float:
    """Megabytes of a package, of our own as it is in this tree."""
    found = folder.rglob("*.*") if folder.exists() else [Path(str(one.locate())) for one in files(name) or ()]
    return sum(one.stat().st_size for one in found if one.is_file() and one.suffix != ".pyc") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked = parser.parse_args()
    blocks = {
        "groups": lambda: many_groups(asked.rows),
        "columns": lambda: columns(2 * asked.rows),
        "single rows": single_rows,
        "wide": lambda: wide(asked.rows // 2),
        "fits": lambda: fits(asked.rows),
    }
    for name, measure in blocks.items():
        fill(asked.out / "speed.md", name, f"{measure()}\n\n{machine()}")


if __name__ == "__main__":
    main()
