"""Who has a label: the chance of it, learnt group by group and never by a model that was fitted on the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from felicific._problem.happiness import Measure
from felicific._problem.missing_labels import MissingLabels
from felicific._sklearn.beliefs import group_folds
from felicific._tables.memory import take_rows
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import DataError

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
