r"""Choose how much each member of the metric counts, on sequences that it has not seen.

A metric ranks the sequences it was trained on far better than others, so weights chosen on the training corpus would
trust it too much. Here a first, shorter fit leaves out some sources of the corpus and some train queries. Then the
left-out queries, the validation queries, and left-out corpus sequences as queries rank the left-out corpus. The weights
start at the usual ones and move, one member at a time, as long as the quality

.. math:: Q = 0.7\, \mathrm{AP} + 0.3\, \mathrm{nDCG@10}

rises by more than two standard errors (of the paired differences over the queries). One of the members is the whitened
vector itself, without any learned metric: if the metric does not generalise, it counts for little or nothing.

Where few queries can judge, such moves would be noise, and so would be trust in the usual weights. Several divisions of
the data are judged then, and the metric has to be clearly better than plain histograms; otherwise these are used alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
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
from neuroseqret.training import budget
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.progress import Following, remark
from neuroseqret.training.task import TrainingTask

Floats = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]

DIVISIONS = 3  # of the data, where few queries judge
_FEWEST_QUERIES = 20  # with fewer, nothing can be told
_FEW_QUERIES = 100  # with fewer, the metric has to prove itself against histograms
_MOST_QUERIES = 400
_MOST_RANKED = 2000  # left-out corpus sequences
_LAST = -9.0  # below every cosine
_MOVES = 8  # most steps away from the usual weights
_STRIDE = 0.25  # how far a step goes towards one member
_CLEARLY = 2.0  # standard errors that a step must gain, or the metric against histograms
_VERY_CLEARLY = 4.0  # standard errors after which nothing more has to be judged


@dataclass(frozen=True)
class Judged:
    """The scores of every member for some queries, and the truth: scores (members, queries, candidates)."""

    scores: Floats
    truth: Relevance

    def quality(self, weights: Weights) -> npt.NDArray[np.float64]:
        """Return Q of every query."""
        mixed = np.tensordot(weights.astype(np.float32), self.scores, 1)
        return 0.7 * average_precision(mixed, self.truth) + 0.3 * ndcg(mixed, self.truth)


@dataclass(frozen=True)
class HeldOut:
    """A division of the data: what a first fit learns from, and who ranks what it has not seen."""

    number: int
    kept: IntArray  # train queries to learn from
    seen: IntArray  # corpus rows to learn from
    learned: Relevance  # of all queries to `seen`
    unseen: IntArray  # corpus rows that are ranked
    asked: IntArray  # queries that rank them
    pseudo: IntArray  # corpus rows that rank them as well
    truth: Relevance  # of `asked`, then `pseudo`, to `unseen`
    hidden: npt.NDArray[np.bool_]  # what `pseudo` must not find

    @property
    def phase(self) -> str:
        """The name of the training phase."""
        return f"selection_{self.number}" if self.number else "selection"

    @property
    def queries(self) -> IntArray:
        """A number for every query that ranks, the same in every division."""
        return np.concatenate([self.asked, -1 - self.pseudo])


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
    members = settings.projection.members
    usual = np.array([member.weight for member in members], np.float64)
    usual /= usual.sum()
    held = hold_out(task, settings)
    unlearned = next((number for number, member in enumerate(members) if member.stands_alone), None)
    if held is None or len(held.queries) < _FEWEST_QUERIES:
        return usual, {"weights": _named(usual), "chosen": "the usual weights: too few sequences to choose on"}
    few = len(held.queries) < _FEW_QUERIES and unlearned is not None
    divisions = DIVISIONS if few else 1

    def judge(held: HeldOut) -> Judged:
        left = divisions - 1 - held.number
        return _judge(held, vectors, task, settings, layout, max_seconds, divisions, left, checkpoint)

    judged = judge(held)
    if few and unlearned is not None and _trained_enough(held, task, settings):
        others = (hold_out(task, settings, number) for number in range(1, divisions))
        more = ((other, judge(other)) for other in others if other is not None)
        fair = itertools.takewhile(lambda pair: _trained_enough(pair[0], task, settings), more)
        pairs = itertools.chain([(held.queries, judged)], ((other.queries, one) for other, one in fair))
        plain = np.eye(len(usual))[unlearned]
        trusted, notes = trust((queries, one.quality(usual) - one.quality(plain)) for queries, one in pairs)
        if not trusted:
            remark(
                "few sequences: a learned metric is not clearly better than histograms, which the model uses instead"
            )
            return plain, {"weights": _named(plain), "chosen": "the histograms without a metric", **notes}
    weights, path = climb(judged, usual, settings.projection.possible)
    gain = judged.quality(weights) - judged.quality(usual)
    return weights, {
        "weights": _named(weights),
        "queries": len(judged.truth),
        "quality": round(float(judged.quality(weights).mean()), 4),
        "gain": round(float(gain.mean()), 4),
        "moves": path,
    }


def _trained_enough(held: HeldOut, task: TrainingTask, settings: SelfAttentionSettings) -> bool:
    """Whether the time limit left a metric enough steps to be compared with histograms."""
    assert settings.selection is not None
    steps = sum(record["phase"] == held.phase for record in task.log.records)
    return steps >= settings.selection.steps / 3


def trust(gains: Iterable[tuple[IntArray, npt.NDArray[np.float64]]]) -> tuple[bool, dict[str, Any]]:
    """Return whether the usual weights are better than plain histograms by more than noise, and notes.

    `gains` yields one division of the data after the other: the queries that judge, and what each of them gains by the
    metric. No more divisions are made once it is clear.
    """
    found: dict[int, list[float]] = {}
    mean, error = 0.0, np.inf
    for queries, gain in gains:
        for query, value in zip(queries.tolist(), gain.tolist(), strict=True):
            found.setdefault(query, []).append(value)
        each = np.array([np.mean(values) for values in found.values()])
        mean, error = float(each.mean()), float(each.std() / np.sqrt(len(each)))
        if abs(mean) > _VERY_CLEARLY * error:
            break
    notes = {"queries": len(found), "gain over histograms": round(mean, 4), "standard error": round(error, 4)}
    return mean > _CLEARLY * error, notes


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


def hold_out(task: TrainingTask, settings: SelfAttentionSettings, number: int = 0) -> HeldOut | None:
    """Return a division of the data; None if there is too little."""
    assert settings.selection is not None
    own = [number] if number else []
    rng, share = np.random.default_rng([task.seed, 8, *own]), settings.selection.held_out
    held = unseen_part(task.corpus, share, task.seed + 50 + 1000 * number)
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
    truth = _joined(truth.select_queries(asked), pseudo_truth)
    return HeldOut(number, np.sort(kept), seen, learned, unseen, asked, pseudo, truth, hidden)


def _judge(
    held: HeldOut,
    vectors: TrainingVectors,
    task: TrainingTask,
    settings: SelfAttentionSettings,
    layout: Layout,
    max_seconds: float | None,
    divisions: int,
    left: int,
    checkpoint: Checkpoint | None,
) -> Judged:
    """Fit on a part of the sources, and let each member rank the others; `left` divisions follow."""
    assert settings.selection is not None
    assert settings.head is not None
    loop = settings.head.model_copy(
        update={
            "steps": settings.selection.steps,
            "max_seconds": None if max_seconds is None else max_seconds / divisions,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed + 50 + held.number)
        every = [1.0] * len(settings.projection.members)
        groups = number_of_groups(held.learned, held.kept, settings)
        metric = Metric(layout, settings.projection, every, groups).to(task.device)
    fit_metric(
        metric,
        vectors.part(np.arange(len(task.queries)), held.seen),
        held.learned,
        held.kept,
        settings,
        loop,
        seed=task.seed + 50 + held.number,
        phase=held.phase,
        log=task.log,
        checkpoint=checkpoint,
        following=_following(settings, task, left, told=held.number > 0),
    )
    with torch.no_grad():
        asked, pseudo = torch.from_numpy(held.asked), torch.from_numpy(held.pseudo)
        queries = torch.cat([vectors.queries[0][asked], vectors.corpus[0][pseudo]])
        corpus = vectors.corpus[0][torch.from_numpy(held.unseen)]
        scores = np.zeros((len(every), len(queries), len(corpus)), np.float32)  # 0 for a member that cannot be
        asked_units = metric.units(queries.float().to(metric.device), "query")
        shown_units = metric.units(corpus.float().to(metric.device))
        for number, unit in asked_units.items():
            scores[number] = (unit @ shown_units[number].T).cpu().numpy()
    scores[:, len(asked) :][:, held.hidden] = _LAST
    return Judged(scores, held.truth)


def _following(settings: SelfAttentionSettings, task: TrainingTask, left: int, told: bool) -> Following | None:
    """Return what is trained after a division of the selection, so that the progress can tell how long it takes."""
    assert settings.selection is not None
    assert settings.head is not None
    if settings.head.steps is None:
        return None
    seconds = math.inf if task.max_seconds is None else task.max_seconds - (budget.now() - task.begun)
    return Following(settings.head.steps + left * settings.selection.steps, max(seconds, 0.0), told)


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
