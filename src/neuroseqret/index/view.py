"""Follows the store: gives the snapshot of its newest commit, and rebuilds the hot structure when it pays.

Rows that came after the hot structure are few and compared one by one; when they or the removed rows become many
the structure is rebuilt.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finders import Mask
from neuroseqret.index import hot
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.rows import embeddings_of
from neuroseqret.index.snapshot import Rows, Snapshot
from neuroseqret.index.store import EMBEDDING, SERIAL, Store
from neuroseqret.storage import lock

REBUILD_ROWS, REBUILD_FRACTION = 5000, 0.1
_FILTERS_KEPT = 16


class View:
    def __init__(self, folder: Path, store: Store, config: IndexConfig) -> None:
        self.folder, self.store, self.config = folder, store, config
        self._lock = threading.RLock()
        self._version = -1
        self._snapshot: Snapshot | None = None
        self._due = False  # a rebuild that had to wait, since another process was at it

    def snapshot(self) -> Snapshot:
        """The newest commit's; costs a look at a time stamp when nothing changed."""
        with self._lock:
            if self._snapshot is None or self.store.changed(self._version):
                version = self.store.refresh()
                if self._snapshot is None:
                    self._snapshot = self._first()
                elif version != self._version:
                    self._snapshot = self._follow(self._snapshot)
                self._version = version
            elif not self._due:
                return self._snapshot
            if self._due or _outgrown(self._snapshot):
                self._snapshot = self._rebuilt(self._snapshot)
            return self._snapshot

    def rebuild(self) -> None:
        """Derive the hot structure anew, whether it pays or not."""
        with self._lock:
            self._snapshot = self._rebuilt(self.snapshot(), anew=True)

    def _first(self) -> Snapshot:
        found = hot.open_current(self.folder / "hot", self.config.dimension)
        start = _start(found or hot.nothing(self.store.schema, self.config.dimension))
        if found is None and self.store.count() > REBUILD_ROWS:
            start = self._rebuilt(start, wait=True)
        return self._follow(start)

    def _rebuilt(self, snapshot: Snapshot, wait: bool = False, anew: bool = False) -> Snapshot:
        """The snapshot on a new hot structure; where that cannot be now the given one, which still serves.

        Another process' structure is taken if it pays, unless one is to be made `anew`.
        """
        self._due = False
        try:
            with lock.held(self.folder / "hot.lock", wait) as free:
                if not free:
                    self._due = True
                    return snapshot
                current = None if anew else hot.open_current(self.folder / "hot", self.config.dimension)
                if current is not None and current.build != snapshot.hot.build:
                    followed = self._follow(_start(current))
                    if not _outgrown(followed):
                        return followed
                made = hot.build(self.folder / "hot", self.store, self.config)
        except OSError as error:
            warnings.warn(
                f"{self.folder}: the search structure cannot be written ({error.strerror}); searching is slower",
                stacklevel=4,
            )
            return snapshot
        return self._follow(_start(made))

    def _follow(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what was added since, and without what was removed."""
        columns = [*hot.look_columns(self.store.schema), EMBEDDING]
        batches = [b for b in self.store.scan(columns, after=snapshot.last_serial) if b.num_rows]
        if batches:
            new = [embeddings_of(b.column(EMBEDDING), self.config.dimension) for b in batches]
            table = pa.Table.from_batches([b.drop_columns([EMBEDDING]) for b in batches])
            serials = table.column(SERIAL).to_numpy()
            alive = snapshot.alive
            snapshot = replace(
                snapshot,
                serials=np.concatenate([snapshot.serials, serials]),
                tail_embeddings=np.concatenate([snapshot.tail_embeddings, *new]),
                tail_rows=pa.concat_tables(
                    [snapshot.tail_rows, table.drop_columns([SERIAL])], promote_options="default"
                ).combine_chunks(),
                alive=np.concatenate([alive, np.ones(len(serials), bool)]) if len(alive) else alive,
            )
        if self.store.count() != snapshot.count:
            alive = ~_one_of(snapshot.serials, _missing(snapshot.serials, self._found(None)))
            snapshot = replace(snapshot, alive=alive, dead=len(snapshot) - int(alive.sum()))
        return snapshot

    def _found(self, where: str | None) -> Rows:
        """Serials of the rows that are there and meet the condition."""
        batches = [b.column(SERIAL).to_numpy() for b in self.store.scan([SERIAL], where=where)]
        return np.concatenate(batches) if batches else np.empty(0, np.int64)

    def allowed(self, snapshot: Snapshot, where: str | None) -> Mask:
        """The snapshot's rows that are there and meet the condition, as a mask; empty for all rows."""
        if where is None:
            return snapshot.alive
        with self._lock:
            filters = snapshot.filters
            if where not in filters:
                mask = _one_of(snapshot.serials, self._found(where))
                filters[where] = mask & snapshot.alive if len(snapshot.alive) else mask
            filters.move_to_end(where)
            while len(filters) > _FILTERS_KEPT:
                filters.popitem(last=False)
            return filters[where]


def _one_of(serials: Rows, values: Rows) -> Mask:
    """`np.isin`, by Arrow's hash table in a third of the time."""
    mask: Mask = pa.compute.is_in(pa.array(serials), value_set=pa.array(values)).to_numpy(zero_copy_only=False)
    return mask


def _missing(serials: Rows, left: Rows) -> Rows:
    """The serials that are not left; usually few, which two sorted arrays tell faster than a table of all."""
    have, left = np.sort(serials), np.sort(left)
    if not len(left):
        return have
    return have[left[np.minimum(np.searchsorted(left, have), len(left) - 1)] != have]


def _start(made: hot.Hot) -> Snapshot:
    dimension = made.embeddings.shape[1]
    return Snapshot(made, made.serials, np.empty((0, dimension), np.float32), made.rows.slice(0, 0).combine_chunks())


def _outgrown(snapshot: Snapshot) -> bool:
    changed = len(snapshot.tail_embeddings) + snapshot.dead
    return changed > max(REBUILD_ROWS, REBUILD_FRACTION * len(snapshot.hot))
