"""Make files and folders safe from a power cut: the system writes a closed file to the disk only some seconds later."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP)  # from file systems that cannot sync folders


def sync_file(path: Path) -> None:
    """Return when the content of a file is on the disk."""
    _sync(path)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk; a new or renamed file is lost without its name."""
    if os.name == "nt":  # Windows cannot open folders, and writes their names with the files
        return
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise


def sync_tree(folder: Path) -> None:
    """Return when a folder is on the disk with everything in it."""
    for below, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(below, name))
        sync_folder(Path(below))


def make_folders(folder: Path) -> None:
    """Make a folder and the missing ones above it; their names are on the disk when this returns."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs what is open to write
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
