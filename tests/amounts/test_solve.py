"""Lines of amounts against closed forms and the whole program: distances, means, levels, losses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_amounts import (
    best_levels,
    cell_means,
    clip_added_error,
    ks_distance,
    level_costs,
    mean_gap_loss,
    mean_shift,
)

from felicific import Budget, Floor, Gap, Ratio
from felicific._frontier.numeric import AmountFrontier
from felicific._people.people import People
from felicific._policy.lines import MOVED
from felicific._policy.numeric_fit import fit_amounts
from felicific._problem.numeric import NumericProblem
from felicific._program.levels import grid_of
from felicific.exceptions import InfeasibleError

SALT = "0" * 32


def world(n=4_000, n_groups=2, seed=0, noise=0.7):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    prediction = rng.normal(0.8 * group / (n_groups - 1), 1.0)
    return prediction, prediction + rng.normal(0.0, noise, n), group


def people_of(prediction, y, group, weight=None, baseline=None):
    return People.predicted_amounts(
        None, prediction=prediction, y=y, group=group, weight=weight, baseline=baseline
    )


def fitted(people, happiness, gap, calibration="affine", randomize=True, **asked):
    problem = NumericProblem.finding(happiness, gap=gap, **asked)
    return fit_amounts(problem, people, calibration=calibration, salt=SALT, randomize=randomize)


def given_by(fit, people):
    return fit.policy.given(people.prediction, people.codes, people.rows)


# ---------------------------------------------------------------------------------------------------------
# Distances


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("eps", [0.0, 0.05, 0.2])
def test_clip_formula(n_groups, eps):
    """The added squared error is that of the closed form, and the distance on the fitted people what was asked."""
    people = people_of(*world(40_000, n_groups))
    fit = fitted(people, "distributional_parity", eps)
    calibrated = fit.calibration.of(people.prediction, people.codes)
    amounts = given_by(fit, people)
    added = np.mean((amounts - calibrated) ** 2)
    closed = clip_added_error(calibrated, people.codes, eps)
    assert added == pytest.approx(closed, abs=5e-4 * np.var(calibrated))
    # At 0 what is left is what lines are simplified by, of two groups.
    assert fit.policy.gap <= eps + (0.0 if eps else 4.0 * MOVED + 2.0 / np.bincount(people.codes).min())
    assert fit.policy.loss == pytest.approx(np.mean((amounts - people.y) ** 2), rel=1e-12)


def test_distance_is_measured():
    """The distance that a policy states is that of what its amounts really are, by a double loop."""
    people = people_of(*world(600, 3))
    for eps in (0.0, 0.1):
        fit = fitted(people, "distributional_parity", eps)
        measured = ks_distance(given_by(fit, people), people.codes)
        assert fit.policy.gaps["distributional_parity"] == pytest.approx(measured, abs=1e-12)
        assert fit.policy.baseline.distance.value == pytest.approx(
            ks_distance(people.prediction, people.codes), abs=1e-12
        )


def test_loose_distance_changes_nothing():
    """Where predictions meet what is asked, and are not calibrated, they are returned as they are."""
    people = people_of(*world())
    fit = fitted(people, "distributional_parity", 0.9, calibration="none")
    assert given_by(fit, people) == pytest.approx(people.prediction, rel=1e-12, abs=1e-12)
    assert fit.policy.prices == {"distributional_parity": 0.0}


def test_distance_and_mean():
    """A distance and a mean gap asked for together are both kept, and cost no less than each alone."""
    people = people_of(*world())
    both = fitted(
        people, ["distributional_parity", "decision"], {"distributional_parity": 0.1, "decision": 0.1}
    )
    assert both.policy.gaps["distributional_parity"] <= 0.1
    assert both.policy.gaps["decision"] <= 0.1 * (1 + 1e-9)
    alone = [fitted(people, "distributional_parity", 0.1), fitted(people, "decision", 0.1)]
    assert both.policy.loss >= max(one.policy.loss for one in alone) - 1e-3


# ---------------------------------------------------------------------------------------------------------
# Means


@pytest.mark.parametrize("eps", [0.0, 0.2, 0.5])
def test_mean_gap_formula(eps):
    """Where no amount meets its bound, closing a mean gap costs p0 p1 (g0 - eps)^2 exactly."""
    people = people_of(*world())
    fit = fitted(people, "decision", eps, decisions=(-50.0, 50.0))
    free = fit.policy.unconstrained
    shares = np.bincount(people.codes) / len(people)
    expected = mean_gap_loss(free.loss, shares, float(free.gaps[0]), eps)
    assert fit.policy.loss == pytest.approx(expected, rel=1e-9)
    assert fit.policy.gap == pytest.approx(eps, abs=1e-9)


def test_mean_shift():
    """Closing a mean gap of any number of groups moves everybody of a group by the same."""
    people = people_of(*world(3_000, 4))
    fit = fitted(people, "decision", 0.3, decisions=(-50.0, 50.0), calibration="none")
    shifted = mean_shift(people.prediction, people.codes, gap=0.3)
    assert given_by(fit, people) == pytest.approx(shifted, abs=2e-5)  # 2e-7 of the range


def test_price_is_the_slope():
    """The price of a gap is what the next bit of it costs."""
    people = people_of(*world())
    one, two = (fitted(people, "decision", eps, decisions=(-50.0, 50.0)).policy for eps in (0.3, 0.3 - 1e-4))
    assert one.prices["decision"] == pytest.approx((two.loss - one.loss) / 1e-4, rel=1e-3)
    near, far = (fitted(people, "distributional_parity", eps).policy for eps in (0.1, 0.15))
    assert near.prices["distributional_parity"] > far.prices["distributional_parity"] > 0


@pytest.mark.parametrize(
    ("constraint", "check"),
    [
        (Floor("decision", at_least=0.6), lambda m: m.min() >= 0.6 - 1e-9),
        (Budget("decision", at_most=0.1), lambda m: m.mean() <= 0.11),
        (Ratio("decision", at_least=0.9), lambda m: m.min() >= 0.9 * m.max() - 1e-9),
        (Gap("decision", at_most=0.05), lambda m: np.ptp(m) <= 0.05 + 1e-9),
    ],
)
def test_requirements(constraint, check):
    """Floors, budgets, ratios and gaps of means are kept."""
    prediction, y, group = world()
    people = people_of(prediction, y, group)
    if isinstance(constraint, Ratio):  # of what cannot be negative
        people = people_of(prediction + 20.0, y + 20.0, group)
    fit = fitted(people, "decision", 1.0, constraints=[constraint])
    assert check(np.array(list(fit.policy.means["decision"].values())))


def test_conflict():
    """Requirements that nothing meets are named: each of these three could be met without one of the others."""
    people = people_of(*world())
    with pytest.raises(InfeasibleError, match="all people together") as error:
        fitted(
            people,
            "decision",
            3.0,
            constraints=[Floor("decision", at_least=1.0), Budget("decision", at_most=0.0)],
        )
    assert len(error.value.conflict) == 3


# ---------------------------------------------------------------------------------------------------------
# Levels and other losses


def small(n_groups=2, n_cells=6, per=20, seed=0):
    """Few predictions, each of some people, whose labels vary."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(n_cells), per * n_groups)
    group = np.tile(np.repeat(np.arange(n_groups), per), n_cells)
    y = cell + 0.7 * group + rng.normal(0, 0.5, len(cell))
    return cell.astype(float), y, group


@given(
    seed=st.integers(0, 1_000),
    loss=st.sampled_from(["absolute", "quantile:0.8", "squared"]),
    gap=st.sampled_from([0.1, 0.3, 0.6]),
)
def test_levels_against_the_program(seed, loss, gap):
    """Listed amounts cost at least the whole program's optimum over monotone lotteries, and nearly no more."""
    prediction, y, group = small(seed=seed, per=40)
    levels = np.array([0.0, 2.0, 4.0, 6.0])
    people = people_of(prediction, y, group)
    fit = fitted(people, "decision", gap, decisions=levels.tolist(), loss=loss, calibration="none")
    target = prediction if loss == "squared" else y
    costs = level_costs(loss, target, levels)
    mass, means = cell_means(costs, group, prediction.astype(int), 2, 6)
    optimum = best_levels(mass, means, levels=levels, mean_gap=gap, monotone=True)
    policy = fit.policy
    if loss == "squared":  # real labels are further away than predictions, by the same whatever is decided
        amounts_loss = policy.loss - np.mean((y - prediction) ** 2) - 2 * _cross(fit, people)
    else:
        amounts_loss = policy.loss
    assert policy.gap <= gap * (1 + 1e-9)
    assert amounts_loss >= optimum.loss - 1e-9
    assert amounts_loss <= optimum.loss + 0.05 * np.ptp(costs.mean(axis=0))


def _cross(fit, people):
    """The mean of (amount - prediction) (prediction - label), in expectation over the lottery."""
    draws = (np.arange(64) + 0.5) / 64
    total = 0.0
    for z, line in enumerate(fit.policy.lines):
        rows = np.flatnonzero(people.codes == z)
        f, y = people.prediction[rows], people.y[rows]
        amount = line.at(f)
        place = line.drawing(f)
        for k, atom in enumerate(line.atoms):
            amount[place == k] = atom.drawn(draws).mean()
        total += float(((amount - f) * (f - y)).sum())
    return total / len(people)


def test_share_above_a_limit():
    """A share such as decision >= 1 is closed too, by amounts that are levels."""
    people = people_of(*world(8_000))
    fit = fitted(people, "decision >= 1", 0.02)
    amounts = given_by(fit, people)
    means = [np.mean(amounts[people.codes == z] >= 1) for z in (0, 1)]
    assert abs(means[0] - means[1]) <= 0.02 + 1e-12
    calibrated = fit.calibration.of(people.prediction, people.codes)
    grid = grid_of(fit.problem, people, calibrated)
    assert np.isin(amounts, grid).all()


def test_listed_amounts_only():
    """Nobody gets anything but what is listed, and more is predicted for whoever gets more."""
    people = people_of(*world())
    listed = [-1.0, 0.0, 0.5, 2.0]
    fit = fitted(people, "distributional_parity", 0.1, decisions=listed)
    amounts = given_by(fit, people)
    assert set(np.unique(amounts)) <= set(listed)
    for z in (0, 1):
        rows = np.flatnonzero(people.codes == z)
        order = rows[np.argsort(people.prediction[rows])]
        assert (np.diff(amounts[order]) >= 0).all()


def test_medians_and_quantiles():
    """The loss of a quantile gives amounts below which about that share of labels is."""
    people = people_of(*world(20_000))
    for q in (0.2, 0.5, 0.9):
        fit = fitted(people, "decision", 10.0, loss=f"quantile:{q}")
        assert np.mean(people.y <= given_by(fit, people)) == pytest.approx(q, abs=0.03)


# ---------------------------------------------------------------------------------------------------------
# Atoms


def leaves(n=4_000, n_leaves=8, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    raw = rng.normal(0.8 * group, 1.0)
    edges = np.quantile(raw, np.linspace(0, 1, n_leaves + 1)[1:-1])
    leaf = np.searchsorted(edges, raw)
    prediction = np.array([raw[leaf == k].mean() for k in range(n_leaves)])[leaf]
    return prediction, prediction + rng.normal(0, 0.7, n), group


def test_atoms_face_a_lottery():
    """Eight predictions: a distance of 0 needs a lottery, and without one the distance that is left is stated."""
    people = people_of(*leaves())
    drawn = fitted(people, "distributional_parity", 0.0)
    assert drawn.policy.share_randomized > 0.3
    assert drawn.policy.gap <= 0.005
    rounded = fitted(people, "distributional_parity", 0.0, randomize=False)
    assert rounded.policy.gap > 0.05
    assert rounded.policy.share_randomized == 0.0
    assert rounded.policy.gap == pytest.approx(
        ks_distance(given_by(rounded, people), people.codes), abs=1e-12
    )


def test_nobody_draws_alone():
    """In a group of few people each is more than one in a hundred, and nobody draws who is predicted alone."""
    prediction, y, group = world(80)
    fit = fitted(people_of(prediction, y, group), "distributional_parity", 0.2)
    assert fit.policy.share_randomized == 0.0
    assert not any(line.atoms for line in fit.policy.lines)
    twice = people_of(prediction.repeat(2), y.repeat(2), group.repeat(2))
    both = fitted(twice, "distributional_parity", 0.2).policy
    weighted = fitted(people_of(prediction, y, group, np.full(80, 2.0)), "distributional_parity", 0.2).policy
    assert both.share_randomized == pytest.approx(weighted.share_randomized, abs=1e-12)


def test_lotteries_do_what_is_stated():
    """What many draws do is what the policy states in expectation over the lottery."""
    people = people_of(*leaves(1_500))
    fit = fitted(people, "distributional_parity", 0.05)
    draws = [
        fit.policy.given(people.prediction, people.codes, np.arange(len(people)) + 10_000 * k)
        for k in range(60)
    ]
    loss = np.mean([np.mean((amounts - people.y) ** 2) for amounts in draws])
    assert loss == pytest.approx(fit.policy.loss, rel=0.01)
    every = np.concatenate(draws)
    codes = np.tile(people.codes, 60)
    grid = np.linspace(every.min(), every.max(), 2_001)
    shares = [np.mean(every[codes == z][:, None] > grid, axis=0) for z in (0, 1)]
    assert np.abs(shares[0] - shares[1]).max() == pytest.approx(fit.policy.gap, abs=0.02)


def test_only_those_draw_of_whom_it_is_asked():
    """Of a share above a limit, people at the limit face a lottery: not everybody, for want of a finer program."""
    people = people_of(*leaves())
    free = fitted(people, "decision >= 0.4", 1.0)
    fit = fitted(people, "decision >= 0.4", 0.05)
    assert free.policy.gap > 0.2
    assert fit.policy.gap == pytest.approx(0.05, abs=1e-6)
    assert 0 < fit.policy.share_randomized < 0.25
    for line in fit.policy.lines:
        assert len(line.atoms) <= 1
        for atom in line.atoms:
            assert atom.amounts[0] < 0.4 <= atom.amounts[-1]


def test_means_need_no_lottery():
    """With means alone, people of one prediction get one amount: the mean costs no more than a lottery."""
    people = people_of(*leaves())
    for loss in ("squared", "absolute"):
        fit = fitted(people, "decision", 0.1, loss=loss)
        assert fit.policy.share_randomized == 0.0
        assert fit.policy.gap <= 0.1 * (1 + 1e-9)


# ---------------------------------------------------------------------------------------------------------
# Invariances


def test_weights_are_repetitions():
    """Weight 2 is the row twice, weight 0 the row absent."""
    prediction, y, group = world(500)
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    times = weight.astype(int)
    weighted = fitted(people_of(prediction, y, group, weight), "distributional_parity", 0.1)
    repeated = fitted(
        people_of(*(part.repeat(times) for part in (prediction, y, group))), "distributional_parity", 0.1
    )
    assert weighted.policy.loss == pytest.approx(repeated.policy.loss, rel=1e-9)
    for one, other in zip(weighted.policy.lines, repeated.policy.lines, strict=True):
        assert one.at(prediction) == pytest.approx(other.at(prediction), rel=1e-9, abs=1e-9)


def test_order_of_rows():
    """The order of rows does not matter."""
    prediction, y, group = world(700)
    order = np.random.default_rng(2).permutation(700)
    one = fitted(people_of(prediction, y, group), "distributional_parity", 0.1)
    other = fitted(people_of(prediction[order], y[order], group[order]), "distributional_parity", 0.1)
    for line, same in zip(one.policy.lines, other.policy.lines, strict=True):
        assert line.at(prediction) == pytest.approx(same.at(prediction), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("scale", "offset"), [(1_000.0, 0.0), (1e-6, 0.0), (1.0, 1e6)])
def test_units(scale, offset):
    """Another unit, or another zero, of predictions and labels gives the same amounts in that unit."""
    prediction, y, group = world(2_000)
    one = fitted(people_of(prediction, y, group), "decision", 0.2)
    other = fitted(people_of(scale * prediction + offset, scale * y + offset, group), "decision", 0.2 * scale)
    for line, same in zip(one.policy.lines, other.policy.lines, strict=True):
        assert (same.at(scale * prediction + offset) - offset) / scale == pytest.approx(
            line.at(prediction), rel=1e-5, abs=1e-5
        )


def test_names_of_groups():
    """Other names of groups change nothing."""
    prediction, y, group = world(800)
    named = np.array(["b", "a"])[group]  # in the other order
    one = fitted(people_of(prediction, y, group), "distributional_parity", 0.1)
    other = fitted(people_of(prediction, y, named), "distributional_parity", 0.1)
    assert one.policy.loss == pytest.approx(other.policy.loss, rel=1e-6)


def test_monotone():
    """In every group, whoever is predicted more gets no less."""
    people = people_of(*world(3_000, 3))
    for happiness, gap in (("distributional_parity", 0.05), ("decision >= 1", 0.01), ("decision", 0.0)):
        for line in fitted(people, happiness, gap).policy.lines:
            assert (np.diff(line.amount) >= 0).all()
            assert (np.diff(line.prediction) >= 0).all()


# ---------------------------------------------------------------------------------------------------------
# Recalibration, the frontier, sums


def test_recalibrated_on_its_own_people():
    """On the very people it was fitted on, recalibration finds the same lines."""
    people = people_of(*world(3_000))
    fit = fitted(people, "distributional_parity", 0.1)
    again = fit.recalibrated(replace(people, y=None))
    for line, same in zip(fit.policy.lines, again.policy.lines, strict=True):
        assert line.at(people.prediction) == pytest.approx(same.at(people.prediction), abs=1e-6)
    assert again.policy.expected
    assert again.policy.loss == pytest.approx(fit.policy.loss, rel=0.01)


def test_recalibrated_on_others():
    """Recalibration closes the distance on the people it is for, without their labels."""
    old, new = people_of(*world(3_000, seed=3)), people_of(*world(3_000, seed=4))
    fit = fitted(old, "distributional_parity", 0.0)
    again = fit.recalibrated(replace(new, y=None))
    before = ks_distance(given_by(fit, new), new.codes)
    after = ks_distance(given_by(again, new), new.codes)
    assert after < 0.005 < before


def test_frontier():
    """The frontier falls, is convex, and lies on the closed form."""
    people = people_of(*world())
    fit = fitted(people, "decision", 0.0, decisions=(-50.0, 50.0))
    line = AmountFrontier.of(fit)
    assert (np.diff(line.loss) <= 1e-9).all()
    gaps = line.gaps["decision"]
    free, shares = fit.policy.unconstrained, np.bincount(people.codes) / len(people)
    for gap, loss in zip(gaps, line.loss, strict=True):
        assert loss == pytest.approx(mean_gap_loss(free.loss, shares, float(free.gaps[0]), gap), rel=1e-8)
    at = line.at(gap=0.123)
    assert at.gap == pytest.approx(0.123, abs=1e-9)
    slopes = np.diff(line.loss) / np.diff(gaps)
    assert (np.diff(slopes) >= -1e-6).all()


def test_unit_of_weights():
    """Weights that are a million times smaller say the same of everybody."""
    prediction, y, group = world(600)
    weight = np.random.default_rng(5).uniform(0.5, 2.0, 600)
    one, other = (
        fitted(people_of(prediction, y, group, weight * unit), "distributional_parity", 0.1).policy
        for unit in (1.0, 1e-6)
    )
    assert one.loss == pytest.approx(other.loss, rel=1e-9)
    assert one.gap == pytest.approx(other.gap, abs=1e-12)
