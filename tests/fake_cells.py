"""Cells with made-up numbers, as the lab would have left them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import (
    ablation,
    algorithm,
    algorithm_run,
    cross_ablation,
    diagnosis,
    feedback,
    hash_curve,
    neural_process,
    plan,
    simulated,
    training_time,
)
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit

COMMON = {"content": "c", "max_seconds": 120.0, "versions": {"method": 1}, "max_queries": 500}


def put(cells: ResultCells, fit: Fit, view: View, result: dict[str, Any]) -> None:
    """Put a cell of a ranking."""
    cells.put(f"{fit.name}-{view.name}", {**fit.model_dump(), **view.model_dump(), **COMMON}, result)


def ranking(values: Sequence[float], by_query: bool = True) -> dict[str, Any]:
    """Return the result of a ranking in which every measure has these values, one per query."""
    each = np.rint(1e4 * np.asarray(values)).astype(int).tolist()
    names = ("AP", "nDCG@10", "nDCG@20", "RR", "AP@10/hits")
    result: dict[str, Any] = {"measures": dict.fromkeys(names, round(float(np.mean(values)), 6))}
    if by_query:
        result["ten_thousandths"] = {"AP": each, "nDCG@10": each}
    facts = {"queries_answered": len(values), "queries_left_out": 1, "queries_not_drawn": 7, "candidates": 1234}
    return {**result, **facts, "fit_cpu_seconds": 12.5, "training_events": 1000}


def piece(cells: ResultCells, experiment: str, fit: Fit, name: str, result: dict[str, Any], **more: Any) -> None:
    """Put a cell of another experiment."""
    config = {**fit.model_dump(), **COMMON, "experiment": experiment, **more}
    cells.put(f"{fit.data}/{experiment}/{name}", config, result)


def everything(folder: Path, data: Sequence[str] = ("audio", "soccer"), seeds: int = 2) -> ResultCells:
    """Cells of every experiment."""
    cells, rng = ResultCells(folder), np.random.default_rng(0)
    quality = {row: 0.1 + 0.04 * place for place, row in enumerate(plan.rows())}
    for fit in plan.accuracy(data, seeds):
        for view in plan.views(fit):
            values = np.clip(rng.normal(quality[fit.method, fit.preset], 0.2, 40), 0, 1)
            result = ranking(values, by_query=view == View())
            if fit.preset == "paper" and view == View():
                points = [[10.0 * k, 0.5 / k, 0.3 + 0.02 * k] for k in range(1, 5)]
                result["curve"] = {"judged_by": "AP", "points": points}
            put(cells, fit, view, result)
    for name in (*ablation.PAPER, *ablation.DEFAULT):
        for one in data:
            if variant_fit(one, name).variant:
                put(cells, variant_fit(one, name), View(), ranking(np.clip(rng.normal(0.5, 0.2, 40), 0, 1)))
    for one in data:
        for seed in range(seeds):
            put(cells, neural_process.fit_of(one, seed), View(), ranking(np.clip(rng.normal(0.9, 0.1, 40), 0, 1)))
        piece(cells, "data", Fit(data=one, method="random"), "data", SIZES)
        moved = {"plain": 30.0, "towards": 40.0, "both": 42.0, "worse_towards": 1, "worse_both": 2, "queries": 40}
        seen = {"0": moved, "0.1": moved}
        piece(cells, "feedback", Fit(data=one, method="self"), "at-once-self", seen, part="at once")
        for judged in feedback.JUDGED:
            result, more = {"AP": 20.0 + judged, "judgements": 10 * judged}, {"judged": judged, "noise": 0.0}
            fit = Fit(data=one, method="self")
            piece(cells, "feedback", fit, f"learned-{judged}", result, part="learned", **more)
        inside = dict.fromkeys(diagnosis.ROWS, 30.0)
        piece(cells, "diagnosis", Fit(data=one, method="self", preset="paper"), "self", inside)
        fit = Fit(data=one, method="self")
        for place, way in enumerate(hash_curve.WAYS):
            shares = [1.0] if way == "exhaustive" else [0.9, 0.3, 0.1, 0.03, 0.005]
            kept = [0.8 - 0.05 * place * (1 - share) for share in shares]
            points = [{"compared": s, "nDCG@10": k, "recall@10": k / 0.8} for s, k in zip(shares, kept, strict=True)]
            piece(cells, "hashing", fit, way, {"points": points}, way=way)
            paper = fit.model_copy(update={"preset": "paper"})
            piece(cells, "hashing", paper, f"paper-{way}", {"points": points}, way=way)
        _of_second_stages(cells, Fit(data=one, method="cross", preset="paper"), rng)
        piece(cells, "runtime", fit, "index", INDEX)
        piece(cells, "qualitative", fit, "self", _example(rng))
    for one in (name for name in data if name in training_time.DATA):
        for place, method in enumerate(training_time.METHODS):
            fit = Fit(data=one, method=method, corpus="unseen")
            for seconds in (training_time.SHORT, training_time.LONG):
                result = ranking([0.3 + 0.05 * place] * 40, by_query=False) | {"fit_cpu_seconds": seconds}
                piece(cells, "training-time", fit, f"{method}-{seconds:g}", result, seconds=seconds)
    for kind, rows in simulated.ROWS.items():
        for place, name in enumerate(rows):
            fit = Fit(data=f"simulated {kind}", method="self", preset="paper", variant=name)
            curves = {
                way: [{"compared": 0.5, "nDCG@10": 0.7}, {"compared": 0.01, "nDCG@10": 0.2}] for way in simulated.HASHES
            }
            result = ranking([0.5 - 0.1 * place] * 5, by_query=False) | {"curves": curves}
            piece(cells, "simulated", fit, name, result)
    for name in ("paper-literal", "unwarping"):
        piece(cells, "unwarping", variant_fit(data[0], name), name, _unwarped(rng), model=name)
    return cells


def _of_second_stages(cells: ResultCells, fit: Fit, rng: np.random.Generator) -> None:
    """Put cells of Algorithm 1 and of the ablation of CrossAttn."""
    for base, orders in algorithm.BASES.items():
        names = [f"{measure} {order}" for measure in algorithm.MEASURES for order in orders]
        for way in ("exhaustive", *(algorithm_run.WAYS if base == "self" else algorithm.OWN_WAYS)):
            lengths = [{}] if way == "exhaustive" else [{"L": length} for length in algorithm_run.LENGTHS]
            points = [
                {**length, "compared": 1 / (1 + place), **dict.fromkeys(names, 0.7 - 0.02 * place)}
                for place, length in enumerate(lengths)
            ]
            piece(cells, "algorithm", fit, f"{base}-{way}", {"points": points}, base=base, way=way)
    values = {name: rng.integers(2000, 9000, 40).tolist() for name in cross_ablation.SCORES}
    for unwarp in (True, False):
        names = [name for name in values if (name == cross_ablation.WITHOUT_U) != unwarp]
        result = {"ten_thousandths": {name: values[name] for name in names}}
        piece(cells, "cross-ablation", fit, str(unwarp), result, unwarp=unwarp)


SIZES = {
    **{"events": 50000, "marks": 5, "sequences": 1234, "queries": 50, "relevant": 30.5},
    **{"relevant_share": 0.025, "relevant_share_of_lists": 0.03},
}
INDEX = {
    "sequences": 1000,
    "events": 50000,
    "candidates": "exhaustive",
    "embedding_cpu_seconds": 2.0,
    "index_cpu_seconds": 4.0,
    "open_seconds": 0.1,
    "query_cpu_ms": 1.5,
    "query_cpu_ms_p99": 3.0,
    "bytes_on_disk": 2_000_000,
}


def _events(rng: np.random.Generator, **more: Any) -> dict[str, Any]:
    times = np.round(np.cumsum(rng.exponential(1.0, 30)), 4)
    return {"id": "s1", "times": (times - times[0]).tolist(), "marks": rng.integers(0, 8, 30).tolist(), **more}


def _example(rng: np.random.Generator) -> dict[str, Any]:
    hits = [_events(rng, relevant=place != 1) for place in range(3)]
    names = [f"mark {mark}" for mark in range(8)]
    return {"time_unit": "seconds", "mark_names": names, "AP": 0.5, "query": _events(rng), "hits": hits}


def _unwarped(rng: np.random.Generator) -> dict[str, Any]:
    times, query = np.linspace(0, 10, 11), _events(rng)
    query["unwarped"] = [0.9 * time for time in query["times"]]
    moved = (times + 0.3 * np.sin(times)).tolist()
    return {"time_unit": "s", "times": times.tolist(), "unwarped_times": moved, "query": query, "hit": _events(rng)}
