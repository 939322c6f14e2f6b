"""Many groups, columns of every library, single rows, and fits beside fairlearn's, in one run.

    pip install -e . pandas polars pyarrow && python benchmarks/core.py [--rows 1000000]

Every measurement runs in a process of its own (fairlearn's in an environment of its own), the best of some is kept, and
ratios are what counts: machines differ and are noisy. Writes the tables between the markers of
``docs/evidence/speed.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from shared import EVIDENCE, ROOT, environment, fill, machine, table

SETUP = """
import json, resource, sys, time
import numpy as np
n = {rows}
rng = np.random.default_rng(0)
group = rng.choice(["a", "b"], n, p=[0.35, 0.65])
score = rng.beta(2, 3, n) * np.where(group == "a", 0.9, 1.0)
y = (rng.random(n) < score).astype(int)
proba = np.column_stack([1 - score, score])
X = score[:, None]
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def report(seconds, before): print(json.dumps({{"seconds": seconds, "extra_mb": peak() - before}}))
"""

FELICIFIC = """
import highspy, felicific
def approved(decision): return decision
small = slice(0, 1000)
felicific.solve(felicific.aggregate(X[small], score=proba[small], y=y[small], sensitive_features=group[small],
                                  happiness=approved, policy={policy!r}))
before = peak()
times = []
for _ in range(5):
    start = time.perf_counter()
    aggregates = felicific.aggregate(X, score=proba, y=y, sensitive_features=group, happiness=approved,
                                     policy={policy!r})
    felicific.solve(aggregates, gap=0.0)
    times.append(time.perf_counter() - start)
report(min(times), before)
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
start = time.perf_counter()
people = People.of(x, problem, group=group, y=y, score=proba).with_scores
policy, _ = fit_individual(problem, people, Individual(), "0" * 32)
print(f"{{time.perf_counter() - start:.1f}} s, {{policy.search.passes}} passes, {{policy.search.stopped}}")
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
times = []
for _ in range(7):
    start = time.process_time()
    felicific.FairClassifier(FrozenEstimator(model), happiness="statistical_parity").fit(x, y, sensitive_features=group)
    times.append(time.process_time() - start)
print(f"{min(times):.4f}")
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

FAIRLEARN = """
import warnings; warnings.simplefilter("ignore")
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin
class Scores(ClassifierMixin, BaseEstimator):
    def fit(self, X, y): return self
    def predict_proba(self, X): return np.column_stack([1 - X[:, 0], X[:, 0]])
    def predict(self, X): return (X[:, 0] > 0.5).astype(int)
    def __sklearn_is_fitted__(self): return True
def fit(rows):
    optimizer = ThresholdOptimizer(estimator=Scores(), constraints="demographic_parity", prefit=True,
                                   predict_method="predict_proba")
    optimizer.fit(X[rows], y[rows], sensitive_features=group[rows])
fit(slice(0, 1000))
before = peak()
times = []
for _ in range(2):
    start = time.perf_counter()
    fit(slice(None))
    times.append(time.perf_counter() - start)
report(min(times), before)
"""

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
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(float(run(code)) for _ in range(5))


def spent(size: tuple[int, int, int, int], *, curve: bool) -> tuple[float, ...]:
    """Seconds of sums into score bins, of a policy, of a frontier with how many breakpoints, and of usual sums."""
    return tuple(float(part) for part in run(SOLVER.format(size=size, curve=curve)).split())


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
    return (
        f"{table(head, lines)}\n\nThose sums, of two groups: {few:.3f} s. Three measures: a policy of 60 groups "
        f"{solve:.3f} s, {solve / sums:.2f} of 300,000 rows' sums ({sums:.3f} s; the aim is 0.5), "
        f"{solve / given:.2f} of those into score bins that are given ({given:.3f} s); the frontier of 30 groups "
        f"{curve:.2f} s, {n:,.0f} breakpoints (the aim is 2 s). `FairClassifier.fit` with 5,000 rows and two groups, "
        f"statistical parity: {1000 * float(run(FIT)):.1f} ms."
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


def fits(rows: int, envs: Path) -> str:
    """Sums and a policy, through fairlearn's class and by ours; individual policies."""
    setup = SETUP.format(rows=rows)
    theirs = json.loads(run(setup + FAIRLEARN, environment(envs / "shared", ("fairlearn", "oxonfair"))))
    found = {"fairlearn, `ThresholdOptimizer`": theirs} | {
        f"felicific, `{policy}`": json.loads(run(setup + FELICIFIC.format(policy=policy)))
        for policy in ("soft-label", "label", "score")
    }
    lines = [
        [
            name,
            f"{one['seconds']:.3f} s",
            f"{one['extra_mb']:.0f} MB",
            f"{theirs['seconds'] / one['seconds']:.1f}",
        ]
        for name, one in found.items()
    ]
    single = []
    for size in ((rows, 2, 2, 1), (rows // 10, 4, 4, 3)):
        what = "{:,} people, {} decisions, {} groups, {} measures".format(*size)
        single.append(f"{what}: {run(INDIVIDUAL.format(size=size)).strip()}")
    imports = import_time("felicific"), import_time("sklearn")
    head = [f"{rows:,} rows, groups as text", "time", "more memory", "times as fast as fairlearn"]
    return (
        f"{table(head, lines)}\n\nIndividual policies: {'; '.join(single)}. "
        f"`import felicific` takes {imports[0]:.2f} s, `import sklearn` {imports[1]:.2f} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    asked = parser.parse_args()
    blocks = {
        "groups": lambda: many_groups(asked.rows),
        "columns": lambda: columns(2 * asked.rows),
        "single rows": single_rows,
        "wide": lambda: wide(asked.rows // 2),
        "fits": lambda: fits(asked.rows, asked.envs.resolve()),
    }
    for name, measure in blocks.items():
        fill(asked.out / "speed.md", name, f"{measure()}\n\n{machine()}")


if __name__ == "__main__":
    main()
