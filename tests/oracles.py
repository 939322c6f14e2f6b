"""A naive second implementation, in plain loops and exact fractions, to check the library against.

Nothing here imports felicific. Rows are summed one by one as :class:`fractions.Fraction`, so an offset of any
size costs no digit; a reference decision is subtracted there, and only then do numbers become floats. The
program is written with **all pairs of groups** (no free level) for ``scipy.optimize.linprog``, and its optimum
is certified: the Lagrangian of the multipliers that linprog returns is a lower bound in exact arithmetic.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import linprog

#: How far, in the scaled program, the oracle's optimum may be from its own exact lower bound.
CERTIFIED = 1e-10


class UncertifiedError(AssertionError):
    """The naive program's own answer is not good enough to judge another by."""


@dataclass(frozen=True, eq=False)
class Rows:
    """People, one entry per person, as plain arrays; decisions, labels, groups and signals are positions.

    Attributes
    ----------
    n_classes, n_groups : int
    group, label, predicted : int array of shape (n,)
    score : float array of shape (n, K)
    weight : float array of shape (n,)
    eta : float array of shape (n, K, J)
        Happiness of person i with decision d in measure j.
    among : bool array of shape (n, J)
    cost : float array of shape (n, K)
    soft : bool
        Whether the policy sees a label drawn from ``score`` (else ``predicted``).
    """

    n_classes: int
    n_groups: int
    group: np.ndarray
    label: np.ndarray
    predicted: np.ndarray
    score: np.ndarray
    weight: np.ndarray
    eta: np.ndarray
    among: np.ndarray
    cost: np.ndarray
    soft: bool

    @property
    def n_measures(self):
        return self.eta.shape[2]


# ---------------------------------------------------------------------------------------------------------
# Requirements, in the oracle's own words: each is a list of upper limits on a combination of group means.


@dataclass(frozen=True)
class GapAtMost:
    """Every pair of groups within ``width`` in measure ``j``."""

    j: int
    width: float


@dataclass(frozen=True)
class MeanAtLeast:
    """Mean of measure ``j`` in group ``z`` at least ``level``."""

    j: int
    z: int
    level: float


@dataclass(frozen=True)
class BaselineAtLeast:
    """Mean of measure ``j`` in group ``z`` at least what the predicted labels give it."""

    j: int
    z: int


@dataclass(frozen=True)
class TotalBetween:
    """Happiness of all people who are counted by measure ``j``, summed for ``people`` of them."""

    j: int
    lower: float | None = None
    upper: float | None = None
    people: float = 1.0


# ---------------------------------------------------------------------------------------------------------
# Exact sums


class Exact:
    """Exact group means and loss as linear functions of the policy, relative to decision 0 in every cell."""

    def __init__(self, rows):
        self.rows = rows
        self.solved = {}  # what best_regret found, by requirements
        G, K, J = rows.n_groups, rows.n_classes, rows.n_measures
        self.mass = [[Fraction(0)] * K for _ in range(G)]
        self.counted = [[Fraction(0)] * J for _ in range(G)]
        loss = [[[Fraction(0)] * K for _ in range(K)] for _ in range(G)]
        value = [[[[Fraction(0)] * J for _ in range(K)] for _ in range(K)] for _ in range(G)]
        baseline_loss = Fraction(0)
        baseline = [[Fraction(0)] * J for _ in range(G)]
        for i in range(len(rows.group)):
            z, own = int(rows.group[i]), int(rows.predicted[i])
            weight = Fraction(float(rows.weight[i]))
            if weight == 0:
                continue
            cost = [Fraction(float(c)) for c in rows.cost[i]]
            eta = [[Fraction(float(e)) for e in line] for line in rows.eta[i]]
            baseline_loss += weight * cost[own]
            for j in range(J):
                if rows.among[i, j]:
                    self.counted[z][j] += weight
                    baseline[z][j] += weight * eta[own][j]
            for s, share in signal_of(rows, i):
                part = weight * share
                self.mass[z][s] += part
                for d in range(K):
                    loss[z][s][d] += part * cost[d]
                    for j in range(J):
                        if rows.among[i, j]:
                            value[z][s][d][j] += part * eta[d][j]
        self.total = sum(sum(line) for line in self.mass)
        self.baseline_loss = baseline_loss / self.total
        self.baseline = [[baseline[z][j] / self.counted[z][j] for j in range(J)] for z in range(G)]
        self.base_loss = sum(loss[z][s][0] for z in range(G) for s in range(K)) / self.total
        self.loss = [
            [[(loss[z][s][d] - loss[z][s][0]) / self.total for d in range(K)] for s in range(K)]
            for z in range(G)
        ]
        self.base = [
            [sum(value[z][s][0][j] for s in range(K)) / self.counted[z][j] for j in range(J)]
            for z in range(G)
        ]
        self.coefficient = [
            [
                [
                    [(value[z][s][d][j] - value[z][s][0][j]) / self.counted[z][j] for d in range(K)]
                    for s in range(K)
                ]
                for z in range(G)
            ]
            for j in range(J)
        ]
        #: The largest swing of a group's mean that decisions can cause: the natural unit of a measure.
        self.swing = [
            max(sum(max(cell) - min(cell) for cell in self.coefficient[j][z]) for z in range(G))
            for j in range(J)
        ]
        #: Where no decision matters the swing is 0, and what tells groups and people apart is the unit instead.
        spread = [max(line[j] for line in self.base) - min(line[j] for line in self.base) for j in range(J)]
        self.unit = [self.swing[j] or spread[j] or abs(self.base[0][j]) or Fraction(1) for j in range(J)]
        self.loss_swing = sum(max(cell) - min(cell) for line in self.loss for cell in line)
        self.least_loss = self.base_loss + sum(min(cell) for line in self.loss for cell in line)

    def share(self, j):
        """Share of each group among the people who are counted by measure j."""
        everyone = sum(line[j] for line in self.counted)
        return [line[j] / everyone for line in self.counted]

    def loss_of(self, q):
        """Expected loss per person under the policy q[z, s, d]."""
        return self.base_loss + _inner(self.loss, q)

    def means_of(self, q):
        """Mean of every group (first index) and measure (second)."""
        G, J = self.rows.n_groups, self.rows.n_measures
        return [
            [self.base[z][j] + _inner([self.coefficient[j][z]], [q[z]]) for j in range(J)] for z in range(G)
        ]

    def gaps_of(self, q):
        """Largest minus smallest group mean, by measure."""
        return [max(column) - min(column) for column in zip(*self.means_of(q), strict=True)]

    def cheapest(self):
        """Decide everywhere what costs least."""
        G, K = self.rows.n_groups, self.rows.n_classes
        q = np.zeros((G, K, K))
        for z in range(G):
            for s in range(K):
                q[z, s, self.loss[z][s].index(min(self.loss[z][s]))] = 1.0
        return q


def signal_of(rows, i):
    """Signals that person i shows, with their exact weights."""
    if not rows.soft:
        return [(int(rows.predicted[i]), Fraction(1))]
    shares = [Fraction(float(p)) for p in rows.score[i]]
    return [(s, share / sum(shares)) for s, share in enumerate(shares) if share]


def _inner(numbers, q):
    """Sum of numbers[z][s][d] q[z][s][d] over everything but decision 0, whose numbers are zero."""
    found = Fraction(0)
    for z, line in enumerate(numbers):
        for s, cell in enumerate(line):
            for d in range(1, len(cell)):
                if cell[d]:
                    found += cell[d] * Fraction(float(q[z][s][d]))
    return found


# ---------------------------------------------------------------------------------------------------------
# The program with all pairs


@dataclass(frozen=True)
class Limit:
    """``constant + sum_z weight[z] (mean_z - base_z) <= bound``, all exact, for one measure."""

    j: int
    weight: dict
    constant: Fraction
    bound: Fraction


def limits_of(exact, requirement):
    """Write a requirement as upper limits."""
    j, G = requirement.j, exact.rows.n_groups

    def limit(weight, bound):
        constant = sum((w * exact.base[z][j] for z, w in weight.items()), Fraction(0))
        return Limit(j, weight, constant, bound)

    if isinstance(requirement, GapAtMost):
        width = Fraction(float(requirement.width))
        return [limit({a: Fraction(1), b: Fraction(-1)}, width) for a, b in permutations(range(G), 2)]
    if isinstance(requirement, MeanAtLeast):
        return [limit({requirement.z: Fraction(-1)}, -Fraction(float(requirement.level)))]
    if isinstance(requirement, BaselineAtLeast):
        return [limit({requirement.z: Fraction(-1)}, -exact.baseline[requirement.z][j])]
    share = dict(enumerate(exact.share(j)))
    people = Fraction(float(requirement.people))
    found = []
    if requirement.upper is not None:
        found.append(limit(share, Fraction(float(requirement.upper)) / people))
    if requirement.lower is not None:
        opposite = {z: -w for z, w in share.items()}
        found.append(limit(opposite, -Fraction(float(requirement.lower)) / people))
    return found


def excess(exact, requirements, q):
    """By how much q breaks the requirements, relative to the swing of their measures (0: met)."""
    means, worst = exact.means_of(q), Fraction(0)
    for requirement in requirements:
        for limit in limits_of(exact, requirement):
            reached = limit.constant + sum(
                w * (means[z][limit.j] - exact.base[z][limit.j]) for z, w in limit.weight.items()
            )
            worst = max(worst, (reached - limit.bound) / exact.unit[limit.j])
    return float(worst)


def _linear_program(exact, limits, *, elastic):
    """Minimise regret (scaled to a swing of one), or with ``elastic`` the common excess t >= 0 of all limits.

    Returns the optimum and q; None when infeasible. Both are checked against an exact lower bound.
    """
    rows = exact.rows
    G, K = rows.n_groups, rows.n_classes
    cells = [(z, s) for z in range(G) for s in range(K)]
    n = len(cells) * K
    lowest = [min(exact.loss[z][s]) for z, s in cells]
    price = [Fraction(0)] * n
    matrix = [[Fraction(0)] * n for _ in limits]
    for c, (z, s) in enumerate(cells):
        for d in range(K):
            if not elastic and exact.loss_swing:
                price[c * K + d] = (exact.loss[z][s][d] - lowest[c]) / exact.loss_swing
            for r, limit in enumerate(limits):
                if z in limit.weight:
                    number = limit.weight[z] * exact.coefficient[limit.j][z][s][d]
                    matrix[r][c * K + d] = number / exact.unit[limit.j]
    side = [(limit.bound - limit.constant) / exact.unit[limit.j] for limit in limits]
    one_each = np.zeros((len(cells), n + elastic))
    for c in range(len(cells)):
        one_each[c, c * K : (c + 1) * K] = 1.0
    upper = np.array([[float(number) for number in line] for line in matrix]).reshape(len(limits), n)
    if elastic:
        upper = np.hstack([upper, -np.ones((len(limits), 1))])
    result = linprog(
        [float(p) for p in price] + [1.0] * elastic,
        A_ub=upper if limits else None,
        b_ub=[float(b) for b in side] if limits else None,
        A_eq=one_each,
        b_eq=np.ones(len(cells)),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status == 2:
        return None
    assert result.status == 0, f"linprog: {result.message}"
    multipliers = [max(Fraction(0), -Fraction(float(m))) for m in result.ineqlin.marginals] if limits else []
    if elastic and sum(multipliers, Fraction(0)) > 1:
        multipliers = [m / sum(multipliers) for m in multipliers]
    lower = -sum((m * b for m, b in zip(multipliers, side, strict=True)), Fraction(0))
    for c in range(len(cells)):
        lower += min(
            price[c * K + d]
            + sum(
                (m * line[c * K + d] for m, line in zip(multipliers, matrix, strict=True) if m), Fraction(0)
            )
            for d in range(K)
        )
    scale = max(1.0, *(abs(float(b)) for b in side)) if elastic and side else 1.0
    if abs(float(lower) - result.fun) > CERTIFIED * scale:
        raise UncertifiedError(f"{result.fun!r} was found, but {float(lower)!r} is all that is sure")
    return float(result.fun), result.x[:n].reshape(G, K, K)


def best_regret(exact, requirements):
    """Least loss above the unconstrained one, as a share of ``exact.loss_swing``; None when infeasible."""
    key = tuple(requirements)
    if key not in exact.solved:
        limits = [limit for requirement in requirements for limit in limits_of(exact, requirement)]
        exact.solved[key] = _linear_program(exact, limits, elastic=False)
    found = exact.solved[key]
    return None if found is None else found[0]


def conflict_depth(exact, requirements):
    """Least common excess (relative to the swings) with which all requirements can be met; 0: feasible.

    What is returned is what the best policy found really exceeds them by, in exact arithmetic: never less than
    the truth, and more than it by no more than the solver's tolerance.
    """
    limits = [limit for requirement in requirements for limit in limits_of(exact, requirement)]
    if not limits:
        return 0.0
    least, q = _linear_program(exact, limits, elastic=True)
    found = excess(exact, requirements, q)
    if found > least + 10 * CERTIFIED * max(1.0, least):
        raise UncertifiedError(f"an excess of {least!r} was found, but that policy exceeds by {found!r}")
    return found


def least_gap(exact, j):
    """Least gap of measure j that any policy reaches, in its own unit."""
    # With width 0 for everybody, the common excess is the gap itself, as a share of the swing.
    return conflict_depth(exact, [GapAtMost(j, 0.0)]) * float(exact.unit[j])


# ---------------------------------------------------------------------------------------------------------
# Comparisons


def assert_optimal(exact, requirements, policy, tolerance=1e-9):
    """Check that the policy meets the requirements at the least loss, and reports what it does."""
    q = policy.q
    assert (q >= 0).all(), "a probability is negative"
    assert np.abs(q.sum(axis=2) - 1).max() <= 1e-12, "probabilities do not sum to one"
    broken = excess(exact, requirements, q)
    assert broken <= tolerance, f"requirements are broken by {broken} of the swing"
    least = best_regret(exact, requirements)
    assert least is not None, "no policy meets the requirements"
    regret = float((exact.loss_of(q) - exact.least_loss) / (exact.loss_swing or 1))
    assert abs(regret - least) <= tolerance, f"regret {regret!r} is not {least!r}"
    assert_reported(exact, policy)


def assert_reported(exact, policy, tolerance=1e-12):
    """Check that the loss, means and gaps that a policy states are those of its q."""
    loss, means, gaps = exact.loss_of(policy.q), exact.means_of(policy.q), exact.gaps_of(policy.q)
    slack = tolerance * float(exact.loss_swing + abs(loss))
    assert abs(policy.loss - float(loss)) <= slack, f"loss {policy.loss!r} is not {float(loss)!r}"
    assert len(policy.gaps) == len(gaps)
    for j, (stated, gap) in enumerate(zip(policy.gaps.values(), gaps, strict=True)):
        # Differences of means are computed without the offset; means themselves carry its rounding error.
        slack = tolerance * float(exact.swing[j] + gap)
        assert abs(stated - float(gap)) <= slack, f"gap {j} is {stated!r}, not {float(gap)!r}"
    for z, line in enumerate(means):
        for j, mean in enumerate(line):
            slack = tolerance * float(exact.swing[j] + abs(mean))
            stated = policy.outcome.means[z, j]
            assert abs(stated - float(mean)) <= slack, f"mean {z}, {j} is {stated!r}, not {float(mean)!r}"


def assert_irreducible(exact, requirements, margin=1e-7):
    """Check that the requirements conflict, and that they do not once any one of them is dropped."""
    assert requirements, "nothing is in conflict"
    assert conflict_depth(exact, requirements) > margin / 10, "the requirements do not conflict"
    for left_out in range(len(requirements)):
        rest = requirements[:left_out] + requirements[left_out + 1 :]
        assert conflict_depth(exact, rest) <= margin, f"still in conflict without number {left_out}"


# ---------------------------------------------------------------------------------------------------------
# Fairness metrics straight from their definitions, given the probability D[i, d] of every decision


def decision_rates(decisions, group, weight, choice, counted):
    """P(decision = choice | group, counted) for every group, in the order of their positions."""
    rates = []
    for z in range(int(max(group)) + 1):
        mine = total = 0.0
        for i in range(len(group)):
            if group[i] == z and counted[i]:
                mine += weight[i] * decisions[i, choice]
                total += weight[i]
        rates.append(mine / total)
    return rates


def pair_gap(rates):
    """Largest absolute difference over all pairs of groups."""
    return max(abs(a - b) for a, b in combinations(rates, 2))


def statistical_parity(decisions, label, group, weight):
    """P(d = k | z): the gap of every class k."""
    everyone = [True] * len(label)
    return [
        pair_gap(decision_rates(decisions, group, weight, k, everyone)) for k in range(decisions.shape[1])
    ]


def overall_accuracy(decisions, label, group, weight):
    """P(d = y | z): the one gap."""
    right = np.array([[decisions[i, label[i]]] for i in range(len(label))])
    return [pair_gap(decision_rates(right, group, weight, 0, [True] * len(label)))]


def equalized_odds(decisions, label, group, weight):
    """P(d = k | y = l, z): the gap of every l (slow) and k (fast)."""
    K = decisions.shape[1]
    return [
        pair_gap(decision_rates(decisions, group, weight, k, [y == truth for y in label]))
        for truth in range(K)
        for k in range(K)
    ]


def equal_opportunity(decisions, label, group, weight, favourable=-1):
    """P(d = favourable | y = favourable, z): the one gap."""
    best = favourable % decisions.shape[1]
    return [pair_gap(decision_rates(decisions, group, weight, best, [y == best for y in label]))]


def predictive_equality(decisions, label, group, weight, favourable=-1):
    """P(d = favourable | y != favourable, z): the one gap."""
    best = favourable % decisions.shape[1]
    return [pair_gap(decision_rates(decisions, group, weight, best, [y != best for y in label]))]


METRICS = {
    "statistical_parity": statistical_parity,
    "overall_accuracy": overall_accuracy,
    "equalized_odds": equalized_odds,
    "equal_opportunity": equal_opportunity,
    "predictive_equality": predictive_equality,
}


# ---------------------------------------------------------------------------------------------------------
# Hardt, Price and Srebro (2016), section 4.1: the derived predictor of a binary predictor


def derived_predictor_loss(label, predicted, group, weight, cost=((0, 1), (1, 0))):
    """Least expected loss of a derived predictor with equalized odds, by geometry in exact fractions.

    What a group can reach in the (false positive rate, true positive rate) plane is the quadrilateral of
    (0, 0), (1, 1), its own rates and their opposites. Equalized odds asks all groups for one common point, so
    the optimum of a linear loss is a vertex of the quadrilaterals' intersection: a corner of one of them, or
    a crossing of two of their sides, that lies inside all.
    """
    polygons, positive, total = [], Fraction(0), Fraction(0)
    for z in sorted(set(group)):
        count = {(y, d): Fraction(0) for y in (0, 1) for d in (0, 1)}
        for y, d, g, w in zip(label, predicted, group, weight, strict=True):
            if g == z:
                count[int(y), int(d)] += Fraction(float(w))
        negatives, positives = count[0, 0] + count[0, 1], count[1, 0] + count[1, 1]
        fpr, tpr = count[0, 1] / negatives, count[1, 1] / positives
        polygons.append(
            _hull([(Fraction(0), Fraction(0)), (fpr, tpr), (Fraction(1), Fraction(1)), (1 - fpr, 1 - tpr)])
        )
        positive, total = positive + positives, total + negatives + positives
    sides = [(p[i], p[(i + 1) % len(p)]) for p in polygons for i in range(len(p))]
    points = [corner for polygon in polygons for corner in polygon]
    points += [point for one, two in combinations(sides, 2) if (point := _crossing(one, two)) is not None]
    share = positive / total
    (c00, c01), (c10, c11) = [[Fraction(float(c)) for c in line] for line in cost]
    return min(
        (1 - share) * (c00 * (1 - fpr) + c01 * fpr) + share * (c10 * (1 - tpr) + c11 * tpr)
        for fpr, tpr in points
        if all(_inside((fpr, tpr), polygon) for polygon in polygons)
    )


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _hull(points):
    """Convex hull, counter-clockwise (Andrew's monotone chain)."""
    points = sorted(set(points))
    if len(points) <= 2:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain = []
        for point in ordered:
            while len(chain) >= 2 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return chains


def _inside(point, polygon):
    if len(polygon) == 2:  # the diagonal: a predictor that knows nothing
        return _turn(*polygon, point) == 0 and polygon[0] <= point <= polygon[1]
    return all(_turn(polygon[i - 1], polygon[i], point) >= 0 for i in range(len(polygon)))


def _crossing(one, two):
    """Where the lines through two sides meet; None when they are parallel."""
    (a, b), (c, d) = one, two
    across = (b[0] - a[0]) * (d[1] - c[1]) - (b[1] - a[1]) * (d[0] - c[0])
    if across == 0:
        return None
    t = ((c[0] - a[0]) * (d[1] - c[1]) - (c[1] - a[1]) * (d[0] - c[0])) / across
    return a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])
