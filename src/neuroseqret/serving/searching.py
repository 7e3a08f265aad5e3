"""`Searching`: a batch of search requests against one commit of the index.

Every step is done for all requests together: reading the events, embedding, searching, looking at the gaps. A step that
fails is done again for each request alone, so that only the one with the flaw fails.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.data.gaps import rows_to_check, wrong_gaps
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.unlocked import unlocked
from neuroseqret.data.windows import part
from neuroseqret.errors import UserError
from neuroseqret.explanation import explain, explained_by
from neuroseqret.feedback.rocchio import refined
from neuroseqret.index import Hits, Index
from neuroseqret.index.search import SearchOptions
from neuroseqret.index.view import View
from neuroseqret.processes.event_values import bare
from neuroseqret.serving import bodies, replies
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.request_shapes import EventsQuery, IndexedQuery, SearchRequest
from neuroseqret.serving.settings import Limits


@unlocked
@dataclass(eq=False)
class SearchJob:
    """One request on its way through a batch; `answer` or `error` is there when it is done."""

    request: SearchRequest
    options: SearchOptions
    begun: float = field(default_factory=time.perf_counter)
    source: EventSequences | None = None  # the queries of all jobs that were read together
    place: tuple[int, int] = (0, 0)  # of this job's queries among them
    vectors: Vectors | None = None
    hits: list[Hits] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    answer: bytes = b""
    error: Exception | None = None

    @cached_property
    def queries(self) -> EventSequences:
        """The queries of this job."""
        assert self.source is not None
        return self.source if self.place == (0, len(self.source)) else self.source[slice(*self.place)]


class Searching:
    """Answers search requests."""

    def __init__(self, index: Index, limits: Limits, metrics: Metrics) -> None:
        self.index, self.limits, self.metrics = index, limits, metrics

    def run(self, jobs: list[SearchJob]) -> None:
        """Answer a batch of jobs; a job that fails does not harm the others."""
        begun = time.perf_counter()
        try:
            view = self.index.view()
        except Exception as error:
            for job in jobs:
                job.error = error
            return
        for job in jobs:
            job.steps["wait"] = begun - job.begun
        for group in grouped(jobs, _how_to_read):
            together(group, lambda some: self._resolve(some, view))
        live = [job for job in jobs if job.error is None]
        number = sum(len(job.request.asked) for job in live)
        self.metrics.batches.observe(number)
        together(live, self._embed)
        for group in grouped(live, _how_to_search):
            together(group, lambda some: self._search(some, view))
        for job in live:
            together([job], lambda some: self._answer(some[0], view, number))

    # ---------------------------------------------------------------- the steps

    def _resolve(self, jobs: list[SearchJob], view: View) -> None:
        asked = [query for job in jobs for query in job.request.asked]
        whole = self.queries_of(asked, jobs[0].request.unknown_marks, view)
        odd = rows_to_check(whole, None if self.index.model.card is None else self.index.model.card.typical_gaps)
        for job, begin, end in _places(jobs):
            job.source, job.place = whole, (begin, end)
            if len(odd) and ((odd >= begin) & (odd < end)).any():
                self._check_times(job)

    def _check_times(self, job: SearchJob) -> None:
        """Warn of times that look like another unit; they are an error if the job is strict.

        Sequences of the index were checked when they were added.
        """
        given = np.array([isinstance(query, EventsQuery) for query in job.request.asked])
        job.warnings = self.warnings_of(job.queries[given]) if given.any() else []
        if job.warnings and job.request.strict:
            job.error = UserError(job.warnings[0])

    def queries_of(self, asked: list[EventsQuery | IndexedQuery], unknown_marks: Any, view: View) -> EventSequences:
        """Return the events of queries, with marks numbered as the index's."""
        meaning, most, reads = self.index.config.meaning, self.limits.events, self.index.model.values
        if all(isinstance(query, EventsQuery) for query in asked):
            bodies.check_length((len(query.times) for query in asked), most)  # type: ignore[union-attr]
            _check_read([name for query in asked for name in query.values or {}], reads)  # type: ignore[union-attr]
            return bodies.sequences_of(asked, meaning, unknown_marks, reads)  # type: ignore[arg-type]
        parts = []
        for query in asked:
            if isinstance(query, EventsQuery):
                parts.append(self.queries_of([query], unknown_marks, view))
            else:
                parts.append(indexed_query(query, view))
                bodies.check_length(parts[-1].lengths.tolist(), most)
        return EventSequences.concat(bare(part, reads) for part in parts)

    def warnings_of(self, sequences: EventSequences) -> list[str]:
        """Say if the times of sequences look like another unit than the model's."""
        card = self.index.model.card
        wrong = None if card is None else wrong_gaps(sequences, card.typical_gaps, card.time_unit)
        return [] if wrong is None else [str(wrong)]

    def _embed(self, jobs: list[SearchJob]) -> None:
        begun = time.perf_counter()
        vectors = self.index.embed_queries(queries_together(jobs, self.index.model.values))
        seconds = time.perf_counter() - begun
        for job, begin, end in _places(jobs):
            job.vectors, job.steps["embed"] = vectors[begin:end], seconds

    def _search(self, jobs: list[SearchJob], view: View) -> None:
        jobs = [job for job in jobs if job.error is None]
        if not jobs:
            return
        begun, first = time.perf_counter(), jobs[0]
        asked = [query for job in jobs for query in job.request.asked]
        vectors = np.concatenate([job.vectors for job in jobs if job.vectors is not None])
        for row, query in enumerate(asked):
            if query.relevant or query.not_relevant:
                judged = (self._judged(ids, view) for ids in (query.relevant, query.not_relevant))
                vectors[row] = refined(vectors[row], *judged)
        queries = queries_together(jobs, self.index.model.values)
        found = view.search(queries, vectors, first.options, first.request.where, own_rows(asked, view))
        seconds = time.perf_counter() - begun
        for job, begin, end in _places(jobs):
            job.hits, job.steps["search"] = found[begin:end], seconds

    def _judged(self, ids: list[str], view: View) -> np.ndarray:
        """Return the embeddings of judged sequences: that of a sequence, of a window, or the mean over all windows."""
        found = []
        for id in ids:
            row = view.rows_of([id])
            rows = row if row[0] >= 0 else view.rows_of_sequence(id)
            if not len(rows):
                raise UserError(f"the index holds no sequence {id[:200]!r}; check the ids that were judged")
            found.append(self.index.model.as_query(view.embeddings(rows)).mean(0))
        return np.array(found, np.float32).reshape(len(found), view.config.dimension)

    def _answer(self, job: SearchJob, view: View, batch: int) -> None:
        request, read = job.request, time.perf_counter()
        fields = request.fields
        with_events = fields is not None and replies.EVENTS in fields
        results = []
        for row, (hits, one) in enumerate(zip(job.hits, request.asked, strict=True)):
            stored: list[Any] = [None] * len(hits)
            if with_events or request.explain:
                stored = list(view.sequences(view.rows_of([hit.window or hit.id for hit in hits])))
            shown = [replies.hit(hit, fields, s if with_events else None) for hit, s in zip(hits, stored, strict=True)]
            if request.explain:
                explained = time.perf_counter()
                for entry, sequence in zip(shown, stored, strict=True):
                    why = explain(explained_by(self.index.model, job.options.rerank), job.queries[row], sequence)
                    entry["explanation"] = replies.explanation(why, False)
                job.steps["explain"] = job.steps.get("explain", 0.0) + time.perf_counter() - explained
            results.append(_result(hits, shown, query_shown(one, job.queries[row] if with_events else None)))
        job.steps["read"] = time.perf_counter() - read - job.steps.get("explain", 0.0)
        job.steps["total"] = time.perf_counter() - job.begun
        job.answer = replies.dumps(
            {
                "results": results,
                "milliseconds": {step: round(1000 * seconds, 3) for step, seconds in job.steps.items()},
                "batch": batch,
                "version": view.version,
                "warnings": job.warnings,
            }
        )


# -------------------------------------------------------------------- jobs together


def together(jobs: list[SearchJob], work: Callable[[list[SearchJob]], None]) -> None:
    """Do the work for jobs that have not failed, all at once; if that fails, for each alone, and keep its error."""
    live = [job for job in jobs if job.error is None]
    if not live:
        return
    try:
        work(live)
    except Exception as error:
        if len(live) == 1:
            live[0].error = error
        else:
            for job in live:
                together([job], work)


def grouped(jobs: list[SearchJob], key: Callable[[SearchJob], Any]) -> Iterable[list[SearchJob]]:
    """Return the jobs with equal keys together, in their order."""
    found: dict[Any, list[SearchJob]] = defaultdict(list)
    for job in jobs:
        found[key(job)].append(job)
    return found.values()


def _how_to_read(job: SearchJob) -> Any:
    """Queries given by events are read together; those of the index alone."""
    given = all(isinstance(query, EventsQuery) for query in job.request.asked)
    return job.request.unknown_marks if given else id(job)


def _how_to_search(job: SearchJob) -> Any:
    """Searches with the same options and condition go together; those that rerank take long and go alone."""
    where, options = job.request.where, job.options
    if options.rerank is not None:
        return id(job)
    condition = where if where is None or isinstance(where, str) else replies.dumps(where)
    return options.k, options.exhaustive, options.fraction, options.at_least, options.expand is None, condition


def _places(jobs: list[SearchJob]) -> Iterable[tuple[SearchJob, int, int]]:
    """Return each job with the first row of its queries among those of all jobs, and the row after the last."""
    end = 0
    for job in jobs:
        begin, end = end, end + len(job.request.asked)
        yield job, begin, end


# -------------------------------------------------------------------- queries


def queries_together(jobs: list[SearchJob], reads: Sequence[str]) -> EventSequences:
    """Return the queries of all jobs; they need not be put together if they were read together and none failed.

    `reads` are the values of events that the index's model reads.
    """
    source = jobs[0].source
    if source is not None and all(job.source is source for job in jobs):
        ends = [0, *(job.place[1] for job in jobs)]
        if ends[-1] == len(source) and all(job.place[0] == end for job, end in zip(jobs, ends, strict=False)):
            return source
    return EventSequences.concat(bare(job.queries, reads) for job in jobs)


def indexed_query(query: IndexedQuery, view: View) -> EventSequences:
    """Return a sequence of the index, or a part of it."""
    whole = view.whole([query.id])
    if query.events is None:
        return whole
    first, stop = query.events
    if stop > whole.lengths[0]:
        raise UserError(f"sequence {query.id} has {whole.lengths[0]:,} events; events [{first}, {stop}] is beyond them")
    return part(whole, (first, stop))


def own_rows(asked: list[EventsQuery | IndexedQuery], view: View) -> list[Rows]:
    """Return the rows that each query leaves out: a sequence of the index is not a hit of itself."""
    if all(isinstance(query, EventsQuery) for query in asked):
        return []
    none = np.empty(0, np.int64)
    return [view.own_rows(query.id) if isinstance(query, IndexedQuery) else none for query in asked]


def query_shown(query: EventsQuery | IndexedQuery, sequence: Any = None) -> dict[str, Any]:
    """Return the query as results and judgements name it, with its events if they are given."""
    shown: dict[str, Any] = {"id": query.id}
    if isinstance(query, IndexedQuery) and query.events is not None:
        shown["events"] = list(query.events)
    return shown if sequence is None else {**shown, **replies.events(sequence)}


def _result(hits: Hits, shown: list[dict[str, Any]], query: dict[str, Any]) -> dict[str, Any]:
    report = hits.report
    return {
        "query": query,
        "hits": shown,
        "method": report.method,
        "corpus": report.corpus,
        "comparisons": report.comparisons,
        "reranked": report.reranked,
        "centres": report.centres,
    }


def _check_read(names: list[str], reads: Sequence[str]) -> None:
    """Raise a `UserError` if a query gives values that the index's model does not read."""
    if unread := [name for name in names if name not in reads]:
        known = f"it reads {', '.join(map(repr, reads))}" if reads else "leave out 'values'"
        raise UserError(f"the index's model reads no values {unread[0][:60]!r}; {known}")
