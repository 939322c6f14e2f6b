"""In-memory tables as the rest of the library sees them: count rows, slice rows, take columns.

A table is a dataframe that narwhals can read eagerly (pandas, Polars, PyArrow, ...), a mapping of names to
arrays, or an array. Nothing here imports a dataframe library: narwhals recognises the ones already imported.
"""

from __future__ import annotations

import difflib
import importlib
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice, repeat
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from felicific._tables.codes import Coded, Entries, code_text
from felicific._typing import Codes
from felicific.exceptions import DataError

Table: TypeAlias = Any
Array: TypeAlias = NDArray[Any]
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


def _eager(table: Table) -> Any:
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


def is_quick(table: Table) -> bool:
    """Whether this is a dataframe of pandas or Polars, whose own attributes do; to wrap it would take its time."""
    library = type(table).__module__.split(".")[0]
    if library == "pandas":  # which alone allows two columns of one name; those are refused elsewhere
        return type(table).__name__ == "DataFrame" and bool(table.columns.is_unique)
    return library == "polars" and type(table).__name__ == "DataFrame"


def is_arrow(table: Table) -> bool:
    """Whether this is a PyArrow table."""
    return type(table).__module__.split(".")[0] == "pyarrow" and hasattr(table, "to_pandas")


class ArrayRows:
    """Rows of a dataframe whose columns are arrays, so that one can calculate with them."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return column_names(self._table)

    def __len__(self) -> int:
        return count_rows(self._table)

    def __getitem__(self, name: Any) -> Array:
        return take_column(self._table, name, "x")


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
        return int((table if is_quick(table) else _eager(table)).shape[0])
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
        return table.iloc[start:stop] if hasattr(table, "iloc") else _eager(table)[start:stop].to_native()
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
        column = np.asarray(take_entries(table, name, purpose))
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
    frame = _eager(table)
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
        frame = _eager(rows)
        return frame.with_columns(frame.get_column(name).cast(dtype) for name, dtype in columns).to_native()

    return widen


def largest_whole(tables: Mapping[str, Table]) -> dict[str, int]:
    """The largest size of a 64-bit whole number in each of some tables or arrays; 0 where there is none.

    Unsigned ones count as large whatever they hold: the negative of 3 wraps around already.
    """
    return {name: max(_whole_extremes(table), default=0) for name, table in tables.items()}


def _whole_extremes(table: Table) -> list[int]:
    """The largest in every column; an array is one column."""
    if not is_frame(table):
        return _extremes(table)
    if is_mapping(table):
        return [largest for column in table.values() for largest in _extremes(column)]
    frame = _eager(table)
    chosen = [frame.get_column(name) for name in _whole_names(frame)]
    return [
        UNSIGNED if column.dtype.is_unsigned_integer() else max(-int(column.min()), int(column.max()))
        for column in chosen
        if column.count()
    ]


#: What unsigned whole numbers count as.
UNSIGNED = 2**63


def _extremes(column: Any) -> list[int]:
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu" or not column.size:
        return []
    return [UNSIGNED if column.dtype.kind == "u" else max(-int(column.min()), int(column.max()))]


def cast_whole(table: Table) -> Table:
    """The same rows, or the same array, with floats for 64-bit whole numbers."""
    if isinstance(table, np.ndarray):
        return table.astype(np.float64) if table.dtype.kind in "iu" else table
    if is_mapping(table):
        return on_columns(table, cast_whole)
    if is_arrow(table):  # which refuses to round
        return {name: cast_whole(take_column(table, name, "x")) for name in column_names(table)}
    if hasattr(table, "iloc"):  # so do pandas' columns of Arrow
        changed = table.copy(deep=False)
        for name in _whole_names(_eager(table)):
            column = take_column(table, name, "x")
            plain = [math.nan if is_null(value) else value for value in column.tolist()]
            changed[name] = np.array(plain, dtype=np.float64)
        return changed
    import narwhals as nw

    frame = _eager(table)
    whole = [frame.get_column(name) for name in _whole_names(frame)]
    return frame.with_columns(
        nw.from_native(column.to_native().astype(np.float64), series_only=True)
        if _is_arrow_column(column.to_native())  # PyArrow refuses to round in a column of pandas, too
        else column.cast(nw.Float64)
        for column in whole
    ).to_native()


def _is_arrow_column(column: Any) -> bool:
    """Whether this is a column of pandas that PyArrow holds."""
    return hasattr(getattr(column, "dtype", None), "pyarrow_dtype")


def _whole_names(frame: Any) -> list[str]:
    import narwhals as nw

    return [name for name, dtype in frame.schema.items() if dtype in (nw.Int64, nw.UInt64)]


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
        return table.iloc[positions] if hasattr(table, "iloc") else _eager(table)[positions].to_native()
    return table[positions]


def column_names(table: Table) -> list[Any]:
    """Names of the columns; for an array, their positions."""
    if is_mapping(table):
        return list(table)
    if is_frame(table):
        return list(table.columns if is_quick(table) else _eager(table).columns)
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
    return bool(_eager(table).get_column(name).dtype.is_numeric())


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

    column = _eager(table).get_column(name)
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
        return as_vector(_exact_values(_eager(table).get_column(name)), purpose)
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
        column = table[name] if quick else _eager(table).get_column(name).to_native()
        coded = column if isinstance(column, Coded) else code_text(column)
        if coded is not None:
            return coded
    return take_column(table, name, purpose)


def missing_rows(table: Table, name: Hashable, purpose: str) -> Codes:
    """Rows in which a column is missing."""
    return null_rows(take_entries(table, name, purpose))


def all_columns(table: Table, purpose: str) -> list[tuple[Any, Array]]:
    """Every column of a table with names, as :func:`take_column` takes it."""
    return list(zip(column_names(table), take_columns(table, column_names(table), purpose), strict=True))


def take_columns(table: Table, names: Sequence[Hashable], purpose: str) -> list[Array]:
    """Some columns, as :func:`take_column` takes each."""
    check_columns(table, names, purpose)
    return [_taken(table, name, purpose) for name in names]


def _exact_values(series: Any) -> Array:
    """A column as an array, as exactly as NumPy can."""
    import narwhals as nw

    if series.dtype in (nw.Categorical, nw.Enum) and series.null_count():
        # PyArrow would give another value for a missing one.
        return np.array([*series.cast(nw.String).to_list(), None], dtype=object)[:-1]
    whole = series.dtype in (nw.Int64, nw.UInt64) and 0 < series.null_count() < len(series)
    # Of whole numbers where one is missing NumPy would make floats, and lose their digits.
    if whole and max(-int(series.min()), int(series.max())) > EXACT:
        return np.array([*(None if is_null(one) else one for one in series.to_list()), None], dtype=object)[
            :-1
        ]
    return np.asarray(series.to_numpy())


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
        return table[list(names)] if hasattr(table, "iloc") else _eager(table).select(list(names)).to_native()
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

    frame = _eager(table)
    plain = values.tolist()
    large = all(isinstance(value, int) for value in plain) and max(plain, default=0) >= 2**63
    series = nw.new_series(name, plain, nw.UInt64 if large else None, backend=frame.implementation)
    return frame.with_columns(series).to_native()


def as_objects(values: Sequence[Any]) -> Array:
    """Python values as an array: of their own type when they share one, else of objects."""
    if len({type(value) for value in values}) == 1 and not isinstance(values[0], str):
        return exact_array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def exact_array(values: Any) -> Array:
    """As NumPy makes an array of it; but whole numbers too large for one type, of which it makes floats, stay whole."""
    array = np.asarray(_without_dictionary(values))
    rounded = array.dtype.kind == "f" and isinstance(values, list | tuple) and array.ndim == 1
    if rounded and all(isinstance(value, int | np.integer) for value in values):
        return np.array([*map(int, values), None], dtype=object)[:-1]
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
        array = array if strings else np.array([*values, None], dtype=object)[:-1]
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


def _plain_objects(values: Array) -> Array:
    """Decimal numbers as floats, or whole ones that floats do not tell apart; times of a zone as those of UTC."""
    if _holds_decimals(values):
        present = [value for value in values.tolist() if not is_null(value)]
        if any(abs(value) > EXACT for value in present) and all(value == int(value) for value in present):
            return np.array([*(None if is_null(v) else int(v) for v in values.tolist()), None], dtype=object)[
                :-1
            ]
        return np.array([math.nan if is_null(value) else float(value) for value in values.tolist()])
    if isinstance(_first_value(values), datetime):
        # As libraries do whose columns are arrays: NumPy knows no zones.
        plain = [None if is_null(value) else in_utc(value) for value in values.tolist()]
        return np.array([*plain, None], dtype=object)[:-1]
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
