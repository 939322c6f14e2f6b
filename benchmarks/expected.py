"""What gap to expect on new people, against what is found on them; and what ``policy="auto"`` is worth.

    python benchmarks/expected.py [--draws 24] [--seed 0] [--only expected|auto]

Fills its blocks of ``docs/evidence/safe-fits.md`` and ``docs/evidence/policies.md``.
People are drawn from Adult, with scores of a model that was fitted on others, and from made-up worlds; a
policy is fitted on some and tried on as many others, by decision probabilities, so the lottery adds no noise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, fill, table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, audit
from felicific.datasets import adult
from felicific.exceptions import PolicyWarning

CRITERIA = {"statistical parity": "statistical_parity", "equalized odds": "equalized_odds"}
SIZES, RARE = (200, 1_000, 5_000), (30, 60, 100)
ALL_BUT_RARE = (0.7, 1.2)

#: A draw of so many people, of whom so many are of the rare group (None: as they come), with a generator.
World = Callable[[int, int | None, np.random.Generator], pd.DataFrame]


class Scores(ClassifierMixin, BaseEstimator):
    """A model whose probabilities are columns p0, p1, ... of the table."""

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, X: Any, y: Any = None) -> Scores:
        """Nothing is learnt."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The columns."""
        return X[[f"p{k}" for k in range(self.classes)]].to_numpy()

    def predict(self, X: Any) -> Any:
        """The most probable class."""
        return self.predict_proba(X).argmax(axis=1)


def scored(scores: Any, y: Any, group: Any, **more: Any) -> pd.DataFrame:
    """People as columns."""
    return pd.DataFrame(
        {f"p{k}": scores[:, k] for k in range(scores.shape[1])} | {"y": y, "group": group} | more
    )


def adult_pool(label: Callable[[pd.DataFrame, Any], Any], seed: int) -> pd.DataFrame:
    """Two thirds of Adult with what a model of the other third says about them; the model does not see the sex."""
    data = adult(as_frame="pandas")
    X, y = data.X, np.asarray(label(data.X, data.y))
    rows = np.random.default_rng(seed).permutation(len(X))
    third = len(rows) // 3
    numbers = X.drop(columns=["sex", "hours-per-week"])
    numbers = numbers.apply(lambda column: column if column.dtype.kind in "if" else pd.factorize(column)[0])
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    model.fit(numbers.iloc[rows[:third]], y[rows[:third]])
    rest = rows[third:]
    return scored(model.predict_proba(numbers.iloc[rest]), y[rest], X["sex"].to_numpy()[rest])


def from_pool(pool: pd.DataFrame) -> World:
    """Draws without replacement; the rare group are the women."""

    def draw(n: int, rare: int | None, rng: np.random.Generator) -> pd.DataFrame:
        if rare is None:
            return pool.iloc[rng.choice(len(pool), n, replace=False)]
        few, many = (np.flatnonzero((pool["group"] == "Female") == of) for of in (True, False))
        rows = [rng.choice(few, rare, replace=False), rng.choice(many, n - rare, replace=False)]
        return pool.iloc[np.concatenate(rows)]

    return draw


def made_up(groups: int, classes: int = 2) -> World:
    """Groups that differ in how likely they are to have each label; the model knows the probabilities roughly."""

    def draw(n: int, rare: int | None, rng: np.random.Generator) -> pd.DataFrame:
        z = rng.integers(groups, size=n)
        if rare is not None:
            z = np.where(np.arange(n) < rare, 0, 1 + rng.integers(groups - 1, size=n))
        logits = rng.normal(0.0, 1.2, (n, classes)) + np.linspace(0.0, 0.8, classes) * z[:, None] / groups
        truth, guess = (_softmax(logits + rng.normal(0.0, s, logits.shape)) for s in (0.0, 0.3))
        y = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return scored(guess, y.clip(max=classes - 1), np.array([f"g{k}" for k in range(groups)])[z])

    return draw


def _softmax(logits: Any) -> Any:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def fitted(people: pd.DataFrame, happiness: str, gap: float, policy: Any, classes: int = 2) -> FairClassifier:
    """A policy of these people."""
    asked = {
        "happiness": happiness,
        "gap": gap,
        "policy": policy,
        "sensitive_features": "group",
        "random_state": 0,
    }
    return FairClassifier(FrozenEstimator(Scores(classes)), **asked).fit(
        people.drop(columns="y"), people["y"]
    )


def found(fair: FairClassifier, people: pd.DataFrame) -> tuple[float, float]:
    """Mean gap of all measures, and loss, among others."""
    result = audit(fair, people.drop(columns="y"), people["y"])
    return float(np.mean([*result.gaps.values()])), float(result.loss.estimate)


def trial(world: World, n: int, rare: int | None, criterion: str, draws: int, seed: int) -> list[float]:
    """Means of the gap found, of the gap to expect, and of the fewest counted; and the number of draws."""
    sums = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, n, rare or 0])
        both = world(2 * n, None if rare is None else 2 * rare, rng)
        half = rng.permutation(2 * n)
        if rare is not None:  # as many of the rare group in each half
            half = np.concatenate([np.arange(0, 2 * rare, 2), np.arange(2 * rare, 2 * n, 2)])
        mine = np.zeros(2 * n, dtype=bool)
        mine[half[:n]] = True
        people, others = both[mine], both[~mine]
        if any(part.groupby("group")["y"].nunique().min() < 2 for part in (people, others)):
            continue  # somebody of every group and label is needed for equalized odds
        fair = fitted(people, criterion, 0.0, "score")
        said = np.mean([*fair.expected_gaps_.values()])
        sums.append([found(fair, others)[0], said, fair.policy_.basis.evidence.number.min()])
    return [*np.mean(sums, axis=0).tolist(), float(len(sums))]


def expected_table(draws: int, seed: int) -> None:
    """The gap found over the gap expected."""
    worlds = {
        "Adult, 2 sexes": from_pool(adult_pool(lambda X, y: y, seed)),
        "made up, 4 groups": made_up(4),
    }
    rows, outside = [], []
    for name, world in worlds.items():
        for n, rare in [(n, None) for n in SIZES] + [(1_000, rare) for rare in RARE]:
            for words, criterion in CRITERIA.items():
                real, said, fewest, runs = trial(world, n, rare, criterion, draws, seed)
                who = f"{n:,}" if rare is None else f"{n:,}, {rare} of one group"
                numbers = [f"{fewest:.0f}", f"{real:.3f}", f"{said:.3f}", f"{real / said:.2f}"]
                rows.append([name, who, words, *numbers, f"{runs:.0f}"])
                print(*rows[-1], sep=" | ", flush=True)
                low, high = ALL_BUT_RARE
                if fewest >= 100 and not low <= real / said <= high:
                    outside.append(rows[-1])
    heads = ["people", "rows", "criterion", "fewest counted", "gap found"]
    heads += ["expected", "ratio", "draws"]
    fill(EVIDENCE / "safe-fits.md", "expected", table(heads, rows))
    print(
        f"Found over expected outside {ALL_BUT_RARE} though 100 or more are counted: {len(outside)} of {len(rows)}."
    )


def auto_table(draws: int, seed: int) -> None:
    """Individual policies against those of the score, where there are more than two classes."""
    hours = adult_pool(lambda X, y: np.digitize(X["hours-per-week"], [30, 40, 41, 50]), seed)
    worlds = {
        "made up, 3 classes": (made_up(2, 3), 3, ("statistical parity", "equalized odds")),
        "Adult, weekly hours in 5 classes": (from_pool(hours), 5, ("statistical parity",)),
        "made up, 5 classes, 4 groups": (made_up(4, 5), 5, ("statistical parity",)),
    }
    rows, n = [], 5_000
    for name, (world, classes, asked) in worlds.items():
        for words in asked:
            for gap, criterion in ((0.0, CRITERIA[words]), (0.05, CRITERIA[words])):
                rows.append(
                    [name, words, f"{gap:g}", *_against(world, classes, n, criterion, gap, draws, seed)]
                )
                print(*rows[-1], sep=" | ", flush=True)
    heads = ["people", "criterion", "gap asked", "accuracy, score", "individual", "won (points)"]
    heads += ["gap found, score", "individual", "processor seconds, score", "individual"]
    fill(EVIDENCE / "policies.md", "auto", table(heads, rows))
    people = made_up(2, 5)(50_000, None, np.random.default_rng(seed))
    for policy in ("score", "individual"):
        start = time.process_time()
        fitted(people, "statistical_parity", 0.02, policy, 5)
        print(
            f"50,000 rows, 5 classes, statistical parity .02, {policy}: {time.process_time() - start:.1f} s"
        )


def _against(
    world: World, classes: int, n: int, criterion: str, gap: float, draws: int, seed: int
) -> list[str]:
    results: dict[str, list[Any]] = {"score": [], "individual": []}
    for draw in range(draws):
        both = world(2 * n, None, np.random.default_rng([seed, draw, n]))
        people, others = both.iloc[:n], both.iloc[n:]
        for policy, measured in results.items():
            start = time.process_time()
            fair = fitted(people, criterion, gap, policy, classes)
            took = time.process_time() - start
            measured.append((*found(fair, others), took))
    score, individual = (np.array(measured) for measured in results.values())
    won = 100 * (score[:, 1] - individual[:, 1])
    error = f" +- {won.std(ddof=1) / np.sqrt(draws):.2f}" if draws > 1 else ""
    means = score.mean(axis=0), individual.mean(axis=0)
    return [
        *(f"{100 - 100 * mean[1]:.2f}" for mean in means),
        f"{won.mean():+.2f}{error}",
        *(f"{mean[0]:.3f}" for mean in means),
        *(f"{mean[2]:.1f}" for mean in means),
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["expected", "auto"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", PolicyWarning)
    if given.only != "auto":
        expected_table(given.draws, given.seed)
    if given.only != "expected":
        auto_table(max(2, given.draws // 8), given.seed)


if __name__ == "__main__":
    main()
