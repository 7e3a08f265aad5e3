"""Files and folders that appear complete or not at all: written to a temporary sibling, then renamed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path

from neuroseqret.errors import UserError


def cache_folder() -> Path:
    """Where what can be made again is kept: `$NEUROSEQRET_CACHE`, else the platform's folder for it."""
    if given := os.environ.get("NEUROSEQRET_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neuroseqret"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "neuroseqret"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuroseqret"


@contextmanager
def new_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path to write to; renamed to `path` if the block succeeds, removed if it raises."""
    target = Path(path)
    if target.is_dir():
        raise UserError(f"{target}: is a folder; name a file to write")
    if target.exists() and not target.is_file():  # it would be replaced, not written to
        raise UserError(f"{target}: is a pipe or device; name a file to write")
    temporary = _sibling(target)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(target: Path, marker: str, *beside: str) -> None:
    """Raise a `UserError` where `new_folder` would: something else is there, or something besides."""
    if not target.exists():
        above = next(parent for parent in target.absolute().parents if parent.exists())
        if not above.is_dir():
            raise UserError(f"{target}: cannot be written ({above} is a file)")
        return
    names = sorted(entry.name for entry in target.iterdir()) if target.is_dir() else [""]
    if names and marker not in names:
        raise UserError(f"{target}: exists and holds no {marker}; choose another name")
    if strangers := [name for name in names if not any(fnmatch(name, known) for known in (marker, *beside))]:
        raise UserError(f"{target}: holds {strangers[0]!r}, which would be lost; move it away or choose another name")


@contextmanager
def new_folder(path: str | PathLike[str], marker: str, *beside: str) -> Iterator[Path]:
    """A temporary folder to fill; takes the place of `path` if the block succeeds, removed if it raises.

    A folder that exists is replaced only if it is empty or holds the file `marker`, which tells that it is of the
    same kind, and `beside` it nothing but what folders of this kind hold (names, or patterns as `*.run`).
    """
    target = Path(path).resolve()  # of '.' the name and the parent are needed
    check_replaceable(Path(path), marker, *beside)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    try:
        yield temporary
        _as_new(temporary, 0o777)
        if target.exists():
            check_replaceable(Path(path), marker, *beside)  # again: filling may have taken hours
            _exchange(target, temporary)
        else:
            os.replace(temporary, target)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(target: Path, temporary: Path) -> None:
    """Put the new folder where the old one is and remove the old one; if that fails, all is as it was."""
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    moves = [(target, old / "folder"), (temporary, target)]
    if target == Path.cwd():  # the folder one stands in stays, or one would stand in a removed one: its content moves
        moves = [(entry, old / entry.name) for entry in target.iterdir()]
        moves += [(entry, target / entry.name) for entry in temporary.iterdir()]
    done: list[tuple[Path, Path]] = []
    try:
        for move in moves:
            os.replace(*move)
            done.append(move)
    except BaseException:
        for before, after in reversed(done):
            os.replace(after, before)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sibling(target: Path) -> Path:
    """An unused name beside the target, so that the rename stays on one file system."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error})") from error
    os.close(handle)
    _as_new(name, 0o666)
    return Path(name)


def _as_new(path: str | Path, mode: int) -> None:
    """Temporary files and folders are made private; this gives them the mode that any new one would have."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, mode & ~mask)
