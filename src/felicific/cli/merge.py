"""``felicific merge``: sums of several sites, added."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import Answer, output_option
from felicific.exceptions import DataError, FelicificError

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates
    from felicific._program.numeric import AmountAggregates


# ---------------------------------------------------------------------------------------------------------
# Shards: files that are summed up one by one into a folder, which remembers what it holds.
#
# Every shard's sums are a file of their own, named by the shard's content, and the manifest lists the shards
# whose sums are there. Both are written whole or not at all, the sums first: whatever moment a process is
# killed at, a shard that the manifest lists is summed up, and one that it does not list is summed up again.
# Nothing is ever added to a file that exists, so no shard can be counted twice.


FORMAT = "felicific progress"


@dataclass(frozen=True)
class Shard:
    """A file that was summed up: where it was, how large, when it was changed last, and what it held."""

    file: str
    bytes: int
    modified: int
    sha256: str

    @property
    def name(self) -> str:
        """What its sums are called."""
        return f"shard-{self.sha256[:32]}.json"

    @classmethod
    def of(cls, path: str) -> Shard:
        """A file as it is now."""
        before = os.stat(path)
        with open(path, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(os.path.abspath(path), before.st_size, before.st_mtime_ns, digest)

    def unchanged(self) -> bool:
        """Whether the file looks as it did."""
        try:
            now = os.stat(self.file)
        except FileNotFoundError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.bytes, self.modified)


@dataclass
class Shards:
    """A folder of sums, with the manifest of what was summed up, and under which settings."""

    folder: Path
    settings: dict[str, Any]
    shards: dict[str, Shard] = field(default_factory=dict)

    @property
    def manifest(self) -> Path:
        """Where the manifest is."""
        return self.folder / "manifest.json"

    @property
    def all(self) -> Path:
        """Where the sums of all shards are, once they are complete."""
        return self.folder / "all.json"

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path, settings: dict[str, Any], *, force: bool) -> Iterator[Shards]:
        """The folder for this process alone, as it was left; with ``force`` it is begun anew."""
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{str(folder)!r} is a file.", "Name a folder, or a file that ends in .json.")
        if not folder.parent.is_dir():
            raise DataError(f"There is no folder {str(folder.parent)!r}.", "Make it first.")
        folder.mkdir(exist_ok=True)
        # As they come back from a file.
        found = cls(folder, json.loads(json.dumps(settings)))
        with _alone(folder):
            for left in folder.glob(".*.json.*"):
                left.unlink()  # what a killed process was writing
            if force:
                for old in (found.manifest, found.all, *folder.glob("shard-*.json")):
                    old.unlink(missing_ok=True)
            found._read()
            yield found

    def _read(self) -> None:
        from felicific._files import read_document

        if not self.manifest.exists():
            return
        try:
            content = read_document(self.manifest.read_text("utf-8"), FORMAT)
            shards = [Shard(**shard) for shard in content["shards"]]
            settings = dict(content["settings"])
        except (FelicificError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{str(self.manifest)!r} cannot be read, or was altered.",
                "Use another folder, or --force to begin anew.",
            ) from error
        differ = sorted(
            name for name in {*settings, *self.settings} if settings.get(name) != self.settings.get(name)
        )
        if differ:
            was, now = settings.get(differ[0]), self.settings.get(differ[0])
            option = differ[0] if differ[0] in ("felicific", "functions") else f"--{differ[0]}"
            raise DataError(
                f"{str(self.folder)!r} was begun with other options: {option} was {_written(was)} and is "
                f"{_written(now)}.",
                "Type it as before, use another folder, or --force to begin anew.",
            )
        self.shards = {shard.sha256: shard for shard in shards}

    def _write(self) -> None:
        from felicific._files import write_document, write_whole

        shards = [asdict(shard) for shard in self.shards.values()]
        write_whole(self.manifest, write_document({"settings": self.settings, "shards": shards}, FORMAT))

    def add(self, files: Sequence[str], summed: Callable[[str], Aggregates]) -> list[str]:
        """Sum up the files that were not yet, one after the other; what there is to say of them."""
        from felicific.cli.outputs import working

        notes, done, kept = [], 0, 0
        now: dict[str, str] = {}
        for place, file in enumerate(files):
            path = os.path.abspath(file)
            known = next((shard for shard in self.shards.values() if shard.file == path), None)
            if known is not None and known.unchanged() and (self.folder / known.name).exists():
                now[known.sha256] = file
                kept += 1
                continue
            shard = Shard.of(file)
            if known is not None and known.sha256 != shard.sha256:
                # What it held counts no longer, also if what it holds now is counted under another name.
                self.all.unlink(missing_ok=True)
                del self.shards[known.sha256]
                self._write()
                again = "" if shard.sha256 in now else ", and is summed up again"
                notes.append(f"{file!r} has changed since it was summed up{again}.")
            if shard.sha256 in now:
                notes.append(f"{file!r} holds what {now[shard.sha256]!r} holds, and is not counted again.")
                continue
            now[shard.sha256] = file
            self.all.unlink(missing_ok=True)  # it will be of other shards
            if shard.sha256 in self.shards and (self.folder / shard.name).exists():
                kept += 1  # under another name, or touched
            else:
                with working(f"Summing up {file} ({place + 1} of {len(files)}) ..."):
                    sums = summed(file)
                if not shard.unchanged():
                    raise DataError(f"{file!r} changed while it was summed up.", "Type the command again.")
                sums.save(self.folder / shard.name)
                done += 1
            self.shards[shard.sha256] = shard
            self._write()
        others = len(self.shards) - done - kept
        said = [f"{done} files are summed up, {kept} were already."]
        said += [f"{others} more that are not named now were summed up earlier, and count."] if others else []
        return [*notes, *said]

    def together(self) -> Aggregates:
        """The sums of all shards, added in the order of their names, whatever order they were summed up in."""
        from felicific.cli.documents import read_sums

        listed = sorted(self.shards.values(), key=lambda shard: (shard.file, shard.sha256))
        parts = [read_sums(self.folder / shard.name) for shard in listed]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def _written(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "not said" if value is None or value == [] else repr(text if len(text) < 80 else text[:77] + "...")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """For one process at a time; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    with (folder / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataError(
                f"Another process is summing up into {str(folder)!r}.", "Wait for it, or use another folder."
            ) from error
        yield


def find_files(texts: Sequence[str]) -> list[str]:
    """The files that paths and patterns name, each once."""
    found: list[str] = []
    for text in texts:
        named = sorted(glob.glob(text)) if glob.has_magic(text) and not os.path.exists(text) else [text]
        if not named:
            raise DataError(f"No file is called {text!r}.", "Check the pattern.")
        found += named
    twice = [path for place, path in enumerate(found) if path in found[:place]]
    if twice:
        raise DataError(
            f"{twice[0]!r} is named twice.", "Name every file once: its people would count twice."
        )
    return found


# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MergeOptions(Answer):
    """What ``felicific merge`` is told."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files of sums that `felicific aggregate` wrote; a pattern such as 'site-*.json' names many.",
        ),
    ]
    out: Annotated[Path, output_option("FILE", "Where their sum is written.")]


def merge(options: MergeOptions) -> None:
    """Add the sums of several sites or months to one file, which `felicific fit` and `frontier` take.

    Example: felicific merge north.json south.json --out all.json
    """
    from felicific.cli.documents import read_sums
    from felicific.cli.outputs import check_target, print_json, printable

    check_target(options.out, [".json"], force=options.force)
    files = find_files(options.files)
    parts = {name: read_sums(name) for name in files}
    together = added(parts)
    together.save(options.out)
    if options.as_json:
        print_json({"files": files, **summary(together, options.out)})
        return
    notes = [f"{len(files)} files are added."]
    print("\n".join(map(printable, [*notes, *told(together, options.out)])))


def added(parts: dict[str, Aggregates]) -> Aggregates:
    """The sum of all; what does not add is refused, by the names of the files."""
    from felicific._policy.solve import is_of_amounts
    from felicific.exceptions import AggregatesError, DataError

    of_amounts = {name: is_of_amounts(part) for name, part in parts.items()}
    if len(set(of_amounts.values())) > 1:
        one, other = (
            next(name for name, kind in of_amounts.items() if kind is which) for which in (True, False)
        )
        raise AggregatesError(
            f"{one!r} holds sums of amounts, and {other!r} sums of decisions among classes.",
            "Add either alone.",
        )
    known: dict[str, str] = {}
    for name, part in parts.items():
        same = known.setdefault(part.to_json(), name)
        if same != name:
            raise DataError(
                f"{name!r} holds the same sums as {same!r}, so people would be counted twice.",
                "Leave one out.",
            )
    amounts = all(of_amounts.values())
    (first, total), *others = parts.items()
    for name, part in others:
        if not amounts and part.signal != total.signal:
            kinds = (total.signal.kind, part.signal.kind)
            differ = "other score bins" if kinds[0] == kinds[1] else " and ".join(kinds)
            raise AggregatesError(
                f"{name!r} does not add to {first!r}. They were summed up for different policies: {differ}.",
                "Sum up both with felicific aggregate and the same --policy.",
            )
        try:
            total = total + part
        except AggregatesError as error:
            raise AggregatesError(
                f"{name!r} does not add to {first!r}. {error.problem}", error.remedy
            ) from error
    return total


def summary(sums: Aggregates | Any, out: Path) -> dict[str, Any]:
    """What a file of sums holds, as plain data."""
    from felicific._policy.solve import is_of_amounts

    if is_of_amounts(sums):
        return _summary_of_amounts(sums, out)
    sums = sums.completed()  # those without a label, too
    people = zip(sums.groups, sums.people.tolist(), sums.rows.tolist(), strict=True)
    return {
        "written": str(out),
        "rows": int(sums.rows.sum()),
        "groups": [{"group": group, "people": weight, "rows": rows} for group, weight, rows in people],
        "decisions": sums.decisions.tolist(),
        "happiness": [{"name": one.name, "unit": one.unit} for one in sums.measures if not one.aside],
        "loss": sums.loss_name,
        "smallest_cell": smallest_cell(sums),
    }


def _summary_of_amounts(sums: AmountAggregates | Any, out: Path) -> dict[str, Any]:
    people = zip(sums.groups, sums.people.tolist(), sums.rows.tolist(), strict=True)
    names = [str(part.name) for part in sums.asked.happiness] + [sums.asked.parity] * bool(sums.asked.parity)
    return {
        "written": str(out),
        "kind": "amounts",
        "rows": int(sums.rows.sum()),
        "groups": [{"group": group, "people": weight, "rows": rows} for group, weight, rows in people],
        "happiness": names,
        "loss": sums.asked.loss,
        "smallest_cell": smallest_cell(sums),
    }


def smallest_cell(sums: Aggregates | AmountAggregates) -> float | None:
    """How many people the smallest cell speaks of."""
    held = sums.mass[sums.mass > 0]
    return float(held.min()) if held.size else None


#: Groups that are listed for reading.
SHOWN = 20


def told(sums: Aggregates | Any, out: Path) -> list[str]:
    """What a file of sums holds, for reading."""
    from felicific._policy.solve import is_of_amounts

    sums = sums if is_of_amounts(sums) else sums.completed()  # those without a label, too
    sizes = list(zip(sums.groups, sums.people.tolist(), strict=True))
    groups = ", ".join(f"{group!r} {people:,.6g}" for group, people in sizes[:SHOWN])
    groups += f" and {len(sizes) - SHOWN} groups more" if len(sizes) > SHOWN else ""
    least = smallest_cell(sums)
    few = "" if least is None else f" The smallest score bin speaks of {least:,.6g}."
    return [f"People: {groups}, in {int(sums.rows.sum()):,} rows.{few}", f"Written to {out}."]
