"""felicific: what a classifier's decisions do to groups of people, and the cheapest way to bring them together.

The light part (NumPy only) is imported here; whatever needs scikit-learn is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from felicific.columns import lookup
from felicific.constraints import Budget, Floor
from felicific.exceptions import FelicificError, InfeasibleError
from felicific.findings import Audit
from felicific.frontier import Curve, Frontier, frontier
from felicific.happiness import CRITERIA, Happiness
from felicific.individual import IndividualPolicy
from felicific.moments import Moments
from felicific.policy import CellPolicy, Policy, solve
from felicific.signals import Individual, Label, Score, SoftLabel

# After the modules: the functions `felicific.audit` and `felicific.moments` take the place of their submodules.
from felicific.audit import audit  # isort: skip
from felicific.tables import moments  # isort: skip

if TYPE_CHECKING:
    from felicific.classifier import FairClassifier
    from felicific.scoring import Scorer

__version__ = "0.1.0"

__all__ = [
    "CRITERIA",
    "Audit",
    "Budget",
    "CellPolicy",
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
    "frontier",
    "lookup",
    "moments",
    "solve",
]

_ON_FIRST_USE = {"FairClassifier": "felicific.classifier", "Scorer": "felicific.scoring"}


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        from importlib import import_module

        return getattr(import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module 'felicific' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
