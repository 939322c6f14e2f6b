"""Curves: what the policies of a frontier do to people they were not fitted on, and tables of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from felicific._frontier.breakpoints import Breakpoint, MovingRow
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure
from felicific._program.aggregates import Aggregates, Outcome, gaps_of
from felicific._shown.parts import clipped
from felicific._tables.memory import table_maker
from felicific._typing import Floats, Truths


@dataclass(frozen=True)
class SolvedFrontier:
    """What is known of a frontier once it is solved.

    Attributes
    ----------
    moving : list of MovingRow
        What is allowed at tau is tau times each one's width.
    points : list of Breakpoint
        From the least gap to the least loss.
    baseline : Outcome
        What the model's own decisions do.
    sums : Aggregates
        Which say what tables of probabilities do.
    policy : callable
        The policy of some probabilities, given what they do.
    rounding : float
        How far apart two positions may be without being told from each other.
    tau_baseline : float
        Where the baseline's decisions stand.
    mixes : bool
        Whether policies of two positions mix to one between; not where fractions are compared, or a Ratio moves.
    solve : callable, or None
        Where they do not: the point at a position, by a program of its own; None once it is stored.
    limit : {"", "at least", "at most"}
        Where the number of one requirement moves, what it is; positions are that number, from the tightest on.
    """

    moving: list[MovingRow]
    points: list[Breakpoint]
    baseline: Outcome | None
    sums: Aggregates
    policy: Callable[[Floats, Outcome], Policy]
    rounding: float
    tau_baseline: float = 0.0
    mixes: bool = True
    solve: Callable[[float], Breakpoint] | None = None
    limit: str = ""

    @cached_property
    def sign(self) -> float:
        """1 where larger positions are looser, -1 where they are tighter."""
        return -1.0 if self.limit == "at least" else 1.0

    def tighter(self, tau: float) -> Breakpoint:
        """The loosest point that was found which keeps to a position."""
        kept = [point for point in self.points if self.sign * (point.tau - tau) <= self.rounding]
        return min(kept or self.points[:1], key=lambda point: point.value)


@dataclass(frozen=True, eq=False)
class Curve:
    """What the policies of a frontier do to people they were not fitted on.

    Attributes
    ----------
    measures, groups : tuple
        As on the frontier.
    tau : array of shape (points,)
        Where on the frontier each point lies: its breakpoints, and the kinks between them.
    loss : array of shape (points,)
    means : array of shape (points, groups, measures)
    gaps : array of shape (points, measures)
    kink : array of shape (points,)
        True for a point that is no breakpoint of the frontier: two groups change places there.
    baseline : Outcome or None
        What the model's own decisions do to these people.
    """

    measures: tuple[Measure, ...]
    groups: tuple[Any, ...]
    tau: Floats
    loss: Floats
    means: Floats
    gaps: Floats
    kink: Truths
    baseline: Outcome | None = None

    def __repr__(self) -> str:
        ends = [f"{one.name!r} {_ends(self.gaps[:, j])}" for j, one in enumerate(self.measures)]
        text = f"Curve of {len(self.tau):,} points: loss {_ends(self.loss)}; gap of {', of '.join(ends)}."
        return f"{clipped(text)} to_frame() has all of it."

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per point: tau, loss, whether it is a kink, gaps and group means, by name."""
        more = {"kink": self.kink.tolist()}
        return table_of(self.measures, self.groups, self.tau, self.loss, more, self.gaps, self.means)

    def to_frame(self) -> Any:
        """The points as a pandas or Polars dataframe."""
        return table_maker("auto")({name: np.array(column) for name, column in self.to_dict().items()})


def _ends(numbers: Floats) -> str:
    first, last = (round(float(number), 12) + 0.0 for number in (numbers[0], numbers[-1]))
    return f"{first:.6g} to {last:.6g}"


def curve(
    measures: tuple[Measure, ...],
    groups: tuple[Any, ...],
    tau: Floats,
    outcomes: list[Outcome],
    baseline: Outcome | None = None,
    compared: Truths | None = None,
    *,
    mixes: bool = True,
) -> Curve:
    """Join what the policies at some places of a frontier do to other people, with the kinks between them.

    Gaps are between the groups that each measure compares, by default all. Where policies of two places do not mix
    there are no kinks; nor of a fraction, which is no straight line.
    """
    losses = np.array([outcome.loss for outcome in outcomes])
    means = np.array([outcome.means for outcome in outcomes])
    places, kinks = [0.0], [False]
    for i in range(len(outcomes) - 1):
        plain = [j for j, measure in enumerate(measures) if mixes and not measure.over]
        crossings = sorted({t for j in plain for t in kinks_of(means[i, :, j], means[i + 1, :, j])})
        places += [*(i + t for t in crossings), i + 1.0]
        kinks += [*(True for _ in crossings), False]
    index = np.arange(len(outcomes), dtype=np.float64)

    def straight(numbers: Floats) -> Floats:
        flat = numbers.reshape(len(numbers), -1).T
        joined = np.array([np.interp(places, index, column) for column in flat]).T
        return joined.reshape(len(places), *numbers.shape[1:])

    lines = straight(means)
    bent = [j for j, measure in enumerate(measures) if measure.over]
    for j in bent:
        lines[np.array(kinks), :, j] = np.nan
    return Curve(
        measures=measures,
        groups=groups,
        tau=straight(tau),
        loss=straight(losses),
        means=lines,
        gaps=np.stack([gaps_of(there, compared) for there in lines]),
        kink=np.array(kinks),
        baseline=baseline,
    )


def kinks_of(left: Floats, right: Floats) -> list[float]:
    """Where, between 0 and 1, the largest or the smallest of some straight lines becomes another one."""
    kinks = set()
    for a in range(len(left)):
        for b in range(a):
            apart, after = left[a] - left[b], right[a] - right[b]
            if apart * after >= 0:
                continue
            t = float(apart / (apart - after))
            there = (1 - t) * left + t * right
            # Any value between those of the two lines will do: they meet here.
            if there[a] >= there.max() - 1e-12 * np.ptp(there) or there[a] <= there.min() + 1e-12 * np.ptp(
                there
            ):
                kinks.add(t)
    return sorted(kinks)


def table_of(
    measures: tuple[Measure, ...],
    groups: tuple[Any, ...],
    tau: Floats,
    loss: Floats,
    more: dict[str, list[Any]],
    gaps: Floats,
    means: Floats,
) -> dict[str, list[Any]]:
    """Columns by name, for frontiers and curves."""
    table: dict[str, list[Any]] = {"tau": tau.tolist(), "loss": loss.tolist()} | more
    names = [str(group) for group in groups]
    if len(set(names)) < len(names):
        names = [repr(group) for group in groups]  # 1 and "1"
    for j, measure in enumerate(measures):
        table[f"gap of {measure.name}"] = gaps[:, j].tolist()
        for z, group in enumerate(names):
            table[f"mean {measure.name} of {group}"] = means[:, z, j].tolist()
    return table
