from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from naive import training as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.presets import settings_of
from neuroseqret.models.self_attention.metric_training import MetricTraining, affordable_steps
from neuroseqret.training.sampling import PairSampler

GROUPS = 12
LABELS = [f"g{i % GROUPS:02d}" for i in range(60)]


def sampler(size: int) -> PairSampler:
    corpus = EventSequences.from_lists([([0.0], [0])] * 60, groups=LABELS)
    queries = EventSequences.from_lists([([0.0], [0])] * 24, groups=LABELS[:24])
    return PairSampler(Relevance.from_groups(queries, corpus), np.arange(20), size=size, pseudo_from="corpus")


def metric(size: int, **loss: float) -> MetricTraining:
    small = {"projection": {"hidden": 8, "dimension": 4, "dropout": 0.0}, "loss": loss}
    return MetricTraining(5, settings_of("default", small), sampler(size), seed=0)


def test_the_loss_is_that_of_the_batch_and_of_the_proxies():
    torch.manual_seed(0)
    queries, corpus = torch.randn(24, 5), torch.randn(60, 5)
    made = metric(8, proxies=0.3)
    pairs = made.sampler.batch(2)
    groups = np.concatenate([pairs.sets, pairs.sets])
    expected = []
    with torch.no_grad():
        parts = made.head.parts(torch.cat([queries[pairs.queries], corpus[pairs.pseudo], corpus[pairs.corpus]]))
        for member, proxies in zip(parts, functional.normalize(made.proxies, dim=-1), strict=True):
            ranking = naive.in_batch_softmax((member[:8] @ member[8:].T).tolist(), pairs.positive, 0.1, pairs.ignore)
            chosen = (member @ proxies.T / 0.1).log_softmax(1)[np.arange(16), groups]
            expected.append(0.7 * ranking - 0.3 * float(chosen.mean()))
        assert float(made.loss(queries, corpus, 2)) == pytest.approx(np.mean(expected), rel=1e-4)


def test_proxies_only_where_a_batch_cannot_hold_all_groups():
    assert metric(8).proxies.shape == (2, GROUPS, 4)
    assert metric(GROUPS).proxies is None
    assert metric(8, proxies=0.0).proxies is None


def test_steps_follow_the_work():
    settings = settings_of("default", {"head_work": 1e9, "head_batch": 10, "projection": {"hidden": 100}})
    assert affordable_steps(5000, 250, settings, members=2) == 1000
    assert affordable_steps(700, 250, settings, members=2) == 700
    assert affordable_steps(5000, 10**6, settings, members=2) == 300
