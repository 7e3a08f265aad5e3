"""Derives the hot structure from the store.

The structure depends on the content alone: rows are in the order of the hashes of their ids, then in the order that the
finder wants. So an index that was filled in one go, in pieces or with removals in between has the same structure. It is
written to a temporary folder, renamed, and then named in `CURRENT`: a reader sees the old one or the new one, never a
part.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.arrays import save_in_order
from neuroseqret.candidates.finders import choose_finder
from neuroseqret.index import hot
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.rows import embeddings_of
from neuroseqret.index.store import EMBEDDING, KEY, OFFSET, SERIAL, Store
from neuroseqret.storage.files import new_file, new_folder

#: What systems say of a call that a file system does not have; on macOS the first two are different numbers.
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.ENODEV, errno.EINVAL)
_ZEROS = 1 << 20  # bytes that are written at once
_OLD_BUILD = re.compile(rf"{hot.BUILD_NAME.pattern}|\.{hot.BUILD_NAME.pattern}-.*")  # complete, or temporary


def build(folder: Path, store: Store, config: IndexConfig) -> hot.HotStructure:
    """Derive the structure from a pinned store, make it the current one and open it.

    Building removes older builds, so `folder` may not be a link to somewhere else.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link, which is not followed; remove it")
    target = folder / f"build-{uuid.uuid4().hex[:12]}"
    with new_folder(target, hot.META) as temporary:
        _write(temporary, store, config)
    with new_file(folder / hot.CURRENT) as pointer:
        pointer.write_text(target.name)
    _remove_others(folder, target.name)
    opened = hot.open_current(folder, config.dimension)
    assert opened is not None
    return opened


def _remove_others(folder: Path, current: str) -> None:
    """Remove older builds, and what a process that was killed left of its own; leave everything else alone.

    A process that has an old structure open keeps its memory maps until it closes them.
    """
    for old in folder.iterdir():
        if old.name == current or old.is_symlink():
            continue
        if _OLD_BUILD.fullmatch(old.name) and old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        elif old.name.startswith(f".{hot.CURRENT}-") and old.is_file():
            old.unlink(missing_ok=True)


def _write(target: Path, store: Store, config: IndexConfig) -> None:
    """Write the files of the structure; the store must be pinned, since it is scanned twice."""
    table, by_key = _read_rows(store)
    serials = table.column(SERIAL).to_numpy()[by_key]
    embeddings, begins, lengths = _write_events(target, store, serials, config.dimension)
    finder = choose_finder(config.settings.candidates, len(serials))
    order = finder.write(target, embeddings, config.settings)
    save_in_order(target / hot.EMBEDDINGS, embeddings, order)
    np.save(target / hot.SERIALS, serials[order])
    np.save(target / hot.BEGINS, begins[order])
    np.save(target / hot.LENGTHS, lengths[order])
    _write_rows(target / hot.ROWS, table.take(pa.array(by_key[order])))
    hot.write_meta(target, finder.method, int(serials.max(initial=-1)), store.parts())


def _read_rows(store: Store) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the columns that hits are made of, and the order by key.

    The windows of one sequence share its key and are ordered by offset.
    """
    columns = [*hot.hit_columns(store.schema), KEY]
    batches = list(store.scan(columns))
    table = pa.Table.from_batches(batches) if batches else store.schema.empty_table().select(columns)
    order = np.lexsort((table.column(OFFSET).fill_null(0).to_numpy(), table.column(KEY).to_numpy()))
    return table.drop_columns([KEY]), order


def _write_rows(file: Path, table: pa.Table) -> None:
    """Write the columns of hits; those without any value are left out."""
    count = table.num_rows
    without_values = [name for name in table.column_names if count and table.column(name).null_count == count]
    table = table.drop_columns([SERIAL, *without_values]).combine_chunks()
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_events(
    target: Path, store: Store, serials: npt.NDArray[np.int64], dimension: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Write times and marks; return the embeddings, where each row's events begin, and how many they are.

    Events are written in the order in which the store gives them. Embeddings go to their place in the order of
    `serials` as they are read: sorting them later would take a second copy.
    """
    count, written = len(serials), 0
    embeddings = _scratch(target, count, dimension)
    begins, lengths = np.empty(count, np.int64), np.empty(count, np.int32)
    by_serial = np.argsort(serials)
    with (target / hot.TIMES).open("wb") as times, (target / hot.MARKS).open("wb") as marks:
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


def _scratch(target: Path, count: int, dimension: int) -> npt.NDArray[np.float32]:
    """Return room for embeddings: a mapped file without a name, so that a rebuild beside searches takes little memory.

    The room on the disk is taken at once. A disk that is full is an error here; at a page of a map it would be a signal
    that ends the process. It is plain memory where a file system cannot map what is written (some in a network), and on
    Windows, which cannot remove a folder whose files are mapped.
    """
    shape = count, dimension
    if not count * dimension or os.name == "nt":
        return np.empty(shape, np.float32)
    with tempfile.TemporaryFile(dir=target) as file:
        _take_room(file, 4 * count * dimension)
        try:
            return np.memmap(file, np.float32, "r+", shape=shape).view(np.ndarray)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            return np.empty(shape, np.float32)


def _take_room(file: IO[bytes], size: int) -> None:
    """Take the room of a file on the disk; write zeros where the system or the file system has no call for that."""
    if hasattr(os, "posix_fallocate"):  # macOS does not have it
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    zeros = bytes(min(size, _ZEROS))
    for begin in range(0, size, len(zeros)):
        file.write(zeros[: size - begin])
    file.flush()


def _append(stream: BinaryIO, column: pa.Array) -> npt.NDArray[np.int64]:
    """Write the values of a list column one after another; return the lengths of the lists."""
    offsets = column.offsets.to_numpy()
    stream.write(np.ascontiguousarray(column.values.to_numpy()[offsets[0] : offsets[-1]]).data)
    return np.diff(offsets)
