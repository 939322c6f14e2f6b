"""Parquet files that are one table: their types are compared before a row is read, and widened where nothing is lost.

Engines read every file with the types of the first one, so that 0.7 becomes 1 where that one held whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from felicific._tables.memory import EXACT
from felicific.exceptions import DataError, EngineError

#: A type as libraries of tables write it ("int64", "UInt8", "decimal128(10, 2)"), by the name of a column.
Schema = Mapping[str, str]

#: Other names of types of numbers.
_ALIASES = {"halffloat": "float16", "float": "float32", "double": "float64"}
_TEXT = re.compile(
    r"(large_)?string(_view)?|dictionary<values=(large_)?string.*|categorical.*|enum.*|str|utf8"
)
_WHOLE, _DECIMAL = re.compile(r"(u?)int(\d+)"), re.compile(r"decimal\D*\d*\D+(\d+)\D+(\d+)\)")


def common_types(schemas: Mapping[str, Schema], largest: Callable[[str, str], int | None]) -> dict[str, str]:
    """Types that hold what all files hold, of the columns whose types differ: "int64", "float64", "text", ...

    Parameters
    ----------
    schemas : mapping of file to its types
        The first file says which columns there are.
    largest : callable
        Given a file and a column of whole numbers, the largest size of these; None if it is not known.
    """
    first, *others = schemas
    common: dict[str, str] = {}
    for name, written in schemas[first].items():
        types = {first: written} | {file: _type_in(schemas, file, name) for file in others}
        if len(set(types.values())) == 1:
            continue
        kinds = {file: _plain(written) for file, written in types.items()}
        kind = kinds[first]
        for file in others:
            wider = widened(kind, kinds[file])
            if wider is None:
                raise _different(name, first, kind, file, kinds[file])
            kind = wider
        common[name] = kind
        for file in kinds if kind.startswith("float") else ():
            if _WHOLE.fullmatch(kinds[file]) and int(kinds[file].strip("uint")) > 32:
                size = largest(file, name)
                if size is None or size > EXACT:
                    float_file = next(other for other in kinds if kinds[other].startswith("float"))
                    raise _different(name, float_file, kinds[float_file], file, kinds[file])
    return common


def _type_in(schemas: Mapping[str, Schema], file: str, name: str) -> str:
    if name not in schemas[file]:
        raise EngineError(
            f"{file!r} has no column {name!r}, which {next(iter(schemas))!r} has.",
            "Write every file with the same columns.",
        )
    return schemas[file][name]


def _different(name: str, first: str, kind: str, file: str, other: str) -> DataError:
    return DataError(
        f"The column {name!r} is {kind} in {first!r} and {other} in {file!r}: no type holds both without loss.",
        "Write all files with the same types, or read them yourself and say what you mean.",
    )


def _plain(written: str) -> str:
    """A type by one name, whatever the library calls it."""
    name = written.lower()
    return "text" if _TEXT.fullmatch(name) else _ALIASES.get(name, name)


def widened(left: str, right: str) -> str | None:
    """The type that holds all values of two, exactly; None if there is none. Whole numbers are looked at later."""
    if left == right or right == "null":
        return left
    if left == "null":
        return right
    one, other = _WHOLE.fullmatch(left), _WHOLE.fullmatch(right)
    if one and other:
        return _wider_whole(one, other)
    if left.startswith("float") and right.startswith("float"):
        return max(left, right)
    if (one or left.startswith("float")) and (other or right.startswith("float")):
        return "float64"
    one, other = _DECIMAL.search(left), _DECIMAL.search(right)
    if one and other:
        scale = max(int(one[2]), int(other[2]))
        digits = scale + max(int(match[1]) - int(match[2]) for match in (one, other))
        return f"decimal128({digits}, {scale})" if digits <= 38 else None
    return None


def _wider_whole(one: re.Match[str], other: re.Match[str]) -> str | None:
    if one[1] == other[1]:
        return f"{one[1]}int{max(int(one[2]), int(other[2]))}"
    signed, unsigned = (int(m[2]) for m in sorted((one, other), key=lambda match: match[1]))
    bits = max(signed, 2 * unsigned)
    return f"int{bits}" if bits <= 64 else None


def stretches(schemas: Mapping[str, Schema], names: Sequence[str]) -> list[list[str]]:
    """Files one after the other that have the same types of these columns."""
    return [
        list(files) for _, files in groupby(schemas, key=lambda file: [schemas[file][name] for name in names])
    ]


def holder(schemas: Mapping[str, Schema], name: str, kind: str) -> str:
    """A file whose column is of the type itself: there is one where others are all missing."""
    return next(file for file in schemas if _plain(schemas[file][name]) == kind)


def digits_of(kind: str) -> tuple[int, int] | None:
    """Digits of a decimal type, and those behind the point; None for any other."""
    match = _DECIMAL.search(kind)
    return None if match is None else (int(match[1]), int(match[2]))


def arrow_schemas(files: Sequence[str]) -> dict[str, dict[str, str]]:
    """The types of every file, by PyArrow."""
    from pyarrow import parquet

    schemas = {}
    for file in files:
        try:
            schemas[file] = {field.name: str(field.type) for field in parquet.read_schema(file)}
        except ValueError as error:  # PyArrow's errors of files that are none
            raise EngineError(
                f"{file} cannot be read as Parquet: {error}", "Is it cut? Write it again."
            ) from error
    return schemas


def refuse_casts(dataset: Any) -> None:
    """Refuse a dataset that reads some file as another type, where that loses something: text as numbers, say."""
    wanted = {field.name: str(field.type) for field in dataset.schema}
    for fragment in dataset.get_fragments():
        for field in fragment.physical_schema:
            stored, kind = _plain(str(field.type)), _plain(wanted.get(field.name, str(field.type)))
            # PyArrow itself refuses to round.
            if widened(stored, kind) != kind:
                where = str(getattr(fragment, "path", "a fragment"))
                raise _different(field.name, "the dataset", kind, where, stored)


def arrow_largest(file: str, name: str) -> int | None:
    """The largest size of a column of whole numbers, as the file itself says it; None if it does not."""
    from pyarrow import parquet

    described = parquet.ParquetFile(file).metadata
    place = described.schema.names.index(name)
    sizes = [0]
    for i in range(described.num_row_groups):
        stats: Any = described.row_group(i).column(place).statistics
        if stats is None or not (stats.has_min_max or stats.null_count == described.row_group(i).num_rows):
            return None
        sizes += [abs(stats.min), abs(stats.max)] if stats.has_min_max else []
    return max(sizes)
