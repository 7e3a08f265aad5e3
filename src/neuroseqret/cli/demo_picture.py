"""The demo's picture of a search: the query above, its hits below, one time line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequence
from neuroseqret.datasets.music.repertoires import WIDEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How much of a melody is drawn, in beats of its most usual note.
SPAN = 48.0
INK, QUIET, RELEVANT, OTHER = "#1b1f24", "#6b7280", "#00785a", "#7b2d8b"
#: Marks are intervals in semitones. They are drawn in five classes; the colours are safe for colour-blind readers.
CLASSES = (
    ("leap down", -np.inf, -3, "#2c5fa8"),
    ("step down", -2, -1, "#8fb8de"),
    ("same note", 0, 0, "#a3a8ae"),
    ("step up", 1, 2, "#f0b36e"),
    ("leap up", 3, np.inf, "#c8590c"),
)


@dataclass(frozen=True)
class Found:
    """A melody that was found, its score, and whether it is of the query's kind."""

    melody: EventSequence
    score: float
    relevant: bool


def draw(query: EventSequence, hits: Sequence[Found], path: Path) -> Path:
    """Write a PNG with one lane per melody. A bar is a note: its height is the pitch, its colour the mark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lanes = 1 + len(hits)
    height = 0.95 * lanes + 0.95
    figure = Figure(figsize=(11, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(lanes, 1, sharex=True, squeeze=False)[:, 0]
    figure.subplots_adjust(left=0.31, right=0.985, top=1 - 0.45 / height, bottom=0.55 / height, hspace=0.16)
    figure.text(
        0.0265, 1 - 0.31 / height, "A search for music of the same kind", color=INK, size=12, weight="bold", va="center"
    )
    _lane(axes[0], query)
    axes[0].set_facecolor("#f3f4f6")
    _label(axes[0], query, "query", "", QUIET)
    for rank, (axis, hit) in enumerate(zip(axes[1:], hits, strict=True), 1):
        _lane(axis, hit.melody)
        sign, colour = ("✓", RELEVANT) if hit.relevant else ("✗", OTHER)
        _label(axis, hit.melody, f"{rank}  {sign}", f"score {hit.score:.2f}", colour)
    axes[-1].set_xlabel("time in beats; height: pitch; colour: the mark, which is the step from the note before",
                        fontsize=9, color=QUIET)  # fmt: skip
    axes[-1].tick_params(axis="x", labelsize=9, colors=QUIET, length=3)
    axes[-1].spines["bottom"].set_visible(True)
    axes[-1].spines["bottom"].set_color("#d1d5db")
    _legend(axes[0])
    figure.savefig(path, dpi=130)
    return path


def _lane(axis: Axes, melody: EventSequence) -> None:
    """One melody as bars; the pitch is the sum of the intervals, from 0."""
    count = int(np.searchsorted(melody.times, SPAN, side="left"))
    onsets = melody.times[:count]
    ends = np.append(melody.times[1 : count + 1], melody.times[-1] + 1.0)[:count]
    intervals = melody.marks[:count] - WIDEST
    pitch = np.cumsum(intervals)
    axis.plot(onsets, pitch, color="#c9cdd3", linewidth=0.8, drawstyle="steps-post", zorder=1)
    # Bars end a little before the next note, so that repeated notes can be told apart.
    stops = np.minimum(np.maximum(ends - 0.42, onsets + 0.4 * (ends - onsets)), SPAN)
    lines = axis.hlines(pitch, onsets, stops, colors=_colours(intervals), linewidth=4.2, zorder=2)
    lines.set_capstyle("round")
    low, high = (pitch.min(), pitch.max()) if count else (0, 0)
    axis.set_ylim(low - 2.5, max(high, low + 6) + 2.5)
    axis.set_xlim(-0.4, SPAN + 0.4)
    axis.set_yticks([])
    axis.tick_params(axis="x", length=0)
    axis.spines[:].set_visible(False)


def _label(axis: Axes, melody: EventSequence, rank: str, score: str, colour: str) -> None:
    """Rank, title, kind of music and score, to the left of the lane."""
    title = str(melody.metadata.get("title") or melody.id)
    title = title if len(title) <= 34 else title[:33] + "…"
    kind = str(melody.group or "")
    place = {"xycoords": "axes fraction", "annotation_clip": False, "va": "center"}
    below = " · ".join(filter(None, (kind, score)))
    for text, x, y, style in (
        (rank, -0.42, 0.62, {"color": colour, "weight": "bold", "size": 10}),
        (title, -0.335, 0.62, {"color": INK, "size": 10}),
        (below, -0.335, 0.28, {"color": colour, "size": 9}),
    ):
        axis.annotate(text, (x, y), **place, **style, parse_math=False)  # type: ignore[arg-type]


def _legend(axis: Axes) -> None:
    for name, _, _, colour in CLASSES:
        axis.plot([], [], color=colour, linewidth=4.2, solid_capstyle="round", label=name)
    axis.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=len(CLASSES), frameon=False, fontsize=9, labelcolor=QUIET,
        handlelength=0.9, handletextpad=0.6, columnspacing=1.6, borderpad=0.2, borderaxespad=0,
    )  # fmt: skip


def _colours(intervals: npt.NDArray[np.integer]) -> list[str]:
    return [next(colour for _, low, high, colour in CLASSES if low <= step <= high) for step in intervals.tolist()]
