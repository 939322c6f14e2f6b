"""Draw the README's picture: python docs/figures.py (needs altair and vl-convert-python)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from felicific import FairClassifier, plots
from felicific.datasets import synthetic_loans
from felicific.studies import make_forest

WAYS = ["today", "repaired on others", "recalibrated on them"]


def measure(seed: int = 0) -> list[dict[str, object]]:
    """Mean dollars lent to women and men, on people the policy has never seen, as in ``felicific demo``."""
    data = synthetic_loans(48_842, seed=seed)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=seed)
    X_test, X_val, _, y_val = train_test_split(X, y, test_size=0.5, random_state=seed)
    model = make_forest(X_train, seed).fit(X_train, y_train)
    fair = FairClassifier(
        FrozenEstimator(model), happiness=data.happiness, sensitive_features="sex", random_state=seed
    ).fit(X_val, y_val)
    approved = [
        np.eye(2)[model.predict(X_test)][:, 1],
        fair.predict_proba(X_test)[:, 1],
        fair.recalibrate(X_test).predict_proba(X_test)[:, 1],
    ]
    loan, sex = X_test["loan_requested"].to_numpy(), X_test["sex"].to_numpy()
    return [
        {"way": way, "group": name, "mean": float((chance * loan)[sex == value].mean())}
        for way, chance in zip(WAYS, approved, strict=True)
        for value, name in (("Female", "women"), ("Male", "men"))
    ]


def draw(points: list[dict[str, object]]) -> plots.Chart:
    """A block per way of deciding, a line per group; the gap is a band, and written beside it."""
    titled = {}
    for way in WAYS:
        low, high = sorted(float(str(point["mean"])) for point in points if point["way"] == way)
        titled[way] = f"{way}: gap ${high - low:,.0f}"
    rows = [{**point, "way": titled[str(point["way"])]} for point in points]
    return plots.means(rows, title="mean dollars lent per applicant")


if __name__ == "__main__":
    target = Path(__file__).parent / "demo.svg"
    plots.save(draw(measure()), target)
    print(f"wrote {target}")
