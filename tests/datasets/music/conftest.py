"""music21's parser, for the tests that compare with it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def converter():
    return pytest.importorskip("music21").converter
