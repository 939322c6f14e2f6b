"""Summing: from people in memory to aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from felicific._people.evaluate import BATCH, refuse_overflow, typical, worth_of
from felicific._people.labels import label_proba_by_group, stands_for
from felicific._people.people import CHANGED, People, changes, refuse_idle
from felicific._people.user_functions import Batch
from felicific._problem.happiness import SAME
from felicific._problem.problem import Problem
from felicific._problem.worse_off import can_be_lost
from felicific._program.aggregates import Aggregates
from felicific._program.aggregates_file import check_size
from felicific._program.cell_sums import ADDED, COMPARED, CellSums, add_runs, starts_of
from felicific._program.signals import Signal, Spread
from felicific._program.unlabelled import Standing, Unlabelled
from felicific._tables.memory import as_objects
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import HappinessError

#: Rows that are looked at together where no function looks at them.
KEY_BATCH = 8 * BATCH

#: Up to so many possible keys, and so many for each row, each has a place of its own in an array; of more, those that
#: occur are sorted.
DENSE, SPARSE = 2**22, 4

#: Of fewer cells than this many rows are in each.
FEW_CELLS = 1024

#: Adds numbers of some people to the sums of their cells.
Grow = Callable[[Floats, Array], None]


def sum_people(people: People, problem: Problem, signal: Signal) -> Aggregates:
    """Sum over people in memory, by the cells (group, signal) that somebody is in.

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
    with np.errstate(all="ignore"):  # what is not finite, or overflows, is refused by name
        sums = _Sums(problem, people, signal)
        sums.count()
        sums.add_rows()
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
    for part in _parts(len(people), KEY_BATCH):
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
    for part in _parts(len(people), KEY_BATCH):
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


class _Sums:
    """The running sums of :func:`sum_people`.

    What looks at no x is the same for everybody of a group, baseline and label: it is evaluated once for each of these
    kinds, and people are counted. Only what looks at x is asked of every row.
    """

    def __init__(self, problem: Problem, people: People, signal: Signal) -> None:
        self.problem, self.people, self.signal = problem, people, signal
        self.signals = signal.size(len(problem.labels))
        self.place, self.now = self._places()
        self.n_labels = 1 if people.labels is None else len(problem.labels)
        self.kinds = self.n_labels * (1 if self.now is None else len(problem.decisions))
        cells = len(people.groups) * self.signals
        self.key, self.counts = self._counts(cells * self.kinds)
        of_key = self.key // self.kinds
        self.held = np.arange(cells) if self.place is None else of_key[starts_of(of_key)]
        n, d, j = len(self.held), len(problem.decisions), len(problem.happiness)
        check_size(n, d, j)
        self.origin: list[float | None] = [None] * j
        self.by_row = {j for j, one in enumerate(problem.happiness) if "x" in one.asks}
        self.cost_by_row = "x" in problem.loss.asks
        self.everybody: set[int] = set()
        # Cells come last, side by side in memory, because they are what is added up.
        self.mass, self.loss = np.zeros(n), np.zeros((d, n))
        self.value, self.among = np.zeros((d, j, n)), np.zeros((j, n))
        self.baseline_loss, self.baseline_value = np.zeros(n), np.zeros((j, n))
        self.baseline_mass, self.square = np.zeros((d, n)), np.zeros((d, j, n))
        self.gains, self.loses = np.zeros((d, j, n)), np.zeros((d, j, n))
        # Whom a decision gives less of any of several measures: of a single one, that is who loses by it.
        wanted = [
            k
            for k, one in enumerate(problem.happiness)
            if str(one.name) in problem.closed and can_be_lost(one)
        ]
        self.wanted = wanted if len(wanted) > 1 else []
        self.worse = np.zeros((d, n))

    def _places(self) -> tuple[Codes | None, Codes | None]:
        """The cell of every person, where each has one; and what the baseline decides, where that is known."""
        people, n = self.people, len(self.people)
        place = None if self.signal.drawn else np.empty(n, dtype=np.int64)
        now = np.empty(n, dtype=np.intp) if people.knows_baseline else None
        for part in _parts(n, KEY_BATCH):
            scores = people.scores(part)
            if place is not None:
                own = people.predictions(part, scores) if self.signal.of_classes else None
                cell = self.signal.spread(scores, own)[0][0]
                place[part] = people.codes[part] * self.signals + cell
            if now is not None:
                now[part] = people.decisions_baseline(part, scores)
        return place, now

    def _spread(self, part: slice) -> Spread:
        """The cells of some people, weights included."""
        weight = None if self.people.weight is None else self.people.weight[part]
        if self.place is not None:
            return [(self.place[part], weight)]
        cells = self.signal.spread(self.people.scores(part), None)
        return [
            (self.people.codes[part] * self.signals + cell, _product(weight, share)) for cell, share in cells
        ]

    def _counts(self, possible: int) -> tuple[Codes, Floats]:
        """The keys (cell, baseline, label) that occur, of so many, in their order, and the weight of each."""
        labels, n = self.people.labels, len(self.people)
        dense = possible <= min(DENSE, SPARSE * n)
        counts = np.zeros(possible if dense else 0)
        keys: list[Codes] = []
        weights: list[Any] = []
        for part in _parts(n, max(KEY_BATCH, possible) if dense else n + 1) or [slice(0)]:
            for cell, share in self._spread(part):
                key = cell * self.kinds
                key += 0 if self.now is None else self.now[part] * self.n_labels
                key += 0 if labels is None else labels[part]
                if dense:
                    counts += np.bincount(key, share, minlength=possible)
                else:
                    keys.append(key)
                    weights.append(share)
        if dense:
            held = np.flatnonzero(counts > 0.0)
            return held, counts[held]
        key, weight = keys[0], weights[0]
        if len(keys) > 1:
            key, weight = np.concatenate(keys), np.concatenate(weights)
        if weight is None:
            key.sort()
        else:
            order = np.argsort(key)
            key, weight = key[order], weight[order]
        starts = starts_of(key)
        if weight is None:
            return key[starts], np.diff(starts, append=len(key)).astype(np.float64)
        return key[starts], add_runs(weight, starts)

    def count(self) -> None:
        """Add what is the same for all people of a group, baseline and label."""
        kinds, n, counts = self.kinds, len(self.held), self.counts
        cell, kind = _positions(self.key // kinds, self.held), self.key % kinds
        kind += self.held[cell] // self.signals * kinds
        held = _distinct(kind, len(self.people.groups) * kinds)
        position = _positions(kind, held)

        def grow(sums: Floats, numbers: Array) -> None:
            if numbers.any():
                sums += np.bincount(cell, numbers[position] * counts, minlength=n)

        now = None if self.now is None else held % kinds // self.n_labels
        grow(self.mass, np.ones(len(held)))
        for d in range(len(self.baseline_mass)) if now is not None else ():
            grow(self.baseline_mass[d], np.asarray(now == d))
        try:
            self._add(self._batch_of(held), now, grow, by_row=False)
        except HappinessError:  # a function that needs every row, or is wrong for one, which is then named
            self.by_row, self.cost_by_row = set(range(len(self.problem.happiness))), True

    def _batch_of(self, held: Codes) -> Batch:
        """One person of every group, baseline and label."""
        problem, people, kinds, n_labels = self.problem, self.people, self.kinds, self.n_labels
        group = as_objects(people.groups)[held // kinds]
        label, now = held % n_labels, held % kinds // n_labels
        known = people.labels is not None
        decided = problem.decisions[now] if problem.looks_at_baseline and self.now is not None else None
        return Batch(
            None,
            problem.labels[label] if known else None,
            label if known else None,
            group,
            np.arange(len(held)),
            decided,
            people.supposed,
        )

    def add_rows(self) -> None:
        """Add what looks at x, row by row."""
        if not self.by_row and not self.cost_by_row:
            return
        if self.place is not None:
            self.place = _positions(self.place, self.held)
        # Of few cells the rows of a batch are added up first: long sums lose digits.
        size, direct = len(self.held), len(self.held) > FEW_CELLS
        for part, batch in self.people.batches():
            spread = self._spread(part)

            def grow(sums: Floats, numbers: Array, spread: Spread = spread) -> None:
                if not numbers.any():
                    return
                numbers = numbers.astype(np.float64, copy=False)
                for at, share in spread:
                    if direct:
                        np.add.at(sums, at, _product(share, numbers))
                    else:
                        sums += np.bincount(at, _product(share, numbers), minlength=size)

            self._add(batch, None if self.now is None else self.now[part], grow, by_row=True)

    def _add(self, batch: Batch, now: Codes | None, grow: Grow, *, by_row: bool) -> None:
        """Add the worth of decisions to some people, of what looks at x or of what does not."""
        worth = worth_of(self.problem, batch)
        # All are evaluated before anything is added: an error leaves the sums as they were.
        known = {
            j: worth.values(j) for j in range(len(self.problem.happiness)) if (j in self.by_row) == by_row
        }
        if self.cost_by_row == by_row and worth.knows_cost:
            for d, cost in enumerate(worth.cost):
                grow(self.loss[d], cost)
            if now is not None:
                grow(self.baseline_loss, _own(worth.cost, now))
        if now is not None and self.wanted and by_row == any(j in self.by_row for j in self.wanted):
            lost_by = {j: known[j] if j in known else worth.values(j) for j in self.wanted}
            for d, lost in enumerate(self._worse(lost_by, now)):
                grow(self.worse[d], lost)
        for j, (values, counted) in known.items():
            if self.origin[j] is None:
                self.origin[j] = typical(values, counted)
            self._add_values(j, values, counted, now, grow)

    def _worse(self, worth: dict[int, tuple[Floats, Truths | None]], now: Codes) -> Truths:
        """Whom each decision gives less than the baseline's does, of any measure that people want more of."""
        lost = np.zeros((len(self.worse), len(now)), dtype=bool)
        for values, counted in worth.values():
            own = _own(values, now)
            less = own - values > SAME * np.abs(own)
            lost |= less if counted is None else less & counted
        return lost

    def _add_values(
        self, j: int, values: Floats, inside: Truths | None, now: Codes | None, grow: Grow
    ) -> None:
        """Add what decisions are worth by one measure."""
        if now is not None:
            own = _own(values, now)
            least = SAME * np.abs(own)
            for d in range(len(values)):
                more = values[d] - own
                grow(self.gains[d, j], _both(inside, more > least))
                grow(self.loses[d, j], _both(inside, more < -least))
        origin = self.origin[j]
        values = values - origin if origin else values
        if inside is None:
            self.everybody.add(j)
        else:
            grow(self.among[j], inside)
        rate = self.problem.happiness[j].rate
        for d in range(len(values)):
            numbers = _product(inside, values[d])
            grow(self.value[d, j], numbers)
            # Of a rate, the origin is one of its two values: the others are all at the same side of it.
            if not rate:
                grow(self.square[d, j], numbers * values[d])
        if rate:
            self.square[:, j] = np.abs(self.value[:, j])
        if now is not None:
            grow(self.baseline_value[j], _product(inside, own - origin if origin else own))

    def aggregates(self) -> Aggregates:
        """Return the sums, if they are finite."""
        people, problem = self.people, self.problem
        unknown = () if people.knows_baseline else COMPARED
        unknown = unknown if self.wanted else (*unknown, "worse")
        names = [name for name in ADDED if name not in unknown]
        refuse_overflow(problem, np.moveaxis(self.value, 1, -1), self.loss)
        self.among[sorted(self.everybody)] = self.mass
        return Aggregates(
            classes=problem.labels,
            decisions=problem.decisions,
            rising=problem.rising,
            order=problem.order,
            groups=people.groups,
            roles=people.roles,
            attributes=people.attributes,
            measures=problem.measures,
            signal=self.signal,
            loss_name=problem.loss.name,
            origin=np.array([0.0 if origin is None else origin for origin in self.origin]),
            sums=CellSums(
                len(people.groups), self.signals, self.held, {name: getattr(self, name) for name in names}
            ),
            rows=np.bincount(people.codes, minlength=len(people.groups)),
            weight_kind=people.weight_kind,
            whole=people.weight is None or bool((people.weight == np.rint(people.weight)).all()),
            baseline_given=people.baseline is not None,
        )


def _parts(n: int, size: int) -> list[slice]:
    """So many rows in parts of at most this size."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _distinct(codes: Codes, possible: int) -> Codes:
    """The codes that occur, in their order, of so many that are possible."""
    occurs = np.zeros(possible, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def _positions(codes: Codes, held: Codes) -> Codes:
    """The position of every code among those that occur."""
    possible = int(held[-1]) + 1 if len(held) else 0
    if possible == len(held):
        return codes
    if possible > 2 * DENSE:
        order, position = np.argsort(codes), np.zeros(len(codes), dtype=np.intp)
        position[starts_of(codes[order])[1:]] = 1
        found = np.empty(len(codes), dtype=np.intp)
        found[order] = position.cumsum()
        return found
    position = np.zeros(possible, dtype=np.int32)
    position[held] = np.arange(len(held), dtype=np.int32)
    return position[codes].astype(np.intp)


def _own(values: Floats, now: Codes) -> Floats:
    """What everybody gets from the baseline's decision."""
    return values.take(now * len(now) + np.arange(len(now)))


def _both(inside: Truths | None, truth: Truths) -> Truths:
    """Who is counted and of whom something is true, where None stands for everybody."""
    return truth if inside is None else inside & truth


def _product(left: Floats | Truths | None, right: Floats | Truths | None) -> Any:
    """Multiply, where None stands for ones."""
    if left is None or right is None:
        return right if left is None else left
    return left * right
