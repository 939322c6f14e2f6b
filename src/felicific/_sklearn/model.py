"""Models: what the wrapped one says about rows it was not fitted on, and columns in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from felicific._tables.memory import as_vector, is_frame, take_column, take_rows
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError


def part_of(value: Any, rows: Codes, n: int) -> Any:
    """Rows of a fit parameter that holds one value per row; any other as it is."""
    return as_vector(value, "fit parameter")[rows] if np.ndim(value) and len(value) == n else value


def parts_of(params: dict[str, Any], rows: Codes, n: int) -> dict[str, Any]:
    """Fit parameters for some of n rows."""
    return {name: part_of(value, rows, n) for name, value in params.items()}


def cross_fit(
    estimator: Any,
    X: Table,
    y: Array,
    classes: Array,
    cv: Any,
    params: dict[str, Any],
    ask: Callable[[Any, Table], Floats] | None,
    labelled: Truths | None = None,
    *,
    stratified: bool = True,
) -> tuple[Floats | None, Array]:
    """What it is asked for (nothing for None) and decisions for every row, from a model that was not fitted on it.

    Models are fitted on the rows that are ``labelled``; None for all. Folds are ``stratified`` by label, if that is a
    class.
    """
    n = len(y)

    def part(train: Codes, test: Codes) -> tuple[Any, Array]:
        train = train if labelled is None else train[labelled[train]]
        model = clone(estimator).fit(take_rows(X, train), y[train], **parts_of(params, train, n))
        rows = take_rows(X, test)
        return (None if ask is None else ask(model, rows)), np.asarray(model.predict(rows))

    # Every fold has its share of those without a label.
    told = y if labelled is None else np.where(labelled, np.searchsorted(classes, y), -1)
    folds = splits(cv, X, told, stratified=stratified)
    tested = np.concatenate([test for _, test in folds])
    scored = Parallel()(delayed(part)(train, test) for train, test in folds)
    order = np.argsort(tested)
    score = np.concatenate([part[0] for part in scored])[order] if ask is not None else None
    return score, np.concatenate([part[1] for part in scored])[order]


def splits(
    cv: Any, X: Table, y: Array, cluster: Array | None = None, *, stratified: bool = True
) -> list[tuple[Codes, Codes]]:
    """Rows to fit on and rows to predict, every row of these once."""
    from sklearn.model_selection import check_cv

    n, folds = len(y), list(check_cv(cv, y, classifier=stratified).split(X, y, cluster))
    tested = np.concatenate([test for _, test in folds] or [np.empty(0, dtype=np.intp)])
    if len(tested) != n or len(np.unique(tested)) != n:
        raise DataError(
            f"cv={cv!r} does not test every row exactly once.",
            "Use a splitter that partitions the rows, as KFold.",
        )
    return folds


def fit_model(
    estimator: Any,
    features: Table,
    y: Array | None,
    classes: Array,
    cv: Any,
    params: dict[str, Any],
    ask: Callable[[Any, Table], Floats] | None,
    labelled: Truths | None = None,
    *,
    stratified: bool = True,
) -> tuple[Any, Floats | None, Array]:
    """The fitted model, and what it is asked for and decisions for every row, cross-fitted unless it came fitted.

    It is fitted on the rows that are ``labelled``; None for all. Folds are ``stratified`` by label, if that is a class.
    """
    if isinstance(estimator, FrozenEstimator):
        score = None if ask is None else ask(estimator, features)
        return estimator, score, np.asarray(estimator.predict(features))
    assert y is not None, "a model is fitted to labels"
    score, predicted = cross_fit(
        estimator, features, y, classes, cv, params, ask, labelled, stratified=stratified
    )
    if labelled is not None:
        rows = np.flatnonzero(labelled)
        features, params = take_rows(features, rows), parts_of(params, rows, len(y))
        y = y[rows]
    return clone(estimator).fit(features, y, **params), score, predicted


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
