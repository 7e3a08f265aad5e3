"""One search through an engine: candidates and conditions are pushed down to it, the rest is done here.

The steps are those of `index.search`; rows are identified by their serials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.engines.engine import Engine
from neuroseqret.index.engines.milvus_rows import LENGTH, is_kept
from neuroseqret.index.filters import Filter, Where
from neuroseqret.index.hit import Hit, Hits, SearchReport
from neuroseqret.index.hot import hit_columns
from neuroseqret.index.rows import EVENTS, to_sequences
from neuroseqret.index.search import EXPAND_BY, SearchOptions, expanded, sequence_hit, window_hit
from neuroseqret.index.store import OFFSET, PARENT, SERIAL, Store

Record = dict[str, Any]


@dataclass
class EngineSearch:
    """One batch of queries against an engine."""

    engine: Engine
    store: Store
    config: IndexConfig
    options: SearchOptions
    where: Where | None = None

    def __post_init__(self) -> None:
        if self.options.exhaustive:
            raise UserError(
                f"{self.engine.address}: Milvus does not compare the query with every sequence; leave out exhaustive, "
                "or look at more candidates with at_least"
            )
        condition = None if self.where is None else Filter.of(self.where)
        self._schema = self.store.schema
        self._condition = "" if condition is None else condition.for_columns(self._schema, self.engine.expression)
        self._size = self.store.count()
        # The index's own number is how many rows this library compares; only a number that was asked for goes along.
        asked = self.options.at_least
        self._at_least = asked if asked != self.config.settings.at_least else None

    def run(self, queries: EventSequences, vectors: Vectors, without: Sequence[Rows] = ()) -> list[Hits]:
        """Return the hits of every query; `without` has the key of the sequence that is not among its hits."""
        ids = queries.ids.to_pylist()
        keys = [int(one[0]) for one in without] if without else [None] * len(queries)
        return [self._one(queries[row : row + 1], ids[row], vectors[row], keys[row]) for row in range(len(queries))]

    def _one(self, query: EventSequences, query_id: str, vector: Vectors, own: int | None) -> Hits:
        options, compared, reranked, embedding = self.options, 0, 0, vector
        if options.expand:
            serials, scores, _, compared = self._best(vector, EXPAND_BY, False, own)
            vector = expanded(vector, scores, self.engine.vectors(serials))
        number = options.k if options.rerank is None else max(options.k, options.rerank_top)
        serials, scores, records, seen = self._best(vector, number, self.config.settings.windowed, own)
        if options.rerank is not None and len(serials):
            reranked = len(serials)
            scores = options.second_scores(
                query,
                embedding,
                lambda: self.engine.vectors(serials),
                lambda: to_sequences(self.store.get(serials, EVENTS), self.config),
            )
            serials, scores, records = _in_order(serials, scores, records)
        hits = self._hits(serials[: options.k], scores.tolist(), records[: options.k])
        return Hits(hits, query_id, SearchReport(self.engine.method, self._size, compared + seen, reranked))

    def _best(
        self, vector: Vectors, number: int, each_sequence_once: bool, own: int | None
    ) -> tuple[Rows, Vectors, list[Record], int]:
        """Return serials, scores and records of the best rows, or of the best window of each sequence.

        As in `index.search`, it asks for more until no row beyond ties with the last one that is returned.
        """
        wanted, compared = 4 * number if each_sequence_once else number + 1, 0
        while True:
            wanted = min(wanted, self.engine.most)
            found = self.engine.best(vector, wanted, self._schema, self._condition, own, self._at_least)
            compared += found.compared
            serials, scores, records = _in_order(found.serials, found.scores, found.records)
            chosen = _first_of_each(records) if each_sequence_once else np.arange(len(records))
            chosen = chosen[:number]
            enough = len(chosen) == number and scores[-1] < scores[chosen[-1]]
            if enough or len(records) < wanted or wanted == self.engine.most:
                return serials[chosen], scores[chosen], [records[at] for at in chosen], compared
            wanted *= 4

    def _hits(self, serials: Rows, scores: list[float], records: list[Record]) -> list[Hit]:
        # Columns of types that the engine does not hold, such as lists, come from the store.
        others = [name for name in hit_columns(self._schema) if not is_kept(self._schema.field(name).type)]
        if others and len(serials):
            found = self.store.get(serials, [SERIAL, *others]).to_pylist()
            records = [
                record | {name: row[name] for name in others} for record, row in zip(records, found, strict=True)
            ]
        if not self.config.settings.windowed:
            return [sequence_hit(record, scores[at], at + 1) for at, record in enumerate(records)]
        return [
            window_hit({n: v for n, v in record.items() if n != LENGTH}, scores[at], at + 1, record[LENGTH])
            for at, record in enumerate(records)
        ]


def _in_order(serials: Rows, scores: Vectors, records: list[Record]) -> tuple[Rows, Vectors, list[Record]]:
    """Order rows by score, those of equal score by id; windows by sequence and offset."""
    order = sorted(
        range(len(records)),
        key=lambda at: (-float(scores[at]), records[at].get(PARENT) or records[at]["id"], records[at].get(OFFSET) or 0),
    )
    return serials[order], scores[order], [records[at] for at in order]


def _first_of_each(records: list[Record]) -> Rows:
    """Return the positions of the first window of each sequence."""
    first: dict[str, int] = {}
    for at, record in enumerate(records):
        first.setdefault(record[PARENT], at)
    return np.array(list(first.values()), np.int64)
