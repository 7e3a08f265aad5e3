"""The convolution bank written as its equation, one event at a time."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.convolution_bank import POOLINGS, ConvolutionBank
from neuroseqret.processes.event_classes import log_gaps


def bank_statistics(bank: ConvolutionBank, sequences: EventSequences) -> npt.NDArray[np.float64]:
    """`ConvolutionBank.statistics`: (sequences, 5 * kernels)."""
    a = {name: tensor.numpy() for name, tensor in bank.tensors.items()}
    offsets, marks, classes = sequences.offsets, sequences.marks, a["codes"].shape[1] - 1
    gaps, values = log_gaps(sequences, bank.scale), bank.values.of(sequences)
    rows = []
    for first, stop in itertools.pairwise(offsets):
        gap = gaps[first:stop]
        mean = np.nanmean(gap) if np.isfinite(gap).any() else 0.0
        gap = np.where(np.isnan(gap), mean, gap)
        kinds = [mark % classes if 0 <= mark < bank.marks else classes for mark in marks[first:stop]]
        x = np.vstack([gap, gap - mean, values[:, first:stop], a["codes"][:, kinds]])
        kernels = []
        for k in range(len(a["span"])):
            taps = range(a["begin"][k], a["begin"][k + 1])
            y = [
                sum(a["tap"][t] * x[a["channel"][t], i + a["offset"][t]] for t in taps) - a["bias"][k]
                for i in range(stop - first - a["span"][k] + 1)
            ]
            kernels.append(_pooled(y) if y else [np.nan] * POOLINGS)
        rows.append(np.array(kernels).T.ravel())
    return np.array(rows)


def _pooled(y: list[float]) -> list[float]:
    positive = [value for value in y if value > 0]
    runs = "".join("+" if value > 0 else " " for value in y).split()
    places = [i for i, value in enumerate(y) if value > 0]
    return [
        sum(places) / len(places) / len(y) if places else 0.5,
        len(positive) / len(y),
        max(y),
        sum(positive) / len(positive) if positive else 0.0,
        max(map(len, runs), default=0) / len(y),
    ]
