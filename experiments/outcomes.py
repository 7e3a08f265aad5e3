"""What a cell keeps of a measurement: means, values query by query, how much was asked, or why it failed."""

from __future__ import annotations

import numpy as np

from experiments.result_cells import Result
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.scoring import Answers
from neuroseqret.models.base import RelevanceModel

KEPT = ("AP", "nDCG@10")  # measures that are kept query by query


def failure(error: Exception) -> Result:
    """Return the reason of a failure, which the page shows; the other cells are not affected."""
    return {"error": str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"}


def figures(answers: Answers, by_query: bool) -> Result:
    """Return the means of all measures; with `by_query` also the values of `KEPT` for each query, for tests."""
    means = {name: round(float(values.mean()), 6) for name, values in answers.measures.items()}
    if not by_query:
        return {"measures": means}
    each = {name: np.rint(1e4 * answers.measures[name]).astype(int).tolist() for name in KEPT}
    return {"measures": means, "ten_thousandths": each}


def facts(task: RankingTask) -> Result:
    """Return how many queries were asked and how many candidates were ranked."""
    return {
        "queries_answered": len(task.queries),
        "queries_left_out": task.left_out,
        "queries_not_drawn": task.not_drawn,
        "candidates": int(task.candidates.max()),
    }


def learning_curve(model: RelevanceModel) -> Result:
    """Return what the last phase with validations was judged by, and its course; nothing for a method without one.

    A point is the seconds since the phase began, the mean loss since the point before it, and the validation value.
    """
    phases = [record["phase"] for record in model.log.records if "validation" in record]
    judged_by = next(iter(model.trained_card().validation), None)
    if not phases or judged_by is None:
        return {}
    points, losses = [], []
    for record in model.log.records:
        if record["phase"] != phases[-1]:
            continue
        losses.append(record["loss"])
        if "validation" in record:
            found = record["seconds"], float(np.mean(losses)), record["validation"]
            points.append([round(value, 4) for value in found])
            losses.clear()
    return {"curve": {"judged_by": judged_by, "points": points}}
