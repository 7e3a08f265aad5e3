"""`runtime`: how long training, indexing and searching take on one core."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from experiments import accuracy, indexing, paper_values, plan
from experiments.lab import Lab, Piece
from experiments.markdown import MISSING, NOTHING, Finding, number, table
from experiments.measured import Measured, Row, label, row_fit
from experiments.plan import Fit, View
from experiments.result_cells import Result
from neuroseqret.data.sequences import FloatArray
from neuroseqret.models.base import Embedder


def measure(lab: Lab) -> None:
    """Measure `accuracy`, which times training, and time an index per data set."""
    accuracy.measure(lab)

    def look(fit: Fit) -> Result:
        model, _ = lab.fitted(fit)
        assert isinstance(model, Embedder)
        return indexing.times(model, lab.task(fit, View()))

    fits = [Fit(data=data, method="self") for data in lab.data]
    lab.run_pieces(
        [
            Piece(
                f"{fit.data}/runtime/index",
                lab.piece_config("runtime", fit),
                partial(look, fit),
            )
            for fit in fits
            if lab.wanted(fit)
        ]
    )


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the times of training every method that is trained, then those of the index."""
    rows = [row for row in plan.rows() if row[0] not in ("random", "mass", "udtw")]
    columns = [[_seconds(_spent(measured, data, row)) for row in rows] for data in measured.data]
    lines = [[label(row), *cells] for row, *cells in zip(rows, *columns, strict=True)]
    index = _indices(measured)
    speeds = [_speed(index[data], "embedding_cpu_seconds") if data in index else MISSING for data in measured.data]
    lines += [
        ["self (default), as a multiple of rank-thp", *(number(_ratio(measured, d)) for d in measured.data)],
        ["events to train with", *(number(_events(measured, data), ",.0f") for data in measured.data)],
        ["events embedded per CPU second, self (default)", *speeds],
    ]
    parts = [
        "## Run time",
        "CPU seconds of training on one core (mean over seeds, corpus seen). A budget ends the training of every "
        "method, so equal numbers mean that the budget was spent. `cross` and `hash-cross` include their first stage. "
        "Training reads events many times, as often as the budget allows, so events divided by seconds would say "
        "nothing about speed; [baselines.md](baselines.md) has sequences per second. The last row shows how fast the "
        "trained model embeds the corpus. Other programs may have shared the caches of the machine, so compare ratios "
        "rather than seconds.",
        table(["method", *measured.data], lines),
        _beside(measured),
        "### Index",
        _index_table(measured),
    ]
    return "\n\n".join(filter(None, parts))


def _spent(measured: Measured, data: str, row: Row) -> FloatArray:
    return np.array([r["fit_cpu_seconds"] for r in measured.answered(row_fit(data, row), View())])


def _seconds(values: FloatArray) -> str:
    return number(float(values.mean()), ".1f" if values.mean() < 10 else ".0f") if len(values) else MISSING


def _mean(measured: Measured, data: str, row: Row) -> float:
    spent = _spent(measured, data, row)
    return float(spent.mean()) if len(spent) else float("nan")


def _events(measured: Measured, data: str) -> float:
    results = measured.answered(row_fit(data, ("self", "default")), View())
    return results[0]["training_events"] if results else float("nan")


def _indices(measured: Measured) -> dict[str, Result]:
    found = {c["data"]: r for c, r in measured.pieces["runtime"] if "error" not in r}
    return dict(sorted(found.items()))


def _speed(index: Result, seconds: str) -> str:
    """Return the events of the corpus divided by the CPU seconds of a step."""
    return f"{index['events'] / max(index[seconds], 1e-3):,.0f}"


def _ratio(measured: Measured, data: str) -> float:
    return _mean(measured, data, ("self", "default")) / (_mean(measured, data, ("rank-thp", "default")) or float("nan"))


def _beside(measured: Measured) -> str:
    shared = [data for data in measured.data if data in paper_values.SETS]
    if not shared:
        return ""
    rows: list[Row] = [(name, preset) for preset in plan.PRESETS for name in ("cross", "hash-cross")]
    lines = [
        [f"paper: {name}, at most", *(f"{paper_values.value(paper_values.HOURS, name, d):g} h" for d in shared)]
        for name in paper_values.HOURS
    ]
    lines += [[f"here: {label(row)}", *(_with_unit(measured, d, row) for d in shared)] for row in rows]
    caution = (
        "The paper gives upper bounds on a V100 GPU for up to 60 million events. Ours are CPU seconds of one core on "
        "smaller data, and a budget ends training. The table says how long a user waits, not which code is faster."
    )
    return f"### Training beside the paper's hours\n\n{caution}\n\n{table(['', *shared], lines)}"


def _with_unit(measured: Measured, data: str, row: Row) -> str:
    seconds = _seconds(_spent(measured, data, row))
    return seconds if seconds == MISSING else f"{seconds} s"


def _index_table(measured: Measured) -> str:
    found = _indices(measured)
    if not found:
        return NOTHING
    lines = [
        [
            data,
            r["candidates"],
            f"{r['sequences']:,}",
            f"{r['events']:,}",
            f"{r['embedding_cpu_seconds']:.1f}",
            f"{r['index_cpu_seconds']:.1f}",
            _speed(r, "index_cpu_seconds"),
            f"{r['open_seconds']:.2f}",
            f"{r['query_cpu_ms']:.1f}",
            f"{r['query_cpu_ms_p99']:.1f}",
            f"{r['bytes_on_disk'] / 1e6:.1f}",
        ]
        for data, r in found.items()
    ]
    head = [
        "data",
        "candidates by",
        "sequences",
        "events",
        "embedding, CPU s",
        "index with embedding, CPU s",
        "events indexed per CPU s",
    ]
    head += ["opening and first search, s", "search, CPU ms", "p99, CPU ms", "on disk, MB"]
    return (
        "`self (default)`, seed 0. A search goes from raw events to ten hits; the time is the median of "
        f"{indexing.ASKED} single queries. A few sequences were embedded and "
        f"searched before anything was timed.\n\n{table(head, lines, text=2)}"
    )


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claim about run time."""
    spent = [s for d in measured.data if not np.isnan(s := _mean(measured, d, ("self", "default")))]
    found = f"`self (default)` takes {min(spent):.0f} to {max(spent):.0f} CPU seconds of one core" if spent else ""
    return [Finding("Training takes at most two to six hours per set on a GPU.", found)]
