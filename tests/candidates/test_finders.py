"""What every finder must do, whichever way it takes: the same tests for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.candidates import ALL, FINDERS, CandidateSettings
from neuroseqret.candidates.arrays import save_in_order
from neuroseqret.errors import UserError

N, DIMENSION = 700, 12
SETTINGS = CandidateSettings(hash="rotation", fraction=0.1, tables=4)


def unit(n, seed=0):
    made = np.random.default_rng(seed).normal(size=(n, DIMENSION)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.fixture(params=list(FINDERS))
def written(request, tmp_path):
    """The kind of a finder, its folder, and the embeddings as they are laid out."""
    kind, embeddings = FINDERS[request.param], unit(N)
    order = kind.write(tmp_path, embeddings, SETTINGS)
    assert sorted(order.tolist()) == list(range(N))
    return kind, tmp_path, embeddings[order]


def test_all_rows_wanted_gives_the_exact_best(written):
    kind, folder, embeddings = written
    finder = kind.open(folder, embeddings)
    allowed = np.random.default_rng(1).random(N) < 0.3
    for query in unit(10, seed=2):
        for mask in (ALL, allowed):
            found = finder.best(query, 10, N, mask)
            assert found.rows.tolist() == naive.best_rows(embeddings, query, range(N), mask, 10)
            assert np.allclose(found.scores, embeddings[found.rows] @ query, atol=1e-6)
            assert found.method == kind.method == finder.method


def test_few_rows_wanted_are_few_comparisons(written):
    kind, folder, embeddings = written
    finder = kind.open(folder, embeddings)
    if kind.method == "exhaustive":
        assert finder.best(embeddings[0], 5, 60).compared == N
        return
    for query in unit(10, seed=3):
        found = finder.best(query, 5, 60)
        assert 60 <= found.compared < N / 2
        assert len(found.rows) == 5
        assert (np.diff(found.scores) <= 0).all()


def test_it_fits_its_own_rows_and_no_others(written):
    kind, folder, embeddings = written
    finder = kind.open(folder, embeddings)
    assert finder.fits(N, DIMENSION)
    assert not finder.fits(N - 1, DIMENSION)
    assert not finder.fits(N, DIMENSION + 1)
    assert not kind.open(folder, embeddings[:-1]).fits(N, DIMENSION)
    assert finder.nbytes >= (N * DIMENSION if kind.method == "cells" else embeddings.nbytes)


@pytest.mark.parametrize("method", list(FINDERS))
def test_files_of_other_rows_do_not_fit(method, tmp_path):
    kind, embeddings = FINDERS[method], unit(N)
    order = kind.write(tmp_path, embeddings[:-5], SETTINGS)
    assert kind.open(tmp_path, embeddings[:-5][order]).fits(N - 5, DIMENSION)
    assert kind.open(tmp_path, embeddings).fits(N, DIMENSION) == (method == "exhaustive")


def test_one_row_is_enough(tmp_path):
    for method, kind in FINDERS.items():
        folder = tmp_path / method
        folder.mkdir()
        embeddings = unit(1)[kind.write(folder, unit(1), SETTINGS)]
        assert kind.open(folder, embeddings).best(embeddings[0], 3, 3).rows.tolist() == [0]


def test_rows_saved_in_order_are_those_of_numpy(tmp_path):
    matrix, order = unit(50), np.random.default_rng(0).permutation(50).astype(np.int32)
    save_in_order(tmp_path / "a.npy", matrix, order)
    np.save(tmp_path / "b.npy", matrix[order])
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fraction": 0.0}, "fraction must be above 0"),
        ({"at_least": 0}, "at_least 1 or more"),
        ({"hash": "rotation", "hash_preset": "paper"}, "hash_preset works with the hash 'network' only"),
        ({"hash": "trees", "hash_eta": (0.4, 0.3, 0.3)}, "hash_eta works with the hash 'network' only"),
        ({"hash_eta": (0.4, 0.3, 0.4)}, "eta must be three weights that are not negative and sum to 1"),
        ({"tables": 256}, "must be 1 to 255"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        CandidateSettings(**options).check()


@pytest.mark.parametrize(
    ("options", "name", "bits"),
    [
        ({"candidates": "buckets"}, "trees", 160),
        ({"candidates": "buckets", "hash_preset": "paper"}, "network", 64),
        ({"candidates": "buckets", "hash_eta": (0.5, 0.25, 0.25)}, "network", 64),
        ({"candidates": "buckets", "hash": "hyperplanes"}, "hyperplanes", 64),
        ({"candidates": "hamming"}, "network", 64),
        ({}, "network", 64),
    ],
)
def test_buckets_have_trees_unless_another_hash_is_named(options, name, bits):
    settings = CandidateSettings(**options)
    settings.check()
    made = settings.new_hash()
    assert (made.name, made.bits) == (name, bits)
