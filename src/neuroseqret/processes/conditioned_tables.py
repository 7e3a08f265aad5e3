r"""A Markov-renewal process conditioned on sets of sequences: how well does a set predict the events of a sequence?

Each table predicts an outcome y (a mark or a gap class) from a context a (marks and gap classes of the events just
before). Let :math:`n_S(a, y)` be the counts in a set S of sequences, and let the shares :math:`\pi(y | a)` in the
corpus be a Dirichlet prior of weight :math:`\alpha`. The next outcome then has the posterior mean distribution

.. math:: p(y | a, S) = \frac{n_S(a, y) + \alpha\, \pi(y | a)}{n_S(a) + \alpha}

The set raises the log-likelihood of a sequence H, per event, by the gain

.. math:: G(H | S) = \frac{1}{n} \bigl[\log p(H | S) - \log p(H)\bigr]
                   = \frac{1}{n} \sum_i \log \frac{p(y_i | a_i, S)}{\pi(y_i | a_i)},

where n is the number of events of H that the table counts.

This is the cross-conditional likelihood of a point process in closed form. It is positive if the sequence resembles
the set, and zero if the set has no events in the contexts of H. Marks unseen in training and first events without a
gap are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes.event_tables import TABLES, EventTables, TableEvents

Floats = npt.NDArray[np.float32]

PRIOR = 5.0  # alpha, in events
_BLOCK = 1 << 23  # numbers in one block of counts; bounds the memory


def count_cells(cells: TableEvents, owner: IntArray, owners: int) -> FloatArray:
    """Count the events in each cell for each owner: (owners, cells). `owner` holds the owner of each sequence."""
    size = cells.contexts * cells.outcomes
    counts = np.bincount(owner[cells.rows] * size + cells.codes, minlength=owners * size)
    return counts.reshape(owners, size).astype(np.float64)


def shares_by_context(counts: FloatArray, contexts: int) -> FloatArray:
    """Return pi(y | a) of the corpus, with half an event added to every cell: (cells,)."""
    shaped = counts.reshape(contexts, -1) + 0.5
    return (shaped / shaped.sum(1, keepdims=True)).ravel()


def posterior_mean(counts: FloatArray, background: FloatArray, contexts: int) -> FloatArray:
    """Return p(y | a, S) for each owner: (owners, cells)."""
    shaped = counts.reshape(len(counts), contexts, -1)
    prior = PRIOR * background.reshape(contexts, -1)
    return ((shaped + prior) / (shaped.sum(2, keepdims=True) + PRIOR)).reshape(counts.shape)


class ConditionedTables:
    """The log gains log [p(y | a, S) / pi(y | a)] of every table, set and cell; computes the gains of new sequences."""

    def __init__(self, tables: EventTables, log_gains: list[Floats]) -> None:
        self.tables, self.log_gains = tables, log_gains

    @classmethod
    def fit(cls, tables: EventTables, corpus: EventSequences, sets: list[IntArray]) -> ConditionedTables:
        """Fit the log gains; `sets` holds the corpus rows of each set, and a row may be in several sets."""
        everyone = np.zeros(len(corpus), np.int64)
        backgrounds = [
            shares_by_context(count_cells(cells, everyone, 1)[0], cells.contexts) for cells in tables.cells(corpus)
        ]
        members = np.concatenate(sets)
        owner = np.repeat(np.arange(len(sets)), [len(rows) for rows in sets])
        gains = []
        for cells, background in zip(tables.cells(corpus[members]), backgrounds, strict=True):
            given = posterior_mean(count_cells(cells, owner, len(sets)), background, cells.contexts)
            gains.append(np.log(given / background).astype(np.float32))
        return cls(tables, gains)

    @property
    def sets(self) -> int:
        """The number of sets."""
        return len(self.log_gains[0])

    def gains(self, sequences: EventSequences) -> Floats:
        """Return G(H | S) of every table: (tables, sequences, sets)."""
        found = np.zeros((len(TABLES), len(sequences), self.sets), np.float32)
        for rows, k, shares in self._shares(sequences, range(len(TABLES))):
            found[k, rows] = shares @ self.log_gains[k].T
        return found

    def weighted_gains(self, sequences: EventSequences, weights: Floats) -> Floats:
        """Return sum_k w_k G_k(H | S): (sequences, sets). Tables of weight 0 are skipped."""
        found = np.zeros((len(sequences), self.sets), np.float32)
        used = [k for k in range(len(TABLES)) if weights[k]]
        for rows, k, shares in self._shares(sequences, used):
            found[rows] += (weights[k] * shares) @ self.log_gains[k].T
        return found

    def _shares(self, sequences: EventSequences, used: Sequence[int]) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the share of each sequence's events in each cell, by block of sequences and by table."""
        for rows in self._blocks(len(sequences)):
            number = rows.stop - rows.start
            for k, cells in zip(used, self.tables.cells(sequences[rows], used), strict=True):
                counts = count_cells(cells, np.arange(number), number)
                yield rows, k, (counts / np.maximum(counts.sum(1, keepdims=True), 1)).astype(np.float32)

    def _blocks(self, number: int) -> Iterator[slice]:
        step = max(1, _BLOCK // max(gain.shape[1] for gain in self.log_gains))
        return (slice(begin, min(begin + step, number)) for begin in range(0, number, step))
