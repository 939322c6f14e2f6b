"""Moments of a table that holds scores: the columns are named, the rest is summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._problem.happiness import resolve_happiness
from felicific._program.moments import Moments
from felicific._program.plan import Ask, Rows, distinct_labels, missing_first, no_rows
from felicific._program.query import engine_moments
from felicific._program.signals import Signal, resolve_signal
from felicific._program.summing import check_weights, compute_moments
from felicific._tables.engine import Engine, Place, find_engine
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import (
    Array,
    Table,
    as_vector,
    column_names,
    count_rows,
    distinct,
    is_frame,
    take_column,
)
from felicific.exceptions import DataError, GroupError


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
    table : dataframe, dict of arrays, array, or path
        The people, as a happiness function will see them. A lazy table (Polars LazyFrame, DuckDB relation, Dask or
        PySpark dataframe, Arrow dataset) or the path, folder or pattern of Parquet files is summed by its own
        engine; the other arguments then name columns.
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
    engine = find_engine(table)
    if engine is not None:
        chosen = resolve_signal(policy if policy is not None else "label" if proba is None else "score")
        names = Named(engine, proba, y, sensitive_features, predicted, sample_weight)
        return engine_moments(engine, names.ask(happiness, chosen, loss, classes, groups, favourable))
    signal = resolve_signal(policy if policy is not None else "label" if proba is None else "score")
    if groups is None and not count_rows(table):
        raise no_rows(None)
    named = named_columns(table, proba, y, sensitive_features, predicted, sample_weight)
    with missing_first(table, named, sample_weight):
        rows, known = rows_in_memory(table, proba, y, sensitive_features, classes, predicted, sample_weight)
        return compute_moments(
            table,
            y=rows.y,
            group=rows.group,
            classes=known,
            happiness=resolve_happiness(happiness, known.tolist(), favourable),
            signal=signal,
            loss=loss,
            proba=rows.proba,
            predicted=rows.predicted,
            groups=groups,
            sample_weight=rows.weight,
        )


def named_columns(
    table: Table, proba: Any, y: Any, sensitive_features: Any, predicted: Any, sample_weight: Any
) -> dict[str, str]:
    """Columns of a table in memory that are named in the call, and what for."""
    shares = list(proba.values()) if isinstance(proba, Mapping) else proba
    roles = (
        (sensitive_features, "the groups"),
        (y, "y"),
        (shares, "proba"),
        (predicted, "predicted"),
        (sample_weight, "sample_weight"),
    )
    known = [] if table is None else column_names(table)
    found: dict[str, str] = {}
    for names, purpose in roles:
        for name in names if isinstance(names, list | tuple) else [names]:
            if isinstance(name, str) and name in known:
                found[name] = purpose
    return found


def rows_in_memory(
    table: Table,
    proba: Any,
    y: Any,
    sensitive_features: Any,
    classes: Sequence[Any] | None,
    predicted: Any,
    sample_weight: Any,
    decided: bool = False,
) -> tuple[Rows, Array]:
    """The columns of a table in memory that have a role, and the classes; what was ``decided`` needs no labels."""
    if y is None and not decided:
        raise DataError("There are no labels y.", "Name their column in y=, or pass them.")
    labels = None if y is None else column_of(table, y, "y")
    weight = None if sample_weight is None else column_of(table, sample_weight, "sample_weight")
    known = _classes(classes, proba, labels, weight)
    shares = None if proba is None else probabilities_of(table, proba, known)
    own = None if predicted is None else column_of(table, predicted, "predicted")
    checked = check_weights(weight, count_rows(table))
    group = groups_of_present(table, sensitive_features, checked)
    return Rows(table, labels, group, shares, own, checked, Place()), known


def column_of(table: Table, named: Any, what: str) -> Array:
    """A column of a table in memory by its name, or an array that was passed instead."""
    return take_column(table, named, what) if isinstance(named, str) else as_vector(named, what)


def _classes(classes: Sequence[Any] | None, proba: Any, labels: Array | None, weight: Array | None) -> Array:
    if classes is None and isinstance(proba, Mapping):
        classes = list(proba)
    if classes is None:
        held = labels if labels is None or weight is None else labels[weight > 0]
        classes = [] if held is None else distinct(held)
    return _known(classes, text_as_objects=labels is None or labels.dtype.kind == "O")


def _known(classes: Sequence[Any], text_as_objects: bool) -> Array:
    """The classes as an array, of text as the table keeps it."""
    known = np.asarray(classes)
    if known.dtype.kind == "U" and text_as_objects:
        known = known.astype(object)
    if len(known) < 2 or len(set(known.tolist())) < len(known):
        raise DataError(
            f"The classes are {known.tolist()}.",
            "A decision needs at least two different classes: pass classes=.",
        )
    return known


def ordered_columns(proba: Any, classes: list[Any]) -> Any:
    """The columns of probabilities in the order of the classes, if they are given by class."""
    if not isinstance(proba, Mapping):
        return proba
    if set(proba) != set(classes):
        raise DataError(
            f"There are probabilities for {list(proba)}, and the classes are {classes}.",
            "Name one column for every class.",
        )
    return [proba[choice] for choice in classes]


def probabilities_of(table: Table, proba: Any, classes: Array) -> Any:
    """Probabilities as an array of shape (n, K), columns in the order of ``classes``."""
    proba = ordered_columns(proba, classes.tolist())
    if isinstance(proba, list | tuple) and proba and all(isinstance(name, str) for name in proba):
        return np.column_stack([take_column(table, name, "proba") for name in proba])
    if is_frame(proba):
        proba = proba.to_numpy()
    return np.asarray(proba)


# ---------------------------------------------------------------------------------------------------------
# Tables that are not in memory


@dataclass(frozen=True)
class Named:
    """The columns of a table that is not in memory, as the user names them."""

    engine: Engine
    proba: Any
    y: Any
    sensitive_features: Any
    predicted: Any
    sample_weight: Any

    def ask(
        self,
        happiness: Any,
        signal: Signal,
        loss: Any,
        classes: Any,
        groups: Any,
        favourable: Any,
        decided: bool = False,
    ) -> Ask:
        """What is asked of the engine; of what was ``decided`` it may be asked without labels."""
        y, weight = self._one(self.y, "y"), self._one(self.sample_weight, "sample_weight")
        if y is None and not decided:
            raise DataError("There are no labels y.", "Name their column in y=.")
        known = self._classes(classes, y, weight)
        return Ask(
            classes=known,
            happiness=resolve_happiness(happiness, known.tolist(), favourable),
            signal=signal,
            loss=loss,
            y=y,
            sensitive_features=self._groups(),
            proba=self._proba(known.tolist()),
            predicted=self._one(self.predicted, "predicted"),
            weight=weight,
            groups=None if groups is None else tuple(np.array([*groups, None], dtype=object)[:-1].tolist()),
        )

    def _one(self, named: Any, what: str) -> str | None:
        if named is not None and not isinstance(named, str):
            raise DataError(
                f"{what} is a {type(named).__name__}, and the table is not in memory.",
                f"Name a column of the table in {what}=, or collect the table first.",
            )
        return named

    def _groups(self) -> Any:
        named = self.sensitive_features
        several = isinstance(named, list | tuple) and named and all(isinstance(name, str) for name in named)
        if isinstance(named, str) or callable(named) or several:
            return named
        raise GroupError(
            "The groups of a table that is not in memory are not named.",
            "Name the column(s), sensitive_features='sex', or pass a function of the table.",
        )

    def _classes(self, classes: Any, y: str | None, weight: str | None) -> Array:
        if classes is None and isinstance(self.proba, Mapping):
            classes = list(self.proba)
        if classes is None:
            found = [] if y is None else distinct_labels(self.engine, y, weight, "y")
            try:
                classes = sorted(found)
            except TypeError as error:
                shown = ", ".join(sorted(map(repr, found))[:6])
                raise DataError(
                    f"The classes {shown} are of different types.",
                    "Use the same values for labels and decisions, or pass classes=.",
                ) from error
        return _known(classes, text_as_objects=True)

    def _proba(self, classes: list[Any]) -> tuple[str, ...] | None:
        if self.proba is None:
            return None
        ordered = ordered_columns(self.proba, classes)
        if not isinstance(ordered, list | tuple) or not all(isinstance(name, str) for name in ordered):
            raise DataError(
                f"proba is a {type(self.proba).__name__}, and the table is not in memory.",
                "Name one column for every class: proba={class: column}.",
            )
        if len(ordered) != len(classes):
            raise DataError(
                f"There are {len(ordered)} columns of probabilities for the {len(classes)} classes {classes}.",
                "Name one column for every class.",
            )
        return tuple(ordered)
