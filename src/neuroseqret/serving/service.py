"""`Service`: the verbs of the server in Python types, without HTTP.

Searches go through two batchers: one for those that take milliseconds, one for those that rerank, explain or compare
with every sequence, so that the first never wait for the second. Reads and writes run in threads of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from neuroseqret.candidates.finder import Rows
from neuroseqret.data.gaps import wrong_gaps
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.windows import part
from neuroseqret.errors import UserError
from neuroseqret.explanation import explain, explainable
from neuroseqret.feedback.judgements import judgements_of
from neuroseqret.feedback.rocchio import refined
from neuroseqret.index import Hits, Index
from neuroseqret.index.search import SearchOptions
from neuroseqret.index.view import View
from neuroseqret.methods.registry import load
from neuroseqret.models.base import RelevanceModel
from neuroseqret.serving import bodies, replies
from neuroseqret.serving.batching import Batcher
from neuroseqret.serving.logs import AuditLog
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.settings import ServerSettings
from neuroseqret.serving.shapes import EventsQuery, ExplainRequest, FeedbackRequest, IndexedQuery, SearchRequest
from neuroseqret.serving.statistics import Statistics

T = TypeVar("T")


@dataclass
class SearchJob:
    """One request on its way through a batch; `answer` or `error` is there when it is done."""

    request: SearchRequest
    options: SearchOptions
    begun: float = field(default_factory=time.perf_counter)
    queries: EventSequences | None = None
    vectors: np.ndarray | None = None
    steps: dict[str, float] = field(default_factory=dict)
    answer: bytes = b""
    error: Exception | None = None


class Service:
    """One index that is served."""

    def __init__(self, index: Index, settings: ServerSettings, metrics: Metrics) -> None:
        self.index, self.settings, self.limits, self.metrics = index, settings, settings.limits, metrics
        self.rerankers = {path.resolve().name: load(path) for path in settings.rerank}
        for name, model in self.rerankers.items():
            index.config.meaning.check_same(model.meaning, f"the reranking model {name!r}")
        self.judgements = judgements_of(index)
        self.statistics = Statistics()
        one_by_one = settings.window <= 0
        self._fast: Batcher[SearchJob] = Batcher(self._run, settings.window, "search", *([1] if one_by_one else []))
        self._slow: Batcher[SearchJob] = Batcher(self._run, 0.0, "rerank", 8)
        self._readers = ThreadPoolExecutor(2, "read")
        self._writers = ThreadPoolExecutor(1, "write")
        self.explainable = _can_be_explained(index.model)
        self.audit = AuditLog(settings.audit)
        self.ready = False
        self._uploads = 0

    # ---------------------------------------------------------------- life

    def warm_up(self) -> None:
        """Open the newest commit and search once, so that the first caller does not wait for compilers."""
        view = self.index.view()
        probe = EventSequences.from_lists([([0.0, 1.0, 2.5], [0, 0, 0])], mark_names=self.index.config.mark_names)
        view.search(probe, self.index.embed_queries(probe), self.index.search_options(1))
        self.ready = True

    async def watch(self) -> None:
        """Look for new commits for ever, so that a search finds them read and built already."""
        version = -1
        while True:
            try:
                view = await self.read(self.index.view)
                if view.version != version:
                    version = view.version
                    self.metrics.commits.inc()
                    self.metrics.corpus.set(view.snapshot.count)
            except Exception as error:
                self.metrics.log.warning("the newest commit cannot be read: %s", error)
            await asyncio.sleep(self.settings.refresh_seconds)

    async def close(self) -> None:
        """Finish what runs, then stop the threads."""
        self.ready = False
        await self._fast.close()
        await self._slow.close()
        for pool in (self._readers, self._writers):
            await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)

    @asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Take one of the few places for bodies of sequences, or refuse."""
        if self._uploads >= self.limits.uploads:
            self.metrics.rejects.labels("uploads").inc()
            raise Problem(503, f"{self._uploads} bodies are being added already; try again in a moment", retry_after=2)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def read(self, work: Callable[..., T], *given: Any) -> T:
        """Run a read in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *given)

    async def write(self, work: Callable[..., T], *given: Any) -> T:
        """Run a write in the thread of writes, to its end even if the caller goes away."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writers, work, *given))

    # ---------------------------------------------------------------- search

    async def search(self, request: SearchRequest) -> bytes:
        """Return the reply to a search as JSON."""
        self._check(request)
        model = self._reranker(request.rerank)
        options = self.index.search_options(
            request.k,
            rerank=model,
            rerank_top=request.rerank_top if model is not None else None,
            exhaustive=request.exhaustive,
            expand=request.expand,
        )
        job = SearchJob(request, options)
        slow = options.rerank is not None or request.explain or request.exhaustive
        await (self._slow if slow else self._fast).submit(job)
        if job.error is not None:
            raise job.error
        for step, seconds in job.steps.items():
            self.metrics.steps.labels(step).observe(seconds)
        return job.answer

    def _check(self, request: SearchRequest) -> None:
        limits = self.limits
        if request.k > limits.k:
            raise Problem(422, f"k is {request.k}; at most {limits.k:,} hits per query are allowed")
        if len(request.asked) > limits.queries:
            raise Problem(
                422, f"{len(request.asked):,} queries; at most {limits.queries:,} are allowed, send them in parts"
            )
        check_where(request.where, limits.where_characters)
        if request.explain and (len(request.asked) > 1 or request.k > limits.hits_to_explain):
            raise Problem(422, f"explain takes one query and k of at most {limits.hits_to_explain}")
        if request.explain and not self.explainable:
            raise Problem(422, "the index's model cannot be explained; leave out 'explain'")

    def _reranker(self, asked: bool | str) -> RelevanceModel | None:
        if asked is False:
            return None
        if asked is True and self.rerankers:
            return next(iter(self.rerankers.values()))
        if isinstance(asked, str) and asked in self.rerankers:
            return self.rerankers[asked]
        known = ", ".join(self.rerankers) or "none; start it with --rerank MODEL"
        raise Problem(422, f"this server has no such model to rerank with; it has {known}")

    def _run(self, jobs: list[SearchJob]) -> None:
        """Answer a batch of jobs against one commit; a job that fails does not harm the others."""
        begun = time.perf_counter()
        try:
            view = self.index.view()
        except Exception as error:
            for job in jobs:
                job.error = error
            return
        for job in jobs:
            job.steps["wait"] = begun - job.begun
            self._guarded(job, self._resolve, view)
        live = [job for job in jobs if job.error is None and job.queries is not None]
        number = self._embed(live)
        self.metrics.batches.observe(number)
        for job in live:
            if job.error is None:
                self._guarded(job, self._answer, view, number)

    @staticmethod
    def _guarded(job: SearchJob, work: Callable[..., None], *given: Any) -> None:
        try:
            work(job, *given)
        except Exception as error:
            job.error = error

    def _resolve(self, job: SearchJob, view: View) -> None:
        job.queries = self.queries_of(job.request.asked, job.request.unknown_marks, view)

    def queries_of(self, asked: list[EventsQuery | IndexedQuery], unknown_marks: Any, view: View) -> EventSequences:
        """Return the events of queries, with marks numbered as the index's."""
        meaning, most = self.index.config.meaning, self.limits.events
        if all(isinstance(query, EventsQuery) for query in asked):
            bodies.check_length((len(query.times) for query in asked), most)  # type: ignore[union-attr]
            return bodies.sequences_of(asked, meaning, unknown_marks)  # type: ignore[arg-type]
        parts = []
        for query in asked:
            if isinstance(query, EventsQuery):
                parts.append(self.queries_of([query], unknown_marks, view))
            else:
                parts.append(indexed_query(query, view))
                bodies.check_length(parts[-1].lengths.tolist(), most)
        plain = [part.without_columns(*part.metadata.column_names, "group") for part in parts]
        return EventSequences.concat(plain)

    def _embed(self, jobs: list[SearchJob]) -> int:
        """Embed the queries of all jobs together; return how many there are."""
        begun = time.perf_counter()
        parts = [job.queries for job in jobs if job.queries is not None]
        if not parts:
            return 0
        try:
            whole = parts[0] if len(parts) == 1 else EventSequences.concat(_bare(part) for part in parts)
            vectors = self.index.embed_queries(whole)
            seconds = time.perf_counter() - begun
            for job, end in zip(jobs, np.cumsum([len(part) for part in parts]).tolist(), strict=True):
                job.vectors = vectors[end - len(job.queries or ()) : end]
                job.steps["embed"] = seconds
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].error = error
            else:  # one query that cannot be embedded must not fail the others
                for job in jobs:
                    self._embed([job])
        return sum(map(len, parts))

    def _answer(self, job: SearchJob, view: View, batch: int) -> None:
        request, queries, vectors, begun = job.request, job.queries, job.vectors, time.perf_counter()
        assert queries is not None
        assert vectors is not None
        vectors = np.stack([self._moved(one, v, view) for one, v in zip(request.asked, vectors, strict=True)])
        found = view.search(queries, vectors, job.options, request.where, own_rows(request.asked, view))
        read = time.perf_counter()
        job.steps["search"] = read - begun
        fields = request.fields
        with_events = fields is not None and replies.EVENTS in fields
        results = []
        for row, (hits, one) in enumerate(zip(found, request.asked, strict=True)):
            stored: list[Any] = [None] * len(hits)
            if with_events or request.explain:
                stored = list(view.sequences(view.rows_of([hit.window or hit.id for hit in hits])))
            shown = [replies.hit(hit, fields, s if with_events else None) for hit, s in zip(hits, stored, strict=True)]
            if request.explain:
                explained = time.perf_counter()
                for entry, sequence in zip(shown, stored, strict=True):
                    entry["explanation"] = replies.explanation(explain(self.index.model, queries[row], sequence), False)
                job.steps["explain"] = job.steps.get("explain", 0.0) + time.perf_counter() - explained
            results.append(_result(hits, shown, query_shown(one, queries[row], with_events)))
        job.steps["read"] = time.perf_counter() - read - job.steps.get("explain", 0.0)
        job.steps["total"] = time.perf_counter() - job.begun
        job.answer = replies.dumps(
            {
                "results": results,
                "milliseconds": {step: round(1000 * seconds, 3) for step, seconds in job.steps.items()},
                "batch": batch,
                "version": view.version,
                "warnings": self.warnings_of(queries) if isinstance(request.asked[0], EventsQuery) else [],
            }
        )

    def warnings_of(self, sequences: EventSequences) -> list[str]:
        """Say if the times of sequences look like another unit than the model's."""
        card = self.index.model.card
        wrong = None if card is None else wrong_gaps(sequences, card.typical_gaps, card.time_unit)
        return [] if wrong is None else [str(wrong)]

    def _moved(self, query: EventsQuery | IndexedQuery, vector: np.ndarray, view: View) -> np.ndarray:
        """Return the query's embedding, moved by the judgements that came with it."""
        if not query.relevant and not query.not_relevant:
            return vector
        return refined(vector, *(self._judged(ids, view) for ids in (query.relevant, query.not_relevant)))

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

    # ---------------------------------------------------------------- explain

    def explain(self, request: ExplainRequest) -> bytes:
        """Return why hits match a query, as JSON."""
        if not self.explainable:
            raise Problem(422, "the index's model cannot be explained")
        if len(request.hits) > self.limits.hits_to_explain:
            raise Problem(
                422, f"{len(request.hits)} hits; at most {self.limits.hits_to_explain} per request are explained"
            )
        view = self.index.view()
        query = self.queries_of([request.query], request.unknown_marks, view)[0]
        hits = view.whole(request.hits)
        found = [replies.explanation(explain(self.index.model, query, hit), request.pairs) for hit in hits]
        return replies.dumps({"explanations": found})


def check_where(where: Any, most: int) -> None:
    """Raise a problem if a condition is too long; its parts are checked against the columns by the index."""
    if where is not None and len(where if isinstance(where, str) else replies.dumps(where)) > most:
        raise Problem(422, f"the condition 'where' has more than {most:,} characters; shorten it")


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


def query_shown(query: EventsQuery | IndexedQuery, sequence: Any, with_events: bool) -> dict[str, Any]:
    """Return the query as results and judgements name it."""
    shown: dict[str, Any] = {"id": query.id}
    if isinstance(query, IndexedQuery) and query.events is not None:
        shown["events"] = list(query.events)
    return {**shown, **replies.events(sequence)} if with_events else shown


def _result(hits: Hits, shown: list[dict[str, Any]], query: dict[str, Any]) -> dict[str, Any]:
    report = hits.report
    return {
        "query": query,
        "hits": shown,
        "method": report.method,
        "corpus": report.corpus,
        "comparisons": report.comparisons,
        "reranked": report.reranked,
    }


def _bare(part: EventSequences) -> EventSequences:
    return part.without_columns(*part.metadata.column_names, "group")


def _can_be_explained(model: RelevanceModel) -> bool:
    try:
        explainable(model)
        return True
    except UserError:
        return False


def judge(service: Service, request: FeedbackRequest, user: str | None) -> int:
    """Store judgements; the query and the judged sequences must be there. Return how many were stored."""
    view = service.index.view()
    query = service.queries_of([request.query], "keep", view)[0]
    for one in request.judgements:
        if view.rows_of([one.id])[0] < 0 and not len(view.rows_of_sequence(one.id)):
            raise UserError(f"the index holds no sequence {one.id[:200]!r}; check the ids that were judged")
    given = isinstance(request.query, EventsQuery)
    shown = query_shown(request.query, query, with_events=given)
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in shown.items()}
    judged = [(one.id, one.relevant) for one in request.judgements]
    return len(service.judgements.append(plain, judged, request.user if user is None else user))
