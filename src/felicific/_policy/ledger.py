"""Ledgers: what every decision is worth to every person, expected or under the real label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from felicific._capacity import check_room
from felicific._people.evaluate import BATCH, refuse_overflow, typical, worth_of
from felicific._people.labels import stands_for
from felicific._people.people import People
from felicific._people.user_functions import Batch
from felicific._problem.problem import Problem
from felicific._program.crowd import Ledger
from felicific._program.hulls import vertices
from felicific._statistics.labels import tilted
from felicific._tables.memory import slice_rows, widener
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError


class _Case(NamedTuple):
    """One possible truth about some people, its probability, and the slot of the group it speaks of.

    If ``beside_x``, it is for what looks at the label and at x only.
    """

    y: Array | None
    labels: Codes | None
    group: Array
    weight: Floats
    slot: Any
    supposed: frozenset[str]
    beside_x: bool = False


#: The possible truths about some people, given whether the label matters.
_Cases = Callable[[slice, bool], Iterator[_Case]]


def expected_ledger(
    problem: Problem,
    groups: tuple[Any, ...],
    x: Table,
    belief: Floats,
    group: Array | None,
    origin: Floats,
    rows: Codes,
    baseline: Array | None,
) -> Ledger:
    """Expected values under a belief about what is not seen.

    ``belief`` is p(label) of shape (n, L) when the group is seen, else p(label, group) of shape (n, L, groups).
    ``rows`` are the numbers of the rows in the user's table, for messages; ``baseline`` the baseline, where
    somebody asks.
    """
    supposed = frozenset({"y"} if problem.sees_group else {"y", "group"})
    labels = tuple(problem.labels.tolist())

    def cases(some: slice, look_at_y: bool) -> Iterator[_Case]:
        part = belief[some]
        n = len(part)
        slots = [(0, group[some])] if group is not None else []
        if not problem.sees_group:
            slots = [(z, _filled(n, value, groups)) for z, value in enumerate(groups)]
        for slot, names in slots:
            chance = part if problem.sees_group else part[:, :, slot]
            if look_at_y:
                for k, label in enumerate(problem.labels.tolist()):
                    codes = np.full(n, k, dtype=np.intp)
                    yield _Case(_filled(n, label, labels), codes, names, chance[:, k], slot, supposed)
            else:
                weight = np.ones(n) if problem.sees_group else chance.sum(axis=1)
                yield _Case(None, None, names, weight, slot, supposed)

    slots = 1 if problem.sees_group else len(groups)
    return _ledger(problem, slots, x, rows, cases, origin, baseline)


def real_ledger(problem: Problem, people: People, origin: Floats, expected: Ledger | None = None) -> Ledger:
    """Values under the real labels, which something that looks at them needs, and groups.

    Where the group is seen and no happiness looks at the label, it is worth what is ``expected``.

    Whoever has no label has each with its chance. What looks at the label and at x is corrected, of those who have one,
    by how far off the chances are, as often as they stand for others.
    """
    y, labels, chances = people.y, people.labels, people.chances
    partly = people.missing is not None and chances is not None
    stands = stands_for(people, np.asarray(people.label_proba)) if partly else None
    beside_x = partly and (problem.loss.label_with_x or any(part.label_with_x for part in problem.happiness))

    def cases(rows: slice, look_at_y: bool) -> Iterator[_Case]:
        codes = people.codes[rows]
        slot = 0 if problem.sees_group else codes
        known = None if y is None else y[rows]
        truth = None if labels is None else labels[rows]
        everyone = np.ones(len(codes))
        if stands is None or chances is None or not look_at_y:
            yield _Case(known, truth, people.group[rows], everyone, slot, people.supposed)
            return
        have, stand = people.labelled[rows].astype(np.float64), stands[rows]
        truth = np.asarray(truth).clip(min=0)
        yield _Case(known, truth, people.group[rows], have, slot, frozenset())
        if beside_x:
            yield _Case(known, truth, people.group[rows], stand, slot, frozenset(), beside_x=True)
        for k in range(len(problem.labels)):
            label, chance = np.full(len(codes), k, dtype=np.intp), chances[rows, k]
            told = problem.labels[label], label, people.group[rows]
            yield _Case(*told, (1.0 - have) * chance, slot, frozenset({"y"}))
            if beside_x:
                yield _Case(*told, -stand * chance, slot, frozenset({"y"}), beside_x=True)

    slots = 1 if problem.sees_group else len(people.groups)
    shares = problem.sees_group and not any(part.looks_at_y for part in problem.happiness)
    known = expected if shares else None
    ledger = _ledger(
        problem, slots, people.x, people.rows, cases, origin, people.baseline_of(slice(None)), known
    )
    refuse_large(problem, people, ledger)
    return ledger


def worst_cost(problem: Problem, people: People, max_odds_ratio: float, sign: float = 1.0) -> Floats:
    """Loss of every decision about those without a label, where hidden reasons may tilt their chances so far.

    At its worst, or with a ``sign`` of -1 at its best.
    """
    others = people.without_labels
    chances = np.asarray(people.chances)[~people.labelled]
    found = np.zeros((len(others), len(problem.decisions), len(problem.labels)))
    for k in range(len(problem.labels)):
        for part, batch in others.supposing(k, problem.labels).batches():
            found[part, :, k] = worth_of(problem, batch).cost.T
    worst, _ = tilted(np.broadcast_to(chances[:, None, :], found.shape), sign * found, max_odds_ratio)
    return np.asarray((worst * found).sum(axis=2))


def refuse_large(problem: Problem, people: People, ledger: Ledger) -> None:
    """Refuse sums over groups that a computer cannot hold."""
    weight, g = people.weights, len(people.groups)

    def sums(numbers: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.bincount(people.codes, weight * numbers, minlength=g), dtype=np.float64)

    _, k, slots, j = ledger.value.shape
    per_person = ledger.value.sum(axis=2) if slots > 1 else ledger.value[:, :, 0]
    value = np.array([[sums(per_person[:, d, c]) for c in range(j)] for d in range(k)])
    value = value.reshape(k, j, g).swapaxes(1, 2)
    refuse_overflow(problem, value, np.array([sums(ledger.cost[:, d]) for d in range(k)]))


def find_origin(problem: Problem, people: People) -> Floats:
    """A typical value of every measure, from the first batch that somebody is counted in."""
    origin: list[float | None] = [None] * len(problem.happiness)
    for _, batch in people.batches():
        if batch.labels is None:
            n = len(batch)
            codes = np.zeros(n, dtype=np.intp)
            batch = Batch(
                batch.x,
                _filled(n, problem.labels.tolist()[0], tuple(problem.labels.tolist())),
                codes,
                batch.group,
                batch.rows,
                batch.baseline,
                frozenset({"y"}),
            )
        worth = worth_of(problem, batch)
        for j, known in enumerate(origin):
            if known is None:
                origin[j] = typical(*worth.values(j))
        if None not in origin:
            break
    return np.array([0.0 if number is None else number for number in origin])


def _filled(n: int, value: Any, known: tuple[Any, ...]) -> Array:
    filled = np.empty(n, dtype=np.asarray(known).dtype if len({type(k) for k in known}) == 1 else object)
    filled[:] = value
    return filled


def _ledger(
    problem: Problem,
    slots: int,
    x: Table,
    rows: Codes,
    cases: _Cases,
    origin: Floats,
    baseline: Array | None,
    known: Ledger | None = None,
) -> Ledger:
    """Add up the cases, batch by batch; sums are term by term, so they do not depend on the batch.

    Happiness that is ``known`` is not asked for again.
    """
    n, k, j = len(rows), len(problem.decisions), len(problem.happiness)
    check_room(
        3.0 * n * (k + 1) * slots * (j + 1),  # expected, real, and one more while they are weighed
        "An individual policy",
        f"{n:,} people x {k} decisions x {slots * j:,} measures",
        "Fit it to fewer people, use policy='label', merge classes, or ask for a criterion of fewer parts, such as "
        "'statistical_parity' instead of 'equalized_odds'.",
    )
    cost = np.zeros((n, k))
    value, among = np.zeros((n, k, slots, j)), np.zeros((n, slots, j))
    if known is not None:
        value, among = known.value, known.among
    everyone, wide = np.arange(n), widener(x)
    for start in range(0, n, BATCH):
        part = slice(start, min(start + BATCH, n))
        places, table = everyone[part], wide(slice_rows(x, start, part.stop))
        now = None if baseline is None else baseline[part]
        for look_at_y in (True, False):
            looking = [
                c for c, h in enumerate(problem.happiness) if known is None and h.looks_at_y == look_at_y
            ]
            losing = problem.loss.looks_at_y == look_at_y
            if not looking and not losing:
                continue
            for case in cases(part, look_at_y):
                batch = Batch(table, case.y, case.labels, case.group, rows[part], now, case.supposed)
                worth = worth_of(problem, batch)
                if losing and (not case.beside_x or problem.loss.label_with_x):
                    cost[part] += case.weight[:, None] * worth.cost.T
                for c in looking:
                    if case.beside_x and not problem.happiness[c].label_with_x:
                        continue
                    values, counted = worth.values(c)
                    inside = case.weight if counted is None else case.weight * counted
                    among[places, case.slot, c] += inside
                    for d in range(k):
                        value[places, d, case.slot, c] += inside * (values[d] - origin[c])
    return Ledger(cost, value, among)


# ---------------------------------------------------------------------------------------------------------
# Calibration: probabilities that mean what they say, group by group.


#: A group with fewer rows keeps the model's own probabilities.
FEWEST_ROWS = 30

#: Rates that differ by less are one, but for rounding.
ALIKE = 1e-12


@dataclass(frozen=True)
class Calibration:
    """For every group and class, a curve from the model's probability to the calibrated one.

    ``knots[z][k]`` holds the corners of a piecewise linear curve; with two classes only that of the second is
    used. Group ``z`` is 0 for everybody when the policy does not see the group.
    """

    knots: tuple[tuple[tuple[Floats, Floats], ...], ...] = field(repr=False)

    def apply(self, score: Floats, group: Codes) -> Floats:
        """Calibrated probabilities of every class, of the shape of ``score``."""
        if len(group) and int(group.max()) >= len(self.knots):
            raise DataError("A group has no calibration.", "Fit the policy on people of every group.")
        calibrated = np.empty_like(score)
        for z, curves in enumerate(self.knots):
            rows = np.flatnonzero(group == z)
            part = score[rows]
            if score.shape[1] == 2:
                second = np.interp(part[:, 1], *curves[1])
                calibrated[rows] = np.column_stack([1.0 - second, second])
                continue
            found = np.column_stack([np.interp(part[:, k], *curve) for k, curve in enumerate(curves)])
            total = found.sum(axis=1, keepdims=True)
            calibrated[rows] = np.where(total > 0, found / np.where(total > 0, total, 1.0), part)
        return calibrated


def fit_calibration(
    method: str, score: Floats, labels: Codes, group: Codes, n_groups: int, weight: Floats
) -> Calibration:
    """Fit one curve per group and class; of two classes, what is not the second one is the first."""
    knots, classes = [], range(score.shape[1])
    for z in range(n_groups):
        rows = np.flatnonzero(group == z)
        curves = []
        for k in classes if len(classes) > 2 else classes[1:]:
            hit = (labels[rows] == k).astype(np.float64)
            curves.append(fit_curve(method, score[rows, k], hit, weight[rows]))
        if len(classes) == 2:
            curves.insert(0, (1.0 - curves[0][0][::-1], 1.0 - curves[0][1][::-1]))
        knots.append(tuple(curves))
    return Calibration(tuple(knots))


def fit_curve(method: str, score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """One curve from scores to how often they are right; too few people keep their scores."""
    if method == "none" or weight.sum() < FEWEST_ROWS:
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    return (_isotonic if method == "isotonic" else _sigmoid)(score, hit, weight)


def _isotonic(score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Centred isotonic regression: each pooled block is one knot, at its mean score.

    Between the knots the curve is linear. Unlike the usual staircase it has no flat steps, so two people with
    different scores are not tied and fewer of them face a lottery. Blocks are the edges of the lower convex hull of
    hits against weights, both summed along the score.
    """
    order = np.argsort(score)
    score, weight = score[order], weight[order]
    hits = weight * hit[order]
    levels = np.flatnonzero(np.diff(score, prepend=-np.inf))
    levels = levels[_rises(weight, hits, levels)]  # no block begins at the others
    sums = [np.append(0.0, np.add.reduceat(part, levels).cumsum()) for part in (weight, hits)]
    _, ends = vertices(sums[0][None], sums[1][None])
    blocks = levels[ends[:-1]]
    blocks = blocks[_rises(weight, hits, blocks)]
    mass, right, total = (np.add.reduceat(part, blocks) for part in (weight, hits, weight * score))
    return total / mass, np.minimum(right / mass, 1.0)


def _rises(weight: Floats, hits: Floats, blocks: Codes) -> Truths:
    """Where more are right than in the block before; the first one counts."""
    rate = np.add.reduceat(hits, blocks) / np.add.reduceat(weight, blocks)
    return np.asarray(np.diff(rate, prepend=-np.inf) > ALIKE)


def _sigmoid(score: Floats, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Platt's logistic curve of the log-odds, as a fine piecewise linear one."""
    from sklearn.linear_model import LogisticRegression

    grid = np.linspace(0.0, 1.0, 2049)
    if hit.min() == hit.max():
        return grid, np.full(len(grid), hit[0])
    model = LogisticRegression(C=1e6).fit(_log_odds(score), hit, sample_weight=weight)
    return grid, model.predict_proba(_log_odds(grid))[:, 1]


def _log_odds(score: Floats) -> Floats:
    inside = score.clip(1e-6, 1 - 1e-6)
    return np.log(inside / (1.0 - inside))[:, None]
