"""Names and numbers as a reader wants them. Whatever follows the slider is written as a column: a text a position."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from felicific._audit.names import clean, isolated, labels, listed
from felicific._audit.quantity import SHARE, SPACE, SUFFIXES, Quantity, count, percent
from felicific._audit.quantity import counts as all_counts
from felicific._problem.change import MODEL, REFERENCES, Reference
from felicific._shown.drawing import nice

Content = dict[str, Any]

#: Most letters of a name that a reader can see by pointing at it.
WHOLE = 500

#: Most flows from one decision to another that are spelled out for a group.
FLOWS = 3

#: Letters of a unit from which on numbers do not stay on one line.
LONG_UNIT = 12

#: Measures that are shown; the others are folded.
SHOWN = 3

#: How the kinds of a verdict are called where there is room for two words.
TWO_WORDS = {
    "leave": "Leave it",
    "kept": "Keeps it",
    "missed": "Misses it",
    "unclear": "Cannot tell",
    "levels-down": "Takes",
    "certified": "Shrinks, certified",
    "unpromised": "Shrinks, unpromised",
}

#: The same beside the least loss without requirements, where there is nothing to be left as it is.
UNCONSTRAINED_WORDS = TWO_WORDS | {"leave": "Not needed"}

#: What a policy of each kind sees.
KINDS = {
    "score": "the model's score",
    "label": "the label that the model predicts",
    "soft-label": "a label drawn from the model's probabilities",
    "individual": "everything that is known about a person",
}


@dataclass(frozen=True)
class Name:
    """A name from somebody's data: short, whole for those who point at it, and as a sentence says it."""

    text: str
    whole: str = ""
    said: str = ""

    def __str__(self) -> str:
        return self.text

    def __html__(self) -> str:
        """For Jinja: on the page a name stands by itself, from whichever side it is written."""
        from markupsafe import escape

        title = f' title="{escape(self.whole)}"' if self.whole else ""
        return f"<bdi{title}>{escape(self.text)}</bdi>"


def named(values: Iterable[Any]) -> list[Name]:
    """Names that can be told from each other; those that are cut are known whole."""
    found = list(values)
    wholes = [clean(value, WHOLE) for value in found]
    return [
        Name(text, whole if text.endswith("…") and whole != text else "", isolated(text))
        for text, whole in zip(labels(found), wholes, strict=True)
    ]


@dataclass(frozen=True)
class Names:
    """How things are called and numbers are written in one report.

    Attributes
    ----------
    own, alone : list of int
        Measures that have a gap, and of those that say the same, one.
    shown, folded : list of int
        Those of them that are shown at once, and the others: of two that say the same one suffices.
    reference : Reference
        What policies are compared with.
    costs : Quantity
        How costs are written, in ``cost_unit``, once they are multiplied by ``cost_factor``.
    """

    groups: list[Name]
    decisions: list[Name]
    measures: list[Name]
    quantities: list[Quantity]
    own: list[int]
    alone: list[int]
    shown: list[int]
    folded: list[int]
    accuracy: bool
    loss_step: float
    reference: Reference

    @classmethod
    def of(cls, content: Content) -> Names:
        """Names without anything that a page could trip over, and numbers to the step that the content states."""
        parts = content["measures"]
        own = [j for j, part in enumerate(parts) if part["has_gap"]]
        # What the slider moves comes first.
        alone = sorted(own, key=lambda j: not parts[j]["closed"])
        decisions = content.get("decisions", ())
        return cls(
            groups=named(group["name"] for group in content["groups"]),
            decisions=named(d["value"] if d["name"] is None else d["name"] for d in decisions),
            measures=named(part["title"] for part in parts),
            quantities=[
                Quantity(clean(part["unit"], 28) if part["unit"] else "", part["step"]) for part in parts
            ],
            own=own,
            alone=alone,
            shown=alone[:SHOWN],
            folded=sorted(alone[SHOWN:]),
            accuracy=content["loss"]["accuracy"],
            loss_step=content["loss"]["step"],
            reference=REFERENCES[content.get("reference", MODEL.key)],
        )

    @property
    def two_words(self) -> dict[str, str]:
        """How the kinds of a verdict are called where there is room for two words."""
        return TWO_WORDS if self.reference.is_baseline else UNCONSTRAINED_WORDS

    @property
    def cost_factor(self) -> float:
        """Wrong decisions are counted in a thousand."""
        return 1000.0 if self.accuracy else 1.0

    @property
    def cost_unit(self) -> str:
        """What a cost is a number of."""
        return "wrong decisions in 1,000" if self.accuracy else "loss per person"

    @property
    def costs(self) -> Quantity:
        """How costs are written."""
        return Quantity("", self.loss_step * self.cost_factor)

    @property
    def wordy(self) -> bool:
        """Whether some unit is so long that its numbers have to be broken."""
        return any(len(quantity.unit) > LONG_UNIT for quantity in self.quantities)

    @property
    def aim(self) -> str:
        """What the decision maker wants."""
        return "right decisions" if self.accuracy else "loss per person"

    def goods(self, losses: Iterable[float | None]) -> list[str]:
        """Losses, or the share of right decisions if errors are what is lost."""
        quantity = Quantity(SHARE if self.accuracy else "", self.loss_step)
        return texts(quantity, [loss if loss is None or not self.accuracy else 1.0 - loss for loss in losses])

    def cost_texts(self, costs: Iterable[float | None]) -> list[str]:
        """Costs with their sign, without their unit."""
        return changes(self.costs, [None if cost is None else cost * self.cost_factor for cost in costs])

    def cost_spans(self, pairs: Iterable[tuple[float | None, float | None]]) -> list[str]:
        """From one cost to another."""
        factor = self.cost_factor
        scaled = [tuple(None if end is None else end * factor for end in pair) for pair in pairs]
        return change_spans(self.costs, scaled)


def title_of(content: Content, names: Names) -> Name:
    """What the page is called: as somebody said, or after what is measured."""
    if content["title"] is not None:
        return Name(clean(content["title"], 120))
    found = [names.measures[j].text for j in names.own]
    what = listed(found) if len(found) < 4 else f"{len(found)} measures"
    by = content["grouped_by"]
    return Name(
        what[:1].upper() + what[1:] + (f" by {clean(by)}" if by else f" in {len(names.groups)} groups")
    )


def kicker_of(content: Content, kind: str) -> str:
    """The line above the title."""
    parts = [kind, *(clean(content[name], 80) for name in ("period", "date") if content[name])]
    return " · ".join(parts)


# ---------------------------------------------------------------------------------------------------------
# Columns of numbers


def texts(quantity: Quantity, numbers: Iterable[float | None]) -> list[str]:
    """Numbers with their unit."""
    return quantity.texts(numbers)


def changes(quantity: Quantity, numbers: Iterable[float | None]) -> list[str]:
    """Numbers with their sign and unit."""
    return quantity.changes(numbers)


def spans(quantity: Quantity, pairs: Iterable[Sequence[float | None]]) -> list[str]:
    """From one number to another."""
    return quantity.spans(pairs)


def change_spans(quantity: Quantity, pairs: Iterable[Sequence[float | None]]) -> list[str]:
    """From one change to another."""
    return quantity.change_spans(pairs)


def without_unit(quantity: Quantity, found: Iterable[str]) -> list[str]:
    """Texts that stand beside a number with its unit, and need not say it again."""
    unit = quantity.difference.unit
    endings = tuple(f"{SPACE}{SUFFIXES.get(one, one)}" for one in {quantity.unit, unit} if one)
    return [next((text.removesuffix(end) for end in endings if text.endswith(end)), text) for text in found]


def counts(numbers: Iterable[float | None]) -> list[str]:
    """Numbers of people; where nobody can be told from another, that is said."""
    known = list(numbers)
    written = all_counts([number or 0.0 for number in known])
    return ["not known" if number is None else text for number, text in zip(known, written, strict=True)]


def totals(rows: Iterable[Sequence[float | None]]) -> list[float | None]:
    """All people of some groups, if it is known of each; one number for every row of groups."""
    return [None if None in row else sum(number or 0.0 for number in row) for row in rows]


def ends(intervals: Iterable[Content]) -> list[tuple[float | None, float | None]]:
    """Where some intervals begin and end."""
    return [(one["low"], one["high"]) for one in intervals]


def estimates(intervals: Iterable[Content]) -> list[float | None]:
    """What some intervals are about."""
    return [one["estimate"] for one in intervals]


def confidence_text(content: Content) -> str:
    """How sure everything is."""
    share = content["confidence"]
    return percent(share, 0 if share * 100 % 1 < 1e-9 else 2)


def share_texts(numbers: Iterable[float], whole: float) -> list[str]:
    """Parts of some people in per cent; a small one is told from none."""
    shares = [number / whole if whole else 0.0 for number in numbers]
    return [
        f"under 0.1{SPACE}%" if 0 < share < 0.001 else percent(share, 0 if share >= 0.1 else 1)
        for share in shares
    ]


# ---------------------------------------------------------------------------------------------------------
# People who move


def flows(tables: Iterable[Sequence[Sequence[float]]], decisions: Sequence[Name]) -> list[str]:
    """From which decision to which people move, the largest number first; a text for every table of moves."""
    called = [decision.said for decision in decisions]
    return [_flow(table, called) for table in tables]


def _flow(table: Sequence[Sequence[float]], called: Sequence[str]) -> str:
    moves = [
        (number, a, d)
        for a, row in enumerate(table)
        for d, number in enumerate(row)
        if a != d and number > 1e-6
    ]
    moves.sort(key=lambda flow: (-flow[0], flow[1], flow[2]))
    parts = [f"{count(number)} from {called[a]} to {called[d]}" for number, a, d in moves[:FLOWS]]
    rest = sum(number for number, _, _ in moves[FLOWS:])
    return (
        ", ".join(parts + ([f"{count(rest)} in other ways"] if rest else []))
        or "nobody gets another decision"
    )


# ---------------------------------------------------------------------------------------------------------
# Where the slider stands, in words of several lengths.


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
