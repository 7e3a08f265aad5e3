"""Fixtures of the tests of evaluation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from neuroseqret.data.sequences import EventSequences
from simulated import simulate


@pytest.fixture(scope="session")
def sets() -> Callable[..., tuple[EventSequences, EventSequences]]:
    """Makes (queries, corpus) of a simulated set."""
    return simulate
