"""What every peer's script does alike: read the tasks, run them, write decision probabilities.

A peer runs in an environment of its own and shares nothing with the benchmark but files. The folder holds one
``<task>.npz`` per data set and seed (scores, labels and groups of the validation and the test rows) and
``tasks.json`` (criteria and bounds). For every task the peer writes ``<task>.<peer>.npz``, with the probability
of the favourable decision for every row, and once ``<peer>.json``, with its version and what it refused.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

#: Turns (validation arrays, test arrays, criterion, bound) into decision probabilities on both, or None when
#: the peer does not offer that criterion with that bound.
Fit = Callable[[dict, dict, str, float], tuple[np.ndarray, np.ndarray] | None]


def run(peer: str, fit: Fit) -> None:
    """Run one peer on every task of the folder that the command line names."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "tasks.json").read_text())
    refused = set()
    for name in asked["tasks"]:
        start, found = time.perf_counter(), {}
        for criterion in asked["criteria"]:
            for bound in asked["bounds"]:
                answer = fit(*_read(folder / f"{name}.npz"), criterion, bound)
                if answer is None:
                    refused.add(f"{criterion} at {bound}")
                    continue
                key = f"{criterion}|{bound}"
                found[f"{key}|validation"], found[f"{key}|test"] = answer
        np.savez(folder / f"{name}.{peer}.npz", **found)
        print(f"  {peer:12} {name:28} {time.perf_counter() - start:6.1f} s", flush=True)
    about = {"version": version(peer), "refused": sorted(refused)}
    (folder / f"{peer}.json").write_text(json.dumps(about))


def _read(file: Path) -> tuple[dict, dict]:
    """Validation and test arrays, fresh for every fit so that no peer can change what the next one sees."""
    with np.load(file) as arrays:
        return tuple(
            {name: arrays[f"{part}_{name}"] for name in ("score", "y", "group")}
            for part in ("validation", "test")
        )
