"""Plain text tables: as wide as they need be in a pipe, as wide as the window on a terminal.

Columns are given in order of importance. On a terminal those that do not fit are shortened or left out, and named;
essential ones are always shown whole, even if the terminal has to wrap the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from neuroseqret.errors import visible

_GAP = "  "
_SHORTEST = 12  # cells; a column that would be cut to less is left out


@dataclass(frozen=True)
class Column:
    """A heading and one cell per row."""

    name: str
    cells: Sequence[str]
    right: bool = False  # adjusted to the right
    essential: bool = False  # never cut, never left out

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name))  # here, as escapes take room
        object.__setattr__(self, "cells", [visible(cell) for cell in self.cells])

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.name, *self.cells)))


def lines_of(columns: Sequence[Column], width: int | None) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and the names of the columns that did not fit; without `width` all columns fit."""
    shown: list[tuple[Column, int]] = []
    left_out: list[str] = []
    room = width
    for column in columns:
        needed = column.width
        if room is not None:
            free = room - (len(_GAP) if shown else 0)
            if needed > free and not column.essential:
                needed = free if free >= max(_SHORTEST, cell_len(column.name)) else 0
            room = max(free - needed, 0)
        if needed:
            shown.append((column, needed))
        else:
            left_out.append(column.name)
    rows = zip(*([column.name, *column.cells] for column, _ in shown), strict=True)
    return [_line(row, shown) for row in rows], left_out


def _line(cells: Sequence[str], columns: Sequence[tuple[Column, int]]) -> str:
    parts = []
    for cell, (column, width) in zip(cells, columns, strict=True):
        cut = cell if cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…"
        space = " " * (width - cell_len(cut))
        parts.append(space + cut if column.right else cut + space)
    return _GAP.join(parts).rstrip()
