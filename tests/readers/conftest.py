"""Files of tests need not survive a power cut: no waiting for the disk; and hypothesis knows no deadline."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

import strategies  # noqa: F401  # registers the profile of the property tests


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    with patch("neuroseqret.storage.files.os.fsync"):
        yield
