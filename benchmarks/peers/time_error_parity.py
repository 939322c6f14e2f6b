"""Seconds that error-parity needs for one point of its trade-off curve, by criterion; the data are in argv[1]."""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from error_parity import RelaxedThresholdOptimizer

NAMES = {"statistical_parity": "demographic_parity", "equalized_odds": "equalized_odds"}
REPEATS = 3


def measure(arrays: dict, criterion: str, bound: float) -> float:
    """The best of a few fits."""
    seconds = []
    for _ in range(REPEATS):
        optimizer = RelaxedThresholdOptimizer(
            predictor=lambda X: X[:, 0], constraint=NAMES[criterion], tolerance=bound
        )
        start = time.perf_counter()
        optimizer.fit(arrays["score"][:, None], arrays["y"], group=arrays["group"])
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as file:
        people = {name: file[name] for name in ("score", "y", "group")}
    found = {name: measure(people, name, float(sys.argv[2])) for name in NAMES}
    print(json.dumps({"version": version("error-parity"), "seconds": found}))
