"""`simulated`: each part of the paper's model on simulated data where its assumptions hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.hash_curve import curve
from experiments.hashing import NAMES, SHARES, at_share
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, number, table
from experiments.measured import Measured
from experiments.result_cells import Result
from experiments.simulated_data import realisations, warps
from experiments.versions import versions_of
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer_from
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers.data_folder import DataFolder
from neuroseqret.training.budget import of_processor_time

SEEDS = 3  # of the data and of the model together
SECONDS = 20.0  # most processor time of a fit
HASHES = ("exhaustive", "hyperplanes", "paper", "trees")
DATA: dict[str, Callable[..., DataFolder]] = {"warps": warps, "realisations": realisations}
#: Settings of preset `paper` that a row replaces, for each kind of data.
ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "warps": {"with U": {}, "without U": {"unwarp": None}},
    "realisations": {
        "Fisher vector": {"unwarp": None},
        "pooled states": {"unwarp": None, "vector": {"fisher": "none", "pooled": True}},
    },
}


def measure(lab: Lab) -> None:
    """Measure one cell per kind of data, row and seed."""
    if lab.methods and "self" not in lab.methods:
        return
    pieces = []
    for kind, rows in ROWS.items():
        for name, settings in rows.items():
            for seed in range(min(SEEDS, lab.seeds)):
                fit = {"data": f"simulated {kind}", "method": "self", "preset": "paper", "variant": name, "seed": seed}
                asked = {
                    "corpus": "seen",
                    "content": "simulated",
                    "max_seconds": SECONDS,
                    "max_queries": lab.max_queries,
                }
                config = {**fit, **asked, "settings": settings, "experiment": "simulated"}
                config["versions"] = versions_of(config)
                place = f"simulated/{kind}/{name.replace(' ', '-')}-seed{seed}"
                pieces.append(Piece(place, config, partial(look, DATA[kind](seed=seed), settings, seed, SECONDS)))
    lab.run_pieces(pieces)


def look(data: DataFolder, settings: dict[str, Any], seed: int, seconds: float) -> Result:
    """Return MAP, what U learned, and the curves of the hashes over the embeddings of a model fitted on the data."""
    assert data.queries is not None
    task = make_task(data.queries, data.corpus, data.relevance, split="test", seed=seed)
    model = SelfAttention("paper", **settings)
    with of_processor_time():
        model.fit(task.training_queries, task.training_corpus, task.training_relevance, seed=seed, max_seconds=seconds)
    measures = answer_from(model.score(task.queries, task.corpus), task).measures
    corpus, queries = model.embed(task.corpus, "corpus"), model.embed(task.queries, "query")
    curves = {way: curve(way, "simulated", corpus, queries, task.relevance) for way in HASHES}
    return {"measures": {name: round(float(values.mean()), 6) for name, values in measures.items()}, "curves": curves}


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return MAP of the rows, and the hashes at equal shares compared."""
    found = _by_row(measured)
    if not found:
        return f"## Simulated data\n\n{NOTHING}"
    draws = max(map(len, found.values()))
    lines = [
        [kind, name, f"{np.mean(aps):.1f}" + (f" ± {np.std(aps, ddof=1):.1f}" if len(aps) > 1 else "")]
        for (kind, name), results in found.items()
        if (aps := [100 * result["measures"]["AP"] for result in results])
    ]
    hashes = [
        [NAMES[way], *(number(100 * _read(results, way, share)) for results in found.values() for share in SHARES)]
        for way in HASHES
        if way != "exhaustive"
    ]
    head = [f"{kind}, {name}, {100 * share:g} %" for kind, name in found for share in SHARES]
    return "\n\n".join(
        [
            "## Simulated data",
            f"Data in which the paper's assumptions hold, {draws} draws each; preset `paper` with one part changed, "
            f"trained for at most {SECONDS:g} s. *warps*: relevant sequences are warps of one pattern of events, and "
            "all queries are seen through one clock, which shows three quarters of the window when half of it has "
            "passed. *realisations*: relevant sequences are realisations of one process. MAP of test queries:",
            table(["data", "model", "MAP"], lines, text=2),
            "nDCG@10 of the union of buckets over the embeddings of these models, at two shares compared:",
            table(["hash", *head], hashes),
        ]
    )


def _by_row(measured: Measured) -> dict[tuple[str, str], list[Result]]:
    """Return the results of all seeds by kind of data and row."""
    found: dict[tuple[str, str], list[Result]] = {(kind, name): [] for kind, rows in ROWS.items() for name in rows}
    for config, result in measured.pieces["simulated"]:
        key = config["data"].removeprefix("simulated "), config["variant"]
        if key in found and "measures" in result:
            found[key].append(result)
    return {key: results for key, results in found.items() if results}


def _read(results: list[Result], way: str, share: float) -> float:
    """Return the mean nDCG@10 at a share compared."""
    return float(np.mean([at_share(result["curves"].get(way, []), share) for result in results]))


def findings(measured: Measured) -> list[Finding]:
    """Return whether each part shows its worth where the paper's assumptions hold."""
    found = _by_row(measured)

    def gain(kind: str, first: str, second: str) -> str:
        means = [
            100 * np.mean([result["measures"]["AP"] for result in found.get((kind, name), [])])
            for name in (first, second)
            if (kind, name) in found
        ]
        return number(float(means[0] - means[1]), "+.1f") if len(means) == 2 else ""

    said = [
        f"{text} {change} points of MAP"
        for text, change in (
            ("U gives", gain("warps", "with U", "without U")),
            ("the Fisher vector in place of pooled states", gain("realisations", "Fisher vector", "pooled states")),
        )
        if change
    ]
    claim = "Where its assumptions hold, each part of the model shows its worth (simulated data; our own check)."
    return [Finding(claim, "; ".join(said))]
