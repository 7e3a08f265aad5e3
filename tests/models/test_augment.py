from __future__ import annotations

import numpy as np
import pytest
import torch

from naive.random_sequences import random_sequences
from neuroseqret.batching import pad
from neuroseqret.models.augment import crop, forget_marks
from neuroseqret.models.features import TimeScale


@pytest.mark.parametrize(("most", "share"), [(5, 1.0), (100, 0.4), (7, 0.5)])
def test_a_crop_is_a_run_of_the_sequences_events(most, share):
    batch = pad(random_sequences(0, number=20, longest=15))
    cut = crop(batch, most, share, np.random.default_rng(1))
    for row in range(20):
        n, whole = int(cut.lengths[row]), int(batch.lengths[row])
        assert min(1, whole) <= n <= min(whole, most)
        assert n >= share * min(whole, most)
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
    assert crop(batch, 100, 1.0, np.random.default_rng(0)) is batch


def test_forgotten_marks_are_unknown_and_few():
    sequences = random_sequences(2, number=200, longest=20)
    inputs = TimeScale.fit(sequences).inputs(pad(sequences))
    changed = forget_marks(inputs, 0.2, unknown=3)
    forgotten = changed.marks != inputs.marks
    assert (changed.marks[forgotten] == 3).all()
    assert not forgotten[~inputs.mask].any()
    assert forgotten.sum().item() / inputs.mask.sum().item() == pytest.approx(0.2, abs=0.05)
