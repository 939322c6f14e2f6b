"""Credit limits: 21 levels for 256 cells of the score and two groups, by staircases and by the whole program.

    python benchmarks/limits.py [rows]

Prints how long each takes and what it loses, at several gaps of the mean limit, in one run: the least of five times.
The whole program has a column for every group, cell and level, and a row for every step between neighbours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from felicific import moments
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
    """Print the table."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    sums = moments(
        people(n),
        proba="score",
        y="repaid",
        sensitive_features="group",
        decisions=LIMITS,
        loss=loss,
        happiness={"limit": "decision"},
    ).joined()
    g, s, d = sums.loss.shape
    print(f"{n:,} rows, {g} groups, {s} cells, {d} limits")
    print("gap      staircases  whole program  ratio   loss          difference")
    for gap in (0.0, 250.0, 500.0, 1_000.0):
        program = build(sums, rows_of([Gap("limit", gap)], sums))
        quick, found = timed(lambda program=program: run_model(program, program.rows))
        slow, whole = timed(lambda program=program: run_model(program, program.rows, plain=True))
        lost = [program.least_loss + program.charged(a.columns) * program.cost_scale for a in (found, whole)]
        print(
            f"{gap:7,.0f}  {quick:8.4f} s  {slow:11.4f} s  {quick / slow:.3f}   {lost[0]:.9f}  {lost[0] - lost[1]:+.1e}"
        )


if __name__ == "__main__":
    main()
