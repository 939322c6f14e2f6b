"""The one draw: test vectors, what it may depend on, what it may never do."""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from felicific import FairClassifier, aggregate, solve
from felicific._policy.lottery import (
    check_keys,
    content_keys,
    cumulate,
    draw,
    faces_lottery,
    keys_as_text,
    make_salt,
    uniforms,
)
from felicific.exceptions import DataError, LotteryWarning

#: Policies of tests are saved with the salt of a seed, so that their draws are the same again.
pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

SALT = "00112233445566778899aabbccddeeff"


def by_hand(salt, key):
    """Take the first 13 hexadecimal digits of SHA-256(salt ":" key), over 2^52."""
    return int(hashlib.sha256(f"{salt}:{key}".encode()).hexdigest()[:13], 16) / 2**52


def draw_keys(score, keys, salt=SALT):
    keys = np.asarray(keys)
    return draw(np.asarray(score, float), lambda rows: keys_as_text(keys[rows]), salt)


def make_policy(random_state=0):
    """Some policy with a lottery for the label 0 of the group "a" (37 %) and the label 1 of "b" (80 %)."""
    found = aggregate(
        {"group": np.array(["a", "b", "a", "b"])},
        y=[0, 1, 0, 1],
        predicted=[0, 1, 1, 0],
        policy="label",
        sensitive_features="group",
        happiness="statistical_parity",
    )
    q = np.array([[[0.63, 0.37], [0.0, 1.0]], [[1.0, 0.0], [0.2, 0.8]]])
    return replace(solve(found, gap=0.0, random_state=random_state), q=q)


# ---------------------------------------------------------------------------------------------------------
# The draw itself


def test_uniforms_test_vectors():
    """The number drawn for a key is the one anybody can compute with SHA-256."""
    vectors = {
        "1": 0.5708351424806539,
        "alice": 0.408207140197699,
        "": 0.945859060705726,
        "é": 0.8209003440506248,
        "-7": 0.44953700813983044,
    }
    drawn = uniforms(SALT, vectors)
    assert drawn.tolist() == list(vectors.values())
    assert drawn.tolist() == [by_hand(SALT, key) for key in vectors]


def test_decision_test_vectors():
    """The decision is the first class whose cumulative probability exceeds the number drawn."""
    keys = [str(key) for key in range(200)]
    score = np.tile([0.25, 0.0, 0.5, 0.25], (200, 1))
    expected = [0 if u < 0.25 else 2 if u < 0.75 else 3 for u in (by_hand(SALT, key) for key in keys)]
    assert draw_keys(score, keys).tolist() == expected
    assert set(expected) == {0, 2, 3}


@pytest.mark.parametrize("u", [0.0, 0.25, 0.5, np.nextafter(0.25, 0), 1 - 2.0**-52])
def test_draw_at_the_edges(monkeypatch, u):
    """At the edges of [0, 1) and of a cumulative probability the draw takes the class above, never one of 0."""
    monkeypatch.setattr("felicific._policy.lottery.uniforms", lambda salt, keys: np.full(len(list(keys)), u))
    score = np.array(
        [[0.25, 0.25, 0.5], [0.0, 0.25, 0.75], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.1, 0.9, 0.0]]
    )
    drawn = draw_keys(score, list("abcde"))
    assert (score[np.arange(5), drawn] > 0).all()
    cumulative = score.cumsum(axis=1)
    expected = [int(np.flatnonzero((u < row) & (p > 0))[0]) for row, p in zip(cumulative, score, strict=True)]
    assert drawn.tolist() == expected


def test_rows_that_sum_to_a_little_less_than_one(monkeypatch):
    """Probabilities that lost a digit, as a file may hold them, still never draw a decision of probability 0."""
    monkeypatch.setattr(
        "felicific._policy.lottery.uniforms", lambda salt, keys: np.full(len(list(keys)), 1 - 2.0**-52)
    )
    short = np.array([[0.5, 0.5 - 4e-10, 0.0], [0.0, 0.5, 0.5 - 4e-10], [0.5 - 4e-10, 0.0, 0.5]])
    assert draw_keys(short, list("abc")).tolist() == [1, 2, 2]


weights = st.one_of(
    st.just(0.0), st.floats(1e-300, 1e-12), st.floats(1e-12, 1.0), st.sampled_from([1 / 3, 0.1, 1.0])
)


@given(
    rows=st.lists(st.lists(weights, min_size=4, max_size=4).filter(any), min_size=1, max_size=8),
    u=st.one_of(st.sampled_from([0.0, 1 - 2.0**-52]), st.floats(0, 1, exclude_max=True)),
    salt=st.text("0123456789abcdef", min_size=32, max_size=32),
)
def test_probability_zero_is_never_drawn(rows, u, salt):
    """Whatever the salt, the keys and the rounding, a decision of probability 0 is never drawn."""
    score = np.array(rows)
    score /= score.sum(axis=1, keepdims=True)
    everyone = np.arange(len(score))
    assert (score[everyone, draw_keys(score, everyone, salt)] > 0).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("felicific._policy.lottery.uniforms", lambda salt, keys: np.full(len(list(keys)), u))
        assert (score[everyone, draw_keys(score, everyone)] > 0).all()


def test_what_rounding_loses_is_not_found_again_behind_a_zero():
    """A last chance too small to be added to the others leaves the 0 before it with none."""
    score = np.array([[0.9375, 0.1, 0.0, 1.4e-45]])
    score /= score.sum()
    assert (np.diff(cumulate(score)) >= 0).all()
    u = 1 - 2.0**-53
    assert (u >= cumulate(score)[0, :-1]).sum() != 2


def test_only_people_who_face_a_lottery_are_hashed():
    """Keys are asked for those rows only that have more than one possible decision."""
    asked = []

    def keys(rows):
        asked.extend(rows.tolist())
        return [str(row) for row in rows]

    score = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.9, 0.1]])
    drawn = draw(score, keys, SALT)
    assert asked == [1, 3]
    assert drawn[[0, 2]].tolist() == [0, 1]
    assert faces_lottery(score).tolist() == [False, True, False, True]


def test_draw_converges_to_the_probabilities():
    """Over many keys, every decision is drawn as often as its probability says."""
    n, probabilities = 20_000, np.array([0.05, 0.6, 0.35])
    drawn = np.bincount(draw_keys(np.tile(probabilities, (n, 1)), range(n)), minlength=3)
    assert (np.abs(drawn - n * probabilities) < 5 * np.sqrt(n * probabilities * (1 - probabilities))).all()


def test_salts_draw_independently():
    """Two policies' lotteries are independent: winning one says nothing about the other."""
    n, score = 10_000, np.tile([0.5, 0.5], (10_000, 1))
    both = draw_keys(score, range(n), make_salt(1)) + draw_keys(score, range(n), make_salt(2))
    assert abs((both == 2).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / n)


def test_salt():
    """The salt is 128 bits of lower-case hexadecimal text, fresh, or fixed by a seed, and then it says so."""
    seeded = [make_salt(3), make_salt(np.random.RandomState(3)), make_salt(np.int64(3))]
    assert len(set(seeded)) == 1
    fresh = {make_salt() for _ in range(50)} | {make_salt(seed) for seed in range(50)}
    assert len(fresh) == 100
    assert all(re.fullmatch("(seed-)?[0-9a-f]{32}", salt) for salt in fresh)
    assert sum(salt.startswith("seed-") for salt in fresh) == 50
    assert make_salt(np.random.default_rng(0)) == make_salt(np.random.default_rng(0))


@pytest.mark.parametrize("random_state", [-1, 2**32, "seed", 0.5])
def test_bad_seed(refuses, random_state):
    """A random_state that is no seed is named."""
    with refuses(DataError, "random_state", repr(random_state), remedy="integer"):
        make_salt(random_state)


# ---------------------------------------------------------------------------------------------------------
# Keys


def test_decisions_do_not_depend_on_order_or_batch():
    """A person's decision is the same in any order and any batch."""
    policy, n = make_policy(), 500
    rng = np.random.default_rng(0)
    keys, labels, groups = np.arange(n), rng.integers(0, 2, n), rng.choice(["a", "b"], n)
    whole = policy.decide(labels, groups, keys)
    assert 0 < whole.mean() < 1
    order = rng.permutation(n)
    assert (policy.decide(labels[order], groups[order], keys[order]) == whole[order]).all()
    parts = [policy.decide(labels[i : i + 7], groups[i : i + 7], keys[i : i + 7]) for i in range(0, n, 7)]
    assert (np.concatenate(parts) == whole).all()
    alone = [policy.decide(labels[i : i + 1], groups[i : i + 1], keys[i : i + 1])[0] for i in range(50)]
    assert alone == whole[:50].tolist()


def test_decisions_do_not_depend_on_the_process(tmp_path, people):
    """Another process with another PYTHONHASHSEED decides the same, by key and by content."""
    policy = make_policy()
    policy.save(tmp_path / "policy.json")
    keys = [f"person {i}" for i in range(40)]
    decided = policy.decide([0] * 40, ["a"] * 40, keys).tolist()
    columns = ["score", "loan", "group"]
    content = content_keys(people.table("numpy", columns), np.arange(40))
    code = f"""
import json, sys
import numpy as np
from felicific import load
from felicific._policy.lottery import content_keys
given = json.load(sys.stdin)
policy = load({os.fspath(tmp_path / "policy.json")!r})
decided = policy.decide([0] * 40, ["a"] * 40, given["keys"]).tolist()
table = {{name: np.array(values) for name, values in given["table"].items()}}
print(json.dumps([decided, content_keys(table, np.arange(40))]))
"""
    table = {name: people[name].tolist() for name in columns}
    for seed in ("0", "12345"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            input=json.dumps({"keys": keys, "table": table}),
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert json.loads(done.stdout) == [decided, content]
    assert 0 < np.mean(decided) < 1


def test_single_row_calls_reach_the_probabilities():
    """A service that decides one person per call approves the share that the policy says."""
    policy, n = make_policy(), 3000
    q = 0.37
    approved = sum(policy.decide([0], ["a"], [key])[0] for key in range(n))
    assert abs(approved - n * q) < 5 * np.sqrt(n * q * (1 - q))


def test_single_row_calls_without_a_key_reach_the_probabilities(people):
    """Without a key, one person per call, the share is reached too: the content decides, not the position."""
    X = people.table("numpy", ["score", "wealth", "loan", "group"]).astype(float)
    model = FrozenEstimator(LogisticRegression().fit(X, people.y))
    fair = FairClassifier(
        model, gap=0.0, happiness="statistical_parity", policy="label", sensitive_features=3, random_state=0
    )
    fair.fit(X, people.y)
    score = fair.predict_proba(X)
    facing = np.flatnonzero(faces_lottery(score))
    assert len(facing) > 60
    approved = sum(fair.predict(X[i : i + 1])[0] for i in facing)
    expected, spread = score[facing, 1].sum(), np.sqrt((score[facing, 1] * score[facing, 0]).sum())
    assert abs(approved - expected) < 4 * spread


@pytest.mark.parametrize(
    "keys",
    [
        np.array(["1", "22", "-3"]),
        np.array([1, 22, -3], dtype=np.int8),
        np.array([1, 22, -3], dtype=object),
        np.array(["1", "22", "-3"], dtype=object),
        [1, 22, -3],
        [1, "22", -3],
        pd.Series([1, 22, -3]),
        pd.Series([1, 22, -3], dtype="Int64"),
        pd.Series(["1", "22", "-3"]),
        pd.Series(["1", "22", "-3"], dtype="string"),
        pd.Series(["1", "22", "-3"], dtype="category"),
        pl.Series([1, 22, -3]),
        pl.Series(["1", "22", "-3"]),
        pl.Series(["1", "22", "-3"]).cast(pl.Categorical),
        pa.chunked_array([[1, 22], [-3]]),
    ],
    ids=lambda keys: f"{type(keys).__module__.split('.')[0]}-{getattr(keys, 'dtype', 'list')}",
)
def test_integer_and_string_keys_agree(keys):
    """The key 1 and the key "1" are one person, whatever holds them."""
    assert keys_as_text(check_keys(keys)) == ["1", "22", "-3"]


def test_large_and_odd_keys():
    """Integers beyond 64 bits and any text, lone surrogates included, are keys."""
    policy = make_policy()
    keys = np.array([2**200, "\ud800", "", "🙂", "a:b", "x" * 10_000], dtype=object)
    decided = policy.decide([0] * 6, ["a"] * 6, keys)
    assert (policy.decide([0] * 6, ["a"] * 6, keys) == decided).all()
    one_by_one = [policy.decide([0], ["a"], keys[i : i + 1])[0] for i in range(6)]
    assert decided.tolist() == one_by_one


@pytest.mark.parametrize(
    ("keys", "offender"),
    [
        (np.array([1.0, 2.0]), "float64"),
        (np.array([1, 2.5], dtype=object), "2.5"),
        (np.array(["a", None], dtype=object), "row 1 is missing"),
        (np.array(["a", np.nan], dtype=object), "row 1 is missing"),
        (np.array([True, False]), "bool"),
        (np.array(["a", True], dtype=object), "row 1 is True"),
        (np.array([b"a", b"b"]), "S1"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), "datetime64"),
        (pd.Series([1.0, 2.0]), "float64"),
        (pd.Series(["a", None]), "row 1 is missing"),
        (pd.Series([True, False], dtype="boolean"), "bool"),
        (pl.Series([1.0, 2.0]), "float64"),
        (pl.Series(["a", None]), "row 1 is missing"),
        (pl.Series([True, False]), "bool"),
        (["a", None], "row 1 is missing"),
    ],
    ids=str,
)
def test_what_is_no_key(refuses, keys, offender):
    """Floats, nulls, booleans and anything else but strings and integers are refused as keys."""
    with refuses(DataError, "key", offender, "string or an integer", remedy="identifier"):
        make_policy().decide([0, 1], ["a", "b"], keys)


@pytest.mark.parametrize(
    "keys",
    [pd.Series([1, None], dtype="Int64"), pl.Series([1, None]), pa.chunked_array([[1, None]])],
    ids=["pandas", "polars", "arrow"],
)
def test_missing_integer_key_is_called_missing(refuses, keys):
    """A null among integer keys is reported as missing, with its row, not as a float that nobody wrote."""
    with refuses(DataError, "row 1 is missing"):
        make_policy().decide([0, 1], ["a", "b"], keys)


@pytest.mark.parametrize("offender", [float("nan"), 1.5, True], ids=str)
def test_list_of_mixed_keys(refuses, offender):
    """A float, NaN or boolean in a list of strings is refused too: NumPy must not turn it into text first."""
    with refuses(DataError, "key"):
        make_policy().decide([0, 1], ["a", "b"], ["x", offender])


def test_wrong_number_of_keys(refuses):
    """One key too few is an error that gives both numbers."""
    with refuses(DataError, "1 keys", "2 people"):
        make_policy().decide([0, 1], ["a", "b"], ["x"])
    with refuses(DataError, "shape ()"):
        make_policy().decide([0], ["a"], "x")


# ---------------------------------------------------------------------------------------------------------
# Content as key

CONTENT = {
    "whole": [1, 2, 300],
    "real": [0.5, 1.0, -2.25],
    "text": ["a", "ü", "c d"],
    "flag": [True, False, True],
    "hole": [1.5, None, 3.0],
    "gap": ["x", None, "z"],
    "date": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(1969, 1, 1)],
    "time": [
        datetime.datetime(2020, 1, 1, 12),
        datetime.datetime(2020, 1, 2),
        datetime.datetime(1969, 1, 1, 1, 1),
    ],
}


@pytest.mark.parametrize("name", CONTENT)
def test_content_keys_do_not_depend_on_the_library(name):
    """The same column gives the same keys in pandas, Polars, PyArrow, a dict and an array."""
    values = {name: CONTENT[name]}
    rows = np.arange(3)
    expected = content_keys({name: np.array(CONTENT[name], dtype=object)}, rows)
    assert len(set(expected)) == len(set(CONTENT[name]))
    for table in (pd.DataFrame(values), pl.DataFrame(values), pa.table(values)):
        assert content_keys(table, rows) == expected
    array = np.empty((3, 1), dtype=object)
    array[:, 0] = CONTENT[name]
    assert content_keys(array, rows) == expected


def test_content_keys_do_not_depend_on_the_type_of_numbers():
    """1, 1.0, True and a nullable or categorical 1 give one key: how a number is stored does not matter."""
    rows = np.arange(3)
    types = [
        "int8",
        "uint16",
        "int64",
        "float32",
        "float64",
        "bool",
        "object",
        "Int64",
        "Float64",
        "boolean",
        "category",
    ]
    tables = [pd.DataFrame({"c": pd.Series([1, 0, 1]).astype(kind)}) for kind in types]
    tables += [
        pl.DataFrame({"c": [1, 0, 1]}).cast(kind) for kind in (pl.Int8, pl.UInt64, pl.Float32, pl.Boolean)
    ]
    tables += [np.array([[1], [0], [1]], dtype=kind) for kind in ("int32", "float64", "bool")]
    assert {tuple(content_keys(table, rows)) for table in tables} == {("1", "0", "1")}
    zeros = np.array([[0.0], [-0.0]])
    assert len(set(content_keys(zeros, np.arange(2)))) == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_content_keys_do_not_depend_on_the_unit_of_time(unit):
    """A time is the same key in seconds and in nanoseconds."""
    table = pd.DataFrame({"t": pd.Series([datetime.datetime(2020, 1, 2, 3, 4, 5)])})
    stored = pd.DataFrame({"t": table["t"].astype(f"datetime64[{unit}]")})
    assert content_keys(stored, np.arange(1)) == content_keys(table, np.arange(1))


def test_content_keys_of_one_row():
    """A row's key is its own: the other rows of its batch change nothing, not even a null among them."""
    table = pd.DataFrame({"i": [1, 2, 3], "s": ["a", "b", "c"]})
    holed = pd.DataFrame({"i": [1, 2, None], "s": ["a", "b", None]})
    alone = [content_keys(table.iloc[i : i + 1], np.arange(1))[0] for i in range(2)]
    assert content_keys(table, np.arange(3))[:2] == alone
    assert content_keys(holed, np.arange(3))[:2] == alone
    assert content_keys(table, np.array([2, 0]))[::-1] == [alone[0], content_keys(table, np.arange(3))[2]]


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "bc"), ("ab", "c")],
        [("a", "b\x1fc"), ("a\x1fb", "c")],
        [("a", "\x1f"), ("a\x1f", "")],
        [(None, "a"), ("", "a")],
        [("x", "1.5"), ("x", "15")],
    ],
)
def test_different_rows_have_different_keys(rows):
    """Two rows that differ have different keys, whatever characters they hold."""
    array = np.array(rows, dtype=object)
    assert len(set(content_keys(array, np.arange(2)))) == 2


def few_rows(n, distinct):
    return pd.DataFrame({"v": np.arange(n) % distinct})


def test_few_distinct_rows_warn():
    """When most people who face a lottery look alike, a warning gives the numbers and the remedy."""
    with pytest.warns(LotteryWarning, match=r"Only 3 different rows among 20 people .*`key` column"):
        content_keys(few_rows(20, 3), np.arange(20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        content_keys(few_rows(20, 10), np.arange(20))
        content_keys(few_rows(19, 1), np.arange(19))
        content_keys(few_rows(40, 20), np.arange(20))


def test_the_warning_points_at_the_caller():
    """The lottery's warning is shown at the user's own call of predict."""
    table = pd.DataFrame(
        {"label": np.repeat([0, 1, 0, 1], [70, 30, 30, 70]), "group": np.repeat(["a", "b"], 100)}
    )
    fair = FairClassifier(
        frozen_identity(table),
        gap=0.0,
        happiness="statistical_parity",
        policy="label",
        sensitive_features="group",
        random_state=0,
    ).fit(table, table["label"])
    assert 0 < fair.share_randomized_ < 1
    with pytest.warns(LotteryWarning) as caught:
        decided = fair.predict(table)
    assert caught[0].filename == __file__
    facing = faces_lottery(fair.predict_proba(table))
    assert len(np.unique(decided[facing])) == 1
    people = table.assign(id=range(200))
    keyed = fair.set_params(key="id").fit(people, table["label"])
    q = keyed.predict_proba(people)[facing, 1]
    assert 0 < q[0] < 1
    share = keyed.predict(people)[facing].mean()
    assert abs(share - q[0]) < 5 * np.sqrt(q[0] * (1 - q[0]) / facing.sum())


def frozen_identity(table):
    """A frozen model that predicts the column ``label``."""
    return FrozenEstimator(DecisionTreeClassifier().fit(table[["label"]], table["label"]))


def test_the_seed_decides():
    """The same random_state draws the same; another one draws otherwise."""
    keys = np.arange(300)
    first, same, other = (make_policy(seed).decide([0] * 300, ["a"] * 300, keys) for seed in (1, 1, 2))
    assert (first == same).all()
    assert (first != other).any()


def test_a_chance_is_never_written_as_none_or_all():
    """A chance of one in a million is no certainty, and does not read like one."""
    policy = make_policy()
    q = policy.q.copy()
    q[:, 0], q[:, 1] = [1e-6, 1 - 1e-6], [0.25, 0.75]
    text = " ".join(replace(policy, q=q).rules())
    assert "with probability less than 0.01% and" in text
    assert "with probability more than 99.99%, by lottery" in text
    assert "with probability 25.00%" in text
