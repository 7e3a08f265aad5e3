"""Self-attention against the two second stages, which put its best hundred candidates in a new order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from experiments import lab
from experiments.markdown import NOTHING, decimals, listed, number, of, table
from experiments.measured import LEVEL, RANKED, Measured, row_fit
from experiments.plan import CORPORA, PRESETS, View
from neuroseqret.data.sequences import FloatArray
from neuroseqret.evaluation.significance import holm

SECOND = lab.SECOND_STAGES
MEASURES = ("AP", "nDCG@10")  # that are kept query by query
NAMES = {"AP": "MAP", "nDCG@10": "nDCG@10", "RR": "RR"}
WORSE = -0.3  # points


def report(measured: Measured) -> str:
    """Return one table per preset."""
    tables = [_one_preset(measured, preset) for preset in PRESETS[::-1]]
    parts = [
        "### Second stages against the first",
        "With the whole corpus ranked and the corpus seen. `cross` and `hash-cross` put the best 100 of `self` of the "
        "same seed in a new order; `hash-cross (paper)` takes the best 100 by its own embedding instead. The tables "
        "show the difference to `self` in points, over the seeds that both were measured with, and p of the paired "
        'randomisation test over queries after Holm\'s correction over the table. The section "What is found" lists '
        "where the default ones are below `self`.",
        *tables,
        *(losses(measured, preset) for preset in PRESETS[:-1]),
    ]
    return "\n\n".join(filter(None, parts))


def _one_preset(measured: Measured, preset: str) -> str:
    gains, p = compare(measured, preset)
    lines = []
    for place, data in enumerate(measured.data):
        cells = []
        for m, measure in enumerate(MEASURES):
            first = measured.mean(row_fit(data, ("self", preset)), View(), measure)
            places = decimals([first])
            cells.append(number(first, f".{places}f"))
            cells += [_gain(gains[place, s, m], p[place, s, m], places) for s in range(len(SECOND))]
        lines.append([data, *cells])
    head = [f"{preset}"]
    for measure in MEASURES:
        head += [f"self {NAMES[measure]}", *SECOND]
    return f"{table(head, lines)}\n\n{verdict(measured, preset)}"


@lru_cache(maxsize=4)  # the tests take seconds, and several sections need the same values
def compare(measured: Measured, preset: str) -> tuple[FloatArray, FloatArray]:
    """Return gains over `self` in points and corrected p-values: (data sets, second stages, measures)."""
    shape = (len(measured.data), len(SECOND), len(MEASURES))
    gains, p = np.full(shape, np.nan), np.full(shape, np.nan)
    for place, data in enumerate(measured.data):
        for s, second in enumerate(SECOND):
            alike = _alike(measured, data, second, preset)
            pair = row_fit(data, (second, preset)), row_fit(data, ("self", preset))
            gains[place, s] = [_difference(alike, data, second, preset, View(), m) for m in MEASURES]
            p[place, s] = [alike.p_values([pair], View(), m)[0] for m in MEASURES]
    return gains, holm(p)


def _alike(measured: Measured, data: str, second: str, preset: str, corpus: str = "seen") -> Measured:
    """Return the results of the seeds that both stages have.

    A second stage starts from the first stage of its seed; other seeds would differ for other reasons.
    """
    after, before = (row_fit(data, (name, preset), corpus) for name in (second, "self"))
    return measured.with_seeds(measured.common_seeds(after, before, View()))


def _difference(
    alike: Measured, data: str, second: str, preset: str, view: View, measure: str, corpus: str = "seen"
) -> float:
    after, before = (alike.mean(row_fit(data, (name, preset), corpus), view, measure) for name in (second, "self"))
    return after - before


def verdict(measured: Measured, preset: str) -> str:
    """Return on how many sets a second stage is significantly above its first stage."""
    gains, p = compare(measured, preset)
    known = ~np.isnan(gains[:, :, 0]).all(1)
    if not known.any():
        return f"`{preset}`: {NOTHING.lower()}"
    up, down = (_where(measured, (sign * gains > 0) & (p <= LEVEL)) for sign in (1, -1))
    return (
        f"`{preset}`, whole corpus ranked, corpus seen: at least one of `cross` and `hash-cross` is significantly "
        f"above `self` in MAP or nDCG@10 on {of(len(up), int(known.sum()))} sets{_named(up)}, and significantly below "
        f"on {len(down)}{_named(down)}."
    )


def losses(measured: Measured, preset: str) -> str:
    """Return where a second stage is below its first by more than `WORSE`, by measure, protocol and corpus."""
    lines = []
    for corpus in CORPORA:
        for view in (View(), View(protocol="sampled")):
            for measure, name in NAMES.items():
                found = [_lost(measured, second, preset, view, measure, corpus) for second in SECOND]
                if any(cell is not None for cell in found):
                    lines.append([name, RANKED[view.protocol], corpus, *(cell or NOTHING for cell in found)])
    if not lines:
        return ""
    head = ["measure", "ranked", "corpus", *(f"{name} ({preset}) is below on" for name in SECOND)]
    title = f"Sets on which a second stage is below `self` by more than {-WORSE} points:"
    return f"{title}\n\n{table(head, lines, text=len(head))}"


def _lost(measured: Measured, second: str, preset: str, view: View, measure: str, corpus: str) -> str | None:
    """Return the sets with the points lost; None if the second stage was not measured."""
    gains = {}
    for data in measured.data:
        alike = _alike(measured, data, second, preset, corpus)
        gains[data] = _difference(alike, data, second, preset, view, measure, corpus)
    if all(np.isnan(gain) for gain in gains.values()):
        return None
    return ", ".join(f"{d} ({number(g, '+.1f')})" for d, g in gains.items() if g < WORSE) or "none"


def _named(sets: list[str]) -> str:
    return f" ({listed(sets)})" if sets else ""


def _where(measured: Measured, sets: npt.NDArray[np.bool_]) -> list[str]:
    """Return the data sets for which any of (data sets, second stages, measures) is true."""
    return [name for name, chosen in zip(measured.data, sets, strict=True) if chosen.any()]


def _gain(gain: float, p: float, places: int) -> str:
    shown = number(gain, f"+.{places}f")
    return shown + ("" if np.isnan(gain + p) else f" (p {p:.3f})" if p >= 0.001 else " (p < 0.001)")
