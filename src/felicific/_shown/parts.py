"""What people see of an object: a few lines in a terminal, and the same in a notebook, with a picture.

An object says in parts what there is to see: lines, tables and pictures. Text and HTML are made of the same parts, and
nobody is shown more than :data:`LINES` lines: what is long gets shorter, and says how much more there is and where.

Letters have the colour of the page around them and the ground is left alone, so that a light page, a dark one and a
printed one are readable alike, whoever made it. Nothing has an id, and rules of style begin with ``.felicific``: many
outputs stand on one page.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import ClassVar, Protocol, Self

#: Lines that anybody is shown.
LINES = 30

#: Letters of a line; a longer one counts as several.
COLUMNS = 100

#: Letters of a sentence that is shown whole.
LONGEST = 3 * COLUMNS

#: Groups of which a policy speaks when it is printed.
GROUPS = 20

#: How short a list or a table may get.
FEWEST = 2

#: Signs that Python does not call printable, and that numbers and names are written with: spaces and joiners that keep
#: a line together, and what keeps a name that is written from right to left by itself.
KEPT = (
    "\N{NO-BREAK SPACE}\N{WORD JOINER}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
    "\N{FIRST STRONG ISOLATE}\N{POP DIRECTIONAL ISOLATE}"
)

STYLE = (
    "<style>"
    ".felicific{max-width:54rem;overflow-wrap:anywhere}"
    "div.felicific p{margin:.3em 0}"
    "div.felicific ul{margin:.3em 0;padding-left:1.2em}"
    ".felicific figure{margin:.7em 8px .5em}"
    ".felicific figcaption,.felicific caption{font-weight:bold;text-align:left;caption-side:top;margin-bottom:.4em;"
    "color:inherit;padding:.2em 0}"
    ".felicific .scrolls{overflow-x:auto}"
    ".felicific table{margin:.5em 0;border-collapse:collapse;color:inherit;font-size:.9em}"
    ".felicific :is(th,td){text-align:right;padding:.15em .6em;color:inherit;white-space:nowrap}"
    ".felicific :is(th,td):first-child,.felicific .words :is(th,td):last-child{text-align:left}"
    ".felicific .words :is(th,td):last-child{white-space:normal;overflow-wrap:normal;min-width:11em}"
    ".felicific svg{display:block;overflow:visible;font:12px system-ui,sans-serif}"
    ".felicific text{fill:currentColor}"
    ".felicific .faint{stroke:currentColor;stroke-opacity:.25}"
    ".felicific .dashed{stroke:currentColor;stroke-dasharray:4 3}"
    ".felicific .mark{fill:currentColor}"
    "</style>"
)


class Part(Protocol):
    """A part of what is seen."""

    @property
    def height(self) -> int:
        """How many lines it takes."""

    def shortened(self, most: int) -> Part:
        """With at most so many of its lines or rows, and how many more there are."""

    def text(self) -> list[str]:
        """For a terminal."""

    def html(self) -> str:
        """For a notebook."""


@dataclass(frozen=True)
class Lines:
    """Sentences, or lines of any other kind.

    Attributes
    ----------
    lines : sequence of str
    more : str
        Where the others are, if not all are shown; empty for lines that are always shown.
    listed : bool
        Whether a notebook shows them as a list.
    strong : bool
        Whether they are what matters.
    plain : sequence of str, or None
        What a terminal shows instead.
    longest : int
        Letters of a line that is shown whole.
    """

    lines: Sequence[str]
    more: str = ""
    listed: bool = False
    strong: bool = False
    plain: Sequence[str] | None = None
    longest: int = LONGEST
    left_out: int = 0

    @property
    def height(self) -> int:
        """Long lines are several."""
        return lines_of(self.text())

    def shortened(self, most: int) -> Self:
        """The first ones."""
        if not self.more or len(self.lines) <= most:
            return self
        return replace(self, lines=self.lines[:most], left_out=self.left_out + len(self.lines) - most)

    def text(self) -> list[str]:
        """Line by line."""
        shown = self.lines if self.plain is None else self.plain
        return [*(clipped(line, self.longest) for line in shown), *_left_out(self.left_out, self.more)]

    def html(self) -> str:
        """Paragraphs, or a list."""
        lines = [html.escape(line) for line in (clipped(line, self.longest) for line in self.lines)]
        if self.listed:
            found = f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>" if lines else ""
        else:
            found = "".join(
                f"<p><strong>{line}</strong></p>" if self.strong else f"<p>{line}</p>" for line in lines
            )
        return found + _paragraphs(_left_out(self.left_out, self.more))


@dataclass(frozen=True)
class Table:
    """Columns of text.

    Attributes
    ----------
    caption : str
    header, rows, foot : rows of cells
        Those of the foot are always shown.
    more : str
        Where the other rows are, if not all are shown.
    keep : callable
        Positions of the rows that are shown, of so many rows at most so many; by default the first.
    remarks : sequence of str
        What is said below it.
    words : bool
        Whether the last column is words; numbers stand to the right.
    """

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    more: str
    foot: Sequence[tuple[str, ...]] = ()
    keep: Callable[[int, int], Iterable[int]] = lambda n, most: range(most)
    remarks: Sequence[str] = ()
    words: bool = False
    left_out: int = 0

    @property
    def height(self) -> int:
        """With caption and header."""
        return lines_of(self.text())

    def shortened(self, most: int) -> Self:
        """The rows that are to be kept."""
        if len(self.rows) <= most:
            return self
        kept = [self.rows[i] for i in self.keep(len(self.rows), most)]
        return replace(self, rows=kept, left_out=self.left_out + len(self.rows) - len(kept))

    def text(self) -> list[str]:
        """Columns side by side."""
        rows = [*self.rows, *self.foot]
        columns = table_lines(self.header, rows, words=self.words)
        below = [*_left_out(self.left_out, self.more), *self.remarks]
        return [
            *([self.caption] if self.caption else []),
            *columns,
            *(f"  {clipped(line)}" for line in below),
        ]

    def html(self) -> str:
        """A table that scrolls where it is too wide."""

        def cells(row: tuple[str, ...], tag: str) -> str:
            return (
                "<tr>" + "".join(f"<{tag}><bdi>{html.escape(cell)}</bdi></{tag}>" for cell in row) + "</tr>"
            )

        body = "".join(cells(row, "td") for row in [*self.rows, *self.foot])
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        kind = ' class="words"' if self.words else ""
        # Whoever has no mouse scrolls by keyboard.
        return (
            f'<div class="scrolls" tabindex="0" role="group"><table{kind}>{caption}<thead>{cells(self.header, "th")}'
            f"</thead><tbody>{body}</tbody></table></div>"
        ) + _paragraphs([*_left_out(self.left_out, self.more), *map(clipped, self.remarks)])


@dataclass(frozen=True)
class Picture:
    """A drawing, for notebooks alone.

    Attributes
    ----------
    caption : str
    drawn : str
        SVG, with everything escaped.
    height : int
        Lines of text in it.
    """

    caption: str
    drawn: str
    height: int

    def shortened(self, most: int) -> Self:
        """It was drawn short."""
        return self

    def text(self) -> list[str]:
        """Nothing."""
        return []

    def html(self) -> str:
        """The drawing below its caption."""
        return f"<figure><figcaption>{html.escape(self.caption)}</figcaption>{self.drawn}</figure>"


class Displayed:
    """An object that is printed as a few lines, and shown in a notebook.

    A class that is a dataclass says ``repr=False``, or Python writes all of its fields.
    """

    #: Where everything is that is not shown.
    _whole: ClassVar[str] = ""

    def _parts(self) -> list[Part]:
        """What there is to see."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(self._parts(), self._whole)

    def _repr_html_(self) -> str:
        return as_html(self._parts(), self._whole)


def as_text(parts: Iterable[Part], whole: str = "", lines: int = LINES) -> str:
    """Parts as text of at most so many lines."""
    return "\n".join(line for part in fitted([*parts], whole, lines, pictures=False) for line in part.text())


def as_html(parts: Iterable[Part], whole: str = "", lines: int = LINES) -> str:
    """Parts as HTML of at most so many lines."""
    shown = "".join(part.html() for part in fitted([*parts], whole, lines))
    return f'{STYLE}<div class="felicific">{shown}</div>'


def fitted(parts: list[Part], whole: str, lines: int, *, pictures: bool = True) -> list[Part]:
    """Lists and tables get shorter until all of it fits; if it never does, what stands last goes."""
    shown = [part for part in parts if pictures or not isinstance(part, Picture)]
    for most in range(lines, FEWEST - 1, -1):
        found = [part.shortened(most) for part in shown]
        if sum(part.height for part in found) <= lines:
            return found
    kept: list[Part] = []
    for part in found:
        if sum(one.height for one in kept) + part.height > lines - 1:
            break
        kept.append(part)
    rest = sum(part.height for part in found[len(kept) :])
    return [*kept, Lines(_left_out(rest, whole, "lines"))]


# ---------------------------------------------------------------------------------------------------------
# Which rows stay


def spread(n: int, most: int) -> list[int]:
    """Some of n places, from the first to the last."""
    return sorted({round(i * (n - 1) / max(min(n, most) - 1, 1)) for i in range(min(n, most))})


def extremes(numbers: Sequence[float], most: int) -> list[int]:
    """Positions of the least and of the largest numbers, in their order; of what is no number, none if others do.

    Examples
    --------
    >>> extremes([5.0, 1.0, 2.0, 9.0, 3.0], 2)
    [1, 3]
    """
    known = sorted((i for i, one in enumerate(numbers) if not math.isnan(one)), key=lambda i: numbers[i])
    if len(known) > most:
        low = (most + 1) // 2
        known = known[:low] + known[len(known) - (most - low) :]
    unknown = [i for i, one in enumerate(numbers) if math.isnan(one)]
    return sorted([*known, *unknown][:most])


def between(numbers: Sequence[float]) -> Callable[[int, int], list[int]]:
    """Rows of the least and of the largest numbers stay, whose difference is the gap."""
    return lambda n, most: extremes(numbers, most)


# ---------------------------------------------------------------------------------------------------------
# Text


def lines_of(texts: Iterable[str]) -> int:
    """How many lines some texts take: words that do not fit stand on the next one."""
    return sum(1 if len(text) <= COLUMNS else len(wrap(text, COLUMNS)) for text in texts)


def listed(parts: Sequence[str], most: int | None = None, between: str = ", ") -> str:
    """The first of some parts beside each other, and how many more there are."""
    others = len(parts[slice(most, None)]) if most is not None else 0
    return between.join(parts[:most]) + (f"{between}and {others:,} more" if others else "")


def short(text: str, width: int = 40) -> str:
    """One line of at most so many characters, with nothing that a terminal would obey."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def clipped(text: str, longest: int = LONGEST) -> str:
    """A sentence without its middle if it is too long: what it is about, and how it ends.

    Examples
    --------
    >>> clipped("one two three four five six", 17)
    'one two ... six'
    """
    shown = "".join(letter if letter.isprintable() or letter in KEPT else " " for letter in text)
    if len(shown) <= longest:
        return shown
    room = longest - 5
    tail = room // 3
    head, end = shown[: room - tail], shown[len(shown) - tail :]
    # Between the things that it lists, or else between words, where there are some near.
    for mark in (" ", ", "):
        if mark in head[len(head) // 2 :]:
            head = head[: head.rindex(mark) + len(mark) - 1]
        if mark in end[: tail // 2 + 1]:
            end = end[end.index(mark) + len(mark) :]
    return f"{head} ... {end}"


def table_lines(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, words: bool = True) -> list[str]:
    """Columns of text, numbers to the right; the last column may be words."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(row: tuple[str, ...]) -> str:
        left = (0, len(row) - 1) if words else (0,)
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  " + "  ".join(cells).rstrip()

    return [line(header), *map(line, rows)]


def more_groups(groups: Sequence[object], where: str) -> list[str]:
    """How many groups there are beside those of which a policy speaks."""
    return _left_out(max(len(groups) - GROUPS, 0), where, "groups")


def _left_out(count: int, where: str, what: str = "") -> list[str]:
    named = f" {what}" if what else ""
    return [f"... and {count:,} more{named}: {where}"] if count else []


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)
