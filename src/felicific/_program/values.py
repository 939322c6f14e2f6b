"""Values of a decision function, of models that give no probabilities: cells of them, cut between the fitted people.

No number is a probability here. What people, sums and pages see of a value is its place, from 0 to 1 along the cells,
with the model's own boundary in the middle; cuts, sentences and SQL speak of the values themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from felicific._program.bins import cuts_of
from felicific._program.signals import CELLS, Score, Signal, Spread, SqlTerms, required
from felicific._statistics.sample_size import log_maps, log_staircases
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._people.people import People

#: How many different numbers a value can be: cuts between them are the same for all data.
NUMBERS = 2**64


@dataclass(frozen=True)
class ValueCells(Signal):
    """Cells of a decision function: ``values`` are those above which a new one begins, the model's boundary among them.

    The cells up to the boundary share the lower half of the places from 0 to 1 evenly, those above it the upper half.
    """

    kind: ClassVar[str] = "score"
    ordered: ClassVar[bool] = True
    of_values: ClassVar[bool] = True

    values: tuple[float, ...]
    monotone: bool = True
    boundary: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        numbers = all(type(value) is float and math.isfinite(value) for value in self.values)
        if not numbers or not all(low < high for low, high in pairwise(self.values)):
            raise DataError(
                "The cuts of a decision function are no numbers that increase.",
                "Fit the policy, and let it choose them.",
            )
        if self.boundary not in self.values:
            raise DataError(
                f"The boundary {self.boundary!r} of a decision function is none of its cuts.",
                "Fit the policy, and let it choose them.",
            )
        if not isinstance(self.monotone, bool):
            raise DataError(f"Whether bins are monotone is {self.monotone!r}.", "Say True or False.")

    @property
    def _below(self) -> int:
        """How many cells there are up to the boundary."""
        return self.values.index(self.boundary) + 1

    @property
    def places(self) -> Floats:
        """Where cells begin and end, from 0 to 1."""
        lower = np.linspace(0.0, 0.5, self._below + 1)
        return np.concatenate([lower, np.linspace(0.5, 1.0, len(self.values) - self._below + 2)[1:]])

    def read(self, said: Array, rows: Codes) -> Floats:
        """Places of values, and what is left of 1, for whoever asks for a column of each class."""
        places, cells = self.places, np.searchsorted(self.values, check_values(said, rows))
        found = ((places[1:] + places[:-1]) / 2)[cells]
        return np.column_stack([1.0 - found, found])

    def check(self, n_classes: int) -> None:
        """Raise unless there are two classes."""
        if n_classes != 2:
            raise DataError(
                f"There are {n_classes} classes, and bins of one decision function decide between two.",
                "Use policy='label', or calibrate the model (CalibratedClassifierCV).",
            )

    def size(self, n_classes: int) -> int:
        """Number of cells."""
        return len(self.values) + 1

    def baseline(self, n_classes: int) -> Codes:
        """Decide by the boundary."""
        return np.asarray(np.arange(len(self.values) + 1) >= self._below, dtype=np.intp)

    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Every row falls into the cell of its place."""
        return [(np.searchsorted(self.places[1:-1], required(score, "score")[:, 1]), None)]

    def runs(self, n_classes: int) -> list[range]:
        """All cells, in their order."""
        return [range(self.size(n_classes))]

    def chains(self, n_classes: int) -> list[tuple[range, int]]:
        """The probability of the second class may not fall."""
        return [(range(self.size(n_classes)), 1)] if self.monotone else []

    def climbs(self, n_classes: int) -> bool:
        """Along the values."""
        return self.monotone

    def relaxed(self) -> ValueCells | None:
        """The same cells with any probabilities."""
        return replace(self, monotone=False) if self.monotone else None

    def log_policies(self, n_classes: int) -> float:
        """Cuts may be at any number that there is: so many thresholds; or so many choices of cuts, and of decisions."""
        if self.monotone:
            return log_maps(NUMBERS, n_classes, monotone=True)
        return len(self.values) * math.log(NUMBERS) + log_maps(self.size(n_classes), n_classes)

    def log_staircases(self, n_classes: int, n_decisions: int) -> float:
        """Where decisions only get better, each may begin at any number that there is."""
        if self.monotone:
            return log_staircases(NUMBERS, n_decisions)
        return len(self.values) * math.log(NUMBERS) + log_maps(self.size(n_classes), n_decisions)

    def ranges(self, n_classes: int) -> list[tuple[int, float, float]]:
        """The model's label, and from which place to which; negative where there is none below."""
        places = self.places.tolist()
        starts = [-1.0, *places[1:-1]]
        return list(zip(self.baseline(n_classes).tolist(), starts, places[1:], strict=True))

    def line(self, n_classes: int) -> float | None:
        """The middle of the places."""
        return 0.5

    def cuts_at(self) -> list[tuple[float, float]]:
        """The places between the cells, and the value at each."""
        return list(zip(self.places[1:-1].tolist(), self.values, strict=True))

    def sql_run(self, run: int, n_classes: int, terms: SqlTerms) -> str:
        """There is one run."""
        return ""

    def sql_up_to(self, last: int, run: int, n_classes: int, terms: SqlTerms) -> str:
        """The value does not exceed the cut of these cells."""
        high = self._between(last, last)[1]
        return "" if high is None else f"{terms.value} <= {terms.number(high)}"

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say whose value lies from the first of these cells to the last."""
        found, what = [], f"decision function for {classes[1]}"
        for first, last in stretches:
            low, high = self._between(first, last)
            most = "" if high is None else f"at most {high:.{digits}g}"
            if low is None:
                found.append(f"a person with a {what} of {most}" if most else f"a person with any {what}")
            else:
                found.append(f"a person with a {what} above {low:.{digits}g}" + (most and f" and {most}"))
        return found

    def _between(self, first: int, last: int) -> tuple[float | None, float | None]:
        """The value that is exceeded from the first of some cells to the last, and the largest one; None for none."""
        return (
            self.values[first - 1] if first else None,
            self.values[last] if last < len(self.values) else None,
        )


def check_values(said: Array, rows: Codes) -> Floats:
    """Insist on one finite number of each person."""
    array = said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise DataError(
            f"The values of the decision function have shape {array.shape} and type {array.dtype}.",
            "Pass what the model's decision_function returns for two classes, one number per person.",
        )
    values = array.astype(np.float64, copy=False)
    wrong = ~np.isfinite(values)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(
            f"The decision function of row {rows[i]} is {values[i]}.",
            "Everybody is decided on: repair the model or that row's features, or leave the row out.",
        )
    return values


def cut_values(score: Score, values: Floats, positive: Array, group: Codes, weight: Floats) -> ValueCells:
    """Cells of the values of some people: as many as ``score`` says, of about equal mass, and every group has its say.

    With fewer different values each has a cell of its own. The model's own boundary, by whom it decides to be
    ``positive``, is always a cut.
    """
    score.check(2)
    boundary = find_boundary(values, positive)
    known, position = np.unique(values, return_inverse=True)
    share = weight / np.bincount(group, weight)[group]
    share = np.bincount(position, share, minlength=len(known)).astype(np.float64)
    above = int(np.searchsorted(known, boundary, side="right"))
    forced = [above] if 0 < above < len(known) else []
    cuts = cuts_of(share, forced, CELLS if score.bins is None else score.bins)
    between = {number_between(*known[cut - 1 : cut + 1].tolist()) for cut in cuts if cut != above}
    return ValueCells(tuple(sorted({boundary, *between})), score.monotone, boundary)


def find_boundary(values: Floats, positive: Array) -> float:
    """Value above which a model decides the second class: 0, or what parts its decisions, if they are a threshold."""
    if bool(((values > 0.0) == positive).all()):
        return 0.0
    low = float(values[~positive].max(initial=-math.inf))
    high = float(values[positive].min(initial=math.inf))
    if low >= high:
        return 0.0
    if math.isinf(low):
        return math.nextafter(high, -math.inf)
    return low if math.isinf(high) else number_between(low, high)


def number_between(low: float, high: float) -> float:
    """The number of fewest digits that is at least ``low`` and below ``high``, near their middle."""
    middle = low / 2 + high / 2
    for digits in range(1, 17):
        number = float(f"{middle:.{digits}g}")
        if low <= number < high:
            return number
    return middle if low <= middle < high else low


def placed(signal: Signal, people: People) -> People:
    """The people with the places of their values, where the signal is made of these; else as they are."""
    if not isinstance(signal, ValueCells) or people.score is None:
        return people
    return replace(people, score=signal.read(people.score[:, 1], people.rows), checked=True)


def cut_people(score: Score, people: People) -> tuple[People, ValueCells]:
    """Cells of what a decision function says of people, and the people with their places."""
    assert people.score is not None, "there are values"
    values = check_values(people.score[:, 1], people.rows)
    signal = cut_values(score, values, people.predictions() == 1, people.codes, people.weights)
    return placed(signal, people), signal
