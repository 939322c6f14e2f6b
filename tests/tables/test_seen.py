"""Rows that were seen before are told from new ones, and new ones are not taken for them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from felicific._tables.seen import SeenRows


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "salary": rng.normal(size=n),
            "children": rng.integers(0, 4, n),
            "sex": rng.choice(["f", "m"], n),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n),
        }
    )


@pytest.mark.parametrize("n", [30, 600, 9000])
def test_the_same_rows_are_recognised(n):
    """In another order, with the columns in another order and further ones, in another library, and some of them."""
    table = people(n, 0)
    seen = pickle.loads(pickle.dumps(SeenRows.of(table)))
    shuffled = table.sample(frac=1.0, random_state=1)
    further = shuffled[["sex", "salary", "since", "children"]].assign(more=1)
    assert seen.share(table) == seen.share(shuffled) == seen.share(further) == 1.0
    assert seen.share(pl.from_pandas(table)) == 1.0
    assert seen.share(table.iloc[: n // 2]) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("n", [600, 9000])
def test_new_rows_are_not(n):
    """Other people, and a table without one of the columns, say nothing; of a mixture the share is estimated."""
    table, new = people(n, 0), people(n, 1)
    seen = SeenRows.of(table)
    assert seen.share(new) == 0.0
    assert seen.share(table.drop(columns="sex")) == 0.0
    mixed = pd.concat([table.iloc[: n // 5], new.iloc[: 4 * n // 5]])
    assert seen.share(mixed) == pytest.approx(0.2, abs=0.06)


def test_arrays_are_told_by_their_columns():
    """An array has positions; a row of equal numbers of another type is the same row."""
    array = np.random.default_rng(0).integers(0, 10**6, (500, 3))
    seen = SeenRows.of(array)
    assert seen.share(array.astype(float)) == 1.0
    assert seen.share(array[::-1]) == 1.0
    assert seen.share(array[:, ::-1]) == 0.0


def test_few_contents_are_no_evidence():
    """People who are all described by the same few words are not taken for those who were seen.

    Over 400 pairs of samples from the same discrete distribution, the same alarm may sound in 1 % at most.
    """
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        kinds = int(rng.choice([2, 10, 100, 1000, 20_000]))
        shares = rng.dirichlet(np.full(kinds, rng.choice([0.05, 0.3, 1.0, 5.0])))
        one, other = (rng.choice(kinds, int(rng.choice([100, 1000])), p=shares)[:, None] for _ in range(2))
        alarms += SeenRows.of(one).share(other) > 0
    assert alarms <= 4


def test_the_sketch_is_small():
    """Whatever the number of rows and columns, some kilobytes are kept, and no value of anybody."""
    table = np.random.default_rng(0).normal(size=(30_000, 40))
    seen = SeenRows.of(table)
    assert len(pickle.dumps(seen)) < 40_000
    assert seen.share(table[5:]) == pytest.approx(1.0, abs=0.01)


def test_many_rows_are_known_by_those_with_small_hashes(monkeypatch):
    """The same hashes are kept as of all rows, and nearly the same is said of how often rows occur."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 1000, (200_000, 2))
    some = SeenRows.of(rows)
    monkeypatch.setattr("felicific._tables.seen.ENOUGH", 10**9)
    whole = SeenRows.of(rows)
    assert some.kept.tolist() == whole.kept.tolist()
    assert (some.limit, some.ordered, some.rows) == (whole.limit, whole.ordered, whole.rows)
    assert some.once == pytest.approx(whole.once, abs=0.01)
    assert some.again == pytest.approx(whole.again, rel=0.1)
    assert some.again < some.once
