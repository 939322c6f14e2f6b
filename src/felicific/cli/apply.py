"""``felicific apply``: a policy's decisions about the people of a file."""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from felicific.cli.options import (
    Answer,
    Decided,
    Gap,
    Join,
    Loss,
    Name,
    Scored,
    SignedFile,
    asked_option,
    measure_option,
    output_option,
)

if TYPE_CHECKING:
    from felicific import Policy
    from felicific._people.roles import Roles
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.steering import Steering
    from felicific._typing import Array, Table
    from felicific.cli.people import People


# ---------------------------------------------------------------------------------------------------------
# ``felicific apply --steer``: a policy whose controls move, and the file that remembers where they are.


#: What the column of controls is called.
CONTROL = "control"


@dataclass(frozen=True, kw_only=True)
class Steer:
    """How a policy is steered."""

    steer: Annotated[
        Path | None,
        output_option(
            "FILE",
            "Close the gap while deciding, and remember in this .json file how far that is: it is begun if it is "
            "not there, else continued. Needs --key and, of a policy of score bins, --happiness and --name as before.",
        ),
    ] = None
    name: Name = None
    gap: Gap = None
    pace: Annotated[
        float | None,
        asked_option(
            "NUMBER",
            "With --steer: people until an error that stays has shrunk to a third. Default: as many as bring 300 "
            "of the smallest group.",
        ),
    ] = None
    reach: Annotated[
        float | None,
        asked_option(
            "NUMBER",
            "With --steer: the share of a group that may get another decision than by the policy alone; 0.25.",
        ),
    ] = None


def check_alone(options: ApplyOptions) -> None:
    """Refuse what only goes with --steer, or not with it."""
    from felicific.exceptions import DataError

    if options.steer is None:
        given = [name for name in ("name", "gap", "pace", "reach") if getattr(options, name) is not None]
        if given:
            raise DataError(
                f"--{given[0]} belongs to a steered policy.", "Add --steer FILE, or leave it out."
            )
        return
    if options.key is None:
        raise DataError(
            "A steered policy has to know whom it decided on.",
            "Name the column that identifies people: --key COLUMN.",
        )
    if options.with_proba:
        raise DataError(
            "The probabilities of a steered policy move with every person.", "Leave --with-proba out."
        )
    if options.signed is not None:
        raise DataError(
            "--signed is for a policy that decides as it was signed, and --steer moves it.",
            "Leave one of them out.",
        )


class SteeredPeople:
    """The people of a file, and the steering that decides on them."""

    def __init__(self, people: People, options: ApplyOptions) -> None:
        assert options.steer is not None, "it is steered"
        assert options.key is not None, "which was checked"
        self.people, self.path, self.key = people, options.steer, options.key
        self.began = _content(self.path)
        self.steering = _begun(people, options) if self.began is None else _continued(people, options)
        self.digest = digest_of_keys(people, self.key)
        self.steering.refuse_again(self.digest)

    def decide(self, rows: Table, seen: Table) -> tuple[Array, dict[str, list[float | None]]]:
        """Decisions about some rows, and the controls by which they were taken."""
        from felicific._policy.lottery import check_keys
        from felicific._tables.memory import take_column

        keys = check_keys(take_column(rows, self.key, "--key"))
        scores, group, _ = self.people.sight(seen)
        assert group is not None, "a policy that does not see the group is not steered"
        found = self.steering.decided(scores, group, keys, seen)
        controls = [None if control != control else control for control in found.controls.tolist()]
        return found.decisions, {CONTROL: controls}

    @contextlib.contextmanager
    def kept(self) -> Iterator[Callable[[], None]]:
        """What writes the state when all is decided; it takes its name after whatever is written inside has its own."""
        from felicific._files import whole_file
        from felicific.exceptions import DataError

        with whole_file(self.path) as path:

            def finish() -> None:
                self.steering.remember(self.digest)
                path.write_text(self.steering.to_json(), "utf-8")
                if _content(self.path) != self.began:
                    raise DataError(
                        f"Somebody else continued {str(self.path)!r} meanwhile.",
                        "Decide again: its state is another one now. Servers side by side have a file each.",
                    )

            yield finish

    def told(self) -> dict[str, Any]:
        """What there is to say, as data."""
        steering = self.steering
        return {
            "aim": steering.aim,
            "gap": _number(steering.gap),
            "bound": steering.bound,
            "limited": steering.limited,
            "groups": [
                {
                    "group": group,
                    "people": steering.people[group],
                    "mean": _number(steering.means[group]),
                    "control": control.now,
                    "fitted": control.fitted,
                    "threshold": control.threshold,
                }
                for group, control in steering.controls.items()
            ],
            "written": str(self.path),
        }


def _number(number: float) -> float | None:
    return None if number != number else number


def _content(path: Path) -> bytes | None:
    """What stands in a file; None if it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _policy(people: People) -> Policy:
    """The policy that is steered."""
    assert people.policy is not None, "its file was named"
    return people.policy


def _function(people: People) -> Any:
    """The happiness that is steered; an individual policy holds its own."""
    return None if _policy(people).sees_x else people.happiness or None


def _begun(people: People, options: ApplyOptions) -> Steering:
    """A new steering."""
    from felicific.cli.inputs import read_gap
    from felicific.cli.outputs import check_target

    check_target(options.steer, [".json"], force=False)
    reach = {} if options.reach is None else {"reach": options.reach}
    return _policy(people).steer(_function(people), read_gap(options.gap), options.pace, **reach)


def _continued(people: People, options: ApplyOptions) -> Steering:
    """The steering of a file, which was begun as the options say."""
    from felicific._policy.aims import find_aim
    from felicific.cli.documents import read_state
    from felicific.cli.inputs import read_gap
    from felicific.exceptions import DataError

    policy = _policy(people)
    assert options.steer is not None, "it is continued"
    found = read_state(options.steer, policy=policy, happiness=_function(people))
    said: dict[str, tuple[Any, Any]] = {
        "pace": (options.pace, found.pace),
        "reach": (options.reach, found.reach),
    }
    if options.gap is not None:
        j, aim = find_aim(policy, read_gap(options.gap))
        said["gap"] = (aim.words(policy.measures[j]), found.aim)
    for name, (asked, held) in said.items():
        if asked is not None and asked != held:
            told = f"{held:g}" if isinstance(held, float) else held
            raise DataError(
                f"--{name} is another one than {str(options.steer)!r} was begun with: {told}.",
                f"Leave --{name} out, or begin another file.",
            )
    return found


def digest_of_keys(people: People, key: str) -> str:
    """A digest of all keys of a file, whatever their order."""
    import pyarrow as pa

    from felicific._policy.lottery import check_keys, keys_as_text
    from felicific._tables.memory import take_column

    total, rows = 0, 0
    for batch in people.source.select([key]).relation.to_arrow_reader(65_536):
        keys = check_keys(take_column(pa.Table.from_batches([batch]), key, "--key"))
        for text in keys_as_text(keys):
            total += int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
        rows += len(keys)
    return hashlib.sha256(f"{rows}:{total % 2**256}".encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------


#: Rows that are decided on at a time.
BATCH = 65_536


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Scored, Decided, Steer, Answer):
    """What ``felicific apply`` is told."""

    join: Join = None
    happiness: Annotated[
        list[str] | None,
        measure_option(
            "HAPPINESS",
            "module.py:function of an individual policy that was fitted with one; with --steer, what a policy of "
            "cells was fitted with.",
        ),
    ] = None
    loss: Loss = "error"
    signed: SignedFile = None
    out: Annotated[
        Path, output_option("FILE", "Where the people are written with their decisions: .csv or .parquet.")
    ]


def apply(options: ApplyOptions) -> None:
    """Decide on the people of a file; all columns are kept, the decision is added, and its probabilities if wanted.

    Example: felicific apply policy.json next-month.csv --score score --group sex --key id --out decided.csv
    """
    from felicific._people.roles import Roles
    from felicific._policy.apply import proba_columns
    from felicific._policy.signed import Signed
    from felicific.cli.amounts import amounts_of
    from felicific.cli.outputs import check_target, print_json, printable
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    out, column = options.out, options.column
    check_alone(options)
    check_target(out, [".csv", ".parquet"], force=options.force)
    named = Roles(options.group, predicted=options.predicted, key=options.key)
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


def _give(policy: AmountPolicy, named: Roles, options: ApplyOptions) -> None:
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
