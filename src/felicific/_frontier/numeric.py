"""The frontier of amounts: the least loss for every gap, looked at where it bends; any place is solved anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import FittedAmounts, fitted_to_sums
from felicific._policy.words import loss_title
from felicific._problem.happiness import written
from felicific._problem.requirements import check_width
from felicific._program.numeric import AmountAggregates
from felicific._shown.drawing import plot
from felicific._shown.parts import Displayed, Part, Picture, Table, short, spread
from felicific._typing import Floats
from felicific.exceptions import ConstraintError

#: Solves at the most, and how near to a straight line two neighbours have to be, as a share of the range of losses.
SOLVES = 33
STRAIGHT = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class AmountFrontier(Displayed):
    """The least loss for every gap, from the gap of least loss down to 0; solved when it is first looked at.

    Along it the gaps of all measures, and the distance of distributions, shrink in proportion. Two policies of
    amounts are never mixed: ``at(gap=...)`` solves for the gap that is asked.

    Attributes
    ----------
    widest : dict
        The gaps of the least loss without requirements, which are at place 1.
    """

    fitted: FittedAmounts = field(repr=False)
    widest: dict[str, float]
    _known: dict[float, AmountPolicy] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, fitted: FittedAmounts) -> AmountFrontier:
        """Of what was fitted; the gaps that were asked for are those that move."""
        policy = fitted.policy
        gaps = policy.gaps_in(policy.unconstrained)
        moving = {name: gaps[name] for name in policy.asked} if policy.asked else gaps
        return cls(fitted, moving)

    @cached_property
    def _solved(self) -> dict[float, AmountPolicy]:
        return self.looked_at(SOLVES)

    def looked_at(self, most: int) -> dict[float, AmountPolicy]:
        """The policies at no more than so many places, those where it bends most; each is solved once."""
        policies = {place: self._policy(place) for place in (0.0, 0.5, 1.0)}
        while len(policies) < most:
            places = sorted(policies)
            loss = np.array([policies[place].loss for place in places])
            reach = float(np.ptp(loss))
            # How far the middle of three neighbours is from the line through the others, as curves bend.
            bends = {}
            for i in range(len(places) - 1):
                around = slice(max(i - 1, 0), min(i + 3, len(places)))
                x, y = np.array(places[around]), loss[around]
                if len(x) >= 3:
                    second = np.polyfit(x - x.mean(), y, 2)[0]
                    bends[i] = abs(second) * (places[i + 1] - places[i]) ** 2 / 4
            worst = max(bends, key=lambda i: bends[i]) if bends else 0
            if reach == 0.0 or not bends or bends[worst] <= STRAIGHT * reach:
                break
            middle = (places[worst] + places[worst + 1]) / 2
            policies[middle] = self._policy(middle)
        # Where ties keep gaps from closing, several places lead to the same: the tightest of them stands for all.
        different: dict[tuple[float, ...], float] = {}
        for place in sorted(policies):
            different.setdefault((policies[place].loss, *policies[place].gaps.values()), place)
        return {place: policies[place] for place in different.values()}

    def _policy(self, place: float) -> AmountPolicy:
        """The policy at a place, solved once."""
        if place not in self._known:
            gap = {name: place * width for name, width in self.widest.items()}
            self._known[place] = self.fitted.moved(gap).policy
        return self._known[place]

    @property
    def places(self) -> Floats:
        """Places that were looked at: shares of the widest gaps."""
        return np.array(sorted(self._solved))

    @property
    def policies(self) -> list[AmountPolicy]:
        """The policies there."""
        return [self._solved[place] for place in sorted(self._solved)]

    @property
    def loss(self) -> Floats:
        """The least loss there, on the fitted people."""
        return np.array([policy.loss for policy in self.policies])

    @property
    def gaps(self) -> dict[str, Floats]:
        """The gaps that were reached there."""
        return {name: np.array([policy.gaps[name] for policy in self.policies]) for name in self.widest}

    def at(self, *, gap: Any = None) -> AmountPolicy:
        """The policy of least loss at a gap, solved anew: one number, or by measure."""
        if gap is None:
            raise ConstraintError("No gap was given.", "Say at(gap=number).")
        if not isinstance(gap, dict):
            check_width(gap, "gap")
        return self.fitted.moved(gap).policy

    def _parts(self) -> list[Part]:
        names = list(self.widest)
        title = loss_title(self.fitted.policy.loss_name)
        header = (*[f"gap of {name}" for name in names], title)
        rows = [
            (*[written(policy.gaps[name]) for name in names], written(policy.loss, 6))
            for policy in self.policies
        ]
        return [
            self._picture(title),
            Table(
                f"The least {title} for every gap, on the fitted people; places in between are solved anew.",
                header,
                rows,
                "policies and loss hold all of them.",
                keep=spread,
            ),
        ]

    def _picture(self, title: str) -> Picture:
        xs, ys, along = self.drawn()
        baseline = self.fitted.policy.baseline
        now = None
        if len(self.widest) == 1 and not math.isnan(baseline.loss):
            now = self.fitted.policy.gaps_in(baseline)[next(iter(self.widest))], baseline.loss
        drawing = plot(
            xs, ys, now, write_x=lambda number: written(number, 4), write_y=lambda number: written(number, 4)
        )
        return Picture(f"{title[:1].upper()}{title[1:]} for every {along}, on the fitted people", drawing, 9)

    def drawn(self) -> tuple[list[float], list[float], str]:
        """What a picture shows: gaps allowed, the least loss at each, and what stands along its axis."""
        size, along = 1.0, "allowed gap, all of them in proportion"
        if len(self.widest) == 1:
            name, size = next(iter(self.widest.items()))
            along = f"allowed gap of {short(name)!r}"
        return (size * self.places).tolist(), self.loss.tolist(), along

    def plot(self, **options: Any) -> Any:
        """The trade-off as an Altair chart; see :func:`felicific.plots.amounts_frontier`."""
        return import_module("felicific.plots").amounts_frontier(self, **options)


def frontier_of_amounts(sums: AmountAggregates, *, move: Any = None, **settings: Any) -> AmountFrontier:
    """The least loss for every gap; see :func:`felicific.frontier`."""
    if move is not None:
        raise ConstraintError("move= has no use where amounts are predicted.", "Leave move= out.")
    return AmountFrontier.of(fitted_to_sums(sums, **settings))
