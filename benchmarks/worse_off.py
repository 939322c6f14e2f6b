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

from felicific import FairClassifier, WorseOff
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

    def fitted(constraints: list[WorseOff]) -> FairClassifier:
        fair = FairClassifier(
            FrozenEstimator(blind), happiness={"approved": "decision"}, gap=GAP, constraints=constraints,
            sensitive_features="sex", random_state=0,
        )  # fmt: skip
        return fair.fit(X.iloc[fitting], data.y[fitting])

    free = fitted([])
    rows = [
        [f"{row.at_most:.1%}", f"{row.loss:.4f}", *(f"{share:.1%}" for share in (row.loses or {}).values())]
        for row in free.price_of_worse_off()
    ]
    head = ["at most so many of each sex lose", "loss", *map(str, free.groups_)]
    fill(EVIDENCE / "policies.md", "worse_off", table(head, rows))
    print(f"approved: model {free.frontier_.baseline.means[:, 0]}, policy {free.policy_.means['approved']}")
    groups = free.groups_
    limits = [("of each sex", 0.05, groups), ("of each sex", 0.02, groups), ("of all", 0.02, None)]
    rows = []
    for whom, share, named in (*limits, ("of all", 0.0, None)):
        fair = fitted([WorseOff(share, groups=named)])
        lost = [f"{part:.1%}" for part in fair.policy_.means["loses"].values()]
        prices = [f"{price:.3f}" for name, price in fair.policy_.prices.items() if "get less" in name]
        rows.append([f"{share:.0%} {whom}", f"{fair.loss_:.4f}", *lost, ", ".join(prices)])
    print(table(["at most", "loss", *map(str, groups), "price per unit of share"], rows))


if __name__ == "__main__":
    main()
