"""The nine baselines on small parts of real sets: ties (amazon), heavy tails (twitter), many marks (soccer)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuroseqret import methods
from neuroseqret.readers.folder import read_folder
from neuroseqret.sequences import EventSequences

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
