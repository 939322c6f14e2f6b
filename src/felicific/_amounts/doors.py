"""Doors: aggregates, policies and frontiers of amounts without scikit-learn, of tables anywhere and of sums.

:func:`felicific.aggregate`, :func:`felicific.solve` and :func:`felicific.frontier` come here where ``prediction=`` is
said, or where sums of amounts are passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from felicific._amounts.aggregates import AmountAggregates, AskedOfAmounts
from felicific._amounts.calibration import Method, check_method
from felicific._amounts.fit import FittedAmounts, fit_amounts, fit_sums
from felicific._amounts.frontier import AmountFrontier
from felicific._amounts.problem import LinesProblem
from felicific._amounts.tables import AmountColumns, sum_table
from felicific._people.lazy import no_rows
from felicific._policy.amounts import AmountPolicy
from felicific._policy.lottery import make_salt
from felicific._problem.rows import Requirement
from felicific._program.signal_names import resolve_sight
from felicific._tables.engine import find_engine
from felicific._typing import GapLike, Table
from felicific.exceptions import AggregatesError, DataError

#: What speaks of classes, and what is said where there are none: an empty argument.
_OF_CLASSES: dict[str, tuple[Any, ...]] = {
    "score": (None,), "classes": (None,), "group_proba": (None,),
    "missing_labels": (None,), "max_odds_ratio": (None,), "move": (None,),
    "weight_kind": (None,), "change_cost": ("auto", 0.0), "sees_group": (True,),
}  # fmt: skip


def refuse_classes(said: Mapping[str, Any]) -> None:
    """Refuse what speaks of classes beside predictions of an amount."""
    for name, value in said.items():
        empty = _OF_CLASSES.get(name)
        if empty is None or any(
            value is one or (isinstance(value, int | float) and value == one) for one in empty
        ):
            continue
        if name == "sees_group":
            raise DataError(
                "Amounts without the group are not found here.",
                "Leave sees_group= out, or use FairRegressor, which finds them.",
            )
        raise DataError(f"{name}= has no use where amounts are predicted.", f"Leave {name}= out.")


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
    baseline: Any = None,
    sample_weight: Any = None,
    missing_group: str | None = None,
    **said: Any,
) -> AmountAggregates:
    """Sum up people about whom an amount is predicted; see :func:`felicific.aggregate`."""
    refuse_classes({name: value for name, value in said.items() if name not in ("policy", "constraints")})
    asked = _asked(happiness, loss, decisions)
    if baseline is not None:
        raise DataError(
            "Sums of amounts do not keep the baseline of each person.",
            "Leave baseline= out (baseline is then the prediction), or fit to the people themselves, in memory.",
        )
    columns = AmountColumns(predicted, y, sensitive_features, sample_weight, None, missing_group)
    return AmountAggregates(sum_table(table, find_engine(table), columns, asked.allowed, groups), asked)


def _asked(happiness: Any, loss: Any, decisions: Any) -> AskedOfAmounts:
    loss = _loss(loss)
    return AskedOfAmounts.of(LinesProblem.of_lines(happiness, loss=loss, decisions=decisions), loss)


def _loss(loss: Any) -> Any:
    """The squared error, where decisions alone say that they are amounts: "error" is that of classes."""
    return "squared" if isinstance(loss, str) and loss == "error" else loss


def solve_amounts(source: AmountAggregates | Table, **said: Any) -> AmountPolicy:
    """The policy of amounts of least loss; see :func:`felicific.solve`."""
    return fitted_amounts(source, **said).policy


def frontier_of_amounts(source: AmountAggregates | Table, **said: Any) -> AmountFrontier:
    """The least loss for every gap; see :func:`felicific.frontier`."""
    return AmountFrontier.of(fitted_amounts(source, **said))


def fitted_amounts(
    source: AmountAggregates | Table,
    *,
    gap: GapLike = None,
    constraints: Iterable[Requirement] = (),
    random_state: Any = None,
    policy: Any = None,
    predicted: Any = None,
    y: Any = None,
    sensitive_features: Any = None,
    happiness: Any = None,
    loss: Any = "error",
    decisions: Any = None,
    baseline: Any = None,
    sample_weight: Any = None,
    missing_group: str | None = None,
    randomize: bool = True,
    **said: Any,
) -> FittedAmounts:
    """A policy of amounts with what it takes to move it, of people in memory row by row, else of their sums."""
    refuse_classes(said)
    calibration, salt = _calibration(policy), make_salt(random_state)
    how: dict[str, Any] = {"calibration": calibration, "salt": salt, "randomize": randomize}
    columns = AmountColumns(predicted, y, sensitive_features, sample_weight, baseline, missing_group)
    if isinstance(source, AmountAggregates):
        _refuse_beside_sums(columns, happiness=happiness, loss=_loss(loss), decisions=decisions)
        return fit_sums(source.asked.problem(gap, constraints), source.sums, **how)
    engine, listed = find_engine(source), tuple(constraints)
    problem = LinesProblem.of_lines(
        happiness, loss=_loss(loss), gap=gap, constraints=listed, decisions=decisions
    )
    if engine is not None:
        sums = aggregates_of_amounts(
            source, predicted=predicted, y=y, sensitive_features=sensitive_features, happiness=happiness, loss=loss,
            decisions=decisions, baseline=baseline, sample_weight=sample_weight, missing_group=missing_group,
        )  # fmt: skip
        return fit_sums(problem, sums.sums, **how)
    people = columns.people(source)
    if people is None:
        raise no_rows(columns.weight)
    return fit_amounts(problem, people, **how)


def _refuse_beside_sums(columns: AmountColumns, **others: Any) -> None:
    """Refuse what was said when people were summed up."""
    said = {
        "predicted": columns.prediction, "y": columns.y, "sensitive_features": columns.group,
        "baseline": columns.baseline, "sample_weight": columns.weight, "missing_group": columns.missing_group,
    } | others  # fmt: skip
    for name, value in said.items():
        if value is not None and not (name == "loss" and value == "squared"):
            raise AggregatesError(
                f"Aggregates were summed up already, so {name}= comes too late.",
                f"Pass {name}= to aggregate(...), or pass the table instead of its aggregates.",
            )


def _calibration(policy: Any) -> Method:
    """What is made of predictions: as Score(calibration=...) says."""
    if policy is None or (isinstance(policy, str) and policy == "auto"):
        return "affine"
    sight = resolve_sight(policy)
    if sight.individual:
        raise DataError(
            f"policy={policy!r} of amounts is not offered here.",
            "Use 'score' or Score(calibration=...), or FairRegressor, which finds individual policies.",
        )
    return check_method(sight.calibration)
