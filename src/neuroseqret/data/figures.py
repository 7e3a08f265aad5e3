"""Matplotlib figures that show themselves in a notebook; Matplotlib is imported when the first one is made."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(**options: Any) -> Figure:
    """Return an empty figure that belongs to no window; options as of `matplotlib.figure.Figure`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    made = _class()(layout="constrained", **options)
    FigureCanvasAgg(made)
    return made


@cache
def _class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("plots need matplotlib: pip install matplotlib") from error

    class ShownFigure(Figure):
        """A figure that a notebook shows as a picture, whether `pyplot` is imported or not."""

        def _repr_png_(self) -> bytes:
            stream = io.BytesIO()
            self.savefig(stream, format="png", dpi=90)
            return stream.getvalue()

    return ShownFigure
