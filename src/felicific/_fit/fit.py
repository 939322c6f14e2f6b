"""Fitting: from people and a problem to a policy, with what it takes to move it later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from felicific._fit.cells import FittedCells
from felicific._fit.fitted import Fitted
from felicific._fit.individual import FittedIndividual
from felicific._fit.tryout import Tryout
from felicific._people.checks import are_counts
from felicific._people.people import People
from felicific._policy.policy import Policy
from felicific._problem.problem import Problem
from felicific._program.change_cost import ChangeCost
from felicific._program.evidence import Evidence
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
    evidence = _evidence(problem, people, fitted.policy)
    old = fitted.policy.basis
    basis = replace(old, out_of_fold=out_of_fold, evidence=evidence)
    return replace(fitted, policy=replace(fitted.policy, basis=basis))


def _evidence(problem: Problem, people: People, policy: Policy) -> Evidence | None:
    """What its means rest on: of unequal weights, and of clusters, as many people as would tell as much."""
    evidence, weight = policy.basis.evidence, people.weight
    counts = True
    if weight is not None:
        whole = bool((weight == weight.round()).all())
        counts = are_counts(people.weight_kind, whole, float(weight.sum()), len(people))
    if evidence is None or (counts and people.cluster is None):
        return evidence
    told = people if counts else replace(people, weight_kind="sampling")
    persons = Tryout(problem, told.with_scores).persons(policy)
    shares = evidence.people / evidence.size[:, None]
    return replace(
        evidence, number=persons.sample.n, people=shares * persons.seen[:, None], size=persons.seen
    )
