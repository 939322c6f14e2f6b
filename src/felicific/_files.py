"""The one way a file, or a folder of files, is written: whole or not at all; and the checked JSON in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Floats, Truths
from felicific.exceptions import DataError, PolicyFileError


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def write_together(contents: Mapping[Path, str]) -> None:
    """Write several files; none of them takes its name before all are written."""
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            stack.enter_context(whole_file(path)).write_bytes(content.encode("utf-8"))


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write to, which takes the name ``path`` when it is written and flushed to disk.

    It lies in the same folder, so that it takes the name in one step. When anything goes wrong before, it is removed,
    and what was at ``path`` is as it was.
    """
    target = Path(path)
    temporary = _beside(
        target
    )  # its name is known before it is there, so that a signal at any moment leaves nothing
    try:
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            error.filename = os.fspath(target)  # the name that the user knows
            raise
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(_mode(target))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _beside(target: Path) -> Path:
    """A name in the same folder that nothing has."""
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}")


@contextlib.contextmanager
def folder_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write files to, which takes the name ``path`` when all are written.

    When anything goes wrong before, it is removed, and what was at ``path`` is as it was. A folder that is replaced
    loses the files that have a namesake among the new ones; others move to the new folder.
    """
    target = Path(path)
    made = [folder for folder in target.parents if not folder.exists()]
    room = _beside(target)
    new, old = room / "new", room / "old"
    try:
        new.mkdir(parents=True)
        yield new
        if not target.exists():
            os.replace(new, target)
            return
        for file in target.iterdir():
            if not (new / file.name).exists():
                (shutil.copytree if file.is_dir() else shutil.copy2)(file, new / file.name)
        try:
            os.replace(target, old)
            os.replace(new, target)
        except BaseException:
            if not target.exists():
                os.replace(old, target)
            raise
    finally:
        shutil.rmtree(room, ignore_errors=True)
        if not target.exists():
            for folder in made:  # from the innermost
                with contextlib.suppress(OSError):  # somebody else put something there
                    folder.rmdir()


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced; of a new one, what the umask leaves."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


# ---------------------------------------------------------------------------------------------------------
# The JSON that policies and aggregates are kept in, written with a checksum and read with suspicion.

VERSION = 2
POLICY, AGGREGATES, MONITOR, STEERING = (
    f"felicific {what}" for what in ("policy", "aggregates", "monitor", "steering")
)

#: How decisions that are listed stand in a file.
ORDER = "worst first"


def refused(reason: str) -> PolicyFileError:
    """The error of a file that is not a policy."""
    return PolicyFileError(
        f"This is no policy file: {reason}.", "Get the file again from where it was saved."
    )


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that a file says it has; empty for any other file."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(200)
    except OSError:
        return ""  # whoever opens it says why
    written = re.match(rb'\s*\{\s*"format":\s*"([^"]*)"', head)
    return "" if written is None else written[1].decode("utf-8", "replace")


def write_document(content: dict[str, Any], form: str = POLICY, indent: int | None = 1) -> str:
    """JSON with format, version and checksum."""
    whole = {"format": form, "version": VERSION, **content, "sha256": checksum(content, form)}
    return json.dumps(whole, indent=indent, allow_nan=False) + "\n"


def checksum(content: dict[str, Any], form: str = POLICY) -> str:
    """SHA-256 of a document, as it stands in it."""
    return _digest({"format": form, "version": VERSION, **content})


def read_document(text: str, form: str = POLICY) -> dict[str, Any]:
    """The content of a document that is whole, unaltered and of this version."""
    content = read_json(text, refused)
    if not isinstance(content, dict) or content.get("format") != form:
        raise refused(f"its format is not {form!r}")
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise PolicyFileError(
            f"The policy file has format {content.get('version')!r}; this felicific reads format {VERSION}.",
            "Make it again: files of felicific 0.1.0 are not read.",
        )
    if content.get("sha256") != _digest(content):
        raise refused("its content does not match its checksum, so it was altered or cut")
    return {name: part for name, part in content.items() if name not in ("format", "version", "sha256")}


def read_json(text: str, refuse: Callable[[str], PolicyFileError]) -> Any:
    """JSON that is whole, whose numbers are numbers, and in which no name stands twice."""

    def no_constant(name: str) -> float:
        raise refuse(f"it holds the number {name}")

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Of two, readers would take different ones.
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise refuse(f"it holds {next(name for name in names if names.count(name) > 1)!r} twice")
        return found

    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=each_once)
    except PolicyFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise refuse(f"it is not whole JSON ({error})") from error


def _digest(content: dict[str, Any]) -> str:
    rest = {name: part for name, part in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode("ascii")).hexdigest()


def plain(values: list[Any], what: str) -> list[Any]:
    """Insist on values that JSON gives back as they were."""
    for value in values:
        if type(value) not in (str, int, float, bool):
            raise DataError(
                f"The {what} {value!r} is a {type(value).__name__}, which a policy file cannot hold.",
                "Use strings, integers, floats or booleans.",
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(
                f"The {what} {value!r} cannot be written to a policy file.", "Give it a name instead."
            )
    return values


def read_values(values: Any, what: str) -> list[Any]:
    """A list of classes or groups."""
    if not isinstance(values, list):
        raise refused(f"its {what} list is no list")
    try:
        return plain(values, what)
    except DataError as error:
        raise refused(error.problem.rstrip(".")) from error


def read_numbers(values: Any, name: str) -> Floats:
    """An array of numbers: nested lists of equal length, nothing but numbers in them."""
    leaves = [values]
    while leaves:
        leaf = leaves.pop()
        if isinstance(leaf, list):
            leaves += leaf
        elif type(leaf) not in (int, float):
            raise refused(f"{name} holds {leaf!r}, which is no number")
    try:
        return np.array(values, np.float64)
    except (ValueError, OverflowError) as error:
        raise refused(f"{name} is no array ({error})") from error


def write_means(means: Floats) -> list[Any]:
    """Means of shape (groups, measures) as data; None where nobody is counted."""
    return [[None if math.isnan(mean) else mean for mean in row] for row in means.tolist()]


def read_means(values: Any, name: str) -> Floats:
    """What :func:`write_means` wrote."""
    rows = values if isinstance(values, list) and all(isinstance(row, list) for row in values) else [values]
    means = read_numbers([[0.0 if mean is None else mean for mean in row] for row in rows], name)
    gone = [(z, j) for z, row in enumerate(rows) for j, mean in enumerate(row) if mean is None]
    for place in gone:
        means[place] = math.nan
    return means


def check_means(name: str, means: Floats, shape: tuple[int, ...], free: Truths | None = None) -> Floats:
    """Refuse means of another shape, or not finite; there may be no number where that is ``free`` (None: anywhere)."""
    gone = np.isnan(means)
    if free is not None and means.shape == free.shape:
        gone &= free
    check_shape(name, np.where(gone, 0.0, means), shape)
    return means


def read_whole(values: Any, name: str, least: int = 0) -> NDArray[np.int64]:
    """An array of whole numbers, none of them smaller than ``least``."""
    numbers = read_numbers(values, name)
    wrong = ~((numbers >= least) & (numbers < 2.0**63) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise refused(f"{name} holds {numbers[wrong][0]:g}, which is no whole number from {least} on")
    return numbers.astype(np.int64)


def check_distinct(**lists: Sequence[Any]) -> None:
    """Refuse a list of names that is empty, or holds one twice."""
    for name, values in lists.items():
        if not values:
            raise refused(f"its list of {name} is empty")
        twice = next((value for value in values if list(values).count(value) > 1), None)
        if twice is not None:
            raise refused(f"it holds {twice!r} twice among its {name}")


def read_number(value: Any, name: str) -> float:
    """One finite number."""
    return float(check_shape(name, read_numbers(value, name), ()))


def check_shape(name: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    """Refuse an array of another shape, or one that is not finite."""
    if array.shape != shape:
        raise refused(f"{name} has shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise refused(f"{name} is not finite")
    return array


def write_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Classes with their type; the length of strings is not part of it."""
    dtype = "U" if classes.dtype.kind == "U" else classes.dtype.str
    return {"dtype": dtype, "values": plain(classes.tolist(), "class")}


def read_sha256(value: Any, whose: str) -> str | None:
    """64 hexadecimal digits, or None."""
    if value is not None and not (type(value) is str and re.fullmatch("[0-9a-f]{64}", value)):
        raise refused(f"the SHA-256 of the {whose} is {str(value)[:80]!r}")
    return value


def read_classes(content: Any) -> NDArray[Any]:
    """Classes that come back as they are written, in the type they are said to have."""
    if not isinstance(content, dict) or set(content) != {"dtype", "values"}:
        raise refused("its classes have no type")
    dtype, values = content["dtype"], read_values(content["values"], "class")
    if not isinstance(dtype, str) or not re.fullmatch(r"[<>|=](b1|[iu][1248]|f[248]|O)|U", dtype):
        raise refused(f"the type {dtype!r} of its classes is unknown")
    try:
        classes = np.array(values, np.dtype(dtype))
    except (ValueError, OverflowError, TypeError) as error:
        raise refused(f"its classes are not {dtype} ({error})") from error
    back = classes.tolist()
    if back != values or [type(value) for value in back] != [type(value) for value in values]:
        raise refused(f"its classes are not {dtype}")
    return classes


def write_decisions(decisions: NDArray[Any], order: tuple[Any, ...], rising: bool | None) -> dict[str, Any]:
    """Decisions from the worst to the best; nothing where they are the classes, in their order."""
    if rising is not None:
        return {"decisions": write_classes(decisions), "order": ORDER, "rising": rising}
    if not order:
        return {}
    known = decisions.tolist()
    return {"decisions": write_classes(decisions[[known.index(one) for one in order]]), "order": ORDER}


def read_decisions(content: dict[str, Any], classes: NDArray[Any]) -> dict[str, Any]:
    """What :func:`write_decisions` wrote: classes in another order, or decisions that are none."""
    rising = content.get("rising")
    if content.get("decisions") is None:
        if content.get("order") is not None or rising is not None:
            raise refused(f"its order is {content.get('order')!r}, of no decisions")
        return {}
    if content.get("order") != ORDER:
        raise refused(f"its decisions are in the order {content.get('order')!r}, not {ORDER!r}")
    decisions = read_classes(content["decisions"])
    check_distinct(decisions=decisions.tolist())
    if len(decisions) < 2:
        raise refused("it has fewer than two decisions")
    if rising is None and {*decisions.tolist()} == {*classes.tolist()}:
        return {"order": tuple(decisions.tolist())}
    if type(rising) is not bool:
        raise refused(f"whether its decisions get better with the score is {rising!r}")
    return {"decisions": decisions, "rising": rising}


def read_prices(content: Any, what: str = "price") -> dict[str, float]:
    """Prices, or other numbers, by name."""
    if not isinstance(content, list):
        raise refused(f"its {what}s are no list")
    prices = {}
    for item in content:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise refused(f"a {what} has no name")
        prices[item[0]] = read_number(item[1], f"a {what}")
    if len(prices) < len(content):
        raise refused(f"a {what} stands there twice")
    return prices
