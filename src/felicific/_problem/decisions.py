"""Decisions that are listed: what may be decided where that is not what may be true."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from felicific._tables.memory import exact_array, object_array
from felicific._typing import Array
from felicific.exceptions import DataError

#: What a decision may be.
KINDS = (str, int, float, bool)


def as_decisions(decisions: Iterable[Any]) -> Array:
    """Decisions as a user lists them, from the worst to the best for the person, as an array of one type."""
    if isinstance(decisions, str) or not isinstance(decisions, Iterable):
        raise DataError(f"The decisions are {decisions!r}, not a list.", LISTED)
    given = [one.item() if isinstance(one, np.generic) else one for one in decisions]
    for position, one in enumerate(given):
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
        before = next((other for other in given[:position] if other == one), None)
        if before is not None:
            same = "" if type(before) is type(one) else f", which {before!r} is too"
            raise DataError(f"The decision {one!r} is listed twice{same}.", "List every decision once.")
    if len(given) < 2:
        raise DataError(f"The decisions are {given}.", f"{LISTED} At least two.")
    if len({isinstance(one, str) for one in given}) > 1 or len({isinstance(one, bool) for one in given}) > 1:
        return object_array(given)
    return exact_array(given)


#: How decisions are listed.
LISTED = "List what may be decided in decisions=, from the worst to the best for the person: refuse, approve."


def label_positions(labels: Array, decisions: Array) -> Array:
    """Position of every label among the decisions; -1 where it is none."""
    listed = decisions.tolist()
    return np.array(
        [listed.index(label) if label in listed else -1 for label in labels.tolist()], dtype=np.intp
    )


#: Losses of numbers that have a name; a quantile is told by its number.
OF_NUMBERS = ("squared", "absolute", "quantile:")


def predicts_amounts(
    score: object, predicted: object, loss: object, decisions: object, policy: object
) -> bool:
    """Whether what is predicted are amounts: a loss of numbers, or decisions that are a range, say so.

    Scores are of classes, and a policy that sees the label sees a predicted class.
    """
    if score is not None or predicted is None or policy in ("label", "soft-label"):
        return False
    of_numbers = isinstance(loss, str) and loss.startswith(OF_NUMBERS)
    return of_numbers or (isinstance(decisions, tuple) and len(decisions) == 2)
