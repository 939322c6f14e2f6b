"""Policies that do not see the group: what beliefs about it are worth, and what they take.

    python benchmarks/blind.py [--seeds 6] [--part beliefs|time]

Fills its blocks of docs/evidence/policies.md. The people are those of Adult without the column sex,
and of a made-up world in which features tell something of the group and the label depends on the group besides. A model
of the label, and for "given" one of the group, is fitted on 8,000 people, policies of gap 0 on 2,000 or 6,000 others;
they are measured on 15,000 more, by decision probabilities.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from shared import EVIDENCE, fill, table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from felicific import FairClassifier, Individual
from felicific._fit import fit as fitting
from felicific._sklearn import base as wiring
from felicific._sklearn.beliefs import LEAVES, RATE, TREES, group_folds
from felicific.datasets import adult

MODEL, OTHERS = 8_000, 15_000
CRITERIA = ("statistical_parity", "equalized_odds")


def adult_people() -> tuple[Any, Any, Any]:
    """Adult: features without sex, who earns well, sex."""
    data = adult(as_frame="pandas")
    return data.X.drop(columns="sex"), data.y, data.X["sex"].to_numpy()


def made_up_people(n: int = 40_000, seed: int = 5) -> tuple[Any, Any, Any]:
    """Eight features, of which four tell something of the group; the label depends on the group besides."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    group, x = (rng.random(n) < 0.35).astype(int), rng.normal(size=(n, 8))
    x[:, 0] += 0.9 * group
    x[:, 1] -= 0.6 * group
    x[:, 2] += 0.5 * group * x[:, 3]
    strength = 0.8 * x[:, 0] + x[:, 4] + 0.5 * x[:, 1] * x[:, 5] - 0.3 + 0.7 * group
    label = (rng.random(n) < 1 / (1 + np.exp(-1.5 * strength))).astype(int)
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(8)]), label, np.array(["a", "b"])[group]


def trees(**settings: Any) -> Any:
    """Boosted trees over any columns."""
    numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    text = make_column_selector(dtype_exclude="number")
    settings = {"max_iter": TREES, "early_stopping": False, "random_state": 0} | settings
    return make_pipeline(
        make_column_transformer((numbers, text), remainder="passthrough"),
        HistGradientBoostingClassifier(**settings),
    )


def of_group() -> Any:
    """The trees by which felicific learns the group."""
    return trees(max_leaf_nodes=LEAVES, learning_rate=RATE)


def line() -> Any:
    """A logistic model over any columns."""
    text = make_column_selector(dtype_exclude="number")
    coded = (OneHotEncoder(handle_unknown="ignore", min_frequency=20), text)
    return make_pipeline(
        make_column_transformer(coded, remainder=StandardScaler()), LogisticRegression(max_iter=300)
    )


class Folds(ClassifierMixin, BaseEstimator):
    """Logistic models of the group in five folds, whose average predicts."""

    def __init__(self, models: Any, classes: Any) -> None:
        self.models, self.classes_ = models, classes

    def predict_proba(self, X: Any) -> Any:
        """The average."""
        return np.mean([model.predict_proba(X) for model in self.models], axis=0)


def logistic_folds(features: Any, codes: Any, groups: Any, **asked: Any) -> tuple[Any, Any]:
    """In place of felicific's own trees: the same folds with logistic models."""
    believed, models = np.empty((len(codes), len(groups))), []
    for train, test in group_folds(features, codes, asked["cv"], asked["cluster"]):
        models.append(line().fit(features.iloc[train], codes[train]))
        believed[test] = models[-1].predict_proba(features.iloc[test])
    return Folds(models, np.array(groups)), believed


def in_sample(features: Any, codes: Any, groups: Any, **asked: Any) -> tuple[Any, Any]:
    """What is never done: one model of the group, asked about those it was fitted on."""
    model = of_group().fit(features, np.array(groups)[codes])
    return model, model.predict_proba(features)


def gap_of(probabilities: Any, label: Any, group: Any, criterion: str) -> float:
    """The largest gap of a criterion on some people."""
    first = group == np.unique(group)[0]
    among = [label >= 0] if criterion == "statistical_parity" else [label == k for k in (0, 1)]
    return max(
        abs(probabilities[part & first, 1].mean() - probabilities[part & ~first, 1].mean()) for part in among
    )


WAYS: dict[str, tuple[bool, Callable[..., Any] | None]] = {
    "five folds of trees, average (None)": (False, None),
    "given, by a model of other people": (True, None),
    "five folds, logistic": (False, logistic_folds),
    "in sample": (False, in_sample),
}


def beliefs(world: str, people: tuple[Any, Any, Any], seeds: int) -> Iterator[list[str]]:
    """Stated gap, gap on others, on the fitted rows, accuracy."""
    X, y, group = people
    for criterion in CRITERIA:
        for rows in (2_000, 6_000):
            found: dict[str, list[Any]] = {way: [] for way in WAYS}
            for seed in range(seeds):
                order = np.random.default_rng(seed).permutation(len(y))
                first, fit, test = order[:MODEL], order[MODEL : MODEL + rows], order[-OTHERS:]
                model = FrozenEstimator(trees(max_iter=60).fit(X.iloc[first], y[first]))
                given = FrozenEstimator(of_group().fit(X.iloc[first], group[first]))
                for way, (uses, instead) in WAYS.items():
                    wiring.fit_group_model = OWN if instead is None else instead  # type: ignore[assignment]
                    fair = FairClassifier(
                        model,
                        happiness=criterion,
                        gap=0.0,
                        policy=Individual(group_proba=given if uses else None),
                        sees_group=False,
                        random_state=0,
                    ).fit(X.iloc[fit], y[fit], sensitive_features=group[fit])
                    probabilities = fair.predict_proba(X.iloc[test])
                    right = 100 * probabilities[np.arange(len(test)), y[test]].mean()
                    gap = gap_of(probabilities, y[test], group[test], criterion)
                    found[way].append((max(fair.gaps_.values()), gap, right))
            for way, numbers in found.items():
                (stated, gap, right), error = np.mean(numbers, axis=0), np.std(numbers, axis=0, ddof=1)
                error = error / np.sqrt(seeds)
                yield [
                    f"{world}, {criterion.replace('_', ' ')}: {way}", f"{rows:,}", f"{abs(stated):.3f}",
                    f"{gap:.4f} ± {error[1]:.4f}", f"{right:.2f} ± {error[2]:.2f}",
                ]  # fmt: skip


def times() -> Iterator[list[str]]:
    """Where the time of a blind fit goes."""
    X, y, group = adult_people()
    model = FrozenEstimator(trees(max_iter=60).fit(X[:MODEL], y[:MODEL]))
    for rows in (6_000, 17_000):
        for criterion in CRITERIA:
            spent = {"beliefs": 0.0, "policies": 0.0}

            def timed(name: str, work: Callable[..., Any], spent: Any = spent) -> Callable[..., Any]:
                def run(*parts: Any, **asked: Any) -> Any:
                    start = time.perf_counter()
                    result = work(*parts, **asked)
                    spent[name] += time.perf_counter() - start
                    return result

                return run

            wiring.fit_group_model = timed("beliefs", OWN)  # type: ignore[assignment]
            fitting.fit_policy = timed("policies", FIT)  # type: ignore[assignment]
            part = slice(MODEL, MODEL + rows)
            fair = FairClassifier(
                model, happiness=criterion, gap=0.0, policy="individual", sees_group=False, random_state=0
            )
            start, used = time.perf_counter(), time.process_time()
            fair.fit(X[part], y[part], sensitive_features=group[part])
            whole, used = time.perf_counter() - start, time.process_time() - used
            numbers = [f"{number:.2f}" for number in (*spent.values(), whole, used)]
            yield [f"{rows:,}", criterion.replace("_", " "), *numbers]


WORLDS = {"Adult": adult_people, "made up": made_up_people}
OWN, FIT = wiring.fit_group_model, fitting.fit_policy


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--part", choices=["beliefs", "time"])
    asked = parser.parse_args()
    with threadpool_limits(1, user_api="openmp"):
        if asked.part in (None, "beliefs"):
            found = [row for world in WORLDS for row in beliefs(world, WORLDS[world](), asked.seeds)]
            head = ["people, criterion: beliefs", "rows", "gap stated", "gap on others", "accuracy %"]
            fill(EVIDENCE / "policies.md", "beliefs", table(head, found))
        if asked.part in (None, "time"):
            head = ["rows of Adult", "criterion", "beliefs s", "policies s", "whole fit s", "processor s"]
            fill(EVIDENCE / "policies.md", "belief times", table(head, list(times())))


if __name__ == "__main__":
    main()
