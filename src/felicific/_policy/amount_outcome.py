"""What amounts do to people: loss, means by group, gaps, the distance of distributions, and who gets more or less."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from felicific._files import check_shape, read_means, read_number, read_numbers, refused
from felicific._policy.lines import Atom
from felicific._typing import Floats


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
