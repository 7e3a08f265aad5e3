r"""A Markov-renewal process conditioned on other sequences: what a set of sequences says about the next event.

Each table gives an outcome (a mark, or a class of gap) by a context (marks and gap classes of the events just before).
Given a set S of sequences with counts :math:`n_S(a, y)`, and the corpus' shares :math:`\pi(y | a)` as a Dirichlet
prior of weight :math:`\alpha`, the next outcome is distributed as the posterior mean

.. math:: p(y | a, S) = \frac{n_S(a, y) + \alpha\, \pi(y | a)}{n_S(a) + \alpha}

and the gain in likelihood that the set gives to a sequence, per event, is

.. math:: G(H | S) = \frac{1}{n} \bigl[\log p(H | S) - \log p(H)\bigr]
                   = \frac{1}{n} \sum_i \log \frac{p(y_i | a_i, S)}{\pi(y_i | a_i)},

n the events of H that the table counts.

It is the cross-conditional likelihood of a point process in closed form: positive where the sequence looks like the
set, zero where the set says nothing. Marks unseen in training and first events without a gap are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes.event_tables import TABLES, EventTables, TableEvents

Floats = npt.NDArray[np.float32]

PRIOR = 5.0  # alpha, in events
_BLOCK = 1 << 23  # numbers in one block of counts, which bounds the memory


def count_cells(cells: TableEvents, owner: IntArray, owners: int) -> FloatArray:
    """How often each cell occurs for each owner: (owners, cells); `owner` tells whose each sequence is."""
    size = cells.contexts * cells.outcomes
    counts = np.bincount(owner[cells.rows] * size + cells.codes, minlength=owners * size)
    return counts.reshape(owners, size).astype(np.float64)


def shares_by_context(counts: FloatArray, contexts: int) -> FloatArray:
    """pi(y | a) of the corpus, with half an event added to every cell: (cells,)."""
    shaped = counts.reshape(contexts, -1) + 0.5
    return (shaped / shaped.sum(1, keepdims=True)).ravel()


def posterior_mean(counts: FloatArray, background: FloatArray, contexts: int) -> FloatArray:
    """p(y | a, S) of each owner: (owners, cells)."""
    shaped = counts.reshape(len(counts), contexts, -1)
    prior = PRIOR * background.reshape(contexts, -1)
    return ((shaped + prior) / (shaped.sum(2, keepdims=True) + PRIOR)).reshape(counts.shape)


class ConditionedTables:
    """log p(y | a, S) / pi(y | a) of every table, set and cell, ready to meet new sequences."""

    def __init__(self, tables: EventTables, log_gains: list[Floats]) -> None:
        self.tables, self.log_gains = tables, log_gains

    @classmethod
    def fit(cls, tables: EventTables, corpus: EventSequences, sets: list[IntArray]) -> ConditionedTables:
        """`sets` are rows of the corpus; a row may be in several of them."""
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
        return len(self.log_gains[0])

    def gains(self, sequences: EventSequences) -> Floats:
        """G(H | S) per event of every table: (tables, sequences, sets)."""
        found = np.zeros((len(TABLES), len(sequences), self.sets), np.float32)
        for rows, k, shares in self._shares(sequences, range(len(TABLES))):
            found[k, rows] = shares @ self.log_gains[k].T
        return found

    def weighted_gains(self, sequences: EventSequences, weights: Floats) -> Floats:
        """sum_k w_k G_k(H | S): (sequences, sets); tables of weight 0 cost nothing."""
        found = np.zeros((len(sequences), self.sets), np.float32)
        used = [k for k in range(len(TABLES)) if weights[k]]
        for rows, k, shares in self._shares(sequences, used):
            found[rows] += (weights[k] * shares) @ self.log_gains[k].T
        return found

    def _shares(self, sequences: EventSequences, used: Sequence[int]) -> Iterator[tuple[slice, int, Floats]]:
        """The share of each sequence's events in each cell, block by block and table by table."""
        for rows in self._blocks(len(sequences)):
            number = rows.stop - rows.start
            for k, cells in zip(used, self.tables.cells(sequences[rows], used), strict=True):
                counts = count_cells(cells, np.arange(number), number)
                yield rows, k, (counts / np.maximum(counts.sum(1, keepdims=True), 1)).astype(np.float32)

    def _blocks(self, number: int) -> Iterator[slice]:
        step = max(1, _BLOCK // max(gain.shape[1] for gain in self.log_gains))
        return (slice(begin, min(begin + step, number)) for begin in range(0, number, step))
