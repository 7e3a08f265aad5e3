"""Sequences drawn as time lines: small SVG pictures for tables in notebooks, and Matplotlib figures.

Every mark has one colour in a picture: the most frequent ones those of Okabe and Ito, which colour-blind people can
tell apart, all others grey. Every line has its own time scale, from its first to its last event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from neuroseqret.data.durations import duration, span
from neuroseqret.data.figures import new_figure
from neuroseqret.data.sequence import EventSequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neuroseqret.data.sequences import EventSequences

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#000000")
OTHER = "#999999"
_MOST = 400  # events drawn per line of a table; a longer sequence is thinned out
_WIDTH, _HEIGHT, _EDGE = 320, 18, 4
_TITLE, _LABEL = 100, 40  # letters that fit into a line of the title, and of a label


def colours_of(sequences: Sequence[EventSequence]) -> dict[int, str]:
    """Return the colours of the most frequent marks, most frequent first."""
    marks = np.concatenate([np.empty(0, np.int64), *(one.marks for one in sequences)])
    numbers, counts = np.unique(marks, return_counts=True)
    order = np.lexsort((numbers, -counts))[: len(COLOURS)]
    return dict(zip(numbers[order].tolist(), COLOURS, strict=False))


def mark_name(sequence: EventSequence, mark: int) -> str:
    """Return what a mark is called."""
    names = sequence.mark_names
    return names[mark] if names is not None and mark < len(names) else f"mark {mark}"


def places(sequence: EventSequence) -> np.ndarray:
    """Return the place of each event on a line from 0 to 1."""
    if not len(sequence):
        return np.empty(0)
    length = float(sequence.times[-1] - sequence.times[0])
    return (sequence.times - sequence.times[0]) / (length or 1.0)


def length_of(sequence: EventSequence) -> str:
    """Return how long a sequence lasts, in readable units."""
    return duration(float(sequence.times[-1] - sequence.times[0]), sequence.time_unit) if len(sequence) else ""


def svg(sequence: EventSequence, colours: Mapping[int, str]) -> str:
    """Return one time line as inline SVG: a tick per event in the colour of its mark, with a title to hover over."""
    rows = np.unique(np.linspace(0, len(sequence) - 1, min(len(sequence), _MOST)).astype(int)) if len(sequence) else ()
    at = _EDGE + places(sequence) * (_WIDTH - 2 * _EDGE)
    ticks = "".join(
        f'<rect x="{at[row] - 1:.1f}" y="2" width="2" height="{_HEIGHT - 4}" fill="{colours.get(mark, OTHER)}">'
        f"<title>{escape(mark_name(sequence, mark))}</title></rect>"
        for row in rows
        for mark in (int(sequence.marks[row]),)
    )
    middle = _HEIGHT / 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{len(sequence)} events">'
        f'<line x1="0" y1="{middle}" x2="{_WIDTH}" y2="{middle}" stroke="#ccc"/>{ticks}</svg>'
    )


def legend(sequences: Sequence[EventSequence], colours: Mapping[int, str]) -> str:
    """Return the names of the coloured marks as HTML."""
    some = next(iter(sequences), None)
    if some is None:
        return ""
    named = " ".join(
        f'<span style="white-space:nowrap"><span style="color:{colour}">&#9646;</span>'
        f"{escape(mark_name(some, mark))}</span>"
        for mark, colour in colours.items()
    )
    used = {int(mark) for one in sequences for mark in np.unique(one.marks)}
    return f"<small>{named}{' and others' if used - set(colours) else ''}</small>"


def figure(sequences: Sequence[EventSequence], labels: Sequence[str], title: str) -> Figure:
    """Draw sequences as time lines, one below the other, with a label on the left and the marks' names below."""
    colours = colours_of(sequences)
    titled, labelled = wrap(title, _TITLE), [wrap(label, _LABEL) for label in labels]
    row_height = max(0.42, 0.1 + 0.16 * max((len(lines) for lines in labelled), default=1))
    drawn = new_figure(figsize=(10, 1.3 + 0.2 * len(titled) + row_height * len(sequences)))
    axes = drawn.add_subplot()
    for row, sequence in enumerate(sequences):
        _draw(axes, sequence, -row, colours)
    axes.set_yticks([-row for row in range(len(sequences))], map("\n".join, labelled), parse_math=False, fontsize=9)
    axes.set_ylim(-len(sequences) + 0.4, 0.6)
    axes.set_xlim(-0.01, 1.12)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    drawn.suptitle("\n".join(titled), fontsize=11, parse_math=False, x=0.01, ha="left")
    _name_marks(axes, sequences, colours)
    return drawn


def _draw(axes: Axes, sequence: EventSequence, row: int, colours: Mapping[int, str]) -> None:
    at = places(sequence)
    axes.hlines(row, 0, 1, color="0.85", zorder=0)
    axes.vlines(at, row - 0.28, row + 0.28, [colours.get(int(m), OTHER) for m in sequence.marks], linewidth=1.8)
    axes.text(1.015, row, length_of(sequence), va="center", fontsize=8, color="0.35", parse_math=False)


def _name_marks(axes: Axes, sequences: Sequence[EventSequence], colours: Mapping[int, str]) -> None:
    from matplotlib.lines import Line2D

    if not sequences:
        return
    handles = []
    for mark, colour in colours.items():
        name = mark_name(sequences[0], mark)
        shown = name if len(name) < 32 else name[:30] + "…"
        # Matplotlib leaves out labels that begin with an underscore.
        handles.append(Line2D([], [], color=colour, linewidth=4, label=f" {shown}" if shown[:1] == "_" else shown))
    if any(int(mark) not in colours for one in sequences for mark in np.unique(one.marks)):
        handles.append(Line2D([], [], color=OTHER, linewidth=4, label="others"))
    below = axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.02), ncol=5, frameon=False, fontsize=8)
    for text in below.get_texts():
        text.set_parse_math(False)


def heading(sequence: EventSequence) -> str:
    """Return the title of a plot of one sequence."""
    group = f" ({sequence.group})" if sequence.group else ""
    when = span(float(sequence.times[0]), float(sequence.times[-1]), sequence.time_unit) if len(sequence) else ""
    return f"{sequence.id}{group}: {len(sequence):,} events, {when}"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small HTML table; the cells are HTML already."""
    top = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="text-align:left">{c}</td>' for c in row) + "</tr>" for row in rows)
    return f"<table class='neuroseqret'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def table_of(sequences: EventSequences, most: int = 10) -> str:
    """Return the first sequences as an HTML table with time lines."""
    shown = list(sequences[:most])
    colours = colours_of(shown)
    rows = [[escape(s.id), escape(s.group or ""), f"{len(s):,}", svg(s, colours), escape(length_of(s))] for s in shown]
    more = f"<br><small>and {len(sequences) - most:,} more</small>" if len(sequences) > most else ""
    table = html_table(("id", "group", "events", "", "duration"), rows)
    return f"<div>{escape(repr(sequences))}{table}{legend(shown, colours)}{more}</div>"
