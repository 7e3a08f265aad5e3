"""How a relevance memory is fitted: tables and centroids from the corpus, weights and strengths from lists.

Weights are learned on out-of-fold queries (see `out_of_fold`). The strength with which the memory corrects the first
stage is then chosen from a grid that holds zero, by what it gains on the out-of-fold lists and on those of the
validation queries, whichever is less: out-of-fold metrics saw fewer queries than the first stage that is to be
corrected, so they leave more to gain than there is; the validation lists are the first stage's own, but few. Where
the memory does not help both, the model is its first stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.cross.memory import RelevanceMemory, centroids_of, fit_weights, relevant_sets
from neuroseqret.models.cross.out_of_fold import Fold, out_of_fold
from neuroseqret.models.cross.presets import MemorySettings
from neuroseqret.models.cross.ranked_lists import RankedLists, list_average_precision, list_ndcg, rank
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.conditioned_tables import ConditionedTables, Floats
from neuroseqret.processes.event_tables import EventTables
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

_LISTED = 500  # lists of all folds, and of validation, that strengths are chosen on
_MANY_QUERIES = 400  # with fewer train queries, more folds leave more of them to learn from
NEARLY = 0.95  # share of the best gain that a weaker strength must reach to be preferred
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
    sides: list[list[JudgedLists]]  # lists of the folds; lists of the validation queries, where there are any


def fit_memory(
    first_stage: SelfAttention, task: TrainingTask, settings: MemorySettings, checkpoint: Checkpoint | None = None
) -> FittedMemory:
    """The memory, and lists that neither it nor the first stage was fitted on, to choose strengths with."""
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
    learned = [_some(fold, set_of, settings.most_queries // len(folds), rng) for fold in folds]
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
    sides = [[_judge(m, fold, *asked) for m, fold in zip(memories, few, strict=True) if len(fold.rows)]]
    if len(validation_rows):
        rows = _at_most(validation_rows, _LISTED, rng)
        sides.append(
            [_judge(memory, Fold(rows, first_stage.compute_embeddings(queries[rows], "query"), embedded), *asked)]
        )
    return FittedMemory(memory, sides)


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


@dataclass(frozen=True)
class Choice:
    """A strength, and why: what each of the grid gains on each side, and the quality that the chosen one gives there.

    Quality is the mean of AP and nDCG@10 over the lists of a side, a gain that over strength 0.
    """

    strength: float
    gains: dict[str, list[float]]
    quality: list[float]

    @property
    def validation(self) -> dict[str, float]:
        """Of the lists of the validation queries, where there are any."""
        return {"mean of AP and nDCG@10 of lists": self.quality[1]} if len(self.quality) > 1 else {}


def choose_strength(
    sides: list[list[JudgedLists]],
    score: Callable[[JudgedLists, int, float], Floats],
    grid: tuple[float, ...],
) -> Choice:
    """The strength whose gain over none is largest on the side where it is least.

    `score(lists, k, strength)` are the scores of the candidates of the k-th query. The grid rises from 0; of strengths
    that gain nearly as much as the best one the weakest is taken.
    """
    found = np.array([[_quality(side, score, strength) for side in sides] for strength in grid])
    gains = found - found[0]
    least = gains.min(1)
    best = int(np.argmax(least >= NEARLY * max(float(least.max()), 0.0)))
    tried = {f"{strength:g}": row.tolist() for strength, row in zip(grid, gains, strict=True)}
    return Choice(grid[best], tried, found[best].tolist())


def _quality(side: list[JudgedLists], score: Callable[[JudgedLists, int, float], Floats], strength: float) -> float:
    values = []
    for part in side:
        scores = np.stack([score(part, k, strength) for k in range(len(part.lists.rows))])
        values.append((list_average_precision(scores, part.lists) + list_ndcg(scores, part.lists)) / 2)
    return float(np.concatenate(values).mean())
