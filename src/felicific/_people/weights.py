"""What weights mean for how sure one can be, and which rows are not independent of each other."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal, TypeAlias

import numpy as np

from felicific._tables.memory import as_objects, null_rows
from felicific._typing import Array, Codes
from felicific.exceptions import ClusterWarning, DataError

#: Frequencies: weight 2 is two people who were seen. Sampling weights: one was seen who stands for two. None: not said.
WeightKind: TypeAlias = Literal["frequency", "sampling"] | None

#: Whole weights of more than so many people a row on average are not taken for counts of people unless that is said.
MOST_PER_ROW = 10


def check_weight_kind(kind: Any) -> None:
    """Refuse what is no kind of weights."""
    if kind not in (None, "frequency", "sampling"):
        raise DataError(f"weight_kind is {kind!r}.", "Say 'frequency' or 'sampling'.")


def are_counts(kind: WeightKind, whole: bool, total: float, rows: int) -> bool:
    """Whether weights count people who were seen: as is said, else if they are whole numbers and few a row."""
    return whole and (kind == "frequency" or (kind is None and total <= MOST_PER_ROW * rows))


def are_sampling(kind: WeightKind, whole: bool, total: float, rows: int) -> bool:
    """Whether weights are sampling weights, for an interval; an error when that is not clear."""
    if kind == "sampling" or are_counts(kind, whole, total, rows):
        return kind == "sampling"
    if kind == "frequency":
        raise DataError(
            "The weights are said to be frequencies, and some are no whole numbers.",
            "Say weight_kind='sampling' if a row stands for people who were not seen, or pass counts of people.",
        )
    raise DataError(unclear(whole, total, rows), what_to_say(whole))


def what_to_say(whole: bool) -> str:
    """What to do about weights of which it is not clear what they are."""
    sampling = "Say weight_kind='sampling' if a row is one person who stands for so many"
    frequency = "weight_kind='frequency' if so many people were seen" if whole else "pass counts of people"
    return f"{sampling}, or {frequency}."


def unclear(whole: bool, total: float, rows: int) -> str:
    """What is not clear about weights that are not plainly counts."""
    if not whole:
        return "The weights are no whole numbers, so they are no counts of people."
    return (
        f"The weights of {rows:,} rows sum to {total:,.0f}, so it is not clear that so many people were seen."
    )


def refuse_no_cluster(cluster: Array | None, rows: Codes) -> None:
    """Refuse rows of no cluster."""
    missing = np.empty(0, dtype=np.intp) if cluster is None else null_rows(cluster)
    if len(missing):
        raise DataError(
            f"The cluster is missing in {len(missing)} rows, first in row {rows[missing[0]]}.",
            "Give every row one; a row that is independent of all others is a cluster of its own.",
        )


def number_clusters(cluster: Array) -> Codes:
    """Clusters as numbers from 0 on; text and numbers are different ones."""
    return distinct_clusters(cluster)[1]


def distinct_clusters(cluster: Array) -> tuple[Array, Codes]:
    """The different clusters, and the place of every row's among them."""
    if cluster.dtype.kind != "O":
        names, place = np.unique(cluster, return_inverse=True)
        return names, place
    index: dict[Any, int] = {}
    place = np.fromiter(
        (index.setdefault((type(name), name), len(index)) for name in cluster.tolist()), np.intp, len(cluster)
    )
    return as_objects([name for _, name in index]), place


def repeated(keys: Array | None, cluster: Any) -> list[str]:
    """What is to be said when several rows have the same key and nobody named clusters."""
    different = 0 if keys is None or cluster is not None else len(distinct_clusters(keys)[0])
    if keys is None or cluster is not None or different == len(keys):
        return []
    return [
        f"{len(keys):,} rows have {different:,} different keys, and intervals and certificates take every row for "
        "another person. Name what the rows of one person have in common: cluster= (the column of the key)."
    ]


def warn_repeated(keys: Array | None, cluster: Any) -> None:
    """Warn of it."""
    for text in repeated(keys, cluster):
        warnings.warn(text, ClusterWarning, stacklevel=level_outside())


def level_outside() -> int:
    """How many calls up the code that called felicific stands, for a warning that points at it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "felicific":
        level, frame = level + 1, frame.f_back
    return level
