"""What a cost of changes does to people who were not fitted on: fills its block of ``docs/evidence/policies.md``.

    pip install -e ".[pandas]"
    python benchmarks/change_cost.py --before RECORDS.json

A boosting model is fitted to 40 % of the rows and a policy of its score to 30 %; the others are the new people. Until
c1dab84, "auto" searched a flat cost in folds. Its records are those of this very script under that commit:

    git worktree add ../folds c1dab84
    PYTHONPATH=../folds/src python benchmarks/change_cost.py --costs auto --records RECORDS.json

The loans (``FELICIFIC_LOANS``) are simulated where the file is not at hand; the card clients (``FELICIFIC_CLIENTS``, or
``../shared/data/credit/credit-card-clients.csv``) are left out then.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, ROOT, fill, table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier
from felicific.datasets import adult, financial_loans, synthetic_loans

CRITERIA = ("statistical_parity", "equalized_odds")
GAPS = (0.0, 0.02, 0.05)
COSTS = (0.0, 0.1, "auto")
NAMES = ("folds", "0", "0.1", "auto")

Record = dict[str, Any]


class Remembered(ClassifierMixin, BaseEstimator):
    """A fitted model's probabilities, looked up by the index of the table."""

    def __init__(self, score: Any) -> None:
        self.score = score
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Remembered:
        """Learn nothing; scikit-learn takes nothing without this method for an estimator."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The boosting model's probabilities."""
        return self.score[X.index]

    def predict(self, X: Any) -> Any:
        """The more probable class."""
        return self.score[X.index].argmax(axis=1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def people() -> Iterator[tuple[str, pd.DataFrame, Any, dict[str, Any]]]:
    """Features, labels, and the groups by what they are called, of every data set at hand."""
    census = adult(as_frame="pandas")
    yield "Adult", census.X, census.y, {name: census.X[name].to_numpy() for name in ("sex", "race")}
    loans = financial_loans(as_frame="pandas")
    X = loans.X.drop(columns="ApplicationDate", errors="ignore")
    yield "loans", X, loans.y, {"age": loans.X[loans.sensitive_features].to_numpy()}
    made = synthetic_loans(as_frame="pandas")
    yield "simulated loans", made.X, made.y, {"sex": made.X["sex"].to_numpy()}
    near = ROOT.parent / "shared" / "data" / "credit" / "credit-card-clients.csv"
    file = Path(os.environ.get("FELICIFIC_CLIENTS") or near)
    if not file.is_file():
        print(f"The card clients are left out: there is no file {file.name}; name it in FELICIFIC_CLIENTS.")
        return
    clients = pd.read_csv(file)
    label = next(name for name in clients.columns if name.startswith("default payment"))
    X, y = clients.drop(columns=[label, "ID"], errors="ignore"), clients[label].to_numpy()
    yield "card clients", X, y, {"sex": np.where(clients["SEX"] == 1, "male", "female")}


def measure(fair: Any, X: pd.DataFrame, y: Any, group: Any, criterion: str) -> dict[str, float]:
    """What a policy does to some people, by the probabilities of their decisions."""
    proba, rows = fair.predict_proba(X), np.arange(len(y))
    kinds = [y >= 0] if criterion == "statistical_parity" else [y == 0, y == 1]
    rates = [[proba[kind & (group == one), 1].mean() for one in np.unique(group)] for kind in kinds]
    return {
        "accuracy": float(proba[rows, y].mean()),
        "gap": float(max(np.ptp(rate) for rate in rates)),
        "changed": float(1.0 - proba[rows, fair.estimator_.predict(X)].mean()),
        "drawn": float((proba.max(axis=1) < 1.0).mean()),
    }


def run(costs: list[Any], splits: int) -> list[Record]:
    """Every data set, split, criterion, gap and cost."""
    found: list[Record] = []
    for name, features, y, groups in people():
        texts = features.select_dtypes(exclude="number").columns
        features = features.reset_index(drop=True).astype(dict.fromkeys(texts, "category"))
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(y))
            train, fitting, new = np.split(order, [round(0.4 * len(y)), round(0.7 * len(y))])
            model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=split)
            score = model.fit(features.iloc[train], y[train]).predict_proba(features)
            for called, group in groups.items():
                X = pd.DataFrame({"group": group})
                for criterion in CRITERIA:
                    for gap in GAPS:
                        for cost in costs:
                            fair = FairClassifier(
                                FrozenEstimator(Remembered(score)), happiness=criterion, gap=gap,
                                sensitive_features="group", policy="score", change_cost=cost, random_state=split,
                            )  # fmt: skip
                            fair.fit(X.iloc[fitting], y[fitting])
                            done = measure(fair, X.iloc[new], y[new], group[new], criterion)
                            place = {"data": f"{name}, {called}", "split": split}
                            asked = {"criterion": criterion, "gap asked": gap, "cost": str(cost)}
                            found.append(place | asked | done)
            print(f"  {name} split {split}", flush=True)
    return found


def summary(records: pd.DataFrame) -> str:
    """A row for each criterion and gap, of all data sets and of each; four costs beside each other."""
    whole = records.assign(data="all") if records["data"].nunique() > 1 else records.iloc[:0]
    rows = []
    for (criterion, gap, data), some in pd.concat([whole, records]).groupby(
        ["criterion", "gap asked", "data"], sort=True
    ):
        by = {
            name: 100
            * some.pivot_table(index=["split"], columns="cost", values=name).reindex(columns=list(NAMES))
            for name in ("accuracy", "gap", "changed", "drawn")
        }
        apart = by["accuracy"].sub(by["accuracy"]["folds"], axis=0)
        errors = apart.std(ddof=1) / np.sqrt(len(apart))
        each = [f"{apart[name].mean():+.2f}±{errors[name]:.2f}" for name in NAMES[1:]]
        means = [
            " / ".join(f"{by[name][cost].mean():.{digits}f}" for cost in NAMES)
            for name, digits in (("drawn", 1), ("changed", 1), ("gap", 2))
        ]
        rows.append([f"{criterion} {gap:g}: {data}", *each, *means])
    head = [
        "asked: data", "accuracy, 0", "accuracy, 0.1", "accuracy, auto", "by lottery, %", "changed, %", "gap, points",
    ]  # fmt: skip
    return table(head, sorted(rows, key=lambda row: (row[0].split(":")[0], ": all" not in row[0])))


def main() -> None:
    """Measure, and fill the block once the records of before are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--costs", nargs="+", default=list(COSTS), help="numbers, or auto")
    parser.add_argument("--records", type=Path, help="write what was measured here, as JSON")
    parser.add_argument("--before", type=Path, help="records of a cost that was searched in folds")
    options = parser.parse_args()
    costs = [cost if cost == "auto" else float(cost) for cost in options.costs]
    found = run(costs, options.splits)
    if options.records:
        options.records.write_text(json.dumps(found))
    if options.before:
        folds = [one | {"cost": "folds"} for one in json.loads(options.before.read_text())]
        records = pd.DataFrame(found + folds).replace({"cost": {"0.0": "0"}})
        fill(EVIDENCE / "policies.md", "change_cost", summary(records))


if __name__ == "__main__":
    main()
