"""Decisions by looking up: what is decided in a group at a fine bin of the score is known before anybody comes.

A policy that sees a score is a table; nobody's probabilities have to be written down to decide, and only those who face
a lottery need a draw. The decisions are those of the probabilities, bit by bit; where anything is wrong with the
numbers there are none, and whoever asked goes the long way, on which the row is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from felicific._people.checks import PROBABILITY_TOLERANCE
from felicific._policy.lottery import cumulate, faces_lottery
from felicific._program.bins import CHUNK, bins_of_many, bins_of_two, fine_per_class
from felicific._tables.memory import row_argmax
from felicific._typing import Array, Codes, Floats, Truths

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy

#: Fewer rows than this are as quick by their probabilities.
LEAST = 4096

NOBODY = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Lookup:
    """What a policy decides, by group and fine bin.

    Attributes
    ----------
    cells : array of shape (bins,)
        The signal of every fine bin.
    likeliest : array of shape (groups * signals,)
        The most probable decision.
    drawn : array of shape (groups * signals,), or None
        Whether draws decide; None where they decide on nobody.
    edges : array of shape (groups * signals, K)
        Where the stretch of each decision ends, for draws.
    classes : array of shape (K,)
        The decisions.
    boundary : float
        The model's own, of two classes.
    """

    cells: Codes
    likeliest: Array
    drawn: Truths | None
    edges: Floats
    decisions: Array
    boundary: float
    n_classes: int

    @classmethod
    def of(cls, policy: CellPolicy) -> Lookup | None:
        """The table of a policy; None of one that does not see a score."""
        k = len(policy.classes)
        cells = policy.signal.of_bins(k)
        if cells is None:
            return None
        decisions = policy.decisions
        q = policy.q.reshape(-1, len(decisions))
        drawn = faces_lottery(q) if policy.is_randomized else None
        line = policy.signal.line(k) or 0.0
        return cls(cells, decisions[row_argmax(q)], drawn, cumulate(q), decisions, line, k)

    def decide(
        self, scores: Sequence[Array], group: Codes | None, draws: Callable[[Codes], Floats]
    ) -> Array | None:
        """The decision about everybody; None where some probabilities are none.

        Parameters
        ----------
        scores : sequence of arrays of shape (n,)
            The probabilities of every class; of two that of the second alone will do.
        group : array of shape (n,), or None
            Positions of the groups.
        draws : callable
            The draws of those people, by their positions, who face a lottery; asked for once, also of nobody.
        """
        k, n, size = self.n_classes, len(scores[0]), int(self.cells[-1]) + 1
        decided, people, places = np.empty(n, dtype=self.decisions.dtype), [NOBODY], [NOBODY]
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            bins = _bins([column[part].astype(np.float64, copy=False) for column in scores], self.boundary, k)
            if bins is None:
                return None
            place = self.cells.take(bins)
            if group is not None:
                place += np.multiply(group[part], size, dtype=np.intp)
            self.likeliest.take(place, out=decided[part], mode="clip")
            if self.drawn is not None:
                some = np.flatnonzero(self.drawn.take(place))
                people.append(some + start)
                places.append(place[some])
        rows, edges = np.concatenate(people), self.edges[np.concatenate(places)]
        decided[rows] = self.decisions[(draws(rows)[:, None] >= edges[:, :-1]).sum(axis=1)]
        return decided


def cells_and_labels(score: Floats, cells: Codes, boundary: float) -> tuple[Codes, Codes] | None:
    """The cell of every row, by that of its fine bin, and the model's label; None where some probabilities are none."""
    k, fine = score.shape[1], fine_per_class(score.shape[1])
    cell, label = np.empty(len(score), dtype=np.intp), np.empty(len(score), dtype=np.intp)
    for start in range(0, len(score), CHUNK):
        part = slice(start, start + CHUNK)
        scores = list(score[part].T)
        bins = _bins(scores, boundary, k)
        if bins is None:
            return None
        cells.take(bins, out=cell[part], mode="clip")
        if k == 2:
            total = scores[0] + scores[1]
            label[part] = scores[1] / total > scores[0] / total
        else:
            np.floor_divide(bins, fine + 1, out=label[part])
    return cell, label


def _bins(scores: list[Floats], boundary: float, k: int) -> Codes | None:
    """The fine bin of every row, by the very operations of checking, dividing by the sum and binning; None if wrong."""
    with np.errstate(invalid="ignore"):
        if len(scores) == 1:
            # What it leaves of one, and it, add up to one exactly: they are divided by 1.
            score = scores[0]
            return bins_of_two(score, boundary) if score.min() >= 0.0 and score.max() <= 1.0 else None
        total = scores[0] + scores[1]
        for column in scores[2:]:
            total += column
        off = max(abs(float(total.min()) - 1.0), abs(float(total.max()) - 1.0))
        if not (off <= PROBABILITY_TOLERANCE and min(float(column.min()) for column in scores) >= 0.0):
            return None
    if k == 2:
        return bins_of_two(scores[1] / total, boundary)
    return bins_of_many(column / total for column in scores)
