"""Draw the pictures of the README and of report.md: python docs/figures.py (needs altair and vl-convert-python)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from felicific import FairClassifier, plots
from felicific.datasets import synthetic_loans
from felicific.report.charts import choice
from felicific.report.view import make_view
from felicific.studies import make_forest

HERE = Path(__file__).parent
WAYS = ["today", "repaired on others", "recalibrated on them"]


@dataclass(frozen=True)
class Demo:
    """What ``felicific demo`` makes: a repaired classifier, and people whom it has never seen."""

    fair: FairClassifier
    X: Any
    y: Any


def make(seed: int = 0) -> Demo:
    """Simulate, train, repair."""
    data = synthetic_loans(48_842, seed=seed)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=seed)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.5, random_state=seed)
    model = make_forest(X_train, seed).fit(X_train, y_train)
    fair = FairClassifier(
        FrozenEstimator(model), happiness=data.happiness, sensitive_features="sex", random_state=seed
    )
    return Demo(fair.fit(X_val, y_val), X_test, y_test)


def measure(demo: Demo) -> list[dict[str, object]]:
    """Mean dollars lent to women and men."""
    fair, X = demo.fair, demo.X
    approved = [
        np.eye(2)[fair.estimator_.predict(X)][:, 1],
        fair.predict_proba(X)[:, 1],
        fair.recalibrate(X).predict_proba(X)[:, 1],
    ]
    loan, sex = X["loan_requested"].to_numpy(), X["sex"].to_numpy()
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


def draw_choice(demo: Demo) -> plots.Chart:
    """The report's chart of the choice, in the colours of paper."""
    content = demo.fair.report(demo.X, demo.y).to_dict()
    return choice(make_view(content)["picture"], theme=plots.LIGHT)[0]


if __name__ == "__main__":
    found = make()
    for name, chart in (
        ("demo", draw(measure(found))),
        ("report-choice", draw_choice(found)),
        ("report-policy", plots.policy(found.fair.policy_)),
    ):
        plots.save(chart, HERE / f"{name}.svg")
        print(f"wrote {HERE / name}.svg")
