"""The contract of `models/base.py`, tested on every method, models and baselines."""

from __future__ import annotations

import warnings
from copy import deepcopy

import numpy as np
import pytest

from golden.golden_data import SEED, golden_data
from golden.golden_figures import METHODS, fitted
from neuroseqret import methods
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.models.base import Embedder, Reranker, Resumable
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.cross.memory_correction import MemoryDivergence

#: One variant of every method; the golden figures have more.
NAMES = [*MODELS, *BASELINES]


def renumbered(sequences: EventSequences, names: tuple[str, ...]) -> EventSequences:
    """The same events with marks numbered by the order of `names`."""
    assert sequences.mark_names is not None
    number = np.array([names.index(name) for name in sequences.mark_names], np.int32)
    return EventSequences.from_arrays(
        sequences.times,
        number[sequences.marks],
        sequences.offsets,
        ids=sequences.ids,
        starts=sequences.starts,
        ends=sequences.ends,
        mark_names=names,
        time_unit=sequences.time_unit,
    )


@pytest.mark.parametrize("name", NAMES)
def test_marks_are_taken_by_name(name: str) -> None:
    queries, corpus = golden_data()
    model = fitted(name)
    other = renumbered(corpus, ("d", "never used", "b", "a", "c"))
    np.testing.assert_array_equal(model.score(queries[:3], other), model.score(queries[:3], corpus))
    if isinstance(model, Embedder):
        np.testing.assert_array_equal(model.embed(other), model.embed(corpus))
    if isinstance(model, Reranker):
        np.testing.assert_array_equal(model.rerank(queries[:3], other), model.rerank(queries[:3], corpus))


@pytest.mark.parametrize("name", NAMES)
def test_unknown_marks_are_an_error_unless_the_user_chooses(name: str) -> None:
    _, corpus = golden_data()
    model = fitted(name)
    odd = EventSequences.from_lists([([0.0, 1.0, 2.0, 4.0], [0, 1, 0, 0])], ids=["odd"], mark_names=["a", "zebra"])
    with pytest.raises(DataError, match="sequence odd: event 1: mark 'zebra' is unknown to the model"):
        model.score(odd, corpus)
    with pytest.raises(DataError, match="zebra"):
        model.score(corpus[:1], odd)
    kept, dropped = (model.score(odd, corpus, unknown_marks=choice) for choice in ("keep", "drop"))
    assert np.isfinite(kept).all()
    without = EventSequences.from_lists([([0.0, 2.0, 4.0], [0, 0, 0])], ids=["odd"], mark_names=["a"])
    np.testing.assert_allclose(dropped, model.score(without, corpus), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_another_time_unit_is_an_error(name: str) -> None:
    _, corpus = golden_data()
    with pytest.raises(DataError, match="times are in days, the model's in seconds"):
        fitted(name).score(corpus[:1].with_meaning(time_unit="days"), corpus)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_that_fit_does_not_know_is_an_error(name: str) -> None:
    queries, corpus = golden_data()
    with pytest.raises(TypeError, match="checkpoints"):
        methods.make(name).fit(queries, corpus, checkpoints="here")


@pytest.mark.parametrize("name", NAMES)
def test_only_what_learns_in_steps_takes_a_checkpoint(name: str, tmp_path: object) -> None:
    queries, corpus = golden_data()
    model = METHODS[name]()
    if isinstance(model, Resumable):
        model.fit(queries, corpus, seed=SEED, checkpoint=tmp_path)
        np.testing.assert_array_equal(model.score(queries[:2], corpus), fitted(name).score(queries[:2], corpus))
        assert any(tmp_path.rglob("*.safetensors"))  # type: ignore[attr-defined]
    else:
        with pytest.raises(UserError, match="does not learn in steps"):
            model.fit(queries, corpus, checkpoint=tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_state_and_folder_give_the_same_method_again(name: str, tmp_path: object) -> None:
    queries, corpus = golden_data()
    model = fitted(name)
    state = model.to_state()
    assert (state.card.model, state.card.method_version) == (name, model.version)
    assert (state.card.marks, state.card.mark_names, state.card.time_unit) == (4, ("a", "b", "c", "d"), "seconds")
    assert state.card.corpus_fingerprint == corpus.fingerprint()
    loaded = methods.load(model.save(tmp_path / "model"))  # type: ignore[operator]
    assert loaded.to_state().card == state.card
    for again in (type(model).from_state(state), loaded):
        np.testing.assert_array_equal(again.score(queries[:2], corpus), model.score(queries[:2], corpus))


@pytest.mark.parametrize("name", NAMES)
def test_an_untrained_method_says_so(name: str, tmp_path: object) -> None:
    with pytest.raises(UserError, match="not trained"):
        methods.make(name).save(tmp_path / "model")  # type: ignore[operator]


@pytest.mark.parametrize("name", NAMES)
def test_without_labels_it_learns_from_sub_sequences_or_needs_none(name: str) -> None:
    _, corpus = golden_data()
    model = METHODS[name]() if name not in ("cross", "hash-cross") else None
    if model is None:
        return  # its first stage is tested with it, in tests/models/cross
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(None, corpus.without_columns("group"), seed=0)
    assert any("learning from sub-sequences" in str(w.message) for w in caught) == model.needs_labels
    assert model.card is not None
    assert model.card.unlabelled == model.needs_labels


@pytest.mark.parametrize("name", NAMES)
def test_a_cosine_is_declared_where_it_is_one(name: str) -> None:
    queries, corpus = golden_data()
    model = fitted(name)
    if isinstance(model, Embedder):
        if isinstance(model, HashCrossAttention) and isinstance(model.correction, MemoryDivergence):
            model = deepcopy(model)  # on these data no correction may be chosen, and its score is a cosine by chance
            model.correction.strength = 0.5
        product = model.embed(queries[:3], "query") @ model.embed(corpus).T
        assert np.allclose(product, model.score(queries[:3], corpus), atol=1e-5) == model.score_is_cosine
