"""The oracles for amounts are what their words say, agree with each other, and fail on wrong input."""

import numpy as np
import oracles_amounts as naive
import pytest
from oracles_amounts import Measure


def people(seed, n=60, groups=2, ties=False, apart=1.0):
    """Predictions, labels around them, group codes and weights; with ties few distinct predictions."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(groups), rng.integers(groups, size=n - groups)])
    prediction = rng.normal(apart * group, 1.0 + 0.3 * group)
    prediction = np.round(prediction) if ties else prediction
    return prediction, prediction + rng.normal(0, 0.5, n), group, rng.integers(1, 4, n).astype(float)


SEEDS = pytest.mark.parametrize("seed", range(4))
GROUPS = pytest.mark.parametrize("groups", [2, 3])


# ---------------------------------------------------------------------------------------------------------
# Steps


def test_steps_of_three_rows_are_counted_by_hand():
    """Shares, quantiles and their integral of the values 1, 2, 4 with weights 1, 1, 2."""
    values, weight = [4.0, 1.0, 2.0], [2.0, 1.0, 1.0]
    np.testing.assert_array_equal(naive.cdf(values, weight, [0.9, 1, 2, 3, 4]), [0, 0.25, 0.5, 0.5, 1])
    np.testing.assert_array_equal(
        naive.quantile(values, weight, [0, 0.25, 0.26, 0.5, 0.51, 1]), [1, 1, 2, 2, 4, 4]
    )
    np.testing.assert_allclose(
        naive.sum_below(values, weight, [0.25, 0.5, 0.75, 1]), [0.25, 0.75, 1.75, 2.75]
    )
    np.testing.assert_array_equal(naive.middle_ranks(values, weight), [0.75, 0.125, 0.375])


def test_rows_of_one_value_share_the_middle_of_their_ranks():
    """Two equal values are one value of twice the weight."""
    np.testing.assert_array_equal(naive.middle_ranks([1, 1, 3, 3], None), [0.25, 0.25, 0.75, 0.75])


def test_a_row_of_weight_0_has_no_quantile():
    """What weighs nothing is never a quantile, not even the least."""
    np.testing.assert_array_equal(naive.quantile([-9, 1, 2, 9], [0, 1, 1, 0], [0, 0.5, 1]), [1, 1, 2])


# ---------------------------------------------------------------------------------------------------------
# Distributional parity


@SEEDS
@GROUPS
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("ties", [False, True])
def test_the_clip_formula_is_the_whole_program_at_every_threshold(seed, groups, eps, ties):
    """Between listed levels, cells being rows, loss and distance are those of the program without any formula."""
    prediction, _, group, weight = people(seed, 24, groups, ties)
    levels = np.linspace(prediction.min(), prediction.max(), 7)
    cells = np.unique(prediction, return_inverse=True)[1]
    mass, mean = naive.cell_means(prediction, group, cells, groups, cells.max() + 1, weight)
    cost = (levels - mean[:, :, None]) ** 2
    optimum = naive.best_levels(mass, cost, ks=eps, monotone=False)
    fair = naive.clip_cdfs(prediction, group, eps, (levels[1:] + levels[:-1]) / 2, weight)
    loss = naive.loss_of_shares(prediction, group, levels, 1 - fair, weight)
    assert loss == pytest.approx(optimum.loss, abs=1e-9)
    assert np.ptp(fair, axis=0).max() <= eps + 1e-12
    ordered = naive.best_levels(mass, cost, ks=eps, monotone=True)
    assert ordered.loss == pytest.approx(optimum.loss, abs=1e-9)  # a convex loss keeps the order for nothing


@SEEDS
@GROUPS
@pytest.mark.parametrize("eps", [0.0, 0.05, 0.3])
def test_no_nearby_curve_is_better_than_the_clipped_one(seed, groups, eps):
    """Moving the interval [L, L + eps] to either side adds squared error, so another L is wrong."""
    prediction, _, group, weight = people(seed, 50, groups)
    levels = np.linspace(prediction.min(), prediction.max(), 30)
    middles = (levels[1:] + levels[:-1]) / 2
    best = naive.clip_cdfs(prediction, group, eps, middles, weight)
    free = naive.clip_cdfs(prediction, group, 1.0, middles, weight)
    least = naive.loss_of_shares(prediction, group, levels, 1 - best, weight)
    for off in (-0.02, 0.02):
        bottom = np.clip(best.min(axis=0) + off, 0, 1 - eps)
        moved = np.clip(free, bottom, bottom + eps)
        assert naive.loss_of_shares(prediction, group, levels, 1 - moved, weight) > least + 1e-6


@SEEDS
@GROUPS
@pytest.mark.parametrize("ties", [False, True])
def test_at_0_the_clip_formula_is_the_barycenter(seed, groups, ties):
    """Amounts agree person by person, and the added squared error with it."""
    prediction, _, group, weight = people(seed, 45, groups, ties)
    clipped = naive.clip_amounts(prediction, group, 0.0, weight)
    np.testing.assert_allclose(
        clipped, naive.barycenter_amounts(prediction, group, weight), rtol=0, atol=1e-9
    )
    added = naive.clip_added_error(prediction, group, 0.0, weight, 20_001)
    assert added == pytest.approx(naive.barycenter_added_error(prediction, group, weight), rel=1e-5)


def test_two_groups_that_are_a_shift_apart_meet_at_the_weighted_shift():
    """Group 1 is group 0 plus 3 with a third of the weight: at distance 0 everybody moves by +1 or -2, adding 2."""
    base = np.arange(8.0)
    prediction, group = np.concatenate([base, base + 3]), np.repeat([0, 1], 8)
    weight = np.repeat([2.0, 1.0], 8)
    expected = np.concatenate([base + 1, base + 1])
    np.testing.assert_allclose(
        naive.clip_amounts(prediction, group, 0.0, weight), expected, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(naive.mean_shift(prediction, group, weight), expected, rtol=0, atol=1e-12)
    assert naive.barycenter_added_error(prediction, group, weight) == pytest.approx(2.0, abs=1e-12)


@SEEDS
@GROUPS
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.25])
def test_amounts_of_rows_keep_the_distance_and_the_order(seed, groups, eps):
    """Without ties the rows' own distance exceeds eps by half a row of each of two groups at most."""
    prediction, _, group, _ = people(seed, 200, groups)
    amounts = naive.clip_amounts(prediction, group, eps)
    sizes = np.sort(np.bincount(group))
    assert naive.ks_distance(amounts, group) <= eps + 0.5 / sizes[0] + 0.5 / sizes[1] + 1e-9
    assert naive.ks_distance(prediction, group) > eps + 0.05
    for z in range(groups):
        order = np.argsort(prediction[group == z])
        assert (np.diff(amounts[group == z][order]) >= -1e-9).all()


@SEEDS
def test_a_wide_distance_changes_nobody(seed):
    """At the predictions' own distance every amount is the prediction, and nothing is added."""
    prediction, _, group, weight = people(seed)
    eps = naive.ks_distance(prediction, group, weight)
    np.testing.assert_allclose(
        naive.clip_amounts(prediction, group, eps, weight), prediction, rtol=0, atol=1e-9
    )
    assert naive.clip_added_error(prediction, group, eps, weight) == pytest.approx(0.0, abs=1e-12)
    assert naive.clip_added_error(prediction, group, eps - 0.1, weight) > 1e-6


@SEEDS
@pytest.mark.parametrize("eps", [0.1, 0.3])
def test_error_over_thresholds_is_error_over_people(seed, eps):
    """The integral over thresholds is the mean over a fine grid of ranks of the squared change of amounts."""
    prediction, _, group, _ = people(seed, 40)
    grid = np.linspace(prediction.min(), prediction.max(), 20_001)
    fair, ranks = naive.clip_cdfs(prediction, group, eps, grid), (np.arange(20_000) + 0.5) / 20_000
    total = 0.0
    for z in (0, 1):
        amounts = grid[np.minimum(np.searchsorted(fair[z], ranks), 20_000)]
        change = amounts - naive.quantile(prediction[group == z], None, ranks)
        total += (group == z).mean() * (change**2).mean()
    assert naive.clip_added_error(prediction, group, eps) == pytest.approx(total, rel=2e-3)


@SEEDS
def test_weights_are_repeats_and_names_do_not_matter(seed):
    """Weight 2 is the row twice, weight 0 the row absent, and turning the codes turns the curves."""
    prediction, _, group, weight = people(seed, 30)
    weight[::7] = 0.0
    twice = np.repeat(np.arange(30), weight.astype(int))
    t = np.linspace(-2, 3, 9)
    weighted = naive.clip_cdfs(prediction, group, 0.1, t, weight)
    repeated = naive.clip_cdfs(prediction[twice], group[twice], 0.1, t)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        naive.clip_cdfs(prediction, 1 - group, 0.1, t, weight), weighted[::-1], rtol=0, atol=1e-12
    )
    by_weight = naive.clip_amounts(prediction, group, 0.1, weight)[twice]
    by_rows = naive.clip_amounts(prediction[twice], group[twice], 0.1)
    np.testing.assert_allclose(by_weight, by_rows, rtol=0, atol=1e-9)


def test_the_distance_is_counted_by_hand():
    """Groups {1, 2, 3, 4} and {3, 4} differ most above 2: a half against all."""
    amounts, group = [1, 2, 3, 4, 3, 4], [0, 0, 0, 0, 1, 1]
    assert naive.ks_distance(amounts, group) == 0.5
    assert naive.ks_distance(amounts, group, [1, 0, 1, 1, 1, 1]) == pytest.approx(1 / 3)
    assert naive.ks_distance([5, 5, 5], [0, 1, 1]) == 0.0
    assert naive.ks_distance([1, 2, 3], [0, 1, 2]) == 1.0


def test_a_group_without_weight_is_no_group():
    """A code that nobody has, or that weighs nothing, is refused instead of divided by."""
    for group, weight in (([0, 0, 2], None), ([0, 0, 1], [1, 1, 0])):
        with pytest.raises(AssertionError, match="no weight"):
            naive.clip_cdfs([1.0, 2.0, 3.0], group, 0.1, [1.0], weight)


# ---------------------------------------------------------------------------------------------------------
# Means


@SEEDS
@GROUPS
@pytest.mark.parametrize("gap", [0.0, 0.4])
def test_a_shift_meets_the_gap_and_no_other_shift_is_cheaper(seed, groups, gap):
    """Group means end `gap` apart, and shifts around it that meet the gap too cost more."""
    prediction, _, group, weight = people(seed, 60, groups)
    change = naive.mean_shift(prediction, group, weight, gap) - prediction
    means = naive.group_means(prediction + change, group, weight)
    assert np.ptp(means) == pytest.approx(gap, abs=1e-9)
    least = np.average(change**2, weights=weight)
    for level in (-0.05, 0.05):
        inside = np.clip(
            naive.group_means(prediction, group, weight), means.min() + level, means.max() + level
        )
        other = inside - naive.group_means(prediction, group, weight)
        assert np.average(other[group] ** 2, weights=weight) > least + 1e-6


@SEEDS
def test_two_groups_cost_what_the_formula_says(seed):
    """Shares times the square of what the gap falls by; with another share the formula is wrong."""
    prediction, _, group, weight = people(seed)
    share = np.bincount(group, weight) / weight.sum()
    wide = np.ptp(naive.group_means(prediction, group, weight))
    for eps in (0.0, wide / 3, wide, 2 * wide):
        change = naive.mean_shift(prediction, group, weight, eps) - prediction
        loss = 5.0 + np.average(change**2, weights=weight)
        assert naive.mean_gap_loss(5.0, share, wide, eps) == pytest.approx(loss, abs=1e-12)
    assert naive.mean_gap_loss(5.0, (0.9, 0.1), wide, 0.0) != pytest.approx(
        naive.mean_gap_loss(5.0, (0.5, 0.5), wide, 0.0), abs=1e-6
    )


@SEEDS
def test_the_whole_program_approaches_the_shift(seed):
    """With levels far beyond all predictions the program's loss at a gap of means is the formula's, to the grid."""
    prediction, _, group, weight = people(seed, 12)
    levels = np.linspace(prediction.min() - 2, prediction.max() + 2, 61)
    cells = np.unique(prediction, return_inverse=True)[1]
    mass, mean = naive.cell_means(prediction, group, cells, 2, cells.max() + 1, weight)
    optimum = naive.best_levels(
        mass, (levels - mean[:, :, None]) ** 2, levels=levels, mean_gap=0.2, monotone=False
    )
    share = np.bincount(group, weight) / weight.sum()
    wide = np.ptp(naive.group_means(prediction, group, weight))
    exact, step = naive.mean_gap_loss(0.0, share, wide, 0.2), levels[1] - levels[0]
    assert exact - 1e-9 <= optimum.loss <= exact + step**2 / 4 + 1e-9


# ---------------------------------------------------------------------------------------------------------
# Calibration


@SEEDS
def test_calibration_leaves_residuals_that_no_line_explains(seed):
    """Weighted residuals sum to 0, alone and times the prediction, in every group; raw predictions' do not."""
    prediction, y, group, weight = people(seed)
    y = 3 + 0.5 * (1 + group) * y
    intercept, slope = naive.affine_calibration(prediction, y, group, weight)
    residual = y - intercept[group] - slope[group] * prediction
    for z in (0, 1):
        mine = group == z
        assert weight[mine] @ residual[mine] == pytest.approx(0.0, abs=1e-9)
        assert weight[mine] @ (residual * prediction)[mine] == pytest.approx(0.0, abs=1e-9)
        assert abs(weight[mine] @ (y - prediction)[mine]) > 1


def test_a_slope_is_never_negative():
    """Where labels fall with the prediction, or predictions are equal, the mean of the group is the best line."""
    prediction, y = [1, 2, 3, 5, 5, 0, 1], [9, 4, 2, 1, 3, 0, 2]
    intercept, slope = naive.affine_calibration(prediction, y, [0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(intercept, [5, 2, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(slope, [0, 0, 2], rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------
# Levels and the whole program


def test_costs_of_levels_are_counted_by_hand():
    """A label of 3 and the levels 1 and 4."""
    np.testing.assert_array_equal(naive.level_costs("squared", [3], [1, 4]), [[4, 1]])
    np.testing.assert_array_equal(naive.level_costs("absolute", [3], [1, 4]), [[2, 1]])
    np.testing.assert_allclose(
        naive.level_costs("quantile:0.9", [3], [1, 4]), [[1.8, 0.1]], rtol=0, atol=1e-15
    )
    with pytest.raises(ValueError, match="could not convert"):
        naive.level_costs("cubic", [3], [1, 4])


def test_sums_by_cell_are_counted_by_hand():
    """Weights and means of three rows in two groups and two cells; nobody is 0."""
    mass, mean = naive.cell_means([[1, 10], [3, 30], [5, 50]], [0, 0, 1], [1, 1, 0], 2, 2, [1, 3, 2])
    np.testing.assert_array_equal(mass, [[0, 4], [2, 0]])
    np.testing.assert_array_equal(mean, [[[0, 0], [2.5, 25]], [[5, 50], [0, 0]]])


@SEEDS
@pytest.mark.parametrize("monotone", [False, True])
def test_without_requirements_every_cell_takes_its_best_level(seed, monotone):
    """Free cells take the least cost; in order, no staircase of levels of three cells is cheaper."""
    rng = np.random.default_rng(seed)
    mass, cost = rng.random((2, 3)), rng.random((2, 3, 4))
    loss = 0.0
    for z in (0, 1):
        stairs = [c for c in np.ndindex(4, 4, 4) if not monotone or c[0] <= c[1] <= c[2]]
        loss += min(sum(mass[z, s] * cost[z, s, d] for s, d in enumerate(c)) for c in stairs)
    assert naive.best_levels(mass, cost, monotone=monotone).loss == pytest.approx(
        loss / mass.sum(), abs=1e-10
    )


@SEEDS
@pytest.mark.parametrize("monotone", [False, True])
def test_what_is_required_of_the_whole_program_is_met_and_costs(seed, monotone):
    """Distance, mean and a measure among some are recounted from the probabilities; leaving one out is cheaper."""
    rng = np.random.default_rng(seed)
    mass, cost, levels = rng.random((3, 4)) + 0.1, rng.random((3, 4, 5)), np.array([0.0, 1, 2, 4, 8])
    among, value = mass * rng.random((3, 4)), levels + rng.random((3, 4, 5))
    asked = {"ks": 0.1, "mean_gap": 0.05, "measures": [Measure(value, 0.2, among)]}
    optimum = naive.best_levels(mass, cost, levels=levels, monotone=monotone, **asked)
    assert optimum.probabilities.min() >= -1e-9
    np.testing.assert_allclose(optimum.probabilities.sum(axis=2), 1, rtol=0, atol=1e-9)
    share = mass / mass.sum(axis=1, keepdims=True)
    above = [
        [(share[z] * optimum.probabilities[z, :, t + 1 :].sum(axis=1)).sum() for t in range(4)]
        for z in range(3)
    ]
    np.testing.assert_allclose(optimum.above, above, rtol=0, atol=1e-12)
    assert np.ptp(above, axis=0).max() <= 0.1 + 1e-8
    assert np.ptp((share * (optimum.probabilities @ levels)).sum(axis=1)) <= 0.05 + 1e-8
    met = (among * (optimum.probabilities * value).sum(axis=2)).sum(axis=1) / among.sum(axis=1)
    assert np.ptp(met) <= 0.2 + 1e-8
    for name in asked:
        fewer = {key: part for key, part in asked.items() if key != name}
        assert (
            naive.best_levels(mass, cost, levels=levels, monotone=monotone, **fewer).loss
            <= optimum.loss + 1e-9
        )
    assert naive.best_levels(mass, cost, monotone=monotone).loss < optimum.loss - 1e-6


def test_the_order_of_cells_binds():
    """Two cells that would rather be the other way round are decided alike, or at a loss."""
    mass, cost = np.ones((1, 2)), np.array([[[1.0, 0.0], [0.0, 1.0]]])
    assert naive.best_levels(mass, cost, monotone=False).loss == pytest.approx(0.0, abs=1e-12)
    assert naive.best_levels(mass, cost, monotone=True).loss == pytest.approx(0.5, abs=1e-12)


def test_who_does_not_see_the_group_gives_all_groups_the_same():
    """Blind probabilities are equal, and cost what the two groups' wishes cost together."""
    mass, cost = np.array([[1.0], [3.0]]), np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    optimum = naive.best_levels(mass, cost, blind=True)
    np.testing.assert_allclose(optimum.probabilities[0], optimum.probabilities[1], rtol=0, atol=1e-12)
    assert optimum.loss == pytest.approx(0.25, abs=1e-12)


def test_what_cannot_be_met_is_refused():
    """Groups whose happiness differs at every level have no policy at gap 0."""
    value = np.array([[[0.0, 0.0]], [[1.0, 1.0]]])
    with pytest.raises(ValueError, match="No policy"):
        naive.best_levels(np.ones((2, 1)), np.zeros((2, 1, 2)), measures=[Measure(value, 0.0)])


def test_an_answer_that_is_not_proved_is_refused(monkeypatch):
    """A solver whose point is not the best is caught by its own multipliers."""
    honest = naive.linprog

    def wrong(objective, **given):
        result = honest(objective, **given)
        result.fun += 1e-3
        return result

    monkeypatch.setattr(naive, "linprog", wrong)
    with pytest.raises(naive.UncertifiedError, match="proved"):
        naive.best_levels(np.ones((2, 2)), np.arange(12.0).reshape(2, 2, 3), ks=0.1)
