"""``felicific apply``: a policy's decisions about the people of a file."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from felicific.cli.options import OUTPUT, Answer, Decided, Join, Loss, PolicyFunction, Scored, SignedFile

#: Rows that are decided about at a time.
BATCH = 65_536


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Scored, Decided, Answer):
    """What ``felicific apply`` is told."""

    join: Join = None
    happiness: PolicyFunction = None
    loss: Loss = "error"
    signed: SignedFile = None
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Where the people are written with their decisions: .csv or .parquet.",
            rich_help_panel=OUTPUT,
        ),
    ]


def apply(options: ApplyOptions) -> None:
    """Decide about the people of a file; all columns are kept, the decision is added, and its odds if wanted.

    Example: felicific apply policy.json next-month.csv --proba score --group sex --key id --out decided.csv
    """
    from felicific._policy.apply import odds_columns
    from felicific._policy.signed import Signed
    from felicific.cli.outputs import check_target, print_json, printable
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    out, column = options.out, options.column
    check_target(out, [".csv", ".parquet"], force=options.force)
    signed = None if options.signed is None else Signed.read(options.signed)
    people = People.find(options, every_column=True, as_written=out.suffix.lower() == ".csv")
    if signed is not None and people.policy is not None:
        signed.check(people.policy)
    if column in people.source.columns:
        raise DataError(f"The file has a column {column!r} already.", "Name the new one with --column.")
    odds = odds_columns(people.policy) if options.with_odds and people.policy is not None else {}
    for name in odds:
        if name in (*people.source.columns, column):
            raise DataError(f"The file has a column {name!r} already.", "Rename it, or leave --odds out.")
    counts = _decide(people, out, column, odds)
    total = sum(counts.values())
    if options.as_json:
        told = {"rows": total, "decisions": [[k, n] for k, n in counts.items()], "written": str(out)}
        print_json(told | {"signed": None if signed is None else signed.to_dict()})
        return
    for choice, count in counts.items():
        print(f"{choice!r}: {count:,} of {total:,} people ({count / total:.1%}).")
    if signed is not None:
        print(printable(signed.words))
    print(f"Written to {out}.")


def _decide(people: Any, out: Path, column: str, odds: dict[str, int]) -> dict[Any, int]:
    """Write all rows with their decisions and odds, a batch at a time; return how often each was taken."""
    import numpy as np
    import pyarrow as pa

    from felicific._files import whole_file
    from felicific._policy.lottery import check_keys, content_keys, draw, keys_as_text, warn_keyless
    from felicific._tables.memory import take_column

    classes = people.policy.classes
    counts = np.zeros(len(classes), dtype=int)
    total = people.source.relation.count("*").fetchall()[0][0]
    reader = people.source.relation.to_arrow_reader(BATCH)
    with whole_file(out) as path, _bar(total) as advance, contextlib.ExitStack() as stack:
        write = None
        for batch in reader:
            rows = pa.Table.from_batches([batch])
            seen = rows.to_pandas() if people.pandas else rows
            keys = None if people.key is None else check_keys(take_column(rows, people.key, "--key"))

            def texts(positions: Any, seen: Any = seen, keys: Any = keys) -> list[str]:
                if keys is not None:
                    return keys_as_text(keys[positions])
                warn_keyless(stacklevel=1)  # which is shown once
                return content_keys(seen, positions)

            chances = people.chances(seen)
            codes = draw(chances, texts, people.policy.salt)
            counts += np.bincount(codes, minlength=len(classes))
            decided = rows.select(people.original).append_column(column, pa.array(classes[codes].tolist()))
            for name, position in odds.items():
                decided = decided.append_column(name, pa.array(chances[:, position].tolist(), pa.float64()))
            if write is None:
                write = stack.enter_context(_writer(path, out.suffix.lower(), decided.schema))
            write.write_table(decided)
            advance(len(codes))
        if write is None:
            from felicific.exceptions import DataError

            raise DataError(f"{people.source.path!r} has no rows.", "Pass a file with at least one.")
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def _writer(path: Path, kind: str, schema: Any) -> Any:
    if kind == ".csv":
        return _CsvWriter(path, schema)
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema)


class _CsvWriter:
    """Writes tables to one CSV file; a table is quoted only if it must be."""

    def __init__(self, path: Path, schema: Any) -> None:
        import csv

        self._stream = path.open("wb")
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(schema.names)
        self._stream.write(header.getvalue().encode("utf-8"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def write_table(self, table: Any) -> None:
        """Append the rows of a table."""
        import pyarrow as pa
        from pyarrow import csv

        for style in ("none", "needed"):
            buffer = io.BytesIO()
            try:
                csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style=style))
            except pa.ArrowInvalid:
                continue  # a text holds a comma, a quote or the end of a line
            self._stream.write(buffer.getvalue())
            return


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Any]:
    """A progress bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Deciding ...", total=total)
        yield lambda rows: progress.advance(task, rows)
