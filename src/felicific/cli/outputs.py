"""What a command writes: files whole or not at all, text or JSON on the terminal, progress beside it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from felicific.exceptions import DataError


def check_target(path: Path | None, kinds: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    if path is None:
        return
    if path.suffix.lower() not in kinds:
        raise DataError(f"{str(path)!r} is not written here.", f"End its name in {' or '.join(kinds)}.")
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder.", "Name a file.")
    if path.exists() and not force:
        raise DataError(f"{str(path)!r} exists.", "Choose another name, or add --force to replace it.")
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {str(path.parent)!r}.", "Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path))


def check_chart(path: Path | None, *, force: bool) -> None:
    """Refuse, before any work is done, a chart that could not be drawn or written in the end."""
    check_target(path, [".svg", ".png"], force=force)
    if path is not None:
        import_module("felicific.plots")  # which says what it needs


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that something is being done; say nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def command_line() -> str:
    """What was typed, for those who want to do it again."""
    return shlex.join(["felicific", *sys.argv[1:]])


def printable(text: str) -> str:
    """A text out of a file in one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def columns_within(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], width: int = 80) -> list[str]:
    """A table for reading, its first column again in front of those that would not fit beside the others."""
    from felicific._shown.parts import table_lines

    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    parts: list[list[int]] = [[]]
    for i, wide in enumerate(widths[1:], 1):
        # Two blanks stand before every column.
        if parts[-1] and sum(widths[j] + 2 for j in [0, *parts[-1]]) + wide + 2 > width:
            parts.append([])
        parts[-1].append(i)
    lines: list[str] = []
    for part in parts:
        taken = [tuple(row[i] for i in (0, *part)) for row in [header, *rows]]
        # The last column of such tables is text, which starts at the left: here it is nothing.
        lines += [""] * bool(lines)
        lines += table_lines((*taken[0], ""), [(*row, "") for row in taken[1:]])
    return lines


def print_json(content: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(content, indent=1, allow_nan=False))
