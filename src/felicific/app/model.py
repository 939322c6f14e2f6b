"""A file of scores as a classifier, for what needs one: individual policies."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific.app.people import People
from felicific.classifier import FairClassifier
from felicific.exceptions import DataError
from felicific.frames import Array, Table, take_column


class ColumnModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A classifier that somebody else ran: its probabilities are columns of the table.

    Parameters
    ----------
    proba : dict of class to column
    decision : str, optional
        Column of its decisions; by default the most probable class.
    """

    def __init__(self, proba: dict[Any, str], decision: str | None = None) -> None:
        self.proba = proba
        self.decision = decision
        self.classes_ = np.array(list(proba))

    def fit(self, X: Table, y: Any = None) -> Self:
        """Nothing is learnt."""
        return self

    def predict_proba(self, X: Table) -> Array:
        """The columns of probabilities."""
        return np.column_stack([take_column(X, name, "--proba") for name in self.proba.values()])

    def predict(self, X: Table) -> Array:
        """The column of decisions, or the most probable class."""
        if self.decision is not None:
            return take_column(X, self.decision, "--decision")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def classifier(people: People, **settings: Any) -> FairClassifier:
    """A fitted classifier around the scores of a file."""
    if people.proba is None or people.label is None:
        raise DataError("This kind of policy needs the model's probabilities.", "Name them with --proba.")
    rows = people.source.read(pandas=True)
    fair = FairClassifier(
        FrozenEstimator(ColumnModel(people.proba, people.decision)),
        happiness=people.happiness,
        loss=people.loss,
        sensitive_features=people.sensitive_features,
        favourable=people.favourable,
        key=people.key,
        **settings,
    )
    weight = None if people.weight is None else take_column(rows, people.weight, "--weight")
    return fair.fit(rows, take_column(rows, people.label, "--label"), sample_weight=weight)
