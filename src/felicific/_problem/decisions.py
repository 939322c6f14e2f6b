"""Decisions that are listed: what may be decided where that is not what may be true."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from felicific._tables.memory import exact_array
from felicific._typing import Array
from felicific.exceptions import DataError

#: What a decision may be.
KINDS = (str, int, float, bool)


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
LISTED = "List what may be decided in decisions=, from the worst to the best for the person: refuse, approve."


def positions(labels: Array, decisions: Array) -> Array:
    """Position of every label among the decisions; -1 where it is none."""
    known = decisions.tolist()
    return np.array(
        [known.index(label) if label in known else -1 for label in labels.tolist()], dtype=np.intp
    )
