"""How a relevance memory is fitted: tables and centroids from the corpus, weights and strengths from lists.

Weights are learned on out-of-fold queries (see `out_of_fold`). The strength with which the memory corrects the first
stage is then chosen on the same queries' lists and those of the validation queries, from a grid that holds zero: where
the memory does not help, the model is its first stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuroseqret.models.conditioned import ConditionedTables, Floats
from neuroseqret.models.cross_presets import MemorySettings
from neuroseqret.models.event_tables import EventTables
from neuroseqret.models.memory import RelevanceMemory, centroids_of, fit_weights, relevant_sets
from neuroseqret.models.out_of_fold import Fold, out_of_fold
from neuroseqret.models.ranked_lists import RankedLists, list_average_precision, list_ndcg, rank
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.relevance import Relevance
from neuroseqret.sequences import EventSequences, IntArray
from neuroseqret.training.log import TrainingLog

_LISTED = 250  # lists of each fold, and of validation, that strengths are chosen on
_FEWEST_CELLS, _MOST_CELLS = 256, 4096


@dataclass(frozen=True)
class JudgedLists:
    """Lists with what the memory and the first stage say of their queries and candidates."""

    lists: RankedLists
    query_attention: Floats  # (Q, S)
    query_embedded: Floats  # (Q, dimension)
    place: IntArray  # (Q, depth) rows of the two tables below
    attention: Floats  # (N, S)
    embedded: Floats  # (N, dimension)
    centroids: Floats


@dataclass(frozen=True)
class FittedMemory:
    memory: RelevanceMemory
    judged: list[JudgedLists]  # out-of-fold ones first, validation last


def fit_memory(
    first_stage: SelfAttention,
    queries: EventSequences,
    corpus: EventSequences,
    relevance: Relevance,
    train_rows: IntArray,
    validation_rows: IntArray,
    settings: MemorySettings,
    *,
    seed: int,
    max_seconds: float | None,
    log: TrainingLog,
) -> FittedMemory:
    rng = np.random.default_rng([seed, 5])
    sets, truth = relevant_sets(relevance, train_rows, seed)
    cells = int(np.clip(settings.cells // len(sets), _FEWEST_CELLS, _MOST_CELLS))
    tables = ConditionedTables.fit(EventTables.fit(corpus, first_stage.scale, first_stage.marks, cells), corpus, sets)
    folds = out_of_fold(
        first_stage,
        queries,
        corpus,
        relevance,
        train_rows,
        seed=seed,
        steps=settings.out_of_fold_steps,
        max_seconds=None if max_seconds is None else max_seconds / 3,
        log=log,
    )
    set_of = dict(zip(train_rows.tolist(), truth.tolist(), strict=True))
    learned = [_some(fold, set_of, settings.most_queries // 2, rng) for fold in folds]
    blank = np.zeros(1 + len(tables.log_gains), np.float32)
    memories = [RelevanceMemory(tables, centroids_of(fold.corpus, sets), blank) for fold in folds]
    evidence = [m.evidence(queries[f.rows], f.queries) for m, f in zip(memories, learned, strict=True)]
    targets = [np.array([set_of[row] for row in f.rows.tolist()]) for f in learned]
    weights = fit_weights(np.concatenate(evidence, axis=1), np.concatenate(targets))
    embedded = first_stage.embed(corpus, "corpus")
    memory = RelevanceMemory(tables, centroids_of(embedded, sets), weights)
    judged_rows = _at_most(validation_rows, _LISTED, rng)
    own = Fold(judged_rows, first_stage.embed(queries[judged_rows], "query"), embedded)
    judged = []
    for fold, place in ((learned[0], memories[0]), (learned[1], memories[1]), (own, memory)):
        place.weights = weights
        if len(fold.rows):
            few = Fold(fold.rows[:_LISTED], fold.queries[:_LISTED], fold.corpus)
            judged.append(_judge(place, few, queries, corpus, relevance, settings.depth))
    return FittedMemory(memory, judged)


def _at_most(rows: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    return rows if len(rows) <= number else rng.choice(rows, number, replace=False)


def _some(fold: Fold, set_of: dict[int, int], number: int, rng: np.random.Generator) -> Fold:
    """At most `number` queries of a fold, those whose set is in the memory, in random order."""
    usable = np.flatnonzero([set_of[row] >= 0 for row in fold.rows.tolist()])
    chosen = rng.permutation(usable)[:number]
    return Fold(fold.rows[chosen], fold.queries[chosen], fold.corpus)


def _judge(
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


def choose_strength(
    judged: list[JudgedLists],
    score: Callable[[JudgedLists, int, float], Floats],
    grid: tuple[float, ...],
) -> tuple[float, dict[str, float]]:
    """The strength with the highest mean of AP and nDCG@10 over all lists, and what it gives on each side.

    `score(lists, k, strength)` are the scores of the candidates of the k-th query. A tie goes to the weaker one.
    """
    found = []
    for strength in grid:
        values = []
        for part in judged:
            scores = np.stack([score(part, k, strength) for k in range(len(part.lists.rows))])
            values.append((list_average_precision(scores, part.lists) + list_ndcg(scores, part.lists)) / 2)
        found.append(float(np.concatenate(values).mean()))
    best = int(np.argmax(found))
    return grid[best], {f"{strength:g}": value for strength, value in zip(grid, found, strict=True)}
