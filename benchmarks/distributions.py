"""How often the interval of the distance between distributions of amounts holds the true one.

    python benchmarks/distributions.py [--runs 2000]

Fills its block of ``docs/evidence/coverage.md``, one row for every world: percent of data sets whose interval at 95 %
holds the true distance, the mean width of the interval and the mean of the distance that is seen. Worlds are hostile on
purpose: tiny groups, atoms, heavy tails, sampling weights that go with the amount, clusters whose people are all alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from shared import EVIDENCE, fill, table

from felicific._statistics.distributions import Distributions

SIZES = ((5, 5), (8, 400), (200, 200), (2000, 2000), (5, 40, 400), (50,) * 8)


@dataclass(frozen=True)
class World:
    """How amounts are drawn: of a generator, how many, and of which group; and the true distance."""

    name: str
    draw: Callable[[np.random.Generator, int, int], np.ndarray]
    true: float = 0.0
    kind: str = "plain"


def nearly_one_value(rng: np.random.Generator, n: int, z: int) -> np.ndarray:
    """Nearly all get nothing, and a few very much."""
    return np.where(rng.random(n) < 0.02, rng.lognormal(0.0, 3.0, n), 0.0)


WORLDS = (
    World("normal", lambda rng, n, z: rng.normal(size=n)),
    World("three atoms", lambda rng, n, z: rng.integers(0, 3, n).astype(float)),
    World("Cauchy tails", lambda rng, n, z: rng.standard_cauchy(n)),
    World("98 % get 0, the others lognormal (sigma 3)", nearly_one_value),
    World("uniform, the first group .2 more", lambda rng, n, z: rng.random(n) + 0.2 * (z == 0), 0.2),
    World(
        "0 or 1, the first group .75, others .25",
        lambda rng, n, z: 1.0 * (rng.random(n) < (0.25 if z else 0.75)),
        0.5,
    ),
    World(
        "normal, sampled with weights 1 to 10, larger where the amount is",
        lambda rng, n, z: rng.normal(size=n),
        kind="weights",
    ),
    World(
        "normal, in clusters of five who are alike",
        lambda rng, n, z: np.repeat(rng.normal(size=n), 5)[:n],
        kind="clusters",
    ),
)


def measured(world: World, sizes: tuple[int, ...], runs: int) -> list[str]:
    """One row of the table."""
    rng, codes = np.random.default_rng(1), np.repeat(np.arange(len(sizes)), sizes)
    found = np.array([one(world, rng, sizes, codes) for _ in range(runs)])
    held = 100.0 * ((found[:, 0] <= world.true) & (world.true <= found[:, 1])).mean()
    width, seen = (found[:, 1] - found[:, 0]).mean(), found[:, 2].mean()
    groups = (
        ", ".join(map(str, sizes)) if len(set(sizes)) > 1 or len(sizes) < 4 else f"{len(sizes)} x {sizes[0]}"
    )
    return [world.name, groups, f"{world.true:g}", f"{held:.1f}", f"{width:.2f}", f"{seen:.3f}"]


def one(world: World, rng: np.random.Generator, sizes: tuple[int, ...], codes: np.ndarray) -> list[float]:
    """Limits and distance of one data set."""
    weight = cluster = None
    if world.kind == "weights":
        # Of many people, those who get much are seen a tenth as often as those who get little.
        amounts = []
        for z, n in enumerate(sizes):
            many = world.draw(rng, 40 * n, z)
            seen = rng.random(len(many)) < 1.0 / weight_of(many)
            amounts.append(rng.choice(many[seen], n))
        drawn = np.concatenate(amounts)
        weight = weight_of(drawn)
    else:
        drawn = np.concatenate([world.draw(rng, n, z) for z, n in enumerate(sizes)])
    if world.kind == "clusters":
        cluster = np.concatenate([np.arange(n) // 5 + 10_000 * z for z, n in enumerate(sizes)])
    made = Distributions.of(drawn, codes, len(sizes), weight, sampling=weight is not None, cluster=cluster)
    return [*made.interval(0.05), made.furthest.distance]


def weight_of(amounts: np.ndarray) -> np.ndarray:
    """How many people one who is seen stands for."""
    return 1.0 + 9.0 / (1.0 + np.exp(-2.0 * amounts))


def main() -> None:
    """Measure all worlds at all sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    rows = []
    for sizes in SIZES:
        for world in WORLDS:
            print(world.name, sizes, file=sys.stderr, flush=True)
            rows.append(measured(world, sizes, options.runs))
    header = ["amounts", "people of the groups", "true distance", "held", "width", "seen on average"]
    fill(EVIDENCE / "coverage.md", "distributions", table(header, rows))


if __name__ == "__main__":
    main()
