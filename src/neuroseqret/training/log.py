"""The log of a training run: JSON lines and a picture, both saved in the model folder."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroseqret.data.figures import new_figure
from neuroseqret.errors import UserError
from neuroseqret.training.progress import what_is_trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IN_A_ROW = 3  # panels
_LETTERS = 44  # of a title that fit into the width of a panel
_FEW = 10  # steps that are drawn as points, because a line of them would hardly be seen
_LOSS, _JUDGED = "#0072b2", "#b3470b"


class TrainingLog:
    """One record per step of every phase: phase, step, loss, rate, seconds, and validation if it was computed."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    @classmethod
    def of_folder(cls, folder: str | PathLike[str]) -> TrainingLog:
        """Return the log that was saved in a model folder; empty if there is none or it cannot be read."""
        made = cls()
        with suppress(OSError, ValueError):  # the log is not part of the model, which works without it
            lines = (Path(folder) / "training.jsonl").read_text(encoding="utf-8").splitlines()
            records = [json.loads(line) for line in lines]
            if all(isinstance(r, dict) and {"phase", "step", "loss"} <= r.keys() for r in records):
                made.records = records
        return made

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of one step."""
        self.records.append(record)

    def files(self) -> dict[str, bytes]:
        """Return the files for the model folder by name; none if nothing was trained."""
        return {"training.jsonl": self.json_lines(), "training.png": self.picture()} if self.records else {}

    def json_lines(self) -> bytes:
        """Return one line of JSON per record, numbers rounded to six digits."""
        rounded = ({k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in r.items()} for r in self.records)
        return "".join(json.dumps(r) + "\n" for r in rounded).encode()

    def picture(self) -> bytes:
        """Return the training curves as PNG."""
        stream = io.BytesIO()
        self.figure().savefig(stream, format="png", dpi=110)
        return stream.getvalue()

    def figure(self) -> Figure:
        """Draw the training curves, one panel per phase: the smoothed loss, and the validation if there is one.

        The title says how to read them.

        The panels are at most three to a row. Outliers of the loss may leave the panel, so that the curve fills it.
        """
        if not self.records:
            raise UserError("no training to draw: the method is not trained, or does not learn in steps")
        phases = list(dict.fromkeys(r["phase"] for r in self.records))
        columns = min(len(phases), _IN_A_ROW)
        rows = -(-len(phases) // columns)
        figure = new_figure(figsize=(4.2 * columns, 3.2 * rows))
        for index, phase in enumerate(phases):
            axis = figure.add_subplot(rows, columns, index + 1)
            _draw(axis, phase, [r for r in self.records if r["phase"] == phase])
        judged = any("validation" in r for r in self.records)
        title = "Has it learned? The loss should fall"
        title += ", validation should rise; the weights with its best value are kept" if judged else ""
        figure.suptitle("\n".join(wrap(title, _LETTERS * columns)), fontsize=11)
        return figure


def _draw(axis: Axes, phase: str, records: list[dict[str, Any]]) -> None:
    """Draw one phase; loss and validation have one axis each, in the colour of their curve."""
    from matplotlib.ticker import MaxNLocator

    steps, losses = [r["step"] for r in records], [r["loss"] for r in records]
    axis.plot(steps, losses, color="0.85", linewidth=0.7)
    axis.plot(steps, _smooth(losses), "o-" if len(steps) < _FEW else "-", color=_LOSS, linewidth=1.6, markersize=4)
    low, high = np.quantile(losses, (0.0, 0.99))
    room = 0.05 * (high - low) or 0.5
    axis.set_ylim(low - room, high + room)
    seconds = records[-1].get("seconds")
    spent = "" if seconds is None else f", {seconds:.0f} s"
    title = f"{what_is_trained(phase)}: {len(records):,} {'step' if len(records) == 1 else 'steps'}{spent}"
    axis.set_title("\n".join(wrap(title, _LETTERS)), fontsize=10)
    axis.set_xlabel("step")
    axis.set_ylabel("loss", color=_LOSS)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if len(steps) == 1:
        axis.set_xticks(steps)
    axis.yaxis.set_major_locator(MaxNLocator(5))
    judged = [r for r in records if "validation" in r]
    if judged:
        right = axis.twinx()
        values = [r["validation"] for r in judged]
        right.plot([r["step"] for r in judged], values, "o-", color=_JUDGED, markersize=4, clip_on=False)
        right.set_ylabel("validation (higher is better)", color=_JUDGED)
        right.yaxis.set_major_locator(MaxNLocator(5))
        right.margins(y=0.15)
        if min(values) >= 0 and max(values) <= 1:  # a share, such as MAP: the axis has none beyond 0 and 1
            low, high = right.get_ylim()
            right.set_ylim(max(low, 0.0), min(high, 1.0))


def _smooth(values: list[float]) -> np.ndarray:
    """Return the centred running mean over about a twentieth of the values; shorter at both ends."""
    width = max(1, len(values) // 20)
    ones = np.ones(width)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")
