"""How much memory there is, so that what needs more is refused before it is tried."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from felicific.exceptions import DataError

#: Bytes that are tried without a look at the memory.
SMALL = 2.0**27


def check_room(numbers: float, what: str, why: str, remedy: str) -> None:
    """Raise unless so many floating-point numbers fit into the memory that is free."""
    needed = 8.0 * numbers
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        raise DataError(
            f"{what} would need about {_gigabytes(needed)} of memory, and {_gigabytes(free)} are free: {why}.",
            remedy,
        )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"


def free_memory() -> float | None:
    """Bytes that this process may still ask for, by the machine, its container and its own limit; None: unknown."""
    known = [room for room in (_machine(), _container(), _own_limit()) if room is not None]
    return max(min(known), 0.0) if known else None


def _machine() -> float | None:
    return _fields(Path("/proc/meminfo")).get("MemAvailable:")


def _container() -> float | None:
    """What the control group leaves, files that it only remembers included."""
    found = None
    with contextlib.suppress(OSError, ValueError):
        group = Path("/proc/self/cgroup").read_text("utf-8").strip().rpartition("::")[2]
        folder = Path("/sys/fs/cgroup") / group.lstrip("/")
        for place in (folder, *folder.parents):
            if not (place / "memory.max").exists():
                continue
            limit = (place / "memory.max").read_text("utf-8").strip()
            if limit != "max":
                used = float((place / "memory.current").read_text("utf-8"))
                room = float(limit) - used + _fields(place / "memory.stat").get("inactive_file", 0.0)
                found = room if found is None else min(found, room)
    return found


def _own_limit() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    taken = _fields(Path("/proc/self/status")).get("VmSize:")
    return None if limit == resource.RLIM_INFINITY or taken is None else limit - taken


def _fields(path: Path) -> dict[str, float]:
    """Sizes that a file of the system lists by name, in bytes; none where there is no such file."""
    found = {}
    with contextlib.suppress(OSError):
        for line in path.read_text("utf-8").splitlines():
            name, *rest = line.split()
            if rest and rest[0].isdigit():
                found[name] = float(rest[0]) * (1024 if rest[1:] == ["kB"] else 1)
    return found
