"""`Store`: what the index asks of the place where its sequences live.

The store is the truth; everything else in the index is derived from it. A row is one sequence (or window) with its
embedding; `nsr_serial` is its key: unique, rising with every commit, never used again. Every method that writes is
one commit: other processes see all of it or nothing, and what was acknowledged survives the end of the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SERIAL, KEY, DIGEST, PARENT, OFFSET, EMBEDDING = (
    "nsr_serial",  # int64: row key
    "nsr_key",  # int64: hash of the sequence's id
    "nsr_digest",  # int64: hash of the sequence's events
    "nsr_parent",  # the sequence that a window was cut from
    "nsr_offset",  # int64: the window's first event in it
    "nsr_embedding",
)
INTERNAL = (SERIAL, KEY, DIGEST, PARENT, OFFSET, EMBEDDING)
#: Names that the embedded store keeps for itself, and characters that it cannot read back in a name.
RESERVED = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
UNFIT = ".`\0"


class Store(Protocol):
    """Rows of an Arrow schema; see `lance_store` for the embedded one."""

    @property
    def schema(self) -> pa.Schema:
        """Columns as of the version last looked at."""

    def refresh(self) -> int:
        """Look at the newest commit; gives its version, which rises with every commit."""

    def changed(self, version: int) -> bool:
        """Whether there may be a commit newer than the given version; cheap, asked before every search."""

    def put(self, rows: pa.Table) -> None:
        """Append rows. Columns that the store does not have yet are added, null for earlier rows."""

    def replace(self, rows: pa.Table, keys: Sequence[int]) -> None:
        """Remove all rows with one of the keys and add the given ones."""

    def delete(self, keys: Sequence[int]) -> None:
        """Remove all rows with one of the keys."""

    def get(self, serials: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """The rows with these serials, in their order."""

    def scan(self, columns: Sequence[str], after: int = -1, where: str | None = None) -> Iterator[pa.RecordBatch]:
        """Rows with a serial above `after` that meet the SQL condition, in batches, in no particular order."""

    def count(self) -> int:
        """Number of rows."""

    def compact(self) -> None:
        """Merge small files and renew what speeds up access; changes no content."""
