"""One state of the corpus, as a search sees it: the hot structure, the rows committed since, and what was removed.

Immutable but for the masks that `View.allowed` keeps with it: threads that search share it, and one that moves on to
a newer commit makes a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finders import ALL, Exhaustive, Found, Mask
from neuroseqret.index.hot import Hot
from neuroseqret.index.rows import EVENTS
from neuroseqret.index.store import Store

Rows = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Snapshot:
    """Rows are numbered: first those of the hot structure, then the tail (rows that came after it)."""

    hot: Hot
    serials: Rows  # (n,) of all rows
    tail_embeddings: Vectors
    tail_rows: pa.Table
    alive: Mask = field(default_factory=lambda: ALL)  # empty: nothing was removed
    dead: int = 0
    filters: OrderedDict[str, Mask] = field(default_factory=OrderedDict, init=False)  # of these rows, by condition

    def __len__(self) -> int:
        return len(self.serials)

    @property
    def count(self) -> int:
        """Rows that are there."""
        return len(self) - self.dead

    @property
    def last_serial(self) -> int:
        return int(self.serials[len(self.hot) :].max(initial=self.hot.last_serial))

    def best(
        self, vector: npt.NDArray[np.float32], number: int, allowed: Mask, exhaustive: bool, fraction: float, least: int
    ) -> tuple[Rows, Vectors, int, str]:
        """The best rows for a query's embedding, their scores, comparisons made, and the method.

        `fraction` of the allowed rows, `least` of them or more, are compared.
        """
        base = len(self.hot)
        finder, base_allowed = self.hot.finder, allowed[:base]
        usable = int(np.count_nonzero(base_allowed)) if len(allowed) else base
        wanted = max(least, int(np.ceil(fraction * usable)), number)
        # A mask thins the candidates out: look at more rows, or at all where few are allowed.
        wanted = int(np.ceil(wanted * base / usable)) if usable else 0
        if exhaustive or wanted >= base:
            finder = Exhaustive(self.hot.embeddings)
        found: list[Found] = []
        if usable:
            size = min(number, usable)
            found.append(finder.best(vector, size, wanted, base_allowed))
            if len(found[0][0]) < size:  # the mask left too few: look at all
                rows, scores, compared = Exhaustive(self.hot.embeddings).best(vector, size, 0, base_allowed)
                found = [(rows, scores, compared + found[0][2])]
        if len(self.tail_embeddings):
            size = min(number, len(self.tail_embeddings))
            rows, scores, compared = Exhaustive(self.tail_embeddings).best(vector, size, 0, allowed[base:])
            found.append((rows + np.int32(base), scores, compared))
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.float32), 0, finder.method
        if len(found) == 1:  # in order already
            rows, scores, compared = found[0]
            return rows.astype(np.int64), scores, compared, finder.method
        rows = np.concatenate([f[0] for f in found])
        scores = np.concatenate([f[1] for f in found])
        order = np.lexsort((rows, -scores))[:number]
        return rows[order].astype(np.int64), scores[order], sum(f[2] for f in found), finder.method

    def vectors(self, rows: Rows) -> Vectors:
        """Embeddings of rows: (rows, D)."""
        base = len(self.hot)
        out = np.empty((len(rows), self.hot.embeddings.shape[1]), np.float32)
        out[rows < base] = self.hot.embeddings[rows[rows < base]]
        out[rows >= base] = self.tail_embeddings[rows[rows >= base] - base]
        return out

    def look(self, rows: Rows) -> list[dict[str, Any]]:
        """Id, group, window and metadata of rows."""
        base = len(self.hot)
        if (rows < base).all():
            return _records(self.hot.rows, rows)
        late = rows >= base
        early_ones = iter(_records(self.hot.rows, rows[~late]))
        late_ones = iter(_records(self.tail_rows, rows[late] - base))
        return [next(late_ones if is_late else early_ones) for is_late in late]

    def column(self, name: str, rows: Rows) -> pa.Array:
        """One column of rows."""
        base = len(self.hot)
        late = rows >= base
        parts = (
            self.hot.rows.column(name).take(pa.array(rows[~late])),
            self.tail_rows.column(name).take(pa.array(rows[late] - base)),
        )
        place = np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])
        both = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
        return both.take(pa.array(np.argsort(place))).combine_chunks()

    def sequences(self, rows: Rows, store: Store) -> pa.Table:
        """Events of rows, in their order; those of the tail come from the store."""
        base = len(self.hot)
        late = rows >= base
        if not late.any():
            return self.hot.events(rows)
        tables = [self.hot.events(rows[~late]), store.get(self.serials[rows[late]], EVENTS)]
        place = np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])
        return pa.concat_tables(tables, promote_options="default").take(pa.array(np.argsort(place)))


def _records(table: pa.Table, rows: Rows) -> list[dict[str, Any]]:
    """`table.take(rows).to_pylist()`; single values are read faster than a table is taken where rows are few."""
    if len(rows) > 32:
        taken: list[dict[str, Any]] = table.take(pa.array(rows)).to_pylist()
        return taken
    columns = [(name, table.column(name).chunk(0)) for name in table.column_names] if len(rows) else []
    return [{name: column[row].as_py() for name, column in columns} for row in rows.tolist()]
