"""Geometry of the page's charts: across in per cent, down in pixels, so that text never scales and nothing scrolls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from felicific._audit.quantity import FACTORS, POINTS, SHARE, Quantity
from felicific._problem.happiness import CURRENCIES
from felicific._shown.drawing import nice

#: Bins of scores in a histogram, which are also the width of its box.
BINS = 60

#: Letters of a unit that still fits beside every tick.
SHORT = 4

#: Pixels that a letter of a tick takes.
LETTER = 7.2


class Tick(NamedTuple):
    """A number on an axis, and where it stands in per cent."""

    place: float
    text: str
    zero: bool


@dataclass(frozen=True)
class Scale:
    """From numbers to per cent of a chart's width or height."""

    low: float
    high: float

    @classmethod
    def around(
        cls,
        estimates: Iterable[float | None],
        limits: Iterable[float | None] = (),
        *,
        zero: bool = False,
        room: float = 0.05,
    ) -> Scale:
        """From the least to the largest; a limit that is far from every estimate does not squeeze the others."""
        found = [number for number in estimates if number is not None] + ([0.0] if zero else [])
        far = [number for number in limits if number is not None]
        low, high = (min(found), max(found)) if found else (0.0, 1.0)
        width = high - low
        near = [number for number in far if not width or low - 2 * width <= number <= high + 2 * width]
        low, high = min([low, *near]), max([high, *near])
        pad = room * (high - low) or 0.05 * abs(high) or 1.0
        return cls(0.0 if zero and low == 0 else low - pad, high + pad)

    def at(self, number: float) -> float:
        """Where a number lies; one outside lies at the edge."""
        return min(max(100.0 * (number - self.low) / (self.high - self.low), 0.0), 100.0)

    def across(self, number: float | None, otherwise: float = 0.0) -> str:
        """As a length in per cent; ``otherwise`` if the number is not known."""
        return f"{otherwise if number is None else self.at(number):.1f}%"

    def span(self, interval: dict[str, Any]) -> tuple[str, str]:
        """Both ends of an interval: an end that is not known is the edge; if neither is, there is no line."""
        low, high, estimate = interval["low"], interval["high"], interval["estimate"]
        if low is None and high is None:
            return self.across(estimate), self.across(estimate)
        return self.across(low), self.across(high, 100.0)

    def reach(self, low: float | None, high: float | None) -> tuple[str, str]:
        """Where a bar begins, and how wide it is."""
        if low is None or high is None:
            return "0.0%", "0.0%"
        return self.across(low), f"{max(self.at(high) - self.at(low), 0.15):.1f}%"

    def places(self, numbers: Iterable[float]) -> list[float]:
        """Where several numbers lie."""
        return [self.at(number) for number in numbers]

    def lengths(self, numbers: Iterable[float | None], otherwise: float = 0.0) -> list[str]:
        """Several numbers as lengths."""
        return [self.across(number, otherwise) for number in numbers]

    def spans(self, intervals: Iterable[dict[str, Any]]) -> tuple[list[str], list[str]]:
        """Where several intervals begin, and where they end."""
        found = [self.span(interval) for interval in intervals]
        return [low for low, _ in found], [high for _, high in found]

    def reaches(self, pairs: Iterable[Sequence[float | None] | None]) -> tuple[list[str], list[str]]:
        """Where several bars begin, and how wide they are; one of which nothing is known is none."""
        found = [self.reach(*(pair or (None, None))) for pair in pairs]
        return [start for start, _ in found], [width for _, width in found]

    def ticks(self, quantity: Quantity, most: int = 4, *, change: bool = False) -> list[Tick]:
        """Round numbers, each with its text; changes with their sign."""
        factor = FACTORS.get(quantity.unit, 1.0)
        step = nice((self.high - self.low) * factor / most) / factor
        written = replace(quantity, step=step)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        numbers = [i * step for i in range(first, last + 1)]
        return [
            Tick(round(self.at(n), 2), written.change(n) if change else written(n), not round(n / step))
            for n in numbers
        ]


def for_axis(quantity: Quantity) -> Quantity:
    """How numbers are written along an axis: a long unit would stand in the way of the next number."""
    kept = quantity.unit in CURRENCIES or quantity.unit in (SHARE, POINTS) or len(quantity.unit) <= SHORT
    return quantity if kept else replace(quantity, unit="")


def label_width(texts: Iterable[str]) -> int:
    """Pixels that the widest of some ticks takes, with some room."""
    return math.ceil(LETTER * max((len(text.replace("\u2060", "")) for text in texts), default=1)) + 12


# ---------------------------------------------------------------------------------------------------------
# Paths, in a box of 100 by 100 that is stretched


def _points(xs: Sequence[float], ys: Sequence[float], steps: bool) -> str:
    """From point to point, or in steps: what is tighter holds until the next."""
    pairs = list(zip(xs, ys, strict=True))
    parts = [f"{x:.1f} {y:.1f}" for x, y in pairs]
    if steps:
        parts = parts[:1] + [
            f"{x:.1f} {before:.1f}L{x:.1f} {y:.1f}" for (_, before), (x, y) in pairwise(pairs)
        ]
    return "L".join(parts)


def line_path(xs: Sequence[float], ys: Sequence[float], *, steps: bool = False) -> str:
    """A line through points."""
    return f"M{_points(xs, ys, steps)}" if xs else ""


def band_path(xs: Sequence[float], limits: Sequence[Sequence[float] | None], *, steps: bool = False) -> str:
    """The area between two lines, wherever both are known."""
    found = []
    for known, run in groupby(zip(xs, limits, strict=True), key=lambda pair: pair[1] is not None):
        if not known:
            continue
        places, ends = zip(*run, strict=True)
        lows, highs = zip(*ends, strict=True)
        back = _points(places, lows, steps).split("L")[::-1]
        found.append(f"M{_points(places, highs, steps)}L{'L'.join(back)}Z")
    return "".join(found)


def bars_path(people: Sequence[float], most: float) -> str:
    """Bins of a histogram, as high as the square root of their people, so that few can be seen."""
    heights = [round(96 * math.sqrt(number / most)) if most and number > 0 else 0 for number in people]
    # A bin of few people among very many is still one that can be seen.
    heights = [
        max(height, 3) if number > 0.5 else height for height, number in zip(heights, people, strict=True)
    ]
    return "".join(
        f"M{start} 100V{'h1V'.join(str(100 - height) for height in run)}h1V100z"
        for start, run in _runs(heights)
    )


def bars_paths(rows: Iterable[Sequence[float]], most: float) -> list[str]:
    """Several histograms on one scale."""
    return [bars_path(people, most) for people in rows]


def _runs(heights: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Neighbouring bins that are not empty, with where they begin."""
    start = 0
    for filled, group in groupby(heights, key=bool):
        run = list(group)
        if filled:
            yield start, run
        start += len(run)


def stairs_path(steps: Sequence[Sequence[float]]) -> str:
    """The chance of being decided favourably along the scores; 0 at the foot and 1 at the top."""
    return "M0 98" + "".join(
        f"V{98 - 96 * chance:.0f}H{BINS * min(max(end, 0.0), 1.0):.2f}" for _, end, chance in steps
    )


def stairs_paths(rows: Iterable[Sequence[Sequence[float]]]) -> list[str]:
    """Several such lines."""
    return [stairs_path(steps) for steps in rows]
