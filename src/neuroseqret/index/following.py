"""`Follower` brings a snapshot to a newer version of the store: it reads only what was added or removed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finder import Vectors
from neuroseqret.index import hot
from neuroseqret.index.keys import find_rows, hash_strings
from neuroseqret.index.rows import EVENTS, embeddings_of, list_lengths
from neuroseqret.index.serials import is_one_of, missing, serials_of
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import EMBEDDING, PARENT, SERIAL, Store


@dataclass(frozen=True)
class Follower:
    """Follows the store of one index."""

    dimension: int
    windowed: bool
    with_events: bool  # whether the events of new rows are read too: where the store is in a network

    @property
    def key_column(self) -> str:
        """The column that the key of a row is the hash of."""
        return PARENT if self.windowed else "id"

    def follow(self, snapshot: Snapshot, store: Store) -> Snapshot:
        """Return the snapshot with the rows that were added since, and without those that were removed."""
        parts = store.parts()
        columns, extra = hot.hit_columns(store.schema), [EMBEDDING]
        if self.windowed:  # a window's last event follows from its length
            extra.append("marks")
        if self.with_events:  # whoever searches does not wait for the network to see a new row's events
            extra = [EMBEDDING, "times", "marks"]
        new = parts.keys() - snapshot.parts.keys()
        found = store.scan([*columns, *extra], after=snapshot.last_serial, parts=new)
        if batches := [b for b in found if b.num_rows]:
            table = pa.Table.from_batches([b.drop_columns(extra) for b in batches])
            snapshot = _with_more(
                snapshot,
                table,
                [embeddings_of(b.column(EMBEDDING), self.dimension) for b in batches],
                [list_lengths(b.column("marks")) for b in batches if self.windowed],
                pa.Table.from_batches(batches).select(list(EVENTS)) if self.with_events else None,
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
        base, of_tail = len(snapshot.hot), hash_strings(snapshot.tail_rows.column(self.key_column).combine_chunks())
        late, keys = of_tail[:-new], np.unique(of_tail[-new:])
        alive = snapshot.alive.copy() if len(snapshot.alive) else np.ones(len(snapshot), bool)
        alive[find_rows(snapshot.hot.by_hash(self.key_column), keys)[1]] = False
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
            alive = ~is_one_of(snapshot.serials, missing(snapshot.serials, serials_of(store)))
            dead = len(snapshot) - int(alive.sum())
        return replace(snapshot, alive=alive, dead=dead)


def without_tail(made: hot.HotStructure) -> Snapshot:
    """Return the snapshot of a hot structure alone."""
    return Snapshot(
        made,
        made.serials,
        tail_embeddings=made.embeddings[:0],
        tail_rows=made.rows.slice(0, 0).combine_chunks(),
        tail_lengths=made.lengths[:0],
        parts=made.parts,
    )


def _with_more(
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
