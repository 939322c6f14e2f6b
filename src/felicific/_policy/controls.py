"""Controls: the one number of every group that a steering moves, and what it makes of the group's people."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from felicific._people.evaluate import BATCH, worth_of
from felicific._people.user_functions import Batch
from felicific._policy.aims import check_steered
from felicific._policy.basis import unmeasured
from felicific._policy.lottery import uniforms
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Happiness, HappinessLike, resolve_happiness
from felicific._problem.problem import Problem
from felicific._problem.unions import compared_groups
from felicific._program.crowd import CHOOSES, Ledger, Mixture
from felicific._program.slopes import Slopes
from felicific._tables.groups import names_at
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError, HappinessError

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy
    from felicific._policy.individual import IndividualPolicy
    from felicific._policy.policy import Policy


@dataclass(frozen=True)
class Control:
    """What decides on a group at a moment.

    Attributes
    ----------
    now, fitted : float
        The control, and where it began. Of cells it is the share of the fitted people of the group who would be decided
        the second class; of an individual policy the weight of happiness beside the loss.
    low, high : float
        How far it may go.
    threshold : float, or None
        Of a score, the one above which the second class is decided; None where there is no score.
    words : str
        The same in words.
    """

    now: float
    fitted: float
    low: float
    high: float
    threshold: float | None
    words: str


class Seen(ABC):
    """What is known of some people before they are decided on, each in the order of the rows.

    Attributes
    ----------
    values : sequence of lists
        What every decision is worth to each.
    counted : list of bool
        Whether they are counted.
    changes : list of float, or None
        How much more the second class is worth than the first; None where the control is a weight of happiness, which
        always brings more.
    regrets : list of float, or None
        How much more loss the worst decision is than the best, where that is weighed.
    """

    values: Sequence[list[float]]
    counted: list[bool]
    changes: list[float] | None = None
    regrets: list[float] | None = None

    @abstractmethod
    def decide(self, i: int, control: float) -> int:
        """The decision about one of them."""


class Controls(ABC):
    """How the controls of a policy act.

    Attributes
    ----------
    j : int
        Position of the measure that is steered.
    fitted : list of float
        Where the controls begin, by group.
    shares : list of float
        Shares of the groups among people whose group is known; 0 of the others, who are not steered.
    slope : float, or None
        Happiness per unit of control; None where the people tell it while they come.
    needs_keys : bool
        Whether the lottery draws.
    """

    j: int
    fitted: list[float]
    shares: list[float]
    slope: float | None = None
    needs_keys: bool = False

    @abstractmethod
    def limits(self, reach: float) -> list[tuple[float, float]]:
        """Between which numbers each control stays; infinite where it has gone all the way before."""

    @abstractmethod
    def farthest(self, z: int, regret: float) -> float:
        """How far a control has to go for everybody to get the least happiness, or the most; see the bound."""

    @abstractmethod
    def look(self, scores: Array, group: Codes, keys: Sequence[str] | None, x: Table) -> Seen:
        """Look at some people, of whom this is known to be right."""

    @abstractmethod
    def described(self, z: int, now: float, reach: float) -> Control:
        """What a control means."""

    @abstractmethod
    def policy(self, now: Sequence[float], known: tuple[str, ...]) -> Policy:
        """The policy of these controls, of which nothing is known but what is said."""


# ---------------------------------------------------------------------------------------------------------
# Controls of individual policies: the weight of happiness beside the loss.
#
# About a person of group z that decision is taken which has the least :math:`c(d) - \kappa_z \eta(d)`, of
# expected loss and happiness. There is no lottery: the weight at which one such policy stands for the fitted
# mixture, and how steeply means follow it, were looked for when the policy was fitted
# (:mod:`felicific._program.slopes`).


#: Which part of what decisions can move is taken as the room that everybody has on both sides of the overall mean.
MARGIN = 0.25


class WeightControls(Controls):
    """The controls of an individual policy."""

    def __init__(self, policy: IndividualPolicy, j: int, happiness: HappinessLike | None) -> None:
        self._policy, self.j, slopes = policy, j, _slopes(policy, j)
        if happiness is not None:
            raise HappinessError("An individual policy holds its happiness itself.", "Leave happiness= out.")
        self.fitted, self.shares = slopes.kappa.tolist(), slopes.share.tolist()
        known = slopes.share > 0
        others = (1.0 - slopes.share[known]) / max(int(known.sum()) - 1, 1)
        self.slope = float(others @ slopes.slope[known])
        self._swing = slopes.swing
        self._room = MARGIN * float(self._swing[known].min())

    def limits(self, reach: float) -> list[tuple[float, float]]:
        """The step that moves a group's mean by so much of how far decisions can move it; all of it: any step."""
        assert self.slope is not None, "which the policy knows"
        # Where no decision moves the mean, no weight goes too far either.
        far = np.where((reach < 1.0) & (self._swing > 0), reach * self._swing / self.slope, math.inf)
        return [(kappa - step, kappa + step) for kappa, step in zip(self.fitted, far.tolist(), strict=True)]

    def farthest(self, z: int, regret: float) -> float:
        """To where no loss outweighs the room that everybody has."""
        return abs(self.fitted[z]) + (regret / self._room if self._room > 0 else math.inf)

    def look(self, scores: Array, group: Codes, keys: Sequence[str] | None, x: Table) -> Seen:
        """Expected loss and happiness of every decision."""
        return _WeighedPeople(
            self._policy.look(scores, group, x).ledger, self.j, float(self._policy.origin[self.j])
        )

    def described(self, z: int, now: float, reach: float) -> Control:
        """The weight, per unit."""
        measure = self._policy.measures[self.j]
        words = f"least expected loss less {now:.4g} per {measure.unit or 'unit'} of {measure.name!r}"
        return Control(now, self.fitted[z], *self.limits(reach)[z], None, words)

    def policy(self, now: Sequence[float], known: tuple[str, ...]) -> IndividualPolicy:
        """One deterministic policy, which everybody follows whose group is known."""
        old, g = self._policy, len(self.fitted)
        kappa = np.zeros((1, g, len(old.measures)))
        kappa[0, :, self.j] = now
        mixture = Mixture(np.array([CHOOSES]), np.ones(1), kappa, np.ones((g, 1)))
        strangers = [z for z, share in enumerate(self.shares) if share == 0]
        if strangers:  # as they were
            before = old.mixture
            share = np.zeros((g, len(before.alpha) + 1))
            share[:, 0] = 1.0
            share[strangers, 0], share[strangers, 1:] = 0.0, before.share[strangers]
            mixture = Mixture(
                np.concatenate([mixture.fixed, before.fixed]),
                np.concatenate([mixture.alpha, before.alpha]),
                np.concatenate([mixture.kappa, before.kappa]),
                share,
            ).followed(share[:, None, :])
        basis = old.basis.unmeasured(known)
        slopes = replace(_slopes(old, self.j), kappa=np.array(now))
        outcome = unmeasured(old.outcome.means.shape)
        return replace(old, mixture=mixture, outcome=outcome, prices={}, basis=basis, slopes=slopes)


class _WeighedPeople(Seen):
    """People with the expected loss and happiness of every decision."""

    def __init__(self, ledger: Ledger, j: int, origin: float) -> None:
        inside = ledger.among[:, 0, j]
        self._costs, self._gains = ledger.cost.tolist(), ledger.value[:, :, 0, j].tolist()
        self.values = (ledger.value[:, :, 0, j] + origin * inside[:, None]).T.tolist()
        self.counted = (inside > 0).tolist()
        self.regrets = (ledger.cost.max(axis=1) - ledger.cost.min(axis=1)).tolist()
        self._cost_sizes = np.abs(ledger.cost).max(axis=1).tolist()
        self._gain_sizes = np.abs(ledger.value[:, :, 0, j]).max(axis=1).tolist()

    def decide(self, i: int, control: float) -> int:
        """As :func:`felicific._program.crowd.choose` does, about one person."""
        totals = [cost - control * gain for cost, gain in zip(self._costs[i], self._gains[i], strict=True)]
        least = min(totals)
        # What no rounding could make of the others.
        clear = least + 1e-11 * (self._cost_sizes[i] + abs(control) * self._gain_sizes[i])
        if sum(total <= clear for total in totals) == 1:
            return totals.index(least)
        return self._settled(self._costs[i], [control * gain for gain in self._gains[i]])

    @staticmethod
    def _settled(costs: list[float], gains: list[float]) -> int:
        """Who is nearly indifferent: ties go to the least loss, then to the first decision."""
        totals = [cost - gain for cost, gain in zip(costs, gains, strict=True)]
        size = max(max(abs(cost), abs(gain)) for cost, gain in zip(costs, gains, strict=True))
        edge = min(totals) + 1e-11 * size
        cheap = [cost if total <= edge else math.inf for cost, total in zip(costs, totals, strict=True)]
        least = min(cheap)
        edge = least + 1e-11 * abs(least)
        return next(d for d, cost in enumerate(cheap) if cost <= edge)


def _slopes(policy: IndividualPolicy, j: int) -> Slopes:
    """How means follow weights; refused where nobody knows."""
    check_steered(policy.measures[j], looks_at_y=False)
    if not policy.sees_group:
        raise DataError(
            "The policy decides without the group, and every group has a control of its own.",
            "Fit a policy that sees the group, or audit the decisions.",
        )
    slopes = policy.slopes
    if slopes is None or slopes.j != j:
        weighs = np.flatnonzero(policy.mixture.kappa.any(axis=(0, 1))).tolist()
        names = ", ".join(repr(policy.measures[k].name) for k in weighs)
        raise DataError(
            f"The policy weighs {len(weighs)} measures, {names}, and one is steered."
            if len(weighs) > 1
            else f"The policy does not say how the means of {policy.measures[j].name!r} follow its weights.",
            "Fit it again, with one happiness."
            if len(weighs) > 1
            else "Fit it again: files of an older felicific, and policies off a frontier, lack it.",
        )
    return slopes


# ---------------------------------------------------------------------------------------------------------
# Controls of policies of cells: shares of people, in the order of their scores.
#
# The people of a group stand in one line, the cell of the highest score first, those of a cell in the order
# of their draws. Where somebody stands is the rank
#
# .. math:: r = \sum_{s' > s} m_{zs'} + (1 - u) \, m_{zs}
#
# with the draw :math:`u` of the person's key, as the policy itself draws it, and the shares :math:`m_{zs}`
# of the fitted people of the group in its cells. Those up to the control are decided the second class: a
# threshold that moves.


class RankControls(Controls):
    """The controls of a policy of score bins that decides between two classes."""

    def __init__(self, policy: CellPolicy, j: int, happiness: HappinessLike | None) -> None:
        _check_cells(policy)
        self._policy, self.j = policy, j
        self._problem = Problem.of(policy.classes, _function(policy, j, happiness))
        self._problem.check_groups(policy.groups)
        held = policy.mass.sum(axis=1)
        total = np.where(held > 0, held, 1.0)
        self._mass = policy.mass / total[:, None]
        # Summed from the top, so that the lowest cell ends at what all of them are.
        self._above = np.flip(np.flip(self._mass, axis=1).cumsum(axis=1), axis=1) - self._mass
        second = policy.rounded(policy.q)[:, :, 1] if not policy.signal.drawn else policy.q[:, :, 1]
        self.fitted = (self._mass * second).sum(axis=1).clip(0.0, 1.0).tolist()
        known = np.zeros(len(policy.groups), dtype=bool)
        known[compared_groups(policy.left_out, policy.measures[j].name, policy.groups)] = True
        shares = np.where(known, held, 0.0)
        self.shares = (shares / shares.sum()).tolist()
        self.needs_keys = policy.randomize

    def limits(self, reach: float) -> list[tuple[float, float]]:
        """So much of the people more or less; nobody, or all, is no limit."""
        sides = [(share - reach, share + reach) for share in self.fitted]
        return [(low if low > 0.0 else -math.inf, high if high < 1.0 else math.inf) for low, high in sides]

    def farthest(self, z: int, regret: float) -> float:
        """To where all are decided alike."""
        return max(self.fitted[z], 1.0 - self.fitted[z])

    def look(self, scores: Array, group: Codes, keys: Sequence[str] | None, x: Table) -> Seen:
        """Their ranks, and what both classes are worth to them."""
        ranks = self._ranks(scores, group, keys)
        values, counted = np.zeros((2, len(group))), np.ones(len(group), dtype=bool)
        if x is None:
            self._problem.refuse_x()
        rows = np.arange(len(group))
        everyone = Batch(x, None, None, names_at(self._policy.groups, group), rows)
        for start in range(0, len(group), BATCH):
            part = slice(start, min(start + BATCH, len(group)))
            batch = everyone if len(group) <= BATCH else everyone.take(part)
            values[:, part], inside = worth_of(self._problem, batch).values(0)
            if inside is not None:
                counted[part] = inside
        return _Ranked(ranks, values, counted)

    def _ranks(self, scores: Array, group: Codes, keys: Sequence[str] | None) -> Floats:
        draws = np.full(len(group), 0.5) if keys is None else 1.0 - uniforms(self._policy.salt, keys)
        spread = self._policy.spread(scores)
        cell, share = spread[0]
        if share is not None:  # the label itself is drawn; what is left of the draw is a draw again
            (_, none), (_, chance) = spread
            assert none is not None, "every label has its chance"
            assert chance is not None, "every label has its chance"
            second = draws <= chance
            draws = np.where(second, draws, draws - chance) / np.where(second, chance, none)
            cell = second.astype(np.intp)
        return np.asarray(self._above[group, cell] + draws.clip(0.0, 1.0) * self._mass[group, cell])

    def described(self, z: int, now: float, reach: float) -> Control:
        """As a threshold of the score, or by the labels."""
        threshold = self._threshold(z, now)
        decision = repr(self._policy.classes.tolist()[1])
        if threshold is None:
            each = self._second(z, now).tolist()
            names = [repr(label) for label in self._policy.classes.tolist()]
            parts = [f"{each[s]:.2%} of those labelled {names[s]}" for s in (1, 0)]
            words = f"decided {decision}: {' and '.join(parts)}"
        else:
            what = "value" if self._policy.of_values else "score"
            words = f"decided {decision} above a {what} of {threshold:.4g}"
        low, high = self.limits(reach)[z]
        now = min(max(now, 0.0), 1.0)
        return Control(now, self.fitted[z], max(low, 0.0), min(high, 1.0), threshold, words)

    def _second(self, z: int, now: float) -> Floats:
        """Chance of the second class in every cell of a group: those at whom the control stands have a part of it."""
        mass, above = self._mass[z], self._above[z]
        if not 0.0 < now < 1.0:
            return np.full(len(mass), float(now >= 1.0))
        part = (now - above) / np.where(mass > 0, mass, 1.0)
        # Nobody is in an empty cell, whose people would all stand where it begins.
        return np.asarray(np.where(mass > 0, part.clip(0.0, 1.0), above <= now))

    def _threshold(self, z: int, now: float) -> float | None:
        """The score above which the second class is decided; within a cell where draws decide, as far as they do."""
        signal = self._policy.signal
        if signal.line(2) is None or not signal.ordered:
            return None
        value = dict(signal.cuts_at())
        chances, ranges = self._second(z, now), signal.ranges(2)
        open_cells = np.flatnonzero((chances > 0.0) & (self._mass[z] > 0))
        if not len(open_cells):
            top = ranges[int(np.flatnonzero(self._mass[z] > 0)[-1])]
            return float(value.get(top[2], top[2]))
        s = int(open_cells[0])
        low, high = (value.get(end, max(end, 0.0)) for end in ranges[s][1:])
        if value and s in (0, len(ranges) - 1):  # of a decision function, no end is known there
            return float(high if s == 0 else low)
        return float(high - chances[s] * (high - low))

    def policy(self, now: Sequence[float], known: tuple[str, ...]) -> CellPolicy:
        """Thresholds, with a lottery in the cell at which each stands."""
        old, q = self._policy, self._policy.q.copy()
        for z, share in enumerate(self.shares):
            if share > 0:
                second = self._second(z, now[z])
                q[z] = np.column_stack([1.0 - second, second])
        outcome = unmeasured(old.outcome.means.shape)
        return replace(old, q=q, outcome=outcome, prices={}, basis=old.basis.unmeasured(known))


class _Ranked(Seen):
    """People with their ranks."""

    def __init__(self, ranks: Floats, values: Floats, counted: Array) -> None:
        self._ranks, self.values = ranks.tolist(), values.tolist()
        self.counted = counted.tolist()
        self.changes = (values[1] - values[0]).tolist()

    def decide(self, i: int, control: float) -> int:
        """The second class up to the control; nobody at 0, everybody at 1."""
        if 0.0 < control < 1.0:
            return int(self._ranks[i] <= control)
        return int(control >= 1.0)


def _check_cells(policy: CellPolicy) -> None:
    """Refuse cells that no threshold could stand for."""
    if not policy.sees_group:
        raise DataError(
            "The policy decides without the group, and every group has a control of its own.",
            "Fit a policy that sees the group, or audit the decisions.",
        )
    if len(policy.classes) != 2:
        raise DataError(
            f"The policy decides between {len(policy.classes)} classes, and a threshold between two.",
            "Fit an individual policy, which is steered with any number of classes.",
        )
    if policy.listed:
        raise DataError(
            f"The decisions {', '.join(map(repr, policy.decisions.tolist()))} are listed, and a threshold is steered "
            "between classes.",
            "Fit an individual policy, which is steered whatever is decided.",
        )
    held = policy.mass > 0
    for z, group in enumerate(policy.groups):
        if (np.diff(policy.q[z, held[z], 1]) < -1e-9).any():
            raise DataError(
                f"In group {group!r} the chance of {policy.classes.tolist()[1]!r} falls where the score rises, and a "
                "threshold cannot.",
                "Fit a policy whose chances do not fall, such as one that sees the score.",
            )


def _function(policy: CellPolicy, j: int, happiness: HappinessLike | None) -> Happiness:
    """The function of the measure that is steered."""
    measure = policy.measures[j]
    check_steered(measure, looks_at_y=False)
    if happiness is None and measure.family in CRITERIA:
        happiness = measure.family  # so named by felicific; whoever names one has it by that name
    if happiness is None:
        raise HappinessError(
            f"A policy of kind {policy.kind!r} remembers the name {measure.name!r} of its happiness, and not what it "
            "is.",
            "Pass happiness= as it was fitted.",
        )
    given = resolve_happiness(happiness, policy.classes.tolist(), order=policy.order)
    found = next((part for part in given if part.name == measure.name), None)
    if found is None:
        named = ", ".join(repr(str(part.name)) for part in given)
        raise HappinessError(
            f"The policy was fitted with the happiness {measure.name!r}, and {named} was given.",
            f"If it is the same, say so: name={measure.name!r}.",
        )
    check_steered(measure, looks_at_y=found.looks_at_y)
    if found.looks_at_baseline:
        raise HappinessError(
            f"The happiness {found.name!r} looks at the baseline, which a steering is not told.",
            "Steer what depends on the decision and on x.",
        )
    return found
