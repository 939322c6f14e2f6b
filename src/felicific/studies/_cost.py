"""What a study costs: seconds, and the most memory the process held."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Cost:
    """Filled in when the study ends; memory is of the whole process, in megabytes, None where it cannot be known."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what happens inside. Where the system can forget an earlier peak (Linux), it is told to."""
    cost, start = Cost(), time.perf_counter()
    with suppress(OSError):  # elsewhere, and where it is forbidden, the peak is the process's so far
        RESET.write_text("5")
    yield cost
    cost.seconds, cost.peak_mb = time.perf_counter() - start, peak_memory()


def peak_memory() -> float | None:
    """Most memory the process has held since it began, or since the peak was reset, in megabytes."""
    if STATUS.exists():
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
