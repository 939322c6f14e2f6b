"""Geometry of the page's charts: across in per cent, down in pixels, so that text never scales and nothing scrolls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from felicific._audit.quantity import FACTORS, POINTS, SHARE, Quantity
from felicific._problem.happiness import CURRENCIES
from felicific._report.words import Content, Names
from felicific._shown.drawing import nice
from felicific._shown.parts import extremes

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


# ---------------------------------------------------------------------------------------------------------
# Geometry of the charts of amounts: lines from predictions to amounts, distributions, and what a smaller gap
# costs.


#: Groups that are drawn in one chart; of more, those of the least and the largest means.
DRAWN = 5

#: How shares are written along an axis.
SHARES = Quantity(SHARE, 0.01)


@dataclass(frozen=True)
class Panel:
    """A chart: everything in per cent of its width and of its height, from the left and from the top.

    Attributes
    ----------
    title, label : str
        Above it, and for those who cannot see it.
    across, down : list of Tick
        Numbers along its axes.
    width : int
        Pixels that the numbers of the upright axis take.
    paths : list of (str, str)
        Classes and shapes of lines.
    marks : list of (str, float, float)
        Classes and places of dots.
    bars : list of (float, float, float)
        Upright bars: where, and from where to where.
    axis : str
        What stands along the axis.
    words : str
        What is said below it.
    """

    title: str
    label: str
    across: list[Tick]
    down: list[Tick]
    width: int
    paths: list[tuple[str, str]]
    axis: str
    marks: list[tuple[str, float, float]] = field(default_factory=list)
    bars: list[tuple[float, float, float]] = field(default_factory=list)
    words: str = ""


def drawn_groups(content: Content, j: int | None) -> list[int]:
    """Positions of the groups that are drawn: of very many those whose mean by the baseline is least and largest."""
    groups = range(len(content["groups"]))
    if len(groups) <= DRAWN or j is None:
        return [*groups][:DRAWN]
    means = [mean["estimate"] for mean in content["points"]["baseline"]["measures"][j]["means"]]
    return sorted(extremes([0.0 if mean is None else mean for mean in means], DRAWN))


def lines_panel(content: Content, quantity: Quantity, drawn: Sequence[int]) -> Panel | None:
    """The amount for every prediction, group by group, and the line on which nothing changes."""
    lines = content["lines"]
    if not lines:  # who looks at people themselves has none
        return None
    shown = [lines[z] for z in drawn] if content["policy"]["sees_group"] else lines[:1]
    xs = [x for line in shown for x in line["prediction"]]
    ys = [y for line in shown for y in line["amount"]]
    ys += [end for line in shown for atom in line["atoms"] for end in atom[1:3]]
    if not xs:
        return None
    across, up = Scale.around(xs, room=0.02), Scale.around(ys, room=0.06)
    low, high = max(across.low, up.low), min(across.high, up.high)
    ends = (low, high) if low < high else ()
    paths = [("identity", line_path(across.places(ends), _down(up, ends)))]
    bars: list[tuple[float, float, float]] = []
    for i, line in enumerate(shown):
        paths.append(
            (f"series g{i}", line_path(across.places(line["prediction"]), _down(up, line["amount"])))
        )
        for at, first, last, _ in line["atoms"]:
            top, bottom = _down(up, (last, first))
            bars.append((across.at(at), top, bottom))
    ticks = _upright(up, quantity, 7)
    return Panel(
        "Amount, for every prediction",
        "What every group gets for which prediction; the sentences below say the same",
        across.ticks(for_axis(quantity), 6),
        ticks,
        label_width(tick.text for tick in ticks),
        paths,
        "prediction",
        bars=bars,
    )


def distribution_panels(
    content: Content, names: Names, quantity: Quantity, drawn: Sequence[int]
) -> list[Panel]:
    """The share of every group above an amount, before and after; a bar where groups are furthest apart."""
    spread = content["distributions"]
    places = spread["amounts"]
    across, up = Scale(places[0], places[-1]), Scale(0.0, 1.0)
    ticks = _upright(up, SHARES)
    found = []
    for name, words in (("baseline", "Baseline"), ("proposed", "Then")):
        shares = [spread[name][z] for z in drawn]
        paths = [
            (f"series g{i}", line_path(across.places(places), _down(up, share)))
            for i, share in enumerate(shares)
        ]
        bars, said = _furthest(content, names, name, across, up, quantity)
        found.append(
            Panel(
                f"{words}: share of people who get more than an amount",
                f"{words}, the share of every group that gets more than each amount",
                across.ticks(for_axis(quantity), 6),
                ticks,
                label_width(tick.text for tick in ticks),
                paths,
                "amount",
                bars=bars,
                words=said,
            )
        )
    return found


def _furthest(
    content: Content, names: Names, name: str, across: Scale, up: Scale, quantity: Quantity
) -> tuple[list[tuple[float, float, float]], str]:
    """A bar between the groups that are furthest apart, and what it says."""
    for j, part in enumerate(content["measures"]):
        point = content["points"][name]["measures"][j]
        if not part["parity"] or point["at"] is None or point["gap"]["estimate"] is None:
            continue
        compared = [z for z, group in enumerate(content["groups"]) if group["compared"]]
        shares = {z: point["means"][z]["estimate"] for z in compared}
        top, bottom = (pick(compared, key=shares.__getitem__) for pick in (max, min))
        low, high = _down(up, (shares[bottom], shares[top]))
        texts = SHARES.texts([shares[top], shares[bottom]])
        said = (
            f"Furthest apart at {quantity(point['at'])}: {texts[0]} of {names.groups[top].said} get more, "
            f"{texts[1]} of {names.groups[bottom].said}."
        )
        return [(across.at(point["at"]), high, low)], said
    return [], ""


def frontier_panels(
    content: Content, names: Names, loss: Quantity, losses: dict[str, Any]
) -> tuple[list[Panel], str]:
    """What is lost at every gap that is aimed at, and the gap that is then found on these people."""
    line = content["frontier"]
    moving = [j for j, width in enumerate(line["widest"]) if width]
    alone = moving[0] if len(moving) == 1 else None
    quantity = SHARES if alone is None else names.quantities[alone]
    size = 1.0 if alone is None else line["widest"][alone]
    xs = [place * size for place in line["places"]]
    across = Scale.around([*xs, 0.0], room=0.03)
    at = line["proposed"] * size
    axis = "gap aimed at" if alone is not None else "gaps aimed at, in per cent of the widest"
    panels = [
        _along(
            f"{losses['title']} on these people",
            across,
            (xs, losses["along"]),
            loss,
            quantity,
            (at, losses["proposed"]),
            losses["baseline"],
            axis,
        )
    ]
    for j in moving[:2]:
        here = content["points"]
        panels.append(
            _along(
                f"Gap in {names.measures[j].said} that is found on these people",
                across,
                (xs, [gaps[j] for gaps in line["gaps"]]),
                names.quantities[j],
                quantity,
                (at, here["proposed"]["measures"][j]["gap"]["estimate"]),
                here["baseline"]["measures"][j]["gap"]["estimate"],
                axis,
            )
        )
    return panels, axis


def _along(
    title: str,
    across: Scale,
    curve: tuple[Sequence[float], Sequence[float]],
    quantity: Quantity,
    along: Quantity,
    proposed: tuple[float, float],
    baseline: float,
    axis: str,
) -> Panel:
    """A curve along the gaps that are aimed at, with a mark for what is proposed and a line for the baseline."""
    xs, ys = curve
    up = Scale.around([*ys, proposed[1], baseline], room=0.08)
    ticks = _upright(up, quantity)
    level = _down(up, (baseline, baseline))
    return Panel(
        title,
        f"{title}, for every gap aimed at; the table holds the numbers",
        across.ticks(for_axis(along), 5),
        ticks,
        label_width(tick.text for tick in ticks),
        [
            ("boundary", line_path((0.0, 100.0), level)),
            ("curve", line_path(across.places(xs), _down(up, ys))),
        ],
        axis,
        [("mark", across.at(proposed[0]), _down(up, proposed[1:])[0])],
    )


def _upright(scale: Scale, quantity: Quantity, most: int = 4) -> list[Tick]:
    """Ticks from the top."""
    return [
        Tick(round(100.0 - tick.place, 2), tick.text, tick.zero)
        for tick in scale.ticks(for_axis(quantity), most)
    ]


def _down(scale: Scale, numbers: Sequence[float]) -> list[float]:
    """Where numbers lie from the top."""
    return [100.0 - place for place in scale.places(numbers)]
