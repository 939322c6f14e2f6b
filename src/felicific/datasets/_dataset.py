"""What every loader returns, and the one place where arrays become the table that was asked for."""

import importlib
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from felicific.exceptions import DataError
from felicific.happiness import Happiness

Columns = dict[str, NDArray[Any]]
Form = Literal["auto", "pandas", "polars", False]


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
        The label, 0 or 1; 1 is the favourable one.
    sensitive_features : str
        Name of the column of `X` that holds the group.
    happiness : felicific.happiness.Happiness
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


def table_maker(as_frame: Form) -> Callable[[Columns], Any]:
    """Choose how columns become a table, before any work is spent on making them.

    Parameters
    ----------
    as_frame : {"auto", "pandas", "polars", False}
        ``"auto"`` is pandas if it is installed, else Polars, else a dict of arrays; ``False`` is the dict.

    Returns
    -------
    callable
        Turns a dict of equally long arrays into the table.

    Raises
    ------
    DataError
        If `as_frame` is none of the four.
    ImportError
        If the library asked for by name is not installed.
    """
    if as_frame is False:
        return dict
    if not isinstance(as_frame, str) or as_frame not in ("auto", "pandas", "polars"):
        raise DataError(
            f"as_frame is {as_frame!r}, which names no kind of table.",
            'Use "auto", "pandas", "polars", or False for a dict of NumPy arrays.',
        )
    for library in ("pandas", "polars") if as_frame == "auto" else (as_frame,):
        try:
            frame: Callable[[Columns], Any] = importlib.import_module(library).DataFrame
        except ImportError as error:
            if as_frame != "auto":
                raise ImportError(
                    f'as_frame="{library}" needs {library}, which is not installed. Install it with '
                    f'"pip install {library}", or use as_frame=False for a dict of NumPy arrays.'
                ) from error
        else:
            return frame
    return dict


def checked_size(n: int) -> int:
    """Return the number of rows to draw as an int, or raise if it is not a positive whole number."""
    try:
        size = operator.index(n)
    except TypeError:
        size = 0
    if size < 1 or isinstance(n, bool):
        raise DataError(f"n is {n!r}, which is no number of rows.", "Use a whole number of at least 1.")
    return size
