"""A file of scores as a classifier, for what needs one: individual policies, tests on rows held out, reports."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if

from felicific._sklearn.classifier import FairClassifier
from felicific._tables.memory import Array, Table, distinct, take_column
from felicific.cli.people import People
from felicific.exceptions import DataError


class ColumnModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A classifier that somebody else ran: what it said is in columns of the table.

    Parameters
    ----------
    classes : list
        The decisions.
    proba : dict of class to column, optional
    decision : str, optional
        Column of its decisions; by default the most probable class.
    """

    def __init__(self, classes: list[Any], proba: dict[Any, str] | None = None, decision: str | None = None):
        self.classes = classes
        self.proba = proba
        self.decision = decision
        self.classes_ = np.array(classes)

    def fit(self, X: Table, y: Any = None) -> Self:
        """Nothing is learnt."""
        return self

    @available_if(lambda self: self.proba is not None)  # type: ignore[untyped-decorator]  # of scikit-learn
    def predict_proba(self, X: Table) -> Array:
        """The columns of probabilities."""
        return np.column_stack([take_column(X, self.proba[value], "--proba") for value in self.classes])  # type: ignore[index]

    def predict(self, X: Table) -> Array:
        """The column of decisions, or the most probable class."""
        if self.decision is not None:
            return take_column(X, self.decision, "--decision")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def classifier(people: People, rows: Any, **settings: Any) -> FairClassifier:
    """A fitted classifier around the scores of some rows."""
    people.check_signal()
    assert people.label is not None, "a policy is fitted to labels"
    labels = take_column(rows, people.label, "--label")
    classes = people.classes or distinct(labels)
    fair = FairClassifier(
        FrozenEstimator(ColumnModel(classes, people.proba, people.decision)),
        happiness=people.happiness,
        loss=people.loss,
        sensitive_features=people.sensitive_features,
        favourable=people.favourable,
        **settings,
    )
    weight = None if people.weight is None else take_column(rows, people.weight, "--weight")
    return fair.fit(rows, labels, sample_weight=weight)


def halves(rows: Any, group: list[str], seed: int | None) -> tuple[Any, Any]:
    """Two random halves with the same mix of groups."""
    try:
        first, second = train_test_split(rows, test_size=0.5, random_state=seed, stratify=rows[group])
    except ValueError as error:
        raise DataError(
            f"The file cannot be halved with people of every group in both halves: {error}",
            "Name other people with --test.",
        ) from error
    return first, second
