"""Credit limits: 21 levels for 256 score bins and two groups, by staircases and by the whole program.

    python benchmarks/limits.py [rows]

Fills its block of docs/evidence/policies.md with how long each takes, at several gaps of the mean limit, in one run:
the least of five times. The losses have to be the same.
The whole program has a column for every group, cell and level, and a row for every step between neighbours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from shared import EVIDENCE, fill, table

from felicific import aggregate
from felicific._problem.requirements import Gap
from felicific._problem.rows import rows_of
from felicific._program.highs import Answer, run_model
from felicific._program.model import build

LIMITS = list(range(0, 20_001, 1_000))


def people(n: int, seed: int = 0) -> dict[str, Any]:
    """People of two groups who use what they need of their limit, and repay by their score."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    score = rng.beta(2.0 + group, 2.0, n)
    repaid = (rng.random(n) < score).astype(int)
    return {"group": group, "score": score, "repaid": repaid, "need": rng.gamma(2.0, 5_000.0, n)}


def loss(decision: int, x: Any, y: Any) -> Any:
    """Interest of 12 % on what is used and repaid, a third of what is used lost otherwise, in thousands."""
    used = np.minimum(decision, x["need"]) / 1_000.0
    return np.where(y == 1, -0.12 * used, 0.33 * used)


def timed(work: Callable[[], Answer]) -> tuple[float, Answer]:
    """The least of five times, and the answer."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return min(times), answer


def main() -> None:
    """Measure, and fill the page."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    sums = aggregate(
        people(n),
        score="score",
        y="repaid",
        sensitive_features="group",
        decisions=LIMITS,
        loss=loss,
        happiness={"limit": "decision"},
    ).joined()
    g, s, d = sums.loss.shape
    print(f"{n:,} rows, {g} groups, {s} score bins, {d} limits")
    rows = []
    for gap in (0.0, 250.0, 500.0, 1_000.0):
        program = build(sums, rows_of([Gap("limit", gap)], sums))
        quick, found = timed(lambda program=program: run_model(program, program.rows))
        slow, whole = timed(lambda program=program: run_model(program, program.rows, plain=True))
        lost = [program.least_loss + program.charged(a.columns) * program.cost_scale for a in (found, whole)]
        np.testing.assert_allclose(lost[0], lost[1], rtol=0, atol=1e-9)
        rows.append([f"{gap:,.0f}", f"{quick:.3f} s", f"{slow:.2f} s", f"{quick / slow:.3f}"])
    fill(
        EVIDENCE / "policies.md",
        "limits",
        table(["gap of the mean limit", "staircases", "whole program", "ratio"], rows),
    )


if __name__ == "__main__":
    main()
