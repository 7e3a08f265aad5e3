"""Many marks: their classes, and models on such data stay small, learn, save and explain."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_settings
from neuroseqret.data.sequences import EventSequences
from neuroseqret.explanation import explain
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.network import RelevanceNetwork
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.shared_classes import shared_classes

MARKS, GROUPS = 5000, 8
SMALL = {
    **small_settings.SMALL,
    "encoder": {"width": 8, "max_length": 32},
    "batch": {"size": 8, "crop": 32},
    "head": {"steps": 60, "evaluations": 2},
    "vector": {},
}
QUICK = {"process": {"loop": {"steps": 3}, "width": 8, "queries": 4}, "memory": {"out_of_fold_steps": 40}}


def favourites(seed: int, number: int, **columns) -> EventSequences:
    """Groups that differ only in their fifty favourites among five thousand marks."""
    rng = np.random.default_rng(seed)
    liked = np.random.default_rng(7).integers(0, MARKS, (GROUPS, 50))
    lists = [(np.cumsum(rng.lognormal(0, 1, 30)), rng.choice(liked[i % GROUPS], 30)) for i in range(number)]
    names, groups = [f"m{seed}-{i}" for i in range(number)], [f"g{i % GROUPS}" for i in range(number)]
    return EventSequences.from_lists(lists, ids=names, groups=groups, **columns)


CORPUS = favourites(0, 160)
SPLIT = [("train", "train", "validation", "test")[i // GROUPS % 4] for i in range(64)]
QUERIES = favourites(1, 64, metadata={"split": SPLIT})
TEST = QUERIES[np.flatnonzero(np.array(SPLIT) == "test")]


@cache
def first_stage() -> SelfAttention:
    return SelfAttention(**SMALL).fit(QUERIES, CORPUS, seed=0)


@cache
def fitted(kind: type, preset: str) -> SelfAttention | CrossAttention | HashCrossAttention:
    if kind is SelfAttention:
        return first_stage() if preset == "default" else kind(preset, joint={"steps": 3}).fit(QUERIES, CORPUS, seed=0)
    return kind(preset, first_stage=first_stage(), **QUICK).fit(QUERIES, CORPUS, seed=0)


@given(st.lists(st.integers(0, 300), max_size=400), st.integers(1, 200), st.integers(2, 50))
def test_frequent_marks_are_classes_and_the_others_share_evenly(marks, known, most):
    counted = np.array([x for x in marks if x < known], np.int32)
    classes = shared_classes(counted, known, most)
    if known <= most:
        assert classes is None
        return
    number = np.bincount(counted, minlength=known)
    sizes = np.bincount(classes, minlength=most)
    assert len(sizes) == most
    assert (sizes[: most // 2] == 1).all()
    assert np.ptp(sizes[most // 2 :]) <= 1
    alone = classes < most // 2
    assert number[alone].min(initial=len(marks)) >= number[~alone].max(initial=0)


def test_a_mark_that_is_not_known_has_a_class_beyond_the_others():
    classes = MarkClasses(4, np.array([2, 0, 1, 2], np.int32))
    assert classes.number == 3
    assert classes(torch.tensor([[0, 1, 2], [3, 4, 99]])).tolist() == [[2, 0, 1], [2, 3, 3]]
    assert MarkClasses(4)(torch.tensor([0, 3, 4, 99])).tolist() == [0, 3, 4, 99]


def test_vectors_do_not_grow_with_the_marks():
    """With 5,000 classes the Markov-renewal vector would have 40,000 numbers and the Fisher vector 45,000."""
    model = first_stage()
    assert model.marks == CORPUS.num_marks > 4000
    assert model.markov is not None
    assert model.markov.size < 3000
    neural = SelfAttention("neural", **SMALL)
    neural.scale_on(CORPUS)
    assert RelevanceNetwork(neural.classes, {}, neural.settings).fisher_size == 66 * 9


def test_rare_marks_are_told_apart():
    """There is nothing to learn but the favourites, and no mark is more than a thousandth of the events."""
    scores = first_stage().score(TEST, CORPUS)
    nearest = np.argsort(-scores, axis=1)[:, :10]
    same = (nearest % GROUPS) == (np.arange(len(TEST)) % GROUPS)[:, None]
    assert same.mean() > 0.9


@pytest.mark.parametrize("preset", ["default", "paper-literal"])
@pytest.mark.parametrize("kind", [SelfAttention, CrossAttention, HashCrossAttention])
def test_saved_and_loaded_scores_are_bit_equal(kind, preset, tmp_path):
    model = fitted(kind, preset)
    strange = EventSequences.from_lists([([0.0, 1.0, 2.0], [3, 99_999, MARKS])])
    asked = EventSequences.of([*TEST[:3], *strange])
    scores = model.score(asked, CORPUS[:20], unknown_marks="keep")
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(
        kind.load(model.save(tmp_path / "model")).score(asked, CORPUS[:20], unknown_marks="keep"), scores
    )


def test_an_explanation_adds_up_to_the_score():
    explanation = explain(first_stage(), TEST[0], CORPUS[0])
    assert explanation.score == pytest.approx(float(first_stage().score(TEST[0], CORPUS[:1])[0]), abs=1e-5)
