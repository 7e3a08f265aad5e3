"""Padding against a loop over cells; batches by length waste little and miss nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naive.sequences import padded
from neuroseqret.data.batching import batches, pad, rows_by_length
from neuroseqret.data.sequences import EventSequences
from strategies import event_sequences


@given(event_sequences(min_events=0), st.data())
def test_padding_equals_the_loop(batch, data):
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=6) if len(batch) else st.just([]))
    made, wanted = pad(batch, np.array(rows, np.int64)), padded(batch, rows)
    assert made.rows.tolist() == rows
    for name, values in wanted.items():
        assert getattr(made, name).tolist() == values, name
    assert (made.times.dtype, made.marks.dtype) == (torch.float64, torch.int64)


@given(event_sequences(min_events=0), st.integers(1, 30))
def test_batches_hold_every_row_once(batch, max_events):
    found = list(batches(batch, max_events))
    assert sorted(row for part in found for row in part.rows) == list(range(len(batch)))
    for part in found:
        assert part.times.numel() <= max_events or len(part) == 1
        for row, times in zip(part.rows, part.times, strict=True):
            assert times[: len(batch[row])].tolist() == pad(batch, [row]).times[0].tolist()


@pytest.mark.parametrize("draw", [lambda rng, n: rng.integers(1, 200, n), lambda rng, n: rng.geometric(0.02, n)])
def test_little_is_padding(draw):
    lengths = draw(np.random.default_rng(0), 20_000).astype(np.int64)
    parts = rows_by_length(lengths, 16384)
    cells = sum(len(rows) * lengths[rows].max() for rows in parts)
    assert cells / lengths.sum() < 1.05
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(lengths)))
    assert all(len(rows) * lengths[rows].max() <= 16384 for rows in parts)


def test_a_sequence_longer_than_a_batch_goes_alone():
    parts = rows_by_length(np.array([3, 100, 2]), 10)
    assert [rows.tolist() for rows in parts] == [[2, 0], [1]]


def test_an_epoch_clock_loses_nothing():
    start = 1_700_000_000.0
    batch = EventSequences.from_lists(
        [(start + np.array([0, 2**-20, 0.5]), [0, 0, 0])], starts=[start], ends=[start + 1]
    )
    assert pad(batch).times.tolist() == [[0, 2**-20, 0.5]]
    assert pad(batch).spans.tolist() == [1.0]


def test_an_unknown_window_is_that_of_the_events():
    known = EventSequences.from_lists([([1, 2], [0, 0])], ids=["a"], starts=[0], ends=[5])
    unknown = EventSequences.from_lists([([1, 2], [0, 0])], ids=["b"])
    made = pad(EventSequences.concat([known, unknown]))
    assert made.times.tolist() == [[1, 2], [0, 1]]
    assert made.spans.tolist() == [5, 1]
