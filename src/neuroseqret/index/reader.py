"""`Reader` follows the store: it gives the snapshot of the newest commit and rebuilds the hot structure when it is due.

Rows that were added after the hot structure was built are compared one by one. When these rows, or the removed ones,
become many, the structure is rebuilt.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finder import Mask, Rows, Vectors
from neuroseqret.errors import UserError
from neuroseqret.index import hot, hot_builder
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.filters import Filter, Where
from neuroseqret.index.rows import embeddings_of, list_lengths
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import EMBEDDING, SERIAL, Store
from neuroseqret.storage import lock

#: A rebuild is due when more rows than these, and more than this share of the structure, were added or removed since.
REBUILD_ROWS, REBUILD_FRACTION = 5000, 0.1
_BUILD_TIMEOUT = 3600.0  # seconds to wait for the structure that another process is building
_FILTERS_KEPT = 16  # masks of the conditions that were used last


class Reader:
    """The reading side of an index; its threads may share one."""

    def __init__(self, folder: Path, store: Store, config: IndexConfig) -> None:
        self.folder, self.store, self.config = folder, store, config
        self._lock = threading.RLock()
        self._version = -1
        self._snapshot: Snapshot | None = None
        self._due = False  # whether a rebuild was put off because another process was building

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the newest commit; if nothing changed, this only reads a time stamp."""
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

    def newest(self) -> tuple[Snapshot, int]:
        """Return the snapshot of the newest commit, and the commit's version."""
        with self._lock:
            return self.snapshot(), self._version

    def rebuild(self) -> None:
        """Rebuild the hot structure now, whether it is due or not."""
        with self._lock:
            self._snapshot = self._rebuilt(self.snapshot(), anew=True)

    def _first(self) -> Snapshot:
        found = hot.open_current(self.folder / "hot", self.config.dimension)
        start = _without_tail(found or hot.empty(self.store.schema, self.config.dimension))
        if found is None and self.store.count() > REBUILD_ROWS:
            start = self._rebuilt(start, wait=True)
        return self._follow(start)

    def _rebuilt(self, snapshot: Snapshot, wait: bool = False, anew: bool = False) -> Snapshot:
        """Return a snapshot on a new hot structure, or the given one if none can be built now.

        If another process has built a structure in the meantime and it is recent enough, that one is taken, unless
        one is to be built `anew`.
        """
        self._due = False
        try:
            with lock.held(self.folder / "hot.lock", wait, _BUILD_TIMEOUT) as free:
                if not free:
                    self._due = True
                    return snapshot
                current = None if anew else hot.open_current(self.folder / "hot", self.config.dimension)
                if current is not None and current.build != snapshot.hot.build:
                    followed = self._follow(_without_tail(current))
                    if not _outgrown(followed):
                        return followed
                made = hot_builder.build(self.folder / "hot", self.store, self.config)
        except (OSError, UserError) as error:  # `storage` turns a system error into a user error
            system = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(system, OSError):
                raise
            warnings.warn(
                f"{self.folder}: the search structure cannot be written ({system.strerror}); searching is slower",
                stacklevel=4,
            )
            return snapshot
        return self._follow(_without_tail(made))

    def _follow(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the rows that were added since, and without those that were removed."""
        columns, extra = hot.hit_columns(self.store.schema), [EMBEDDING]
        if self.config.settings.windowed:  # a window's last event follows from its length
            extra.append("marks")
        batches = [b for b in self.store.scan([*columns, *extra], after=snapshot.last_serial) if b.num_rows]
        if batches:
            table = pa.Table.from_batches([b.drop_columns(extra) for b in batches])
            snapshot = _with_tail(
                snapshot,
                table,
                [embeddings_of(b.column(EMBEDDING), self.config.dimension) for b in batches],
                [list_lengths(b.column("marks")) for b in batches if "marks" in extra],
            )
        if self.store.count() != snapshot.count:
            alive = ~_one_of(snapshot.serials, _missing(snapshot.serials, self._serials(None)))
            snapshot = replace(snapshot, alive=alive, dead=len(snapshot) - int(alive.sum()))
        return snapshot

    def _serials(self, where: str | None) -> Rows:
        """Return the serials of the rows that are in the store and meet the condition."""
        batches = [b.column(SERIAL).to_numpy() for b in self.store.scan([SERIAL], where=where)]
        return np.concatenate(batches) if batches else np.empty(0, np.int64)

    def allowed(self, snapshot: Snapshot, where: Where | None) -> Mask:
        """Return a mask over the snapshot's rows that are there and meet the condition; empty if all of them do."""
        condition = None if where is None else Filter.of(where)
        if condition is None:
            return snapshot.alive
        with self._lock:
            filters, text = snapshot.filters, condition.text
            if text not in filters:
                mask = _one_of(snapshot.serials, self._serials(condition.for_columns(self.store.schema)))
                filters[text] = mask & snapshot.alive if len(snapshot.alive) else mask
            filters.move_to_end(text)
            while len(filters) > _FILTERS_KEPT:
                filters.popitem(last=False)
            return filters[text]


def _one_of(serials: Rows, values: Rows) -> Mask:
    """Return `np.isin(serials, values)`; Arrow's hash table takes a third of the time."""
    mask: Mask = pa.compute.is_in(pa.array(serials), value_set=pa.array(values)).to_numpy(zero_copy_only=False)
    return mask


def _missing(serials: Rows, left: Rows) -> Rows:
    """Return the serials that are not in `left`; comparing sorted arrays is fastest if few are missing."""
    have, left = np.sort(serials), np.sort(left)
    if not len(left):
        return have
    return have[left[np.minimum(np.searchsorted(left, have), len(left) - 1)] != have]


def _without_tail(made: hot.HotStructure) -> Snapshot:
    """Return the snapshot of a hot structure alone."""
    return Snapshot(
        made,
        made.serials,
        tail_embeddings=made.embeddings[:0],
        tail_rows=made.rows.slice(0, 0).combine_chunks(),
        tail_lengths=made.lengths[:0],
    )


def _with_tail(
    snapshot: Snapshot,
    table: pa.Table,
    embeddings: Sequence[Vectors],
    lengths: Sequence[npt.NDArray[np.int32]],
) -> Snapshot:
    """Return the snapshot with more rows at its end."""
    serials, alive = table.column(SERIAL).to_numpy(), snapshot.alive
    tables = [snapshot.tail_rows, table.drop_columns([SERIAL])]
    return replace(
        snapshot,
        serials=np.concatenate([snapshot.serials, serials]),
        tail_embeddings=np.concatenate([snapshot.tail_embeddings, *embeddings]),
        tail_rows=pa.concat_tables(tables, promote_options="default").combine_chunks(),
        tail_lengths=np.concatenate([snapshot.tail_lengths, *lengths]),
        alive=np.concatenate([alive, np.ones(len(serials), bool)]) if len(alive) else alive,
    )


def _outgrown(snapshot: Snapshot) -> bool:
    """Return whether so much changed since the hot structure was built that a new one is due."""
    changed = len(snapshot.tail_embeddings) + snapshot.dead
    return changed > max(REBUILD_ROWS, REBUILD_FRACTION * len(snapshot.hot))
