"""What every loader returns, and the one place where arrays become the table that was asked for."""

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import Happiness
from felicific.exceptions import DataError


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
