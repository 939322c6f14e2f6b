"""What every peer's script does alike: read the tasks, run them, write decision probabilities.

A peer runs in an environment of its own and shares nothing with the benchmark but files. The folder holds one
``<task>.npz`` per data set and seed (scores, labels and groups of the validation and the test rows) and
``tasks.json`` (criteria and bounds). For every task the peer writes ``<task>.<peer>.npz``, with the probability
of the favourable decision for every row, and once ``<peer>.json``, with its version and what it refused.
"""

from __future__ import annotations

import json
import signal
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


#: Turns arrays (score, y, group) into named steps that are done in this order and share what they keep.
Steps = Callable[[dict], dict[str, Callable[[], object]]]


def time_steps(peer: str, steps: Steps, file: Path, patience: float, text: bool) -> None:
    """Time every step, best of seven unless it is slow; print seconds by step, infinite for what took too long.

    Processor seconds of all threads: other work on the machine then does not count. With ``text`` groups have names,
    as a column of Python's strings, and fit and predict alone are timed.
    """
    with np.load(file) as arrays:
        rows = dict(arrays)
    if text:
        rows["group"] = np.array(["women", "men"], dtype=object)[rows["group"]]
    ways = {name: step for name, step in steps(rows).items() if not text or name in ("fit", "predict")}
    found = {name: _least(step, patience) for name, step in ways.items()}
    known = getattr(sys.modules.get(peer), "__version__", None)  # felicific may run from its source
    print(json.dumps({"version": known or version(peer), "seconds": found}))


def _least(step: Callable[[], object], patience: float) -> float:
    def stop(*_: object) -> None:
        if time.process_time() - start > patience:
            raise TimeoutError
        signal.alarm(1)

    best = float("inf")
    signal.signal(signal.SIGALRM, stop)
    for _ in range(7):
        start = time.process_time()
        signal.alarm(1)
        try:
            step()
        except TimeoutError:
            return best
        finally:
            signal.alarm(0)
        taken = time.process_time() - start
        best = min(best, taken)
        if taken > 2.0:
            break
    return best


def run(peer: str, fit: Fit, steps: Steps | None = None) -> None:
    """Run one peer on every task of the folder that the command line names; or time its steps on the file named."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    if folder.is_file():
        time_steps(peer, steps, folder, float(sys.argv[2]), text=sys.argv[3:] == ["text"])
        return
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
