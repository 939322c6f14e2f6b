"""How often intervals of ratios hold the truth, on simulated data whose truth is known.

    python benchmarks/ratios.py [--runs 20000] [--out docs/evidence]

Fills its blocks of ``coverage.md`` in the folder ``--out``. Counts are drawn directly for rates. A row is the ratio
of a group to the one that turned out to be the highest, which is itself no row; draws in which nobody gets anything
have no ratio. Exits with an error when a row of rates holds less often than .91, or the smallest ratio than .93, in
some setting.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri
from shared import EVIDENCE, fill, table

from felicific._statistics import gaps
from felicific._statistics.gaps import limits_to_highest, smallest_limits
from felicific._statistics.intervals import Sample, sample_of

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

#: Draws that are looked at together: as many as fit into a cache.
CHUNK = 1_000


def rate_sample(hits: np.ndarray, n: np.ndarray) -> Sample:
    mean = hits / n
    return Sample(np.broadcast_to(n, mean.shape), mean, np.sqrt(mean * (1 - mean)), np.zeros_like(mean))


def at_truth(sample: Sample, one: Any, other: Any, alpha: float, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whether low ends of rates are at most the truth, and high ends at least: the test that they are the ends of."""
    a, b = (gaps._side(sample, at) for at in (one, other))
    z = np.asarray(ndtri(1.0 - alpha / 2.0))
    return ~gaps._above(a, b, truth, z), gaps._above(a, b, truth, -z)


def by_limits(
    rate: bool, sample: Sample, one: Any, other: Any, alpha: float, truth: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The same of any values, from the limits themselves."""
    low, high = gaps.ratio_limits(sample, one, other, alpha, rate=rate)
    return low <= truth * (1 + 1e-9), high >= truth * (1 - 1e-9)


def coverage(sample: Sample, truth: np.ndarray, known: Any) -> np.ndarray:
    """Of samples of shape (draws, groups): draws, rows, and in how many rows and smallest ratios hold the truth."""
    top, low, groups = sample.mean.argmax(axis=1), sample.mean.argmin(axis=1), len(truth)
    is_row = np.arange(groups) != top[:, None]
    real = truth / truth[top][:, None]
    one, other = np.arange(groups) + 0 * top[:, None], top[:, None] + 0 * is_row
    row, naive = (
        np.logical_and(*known(sample, one, other, alpha, real))[is_row].sum()
        for alpha in (ALPHA / (groups - 1), ALPHA)
    )
    smallest, pairs = truth.min() / truth.max(), np.nonzero(~np.eye(groups, dtype=bool))
    below, above = known(sample, *pairs, ALPHA / (len(pairs[0]) / 2), smallest)
    chosen = np.logical_and(*known(sample, low[:, None], top[:, None], ALPHA, smallest))
    return np.array(
        [len(top), is_row.sum(), row, naive, (below.any(axis=1) & above.all(axis=1)).sum(), chosen.sum()]
    )


def shares(counts: np.ndarray) -> Found:
    draws, rows, *held = counts.tolist()
    names = ("row", "row, naive", "smallest", "smallest, naive")
    return dict(zip(names, np.array(held) / [rows, rows, draws, draws], strict=True))


def check_ends(sample: Sample, truth: np.ndarray) -> None:
    """Some draws by the limits of the library as they are: the test at the truth says of each whether they hold it."""
    low, high = limits_to_highest(sample, ALPHA, rate=True)
    real = truth / truth[sample.mean.argmax(axis=1)][:, None]
    at, is_row = np.arange(len(truth)), np.arange(len(truth)) != sample.mean.argmax(axis=1)[:, None]
    other = sample.mean.argmax(axis=1)[:, None] + 0 * is_row
    said = np.logical_and(*at_truth(sample, at + 0 * other, other, ALPHA / (len(truth) - 1), real))
    assert ((low <= real) & (real <= high))[is_row].sum() == said[is_row].sum()
    smallest = truth.min() / truth.max()
    low, high = smallest_limits(sample, ALPHA, rate=True)
    assert ((low <= smallest) & (smallest <= high)).sum() == coverage(sample, truth, at_truth)[4]


def rates(runs: int, rng: np.random.Generator) -> Iterator[Found]:
    for groups, (name, several), shape, p in product(GROUPS, SIZES.items(), SHAPES, RATES):
        n, truth = np.resize(several, groups), p * SHAPES[shape](groups)
        counts = np.zeros(6)
        for start in range(0, runs, CHUNK):
            hits = rng.binomial(n, truth, (min(CHUNK, runs - start), groups))
            sample = rate_sample(hits[hits.any(axis=1)], n.astype(float))
            counts += coverage(sample, truth, at_truth)
        check_ends(rate_sample(hits[hits.any(axis=1)][:20], n.astype(float)), truth)
        yield {"groups": groups, "people": name, "rates": shape, "rate": p} | shares(counts)


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
    if kind == "probabilities of a lottery":
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
        ("dollars, sigma .5", "dollars, sigma 1", "probabilities of a lottery", "rate .3"),
        (30, 100, 1_000),
        (2, 5),
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
            held = coverage(side_by_side(values, **options), scale, partial(by_limits, kind == "rate .3"))
            yield {"values": kind, "how": how, "people": people, "groups": groups} | shares(held)
    for people, groups in product((100, 300, 1_000), (2, 5)):
        # Ten people a cluster; a third of them do as the first one does.
        shape = (runs, groups, people)
        values = drawn(rng, "rate .3", shape)
        alike = rng.random(shape) < 1 / 3
        first = np.repeat(values[:, :, ::10], 10, axis=2)
        values = np.where(alike, first, values)
        cluster = np.repeat(np.arange(values.size // 10), 10)
        held = coverage(side_by_side(values, cluster=cluster), np.ones(groups), partial(by_limits, True))
        yield {"values": "rate .3", "how": "clusters of 10", "people": people, "groups": groups} | shares(
            held
        )


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
    fill(page, "ratios of other values", others_table(list(others(max(runs // 20, 100), rng))))
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
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked = parser.parse_args()
    faults = measure(asked.runs, asked.out / "coverage.md")
    print(*faults, f"{len(faults)} promises broken", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
