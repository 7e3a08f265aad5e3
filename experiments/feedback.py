"""`feedback`: how much judgements of simulated judges help, some of whom are wrong.

The corpus has no labels. A first index ranks it by histograms, which need no training. Judges look at the ten best hits
of 1, 3 or 10 queries per group (not test queries) and say which are relevant; with noise, each of their words is wrong
with probability 0.1. The judgements go through the index's own store.

- Learned: a model is fitted to the judgements alone, as `fit --feedback` does, and ranks the corpus for test queries.
- At once: Rocchio moves each test query by the judgements of its own ten best hits; MAP over the rest of the corpus,
  because the judged hits would count twice.

`python -m experiments.feedback` measures the same on simulated data, without cells.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import neuroseqret as nsr
from experiments.lab import Lab, Piece
from experiments.markdown import MISSING, NOTHING, number, table
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from experiments.simulated_judges import FIRST, LOOKED_AT, at_once, first_model, learned, mean_ap
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.models.base import Embedder
from neuroseqret.training.budget import of_processor_time

DATA = ("sports", "health")
LEARNERS = ("histogram-metric", "self")
MOVED = (FIRST, "self")
JUDGED = (0, 1, 3, 10)  # queries per group that judges look at
NOISE = (0.0, 0.1)  # shares of their words that are wrong


def measure(lab: Lab) -> None:
    """Measure what is at once first, then what is learned, one cell per model, number of queries, noise and seed."""
    sets = [data for data in DATA if data in lab.folders]
    fits = [Fit(data=data, method=method) for method in MOVED for data in sets]
    pieces = [
        Piece(f"{fit.data}/feedback/at-once-{fit.method}", _config(lab, fit, "at once"), partial(_look, lab, fit))
        for fit in fits
        if lab.wanted(fit)
    ]
    for seed, (judged, noise), method, data in _plan(lab.seeds, sets):
        fit = Fit(data=data, method=method, seed=seed)
        if lab.wanted(fit):
            name = f"{data}/feedback/learned-{method}-{judged}-{100 * noise:g}-seed{seed}"
            config = _config(lab, fit, "learned", judged=judged, noise=noise)
            pieces.append(Piece(name, config, partial(_fitted, lab, fit, judged, noise)))
    lab.run_pieces(pieces)


def _plan(seeds: int, sets: list[str]) -> Iterator[tuple[int, tuple[int, float], str, str]]:
    """Yield what is learned, the first seed of everything first."""
    for seed in range(seeds):
        for method in LEARNERS:
            for way in _ways():
                for data in sets:
                    yield seed, way, method, data


def _ways() -> list[tuple[int, float]]:
    """Return how many queries are judged, and with which noise; without judgements none of them is wrong."""
    return [(judged, noise) for judged in JUDGED for noise in NOISE if judged or not noise]


def _config(lab: Lab, fit: Fit, part: str, **more: Any) -> dict[str, Any]:
    return lab.piece_config("feedback", fit, part=part, looked_at=LOOKED_AT, **more)


def _look(lab: Lab, fit: Fit) -> Result:
    model, _ = lab.fitted(fit)
    assert isinstance(model, Embedder)
    task = lab.task(fit, View())
    return {f"{noise:g}": at_once(model, task, noise) for noise in NOISE}


def _fitted(lab: Lab, fit: Fit, judged: int, noise: float) -> Result:
    with of_processor_time():
        return learned(lab.task(fit, View()), fit.method, judged, noise, fit.seed, lab.max_seconds)


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return one table per question."""
    found = [(config, result) for config, result in measured.pieces["feedback"] if "error" not in result]
    if not found:
        return f"## Feedback\n\n{NOTHING}"
    return "\n\n".join(
        [
            "## Feedback",
            f"Simulated judges look at the ten best hits of `{FIRST}`, which needs no training, for some queries per "
            "group, none of them a test query. The model learns from these judgements alone: the corpus has no labels. "
            "MAP of the test queries in points with the whole corpus ranked, mean ± standard deviation over seeds; "
            "10 %: each word of the judges is wrong with probability 0.1. Without judgements a model learns from "
            "sub-sequences of the corpus.",
            _learned_table([one for one in found if one[0]["part"] == "learned"]),
            "At once, without learning: every test query moves by the judgements of its own ten best hits (Rocchio). "
            "MAP of the rest of the corpus, since the judged hits would count twice; in brackets the share of queries "
            "that get worse.",
            _moved_table([one for one in found if one[0]["part"] == "at once"]),
        ]
    )


def _learned_table(found: list[tuple[dict[str, Any], Result]]) -> str:
    cells: dict[tuple[str, str, int, float], list[Result]] = {}
    for config, result in found:
        key = config["data"], config["method"], config["judged"], config["noise"]
        cells.setdefault(key, []).append(result)
    columns = _ways()
    head = ["data", "model", "judgements"]
    head += ["none" if not judged else f"{judged}{', 10 %' if noise else ''}" for judged, noise in columns]
    lines = []
    for data, method in sorted({key[:2] for key in cells}):
        number_of = [cells.get((data, method, judged, 0.0), [{}])[0].get("judgements") for judged in JUDGED[1:]]
        said = ", ".join(MISSING if one is None else f"{one:,}" for one in number_of)
        lines.append([data, f"`{method}`", said, *(_mean(cells.get((data, method, *way), [])) for way in columns)])
    return table(head, lines, text=3)


def _mean(results: list[Result]) -> str:
    values = np.array([result["AP"] for result in results])
    if not len(values):
        return MISSING
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else "")


def _moved_table(found: list[tuple[dict[str, Any], Result]]) -> str:
    lines = []
    for config, result in sorted(found, key=lambda one: (one[0]["data"], one[0]["method"])):
        for noise in NOISE:
            one = result[f"{noise:g}"]
            shares = [f"({100 * one[name] / max(one['queries'], 1):.0f} %)" for name in ("worse_towards", "worse_both")]
            moved = [f"{number(one[name])} {share}" for name, share in zip(("towards", "both"), shares, strict=True)]
            wrong = "10 % wrong" if noise else "all right"
            lines.append([config["data"], f"`{config['method']}`", wrong, number(one["plain"]), *moved])
    head = ["data", "model", "judges", "before", "more like the good hits", "also away from the others"]
    return table(head, lines, text=3)


def main() -> None:
    """Measure on simulated data and print one line per figure."""
    parser = argparse.ArgumentParser(description="How much feedback of simulated judges helps, on simulated data.")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    data = nsr.simulate(12, 30, 24, seed=0)
    assert data.queries is not None
    task = make_task(data.queries, data.corpus)
    print(f"{len(task.corpus):,} sequences, {len(task.queries)} test queries, MAP in points; {given.seeds} seeds")
    first = first_model(task.corpus)
    print(f"no feedback: {mean_ap(first, task):.1f}")
    for noise in NOISE:
        for judged in JUDGED[1:]:
            runs = [learned(task, LEARNERS[0], judged, noise, seed) for seed in range(given.seeds)]
            print(f"{judged:2} judged queries per group, {noise:.0%} wrong: {_mean(runs)} ({runs[0]['judgements']})")
    for noise in NOISE:
        print(f"at once, {noise:.0%} wrong: {at_once(first, task, noise)}")


if __name__ == "__main__":
    main()
