"""Let a method answer a task: scores block by block, then measures and the top of every ranking.

A method whose score is the dot product of embeddings embeds every sequence once. Any other method scores the listed
candidates in `sampled` (`score_listed` for many queries at once where it has that, else `score` query by query), and
in `full` blocks of queries against the whole corpus: by `rerank` where it is a second stage, which puts the best of
its first stage in a new order, as in search; else by `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import Task
from neuroseqret.measures.table import per_query
from neuroseqret.measures.ties import order_keys
from neuroseqret.models.base import Embedder, RelevanceModel, Role, Scores

DEPTH = 1000  # how much of each ranking is kept
_BLOCK = 1 << 22  # scores held at a time
_PIECE = 2048  # sequences embedded between two signs of progress
_LISTS = 32  # sampled lists that a second stage scores together

#: Wraps an iteration over parts of known number, to show progress: (parts, what, total) -> parts.
Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def silent(parts: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    """No progress shown."""
    return parts


@dataclass(frozen=True)
class Answers:
    """What a method answered: the measures of every query and the top of its ranking."""

    measures: dict[str, FloatArray]  # name -> (queries,)
    top_rows: npt.NDArray[np.int32]  # (queries, depth) corpus rows, best first, -1 where the list is shorter
    top_scores: npt.NDArray[np.float32]  # (queries, depth), 0 in the padding


def answer(model: RelevanceModel, task: Task, progress: Progress = silent, what: str = "method") -> Answers:
    """Score every candidate of every query; a method that leaves one out or gives NaN is an error, not a 0."""
    return ranked(*scorer(model, task, progress, what), task, progress, what)


def answer_from(scores: Scores, task: Task, what: str = "method") -> Answers:
    """The answers that the scores of all pairs (queries, corpus) amount to, whichever candidates the task lists."""
    block = max(1, _BLOCK // max(scores.shape[1], 1))
    lists = task.lists
    if lists is None:
        return ranked(lambda rows: scores[rows], block, task, what=what)
    return ranked(lambda rows: np.take_along_axis(scores[rows], lists.rows[rows], 1), block, task, what=what)


def ranked(
    scores_of: Callable[[IntArray], Scores], size: int, task: Task, progress: Progress = silent, what: str = "method"
) -> Answers:
    """Answers from a function that gives the scores of query rows, asked for `size` rows at a time."""
    query_keys, corpus_keys = task.tie_keys()
    truth = task.relevance if task.lists is None else task.lists.relevance
    depth = min(DEPTH, int(task.candidates.max()))
    measures: list[dict[str, FloatArray]] = []
    top_rows = np.full((len(task.queries), depth), -1, np.int32)
    top_scores = np.zeros((len(task.queries), depth), np.float32)
    cuts = np.split(np.arange(len(task.queries)), np.arange(size, len(task.queries), size))
    for rows in progress(cuts, f"{what}: rank", len(cuts)):
        scores = _checked(scores_of(rows), rows, task, what)
        listed = None if task.lists is None else task.lists.rows[rows]
        keys = order_keys(scores, query_keys[rows], corpus_keys if listed is None else corpus_keys[listed])
        if listed is not None:  # padding after every candidate; the lowest number of all has no negative
            keys[listed < 0] = np.iinfo(np.int64).min + 1
        measures.append(per_query(keys, truth.select_queries(rows)))
        best = _top(keys, depth)
        top_scores[rows] = np.take_along_axis(scores, best, 1)
        top_rows[rows] = best if listed is None else np.take_along_axis(listed, best, 1)
    top_scores[top_rows < 0] = 0
    return Answers({name: np.concatenate([m[name] for m in measures]) for name in measures[0]}, top_rows, top_scores)


def scorer(
    model: RelevanceModel, task: Task, progress: Progress = silent, what: str = "method"
) -> tuple[Callable[[IntArray], Scores], int]:
    """A function from query rows to their scores, and how many rows to ask it for at a time.

    The scores are (rows, candidates), columns as in the task's lists or corpus.
    """
    lists, queries, corpus = task.lists, task.queries, task.corpus
    block = max(1, _BLOCK // max(len(corpus), 1))
    if isinstance(model, Embedder) and _is_dot_product(model, task):
        asked = _embed(model, queries, "query", progress, f"{what}: embed queries")
        ranked = _embed(model, corpus, "corpus", progress, f"{what}: embed corpus")

        def by_embedding(rows: IntArray) -> Scores:
            scores: Scores = asked[rows] @ ranked.T
            return scores if lists is None else np.take_along_axis(scores, lists.rows[rows], 1)

        return by_embedding, block
    if lists is None:
        rerank = getattr(model, "rerank", None)
        if rerank is not None:
            return lambda rows: rerank(queries[rows], corpus), 8 * block
        return lambda rows: model.score(queries[rows], corpus), max(1, block // 4)
    score_listed = getattr(model, "score_listed", None)
    if score_listed is not None:

        def by_lists(rows: IntArray) -> Scores:
            listed = lists.rows[rows]
            scored: Scores = score_listed(queries[rows], corpus, np.where(listed < 0, listed[:, :1], listed))
            return scored

        return by_lists, _LISTS

    def one_by_one(rows: IntArray) -> Scores:
        scores = np.zeros((len(rows), lists.rows.shape[1]), np.float32)
        for place, row in enumerate(rows.tolist()):
            listed = lists.of(row)
            scores[place, : len(listed)] = model.score(queries[row], corpus[listed])
        return scores

    return one_by_one, 1


def _is_dot_product(model: Embedder, task: Task) -> bool:
    """Whether the score is the plain dot product of embeddings, so that they can be computed once.

    An embedder may add something to it; a few pairs tell.
    """
    if type(model).score is Embedder.score:
        return True
    queries, corpus = task.queries[:3], task.corpus[:16]
    product = model.embed(queries, "query") @ model.embed(corpus, "corpus").T
    return bool(np.allclose(model.score(queries, corpus), product, rtol=0, atol=1e-5))


def _embed(model: Embedder, sequences: EventSequences, role: Role, progress: Progress, what: str) -> Scores:
    pieces = [sequences[begin : begin + _PIECE] for begin in range(0, len(sequences), _PIECE)]
    return np.concatenate([model.embed(piece, role) for piece in progress(pieces, what, len(pieces))])


def _checked(scores: Scores, rows: IntArray, task: Task, what: str) -> Scores:
    width = len(task.corpus) if task.lists is None else task.lists.rows.shape[1]
    if scores.shape != (len(rows), width):
        raise UserError(f"{what} gave {scores.shape} scores for {len(rows)} queries and {width} candidates")
    good = np.isfinite(scores)
    if not good.all():
        query = task.queries.ids[int(rows[int(np.argmin(good.all(1)))])].as_py()
        raise UserError(f"{what} gave {int((~good).sum())} scores that are not finite, first for {query!r}")
    return np.asarray(scores, np.float32)


def _top(keys: npt.NDArray[np.int64], depth: int) -> npt.NDArray[np.int64]:
    """Columns of the `depth` largest keys of each row, largest first."""
    width = keys.shape[1]
    part = np.argpartition(keys, width - depth, axis=1)[:, width - depth :] if depth < width else None
    chosen = keys if part is None else np.take_along_axis(keys, part, 1)
    order = np.argsort(chosen, axis=1)[:, ::-1]
    return order if part is None else np.take_along_axis(part, order, 1)
