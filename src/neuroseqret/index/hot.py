"""The hot structure: everything that a search reads, as memory-mapped arrays derived from the store.

INDEX/hot/CURRENT              the name of the current build
INDEX/hot/build-.../meta.json  layout version, method, parts of the store, files with their sizes and checksums
INDEX/hot/build-.../*          the arrays; those of the finder are described in `candidates`

`hot_builder` writes it, this module opens and checks it. What cannot be used is rebuilt, since the store has all of it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.arrays import Array, are_as_written, are_within, open_array
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.candidates.finder import Finder
from neuroseqret.candidates.finders import FINDERS
from neuroseqret.index.keys import rows_by_hash
from neuroseqret.index.store import CHECK, DIGEST, EMBEDDING, KEY, SERIAL

CURRENT, META = "CURRENT", "meta.json"
EMBEDDINGS, SERIALS, BEGINS, LENGTHS = "embeddings.npy", "serials.npy", "begins.npy", "lengths.npy"
TIMES, MARKS, ROWS = "times.bin", "marks.bin", "rows.arrow"
LAYOUT_VERSION = 2
BUILD_NAME = re.compile(r"build-[0-9a-f]{12}")
_CHECKED_SIZE = 1 << 20  # bytes; reading larger files completely at every opening would take too long
_PART_SIZE = 1 << 20  # bytes that are read at once for a checksum


@dataclass(frozen=True)
class HotStructure:
    """An open hot structure of n rows. The arrays are memory maps: they cost nothing until they are read."""

    last_serial: int
    serials: npt.NDArray[np.int64]  # (n,)
    embeddings: npt.NDArray[np.float32]  # (n, D)
    rows: pa.Table  # id, group, window, metadata
    finder: Finder
    begins: npt.NDArray[np.int64]  # (n,) where the row's events begin in `times` and `marks`
    lengths: npt.NDArray[np.int32]  # (n,) number of events
    times: npt.NDArray[np.float64]
    marks: npt.NDArray[np.int32]
    build: str = ""  # name of its folder
    parts: dict[str, int] = field(default_factory=dict)  # of the store that it was built of, and their rows
    _by_hash: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.serials)

    @cached_property
    def by_serial(self) -> npt.NDArray[np.int64]:
        """The order of the rows by serial."""
        return np.argsort(self.serials)

    @property
    def nbytes(self) -> int:
        """Bytes that searches read. Events are not counted: only those of reranked rows are read."""
        per_row = (self.serials, self.begins, self.lengths)
        return self.finder.nbytes + self.rows.nbytes + sum(array.nbytes for array in per_row)

    def by_hash(self, column: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the hashes of a column of texts, sorted, with their rows; they are computed once."""
        if column not in self._by_hash:
            self._by_hash[column] = rows_by_hash(self.rows.column(column).combine_chunks())
        return self._by_hash[column]

    def events(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Return the sequences of rows: id, times, marks, and start and end where the index has them."""
        lengths = self.lengths[rows].astype(np.int64)
        cuts = np.concatenate([[0], np.cumsum(lengths)])
        source = np.repeat(self.begins[rows] - cuts[:-1], lengths) + np.arange(cuts[-1])
        have = [name for name in ("id", "start", "end") if name in self.rows.column_names]
        table = self.rows.select(have).take(pa.array(rows))
        for name, values in (("times", self.times), ("marks", self.marks)):
            table = table.append_column(name, pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(values[source])))
        return table

    def fits(self, dimension: int) -> bool:
        """Return whether the arrays are what searches, which do not check bounds, rely on.

        This takes 20 to 30 ms for a million rows; `verify` compares all bytes.
        """
        n, events = len(self), len(self.times)
        per_row = are_as_written(
            [(self.serials, (n,), np.int64), (self.begins, (n,), np.int64), (self.lengths, (n,), np.int32)]
        )
        if not per_row or self.rows.num_rows != n or len(self.marks) != events:
            return False
        if not (are_within(self.begins, events + 1) and are_within(self.lengths, events + 1)):
            return False
        if "id" not in self.rows.column_names:
            return False
        self.rows.validate(full=True)  # raises if a text or list ends outside its column
        return are_within(self.begins + self.lengths, events + 1) and self.finder.fits(n, dimension)


def empty(schema: pa.Schema, dimension: int) -> HotStructure:
    """Return a structure without rows, for an index that has none yet."""
    embeddings = np.empty((0, dimension), np.float32)
    rows = schema.empty_table().select(hit_columns(schema)).drop_columns([SERIAL])
    int64s, int32s = np.empty(0, np.int64), np.empty(0, np.int32)
    return HotStructure(-1, int64s, embeddings, rows, ExhaustiveFinder(embeddings), int64s, int32s, np.empty(0), int32s)


def hit_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hits are made of: all but events, embeddings and hashes."""
    return [name for name in schema.names if name not in ("times", "marks", DIGEST, CHECK, KEY, EMBEDDING)]


def open_current(folder: Path, dimension: int) -> HotStructure | None:
    """Open the current structure; return None if there is none that can be used, for whatever reason."""
    try:
        target = _current(folder)
        meta = None if target is None else _read_meta(target)
        opened = None if target is None or meta is None else _open(target, meta)
        return opened if opened is not None and opened.fits(dimension) else None
    except Exception:  # damaged files raise anything, and the store has all that is needed to rebuild
        return None


def _current(folder: Path) -> Path | None:
    """Return the folder of the current build; None if the way there is not plain: no link, and no other folder."""
    pointer = folder / CURRENT
    if not stat.S_ISDIR(folder.lstat().st_mode) or not stat.S_ISREG(pointer.lstat().st_mode):
        return None
    name = pointer.read_text().strip()
    if not BUILD_NAME.fullmatch(name) or not stat.S_ISDIR((folder / name).lstat().st_mode):
        return None
    return folder / name


def _open(target: Path, meta: dict[str, Any]) -> HotStructure:
    embeddings = open_array(target / EMBEDDINGS)
    return HotStructure(
        last_serial=meta["last_serial"],
        serials=open_array(target / SERIALS),
        embeddings=embeddings,
        rows=pa.ipc.open_file(pa.memory_map(str(target / ROWS))).read_all(),
        finder=FINDERS[meta["method"]].open(target, embeddings),
        begins=open_array(target / BEGINS),
        lengths=open_array(target / LENGTHS),
        times=_open_plain(target / TIMES, np.float64),
        marks=_open_plain(target / MARKS, np.int32),
        build=target.name,
        parts={str(name): int(rows) for name, rows in meta.get("parts", {}).items()},  # early structures have none
    )


def _open_plain(file: Path, kind: type) -> Array:
    """Map a file of numbers without a header; an empty file cannot be mapped."""
    return np.memmap(file, kind, "c").view(np.ndarray) if file.stat().st_size else np.empty(0, kind)


def write_meta(folder: Path, method: str, last_serial: int, parts: dict[str, int]) -> None:
    """Describe the files of a complete structure, so that damage is found when it is opened.

    With the `parts` of the store that it was built of, whoever opens it reads only those that are new.
    """
    files = sorted(folder.iterdir())
    meta: dict[str, Any] = {
        "layout": LAYOUT_VERSION,
        "method": method,
        "last_serial": last_serial,
        "parts": parts,
        "files": {file.name: file.stat().st_size for file in files},
        "checks": {file.name: _checksum(_parts(file)) for file in files},
    }
    meta["check"] = _checksum([json.dumps(meta).encode()])
    (folder / META).write_text(json.dumps(meta))


def _read_meta(folder: Path) -> dict[str, Any] | None:
    """Return what `write_meta` wrote; None if the layout is another one or a file is seen not to be as it was."""
    meta: dict[str, Any] = json.loads((folder / META).read_text())
    # The first structures have neither `check` nor `checks`, later ones no checksums of large files.
    check = meta.pop("check", None)
    if meta["layout"] != LAYOUT_VERSION or check not in (None, _checksum([json.dumps(meta).encode()])):
        return None
    sizes = meta["files"]
    if any(not _is_file(folder / name, size) for name, size in sizes.items()):
        return None
    small = {name: check for name, check in meta.get("checks", {}).items() if sizes[name] <= _CHECKED_SIZE}
    if any(_checksum(_parts(folder / name)) != check for name, check in small.items()):
        return None
    return meta


def verify(folder: Path, dimension: int) -> list[str]:
    """Read the current structure completely; return one line per flaw, none if it is sound or there is none yet.

    Structures of earlier versions have no checksums of files over 1 MiB; `HotStructure.fits` checks those.
    """
    if not os.path.lexists(folder / CURRENT):
        return []
    if (opened := open_current(folder, dimension)) is None:
        return [f"{folder}: cannot be opened; it is built again when a search needs it"]
    target = folder / opened.build
    checks = (_read_meta(target) or {}).get("checks", {})
    return [
        f"{target / name}: is not as it was written; delete {folder}, it is built again when a search needs it"
        for name, check in checks.items()
        if _checksum(_parts(target / name)) != check
    ]


def _is_file(file: Path, size: int) -> bool:
    """Return whether this is a real file of the size, not a link."""
    found = file.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == size


def _checksum(parts: Iterable[bytes]) -> int:
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return check


def _parts(file: Path) -> Iterator[bytes]:
    """Yield the content of a file piece by piece."""
    with file.open("rb") as stream:
        while part := stream.read(_PART_SIZE):
            yield part
