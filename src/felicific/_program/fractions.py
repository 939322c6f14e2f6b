r"""Branch and bound over the level of a fraction.

Means that are fractions, such as precision, are compared with each other by rows that are linear for a level t that is
known (:class:`felicific._problem.linear.FractionLevel`). For all t from a to b together, what their rows have in
common is a relaxation: its loss is a lower bound. Best bound first, an interval is final if the means of its own answer
go with one level; else it is split at the middle of the levels that they would need, clipped to its inner 80 %, and the
program at the split itself is a policy that is allowed. The search ends when no interval can be better than the best
policy by more than a tolerance: so the loss is proven to it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from felicific._problem.linear import FractionLevel, Rows
from felicific._typing import Floats
from felicific.exceptions import ConstraintError

#: How far the loss may be above the least one, relative to what decisions can change of it; and where each of many
#: searches takes longer: along a frontier, and column by column.
TOLERANCE, COARSE = 1e-5, 1e-4

#: Programs after which a search that has found no policy ends, and another one.
PATIENCE, MOST = 300, 10_000

#: How closely the least number that can be met is looked for, relative to it: as a rule, and where that takes long.
FINE, ROUGH = 1e-7, 1e-3

#: How much of an interval is left on each side of a split, and the width from which on it is a point.
EDGE, POINT = 0.1, 1e-10


class UndecidedError(Exception):
    """A search for a level ended before it found a policy, or that there is none."""


class Answered(NamedTuple):
    """The optimum for all levels of an interval: its loss, and the fractions."""

    loss: float
    ratios: Floats


@dataclass(frozen=True)
class Level:
    """The level that was found, its loss, the least loss that is still possible, and how many programs it took."""

    level: float
    loss: float
    bound: float
    programs: int


def fraction_level(rows: Sequence[Rows]) -> FractionLevel | None:
    """The row whose level is to be searched for, if there is one; several cannot be."""
    free = [row for row in rows if isinstance(row, FractionLevel)]
    if len(free) > 1:
        raise ConstraintError(
            f"{free[0].words[:1].upper()}{free[0].words[1:]} and {free[1].words}: each is a fraction that is compared "
            "between groups, and only one such level can be searched for.",
            "Ask for one of them, and bound the other by a Floor or a Budget.",
        )
    return free[0] if free else None


def exchanged(rows: Sequence[Rows], free: Rows, row: Rows) -> list[Rows]:
    """The rows, one of them exchanged for another."""
    return [row if other is free else other for other in rows]


def find_level(
    row: FractionLevel,
    solve: Callable[[FractionLevel], Answered | None],
    tolerance: float,
    start: float | None = None,
    span: tuple[float, float] = (-math.inf, math.inf),
    most: int = MOST,
) -> Level | None:
    """The level of least loss, known to ``tolerance``; None when there is none.

    ``solve`` is asked about the row between two levels, and answers None where nothing meets it; no fraction is beyond
    the ``span``. A level to ``start`` with, that of a neighbour, is tried first. Near the least gap there is, intervals
    become ever smaller before nothing meets them, so the work is bounded, by ``most`` programs where there is a policy.

    Raises
    ------
    UndecidedError
        When no policy is found in so many programs.
    """
    search = _Search(row, solve, tolerance)
    if start is not None:
        search.try_at(start)
    search.open(row.low, row.high)
    while search.heap:
        loss, _, low, high, ratios = heapq.heappop(search.heap)
        if search.done(loss):
            break
        if search.programs > (min(PATIENCE, most) if search.best is None else most):
            if search.best is None:
                raise UndecidedError
            search.left = min(search.left, loss)
            break
        least, largest = row.span(ratios)
        small = POINT * max(abs(least), abs(largest))
        if least - largest <= small or high - low <= small:
            search.take(min(max((least + largest) / 2.0, low), high), loss)
            continue
        split = (least + largest) / 2.0
        least, largest = max(low, span[0]), min(high, span[1])
        if math.isfinite(least) and math.isfinite(largest):
            edge = EDGE * (largest - least)
            split = min(max(split, least + edge), largest - edge)
        if not low + small < split < high - small:
            continue  # only rounding meets the rows of this interval
        search.try_at(split)
        search.open(low, split)
        search.open(split, high)
    if search.best is None:
        return None
    return Level(search.best[1], search.best[0], min(search.best[0], search.left), search.programs)


class _Search:
    """Intervals of levels that are open, by their bounds, and the best policy so far."""

    def __init__(
        self, row: FractionLevel, solve: Callable[[FractionLevel], Answered | None], tolerance: float
    ) -> None:
        self.row, self.solve, self.tolerance = row, solve, tolerance
        self.heap: list[tuple[float, int, float, float, Floats]] = []
        self.best: tuple[float, float] | None = None
        self.left, self.programs = math.inf, 0

    def done(self, loss: float) -> bool:
        """Whether nothing of this bound is better than the best by more than the tolerance; it is left then."""
        if self.best is None or loss < self.best[0] - self.tolerance:
            return False
        self.left = min(self.left, loss)
        return True

    def take(self, level: float, loss: float) -> None:
        """Take a policy if it is better."""
        if self.best is None or loss < self.best[0]:
            self.best = (loss, level)

    def try_at(self, level: float) -> None:
        """The best policy at one level."""
        found = self._ask(level, level)
        if found is not None:
            self.take(level, found.loss)

    def open(self, low: float, high: float) -> None:
        """Look at all levels of an interval together."""
        found = self._ask(low, high)
        if found is not None and not self.done(found.loss):
            heapq.heappush(self.heap, (found.loss, self.programs, low, high, found.ratios))

    def _ask(self, low: float, high: float) -> Answered | None:
        self.programs += 1
        return self.solve(self.row.between(low, high))


def least_eased(feasible: Callable[[float], bool], most: float) -> tuple[float, bool]:
    """The least number up to ``most``, by which a row is eased, that can be met, and whether no smaller one can.

    It is rounded up in the seventh digit; where searches end undecided, in the third.
    """
    low, high, proven = 0.0, most, True
    while high - low > (FINE if proven else ROUGH) * high:
        middle = (low + high) / 2.0
        try:
            low, high = (low, middle) if feasible(middle) else (middle, high)
        except UndecidedError:
            low, proven = middle, False
    return high, proven
