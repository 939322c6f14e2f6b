"""How often safe fits return a policy, how often that one violates its gap, and how much loss they give away.

    pip install -e . pandas && python benchmarks/safe.py [--worlds 500] [--out docs/evidence]

Each world is a sample of a population whose truth is known; the table replaces what stands between the markers of
``safe-fits.md`` in the folder ``--out``. Exits with an error when a test that holds for any distribution breaks its
promise. ``--shares`` measures instead how much of every group had best be held out.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, fill, table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness, aggregate, solve
from felicific._fit import safety
from felicific.exceptions import CertificateError, InfeasibleError


def population(rng: np.random.Generator, groups: int, n: int = 400_000) -> pd.DataFrame:
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
    policy: str = "label"


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
    "parity, score policies": Case("statistical_parity", 0.08, 2_000, policy="score"),
    "parity, individual policies": Case("statistical_parity", 0.1, 1_500, policy="individual"),
}

#: Where it is measured how much had best be held out, and how much was tried.
SHARED = ("parity", "equalized odds", "money, within 0 and 20", "parity, 5 groups")
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8)


class World:
    """A population whose truth is known, and what is asked of samples of it."""

    def __init__(self, case: Case) -> None:
        self.case, self.rng = case, np.random.default_rng(2026)
        self.everyone = population(self.rng, case.groups)
        self.asked = {"happiness": case.happiness, "sensitive_features": "group"}
        self.truth = aggregate(self.everyone, predicted="p", y="y", policy="label", **self.asked)
        self.some = self.everyone.iloc[:40_000]
        self.model = FrozenEstimator(Predicted().fit(None, None))

    def sample(self) -> pd.DataFrame:
        """Rows to fit on."""
        return self.everyone.iloc[self.rng.integers(0, len(self.everyone), self.case.rows)]

    def fit(self, sample: pd.DataFrame, seed: int, confidence: float | None = None) -> FairClassifier:
        """Fit it to a sample."""
        settings = {"policy": self.case.policy, "random_state": seed, "confidence": confidence} | self.asked
        return FairClassifier(self.model, gap=self.case.gap, **settings).fit(sample, sample["y"].to_numpy())

    def outcome(self, fair: FairClassifier) -> tuple[float, float]:
        """Loss and largest gap in the population."""
        if self.case.policy == "label":
            found = self.truth.evaluate(fair.policy_.q)
        else:
            tried = fair._tryout(self.some, self.some["y"].to_numpy(), None, None)
            found = tried.outcome(tried.probabilities(fair.policy_))
        return found.loss, float(found.gaps.max())

    @cached_property
    def least(self) -> float:
        """The least loss at the gap that is asked for, by a policy that knows the population."""
        if self.case.policy == "label":
            return float(solve(self.truth, gap=self.case.gap).loss)
        return self.outcome(self.fit(self.some, 0))[0]


def run(name: str, worlds: int) -> dict[str, Any]:
    """Safe fits in so many worlds."""
    world = World(CASES[name])
    case, returned, violated, above, given = world.case, 0, 0, 0, []
    for seed in range(worlds):
        try:
            fair = world.fit(world.sample(), seed, 0.95)
        except (CertificateError, InfeasibleError):
            continue
        loss, gap = world.outcome(fair)
        returned += 1
        violated += gap > case.gap
        above += fair.certificate_.loss is not None and loss > fair.certificate_.loss
        given.append(loss - world.least)
    return {
        "case": name,
        "rows": case.rows,
        "gap": case.gap,
        "worlds": worlds,
        "by": "large samples" if "not declared" in name else "bets",
        "returned": returned / worlds,
        "violating": violated / worlds,
        "above": above / worlds,
        "given": float(np.mean(given)) if given else math.nan,
    }


def percent(number: float) -> str:
    return "-" if math.isnan(number) else f"{100 * number:.1f}"


def worlds_table(rows: list[dict[str, Any]]) -> str:
    head = ["case", "rows", "gap allowed", "worlds", "test", "returned"]
    head += ["returned and violating", "loss above the stated one", "loss given away"]
    shown = [
        [row["case"], f"{row['rows']:,}", f"{row['gap']:.3g}", f"{row['worlds']:,}", row["by"]]
        + [percent(row[what]) for what in ("returned", "violating", "above", "given")]
        for row in rows
    ]
    return table(head, shown)


def shares(worlds: int) -> str:
    """Percent returned, and the loss given away by those, for every share that is held out."""
    rows = []
    for name in SHARED:
        cells = []
        for share in SHARES:
            safety.HELD_OUT = share
            found = run(name, worlds)
            cells.append(f"{percent(found['returned'])} ({percent(found['given'])})")
        rows.append([name, *cells])
        print(rows[-1], flush=True)
    return table(["case", *(f"{share:.0%} held out" for share in SHARES)], rows)


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """Promises that the numbers break, beyond three binomial standard deviations."""
    return [
        f"a safe fit violates: {row}"
        for row in rows
        if row["by"] == "bets" and row["violating"] > 0.05 + 3 * math.sqrt(0.05 * 0.95 / row["worlds"])
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked, start = parser.parse_args(), time.perf_counter()
    page = asked.out / "safe-fits.md"
    if asked.shares:
        fill(page, "shares", shares(asked.worlds))
        return 0
    rows = []
    for name, case in CASES.items():
        rows.append(run(name, asked.worlds if case.policy == "label" else max(1, asked.worlds // 5)))
        print(rows[-1], flush=True)
    fill(page, "worlds", worlds_table(rows))
    faults = broken(rows)
    print(*faults, sep="\n")
    print(f"{time.perf_counter() - start:.0f} s in all, {len(faults)} promises broken")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
