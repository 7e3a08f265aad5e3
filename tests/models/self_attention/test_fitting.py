"""Training of SelfAttention: interrupted runs, time limits, what the unwarping learns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from naive.random_sequences import random_sequences
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.self_attention import affordable, fitting
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.training import budget
from rhythms import CORPUS, PAPER, QUERIES, SMALL, rhythms


def test_a_run_that_was_cut_off_goes_on(tmp_path, monkeypatch):
    def cut_off(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "train_head", cut_off)
        with pytest.raises(KeyboardInterrupt):
            SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(fitting.ProcessTraining, "joint_loss", cut_off)  # the first phases are not run again
        resumed = SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    at_once = SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1)
    np.testing.assert_array_equal(resumed.embed(CORPUS), at_once.embed(CORPUS))


def test_a_checkpoint_of_other_relevance_is_refused(tmp_path, monkeypatch):
    def cut_off(*_, **__):
        raise KeyboardInterrupt

    known = Relevance.from_groups(QUERIES, CORPUS)
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "train_head", cut_off)
        with pytest.raises(KeyboardInterrupt):
            SelfAttention(**SMALL).fit(QUERIES, CORPUS, known, seed=1, checkpoint=tmp_path / "c")
    rolled = pa.array(np.roll(np.array(CORPUS.groups.to_pylist()), 1))
    other = Relevance.from_groups(QUERIES, CORPUS.with_column("group", rolled))
    with pytest.raises(UserError, match="another run"):
        SelfAttention(**SMALL).fit(QUERIES, CORPUS, other, seed=1, checkpoint=tmp_path / "c")


def test_unwarping_learns_although_some_crops_are_over_in_no_time():
    tied = (np.concatenate([[1.0, 2.0, 3.0], np.full(60, 4.0)]), np.zeros(63, int))
    at_once = EventSequences.from_lists(
        [tied if k % 3 == 0 else (q.times, q.marks) for k, q in enumerate(QUERIES)],
        ids=QUERIES.ids.to_pylist(),
        groups=QUERIES.groups.to_pylist(),
        metadata={"split": QUERIES.column("split").to_pylist()},
    )
    trained = SelfAttention("paper-literal", **PAPER).fit(at_once, CORPUS, seed=0)
    assert np.isfinite(trained.score(at_once, CORPUS)).all()


def test_a_budget_is_kept():
    long = {**SMALL, "joint": {"steps": 100_000}, "head": {"steps": 100_000}, "selection": {"steps": 100_000}}
    trained = SelfAttention("neural", **long).fit(QUERIES, CORPUS, max_seconds=2.0)
    last = {r["phase"]: r["seconds"] for r in trained.log.records}
    assert list(last) == ["warm_up", "joint", "selection", "head"]
    assert sum(last.values()) < 4.0


@pytest.mark.parametrize("phase", ["warm_up", "joint"])
def test_the_likelihood_does_not_make_the_unwarping_collapse(phase):
    queries, corpus = random_sequences(1, number=12, groups=3), random_sequences(2, number=30, groups=3)
    queries = queries.with_column("split", ["train"] * 12)
    steps = {"warm_up": {"steps": 0}, "joint": {"steps": 0}, phase: {"steps": 60, "evaluations": 1}}
    settings = {**SMALL, **steps, "unwarp": {}, "head": None, "vector": {"markov": False, "bank": 0}}
    made = SelfAttention("neural", **settings)
    unwarp = made.fit(queries, corpus, seed=0).network.unwarp
    assert unwarp is not None
    with torch.no_grad():
        assert float((unwarp.rate(unwarp.points) - 1).abs().max()) < 0.05  # ties reward shrinking all other gaps


def test_the_budget_counts_features_crops_and_selection(monkeypatch):
    """On a clock that passes 20 ms per sequence described and 10 ms per look at it, `fit` ends within its budget."""
    clock, described = [0.0], SelfAttention.fixed_features

    def now() -> float:
        clock[0] += 0.01
        return clock[0]

    def slow(self: SelfAttention, sequences: EventSequences) -> torch.Tensor | None:
        clock[0] += 0.02 * len(sequences)
        return described(self, sequences)

    monkeypatch.setattr(budget, "_clock", now)
    monkeypatch.setattr(SelfAttention, "fixed_features", slow)
    monkeypatch.setattr(affordable, "TIMED", 4)
    corpus = rhythms(2, 2000)  # 40 s for the features alone, and three times as much for crops
    settings = {**SMALL, "head": {"steps": 100_000, "evaluations": 1}}
    model = SelfAttention(**settings).fit(QUERIES, corpus, max_seconds=20.0)
    assert 15 < clock[0] < 23
    assert model.card.notes["selection"]["weights"]
    clock[0] = 0.0
    model = SelfAttention(**settings).fit(QUERIES, corpus, max_seconds=2.0)
    assert clock[0] < 3  # all features would take 40 s, those of the 36 queries alone 0.7 s
    assert "the usual weights" in model.card.notes["selection"]["chosen"]
