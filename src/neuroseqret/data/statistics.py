"""Describe a batch of sequences in numbers: what `neuroseqret data info` prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.data.validation import Flaw, find_flaws

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Histogram:
    """Counts of values in [edges[i], edges[i + 1])."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Statistics:
    """The numbers of a batch; None where the data has none (no gaps, no groups)."""

    sequences: int
    events: int
    marks: int  # size of the vocabulary
    groups: int | None
    group_sizes: dict[str, int]  # sequences by group, largest first
    sources: int | None
    length_min: int | None
    length_median: float | None
    length_max: int | None
    lengths: Histogram
    gap_quantiles: dict[float, float]  # of the time between consecutive events, by quantile
    gap_mean: float | None
    zero_gaps: float | None  # share of gaps that are 0: events at the same time
    mark_counts: dict[str, int]  # number of events by name (or number) of the mark, in the order of the marks
    first_time: float | None
    last_time: float | None
    span_median: float | None  # of the observation windows
    time_unit: str | None
    splits: dict[str, int]
    flaws: tuple[Flaw, ...]


@dataclass(frozen=True)
class RetrievalStatistics:
    """The numbers of a corpus with queries."""

    everything: Statistics  # corpus and queries together
    corpus: int
    queries: int
    queries_by_split: dict[str, int]
    groups_with_queries: int | None
    relevant_per_query_mean: float | None  # over the queries that have any
    largest_group_share: float | None  # of the corpus
    queries_without_relevant: int | None

    def counts(self) -> dict[str, Any]:
        """Return the numbers under the names that they have in `counts` of a data folder's `meta.json`."""
        both = self.everything
        shared = ("events", "marks", "groups", "sources", "length_min", "length_median", "length_max")
        return {
            "corpus": self.corpus,
            "queries": self.queries,
            "queries_by_split": self.queries_by_split,
            **{name: getattr(both, name) for name in shared},
            "groups_with_queries": self.groups_with_queries,
            "relevant_per_query_mean": _rounded(self.relevant_per_query_mean, 2),
            "largest_group_share": _rounded(self.largest_group_share, 4),
        }


def describe(sequences: EventSequences) -> Statistics:
    """Describe a batch; flaws are listed, not raised, so that a bad file can be inspected."""
    lengths, gaps = sequences.lengths, _gaps(sequences)
    finite = sequences.times[np.isfinite(sequences.times)]
    start, end = sequences.observed()
    with np.errstate(invalid="ignore", over="ignore"):
        spans = end - start
    spans = spans[np.isfinite(spans)]
    return Statistics(
        sequences=len(sequences),
        events=len(sequences.times),
        marks=sequences.num_marks,
        groups=_distinct(sequences, "group"),
        group_sizes=_values(sequences, "group"),
        sources=_distinct(sequences, "source"),
        length_min=int(lengths.min()) if len(lengths) else None,
        length_median=float(np.median(lengths)) if len(lengths) else None,
        length_max=int(lengths.max()) if len(lengths) else None,
        lengths=length_histogram(lengths),
        gap_quantiles=dict(zip(QUANTILES, np.quantile(gaps, QUANTILES).tolist(), strict=True)) if len(gaps) else {},
        gap_mean=float(gaps.mean()) if len(gaps) else None,
        zero_gaps=float((gaps == 0).mean()) if len(gaps) else None,
        mark_counts=_mark_counts(sequences),
        first_time=float(finite.min()) if len(finite) else None,
        last_time=float(finite.max()) if len(finite) else None,
        span_median=float(np.median(spans)) if len(spans) else None,
        time_unit=sequences.time_unit,
        splits=_values(sequences, "split"),
        flaws=tuple(find_flaws(sequences)),
    )


def describe_retrieval(
    corpus: EventSequences, queries: EventSequences, relevance: Relevance | None = None
) -> RetrievalStatistics:
    """Describe a corpus with queries; `relevance` is by default that of the groups, if both have groups."""
    if relevance is None and corpus.groups is not None and queries.groups is not None:
        relevance = Relevance.from_groups(queries, corpus)
    answered = relevance.counts[relevance.counts > 0] if relevance is not None else np.empty(0)
    group_sizes = _values(corpus, "group")
    # Other columns do not matter here and may have different types.
    both = EventSequences.concat(part.without_columns(*_others(part)) for part in (corpus, queries))
    return RetrievalStatistics(
        everything=describe(both),
        corpus=len(corpus),
        queries=len(queries),
        queries_by_split=_values(queries, "split"),
        groups_with_queries=_distinct(queries, "group"),
        relevant_per_query_mean=float(answered.mean()) if len(answered) else None,
        largest_group_share=max(group_sizes.values()) / len(corpus) if group_sizes else None,
        queries_without_relevant=None if relevance is None else int((relevance.counts == 0).sum()),
    )


def length_histogram(lengths: IntArray, bins: int = 12) -> Histogram:
    """Count lengths in at most `bins` bins with whole edges; few lengths get one bin each."""
    if not len(lengths):
        return Histogram((), ())
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // bins)
    edges = np.arange(low, high + width + 1, width)
    counts, _ = np.histogram(lengths, edges)
    return Histogram(tuple(edges.astype(float).tolist()), tuple(counts.tolist()))


def _gaps(sequences: EventSequences) -> FloatArray:
    """Return the finite times between consecutive events of a sequence, flat."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.diff(sequences.times)
    borders = sequences.offsets[1:-1]
    inner = np.ones(len(gaps), bool)
    inner[borders[(borders > 0) & (borders < len(sequences.times))] - 1] = False
    return gaps[inner & np.isfinite(gaps)]


def _mark_counts(sequences: EventSequences) -> dict[str, int]:
    """Count the events of every mark, also of those that do not occur; marks without a name come last, by number."""
    numbers, counts = np.unique(sequences.marks, return_counts=True)
    found = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    if sequences.mark_names is None:
        return {str(mark): count for mark, count in found.items()}
    named = {name: found.pop(mark, 0) for mark, name in enumerate(sequences.mark_names)}
    return {**named, **{str(mark): count for mark, count in found.items()}}


def _others(sequences: EventSequences) -> list[str]:
    """Return the metadata columns that these statistics do not use."""
    return [name for name in sequences.metadata.column_names if name not in ("source", "split")]


def _column(sequences: EventSequences, name: str) -> pa.Array | None:
    """Return a column with one value per sequence; a column of this name with one value per event is ignored."""
    column = sequences.column(name)
    return None if column is None or pa.types.is_nested(column.type) else column


def _distinct(sequences: EventSequences, name: str) -> int | None:
    column = _column(sequences, name)
    return None if column is None else len(column.drop_null().unique())


def _values(sequences: EventSequences, name: str) -> dict[str, int]:
    """Count the values of a column, most frequent first."""
    column = _column(sequences, name)
    if column is None:
        return {}
    return dict(Counter(str(value) for value in column.drop_null().to_pylist()).most_common())


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
