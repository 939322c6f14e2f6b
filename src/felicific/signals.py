"""Signals: what a policy sees of a person besides the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from felicific.exceptions import DataError

#: A row's signal: the cell of every row, and the weight with which the row falls into it (None: one).
Spread = list[tuple[NDArray[np.intp], NDArray[np.float64] | None]]


class Signal(Protocol):
    """What every signal can do. ``K`` is the number of classes, ``S`` the number of signals."""

    kind: ClassVar[str]
    needs_proba: ClassVar[bool]

    def size(self, n_classes: int) -> int:
        """Return S."""

    def today(self, n_classes: int) -> NDArray[np.intp]:
        """Give the decision that the model itself takes at each signal."""

    def spread(self, proba: NDArray[np.float64] | None, predicted: NDArray[np.intp] | None) -> Spread:
        """Cells and weights W[i, s] of some rows."""

    def describe(self, signal: int, classes: list[Any]) -> str:
        """Say who has this signal: "a person whom ..."."""


@dataclass(frozen=True)
class SoftLabel:
    """The paper's signal: a label drawn from the model's probabilities, so W = P."""

    kind: ClassVar[str] = "soft-label"
    needs_proba: ClassVar[bool] = True

    def size(self, n_classes: int) -> int:
        """Return K."""
        return n_classes

    def today(self, n_classes: int) -> NDArray[np.intp]:
        """Decide the label that was drawn."""
        return np.arange(n_classes)

    def spread(self, proba: NDArray[np.float64] | None, predicted: NDArray[np.intp] | None) -> Spread:
        """Every row falls into every label, with its probability."""
        if proba is None:
            raise DataError("The soft-label policy sees probabilities.", "Pass the model's predict_proba.")
        n, k = proba.shape
        return [(np.full(n, s), proba[:, s]) for s in range(k)]

    def describe(self, signal: int, classes: list[Any]) -> str:
        """Say who has this signal."""
        return f"a person for whom the label {classes[signal]!r} is drawn from the model's probabilities"


@dataclass(frozen=True)
class Label:
    """The predicted label, as in the derived predictor of Hardt, Price and Srebro (2016)."""

    kind: ClassVar[str] = "label"
    needs_proba: ClassVar[bool] = False

    def size(self, n_classes: int) -> int:
        """Return K."""
        return n_classes

    def today(self, n_classes: int) -> NDArray[np.intp]:
        """Decide the predicted label."""
        return np.arange(n_classes)

    def spread(self, proba: NDArray[np.float64] | None, predicted: NDArray[np.intp] | None) -> Spread:
        """Every row falls into its predicted label."""
        if predicted is None:
            if proba is None:
                raise DataError("The label policy sees predicted labels.", "Pass the model's predict.")
            predicted = proba.argmax(axis=1)
        return [(predicted, None)]

    def describe(self, signal: int, classes: list[Any]) -> str:
        """Say who has this signal."""
        return f"a person whom the model labels {classes[signal]!r}"


SIGNALS: Mapping[str, type[SoftLabel] | type[Label]] = {kind.kind: kind for kind in (SoftLabel, Label)}


def resolve_signal(policy: Any) -> Signal:
    """Turn ``policy=`` (a name or a signal object) into a signal."""
    if isinstance(policy, str) and policy in SIGNALS:
        return SIGNALS[policy]()
    if isinstance(policy, SoftLabel | Label):
        return policy
    raise DataError(f"There is no policy {policy!r}.", f"Choose one of {', '.join(map(repr, SIGNALS))}.")
