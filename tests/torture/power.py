"""What a power cut leaves of a folder: what was synced, and of the rest as much as chance decides.

The preloaded library writes every sync to a journal: the content of a file, or the names in a folder. What was there
before counts as synced. Of what was not synced, a cut leaves nothing (`strict`), or the names of empty files (`names`),
or this and that (`some`): file systems write in whatever order they like.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

WAYS = ("strict", "names", "some")


class PowerCut:
    """Made before the change: it keeps everything in the folder open, so that no inode number is used again."""

    def __init__(self, folder: Path, journal: Path) -> None:
        self.folder, self.journal, self._open = folder, journal, []
        self.contents: dict[int, bytes] = {}
        self.names: dict[int, dict[str, int]] = {}
        journal.mkdir()
        for below, folders, files in os.walk(folder):
            here = Path(below)
            self._open += [os.open(here / name, os.O_RDONLY) for name in [*folders, *files]]
            self.names[here.stat().st_ino] = {name: (here / name).stat().st_ino for name in [*folders, *files]}
            self.contents |= {(here / name).stat().st_ino: (here / name).read_bytes() for name in files}

    def leave(self, copy: Path, way: str, seed: int) -> None:
        """Write to `copy` what a cut now leaves of the folder."""
        for kept in sorted(self.journal.glob("[0-9]*.?")):
            inode, content = int(kept.name.split(".")[1]), kept.read_bytes()
            if kept.suffix == ".f":
                self.contents[inode] = content
            else:
                lines = [line.split(" ", 1) for line in content.decode().splitlines()]
                self.names[inode] = {name: int(number) for number, name in lines}
        self._now = {path.stat().st_ino: path for path in [self.folder, *self.folder.rglob("*")]}
        self._write(self.folder.stat().st_ino, copy, way, random.Random(seed))
        for descriptor in self._open:
            os.close(descriptor)

    def _write(self, inode: int, to: Path, way: str, rng: random.Random) -> None:
        now = self._now.get(inode)
        if inode in self.names or (now is not None and now.is_dir()):
            names = self.names.get(inode, {})
            if now is not None and (way == "names" or (way == "some" and rng.random() < 0.5)):
                names = {entry.name: entry.stat().st_ino for entry in now.iterdir()}
            to.mkdir()
            for name, number in sorted(names.items()):
                self._write(number, to / name, way, rng)
            return
        content = self.contents.get(inode, b"")
        if now is not None and way == "some" and rng.random() < 0.5:
            content = now.read_bytes()
        to.write_bytes(content)
