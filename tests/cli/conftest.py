"""A data folder, a model and indexes of it that are quick to make, for commands that search."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroseqret.baselines.histogram import Histogram
from neuroseqret.data.sequences import EventSequences
from neuroseqret.index import Index
from neuroseqret.readers import write_folder
from simulated import simulate_retrieval

LONG = "a-sequence-whose-id-is-longer-than-a-terminal-is-wide-" + 50 * "x"


def corpus_and_queries() -> tuple[EventSequences, EventSequences]:
    """Sequences with a group, a list per sequence, a text and a number; one of them has a very long id."""
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=2)
    ids = [LONG, *corpus.ids.to_pylist()[1:]]
    corpus = corpus.with_column("id", ids).with_column("tags", [["x", "y"]] * len(corpus))
    corpus = corpus.with_column("title", [f"a title of sequence {row}, which is long" for row in range(len(corpus))])
    return corpus.with_meaning(time_unit="seconds"), queries.with_meaning(time_unit="seconds")


@pytest.fixture(scope="session")
def searchable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, `model`, `index` and `windows`, an index of windows."""
    folder = tmp_path_factory.mktemp("searchable")
    corpus, queries = corpus_and_queries()
    write_folder(folder / "data", corpus, queries)
    model = Histogram().fit(queries, corpus)
    model.save(folder / "model")
    Index.create(model, folder / "index", corpus)
    Index.create(model, folder / "windows", corpus, window_events=10, window_step=5)
    return folder
