"""Numbers as a reader wants them: rounded to what is known of them, each with its unit.

One step for all numbers of a measure, so that columns add up. It comes from the smallest half-width of an interval,
by the rule of the Particle Data Group (Review of Particle Physics, introduction): of an uncertainty whose three leading
digits are 100 to 354 two digits are kept, from 355 to 949 one, and from 950 on it is rounded up to 1000, with two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from felicific._audit.names import clean
from felicific._problem.happiness import CURRENCIES

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
#: Between a sign and a currency, so that no line breaks there.
JOINER = "\N{WORD JOINER}"

#: Units of what is shown times something: by how much, and what follows the number. A difference of shares is none.
SHARE, POINTS, PER_THOUSAND = "share", "difference of shares", "wrong decisions in 1,000"
FACTORS = {SHARE: 100.0, POINTS: 100.0, PER_THOUSAND: 1000.0}
SUFFIXES = {SHARE: "%", POINTS: "points"}

#: Longest unit that is shown whole.
UNIT = 28

#: Large numbers in words, where nothing below a thousand is known of them.
LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def step_of(half_width: float) -> float:
    """To what a number is rounded whose interval reaches so far to either side.

    Examples
    --------
    >>> [step_of(half) for half in (2300.0, 500.0, 0.0096)]
    [100.0, 100.0, 0.001]
    """
    power = math.floor(math.log10(half_width))
    leading = round(half_width / 10.0**power * 100.0)
    return float(f"1e{power - 1}") if leading < 355 else float(f"1e{power}")


def common_step(half_widths: Iterable[float | None], numbers: Iterable[float | None]) -> float:
    """The step of the smallest half-width that says something; without any, three digits of the largest number."""
    sizes = [abs(number) for number in numbers if number is not None and math.isfinite(number) and number]
    least = 1e-9 * max(sizes, default=0.0)  # less is rounding
    halves = [half for half in half_widths if half is not None and least < half < math.inf]
    if halves:
        return step_of(min(halves))
    return float(f"1e{math.floor(math.log10(max(sizes))) - 2}") if sizes else 0.01


@dataclass(frozen=True)
class Quantity:
    r"""How the numbers of one measure are written.

    Attributes
    ----------
    unit : str
        A currency stands before the number, a share is written in per cent, any other unit follows.
    step : float
        What numbers are rounded to, in their own unit (of a share 0.01 is one per cent).

    Examples
    --------
    >>> dollars = Quantity("$", 100.0)
    >>> dollars(18566.4), dollars.span(3476.0, 19275.0)
    ('$18,600', '$3,500 to 19,300')
    >>> Quantity("days", 0.1).span(3.1, 4.2), Quantity("$", 1e8)(1.2e9)
    ('3.1 to 4.2\xa0days', '$1.2\xa0billion')
    """

    unit: str
    step: float

    @classmethod
    def of(
        cls, unit: str, half_widths: Iterable[float | None], numbers: Iterable[float | None] = ()
    ) -> Quantity:
        """To the step that intervals of these half-widths deserve."""
        return cls(clean(unit, UNIT) if unit else "", common_step(half_widths, numbers))

    @property
    def difference(self) -> Quantity:
        """How differences of such numbers are written."""
        return replace(self, unit=POINTS) if self.unit == SHARE else self

    def __call__(self, number: float | None) -> str:
        """The number with its unit."""
        return "unknown" if _unknown(number) else self._texts([number])[0] + self._end([number])

    def change(self, number: float | None) -> str:
        """The number with its sign, also when it is positive; a difference of shares is in points."""
        if _unknown(number):
            return "unknown"
        return self.difference._signed(number) + self.difference._end([number])

    def span(self, low: float | None, high: float | None) -> str:
        """From one number to another, with one unit; a side about which nothing is known is said to be unknown."""
        if _unknown(low) or _unknown(high):
            sides = ("at most", high) if _unknown(low) else ("at least", low)
            return "nothing is known" if _unknown(low) and _unknown(high) else f"{sides[0]} {self(sides[1])}"
        first, last = self._texts([low, high], once=True)
        return f"{first} to {last}{self._end([low, high])}"

    def change_span(self, low: float | None, high: float | None) -> str:
        """A span of changes."""
        quantity = self.difference
        if _unknown(low) or _unknown(high):
            return quantity.span(low, high)
        first, last = quantity._texts([low, high], once=True)
        ends = [
            f"+{text}" if (number or 0.0) > 0 and _says(text) else text
            for number, text in ((low, first), (high, last))
        ]
        return f"{ends[0]} to {ends[1]}{quantity._end([low, high])}"

    def texts(self, numbers: Iterable[float | None]) -> list[str]:
        """Several numbers, each with its unit."""
        return [self(number) for number in numbers]

    def changes(self, numbers: Iterable[float | None]) -> list[str]:
        """Several changes."""
        return [self.change(number) for number in numbers]

    def spans(self, pairs: Iterable[Sequence[float | None]]) -> list[str]:
        """Several spans."""
        return [self.span(low, high) for low, high in pairs]

    def change_spans(self, pairs: Iterable[Sequence[float | None]]) -> list[str]:
        """Several spans of changes."""
        return [self.change_span(low, high) for low, high in pairs]

    def given(self, number: float) -> str:
        """A number that somebody wrote, as it was written."""
        shown = number * self._factor
        exact = f"{shown:,.12g}" if abs(shown) < 1e12 else f"{shown:.12g}"
        text = exact if "e" not in exact else f"{shown:g}"
        return self._placed(text.lstrip("-"), shown < 0) + self._after

    @property
    def _factor(self) -> float:
        return FACTORS.get(self.unit, 1.0)

    @property
    def _after(self) -> str:
        unit = SUFFIXES.get(self.unit, self.unit)
        return "" if not unit or self._currency else f"{SPACE}{unit}"

    @property
    def _currency(self) -> str:
        return self.unit if self.unit and self.unit in CURRENCIES else ""

    def _signed(self, number: float | None) -> str:
        text = self._texts([number])[0]
        return f"+{text}" if number is not None and number > 0 and _says(text) else text

    def _end(self, numbers: Sequence[float | None]) -> str:
        """What follows the number, or the last of some: millions, and the unit."""
        word = self._large(numbers)[1]
        return (f"{SPACE}{word}" if word else "") + self._after

    def _large(self, numbers: Sequence[float | None]) -> tuple[float, str]:
        """How large numbers are shortened."""
        largest = max(abs(number or 0.0) for number in numbers) * self._factor
        if self.step * self._factor < 1e3:
            return 1.0, ""
        return next(((size, word) for size, word in LARGE if largest >= size), (1.0, ""))

    def _texts(self, numbers: Sequence[float | None], *, once: bool = False) -> list[str]:
        """Numbers without what follows them; ``once`` a currency before the first alone."""
        size = self._large(numbers)[0]
        step = self.step * self._factor / size
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        texts = []
        for place, number in enumerate(numbers):
            shown = round((number or 0.0) * self._factor / size / step) * step
            text = f"{abs(shown):,.{decimals}f}"
            texts.append(self._placed(text, shown < 0 and _says(text), bare=once and place > 0))
        return texts

    def _placed(self, text: str, negative: bool, *, bare: bool = False) -> str:
        """With its sign, and a currency before the number."""
        currency = "" if bare else self._currency
        return (MINUS + (JOINER if currency else "") if negative else "") + currency + text


def _unknown(number: float | None) -> bool:
    return number is None or not math.isfinite(number)


def _says(text: str) -> bool:
    """Whether a text is of another number than zero."""
    return any(letter in "123456789" for letter in text)


def count(number: float) -> str:
    """People, who are whole; a fraction of one, as a lottery expects them, is told from none."""
    return "fewer than 1" if 0 < number < 0.5 else f"{number:,.0f}"


def percent(share: float, decimals: int = 0) -> str:
    """A share in per cent."""
    return f"{100.0 * share:.{decimals}f}{SPACE}%"


def counts(numbers: Iterable[float]) -> list[str]:
    """Several numbers of people."""
    return [count(number) for number in numbers]
