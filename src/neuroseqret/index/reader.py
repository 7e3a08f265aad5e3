"""`Reader` follows the store: it gives the snapshot of the newest commit and rebuilds the hot structure when it is due.

Rows that were added after the hot structure was built are compared one by one. When these rows, or the removed ones,
become many, a thread in the background builds a new structure. Searches go on with the old one and the rows since, and
change over when the new one is complete. Only the first structure of a large index is waited for: there is no old one.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finder import Mask, Rows, Vectors
from neuroseqret.errors import UserError
from neuroseqret.index import building_apart, hot, hot_builder
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.filters import Filter, Where
from neuroseqret.index.keys import find_rows, hash_strings
from neuroseqret.index.local_filter import LocalFilter
from neuroseqret.index.rows import EVENTS, embeddings_of, list_lengths
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import EMBEDDING, PARENT, SERIAL, Store
from neuroseqret.index.watching import watch
from neuroseqret.storage import lock
from neuroseqret.storage.files import system_error_of

#: A rebuild is due when more rows than these, and more than this share of the structure, were added or removed since.
REBUILD_ROWS, REBUILD_FRACTION = 5000, 0.1
_BUILD_TIMEOUT = 3600.0  # seconds to wait for the structure that another process is building
_RETRY = 60.0  # seconds after a failed rebuild
#: In the background, rows are filed when there are so many of them, and this share of those that are filed already.
FILED_ROWS, FILED_FRACTION = 4096, 0.125
_FILTERS_KEPT = 16  # masks of the conditions that were used last


class Reader:
    """The reading side of an index; its threads may share one.

    A snapshot never changes, so that searches need no lock. Threads take turns only to follow a new commit, which reads
    what was added or removed since.
    """

    def __init__(self, folder: Path, store: Store, config: IndexConfig, every: float | None = None) -> None:
        """`every`: seconds between two looks for new commits in the background; None: look before every search.

        Only a store in a network is given them here. Then nothing that a search needs is read from the store either.
        """
        self.folder, self.store, self.config, self.every = folder, store, config, every
        self._remote = every is not None
        self._key_column = PARENT if config.settings.windowed else "id"  # what the key of a row is the hash of
        self._local_filter = LocalFilter()
        self._watched = False
        self.apart = False  # whether the hot structure is built in a process of its own
        self._following, self._masking, self._filing = threading.Lock(), threading.Lock(), threading.Lock()
        self._snapshot: Snapshot | None = None
        self._builder: threading.Thread | None = None
        self._not_before = 0.0  # of the monotonic clock: when a failed rebuild may be tried again

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the newest commit; if nothing changed, this only reads a time stamp.

        With `every`, it is the newest commit that was seen in the background: nothing is waited for.
        """
        snapshot = self._snapshot
        if snapshot is not None and (self.every is not None or not self.store.changed(_version(snapshot))):
            return snapshot
        return self.follow()

    def watch(self, every: float, apart: bool = False) -> None:
        """Follow commits in the background from now on, unless that is done already."""
        self.apart = apart
        if self.every is None:
            self.every = every
            self.follow()

    def catch_up(self) -> None:
        """Follow a commit of this process, so that its next search sees it although others follow in the background."""
        if self.every is not None and self._snapshot is not None:
            with suppress(UserError):  # the commit was made; the background will see it
                self.look()

    def follow(self) -> Snapshot:
        """Go to the newest commit and return its snapshot."""
        with self._following:
            snapshot = self._snapshot or self._first()
            if self.store.refresh() != _version(snapshot):
                snapshot = self._follow(snapshot, self.store.pinned())
            self._publish(snapshot)
            return snapshot

    def look(self) -> None:
        """Go to the newest commit. If it brings many rows, file them before a search would compare all of them."""
        with self._filing:  # in turn: nobody files what another thread is filing
            if (before := self._snapshot) is None:
                self.follow()
                return
            new = self.store.refresh() != _version(before)
            ahead = _filed(self._follow(before, self.store.pinned()) if new else before)
            with self._following:
                now = self._snapshot
                if now is not None and now is not before:  # another thread has followed meanwhile
                    ahead = now if now.hot is not ahead.hot else ahead  # a new structure has most of the rows
                    ahead = self._follow(ahead, self.store.pinned())
                self._publish(ahead)

    def _publish(self, snapshot: Snapshot) -> None:
        """Let searches see a snapshot; start what it asks for. The caller holds `_following`."""
        self._snapshot = snapshot
        if _outgrown(snapshot):
            self._start_building()
        if self.every is not None and not self._watched:
            self._watched = True
            watch(self)

    def newest(self) -> tuple[Snapshot, int]:
        """Return the snapshot of the newest commit, and the commit's version."""
        snapshot = self.snapshot()
        return snapshot, _version(snapshot)

    def rebuild(self) -> None:
        """Rebuild the hot structure now, whether it is due or not; return when it is in use."""
        self.wait()
        self.follow()
        self._build(anew=True)

    def wait(self) -> None:
        """Return when no rebuild is running."""
        if (builder := self._builder) is not None:
            builder.join()

    def _first(self) -> Snapshot:
        """Return the first snapshot, of the structure that is there; build one if there is none and rows are many."""
        found = hot.open_current(self.folder / "hot", self.config.dimension)
        if found is None:
            self.store.refresh()
            found = self._built(in_use="") if self.store.count() > REBUILD_ROWS else None
        return _without_tail(found or hot.empty(self.store.schema, self.config.dimension))

    def _start_building(self) -> None:
        """Start a rebuild in the background unless one is running; the caller holds `_following`."""
        if (self._builder is None or not self._builder.is_alive()) and time.monotonic() >= self._not_before:
            # Not a daemon: a process that ends waits for it, so that the next one finds the new structure.
            self._builder = threading.Thread(target=self._build, name="neuroseqret-rebuild", daemon=False)
            self._builder.start()

    def _build(self, anew: bool = False) -> None:
        """Build a structure and change over to it; searches go on meanwhile."""
        try:
            made = self._built(None if anew or self._snapshot is None else self._snapshot.hot.build)
            if made is None:
                return
            made.by_serial  # noqa: B018  (computed here, so that no search has to)
            made.by_hash(self._key_column)
            self.store.refresh()  # another process may have built it from a newer commit
            ahead = self._follow(_without_tail(made), self.store.pinned())  # most of the way without the lock
            ahead = _filed(ahead) if self._watched else ahead
            with self._following:
                self.store.refresh()
                self._snapshot = self._follow(ahead, self.store.pinned())
        except Exception as error:
            if anew:
                raise
            self._not_before = time.monotonic() + _RETRY
            warnings.warn(
                f"{self.folder}: the search structure cannot be rebuilt ({error}); searching is slower", stacklevel=2
            )

    def _built(self, in_use: str | None) -> hot.HotStructure | None:
        """Return a new hot structure; None, with a warning, if none can be written.

        If another process has built one in the meantime, other than the one `in_use`, that one is taken.
        """
        try:
            if self._remote:
                self.folder.mkdir(parents=True, exist_ok=True)  # a cache may be deleted at any time
            with lock.held(self.folder / "hot.lock", timeout=_BUILD_TIMEOUT):
                current = None if in_use is None else hot.open_current(self.folder / "hot", self.config.dimension)
                if current is not None and current.build != in_use:
                    self.store.refresh()  # it may be of a newer commit
                    followed = self._follow(_without_tail(current), self.store.pinned())
                    if not _outgrown(followed):
                        return current
                apart = self.apart and not self._remote
                build = building_apart.build if apart else hot_builder.build
                return build(self.folder / "hot", self.store.pinned(), self.config)
        except (OSError, UserError) as error:  # `storage` turns a system error into a user error
            if (system := system_error_of(error)) is None:
                raise
            self._not_before = time.monotonic() + _RETRY
            warnings.warn(
                f"{self.folder}: the search structure cannot be written ({system.strerror}); searching is slower",
                stacklevel=4,
            )
            return None

    def _follow(self, snapshot: Snapshot, store: Store) -> Snapshot:
        """Return the snapshot with the rows that were added since, and without those that were removed."""
        parts = store.parts()
        columns, extra = hot.hit_columns(store.schema), [EMBEDDING]
        if self.config.settings.windowed:  # a window's last event follows from its length
            extra.append("marks")
        if self._remote:  # whoever searches does not wait for the network to see a new row's events
            extra = [EMBEDDING, "times", "marks"]
        new = parts.keys() - snapshot.parts.keys()
        found = store.scan([*columns, *extra], after=snapshot.last_serial, parts=new)
        if batches := [b for b in found if b.num_rows]:
            table = pa.Table.from_batches([b.drop_columns(extra) for b in batches])
            snapshot = _with_tail(
                snapshot,
                table,
                [embeddings_of(b.column(EMBEDDING), self.config.dimension) for b in batches],
                [list_lengths(b.column("marks")) for b in batches if self.config.settings.windowed],
                pa.Table.from_batches(batches).select(list(EVENTS)) if self._remote else None,
            )
            if store.count() != snapshot.count:
                snapshot = self._without_replaced(snapshot, table.num_rows)
        if store.count() != snapshot.count:
            snapshot = self._without_removed(snapshot, store, parts)
        return replace(snapshot, store=store, parts=parts)

    def _without_replaced(self, snapshot: Snapshot, new: int) -> Snapshot:
        """Return the snapshot without the rows whose key is that of one of the `new` last ones: upserts replaced them.

        This reads nothing from the store, and after an upsert there is nothing else that was removed.
        """
        base, of_tail = len(snapshot.hot), hash_strings(snapshot.tail_rows.column(self._key_column).combine_chunks())
        late, keys = of_tail[:-new], np.unique(of_tail[-new:])
        alive = snapshot.alive.copy() if len(snapshot.alive) else np.ones(len(snapshot), bool)
        alive[find_rows(snapshot.hot.by_hash(self._key_column), keys)[1]] = False
        alive[np.flatnonzero(np.isin(late, keys)) + base] = False
        return replace(snapshot, alive=alive, dead=len(snapshot) - int(alive.sum()))

    def _without_removed(self, snapshot: Snapshot, store: Store, parts: dict[str, int]) -> Snapshot:
        """Return the snapshot without the rows that the store no longer has."""
        alive = snapshot.alive.copy() if len(snapshot.alive) else np.ones(len(snapshot), bool)
        if snapshot.parts.keys() <= parts.keys():  # look only at the parts that lost rows
            changed = [name for name, rows in parts.items() if rows != snapshot.parts.get(name)]
            alive[snapshot.rows_of_serials(store.removed(changed))] = False
        dead = len(snapshot) - int(alive.sum())
        if len(snapshot) - dead != store.count():  # a part is gone: look at all rows
            alive = ~_one_of(snapshot.serials, _missing(snapshot.serials, _serials(store, None)))
            dead = len(snapshot) - int(alive.sum())
        return replace(snapshot, alive=alive, dead=dead)

    def allowed(self, snapshot: Snapshot, where: Where | None) -> Mask:
        """Return a mask over the snapshot's rows that are there and meet the condition; empty if all of them do."""
        condition = None if where is None else Filter.of(where)
        if condition is None:
            return snapshot.alive
        store, filters, text = snapshot.store, snapshot.filters, condition.text
        assert store is not None
        with self._masking:
            mask = filters.get(text)
        if mask is None:  # without the lock: other searches need not wait for this condition
            sources = self._local_filter.stores(snapshot, store.schema) if self._remote else [store]
            wanted = condition.for_columns(store.schema)
            mask = _one_of(snapshot.serials, np.concatenate([_serials(source, wanted) for source in sources]))
            mask = mask & snapshot.alive if len(snapshot.alive) else mask
        with self._masking:
            filters[text] = mask
            filters.move_to_end(text)
            while len(filters) > _FILTERS_KEPT:
                filters.popitem(last=False)
        return mask


def _version(snapshot: Snapshot) -> int:
    return -1 if snapshot.store is None else snapshot.store.version


def _serials(store: Store, where: str | None) -> Rows:
    """Return the serials of the rows that are in the store and meet the condition."""
    batches = [b.column(SERIAL).to_numpy() for b in store.scan([SERIAL], where=where)]
    return np.concatenate(batches) if batches else np.empty(0, np.int64)


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
        parts=made.parts,
    )


def _with_tail(
    snapshot: Snapshot,
    table: pa.Table,
    embeddings: Sequence[Vectors],
    lengths: Sequence[npt.NDArray[np.int32]],
    events: pa.Table | None,
) -> Snapshot:
    """Return the snapshot with more rows at its end."""
    if events is not None and snapshot.tail_events is not None:
        events = pa.concat_tables([snapshot.tail_events, events], promote_options="default")
    serials, alive = table.column(SERIAL).to_numpy(), snapshot.alive
    tables = [snapshot.tail_rows, table.drop_columns([SERIAL])]
    return replace(
        snapshot,
        serials=np.concatenate([snapshot.serials, serials]),
        tail_embeddings=np.concatenate([snapshot.tail_embeddings, *embeddings]),
        tail_rows=pa.concat_tables(tables, promote_options="default").combine_chunks(),
        tail_lengths=np.concatenate([snapshot.tail_lengths, *lengths]),
        tail_events=None if events is None else events.combine_chunks(),
        alive=np.concatenate([alive, np.ones(len(serials), bool)]) if len(alive) else alive,
    )


def _filed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its tail filed if that is long; this takes longer than a search should."""
    many = max(FILED_ROWS, FILED_FRACTION * snapshot.tail)
    return snapshot.with_tail_filed() if len(snapshot.tail_embeddings) > many else snapshot


def _outgrown(snapshot: Snapshot) -> bool:
    """Return whether so much changed since the hot structure was built that a new one is due."""
    changed = snapshot.tail + snapshot.dead
    return changed > max(REBUILD_ROWS, REBUILD_FRACTION * len(snapshot.hot))
