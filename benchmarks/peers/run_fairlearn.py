"""fairlearn's ThresholdOptimizer, by the probabilities that its ``predict`` draws from."""

from __future__ import annotations

import numpy as np
from exchange import run
from fairlearn.metrics import MetricFrame, selection_rate
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

NAMES = {"statistical_parity": "demographic_parity", "equalized_odds": "equalized_odds"}


class Given(ClassifierMixin, BaseEstimator):
    """A model whose score is the only feature."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        """Learn nothing; fairlearn only wants to see the method."""
        return self

    def predict_proba(self, X):
        """Return the scores."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def __sklearn_is_fitted__(self):
        return True


def fit(validation: dict, test: dict, criterion: str, bound: float):
    if criterion == "equalized_odds" and bound:
        return None  # it raises: relaxed constraints are not supported for equalized odds
    optimizer = ThresholdOptimizer(
        estimator=Given(),
        constraints=NAMES[criterion],
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
        tol=bound if bound else None,
    )
    optimizer.fit(validation["score"][:, None], validation["y"], sensitive_features=validation["group"])
    return tuple(
        optimizer._pmf_predict(rows["score"][:, None], sensitive_features=rows["group"])[:, 1]
        for rows in (validation, test)
    )


def steps(rows: dict):
    X, y, group = rows["score"][:, None], rows["y"], rows["group"]

    def fitted(tol):
        optimizer = ThresholdOptimizer(
            estimator=Given(),
            constraints="demographic_parity",
            prefit=True,
            predict_method="predict_proba",
            tol=tol,
        )
        return optimizer.fit(X, y, sensitive_features=group)

    kept = {}

    def intervals():
        kept["frame"] = MetricFrame(
            metrics=selection_rate,
            y_true=y,
            y_pred=kept["decisions"],
            sensitive_features=group,
            n_boot=100,
            ci_quantiles=[0.025, 0.975],
        )
        kept["intervals"] = kept["frame"].by_group_ci

    return {
        "fit": lambda: kept.update(fit=fitted(None)),
        "predict": lambda: kept.update(
            decisions=kept["fit"].predict(X, sensitive_features=group, random_state=0)
        ),
        "intervals": intervals,
        "curve": lambda: [fitted(tol) for tol in (0.02, 0.04, 0.06, 0.08, 0.1)],
    }


if __name__ == "__main__":
    run("fairlearn", fit, steps)
