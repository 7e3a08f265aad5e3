"""Reads back what the embedded store has written, and goes back to an earlier version if the newest cannot be read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuroseqret.index.lance_files import LanceFiles, is_whole
from neuroseqret.index.store import SERIAL, first_serial

if TYPE_CHECKING:
    from lance import LanceDataset

#: Bytes of what was read from the store that stay in memory. Lance would keep 7 GiB, and every commit adds 30 kB.
METADATA_KEPT, INDEXES_KEPT = 16 << 20, 64 << 20
FAILURES = (RuntimeError, ValueError, OSError)  # what Lance raises; besides, its panics are no `Exception`


def is_failure(error: BaseException) -> bool:
    """Return whether Lance or Arrow raised this because of what is on the disk."""
    return isinstance(error, FAILURES) or type(error).__name__ == "PanicException"  # a class that is nowhere exported


def open_dataset(uri: str) -> LanceDataset:
    """Open the newest version anew, without anything that an open one keeps in memory."""
    import lance  # here, because it takes a quarter of a second

    return lance.dataset(uri, metadata_cache_size_bytes=METADATA_KEPT, index_cache_size_bytes=INDEXES_KEPT)


def is_usable(files: LanceFiles) -> bool:
    """Return whether the newest version can be read.

    A version that was acknowledged is not checked beyond its manifest. One that was not may lack some of its content
    after a power cut.
    """
    version, manifest = files.newest()
    if not version or not is_whole(manifest):
        return False
    safe = files.synced_version()
    if safe is None or version <= safe:  # None: by an earlier version of the library
        return True
    try:
        read_through(open_dataset(str(files.table)), first_serial(safe or version - 1))
    except BaseException as error:
        if is_failure(error):
            return False
        raise
    return True


def check_deletions(dataset: LanceDataset, table: Path) -> None:
    """Raise an `OSError` if a file of removed rows is damaged: where it lies about sizes, Lance ends the process."""
    for fragment in dataset.get_fragments():
        file = fragment.deletion_file()
        if file is None or not file.endswith(".arrow"):
            continue
        try:
            with pa.OSFile(str(table / file)) as stream:
                pa.ipc.open_file(stream).read_all().validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise OSError(f"{file} is damaged ({error})") from error


def read_through(dataset: LanceDataset, first: int) -> None:
    """Read all columns of the rows from serial `first` on, and the serials of the others; raise if that fails."""
    read_serials(dataset)
    for _ in dataset.to_batches(filter=f"{SERIAL} >= {first}"):
        pass


def read_serials(dataset: LanceDataset) -> None:
    """Read one column of all rows, and with it which rows were removed; raise if that fails."""
    expected, found = dataset.count_rows(), sum(b.num_rows for b in dataset.to_batches(columns=[SERIAL]))
    if found != expected:
        raise OSError(f"{expected} rows are expected, {found} are there")


def read_added(dataset: LanceDataset, rows: pa.Table, before: Iterable[int]) -> None:
    """Read the fragments that are not among those of `before`; raise if that fails or a row is missing."""
    known = set(before)
    new = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id not in known]
    serials = dataset.scanner(fragments=new).to_table().column(SERIAL).to_numpy()
    if not np.isin(rows.column(SERIAL).to_numpy(), serials).all():
        raise OSError("not all rows are there that were written")


def fall_back(files: LanceFiles) -> None:
    """Go back to the newest version that can be read. The caller holds the write lock.

    Manifests of later versions are renamed. Their numbers are used up, since serials are made of them.
    """
    aside: list[tuple[Path, Path]] = []
    newest, _ = files.newest()
    try:
        while not is_usable(files):
            version, manifest = files.newest()
            if version <= 1:
                raise OSError("no version can be read; restore a copy or make the index again")
            aside.append((manifest, files.set_aside(manifest)))
        dataset = open_dataset(str(files.table))
        back = dataset.version
        while dataset.version < newest:
            dataset.restore()
    except BaseException:
        for manifest, renamed in aside:
            os.replace(renamed, manifest)
        raise
    files.sync(newest)
    files.mark()
    if aside:
        warnings.warn(
            f"{files.folder}: version {newest} cannot be read, probably after a power cut; the index went back to "
            f"version {back}, check what was added last ({aside[-1][1]} is kept)",
            stacklevel=5,
        )
