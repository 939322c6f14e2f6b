"""Sums: from the rows of a table in memory to moments, and the checks that every row passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.expressions import Expression, is_name
from felicific._problem.happiness import (
    ARGUMENTS,
    Batch,
    Happiness,
    arguments_of,
    check_bounds,
    evaluate,
    evaluate_among,
)
from felicific._program.moments import Moments
from felicific._program.signals import Signal, Spread
from felicific._tables.groups import encode_groups, find_groups
from felicific._tables.memory import (
    Array,
    Table,
    as_objects,
    as_vector,
    count_rows,
    distinct,
    encode,
    null_rows,
    row_argmax,
    slice_rows,
    take_rows,
    widener,
)
from felicific.exceptions import DataError, HappinessError

Floats = NDArray[np.float64]

#: Rows per batch: the happiness of a batch stays in the processor's cache (five times faster than all at once).
BATCH = 16384

#: Rows that a typical value of each component is taken from.
TYPICAL = 1024

#: Rows per batch when no function looks at them, and the most keys to count them by.
KEY_BATCH = 8 * BATCH
MOST_KEYS = 2**20

#: Sums from here on could overflow when they are added up over cells and groups.
LARGEST = 1e300

#: How far the probabilities of one person may be from summing to one (single precision models reach 1e-7).
PROBABILITY_TOLERANCE = 1e-6


def compute_moments(
    x: Table,
    *,
    y: Any,
    group: Array,
    classes: Array,
    happiness: tuple[Happiness, ...],
    signal: Signal,
    loss: Any = "error",
    proba: Any = None,
    predicted: Any = None,
    groups: Sequence[Any] | None = None,
    sample_weight: Any = None,
    first_row: int | None = None,
    checked: bool = False,
) -> Moments:
    """Sum over the rows of a table in memory, batch by batch.

    Parameters
    ----------
    x : table
        What a happiness function gets as ``x``.
    y, group : array of shape (n,)
        Labels and groups. Without labels (None) no component may look at them, and the loss is left at zero.
    classes : array of shape (K,)
        Distinct decisions, in the order of the columns of ``proba``.
    happiness : tuple of Happiness
        The components.
    signal : Signal
        What the policy sees.
    loss : "error", array of shape (K, K), callable or expression
        ``"error"`` counts wrong decisions; a matrix gives the cost of label (row) and decision (column); a
        function or an expression takes the arguments of a happiness.
    proba : array of shape (n, K), optional
        The model's probabilities. May be left out when ``predicted`` is given and the signal needs no more.
    predicted : array of shape (n,), optional
        The model's own decisions; by default the most probable class.
    groups : sequence, optional
        All groups there are. Needed when some rows will only come with other moments.
    sample_weight : array of shape (n,), optional
        Frequencies: weight 2 is the row twice, weight 0 the row absent.
    first_row : int, optional
        When these rows are a part of a larger table: what messages call the first of them.
    checked : bool
        Whether ``proba`` comes from :func:`check_proba`.
    """
    n = count_rows(x)
    y, group = None if y is None else as_vector(y, "y"), as_vector(group, "group")
    columns = {"labels y": y, "groups": group, "probabilities": proba, "predictions": predicted}
    for what, column in columns.items():
        if column is not None and len(column) != n:
            raise DataError(f"There are {len(column)} {what} for {n} rows.", "Pass one for every row.")
    rows = np.arange(n) + (first_row or 0)
    weight = check_weights(sample_weight, n, first_row)
    if weight is not None and not weight.all():
        # Weight 0 is the row absent: not even a NaN in it may be seen.
        present = np.flatnonzero(weight)
        x, group, weight, rows = take_rows(x, present), group[present], weight[present], rows[present]
        y = None if y is None else y[present]
        proba = None if proba is None else np.asarray(proba)[present]
        predicted = None if predicted is None else as_vector(predicted, "predictions")[present]
    known = (
        tuple(value.item() if isinstance(value, np.generic) else value for value in groups)
        if groups is not None
        else find_groups(group)
    )
    labels = None if y is None else encode_labels(y, classes, "label", rows)
    group_codes = encode_groups(group, known, rows)
    decided = None if predicted is None else encode_labels(predicted, classes, "prediction", rows)
    if proba is None and decided is None:
        raise DataError("There are neither probabilities nor predictions.", "Pass proba= or predicted=.")

    def seen(start: int, stop: int) -> tuple[Spread, NDArray[np.intp]]:
        """Signals of some rows, weights included, and the model's own decisions."""
        part = slice(start, stop)
        share = None if proba is None else proba[part]
        if share is not None and not checked:
            share = check_proba(share, len(classes), rows[part])
        own = decided[part] if decided is not None else row_argmax(share)  # type: ignore[arg-type]
        by = None if weight is None else weight[part]
        return [(cell, _product(by, spread)) for cell, spread in signal.spread(share, own)], own

    sums = _Sums(classes, known, happiness, signal, loss)
    sums.rows += np.bincount(group_codes, minlength=len(known))
    if labels is not None and sums.fits_keys:
        try:
            return _by_keys(sums, seen, group_codes, labels)
        except HappinessError:
            sums = sums.empty()  # once more, row by row, to name the row
    wide = widener(x)
    for start in range(0, len(rows), BATCH):
        part = slice(start, min(start + BATCH, len(rows)))
        table = wide(slice_rows(x, start, part.stop))
        batch = Batch(table, None if y is None else y[part], group[part], rows[part])
        sums.add(batch, None if labels is None else labels[part], group_codes[part], *seen(start, part.stop))
    return sums.moments()


def _by_keys(
    sums: _Sums,
    seen: Callable[[int, int], tuple[Spread, NDArray[np.intp]]],
    group: NDArray[np.intp],
    labels: NDArray[np.intp],
) -> Moments:
    """Count the rows of every (group, signal, own decision, label) and add them as if each were one weighted row.

    Without a function of x, all rows of such a key are alike.
    """
    k, size = len(sums.classes), sums.mass.shape[1]
    counts = np.zeros(sums.mass.size * k * k)
    for start in range(0, len(labels), KEY_BATCH):
        part = slice(start, min(start + KEY_BATCH, len(labels)))
        spread, own = seen(start, part.stop)
        for cell, share in spread:
            index = ((group[part] * size + cell) * k + own) * k + labels[part]
            counts += np.bincount(index, share, minlength=len(counts))
    held = np.flatnonzero(counts)
    label, own, place = held % k, held // k % k, held // (k * k)
    z = place // size
    batch = Batch(None, sums.classes[label], as_objects(sums.groups)[z], np.arange(len(held)))
    sums.add(batch, label, z, [(place % size, counts[held])], own)
    return sums.moments()


class _Sums:
    """The running sums of :func:`compute_moments`."""

    def __init__(
        self,
        classes: Array,
        groups: tuple[Any, ...],
        happiness: tuple[Happiness, ...],
        signal: Signal,
        loss: Any,
    ) -> None:
        self.classes, self.groups, self.happiness, self.signal = classes, groups, happiness, signal
        self.loss_name, self.cost = resolve_loss(loss, classes)
        g, s, k, j = len(groups), signal.size(len(classes)), len(classes), len(happiness)
        self.origin: list[float | None] = [None] * j
        # Cells come last, side by side in memory, because they are what is added up.
        self.mass, self.loss = np.zeros((g, s)), np.zeros((k, g, s))
        self.value, self.among = np.zeros((k, j, g, s)), np.zeros((j, g, s))
        self.today_loss, self.today_value = np.zeros((g, s)), np.zeros((j, g, s))
        self.rows = np.zeros(g, dtype=np.int64)

    def empty(self) -> _Sums:
        """The same with no sums but the rows."""
        cost = "error" if self.loss_name == "error" else self.cost
        found = _Sums(self.classes, self.groups, self.happiness, self.signal, cost)
        found.rows = self.rows
        return found

    @property
    def fits_keys(self) -> bool:
        """Whether nothing looks at x, and there are few enough keys to count."""
        functions = [self.cost] if callable(self.cost) else []
        functions += [part for h in self.happiness for part in (h.function, h.among) if part is not None]
        looks = any("x" in arguments_of(function, "It", ARGUMENTS) for function in functions)
        return not looks and self.mass.size * len(self.classes) ** 2 <= MOST_KEYS

    def add(
        self,
        batch: Batch,
        labels: NDArray[np.intp] | None,
        group: NDArray[np.intp],
        spread: Spread,
        own: NDArray[np.intp],
    ) -> None:
        """Add one batch of rows; ``spread`` are their signals, weights included."""
        with np.errstate(all="ignore"):  # what is not finite, or overflows, is refused by name
            self._add(batch, labels, group, spread, own)

    def _add(
        self,
        batch: Batch,
        labels: NDArray[np.intp] | None,
        group: NDArray[np.intp],
        spread: Spread,
        own: NDArray[np.intp],
    ) -> None:
        g, s = self.mass.shape
        cells = [(group * s + cell, share) for cell, share in spread]

        def per_cell(numbers: Floats | None) -> Floats:
            parts = [np.bincount(index, _product(share, numbers), minlength=g * s) for index, share in cells]
            return np.asarray(sum(parts[1:], start=parts[0]), dtype=np.float64).reshape(g, s)

        everyone = np.arange(len(group))
        mass = per_cell(None)
        self.mass += mass
        losses = self._losses(batch, labels)
        for d in range(len(self.classes)):
            self.loss[d] += per_cell(losses[d])
        self.today_loss += per_cell(losses[own, everyone])
        for j, happiness in enumerate(self.happiness):
            counted = evaluate_among(happiness, batch)
            inside = None if counted is None else counted.astype(np.float64)
            self.among[j] += mass if inside is None else per_cell(inside)
            values = self._values(j, batch, counted)
            for d in range(len(self.classes)):
                self.value[d, j] += per_cell(_product(inside, values[d]))
            self.today_value[j] += per_cell(_product(inside, values[own, everyone]))

    def _losses(self, batch: Batch, labels: NDArray[np.intp] | None) -> Floats:
        if labels is None:
            return np.zeros((len(self.classes), len(batch.group)))
        if isinstance(self.cost, np.ndarray):
            return np.ascontiguousarray(self.cost[labels].T)
        decisions = self.classes.tolist()
        return np.stack([evaluate(self.cost, "The loss", batch, decision) for decision in decisions])

    def _values(self, j: int, batch: Batch, counted: NDArray[np.bool_] | None) -> Floats:
        happiness = self.happiness[j]
        what = f"The happiness {happiness.name!r}"
        values = np.stack(
            [
                evaluate(happiness.function, what, batch, decision, counted)
                for decision in self.classes.tolist()
            ]
        )
        for decision, worth in zip(self.classes.tolist(), values, strict=True):
            check_bounds(happiness, worth, counted, batch, decision)
        seen = values if counted is None else values[:, counted]
        if self.origin[j] is None and seen.size:
            self.origin[j] = float(np.median(seen[:, :TYPICAL]))
        values -= self.origin[j] or 0.0
        return values

    def moments(self) -> Moments:
        """Return the sums so far, if they are finite."""
        loss, among, today = (np.moveaxis(part, 0, -1) for part in (self.loss, self.among, self.today_value))
        value = np.moveaxis(self.value, (0, 1), (-2, -1))
        refuse_overflow(self.happiness, value, loss)
        return Moments(
            classes=self.classes,
            groups=self.groups,
            components=tuple(happiness.component for happiness in self.happiness),
            signal=self.signal,
            loss_name=self.loss_name,
            origin=np.array([0.0 if origin is None else origin for origin in self.origin]),
            mass=self.mass,
            loss=loss,
            value=value,
            among=among,
            today_loss=self.today_loss,
            today_value=today,
            rows=self.rows,
        )


def refuse_overflow(happiness: tuple[Happiness, ...], value: Floats, loss: Floats) -> None:
    """Refuse sums that are infinite, or would be once they are added up or subtracted."""
    remedy = "Use a larger unit (thousands of dollars, say)."
    for j, component in enumerate(happiness):
        if not np.abs(value[..., j]).max(initial=0.0) < LARGEST:
            raise HappinessError(
                f"The happiness {component.name!r} is so large that its sum overflows.", remedy
            )
    if not np.abs(loss).max(initial=0.0) < LARGEST:
        raise DataError("The loss is so large that its sum overflows.", remedy)


def _product(left: Floats | None, right: Floats | None) -> Any:
    """Multiply, where None stands for ones."""
    if left is None or right is None:
        return right if left is None else left
    return left * right


def resolve_loss(loss: Any, classes: Array) -> tuple[str, Any]:
    """Name of the loss, and its cost matrix (label, decision) or function."""
    k = len(classes)
    if isinstance(loss, str):
        if loss == "error":
            return "error", 1.0 - np.eye(k)
        if is_name(loss):
            raise DataError(
                f"There is no loss called {loss!r}.",
                "Use 'error', a cost matrix, or a function or an expression of the decision.",
            )
        return f"expression {loss.strip()}", Expression(loss.strip())
    if callable(loss):
        arguments_of(loss, "The loss", ARGUMENTS)
        return f"function {getattr(loss, '__name__', type(loss).__name__)}", loss
    try:
        cost = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        cost = np.full((k, k), np.nan)
    if cost.shape != (k, k) or not np.isfinite(cost).all():
        raise DataError(
            f"The cost matrix has shape {cost.shape}."
            if cost.shape != (k, k)
            else f"The cost matrix {loss!r} is not finite numbers throughout.",
            f"Give one finite cost for every label (row) and decision (column): {k} x {k}.",
        )
    return f"cost matrix {cost.tolist()}", cost


def encode_labels(values: Any, classes: Array, what: str, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Position of every label in ``classes``; a missing or unknown one is an error."""
    vector = as_vector(values, what)
    missing = null_rows(vector)
    if len(missing):
        raise DataError(
            f"The {what} is missing in {len(missing)} rows, first in row {rows[missing[0]]}.",
            "Leave those rows out.",
        )
    codes = encode(vector, classes.tolist())
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        names = ", ".join(repr(name) for name in distinct(vector[unknown])[:5])
        raise DataError(
            f"The {what} {names} (first in row {rows[unknown[0]]}) is not among the classes {classes.tolist()}.",
            "Leave such rows out, or name every class there is.",
        )
    return codes


def check_proba(proba: Any, n_classes: int, rows: NDArray[np.intp]) -> Floats:
    """Probabilities as float64 rows that sum to one exactly; anything else is an error that names a row."""
    array = np.asarray(proba)
    if array.ndim != 2 or array.shape[1] != n_classes or array.dtype.kind not in "biuf":
        raise DataError(
            f"The probabilities have shape {array.shape} and type {array.dtype}.",
            f"Pass one row per person and one column for each of the {n_classes} classes.",
        )
    found = np.empty(array.shape)
    for start in range(0, len(array), KEY_BATCH):  # what stays in the processor's cache is faster
        part = slice(start, start + KEY_BATCH)
        _normalise(array[part].astype(np.float64, copy=False), rows[part], found[part])
    return found


def _normalise(array: Floats, rows: NDArray[np.intp], found: Floats) -> None:
    """Check probabilities and divide them by their sums into ``found``."""
    # Added up in the order of the classes, as every engine can: the fine bins are then the same everywhere.
    sums = array[:, 0].copy()
    for k in range(1, array.shape[1]):
        sums += array[:, k]
    with np.errstate(invalid="ignore"):
        # The extremes tell whether anything is wrong; NaN is neither small nor large.
        off = np.abs([sums.min(initial=1.0) - 1.0, sums.max(initial=1.0) - 1.0])
        if not (array.min(initial=0.0) >= 0 and (off <= PROBABILITY_TOLERANCE).all()):
            right = (array >= 0).all(axis=1) & (np.abs(sums - 1.0) <= PROBABILITY_TOLERANCE)
            i = int(np.argmin(right))
            raise DataError(
                f"The probabilities of row {rows[i]} are {array[i].tolist()}: "
                "not finite numbers from 0 to 1 that sum to one.",
                "Pass what predict_proba returns, every class included.",
            )
    for k in range(array.shape[1]):
        np.divide(array[:, k], sums, out=found[:, k])


def check_weights(sample_weight: Any, n: int, first_row: int | None = None) -> Floats | None:
    """Weights as float64; anything but finite numbers of 0 or more, not all 0 in a whole table, is an error."""
    if sample_weight is None:
        return None
    weight = as_vector(sample_weight, "sample_weight")
    if len(weight) != n:
        raise DataError(f"There are {len(weight)} weights for {n} rows.", "Pass one weight for every row.")
    if weight.dtype.kind not in "biuf":
        raise DataError(f"The weights are {weight.dtype}, not numbers.", "Pass numbers of 0 or more.")
    weight = weight.astype(np.float64)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(
            f"The weight of row {i + (first_row or 0)} is {weight[i]}.",
            "Weights are finite numbers of 0 or more.",
        )
    if n and first_row is None and not weight.any():
        raise DataError("All weights are zero: nobody is left.", "Give some row a positive weight.")
    return weight
