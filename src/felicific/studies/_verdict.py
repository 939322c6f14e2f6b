"""The verdict of a study: how many of the paper's statements hold, and what to beware of; numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from felicific.studies._paper import Settings


def verdict_of(claims: Sequence[dict[str, Any]], remarks: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Kind, headline, sentence and flags, as every verdict of felicific has them.

    Only what a paper states counts; a limit of felicific that is missed is a flag. A statement that nothing decides
    is no success and no failure.
    """
    stated = [item for item in claims if item["by"] == "paper"]
    decided = [item for item in stated if item["holds"] is not None]
    held, open_ = sum(item["holds"] for item in decided), len(stated) - len(decided)
    flags = [_missed(item) for item in claims if item["holds"] is False]
    flags = sorted([*flags, *remarks], key=lambda flag: -int(flag["level"]))
    if not decided:
        count = "1 number is" if len(claims) == 1 else f"{len(claims)} numbers are"
        sentence = f"{count} reported, beside what each of them means."
        return _verdict("measured", "No printed statement is tested here", sentence, flags)
    sentence = "These are the paper's statements that a number can decide."
    if open_:
        more = "1 more of its numbers stands" if open_ == 1 else f"{open_} more of its numbers stand"
        sentence += f" {more} beside ours without a rule to decide by."
    what = "statement holds" if len(decided) == 1 else "statements hold"
    kind = "within" if held == len(decided) else "more"
    return _verdict(kind, f"{held} of {len(decided)} {what}", sentence, flags)


def _verdict(kind: str, headline: str, sentence: str, flags: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "headline": headline, "sentence": sentence, "flags": list(flags)}


def _missed(item: dict[str, Any]) -> dict[str, Any]:
    """A statement that does not hold; a limit of our own weighs less."""
    paper = item["by"] == "paper"
    words = f"{item['statement']}. {'Paper' if paper else 'Limit'}: {item['paper']}. Ours: {written(item['ours'])}."
    name = "Does not hold." if paper else "Our own limit is missed."
    return flag(3 if paper else 2, "fails" if paper else "limit", name, words[:1].upper() + words[1:])


def flag(level: int, kind: str, name: str, sentence: str) -> dict[str, Any]:
    """One flag; level 3 is the gravest."""
    return {"level": level, "kind": kind, "name": name, "sentence": sentence}


def remarks(settings: Settings, data: str) -> list[dict[str, Any]]:
    """In what this run is not the study that the paper made."""
    found = []
    if settings.rows is not None:
        words = f"Run with --rows {settings.rows}: so few people may say something else than all."
        found.append(flag(2, "rows", "A quick look.", words))
    if data.endswith("(simulated)"):
        words = "The public file was not at hand; --loans FILE names it."
        found.append(flag(2, "simulated", "Simulated people.", words))
    if settings.seeds == 1:
        words = "Another split gives other numbers; --seeds 5 says how far they spread."
        found.append(flag(1, "seeds", "One seed.", words))
    return found


# ---------------------------------------------------------------------------------------------------------
# Numbers as text


def written(number: dict[str, Any]) -> str:
    """Mean, standard error and range of a number over seeds."""
    values = number["values"]
    like = max(abs(value) for value in values) if len(values) > 1 else None
    text = plain(number["mean"], like)
    if number["standard error"] is not None:
        text += f" ± {plain(number['standard error'], like)}"
        text += f" ({plain(min(values), like)} to {plain(max(values), like)})"
    return text


def plain(number: float, like: float | None = None) -> str:
    """No digits after the point for large numbers, some for small ones; as many as a number ``like`` it has."""
    if abs(number) < 1e-9:
        return "0"
    size = abs(number) if like is None else max(abs(like), abs(number))
    digits = 0 if size >= 100 or (like is None and number == round(number)) else 2 if size >= 1 else 4
    return f"{number:,.{digits}f}" if round(number, digits) else f"{number:.1e}"
