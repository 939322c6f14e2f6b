"""A sketch of fitted rows: it recognises them in any order and any part, and is silent where rows are alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from felicific._people.sketch import KEPT, RowSketch


def table(n, seed, **columns):
    rng = np.random.default_rng(seed)
    numbers = {f"n{i}": rng.normal(size=n) for i in range(6)}
    return pd.DataFrame({"text": rng.choice(["a", "b"], n), **numbers, **columns})


@pytest.mark.parametrize("n", [40, 3_000, 100_000])
def test_fitted_rows_are_recognised(n):
    """All of them, in another order, a half of them, with further columns; of a mixture its share; of others none."""
    fitted, others = table(n, 0), table(n, 1)
    sketch = RowSketch.of(fitted)
    order = np.random.default_rng(2).permutation(n)
    for same in (fitted, fitted.iloc[order], fitted.iloc[order[: n // 2]], fitted.assign(more=1.0)):
        assert sketch.share(same) == 1.0
    assert sketch.share(others) == 0.0
    mixed = pd.concat([fitted[: n // 2], others[: n // 2]])
    assert sketch.share(mixed) == pytest.approx(0.5, abs=0.04)


def test_any_table_has_the_same_sketch():
    """Polars, an array of numbers, of objects, and a sparse matrix are recognised by what they hold."""
    frame = table(500, 0)
    assert RowSketch.of(frame).share(pl.from_pandas(frame)) == 1.0
    numbers = frame.drop(columns="text").to_numpy()
    for array in (numbers, numbers.astype(object), scipy.sparse.csr_matrix(numbers)):
        assert RowSketch.of(numbers).share(array) == RowSketch.of(array).share(numbers) == 1.0
        assert RowSketch.of(array).share(table(500, 1).drop(columns="text").to_numpy()) == 0.0


def test_it_is_small_and_holds_no_value():
    """At most some thousand hashes, whatever the size and width."""
    frame = table(50_000, 0)
    sketch = RowSketch.of(frame)
    assert len(sketch.names) == 4
    assert len(sketch.least) == KEPT
    assert not np.isin(sketch.least.view(np.float64), frame[sketch.names]).any()


@pytest.mark.parametrize("levels", [3, 40, 2_000, 20_000])
def test_rows_that_are_not_distinct_make_it_silent(levels):
    """Where new people look like fitted ones by chance, nothing is said of new people."""
    for seed in range(10):
        coarse = [
            pd.DataFrame({"c": np.random.default_rng([seed, part]).integers(0, levels, 2_000)})
            for part in (0, 1)
        ]
        sketch = RowSketch.of(coarse[0])
        assert sketch.share(coarse[1]) == 0.0
        if levels <= 2_000:
            assert sketch.share(coarse[0]) == 0.0


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"a": list("xyzw")}), np.zeros((4, 0)), pd.DataFrame({"b": [True, False] * 2})]
)
def test_without_numbers_it_is_silent(frame):
    """Text and truth values alone do not tell rows apart."""
    assert RowSketch.of(frame).share(frame) == 0.0


def test_the_key_is_not_a_part_of_it():
    """A key may be another one elsewhere; a table without one of its columns is not recognised."""
    frame = table(300, 0, id=np.arange(300)).drop(columns=["n3", "n4", "n5"])
    sketch = RowSketch.of(frame, "id")
    assert sketch.names == ["n0", "n1", "n2"]
    assert sketch.share(frame.assign(id=0)) == 1.0
    assert sketch.share(frame.drop(columns="n1")) == 0.0
