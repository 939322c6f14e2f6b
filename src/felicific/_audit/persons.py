r"""What decisions do to each person: the values that intervals are made of.

.. math:: v_{ij} = \sum_d q_i(d) \, \eta_j(d; i), \qquad l_i = \sum_d q_i(d) \, c(d; i)

with the probabilities :math:`q_i` of the decisions about person i: a lottery counts by its odds, not by one draw.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import (
    ARGUMENTS,
    Batch,
    Component,
    Happiness,
    arguments_of,
    check_bounds,
    evaluate,
    evaluate_among,
)
from felicific._program.summing import check_proba, encode_labels, resolve_loss
from felicific._statistics.intervals import Sample
from felicific._tables.groups import encode_groups, find_groups
from felicific._tables.memory import Array, Table, distinct, null_rows, slice_rows, widener
from felicific.exceptions import DataError, GroupError, HappinessError

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Rows per batch: one decision is looked at at a time, so that more fit into the processor's cache than of moments.
ROWS = 65_536


@dataclass(frozen=True, eq=False)
class Tally:
    """What is kept of people in a table that is not in memory.

    Attributes
    ----------
    sample : Sample
        Of shape (groups, components), relative to the origin.
    loss : Sample, or None
        Of all people together, of shape (1,).
    loss_is_rate : bool
        Whether every loss is 0 or 1.
    rows : int
    weighted, whole : bool
        Whether there are weights, and whether all of them are whole numbers.
    """

    sample: Sample
    loss: Sample | None
    loss_is_rate: bool
    rows: int
    weighted: bool
    whole: bool


@dataclass(frozen=True, eq=False)
class Persons:
    """People of positive weight with what decisions do to them.

    Attributes
    ----------
    groups : tuple
    codes : array of shape (n,)
        Position of each person's group.
    components : tuple of Component
    origin : array of shape (components,)
        A typical value of every component; ``values`` are relative to it.
    values : array of shape (n, components)
        Happiness of each person, expected over the lottery; 0 for people who are not counted.
    inside : bool array of shape (n, components), or None
        Who is counted; None for everybody.
    binary : bool array of shape (components,)
        Whether all values of the component are 0 or 1.
    losses : array of shape (n,), or None
        Loss of each person; None without labels.
    loss_bounds : (low, high) or None
        The range of the loss, when it is known.
    weight : array of shape (n,), or None
    sampling : bool
        Whether weights are sampling weights; else they are frequencies.
    fingerprint : int
        Of who these people are and what every decision would be worth to them, whatever was decided.
    tally : Tally, or None
        When the people are in a table that is not in memory: their sums. ``codes`` and ``weight`` are then of the
        groups, and ``values`` and ``losses`` only say how large they are.
    """

    groups: tuple[Any, ...]
    codes: Codes
    components: tuple[Component, ...]
    origin: Floats
    values: Floats
    inside: NDArray[np.bool_] | None
    binary: NDArray[np.bool_]
    losses: Floats | None
    loss_bounds: tuple[float, float] | None
    weight: Floats | None
    sampling: bool
    fingerprint: int
    tally: Tally | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.codes) if self.tally is None else self.tally.rows

    def bounds(self, j: int) -> tuple[float, float] | None:
        """Known range of a component, relative to its origin."""
        known = self.components[j].bounds
        return None if known is None else (known[0] - self.origin[j], known[1] - self.origin[j])

    def of(self, z: int, j: int) -> Floats:
        """Values of one group, each repeated as often as its frequency says."""
        rows = self.codes == z
        if self.inside is not None:
            rows &= self.inside[:, j]
        found = self.values[rows, j]
        return found if self.weight is None else np.repeat(found, self.weight[rows].astype(np.intp))

    @property
    def countable(self) -> bool:
        """Whether everybody is a whole number of people, as exact and distribution-free methods need."""
        if self.tally is not None:
            return self.tally.whole and not self.sampling
        return self.weight is None or (
            not self.sampling and bool((self.weight == np.rint(self.weight)).all())
        )


def find_values(
    x: Table,
    *,
    y: Array | None,
    group: Array,
    decisions: Floats,
    classes: Array,
    happiness: tuple[Happiness, ...],
    loss: Any = "error",
    weight: Floats | None = None,
    sampling: bool = False,
    groups: tuple[Any, ...] | None = None,
    rows: Codes | None = None,
) -> Persons:
    """What decision probabilities of shape (n, K) do to people in memory, batch by batch.

    All rows have a positive weight; ``rows`` are their numbers in the user's table, for messages.
    """
    n, k, j = len(decisions), len(classes), len(happiness)
    rows = np.arange(n) if rows is None else rows
    known = find_groups(group) if groups is None else groups
    codes = encode_groups(group, known, rows)
    labels = None if y is None else encode_labels(y, classes, "label", rows)
    cost = resolve_loss(loss, classes)[1]
    # Component by component in memory: that is how they are summed up later.
    values, losses = np.zeros((j, n)).T, None if lacks_loss(y, cost) else np.zeros(n)
    inside = np.ones((j, n), dtype=bool).T if any(h.among is not None for h in happiness) else None
    sums = _Values(classes.tolist(), happiness, cost)
    wide = widener(x)
    for start in range(0, n, ROWS):
        part = slice(start, min(start + ROWS, n))
        batch = Batch(
            wide(slice_rows(x, start, part.stop)), None if y is None else y[part], group[part], rows[part]
        )
        q = check_proba(decisions[part], k, rows[part])
        for c in range(j):
            values[part, c], counted = sums.happiness_of(c, batch, q)
            if counted is not None and inside is not None:
                inside[part, c] = counted
        if losses is not None:
            losses[part] = sums.loss_of(batch, None if labels is None else labels[part], q)
    fingerprint = sums.fingerprint
    for array in (codes, labels, weight):
        fingerprint = fingerprint if array is None else _checksum(array, fingerprint)
    persons = Persons(
        groups=known,
        codes=codes,
        components=tuple(h.component for h in happiness),
        origin=np.array([origin or 0.0 for origin in sums.origin]),
        values=values,
        inside=inside,
        binary=sums.binary,
        losses=losses,
        loss_bounds=(float(cost.min()), float(cost.max())) if isinstance(cost, np.ndarray) else None,
        weight=weight,
        sampling=sampling,
        fingerprint=fingerprint,
    )
    check_persons(persons)
    return persons


def lacks_loss(y: Any, cost: Any) -> bool:
    """Whether the loss cannot be known, because it looks at labels and there are none."""
    return y is None and (not callable(cost) or "y" in arguments_of(cost, "The loss", ARGUMENTS))


def check_persons(persons: Persons) -> None:
    """Refuse people among whom no gap can be measured."""
    _check_complete(persons)
    _check_size(persons)


def _checksum(array: Array, before: int) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data, before)


class _Values:
    """The part of :func:`find_values` that remembers: origins, a checksum, which components are rates."""

    def __init__(self, decisions: list[Any], happiness: tuple[Happiness, ...], cost: Any) -> None:
        self.decisions, self.happiness, self.cost = decisions, happiness, cost
        self.origin: list[float | None] = [None] * len(happiness)
        self.binary = np.ones(len(happiness), dtype=bool)
        self.fingerprint = 0

    def happiness_of(self, j: int, batch: Batch, q: Floats) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Value of every person relative to the component's origin, and who is counted (None: everybody)."""
        happiness = self.happiness[j]
        what = f"The happiness {happiness.name!r}"
        counted = evaluate_among(happiness, batch)
        found = np.zeros(len(q))
        for d, decision in enumerate(self.decisions):
            worth = evaluate(happiness.function, what, batch, decision, counted)
            check_bounds(happiness, worth, counted, batch, decision)
            self.fingerprint = _checksum(worth, self.fingerprint)
            if self.origin[j] is None and (counted is None or counted.any()):
                self.origin[j] = float(np.median(worth if counted is None else worth[counted]))
            found += q[:, d] * (worth - (self.origin[j] or 0.0))
        if counted is not None:
            found[~counted] = 0.0
        if self.binary[j]:
            raw = (found if counted is None else found[counted]) + (self.origin[j] or 0.0)
            self.binary[j] = bool(((raw == 0.0) | (raw == 1.0)).all())
        return found, counted

    def loss_of(self, batch: Batch, labels: Codes | None, q: Floats) -> Floats:
        """Loss of every person."""
        if isinstance(self.cost, np.ndarray):
            return np.asarray(np.einsum("ik,ik->i", q, self.cost[labels]))
        losses = (evaluate(self.cost, "The loss", batch, decision) for decision in self.decisions)
        return np.asarray(sum(q[:, d] * loss for d, loss in enumerate(losses)))


def _check_complete(persons: Persons) -> None:
    """Insist on two groups, each with somebody in every component."""
    if len(persons.groups) < 2:
        raise GroupError(
            f"There is one group only: {persons.groups[0]!r}." if persons.groups else "There is no group.",
            "A gap is between groups: pass rows of at least two.",
        )
    for j, component in enumerate(persons.components):
        counted = persons.codes if persons.inside is None else persons.codes[persons.inside[:, j]]
        empty = np.flatnonzero(np.bincount(counted, minlength=len(persons.groups)) == 0)
        if len(empty):
            raise HappinessError(
                f"Nobody of the group {persons.groups[empty[0]]!r} is counted by {component.name!r}.",
                "Add such rows, widen `among`, or merge the group with another.",
            )


def _check_size(persons: Persons) -> None:
    """Refuse values whose squares and cubes a computer cannot hold."""
    losses = persons.losses if persons.losses is not None else np.zeros(1)
    sizes = [
        *np.abs(persons.values).max(axis=0, initial=0.0).tolist(),
        float(np.abs(losses).max(initial=0.0)),
    ]
    names = [f"happiness {component.name!r}" for component in persons.components] + ["loss"]
    for name, size in zip(names, sizes, strict=True):
        if size and not 1e-70 < size < 1e70:
            raise HappinessError(
                f"The {name} is of the size {size:.3g}, which is too {'large' if size > 1 else 'small'} to audit.",
                "Use another unit (thousands or thousandths of it, say).",
            )


def as_decisions(
    decisions: Any, y: Array | None, classes: Any, rows: int | None = None
) -> tuple[Floats, Array]:
    """Decision probabilities of shape (n, K), and the classes, from what a system decided.

    ``decisions`` are one decision per person, or the probability of each decision.
    """
    array = decisions.to_numpy() if hasattr(decisions, "to_numpy") else np.asarray(decisions)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise DataError(
            f"The decisions have shape {array.shape}.",
            "Pass one decision per person, or probabilities of shape (n, classes).",
        )
    if not len(array):
        raise DataError("There are no decisions.", "Pass at least one row of every group.")
    if rows is not None and len(array) != rows:
        raise DataError(f"There are {len(array)} decisions for {rows} rows.", "Pass one for every row.")
    known = find_classes(array, y, classes)
    if array.ndim == 2:
        return array, known
    codes = encode_labels(array, known, "decision", np.arange(len(array)))
    return np.eye(len(known))[codes], known


def find_classes(array: Array, y: Array | None, classes: Any = None) -> Array:
    """The decisions there are: as they are named, else those that were taken and the labels."""
    if classes is not None:
        known = list(classes)
    elif array.ndim == 2:
        known = distinct(y) if y is not None else []
        if len(known) != array.shape[1]:
            raise DataError(
                f"The decisions are probabilities of {array.shape[1]} classes, and nobody said which.",
                "Pass classes=, in the order of the columns.",
            )
    else:
        held = np.delete(array, null_rows(array))  # missing ones are refused by row later
        if held.dtype.kind == "f" and bool((held != np.rint(held)).any()):
            raise DataError(
                "The decisions are fractions.",
                "Probabilities of decisions have one column per class; decisions are classes.",
            )
        if y is not None and (held.dtype.kind in "OU") != (y.dtype.kind in "OU"):
            raise DataError(
                f"The decisions are {held.dtype} and the labels {y.dtype}.",
                "Use the same values for both, or pass classes=.",
            )
        known = distinct(held if y is None else np.concatenate([held, y]))
    if len(known) < 2 or len(set(known)) < len(known):
        raise DataError(f"The classes are {known}.", "Name at least two different ones: pass classes=.")
    made = np.asarray(known)
    return made if made.dtype.kind != "U" or array.dtype.kind != "O" else made.astype(object)
