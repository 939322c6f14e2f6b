"""Geometry of the charts of amounts: lines from predictions to amounts, distributions, and what a smaller gap costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from felicific._audit.quantity import SHARE, Quantity
from felicific._report.charts import Scale, Tick, for_axis, label_width, line_path
from felicific._report.words import Content, Names
from felicific._shown.parts import extremes

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
