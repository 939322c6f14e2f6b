"""Intake: rows as they come in, checked, and which of their columns the wrapped model sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from felicific._policy.lottery import check_keys
from felicific._program.summing import check_weights
from felicific._sklearn.model import part_of
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import (
    Array,
    Table,
    as_vector,
    column_names,
    count_rows,
    distinct,
    is_frame,
    is_mapping,
    null_rows,
    select_columns,
    take_column,
    take_rows,
)
from felicific.exceptions import DataError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Intake:
    """What the settings say about columns of X.

    Attributes
    ----------
    key : column, or None
        Identifies a person; the wrapped model does not see it.
    named : column(s), callable, or None
        Which group a person belongs to.
    see_group : bool
        Whether deciding may look at the columns that name the group.
    """

    key: Any
    named: Any
    see_group: bool

    @property
    def hidden(self) -> list[Any]:
        """Columns that name the group and may not be seen when deciding."""
        if self.see_group or callable(self.named):
            return []
        if isinstance(self.named, str):
            return [self.named]
        return list(self.named) if isinstance(self.named, list | tuple) else []

    def check(self, owner: Any, X: Table, *, reset: bool) -> Table:
        """Check X as scikit-learn does, keeping a dataframe untouched; what it holds is the model's to judge.

        The columns that name the group are left out when the policy decides without it.
        """
        if is_mapping(X):
            raise DataError(
                "X is a mapping, which scikit-learn does not take for a table.",
                "Pass a pandas or Polars dataframe, or an array.",
            )
        if is_frame(X):
            if count_rows(X) == 0:
                raise DataError("X has no rows.", "Pass at least one.")
            X = _without(X, self.hidden, "the policy")
        return validate_data(
            owner,
            X,
            reset=reset,
            skip_check_array=is_frame(X),
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
        )

    def groups(self, X: Table, given: Any, weight: Floats | None = None) -> Array:
        """One group per row, as given with the rows, else as named in the settings; a row of weight 0 has any."""
        if given is not None:
            return groups_of_present(X, given, weight)
        return groups_of_present(X, self.named, weight, columns_only=True)

    def features(self, X: Table, model: Any = None) -> Table:
        """Exactly the columns that a fitted model was trained on, when it remembers them; else X without the key."""
        names = getattr(model, "feature_names_in_", None)
        if names is None or not is_frame(X):
            return X if self.key is None else _without(X, [self.key], "the model")
        used = [name for name in self.hidden if name in names]
        if used:
            raise DataError(
                f"The model itself uses the group column {used[0]!r}, so it cannot decide without it.",
                "Train the model without that column, or leave group_at_predict=True.",
            )
        return select_columns(X, list(names), "the model")

    def keys(self, X: Table) -> Array | None:
        """The key of every row, when there is a column of keys."""
        return None if self.key is None else check_keys(take_column(X, self.key, "key"))


def _without(X: Table, columns: list[Any], whose: str) -> Table:
    if not columns:
        return X
    return select_columns(X, [name for name in column_names(X) if name not in columns], whose)


def check_labels(labels: Any, n: int) -> Array:
    """One label for each of n rows, of at least two classes."""
    if labels is None:
        raise DataError("FairClassifier requires y to be passed, but the target y is None.", "Pass y.")
    column = np.asarray(labels).shape[1:] == (1,)
    y = as_vector(column_or_1d(labels, warn=True) if column else labels, "y")
    if len(y) != n:
        raise DataError(f"There are {len(y)} labels y for {n} rows.", "Pass one for every row.")
    missing = null_rows(y)
    if len(missing):
        raise DataError(
            f"The label is missing (NaN or None) in {len(missing)} rows, first in row {missing[0]}.",
            "Leave those rows out.",
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise DataError(f"The label of row {row} is {y[row]} (infinity).", "Leave those rows out.")
    if y.dtype.kind not in "biu":  # whole numbers are classes
        check_classification_targets(y)
    known = distinct(y)
    if len(known) < 2:
        raise DataError(
            f"y holds one class only: {known}.",
            "Pass rows of at least two classes; one leaves no decision.",
        )
    return y


def present_people(
    X: Table, y: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[Table, Array, Any, Floats | None]:
    """Rows, labels, groups and frequencies of those who are there; weight 0 is the row absent."""
    y = as_vector(y, "y")
    n, weight = count_rows(X), check_weights(sample_weight, len(y))
    if len(y) != n:
        raise DataError(f"There are {len(y)} labels y for {n} rows.", "Pass one for every row.")
    if weight is None or weight.all():
        return X, y, sensitive_features, weight
    rows = np.flatnonzero(weight)
    return take_rows(X, rows), y[rows], part_of(sensitive_features, rows, n), weight[rows]
