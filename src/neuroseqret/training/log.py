"""The log of a training run: JSON lines and a picture, both saved in the model folder."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroseqret.data.figures import new_figure
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrainingLog:
    """One record per step of every phase: phase, step, loss, rate, seconds, and validation if it was computed."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

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
        """Draw the training curves: the smoothed loss of every phase, with validation on a second axis."""
        if not self.records:
            raise UserError("no training to draw: the model did not learn in steps, or was loaded from a folder")
        phases = list(dict.fromkeys(r["phase"] for r in self.records))
        figure = new_figure(figsize=(4 * len(phases), 3))
        for index, phase in enumerate(phases):
            records = [r for r in self.records if r["phase"] == phase]
            axis = figure.add_subplot(1, len(phases), index + 1)
            steps, losses = [r["step"] for r in records], [r["loss"] for r in records]
            axis.plot(steps, losses, color="0.8", linewidth=0.7)
            axis.plot(steps, _smooth(losses), color="C0", label="loss")
            axis.set_title(phase)
            axis.set_xlabel("step")
            judged = [r for r in records if "validation" in r]
            if judged:
                right = axis.twinx()
                right.plot([r["step"] for r in judged], [r["validation"] for r in judged], "o-C1", markersize=3)
                right.set_ylabel("validation", color="C1")
            axis.set_ylabel("loss", color="C0")
        return figure


def _smooth(values: list[float]) -> np.ndarray:
    """Return the centred running mean over about a twentieth of the values; shorter at both ends."""
    width = max(1, len(values) // 20)
    ones = np.ones(width)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")
