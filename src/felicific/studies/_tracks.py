"""Tracks: what the policies of a method's frontier do to some people, in accuracy and in the gap of one happiness."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._frontier.frontier import Frontier
from felicific._people import people
from felicific._people.worth import Batch, worth_of
from felicific._problem.happiness import Happiness
from felicific._problem.problem import Problem
from felicific._program.moments import Moments
from felicific._program.signals import Signal
from felicific._program.summing import sum_people
from felicific._tables.groups import encode_groups, find_groups, resolve_groups
from felicific._typing import Floats
from felicific.studies._ties import Settled, settle

#: The comparison criteria in the order of the columns 1, 2, 3 of the paper's files; column 0 is the own happiness.
CRITERIA_SHOWN = ("equalized_odds", "statistical_parity", "overall_accuracy")
OWN = "own happiness"
METHODS = (OWN, *(name.replace("_", " ") for name in CRITERIA_SHOWN))
CLASSES = np.array([0, 1])


@dataclass(frozen=True, eq=False)
class People:
    """Some people, the model's probabilities for them, and what each decision is worth to them."""

    X: Any
    y: NDArray[np.int64]
    proba: Floats
    group: NDArray[Any]
    happiness: Happiness
    worth: Floats

    @classmethod
    def of(cls, X: Any, y: Any, proba: Floats, happiness: Happiness, sensitive_features: str) -> People:
        """Evaluate the happiness of every decision for every person."""
        group = np.asarray(resolve_groups(X, sensitive_features))
        problem = Problem.of(CLASSES, happiness)
        batch = Batch(X, y, np.asarray(y), group, np.arange(len(y)))
        return cls(X, y, proba, group, happiness, worth_of(problem, batch).values(0)[0].T)

    @property
    def groups(self) -> tuple[Any, ...]:
        """The distinct groups."""
        return find_groups(self.group)

    def moments(self, signal: Signal) -> Moments:
        """Sums over the people: component 0 is the own happiness, then those of every criterion."""
        problem = Problem.of(CLASSES, [self.happiness, *CRITERIA_SHOWN])
        rows = people.People.of(self.X, problem, group=self.group, y=self.y, proba=self.proba)
        return sum_people(rows, problem, signal)

    def measure(self, decisions: Floats) -> dict[str, Any]:
        """Accuracy, group means, gap and its standard error, in expectation over the lottery, person by person.

        The error is that of the difference of two means, from the variances within the groups: it says how far the
        gap among other people would be, were the same policy used on them.
        """
        gained = (decisions * self.worth).sum(axis=1)
        codes = encode_groups(self.group, self.groups)
        parts = [gained[codes == z] for z in range(len(self.groups))]
        means = [float(part.mean()) for part in parts]
        variance = sum(float(part.var(ddof=1)) / len(part) for part in parts)
        return {
            "accuracy": float(decisions[np.arange(len(self.y)), self.y].mean()),
            "gap": max(means) - min(means),
            "error": math.sqrt(variance),
            "means": dict(zip(map(str, self.groups), means, strict=True)),
        }


@dataclass(frozen=True, eq=False)
class Track:
    """Along a method's frontier, from its least gap to the least loss, on some people.

    Attributes
    ----------
    eps : array
        Allowed gap of the method's own criterion.
    accuracy, gap, error : array
        Accuracy, gap in the own happiness, and the standard error of that gap.
    low, high : array
        Least and largest gap that the method's ties allow.
    means : array of shape (points, groups)
        Mean happiness of the groups.
    """

    eps: Floats
    accuracy: Floats
    gap: Floats
    error: Floats
    low: Floats
    high: Floats
    means: Floats

    @property
    def closest(self) -> int:
        """The point of least gap; of those the most accurate."""
        near = np.flatnonzero(self.gap <= self.gap.min() + 1e-9 * max(float(self.gap.max()), 1.0))
        return int(near[self.accuracy[near].argmax()])

    def at(self, point: int) -> dict[str, float]:
        """One point, by name."""
        names = ("eps", "accuracy", "gap", "error", "low", "high")
        return {name: float(getattr(self, name)[point]) for name in names}

    def accuracy_at(self, gap: float) -> float:
        """Accuracy where the track has that gap; of a track on which the gap only grows."""
        return float(np.interp(gap, self.gap, self.accuracy))


def fit(moments: Moments) -> dict[str, Settled]:
    """The frontier of every method, ties settled."""
    from felicific._frontier.solve import frontier

    own = str(moments.components[0].name)
    line = frontier(moments, gap={own: 1.0})
    found = {OWN: Settled(line, line, line)}
    for method, criterion in zip(METHODS[1:], CRITERIA_SHOWN, strict=True):
        found[method] = settle(frontier(moments, gap={criterion: 1.0}), moments, criterion)
    return found


def follow(settled: Settled, people: People, moments: Moments) -> Track:
    """Evaluate a method's frontier on some people, at its breakpoints and at every kink of a gap."""
    lines = (settled.middle, settled.low, settled.high)
    curves = [line.on(moments) for line in lines]
    eps = _places(curves)

    def along(curve: Any, numbers: Floats) -> Floats:
        return np.interp(eps, curve.tau, numbers)

    middle = curves[0]
    means = np.column_stack([along(middle, middle.means[:, z, 0]) for z in range(len(moments.groups))])
    apart = [along(curve, curve.means[:, 0, 0] - curve.means[:, 1, 0]) for curve in curves[1:]]
    # What is left of an exact zero after rounding is zero.
    tiny = 1e-12 * float(np.abs(middle.means[:, :, 0]).max())
    sizes = np.abs(apart)
    gap, low, high = (
        np.where(numbers <= tiny, 0.0, numbers)
        for numbers in (np.ptp(means, axis=1), sizes.min(axis=0), sizes.max(axis=0))
    )
    errors = [people.measure(_decisions(settled.middle, e, people))["error"] for e in eps.tolist()]
    return Track(
        eps=eps,
        accuracy=1.0 - along(middle, middle.loss),
        gap=gap,
        error=np.array(errors),
        low=np.where(apart[0] * apart[1] < 0, 0.0, low),
        high=high,
        means=means,
    )


def _places(curves: Sequence[Any]) -> Floats:
    """Every eps at which a curve bends: the breakpoints, and where two groups change places in the own happiness."""
    found = []
    for curve in curves:
        own = curve.gaps[:, 0]
        found.append(curve.tau[~curve.kink | (own <= 1e-9 * own.max())])
    return distinct_numbers(np.concatenate(found))


def distinct_numbers(numbers: Floats) -> Floats:
    """Sorted, and one of those that differ by rounding only."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.diff(ordered, prepend=-math.inf) > 1e-12 * abs(ordered[-1])])


def _decisions(line: Frontier, eps: float, people: People) -> Floats:
    limited = {c.family for c, width in zip(line.components, line.ray, strict=True) if width < math.inf}
    return line.at(gap=dict.fromkeys(limited, eps)).odds(people.proba, people.group)


# ---------------------------------------------------------------------------------------------------------
# Files


def on_grid(accuracy: Floats, gap: Floats, grid: Floats) -> Floats:
    """The gap of a track at every accuracy of the grid: exact, NaN where it does not come.

    Where the track passes an accuracy more than once, which happens on people it was not fitted on, its least gap.
    """
    found = np.full(len(grid), math.inf)
    for i in range(max(len(gap) - 1, 1)):
        ends = accuracy[i : i + 2], gap[i : i + 2]
        order = np.lexsort((-ends[1], ends[0]))
        a, g = ends[0][order], ends[1][order]
        here = (grid >= a[0] - 1e-12) & (grid <= a[-1] + 1e-12)
        # With both ends at one accuracy, interp gives the last one: the lesser gap.
        found[here] = np.minimum(found[here], np.interp(grid[here], a, g))
    return np.where(np.isfinite(found), found, np.nan)


def paper_csv(tracks: Sequence[Track]) -> str:
    """The file behind the paper's figures: accuracy, then the gap of every method (columns 0, 1, 2, 3)."""
    grid = distinct_numbers(np.concatenate([track.accuracy for track in tracks]))
    columns = [on_grid(track.accuracy, track.gap, grid) for track in tracks]
    rows = [[f"{number:.12g}" for number in row] for row in np.column_stack([grid, *columns]).tolist()]
    return write_csv(["acc", *map(str, range(len(tracks)))], rows)


def tracks_csv(tracks: Mapping[tuple[str, str, str], Track], groups: Sequence[Any]) -> str:
    """Every point of every track: policy, people, method, and the numbers of :class:`Track`."""
    names = ["eps", "accuracy", "gap", "error", "low", "high"]
    rows = [
        [*key, *(f"{number:.12g}" for number in (*track.at(i).values(), *track.means[i].tolist()))]
        for key, track in tracks.items()
        for i in range(len(track.eps))
    ]
    return write_csv(["policy", "people", "method", *names, *(f"mean {group}" for group in groups)], rows)


def write_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Text of a comma-separated file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
