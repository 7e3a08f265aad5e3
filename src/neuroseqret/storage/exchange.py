"""Put a new folder in the place of an old one; a process killed at any moment leaves the old one or the new one.

Linux exchanges two folders in one step. Elsewhere, and for the working folder, the old content is first moved to a
hidden folder beside the target. If the process is killed before the new content is in place, `recover` moves it back.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from neuroseqret.storage.sync import sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NEW, OLD = ".nsr-new", ".nsr-old"  # a hidden folder to be removed, and one to be moved back, when its process is dead
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


@contextmanager
def hidden_folder(target: Path, suffix: str = NEW) -> Iterator[Path]:
    """Make a hidden folder beside the target, locked while its process lives; a `NEW` one is removed at the end."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=suffix, dir=target.parent))
        if (release := _lock(made, wait=True)) is not None:
            break  # otherwise another process took it for a leftover
    try:
        yield made
    finally:
        if suffix == NEW:
            shutil.rmtree(made, ignore_errors=True)
        release()


def recover(target: Path) -> None:
    """Move back what a killed process moved out of the target, and remove the hidden folders it left beside it."""
    target = target.resolve()
    pattern = re.compile(rf"\.{re.escape(target.name)}-[a-z0-9_]{{8}}({re.escape(NEW)}|{re.escape(OLD)})")
    with suppress(OSError):  # nobody may write there: then nothing can be put right either
        for left in [path for path in target.parent.iterdir() if pattern.fullmatch(path.name)]:
            if left.is_symlink() or not left.is_dir() or (release := _lock(left, wait=False)) is None:
                continue
            try:
                if left.suffix == OLD:
                    _put_back(left, target)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                release()


def exchange(target: Path, new: Path) -> None:
    """Put the folder `new` in the place of the target and sync that; the old content is in `new` or removed."""
    if target != Path.cwd() and _exchange_at_once(target, new):
        sync_folder(target.parent)
        return
    with hidden_folder(target, OLD) as old:
        moves = [(target, old / "folder"), (new, target)]
        if target == Path.cwd():  # the working folder itself must stay, so its content is moved
            (old / "content").mkdir()
            moves = [(entry, old / "content" / entry.name) for entry in target.iterdir()]
            moves += [(entry, target / entry.name) for entry in new.iterdir()]
        done: list[tuple[Path, Path]] = []
        try:
            for move in moves:
                os.replace(*move)
                done.append(move)
            sync_folder(target)
            sync_folder(target.parent)  # before the old content is removed
            os.rename(old, old.with_suffix(NEW))  # from here on, it is not moved back
        except BaseException:
            for before, after in reversed(done):
                os.replace(after, before)
            for empty in (*old.iterdir(), old):
                empty.rmdir()  # fails if something could not be moved back: then it stays there
            raise
        shutil.rmtree(old.with_suffix(NEW), ignore_errors=True)


def _exchange_at_once(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system or the file system cannot."""
    if os.name == "nt":
        return False
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    failed: int = function(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_EXCHANGE))
    return not failed


def _put_back(old: Path, target: Path) -> None:
    if (old / "folder").is_dir() and not target.exists():
        os.rename(old / "folder", target)
    if (old / "content").is_dir():
        for entry in (old / "content").iterdir():
            os.replace(entry, target / entry.name)
        sync_folder(target)
    sync_folder(target.parent)


def _lock(folder: Path, wait: bool) -> Callable[[], None] | None:
    """Lock a folder and return a function that frees it; None if another process has it or removed it."""
    return _lock_by_file(folder, wait) if fcntl is None else _lock_itself(folder, wait)


def _lock_itself(folder: Path, wait: bool) -> Callable[[], None] | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
            return lambda: os.close(descriptor)
    except BlockingIOError:
        pass
    except OSError:  # a file system without locks: a new folder is used without one, a leftover is not touched
        if wait:
            return lambda: os.close(descriptor)
    os.close(descriptor)
    return None


def _lock_by_file(folder: Path, wait: bool) -> Callable[[], None] | None:
    """Lock a folder where folders cannot be locked: by a file beside it."""
    file = folder.with_name(folder.name + ".lock")
    lock = FileLock(file, thread_local=False)

    def release() -> None:
        lock.release()
        with suppress(OSError):  # another process may have it open by now
            file.unlink(missing_ok=True)

    try:
        lock.acquire(timeout=-1 if wait else 0)
    except (Timeout, OSError):
        return None
    if folder.is_dir():
        return release
    release()
    return None
