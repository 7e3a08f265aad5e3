"""`Store`: the contract of the place where an index keeps its sequences.

The store is the truth; everything else in the index is derived from it. A row is one sequence (or window) with its
embedding. Every method that writes is one commit: other processes see all of it or nothing, and a call that returned
survives the end of the process and a power cut.

`nsr_serial` identifies a row: unique, rising with every commit, never used again. Its high half is the version that
the writer read before it wrote (`first_serial`). A store takes rows only if nobody has written since that version and
raises `Conflict` otherwise. So two writers, on whatever machines, cannot use the same serial, and cannot both add a
sequence that neither of them saw: the second one has to read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SERIAL, KEY, DIGEST, CHECK, PARENT, OFFSET, EMBEDDING = (
    "nsr_serial",  # int64: identifies the row
    "nsr_key",  # int64: hash of the sequence's id
    "nsr_digest",  # int64: hash of the sequence's events
    "nsr_check",  # int64: hash of the row's own events and embedding; rows of early indexes have none
    "nsr_parent",  # id of the sequence that a window was cut from
    "nsr_offset",  # int64: number of the window's first event in it
    "nsr_embedding",
)
INTERNAL = (SERIAL, KEY, DIGEST, CHECK, PARENT, OFFSET, EMBEDDING)
#: Names that the embedded store uses itself, and characters that it writes to a name but cannot read back.
RESERVED = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
UNFIT = ".`\0"


class Conflict(Exception):
    """Somebody else has written since the version that a change is based on; read again and repeat the change."""


def first_serial(version: int) -> int:
    """Return the serial of the first of the rows that are written on top of a version."""
    return version << 32


class Store(Protocol):
    """Rows of an Arrow schema; `lance_store` has the embedded one."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, as of the last `refresh`."""

    @property
    def version(self) -> int:
        """The commit that this object sees, as of the last `refresh`; it rises with every commit."""

    def refresh(self) -> int:
        """Go to the newest commit and return its version."""

    def changed(self, version: int) -> bool:
        """Return whether there may be a newer commit than this version. Must be cheap: called before every search."""

    def pinned(self) -> Store:
        """Return the store as this object sees it now, for reading alone: later commits do not change what it gives."""

    def turn(self) -> AbstractContextManager[object]:
        """Let the writers of one machine take turns, so that they do not conflict; nothing depends on it."""

    def put(self, rows: pa.Table, version: int) -> Store:
        """Append rows on top of a version; raise `Conflict` if it is not the newest one.

        Columns that the store does not have yet are added; they are null in earlier rows. Return the store as of this
        commit, pinned.
        """

    def replace(self, rows: pa.Table, keys: Sequence[int], version: int) -> Store:
        """Remove all rows with one of the keys and add the given ones, as `put` does."""

    def delete(self, keys: Sequence[int]) -> None:
        """Remove all rows with one of the keys."""

    def get(self, serials: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the rows with these serials, in their order."""

    def scan(
        self,
        columns: Sequence[str],
        after: int = -1,
        where: str | None = None,
        parts: Collection[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return rows with a serial above `after` that meet the SQL condition, in batches, in no particular order.

        With `parts`, only the rows of these parts.
        """

    def parts(self) -> dict[str, int]:
        """Return how many rows each part of the store has; new rows are in new parts. Must be cheap: reads no rows."""

    def removed(self, parts: Collection[str]) -> npt.NDArray[np.int64]:
        """Return the serials of the rows that were removed from these parts."""

    def count(self) -> int:
        """Return the number of rows."""

    def compact(self, grace: float) -> None:
        """Merge small files without the rows that were removed, and update what speeds up access.

        The content stays the same. Versions that are older than `grace` seconds are deleted with their files.
        """
