"""Evidence: how much the values behind group means vary, and how many people they are of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from felicific._files import check_shape, read_numbers, refused
from felicific._problem.happiness import Measure, fractions_of
from felicific._problem.linear import Goal
from felicific._program.aggregates import NOBODY, Aggregates
from felicific._typing import Floats

#: Normal draws, each with its opposite, so that the expectation is never below the gap itself.
DRAWS = 2_000

#: People of an average group who are added to every group's own when it is said how much its values vary.
BORROWED = 2.0


@lru_cache(maxsize=8)
def _draws(n_groups: int) -> Floats:
    half = np.random.default_rng(15).standard_normal((DRAWS, n_groups))
    return np.concatenate([half, -half])


def pooled_variance(variance: Floats, n: Floats) -> Floats:
    """Variances of shape (groups, measures), each drawn a little towards that of all groups together.

    A small group may show no variance at all, and has some.
    """
    common = (n * variance).sum(axis=0) / n.sum(axis=0)
    return np.asarray((n * variance + BORROWED * common) / (n + BORROWED))


def expected_range(means: Floats, error: Floats) -> Floats:
    """Mean range, over groups, of means that are each off by a normal error.

    Parameters
    ----------
    means, error : array of shape (groups, measures)
        The means, and the standard deviations of their errors. A group of which nobody is counted, so that its mean is
        not a number, is compared with none.
    """
    if len(error) == 2:
        return np.asarray(np.nan_to_num(_expected_distance(means[0] - means[1], np.hypot(*error))))
    return _drawn(means, error, lambda drawn: np.ptp(drawn, axis=1), 0.0)


def expected_ratio(means: Floats, error: Floats) -> Floats:
    """Mean of the smallest by the largest of means that are each off by a normal error, and never negative.

    Arguments are those of :func:`expected_range`. Where all are 0, the ratio is 1.
    """

    def ratio(drawn: Floats) -> Floats:
        low, high = (side(np.maximum(drawn, 0.0), axis=1) for side in (np.min, np.max))
        return np.asarray(np.divide(low, high, out=np.ones_like(low), where=high > 0))

    return _drawn(means, error, ratio, 1.0)


#: What to expect of a requirement, by what it makes of means.
EXPECTED: dict[str, Callable[[Floats, Floats], Floats]] = {"gap": expected_range, "ratio": expected_ratio}


def _drawn(means: Floats, error: Floats, made: Callable[[Floats], Floats], nobody: float) -> Floats:
    """Mean of what is made of means that are off, for every measure; ``nobody`` where no group is counted."""
    draws, found = _draws(len(error)), np.full(error.shape[1], nobody)
    for j, (mean, off) in enumerate(zip(means.T, error.T, strict=True)):
        known = ~np.isnan(mean)
        if known.any():
            found[j] = made(mean[known] + (draws * off)[:, known]).mean()
    return found


def _expected_distance(apart: Floats, error: Floats) -> Floats:
    """Mean size of a difference that is off by a normal error: two groups need no draws."""
    from scipy.special import erf

    scale = np.where(error > 0, error, 1.0) * math.sqrt(2.0)
    size = error * math.sqrt(2.0 / math.pi) * np.exp(-((apart / scale) ** 2)) + apart * erf(apart / scale)
    return np.asarray(np.where(error > 0, size, np.abs(apart)))


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
NUMBERS = ("variance", "number", "people", "size", "weight")


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
    weight : array of shape (groups,)
        What these weigh: their number, unless weights do not count people.
    """

    variance: Floats = field(repr=False)
    number: Floats = field(repr=False)
    people: Floats = field(repr=False)
    size: Floats = field(repr=False)
    weight: Floats = field(repr=False)

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
            found.append(cls(np.maximum(square - mean**2, 0.0), held * told, held, size, mass))
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
        shapes = {name: shape[:1] if name in ("size", "weight") else shape for name in NUMBERS}
        found = cls(*(check_shape(name, read_numbers(content[name], name), shapes[name]) for name in NUMBERS))
        held = found.size != 0  # of a group that is not compared, there may be nobody who is counted
        parts = (found.number[held], found.people[held], found.size[held], found.weight[held])
        if (found.variance < 0).any() or any((part <= 0).any() for part in parts):
            raise refused("a variance is negative, or a mean is known of nobody")
        return found


def _compared(asked: Goal, means: Floats, more: Floats) -> tuple[Floats, Floats]:
    """How much each group counts in every mean that is compared, where so many more are of it; and these means."""
    weights = asked.weights(means) * np.minimum(more, PLENTY)
    weights = weights[weights.any(axis=1)]
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights, weights @ np.nan_to_num(means[:, asked.j])
