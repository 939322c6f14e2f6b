"""Frontier: the least loss for every gap, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._frontier.individual import individual_frontier
from felicific._people.lazy import LazyPeople
from felicific._people.people import People
from felicific._policy.fit_individual import fit_individual, ground_of
from felicific._policy.individual import IndividualPolicy
from felicific._policy.lottery import make_salt
from felicific._policy.solve import Kind, Said, check_sums, is_of_amounts
from felicific._problem.constraints import check_constraints
from felicific._problem.decisions import predicts_amounts
from felicific._problem.happiness import HappinessLike
from felicific._problem.missing_labels import MissingLabelsLike
from felicific._problem.problem import Problem
from felicific._problem.rows import Requirement, rows_of
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, check_change_cost, resolved
from felicific._program.crowd import Ledgers
from felicific._program.model import check_asked
from felicific._program.signals import Individual, Label, Signal
from felicific._program.sums import compute_aggregates
from felicific._typing import LossLike, RandomState, Table
from felicific.exceptions import DataError, InfeasibleError


def frontier(
    source: Aggregates | Table,
    *,
    gap: Mapping[str, float] | Sequence[str] | None = None,
    constraints: Iterable[Requirement] = (),
    move: Requirement | None = None,
    change_cost: ChangeCost = "auto",
    sees_group: bool = True,
    random_state: RandomState = None,
    policy: Kind | None = None,
    score: Any = None,
    y: Any = None,
    sensitive_features: Any = None,
    happiness: HappinessLike | None = None,
    loss: LossLike = "error",
    classes: Sequence[Any] | None = None,
    decisions: Sequence[Any] | None = None,
    favourable: Any = None,
    predicted: Any = None,
    baseline: Any = None,
    sample_weight: Any = None,
    missing_group: str | None = None,
    group_proba: Mapping[Any, Any] | None = None,
    missing_labels: MissingLabelsLike = None,
    max_odds_ratio: float | None = None,
) -> Frontier | Any:
    """The exact trade-off between loss and gap; of a ratio, the least loss for some values of it.

    Parameters
    ----------
    source : Aggregates, or table
        The sums over the labelled people, see :func:`felicific.aggregate`; or the people themselves.
    gap : dict of measure or criterion to number, or list of measures or criteria; optional
        Which gaps are closed; by default those of all measures. With several, their gaps shrink together: in the
        proportions of the numbers, or else of their gaps when nothing is asked of them.
    constraints : sequence of Gap, Ratio, Floor, Budget, WorseOff and Exploration
        Requirements that hold everywhere on the frontier, but for those that move.
    move : one of the constraints, optional
        What moves along the frontier, alone. By default every Gap, in the proportions of their numbers; without any,
        the first Ratio. Of a Ratio, Floor, Budget or WorseOff its number moves, at 21 values from the tightest on.
    change_cost : number or "auto"
        As for :func:`felicific.solve`. With one, the frontier is that of loss plus what changed decisions cost.
    sees_group : bool
        False for policies that decide alike in all groups.
    random_state : None, int or NumPy generator
        Where the lottery's salt comes from.
    policy, score, y, sensitive_features, happiness, loss, classes, decisions, favourable, predicted,
    baseline, sample_weight, missing_group, group_proba, missing_labels :
        Of a table: as for :func:`felicific.solve`. Individual policies need it in memory.
    max_odds_ratio : number of 1 or more, optional
        As for :func:`felicific.solve`: the frontier is then one of worst cases.

    Returns
    -------
    Frontier
        A cheap object: it is solved when it is first looked at.

    Examples
    --------
    >>> from felicific import frontier
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> line = frontier(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> [round(float(gap), 6) for gap in line.gaps[:, 0]], [round(float(loss), 6) for loss in line.loss]
    ([0.0, 0.25], [0.125, 0.0])
    """
    if predicts_amounts(score, predicted, loss, decisions, policy) or is_of_amounts(source):
        # What decides amounts stands above this module.
        return import_module("felicific._amounts.doors").frontier_of_amounts(
            source, gap=gap, constraints=constraints, change_cost=change_cost, sees_group=sees_group,
            random_state=random_state, policy=policy, predicted=predicted, score=score, y=y,
            sensitive_features=sensitive_features, happiness=happiness, loss=loss, classes=classes,
            decisions=decisions, favourable=favourable, baseline=baseline, sample_weight=sample_weight,
            missing_group=missing_group, group_proba=group_proba, missing_labels=missing_labels,
            max_odds_ratio=max_odds_ratio, move=move,
        )  # fmt: skip
    inputs = Said(
        policy,
        score,
        y,
        sensitive_features,
        happiness,
        loss,
        classes,
        favourable,
        predicted,
        baseline,
        sample_weight,
        missing_group,
        group_proba,
        missing_labels,
        decisions,
    )
    salt, listed = make_salt(random_state), check_constraints(constraints)
    cost = check_change_cost(change_cost)
    if isinstance(source, Aggregates):
        inputs.refuse_with_aggregates()
        source = source.completed(max_odds_ratio)
        check_sums(source)
        joined = source.joined()
        closing = Closing.of(gap, listed, joined.measures, move)
        return _cells(joined, closing, sees_group, salt, cost)
    kind = inputs.kind(source, sees_group)
    with inputs.people(source, kind, constraints=listed, sees_group=sees_group) as (people, problem):
        # All that is measured is closed, not what only a constraint speaks of.
        everything = gap is None and move is None and not any(one.replaces_gap for one in listed)
        closed = list(problem.closed) if everything else gap
        listed = tuple(one.named(problem.choices) for one in listed)
        move = None if move is None else move.named(problem.choices)
        closing = Closing.of(closed, listed, problem.measures, move)
        if kind.sees_x:
            return _individual(people, problem, cast(Individual, kind), salt, closing, cost)
        joined = compute_aggregates(people, problem, cast(Signal, kind)).completed(max_odds_ratio).joined()
        joined.check_complete()
        return _cells(joined, closing, sees_group, salt, cost, favourable=problem.favourable)


def _cells(
    joined: Aggregates,
    closing: Closing,
    sees_group: bool,
    salt: str,
    cost: ChangeCost,
    **about: Any,
) -> Frontier:
    """The frontier of policies that see a signal."""
    # What is wrong with the requirements is said at once.
    check_asked(joined, rows_of(closing.requirements, joined), sees_group=sees_group)
    cost = resolved(joined, cost)
    return cell_frontier(joined, closing, sees_group=sees_group, salt=salt, change_cost=cost, **about)


def _individual(
    people: People | LazyPeople,
    problem: Problem,
    kind: Individual,
    salt: str,
    closing: Closing,
    cost: ChangeCost,
) -> Frontier:
    """The frontier of individual policies of people in memory."""
    if isinstance(people, LazyPeople):
        raise DataError(
            "The frontier of individual policies needs the people in memory.",
            "Collect the table first, or use policy='score'.",
        )
    sums = compute_aggregates(people, problem, Label())
    sums.check_complete()
    scored = people.with_scores
    fitted = _seed(problem, scored, kind, salt, closing, cost)

    def ground() -> Ledgers:
        return ground_of(problem, scored, fitted.calibration, fitted.origin, change_cost=fitted.change_cost)

    return individual_frontier(problem, ground, fitted, closing)


def _seed(
    problem: Problem, people: People, kind: Individual, salt: str, closing: Closing, cost: ChangeCost
) -> IndividualPolicy:
    """A policy from which the frontier starts: one that closes all gaps as far as is asked, if there is one."""
    try:
        closed = replace(problem, requirements=closing.requirements)
        return fit_individual(closed, people, kind, salt, cost)[0]
    except InfeasibleError:
        return fit_individual(replace(problem, requirements=closing.kept), people, kind, salt, cost)[0]
