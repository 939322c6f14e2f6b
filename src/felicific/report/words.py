"""Numbers and names as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

#: Units of what is shown times 100, and how they are written. A difference of shares is not a share.
SHARES = {"share": "%", "difference of shares": "points"}
CURRENCIES = "$€£¥₹"
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


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

    def cell(self, number: float | None) -> str:
        """For a table whose heading says the unit: without it, unless it is a currency or per cent."""
        unknown = number is None or not math.isfinite(number)
        return self(number) if unknown or not self.heading else self._bare(float(number or 0.0))

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

    def span(self, low: float | None, high: float | None) -> str:
        """From one number to another; a side about which nothing is known is said to be unknown."""
        if low is None and high is None:
            return "nothing is known"
        if low is None or high is None:
            return f"at most {self(high)}" if low is None else f"at least {self(low)}"
        return f"{self._bare(low)} to {self(high)}"


def percent(share: float, decimals: int = 2) -> str:
    """A share in per cent."""
    return Quantity("share", decimals)(share)


def proportion(share: float) -> str:
    """A share in per cent, with a decimal only if it needs one."""
    return percent(share, 0 if abs(100 * share - round(100 * share)) < 1e-6 else 1)


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


def listed(parts: Iterable[str], last: str = "and") -> str:
    """One, two and three."""
    found = list(parts)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}" if found else ""
