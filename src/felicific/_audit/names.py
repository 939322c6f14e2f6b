"""Names from somebody's data as short text that neither a terminal nor a page trips over."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

#: Longest name that is shown whole.
LONGEST = 48

#: Joiners, without which some scripts are misspelt; they are not printable, and do no harm.
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"

#: What keeps a name that is written from right to left from turning the words around it.
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def clean(name: Any, longest: int = LONGEST) -> str:
    r"""A name as one short line of printable text.

    Examples
    --------
    >>> clean("two\nlines"), clean("x" * 100, 5)
    ('two lines', 'xxxx…')
    """
    letters = str(name)[: 4 * longest + 64]
    text = "".join(letter if letter.isprintable() or letter in JOINERS else " " for letter in letters)
    text = " ".join(text.split())
    text = text if text.strip(JOINERS) else repr(name)[:longest]
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def labels(names: Iterable[Any], longest: int = LONGEST) -> list[str]:
    """Names as short text, no two alike."""
    values = list(names)
    plain, exact = ([clean(text, longest) for text in texts] for texts in (values, map(repr, values)))
    found = [exact[i] if plain.count(text) > 1 else text for i, text in enumerate(plain)]
    return [f"{i + 1}: {plain[i]}" if found.count(text) > 1 else text for i, text in enumerate(found)]


def isolated(text: str) -> str:
    """A name for the middle of a sentence; one that is written from right to left stays by itself."""
    turns = any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in text)
    return f"{ISOLATE}{text}{END}" if turns else text


def listed(parts: Iterable[str], last: str = "and") -> str:
    """One, two and three."""
    found = list(parts)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}" if found else ""
