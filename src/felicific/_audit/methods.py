"""Measures: the values of some people with the method by which their means are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from felicific._audit.persons import Persons, bounds_of, not_one_by_one
from felicific._statistics.intervals import METHODS, Limits, Sample, mean_limits, with_added
from felicific._typing import Floats, Truths
from felicific.exceptions import DataError, HappinessError

#: Above this many people in a group a betting interval takes a noticeable time and is chosen no longer.
BETTING_ROWS = 100_000

#: With fewer successes or failures than this in some group, a rate is not treated as normal.
FEWEST = 5

#: Cochran's (1977) rule: a t interval may be trusted from 25 times the squared skewness on.
COCHRAN = 25.0


@dataclass(frozen=True, eq=False)
class Measure:
    """What is known of one component, or of the loss, group by group.

    Attributes
    ----------
    sample : Sample
        Of shape (groups,), relative to the origin.
    origin : float
        What to add to means and limits.
    method : str
        One of ``METHODS``.
    bounds : (low, high) or None
        Known range, relative to the origin.
    values : callable
        The values of a group, relative to the origin, as often as there are people.
    rate : bool
        Whether all values are 0 or 1; the origin is then 0.
    """

    sample: Sample
    origin: float
    method: str
    bounds: tuple[float, float] | None
    values: Callable[[int], Floats]
    rate: bool = False

    @property
    def pairs(self) -> Sample:
        """The sample to compare groups by: of rates, with a success and a failure added to each."""
        return with_added(self.sample, 1.0) if self.rate else self.sample

    def limits(self, tail: float) -> Limits:
        """Limits of every group's mean, relative to the origin."""
        return mean_limits(self.method, self.sample, tail, self.bounds, self.values)

    def cautious(self, tail: float) -> Limits:
        """The same; of a large sample with the correction for skewness."""
        return (self.by("hall") if self.method == "t" else self).limits(tail)

    def by(self, method: str) -> Measure:
        """The same people by another method."""
        return replace(self, method=method)

    @property
    def words(self) -> str:
        """The method in words."""
        return METHODS[self.method]

    @property
    def skewed(self) -> Truths:
        """Groups whose t interval covers too rarely because of skewness, by Cochran's rule."""
        sample = self.sample
        return np.asarray(~sample.silent & (sample.n < COCHRAN * sample.skewness**2))

    @property
    def normal(self) -> bool:
        """Whether differences of the means may be treated as normal."""
        if self.rate:
            hits = self.sample.n * self.sample.mean
            return bool((np.minimum(hits, self.sample.n - hits) >= FEWEST).all())
        return not bool(self.sample.silent.any() or self.skewed.any())

    def notes(self) -> list[str]:
        """What to beware of in every group's mean; empty if nothing."""
        sample, notes = self.sample, []
        for z in range(len(sample.n)):
            note = ""
            if self.method not in ("exact", "added") and sample.n[z] < 2:
                note = "one person says nothing of the others"
            elif self.method in ("t", "hall") and sample.silent[z]:
                note = "all values are equal, so nothing is known of their spread"
                note += "" if self.bounds is not None else "; bounds= would help"
            elif self.method == "t" and self.skewed[z]:
                note = f"skewness {sample.skewness[z]:.1f}: holds the truth less often than stated"
            notes.append(note)
        return notes


def measure_component(persons: Persons, j: int, method: str = "auto") -> Measure:
    """One component by the method that was asked for, if it can be had, or by the best there is."""
    kept: dict[int, Floats] = {}

    def values(z: int) -> Floats:
        if z not in kept:
            kept[z] = persons.values_of(z, j)
        return kept[z]

    sample, origin = persons.sample.take(j), float(persons.origin[j])
    chosen, rate = _choose(method, persons, j, sample.n), bool(persons.binary[j])
    if not rate:
        return Measure(sample, origin, chosen, bounds_of(persons, j), values)
    # Of a rate the origin is 0, 1 or one half, so nothing is lost by adding it.
    sample = replace(sample, mean=sample.mean + origin)
    chosen = "added" if chosen == "t" else chosen
    return Measure(sample, 0.0, chosen, (0.0, 1.0), lambda z: values(z) + origin, rate)


def measure_loss(persons: Persons) -> Measure | None:
    """The loss of all people together: Clopper-Pearson for a rate of errors, else t; None when it is not known."""
    sample = persons.loss_sample
    if sample is None:
        return None
    rate = persons.countable and persons.loss_is_rate

    def values(_: int) -> Floats:
        return persons.loss_values()

    return Measure(sample, 0.0, "exact" if rate else "t", persons.loss_bounds, values)


def _choose(method: str, persons: Persons, j: int, n: Floats) -> str:
    component, bounds = persons.components[j], persons.components[j].bounds
    if method == "auto":
        if persons.countable and persons.binary[j]:
            return "exact"
        if bounds is None or not persons.countable:
            return "t"
        return "betting" if n.max() <= BETTING_ROWS and persons.one_by_one else "bernstein"
    if method in ("exact", "bernstein", "betting") and not persons.countable:
        raise DataError(
            f"method={method!r} counts people, and the weights are "
            + ("sampling weights." if persons.sampling else "no whole numbers."),
            "Use method='t', or weights that are whole numbers of people.",
        )
    if method == "betting" and not persons.one_by_one:
        raise not_one_by_one()
    if method == "exact" and not persons.binary[j]:
        raise HappinessError(
            f"The values of {component.name!r} are not all 0 or 1, so method='exact' does not apply.",
            "Use method='betting' with bounds, or method='t'.",
        )
    if method in ("bernstein", "betting") and bounds is None:
        raise HappinessError(
            f"method={method!r} needs to know the range of {component.name!r}.",
            "Say Happiness(..., bounds=(low, high)), or use method='t'.",
        )
    return method
