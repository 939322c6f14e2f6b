"""Scores: what the wrapped model says, about rows that it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from felicific._tables.memory import as_vector, take_rows
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
