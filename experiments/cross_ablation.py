"""The paper's ablation of CrossAttn: its six scores, by the paper's protocol.

Five of them are read off one trained model: it computes kappa, Delta_t and Delta_x of a pair, and a score takes some of
the three. `without U` is a model of its own, trained without the unwarping on the same first stage.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from experiments.lab import SECOND_STAGE, Lab, Piece
from experiments.markdown import NOTHING, Finding, decimals, measured_table, number, of
from experiments.measured import DIFFERENT, LEVEL, Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from experiments.variants import preset_for
from neuroseqret.data.batching import pad, rows_by_length
from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.significance import holm, randomisation_test
from neuroseqret.measures.list_measures import average_precision
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.cross_scorer import CrossScorer, first_events
from neuroseqret.models.cross.process_correction import ProcessKernel

ASKED = 100  # test queries of a set: every pair of their lists is scored
EVENTS = 16384  # of the candidates scored together
WHOLE, WITHOUT_U = "whole", "without U"
#: The six scores: the weights of kappa, gamma Delta_t and gamma Delta_x.
SCORES: dict[str, tuple[int, int, int]] = {
    "−Δx(q, c) − Δt(U(q), c)": (0, 1, 1),
    "κ(q, c)": (1, 0, 0),
    "κ(q, c) − γ Δx(q, c)": (1, 0, 1),
    "κ(q, c) − γ Δt(U(q), c)": (1, 1, 0),
    WITHOUT_U: (1, 1, 1),
    WHOLE: (1, 1, 1),
}


def measure(lab: Lab) -> None:
    """Measure two cells per data set: the scores of the trained model, and the model without U."""

    def look(fit: Fit, unwarp: bool) -> Result:
        model = lab.fitted(fit)[0] if unwarp else _without_unwarping(lab, fit)
        assert isinstance(model, CrossAttention)
        assert isinstance(model.correction, ProcessKernel)
        names = [name for name in SCORES if (name == WITHOUT_U) != unwarp]
        return by_query(model.correction.scorer, lab.task(fit, View(protocol="sampled")), model, names)

    pieces = []
    for data in lab.data:
        fit = Fit(data=data, method="cross", preset="paper")
        for unwarp, name in ((True, "scores"), (False, "without-unwarping")) if lab.wanted(fit) else ():
            config = lab.piece_config("cross-ablation", fit, asked=ASKED, unwarp=unwarp)
            pieces.append(Piece(f"{data}/cross-ablation/{name}", config, partial(look, fit, unwarp)))
    lab.run_pieces(pieces)


def _without_unwarping(lab: Lab, fit: Fit) -> CrossAttention:
    first, _ = lab.fitted(fit.model_copy(update={"method": "self"}))
    model = CrossAttention(preset_for(fit.preset, fit.data), first, process={"unwarp": False})  # type: ignore[arg-type]
    return lab.trained(fit, model, SECOND_STAGE * lab.max_seconds)  # type: ignore[return-value]


def by_query(scorer: CrossScorer, task: RankingTask, model: CrossAttention, names: list[str]) -> Result:
    """Return the AP of each score, query by query, over the lists of the task, in ten-thousandths."""
    assert task.lists is not None
    gamma = model.settings.process.gamma
    found: dict[str, list[int]] = {name: [] for name in names}
    for query in range(min(ASKED, len(task.queries))):
        asked = model.meaning.apply(task.queries[query : query + 1], "keep")
        shown = model.meaning.apply(task.corpus[task.lists.of(query)], "keep")
        parts = terms(scorer, asked, shown)
        relevant = np.zeros(len(shown), bool)
        relevant[task.lists.relevance.of(query)] = True
        for name in names:
            kappa, of_times, of_marks = SCORES[name]
            score = kappa * parts[0] - gamma * (of_times * parts[1] + of_marks * parts[2])
            in_order = relevant[np.argsort(-score, kind="stable")]
            found[name].append(round(1e4 * float(average_precision(in_order[None], relevant.sum()[None])[0])))
    return {"ten_thousandths": found}


@torch.no_grad()
def terms(scorer: CrossScorer, query: EventSequences, candidates: EventSequences) -> FloatArray:
    """Return kappa, Delta_t and Delta_x of one query and each candidate: (3, candidates)."""
    found = np.empty((3, len(candidates)))
    asked = scorer.unwarped(first_events(pad(query)))
    for rows in rows_by_length(candidates.lengths, EVENTS):
        pairs = scorer.pairs(asked, first_events(pad(candidates, rows)))
        found[:, rows] = [part[0].numpy() for part in (scorer.kernel(pairs), *scorer.deltas(pairs))]
    return found


def by_set(measured: Measured) -> dict[str, dict[str, FloatArray]]:
    """Return the AP of every query in points, by data set and score."""
    found: dict[str, dict[str, FloatArray]] = {}
    for config, result in measured.pieces["cross-ablation"]:
        for name, values in result.get("ten_thousandths", {}).items():
            found.setdefault(config["data"], {})[name] = np.array(values) / 100
    return {data: found[data] for data in measured.data if WHOLE in found.get(data, {})}


def report(measured: Measured) -> str:
    """Return the MAP of the whole score, and what each of the other five differs from it."""
    found = by_set(measured)
    head = "### The paper's six scores of CrossAttn (preset `paper`)"
    if not found:
        return f"{head}\n\n{NOTHING}"
    others = [name for name in SCORES if name != WHOLE]
    p = holm(np.array([[_p_value(found[data], name) for data in found] for name in others])).reshape(len(others), -1)
    means = [float(one[WHOLE].mean()) for one in found.values()]
    places = [decimals([mean]) for mean in means]
    lines = [["the whole model", *(number(m, f".{n}f") for m, n in zip(means, places, strict=True)), ""]]
    for name, row in zip(others, p, strict=True):
        gains = [_gain(one, name) for one in found.values()]
        cells = [
            number(g, f"+.{n}f") + ("" if not q <= LEVEL else "▲" if g > 0 else "▼")
            for g, q, n in zip(gains, row, places, strict=True)
        ]
        known = [g for g in gains if not np.isnan(g)]
        lines.append([name, *cells, number(float(np.mean(known)), "+.1f") if known else ""])
    return "\n\n".join(
        [
            head,
            f"MAP by the paper's protocol (every candidate of the lists scored), seed 0, at most {ASKED} test queries "
            "of a set. Four of the scores are read off the trained model; `without U` is trained anew on the same "
            "first stage. Signs as above.",
            measured_table(["variant", *found, "mean"], lines),
        ]
    )


def _gain(one: dict[str, FloatArray], name: str) -> float:
    return float(one[name].mean() - one[WHOLE].mean()) if name in one else float("nan")


def _p_value(one: dict[str, FloatArray], name: str) -> float:
    return float(randomisation_test(one[name][:, None], one[WHOLE][:, None])[0]) if name in one else float("nan")


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about the ablation of CrossAttn."""
    found = by_set(measured)
    gains = {name: [g for one in found.values() if not np.isnan(g := _gain(one, name))] for name in SCORES}

    def lower(name: str) -> str:
        return of(sum(g <= -DIFFERENT for g in gains[name]), len(gains[name]))

    if not found:
        return []
    sim, kappa = list(SCORES)[:2]
    said = [f"in CrossAttn, {name} alone is below the whole score on {lower(name)} sets" for name in (sim, kappa)]
    if gains[WITHOUT_U]:
        said.append(f"the model without U is below it on {lower(WITHOUT_U)}")
    return [Finding("Each of κ, Δt, Δx and U adds to the score of CrossAttn, κ most.", "; ".join(said))]
