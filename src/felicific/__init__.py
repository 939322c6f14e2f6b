"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

Every public name is imported on first use, so that ``import felicific`` costs nothing and ``felicific --help`` little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicific._audit.audit import audit
    from felicific._audit.comparison import compare
    from felicific._audit.monitor import monitor
    from felicific._fit.alternatives import alternatives
    from felicific._frontier.solve import frontier
    from felicific._load import load
    from felicific._policy.policy import Policy
    from felicific._policy.solve import solve
    from felicific._problem.exploration import Exploration
    from felicific._problem.happiness import Happiness
    from felicific._problem.missing_labels import MissingLabels
    from felicific._problem.requirements import Budget, Floor, Gap, Ratio
    from felicific._problem.worse_off import WorseOff
    from felicific._program.signals import Individual, Score
    from felicific._program.sums import aggregate
    from felicific._sklearn.classifier import FairClassifier
    from felicific._sklearn.regressor import FairRegressor
    from felicific._statistics.sample_size import sample_size
    from felicific.exceptions import FelicificError

__version__ = "1.0.0.dev0"

__all__ = [
    "Budget",
    "Exploration",
    "FairClassifier",
    "FairRegressor",
    "FelicificError",
    "Floor",
    "Gap",
    "Happiness",
    "Individual",
    "MissingLabels",
    "Policy",
    "Ratio",
    "Score",
    "WorseOff",
    "aggregate",
    "alternatives",
    "audit",
    "compare",
    "frontier",
    "load",
    "monitor",
    "sample_size",
    "solve",
]

#: Where the public names live.
_HOME = {
    "_audit.audit": ["audit"],
    "_audit.comparison": ["compare"],
    "_audit.monitor": ["monitor"],
    "_fit.alternatives": ["alternatives"],
    "_frontier.solve": ["frontier"],
    "_load": ["load", "Policy"],  # which imports every kind of policy, so that their files can be read
    "_policy.solve": ["solve"],
    "_problem.exploration": ["Exploration"],
    "_problem.happiness": ["Happiness"],
    "_problem.missing_labels": ["MissingLabels"],
    "_problem.requirements": ["Budget", "Floor", "Gap", "Ratio"],
    "_problem.worse_off": ["WorseOff"],
    "_program.signals": ["Individual", "Score"],
    "_program.sums": ["aggregate"],
    "_sklearn.classifier": ["FairClassifier"],
    "_sklearn.regressor": ["FairRegressor"],
    "_statistics.sample_size": ["sample_size"],
    "exceptions": ["FelicificError"],
}

#: What stands in the place of names of before.
_INSTEAD = {
    "Aggregates": "Use what felicific.aggregate(...) or felicific.load(path) returns.",
    "Audit": "Use what felicific.audit(...) returns.",
    "Comparison": "Use what felicific.compare(...) returns.",
    "Explore": "It is now called felicific.Exploration.",
    "Frontier": "Use what felicific.frontier(...) returns.",
    "InfeasibleError": "Use felicific.exceptions.InfeasibleError.",
    "Losers": "It is now called felicific.WorseOff.",
    "Moments": "It is now what felicific.aggregate(...) returns.",
    "Monitor": "Use what felicific.monitor(...) or felicific.load(path) returns.",
    "Scorer": "It is now called felicific.sklearn.make_scorer.",
    "Steering": "Use what policy.steer(...) or felicific.load(path, policy=...) returns.",
    "Watch": "It is now what felicific.monitor(...) returns.",
    "margin_of_error": "Use felicific.sample_size(rows=...).margin_of_error.",
    "moments": "It is now called felicific.aggregate.",
    "watch": "It is now called felicific.monitor.",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"felicific.{module}"), name)
            globals()[name] = value
            return value
    if name in _INSTEAD:
        raise AttributeError(f"felicific.{name} is not there. {_INSTEAD[name]}")
    raise AttributeError(f"module 'felicific' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
