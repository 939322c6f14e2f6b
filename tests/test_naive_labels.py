"""The second implementation of missing labels is itself what its words say."""

import naive_labels as naive
import numpy as np
import pytest
from naive_labels import MISSING


def people(seed, n, classes, share=0.4):
    rng = np.random.default_rng(seed)
    m = rng.dirichlet(np.ones(classes), n)
    y = (m.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=classes - 1)
    probabilities = rng.uniform(0.2, 0.9, n)
    return m, np.where(rng.random(n) < share, y, MISSING), probabilities, rng


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_raising_the_largest_is_the_worst_of_all_vertices(classes, seed):
    """Of all vertices of [1, G]^K, one that raises some of the largest values makes a mean largest."""
    m, _, _, rng = people(seed, 30, classes)
    values = rng.normal(size=m.shape)
    tilt = naive.sorted_tilt(m, values, 3.0)
    u = m * tilt / (m * tilt).sum(axis=1, keepdims=True)
    brute = [naive.worst(m[i], values[i], 3.0) for i in range(len(m))]
    np.testing.assert_allclose((u * values).sum(axis=1), brute, rtol=0, atol=1e-12)


@pytest.mark.parametrize("highest", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_dinkelbach_finds_the_end_of_a_rate_that_every_vertex_gives(seed, highest):
    """Without a correction the end of a rate is that over all vertices of all people."""
    m, label, _, rng = people(seed, 7, 2)
    label[:2] = 0, 1  # somebody is counted
    among = np.broadcast_to(np.array([0.0, 1.0]), m.shape)
    value, weight = rng.random((7, 1)) * among, rng.uniform(0.5, 2.0, 7)
    ends = naive.rate_bounds(label, m, weight, value, among, 2.5)
    rate, _ = naive.rate_end(label, m, weight, value, among, 2.5, np.zeros(7), highest=highest)
    assert rate == pytest.approx(ends[highest], abs=1e-12)


@pytest.mark.parametrize("tilt", [None, (1.0, 4.0, 2.0)])
def test_what_a_person_counts_for_sums_to_one(tilt):
    """The debiased weights of the labels of a person sum to 1, however probabilities are tilted."""
    m, label, probabilities, _ = people(1, 50, 3)
    given = None if tilt is None else np.broadcast_to(np.array(tilt), m.shape)
    weights = naive.psi(label, m, naive.omega_of(label, probabilities), given)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", [{}, {"penalty": 1.0}, {"slope": False}])
def test_calibrated_probabilities_agree_with_weighted_labels_in_sum(how):
    """In every group the weighted sum of labels is that of m, so imputation and the debiased sum are the same."""
    m, label, probabilities, rng = people(2, 400, 3)
    group, omega = rng.integers(2, size=400), naive.omega_of(label, probabilities)
    curve = naive.curves(m, label, group, omega, **how)(m, group)
    for name in (0, 1):
        mine = group == name
        off = (omega[:, None] * (naive.one_hot(label, 3) - curve))[mine].sum(axis=0)
        np.testing.assert_allclose(off, 0.0, rtol=0, atol=1e-6)
        imputed = np.where((label == MISSING)[:, None], curve, naive.one_hot(label, 3))[mine].sum(axis=0)
        np.testing.assert_allclose(
            naive.psi(label, curve, omega)[mine].sum(axis=0), imputed, rtol=0, atol=1e-6
        )


def test_a_tilt_moves_odds_by_its_ratio_and_the_correction_is_its_slope():
    """The correction is the derivative of the tilted distribution in m, towards the label."""
    m, label, tilt = np.array([[0.3, 0.5, 0.2]]), np.array([1]), np.array([[1.0, 3.0, 2.0]])
    step, r = 1e-6, naive.one_hot(label, 3) - m
    u = [naive.tilted((m + sign * step * r)[0], tilt[0]) for sign in (1, -1)]
    slope = (u[0] - u[1]) / (2 * step)
    found = naive.psi(label, m, np.array([1.0]), tilt)[0] - naive.one_hot(label, 3)[0]
    np.testing.assert_allclose(found, slope, rtol=0, atol=1e-8)


def test_the_expanded_table_keeps_everybody_once():
    """Copies of a person share their weight, and a label that is known is not shared."""
    m, label, _, rng = people(3, 20, 3)
    weight = rng.uniform(0.5, 2.0, 20)
    columns, y, w, row = naive.expanded({"row": np.arange(20)}, label, weight, m)
    np.testing.assert_allclose(np.bincount(row, w), weight, rtol=0, atol=1e-12)
    assert (columns["row"] == row).all()
    known = label[row] != MISSING
    assert (y[known] == label[row][known]).all()
    np.testing.assert_allclose(w[~known], (weight[:, None] * m)[row, y][~known], rtol=0, atol=0)
