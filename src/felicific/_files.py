"""The one way a file, or a folder of files, is written: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path


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
