"""The whole exact frontier against one point of error-parity's trade-off curve, on the same rows in one run.

    pip install -e ".[pandas]" && python benchmarks/frontier.py [--rows 50000] [--envs .venv-peers]

error-parity is installed, by name, into an environment of its own. felicific's time includes the sums over the
rows; the best of a few runs is kept for both, and the ratio is what counts: machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from policies import ENVIRONMENTS, ROOT, SCRIPTS, environment

from felicific import aggregate, frontier

CRITERIA = ("statistical_parity", "equalized_odds")
BOUND = 0.05  # where error-parity's one point lies
REPEATS = 5


def people(rows: int, seed: int = 0) -> dict[str, Any]:
    """Two groups of different size and score, and labels that follow the score."""
    rng = np.random.default_rng(seed)
    group = (rng.random(rows) < 0.65).astype(int)
    score = rng.beta(2, 3, rows) * np.where(group == 0, 0.9, 1.0)
    return {"score": score, "y": (rng.random(rows) < score).astype(int), "group": group}


def ours(arrays: dict[str, Any], criterion: str) -> tuple[float, int]:
    """Seconds from rows to all breakpoints, and how many there are."""
    score = np.column_stack([1 - arrays["score"], arrays["score"]])
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        line = frontier(
            aggregate(
                arrays["score"][:, None],
                score=score,
                y=arrays["y"],
                sensitive_features=arrays["group"],
                happiness=criterion,
            )
        )
        found = len(line)
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def theirs(arrays: dict[str, Any], environments: Path) -> dict[str, Any]:
    """What error-parity needs, measured by its own interpreter."""
    python = environment(environments / "error-parity", ENVIRONMENTS["error-parity"])
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.npz"
        np.savez(file, **arrays)
        done = subprocess.run(
            [python, SCRIPTS / "time_error_parity.py", file, str(BOUND)],
            check=True,
            env=clean,
            capture_output=True,
            text=True,
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    given = parser.parse_args()
    arrays = people(given.rows)
    peer = theirs(arrays, given.envs)
    print(f"{given.rows:,} rows, binary, two groups; error-parity {peer['version']}, one point at {BOUND}")
    for criterion in CRITERIA:
        mine, points = ours(arrays, criterion)
        other = peer["seconds"][criterion]
        print(
            f"{criterion:20} felicific {mine:.3f} s for all {points} breakpoints, error-parity {other:.3f} s for one: "
            f"{other / mine:.1f} times {'PASS' if mine < other else 'FAIL'}"
        )


if __name__ == "__main__":
    main()
