r"""Queries: aggregates of people in a table that is not in memory, by one query of its engine.

Rows are grouped by (group, signal, the baseline, label), and the engine adds up the products

.. math:: w_i W_{is}, \qquad w_i W_{is} a_j(i), \qquad w_i W_{is} a_j(i) (\eta_j(d; i) - o_j).

Whatever does not look at x (a cost matrix, a criterion) is the same for all rows of such a key, so it is computed
from the keys afterwards and costs the engine nothing. What is wrong with some row shows in the sums; then, and only
then, the rows are gone through in batches, to say which.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from felicific._people.lazy import LazyPeople, no_rows
from felicific._people.people import People
from felicific._people.worth import refuse_overflow
from felicific._problem.problem import Problem
from felicific._program.aggregates import Aggregates
from felicific._program.signals import Signal
from felicific._program.summing import sum_people
from felicific._tables.groups import (
    find_groups,
    refuse_identifiers,
)


def sum_lazily(people: LazyPeople, signal: Signal) -> Aggregates:
    """Aggregates by one query where everything can be written as expressions, else batch by batch."""
    return _batchwise(people, signal)


# ---------------------------------------------------------------------------------------------------------
# Batch by batch


def _batchwise(people: LazyPeople, signal: Signal) -> Aggregates:
    """Sum up batches of rows with the code for tables in memory."""
    aggregates: Aggregates = people.fold(partial(_sum_some, people.problem, signal), add_groups)
    if not aggregates.rows.sum() and people.groups is None:
        raise no_rows(people.columns.weight)
    if people.groups is None:
        refuse_identifiers(aggregates.groups, int(aggregates.rows.sum()), aggregates.total)
    refuse_overflow(people.problem, aggregates.value, aggregates.loss)
    return aggregates


def _sum_some(problem: Problem, signal: Signal, people: People) -> Aggregates:
    return sum_people(people, problem, signal)


def add_groups(left: Aggregates, right: Aggregates) -> Aggregates:
    """Add aggregates of parts of one table, either of which may lack some groups."""
    if left.groups == right.groups:
        return left + right
    groups = find_groups(np.array([*{*left.groups, *right.groups}, None], dtype=object)[:-1])
    return left.regrouped(groups) + right.regrouped(groups)
