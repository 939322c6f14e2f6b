"""Types that the whole library shares: arrays by what they hold, and a table of any library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Real numbers.
Floats: TypeAlias = NDArray[np.float64]

#: Positions: of a group among the groups, of a label among the classes, of rows.
Codes: TypeAlias = NDArray[np.intp]

#: True or False each.
Truths: TypeAlias = NDArray[np.bool_]

#: Values of any type: labels, groups, a column.
Array: TypeAlias = NDArray[Any]

#: A table in memory (a dataframe of any library, a dict of columns, an array); on the outside also a lazy one.
Table: TypeAlias = Any
