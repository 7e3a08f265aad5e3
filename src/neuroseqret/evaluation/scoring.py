"""Let a method score a task, block by block, and compute the measures and the top of every ranking.

How a method is asked depends on what it can do (see `neuroseqret.models.base`):

- An `Embedder` whose score is the cosine embeds every sequence once.
- A `Reranker` scores the lists of `sampled` by `score_listed`. In `full` it puts the best candidates of its first stage
  in a new order by `rerank`, as a search does.
- Any other method scores by `score`: query by query in `sampled`, blocks of queries against the whole corpus in `full`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.measures.table import per_query
from neuroseqret.measures.ties import order_keys
from neuroseqret.models.base import Embedder, RelevanceModel, Reranker, Role, Scores

DEPTH = 1000  # how many places of each ranking are kept
_BLOCK = 1 << 22  # scores held at a time
_PIECE = 2048  # sequences embedded between two updates of the progress bar
_LISTS = 32  # sampled lists that a second stage scores together

#: Scores a task with a trained model: `answer`, or something that does it elsewhere.
Answering = Callable[..., "Answers"]
#: Wraps an iteration to show its progress: (parts, what, total) -> parts.
Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def silent(parts: Iterable[Any], what: str, total: int) -> Iterable[Any]:
    """Show no progress."""
    return parts


@dataclass(frozen=True)
class Answers:
    """The measures of every query and the top of its ranking."""

    measures: dict[str, FloatArray]  # name -> (queries,)
    top_rows: npt.NDArray[np.int32]  # (queries, depth) corpus rows, best first, -1 after the end of a list
    top_scores: npt.NDArray[np.float32]  # (queries, depth), 0 in the padding


def answer(model: RelevanceModel, task: RankingTask, progress: Progress = silent, what: str = "method") -> Answers:
    """Score every candidate of every query; a missing or non-finite score raises a `UserError`."""
    return ranked(*scorer(model, task, progress, what), task, progress, what)


def answer_from(scores: Scores, task: RankingTask, what: str = "method") -> Answers:
    """Return the answers from the scores of all pairs (queries, corpus), whatever the task lists."""
    block = max(1, _BLOCK // max(scores.shape[1], 1))
    lists = task.lists
    if lists is None:
        return ranked(lambda rows: scores[rows], block, task, what=what)
    return ranked(lambda rows: np.take_along_axis(scores[rows], lists.rows[rows], 1), block, task, what=what)


def ranked(
    scores_of: Callable[[IntArray], Scores],
    size: int,
    task: RankingTask,
    progress: Progress = silent,
    what: str = "method",
) -> Answers:
    """Return the answers from a function that scores query rows; it is asked for `size` rows at a time."""
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
        if listed is not None:  # padding comes last; + 1 because the lowest integer has no negative
            keys[listed < 0] = np.iinfo(np.int64).min + 1
        measures.append(per_query(keys, truth.select_queries(rows)))
        best = _top(keys, depth)
        top_scores[rows] = np.take_along_axis(scores, best, 1)
        top_rows[rows] = best if listed is None else np.take_along_axis(listed, best, 1)
    top_scores[top_rows < 0] = 0
    return Answers({name: np.concatenate([m[name] for m in measures]) for name in measures[0]}, top_rows, top_scores)


def scorer(
    model: RelevanceModel, task: RankingTask, progress: Progress = silent, what: str = "method"
) -> tuple[Callable[[IntArray], Scores], int]:
    """Return a function from query rows to their scores, and how many rows to ask it for at a time.

    The scores are (rows, candidates); the columns are those of the task's lists, or of its corpus.
    """
    lists, queries, corpus = task.lists, task.queries, task.corpus
    size = block_size(model, task)
    if isinstance(model, Embedder) and model.score_is_cosine:
        asked = _embed(model, queries, "query", progress, f"{what}: embed queries")
        shown = _embed(model, corpus, "corpus", progress, f"{what}: embed corpus")
        return by_embedding(asked, shown, task), size
    if lists is None:
        if isinstance(model, Reranker):
            return lambda rows: model.rerank(queries[rows], corpus, unknown_marks="keep"), size
        return lambda rows: model.score(queries[rows], corpus, unknown_marks="keep"), size
    if isinstance(model, Reranker):

        def by_lists(rows: IntArray) -> Scores:
            listed = lists.rows[rows]
            # Padding is scored as the first candidate of the list; its score is never looked at.
            padded = np.where(listed < 0, listed[:, :1], listed)
            return model.score_listed(queries[rows], corpus, padded, unknown_marks="keep")

        return by_lists, size

    def one_by_one(rows: IntArray) -> Scores:
        scores = np.zeros((len(rows), lists.rows.shape[1]), np.float32)
        for place, row in enumerate(rows.tolist()):
            listed = lists.of(row)
            scores[place, : len(listed)] = model.score(queries[row], corpus[listed], unknown_marks="keep")
        return scores

    return one_by_one, size


def block_size(model: RelevanceModel, task: RankingTask) -> int:
    """Return how many queries a model is asked for at a time, so that the scores have room in memory."""
    block = max(1, _BLOCK // max(len(task.corpus), 1))
    if isinstance(model, Embedder) and model.score_is_cosine:
        return block
    if isinstance(model, Reranker):
        return 8 * block if task.lists is None else _LISTS
    return max(1, block // 4) if task.lists is None else 1


def by_embedding(asked: Scores, shown: Scores, task: RankingTask) -> Callable[[IntArray], Scores]:
    """Return a function from query rows to their scores, which are the dot products of embeddings."""
    lists = task.lists

    def scores_of(rows: IntArray) -> Scores:
        scores: Scores = asked[rows] @ shown.T
        return scores if lists is None else np.take_along_axis(scores, lists.rows[rows], 1)

    return scores_of


def joined(parts: Sequence[Answers]) -> Answers:
    """Return the answers to several parts of the queries as one."""
    depth = max(part.top_rows.shape[1] for part in parts)
    rows, scores = [], []
    for part in parts:
        more = ((0, 0), (0, depth - part.top_rows.shape[1]))
        rows.append(np.pad(part.top_rows, more, constant_values=-1))
        scores.append(np.pad(part.top_scores, more))
    measures = {name: np.concatenate([part.measures[name] for part in parts]) for name in parts[0].measures}
    return Answers(measures, np.concatenate(rows), np.concatenate(scores))


def pieces(sequences: EventSequences) -> list[EventSequences]:
    """Return the sequences in the pieces that are embedded one by one."""
    return [sequences[begin : begin + _PIECE] for begin in range(0, len(sequences), _PIECE)]


def _embed(model: Embedder, sequences: EventSequences, role: Role, progress: Progress, what: str) -> Scores:
    cut = pieces(sequences)
    return np.concatenate(
        [model.embed(piece, role, unknown_marks="keep", strict=None) for piece in progress(cut, what, len(cut))]
    )


def _checked(scores: Scores, rows: IntArray, task: RankingTask, what: str) -> Scores:
    width = len(task.corpus) if task.lists is None else task.lists.rows.shape[1]
    if scores.shape != (len(rows), width):
        raise UserError(f"{what} gave {scores.shape} scores for {len(rows)} queries and {width} candidates")
    good = np.isfinite(scores)
    if not good.all():
        query = task.queries.ids[int(rows[int(np.argmin(good.all(1)))])].as_py()
        raise UserError(f"{what} gave {int((~good).sum())} scores that are not finite, first for {query!r}")
    return np.asarray(scores, np.float32)


def _top(keys: npt.NDArray[np.int64], depth: int) -> npt.NDArray[np.int64]:
    """Return the columns of the `depth` largest keys of each row, largest first."""
    width = keys.shape[1]
    part = np.argpartition(keys, width - depth, axis=1)[:, width - depth :] if depth < width else None
    chosen = keys if part is None else np.take_along_axis(keys, part, 1)
    order = np.argsort(chosen, axis=1)[:, ::-1]
    return order if part is None else np.take_along_axis(part, order, 1)
