"""Fixtures: cells with a fixed commit (asking git takes a process each), and small data folders."""

from __future__ import annotations

import pytest

from experiments import result_cells as module
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from fake_cells import everything, put, ranking
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


@pytest.fixture
def by_hand(tmp_path):
    """One data set: histogram 0.4, self 0.6 and 0.7, self (paper-literal) 0.2, cross just above self, gru failed."""
    cells, n = ResultCells(tmp_path), 60
    put(cells, Fit(data="toy", method="random"), View(), ranking([0.1] * n))
    put(cells, Fit(data="toy", method="histogram"), View(), ranking([0.4] * n))
    put(cells, Fit(data="toy", method="self", seed=0), View(), ranking([0.6] * n))
    put(cells, Fit(data="toy", method="self", seed=1), View(), ranking([0.7] * n))
    put(cells, Fit(data="toy", method="self", preset="paper-literal"), View(), ranking([0.2] * n))
    put(cells, Fit(data="toy", method="cross"), View(), ranking([0.66] * n))
    put(cells, Fit(data="toy", method="hash-cross"), View(), ranking([0.6] * n))
    put(cells, Fit(data="toy", method="gru"), View(), {"error": "did not learn"})
    return Measured(cells)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with two data folders."""
    root = tmp_path_factory.mktemp("data")
    for name, seed in (("first", 0), ("second", 1)):
        queries, corpus = simulate(seed=seed)
        write_folder(root / name, corpus, queries)
    return root
