"""A frontier of solved points: the least loss for some values of a requirement in which it is not convex.

Mixing the policies of two ratios is no policy of a third, so nothing is said between two values: another value is
another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from felicific._frontier.breakpoints import EXACT, Closing
from felicific._frontier.curve import Line, table_of
from felicific._frontier.frontier import Frontier
from felicific._policy.policy import Policy
from felicific._problem.happiness import Component
from felicific._problem.rows import Requirement
from felicific._program.moments import Outcome
from felicific._typing import Floats, GapLike
from felicific.exceptions import ConstraintError, InfeasibleError

#: Values that are solved for, from the tightest to 0, which asks for nothing.
VALUES = tuple(round(1.0 - step / 20, 2) for step in range(21))


@dataclass(frozen=True, eq=False)
class SolvedFrontier(Frontier):
    """The least loss for some values of a requirement, each solved on its own; nothing before it is first looked at.

    Its ``tau`` are those values, from the tightest on that some policy meets; ``at(tau=...)`` solves for any other.
    What an exact frontier reads off the mixtures of its breakpoints is refused.

    Attributes
    ----------
    requirement : Requirement
        The one that moves.
    before : Outcome
        What the model's own decisions do.
    solve : callable
        The policy of least loss for a value; InfeasibleError where there is none.

    Examples
    --------
    >>> from felicific import Ratio, frontier
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> line = frontier(people, proba="score", y="repaid", sensitive_features="sex", happiness="decision",
    ...                 constraints=[Ratio("decision", 0.8)])
    >>> line.tau[:3].tolist(), round(float(line.loss[0]), 9), round(line.at(tau=0.8).loss, 9)
    ([1.0, 0.95, 0.9], 0.125, 0.05)
    """

    requirement: Requirement = field(kw_only=True)
    before: Outcome = field(kw_only=True)
    solve: Callable[[float], Policy] = field(repr=False, kw_only=True)

    @cached_property
    def _solved(self) -> dict[float, Policy]:
        found: dict[float, Policy] = {}
        refusal = None
        for value in VALUES:
            try:
                found[value] = self.solve(value)
            except InfeasibleError as error:
                refusal = error
        if not found and refusal is not None:
            raise refusal
        return found

    def __getstate__(self) -> dict[str, Any]:
        # Solved before it is stored; what it was solved from stays where it is.
        kept = {part.name: getattr(self, part.name) for part in fields(self)}
        return kept | {"solve": partial(_stored, self._solved), "_solved": self._solved}

    @property
    def today(self) -> Outcome:
        """What the model's own decisions do."""
        return self.before

    course: ClassVar[str] = "the tightest to what asks for nothing"
    mixes: ClassVar[bool] = False

    @property
    def places(self) -> str:
        """What its places are called."""
        return "values"

    def place(self, i: int) -> str:
        """The value."""
        return f"at least {self.tau[i]:g}"

    @property
    def tau_today(self) -> NoReturn:
        """Refused: no gap moves."""
        raise self._only_exact("tau_today")

    def __len__(self) -> int:
        return len(self._solved)

    @property
    def tau(self) -> Floats:
        """The values that some policy meets, from the tightest on."""
        return np.array(list(self._solved))

    @property
    def policies(self) -> list[Policy]:
        """The policy of each value."""
        return list(self._solved.values())

    @property
    def loss(self) -> Floats:
        """Loss at every value."""
        return np.array([policy.loss for policy in self.policies])

    @property
    def gaps(self) -> Floats:
        """Gaps at every value, of shape (values, components)."""
        return np.array([policy.outcome.gaps for policy in self.policies])

    @property
    def means(self) -> Floats:
        """Group means at every value, of shape (values, groups, components)."""
        return np.array([policy.outcome.means for policy in self.policies])

    @property
    def prices(self) -> Floats:
        """Loss per unit by which the requirement is tightened, at every value."""
        return np.array([_price(policy) for policy in self.policies])

    def at(self, *, gap: GapLike = None, loss: float | None = None, tau: float | None = None) -> Policy:
        """The policy of least loss at a value, by a program of its own; or of the tightest solved one at a loss.

        Parameters
        ----------
        gap :
            Refused: no gap moves.
        loss : number
            The loss allowed.
        tau : number
            Or the value of the requirement.
        """
        place = self.position(gap=gap, loss=loss, tau=tau)
        return self._solved[place] if loss is not None else self.solve(place)

    def along(self, taus: Iterable[float]) -> list[Policy]:
        """The policies at some values, each solved on its own."""
        return [self.at(tau=tau) for tau in taus]

    def price_at(self, taus: Iterable[float]) -> Floats:
        """Loss per unit by which the requirement is tightened, at some values."""
        return np.array([_price(policy) for policy in self.along(taus)])

    def position(self, *, gap: GapLike = None, loss: float | None = None, tau: float | None = None) -> float:
        """The value at which :meth:`at` finds its policy."""
        if gap is not None:
            raise self._only_exact("gap=")
        if (loss is None) == (tau is None):
            raise ConstraintError("A place on this frontier is a loss or a tau.", "Give one of the two.")
        if tau is not None:
            return float(tau)
        kept = [tau for tau, policy in self._solved.items() if policy.loss <= float(loss or 0.0) + 1e-12]
        if not kept:
            raise InfeasibleError(
                f"No policy of this kind has a loss of {loss:.6g}; the least is {self.loss.min():.6g}.",
                "Allow at least that loss.",
            )
        return kept[0]

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per value: tau, loss, price, gaps and group means, by name."""
        more = {"price": self.prices.tolist()}
        return table_of(self.components, self.groups, self.tau, self.loss, more, self.gaps, self.means)

    @property
    def ray(self) -> NoReturn:
        """Refused: no gap moves."""
        raise self._only_exact("ray")

    @property
    def widths(self) -> NoReturn:
        """Refused: no gap moves."""
        raise self._only_exact("widths")

    @property
    def points(self) -> NoReturn:
        """Refused: there are no breakpoints."""
        raise self._only_exact("points")

    def on(self, others: Any) -> NoReturn:
        """Refused: between two values nothing is known."""
        raise self._only_exact("on")

    def band(self, *people: Any, **options: Any) -> NoReturn:
        """Refused: between two values nothing is known."""
        raise self._only_exact("band")

    def plot(self, **options: Any) -> NoReturn:
        """Refused: between two values nothing is known."""
        raise self._only_exact("plot")

    def _only_exact(self, what: str) -> ConstraintError:
        kind = type(self.requirement).__name__
        return ConstraintError(
            f"{what!r} needs the breakpoints of an exact frontier, and policies along a {kind} do not mix.",
            "Read tau, loss, prices and policies, or at(tau=...); or move a Gap instead.",
        )


def _price(policy: Policy) -> float:
    """What its ratio costs."""
    words = {asked.words for asked in policy.basis.requirements if asked.measure == "ratio"}
    return sum((price for name, price in policy.prices.items() if name in words), 0.0)


def _stored(solved: dict[float, Policy], value: float) -> Policy:
    """The policy of a value that was solved for before the frontier was stored."""
    if value not in solved:
        raise ConstraintError(
            f"A stored frontier has no policy for {value!r}.", "Solve for it, or read those it has: tau."
        )
    return solved[value]


def _no_line() -> Line:
    raise AssertionError("a frontier of solved points has no breakpoints")


def solved_frontier(
    closing: Closing,
    components: tuple[Component, ...],
    groups: tuple[Any, ...],
    loss_name: str,
    today: Outcome,
    solve: Callable[[tuple[Requirement, ...]], Policy],
    change_cost: float = 0.0,
) -> SolvedFrontier:
    """The frontier of what a closing moves by points; ``solve`` finds the policy that meets some requirements."""
    moved = closing.by_points
    assert moved is not None, "something is moved by points"

    def at(value: float) -> Policy:
        return solve((*([moved.at(value)] if value else []), *closing.kept))

    return SolvedFrontier(
        components,
        groups,
        loss_name,
        EXACT,
        _no_line,
        change_cost,
        requirement=moved,
        before=today,
        solve=at,
    )
