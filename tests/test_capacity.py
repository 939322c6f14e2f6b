"""What needs more memory than there is, is refused before it is tried."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from felicific import _capacity, aggregate, solve
from felicific._capacity import check_room, free_memory
from felicific.exceptions import DataError

#: Equalized odds of 40 classes: 1,600 measures, each with sums for every signal and decision.
MANY = """
import resource, sys
import numpy as np
from helpers import solved
n = 20_000
y = np.arange(n) % 40
proba = np.random.default_rng(0).dirichlet(np.ones(40), n)
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
try:
    solved({"y": y}, score=proba, y=y, sensitive_features=np.arange(n) // 40 % 2, happiness="equalized_odds",
           policy=sys.argv[1], gap=0.1)
except ValueError as error:
    print(type(error).__name__, error, sep="\\n")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits are read from /proc")
@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("score", "bins with people x 40 decisions x 1,600 measures"),
        ("individual", "20,000 people x 40 decisions x 1,600 measures"),
    ],
)
def test_forty_classes_are_refused_before_they_are_tried(policy, why):
    """The message says how much, why and what to do, and the memory was never asked for."""
    places = (Path(_capacity.__file__).parent.parent, Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", MANY, policy], capture_output=True, text=True, env=environment, check=True
    )
    kind, message, peak = found.stdout.splitlines()
    assert kind == "DataError"
    assert "GB of memory" in message
    assert why in message
    assert "policy='label'" in message
    assert int(peak) < 600_000  # kB


def test_a_small_file_cannot_ask_for_much(monkeypatch):
    """Aggregates need the room of what occurs; a program of many measures is refused by what it would need."""
    y = np.arange(400) % 10
    found = aggregate(
        {"y": y},
        score=np.eye(10)[y],
        y=y,
        sensitive_features=np.arange(400) // 10 % 2,
        happiness="equalized_odds",
        policy="score",
    )
    monkeypatch.setattr(_capacity, "free_memory", lambda: 1e6)
    monkeypatch.setattr(_capacity, "SMALL", 0.0)
    found = type(found).from_json(found.to_json())
    with pytest.raises(DataError, match="The linear program would need"):
        solve(found, gap=0.5)


def test_what_fits_is_let_through(monkeypatch):
    """The limit is the free memory, to the byte; where it is unknown, nothing is refused."""
    monkeypatch.setattr(_capacity, "free_memory", lambda: 8e9)
    check_room(1e9, "This", "why", "Do that.")
    with pytest.raises(
        DataError, match=r"This would need about 8\.0 GB of memory, and 8\.0 GB are free: why"
    ):
        check_room(1e9 + 1, "This", "why", "Do that.")
    monkeypatch.setattr(_capacity, "free_memory", lambda: None)
    check_room(1e30, "This", "why", "Do that.")


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="there is no /proc")
def test_free_memory_is_no_more_than_the_machine_has():
    """It is positive, and no more than all pages together."""
    assert 0 < free_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
