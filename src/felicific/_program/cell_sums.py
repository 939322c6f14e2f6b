"""Sums by group and signal, kept where somebody is: what aggregates hold, by the names of the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from felicific._typing import Codes, Floats

#: The sums, by what their further axes are: decisions (d) and measures (j).
SUMS = {
    "mass": "",
    "loss": "d",
    "value": "dj",
    "among": "j",
    "baseline_loss": "",
    "baseline_value": "j",
    "baseline_mass": "d",
    "square": "dj",
    "gains": "dj",
    "loses": "dj",
    "worse": "d",
    "least_loss": "d",
}

#: Those that aggregates may lack.
OPTIONAL = ("baseline_mass", "square", "gains", "loses", "worse", "least_loss")

#: And those that they lack only where decisions are listed and nobody named the baseline.
BASELINE = ("baseline_loss", "baseline_value")

#: Those that nobody knows where there is no baseline.
COMPARED = (*BASELINE, "baseline_mass", "gains", "loses", "worse")

#: Those that people are added up to; the others follow from them.
ADDED = tuple(name for name in SUMS if name != "least_loss")


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums by group and signal, of the cells that somebody is in: memory is that of what occurs.

    Attributes
    ----------
    groups, signals : int
        How many there are of each.
    place : array of shape (n,)
        The cells, ``group * signals + signal``, in their order.
    arrays : dict
        Of each sum an array of shape (..., n), by its name: cells side by side, because they are what is added up.
    """

    groups: int
    signals: int
    place: Codes
    arrays: Mapping[str, Floats]

    @classmethod
    def of_dense(cls, arrays: Mapping[str, Floats | None]) -> CellSums:
        """All cells of arrays of shape (groups, signals, ...); None is left out."""
        known = {name: array for name, array in arrays.items() if array is not None}
        groups, signals = known["mass"].shape
        cells = groups * signals
        flat = {
            name: np.moveaxis(array, (0, 1), (-2, -1)).reshape(*array.shape[2:], cells)
            for name, array in known.items()
        }
        return cls(groups, signals, np.arange(cells), flat)

    @cached_property
    def group(self) -> Codes:
        """The group of every cell."""
        return self.place // max(self.signals, 1)

    @cached_property
    def signal(self) -> Codes:
        """The signal of every cell."""
        return self.place % max(self.signals, 1)

    @cached_property
    def _starts(self) -> Codes:
        """Where the cells of every group begin."""
        return starts_of(self.group)

    def dense(self, name: str) -> Floats | None:
        """One of the sums as an array of shape (groups, signals, ...); None where it is not known."""
        array = self.arrays.get(name)
        if array is None:
            return None
        cells = self.groups * self.signals
        if len(self.place) < cells:
            held, array = array, np.zeros((*array.shape[:-1], cells))
            array[..., self.place] = held
        shaped = array.reshape(*array.shape[:-1], self.groups, self.signals)
        further = range(shaped.ndim - 2)
        return shaped.transpose(shaped.ndim - 2, shaped.ndim - 1, *further)

    def by_group(self, array: Floats) -> Floats:
        """Numbers of cells, of shape (..., n), added up to shape (groups, ...)."""
        found = np.zeros((*array.shape[:-1], self.groups))
        found[..., self.group[self._starts]] = add_runs(array, self._starts)
        return found.transpose(found.ndim - 1, *range(found.ndim - 1))

    def changed(self, change: Callable[[str, Floats], Floats]) -> CellSums:
        """With other numbers in the same cells."""
        arrays = {name: change(name, array) for name, array in self.arrays.items()}
        return CellSums(self.groups, self.signals, self.place, arrays)

    def moved(self, place: Codes, groups: int, signals: int) -> CellSums:
        """With every cell added to another place, of so many groups and signals."""
        if len(place) and (np.diff(place) < 0).any():
            order = np.argsort(place, kind="stable")
            moved = self.changed(lambda _, array: array[..., order])
            return CellSums(groups, signals, place[order], moved.arrays).moved(place[order], groups, signals)
        starts = starts_of(place)
        added = self.changed(lambda _, array: add_runs(array, starts))
        return CellSums(groups, signals, place[starts], added.arrays)

    def regrouped(self, codes: Codes, groups: int) -> CellSums:
        """With other numbers for its groups, of so many."""
        return self.moved(codes[self.group] * self.signals + self.signal, groups, self.signals)


def add_sums(parts: Sequence[CellSums]) -> CellSums:
    """The sums of all parts together, of the same groups and signals; of what all of them know."""
    first = parts[0]
    if len(parts) == 1:
        return first
    names = [name for name in first.arrays if all(name in part.arrays for part in parts)]
    arrays = {name: np.concatenate([part.arrays[name] for part in parts], axis=-1) for name in names}
    place = np.concatenate([part.place for part in parts])
    return CellSums(first.groups, first.signals, place, arrays).moved(place, first.groups, first.signals)


def starts_of(codes: Codes) -> Codes:
    """Where the runs of equal codes begin, of codes in their order."""
    new = np.ones(len(codes), dtype=bool)
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    return np.flatnonzero(new)


def add_runs(array: Floats, starts: Codes) -> Floats:
    """Numbers of cells, the last axis, added up from each of these starts to the next."""
    return np.add.reduceat(array, starts, axis=-1) if len(starts) else array[..., :0]
