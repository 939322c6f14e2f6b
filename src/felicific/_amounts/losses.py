"""Losses of amounts: what an amount costs the decision maker, where the label is a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._problem.loss import Loss
from felicific.exceptions import DataError

#: How the name of a quantile loss begins; the level follows.
QUANTILE = "quantile:"


@dataclass(frozen=True)
class Squared:
    """The squared error."""

    def __call__(self, decision: Any, y: Any) -> Any:
        """One number per person."""
        return (decision - y) ** 2


@dataclass(frozen=True)
class Absolute:
    """The absolute error."""

    def __call__(self, decision: Any, y: Any) -> Any:
        """One number per person."""
        return np.abs(decision - y)


@dataclass(frozen=True)
class Quantile:
    """The pinball loss: too little costs ``level`` per unit, too much the rest of 1."""

    level: float

    def __call__(self, decision: Any, y: Any) -> Any:
        """One number per person."""
        return np.maximum(self.level * (y - decision), (self.level - 1.0) * (y - decision))


def loss_of_amounts(loss: Any) -> Loss:
    """Read what the user wrote: a name, a function or an expression."""
    named: dict[str, Callable[..., Any]] = {"squared": Squared(), "absolute": Absolute()}
    if isinstance(loss, str) and loss in named:
        return Loss(loss, loss, function=named[loss])
    if isinstance(loss, str) and loss.startswith(QUANTILE):
        try:
            level = float(loss.removeprefix(QUANTILE))
        except ValueError:
            level = float("nan")
        if not 0.0 < level < 1.0:
            raise DataError(f"loss={loss!r}.", "Give a level between 0 and 1, as in 'quantile:0.9'.")
        return Loss(loss, loss, function=Quantile(level))
    if isinstance(loss, str) and loss in ("error", "changes"):
        raise DataError(
            f"The loss {loss!r} counts decisions that differ, and nearly all amounts do.",
            "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression of decision and y.",
        )
    if isinstance(loss, str) or callable(loss) or isinstance(loss, Loss):
        return Loss.of(loss, np.array([0.0, 1.0]))
    raise DataError(
        f"The loss of amounts is {type(loss).__name__} {loss!r}.",
        "Use 'squared', 'absolute', 'quantile:0.9', or a function or an expression of decision and y; a cost matrix "
        "is for FairClassifier.",
    )
