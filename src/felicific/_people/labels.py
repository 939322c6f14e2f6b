"""Beliefs about labels that are missing: how likely each is, and how likely somebody was to have one.

Learnt from people of whom some have a label, and said of the same or of others. A policy of cells needs none of it: its
sums are completed by themselves (:mod:`felicific._program.unlabelled`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._people.people import People
from felicific._statistics.labels import LabelCurve, LabelProbaCurve, fit_curve, fit_label_curve, standing_of
from felicific._typing import Codes, Floats
from felicific.exceptions import DataError, GroupError


@dataclass(frozen=True, eq=False)
class LabelBeliefs:
    """What is believed of labels, group by group.

    Attributes
    ----------
    groups : tuple
    chances : tuple of LabelCurve, or array of shape (groups, predicted labels, labels)
        From what the model says to the chances of the labels: along its probabilities, or by the label it predicts.
    label_proba : tuple of LabelProbaCurve, array of shape (groups, predicted labels), or None
        Likewise to the chance of having a label; None where that is known person by person.
    clip : float
        Estimated chances of having a label are at least this.
    """

    groups: tuple[Any, ...]
    chances: tuple[LabelCurve, ...] | Floats
    label_proba: tuple[LabelProbaCurve, ...] | Floats | None
    clip: float

    @classmethod
    def of(cls, people: People, *, alike: bool = False) -> LabelBeliefs:
        """Learn from people who know whether labels may be missing.

        The chances of labels are learnt from people by how many without a label they stand for, so that sums of them
        need no correction; or from all ``alike``. That is for means that are corrected by the same people: chances that
        follow the few who stand for many hide a part of the correction, and intervals then hold too rarely.
        """
        said = people.missing
        assert said is not None, "labels may be missing"
        label_proba: tuple[LabelProbaCurve, ...] | Floats | None = None
        if people.label_proba is None:
            label_proba = _by_score(people) if people.score is not None else _shares(people)
        beliefs = cls(people.groups, (), label_proba, said.clip)
        stands = people.labelled.astype(np.float64) if alike else beliefs.standing_of(people)
        weight = people.weights * stands
        if people.score is None:
            return replace(beliefs, chances=_table(people, weight))
        squares = weight * (people.weights if people.weight_kind == "sampling" else 1.0) * stands
        return replace(beliefs, chances=_curves(people, weight, squares))

    def of_people(self, people: People) -> People:
        """The people with the chances of their labels, and of having one."""
        people = people.with_scores
        by_score = people.by_score or people.label_proba is None
        label_proba, chances = self.proba_of(people), self.chances_of(people)
        return replace(people, chances=chances, label_proba=label_proba, by_score=by_score)

    def chances_of(self, people: People) -> Floats:
        """Chances of every label, of shape (n, labels)."""
        return self.chances_at(self._groups(people), people.with_scores.score, people.predictions())

    def chances_at(self, codes: Codes, score: Floats | None, predicted: Codes) -> Floats:
        """The same of people whose groups are at these positions, by what the model says of them."""
        if isinstance(self.chances, np.ndarray):
            return np.asarray(self.chances[codes, predicted])
        return _along([curve.chances for curve in self.chances], codes, score)

    def proba_of(self, people: People) -> Floats:
        """The chance of having a label: as it is known of them, else as it is believed."""
        if people.label_proba is not None:
            return people.label_proba
        if self.label_proba is None:
            raise DataError(
                "The chance of having a label was known person by person at the fit, and is not said of these people.",
                "Name its column: missing_labels=MissingLabels(label_proba=column).",
            )
        if isinstance(self.label_proba, np.ndarray):
            return np.asarray(self.label_proba[self._groups(people), people.predictions()])
        curves = [curve.label_proba for curve in self.label_proba]
        return _along(curves, self._groups(people), people.with_scores.score)

    def standing_of(self, people: People) -> Floats:
        """How many people without a label each with one stands for."""
        return stands_for(people, self.proba_of(people))

    def _groups(self, people: People) -> Codes:
        if people.groups == self.groups:
            return people.codes
        unknown = [group for group in people.groups if group not in self.groups]
        if unknown:
            raise GroupError(
                f"Of the group {unknown[0]!r} nobody was there when it was learnt who has which label.",
                f"The groups are {', '.join(map(repr, self.groups))}.",
            )
        place = np.array([self.groups.index(group) for group in people.groups], dtype=np.intp)
        return np.asarray(place[people.codes])


def _along(curves: Sequence[Callable[[Floats], Floats]], codes: Codes, score: Floats | None) -> Floats:
    """What the curve of everybody's group says of their probabilities."""
    assert score is not None, "there are probabilities"
    parts = [np.flatnonzero(codes == z) for z in range(len(curves))]
    values = np.concatenate([curve(score[rows]) for curve, rows in zip(curves, parts, strict=True)])
    found = np.empty_like(values)
    found[np.concatenate(parts)] = values
    return found


def stands_for(people: People, label_proba: Floats, *, whole: bool = True) -> Floats:
    """How many people without a label each with one stands for; what is estimated is clipped, what is known is not.

    Of a ``whole`` table, nobody where everybody of the group has one.
    """
    said = people.missing
    assert said is not None, "labels may be missing"
    found = standing_of(label_proba if said.columns else np.maximum(label_proba, said.clip), people.labelled)
    if not whole:
        return found
    others = np.bincount(people.codes[~people.labelled], minlength=len(people.groups)) > 0
    return np.where(others[people.codes], found, 0.0)


def label_proba_by_group(people: People) -> Floats:
    """By group sums of the chances of having a label, and of their variances; and weights of people.

    Of shape (groups, 4); the last are people whose chance is below ``clip``, and those without a label whose is 0.
    """
    said, weight, g = people.missing, people.weights, len(people.groups)
    assert said is not None, "labels may be missing"
    label_proba, twice = np.asarray(people.label_proba), weight if people.weight_kind == "sampling" else 1.0
    columns = (
        label_proba,
        twice * label_proba * (1.0 - label_proba),
        label_proba < said.clip,
        (label_proba == 0.0) & ~people.labelled,
    )
    return np.stack([np.bincount(people.codes, weight * one, minlength=g) for one in columns], axis=1)


#: By how many standard deviations, and by which share of a group, those with a label may differ from what was learnt.
SURPRISE, APART = 4.5, 0.05


def refuse_labelled_otherwise(people: People, label_proba: Floats) -> None:
    """Refuse chances of a label that were learnt from others, where these people were labelled in another way."""
    g, weight = len(people.groups), people.weights

    def total(numbers: Any) -> Floats:
        return np.asarray(np.bincount(people.codes, weight * numbers, minlength=g), dtype=np.float64)

    have, expected, everyone = total(people.labelled), total(label_proba), total(1.0)
    apart = np.abs(have - expected) - SURPRISE * np.sqrt(total(label_proba * (1.0 - label_proba)))
    for z in np.flatnonzero(apart > APART * everyone)[:1].tolist():
        raise DataError(
            f"In the group {people.groups[z]!r} {have[z]:,.6g} of {everyone[z]:,.6g} people have a label, and by what "
            f"was learnt at the fit {expected[z]:,.6g} would: these people were labelled in another way.",
            "Say how: missing_labels=MissingLabels(label_proba=...), a column of the chances or a classifier that "
            "learns them from these people.",
        )


def _by_score(people: People) -> tuple[LabelProbaCurve, ...]:
    """The chance of having a label along the score, in every group."""
    score, have = np.asarray(people.with_scores.score), people.weights * people.labelled
    parts = [np.flatnonzero(people.codes == z) for z in range(len(people.groups))]
    return tuple(
        fit_label_curve(score[rows], have[rows], people.weights[rows] - have[rows]) for rows in parts
    )


def _shares(people: People) -> Floats:
    """Share of people with a label by group and predicted label; 1 where there is nobody."""
    k = int(people.predictions().max(initial=0)) + 1 if people.labels is None else _n_labels(people)
    place = people.codes * k + people.predictions()
    size = len(people.groups) * k
    everyone, have = (
        np.bincount(place, weight, minlength=size).astype(np.float64)
        for weight in (people.weights, people.weights * people.labelled)
    )
    return np.divide(have, everyone, out=np.ones(size), where=everyone > 0).reshape(-1, k)


def _curves(people: People, weight: Floats, squares: Floats) -> tuple[LabelCurve, ...]:
    """The chances of labels along the probabilities, in every group."""
    score, labels = np.asarray(people.with_scores.score), np.asarray(people.labels)
    found = []
    for z in range(len(people.groups)):
        rows = np.flatnonzero((people.codes == z) & people.labelled)
        counts = np.zeros((len(rows), score.shape[1]))
        counts[np.arange(len(rows)), labels[rows]] = weight[rows]
        if not weight[rows].any():  # nobody stands for anybody: there is nobody else
            counts[np.arange(len(rows)), labels[rows]] = people.weights[rows]
        effective = weight[rows].sum() ** 2 / max(float(squares[rows].sum()), 1e-300)
        found.append(fit_curve(score[rows], counts, max(effective, 1.0)))
    return tuple(found)


def _n_labels(people: People) -> int:
    """How many labels there are; without probabilities, as many as occur."""
    labels = np.asarray(people.labels)
    return int(max(labels.max(initial=0), people.predictions().max(initial=0))) + 1


def _table(people: People, weight: Floats) -> Floats:
    """The chances of labels by group and predicted label."""
    k, labels = _n_labels(people), np.asarray(people.labels)
    held = np.flatnonzero(people.labelled)
    counts = np.zeros((len(people.groups), k, k))
    np.add.at(counts, (people.codes[held], people.predictions()[held], labels[held]), weight[held])
    total = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / k))
