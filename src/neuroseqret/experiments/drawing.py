"""Figures: panels of one size, colours that tell apart for everyone, and files that are equal when their content is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours without the yellow, which is too light for a line on white, then a grey and a dark violet.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#8C8C8C", "#5D3A9B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "h")


def panels(number: int, columns: int = 4, width: float = 3.1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure of `number` panels in rows of `columns`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(columns, number)
    rows = -(-number // columns)
    # The legend's strip has one height, however many rows of panels there are.
    made = Figure(figsize=(max(width * columns, 6.5), height * rows + 0.7), layout="constrained")
    FigureCanvasAgg(made)
    axes = list(np.ravel(made.subplots(rows, columns, squeeze=False)))
    for axis in axes[number:]:
        axis.set_visible(False)
    for axis in axes[:number]:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return made, axes[:number]


def legend(figure: Figure, axes: Sequence[Axes], columns: int = 5) -> None:
    """One legend for all panels, below them; what any of them shows is named once."""
    named = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a PNG without date or version in it."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})
