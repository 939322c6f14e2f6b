"""How often betting by blocks holds the truth in large samples.

    pip install -e . && python benchmarks/betting.py [--runs 10000] [--large 200]

Every sample of a setting is of 20,000 values (``--runs`` of them) or of one million (``--large``): rates near 0
and near 1, skewed and even values. Fills its block of ``docs/evidence/coverage.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from felicific._statistics.betting import betting_limits
from shared import EVIDENCE, fill, table

Draw = Callable[[np.random.Generator, int], np.ndarray]

TAIL = 0.025

SETTINGS: dict[str, tuple[Draw, float]] = {
    "rate .001": (lambda rng, n: (rng.random(n) < 0.001).astype(float), 0.001),
    "rate .999": (lambda rng, n: (rng.random(n) < 0.999).astype(float), 0.999),
    "rate .00005": (lambda rng, n: (rng.random(n) < 0.00005).astype(float), 0.00005),
    "rate .3": (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3),
    "skewed, u^20": (lambda rng, n: rng.random(n) ** 20.0, 1.0 / 21.0),
    "even": (lambda rng, n: rng.random(n), 0.5),
}


def coverage(name: str, n: int, runs: int, seed: int) -> list[str]:
    """One row: how often each limit, and both, held the mean."""
    draw, truth = SETTINGS[name]
    rng, low, high, width = np.random.default_rng(seed), 0, 0, 0.0
    for _ in range(runs):
        limits = betting_limits(draw(rng, n), TAIL, 0.0, 1.0)
        low, high = low + (limits[0] <= truth), high + (truth <= limits[1])
        width += (limits[1] - limits[0]) / runs
    shares = [f"{share / runs:.2%}" for share in (low, high, low + high - runs)]
    return [name, f"{n:,}", f"{runs:,}", *shares, f"{width:.2e}"]


def main() -> None:
    """Measure, and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=200)
    asked = parser.parse_args()
    head = ["values in [0, 1]", "values", "samples", "lower limit holds", "upper", "both", "mean width"]
    rows = []
    for i, name in enumerate(SETTINGS):
        rows.append(coverage(name, 20_000, asked.runs, 2024 + i))
        rows.append(coverage(name, 1_000_000, asked.large, 4048 + i))
    fill(EVIDENCE / "coverage.md", "betting", table(head, rows))


if __name__ == "__main__":
    main()
