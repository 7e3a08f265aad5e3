from __future__ import annotations

import pyarrow as pa
import pytest

from naive import filters
from naive.index import TinyEmbedder
from neuroseqret import methods
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.store import SERIAL


@pytest.fixture(autouse=True)
def _tiny_methods(monkeypatch):
    """The tests' own models can be loaded by name, as any other."""
    monkeypatch.setitem(methods.MODELS, "tiny", "naive.index:TinyEmbedder")
    monkeypatch.setitem(methods.MODELS, "length", "naive.index:LengthReranker")


@pytest.fixture
def tiny():
    return TinyEmbedder()


@pytest.fixture
def brief_hash(monkeypatch):
    """Networks that make codes learn for 20 steps, for tests that do not ask how well codes keep neighbours."""
    from neuroseqret.candidates.hash_network import HashNetwork

    fit = HashNetwork.fit

    def briefly(self, embeddings, *, seed=0):
        self.steps = 20
        return fit(self, embeddings, seed=seed)

    monkeypatch.setattr(HashNetwork, "fit", briefly)


@pytest.fixture(scope="module")
def filtered_store(tmp_path_factory):
    """The rows of `naive.filters` in a store."""
    table = pa.table({SERIAL: pa.array(range(8), pa.int64()), **filters.ROWS})
    made = LanceStore.create(tmp_path_factory.mktemp("filters"), table.schema)
    made.put(table, made.version)
    made.refresh()
    return made
