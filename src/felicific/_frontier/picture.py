"""A frontier as a picture with its table, for notebooks: needs nothing but Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from felicific._problem.happiness import measured, written
from felicific._problem.loss import is_accuracy, loss_text, loss_words
from felicific._shown.drawing import plot
from felicific._shown.parts import Lines, Part, Picture, Table, short, spread

if TYPE_CHECKING:
    from felicific._frontier.frontier import Frontier

#: Gaps that the table shows, of several.
COLUMNS = 3

MORE = "to_frame() has all of them."


def parts_of(line: Frontier) -> list[Part]:
    """A line that says from where to where it goes, the picture and the table."""
    return [Lines([str(line)], strong=True), _picture(line), _table(line)]


def _picture(line: Frontier) -> Picture:
    name, (unit, along) = line.loss_name, _along(line)
    j, accuracy = line.closed_alone, is_accuracy(name)
    losses = np.append(line.loss, line.today.loss)
    *found, today = (1.0 - losses if accuracy else losses).tolist()
    drawn = plot(
        (unit * line.tau).tolist(),
        found,
        (unit * line.tau_today, today),
        write_x=lambda number: written(number, 4) if j is None else line.components[j].cell(number, 4),
        write_y=lambda number: f"{100 * number:.4g}%" if accuracy else written(number, 4),
        steps=not line.mixes,
    )
    what = loss_words(name)
    return Picture(f"{what[:1].upper()}{what[1:]} for every {along}", drawn, 9)


def _along(line: Frontier) -> tuple[float, str]:
    """What one tau is on the axis, and what the axis shows."""
    j = line.closed_alone
    if j is not None:
        component = line.components[j]
        unit = "" if component.in_currency or not component.unit else f" ({short(component.unit, 16)})"
        return float(line.ray[j]), f"allowed gap of {short(component.title)!r}{unit}"
    if line.limit:
        return 1.0, f"number that is asked for, {line.limit}"
    return 1.0, "allowed gap, all of them in proportion"


def _table(line: Frontier) -> Table:
    tiny = 1e-12 * np.nanmax(np.abs(line.means), axis=(0, 1))
    own = measured(line.components)
    shown = own[:COLUMNS]
    names = tuple(f"gap of {short(line.components[j].title, 28)}" for j in shown)
    header = ("place", loss_words(line.loss_name), *names)

    def row(name: str, loss: float, gaps: np.ndarray) -> tuple[str, ...]:
        # What is left of an exact zero after rounding is zero to a reader.
        numbers = [float(gaps[j]) if gaps[j] > tiny[j] else 0.0 for j in shown]
        told = (line.components[j].cell(number) for j, number in zip(shown, numbers, strict=True))
        return (name, loss_text(line.loss_name, loss), *told)

    rows = [row(line.place(i), line.loss[i], line.gaps[i]) for i in range(len(line))]
    others = [f"{len(own) - COLUMNS:,} more gaps: to_frame()."] if len(own) > COLUMNS else []
    today = row("today", line.today.loss, line.today.gaps)
    return Table("", header, rows, MORE, foot=[today], keep=spread, remarks=others)
