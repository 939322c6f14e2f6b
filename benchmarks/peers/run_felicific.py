"""felicific's default policy through its scikit-learn class, and by aggregates and solve."""

from __future__ import annotations

import numpy as np
from exchange import run
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, aggregate, audit, frontier, solve


class Given(ClassifierMixin, BaseEstimator):
    """A model whose score is the only feature."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        """Learn nothing."""
        return self

    def predict_proba(self, X):
        """Return the scores."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        """Decide by one half."""
        return (X[:, 0] > 0.5).astype(int)

    def __sklearn_is_fitted__(self):
        return True


def steps(rows: dict):
    X, y, group = rows["score"][:, None], rows["y"], rows["group"]
    score = np.column_stack([1 - rows["score"], rows["score"]])
    kept = {}

    def fitted():
        fair = FairClassifier(
            FrozenEstimator(Given()), happiness="statistical_parity", gap=0.0, random_state=0
        )
        kept["fair"] = fair.fit(X, y, sensitive_features=group)

    def summed():
        kept["aggregates"] = aggregate(
            X, score=score, y=y, sensitive_features=group, happiness="statistical_parity"
        )
        return solve(kept["aggregates"], gap=0.0, random_state=0)

    def floor():
        for column in (rows["score"], y, group):
            column.sum()  # of numbers alone: the floor is not timed where groups have names

    return {
        "floor": floor,
        "fit": fitted,
        "predict": lambda: kept["fair"].predict(X, sensitive_features=group),
        "intervals": lambda: audit(kept["fair"], X, y, sensitive_features=group),
        "aggregates and solve": summed,
        "curve": lambda: frontier(kept["aggregates"]).tau,
    }


if __name__ == "__main__":
    run("felicific", None, steps)
