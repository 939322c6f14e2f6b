"""Who has which score, and whose decision changes; and one worked person, who is nobody's row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from felicific._fit.effect import Effect
from felicific._fit.tryout import Tryout
from felicific._policy.policy import Policy
from felicific._typing import Codes, Floats

#: Bins of the histogram, cells in which a person is looked for, and the fewest people such a cell may have.
BINS, CELLS, FEWEST = 60, 100, 10

#: Places along the cells of a decision function at which the page says its value.
TICKS = (0.25, 0.5, 0.75)

#: From this chance on a decision is as good as certain.
CERTAIN = 0.9995


@dataclass(frozen=True, eq=False)
class Scored:
    """People along the line of scores that a policy of two decisions sees.

    Attributes
    ----------
    tried : Tryout
    best : int
        Position of the best decision.
    scores : array of shape (n,)
    cuts : list of (float, float)
        Of a decision function, see :class:`felicific._policy.policy.Stretches`.
    """

    tried: Tryout
    best: int
    scores: Floats
    cuts: list[tuple[float, float]]

    @classmethod
    def of(cls, tried: Tryout, policy: Policy) -> Scored | None:
        """None where no policy of this kind sees one line of scores."""
        seen, score = policy.stretches(), tried.people.scores()
        if seen is None or seen.boundary is None or score is None:
            return None
        return cls(tried, policy.best, np.asarray(score[:, -1]), seen.cuts)

    def people(self) -> list[list[float]]:
        """How many people of every group there are in each bin."""
        return self._binned(np.ones(len(self.scores)))

    def moved(self, effect: Effect) -> tuple[list[list[float]], list[list[float]]]:
        """How many people of each bin are now decided favourably, and how many no longer."""
        now, chance = self._baseline == self.best, effect.probabilities[:, self.best]
        return self._binned(np.where(now, 0.0, chance)), self._binned(np.where(now, 1.0 - chance, 0.0))

    def _binned(self, share: Floats) -> list[list[float]]:
        people, groups = self.tried.people, len(self.tried.people.groups)
        bins = np.minimum((self.scores * BINS).astype(np.intp), BINS - 1)
        counts = np.bincount(people.codes * BINS + bins, self._weights * share, minlength=groups * BINS)
        return [[float(f"{number:.6g}") for number in row] for row in counts.reshape(groups, BINS).tolist()]

    @staticmethod
    def steps(policy: Policy) -> list[list[list[float]]]:
        """Of every group the stretches of scores that are treated alike: from, to, and the chance of the best."""
        seen = policy.stretches()
        assert seen is not None, "it sees a line of scores"
        found: list[list[list[float]]] = [[] for _ in policy.groups]
        best = policy.best
        for z, _, low, high, q in seen.rows:
            chance = q[best] if policy.randomize else float(np.argmax(q) == best)
            found[z].append([low, high, chance])
        return found if policy.sees_group else [found[0]] * len(policy.groups)

    # -----------------------------------------------------------------------------------------------------
    # One worked person

    def person(self, effect: Effect, change: Floats) -> dict[str, Any] | None:
        """The score at which most people of a group move, as somebody there meets it; None where too few do.

        A cell of at least ten people of whom at least half move; preferably one where another group is decided on
        otherwise. ``change`` is what everybody's happiness changes by, of shape (n, measures).
        """
        moved = self._by_cell(1.0 - effect.probabilities[np.arange(len(self.scores)), self._baseline])
        count, chance = self._count, self._by_cell(effect.probabilities[:, self.best])
        with np.errstate(invalid="ignore", divide="ignore"):
            share, mean = moved / count, chance / count
        able = (self._rows >= FEWEST) & (share >= 0.5)
        if not able.any():
            return None
        held = count > 0
        most, least = np.where(held, mean, 0.0).max(axis=0), np.where(held, mean, 1.0).min(axis=0)
        apart = able & (most - least >= 0.5)[None, :]
        z, cell = np.unravel_index(
            np.argmax(np.where(apart if apart.any() else able, moved, -1.0)), moved.shape
        )
        rows = (self._cell == cell) & (self.tried.people.codes == z)
        weight = self._weights[rows]
        baseline = int(np.argmax(np.bincount(self._baseline[rows], weight)))
        others = [g for g in range(len(count)) if g != z and count[g, cell] > 0]
        other = max(others, key=lambda g: abs(mean[g, cell] - mean[z, cell]), default=None)
        return {
            "group": int(z),
            **self._between(float(cell / CELLS), float((cell + 1) / CELLS)),
            "people": float(count[z, cell]),
            "baseline": baseline,
            **self._then(effect, int(z), int(cell)),
            "other": None if other is None else {"group": other, **self._then(effect, other, int(cell))},
            "changes": [float(number) for number in weight @ change[rows] / weight.sum()],
        }

    def _between(self, low: float, high: float) -> dict[str, float | None]:
        """From which score to which; of a decision function, between which values all people of these places are."""
        if not self.cuts:
            return {"low": low, "high": high}
        inner = [place for place, _ in self.cuts]
        middles = (np.array([0.0, *inner]) + np.array([*inner, 1.0])) / 2
        cells = np.flatnonzero((middles >= low) & (middles < high))
        below, above = int(cells[0]) - 1, int(cells[-1])
        return {
            "low": self.cuts[below][1] if below >= 0 else None,
            "high": self.cuts[above][1] if above < len(self.cuts) else None,
        }

    def _then(self, effect: Effect, z: int, cell: int) -> dict[str, Any]:
        """The decision about people of a group and a cell; None where it is decided at random.

        Then one that may be drawn is told with its chance: the best one, or the likeliest where nobody gets that.
        """
        rows = (self._cell == cell) & (self.tried.people.codes == z)
        probabilities = np.average(effect.probabilities[rows], axis=0, weights=self._weights[rows])
        likely = int(np.argmax(probabilities))
        sure = bool(probabilities[likely] >= CERTAIN)
        drawn = self.best if sure or probabilities[self.best] > 1.0 - CERTAIN else likely
        return {"then": likely if sure else None, "drawn": drawn, "chance": float(probabilities[drawn])}

    @cached_property
    def _weights(self) -> Floats:
        return self.tried.people.weights

    @cached_property
    def _baseline(self) -> Codes:
        return self.tried.people.decisions_baseline()

    @cached_property
    def _cell(self) -> Codes:
        return np.minimum((self.scores * CELLS).astype(np.intp), CELLS - 1)

    @cached_property
    def _count(self) -> Floats:
        return self._by_cell(np.ones(len(self.scores)))

    @cached_property
    def _rows(self) -> Floats:
        """How many rows there are in each cell, whatever they weigh."""
        return self._by_cell(np.ones(len(self.scores)), weighted=False)

    def _by_cell(self, share: Floats, *, weighted: bool = True) -> Floats:
        people, groups = self.tried.people, len(self.tried.people.groups)
        held = share * self._weights if weighted else share
        counts = np.bincount(people.codes * CELLS + self._cell, held, minlength=groups * CELLS)
        return np.asarray(counts.reshape(groups, CELLS), dtype=np.float64)


def values_at(cuts: list[tuple[float, float]], places: tuple[float, ...]) -> list[tuple[float, float]]:
    """The cuts of a decision function that are nearest to some places, each once."""
    nearest = [min(cuts, key=lambda cut: abs(cut[0] - place)) for place in places]
    return list(dict.fromkeys(nearest))
