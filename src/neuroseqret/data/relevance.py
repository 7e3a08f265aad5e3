"""Relevance: for every query, the corpus sequences that answer it.

Sequences of the same group are relevant to one another, unless TREC qrels say otherwise. The pairs are stored as sorted
corpus rows with offsets (one run of rows per query), so that a million sequences need no dictionary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.errors import DataError


@dataclass(frozen=True, repr=False)
class Relevance:
    """The relevant corpus rows of each query, and the labels of all sequences where relevance comes from groups.

    `rows[offsets[q]:offsets[q + 1]]` are the corpus rows relevant to query q, sorted. `labels` is the number of the
    group of every corpus sequence, `query_labels` that of every query; both are None if relevance comes from qrels.
    """

    offsets: IntArray
    rows: IntArray
    corpus_size: int
    labels: IntArray | None = None
    query_labels: IntArray | None = None

    @classmethod
    def from_groups(cls, queries: EventSequence | EventSequences, corpus: EventSequences) -> Relevance:
        """Make the relevance in which sequences of the same `group` are relevant."""
        queries = EventSequences.of(queries)
        if queries.groups is None or corpus.groups is None:
            side = "queries have" if queries.groups is None else "corpus has"
            raise DataError(f"the {side} no groups", remedy="add a column 'group' or a qrels file")
        both = pa.concat_arrays([corpus.groups, queries.groups]).dictionary_encode()
        codes = both.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        labels, query_labels = codes[: len(corpus)], codes[len(corpus) :]
        order = np.argsort(labels, kind="stable")
        begin = np.searchsorted(labels[order], query_labels, side="left")
        stop = np.searchsorted(labels[order], query_labels, side="right")
        stop = np.where(query_labels < 0, begin, stop)  # no group: nothing is relevant
        return cls(*_runs(order, begin, stop), len(corpus), labels, query_labels)

    def fingerprint(self) -> str:
        """Return a hash of all relevant pairs."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.offsets, self.rows):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @classmethod
    def of_table(cls, table: npt.NDArray[np.bool_]) -> Relevance:
        """Make the relevance that `matrix` turns into this table of truth values: (queries, corpus)."""
        offsets = np.cumsum([0, *table.sum(1)], dtype=np.int64)
        return cls(offsets, np.nonzero(table)[1], table.shape[1])

    @classmethod
    def from_qrels(
        cls, queries: EventSequence | EventSequences, corpus: EventSequences, qrels: Mapping[str, Mapping[str, int]]
    ) -> Relevance:
        """Make the relevance in which sequences judged above 0 are relevant; an unknown id in the qrels is an error."""
        queries = EventSequences.of(queries)
        row_of = {id_: row for row, id_ in enumerate(corpus.ids.to_pylist())}
        query_ids = queries.ids.to_pylist()
        if unknown := set(qrels) - set(query_ids):
            raise DataError(
                f"the qrels contain query {min(unknown)!r}, which is not among the queries",
                remedy="use the qrels that belong to these queries",
            )
        lists = []
        for query in query_ids:
            judged = qrels.get(query, {})
            if missing := [doc for doc in judged if doc not in row_of]:
                raise DataError(
                    f"the qrels of query {query!r} contain {missing[0]!r}, which is not in the corpus",
                    remedy="use the qrels that belong to this corpus",
                )
            relevant = [row_of[doc] for doc, grade in judged.items() if grade > 0]
            lists.append(np.sort(np.array(relevant, dtype=np.int64)))
        offsets = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
        return cls(offsets, np.concatenate(lists) if lists else np.empty(0, np.int64), len(corpus))

    def __repr__(self) -> str:
        mean = len(self.rows) / max(len(self), 1)
        return (
            f"Relevance({len(self):,} queries, {self.corpus_size:,} corpus sequences, {mean:,.1f} relevant per query)"
        )

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def counts(self) -> IntArray:
        """Number of relevant corpus sequences of each query: (queries,)."""
        return np.diff(self.offsets)

    def of(self, query: int) -> IntArray:
        """Return the corpus rows relevant to a query, sorted."""
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    def followed_by(self, other: Relevance) -> Relevance:
        """Return the relevance of these queries and then of others, against the same corpus.

        It has labels if both have them; the numbers of the groups must then be the same in both.
        """
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        rows = np.concatenate([self.rows, other.rows])
        if self.query_labels is None or other.query_labels is None:
            return Relevance(offsets, rows, self.corpus_size)
        labels = np.concatenate([self.query_labels, other.query_labels])
        return Relevance(offsets, rows, self.corpus_size, self.labels, labels)

    def select_queries(self, queries: npt.NDArray[np.integer | np.bool_]) -> Relevance:
        """Return the relevance of some queries, selected by rows or mask."""
        chosen = np.arange(len(self))[queries]
        offsets, rows = _runs(self.rows, self.offsets[chosen], self.offsets[chosen + 1])
        query_labels = None if self.query_labels is None else self.query_labels[chosen]
        return Relevance(offsets, rows, self.corpus_size, self.labels, query_labels)

    def select_corpus(self, corpus: npt.NDArray[np.integer | np.bool_]) -> Relevance:
        """Return the relevance against some corpus rows, selected by rows or mask and numbered anew."""
        chosen = np.arange(self.corpus_size)[corpus]
        new_row = np.full(self.corpus_size, -1, np.int64)
        new_row[chosen] = np.arange(len(chosen))
        kept = new_row[self.rows]
        query = np.repeat(np.arange(len(self)), self.counts)[kept >= 0]
        order = np.lexsort((kept[kept >= 0], query))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(self)))]).astype(np.int64)
        labels = None if self.labels is None else self.labels[chosen]
        return Relevance(offsets, kept[kept >= 0][order], len(chosen), labels, self.query_labels)

    def matrix(self, queries: IntArray | None = None) -> npt.NDArray[np.bool_]:
        """Return the dense (queries, corpus) table of truth values, for small data."""
        part = self if queries is None else self.select_queries(queries)
        dense = np.zeros((len(part), self.corpus_size), bool)
        dense[np.repeat(np.arange(len(part)), part.counts), part.rows] = True
        return dense


def _runs(values: IntArray, begin: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """Return offsets and concatenation of the runs `values[begin[i]:stop[i]]`."""
    lengths = stop - begin
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    picked = np.repeat(begin - offsets[:-1], lengths) + np.arange(offsets[-1])
    return offsets, values[picked]
