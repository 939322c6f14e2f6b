"""People in memory, what every decision is worth to each of them, and what deterministic policies do to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from felicific._people.checks import WeightKind
from felicific._people.roles import Roles
from felicific._problem.exploration import Chance, floors_of, keeps
from felicific._problem.happiness import Measure
from felicific._problem.unions import Attribute
from felicific._typing import Array, Codes, Floats

#: Values of ``Mixture.fixed`` that are no decision.
CHOOSES, LIKELY = -1, -2

#: People who are summed at a time: what is made of them on the way stays in the processor's cache.
AT_ONCE = 65_536


@dataclass(frozen=True)
class Ledger:
    """What every decision is worth, row by row.

    Attributes
    ----------
    cost : array of shape (n, K)
        Loss of each decision.
    value : array of shape (n, K, Z, J)
        Happiness inside ``among``, relative to the crowd's origin; Z is 1 (the row's own group) when the policy
        sees the group, else all groups.
    among : array of shape (n, Z, J)
        Membership in ``among``, or its probability.
    """

    cost: Floats
    value: Floats
    among: Floats


@dataclass(frozen=True)
class Crowd:
    """The people: their weights, groups, baseline decisions, and the decision of their likeliest class.

    Another decision than that costs ``change_cost``. ``score`` is that of the second of two classes. Where nobody
    knows the baseline (``knows_baseline``), ``own`` is what costs least; where likeliest classes may be no
    decisions, ``likely`` is None.
    """

    decisions: Array
    groups: tuple[Any, ...]
    measures: tuple[Measure, ...]
    origin: Floats
    weight: Floats
    group: Codes
    own: Codes
    sees_group: bool
    likely: Codes | None = None
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it
    attributes: tuple[Attribute, ...] = ()
    weight_kind: WeightKind = None
    whole: bool = True
    change_cost: float = 0.0
    score: Floats | None = None
    knows_baseline: bool = True
    baseline_given: bool = False


@dataclass(frozen=True)
class Mixture:
    """Deterministic policies and how each group mixes them.

    Attributes
    ----------
    fixed : array of shape (M,)
        The decision of a policy that decides alike about everybody; ``LIKELY`` for the one that takes the model's
        likeliest class; ``CHOOSES`` for one that weighs loss and happiness.
    alpha : array of shape (M,)
        Weight of the loss in each policy's choice: 1, or 0 for one that only brings groups together.
    kappa : array of shape (M, groups, measures)
        Weight of each group's happiness.
    share : array of shape (groups, M)
        Mixture weights; equal rows when the policy does not see the group.
    """

    fixed: Codes = field(repr=False)
    alpha: Floats = field(repr=False)
    kappa: Floats = field(repr=False)
    share: Floats = field(repr=False)

    @property
    def choices(self) -> list[Choice]:
        """The policies, one by one."""
        parts = zip(self.alpha.tolist(), self.kappa, self.fixed.tolist(), strict=True)
        return [(alpha, kappa, fixed) for alpha, kappa, fixed in parts]

    @property
    def by_loss(self) -> Mixture:
        """One rule that takes the least expected loss, whatever that does to happiness."""
        groups = len(self.share)
        kappa = np.zeros((1, *self.kappa.shape[1:]))
        return Mixture(np.array([CHOOSES]), np.ones(1), kappa, np.ones((groups, 1)))

    def followed(self, q: Floats) -> Mixture:
        """Those policies that some group follows; ``q`` has the shape (groups, 1, M)."""
        used = np.flatnonzero(q[:, 0, :].max(axis=0) > 0)
        return Mixture(self.fixed[used], self.alpha[used], self.kappa[used], q[:, 0, used])


def choose(alpha: float, kappa: Floats, cost: Floats, value: Floats) -> Codes:
    """Decision of one deterministic policy; ``kappa`` has the shape (Z, J) of ``value``'s last axes, or (n, Z, J).

    Multipliers make some people indifferent. Ties go to the least loss, then to the first class, and never to the last
    bit of a rounding. Sums are taken term by term and not by a matrix product, whose rounding depends on the batch.
    """
    decisions = range(cost.shape[1])
    costs = [cost[:, d] for d in decisions]
    gains = [np.zeros(len(cost)) for _ in decisions]
    weighs = kappa if kappa.ndim == 2 else kappa.any(axis=0)
    for z, j in zip(*np.nonzero(weighs), strict=True):
        for d in decisions:
            gains[d] += kappa[..., z, j] * value[:, d, z, j]
    totals = [alpha * costs[d] - gains[d] for d in decisions]
    size = reduce(np.maximum, [np.maximum(np.abs(alpha * costs[d]), np.abs(gains[d])) for d in decisions])
    edge = reduce(np.minimum, totals) + 1e-11 * size
    cheap = [np.where(totals[d] <= edge, costs[d], np.inf) for d in decisions]
    least = reduce(np.minimum, cheap)
    edge = least + 1e-11 * np.abs(least)
    chosen = np.zeros(len(cost), dtype=np.intp)
    for d in reversed(decisions):
        chosen[cheap[d] <= edge] = d
    return chosen


#: Sums over people, by name: those of two crowds add.
Sums = dict[str, Floats]


#: A deterministic policy: weight of the loss, weights of happiness, and what it decides without weighing (or CHOOSES).
Choice = tuple[float, Floats, int]


def add_sums(left: Any, right: Any) -> Any:
    """Sums of two crowds together; of lists of sums, one by one."""
    if isinstance(left, list):
        return [add_sums(a, b) for a, b in zip(left, right, strict=True)]
    return {name: left[name] + right[name] for name in left}


class Ground(Protocol):
    """People over whom column generation sums, wherever they are."""

    @property
    def crowd(self) -> Crowd:
        """Classes, groups, measures and origin; the people themselves only when they are in memory."""

    @property
    def has_real(self) -> bool:
        """Whether what is known of people differs from what is expected of them."""

    def totals(self) -> Sums:
        """Sums that no policy changes."""

    @property
    def chances(self) -> tuple[Chance, ...]:
        """The chances that people keep, whatever a policy decides on them."""

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do, in one pass over the people."""

    def keeping(self, chances: tuple[Chance, ...]) -> Ground:
        """The same people where these chances are kept."""

    def explored(self, mixture: Mixture) -> Sums:
        """By the words of every chance, the weight of those who have just that, group by group."""


class Ledgers:
    r"""People in memory, with what every decision is worth to them: expected, and under the real labels.

    Where people keep chances :math:`\delta_{id}`, a deterministic policy decides on the rest of the chance alone:

    .. math:: q_i = \delta_i + (1 - \textstyle\sum_d \delta_{id}) q'_i

    so its sums are those of what is kept, which no policy changes, and its own with smaller weights. What is best for a
    person does not depend on that weight: policies choose as they would without.
    """

    def __init__(
        self,
        crowd: Crowd,
        plug_in: Ledger,
        real: Ledger | None = None,
        *,
        labelled: bool = True,
        chances: tuple[Chance, ...] = (),
    ) -> None:
        self.crowd, self.plug_in, self.chances = crowd, plug_in, chances
        self.real, self.labelled = plug_in if real is None else real, labelled

    @cached_property
    def cost(self) -> Floats:
        """What a policy weighs against happiness: the expected loss, with what a change costs."""
        crowd = self.crowd
        if not crowd.change_cost:
            return self.plug_in.cost
        assert crowd.likely is not None, "what a change is, is known"
        return charged(self.plug_in.cost, crowd.likely, crowd.change_cost)

    def some(self, rows: slice | Codes, crowd: Crowd | None = None) -> Ledgers:
        """Some of these people, with the weights and groups of a ``crowd`` of them all; they keep no chances."""
        held = self.crowd if crowd is None else crowd
        here = replace(
            held,
            weight=held.weight[rows],
            group=held.group[rows],
            own=held.own[rows],
            likely=None if held.likely is None else held.likely[rows],
        )
        plug_in, real = _part(self.plug_in, rows), None
        if self.has_real:
            real = replace(plug_in, cost=self.real.cost[rows]) if self._alike else _part(self.real, rows)
        return Ledgers(here, plug_in, real, labelled=self.labelled)

    @property
    def _alike(self) -> bool:
        """Whether happiness is known to be what is expected."""
        return self.real.value is self.plug_in.value and self.real.among is self.plug_in.among

    def each(self, crowd: Crowd) -> Iterator[tuple[slice, Ledgers]]:
        """These people, some at a time, with the weights and groups of a ``crowd`` of them all."""
        for start in range(0, max(len(crowd.own), 1), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            yield rows, self.some(rows, crowd)

    def keeping(self, chances: tuple[Chance, ...]) -> Ledgers:
        """The same people where these chances are kept."""
        real = self.real if self.has_real else None
        return Ledgers(self.crowd, self.plug_in, real, labelled=self.labelled, chances=chances)

    @cached_property
    def free(self) -> Crowd:
        """The people with the weight of what a policy decides."""
        return self.crowd if not self.chances else self._weighing(1.0 - self._floors.sum(axis=1))

    @property
    def _floors(self) -> Floats:
        return floors_of(self.chances, self.crowd.score, self.crowd.group, len(self.crowd.decisions))

    def _weighing(self, share: Floats) -> Crowd:
        return replace(self.crowd, weight=self.crowd.weight * share)

    @cached_property
    def kept(self) -> Sums:
        """Sums of what is kept."""
        everybody, floors = np.zeros(len(self.crowd.own), dtype=np.intp), self._floors
        parts = [
            self.some(slice(None), self._weighing(floors[:, d])).done(everybody + d)
            for d in range(floors.shape[1])
        ]
        return reduce(add_sums, parts)

    def explored(self, mixture: Mixture) -> Sums:
        """By the words of every chance, the weight of those who have just that, group by group."""
        crowd, decided = self.crowd, [self.decided(*choice) for choice in mixture.choices]
        found = {}
        for chance in self.chances:
            follows = np.zeros(len(crowd.own), dtype=bool)
            for m, decisions in enumerate(decided):
                follows |= (decisions == chance.decision) & (mixture.share[crowd.group, m] > 0)
            just = keeps(chance, crowd.score, crowd.group) & ~follows
            found[chance.words] = _by_group(crowd, crowd.weight * just)
        return found

    @property
    def has_real(self) -> bool:
        """Whether what is known of people differs from what is expected of them."""
        return self.real is not self.plug_in

    @property
    def _both(self) -> list[tuple[str, Ledger]]:
        return [("expected", self.plug_in), *([("real", self.real)] if self.has_real else [])]

    def totals(self) -> Sums:
        """Mass, people, who is counted, the baseline's decisions, and how far decisions can move every measure."""
        return reduce(add_sums, (part._totals() for _, part in self.each(self.crowd)))

    def _totals(self) -> Sums:
        crowd, value = self.crowd, self.plug_in.value
        found = {
            "mass": _by_group(crowd, crowd.weight),
            "rows": _by_group(crowd, np.ones(len(crowd.weight))),
            "spread": _per_group(
                crowd, _over_decisions(np.maximum, value) - _over_decisions(np.minimum, value)
            ),
            "size": _per_group(crowd, np.abs(value[:, 0])),
        }
        for name, ledger in self._both:
            found[f"{name} counted"] = _per_group(crowd, ledger.among)
            found[f"{name} least"] = _per_group(crowd, _over_decisions(np.minimum, ledger.value))
            found[f"{name} baseline loss"], found[f"{name} baseline value"] = sums_of(
                crowd, ledger, crowd.own
            )
        return found

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do."""
        if not choices:
            return []
        parts = ([part.done(part.decided(*choice)) for choice in choices] for _, part in self.each(self.free))
        found: list[Sums] = reduce(add_sums, parts)
        return [add_sums(sums, self.kept) for sums in found] if self.chances else found

    def decided(self, alpha: float, kappa: Floats, fixed: int) -> Codes:
        """Decisions of one deterministic policy."""
        likely = self.crowd.own if self.crowd.likely is None else self.crowd.likely
        return self._decide(alpha, kappa) if fixed == CHOOSES else fixed_decisions(fixed, likely)

    def done(self, decisions: Codes) -> Sums:
        """Sums of some decisions."""
        crowd, found = self.crowd, {}
        for name, ledger in self._both:
            cost = taken(ledger.cost, decisions)
            if ledger is self.plug_in:
                # How far a policy is from the baseline's decisions, by group: squared differences of expected loss.
                far = np.square(cost - self._now_cost) * crowd.weight
                found["change"] = _by_group(crowd, far)
                found["changed"] = _by_group(crowd, crowd.weight * (decisions != crowd.own))
            found[f"{name} loss"] = _by_group(crowd, crowd.weight * cost)
            if ledger is self.plug_in or not self._alike:
                then = taken(ledger.value, decisions)
                happy = _per_group(crowd, then)
            found[f"{name} value"] = happy
        found[f"{name} square"] = _per_group(crowd, then**2)
        if not crowd.knows_baseline:
            del found["changed"]
            return found
        return found | self._moved(then)

    def _moved(self, then: Floats) -> Sums:
        """Who gets more and less than from the baseline; NaN of what looks at labels where there are none."""
        crowd, among, now = self.crowd, self.real.among, self._now
        found = {
            "gains": _per_group(crowd, among * (then > now)),
            "loses": _per_group(crowd, among * (then < now)),
        }
        unknown = [c.looks_at_y and not self.labelled for c in crowd.measures]
        return {name: np.where(unknown, np.nan, numbers) for name, numbers in found.items()}

    @cached_property
    def _now(self) -> Floats:
        """Happiness with the baseline's decisions."""
        return taken(self.real.value, self.crowd.own)

    @cached_property
    def _now_cost(self) -> Floats:
        """The expected loss of the baseline's decisions."""
        return taken(self.plug_in.cost, self.crowd.own)

    def _decide(self, alpha: float, kappa: Floats) -> Codes:
        if self.crowd.sees_group:
            kappa = kappa[self.crowd.group][:, None]
        return choose(alpha, kappa, self.cost, self.plug_in.value)


def _part(ledger: Ledger, rows: slice | Codes) -> Ledger:
    return Ledger(ledger.cost[rows], ledger.value[rows], ledger.among[rows])


def _over_decisions(least_or_most: np.ufunc, value: Floats) -> Floats:
    """Over all decisions about a person, one after the other: far quicker than along so short an axis."""
    return np.asarray(reduce(least_or_most, [value[:, d] for d in range(value.shape[1])]))


def charged(cost: Floats, likely: Codes, change_cost: float) -> Floats:
    """Loss of every decision, with what another one than the likeliest class costs."""
    return np.asarray(cost + change_cost * (np.arange(cost.shape[1]) != likely[:, None]))


def _by_group(crowd: Crowd, numbers: Floats) -> Floats:
    return np.bincount(crowd.group, numbers, minlength=len(crowd.groups)).astype(np.float64)


def sums_of(crowd: Crowd, ledger: Ledger, decisions: Codes) -> tuple[Floats, Floats]:
    """Loss of shape (groups,) and happiness of shape (groups, measures) of decisions."""
    cost, value = taken(ledger.cost, decisions), taken(ledger.value, decisions)
    return _by_group(crowd, crowd.weight * cost), _per_group(crowd, value)


def taken(table: Floats, decisions: Codes) -> Floats:
    """What a table of shape (n, K, ...) says of one decision about everybody."""
    n, k, *rest = table.shape
    return np.asarray(table.reshape(n * k, *rest).take(np.arange(0, n * k, k) + decisions, axis=0))


def _per_group(crowd: Crowd, numbers: Floats) -> Floats:
    """Weighted sums of an array of shape (n, Z, J) as (groups, measures)."""
    g, n_measures = len(crowd.groups), numbers.shape[2]
    if not crowd.sees_group:
        return np.asarray(np.einsum("i,izj->zj", crowd.weight, numbers))
    sums = np.zeros((g, n_measures))
    for j in range(n_measures):
        sums[:, j] = np.bincount(crowd.group, crowd.weight * numbers[:, 0, j], minlength=g)
    return sums


def fixed_decisions(fixed: int, likely: Codes) -> Codes:
    """Decisions of a policy that weighs nothing."""
    return likely if fixed == LIKELY else np.full(len(likely), fixed)


def likeliest(score: Floats) -> Codes:
    """The likeliest class; of classes that tie, but for the last bits of a rounding, the first."""
    return np.asarray((score >= score.max(axis=1, keepdims=True) - 1e-11).argmax(axis=1))
