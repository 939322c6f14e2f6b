r"""The frontier: the least loss for every allowed gap, exactly.

.. math:: L(\tau) = \min_q \; \mathrm{loss}(q) \quad \text{s.t.} \quad \mathrm{gap}_j(q) \le \tau u_j

is convex and piecewise linear in :math:`\tau`. With :math:`\tau` a column of the program, minimising loss plus
:math:`\lambda \tau` gives a breakpoint for every :math:`\lambda`; starting from the two ends, the slope of the chord
between two known breakpoints either finds one below the chord or proves that there is none. Between two breakpoints
the optimum is their mixture, so a short list of policies answers every gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from importlib import import_module  # for what stands above: bands and charts
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._frontier.breakpoints import (
    EXACT,
    Breakpoint,
    Closing,
    baseline_at,
    breakpoints,
    moving_of,
    ray_of,
    tau_rounding,
)
from felicific._frontier.curve import MORE, Curve, SolvedFrontier, Steps, curve, parts_of, searched, table_of
from felicific._people.checks import WeightKind
from felicific._policy.cells import CellPolicy
from felicific._policy.policy import Policy
from felicific._problem.constraints import check_gaps, resolve_gap
from felicific._problem.exploration import explored_in
from felicific._problem.happiness import HappinessLike, Measure
from felicific._problem.linear import Goal, open_goals
from felicific._problem.requirement import chances_of
from felicific._problem.requirements import check_width
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost, changed_by
from felicific._program.evidence import Evidence
from felicific._program.fractions import COARSE
from felicific._program.program import Program
from felicific._program.solution import rounded_up, solve_program
from felicific._shown.parts import as_html, clipped
from felicific._tables.memory import table_maker
from felicific._typing import Floats, GapLike, Lazy, LossLike, Table
from felicific.exceptions import AggregatesError, ConstraintError, InfeasibleError

if TYPE_CHECKING:
    from felicific._audit.band import Band


@dataclass(frozen=True, eq=False)
class Frontier:
    """The whole trade-off. Nothing is solved before it is first looked at.

    Attributes
    ----------
    measures : tuple of Measure
        What is measured.
    groups : tuple
        The groups.
    loss_name : str
        What the loss is; "error" for the error rate.
    tolerance : float
        How far the loss may be from the optimum between breakpoints, relative to its whole rise.
    ray : array of shape (measures,)
        The gap of measure j allowed at tau is ``tau * ray[j]``; infinite for one that is not constrained. With
        one measure ray is 1 and tau is the gap.
    baseline : Outcome
        What the model's own decisions do.
    change_cost : number or "auto"
        What a decision that is not the baseline's costs beside the loss; "auto" only where it charges something, see
        :func:`felicific.solve`. With one, the frontier is that of the sum, ``value``: it falls and is convex, and
        ``prices`` are its slopes; ``loss``, the loss alone, need not be.

    Examples
    --------
    >>> from felicific import aggregate, frontier
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> line = frontier(sums, change_cost=0)
    >>> len(line), line.baseline.gaps.tolist()
    (2, [0.25])
    >>> policy = line.at(gap=0.1)
    >>> round(policy.loss, 9), round(policy.prices["decision"], 9)  # half an error per unit of gap
    (0.075, 0.5)
    """

    measures: tuple[Measure, ...]
    groups: tuple[Any, ...]
    loss_name: str
    tolerance: float
    find: Callable[[], SolvedFrontier]
    change_cost: ChangeCost = 0.0

    @cached_property
    def _line(self) -> SolvedFrontier:
        return self.find()

    def __getstate__(self) -> dict[str, Any]:
        # Solved before it is stored: the people that it was found from stay where they are.
        kept = {part.name: getattr(self, part.name) for part in fields(self)}
        return kept | {"find": partial(_same, replace(self._line, solve=None))}

    @property
    def mixes(self) -> bool:
        """Whether the optimum between two points is their mixture, so that the points are breakpoints."""
        return self._line.mixes

    @property
    def points(self) -> list[Breakpoint]:
        """The breakpoints, from the least gap to the least loss."""
        return self._line.points

    @cached_property
    def ray(self) -> Floats:
        """The gap of each measure, between all groups, allowed at tau 1; infinite where that is not closed."""
        return ray_of(self._line.moving, self.measures)

    @property
    def baseline(self) -> Outcome | None:
        """What the baseline's decisions do; None where nobody named the baseline."""
        return self._line.baseline

    @property
    def course(self) -> str:
        """From where to where it goes, as the command line says it."""
        return (
            "the tightest to what asks for nothing" if self._line.limit else "the least gap to the least loss"
        )

    @property
    def limit(self) -> str:
        """Where the number of one requirement moves, what it is: "at least" or "at most"; else empty."""
        return self._line.limit

    def numbers_at(self, tau: float, sizes: Sequence[int]) -> list[float]:
        """The numbers at a position, of requirements that are so many rows each."""
        if self._line.limit:
            return [tau]
        widths = iter(part.width for part in self._line.moving)
        return [tau * max(next(widths) for _ in range(size)) for size in sizes]

    @property
    def closed_alone(self) -> int | None:
        """Position of the measure whose gap alone moves; None where there are several, or none."""
        finite = np.flatnonzero(np.isfinite(self.ray) & (self.ray > 0))
        return int(finite[0]) if len(finite) == len(self._line.moving) == 1 else None

    @property
    def places(self) -> str:
        """What its places are called."""
        return "values" if self._line.limit else "breakpoints" if self.mixes else "solved gaps"

    def place(self, i: int) -> str:
        """What its i-th place is called."""
        limit = self._line.limit
        return f"{limit} {self.tau[i]:.6g}" if limit else f"{self.places[:-1]} {i + 1}"

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        # Short, and without solving anything.
        names, groups = (
            clipped(repr(list(some))) for some in ((measure.name for measure in self.measures), self.groups)
        )
        return f"Frontier(measures={names}, groups={groups})"

    def _repr_html_(self) -> str:
        """For notebooks: the picture and the table, which solves it."""
        return as_html(parts_of(self), MORE)

    def __str__(self) -> str:
        gaps, losses = (
            " to ".join(
                f"{number:.6g}" for number in np.where(np.abs(ends) > 1e-12 * np.abs(ends).max(), ends, 0.0)
            )
            for ends in (self.tau[[0, -1]], self.loss[[0, -1]])
        )
        return f"{len(self)} policies from {self.course}: {gaps}, at a loss of {losses}."

    @property
    def widths(self) -> dict[str, float]:
        """What is allowed at tau 1 of everything that moves: by measure, or by the words of its requirement."""
        return {part.name: part.width for part in self._line.moving}

    @property
    def tau_baseline(self) -> float:
        """Where the baseline's decisions stand: how much of what moves would have to be allowed for them.

        Not a number where nobody named the baseline.
        """
        return self._line.tau_baseline

    @property
    def tau(self) -> Floats:
        """Positions of the breakpoints on the ray; where the number of a requirement moves, that number."""
        return np.array([point.tau for point in self.points])

    @property
    def loss(self) -> Floats:
        """Loss at the breakpoints, without what changed decisions cost."""
        if not self.change_cost:
            return self.value
        return np.array([point.outcome.loss for point in self.points])

    @property
    def value(self) -> Floats:
        """What is minimised, at the breakpoints: the loss, with what changed decisions cost."""
        return np.array([point.value for point in self.points])

    @property
    def gaps(self) -> Floats:
        """Gaps at the breakpoints, of shape (breakpoints, measures)."""
        return np.array([point.outcome.gaps for point in self.points])

    @property
    def means(self) -> Floats:
        """Group means at the breakpoints, of shape (breakpoints, groups, measures)."""
        return np.array([point.outcome.means for point in self.points])

    @property
    def changed(self) -> Floats | None:
        """Share of all people whose decision is not the baseline's, at the breakpoints; None if unknown."""
        shares = [point.outcome.changed for point in self.points]
        people = self._line.sums.people
        given = [share for share in shares if share is not None]
        return (
            np.array([share @ people / people.sum() for share in given])
            if len(given) == len(shares)
            else None
        )

    @property
    def prices(self) -> Floats:
        """Least and largest price at the breakpoints, in loss per unit of tau, of shape (breakpoints, 2).

        With a ``change_cost``, in loss and what changed decisions cost together.

        Between two breakpoints the price is one number: the slope. At a breakpoint it is the interval between its
        two slopes; below the least gap nothing is for sale, so that price is infinite. Where neighbours do not mix it
        is what each point's own program says.
        """
        if not self.mixes:
            return np.array([[point.price] * 2 for point in self.points])
        slopes = -np.diff(self.value) / np.diff(self.tau)
        return np.column_stack([np.append(slopes, 0.0), np.append([math.inf], slopes)])

    def at(self, *, gap: GapLike = None, loss: float | None = None, tau: float | None = None) -> Policy:
        """The policy of least loss at a gap, or of least gap at a loss; no further program is solved.

        Where fractions such as precision are compared, or the number of a Ratio, Floor, Budget or WorseOff moves,
        neighbours do not mix: a program of its own finds the policy.

        Parameters
        ----------
        gap : number, or dict of measure or criterion to number
            The gap allowed; a number allows it for each measure that is closed. With several, the loosest position
            on the ray at which all are kept: off the ray there may be policies of less loss.
        loss : number
            The loss allowed: of the policies of this frontier the one of least gap. With a ``change_cost`` another
            policy, that changes more decisions, may have a smaller gap at that loss.
        tau : number
            Or the position on the ray itself, from that of the first breakpoint on; or the number that moves.
        """
        return self._at([self.position(gap=gap, loss=loss, tau=tau)], self._line.solve)[0]

    def policies_at(self, taus: Iterable[float]) -> list[Policy]:
        """The policies at some positions on the ray, each as :meth:`at` finds it.

        Where neighbours do not mix, the nearest tighter one that was found already.
        """
        return self._at([self.position(tau=tau) for tau in taus])

    def position(self, *, gap: GapLike = None, loss: float | None = None, tau: float | None = None) -> float:
        """The tau at which :meth:`at` finds its policy."""
        if [gap, loss, tau].count(None) != 2:
            raise ConstraintError(
                "A place on the frontier is a gap, a loss or a tau.", "Give one of gap=, loss= and tau=."
            )
        for what, number in (("loss", loss), ("tau", tau)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Real)):
                raise ConstraintError(f"The {what} is {number!r}.", "Give a number.")
        if gap is not None:
            return self._tau_of_gap(gap)
        if loss is not None:
            return self._tau_of_loss(float(loss))
        place = float(tau)  # type: ignore[arg-type]  # one of the three is given
        if not self._line.sign * place >= self._line.sign * self.points[0].tau:
            raise ConstraintError(
                f"tau is {place!r}, and the frontier begins at {self.points[0].tau!r}.",
                "Give at least that.",
            )
        return place

    def _tau_of_gap(self, gap: Any) -> float:
        moving = self._line.moving
        self._refuse_without_gap("gap=")
        if isinstance(gap, Mapping):
            allowed = self._allowed(gap)
        else:  # places on a ray of several gaps may allow more than bounds do
            check_gaps(gap, (), tuple(self.measures[part.j] for part in moving))
            allowed = {part.name: float(gap) for part in moving}
        on = [part for part in moving if part.width > 0 and part.name in allowed]
        least = self.points[0].tau
        if not on:
            return math.inf
        tightest = min(on, key=lambda part: allowed[part.name] / part.width)
        tau = allowed[tightest.name] / tightest.width
        if tau < least - 1e-9 * self.points[-1].tau - self._line.rounding:
            measure = self.measures[tightest.j]
            reached = measure.quantity(rounded_up(least * tightest.width))
            raise InfeasibleError(
                f"No policy on this frontier reaches that gap; the least is {reached} of {measure.name!r}.",
                "Allow at least that gap, or let the policy see more.",
                least_gap=float(least * tightest.width),
            )
        return max(tau, least)

    def _allowed(self, gap: Mapping[str, float]) -> dict[str, float]:
        """What is allowed of everything that moves, by measures, criteria or the words of a requirement."""
        names = [part.name for part in self._line.moving]
        allowed = {name: check_width(gap[name], "gap") for name in names if name in gap}
        widths = resolve_gap({n: w for n, w in gap.items() if n not in allowed}, self.measures)
        for measure, width in zip(self.measures, widths, strict=True):
            if math.isfinite(width) and measure.name not in names:
                raise ConstraintError(
                    f"The gap of {measure.name!r} is measured and not closed on this frontier.",
                    "Ask for that gap when fitting, or name it in the frontier's gap=.",
                )
            if measure.name in names:
                allowed[measure.name] = min(allowed.get(measure.name, math.inf), width)
        return allowed

    def _tau_of_loss(self, loss: float) -> float:
        losses, taus = self.loss, self.tau
        least = float(losses.min())
        if math.isnan(loss) or loss < least - 1e-12 * max(abs(least), 1.0):
            where = "on this frontier" if self.change_cost else "of this kind"
            raise InfeasibleError(
                f"No policy {where} has a loss of {loss:.6g}; the least is {least:.6g}.",
                "Allow at least that loss.",
            )
        # Between breakpoints the loss is a straight line; with a cost of changes it may rise again.
        i = int(np.flatnonzero(losses <= max(loss, least) + (0.0 if self.mixes else 1e-12))[0])
        if i == 0 or not self.mixes:
            return float(taus[i])
        return float(np.interp(-loss, -losses[i - 1 : i + 1], taus[i - 1 : i + 1]))

    def _at(self, places: list[float], solve: Callable[[float], Breakpoint] | None = None) -> list[Policy]:
        if not self.mixes:
            solved = [(solve or self._line.tighter)(tau) for tau in places]
            each = Evidence.of_each(self._line.sums, [point.q for point in solved])
            return [
                self._stated(point.q, point.outcome, tau, point.prices, evidence, point.goals)
                for point, tau, evidence in zip(solved, places, each, strict=True)
            ]
        taus, slopes, points = self.tau, self.prices, self.points
        # The price of several gaps together belongs to none of them.
        moving = self._line.moving
        priced = [part for part in moving if part.width > 0] if len(moving) == 1 else []
        lefts = (np.searchsorted(taus, np.array(places), side="right") - 1).tolist()
        mixed: dict[int, Floats] = {}
        for i, (tau, left) in enumerate(zip(places, lefts, strict=True)):
            if left + 1 < len(taus) and tau > taus[left]:
                share = (tau - taus[left]) / (taus[left + 1] - taus[left])
                mixed[i] = (1 - share) * points[left].q + share * points[left + 1].q
        outcomes = dict(zip(mixed, self._line.sums.evaluate_all(list(mixed.values())), strict=True))
        tables = [mixed.get(i, points[left].q) for i, left in enumerate(lefts)]
        evidence, policies = Evidence.of_each(self._line.sums, tables), []
        for i, left in enumerate(lefts):
            outcome = outcomes.get(i, points[left].outcome)
            price = float(slopes[left, 0])
            prices = {part.name: price / part.width for part in priced}
            policies.append(self._stated(tables[i], outcome, places[i], prices, evidence[i]))
        return policies

    def _stated(
        self,
        q: Floats,
        outcome: Outcome,
        tau: float,
        prices: dict[str, float],
        evidence: Evidence | None,
        requirements: tuple[Goal, ...] = (),
    ) -> Policy:
        """The policy of some probabilities, with what was asked for at its position."""
        policy, ray = self._line.policy(q, outcome), self.ray
        closed = np.flatnonzero(np.isfinite(ray)).tolist()
        allowed = {self.measures[j].name: tau * float(ray[j]) for j in closed}
        basis = replace(policy.basis, allowed=allowed, evidence=evidence)
        return replace(
            policy,
            prices=prices,
            basis=replace(basis, requirements=requirements) if requirements else basis,
        )

    def price_at(self, taus: Iterable[float]) -> Floats:
        """Loss per unit of tau by which less is allowed: the slope of the loss, at a point that towards smaller gaps.

        Of the loss alone, without what changed decisions cost. At the least gap it is infinite: nothing is for sale.
        """
        if not self.mixes:
            return np.array([(self._line.solve or self._line.tighter)(tau).price for tau in taus])
        slopes = np.concatenate([[math.inf], -np.diff(self.loss) / np.diff(self.tau), [0.0]])
        return np.asarray(slopes[np.searchsorted(self.tau, np.array(list(taus)), side="left")])

    @property
    def policies(self) -> list[Policy]:
        """The policies of the breakpoints."""
        return self._at(self.tau.tolist())

    def on(self, others: Aggregates | Callable[[Policy], Outcome]) -> Curve:
        """What the frontier's policies do to other people.

        Parameters
        ----------
        others : Aggregates, or function of a policy
            The aggregates of those people (of the same signal, with the cells of this frontier), or a function that
            says what a policy does to them.

        Returns
        -------
        Curve
            Between two breakpoints group means and loss are straight lines there too, but a gap need not be: where the
            group on top or at the bottom changes it has a kink, which is listed as a point of its own.
        """
        if not isinstance(others, Aggregates) and not callable(others):
            raise AggregatesError(
                f"The other people are a {type(others).__name__}, not aggregates.",
                "Pass aggregate(table, policy=frontier.policies[0].signal, ...), or use fair.frontier_on(X, y).",
            )
        if isinstance(others, Aggregates):
            theirs = replace(_matching(self, others), left_out=self._line.sums.left_out)
            outcomes = [theirs.evaluate(point.q) for point in self.points]
            return curve(
                self.measures,
                self.groups,
                self.tau,
                outcomes,
                theirs.baseline_or_none,
                theirs.compared,
                mixes=self.mixes,
            )
        outcomes = [others(policy) for policy in self.policies]
        compared = self._line.sums.compared
        return curve(self.measures, self.groups, self.tau, outcomes, None, compared, mixes=self.mixes)

    def band(
        self,
        scores: Any,
        X: Table = None,
        y: Any = None,
        *,
        happiness: HappinessLike | None = None,
        sensitive_features: Any = None,
        loss: LossLike = "error",
        sample_weight: Any = None,
        weight_kind: WeightKind = None,
        cluster: Any = None,
        group_proba: Any = None,
        confidence: float = 0.95,
    ) -> Band:
        """Limits of group means, gaps and loss along the frontier, from people it was not fitted on.

        Parameters
        ----------
        scores : array of shape (n, K) or (n,), or column of X
            What the model says about these people: probabilities, or predicted labels for label policies.
        X, y : table, and array or column of X
            The people and their labels; X may be left out when nothing looks at it.
        happiness, sensitive_features, loss, sample_weight :
            As for :func:`felicific.aggregate`.
        weight_kind, cluster, group_proba :
            As for :func:`felicific.audit`.
        confidence : float, default=0.95
            With which the whole band holds.
        """
        self._refuse_without_gap("A band")
        make: Callable[..., Band] = import_module("felicific._audit.band").band
        return make(
            self,
            scores,
            X,
            y,
            happiness=happiness,
            sensitive_features=sensitive_features,
            loss=loss,
            sample_weight=sample_weight,
            weight_kind=weight_kind,
            cluster=cluster,
            group_proba=group_proba,
            confidence=confidence,
        )

    def plot(self, **options: Any) -> Any:
        """The trade-off as an Altair chart; see :func:`felicific.plots.frontier`."""
        self._refuse_without_gap("A chart")
        return import_module("felicific.plots").frontier(self, **options)

    def _refuse_without_gap(self, what: str) -> None:
        if self._line.limit:
            raise ConstraintError(
                f"{what} is along gaps, and no gap moves along this frontier.",
                "Ask for a gap that moves, or look at the points of this frontier.",
            )

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per breakpoint: tau, loss, prices, gaps and group means, by name."""
        prices = {"least price": self.prices[:, 0].tolist(), "largest price": self.prices[:, 1].tolist()}
        return table_of(self.measures, self.groups, self.tau, self.loss, prices, self.gaps, self.means)

    def to_frame(self) -> Any:
        """The breakpoints as a pandas or Polars dataframe."""
        return table_maker("auto")({name: np.array(column) for name, column in self.to_dict().items()})


def _same(line: SolvedFrontier) -> SolvedFrontier:
    return line


def _followed(joined: Aggregates, first: Lazy[CellPolicy], q: Floats, outcome: Outcome) -> Policy:
    """The policy of these probabilities, given what they do."""
    policy = first.value
    if joined.least_loss is not None:
        policy = replace(policy, basis=replace(policy.basis, least_loss=joined.least_of(q)))
    return replace(policy, q=q, outcome=outcome)


def _matching(line: Frontier, others: Aggregates) -> Aggregates:
    """Other people's aggregates, when the frontier's policies can be told from them."""
    policy = line.policies_at(line.tau[:1])[0]
    if policy.sees_x:
        raise AggregatesError(
            "Sums over people do not say what individual policies do to them.", "Use fair.frontier_on(X, y)."
        )
    signal = policy.sight
    theirs = others.joined() if others.signal != signal else others
    for what, mine, other in (
        ("signal", signal, theirs.signal),
        ("groups", line.groups, theirs.groups),
        ("measures", line.measures, theirs.measures),
        ("classes", policy.classes.tolist(), theirs.classes.tolist()),
        ("decisions", policy.decisions.tolist(), theirs.decisions.tolist()),
        ("loss", line.loss_name, theirs.loss_name),
    ):
        if mine != other:
            raise AggregatesError(
                f"The other people's aggregates disagree with the frontier on {what}.",
                "Compute them with policy=frontier.policies[0].signal, and the same groups, happiness and loss.",
            )
    return theirs


def cell_frontier(
    joined: Aggregates,
    closing: Closing,
    *,
    sees_group: bool,
    salt: str,
    expected: bool = False,
    out_of_fold: bool = False,
    change_cost: ChangeCost = 0.0,
) -> Frontier:
    """The frontier of policies that see a signal, with this salt; their outcomes are ``expected``, or measured."""
    joined = joined.comparing(closing.requirements)
    sight: dict[str, Any] = {"sees_group": sees_group, "change_cost": change_cost}
    chances = chances_of(closing.kept, joined.decisions.tolist(), joined.groups)
    if change_cost:
        changed_by(joined)  # is known, or that is said now

    def first(point: Breakpoint, goals: tuple[Goal, ...]) -> CellPolicy:
        free = Lazy(partial(solve_program, joined, (), **sight))
        return CellPolicy.of_sums(
            joined,
            point.q,
            point.outcome,
            free,
            prices={},
            salt=salt,
            sees_group=sees_group,
            expected=expected,
            explore=explored_in(chances) if chances else (),
            basis={
                "out_of_fold": out_of_fold,
                "requirements": goals,
                "change_cost": change_cost,
                "least_loss": None if joined.least_loss is None else joined.least_of(point.q),
            },
        )

    def find() -> SolvedFrontier:
        if searched(closing, joined):
            solve = partial(solve_program, joined, **sight, tolerance=COARSE)
            steps = Steps.of(closing, joined, solve, Program.of(joined, **sight).value)
            return steps.line(partial(_followed, joined, Lazy(partial(first, steps.points[0], steps.goals))))
        program = Program.of(joined, **sight, chances=chances)
        rows = closing.rows(joined, **sight)
        points, now = breakpoints(program, rows), joined.baseline_or_none
        policy = partial(_followed, joined, Lazy(partial(first, points[0], open_goals(rows))))
        rounding, place = tau_rounding(program, rows), baseline_at(program, rows)
        return SolvedFrontier(moving_of(rows), points, now, joined, policy, rounding, place)

    return Frontier(joined.measures, joined.groups, joined.loss_name, EXACT, find, change_cost)
