"""Rows that are known again: what is kept of those that were given, so that nobody is counted twice."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import numpy as np

from felicific._statistics.stream import Rows

#: So many changes of group or happiness along some rows tell them from any others.
CHANGES = 20

#: What is kept of some rows: how many there were, and a hash of them.
DIGEST = re.compile(r"[1-9][0-9]{0,14}:[0-9a-f]{32}")


def digest_of(rows: Rows) -> str:
    """How many there are, and a hash of each one's group and happiness; empty where others could look the same.

    Nothing else of them is in it, so that they are known again from another file or library.
    """
    written = _written(rows)
    if len(rows) < 2 or int((np.diff(written, axis=0) != 0).any(axis=1).sum()) < CHANGES:
        return ""
    return f"{len(rows)}:{hashlib.sha256(written.tobytes()).hexdigest()[:32]}"


def counted_before(rows: Rows, digests: Iterable[str]) -> int:
    """With how many rows these begin that were given before; 0 for none."""
    written, found, end = _written(rows), hashlib.sha256(), 0
    known = sorted((int(number), digest) for number, _, digest in (one.partition(":") for one in digests))
    for number, digest in known:
        if number > len(rows):
            break
        found.update(written[end:number].tobytes())
        end = number
        if found.hexdigest()[:32] == digest:
            return number
    return 0


def _written(rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Numbers of each row, one row after the other; there is one zero."""
    return np.column_stack([rows.codes, np.where(rows.inside, rows.values, 0.0), rows.inside]) + 0.0
