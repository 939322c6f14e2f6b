"""What gaps between attributes, their intersections and ratios cost on Adult, and how long they take.

    python benchmarks/family.py

A histogram-boosting model that does not see sex is fitted to 14,000 rows, policies of 256 score bins to 17,000 others,
and both are judged on the rest. Fills its block of docs/evidence/policies.md.
Prices are compared with central differences of the least loss.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from shared import EVIDENCE, fill, table
from sklearn.ensemble import HistGradientBoostingClassifier

from felicific import Gap, Ratio, Score, aggregate, solve
from felicific._problem.requirement import Requirement
from felicific.datasets import adult

ATTRIBUTES = ["sex", "race"]
TRAINED, FITTED = 14_000, 31_000
STEP = 1e-5

ASKED: dict[str, list[Requirement]] = {
    "nothing": [],
    "gap between sexes at most .05": [Gap("selected", 0.05, between="sex")],
    "gaps between sexes, and between races, at most .05": [
        Gap("selected", 0.05, between="sex"),
        Gap("selected", 0.05, between="race"),
    ],
    "gap between all 10 intersections at most .05": [Gap("selected", 0.05)],
    "ratio of sexes at least .6": [Ratio("selected", 0.6, between="sex")],
    "ratio of sexes at least .8": [Ratio("selected", 0.8, between="sex")],
}


class Row(NamedTuple):
    """What one set of requirements costs, reaches and takes."""

    name: str
    loss: float
    test_loss: float
    fitted: list[float]
    test: list[float]
    milliseconds: float


def sums(seed: int) -> tuple[Any, Any]:
    """Sums over the people that policies are fitted to, and over others."""
    data = adult(as_frame="pandas")
    features = data.X.drop(columns=["sex"])
    text = [name for name in features if features[name].dtype.kind not in "iuf"]
    features = features.astype(dict.fromkeys(text, "category"))
    order = np.random.default_rng(seed).permutation(len(data.y))
    train, fit, test = order[:TRAINED], order[TRAINED:FITTED], order[FITTED:]
    model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
    model.fit(features.iloc[train], data.y[train])

    def summed(rows: Any, signal: Any) -> Any:
        table = data.X.iloc[rows].assign(
            score=model.predict_proba(features.iloc[rows])[:, 1], rich=data.y[rows]
        )
        roles = {"score": "score", "y": "rich", "sensitive_features": ATTRIBUTES}
        return aggregate(table, happiness={"selected": "decision"}, policy=signal, **roles)

    fitted = summed(fit, Score(bins=256)).joined()
    return fitted, summed(test, fitted.signal)


def measured(fitted: Any, other: Any, name: str, asked: list[Requirement]) -> Row:
    """Solve once for the numbers and three times for the clock."""
    policy = solve(fitted, gap={}, constraints=asked, random_state=0)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        solve(fitted, gap={}, constraints=asked, random_state=0)
        took.append(time.perf_counter() - start)
    there = other.evaluate(policy.q)
    rows = [row for one in asked for row in one.rows(fitted)]

    def reached(means: Any) -> list[float]:
        return [row.goal.reached(means) for row in rows]

    return Row(
        name, policy.loss, there.loss, reached(policy.outcome.means), reached(there.means), 1e3 * min(took)
    )


def priced(fitted: Any, ratio: float) -> tuple[float, float]:
    """The price of a ratio between the sexes, and a central difference of the least loss."""

    def at(value: float) -> Any:
        return solve(fitted, constraints=[Ratio("selected", value, between="sex")], random_state=0)

    (price,) = at(ratio).prices.values()
    return price, (at(ratio + STEP).loss - at(ratio - STEP).loss) / (2 * STEP)


def main() -> None:
    """Measure, and fill the page."""
    fitted, other = sums(seed=0)
    rows = []
    for name, asked in ASKED.items():
        row = measured(fitted, other, name, asked)
        here, there = (" and ".join(f"{number:.3f}" for number in part) for part in (row.fitted, row.test))
        rows.append([name, f"{row.loss:.4f}", f"{row.test_loss:.4f}", here, there, f"{row.milliseconds:.0f}"])
    text = table(["asked", "loss", "loss on test", "reached", "reached on test", "ms"], rows) + "\n"
    for ratio in (0.6, 0.8):
        price, difference = priced(fitted, ratio)
        text += (
            f"\nThe price of a ratio of {ratio:g} is {price:.6f}, by central differences {difference:.6f}."
        )
    fill(EVIDENCE / "policies.md", "family", text)


if __name__ == "__main__":
    main()
