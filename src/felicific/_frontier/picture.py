"""A frontier as a picture with its table, for notebooks: needs nothing but Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from felicific._frontier.breakpoints import Breakpoint
from felicific._problem.happiness import measured, written
from felicific._problem.loss import is_accuracy, loss_text, loss_words
from felicific._shown.drawing import plot
from felicific._shown.parts import LINES, Lines, Part, Picture, Table, short, spread

if TYPE_CHECKING:
    from felicific._frontier.frontier import Frontier

#: Gaps that the table shows, of several.
COLUMNS = 3

MORE = "to_frame() has all of them."

#: Points of a drawing at most: more cannot be told apart.
MOST = 200


def drawn(line: Frontier) -> tuple[list[float], list[float]]:
    """Where the points of a drawing lie on the ray, and their losses: both ends, and the others evenly along the curve.

    No other policy has to be found.
    """
    tau, value = line.tau, line.value
    kept = np.arange(len(tau))
    if len(tau) > MOST:
        steps = [np.diff(part) / (np.ptp(part) or 1.0) for part in (tau, value)]
        length = np.append(0.0, np.hypot(*steps).cumsum())
        kept = np.unique(np.searchsorted(length, np.linspace(0.0, length[-1], MOST)))
    points = line.points
    return tau[kept].tolist(), [loss_of(line, points[i]) for i in kept]


def loss_of(line: Frontier, point: Breakpoint) -> float:
    """The loss at a point, without what changed decisions cost; where they cost nothing its policy is not needed."""
    return point.outcome.loss if line.change_cost else point.value


def parts_of(line: Frontier) -> list[Part]:
    """A line that says from where to where it goes, the picture and the table."""
    return [Lines([str(line)], strong=True), _picture(line), _table(line)]


def _picture(line: Frontier) -> Picture:
    name, (unit, axis) = line.loss_name, _axis(line)
    j, accuracy = line.closed_alone, is_accuracy(name)
    taus, losses = drawn(line)
    now = [] if line.baseline is None else [line.baseline.loss]
    heights = [1.0 - loss if accuracy else loss for loss in (*losses, *now)]
    drawing = plot(
        [unit * tau for tau in taus],
        heights[: len(losses)],
        (unit * line.tau_baseline, heights[-1]) if now else None,
        write_x=lambda number: written(number, 4) if j is None else line.measures[j].cell(number, 4),
        write_y=lambda number: f"{100 * number:.4g}%" if accuracy else written(number, 4),
        steps=not line.mixes,
    )
    what = loss_words(name)
    return Picture(f"{what[:1].upper()}{what[1:]} for every {axis}", drawing, 9)


def _axis(line: Frontier) -> tuple[float, str]:
    """What one tau is on the axis, and what the axis shows."""
    j = line.closed_alone
    if j is not None:
        measure = line.measures[j]
        unit = "" if measure.in_currency or not measure.unit else f" ({short(measure.unit, 16)})"
        return float(line.ray[j]), f"allowed gap of {short(measure.title)!r}{unit}"
    if line.limit:
        return 1.0, f"number that is asked for, {line.limit}"
    return 1.0, "allowed gap, all of them in proportion"


def _table(line: Frontier) -> Table:
    points = line.points
    kept = spread(len(line), MOST if len(line) <= MOST else LINES)  # no more rows than are ever shown
    outcomes = [points[i].outcome for i in kept]
    tiny = 1e-12 * np.nanmax(np.abs([outcome.means for outcome in outcomes]), axis=(0, 1))
    own = measured(line.measures)
    columns = own[:COLUMNS]
    names = tuple(f"gap of {short(line.measures[j].title, 28)}" for j in columns)
    header = ("place", loss_words(line.loss_name), *names)

    def row(name: str, loss: float, gaps: np.ndarray) -> tuple[str, ...]:
        # What is left of an exact zero after rounding is zero to a reader.
        numbers = [float(gaps[j]) if gaps[j] > tiny[j] else 0.0 for j in columns]
        cells = (line.measures[j].cell(number) for j, number in zip(columns, numbers, strict=True))
        return (name, loss_text(line.loss_name, loss), *cells)

    rows = [
        row(line.place(i), loss_of(line, points[i]), outcome.gaps)
        for i, outcome in zip(kept, outcomes, strict=True)
    ]
    others = [f"{len(own) - COLUMNS:,} more gaps: to_frame()."] if len(own) > COLUMNS else []
    baseline = [] if line.baseline is None else [row("baseline", line.baseline.loss, line.baseline.gaps)]
    left_out = len(line) - len(rows)
    return Table("", header, rows, MORE, foot=baseline, keep=spread, remarks=others, left_out=left_out)
