"""Sums: aggregates of people wherever they are, and of a table whose columns are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from felicific._people.checks import WeightKind
from felicific._people.evaluate import refuse_overflow
from felicific._people.lazy import LazyPeople, labelled_people, no_rows
from felicific._people.people import People, changes
from felicific._people.roles import Roles
from felicific._problem.decisions import predicts_amounts
from felicific._problem.happiness import HappinessLike
from felicific._problem.missing_labels import MissingLabelsLike, resolve_missing_labels
from felicific._problem.problem import Problem, problem_of
from felicific._program.aggregates import Aggregates
from felicific._program.signal_names import SignalLike, resolve_signal
from felicific._program.signals import Signal
from felicific._program.summing import checked, sum_people, sum_whole
from felicific._tables.groups import find_groups, refuse_identifiers
from felicific._typing import Array, LossLike, Table


def compute_aggregates(
    people: People | LazyPeople, problem: Problem, signal: Signal, *, whole: bool = True
) -> Aggregates:
    """The sums that the program needs, of people wherever they are; see :func:`checked`."""
    if not isinstance(people, LazyPeople):
        return sum_whole(people, problem, signal, whole=whole)
    look = partial(people.fold, partial(changes, problem), np.maximum)
    return checked(_sum_lazily(people, signal), problem, look, whole=whole)


def _sum_lazily(people: LazyPeople, signal: Signal) -> Aggregates:
    """Sum up batches of rows with the code for tables in memory."""
    aggregates: Aggregates = people.fold(partial(_sum_some, people.problem, signal), add_groups)
    if not aggregates.rows.sum() and people.groups is None:
        raise no_rows(people.columns.weight)
    if people.groups is None:
        refuse_identifiers(aggregates.groups, int(aggregates.rows.sum()), aggregates.total)
    sums = aggregates.sums.arrays
    refuse_overflow(people.problem, np.moveaxis(sums["value"], 1, -1), sums["loss"])
    return aggregates


def _sum_some(problem: Problem, signal: Signal, people: People) -> Aggregates:
    return sum_people(people, problem, signal)


def add_groups(left: Aggregates, right: Aggregates) -> Aggregates:
    """Add aggregates of parts of one table, either of which may lack some groups."""
    if left.groups == right.groups:
        return left + right
    groups = find_groups(np.array([*{*left.groups, *right.groups}, None], dtype=object)[:-1])
    return left.regrouped(groups) + right.regrouped(groups)


def aggregate(
    table: Table,
    *,
    score: Any = None,
    predicted: Any = None,
    y: Any = None,
    sensitive_features: Any,
    happiness: HappinessLike,
    loss: LossLike = "error",
    classes: Sequence[Any] | None = None,
    decisions: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    baseline: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = None,
    key: str | None = None,
    missing_labels: MissingLabelsLike = None,
    policy: SignalLike = "score",
) -> Aggregates | Any:
    """Sum up everything that the linear program needs to know of the people in a table.

    Parameters
    ----------
    table : dataframe, dict of arrays, array, or path
        The people, as a happiness function will see them. A lazy table (Polars LazyFrame, DuckDB relation, Dask or
        PySpark dataframe, Arrow dataset) or the path, folder or pattern of Parquet files is read by its own
        engine, some rows at a time; the other arguments then name columns.
    score : column, {class: column}, list of columns, or array of shape (n, K) or (n,)
        The model's probabilities. A list is in the order of the sorted classes; with two classes the score of the
        second alone will do.
    predicted : column name or array, optional
        The label that the model predicts, which a ``"label"`` policy reads; by default the most probable class. Without
        ``score``, and with ``loss="squared"`` or ``decisions=(low, high)``, an amount: the aggregates are then those of
        amounts. ``decisions`` fixes the bins, so that sums of several sites add; without it the least and the largest
        prediction do.
    y : column name or array, optional
        Labels, which may be left out where neither the loss nor happiness looks at them.
    sensitive_features : column name(s), callable or array
        The groups; several columns mean their intersections, and ``between=`` of a requirement says which of them are
        compared.
    happiness : function, Happiness, criterion name, expression, or list or dict of them
        What makes a person happy with a decision; an expression is text such as ``"decision * loan"``. Requirements
        can speak of these, and of who gets less of them than from the baseline's decision.
    loss : "error", "squared", "absolute", "quantile:0.9", "changes", cost matrix, function or expression
        What a decision costs the decision maker. A matrix has a row for every class and a column for every decision;
        "changes" counts decisions that are not the baseline's, and nothing else.
    classes, groups : sequence, optional
        All classes and groups there are, when these rows may lack some.
    decisions : sequence, optional
        What may be decided, from the worst to the best for the person: ``["refuse", "refer", "approve"]``, or numbers.
        By default the classes, in their order.
    baseline : column name or array, optional
        What the existing system decides, the baseline; by default what the model predicts, if all of that are
        decisions.
    sample_weight : column name or array, optional
        Weights: 2 is the row twice in every sum, 0 the row absent.
    weight_kind : {"frequency", "sampling"}, optional
        What the weights are, as for :func:`felicific.audit`. No sum depends on it; the aggregates remember it, and
        those of different kinds refuse to add.
    key : column name, optional
        What identifies a person: nothing is summed by it, and the policy remembers it for its lottery.
    missing_labels : "at_random", "unknown" or MissingLabels(...), optional
        What is known of why some labels are missing; see :class:`felicific.MissingLabels`. People without one are then
        summed up beside the others, and what is supposed of them is found once everything is added. By default a
        missing label is an error where something looks at it.
    policy : "score", "label", "soft-label", or Score(...)
        What the policy will see.

    Returns
    -------
    Aggregates
        Small, and additive: the aggregates of two tables are the sum of theirs.

    Examples
    --------
    >>> from felicific import aggregate
    >>> people = {"sex": ["f", "m", "f", "m"], "score": [0.2, 0.4, 0.6, 0.8], "repaid": [0, 0, 1, 1],
    ...           "loan": [10, 20, 30, 40]}
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex",
    ...                happiness={"funding": "decision * loan"})
    >>> sums.groups, sums.baseline.means[:, 0].tolist(), sums.baseline.gaps.tolist()
    (('f', 'm'), [15.0, 20.0], [5.0])
    """
    if predicts_amounts(score, predicted, loss, decisions, policy):
        # What decides amounts stands above this module.
        return import_module("felicific._program.numeric_tables").aggregates_of_amounts(
            table, predicted=predicted, y=y, sensitive_features=sensitive_features, happiness=happiness, loss=loss,
            decisions=decisions, groups=groups, baseline=baseline, sample_weight=sample_weight, key=key,
            policy=policy, classes=classes, missing_labels=missing_labels, weight_kind=weight_kind,
        )  # fmt: skip
    roles = Roles(
        sensitive_features,
        y,
        score,
        predicted,
        baseline,
        weight=sample_weight,
        key=key,
        weight_kind=weight_kind,
        missing_labels=resolve_missing_labels(missing_labels),
        listed=decisions is not None,
    )
    asked = partial(problem_of, decisions=decisions, happiness=happiness, loss=loss)
    return aggregate_roles(table, roles, asked, policy, classes, groups)


def aggregate_roles(
    table: Table,
    roles: Roles,
    asked: Callable[[Array], Problem],
    policy: SignalLike,
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
) -> Aggregates:
    """The sums of a table whose columns have roles, for what is ``asked`` of its classes."""
    signal = resolve_signal(policy)
    with labelled_people(table, roles, asked, classes, groups) as (people, problem):
        return compute_aggregates(people, problem, signal, whole=groups is None)
