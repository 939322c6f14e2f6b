"""Intake: rows as they come in, checked, and which of their columns the wrapped model sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d, validate_data

from felicific._people.checks import (
    WeightKind,
    are_sampling,
    check_length,
    number_clusters,
    refuse_missing_labels,
)
from felicific._people.roles import Roles, without_missing
from felicific._policy.lottery import check_keys
from felicific._problem.missing_labels import MissingLabels
from felicific._tables.groups import (
    attributes_of,
    encode_groups,
    find_groups,
    groups_of_present,
    refuse_identifiers,
)
from felicific._tables.memory import (
    Entries,
    as_objects,
    as_vector,
    column_names,
    count_rows,
    distinct,
    is_frame,
    is_mapping,
    is_quick,
    null_rows,
    select_columns,
    take_column,
    take_rows,
)
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError


@dataclass(frozen=True)
class Intake:
    """What the settings say about columns of X.

    Attributes
    ----------
    key : column, or None
        Identifies a person; the wrapped model does not see it.
    named : column(s), callable, or None
        Which group a person belongs to.
    sees_group : bool
        Whether deciding may look at the columns that name the group.
    group_proba : tuple
        Columns that say how likely each group is; the wrapped model does not see them.
    label_proba : tuple
        Columns of known chances of having a label, which are read at the fit and in audits: nobody else sees them.
    baseline : column, or None
        The baseline: likewise.
    """

    key: Any
    named: Any
    sees_group: bool
    group_proba: tuple[Any, ...] = ()
    label_proba: tuple[Any, ...] = ()
    baseline: Any = None

    @property
    def hidden(self) -> list[Any]:
        """Columns that name the group and may not be seen when deciding."""
        if self.sees_group or callable(self.named):
            return []
        if isinstance(self.named, str):
            return [self.named]
        return list(self.named) if isinstance(self.named, list | tuple) else []

    def check(self, owner: Any, X: Table, *, reset: bool) -> Table:
        """Check X as scikit-learn does, keeping a dataframe untouched; what it holds is the model's to judge.

        The columns that name the group are left out when the policy decides without it. After the fit, columns of a
        dataframe are found by name: others are left out, and whoever looks at one that is missing says so.
        """
        if is_mapping(X):
            raise DataError(
                "X is a mapping, which scikit-learn does not take for a table.",
                "Pass a pandas or Polars dataframe, or an array.",
            )
        if is_frame(X):
            if count_rows(X) == 0:
                raise DataError("X has no rows.", "Pass at least one.")
            aside = [name for name in (*self.label_proba, self.baseline) if isinstance(name, str)]
            X = _without(X, [*self.hidden, *aside], "the policy")
            fitted = None if reset else getattr(owner, "feature_names_in_", None)
            if fitted is not None:
                held = set(column_names(X))
                return select_columns(X, [name for name in fitted if name in held], "the policy")
        elif not reset and _is_as_fitted(owner, X):
            return X
        return validate_data(
            owner,
            X,
            reset=reset,
            skip_check_array=is_frame(X),
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
        )

    def groups(self, X: Table, given: Any, weight: Floats | None = None, *, fresh: bool = False) -> Entries:
        """One group per row, as given with the rows, else as named in the settings; a row of weight 0 has any."""
        if weight is None and not fresh:
            plain = _plain_groups(X, self.named if given is None else given)
            if plain is not None:
                return plain
        if given is not None:
            return groups_of_present(X, given, weight, fresh=fresh)
        return groups_of_present(X, self.named, weight, True, fresh=fresh)

    def attributes(self, X: Table, given: Any) -> tuple[Any, ...]:
        """What the groups are made of."""
        return attributes_of(X, self.named, columns_only=True) if given is None else attributes_of(X, given)

    def features(self, X: Table, model: Any = None, fitted: Sequence[str] | None = None) -> Table:
        """Exactly the columns that a fitted model was trained on, when it knows them; else X without key and beliefs.

        ``fitted`` are those of the fit.
        """
        names = getattr(model, "feature_names_in_", None)
        if names is None or not is_frame(X):
            apart = [*([] if self.key is None else [self.key]), *self.group_proba]
            if fitted is not None and is_frame(X):
                return select_columns(X, [name for name in fitted if name not in apart], "the model")
            return _without(X, apart, "the model")
        used = [name for name in self.hidden if name in names]
        if used:
            raise DataError(
                f"The model itself was trained with the group column {used[0]!r}, so it cannot decide without it.",
                "Train the model without that column, or leave sees_group=True.",
            )
        return select_columns(X, list(names), "the model")

    def keys(self, X: Table, given: Any = None) -> Array | None:
        """The key of every row: as given, a column or values, else in the column of the settings; None without any."""
        named = self.key if given is None else given
        if named is None:
            return None
        keys = check_keys(take_column(X, named, "key") if np.ndim(named) == 0 else named)
        check_length(keys, count_rows(X), "keys")
        return keys


def _plain_groups(X: Table, named: Any) -> Array | None:
    """Groups that are whole numbers or truth values, as an array or a column of pandas: there is nothing to do."""
    if isinstance(named, str):
        if not is_quick(X) or not hasattr(X, "iloc") or named not in X.columns:
            return None
        column = X[named]
        named = column.to_numpy() if isinstance(column.dtype, np.dtype) else None
    plain = (
        type(named) is np.ndarray and named.dtype.kind in "biu" and named.shape == getattr(X, "shape", ())[:1]
    )
    return named if plain else None


def _is_as_fitted(owner: Any, X: Table) -> bool:
    """Whether this is an array of numbers in which scikit-learn finds nothing to say or to change: that takes long."""
    numbers = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and min(X.shape) > 0
    unnamed = getattr(owner, "feature_names_in_", None) is None
    return numbers and unnamed and X.shape[1] == getattr(owner, "n_features_in_", None)


def content_of(X: Table, fitted: Sequence[str] | None) -> Table:
    """The columns by which the lottery tells people apart without a key: those of the fit, if they are known."""
    missing = [] if fitted is None or not is_frame(X) else [n for n in fitted if n not in column_names(X)]
    if missing:
        raise DataError(
            f"The table has no column {missing[0]!r}, by which the lottery tells people apart.",
            "Pass all columns of the fit, or key=, which says who a person is.",
        )
    return X


def _without(X: Table, columns: list[Any], whose: str) -> Table:
    names = column_names(X) if columns else []
    if not any(name in columns for name in names):
        return X
    return select_columns(X, [name for name in names if name not in columns], whose)


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight before any model was asked about them: weight 0 is the row absent.

    ``numbers`` are their numbers in the user's table.
    """

    x: Table
    y: Array | None
    group: Entries
    weight: Floats | None
    baseline: Array | None
    numbers: Codes
    weight_kind: WeightKind = None
    cluster: Array | None = None
    attributes: tuple[Any, ...] = ()
    missing: MissingLabels | None = None
    label_proba: Floats | None = None
    keys: Array | None = None

    @property
    def labelled(self) -> Truths:
        """Who has a label."""
        found = np.ones(len(self.group), dtype=bool)
        if self.y is not None:
            found[null_rows(self.y)] = False
        return found

    @property
    def known(self) -> dict[str, Any]:
        """What is known of each besides x and the group, for :meth:`People.of`."""
        names = ("y", "weight", "baseline", "weight_kind", "cluster", "attributes")
        found = {name: getattr(self, name) for name in names} | {"rows": self.numbers}
        return found | {"missing": self.missing, "label_proba": self.label_proba}

    def take(self, rows: Codes) -> Rows:
        """Some of them."""
        names = ("y", "group", "weight", "baseline", "numbers", "cluster", "label_proba", "keys")
        held = {name: getattr(self, name) for name in names}
        parts: dict[str, Any] = {name: None if part is None else part[rows] for name, part in held.items()}
        return replace(self, x=take_rows(self.x, rows), **parts)

    def halves(self, salt: str, least: float = 0.0) -> tuple[Rows, Rows]:
        """The people to fit on and those to hold out; of a frequency some may be in both, of a cluster none.

        Of groups of ``least`` people or more there have to be some on both sides.
        """
        from felicific._fit.safety import split

        groups, weight, sampling, parts = find_groups(self.group), self.weight, False, []
        refuse_identifiers(groups, len(self.group), None if weight is None else float(weight.sum()))
        if weight is not None:
            whole = bool((weight == np.rint(weight)).all())
            sampling = are_sampling(self.weight_kind, whole, float(weight.sum()), len(weight))
        cluster = None if self.cluster is None else number_clusters(self.cluster)
        codes = encode_groups(self.group, groups)
        people = np.bincount(codes, None if sampling else weight, len(groups))
        needed = np.flatnonzero(people >= (least * people.sum() if least < 1 else least)).tolist()
        how: dict[str, Any] = {"sampling": sampling, "cluster": cluster, "needed": needed}
        for count in split(codes, groups, weight, salt, **how):
            rows = np.flatnonzero(count)
            part = self.take(rows)
            parts.append(part if part.weight is None else replace(part, weight=count[rows]))
        return parts[0], parts[1]

    def margin(self, confidence: float, share: float, groups: Sequence[Any] | None) -> float:
        """How much less than a share, of all of them or of each of some groups, has to be aimed at; held out."""
        from felicific._fit.safety import margin

        weight = np.ones(len(self.group)) if self.weight is None else self.weight
        people = [weight.sum()] if groups is None else [weight[self.group == one].sum() for one in groups]
        return margin(share, min(people), confidence)


def labels_of(labels: Any, n: int, looking: str = "") -> Array:
    """One label for each of n rows; ``looking`` is what looks at them, where that is known."""
    if labels is None:
        raise DataError(
            "FairClassifier requires y to be passed, but the target y is None"
            + (f", and {looking} looks at it." if looking else "."),
            "Pass y; only a frozen model with happiness that does not look at y and loss='changes' needs none.",
        )
    return label_vector(labels, n)


def label_vector(labels: Any, n: int) -> Array:
    """One label for each of n rows; of a column of them, with a warning."""
    column = np.asarray(labels).shape[1:] == (1,)
    y = as_vector(column_or_1d(labels, warn=True) if column else labels, "y")
    check_length(y, n, "labels y")
    return y


def given_labels(X: Table, y: Any) -> Array:
    """The labels of people on whom policies are tried: one for each."""
    if y is None:
        raise DataError("There are no labels y.", "Pass one for every row: the loss looks at them.")
    labels = np.asarray(Roles(y=y).column(X, "y"))
    check_length(labels, count_rows(X), "labels y")
    return labels


def label_proba_in_table(X: Table, missing: MissingLabels) -> Floats | None:
    """The known chances of having a label: columns of X, or values; None where they are estimated."""
    label_proba = Roles(missing_labels=missing).label_proba_in(X)
    check_length(label_proba, count_rows(X), "label_proba")
    return label_proba


def check_labels(
    y: Array, numbers: Codes, group: Callable[[], Entries], missing: MissingLabels | None = None
) -> Array:
    """Insist on labels of at least two classes; ``numbers`` are those of the rows in the user's table.

    Returns those that are there; some may be ``missing`` where it is said what is known of that.
    """
    if len(null_rows(y)):
        if missing is None:
            refuse_missing_labels(y, group(), numbers)
        y = np.asarray(without_missing(y, None))
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = int(np.argmin(np.isfinite(y)))
        raise DataError(f"The label of row {numbers[i]} is {y[i]} (infinity).", "Correct it.")
    if y.dtype.kind not in "biu":  # whole numbers are classes
        check_classification_targets(y)
    if not len(y):
        raise DataError("Nobody has a label.", "Pass some: without any there is nothing to learn from.")
    known = distinct(y)
    if len(known) < 2:
        raise DataError(
            f"y holds one class only: {known}.",
            "Pass rows of at least two classes; one leaves no decision.",
        )
    return y


def present_rows(weight: Floats | None) -> Codes | None:
    """Rows of positive weight when there are others; None for all."""
    return None if weight is None or weight.all() else np.flatnonzero(weight)


def present_labels(labels: Array, present: Codes) -> Array:
    """The labels of some rows; of one type again where only a missing one, in another row, made them objects."""
    held = labels[present]
    return as_objects(held.tolist()) if held.dtype.kind == "O" else held


def present_splits(cv: Any, present: Codes, n: int) -> Any:
    """Folds that list rows, for some of n rows; any other splitter as it is."""
    if cv is None or hasattr(cv, "split") or isinstance(cv, int):
        return cv
    place = np.full(n, -1)
    place[present] = np.arange(len(present))
    folds = [[place[np.asarray(part)] for part in fold] for fold in cv]
    return [tuple(part[part >= 0] for part in fold) for fold in folds]


# ---------------------------------------------------------------------------------------------------------
# Models: what the wrapped one says about rows it was not fitted on, and columns in the place of one.


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
