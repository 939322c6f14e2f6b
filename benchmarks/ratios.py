"""How often intervals of ratios hold the truth, on simulated data whose truth is known.

    python benchmarks/ratios.py [--runs 20000] [--out docs]

Fills its blocks of ``statistics.md`` in the folder ``--out``. Counts are drawn directly for rates. A row is the ratio
of a group to the one that turned out to be the highest, which is itself no row; draws in which nobody gets anything
have no ratio. Exits with an error when a row of rates holds less often than .91, or the smallest ratio than .93, in
some setting.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from shared import ROOT, fill, table

from felicific._statistics import ratios
from felicific._statistics.intervals import Sample
from felicific._statistics.ratios import limits_to_highest, smallest_limits
from felicific._statistics.units import sample_of

ALPHA, LEAST_ROW, LEAST_SMALLEST = 0.05, 0.91, 0.93
SIZES: dict[str, tuple[int, ...]] = {
    "10": (10,),
    "30": (30,),
    "100": (100,),
    "1,000": (1_000,),
    "10,000": (10_000,),
    "10 to 10,000": (10, 10_000, 100, 1_000),
}
RATES = (0.02, 0.045, 0.1, 0.3, 0.6, 0.9)  # .045 is nearly the worst for ten people
GROUPS = (2, 5, 8)

#: True rates, as shares of the highest: all equal, one at four fifths, and from a half on.
SHAPES = {
    "equal": lambda groups: np.ones(groups),
    "one at 4/5": lambda groups: np.r_[0.8, np.ones(groups - 1)],
    "1/2 to 1": lambda groups: np.linspace(0.5, 1.0, groups),
}
Found = dict[str, Any]


def holds(limits: tuple[Any, Any], truth: Any) -> np.ndarray:
    return (limits[0] * (1 - 1e-9) <= truth) & (truth <= limits[1] * (1 + 1e-9))


def rate_sample(hits: np.ndarray, n: np.ndarray) -> Sample:
    mean = hits / n
    return Sample(np.broadcast_to(n, mean.shape), mean, np.sqrt(mean * (1 - mean)), np.zeros_like(mean))


def each_once(sample: Sample, one: Any, other: Any, alpha: float, *, rate: bool) -> tuple[Any, Any]:
    """The limits of ratios, found once for counts that are met again and again in the draws of rates."""
    if not rate or sample.df is not None:
        return slow_limits(sample, one, other, alpha, rate=rate)
    pick = (
        (lambda part, at: np.take_along_axis(part, at, -1))
        if np.ndim(one) > 1
        else (lambda part, at: part[:, at])
    )
    parts = [pick(part, at) for at in (one, other) for part in (sample.n, np.rint(sample.n * sample.mean))]
    key = np.zeros(parts[0].shape, dtype=np.int64)
    for part in parts:
        key = key * 10_001 + part.astype(np.int64)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    n, hits, m, others = (part.ravel()[first] for part in parts)
    n, mean = np.stack([n, m], axis=1), np.stack([hits / n, others / m], axis=1)
    alone = Sample(n, mean, np.sqrt(mean * (1 - mean)), np.zeros_like(mean))
    low, high = slow_limits(alone, np.array([0]), np.array([1]), alpha, rate=True)
    return low[:, 0][place].reshape(key.shape), high[:, 0][place].reshape(key.shape)


slow_limits, ratios.ratio_limits = ratios.ratio_limits, each_once


def coverage(sample: Sample, truth: np.ndarray, *, rate: bool) -> Found:
    """Of samples of shape (draws, groups), how often rows and the smallest ratio hold the truth, and naive ones."""
    some = sample.mean.max(axis=1) > 0
    df = None if sample.df is None else sample.df[some]
    sample = Sample(sample.n[some], sample.mean[some], sample.sd[some], sample.skewness[some], df)
    top, low = sample.mean.argmax(axis=1), sample.mean.argmin(axis=1)
    is_row = np.arange(len(truth)) != top[:, None]
    real = truth / truth[top][:, None]
    one, other = np.arange(len(truth)) + 0 * top[:, None], top[:, None] + 0 * is_row
    naive = holds(each_once(sample, one, other, ALPHA, rate=rate), real)
    smallest = truth.min() / truth.max()
    chosen = np.minimum(
        each_once(sample, low[:, None], top[:, None], ALPHA, rate=rate), [[[np.inf]], [[1.0]]]
    )
    return {
        "draws with a ratio": some.mean(),
        "row": holds(limits_to_highest(sample, ALPHA, rate=rate), real)[is_row].mean(),
        "row, naive": naive[is_row].mean(),
        "smallest": holds(smallest_limits(sample, ALPHA, rate=rate), smallest).mean(),
        "smallest, naive": holds((chosen[0][:, 0], chosen[1][:, 0]), smallest).mean(),
    }


def rates(runs: int, rng: np.random.Generator) -> Iterator[Found]:
    for groups, (name, several), shape, p in product(GROUPS, SIZES.items(), SHAPES, RATES):
        n, truth = np.resize(several, groups), p * SHAPES[shape](groups)
        sample = rate_sample(rng.binomial(n, truth, (runs, groups)), n.astype(float))
        yield {"groups": groups, "people": name, "rates": shape, "rate": p} | coverage(
            sample, truth, rate=True
        )


def worst(found: list[Found]) -> str:
    """By groups and people, the least of all rates."""
    head = ["groups", "people in each", "row", "row, naive", "smallest", "smallest, naive"]
    lines = []
    for groups, name in product(GROUPS, SIZES):
        parts = [part for part in found if part["groups"] == groups and part["people"] == name]
        lines.append([str(groups), name, *(f"{min(part[what] for part in parts):.3f}" for what in head[2:])])
    return table(head, lines)


# ---------------------------------------------------------------------------------------------------------
# Anything else: money, sampling weights, clusters


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values with a mean of 1 (money), or .3 (rates)."""
    if kind == "rate .3":
        return (rng.random(shape) < 0.3).astype(float)
    if kind == "odds of a lottery":
        return rng.beta(0.6, 1.4, shape)
    sigma = {"dollars, sigma .5": 0.5, "dollars, sigma 1": 1.0}[kind]
    return rng.lognormal(-(sigma**2) / 2, sigma, shape)


def side_by_side(values: np.ndarray, **how: Any) -> Sample:
    """Values of shape (draws, groups, people) as a sample of shape (draws, groups): each a group of one sample."""
    draws, groups, people = values.shape
    codes = np.repeat(np.arange(draws * groups), people)
    flat = sample_of(values.reshape(-1, 1), codes, draws * groups, **how).take(0)
    n, mean, sd, skewness, df = (
        part.reshape(draws, groups) for part in (flat.n, flat.mean, flat.sd, flat.skewness, flat.freedom)
    )
    return Sample(n, mean, sd, skewness, None if flat.df is None else df)


def others(runs: int, rng: np.random.Generator) -> Iterator[Found]:
    """Two and five groups of equal means, one of them at four fifths for values that can be scaled."""
    for kind, people, groups in product(
        ("dollars, sigma .5", "dollars, sigma 1", "odds of a lottery", "rate .3"), (30, 100, 1_000), (2, 5)
    ):
        shape = (runs, groups, people)
        scale = np.ones(groups) if kind == "rate .3" else SHAPES["one at 4/5"](groups)
        values = drawn(rng, kind, shape) * scale[:, None]
        hows: dict[str, dict[str, Any]] = {
            "plain": {},
            "lognormal weights": {"weight": rng.lognormal(0.0, 0.7, values.size), "sampling": True},
        }
        for how, options in hows.items():
            if how == "plain" and kind == "rate .3":
                continue
            found = coverage(side_by_side(values, **options), scale, rate=kind == "rate .3")
            yield {"values": kind, "how": how, "people": people, "groups": groups} | found
    for people, groups in product((100, 300, 1_000), (2, 5)):
        # Ten people a cluster; a third of them do as the first one does.
        shape = (runs, groups, people)
        values = drawn(rng, "rate .3", shape)
        alike = rng.random(shape) < 1 / 3
        first = np.repeat(values[:, :, ::10], 10, axis=2)
        values = np.where(alike, first, values)
        cluster = np.repeat(np.arange(values.size // 10), 10)
        found = coverage(side_by_side(values, cluster=cluster), np.ones(groups), rate=True)
        yield {"values": "rate .3", "how": "clusters of 10", "people": people, "groups": groups} | found


def others_table(found: list[Found]) -> str:
    head = ["values", "rows", "people in each", "groups", "row", "row, naive", "smallest", "smallest, naive"]
    return table(
        head,
        [
            [part["values"], part["how"], f"{part['people']:,}", str(part["groups"])]
            + [f"{part[what]:.3f}" for what in head[4:]]
            for part in found
        ],
    )


def measure(runs: int, page: Path) -> list[str]:
    """Fill the page; what is below what was promised."""
    rng, start = np.random.default_rng(2025), time.perf_counter()
    found = list(rates(runs, rng))
    fill(page, "ratios", worst(found))
    fill(page, "ratios of other values", others_table(list(others(max(runs // 10, 100), rng))))
    print(f"{len(found)} settings of rates, {time.perf_counter() - start:.0f} s")
    least = {"row": LEAST_ROW, "smallest": LEAST_SMALLEST}
    return [
        f"{what} {part[what]:.4f}: {part}"
        for part in found
        for what, bound in least.items()
        if part[what] < bound
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    asked = parser.parse_args()
    faults = measure(asked.runs, asked.out / "statistics.md")
    print(*faults, f"{len(faults)} promises broken", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
