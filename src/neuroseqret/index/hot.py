"""The hot structure: everything a search touches, as memory-mapped arrays derived from the store.

It is made from the content alone (rows in the order of their ids' hashes, then cell by cell), so an index that was
filled in one go, in pieces or with removals in between has the same one. It is written to a temporary folder, renamed,
and named in `CURRENT`: a reader has the old one or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates import BucketTables, Cells, load_hash
from neuroseqret.candidates.finders import CellFinder, CodeFinder, Exhaustive, Finder, chosen_method
from neuroseqret.candidates.rounding import RoundedVectors, rounded, scale_of
from neuroseqret.index.config import IndexConfig, IndexSettings, make_hash_function
from neuroseqret.index.rows import embeddings_of
from neuroseqret.index.store import DIGEST, EMBEDDING, KEY, OFFSET, SERIAL, Store

CURRENT, META = "CURRENT", "meta.json"
TIMES, MARKS = "times.bin", "marks.bin"
LAYOUT_VERSION = 2
_CHUNK = 65536
_SMALL = 1 << 20  # bytes of a file that is read whole for its checksum; of a larger one size and shape must do
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Hot:
    """An open hot structure; the arrays are memory maps and cost nothing until they are read."""

    last_serial: int
    serials: npt.NDArray[np.int64]  # (n,)
    embeddings: npt.NDArray[np.float32]  # (n, D)
    rows: pa.Table  # id, group, window, metadata
    finder: Finder
    nbytes: int  # of what a search reads of every row that it compares
    begins: npt.NDArray[np.int64]  # (n,) where the row's events begin in `times` and `marks`
    lengths: npt.NDArray[np.int32]  # (n,)
    times: npt.NDArray[np.float64]
    marks: npt.NDArray[np.int32]
    build: str = ""  # the folder that it lies in

    def __len__(self) -> int:
        return len(self.serials)

    def events(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """The sequences of rows: id, times, marks and the observation window where there is one."""
        lengths = self.lengths[rows].astype(np.int64)
        cuts = np.concatenate([[0], np.cumsum(lengths)])
        source = np.repeat(self.begins[rows] - cuts[:-1], lengths) + np.arange(cuts[-1])
        have = [name for name in ("id", "start", "end") if name in self.rows.column_names]
        table = self.rows.select(have).take(pa.array(rows))
        for name, values in (("times", self.times), ("marks", self.marks)):
            table = table.append_column(name, pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(values[source])))
        return table


def nothing(schema: pa.Schema, dimension: int) -> Hot:
    """The structure of no rows, where none was built yet."""
    embeddings = np.empty((0, dimension), np.float32)
    rows = schema.empty_table().select(look_columns(schema)).drop_columns([SERIAL])
    none, few = np.empty(0, np.int64), np.empty(0, np.int32)
    return Hot(-1, none, embeddings, rows, Exhaustive(embeddings), 0, none, few, np.empty(0), few)


def look_columns(schema: pa.Schema) -> list[str]:
    """The columns that hits are made of: all but events, embeddings and digests."""
    return [name for name in schema.names if name not in ("times", "marks", DIGEST, KEY, EMBEDDING)]


def build(folder: Path, store: Store, config: IndexConfig) -> Hot:
    """Derive the structure from the store's present content and make it the current one."""
    folder.mkdir(exist_ok=True)
    target = folder / f"build-{uuid.uuid4().hex[:12]}"
    temporary = folder / f".{target.name}"
    temporary.mkdir()
    try:
        _write(temporary, store, config)
        os.replace(temporary, target)
        pointer = folder / f".{CURRENT}-{os.getpid()}"
        pointer.write_text(target.name)
        os.replace(pointer, folder / CURRENT)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for old in folder.iterdir():  # open readers keep their maps; the files go when they close
        if old.name not in (CURRENT, target.name):
            shutil.rmtree(old, ignore_errors=True)
    opened = open_current(folder, config.dimension)
    assert opened is not None
    return opened


def open_current(folder: Path, dimension: int) -> Hot | None:
    """The current structure, or None where there is none that can be used, whatever the reason (it is rebuilt then)."""
    try:
        target = folder / (folder / CURRENT).read_text().strip()
        meta = json.loads((target / META).read_text())
        check = meta.pop("check", None)  # the first structures have neither this nor `checks`
        if meta["layout"] != LAYOUT_VERSION or check not in (None, _checksum(json.dumps(meta).encode())):
            return None
        if any((target / name).stat().st_size != size for name, size in meta["files"].items()):
            return None
        if any(_checksum((target / name).read_bytes()) != told for name, told in meta.get("checks", {}).items()):
            return None
        opened = _open(target, meta)
        return opened if _fits(opened, dimension) else None
    except Exception:  # damage has no list of exceptions, and the store has all that is needed
        return None


def _fits(hot: Hot, dimension: int) -> bool:
    """Whether all arrays have the shapes that the kernels, which do not look, rely on."""
    n, finder = len(hot.serials), hot.finder
    shapes: list[tuple[Array, tuple[int, ...]]] = [(hot.embeddings, (n, dimension))]
    shapes += [(hot.serials, (n,)), (hot.begins, (n,)), (hot.lengths, (n,))]
    if isinstance(finder, CellFinder):
        centres, offsets = finder.cells.centres, finder.cells.offsets
        shapes += [(finder.small.numbers, (n, dimension)), (finder.small.scale, (dimension,))]
        shapes += [(centres, (len(centres), dimension)), (offsets, (len(centres) + 1,))]
    elif isinstance(finder, CodeFinder):
        shapes.append((finder.codes, (n, -(-finder.hash.bits // 64))))
        if (tables := finder.tables) is not None:
            number, length = tables.positions.shape
            shapes += [(tables.rows, (number, n)), (tables.offsets, (number, (1 << length) + 1))]
    same = all(array.shape == shape for array, shape in shapes)
    return same and hot.rows.num_rows == n and len(hot.times) == len(hot.marks)


def _checksum(content: bytes) -> int:
    return zlib.crc32(content)


def _write(target: Path, store: Store, config: IndexConfig) -> None:
    store.refresh()
    table, order = _read_rows(store)
    count = table.num_rows
    serials = table.column(SERIAL).to_numpy()[order]
    embeddings, begins, lengths = _read_events(target, store, serials, config.dimension)

    method = chosen_method(config.settings.candidates, count) if count else "exhaustive"
    layout = np.arange(count, dtype=np.int32)
    if method == "cells":
        cells, layout = Cells.build(embeddings)
        scale = scale_of(embeddings)
        np.save(target / "centres.npy", cells.centres)
        np.save(target / "cells.npy", cells.offsets)
        np.save(target / "scale.npy", scale)
        _save_rows(target / "rounded.npy", embeddings, layout, lambda part: rounded(part, scale))
    elif method in ("buckets", "hamming"):
        _write_codes(target, embeddings, config.settings, method)
    _save_rows(target / "embeddings.npy", embeddings, layout)
    for name, column in (("serials", serials), ("begins", begins), ("lengths", lengths)):
        np.save(target / f"{name}.npy", column[layout])
    empty = [name for name in table.column_names if count and table.column(name).null_count == count]
    table = table.drop_columns([SERIAL, *empty]).take(pa.array(order[layout])).combine_chunks()
    with pa.OSFile(str(target / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    files = sorted(target.iterdir())
    meta: dict[str, Any] = {
        "layout": LAYOUT_VERSION,
        "method": method,
        "last_serial": int(serials.max(initial=-1)),
        "files": {f.name: f.stat().st_size for f in files},
        "checks": {f.name: _checksum(f.read_bytes()) for f in files if f.stat().st_size <= _SMALL},
    }
    meta["check"] = _checksum(json.dumps(meta).encode())
    (target / META).write_text(json.dumps(meta))


def _read_rows(store: Store) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """What hits are made of, and the order by key (by place, of windows, which share their sequence's key)."""
    columns = [*look_columns(store.schema), KEY]
    batches = list(store.scan(columns))
    table = pa.Table.from_batches(batches) if batches else store.schema.empty_table().select(columns)
    order = np.lexsort((table.column(OFFSET).fill_null(0).to_numpy(), table.column(KEY).to_numpy()))
    return table.drop_columns([KEY]), order


def _read_events(
    target: Path, store: Store, serials: npt.NDArray[np.int64], dimension: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Embeddings in the order of `serials`, each put to its place as it is read: a copy to sort would double the peak.

    Events are written in the order in which they are read; every row knows where its own begin, and how many.
    """
    count, written = len(serials), 0
    embeddings = np.empty((count, dimension), np.float32)
    begins, lengths = np.empty(count, np.int64), np.empty(count, np.int32)
    by_serial = np.argsort(serials)
    with (target / TIMES).open("wb") as times, (target / MARKS).open("wb") as marks:
        for batch in store.scan([SERIAL, "times", "marks", EMBEDDING]):
            found = np.searchsorted(serials, batch.column(SERIAL).to_numpy(), sorter=by_serial)
            place = by_serial[found]
            embeddings[place] = embeddings_of(batch.column(EMBEDDING), dimension)
            events = _append(times, batch.column("times"))
            _append(marks, batch.column("marks"))
            lengths[place] = events
            begins[place] = written + np.cumsum(events) - events
            written += int(events.sum())
    return embeddings, begins, lengths


def _append(stream: BinaryIO, column: pa.Array) -> npt.NDArray[np.int64]:
    """Write the values of a list column one after another; gives the lists' lengths."""
    offsets = column.offsets.to_numpy()
    stream.write(np.ascontiguousarray(column.values.to_numpy()[offsets[0] : offsets[-1]]).data)
    return np.diff(offsets)


def _write_codes(target: Path, embeddings: npt.NDArray[np.float32], settings: IndexSettings, method: str) -> None:
    hash_function = make_hash_function(settings).fit(embeddings[: 4 * _CHUNK])
    hash_function.save(target / "hash.safetensors")
    codes = hash_function.encode(embeddings)
    np.save(target / "codes.npy", codes)
    if method == "buckets":
        tables = BucketTables.build(
            codes, settings.bits, settings.tables, settings.table_bits, target=settings.fraction
        )
        for name in ("positions", "rows", "offsets"):
            np.save(target / f"table_{name}.npy", getattr(tables, name))


def _save_rows(
    file: Path,
    matrix: npt.NDArray[np.float32],
    order: Array,
    convert: Callable[[npt.NDArray[np.float32]], Array] = np.asarray,
) -> None:
    """`np.save(file, convert(matrix[order]))` without a second copy in memory."""
    with file.open("wb") as stream:
        kind = np.lib.format.dtype_to_descr(convert(matrix[:0]).dtype)
        np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": matrix.shape})
        for begin in range(0, len(order), _CHUNK):
            stream.write(convert(matrix[order[begin : begin + _CHUNK]]).tobytes())


def _open(target: Path, meta: dict[str, Any]) -> Hot:
    def array(name: str) -> Array:
        # An empty file cannot be mapped.
        found = np.load(
            target / f"{name}.npy", mmap_mode="c" if (target / f"{name}.npy").stat().st_size > 128 else None
        )
        return found.view(np.ndarray) if isinstance(found, np.memmap) else found

    embeddings = array("embeddings")
    finder: Finder
    if meta["method"] == "cells":
        small = RoundedVectors(array("rounded"), array("scale"))
        finder = CellFinder(embeddings, small, Cells(array("centres"), array("cells")))
    elif meta["method"] in ("buckets", "hamming"):
        tables = None
        if meta["method"] == "buckets":
            tables = BucketTables(*(array(f"table_{name}") for name in ("positions", "rows", "offsets")))
        finder = CodeFinder(embeddings, load_hash(target / "hash.safetensors"), array("codes"), tables)
    else:
        finder = Exhaustive(embeddings)
    rows = pa.ipc.open_file(pa.memory_map(str(target / "rows.arrow"))).read_all()

    def mapped(name: str, kind: type) -> Array:
        file = target / name
        return np.memmap(file, kind, "c").view(np.ndarray) if file.stat().st_size else np.empty(0, kind)

    # Of the events and of embeddings that are rounded too, a search reads only those of its best rows.
    seldom = {TIMES, MARKS, "embeddings.npy"} if meta["method"] == "cells" else {TIMES, MARKS}
    size = sum(size for name, size in meta["files"].items() if name not in seldom)
    return Hot(
        meta["last_serial"],
        array("serials"),
        embeddings,
        rows,
        finder,
        size,
        array("begins"),
        array("lengths"),
        mapped(TIMES, np.float64),
        mapped(MARKS, np.int32),
        target.name,
    )
