"""Algorithm 1, whole: embed the query, find candidates, score them, rerank the best, give the top K.

    v_q = embed(H_q)                                  the model's own, unwarped where it unwarps
    candidates = finder(v_q)                          cells, buckets, codes, or all
    kappa(q, c) = v_q . v_c                           of every candidate
    s(q, c) = score(H_q, H_c)                         of the best n: a reranking model, or the model itself where its
                                                      score is more than kappa (gamma * SIM, a divergence)

Query expansion: q' = norm(v_q + sum over the top 10 of max(kappa, 0)^3 v_c), and a second search with q'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finders import Mask
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.hit import Hit, Hits, SearchReport
from neuroseqret.index.rows import to_sequences
from neuroseqret.index.snapshot import Rows, Snapshot
from neuroseqret.index.store import OFFSET, PARENT, Store
from neuroseqret.models.base import Embedder, RelevanceModel

EXPAND_BY = 10
_OF_A_HIT = frozenset({"id", "group", "start", "end", PARENT, OFFSET})  # columns that are fields, not metadata


@dataclass(frozen=True)
class SearchOptions:
    """What a search was asked for."""

    k: int = 10
    exhaustive: bool = False
    rerank: RelevanceModel | None = None
    rerank_top: int = 100  # n: how many of the best candidates are reranked (k where that is more)
    expand: bool = False
    fraction: float = 0.01
    at_least: int = 2000

    def __post_init__(self) -> None:
        for name in ("k", "rerank_top", "at_least"):
            if not isinstance(value := getattr(self, name), (int, np.integer)):
                raise UserError(f"{name} is a whole number, not {value!r}")
        if not isinstance(self.fraction, (int, float, np.number)):
            raise UserError(f"fraction is a number, not {self.fraction!r}")
        if self.k < 1 or self.rerank_top < 1:
            raise UserError(f"k and rerank_top are 1 or more, not {self.k} and {self.rerank_top}")
        if not 0 < self.fraction <= 1 or self.at_least < 1:
            raise UserError(
                f"fraction lies in (0, 1] and at_least is 1 or more, not {self.fraction:g} and {self.at_least}"
            )


def scores_by_embedding(model: Embedder) -> bool:
    """Whether the model's score is kappa alone, so that nothing is left to compute after the candidates' scores."""
    if type(model).score is Embedder.score:
        return True
    similarity = getattr(getattr(model, "settings", None), "similarity", None)
    return model.name == "self" and similarity is not None and similarity.form == "none"


@dataclass
class Search:
    """One batch of queries against one snapshot."""

    snapshot: Snapshot
    allowed: Mask
    store: Store
    config: IndexConfig
    options: SearchOptions

    def run(self, queries: EventSequences, vectors: npt.NDArray[np.float32]) -> list[Hits]:
        """The hits of every query; `vectors` are the queries' embeddings."""
        ids = queries.ids.to_pylist()
        return [self._one(queries, row, ids[row], vectors[row]) for row in range(len(queries))]

    def _one(self, queries: EventSequences, row: int, query_id: str, vector: npt.NDArray[np.float32]) -> Hits:
        options = self.options
        compared = 0
        if options.expand:
            rows, scores, compared, _ = self._best(vector, EXPAND_BY)
            vector = expanded(vector, scores, self.snapshot.vectors(rows))
        number = options.k if options.rerank is None else max(options.k, options.rerank_top)
        rows, scores, more, method = self._best_sequences(vector, min(number, max(len(self.snapshot), 1)))
        reranked = 0
        if options.rerank is not None and len(rows):
            reranked = len(rows)
            rows, scores = self._rerank(queries[row : row + 1], rows)
        possible = int(np.count_nonzero(self.allowed)) if len(self.allowed) else len(self.snapshot)
        report = SearchReport(method, possible, compared + more, reranked)
        looked = self.snapshot.look(rows[: options.k])
        hits = (_hit(found, float(scores[at]), at + 1) for at, found in enumerate(looked))
        return Hits(hits, query_id, report)

    def _find(self, vector: npt.NDArray[np.float32], number: int) -> tuple[Rows, npt.NDArray[np.float32], int, str]:
        options = self.options
        rows, scores, compared, method = self.snapshot.best(
            vector, number, self.allowed, options.exhaustive, options.fraction, options.at_least
        )
        return self._settle_ties(rows, scores), scores, compared, method

    def _best(self, vector: npt.NDArray[np.float32], number: int) -> tuple[Rows, npt.NDArray[np.float32], int, str]:
        """The best rows. Where not all of equal score fit in, all of them are found first: ids say who comes in."""
        wanted, compared = number + 1, 0
        while True:
            rows, scores, more, method = self._find(vector, wanted)
            compared += more
            if len(rows) < wanted or scores[-1] < scores[number - 1]:
                return rows[:number], scores[:number], compared, method
            wanted *= 4

    def _best_sequences(
        self, vector: npt.NDArray[np.float32], number: int
    ) -> tuple[Rows, npt.NDArray[np.float32], int, str]:
        """The best rows; of windows only the best one of each sequence, looking further until there are enough."""
        if not self.config.settings.windowed:
            return self._best(vector, number)
        wanted, compared = 4 * number, 0
        while True:
            rows, scores, more, method = self._find(vector, wanted)
            compared += more
            sequence = self.snapshot.column(PARENT, rows).dictionary_encode().indices.to_numpy()
            first = np.sort(np.unique(sequence, return_index=True)[1])[:number]
            if len(rows) < wanted or (
                (len(first) == number or len(first) == self._sequences) and scores[-1] < scores[first[-1]]
            ):
                return rows[first], scores[first], compared, method
            wanted *= 4

    @cached_property
    def _sequences(self) -> int:
        """How many sequences the windows that may be found belong to."""
        possible = np.flatnonzero(self.allowed) if len(self.allowed) else np.arange(len(self.snapshot))
        return int(pa.compute.count_distinct(self.snapshot.column(PARENT, possible)).as_py())

    def _settle_ties(self, rows: Rows, scores: npt.NDArray[np.float32]) -> Rows:
        """Rows of equal score by id, so that their order does not tell when they were added; scores fall already."""
        if len(rows) < 2 or not (scores[1:] == scores[:-1]).any():
            return rows
        by = [PARENT, OFFSET] if self.config.settings.windowed else ["id"]
        ranks = [pa.compute.rank(self.snapshot.column(name, rows), tiebreaker="dense").to_numpy() for name in by]
        return rows[np.lexsort((*reversed(ranks), -scores))]

    def _rerank(self, query: EventSequences, rows: Rows) -> tuple[Rows, npt.NDArray[np.float32]]:
        """The rows in the order of the reranking model's scores."""
        assert self.options.rerank is not None
        table = self.snapshot.sequences(rows, self.store)
        scores = self.options.rerank.score(query, to_sequences(table, self.config))[0]
        order = np.argsort(-scores, kind="stable")
        return self._settle_ties(rows[order], scores[order]), scores[order]


def _hit(found: dict[str, Any], score: float, rank: int) -> Hit:
    """A hit from a row's columns."""
    name, parent, group = found["id"], found.get(PARENT), found.get("group")
    metadata = {key: value for key, value in found.items() if key not in _OF_A_HIT and value is not None}
    if parent is None:
        return Hit(name, score, rank, metadata, group)
    stop = int(name.rsplit(":", 1)[1].rstrip("]"))
    return Hit(parent, score, rank, metadata, group, name, found[OFFSET], stop, found.get("start"), found.get("end"))


def expanded(
    vector: npt.NDArray[np.float32], scores: npt.NDArray[np.float32], neighbours: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """norm(v_q + sum_c max(kappa_c, 0)^3 v_c)."""
    moved = vector + (np.maximum(scores, 0) ** 3) @ neighbours
    return np.asarray(moved / max(float(np.linalg.norm(moved)), 1e-12), np.float32)
