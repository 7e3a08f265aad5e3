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
from neuroseqret.processes.markov_renewal import Features, MarkovRenewal, log_gaps

BANK_SCALE = 0.5  # of the features of the bank against those of the tables, which are fewer


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


def fixed_features(
    bank: ConvolutionBank | None, markov: MarkovRenewal | None, sequences: EventSequences
) -> Features | None:
    """Return the features that need no training, bank before tables: (sequences, features); None if there are none."""
    known = bank if bank is not None else markov
    if known is None:
        return None
    gaps, parts = log_gaps(sequences, known.scale), []  # both have the time scale of their corpus
    if bank is not None:
        parts.append(bank.features(sequences, gaps) * np.float32(BANK_SCALE))
    if markov is not None:
        parts.append(markov.features(sequences, gaps))
    return np.concatenate(parts, axis=1)


def fixed_sizes(bank: ConvolutionBank | None, markov: MarkovRenewal | None) -> dict[Part, int]:
    """Return the length of every part that needs no training; 0 for the others."""
    sizes: dict[Part, int] = dict.fromkeys(PARTS, 0)
    if bank is not None:
        sizes["positions"] = bank.size // POOLINGS
        sizes["bank"] = bank.size - sizes["positions"]
    if markov is not None:
        sizes["markov"] = markov.size
    return sizes
