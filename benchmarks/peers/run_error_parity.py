"""error-parity's RelaxedThresholdOptimizer, by the probabilities that its classifiers draw with."""

from __future__ import annotations

import numpy as np
from error_parity import RelaxedThresholdOptimizer
from error_parity.classifiers import BinaryClassifier, BinaryClassifierAtROCDiagonal, RandomizedClassifier
from error_parity.evaluation import evaluate_predictions_bootstrap
from exchange import run

NAMES = {"statistical_parity": "demographic_parity", "equalized_odds": "equalized_odds"}


def fit(validation: dict, test: dict, criterion: str, bound: float):
    optimizer = RelaxedThresholdOptimizer(
        predictor=lambda X: X[:, 0], constraint=NAMES[criterion], tolerance=bound
    )
    optimizer.fit(validation["score"][:, None], validation["y"], group=validation["group"])
    return tuple(_probability(optimizer, rows) for rows in (validation, test))


def _probability(optimizer, rows: dict) -> np.ndarray:
    """Probability of the favourable decision, which the library itself only draws from."""
    found = np.empty(len(rows["score"]))
    for group, classifier in optimizer._realized_classifier.group_to_clf.items():
        mine = rows["group"] == group
        chance = float(optimizer.groupwise_roc_points[group][0])
        found[mine] = _expected(classifier, rows["score"][mine, None], chance)
    return found


def _expected(classifier, X: np.ndarray, chance: float) -> np.ndarray:
    if isinstance(classifier, RandomizedClassifier):
        parts = zip(classifier.classifiers, classifier.probabilities, strict=True)
        return sum(weight * _expected(part, X, chance) for part, weight in parts)
    if isinstance(classifier, BinaryClassifier):
        return classifier(X).astype(float)
    if isinstance(classifier, BinaryClassifierAtROCDiagonal):
        return np.full(len(X), classifier.target_fpr)
    # A coin that approves with the false positive rate aimed at: a lambda that hides its probability.
    return np.full(len(X), chance)


def steps(rows: dict):
    X, y = rows["score"][:, None], rows["y"]

    def groups():
        """It takes numbers alone, so whoever has names turns them into numbers, at fit and at predict."""
        named = rows["group"].dtype == object
        return np.unique(rows["group"], return_inverse=True)[1] if named else rows["group"]

    def fitted(tolerance):
        optimizer = RelaxedThresholdOptimizer(
            predictor=lambda X: X[:, 0], constraint="demographic_parity", tolerance=tolerance
        )
        return optimizer.fit(X, y, group=groups())

    kept = {}
    return {
        "fit": lambda: kept.update(fit=fitted(0.0)),
        "predict": lambda: kept.update(decisions=kept["fit"](X, group=groups())),
        "intervals": lambda: evaluate_predictions_bootstrap(
            y, kept["decisions"].astype(float), sensitive_attribute=groups(), k=100, threshold=0.5
        ),
        "curve": lambda: [fitted(tolerance) for tolerance in (0.02, 0.04, 0.06, 0.08, 0.1)],
    }


if __name__ == "__main__":
    run("error-parity", fit, steps)
