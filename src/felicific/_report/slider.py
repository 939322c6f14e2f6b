"""What follows the slider: columns of texts, one for each position, each told once in the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from felicific._report.words import Content, Places

#: Texts longer than this are told as a frame and what fills it, since positions differ in their numbers alone.
LONG = 45

#: Where a word with a digit stands in a frame.
BLANK = "\x1f"

#: Least distance between two positions on the track, so that a hand can find both; the baseline's stands apart from
#: all.
APART, APART_BASELINE = 0.008, 0.03


class Moving:
    """Texts and attributes that follow the slider.

    The template asks for a key, and gets what stands there at the position where the page begins; the script swaps
    it for that of another position. Both come from the same column.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.columns: dict[str, list[str]] = {}
        self.lists: dict[str, list[list[list[str]]]] = {}

    def add(self, key: str, texts: Sequence[str]) -> str:
        """A column under a key; returns the key."""
        self.columns[key] = list(texts)
        return key

    def now(self, key: str) -> str:
        """What the column says where the page begins."""
        return self.columns[key][self.start]

    def __call__(self, key: str, tag: str = "span") -> Any:
        """An element whose text follows the slider."""
        from markupsafe import Markup

        return Markup(f'<{tag} data-t="{key}">{{}}</{tag}>').format(self.now(key))

    def attributes(self, pairs: str) -> Any:
        """Attributes that follow the slider, as "x1:key x2:key"."""
        from markupsafe import Markup

        split = [pair.partition(":") for pair in pairs.split()]
        written = Markup(" ").join(Markup('{}="{}"').format(name, self.now(key)) for name, _, key in split)
        return Markup('{} data-a="{}"').format(written, pairs)

    def entries(self, key: str) -> list[list[str]]:
        """The entries of a list where the page begins."""
        return self.lists[key][self.start]

    def embedded(self) -> dict[str, Any]:
        """Everything for the script: each text once, and columns of their numbers; one number if they are all alike."""
        told = Told()
        for text in _by_use(self):
            told.place(text)
        columns: dict[str, Any] = {}
        for key, texts in self.columns.items():
            places = [told.place(text) for text in texts]
            columns[key] = places[0] if len(set(places)) == 1 else places
        lists = {
            key: [[[told.place(text) for text in entry] for entry in entries] for entries in found]
            for key, found in self.lists.items()
        }
        return {"texts": told.texts, "columns": columns, "lists": lists, "start": self.start}


def _by_use(moving: Moving) -> list[str]:
    """Texts, those that are used most first: they get the shortest numbers."""
    used = Counter(text for texts in moving.columns.values() if len(set(texts)) > 1 for text in texts)
    used.update(
        text for found in moving.lists.values() for entries in found for entry in entries for text in entry
    )
    return [text for text, _ in used.most_common()]


class Told:
    """Texts that are told once; long ones as a frame that they share with others, and the words that fill it."""

    def __init__(self) -> None:
        self.texts: list[str | list[int]] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Where a text stands in the list."""
        if text not in self._places:
            words = text.split(" ") if len(text) > LONG and BLANK not in text else []
            filled = [word for word in words if any(letter.isdigit() for letter in word)]
            if filled and len(filled) < len(words):
                frame = " ".join(
                    BLANK if any(letter.isdigit() for letter in word) else word for word in words
                )
                self._keep(text, [self._whole(part) for part in (frame, *filled)])
            else:
                self._whole(text)
        return self._places[text]

    def _whole(self, text: str) -> int:
        if text not in self._places:
            self._keep(text, text)
        return self._places[text]

    def _keep(self, text: str, told: str | list[int]) -> None:
        self._places[text] = len(self.texts)
        self.texts.append(told)


def embedded(data: Any) -> str:
    """JSON that can end neither its script element nor begin another one, and that UTF-8 can hold."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


# ---------------------------------------------------------------------------------------------------------
# The track


def track(positions: Sequence[Content]) -> list[float]:
    """Where positions lie between 0 and 1: in proportion to the gap, and none upon another."""
    taus = [place["tau"] for place in positions]
    width = (max(taus) - taus[0]) or 1.0
    found: list[float] = []
    for i, tau in enumerate(taus):
        even = (tau - taus[0]) / width
        apart = APART_BASELINE if i == len(taus) - 1 else APART
        found.append(even if not found else max(even, found[-1] + apart))
    return [round(x / max(found[-1], 1.0), 5) for x in found] if len(found) > 1 else [0.0]


def strip(positions: Sequence[Content], at: Sequence[float]) -> list[tuple[str, float, float]]:
    """The verdict's kind along the track, with where it begins and how wide it is, in per cent."""
    found: list[tuple[str, float, float]] = []
    for i, place in enumerate(positions):
        left = 0.0 if i == 0 else 50.0 * (at[i - 1] + at[i])
        right = 100.0 if i == len(positions) - 1 else 50.0 * (at[i] + at[i + 1])
        kind = place["verdict"]["kind"]
        if found and found[-1][0] == kind:
            kind, left, _ = found.pop()
        found.append((kind, left, right - left))
    return [(kind, round(left, 2), round(width, 2)) for kind, left, width in found]


def dock(content: Content, places: Places, moving: Moving) -> dict[str, Any]:
    """The slider with everything around it."""
    positions, at = content["positions"], track(content["positions"])
    moving.add("dock-label", places.label)
    moving.add("dock-at", places.short)
    moving.add("dock-after", places.after)
    said = [place["verdict"] for place in positions]
    moving.add(
        "say", [f"{full}. {verdict['headline']}" for full, verdict in zip(places.full, said, strict=True)]
    )
    return {
        "at": at,
        "strip": strip(positions, at),
        "ticks": sorted({round(100 * at[i], 2) for i, place in enumerate(positions) if place["names"]}),
        "buttons": [(name, i) for i, place in enumerate(positions) for name in place["names"]],
    }


# ---------------------------------------------------------------------------------------------------------
# What is saved when somebody has signed


def decision(content: Content, title: str) -> dict[str, Any]:
    """What decision.json says at every position; the script puts in what follows the slider, and who signed."""
    people = content["fingerprints"]["people"]
    return {
        "format": "felicific decision",
        "version": 2,
        "title": title,
        "position": None,
        "verdict": None,
        "reason": None,
        "sentence": None,
        "flags": None,
        "policy_sha256": None,
        "people_sha256": people if re.fullmatch("[0-9a-f]{64}", people) else None,
        "model": content["model"],
        "felicific": content["versions"]["felicific"],
    }


def aims(content: Content) -> dict[str, Any]:
    """The gaps that are aimed at, by their names: none where the baseline's decisions stay."""
    closed = [j for j, part in enumerate(content["measures"]) if part["closed"]]
    return {
        "gaps": [content["measures"][j]["name"] for j in closed],
        "aimed": [
            None if place["baseline"] else [place["aimed"][j] for j in closed]
            for place in content["positions"]
        ],
    }
