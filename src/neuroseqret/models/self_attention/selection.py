r"""Choose how much each member of the metric counts, on sequences that it has not seen.

A metric ranks the sequences it was trained on far better than others, so weights chosen on the training corpus would
trust it too much. Here a first, shorter fit leaves out some sources of the corpus and some train queries (`held_out`).
Then the left-out queries, the validation queries, and left-out corpus sequences as queries rank the left-out corpus
(`judging`). The weights start at the usual ones and move, one member at a time, as long as the quality

.. math:: Q = 0.7\, \mathrm{AP} + 0.3\, \mathrm{nDCG@10}

rises by more than two standard errors (of the paired differences over the queries). One of the members is the whitened
vector itself, without any learned metric: if the metric does not generalise, it counts for little or nothing.

With few queries to judge by, such moves would be noise, and so would trust in the usual weights. Then several divisions
of the data are judged, and the metric has to be clearly better than plain histograms; otherwise these are used alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import IntArray
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.held_out import HeldOut, hold_out
from neuroseqret.models.self_attention.judging import Judge, Judged, Weights
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.progress import remark
from neuroseqret.training.task import TrainingTask

DIVISIONS = 3  # of the data, where few queries judge
_FEWEST_QUERIES = 20  # with fewer, nothing can be told
_FEW_QUERIES = 100  # with fewer, the metric has to prove itself against histograms
_MOVES = 8  # most steps away from the usual weights
_STRIDE = 0.25  # how far a step goes towards one member
_CLEARLY = 2.0  # standard errors that a step must gain, or the metric against histograms
_VERY_CLEARLY = 4.0  # standard errors after which nothing more has to be judged

Gains = tuple[IntArray, npt.NDArray[np.float64]]  # the queries that judge, and what each of them gains by the metric


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
    if held is None or len(held.queries) < _FEWEST_QUERIES:
        return usual, {"weights": _named(usual), "chosen": "the usual weights: too few sequences to choose on"}
    unlearned = next((number for number, member in enumerate(members) if member.stands_alone), None)
    few = len(held.queries) < _FEW_QUERIES and unlearned is not None
    judge = Judge(vectors, task, settings, layout, DIVISIONS if few else 1, max_seconds, checkpoint)
    judged = judge.judged(held)
    if few and judge.trained_enough(held):
        histograms = np.eye(len(usual))[unlearned]
        trusted, notes = trust(_gains(judge, held, judged, usual, histograms))
        if not trusted:
            remark(
                "few sequences: a learned metric is not clearly better than histograms, which the model uses instead"
            )
            return histograms, {"weights": _named(histograms), "chosen": "the histograms without a metric", **notes}
    weights, moves = climb(judged, usual, settings.projection.possible)
    gain = judged.quality(weights) - judged.quality(usual)
    return weights, {
        "weights": _named(weights),
        "queries": len(judged.truth),
        "quality": round(float(judged.quality(weights).mean()), 4),
        "gain": round(float(gain.mean()), 4),
        "moves": moves,
    }


def _gains(judge: Judge, held: HeldOut, judged: Judged, usual: Weights, histograms: Weights) -> Iterator[Gains]:
    """Yield the gains over histograms in a division that is judged, then in others, until the time is up."""
    yield held.queries, judged.quality(usual) - judged.quality(histograms)
    for number in range(1, judge.divisions):
        other = hold_out(judge.task, judge.settings, number)
        if other is None:
            continue
        judged = judge.judged(other)
        if not judge.trained_enough(other):
            return
        yield other.queries, judged.quality(usual) - judged.quality(histograms)


def trust(gains: Iterable[Gains]) -> tuple[bool, dict[str, Any]]:
    """Return whether the usual weights are better than plain histograms by more than noise, and notes.

    `gains` yields one division of the data after the other. No more divisions are made once it is clear.
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


def _named(weights: Weights) -> list[float]:
    return [round(float(weight), 4) for weight in weights]
