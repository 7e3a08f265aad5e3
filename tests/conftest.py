"""Shared fixtures: where the real benchmark data lies, if it is there."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import work_units

# The tests run side by side, one process a core: threads inside a process would only wait for one another. The
# libraries read these when they are first imported.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

REPOSITORY = Path(__file__).resolve().parent.parent
SETS = ("amazon", "audio", "celebrity", "electricity", "health", "soccer", "sports", "twitter")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: work_units.place(item.nodeid))


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay until the end, so the collector need not look through them again and again


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return work_units.scheduler(config, log)


@pytest.fixture(scope="module", autouse=True)
def _methods_of_a_test_file_stay_in_it() -> Iterator[None]:
    """A method that a file registers for its tests is gone when the file is done: others list all methods."""
    from neuroseqret.methods import registry

    before = dict(registry.MODELS)
    yield
    registry.MODELS.clear()
    registry.MODELS.update(before)


def _data_folder() -> Path:
    return Path(os.environ.get("NEUROSEQRET_DATA") or REPOSITORY.parent / "shared" / "data")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the eight benchmark sets; the test is skipped where there is none."""
    folder = _data_folder()
    if not (folder / "health" / "corpus.parquet").exists():
        pytest.skip("benchmark data not present; set NEUROSEQRET_DATA")
    return folder


@pytest.fixture(scope="session")
def shared_raw() -> Path:
    """The folder with samples of raw files; the test is skipped where there is none."""
    folder = _data_folder().parent / "raw"
    if not folder.exists():
        pytest.skip("raw samples not present beside the benchmark data")
    return folder
