"""Missing labels of people who are audited: how likely each label is, how likely one was, and who has one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from felicific._people.labels import LabelBeliefs, label_proba_by_group, refuse_labelled_otherwise, stands_for
from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._program.label_completion import EXPLORE, KnownLabels
from felicific._tables.memory import column_names, is_frame, row_argmax, take_column, take_rows
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError

#: How many parts a classifier that says who has a label is fitted in.
FOLDS = 5

#: What a model that was fitted with missing labels says of some rows of some groups, of which its probabilities are
#: given: the chances of the labels, of shape (n, K), and of having one, of shape (n,), each None if it cannot say.
LabelsOf: TypeAlias = Callable[[Table, Array, Floats | None], tuple[Floats, Floats | None] | None]


@dataclass(frozen=True)
class Scored:
    """What is known of people by whom it is decided, beside what is decided.

    Attributes
    ----------
    score : array of shape (n, K), or None
        The model's probabilities.
    table : table, or None
        Their rows, as that model gets them.
    features : table, or None
        What a classifier may learn from who has a label.
    labels_of : callable, or None
        What a model says that was fitted with missing labels; see :data:`LabelsOf`.
    """

    score: Floats | None = None
    table: Table = None
    features: Table = None
    labels_of: LabelsOf | None = None


def with_beliefs(people: People, problem: Problem, scored: Scored) -> tuple[People, KnownLabels | None]:
    """People with the chances of their labels, and of having one; and who has one. As they are if nobody lacks one."""
    said = people.missing
    if said is None or people.labels is None:
        return people, None
    if people.labelled.all():
        return replace(people, missing=None, label_proba=None), None
    refuse_nobody(people)
    score, chances, source = scored.score, None, "label_proba"
    told = None if scored.labels_of is None else scored.labels_of(scored.table, people.group, score)
    if told is not None:  # labels were missing at the fit, too
        chances, label_proba = told
        if people.label_proba is None and label_proba is not None and not said.estimates:
            refuse_labelled_otherwise(people, label_proba)
            people, source = replace(people, label_proba=label_proba), "model"
    if people.label_proba is None and said.estimates:
        people, source = (
            replace(people, label_proba=_cross_fitted(people, scored.features, said.label_proba)),
            "model",
        )
    # By score and group, or where there is no score by decision and group.
    assert people.probabilities is not None, "something was decided on these people"
    decided = row_argmax(people.probabilities)
    seen = replace(people, score=score, checked=True, predicted=decided)
    if people.label_proba is None:
        source = "decision" if score is None else "score"
    if chances is None or people.label_proba is None:
        beliefs = LabelBeliefs.of(seen, alike=True)
        people = replace(people, label_proba=beliefs.proba_of(seen))
        chances = beliefs.chances_of(seen) if chances is None else chances
    people = replace(people, chances=_wide(chances, len(problem.labels)))
    known = known_labels(people, problem.labels, source)
    if score is None and not math.isinf(said.max_odds_ratio):
        _refuse_alone(people, decided, problem)
    compared = range(len(people.groups))
    known.check(
        _lowest(people, score), label_proba_by_group(people) if source == "label_proba" else None, compared
    )
    return people, known


def refuse_nobody(people: People) -> None:
    """Refuse groups in which nobody at all has a label."""
    held = np.bincount(people.codes[people.labelled], minlength=len(people.groups))
    for z in np.flatnonzero(held == 0)[:1].tolist():
        raise DataError(
            f"Nobody of the group {people.groups[z]!r} has a label.",
            "Get labels for some of them: Exploration in the next round and MissingLabels(label_proba=...) after it; "
            "or merge the group with another.",
        )


def known_labels(people: People, classes: Array, source: str) -> KnownLabels:
    """Who has a label, group by group, of people with the chances of their labels and of having one."""
    said, label_proba, chances, labels = people.missing, people.label_proba, people.chances, people.labels
    assert said is not None, "labels may be missing"
    assert label_proba is not None, "it is known how likely a label was"
    assert chances is not None, "it is known how likely each label is"
    assert labels is not None, "some have a label"
    g, weight, have = len(people.groups), people.weights, people.labelled
    stands = stands_for(people, label_proba)
    twice = stands * (weight if people.weight_kind == "sampling" else 1.0)

    def total(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(people.codes, weight * numbers, minlength=g), dtype=np.float64)

    everyone, labelled = total(np.ones(len(people))), total(have.astype(np.float64))
    stand, squares, missing = total(stands), total(stands * twice), everyone - labelled
    truth = np.where(have[:, None], np.eye(len(classes))[labels], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = np.stack([total(column) for column in truth.T], axis=1) / labelled[:, None]
        imputed = np.stack([total(~have * column) for column in chances.T], axis=1) / missing[:, None]
    return KnownLabels(
        groups=people.groups,
        classes=tuple(classes.tolist()),
        source=source,
        max_odds_ratio=said.max_odds_ratio,
        clip=said.clip,
        people=everyone,
        labelled=labelled,
        standing=np.divide(stand, missing, out=np.ones(g), where=missing > 0),
        effective=np.divide(stand**2, squares, out=np.zeros(g), where=squares > 0),
        below=total((label_proba < said.clip).astype(np.float64)) / np.maximum(everyone, 1e-300),
        evidence=1.0 / (1.0 + squares / np.maximum(everyone, 1e-300)),
        seen=seen,
        imputed=imputed,
    )


def notes_of(known: KnownLabels | None) -> list[str]:
    """Who has no label, and what that means for intervals."""
    if known is None:
        return []
    found = replace(known, max_odds_ratio=1.0).sentences()
    if known.max_odds_ratio > 1.0:
        found.append(
            f"Of what looks at the label, estimates are as if no reason were hidden; intervals, and the ends that are "
            f"left open, hold {known.condition}."
        )
    return [*found, *known.cautions()]


def _wide(chances: Floats, n_labels: int) -> Floats:
    """Chances of all labels; of those that nobody has, none."""
    found = np.zeros((len(chances), n_labels))
    found[:, : chances.shape[1]] = chances
    return found


def _refuse_alone(people: People, decided: Codes, problem: Problem) -> None:
    """Refuse decisions of which nobody has a label, and somebody does not."""
    d = len(problem.decisions)
    place, have = people.codes * d + decided, people.labelled
    labelled, others = (
        np.bincount(place[some], people.weights[some], minlength=len(people.groups) * d)
        for some in (have, ~have)
    )
    for cell in np.flatnonzero((others > 0) & (labelled <= 0))[:1].tolist():
        raise DataError(
            f"In the group {people.groups[cell // d]!r} nobody alike has a label for {others[cell]:,.6g} people "
            f"without one: those decided {problem.decisions.tolist()[cell % d]!r}.",
            EXPLORE,
        )


def _lowest(people: People, score: Floats | None) -> Floats:
    """By group the least score of somebody with a label; not a number where there are no scores of two classes."""
    found = np.full(len(people.groups), np.nan)
    if score is None or score.shape[1] != 2:
        return found
    for z in range(len(found)):
        found[z] = score[(people.codes == z) & people.labelled, -1].min(initial=np.inf)
    return found


# ---------------------------------------------------------------------------------------------------------
# A classifier that says who has a label


def _cross_fitted(people: People, features: Table, classifier: Any) -> Floats:
    """The chance of having a label by a classifier, in every group and never fitted on the person itself.

    It learns from the columns of numbers; a pipeline, which may know what to do with others, from all.
    """
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    whole = hasattr(classifier, "steps") and is_frame(features)
    table, have = features if whole else _numbers(features), people.labelled
    label_proba, weighs = (
        np.ones(len(people)),
        people.weight is not None and has_fit_parameter(classifier, "sample_weight"),
    )
    for z in range(len(people.groups)):
        rows = np.flatnonzero(people.codes == z)
        if have[rows].all():
            continue
        fold = _folds(have[rows], None if people.cluster_codes is None else people.cluster_codes[rows])
        for part in range(FOLDS):
            train, test = rows[fold != part], rows[fold == part]
            if not len(test):
                continue
            if len(np.unique(have[train])) < 2:
                label_proba[test] = have[train].mean() if len(train) else have[rows].mean()
                continue
            told = {"sample_weight": people.weights[train]} if weighs else {}
            model = clone(classifier).fit(take_rows(table, train), have[train].astype(int), **told)
            label_proba[test] = model.predict_proba(take_rows(table, test))[:, 1]
    return label_proba


def _folds(labelled: Array, cluster: Codes | None) -> Codes:
    """In turn, those with a label and those without, so that every part has both; clusters stay together."""
    if cluster is not None:
        return np.asarray(np.unique(cluster, return_inverse=True)[1] % FOLDS)
    fold = np.zeros(len(labelled), dtype=np.intp)
    for some in (labelled, ~labelled):
        fold[some] = np.arange(int(some.sum())) % FOLDS
    return fold


def _numbers(features: Table) -> Floats:
    """The columns of numbers."""
    columns: list[Floats] = []
    if features is not None and (is_frame(features) or isinstance(features, dict)):
        every = [take_column(features, name, "label_proba") for name in column_names(features)]
        columns = [column.astype(np.float64) for column in every if column.dtype.kind in "biuf"]
    elif isinstance(features, np.ndarray) and features.ndim == 2 and features.dtype.kind in "biuf":
        columns = list(features.astype(np.float64).T)
    if not columns:
        raise DataError(
            "A classifier is to say who has a label, and there is no column of numbers that it could learn from.",
            "Pass X with columns of numbers, or name the column of the chances: MissingLabels(label_proba=column).",
        )
    return np.column_stack(columns)
