"""Rows that something was fitted to are recognised: by the table, by keys, by what they hold; others are not."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from felicific._people.remembered import Remembered, Shown
from felicific._tables.seen import text_hashes


def cells(n, seed, kinds=100_000, shape=0.5):
    """People who are described by one of so many cells, some of which are frequent; group and label depend on it."""
    once = np.random.default_rng(7)
    shares, group, label = once.dirichlet(np.full(kinds, shape)), once.random(kinds), once.random(kinds)
    rng = np.random.default_rng(seed)
    cell = rng.choice(kinds, n, p=shares)
    parts = {"a": cell // 316, "b": cell % 316}
    told = [(rng.random(n) < chance[cell]).astype(int) for chance in (group, label)]
    return pd.DataFrame(parts), np.array(["f", "m"])[told[0]], told[1]


def shown(n, seed, rows=None, **settings):
    x, group, y = cells(n, seed, **settings)
    found = Shown(x, group, y)
    return found if rows is None else found.take(rows)


ORDER = np.random.default_rng(1).permutation(5_000)


def test_people_alike_are_not_the_same_people():
    """Of 5,000 people in 100,000 cells the same are recognised in another order, others in none of 40 samples."""
    fitted = Remembered.of(shown(5_000, 0))
    assert fitted.share(shown(5_000, 0, ORDER)) == pytest.approx(1.0, abs=0.02)
    assert fitted.share(shown(5_000, 0, ORDER[:1_000])) == pytest.approx(1.0, abs=0.1)
    assert [fitted.share(shown(5_000, seed)) for seed in range(1, 41)] == [0.0] * 40


def test_group_and_label_tell_more():
    """Where the columns alone tell nobody apart, group and label still may; without labels the columns are left."""
    few = {"kinds": 5_000, "shape": 1.0}
    fitted = Remembered.of(shown(5_000, 0, **few))
    same = shown(5_000, 0, ORDER, **few)
    assert fitted.share(same) > 0.5
    assert fitted.share(Shown(same.x, same.group)) == 0.0
    assert [fitted.share(shown(5_000, seed, **few)) for seed in range(1, 21)] == [0.0] * 20
    many = Remembered.of(shown(5_000, 0))
    bare = shown(5_000, 0, ORDER)
    assert many.share(Shown(bare.x, bare.group)) == pytest.approx(1.0, abs=0.02)


def test_the_table_itself_is_known_however_little_it_says():
    """Two cells are enough: the same table is the same, in any library; one row more or one label less is not."""
    x, group, y = cells(300, 0, kinds=2)
    fitted = Remembered.of(Shown(x, group, y))
    assert fitted.share(Shown(pl.from_pandas(x), group, y.astype(float))) == 1.0
    assert fitted.share(Shown(x, group, y, np.ones(300))) == 1.0
    assert fitted.share(Shown(x.iloc[1:], group[1:], y[1:])) == 0.0
    other = Remembered.of(Shown(x, group))
    assert other.share(Shown(x, group, y, 1.0 + y)) == 1.0  # nobody knew labels then


def test_a_safe_fit_was_on_a_part_of_the_table():
    """Of the whole table that part is fitted, of the part all of it."""
    whole = shown(5_000, 0)
    part = whole.take(np.arange(2_000))
    fitted = Remembered.of(part, whole)
    assert fitted.share(whole) == 0.4
    assert fitted.share(part) == 1.0
    assert fitted.sha256 == whole.sha256


@pytest.mark.parametrize(
    "make", [np.asarray, lambda keys: keys.astype(str), lambda keys: keys.astype(object)]
)
def test_keys_say_who_somebody_is(make):
    """People are known by their keys, whatever their rows hold now; a twentieth of them may be there by accident."""
    n = 1_000
    x, group, y = cells(n, 0)
    keys = np.arange(n) + 10**15
    fitted = pickle.loads(pickle.dumps(Remembered.of(Shown(x, group, y, keys=keys))))
    new = cells(n, 1)
    for shared, found in ((0, 0.0), (50, 0.0), (51, 0.051), (700, 0.7)):
        theirs = make(np.concatenate([keys[:shared], keys[shared:] + 10**6]))
        assert fitted.share(Shown(*new, keys=theirs)) == found
    assert fitted.share(Shown(*new)) == 0.0


def test_the_key_is_no_content():
    """Rows with other keys, or without, are recognised by the rest."""
    n = 1_000
    x, group, y = cells(n, 0)
    keys = np.arange(n)
    fitted = Remembered.of(Shown(x.assign(id=keys), group, y, keys=keys, key="id"))
    again = np.random.default_rng(2).permutation(n)
    told = x.iloc[again], group[again], y[again]
    assert fitted.share(Shown(*told)) == pytest.approx(1.0, abs=0.05)
    other = Shown(told[0].assign(id=keys + n), *told[1:], keys=keys + n, key="id")
    assert fitted.share(other) == pytest.approx(1.0, abs=0.05)


def test_hashes_of_keys():
    """A key is its text; long ones, empty ones and lone surrogates are told apart like any other."""
    texts = ["", "1", "01", "10", "a" * 64, "a" * 65, "b" * 9_000, "\ud800", "ä", "1 "]
    hashes = text_hashes(np.array([*texts, None], dtype=object)[:-1])
    assert len(set(hashes.tolist())) == len(texts)
    assert text_hashes(np.array(["10", "1"])).tolist() == [hashes[3], hashes[1]]
    assert text_hashes(np.array([10, 1], dtype=np.uint8)).tolist() == [hashes[3], hashes[1]]
    assert len(np.unique(text_hashes(np.arange(200_000)))) == 200_000


def test_no_value_of_anybody_is_kept():
    """Eight bytes of a key and a sketch of some thousand rows."""
    n = 20_000
    x = np.random.default_rng(0).normal(size=(n, 5))
    fitted = Remembered.of(Shown(x, np.arange(n) % 2, np.arange(n) % 2, keys=np.arange(n)))
    assert len(pickle.dumps(fitted)) < 8 * n + 80_000
