r"""Slopes: how the weight of happiness in an individual policy's choices moves the mean happiness of every group.

Whoever steers the policy later (:mod:`felicific._policy.steering`) turns one number of every group, the weight
:math:`\kappa_z`, and has to know what a turn does. The columns that were generated on the way tell where to begin; one
more pass over the people tells how steep it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._files import check_shape, read_numbers, refused
from felicific._program.aggregates import Outcome
from felicific._program.crowd import CHOOSES
from felicific._typing import Floats, Truths

if TYPE_CHECKING:
    from felicific._program.generation import Columns, Generator

#: People whose decision has to change for a step to tell how steep it is: people whom the model finds alike
#: move all at once, and a step between them moves nobody.
MOVED = 8

#: Widths of a step, as shares of what weighs as much as the loss does.
WIDTHS = (0.5, 2.0)

#: From so many times that on, happiness alone decides.
ALONE = 16.0

#: Parts that are numbers of every group.
NUMBERS = ("kappa", "slope", "swing", "share")


@dataclass(frozen=True, eq=False)
class Slopes:
    """How steeply a group's mean happiness follows its weight, on the fitted people.

    Attributes
    ----------
    j : int
        Position of the measure.
    kappa : array of shape (groups,)
        The weight at which one deterministic policy gives every group the mean that the mixture gives it.
    slope : array of shape (groups,)
        Mean happiness per unit of weight there: of a step up and a step down, the less steep one.
    swing : array of shape (groups,)
        How far decisions can move every group's mean.
    share : array of shape (groups,)
        Of all people whose group is known; 0 of the others.
    """

    j: int
    kappa: Floats = field(repr=False)
    slope: Floats = field(repr=False)
    swing: Floats = field(repr=False)
    share: Floats = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {"measure": self.j, **{name: getattr(self, name).tolist() for name in NUMBERS}}

    @classmethod
    def from_json(cls, content: object, shape: tuple[int, int]) -> Slopes | None:
        """Read what :meth:`to_json` wrote, for so many groups and measures; older files do not hold it."""
        if content is None:
            return None
        if not isinstance(content, dict) or set(content) != {"measure", *NUMBERS}:
            raise refused("it does not say how weights move means")
        j = content["measure"]
        if type(j) is not int or not 0 <= j < shape[1]:
            raise refused("its slopes are of no measure")
        found = cls(j, *(check_shape(name, read_numbers(content[name], name), shape[:1]) for name in NUMBERS))
        if any((part < 0).any() for part in (found.slope, found.swing, found.share)):
            raise refused("a slope, a swing or a share is negative")
        if abs(found.share.sum() - 1.0) > 1e-9 or not (found.slope[found.share > 0] > 0).any():
            raise refused("its shares do not sum to one, or no weight moves anything")
        return found


def slopes_of(search: Generator, outcome: Outcome) -> Slopes | None:
    """The slopes where a mixture ended; None where nobody could steer by them.

    That is where the group is not seen, where happiness looks at the label or is a fraction, where people keep chances,
    and where several measures weigh.
    """
    crowd, columns = search.crowd, search.real
    j = _weighing(np.array(search.kappa))
    if j is None or not crowd.sees_group or search.ground.chances:
        return None
    if crowd.measures[j].looks_at_y or crowd.measures[j].over:
        return None
    swing = search.expected.totals["spread"][:, j] / columns.divisor[:, j]
    known = columns.aggregates().compared[:, j]
    if not (swing[known] > 0).any():
        return None
    steps = _Steps.at(search, outcome.means[:, j] - crowd.origin[j], j, swing)
    slope = _steepness(search, steps, known)
    share = np.where(known, columns.totals["mass"], 0.0)
    return Slopes(
        j, np.where(known, steps.kappa, 0.0), np.where(known, slope, 0.0), swing, share / share.sum()
    )


def _weighing(kappas: Floats) -> int | None:
    """The only measure whose happiness weighs in some column, or the only one there is."""
    weighs = np.flatnonzero(kappas.any(axis=(0, 1))).tolist()
    if not weighs and kappas.shape[2] == 1:
        return 0
    return int(weighs[0]) if len(weighs) == 1 else None


def _units(columns: Columns, swing: Floats) -> Floats:
    """The weight at which all happiness there is to give is worth what the worst column loses, by group."""
    mass = columns.totals["mass"]
    losses = np.array(columns.loss) / np.where(mass > 0, mass, 1.0)
    spread = losses.max(axis=0) - losses.min(axis=0)
    return np.asarray(np.where(spread > 0, spread, 1.0) / np.where(swing > 0, swing, 1.0))


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of the weight of a measure from where a mixture ended; everything by group.

    ``mean`` is the group's there, ``unit`` what weighs as much as the loss, ``room`` how far means can still go up (1)
    and down (-1), ``rows`` how many people there are.
    """

    j: int
    kappa: Floats
    mean: Floats
    unit: Floats
    swing: Floats
    room: dict[float, Floats]
    rows: Floats

    @classmethod
    def at(cls, search: Generator, mean: Floats, j: int, swing: Floats) -> _Steps:
        """From these means of the groups, relative to the origin."""
        columns, unit = search.real, _units(search.real, swing)
        least = columns.totals[f"{columns.name} least"][:, j] / columns.divisor[:, j]
        most = least + swing
        weighing = [m for m, fixed in enumerate(search.fixed) if fixed == CHOOSES and search.alpha[m]]
        kappas = np.array(search.kappa)[weighing, :, j]
        means = np.array(columns.value)[weighing, :, j] / columns.divisor[:, j]
        far, kappa = np.abs(kappas).max(axis=0) + ALONE * unit, np.zeros(len(unit))
        for z in np.flatnonzero(~np.isnan(mean)):
            order = np.argsort(kappas[:, z], kind="stable")
            known = np.concatenate([-far[[z]], kappas[order, z], far[[z]]])
            reached = np.concatenate([least[[z]], means[order, z], most[[z]]])
            kappa[z] = np.interp(mean[z], np.maximum.accumulate(reached), known)
        room = {1.0: most - mean, -1.0: mean - least}
        return cls(j, kappa, mean, unit, swing, room, columns.totals["rows"])

    def taken(self, search: Generator, width: float) -> dict[float, Floats]:
        """Means of the groups after a step up (1) and down (-1), by one pass over the people."""
        shape, choices = (len(self.kappa), len(search.crowd.measures)), []
        for sign in self.room:
            weights = np.zeros(shape)
            weights[:, self.j] = self.kappa + sign * width * self.unit
            choices.append((1.0, weights, CHOOSES))
        name, divisor = search.real.name, search.real.divisor[:, self.j]
        sums = search.ground.columns(choices)
        return {
            sign: found[f"{name} value"][:, self.j] / divisor
            for sign, found in zip(self.room, sums, strict=True)
        }


def _steepness(search: Generator, steps: _Steps, known: Truths) -> Floats:
    """Mean happiness per unit of weight: the less steep of a step up and a step down.

    Where many people are alike a step over them is a cliff. A slope that holds it would keep a steering from leaving
    the place at its foot, and one that is too small only makes it quicker.
    """
    least, steepest = np.full(len(known), np.inf), np.zeros(len(known))
    told = dict.fromkeys((1.0, -1.0), ~known)
    for width in WIDTHS:
        if all(side.all() for side in told.values()):
            break
        for sign, mean in steps.taken(search, width).items():
            slope = np.maximum(sign * (mean - steps.mean), 0.0) / (width * steps.unit)
            people = slope * width * steps.unit / np.where(steps.swing > 0, steps.swing, 1.0) * steps.rows
            enough = (people >= MOVED) & ~told[sign]
            least = np.where(enough, np.minimum(least, slope), least)
            # Nobody is left to be moved that far.
            ended = steps.room[sign] <= 1e-9 * steps.swing
            told[sign] = told[sign] | enough | ended
            steepest = np.maximum(steepest, slope)
    steepest = np.where(steepest > 0, steepest, steps.swing / (2.0 * ALONE * steps.unit))
    return np.asarray(np.where(np.isfinite(least), least, steepest))
