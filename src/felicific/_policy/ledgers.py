"""Ledgers: what every decision is worth to every person, expected or under the real label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import ARGUMENTS, Batch, Happiness, arguments_of, evaluate, evaluate_among
from felicific._program.generation import Ledger
from felicific._program.summing import BATCH
from felicific._tables.memory import Array, Table, count_rows, slice_rows, widener

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Terms:
    """What is valued: decisions, groups, happiness, loss; and whether the policy sees the group."""

    classes: Array
    groups: tuple[Any, ...]
    happiness: tuple[Happiness, ...]
    cost: Any
    see_group: bool


#: One possible truth about a batch: labels, groups, its probability, and the slot of the group it speaks of.
_Case = tuple[Array | None, Array, Any, Any]


def expected_ledger(terms: Terms, x: Table, belief: Floats, group: Array | None, origin: Floats) -> Ledger:
    """Expected values under a belief about what is not seen.

    ``belief`` is p(label) of shape (n, K) when the group is seen, else p(label, group) of shape (n, K, groups).
    """

    def cases(rows: slice, look_at_y: bool) -> Iterator[_Case]:
        part = belief[rows]
        n = len(part)
        slots = [(0, group[rows])] if group is not None else []
        if not terms.see_group:
            slots = [(z, _filled(n, value, terms.groups)) for z, value in enumerate(terms.groups)]
        for slot, groups in slots:
            mine = part if terms.see_group else part[:, :, slot]
            if look_at_y:
                for k in range(len(terms.classes)):
                    yield np.full(n, terms.classes[k]), groups, mine[:, k], slot
            else:
                yield None, groups, np.ones(n) if terms.see_group else mine.sum(axis=1), slot

    return _ledger(terms, x, cases, origin, np.arange(len(belief)))


def real_ledger(terms: Terms, x: Table, y: Array, group: Array, codes: Codes, origin: Floats) -> Ledger:
    """Values under the real labels and groups."""

    def cases(rows: slice, look_at_y: bool) -> Iterator[_Case]:
        n = len(y[rows])
        yield y[rows], group[rows], np.ones(n), 0 if terms.see_group else codes[rows]

    return _ledger(terms, x, cases, origin, np.arange(len(y)))


def find_origin(terms: Terms, x: Table, y: Array | None, group: Array | None) -> Floats:
    """A typical value of every component, from the first batch."""
    n = min(count_rows(x), BATCH)
    groups = group[:n] if group is not None else _filled(n, terms.groups[0], terms.groups)
    labels = y[:n] if y is not None else np.full(n, terms.classes[0])
    batch = Batch(widener(x)(slice_rows(x, 0, n)), labels, groups, np.arange(n))
    origin = np.zeros(len(terms.happiness))
    for j, happiness in enumerate(terms.happiness):
        what, counted = f"The happiness {happiness.name!r}", evaluate_among(happiness, batch)
        decisions = terms.classes.tolist()
        values = np.stack([evaluate(happiness.function, what, batch, d, counted) for d in decisions])
        seen = values if counted is None else values[:, counted]
        origin[j] = np.median(seen) if seen.size else 0.0
    return origin


def _filled(n: int, value: Any, known: tuple[Any, ...]) -> Array:
    filled = np.empty(n, dtype=np.asarray(known).dtype if len({type(k) for k in known}) == 1 else object)
    filled[:] = value
    return filled


def _ledger(terms: Terms, x: Table, cases: Any, origin: Floats, numbers: NDArray[np.intp]) -> Ledger:
    """Add up the cases, batch by batch; sums are term by term, so they do not depend on the batch."""
    n, k, j = len(numbers), len(terms.classes), len(terms.happiness)
    slots = 1 if terms.see_group else len(terms.groups)
    decisions = terms.classes.tolist()
    cost, value, among = np.zeros((n, k)), np.zeros((n, k, slots, j)), np.zeros((n, slots, j))
    matrix = terms.cost if isinstance(terms.cost, np.ndarray) else None
    loss_looks = matrix is not None or "y" in arguments_of(terms.cost, "The loss", ARGUMENTS)
    wide = widener(x)
    for start in range(0, n, BATCH):
        rows = slice(start, min(start + BATCH, n))
        here = numbers[rows]
        table = wide(slice_rows(x, start, rows.stop))
        for y, group, weight, _ in cases(rows, loss_looks):
            batch = Batch(table, y, group, here)
            if matrix is not None:
                cost[rows] += weight[:, None] * matrix[_codes(y, terms.classes)]
                continue
            for d, decision in enumerate(decisions):
                cost[rows, d] += weight * evaluate(terms.cost, "The loss", batch, decision)
        for c, happiness in enumerate(terms.happiness):
            what = f"The happiness {happiness.name!r}"
            for y, group, weight, slot in cases(rows, happiness.looks_at_y):
                batch = Batch(table, y, group, here)
                counted = evaluate_among(happiness, batch)
                inside = weight if counted is None else weight * counted
                among[here, slot, c] += inside
                for d, decision in enumerate(decisions):
                    worth = evaluate(happiness.function, what, batch, decision, counted)
                    value[here, d, slot, c] += inside * (worth - origin[c])
    return Ledger(cost, value, among)


def _codes(y: Array | None, classes: Array) -> Codes:
    from felicific._tables.memory import encode

    return encode(np.asarray(y), classes.tolist())
