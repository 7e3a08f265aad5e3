from __future__ import annotations

import numpy as np
import pytest
import torch

from naive.random_sequences import random_sequences
from neuroseqret.data.batching import pad
from neuroseqret.training.augment import crop


@pytest.mark.parametrize("most", [5, 7, 100])
def test_a_crop_is_a_run_of_the_sequences_events(most):
    batch = pad(random_sequences(0, number=20, longest=15))
    cut = crop(batch, most, np.random.default_rng(1))
    for row in range(20):
        n, whole = int(cut.lengths[row]), int(batch.lengths[row])
        assert n == min(whole, most)
        gaps, marks = cut.times[row, :n].diff(), cut.marks[row, :n]
        runs = [
            torch.allclose(batch.times[row, b : b + n].diff(), gaps) and torch.equal(batch.marks[row, b : b + n], marks)
            for b in range(whole - n + 1)
        ]
        assert any(runs)
        assert not cut.times[row, n:].any()
        assert cut.spans[row] >= cut.times[row].max()
        if n == whole:
            assert cut.spans[row] == batch.spans[row]


def test_short_sequences_are_left_alone():
    batch = pad(random_sequences(1))
    assert crop(batch, 100, np.random.default_rng(0)) is batch
