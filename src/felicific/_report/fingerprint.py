"""The fingerprint of a page's data: one SHA-256 of its people, made when the page is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date, timedelta
from types import NoneType

import numpy as np

from felicific._people.people import People
from felicific._tables.memory import (
    EXACT,
    as_vector,
    column_names,
    count_rows,
    is_frame,
    is_null,
    take_columns,
)
from felicific._typing import Array, Table

#: A float leaves out less than this of a whole number that a column of 64 bits holds.
LOST = 2048


def people_sha256(people: People) -> str:
    """SHA-256, as hexadecimal text, of group, label, weight and cluster of people, and of every column of x.

    The same rows in the same order have the same one in pandas, Polars, PyArrow or a dict, with equal numbers in any
    width, and columns in any order. Decisions and predictions are not a part of it.
    """
    y = people.y
    if y is not None and people.labels is not None and (people.labels < 0).any():
        y = y.astype(object)
        y[people.labels < 0] = None
    weight = None if people.weight is None or bool((people.weight == 1).all()) else people.weight
    roles = {"group": people.group, "y": y, "weight": weight, "cluster": people.cluster}
    columns = dict(_columns(people.x)) | {name: part for name, part in roles.items() if part is not None}
    whole = hashlib.sha256(b"felicific people\n")
    for name in sorted(columns):
        written = name.encode("utf-8", "surrogatepass")
        content = hashlib.sha256(_content(columns[name])).digest()
        whole.update(b"%d:%b%b" % (len(written), written, content))
    return whole.hexdigest()


def _columns(x: Table) -> Iterator[tuple[str, Array]]:
    """Every column of x; a position in an array is not a name in a table."""
    if is_frame(x):
        names = {name: f"x.{name}" if isinstance(name, str) else f"x[{name}]" for name in column_names(x)}
        yield from zip(names.values(), take_columns(x, list(names), "the fingerprint"), strict=True)
    else:
        rows = x.toarray() if hasattr(x, "tocsr") else np.asarray(x).reshape(count_rows(x), -1)
        yield from ((f"x[{i}]", as_vector(column, "x")) for i, column in enumerate(rows.T))


def _content(values: Array) -> bytes:
    """A column as bytes: numbers as floats, times in nanoseconds, anything else as text with its lengths."""
    if values.dtype.kind not in "biufmM":
        plain = [None if is_null(value) else value for value in values.tolist()]
        kinds = {type(value) for value in plain} - {NoneType}
        if all(issubclass(kind, date | timedelta) for kind in kinds) and kinds:
            kind = "m8[us]" if issubclass(kinds.pop(), timedelta) else "M8[us]"
            values = np.array(plain, dtype=kind)
        elif all(issubclass(kind, bool | int | float | np.number) for kind in kinds):
            return _numbers(np.array([np.nan if value is None else value for value in plain], dtype=object))
        else:
            texts = ["" if value is None else f"={value}" for value in plain]
            lengths = np.fromiter(map(len, texts), np.int64, len(texts)).tobytes()
            return b"texts" + lengths + "".join(texts).encode("utf-8", "surrogatepass")
    if values.dtype.kind in "mM":
        return b"times" + values.astype(f"{values.dtype.kind}8[ns]").astype(np.int64).tobytes()
    return _numbers(values)


def _numbers(values: Array) -> bytes:
    """Numbers by their value, in any width; of whole ones that floats round, also what they leave out."""
    numbers = values.astype(np.float64) + 0.0  # there is one zero
    numbers[np.isnan(numbers)] = np.nan
    large = np.isfinite(numbers) & (np.abs(numbers) >= EXACT)
    rest = np.array([int(value) % LOST for value in values[large].tolist()], dtype=np.int64)
    return b"numbers" + numbers.tobytes() + rest.tobytes()
