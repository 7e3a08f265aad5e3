"""If sequences say nothing about their groups, every method must fall to chance: anything above chance is a leak.

Chance is measured by nDCG@10. Without information its expectation is the share of relevant sequences, for any ranking.
This does not hold for AP: a method that has learned the shuffled groups of the corpus by heart puts whole groups side
by side, and such rankings have a higher AP than random ones although no query finds its group more often.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from neuroseqret import methods
from neuroseqret.data.sequences import EventSequences
from neuroseqret.evaluation.protocol import Condition, RankingTask, make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.models.base import RelevanceModel
from neuroseqret.readers.data_folder import read_folder
from simulated import simulate

SECOND = {"memory": {"out_of_fold_steps": 30}, "process": {"loop": {"steps": 3}, "width": 8, "queries": 4}}
QUICK: dict[str, dict[str, Any]] = {
    "random": {},
    "histogram": {},
    "histogram-metric": {"loop": {"steps": 100, "learning_rate": 3e-3, "evaluations": 2}},
    "gru": {"hidden": 16, "batch": 32, "loop": {"steps": 40, "learning_rate": 1e-2, "evaluations": 2}},
    "mass": {},
    "udtw": {},
    "sharp": {},
    **{name: {"steps": 12} for name in ("rmtpp", "sahp", "thp", "rank-rmtpp", "rank-sahp", "rank-thp")},
    "self": {
        "encoder": {"width": 16},
        "batch": {"size": 16},
        "warm_up": {"steps": 5},
        "joint": {"steps": 15, "evaluations": 1},
        "head": {"steps": 60, "evaluations": 2},
        "selection": {"steps": 10},
        "head_batch": 32,
    },
    "cross": SECOND,
    "hash-cross": SECOND,
}
BLIND = ("random", "mass", "udtw")  # the groups of the simulated set have a pace and marks, no shape


def shuffled(sequences: EventSequences, seed: int) -> EventSequences:
    groups = np.array(sequences.groups.to_pylist())
    return sequences.with_column("group", np.random.default_rng(seed).permutation(groups).tolist())


@cache
def task_of(condition: Condition, *, true_groups: bool) -> RankingTask:
    queries, corpus = simulate(groups=6, per_group=30, queries_per_group=60, events=12, seed=1)
    if not true_groups:
        # Sources must not tell the group either: each row gets one of its own.
        queries, corpus = (s.with_column("source", s.ids) for s in (shuffled(queries, 1), shuffled(corpus, 2)))
    return make_task(queries, corpus, condition=condition)


def ndcg(name: str, condition: Condition, preset: str, *, true_groups: bool) -> tuple[np.ndarray, float]:
    """Return nDCG@10 of every test query, and its expectation by chance."""
    task = task_of(condition, true_groups=true_groups)
    options = dict(QUICK[name])
    if name in ("cross", "hash-cross"):
        options["first_stage"] = first_stage(condition, true_groups=true_groups)
    model = fit(methods.make(name, preset, **options), task)
    return answer(model, task).measures["nDCG@10"], float((task.relevance.counts / len(task.corpus)).mean())


@cache
def first_stage(condition: Condition, *, true_groups: bool) -> RelevanceModel:
    return fit(methods.make("self", **QUICK["self"]), task_of(condition, true_groups=true_groups))


def fit(model: RelevanceModel, task: RankingTask) -> RelevanceModel:
    return model.fit(task.training_queries, task.training_corpus, task.training_relevance, seed=1)


def test_every_method_is_looked_at():
    assert set(QUICK) == {*methods.MODELS, *methods.BASELINES}


@pytest.mark.parametrize("condition", ["seen", "unseen"])
@pytest.mark.parametrize(
    ("name", "preset"),
    [*((name, "default") for name in QUICK), ("cross", "paper-literal"), ("hash-cross", "paper-literal")],
)
def test_shuffled_groups_leave_chance(name, preset, condition):
    found, chance = ndcg(name, condition, preset, true_groups=False)
    assert len(found) == 144
    assert found.mean() < chance + 3.5 * found.std() / 12


@pytest.mark.parametrize("name", [name for name in QUICK if name not in BLIND])
def test_the_same_set_with_its_true_groups_is_far_above_chance(name):
    """This shows that the test above can fail: with true groups the same short training finds them."""
    found, chance = ndcg(name, "seen", "default", true_groups=True)
    assert found.mean() > 1.5 * chance


@pytest.mark.parametrize("name", ["histogram", "histogram-metric"])
def test_heart_beats_with_shuffled_patients_leave_chance(shared_data, name):
    data = read_folder(shared_data / "health")
    queries, corpus = shuffled(data.queries, 1), shuffled(data.corpus, 2)
    task = make_task(queries, corpus)
    found = answer(methods.make(name, **QUICK[name]).fit(queries, corpus), task).measures["nDCG@10"]
    chance = (task.relevance.counts / len(task.corpus)).mean()
    assert found.mean() < chance + 3.5 * found.std() / np.sqrt(len(found))
