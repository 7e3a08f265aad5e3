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
from neuroseqret.candidates.finder import ALL, Finder, Found, GrowingFinder, Mask, Rows, Vectors
from neuroseqret.data.sequences import STRING
from neuroseqret.data.unlocked import unlocked
from neuroseqret.index.hot import HotStructure
from neuroseqret.index.keys import find_rows, hash_strings, rows_by_hash
from neuroseqret.index.rows import EVENTS
from neuroseqret.index.store import PARENT, Store


@unlocked
@dataclass(frozen=True)
class Snapshot:
    """Rows are numbered: first those of the hot structure, then the tail, which came after it.

    Every row of the tail is compared with a query. If the tail becomes long, its first rows are `filed` in the hot
    structure's cells, and searches treat them as those of the hot structure.
    """

    hot: HotStructure
    serials: Rows  # (n,) of all rows
    tail_embeddings: Vectors  # of the rows that are not filed
    tail_rows: pa.Table  # id, group, window, metadata
    tail_lengths: npt.NDArray[np.int32]  # numbers of events; only an index of windows has them
    tail_events: pa.Table | None = None  # None: they are read from the store
    alive: Mask = field(default_factory=lambda: ALL)  # which rows are still there; empty if all of them are
    dead: int = 0  # how many rows were removed
    filed: GrowingFinder | None = None  # over the first rows of the tail
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
    def tail(self) -> int:
        """Number of rows that came after the hot structure was built, removed ones too."""
        return len(self) - len(self.hot)

    @property
    def nbytes(self) -> int:
        """Bytes that searches read."""
        filed = 0 if self.filed is None else self.filed.nbytes + self.filed.embeddings.nbytes
        return self.hot.nbytes + filed + self.tail_embeddings.nbytes

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

        A `fraction` of the allowed rows of the hot structure are compared, or `at_least` of them, and as large a part
        of the filed rows; and all others of the tail.
        """
        base, filed = len(self.hot), self.filed
        found = [_best_of(self.hot.finder, vector, number, allowed[:base], exhaustive, fraction, at_least)]
        if filed is not None:
            stop = base + len(filed.embeddings)
            share = at_least * len(filed.embeddings) // base
            late = _best_of(filed, vector, number, allowed[base:stop], exhaustive, fraction, share)
            found.append(replace(late, rows=late.rows + base))
            base = stop
        if len(self.tail_embeddings):
            size = min(number, len(self.tail_embeddings))
            late = ExhaustiveFinder(self.tail_embeddings).best(vector, size, allowed=allowed[base:])
            found.append(replace(late, rows=late.rows + base))
        return found[0] if len(found) == 1 else _best_of_all(found, number)

    def with_tail_filed(self) -> Snapshot:
        """Return the same snapshot with the whole tail filed, if the hot structure has a place for it."""
        base, finder = len(self.hot), self.filed or self.hot.finder.emptied()
        if finder is None:
            return self
        order, filed = finder.grown(self.tail_embeddings)
        rows = pa.array(order)
        return replace(
            self,
            serials=np.concatenate([self.serials[:base], self.serials[base:][order]]),
            tail_embeddings=self.tail_embeddings[:0],
            tail_rows=self.tail_rows.take(rows),
            tail_lengths=self.tail_lengths[order] if len(self.tail_lengths) else self.tail_lengths,
            tail_events=None if self.tail_events is None else self.tail_events.take(rows),
            alive=np.concatenate([self.alive[:base], self.alive[base:][order]]) if len(self.alive) else self.alive,
            filed=filed,
        )

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
        filed = [] if self.filed is None else [self.filed.embeddings]
        return _taken([self.hot.embeddings, *filed, self.tail_embeddings], rows)

    def lengths(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the numbers of events of rows, in an index of windows."""
        return _taken([self.hot.lengths, self.tail_lengths], rows)

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


def _best_of(
    finder: Finder, vector: Vectors, number: int, allowed: Mask, exhaustive: bool, fraction: float, at_least: int
) -> Found:
    """Return the best of a finder's rows, fewer than `number` only if there are no more."""
    base, every_row = len(finder.embeddings), ExhaustiveFinder(finder.embeddings)
    usable = int(np.count_nonzero(allowed)) if len(allowed) else base
    if not usable:
        method = every_row.method if exhaustive else finder.method
        return Found(np.empty(0, np.int64), np.empty(0, np.float32), 0, method)
    number = min(number, usable)
    # Only `usable` of the rows that a finder visits are compared, so it has to visit more.
    wanted = int(np.ceil(max(at_least, int(np.ceil(fraction * usable)), number) * base / usable))
    found = (every_row if exhaustive or wanted >= base else finder).best(vector, number, wanted, allowed)
    if len(found.rows) < number:  # the mask left too few of the candidates
        more = every_row.best(vector, number, allowed=allowed)
        found = replace(found, rows=more.rows, scores=more.scores, compared=more.compared)
    return found


def _best_of_all(found: Sequence[Found], number: int) -> Found:
    """Return the best `number` of what was found in parts, which are in the order of their rows."""
    scores = np.concatenate([part.scores for part in found])
    order = _falling(scores)[:number]
    return replace(
        found[0],
        rows=np.concatenate([part.rows for part in found])[order],
        scores=scores[order],
        compared=sum(part.compared for part in found),
        centres=sum(part.centres for part in found),
    )


def _falling(scores: Vectors) -> Rows:
    """Return the order of falling scores; equal ones stay as they are. Of few, Python's lock is kept."""
    if len(scores) > 128:
        return np.argsort(-scores, kind="stable")
    values = (-scores).tolist()
    return np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)


def _taken(parts: Sequence[npt.NDArray[Any]], rows: Rows) -> npt.NDArray[Any]:
    """Return `np.concatenate(parts)[rows]` without making that array."""
    taken, base = np.empty((len(rows), *parts[0].shape[1:]), parts[0].dtype), 0
    for part in parts:
        here = (rows >= base) & (rows < base + len(part))
        taken[here] = part[rows[here] - base]
        base += len(part)
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
