"""A fingerprint of people: one SHA-256 of who they are, whatever library, or width of number, keeps them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from math import inf
from types import NoneType
from typing import Any, TypeAlias

import numpy as np

from felicific._people.people import People
from felicific._tables.memory import (
    EXACT,
    all_columns,
    as_vector,
    count_rows,
    in_utc,
    is_frame,
    is_null,
)
from felicific._typing import Array, Floats, Table

#: What every column holds, by its name: those of x begin with "x", and then there are group, y, weight and cluster.
Digests: TypeAlias = dict[str, bytes]

#: Of whole numbers that floats round, what they leave out.
LOST = 2048

#: What stands between two texts.
BETWEEN = "\x1f"

#: What a value of a column of mixed types is.
MISSING, TEXT, NUMBER, OTHER = range(4)


def people_sha256(people: People) -> str:
    """SHA-256, as hexadecimal text, of the group, label, weight and cluster of people, and of every column of x.

    The same rows in the same order have the same one in pandas, Polars, PyArrow or a dict, with equal numbers in any
    width, and columns in any order. What is decided about them, or predicted, is no part of it.
    """
    return sha256_of(digests_of(people))


def digests_of(people: People) -> Digests:
    """What every column of some people holds."""
    return column_digests(people.x, people.group, held_labels(people), people.weight, people.cluster)


def held_labels(people: People) -> Array | None:
    """The labels of people, None where one is missing."""
    if people.y is None or people.labels is None or (people.labels >= 0).all():
        return people.y
    held = people.y.astype(object)
    held[people.labels < 0] = None
    return held


def column_digests(
    x: Table,
    group: Array,
    y: Array | None = None,
    weight: Array | None = None,
    cluster: Array | None = None,
) -> Digests:
    """What every column of some rows holds; weights that are all one are no weights."""
    found = {name: _digest(values) for name, values in _columns(x)}
    unweighted = weight is None or bool((weight == 1).all())
    roles = {"group": group, "y": y, "weight": None if unweighted else weight, "cluster": cluster}
    return found | {name: _digest(values) for name, values in roles.items() if values is not None}


def sha256_of(digests: Digests, without: Collection[str] = ()) -> str:
    """One SHA-256 of some columns, which stand in the order of their names."""
    whole = hashlib.sha256(b"felicific people\n")
    for name in sorted(digests.keys() - set(without)):
        written = name.encode("utf-8", "surrogatepass")
        whole.update(b"%d:%b%b" % (len(written), written, digests[name]))
    return whole.hexdigest()


def of_x(name: Any) -> str:
    """What a column of x is called among the digests; the number of one in an array is not its name in a table."""
    return f"x.{name}" if isinstance(name, str) else f"x[{name}]"


def _columns(x: Table) -> Iterator[tuple[str, Any]]:
    """Every column of x by its name."""
    if is_frame(x):
        yield from ((of_x(name), values) for name, values in all_columns(x, "the fingerprint"))
    elif hasattr(x, "tocsr"):
        yield "x", x
    else:
        rows = np.asarray(x).reshape(count_rows(x), -1)
        yield from ((of_x(i), as_vector(column, "x")) for i, column in enumerate(rows.T))


# ---------------------------------------------------------------------------------------------------------
# One column


def _digest(values: Any) -> bytes:
    """SHA-256 of the values of a column: their number, what they are, and the bytes of each."""
    found = hashlib.sha256()
    for part in _sparse(values) if hasattr(values, "tocsr") else _parts(values):
        found.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).data)
    return found.digest()


def _sparse(matrix: Any) -> Iterator[bytes | Array]:
    """What a sparse matrix holds, and where; a zero that it stores is none."""
    held = matrix.tocsr(copy=True)
    held.sum_duplicates()
    held.eliminate_zeros()
    yield b"sparse %d %d\n" % held.shape
    yield from (held.indptr.astype(np.int64), held.indices.astype(np.int64))
    yield from _numbers(held.data)


def _parts(column: Array) -> Iterator[bytes | Array]:
    """A column as bytes: numbers as 64-bit floats, times in microseconds, text with its lengths."""
    kind = column.dtype.kind
    if kind in "biuf":
        return _numbers(column)
    if kind in "mM":
        return _times(column)
    values = column.tolist()
    if all_text(values):
        return _texts(values)
    values = [_plain(value) for value in values]
    kinds = set(map(type, values)) - {NoneType}
    if kinds <= {bool, int, float} and not any(map(_too_large, values)):
        return _numbers(_floats(values), np.array([_lost(value) for value in values], dtype=np.float64))
    if all(issubclass(one, date) for one in kinds):
        return _times(np.array([_moment(value) for value in values], dtype="M8[us]"))
    if all(issubclass(one, timedelta) for one in kinds):
        return _times(np.array(values, dtype="m8[us]"))
    return _mixed(values)


def as_numbers(values: Array) -> Array:
    """Numbers, some perhaps missing, that are kept as objects, as floats; other objects with None for a missing one."""
    if values.dtype.kind != "O" or all_text(values.tolist()):
        return values
    plain = [_plain(value) for value in values.tolist()]
    if set(map(type, plain)) <= {bool, int, float, NoneType} and not any(map(_too_large, plain)):
        return _floats(plain)
    return np.array([*plain, None], dtype=object)[:-1]


def all_text(values: list[Any]) -> bool:
    """Whether all of these are text; Python joins nothing else, which is the quickest way to ask."""
    try:
        "".join(values)
    except TypeError:
        return False
    return True


def _plain(value: Any) -> Any:
    """A value as Python has it; None where it is missing."""
    if is_null(value):
        return None
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value


def _moment(value: Any) -> Any:
    """A day as its first moment, and a time of a zone as that of UTC."""
    return datetime(value.year, value.month, value.day) if type(value) is date else in_utc(value)


def _numbers(values: Array, lost: Floats | None = None) -> Iterator[bytes | Array]:
    """Numbers by their value; what floats leave out of large whole ones stands beside them."""
    numbers = values.astype(np.float64) + 0.0  # there is one zero
    missing = np.isnan(numbers)
    if missing.any():
        numbers[missing] = np.nan  # and one that is missing
    yield b"numbers %d\n" % len(numbers)
    yield numbers
    large = np.abs(numbers) >= EXACT
    if large.any():
        if lost is None:
            whole = values if values.dtype.kind in "iu" else np.where(np.isfinite(numbers), numbers, 0.0)
            lost = np.mod(whole, LOST).astype(np.float64)
        yield np.where(large, lost, 0.0)


def _too_large(value: Any) -> bool:
    """Whether this is a whole number that no float comes near."""
    return type(value) is int and abs(value) >= 2**1023


def _floats(values: list[Any]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _lost(value: Any) -> float:
    """What a float may leave out of a whole number."""
    return 0.0 if value is None or value in (inf, -inf) else float(value % LOST)


def _times(values: Array) -> Iterator[bytes | Array]:
    """Times, or how long something took, in microseconds unless they are finer."""
    unit = np.datetime_data(values.dtype)[0]
    fine = unit in ("ns", "ps", "fs", "as")
    yield b"%b %b %d\n" % (values.dtype.kind.encode(), unit.encode() if fine else b"us", len(values))
    yield (values if fine else values.astype(f"{values.dtype.kind}8[us]")).astype(np.int64)


def _texts(values: list[str]) -> Iterator[bytes | Array]:
    """Text, with what is between two of them; with how long each is, where that is a part of some too."""
    joined = BETWEEN.join(values)
    unclear = joined.count(BETWEEN) >= len(values)
    yield b"texts %d %d\n" % (len(values), unclear)
    if unclear:
        yield np.fromiter(map(len, values), np.int64, len(values))
    yield joined.encode("utf-8", "surrogatepass")


def _mixed(values: list[Any]) -> Iterator[bytes | Array]:
    """Values of several types, or of which some are missing, as text with what each is."""
    told = [_told(value) for value in values]
    kinds = np.array([kind for kind, _ in told], dtype=np.int8)
    yield b"mixed\n"
    yield kinds
    yield from _texts([text for _, text in told])


def _told(value: Any) -> tuple[int, str]:
    """What a value is, and its text."""
    if value is None:
        return MISSING, ""
    if isinstance(value, str):
        return TEXT, value
    if isinstance(value, float) and value.is_integer():
        return NUMBER, str(int(value))
    if isinstance(value, bool | int | float):
        return NUMBER, repr(value if isinstance(value, float) else int(value))
    listed = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return OTHER, repr(listed() if listed else value)
