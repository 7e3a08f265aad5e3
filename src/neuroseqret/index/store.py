"""`Store`: the contract of the place where an index keeps its sequences.

The store is the truth; everything else in the index is derived from it. A row is one sequence (or window) with its
embedding. `nsr_serial` identifies it: unique, rising with every commit, never used again. Every method that writes is
one commit: other processes see all of it or nothing, and a call that returned survives the end of the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SERIAL, KEY, DIGEST, PARENT, OFFSET, EMBEDDING = (
    "nsr_serial",  # int64: identifies the row
    "nsr_key",  # int64: hash of the sequence's id
    "nsr_digest",  # int64: hash of the sequence's events
    "nsr_parent",  # id of the sequence that a window was cut from
    "nsr_offset",  # int64: number of the window's first event in it
    "nsr_embedding",
)
INTERNAL = (SERIAL, KEY, DIGEST, PARENT, OFFSET, EMBEDDING)
#: Names that the embedded store uses itself, and characters that it writes to a name but cannot read back.
RESERVED = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
UNFIT = ".`\0"


class Store(Protocol):
    """Rows of an Arrow schema; `lance_store` has the embedded one."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, as of the last `refresh`."""

    def refresh(self) -> int:
        """Go to the newest commit; return its version, which rises with every commit."""

    def changed(self, version: int) -> bool:
        """Return whether there may be a newer commit than this version. Must be cheap: called before every search."""

    def pinned(self) -> Store:
        """Return the store as this object sees it now, for reading alone: later commits do not change what it gives."""

    def put(self, rows: pa.Table) -> None:
        """Append rows. Columns that the store does not have yet are added; they are null in earlier rows."""

    def replace(self, rows: pa.Table, keys: Sequence[int]) -> None:
        """Remove all rows with one of the keys and add the given ones."""

    def delete(self, keys: Sequence[int]) -> None:
        """Remove all rows with one of the keys."""

    def get(self, serials: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the rows with these serials, in their order."""

    def scan(self, columns: Sequence[str], after: int = -1, where: str | None = None) -> Iterator[pa.RecordBatch]:
        """Return rows with a serial above `after` that meet the SQL condition, in batches, in no particular order."""

    def count(self) -> int:
        """Return the number of rows."""

    def compact(self) -> None:
        """Merge small files and update what speeds up access; the content stays the same."""
