"""The random kernels of the convolution bank, and the random codes of marks that they see."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.processes.bank_loops import FIRST_VALUE, GAP, OWN_GAP
from neuroseqret.processes.shared_classes import Marks

LENGTHS = (2, 3, 5, 7)
CODES = 32  # random codes per mark
MARK_CLASSES = 1024  # of more marks, those with the same remainder share their codes
_SHARE_OF_LENGTH = 6  # the largest dilation is this part of the median length
_CENTRED = 0.75  # share of kernels whose weights of gaps sum to 0: they see shapes, the others see levels
_FAR = 5.0


def draw_kernels(
    number: int, usual_length: float, values: int, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Draw the taps of all kernels, flat: those of kernel k are from begin[k] to begin[k + 1].

    Kernels take turns: gaps, own gaps, marks, gaps and marks, own gaps and marks; then, for every value of the events,
    the value, the value and gaps, the value and marks.
    """
    numeric: list[int | None] = [GAP, OWN_GAP, None, GAP, OWN_GAP]
    second: list[int | None] = [None] * 5
    with_marks = [False, False, True, True, True]
    for v in range(FIRST_VALUE, FIRST_VALUE + values):
        numeric += [v, v, v]
        second += [None, GAP, None]
        with_marks += [False, False, True]
    dilations = 2 ** np.arange(int(np.log2(max(usual_length / _SHARE_OF_LENGTH, 1.0))) + 1)
    begin, channel, offset, tap, span = [0], [], [], [], []
    for k in range(number):
        kind = k % len(numeric)
        length, dilation = int(rng.choice(LENGTHS)), int(rng.choice(dilations))
        places = dilation * np.arange(length)
        weights, channels = [], []
        for source in (numeric[kind], second[kind]):
            if source is None:
                continue
            of_source = rng.standard_normal(length)
            if rng.random() < _CENTRED:
                of_source -= of_source.mean()
            weights.append(of_source)
            channels.append(np.full(length, source))
        if with_marks[kind]:
            weights.append(rng.standard_normal(length))
            channels.append(FIRST_VALUE + values + rng.integers(0, CODES, length))
        together = np.concatenate(weights)
        tap.append(together / max(float(np.linalg.norm(together)), 1e-6))
        channel.append(np.concatenate(channels))
        offset.append(np.tile(places, len(weights)))
        span.append(places[-1] + 1)
        begin.append(begin[-1] + len(together))
    return {
        "begin": np.array(begin, np.int64),
        "channel": np.concatenate(channel).astype(np.int64),
        "offset": np.concatenate(offset).astype(np.int64),
        "tap": np.concatenate(tap).astype(np.float32),
        "span": np.array(span, np.int64),
    }


def draw_codes(marks: Marks, known: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw the codes of every class of marks, of mean 0 and variance 1 over the events: (CODES, classes + 1).

    The last class is for unknown marks; its codes are 0.
    """
    classes = min(max(known, 1), MARK_CLASSES)
    share = np.bincount(marks % classes, minlength=classes) / max(len(marks), 1)
    codes = rng.standard_normal((CODES, classes))
    codes -= (codes @ share)[:, None]
    codes /= np.maximum(np.sqrt(np.square(codes) @ share), 1e-6)[:, None]
    padded: npt.NDArray[np.float32] = np.pad(np.clip(codes, -_FAR, _FAR), ((0, 0), (0, 1))).astype(np.float32)
    return padded
