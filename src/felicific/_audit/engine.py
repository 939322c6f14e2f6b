r"""Tallies: what decisions do to people in a table that is not in memory, as the sums that intervals are made of.

Of every group and component the weight, the mean and the second and third central moments are kept. Those of two parts
combine without going back to the rows (Pébay 2008): with :math:`\delta = m_B - m_A` and :math:`W = W_A + W_B`,

.. math::
    m &= m_A + \delta W_B / W, \qquad
    M_2 = M_{2A} + M_{2B} + \delta^2 W_A W_B / W, \\
    M_3 &= M_{3A} + M_{3B} + \delta^3 W_A W_B (W_A - W_B) / W^2
          + 3 \delta (W_A M_{2B} - W_B M_{2A}) / W.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._audit.persons import Persons, Tally, check_persons, lacks_loss
from felicific._problem.happiness import (
    Batch,
    check_bounds,
    evaluate,
    evaluate_among,
)
from felicific._program.plan import Ask, Rows, fold_rows, make_plan, no_rows
from felicific._program.summing import BATCH, check_proba, encode_labels, resolve_loss
from felicific._statistics.intervals import Sample
from felicific._tables.engine import Engine
from felicific._tables.groups import encode_groups, find_groups
from felicific._tables.memory import Array, widener

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class _Part:
    """Some people: arrays of shape (groups, components + 1), the last for the loss; means relative to the origin."""

    groups: tuple[Any, ...]
    origin: Floats
    rows: Floats
    total: Floats
    weight: Floats
    squares: Floats
    mean: Floats
    second: Floats
    third: Floats
    odd: Floats
    largest: Floats
    whole: bool

    def __add__(self, other: _Part) -> _Part:
        groups = self.groups
        if groups != other.groups:
            groups = find_groups(np.array([*{*groups, *other.groups}, None], dtype=object)[:-1])
        # The typical value of whoever is counted: zero is none, and subtracting it would cost digits.
        origin = np.where(self.weight.any(axis=0), self.origin, other.origin)
        a, b = self._aligned(groups, origin), other._aligned(groups, origin)
        weight = a.weight + b.weight
        held = np.where(weight > 0, weight, 1.0)
        # An empty part has no mean to speak of.
        apart = np.where((a.weight > 0) & (b.weight > 0), b.mean - a.mean, 0.0)
        product = a.weight * b.weight / held
        return replace(
            a,
            rows=a.rows + b.rows,
            total=a.total + b.total,
            weight=weight,
            squares=a.squares + b.squares,
            mean=np.where(a.weight > 0, a.mean + apart * b.weight / held, b.mean),
            second=a.second + b.second + apart**2 * product,
            third=a.third
            + b.third
            + apart**3 * product * (a.weight - b.weight) / held
            + 3.0 * apart * (a.weight * b.second - b.weight * a.second) / held,
            odd=a.odd + b.odd,
            largest=np.maximum(a.largest, b.largest),
            whole=a.whole and b.whole,
        )

    def _aligned(self, groups: tuple[Any, ...], origin: Floats) -> _Part:
        """The same people with a place for every group, relative to another origin."""
        place = [groups.index(group) for group in self.groups]

        def spread(array: Floats) -> Floats:
            wide = np.zeros((len(groups), *array.shape[1:]))
            wide[place] = array
            return wide

        moved = replace(self, mean=self.mean + (self.origin - origin), origin=origin, groups=groups)
        names = ("rows", "total", "weight", "squares", "mean", "second", "third", "odd")
        wide: dict[str, Any] = {name: spread(getattr(moved, name)) for name in names}
        return replace(moved, **wide)


def tally(engine: Engine, ask: Ask, sampling: bool, policy: Any = None) -> Persons:
    """What is decided about the people of a table that is not in memory does to them.

    By the column ``ask.predicted``; or by a policy, a lottery counting by its odds.
    """
    plan = make_plan(engine, ask)
    if policy is not None:
        seen = policy.columns_seen(engine, ask.sensitive_features)
        reason = (
            plan.reason if seen is not None else "The policy cannot be written as expressions of columns."
        )
        plan = replace(plan, used=tuple(dict.fromkeys([*plan.used, *(seen or ())])), reason=reason)
    found: _Part = fold_rows(engine, ask, plan, partial(_rows_part, policy), _Part.__add__)
    if not found.rows.sum():
        raise no_rows(ask.weight)
    cost = resolve_loss(ask.loss, ask.classes)[1]
    j, lossless = len(ask.happiness), lacks_loss(ask.y, cost)
    sample = _sample(found, sampling)
    everyone = _everyone(found)
    loss = None if lossless else _sample(everyone, sampling).take(j)
    loss = None if loss is None else replace(loss, mean=loss.mean + found.origin[j])
    persons = Persons(
        groups=found.groups,
        codes=np.arange(len(found.groups)),
        components=tuple(happiness.component for happiness in ask.happiness),
        origin=found.origin[:j],
        values=np.tile(found.largest[:j], (len(found.groups), 1)),
        inside=found.weight[:, :j] > 0,
        binary=found.odd[:, :j].sum(axis=0) == 0,
        losses=None if lossless else found.largest[j:],
        loss_bounds=(float(cost.min()), float(cost.max())) if isinstance(cost, np.ndarray) else None,
        weight=found.total,
        sampling=sampling,
        fingerprint=0,
        tally=Tally(
            sample=Sample(*(part[:, :j] for part in (sample.n, sample.mean, sample.sd, sample.skewness))),
            loss=loss,
            loss_is_rate=bool(found.odd[:, j].sum() == 0),
            rows=int(found.rows.sum()),
            weighted=ask.weight is not None,
            whole=found.whole,
        ),
    )
    check_persons(persons)
    return persons


def _sample(part: _Part, sampling: bool) -> Sample:
    """Central moments as the sizes, means, deviations and skewness of the groups."""
    held = np.where(part.weight > 0, part.weight, 1.0)
    n = part.weight**2 / np.where(part.squares > 0, part.squares, 1.0) if sampling else part.weight
    scale = np.sqrt(np.maximum(part.second, 0.0) / held)
    # Equal values differ from their mean by its rounding alone.
    scale = np.where(scale <= 1e-13 * np.abs(part.mean), 0.0, scale)
    unit = np.where(scale > 0, scale, 1.0)
    sd = np.where(n < 2, 0.0, scale * np.sqrt(n / np.maximum(n - 1.0, 1e-300)))
    return Sample(n, part.mean, sd, np.where(scale > 0, part.third / held / unit / unit / unit, 0.0))


def _everyone(part: _Part) -> _Part:
    """All groups as one."""
    found = None
    for z in range(len(part.groups)):
        names = ("rows", "total", "weight", "squares", "mean", "second", "third", "odd")
        one: dict[str, Any] = {name: getattr(part, name)[z : z + 1] for name in names}
        here = replace(part, groups=("everyone",), **one)
        found = here if found is None else found + here
    return part if found is None else found


# ---------------------------------------------------------------------------------------------------------
# Rows in memory


def _rows_part(policy: Any, ask: Ask, rows: Rows) -> _Part:
    """Sum up some rows, batch by batch; rows of weight 0 are absent."""
    rows, numbers = rows.present()
    groups = ask.groups if ask.groups is not None else find_groups(rows.group)
    codes = encode_groups(rows.group, groups, numbers)
    own = None if policy is not None else encode_labels(rows.predicted, ask.classes, "decision", numbers)
    labels = None if rows.y is None else encode_labels(rows.y, ask.classes, "label", numbers)
    weight = np.ones(len(codes)) if rows.weight is None else rows.weight
    found, wide = _nobody(groups, len(ask.happiness) + 1), widener(rows.table)
    for start in range(0, len(codes), BATCH):
        part = slice(start, min(start + BATCH, len(codes)))
        some = rows.part(part)
        q = (
            np.eye(len(ask.classes))[own[part]]
            if own is not None
            else apply_policy(policy, ask.classes, some, numbers[part])
        )
        batch = Batch(wide(some.table), some.y, some.group, numbers[part])
        values = _values(ask, batch, q, None if labels is None else labels[part])
        found += _summed(groups, codes[part], weight[part], values)
    return found


def apply_policy(policy: Any, classes: Array, rows: Rows, numbers: Codes) -> Floats:
    """Probability of every decision of a policy about some rows; their numbers name the one that is wrong."""
    group = rows.group if policy.see_group else None
    if rows.predicted is not None and not policy.needs_proba:
        encode_labels(rows.predicted, classes, "prediction", numbers)
        return np.asarray(policy.apply(rows.predicted, group, rows.table))
    check_proba(rows.proba, len(classes), numbers)
    return np.asarray(policy.apply(rows.proba, group, rows.table))


@dataclass(frozen=True)
class _Value:
    """Of one component, or the loss: values relative to a typical one, and who is counted (None: everybody)."""

    away: Floats
    origin: float
    counted: NDArray[np.bool_] | None = None


def _values(ask: Ask, batch: Batch, q: Floats, labels: Codes | None) -> list[_Value]:
    """What every person may expect of what is decided: of every component, then the loss."""
    decisions = ask.classes.tolist()

    def valued(worth: list[Floats], counted: NDArray[np.bool_] | None = None) -> _Value:
        seen = worth[0] if counted is None else worth[0][counted]
        origin = float(np.median(seen)) if seen.size else 0.0
        away = np.zeros(len(q))
        for d, value in enumerate(worth):
            away += q[:, d] * (value - origin)
        return _Value(away, origin, counted)

    values = []
    for happiness in ask.happiness:
        counted = evaluate_among(happiness, batch)
        what = f"The happiness {happiness.name!r}"
        worth = [evaluate(happiness.function, what, batch, decision, counted) for decision in decisions]
        for decision, value in zip(decisions, worth, strict=True):
            check_bounds(happiness, value, counted, batch, decision)
        values.append(valued(worth, counted))
    cost = resolve_loss(ask.loss, ask.classes)[1]
    if lacks_loss(ask.y, cost):
        return [*values, _Value(np.zeros(len(q)), 0.0)]
    if isinstance(cost, np.ndarray):
        return [*values, valued([cost[labels, d] for d in range(len(decisions))])]
    return [*values, valued([evaluate(cost, "The loss", batch, decision) for decision in decisions])]


def _nobody(groups: tuple[Any, ...], n: int) -> _Part:
    names = ("weight", "squares", "mean", "second", "third", "odd")
    empty: dict[str, Any] = {name: np.zeros((len(groups), n)) for name in names}
    empty |= {name: np.zeros(len(groups)) for name in ("rows", "total")}
    return _Part(groups=groups, origin=np.zeros(n), largest=np.zeros(n), whole=True, **empty)


def _summed(
    groups: tuple[Any, ...],
    codes: Codes,
    weight: Floats,
    values: list[_Value],
) -> _Part:
    """Sums of one batch around the mean of each group."""
    part = _nobody(groups, len(values))
    g = len(groups)

    def add(numbers: Floats) -> Floats:
        return np.bincount(codes, numbers, minlength=g).astype(np.float64)

    for j, value in enumerate(values):
        w = weight if value.counted is None else weight * value.counted
        away = np.where(w > 0, value.away, 0.0)
        raw = away + value.origin
        part.origin[j], part.largest[j] = value.origin, np.abs(away).max(initial=0.0)
        part.odd[:, j] = add((w > 0) & (raw != 0.0) & (raw != 1.0))
        part.weight[:, j], part.squares[:, j] = add(w), add(w * w)
        part.mean[:, j] = add(w * away) / np.where(part.weight[:, j] > 0, part.weight[:, j], 1.0)
        away = away - part.mean[:, j][codes]
        part.second[:, j], part.third[:, j] = add(w * away**2), add(w * away**3)
    whole = bool((weight == np.rint(weight)).all())
    return replace(part, rows=add(np.ones(len(codes))), total=add(weight), whole=whole)
