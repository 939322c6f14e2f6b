"""Aggregates, policies and frontiers of amounts without scikit-learn.

:func:`felicific.aggregate` comes here where ``predicted=`` names amounts, :func:`felicific.solve` and
:func:`felicific.frontier` where aggregates of amounts are passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from felicific._amounts.aggregates import AmountAggregates, AskedOfAmounts
from felicific._amounts.fit import FittedAmounts, fit_sums
from felicific._amounts.frontier import AmountFrontier
from felicific._amounts.tables import AmountColumns, sum_table
from felicific._people.roles import Roles
from felicific._policy.amounts import AmountPolicy
from felicific._policy.lottery import make_salt
from felicific._problem.constraints import check_constraints, refuse_nothing
from felicific._problem.numeric import NumericProblem
from felicific._problem.requirement import Requirement
from felicific._program.calibration import Method, check_method
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.signal_names import resolve_sight
from felicific._tables.engine import find_engine
from felicific._tables.memory import column_names
from felicific._typing import GapLike, Table
from felicific.exceptions import ConstraintError, DataError

#: What speaks of classes, of which there are none.
_OF_CLASSES = ("score", "classes", "missing_labels", "weight_kind")


def aggregates_of_amounts(
    table: Table,
    *,
    predicted: Any,
    y: Any = None,
    sensitive_features: Any = None,
    happiness: Any = None,
    loss: Any = "squared",
    decisions: Any = None,
    groups: Sequence[Any] | None = None,
    policy: Any = None,
    baseline: Any = None,
    sample_weight: Any = None,
    key: str | None = None,
    **of_classes: Any,
) -> AmountAggregates:
    """Sum up people about whom an amount is predicted; see :func:`felicific.aggregate`."""
    for name in _OF_CLASSES:
        if of_classes.get(name) is not None:
            raise DataError(f"{name}= has no use where amounts are predicted.", f"Leave {name}= out.")
    if baseline is not None:
        raise DataError(
            "Sums of amounts do not keep the baseline of each person.",
            "Leave baseline= out (baseline is then the prediction), or use FairRegressor, in memory.",
        )
    loss = "squared" if isinstance(loss, str) and loss == "error" else loss  # "error" is that of classes
    asked = AskedOfAmounts.of(
        NumericProblem.finding(happiness, loss=loss, decisions=decisions), loss, _calibration(policy)
    )
    columns = AmountColumns(predicted, y, sensitive_features, sample_weight)
    engine = find_engine(table)
    sums = sum_table(table, engine, columns, asked.allowed, groups)
    roles = Roles(sensitive_features, y, predicted=predicted, key=key)
    named = roles.remembered(column_names(table) if engine is None else engine.names)
    return AmountAggregates(replace(sums, roles=named), asked)


def solve_amounts(sums: AmountAggregates, **settings: Any) -> AmountPolicy:
    """The policy of amounts of least loss; see :func:`felicific.solve`."""
    listed = check_constraints(settings["constraints"])
    refuse_nothing(settings["gap"], listed)
    return fitted_to_sums(sums, **settings | {"constraints": listed}).policy


def frontier_of_amounts(sums: AmountAggregates, *, move: Any = None, **settings: Any) -> AmountFrontier:
    """The least loss for every gap; see :func:`felicific.frontier`."""
    if move is not None:
        raise ConstraintError("move= has no use where amounts are predicted.", "Leave move= out.")
    return AmountFrontier.of(fitted_to_sums(sums, **settings))


def fitted_to_sums(
    sums: AmountAggregates,
    *,
    gap: GapLike = None,
    constraints: Iterable[Requirement] = (),
    change_cost: ChangeCost = 0.0,
    sees_group: bool = True,
    random_state: Any = None,
) -> FittedAmounts:
    """A policy of amounts with what it takes to move it."""
    if check_change_cost(change_cost) not in ("auto", 0.0):
        raise DataError(
            f"change_cost={change_cost!r} has no use where amounts are predicted.",
            "Leave change_cost= out: a change of an amount costs what the loss says.",
        )
    if not sees_group:
        raise DataError(
            "Amounts without the group are not found here.",
            "Leave sees_group= out, or use FairRegressor, which finds them.",
        )
    problem = sums.asked.problem(gap, constraints)
    return fit_sums(problem, sums.sums, calibration=sums.asked.calibration, salt=make_salt(random_state))


def _calibration(policy: Any) -> Method:
    """What is made of predictions: as Score(calibration=...) says."""
    if policy is None or (isinstance(policy, str) and policy == "auto"):
        return "affine"
    sight = resolve_sight(policy)
    if sight.individual:
        raise DataError(
            "Sums over people are not enough for an individual policy, which looks at each of them.",
            "Use FairRegressor, which has them in memory; or policy='score' or Score(calibration=...).",
        )
    return check_method(sight.calibration)
