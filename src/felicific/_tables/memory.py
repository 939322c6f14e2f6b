"""In-memory tables as the rest of the library sees them: count rows, slice rows, take columns, text by its codes.

A table is a dataframe that narwhals can read eagerly (pandas, Polars, PyArrow, ...), a mapping of names to
arrays, or an array. Nothing here imports a dataframe library: narwhals recognises the ones already imported.
"""

from __future__ import annotations

import ctypes
import difflib
import importlib
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice, pairwise, repeat
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Array, Codes, Table, Truths
from felicific.exceptions import DataError

Columns = dict[str, NDArray[Any]]
Form = Literal["auto", "pandas", "polars", False]


#: Up to so many columns or values, a loop over them beats NumPy's general ways.
FEW = 8

#: Floats tell whole numbers up to it apart.
EXACT = 2**53

#: Whole numbers less far apart than this are looked up in a list of them all.
DENSE = 4096


def is_frame(table: Table) -> bool:
    """Whether the table has named columns (a dataframe or a mapping), as opposed to an array."""
    # Asked of the type: on a lazy table, looking at the attribute itself can start work.
    return is_mapping(table) or hasattr(type(table), "columns")


def is_mapping(table: Table) -> bool:
    """Whether the table is a dict of columns; some sparse matrices are mappings too, but no tables of columns."""
    return isinstance(table, Mapping) and not hasattr(table, "tocsr")


def eager_frame(table: Table) -> Any:
    """A dataframe as narwhals has it."""
    import narwhals as nw

    try:
        return nw.from_native(table, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        names = [str(name) for name in getattr(table, "column_names", table.columns)]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataError(
            f"The table has the column {_listed(twice)} more than once.", "Rename one."
        ) from error
    except TypeError as error:
        raise DataError(
            f"The table is a {type(table).__module__}.{type(table).__qualname__}, not a table in memory.",
            "Pass a pandas, Polars or PyArrow table, a dict of arrays or a NumPy array; "
            "collect a lazy one first.",
        ) from error


def library_of(value: Any) -> str:
    """The library that a table, or a column, is of."""
    return type(value).__module__.split(".")[0]


def is_quick(table: Table) -> bool:
    """Whether this is a dataframe of pandas or Polars, whose own attributes do; to wrap it would take its time."""
    library = library_of(table)
    if library == "pandas":  # which alone allows two columns of one name; those are refused elsewhere
        return type(table).__name__ == "DataFrame" and bool(table.columns.is_unique)
    return library == "polars" and type(table).__name__ == "DataFrame"


class ArrayRows:
    """Rows of a table whose columns are arrays, so that one can calculate with them; it notes those ``used``."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.used: list[Any] = []

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return column_names(self._table)

    def __len__(self) -> int:
        return count_rows(self._table)

    def __getitem__(self, name: Any) -> Array:
        column = plain_array(take_column(self._table, name, "x"))
        self.used.append(name)
        return column.view(Values)


class Values(np.ndarray):
    """An array with some methods of a pandas column: what functions get of a table that is not in memory."""

    def isin(self, values: Iterable[Any]) -> Array:
        """Whether each value is one of these."""
        return np.isin(self, list(values))

    def abs(self) -> Array:
        """Absolute value."""
        return np.abs(self)

    def between(self, left: Any, right: Any) -> Array:
        """Whether each value lies in a range, ends included."""
        return np.asarray((self >= left) & (self <= right))

    def clip(  # type: ignore[override]  # as pandas has it
        self, *limits: Any, lower: Any = None, upper: Any = None, **named: Any
    ) -> Array:
        """Limit to a range, as NumPy (min, max) and pandas (lower, upper) spell it."""
        named |= {} if lower is None else {"min": lower}
        named |= {} if upper is None else {"max": upper}
        return super().clip(*limits, **named)


class UnreadColumn(DataError):  # noqa: N818  # nobody sees it where the table can be read again
    """A function looks at a column that it did not look at when it was tried."""

    def __init__(self, name: Any) -> None:
        super().__init__(
            f"A function looks at the column {name!r} in some rows, and not in the first ones.",
            "Let it look at the same columns in all rows, as np.where does.",
        )
        self.name = name

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        """A worker sends it on."""
        return type(self), (self.name,)


class ColumnArrays(Mapping[Any, Array]):
    """Columns of some rows as arrays: what functions get as ``x`` of a table that is not in memory.

    Parameters
    ----------
    arrays : dict of name to array
        The columns that were read.
    rows : int
        How many rows there are, also where no column was read.
    names : sequence
        All columns of the table.
    purpose : str
        Who looks at them, for messages.
    """

    def __init__(
        self, arrays: dict[Any, Array], rows: int, names: Sequence[Any], purpose: str = "the happiness"
    ) -> None:
        self.arrays, self.rows, self.names, self.purpose = arrays, rows, names, purpose
        self.used: list[Any] = []

    def __getitem__(self, name: Any) -> Array:
        if name not in self.arrays:
            refuse_missing_columns(list(self.names), [name], self.purpose)
            raise UnreadColumn(name)
        self.used.append(name)
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return self.rows


def on_columns(table: Table, change: Callable[[Any], Any], rows: int | None = None) -> Table:
    """A mapping of columns with each of them changed; it then has so many rows, by default as many as before."""
    changed = {name: change(column) for name, column in table.items()}
    if not isinstance(table, ColumnArrays):
        return changed
    return ColumnArrays(changed, table.rows if rows is None else rows, table.names, table.purpose)


def count_rows(table: Table) -> int:
    """Count the rows."""
    if isinstance(table, ColumnArrays):
        return table.rows
    if is_mapping(table):
        lengths = {str(name): len(column) for name, column in table.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(
                f"The columns of the table differ in length: {lengths}.", "Give every column the same rows."
            )
        return next(iter(lengths.values()), 0)
    if is_frame(table):
        return int((table if is_quick(table) else eager_frame(table)).shape[0])
    if not hasattr(table, "shape") and not hasattr(table, "__len__"):
        raise DataError(
            f"A {type(table).__name__} is no table.",
            "Pass a dataframe, a lazy one, a dict of arrays, an array, or the path of Parquet files.",
        )
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def slice_rows(table: Table, start: int, stop: int) -> Table:
    """Rows ``start`` to ``stop``, in the same library as the table."""
    if is_mapping(table):
        n = len(range(*slice(start, stop).indices(count_rows(table))))
        return on_columns(table, lambda column: column[start:stop], n)
    if is_frame(table):
        return (
            table.iloc[start:stop] if hasattr(table, "iloc") else eager_frame(table)[start:stop].to_native()
        )
    return table[start:stop]


def column_arrays(
    table: Table,
    used: Sequence[Any],
    names: Sequence[Any],
    purpose: str = "the happiness",
    whole: Iterable[Any] = (),
) -> ColumnArrays:
    """Some columns of a table as arrays of 64-bit numbers, or of what else they hold; there are others, by ``names``.

    Whole numbers become floats where those are exact, so that arithmetic does not wrap, but for the columns ``whole``.
    """
    arrays: dict[Any, Array] = {}
    for name in used:
        column = plain_array(take_entries(table, name, purpose))
        column = column.astype(object) if column.dtype.kind in "UT" else column  # text of every library alike
        wide = _wide(column)
        column = column if wide is None else column.astype(wide)
        small = (
            column.dtype.kind in "iu" and -EXACT <= column.min(initial=0) <= column.max(initial=0) <= EXACT
        )
        arrays[name] = (column.astype(np.float64) if small and name not in whole else column).view(Values)
    return ColumnArrays(arrays, count_rows(table), names, purpose)


def widener(table: Table) -> Callable[[Table], Table]:
    """How to make narrow numbers 64-bit ones, in rows of this table, so that arithmetic neither wraps nor rounds."""
    if isinstance(table, ColumnArrays):
        return _as_it_is  # see column_arrays
    if is_mapping(table):
        narrow = {name: wide for name, column in table.items() if (wide := _wide(column)) is not None}
        if not narrow:
            return _as_it_is
        return lambda rows: {
            name: column.astype(narrow[name]) if name in narrow else column for name, column in rows.items()
        }
    if not is_frame(table):
        wide = _wide(table)
        return _as_it_is if wide is None else lambda rows: rows.astype(wide)
    import narwhals as nw

    half = [nw.Float16] if hasattr(nw, "Float16") else []
    wider: dict[type, type] = {
        **dict.fromkeys((nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16, nw.UInt32), nw.Int64),
        **dict.fromkeys((*half, nw.Float32, nw.Decimal), nw.Float64),
    }
    frame = eager_frame(table)
    columns = [(name, wider[type(dtype)]) for name, dtype in frame.schema.items() if type(dtype) in wider]
    columns += [  # pandas keeps decimal numbers as objects
        (name, nw.Float64)
        for name, dtype in frame.schema.items()
        if dtype == nw.Object and _holds_decimals(frame.get_column(name).to_numpy())
    ]
    columns += [
        (name, nw.Int64)
        for name, dtype in frame.schema.items()
        if dtype == nw.UInt64 and (frame.get_column(name).max() or 0) < 2**63
    ]
    if not columns:
        return _as_it_is

    def widen(rows: Table) -> Table:
        frame = eager_frame(rows)
        return frame.with_columns(frame.get_column(name).cast(dtype) for name, dtype in columns).to_native()

    return widen


def _as_it_is(rows: Table) -> Table:
    return rows


def _wide(column: Any) -> type | None:
    """The 64-bit type of a narrow column, or one without negative numbers; None for any other."""
    dtype = None if isinstance(column, Coded) else getattr(column, "dtype", None)
    if (
        getattr(dtype, "kind", "") == "O"
        and getattr(column, "ndim", 1) == 1
        and _holds_decimals(np.asarray(column))
    ):
        return np.float64
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
        return None
    if dtype.itemsize >= 8:
        return np.int64 if dtype.kind == "u" and column.max(initial=0) < 2**63 else None
    return np.float64 if dtype.kind == "f" else np.int64


def take_rows(table: Table, positions: NDArray[np.intp]) -> Table:
    """Pick rows by position, in the same library as the table."""
    if is_mapping(table):
        return on_columns(table, lambda column: np.asanyarray(column)[positions], len(positions))
    if is_frame(table):
        return table.iloc[positions] if hasattr(table, "iloc") else eager_frame(table)[positions].to_native()
    return table[positions]


def column_names(table: Table) -> list[Any]:
    """Names of the columns; for an array, their positions."""
    if is_mapping(table):
        return list(table)
    if is_frame(table):
        return list(table.columns if is_quick(table) else eager_frame(table).columns)
    return list(range(table.shape[1])) if getattr(table, "ndim", 1) == 2 else []


def numeric_names(table: Table, most: int, without: Hashable = None) -> list[Any]:
    """Names of the first columns of numbers, truth values not among them; ``without`` one."""
    names = [name for name in column_names(table) if name != without]
    if is_frame(table) and not is_mapping(table):
        numeric: Iterable[Any] = (name for name in names if _is_numeric(table, name))
    elif hasattr(table, "tocsr"):
        numeric = names
    else:
        columns = table if is_mapping(table) else np.asarray(table).T
        numeric = (name for name in names if as_numbers(as_vector(columns[name], "x")).dtype.kind in "iuf")
    return list(islice(numeric, most))


def _is_numeric(table: Table, name: Hashable) -> bool:
    dtype = table[name].dtype if is_quick(table) else None
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iuf"
    return bool(eager_frame(table).get_column(name).dtype.is_numeric())


def as_numbers(values: Array) -> Array:
    """Numbers that are kept as objects, as floats; anything else as it is."""
    if values.dtype.kind == "O" and set(map(type, values.tolist())) <= {int, float}:
        return values.astype(np.float64)
    return values


def check_columns(table: Table, names: Iterable[Hashable], purpose: str) -> None:
    """Raise, naming the missing columns and the nearest ones that exist."""
    refuse_missing_columns(column_names(table), names, purpose)


def refuse_missing_columns(columns: list[Any], names: Iterable[Hashable], purpose: str) -> None:
    """Raise if some names are not known, naming them and the nearest ones that are."""
    existing = set(columns)
    missing: list[Any] = [name for name in names if name not in existing]
    if not missing:
        return
    near = nearest(str(missing[0]), [name for name in columns if isinstance(name, str)])
    if not columns:
        remedy = "Pass a table with named columns."
    else:
        remedy = f"Did you mean {_listed(near)}?" if near else f"The table has {_listed(columns[:12])}."
    raise DataError(f"The table has no column {_listed(missing)}, needed for {purpose}.", remedy)


def nearest(word: str, choices: Iterable[str], cutoff: float = 0.5) -> list[str]:
    """The names that a misspelt one may mean: those that hold it as a word or as a word's beginning come first.

    Examples
    --------
    >>> nearest("race", ["age", "Race/Ethnicity (self-reported)"])
    ['Race/Ethnicity (self-reported)', 'age']
    """
    names = list(choices)
    begins = re.compile(rf"(?<![^\W_]){re.escape(word)}", re.IGNORECASE)
    holding = [name for name in names if word.strip() and begins.search(name)]
    close = difflib.get_close_matches(word, names, n=3, cutoff=cutoff)
    return list(dict.fromkeys([*sorted(holding, key=len), *close]))[:3]


def text_of_all(table: Table, name: Hashable) -> Any | None:
    """A column of a dataframe, as narwhals has it, if it is text and none is missing; else None."""
    check_columns(table, [name], "key")
    if is_mapping(table) or not is_frame(table):
        return None
    import narwhals as nw

    column = eager_frame(table).get_column(name)
    return column if column.dtype == nw.String and not column.null_count() else None


def take_column(table: Table, name: Hashable, purpose: str) -> Array:
    """One column as a 1-D NumPy array."""
    return take_columns(table, [name], purpose)[0]


def _taken(table: Table, name: Hashable, purpose: str) -> Array:
    if is_mapping(table):
        return as_vector(table[name], purpose)
    if is_frame(table):
        if is_quick(table) and _is_plain(table[name]):
            return as_vector(table[name].to_numpy(), purpose)
        return as_vector(_exact_values(eager_frame(table).get_column(name)), purpose)
    column = table[:, [name]] if hasattr(table, "tocsr") else table[:, name]
    return as_vector(column.toarray() if hasattr(column, "tocsr") else column, purpose)


def _is_plain(column: Any) -> bool:
    """Whether a column of pandas or Polars is as NumPy would hold it: of Polars, numbers of which none is missing."""
    if isinstance(column.dtype, np.dtype):
        return True
    numbers = hasattr(column, "null_count") and (column.dtype.is_integer() or column.dtype.is_float())
    return bool(numbers and not column.null_count())


def take_entries(table: Table, name: Hashable, purpose: str) -> Entries:
    """One column, of text by its codes."""
    if is_frame(table):
        check_columns(table, [name], purpose)
        quick = is_mapping(table) or is_quick(table)
        column = table[name] if quick else eager_frame(table).get_column(name).to_native()
        coded = column if isinstance(column, Coded) else code_text(column)
        if coded is not None:
            return coded
    return take_column(table, name, purpose)


def take_columns(table: Table, names: Sequence[Hashable], purpose: str) -> list[Array]:
    """Some columns, as :func:`take_column` takes each."""
    check_columns(table, names, purpose)
    return [_taken(table, name, purpose) for name in names]


def _exact_values(series: Any) -> Array:
    """A column as an array, as exactly as NumPy can."""
    import narwhals as nw

    if series.dtype in (nw.Categorical, nw.Enum) and series.null_count():
        # PyArrow would give another value for a missing one.
        return object_array(series.cast(nw.String).to_list())
    whole = series.dtype in (nw.Int64, nw.UInt64) and 0 < series.null_count() < len(series)
    # Of whole numbers where one is missing NumPy would make floats, and lose their digits.
    if whole and max(-int(series.min()), int(series.max())) > EXACT:
        return object_array(None if is_null(one) else one for one in series.to_list())
    return object_array(series.to_list()) if series.dtype == nw.String else np.asarray(series.to_numpy())


def select_columns(table: Table, names: Sequence[Hashable], purpose: str) -> Table:
    """Keep only the named columns, in that order and in the same library as the table."""
    check_columns(table, names, purpose)
    if is_mapping(table):
        return {name: table[name] for name in names}
    if is_frame(table):
        columns = column_names(table)
        if list(names) == columns:
            return table
        if is_quick(table) and hasattr(table, "take"):  # of pandas, where it is the quickest way
            return table.take([columns.index(name) for name in names], axis=1)
        return (
            table[list(names)]
            if hasattr(table, "iloc")
            else eager_frame(table).select(list(names)).to_native()
        )
    return table[:, list(names)]


def add_column(table: Table, name: str, values: Array) -> Table:
    """The table with one more column, in the same library."""
    if is_mapping(table):
        return {**table, name: values}
    if not is_frame(table):
        raise DataError("An array has no names for a further column.", "Pass a table with named columns.")
    if hasattr(table, "iloc"):
        return table.assign(**{name: values})
    import narwhals as nw

    frame = eager_frame(table)
    plain = values.tolist()
    large = all(isinstance(value, int) for value in plain) and max(plain, default=0) >= 2**63
    series = nw.new_series(name, plain, nw.UInt64 if large else None, backend=frame.implementation)
    return frame.with_columns(series).to_native()


def as_objects(values: Sequence[Any]) -> Array:
    """Python values as an array: of their own type when they share one, else of objects."""
    if len({type(value) for value in values}) == 1 and not isinstance(values[0], str):
        return exact_array(values)
    return object_array(values)


def object_array(values: Iterable[Any]) -> Array:
    """Python values as they are, whatever their types."""
    return np.array([*values, None], dtype=object)[:-1]  # with None lists of equal length stay objects


def exact_array(values: Any) -> Array:
    """As NumPy makes an array of it; but whole numbers too large for one type, of which it makes floats, stay whole."""
    array = np.asarray(_without_dictionary(values))
    if array.dtype.kind in "UT" and hasattr(values, "to_list"):
        return object_array(values.to_list())  # Polars makes texts of a fixed length, without their last NULs
    rounded = array.dtype.kind == "f" and isinstance(values, list | tuple) and array.ndim == 1
    if rounded and all(isinstance(value, int | np.integer) for value in values):
        return object_array(map(int, values))
    return array


def _without_dictionary(values: Any) -> Any:
    """A dictionary of PyArrow in chunks as its values: NumPy gives those that are missing the value of others."""
    if type(values).__name__ != "ChunkedArray":
        return values
    kind = getattr(values.type, "value_type", None)
    return values if kind is None or not hasattr(values.type, "index_type") else values.cast(kind)


def as_vector(values: Any, what: str) -> Array:
    """``values`` as a 1-D NumPy array (a column of shape (n, 1) is flattened)."""
    array = exact_array(values)
    if array.dtype.kind == "U" and isinstance(values, list | tuple) and array.ndim == 1:
        # NumPy turns a NaN among strings into the string "nan"; a missing value must stay one.
        strings = all(isinstance(value, str) for value in values)
        array = array if strings else object_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] == "ns":
        # Of nanoseconds NumPy makes plain numbers where Python's own times are asked for.
        coarse = array.astype(f"{array.dtype.kind}8[us]")
        array = coarse if (coarse.astype(array.dtype) == array)[~np.isnat(array)].all() else array
    if array.dtype.kind == "O" and array.ndim == 1:
        array = _plain_objects(array)
    if array.ndim != 1:
        raise DataError(
            f"The {what} has shape {array.shape}, not one value per row.", "Pass a one-dimensional array."
        )
    return array


def as_entries(values: Any, what: str) -> Entries:
    """``values`` as a 1-D array, of text by its codes."""
    coded = values if isinstance(values, Coded) else code_text(values)
    return as_vector(values, what) if coded is None else coded


def plain_array(values: Entries) -> Array:
    """Values as an array: where one is missing, None among text and floats of numbers, in every library alike."""
    if isinstance(values, Coded):
        return np.asarray(replace(values, null=None))
    lost = null_rows(values) if values.dtype == object else ()
    if not len(lost):
        return values
    plain = values.copy()
    plain[lost] = None
    numbers = set(map(type, plain.tolist())) <= {int, float, type(None)}
    return plain.astype(np.float64) if numbers else plain


def _plain_objects(values: Array) -> Array:
    """Decimal numbers as floats, or whole ones that floats do not tell apart; times of a zone as those of UTC."""
    if _holds_decimals(values):
        present = [value for value in values.tolist() if not is_null(value)]
        if any(abs(value) > EXACT for value in present) and all(value == int(value) for value in present):
            return object_array(None if is_null(value) else int(value) for value in values.tolist())
        return np.array([math.nan if is_null(value) else float(value) for value in values.tolist()])
    if isinstance(_first_value(values), datetime):
        # As libraries do whose columns are arrays: NumPy knows no zones.
        return object_array(None if is_null(value) else in_utc(value) for value in values.tolist())
    return values


def in_utc(time: Any) -> Any:
    """A time of a zone as that of UTC; anything else as it is."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        return time
    return time.astimezone(UTC).replace(tzinfo=None)


def _first_value(values: Array) -> Any:
    return next((value for value in values if not is_null(value)), None)


def _holds_decimals(values: Array) -> bool:
    """Whether these are decimal numbers, some perhaps missing; what is not missing first of all decides quickly."""
    return isinstance(_first_value(values), Decimal) and all(
        isinstance(value, Decimal) or is_null(value) for value in values.tolist()
    )


def null_rows(values: Entries) -> NDArray[np.intp]:
    """Positions of missing values: None, NaN, NaT and pandas' NA."""
    if isinstance(values, Coded):
        return values.null_rows
    if values.dtype.kind in "fc":
        return np.flatnonzero(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.flatnonzero(np.isnat(values))
    if values.dtype.kind != "O":
        return np.empty(0, dtype=np.intp)
    plain = values.tolist()
    if set(map(type, plain)) <= {str, int, bool}:  # no value of these types is missing
        return np.empty(0, dtype=np.intp)
    return np.array([i for i, value in enumerate(plain) if is_null(value)], dtype=np.intp)


def misses_values(table: Table) -> bool:
    """Whether some value of some column is missing."""
    if is_mapping(table):
        return any(len(null_rows(np.ravel(column))) for column in table.values())
    if hasattr(table, "iloc"):
        return bool(table.isna().to_numpy().any())
    columns = eager_frame(table).iter_columns()
    # By NumPy: older Arrow cannot ask it of half floats.
    return any(
        one.null_count() or (one.dtype.is_float() and np.isnan(one.to_numpy()).any()) for one in columns
    )


def is_null(value: Any) -> bool:
    """Whether one Python value stands for "missing": missing values differ from themselves, or are None."""
    if value is None:
        return True
    different = value != value
    return bool(different) if isinstance(different, bool | np.bool_) else type(value).__name__ == "NAType"


def encode(values: Entries, levels: Sequence[Any]) -> NDArray[np.intp]:
    """Position of every value in ``levels``; -1 where it is not known."""
    if isinstance(values, Coded):
        return values.places(levels)
    few = len(values) <= FEW and values.dtype.kind in "biufU"
    one_type = not few and len({type(value) for value in levels}) == 1
    if one_type and values.dtype.kind in "biufU" and values.dtype.kind == np.asarray(levels).dtype.kind:
        table = np.asarray(levels)
        if values.dtype.kind in "iu" and len(values):
            places = _places(values, table)
            if places is not None:
                return places
        if len(table) <= FEW:
            codes = np.full(len(values), -1, dtype=np.intp)
            for position, value in enumerate(table):
                codes += np.multiply(values == value, position + 1, dtype=np.intp)
            return codes
        order = np.argsort(table, kind="stable")
        place = np.searchsorted(table, values, sorter=order).clip(max=len(table) - 1)
        codes = order[place]
        return np.where(table[codes] == values, codes, -1).astype(np.intp)
    index = {value: position for position, value in enumerate(levels)}
    return np.fromiter(map(index.get, values.tolist(), repeat(-1)), np.intp, count=len(values))


def _places(values: Array, table: Array) -> NDArray[np.intp] | None:
    """Codes of whole numbers that lie close together, by a list of all of them, which is faster than comparing."""
    low = min(int(values.min()), int(table.min()))
    high = max(int(values.max()), int(table.max()))
    if high - low >= DENSE:
        return None
    place = np.full(high - low + 1, -1, dtype=np.intp)
    place[[int(value) - low for value in table]] = np.arange(len(table))
    if low:
        # A difference of small integers must not wrap around.
        values = np.subtract(values, low, dtype=np.int64 if values.dtype.kind == "i" else np.uint64)
    return place.take(values.astype(np.intp, copy=False))


def row_argmax(array: NDArray[np.float64]) -> NDArray[np.intp]:
    """Position of the first largest number of every row; column by column when there are few, which is faster."""
    if not 1 < array.shape[1] <= FEW:
        return np.asarray(array.argmax(axis=1))
    best = array[:, 0]
    codes: NDArray[np.intp] = (array[:, 1] > best).astype(np.intp)
    for k in range(2, array.shape[1]):
        best = np.maximum(best, array[:, k - 1])
        np.putmask(codes, array[:, k] > best, k)
    return codes


def distinct(values: Entries) -> list[Any]:
    """The distinct values as Python scalars, sorted (by type first where types do not compare)."""
    if isinstance(values, Coded):
        return _sorted(values.used())
    if values.dtype.kind in "iu" and len(values):
        least, most = int(values.min()), int(values.max())
        if most - least < len(values):  # counting beats sorting and hashing
            if least:  # a difference of small integers must not wrap around
                values = np.subtract(values, least, dtype=np.int64 if values.dtype.kind == "i" else np.uint64)
            counts = np.bincount(values.astype(np.intp, copy=False))
            return [least + number for number in np.flatnonzero(counts).tolist()]
    return _sorted(set(values.tolist()) if values.dtype.kind == "O" else set(np.unique(values).tolist()))


def _sorted(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


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


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)


# ---------------------------------------------------------------------------------------------------------
# Text by codes: a column that says few things often is a list of what it says, and a number for every row.
#
# Libraries of tables know such columns (categories, dictionaries), and make them of text faster than Python can.
# Groups, labels and predictions are read so: every value is looked at once, not once a row. Other columns, and
# objects that are not all text (1, 1.0 and True are one to most libraries), stay arrays.

#: Rows that are looked at together: they stay in the processor's cache.
CHUNK = 131_072

#: Fewer rows than this are as quick one by one.
FEW_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of text; wherever an array is asked for it is one of objects.

    Attributes
    ----------
    codes : array of shape (n,)
        Where in ``names`` the text of each row is; -1 where it is missing.
    names : tuple of str
        The texts; some may be of no row, or there twice.
    null : object
        What stands for a missing one.
    """

    codes: Array
    names: tuple[str, ...]
    null: Any = None

    #: What it is as an array.
    dtype = np.dtype(object)
    ndim = 1

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int]:
        """How many rows there are."""
        return (len(self.codes),)

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return replace(self, codes=codes) if np.ndim(codes) else self._table[codes]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = self._table[self.codes]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __eq__(self, other: object) -> Truths:  # type: ignore[override]  # row by row, as arrays do it
        return np.asarray(self.places([other]) == 0 if isinstance(other, str) else np.asarray(self) == other)

    __hash__ = None  # type: ignore[assignment]  # no more than an array has

    def astype(self, dtype: Any) -> Array:
        """The values as an array of this type."""
        return np.asarray(self).astype(dtype, copy=False)

    def tolist(self) -> list[Any]:
        """The values."""
        return list(map(self._table.tolist().__getitem__, self.codes.tolist()))

    @property
    def null_rows(self) -> Codes:
        """Where it is missing."""
        return np.flatnonzero(self.codes < 0)

    def used(self) -> set[Any]:
        """The values that some row has."""
        present = np.zeros(len(self.names) + 1, dtype=bool)
        for start in range(0, len(self), CHUNK):
            present |= np.bincount(self.codes[start : start + CHUNK] + np.intp(1), minlength=len(present)) > 0
        values = [self.null, *self.names]
        return {values[i] for i in np.flatnonzero(present).tolist()}

    def places(self, levels: Sequence[Any]) -> Codes:
        """Position of every value in ``levels``; -1 where it is not known."""
        index = {value: position for position, value in enumerate(levels)}
        place = np.array([*(index.get(name, -1) for name in self.names), -1], dtype=np.intp)
        positions = np.empty(len(self), dtype=np.intp)
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            place.take(self.codes[part], out=positions[part], mode="wrap")
        return positions

    @property
    def _table(self) -> Array:
        """The values by their codes; the last is that of -1."""
        table = np.empty(len(self.names) + 1, dtype=object)
        table[:-1], table[-1] = self.names, self.null
        return table


#: What a column holds: its values, or of text its codes.
Entries: TypeAlias = Array | Coded


def code_text(column: Any, least: int = FEW_ROWS) -> Coded | None:
    """A column of text by its codes; None for any other, and of fewer than ``least`` rows."""
    reader = READERS.get(library_of(column))
    if reader is None or getattr(column, "ndim", 1) != 1 or len(column) < least:
        return None
    return reader(column)


def _of_numpy(column: Any) -> Coded | None:
    """NumPy's own text, where it says few things; objects that are all text, by pandas if that is there anyway."""
    if not isinstance(column, np.ndarray) or not len(column):
        return None
    if column.dtype.kind == "U":
        return _of_letters(column)
    if column.dtype.kind != "O" or not isinstance(column[0], str):
        return None
    coded, pandas = _of_objects(column), sys.modules.get("pandas")
    if coded is not None or pandas is None:
        return coded
    try:
        if _ends_at_nul(column):
            return None
        codes, names = pandas.factorize(column)
    except TypeError:  # what cannot be told apart is no text, and is refused where it is looked at
        return None
    # What equals a text is one. Several things stand for a missing one, and are left as they are.
    return _of_names(codes, names.tolist(), None) if codes.min() >= 0 else None


def _ends_at_nul(column: Any) -> bool:
    """Whether pandas would take a text for what stands before a NUL in it, as it did before version 3."""
    if int(sys.modules["pandas"].__version__.split(".")[0]) >= 3:
        return False
    return any("\0" in text for text in column.tolist() if isinstance(text, str))


#: Texts of more letters, or of more different values, are told apart as NumPy does it.
LETTERS, TEXTS = 64, 1_000

#: The bits of a hash that say where to look.
BITS = 16

#: Rows whose letters are looked at together; the first ones mostly hold what the others do, and are sorted.
LETTERS_CHUNK, LETTERS_FIRST = 8_192, 128


def _of_letters(column: Array) -> Coded | None:
    """Text of a fixed number of letters; None where there are too many, or too many texts.

    All letters of a row are numbers beside each other, and what is left of them is filled with zeros, so equal texts
    are equal numbers.
    """
    letters = column.dtype.itemsize // 4
    if not 0 < letters <= LETTERS:
        return None
    width = (letters + 1) // 2
    padded = np.zeros((max(LETTERS_FIRST, LETTERS_CHUNK), 2 * width), dtype=np.uint32)

    def numbers(start: int, stop: int) -> NDArray[np.uint64]:
        part = np.ascontiguousarray(column[start:stop])
        if letters % 2 == 0:
            return part.view(np.uint64).reshape(len(part), width)
        padded[: len(part), :letters] = part.view(np.uint32).reshape(len(part), letters)
        return padded[: len(part)].view(np.uint64)

    found = _told_apart(numbers, len(column), width)
    return None if found is None else Coded(found[0], tuple(column[found[1]].tolist()))


def _of_objects(column: Array) -> Coded | None:
    """Objects that are all text, by which object it is, so that no text is read; None where too many are different."""
    if column.dtype.itemsize != 8 or not column.flags.c_contiguous:
        return None
    held = (ctypes.c_uint64 * len(column)).from_address(column.ctypes.data)
    addresses: NDArray[np.uint64] = np.ctypeslib.as_array(held)
    found = _told_apart(lambda start, stop: addresses[start:stop, None], len(column), 1)
    if found is None:
        return None
    texts = column[found[1]].tolist()
    if set(map(type, texts)) != {str}:
        return None
    place = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([place[text] for text in texts], dtype=np.int16)
    return Coded(codes.take(found[0]), tuple(place))


def _told_apart(
    numbers_of: Callable[[int, int], NDArray[np.uint64]], n: int, width: int
) -> tuple[Array, list[int]] | None:
    """Codes of rows that are each so many numbers, and a row of every code; None where two different ones have a hash.

    A hash says which one a row may be; that it is that one is looked up in all its numbers.
    """
    factors = _FACTORS[:width]
    by_hash = np.full(2**BITS, -1, dtype=np.int16)
    codes = np.empty(n, dtype=np.int16)
    rows: list[int] = []
    seen = np.empty((0, width), dtype=np.uint64)
    stops = [*range(LETTERS_FIRST, n, LETTERS_CHUNK), n]
    for start, stop in pairwise([0, *stops]):
        numbers = numbers_of(start, stop)
        place = _hashed(numbers, factors)
        code = by_hash.take(place)
        new = np.flatnonzero(code < 0)
        if len(new):
            places, firsts = np.unique(place[new], return_index=True)
            if len(rows) + len(places) > TEXTS:
                return None
            by_hash[places] = np.arange(len(rows), len(rows) + len(places))
            rows += (start + new[firsts]).tolist()
            seen = np.concatenate([seen, numbers[new[firsts]]])
            code = by_hash.take(place)
        if any((seen[:, j].take(code) != numbers[:, j]).any() for j in range(width)):
            return None
        codes[start:stop] = code
    return codes, rows


#: Odd numbers to multiply by, of many different bits.
_FACTORS = np.array(
    [(0x9E3779B97F4A7C15 * (2 * j + 1) ** 3 | 1) % 2**64 for j in range(LETTERS // 2)], dtype=np.uint64
)


def _hashed(numbers: NDArray[np.uint64], factors: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Some bits of a hash of every row of numbers."""
    mixed = numbers[:, 0] * factors[0]
    for j in range(1, numbers.shape[1]):
        mixed ^= mixed >> np.uint64(29)
        mixed += numbers[:, j] * factors[j]
    mixed ^= mixed >> np.uint64(32)
    mixed *= factors[0]
    return np.asarray((mixed >> np.uint64(64 - BITS)).astype(np.intp))


def _of_pandas(column: Any) -> Coded | None:
    dtype = getattr(column, "dtype", None)
    if hasattr(column, "cat"):
        names = column.cat.categories.tolist()
        return _of_names(column.cat.codes.to_numpy(), names, None)
    if not hasattr(column, "factorize") or dtype is None:
        return None
    if getattr(dtype, "kind", "") == "O" and isinstance(dtype, np.dtype):
        return _of_numpy(column.to_numpy())
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(column.array.__arrow_array__())
    if getattr(dtype, "name", "") not in ("str", "string"):
        return None
    if _ends_at_nul(column):
        return None
    codes, values = column.factorize()
    return _of_names(codes, values.tolist(), dtype.na_value)


def _of_polars(column: Any) -> Coded | None:
    import polars as pl

    if not isinstance(column, pl.Series) or column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return None
    distinct = column.unique().drop_nulls()
    if column.dtype == pl.String:
        distinct = distinct.sort()
        names, codes = distinct.to_list(), column.cast(pl.Enum(distinct)).to_physical()
    else:
        # The numbers of a category may be those of all columns of the process.
        numbers, codes = distinct.to_physical().to_list(), column.to_physical()
        names = [""] * (max(numbers, default=-1) + 1)
        for number, name in zip(numbers, distinct.cast(pl.String).to_list(), strict=True):
            names[number] = name
    codes = codes.cast(pl.Int64).fill_null(-1) if codes.null_count() else codes
    return Coded(codes.to_numpy(), tuple(names))


def _of_arrow(column: Any) -> Coded | None:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray | pa.Array):
        return None
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    coded = pa.types.is_dictionary(chunked.type)
    kind = chunked.type.value_type if coded else chunked.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    # Two chunks may have two dictionaries.
    chunks = (chunked if coded else chunked.dictionary_encode()).unify_dictionaries().chunks
    if not chunks or any(chunk.dictionary.null_count for chunk in chunks):
        return None
    indices = [chunk.indices for chunk in chunks]
    parts = [np.asarray(part.cast(pa.int64()).fill_null(-1) if part.null_count else part) for part in indices]
    names = tuple(chunks[0].dictionary.to_pylist())
    return Coded(parts[0] if len(parts) == 1 else np.concatenate(parts), names)


def _of_names(codes: Array, names: list[Any], null: Any) -> Coded | None:
    return Coded(codes, tuple(names), null) if all(type(name) is str for name in names) else None


#: How a column of each library becomes codes.
READERS: dict[str, Callable[[Any], Coded | None]] = {
    "numpy": _of_numpy,
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


# ---------------------------------------------------------------------------------------------------------
# A person as somebody has it at hand, as a table of one row


def one_row(row: Table) -> Table:
    """A table of one row: of one already, of a row of pandas, of a dict of values, or of an array of features.

    A table keeps its types. Of a row by itself every value has the type that it has there: pandas makes floats of whole
    numbers that stand beside others.
    """
    if is_mapping(row) or isinstance(row, Mapping):
        if all(np.ndim(value) == 0 or isinstance(value, str) for value in row.values()):
            return table_maker("auto")({name: as_objects([value]) for name, value in row.items()})
    elif getattr(row, "ndim", None) == 1 and hasattr(row, "index") and hasattr(row, "to_frame"):
        return row.to_frame().T.infer_objects()
    elif not is_frame(row) and not hasattr(row, "tocsr"):  # a sparse matrix has rows already
        row = np.asarray(row)
        row = row[None, :] if row.ndim == 1 else row
    refuse_several(count_rows(row) if getattr(row, "ndim", 2) else 0)
    return row


def unwidened(row: Table, keys: Array) -> Array:
    """Keys that were whole before pandas made floats of them, in a row of nothing but numbers: no key is a float."""
    exact = keys.dtype.kind == "f" and not is_frame(row) and bool((np.abs(keys) < 2.0**53).all())
    return keys.astype(np.int64) if exact and (keys == np.floor(keys)).all() else keys


def refuse_several(n: int, what: str = "rows") -> None:
    """Insist on one person."""
    if n != 1:
        raise DataError(
            f"An explanation is of one person, and there are {n:,} {what}.",
            "Pass one row, X.iloc[[17]] or X[17:18] for instance, and call it once for each person.",
        )
