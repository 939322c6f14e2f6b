"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

Every public name is imported on first use, so that ``import felicific`` costs nothing and ``felicific --help`` little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicific._audit.audit import audit
    from felicific._audit.band import Band, band
    from felicific._audit.comparison import Comparison, compare
    from felicific._audit.result import Audit
    from felicific._frontier.curve import Curve
    from felicific._frontier.frontier import Frontier, frontier
    from felicific._policy.individual import IndividualPolicy
    from felicific._policy.policy import CellPolicy, Policy
    from felicific._policy.solve import solve
    from felicific._problem.criteria import CRITERIA
    from felicific._problem.happiness import Happiness
    from felicific._problem.requirements import Budget, Floor, Gap
    from felicific._program.moments import Moments
    from felicific._program.signals import Individual, Label, Score, SoftLabel
    from felicific._program.sums import moments
    from felicific._sklearn.classifier import FairClassifier
    from felicific._sklearn.scorer import Scorer
    from felicific._statistics.sample_size import precision, sample_size
    from felicific._tables.column import lookup
    from felicific.exceptions import FelicificError, InfeasibleError

__version__ = "0.1.0"

__all__ = [
    "CRITERIA",
    "Audit",
    "Band",
    "Budget",
    "CellPolicy",
    "Comparison",
    "Curve",
    "FairClassifier",
    "FelicificError",
    "Floor",
    "Frontier",
    "Gap",
    "Happiness",
    "Individual",
    "IndividualPolicy",
    "InfeasibleError",
    "Label",
    "Moments",
    "Policy",
    "Score",
    "Scorer",
    "SoftLabel",
    "audit",
    "band",
    "compare",
    "frontier",
    "lookup",
    "moments",
    "precision",
    "sample_size",
    "solve",
]

#: Where the public names live.
_HOME = {
    "_audit.audit": ["audit"],
    "_audit.band": ["Band", "band"],
    "_audit.comparison": ["Comparison", "compare"],
    "_audit.result": ["Audit"],
    "_frontier.curve": ["Curve"],
    "_frontier.frontier": ["Frontier", "frontier"],
    "_policy.individual": ["IndividualPolicy", "Policy"],  # so that files of every kind of policy can be read
    "_policy.policy": ["CellPolicy"],
    "_policy.solve": ["solve"],
    "_problem.criteria": ["CRITERIA"],
    "_problem.happiness": ["Happiness"],
    "_problem.requirements": ["Budget", "Floor", "Gap"],
    "_program.moments": ["Moments"],
    "_program.signals": ["Individual", "Label", "Score", "SoftLabel"],
    "_program.sums": ["moments"],
    "_sklearn.classifier": ["FairClassifier"],
    "_sklearn.scorer": ["Scorer"],
    "_statistics.sample_size": ["precision", "sample_size"],
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
