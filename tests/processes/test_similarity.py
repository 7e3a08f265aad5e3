from __future__ import annotations

import pytest
import torch

from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret.data.batching import pad
from neuroseqret.processes import similarity
from neuroseqret.processes.similarity import deltas


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["literal", "normalised"])
def test_deltas_are_the_naive_ones(seed, form):
    queries, candidates = random_sequences(seed), random_sequences(seed + 50, number=7, longest=20)
    delta_t, delta_x = deltas(pad(queries), pad(candidates), form)
    for q, query in enumerate(queries):
        for c, other in enumerate(candidates):
            expected = naive.deltas(
                (query.times - query.start).tolist(), query.marks.tolist(), query.end - query.start,
                (other.times - other.start).tolist(), other.marks.tolist(), other.end - other.start,
                form == "normalised",
            )  # fmt: skip
            assert (float(delta_t[q, c]), float(delta_x[q, c])) == pytest.approx(expected)


def test_a_sequence_is_at_no_distance_from_itself_and_normalised_ones_stay_below_one():
    sequences = pad(random_sequences(9, number=12))
    delta_t, delta_x = deltas(sequences, sequences, "normalised")
    assert delta_t.diagonal().abs().max() < 1e-12
    assert not delta_x.diagonal().any()
    for delta in (delta_t, delta_x):
        assert delta.min() >= 0
        assert delta.max() <= 1
    torch.testing.assert_close(delta_t, delta_t.T)


def test_candidates_in_parts_are_as_candidates_together(monkeypatch):
    queries, candidates = pad(random_sequences(1)), pad(random_sequences(2, number=9, longest=20))
    together = deltas(queries, candidates, "literal")
    monkeypatch.setattr(similarity, "_NUMBERS", 3 * max(queries.times.shape[1], candidates.times.shape[1]))
    in_parts = deltas(queries, candidates, "literal")
    for one, other in zip(together, in_parts, strict=True):
        assert torch.equal(one, other)
