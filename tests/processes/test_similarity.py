from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret.data.batching import pad
from neuroseqret.processes import similarity
from neuroseqret.processes.similarity import deltas

HORIZON = 12.0  # shorter than some of the sequences


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["literal", "normalised", "horizon"])
def test_deltas_are_the_naive_ones(seed, form):
    queries, candidates = random_sequences(seed), random_sequences(seed + 50, number=7, longest=20)
    delta_t, delta_x = deltas(pad(queries), pad(candidates), form, HORIZON)
    for q, query in enumerate(queries):
        for c, other in enumerate(candidates):
            expected = naive.deltas(
                (query.times - query.start).tolist(), query.marks.tolist(), query.end - query.start,
                (other.times - other.start).tolist(), other.marks.tolist(), other.end - other.start,
                form != "literal", HORIZON if form == "horizon" else None,
            )  # fmt: skip
            assert (float(delta_t[q, c]), float(delta_x[q, c])) == pytest.approx(expected)


@pytest.mark.parametrize("form", ["normalised", "horizon"])
def test_a_sequence_is_at_no_distance_from_itself_and_others_stay_below_one(form):
    sequences = pad(random_sequences(9, number=12))
    delta_t, delta_x = deltas(sequences, sequences, form, HORIZON)
    assert delta_t.diagonal().abs().max() < 1e-12
    assert not delta_x.diagonal().any()
    for delta in (delta_t, delta_x):
        assert delta.min() >= 0
        assert delta.max() <= 1
    torch.testing.assert_close(delta_t, delta_t.T)


def test_the_unit_of_time_does_not_matter_if_the_horizon_has_it_too():
    queries, candidates = pad(random_sequences(3)), pad(random_sequences(4, number=5, longest=20))
    seconds = deltas(queries, candidates, "horizon", 50.0)
    hours = deltas(*(replace(x, times=x.times / 3600, spans=x.spans / 3600) for x in (queries, candidates)),
                   "horizon", 50.0 / 3600)  # fmt: skip
    for one, other in zip(seconds, hours, strict=True):
        torch.testing.assert_close(one, other)


def test_candidates_in_parts_are_as_candidates_together(monkeypatch):
    queries, candidates = pad(random_sequences(1)), pad(random_sequences(2, number=9, longest=20))
    together = deltas(queries, candidates, "literal")
    monkeypatch.setattr(similarity, "_NUMBERS", 3 * max(queries.times.shape[1], candidates.times.shape[1]))
    in_parts = deltas(queries, candidates, "literal")
    for one, other in zip(together, in_parts, strict=True):
        assert torch.equal(one, other)
