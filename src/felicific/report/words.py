"""Numbers and names as a reader wants them; what stands in columns is written column by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from felicific._audit.names import clean, labels
from felicific._problem.happiness import CURRENCIES

Content = dict[str, Any]

#: Units of what is shown times 100, and how they are written. A difference of shares is not a share.
SHARES = {"share": "%", "difference of shares": "points"}
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

#: Most flows from one decision to another that are spelled out for a group.
FLOWS = 4


@dataclass(frozen=True)
class Quantity:
    """How the numbers of one component are written.

    Attributes
    ----------
    unit : str
        A currency stands before the number, a share is written in per cent, any other unit follows.
    decimals : int
        Of the number as it is shown.
    """

    unit: str
    decimals: int

    @classmethod
    def of(cls, unit: str, scale: float) -> Quantity:
        """As many decimals as show a difference of the size of ``scale`` to three digits."""
        size = abs(scale) * (100.0 if unit == "share" else 1.0)
        digits = 2 - math.floor(math.log10(size)) if size > 0 and math.isfinite(size) else 2
        return cls(unit, min(max(digits, 0), 12))

    def __call__(self, number: float | None) -> str:
        """The number with its unit."""
        if number is None or not math.isfinite(number):
            return "unknown"
        return self._bare(number) + self._after

    def texts(self, numbers: Iterable[float | None]) -> list[str]:
        """Numbers with their unit."""
        return [self(number) for number in numbers]

    def cell(self, number: float | None) -> str:
        """For a table whose heading says the unit: without it, unless it is a currency or per cent."""
        unknown = number is None or not math.isfinite(number)
        return self(number) if unknown or not self.heading else self._bare(float(number or 0.0))

    def cells(self, numbers: Iterable[float | None]) -> list[str]:
        """A column of such a table."""
        return [self.cell(number) for number in numbers]

    @property
    def heading(self) -> str:
        """What the heading of a table has to say of the unit."""
        return "" if self.unit == "share" or not self._after else f" ({self.unit})"

    @property
    def _after(self) -> str:
        unit = SHARES.get(self.unit, self.unit)
        return f"{SPACE}{unit}" if unit and unit not in CURRENCIES else ""

    def _bare(self, number: float) -> str:
        """Without a unit that follows."""
        text = f"{abs(number) * (100.0 if self.unit in SHARES else 1.0):,.{self.decimals}f}"
        sign = MINUS if number < 0 and float(text.replace(",", "")) else ""
        return f"{sign}{self.unit}{text}" if self.unit and self.unit in CURRENCIES else f"{sign}{text}"

    @property
    def difference(self) -> Quantity:
        """How differences of such numbers are written."""
        return replace(self, unit="difference of shares") if self.unit == "share" else self

    def change(self, number: float | None) -> str:
        """The number with its sign, also when it is positive."""
        text = self(number)
        return f"+{text}" if number is not None and number > 0 and text != self(0.0) else text

    def numbers(self, parts: Sequence[Content], *, signed: bool = False) -> list[dict[str, str]]:
        """Estimates with their intervals and what hidden reasons leave open, as cells; changes with their sign."""
        write = self.change if signed else self
        return [
            {
                "number": write(part["estimate"]),
                "span": self.span(part["low"], part["high"]),
                "open": self.span(*part["bounds"]) if "bounds" in part else "",
            }
            for part in parts
        ]

    def span(self, low: float | None, high: float | None) -> str:
        """From one number to another; a side about which nothing is known is said to be unknown."""
        if low is None and high is None:
            return "nothing is known"
        if low is None or high is None:
            return f"at most {self(high)}" if low is None else f"at least {self(low)}"
        return f"{self._bare(low)} to {self(high)}"


@dataclass(frozen=True)
class Names:
    """How things are called and numbers are written in one report; ``own`` are the components that have a gap."""

    groups: list[str]
    decisions: list[str]
    components: list[str]
    quantities: list[Quantity]
    accuracy: bool
    own: list[int]

    @classmethod
    def of(cls, content: Content) -> Names:
        """Names without anything a page could trip over, and as many decimals as the gaps deserve."""
        scales: dict[str, float] = {}
        for j, component in enumerate(content["components"]):
            parts = [content[when]["components"][j] for when in ("today", "after") if when in content]
            sizes = [abs(mean["estimate"] or 0.0) for part in parts for mean in part["means"]]
            scale = max((part["gap"] or {}).get("estimate") or 0.0 for part in parts) or max(sizes)
            scales[component["unit"]] = max(scale, scales.get(component["unit"], 0.0))
        written = {
            unit: Quantity.of(clean(unit, 28) if unit else "", scale) for unit, scale in scales.items()
        }
        return cls(
            labels([group["name"] for group in content["groups"]]),
            labels(content.get("decisions", ())),
            labels([component["title"] for component in content["components"]]),
            [written[component["unit"]] for component in content["components"]],
            content.get("loss", "error") == "error",
            [j for j, part in enumerate(content["today"]["components"]) if part["gap"] is not None],
        )

    @property
    def heads(self) -> list[str]:
        """Components as headings of tables, with the unit where the numbers do not say it."""
        return [name + q.heading for name, q in zip(self.components, self.quantities, strict=True)]

    @property
    def aim(self) -> str:
        """What the decision maker wants."""
        return "accuracy" if self.accuracy else "loss per person"

    def cells(self, numbers: Iterable[float | None]) -> list[str]:
        """A number of every component, for a table whose heading says the unit."""
        return [quantity.cell(number) for quantity, number in zip(self.quantities, numbers, strict=True)]

    def goods(self, losses: Iterable[float]) -> list[str]:
        """Losses, or the accuracy if that is what is lost."""
        return [percent(1.0 - loss) if self.accuracy else f"{loss:,.4g}" for loss in losses]

    def changes(self, costs: Iterable[float]) -> list[str]:
        """How much more or less than today is lost, or right."""
        return [self._change(cost) for cost in costs]

    def _change(self, cost: float) -> str:
        if self.accuracy and abs(cost) < 5e-7:
            return "as today"
        if self.accuracy:
            return f"{points(cost)} {'less' if cost > 0 else 'more'} than today"
        return f"{abs(cost):,.4g} {'more' if cost > 0 else 'less'} than today"

    def prices(self, costs: Iterable[float | None], what: str) -> list[str]:
        """What closing a little more of the gap costs; ``what`` is that little, None where no policy closes more."""
        return [
            "no policy of this kind has a smaller one"
            if cost is None
            else "nothing"
            if cost <= 0
            else f"{points(cost)} of accuracy per {what}"
            if self.accuracy
            else f"{cost:,.3g} of loss per {what}"
            for cost in costs
        ]

    def gaps(self, rows: Iterable[Sequence[float]], most: int = 3) -> list[str]:
        """Gaps of the first components, with what they are gaps in; a text for every row of them."""
        named = [(self.quantities[j], self.components[j]) for j in self.own[:most]]
        return [
            listed([f"{quantity(gap)} in {name}" for gap, (quantity, name) in zip(row, named, strict=False)])
            for row in rows
        ]


def flows(tables: Iterable[Sequence[Sequence[float]]], decisions: list[str], most: int = FLOWS) -> list[str]:
    """From which decision to which people move, the largest number first; a text for every table of moves."""
    texts = []
    for table in tables:
        moves = [
            (number, a, d)
            for a, row in enumerate(table)
            for d, number in enumerate(row)
            if a != d and number > 1e-6
        ]
        moves.sort(key=lambda flow: (-flow[0], flow[1], flow[2]))
        parts = [f"{count(number)} from {decisions[a]} to {decisions[d]}" for number, a, d in moves[:most]]
        rest = sum(number for number, _, _ in moves[most:])
        texts.append(", ".join(parts + ([f"{count(rest)} in other ways"] if rest else [])) or "nobody")
    return texts


def percent(share: float, decimals: int = 2) -> str:
    """A share in per cent."""
    return Quantity("share", decimals)(share)


def proportion(share: float) -> str:
    """A share in per cent, with a decimal only if it needs one."""
    return percent(share, 0 if abs(100 * share - round(100 * share)) < 1e-6 else 1)


def proportions(shares: Iterable[float]) -> list[str]:
    """Several such shares."""
    return [proportion(share) for share in shares]


def points(share: float) -> str:
    """A difference of two shares, in points of per cent."""
    size = abs(100.0 * share)
    decimals = 2 if size >= 0.01 or size < 5e-5 else 4
    text = f"{size:.{decimals}f}"
    return f"{text}{SPACE}point" if float(text) == 1 else f"{text}{SPACE}points"


def count(number: float) -> str:
    """People; a fraction of one, as a lottery expects them, is told from none."""
    if 0 < number < 0.5:
        return "less than 1"
    return f"{number:,.0f}"


def counts(numbers: Iterable[float]) -> list[str]:
    """Several numbers of people."""
    return [count(number) for number in numbers]


def counts_of(numbers: Iterable[float], total: float) -> list[str]:
    """Numbers of people, with their share of all."""
    return [f"{count(number)} ({percent(number / total, 1)})" for number in numbers]


def listed(parts: Iterable[str], last: str = "and") -> str:
    """One, two and three."""
    found = list(parts)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}" if found else ""
