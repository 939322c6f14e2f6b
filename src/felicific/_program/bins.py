"""Scores in fine bins, and the cells that bins are joined to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from felicific._typing import Codes, Floats

#: Rows that are looked at together: what is made of them stays in the processor's cache, and in memory that is used
#: again (arrays of 128 KB and more are asked of the system, and given back, each time).
CHUNK = 16_000

#: Fine bins of a score: sums over them are additive and the same on every machine, before cells are chosen.
FINE = 4096


def cuts_of(share: Floats, forced: list[int], cells: int) -> list[int]:
    """Where cells begin: at every forced cut, and so that all have about equal mass."""
    free = cells - 1 - len(forced)
    # Room for every occupied bin: a cell each. Else cells of about equal mass.
    occupied = np.flatnonzero(share > 0)
    before = np.concatenate([[0.0], share.cumsum()[:-1]]) / share.sum()
    quantiles = np.searchsorted(before, np.arange(1, free + 1) / (free + 1))
    wanted = occupied if len(occupied) <= free else quantiles
    cuts = set(forced) | {cut for cut in wanted.tolist() if 0 < cut < len(share)}
    # Where many people share a score, several of them fall on one place: the heaviest cells are cut once more.
    while len(occupied) > free and len(cuts) < cells - 1:
        parts = np.split(occupied, np.searchsorted(occupied, sorted(cuts)))
        heaviest = max(
            (part for part in parts if len(part) > 1), key=lambda part: share[part].sum(), default=None
        )
        if heaviest is None:
            break
        held = share[heaviest].cumsum()
        cuts.add(int(heaviest[1 + int(np.searchsorted(held[:-2], held[-1] / 2))]))
    return sorted(cuts)


def stretches(mass: Floats, least: float) -> list[int]:
    """Where stretches begin that each hold at least so many people, or all of them: at a signal that holds some."""
    starts, held = [], math.inf
    for s in np.flatnonzero(mass > 0).tolist():
        if held >= least:
            starts.append(s)
            held = 0.0
        held += mass[s]
    return starts[:-1] if held < least and len(starts) > 1 else starts


def fine_per_class(n_classes: int) -> int:
    """Number of fine bins of each predicted class's probability, when there are more than two classes."""
    return max(32, FINE // n_classes)


def fine_bins(score: Floats, boundary: float) -> Codes:
    """Fine bin of every row; multiplying by a power of two is exact, so bins are the same on every machine."""
    bins = np.empty(len(score), dtype=np.intp)
    for start in range(0, len(score), CHUNK):
        part = score[start : start + CHUNK]
        two = part.shape[1] == 2
        bins[start : start + CHUNK] = bins_of_two(part[:, 1], boundary) if two else bins_of_many(part.T)
    return bins


def bins_of_two(score: Floats, boundary: float) -> Codes:
    """Fine bin of every score of two classes."""
    bins = np.multiply(score, float(FINE))
    found: Codes = np.ceil(bins, out=bins).astype(np.intp)
    found += score > boundary
    return found


def bins_of_many(shares: Iterable[Floats]) -> Codes:
    """Fine bin of every row, from the probability of each of more than two classes."""
    first, *others = shares
    best, top = first.copy(), np.zeros(len(first), dtype=np.intp)
    for position, share in enumerate(others, 1):
        np.putmask(top, share > best, position)
        np.maximum(best, share, out=best)
    fine = fine_per_class(1 + len(others))
    best *= float(fine)
    top *= fine + 1
    top += np.ceil(best, out=best).astype(np.intp)
    return top


def lower_edges(starts: Sequence[int], n_classes: int, boundary: float) -> list[float]:
    """Scores that every person in each of these bins or above exceeds; negative where there is none."""
    if n_classes > 2:
        fine = fine_per_class(n_classes)
        return [(start % (fine + 1) - 1) / fine for start in starts]
    last_below = int(np.ceil(FINE * boundary))
    return [
        boundary if start == last_below + 1 else (start - 1 - (start > last_below)) / FINE for start in starts
    ]


def find_boundary(score: Floats, predicted: Codes) -> float:
    """Score above which a model of two classes decides the second, or 0.5 if its decisions are no threshold."""
    second, positive = score[:, 1], predicted == 1
    if bool(((second > 0.5) == positive).all()):
        return 0.5
    low = float(second[~positive].max(initial=0.0))
    high = float(second[positive].min(initial=1.0))
    if low >= high:
        return 0.5
    middle = (low + high) / 2
    return middle if middle < high else low
