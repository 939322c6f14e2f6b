r"""Controls of individual policies: the weight of happiness beside the loss.

About a person of group z that decision is taken which has the least :math:`c(d) - \kappa_z \eta(d)`, of expected loss
and happiness. There is no lottery: the weight at which one such policy stands for the fitted mixture, and how steeply
means follow it, were looked for when the policy was fitted (:mod:`felicific._program.slopes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from felicific._policy.aims import check_steered
from felicific._policy.basis import unmeasured
from felicific._policy.controls import Control, Controls, Seen
from felicific._problem.happiness import HappinessLike
from felicific._program.crowd import CHOOSES, Ledger, Mixture
from felicific._program.slopes import Slopes
from felicific._typing import Array, Codes, Table
from felicific.exceptions import DataError, HappinessError

if TYPE_CHECKING:
    from felicific._policy.individual import IndividualPolicy

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
        return _Weighed(
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


class _Weighed(Seen):
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
