"""CSV files, embedded or not, as arrays: no dataframe library needed."""

from __future__ import annotations

import csv
import hashlib
import io
import lzma
import operator
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import Happiness
from felicific.exceptions import DataError

FOLDER: Traversable = resources.files("felicific.datasets") / "data"

REINSTALL = "Install felicific again; the files that come with it were damaged or edited."


def embedded(name: str, sha256: str) -> str:
    """Decompress an embedded file and make sure that it is the file that was put there.

    Parameters
    ----------
    name : str
        File name in the data folder, ending in ``.xz``.
    sha256 : str
        Hash of the decompressed bytes, in hexadecimal.

    Returns
    -------
    str
        The text of the file.
    """
    try:
        content = lzma.decompress((FOLDER / name).read_bytes())
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"The embedded file {name} cannot be read ({error}).", REINSTALL) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataError(f"The embedded file {name} has sha256 {digest}, expected {sha256}.", REINSTALL)
    return content.decode("ascii")


def text_columns(text: str, source: str) -> dict[str, tuple[str, ...]]:
    """Split the text of a CSV file with a header row into its columns.

    Parameters
    ----------
    text : str
        The whole file.
    source : str
        What to call the file in an error.

    Returns
    -------
    dict of str to tuple of str
        Column name to cells, in the order of the file.
    """
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if len(rows) < 2:
        raise DataError(f"{source} holds no rows below a header.", "Give a CSV file with a header and data.")
    header = rows[0]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise DataError(
                f"Row {number} of {source} has {len(row)} cells where the header has {len(header)}.",
                "Check that the file is a complete, comma-separated CSV.",
            )
    return dict(zip(header, zip(*rows[1:], strict=True), strict=True))


def column(cells: tuple[str, ...], kind: type, name: str, source: str) -> NDArray[Any]:
    """Turn the cells of a column into an array.

    Parameters
    ----------
    cells : tuple of str
        The cells as they stand in the file.
    kind : {str, int, float}
        What they must be; numbers must be finite.
    name, source : str
        What to call the column and the file in an error.

    Returns
    -------
    numpy.ndarray
        Text, int64 or float64.
    """
    if kind is str:
        return np.array(cells, dtype=np.str_)
    try:
        values = np.array([float(cell) for cell in cells])  # faster than going through an array of text
    except ValueError:
        values = np.array([_number(cell) for cell in cells])
    whole = np.floor(values) if kind is int else values
    bad = np.flatnonzero(~np.isfinite(values) | (values != whole))
    if bad.size:
        wanted = "whole number" if kind is int else "number"
        raise DataError(
            f"Column {name!r} of {source} holds {cells[bad[0]]!r} in data row {bad[0] + 1}, not a {wanted}.",
            "Use the file as published, without edits.",
        )
    return values.astype(kind)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


# ---------------------------------------------------------------------------------------------------------
# What every loader returns, and the one place where arrays become the table that was asked for.


@dataclass(frozen=True, eq=False)  # eq=False: comparing two tables has no single truth value
class Dataset:
    """A table, its labels, its groups and what a decision is worth to each person in it.

    Attributes
    ----------
    name : str
        Short name of the data.
    X : pandas.DataFrame, polars.DataFrame or dict of numpy.ndarray
        One row per person, one column per feature, the group among them.
    y : numpy.ndarray of shape (n_rows,)
        The label, 0 or 1; 1 is the good one.
    sensitive_features : str
        Name of the column of `X` that holds the group.
    happiness : felicific._problem.happiness.Happiness
        What the decision is worth to a person.
    description : str
        Source, licence, facts, oddities, and what had to be assumed.
    """

    name: str
    X: Any = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    sensitive_features: str
    happiness: Happiness
    description: str = field(repr=False)


def checked_size(n: int) -> int:
    """Return the number of rows to draw as an int, or raise if it is not a positive whole number."""
    try:
        size = operator.index(n)
    except TypeError:
        size = 0
    if size < 1 or isinstance(n, bool):
        raise DataError(f"n is {n!r}, which is no number of rows.", "Use a whole number of at least 1.")
    return size
