"""How often safe fits return a policy, how often that one violates its gap, and how much loss they give away.

    pip install -e . pandas && python benchmarks/safe.py [--worlds 500] [--out docs]

Each world is a sample of a population whose truth is known; the table replaces what stands between the markers of
``statistics.md`` in the folder ``--out``. Exits with an error when a test that holds for any distribution breaks its
promise. ``--shares`` measures instead how much of the rows had best be held out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness, moments, solve
from felicific.exceptions import CertificateError, InfeasibleError

ROOT = Path(__file__).resolve().parent.parent
PEOPLE, LARGE_SAMPLES = 400_000, "large samples"


def population(rng: np.random.Generator, n: int = PEOPLE, groups: int = 2) -> pd.DataFrame:
    """People with a score, the decision that a model predicts from it, a label, and money of several kinds."""
    shares = {2: [0.5, 0.5], 5: [0.08, 0.23, 0.23, 0.23, 0.23]}[groups]
    group = rng.choice(groups, n, p=shares)
    score = rng.normal(size=n) + 0.4 * (group > 0)
    loan = rng.lognormal(0.0, 1.0, n)
    rare = (group > 0) & (rng.random(n) < 0.002)
    return pd.DataFrame(
        {
            "group": group,
            "score": 1.0 / (1.0 + np.exp(0.5 - 1.6 * score)),
            "p": (score > 0.3).astype(int),
            "y": (score + rng.normal(size=n) > 0.3).astype(int),
            "loan": loan,
            "rare": np.where(rare, 300.0, 1.0),
            "win": 0.5 + rng.random(n) + 600.0 * rare,
        }
    )


class Predicted(ClassifierMixin, BaseEstimator):
    """A model that was fitted elsewhere: what it says is in columns."""

    def fit(self, X: Any, y: Any) -> Any:
        """Nothing to learn."""
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        """The column of labels."""
        return X["p"].to_numpy()

    def predict_proba(self, X: Any) -> Any:
        """The column of scores."""
        score = X["score"].to_numpy()
        return np.column_stack([1.0 - score, score])


def capped(decision: int, x: Any) -> Any:
    return decision * np.minimum(x["loan"], 20.0)


def lent(decision: int, x: Any) -> Any:
    return decision * x["rare"]


def won(decision: int, x: Any) -> Any:
    return decision * x["win"]


@dataclass(frozen=True)
class Case:
    """What is asked of which people."""

    happiness: Any
    gap: float
    rows: int
    groups: int = 2
    settings: dict[str, Any] = field(default_factory=dict)


CASES = {
    "parity": Case("statistical_parity", 0.08, 2_000),
    "parity, 5 groups": Case("statistical_parity", 0.15, 6_000, 5),
    "equalized odds": Case("equalized_odds", 0.12, 2_000),
    "money, within 0 and 20": Case(Happiness(capped, bounds=(0, 20)), 0.25, 4_000),
    "money, bounds not declared": Case(capped, 0.25, 4_000),
    "rare money, within 0 and 300": Case(Happiness(lent, bounds=(0, 300)), 0.1, 2_000),
    "rare money, bounds not declared": Case(lent, 0.1, 2_000),
    "hidden tail, within 0 and 602": Case(Happiness(won, bounds=(0, 602)), 0.3, 1_000),
    "hidden tail, bounds not declared": Case(won, 0.3, 1_000),
    "parity, individual policies": Case("statistical_parity", 0.1, 1_500, settings={"policy": "individual"}),
}


def worlds(name: str, case: Case, count: int, seed: int = 0) -> dict[str, Any]:
    """Fit the case in so many worlds."""
    rng = np.random.default_rng([2026, seed])
    everyone = population(rng, groups=case.groups)
    asked = {"happiness": case.happiness, "sensitive_features": "group"}
    truth = moments(everyone, predicted="p", y="y", policy="label", **asked)
    settings = {"policy": "label"} | case.settings
    some = everyone.iloc[:40_000]
    least = solve(truth, gap=case.gap).loss
    model = FrozenEstimator(Predicted().fit(None, None))
    returned, violated, above, given, unsafe = 0, 0, 0, [], 0
    for world in range(count):
        sample = everyone.iloc[rng.integers(0, len(everyone), case.rows)]
        labels, whole = sample["y"].to_numpy(), {"gap": case.gap, "random_state": world} | asked | settings

        def outcome(fair: FairClassifier) -> tuple[float, float]:
            if settings["policy"] == "label":
                found = truth.evaluate(fair.policy_.q)
                return found.loss, float(found.gaps.max())
            tried = fair._tryout(some, some["y"].to_numpy(), None, None)
            found = tried.outcome(tried.odds(fair.policy_))
            return found.loss, float(found.gaps.max())

        loss, gap = outcome(FairClassifier(model, **whole).fit(sample, labels))
        unsafe += gap > case.gap
        try:
            fair = FairClassifier(model, confidence=0.95, **whole).fit(sample, labels)
        except (CertificateError, InfeasibleError):
            continue
        safe_loss, gap = outcome(fair)
        returned += 1
        violated += gap > case.gap
        above += fair.certificate_.loss is not None and safe_loss > fair.certificate_.loss
        given.append(safe_loss - (least if settings["policy"] == "label" else loss))
    return {
        "case": name,
        "rows": case.rows,
        "gap": case.gap,
        "worlds": count,
        "unsafe": unsafe / count,
        "returned": returned / count,
        "violating": violated / count,
        "above": above / count,
        "given": float(np.mean(given)) if given else math.nan,
    }
