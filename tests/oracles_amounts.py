"""Naive second implementations for amounts: closed forms worked out by hand, and the whole program.

Nothing here imports felicific. People are rows: a prediction m (calibrated, if anybody calibrates), a group code
0 .. G-1 and a weight. Write p_z for group z's share of the weight, G_z(t) for the share of group z whose
prediction is at most t, and m_z(u) for its inverse, the least prediction that is at least as large as those of a
share u of the group. An *amount policy* that keeps the order within each group is a distribution F_z of amounts
for every group: whoever has rank u in group z gets F_z^{-1}(u).

Its added squared error, over predictions that are right on average, is written over thresholds. A person with
m < d adds (d - m)^2 = the integral of 2 (t - m) over t from m to d, and is one of those with F_z(t) < rank <= G_z(t)
at each of these t; with m > d the same holds with both signs turned. So

    sum_z p_z mean (d - m)^2 = sum_z p_z * integral dt  2 * integral_{F_z(t)}^{G_z(t)} (t - m_z(u)) du .      (1)

Nothing in (1) joins two thresholds: every t is a problem of its own, in the G numbers F_z(t).
"""

from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from oracles import UncertifiedError
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_matrix

#: Halvings of an interval until floats end.
STEPS = 80
#: Ranks are sums of weights over their total: nearer than this to each other they are one rank.
ROUNDING = 1e-12
#: How far the naive program's optimum may be from its own lower bound, as a part of the costs' range.
CERTIFIED = 1e-9
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


# ---------------------------------------------------------------------------------------------------------
# Distributions of rows: steps, no interpolation


def weights_of(values, weight):
    """The weights as floats, ones if there are none."""
    return np.ones(len(values)) if weight is None else np.asarray(weight, dtype=float)


def cdf(values, weight, thresholds):
    """Share of the weight whose value is at most each threshold."""
    values, weight = np.asarray(values, dtype=float), weights_of(values, weight)
    thresholds = np.asarray(thresholds, dtype=float)
    order = np.argsort(values, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return below[np.searchsorted(values[order], thresholds, side="right")] / below[-1]


def quantile(values, weight, ranks):
    """The least value that at least this share of the weight does not exceed; the least of all at rank 0."""
    values, weight = np.asarray(values, dtype=float), weights_of(values, weight)
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached / reached[-1], np.asarray(ranks) - ROUNDING, side="left")
    return values[order][np.minimum(place, len(order) - 1)]


def sum_below(values, weight, ranks):
    """The integral of the quantile function from 0 to each rank."""
    values, weight = np.asarray(values, dtype=float), weights_of(values, weight)
    order = np.argsort(values, kind="stable")
    edges = np.concatenate([[0.0], np.cumsum(weight[order])])
    sums = np.concatenate([[0.0], np.cumsum(weight[order] * values[order])])
    kept = np.concatenate([[True], weight[order] > 0])
    return np.interp(ranks, edges[kept] / edges[-1], sums[kept] / edges[-1])


def middle_ranks(values, weight):
    """Rank of every row in its own distribution; equal values share the middle of their ranks."""
    values, weight = np.asarray(values, dtype=float), weights_of(values, weight)
    below = cdf(values, weight, np.nextafter(values, -np.inf))
    return (below + cdf(values, weight, values)) / 2


def by_group(prediction, group, weight):
    """Values, weights and share of the whole for each group, in order of the codes."""
    prediction, group = np.asarray(prediction, dtype=float), np.asarray(group)
    weight = weights_of(prediction, weight)
    rows = [group == z for z in range(group.max() + 1)]
    share = np.array([weight[mine].sum() for mine in rows])
    assert (share > 0).all(), "a group has no weight"
    return [prediction[m] for m in rows], [weight[m] for m in rows], share / share.sum()


# ---------------------------------------------------------------------------------------------------------
# Squared loss and distributional parity


def clip_cdfs(prediction, group, eps, thresholds, weight=None):
    """F_z(t) of the policy with least squared error among those whose groups differ by at most eps at every t.

    At one threshold t, the part of (1) with F_z(t) has the derivative 2 p_z (m_z(F_z) - t), which grows with F_z
    and is 0 at F_z = G_z(t): a convex function with its least value at G_z(t). All F_z lie in some interval
    [L, L + eps], and given L the best is F_z = clip(G_z(t), L, L + eps). The sum is convex in L as well, and its
    derivative counts those who are clipped, so L solves

        sum over clipped z of p_z (m_z(F_z) - t) = 0 ,

    whose left side grows with L: halve the interval [min G_z, max G_z - eps] until it has no width. When all
    G_z(t) are within eps of each other nobody is clipped. At eps 0 every group is clipped, to the level where
    sum_z p_z m_z(L) = t: the Wasserstein barycenter.

    Returns
    -------
    array of shape (G, T)
    """
    values, weights, share = by_group(prediction, group, weight)
    thresholds = np.asarray(thresholds, dtype=float)
    free = np.array([cdf(v, w, thresholds) for v, w in zip(values, weights, strict=True)])
    low, high = free.min(axis=0), np.maximum(free.max(axis=0) - eps, free.min(axis=0))
    for _ in range(STEPS):
        level = (low + high) / 2
        clipped = np.clip(free, level, level + eps)
        slope = sum(
            p * np.where(f != g, quantile(v, w, f) - thresholds, 0.0)
            for p, f, g, v, w in zip(share, clipped, free, values, weights, strict=True)
        )
        low, high = np.where(slope < 0, level, low), np.where(slope < 0, high, level)
    return np.clip(free, high, high + eps)


def clip_amounts(prediction, group, eps, weight=None):
    """The amount of every row under :func:`clip_cdfs`: the least t with F_z(t) >= its middle rank.

    F_z(t) does not fall along t, so each amount is found by halving; nothing is interpolated. Rows of one group
    with equal predictions get one amount, so with large ties the rows' own distance may exceed eps. Where a
    middle rank is a rank at which several amounts are equally good, the least one is returned.
    """
    prediction, group = np.asarray(prediction, dtype=float), np.asarray(group)
    weight = weights_of(prediction, weight)
    ranks = np.empty(len(prediction))
    for z in range(group.max() + 1):
        ranks[group == z] = middle_ranks(prediction[group == z], weight[group == z])
    counted = prediction[weight > 0]
    low, high = np.full(len(prediction), counted.min()), np.full(len(prediction), counted.max())
    for _ in range(STEPS):
        middle = (low + high) / 2
        reached = clip_cdfs(prediction, group, eps, middle, weight)[group, np.arange(len(group))]
        enough = reached >= ranks - ROUNDING
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def clip_added_error(prediction, group, eps, weight=None, n_thresholds=4001):
    """Squared error that :func:`clip_cdfs` adds over the predictions, by formula (1) on an even grid of t.

    The integrand is continuous in t, so the trapezoid is off by the square of the grid's step.
    """
    values, weights, share = by_group(prediction, group, weight)
    t = np.linspace(min(v.min() for v in values), max(v.max() for v in values), n_thresholds)
    fair = clip_cdfs(prediction, group, eps, t, weight)
    density = np.zeros(n_thresholds)
    for z, (v, w) in enumerate(zip(values, weights, strict=True)):
        free = cdf(v, w, t)
        between = t * (free - fair[z]) - (sum_below(v, w, free) - sum_below(v, w, fair[z]))
        density += 2 * share[z] * between
    return float(np.trapezoid(density, t))


def barycenter_quantiles(prediction, group, ranks, weight=None):
    """sum_z p_z m_z(rank): the one distribution that is least far, in squared error, from all groups."""
    values, weights, share = by_group(prediction, group, weight)
    return sum(p * quantile(v, w, ranks) for p, v, w in zip(share, values, weights, strict=True))


def barycenter_amounts(prediction, group, weight=None):
    """The amount of every row at distance 0: the barycenter's quantile at its middle rank."""
    prediction, group = np.asarray(prediction, dtype=float), np.asarray(group)
    weight = weights_of(prediction, weight)
    amounts = np.empty(len(prediction))
    for z in range(group.max() + 1):
        mine = group == z
        ranks = middle_ranks(prediction[mine], weight[mine])
        amounts[mine] = barycenter_quantiles(prediction, group, ranks, weight)
    return amounts


def barycenter_added_error(prediction, group, weight=None):
    """sum_z p_z * integral (m_z(u) - sum_y p_y m_y(u))^2 du, exactly: between two ranks of rows all are constant."""
    values, weights, share = by_group(prediction, group, weight)
    steps = [cdf(v, w, v) for v, w in zip(values, weights, strict=True)]
    edges = np.unique(np.concatenate([[0.0], *steps]))
    total = 0.0
    for left, right in pairwise(edges):
        at = np.array([quantile(v, w, (left + right) / 2) for v, w in zip(values, weights, strict=True)])
        total += (right - left) * float(share @ (at - share @ at) ** 2)
    return total


def ks_distance(amounts, group, weight=None):
    """The largest difference between two groups in the share of people who get more than some amount."""
    amounts, group = np.asarray(amounts, dtype=float), np.asarray(group)
    weight = weights_of(amounts, weight)
    largest = 0.0
    for threshold in np.unique(amounts):
        above = []
        for z in range(group.max() + 1):
            mine = group == z
            above.append(weight[mine & (amounts > threshold)].sum() / weight[mine].sum())
        for one in above:
            for other in above:
                largest = max(largest, one - other)
    return float(largest)


# ---------------------------------------------------------------------------------------------------------
# Squared loss and a gap of means


def group_means(values, group, weight=None):
    """Mean of every group."""
    parts, weights, _ = by_group(values, group, weight)
    return np.array([np.average(v, weights=w) for v, w in zip(parts, weights, strict=True)])


def mean_shift(prediction, group, weight=None, gap=0.0):
    """Everybody's prediction moved by one constant a group, so that group means differ by at most `gap`.

    Given the groups' means, the least added squared error moves a whole group by one constant c_z (the mean of
    d - m, and the square of a mean is at most the mean of squares), and costs sum_z p_z c_z^2. The new means lie in
    some [L, L + gap]; given L the best are clip(mu_z, L, L + gap), and L solves sum_z p_z (clip(mu_z) - mu_z) = 0.
    At gap 0 all get the p-weighted mean.
    """
    _, _, share = by_group(prediction, group, weight)
    means = group_means(prediction, group, weight)
    low, high = means.min(), max(means.max() - gap, means.min())
    for _ in range(STEPS):
        level = (low + high) / 2
        slope = float(share @ (np.clip(means, level, level + gap) - means))
        low, high = (level, high) if slope < 0 else (low, level)
    shift = np.clip(means, high, high + gap) - means
    return np.asarray(prediction, dtype=float) + shift[np.asarray(group)]


def mean_gap_loss(loss_free, share, gap_free, eps):
    """Least squared loss with a gap of means of at most eps, two groups, where no amount meets its bound.

    The gap has to fall by c = g_0 - eps. One group moves by p_1 c, the other by -p_0 c (the least p_0 a^2 + p_1 b^2
    with a + b = c), which adds p_0 p_1^2 c^2 + p_1 p_0^2 c^2 = p_0 p_1 c^2.
    """
    first, second = share
    return loss_free + first * second * max(gap_free - eps, 0.0) ** 2


def nearest_amounts(prediction, rows, limits, weight=None):
    r"""The amounts nearest to the predictions, in weighted squares, with ``rows @ amounts <= limits``.

    Least distance programming (Lawson and Hanson 1974, chapter 23): with x = sqrt(w) (d - m) it is the least
    :math:`|x|` with G x >= h, where G = -A / sqrt(w) and h = A m - b. Non-negative least squares of E u = f,
    E = [G'; h'] and f = (0, ..., 0, 1), leaves a residual r that is 0 where nothing is feasible, and else
    x = -r[:n] / r[n].

    Raises
    ------
    ValueError
        If no amounts meet the rows.
    """
    prediction, rows = np.asarray(prediction, dtype=float), np.asarray(rows, dtype=float)
    root = np.sqrt(weights_of(prediction, weight))
    pull = np.vstack([-(rows / root).T, (rows @ prediction - np.asarray(limits))[None]])
    aim = np.append(np.zeros(len(prediction)), 1.0)
    size = np.linalg.norm(pull, axis=0)
    multipliers, _ = nnls(pull / np.where(size > 0, size, 1.0), aim, maxiter=50 * pull.shape[1])
    residual = pull / np.where(size > 0, size, 1.0) @ multipliers - aim
    if np.linalg.norm(residual) < 1e-9:
        raise ValueError("No amounts meet the rows.")
    amounts = prediction - residual[:-1] / residual[-1] / root
    scale = 1.0 + np.abs(rows).sum(axis=1) * np.abs(amounts).max()
    if (rows @ amounts - limits > 1e-7 * scale).any():
        raise UncertifiedError("the nearest amounts break their own rows")
    return amounts


# ---------------------------------------------------------------------------------------------------------
# Calibration


def affine_calibration(prediction, y, group, weight=None):
    """Intercept and slope of every group, y on the prediction by weighted least squares with slope >= 0.

    The squared error is convex in the slope, so where least squares would fall the best allowed slope is 0 and
    the intercept is the group's mean; so it is too where all predictions of a group are equal.

    Returns
    -------
    intercept, slope : arrays of shape (G,)
    """
    prediction, y, group = (np.asarray(part) for part in (prediction, y, group))
    weight = weights_of(prediction, weight)
    found = []
    for z in range(group.max() + 1):
        mine = (group == z) & (weight > 0)
        root = np.sqrt(weight[mine])
        columns = np.column_stack([np.ones(mine.sum()), prediction[mine]])
        intercept, slope = np.linalg.lstsq(columns * root[:, None], y[mine] * root, rcond=None)[0]
        if slope < 0 or np.ptp(prediction[mine]) == 0:
            intercept, slope = np.average(y[mine], weights=weight[mine]), 0.0
        found.append((intercept, slope))
    intercepts, slopes = zip(*found, strict=True)
    return np.array(intercepts), np.array(slopes)


# ---------------------------------------------------------------------------------------------------------
# Levels: costs, sums by cell, and the whole program


def level_costs(loss, y, levels):
    """Cost (n, D) of every level for every label: "squared", "absolute" or "quantile:q".

    "quantile:q" is the pinball loss: q for every unit that the amount is too low, 1 - q for every unit too high.
    """
    miss = np.asarray(y, dtype=float)[:, None] - np.asarray(levels, dtype=float)[None, :]
    if loss == "squared":
        return miss**2
    if loss == "absolute":
        return np.abs(miss)
    q = float(loss.removeprefix("quantile:"))
    return np.maximum(q * miss, (q - 1) * miss)


def cell_means(values, group, cell, n_groups, n_cells, weight=None):
    """Weight (G, S) and mean of `values` (n, ...) in every cell of every group; 0 where nobody is."""
    values, weight = np.asarray(values, dtype=float), weights_of(group, weight)
    mass = np.zeros((n_groups, n_cells))
    sums = np.zeros((n_groups, n_cells, *values.shape[1:]))
    for i in range(len(weight)):
        mass[group[i], cell[i]] += weight[i]
        sums[group[i], cell[i]] += weight[i] * values[i]
    filled = np.where(mass > 0, mass, 1.0).reshape(n_groups, n_cells, *[1] * (values.ndim - 1))
    return mass, sums / filled


@dataclass(frozen=True)
class Measure:
    """A happiness whose group means may differ by at most `width`.

    Attributes
    ----------
    value : array that broadcasts to (G, S, D)
        Mean happiness of those who are counted in cell s of group z, at level d.
    width : float
    among : array of shape (G, S), optional
        Weight that is counted; by default everybody.
    """

    value: np.ndarray
    width: float
    among: np.ndarray | None = None


@dataclass(frozen=True)
class Optimum:
    """What the whole program found: loss per person, probabilities (G, S, D), and the share above each threshold (G.

    D-1).
    """

    loss: float
    probabilities: np.ndarray
    above: np.ndarray


def best_levels(
    mass,
    cost,
    *,
    ks=None,
    levels=None,
    mean_gap=None,
    measures=(),
    monotone=True,
    blind=False,
):
    r"""The least loss of levels by cell, all of it written out for ``scipy.optimize.linprog``.

    .. math:: \min_q \sum_{z,s,d} w_{zs} c_{zsd} q_{zsd} / W, \quad q \ge 0, \; \sum_d q_{zsd} = 1

    with one row for every ordered pair of groups: at every threshold, for `ks`; for the mean level, for `mean_gap`;
    for every measure. ``monotone``: within a group the share above every threshold may not fall from a cell to
    the next. ``blind``: all groups share their probabilities. Cells without anybody are free, but take part in the
    order.

    Parameters
    ----------
    mass : array of shape (G, S)
        Weight of people; every group has some.
    cost : array that broadcasts to (G, S, D)
        Mean cost of each level in each cell.
    ks, mean_gap : float, optional
    levels : array of shape (D,), optional
        Needed for ``mean_gap``, ascending.
    measures : sequence of Measure

    Raises
    ------
    ValueError
        If no policy meets the requirements.
    UncertifiedError
        If the answer is not proved by its own multipliers to ``CERTIFIED``.
    """
    mass = np.asarray(mass, dtype=float)
    shape = (*mass.shape, np.shape(cost)[-1])
    parts = list(measures)
    if mean_gap is not None:
        parts.append(Measure(np.asarray(levels, dtype=float), mean_gap))
    if ks is not None:
        parts += [Measure(np.arange(shape[2]) > t, ks) for t in range(shape[2] - 1)]
    limits = [row for part in parts for row in _gap_rows(part, mass, shape)]
    limits += _order_rows(shape) if monotone else []
    equations = _sum_rows(shape) + (_shared_rows(shape) if blind else [])
    objective = (
        mass[:, :, None] * np.broadcast_to(np.asarray(cost, dtype=float), shape) / mass.sum()
    ).ravel()
    probabilities = _solved(objective, limits, equations).reshape(shape)
    at_or_above = probabilities[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
    above = np.einsum("zs,zst->zt", mass, at_or_above[:, :, 1:]) / mass.sum(axis=1, keepdims=True)
    return Optimum(float(objective @ probabilities.ravel()), probabilities, above)


def _gap_rows(part, mass, shape):
    """(row, limit) for every ordered pair of groups."""
    counted = mass if part.among is None else np.asarray(part.among, dtype=float)
    value = np.broadcast_to(np.asarray(part.value, dtype=float), shape)
    rows = []
    for one, other in permutations(range(shape[0]), 2):
        row = np.zeros(shape)
        row[one] = counted[one][:, None] * value[one] / counted[one].sum()
        row[other] = -counted[other][:, None] * value[other] / counted[other].sum()
        rows.append((row.ravel(), part.width))
    return rows


def _order_rows(shape):
    """(row, 0) for every group, pair of neighbouring cells and threshold: the share above may not fall."""
    rows = []
    for z, s, t in np.ndindex(shape[0], shape[1] - 1, shape[2] - 1):
        row = np.zeros(shape)
        row[z, s, t + 1 :], row[z, s + 1, t + 1 :] = 1.0, -1.0
        rows.append((row.ravel(), 0.0))
    return rows


def _sum_rows(shape):
    """(row, 1) for every cell: probabilities sum to one."""
    rows = []
    for z, s in np.ndindex(*shape[:2]):
        row = np.zeros(shape)
        row[z, s] = 1.0
        rows.append((row.ravel(), 1.0))
    return rows


def _shared_rows(shape):
    """(row, 0) for every cell and level of a group that is not the first: its probabilities are the first group's."""
    rows = []
    for z, s, d in np.ndindex(*shape):
        if z:
            row = np.zeros(shape)
            row[0, s, d], row[z, s, d] = 1.0, -1.0
            rows.append((row.ravel(), 0.0))
    return rows


def _solved(objective, limits, equations):
    """The solution, proved by weak duality: any multipliers with the right signs give a lower bound."""
    scale = max(np.abs(objective).max(), np.finfo(float).tiny)
    limits = limits or [(np.zeros(len(objective)), 0.0)]
    upper, most = csr_matrix(np.array([row for row, _ in limits])), np.array([limit for _, limit in limits])
    equal, sums = (
        csr_matrix(np.array([row for row, _ in equations])),
        np.array([right for _, right in equations]),
    )
    result = linprog(objective / scale, A_ub=upper, b_ub=most, A_eq=equal, b_eq=sums, options=TIGHT)
    if result.status == 2:
        raise ValueError("No policy of these levels and cells meets the requirements.")
    if result.status != 0:
        raise UncertifiedError(result.message)
    prices, levels = np.minimum(result.ineqlin.marginals, 0.0), result.eqlin.marginals
    reduced = objective / scale - equal.T @ levels - upper.T @ prices
    # Probabilities are between 0 and 1, so a reduced cost below 0 takes at most itself from the bound.
    bound = float(sums @ levels + most @ prices + np.minimum(reduced, 0.0).sum())
    if abs(result.fun - bound) > CERTIFIED * len(objective):
        raise UncertifiedError(f"the optimum {result.fun!r} is proved to {bound!r} only")
    return result.x


def loss_of_shares(prediction, group, levels, above, weight=None):
    """Squared error over the predictions when a share above[z, t] of group z, by rank, is above level t.

    Level t + 1 instead of t changes (d - m)^2 by (a_{t+1} - a_t) 2 (tau_t - m), tau_t the midpoint; it is given to the
    share above[z, t] with the largest predictions. So the loss is mean (a_0 - m)^2 + sum_t (a_{t+1} - a_t) 2 [tau_t P -
    the integral of m over the top P], each bracket a convex function of its own P: at distance eps, and without any
    other requirement, 1 - P[z, t] is :func:`clip_cdfs` at tau_t exactly.
    """
    values, weights, share = by_group(prediction, group, weight)
    levels = np.asarray(levels, dtype=float)
    middles = (levels[1:] + levels[:-1]) / 2
    total = 0.0
    for z, (v, w) in enumerate(zip(values, weights, strict=True)):
        top = np.average(v, weights=w) - sum_below(v, w, 1 - above[z])
        steps = np.diff(levels) * 2 * (middles * above[z] - top)
        total += share[z] * (np.average((levels[0] - v) ** 2, weights=w) + steps.sum())
    return float(total)
