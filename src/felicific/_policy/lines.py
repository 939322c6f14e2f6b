"""Broken lines: from a prediction to an amount, with a lottery where many people are predicted the very same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._files import check_shape, read_means, read_number, read_numbers, refused
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


# ---------------------------------------------------------------------------------------------------------
# What amounts do to people: loss, means by group, gaps, the distance of distributions, and who gets more or
# less.


@dataclass(frozen=True, eq=False)
class Distance:
    """How far the distributions of amounts are apart: the largest difference between groups of the share above one.

    Attributes
    ----------
    value : float
        The Kolmogorov-Smirnov distance, the largest over all pairs of groups.
    amount : float
        Where it is reached.
    higher, lower : int
        Positions of the groups: of the first, a larger share gets more than that amount.
    """

    value: float
    amount: float
    higher: int
    lower: int


@dataclass(frozen=True, eq=False)
class AmountOutcome:
    """What amounts do to the people that they were measured on.

    Attributes
    ----------
    loss : float
        Mean loss per person.
    amounts : array of shape (groups,)
        Mean amount of every group.
    means : array of shape (groups, measures)
        Mean happiness of every group.
    gaps : array of shape (measures,)
        Largest mean minus smallest, of groups that are known.
    distance : Distance, or None
        How far distributions are apart, where that is measured.
    more, less : arrays of shape (groups,), or None
        The shares of people who get more, and less, than from the baseline; in expectation over the lottery.
    harmed, widened : dict, or None
        What it does to groups that are intersections of several attributes, as in the outcome of decisions.
    counted : array of shape (groups, measures), or None
        How much weight each measure counts; no file holds it.
    """

    loss: float
    amounts: Floats
    means: Floats
    gaps: Floats
    distance: Distance | None = None
    more: Floats | None = None
    less: Floats | None = None
    harmed: dict[str, dict[Any, float]] | None = None
    widened: dict[str, float] | None = None
    counted: Floats | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it."""
        far = self.distance
        return {
            "loss": self.loss,
            "amounts": self.amounts.tolist(),
            "means": self.means.tolist(),
            "gaps": self.gaps.tolist(),
            "distance": None if far is None else [far.value, far.amount, far.higher, far.lower],
            "more": None if self.more is None else self.more.tolist(),
            "less": None if self.less is None else self.less.tolist(),
            "harmed": self.harmed,
            "widened": self.widened,
        }

    @classmethod
    def from_json(cls, content: Any, shape: tuple[int, int]) -> AmountOutcome:
        """Read it, of so many groups and measures."""
        g, j = shape
        far = content["distance"]
        if far is not None:
            value, amount, higher, lower = read_numbers(far, "distance").tolist()
            if not (0 <= value <= 1 and {higher, lower} <= set(range(g))):
                raise refused("its distance of distributions is none")
            far = Distance(value, amount, int(higher), int(lower))
        shares = {
            name: None
            if content[name] is None
            else check_shape(name, read_numbers(content[name], name), (g,))
            for name in ("more", "less")
        }
        means = read_means(content["means"], "means").reshape(-1, j) if j else np.zeros((g, 0))
        return cls(
            read_number(content["loss"], "loss"),
            check_shape("amounts", read_numbers(content["amounts"], "amounts"), (g,)),
            check_shape("means", means, (g, j)),
            check_shape("gaps", read_numbers(content["gaps"], "gaps"), (j,)),
            far,
            **shares,
            harmed=None
            if content["harmed"] is None
            else {name: _falls(own) for name, own in content["harmed"].items()},
            widened=None if content["widened"] is None else _falls(content["widened"]),
        )


def _falls(content: dict[str, Any]) -> dict[str, float]:
    """By how much means fall, or gaps widen, by name."""
    return dict(zip(content, read_numbers(list(content.values()), "falls").tolist(), strict=True))


def distance_between(
    amounts: list[Floats], weights: list[Floats], atoms: list[list[tuple[float, Atom]]], known: list[int]
) -> Distance:
    """The largest difference between groups of the share of people above an amount.

    Parameters
    ----------
    amounts, weights : lists of arrays
        Of every group, the amounts of people who does not randomize, and their weights.
    atoms : list of lists
        Of every group, the weight of those who draw, and what they draw from.
    known : list of int
        Positions of the groups that are compared.
    """
    corners = [np.concatenate([[], *(atom.amounts for _, atom in own)]) for own in atoms]
    places = np.unique(np.concatenate([*amounts, *corners]))
    shares = np.empty((2, len(amounts), len(places)))
    for z, (own, weight) in enumerate(zip(amounts, weights, strict=True)):
        order = np.argsort(own)
        total = np.append(0.0, weight[order].cumsum())
        whole = total[-1] + sum(mass for mass, _ in atoms[z])
        for side, name in enumerate(("right", "left")):
            below = total[np.searchsorted(own[order], places, side=name)]  # type: ignore[call-overload]  # either
            for mass, atom in atoms[z]:
                below = below + mass * _drawn_below(atom, places, left=name == "left")
            shares[side, z] = 1.0 - below / whole
    groups = np.array(known, dtype=np.intp)
    if len(groups) < 2:
        return Distance(0.0, float(places[0]), int(groups[0]), int(groups[0]))
    compared = shares[:, groups]
    apart = compared.max(axis=1) - compared.min(axis=1)
    at, place = np.unravel_index(int(apart.argmax()), apart.shape)
    here = compared[at, :, place]
    return Distance(
        float(apart[at, place]),
        float(places[place]),
        int(groups[here.argmax()]),
        int(groups[here.argmin()]),
    )


def _drawn_below(atom: Atom, places: Floats, *, left: bool) -> Floats:
    """The share of draws that draw at most an amount; ``left``: less than it."""
    # Where amounts do not rise, all those draws draw the same: the last of them counts, or the first.
    order = np.arange(len(atom.amounts))
    first = np.searchsorted(atom.amounts, places, side="left")
    last = np.searchsorted(atom.amounts, places, side="right") - 1
    exact = first <= last
    at = np.where(left, first, last).clip(0, len(order) - 1)
    below = np.interp(places, atom.amounts, atom.draws, left=0.0, right=1.0)
    return np.asarray(np.where(exact, atom.draws[at], below))
