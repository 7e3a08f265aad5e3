"""`Service`: the verbs of the server in Python types, without HTTP.

Searches go through two batchers: one for those that take milliseconds, one for those that rerank, explain or compare
with every sequence, so that the first never wait for the second. Reads and writes run in threads of their own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.explanation import explain, explainable, explained_by
from neuroseqret.feedback.judgements import judgements_of
from neuroseqret.index import Index
from neuroseqret.methods.registry import load
from neuroseqret.models.base import RelevanceModel
from neuroseqret.serving import replies
from neuroseqret.serving.batching import Batcher
from neuroseqret.serving.logs import AuditLog
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.request_shapes import EventsQuery, ExplainRequest, FeedbackRequest, SearchRequest
from neuroseqret.serving.searching import Searching, SearchJob, query_shown
from neuroseqret.serving.settings import ServerSettings
from neuroseqret.serving.statistics import Statistics

T = TypeVar("T")
_WRITERS = 2  # bodies at once, batch by batch in turns: a small one does not wait for the end of a large one


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
        self.searching = Searching(index, settings.limits, metrics)
        run = self.searching.run
        self._fast: Batcher[SearchJob] = Batcher(run, settings.window, "search", *([1] if one_by_one else []))
        self._slow: Batcher[SearchJob] = Batcher(run, 0.0, "rerank", 8)
        self._readers = ThreadPoolExecutor(2, "read")
        self._writers = ThreadPoolExecutor(_WRITERS, "write")
        self._notes = ThreadPoolExecutor(1, "note")
        self.explainable = _can_be_explained(index.model)
        self.audit = AuditLog(settings.audit)
        self.ready = False
        self._uploads = 0

    # ---------------------------------------------------------------- life

    def warm_up(self) -> None:
        """Open the newest commit and search once, so that the first caller does not wait for compilers.

        From now on commits are followed in the background, so that no search reads them itself.
        """
        self.index.watch(self.settings.refresh_seconds, apart=True)
        view = self.index.view()
        probe = EventSequences.from_lists([([0.0, 1.0, 2.5], [0, 0, 0])], mark_names=self.index.config.mark_names)
        for name in self.index.model.values:
            probe = probe.with_column(name, [[0.0, 0.0, 0.0]])
        view.search(probe, self.index.embed_queries(probe), self.index.search_options(1))
        self.ready = True

    async def watch(self) -> None:
        """Count the new commits for ever."""
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
        for pool in (self._readers, self._writers, self._notes):
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
        """Run a write in one of the threads of writes, to its end even if the caller goes away."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writers, work, *given))

    async def note(self, work: Callable[..., T], *given: Any) -> T:
        """Run a write that takes milliseconds (judgements, the audit log), which no body of sequences holds up."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._notes, work, *given))

    async def noted(self, verb: str, state: Mapping[str, Any], **what: Any) -> None:
        """Note a write in the audit log; `state` is that of the request."""
        await self.note(partial(self.audit.write, verb, state["caller"], state["request_id"], **what))

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
            fraction=request.fraction,
            at_least=request.at_least,
        )
        job = SearchJob(request, options)
        slow = self._compares_much(request) or options.rerank is not None or request.explain
        try:
            await (self._slow if slow else self._fast).submit(job, self.limits.seconds)
        except asyncio.TimeoutError:
            raise self.too_late() from None
        if job.error is not None:
            raise job.error
        for step, seconds in job.steps.items():
            self.metrics.step(step).observe(seconds)
        return job.answer

    def _compares_much(self, request: SearchRequest) -> bool:
        """Return whether a search compares with more sequences than usual; refuse it if they are too many."""
        if not (request.exhaustive or request.fraction is not None or request.at_least is not None):
            return False
        usual, corpus = self.index.config.settings, self.index.view().snapshot.count
        share = 1.0 if request.exhaustive else request.fraction or usual.fraction
        number = min(max(math.ceil(share * corpus), request.at_least or usual.at_least), corpus)
        if number > self.limits.compared:
            detail = f"the search compares with {number:,} sequences; at most {self.limits.compared:,} are allowed"
            raise Problem(422, f"{detail}, so leave out exhaustive, fraction and at_least")
        return number > max(math.ceil(usual.fraction * corpus), usual.at_least)

    def too_late(self) -> Problem:
        """Count a request that took too long, and return what its caller is told."""
        self.metrics.rejects.labels("time").inc()
        seconds = f"{self.limits.seconds:.0f} seconds"
        detail = f"no answer within {seconds}; ask for less, or try again when the server is less busy"
        return Problem(503, detail, retry_after=5)

    def _check(self, request: SearchRequest) -> None:
        limits = self.limits
        if request.k > limits.k:
            raise Problem(422, f"k is {request.k}; at most {limits.k:,} hits per query are allowed")
        if request.rerank_top is not None and request.rerank_top > limits.k:
            raise Problem(422, f"rerank_top is {request.rerank_top}; at most {limits.k:,} hits per query are reranked")
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
        if not self.rerankers:
            raise Problem(422, "this server has no model to rerank with; start it with --rerank MODEL")
        raise Problem(422, f"this server has no model {asked!r} to rerank with; it has {', '.join(self.rerankers)}")

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
        query = self.searching.queries_of([request.query], request.unknown_marks, view)[0]
        hits = view.whole(request.hits)
        model = explained_by(self.index.model, self._reranker(request.rerank))
        found = [replies.explanation(explain(model, query, hit), request.pairs) for hit in hits]
        return replies.dumps({"explanations": found})


def check_where(where: Any, most: int) -> None:
    """Raise a problem if a condition is too long; its parts are checked against the columns by the index."""
    if where is not None and len(where if isinstance(where, str) else replies.dumps(where)) > most:
        raise Problem(422, f"the condition 'where' has more than {most:,} characters; shorten it")


def _can_be_explained(model: RelevanceModel) -> bool:
    try:
        explainable(model)
        return True
    except UserError:
        return False


def judge(service: Service, request: FeedbackRequest, user: str | None) -> int:
    """Store judgements; the query and the judged sequences must be there. Return how many were stored."""
    view = service.index.view()
    query = service.searching.queries_of([request.query], "keep", view)[0]
    for one in request.judgements:
        if view.rows_of([one.id])[0] < 0 and not len(view.rows_of_sequence(one.id)):
            raise UserError(f"the index holds no sequence {one.id[:200]!r}; check the ids that were judged")
    given = isinstance(request.query, EventsQuery)
    shown = query_shown(request.query, query if given else None)
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in shown.items()}
    judged = [(one.id, one.relevant) for one in request.judgements]
    return len(service.judgements.append(plain, judged, request.user if user is None else user))
