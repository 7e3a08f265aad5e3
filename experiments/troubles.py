"""Runs that failed, and runs that were slowed down by other work on the machine."""

from __future__ import annotations

from collections import Counter

from experiments.lab import SECOND_STAGE, SECOND_STAGES
from experiments.markdown import listed, percent
from experiments.measured import Measured, label
from experiments.plan import Fit, View
from experiments.result_cells import Config, Result

QUIET = 0.85  # share of a core: with less of it, a budget of wall-clock seconds is unfair


def report(measured: Measured) -> str:
    """Return what a reader of the tables should know about single runs; empty if all went well."""
    parts = [part for part in (failures(measured), disturbed(measured)) if part]
    return "\n\n".join(["### Failed and disturbed runs", *parts]) if parts else ""


def failures(measured: Measured) -> str:
    """Return why cells failed, one line per reason: rankings first, then the pieces of other experiments."""
    reasons = Counter(
        (_label(fit), fit.data, result["error"])
        for (fit, _), by_seed in measured.results.items()
        for result in by_seed.values()
        if "error" in result
    )
    for experiment, pieces in measured.pieces.items():
        reasons.update(
            (_piece_label(experiment, config), config["data"], result["error"])
            for config, result in pieces
            if "error" in result
        )
    lines = [
        f"- {name} on {data} ({count} {'cell' if count == 1 else 'cells'}): {why}"
        for (name, data, why), count in sorted(reasons.items())
    ]
    return "\n".join(["Failed:", "", *lines]) if lines else ""


def disturbed(measured: Measured) -> str:
    """Return the fits that ran out of seconds while other work took part of their core."""
    found = set()
    for (fit, view), by_seed in measured.results.items():
        for seed, result in by_seed.items() if view == View() else ():
            if result.get("budget_clock") == "processor":  # other work did not shorten it
                continue
            wall, cpu, budget = _own_training(measured, fit, seed, result)
            if wall > 0.95 * budget and cpu < QUIET * wall:
                found.add(f"{_label(fit)} on {fit.data} (corpus {fit.corpus}, seed {seed}: {percent(cpu / wall)})")
    line = f"Trained with less than {percent(QUIET)} of a core, so at a disadvantage: {listed(sorted(found))}."
    return line if found else ""


def _own_training(measured: Measured, fit: Fit, seed: int, result: Result) -> tuple[float, float, float]:
    """Return wall-clock time, CPU time and budget of a fit; for a second stage without its first stage."""
    wall, cpu = result.get("fit_seconds", 0.0), result.get("fit_cpu_seconds", 0.0)
    if fit.method not in SECOND_STAGES:
        return wall, cpu, result["max_seconds"]
    first_fit = fit.model_copy(update={"method": "self"})
    first = measured.results.get((first_fit, View()), {}).get(seed, {})
    if "fit_seconds" not in first:
        return 0.0, 0.0, result["max_seconds"]  # unknown: the first stage was not measured
    budget = SECOND_STAGE * result["max_seconds"]
    return wall - first["fit_seconds"], cpu - first["fit_cpu_seconds"], budget


def _label(fit: Fit) -> str:
    return " ".join(filter(None, (label((fit.method, fit.preset)), fit.variant)))


def _piece_label(experiment: str, config: Config) -> str:
    part = config.get("way") or config.get("model")
    return f"{experiment} ({part})" if part else experiment
