"""Beliefs about the group: how likely a person is of each, for individual policies that do not see it.

Never by a model that was fitted on the person: those are sure of what they learnt by heart, and the gap that they
state is not that of new people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from felicific._capacity import check_room
from felicific._people.checks import number_clusters
from felicific._people.roles import BY_GROUP, ordered_groups
from felicific._people.sketch import RowSketch
from felicific._problem.happiness import Measure
from felicific._problem.missing_labels import MissingLabels
from felicific._sklearn.inputs import splits
from felicific._tables.memory import column_names, count_rows, is_null, take_column, take_rows
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError

#: Trees, leaves of each and learning rate (docs/evidence/policies.md has what they leave).
TREES, LEAVES, RATE = 40, 8, 0.2

#: Most values of a column of text that are told apart; rarer ones are taken for missing.
LEVELS = 254

#: Fewer rows are quicker on one processor: threads wait for each other at every split, and for all other programs.
FEW_ROWS = 100_000

OTHER_PEOPLE = "Fit it to the group of other people than these"


@dataclass(frozen=True)
class Coding:
    """Any columns as numbers: text as the position among its most frequent values, what is missing as NaN."""

    names: list[Any]
    levels: dict[Any, dict[str, int]]

    @classmethod
    def of(cls, table: Table) -> Coding:
        """Learn the values of those columns that hold no numbers."""
        names, levels = column_names(table), {}
        for name in names if not _is_plain(table) else ():
            column = take_column(table, name, "the model of the group")
            if _numbers(column) is None:
                counts = Counter(str(value) for value in column.tolist() if not is_null(value))
                known = sorted(counts, key=lambda text: (-counts[text], text))[:LEVELS]
                levels[name] = {text: code for code, text in enumerate(known)}
        return cls(names, levels)

    def apply(self, table: Table) -> Floats:
        """The numbers, of shape (n, columns)."""
        if _is_plain(table):
            return np.asarray(table, dtype=np.float64)
        n = count_rows(table)
        check_room(
            1.0 * n * len(self.names),
            "The model of the group",
            f"{n:,} people x {len(self.names):,} columns",
            "Pass group_proba=, which says how likely each group is.",
        )
        coded = np.full((n, len(self.names)), np.nan)
        for j, name in enumerate(self.names):
            column, known = take_column(table, name, "the model of the group"), self.levels.get(name)
            numbers = _numbers(column) if known is None else None
            if known is not None:
                coded[:, j] = [known.get(str(value), np.nan) for value in column.tolist()]
            elif numbers is not None:
                coded[:, j] = numbers
        return coded


def _is_plain(table: Table) -> bool:
    return isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "biuf"


def _numbers(column: Array) -> Floats | None:
    """A column as floats, if it holds numbers or times."""
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, eq=False)
class GroupModel:
    """How likely a person is of each group: the average of models of the group, one of each fold.

    Attributes
    ----------
    classes_ : array
        The groups, in the order of the columns of :meth:`predict_proba`.
    feature_names_in_ : list of str, or None
        The columns that it looks at, where they had names.
    """

    classes_: Array
    feature_names_in_: list[Any] | None
    coding: Coding
    models: tuple[Any, ...]
    seen: RowSketch

    def predict_proba(self, X: Table) -> Floats:
        """Probability of each group, of shape (n, groups)."""
        coded = self.coding.apply(X)
        with _threads(len(coded)):
            parts = [_believed(model, coded, len(self.classes_)) for model in self.models]
        return np.asarray(np.mean(parts, axis=0))


def fit_group_model(
    features: Table,
    codes: Codes,
    groups: Sequence[Any],
    *,
    names: list[Any] | None,
    cv: Any,
    weight: Floats | None,
    cluster: Array | None,
) -> tuple[GroupModel, Floats]:
    """Models of the group, one of each fold; and what each person is believed to be by the one that left them out."""
    coding = Coding.of(features)
    coded, text = coding.apply(features), [name in coding.levels for name in coding.names]

    def part(train: Codes, test: Codes) -> tuple[Any, Floats]:
        with _threads(len(train)):
            model = _learnt(coded[train], codes[train], text, None if weight is None else weight[train])
            return model, _believed(model, coded[test], len(groups))

    folds = group_folds(features, codes, cv, cluster)
    fitted = Parallel()(delayed(part)(train, test) for train, test in folds)
    chances = np.empty((len(codes), len(groups)))
    for (_, test), (_, believed) in zip(folds, fitted, strict=True):
        chances[test] = believed
    known = np.empty(len(groups), dtype=object)
    known[:] = groups
    models = tuple(model for model, _ in fitted)
    return GroupModel(known, names, coding, models, RowSketch.of(features)), chances


def _threads(rows: int) -> Any:
    """One processor for few rows."""
    return threadpool_limits(1, user_api="openmp") if rows < FEW_ROWS else nullcontext()


def _learnt(coded: Floats, codes: Codes, text: list[bool], weight: Floats | None) -> Any:
    """A model of the group; where there is one group alone, that group."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    held = np.unique(codes)
    if len(held) == 1:
        return held
    empty = np.isnan(coded).all(axis=0)
    coded = (
        np.where(empty, 0.0, coded) if empty.any() else coded
    )  # a column without values cannot be cut into bins
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        early_stopping=False,
        categorical_features=text,
        random_state=0,
    )
    return model.fit(coded, codes, weight)


def _believed(model: Any, coded: Floats, n_groups: int) -> Floats:
    """Probability of every group; a fold in which there is one group alone believes in no other."""
    chances = np.zeros((len(coded), n_groups))
    lone = isinstance(model, np.ndarray)
    chances[:, model if lone else model.classes_] = 1.0 if lone else model.predict_proba(coded)
    return chances


def group_folds(features: Table, codes: Codes, cv: Any, cluster: Array | None) -> list[tuple[Codes, Codes]]:
    """Rows to fit on and rows to believe about: with a number of folds, every group in each and no cluster in two."""
    if cv is not None and (not isinstance(cv, int | np.integer) or cv < 2):
        return splits(cv, features, codes, cluster)
    count = 5 if cv is None else int(cv)
    unit = np.arange(len(codes)) if cluster is None else number_clusters(cluster)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    group, fold = codes[first], np.zeros(len(first), dtype=np.intp)
    for z in np.unique(group):
        members = np.flatnonzero(group == z)
        # The last few groups start where the others end, so that no fold is left empty.
        fold[members] = (np.arange(len(members)) * count // len(members) + z) % count
    fold = fold[unit]
    numbers = [k for k in range(count) if (fold == k).any()]
    if len(numbers) < 2:
        raise DataError(
            "There are too few people to learn who is of which group.",
            "Pass group_proba=, which says how likely each group is, or more people.",
        )
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in numbers]


# ---------------------------------------------------------------------------------------------------------
# Beliefs that are given


def check_given(given: Any, groups: Sequence[Any], rows: Table) -> None:
    """Refuse what says nothing of how likely each of the groups is, or was fitted on these very rows."""
    if isinstance(given, Mapping):
        ordered_groups(given, groups)
        return
    name = type(getattr(given, "estimator", given)).__name__
    if not hasattr(given, "predict_proba") and not hasattr(given, "fit"):
        raise DataError(f"group_proba is a {name}.", f"Pass a fitted classifier of the group. Or: {BY_GROUP}")
    if not hasattr(given, "classes_"):
        raise DataError(
            f"The classifier of the group, {name}, is not fitted.",
            f"{OTHER_PEOPLE}, and pass FrozenEstimator(classifier), which stays fitted where scikit-learn clones.",
        )
    if not hasattr(given, "predict_proba"):
        raise DataError(
            f"The classifier of the group, {name}, has no predict_proba.",
            "Use one that has, or calibrate it (CalibratedClassifierCV).",
        )
    known = np.asarray(given.classes_).tolist()
    if set(known) != set(groups):
        raise DataError(
            f"The classifier of the group tells {_listed(known)} apart, and the groups are {_listed(groups)}.",
            "Fit it to the same groups, written alike.",
        )
    seen = getattr(given, "seen", None)
    if isinstance(seen, RowSketch) and seen.share(rows):
        raise DataError(
            "The classifier of the group was fitted on these rows, so it is surer of them than of new people.",
            f"{OTHER_PEOPLE}, or leave group_proba= out: it is then fitted in folds.",
        )


def believed_by(model: Any, features: Table, groups: Sequence[Any]) -> Floats:
    """Probability of every group by a classifier of the group."""
    known = np.asarray(model.classes_).tolist()
    found = np.asarray(model.predict_proba(features))
    return np.asarray(found[:, [known.index(group) for group in groups]])


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(repr, values[:10])) + (", ..." if len(values) > 10 else "")


# ---------------------------------------------------------------------------------------------------------
# Who has a label: the chance of it, learnt group by group and never by a model that was fitted on the person.


#: A chance of nothing at all, which somebody who has a label cannot have had.
NEARLY_NONE = 1e-9


@dataclass(frozen=True, eq=False)
class LabelModel:
    """The chance of having a label: in every group the average of models, one of each fold, or the one share there is.

    ``models[z]`` are those of a group.
    """

    models: tuple[tuple[Any, ...], ...]

    def label_proba(self, features: Table, codes: Codes) -> Floats:
        """The chance of each of some people, whose groups are at these positions."""
        found = np.empty(len(codes))
        for z, models in enumerate(self.models):
            rows = np.flatnonzero(codes == z)
            if len(rows):
                part = take_rows(features, rows)
                found[rows] = np.mean([_chance(model, part, len(rows)) for model in models], axis=0)
        return np.maximum(found, NEARLY_NONE)


def fit_label_model(
    estimator: Any,
    said: MissingLabels,
    features: Table,
    labelled: Truths,
    codes: Codes,
    groups: Sequence[Any],
    *,
    cv: Any,
    weight: Floats | None,
    cluster: Array | None,
) -> tuple[LabelModel, Floats]:
    """Models of who has a label, one of each fold and group; and everybody's chance by the one that left them out."""
    learner = learner_of(estimator, said)
    if not hasattr(learner, "predict_proba"):
        raise DataError(
            f"Who has a label is to be learnt by a {type(learner).__name__}, which has no predict_proba.",
            "Pass MissingLabels(label_proba=LogisticRegression()), say, or name a column of known chances.",
        )
    weighted = weight is not None and has_fit_parameter(learner, "sample_weight")

    def learnt(rows: Codes) -> Any:
        have = labelled[rows]
        if have.all() or not have.any():
            return float(have[0])
        given = {"sample_weight": weight[rows]} if weighted and weight is not None else {}
        return clone(learner).fit(take_rows(features, rows), have.astype(np.int64), **given)

    def part(z: int, train: Codes, test: Codes) -> tuple[Any, Codes, Floats]:
        inside, outside = train[codes[train] == z], test[codes[test] == z]
        model = learnt(inside if len(inside) else np.flatnonzero(codes == z))
        return model, outside, _chance(model, take_rows(features, outside), len(outside))

    # Every fold holds people of every group with and without a label.
    folds = group_folds(features, codes * 2 + labelled, cv, cluster)
    asked = [(z, train, test) for z in range(len(groups)) for train, test in folds]
    fitted = Parallel()(delayed(part)(*one) for one in asked)
    label_proba, models = np.ones(len(codes)), [[] for _ in groups]  # type: ignore[var-annotated]  # filled below
    for (z, _, _), (model, rows, chances) in zip(asked, fitted, strict=True):
        models[z].append(model)
        label_proba[rows] = chances
    return LabelModel(tuple(map(tuple, models))), np.maximum(label_proba, NEARLY_NONE)


def learner_of(estimator: Any, said: MissingLabels) -> Any:
    """What learns who has a label: the classifier that was named for it, else the model itself."""
    learner = said.label_proba if said.estimates else estimator
    while isinstance(learner, FrozenEstimator):
        learner = learner.estimator
    return learner


def learns(estimator: Any, said: MissingLabels) -> bool:
    """Whether it can learn anything; not what stands for a model that somebody else ran."""
    return getattr(learner_of(estimator, said), "learns", True) is not False


def refuse_ends(measures: Sequence[Measure]) -> None:
    """Refuse frontiers on other people, and reports, of happiness that hidden reasons leave open."""
    for measure in measures:
        if measure.ends:
            raise DataError(
                f"Hidden reasons leave open what {measure.name!r} is, and frontiers on other people and reports have "
                "one number for it.",
                "Bound it by audit(fair, X, y), whose to_html() is a page; or report on fair.at(max_odds_ratio=1).",
            )


def _chance(model: Any, features: Table, n: int) -> Floats:
    """The chance of a label by one model, or by the share where it is 0 or 1."""
    if isinstance(model, float) or not n:
        return np.full(n, model if isinstance(model, float) else 1.0)
    return np.asarray(model.predict_proba(features))[:, list(model.classes_).index(1)]
