"""Every door of the library, by name: the same people walk through all of them.

A :class:`Crowd` is a table of two groups with a frozen model; :func:`doors` lists what can be asked about it, each as a
function without arguments that returns numbers to compare: what the groups and the loss are, by that door.
"""

from dataclasses import dataclass

import numpy as np
from helpers import solved, traced
from naive import LAZY, MEMORY
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, aggregate, audit
from felicific.sklearn import make_scorer

FEATURES = ["s", "amount", "g"]
KINDS = ("score", "label", "soft-label", "individual")

#: Where people may be. (Parquet files are read by DuckDB; they have tests of their own.)
PLACES = (*MEMORY, "polars lazy", "duckdb", "dataset")


def make_columns(n=90, seed=0):
    """People of two groups: a feature s, an amount, a label, two columns of probabilities, decisions, weights."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    s = rng.normal(size=n) + 0.5 * group
    p = 1.0 / (1.0 + np.exp(-s))
    return {
        "s": s,
        "amount": rng.integers(1, 40, n) / 4,
        "g": np.array(["a", "b"], dtype=object)[group],
        "y": (s + rng.normal(size=n) > 0).astype(int),
        "d": (p > 0.5).astype(int),
        "now": rng.integers(0, 2, n),
        "w": rng.integers(1, 4, n).astype(float),
        "p0": 1.0 - p,
        "p1": p,
        "id": np.arange(n),
    }


MODEL = FrozenEstimator(
    LogisticRegression().fit(MEMORY["pandas"]({"s": make_columns()["s"]}), make_columns()["y"])
)


@dataclass(frozen=True)
class Asked:
    """What is asked: the happiness, further settings, whether weights are named, and the gap."""

    happiness: object
    settings: dict
    weighted: bool = False
    gap: object = 3.0

    @property
    def weight(self):
        return {"sample_weight": "w"} if self.weighted else {}

    @property
    def table(self):
        """Arguments of aggregates, solve and frontier."""
        named = {
            "score": {0: "p0", 1: "p1"},
            "y": "y",
            "sensitive_features": "g",
            "happiness": self.happiness,
        }
        return named | self.settings | self.weight

    @property
    def audited(self):
        """Arguments of audits."""
        return {
            "y": "y",
            "sensitive_features": "g",
            "happiness": self.happiness,
            **self.settings,
            **self.weight,
        }

    def fair(self, kind="score", see=True, **changes):
        """A classifier that is not fitted yet."""
        options = {"gap": self.gap, "policy": kind, "sensitive_features": "g", "sees_group": see}
        return FairClassifier(
            changes.pop("estimator", MODEL),
            happiness=self.happiness,
            **(options | self.settings | {"random_state": 0} | changes),
        )


def rows_of(columns, asked):
    """The rows, labels and weights that a classifier gets."""
    frame = MEMORY["pandas"]({name: columns[name] for name in FEATURES})
    return frame, columns["y"], ({"sample_weight": columns["w"]} if asked.weighted else {})


def numbers(outcome):
    """Loss and group means, or what stands for them, as one flat list."""
    if hasattr(outcome, "baseline_value"):
        outcome = [
            outcome.evaluate(np.full(outcome.loss.shape, 1.0 / outcome.loss.shape[2])),
            outcome.baseline,
        ]
        return [number for part in outcome for number in [part.loss, *part.means.ravel()]]
    if hasattr(outcome, "persons"):
        means = [mean for part in outcome.means.values() for mean in part.values()]
        return [outcome.loss.estimate, *means, outcome.rows]
    if hasattr(outcome, "policy_"):
        return [outcome.loss_, *outcome.policy_.outcome.means.ravel(), outcome.share_randomized_]
    if hasattr(outcome, "outcome"):
        return [outcome.loss, *outcome.outcome.means.ravel()]
    if isinstance(outcome, dict):
        return list(outcome.values())
    return [*np.ravel(outcome.loss), *np.ravel(outcome.means)]


def table_doors(columns, asked, folder, names=PLACES):
    """Doors that take a table, in every library and engine."""
    doors = {}
    for name in names:
        table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, folder)
        for kind in KINDS[:3]:
            doors[f"aggregate {name} {kind}"] = lambda t=table, k=kind: aggregate(t, policy=k, **asked.table)
        doors[f"frontier {name}"] = lambda t=table: traced(t, **asked.table)
        doors[f"audit {name}"] = lambda t=table: audit("d", t, **asked.audited)
        if name in MEMORY:
            doors[f"solve individual {name}"] = lambda t=table: solved(
                t, policy="individual", gap=asked.gap, random_state=0, **asked.table
            )
            doors[f"audit array {name}"] = lambda t=table: audit(columns["d"], t, **asked.audited)
    return doors


def policy_doors(columns, asked, folder, policies, names=("pandas", "polars lazy", "duckdb")):
    """Audits of policies that were found before."""
    doors, scores = {}, {0: "p0", 1: "p1"}
    for name in names:
        table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, folder)
        for policy in policies:
            doors[f"audit policy {name} {policy.kind}"] = lambda t=table, p=policy: audit(
                p, t, score=scores, **asked.audited
            )
    return doors


def fit_doors(columns, asked, kinds=KINDS, sees=(True, False)):
    """Doors that fit."""
    rows, y, weight = rows_of(columns, asked)
    return {
        f"fit {kind} {see}": lambda k=kind, s=see: asked.fair(k, s).fit(rows, y, **weight)
        for kind in kinds
        for see in sees
    }


def fitted_doors(columns, asked, fair):
    """What a fitted classifier says of other people."""
    rows, y, weight = rows_of(columns, asked)
    return {
        "audit": lambda: audit(fair, rows, y, **weight),
        "frontier_on": lambda: fair.frontier_on(rows, y, **weight),
        "frontier_band": lambda: fair.frontier_on(rows, y, **weight, confidence=0.95),
        "report": lambda: numbers_of_report(fair.report(rows, y, **weight)),
        "scorer": lambda: make_scorer()(fair, rows, y, **weight),
    }


def numbers_of_report(report):
    """The baseline's and the chosen policy's loss and gaps in a report, by name."""
    content = report.to_dict()
    found = {}

    def collect(part, path):
        if isinstance(part, dict):
            for name, value in part.items():
                if name != "reproduce":
                    collect(value, f"{path}.{name}")
        elif isinstance(part, list):
            for i, value in enumerate(part):
                collect(value, f"{path}.{i}")
        elif isinstance(part, int | float) and not isinstance(part, bool):
            found[path] = part

    collect(content, "")
    return found
