"""The histogram baseline: cosine of the corpus-scaled features, blind to labels, the same after saving."""

from __future__ import annotations

import numpy as np
import pytest

from neuroseqret.baselines.histogram import Histogram
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.models.card import ModelState
from neuroseqret.models.model_folder import write_state
from neuroseqret.readers.data_folder import read_folder
from simulated import simulate


def test_cosine_of_features_scaled_by_the_corpus():
    queries, corpus = simulate()
    model = Histogram().fit(queries, corpus)
    features = model.markov.features(corpus)
    assert np.abs(features.mean(0)).max() < 0.2  # centred, up to clipping
    used = features.std(0) > 0
    assert np.median(features.std(0)[used]) == pytest.approx(1.0, abs=0.05)
    scores = model.score(queries, corpus)
    asked = model.markov.features(queries)
    for q, c in ((0, 0), (3, 7), (11, 40)):
        cosine = asked[q] @ features[c] / np.linalg.norm(asked[q]) / np.linalg.norm(features[c])
        assert scores[q, c] == pytest.approx(cosine, abs=1e-5)
    assert np.allclose(model.score(queries[3], corpus), scores[3], atol=1e-6)


def test_labels_and_queries_are_not_looked_at():
    queries, corpus = simulate()
    model = Histogram().fit(queries, corpus)
    other = Histogram().fit(None, corpus.with_column("group", corpus.groups.to_pylist()[::-1]), seed=5)
    assert (model.embed(queries) == other.embed(queries)).all()


def test_finds_groups_that_differ_in_rate_and_marks():
    task = make_task(*simulate(queries_per_group=10))
    found = answer(Histogram().fit(task.training_queries, task.training_corpus), task).measures["AP"].mean()
    assert found > 0.6  # a sixth of the corpus is relevant: chance is about 0.2


def test_saved_and_loaded(tmp_path):
    queries, corpus = simulate()
    model = Histogram().fit(queries, corpus)
    loaded = Histogram.load(model.save(tmp_path / "m"))
    assert (loaded.embed(queries) == model.embed(queries)).all()
    assert loaded.card == model.to_state().card
    assert loaded.card.corpus_fingerprint == corpus.fingerprint()


def test_what_cannot_be_done_is_said(tmp_path):
    queries, corpus = simulate()
    with pytest.raises(UserError, match="not trained"):
        Histogram().embed(queries)
    with pytest.raises(UserError, match="not trained"):
        Histogram().save(tmp_path / "m")
    with pytest.raises(UserError, match="corpus is empty"):
        Histogram().fit(queries, EventSequences.from_lists([]))
    folder = Histogram().fit(queries, corpus).save(tmp_path / "m")
    state = Histogram.load(folder).to_state()
    write_state(folder, ModelState(state.card.model_copy(update={"time_scale": None}), state.tensors))
    with pytest.raises(UserError, match="do not fit together"):
        Histogram.load(folder)


@pytest.mark.parametrize(("name", "least"), [("health", 0.40), ("sports", 0.37), ("celebrity", 0.030)])
def test_real_sets_reach_the_published_figures(shared_data, name, least):
    """The data's own description gives 0.33, 0.375 and 0.033 for a plainer histogram."""
    data = read_folder(shared_data / name)
    task = make_task(data.queries, data.corpus, data.relevance)
    assert answer(Histogram().fit(data.queries, data.corpus), task).measures["AP"].mean() > least
