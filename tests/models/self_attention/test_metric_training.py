from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from naive import training as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import LossSettings, MemberSettings, ProjectionSettings
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_training import MetricTraining
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training.sampling import PairSampler

GROUPS = 12
LABELS = [f"g{i % GROUPS:02d}" for i in range(60)]
MEMBERS = (MemberSettings(sees=("bank",)), MemberSettings(sees=("bank", "markov"), crops=True))


def sampler(size: int) -> PairSampler:
    corpus = EventSequences.from_lists([([0.0], [0])] * 60, groups=LABELS)
    queries = EventSequences.from_lists([([0.0], [0])] * 24, groups=LABELS[:24])
    return PairSampler(Relevance.from_groups(queries, corpus), np.arange(20), size=size, pseudo_from="corpus")


def training(size: int, **loss: float) -> MetricTraining:
    torch.manual_seed(1)
    layout = Layout({"positions": 0, "bank": 3, "markov": 2, "process": 0})
    settings = ProjectionSettings(hidden=8, dimension=4, dropout=0.0, members=MEMBERS)
    return MetricTraining(Metric(layout, settings), LossSettings(**loss), sampler(size), seed=0)


def vectors(crops: int) -> TrainingVectors:
    torch.manual_seed(0)
    return TrainingVectors(torch.randn(1 + crops, 24, 5).half(), torch.randn(1 + crops, 60, 5).half())


def test_the_loss_is_that_of_the_batch_and_of_the_proxies():
    made, known = training(8, proxies=0.3), vectors(0)
    pairs = made.sampler.batch(2)
    groups = np.concatenate([pairs.sets, pairs.sets])
    rows = (known.queries[0][pairs.queries], known.corpus[0][pairs.pseudo], known.corpus[0][pairs.corpus])
    expected = []
    with torch.no_grad():
        for member, proxies in zip(made.trained, made.proxies, strict=True):
            unit = member(torch.cat(rows).float())
            ranking = naive.in_batch_softmax((unit[:8] @ unit[8:].T).tolist(), pairs.positive, 0.1, pairs.ignore)
            chosen = (unit @ functional.normalize(proxies, dim=-1).T / 0.1).log_softmax(1)[np.arange(16), groups]
            expected.append(0.7 * ranking - 0.3 * float(chosen.mean()))
        assert float(made.loss(known, 2)) == pytest.approx(np.mean(expected), rel=1e-4)


def test_only_members_that_want_crops_get_them(monkeypatch):
    made, known = training(8, proxies=0.0), vectors(3)
    seen = []
    inner = Projection.inner
    monkeypatch.setattr(Projection, "inner", lambda self, given: seen.append(given) or inner(self, given))
    made.loss(known, 0)
    pairs = made.sampler.batch(0)
    whole = known.rows(pairs)
    torch.testing.assert_close(seen[0], whole[:, :3])
    replaced = (seen[1] != whole).any(1).float().mean()
    assert 0.2 < replaced < 0.8


def test_proxies_only_where_a_batch_cannot_hold_all_groups():
    assert [tuple(p.shape) for p in training(8).proxies] == [(GROUPS, 4)] * 2
    assert len(training(GROUPS).proxies) == 0
    assert len(training(8, proxies=0.0).proxies) == 0


def test_with_few_groups_the_cross_entropy_of_the_classifiers_is_added():
    made, known = training(GROUPS), vectors(0)
    layout, settings = made.metric.layout, made.metric.settings
    members = (MEMBERS[0], MemberSettings(kind="groups"))
    torch.manual_seed(1)
    metric = Metric(layout, settings.model_copy(update={"members": members}), groups=GROUPS)
    with_groups = MetricTraining(metric, LossSettings(), made.sampler, seed=0)
    pairs = made.sampler.batch(1)
    with torch.no_grad():
        whole = known.rows(pairs)
        unit, hidden = with_groups.trained[0].both(whole)
        ranking = naive.in_batch_softmax((unit[:GROUPS] @ unit[GROUPS:].T).tolist(), pairs.positive, 0.1, pairs.ignore)
        logits = metric.groups.logits(0, hidden).log_softmax(1)
        own = logits[np.arange(2 * GROUPS), np.concatenate([pairs.sets, pairs.sets])]
        expected = ranking - 0.95 * float(own.mean()) - 0.05 * float(logits.mean())
        assert float(with_groups.loss(known, 1)) == pytest.approx(expected, rel=1e-4)
