"""Reads back what the embedded store has written, and goes back to an earlier version if the newest cannot be read."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa

from neuroseqret.index.lance_files import LanceFiles, is_whole
from neuroseqret.index.store import SERIAL

TABLE = "sequences"
FAILURES = (RuntimeError, ValueError, OSError)  # what Lance raises


def open_table(folder: Path) -> Any:
    """Open the table anew, without anything that an open one keeps in memory."""
    return lancedb.connect(str(folder)).open_table(TABLE)


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
        read_through(open_table(files.folder), (safe or version - 1) << 32)
    except FAILURES:
        return False
    return True


def read_through(table: Any, first: int) -> None:
    """Read all columns of the rows from serial `first` on, and the serials of the others; raise if that fails."""
    read_serials(table)
    for _ in table.search().where(f"{SERIAL} >= {first}").to_batches():
        pass


def read_serials(table: Any) -> None:
    """Read one column of all rows, and with it which rows were removed; raise if that fails."""
    expected, found = table.count_rows(), sum(b.num_rows for b in table.search().select([SERIAL]).to_batches())
    if found != expected:
        raise OSError(f"{expected} rows are expected, {found} are there")


def read_added(table: Any, rows: pa.Table) -> None:
    """Read the rows that were added last; raise if that fails or they are not the given ones."""
    added = table.search().offset(table.count_rows() - rows.num_rows).limit(rows.num_rows).to_arrow()
    if not np.array_equal(np.sort(added.column(SERIAL).to_numpy()), np.sort(rows.column(SERIAL).to_numpy())):
        raise OSError("other rows are there than were written")


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
        table = open_table(files.folder)
        back = int(table.version)
        while table.version < newest:
            table.restore(int(table.version))
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
