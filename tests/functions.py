"""Happiness functions that people write, and tables in every library and engine to run them on."""

import json
import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from helpers import by, solved

from felicific import Happiness, Individual, aggregate, audit, solve
from felicific._people.lazy import TRIED
from felicific._policy.cells import CellPolicy
from felicific._problem.happiness import Measure
from felicific._program.aggregates import Outcome
from felicific._program.signals import Label
from felicific.exceptions import FittedRowsWarning

VECTORS = json.loads((Path(__file__).parent / "lottery_vectors.json").read_text("utf-8"))

SALTS = sorted({vector["salt"] for vector in VECTORS["uniforms"]})

#: One more for every way of saying a thing. All work on pandas, Polars and arrays.
EVERYDAY = {
    "times": lambda decision, x: decision * x["loan"],
    "right": lambda decision, x, y: (y == decision) * x["loan"],
    "wrong": lambda decision, x, y: np.where(y != decision, -x["loan"], 0.0),
    "narrow": lambda decision, x: 3 * decision * x["hours"],
    "difference": lambda decision, x: decision * (x["income"] - x["loan"]) / 1000,
    "ratio": lambda decision, x: decision * x["loan"] / x["income"],
    "log": lambda decision, x: decision * np.log(1 + x["income"]),
    "root": lambda decision, x: decision * np.sqrt(x["loan"]) + np.exp(-x["loan"] / 1e4),
    "power": lambda decision, x: decision * x["hours"] ** 2 + x["loan"] ** 0.5,
    "tens": lambda decision, x: decision * (x["hours"] // 10) + x["hours"] % 7,
    "limits": lambda decision, x: decision * np.minimum(x["loan"], 20_000) - np.maximum(x["hours"], 40),
    "clip": lambda decision, x: np.clip(decision * x["loan"], 1_000, 30_000),
    "both": lambda decision, x: decision * ((x["hours"] > 40) & (x["loan"] < 20_000) | (x["sex"] == "F")),
    "neither": lambda decision, x: decision * ~((x["hours"] > 40) | (x["loan"] < 20_000)),
    "select": lambda decision, x: np.select([x["hours"] < 20, x["hours"] < 60], [1.0, 2.0], 3.0) * decision,
    "isin": lambda decision, x: decision * np.isin(x["region"], [1, 3]),
    "absolute": lambda decision, x: np.abs(x["loan"] - 2e4 * decision),
    "text": lambda decision, x: decision * np.select([x["school"] == "Master"], [0.5], 0.25),
    "group": lambda decision, x, group: np.where(group == "b", 1.5, 1.0) * decision * x["loan"],
    "offset": lambda decision, x: 1e9 + decision * x["loan"],
    "constant": lambda decision, x: 2.5 * decision,
    "member": lambda decision, x: decision * x["member"] + np.where(x["member"], 2, 1),
    "floor": lambda decision, x: decision * np.floor(x["loan"] / 1000) - np.ceil(x["income"] / 1000),
    "branch": lambda decision, x: [decision * v if v > 2e4 else 0.0 for v in x["loan"]],
    "rounded": lambda decision, x: np.round(decision * np.asarray(x["loan"]) / 1000),
    "real remainder": lambda decision, x: decision * (np.asarray(x["loan"]) % 0.7),
}

#: With methods of pandas' columns, which the arrays of engines have too.
METHODS = {
    "isin": lambda decision, x: decision * x["school"].isin({"Master", "Doctorate"}),
    "between": lambda decision, x: decision * x["hours"].between(20, 60),
    "abs": lambda decision, x: decision * (x["loan"] - 2e4).abs(),
    "clip": lambda decision, x: decision * x["loan"].clip(lower=1e4, upper=2e4) + x["hours"].clip(20, 60),
    "upper": lambda decision, x: decision * x["loan"].clip(upper=2e4) + x["loan"].clip(1e4),
}

#: Functions that want the library's own rows, and no arrays.
BATCHWISE = {
    "own": lambda decision, x: decision * x["loan"].to_numpy(),
    "several": lambda decision, x: decision * np.log1p(x[["loan", "hours"]].to_numpy()[:, 0]),
}


def people(n=3000, seed=0, classes=3):
    """Columns of people, as arrays: three probabilities, a label, three groups, numbers narrow and wide, text."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(classes), n)
    score[: n // 8] = np.round(score[: n // 8] * 16) / 16  # ties, and probabilities on the edges of bins
    score[: n // 8, -1] = 1 - score[: n // 8, :-1].sum(axis=1)
    score = np.clip(score, 0, 1)
    score /= score.sum(axis=1, keepdims=True)
    table = {f"p{k}": score[:, k] for k in range(classes)}
    table |= {
        "y": (rng.random(n)[:, None] > score.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1),
        "sex": rng.choice(np.array(["F", "M"], dtype=object), n),
        "z": rng.choice(np.array(["a", "b", "c"], dtype=object), n, p=[0.2, 0.3, 0.5]),
        "loan": rng.lognormal(10, 0.5, n),
        "income": rng.lognormal(10.5, 0.6, n),
        "hours": rng.integers(1, 99, n).astype(np.int8),
        "region": rng.integers(0, 5, n),
        "member": rng.random(n) < 0.3,
        "school": rng.choice(np.array(["Master", "Doctorate", "High School"], dtype=object), n),
        "w": rng.integers(0, 4, n).astype(float),
        "id": np.arange(n) + 10_000,
    }
    return table


def asked(classes=3, **changes):
    """Arguments of ``aggregates`` for these people."""
    return {
        "score": {k: f"p{k}" for k in range(classes)},
        "y": "y",
        "sensitive_features": "z",
        "happiness": measures(EVERYDAY),
    } | changes


def measures(functions):
    """Named measures, one of them among some people only, and two criteria."""
    return [
        *(Happiness(function, name=name) for name, function in functions.items()),
        Happiness(
            lambda decision, x: decision * x["loan"],
            among=lambda x, y: (x["hours"] > 30) & (y == 1),
            name="among",
        ),
        "statistical_parity",
        "equalized_odds",
    ]


def as_pandas(table):
    import pandas as pd

    return pd.DataFrame(table)


def as_arrow(table):
    import pyarrow as pa

    return pa.table(dict(table))


def as_lazy(table):
    import polars as pl

    return pl.from_arrow(as_arrow(table)).lazy()


def as_duckdb(table):
    import duckdb

    return duckdb.connect().from_arrow(as_arrow(table))


def write_parquet(table, path, row_group_size=700):
    import pyarrow.parquet as pq

    pq.write_table(as_arrow(table), path, row_group_size=row_group_size)
    return path


#: Engines that need no cluster: how to lay a table out for them, with a folder for files.
ENGINES = {
    "polars": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": lambda table, folder: write_parquet(table, folder / "people.parquet"),
}


def as_lists(table, key, *names):
    """Columns of any table as lists, sorted by a key."""
    if hasattr(table, "toArrow"):
        table = table.toArrow()
    elif hasattr(table, "compute"):
        table = table.compute()
    elif hasattr(table, "collect"):
        table = table.collect()
    elif hasattr(table, "to_arrow_table"):
        table = table.to_arrow_table()
    order = np.argsort(np.asarray(table[key]))
    return [np.asarray(table[name])[order].tolist() for name in names]


def assert_whole_path(people_of, table):
    """From scores to an audit on an engine and in memory: the same policy, decisions and audits.

    Audited are the decisions that a lazy column holds, and the policy by its probabilities.
    """
    happiness = measures({name: EVERYDAY[name] for name in ("times", "offset", "both", "right")})
    roles = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z"}
    measured = {"sensitive_features": "z", "happiness": happiness, "gap": 1.0}
    decided, audits = [], []
    for lay in (people_of, as_pandas):
        rows = lay(table)
        found = aggregate(rows, y="y", happiness="statistical_parity", **roles)
        policy = solve(found, gap=0.02, random_state=3)
        with_decisions = policy.apply(rows, key="id", **roles)
        decided.append(as_lists(with_decisions, "id", "decision"))
        audits.append(audit("decision", with_decisions, "y", sample_weight="w", **measured))
        with by("large"):
            audits.append(audit(policy, rows, "y", score=roles["score"], **measured))
    assert decided[0] == decided[1]
    assert_alike(audits[0], audits[2])
    assert_alike(audits[1], audits[3])


def assert_individual(people_of, table):
    """An individual policy decides on an engine, and is audited there, as in memory.

    Truth values are multiplied, which not every library does; the decisions are read more than once.
    """
    overtime = Happiness(lambda decision, x, y: (y == decision) * (x["hours"] > 40), name="overtime")
    roles = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z"}
    measured = {"sensitive_features": "z", "happiness": Happiness(EVERYDAY["times"], name="loan"), "gap": 1.0}
    policy = solved(
        as_pandas(table),
        policy=Individual("none"),
        y="y",
        happiness=overtime,
        gap=0.02,
        random_state=0,
        **roles,
    )
    decided, audits = [], []
    for lay in (people_of, as_pandas):
        rows = lay(table)
        with_decisions = policy.apply(rows, key="id", **roles)
        decided.append(as_lists(with_decisions, "id", "decision"))
        audits.append(audit("decision", with_decisions, "y", **measured))
        with by("large"), warnings.catch_warnings():
            warnings.simplefilter("ignore", FittedRowsWarning)
            audits.append(audit(policy, rows, "y", score=roles["score"], **measured))
            audits[-1] = replace(audits[-1], notes=())  # of rows it was fitted on, which are known in memory
    assert decided[0] == decided[1]
    assert_alike(audits[0], audits[2])
    assert_alike(audits[1], audits[3])


def lottery_case(salt, whole):
    """A policy, people and what must be decided on them, if every engine draws the numbers of the vectors.

    The keys are the whole numbers among those of the vectors, or all of them as text. Each is met twice: where the
    probability of the first decision is its very number, so that the second is drawn, and where it is the next larger
    float.
    """
    drawn = [(v["key"], float.fromhex(v["u"])) for v in VECTORS["uniforms"] if v["salt"] == salt]
    drawn = [pair for pair in drawn if pair[0].lstrip("-").isdigit()] if whole else drawn
    probabilities = np.array([[u, np.nextafter(u, 1)] for _, u in drawn]).ravel()
    keys = [int(key) if whole else key for key, _ in drawn for _ in range(2)]
    n = len(probabilities)
    table = {
        "own": np.zeros(n, dtype=np.int64),
        "z": np.arange(n),
        "key": np.array(keys, dtype=np.int64 if whole else object),
    }
    policy = CellPolicy(
        classes=np.arange(2),
        groups=tuple(range(n)),
        measures=(Measure("parity", "", "parity", False, None),),
        outcome=Outcome(0.0, np.zeros((n, 1)), np.zeros(1)),
        prices={},
        salt=salt,
        signal=Label(),
        q=np.stack([np.column_stack([probabilities, 1 - probabilities])] * 2, axis=1),
        mass=np.ones((n, 2)),
    )
    return policy, table, [1, 0] * (n // 2)


def assert_same(found, expected, tolerance=1e-12):
    """Aggregates agree: counts exactly, sums to ``tolerance`` of the largest sum of their measure."""
    assert found.groups == expected.groups
    assert [type(group) for group in found.groups] == [type(group) for group in expected.groups]
    assert np.array_equal(found.classes, expected.classes)
    assert found.measures == expected.measures
    assert found.signal == expected.signal
    assert found.loss_name == expected.loss_name
    assert np.array_equal(found.rows, expected.rows)
    if expected.signal.kind != "soft-label":
        assert np.array_equal(found.mass, expected.mass)
    for name in ("mass", "loss", "baseline_loss", "among"):
        close(getattr(found, name), getattr(expected, name), tolerance, name)
    for j, measure in enumerate(expected.measures):
        ours, theirs = _absolute(found, j), _absolute(expected, j)
        for mine, other in zip(ours, theirs, strict=True):
            close(mine, other, tolerance, measure.name)


def _absolute(aggregates, j):
    """Sums of one measure as they are, without an origin."""
    shift = aggregates.origin[j] * aggregates.among[..., j]
    return aggregates.value[..., j] + shift[:, :, None], aggregates.baseline_value[..., j] + shift


def close(found, expected, tolerance, what):
    size = np.abs(expected).max(initial=0.0)
    wrong = np.abs(found - expected).max(initial=0.0)
    assert wrong <= tolerance * size, f"{what}: {wrong} of {size}"


def assert_alike(found, expected):
    """Audits agree: means to twelve digits and limits to nine, gaps of large numbers too; words and counts exactly."""
    assert found.rows == expected.rows
    assert found.groups == expected.groups
    assert found.notes == expected.notes
    for one, other in zip(found.measures, expected.measures, strict=True):
        pairs = [(one.means[g], other.means[g]) for g in found.groups] + [(one.gap, other.gap)]
        for mine, theirs in pairs:
            assert mine.method == theirs.method
            assert mine.n == pytest.approx(theirs.n, rel=1e-12)
            assert mine.estimate == pytest.approx(theirs.estimate, rel=1e-12, abs=1e-12)
            assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)
        assert one.test.p_value == pytest.approx(other.test.p_value, rel=1e-9, abs=1e-9)
    assert found.loss.estimate == pytest.approx(expected.loss.estimate, rel=1e-12)
    assert found.loss.high == pytest.approx(expected.loss.high, rel=1e-9)
    assert found.loss.method == expected.loss.method


# What runs on the workers of a cluster lives in this file: they cannot import a file of tests, and a worker of Dask
# that cannot read its task dies, so that the test would wait for ever.


class Deadly:
    """A happiness that kills the worker it runs on, the first ``times`` times."""

    def __init__(self, folder, times):
        self.folder, self.times = str(folder), times

    def __call__(self, decision, x):
        if (
            isinstance(x["marker"], np.ndarray) and 1234 in x["marker"]
        ):  # not while it is read as an expression
            for attempt in range(self.times):
                try:
                    os.close(os.open(os.path.join(self.folder, str(attempt)), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return decision * x["loan"] + 0 * x["marker"]


class Slow:
    """A happiness that takes its time over some rows, having noted in a folder that it has begun with them."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = str(folder), seconds

    def __call__(self, decision, x):
        marker = np.asarray(x["marker"])
        if len(marker) > TRIED:  # not while it is tried
            open(os.path.join(self.folder, f"{marker[0]:.0f}"), "w").close()
            time.sleep(self.seconds)
        return decision * x["loan"] + 0 * marker


@contextmanager
def interrupting(folder):
    """Press Ctrl-C as soon as something is in the folder."""
    over = threading.Event()

    def monitor():
        while not over.wait(0.05):
            if os.listdir(folder):
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=monitor)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class ByContent:
    """Two groups out of a row's own numbers, such that every data set of scikit-learn's checks holds both."""

    def __call__(self, X):
        import scipy.sparse

        rows = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
        return np.where(
            np.floor(5 * np.nan_to_num(rows.astype(float), posinf=0, neginf=0).sum(axis=1)) % 2 == 0,
            "even",
            "odd",
        )
