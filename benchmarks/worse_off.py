"""What it costs that fewer people lose, on Adult: fills its block of ``docs/evidence/policies.md``.

    pip install -e ".[pandas]"
    python benchmarks/worse_off.py

A boosting model without sex is fitted to a third of the rows; the policy to 17,000 others, for a gap in approvals of at
most .05 between the sexes.
"""

from __future__ import annotations

import numpy as np
from shared import EVIDENCE, fill, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier
from felicific.datasets import adult

ROWS, GAP = 17_000, 0.05


def main() -> None:
    """Print what a limit on who is worse off costs, by group and for all people together."""
    data = adult(as_frame="pandas")
    X, order = data.X.copy(), np.random.default_rng(0).permutation(len(data.y))
    features = X.drop(columns="sex")
    texts = features.select_dtypes(exclude="number").columns
    X[texts] = X[texts].astype("category")
    train, fitting = order[: len(order) // 3], order[-ROWS:]
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    blind = boosting.fit(X[features.columns].iloc[train], data.y[train])

    fair = FairClassifier(
        FrozenEstimator(blind), happiness={"approved": "decision"}, gap=GAP, sensitive_features="sex", random_state=0,
    ).fit(X.iloc[fitting], data.y[fitting])  # fmt: skip
    rows = [
        [f"{row.at_most:.1%}", f"{row.loss:.4f}", *(f"{share:.1%}" for share in (row.loses or {}).values())]
        for row in fair.price_of_worse_off()
    ]
    head = ["at most so many of each sex lose", "loss", *map(str, fair.groups_)]
    fill(EVIDENCE / "policies.md", "worse_off", table(head, rows))


if __name__ == "__main__":
    main()
