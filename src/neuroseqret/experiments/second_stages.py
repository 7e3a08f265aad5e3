"""Self-attention against the two second stages that put its best hundred in a new order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.evaluation.significance import holm
from neuroseqret.experiments import lab
from neuroseqret.experiments.markdown import NOTHING, listed, number, of, table
from neuroseqret.experiments.measured import LEVEL, Measured, row_fit
from neuroseqret.experiments.plan import View
from neuroseqret.sequences import FloatArray

SECOND = lab.SECOND_STAGES
MEASURES = ("AP", "nDCG@10")
WORSE = -0.3  # points of MAP


def report(measured: Measured) -> str:
    """One table a preset."""
    tables = [_one_preset(measured, preset) for preset in ("default", "paper")]
    return "\n\n".join(
        [
            "### Second stages against the first",
            "The whole corpus ranked, corpus seen; `cross` and `hash-cross` put the best 100 of the same seed's `self` "
            "in a new order. Difference to `self` in points over the seeds that both were measured with, and p of the "
            "paired randomisation test over queries after Holm's correction over the table.",
            *tables,
        ]
    )


def _one_preset(measured: Measured, preset: str) -> str:
    gains, p = compare(measured, preset)
    lines = []
    for place, data in enumerate(measured.data):
        cells = []
        for m, measure in enumerate(MEASURES):
            cells.append(number(measured.mean(row_fit(data, ("self", preset)), View(), measure)))
            cells += [_gain(gains[place, s, m], p[place, s, m]) for s in range(len(SECOND))]
        lines.append([data, *cells])
    named = {"AP": "MAP", "nDCG@10": "nDCG@10"}
    head = [f"{preset}"]
    for measure in MEASURES:
        head += [f"self {named[measure]}", *SECOND]
    return f"{table(head, lines)}\n\n{verdict(measured, preset)}"


def compare(measured: Measured, preset: str) -> tuple[FloatArray, FloatArray]:
    """Gains over `self` in points and corrected p-values: (data sets, second stages, measures)."""
    shape = (len(measured.data), len(SECOND), len(MEASURES))
    gains, p = np.full(shape, np.nan), np.full(shape, np.nan)
    pairs = [
        (row_fit(data, (second, preset)), row_fit(data, ("self", preset)))
        for data in measured.data
        for second in SECOND
    ]
    for place, (second, first) in enumerate(pairs):
        # A second stage shares the weights of its seed's first stage: other seeds' differ for other reasons.
        alike = measured.with_seeds(measured.common_seeds(second, first, View()))
        at = np.unravel_index(place, shape[:2])
        gains[at] = [alike.mean(second, View(), m) - alike.mean(first, View(), m) for m in MEASURES]
        p[at] = [alike.p_values([(second, first)], View(), m)[0] for m in MEASURES]
    return gains, holm(p)


def verdict(measured: Measured, preset: str) -> str:
    """On how many sets the better second stage is above, and where one is below by more than 0.3 points."""
    gains, p = compare(measured, preset)
    known = ~np.isnan(gains[:, :, 0]).all(1)
    if not known.any():
        return f"`{preset}`: {NOTHING.lower()}"
    up = _where(measured, ((gains > 0) & (p <= LEVEL)).any((1, 2)))
    down = _where(measured, (gains[:, :, 0] < WORSE).any(1))
    return (
        f"`{preset}`: a second stage is significantly above `self` in MAP or nDCG@10 on "
        f"{of(len(up), int(known.sum()))} sets ({listed(up)}); one of the two is below by more than {-WORSE} points of "
        f"MAP on: {listed(down)}."
    )


def _where(measured: Measured, sets: npt.ArrayLike) -> list[str]:
    return [name for name, chosen in zip(measured.data, np.asarray(sets).tolist(), strict=True) if chosen]


def _gain(gain: float, p: float) -> str:
    if np.isnan(gain):
        return number(gain)
    return f"{gain:+.1f}" + ("" if np.isnan(p) else f" (p {p:.3f})" if p >= 0.001 else " (p < 0.001)")
