"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

Every public name is imported on first use, so that ``import felicific`` costs nothing and ``felicific --help`` little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicific._audit.audit import audit
    from felicific._audit.comparison import Comparison, compare
    from felicific._audit.monitor import monitor
    from felicific._audit.monitored import Monitor
    from felicific._audit.result import Audit
    from felicific._fit.alternatives import alternatives
    from felicific._frontier.frontier import Frontier
    from felicific._frontier.solve import frontier
    from felicific._policy.policy import Policy
    from felicific._policy.solve import solve
    from felicific._policy.steering import Steering
    from felicific._problem.exploration import Exploration
    from felicific._problem.happiness import Happiness
    from felicific._problem.missing_labels import MissingLabels
    from felicific._problem.requirements import Budget, Floor, Gap, Ratio
    from felicific._problem.worse_off import WorseOff
    from felicific._program.aggregates import Aggregates
    from felicific._program.signals import Individual, Score
    from felicific._program.sums import aggregate
    from felicific._sklearn.classifier import FairClassifier
    from felicific._sklearn.regressor import FairRegressor
    from felicific._sklearn.scorer import Scorer
    from felicific._statistics.sample_size import margin_of_error, sample_size
    from felicific._tables.column import lookup
    from felicific.exceptions import FelicificError, InfeasibleError

__version__ = "0.1.0"

__all__ = [
    "Aggregates",
    "Audit",
    "Budget",
    "Comparison",
    "Exploration",
    "FairClassifier",
    "FairRegressor",
    "FelicificError",
    "Floor",
    "Frontier",
    "Gap",
    "Happiness",
    "Individual",
    "InfeasibleError",
    "MissingLabels",
    "Monitor",
    "Policy",
    "Ratio",
    "Score",
    "Scorer",
    "Steering",
    "WorseOff",
    "aggregate",
    "alternatives",
    "audit",
    "compare",
    "frontier",
    "lookup",
    "margin_of_error",
    "monitor",
    "sample_size",
    "solve",
]

#: Where the public names live.
_HOME = {
    "_audit.audit": ["audit"],
    "_audit.comparison": ["Comparison", "compare"],
    "_audit.result": ["Audit"],
    "_audit.monitor": ["monitor"],
    "_audit.monitored": ["Monitor"],
    "_fit.alternatives": ["alternatives"],
    "_frontier.frontier": ["Frontier"],
    "_frontier.solve": ["frontier"],
    "_policy.kinds": ["Policy"],  # so that files of every kind of policy can be read
    "_policy.solve": ["solve"],
    "_policy.steering": ["Steering"],
    "_problem.exploration": ["Exploration"],
    "_problem.happiness": ["Happiness"],
    "_problem.worse_off": ["WorseOff"],
    "_problem.missing_labels": ["MissingLabels"],
    "_problem.requirements": ["Budget", "Floor", "Gap", "Ratio"],
    "_program.aggregates": ["Aggregates"],
    "_program.signals": ["Individual", "Score"],
    "_program.sums": ["aggregate"],
    "_sklearn.classifier": ["FairClassifier"],
    "_sklearn.regressor": ["FairRegressor"],
    "_sklearn.scorer": ["Scorer"],
    "_statistics.sample_size": ["margin_of_error", "sample_size"],
    "_tables.column": ["lookup"],
    "exceptions": ["FelicificError", "InfeasibleError"],
}


#: What names were called before.
_RENAMED = {
    "Explore": "Exploration",
    "Losers": "WorseOff",
    "Moments": "Aggregates",
    "Watch": "Monitor",
    "moments": "aggregate",
    "watch": "monitor",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"felicific.{module}"), name)
            globals()[name] = value
            return value
    if name in _RENAMED:
        raise AttributeError(f"felicific.{name} is now called felicific.{_RENAMED[name]}.")
    raise AttributeError(f"module 'felicific' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
