from __future__ import annotations

import numpy as np
import pytest
import torch

from naive.random_sequences import random_sequences
from naive.values import value_statistics
from neuroseqret.data.batching import join, pad
from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.time_scale import INPUT_WIDTH, TimeScale
from neuroseqret.processes.value_tables import ValueTables
from neuroseqret.training.augment import crop


def with_values(sequences: EventSequences, seed: int = 0) -> EventSequences:
    """Two columns: amounts of which some are missing, and a level with ties."""
    rng = np.random.default_rng(seed)
    amounts = [[None if rng.random() < 0.1 else rng.lognormal() for _ in range(n)] for n in sequences.lengths]
    return sequences.with_column("amount", amounts).with_column(
        "level", [rng.integers(0, 3, n).tolist() for n in sequences.lengths]
    )


def fitted(corpus: EventSequences, marks: int | None = None) -> ValueTables:
    values = EventValues.fit(corpus, ["amount", "level"])
    return ValueTables.fit(corpus, TimeScale.fit(corpus), marks or corpus.num_marks, values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("marks", [3, 100])
def test_statistics_are_the_naive_ones(seed, marks):
    corpus = with_values(random_sequences(seed, number=20, marks=marks + 1, windows=bool(seed % 2)), seed)
    tables = fitted(corpus, marks)  # the last mark is unknown to it
    np.testing.assert_allclose(tables.statistics(corpus), value_statistics(tables, corpus), rtol=1e-4, atol=1e-5)


def test_features_are_standardised_and_do_not_depend_on_neighbours():
    corpus = with_values(random_sequences(1, number=200))
    tables = fitted(corpus)
    features = tables.features(corpus)
    assert features.shape == (200, tables.size)
    assert np.abs(features).max() <= 5
    moved = features.std(0) > 0
    np.testing.assert_allclose(features[:, moved].mean(0), 0, atol=0.25)
    for row in (0, 7, 199):
        np.testing.assert_allclose(tables.features(corpus[row : row + 1])[0], features[row], atol=1e-5)


def test_the_shares_of_events_sum_to_the_features():
    corpus = with_values(random_sequences(5, number=40))
    tables = fitted(corpus)
    for row in range(10):
        shares, rest, kinds = tables.event_shares(corpus[row : row + 1])
        assert shares.shape == (corpus.lengths[row], tables.size)
        assert kinds.shape == (tables.size,)
        np.testing.assert_allclose(shares.sum(0) + rest, tables.features(corpus[row : row + 1])[0], atol=1e-5)


@pytest.mark.parametrize("values", [[7.0], [1.0, 1.0, 1.0], [1e300, -1e300], [float("nan")] * 4])
def test_awkward_values_are_finite(values):
    sequences = random_sequences(3, number=30)
    tables = fitted(with_values(sequences))
    strange = EventSequences.from_lists([(list(range(len(values))), [0] * len(values))])
    strange = strange.with_column("amount", [values]).with_column("level", [values])
    assert np.isfinite(tables.features(strange)).all()


def test_a_forged_table_is_refused():
    tables = fitted(with_values(random_sequences(2, number=20, marks=100)), 100)
    arrays = {name: tensor.numpy() for name, tensor in tables.tensors.items()}
    for name, wrong in (("marks", np.full(100, 64, np.int32)), ("mean", arrays["mean"][1:])):
        with pytest.raises(ValueError, match=r"classes of 100 marks|have \d+ cells"):
            ValueTables(tables.scale, 100, tables.values, {**arrays, name: wrong})


def test_a_column_that_is_constant_within_every_sequence_counts_for_all_events():
    corpus = with_values(random_sequences(4, number=20))
    values = EventValues.fit(corpus, ["level"])
    constant = corpus.with_column("level", [float(row % 3) for row in range(20)])
    spread = corpus.with_column("level", [[float(row % 3)] * int(n) for row, n in enumerate(corpus.lengths)])
    np.testing.assert_array_equal(values.of(constant), values.of(spread))


def test_batches_carry_the_values_of_their_events():
    corpus = with_values(random_sequences(6, number=12, longest=30))
    values = EventValues.fit(corpus, ["amount", "level"])
    scores, rows = values.of(corpus), np.array([3, 0, 7])
    batch = values.padded(corpus, rows)
    for place, row in enumerate(rows):
        own = scores[:, corpus.offsets[row] : corpus.offsets[row + 1]].T
        np.testing.assert_array_equal(batch.values[place, : len(own)], own)
        assert not batch.values[place, len(own) :].any()
    both = join(batch, values.padded(corpus, np.array([1])))
    np.testing.assert_array_equal(both.values[3, : corpus.lengths[1]], values.padded(corpus, np.array([1])).values[0])
    scale = TimeScale.fit(corpus)
    cut = crop(both, 5, np.random.default_rng(0))
    found, plain = scale.inputs(cut).values, scale.inputs(pad(corpus, rows)).values
    assert (plain.shape[2], found.shape[2]) == (INPUT_WIDTH, INPUT_WIDTH + 2)
    for place, row in enumerate([*rows, 1]):
        own = torch.from_numpy(scores[:, corpus.offsets[row] : corpus.offsets[row + 1]].T)
        kept = found[place, : cut.lengths[place], INPUT_WIDTH:]
        runs = own.unfold(0, len(kept), 1).transpose(1, 2)
        assert (runs == kept).all((1, 2)).any()  # a run of the sequence's own values
