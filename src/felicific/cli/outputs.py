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


def print_json(content: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(content, indent=1, allow_nan=False))
