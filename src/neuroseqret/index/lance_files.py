"""The files of the embedded store: which of them are safe from a power cut, and which versions can be read.

Lance leaves its files to the system, which writes them to the disk some seconds later. `sync` writes the files of a
commit to the disk before the commit is acknowledged. `synced.json` then names its version. That file is only a hint: if
it is lost or old, more is synced at the next commit, and more is checked at the next opening.
"""

from __future__ import annotations

import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from neuroseqret.storage.sync import sync_file, sync_folder

SYNCED = "synced.json"
_AT_ONCE = 8  # files that are synced at the same time
_FOOTER = struct.Struct("<QHH4s")  # position of the manifest in its file, version of the file format, magic
_LAST_VERSION = 2**64 - 1  # Lance names manifests by the distance to it, so that the newest one is listed first


class LanceFiles:
    """The files of one table."""

    def __init__(self, folder: Path, table: str) -> None:
        self.folder, self.table = folder, folder / f"{table}.lance"
        self.versions = self.table / "_versions"
        self._safe: set[tuple[str, int]] = set()  # paths and inodes
        self._safe_at = -1

    def begin(self, version: int) -> None:
        """Remember which files are safe before a commit; `version` is the newest one."""
        if self._safe_at != version:
            # Otherwise the writer of this version may have been killed before it synced.
            self._safe = self._list() if self.synced_version() == version else set()
            self._safe_at = version

    def sync(self, version: int) -> None:
        """Return when all files of the table are safe from a power cut; `version` is the newest one."""
        found = self._list()
        new = [Path(path) for path, _ in found - self._safe]
        folders = {above for path in new for above in path.parents if above.is_relative_to(self.folder)}
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # the file system writes what is synced at the same time together
            waiting = [pool.submit(sync_file, path) for path in new]
            waiting += [pool.submit(sync_folder, folder) for folder in folders]
            for one in waiting:
                with suppress(FileNotFoundError):  # temporary, of another writer; a missing file is noticed when read
                    one.result()
        self._safe, self._safe_at = found, version

    def mark(self) -> None:
        """Note that the version of the last `sync` is safe and can be read."""
        with suppress(OSError):  # it is only a hint
            temporary = self.folder / f".{SYNCED}"  # only one process writes at a time
            temporary.write_text(json.dumps({"version": self._safe_at}))
            os.replace(temporary, self.folder / SYNCED)

    def synced_version(self) -> int | None:
        """Return the version that `mark` noted; None if nothing was noted, 0 if the note was lost."""
        try:
            return int(json.loads((self.folder / SYNCED).read_text())["version"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OverflowError):
            return 0

    def newest(self) -> tuple[int, Path]:
        """Return the newest version and its manifest, whether it can be read or not; version 0 if there is none."""
        return max(((_version_of(path), path) for path in self.versions.glob("*.manifest")), default=(0, self.versions))

    def set_aside(self, manifest: Path) -> Path:
        """Rename a manifest so that Lance no longer sees its version; return the new path."""
        aside = manifest.with_suffix(".damaged")
        os.replace(manifest, aside)
        return aside

    def _list(self) -> set[tuple[str, int]]:
        found, folders = set(), [str(self.table)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        found.add((entry.path, entry.inode()))
        return found


def is_whole(manifest: Path) -> bool:
    """Return whether a manifest has the length that it says it has; after a power cut it may be empty or zeros."""
    content = manifest.read_bytes()
    if len(content) < _FOOTER.size + 4:
        return False
    position, _, _, magic = _FOOTER.unpack(content[-_FOOTER.size :])
    if magic != b"LANC" or position + 4 > len(content) - _FOOTER.size:
        return False
    (length,) = struct.unpack_from("<I", content, position)
    return 0 < length <= len(content) - _FOOTER.size - position - 4


def _version_of(manifest: Path) -> int:
    try:
        number = int(manifest.stem)
    except ValueError:
        return 0
    return _LAST_VERSION - number if len(manifest.stem) == 20 else number
