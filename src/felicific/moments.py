"""Moments: the sums over rows that the linear program needs, and nothing else of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific.exceptions import GroupError, HappinessError, MomentsError
from felicific.frames import (
    Array,
)
from felicific.happiness import (
    Component,
)
from felicific.signals import Score, Signal

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What some policy does to the people behind the moments.

    Attributes
    ----------
    loss : float
        Expected loss per person.
    means : array of shape (groups, components)
        Mean happiness of every group, in the component's unit.
    gaps : array of shape (components,)
        Largest mean minus smallest mean.
    """

    loss: float
    means: Floats
    gaps: Floats


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Sums over rows of group :math:`z` that see signal :math:`s`.

    With weights :math:`w_i`, signal weights :math:`W_{is}`, loss :math:`c(d; i)`, happiness
    :math:`\eta_j(d; i)` and membership :math:`a_j(i)`:

    .. math::
        \mathrm{mass}_{zs} = \sum w_i W_{is}, \quad
        \mathrm{loss}_{zsd} = \sum w_i W_{is} c(d; i), \quad
        \mathrm{value}_{zsdj} = \sum w_i W_{is} a_j(i) (\eta_j(d; i) - o_j), \quad
        \mathrm{among}_{zsj} = \sum w_i W_{is} a_j(i)

    The origin :math:`o_j` is a typical value of component j. Gaps do not depend on it; keeping the sums
    relative to it means that a large constant inside a happiness costs no digits.

    Moments add: ``moments(A) + moments(B)`` are the moments of both tables together, and ``sum()`` works.
    Moments that disagree on classes, groups, components, signal or loss refuse to add.
    """

    classes: Array
    groups: tuple[Any, ...]
    components: tuple[Component, ...]
    signal: Signal
    loss_name: str
    origin: Floats
    mass: Floats
    loss: Floats
    value: Floats
    among: Floats
    today_loss: Floats
    today_value: Floats
    rows: NDArray[np.int64]

    @property
    def total(self) -> float:
        """Total weight."""
        return float(self.mass.sum())

    @property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, components)."""
        return np.asarray(self.among.sum(axis=1))

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        for what in ("classes", "groups", "components", "signal", "loss_name"):
            mine, theirs = getattr(self, what), getattr(other, what)
            same = np.array_equal(mine, theirs) if what == "classes" else mine == theirs
            if not same:
                raise MomentsError(
                    f"These moments disagree on {what.removesuffix('_name')}: {_difference(mine, theirs)}.",
                    "Compute both with the same arguments; pass classes= and groups= when a part lacks some.",
                )
        # Without anybody counted there is no origin to speak of.
        origin = np.where(self.counted.sum(axis=0) > 0, self.origin, other.origin)
        shift = other.origin - origin
        return replace(
            self,
            origin=origin,
            mass=self.mass + other.mass,
            loss=self.loss + other.loss,
            value=self.value + other.value + (shift * other.among)[:, :, None, :],
            among=self.among + other.among,
            today_loss=self.today_loss + other.today_loss,
            today_value=self.today_value + other.today_value + shift * other.among,
            rows=self.rows + other.rows,
        )

    def __radd__(self, other: object) -> Moments:
        return self if other == 0 else NotImplemented

    def check_complete(self) -> None:
        """Raise unless there are two groups, each with people, inside every component's ``among`` too."""
        if len(self.groups) < 2:
            raise GroupError(
                f"There is one group only: {self.groups[0]!r}." if self.groups else "There is no group.",
                "A gap is between groups: pass rows of at least two.",
            )
        for z, group in enumerate(self.groups):
            if self.mass[z].sum() <= 0:
                raise GroupError(f"The group {group!r} is empty.", "Leave it out, or add rows that hold it.")
            for j, component in enumerate(self.components):
                if self.counted[z, j] <= 0:
                    raise HappinessError(
                        f"Nobody of the group {group!r} is counted by {component.name!r}.",
                        "Add such rows, widen `among`, or merge the group with another.",
                    )

    def evaluate(self, q: Floats) -> Outcome:
        """Loss, group means and gaps of the policy ``q[z, s, d]``."""
        relative = np.einsum("zsdj,zsd->zj", self.value, q) / self.counted
        return self._outcome(float(np.einsum("zsd,zsd->", self.loss, q)), relative)

    @property
    def today(self) -> Outcome:
        """What the model's own decisions do."""
        return self._outcome(float(self.today_loss.sum()), self.today_value.sum(axis=1) / self.counted)

    def joined(self) -> Moments:
        """With a score's fine bins joined to cells; any other moments as they are."""
        if not isinstance(self.signal, Score):
            return self
        cells, signal = self.signal.join(self.mass, len(self.classes))
        starts = np.flatnonzero(np.diff(cells, prepend=-1))

        def add(array: Floats) -> Floats:
            return np.asarray(np.add.reduceat(array, starts, axis=1))

        return replace(
            self,
            signal=signal,
            mass=add(self.mass),
            loss=add(self.loss),
            value=add(self.value),
            among=add(self.among),
            today_loss=add(self.today_loss),
            today_value=add(self.today_value),
        )

    def _outcome(self, loss: float, relative: Floats) -> Outcome:
        gaps = relative.max(axis=0) - relative.min(axis=0)
        return Outcome(loss / self.total, relative + self.origin, gaps)


def _difference(mine: Any, theirs: Any) -> str:
    """Both sides of a disagreement; components by name, or in full when the names agree."""
    if isinstance(mine, tuple) and mine and isinstance(mine[0], Component):
        names = [[component.name for component in side] for side in (mine, theirs)]
        mine, theirs = names if names[0] != names[1] else (list(mine), list(theirs))
    texts = [str(side.tolist() if isinstance(side, np.ndarray) else side) for side in (mine, theirs)]
    return " and ".join(text if len(text) < 400 else text[:400] + "..." for text in texts)


def reweighted(labelled: Moments, fresh: Moments) -> Moments:
    r"""Moments of unlabelled people: what can be computed on them is, the rest keeps its mean per cell.

    A component of ``fresh`` is taken as it is. Of any other sum of ``labelled``, and of the loss,
    :math:`E[\cdot \mid s, z]` is kept and multiplied by the new mass of (z, s). A cell without labelled people
    takes the mean of its nearest neighbours in the same group, and failing those of all groups together.
    """
    unit = _Means(labelled)
    exact = {component.name: j for j, component in enumerate(fresh.components)}
    mass = fresh.mass
    value, among = unit(labelled.value, mass), unit(labelled.among, mass)
    today_value = unit(labelled.today_value, mass)
    for j, component in enumerate(labelled.components):
        if component.name in exact:
            i = exact[component.name]
            shift = fresh.origin[i] - labelled.origin[j]
            among[..., j] = fresh.among[..., i]
            value[..., j] = fresh.value[..., i] + shift * fresh.among[..., i][:, :, None]
            today_value[..., j] = fresh.today_value[..., i] + shift * fresh.among[..., i]
    return replace(
        labelled,
        mass=mass,
        loss=unit(labelled.loss, mass),
        value=value,
        among=among,
        today_loss=unit(labelled.today_loss, mass),
        today_value=today_value,
        rows=fresh.rows,
    )


class _Means:
    """Means per cell of labelled sums, with empty cells filled from where the nearest people are."""

    def __init__(self, labelled: Moments) -> None:
        self.mass = labelled.mass
        self.sources = {
            (z, s): self._source(z, s, run)
            for run in labelled.signal.runs(len(labelled.classes))
            for s in run
            for z in range(len(labelled.groups))
            if labelled.mass[z, s] <= 0
        }

    def _source(self, z: int, s: int, run: range) -> tuple[list[int], list[int]]:
        """Groups and signals to borrow from: nearest in the group, in all groups, then anywhere in the group."""
        everyone = list(range(len(self.mass)))
        for groups in ([z], everyone):
            held = np.array([t for t in run if self.mass[groups, t].sum() > 0])
            if len(held):
                distance = np.abs(held - s)
                return groups, held[distance == distance.min()].tolist()
        return [z], np.flatnonzero(self.mass[z]).tolist()

    def __call__(self, sums: Floats, mass: Floats) -> Floats:
        """Mean per cell times the new mass."""
        extra = (1,) * (sums.ndim - 2)
        held = self.mass > 0
        mean = sums / np.where(held, self.mass, 1.0).reshape(*held.shape, *extra)
        for (z, s), (groups, signals) in self.sources.items():
            index = np.ix_(groups, signals)
            mean[z, s] = sums[index].sum(axis=(0, 1)) / self.mass[index].sum()
        return np.asarray(mean * mass.reshape(*mass.shape, *extra))
