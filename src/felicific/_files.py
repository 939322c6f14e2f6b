"""The one way a file, or a folder of files, is written: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write to, which takes the name ``path`` when it is written and flushed to disk.

    It lies in the same folder, so that it takes the name in one step. When anything goes wrong before, it is removed,
    and what was at ``path`` is as it was.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    except OSError as error:
        error.filename = os.fspath(target)  # the name that the user knows
        raise
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(_mode(target))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def folder_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write files to, which takes the name ``path`` when all are written.

    When anything goes wrong before, it is removed, and what was at ``path`` is as it was. A folder that is replaced
    loses the files that have a namesake among the new ones; others move to the new folder.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name[:40]}.", dir=target.parent) as room:
        new, old = Path(room) / "new", Path(room) / "old"
        new.mkdir()
        yield new
        if not target.exists():
            os.replace(new, target)
            return
        for file in target.iterdir():
            if not (new / file.name).exists():
                (shutil.copytree if file.is_dir() else shutil.copy2)(file, new / file.name)
        os.replace(target, old)
        try:
            os.replace(new, target)
        except BaseException:
            os.replace(old, target)
            raise


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced; of a new one, what the umask leaves."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
