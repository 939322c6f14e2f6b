r"""The cost of a change: what a decision that is not the baseline's is charged beside the loss.

.. math:: \min_q \; \mathrm{loss}(q) + c \cdot \text{share of people whose decision is not the baseline's}

On the fitted people the least loss promises more than others will see of it. A cost of changes keeps decisions where
they are unless a change is worth it.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from felicific._problem.loss import is_accuracy
from felicific._program.aggregates import Aggregates
from felicific.exceptions import DataError

#: What ``change_cost=`` takes.
ChangeCost: TypeAlias = float | Literal["auto"]

#: What "auto" charges for the score of two classes, where the loss is the error rate.
AUTO = 0.1


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


def cost_of_changes(aggregates: Aggregates, cost: ChangeCost) -> float:
    """What a change costs a policy that sees the signal of some sums.

    "auto" charges nothing where nobody has measured what a cost does to new people: listed decisions, other signals,
    missing labels, and losses whose unit is not the error rate's.
    """
    if cost != "auto":
        return cost
    measured = aggregates.signal.weighs_changes(len(aggregates.classes)) and is_accuracy(aggregates.loss_name)
    return AUTO if measured and not aggregates.listed and aggregates.labels is None else 0.0
