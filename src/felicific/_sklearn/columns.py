"""Columns of scores, or of predicted amounts, in place of a model: somebody else ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from felicific._tables.memory import is_frame, take_column
from felicific._typing import Array, Table
from felicific.exceptions import DataError


def columns_of(estimator: Any) -> list[str] | None:
    """The columns that are named in place of an estimator; None where it is one."""
    if isinstance(estimator, str):
        return [estimator]
    if not isinstance(estimator, list | tuple):
        return None
    if not estimator or not all(isinstance(name, str) for name in estimator):
        raise DataError(
            f"estimator={estimator!r} is neither an estimator nor the names of columns.",
            "Pass a model, the name of a column of X, or a list of names.",
        )
    return list(estimator)


class _Columns(BaseEstimator):  # type: ignore[misc]  # untyped base
    """What says something about people by columns of their table, and learns nothing."""

    feature_names_in_: list[str]

    #: Nothing, about who has a label either.
    learns = False

    def fit(self, X: Table, y: Any = None) -> Self:
        """Nothing is learnt."""
        return self

    def _column(self, X: Table, name: str, purpose: str) -> Array:
        if not is_frame(X):
            raise DataError(
                f"{purpose[0].upper()}{purpose[1:]} are in the column {name!r}, and X is a {type(X).__name__}, whose "
                "columns have no names.",
                "Pass a pandas or Polars dataframe.",
            )
        values = take_column(X, name, purpose)
        if values.dtype.kind not in "biuf":
            raise DataError(
                f"The column {name!r}, needed for {purpose}, holds values of type {values.dtype}.",
                "Name a column of numbers in which none is missing.",
            )
        return values


class ScoreColumns(ClassifierMixin, _Columns):  # type: ignore[misc]  # untyped base
    """A classifier whose probabilities, or predicted labels, are in columns.

    Parameters
    ----------
    columns : list of str
        Columns of probabilities, in the order of the classes; of two classes that of the second will do.
    classes : array
        The classes.
    predicted : str, optional
        Column of the labels that it predicts; by default the most probable class.
    """

    def __init__(self, columns: Sequence[str], classes: Any = None, predicted: str | None = None):
        self.columns = columns
        self.classes = classes
        self.predicted = predicted
        self.feature_names_in_ = [*columns, *([] if predicted is None else [predicted])]
        if classes is not None:
            self.classes_ = np.asarray(classes)

    @available_if(lambda self: len(self.columns) > 0)  # type: ignore[untyped-decorator]  # of scikit-learn
    def predict_proba(self, X: Table) -> Array:
        """The columns of probabilities."""
        known = self.classes_.tolist()
        if len(self.columns) != len(known) and (len(self.columns), len(known)) != (1, 2):
            raise DataError(
                f"There are {len(self.columns)} columns of scores, {list(self.columns)}, and {len(known)} classes, "
                f"{known}.",
                "Name a column for each class, in this order; of two classes that of the second will do.",
            )
        scores = np.column_stack([self._column(X, name, "the scores") for name in self.columns])
        return np.column_stack([1.0 - scores, scores]) if len(self.columns) < len(known) else scores

    def predict(self, X: Table) -> Array:
        """The column of labels, or the most probable class."""
        if self.predicted is not None:
            return take_column(X, self.predicted, "the predicted labels")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class AmountColumn(RegressorMixin, _Columns):  # type: ignore[misc]  # untyped base
    """A regressor whose predictions are in a column."""

    def __init__(self, column: str):
        self.column = column
        self.feature_names_in_ = [column]

    def predict(self, X: Table) -> Array:
        """The column."""
        return self._column(X, self.column, "the predicted amounts")
