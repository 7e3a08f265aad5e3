r"""Events as cells of contingency tables: the outcome of an event in the context of the events just before.

A table declares what it predicts and from what: `Table("own6", (("own6", 1), ("own6", 2)))` predicts the class of a gap
from the classes of the two gaps before it. The views of an event are

- `mark`: its mark;
- `gap16`, `gap6`: its gap, in classes of equal frequency over the corpus;
- `own16`, `own6`, `own4`: its gap minus the mean gap of its sequence, in classes;
- `part`: the tenth of the observation window that it falls in.

If there are many marks, the rarer ones share a class, so that the table stays within its size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes.event_classes import PARTS_OF_WINDOW, log_gaps, part_of_window, quantiles
from neuroseqret.processes.markov_loops import own_gaps
from neuroseqret.processes.time_scale import TimeScale


@dataclass(frozen=True)
class Table:
    """An outcome and its context: pairs (view, lag), where lag 0 is the event itself and lag 1 the one before."""

    outcome: str
    context: tuple[tuple[str, int], ...] = ()

    @property
    def variables(self) -> tuple[tuple[str, int], ...]:
        """The context, then the outcome."""
        return (*self.context, (self.outcome, 0))


TABLES = (
    Table("mark"),
    Table("part"),
    Table("mark", (("mark", 1),)),
    Table("mark", (("mark", 1), ("mark", 2))),
    Table("mark", (("gap6", 0), ("gap6", 1))),
    Table("gap16", (("mark", 0),)),
    Table("gap6", (("mark", 0), ("mark", 1))),
    Table("gap16", (("gap6", 1),)),
    Table("gap6", (("gap6", 1), ("gap6", 2))),
    Table("gap6", (("gap6", 1), ("gap6", 2), ("gap6", 3))),
    Table("own16", (("mark", 0),)),
    Table("own6", (("mark", 0), ("own6", 1))),
    Table("own16", (("own6", 1),)),
    Table("own6", (("own6", 1), ("own6", 2))),
    Table("own6", (("own6", 1), ("own6", 2), ("own6", 3))),
    Table("own6", (("own4", 1), ("own4", 2), ("own4", 3), ("own4", 4))),
)


@dataclass(frozen=True)
class TableEvents:
    """The events that one table counts: code = context * outcomes + outcome."""

    rows: IntArray  # the sequence of each event
    codes: IntArray
    contexts: int
    outcomes: int


class EventTables:
    """The edges of the gap classes and the frequency ranks of the marks, fitted on a corpus."""

    def __init__(
        self, scale: TimeScale, edges: dict[str, FloatArray], mark_rank: IntArray, most_cells: int = 4096
    ) -> None:
        self.scale, self.edges, self.mark_rank, self.most_cells = scale, edges, mark_rank, most_cells

    @classmethod
    def fit(cls, corpus: EventSequences, scale: TimeScale, marks: int, most_cells: int = 4096) -> EventTables:
        """Fit the gap classes and mark ranks on a corpus; a table with marks has at most about `most_cells` cells."""
        gaps = log_gaps(corpus, scale)
        own, _, _ = own_gaps(corpus.offsets, gaps)
        timed = np.isfinite(gaps)
        edges = {
            f"{name}{number}": quantiles(values[timed], number)
            for name, values, numbers in (("gap", gaps, (16, 6)), ("own", own, (16, 6, 4)))
            for number in numbers
        }
        number = np.bincount(np.minimum(corpus.marks, marks - 1), minlength=marks)
        rank = np.empty(marks, np.int64)
        rank[np.argsort(-number, kind="stable")] = np.arange(marks)
        return cls(scale, edges, rank, most_cells)

    def cells(self, sequences: EventSequences, used: Sequence[int] = range(len(TABLES))) -> Iterator[TableEvents]:
        """Yield the counted events of each used table; `used` holds positions in `TABLES`."""
        views = self._views(sequences)
        rows = np.repeat(np.arange(len(sequences)), sequences.lengths)
        for table in (TABLES[k] for k in used):
            kept = np.ones(len(rows), bool)
            code, contexts, outcomes = np.zeros(len(rows), np.int64), 1, 1
            most = self._most_marks[table]
            for view, lag in table.variables:
                values, valid, size = views[view]
                if view == "mark":
                    values, size = np.minimum(values, most - 1), min(size, most)
                kept[:lag] = False
                kept[lag:] &= valid[: max(len(rows) - lag, 0)]
                if lag:
                    kept[lag:] &= rows[lag:] == rows[:-lag]
                contexts *= outcomes
                code, outcomes = code * size + (np.roll(values, lag) if lag else values), size
            yield TableEvents(rows[kept], code[kept], contexts, outcomes)

    @cached_property
    def _most_marks(self) -> dict[Table, int]:
        """How many classes of marks each table can have within `most_cells`."""
        return {table: self._most_marks_of(table) for table in TABLES}

    @property
    def sizes(self) -> list[int]:
        """The number of cells of every table."""
        marks = len(self.mark_rank)
        return [
            math.prod(
                min(marks, self._most_marks[table]) if view == "mark" else self._size(view)
                for view, _ in table.variables
            )
            for table in TABLES
        ]

    def check(self) -> None:
        """Raise a `ValueError` if edges and ranks, which may come from a file, do not fit together."""
        views = {view for table in TABLES for view, _ in table.variables} - {"mark", "part"}
        if self.edges.keys() != views or any(edge.ndim != 1 for edge in self.edges.values()):
            raise ValueError("the edges of the tables are not those of " + ", ".join(sorted(views)))
        marks = len(self.mark_rank)
        if (
            not marks
            or self.mark_rank.dtype != np.int64
            or not np.array_equal(np.sort(self.mark_rank), np.arange(marks))
        ):
            raise ValueError(f"mark_rank does not order {marks} marks")

    def _most_marks_of(self, table: Table) -> int:
        uses = Counter(view for view, _ in table.variables)
        power = uses.pop("mark", 0)
        others = float(np.prod([self._size(view) ** number for view, number in uses.items()]))
        return len(self.mark_rank) if not power else max(2, int((self.most_cells / others) ** (1 / power) + 1e-9))

    def _size(self, view: str) -> int:
        return PARTS_OF_WINDOW if view == "part" else len(self.edges[view]) + 1

    def _views(self, sequences: EventSequences) -> dict[str, tuple[IntArray, np.ndarray, int]]:
        """Return the values, the validity and the number of classes of every view."""
        gaps = log_gaps(sequences, self.scale)
        own, _, _ = own_gaps(sequences.offsets, gaps)
        timed = np.isfinite(gaps)
        marks = len(self.mark_rank)
        known = sequences.marks < marks
        views = {
            name: (np.searchsorted(edge, np.nan_to_num(own if name.startswith("own") else gaps)), timed, len(edge) + 1)
            for name, edge in self.edges.items()
        }
        views["mark"] = (self.mark_rank[np.where(known, sequences.marks, 0)], known, marks)
        views["part"] = (part_of_window(sequences), np.ones(len(gaps), bool), PARTS_OF_WINDOW)
        return views
