"""Draw the README's picture: python docs/figures.py (needs altair and vl-convert-python)."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from felicific import FairClassifier
from felicific.app import make_forest
from felicific.datasets import synthetic_loans

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


def draw(points: list[dict[str, object]]) -> alt.LayerChart:
    """Two dots a line, the gap between them written on it."""
    spans = []
    for way in WAYS:
        low, high = sorted(float(str(point["mean"])) for point in points if point["way"] == way)
        spans.append({"way": way, "low": low, "high": high, "gap": f"gap ${high - low:,.0f}"})
    names = ["women", "men"]
    y = alt.Y("way:N", sort=WAYS, title=None, axis=alt.Axis(domain=False, ticks=False, labelPadding=12))
    x = alt.X(
        "mean:Q",
        title="mean dollars lent per applicant",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format="$,.0f"),
    )
    gaps = alt.Chart(alt.Data(values=spans)).encode(y=y)
    line = gaps.mark_rule(strokeWidth=3, color="#bbbbbb").encode(x="low:Q", x2="high:Q")
    text = gaps.mark_text(align="left", dx=12, fontSize=13, color="#444444").encode(x="high:Q", text="gap:N")
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=names, range=["#0072b2", "#e69f00"]),
        legend=alt.Legend(title=None, orient="top"),
    )
    shape = alt.Shape("group:N", scale=alt.Scale(domain=names, range=["circle", "square"]), legend=None)
    dots = alt.Chart(alt.Data(values=points)).mark_point(size=130, filled=True, opacity=1)
    return (
        (line + dots.encode(y=y, x=x, color=colour, shape=shape) + text)
        .properties(width=560, height=150)
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=13, titleFontSize=13)
        .configure_legend(labelFontSize=13)
    )


if __name__ == "__main__":
    target = Path(__file__).parent / "demo.svg"
    draw(measure()).save(target)
    print(f"wrote {target}")
