r"""Choose how much each member of the metric counts, on sequences that it has not seen.

A metric ranks the sequences it was trained on far better than others, so weights chosen on the training corpus would
trust it too much. Here a first, shorter fit leaves out some sources of the corpus and some train queries. Then the
left-out queries, the validation queries, and left-out corpus sequences as queries rank the left-out corpus. The weights
start at the usual ones and move, one member at a time, as long as the quality

.. math:: Q = 0.7\, \mathrm{AP} + 0.3\, \mathrm{nDCG@10}

rises by more than two standard errors (of the paired differences over the queries). One of the members is the whitened
vector itself, without any learned metric: if the metric does not generalise, it counts for little or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.data.splits import source_codes, unseen_part
from neuroseqret.measures.ranking_measures import average_precision, ndcg
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_fitting import fit_metric, number_of_groups
from neuroseqret.models.self_attention.vectors import TrainingVectors, some_rows
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

Floats = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]

_FEWEST_QUERIES = 20  # with fewer, nothing can be told
_MOST_QUERIES = 400
_MOST_RANKED = 2000  # left-out corpus sequences
_LAST = -9.0  # below every cosine
_MOVES = 8  # most steps away from the usual weights
_STRIDE = 0.25  # how far a step goes towards one member
_CLEARLY = 2.0  # standard errors that a step must gain


@dataclass(frozen=True)
class Judged:
    """The scores of every member for some queries, and the truth: scores (members, queries, candidates)."""

    scores: Floats
    truth: Relevance

    def quality(self, weights: Weights) -> npt.NDArray[np.float64]:
        """Return Q of every query."""
        mixed = np.tensordot(weights.astype(np.float32), self.scores, 1)
        return 0.7 * average_precision(mixed, self.truth) + 0.3 * ndcg(mixed, self.truth)


def choose_weights(
    vectors: TrainingVectors,
    task: TrainingTask,
    settings: SelfAttentionSettings,
    layout: Layout,
    *,
    max_seconds: float | None,
    checkpoint: Checkpoint | None,
) -> tuple[Weights, dict[str, Any]]:
    """Return the weights of the members, and notes on how they were chosen."""
    usual = np.array([member.weight for member in settings.projection.members], np.float64)
    usual /= usual.sum()
    judged = _judge(vectors, task, settings, layout, max_seconds, checkpoint)
    if judged is None:
        return usual, {"weights": _named(usual), "chosen": "the usual weights: too few sequences to choose on"}
    weights, path = climb(judged, usual, settings.projection.possible)
    gain = judged.quality(weights) - judged.quality(usual)
    notes = {
        "weights": _named(weights),
        "queries": len(judged.truth),
        "quality": round(float(judged.quality(weights).mean()), 4),
        "gain": round(float(gain.mean()), 4),
        "moves": path,
    }
    return weights, notes


def climb(judged: Judged, usual: Weights, possible: Callable[[Weights], bool]) -> tuple[Weights, int]:
    """Move from the usual weights as long as that is clearly better; return the weights and the number of moves."""
    weights, quality = usual, judged.quality(usual)
    for move in range(_MOVES):
        best, found = 0.0, None
        for other in filter(possible, _neighbours(weights)):
            there = judged.quality(other)
            gain = there - quality
            certain = gain.mean() - _CLEARLY * gain.std() / np.sqrt(len(gain))
            if certain > best:
                best, found = certain, (other, there)
        if found is None:
            return weights, move
        weights, quality = found
    return weights, _MOVES


def _neighbours(weights: Weights) -> list[Weights]:
    """Return the weights with one member strengthened, with one far ahead or alone, and with one left out."""
    ones = np.eye(len(weights))
    found = [(1 - stride) * weights + stride * one for one in ones for stride in (_STRIDE, 0.9, 1.0)]
    for one in ones:
        rest = weights * (1 - one)
        if 0 < rest.sum() < 1:
            found.append(rest / rest.sum())
    return found


def _judge(
    vectors: TrainingVectors,
    task: TrainingTask,
    settings: SelfAttentionSettings,
    layout: Layout,
    max_seconds: float | None,
    checkpoint: Checkpoint | None,
) -> Judged | None:
    """Fit on a part of the sources, and let each member rank the others; None if there is too little to judge."""
    assert settings.selection is not None
    assert settings.head is not None
    rng, share = np.random.default_rng([task.seed, 8]), settings.selection.held_out
    held = unseen_part(task.corpus, share, task.seed + 50)
    shuffled = rng.permutation(task.answerable_train_rows)
    out, kept = np.split(shuffled, [round(share * len(shuffled))])
    seen, unseen = np.flatnonzero(~held), np.flatnonzero(held)
    unseen = some_rows(unseen, _MOST_RANKED, rng)
    learned = task.relevance.select_corpus(seen)
    if not len(unseen) or not (learned.counts[kept] > 0).any():
        return None
    asked = np.concatenate([out, task.validation_rows])
    truth = task.relevance.select_corpus(unseen)
    asked = some_rows(asked[truth.counts[asked] > 0], _MOST_QUERIES // 2, rng)
    pseudo, pseudo_truth, hidden = _pseudo_queries(task, unseen, _MOST_QUERIES - len(asked), rng)
    if len(asked) + len(pseudo) < _FEWEST_QUERIES:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed + 50)
        every = [1.0] * len(settings.projection.members)
        metric = Metric(layout, settings.projection, every, number_of_groups(learned, kept, settings)).to(task.device)
    fit_metric(
        metric,
        vectors.part(np.arange(len(task.queries)), seen),
        learned,
        np.sort(kept),
        settings,
        settings.head.model_copy(update={"steps": settings.selection.steps, "max_seconds": max_seconds}),
        seed=task.seed + 50,
        phase="selection",
        log=task.log,
        checkpoint=checkpoint,
    )
    with torch.no_grad():
        queries = torch.cat([vectors.queries[0][torch.from_numpy(asked)], vectors.corpus[0][torch.from_numpy(pseudo)]])
        corpus = vectors.corpus[0][torch.from_numpy(unseen)]
        scores = np.zeros((len(every), len(queries), len(corpus)), np.float32)  # 0 for a member that cannot be
        asked_units = metric.units(queries.float().to(metric.device), "query")
        shown_units = metric.units(corpus.float().to(metric.device))
        for number, unit in asked_units.items():
            scores[number] = (unit @ shown_units[number].T).cpu().numpy()
    scores[:, len(asked) :][:, hidden] = _LAST
    return Judged(scores, _joined(truth.select_queries(asked), pseudo_truth))


def _pseudo_queries(
    task: TrainingTask, unseen: IntArray, number: int, rng: np.random.Generator
) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return left-out corpus rows that act as queries, what is relevant to them, and what they must not find.

    They must not find themselves, nor other sequences of their source. Both tables are (rows, unseen).
    """
    labels = task.relevance.labels
    none = np.empty(0, np.int64), np.zeros((0, len(unseen)), bool), np.zeros((0, len(unseen)), bool)
    if labels is None or number <= 0:
        return none
    sources = source_codes(task.corpus)[unseen]
    rows = some_rows(np.arange(len(unseen)), 2 * number, rng)
    hidden = sources[rows, None] == sources
    relevant = (labels[unseen[rows], None] == labels[unseen]) & (labels[unseen[rows], None] >= 0) & ~hidden
    useful = np.flatnonzero(relevant.any(1))[:number]
    return unseen[rows[useful]], relevant[useful], hidden[useful]


def _joined(first: Relevance, table: npt.NDArray[np.bool_]) -> Relevance:
    """Return the relevance of the first queries, followed by that of a table of truth values."""
    _, rows = np.nonzero(table)
    offsets = np.concatenate([first.offsets, first.offsets[-1] + np.cumsum(table.sum(1))]).astype(np.int64)
    return Relevance(offsets, np.concatenate([first.rows, rows]), first.corpus_size)


def _named(weights: Weights) -> list[float]:
    return [round(float(weight), 4) for weight in weights]
