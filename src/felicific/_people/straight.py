r"""Straight happiness: what one more unit of the amount is worth to every person.

Of a measure that is a straight line of the amount, :math:`\eta_j(a; i) = \alpha_j(i) + \beta_j(i) a`, two numbers of
everybody say all there is: evaluated at the least and the largest amount, and tested at two in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from felicific._people.worth import Batch, worth_of_amounts
from felicific._problem.happiness import Happiness
from felicific._typing import Floats, Truths
from felicific.exceptions import HappinessError

#: A happiness is straight if it is off the line by no more than this share of its size.
STRAIGHT = 1e-9

#: Where it is tested, as shares of the way from the least amount to the largest.
TESTED = (1.0 / 3.0, 0.7853)


@dataclass(frozen=True, eq=False)
class Straight:
    """Of everybody, the worth of the amount 0, of one more unit, and who is counted (None: everybody)."""

    start: Floats
    slope: Floats
    counted: Truths | None


def straight_worth(happiness: Happiness, batch: Batch, bounds: tuple[float, float]) -> Straight:
    """What amounts between two bounds are worth to some people; an error where that is no straight line."""
    line, bent = _tried(happiness, batch, bounds)
    if bent is not None:
        raise HappinessError(
            f"The happiness {happiness.name!r} is no straight line of the amount in {batch.row(bent)}, and an "
            "individual policy of amounts has to know what one more unit is worth.",
            "Use policy='score', or a happiness such as 'decision * months'.",
        )
    return line


def is_straight(happiness: Iterable[Happiness], batch: Batch, bounds: tuple[float, float]) -> bool:
    """Whether amounts between two bounds are worth a straight line to each of some people."""
    return all(_tried(one, batch, bounds)[1] is None for one in happiness)


def _tried(happiness: Happiness, batch: Batch, bounds: tuple[float, float]) -> tuple[Straight, int | None]:
    """The line through the ends of everybody's worth; and the position of somebody whose worth is not on it."""
    low, high = bounds

    def worth(share: float) -> tuple[Floats, Truths | None]:
        return worth_of_amounts(happiness, batch, np.full(len(batch), low + share * (high - low)))

    (first, counted), (last, _) = worth(0.0), worth(1.0)
    bent = None
    for share in TESTED:
        here = worth(share)[0]
        off = np.abs(here - (first + share * (last - first)))
        size = sum(np.abs(part).max(initial=0.0) for part in (first, last, here))
        if off.max(initial=0.0) > STRAIGHT * size:
            bent = int(off.argmax())
    slope = (last - first) / (high - low)
    return Straight(first - slope * low, slope, counted), bent
