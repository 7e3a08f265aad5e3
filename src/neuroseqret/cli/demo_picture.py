"""The demo's picture: some queries and their hits as melodies on a time line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroseqret.data.sequences import EventSequence

#: How much of a melody is drawn, in its usual notes.
SPAN = 48.0
QUERY, RIGHT, WRONG = "#1f3a5f", "#009E73", "#D55E00"


@dataclass(frozen=True)
class Shown:
    """A query with the hits to draw, and for each whether it is of the query's group."""

    query: EventSequence
    hits: Sequence[EventSequence]
    relevant: Sequence[bool]


def draw(shown: Sequence[Shown], path: Path) -> Path:
    """One column a query: the query above, its hits below; a bar is a note, its height the pitch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lanes = 1 + max(len(one.hits) for one in shown)
    figure = Figure(figsize=(5.2 * len(shown), 1.55 * lanes + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(lanes, len(shown), sharex=True, squeeze=False)
    for column, one in enumerate(shown):
        rows = [(one.query, QUERY, "query")]
        rows += [
            (hit, RIGHT if relevant else WRONG, f"{'✓' if relevant else '✗'} hit {rank}")
            for rank, (hit, relevant) in enumerate(zip(one.hits, one.relevant, strict=True), 1)
        ]
        for axis, (melody, colour, label) in zip(axes[:, column], rows, strict=False):
            _lane(axis, melody, colour, label)
        for axis in axes[len(rows) :, column]:
            axis.set_visible(False)
        axes[len(rows) - 1, column].set_xlabel("time, in usual notes of the piece")
        axes[len(rows) - 1, column].tick_params(labelbottom=True)
    figure.suptitle("Queries and what the index found: ✓ hits are of the query's kind, ✗ ones are not", fontsize=12)
    figure.savefig(path, dpi=110)
    return path


def _lane(axis, melody: EventSequence, colour: str, label: str) -> None:  # type: ignore[no-untyped-def]
    """A melody as bars; its pitch is the sum of its intervals, from 0."""
    count = int(np.searchsorted(melody.times, SPAN, side="right"))
    onsets = melody.times[:count]
    ends = np.append(melody.times[1 : count + 1], melody.times[-1] + 1.0)[:count]
    pitch = np.cumsum(melody.marks[:count] - 12)
    # A small gap before the next note, so that a repeated one is seen.
    axis.hlines(pitch, onsets, np.minimum(ends - 0.15 * (ends - onsets), SPAN), colors=colour, linewidth=3)
    axis.plot(onsets, pitch, color=colour, linewidth=0.6, alpha=0.45, drawstyle="steps-post")
    low, high = (pitch.min(), pitch.max()) if count else (0, 0)
    axis.set_ylim(low - 2, max(high, low + 6) + 2)
    axis.set_xlim(0, SPAN)
    axis.set_yticks([])
    axis.spines[["top", "right", "left"]].set_visible(False)
    title = str(melody.metadata.get("title") or melody.id)
    title = title if len(title) <= 38 else title[:37] + "…"
    axis.set_title(f"{label}: {title} ({melody.group})", loc="left", fontsize=9, color=colour)
