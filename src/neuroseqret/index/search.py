"""Algorithm 1 of the paper: find candidates for an embedded query, score them, rerank the best, return the top K.

    v_q = embed(H_q)                                  by the index's model, which may unwarp the query's times
    candidates = finder(v_q)                          cells, buckets, codes, or all rows
    kappa(q, c) = v_q . v_c                           for every candidate
    s(q, c) = score(H_q, H_c)                         for the best n: by a reranking model, or by the index's model if
                                                      its score is more than kappa (gamma * Sim, a divergence)

Query expansion: q' = norm(v_q + sum over the top 10 of max(kappa, 0)^3 v_c), and a second search with q'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finder import Found, Mask, Rows, Vectors
from neuroseqret.candidates.settings import check_share
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.unlocked import unlocked
from neuroseqret.errors import UserError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.hit import Hit, Hits, SearchReport
from neuroseqret.index.rows import to_sequences
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import OFFSET, PARENT, Store
from neuroseqret.models.base import RelevanceModel, Reranker

EXPAND_BY = 10
_NOT_METADATA = frozenset({"id", "group", "start", "end", PARENT, OFFSET})  # columns that are fields of a hit


@dataclass(frozen=True)
class SearchOptions:
    """What the user of a search asked for."""

    k: int = 10
    exhaustive: bool = False
    rerank: RelevanceModel | None = None
    builds_on_index: bool = False  # the first stage of `rerank` is the index's model
    rerank_top: int = 100  # n: how many of the best candidates are reranked; k of them if k is larger
    expand: Callable[[Vectors], Vectors] | None = None  # the model's `as_query`, if queries are to be expanded
    fraction: float = 0.01
    at_least: int = 2000

    def __post_init__(self) -> None:
        for name in ("k", "rerank_top", "at_least"):
            if not isinstance(value := getattr(self, name), (int, np.integer)):
                raise UserError(f"{name} must be a whole number, not {value!r}")
            object.__setattr__(self, name, int(value))  # numpy's small integers overflow
        if not isinstance(self.fraction, (int, float, np.number)):
            raise UserError(f"fraction must be a number, not {self.fraction!r}")
        if self.k < 1 or self.rerank_top < 1:
            raise UserError("k must be 1 or more" if self.k < 1 else "rerank_top must be 1 or more")
        check_share(self.fraction, self.at_least)
        object.__setattr__(self, "fraction", float(self.fraction))

    def second_scores(
        self,
        query: EventSequences,
        embedding: Vectors,
        vectors: Callable[[], Vectors],
        events: Callable[[], EventSequences],
    ) -> Vectors:
        """Return the scores of `rerank` for the candidates that `vectors` and `events` read.

        If it builds on the index's model, nothing is embedded again, and events are read only if it needs them.
        """
        if self.builds_on_index and isinstance(self.rerank, Reranker):
            return self.rerank.score_embedded(query, embedding, vectors(), events)
        assert self.rerank is not None
        return self.rerank.score(query, events(), unknown_marks="keep")[0]


@unlocked
@dataclass
class Search:
    """One batch of queries against one snapshot."""

    snapshot: Snapshot
    allowed: Mask  # over the snapshot's rows; empty if all of them may be found
    store: Store
    config: IndexConfig
    options: SearchOptions

    def run(self, queries: EventSequences, vectors: Vectors, without: Sequence[Rows] = ()) -> list[Hits]:
        """Return the hits of every query; `vectors` are the embeddings of the queries.

        `without` gives the rows that each query leaves out, if any.
        """
        ids, found = queries.ids.to_pylist(), []
        for row in range(len(queries)):
            search = self._without(without[row]) if len(without) else self
            found.append(search._one(queries, row, ids[row], vectors[row]))
        return found

    def _without(self, rows: Rows) -> Search:
        """Return the same search without some rows."""
        allowed = self.allowed.copy() if len(self.allowed) else np.ones(len(self.snapshot), bool)
        allowed[rows] = False
        return replace(self, allowed=allowed)

    def _one(self, queries: EventSequences, row: int, query_id: str, vector: Vectors) -> Hits:
        """Return the hits of one query: expand it, find the best sequences, rerank them."""
        options = self.options
        compared = centres = reranked = 0
        embedding = vector
        if options.expand is not None:
            near = self._best(vector, EXPAND_BY, each_sequence_once=False)
            vector = expanded(vector, near.scores, options.expand(self.snapshot.vectors(near.rows)))
            compared, centres = near.compared, near.centres
        number = options.k if options.rerank is None else max(options.k, options.rerank_top)
        found = self._best(vector, min(number, max(len(self.snapshot), 1)), self.config.settings.windowed)
        possible = int(np.count_nonzero(self.allowed)) if len(self.allowed) else len(self.snapshot)
        compared = min(compared + found.compared, possible)  # the second search may meet rows of the first again
        centres += found.centres
        if options.rerank is not None and len(found.rows):
            reranked = len(found.rows)
            found = self._reranked(queries[row : row + 1], embedding, found)
        report = SearchReport(found.method, possible, compared, reranked, centres)
        return Hits(self._hits(found), query_id, report)

    def _best(self, vector: Vectors, number: int, each_sequence_once: bool) -> Found:
        """Return the best rows, or the best window of each sequence; rows of equal score are in the order of ids.

        It looks at more rows, four times as many each time, until there are enough and none of the rows beyond ties
        with the last one that is returned: which of those comes first is decided by id.
        """
        wanted, compared = 4 * number if each_sequence_once else number + 1, 0
        options = self.options
        while True:
            found = self.snapshot.best(
                vector,
                wanted,
                self.allowed,
                exhaustive=options.exhaustive,
                fraction=options.fraction,
                at_least=options.at_least,
            )
            compared = max(compared, found.compared)  # a wider search meets the same rows again, and more
            rows, scores = self._in_order(found.rows, found.scores), found.scores
            first, of_first = rows[:number], scores[:number]
            if each_sequence_once:
                chosen = self._first_windows(rows)[:number]
                first, of_first = rows[chosen], scores[chosen]
            if len(rows) < wanted:  # there are no more
                break
            enough = len(first) == number or len(first) == self._sequences
            if enough and scores[-1] < of_first[-1]:
                break
            wanted *= 4
        return replace(found, rows=first, scores=of_first, compared=compared)

    def _first_windows(self, rows: Rows) -> Rows:
        """Return the positions of the first window of each sequence."""
        sequence = self.snapshot.column(PARENT, rows).dictionary_encode().indices.to_numpy()
        return np.sort(np.unique(sequence, return_index=True)[1])

    @cached_property
    def _sequences(self) -> int:
        """Number of sequences that the windows which may be found belong to."""
        possible = np.flatnonzero(self.allowed) if len(self.allowed) else np.arange(len(self.snapshot))
        return int(pa.compute.count_distinct(self.snapshot.column(PARENT, possible)).as_py())

    def _in_order(self, rows: Rows, scores: Vectors) -> Rows:
        """Order rows of equal score by id, so that it does not matter when they were added; scores fall already."""
        if len(rows) < 2 or not (scores[1:] == scores[:-1]).any():
            return rows
        by = [PARENT, OFFSET] if self.config.settings.windowed else ["id"]
        ranks = [pa.compute.rank(self.snapshot.column(name, rows), tiebreaker="dense").to_numpy() for name in by]
        return rows[np.lexsort((*reversed(ranks), -scores))]

    def _reranked(self, query: EventSequences, embedding: Vectors, found: Found) -> Found:
        """Return the same rows with the reranking model's scores, in their order."""
        scores = self.options.second_scores(
            query,
            embedding,
            lambda: self.snapshot.vectors(found.rows),
            lambda: to_sequences(self.snapshot.sequences(found.rows, self.store), self.config),
        )
        order = np.argsort(-scores, kind="stable")
        return replace(found, rows=self._in_order(found.rows[order], scores[order]), scores=scores[order])

    def _hits(self, found: Found) -> list[Hit]:
        """Return the first k rows as hits."""
        rows, scores = found.rows[: self.options.k], found.scores.tolist()
        records = self.snapshot.records(rows)
        if not self.config.settings.windowed:
            return [sequence_hit(record, scores[at], at + 1) for at, record in enumerate(records)]
        lengths = self.snapshot.lengths(rows).tolist()
        return [window_hit(record, scores[at], at + 1, lengths[at]) for at, record in enumerate(records)]


def sequence_hit(record: dict[str, Any], score: float, rank: int) -> Hit:
    """Return a hit of a whole sequence."""
    metadata = {name: value for name, value in record.items() if name not in _NOT_METADATA and value is not None}
    return Hit(record["id"], score, rank, metadata, record.get("group"))


def window_hit(record: dict[str, Any], score: float, rank: int, length: int) -> Hit:
    """Return a hit of a window with this many events: its id is that of the whole sequence."""
    return replace(
        sequence_hit(record, score, rank),
        id=record[PARENT],
        window=record["id"],
        offset=record[OFFSET],
        stop=record[OFFSET] + length,
        start=record.get("start"),
        end=record.get("end"),
    )


def expanded(vector: Vectors, scores: Vectors, neighbours: Vectors) -> Vectors:
    """Return norm(v_q + sum_c max(kappa_c, 0)^3 v_c)."""
    moved = vector + (np.maximum(scores, 0) ** 3) @ neighbours
    return np.asarray(moved / max(float(np.linalg.norm(moved)), 1e-12), np.float32)
