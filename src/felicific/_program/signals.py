"""Signals: what a policy sees of a person besides the group."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from felicific._program.bins import (
    FINE,
    cuts_of,
    find_boundary,
    fine_bins,
    fine_per_class,
    lower_edges,
    stretches,
)
from felicific._statistics.sample_size import log_maps, log_staircases
from felicific._tables.memory import row_argmax
from felicific._typing import Codes, Floats
from felicific.exceptions import DataError

#: A row's signal: the cell of every row, and the weight with which the row falls into it (None: one).
Spread = list[tuple[Codes, Floats | None]]


@dataclass(frozen=True)
class Individual:
    """All of x: every person's own features, and the model's calibrated probabilities.

    Parameters
    ----------
    calibration : {"isotonic", "sigmoid", "none"}, default="isotonic"
        How the model's probabilities are calibrated, group by group, on the fitted rows. A measure that ignores
        the label needs no probabilities.
    group_proba : fitted classifier of the group, {group: column of X}, or None
        How likely each group is, where the policy does not see the group (``sees_group=False``). A classifier must have
        been fitted on other rows than those passed to ``fit``, which cannot be checked in general: one that knows these
        rows is too sure of them, and the gap on new people is wider than stated. With None a model of the group is
        fitted in folds (``cv``): everybody is believed about by the one that left them out, and new people by the
        average of all.
    randomize : bool, default=True
        False gives each person the most probable decision; the gap asked for may then be exceeded.

    Examples
    --------
    >>> import pandas as pd
    >>> from felicific import FairClassifier, Individual
    >>> people = pd.DataFrame({
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "loan": [10, 20, 30, 40, 10, 20, 30, 40] * 10,
    ... })
    >>> fair = FairClassifier("score", policy=Individual("none"), sensitive_features="sex",
    ...                       happiness="decision * loan", gap=5.0, random_state=0)
    >>> policy = fair.fit(people, [0, 0, 1, 1, 0, 1, 1, 1] * 10).policy_
    >>> policy.kind, round(policy.loss, 9), round(policy.gap, 9)
    ('individual', 0.0, 5.0)
    """

    calibration: Literal["isotonic", "sigmoid", "none"] = "isotonic"
    group_proba: Any = None
    randomize: bool = True
    kind: ClassVar[str] = "individual"
    needs_proba: ClassVar[bool] = True
    sees_x: ClassVar[bool] = True
    drawn: ClassVar[bool] = False
    takes_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.calibration not in CALIBRATIONS:
            raise DataError(
                f"Individual(calibration={self.calibration!r}).",
                f"Choose one of {', '.join(map(repr, CALIBRATIONS))}.",
            )
        _check_randomize(self.randomize)


def _check_randomize(randomize: object) -> None:
    if not isinstance(randomize, bool | np.bool_):
        raise DataError(f"randomize is {randomize!r}.", "Say True or False.")


CALIBRATIONS = ("isotonic", "sigmoid", "none")

#: How predictions of amounts may be calibrated.
LINES = ("affine", "isotonic", "none")


class SqlTerms(Protocol):
    """What a condition on a signal is written with."""

    @property
    def shares(self) -> list[str]:
        """Probabilities that sum to one, a term each."""

    @property
    def value(self) -> str:
        """The value of a decision function."""

    def labelled(self, s: int) -> str:
        """Condition that the model's label is this class, for people with none before it."""

    def top_is(self, k: int) -> str:
        """Condition that the class is the most probable one, for people of whom none before it is; empty: it is."""

    def number(self, value: float) -> str:
        """A 64-bit float."""


class Signal(ABC):
    """What a policy sees of a person. ``n_classes`` is the number of the model's labels.

    Attributes
    ----------
    kind : str
        Name in ``policy=`` and in files.
    needs_proba : bool
        Whether it is made of probabilities (or else of predicted labels).
    sees_x : bool
        Whether it is more than what the model says.
    of_classes : bool
        Whether it is made of what a classifier says.
    of_values, takes_values : bool
        Whether what it is made of are values of a decision function instead; whether such cells can stand for it.
    drawn : bool
        Whether a person's signal is decided at random, so that sums over people do not tell each person's
        probabilities.
    ordered : bool
        Whether signals have neighbours.
    least : int
        In a group, neighbours are treated alike until so many people are together; 0: each by itself.
    """

    kind: ClassVar[str]
    needs_proba: ClassVar[bool] = True
    sees_x: ClassVar[bool] = False
    of_classes: ClassVar[bool] = True
    of_values: ClassVar[bool] = False
    takes_values: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    least: int = 0

    @abstractmethod
    def size(self, n_classes: int) -> int:
        """Number of signals."""

    @abstractmethod
    def baseline(self, n_classes: int) -> Codes:
        """Give the decision that the model itself takes at each signal."""

    @abstractmethod
    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Cells and weights W[i, s] of some rows."""

    def cell_of(self, row: list[float]) -> int | None:
        """The cell of one person with these probabilities; None where :meth:`spread` has to be asked."""
        return None

    def of_bins(self, n_classes: int) -> Codes | None:
        """The signal of every fine bin of the score; None where it is made of something else."""
        return None

    @abstractmethod
    def runs(self, n_classes: int) -> list[range]:
        """Signals that follow each other in order, and so may be described together."""

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say who has a signal from the first to the last of each stretch: "a person whom ...".

        ``classes`` are the model's labels as sentences write them.
        """
        return ["a person"] * len(stretches)

    @abstractmethod
    def log_policies(self, n_classes: int) -> float:
        """Logarithm of how many deterministic policies a fitted signal could have led to, its cuts included."""

    def log_staircases(self, n_classes: int, n_decisions: int) -> float:
        """The same where so many decisions are listed: any of them at every signal, unless they only get better."""
        return log_maps(self.size(n_classes), n_decisions)

    def chains(self, n_classes: int) -> list[tuple[range, int]]:
        """Runs of signals along which the probability of a decision may not fall."""
        return []

    def climbs(self, n_classes: int) -> bool:
        """Whether listed decisions may only get better along all signals, or only worse."""
        return False

    def check(self, n_classes: int) -> None:  # noqa: B027  # any number of classes will do unless said
        """Raise if it makes no sense for that many classes."""

    def join(self, share: Floats, n_classes: int) -> tuple[Codes, Signal] | None:
        """Join signals to fewer, larger ones: the cell of each, and the signal of the cells; None to leave it.

        ``share`` is the mean, over the groups, of the share of a group at every signal.
        """
        return None

    def alike(self, mass: Floats, n_classes: int) -> Codes | None:
        """The signal that stands for each in a group, where those of few people are treated alike; or None."""
        return None

    def relaxed(self) -> Signal | None:
        """The same without the rule that a probability may not fall, where there is that rule."""
        return None

    def matched(self, score: Floats | None, predicted: Codes) -> Signal:
        """The same, matched to what the model itself decides on some people."""
        return self

    def ranges(self, n_classes: int) -> list[tuple[int, float, float]]:
        """The model's label, the score that is exceeded (negative: none) and the largest score of every signal."""
        return [(s, 0.0, 1.0) for s in range(n_classes)]

    def line(self, n_classes: int) -> float | None:
        """The model's own boundary, when all signals lie along one score."""
        return None

    def cuts_at(self) -> list[tuple[float, float]]:
        """Of a decision function, the places between its cells, and the value at each."""
        return []

    # On an engine

    def sql_run(self, run: int, n_classes: int, terms: SqlTerms) -> str:
        """Condition of one of the runs, for people of none before it; empty when they all are of it."""
        return terms.labelled(run)

    def sql_up_to(self, last: int, run: int, n_classes: int, terms: SqlTerms) -> str:
        """Condition of the signals of a run up to one of them; empty when it is the last."""
        return ""


class _Unordered(Signal):
    """One signal per class, none next to another; the model's decision is the class."""

    def size(self, n_classes: int) -> int:
        """Return the number of classes."""
        return n_classes

    def baseline(self, n_classes: int) -> Codes:
        """Decide the label."""
        return np.arange(n_classes)

    def runs(self, n_classes: int) -> list[range]:
        """Each label by itself."""
        return [range(s, s + 1) for s in range(n_classes)]

    def log_policies(self, n_classes: int) -> float:
        """Every map of labels to decisions."""
        return log_maps(n_classes, n_classes)


@dataclass(frozen=True)
class SoftLabel(_Unordered):
    """The paper's signal: a label drawn from the model's probabilities, so W = P."""

    kind: ClassVar[str] = "soft-label"
    drawn: ClassVar[bool] = True

    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Every row falls into every label, with its probability."""
        score = required(score, self.kind)
        n, k = score.shape
        return [(np.full(n, s), score[:, s]) for s in range(k)]

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say who has this signal."""
        return [
            f"a person for whom the label {classes[first]} is drawn from the model's probabilities"
            for first, _ in stretches
        ]


@dataclass(frozen=True)
class Label(_Unordered):
    """The predicted label, as in the derived predictor of Hardt, Price and Srebro (2016)."""

    kind: ClassVar[str] = "label"
    needs_proba: ClassVar[bool] = False

    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Every row falls into its predicted label."""
        return [(row_argmax(required(score, self.kind)) if predicted is None else predicted, None)]

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say who has this signal."""
        return [f"a person whom the model labels {classes[first]}" for first, _ in stretches]


class _Scored(Signal):
    """A score: fine bins, or cells of them."""

    ordered: ClassVar[bool] = True
    kind: ClassVar[str] = "score"
    monotone: bool
    boundary: float

    def chains(self, n_classes: int) -> list[tuple[range, int]]:
        """The decision whose probability may not fall along each run."""
        if not self.monotone:
            return []
        return [(run, 1 if n_classes == 2 else k) for k, run in enumerate(self.runs(n_classes))]

    def climbs(self, n_classes: int) -> bool:
        """Along the score of two classes."""
        return self.monotone and n_classes == 2

    def log_policies(self, n_classes: int) -> float:
        """How many maps bins of a score could have led to, their cuts included.

        Cells of a score are cut by the rows they are used on, but always between fine bins that are the same for all
        data. Monotone policies of any cells are monotone policies of the fine bins; free ones are counted for each
        choice of cuts. The model's own boundary is taken as given.
        """
        if self.monotone:
            return log_maps(self._fine(n_classes), n_classes, monotone=True)
        return self._log_free(n_classes, n_classes)

    def log_staircases(self, n_classes: int, n_decisions: int) -> float:
        """Where decisions only get better, staircases along the fine bins; else any decisions of cells."""
        if self.climbs(n_classes):
            return log_staircases(self._fine(n_classes), n_decisions)
        return self._log_free(n_classes, n_decisions)

    def _fine(self, n_classes: int) -> int:
        return Score(boundary=self.boundary).size(n_classes)

    def _log_free(self, n_classes: int, n_decisions: int) -> float:
        """Every map of cells to decisions, for every choice of their cuts."""
        fine, cells = self._fine(n_classes), self.size(n_classes)
        choose = math.lgamma(fine) - math.lgamma(cells) - math.lgamma(fine - cells + 1)
        return min(choose + cells * math.log(n_decisions), fine * math.log(n_decisions))


@dataclass(frozen=True)
class Score(_Scored):
    r"""The score bin: the range of scores that the model's score of a person falls into.

    With two classes the score p is the probability of ``classes[1]``. Rows are first counted in the fine bins
    :math:`\lceil 4096 p \rceil`, which are the same everywhere, so the counts add; these are then joined to
    ``bins`` bins of about equal mass. The model's own ``boundary`` always separates two bins, so the model's
    decisions are one of the policies. With more classes a bin is the predicted class and a range of its
    probability.

    Parameters
    ----------
    bins : int, optional
        How many bins to make, the same ones for all groups; fewer only where there are fewer different scores, each
        of which then has a bin of its own. By default 256. With more than two classes neighbouring bins of a label
        are then treated alike in a group until 50 of its people are together, so that what a small group carries
        limits its own rules and nobody else's; the sentences of the policy say how many are left. A number that is
        given is kept in every group.
    monotone : bool, default=True
        Whether the probability of ``classes[1]`` (with more classes: of the predicted class) may not fall as the
        score rises.
    boundary : float, default=0.5
        With two classes, the score above which the model itself decides ``classes[1]``.
    calibration : {"affine", "isotonic", "none"}, optional
        Of :class:`felicific.FairRegressor` alone: what is made of predictions first, group by group. By default
        "affine", the line of least squares; "none" takes them as they are.
    randomize : bool, default=True
        False gives each person the most probable decision; ``loss_`` and ``gaps_`` are then those of the rounded
        decisions, and the gap asked for may be exceeded.

    Examples
    --------
    >>> from felicific import Score, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> for bins in (2, 256):  # with few bins, more people face a lottery
    ...     sums = aggregate(people, policy=Score(bins=bins), score="score", y="repaid", sensitive_features="sex",
    ...                      happiness="decision")
    ...     policy = solve(sums, gap=0.0, random_state=0)
    ...     print(bins, policy.share_drawn)
    2 0.25
    256 0.0
    """

    takes_values: ClassVar[bool] = True

    bins: int | None = None
    monotone: bool = True
    boundary: float = 0.5
    calibration: Literal["affine", "isotonic", "none"] | None = None
    randomize: bool = True

    def __post_init__(self) -> None:
        if self.bins is not None and (type(self.bins) is not int or self.bins < 2):
            raise DataError(f"Score(bins={self.bins!r}).", "Give a whole number of at least 2 bins.")
        if self.calibration not in (None, *LINES):
            known = ", ".join(map(repr, LINES))
            raise DataError(f"Score(calibration={self.calibration!r}).", f"Choose one of {known}.")
        _check_boundary(self.boundary, self.monotone)
        _check_randomize(self.randomize)

    def size(self, n_classes: int) -> int:
        """Number of fine bins."""
        return FINE + 2 if n_classes == 2 else n_classes * (fine_per_class(n_classes) + 1)

    def baseline(self, n_classes: int) -> Codes:
        """Decide by the boundary, or the predicted class."""
        bins = np.arange(self.size(n_classes))
        if n_classes == 2:
            return np.asarray(bins > np.ceil(FINE * self.boundary), dtype=np.intp)
        return bins // (fine_per_class(n_classes) + 1)

    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Every row falls into its fine bin."""
        return [(fine_bins(required(score, self.kind), self.boundary), None)]

    def runs(self, n_classes: int) -> list[range]:
        """All bins of a predicted class in the order of its probability; with two classes, all bins."""
        if n_classes == 2:
            return [range(self.size(2))]
        step = fine_per_class(n_classes) + 1
        return [range(k * step, (k + 1) * step) for k in range(n_classes)]

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say who is in these bins."""
        bins = ScoreCells(tuple(range(1, self.size(len(classes)))), self.monotone, self.boundary)
        return bins.describe_all(stretches, classes, digits)

    def matched(self, score: Floats | None, predicted: Codes) -> Score:
        """With the boundary at which the model's own decision turns, when there are two classes."""
        if score is None or score.shape[1] != 2:
            return self
        return replace(self, boundary=find_boundary(score, predicted))

    def check(self, n_classes: int) -> None:
        """Raise if there are fewer bins than labels."""
        if self.bins is not None and self.bins < n_classes:
            raise DataError(
                f"Score(bins={self.bins}) has fewer bins than the {n_classes} labels, each of which needs one.",
                f"Give at least {n_classes}, or leave bins= out.",
            )

    def join(self, share: Floats, n_classes: int) -> tuple[Codes, ScoreCells]:
        """Join fine bins; every group has the same say in where the cells are cut."""
        self.check(n_classes)
        cells = CELLS if self.bins is None else self.bins
        baseline = self.baseline(n_classes)
        forced = (np.flatnonzero(np.diff(baseline)) + 1).tolist()
        cuts = cuts_of(share, forced, max(cells, n_classes))
        begins = np.zeros(len(share), dtype=np.intp)
        begins[cuts] = 1
        cells_of_bins = begins.cumsum()
        least = LEAST if self.bins is None and n_classes > 2 else 0
        return cells_of_bins, ScoreCells(tuple(cuts), self.monotone, self.boundary, least)


#: Cells of a score, unless said.
CELLS = 256

#: With more than two classes, unless the number of cells is said: people of a group who are treated alike at least.
LEAST = 50


@dataclass(frozen=True)
class ScoreCells(_Scored):
    """Cells of the score: ``cuts`` are the fine bins at which a new cell begins."""

    cuts: tuple[int, ...]
    monotone: bool = True
    boundary: float = 0.5
    least: int = 0

    def __repr__(self) -> str:
        # The cuts are hundreds of numbers; the first ones and how many there are tell two of them apart, mostly.
        cuts = (
            f"{len(self.cuts)} from {self.cuts[:3]} to {self.cuts[-3:]}" if len(self.cuts) > 6 else self.cuts
        )
        return (
            f"ScoreCells(cuts={cuts}, monotone={self.monotone}, boundary={self.boundary}, least={self.least})"
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", tuple(self.cuts))
        whole = set(map(type, self.cuts)) <= {int}
        if not whole or [0, *self.cuts] != sorted({0, *self.cuts}):
            raise DataError("The cuts of a score do not increase.", "Use Score(...) and let it choose them.")
        _check_boundary(self.boundary, self.monotone)
        if type(self.least) is not int or self.least < 0:
            raise DataError(
                f"Score bins of at least {self.least!r} people.", "Give a whole number, 0 or more."
            )

    def check(self, n_classes: int) -> None:
        """Raise if a cut is beyond the last bin, or the model's boundary is not one."""
        baseline = Score(2, self.monotone, self.boundary).baseline(n_classes)
        forced = set((np.flatnonzero(np.diff(baseline)) + 1).tolist())
        if max(self.cuts, default=0) >= len(baseline) or not forced <= set(self.cuts):
            raise DataError(
                "The cuts of a score do not fit its classes.", "Use Score(...) and let it choose them."
            )

    def cell_of(self, row: list[float]) -> int | None:
        """The cell of one person, of two classes; None of more, where arrays are as quick."""
        if len(row) != 2:
            return None
        return bisect_right(self.cuts, math.ceil(FINE * row[1]) + (row[1] > self.boundary))

    @cached_property
    def _starts(self) -> Codes:
        return np.array((0, *self.cuts), dtype=np.intp)

    def size(self, n_classes: int) -> int:
        """Number of cells."""
        return len(self.cuts) + 1

    def baseline(self, n_classes: int) -> Codes:
        """Decide what the model decides in the cell's first bin; no cell reaches over a boundary."""
        return np.asarray(Score(2, self.monotone, self.boundary).baseline(n_classes)[self._starts])

    def spread(self, score: Floats | None, predicted: Codes | None) -> Spread:
        """Every row falls into its cell."""
        score = required(score, self.kind)
        bins = fine_bins(score, self.boundary)
        if len(bins) < FINE:
            return [(np.searchsorted(self._starts[1:], bins, side="right"), None)]
        return [(self.of_bins(score.shape[1])[bins], None)]

    def of_bins(self, n_classes: int) -> Codes:
        """The cell of every bin."""
        every = np.arange(Score(2, boundary=self.boundary).size(n_classes))
        return np.asarray(np.searchsorted(self._starts[1:], every, side="right"))

    def runs(self, n_classes: int) -> list[range]:
        """Cells in the order of the score, class by class when there are more than two."""
        if n_classes == 2:
            return [range(self.size(2))]
        owner = self._starts // (fine_per_class(n_classes) + 1)
        edges = [int(np.searchsorted(owner, k)) for k in range(n_classes + 1)]
        return [range(edges[k], edges[k + 1]) for k in range(n_classes)]

    def ranges(self, n_classes: int) -> list[tuple[int, float, float]]:
        """The predicted class, the score that is exceeded (negative: none) and the largest score of every cell.

        With two classes the score is that of ``classes[1]`` and the predicted class is that of the boundary.
        """
        ends = [*self._starts.tolist(), Score(2, boundary=self.boundary).size(n_classes)]
        edges = lower_edges(ends, n_classes, self.boundary)
        return [
            (owner, low, 1.0 if high <= low else min(high, 1.0))
            for owner, low, high in zip(self.baseline(n_classes).tolist(), edges, edges[1:], strict=False)
        ]

    def line(self, n_classes: int) -> float | None:
        """The boundary, with two classes."""
        return float(self.boundary) if n_classes == 2 else None

    def relaxed(self) -> ScoreCells | None:
        """The same cells with any probabilities."""
        return replace(self, monotone=False) if self.monotone else None

    def alike(self, mass: Floats, n_classes: int) -> Codes | None:
        """Neighbours of one label, joined until each stretch holds ``least`` people of the group."""
        if not self.least:
            return None
        place = np.tile(np.arange(mass.shape[1]), (len(mass), 1))
        for z, own in enumerate(mass):
            for run in self.runs(n_classes):
                firsts = stretches(own[run.start : run.stop], self.least)
                if firsts:
                    at = np.searchsorted(firsts, np.arange(len(run)), side="right") - 1
                    place[z, run.start : run.stop] = run.start + np.array(firsts)[at.clip(min=0)]
        return place

    def sql_run(self, run: int, n_classes: int, terms: SqlTerms) -> str:
        """The model's label, of more than two classes."""
        return "" if n_classes == 2 else terms.top_is(run)

    def sql_up_to(self, last: int, run: int, n_classes: int, terms: SqlTerms) -> str:
        """The score, or the probability of the model's label, does not exceed the edge of these cells."""
        if last + 1 == self.runs(n_classes)[run].stop:
            return ""
        stop = self.cuts[last]
        if n_classes == 2:
            return f"{terms.shares[1]} <= {terms.number(lower_edges([stop], 2, self.boundary)[0])}"
        fine = fine_per_class(n_classes)
        best, above = f"({terms.number(float(fine))} * {terms.shares[run]})", float(stop - run * (fine + 1))
        return f"{best} <= {terms.number(above - 1.0)}"

    def describe_all(
        self, stretches: Sequence[tuple[int, int]], classes: Sequence[str], digits: int = 12
    ) -> list[str]:
        """Say whose score lies from the first of these cells to the last."""
        k = len(classes)
        bins = [*self._starts.tolist(), Score(2, boundary=self.boundary).size(k)]
        edges, owners = lower_edges(bins, k, self.boundary), self.baseline(k).tolist()
        return [
            self._described(edges[first], edges[last + 1], owners[first], classes, digits)
            for first, last in stretches
        ]

    def _described(self, low: float, high: float, owner: int, classes: Sequence[str], digits: int) -> str:
        """Say whose score lies above one edge and not above another, and whom the model gives some label."""
        if len(classes) == 2:
            who, score = "a person", f"score for {classes[1]}"
        else:
            who, score = f"a person whom the model labels {classes[owner]}", "probability of it"
            high = 1.0 if high <= low else high
        if low < 0 and high >= 1:
            return f"{who} with any {score}"
        if low < 0:
            return f"{who} with a {score} of at most {high:.{digits}g}"
        return f"{who} with a {score} above {low:.{digits}g}" + (
            "" if high >= 1 else f" and at most {high:.{digits}g}"
        )


def _check_boundary(boundary: Any, monotone: Any) -> None:
    number = isinstance(boundary, int | float | np.floating) and not isinstance(boundary, bool)
    if not number or not 0.0 <= boundary <= 1.0:
        raise DataError(f"The boundary of the score is {boundary!r}.", "Give a number from 0 to 1.")
    if not isinstance(monotone, bool):
        raise DataError(f"Whether the score is monotone is {monotone!r}.", "Say True or False.")


def required(score: Floats | None, kind: str) -> Floats:
    """Insist on probabilities."""
    if score is None:
        raise DataError(
            f"The {kind} policy sees probabilities.",
            "Pass what the model's predict_proba returns as score=, or use policy='label'.",
        )
    return score
