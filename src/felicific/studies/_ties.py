r"""Ties between optimal policies of a criterion, and the rule that settles them.

A criterion can be indifferent between policies that treat the groups very differently: equal accuracy, for one, does
not care on which side the more accurate group's errors are made. At a breakpoint of the criterion's frontier let
:math:`Q` be its optimal policies there (least loss at that gap), and :math:`D(q)` the difference between the two
groups' mean happiness. The rule: take the middle,

.. math:: \tfrac12 \arg\min_{q \in Q} D(q) + \tfrac12 \arg\max_{q \in Q} D(q),

which is in Q because Q is convex, and does not lean to either group. Between two breakpoints policies are mixed, as
everywhere on a frontier. Both ends are reported beside the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from felicific._frontier.breakpoints import Point, known
from felicific._frontier.frontier import Frontier
from felicific._problem.asked import requirements_of
from felicific._problem.requirements import Budget
from felicific._program.moments import Moments
from felicific._program.solution import solve_program
from felicific._typing import Floats

RULE = (
    "Among the optimal policies of a criterion, the middle of the two that differ most in the happiness of the two "
    "groups; both ends are reported."
)


@dataclass(frozen=True, eq=False)
class Settled:
    """A frontier whose ties are settled, and the same with the least and the largest difference D."""

    middle: Frontier
    low: Frontier
    high: Frontier


def settle(line: Frontier, moments: Moments, criterion: str, own: int = 0) -> Settled:
    """Settle the ties of a criterion's frontier.

    Parameters
    ----------
    line : Frontier
        The criterion's, over moments that hold ``overall_accuracy`` too; the loss is the error.
    moments : Moments
        Those it was made of: two groups.
    criterion : str
        The family of components whose gap it limits.
    own : int
        The component whose difference between the groups is left open.
    """
    solved = line.find()
    ends = {sign: [_end(point, moments, criterion, own, sign) for point in solved.points] for sign in (1, -1)}
    middle = [(low + high) / 2 for low, high in zip(ends[1], ends[-1], strict=True)]

    def with_policies(policies: list[Floats]) -> Frontier:
        points = [
            replace(point, find=known(moments.evaluate(q), q))
            for point, q in zip(solved.points, policies, strict=True)
        ]
        return replace(line, find=lambda: replace(solved, points=points))

    return Settled(with_policies(middle), with_policies(ends[1]), with_policies(ends[-1]))


def _end(point: Point, moments: Moments, criterion: str, own: int, sign: int) -> Floats:
    """The optimal policy of least D, or of largest if ``sign`` is -1."""
    weight = sign * np.array([1.0, -1.0]) / moments.counted[:, own]
    tilted = replace(moments, loss=weight[:, None, None] * moments.value[:, :, :, own])
    kept = Budget("overall_accuracy", at_least=1.0 - point.outcome.loss)
    return solve_program(tilted, requirements_of({criterion: point.tau}, (kept,), moments.components)).q
