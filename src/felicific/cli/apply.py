"""``felicific apply``: a policy's decisions about the people of a file."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from felicific.cli.options import MEASURED, OUTPUT, Answer, Decided, Join, Loss, Scored, SignedFile
from felicific.cli.steered import CONTROL, Steer, SteeredPeople, check_alone

if TYPE_CHECKING:
    from felicific._people.roles import Columns
    from felicific._policy.amounts import AmountPolicy
    from felicific._typing import Array, Table
    from felicific.cli.people import People

#: Rows that are decided on at a time.
BATCH = 65_536


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Scored, Decided, Steer, Answer):
    """What ``felicific apply`` is told."""

    join: Join = None
    happiness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HAPPINESS",
            help="module.py:function of an individual policy that was fitted with one; with --steer, what a policy of "
            "cells was fitted with.",
            rich_help_panel=MEASURED,
        ),
    ] = None
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
    """Decide on the people of a file; all columns are kept, the decision is added, and its probabilities if wanted.

    Example: felicific apply policy.json next-month.csv --score score --group sex --key id --out decided.csv
    """
    from felicific._people.roles import Columns
    from felicific._policy.apply import proba_columns
    from felicific._policy.signed import Signed
    from felicific.cli.amounts import amounts_of
    from felicific.cli.outputs import check_target, print_json, printable
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    out, column = options.out, options.column
    check_alone(options)
    check_target(out, [".csv", ".parquet"], force=options.force)
    named = Columns(options.group, predicted=options.predicted, key=options.key)
    amounts = amounts_of(options.policy, named)
    if amounts is not None:
        _give(*amounts, options)
        return
    signed = None if options.signed is None else Signed.read(options.signed)
    people = People.find(options, every_column=True, as_written=out.suffix.lower() == ".csv")
    if signed is not None and people.policy is not None:
        signed.check(people.policy)
    if column in people.source.columns:
        raise DataError(f"The file has a column {column!r} already.", "Name the new one with --column.")
    probabilities = proba_columns(people.policy) if options.with_proba and people.policy is not None else {}
    for name in probabilities:
        if name in (*people.source.columns, column):
            raise DataError(
                f"The file has a column {name!r} already.", "Rename it, or leave --with-proba out."
            )
    if options.steer is not None and CONTROL in (*people.source.columns, column):
        raise DataError(f"The file has a column {CONTROL!r} already.", "Rename it: that of controls has it.")
    steered = None if options.steer is None else SteeredPeople(people, options)
    counts = _decide(people, out, column, _Drawn(people, probabilities) if steered is None else steered)
    total = sum(counts.values())
    if options.as_json:
        told = {"rows": total, "decisions": [[k, n] for k, n in counts.items()], "written": str(out)}
        told["signed"] = None if signed is None else signed.to_dict()
        print_json(told if steered is None else told | {"steered": steered.told()})
        return
    for choice, count in counts.items():
        print(f"{choice!r}: {count:,} of {total:,} people ({count / total:.1%}).")
    if signed is not None:
        print(printable(signed.words))
    if steered is not None:
        print("\n".join(printable(line) for line in str(steered.steering).splitlines()))
        print(f"The state of the steering is written to {steered.path}.")
    print(f"Written to {out}.")


def _give(policy: AmountPolicy, named: Columns, options: ApplyOptions) -> None:
    """Write all rows with their amounts, a batch at a time."""
    import numpy as np
    import pyarrow as pa

    from felicific._files import whole_file
    from felicific.cli.amounts import open_people, refuse_classes
    from felicific.cli.outputs import print_json
    from felicific.exceptions import DataError

    refuse_classes(options)
    out, column = options.out, options.column
    source = open_people(options.file, options.table, policy, named)
    if column in source.columns:
        raise DataError(f"The file has a column {column!r} already.", "Name the new one with --column.")
    total = source.relation.count("*").fetchall()[0][0]
    roles = {"predicted": named.predicted, "sensitive_features": named.group, "key": named.key}
    given = []
    with whole_file(out) as path, _bar(total) as advance, contextlib.ExitStack() as stack:
        write = None
        for batch in source.relation.to_arrow_reader(BATCH):
            decided = policy.apply(pa.Table.from_batches([batch]), **roles, column=column)
            if write is None:
                write = stack.enter_context(_writer(path, out.suffix.lower(), decided.schema))
            write.write_table(decided)
            given.append(decided.column(column).to_numpy())
            advance(len(given[-1]))
        if write is None:
            raise DataError(f"{source.path!r} has no rows.", "Pass a file with at least one.")
    amounts = np.concatenate(given)
    facts = {"mean": float(amounts.mean()), "least": float(amounts.min()), "most": float(amounts.max())}
    if options.as_json:
        print_json({"rows": len(amounts), **facts, "written": str(out)})
        return
    between = f"from {facts['least']:,.6g} to {facts['most']:,.6g}"
    print(f"{len(amounts):,} people get {facts['mean']:,.6g} on average, {between}.")
    print(f"Written to {out}.")


class _Drawn:
    """Decisions of a policy that stays as it is: drawn with its probabilities.

    Which stand beside them where that is wanted.
    """

    def __init__(self, people: People, probabilities: dict[str, int]) -> None:
        self.people, self.probabilities = people, probabilities

    @contextlib.contextmanager
    def kept(self) -> Iterator[Callable[[], None]]:
        """Nothing has to be remembered."""
        yield lambda: None

    def decide(self, rows: Table, seen: Table) -> tuple[Array, dict[str, list[float | None]]]:
        """Decisions about some rows, and the columns of probabilities."""
        from felicific._policy.lottery import check_keys, content_keys, draw, keys_as_text, warn_keyless
        from felicific._tables.memory import take_column

        people, policy = self.people, self.people.policy
        assert policy is not None, "its file was named"
        keys = None if people.key is None else check_keys(take_column(rows, people.key, "--key"))

        def texts(positions: Any) -> list[str]:
            if keys is not None:
                return keys_as_text(keys[positions])
            warn_keyless(stacklevel=1)  # which is shown once
            return content_keys(seen, positions)

        chances = people.chances(seen)
        decisions = policy.decisions[draw(chances, texts, policy.salt)]
        return decisions, {
            name: chances[:, position].tolist() for name, position in self.probabilities.items()
        }


def _decide(people: People, out: Path, column: str, decider: _Drawn | SteeredPeople) -> dict[Any, int]:
    """Write all rows with their decisions and what stands beside, a batch at a time; how often each was taken."""
    import pyarrow as pa

    from felicific._files import whole_file

    assert people.policy is not None, "its file was named"
    counts = dict.fromkeys(people.policy.decisions.tolist(), 0)
    total = people.source.relation.count("*").fetchall()[0][0]
    reader = people.source.relation.to_arrow_reader(BATCH)
    with (
        decider.kept() as finish,
        whole_file(out) as path,
        _bar(total) as advance,
        contextlib.ExitStack() as stack,
    ):
        write = None
        for batch in reader:
            rows = pa.Table.from_batches([batch])
            found, beside = decider.decide(rows, rows.to_pandas() if people.pandas else rows)
            decisions = found.tolist()
            for choice in counts:
                counts[choice] += decisions.count(choice)
            decided = rows.select(people.original).append_column(column, pa.array(decisions))
            for name, numbers in beside.items():
                decided = decided.append_column(name, pa.array(numbers, pa.float64()))
            if write is None:
                write = stack.enter_context(_writer(path, out.suffix.lower(), decided.schema))
            write.write_table(decided)
            advance(len(decisions))
        if write is None:
            from felicific.exceptions import DataError

            raise DataError(f"{people.source.path!r} has no rows.", "Pass a file with at least one.")
        finish()
    return counts


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
