r"""The frontier: the least loss for every allowed gap, exactly.

.. math:: L(\tau) = \min_q \; \mathrm{loss}(q) \quad \text{s.t.} \quad \mathrm{gap}_j(q) \le \tau u_j

is convex and piecewise linear in :math:`\tau`. With :math:`\tau` a column of the program, minimising loss plus
:math:`\lambda \tau` gives a breakpoint for every :math:`\lambda`; starting from the two ends, the slope of the chord
between two known breakpoints either finds one below the chord or proves that there is none. Between two breakpoints
the optimum is their mixture, so a short list of policies answers every gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific.constraints import Budget, Floor, GapRow, resolve_rows
from felicific.exceptions import ConstraintError, InfeasibleError
from felicific.frames import table_maker
from felicific.happiness import Component
from felicific.lottery import make_salt
from felicific.moments import Moments, Outcome
from felicific.policy import CellPolicy, Policy
from felicific.program import Ray, build, policy_of
from felicific.solution import solve_program

Floats = NDArray[np.float64]

#: Below this, relative to the whole rise of the loss, a breakpoint is not told from the chord beside it.
EXACT = 1e-11


@dataclass(frozen=True)
class Point:
    """One breakpoint: how far along the ray, what it does, and the policy."""

    tau: float
    outcome: Outcome
    policy: Policy


def trace(
    first: Point, last: Point, solve: Callable[[float], Point], tolerance: float = EXACT
) -> list[Point]:
    """All breakpoints between the least gap (``first``) and the least loss (``last``).

    ``solve(weight)`` returns a point that minimises loss plus weight times tau.
    """
    rise = first.outcome.loss - last.outcome.loss
    if rise <= 0 or last.tau <= first.tau:
        return [first]
    slack = tolerance * rise

    def between(left: Point, right: Point) -> list[Point]:
        fall, run = left.outcome.loss - right.outcome.loss, right.tau - left.tau
        if fall <= slack or run <= tolerance * last.tau:
            return []
        weight = fall / run
        point = solve(weight)
        chord = left.outcome.loss + weight * left.tau
        if point.outcome.loss + weight * point.tau >= chord - slack:
            return []
        return [*between(left, point), point, *between(point, right)]

    return _hull([first, *between(first, last), last], slack)


def _hull(points: list[Point], slack: float) -> list[Point]:
    """The points of the lower left hull: repeated, dominated and collinear ones are dropped."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tau, point.outcome.loss)):
        if kept and point.outcome.loss >= kept[-1].outcome.loss - slack:
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], point, slack):
            kept.pop()
        kept.append(point)
    return kept


def _above(left: Point, middle: Point, right: Point, slack: float) -> bool:
    share = (middle.tau - left.tau) / (right.tau - left.tau)
    chord = (1 - share) * left.outcome.loss + share * right.outcome.loss
    return middle.outcome.loss >= chord - slack


@dataclass(frozen=True, eq=False)
class Frontier:
    """The whole trade-off. Nothing is solved before it is first looked at.

    Attributes
    ----------
    components : tuple of Component
        What is measured.
    ray : array of shape (components,)
        The gap of component j allowed at tau is ``tau * ray[j]``; infinite for one that is not constrained. With
        one component ray is 1 and tau is the gap.
    today : Outcome
        What the model's own decisions do.
    tolerance : float
        How far the loss may be from the optimum between breakpoints, relative to its whole rise.
    """

    components: tuple[Component, ...]
    groups: tuple[Any, ...]
    ray: Floats
    today: Outcome
    tolerance: float
    find: Callable[[], list[Point]]
    blend: Callable[[Point, Point, float], Policy]

    @cached_property
    def points(self) -> list[Point]:
        """The breakpoints, from the least gap to the least loss."""
        return self.find()

    def __len__(self) -> int:
        return len(self.points)

    @property
    def tau(self) -> Floats:
        """Positions of the breakpoints on the ray."""
        return np.array([point.tau for point in self.points])

    @property
    def loss(self) -> Floats:
        """Loss at the breakpoints."""
        return np.array([point.outcome.loss for point in self.points])

    @property
    def gaps(self) -> Floats:
        """Gaps at the breakpoints, of shape (breakpoints, components)."""
        return np.array([point.outcome.gaps for point in self.points])

    @property
    def means(self) -> Floats:
        """Group means at the breakpoints, of shape (breakpoints, groups, components)."""
        return np.array([point.outcome.means for point in self.points])

    @property
    def prices(self) -> Floats:
        """Least and largest price at the breakpoints, in loss per unit of tau, of shape (breakpoints, 2).

        Between two breakpoints the price is one number: the slope. At a breakpoint it is the interval between its
        two slopes; below the least gap nothing is for sale, so that price is infinite.
        """
        slopes = -np.diff(self.loss) / np.diff(self.tau)
        return np.column_stack([np.append(slopes, 0.0), np.append([math.inf], slopes)])

    def at(self, *, gap: Any = None, loss: float | None = None) -> Policy:
        """The policy of least loss at a gap, or of least gap at a loss; no further program is solved.

        Parameters
        ----------
        gap : number, or dict of component or criterion to number
            The gap allowed; with several components a number allows it for each.
        loss : number
            The loss allowed.
        """
        if (gap is None) == (loss is None):
            raise ConstraintError(
                "A place on the frontier is a gap or a loss.", "Give one of gap= and loss=."
            )
        if loss is not None:
            return self._at(self._tau_of_loss(float(loss)))
        return self._at(self._tau_of_gap(gap))

    def _tau_of_gap(self, gap: Any) -> float:
        allowed = dict(gap) if isinstance(gap, Mapping) else {c.name: gap for c in self.components}
        taus = []
        for name, width in allowed.items():
            if not isinstance(width, int | float) or math.isnan(width) or width < 0:
                raise ConstraintError(f"The gap is {width!r}.", "Give a number of 0 or more.")
            found = [j for j, c in enumerate(self.components) if name in (c.name, c.family)]
            if not found:
                raise ConstraintError(f"There is no component {name!r}.", "Name one of the frontier's.")
            taus += [
                width / self.ray[j] if self.ray[j] > 0 else math.inf for j in found if self.ray[j] < math.inf
            ]
        tau, least = min(taus, default=math.inf), self.points[0].tau
        if tau < least * (1 - 1e-9) - 1e-300:
            j = int(np.argmin(np.where(self.ray < math.inf, self.ray, math.inf)))
            reached = self.components[j].quantity(least * self.ray[j])
            raise InfeasibleError(
                f"No policy on this frontier reaches that gap; the least is {reached} of {self.components[j].name!r}.",
                "Allow at least that gap, or let the policy see more.",
                least_gap=float(least * self.ray[j]),
            )
        return max(tau, least)

    def _tau_of_loss(self, loss: float) -> float:
        losses, taus = self.loss, self.tau
        if math.isnan(loss) or loss < losses[-1] - 1e-12 * max(abs(losses[-1]), 1.0):
            raise InfeasibleError(
                f"No policy of this kind has a loss of {loss:.6g}; the least is {losses[-1]:.6g}.",
                "Allow at least that loss.",
            )
        return float(np.interp(-loss, -losses, taus))

    def _at(self, tau: float) -> Policy:
        taus, prices = self.tau, self.prices
        right = int(np.searchsorted(taus, tau, side="right"))
        left = right - 1
        policy, price = self.points[left].policy, float(prices[left, 0])
        if right < len(taus) and tau > taus[left]:
            share = (tau - taus[left]) / (taus[right] - taus[left])
            policy = self.blend(self.points[left], self.points[right], share)
        # With several components the price is of all their gaps together, and belongs to none of them.
        return replace(policy, prices={self.components[0].name: price} if len(self.components) == 1 else {})

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per breakpoint: tau, loss, prices, gaps and group means, by name."""
        prices = self.prices
        table: dict[str, list[Any]] = {
            "tau": self.tau.tolist(),
            "loss": self.loss.tolist(),
            "least price": prices[:, 0].tolist(),
            "largest price": prices[:, 1].tolist(),
        }
        for j, component in enumerate(self.components):
            table[f"gap of {component.name}"] = self.gaps[:, j].tolist()
            for z, group in enumerate(self.groups):
                table[f"mean {component.name} of {group}"] = self.means[:, z, j].tolist()
        return table

    def to_frame(self) -> Any:
        """The breakpoints as a pandas or Polars dataframe."""
        return table_maker("auto")({name: np.array(column) for name, column in self.to_dict().items()})


def frontier(
    moments: Moments,
    *,
    gap: Any = None,
    constraints: Iterable[Floor | Budget] = (),
    see_group: bool = True,
    random_state: Any = None,
) -> Frontier:
    """The exact trade-off between loss and gap.

    Parameters
    ----------
    moments : Moments
        The sums over the labelled people.
    gap : dict of component or criterion to number, optional
        The direction of the ray when there are several components: their gaps grow in these proportions. By
        default in the proportions of their gaps when nothing is asked of them.
    constraints : sequence of Floor and Budget
        Requirements that hold everywhere on the frontier.
    """
    joined = moments.joined()
    joined.check_complete()
    free = solve_program(joined, None, constraints, see_group=see_group)
    widths = _directions(joined, gap, free.outcome)
    rows = resolve_rows(joined, widths, constraints)
    program = build(joined, rows, see_group=see_group)
    salt = make_salt(random_state)
    gap_rows = [row for row in rows if isinstance(row, GapRow)]
    ray = np.full(len(joined.components), math.inf)
    for row in gap_rows:
        ray[row.j] = row.width

    def policy(q: Floats, outcome: Outcome) -> CellPolicy:
        return CellPolicy(
            classes=joined.classes,
            groups=joined.groups,
            components=joined.components,
            outcome=outcome,
            prices={},
            salt=salt,
            see_group=see_group,
            signal=joined.signal,
            q=q,
            mass=joined.mass,
        )

    def point(columns: Floats) -> Point:
        q = policy_of(program, columns)
        outcome = joined.evaluate(q)
        tau = max((float(outcome.gaps[row.j]) / row.width for row in gap_rows if row.width > 0), default=0.0)
        return Point(tau, outcome, policy(q, outcome))

    def find() -> list[Point]:
        model = Ray(program)
        first, last = point(model.least()), point(model.weighted(0.0))
        unit = program.cost_scale
        return trace(first, last, lambda weight: point(model.weighted(weight / unit)))

    def blend(left: Point, right: Point, share: float) -> Policy:
        q = (1 - share) * left.policy.q + share * right.policy.q  # type: ignore[attr-defined]  # both CellPolicy
        return policy(q, joined.evaluate(q))

    return Frontier(
        components=joined.components,
        groups=joined.groups,
        ray=ray,
        today=joined.today,
        tolerance=EXACT,
        find=find,
        blend=blend,
    )


def _directions(moments: Moments, gap: Any, free: Outcome) -> dict[str, float]:
    names = [component.name for component in moments.components]
    if isinstance(gap, Mapping):
        return dict(gap)
    if len(names) == 1:
        return {names[0]: 1.0}
    return dict(zip(names, free.gaps.tolist(), strict=True))
