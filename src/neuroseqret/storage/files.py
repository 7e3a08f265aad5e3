"""Write files and folders atomically: fill a temporary sibling, then rename it.

A reader sees the old content or the new content, never half of it. `cache_folder` says where results are kept that can
be computed again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path

from neuroseqret.errors import UserError
from neuroseqret.storage.exchange import exchange, hidden_folder, recover
from neuroseqret.storage.reading import naming_path
from neuroseqret.storage.sync import make_folders, sync_file, sync_folder, sync_tree


def cache_folder() -> Path:
    """Return the folder for results that can be computed again: `$NEUROSEQRET_CACHE` or the platform's cache folder."""
    if given := os.environ.get("NEUROSEQRET_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neuroseqret"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "neuroseqret"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuroseqret"


def system_error_of(error: BaseException) -> OSError | None:
    """Return the error of the system that an error is or was made from; None if there is none."""
    origin = error if isinstance(error, OSError) else error.__cause__
    return origin if isinstance(origin, OSError) else None


@contextmanager
def new_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to `path` if the block succeeds, remove it if the block raises.

    The folder of `path` is made if it is missing. When the block ends, the new file is safe from a power cut:

        with new_file("weights.safetensors") as temporary:
            save_file(tensors, temporary)
    """
    target = Path(path)
    _check_file(target)
    temporary = _sibling(target)
    try:
        yield temporary
        _as_new(temporary, 0o666)  # here, as some writers replace the file by a new one
        sync_file(temporary)
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):  # usually it has been renamed; a disk that fails must not hide what happened before
            temporary.unlink(missing_ok=True)


def check_replaceable(target: Path, marker: str, *beside: str) -> None:
    """Raise a `UserError` if `new_folder` may not replace `target`: it is of another kind, or holds other files."""
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
    """Give a temporary folder to fill; it replaces `path` if the block succeeds and is removed if the block raises.

    An existing folder is replaced only if it is empty, or if it holds the file `marker` (so it is of the same kind) and
    otherwise only what folders of this kind hold: the names in `beside`, which may be patterns such as `*.run`. When
    the block ends, the new folder is safe from a power cut.
    """
    target = _replaceable(path, marker, *beside)
    with ExitStack() as stack:
        try:
            make_folders(target.parent)
            temporary = stack.enter_context(hidden_folder(target))
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
        try:
            yield temporary
            _as_new(temporary, 0o777)
            sync_tree(temporary)
            if target.exists():
                check_replaceable(Path(path), marker, *beside)  # again: filling may have taken hours
                exchange(target, temporary)
            else:
                os.replace(temporary, target)
                sync_folder(target.parent)
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error


@naming_path
def _check_file(target: Path) -> None:
    """Raise a `UserError` if `new_file` may not write to `target`."""
    if target.is_dir():
        raise UserError(f"{target}: is a folder; name a file to write")
    if target.exists() and not target.is_file():  # renaming would replace it instead of writing to it
        raise UserError(f"{target}: is a pipe or device; name a file to write")


@naming_path
def _replaceable(path: str | PathLike[str], marker: str, *beside: str) -> Path:
    """Return the absolute path of a folder that `new_folder` may replace, after recovering what is left of it."""
    target = Path(path).resolve()  # '.' has neither a name nor a parent
    recover(target)
    check_replaceable(Path(path), marker, *beside)
    return target


def _sibling(target: Path) -> Path:
    """Make an empty file next to the target, so that renaming it stays on one file system."""
    try:
        make_folders(target.parent)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error})") from error
    os.close(handle)
    return Path(name)


def _as_new(path: str | Path, mode: int) -> None:
    """Give a temporary file or folder, which is private at first, the permissions of any new one."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, mode & ~mask)
