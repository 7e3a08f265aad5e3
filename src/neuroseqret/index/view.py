"""`View`: one state of the corpus, to ask several questions of: hits, sequences by id, pages of the corpus.

`Index.search` asks one question of the newest commit. A program that shows what it found (the server) needs the events,
embeddings and metadata of the same commit, and searches with embeddings that it made itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finder import Mask, Rows, Vectors
from neuroseqret.data.sequences import STRING, EventSequences
from neuroseqret.data.windows import joined
from neuroseqret.errors import UserError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.filters import Where
from neuroseqret.index.hit import Hits
from neuroseqret.index.reader import Reader
from neuroseqret.index.rows import to_sequences
from neuroseqret.index.search import Search, SearchOptions
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import OFFSET, PARENT


@dataclass(frozen=True)
class View:
    """Rows are numbered as in the snapshot. In an index of windows a row is a window."""

    snapshot: Snapshot
    version: int  # of the commit
    reader: Reader
    config: IndexConfig

    def search(
        self,
        queries: EventSequences,
        vectors: Vectors,
        options: SearchOptions,
        where: Where | None = None,
        without: Sequence[Rows] = (),
    ) -> list[Hits]:
        """Return the hits of embedded queries; `vectors` are unit vectors (queries, D).

        `without` gives the rows that each query leaves out, such as its `own_rows`.
        """
        allowed = self.reader.allowed(self.snapshot, where)
        return Search(self.snapshot, allowed, self.snapshot.store or self.reader.store, self.config, options).run(
            queries, vectors, without
        )

    def rows_of(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id, -1 where there is none. In an index of windows ids are those of windows."""
        return self.snapshot.rows_of(ids)

    def rows_of_sequence(self, id: str) -> Rows:
        """Return the rows of a sequence: one, or all its windows in order; none if it is not there."""
        if not self.config.settings.windowed:
            row = self.rows_of([id])
            return row[row >= 0]
        every = np.arange(len(self.snapshot))
        same = pa.compute.equal(self.snapshot.column(PARENT, every), pa.scalar(id, STRING))
        mask: Mask = same.fill_null(False).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(mask & self.snapshot.alive if len(self.snapshot.alive) else mask)
        return rows[np.argsort(self.snapshot.column(OFFSET, rows).to_numpy(zero_copy_only=False), kind="stable")]

    def own_rows(self, id: str) -> Rows:
        """Return the rows of the sequence with this id, or of the one that the window with this id was cut from."""
        row = self.rows_of([id])
        if not self.config.settings.windowed or row[0] < 0:
            return self.rows_of_sequence(id)
        return self.rows_of_sequence(self.snapshot.column(PARENT, row)[0].as_py())

    def whole(self, ids: Sequence[str]) -> EventSequences:
        """Return the sequences or windows with these ids; in an index of windows whole sequences are put together."""
        rows, windowed = [], self.config.settings.windowed
        for id, row in zip(ids, self.rows_of(ids), strict=True):
            rows.append(row[None] if row >= 0 or not windowed else self.rows_of_sequence(id))
            if not len(rows[-1]) or rows[-1][0] < 0:
                raise UnknownId(id)
        if not rows:
            return EventSequences.from_lists([])
        together = np.concatenate(rows)
        found = self.sequences(together)
        if len(found) == len(ids) and found.ids.to_pylist() == list(ids):
            return found
        named = {"parent": PARENT, "offset": OFFSET}
        for name, column in named.items():
            found = found.with_column(name, self.snapshot.column(column, together))
        ends = np.cumsum([len(part) for part in rows])
        parts = [
            joined(found[end - len(part) : end]) if id != found.ids[int(end) - 1].as_py() else found[end - 1 : end]
            for id, part, end in zip(ids, rows, ends, strict=True)
        ]
        return EventSequences.concat(part.without_columns("parent", "offset") for part in parts)

    def embeddings(self, rows: Rows) -> Vectors:
        """Return the embeddings of rows: (rows, D)."""
        return self.snapshot.vectors(rows)

    def sequences(self, rows: Rows) -> EventSequences:
        """Return the rows with events, group and metadata."""
        events = self.snapshot.sequences(rows, self.snapshot.store or self.reader.store)
        for name in self.columns:
            events = events.append_column(name, self.snapshot.column(name, rows))
        return to_sequences(events, self.config)

    @property
    def columns(self) -> list[str]:
        """The names of the columns that a user gave: group and metadata."""
        hidden = {"id", "start", "end", PARENT, OFFSET}
        return [name for name in self.snapshot.hot.rows.column_names if name not in hidden]

    def records(self, rows: Rows) -> list[dict[str, Any]]:
        """Return id, group, window and metadata of rows, one dictionary per row."""
        return self.snapshot.records(rows)

    def page(self, after: int, number: int, where: Where | None = None) -> tuple[Rows, int | None]:
        """Return the next rows after a serial in the order of adding, and the serial to go on from (None: no more)."""
        rows = self._usable(where)
        serials = self.snapshot.serials[rows]
        later = serials > after
        rows, serials = rows[later], serials[later]
        if len(rows) > number:
            first = np.argpartition(serials, number - 1)[:number]
            rows, serials, more = rows[first], serials[first], True
        else:
            more = False
        order = np.argsort(serials)
        return rows[order], int(serials[order[-1]]) if more else None

    def sample(self, number: int, seed: int, where: Where | None = None) -> Rows:
        """Return rows by chance, each at most once."""
        rows = self._usable(where)
        return np.random.default_rng(seed).permutation(rows)[:number]

    def _usable(self, where: Where | None) -> Rows:
        allowed = self.reader.allowed(self.snapshot, where)
        return np.flatnonzero(allowed) if len(allowed) else np.arange(len(self.snapshot))


class UnknownId(UserError):
    """There is no sequence with the id."""

    def __init__(self, id: str) -> None:
        queries = "queries of a data folder are not indexed unless they are added"
        super().__init__(f"the index holds no sequence {id[:200]!r}; check the id ({queries})")
