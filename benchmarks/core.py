"""Moments and solve against fairlearn's ThresholdOptimizer, individual policies, and import time.

    pip install -e . pandas polars pyarrow fairlearn && python benchmarks/core.py [rows]
    python benchmarks/core.py columns

Every measurement runs in a process of its own; the best of five is kept, and ratios are what counts: machines
differ and are noisy.
"""

from __future__ import annotations

import json
import subprocess
import sys

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
felicific.solve(felicific.moments(X[small], proba=proba[small], y=y[small], sensitive_features=group[small],
                                  happiness=approved, policy={policy!r}))
before = peak()
times = []
for _ in range(5):
    start = time.perf_counter()
    moments = felicific.moments(X, proba=proba, y=y, sensitive_features=group, happiness=approved, policy={policy!r})
    felicific.solve(moments, gap=0.0)
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
people = People.of(x, problem, group=group, y=y, proba=proba).with_scores
policy, _ = fit_individual(problem, people, Individual(), "0" * 32)
print(f"{{time.perf_counter() - start:.1f}} s, {{policy.search.passes}} passes, {{policy.search.stopped}}")
"""

SOLVER = """
import time, sys
import numpy as np
import highspy, felicific
def world(groups, rows, components):
    rng = np.random.default_rng(0)
    g = np.concatenate([np.arange(groups), np.arange(groups), rng.integers(0, groups, rows - 2 * groups)])
    score = np.clip(rng.beta(2.2, 2.8, rows) * (1 - 0.1 * np.sin(g)), 0, 1)
    y = (rng.random(rows) < score).astype(int)
    x = np.column_stack([rng.lognormal(0, 0.5, rows) * (1 + 0.3 * np.cos(g)), rng.lognormal(0, 0.5, rows)])
    functions = {{"amount": lambda decision, x: decision * x[:, 0], "rate": lambda decision: decision * 1.0,
                 "other": lambda decision, x: decision * x[:, 1]}}
    some = dict(list(functions.items())[:components])
    roles = dict(proba=score, y=y, sensitive_features=g, happiness=some)
    few = {{name: value[:20_000] for name, value in roles.items() if name != "happiness"}} | {{
        "happiness": some, "sensitive_features": g[:20_000] % 2}}
    cells = felicific.moments(x[:20_000], **few).joined().signal
    return x, roles, cells
def best(ask, times):
    found = []
    for _ in range(times):
        start = time.process_time()
        answer = ask()
        found.append(time.process_time() - start)
    return min(found), answer
groups, rows, components, times = {size}
x, roles, cells = world(groups, rows, components)
sums, moments = best(lambda: felicific.moments(x, **roles, policy=cells), times)
usual = best(lambda: felicific.moments(x, **roles), times)[0] if components > 1 else float("nan")
free = felicific.solve(moments, gap={{}})
gaps = {{name: 0.3 * gap for name, gap in free.gaps.items()}}
solve, _ = best(lambda: felicific.solve(moments, gap=gaps), times)
curve, n = best(lambda: len(felicific.frontier(moments)), times) if {curve} else (float("nan"), 0)
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
    felicific.moments(X, proba=proba, y=y, sensitive_features=column, happiness="decision", policy="score")
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


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def import_time(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(float(run(code)) for _ in range(5))


def solver(rows: int) -> None:
    """Solve and the whole frontier, beside sums over rows of the same run; CPU seconds, the best of some."""
    few = float(run(SOLVER.format(size=(2, 2 * rows, 1, 3), curve=False)).split()[0])
    print(f"sums of {2 * rows:,} rows, two groups: {few:.3f} s")
    for groups in (2, 10, 100, 1_000, 5_000):
        size = (groups, 500_000 if groups > 1_000 else 200_000, 1, 3 if groups < 5_000 else 1)
        _, solve, curve, n, _ = (float(part) for part in run(SOLVER.format(size=size, curve=True)).split())
        both = solve + curve
        print(
            f"{groups:,} groups, one component: solve {solve:.4f} s, frontier {curve:.4f} s of {n:,.0f} breakpoints; "
            f"together {both / few:.3f} of the sums"
        )
    sums, solve, _, _, usual = (
        float(part) for part in run(SOLVER.format(size=(60, 300_000, 3, 5), curve=False)).split()
    )
    print(
        f"60 groups, three components: solve {solve:.4f} s, {solve / usual:.2f} of 300,000 rows' sums ({usual:.3f} s), "
        f"{solve / sums:.2f} of those into cells that are given ({sums:.3f} s)"
    )
    found = run(SOLVER.format(size=(30, 200_000, 3, 1), curve=True)).split()
    print(f"30 groups, three components: frontier {found[2]} s of {found[3]} breakpoints")
    print(f"fit of 5,000 rows, two groups, statistical parity: {run(FIT).strip()} s")


def columns(rows: int = 2_000_000) -> None:
    """Sums with groups in columns of every library, as multiples of whole numbers."""
    best, peaks = json.loads(run(COLUMNS.format(rows=rows)))
    print(
        f"moments of {rows:,} rows, five groups, one component; processor time, of whole numbers, most memory"
    )
    for name, seconds in best.items():
        print(f"{name:32} {seconds:8.3f} s  {seconds / best['whole numbers']:6.2f}  {peaks[name]:6.0f} MB")
    print(
        f"whole numbers take {best['whole numbers'] / best['bare bincount']:.1f} times a bare bincount of their codes"
    )


def one_row() -> None:
    """Deciding about one person beside the model itself."""
    best = json.loads(run(ONE_ROW))
    for kind in ("frame", "array"):
        model, ours = best[f"model, {kind}"], best[f"predict, {kind}"]
        print(
            f"predict of one row, {kind}: {1e6 * ours:.0f} us, the model {1e6 * model:.0f}: {ours / model:.2f} times"
        )
    print(f"a loaded policy decides about one person in {1e6 * best['decide of a loaded policy']:.0f} us")


def main() -> None:
    if sys.argv[1:] == ["columns"]:
        columns()
        one_row()
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    setup = SETUP.format(rows=rows)
    fairlearn = json.loads(run(setup + FAIRLEARN))
    print(f"{rows:,} rows, two classes, two groups, one component")
    print(
        f"{'fairlearn ThresholdOptimizer':32} {fairlearn['seconds']:8.3f} s  {fairlearn['extra_mb']:7.0f} MB extra"
    )
    for policy in ("soft-label", "label", "score"):
        ours = json.loads(run(setup + FELICIFIC.format(policy=policy)))
        ratio = fairlearn["seconds"] / ours["seconds"]
        print(
            f"{'felicific ' + policy:32} {ours['seconds']:8.3f} s  {ours['extra_mb']:7.0f} MB extra"
            f"  {ratio:6.1f} times faster"
        )
    solver(rows)
    for size in ((rows, 2, 2, 1), (rows // 10, 4, 4, 3)):
        measured = run(INDIVIDUAL.format(size=size)).strip()
        print("individual policy: {:,} rows, {} classes, {} groups, {} components:".format(*size), measured)
    ours, theirs = import_time("felicific"), import_time("sklearn")
    print(f"import felicific {ours:.3f} s, import sklearn {theirs:.3f} s: {theirs / ours:.1f} times faster")


if __name__ == "__main__":
    main()
