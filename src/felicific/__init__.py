"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

Every public name is imported on first use, so that ``import felicific`` costs nothing and ``felicific --help`` little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicific._audit.audit import audit
    from felicific._audit.comparison import Comparison, compare
    from felicific._audit.result import Audit
    from felicific._audit.watch import watch
    from felicific._audit.watched import Watch
    from felicific._fit.alternatives import alternatives
    from felicific._frontier.frontier import Frontier
    from felicific._frontier.solve import frontier
    from felicific._policy.policy import Policy
    from felicific._policy.solve import solve
    from felicific._policy.steering import Steering
    from felicific._problem.explore import Explore
    from felicific._problem.happiness import Happiness
    from felicific._problem.losers import Losers
    from felicific._problem.missing_labels import MissingLabels
    from felicific._problem.requirements import Budget, Floor, Gap, Ratio
    from felicific._program.moments import Moments
    from felicific._program.signals import Individual, Score
    from felicific._program.sums import moments
    from felicific._sklearn.classifier import FairClassifier
    from felicific._sklearn.regressor import FairRegressor
    from felicific._sklearn.scorer import Scorer
    from felicific._statistics.sample_size import margin_of_error, sample_size
    from felicific._tables.column import lookup
    from felicific.exceptions import FelicificError, InfeasibleError

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Budget",
    "Comparison",
    "Explore",
    "FairClassifier",
    "FairRegressor",
    "FelicificError",
    "Floor",
    "Frontier",
    "Gap",
    "Happiness",
    "Individual",
    "InfeasibleError",
    "Losers",
    "MissingLabels",
    "Moments",
    "Policy",
    "Ratio",
    "Score",
    "Scorer",
    "Steering",
    "Watch",
    "alternatives",
    "audit",
    "compare",
    "frontier",
    "lookup",
    "margin_of_error",
    "moments",
    "sample_size",
    "solve",
    "watch",
]

#: Where the public names live.
_HOME = {
    "_audit.audit": ["audit"],
    "_audit.comparison": ["Comparison", "compare"],
    "_audit.result": ["Audit"],
    "_audit.watch": ["watch"],
    "_audit.watched": ["Watch"],
    "_fit.alternatives": ["alternatives"],
    "_frontier.frontier": ["Frontier"],
    "_frontier.solve": ["frontier"],
    "_policy.kinds": ["Policy"],  # so that files of every kind of policy can be read
    "_policy.solve": ["solve"],
    "_policy.steering": ["Steering"],
    "_problem.explore": ["Explore"],
    "_problem.happiness": ["Happiness"],
    "_problem.losers": ["Losers"],
    "_problem.missing_labels": ["MissingLabels"],
    "_problem.requirements": ["Budget", "Floor", "Gap", "Ratio"],
    "_program.moments": ["Moments"],
    "_program.signals": ["Individual", "Score"],
    "_program.sums": ["moments"],
    "_sklearn.classifier": ["FairClassifier"],
    "_sklearn.regressor": ["FairRegressor"],
    "_sklearn.scorer": ["Scorer"],
    "_statistics.sample_size": ["margin_of_error", "sample_size"],
    "_tables.column": ["lookup"],
    "exceptions": ["FelicificError", "InfeasibleError"],
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"felicific.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'felicific' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
