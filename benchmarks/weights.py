"""How often intervals of weighted rows and of clusters hold the truth, on simulated data whose truth is known.

    python benchmarks/weights.py [--runs 2000] [--out docs/evidence]

Fills its blocks of ``coverage.md`` in the folder ``--out``. Data sets stand side by side: each is a group of one
sample, so the library's own code sums up all of them at once. Percent of data sets whose interval at 95 % holds the
truth.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from shared import EVIDENCE, fill, table

from felicific._statistics import intervals
from felicific._statistics.gaps import range_interval
from felicific._statistics.intervals import Sample, Ties, hall_limits, mean_limits, sample_of

ALPHA = 0.05
Rng = np.random.Generator
Worlds = dict[str, tuple[Callable[[Rng, tuple[int, int]], tuple[np.ndarray, np.ndarray]], float, bool]]


def percent(limits: Any, truth: float) -> str:
    low, high = limits
    return f"{100 * float(((low <= truth) & (truth <= high)).mean()):.1f}"


# ---------------------------------------------------------------------------------------------------------
# Sampling weights


def two_weights(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, 900.0, 100.0)


def one_in_ten(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.1, 900.0, 100.0)


def few_heavy(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.03, 100.0, 1.0)


def uneven(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return rng.lognormal(0.0, 1.0, shape)


def world(weigh: Any, value: Any) -> Callable[[Rng, tuple[int, int]], tuple[np.ndarray, np.ndarray]]:
    def draw(rng: Rng, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        weight = weigh(rng, shape)
        return weight, value(rng, weight)

    return draw


def rate(p: float, times: float) -> Callable[[Rng, np.ndarray], np.ndarray]:
    """Heavy rows succeed with probability p, light ones so many times as often."""
    return lambda rng, w: (rng.random(w.shape) < np.where(w > 500, p, p * times)).astype(float)


def alike(p: float) -> Callable[[Rng, np.ndarray], np.ndarray]:
    return lambda rng, w: (rng.random(w.shape) < p).astype(float)


WEIGHTED: Worlds = {
    "weights 100 and 900, normal": (world(two_weights, lambda rng, w: rng.normal(size=w.shape)), 0.0, False),
    "one row in ten weighs 9 times as much and varies 5 times as much": (
        world(one_in_ten, lambda rng, w: rng.normal(size=w.shape) * np.where(w > 500, 5.0, 1.0)), 0.0, False,
    ),
    "heavy rows are larger": (
        world(two_weights, lambda rng, w: rng.normal(size=w.shape) + 2.0 * (w > 500)), 1.8, False,
    ),
    "3 % of the rows weigh 100 times as much": (
        world(few_heavy, lambda rng, w: rng.normal(size=w.shape)), 0.0, False,
    ),
    "lognormal weights, normal": (world(uneven, lambda rng, w: rng.normal(size=w.shape)), 0.0, False),
    "lognormal weights and dollars, sigma 1": (
        world(uneven, lambda rng, w: rng.lognormal(0.0, 1.0, w.shape)), math.exp(0.5), False,
    ),
    "lognormal weights, rate 0.3": (world(uneven, alike(0.3)), 0.3, True),
    "lognormal weights, rate 0.02": (world(uneven, alike(0.02)), 0.02, True),
    "rate 0.1, of light rows a fifth": (world(two_weights, rate(0.1, 0.2)), 0.092, True),
    "rate 0.02, of light rows five times": (world(two_weights, rate(0.02, 5.0)), 0.028, True),
}  # fmt: skip


def kish(values: np.ndarray, codes: np.ndarray, runs: int, weight: np.ndarray) -> Sample:
    """What was done before: the weighted deviation, with Kish's effective number of people."""
    plain = intervals.summarise(values, codes, runs, None, weight).take(0)
    mass, squares = np.bincount(codes, weight), np.bincount(codes, weight**2)
    n = mass**2 / squares
    scale = plain.sd * np.sqrt((plain.n - 1.0) / plain.n)
    return Sample(n, plain.mean, scale * np.sqrt(n / (n - 1.0)), plain.skewness)


def weights(runs: int, rng: Rng) -> Iterator[list[str]]:
    """Rows of the table: frequencies, Kish and linearised errors, and with the correction for skewness."""
    for name, (draw, truth, is_rate) in WEIGHTED.items():
        for n in (50, 200, 2_000):
            weight, values = (part.reshape(-1) for part in draw(rng, (runs, n)))
            codes, column = np.repeat(np.arange(runs), n), values[:, None]
            method = "added" if is_rate else "t"
            counted = intervals.summarise(column, codes, runs, None, weight).take(0)
            before = kish(column, codes, runs, weight)
            now = sample_of(column, codes, runs, None, weight, sampling=True).take(0)
            made = [percent(mean_limits(method, part, ALPHA / 2), truth) for part in (counted, before, now)]
            yield [name, f"{n:,}", *made, "" if is_rate else percent(hall_limits(now, ALPHA / 2), truth)]


# ---------------------------------------------------------------------------------------------------------
# Clusters


def equal(count: int) -> np.ndarray:
    return np.full(count, 10)


def unequal(count: int) -> np.ndarray:
    return np.maximum(2, (60 * np.exp(-3 * np.arange(count) / count)).astype(int))


def normal(share: float) -> Callable[..., np.ndarray]:
    def draw(rng: Rng, runs: int, place: np.ndarray) -> np.ndarray:
        common = rng.normal(size=(runs, place.max() + 1))[:, place]
        return math.sqrt(share) * common + math.sqrt(1 - share) * rng.normal(size=(runs, len(place)))

    return draw


def dollars(share: float) -> Callable[..., np.ndarray]:
    return lambda rng, runs, place: np.exp(normal(share)(rng, runs, place))


def success(p: float, share: float) -> Callable[..., np.ndarray]:
    """Rates of clusters are beta: what two people of one have in common is the share."""
    size = 1.0 / share - 1.0

    def draw(rng: Rng, runs: int, place: np.ndarray) -> np.ndarray:
        rates = rng.beta(p * size, (1 - p) * size, (runs, place.max() + 1))
        return (rng.random((runs, len(place))) < rates[:, place]).astype(float)

    return draw


CLUSTERED: dict[str, tuple[Any, Any, float, bool]] = {
    "nothing in common, 10 people each": (normal(0.0), equal, 0.0, False),
    "share 0.1, 10 people each": (normal(0.1), equal, 0.0, False),
    "share 0.5, 10 people each": (normal(0.5), equal, 0.0, False),
    "share 0.5, 3 to 60 people": (normal(0.5), unequal, 0.0, False),
    "dollars, share 0.3, 10 people each": (dollars(0.3), equal, math.exp(0.5), False),
    "rate 0.4, share 0.1, 3 to 60 people": (success(0.4, 0.1), unequal, 0.4, True),
    "rate 0.1, share 0.1, 10 people each": (success(0.1, 0.1), equal, 0.1, True),
    "rate 0.02, share 0.1, 10 people each": (success(0.02, 0.1), equal, 0.02, True),
    "rate 0.02, share 0.5, 3 to 60 people": (success(0.02, 0.5), unequal, 0.02, True),
}


def clusters(runs: int, rng: Rng) -> Iterator[list[str]]:
    """Rows of the table: rows taken for people, and clusters; the mean, and the gap of two groups in every cluster."""
    for name, (draw, sizes, truth, is_rate) in CLUSTERED.items():
        for count in (10, 30, 100):
            place = np.repeat(np.arange(count), sizes(count))
            values = draw(rng, runs, place)
            codes = np.repeat(np.arange(runs), len(place))
            unit = (np.arange(runs)[:, None] * count + place).reshape(-1)
            column, method = values.reshape(-1)[:, None], "added" if is_rate else "t"
            naive = intervals.summarise(column, codes, runs).take(0)
            now = sample_of(column, codes, runs, cluster=unit).take(0)
            means = [percent(mean_limits(method, part, ALPHA / 2), truth) for part in (naive, now)]
            yield [name, f"{count}", *means, *gaps(values, place, is_rate)]


def gaps(values: np.ndarray, place: np.ndarray, is_rate: bool) -> list[str]:
    """The gap of two equal groups, every other person of each cluster: by rows, and by clusters."""
    runs, count = len(values), int(place.max()) + 1
    group, naive, now, added = np.arange(len(place)) % 2, [], [], []
    for z in (0, 1):
        part, where = values[:, group == z], place[group == z]
        codes, column = np.repeat(np.arange(runs), part.shape[1]), part.reshape(-1)[:, None]
        unit = (np.arange(runs)[:, None] * count + where).reshape(-1)
        naive.append(intervals.summarise(column, codes, runs).take(0))
        now.append(sample_of(column, codes, runs, cluster=unit).take(0))
        away = (part - part.mean(axis=1, keepdims=True)).reshape(-1)
        added.append(np.bincount(unit, away, minlength=runs * count).reshape(runs, count))
    one, other = added
    size = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    tie = np.zeros((runs, 2, 2))
    tie[:, 0, 1] = tie[:, 1, 0] = (one * other).sum(axis=1) / np.where(size > 0, size, 1.0)
    found = []
    for parts, ties in ((naive, None), (now, Ties(tie, np.zeros_like(tie)))):
        names = ("n", "mean", "sd", "skewness", "freedom")
        sample = Sample(*(np.stack([getattr(part, name) for part in parts], axis=1) for name in names), ties)
        low, _ = range_interval(intervals.with_added(sample, 1.0) if is_rate else sample, ALPHA)
        found.append(f"{100 * float((low <= 0.0).mean()):.1f}")
    return found


# ---------------------------------------------------------------------------------------------------------
# Tables

HEADERS = {
    "weights": ["values", "rows", "as frequencies", "Kish", "linearised", "corrected for skewness"],
    "clusters": [
        "values",
        "clusters",
        "mean, rows as people",
        "mean, clusters",
        "gap, rows as people",
        "gap, clusters",
    ],
}


def tables(runs: int, rng: Rng) -> dict[str, str]:
    """Both tables, by the name of their block on the page."""
    found = {"weights": list(weights(runs, rng)), "clusters": list(clusters(runs, rng))}
    return {name: table(HEADERS[name], rows) for name, rows in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked = parser.parse_args()
    for name, text in tables(asked.runs, np.random.default_rng(2025)).items():
        fill(asked.out / "coverage.md", name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
