"""Conditions on metadata without the store: the columns that hits are made of are in memory or mapped from the cache.

They become small datasets of the embedded store in memory, so that a condition means exactly what it means there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finder import Rows
from neuroseqret.index import hot
from neuroseqret.index.lance_operations import fitted
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import SERIAL, Store


class LocalFilter:
    """Rows of a snapshot as stores in memory; that of the hot structure is kept while the structure is in use."""

    def __init__(self) -> None:
        self._key: tuple[str, list[str]] = ("", [])
        self._hot: Store | None = None

    def stores(self, snapshot: Snapshot, schema: pa.Schema) -> list[Store]:
        """Return stores that together hold the metadata of all rows of the snapshot, also of removed ones."""
        names = hot.hit_columns(schema)
        wanted = pa.schema([schema.field(name) for name in names])
        key, made = (snapshot.hot.build, names), self._hot
        if made is None or key != self._key:
            made = _in_memory(snapshot.hot.rows, snapshot.hot.serials, wanted)
            self._key, self._hot = key, made
        return [made, _in_memory(snapshot.tail_rows, snapshot.serials[len(snapshot.hot) :], wanted)]


def _in_memory(table: pa.Table, serials: Rows, schema: pa.Schema) -> Store:
    import lance

    whole = fitted(table.append_column(SERIAL, pa.array(np.asarray(serials))), schema)
    return LanceStore(Path("memory"), lance.write_dataset(whole, "memory://filter"))
