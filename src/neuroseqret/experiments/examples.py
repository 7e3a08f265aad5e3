"""Sequences in cells, for figures: a query that is neither a lucky nor an unlucky one, and events as lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroseqret.evaluation.protocol import Task
from neuroseqret.evaluation.scoring import Answers, answer
from neuroseqret.models.base import RelevanceModel
from neuroseqret.sequence import EventSequence

MOST = 60  # events of a sequence that are kept


def median_query(model: RelevanceModel, task: Task) -> tuple[int, Answers]:
    """The query with the median AP, and all answers."""
    answers = answer(model, task)
    order = np.argsort(answers.measures["AP"], kind="stable")
    return int(order[len(order) // 2]), answers


def events(sequence: EventSequence, **more: Any) -> dict[str, Any]:
    """The first events of a sequence; 5 digits are more than a figure shows."""
    times = [float(f"{time - sequence.times[0]:.5g}") for time in sequence.times[:MOST]]
    return {"id": sequence.id, "times": times, "marks": sequence.marks[:MOST].tolist(), **more}
