from __future__ import annotations

import pytest

import neuroseqret as nsr
from neuroseqret.methods.registry import make
from serving.running_server import RunningServer


@pytest.fixture(scope="session")
def served_data():
    """A small retrieval set with metadata."""
    data = nsr.simulate(4, 20, 4, seed=3)
    corpus = data.corpus.with_column("role", ["GK" if row % 3 else "FW" for row in range(len(data.corpus))])
    return data, corpus.with_column("age", list(range(len(corpus))))


def make_index(folder, served_data):
    data, corpus = served_data
    model = make("histogram", "default").fit(data.queries, data.corpus, data.relevance)
    return nsr.Index.create(model, folder, corpus)


@pytest.fixture(scope="session")
def served_index(tmp_path_factory, served_data):
    """An index for the server that most tests share."""
    folder = tmp_path_factory.mktemp("served") / "index"
    make_index(folder, served_data)
    return folder


@pytest.fixture(scope="session")
def server(served_index, tmp_path_factory):
    """A server without keys that most tests share."""
    with RunningServer(served_index, log=tmp_path_factory.mktemp("log") / "log") as running:
        yield running


@pytest.fixture
def own_index(tmp_path, served_data):
    """An index that the test may change and kill the server of."""
    make_index(tmp_path / "index", served_data)
    return tmp_path / "index"
