"""The vectors that the metric learns from, computed once: of every sequence, and of random crops of it.

Vectors are held as half-precision numbers. A training task with more sequences than fit into `MOST_NUMBERS` of them is
reduced to a random part of its corpus beforehand (see `affordable_rows`), so that the memory of `fit` is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.windows import take_runs
from neuroseqret.training.sampling import PairBatch

CROPS = 3  # random crops per sequence
SHORTEST = 0.3  # of a crop, as a share of the events of the sequence
CROPPED = 0.5  # share of the rows of a batch that are replaced by a crop
FEWEST = 3  # events of a crop
MOST_NUMBERS = 500_000_000  # coordinates held in memory


@dataclass(frozen=True)
class TrainingVectors:
    """Vectors of queries and corpus: (1 + crops, sequences, size); entry 0 is the whole sequence."""

    queries: Tensor
    corpus: Tensor

    def rows(self, pairs: PairBatch, rng: np.random.Generator | None = None, share: slice = slice(None)) -> Tensor:
        """Return the vectors of queries, pseudo-queries and candidates; with `rng`, some are of crops.

        `share` says which of these rows are wanted.
        """
        asked = len(pairs.queries)
        begin, end, _ = share.indices(asked + len(pairs.pseudo) + len(pairs.corpus))
        first = slice(min(begin, asked), min(end, asked))
        second = slice(max(begin - asked, 0), max(end - asked, 0))
        together = np.concatenate([pairs.pseudo, pairs.corpus])
        return torch.cat([_drawn(self.queries, pairs.queries, rng, first), _drawn(self.corpus, together, rng, second)])

    def part(self, queries: IntArray, corpus: IntArray) -> TrainingVectors:
        """Return the vectors of some queries and corpus sequences."""
        return TrainingVectors(self.queries[:, queries], self.corpus[:, corpus])


def _drawn(vectors: Tensor, rows: IntArray, rng: np.random.Generator | None, share: slice) -> Tensor:
    if rng is None or len(vectors) == 1:
        return vectors[0, torch.from_numpy(rows[share])].float()
    version = np.where(rng.random(len(rows)) < CROPPED, rng.integers(1, len(vectors), len(rows)), 0)
    return vectors[torch.from_numpy(version[share]), torch.from_numpy(rows[share])].float()


def random_crops(sequences: EventSequences, rng: np.random.Generator) -> EventSequences:
    """Return a random run of events of each sequence, at least `SHORTEST` of its events."""
    lengths = sequences.lengths
    kept = np.ceil(lengths * rng.uniform(SHORTEST, 1.0, len(lengths))).astype(np.int64)
    kept = np.clip(kept, np.minimum(lengths, FEWEST), lengths)
    begin = (rng.random(len(lengths)) * (lengths - kept + 1)).astype(np.int64)
    return take_runs(sequences, np.arange(len(lengths)), begin, begin + kept)


def affordable_rows(number: int, size: int, versions: int, rng: np.random.Generator) -> IntArray:
    """Return which of `number` sequences to learn from: all, or a random part whose vectors fit into memory."""
    return some_rows(np.arange(number), max(1, MOST_NUMBERS // max(1, size * versions)), rng)


def some_rows(rows: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Return the rows, or a random part of them in order if there are more than `most`."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
