from __future__ import annotations

import numpy as np
import pytest
import torch

from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret.data.batching import pad
from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.time_scale import TimeScale


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_is_the_naive_one(seed):
    sequences = random_sequences(seed, number=10)
    scale = TimeScale.fit(sequences)
    expected = naive.time_scale([(s.times, s.start) for s in sequences])
    assert (scale.eps, scale.mean, scale.sd) == pytest.approx(expected)


def test_inputs_do_not_depend_on_padding_or_neighbours():
    sequences = random_sequences(1, number=8)
    scale = TimeScale.fit(sequences)
    together = scale.inputs(pad(sequences))
    for row in range(len(sequences)):
        alone = scale.inputs(pad(sequences, np.array([row])))
        n = int(sequences.lengths[row])
        for name in ("values", "marks", "timed", "gaps"):
            torch.testing.assert_close(getattr(together, name)[row, :n], getattr(alone, name)[0])
        assert not together.values[row, n:].any()


def test_a_shift_of_the_clock_changes_nothing():
    sequences = random_sequences(2)
    moved = EventSequences.from_arrays(
        sequences.times + 64.0,
        sequences.marks,
        sequences.offsets,
        starts=sequences.starts + 64,
        ends=sequences.ends + 64,
    )
    scale = TimeScale.fit(sequences)
    torch.testing.assert_close(
        scale.inputs(pad(sequences)).values, scale.inputs(pad(moved)).values, atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("factor", [1e-9, 1e12])
def test_the_unit_of_time_does_not_matter(factor):
    sequences = random_sequences(3, number=20)
    scaled = EventSequences.from_arrays(
        sequences.times * factor,
        sequences.marks,
        sequences.offsets,
        starts=sequences.starts * factor,
        ends=sequences.ends * factor,
    )
    one, other = (TimeScale.fit(s).inputs(pad(s)).values for s in (sequences, scaled))
    torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_nothing_but_ties_is_finite():
    sequences = EventSequences.from_lists([([3.0, 3.0, 3.0], [0, 1, 0]), ([1.0], [0])])
    inputs = TimeScale.fit(sequences).inputs(pad(sequences))
    assert torch.isfinite(inputs.values).all()
    assert torch.isfinite(inputs.tail).all()
