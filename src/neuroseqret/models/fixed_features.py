"""The parts of the vector of `self` that need no training, and the order of all parts.

Nothing here needs torch: a search computes these features of its query with numpy and compiled loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.presets import PARTS, Part
from neuroseqret.processes.convolution_bank import POOLINGS, ConvolutionBank
from neuroseqret.processes.event_classes import log_gaps
from neuroseqret.processes.features import Features
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.processes.value_tables import ValueTables

BANK_SCALE = 0.5  # of the features of the bank against those of the tables, which are fewer
TOGETHER = 512  # sequences whose features, and the vectors made of them, fit into a cache


@dataclass(frozen=True)
class Layout:
    """The length of each part of the vector, in the order of `presets.PARTS`; 0 for a part that it does not have."""

    sizes: dict[Part, int]

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(self.sizes.values())

    def columns(self, parts: Sequence[Part]) -> slice:
        """Return the columns of neighbouring parts."""
        begin, edges = 0, []
        for part, size in self.sizes.items():
            edges += [begin, begin + size] if part in parts and size else []
            begin += size
        return slice(edges[0], edges[-1]) if edges else slice(0, 0)


@dataclass(frozen=True)
class FixedFeatures:
    """The features that need no training, in the order of the vector; those that a model does not have are None."""

    bank: ConvolutionBank | None
    markov: MarkovRenewal | None
    value_tables: ValueTables | None  # of declared values; they count to the part `markov`

    def of(self, sequences: EventSequences) -> Features | None:
        """Return the features: (sequences, features); None if there are none."""
        known = self.bank if self.bank is not None else self.markov  # both have the time scale of their corpus
        if known is None:
            return None
        if len(sequences) <= TOGETHER:
            return self._of_few(sequences, known.scale)
        found = np.empty((len(sequences), sum(self.sizes.values())), np.float32)
        for begin in range(0, len(sequences), TOGETHER):
            found[begin : begin + TOGETHER] = self._of_few(sequences[begin : begin + TOGETHER], known.scale)
        return found

    def _of_few(self, sequences: EventSequences, scale: TimeScale) -> Features:
        gaps, parts = log_gaps(sequences, scale), []
        if self.bank is not None:
            parts.append(self.bank.features(sequences, gaps) * np.float32(BANK_SCALE))
        parts += [tables.features(sequences, gaps) for tables in self.tables()]
        return np.concatenate(parts, axis=1)

    def tables(self) -> list[MarkovRenewal | ValueTables]:
        """Return the tables that there are."""
        return [tables for tables in (self.markov, self.value_tables) if tables is not None]

    @property
    def sizes(self) -> dict[Part, int]:
        """The length of every part that needs no training; 0 for the others."""
        sizes: dict[Part, int] = dict.fromkeys(PARTS, 0)
        if self.bank is not None:
            sizes["positions"] = self.bank.size // POOLINGS
            sizes["bank"] = self.bank.size - sizes["positions"]
        sizes["markov"] = sum(tables.size for tables in self.tables())
        return sizes
