r"""Moving: one person after another is decided on by controls that the sums so far have set.

The control of group z, before each person, is

.. math:: u_z = u^{\mathrm{fit}}_z \mp \frac{e_z}{\mathrm{slope} \cdot \mathrm{pace} \cdot \mathrm{share}_z}

with the excess :math:`e_z` of :mod:`felicific._policy.aims`. Of two groups :math:`e_a = -e_b` changes by
:math:`(\eta - L) N_b / (N_a + N_b + 1)` when somebody of a with happiness :math:`\eta` joins, L being the mean of all
before. Once it is beyond

.. math:: K = \mathrm{pace} \cdot \mathrm{slope} \cdot \max_z \mathrm{share}_z \, \mathrm{far}_z

the controls are beyond their range: people of the group above get the least happiness there is for them, those of the
group below the most, and it cannot grow while the least is at most L and the most at least that. So it stays within
K + H, where H is the largest :math:`|\eta - L|`, whoever comes. Where somebody could not be given so little, or so
much, what that added is added to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from felicific._policy.aims import Aim
from felicific._policy.controls import Controls, Seen
from felicific._policy.steering_state import Point, State, Sums, gap_between


@dataclass(frozen=True, eq=False)
class Rule:
    """How controls follow sums.

    Attributes
    ----------
    controls : Controls
    aim : Aim
    pace : float
        People until an error that stays shrinks to a third (1/e).
    reach : float
        How far controls may go.
    """

    controls: Controls
    aim: Aim
    pace: float
    reach: float

    @cached_property
    def weights(self) -> list[float]:
        """The share of the people who pay an excess back, by group."""
        return self.aim.weights(self.controls.shares)

    @cached_property
    def limits(self) -> list[tuple[float, float]]:
        """Between which numbers the controls stay."""
        return self.controls.limits(self.reach)

    @cached_property
    def known(self) -> list[int]:
        """Positions of the groups that are steered and compared."""
        return [z for z, share in enumerate(self.controls.shares) if share > 0]

    @property
    def bounded(self) -> bool:
        """Whether there is a bound that holds whoever comes: of the gap of two groups."""
        return self.aim.gap is not None and len(self.known) == 2

    def slope(self, sums: Sums, change: float = 0.0, more: int = 0) -> float:
        """Happiness per unit of control: that of the policy, or the mean of the people, who has just come included."""
        if self.controls.slope is not None:
            return self.controls.slope
        people = sum(sums.people) + more
        return (sums.sizes + abs(change)) / people if people else 0.0

    def control(self, z: int, excess: float, slope: float, change: float) -> float:
        """The control of a group of this excess; ``change`` is how much more the second class is worth to the group."""
        scale = slope * self.pace * self.weights[z]
        step = excess / scale if scale > 0 else 0.0
        return self.controls.fitted[z] + (step if change < 0 else -step)

    def now(self, z: int, sums: Sums) -> float:
        """The control of a group as it stands, within its limits."""
        excess = self.aim.excess(z, sums.people, sums.happiness) if z in self.known else 0.0
        low, high = self.limits[z]
        return min(max(self.control(z, excess, self.slope(sums), sums.changes[z]), low), high)

    def range(self, steepest: float, regret: float) -> float:
        """The excess from which on controls are beyond their range."""
        far = max(self.weights[z] * self.controls.farthest(z, regret) for z in self.known)
        return self.pace * steepest * far

    def bound(self, state: State) -> float | None:
        """The largest gap that there could be now; None where nothing is proven."""
        gap, people = self.aim.gap, [state.own.people[z] for z in self.known]
        if gap is None or len(people) != 2 or state.limited or state.heard or not min(people):
            return None
        size = self.range(state.steepest, state.regret) + state.farthest + state.added
        found = gap + size * (1.0 / people[0] + 1.0 / people[1])
        return found if math.isfinite(found) else None  # no decision moves one of the groups

    def point(self, state: State, sums: Sums) -> Point:
        """The moment, for the history."""
        gap = gap_between(sums, self.known)
        controls = tuple(self.now(z, sums) for z in range(len(self.weights)))
        return Point(state.decided, None if math.isnan(gap) else gap, self.bound(state), controls)


class Moving:
    """A state that moves while people are decided on; it is the caller's to keep."""

    def __init__(self, rule: Rule, state: State) -> None:
        self.rule, self.state = rule, state
        self._others, self._sums = state.others, state.sums
        self._range = rule.range(state.steepest, state.regret) if rule.bounded else math.inf

    def decide(self, seen: Seen, group: Sequence[int], drawn: Sequence[int]) -> tuple[list[int], list[float]]:
        """Decisions about people, one after another, and the controls by which each was taken.

        Those whose group is not known are decided on by what is ``drawn``, and by no control.
        """
        decisions, controls, known = [], [], set(self.rule.known)
        history = self.state.history
        for i, z in enumerate(group):
            if z in known:
                decision, control = self._steer(seen, i, z)
            else:
                decision, control = drawn[i], math.nan
                if self.rule.aim.of_everybody and seen.counted[i]:
                    change = 0.0 if seen.changes is None else seen.changes[i]
                    self._count(z, seen.values[decision][i], change)
            decisions.append(decision)
            controls.append(control)
            self.state.decided += 1
            if history.due(self.state.decided):
                history.add(self.rule.point(self.state, self._sums))
        return decisions, controls

    def _steer(self, seen: Seen, i: int, z: int) -> tuple[int, float]:
        """Decide on one person, and count what that brings."""
        rule, state, sums = self.rule, self.state, self._sums
        counted = seen.counted[i]
        change = seen.changes[i] if seen.changes is not None and counted else 0.0
        excess = rule.aim.excess(z, sums.people, sums.happiness)
        slope = rule.slope(sums, change, int(counted))
        control = rule.control(z, excess, slope, sums.changes[z] + change)
        low, high = rule.limits[z]
        if not low <= control <= high:
            control = min(max(control, low), high)
            state.limited += 1
        decision = seen.decide(i, control)
        if not counted:
            return decision, control
        happiness = seen.values[decision][i]
        if rule.bounded:
            self._look_out(slope, 0.0 if seen.regrets is None else seen.regrets[i], happiness)
        self._count(z, happiness, change)
        if abs(excess) > self._range:
            after = abs(rule.aim.excess(z, sums.people, sums.happiness))
            state.added += max(0.0, after - abs(excess))
        return decision, control

    def _look_out(self, slope: float, regret: float, happiness: float) -> None:
        """Take note of what the bound is made of."""
        state, people = self.state, sum(self._sums.people)
        if slope > state.steepest or regret > state.regret:
            state.steepest, state.regret = max(state.steepest, slope), max(state.regret, regret)
            self._range = self.rule.range(state.steepest, state.regret)
        if people:
            state.farthest = max(state.farthest, abs(happiness - sum(self._sums.happiness) / people))

    def _count(self, z: int, happiness: float, change: float) -> None:
        """Add somebody. Sums of others are added to what is counted here, whatever was decided together."""
        own, others, sums = self.state.own, self._others, self._sums
        own.people[z] += 1
        own.happiness[z] += happiness
        own.changes[z] += change
        own.sizes += abs(change)
        sums.people[z] = own.people[z] + others.people[z]
        sums.happiness[z] = own.happiness[z] + others.happiness[z]
        sums.changes[z] = own.changes[z] + others.changes[z]
        sums.sizes = own.sizes + others.sizes
