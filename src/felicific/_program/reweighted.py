"""Aggregates of people without labels, from those of labelled people who are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from felicific._program.aggregates import Aggregates
from felicific._program.cell_sums import CellSums
from felicific._typing import Codes, Floats


def reweighted(
    labelled: Aggregates, fresh: Aggregates, *, sees_group: bool = True, exact_loss: bool = False
) -> Aggregates:
    r"""Aggregates of unlabelled people: what can be computed on them is, the rest keeps its mean per cell.

    A measure of ``fresh`` is taken as it is, and so is an ``exact_loss``. Of any other sum of ``labelled``, and of
    any other loss, :math:`E[\cdot \mid s, z]` is kept and multiplied by the new mass of (z, s). A cell without
    labelled people takes the mean of its nearest neighbours in the same group, and failing those of all groups
    together. Cells that are treated alike because they hold few labelled people share one mean.
    """
    alike = labelled.alike(sees_group)
    labelled = labelled if alike is None else labelled.moved(alike)
    unit = _Means(labelled, alike)
    exact = {measure.name: j for j, measure in enumerate(fresh.measures)}
    mass = fresh.mass
    sums: dict[str, Any] = {name: unit(array, mass) for name, array in labelled.known_sums.items()}
    square = sums.get("square")
    for j, measure in enumerate(labelled.measures):
        if measure.name in exact:
            i = exact[measure.name]
            shift = fresh.origin[i] - labelled.origin[j]
            among = fresh.among[..., i]
            sums["among"][..., j] = among
            sums["value"][..., j] = fresh.value[..., i] + shift * among[:, :, None]
            if fresh.baseline_value is not None and "baseline_value" in sums:
                sums["baseline_value"][..., j] = fresh.baseline_value[..., i] + shift * among
            if square is not None and fresh.square is not None:
                moved = 2.0 * shift * fresh.value[..., i] + shift**2 * among[:, :, None]
                square[..., j] = fresh.square[..., i] + moved
            for name in ("gains", "loses"):
                if name in sums and getattr(fresh, name) is not None:
                    sums[name][..., j] = getattr(fresh, name)[..., i]
    if exact_loss:
        sums |= {"loss": fresh.loss, "baseline_loss": fresh.baseline_loss}
    sums |= {"mass": mass, "baseline_mass": fresh.baseline_mass}
    return replace(labelled, sums=CellSums.of_dense(sums), rows=fresh.rows)


class _Means:
    """Means per cell of labelled sums, with empty cells filled from where the nearest people are."""

    def __init__(self, labelled: Aggregates, alike: Codes | None) -> None:
        self.mass = labelled.mass
        self.alike = alike
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
        if self.alike is not None:
            mean = np.take_along_axis(mean, self.alike.reshape(*held.shape, *extra), axis=1)
        return np.asarray(mean * mass.reshape(*mass.shape, *extra))
