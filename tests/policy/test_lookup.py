"""Decisions by looking up: bit by bit those of the probabilities, and nothing where a number is wrong."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from functions import as_lazy, as_pandas, asked, people

from felicific import Score, aggregate, solve
from felicific._people.checks import check_proba
from felicific._policy import apply
from felicific._policy.apply import Lookup, cells_and_labels
from felicific._program.bins import fine_bins


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch):
    """Tables of a test are small, and cross the edges of chunks all the same."""
    monkeypatch.setattr(apply, "LEAST", 1)
    monkeypatch.setattr(apply, "CHUNK", 700)


def solved(table, classes, signal="score", sees_group=True, **changes):
    ask = asked(classes, policy=signal, happiness="statistical_parity", **changes)
    gap = 0.02 if sees_group else 0.2
    return solve(aggregate(as_pandas(table), **ask), gap=gap, sees_group=sees_group, random_state=7)


def roles(classes, key="id"):
    return {"score": {k: f"p{k}" for k in range(classes)}, "sensitive_features": "z", "key": key}


TABLES = {
    "dict": dict,
    "pandas": as_pandas,
    "polars": lambda table: as_lazy(table).collect(),
    "polars lazy": as_lazy,
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("sees_group", [True, False])
def test_decisions_are_those_of_the_probabilities(form, classes, sees_group):
    """At the very edges of bins, with probabilities that sum to nearly one, text keys and lotteries."""
    table = people(3000, classes=classes)
    edges = np.arange(400) / 4096
    table["p1"][:400], table["p0"][:400] = edges, 1.0 - edges
    for k in range(2, classes):
        table[f"p{k}"][:400] = 0.0
    for k in range(classes):
        table[f"p{k}"] = table[f"p{k}"] * (1.0 + 4e-7)
    table["who"] = np.array([f"person {i} é" for i in table["id"]], dtype=object)
    policy = solved(table, classes, Score(boundary=0.4) if classes == 2 else "score", sees_group)
    score = np.column_stack([table[f"p{k}"] for k in range(classes)])
    for key in ("id", "who"):
        expected = policy.decide(score, table["z"], table[key])
        with patch.object(Lookup, "decide", autospec=True, side_effect=Lookup.decide) as asked_for:
            made = policy.apply(TABLES[form](table), **roles(classes, key))
            made = made.collect() if hasattr(made, "collect") else made
        assert asked_for.called
        assert np.array_equal(np.asarray(made["decision"]), expected)
    assert policy.is_randomized or not sees_group


def test_more_groups_than_are_compared_one_by_one():
    """Polars tells many groups apart otherwise, and gets the same decisions."""
    table = people(3000, classes=2)
    table["z"] = np.array([f"branch {i}" for i in table["id"] % 20], dtype=object)
    policy = solved(table, 2)
    score = np.column_stack([table["p0"], table["p1"]])
    made = policy.apply(as_lazy(table), **roles(2)).collect()
    assert np.array_equal(made["decision"].to_numpy(), policy.decide(score, table["z"], table["id"]))


def test_one_column_of_two_classes():
    """The score alone, from 0 to 1 in the smallest steps there are around the edges, is binned as both columns are."""
    table = people(3000, classes=2)
    policy = solved(table, 2)
    edges = np.repeat(np.arange(0, 4097) / 4096, 3)
    score = np.clip(np.nextafter(edges, np.tile([-1.0, 0.5, 2.0], 4097)), 0.0, 1.0)
    score[1::3] = edges[1::3]
    group, key = np.resize(table["z"], len(score)), np.arange(len(score))
    made = policy.apply({"s": score, "z": group, "id": key}, score="s", sensitive_features="z", key="id")
    assert np.array_equal(made["decision"], policy.decide(score, group, key))


WRONG = {
    "no number": lambda table: table["p1"].__setitem__(1234, np.nan),
    "negative": lambda table: table["p1"].__setitem__(1234, -0.1),
    "does not sum to one": lambda table: table["p0"].__setitem__(1234, 0.9),
    "unknown group": lambda table: table["z"].__setitem__(1234, "nobody"),
    "missing group": lambda table: table["z"].__setitem__(1234, None),
    "missing key": lambda table: table["who"].__setitem__(1234, None),
}


@pytest.mark.parametrize("form", ["pandas", "polars", "polars lazy"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_in_the_same_words(form, wrong, monkeypatch):
    """A row about which nothing may be decided is refused as it is without looking up, with its number."""
    table = people(3000, classes=2)
    policy = solved(table, 2)
    table["z"] = table["z"].astype(object)
    table["who"] = np.array([f"person {i}" for i in table["id"]], dtype=object)
    WRONG[wrong](table)
    said = []
    for least in (1, 10**9):
        monkeypatch.setattr(apply, "LEAST", least)
        with pytest.raises(Exception, match="1234") as refused:
            policy.apply(TABLES[form](table), **roles(2, "who")).collect()
        said.append(str(refused.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("sees_group", [True, False])
def test_one_person_is_decided_on_as_many_are(randomize, sees_group):
    """What is sure of one person is what the probabilities say.

    Where a lottery decides, or something is wrong, nothing is sure.
    """
    table = people(2000, classes=2)
    policy = replace(solved(table, 2, sees_group=sees_group), randomize=randomize)
    score = np.column_stack([table["p0"], table["p1"]]) * (1.0 + 4e-7)
    probabilities, drawn = policy.probabilities(score, table["z"]), 0
    for i in range(300):
        found = policy.sure_of(score[i : i + 1], np.array([table["z"][i]], dtype=object))
        draw = int((probabilities[i] > 0).sum()) > 1
        drawn += draw
        assert found == (None if draw else int(probabilities[i].argmax()))
    assert (drawn > 0) == (randomize and sees_group)
    one = score[:1]
    for wrong in (one * 1.1, -one, one * np.nan):
        assert policy.sure_of(wrong, table["z"][:1]) is None
    for group in ("nobody", None, np.nan):
        found = policy.sure_of(one, np.array([group], dtype=object))
        assert (found is None) == sees_group


@pytest.mark.parametrize("classes", [2, 3, 5, 11])
def test_cells_and_labels_are_those_of_checked_probabilities(classes):
    """At ties, at edges and with sums of nearly one: the cell of the fine bin, and the first most probable class."""
    rng = np.random.default_rng(classes)
    score = rng.integers(0, 5, (3000, classes)) + 1e-9
    score = score / score.sum(axis=1, keepdims=True) * (1.0 + rng.uniform(-9e-7, 9e-7, (3000, 1)))
    cells = rng.integers(0, 50, 5000)
    checked = check_proba(score, classes, np.arange(3000))
    cell, label = cells_and_labels(score, cells, 0.4)
    assert np.array_equal(cell, cells[fine_bins(checked, 0.4)])
    assert np.array_equal(label, checked.argmax(axis=1))
    score[2999, 0] = np.nan
    assert cells_and_labels(score, cells, 0.4) is None
