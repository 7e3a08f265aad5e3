"""CrossAttention with both presets: scores, lists, folders, training."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from naive.cross import event_agreement
from naive.cross_data import QUICK, awkward, first_stage, fitted, small_set
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.card import ModelState
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.event_correction import SHARPNESS
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.models.presets import settings_of
from neuroseqret.processes.time_scale import TimeScale

PRESETS = ["default", "paper", "paper-literal"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_score_is_the_same_in_any_company(preset: str) -> None:
    queries, corpus = small_set()
    model = fitted(preset)
    whole = model.score(queries[:4], corpus)
    assert whole.shape == (4, 100)
    assert whole.dtype == np.float32
    scale = np.abs(whole).max()
    order = np.random.default_rng(0).permutation(100)
    np.testing.assert_allclose(model.score(queries[:4], corpus[order]), whole[:, order], atol=1e-5 * scale)
    for column in (0, 17, 99):
        alone = model.score(queries[:4], corpus[column : column + 1])
        np.testing.assert_allclose(alone[:, 0], whole[:, column], atol=1e-5 * scale)
    one = model.score(queries[2], corpus)
    assert one.shape == (100,)
    np.testing.assert_allclose(one, whole[2], atol=1e-5 * scale)


@pytest.mark.parametrize("preset", PRESETS)
def test_awkward_sequences_have_finite_scores(preset: str) -> None:
    _, corpus = small_set()
    odd = awkward()
    model = fitted(preset)
    assert np.isfinite(model.score(odd, corpus[:5], unknown_marks="keep")).all()
    assert np.isfinite(model.score(odd, odd, unknown_marks="keep")).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_common_shift_of_all_times_changes_nothing(preset: str) -> None:
    queries, corpus = small_set()
    moved = EventSequences.from_arrays(queries.times + 1000.0, queries.marks, queries.offsets)
    here = EventSequences.from_arrays(queries.times, queries.marks, queries.offsets)
    model = fitted(preset)
    one, two = model.score(here[:5], corpus[:20]), model.score(moved[:5], corpus[:20])
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_saved_and_loaded_scores_are_bit_equal(preset: str, tmp_path: Path) -> None:
    queries, corpus = small_set()
    model = fitted(preset)
    folder = model.save(tmp_path / "model")
    again = CrossAttention.load(folder)
    np.testing.assert_array_equal(again.score(queries[:3], corpus), model.score(queries[:3], corpus))
    np.testing.assert_array_equal(again.rerank(queries[:3], corpus), model.rerank(queries[:3], corpus))
    config = json.loads((folder / "config.json").read_text())
    assert config["model"] == "cross"
    assert (config["marks"], config["mark_names"]) == (3, ["a", "b", "c"])
    assert config["validation"]
    assert all(0 <= value <= 1 for value in config["validation"].values())
    again.save(tmp_path / "twice")
    assert CrossAttention.load(tmp_path / "twice").preset == preset


def test_a_folder_that_does_not_fit_together_is_one_clear_error(tmp_path: Path) -> None:
    folder = fitted("default").save(tmp_path / "model")
    state = read_state(folder, "cross")
    write_state(folder, ModelState(state.card.model_copy(update={"first_stage": None}), state.tensors))
    with pytest.raises(UserError, match="fit the model again"):
        CrossAttention.load(folder)
    (folder / "model.safetensors").write_bytes(b"short")
    with pytest.raises(UserError, match="truncated or changed"):
        CrossAttention.load(folder)


@pytest.mark.parametrize("preset", PRESETS)
def test_rerank_reorders_the_head_and_keeps_the_rest(preset: str) -> None:
    queries, corpus = small_set()
    model = fitted(preset)
    first = first_stage().score(queries[:3], corpus)
    lifted = model.rerank(queries[:3], corpus, first, depth=10)
    for q in range(3):
        before, after = np.argsort(-first[q], kind="stable"), np.argsort(-lifted[q], kind="stable")
        assert set(after[:10]) == set(before[:10])
        assert after[10:].tolist() == before[10:].tolist()
        own = model.score(queries[q], corpus[before[:10]])
        ranked = own[np.argsort(-own, kind="stable")]
        reached = own[[before[:10].tolist().index(row) for row in after[:10]]]
        np.testing.assert_allclose(reached, ranked, atol=1e-4 * max(1.0, float(np.abs(own).max())))
    np.testing.assert_allclose(model.rerank(queries[1], corpus, depth=10), lifted[1], atol=1e-5)


def test_same_seed_same_scores() -> None:
    queries, corpus = small_set()
    again = CrossAttention("default", first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)
    np.testing.assert_array_equal(again.score(queries[:2], corpus), fitted("default").score(queries[:2], corpus))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_that_was_cut_off_goes_on(preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = small_set()

    def fit() -> CrossAttention:
        model = CrossAttention(preset, first_stage=first_stage(), **QUICK)
        return model.fit(queries, corpus, seed=0, checkpoint=tmp_path / "c")

    first = fit()
    with monkeypatch.context() as patch:  # what was learned is not learned again

        def cut_off(*_: object) -> None:
            raise AssertionError("a step of training")

        patch.setattr(torch.optim.AdamW, "step", cut_off)
        again = fit()
    for model in (first, again):
        np.testing.assert_array_equal(model.score(queries[:3], corpus), fitted(preset).score(queries[:3], corpus))


def test_an_option_that_fit_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="checkpoints"):
        CrossAttention().fit(*small_set(), checkpoints="here")


def test_test_queries_are_never_looked_at() -> None:
    queries, corpus = small_set()
    split = np.array(queries.column("split").to_pylist())
    kept = queries[split != "test"]
    again = CrossAttention("default", first_stage=first_stage(), **QUICK).fit(kept, corpus, seed=0)
    np.testing.assert_array_equal(again.score(queries[:2], corpus), fitted("default").score(queries[:2], corpus))


def test_default_with_strength_zero_is_its_first_stage() -> None:
    queries, corpus = small_set()
    model = CrossAttention("default", first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)
    model.correction.strength = model.correction.event_strength = 0.0
    np.testing.assert_allclose(model.score(queries[:3], corpus), first_stage().score(queries[:3], corpus), atol=1e-6)


def test_cross_attention_between_events_adds_its_agreement() -> None:
    queries, corpus = small_set()
    model = copy.deepcopy(fitted("default"))
    correction = model.correction
    assert model.trained_card().notes["event_strength_gains"]["0"] == [0, 0]  # 0 is one of the choices
    correction.event_strength = 0.0
    without = model.score(queries[:3], corpus)
    correction.event_strength = 0.5
    states = correction.states
    for q in range(3):
        own = states.of(queries[q : q + 1])[0]
        for c in (0, 40, 99):
            added = 0.5 * event_agreement(own, states.of(corpus[c : c + 1])[0], SHARPNESS)
            assert model.score(queries[q], corpus[c : c + 1])[0] == pytest.approx(without[q, c] + added, abs=1e-4)
    listed = np.array([[5, 9], [99, 5], [0, 1]])
    whole = np.take_along_axis(model.score(queries[:3], corpus), listed, 1)
    np.testing.assert_allclose(model.score_listed(queries[:3], corpus, listed), whole, atol=1e-5)
    again = CrossAttention.from_state(model.to_state())
    np.testing.assert_array_equal(again.score(queries[:3], corpus), model.score(queries[:3], corpus))


def test_unfitted_models_and_wrong_presets_say_so() -> None:
    _, corpus = small_set()
    with pytest.raises(UserError, match="not trained"):
        CrossAttention().score(corpus[:1], corpus)
    with pytest.raises(UserError, match="no preset"):
        CrossAttention("papper")
    with pytest.raises(UserError, match=r"memory\.depth"):
        CrossAttention(memory={"depth": 0})


def test_a_model_without_labels_says_so_and_holds_the_log_of_both_stages(tmp_path: Path) -> None:
    _, corpus = small_set()
    plain = EventSequences.from_arrays(corpus.times, corpus.marks, corpus.offsets)
    with pytest.warns(UserWarning, match="learning from sub-sequences") as said:
        model = CrossAttention(**QUICK).fit(None, plain, seed=1, max_seconds=6)
    assert len(said) == 1
    assert model.card.unlabelled
    assert model.first_stage.card.unlabelled
    assert model.first_stage.scale.mean == TimeScale.fit(plain).mean  # of whole sequences, not of their parts
    lines = (model.save(tmp_path / "m") / "training.jsonl").read_text().splitlines()
    assert {json.loads(line)["phase"] for line in lines} >= {"selection", "head", "out_of_fold_0"}


def test_a_first_stage_whose_score_is_no_cosine_is_refused() -> None:
    queries, corpus = small_set()
    first = copy.copy(first_stage())
    first.settings = settings_of("default", {"similarity": {"form": "normalised"}})
    with pytest.raises(UserError, match="adds a similarity"):
        CrossAttention(first_stage=first, **QUICK).fit(queries, corpus)
