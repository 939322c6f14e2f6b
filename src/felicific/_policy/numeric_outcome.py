"""Outcomes of amounts: what they do to people, in memory row by row, elsewhere bin by bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from felicific._files import check_shape, read_means, read_number, read_numbers, refused
from felicific._people.evaluate import loss_of_amounts, worth_of_amounts
from felicific._people.people import People
from felicific._policy.lines import Atom, Line
from felicific._problem.numeric import NumericProblem
from felicific._problem.unions import compared_by, compared_groups
from felicific._program.aggregates import gaps_of
from felicific._program.predicted import Predicted
from felicific._tables.memory import as_objects
from felicific._typing import Floats

#: A stretch of draws along which amounts rise is looked at in so many pieces, were it as wide as all draws.
PIECES = 16

#: Where a piece is looked at, two places of equal weight: exact for squared errors.
GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)

#: An amount that differs from the baseline's by less than this share of the range is the baseline's.
SAME = 1e-9


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


def outcome_of_lines(
    problem: NumericProblem, people: People, lines: Sequence[Line], *, randomize: bool = True
) -> AmountOutcome:
    """What broken lines do to people, in expectation over the lottery."""
    amounts, drawn = np.empty(len(people)), np.full(len(people), -1, dtype=np.intp)
    for z, line in enumerate(lines):
        rows = np.flatnonzero(people.codes == z)
        amounts[rows] = line.at(people.prediction[rows])
        if randomize:
            drawn[rows] = line.drawing(people.prediction[rows])
    if (drawn < 0).all():
        return outcome_of_amounts(problem, people, amounts)
    # Everybody who draws stands for as many as there are amounts to draw, each as heavy as it is likely.
    certain, lucky = np.flatnonzero(drawn < 0), np.flatnonzero(drawn >= 0)
    tables = {(z, k): chances_of(atom) for z, line in enumerate(lines) for k, atom in enumerate(line.atoms)}
    draws = [tables[z, k] for z, k in zip(people.codes[lucky].tolist(), drawn[lucky].tolist(), strict=True)]
    times = np.array([len(amount) for amount, _ in draws])
    copies = people.take(np.concatenate([certain, lucky.repeat(times)]))
    chances = np.concatenate([np.ones(len(certain)), *(chance for _, chance in draws)])
    weight = copies.weights * chances
    given = np.concatenate([amounts[certain], *(amount for amount, _ in draws)])
    outcome = outcome_of_amounts(problem, replace(copies, weight=weight), given, distance=False)
    if not problem.parity:
        return outcome
    own = [certain[people.codes[certain] == z] for z in range(len(lines))]
    atoms = [
        [
            (float(people.weights[lucky][(people.codes[lucky] == z) & (drawn[lucky] == k)].sum()), atom)
            for k, atom in enumerate(line.atoms)
        ]
        for z, line in enumerate(lines)
    ]
    far = distance_between(
        [amounts[rows] for rows in own],
        [people.weights[rows] for rows in own],
        atoms,
        _ranked(problem, people),
    )
    return replace(outcome, distance=far)


def chances_of(atom: Atom) -> tuple[Floats, Floats]:
    """Amounts that are drawn, and how likely each is: exactly where they are levels, else by places along the line."""
    amounts, chances = [], []
    for k, wide in enumerate(np.diff(atom.draws).tolist()):
        first, last = atom.amounts[k : k + 2].tolist()
        if wide <= 0:
            continue  # a step
        pieces = 1 if first == last else int(np.ceil(PIECES * wide))
        at = np.array([0.5]) if first == last else ((np.arange(pieces)[:, None] + GAUSS) / pieces).ravel()
        amounts.append(first + (last - first) * at)
        chances.append(np.full(len(at), wide / len(at)))
    return np.concatenate(amounts), np.concatenate(chances)


def outcome_of_amounts(
    problem: NumericProblem, people: People, amounts: Floats, *, distance: bool = True
) -> AmountOutcome:
    """What given amounts do to people."""
    n_groups, weights = len(people.groups), people.weights
    held = np.bincount(people.codes, weights, n_groups)

    def group_means(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(people.codes, weights * numbers, n_groups) / held)

    sums = np.zeros((n_groups, len(problem.happiness), 2))
    for j in range(len(problem.happiness)):
        sums[:, j] = _values(problem, j, people, amounts)
    counted = sums[:, :, 1]
    means = sums[:, :, 0] / np.where(counted > 0, counted, np.nan)
    baseline = people.decided_baseline
    far = None
    if distance and problem.parity:
        own = [np.flatnonzero(people.codes == z) for z in range(n_groups)]
        far = distance_between(
            [amounts[rows] for rows in own],
            [weights[rows] for rows in own],
            [[]] * n_groups,
            _ranked(problem, people),
        )
    slack = SAME * max(float(np.ptp(amounts)), float(np.ptp(baseline)), 1e-300)
    loss = float(np.average(losses(problem, people, amounts), weights=weights))
    return AmountOutcome(
        loss,
        group_means(amounts),
        means,
        gaps_of(means, compared_by(people.left_out, problem.names, people.groups)),
        far,
        group_means((amounts > baseline + slack).astype(np.float64)),
        group_means((amounts < baseline - slack).astype(np.float64)),
        counted=counted,
    )


def losses(problem: NumericProblem, people: People, amounts: Floats) -> Floats:
    """What amounts cost, person by person; no number where it looks at a label and there is none."""
    if people.y is None and problem.loss.looks_at_y:
        return np.full(len(people), np.nan)
    parts = [loss_of_amounts(problem.loss, batch, amounts[part]) for part, batch in people.batches()]
    return np.concatenate(parts)


def _values(problem: NumericProblem, j: int, people: People, amounts: Floats) -> Floats:
    """Of every group, the sum of one measure and the weight of those whom it counts."""
    happiness, n_groups = problem.happiness[j], len(people.groups)
    total, counted = np.zeros(n_groups), np.zeros(n_groups)
    for part, batch in people.batches():
        numbers, inside = worth_of_amounts(happiness, batch, amounts[part])
        weight = people.weights[part] if inside is None else people.weights[part] * inside
        total += np.bincount(people.codes[part], weight * numbers, n_groups)
        counted += np.bincount(people.codes[part], weight, n_groups)
    return np.column_stack([total, counted])


def _ranked(problem: NumericProblem, people: People) -> list[int]:
    """Positions of the groups whose distributions are compared."""
    return [*compared_groups(people.left_out, problem.parity, people.groups).tolist()]


def people_of_bins(sums: Predicted) -> tuple[People, float]:
    """The people of a table that only sums are known of, a row for every bin; and what labels vary within bins."""
    codes, bins = np.nonzero(sums.mass)
    mass = sums.mass[codes, bins]
    y, within = None, 0.0
    if sums.labels is not None:
        y = sums.labels[codes, bins] / mass
        squares = float(mass @ (y - sums.scale.low) ** 2)
        within = max((float(sums.squares[:, 2].sum()) - squares) / sums.total, 0.0)
    f = sums.predicted[codes, bins] / mass
    people = People(
        np.empty((len(codes), 0)),
        rows=np.arange(len(codes)),
        group_entries=as_objects(sums.groups)[codes],
        codes=codes,
        groups=sums.groups,
        y=y,
        weight=mass,
        amounts_baseline=f,
        amounts_predicted=f,
        attributes=sums.attributes,
    )
    return people, within
