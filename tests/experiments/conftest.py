"""Fixtures: cells with a fixed commit (asking git takes a process each), and small data folders."""

from __future__ import annotations

import pytest

from experiments import result_cells as module
from experiments.measured import Measured
from fake_cells import everything
from neuroseqret.readers.data_folder import write_folder
from simulated import simulate


@pytest.fixture(autouse=True)
def one_commit(monkeypatch):
    monkeypatch.setattr(module, "commit", lambda: "0123456789")


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """Cells of every experiment on two data sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "commit", lambda: "0123456789")
        return everything(tmp_path_factory.mktemp("full") / "cells")


@pytest.fixture(scope="session")
def measured(full):
    return Measured(full)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with two data folders."""
    root = tmp_path_factory.mktemp("data")
    for name, seed in (("first", 0), ("second", 1)):
        queries, corpus = simulate(seed=seed)
        write_folder(root / name, corpus, queries)
    return root
