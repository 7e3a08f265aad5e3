"""`diagnosis`: why SelfAttn of preset `paper` ranks as it does, from looks at the trained model."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch

from experiments.lab import Lab, Piece
from experiments.markdown import MISSING, NOTHING, number, table
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.scoring import answer_from
from neuroseqret.models.base import Scores
from neuroseqret.models.self_attention.model import SelfAttention

PRESET = "paper"
ASKED = 200  # train queries whose MAP is looked at
POINTS = 257  # of the window, at which U is looked at
ROWS = {
    "train": "MAP of train queries",
    "validation": "MAP of validation queries",
    "test": "MAP of test queries",
    "kernel": "the same by κ alone",
    "similarity": "the same by Sim alone",
    "kernel_spread": "standard deviation of κ over the corpus",
    "similarity_spread": "standard deviation of γ Sim over the corpus",
    "move": "largest move of a time by U, % of the window",
}


def measure(lab: Lab) -> None:
    """Measure one cell per data set."""

    def look(fit: Fit) -> Result:
        model, _ = lab.fitted(fit)
        assert isinstance(model, SelfAttention)
        return facts(model, {split: lab.task(fit, View(), split) for split in ("train", "validation", "test")})

    fits = [Fit(data=data, method="self", preset=PRESET) for data in lab.data]
    lab.run_pieces(
        [
            Piece(f"{fit.data}/diagnosis/self", lab.piece_config("diagnosis", fit), partial(look, fit))
            for fit in fits
            if lab.wanted(fit)
        ]
    )


def facts(model: SelfAttention, tasks: dict[str, RankingTask]) -> Result:
    """Return MAP in points by split and by part of the score, the spread of the parts, and the move of U."""
    train = tasks["train"]
    asked = tasks | {"train": train.part(np.arange(min(ASKED, len(train.queries))))}
    scores = {split: model.score(task.queries, task.corpus, unknown_marks="keep") for split, task in asked.items()}
    test = tasks["test"]
    of_queries = model.embed(test.queries, "query", unknown_marks="keep")
    kernel = of_queries @ model.embed(test.corpus, "corpus", unknown_marks="keep").T
    similarity = scores["test"] - kernel
    found = {split: _map(scores[split], task) for split, task in asked.items()}
    found |= {"kernel": _map(kernel, test), "similarity": _map(similarity, test)}
    found |= {"kernel_spread": float(kernel.std(1).mean()), "similarity_spread": float(similarity.std(1).mean())}
    if model.network.unwarp is not None:
        times = torch.linspace(0, 1, POINTS, dtype=torch.float64) * model.horizon
        with torch.no_grad():
            found["move"] = 100 * float((model.network.unwarp(times) - times).abs().max()) / model.horizon
    return {name: round(value, 4) for name, value in found.items()}


def _map(scores: Scores, task: RankingTask) -> float:
    return 100 * float(answer_from(scores, task).measures["AP"].mean())


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return one column per data set."""
    found = looks(measured)
    head = f"## A look inside `self ({PRESET})`"
    if not found:
        return f"{head}\n\n{NOTHING}"
    lines = [
        [
            text,
            *(
                number(one[name], ".3f" if "spread" in name else ".1f") if name in one else MISSING
                for one in found.values()
            ),
        ]
        for name, text in ROWS.items()
    ]
    return "\n\n".join(
        [
            head,
            f"Seed 0, corpus seen, the whole corpus ranked; MAP in points, of at most {ASKED} train queries. Where "
            "train queries are ranked hardly better than others, the model has not learned them by heart: it is too "
            "weak for the task rather than short of data.",
            table(["", *found], lines),
            verdict(measured),
        ]
    )


def looks(measured: Measured) -> dict[str, Result]:
    """Return what was found, by data set."""
    found = {c["data"]: r for c, r in measured.pieces["diagnosis"] if "error" not in r}
    return {data: found[data] for data in measured.data if data in found}


def verdict(measured: Measured) -> str:
    """Return what the looks have in common, in words; empty if there are none."""
    found = looks(measured)
    if not found:
        return ""
    gaps = [one["train"] - one["validation"] for one in found.values()]
    parts = [one["test"] - one["kernel"] for one in found.values()]
    moves = [one.get("move", 0.0) for one in found.values()]
    spread = [one["kernel_spread"] / max(one["similarity_spread"], 1e-9) for one in found.values()]
    return (
        f"In words: train queries are {number(min(gaps), '+.1f')} to {number(max(gaps), '+.1f')} points above "
        f"validation queries; κ spreads {min(spread):.0f} to {max(spread):.0f} times as widely as γ Sim, which changes "
        f"MAP by {number(min(parts), '+.1f')} to {number(max(parts), '+.1f')} points; U moves times by at most "
        f"{number(max(moves))} % of the window."
    )
