"""Baselines on real sets: the nine on small parts of three sets, histograms compared with the published figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from naive.baselines import plain_histograms
from neuroseqret import methods
from neuroseqret.data.sequences import EventSequences
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer, answer_from
from neuroseqret.readers.data_folder import read_folder

SERIES = ("mass", "udtw", "sharp")
PROCESSES = ("rmtpp", "sahp", "thp", "rank-rmtpp", "rank-sahp", "rank-thp")


def part(folder: Path) -> tuple[EventSequences, EventSequences]:
    """Some queries of all splits, and corpus sequences of their groups."""
    data = read_folder(folder, validate=False)
    assert data.queries is not None
    rows = np.random.default_rng(0).permutation(len(data.queries))[:15]
    queries = data.queries[rows]
    wanted = set(queries.groups.to_pylist())
    related = [i for i, group in enumerate(data.corpus.groups.to_pylist()) if group in wanted]
    return queries, data.corpus[np.array(related)[:: max(1, len(related) // 20)]]


@pytest.mark.parametrize("name", ["amazon", "twitter", "soccer"])
def test_all_scores_are_finite_and_not_all_alike(name: str, shared_data: Path) -> None:
    queries, corpus = part(shared_data / name)
    for method in (*SERIES, *PROCESSES):
        options = {"steps": 1} if method in PROCESSES else {}
        scores = methods.make(method, **options).fit(queries, corpus, max_seconds=5).score(queries, corpus)
        assert np.isfinite(scores).all(), method
        assert (scores.std(axis=1) > 0).all(), method


@pytest.mark.parametrize(("name", "expected"), [("amazon", 13.6), ("celebrity", 3.3), ("sports", 37.5)])
def test_the_plain_histogram_gives_the_published_map_and_ours_is_no_worse(
    name: str, expected: float, shared_data: Path
) -> None:
    """The published figure is of mark, bigram and log-gap histograms, whose number of bins is not published."""
    folder = read_folder(shared_data / name, validate=False)
    assert folder.queries is not None
    task = make_task(folder.queries, folder.corpus, folder.relevance)
    inner = np.diff(task.corpus.times)[np.diff(np.repeat(np.arange(len(task.corpus)), task.corpus.lengths)) == 0]
    edges = np.linspace(*np.quantile(np.log(inner + 1e-6), [0.005, 0.995]), 19)
    corpus, queries = (plain_histograms(task.corpus.num_marks, s, edges) for s in (task.corpus, task.queries))
    scale = np.maximum(corpus.std(0), 1e-9)
    vectors = [(x - corpus.mean(0)) / scale * (corpus.std(0) > 0) for x in (queries, corpus)]
    unit = [(x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in vectors]
    plain = 100 * answer_from(unit[0] @ unit[1].T, task).measures["AP"].mean()
    assert plain == pytest.approx(expected, abs=0.5)
    ours = methods.make("histogram").fit(task.training_queries, task.training_corpus)
    assert 100 * answer(ours, task).measures["AP"].mean() > plain - 0.5
