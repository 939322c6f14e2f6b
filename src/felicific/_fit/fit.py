"""Fitting: from people and a problem to a policy, with what it takes to move it later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from felicific._fit.cells import FittedCells
from felicific._fit.fitted import Fitted
from felicific._fit.individual import FittedIndividual
from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._program.changes import ChangeCost
from felicific._program.signals import Individual, Signal


def fit_policy(
    problem: Problem,
    people: People,
    kind: Signal | Individual,
    *,
    salt: str,
    randomize: bool = True,
    out_of_fold: bool = False,
    change_cost: ChangeCost = 0.0,
) -> Fitted:
    """Fit a policy of this kind to people with labels, whose probabilities may be ``out_of_fold``."""
    fit: Callable[..., Fitted] = FittedIndividual.fit if kind.sees_x else FittedCells.fit
    fitted = fit(problem, people, kind, salt=salt, randomize=randomize, change_cost=change_cost)
    basis = replace(fitted.policy.basis, out_of_fold=out_of_fold)
    return replace(fitted, policy=replace(fitted.policy, basis=basis))
