"""`Writer` adds, replaces and removes sequences. Each batch is one commit: all of it is stored, or nothing.

Adding is idempotent: a sequence that is there with the same events is skipped, so an interrupted run is continued by
running it again. The same id with other events is an error; `upsert` replaces the sequence.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequences import STRING, EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import rows
from neuroseqret.index.as_written import hashes_of
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.engines import Mirror
from neuroseqret.index.keys import KeySet, hash_strings
from neuroseqret.index.store import DIGEST, KEY, SERIAL, Conflict, Store, first_serial
from neuroseqret.models.base import Embedder

Hashes = npt.NDArray[np.int64]
_NEW, _SAME, _OTHER = 0, 1, 2
ATTEMPTS = 40  # to commit, while writers on other machines are faster
_LONGEST_PAUSE = 1.0  # seconds between two attempts
R = TypeVar("R")


@dataclass
class Added:
    """What an `add` or `upsert` did, in sequences."""

    added: int = 0
    already_there: int = 0
    replaced: int = 0

    def __iadd__(self, other: Added) -> Added:
        self.added += other.added
        self.already_there += other.already_there
        self.replaced += other.replaced
        return self


class Writer:
    """The writing side of an index; its threads may share one."""

    _version: int  # of the store, when its keys were read

    def __init__(self, store: Store, config: IndexConfig, mirror: Mirror | None = None) -> None:
        self.store, self.config, self.mirror = store, config, mirror
        self._keys_lock = threading.Lock()  # guards the known keys from other threads
        self._forget()

    def add(self, model: Embedder, batch: EventSequences, upsert: bool = False) -> Added:
        """Add one batch, its marks numbered as the index's, in one commit; return when it is safe on disk."""
        rows.check_columns(batch)
        if not len(batch):
            return Added()
        keys, events = hashes_of(batch)
        _check_unique(batch, keys)
        with self._keys_lock:
            fresh = self._state_of(batch, keys, events, upsert) != _SAME
        done = Added(already_there=int((~fresh).sum()))
        if not fresh.any():
            return done
        batch, keys, events = batch[fresh], keys[fresh], events[fresh]
        parts, owner = rows.cut_windows(batch, self.config)
        embeddings = rows.check_vectors(
            model.embed(parts, "corpus", unknown_marks="keep", strict=None), parts, self.config
        )

        def commit() -> npt.NDArray[np.int8]:
            # Another process may have added some of these while they were embedded.
            state = self._state_of(batch, keys, events, upsert)
            keep = np.flatnonzero(state[owner] != _SAME)
            if len(keep):
                self._commit(
                    parts[keep], embeddings[keep], keys[owner[keep]], events[owner[keep]], keys[state == _OTHER]
                )
            return state

        state = self._in_turn(commit)
        done.already_there += int((state == _SAME).sum())
        done.added, done.replaced = int((state == _NEW).sum()), int((state == _OTHER).sum())
        return done

    def _in_turn(self, change: Callable[[], R]) -> R:
        """Call a function that reads keys and commits a change; again if a writer elsewhere came first."""
        for attempt in range(ATTEMPTS):
            try:
                with self.store.turn(), self._keys_lock:
                    return change()
            except Conflict:
                time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_PAUSE)))
        raise UserError(f"other writers were faster {ATTEMPTS} times; nothing was changed, try again later")

    def _commit(
        self, parts: EventSequences, embeddings: npt.NDArray[np.float32], keys: Hashes, events: Hashes, replaced: Hashes
    ) -> None:
        """Write rows in place of those with a replaced key, on top of the version whose keys were read."""
        serial = first_serial(self._version)
        table = rows.to_rows(parts, embeddings, keys, events, serial, self.config.settings.windowed)
        with self._mirrored(table, replaced):
            if len(replaced):
                done = self.store.replace(table, replaced.tolist(), self._version)
            else:
                done = self.store.put(table, self._version)
        self._known.add(keys, events)
        self._version, self._last_serial, self._rows = done.version, serial + len(parts) - 1, done.count()

    def _mirrored(self, rows: pa.Table | None, removed: Hashes) -> AbstractContextManager[None]:
        """Make the block's commit in the engine too, if the index has one."""
        return nullcontext() if self.mirror is None else self.mirror.change(rows, removed.tolist())

    def remove(self, ids: Sequence[str]) -> int:
        """Remove sequences with all their windows by id; skip unknown ids. Return how many were removed."""
        keys = np.unique(hash_strings(pa.array(list(ids), STRING)))

        def commit() -> int:
            self._read_keys()
            present = keys[self._known.find(keys)[0]]
            if len(present):
                with self._mirrored(None, present):
                    self.store.delete(present.tolist())
                self._forget()
            return len(present)

        return self._in_turn(commit)

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that the index does not hold, each once, in their order."""
        names = list(dict.fromkeys(ids))
        with self._keys_lock:
            self._read_keys()
            there = self._known.find(hash_strings(pa.array(names, STRING)))[0]
        return [name for name, known in zip(names, there.tolist(), strict=True) if not known]

    def compact(self, grace: float) -> None:
        """Merge the store's small files; delete versions that are older than `grace` seconds."""

        def commit() -> None:
            self.store.refresh()
            self.store.compact(grace)

        self._in_turn(commit)

    def _state_of(self, batch: EventSequences, keys: Hashes, events: Hashes, upsert: bool) -> npt.NDArray[np.int8]:
        """Return for every sequence whether it is new, there with the same events, or there with other events."""
        self._read_keys()
        there, known = self._known.find(keys)
        state = np.where(there, _OTHER, _NEW).astype(np.int8)
        if upsert:
            return state
        state[there & (known == events)] = _SAME
        if (state == _OTHER).any():
            raise DataError(
                "the index has a sequence with this id and other events",
                sequence=batch.ids[int(np.argmax(state == _OTHER))].as_py(),
                remedy="use upsert to replace it, or give it another id",
            )
        return state

    def _forget(self) -> None:
        self._known, self._version, self._last_serial, self._rows = KeySet(), -1, -1, 0

    def _read_keys(self) -> None:
        """Bring the known keys up to date: read those of new rows, or all of them if rows were removed."""
        if self.store.refresh() == self._version:
            return
        store = self.store.pinned()
        if not self._read_since(store):
            self._forget()
            self._read_since(store)
        self._version = store.version

    def _read_since(self, store: Store) -> bool:
        """Read the keys after the last known serial; return False if known rows are no longer there."""
        found = list(store.scan([SERIAL, KEY, DIGEST], after=self._last_serial))
        new = sum(batch.num_rows for batch in found)
        if store.count() != self._rows + new:
            return False
        if new:
            serials, keys, events = (
                np.concatenate([batch.column(name).to_numpy() for batch in found]) for name in (SERIAL, KEY, DIGEST)
            )
            self._known.add(keys, events)
            self._last_serial, self._rows = int(serials.max()), self._rows + new
        return True


def sum_of(parts: Iterable[Added]) -> Added:
    """Return what several calls did together."""
    done = Added()
    for part in parts:
        done += part
    return done


def in_threads(
    add: Callable[[EventSequences], Added], batches: Iterable[EventSequences], number: int
) -> Iterator[Added]:
    """Call `add` for every batch, in several threads if `number` is above 1; no more batches than that are read."""
    if number == 1:
        yield from map(add, batches)
        return
    with ThreadPoolExecutor(number) as pool:
        waiting: deque[Future[Added]] = deque()
        for batch in batches:
            waiting.append(pool.submit(add, batch))
            if len(waiting) > number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _check_unique(batch: EventSequences, keys: Hashes) -> None:
    """Raise a `DataError` if an id occurs twice."""
    order = np.argsort(keys, kind="stable")
    again = order[1:][np.diff(keys[order]) == 0]
    if len(again):
        raise DataError(
            "the id occurs more than once in one batch",
            sequence=batch.ids[int(again[0])].as_py(),
            remedy="make ids unique",
        )
