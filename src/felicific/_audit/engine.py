r"""Audits of people in a table that is not in memory: the sums that intervals are made of.

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

from felicific._audit.persons import SummedPersons, check_persons, expected_value, rates_of
from felicific._people.lazy import LazyPeople, no_rows
from felicific._people.people import People
from felicific._people.worth import Worth, typical, worth_of
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._statistics.intervals import Sample
from felicific._tables.groups import find_groups
from felicific._typing import Codes, Floats, Truths

#: Numbers whose squares and cubes overflow are refused by name once everybody is summed up.
_quiet = np.errstate(all="ignore")


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
    largest: Floats
    whole: bool

    @_quiet
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

        shift = self.origin - origin
        largest = self.largest + np.where(self.weight.any(axis=0), np.abs(shift), 0.0)
        moved = replace(self, mean=self.mean + shift, origin=origin, groups=groups, largest=largest)
        names = ("rows", "total", "weight", "squares", "mean", "second", "third")
        wide: dict[str, Any] = {name: spread(getattr(moved, name)) for name in names}
        return replace(moved, **wide)


def sum_persons(people: LazyPeople, sampling: bool, policy: Policy | None = None) -> SummedPersons:
    """What is decided about the people of a table that is not in memory does to them.

    By the column ``columns.decided``; or by a policy, a lottery counting by its odds.
    """
    problem, plan = people.problem, people.plan
    if policy is not None and policy.sees_x:
        seen = policy.columns_seen(people.engine, people.columns.group)
        reason = (
            plan.reason if seen is not None else "The policy cannot be written as expressions of columns."
        )
        used = tuple(dict.fromkeys([*plan.used, *(seen or ())]))
        people = replace(people, plan=replace(plan, used=used, reason=reason))
    sums: _Part = people.fold(partial(_part_of, problem, policy), _Part.__add__)
    if not sums.rows.sum():
        raise no_rows(people.columns.weight)
    j, drawn = len(problem.happiness), policy is not None and policy.draws
    knows_loss = people.columns.y is not None or not problem.loss.looks_at_y
    sample, loss = _sample(sums, sampling), None
    if knows_loss:
        loss = _sample(_everyone(sums), sampling).take(j)
        loss = replace(loss, mean=loss.mean + sums.origin[j])
    persons = SummedPersons(
        groups=sums.groups,
        components=problem.components,
        origin=sums.origin[:j],
        rates=rates_of(problem, drawn=drawn),
        loss_rate=problem.loss.is_rate and not drawn,
        loss_bounds=problem.loss.bounds,
        sampling=sampling,
        sample=Sample(*(array[:, :j] for array in (sample.n, sample.mean, sample.sd, sample.skewness))),
        loss_sample=loss,
        rows=int(sums.rows.sum()),
        sizes=sums.total,
        weighted=people.columns.weight is not None,
        whole=sums.whole,
        counted=sums.weight[:, :j],
        largest=(sums.largest[:j], float(sums.largest[j]) if knows_loss else 0.0),
    )
    check_persons(persons)
    return persons


@_quiet
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
    together = None
    for z in range(len(part.groups)):
        names = ("rows", "total", "weight", "squares", "mean", "second", "third")
        one: dict[str, Any] = {name: getattr(part, name)[z : z + 1] for name in names}
        here = replace(part, groups=("everyone",), **one)
        together = here if together is None else together + here
    return part if together is None else together


# ---------------------------------------------------------------------------------------------------------
# Some rows


def _part_of(problem: Problem, policy: Policy | None, people: People) -> _Part:
    """Sum up some people, batch by batch."""
    odds = people.odds if policy is None else policy.odds_of(people)
    assert odds is not None, "something is decided about these people"
    sums, weight = _nobody(people.groups, len(problem.happiness) + 1), people.weights
    for part, batch in people.batches():
        values = _values(worth_of(problem, batch), odds[part])
        sums += _summed(people.groups, people.codes[part], weight[part], values)
    return sums


@dataclass(frozen=True)
class _Value:
    """Of one component, or the loss: values relative to a typical one, and who is counted (None: everybody)."""

    away: Floats
    origin: float
    counted: Truths | None = None


def _values(worth: Worth, odds: Floats) -> list[_Value]:
    """What every person may expect of what is decided: of every component, then the loss."""

    def valued(numbers: Floats, counted: Truths | None = None) -> _Value:
        origin = typical(numbers, counted) or 0.0
        return _Value(expected_value(numbers, odds, origin), origin, counted)

    values = [valued(*worth.values(j)) for j in range(len(worth.problem.happiness))]
    return [*values, valued(worth.cost) if worth.knows_cost else _Value(np.zeros(len(odds)), 0.0)]


def _nobody(groups: tuple[Any, ...], n: int) -> _Part:
    names = ("weight", "squares", "mean", "second", "third")
    empty: dict[str, Any] = {name: np.zeros((len(groups), n)) for name in names}
    empty |= {name: np.zeros(len(groups)) for name in ("rows", "total")}
    return _Part(groups=groups, origin=np.zeros(n), largest=np.zeros(n), whole=True, **empty)


@_quiet
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
        part.origin[j], part.largest[j] = value.origin, np.abs(away).max(initial=0.0)
        part.weight[:, j], part.squares[:, j] = add(w), add(w * w)
        part.mean[:, j] = add(w * away) / np.where(part.weight[:, j] > 0, part.weight[:, j], 1.0)
        away = away - part.mean[:, j][codes]
        part.second[:, j], part.third[:, j] = add(w * away**2), add(w * away**3)
    whole = bool((weight == np.rint(weight)).all())
    return replace(part, rows=add(np.ones(len(codes))), total=add(weight), whole=whole)
