"""People in memory, what every decision is worth to each of them, and what deterministic policies do to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Protocol, cast

import numpy as np

from felicific._problem.explore import floors_of, keeps
from felicific._problem.happiness import Component
from felicific._problem.rows import Chance
from felicific._problem.unions import Attribute
from felicific._typing import Array, Codes, Floats

#: Values of ``Mixture.fixed`` that are no decision.
CHOOSES, LIKELY = -1, -2


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
    """The people: their weights, groups, what the model itself decides about them, and their likeliest class.

    Deciding otherwise than the likeliest class costs ``change_cost``. ``score`` is that of the second of two classes.
    """

    classes: Array
    groups: tuple[Any, ...]
    components: tuple[Component, ...]
    origin: Floats
    weight: Floats
    group: Codes
    own: Codes
    see_group: bool
    likely: Codes | None = None
    attributes: tuple[Attribute, ...] = ()
    unknown: str | None = None
    change_cost: float = 0.0
    score: Floats | None = None


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
    kappa : array of shape (M, groups, components)
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

    def followed(self, q: Floats) -> Mixture:
        """Those policies that some group follows; ``q`` has the shape (groups, 1, M)."""
        used = np.flatnonzero(q[:, 0, :].max(axis=0) > 0)
        return Mixture(self.fixed[used], self.alpha[used], self.kappa[used], q[:, 0, used])


def choose(alpha: float, kappa: Floats, cost: Floats, value: Floats) -> Codes:
    """Decision of one deterministic policy; ``kappa`` has the shape (Z, J) of ``value``'s last axes.

    Multipliers make some people indifferent. Ties go to the least loss, then to the first class, and never to the last
    bit of a rounding. Sums are taken term by term and not by a matrix product, whose rounding depends on the batch.
    """
    decisions = range(cost.shape[1])
    costs = [cost[:, d] for d in decisions]
    gains = [np.zeros(len(cost)) for _ in decisions]
    for z, j in zip(*np.nonzero(kappa), strict=True):
        for d in decisions:
            gains[d] += kappa[z, j] * value[:, d, z, j]
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
        """Classes, groups, components and origin; the people themselves only when they are in memory."""

    @property
    def has_real(self) -> bool:
        """Whether what is known of people differs from what is expected of them."""

    def totals(self) -> Sums:
        """Sums that no policy changes."""

    @property
    def chances(self) -> tuple[Chance, ...]:
        """The chances that people keep, whatever a policy decides about them."""

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do, in one pass over the people."""

    def keeping(self, chances: tuple[Chance, ...]) -> Ground:
        """The same people where these chances are kept."""

    def explored(self, mixture: Mixture) -> Sums:
        """By the words of every chance, the weight of those who have just that, group by group."""


class Ledgers:
    r"""People in memory, with what every decision is worth to them: expected, and under the real labels.

    Where people keep chances :math:`\delta_{id}`, a deterministic policy decides about the rest of the chance alone:

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
        self.cost = plug_in.cost
        if crowd.change_cost:
            assert crowd.likely is not None, "what a change is, is known"
            self.cost = charged(plug_in.cost, crowd.likely, crowd.change_cost)
        # The rows of each group side by side, gathered once and not at every pass.
        parts = (
            [np.flatnonzero(crowd.group == z) for z in range(len(crowd.groups))] if crowd.see_group else []
        )
        self.parts = [(rows, self.cost[rows], plug_in.value[rows]) for rows in parts]

    def keeping(self, chances: tuple[Chance, ...]) -> Ledgers:
        """The same people where these chances are kept."""
        real = self.real if self.has_real else None
        return Ledgers(self.crowd, self.plug_in, real, labelled=self.labelled, chances=chances)

    @cached_property
    def _free(self) -> Crowd:
        """The people with the weight of what a policy decides."""
        return self.crowd if not self.chances else self._weighing(1.0 - self._floors.sum(axis=1))

    @property
    def _floors(self) -> Floats:
        return floors_of(self.chances, self.crowd.score, self.crowd.group, len(self.crowd.classes))

    def _weighing(self, share: Floats) -> Crowd:
        return replace(self.crowd, weight=self.crowd.weight * share)

    @cached_property
    def _kept(self) -> Sums:
        """Sums of what is kept."""
        everybody, floors = np.zeros(len(self.crowd.own), dtype=np.intp), self._floors
        parts = [self._done(self._weighing(floors[:, d]), everybody + d) for d in range(floors.shape[1])]
        return reduce(add_sums, parts)

    def explored(self, mixture: Mixture) -> Sums:
        """By the words of every chance, the weight of those who have just that, group by group."""
        crowd, decided = self.crowd, [self._decided(*choice) for choice in mixture.choices]
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
        """Mass, people, who is counted, today's decisions, and how far decisions can move every component."""
        crowd, value = self.crowd, self.plug_in.value
        found = {
            "mass": _by_group(crowd, crowd.weight),
            "rows": _by_group(crowd, np.ones(len(crowd.weight))),
            "spread": _per_group(crowd, value.max(axis=1) - value.min(axis=1)),
            "size": _per_group(crowd, np.abs(value[:, 0])),
        }
        for name, ledger in self._both:
            found[f"{name} counted"] = _per_group(crowd, ledger.among)
            found[f"{name} least"] = _per_group(crowd, ledger.value.min(axis=1))
            found[f"{name} today loss"], found[f"{name} today value"] = sums_of(crowd, ledger, crowd.own)
        return found

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do."""
        return [self._column(*choice) for choice in choices]

    def _column(self, alpha: float, kappa: Floats, fixed: int) -> Sums:
        found = self._done(self._free, self._decided(alpha, kappa, fixed))
        return cast(Sums, add_sums(found, self._kept)) if self.chances else found

    def _decided(self, alpha: float, kappa: Floats, fixed: int) -> Codes:
        likely = self.crowd.own if self.crowd.likely is None else self.crowd.likely
        return self.decide(alpha, kappa) if fixed == CHOOSES else fixed_decisions(fixed, likely)

    def _done(self, crowd: Crowd, decisions: Codes) -> Sums:
        """Sums of some decisions about people of these weights."""
        rows, cost = np.arange(len(decisions)), self.plug_in.cost
        # How far a policy is from today's decisions, by group: squared differences of expected loss.
        far = np.square(cost[rows, decisions] - cost[rows, crowd.own]) * crowd.weight
        found = {
            "change": _by_group(crowd, far),
            "changed": _by_group(crowd, crowd.weight * (decisions != crowd.own)),
            **self._moved(crowd, decisions),
        }
        for name, ledger in self._both:
            found[f"{name} loss"], found[f"{name} value"] = sums_of(crowd, ledger, decisions)
        found[f"{name} square"] = _per_group(crowd, ledger.value[rows, decisions] ** 2)
        return found

    def _moved(self, crowd: Crowd, decisions: Codes) -> Sums:
        """Who gets more and less than from today's decision; NaN of what looks at labels where there are none."""
        value, rows = self.real.value, np.arange(len(decisions))
        then, now = value[rows, decisions], value[rows, crowd.own]
        found = {
            name: _per_group(crowd, self.real.among * truth)
            for name, truth in (("gains", then > now), ("loses", then < now))
        }
        unknown = [c.looks_at_y and not self.labelled for c in crowd.components]
        return {name: np.where(unknown, np.nan, numbers) for name, numbers in found.items()}

    def decide(self, alpha: float, kappa: Floats) -> Codes:
        """Decisions of one deterministic policy about everybody."""
        if not self.crowd.see_group:
            return choose(alpha, kappa, self.cost, self.plug_in.value)
        decisions = np.zeros(len(self.crowd.own), dtype=np.intp)
        for z, (rows, cost, value) in enumerate(self.parts):
            decisions[rows] = choose(alpha, kappa[z : z + 1], cost, value)
        return decisions


def charged(cost: Floats, likely: Codes, change_cost: float) -> Floats:
    """Loss of every decision, with what it costs to decide otherwise than the likeliest class."""
    return np.asarray(cost + change_cost * (np.arange(cost.shape[1]) != likely[:, None]))


def _by_group(crowd: Crowd, numbers: Floats) -> Floats:
    return np.bincount(crowd.group, numbers, minlength=len(crowd.groups)).astype(np.float64)


def sums_of(crowd: Crowd, ledger: Ledger, decisions: Codes) -> tuple[Floats, Floats]:
    """Loss of shape (groups,) and happiness of shape (groups, components) of decisions."""
    rows = np.arange(len(decisions))
    return _by_group(crowd, crowd.weight * ledger.cost[rows, decisions]), _per_group(
        crowd, ledger.value[rows, decisions]
    )


def _per_group(crowd: Crowd, numbers: Floats) -> Floats:
    """Weighted sums of an array of shape (n, Z, J) as (groups, components)."""
    g, n_components = len(crowd.groups), numbers.shape[2]
    if not crowd.see_group:
        return np.asarray(np.einsum("i,izj->zj", crowd.weight, numbers))
    sums = np.zeros((g, n_components))
    for j in range(n_components):
        sums[:, j] = np.bincount(crowd.group, crowd.weight * numbers[:, 0, j], minlength=g)
    return sums


def fixed_decisions(fixed: int, likely: Codes) -> Codes:
    """Decisions of a policy that weighs nothing."""
    return likely if fixed == LIKELY else np.full(len(likely), fixed)


def likeliest(proba: Floats) -> Codes:
    """The likeliest class; of classes that tie, but for the last bits of a rounding, the first."""
    return np.asarray((proba >= proba.max(axis=1, keepdims=True) - 1e-11).argmax(axis=1))
