"""Figures: panels of equal size, colours for colour-blind readers too, and the same file for the same content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours without yellow, which is too light for a line on white, then grey, dark violet and olive.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"),
    *("#D55E00", "#000000", "#8C8C8C", "#5D3A9B", "#7A7A00"),
)
SECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # that may be named on an axis of training time
EXHAUSTIVE = "#B00020"  # the colour of exhaustive search, which the curves are compared with
#: Shapes with the sizes at which they look equally large, and dashes that differ without colour.
MARKERS = (
    *(("o", 5.5), ("s", 5.0), ("^", 6.0), ("D", 5.0), ("v", 6.0)),
    *(("*", 9.0), ("P", 7.0), ("X", 7.0), ("d", 7.0), ("p", 6.5)),
)
DASHES: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (6, 2)),
    (0, (1, 1.2)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1.5)),
    (0, (9, 2)),
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1)),
    (0, (12, 2, 3, 2)),
    (0, (2, 2, 8, 2)),
)


def draw(
    folder: Path,
    file: str,
    names: Sequence[str],
    panel: Callable[[Axes, str], None],
    *,
    height: float = 3.1,
    title_size: float = 11,
    legend_columns: int = 4,
    named: Mapping[str, Artist] | None = None,
) -> None:
    """Draw and save a figure with one panel per name, such as a data set, and one legend for all panels.

    `panel` fills in the panel of a name. The legend has the lines of all panels, or what is `named`.
    """
    figure, axes = panels(len(names), height=height)
    for axis, name in zip(axes, names, strict=True):
        panel(axis, name)
        axis.set_title(name, fontsize=title_size)
    legend(figure, named_lines(axes) if named is None else named, legend_columns)
    save(figure, folder, file)


def panels(number: int, columns: int = 3, width: float = 4.0, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    """Return a figure with `number` panels in rows of `columns`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(columns, number)
    rows = -(-number // columns)
    made = Figure(figsize=(max(width * columns, 6.5), height * rows), layout="constrained")
    FigureCanvasAgg(made)
    axes = list(np.ravel(made.subplots(rows, columns, squeeze=False)))
    for axis in axes[number:]:
        axis.set_visible(False)
    for axis in axes[:number]:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return made, axes[:number]


def legend(figure: Figure, named: Mapping[str, Artist], columns: int = 4) -> None:
    """Draw one legend for all panels: in a panel that is left over, else below them."""
    spare = [axis for axis in figure.axes if not axis.get_visible()]
    if spare:
        spare[0].set_visible(True)
        spare[0].set_axis_off()
        spare[0].legend(named.values(), named.keys(), loc="center", frameon=False, fontsize=9, handlelength=4)
    else:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, frameon=False,
                      fontsize=8, handlelength=4)  # fmt: skip


def named_lines(axes: Sequence[Axes]) -> dict[str, Artist]:
    """Return the lines of all panels by name, each once."""
    return {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}


def curve(axis: Axes, x: npt.ArrayLike, y: npt.ArrayLike, place: int, name: str, **more: Any) -> None:
    """Draw a curve in the colour, dashes and markers of its place in the legend; `more` is for matplotlib."""
    marker, size = MARKERS[place]
    look = {"linewidth": 1.3, "markersize": size} | more
    axis.plot(x, y, color=COLOURS[place], linestyle=DASHES[place], marker=marker, label=name, **look)


def label_axes(axis: Axes, x: str, y: str, size: float = 9) -> None:
    """Say what the two axes of a panel are."""
    axis.set_xlabel(x, fontsize=size)
    axis.set_ylabel(y, fontsize=size)


def logarithmic(axis: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers."""
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")


def seconds_of_training(axis: Axes, y: str) -> None:
    """Label axes of a measure against the CPU seconds of training, on a logarithmic scale with round seconds."""
    logarithmic(axis)
    low, high = axis.get_xlim()
    axis.set_xticks([tick for tick in SECONDS if low <= tick <= high], minor=False)
    axis.xaxis.set_minor_formatter("")
    label_axes(axis, "CPU seconds of training", y)


def short_unit(largest: float, unit: str) -> tuple[float, str]:
    """Return a factor and a unit that turn small times into readable numbers."""
    if unit in ("s", "second", "seconds") and 0 < largest < 0.5:
        return (1e3, "ms") if largest >= 5e-4 else (1e6, "µs")
    return 1.0, unit


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a PNG of 256 colours, a third of the bytes, without a date or a version in it."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=200)
    picture = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(folder / f"{name}.png", optimize=True)
