"""Fitting of a relevance memory: tables and centroids from the corpus, weights and strengths from ranked lists.

The weights are learned on out-of-fold queries (see `out_of_fold`). The strength of the correction is then chosen from a
grid that contains zero, on two sides: the out-of-fold lists and the lists of the validation queries. Out-of-fold
metrics saw fewer queries than the first stage, so their lists promise more than there is to gain; the validation lists
come from the first stage itself, but there are few. A strength must therefore gain more than `SURE` standard errors on
the former and more than one on the latter, and must not lower the reciprocal rank on either. If none does, the strength
is 0 and the model scores as its first stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.models.cross.memory import RelevanceMemory, centroids_of, fit_weights, relevant_sets
from neuroseqret.models.cross.out_of_fold import Fold, out_of_fold
from neuroseqret.models.cross.presets import MemorySettings
from neuroseqret.models.cross.ranked_lists import (
    RankedLists,
    list_average_precision,
    list_ndcg,
    list_reciprocal_rank,
    rank,
)
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.conditioned_tables import ConditionedTables, Floats
from neuroseqret.processes.event_tables import EventTables
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

_LISTED = 500  # most lists of all folds, and of validation, that strengths are chosen on
_MANY_QUERIES = 400  # with fewer train queries there are more folds, so that each learns from more of them
SURE = 2.0  # standard errors of the gain on the out-of-fold lists
_ROUNDING = 1e-9
NEARLY = 0.95  # share of the best gain that a weaker strength must reach to be preferred
_FEWEST_CELLS, _MOST_CELLS = 256, 4096


@dataclass(frozen=True)
class JudgedLists:
    """Ranked lists, with the attentions and embeddings of their queries and candidates."""

    lists: RankedLists
    query_attention: Floats  # (Q, S)
    query_embedded: Floats  # (Q, dimension)
    place: IntArray  # (Q, depth) where each candidate is in the next two arrays
    attention: Floats  # (N, S) of the N candidates that are on any list
    embedded: Floats  # (N, dimension)
    centroids: Floats


@dataclass(frozen=True)
class FittedMemory:
    """A memory and the lists to choose strengths on."""

    memory: RelevanceMemory
    sides: list[list[JudgedLists]]  # the lists of the folds, then those of the validation queries if there are any


def fit_memory(
    first_stage: SelfAttention, task: TrainingTask, settings: MemorySettings, checkpoint: Checkpoint | None = None
) -> FittedMemory:
    """Fit the memory; return it with lists that neither it nor the first stage was fitted on."""
    queries, corpus, relevance, seed = task.queries, task.corpus, task.relevance, task.seed
    train_rows, validation_rows = task.answerable_train_rows, task.answerable_validation_rows
    rng = np.random.default_rng([seed, 5])
    sets, truth = relevant_sets(relevance, train_rows, seed)
    cells = int(np.clip(settings.cells // len(sets), _FEWEST_CELLS, _MOST_CELLS))
    tables = ConditionedTables.fit(EventTables.fit(corpus, first_stage.scale, first_stage.marks, cells), corpus, sets)
    folds = out_of_fold(
        first_stage,
        replace(task, max_seconds=None if task.max_seconds is None else task.max_seconds / 6),
        steps=settings.out_of_fold_steps,
        number=min(2 if len(train_rows) > _MANY_QUERIES else 4, len(train_rows)),
        checkpoint=checkpoint,
    )
    set_of = dict(zip(train_rows.tolist(), truth.tolist(), strict=True))
    learned = [_sample_queries(fold, set_of, settings.most_queries // len(folds), rng) for fold in folds]
    blank = np.zeros(1 + len(tables.log_gains), np.float32)
    memories = [RelevanceMemory(tables, centroids_of(fold.corpus, sets), blank) for fold in folds]
    evidence = [m.evidence(queries[f.rows], f.queries) for m, f in zip(memories, learned, strict=True)]
    targets = [np.array([set_of[row] for row in f.rows.tolist()]) for f in learned]
    weights = fit_weights(np.concatenate(evidence, axis=1), np.concatenate(targets))
    embedded = first_stage.compute_embeddings(corpus, "corpus")
    memory = RelevanceMemory(tables, centroids_of(embedded, sets), weights)
    for place in memories:
        place.weights = weights
    few = [Fold(f.rows[: _LISTED // len(folds)], f.queries[: _LISTED // len(folds)], f.corpus) for f in learned]
    asked = (queries, corpus, relevance, settings.depth)
    sides = [[_judged_lists(m, fold, *asked) for m, fold in zip(memories, few, strict=True) if len(fold.rows)]]
    if len(validation_rows):
        rows = _at_most(validation_rows, _LISTED, rng)
        fold = Fold(rows, first_stage.compute_embeddings(queries[rows], "query"), embedded)
        sides.append([_judged_lists(memory, fold, *asked)])
    return FittedMemory(memory, sides)


def _at_most(rows: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    return rows if len(rows) <= number else rng.choice(rows, number, replace=False)


def _sample_queries(fold: Fold, set_of: dict[int, int], number: int, rng: np.random.Generator) -> Fold:
    """Draw at most `number` queries of a fold, in random order, from those whose set is in the memory."""
    usable = np.flatnonzero([set_of[row] >= 0 for row in fold.rows.tolist()])
    chosen = rng.permutation(usable)[:number]
    return Fold(fold.rows[chosen], fold.queries[chosen], fold.corpus)


def _judged_lists(
    memory: RelevanceMemory,
    fold: Fold,
    queries: EventSequences,
    corpus: EventSequences,
    relevance: Relevance,
    depth: int,
) -> JudgedLists:
    lists = rank(fold.queries @ fold.corpus.T, fold.rows, relevance, depth)
    listed, place = np.unique(lists.candidates, return_inverse=True)
    return JudgedLists(
        lists,
        memory.attend(queries[fold.rows], fold.queries),
        fold.queries,
        place.reshape(lists.candidates.shape),
        memory.attend(corpus[listed], fold.corpus[listed]),
        fold.corpus[listed],
        memory.centroids,
    )


@dataclass(frozen=True)
class Choice:
    """The chosen strength, with the gain of every strength and the quality of the chosen one on each side.

    Quality is the mean of AP and nDCG@10 over the lists of a side; the gain is relative to strength 0.
    """

    strength: float
    gains: dict[str, list[float]]  # by strength, one value per side
    quality: list[float]  # one value per side

    @property
    def validation(self) -> dict[str, float]:
        """The quality on the lists of the validation queries; empty if there are none."""
        return {"mean of AP and nDCG@10 of lists": self.quality[1]} if len(self.quality) > 1 else {}


def choose_strength(
    sides: list[list[JudgedLists]],
    score: Callable[[JudgedLists, int, float], Floats],
    grid: tuple[float, ...],
) -> Choice:
    """Choose the strength whose smallest gain over all sides is largest, among those that are safe on every side.

    `score(lists, k, strength)` returns the scores of the candidates of the k-th list. The grid rises from 0. Of the
    safe strengths, the weakest that reaches `NEARLY` of the best gain is chosen; 0 if none is safe.
    """
    found = [[_measured(side, score, strength) for side in sides] for strength in grid]
    gains = np.array([[np.mean(one.quality - none.quality) for one, none in zip(row, found[0], strict=True)]
                      for row in found])  # fmt: skip
    safe = np.array(
        [
            all(_is_safe(one, none, sure) for one, none, sure in zip(row, found[0], (SURE, 1.0), strict=False))
            for row in found
        ]
    )
    least = np.where(safe, gains.min(1), 0.0)
    best = int(np.argmax(least >= NEARLY * least.max())) if safe.any() else 0
    tried = {f"{strength:g}": row.tolist() for strength, row in zip(grid, gains, strict=True)}
    return Choice(grid[best], tried, [float(side.quality.mean()) for side in found[best]])


@dataclass(frozen=True)
class _Measured:
    """The measures of every list of a side."""

    quality: FloatArray  # mean of AP and nDCG@10
    reciprocal_rank: FloatArray


def _measured(
    side: list[JudgedLists], score: Callable[[JudgedLists, int, float], Floats], strength: float
) -> _Measured:
    quality, reciprocal = [], []
    for part in side:
        scores = np.stack([score(part, k, strength) for k in range(len(part.lists.rows))])
        quality.append((list_average_precision(scores, part.lists) + list_ndcg(scores, part.lists)) / 2)
        reciprocal.append(list_reciprocal_rank(scores, part.lists))
    return _Measured(np.concatenate(quality), np.concatenate(reciprocal))


def _is_safe(one: _Measured, none: _Measured, sure: float) -> bool:
    """Whether the gain is more than so many standard errors, and the first relevant candidate does not come later."""
    gain = one.quality - none.quality
    error = gain.std() / len(gain) ** 0.5
    later = one.reciprocal_rank.mean() < none.reciprocal_rank.mean() - _ROUNDING
    return bool(gain.mean() > sure * error + _ROUNDING and not later)
