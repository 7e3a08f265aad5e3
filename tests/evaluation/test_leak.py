"""If sequences say nothing of their groups, every method must fall to chance: what is left above it is a leak.

Chance is judged by nDCG@10, whose expectation without information is the share of relevant sequences in any ranking.
That of AP is not: a method that learned the corpus' (shuffled) groups by heart puts whole groups side by side, and
the AP of clustered rankings is higher than that of random ones although no query finds its group more often.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroseqret import methods
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.readers.folder import read_folder
from neuroseqret.sequences import EventSequences
from simulated import simulate

QUICK = {
    "random": {},
    "histogram": {},
    "histogram-metric": {"loop": {"steps": 100, "learning_rate": 3e-3, "evaluations": 2}},
    "gru": {"hidden": 16, "batch": 32, "loop": {"steps": 40, "learning_rate": 1e-2, "evaluations": 2}},
}


def shuffled(sequences: EventSequences, seed: int) -> EventSequences:
    groups = np.array(sequences.groups.to_pylist())
    return sequences.with_column("group", np.random.default_rng(seed).permutation(groups).tolist())


@pytest.mark.parametrize("condition", ["seen", "unseen"])
@pytest.mark.parametrize("name", QUICK)
def test_shuffled_groups_leave_chance(name, condition):
    queries, corpus = simulate(groups=6, per_group=30, queries_per_group=60, events=12, seed=1)
    # Sources must not tell the group either: each row gets one of its own.
    queries, corpus = (s.with_column("source", s.ids) for s in (shuffled(queries, 1), shuffled(corpus, 2)))
    task = make_task(queries, corpus, condition=condition)
    data = task.training_queries, task.training_corpus, task.training_relevance
    found = answer(methods.make(name, **QUICK[name]).fit(*data, seed=1), task).measures["nDCG@10"]
    chance = (task.relevance.counts / len(task.corpus)).mean()
    assert len(found) == 144
    assert found.mean() < chance + 3.5 * found.std() / 12


def test_the_same_sets_unshuffled_are_far_above_chance():
    """The test above could fail: with the true groups the same methods find them."""
    task = make_task(*simulate(groups=6, per_group=30, queries_per_group=60, events=12, seed=1))
    data = task.training_queries, task.training_corpus, task.training_relevance
    for name in ("histogram", "histogram-metric", "gru"):
        assert answer(methods.make(name, **QUICK[name]).fit(*data), task).measures["AP"].mean() > 0.5


@pytest.mark.parametrize("name", ["histogram", "histogram-metric"])
def test_heart_beats_with_shuffled_patients_leave_chance(shared_data, name):
    data = read_folder(shared_data / "health")
    queries, corpus = shuffled(data.queries, 1), shuffled(data.corpus, 2)
    task = make_task(queries, corpus)
    found = answer(methods.make(name, **QUICK[name]).fit(queries, corpus), task).measures["nDCG@10"]
    chance = (task.relevance.counts / len(task.corpus)).mean()
    assert found.mean() < chance + 3.5 * found.std() / np.sqrt(len(found))
