"""Single queries for figures: a typical query with its hits, and what unwarping does to a typical pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from neuroseqret.data.batching import pad
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import FloatArray
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.scoring import Answers, answer
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.self_attention.model import SelfAttention

MOST = 60  # events of a sequence that are kept
GRID = 101  # times at which U is computed


def best_hits(model: RelevanceModel, task: RankingTask, number: int) -> dict[str, Any]:
    """Return the query with the median AP and its best hits."""
    row, answers = _median_query(model, task)
    relevant = set(task.relevance.of(row).tolist())
    best = answers.top_rows[row, :number].tolist()
    query = task.queries[row]
    return {
        "time_unit": query.time_unit,
        "mark_names": None if query.mark_names is None else list(query.mark_names),
        "AP": round(float(answers.measures["AP"][row]), 4),
        "query": _events(query),
        "hits": [_events(task.corpus[place], relevant=place in relevant) for place in best],
    }


def unwarped_pair(model: SelfAttention, task: RankingTask) -> dict[str, Any]:
    """Return U on a grid, and a relevant pair with the query before and after U; all models get the same pair."""
    warp = model.network.unwarp
    if warp is None:
        raise UserError("the model has no unwarping")
    row, hit = typical_pair(task)
    times = torch.linspace(0, warp.horizon, GRID, dtype=torch.float64)
    with torch.no_grad():
        mapped = warp(times).numpy()
        moved = model.unwarped(pad(task.queries[row : row + 1]), "query").times[0].numpy()
    query = task.queries[row]
    return {
        "time_unit": query.time_unit,
        "times": _short(times.numpy()),
        "unwarped_times": _short(mapped),
        "query": _events(query, unwarped=_short(moved[:MOST] - moved[0])),
        "hit": _events(task.corpus[hit]),
    }


def typical_pair(task: RankingTask) -> tuple[int, int]:
    """Return the query with the median number of events, and the relevant sequence nearest to it in length."""
    order = np.argsort(task.queries.lengths, kind="stable")
    row = int(order[len(order) // 2])
    relevant = np.sort(task.relevance.of(row))
    nearest = np.argmin(np.abs(task.corpus.lengths[relevant] - task.queries.lengths[row]))
    return row, int(relevant[nearest])


def _median_query(model: RelevanceModel, task: RankingTask) -> tuple[int, Answers]:
    answers = answer(model, task)
    order = np.argsort(answers.measures["AP"], kind="stable")
    return int(order[len(order) // 2]), answers


def _events(sequence: EventSequence, **more: Any) -> dict[str, Any]:
    times = sequence.times[:MOST] - sequence.times[0]
    return {"id": sequence.id, "times": _short(times), "marks": sequence.marks[:MOST].tolist(), **more}


def _short(times: FloatArray) -> list[float]:
    """Return the times with eight digits, more than a figure shows even of a difference of two times."""
    return [float(f"{time:.8g}") for time in times.tolist()]
