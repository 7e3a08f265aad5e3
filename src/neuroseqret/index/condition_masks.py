"""`ConditionMasks` says which rows of a snapshot meet a condition; the last masks are kept with the snapshot."""

from __future__ import annotations

import threading

import numpy as np

from neuroseqret.candidates.finder import Mask
from neuroseqret.index.filters import Filter, Where
from neuroseqret.index.local_filter import LocalFilter
from neuroseqret.index.serials import is_one_of, serials_of
from neuroseqret.index.snapshot import Snapshot

_KEPT = 16  # masks of the conditions that were used last


class ConditionMasks:
    """Masks over the rows of snapshots of one index; threads may share it."""

    def __init__(self, remote: bool) -> None:
        """`remote`: the store is in a network, so that conditions are computed from what is in memory."""
        self._remote = remote
        self._local_filter = LocalFilter()
        self._masking = threading.Lock()

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
            mask = is_one_of(snapshot.serials, np.concatenate([serials_of(source, wanted) for source in sources]))
            mask = mask & snapshot.alive if len(snapshot.alive) else mask
        with self._masking:
            filters[text] = mask
            filters.move_to_end(text)
            while len(filters) > _KEPT:
                filters.popitem(last=False)
        return mask
