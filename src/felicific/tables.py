"""Moments of a table that holds scores: the columns are named, the rest is summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from felicific.exceptions import DataError
from felicific.frames import Array, Table, as_vector, count_rows, distinct, is_frame, take_column
from felicific.groups import resolve_groups
from felicific.happiness import resolve_happiness
from felicific.moments import Moments
from felicific.signals import resolve_signal
from felicific.sums import check_weights, compute_moments


def moments(
    table: Table,
    *,
    proba: Any = None,
    y: Any,
    sensitive_features: Any,
    happiness: Any,
    policy: Any = None,
    loss: Any = "error",
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    favourable: Any = None,
    predicted: Any = None,
    sample_weight: Any = None,
) -> Moments:
    """Sum up everything that the linear program needs to know of the people in a table.

    Parameters
    ----------
    table : dataframe, dict of arrays, or array
        The people, as a happiness function will see them.
    proba : {class: column}, list of columns, or array of shape (n, K)
        The model's probabilities. A list is in the order of the sorted classes.
    y, predicted, sample_weight : column name or array
        Labels; the model's own decisions (by default the most probable class); frequencies.
    sensitive_features : column name(s), callable or array
        The groups; several columns mean their intersections.
    happiness : function, Happiness, criterion name, expression, or list or dict of them
        What makes a person happy with a decision; an expression is text such as ``"decision * loan"``.
    policy : "score", "label", "soft-label", or Score(...)
        What the policy will see; by default the score, or the label where there are no probabilities.
    loss : "error", cost matrix, function or expression
        What a decision costs the decision maker.
    classes, groups : sequence, optional
        All classes and groups there are, when these rows may lack some.
    favourable : class, optional
        The decision that people hope for; the last class by default.

    Returns
    -------
    Moments
        Small, and additive: the moments of two tables are the sum of theirs.
    """
    labels = _column(table, y, "y")
    weight = None if sample_weight is None else _column(table, sample_weight, "sample_weight")
    known = _classes(classes, proba, labels, weight)
    shares = None if proba is None else _probabilities(table, proba, known)
    signal = resolve_signal(policy if policy is not None else "label" if proba is None else "score")
    return compute_moments(
        table,
        y=labels,
        group=_groups(table, sensitive_features, weight),
        classes=known,
        happiness=resolve_happiness(happiness, known.tolist(), favourable),
        signal=signal,
        loss=loss,
        proba=shares,
        predicted=None if predicted is None else _column(table, predicted, "predicted"),
        groups=groups,
        sample_weight=weight,
    )


def _groups(table: Table, sensitive_features: Any, weight: Array | None) -> Array:
    """The groups; a row of weight 0 is absent, so its group may even be missing."""
    weights = None if weight is None else check_weights(weight, count_rows(table))
    if weights is None or weights.all():
        return resolve_groups(table, sensitive_features)
    present = np.flatnonzero(weights)
    found = resolve_groups(table, sensitive_features, rows=present)
    group = np.full(len(weights), found[0], dtype=found.dtype)
    group[present] = found
    return group


def _column(table: Table, named: Any, what: str) -> Array:
    return take_column(table, named, what) if isinstance(named, str) else as_vector(named, what)


def _classes(classes: Sequence[Any] | None, proba: Any, labels: Array, weight: Array | None) -> Array:
    if classes is None:
        classes = (
            list(proba)
            if isinstance(proba, Mapping)
            else distinct(labels if weight is None else labels[weight > 0])
        )
    known = np.asarray(classes)
    if known.dtype.kind == "U":
        known = known.astype(object) if labels.dtype.kind == "O" else known
    if len(known) < 2 or len(set(known.tolist())) < len(known):
        raise DataError(
            f"The classes are {known.tolist()}.",
            "A decision needs at least two different classes: pass classes=.",
        )
    return known


def _probabilities(table: Table, proba: Any, classes: Array) -> Any:
    """Probabilities as an array of shape (n, K), columns in the order of ``classes``."""
    if isinstance(proba, Mapping):
        order = classes.tolist()
        if set(proba) != set(order):
            raise DataError(
                f"There are probabilities for {list(proba)}, and the classes are {order}.",
                "Name one column for every class.",
            )
        proba = [proba[choice] for choice in order]
    if isinstance(proba, list | tuple) and proba and all(isinstance(name, str) for name in proba):
        return np.column_stack([take_column(table, name, "proba") for name in proba])
    if is_frame(proba):
        proba = proba.to_numpy()
    return np.asarray(proba)
