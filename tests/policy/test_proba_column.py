"""Probabilities beside decisions: on every engine and as SQL the very chances of Python.

And names that are taken refused.
"""

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers import solved
from naive import DASK, LAZY, MEMORY, as_dask

from felicific import Exploration, Policy, Score
from felicific.exceptions import DataError


def columns(n=200, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    s = rng.normal(size=(n, classes)) + 0.5 * g[:, None] * np.arange(classes)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    return {
        "id": np.arange(n), "g": np.array(["f", "m"], dtype=object)[g], "y": y, "loan": rng.integers(1, 9, n) / 4,
    } | {f"p{k}": p[:, k] for k in range(classes)}  # fmt: skip


def roles(classes=2):
    return {"score": {k: f"p{k}" for k in range(classes)}, "sensitive_features": "g"}


def made(kind, classes=2, **more):
    told = {
        "happiness": {"got": "(decision == 1) * loan"},
        "y": "y",
        "gap": 0.05,
        "random_state": 0,
        "policy": kind,
    }
    return solved(
        pd.DataFrame(columns(300, classes, 1)),
        **roles(classes) | told | {"constraints": [Exploration(0.06)]} | more,
    )


def collected(table):
    if hasattr(table, "collect"):
        table = table.collect()
    if hasattr(table, "to_arrow_table"):
        table = table.to_arrow_table()
    if hasattr(table, "compute"):
        table = table.compute()
    frame = table if isinstance(table, pd.DataFrame) else None
    if frame is None:
        frame = pd.DataFrame(table) if isinstance(table, dict) else table.to_pandas()
    return frame.sort_values("id").reset_index(drop=True)


KINDS = {
    "score": "score",
    "free": Score(monotone=False),
    "label": "label",
    "soft": "soft-label",
    "own": "individual",
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [*MEMORY, *LAZY, *DASK])
def test_probabilities_are_those_of_python_everywhere(place, kind, classes, tmp_path):
    """To the last bit in memory and to rounding on engines; decisions are what they are without the probabilities."""
    policy, table = made(KINDS[kind], classes), columns(classes=classes)

    def make(rows):
        if place in LAZY:
            return LAZY[place](rows, tmp_path)
        return as_dask(rows) if place in DASK else MEMORY[place](rows)

    told = {**roles(classes), "key": "id"}
    decided = collected(policy.apply(make(table), **told, with_proba=True))
    score = np.column_stack([table[f"p{k}"] for k in range(classes)])
    probabilities = policy.probabilities(score, table["g"], pd.DataFrame(table))
    names = ["proba"] if classes == 2 else [f"proba_{k}" for k in range(classes)]
    found = decided[names].to_numpy(dtype=float)
    expected = probabilities[:, 1:] if classes == 2 else probabilities
    if place in MEMORY:
        assert found.tolist() == expected.tolist()
    assert np.abs(found - expected).max() <= 1e-12
    assert list(decided.columns) == [*table, "decision", *names]
    plain = collected(policy.apply(make(table), **told))
    assert decided["decision"].tolist() == plain["decision"].tolist()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["score", "label", "soft"])
def test_sql_selects_decisions_and_probabilities(kind, classes):
    """The select list, run by DuckDB, gives the decisions and the probabilities of Python.

    Without probabilities it is as before.
    """
    policy, people = made(KINDS[kind], classes), pd.DataFrame(columns(classes=classes))
    text = policy.to_sql("duckdb", **roles(classes), key="id", with_proba=True)
    assert text.startswith(policy.to_sql("duckdb", **roles(classes), key="id") + " AS ")
    found = duckdb.sql(f"SELECT id, {text} FROM people ORDER BY id").df()
    expected = policy.apply(people, **roles(classes), key="id", with_proba=True)
    assert list(found.columns) == ["id", *list(expected.columns)[len(people.columns) :]]
    assert found["decision"].tolist() == expected["decision"].tolist()
    for name in list(found.columns)[2:]:
        assert np.abs(found[name] - expected[name]).max() <= 1e-12


@pytest.mark.parametrize("kind", ["score", "label", "soft"])
def test_rounded_decisions_have_probabilities_of_nought_or_one(kind):
    """Where nobody faces a lottery, the probabilities say what is decided, in memory and as SQL."""
    from dataclasses import replace

    policy, people = replace(made(KINDS[kind], constraints=[]), randomize=False), pd.DataFrame(columns())
    decided = policy.apply(people, **roles(), with_proba=True)
    assert decided["proba"].tolist() == decided["decision"].astype(float).tolist()
    found = collected(policy.apply(duckdb.from_df(people), **roles(), with_proba=True))
    assert found["proba"].tolist() == decided["proba"].tolist()


def test_of_two_classes_the_probabilities_are_of_the_best_one():
    """Which that is the policy remembers, through its file too; unless it was said, the second."""
    people = pd.DataFrame(columns())
    score = people[["p0", "p1"]].to_numpy()
    for kind in ("score", "individual"):
        policy = made(kind, decisions=[1, 0])
        assert policy.best == 0
        read = Policy.from_json(policy.to_json())
        decided = read.apply(people, **roles(), key="id", with_proba=True)
        assert decided["proba"].tolist() == policy.probabilities(score, people["g"], people)[:, 0].tolist()
        assert made(kind).best == 1


def test_names_that_are_taken_are_refused(refuses):
    """A column of the table, or of the decisions, that has the name of the probabilities.

    In DuckDB whatever its case.
    """
    policy, people = made("score"), pd.DataFrame(columns())
    told = {**roles(), "key": "id", "with_proba": True}
    with refuses(DataError, "'proba'", remedy="with_proba="):
        policy.apply(people.assign(proba=1.0), **told)
    with refuses(DataError, "'proba'", remedy="with_proba="):
        policy.apply(people, **told, column="proba")
    with refuses(DataError, "'PROBA'", remedy="with_proba="):
        policy.apply(duckdb.from_df(people.assign(PROBA=1.0)), **told)
    assert "proba" in policy.apply(people.assign(PROBA=1.0), **told)
