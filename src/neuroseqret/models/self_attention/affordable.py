"""How much of the data `self` learns from: as much as fits into memory and into the time limit.

Without a time limit, and with fewer than some 200,000 sequences, that is all of it. Otherwise it is a random part, and
a line of the progress says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.self_attention.vectors import affordable_rows, some_rows
from neuroseqret.training import budget
from neuroseqret.training.progress import remark
from neuroseqret.training.task import TrainingTask

TIMED = 256  # sequences that are used in any case; the time they take tells how long more of them would take
# The largest shares of the time limit:
STATISTICS = 0.15  # for what is fitted to the corpus without training
FEATURES = 0.2  # for the features of corpus and queries


def part_for_statistics(task: TrainingTask, fit: Callable[[EventSequences], object]) -> EventSequences:
    """Return the part of the corpus that tables and bank are fitted to.

    `fit` fits the tables, which is half of the work; it is called to measure how long that takes.
    """
    corpus = task.given_corpus
    if task.max_seconds is None or len(corpus) <= TIMED:
        return corpus
    rng = np.random.default_rng([task.seed, 10])
    seconds = 2 * _seconds_each(fit, corpus[some_rows(np.arange(len(corpus)), TIMED, rng)])
    rows = some_rows(np.arange(len(corpus)), max(TIMED, int(STATISTICS * task.max_seconds / seconds)), rng)
    if len(rows) == len(corpus):
        return corpus
    remark(f"the time limit: fitting tables to {len(rows):,} of {len(corpus):,} sequences")
    return corpus[rows]


def affordable(
    task: TrainingTask, size: int, versions: int, features: Callable[[EventSequences], object]
) -> TrainingTask:
    """Return the task with as many sequences as there is memory and time for.

    A sequence has `versions` vectors of `size` numbers; `features` computes one of them.
    """
    rng = np.random.default_rng([task.seed, 7])
    rows, queries = affordable_rows(len(task.corpus), size, versions, rng), task.queries
    if len(rows) < len(task.corpus):
        remark(f"memory: learning from {len(rows):,} of {len(task.corpus):,} sequences")
    labels = None if len(rows) == len(task.corpus) else task.relevance.select_corpus(rows)
    if task.max_seconds is not None:
        seconds = _seconds_each(features, task.corpus[some_rows(rows, TIMED, rng)])
        wanted = [task.train_rows, task.answerable_validation_rows, rows]
        share = FEATURES * task.max_seconds / seconds / sum(map(len, wanted))
        if share < 1:
            train, validation, rows = (some_rows(part, max(TIMED, int(share * len(part))), rng) for part in wanted)
            asked = np.sort(np.concatenate([train, validation]))
            labels = task.relevance.select_queries(asked).select_corpus(rows)
            queries = queries[asked]
            remark(
                f"the time limit: learning from {len(rows):,} of {len(task.corpus):,} sequences and {len(asked):,} of "
                f"{len(wanted[0]) + len(wanted[1]):,} queries"
            )
    if labels is None:
        return task
    return replace(task, corpus=task.corpus[rows], queries=queries, labels=labels)


def _seconds_each(work: Callable[[EventSequences], object], some: EventSequences) -> float:
    """Return how long some work takes per sequence, on average."""
    work(some[:1])  # the first call may compile
    begun = budget.now()
    work(some)
    return max(budget.now() - begun, 1e-9) / len(some)
