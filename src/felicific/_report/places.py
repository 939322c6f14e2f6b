"""Where the slider stands, in words of several lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from felicific._audit.names import listed
from felicific._audit.quantity import SPACE, Quantity, percent
from felicific._problem.change import Reference
from felicific._report.words import SHOWN, Content, Names
from felicific._shown.drawing import nice


@dataclass(frozen=True)
class Places:
    """How the positions of the slider are called, each in several lengths.

    Attributes
    ----------
    label, short, after : list of str
        "Aim for a gap of at most", "$1,000", and what follows it where several gaps are closed together.
    full : list of str
        "At a gap of at most $1,000 (proposed)".
    signed : list of str
        As the block says it that is signed: with every gap that is aimed at.
    last : str
        Where the slider ends: the baseline's decisions, and their gap on the people that the policies were fitted to.
    whole : str
        What all of it, 100 per cent, stands for, where several gaps are closed together.
    little, little_text : float, str
        A small part of the way, of which a price is told.
    """

    label: list[str]
    short: list[str]
    after: list[str]
    full: list[str]
    signed: list[str]
    last: str
    whole: str
    little: float
    little_text: str

    @classmethod
    def of(cls, content: Content, names: Names) -> Places:
        """Every position in the unit of the gap, if one gap is closed, or in per cent of all of them."""
        positions = content["positions"]
        # Of two gaps that are one, one is named.
        closed = [j for j in names.alone if content["measures"][j]["closed"]]
        aims = [aimed_texts(names.quantities[j], [place["aimed"][j] for place in positions]) for j in closed]
        after, whole, last, little = "", "", names.reference.name, (1.0, "step of one")
        if len(closed) == 1:
            fitted = content["fitted_baseline"][closed[0]]
            little = _little(content, names, closed[0])
            last = f"{names.reference.name}, {aimed_texts(names.quantities[closed[0]], [fitted])[0]}"
            numbers, label, where = aims[0], "Aim for a gap of at most", "a gap of at most"
        elif closed:
            numbers = [_per_cent(place["tau"]) for place in positions]
            label, where = "Aim for gaps of at most", "gaps of at most"
            little = 0.1, "tenth of the gaps"
            after, whole = _of_what(content, names, closed)
        else:
            numbers, label, where = [f"{place['tau']:,.6g}" for place in positions], "Position", "position"
        rows = []
        for i, place in enumerate(positions):
            called = f" ({', '.join(place['names'])})" if place["names"] else ""
            number = f"{numbers[i]} {after}".strip()
            signed = f"{where} {number}"
            if after:
                each = zip(aims, closed, strict=True)
                signed += f": {_listed_few([f'{aim[i]} in {names.measures[j].said}' for aim, j in each])}"
            signed += called
            rows.append(
                _unchanged(names.reference)
                if place["baseline"]
                else (label, numbers[i], after, f"At {where} {number}{called}", signed)
            )
        columns = [list(column) for column in zip(*rows, strict=True)]
        return cls(columns[0], columns[1], columns[2], columns[3], columns[4], last, whole, *little)


def _unchanged(reference: Reference) -> tuple[str, str, str, str, str]:
    """What is said where everybody is decided on as by the reference."""
    decisions = reference.of("decisions")
    if reference.is_baseline:
        return "Keep", decisions, "", f"{reference.begins('decisions')}, unchanged", decisions
    return "Decide", reference.name, "", reference.begins("decisions"), decisions


def _little(content: Content, names: Names, j: int) -> tuple[float, str]:
    """A small part of one gap, along the line and in words; along the line it may have another length."""
    ways = [(place["tau"], place["aimed"][j]) for place in content["positions"] if not place["baseline"]]
    tau, width = max(ways, default=(0.0, 0.0))
    if not tau or not width:
        return 0.0, "nothing"
    small = nice(width / 20)
    return small * tau / width, f"{names.quantities[j].given(small)} of gap"


def _of_what(content: Content, names: Names, closed: Sequence[int]) -> tuple[str, str]:
    """What the slider's per cent are of, in a few words and in a sentence."""
    policies = [place for place in content["positions"] if not place["baseline"]]
    place = max(policies, key=lambda place: place["tau"], default=None)
    if place is None or not place["tau"] or None in (place["aimed"][j] for j in closed):
        return "of all gaps", ""
    widths = {j: place["aimed"][j] / place["tau"] for j in closed}
    asked = {j: content["measures"][j]["asked"] for j in closed}
    baseline = {j: content["fitted_baseline"][j] for j in closed}

    def equal(others: dict[int, float | None]) -> bool:
        return all(math.isclose(widths[j], other or 0.0, rel_tol=1e-6) for j, other in others.items())

    of_reference = f"of those {names.reference.name}"
    of = "of those asked for" if equal(asked) else of_reference if equal(baseline) else "of all gaps"
    parts = [f"{aimed_texts(names.quantities[j], [widths[j]])[0]} in {names.measures[j]}" for j in closed]
    return of, f"Several gaps are closed together, in proportion: 100{SPACE}% stands for {listed(parts)}."


def _per_cent(tau: float) -> str:
    return percent(tau, 0 if abs(100 * tau - round(100 * tau)) < 1e-6 else 1)


def _listed_few(parts: list[str]) -> str:
    return listed(parts if len(parts) <= SHOWN else [*parts[:SHOWN], f"{len(parts) - SHOWN} more"])


def aimed_texts(quantity: Quantity, numbers: Sequence[float | None]) -> list[str]:
    """Gaps that are aimed at: known exactly, so round ones as they are, and others to three digits of the largest."""
    largest = max((number for number in numbers if number is not None), default=0.0)
    fine = Quantity(
        quantity.unit, 10.0 ** (math.floor(math.log10(largest)) - 2) if largest > 0 else quantity.step
    )
    # What is left of a gap of zero by rounding is zero.
    tiny = 1e-9 * largest
    return [
        "any"
        if number is None
        else quantity.given(number)
        if number > tiny and float(f"{number:.3g}") == number
        else quantity.given(0.0)
        if number <= tiny
        else fine(number)
        for number in numbers
    ]
