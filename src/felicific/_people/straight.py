r"""Straight happiness: what one more unit of the amount is worth to every person.

Of a component that is a straight line of the amount, :math:`\eta_j(a; i) = \alpha_j(i) + \beta_j(i) a`, two numbers of
everybody say all there is: evaluated at the least and the largest amount, and tested at two in between.
"""

from __future__ import annotations

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
    low, high = bounds

    def worth(share: float) -> tuple[Floats, Truths | None]:
        return worth_of_amounts(happiness, batch, np.full(len(batch), low + share * (high - low)))

    (first, counted), (last, _) = worth(0.0), worth(1.0)
    for share in TESTED:
        here = worth(share)[0]
        off = np.abs(here - (first + share * (last - first)))
        size = np.abs(first).max(initial=0.0) + np.abs(last).max(initial=0.0) + np.abs(here).max(initial=0.0)
        if off.max(initial=0.0) > STRAIGHT * size:
            raise HappinessError(
                f"The happiness {happiness.name!r} is no straight line of the amount in "
                f"{batch.row(int(off.argmax()))}, and an individual policy of amounts has to know what one more unit "
                "is worth.",
                "Use policy='score', or a happiness such as 'decision * months'.",
            )
    slope = (last - first) / (high - low)
    return Straight(first - slope * low, slope, counted)
