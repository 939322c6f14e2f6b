"""Small drawings as SVG, without any library: across in per cent and down in pixels, so that letters never scale.

Letters and axes have the colour of the page around them. Lines and dots have colours that stand out by three to one
both from white and from near black (relative luminance between 0.12 and 0.30), those of Okabe and Ito (2008) among
them; and every lane has its name beside it, so that no colour has to be told from another.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence

#: Colours of lanes, in turn.
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b0578d", "#7a6fd0")

#: That of what there is one of.
ACCENT = "#7a6fd0"

#: Pixels: of a line of text, of a lane below its name, of a plot.
TEXT, LANE, PLOT = 17, 24, 170


def nice(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers from the least to the largest."""
    step = nice((high - low) / most)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def room_around(numbers: Sequence[float], room: float = 0.06) -> tuple[float, float]:
    """From where to where an axis goes that shows these numbers."""
    low, high = min(numbers), max(numbers)
    pad = room * (high - low) or 0.05 * abs(high) or 1.0
    return low - pad, high + pad


def stairs(
    names: Sequence[str],
    steps: Sequence[Sequence[tuple[float, float, float]]],
    boundary: float | None,
    ends: tuple[float, float] = (0.0, 1.0),
) -> str:
    """A chance along the scores from one end to the other, a lane for each name: steps are (from, to, chance).

    The dashed line is the boundary.
    """
    left, right = ends

    def across(score: float) -> float:
        return 100 * (score - left) / (right - left)

    parts, y = [], 0
    for i, (name, lane) in enumerate(zip(names, steps, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        path = "".join(f"L{across(low):.2f} {_up(q)}L{across(high):.2f} {_up(q)}" for low, high, q in lane)
        line, area = f"M{path[1:]}", f"M0 100{path}L100 100Z"
        parts.append(_text(0, y + 12, name))
        parts.append(
            _box(
                y + TEXT, LANE, f'<path d="{area}" fill="{colour}" fill-opacity=".25"/>{_line(line, colour)}'
            )
        )
        parts.append(f'<line class="faint" x1="0" x2="100%" y1="{y + TEXT + LANE}" y2="{y + TEXT + LANE}"/>')
        y += TEXT + LANE + 6
    if boundary is not None:
        parts.append(_upright(across(boundary), TEXT - 3, y - 6))
    shown = (0.0, 0.25, 0.5, 0.75, 1.0) if ends == (0.0, 1.0) else ticks(left, right)
    axis = [_text(across(score), y + 8, f"{score:.6g}", _anchor(across(score))) for score in shown]
    return _drawing("".join(parts + axis), y + 12, "A chance along the scores, for: " + ", ".join(names))


def lanes(
    names: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float],
    write: Callable[[float], str],
) -> str:
    """From one number to another, a lane for each name: a diamond before, a dot after."""
    low, high = room_around([number for number in [*before, *after] if number is not None])
    parts, y = [], 0
    for i, (name, then, now) in enumerate(zip(names, before, after, strict=True)):
        colour, middle = COLOURS[i % len(COLOURS)], y + TEXT + 7
        place = 100 * (now - low) / (high - low)
        parts.append(_text(0, y + 12, name))
        parts.append(f'<line class="faint" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>')
        if then is not None:
            first = 100 * (then - low) / (high - low)
            parts.append(
                f'<line x1="{first:.2f}%" x2="{place:.2f}%" y1="{middle}" y2="{middle}" stroke="{colour}" '
                'stroke-width="3"/>' + _diamond(first, middle)
            )
        parts.append(f'<circle cx="{place:.2f}%" cy="{middle}" r="5" fill="{colour}"/>')
        y += TEXT + 18
    parts += _axis(low, high, y, write)
    return _drawing("".join(parts), y + 16, "Numbers before and after, of: " + ", ".join(names))


def plot(
    xs: Sequence[float],
    ys: Sequence[float],
    baseline: tuple[float, float] | None,
    *,
    write_x: Callable[[float], str],
    write_y: Callable[[float], str],
    steps: bool = False,
) -> str:
    """A line through points, each a dot while they can be told apart; the baseline is a diamond.

    With ``steps`` what is found at a point holds until the next.
    """
    known = [] if baseline is None else [baseline]
    left, right = room_around([*xs, *(x for x, _ in known)])
    low, high = room_around([*ys, *(y for _, y in known)], 0.12)
    across = [100 * (x - left) / (right - left) for x in xs]
    down = [100 * (high - y) / (high - low) for y in ys]
    parts = []
    for number in ticks(low, high):
        y = PLOT * (high - number) / (high - low)
        parts.append(f'<line class="faint" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(0, y - 3, write_y(number)))
    path = f"M{across[0]:.2f} {down[0]:.2f}"
    for i in range(1, len(across)):
        path += (f"H{across[i]:.2f}V{down[i]:.2f}") if steps else f"L{across[i]:.2f} {down[i]:.2f}"
    parts.append(_box(0, PLOT, _line(path, ACCENT)))
    dots = range(len(xs)) if len(xs) <= 40 else (0, len(xs) - 1)
    parts += [
        f'<circle cx="{across[i]:.2f}%" cy="{PLOT * down[i] / 100:.1f}" r="3.5" fill="{ACCENT}"/>'
        for i in dots
    ]
    for x, y in known:
        place, height = 100 * (x - left) / (right - left), PLOT * (high - y) / (high - low)
        side = "end" if place > 50 else "start"
        parts.append(_diamond(place, height))
        shift = -11 if side == "end" else 11
        parts.append(
            f'<text x="{place:.2f}%" y="{height + 4:.1f}" dx="{shift}" text-anchor="{side}">baseline</text>'
        )
    parts += _axis(left, right, PLOT, write_x)
    return _drawing("".join(parts), PLOT + 20, "The least loss for every allowed gap")


def curves(
    names: Sequence[str],
    lines: Sequence[tuple[Sequence[float], Sequence[float]]],
    write: Callable[[float], str],
    label: str,
) -> str:
    """Lines through points in one plot, each with a pattern and its name above; dashed: both numbers are equal."""
    left, right = room_around([x for xs, _ in lines for x in xs], 0.02)
    low, high = room_around([y for _, ys in lines for y in ys])
    parts, top = [], TEXT * len(names) + 6
    for i, name in enumerate(names):
        middle = TEXT * i + 9
        parts.append(f'<line x1="0" x2="26" y1="{middle}" y2="{middle}" {_pattern(i)}/>')
        parts.append(f'<text x="34" y="{middle + 4}">{html.escape(name)}</text>')
    for number in ticks(low, high):
        y = top + PLOT * (high - number) / (high - low)
        parts.append(f'<line class="faint" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(0, y - 3, write(number)))

    def path(xs: Sequence[float], ys: Sequence[float]) -> str:
        places = [
            f"{100 * (x - left) / (right - left):.2f} {100 * (high - y) / (high - low):.2f}"
            for x, y in zip(xs, ys, strict=True)
        ]
        return "M" + "L".join(places)

    ends = max(left, low), min(right, high)
    drawn = []
    if ends[0] < ends[1]:
        drawn.append(
            f'<path class="dashed" d="{path(ends, ends)}" fill="none" vector-effect="non-scaling-stroke"/>'
        )
    for i, (xs, ys) in enumerate(lines):
        drawn.append(
            f'<path d="{path(xs, ys)}" fill="none" {_pattern(i)} vector-effect="non-scaling-stroke"/>'
        )
    parts.append(_box(top, PLOT, "".join(drawn)))
    parts += _axis(left, right, top + PLOT, write)
    return _drawing("".join(parts), top + PLOT + 20, f"{label}: " + ", ".join(names))


#: Patterns of lines in one plot, in turn, so that no colour has to be told from another.
PATTERNS = ("", "8 4", "2.5 3", "10 3 2.5 3", "16 5")


def _pattern(i: int) -> str:
    dashes = PATTERNS[i % len(PATTERNS)]
    return f'stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"' + (
        f' stroke-dasharray="{dashes}"' if dashes else ""
    )


def _drawing(content: str, height: float, label: str) -> str:
    said = html.escape(label)
    return f'<svg role="img" aria-label="{said}" width="100%" height="{height:.0f}">{content}</svg>'


def _box(y: float, height: float, content: str) -> str:
    """A box of 100 by 100 that is stretched."""
    return (
        f'<svg y="{y}" width="100%" height="{height}" viewBox="0 0 100 100" preserveAspectRatio="none">'
        f"{content}</svg>"
    )


def _line(path: str, colour: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" vector-effect="non-scaling-stroke"/>'


def _axis(low: float, high: float, y: float, write: Callable[[float], str]) -> list[str]:
    """Round numbers below a line."""
    places = [(100 * (number - low) / (high - low), number) for number in ticks(low, high)]
    line = f'<line class="faint" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
    return [line, *(_text(place, y + 14, write(number), _anchor(place)) for place, number in places)]


def _anchor(place: float) -> str:
    return "start" if place < 6 else "end" if place > 94 else "middle"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    placed = f'text-anchor="{anchor}"'
    return f'<text x="{x:.2f}%" y="{y:.1f}" {placed}>{html.escape(text)}</text>'


def _upright(x: float, top: float, bottom: float) -> str:
    return f'<line class="dashed" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{bottom}"/>'


def _diamond(x: float, y: float) -> str:
    path = '<path class="mark" d="M0-7L7 0 0 7-7 0Z"/>'
    return f'<svg x="{x:.2f}%" y="{y:.1f}" width="1" height="1">{path}</svg>'


def _up(chance: float) -> str:
    return f"{100 * (1 - chance):.1f}"
