"""Broken lines: from a prediction to an amount, with a lottery where many people are predicted the very same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._files import read_numbers, refused
from felicific._typing import Codes, Floats


def slopes_of(x: Floats, y: Floats) -> Floats:
    """How steep a broken line is from every corner to the next; 0 after the last, and across a step."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    return np.where(np.isfinite(slopes), slopes, 0.0)


def along(x: Floats, y: Floats, at: Floats) -> Floats:
    """A broken line somewhere: slope * (at - x) + y of the last corner that is not beyond.

    Operation by operation what the SQL of a policy computes, so that a database gives the very same amounts.
    """
    inside = np.clip(at, x[0], x[-1])
    corner = np.maximum(np.searchsorted(x, inside, side="right") - 1, 0)
    straight = slopes_of(x, y)[corner] * (inside - x[corner]) + y[corner]
    return np.where(at < x[0], y[0], straight)  # below a step at the first corner, what comes before it


@dataclass(frozen=True, eq=False)
class Atom:
    """People who are predicted the same, and draw their amount: predictions above ``low`` and at most ``high``.

    A draw of 0 draws the first of the ``amounts``, and a draw at one of the ``draws`` the amount there; in between
    along the straight line. Draws rise from 0 to 1; a draw that stands twice is a step. ``share`` is their share of the
    group.
    """

    low: float
    high: float
    share: float
    draws: Floats = field(repr=False)
    amounts: Floats = field(repr=False)

    def drawn(self, draws: Floats) -> Floats:
        """The amounts that draws draw."""
        return along(self.draws, self.amounts, draws)

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it."""
        pairs = np.column_stack([self.draws, self.amounts]).tolist()
        return {"above": self.low, "at_most": self.high, "share": self.share, "draws": pairs}

    @classmethod
    def from_json(cls, content: Any) -> Atom:
        """Read it."""
        ends = read_numbers([content["above"], content["at_most"], content["share"]], "atom").tolist()
        pairs = _read_pairs(content["draws"], "draws")
        if pairs[0, 0] != 0.0 or pairs[-1, 0] != 1.0 or not ends[0] < ends[1] or not 0.0 <= ends[2] <= 1.0:
            raise refused("a lottery over amounts is none")
        return cls(ends[0], ends[1], ends[2], pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True, eq=False)
class Line:
    """The amounts of one group: ``amount`` at every ``prediction``, straight in between, the same beyond the ends.

    A prediction that stands twice is a step: from it on the second amount is given. Inside ``atoms`` amounts are
    drawn, where the lottery draws at all. Most of the fitted people, 98 %, are predicted something in the ``middle``.
    """

    prediction: Floats
    amount: Floats
    atoms: tuple[Atom, ...] = ()
    middle: tuple[float, float] = (-np.inf, np.inf)

    @property
    def typical(self) -> tuple[Floats, Floats]:
        """The corners of the middle, its ends included: predictions and amounts."""
        inside = (self.prediction > self.middle[0]) & (self.prediction < self.middle[1])
        x = np.concatenate([self.middle[:1], self.prediction[inside], self.middle[1:]])
        ends = self.at(np.array(self.middle))
        y = np.concatenate([ends[:1], self.amount[inside], ends[1:]])
        known = np.isfinite(x)
        return x[known], y[known]

    def at(self, prediction: Floats) -> Floats:
        """Amounts without a lottery."""
        return along(self.prediction, self.amount, prediction)

    def drawing(self, prediction: Floats) -> Codes:
        """The position of everybody's atom, or -1."""
        place = np.full(len(prediction), -1, dtype=np.intp)
        for number, atom in enumerate(self.atoms):
            place[(prediction > atom.low) & (prediction <= atom.high)] = number
        return place

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it."""
        return {
            "knots": np.column_stack([self.prediction, self.amount]).tolist(),
            "atoms": [atom.to_json() for atom in self.atoms],
            "middle": list(self.middle),
        }

    @classmethod
    def from_json(cls, content: Any) -> Line:
        """Read it."""
        if not isinstance(content, dict) or set(content) != {"knots", "atoms", "middle"}:
            raise refused("a line lacks a part, or has one too many")
        knots = _read_pairs(content["knots"], "knots")
        low, high = read_numbers(content["middle"], "middle").tolist()
        atoms = tuple(Atom.from_json(atom) for atom in content["atoms"])
        return cls(knots[:, 0], knots[:, 1], atoms, (low, high))


def _read_pairs(content: Any, what: str) -> Floats:
    pairs = read_numbers(content, what)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (np.diff(pairs[:, 0]) < 0).any():
        raise refused(f"its {what} are no pairs of numbers of which the first may not fall")
    return pairs


def simplified(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """Few corners that leave every point within its ``slack`` of the line; steps stay where they are."""
    steps = np.flatnonzero(np.diff(x) == 0)
    kept = np.zeros(len(x), dtype=bool)
    kept[[0, len(x) - 1]] = True
    kept[steps] = kept[steps + 1] = True
    corners = np.flatnonzero(kept)
    waiting = list(zip(corners[:-1].tolist(), corners[1:].tolist(), strict=True))
    while waiting:
        first, last = waiting.pop()
        if last - first < 2 or x[last] == x[first]:
            continue
        inside = slice(first + 1, last)
        straight = y[first] + (y[last] - y[first]) * (x[inside] - x[first]) / (x[last] - x[first])
        off = np.abs(y[inside] - straight) - slack[inside]
        worst = int(off.argmax())
        if off[worst] > 0:
            middle = first + 1 + worst
            kept[middle] = True
            waiting += [(first, middle), (middle, last)]
    # Of three or more at one prediction, only the first and the last are a step.
    doubled = np.zeros(len(x), dtype=bool)
    doubled[1:-1] = (x[1:-1] == x[:-2]) & (x[1:-1] == x[2:])
    kept &= ~doubled
    return x[kept], y[kept]
