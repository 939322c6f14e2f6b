"""A policy that was stored, fitted anew to people without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from felicific._fit.cells import FittedCells
from felicific._fit.fitted import Fitted
from felicific._fit.individual import FittedIndividual
from felicific._people.people import People
from felicific._policy.cells import CellPolicy
from felicific._policy.fit_individual import ground_of
from felicific._policy.individual import IndividualPolicy
from felicific._policy.lottery import moves_between
from felicific._policy.policy import Policy
from felicific._policy.solve import with_limited_losses
from felicific._problem.problem import Problem
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.generation import mixed_outcome
from felicific._typing import Floats
from felicific.exceptions import AggregatesError


class Recalibrated(NamedTuple):
    """A policy for other people, and what that changes.

    Attributes
    ----------
    policy : Policy
        The new one.
    how : dict of str to str
        How each measure was brought to these people.
    before : Outcome, or None
        What the policy that was stored is expected to do to them; None where its cells are others.
    moved : array of shape (groups,)
        Share of each group who get another decision from the new one than from the old one, by the same draw.
    """

    policy: Policy
    how: dict[str, str]
    before: Outcome | None
    moved: Floats


def recalibrate_stored(
    policy: Policy, problem: Problem, people: People, labelled: Aggregates | None = None
) -> Recalibrated:
    """Fit a stored policy anew to people without labels, as :meth:`FairClassifier.recalibrate` does.

    A policy of cells needs the sums of the ``labelled`` people; an individual one brings what it knows of labels.
    """
    after: Fitted
    if policy.sees_x:
        own = cast(IndividualPolicy, policy)
        alone = FittedIndividual(
            problem=problem, policy=own, share_randomized=0.0, people=None, fingerprint=""
        )
        after, how = alone.recalibrated(people)
        before: Outcome | None = _expected(problem, people, own)
    else:
        assert labelled is not None, "score bins keep nothing of labels"
        stored = cast(CellPolicy, policy)
        labelled = with_limited_losses(labelled, problem.requirements)
        _check_same(stored, labelled)
        cells = FittedCells(
            problem=problem,
            policy=stored,
            share_randomized=0.0,
            people=None,
            compared=labelled,
            labelled=labelled,
        )
        moved_cells, how = cells.recalibrated(people)
        after = moved_cells
        same = labelled.signal == cells.policy.signal
        before = moved_cells.aggregates.evaluate(policy.rounded(cells.policy.q)) if same else None
    moves = moves_between(
        policy.probabilities_of(people), after.policy.probabilities_of(people), same_draws=True
    )
    apart = (1.0 - np.trace(moves, axis1=1, axis2=2)).clip(min=0.0)
    weight = people.weights
    groups = len(people.groups)
    totals = np.bincount(people.codes, weight, minlength=groups)
    moved = np.bincount(people.codes, weight * apart, minlength=groups) / np.where(totals > 0, totals, 1.0)
    return Recalibrated(replace(after.policy, roles=policy.roles), how, before, moved)


def _expected(problem: Problem, people: People, policy: IndividualPolicy) -> Outcome:
    """What an individual policy is expected to do to people without labels."""
    known = replace(people.with_scores, y=None, labels=None)
    ground = ground_of(problem, known, policy.calibration, policy.origin)
    probabilities = policy.probabilities_of(known)
    return mixed_outcome(ground.crowd, ground.real, probabilities, policy.left_out)


def _check_same(policy: CellPolicy, labelled: Aggregates) -> None:
    """Refuse sums that are not of what the policy sees and decides, for whom, and by what it is measured."""
    names = [[one.name for one in side if not one.aside] for side in (policy.measures, labelled.measures)]
    pairs = (
        ("what a policy sees", policy.signal.kind, labelled.signal.kind),
        ("the classes", policy.classes.tolist(), labelled.classes.tolist()),
        ("the decisions", policy.decisions.tolist(), labelled.decisions.tolist()),
        ("the groups", list(policy.groups), list(labelled.groups)),
        ("the happiness", *names),
        ("the loss", policy.basis.loss_name, labelled.loss_name),
    )
    for what, mine, theirs in pairs:
        if mine != theirs:
            raise AggregatesError(
                f"The policy and the people with labels differ in {what}: {mine} and {theirs}.",
                "Use the people it was fitted on, and the same words as there.",
            )
