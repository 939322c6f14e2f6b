"""Chances in cells: which cells of a signal keep a chance, and policies that do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from felicific._problem.exploration import Explored, chances_in
from felicific._problem.rows import Chance, Row
from felicific._program.signals import Signal
from felicific._typing import Floats, Truths
from felicific.exceptions import ConstraintError

#: What a solver may leave of a chance that is just kept; more fails the check of its answer.
SHORT = 1e-7


def cells_of(chance: Chance, signal: Signal, n_groups: int, n_classes: int) -> Truths:
    """Which cells keep a chance, of shape (groups, signals).

    Of scores, every cell that reaches into their range; and where a probability may not fall as the score rises, what
    follows from that for the cells beyond, somebody there or nobody.
    """
    held = np.zeros((n_groups, signal.size(n_classes)), dtype=bool)
    held[slice(None) if chance.groups is None else list(chance.groups)] = True
    if chance.scores is None:
        return held
    if signal.line(n_classes) is None or signal.of_values:
        seen = "a decision function, whose values are no scores" if signal.of_values else "no score"
        raise ConstraintError(
            f"Exploration speaks of scores ({chance.words}), and this policy sees {seen}.",
            "Leave scores= out, or use policy='score' or policy='individual'.",
        )
    low, high = chance.scores
    inside = np.array([top >= low and above < high for _, above, top in signal.ranges(n_classes)])
    if signal.chains(n_classes):
        rising = chance.decision == 1
        inside = np.logical_or.accumulate(inside) if rising else np.logical_or.accumulate(inside[::-1])[::-1]
    return np.asarray(held & inside)


def floors_in(rows: Sequence[Row], signal: Signal, n_groups: int, n_classes: int, n_decisions: int) -> Floats:
    """The chance of every decision that every cell keeps, of shape (groups, signals, decisions)."""
    floors = np.zeros((n_groups, signal.size(n_classes), n_decisions))
    for chance in chances_in(rows):
        own = floors[:, :, chance.decision]
        own[...] = np.where(
            cells_of(chance, signal, n_groups, n_classes), np.maximum(own, chance.at_least), own
        )
    return floors


def lifted(q: Floats, floors: Floats) -> Floats:
    """Probabilities that keep all chances exactly, where but for rounding they do."""
    short = floors - q
    slight = (short > 0.0) & (short <= SHORT)
    if not slight.any():
        return q
    lifted = np.where(slight, floors, q)
    # What is too much by then is taken from the decision with the most to spare.
    spare = (lifted - floors).argmax(axis=-1)[..., None]
    more = lifted.sum(axis=-1, keepdims=True) - 1.0
    np.put_along_axis(lifted, spare, np.take_along_axis(lifted, spare, axis=-1) - more, axis=-1)
    return lifted


def explored_in(
    chances: Sequence[Chance], losses: Sequence[float | None] | None = None
) -> tuple[Explored, ...]:
    """What a policy of score bins remembers of chances, with what each adds to the loss where that is known."""
    known = [None] * len(chances) if losses is None else losses
    return tuple(Explored(chance, loss=loss) for chance, loss in zip(chances, known, strict=True))
