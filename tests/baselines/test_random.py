"""Chance is uniform, fixed by seed and ids, and survives saving."""

from __future__ import annotations

import numpy as np

from neuroseqret.baselines.random import Random
from neuroseqret.data.sequences import EventSequences


def sequences(prefix: str, number: int) -> EventSequences:
    return EventSequences.from_lists([([0.0], [0])] * number, ids=[f"{prefix}{i}" for i in range(number)])


def test_scores_are_uniform_and_independent_of_order():
    queries, corpus = sequences("q", 40), sequences("c", 500)
    model = Random().fit(queries, corpus, seed=3)
    scores = model.score(queries, corpus)
    assert scores.shape == (40, 500)
    assert scores.dtype == np.float32
    assert 0 <= scores.min() < 0.01
    assert 0.99 < scores.max() < 1
    assert abs(scores.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(scores[0], scores[1])[0, 1]) < 0.2
    turned = model.score(queries[::-1], corpus[::-1])
    assert (turned == scores[::-1, ::-1]).all()
    assert (model.score(queries[3], corpus) == scores[3]).all()
    assert (Random().fit(queries, corpus, seed=4).score(queries, corpus) != scores).mean() > 0.99


def test_saved_and_loaded(tmp_path):
    queries, corpus = sequences("q", 3), sequences("c", 5)
    model = Random().fit(queries, corpus, seed=9)
    assert (Random.load(model.save(tmp_path / "m")).score(queries, corpus) == model.score(queries, corpus)).all()
