"""`runtime`: what training, indexing and searching take, of one core."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from neuroseqret.experiments import accuracy, indexing, paper_values, plan
from neuroseqret.experiments.cells import Result
from neuroseqret.experiments.lab import Lab, Piece
from neuroseqret.experiments.markdown import MISSING, NOTHING, Finding, number, table
from neuroseqret.experiments.measured import Measured, Row, label, row_fit
from neuroseqret.experiments.plan import Fit, View
from neuroseqret.models.base import Embedder
from neuroseqret.sequences import FloatArray


def measure(lab: Lab) -> None:
    """Training was timed by `accuracy`; the index is made here."""
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
                lab.piece_config("runtime", fit, "neuroseqret.experiments.indexing"),
                partial(look, fit),
            )
            for fit in fits
            if lab.wanted(fit)
        ]
    )


def report(measured: Measured, figures: Path | None = None) -> str:
    """Training of every trained method, then the index."""
    rows = [row for row in plan.rows() if row[0] not in ("random", "mass", "udtw")]
    columns = [[_seconds(_spent(measured, data, row)) for row in rows] for data in measured.data]
    lines = [[label(row), *cells] for row, *cells in zip(rows, *columns, strict=True)]
    speeds = [_speed(measured, data) for data in measured.data]
    lines.append(["events in training", *(number(events, ",.0f") for events, _ in speeds)])
    lines.append(["events per second, self (default)", *(number(rate, ",.0f") for _, rate in speeds)])
    lines.append(
        ["self (default), times rank-thp's", *(number(_ratio(measured, d), ".1f") for d in measured.data)],
    )
    parts = [
        "## Run time",
        "CPU seconds of training on one core (mean over seeds, corpus seen); a budget cuts all trained methods "
        "off, so equal numbers mean that the budget was spent. `cross` and `hash-cross` include their first stage. "
        "Other programs may have shared the machine's caches, so read ratios rather than seconds.",
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


def _speed(measured: Measured, data: str) -> tuple[float, float]:
    """Events that training looks at, and how many of them a CPU second trains on in all."""
    row = ("self", "default")
    results = measured.answered(row_fit(data, row), View())
    if not results:
        return float("nan"), float("nan")
    return results[0]["training_events"], results[0]["training_events"] / _mean(measured, data, row)


def _ratio(measured: Measured, data: str) -> float:
    return _mean(measured, data, ("self", "default")) / (_mean(measured, data, ("rank-thp", "default")) or float("nan"))


def _beside(measured: Measured) -> str:
    shared = [data for data in measured.data if data in paper_values.SETS]
    if not shared:
        return ""
    rows: list[tuple[str, Row]] = [("CrossAttn", ("cross", "paper")), ("CrossAttn", ("cross", "default"))]
    lines = [
        [f"paper: {name}, at most", *(f"{paper_values.value(paper_values.HOURS, name, d):g} h" for d in shared)]
        for name in paper_values.HOURS
    ]
    for name, row in rows:
        times = [3600 * paper_values.value(paper_values.HOURS, name, d) / _mean(measured, d, row) for d in shared]
        lines.append([f"here: {label(row)}, times less than the paper's bound", *(number(t, ",.0f") for t in times)])
    caution = (
        "The paper gives upper bounds on a V100 GPU for up to 60 million events; here it is one CPU core, smaller data "
        "and a budget, so the factor says what a user waits, not which code is faster."
    )
    return f"### Training beside the paper's hours\n\n{caution}\n\n{table(['', *shared], lines)}"


def _index_table(measured: Measured) -> str:
    found = {c["data"]: r for c, r in measured.pieces["runtime"] if "error" not in r}
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
            f"{r['events'] / max(r['index_cpu_seconds'], 1e-3):,.0f}",
            f"{r['open_seconds']:.2f}",
            f"{r['query_cpu_ms']:.1f}",
            f"{r['query_cpu_ms_p99']:.1f}",
            f"{r['bytes_on_disk'] / 1e6:.1f}",
        ]
        for data, r in sorted(found.items())
    ]
    head = [
        "data",
        "candidates by",
        "sequences",
        "events",
        "embedding, CPU s",
        "index with embedding, CPU s",
        "events per CPU s",
    ]
    head += ["opening and first search, s", "search, CPU ms", "p99, CPU ms", "on disk, MB"]
    return (
        "`self (default)`, seed 0. A search is from raw events to ten hits, median of "
        f"{indexing.ASKED} single queries.\n\n{table(head, lines)}"
    )


def findings(measured: Measured) -> list[Finding]:
    """The paper's statement on run time."""
    spent = [s for d in measured.data if not np.isnan(s := _mean(measured, d, ("self", "default")))]
    found = f"`self (default)` takes {min(spent):.0f} to {max(spent):.0f} CPU seconds of one core" if spent else ""
    return [Finding("Training takes at most two to six hours a set, on a GPU.", found)]
