"""Summing: from people in memory to aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from felicific._people.labels import label_proba_by_group, stands_for
from felicific._people.people import CHANGED, People, changes, refuse_idle
from felicific._people.worth import BATCH, Batch, Worth, refuse_overflow, typical, worth_of
from felicific._problem.problem import Problem
from felicific._program.aggregates import Aggregates
from felicific._program.aggregates_file import check_size
from felicific._program.signals import Signal, Spread
from felicific._program.sum_names import ADDED, COMPARED
from felicific._program.unlabelled import Standing, Unlabelled
from felicific._tables.memory import as_objects
from felicific._typing import Codes, Floats
from felicific.exceptions import HappinessError

#: Rows per batch when no function looks at them, and the most keys to count them by.
KEY_BATCH = 8 * BATCH
MOST_KEYS = 2**20

#: From so many cells for each person of a batch on, only those that somebody is in are added to.
SPARSE = 4


def sum_people(people: People, problem: Problem, signal: Signal) -> Aggregates:
    """Sum over people in memory, batch by batch.

    Parameters
    ----------
    people : People
        Who is summed over. Without labels no measure may look at them; a loss that does is left at zero.
    problem : Problem
        What is asked.
    signal : Signal
        What the policy sees.
    """
    if people.missing is not None:
        return _partly_labelled(people, problem, signal)
    if problem.looks_at_baseline:
        people = replace(people, decisions=problem.decisions)
    whole = people.weight is None or bool((people.weight == np.rint(people.weight)).all())
    sums = _Sums(problem, people, signal, whole)
    sums.rows += np.bincount(people.codes, minlength=len(people.groups))
    if people.labels is not None and sums.fits_keys:
        try:
            return _by_keys(sums, people)
        except HappinessError:
            sums = sums.empty()  # once more, row by row, to name the row
    for part, batch in people.batches():
        sums.add(worth_of(problem, batch), people.codes[part], *_seen(people, signal, part))
    return sums.aggregates()


def _partly_labelled(people: People, problem: Problem, signal: Signal) -> Aggregates:
    """Sums over people with a label, and beside them those over the others as if each label were theirs."""
    said, known, others = people.missing, people.with_labels, people.without_labels
    assert said is not None, "labels may be missing"
    labels = range(len(problem.labels))
    supposed = [others.supposing(k, problem.labels) for k in labels]
    beside_x = (*(part.label_with_x for part in problem.happiness), problem.loss.label_with_x)
    # Where score and group tell the chance of a label, how many somebody stands for is known once all are added.
    stands, label_proba = np.ones(len(known)), None
    if people.label_proba is not None:
        stands = stands_for(people, people.label_proba, whole=False)[people.labelled]
        label_proba = label_proba_by_group(people)
    standing = None
    if any(beside_x):
        real = replace(known, weight=known.weights * stands)
        each = [real.supposing(k, problem.labels) for k in labels]
        rises: dict[str, Any] = {}
        if len(labels) == 2:
            good = real.weights * (np.asarray(known.labels) == 1)
            rises = dict(_rises(supposed, problem, signal)) | {
                "stood": _rises(each, problem, signal),
                "stood_good": _rises([replace(part, weight=good) for part in each], problem, signal),
            }
        standing = Standing(
            sum_people(real, problem, signal),
            tuple(sum_people(part, problem, signal) for part in each),
            **rises,
        )
    plain = _counts(known, signal, np.ones(len(known)), len(labels))
    squares = stands if people.weight_kind != "sampling" else stands * known.weights
    return replace(
        sum_people(known, problem, signal),
        unlabelled=Unlabelled(
            classes=problem.labels,
            supposed=tuple(sum_people(part, problem, signal) for part in supposed),
            seen=_counts(known, signal, stands, len(labels)),
            squares=_counts(known, signal, stands * squares, len(labels)).sum(axis=2),
            score=_probabilities(people, signal),
            label_proba=label_proba,
            plain=plain.sum(axis=1),
            beside_x=beside_x,
            standing=standing,
            source="label_proba"
            if said.columns
            else "score"
            if label_proba is None or people.by_score
            else "model",
            max_odds_ratio=said.max_odds_ratio,
            clip=said.clip,
        ),
    )


def _counts(people: People, signal: Signal, times: Floats, n_labels: int) -> Floats:
    """Weight of people by group, signal and label, each counted so many times."""
    g, s = len(people.groups), signal.size(n_labels)
    counts = np.zeros(g * s * n_labels)
    assert people.labels is not None, "they have labels"
    for start in range(0, len(people), KEY_BATCH):
        part = slice(start, min(start + KEY_BATCH, len(people)))
        for cell, share in _seen(people, signal, part)[0]:
            index = (people.codes[part] * s + cell) * n_labels + people.labels[part]
            counts += np.bincount(index, _product(share, times[part]), minlength=len(counts))
    return counts.reshape(g, s, n_labels)


def _probabilities(people: People, signal: Signal) -> Floats | None:
    """Sums of everybody's probabilities by group, signal and label."""
    if people.score is None:
        return None
    n_labels = people.score.shape[1]
    g, s = len(people.groups), signal.size(n_labels)
    found = np.zeros((n_labels, g * s))
    for start in range(0, len(people), KEY_BATCH):
        part = slice(start, min(start + KEY_BATCH, len(people)))
        scores = people.scores(part)
        assert scores is not None, "there are probabilities"
        for cell, share in _seen(people, signal, part)[0]:
            place = people.codes[part] * s + cell
            for k in range(n_labels):
                found[k] += np.bincount(place, _product(share, scores[:, k]), minlength=g * s)
    return np.moveaxis(found.reshape(n_labels, g, s), 0, 2)


def _rises(supposed: list[People], problem: Problem, signal: Signal) -> dict[str, Floats]:
    """Of two labels: sums of what the second adds to loss and happiness, of those to whom it adds something."""
    one, other = supposed
    people = replace(one, decisions=problem.decisions) if problem.looks_at_baseline else one
    g, d, j = len(people.groups), len(problem.decisions), len(problem.happiness)
    s = signal.size(len(problem.labels))
    loss, value = np.zeros((g * s, d)), np.zeros((g * s, d, j))
    baseline_loss, baseline_value = np.zeros(g * s), np.zeros((g * s, j))
    for part, batch in people.batches():
        n = len(batch)
        twin = replace(batch, y=other.y[part], labels=other.labels[part])  # type: ignore[index]  # they are supposed
        worths = [worth_of(problem, each) for each in (batch, twin)]
        spread, baseline = _seen(people, signal, part)
        everyone = np.arange(n)

        def add(sums: Floats, numbers: Floats, part: slice = part, spread: Spread = spread) -> None:
            for cell, share in spread:
                place = people.codes[part] * s + cell
                sums += np.bincount(place, _product(share, numbers), minlength=g * s)

        costs = [worth.cost for worth in worths] if worths[0].knows_cost else [np.zeros((d, n))] * 2
        rises = np.maximum(costs[1] - costs[0], 0.0)
        for k in range(d):
            add(loss[:, k], rises[k])
        if baseline is not None:
            add(baseline_loss, rises[baseline, everyone])
        for c in range(j):
            values = []
            for worth in worths:
                numbers, counted = worth.values(c)
                values.append(numbers if counted is None else numbers * counted)
            rises = np.maximum(values[1] - values[0], 0.0)
            for k in range(d):
                add(value[:, k, c], rises[k])
            if baseline is not None:
                add(baseline_value[:, c], rises[baseline, everyone])
    return {
        "rise_loss": loss.reshape(g, s, d),
        "rise_value": value.reshape(g, s, d, j),
        "rise_baseline_loss": baseline_loss.reshape(g, s),
        "rise_baseline_value": baseline_value.reshape(g, s, j),
    }


def sum_whole(people: People, problem: Problem, signal: Signal, *, whole: bool = True) -> Aggregates:
    """The same once it is sure that what is asked can be; see :func:`checked`."""
    return checked(
        sum_people(people, problem, signal), problem, lambda: changes(problem, people), whole=whole
    )


def checked(sums: Aggregates, problem: Problem, look: Callable[[], Codes], *, whole: bool) -> Aggregates:
    """With what decisions change, if all groups that are spoken of are there.

    Of ``whole`` tables a happiness that no decision changes is refused; of a part, the others may be changed. Sums may
    cancel out, so where they say that nobody is, people are asked: ``look``.
    """
    problem.check_groups(sums.groups)
    moves = sums.moves
    if not all(moves):
        found = look()
        if whole:
            refuse_idle(problem, found)
        moves = tuple((found == CHANGED).tolist())
    return replace(sums, changed=moves)


def _seen(people: People, signal: Signal, part: slice) -> tuple[Spread, Codes | None]:
    """Signals of some people, weights included, and what the baseline decides on them, where that is known."""
    scores = people.scores(part)
    own = people.predictions(part, scores) if signal.of_classes else None
    weight = None if people.weight is None else people.weight[part]
    spread = [(cell, _product(weight, share)) for cell, share in signal.spread(scores, own)]
    return spread, people.decisions_baseline(part, scores) if people.knows_baseline else None


def _by_keys(sums: _Sums, people: People) -> Aggregates:
    """Count the people of every (group, signal, decision by the baseline, label), each then as one weighted row.

    Without a function of x, all rows of such a key are alike.
    """
    problem, size = sums.problem, sums.mass.shape[1]
    known, n_labels = people.knows_baseline, len(problem.labels)
    n_decisions = len(problem.decisions) if known else 1
    counts = np.zeros(sums.mass.size * n_decisions * n_labels)
    for start in range(0, len(people), KEY_BATCH):
        part = slice(start, min(start + KEY_BATCH, len(people)))
        spread, baseline = _seen(people, sums.signal, part)
        labels = people.labels[part]  # type: ignore[index]  # there are labels
        for cell, share in spread:
            place = people.codes[part] * size + cell
            index = (place * n_decisions + (0 if baseline is None else baseline)) * n_labels + labels
            counts += np.bincount(index, share, minlength=len(counts))
    held = np.flatnonzero(counts)
    label, now, place = held % n_labels, held // n_labels % n_decisions, held // (n_labels * n_decisions)
    z = place // size
    group = as_objects(people.groups)[z]
    decided = problem.decisions[now] if problem.looks_at_baseline and known else None
    batch = Batch(None, problem.labels[label], label, group, np.arange(len(held)), decided)
    sums.add(worth_of(problem, batch), z, [(place % size, counts[held])], now if known else None)
    return sums.aggregates()


class _Sums:
    """The running sums of :func:`sum_people`."""

    def __init__(self, problem: Problem, people: People, signal: Signal, whole: bool) -> None:
        self.problem, self.people, self.signal = problem, people, signal
        self.whole, groups = whole, people.groups
        g, d, j = len(groups), len(problem.decisions), len(problem.happiness)
        s = signal.size(len(problem.labels))
        check_size(g, s, d, j)
        self.origin: list[float | None] = [None] * j
        # Cells come last, side by side in memory, because they are what is added up.
        self.mass, self.loss = np.zeros((g, s)), np.zeros((d, g, s))
        self.value, self.among = np.zeros((d, j, g, s)), np.zeros((j, g, s))
        self.baseline_loss, self.baseline_value = np.zeros((g, s)), np.zeros((j, g, s))
        self.baseline_mass, self.square = np.zeros((d, g, s)), np.zeros((d, j, g, s))
        self.gains, self.loses = np.zeros((d, j, g, s)), np.zeros((d, j, g, s))
        self.rows = np.zeros(g, dtype=np.int64)

    def empty(self) -> _Sums:
        """The same with no sums but the rows."""
        fresh = _Sums(self.problem, self.people, self.signal, self.whole)
        fresh.rows = self.rows
        return fresh

    @property
    def fits_keys(self) -> bool:
        """Whether nothing looks at x, and there are few enough keys to count."""
        keys = self.mass.size * len(self.problem.decisions) * len(self.problem.labels)
        return keys <= MOST_KEYS and not self.problem.looks_at_x

    def add(self, worth: Worth, group: Codes, spread: Spread, baseline: Codes | None) -> None:
        """Add some people; ``spread`` are their signals, weights included; ``baseline`` is None if there is none."""
        with np.errstate(all="ignore"):  # what is not finite, or overflows, is refused by name
            self._add(worth, group, spread, baseline)

    def _add(self, worth: Worth, group: Codes, spread: Spread, baseline: Codes | None) -> None:
        g, s = self.mass.shape
        cells = [(group * s + cell, share) for cell, share in spread]
        place: slice | Codes = slice(None)
        size = g * s
        if size > SPARSE * len(group):  # of few people, only the cells that somebody is in
            place, inverse = np.unique(np.concatenate([index for index, _ in cells]), return_inverse=True)
            parts = inverse.reshape(len(cells), len(group))
            cells, size = [(part, share) for part, (_, share) in zip(parts, cells, strict=True)], len(place)

        def per_cell(numbers: Floats | None) -> Floats:
            parts = [np.bincount(index, _product(share, numbers), minlength=size) for index, share in cells]
            return np.asarray(sum(parts[1:], start=parts[0]), dtype=np.float64)

        def grow(sums: Floats, numbers: Floats) -> None:
            sums.reshape(-1)[place] += numbers

        everyone = np.arange(len(group))
        mass = per_cell(None)
        grow(self.mass, mass)
        for d in range(len(self.baseline_mass)) if baseline is not None else ():
            grow(self.baseline_mass[d], per_cell(np.asarray(baseline == d, dtype=np.float64)))
        if worth.knows_cost:
            cost = worth.cost
            for d in range(len(cost)):
                grow(self.loss[d], per_cell(cost[d]))
            if baseline is not None:
                grow(self.baseline_loss, per_cell(cost[baseline, everyone]))
        for j in range(len(self.problem.happiness)):
            self._add_values(j, worth, baseline, mass, per_cell, grow)

    def _add_values(
        self,
        j: int,
        worth: Worth,
        baseline: Codes | None,
        mass: Floats,
        per_cell: Callable[[Floats | None], Floats],
        grow: Callable[[Floats, Floats], None],
    ) -> None:
        """Add what decisions are worth by one measure."""
        values, counted = worth.values(j)
        inside = None if counted is None else counted.astype(np.float64)
        if baseline is not None:
            now = values[baseline, np.arange(len(baseline))]
            for d in range(len(values)):
                grow(self.gains[d, j], per_cell(_product(inside, (values[d] > now).astype(np.float64))))
                grow(self.loses[d, j], per_cell(_product(inside, (values[d] < now).astype(np.float64))))
        if self.origin[j] is None:
            self.origin[j] = typical(values, counted)
        values -= self.origin[j] or 0.0
        grow(self.among[j], mass if inside is None else per_cell(inside))
        for d in range(len(values)):
            counts = per_cell(_product(inside, values[d]))
            grow(self.value[d, j], counts)
            # Of a rate, the origin is one of its two values: the others are all at the same side of it.
            rate = self.problem.happiness[j].rate
            squares = np.abs(counts) if rate else per_cell(_product(inside, values[d] ** 2))
            grow(self.square[d, j], squares)
        if baseline is not None:
            own = values[baseline, np.arange(len(baseline))]
            grow(self.baseline_value[j], per_cell(_product(inside, own)))

    def aggregates(self) -> Aggregates:
        """Return the sums so far, if they are finite."""

        def cells_first(name: str) -> Floats:
            array: Floats = getattr(self, name)
            return np.moveaxis(array, (-2, -1), (0, 1))

        sums: dict[str, Any] = {name: cells_first(name) for name in ADDED}
        if not self.people.knows_baseline:
            sums |= dict.fromkeys(COMPARED)
        refuse_overflow(self.problem, sums["value"], sums["loss"])
        return Aggregates(
            classes=self.problem.labels,
            decisions=self.problem.decisions,
            rising=self.problem.rising,
            order=self.problem.order,
            groups=self.people.groups,
            roles=self.people.roles,
            attributes=self.people.attributes,
            measures=self.problem.measures,
            signal=self.signal,
            loss_name=self.problem.loss.name,
            origin=np.array([0.0 if origin is None else origin for origin in self.origin]),
            rows=self.rows,
            weight_kind=self.people.weight_kind,
            whole=self.whole,
            baseline_given=self.people.baseline is not None,
            **sums,
        )


def _product(left: Floats | None, right: Floats | None) -> Any:
    """Multiply, where None stands for ones."""
    if left is None or right is None:
        return right if left is None else left
    return left * right
