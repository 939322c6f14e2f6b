"""Cells of a decision function: where they are cut, what falls into them, and how they are said and kept."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._program.signal_names import signal_from_json, signal_to_json
from felicific._program.signals import Score
from felicific._program.values import (
    ValueCells,
    check_values,
    cut_people,
    find_boundary,
    number_between,
    placed,
)
from felicific.exceptions import DataError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
PROBLEM = Problem.of(np.array([0, 1]), "statistical_parity")


def people(values, predicted=None, group=None, weight=None):
    """People of whom a model without probabilities said these values."""
    values = np.asarray(values, dtype=float)
    predicted = (values > 0).astype(int) if predicted is None else np.asarray(predicted)
    group = np.where(np.arange(len(values)) % 2, "b", "a") if group is None else np.asarray(group)
    return People.of(
        np.empty((len(values), 0)), PROBLEM, group=group, score=values, predicted=predicted, weight=weight
    )


def cut(score, some):
    """Cells of what was said of people."""
    return cut_people(score, some)[1]


def cells(signal, values):
    """The cell of each value, by way of its place."""
    return signal.spread(signal.read(np.asarray(values, dtype=float), np.arange(len(values))), None)[0][0]


def naive_cells(signal, values):
    """How many cuts each value exceeds."""
    return np.array([sum(value > cut for cut in signal.values) for value in values])


@examples
@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FINITE, max_size=20))
def test_a_value_is_in_the_cell_that_its_cuts_say(values, others):
    """A person is in the cell of as many cuts as the value exceeds, at the fit and later, however large it is.

    With few different values each has a cell of its own; the model's boundary parts its decisions.
    """
    signal = cut(Score(), people(values))
    some = np.array([*values, *others])
    assert cells(signal, some).tolist() == naive_cells(signal, some).tolist()
    assert len(set(cells(signal, values).tolist())) == len(set(values))
    assert signal.boundary == 0.0
    assert ((np.array(values) > 0) == signal.baseline(2)[cells(signal, values)]).all()
    signal.check(2)


@examples
@given(FINITE, FINITE)
def test_a_cut_lies_between_two_values(one, other):
    """At least the lower and below the higher one, and written with no more digits than it takes."""
    low, high = min(one, other), max(one, other)
    if low == high:
        return
    cut = number_between(low, high)
    assert low <= cut < high
    assert math.isfinite(cut)


def test_cuts_are_short_numbers():
    """Whoever reads a cut reads few digits."""
    assert number_between(0.30125, 0.31987) == 0.31
    assert number_between(-2.0, -1.0) == -2.0
    assert number_between(1.0, np.nextafter(1.0, 2.0)) == 1.0


@pytest.mark.parametrize("count", [2, 3, 7, 256])
def test_as_many_cells_as_are_asked_for(count):
    """Of about equal mass, each group having the same say; the boundary is one of the cuts."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=4000), rng.normal(3.0, 0.5, size=40)])
    group = np.repeat(["large", "small"], [4000, 40])
    signal = cut(Score(bins=count), people(values, group=group))
    assert signal.size(2) == count
    assert 0.0 in signal.values
    if count == 256:
        held = np.bincount(cells(signal, values), minlength=count)
        share = sum(
            np.bincount(cells(signal, values[group == one]), minlength=count) / (group == one).sum() / 2
            for one in ("large", "small")
        )
        assert held.min() > 0
        assert share.max() < 0.5 / 40 + 4 / count


@pytest.mark.parametrize("map_", [np.sinh, lambda v: v**3, np.arctan, lambda v: 1e6 * v, lambda v: 1e-9 * v])
def test_a_rising_function_of_the_values_makes_the_same_cells(map_):
    """Cells go by the order of the values alone."""
    values = np.random.default_rng(1).normal(size=1500)
    one, other = cut(Score(), people(values)), cut(Score(), people(map_(values)))
    assert np.array_equal(cells(one, values), cells(other, map_(values)))


def test_weights_count_as_rows():
    """Weight 2 is the row twice, weight 0 the row absent, whatever its value."""
    rng = np.random.default_rng(2)
    values, weight = rng.normal(size=900), rng.integers(0, 3, 900).astype(float)
    values[weight == 0] = np.nan
    group = rng.choice(["a", "b"], 900)
    predicted = (values > 0).astype(int)
    one = cut(Score(), people(values, predicted, group, weight))
    rows = np.repeat(np.arange(900), weight.astype(int))
    assert one == cut(Score(), people(values[rows], predicted[rows], group[rows]))


@pytest.mark.parametrize("value", [0.0, -3.0, 7.5, 1e300])
def test_a_constant_has_one_cell_beside_an_empty_one(value):
    """All values equal: the boundary is still a cut, and nobody is beyond it."""
    signal = cut(Score(), people(np.full(10, value)))
    assert signal.values == (0.0,)
    assert len(set(cells(signal, np.full(10, value)).tolist())) == 1
    assert cells(signal, [-1e308, 1e308]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "positive", "boundary"),
    [
        ([-1, 2], [False, True], 0.0),
        ([-1, 0], [False, False], 0.0),
        ([0.2, 0.4], [False, True], 0.3),
        ([-5.0, -3.0], [True, True], np.nextafter(-5.0, -np.inf)),
        ([5.0, 3.0], [False, False], 5.0),
        ([5.0, 3.0], [False, True], 0.0),
        ([0.0, 0.0], [True, True], np.nextafter(0.0, -1.0)),
    ],
)
def test_the_boundary_is_where_the_model_turns(values, positive, boundary):
    """Zero, or what parts its decisions; zero again where these are no threshold."""
    assert find_boundary(np.array(values, dtype=float), np.array(positive)) == boundary


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_by_row(bad):
    """Whoever has no value is named."""
    with pytest.raises(DataError, match=r"decision function of row 12 is (nan|-?inf)"):
        check_values(np.array([1.0, bad]), np.array([11, 12]))
    for wrong in (np.zeros((2, 2)), np.array(["a", "b"])):
        with pytest.raises(DataError, match="decision_function returns"):
            check_values(wrong, np.arange(2))


def test_places_keep_the_order_and_the_boundary():
    """Everybody above the boundary has a place above one half; places rise with the values."""
    values = np.sort(np.random.default_rng(3).normal(2.0, size=700))
    signal = cut(Score(), people(values))
    place = placed(signal, people(values)).scores()[:, 1]
    assert (np.diff(place) >= 0).all()
    assert ((place > 0.5) == (values > 0)).all()
    edges = signal.ranges(2)
    assert [low for _, low, _ in edges][1:] == [high for _, _, high in edges][:-1]
    assert [value for _, value in signal.cuts_at()] == list(signal.values)


def test_words_name_the_values():
    """Sentences speak of the decision function and its own numbers."""
    signal = ValueCells((-1.5, 0.0, 0.31))
    assert signal.describe_all([(0, 0), (1, 2), (3, 3), (0, 3)], ["'no'", "'yes'"]) == [
        "a person with a decision function for 'yes' of at most -1.5",
        "a person with a decision function for 'yes' above -1.5 and at most 0.31",
        "a person with a decision function for 'yes' above 0.31",
        "a person with any decision function for 'yes'",
    ]


def test_a_file_keeps_the_cuts_exactly():
    """What is written is read again, number by number; what are no cuts is refused."""
    signal = cut(Score(monotone=False), people(np.random.default_rng(4).normal(size=50) / 3))
    assert signal_from_json(json.loads(json.dumps(signal_to_json(signal)))) == signal
    for wrong in (
        {"values": [0.0, 0.0]},
        {"values": [1.0, 0.0]},
        {"values": [math.nan, 0.0]},
        {"values": [0.0, math.inf]},
        {"values": [0, 1]},
        {"values": ["0.0"]},
        {"values": [1.0]},
        {"values": [0.0], "monotone": 1},
    ):
        with pytest.raises((DataError, TypeError)):
            signal_from_json({"kind": "score", "boundary": 0.0, **wrong})


def test_the_bound_counts_every_number_that_could_be_a_cut():
    """Cuts are chosen by looking at people, so a bound in advance counts all that there are: 2 to the 64th."""
    thresholds = ValueCells((0.0, 1.0)).log_policies(2)
    assert thresholds == pytest.approx(64 * math.log(2))
    assert ValueCells((0.0, 1.0), monotone=False).log_policies(2) > 2 * thresholds
