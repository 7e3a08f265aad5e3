from __future__ import annotations

import pytest

from naive.index import TinyEmbedder
from neuroseqret import methods


@pytest.fixture(autouse=True)
def _tiny_methods(monkeypatch):
    """The tests' own models can be loaded by name, as any other."""
    monkeypatch.setitem(methods.MODELS, "tiny", "naive.index:TinyEmbedder")
    monkeypatch.setitem(methods.MODELS, "length", "naive.index:LengthReranker")


@pytest.fixture
def tiny():
    return TinyEmbedder()
