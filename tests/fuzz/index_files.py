"""Files of an index that a stranger has changed, who has also put the checksums right.

The first byte of an input says which file it is, the others are its content. What is in the other files stays.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuroseqret import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index, hot
from neuroseqret.models.base import Embedder

METHODS = ("exhaustive", "cells", "buckets", "hamming")


class Changed:
    """Some files, of which one at a time is changed."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.contents = [file.read_bytes() for file in files]
        self._changed: int | None = None

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """The files as they are, as inputs."""
        return tuple(bytes([at]) + content for at, content in enumerate(self.contents))

    def put(self, data: bytes) -> Path:
        """Change the file that an input names, and put the one before right again."""
        if not data:
            raise UserError("no file")
        if self._changed is not None:
            self.files[self._changed].write_bytes(self.contents[self._changed])
        self._changed = data[0] % len(self.files)
        self.files[self._changed].write_bytes(data[1:])
        return self.files[self._changed]


def of_structures(folder: Path, model: Embedder, corpus: EventSequences) -> tuple[Callable[[bytes], None], Changed]:
    """Return what opens and uses search structures of every method, and their files."""
    builds: list[Path] = []
    for method in METHODS:
        Index.create(model, folder / method, corpus, candidates=method, hash="rotation").compact()
        place = folder / method / "hot"
        builds.append(place / (place / hot.CURRENT).read_text())
    changed = Changed([file for build in builds for file in sorted(build.iterdir())])
    metas = {build: json.loads((build / hot.META).read_text()) for build in builds}

    def run(data: bytes) -> None:
        file = changed.put(data)
        for build in builds:
            if build != file.parent:
                continue
            meta = _parsed(data[1:]) if file.name == hot.META else metas[build]
            if meta is not None:
                _put_right(build, file, dict(meta))
            _use(build, len(model.embed(corpus[:1])[0]))

    return run, changed


def _parsed(text: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _put_right(build: Path, file: Path, meta: dict[str, object]) -> None:
    """Write the description of a build with the size and checksum of a changed file, and its own checksum."""
    meta.pop("check", None)
    if file.name != hot.META:
        content = file.read_bytes()
        meta["files"] = {**meta["files"], file.name: len(content)}  # type: ignore[dict-item]
        meta["checks"] = {**meta["checks"], file.name: zlib.crc32(content)}  # type: ignore[dict-item]
    meta["check"] = zlib.crc32(json.dumps(meta).encode())
    (build / hot.META).write_text(json.dumps(meta))


def _use(build: Path, dimension: int) -> None:
    """Search in a build that opens, and read what a hit needs; one that does not open is built again."""
    if (opened := hot.open_current(build.parent, dimension)) is None:
        raise UserError("it is built again")
    with np.errstate(all="ignore"):
        found = opened.finder.best(np.ones(dimension, np.float32), min(5, len(opened)), 20)
    assert len(found.rows) <= len(opened)
    opened.events(found.rows)
    opened.rows.take(found.rows).to_pylist()
    assert len(opened.by_serial) == len(opened.by_hash("id")[0])


def of_store(folder: Path, model: Embedder, corpus: EventSequences) -> tuple[Callable[[bytes], None], Changed]:
    """Return what opens a store and compares all of it with its hashes, and the files of the store.

    Data files are left out: Lance ends the process if their inner sizes are forged, as SECURITY.md says.
    """
    index = Index.create(model, folder, corpus)
    index.remove([corpus.ids[1].as_py()])
    files = sorted(path for path in (folder / "store").rglob("*") if path.is_file())
    changed = Changed([path for path in files if path.parent.name != "data"])

    def run(data: bytes) -> None:
        changed.put(data)
        opened = Index.open(folder, model)
        if flaws := opened.check():
            raise UserError(flaws[0])
        opened.get([corpus.ids[0].as_py()])

    return run, changed
