"""`Mirror` keeps an engine's copy in line with the store, which is the truth.

A change is first marked as begun, then committed to the store, then made in the engine; then the mark is removed and
the change acknowledged. Whoever finds a mark without a living writer compares both and makes the engine follow the
store. Rows never change under their serial, so comparing serials is enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.errors import UserError
from neuroseqret.index.engines.engine import Engine
from neuroseqret.index.store import CHECK, DIGEST, EMBEDDING, KEY, SERIAL, Store
from neuroseqret.storage import lock
from neuroseqret.storage.sync import sync_folder

MARK = "engine.pending"
_LEARNED_FROM = 65_536  # rows that a hash function learns from
_COMPARED = 256  # embeddings that `differences` compares
_CLOSE = 1e-4


@dataclass(frozen=True)
class Synced:
    """What `Mirror.sync` did, in rows."""

    added: int = 0
    removed: int = 0


class Marks(Protocol):
    """Notes that a change has begun; they outlive the process."""

    def set(self) -> None:
        """Note that a change begins; safe from a power cut when it returns."""

    def clear(self) -> None:
        """Note that the engine has all that the store has."""

    def left(self) -> bool:
        """Return whether a change has begun and not ended."""

    def alone(self) -> AbstractContextManager[bool]:
        """Keep writers away during the block; give False at once if one of them is at work."""


class FolderMarks:
    """A file in the index's folder; only one process writes at a time."""

    def __init__(self, folder: Path) -> None:
        self.file, self.lock = folder / MARK, folder / "write.lock"

    def set(self) -> None:
        self.file.touch()
        sync_folder(self.file.parent)

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)

    def left(self) -> bool:
        return os.path.lexists(self.file)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        with lock.held(self.lock, wait=False) as free:
            yield free


class Mirror:
    """The pair of a store and an engine."""

    def __init__(self, store: Store, engine: Engine, marks: Marks) -> None:
        self.store, self.engine, self.marks = store, engine, marks

    def heal(self) -> Synced:
        """Bring the engine in line if a writer died in the middle, or if the collection is gone."""
        if not self.marks.left() and not self.engine.missing():
            return Synced()
        with self.marks.alone() as alone:
            return self.sync() if alone else Synced()  # a living writer will end what it began

    @contextmanager
    def change(self, rows: pa.Table | None, keys: Sequence[int] = ()) -> Iterator[None]:
        """Make the block's commit, which adds `rows` and removes all others with `keys`, in the engine too.

        The caller holds the write lock. A failure of the block leaves store and engine as they were. If the engine
        fails afterwards, the store has the change and the mark stays.
        """
        if self.marks.left():
            self.sync()
        if rows is not None:
            self.engine.check(rows)
        old = self._serials(f"{KEY} IN ({', '.join(map(str, keys))})") if len(keys) else np.empty(0, np.int64)
        self.marks.set()
        with ThreadPoolExecutor(1) as pool:  # makes the rows ready while the store writes them
            prepared = None if rows is None else pool.submit(self.engine.prepare, rows)
            try:
                yield
            except Exception:  # the store is unchanged; an interrupt may have come after the commit
                self.marks.clear()
                raise
        try:
            if prepared is not None:
                self.engine.insert(prepared.result())
            self.engine.delete(old)
        except UserError as error:
            raise UserError(
                f"{error}; the change is stored in the index and reaches the engine when the index is opened next, "
                "or with 'neuroseqret index sync'"
            ) from error
        self.marks.clear()

    def sync(self) -> Synced:
        """Make the engine follow the store: add what is missing there, remove what is too much."""
        self.store.refresh()
        empty = self.engine.missing()
        if empty:
            self.engine.make()
        truth = self._serials(None)
        surplus, missing = self._compared(truth) if not empty else (np.empty(0, np.int64), truth)
        self.engine.delete(surplus)
        if len(missing):
            columns = [name for name in self.store.schema.names if name not in ("times", DIGEST, CHECK)]
            for batch in self.store.scan(columns, after=int(missing.min()) - 1):
                wanted = np.isin(batch.column(SERIAL).to_numpy(), missing)
                rows = pa.Table.from_batches([batch]).filter(pa.array(wanted))
                if rows.num_rows:
                    self.engine.check(rows)
                    self.engine.insert(self.engine.prepare(rows), again=not empty)
        self.marks.clear()
        return Synced(len(missing), len(surplus))

    def rebuild(self) -> Synced:
        """Remove the engine's copy and make it again."""
        self.marks.set()
        self.store.refresh()
        self.engine.learn(self._some_embeddings())
        if not self.engine.missing():
            self.engine.clear()
        return self.sync()

    def _some_embeddings(self) -> Vectors:
        """Return the embeddings of the first rows."""
        found: list[Vectors] = []
        for batch in self.store.scan([EMBEDDING]):
            found.append(batch.column(EMBEDDING).flatten().to_numpy().reshape(batch.num_rows, -1))
            if sum(map(len, found)) >= _LEARNED_FROM:
                break
        return np.concatenate(found) if found else np.empty((0, 1), np.float32)

    def differences(self) -> list[str]:
        """Return one line per kind of difference between store and engine; none if they agree."""
        self.store.refresh()
        remedy = "'neuroseqret index sync' makes it follow the index"
        if self.engine.missing():
            return [f"{self.engine.address}: there is no such collection; {remedy}"]
        truth = self._serials(None)
        surplus, missing = self._compared(truth)
        lines = []
        if len(missing):
            lines.append(f"{self.engine.address}: {len(missing):,} of {len(truth):,} rows are missing; {remedy}")
        if len(surplus):
            lines.append(f"{self.engine.address}: {len(surplus):,} rows are there that should not be; {remedy}")
        if lines:
            return lines
        both = truth
        some = both[np.linspace(0, len(both) - 1, min(_COMPARED, len(both))).astype(int)]
        stored = self.store.get(some, [EMBEDDING]).column(EMBEDDING).combine_chunks() if len(some) else None
        if stored is not None:
            embeddings = stored.flatten().to_numpy().reshape(len(some), -1)
            wrong = np.abs(embeddings - self.engine.vectors(some)).max(1) > _CLOSE
            if wrong.any():
                lines.append(
                    f"{self.engine.address}: {int(wrong.sum()):,} of {len(some):,} vectors that were compared are not "
                    "those of the index; 'neuroseqret index sync --anew' fills the collection again"
                )
        return lines

    def _compared(self, truth: Rows) -> tuple[Rows, Rows]:
        """Return the serials to remove from the engine and those to add. One that is there twice is in both."""
        have = self.engine.serials()
        twice = self._twice(have, 0, len(have)) if self.engine.count() != len(have) else np.empty(0, np.int64)
        surplus = np.union1d(np.setdiff1d(have, truth, assume_unique=True), twice)
        return surplus, np.union1d(np.setdiff1d(truth, have, assume_unique=True), np.intersect1d(twice, truth))

    def _twice(self, have: Rows, begin: int, end: int) -> Rows:
        """Return which of the serials are there more than once: halve the range where there are too many rows."""
        if begin == end or self.engine.count(int(have[begin]), int(have[end - 1])) == end - begin:
            return np.empty(0, np.int64)
        if end - begin == 1:
            return have[begin:end]
        middle = (begin + end) // 2
        return np.concatenate([self._twice(have, begin, middle), self._twice(have, middle, end)])

    def _serials(self, where: str | None) -> Rows:
        found = [batch.column(SERIAL).to_numpy() for batch in self.store.scan([SERIAL], where=where)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))
