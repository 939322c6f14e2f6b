"""The program again, naively: a chance for every table, signal and decision, and a row for every pair of groups.

It reads the sums of joined aggregates and the requirements as users write them, in plain loops, and goes to
``scipy.optimize.linprog``. Nothing here imports felicific.
"""

import math
from itertools import pairwise, permutations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

#: How many levels of a fraction are looked at, again and again ever closer to the best of them.
LEVELS, CLOSER = 25, 5

#: How far beside a level that is known, which a policy may only just meet.
BESIDE = [sign * 10.0**-power for power in (5, 6, 7) for sign in (-1, 1)]


class Naive:
    """A program over the sums of people: ``least`` is the least value, ``value`` and ``missed`` judge a policy q."""

    def __init__(self, sums, *, sees_group=True, change_cost=0.0):
        self.sums = sums
        self.shape = len(sums.groups), *sums.loss.shape[1:]
        groups, self.signals, self.decisions = self.shape
        self.tables = [[z] for z in range(groups)] if sees_group else [list(range(groups))]
        self.loss = sums.loss + self.charges(change_cost)
        cost = np.array([self.loss[own].sum(axis=0) for own in self.tables])
        mass = np.array([sums.mass[own].sum(axis=0) for own in self.tables])
        self.regret = cost - cost.min(axis=2, keepdims=True)
        self.base = cost.min(axis=2).sum() / sums.total
        people = np.where(mass > 0, mass, 1.0)
        self.unit = float((self.regret.max(axis=2) / people).max()) or 1.0  # the largest regret of one person
        self.order = self.order_rows()

    def charges(self, cost):
        """What changed decisions cost: a number each, or "auto", which grows with the depth in the group."""
        sums, charges = self.sums, np.zeros(self.shape)
        if cost == "auto":
            ordered = not self.listed and sums.signal.climbs(len(sums.classes))
            cost = "auto" if ordered and sums.loss_name == "error" else 0.0
        if cost == 0.0:
            return charges
        for z in range(self.shape[0]):
            people, below = sums.mass[z].sum(), 0.0
            given = [sums.baseline_mass[z, :, d].sum() / people for d in range(self.decisions)]
            for s in range(self.signals):
                middle = (below + sums.mass[z, s] / 2) / people
                below += sums.mass[z, s]
                for d in range(self.decisions):
                    start, end = sum(given[:d]), sum(given[: d + 1])
                    each = 0.1 * (1 + 20 * max(start - middle, middle - end, 0)) if cost == "auto" else cost
                    charges[z, s, d] = each * (sums.mass[z, s] - sums.baseline_mass[z, s, d])
        return charges

    @property
    def listed(self):
        """Whether decisions are others than the classes."""
        return self.sums.rising is not None

    # -----------------------------------------------------------------------------------------------------
    # Rows over q

    def place(self, table, s, d):
        """Which variable a chance is."""
        return (table * self.signals + s) * self.decisions + d

    def order_rows(self):
        """Which chances may not exceed which others: of some decisions at a signal, and at the next one."""
        signal, labels = self.sums.signal, len(self.sums.classes)
        if self.listed and signal.climbs(labels):
            cut = [(d, range(d, self.decisions), range(d)) for d in range(1, self.decisions)]
            chains = [
                (range(self.signals), list(better if self.sums.rising else worse)) for _, better, worse in cut
            ]
        else:
            chains = [] if self.listed else [(chain, [d]) for chain, d in signal.chains(labels)]
        return [
            ([self.place(t, before, d) for d in some], [self.place(t, after, d) for d in some])
            for t in range(len(self.tables))
            for chain, some in chains
            for before, after in pairwise(chain)
        ]

    def mean(self, weights):
        """A weighted sum of group means, ``{(group, measure): weight}``, as a row over q."""
        row = np.zeros((len(self.tables), self.signals, self.decisions))
        for (z, j), weight in weights.items():
            table = next(t for t, own in enumerate(self.tables) if z in own)
            row[table] += weight * self.sums.value[z, :, :, j] / (self.sums.counted[z, j] or 1.0)
        return row

    def floors(self, requirements):
        """The least chance of every table, signal and decision."""
        sums, floors = self.sums, np.zeros((len(self.tables), self.signals, self.decisions))
        for one in requirements:
            if type(one).__name__ != "Exploration":
                continue
            d = self.decisions - 1 if one.decision is None else sums.decisions.tolist().index(one.decision)
            low, high = one.scores or (-math.inf, math.inf)
            for t, own in enumerate(self.tables):
                if one.groups is not None and not set(one.groups) & {sums.groups[z] for z in own}:
                    continue
                for s in range(self.signals):
                    _, above, top = (0, 0, 0) if one.scores is None else self.ranges[s]
                    if top >= low and above < high:
                        floors[t, s, d] = max(floors[t, s, d], one.at_least)
        return floors

    @property
    def ranges(self):
        """Of every bin the scores above which it begins, and with which it ends."""
        return self.sums.signal.ranges(len(self.sums.classes))

    # -----------------------------------------------------------------------------------------------------
    # What requirements say: weights of group means, relative to origins, between two sides

    def measures(self, name):
        """Positions of the measures of that name, or of that criterion; or of one itself."""
        name = getattr(name, "name", name)
        found = [j for j, one in enumerate(self.sums.measures) if name in (one.name, one.family)]
        exact = [j for j in found if self.sums.measures[j].name == name]
        return exact or found

    def over(self, j):
        """The position of a fraction's denominator, or None."""
        names = [one.name for one in self.sums.measures]
        return names.index(self.sums.measures[j].over) if self.sums.measures[j].over else None

    def unions(self, one, j):
        """Who is compared: for each the weight of every group's mean."""
        sums, members = self.sums, {}
        counted = sums.counted[:, j]
        for z, group in enumerate(sums.groups):
            name = group
            if one.between is not None:
                wanted = one.between if isinstance(one.between, list | tuple) else [one.between]
                parts = str(group).split(" & ")
                name = " & ".join(
                    part for part, which in zip(parts, sums.attributes, strict=True) if which in wanted
                )
            members.setdefault(name, []).append(z)
        if one.min_people >= 1:
            least, size = one.min_people, sums.numbers[:, j]
        else:
            least, size = one.min_people * counted.sum(), counted
        return [
            {z: counted[z] / counted[own].sum() for z in own}
            for name, own in members.items()
            if size[own].sum() >= least * (1 - 1e-12) and (one.groups is None or name in one.groups)
        ]

    def fractions(self, requirements):
        """The requirements that compare fractions, whose level is searched for."""
        return [
            one
            for one in requirements
            if type(one).__name__ in ("Gap", "Ratio")
            and self.over(self.measures(one.happiness)[0]) is not None
        ]

    def bounded(self, j, shares, low, high):
        """A mean between two numbers: as a row of its own, or, of a fraction, as rows of its two parts."""
        origin, k = self.sums.origin, self.over(j)
        if k is None:
            return [({(z, j): share for z, share in shares.items()}, low - origin[j], high - origin[j])]
        people = sum(self.sums.counted[z, k] for z in shares)
        person = max(min(self.sums.people[z] / max(self.sums.rows[z], 1), 1.0) for z in shares)
        limits = [({(z, k): share for z, share in shares.items()}, person / people - origin[k], math.inf)]
        for side, sign in ((low, 1.0), (high, -1.0)):
            if math.isfinite(side):
                both = {(z, j): sign * share for z, share in shares.items()}
                both |= {(z, k): -sign * side * share for z, share in shares.items()}
                limits.append((both, sign * (side * origin[k] - origin[j]), math.inf))
        return limits

    def limits(self, one, level=None):
        """One requirement; with a ``level``, of the fractions that it compares."""
        kind, found = type(one).__name__, []
        if kind == "Exploration":
            return found
        lost = "loses" if one.happiness is None else f"loses {one.happiness}"
        for j in self.measures(lost if kind == "WorseOff" else one.happiness):
            counted, origin = self.sums.counted[:, j], self.sums.origin[j]
            everybody = dict(enumerate(counted / counted.sum()))
            named = [
                z for z, group in enumerate(self.sums.groups) if group in (getattr(one, "groups", 0) or ())
            ]
            if kind in ("Gap", "Ratio"):
                ratio, width = (1.0, one.at_most) if kind == "Gap" else (one.at_least, 0.0)
                unions = self.unions(one, j)
                if self.over(j) is not None:
                    for shares in unions:
                        found += self.bounded(j, shares, ratio * level, level + width)
                    continue
                for first, second in permutations(unions, 2):
                    weights = {(z, j): -ratio * share for z, share in second.items()}
                    for z, share in first.items():
                        weights[z, j] = weights.get((z, j), 0.0) + share
                    side = -width if kind == "Gap" else (ratio - 1.0) * origin
                    found.append((weights, side, math.inf))
            elif kind == "Floor":
                for z in named or everybody:
                    least = self.baseline(z, j) if one.at_least == "baseline" else one.at_least
                    found += self.bounded(j, {z: 1.0}, least, math.inf)
            elif kind == "Budget":
                people = 1.0 if one.per == "person" else one.per
                low, high = (one.at_least, one.at_most) if one.exactly is None else 2 * [one.exactly]
                low, high = (
                    -math.inf if low is None else low / people,
                    math.inf if high is None else high / people,
                )
                found += self.bounded(j, everybody, low, high)
            else:
                for shares in [everybody] if one.groups is None else [{z: 1.0} for z in named]:
                    found += self.bounded(j, shares, -math.inf, one.at_most)
        return found

    def baseline(self, z, j):
        """A group's mean under the baseline's decisions."""
        sums, k = self.sums, self.over(j)
        mean = sums.baseline_value[z, :, j].sum() / sums.counted[z, j] + sums.origin[j]
        return mean if k is None else mean / self.baseline(z, k)

    # -----------------------------------------------------------------------------------------------------
    # Answers

    def rows(self, requirements, level=None):
        """All limits as rows over q, each in its own unit: ``row . q + constant >= lower, <= upper``."""
        rows = []
        for one in requirements:
            for weights, lower, upper in self.limits(one, level):
                row = self.mean(weights)
                constant = row[:, :, 0].sum()
                row -= row[:, :, :1]
                size = (row.max(axis=2) - row.min(axis=2)).sum()
                size = size or max(abs(constant), *(abs(one) for one in (lower, upper) if math.isfinite(one)))
                size = size or 1.0
                rows.append((row.ravel() / size, (lower - constant) / size, (upper - constant) / size))
        return rows

    def solved(self, requirements, level=None, ties=0.0):
        """The least value at a level, and q; None where nothing meets the requirements.

        With ``ties``, an array like q, that is charged beside regrets that are scaled to 1.
        """
        n = self.regret.size
        matrix, side = [], []
        for row, lower, upper in self.rows(requirements, level):
            for sign, bound in ((-1.0, lower), (1.0, upper)):
                if math.isfinite(bound):
                    matrix.append(sign * row)
                    side.append(sign * bound)
        for lesser, larger in self.order:
            row = np.zeros(n)
            row[lesser], row[larger] = 1.0, -1.0
            matrix.append(row)
            side.append(0.0)
        one = np.kron(np.eye(n // self.decisions), np.ones(self.decisions))
        scale = self.regret.max() or 1.0
        floors = self.floors(requirements).ravel()
        found = linprog(
            (self.regret / scale + ties).ravel(),
            A_ub=csr_matrix(np.array(matrix)) if matrix else None,
            b_ub=side if matrix else None,
            A_eq=csr_matrix(one),
            b_eq=np.ones(len(one)),
            bounds=np.column_stack([floors, np.ones(n)]),
            method="highs",
            options=TIGHT,
        )
        assert found.status in (0, 2), found.message
        if found.status == 2:
            return None
        q = found.x.reshape(self.regret.shape)
        return self.base + float((self.regret * q).sum()) / self.sums.total, q

    def changes(self, requirements, changes, tie=1e-7):
        """How far from the baseline's decisions the nearest of the best policies is."""
        return float((self.solved(requirements, ties=tie * changes)[1] * changes).sum())

    def least(self, requirements, near=None):
        """The least value, or None; of fractions over levels from 0 to 1, ever closer to the best and to ``near``."""
        if not self.fractions(requirements):
            found = self.solved(requirements)
            return None if found is None else found[0]
        values, step = {}, 1.0 / LEVELS
        levels = [step * i for i in range(LEVELS + 1)]
        levels += [] if near is None else [near, *(near + beside for beside in BESIDE)]
        for _ in range(CLOSER + 1):
            for level in levels:
                found = self.solved(requirements, level) if 0 <= level <= 1 else None
                if found is not None:
                    values[level] = found[0]
            if not values:
                return None
            best = min(values, key=values.get)
            levels = [best + step * i / 5 for i in range(-5, 6) if i]
            step /= 5
        return min(values.values())

    def value(self, q):
        """What a policy costs: its loss and changed decisions, per person."""
        return float((self.loss * q).sum()) / self.sums.total

    def missed(self, requirements, q):
        """By how much a policy q misses something: requirements in their own units, chances, the order."""
        own = np.array([q[tables[0]] for tables in self.tables])
        shown = [np.abs(q[z] - own[t]).max() for t, tables in enumerate(self.tables) for z in tables]
        flat = own.ravel()
        missed = [*shown, np.abs(q.sum(axis=2) - 1).max(), (self.floors(requirements) - own).max()]
        missed += [flat[lesser].sum() - flat[larger].sum() for lesser, larger in self.order]
        for row, lower, upper in self.rows(
            [one for one in requirements if one not in self.fractions(requirements)]
        ):
            missed += [lower - row @ flat, row @ flat - upper]
        for one in self.fractions(requirements):
            (j,) = self.measures(one.happiness)
            k, parts, counted = self.over(j), [], []
            for shares in self.unions(one, j):
                top, bottom = (
                    sum(share * (self.mean({(z, i): 1.0}) * own).sum() for z, share in shares.items())
                    + self.sums.origin[i]
                    for i in (j, k)
                )
                parts.append(top / bottom)
                counted.append(bottom)
            wide = one.at_most if type(one).__name__ == "Gap" else (1.0 - one.at_least) * max(parts)
            missed.append((max(parts) - min(parts) - wide) * min(counted))
        return max(float(one) for one in missed)
