"""A disk that loses unsynced content: records `os.fsync`, and copies a folder as a power cut would leave it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

HINTS = ("synced.json", "write.lock", "hot.lock")  # nothing depends on these being on the disk


class Disk:
    """What was synced; `at_sync` is called after every sync."""

    def __init__(self, monkeypatch):
        self.files, self.folders, self.at_sync, self._fsync = {}, {}, None, os.fsync
        monkeypatch.setattr(os, "fsync", self.sync)

    def sync(self, descriptor):
        self._fsync(descriptor)
        now = os.fstat(descriptor)
        if stat.S_ISDIR(now.st_mode):
            self.folders[now.st_ino] = set(os.listdir(descriptor))
        else:
            self.files[now.st_ino] = (now.st_size, now.st_mtime_ns)
        if self.at_sync is not None:
            self.at_sync()

    def holds(self, path):
        """Whether the file's content is on the disk."""
        now = path.stat()
        return self.files.get(now.st_ino) == (now.st_size, now.st_mtime_ns)

    def names(self, path):
        """Whether the name of the file or folder is on the disk."""
        return path.name in self.folders.get(path.parent.stat().st_ino, ())

    def unsafe(self, folder):
        """Everything in a folder, with itself, that a power cut would take."""
        everything = [folder, *(path for path in folder.rglob("*") if path.name not in HINTS)]
        return [p for p in everything if not self.names(p) or (p.is_file() and not self.holds(p))]

    def cut(self, folder, copy, names=False):
        """Copy a folder; unsynced files are empty in the copy, or missing if their names were not synced either."""
        shutil.copytree(folder, copy)
        for path in [Path(path) for path in folder.rglob("*") if path.is_file()]:
            there = copy / path.relative_to(folder)
            if not self.holds(path):
                there.write_bytes(b"")
            if names and not self.names(path):
                there.unlink()
        return copy
