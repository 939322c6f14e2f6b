"""Sample sizes: the formula, its inverse, the maps it counts, and where the paper's printed lemma fails."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import refused
from scipy.optimize import linprog

from felicific import Happiness, aggregate, sample_size
from felicific._program.signals import Label, Score, ScoreCells, SoftLabel
from felicific._statistics.sample_size import log_maps
from felicific.exceptions import DataError, HappinessError


def test_the_papers_figure_and_the_corrected_one():
    """Two classes give the paper's 10 596; three give 12 983 where the printed formula says 11 610."""
    found = sample_size(delta=0.02, confidence=0.99, n_measures=2, n_classes=2, n_groups=2, span=1.0)
    assert found == 10596
    assert found.printed == 10596
    assert "same number" in found.note
    three = sample_size(delta=0.02, confidence=0.99, n_measures=2, n_classes=3)
    assert (three, three.printed) == (12983, 11610)
    assert "add up over the signals" in three.note
    assert found.fixed_policy < found
    assert found.fixed_policy_large_sample < found.fixed_policy
    assert len(found.sentences()) == 4


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"n_classes": 3, "confidence": 0.8},
        {"signals": 256, "monotone": True},
        {"signals": 17, "n_groups": 5, "n_measures": 4},
        {"span": 50_000.0},
        {"among": 0.25},
    ],
)
def test_precision_is_the_inverse(case):
    """The rows that a precision needs keep that precision, and one row fewer does not."""
    delta = 0.02 * case.get("span", 1.0)
    rows = sample_size(delta=delta, **case)
    assert sample_size(rows=int(rows), **case).margin_of_error <= delta * (1 + 1e-9)
    assert sample_size(rows=int(rows) - 1, **case).margin_of_error > delta * (1 - 1e-9)


def test_measures_have_their_own_units():
    """The hardest measure decides; a unit changes nothing; people outside `among` are needed on top."""
    hard, easy = (
        sample_size(delta=[0.02, 1.0], span=[1.0, 1.0]),
        sample_size(delta=[1.0, 1.0], span=[1.0, 1.0]),
    )
    assert hard == 10596
    assert easy < 10
    assert (
        sample_size(delta={"rate": 0.02, "dollars": 1000.0}, span={"rate": 1.0, "dollars": 50_000.0}) == 10596
    )
    assert sample_size(among=[1.0, 0.5]) == pytest.approx(2 * 10596, abs=1)


def rises(decisions, owner):
    return all(not (a == owner and b != owner) for a, b in itertools.pairwise(decisions))


@pytest.mark.parametrize(("signals", "classes"), [(1, 2), (5, 2), (6, 3), (9, 3), (8, 4)])
def test_maps_are_counted_right(signals, classes):
    """The number of deterministic policies is what listing them gives."""
    assert math.exp(log_maps(signals, classes)) == pytest.approx(classes**signals)
    if classes == 2:
        listed = sum(rises(run, 1) for run in itertools.product(range(2), repeat=signals))
    else:
        cells = signals // classes
        listed = sum(rises(run, 0) for run in itertools.product(range(classes), repeat=cells)) ** classes
    assert math.exp(log_maps(signals, classes, monotone=True)) == pytest.approx(listed)


def test_cuts_from_the_same_rows_are_paid_for():
    """Cells cut by the data count as the fine bins they are made of, or as every choice of cuts."""
    assert Label().log_policies(3) == SoftLabel().log_policies(3) == pytest.approx(3 * math.log(3))
    cells = ScoreCells((100, 2049, 3000))
    assert cells.log_policies(2) == pytest.approx(math.log(Score().size(2) + 1))
    free = ScoreCells((100, 2049, 3000), monotone=False).log_policies(2)
    assert free == pytest.approx(math.log(math.comb(4097, 3)) + 4 * math.log(2))


# ---------------------------------------------------------------------------------------------------------
# The printed lemma


def least_loss(xi, gap):
    """Least loss of binary decisions q[z, s] when everybody's label is 1: two equal groups, two equal signals.

    ``xi[z, s]`` is the part of group z's mean happiness that deciding 1 at signal s contributes.
    """
    signs = np.concatenate([xi[0], -xi[1]])
    found = linprog(
        -np.full(4, 0.25), A_ub=[signs, -signs], b_ub=[gap, gap], bounds=[(0, 1)] * 4, method="highs"
    )
    return 1.0 + found.fun if found.status == 0 else math.inf


def test_a_counterexample_to_the_printed_lemma():
    """Coefficients within delta do not give L(eps) <= L_hat(eps - 2 delta) + delta; means within delta do.

    True contributions are .25 +- delta by group, estimated as .25 each: every coefficient is within delta, and the
    estimated probabilities are exact. Deciding 1 for all looks free of any gap and costs nothing, but has a gap of
    4 delta; to bring that to 2 delta costs more than delta.
    """
    delta = 0.02
    truth = np.array([[0.25 + delta] * 2, [0.25 - delta] * 2])
    estimate = np.full((2, 2), 0.25)
    assert np.abs(truth - estimate).max() <= delta + 1e-15
    eps = 2 * delta
    assert least_loss(truth, eps) > least_loss(estimate, eps - 2 * delta) + delta
    # The error that counts is that of the means, largest at some deterministic map.
    maps = np.array(list(itertools.product([0, 1], repeat=2)))
    error = np.abs((truth - estimate) @ maps.T).max()
    assert error == pytest.approx(2 * delta)
    for eps in np.linspace(2 * error, 0.5, 9):
        assert least_loss(truth, eps) <= least_loss(estimate, eps - 2 * error) + error + 1e-12


def test_our_bound_survives_random_instances():
    """On random instances the lemma with the error of the means always holds; the printed one fails on some."""
    rng = np.random.default_rng(0)
    printed = 0
    maps = np.array(list(itertools.product([0, 1], repeat=2)))
    for _ in range(200):
        truth, delta = rng.uniform(0.1, 0.4, (2, 2)), 0.02
        estimate = truth + rng.choice([-delta, delta], (2, 2))
        error = np.abs((truth - estimate) @ maps.T).max()
        eps = rng.uniform(2 * error, 0.3)
        assert least_loss(truth, eps) <= least_loss(estimate, eps - 2 * error) + error + 1e-12
        printed += least_loss(truth, eps) > least_loss(estimate, eps - 2 * delta) + delta + 1e-12
    assert printed > 0


def test_the_bound_holds_with_its_probability():
    """The largest error over all maps, groups and measures exceeds the precision in at most gamma of the runs."""
    rng = np.random.default_rng(1)
    rows, gamma, runs = 60, 0.3, 4000
    delta = sample_size(rows=rows, confidence=1 - gamma, n_measures=1).margin_of_error
    maps = np.array(list(itertools.product([0, 1], repeat=2)))
    # The worst case of Hoeffding: values 0 or 1 with probability one half, whatever is decided.
    signal, value = rng.integers(0, 2, (runs, 2, rows)), rng.integers(0, 2, (runs, 2, rows, 2))
    worst = np.zeros(runs)
    for chosen in maps:
        decided = chosen[signal]
        mean = np.take_along_axis(value, decided[..., None], axis=3)[..., 0].mean(axis=2)
        worst = np.maximum(worst, np.abs(mean - 0.5).max(axis=1))
    assert (worst > delta).mean() <= gamma
    assert (worst > 0.5 * delta).mean() > gamma  # half of it would not do


def test_bad_input():
    """What makes no sense is refused with a remedy."""
    for name, value in [
        ("delta", 0), ("delta", -1), ("delta", math.nan), ("delta", "x"), ("confidence", 0),
        ("confidence", 1), ("confidence", 2),
        ("span", 0), ("among", 0), ("among", 1.1), ("n_classes", 1), ("n_groups", 1), ("n_measures", 0),
        ("signals", 0), ("signals", 2.5), ("delta", []),
    ]:  # fmt: skip
        with refused(DataError, name, remedy="Give"):
            sample_size(**{name: value})
    with refused(DataError, "span has 3 numbers, not 2"):
        sample_size(delta=[1, 1], span=[1, 1, 1])
    with refused(DataError, "n_measures is 3"):
        sample_size(delta=[1, 1], n_measures=3)
    with refused(DataError, "span speaks of"):
        sample_size(delta={"a": 1}, span={"b": 1})
    with refused(DataError, "rows"):
        sample_size(rows=0)


def test_values_outside_their_bounds_are_refused_by_aggregates_too():
    """A bound in advance rests on the bounds that were stated, so the rows it rests on are checked."""
    table = {"v": np.array([1.0, 2.0, 3.0, 11.0]), "g": np.array([0, 0, 1, 1])}
    happiness = Happiness(lambda decision, x: decision * x["v"], name="h", bounds=(0, 10))
    asked = {
        "policy": "label",
        "predicted": np.array([0, 1, 0, 1]),
        "y": np.array([0, 1, 0, 1]),
        "sensitive_features": "g",
    }
    with refused(HappinessError, "is 11 in row 3", "outside its bounds 0 to 10", remedy="Widen bounds="):
        aggregate(table, happiness=happiness, **asked)
    some = replace(happiness, among=lambda x: x["v"] < 10)
    assert aggregate(table, happiness=some, **asked).rows.sum() == 4
