"""One state of the corpus, as a search sees it: the hot structure, the rows committed since, and what was removed.

A snapshot does not change, except for the masks that `Reader.allowed` keeps with it. So threads that search can share
it; a newer commit gets a new snapshot.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.candidates.finder import ALL, Found, Mask, Rows, Vectors
from neuroseqret.data.sequences import STRING
from neuroseqret.data.unlocked import unlocked
from neuroseqret.index.hot import HotStructure
from neuroseqret.index.keys import find_rows, hash_strings, rows_by_hash
from neuroseqret.index.rows import EVENTS
from neuroseqret.index.store import PARENT, Store


@unlocked
@dataclass(frozen=True)
class Snapshot:
    """Rows are numbered: first those of the hot structure, then the tail, which came after it."""

    hot: HotStructure
    serials: Rows  # (n,) of all rows
    tail_embeddings: Vectors
    tail_rows: pa.Table  # id, group, window, metadata
    tail_lengths: npt.NDArray[np.int32]  # numbers of events; only an index of windows has them
    tail_events: pa.Table | None = None  # None: they are read from the store
    alive: Mask = field(default_factory=lambda: ALL)  # which rows are still there; empty if all of them are
    dead: int = 0  # how many rows were removed
    store: Store | None = None  # the store as of the snapshot's commit; None if there is no commit behind it yet
    parts: dict[str, int] = field(default_factory=dict)  # of the store: how many rows each of them had
    filters: OrderedDict[str, Mask] = field(default_factory=OrderedDict, init=False)  # masks over rows, by condition

    def __len__(self) -> int:
        return len(self.serials)

    @property
    def count(self) -> int:
        """Number of rows that are still there."""
        return len(self) - self.dead

    @property
    def last_serial(self) -> int:
        return int(self.serials[len(self.hot) :].max(initial=self.hot.last_serial))

    def rows_of_serials(self, serials: Rows) -> Rows:
        """Return the rows with these serials, those that there are."""
        found = []
        late = self.serials[len(self.hot) :]
        for own, order, base in (
            (self.hot.serials, self.hot.by_serial, 0),
            (late, np.argsort(late), len(self.hot)),
        ):
            if not len(own):
                continue
            at = order[np.minimum(np.searchsorted(own, serials, sorter=order), len(own) - 1)]
            found.append(at[own[at] == serials] + base)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def best(
        self, vector: Vectors, number: int, allowed: Mask, *, exhaustive: bool, fraction: float, at_least: int
    ) -> Found:
        """Return the best `number` of the allowed rows that were compared, by the dot product of embeddings.

        A `fraction` of the allowed rows of the hot structure are compared, or `at_least` of them; and all of the tail.
        """
        base = len(self.hot)
        found = self._best_of_hot(vector, number, allowed[:base], exhaustive, fraction, at_least)
        if not len(self.tail_embeddings):
            return found
        size = min(number, len(self.tail_embeddings))
        late = ExhaustiveFinder(self.tail_embeddings).best(vector, size, allowed=allowed[base:])
        rows = np.concatenate([found.rows, late.rows + base])
        scores = np.concatenate([found.scores, late.scores])
        order = np.lexsort((rows, -scores))[:number]
        return replace(found, rows=rows[order], scores=scores[order], compared=found.compared + late.compared)

    def _best_of_hot(
        self, vector: Vectors, number: int, allowed: Mask, exhaustive: bool, fraction: float, at_least: int
    ) -> Found:
        base, every_row = len(self.hot), ExhaustiveFinder(self.hot.embeddings)
        usable = int(np.count_nonzero(allowed)) if len(allowed) else base
        if not usable:
            method = every_row.method if exhaustive else self.hot.finder.method
            return Found(np.empty(0, np.int64), np.empty(0, np.float32), 0, method)
        number = min(number, usable)
        # Only `usable` of the rows that a finder visits are compared, so it has to visit more.
        wanted = int(np.ceil(max(at_least, int(np.ceil(fraction * usable)), number) * base / usable))
        finder = every_row if exhaustive or wanted >= base else self.hot.finder
        found = finder.best(vector, number, wanted, allowed)
        if len(found.rows) < number:  # the mask left too few of the candidates
            more = every_row.best(vector, number, allowed=allowed)
            found = replace(found, rows=more.rows, scores=more.scores, compared=more.compared)
        return found

    def rows_of(self, ids: Sequence[str]) -> Rows:
        """Return the row that each id has now, -1 where there is none."""
        wanted = hash_strings(pa.array(list(ids), STRING))
        found = np.full(len(ids), -1)
        for table, base in ((self.hot.by_hash("id"), 0), (self._tail_by_hash, len(self.hot))):
            positions, rows = find_rows(table, wanted)
            there = self.alive[rows + base] if len(self.alive) else np.ones(len(rows), bool)
            found[positions[there]] = rows[there] + base
        return found

    @cached_property
    def _tail_by_hash(self) -> tuple[Rows, Rows]:
        return rows_by_hash(self.tail_rows.column("id").combine_chunks())

    def number_of_parents(self) -> int:
        """Return the number of sequences that the windows of an index of windows were cut from."""
        alive = np.flatnonzero(self.alive) if len(self.alive) else np.arange(len(self))
        return int(pa.compute.count_distinct(self.column(PARENT, alive)).as_py())

    def vectors(self, rows: Rows) -> Vectors:
        """Return the embeddings of rows: (rows, D)."""
        return _take_from_both(self.hot.embeddings, self.tail_embeddings, rows)

    def lengths(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the numbers of events of rows, in an index of windows."""
        return _take_from_both(self.hot.lengths, self.tail_lengths, rows)

    def records(self, rows: Rows) -> list[dict[str, Any]]:
        """Return id, group, window and metadata of rows, one dictionary per row."""
        base = len(self.hot)
        late = rows >= base
        if not late.any():
            return _records(self.hot.rows, rows)
        of_hot = iter(_records(self.hot.rows, rows[~late]))
        of_tail = iter(_records(self.tail_rows, rows[late] - base))
        return [next(of_tail if is_late else of_hot) for is_late in late]

    def column(self, name: str, rows: Rows) -> pa.Array:
        """Return one of the columns of `records`."""
        base = len(self.hot)
        late = rows >= base
        parts = (
            self.hot.rows.column(name).take(pa.array(rows[~late])),
            self.tail_rows.column(name).take(pa.array(rows[late] - base)),
        )
        both = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
        return both.take(_original_order(late)).combine_chunks()

    def sequences(self, rows: Rows, store: Store) -> pa.Table:
        """Return the events of rows; those of the tail are read from the store."""
        late = rows >= len(self.hot)
        if not late.any():
            return self.hot.events(rows)
        if self.tail_events is None:
            of_tail = store.get(self.serials[rows[late]], EVENTS)
        else:
            of_tail = self.tail_events.take(pa.array(rows[late] - len(self.hot)))
        tables = [self.hot.events(rows[~late]), of_tail]
        return pa.concat_tables(tables, promote_options="default").take(_original_order(late))


def _take_from_both(first: npt.NDArray[Any], second: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    """Return `np.concatenate([first, second])[rows]` without making that array."""
    late = rows >= len(first)
    taken = np.empty((len(rows), *first.shape[1:]), first.dtype)
    taken[~late] = first[rows[~late]]
    taken[late] = second[rows[late] - len(first)]
    return taken


def _original_order(late: Mask) -> pa.Array:
    """Return the order that undoes putting the rows that are not late before those that are."""
    return pa.array(np.argsort(np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])))


def _records(table: pa.Table, rows: Rows) -> list[dict[str, Any]]:
    """Return `table.take(rows).to_pylist()`; reading single values is faster if rows are few."""
    if len(rows) > 32:
        taken: list[dict[str, Any]] = table.take(pa.array(rows)).to_pylist()
        return taken
    columns = [(name, table.column(name).chunk(0)) for name in table.column_names] if len(rows) else []
    return [{name: column[row].as_py() for name, column in columns} for row in rows.tolist()]
