"""CrossAttention with both presets: scores, lists, folders, training."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from naive.cross import event_agreement
from naive.cross_data import awkward, first_stage, small_set
from neuroseqret.data.batching import pad
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.card import ModelState
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.cross_scorer import CrossScorer
from neuroseqret.models.cross.cross_scorer_fitting import CrossScorerFitting
from neuroseqret.models.cross.event_correction import SHARPNESS
from neuroseqret.models.cross.memory_correction import agreement_scores
from neuroseqret.models.cross.memory_fitting import NEARLY, JudgedLists, choose_strength
from neuroseqret.models.cross.presets import cross_settings_of
from neuroseqret.models.cross.ranked_lists import RankedLists, rank
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.models.presets import settings_of
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.training.task import TrainingTask

QUICK = {"process": {"loop": {"steps": 3}, "width": 8, "queries": 4}, "memory": {"out_of_fold_steps": 40}}
PRESETS = ["default", "paper", "paper-literal"]


@cache
def fitted(preset: str) -> CrossAttention:
    queries, corpus = small_set()
    return CrossAttention(preset, first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)


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


def test_the_strength_is_the_weakest_that_nearly_gains_most_where_it_gains_least() -> None:
    card = fitted("default").to_state().card
    tried = card.notes["strength_gains"]
    least = {strength: min(gains) for strength, gains in tried.items()}
    assert least["0"] == 0
    enough = [strength for strength, gain in least.items() if gain >= NEARLY * max(least.values())]
    assert f"{card.constants['strength']:g}" == enough[0]
    assert all(len(gains) == 2 for gains in tried.values())  # out of fold, and validation


def test_a_strength_that_harms_validation_is_not_taken() -> None:
    rng = np.random.default_rng(0)

    def side(helpful: bool) -> list[JudgedLists]:
        """Lists in random order; the memory knows the relevant ones, or the others."""
        truth = rng.random((30, 20)) < 0.3
        attention = np.where(truth.ravel() == helpful, 0.9, 0.1).astype(np.float32)[:, None]
        scores = -np.sort(-rng.random((30, 20)).astype(np.float32), axis=1)
        lists = RankedLists(np.arange(30), np.arange(600).reshape(30, 20), scores, truth, truth.sum(1))
        none = np.zeros((1, 1), np.float32)
        return [
            JudgedLists(
                lists, np.ones((30, 1), np.float32), none, np.arange(600).reshape(30, 20), attention, none, none
            )
        ]

    grid = (0.0, 0.1, 1.0, 10.0)
    chosen = choose_strength([side(True), side(True)], agreement_scores, grid)
    assert chosen.strength > 0
    assert chosen.validation == {"mean of AP and nDCG@10 of lists": chosen.quality[1]}
    assert 0 < chosen.gains[f"{chosen.strength:g}"][1] < chosen.quality[1] <= 1
    assert choose_strength([side(True), side(False)], agreement_scores, grid).strength == 0
    assert choose_strength([side(True)], agreement_scores, grid).validation == {}


def given_lists(relevant: np.ndarray, agreed: np.ndarray) -> list[JudgedLists]:
    """Lists of scores that fall by 1; the memory adds `agreed`, times the strength, to each candidate."""
    number, depth = relevant.shape
    scores = np.tile(np.arange(depth, 0, -1, dtype=np.float32), (number, 1))
    every, none = np.arange(relevant.size).reshape(relevant.shape), np.zeros((1, 1), np.float32)
    lists = RankedLists(np.arange(number), every, scores, relevant, relevant.sum(1))
    attention = agreed.astype(np.float32).reshape(-1, 1)
    return [JudgedLists(lists, np.ones((number, 1), np.float32), none, every, attention, none, none)]


def test_a_gain_that_may_be_chance_or_that_moves_the_first_hit_down_is_not_taken() -> None:
    relevant = np.tile([False, True, False, False], (40, 1))
    better, worse = np.tile([0, 1, 0, 0], (40, 1)), np.tile([0, 0, 1, 0], (40, 1))
    grid = (0.0, 1.5)

    def chosen(*sides: np.ndarray) -> float:
        return choose_strength([given_lists(relevant, side) for side in sides], agreement_scores, grid).strength

    assert chosen(better, better) == 1.5
    mixed = np.where(np.arange(40)[:, None] % 5 < 3, better, worse)  # 24 of 40 lists gain, the others lose less
    tried = choose_strength([given_lists(relevant, mixed)] * 2, agreement_scores, grid)
    assert min(tried.gains["1.5"]) > 0
    assert tried.strength == 1.5
    rare = np.where(np.arange(40)[:, None] == 0, better, 0)  # one list of 40: a gain of one standard error
    assert choose_strength([given_lists(relevant, rare)], agreement_scores, grid).gains["1.5"][0] > 0
    assert chosen(rare, better) == 0
    assert chosen(better, np.where(np.arange(40)[:, None] == 0, worse, 0)) == 0
    # The second and third relevant candidates rise, the first one falls from rank 1 to 2.
    relevant = np.tile([True, False, False, False, False, True, True], (40, 1))
    assert chosen(*[np.tile([0.0, 1, -9, -9, -9, 0, 0], (40, 1))] * 2) == 0
    assert chosen(*[np.tile([0.0, 0, -9, -9, -9, 0, 0], (40, 1))] * 2) == 1.5


def literal() -> CrossScorer:
    made = fitted("paper-literal").correction.scorer
    assert made is not None
    return made


def test_kernel_lies_between_minus_one_and_one() -> None:
    queries, corpus = small_set()
    model = literal()
    with torch.no_grad():
        pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[:50]))
        kernel = model.kernel(pairs)
    assert kernel.shape == (1, 50)
    assert float(kernel.abs().max()) <= 1 + 1e-5


def test_gradient_is_that_of_autograd() -> None:
    queries, corpus = small_set()
    model = literal()
    pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[3:4]))
    heads = model.process.heads
    total = heads.log_likelihood(pairs.inputs, pairs.states.flatten(0, 1), survival=False)
    gap_w, gap_b, mark_w, mark_b = torch.autograd.grad(
        total.sum(), [heads.gap.weight, heads.gap.bias, heads.mark.weight, heads.mark.bias]
    )
    by_row = torch.cat([torch.cat([gap_w, gap_b[:, None]], 1), torch.cat([mark_w, mark_b[:, None]], 1)])
    from neuroseqret.processes import fisher

    found = fisher.score(heads, pairs.inputs, pairs.states.flatten(0, 1), survival=False, clip=None)
    torch.testing.assert_close(found[0], by_row.flatten(), rtol=1e-4, atol=1e-4)


def test_paper_draws_a_hundred_negatives_and_none_of_them_is_relevant() -> None:
    model, task = fitted("paper"), TrainingTask.of(*small_set(), needs_labels=True)
    rows = task.answerable_train_rows
    lists = rank(np.zeros((len(rows), len(task.corpus)), np.float32), rows, task.relevance, 10)
    settings = cross_settings_of("paper", {}).process
    fitting = CrossScorerFitting(model.correction.scorer, settings, task, lists, lists)
    for step in range(5):
        drawn = fitting.drawn(step)
        assert drawn.candidates.shape == (settings.queries, 101)
        assert len(drawn.pseudo) == settings.queries // 2
        groups = task.corpus.groups.to_numpy(zero_copy_only=False)
        of_queries = task.queries.groups.to_numpy(zero_copy_only=False)[drawn.queries]
        anchors = np.concatenate([of_queries, groups[drawn.pseudo]])
        np.testing.assert_array_equal(anchors[:, None] == groups[drawn.candidates], drawn.truth)
        assert drawn.truth.sum(1).tolist() == [1] * settings.queries
        itself = drawn.candidates[len(drawn.queries) :] == drawn.pseudo[:, None]
        np.testing.assert_array_equal(itself, drawn.ignore[len(drawn.queries) :])


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
