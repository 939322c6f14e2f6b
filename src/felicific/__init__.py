"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

Every public name is imported on first use, so that ``import felicific`` costs nothing and ``felicific --help`` little.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicific.audit import audit
    from felicific.bands import Band, band
    from felicific.bounds import precision, sample_size
    from felicific.classifier import FairClassifier
    from felicific.columns import lookup
    from felicific.comparison import Comparison, compare
    from felicific.constraints import Budget, Floor
    from felicific.curves import Curve
    from felicific.exceptions import FelicificError, InfeasibleError
    from felicific.findings import Audit
    from felicific.fitting import solve_individual
    from felicific.frontier import Frontier, frontier
    from felicific.happiness import CRITERIA, Happiness
    from felicific.individual import IndividualPolicy
    from felicific.moments import Moments
    from felicific.policy import CellPolicy, Policy, solve
    from felicific.scoring import Scorer
    from felicific.signals import Individual, Label, Score, SoftLabel
    from felicific.tables import moments

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
    "solve_individual",
]

#: Where the public names live.
_HOME = {
    "audit": ["audit"],
    "bands": ["Band", "band"],
    "bounds": ["precision", "sample_size"],
    "classifier": ["FairClassifier"],
    "columns": ["lookup"],
    "comparison": ["Comparison", "compare"],
    "constraints": ["Budget", "Floor"],
    "curves": ["Curve"],
    "exceptions": ["FelicificError", "InfeasibleError"],
    "findings": ["Audit"],
    "fitting": ["solve_individual"],
    "frontier": ["Frontier", "frontier"],
    "happiness": ["CRITERIA", "Happiness"],
    "individual": ["IndividualPolicy", "Policy"],  # so that files of every kind of policy can be read
    "moments": ["Moments"],
    "policy": ["CellPolicy", "solve"],
    "scoring": ["Scorer"],
    "signals": ["Individual", "Label", "Score", "SoftLabel"],
    "tables": ["moments"],
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            found = getattr(import_module(f"felicific.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'felicific' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """A package whose functions keep their names when the submodules of the same name are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
