r"""The frontier of individual policies: a pool of deterministic ones that serves every gap.

On the plug-in ledger, minimising loss plus :math:`\lambda \tau` over mixtures of all deterministic policies is a
program of its own for every :math:`\lambda`, solved by column generation. Tracing the breakpoints with those solves
fills a pool until no policy that sees x lies below the chords by more than the tolerance. The frontier that is
returned is the exact one of all mixtures of the pool, valued on the real labels where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from felicific._frontier.breakpoints import (
    Breakpoint,
    Closing,
    baseline_at,
    breakpoints,
    moving_of,
    point_of,
    tau_rounding,
    trace,
)
from felicific._frontier.curve import SolvedFrontier, Steps, searched, values_of
from felicific._frontier.frontier import Frontier
from felicific._policy.individual import IndividualPolicy, Search
from felicific._policy.policy import Policy
from felicific._problem.linear import Linear, open_goals
from felicific._problem.problem import Problem
from felicific._problem.requirement import Requirement, of_means
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.crowd import Ledgers, Mixture
from felicific._program.generation import Columns, Generator
from felicific._program.master import Answer, Master
from felicific._program.program import Program
from felicific._program.solution import Solution
from felicific._program.sorted_people import by_price
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError

#: How far the loss may lie above the optimum between breakpoints, relative to its whole rise, by the plug-in ledger.
TOLERANCE = 1e-4

#: Passes after which the search for one breakpoint ends, and those in a row that may bring no progress.
PASSES, PATIENCE = 60, 3

#: A duality gap that counts as closed, relative to the largest regret.
EXACT = 1e-9


@dataclass(frozen=True)
class Pool:
    """Deterministic policies, and the frontier of their mixtures.

    ``points`` hold, as probabilities of shape (groups, 1, policies), how each group mixes the pool; ``program`` is the
    one that was traced. ``excess`` bounds how far the traced losses may lie above the optimum of the plug-in ledger,
    and is None when the probabilities call the requirements out of reach.
    """

    search: Generator
    program: Program
    rows: list[Linear]
    points: list[Breakpoint]
    excess: float | None


def fill(search: Generator, closing: Closing) -> Pool:
    """Find the policies that a frontier needs; the search is for what holds everywhere on it."""
    excess: float | None = None
    try:
        excess = _sweep(search, search.expected, closing)
    except InfeasibleError:
        if search.real is search.expected:
            raise
        # What the probabilities say is out of reach may still be met on the real labels.
    if search.real is not search.expected:
        # Pricing never sees a label, so on the real ledger the sweep is a search and no proof.
        _sweep(search, search.real, closing)
        points = breakpoints(search.master(search.real), _rows(search, search.real, closing))
        search.approach(np.flatnonzero(np.max([point.q for point in points], axis=(0, 1, 2)) > 0).tolist())
    program, rows = search.master(search.real), _rows(search, search.real, closing)
    return Pool(search, program, rows, breakpoints(program, rows), excess)


def _rows(search: Generator, columns: Columns, closing: Closing) -> list[Linear]:
    """The requirements as they read on one ledger."""
    return closing.rows(
        columns.aggregates(), sees_group=search.crowd.sees_group, change_cost=search.crowd.change_cost
    )


def _sweep(search: Generator, columns: Columns, closing: Closing) -> float:
    """Add columns until the whole frontier on one ledger is known; returns the largest duality gap left."""
    search.reach(columns)
    sweep = _Sweep(search, columns, _rows(search, columns, closing))
    last = sweep.solve(lambda ray: ray.weighted(0.0))
    nearest = sweep.least()
    first = sweep.solve(lambda ray: ray.within(nearest * (1 + 1e-9), nearest=False))
    sweep.slack = TOLERANCE / 4 * max(first.value - last.value, 0.0)

    def between(weight: float) -> Breakpoint:
        return sweep.solve(lambda ray: ray.weighted(weight / ray.program.cost_scale), weight)

    trace(first, last, between, TOLERANCE)
    return sweep.left


class _Sweep:
    """Column generation for one question after another to the same, growing, pool.

    ``slack`` is the duality gap at which a question counts as answered, ``left`` the largest that remained.
    """

    def __init__(self, search: Generator, columns: Columns, rows: list[Linear]) -> None:
        self.search, self.columns, self.rows = search, columns, rows
        self.slack = self.left = 0.0

    def solve(self, ask: Callable[[Master], Answer], weight: float = 0.0) -> Breakpoint:
        """The mixture of least loss plus ``weight`` times tau."""
        best, idle, better = math.inf, 0, math.inf
        for _ in range(PASSES):
            program = self.search.master(self.columns)
            slack = max(self.slack, EXACT * program.cost_scale)
            answer = ask(Master(program, self.rows, on_ray=True))
            point = point_of(program, self.rows, answer.q)
            better = self._price(1.0, answer.worth)
            value = point.value + weight * point.tau
            idle = 0 if value < best - slack else idle + 1
            best = min(best, value)
            if better <= slack or idle > PATIENCE:
                break
        self.left = max(self.left, better)
        return point

    def least(self) -> float:
        """The least tau that a mixture reaches."""
        for _ in range(PASSES):
            program = self.search.master(self.columns)
            answer = Master(program, self.rows, on_ray=True).least()
            if self._price(0.0, answer.worth) <= EXACT:
                break
        return point_of(program, self.rows, answer.q).tau

    def _price(self, alpha: float, worth: Floats) -> float:
        """Add the column that these multipliers ask for; returns how much it improves."""
        self.search.add(alpha, self.search.kappa_of(self.columns, worth))
        return self.search.reduced(self.columns, alpha, worth)


def individual_frontier(
    problem: Problem, ground: Callable[[], Ledgers], policy: IndividualPolicy, closing: Closing
) -> Frontier:
    """The frontier of policies of the kind of ``policy``; ``ground`` are the people that it was fitted to."""
    # The chances that people keep are a part of the ground.
    closing = replace(closing, kept=of_means(closing.kept))

    def find() -> SolvedFrontier:
        generator = Generator(by_price(ground()), closing.kept, closing.moved)
        old = policy.mixture
        for fixed, alpha, kappa in zip(old.fixed.tolist(), old.alpha.tolist(), old.kappa, strict=True):
            generator.add(alpha, kappa, fixed)  # so that no point lies above the policy that was fitted
        if searched(closing, generator.real.aggregates()):
            return _searched(generator, policy, closing)
        pool = fill(generator, closing)
        # From here on the sums do: what is known of each person is not kept.
        policies, aggregates, expected = (
            generator.policies,
            pool.program.aggregates,
            generator.expected.aggregates(),
        )
        reason = f"frontier known to {TOLERANCE:g} of its rise"
        search = Search(
            passes=generator.passes,
            stopped=reason if pool.excess is not None else "out of reach by the probabilities",
            duality_gap=pool.excess,
            plug_in_optimum=None,
            plug_in_loss=0.0,
            plug_in_gaps={},
        )
        basis = replace(policy.basis, requirements=open_goals(pool.rows))
        mixed = partial(_mixed, replace(policy, basis=basis), policies, expected, search)
        rounding = tau_rounding(pool.program, pool.rows)
        baseline = baseline_at(pool.program, pool.rows)
        return SolvedFrontier(
            moving_of(pool.rows),
            pool.points,
            aggregates.baseline_or_none,
            aggregates,
            mixed,
            rounding,
            baseline,
        )

    return Frontier(policy.measures, policy.groups, problem.loss.name, TOLERANCE, find, policy.change_cost)


def _searched(search: Generator, policy: IndividualPolicy, closing: Closing) -> SolvedFrontier:
    """The frontier that is solved point by point: of the columns that its ends need, and every value of a number."""

    def look(requirements: Sequence[Requirement]) -> None:
        search.requirements = requirements
        for columns in (search.expected, search.real):
            with suppress(InfeasibleError):  # the points say what can be met
                search.descend(columns, search.reach(columns))

    def solve(requirements: Sequence[Requirement], *, start: float | None = None) -> Solution:
        search.requirements = requirements
        return search.solved(search.real)

    look(closing.kept)
    moved = closing.by_points
    if moved is None:
        look((*(one.at(0.0) for one in closing.moved), *closing.kept))
    else:
        for number in values_of(moved, search.real.aggregates(), solve(closing.kept).outcome):
            look((moved.at(number), *closing.kept))

    steps = Steps.of(closing, search.real.aggregates(), solve, search.master(search.real).value)
    done = Search(search.passes, f"searched at {len(steps.points)} gaps", None, None, 0.0, {})
    stated = replace(policy, basis=replace(policy.basis, requirements=steps.goals))
    return steps.line(partial(_mixed, stated, search.policies, search.expected.aggregates(), done))


def _mixed(
    policy: IndividualPolicy, pool: Mixture, expected: Aggregates, search: Search, q: Floats, outcome: Outcome
) -> Policy:
    """The mixture of a pool of policies, given what it does; by the plug-in ledger it is ``expected`` to."""
    plug_in = expected.evaluate(q)
    names = [measure.name for measure in policy.measures]
    gaps = dict(zip(names, plug_in.gaps.tolist(), strict=True))
    own = replace(search, plug_in_loss=plug_in.loss, plug_in_gaps=gaps)
    mixture = pool.followed(q)
    kept = tuple(replace(one, share=None, loss=None) for one in policy.explore)
    return replace(
        policy,
        left_out=expected.left_out,
        mixture=mixture,
        outcome=outcome,
        prices={},
        search=own,
        randomize=True,
        explore=kept,
        slopes=None,  # which were looked for where the policy was fitted, and not here
    )
