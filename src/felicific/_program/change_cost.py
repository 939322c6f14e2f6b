r"""The cost of a change: what a decision that is not the baseline's is charged beside the loss.

.. math:: \min_q \; \mathrm{loss}(q) + \text{mean over people of } \sum_{d \ne \mathrm{baseline}} c_d \, q_d

On the fitted people the least loss promises more than others will see of it. A cost of changes keeps decisions where
they are unless a change is worth it. A number c is the same for every change. "auto" is :data:`AUTO` times
1 + :data:`GROWTH` x depth: a flat cost is least where everybody of a group gets a small chance, a cost that grows with
depth is least where two neighbouring thresholds are mixed, so few people face a lottery.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from felicific._problem.change import Reference
from felicific._problem.happiness import written
from felicific._problem.loss import is_accuracy
from felicific._typing import Floats
from felicific.exceptions import AggregatesError, DataError

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates

#: What ``change_cost=`` takes.
ChangeCost: TypeAlias = float | Literal["auto"]

#: What "auto" charges for a change at depth 0, and by how many times that it grows until depth 1.
AUTO, GROWTH = 0.1, 20.0


def check_change_cost(cost: Any) -> ChangeCost:
    """Insist on "auto" or a number that is not negative."""
    if isinstance(cost, str) and cost == "auto":
        return "auto"
    if isinstance(cost, bool) or not isinstance(cost, Real) or not 0.0 <= float(cost) < np.inf:
        raise DataError(
            f"change_cost is {cost!r}.",
            "Give 'auto', or what one changed decision costs in the unit of the loss: 0 or more.",
        )
    return float(cost)


def resolved(aggregates: Aggregates, cost: ChangeCost) -> ChangeCost:
    """The cost for these people: "auto" only where it charges something, else a number.

    "auto" charges nothing where nobody has measured what a cost does to new people: listed decisions, other signals
    than one score that orders the decisions, missing labels, and losses whose unit is not the error rate's. Where no
    baseline is known there is nothing to charge.
    """
    if cost != "auto":
        return cost
    ordered = aggregates.signal.climbs(len(aggregates.classes)) and not aggregates.listed
    known = aggregates.labels is None and aggregates.baseline_mass is not None
    return "auto" if ordered and known and is_accuracy(aggregates.loss_name) else 0.0


def words_of(cost: ChangeCost, reference: Reference) -> list[str]:
    """One sentence, if changes cost anything beside the loss."""
    if not cost:
        return []
    more = f", and {AUTO * GROWTH / 100:g} more for each 1 % of the group between the person and "
    number, more = (AUTO, more + reference.of("border")) if cost == "auto" else (cost, "")
    return [f"A changed decision counts {written(number, 6)} beside the loss{more}."]


def charged_losses(aggregates: Aggregates, cost: ChangeCost) -> Floats:
    """The sums of losses, with what changed decisions cost."""
    if not cost:
        return np.asarray(aggregates.loss)
    changed = changed_by(aggregates)
    each = AUTO * (1.0 + GROWTH * depth(aggregates)) if cost == "auto" else cost
    return np.asarray(aggregates.loss + each * changed)


def changed_by(aggregates: Aggregates) -> Floats:
    """How many people every decision changes, bin by bin."""
    if aggregates.baseline_mass is None:
        raise AggregatesError(
            "These aggregates have no baseline, so changes cannot be counted.",
            "Sum up the people again (aggregates that were merged may have lost it), or use change_cost=0.",
        )
    return np.asarray(aggregates.mass[:, :, None] - aggregates.baseline_mass)


def depth(aggregates: Aggregates) -> Floats:
    """The share of a group that stands between a bin and those to whom the baseline gives a decision.

    Of shape (groups, bins, decisions). Bins are ordered by the score and decisions by their positions; the baseline
    gives each its share of the group, as if people were sorted.
    """
    assert aggregates.baseline_mass is not None, "changes were counted"
    people = aggregates.people.clip(min=1e-300)[:, None]
    share = aggregates.mass / people
    middle = (share.cumsum(axis=1) - share / 2)[:, :, None]
    given = aggregates.baseline_mass.sum(axis=1) / people
    upper = given.cumsum(axis=1)
    lower = upper - given
    return np.asarray(np.maximum(np.maximum(lower[:, None] - middle, middle - upper[:, None]), 0.0))
