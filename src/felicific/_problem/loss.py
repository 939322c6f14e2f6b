"""The loss: what a decision costs the decision maker."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._problem.expressions import Expression, is_name
from felicific._problem.happiness import ARGUMENTS, arguments_of, written
from felicific._typing import Array, Floats
from felicific.exceptions import DataError


def _errors(labels: list[Any], decisions: list[Any]) -> Floats:
    if not all(decision in labels for decision in decisions):
        raise DataError(
            "The loss 'error' compares decisions with labels, and not every decision is one.",
            f"Pass a cost matrix of {_wanted(labels, decisions)}; or 'changes', a function or an expression.",
        )
    return np.array([[float(label != decision) for decision in decisions] for label in labels])


def _wanted(labels: list[Any], decisions: list[Any]) -> str:
    """Which cost matrix is wanted, in words."""
    rows, columns = (", ".join(map(str, some)) for some in (labels, decisions))
    return f"{len(labels)} rows for the labels {rows}; {len(decisions)} columns for {columns}"


#: Losses of numbers that have a name, by what follows it; each is a function of how much more is decided than is true.
_DISTANCES: dict[str, Callable[[Floats, float], Floats]] = {
    "squared": lambda apart, _: apart**2,
    "absolute": lambda apart, _: np.abs(apart),
    "quantile": lambda apart, q: np.maximum(-q * apart, (1.0 - q) * apart),
}


@dataclass(frozen=True)
class NumberLoss:
    """What it costs to decide one number where another is true: squared, absolute, or the pinball loss of a quantile.

    The last is least in expectation where ``q`` of the truths are below what is decided.
    """

    name: str
    q: float = 0.5

    def __call__(self, decision: Any, y: Any) -> Any:
        """One number per person."""
        return _DISTANCES[self.name](np.asarray(float(decision) - np.asarray(y, dtype=np.float64)), self.q)


def _distance(name: str, labels: list[Any], decisions: list[Any]) -> NumberLoss | None:
    """The loss of numbers that has this name, if there is one."""
    kind, colon, text = name.partition(":")
    if kind not in _DISTANCES or bool(colon) != (kind == "quantile"):
        if kind != "quantile":
            return None
        raise DataError("The loss 'quantile' does not say which.", "Write 'quantile:0.9', say.")
    for some, what in ((decisions, "decision"), (labels, "label")):
        word = next((one for one in some if not isinstance(one, int | float)), None)
        if word is not None:
            raise DataError(
                f"The loss {name!r} is of numbers, and the {what} {word!r} is none.",
                f"Use numbers, or a cost matrix of {_wanted(labels, decisions)}.",
            )
    try:
        q = float(text) if colon else 0.5
    except ValueError:
        q = math.nan
    if not 0.0 < q < 1.0:
        raise DataError(
            f"The loss {name!r} is of no quantile.", "Give a number between 0 and 1: 'quantile:0.9'."
        )
    return NumberLoss(kind, q)


#: Losses that have a name, by what they make of the labels (rows) and the decisions (columns).
LOSSES: dict[str, Callable[[list[Any], list[Any]], Floats]] = {"error": _errors}

#: The name of the loss that counts nothing but changes, which needs no label.
CHANGES = "changes"


def is_accuracy(name: str) -> bool:
    """Whether a loss of this name is read as an accuracy, in per cent; any other is read as it is."""
    return name == "error"


def loss_words(name: str) -> str:
    """What a reader calls a loss of this name."""
    if name.startswith("quantile:"):
        return "mean pinball loss"
    return {
        "error": "accuracy",
        CHANGES: "share of decisions that change",
        "squared": "mean squared error",
        "absolute": "mean absolute error",
    }.get(name, "loss per person")


def loss_text(name: str, loss: float, digits: int = 5) -> str:
    """A mean loss for reading."""
    if name == CHANGES:
        return f"{loss:.2%}"
    return f"{1.0 - loss:.2%}" if is_accuracy(name) else written(loss, digits)


#: How the name of a loss begins that is a cost matrix; the matrix follows.
_MATRIX = "cost matrix "


@dataclass(frozen=True, eq=False)
class Loss:
    """What each decision costs: a matrix of label and decision, or a function of a person.

    Attributes
    ----------
    name : str
        How aggregates and frontiers call it; "error" for the error rate, "changes" for the share of changed decisions.
    written : object
        What the user wrote.
    matrix : array of shape (labels, decisions), or None
    function : callable or None
        Takes the arguments of a happiness.
    """

    name: str
    written: Any = field(repr=False)
    matrix: Floats | None = None
    function: Callable[..., Any] | None = None

    @classmethod
    def of(cls, loss: Any, decisions: Array, labels: Array | None = None) -> Loss:
        """Read what the user wrote: a name, a cost matrix, a function or an expression."""
        if isinstance(loss, Loss):
            return loss
        rows, columns = (decisions if labels is None else labels).tolist(), decisions.tolist()
        if isinstance(loss, str) and loss in LOSSES:
            return cls(loss, loss, matrix=LOSSES[loss](rows, columns))
        distance = _distance(loss, rows, columns) if isinstance(loss, str) else None
        if distance is not None and len(rows):
            return cls(loss, loss, matrix=np.array([[float(distance(d, y)) for d in columns] for y in rows]))
        if distance is not None:
            return cls(loss, loss, function=distance)
        if isinstance(loss, str) and loss == CHANGES:
            return cls(loss, loss, function=Expression("decision != baseline"))
        if isinstance(loss, str):
            if is_name(loss):
                raise DataError(
                    f"There is no loss called {loss!r}.",
                    "Use 'error', 'squared', 'absolute', 'quantile:0.9', 'changes', a cost matrix, or a function or an "
                    "expression of the decision.",
                )
            return cls(f"expression {loss.strip()}", loss, function=Expression(loss.strip()))
        if isinstance(loss, Expression):
            return cls(f"expression {loss.text}", loss, function=loss)
        if callable(loss):
            arguments_of(loss, "The loss", ARGUMENTS)
            return cls(f"function {getattr(loss, '__name__', type(loss).__name__)}", loss, function=loss)
        matrix = _matrix(loss, rows, columns)
        return cls(f"{_MATRIX}{matrix.tolist()}", loss, matrix=matrix)

    @property
    def rising(self) -> bool:
        """Whether, of two labels, the best decision in place of the worst costs no more for the last label.

        It is then cheaper to give better decisions where the score of that label is high.
        """
        if self.matrix is None or len(self.matrix) != 2:
            return True
        first, last = self.matrix[:, -1] - self.matrix[:, 0]
        return bool(last <= first)

    @property
    def asks(self) -> frozenset[str]:
        """Arguments that it looks at."""
        if self.function is None:
            return frozenset({"decision", "y"})
        return arguments_of(self.function, "The loss", ARGUMENTS)

    @property
    def looks_at_y(self) -> bool:
        """Whether it needs labels."""
        return "y" in self.asks

    @property
    def label_with_x(self) -> bool:
        """Whether it looks at the label together with what differs between people of one signal."""
        return "y" in self.asks and bool(self.asks & {"x", "baseline"})

    @property
    def is_rate(self) -> bool:
        """Whether it can be nothing but 0 and 1, by what it is."""
        if self.matrix is not None:
            return bool(np.isin(self.matrix, (0.0, 1.0)).all())
        return isinstance(self.function, Expression) and self.function.is_test

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range of its values, when it is known."""
        if self.matrix is None:
            return (0.0, 1.0) if self.is_rate else None
        return float(self.matrix.min()), float(self.matrix.max())


def loss_bounds(name: str) -> tuple[float, float] | None:
    """The range of a loss of this name, when the name tells it."""
    if name in LOSSES or name == CHANGES:
        return 0.0, 1.0
    try:
        matrix = (
            np.array(json.loads(name.removeprefix(_MATRIX)), np.float64) if name.startswith(_MATRIX) else None
        )
    except (ValueError, TypeError):
        return None
    return None if matrix is None or not matrix.size else (float(matrix.min()), float(matrix.max()))


def _matrix(loss: Any, labels: list[Any], decisions: list[Any]) -> Floats:
    shape = (len(labels), len(decisions))
    try:
        cost = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        cost = np.full(shape, np.nan)
    if cost.shape != shape or not np.isfinite(cost).all():
        raise DataError(
            f"The cost matrix has shape {cost.shape}."
            if cost.shape != shape
            else f"The cost matrix {loss!r} is not finite numbers throughout.",
            "Give one finite cost for every label (row) and decision (column), "
            f"{shape[0]} x {shape[1]}: {_wanted(labels, decisions)}.",
        )
    return cost
