"""equipy's FairWasserstein: amounts of the test rows at several blends, or the time that it takes.

    run_equipy.py FOLDER            one <task>.npz for every task in, one <task>.equipy.npz out
    run_equipy.py FILE.npz time     seconds of fit and transform

A blend is equipy's ``epsilon``: the part of the prediction that is kept; 0 is the Wasserstein barycenter.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from equipy.fairness import FairWasserstein


def amounts(rows: dict, blends: list[float]) -> dict[str, np.ndarray]:
    """Amounts of the test rows by blend, after a fit on the policy rows."""
    found = {}
    for blend in blends:
        fair = FairWasserstein()
        fair.fit(rows["policy_prediction"], rows["policy_group"])
        found[str(blend)] = fair.transform(rows["test_prediction"], rows["test_group"], epsilon=blend)
    return found


def measured(rows: dict) -> dict[str, list[float]]:
    """Processor and wall seconds of each step."""
    fair, found = FairWasserstein(), {}
    steps = {
        "fit": lambda: fair.fit(rows["prediction"], rows["group"]),
        "predict": lambda: fair.transform(rows["prediction"], rows["group"]),
    }
    for name, step in steps.items():
        start = time.process_time(), time.perf_counter()
        step()
        found[name] = [time.process_time() - start[0], time.perf_counter() - start[1]]
    return found


def main() -> None:
    where = Path(sys.argv[1])
    if sys.argv[2:] == ["time"]:
        with np.load(where) as rows:
            print(json.dumps(measured(dict(rows))))
        return
    asked = json.loads((where / "tasks.json").read_text())
    for task in asked["tasks"]:
        with np.load(where / f"{task}.npz") as rows:
            np.savez(where / f"{task}.equipy.npz", **amounts(dict(rows), asked["blends"]))


if __name__ == "__main__":
    main()
