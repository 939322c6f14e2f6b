"""Decisions that are listed: what may be decided where that is not what may be true."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._problem.criteria import resolve_favourable
from felicific._tables.memory import exact_array
from felicific._typing import Array
from felicific.exceptions import DataError

#: What a decision may be.
KINDS = (str, int, float, bool)


@dataclass(frozen=True)
class Choices:
    """What may be decided about a person and what may be true of one, with the best of each.

    Attributes
    ----------
    decisions, labels : list
        Decisions that are listed come from the worst to the best.
    best : decision
        The favourable decision: the last of those that are listed.
    good : label
        The favourable label.
    listed : bool
        Whether the decisions are listed, and not just the labels.
    """

    decisions: list[Any]
    labels: list[Any]
    best: Any
    good: Any
    listed: bool = False

    @classmethod
    def of(
        cls, decisions: Sequence[Any], favourable: Any = None, labels: Sequence[Any] | None = None
    ) -> Choices:
        """The favourable class is the last one unless said; of listed decisions it is a label."""
        known = list(decisions)
        if labels is None:
            best = resolve_favourable(favourable, known)
            return cls(known, known, best, best)
        truths = list(labels)
        good = resolve_favourable(favourable, truths, "label") if truths else None
        return cls(known, truths, known[-1], good, listed=True)

    @property
    def within_labels(self) -> bool:
        """Whether every decision is a label too."""
        return all(decision in self.labels for decision in self.decisions)


def as_decisions(decisions: Iterable[Any]) -> Array:
    """Decisions as a user lists them, from the worst to the best for the person, as an array of one type."""
    if isinstance(decisions, str) or not isinstance(decisions, Iterable):
        raise DataError(f"The decisions are {decisions!r}, not a list.", LISTED)
    known = [one.item() if isinstance(one, np.generic) else one for one in decisions]
    for position, one in enumerate(known):
        if type(one) not in KINDS:
            raise DataError(
                f"The decision {one!r} (number {position + 1}) is "
                + ("missing." if one is None else f"a {type(one).__name__}."),
                "List strings, whole numbers, floats or booleans.",
            )
        if isinstance(one, float) and not math.isfinite(one):
            raise DataError(
                f"The decision {one!r} (number {position + 1}) is not finite.", "List finite numbers."
            )
        before = next((other for other in known[:position] if other == one), None)
        if before is not None:
            same = "" if type(before) is type(one) else f", which {before!r} is too"
            raise DataError(f"The decision {one!r} is listed twice{same}.", "List every decision once.")
    if len(known) < 2:
        raise DataError(f"The decisions are {known}.", f"{LISTED} At least two.")
    if len({isinstance(one, str) for one in known}) > 1 or len({isinstance(one, bool) for one in known}) > 1:
        return np.array([*known, None], dtype=object)[:-1]
    return exact_array(known)


#: How decisions are listed.
LISTED = (
    "List what may be decided from the worst to the best for the person: decisions=['refuse', 'approve']."
)


def positions(labels: Array, decisions: Array) -> Array:
    """Position of every label among the decisions; -1 where it is none."""
    known = decisions.tolist()
    return np.array(
        [known.index(label) if label in known else -1 for label in labels.tolist()], dtype=np.intp
    )
