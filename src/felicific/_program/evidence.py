"""Evidence: how much the values behind group means vary, and how many people they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from felicific._documents import check_shape, read_numbers, refused
from felicific._problem.happiness import Measure, fractions_of
from felicific._problem.rows import Goal
from felicific._program.aggregates import NOBODY, Aggregates
from felicific._statistics.expected import EXPECTED, pooled_variance
from felicific._typing import Floats


def _among_counted(
    mean: Floats, square: Floats, origin: Floats, j: int, k: int
) -> tuple[Floats, Floats, Floats]:
    r"""Mean square and mean of those whom a fraction counts, and their share; from sums over everybody.

    By the delta method the variance of N / D is that of :math:`(N_i - R D_i) / D`. Who is not counted adds 0, so it is
    the variance among those who are, of as many people.
    """
    by = origin[j]
    share = np.clip(mean[:, k] + origin[k], 0.0, 1.0)
    counted = np.where(share > NOBODY, share, 1.0)
    total = np.where(share > NOBODY, mean[:, j] + by, 0.0)
    squares = np.where(share > NOBODY, square[:, j] + 2.0 * by * mean[:, j] + by**2, 0.0)
    return squares / counted, total / counted, share


#: As good as infinitely many people for each that was fitted, where they are mixed with others.
PLENTY = 1e15

#: Parts of evidence that are numbers.
NUMBERS = ("variance", "number", "people", "size")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What group means rest on.

    Attributes
    ----------
    variance : array of shape (groups, measures)
        Of people's happiness under the policy, the lottery included.
    number : array of shape (groups, measures)
        How many people were counted to know the means; of unequal weights, and of clusters, as many independent people
        as would tell as much.
    people : array of shape (groups, measures)
        How many are counted among those whom the policy is for: the fitted ones, or those it was recalibrated for.
    size : array of shape (groups,)
        How many these are, counted by a measure or not.
    """

    variance: Floats = field(repr=False)
    number: Floats = field(repr=False)
    people: Floats = field(repr=False)
    size: Floats = field(repr=False)

    @classmethod
    def of(cls, aggregates: Aggregates, q: Floats) -> Evidence | None:
        """What the means of the policy ``q[z, s, d]`` rest on; None where the sums do not tell how values vary."""
        return cls.of_each(aggregates, [q])[0]

    @classmethod
    def of_each(cls, aggregates: Aggregates, tables: Sequence[Floats]) -> Sequence[Evidence | None]:
        """What :meth:`of` says of each of some policies."""
        if aggregates.square is None:
            return [None] * len(tables)
        counted, mass, found = aggregates.counted, aggregates.mass.sum(axis=1), []
        # Weights that do not count people: as many as there are rows, as if they weighed alike.
        scale = np.ones(len(mass)) if aggregates.counts else aggregates.rows / np.where(mass > 0, mass, 1.0)
        people, size, fractions = counted * scale[:, None], mass * scale, fractions_of(aggregates.measures)
        divisor, told = aggregates.divisor, np.ones_like(people)
        if aggregates.labels is not None:  # what looks at the label is known of those who have one
            looking = np.array([measure.looks_at_y for measure in aggregates.measures])
            told = np.where(looking, aggregates.labels.evidence[:, None], 1.0)
        for q in tables:
            mean, square = (
                np.einsum("zsdj,zsd->zj", sums, q) / divisor for sums in (aggregates.value, aggregates.square)
            )
            held = people.copy()
            for j, k in fractions:
                square[:, j], mean[:, j], share = _among_counted(mean, square, aggregates.origin, j, k)
                held[:, j] = np.where(people[:, j] > 0, np.maximum(people[:, j] * share, 1.0), 0.0)
            found.append(cls(np.maximum(square - mean**2, 0.0), held * told, held, size))
        return found

    def carried(self, labelled: Evidence, measures: tuple[Measure, ...]) -> Evidence:
        """For people without labels: what looks at the label is known from the labelled ones alone."""
        kept = np.array([measure.looks_at_y for measure in measures])
        return replace(
            self,
            variance=np.where(kept, labelled.variance, self.variance),
            number=np.where(kept, labelled.number, self.number),
        )

    def expected(
        self, asked: Goal, means: Floats, more: Floats, *, sure: bool = False, alike: bool = False
    ) -> float:
        """What others are expected to make of a requirement that compares people.

        ``more`` is how many of them there are, by group, for each of those whom the policy is for. They may be these
        very people, of whom means are known for ``sure``; or those compared may be truly ``alike``, so that nothing but
        chance sets them apart.
        """
        j, expect = asked.j, EXPECTED[asked.statistic]
        weights, centre = _compared(asked, means, more)
        apart = np.nan_to_num(means[:, j]) - centre[:, None]
        variance = (weights * (self.variance[:, j] + apart**2)).sum(axis=1)[:, None]
        known, new = (
            ((weights**2) @ np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0))[:, None]
            for numbers in (self.number[:, j], self.people[:, j] * more)
        )
        likely = pooled_variance(variance, 1.0 / known)
        if sure:
            return float(expect(centre[:, None], np.zeros_like(likely))[0])
        if alike:
            centre = np.full_like(centre, np.average(centre, weights=1.0 / known[:, 0]))
        return float(expect(centre[:, None], np.sqrt(likely * (known + new)))[0])

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {name: getattr(self, name).tolist() for name in NUMBERS}

    @classmethod
    def from_json(cls, content: Any, shape: tuple[int, ...]) -> Evidence | None:
        """Read what :meth:`to_json` wrote, for means of this shape."""
        if content is None:
            return None
        if not isinstance(content, dict) or set(content) != set(NUMBERS):
            raise refused("it does not say how much values vary, and of how many people that is known")
        shapes = {name: shape[:1] if name == "size" else shape for name in NUMBERS}
        found = cls(*(check_shape(name, read_numbers(content[name], name), shapes[name]) for name in NUMBERS))
        held = found.size != 0  # nobody has to be of unknown group
        parts = (found.number[held], found.people[held], found.size[held])
        if (found.variance < 0).any() or any((part <= 0).any() for part in parts):
            raise refused("a variance is negative, or a mean is known of nobody")
        return found


def _compared(asked: Goal, means: Floats, more: Floats) -> tuple[Floats, Floats]:
    """How much each group counts in every mean that is compared, where so many more are of it; and these means."""
    weights = asked.weights(means) * np.minimum(more, PLENTY)
    weights = weights[weights.any(axis=1)]
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights, weights @ np.nan_to_num(means[:, asked.j])
