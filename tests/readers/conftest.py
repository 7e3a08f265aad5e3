"""Files of tests need not survive a power cut: no waiting for the disk; and hypothesis knows no deadline."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pyarrow as pa
import pytest

import strategies  # noqa: F401  # registers the profile of the property tests
from neuroseqret.data.sequences import EventSequences


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    with patch("neuroseqret.storage.files.os.fsync"):
        yield


@pytest.fixture
def small() -> EventSequences:
    """Two sequences with everything that sequences may carry."""
    return EventSequences.from_lists(
        [([0.0, 0.5, 0.5], [0, 1, 0]), ([2.0], [1])],
        ids=["a", "b"],
        starts=[0.0, 0.0],
        ends=[1.0, 2.0],
        groups=["x", None],
        metadata={"source": ["s", "t"], "size": pa.array([1, 2], pa.uint8())},
        mark_names=["up", "down"],
        time_unit="days",
    )
