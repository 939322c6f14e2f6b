r"""Controls of policies of cells: shares of people, in the order of their scores.

The people of a group stand in one line, the cell of the highest score first, those of a cell in the order of their
draws. Where somebody stands is the rank

.. math:: r = \sum_{s' > s} m_{zs'} + (1 - u) \, m_{zs}

with the draw :math:`u` of the person's key, as the policy itself draws it, and the shares :math:`m_{zs}` of the fitted
people of the group in its cells. Those up to the control are decided the second class: a threshold that moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from felicific._people.evaluate import BATCH, worth_of
from felicific._people.user_functions import Batch
from felicific._policy.aims import check_steered
from felicific._policy.basis import unmeasured
from felicific._policy.controls import Control, Controls, Seen
from felicific._policy.lottery import uniforms
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Happiness, HappinessLike, resolve_happiness
from felicific._problem.problem import Problem
from felicific._problem.unions import compared_groups
from felicific._tables.groups import names_at
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError, HappinessError

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy


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
